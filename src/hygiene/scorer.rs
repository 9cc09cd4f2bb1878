//! Who says what a memory is worth, if not the built-in formulas? A hook of the host.

use crate::error::Result;
use crate::model::{Goal, Memory, MemoryId};

/// A hook that scores memories in place of the built-in formulas: a trained model, or rules of the host. It is asked outside
/// transactions, from a thread of its own, and has a deadline. Where it is late, fails, panics or gives no number from 0 to 1,
/// the built-in formula stands, and the journal tells so.
///
/// ```
/// use oubliette::maintain::Scorer;
/// use oubliette::memory::{Goal, GoalDraft};
/// use oubliette::{Memory, Span};
///
/// struct ByWords;
///
/// impl Scorer for ByWords {
///     fn importance(&self, memory: &Memory) -> oubliette::Result<f64> {
///         Ok(f64::from(memory.importance))
///     }
///
///     fn relevance(&self, memory: &Memory, goals: &[Goal]) -> oubliette::Result<f64> {
///         let shared = |goal: &Goal| goal.text.split(' ').any(|word| memory.text.contains(word));
///         Ok(if goals.iter().any(shared) { 1.0 } else { 0.0 })
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let db = oubliette::Database::open(folder.path().join("m.oub"))?;
/// db.use_scorer(ByWords, "200ms".parse::<Span>()?)?;
/// let team = db.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// team.set_goal(GoalDraft::new("Buy tea"))?;
/// assert_eq!(team.scores(tea)?.unwrap().goal_relevance_score, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Scorer: Send + Sync {
    /// How much the memory will matter, 0 to 1: in place of its importance where the pass `cap` chooses what goes.
    ///
    /// # Errors
    /// Whatever keeps the hook from answering.
    fn importance(&self, memory: &Memory) -> Result<f64>;

    /// How much the memory matters to the goals of its agent and those of all agents, 0 to 1: in place of the greatest
    /// cosine. It is asked only where there are goals.
    ///
    /// # Errors
    /// Whatever keeps the hook from answering.
    fn relevance(&self, memory: &Memory, goals: &[Goal]) -> Result<f64>;
}

/// How a plan asks the hook of a handle. None: the built-in formula stands.
pub(crate) trait Judge {
    fn importance(&self, id: MemoryId) -> Option<f64>;

    fn relevance(&self, id: MemoryId, goals: Vec<Goal>) -> Option<f64>;
}
