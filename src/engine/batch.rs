//! Several operations in one transaction.

use crate::engine::database::{RestoreReport, WriteOptions};
use crate::engine::series::snapshot_draft;
use crate::engine::session::Session;
use crate::error::{Error, Result};
use crate::ingest::{Desk, ForgetNames, prepare};
use crate::ledger::{Change, Entry, Restored};
use crate::model::{
    Draft, Forgotten, NamespaceName, Outcome, Partition, Patch, RuleId, Scope, SupersedeMode, Time,
};
use crate::store::PartId;

/// A transaction under way: what it does is visible to itself at once, to others when it commits.
pub struct Batch<'b, 's, 'a, 't> {
    pub(super) session: &'b mut Session<'s, 'a, 't>,
    /// Rows that it may have given a vector.
    pub(super) rows: usize,
}

impl Batch<'_, '_, '_, '_> {
    /// As [`Database::add`](crate::Database::add).
    ///
    /// # Errors
    /// As there; the whole batch is given up if its closure hands the error on.
    pub fn add(&mut self, namespace: &NamespaceName, draft: Draft) -> Result<Outcome> {
        self.add_with(namespace, draft, &WriteOptions::default())
    }

    /// As [`Batch::add`], in a run or without dedup.
    ///
    /// # Errors
    /// As there.
    pub fn add_with(
        &mut self,
        namespace: &NamespaceName,
        draft: Draft,
        how: &WriteOptions,
    ) -> Result<Outcome> {
        let prepared = prepare(draft)?;
        self.rows += 1;
        let mut desk = self.session.desk(namespace, how.run, how.no_dedup)?;
        desk.skip_instructions = how.skip_instructions;
        desk.add(&prepared)
    }

    /// As [`Database::push_snapshot`](crate::Database::push_snapshot).
    ///
    /// # Errors
    /// As there.
    pub fn push_snapshot(&mut self, namespace: &NamespaceName, draft: Draft, at: Time) -> Result<Outcome> {
        let prepared = prepare(snapshot_draft(draft, at, &self.session.in_force.policy.snapshot.agent)?)?;
        self.rows += 1;
        self.session.desk(namespace, None, false)?.push_snapshot(&prepared)
    }

    /// As [`Database::update`](crate::Database::update).
    ///
    /// # Errors
    /// As there.
    pub fn update(&mut self, namespace: &NamespaceName, name: &str, patch: Patch) -> Result<Outcome> {
        self.rows += 1;
        self.session.known_desk(namespace)?.update(name, patch, None)
    }

    /// As [`Database::supersede`](crate::Database::supersede).
    ///
    /// # Errors
    /// As there.
    pub fn supersede(
        &mut self,
        namespace: &NamespaceName,
        old: &[String],
        new: &str,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<()> {
        self.session.known_desk(namespace)?.supersede_names(old, new, mode, at)
    }

    /// As [`Database::restore`](crate::Database::restore).
    ///
    /// # Errors
    /// As there.
    pub fn restore(&mut self, namespace: &NamespaceName, name: &str) -> Result<RestoreReport> {
        self.session.known_desk(namespace)?.restore(name)
    }

    /// Forgets ids or keys, with all their versions.
    ///
    /// # Errors
    /// `Corrupted`.
    pub fn forget(&mut self, namespace: &NamespaceName, names: &[String]) -> Result<Forgotten> {
        let how = ForgetNames { keep_history: false, also_merged: true, with_history: false };
        self.session.known_desk(namespace)?.forget_names(names, how)
    }

    /// Counts uses of a memory.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn reinforce(&mut self, namespace: &NamespaceName, name: &str, by: u32) -> Result<()> {
        self.session.known_desk(namespace)?.reinforce(name, by)
    }
}

impl Desk<'_, '_, '_> {
    /// One memory takes the place of each of `old`.
    pub(super) fn supersede_names(
        &mut self,
        old: &[String],
        new: &str,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<()> {
        if old.is_empty() {
            return Err(Error::invalid("old", "must name at least one memory", "none"));
        }
        let (new, _) = self.find(new)?;
        for name in old {
            let (old, _) = self.find(name)?;
            self.supersede(old, new, mode, at)?;
        }
        Ok(())
    }

    pub(super) fn restore(&mut self, name: &str) -> Result<RestoreReport> {
        let (id, _) = self.find(name)?;
        let applied = self
            .ledger
            .apply(&self.context, Entry::new(RuleId::RESTORE, Change::Restore { id, asked: true }))?;
        let Restored { keys_taken, superseded_by } = applied.restored.unwrap_or_default();
        Ok(RestoreReport { id, keys_taken, superseded_by })
    }

    pub(super) fn reinforce(&mut self, name: &str, by: u32) -> Result<()> {
        let (id, _) = self.find(name)?;
        let change = self.use_of(id, by)?;
        self.ledger
            .apply(&self.context, Entry::new(RuleId::REINFORCE, change))
            .map(|_: crate::ledger::Applied| ())
    }

    /// The partition of a scope: none in the inner option is all of them, none in the outer one that there is no
    /// such partition.
    pub(super) fn part_of(&self, scope: &Scope) -> Result<Option<Option<PartId>>> {
        match scope.partition() {
            None => Ok(Some(None)),
            Some(Partition::Shared) => Ok(Some(Some(PartId(0)))),
            Some(Partition::Agent(name)) => Ok(self.known_part(name.as_str())?.map(Some)),
        }
    }
}
