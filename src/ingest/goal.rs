//! Goals as they are set: the same text of the same agent is the same goal.

use crate::error::{Error, Result, sound};
use crate::ingest::{Embedded, NamespaceWriter};
use crate::ledger::{Change, Entry};
use crate::limits::GOALS_MAX;
use crate::model::{Goal, GoalDraft, GoalId, RuleId, check_goal};
use crate::store::control::SpaceRow;
use crate::store::{GoalRow, GoalRows};
use crate::vector::UnitVector;

impl NamespaceWriter<'_, '_, '_> {
    /// Sets a goal. `embedded` is what the embedder of the handle made of its text, unless the draft has a vector.
    ///
    /// # Errors
    /// `Invalid` for a vector of other dimensions than the space of the database has, and for a namespace with too many
    /// goals.
    pub(crate) fn set_goal(&mut self, draft: &GoalDraft, embedded: Option<&Embedded>) -> Result<Goal> {
        let ns = self.ns();
        let (goals, _) = self.ledger.tx.goals(ns)?;
        let known = goals.iter().find(|(_, row)| row.agent == draft.agent && row.text == draft.text);
        if known.is_none() && goals.len() >= GOALS_MAX {
            let why = format!("must be at most {GOALS_MAX} in a namespace: drop one first");
            return Err(Error::invalid("goals", why, goals.len() + 1));
        }
        let mut row = GoalRow {
            agent: draft.agent.clone(),
            text: draft.text.clone(),
            weight: draft.weight,
            set_ms: self.now().as_millis(),
            space: 0,
            vector: Vec::new(),
        };
        if let Some(values) = &draft.vector {
            let vector = UnitVector::new("vector", values)?;
            self.place_vector(&mut row, &vector, SpaceRow::CALLER)?;
        } else if let Some(Embedded { vector, space }) = embedded
            && !self.is_stranger(space)?
        {
            self.place_vector(&mut row, vector, space)?;
        } else if let Some((_, old)) = known {
            (row.space, row.vector) = (old.space, old.vector.clone());
        }
        let id = match known {
            Some((id, old)) => {
                let same = GoalRow { set_ms: old.set_ms, ..row.clone() };
                if same == *old {
                    return Ok(same.shown(*id, self.ledger.clock.space));
                }
                *id
            }
            None => GoalId::from_bytes(self.ids.next(self.now())?),
        };
        let change = Change::SetGoal { id, row: Box::new(row.clone()) };
        self.apply_entry(Entry::new(RuleId::GOAL, change))?;
        Ok(row.shown(id, self.ledger.clock.space))
    }

    /// Drops a goal, and gives what it was; none where it is damaged.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn drop_goal(&mut self, id: GoalId) -> Result<Option<Goal>> {
        let row = sound(self.ledger.tx.goal(self.ns(), id))?;
        if row == Some(None) {
            return Err(Error::NotFound { what: "goal", name: id.to_string() });
        }
        self.apply_entry(Entry::new(RuleId::GOAL, Change::DropGoal { id }))?;
        Ok(row.flatten().map(|row| row.shown(id, self.ledger.clock.space)))
    }

    /// Puts a goal of an export back. One that is there already is left as it is.
    pub(super) fn recreate_goal(&mut self, goal: &Goal) -> Result<()> {
        check_goal(&goal.text, goal.agent.as_deref(), goal.weight)?;
        if self.ledger.tx.goal(self.ns(), goal.id)?.is_some() {
            return Ok(());
        }
        let mut row = GoalRow {
            agent: goal.agent.clone(),
            text: goal.text.clone(),
            weight: goal.weight,
            set_ms: goal.set_at.as_millis(),
            space: 0,
            vector: Vec::new(),
        };
        if let Some(values) = &goal.vector {
            let vector = UnitVector::new("vector", values)?;
            let space = match goal.embedding_space.as_deref() {
                Some(name) => self.present_space(name, vector.dim())?,
                None => Some(self.open_space_of(vector.dim(), SpaceRow::CALLER)?),
            };
            if let Some(space) = space {
                (row.space, row.vector) = (space.0, vector.as_slice().to_vec());
            }
        }
        let change = Change::SetGoal { id: goal.id, row: Box::new(row) };
        self.apply_entry(Entry::new(RuleId::IMPORT_ROW, change)).map(drop)
    }

    fn place_vector(&mut self, row: &mut GoalRow, vector: &UnitVector, name: &str) -> Result<()> {
        row.space = self.open_space_of(vector.dim(), name)?.0;
        row.vector = vector.as_slice().to_vec();
        Ok(())
    }
}
