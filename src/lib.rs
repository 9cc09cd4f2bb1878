// The front page of the crate is README.md. Of two definitions of a link the first one counts, so here the links of that page lead to
// the pages of `documentation`, and to the files of the crate.
//! [CHANGELOG.md]: https://docs.rs/crate/oubliette/latest/source/CHANGELOG.md
//! [docs/architecture.md]: https://docs.rs/crate/oubliette/latest/source/docs/architecture.md
//! [docs/async-hosts.md]: documentation::async_hosts
//! [docs/benchmarks.md]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#beside-hnswlib-and-faiss]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#recall-after-summaries]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#recall-of-evidence]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#the-index-beside-its-peers]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#the-store]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#the-vector-index]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/benchmarks.md#what-the-text-of-a-hit-costs]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md
//! [docs/design.md]: https://docs.rs/crate/oubliette/latest/source/docs/design.md
//! [docs/embedders.md]: documentation::embedders
//! [docs/fields.md]: documentation::fields
//! [docs/format.md]: https://docs.rs/crate/oubliette/latest/source/docs/format.md
//! [docs/guide.md]: documentation::guide
//! [docs/guide.md#a-config-file-for-the-command-line]: documentation::guide#a-config-file-for-the-command-line
//! [docs/guide.md#several-clients-of-one-file]: documentation::guide#several-clients-of-one-file
//! [docs/policy.md]: documentation::policy
//! [docs/recall.md]: documentation::recall
//! [docs/reliability.md]: documentation::reliability
//! [docs/spec/model.md]: https://docs.rs/crate/oubliette/latest/source/docs/spec/model.md
//! [examples/quickstart.rs]: https://docs.rs/crate/oubliette/latest/source/examples/quickstart.rs
//! [src/bin/oubliette/demo/data/NOTICE.md]: https://docs.rs/crate/oubliette/latest/source/src/bin/oubliette/demo/data/NOTICE.md
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// What a caller can reach has a name; the seam of the tests reaches further.
#![cfg_attr(not(feature = "faults"), warn(unnameable_types))]

mod embedder;
mod engine;
mod error;
pub mod exchange;
mod hnsw;
mod hygiene;
mod index;
mod ingest;
mod json;
mod ledger;
pub mod limits;
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub mod mcp;
mod model;
pub mod policy;
mod recall;
mod record;
#[cfg(feature = "openai")]
mod server;
mod store;
mod summary;
mod text;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod tokio;
pub mod tools;
mod vector;

pub use engine::{Batch, Builder, Database, Forget, Namespace, Snapshot, WriteOptions};
pub use error::{Error, ErrorKind, Result};
pub use model::{
    Decision, Draft, Effort, Filter, Hit, Kind, Memory, MemoryId, Mode, Name, NamespaceName, Outcome, Page,
    PageRequest, Patch, Query, Scope, Span, State, Time,
};
pub use store::Durability;

/// Time and chance as arguments: what a database asks for instants and ids.
pub mod clock {
    pub use crate::engine::{Clock, ManualClock, SystemClock};
    pub use crate::model::{IdSource, RandomIds};
}

/// Vectors from texts: what an embedder is, and those that ship.
pub mod embed {
    pub use crate::embedder::*;
    pub use crate::engine::{EmbeddingSpace, Reembedded};
    pub use crate::model::Embed;
}

/// Maintenance: passes, their options, plans and reports, runs and what taking them back did.
pub mod maintain {
    pub use crate::engine::{
        ConsolidateReport, DedupJob, DedupOptions, FailedPass, FsckReport, MaintainOptions, MaintainReport,
        NamespaceAudit, ProfileCollapseOptions, PruneSimulation, RenamespaceOptions, RenamespaceReport,
        SweepReport, Sweeper, SweeperConfig, SweptSummaries, Undone, collapse_operational_profile_snapshots,
    };
    pub use crate::hygiene::{
        BackfillConfidenceReport, CapReport, ClusterReport, ClusterSample, DedupAction, DedupReport,
        DemoteReport, ExpireReport, IndexReport, KeptApart, MaintenancePlan, MergeTotals,
        NearDuplicateReport, PassDetails, PassReport, ProfileCollapseGroupSample, ProfileCollapseReport,
        PromoteReport, PruneHistoryReport, PruneReport, PruneTarget, RepairReport, RepairSupersessionReport,
        RetentionReport, Scorer, Scores, utility,
    };
    pub use crate::model::{Pass, Run, RunId, RunPage, RunReport, RunSort, RunState, RunStatus};
}

/// Summaries in place of old memories: what the writer of a summary is given, and what a summary may say.
pub mod gc {
    pub use crate::engine::{Expanded, GcRunOptions, GcRunReport};
    pub use crate::hygiene::{
        Compacted, ForgottenSources, GcCommitted, GcGroup, GcOptions, GcPlan, GcReport, GcSkipped,
        ReportedBudget, ReportedFamily, SuggestedFilter,
    };
    pub use crate::model::{GcProbe, GroupState, PlanState, ProbeSource, RecallGuard, Refusal};
    pub use crate::summary::{
        Accepted, Expected, Extractive, Fault, InputPack, PackAggregate, PackLimits, PackSource, SpamPattern,
        Summarizer, SummaryDocument, TimeSpan, accept, token_estimate,
    };
    #[cfg(feature = "openai")]
    #[cfg_attr(docsrs, doc(cfg(feature = "openai")))]
    pub use crate::summary::{ChatOptions, OpenAiSummarizer};
}

/// The parts of a memory, the messages behind it, and what stays of one that is gone.
pub mod memory {
    pub use crate::model::{
        Actor, AgentName, Aggregate, AggregateId, AggregateType, Announced, Attachment, AuthorKind, Bucket,
        ContextDraft, ContextLog, DistinctQuery, Entity, Event, EventDecision, EventId, EventQuery, EventsOf,
        ExpiresBy, Expiry, Family, FamilyFingerprint, Field, Fields, Goal, GoalDraft, GoalId, Holder,
        InContext, Included, Inclusion, Limbo, Link, Overtaken, Partition, Payload, PointInTime,
        Significance, SupersedeMode, Supersession, Tier, TimeRange, Tombstone, TombstoneReason,
    };
    pub use crate::recall::Got;
}

/// What operations answer: hits, stories, statistics, findings.
pub mod report {
    pub use crate::engine::{CompactReport, Doomed, ForgetPlan, LostKey};
    pub use crate::hygiene::{
        AccessDistribution, Briefed, Briefing, CheckOptions, CheckReport, ErasedProbe, Finding,
        MostRetrieved, RetrievalBar, ScoreBar, ThresholdEffect,
    };
    pub use crate::model::{
        ChangeNote, Changes, ContextReport, Delta, DistinctValue, DistinctValues, Evidence, Forgotten, Hint,
        KeptForOthers, Op, PastPlan, PurgeHorizon, RenameReport, RestoreReport, RuleId, SearchPlan, Signals,
        StandsFor, SupersedeReport,
    };
    pub use crate::recall::{
        AgentStats, Around, BytesStats, ChainEnd, DateRange, Explanation, FileStats, HealthStats, History,
        IndexStats, LastRun, LocalStats, MemoryCounts, MemoryHealth, MemoryStats, Origin, Removal,
        SearchResult, Stats, TableStats, VectorStats, Version, Why,
    };
    pub use crate::text::Guard;
}

/// The seam between the store and the disk, for the crash simulator and the fuzz targets of the project. Not part of
/// what the versions of this crate promise.
#[cfg(feature = "faults")]
#[doc(hidden)]
pub mod faults {
    pub use crate::record::decode_any;
    pub use crate::store::disk::{BackendError, Disk, FileId, OpenFile, StorageBackend};
    pub use crate::store::tally::Tally;

    /// Reads the vitals of memories, as the floor of a bench, and says how many there are.
    pub fn read_vitals(namespace: &crate::Namespace, ids: &[crate::MemoryId]) -> crate::Result<usize> {
        namespace.read_vitals(ids)
    }

    /// Works out what a filter demands of rows, for its fuzz target.
    pub fn demands(filter: &crate::Filter) {
        let _ = (filter.needs(), filter.required_tag(), filter.required_ids(), filter.required_keys());
        let _ = (filter.required_key_prefix(), filter.required_metadata());
    }

    /// The graph, for its bench.
    pub mod hnsw {
        pub use crate::hnsw::{Crew, Graph, Near, Points, Probe, Scratch, Verdict, level_of};
    }

    /// What is made of texts, for its fuzz target.
    pub mod text {
        pub use crate::text::{
            Guard, Guards, Messages, Operational, attachment_signature, dup_key, fingerprint, hamming,
            normal_form, same_but_spacing_and_case,
        };
    }

    /// The kernels, for their bench.
    pub mod vector {
        pub use crate::vector::{
            BIT_SLOTS, BitBlocks, BitFrame, BitQuery, Candidates, Codes, QueryCode, Ranking, TopK,
            UnitVector, Wanted, dot_f32, dot_f32_many, dot_i8, dot_i8_gather, dot_i8_many, encode,
            instruction_set, unit_scale,
        };
    }
}

/// The pages of `docs/` for users: the guide, and what it leads to.
///
/// Their examples are whole programs. The other pages tell how the crate is built, and stand beside these in its
/// [source](https://docs.rs/crate/oubliette/latest/source/docs/).
#[cfg(any(doc, doctest))]
pub mod documentation {
    /// A page, with links that lead from module to module.
    macro_rules! page {
        ($file:literal) => {
            concat!(
                "[async-hosts.md]: async_hosts\n",
                "[benchmarks.md]: https://docs.rs/crate/oubliette/latest/source/docs/benchmarks.md\n",
                "[embedders.md]: embedders\n",
                "[fields.md]: fields\n",
                "[guide.md]: guide\n",
                "[guide.md#let-summaries-take-the-place-of-old-memories]: \
                 guide#let-summaries-take-the-place-of-old-memories\n",
                "[policy.md]: policy\n",
                "[recall.md]: recall\n",
                "[recall.md#filters]: recall#filters\n",
                include_str!($file)
            )
        };
    }

    #[doc = page!("../docs/guide.md")]
    pub mod guide {}
    #[cfg(any(not(doctest), feature = "tokio"))]
    #[doc = page!("../docs/async-hosts.md")]
    pub mod async_hosts {}
    #[doc = page!("../docs/recall.md")]
    pub mod recall {}
    #[cfg(any(not(doctest), feature = "static-mini"))]
    #[doc = page!("../docs/embedders.md")]
    pub mod embedders {}
    #[doc = page!("../docs/policy.md")]
    pub mod policy {}
    #[doc = page!("../docs/fields.md")]
    pub mod fields {}
    #[doc = page!("../docs/reliability.md")]
    pub mod reliability {}
}

/// The other pages of `docs/` whose examples are tests.
#[cfg(doctest)]
mod internals {
    #[doc = include_str!("../docs/design.md")]
    mod design {}
    #[doc = include_str!("../docs/format.md")]
    mod format {}
    #[doc = include_str!("../docs/architecture.md")]
    mod architecture {}
}
