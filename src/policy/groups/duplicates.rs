//! When two texts count as the same, and what a write or a pass then does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::group;
use crate::limits::{CLUSTER_MAX, FIELD_BYTES_MAX, LISTING_ROWS_MAX, NEIGHBOURS_MAX, SAMPLES_MAX};
use crate::model::{AuthorKind, Span};
use crate::policy::bounds::{Checked, any, cosine, count, kind, lasting, pair, set, share, word};
use crate::policy::{Rule, bounds, rules, words};

group! {
    /// Collapse of operational snapshots.
    Collapse {
        /// Kinds of memories that the pass scans.
        kinds: Vec<String> = words::list("profile"), set(kind);
        /// Whether the fuzzy phase runs.
        fuzzy: bool = false, any;
        /// Number of visible memories of these kinds above which the pass runs by itself; 0 is off.
        threshold: u64 = 0, count(0, bounds::COUNT_MAX);
        /// Least Jaccard similarity of the fuzzy phase, 0 to 1.
        jaccard: f64 = 0.78, share;
        /// Least number of shared tokens of the fuzzy phase.
        min_shared: u32 = 4, count(1, 10_000);
        /// Least number of tokens that make a token key.
        min_token_key: u32 = 3, count(1, 10_000);
        /// Memories on a page of the listing, at least 1; a value below 50 counts as 50.
        batch: u32 = 500, count(1, LISTING_ROWS_MAX.into());
        /// Number of sample groups in the report.
        max_samples: u32 = 20, count(0, SAMPLES_MAX.into());
        /// Which member of a group stays: `significance_first` or `reinforcement_first`.
        canonical: Canonical = Canonical::SignificanceFirst, any;
        /// Whether the remaining memory takes the latest `happened_at` of its group.
        merge_latest_happened_at: bool = false, any;
        /// Words of operational reports, in lower case.
        keywords: Vec<String> = words::list(words::KEYWORDS), set(word);
        /// Words that token keys and the guard of names leave out, in lower case.
        stopwords: Vec<String> = words::list(words::STOPWORDS), set(word);
        /// Units that may follow a number directly, in lower case.
        units: Vec<String> = words::list(words::UNITS), set(word);
    }
}

/// Which member of a duplicate group stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Canonical {
    /// Significance, reinforcement, oldest.
    SignificanceFirst,
    /// Reinforcement, significance, newest.
    ReinforcementFirst,
}

group! {
    /// Normal form and exact repetition of messages.
    Msg {
        /// Volatile patterns in order: `datetime`, `clock`, `long_digits`, `hex`, or a custom one.
        patterns: Vec<MessagePattern> = MessagePattern::BUILT_IN.to_vec(), message_patterns;
        /// Kinds of authors from whose texts volatile noise is removed: `human`, `bot`.
        volatile_for: Vec<AuthorKind> = vec![AuthorKind::Bot], set(any);
        /// Channels in which counters such as `(#12)` and `run=12` are noise.
        counter_channels: Vec<String> = Vec::new(), set(bounds::text(FIELD_BYTES_MAX));
        /// Query parameters that the URLs of a host keep, for each host; URLs of other hosts keep all parameters that are
        /// not tracking.
        query_allow: BTreeMap<String, Vec<String>> = BTreeMap::new(), bounds::parameters;
        /// Hosts whose URLs lose their fragment; `*` is all.
        drop_fragment_hosts: Vec<String> = Vec::new(), set(bounds::host_or_all);
        /// Scope in which equal messages are matched: `channel` or `namespace`.
        key_scope: KeyScope = KeyScope::Channel, any;
        /// How long after the latest member a repeat by a human still counts as a repeat.
        exact_window: Span = Span::from_hours(1), lasting;
    }
}

/// A volatile pattern of messages: a built-in pattern, or a regular expression with its replacement.
///
/// Every pattern matches only where it stands alone, not directly beside a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MessagePattern {
    /// A date with a clock time becomes `<ts>`.
    Datetime,
    /// A clock time becomes `<time>`.
    Clock,
    /// A run of 15 or more digits becomes `<id>`.
    LongDigits,
    /// A run of 7 or more hex characters with a digit and a letter becomes `<hex>`.
    Hex,
    /// Matches of `regex` become `put`.
    Custom {
        /// A regular expression that does not match the empty text.
        regex: String,
        /// The replacement of a match, taken literally; at most 128 bytes.
        put: String,
    },
}

impl MessagePattern {
    const BUILT_IN: [MessagePattern; 4] =
        [MessagePattern::Datetime, MessagePattern::Clock, MessagePattern::LongDigits, MessagePattern::Hex];
}

#[expect(clippy::ptr_arg, reason = "a bound takes the value as its row holds it")]
fn message_patterns(patterns: &Vec<MessagePattern>) -> Checked {
    for pattern in bounds::bounded(patterns)? {
        if let MessagePattern::Custom { regex, put } = pattern {
            bounds::replaceable(regex)?;
            bounds::tag(put).map_err(|why| format!("put {put:?}: {why}"))?;
        }
    }
    Ok(())
}

/// The scope in which equal messages are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Only in the same channel.
    Channel,
    /// In the whole namespace.
    Namespace,
}

group! {
    /// SimHash families of messages.
    Sim {
        /// Longest time since the latest member of the family.
        window: Span = Span::from_mins(10), lasting;
        /// Largest Hamming distance to the first member of the family, 0 to 7.
        max_hamming: u32 = 6, count(0, 7);
        /// Least Jaccard similarity of the token sets, 0 to 1.
        verify_jaccard: f64 = 0.80, share;
        /// Number of tokens that make the fingerprint, the most frequent ones.
        max_tokens: u32 = 64, count(1, 4_096);
    }
}

group! {
    /// Aggregates of repeated messages.
    Agg {
        /// Length of one time slice, counted from midnight UTC.
        slice: Span = Span::from_days(1), lasting;
        /// Number of example events that an aggregate keeps.
        max_examples: u32 = 10, count(0, 1_000);
        /// Number of authors that an aggregate keeps.
        max_authors: u32 = 50, count(0, 1_000);
        /// Whether the memory of an aggregate is embedded, if there is an embedder.
        embed: bool = true, any;
    }
}

group! {
    /// Deduplication by clusters of vectors.
    Dedup {
        /// Score of a pair: `cosine` or `l2_score`.
        metric: Metric = Metric::Cosine, any;
        /// Least score of a pair, up to 1; 0 stands for the default of the metric, a negative number turns the pass
        /// off.
        similarity: f64 = 0.984_429, cosine;
        /// Least members of a cluster; 0 and 1 count as 2.
        min_cluster_size: u32 = 2, count(0, CLUSTER_MAX.into());
        /// Number of neighbours that are searched for each memory; 0 counts as 20.
        neighbours: u32 = 20, count(0, NEIGHBOURS_MAX.into());
        /// How a cluster holds together: `representative` or `chain`.
        linkage: Linkage = Linkage::Representative, any;
        /// Kinds that are never deduplicated by vector.
        exempt_kinds: Vec<String> = words::list("snapshot system developer admin"), set(kind);
    }
}

/// How two vectors are scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The cosine; its default threshold is 0.984429.
    Cosine,
    /// 1 / (1 + L2 distance); its default threshold is 0.85, the same pair for unit vectors.
    L2Score,
}

/// How the members of a cluster hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Linkage {
    /// Each member is near the representative.
    Representative,
    /// Each member is near some other member.
    Chain,
}

group! {
    /// Guards that keep texts of different meaning apart.
    Guards {
        /// Words that deny, in lower case; a leading `*` stands for any beginning of a word.
        negation: Vec<String> = words::list(words::NEGATION), set(word);
        /// Pairs of words that deny each other, in lower case.
        opposites: Vec<[String; 2]> = words::opposites(), set(pair);
        /// Least Jaccard similarity in scripts without case, 0 to 1.
        caseless_jaccard: f64 = 0.9, share;
    }
}

group! {
    /// What the write ladder does with a match.
    Write {
        /// What an equal normal form with other bytes does: `hint` or `absorb`.
        normalized_match: NormalizedMatch = NormalizedMatch::Hint, any;
        /// Whether an equal token key absorbs; for operational texts of the kinds of `collapse` alone.
        token_match: bool = false, any;
        /// Whether an equal operational signature reinforces; for the same texts alone.
        op_match: bool = false, any;
        /// What a vector above the threshold of `dedup` does: `hint`, `reinforce` or `off` (step 6).
        vector_match: VectorMatch = VectorMatch::Hint, any;
        /// What happens when new content comes under a key in use: `error`, `reinforce` or `revise`. `reinforce` counts the write and keeps the
        /// old content.
        on_key: OnKey = OnKey::Revise, any;
        /// Least cosine of a hint, -1 to 1.
        hint_cosine: f64 = 0.82, cosine;
        /// Number of the latest memories of the kind that the match by operational signature looks at.
        op_window: u32 = 250, count(1, 100_000);
    }
}

/// What an equal normal form with other bytes does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormalizedMatch {
    /// The draft is stored, with a hint.
    Hint,
    /// The draft is absorbed if only white space and the case of words that are no names differ.
    Absorb,
}

/// What a vector above the threshold does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorMatch {
    /// The draft is stored, with a hint.
    Hint,
    /// The draft is absorbed.
    Reinforce,
    /// Near vectors are not looked for.
    Off,
}

/// What other content under a held key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnKey {
    /// The write is refused.
    Error,
    /// The stored content stays and is reinforced.
    Reinforce,
    /// The new content supersedes the stored one.
    Revise,
}

group! {
    /// What is stored, ignored, routed or consolidated.
    Rules {
        /// Instructions for the language model of the host; may be empty.
        text: String = words::INSTRUCTIONS.to_owned(), any;
        /// The typed rules in order; the first match decides.
        typed: Vec<Rule> = rules::defaults(), rules::check;
        /// Whether the strict rules, R4 and R5 by default, are active.
        strict: bool = false, any;
    }
}

group! {
    /// Series of snapshots, at most one a period.
    Snapshot {
        /// Length of one period.
        period: Span = Span::from_days(1), lasting;
        /// Time zone in which periods begin, unless the series has its own.
        zone: String = "UTC".to_owned(), bounds::zone;
        /// Agent whose partition holds the snapshots.
        agent: String = "profile-mgr".to_owned(), bounds::name;
        /// Number of periods of a series that are kept; 0 keeps all.
        keep_last: u32 = 0, count(0, 1_000_000);
    }
}
