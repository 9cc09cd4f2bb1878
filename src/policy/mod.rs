//! Which constants govern this database: the versioned policy document.
//!
//! Invariants. A [`Policy`] that was loaded has every key of the document and each value within its bound: unknown
//! keys, bad ranges and invalid values are errors at load. A key, its type, its default and its bound stand in one
//! row of one table (`groups`), and nowhere else. Two documents that say the same have the same [`PolicyHash`],
//! whatever their syntax and the order of their keys.
//!
//! This room must never know where a document is stored, which namespace it governs, what time it is, or what any of
//! its values does: the rooms that use a value give it its meaning. It reads no file.
//!
//! Every key with its default and meaning is listed in `docs/policy.md`.

mod bounds;
mod document;
mod groups;
mod presets;
mod rules;
mod words;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

pub use document::{POLICY_FORMAT, Syntax};
pub use groups::*;
pub use presets::Preset;
pub use rules::{Action, Condition, Rule, RulePartition};

pub use crate::model::Stage;

use crate::error::Result;
use groups::group;

group! {
    /// All constants that decide what is stored, found and forgotten.
    ///
    /// A document names only what differs from the defaults, and may name nothing.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    ///
    /// let policy = Policy::parse("ttl.working = \"12h\"\n[rules]\nstrict = true", Syntax::Toml)?;
    /// assert_eq!(policy.ttl.working, "12h".parse()?);
    /// assert_eq!(policy.ttl.episodic, "30d".parse()?);
    /// assert!(policy.rules.strict);
    ///
    /// let error = Policy::parse("ttl.working = 12", Syntax::Toml).unwrap_err();
    /// assert!(error.to_string().starts_with("policy ttl.working: 12 has no unit"));
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    Policy {
        @group /// Time to live of the short-term tiers.
        ttl: Ttl;
        @group /// Removal of memories whose life is over.
        purge: Purge;
        @group /// Taking back what maintenance removed.
        undo: Undo;
        @group /// What remains of a removed memory.
        tombstone: Tombstone;
        @group /// The journal.
        journal: Journal;
        @group /// Messages as they came.
        events: Events;
        @group /// How much automatic actors may destroy.
        budget: Budget;
        @group /// Size of one plan.
        plan: Plan;
        @group /// Plans of maintenance, and summaries in place of old memories.
        gc: Gc;
        @group /// What a report on summaries and repeated messages tells.
        report: Report;
        @group /// Tools for language models.
        tools: Tools;
        @group /// The file.
        storage: Storage;
        @group /// The vector index.
        index: Index;
        @group /// The full-text index.
        text: Text;
        @group /// How a search ranks.
        recall: Recall;
        @group /// Statistics.
        stats: Stats;
        @group /// Collapse of operational snapshots.
        collapse: Collapse;
        @group /// Normal form and exact repetition of messages.
        msg: Msg;
        @group /// SimHash families of messages.
        sim: Sim;
        @group /// Aggregates of repeated messages.
        agg: Agg;
        @group /// Deduplication by clusters of vectors.
        dedup: Dedup;
        @group /// Guards that keep texts of different meaning apart.
        guards: Guards;
        @group /// What the write ladder does with a match.
        write: Write;
        @group /// What is stored, ignored, routed or consolidated.
        rules: Rules;
        @group /// Series of snapshots.
        snapshot: Snapshot;
        @group /// Recency in the RetentionScore.
        retention: Retention;
        @group /// Weight of each tier in salience.
        salience: Salience;
        @group /// Confidence of durable rows.
        confidence: Confidence;
        @group /// The memory utility score.
        mus: Mus;
        @group /// What goals say of a memory, beside its utility.
        goal: Goal;
        @group /// How a memory differs from all others.
        sus: Sus;
        @group /// Pruning of consolidated memories by age, use and goals.
        prune: Prune;
        @group /// Clusters of memories with near vectors.
        cluster: Cluster;
        @group /// Protection that use earns.
        protect: Protect;
        @group /// Accesses that wait for a commit, and inclusions in contexts.
        access: Access;
        @group /// Demotion of durable memories that nobody has used.
        demote: Demote;
        @group /// Promotion of short-term memories in use.
        promote: Promote;
        @group /// The passes of a sweep.
        sweeper: Sweeper;
    }
}

impl Policy {
    /// Reads a document: the defaults, and over them what `text` names.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    ///
    /// let policy = Policy::parse("undo.horizon = \"14d\"", Syntax::Toml)?;
    /// assert_ne!(policy, Policy::default());
    /// let why = Policy::parse("undo.horizont = \"7d\"", Syntax::Toml).unwrap_err();
    /// assert!(why.to_string().contains("undo.horizont"));
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Policy`](crate::Error::Policy) with the key, or with the line where the text is no TOML or JSON: an
    /// unknown key, a key that stands twice, a value of another type or out of its range, a span without a unit, an
    /// invalid regular expression, a text of more than 1 MiB, a list of more than 10,000 items, a `format` that
    /// this build does not know.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Policy> {
        Policy::default().overlaid(text, syntax)
    }

    /// This policy with the overrides of a call: a partial document, whose keys replace the values
    /// here. A list or table is replaced as a whole, never merged.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    ///
    /// let base = Policy::parse("sim.max_hamming = 3", Syntax::Toml)?;
    /// let here = base.overlaid(r#"{"agg": {"max_authors": 2}}"#, Syntax::Json)?;
    /// assert_eq!((here.sim.max_hamming, here.agg.max_authors), (3, 2));
    /// assert_ne!(here.hash(), base.hash());
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Policy::parse`].
    pub fn overlaid(&self, text: &str, syntax: Syntax) -> Result<Policy> {
        use groups::Group;
        let mut policy = self.clone();
        policy.load("", document::parse(text, syntax)?)?;
        policy.validate()?;
        Ok(policy)
    }

    /// Whether every value is within its bound, as it is after [`Policy::parse`]; for a policy whose fields were set
    /// by hand.
    ///
    /// ```
    /// use oubliette::policy::Policy;
    ///
    /// let mut policy = Policy::default();
    /// assert!(policy.validate().is_ok());
    /// policy.index.tail_share = 2.0;
    /// assert!(policy.validate().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Policy`](crate::Error::Policy) with the first key that is not.
    pub fn validate(&self) -> Result<()> {
        use groups::Group;
        self.check("")
    }

    /// The whole document as TOML, every key with its value; reading it gives an equal policy.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    ///
    /// let text = Policy::default().to_toml()?;
    /// assert_eq!(Policy::parse(&text, Syntax::Toml)?, Policy::default());
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Policy::validate`]: what could not be read again is not written.
    pub fn to_toml(&self) -> Result<String> {
        self.validate()?;
        Ok(document::write(&self.entries()))
    }

    /// Every key, written with dots, with its value, in the order of the document.
    ///
    /// ```
    /// use oubliette::policy::Policy;
    ///
    /// let entries = Policy::default().entries();
    /// assert!(entries.iter().any(|(key, value)| key == "sim.max_hamming" && value.is_number()));
    /// ```
    pub fn entries(&self) -> Vec<(String, Value)> {
        use groups::Group;
        let mut entries = Vec::new();
        self.list("", &mut entries);
        entries
    }

    /// The hash of this document with all its values: the first 8 bytes of SHA-256 over its JSON without white space,
    /// keys in the order of declaration.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    ///
    /// let other = Policy::parse("sim.max_hamming = 2", Syntax::Toml)?;
    /// assert_ne!(other.hash(), Policy::default().hash());
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    pub fn hash(&self) -> PolicyHash {
        let digest: [u8; 32] = Sha256::digest(groups::value(self).to_string()).into();
        let mut first = [0; 8];
        first.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        PolicyHash(first)
    }
}

/// First 8 bytes of SHA-256 over an effective policy; see [`Policy::hash`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyHash(pub [u8; 8]);

impl fmt::Display for PolicyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Which policy a journal row or a plan was made under: the number of the stored document and the hash of
/// the effective one, overrides included. A plan made under another hash is not executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyVersion {
    /// How many times a document was stored; 0 is the built-in default.
    pub number: u64,
    /// Hash of the effective document.
    pub hash: PolicyHash,
}

impl fmt::Display for PolicyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.hash)
    }
}
