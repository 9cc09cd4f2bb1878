//! What is a memory worth, by every measure of the store?

use std::sync::Arc;

use serde::Serialize;

use crate::error::Result;
use crate::hygiene::accesses::Accesses;
use crate::hygiene::goals::{Goals, final_score, memory_importance};
use crate::hygiene::plan::Field;
use crate::hygiene::score::Worth;
use crate::hygiene::scorer::Judge;
use crate::hygiene::uniqueness::{uniqueness, vector_of};
use crate::hygiene::utility::utility_of;
use crate::index::Published;
use crate::model::{MemoryId, Time, is_zero};
use crate::policy::Policy;
use crate::store::{NsId, Rows};

/// The scores of a memory at an instant, worked out when they are asked for. Accesses that no commit has counted yet count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// The RetentionScore: how much the memory is worth keeping, by importance, confidence, use and, for short-term memories,
    /// recency. At least 0, without a bound.
    pub retention_score: f64,
    /// The utility (MUS): how often and how lately searches found the memory, and how well it answered. At least 0, without
    /// a bound unless `mus.saturate_at` is set.
    pub memory_utility_score: f64,
    /// The relevance to goals (GRS): the greatest weighted cosine of the memory and a goal of its agent, 0 to 1.
    pub goal_relevance_score: f64,
    /// Whether a goal of its agent waits for a vector, or one of any agent is damaged, so that the relevance may be too low.
    pub goal_relevance_stale: bool,
    /// Goals of the namespace that are damaged, and may be those of any agent.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged_goals: u64,
    /// The uniqueness (SUS): 1 less the cosine of the memory and its nearest other visible memory, 0 to 1.
    pub semantic_uniqueness_score: f64,
    /// The importance for the store (MIS): relevance to goals and uniqueness with the weights of the policy.
    pub memory_importance_score: f64,
    /// The final score: utility and relevance to goals with the weights of the policy.
    pub final_score: f64,
}

/// The scores of a memory; none where no live read sees it.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn scores(
    published: &Published,
    ns: NsId,
    id: MemoryId,
    policy: &Policy,
    now: Time,
    noted: Arc<Accesses>,
    judge: Option<&dyn Judge>,
) -> Result<Option<Scores>> {
    let rows = published.snapshot();
    let Some(vitals) = rows.vitals(ns, id)?.filter(|vitals| vitals.times.visible_live(now)) else {
        return Ok(None);
    };
    let field = Field::new(ns, now, noted);
    let access = field.access(rows, id)?.unwrap_or_default();
    let agent = rows.content(ns, id)?.and_then(|content| content.agent_id);
    let vector = vector_of(published, ns, &vitals)?;
    let (goals, agent) = (Goals::read(rows, ns)?, agent.as_deref());
    let relevance = goals.judged(judge, id, agent, goals.relevance(agent, vector.as_ref()));
    let mus = utility_of(&access, now, policy);
    let sus = uniqueness(published, ns, id, &vitals, policy, now)?;
    Ok(Some(Scores {
        retention_score: Worth::of(&vitals, &access, now).judged(judge, id).score(policy),
        memory_utility_score: mus,
        goal_relevance_score: relevance.grs,
        goal_relevance_stale: relevance.is_stale,
        damaged_goals: goals.damaged(),
        semantic_uniqueness_score: sus,
        memory_importance_score: memory_importance(relevance.grs, sus, policy),
        final_score: final_score(mus, relevance.grs, policy),
    }))
}
