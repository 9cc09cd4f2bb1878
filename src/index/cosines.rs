//! Cosines of single memories, from the codes of their vectors or from the vectors. A search by words asks for those of its
//! candidates.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Result, sound};
use crate::index::published::Published;
use crate::index::view::View;
use crate::model::MemoryId;
use crate::record::slots_per_block;
use crate::store::{IndexId, NsId, PartId, Read, Rows, SpaceId};
use crate::vector::{QueryCode, UnitVector, dot_f32};

/// A cosine of a memory and a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cosine {
    pub(crate) value: f32,
    /// How far the cosine of the vectors may be from this value, but for a chance of some in a hundred million; 0 if it is
    /// that of the vectors.
    pub(crate) error: f32,
}

impl Cosine {
    /// That of the vectors.
    pub(crate) fn exact(value: f32) -> Self {
        Cosine { value, error: 0.0 }
    }
}

/// The codes of one embedding space against one query.
pub(crate) struct Cosines<'q> {
    published: &'q Published,
    space: SpaceId,
    query: &'q UnitVector,
    code: QueryCode,
    /// None for an index without an image, which is read slot by slot.
    views: HashMap<IndexId, Option<Arc<View>>>,
}

impl<'q> Cosines<'q> {
    pub(crate) fn of(published: &'q Published, space: SpaceId, query: &'q UnitVector) -> Self {
        Cosines { published, space, query, code: QueryCode::new(query), views: HashMap::new() }
    }

    /// The cosine of the memory in a slot; none if the slot belongs to another memory. If the index has an image, the
    /// cosine is that of the codes. Otherwise it is that of the vectors.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn cosine(
        &mut self,
        ns: NsId,
        part: PartId,
        slot: u32,
        id: MemoryId,
    ) -> Result<Option<Cosine>> {
        let index = IndexId { ns, part, space: self.space };
        if !self.views.contains_key(&index) {
            self.views.insert(index, self.published.loaded(index));
        }
        if let Some(Some(view)) = self.views.get(&index) {
            return Ok(view.cosine(slot, id, &self.code).map(|value| {
                let error = self.code.likely_upper(value, view.step(slot)) - value;
                Cosine { value, error }
            }));
        }
        if !sound(self.is_own(index, slot, id))?.unwrap_or(false) {
            return Ok(None);
        }
        Ok(self.of_vectors(ns, part, slot)?.map(Cosine::exact))
    }

    /// The cosine of the vector in a slot that is known to be that of the memory; none if the vector can't be read.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn of_vectors(&self, ns: NsId, part: PartId, slot: u32) -> Result<Option<f32>> {
        let index = IndexId { ns, part, space: self.space };
        let mut vector = Vec::new();
        let read = self.published.snapshot().vector(index, self.query.dim(), slot, &mut vector);
        Ok(sound(read)?.unwrap_or(false).then(|| dot_f32(self.query.as_slice(), &vector)))
    }

    /// Whether a slot holds a memory. A memory with a vector of another space has its slot in another index.
    fn is_own(&self, index: IndexId, slot: u32, id: MemoryId) -> Result<bool> {
        let dim = self.query.dim();
        let per = slots_per_block(dim) as u32;
        let block = self.published.snapshot().slot_block(index, slot / per, dim)?;
        let meta = block.as_ref().and_then(|block| block.meta((slot % per) as usize));
        Ok(meta.is_some_and(|meta| !meta.is_vacant() && meta.id == id))
    }
}
