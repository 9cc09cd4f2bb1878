//! Step 0 of the ladder: the typed rules of the policy.

use std::cell::OnceCell;
use std::collections::HashSet;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::ingest::likeness::is_verbatim;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::Why;
use crate::limits::REGEX_BYTES_MAX;
use crate::model::{Decision, Evidence, Kind, Outcome, Partition, Periods, RuleId};
use crate::policy::{Action, Condition, OnKey, Policy, Rule, RulePartition};
use crate::store::PartId;
use crate::text::{Operational, is_word, lowered};

/// Everything that the ladder looks up in a policy, prepared once for each policy that comes into force.
#[derive(Debug)]
pub(crate) struct Rulebook {
    rules: Vec<Compiled>,
    /// The periods of snapshots, or why there are none.
    periods: Result<Periods, String>,
    /// How operational reports are recognised.
    pub(super) operational: Operational,
}

/// A rule that is active.
#[derive(Debug)]
struct Compiled {
    id: String,
    action: Action,
    /// The partition to which the action sends a draft.
    target: Option<Partition>,
    instruction: bool,
    keyword: Words,
    hedge: Words,
    regex: Option<Regex>,
    kinds: Vec<Kind>,
    not_kinds: Vec<Kind>,
    tags: Vec<String>,
    partition: Option<Partition>,
    exact_dup: bool,
    near_dup: Option<f32>,
}

/// Words to look for in a lowercased text.
#[derive(Debug, Default)]
struct Words {
    plain: HashSet<String>,
    /// The words that contain characters other than word characters.
    odd: Vec<String>,
}

/// The result of step 0.
#[derive(Debug)]
pub(super) enum Ruled<'r> {
    /// No rule matched, or the rule leaves the decision to the ladder.
    Ladder,
    /// The draft is not stored.
    Ignore(&'r str),
    /// The draft goes to another partition.
    Route(&'r str, &'r Partition),
    /// The draft is merged with the memory of a key.
    Consolidate(&'r str, &'r str),
    /// The draft is a snapshot of a series, in this partition.
    Snapshot(&'r str, &'r Partition),
}

impl Rulebook {
    /// # Errors
    /// `Policy`, with the rule, for a policy that was not validated.
    pub(crate) fn new(policy: &Policy) -> Result<Self> {
        let active = policy.rules.typed.iter().filter(|rule| {
            let by_itself = matches!(rule.action, Action::Ladder(_));
            !by_itself && (policy.rules.strict || !rule.strict)
        });
        let snapshots = Partition::agent(&policy.snapshot.agent)?;
        Ok(Rulebook {
            rules: active.map(|rule| Compiled::new(rule, &snapshots)).collect::<Result<_>>()?,
            periods: Periods::new(&policy.snapshot.zone, policy.snapshot.period)
                .map_err(|why| why.to_string()),
            operational: Operational::new(&policy.collapse),
        })
    }

    /// The periods of snapshots.
    ///
    /// # Errors
    /// `Policy` for a zone that this machine does not know.
    pub(crate) fn periods(&self) -> Result<&Periods> {
        let refused = |why: &String| Error::Policy { place: "snapshot".to_owned(), why: why.clone() };
        self.periods.as_ref().map_err(refused)
    }
}

impl Compiled {
    fn new(rule: &Rule, snapshots: &Partition) -> Result<Self> {
        let Condition { keyword, regex, kind, not_kind, tag, partition, hedge, exact_dup, near_dup } =
            &rule.condition;
        let kinds = |names: &[String]| names.iter().map(|name| name.parse()).collect::<Result<_>>();
        let target = match &rule.action {
            Action::Route(to) => Some(partition_of(to)?),
            Action::Snapshot => Some(snapshots.clone()),
            _ => None,
        };
        let regex = regex.as_deref().map(|pattern| {
            let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|why| Error::Policy {
                place: "rules.typed".to_owned(),
                why: format!("rule {:?}: {why}", rule.id),
            })
        });
        Ok(Compiled {
            id: rule.id.clone(),
            action: rule.action.clone(),
            target,
            instruction: rule.instruction,
            keyword: Words::new(keyword),
            hedge: Words::new(hedge),
            regex: regex.transpose()?,
            kinds: kinds(kind)?,
            not_kinds: kinds(not_kind)?,
            tags: tag.clone(),
            partition: partition.as_ref().map(partition_of).transpose()?,
            exact_dup: *exact_dup,
            near_dup: near_dup.map(|cosine| cosine as f32),
        })
    }

    /// Whether the conditions on the draft itself hold. Cheap conditions are checked first.
    fn holds(&self, prepared: &Prepared, lower_case: &OnceCell<String>) -> bool {
        let draft = prepared.checked.draft();
        let kind = draft.fields.kind.clone().unwrap_or_default();
        let tags = draft.tags.as_deref().unwrap_or_default();
        let in_lower_case = || lower_case.get_or_init(|| lowered(&draft.text));
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && !self.not_kinds.contains(&kind)
            && (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)))
            && self.partition.as_ref().is_none_or(|partition| partition == prepared.checked.partition())
            && (self.keyword.is_empty() || self.keyword.are_in(in_lower_case()))
            && (self.hedge.is_empty() || self.hedge.are_in(in_lower_case()))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(&draft.text))
    }

    /// What the rule does with a draft; `may_move` says whether it can go to another part.
    fn ruled(&self, may_move: bool) -> Ruled<'_> {
        let to = self.target.as_ref();
        match (&self.action, to) {
            (Action::Ignore, _) => Ruled::Ignore(&self.id),
            // A partition that the caller named is kept (MODEL-6).
            (Action::Route(_), Some(to)) if may_move => Ruled::Route(&self.id, to),
            (Action::Snapshot, Some(to)) => Ruled::Snapshot(&self.id, to),
            (Action::Consolidate(key), _) => Ruled::Consolidate(&self.id, key),
            _ => Ruled::Ladder,
        }
    }
}

impl Words {
    fn new(words: &[String]) -> Self {
        let (plain, odd) = words.iter().cloned().partition::<Vec<_>, _>(|word| word.chars().all(is_word));
        Words { plain: plain.into_iter().collect(), odd }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.odd.is_empty()
    }

    /// Whether one of the words stands alone in a lowercased text.
    fn are_in(&self, lowered: &str) -> bool {
        let plain =
            !self.plain.is_empty() && lowered.split(|c| !is_word(c)).any(|word| self.plain.contains(word));
        plain || self.odd.iter().any(|word| stands_alone(lowered, word))
    }
}

/// The outcome of a draft in the partition to which a rule sent it.
fn routed(outcome: Outcome) -> Outcome {
    let (partition, inner) = (outcome.partition.clone(), Box::new(outcome.decision));
    Outcome { decision: Decision::Routed { partition, inner }, ..outcome }
}

/// The words of a text as consolidation compares them: in lower case, without punctuation at their edges.
fn word_set(text: &str) -> HashSet<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c| !is_word(c)).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether `word` occurs in `text` without a word character directly beside it.
fn stands_alone(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, found)| {
        let (before, rest) = text.split_at(at);
        let after = rest.strip_prefix(found).unwrap_or_default();
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

fn partition_of(partition: &RulePartition) -> Result<Partition> {
    match partition {
        RulePartition::Shared => Ok(Partition::Shared),
        RulePartition::Agent(name) => Partition::agent(name),
    }
}

impl<'d> NamespaceWriter<'d, '_, '_> {
    /// Step 0: the action of the first rule whose condition holds. No rule is asked about a verbatim draft.
    pub(super) fn rule_step(&self, prepared: &Prepared) -> Result<Ruled<'d>> {
        if is_verbatim(prepared.checked.draft()) {
            return Ok(Ruled::Ladder);
        }
        let book = self.rules;
        let lower_case = OnceCell::new();
        let instructed = *prepared.checked.partition() == Partition::Shared && !self.skip_instructions;
        for rule in book.rules.iter().filter(|rule| instructed || !rule.instruction) {
            // A key of the caller's own names another record than the key of the rule.
            let other_key = |key: &String| prepared.checked.key().is_some_and(|own| own != key);
            if matches!(&rule.action, Action::Consolidate(key) if other_key(key)) {
                continue;
            }
            if rule.holds(prepared, &lower_case) && self.repeats(rule, prepared)? {
                return Ok(rule.ruled(self.may_move(prepared)));
            }
        }
        Ok(Ruled::Ladder)
    }

    /// Whether a rule can send a draft to another part: neither the draft nor its caller has named one.
    fn may_move(&self, prepared: &Prepared) -> bool {
        !self.keep_part && *prepared.checked.partition() == Partition::Shared
    }

    /// Whether the conditions on stored memories hold, in the partition to which the caller wrote.
    fn repeats(&self, rule: &Compiled, prepared: &Prepared) -> Result<bool> {
        if !rule.exact_dup && rule.near_dup.is_none() {
            return Ok(true);
        }
        let part = match prepared.checked.partition().agent_name() {
            None => Some(PartId(0)),
            Some(agent) => self.known_part(agent)?,
        };
        let Some(part) = part.filter(|_| !self.no_dedup) else { return Ok(false) };
        // The memory that holds the draft's key already is the draft itself, written again.
        let own = prepared.checked.key().map(|key| self.holder_to_change(key)).transpose()?.flatten();
        let own = own.map(|(id, _)| id);
        if rule.exact_dup
            && self.equals(prepared, part)?.absorber.is_none_or(|(rank, _)| Some(rank.id) == own)
        {
            return Ok(false);
        }
        let Some(least) = rule.near_dup else { return Ok(true) };
        Ok(self.nearest_cosine(prepared, part, own)?.is_some_and(|cosine| cosine >= least))
    }

    /// Carries out the action of a rule.
    pub(super) fn add_ruled(&mut self, prepared: &Prepared, ruled: Ruled<'_>) -> Result<Outcome> {
        let (rule, mut outcome) = match ruled {
            Ruled::Ladder => return self.ladder(prepared),
            Ruled::Ignore(rule) => (rule, self.ignore(prepared, rule)?),
            Ruled::Route(rule, to) => (rule, routed(self.ladder(&prepared.moved(to))?)),
            Ruled::Snapshot(rule, to) if self.may_move(prepared) => {
                (rule, routed(self.snapshot_step(&prepared.moved(to))?))
            }
            Ruled::Snapshot(rule, _) => (rule, self.snapshot_step(prepared)?),
            Ruled::Consolidate(rule, key) => (rule, self.consolidate(prepared, key)?),
        };
        outcome.policy_rule = Some(rule.to_owned());
        Ok(outcome)
    }

    /// Writes a snapshot by its own method. Of the rules only those that ignore are asked. A verbatim snapshot replaces
    /// none of its period.
    pub(crate) fn push_snapshot(&mut self, prepared: &Prepared) -> Result<Outcome> {
        if is_verbatim(prepared.checked.draft()) {
            return self.add(prepared);
        }
        self.check_draft(prepared)?;
        let outcome = match self.rule_step(prepared)? {
            ruled @ Ruled::Ignore(_) => self.add_ruled(prepared, ruled)?,
            _ => self.snapshot_step(prepared)?,
        };
        self.settled(outcome)
    }

    /// Merges a draft with the memory of a rule's key. The more specific text wins over the more general one.
    /// If neither text has all words of the other, the fact has changed, and updates its memory as a plain
    /// key does.
    fn consolidate(&mut self, prepared: &Prepared, key: &str) -> Result<Outcome> {
        let keyed = prepared.keyed(key);
        let part = self.open_partition(prepared.checked.partition())?;
        let Some((id, number)) = self.held_in(key, part)? else { return self.ladder(&keyed) };
        let (_, content) = self.ledger.load(self.ns(), id)?;
        let old = self.holder(id, number)?.text.unwrap_or(content.text);
        let draft = prepared.checked.draft();
        if old == draft.text {
            return self.ladder(&keyed);
        }
        let named = self.named_before(draft)?;
        let (before, after) = (word_set(&old), word_set(&draft.text));
        let (wider, narrower) = (before.is_subset(&after), after.is_subset(&before));
        let (now, signature) = match (wider, narrower) {
            (false, true) if draft.payload.is_none() => {
                let change = self.use_of(id, 1)?;
                self.apply(RuleId::CONSOLIDATE, change)?;
                (id, "fewer words")
            }
            (true, false) => (self.write_through_key(&keyed, id, number, OnKey::Revise)?.id, "more words"),
            _ => {
                let on_key = self.policy.write.on_key;
                (self.write_through_key(&keyed, id, number, on_key)?.id, "other words")
            }
        };
        let evidence =
            Evidence { signature: Some(signature.to_owned()), members: vec![id], ..Evidence::default() };
        let (decision, rule) = (Decision::Consolidated, RuleId::CONSOLIDATE);
        let outcome = self.outcome(&keyed, now, decision.clone(), rule, evidence, Vec::new());
        match signature {
            "fewer words" => Ok(outcome),
            _ => Ok(Outcome { decision, rule, ..self.supersede_named(draft, (&named, false), outcome)? }),
        }
    }

    /// A rule says that a draft is not to be stored. Only a journal row under a new id and a count are written.
    pub(super) fn ignore(&mut self, prepared: &Prepared, rule: &str) -> Result<Outcome> {
        let id = self.next_id()?;
        let evidence = Evidence { signature: Some(format!("rule {rule}")), ..Evidence::default() };
        let why = Why { rule: RuleId::RULE, evidence: evidence.clone() };
        self.ledger.ignore(&self.context, id, why)?;
        Ok(self.outcome(prepared, id, Decision::Ignored, RuleId::RULE, evidence, Vec::new()))
    }
}
