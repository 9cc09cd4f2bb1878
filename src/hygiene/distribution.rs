//! How are the memories of a namespace used? What a host looks at before it lets use decide what goes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::error::Result;
use crate::hygiene::plan::{Field, Page, Pages};
use crate::hygiene::prune::is_left_alone;
use crate::hygiene::utility::utility_of;
use crate::model::{Access, InContext, Kind, MemoryId, Time, Vitals};
use crate::policy::Policy;
use crate::store::Snapshot;

/// Rows of a page of the walk.
const PAGE_ROWS: usize = 1_000;
/// Memories that are named as the most retrieved.
const MOST_RETRIEVED: usize = 20;
/// Bars by their lower ends: mean relevance, in tenths of its range of 0 to 1.
const RELEVANCE_FROM: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Bars by their lower ends, and the thresholds that are tried: utility, which has no upper bound.
const UTILITY_FROM: [f64; 12] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0];

/// How the visible memories of a namespace are used, by what searches have noted of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AccessDistribution {
    /// Visible memories.
    pub memories: u64,
    /// Those that no search has returned.
    pub never_retrieved: u64,
    /// Their share; none where there are no memories.
    pub never_retrieved_share: Option<f64>,
    /// Memories by their number of retrievals: 0, 1, then from each power of two up to below the next.
    pub retrievals: Vec<RetrievalBar>,
    /// Memories with a recorded relevance, by its mean, in tenths.
    pub mean_relevance: Vec<ScoreBar>,
    /// Memories by their utility score (MUS).
    pub utility: Vec<ScoreBar>,
    /// What each threshold of utility would prune.
    pub thresholds: Vec<ThresholdEffect>,
    /// The memories that searches returned most often, at most 20.
    pub most_retrieved: Vec<MostRetrieved>,
}

/// How many memories were retrieved so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RetrievalBar {
    /// The least number of retrievals.
    pub from: u64,
    /// The greatest.
    pub to: u64,
    /// The number of memories.
    pub memories: u64,
}

/// How many memories have such a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScoreBar {
    /// The least score.
    pub from: f64,
    /// The number of memories with a score from there up to below the next bar; of the last bar, all above.
    pub memories: u64,
}

/// What a threshold of utility would do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThresholdEffect {
    /// Memories with a lower score would go.
    pub threshold: f64,
    /// Visible memories with a lower score.
    pub below: u64,
    /// Those of them that are neither pinned nor locked, nor found lately, nor protected by an earlier use, nor too young.
    pub would_go: u64,
    /// Of those, the summaries of sessions, which `prune.l1.mus` would take.
    pub l1: u64,
    /// Of those, the summaries of chapters, which `prune.l2.mus` would take.
    pub l2: u64,
    /// Bytes of the texts of all that would go.
    pub bytes: u64,
}

/// A memory that searches returned often, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MostRetrieved {
    /// The memory.
    pub id: MemoryId,
    /// Its namespace.
    pub namespace: String,
    /// How often searches returned it.
    pub retrieval_count: u64,
    /// The mean of the recorded relevances; none without one.
    pub mean_relevance: Option<f64>,
    /// Its utility score (MUS).
    pub memory_utility_score: f64,
    /// When a search last returned it.
    pub last_retrieved: Option<Time>,
    /// The last contexts that it was in, the latest first, at most 3.
    pub contexts: Vec<InContext>,
}

/// Counts memories. What it keeps has a bound, however many there are.
pub(crate) struct Distribution<'p> {
    policy: &'p Policy,
    told: AccessDistribution,
    /// The least first: number of retrievals, the later id before the earlier one, place in `names`.
    most: BinaryHeap<Reverse<(u64, Reverse<MemoryId>, usize)>>,
    names: Vec<String>,
}

impl<'p> Distribution<'p> {
    pub(crate) fn new(policy: &'p Policy) -> Self {
        let bars = |from: &[f64]| from.iter().map(|from| ScoreBar { from: *from, memories: 0 }).collect();
        let effect = |threshold: &f64| ThresholdEffect {
            threshold: *threshold,
            below: 0,
            would_go: 0,
            l1: 0,
            l2: 0,
            bytes: 0,
        };
        let told = AccessDistribution {
            mean_relevance: bars(&RELEVANCE_FROM),
            utility: bars(&UTILITY_FROM),
            thresholds: UTILITY_FROM.iter().skip(1).map(effect).collect(),
            ..AccessDistribution::default()
        };
        Distribution { policy, told, most: BinaryHeap::new(), names: Vec::new() }
    }

    /// Counts the visible memories of a namespace. Accesses that no commit holds yet count.
    ///
    /// # Errors
    /// `Corrupted`, except for damaged rows, which are left out.
    pub(crate) fn add(&mut self, namespace: &str, field: &Field, rows: &Snapshot) -> Result<()> {
        self.names.push(namespace.to_owned());
        let mut pages = Pages::new(field, PAGE_ROWS);
        let mut never = |_| false;
        while let Page::Rows(page) =
            pages.turn(rows, &mut never, |row: &Vitals| row.times.visible_live(field.now))?
        {
            for (id, vitals) in page {
                if let Some(access) = field.access(rows, id)? {
                    self.count(id, &vitals, &access, field.now);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, id: MemoryId, vitals: &Vitals, access: &Access, now: Time) {
        let (retrievals, told) = (access.retrieval_count, &mut self.told);
        told.memories += 1;
        told.never_retrieved += u64::from(retrievals == 0);
        count_retrievals(&mut told.retrievals, retrievals);
        if let Some(mean) = mean_relevance(access) {
            count_score(&mut told.mean_relevance, mean);
        }
        let utility = utility_of(access, now, self.policy);
        count_score(&mut told.utility, utility);
        let stays = vitals.is_protected() || is_left_alone(vitals, access, self.policy, now, None);
        let level = Kind::level_of(vitals.kind_code);
        for effect in told.thresholds.iter_mut().filter(|effect| utility < effect.threshold) {
            effect.below += 1;
            if !stays {
                effect.would_go += 1;
                effect.l1 += u64::from(level == Some(1));
                effect.l2 += u64::from(level == Some(2));
                effect.bytes += u64::from(vitals.content_bytes);
            }
        }
        if retrievals > 0 {
            self.most.push(Reverse((retrievals, Reverse(id), self.names.len() - 1)));
            if self.most.len() > MOST_RETRIEVED {
                self.most.pop();
            }
        }
    }

    /// What was counted. The contexts are those that `contexts` gives for a memory of a namespace.
    ///
    /// # Errors
    /// Those of `contexts` and of `access`.
    pub(crate) fn finish(
        mut self,
        now: Time,
        mut access: impl FnMut(&str, MemoryId) -> Result<Access>,
        mut contexts: impl FnMut(&str, MemoryId) -> Result<Vec<InContext>>,
    ) -> Result<AccessDistribution> {
        let (never, all) = (self.told.never_retrieved, self.told.memories);
        self.told.never_retrieved_share = (all > 0).then(|| never as f64 / all as f64);
        for Reverse((retrieval_count, Reverse(id), at)) in self.most.into_sorted_vec() {
            let namespace = self.names.get(at).cloned().unwrap_or_default();
            let row = access(&namespace, id)?;
            self.told.most_retrieved.push(MostRetrieved {
                id,
                retrieval_count,
                mean_relevance: mean_relevance(&row),
                memory_utility_score: utility_of(&row, now, self.policy),
                last_retrieved: row.last_retrieved,
                contexts: contexts(&namespace, id)?,
                namespace,
            });
        }
        Ok(self.told)
    }
}

/// The mean of the recorded relevances of a row, 0 to 1; none without one.
fn mean_relevance(access: &Access) -> Option<f64> {
    let count = access.relevance_score_count;
    (count > 0).then(|| (access.relevance_score_sum / count as f64).clamp(0.0, 1.0))
}

fn count_score(bars: &mut [ScoreBar], score: f64) {
    if let Some(bar) = bars.iter_mut().rev().find(|bar| score >= bar.from) {
        bar.memories += 1;
    }
}

/// Counts a number of retrievals in bars of 0, 1, 2 to 3, 4 to 7 and so on, as many as there need to be.
fn count_retrievals(bars: &mut Vec<RetrievalBar>, retrievals: u64) {
    let at = retrievals.checked_ilog2().map_or(0, |power| power as usize + 1);
    while bars.len() <= at {
        let from = bars.last().map_or(0, |bar| bar.to.saturating_add(1));
        let to = if from == 0 { 0 } else { from.checked_mul(2).map_or(u64::MAX, |next| next - 1) };
        bars.push(RetrievalBar { from, to, memories: 0 });
    }
    if let Some(bar) = bars.get_mut(at) {
        bar.memories += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_retrievals_double_and_leave_nothing_out() {
        let mut bars = Vec::new();
        for retrievals in [0, 0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            count_retrievals(&mut bars, retrievals);
        }
        let first: Vec<(u64, u64, u64)> =
            bars.iter().take(5).map(|bar| (bar.from, bar.to, bar.memories)).collect();
        assert_eq!(first, [(0, 0, 2), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1)]);
        assert_eq!((bars.len(), bars.last().map(|bar| (bar.to, bar.memories))), (65, Some((u64::MAX, 1))));
    }

    #[test]
    fn a_score_is_counted_in_the_bar_at_or_below_it() {
        let mut bars: Vec<ScoreBar> =
            UTILITY_FROM.iter().map(|from| ScoreBar { from: *from, memories: 0 }).collect();
        for score in [0.0, 0.2, 0.299, 0.3, 99.0] {
            count_score(&mut bars, score);
        }
        let counted: Vec<u64> = bars.iter().map(|bar| bar.memories).collect();
        assert_eq!(counted, [1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
