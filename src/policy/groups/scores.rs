//! Retention, confidence, utility and goals, and what is promoted, demoted, pruned or clustered by them.

use serde::Deserialize;
use serde::Serialize;

use super::group;
use crate::limits::CONTENT_BYTES_MAX;
use crate::limits::K_MAX;
use crate::policy::Span;
use crate::policy::bounds::COUNT_MAX;
use crate::policy::bounds::any;
use crate::policy::bounds::cosine;
use crate::policy::bounds::count;
use crate::policy::bounds::days;
use crate::policy::bounds::kind;
use crate::policy::bounds::lasting;
use crate::policy::bounds::maybe_zero;
use crate::policy::bounds::set;
use crate::policy::bounds::share;
use crate::policy::bounds::within;
use crate::policy::words;

group! {
    /// Recency in the RetentionScore.
    Retention {
        /// Time constant of recency in days, above 0 (LIFE-12).
        tau_days: f64 = 7.0, days;
        /// How much use stretches the time constant; a server sets 1 (LIFE-12).
        spacing: f64 = 0.0, within(0.0, 1_000.0);
        /// Form of the decay: `exp` or `half_life` (LIFE-12).
        form: RetentionForm = RetentionForm::Exp, any;
        /// Whether recency counts for durable rows too (LIFE-13).
        recency_all: bool = false, any;
    }
}

/// Form of the recency decay over age / S.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionForm {
    /// exp(-age / S).
    Exp,
    /// 2^(-age / S).
    HalfLife,
}

group! {
    /// Weight of each tier in salience, 0 to 1.
    Salience {
        /// Tier procedural (LIFE-11).
        procedural: f64 = 0.95, share;
        /// Tier semantic (LIFE-11).
        semantic: f64 = 0.90, share;
        /// Tier episodic (LIFE-11).
        episodic: f64 = 0.55, share;
        /// Tier working (LIFE-11).
        working: f64 = 0.30, share;
        /// A tier that this build does not know (LIFE-11).
        unknown: f64 = 0.5, share;
    }
}

group! {
    /// Confidence of durable rows, 0 to 1.
    Confidence {
        /// Seed of a fresh row (LIFE-15).
        fresh: f64 = 0.40, share;
        /// Seed of an imported row (LIFE-15).
        imported: f64 = 0.25, share;
        /// Most that a caller can give (LIFE-15).
        caller_max: f64 = 0.70, share;
        /// Least that decay and contradiction leave (LIFE-14).
        floor: f64 = 0.05, share;
        /// Loss for each week without use after the first (LIFE-14).
        weekly_loss: f64 = 0.05, share;
        /// Share of the distance to 1 that one use gains (LIFE-16).
        growth: f64 = 0.1, share;
        /// Least time between two gains of a row (LIFE-16).
        growth_gap: Span = Span::hours(24), lasting;
    }
}

group! {
    /// Promotion of short-term rows.
    Promote {
        /// Accesses that a row needs (LIFE-23).
        access: u32 = 3, count(1, u64::from(u32::MAX));
        /// Time between two consolidations (LIFE-23).
        interval: Span = Span::hours(24), lasting;
        /// Rows given to the Summarizer at once (LIFE-23).
        batch: u32 = 20, count(1, 10_000);
        /// Characters up to which content is promoted verbatim when there is no Summarizer (LIFE-23).
        verbatim_max: u32 = 240, count(0, CONTENT_BYTES_MAX as u64);
    }
}

group! {
    /// Demotion of stale durable rows.
    Demote {
        /// Importance below which profile `v1` demotes, 0 to 1 (LIFE-24).
        importance: f64 = 0.5, share;
        /// Which bar holds: `v1` or `v2` (LIFE-24).
        profile: DemoteProfile = DemoteProfile::V1, any;
        /// Kinds that are never demoted (LIFE-24).
        exempt_kinds: Vec<String> = words::list(
            "snapshot summary aggregate consolidated_summary chapter_summary system developer admin",
        ), set(kind);
        /// Importance below which profile `v2` demotes, 0 to 1 (LIFE-24).
        v2_importance: f64 = 0.75, share;
        /// Effective confidence below which profile `v2` demotes, 0 to 1 (LIFE-24).
        v2_confidence: f64 = 0.35, share;
    }
}

/// The bar for demotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemoteProfile {
    /// Importance only.
    V1,
    /// Importance and effective confidence, and not with the tag `handoff`.
    V2,
}

group! {
    /// Utility of a memory (MUS), from its retrievals.
    Mus {
        /// Weight of the retrieval frequency, 0 to 1 (LIFE-19).
        w_frequency: f64 = 0.4, share;
        /// Weight of the mean relevance, 0 to 1 (LIFE-19).
        w_relevance: f64 = 0.4, share;
        /// Weight of the recency, 0 to 1 (LIFE-19).
        w_recency: f64 = 0.2, share;
        /// Retrievals at which the frequency part reaches 1; 0 is off, it is unbounded (LIFE-19).
        saturate_at: u64 = 0, count(0, COUNT_MAX);
    }
}

group! {
    /// Goals in the final score and in the importance to goals (MIS).
    Goal {
        /// Weight of utility in Final_Score, 0 to 1 (LIFE-22).
        w_mus: f64 = 0.6, share;
        /// Weight of the relevance to goals in Final_Score, 0 to 1 (LIFE-22).
        w_goal: f64 = 0.4, share;
        /// Weight of the relevance to goals in MIS, 0 to 1 (LIFE-21).
        w_mis_goal: f64 = 0.7, share;
        /// Weight of uniqueness in MIS, 0 to 1 (LIFE-21).
        w_mis_unique: f64 = 0.3, share;
    }
}

group! {
    /// Semantic uniqueness (SUS).
    Sus {
        /// Nearest memories that are looked at (LIFE-21).
        neighbours: u32 = 20, count(1, K_MAX as u64);
    }
}

group! {
    /// Pruning by utility and goals.
    Prune {
        /// Whether pruning runs at all; tracking always does (LIFE-30).
        enabled: bool = false, any;
        /// Which rules prune: `age`, `mus`, `hybrid` or `both` (LIFE-30).
        mode: PruneMode = PruneMode::Both, any;
        /// Rows or bytes of a kind at which selective pruning starts; 0 is off (LIFE-35).
        size_threshold: u64 = 0, count(0, COUNT_MAX);
        /// Rows of a kind that selective pruning leaves (LIFE-35).
        target_count: u64 = 0, count(0, COUNT_MAX);
        /// Days since the last retrieval in which a row is not pruned (LIFE-36).
        cooldown_days: f64 = 7.0, within(0.0, 36_525.0);
        /// Steps since the last retrieval in which a row is not pruned; 0 is off (LIFE-36).
        cooldown_steps: u64 = 0, count(0, COUNT_MAX);
        /// Largest relevance above which utility never prunes, 0 to 1 (LIFE-36).
        protect_relevance: f64 = 0.9, share;
        /// Relevance to goals from which mode hybrid keeps a row, 0 to 1 (LIFE-39).
        protect_goal: f64 = 0.8, share;
        /// Steps between two checks, when one interval serves both levels (LIFE-32).
        every_steps: u64 = 100, count(1, COUNT_MAX);
        /// Uniqueness from which mode hybrid prunes a row last, 0 to 2 (LIFE-34, LIFE-40).
        unique_last: f64 = 0.5, within(0.0, 2.0);
        /// Rise of the threshold for each year past 30 days of age (LIFE-38).
        age_slope: f64 = 0.0, within(0.0, 1_000.0);
        /// Rise of the threshold, as a share, while goals stay the same (LIFE-38).
        stability_gain: f64 = 0.0, within(0.0, 1_000.0);
        @group /// Level 1, the consolidated summaries.
        l1: PruneLevel1;
        @group /// Level 2, the chapter summaries.
        l2: PruneLevel2;
    }
}

/// Which rules prune.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneMode {
    /// Only the age rules.
    Age,
    /// Only the utility rules.
    Mus,
    /// The age rules and the selection by Final_Score (LIFE-34).
    Hybrid,
    /// Rows that match the age rule or the utility rule.
    Both,
}

group! {
    /// Pruning of level 1, the consolidated summaries.
    PruneLevel1 {
        /// Utility below which a row is pruned (LIFE-31).
        mus: f64 = 0.2, within(0.0, 1_000.0);
        /// Steps after its consolidation into level 2 at which a row is pruned (LIFE-31).
        delay_steps: u64 = 10, count(0, COUNT_MAX);
        /// Age that the utility rule asks for; 0 asks for none (LIFE-32).
        min_age: Span = Span::days(7), maybe_zero;
        /// Steps between two checks (LIFE-32).
        every_steps: u64 = 50, count(1, COUNT_MAX);
    }
}

group! {
    /// Pruning of level 2, the chapter summaries.
    PruneLevel2 {
        /// Utility below which a row is pruned (LIFE-31).
        mus: f64 = 0.3, within(0.0, 1_000.0);
        /// Age past which a row is pruned (LIFE-31).
        max_age: Span = Span::days(30), lasting;
        /// Age that the utility rule asks for; 0 asks for none (LIFE-32).
        min_age: Span = Span::days(14), maybe_zero;
        /// Steps between two checks (LIFE-32).
        every_steps: u64 = 150, count(1, COUNT_MAX);
    }
}

group! {
    /// Temporary protection of what is retrieved often.
    Protect {
        /// Retrievals that protect a row; 0 is off (LIFE-37).
        retrievals: u64 = 0, count(0, COUNT_MAX);
        /// How long the protection lasts (LIFE-37).
        period: Span = Span::days(30), lasting;
    }
}

group! {
    /// Clustering and consolidation in idle time.
    Cluster {
        /// Whether clustering runs by itself (LIFE-30).
        enabled: bool = false, any;
        /// Least cosine within a cluster, -1 to 1 (LIFE-42).
        cosine: f64 = 0.92, cosine;
        /// Time without calls after which it may start (LIFE-42).
        idle_after: Span = Span::minutes(10), lasting;
    }
}
