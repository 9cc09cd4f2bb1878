//! Access accounting, the summary GC, its report, and the tools.

use serde::Deserialize;
use serde::Serialize;

use super::group;
use crate::limits::K_MAX;
use crate::policy::Span;
use crate::policy::bounds::any;
use crate::policy::bounds::count;
use crate::policy::bounds::days;
use crate::policy::bounds::kind;
use crate::policy::bounds::lasting;
use crate::policy::bounds::maybe_zero;
use crate::policy::bounds::set;
use crate::policy::bounds::share;
use crate::policy::bounds::some;
use crate::policy::bounds::tag;
use crate::policy::bounds::within;
use crate::policy::words;

group! {
    /// Accounting of inclusions in a context.
    Access {
        /// Time constant of the inclusion counter in days, above 0; 14 to 30 is sensible (GC-2).
        tau_days: f64 = 21.0, days;
    }
}

group! {
    /// Summary GC: old messages that nobody uses become summaries.
    Gc {
        /// Age that a candidate must exceed; 0 asks for none (GC-5).
        age_min: Span = Span::days(14), maybe_zero;
        /// Decayed inclusions that a candidate must stay below (GC-5).
        access_threshold: f64 = 0.8, within(0.0, 1_000_000.0);
        /// Time between two plans (GC-8).
        interval: Span = Span::minutes(360), lasting;
        /// Age of a summarization after which a source is a candidate again (GC-5).
        resummarize_after: Span = Span::days(30), lasting;
        /// Kinds that can be candidates (GC-5).
        kinds: Vec<String> = words::list("message assistant_message tool_result aggregate"), set(kind);
        /// Kinds that never are candidates, whatever `gc.kinds` says (GC-5).
        never_kinds: Vec<String> = words::list("system developer admin summary"), set(kind);
        /// Tags whose rows never are candidates (GC-5).
        never_tags: Vec<String> = words::list("pinned critical"), set(tag);
        /// Whether a summary can be summarized again (GC-5).
        allow_nested: bool = false, any;
        /// What makes a group, the first that applies: `family`, `thread`, `channel_day` (GC-6).
        group_by: Vec<GroupBy> = vec![GroupBy::Family, GroupBy::Thread, GroupBy::ChannelDay], some(any);
        /// Sources of one group, 1 to 200 (GC-6).
        max_sources: u32 = 200, count(1, 200);
        /// Source tokens of one group, 1 to 1000000 (GC-6).
        max_tokens: u32 = 60_000, count(1, 1_000_000);
        /// Sources below which a group is dropped, 1 to 200 (GC-6).
        min_group: u32 = 2, count(1, 200);
        /// Groups of one plan, 1 to 50 (GC-6).
        max_groups: u32 = 10, count(1, 50);
        /// How long a plan stays open (GC-9).
        plan_ttl: Span = Span::hours(24), lasting;
        /// What a changed source does to its group: `refuse` or `skip` (GC-16).
        on_conflict: OnConflict = OnConflict::Refuse, any;
        /// Whether any use of a source since the plan refuses its group (GC-16).
        strict_use: bool = true, any;
        /// Calls of the repair hook for one invalid summary (GC-23).
        repair_attempts: u32 = 1, count(0, 10);
        /// Whether sources are removed when their summary is committed (GC-13).
        delete_sources: bool = true, any;
        /// Bullets of a summary that are kept, 1 to 40 (GC-21).
        max_bullets: u32 = 25, count(1, 40);
        /// Spam patterns of a summary that are kept (GC-21).
        max_patterns: u32 = 10, count(0, 10);
        /// Probe queries that are sampled for each group (GC-26).
        auto_probes: u32 = 3, count(0, 100);
        /// Results among which a probe must find the summary (GC-26).
        probe_k: u32 = 10, count(1, K_MAX as u64);
        /// Least share of probes that still hit, 0 to 1; 0 only reports (GC-27).
        recall_floor: f64 = 0.0, share;
    }
}

/// What makes a group of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// The spam family.
    Family,
    /// The thread or reply chain.
    Thread,
    /// The channel and the UTC day.
    ChannelDay,
}

/// What a source that changed since the plan does to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The whole group is refused.
    Refuse,
    /// The source stays alive, the rest is committed.
    Skip,
}

group! {
    /// The GC report.
    Report {
        /// Time between two reports (GC-28).
        interval: Span = Span::minutes(60), lasting;
        /// Spam families in a report (GC-28).
        top_families: u32 = 5, count(0, 1_000);
        /// New patterns in a report (GC-28).
        new_patterns: u32 = 5, count(0, 1_000);
    }
}

group! {
    /// Tool calls.
    Tools {
        /// Whether one tool may summarize and delete in one call (GC-35).
        allow_combined: bool = false, any;
    }
}
