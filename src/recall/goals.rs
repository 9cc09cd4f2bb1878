//! What are the agents of a namespace after?

use crate::error::Result;
use crate::model::{Goal, GoalId};
use crate::recall::{Reader, Source};
use crate::store::{GoalRows, Rows};

impl<S: Source> Reader<'_, S> {
    /// The goals of the namespace, in the order in which they were first set, and those that are damaged.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn goals(&self) -> Result<(Vec<Goal>, Vec<GoalId>)> {
        let Some(ns) = self.ns else { return Ok((Vec::new(), Vec::new())) };
        let space = self.rows().clock()?.space;
        let (goals, damaged) = self.rows().goals(ns)?;
        Ok((goals.into_iter().map(|(id, row)| row.shown(id, space)).collect(), damaged))
    }
}
