//! What was decided about a write, and why.

use serde::{Serialize, Serializer};

use crate::model::field::widened;
use crate::model::id::{AggregateId, EventId, MemoryId};
use crate::model::name::Partition;
use crate::model::pass::{Pass, passes};
use crate::model::time::Time;

/// The rule that decided. The name of a rule stays the same from one release to the next. The comment of each constant
/// says what its rule stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct RuleId(pub &'static str);

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $id:expr;)+) => {
        impl RuleId {
            /// Every rule that a journal row may name.
            pub const ALL: &[RuleId] = &[$(RuleId::$name,)+];

            $($(#[$doc])* pub const $name: RuleId = RuleId($id);)+

            /// Its code on disk.
            pub(crate) fn code(self) -> u8 {
                match self { $(RuleId::$name => $code,)+ _ => u8::MAX }
            }

            /// The rule with a code from disk.
            pub(crate) fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(RuleId::$name),)+ _ => None }
            }
        }
    };
}

/// The rules of writes and deletions stand here, those of passes in the rows of these.
macro_rules! with_passes {
    ($(
        #[doc = $help:literal] $pass:ident = $code:literal, $text:literal,
        rule $rule:ident $id:literal, $(stage $stage:ident,)? in $file:ident;
    )+) => {
        rules! {
            /// No other rule decided: the write was stored.
            STORE = 0, "DEDUP-55.7";
            /// The caller's key decided.
            KEY = 1, "DEDUP-56";
            /// Byte-equal content decided.
            CONTENT = 2, "DEDUP-55.2";
            /// Content that differs only in white space and case decided, by policy.
            NORMALIZED = 3, "DEDUP-4";
            /// A change through one of several keys moved the write to a row of its own: copy on write.
            DETACH = 4, "MODEL-8";
            /// New content came under a key or id.
            REVISE = 5, "MODEL-21.revise";
            /// Fields were changed in place.
            UPDATE = 6, "MODEL-21.update";
            /// A caller superseded the memory.
            SUPERSEDE = 7, "LIFE-6";
            /// What was to take a place at an instant ahead takes the place of what was said there since.
            ANNOUNCED = 76, "LIFE-6.announced";
            /// A caller made the memory live again.
            RESTORE = 8, "LIFE-7";
            /// Forgotten by id.
            FORGET_ID = 9, "MODEL-30.id";
            /// Forgotten by key.
            FORGET_KEY = 10, "MODEL-30.key";
            /// Forgotten by tag.
            FORGET_TAG = 11, "LIFE-26";
            /// Forgotten by filter.
            FORGET_FILTER = 12, "MODEL-30.filter";
            /// A run was undone.
            UNDO = 13, "MODEL-33";
            /// A caller reinforced the memory.
            REINFORCE = 14, "LIFE-18";
            /// The namespace was dropped.
            DROP_NAMESPACE = 15, "MODEL-28";
            /// A link was added or removed.
            LINK = 16, "MODEL-22";
            /// A row of an export was put back unchanged.
            IMPORT_ROW = 17, "MODEL-48";
            /// An index was dropped, and its codes were written again.
            REINDEX = 20, "reindex";
            /// A typed rule of the policy decided; the outcome names it.
            RULE = 21, "DEDUP-59";
            /// An equal operational signature decided, by policy.
            OPERATIONAL = 22, "DEDUP-55.3";
            /// An equal token key decided, by policy.
            TOKEN_KEY = 23, "DEDUP-55.4";
            /// The exact key of a message decided.
            MESSAGE_EXACT = 24, "DEDUP-33";
            /// The family of a message decided.
            MESSAGE_NEAR = 25, "DEDUP-36";
            /// A vector at or above the threshold decided, by policy.
            VECTOR = 26, "DEDUP-55.6";
            /// A rule of the policy consolidated the write with a stored memory.
            CONSOLIDATE = 27, "DEDUP-63";
            /// A period of a series has at most one snapshot.
            SNAPSHOT = 28, "DEDUP-67";
            /// A caller gave a record another key.
            RENAME = 37, "MODEL-64.rename";
            /// A memory came from another namespace.
            RELOCATE = 55, "LIFE-27";
            /// A summary took the place of its sources.
            SUMMARIZE = 50, "GC-13";
            /// A summary was refused.
            REFUSE_SUMMARY = 51, "GC-17";
            /// A source of a summary was forgotten.
            FORGOTTEN_SOURCE = 56, "GC-42";
            /// A caller set or dropped a goal.
            GOAL = 74, "LIFE-62";
            /// A hook of the host was asked for scores.
            SCORER = 73, "LIFE-70";
            $(
                #[doc = concat!("What the pass `", $text, "` did.")]
                $rule = $code, $id;
            )+
        }

        impl RuleId {
            /// The rule that the journal rows of a pass name.
            pub(crate) const fn of_pass(pass: Pass) -> RuleId {
                match pass { $(Pass::$pass => RuleId::$rule,)+ }
            }
        }
    };
}

passes!(with_passes);

/// The evidence behind a decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The similarity, if one was measured.
    #[serde(serialize_with = "widened_score")]
    pub score: Option<f32>,
    /// What was equal: `content`, `fingerprint`, `key` …
    pub signature: Option<String>,
    /// The memories that took part.
    pub members: Vec<MemoryId>,
    /// The reinforcement that moved.
    pub transferred: Option<u32>,
}

/// A score with its own digits, which those of the nearest number of 64 bits are not.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn widened_score<S: Serializer>(score: &Option<f32>, to: S) -> Result<S::Ok, S::Error> {
    score.map(widened).serialize(to)
}

/// A near memory that did not decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Hint {
    /// The near memory.
    pub id: MemoryId,
    /// Why the memory is near: `equal content`, `equal fingerprint`, `near vector` …
    pub why: &'static str,
    /// The similarity, if one was measured.
    pub score: Option<f32>,
    /// The guard that kept the two apart, if one did.
    pub guard: Option<&'static str>,
}

impl Hint {
    /// A hint without a measured similarity.
    ///
    /// ```
    /// use oubliette::report::Hint;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert_eq!(Hint::new(tea, "equal fingerprint").score, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn new(id: MemoryId, why: &'static str) -> Self {
        Hint { id, why, score: None, guard: None }
    }
}

/// What was decided about a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The write became a memory of its own.
    Stored,
    /// The same write came again; nothing changed.
    Unchanged,
    /// Fields of the memory were changed in place.
    Updated,
    /// A memory with the same content absorbed the write and now stands for it as well.
    Reinforced,
    /// The content was new: a new memory superseded the old one.
    Revised {
        /// The memory that was superseded.
        old: MemoryId,
    },
    /// The message is one more member of a family: an event, and no memory of its own.
    Aggregated {
        /// The family in numbers.
        aggregate: AggregateId,
        /// The message as it came.
        event: EventId,
    },
    /// A rule, or a later snapshot of the same period, made the write unnecessary: nothing is stored.
    Ignored,
    /// A rule sent the write to another partition.
    Routed {
        /// The other partition.
        partition: Partition,
        /// What was decided there.
        inner: Box<Decision>,
    },
    /// A rule merged the write with the memory of a key.
    Consolidated,
}

impl Decision {
    /// The name in JSON.
    ///
    /// ```
    /// use oubliette::Decision;
    /// assert_eq!(Decision::Reinforced.as_str(), "reinforced");
    /// ```
    pub const fn as_str(&self) -> &'static str {
        match self {
            Decision::Stored => "stored",
            Decision::Unchanged => "unchanged",
            Decision::Updated => "updated",
            Decision::Reinforced => "reinforced",
            Decision::Revised { .. } => "revised",
            Decision::Aggregated { .. } => "aggregated",
            Decision::Ignored => "ignored",
            Decision::Routed { .. } => "routed",
            Decision::Consolidated => "consolidated",
        }
    }

    /// The decision where the write ended up: the inner decision of a routed write, otherwise the decision
    /// itself.
    ///
    /// ```
    /// use oubliette::Decision;
    /// use oubliette::memory::Partition;
    /// let inner = Box::new(Decision::Stored);
    /// let routed = Decision::Routed { partition: Partition::agent("crawler")?, inner };
    /// assert_eq!(routed.settled(), &Decision::Stored);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settled(&self) -> &Decision {
        match self {
            Decision::Routed { inner, .. } => inner.settled(),
            other => other,
        }
    }
}

/// A memory that goes on to say what a key said before, for its other writers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptForOthers {
    /// The memory.
    pub id: MemoryId,
    /// The first keys that have said its text.
    pub keys: Vec<String>,
    /// How many writers it has, with and without a key. Of a memory with more than 32 writers, a key that only leads to its text can
    /// count as one.
    pub writers: u64,
}

/// The answer to a supersession by a memory that was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SupersedeReport {
    /// The memory that has taken the places. Where a key names it and others wrote the same text, it can be a memory of that key alone:
    /// what the others say does not end for what is announced for the memories that it replaces.
    pub id: MemoryId,
    /// The memories that go on to say what one of the keys said before, as in [`Outcome::kept_for_others`].
    pub kept_for_others: Vec<KeptForOthers>,
}

/// The answer to a write: decision, rule and evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The memory that now holds the write. If an ignored write has no such memory, this is the id under which the
    /// journal tells of the write, and no memory has it.
    pub id: MemoryId,
    /// The key that was written.
    pub key: Option<String>,
    /// The partition of the memory.
    pub partition: Partition,
    /// What was decided.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: RuleId,
    /// The name of the typed rule of the policy that decided or routed the write, such as `R1`.
    pub policy_rule: Option<String>,
    /// The event, if the write was a message of an author.
    pub event: Option<EventId>,
    /// The evidence behind the decision.
    pub evidence: Evidence,
    /// Near memories that did not decide.
    pub hints: Vec<Hint>,
    /// The names of what the write gave and the memory does not say, because it stands for an earlier write as well: a session, an
    /// author, an instant. A verbatim write is stored apart with all that it gives.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// let thanks = |session: &str| Draft::new("Thanks!").session(session).key(session);
    /// assert!(team.add(thanks("s1"))?.not_taken.is_empty());
    /// assert_eq!(team.add(thanks("s2"))?.not_taken, ["session"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub not_taken: Vec<&'static str>,
    /// The memories that go on to say what the key of the write said before, or said without the end that the write gives, because others
    /// have said it too: a key stands for its own write alone. An update or a supersession by the id of such a memory is one for all its
    /// writers.
    ///
    /// ```
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann likes tea").key("ann:drink"))?;
    /// team.add(Draft::new("Ann likes tea").key("chat:1"))?;
    /// let coffee = team.update("ann:drink", Patch::new().text("Ann likes coffee"))?;
    /// assert_eq!(coffee.kept_for_others[0].keys, ["chat:1"]);
    /// team.update(coffee.kept_for_others[0].id, Patch::new().text("Ann likes coffee"))?;
    /// assert!(team.search("tea")?.hits.iter().all(|hit| hit.text == "Ann likes coffee"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub kept_for_others: Vec<KeptForOthers>,
    /// When the life of the memory ends: as the write said, as the text before, or as its tier says. None: never, or nothing is stored.
    pub expires_at: Option<Time>,
    /// Until when the memory is true; none: without an end.
    pub valid_to: Option<Time>,
    /// Whether the text waits for a vector, because the handle has no embedder of the database, or the embedder failed.
    /// Until the memory has a vector it is found by its words alone. Within a batch, whether the text waits at that moment:
    /// an embedder of the handle gives the vector after the commit.
    pub pending: bool,
    /// The number of the policy that was in force.
    pub policy_number: u64,
}
