//! Who may come in, and what happens at the same time?
//!
//! The door of the database: opening and closing, the queue in which concurrent writers share a commit, the
//! published state that readers see, the clock and the ids that everything below is given. [`Database`] is the
//! public face.
//!
//! Invariants: a write is answered only after its commit is published, so a caller reads its own write; a unit is
//! whole in one transaction; what one unit does wrong costs no other unit; readers take no lock that a sync is
//! made under; transaction time never runs backwards.
//!
//! It alone reads a clock. It decides nothing about memories: `ingest` does, and `ledger` writes.

// The documentation of `Database` and `Namespace` shows their methods in the order of these lines: first what every host calls.
mod database;
mod namespace;
mod write;

mod forget;

mod access;
mod at_work;
mod attached;
mod audit;
mod batch;
mod builder;
mod clock;
mod commit;
mod consolidate;
mod context;
mod copies;
mod deadline;
mod distribution;
mod documents;
mod embed;
mod failed;
mod fsck;
mod gc;
mod gc_guard;
mod gc_run;
mod goal;
mod handles;
mod in_force;
mod inner;
mod kept;
mod lease;
mod maintain;
mod metadata;
mod options;
mod pace;
mod past;
mod prune;
mod queue;
mod reads;
mod rebuild;
mod relocate;
mod replace;
mod runs;
mod scorer;
mod scores;
mod series;
mod session;
mod state;
mod summaries;
mod sweep;
mod sweeper;
mod sync;
mod unfinished;
mod upkeep;

pub(crate) use at_work::AtWork;
pub use audit::NamespaceAudit;
pub use batch::Batch;
pub use builder::Builder;
pub use clock::{Clock, ManualClock, SystemClock};
pub use consolidate::ConsolidateReport;
pub use copies::{CompactReport, LostKey};
pub use database::Database;
pub use documents::{DedupJob, ProfileCollapseOptions, collapse_operational_profile_snapshots};
pub use embed::{EmbeddingSpace, Reembedded};
pub use failed::FailedPass;
pub use forget::{Doomed, Forget, ForgetPlan};
pub use fsck::FsckReport;
pub use gc_run::{Expanded, GcRunOptions, GcRunReport};
pub use kept::PutBack;
pub use maintain::MaintainReport;
pub use namespace::Namespace;
pub use options::{DedupOptions, MaintainOptions};
pub use prune::PruneSimulation;
pub use reads::Snapshot;
pub(crate) use relocate::SOURCE_NAMESPACE;
pub use relocate::{RenamespaceOptions, RenamespaceReport};
pub use runs::Undone;
pub use summaries::SweptSummaries;
pub use sweeper::{SweepReport, Sweeper, SweeperConfig};
pub use write::WriteOptions;

pub(crate) use crate::store::disk::{folder_of, place_of};
pub(crate) use crate::store::is_database;
pub(crate) use unfinished::{clear_unfinished, unfinished_name};
