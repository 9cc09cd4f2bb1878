//! The neighbours of a memory in its thread, and hits that differ from each other.

use crate::error::{Error, Result, sound};
use crate::limits::{AROUND_MAX, at_most};
use crate::model::{MemoryId, PointInTime, Ranked};
use crate::recall::Reader;
use crate::store::{IndexId, NsId, PartId, Rows, TextId};
use crate::vector::dot_f32;

/// How many candidates the diverse hits are chosen from, for each requested hit.
pub(super) const POOL: usize = 4;

/// The neighbours of a memory in its thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The memories before it, in the order of the thread.
    pub before: Vec<MemoryId>,
    /// The memories after it, in the order of the thread.
    pub after: Vec<MemoryId>,
}

impl Reader<'_> {
    /// At most `steps` memories before and after a memory in its thread, within its own partition: those that were visible at
    /// these instants.
    ///
    /// # Errors
    /// `Invalid` for more than 1,000 steps; those of [`Reader::at`].
    pub(crate) fn around(&self, id: MemoryId, steps: usize, point: &PointInTime) -> Result<Around> {
        at_most("around", steps, AROUND_MAX)?;
        let reader = self.at(point)?;
        let Some(ns) = reader.ns else { return Ok(Around::default()) };
        let Some(place) = reader.rows().vitals(ns, id)?.map(|vitals| vitals.place) else {
            return Ok(Around::default());
        };
        let text = TextId { ns, part: PartId(place.partition) };
        let (Some(doc), Some(view)) = (place.doc, reader.source.text_view(text)?) else {
            return Ok(Around::default());
        };
        let beside = |forward| {
            let mut all = Vec::new();
            for (_, meta) in view.thread(doc, forward) {
                if all.len() == steps {
                    break;
                }
                let is_seen = match reader.past {
                    None => meta.is_seen(reader.now.as_millis()),
                    Some(_) => reader.saw(ns, meta.id)?,
                };
                if is_seen {
                    all.push(meta.id);
                }
            }
            Ok::<_, Error>(all)
        };
        let (mut before, after) = (beside(false)?, beside(true)?);
        before.reverse();
        Ok(Around { before, after })
    }

    /// Whether a memory was visible at the instants of a reader of the past, of which no index knows. One that can't be read was
    /// not.
    pub(super) fn saw(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let vitals = sound(self.rows().vitals(ns, id))?.flatten();
        vitals.map_or(Ok(false), |vitals| self.sees(id, &vitals))
    }

    /// The first `k` of `hits`, chosen one after the other by this value: the score, less `diversity` times the
    /// likeness to the most similar hit chosen before. Likeness is the cosine of the vectors; without vectors it is
    /// none.
    ///
    /// J. Carbonell, J. Goldstein, "The Use of MMR, Diversity-Based Reranking" (1998), with scores as a share of the best.
    pub(super) fn diverse(
        &self,
        ns: NsId,
        mut hits: Vec<Ranked>,
        k: usize,
        diversity: f32,
    ) -> Result<Vec<Ranked>> {
        // Each choice compares a vector with the whole pool, so the size of the pool bounds the work.
        hits.truncate(k.saturating_mul(POOL));
        let best = hits.first().map_or(1.0, |hit| hit.score).max(f32::MIN_POSITIVE);
        let mut pool: Vec<(Ranked, Vec<f32>, f32)> = Vec::with_capacity(hits.len());
        for hit in hits {
            pool.push((hit, self.vector_of(ns, hit.id)?, 0.0));
        }
        let mut chosen = Vec::with_capacity(k);
        while chosen.len() < k && !pool.is_empty() {
            let worth = |(hit, _, alike): &(Ranked, Vec<f32>, f32)| {
                (1.0 - diversity) * hit.score / best - diversity * alike.max(0.0)
            };
            // Of equal hits the first, because the best come first.
            let first = pool.iter().enumerate().rev().max_by(|a, b| worth(a.1).total_cmp(&worth(b.1)));
            let Some(at) = first.map(|(at, _)| at) else { break };
            let (hit, vector, _) = pool.remove(at);
            for (_, other, alike) in &mut pool {
                if vector.len() == other.len() && !vector.is_empty() {
                    *alike = alike.max(dot_f32(&vector, other));
                }
            }
            chosen.push(hit);
        }
        Ok(chosen)
    }

    /// The vector of a memory; empty if the memory has no readable vector.
    fn vector_of(&self, ns: NsId, id: MemoryId) -> Result<Vec<f32>> {
        let Some(vitals) = sound(self.vitals(ns, id))? else { return Ok(Vec::new()) };
        let mut vector = Vec::new();
        if vitals.times.removed_at.is_some() {
            vector = sound(self.rows().limbo(ns, id))?.flatten().unwrap_or_default().vector;
        } else if let Some(slot) = vitals.place.slot {
            let index = IndexId::of(ns, &vitals);
            let dim = self.source.dim(index.space)?;
            if sound(self.rows().vector(index, dim, slot, &mut vector))?.is_none() {
                vector.clear();
            }
        }
        Ok(vector)
    }
}
