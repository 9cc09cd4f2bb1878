//! Goals are set, get their vectors, are dropped, and go along when a namespace moves.

use serde_json::Value;

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{Delta, GoalId, MemoryId, Op, Time};
use crate::store::{GoalRow, GoalRows, NsId, Rows, SpaceId};
use crate::vector::UnitVector;

impl Ledger<'_, '_> {
    /// Writes a goal, new or in place of what it was.
    pub(super) fn set_goal(
        &mut self,
        context: &Context,
        id: GoalId,
        row: &GoalRow,
        why: Why,
    ) -> Result<Applied> {
        let before = self.tx.goal(context.ns, id)?;
        let mut deltas = Vec::new();
        let mut changed = |field: &str, before: Option<Value>, after: Value| {
            let before = before.unwrap_or_default();
            if before != after {
                deltas.push(Delta { field: field.to_owned(), before, after });
            }
        };
        let old = before.as_ref();
        changed("goal", old.map(|row| row.text.clone().into()), row.text.clone().into());
        changed("agent", old.map(|row| row.agent.clone().into()), row.agent.clone().into());
        changed("weight", old.map(weight_of), weight_of(row));
        truth(self.tx).put_goal(context.ns, id, row)?;
        self.turn_epoch(context.ns, row.agent.as_deref(), Some(Time::from_millis(row.set_ms)))?;
        self.journal(context, Op::SetGoal, Some((subject(id), None)), deltas, why)?;
        Ok(Applied::default())
    }

    /// Takes a goal away. Of its text the journal keeps the HMAC.
    pub(super) fn drop_goal(&mut self, context: &Context, id: GoalId, why: Why) -> Result<Applied> {
        let ns = context.ns;
        let row = match sound(self.tx.goal(ns, id))? {
            Some(None) => return Ok(Applied::default()),
            found => found.flatten(),
        };
        truth(self.tx).delete_goal(ns, id)?;
        // A damaged goal may have been that of any agent, so the scores of all agents are stale.
        self.turn_epoch(ns, row.as_ref().and_then(|row| row.agent.as_deref()), Some(context.now))?;
        let gone = |field: &str, before: Value| Delta { field: field.to_owned(), before, after: Value::Null };
        let deltas = row.map_or_else(Vec::new, |row| {
            vec![
                gone("goal", row.text.clone().into()),
                gone("agent", row.agent.clone().into()),
                gone("weight", weight_of(&row)),
            ]
        });
        self.journal(context, Op::DropGoal, Some((subject(id), None)), deltas, why)?;
        self.redact(ns, subject(id))?;
        Ok(Applied::default())
    }

    /// Gives a goal the vector of its text in the current space, which is that of an embedder. Returns false if the goal is
    /// gone, has another text, or already has its vector.
    pub(crate) fn embed_goal(
        &mut self,
        ns: NsId,
        id: GoalId,
        text: &str,
        vector: &UnitVector,
        name: &str,
    ) -> Result<bool> {
        let space = match self.tx.space(SpaceId(self.clock.space))? {
            Some(row) if row.embedder() == name => SpaceId(self.clock.space),
            // Another embedder has become current meanwhile, and no vector of its space is compared with this one.
            Some(_) => return Ok(false),
            None => self.open_space(name, vector.dim())?,
        };
        let row = self.tx.goal(ns, id)?.filter(|row| row.text == text && !row.is_embedded(space.0));
        let Some(mut row) = row else { return Ok(false) };
        (row.space, row.vector) = (space.0, vector.as_slice().to_vec());
        truth(self.tx).put_goal(ns, id, &row)?;
        // What the goal says of memories is known only now; what it says has not changed.
        self.turn_epoch(ns, row.agent.as_deref(), None)?;
        Ok(true)
    }

    /// Brings the goals of a namespace that goes as a whole.
    pub(super) fn bring_goals(&mut self, from: NsId, to: NsId) -> Result<()> {
        for (id, row) in self.tx.goals(from)?.0 {
            if self.tx.goal(to, id)?.is_none() {
                truth(self.tx).put_goal(to, id, &row)?;
                let agent = row.agent.as_deref().map(|agent| self.secret.of_agent(agent));
                let changed = self.tx.goal_epoch(from, agent.as_ref())?.changed_ms;
                self.turn_epoch(to, row.agent.as_deref(), Some(Time::from_millis(changed)))?;
            }
        }
        Ok(())
    }

    /// Makes every score by the goals of an agent stale, without touching a memory. `changed` is when a goal was set or
    /// dropped, if one was.
    fn turn_epoch(&mut self, ns: NsId, agent: Option<&str>, changed: Option<Time>) -> Result<()> {
        let agent = agent.map(|agent| self.secret.of_agent(agent));
        let mut row = self.tx.goal_epoch(ns, agent.as_ref())?;
        row.epoch += 1;
        row.changed_ms = changed.map_or(row.changed_ms, |changed| changed.as_millis().max(row.changed_ms));
        truth(self.tx).put_goal_epoch(ns, agent.as_ref(), &row)
    }
}

/// The name under which the journal tells of a goal.
fn subject(id: GoalId) -> MemoryId {
    MemoryId::from_bytes(*id.as_bytes())
}

fn weight_of(row: &GoalRow) -> Value {
    crate::model::widened(row.weight).into()
}
