//! Where does a name lead in the end? Chains of supersession, through rows, limbo and tombstones.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::model::{MemoryId, Tombstone};
use crate::recall::read::Named;
use crate::recall::{Reader, Source};
use crate::store::Rows;

/// The end of the chain from a memory to what has taken its place.
#[derive(Clone, Debug, PartialEq)]
pub enum ChainEnd {
    /// A memory that a live read sees.
    Visible(MemoryId),
    /// A memory that no live read sees and that nothing has replaced: it has expired, is not yet valid, or stands in a
    /// chain that leads back to itself or into nothing, which the pass `supersession` mends.
    Hidden(MemoryId),
    /// The tombstone of a memory that is gone and that nothing has replaced.
    Gone(Tombstone),
}

impl<S: Source> Reader<'_, S> {
    /// The end of the chain that begins at a memory by id or key. A chain may have any length.
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`.
    pub(crate) fn chain_end(&self, name: &str) -> Result<ChainEnd> {
        let (Some(ns), Some(mut at)) = (self.ns, self.resolve(name)?) else {
            return Err(self.not_found(name));
        };
        let mut met = BTreeSet::new();
        loop {
            let (id, next, end) = match at {
                Named::Row(id, vitals, _) if vitals.times.visible_live(self.now) => {
                    return Ok(ChainEnd::Visible(id));
                }
                Named::Row(id, vitals, _) if vitals.times.removed_at.is_some() => {
                    let next = self.rows().limbo(ns, id)?.and_then(|limbo| limbo.replaced_by);
                    let stone = self.rows().tombstone(ns, id)?;
                    let end = stone.map_or(ChainEnd::Hidden(id), ChainEnd::Gone);
                    (id, next.or(vitals.times.superseded_by()), end)
                }
                Named::Row(id, vitals, _) => (id, vitals.times.superseded_by(), ChainEnd::Hidden(id)),
                Named::Gone(stone) => (stone.id, stone.replaced_by, ChainEnd::Gone(stone)),
            };
            // Damaged rows could lead in a circle, so no row is visited twice.
            let Some(next) = next.filter(|_| met.insert(id)) else { return Ok(end) };
            match self.by_id(ns, next)? {
                Some(named) => at = named,
                None => return Ok(end),
            }
        }
    }
}
