//! One step in the upkeep of a graph. It is worked out on a published state without any lock. A short transaction then
//! checks that the state still holds, and writes the step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hnsw::{Changed, Graph};
use crate::index::adjacency::{Linked, write_blocks};
use crate::index::published::Published;
use crate::record::{SlotBlock, SlotMeta, block_of, slots_per_block};
use crate::store::control::{GraphHead, RecallPoint};
use crate::store::{IndexId, Read, Rows, Table, WriteTx, keys};

/// The rows of a graph that a step changes, and the state that it assumes.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    /// The index.
    pub(crate) index: IndexId,
    pub(super) dim: usize,
    /// The epoch of the assumed state. Slots and versions of another file have the same numbers.
    epoch: u64,
    /// The assumed version of the graph; none if there was no graph.
    pub(super) version: Option<u64>,
    /// The graph after the step; none if it is dropped.
    pub(super) graph: Option<Arc<Graph>>,
    /// The blocks of rows that differ.
    pub(super) blocks: BTreeSet<u32>,
    /// The slots that became nodes, each with the commit that filled it.
    pub(super) claims: Vec<(u32, u64)>,
    /// The slots that are no longer nodes and lie in the tail again, each with the commit that filled it.
    pub(super) loose: Vec<(u32, u64)>,
    /// The dead slots that are no longer nodes and can be used again, with the commits in which they died.
    pub(super) freed: Vec<(u64, u32)>,
    /// The measured recall, and the number of rows on which it was measured.
    pub(super) recall: Option<(Arc<[RecallPoint]>, u32)>,
}

/// The result of writing a step.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// The step stands in the transaction. From the commit on the index has this graph.
    Done(Option<Linked>),
    /// The index has changed meanwhile. The step must be worked out again.
    Stale,
}

impl Edit {
    /// A step on the graph of an index that changes nothing yet.
    pub(super) fn on(
        published: &Published,
        index: IndexId,
        head: Option<&GraphHead>,
        graph: Arc<Graph>,
    ) -> Result<Self> {
        Ok(Edit {
            index,
            dim: published.dim(index.space)?,
            epoch: published.snapshot().epoch(),
            version: head.map(|head| head.version),
            graph: Some(graph),
            blocks: BTreeSet::new(),
            claims: Vec::new(),
            loose: Vec::new(),
            freed: Vec::new(),
            recall: None,
        })
    }

    /// The number of rows that the step changes: nodes made and slots freed.
    pub(crate) fn rows(&self) -> u64 {
        (self.claims.len() + self.freed.len()) as u64
    }

    /// Notes nodes with changed links.
    pub(super) fn touch(&mut self, slots: &[u32]) {
        self.blocks.extend(slots.iter().map(|slot| block_of(*slot)));
    }

    /// Notes the changes of a step. Returns the slots that lie in the tail again.
    pub(super) fn take(&mut self, changed: &Changed) -> Vec<u32> {
        self.touch(&changed.slots);
        changed.loose.clone()
    }

    /// Writes the step, if the index is as it was when the step was worked out. `commit` is the number of the present
    /// commit.
    ///
    /// # Errors
    /// `Corrupted`; the transaction must then be given up. A step that is [`Written::Stale`] has written nothing.
    pub(crate) fn write(&self, tx: &mut WriteTx<'_>, commit: u64) -> Result<Written> {
        if tx.epoch() != self.epoch {
            return Ok(Written::Stale);
        }
        // Everything is checked before the first row is written, so that a stale step leaves the transaction as it was.
        let head = tx.graph_head(self.index)?;
        if head.as_ref().map(|head| head.version) != self.version || !self.holds(tx)? {
            return Ok(Written::Stale);
        }
        let mut head = head.unwrap_or_default();
        for &(died, slot) in &self.freed {
            self.free(tx, commit, died, slot)?;
        }
        let Some(graph) = &self.graph else {
            tx.delete_graph_slice(self.index, usize::MAX)?;
            tx.delete_graph_head(self.index)?;
            return Ok(Written::Done(None));
        };
        write_blocks(tx, self.index, graph, &self.blocks)?;
        // Each written step raises the version, so that a step worked out on the earlier graph becomes stale.
        head.version += 1;
        head.entry = graph.entry();
        head.linked = u32::try_from(graph.len()).unwrap_or(u32::MAX);
        let freed = u32::try_from(self.freed.len()).unwrap_or(u32::MAX);
        head.dead = head.dead.saturating_sub(freed);
        if let Some((recall, rows)) = &self.recall {
            head.recall = recall.to_vec();
            head.calibrated_at = *rows;
        }
        tx.put_graph_head(self.index, &head)?;
        Ok(Written::Done(Some(Linked::new(Arc::clone(graph), head.recall.into(), head.calibrated_at))))
    }

    /// Whether every slot that became a node, or stopped being one, still holds the same vector.
    fn holds(&self, tx: &WriteTx<'_>) -> Result<bool> {
        let per = slots_per_block(self.dim) as u32;
        let mut blocks: BTreeMap<u32, Option<SlotBlock>> = BTreeMap::new();
        for &(slot, born) in self.claims.iter().chain(&self.loose) {
            let number = slot / per;
            let block = match blocks.entry(number) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(tx.slot_block(self.index, number, self.dim)?)
                }
            };
            let meta = block.as_ref().and_then(|block| block.meta((slot % per) as usize));
            if !meta.is_some_and(|meta| meta.born == born && !meta.is_vacant()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Erases the code of a dead slot and makes the slot usable again.
    fn free(&self, tx: &mut WriteTx<'_>, commit: u64, died: u64, slot: u32) -> Result<()> {
        let per = slots_per_block(self.dim) as u32;
        let block = tx.slot_block_mut(self.index, slot / per, self.dim)?;
        let is_dead = block.meta((slot % per) as usize).is_some_and(SlotMeta::is_dead);
        if !is_dead || !tx.delete_dead_slot(self.index, died, slot)? {
            let why = format!("slot {slot} is to be freed and is not dead");
            return Err(Error::corrupted(Table::SlotDead.name(), &keys::index(self.index), why));
        }
        let block = tx.slot_block_mut(self.index, slot / per, self.dim)?;
        block.erase((slot % per) as usize);
        tx.put_free_slot(self.index, commit, slot)
    }
}
