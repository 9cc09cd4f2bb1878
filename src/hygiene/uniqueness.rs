//! How much does a memory differ from all others?

use crate::error::{Result, sound};
use crate::index::{Nearness, Published, near_many};
use crate::model::{MemoryId, Ranked, Time, Vitals};
use crate::policy::Policy;
use crate::store::{IndexId, NsId, Rows, Snapshot};
use crate::vector::UnitVector;

/// The vector of a row in the space of searches; none of a row that waits for one.
///
/// # Errors
/// `Corrupted`.
pub(super) fn vector_of(published: &Published, ns: NsId, vitals: &Vitals) -> Result<Option<UnitVector>> {
    let rows = published.snapshot();
    let Some(slot) =
        vitals.place.slot.filter(|_| rows.clock().is_ok_and(|clock| clock.space == vitals.place.space))
    else {
        return Ok(None);
    };
    let index = IndexId::of(ns, vitals);
    let mut values = Vec::new();
    let there = rows.vector(index, published.dim(index.space)?, slot, &mut values)?;
    Ok(UnitVector::from_stored(values).filter(|_| there))
}

/// The semantic uniqueness score (SUS) of a memory: 1 less the greatest cosine of the memory and one of its
/// `sus.neighbours` nearest other visible memories of its partition, held to 0 to 1. 1 for a memory without a neighbour, or
/// without a vector. The neighbours are found through the index, so a memory costs one search.
///
/// Source: the memory-pruning proposal, strategy 2.
///
/// # Errors
/// `Corrupted`.
pub(super) fn uniqueness(
    published: &Published,
    ns: NsId,
    id: MemoryId,
    vitals: &Vitals,
    policy: &Policy,
    now: Time,
) -> Result<f64> {
    let Some(vector) = vector_of(published, ns, vitals)? else { return Ok(1.0) };
    let most = policy.sus.neighbours as usize + 1;
    let nearness = Nearness { least: -1.0, most, now };
    let found = near_many(published, IndexId::of(ns, vitals), &[&vector], nearness, 1)?;
    let found: Vec<Ranked> = found.into_iter().flatten().collect();
    Ok(unlike(published.snapshot(), ns, id, &found, now)?.unwrap_or(1.0))
}

/// The score of a memory whose neighbours were searched, best first; none where no visible one is among them.
///
/// # Errors
/// What keeps the rows from being read at all.
pub(super) fn unlike(
    rows: &Snapshot,
    ns: NsId,
    id: MemoryId,
    found: &[Ranked],
    now: Time,
) -> Result<Option<f64>> {
    for hit in found.iter().filter(|hit| hit.id != id) {
        // A row that is not valid yet is near to nobody, and neither is one that can't be read.
        let other = sound(rows.vitals(ns, hit.id))?.flatten();
        if other.is_some_and(|other| other.times.visible_live(now)) {
            return Ok(Some((1.0 - f64::from(hit.score)).clamp(0.0, 1.0)));
        }
    }
    Ok(None)
}
