//! Goals: rows, typed reads, typed writes.

use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::model::{Goal, GoalId, MemoryId, Time, check_goal};
use crate::store::control::{GoalEpochRow, GoalRow};
use crate::store::keys;
use crate::store::part::NsId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, meta_of};
use crate::store::truth::Truth;

impl GoalRow {
    /// Whether the goal has a vector of a space.
    pub(crate) fn is_embedded(&self, space: u16) -> bool {
        self.space == space && !self.vector.is_empty()
    }

    /// The goal as it is shown where `space` is the space of searches. A vector of another space is none.
    pub(crate) fn shown(self, id: GoalId, space: u16) -> Goal {
        let vector = Some(self.vector).filter(|vector| self.space == space && !vector.is_empty());
        let GoalRow { agent, text, weight, set_ms, .. } = self;
        Goal { id, agent, text, weight, set_at: Time::from_millis(set_ms), vector, embedding_space: None }
    }

    /// Whether the values are within the bounds of a goal.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn check(&self, key: &[u8]) -> Result<()> {
        let broken = |why: Error| Error::corrupted(Table::Goal.name(), key, why.to_string());
        check_goal(&self.text, self.agent.as_deref(), self.weight).map_err(broken)
    }
}

/// The key of a goal in its namespace.
fn goal_key(ns: NsId, id: GoalId) -> keys::Key {
    keys::memory(ns, MemoryId::from_bytes(*id.as_bytes()))
}

/// The key of how often the goals of an agent have changed. It outlives these goals, so it has not the name of the agent.
fn epoch_key(ns: NsId, agent: Option<&[u8; 32]>) -> keys::Key {
    keys::goal_epoch(ns, agent.unwrap_or(&[0; 32]))
}

/// A goal with its id.
type KnownGoal = (GoalId, GoalRow);

/// Typed reads of goals.
pub(crate) trait GoalRows: Rows {
    fn goal(&self, ns: NsId, id: GoalId) -> Result<Option<GoalRow>> {
        let key = goal_key(ns, id);
        let row: Option<GoalRow> = self.meta(Table::Goal, &key)?;
        row.iter().try_for_each(|row| row.check(&key))?;
        Ok(row)
    }

    /// The goals of a namespace that can be read, by id, and the ids of those that are damaged.
    fn goals(&self, ns: NsId) -> Result<(Vec<KnownGoal>, Vec<GoalId>)> {
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        self.walk(Table::Goal, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            let keys::Goal { id, .. } = keys::Goal::read(Table::Goal, key)?;
            let row = meta_of(Table::Goal, key, bytes);
            let row = sound(row.and_then(|row: GoalRow| row.check(key).map(|()| row)))?;
            let id = GoalId::from_bytes(*id.as_bytes());
            match row {
                Some(row) => all.push((id, row)),
                None => damaged.push(id),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((all, damaged))
    }

    /// How often the goals of the agent with this hash have changed; without an agent, those of all agents.
    fn goal_epoch(&self, ns: NsId, agent: Option<&[u8; 32]>) -> Result<GoalEpochRow> {
        let row = self.meta(Table::GoalEpoch, &epoch_key(ns, agent))?;
        Ok(row.unwrap_or_default())
    }

    /// How often goals of the namespace have changed, those of all agents together.
    fn goal_changes(&self, ns: NsId) -> Result<u64> {
        let mut changes = 0_u64;
        self.walk(Table::GoalEpoch, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            let row: GoalEpochRow = meta_of(Table::GoalEpoch, key, bytes)?;
            changes = changes.wrapping_add(row.epoch);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(changes)
    }
}

impl<R: Rows> GoalRows for R {}

impl Truth<'_, '_> {
    pub(crate) fn put_goal(&mut self, ns: NsId, id: GoalId, row: &GoalRow) -> Result<()> {
        self.put_meta(Table::Goal, &goal_key(ns, id), row)
    }

    pub(crate) fn delete_goal(&mut self, ns: NsId, id: GoalId) -> Result<()> {
        self.delete(Table::Goal, &goal_key(ns, id))
    }

    pub(crate) fn put_goal_epoch(
        &mut self,
        ns: NsId,
        agent: Option<&[u8; 32]>,
        row: &GoalEpochRow,
    ) -> Result<()> {
        self.put_meta(Table::GoalEpoch, &epoch_key(ns, agent), row)
    }
}
