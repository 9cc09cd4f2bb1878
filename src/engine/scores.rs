//! What a memory is worth.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::namespace::Namespace;
use crate::engine::scorer::{Asking, AttachedScorer, Fault};
use crate::error::{Error, Result};
use crate::hygiene::{Judge, Scorer, Scores, scores};
use crate::index::Published;
use crate::ledger::{Context, Why};
use crate::model::{Actor, Evidence, MemoryId, Name, NamespaceName, Op, RuleId, Span, Time};
use crate::recall::{Got, Reader};
use crate::store::{NsId, Rows};

/// Longest deadline of one answer of a scorer.
const DEADLINE_MAX: Span = Span::from_hours(1);

impl Inner {
    /// The scorer of the handle, for a plan on this state; none without one.
    pub(super) fn asking<'p>(
        &'p self,
        published: &'p Published,
        namespace: &'p NamespaceName,
        now: Time,
    ) -> Result<Option<Asking<'p>>> {
        let Some(attached) = self.scorer.read().clone() else { return Ok(None) };
        let reader = Reader::open(published, namespace, &self.secret, now)?;
        Ok(Some(Asking::new(attached, reader)))
    }

    /// Writes to the journal about which memories an answer of the scorer did not count, and why.
    pub(super) fn journal_faults(&self, ns: NsId, asking: &Asking<'_>) -> Result<()> {
        let faults = asking.faults();
        if faults.is_empty() {
            return Ok(());
        }
        self.run_alone(|session| {
            if session.is_dropping(ns)? {
                return Ok(());
            }
            let context = Context { actor: Actor::Sweeper, ..session.context(ns, None) };
            for Fault { asked, why, named, unnamed } in &faults {
                let mut note = |id: Option<MemoryId>, told: String| {
                    let evidence = Evidence { signature: Some(told), ..Evidence::default() };
                    let (subject, rule) = (id.map(|id| (id, None)), RuleId::SCORER);
                    session.ledger.journal(
                        &context,
                        Op::Unscored,
                        subject,
                        Vec::new(),
                        Why { rule, evidence },
                    )
                };
                for id in named {
                    note(Some(*id), format!("{asked}: {why}"))?;
                }
                if *unnamed > 0 {
                    note(None, format!("{asked}: {why}, {unnamed} more"))?;
                }
            }
            Ok(())
        })
    }
}

impl Database {
    /// Lets a hook score memories in place of the built-in formulas, for this handle and its clones, from now on. An answer that
    /// takes longer than `deadline`, 1 ms to 1 h, does not count, and a hook that was late once is asked no more in that
    /// pass.
    ///
    /// ```
    /// use oubliette::maintain::Scorer;
    /// use oubliette::memory::Goal;
    /// use oubliette::{Memory, Result};
    /// struct Half;
    /// impl Scorer for Half {
    ///     fn importance(&self, _: &Memory) -> Result<f64> {
    ///         Ok(0.5)
    ///     }
    ///     fn relevance(&self, _: &Memory, _: &[Goal]) -> Result<f64> {
    ///         Ok(0.5)
    ///     }
    /// }
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.use_scorer(Half, "100ms".parse()?)?;
    /// assert!(db.use_scorer(Half, "0".parse()?).is_err());
    /// db.detach_scorer();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a deadline out of its bounds.
    pub fn use_scorer(&self, scorer: impl Scorer + 'static, deadline: Span) -> Result<()> {
        if deadline <= Span::ZERO || deadline > DEADLINE_MAX {
            return Err(Error::invalid(
                "deadline",
                format!("must be above 0 and at most {DEADLINE_MAX}"),
                deadline,
            ));
        }
        let deadline = Duration::from_millis(deadline.as_millis().unsigned_abs());
        *self.inner.scorer.write() = Some(AttachedScorer { scorer: Arc::new(scorer), deadline });
        Ok(())
    }

    /// Leaves the handle without a scorer: the built-in formulas stand.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.detach_scorer();
    /// assert!(db.namespace("team")?.goals()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach_scorer(&self) {
        *self.inner.scorer.write() = None;
    }
}

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
