//! What a memory is worth.

use std::sync::Arc;

use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::hygiene::{Judge, Scores, scores};
use crate::model::Name;
use crate::recall::Got;
use crate::store::{NsId, Rows};

impl<Of> Namespace<Of> {
    /// The scores of a memory now, by its id or key: what it is worth by its use, by the goals of its agent, and by how much it
    /// differs from all others. They are worked out for this call, and nothing is written. None for a memory that no live
    /// read sees.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::GoalDraft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?.id;
    /// team.set_goal(GoalDraft::new("Buy what Ann likes").vector([1.0, 0.0]))?;
    /// let scores = team.scores(tea)?.unwrap();
    /// assert!((scores.goal_relevance_score - 0.6).abs() < 1e-6);
    /// assert_eq!((scores.memory_utility_score, scores.semantic_uniqueness_score), (0.0, 1.0));
    /// assert!(team.scores("no such key").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `Closed`.
    pub fn scores(&self, name: impl Into<Name>) -> Result<Option<Scores>> {
        let name = name.into();
        let Got::Memory(memory) = self.look_up(name, false)? else { return Ok(None) };
        let inner = &self.db.inner;
        let policy = &inner.in_force().policy;
        self.read(|published, now| {
            let row = published.snapshot().namespace(self.name.as_str())?;
            let missing = || Error::NotFound { what: "namespace", name: self.name.to_string() };
            let ns = NsId(row.ok_or_else(missing)?.number);
            let asking = inner.asking(published, &self.name, now)?;
            let judge = asking.as_ref().map(|asking| asking as &dyn Judge);
            scores(published, ns, memory.id, policy, now, Arc::clone(&inner.accesses), judge)
        })
    }
}
