//! What are the nouns that a user touches?
//!
//! Ids, namespaces, partitions, drafts, memories, holders, queries, filters, decisions, tombstones; the bounds
//! of each, the one visibility predicate ([`visible`]) and the canonical order ([`order`]).
//!
//! Invariants: a [`NamespaceName`], [`Partition`] or [`CheckedDraft`] that exists is within its bounds, because it can
//! only be made by its constructors. Every read path decides visibility by [`Times::visible`] and nothing else.
//!
//! This room knows no disk, no clock, no index, and neither the key-value store nor the record layout.
//! `record` defines what is written to disk, apart from these types.

pub mod order;
mod parts;
pub mod visible;

pub(crate) mod closed;
mod context;
mod decision;
mod distinct;
mod draft;
mod event;
mod feed;
pub(crate) mod field;
mod filter;
mod gc;
mod goal;
pub(crate) mod hex;
mod history;
mod id;
mod kept;
mod kind;
mod limbo;
mod memory;
mod name;
mod pass;
mod past;
mod payload;
mod period;
mod query;
mod run;
mod series;
mod span;
mod thread;
mod time;
mod usage;
mod vitals;

pub use context::{Bucket, ContextDraft, ContextLog, ContextReport, InContext, Included, Inclusion};
pub use decision::{Decision, Evidence, Hint, KeptForOthers, Outcome, RuleId, SupersedeReport};
pub use distinct::{DistinctQuery, DistinctValue, DistinctValues};
pub use draft::{CheckedDraft, Draft, Expiry, Patch};
pub(crate) use draft::{IMPORT_TAGS, PINNED_TAG, PROCEDURE_TAG, check_content, check_patch, is_blank};
pub(crate) use event::is_zero;
pub use event::{Aggregate, AggregateType, Event, EventDecision, EventQuery, EventsOf, FamilyFingerprint};
pub use feed::{ChangeNote, Changes};
pub use field::{Attachment, Embed, Entity, Field, Fields, Link, TimeRange};
pub(crate) use field::{
    Shown, check_categories, check_entities, check_links, check_metadata, check_tags, memory_fields, widened,
};
pub use filter::{Filter, Needs, RowView, VitalsView};
pub(crate) use filter::{MetaTest, MetaValue, MetaWanted, Scalar, check_index_key};
pub(crate) use gc::Belonging;
pub use gc::{GcProbe, GroupState, PlanState, ProbeSource, RecallGuard, Refusal};
pub(crate) use goal::check_goal;
pub use goal::{Goal, GoalDraft};
pub use history::{Actor, Delta, JournalRow, Op, Tombstone, TombstoneReason};
pub(crate) use id::random;
pub use id::{AggregateId, EventId, GoalId, IdSource, MemoryId, RandomIds, RunId};
pub use kept::{Family, Joint, Kept, Run};
pub use kind::{AuthorKind, ExpiresBy, Kind, Significance, State, SupersedeMode, Tier};
pub use limbo::{LedLink, Limbo};
pub(crate) use memory::{EXPIRY_CODE, NOT_TOLD, REPLACES_CODE, SOURCES_CODE, VECTOR_CODE};
pub use memory::{Holder, Memory};
pub use name::{AgentName, Name, NamespaceName, Partition, Scope, check_key, check_text};
pub(crate) use parts::Parts;
pub use parts::{Access, Content};
pub(crate) use pass::passes;
pub use pass::{Pass, Stage};
pub(crate) use past::check_known;
pub use past::{PastPlan, PointInTime, PurgeHorizon};
pub use payload::Payload;
pub(crate) use period::{Period, Periods};
pub(crate) use query::Ranked;
pub use query::{
    Effort, Forgotten, Hit, Mode, Page, PageRequest, Query, RenameReport, RestoreReport, SearchPlan, Signals,
    StandsFor,
};
pub use run::{RunPage, RunReport, RunSort, RunState, RunStatus};
pub(crate) use series::{series_place, snapshot_time};
pub use span::Span;
pub(crate) use thread::{PLACE_NAMES, thread_place};
pub use time::Time;
pub use usage::Usage;
pub use visible::{Announced, Overtaken, Supersession, Times};
pub(crate) use vitals::{Counted, Life};
pub use vitals::{Place, Vitals};
