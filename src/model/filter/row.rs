//! What a filter sees of a row, and which parts of it a filter needs.

use crate::model::field::Entity;
use crate::model::id::MemoryId;
use crate::model::name::Partition;
use crate::model::parts::{Access, Content};
use crate::model::vitals::Vitals;

/// The part of a row that is always at hand.
#[derive(Clone, Copy, Debug)]
pub struct VitalsView<'a> {
    /// The id.
    pub id: MemoryId,
    /// The partition.
    pub partition: &'a Partition,
    /// The hot part.
    pub vitals: &'a Vitals,
}

/// A whole row. Parts that a filter does not need may be empty.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    /// The id.
    pub id: MemoryId,
    /// The partition.
    pub partition: &'a Partition,
    /// The hot part.
    pub vitals: &'a Vitals,
    /// The cold part.
    pub content: &'a Content,
    /// The statistics.
    pub access: &'a Access,
    /// All keys that the memory answers to.
    pub keys: &'a [String],
    /// The union of the categories of all holders.
    pub categories: &'a [String],
    /// The union of the entities of all holders.
    pub entities: &'a [Entity],
    /// The provenance.
    pub sources: &'a [MemoryId],
}

impl<'a> RowView<'a> {
    /// The part of the row that is always at hand.
    pub fn hot(&self) -> VitalsView<'a> {
        VitalsView { id: self.id, partition: self.partition, vitals: self.vitals }
    }
}

/// Which parts of a row a filter reads, besides the hot part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Content`].
    pub content: bool,
    /// [`Access`].
    pub access: bool,
    /// Keys.
    pub keys: bool,
    /// Categories, entities and sources.
    pub links: bool,
}
