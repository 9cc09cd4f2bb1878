//! Goals: what the agents of a namespace are after.

use std::sync::Arc;

use crate::engine::inner::Inner;
use crate::engine::namespace::Namespace;
use crate::engine::queue::weight_of;
use crate::error::Result;
use crate::ingest::Embedded;
use crate::model::{Goal, GoalDraft, GoalId};

impl Inner {
    /// The vector of the text of a goal; none where it brings one, or no embedder can give one now.
    fn embed_of_goal(&self, draft: &GoalDraft) -> Result<Option<Embedded>> {
        let Some(attached) = self.embedder_for(&*self.state()?)?.filter(|_| draft.vector.is_none()) else {
            return Ok(None);
        };
        match attached.vectors([draft.text.as_str()].into_iter()) {
            Ok(mut vectors) => {
                let vector = vectors.pop().flatten();
                Ok(vector.map(|vector| Embedded { vector, space: Arc::clone(&attached.name) }))
            }
            Err(why) => {
                tracing::warn!(%why, "a goal is set without a vector");
                Ok(None)
            }
        }
    }
}

impl Namespace {
    /// Sets a goal of an agent, or of all agents of the namespace. Memories near to a goal are worth more, and pruning
    /// spares them. The same text of the same agent again is the same goal, with the new weight.
    ///
    /// The embedder of the handle gives the text a vector. Without one the goal waits, and the pass `embed` gives it a
    /// vector later.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let goal = team.set_goal(GoalDraft::new("Ship the release").agent("builder"))?;
    /// let again = team.set_goal(GoalDraft::new("Ship the release").agent("builder").weight(2.0))?;
    /// assert_eq!((again.id, again.weight), (goal.id, 2.0));
    /// assert!(team.set_goal(GoalDraft::new("goal ".repeat(20_000))).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the field that breaks its bound: the text, the agent, the weight, a vector of other dimensions than
    /// those of the database, more than 1,000 goals of a namespace. `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn set_goal(&self, goal: GoalDraft) -> Result<Goal> {
        goal.check()?;
        self.db.inner.check_open()?;
        let embedded = self.db.inner.embed_of_goal(&goal)?;
        let namespace = self.name.clone();
        self.db.submit(weight_of(1), move |session| {
            session.writer(&namespace, None, false)?.set_goal(&goal, embedded.as_ref())
        })
    }

    /// Drops a goal, and gives what it was; none where the goal is damaged. The journal keeps no more than a hash of its text.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let goal = team.set_goal(GoalDraft::new("Ship the release"))?;
    /// assert_eq!(team.drop_goal(goal.id)?.map(|goal| goal.text).as_deref(), Some("Ship the release"));
    /// assert!(team.drop_goal(goal.id).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a goal that the namespace does not have; `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn drop_goal(&self, id: GoalId) -> Result<Option<Goal>> {
        let namespace = self.name.clone();
        self.db.submit(weight_of(1), move |session| session.known_writer(&namespace)?.drop_goal(id))
    }
}

impl<Of> Namespace<Of> {
    /// The goals of the namespace, in the order in which they were first set: at most 1,000. One that is damaged is left out;
    /// [`damaged_goals`](Self::damaged_goals) names it.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.set_goal(GoalDraft::new("Ship the release"))?;
    /// let goals = team.goals()?;
    /// assert_eq!((goals.len(), goals[0].text.as_str()), (1, "Ship the release"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn goals(&self) -> Result<Vec<Goal>> {
        Ok(self.goals_left()?.0)
    }

    /// The goals of the namespace that can't be read. [`drop_goal`](Namespace::drop_goal) takes one away.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert!(team.damaged_goals()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged; `Closed`.
    pub fn damaged_goals(&self) -> Result<Vec<GoalId>> {
        Ok(self.goals_left()?.1)
    }

    /// The goals of the namespace, and those that are damaged.
    pub(crate) fn goals_left(&self) -> Result<(Vec<Goal>, Vec<GoalId>)> {
        self.ask(|reader| reader.goals())
    }
}
