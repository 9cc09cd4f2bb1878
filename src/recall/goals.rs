//! What are the agents of a namespace after?

use crate::error::{Result, sound};
use crate::model::{Goal, GoalId};
use crate::recall::{Reader, Source};
use crate::store::{GoalRow, GoalRows, Rows, SpaceId};

impl<S: Source> Reader<'_, S> {
    /// The goals of the namespace, in the order in which they were first set, and those that are damaged.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn goals(&self) -> Result<(Vec<Goal>, Vec<GoalId>)> {
        let Some(ns) = self.ns else { return Ok((Vec::new(), Vec::new())) };
        let space = self.rows().clock()?.space;
        let name = sound(self.rows().space(SpaceId(space)))?.flatten().map(|row| row.embedder().to_owned());
        let (goals, damaged) = self.rows().goals(ns)?;
        let shown = |(id, row): (GoalId, GoalRow)| {
            let goal = row.shown(id, space);
            Goal { embedding_space: name.clone().filter(|_| goal.vector.is_some()), ..goal }
        };
        Ok((goals.into_iter().map(shown).collect(), damaged))
    }
}
