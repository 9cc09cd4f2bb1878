//! How much does a memory matter to the goals of its agent?

use std::collections::BTreeMap;

use crate::error::Result;
use crate::hygiene::score::days;
use crate::hygiene::scorer::Judge;
use crate::model::{Goal, MemoryId, Time};
use crate::policy::Policy;
use crate::store::{GoalRows, NsId, Rows, Snapshot};
use crate::vector::{UnitVector, dot_f32};

/// Days after which goals that have not changed count as stable.
const STABLE_DAYS: f64 = 30.0;

/// How often the goals of an agent, and those of all agents, had changed when a score was worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoalStamp {
    /// The hash of the agent.
    agent: Option<[u8; 32]>,
    epoch: u64,
}

impl GoalStamp {
    /// Whether no goal that counts for the agent has changed since, was dropped, or got a vector.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn stands(&self, rows: &impl Rows, ns: NsId) -> Result<bool> {
        Ok(epoch_of(rows, ns, self.agent.as_ref())? == self.epoch)
    }
}

/// The changes of the goals that count for an agent: its own, and those of all.
fn epoch_of(rows: &impl Rows, ns: NsId, agent: Option<&[u8; 32]>) -> Result<u64> {
    let own = match agent {
        Some(agent) => rows.goal_epoch(ns, Some(agent))?.epoch,
        None => 0,
    };
    Ok(rows.goal_epoch(ns, None)?.epoch + own)
}

/// A goal that is compared with memories.
struct Aim {
    goal: Goal,
    /// None while the goal waits for a vector of the space of searches.
    vector: Option<UnitVector>,
}

/// The goals of a namespace, as they stand in a snapshot.
pub(super) struct Goals {
    aims: Vec<Aim>,
    /// Goals that can't be read, and may be those of any agent.
    damaged: u64,
    /// The stamp of each agent that was asked for.
    stamps: BTreeMap<Option<[u8; 32]>, GoalStamp>,
}

/// What the goals say of a memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Relevance {
    /// The goal relevance score, 0 to 1.
    pub(super) grs: f64,
    /// Whether a goal of the agent could not be compared, because it waits for its vector or is damaged.
    pub(super) is_stale: bool,
    /// The built-in score, where a hook has given another.
    pub(super) replaced: Option<f64>,
}

impl Goals {
    /// # Errors
    /// `Corrupted`.
    pub(super) fn read(rows: &Snapshot, ns: NsId) -> Result<Self> {
        let space = rows.clock()?.space;
        let aim = |(id, row): (_, crate::store::GoalRow)| {
            let goal = row.shown(id, space);
            Aim { vector: goal.vector.clone().and_then(UnitVector::from_stored), goal }
        };
        let (goals, damaged) = rows.goals(ns)?;
        let damaged = damaged.len() as u64;
        Ok(Goals { aims: goals.into_iter().map(aim).collect(), damaged, stamps: BTreeMap::new() })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.aims.is_empty() && self.damaged == 0
    }

    /// How many can't be read.
    pub(super) fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The goals that count for an agent.
    pub(super) fn of(&self, agent: Option<&str>) -> Vec<Goal> {
        self.aims.iter().map(|aim| &aim.goal).filter(|goal| goal.is_of(agent)).cloned().collect()
    }

    /// The relevance of a memory as a hook says it, beside the built-in one, which stands where the hook does not answer.
    pub(super) fn judged(
        &self,
        judge: Option<&dyn Judge>,
        id: MemoryId,
        agent: Option<&str>,
        built_in: Relevance,
    ) -> Relevance {
        let Some(judge) = judge else { return built_in };
        let goals = self.of(agent);
        if goals.is_empty() {
            return built_in;
        }
        match judge.relevance(id, goals) {
            Some(grs) => Relevance { grs, is_stale: false, replaced: Some(built_in.grs) },
            None => built_in,
        }
    }

    /// The goal relevance score (GRS) of a memory: the greatest product of a goal's weight and the cosine of the memory and
    /// that goal, over the goals of its agent and those of all agents, held to 0 to 1. 0 for a memory without a vector of
    /// the space of searches, and where there are no goals.
    ///
    /// Source: the memory-pruning proposal, strategy 2; the weight is ours.
    pub(super) fn relevance(&self, agent: Option<&str>, vector: Option<&UnitVector>) -> Relevance {
        let mut relevance = Relevance { is_stale: self.damaged > 0, ..Relevance::default() };
        for Aim { goal, vector: to } in self.aims.iter().filter(|aim| aim.goal.is_of(agent)) {
            relevance.is_stale |= to.is_none();
            if let (Some(vector), Some(to)) = (vector, to) {
                let cosine = f64::from(dot_f32(vector.as_slice(), to.as_slice()));
                relevance.grs = relevance.grs.max(f64::from(goal.weight) * cosine);
            }
        }
        relevance.grs = relevance.grs.clamp(0.0, 1.0);
        relevance
    }

    /// Under which goals a score of a memory of the agent with this hash was worked out.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn stamp(&mut self, rows: &Snapshot, ns: NsId, agent: Option<[u8; 32]>) -> Result<GoalStamp> {
        if let Some(stamp) = self.stamps.get(&agent) {
            return Ok(*stamp);
        }
        let stamp = GoalStamp { agent, epoch: epoch_of(rows, ns, agent.as_ref())? };
        self.stamps.insert(agent, stamp);
        Ok(stamp)
    }
}

/// How stable the goals of the agent with this hash are: 0 where one has just changed, or none was ever set; 1 after 30 days.
///
/// # Errors
/// `Corrupted`.
pub(super) fn stability(rows: &Snapshot, ns: NsId, agent: Option<[u8; 32]>, now: Time) -> Result<f64> {
    let mut last = rows.goal_epoch(ns, None)?;
    if let Some(agent) = agent {
        let own = rows.goal_epoch(ns, Some(&agent))?;
        last = if own.changed_ms > last.changed_ms { own } else { last };
    }
    if last.epoch == 0 {
        return Ok(0.0);
    }
    Ok((days(Time::from_millis(last.changed_ms), now) / STABLE_DAYS).min(1.0))
}

/// The final score of a memory: the sum of its utility (MUS) and its relevance to goals (GRS) with the weights `goal.w_mus`
/// and `goal.w_goal`. At least 0; without a bound, as the utility is, unless `mus.saturate_at` is set.
///
/// Source: the memory-pruning proposal, hybrid, with its weights.
pub(super) fn final_score(mus: f64, grs: f64, policy: &Policy) -> f64 {
    policy.goal.w_mus * mus + policy.goal.w_goal * grs
}

/// The importance of a memory for the store (MIS): the sum of its relevance to goals (GRS) and its uniqueness (SUS) with the
/// weights `goal.w_mis_goal` and `goal.w_mis_unique`; 0 to 1 with the weights of the source.
///
/// Source: the memory-pruning proposal, strategy 2, with its weights.
pub(super) fn memory_importance(grs: f64, sus: f64, policy: &Policy) -> f64 {
    policy.goal.w_mis_goal * grs + policy.goal.w_mis_unique * sus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GoalId;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-6, "{found}, not {expected}");
    }

    fn unit(values: [f32; 2]) -> UnitVector {
        UnitVector::new("vector", &values).unwrap()
    }

    fn aim(agent: Option<&str>, weight: f32, vector: Option<[f32; 2]>) -> Aim {
        let goal = Goal {
            id: GoalId::from_bytes([1; 16]),
            agent: agent.map(str::to_owned),
            text: "goal".to_owned(),
            weight,
            set_at: Time::EPOCH,
            vector: None,
            embedding_space: None,
        };
        Aim { goal, vector: vector.map(unit) }
    }

    fn goals(aims: Vec<Aim>) -> Goals {
        Goals { aims, damaged: 0, stamps: BTreeMap::new() }
    }

    #[test]
    fn v157_and_v159_final_score_and_importance() {
        let policy = Policy::default();
        near(final_score(0.914_518, 0.5, &policy), 0.748_711);
        near(memory_importance(0.8, 1.0 - 0.75, &policy), 0.635);
        near(memory_importance(0.0, 1.0, &policy), 0.3);
    }

    #[test]
    fn life_20_relevance_is_the_greatest_weighted_cosine_of_the_goals_of_the_agent() {
        let memory = unit([1.0, 0.0]);
        let of = |aims, agent| goals(aims).relevance(agent, Some(&memory));
        near(of(vec![], None).grs, 0.0);
        let aims = || {
            vec![
                aim(None, 0.5, Some([1.0, 0.0])),
                aim(Some("a"), 1.0, Some([0.8, 0.6])),
                aim(Some("b"), 1.0, Some([-1.0, 0.0])),
            ]
        };
        near(of(aims(), None).grs, 0.5);
        near(of(aims(), Some("a")).grs, 0.8);
        near(of(aims(), Some("b")).grs, 0.5);
        // Held to 0 to 1 after the weight.
        near(of(vec![aim(None, 3.0, Some([0.8, 0.6]))], None).grs, 1.0);
        near(of(vec![aim(None, 3.0, Some([-0.8, 0.6]))], None).grs, 0.0);
        assert_eq!(goals(aims()).relevance(None, None), Relevance::default());
        let waits = of(vec![aim(Some("a"), 1.0, None)], Some("a"));
        assert!(waits.is_stale && waits.grs == 0.0);
        assert!(!of(vec![aim(Some("a"), 1.0, None)], Some("b")).is_stale);
    }
}
