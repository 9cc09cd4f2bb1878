//! Cosines of single memories from the codes of their vectors: what a search by words knows of those that it found.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::index::published::Published;
use crate::index::view::View;
use crate::model::MemoryId;
use crate::store::{IndexId, NsId, PartId, Rows, SpaceId};
use crate::vector::{QueryCode, UnitVector, dot_f32};

/// The codes of one embedding space against one query.
pub(crate) struct Cosines<'q> {
    published: &'q Published,
    space: SpaceId,
    query: &'q UnitVector,
    code: QueryCode,
    /// None: an index without an image, which is read slot by slot.
    views: HashMap<IndexId, Option<Arc<View>>>,
}

impl<'q> Cosines<'q> {
    pub(crate) fn of(published: &'q Published, space: SpaceId, query: &'q UnitVector) -> Self {
        Cosines { published, space, query, code: QueryCode::new(query), views: HashMap::new() }
    }

    /// The cosine of the memory in a slot; none where the slot is not its own. Where the index has an image it is that of
    /// the codes, less than 0.01 off; otherwise that of the vectors.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn cosine(&mut self, ns: NsId, part: PartId, slot: u32, id: MemoryId) -> Result<Option<f32>> {
        let index = IndexId { ns, part, space: self.space };
        if !self.views.contains_key(&index) {
            self.views.insert(index, self.published.loaded(index));
        }
        if let Some(Some(view)) = self.views.get(&index) {
            return Ok(view.cosine(slot, id, &self.code));
        }
        let mut vector = Vec::new();
        let found = self.published.snapshot().vector(index, self.query.dim(), slot, &mut vector)?;
        Ok(found.then(|| dot_f32(self.query.as_slice(), &vector)))
    }
}
