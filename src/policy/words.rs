//! The word lists and the instruction text that `docs/spec/dedup.md` defines, as defaults.

/// Words of operational reports, singular and plural.
pub(super) const KEYWORDS: &str = "status snapshot health metric count queue uptime latency ticket alert cron heartbeat \
    service gateway dashboard api provider model statuses snapshots metrics counts queues latencies tickets alerts crons \
    heartbeats services gateways dashboards apis providers models";

/// Words that carry no meaning of their own.
pub(super) const STOPWORDS: &str = "a an and are as at be been being by connected context conversation current currently \
    environment for from had has have in is it its of on or participant participants reported report reports says state \
    stated states summary that the there these this those to was were with you your";

/// Units that may follow a number directly.
pub(super) const UNITS: &str = "ns us ms s m h d w b kb mb gb tb kib mib gib";

/// Kinds that are never demoted.
pub(super) const UNDEMOTED: &str =
    "snapshot summary aggregate consolidated_summary chapter_summary system developer admin";

/// Words that deny; a leading `*` stands for any beginning of a word.
pub(super) const NEGATION: &str = "no not never none nobody nothing neither nor without cannot *n't";

/// Words of which one denies the other.
pub(super) const OPPOSITES: [[&str; 2]; 9] = [
    ["enabled", "disabled"],
    ["enable", "disable"],
    ["on", "off"],
    ["true", "false"],
    ["allow", "deny"],
    ["light", "dark"],
    ["start", "stop"],
    ["open", "closed"],
    ["likes", "dislikes"],
];

/// Words of speculation (R5).
pub(super) const HEDGES: &str = "might maybe possibly";

/// What the host's language model is told about storing.
pub(super) const INSTRUCTIONS: &str = "\
STORE:
- decisions together with the reasons for them
- preferences that the user stated explicitly
- context of the project and what was learned in it
- technical findings together with their solutions
- ways of working that proved good

IGNORE:
- facts about the user's identity, skills or preferences (they go to the profile)
- search queries (they have their own partition)
- short-lived debugging context
- speculation (might, maybe, possibly)
- what is stored already

CONSOLIDATE:
- a fact that changes a stored memory updates that memory and is not added beside it
- the specific wins over the general (\"uses TypeScript 5.3\" over \"uses TypeScript\")";

/// The words of a list, in its order.
pub(super) fn list(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// The default pairs of opposites.
pub(super) fn opposites() -> Vec<[String; 2]> {
    OPPOSITES.iter().map(|pair| pair.map(str::to_owned)).collect()
}
