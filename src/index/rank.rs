//! Ranks candidates on their f32 vectors: the exact half of a search.

use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::index::source::Source;
use crate::model::{MemoryId, Ranked};
use crate::record::{At, SlotBlockRef, read_vector, slots_per_block, vectors_per_block};
use crate::store::{IndexId, Rows, Snapshot, Table, Walk, keys};
use crate::vector::{Candidate, QueryCode, TopK, UnitVector, dot_f32};

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
        let (source, slot) = locate(self.sources, slot);
        let Some((id, score)) = source.view.as_ref().and_then(|view| {
            let id = view.id(slot)?;
            Some((id, view.cosine(slot, id, code)?))
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
        let (source, slot) = locate(self.sources, slot);
        let id = self.id_of(source, slot)?;
        if let Some(accept) = accept
            && !accept(id)?
        {
            return Ok(());
        }
        self.score_at(source.index, slot, id)
    }

    /// Scores the slot of an index. A slot whose vector is damaged or gone is skipped.
    pub(super) fn score_at(&mut self, index: IndexId, slot: u32, id: MemoryId) -> Result<()> {
        let read = self.snapshot.vector(index, self.dim, slot, &mut self.vector);
        match is_there(read, index, self.dim, slot)? {
            true => self.push(id),
            false => self.lost += 1,
        }
        Ok(())
    }

    fn push(&mut self, id: MemoryId) {
        self.ranked += 1;
        let score = dot_f32(self.query.as_slice(), &self.vector);
        self.top.push(score, id);
        if let Some(sure) = &mut self.sure {
            sure.push(score, id);
        }
    }

    /// Scores all of `candidates`, which are ordered by slot, block by block of their vectors.
    pub(super) fn blocks(&mut self, candidates: &[Candidate]) -> Result<()> {
        debug_assert!(candidates.is_sorted_by_key(|candidate| candidate.slot), "blocks are met in order");
        let base_of = |candidate: &Candidate| locate(self.sources, candidate.slot).0.base;
        for group in candidates.chunk_by(|a, b| base_of(a) == base_of(b)) {
            let Some(first) = group.first() else { continue };
            let (source, _) = locate(self.sources, first.slot);
            self.blocks_of(source, group)?;
        }
        Ok(())
    }

    fn blocks_of(&mut self, source: &Source, group: &[Candidate]) -> Result<()> {
        let per = vectors_per_block(self.dim) as u32;
        let mut slots = group.iter().map(|candidate| candidate.slot - source.base).peekable();
        let Some(first) = slots.peek().copied() else { return Ok(()) };
        let walk =
            Walk::prefix(&keys::index(source.index)).starting_at(&keys::block(source.index, first / per));
        let snapshot = self.snapshot;
        snapshot.vector_blocks(&walk, &mut |block, at, bytes| {
            while let Some(slot) = slots.next_if(|slot| slot / per <= block) {
                let position = (slot % per) as usize;
                // A walk that is past the block of a slot has not met that block, so the block is missing.
                let read = match slot / per < block {
                    true => Ok(false),
                    false => read_vector(at, bytes, self.dim, position, &mut self.vector),
                };
                if is_there(read, source.index, self.dim, slot)? {
                    let id = self.id_of(source, slot)?;
                    self.push(id);
                } else {
                    self.lost += 1;
                }
            }
            Ok(if slots.peek().is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        for slot in slots {
            is_there(Ok(false), source.index, self.dim, slot)?;
            self.lost += 1;
        }
        Ok(())
    }

    /// The memory of a slot.
    fn id_of(&mut self, source: &Source, slot: u32) -> Result<MemoryId> {
        let found = match &source.view {
            Some(view) => view.id(slot),
            None => {
                let per = slots_per_block(self.dim) as u32;
                self.ids_of_block(source.index, slot / per)?.get((slot % per) as usize).copied()
            }
        };
        found.ok_or_else(|| {
            Error::corrupted(Table::Slot.name(), &keys::index(source.index), format!("slot {slot} is gone"))
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

/// The source of a number in the search, and the slot in that source.
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
