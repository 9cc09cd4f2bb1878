//! Which old memories make room for a summary, and what a summary may be.

use serde::{Deserialize, Serialize};

use super::group;
use crate::limits::{PLAN_GROUPS_MAX, QUERY_LOG_MAX};
use crate::model::Span;
use crate::policy::bounds::{any, count, kind, lasting, maybe_zero, set, tag, within};
use crate::policy::{bounds, words};

group! {
    /// Plans of maintenance, and summaries in place of old memories.
    Gc {
        /// How long a plan may be carried out.
        plan_ttl: Span = Span::from_hours(24), lasting;
        /// Least time from one plan of a namespace to the next that a sweeper makes.
        interval: Span = Span::from_hours(6), maybe_zero;
        /// How long a sweeper waits for a summary; after three late answers in a row it asks for no more in that sweep.
        deadline: Span = Span::from_mins(2), lasting;
        /// Age above which a memory may be summarized.
        age_min: Span = Span::from_hours(24 * 14), maybe_zero;
        /// Decayed number of inclusions below which a memory may be summarized.
        access_threshold: f64 = 0.8, within(0.0, 1_000_000.0);
        /// How long a memory that a summary covered is left alone.
        resummarize_after: Span = Span::from_hours(24 * 30), maybe_zero;
        /// Kinds of memories that are summarized.
        kinds: Vec<String> = words::list("message assistant_message tool_result aggregate"), set(kind);
        /// Kinds of memories that are never summarized.
        never_kinds: Vec<String> = words::list("system developer admin summary"), set(kind);
        /// Tags whose memories are never summarized.
        never_tags: Vec<String> = words::list("pinned critical"), set(tag);
        /// Whether summaries are summarized again.
        allow_nested: bool = false, any;
        /// What makes memories one group, the first that applies: `family`, `thread`, `channel_day`.
        group_by: Vec<GroupBy> = vec![GroupBy::Family, GroupBy::Thread, GroupBy::ChannelDay], set(any);
        /// Largest number of memories of a group.
        max_sources: u32 = 200, count(1, 200);
        /// Largest number of tokens of a group.
        max_tokens: u64 = 60_000, count(1, bounds::COUNT_MAX);
        /// Least number of memories of a group.
        min_group: u32 = 2, count(1, 200);
        /// Largest number of groups of a plan.
        max_groups: u32 = 10, count(1, PLAN_GROUPS_MAX.into());
        /// What a changed source does to its group: `refuse` or `skip`.
        on_conflict: OnConflict = OnConflict::Refuse, any;
        /// Whether any use since the plan refuses a source; otherwise only a use past the threshold does.
        strict_use: bool = true, any;
        /// Whether summarized memories go to limbo.
        delete_sources: bool = true, any;
        /// Number of events that a summary keeps.
        max_bullets: u32 = 25, count(1, 40);
        /// Number of patterns of spam that a summary keeps.
        max_patterns: u32 = 10, count(0, 256);
        /// Questions that are asked of the sources of a group before and after its summary: past queries that had found one of
        /// them, where these are kept, and else questions that are made of the most specific words of the sources.
        auto_probes: u32 = 3, count(0, 100);
        /// Whether the queries of tracked searches are kept as questions for summaries. They tell of whoever asked.
        keep_queries: bool = false, any;
        /// Number of queries that are kept of a partition: the latest ones.
        query_log: u32 = 1_000, count(1, QUERY_LOG_MAX);
        /// Number of hits among which a question must find the summary.
        probe_k: u32 = 10, count(1, 100);
        /// How often the writer of a summary is asked again when the answer is no summary.
        repair_attempts: u32 = 1, count(0, 10);
        /// Least share of the questions that found a source and must find the summary; below it the commit is refused. 0: only
        /// report.
        recall_floor: f64 = 0.0, within(0.0, 1.0);
        /// What becomes of a summary when one of its sources is forgotten: `mark` or `retire`.
        on_source_forget: OnSourceForget = OnSourceForget::Mark, any;
        /// Length of the summaries of the built-in summarizer, as a share of the tokens of their sources.
        summary_tokens: f64 = 0.2, within(0.001, 1.0);
    }
}

group! {
    /// What a report on summaries and repeated messages tells.
    Report {
        /// Time that a report covers, unless the call names its beginning.
        interval: Span = Span::from_hours(1), lasting;
        /// Largest number of families of repeated messages, and of filters against them.
        top_families: u32 = 5, count(1, 1_000);
        /// Largest number of signs that are new.
        new_patterns: u32 = 5, count(1, 1_000);
    }
}

group! {
    /// What the tools for language models may do.
    Tools {
        /// Whether one tool may write a summary and put it in the place of its sources.
        allow_combined: bool = false, any;
    }
}

/// What makes memories one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// The same family of repeated messages.
    Family,
    /// The same thread or chain of replies.
    Thread,
    /// The same channel and UTC day.
    ChannelDay,
}

/// What becomes of a summary when one of its sources is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSourceForget {
    /// The summary says how many were.
    Mark,
    /// The summary goes to limbo, because it may still tell what they said.
    Retire,
}

/// What a changed source does to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The group is refused.
    Refuse,
    /// The source stays as it is, without the summary.
    Skip,
}
