#![doc = "An embedded memory database for AI agents."]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod hygiene;
mod index;
mod ingest;
mod ledger;
pub mod limits;
pub mod model;
pub mod policy;
mod record;
mod store;
mod text;
mod vector;

pub use error::{Error, ErrorKind, Result};
pub use hygiene::{CheckOptions, CheckReport, ErasedProbe, Finding};
pub use model::{
    Access, Actor, Attachment, AuthorKind, Content, Decision, Delta, Draft, Embed, Entity, Evidence, Expiry,
    Field, Fields, Filter, Forgotten, Hint, Hit, Holder, HolderFate, IdSource, JournalRow, Kind, Link,
    Memory, MemoryId, Namespace, Outcome, Page, PageRequest, Partition, Patch, Query, RandomIds, RuleId,
    RunId, Scope, SearchPlan, Significance, Span, State, Summary, SupersedeMode, Supersession, Tier, Time,
    TimeRange, Tombstone, TombstoneReason, Vitals,
};
pub use store::Durability;
