//! The typed rules that look at a draft before the write ladder does.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::bounds::Checked;
use super::{bounds, words};

/// One typed rule. Rules are asked in order, and the first whose condition holds decides.
///
/// ```
/// use oubliette::policy::{Action, Policy, Syntax};
///
/// let policy = Policy::parse(
///     r#"rules.typed = [{ id = "noise", match = { tag = ["debug"] }, action = "ignore" }]"#,
///     Syntax::Toml,
/// )?;
/// assert_eq!(policy.rules.typed[0].action, Action::Ignore);
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the rule in decisions and in the journal; unique in the document, at most 128 bytes.
    pub id: String,
    /// Which drafts the rule is for; absent means all.
    #[serde(rename = "match", default, skip_serializing_if = "Condition::is_empty")]
    pub condition: Condition,
    /// What happens to these drafts.
    pub action: Action,
    /// Active only while `rules.strict` is true.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict: bool,
    /// Belongs to the instructions: only for writes without an agent id, and left out by `skip_instructions`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub instruction: bool,
}

/// The condition of a rule on a draft. All given parts must hold; one item of a list is enough.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// Words, one of which the lowercased text has as a whole word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keyword: Vec<String>,
    /// A regular expression that finds a match in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
    /// Kinds that the draft must not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_kind: Vec<String>,
    /// Tags, one of which the draft has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tag: Vec<String>,
    /// The partition that the caller wrote to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<RulePartition>,
    /// Words of speculation, one of which the lowercased text has as a whole word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hedge: Vec<String>,
    /// The same content is stored already (step 2).
    #[serde(skip_serializing_if = "is_false")]
    pub exact_dup: bool,
    /// A stored memory has at least this cosine to the draft, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_dup: Option<f64>,
}

/// What a rule does with a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// No further rule is asked; the ladder decides.
    Store,
    /// The draft is not stored, and the caller is told so.
    Ignore,
    /// The draft goes to this partition, unless the caller named an agent; the ladder goes on there.
    Route(RulePartition),
    /// The draft updates the memory with this key.
    Consolidate(String),
    /// The draft is handled as `push_snapshot`, in the partition of `snapshot.agent` unless the caller named one.
    Snapshot,
    /// The rule only names the step of the write ladder (1 to 7) that decides by itself; it is not asked.
    Ladder(u8),
}

/// A partition as a rule names it: `"shared"` or `{ agent = "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RulePartition {
    /// The part of the namespace without an agent.
    Shared,
    /// The part of one agent, 1 to 256 bytes.
    Agent(String),
}

impl Condition {
    fn is_empty(&self) -> bool {
        *self == Condition::default()
    }

    fn check(&self) -> Checked {
        bounds::set(bounds::word)(&self.keyword).map_err(within("keyword"))?;
        bounds::set(bounds::kind)(&self.kind).map_err(within("kind"))?;
        bounds::set(bounds::kind)(&self.not_kind).map_err(within("not_kind"))?;
        bounds::set(bounds::tag)(&self.tag).map_err(within("tag"))?;
        bounds::set(bounds::word)(&self.hedge).map_err(within("hedge"))?;
        if let Some(pattern) = &self.regex {
            bounds::regex(pattern)?;
        }
        if let Some(cosine) = &self.near_dup {
            bounds::share(cosine).map_err(within("near_dup"))?;
        }
        self.partition.as_ref().map_or(Ok(()), RulePartition::check)
    }
}

impl RulePartition {
    fn check(&self) -> Checked {
        match self {
            RulePartition::Shared => Ok(()),
            RulePartition::Agent(id) => bounds::name(id).map_err(within("agent")),
        }
    }
}

impl Action {
    fn check(&self) -> Checked {
        match self {
            Action::Store | Action::Ignore | Action::Snapshot => Ok(()),
            Action::Route(partition) => partition.check(),
            Action::Consolidate(key) => bounds::key(key).map_err(within("consolidate")),
            Action::Ladder(step) => bounds::count(1, 7)(step).map_err(within("ladder")),
        }
    }
}

fn within(field: &'static str) -> impl Fn(String) -> String {
    move |why| format!("{field}: {why}")
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Every rule is in range and every id stands once.
#[expect(clippy::ptr_arg, reason = "a bound takes the value as its row holds it")]
pub(super) fn check(rules: &Vec<Rule>) -> Checked {
    let mut ids = BTreeSet::new();
    for rule in bounds::bounded(rules)? {
        let told = |why: String| format!("rule {:?}: {why}", rule.id);
        bounds::tag(&rule.id).map_err(within("id")).map_err(told)?;
        rule.condition.check().and_then(|()| rule.action.check()).map_err(told)?;
        if matches!(rule.action, Action::Ladder(_)) && !rule.condition.is_empty() {
            return Err(told("a step of the ladder has its own condition; leave out `match`".to_owned()));
        }
        if !ids.insert(&rule.id) {
            return Err(told("the id stands in the list twice".to_owned()));
        }
    }
    Ok(())
}

/// The rules of a policy that names none.
pub(super) fn defaults() -> Vec<Rule> {
    let kind = |name: &str| Condition { kind: vec![name.to_owned()], ..Condition::default() };
    let tag = |name: &str| Condition { tag: vec![name.to_owned()], ..Condition::default() };
    let hedging = Condition {
        hedge: words::list(words::HEDGES),
        not_kind: words::list("message assistant_message tool_result"),
        ..Condition::default()
    };
    let agent = |id: &str| Action::Route(RulePartition::Agent(id.to_owned()));
    let rule = |id: &str, condition, action| Rule {
        id: id.to_owned(),
        condition,
        action,
        strict: false,
        instruction: false,
    };
    vec![
        rule("R1", kind("search_history"), agent("perplexity")),
        rule("R2", kind("snapshot"), Action::Snapshot),
        Rule { instruction: true, ..rule("R3", tag("profile-fact"), agent("profile-mgr")) },
        Rule { instruction: true, strict: true, ..rule("R4", tag("debug-transient"), Action::Ignore) },
        Rule { instruction: true, strict: true, ..rule("R5", hedging, Action::Ignore) },
        rule("R6", Condition::default(), Action::Ladder(2)),
        rule("R7", Condition::default(), Action::Ladder(1)),
    ]
}
