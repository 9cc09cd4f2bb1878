#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod embed;
mod engine;
mod error;
pub mod exchange;
mod hnsw;
mod hygiene;
mod index;
mod ingest;
mod ledger;
pub mod limits;
mod model;
pub mod policy;
mod recall;
mod record;
mod store;
mod text;
mod vector;

#[cfg(feature = "static-mini")]
#[cfg_attr(docsrs, doc(cfg(feature = "static-mini")))]
pub use embed::StaticMini;
pub use embed::{Embedder, FnEmbedder, HashEmbedder, embedder_fn};
#[cfg(feature = "minilm")]
#[cfg_attr(docsrs, doc(cfg(feature = "minilm")))]
pub use embed::{MiniLm, Precision};
#[cfg(feature = "openai")]
#[cfg_attr(docsrs, doc(cfg(feature = "openai")))]
pub use embed::{OpenAiEmbedder, OpenAiOptions};
pub use engine::{
    Batch, Builder, Clock, CompactReport, Database, DedupJob, DedupOptions, Doomed, EmbeddingSpace, Forget,
    ForgetPlan, MaintainOptions, MaintainReport, ManualClock, ProfileCollapseOptions, PutBack, Reembedded,
    RestoreReport, Snapshot, SystemClock, Undone, WriteOptions, collapse_operational_profile_snapshots,
};
pub use error::{Error, ErrorKind, Result};
pub use hygiene::{
    Briefed, CheckOptions, CheckReport, DedupAction, DedupReport, ErasedProbe, Finding, IndexReport,
    KeptApart, MaintenancePlan, MergeTotals, NearDuplicateReport, PassDetails, PassReport,
    ProfileCollapseGroupSample, ProfileCollapseReport, PruneHistoryReport, RepairReport,
    RepairSupersessionReport,
};
pub use model::{
    Actor, Aggregate, AggregateId, AggregateType, Attachment, AuthorKind, Decision, Delta, Draft, Effort,
    Embed, Entity, Event, EventDecision, EventId, EventQuery, EventsOf, Evidence, ExpiresBy, Expiry, Family,
    FamilyFingerprint, Field, Fields, Filter, Forgotten, Hint, Hit, Holder, IdSource, Joint, JournalRow,
    Kept, Kind, LedLink, Limbo, Link, Memory, MemoryId, Mode, NamespaceName, Op, Outcome, Page, PageRequest,
    Partition, Pass, Patch, Query, RandomIds, RuleId, Run, RunId, RunSort, RunState, Scope, SearchPlan,
    Signals, Significance, Span, State, SupersedeMode, Supersession, Tier, Time, TimeRange, Tombstone,
    TombstoneReason,
};
pub use recall::{
    AgentStats, Around, BytesStats, DateRange, Explanation, FileStats, Got, HealthStats, History, IndexStats,
    LastRun, LocalStats, MemoryCounts, MemoryHealth, MemoryStats, Origin, PurgeHorizon, Removal,
    SearchResult, Stats, TableStats, VectorStats, Version, Why,
};
pub use store::Durability;
pub use text::Guard;

/// The seam between the store and the disk, for the crash simulator and the fuzz targets of the project. Not part of
/// what the versions of this crate promise.
#[cfg(feature = "faults")]
#[doc(hidden)]
pub mod faults {
    pub use crate::record::decode_any;
    pub use crate::store::disk::{BackendError, Disk, FileId, OpenFile, StorageBackend};
    pub use crate::store::tally::Tally;

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
            Candidates, Codes, QueryCode, Ranking, TopK, UnitVector, dot_f32, dot_f32_many, dot_i8,
            dot_i8_gather, dot_i8_many, encode, instruction_set, unit_scale,
        };
    }
}

/// The pages of `docs/` whose examples are tests.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../docs/policy.md")]
    mod policy {}
    #[doc = include_str!("../docs/design.md")]
    mod design {}
    #[doc = include_str!("../docs/format.md")]
    mod format {}
    #[doc = include_str!("../docs/architecture.md")]
    mod architecture {}
    #[doc = include_str!("../docs/embedders.md")]
    mod embedders {}
}
