//! What an agent is after: goals, by which memories are found to matter or not.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, FIELD_BYTES_MAX, GOAL_BYTES_MAX, GOAL_WEIGHT_MAX, within};
use crate::model::id::GoalId;
use crate::model::name::check_text;
use crate::model::time::Time;

/// A goal that is to be set.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalDraft {
    /// What the agent is after: 1 to 8,192 bytes, no NUL.
    pub text: String,
    /// The agent, as memories name it in `agent_id`: 1 to 1,024 bytes, no NUL. None: the goal is one of all agents of the
    /// namespace.
    pub agent: Option<String>,
    /// How much the goal counts beside others, 0 to 10. The cosine of a memory and the goal is multiplied by it.
    pub weight: f32,
    /// The vector of the text, in the space of the vectors of the database. None: the embedder of the handle makes it.
    pub vector: Option<Vec<f32>>,
}

impl GoalDraft {
    /// A goal of all agents of a namespace, with weight 1.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// let goal = GoalDraft::new("Ship the release");
    /// assert_eq!((goal.weight, goal.agent), (1.0, None));
    /// ```
    pub fn new(text: impl Into<String>) -> Self {
        GoalDraft { text: text.into(), agent: None, weight: 1.0, vector: None }
    }

    /// With the agent whose goal it is.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// assert_eq!(GoalDraft::new("Ship the release").agent("builder").agent.as_deref(), Some("builder"));
    /// ```
    #[must_use]
    pub fn agent(self, agent: impl Into<String>) -> Self {
        GoalDraft { agent: Some(agent.into()), ..self }
    }

    /// With a weight, 0 to 10.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// assert!(GoalDraft::new("Ship the release").weight(2.5).check().is_ok());
    /// assert!(GoalDraft::new("Ship the release").weight(f32::NAN).check().is_err());
    /// ```
    #[must_use]
    pub fn weight(self, weight: f32) -> Self {
        GoalDraft { weight, ..self }
    }

    /// With a vector of the caller.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// assert_eq!(GoalDraft::new("Ship the release").vector([0.6, 0.8]).vector, Some(vec![0.6, 0.8]));
    /// ```
    #[must_use]
    pub fn vector(self, vector: impl Into<Vec<f32>>) -> Self {
        GoalDraft { vector: Some(vector.into()), ..self }
    }

    /// Checks the bounds.
    ///
    /// ```
    /// use oubliette::memory::GoalDraft;
    /// let why = GoalDraft::new("goal ".repeat(20_000)).check().unwrap_err();
    /// assert!(why.to_string().starts_with("goal: must be 1 to 8192 bytes"));
    /// ```
    ///
    /// # Errors
    /// `Invalid` naming the field that breaks its bound.
    pub fn check(&self) -> Result<()> {
        check_goal(&self.text, self.agent.as_deref(), self.weight)?;
        self.vector.as_ref().map_or(Ok(()), |vector| within("vector", vector.len(), 1..=DIM_MAX))
    }
}

/// Checks what a goal says, in a draft, a file or a row.
pub(crate) fn check_goal(text: &str, agent: Option<&str>, weight: f32) -> Result<()> {
    check_text("goal", text, GOAL_BYTES_MAX)?;
    agent.map_or(Ok(()), |agent| check_text("agent", agent, FIELD_BYTES_MAX))?;
    // No bound holds for NaN.
    if !(0.0..=GOAL_WEIGHT_MAX).contains(&weight) {
        return Err(Error::invalid("weight", format!("must be 0 to {GOAL_WEIGHT_MAX}"), weight));
    }
    Ok(())
}

/// A goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The id.
    #[serde(rename = "goal_id")]
    pub id: GoalId,
    /// The agent whose goal it is; none: the goal is one of all agents of the namespace.
    pub agent: Option<String>,
    /// What the agent is after.
    pub text: String,
    /// How much the goal counts beside others, 0 to 10.
    pub weight: f32,
    /// Transaction time at which the goal was set, or got its weight.
    pub set_at: Time,
    /// The unit vector of the text. None while the goal waits for one: no embedder was there, or another embedder has made
    /// the vectors of the database since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vec<f32>>,
    /// The embedding space of `vector`, in a list of goals and in an export: the id of the embedder, or `caller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_space: Option<String>,
}

impl Goal {
    /// Whether the goal is one of an agent, which `None` stands for where a memory names no agent.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// use oubliette::memory::GoalDraft;
    /// let ours = team.set_goal(GoalDraft::new("Ship the release"))?;
    /// let his = team.set_goal(GoalDraft::new("Keep the tests green").agent("builder"))?;
    /// assert!(ours.is_of(Some("builder")) && ours.is_of(None));
    /// assert!(his.is_of(Some("builder")) && !his.is_of(None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_of(&self, agent: Option<&str>) -> bool {
        self.agent.is_none() || self.agent.as_deref() == agent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_is_named() {
        let field = |draft: GoalDraft| draft.check().unwrap_err().to_string();
        for (draft, begins) in [
            (GoalDraft::new(""), "goal: "),
            (GoalDraft::new("a\0b"), "goal: "),
            (GoalDraft::new("x".repeat(GOAL_BYTES_MAX + 1)), "goal: "),
            (GoalDraft::new("x").agent(""), "agent: "),
            (GoalDraft::new("x").agent("a".repeat(FIELD_BYTES_MAX + 1)), "agent: "),
            (GoalDraft::new("x").weight(-0.1), "weight: must be 0 to 10"),
            (GoalDraft::new("x").weight(10.1), "weight: must be 0 to 10"),
            (GoalDraft::new("x").weight(f32::INFINITY), "weight: "),
            (GoalDraft::new("x").vector([]), "vector: "),
        ] {
            assert!(field(draft.clone()).starts_with(begins), "{draft:?}");
        }
        assert!(GoalDraft::new("x".repeat(GOAL_BYTES_MAX)).weight(0.0).check().is_ok());
    }
}
