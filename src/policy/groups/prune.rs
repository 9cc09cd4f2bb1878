//! Goals, uniqueness, and pruning by them.

use serde::{Deserialize, Serialize};

use super::group;
use crate::limits::NEIGHBOURS_MAX;
use crate::model::Span;
use crate::policy::bounds::{COUNT_MAX, any, count, lasting, maybe_zero, share, weight, within};

/// Highest score that a threshold may name. Utility has no bound, but ln(1 + n) of the largest count is below 100.
const SCORE_MAX: f64 = 1_000.0;

group! {
    /// What goals say of a memory, beside its utility.
    Goal {
        /// Weight of the utility in the final score.
        w_mus: f64 = 0.6, weight;
        /// Weight of the relevance to goals in the final score.
        w_goal: f64 = 0.4, weight;
        /// Weight of the relevance to goals in the importance of a memory for the store.
        w_mis_goal: f64 = 0.7, weight;
        /// Weight of the uniqueness in the importance of a memory for the store.
        w_mis_unique: f64 = 0.3, weight;
    }
}

group! {
    /// How a memory differs from all others.
    Sus {
        /// Number of nearest memories that are looked at, 1 to 999.
        neighbours: u32 = 20, count(1, NEIGHBOURS_MAX as u64);
    }
}

group! {
    /// Pruning of consolidated memories by age, use and goals.
    Prune {
        /// Whether the pass `prune` removes anything.
        enabled: bool = false, any;
        /// What decides: `age`, `mus`, `hybrid` or `both`.
        mode: PruneMode = PruneMode::Both, any;
        /// Scores decide only when a kind has at least this many visible memories; 0: always.
        max_rows: u64 = 0, count(0, COUNT_MAX);
        /// Scores decide only when the texts of a kind have at least this many bytes; 0: always.
        max_bytes: u64 = 0, count(0, COUNT_MAX);
        /// Visible memories of a kind that scores leave, however low they are.
        target_count: u64 = 0, count(0, COUNT_MAX);
        /// Days after its last retrieval for which a memory is left alone; 0 is off.
        cooldown_days: f64 = 7.0, within(0.0, 36_525.0);
        /// Steps after its last retrieval for which a memory is left alone, where the host counts steps; 0 is off.
        cooldown_steps: u64 = 0, count(0, COUNT_MAX);
        /// A memory whose best recorded relevance is above this is not pruned for its score.
        protect_relevance: f64 = 0.9, share;
        /// A memory that is at least this relevant to a goal is not pruned in the mode `hybrid`.
        protect_goal: f64 = 0.8, share;
        /// Steps between two looks at a level whose own `every_steps` is 0; 0 is always.
        every_steps: u64 = 100, count(0, COUNT_MAX);
        /// Of equal scores, memories that are at least this unique go last in the mode `hybrid`.
        unique_last: f64 = 0.5, share;
        /// What a year beyond the first 30 days of age adds to a threshold.
        age_slope: f64 = 0.0, within(0.0, SCORE_MAX);
        /// Share by which a threshold grows while goals do not change, reached after 30 days.
        stability_gain: f64 = 0.0, within(0.0, SCORE_MAX);
        @group /// Summaries of a session: memories of the kind `consolidated_summary`.
        l1: PruneSession;
        @group /// Summaries of a chapter: memories of the kind `chapter_summary`.
        l2: PruneChapter;
    }
}

/// What decides about pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneMode {
    /// Age alone.
    Age,
    /// Utility alone.
    Mus,
    /// Age, or a low final score: utility and relevance to goals.
    Hybrid,
    /// Age, or a low utility.
    Both,
}

group! {
    /// Pruning of summaries of a session.
    PruneSession {
        /// Score below which a summary may go.
        mus: f64 = 0.2, within(0.0, SCORE_MAX);
        /// Share of these summaries that goes at each look, the lowest scores first, in place of the threshold; 0 is off.
        bottom: f64 = 0.0, share;
        /// Steps after its own step from which on a summary is too old; 0 is off.
        max_steps: u64 = 0, count(0, COUNT_MAX);
        /// Steps after its consolidation into a summary of a chapter from which on a summary is too old.
        delay_steps: u64 = 10, count(0, COUNT_MAX);
        /// Age from which on a score may decide; without steps, also the time after the consolidation.
        min_age: Span = Span::from_days(7), maybe_zero;
        /// Steps between two looks at these summaries; 0: `prune.every_steps`.
        every_steps: u64 = 50, count(0, COUNT_MAX);
    }
}

group! {
    /// Pruning of summaries of a chapter.
    PruneChapter {
        /// Score below which a summary may go.
        mus: f64 = 0.3, within(0.0, SCORE_MAX);
        /// Share of these summaries that goes at each look, the lowest scores first, in place of the threshold; 0 is off.
        bottom: f64 = 0.0, share;
        /// Steps after its own step from which on a summary is too old; 0 is off.
        max_steps: u64 = 0, count(0, COUNT_MAX);
        /// Age above which a summary is too old.
        max_age: Span = Span::from_days(30), lasting;
        /// Age from which on a score may decide.
        min_age: Span = Span::from_days(14), maybe_zero;
        /// Steps between two looks at these summaries; 0: `prune.every_steps`.
        every_steps: u64 = 150, count(0, COUNT_MAX);
    }
}

group! {
    /// Clusters of memories with near vectors.
    Cluster {
        /// Whether the pass `cluster` runs as a stage of a sweep.
        enabled: bool = false, any;
        /// Least cosine of two members of a cluster that are neighbours.
        cosine: f64 = 0.92, within(0.5, 1.0);
        /// How long nobody may have called before a sweeper looks for clusters; 0 does not wait.
        idle_after: Span = Span::from_mins(10), maybe_zero;
        /// Whether members that add little to their representative go to limbo.
        prune: bool = false, any;
        /// Utility from which on a member stays.
        keep_mus: f64 = 0.3, within(0.0, SCORE_MAX);
    }
}

group! {
    /// Protection that use earns.
    Protect {
        /// Number of retrievals from which on a memory is protected from pruning for a while; 0 is off.
        retrievals: u64 = 0, count(0, COUNT_MAX);
        /// How long, from the last retrieval on.
        period: Span = Span::from_days(30), lasting;
    }
}
