//! Ranks candidates on their f32 vectors: the exact half of a search.

use std::iter::Peekable;
use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::index::source::Source;
use crate::model::{MemoryId, Ranked};
use crate::record::{At, SlotBlockRef, read_vector, slots_per_block, vectors_per_block};
use crate::store::{IndexId, Rows, Snapshot, Table, Walk, keys};
use crate::vector::{Candidate, QueryCode, TopK, UnitVector, dot_f32};

/// Blocks are read in one walk only if there is a candidate for so many slots, because such a walk reads everything in
/// between.
const SLOTS_PER_CANDIDATE_MAX: u64 = 8;

/// Says whether a memory passes.
pub(crate) type Accept<'f> = &'f mut dyn FnMut(MemoryId) -> Result<bool>;

/// Scores slots exactly and keeps the best.
pub(super) struct Ranker<'s> {
    snapshot: &'s Snapshot,
    sources: &'s [Source],
    dim: usize,
    query: &'s UnitVector,
    top: TopK<MemoryId>,
    /// The best results whose scores must be exact, if these are fewer than all results.
    sure: Option<TopK<MemoryId>>,
    ranked: u64,
    /// The number of slots whose vector is damaged or gone.
    lost: u64,
    vector: Vec<f32>,
    /// The memories of the last block of codes that was read, for indexes without a view.
    ids: Option<(IndexId, u32, Vec<MemoryId>)>,
}

impl<'s> Ranker<'s> {
    pub(super) fn new(
        snapshot: &'s Snapshot,
        sources: &'s [Source],
        query: &'s UnitVector,
        k: usize,
        sure: usize,
    ) -> Self {
        let dim = query.dim();
        let (top, vector) = (TopK::new(k), Vec::with_capacity(dim));
        let sure = (sure < k).then(|| TopK::new(sure));
        Ranker { snapshot, sources, dim, query, top, sure, ranked: 0, lost: 0, vector, ids: None }
    }

    /// Whether no slot with a score of at most `upper` can be among those whose scores must be exact.
    pub(super) fn is_sure_at(&self, upper: f32) -> bool {
        let worst = self.sure.as_ref().and_then(TopK::threshold);
        worst.is_some_and(|worst| upper < worst)
    }

    /// Takes a slot with its score by the codes. Returns false if the codes are not in memory.
    pub(super) fn estimate(&mut self, slot: u32, code: &QueryCode) -> bool {
        let (source, number) = locate(self.sources, slot);
        let Some((id, score)) = source.view.as_ref().and_then(|view| {
            let id = view.id(number)?;
            Some((id, view.cosine(number, id, code)?))
        }) else {
            return false;
        };
        self.top.push(score, id);
        true
    }

    /// Whether no slot with a score of at most `upper` can be among the best.
    pub(super) fn is_done_at(&self, upper: f32) -> bool {
        self.top.threshold().is_some_and(|worst| upper < worst)
    }

    /// The number of slots scored.
    pub(super) fn ranked(&self) -> u64 {
        self.ranked
    }

    /// The number of slots that could not be scored, because their vectors are damaged or gone.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// The best hits, best first.
    pub(super) fn into_hits(self) -> Vec<Ranked> {
        let best = self.top.into_sorted().into_iter();
        best.map(|scored| Ranked::near(scored.id, scored.score)).collect()
    }

    /// Scores a slot, by its number in the search, if its memory passes.
    pub(super) fn score(&mut self, slot: u32, accept: Option<Accept<'_>>) -> Result<()> {
        let (source, number) = locate(self.sources, slot);
        let id = self.id_of(source, number)?;
        if let Some(accept) = accept
            && !accept(id)?
        {
            return Ok(());
        }
        self.score_at(source.index, source.slot_of(number), id)
    }

    /// Scores the slot of an index. A slot whose vector is damaged or gone is skipped.
    pub(super) fn score_at(&mut self, index: IndexId, slot: u32, id: MemoryId) -> Result<()> {
        let read = self.snapshot.vector(index, self.dim, slot, &mut self.vector);
        if is_there(read, index, self.dim, slot)? {
            let vector = std::mem::take(&mut self.vector);
            self.push(id, &vector);
            self.vector = vector;
        } else {
            self.lost += 1;
        }
        Ok(())
    }

    fn push(&mut self, id: MemoryId, vector: &[f32]) {
        self.ranked += 1;
        let score = dot_f32(self.query.as_slice(), vector);
        self.top.push(score, id);
        if let Some(sure) = &mut self.sure {
            sure.push(score, id);
        }
    }

    /// The memory of the slot with this number in a source.
    fn id_of(&mut self, source: &Source, number: u32) -> Result<MemoryId> {
        let found = match &source.view {
            Some(view) => view.id(number),
            None => {
                let per = slots_per_block(self.dim) as u32;
                self.ids_of_block(source.index, number / per)?.get((number % per) as usize).copied()
            }
        };
        found.ok_or_else(|| {
            let why = format!("slot {} is gone", source.slot_of(number));
            Error::corrupted(Table::Slot.name(), &keys::index(source.index), why)
        })
    }

    fn ids_of_block(&mut self, index: IndexId, block: u32) -> Result<&[MemoryId]> {
        if !matches!(&self.ids, Some((of, number, _)) if *of == index && *number == block) {
            let key = keys::block(index, block);
            let ids: Option<Vec<MemoryId>> = self.snapshot.row(Table::Slot, &key, |at: At<'_>, bytes| {
                Ok(SlotBlockRef::open(at, self.dim, bytes)?.metas().map(|meta| meta.id).collect())
            })?;
            let ids = ids.unwrap_or_default();
            self.ids = Some((index, block, ids));
        }
        Ok(self.ids.as_ref().map(|(_, _, ids)| ids.as_slice()).unwrap_or_default())
    }
}

/// Whether one pass over the blocks of vectors costs less than a look-up for each of so many candidates of so many slots:
/// if most blocks hold a candidate.
pub(super) fn is_worth_a_pass(candidates: usize, slots: u64) -> bool {
    candidates as u64 * SLOTS_PER_CANDIDATE_MAX >= slots
}

/// A ranker with many candidates, all of which are scored.
pub(super) struct Crowd<'s> {
    ranker: Ranker<'s>,
    /// In the order of their slots.
    candidates: Vec<Candidate>,
}

impl<'s> Crowd<'s> {
    pub(super) fn new(ranker: Ranker<'s>, mut candidates: Vec<Candidate>) -> Self {
        // Blocks are met in order; what one-bit codes promise comes in the order of the promises.
        candidates.sort_unstable_by_key(|candidate| candidate.slot);
        Crowd { ranker, candidates }
    }

    /// Scores the candidates of crowds whose searches have the same sources, block by block of the vectors. A vector is
    /// read once for all crowds: near-equal vectors are candidates of each other.
    pub(super) fn score(crowds: &mut [Crowd<'s>]) -> Result<()> {
        let Some(sources) = crowds.first().map(|crowd| crowd.ranker.sources) else { return Ok(()) };
        for (number, source) in sources.iter().enumerate() {
            let end = sources.get(number + 1).map_or(u32::MAX, |next| next.base);
            let within = |of: &Candidate| source.base <= of.slot && of.slot < end;
            let mut parts: Vec<_> = crowds
                .iter_mut()
                .map(|Crowd { ranker, candidates }| {
                    let first = candidates.partition_point(|of| of.slot < source.base);
                    let part = candidates.get(first..).unwrap_or_default();
                    let numbers =
                        part.iter().take_while(move |of| within(of)).map(|of| of.slot - source.base);
                    let places = numbers.map(|number| (source.slot_of(number), number));
                    Part { ranker, places: places.peekable() }
                })
                .collect();
            score_source(source, &mut parts)?;
        }
        Ok(())
    }

    /// The ranker, with what was scored.
    pub(super) fn into_ranker(self) -> Ranker<'s> {
        self.ranker
    }
}

/// The candidates of a crowd in one source.
struct Part<'c, 's, P: Iterator<Item = Place>> {
    ranker: &'c mut Ranker<'s>,
    /// Those that are not scored yet, in order.
    places: Peekable<P>,
}

/// A slot of an index, and its number in the source.
type Place = (u32, u32);

/// Scores the candidates of one source, block by block.
fn score_source<P: Iterator<Item = Place>>(source: &Source, parts: &mut [Part<'_, '_, P>]) -> Result<()> {
    let Some(first) = next_slot(parts) else { return Ok(()) };
    let Some((snapshot, dim)) = parts.first().map(|part| (part.ranker.snapshot, part.ranker.dim)) else {
        return Ok(());
    };
    let per = vectors_per_block(dim) as u32;
    let walk = Walk::prefix(&keys::index(source.index)).starting_at(&keys::block(source.index, first / per));
    let mut vector = Vec::with_capacity(dim);
    snapshot.vector_blocks(&walk, &mut |block, at, bytes| {
        while let Some(slot) = next_slot(parts).filter(|slot| slot / per <= block) {
            // A walk that is past the block of a slot has not met that block, so the block is missing.
            let read = match slot / per < block {
                true => Ok(false),
                false => read_vector(at, bytes, dim, (slot % per) as usize, &mut vector),
            };
            let there = is_there(read, source.index, dim, slot)?;
            score_slot(source, slot, there.then_some(&vector), parts)?;
        }
        Ok(if next_slot(parts).is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    while let Some(slot) = next_slot(parts) {
        is_there(Ok(false), source.index, dim, slot)?;
        score_slot(source, slot, None, parts)?;
    }
    Ok(())
}

/// The first slot that is a candidate of any part.
fn next_slot<P: Iterator<Item = Place>>(parts: &mut [Part<'_, '_, P>]) -> Option<u32> {
    parts.iter_mut().filter_map(|part| part.places.peek().map(|(slot, _)| *slot)).min()
}

/// Scores a slot for each part whose candidate it is. Without a vector it is lost.
fn score_slot<P: Iterator<Item = Place>>(
    source: &Source,
    slot: u32,
    vector: Option<&Vec<f32>>,
    parts: &mut [Part<'_, '_, P>],
) -> Result<()> {
    let mut id = None;
    for Part { ranker, places } in parts {
        let Some((_, number)) = places.next_if(|(of, _)| *of == slot) else { continue };
        match vector {
            Some(vector) => {
                let known = id.map_or_else(|| ranker.id_of(source, number), Ok)?;
                id = Some(known);
                ranker.push(known, vector);
            }
            None => ranker.lost += 1,
        }
    }
    Ok(())
}

/// The source of a number in the search, and the number in that source.
#[expect(clippy::expect_used, reason = "a candidate comes from one of the sources of its search")]
fn locate(sources: &[Source], slot: u32) -> (&Source, u32) {
    let at = sources.partition_point(|source| source.base <= slot);
    let source = at.checked_sub(1).and_then(|at| sources.get(at)).expect("a source of the search");
    (source, slot - source.base)
}

/// Whether the vector of a slot that has a code was read.
fn is_there(read: Result<bool>, index: IndexId, dim: usize, slot: u32) -> Result<bool> {
    let read = read.and_then(|there| match there {
        true => Ok(()),
        false => {
            let key = keys::block(index, slot / vectors_per_block(dim) as u32);
            Err(Error::corrupted(Table::Vector.name(), &key, format!("slot {slot} has a code and no vector")))
        }
    });
    Ok(sound(read)?.is_some())
}
