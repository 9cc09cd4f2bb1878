//! The graph of an index in a copy: which of its slots are kept, and its links under their new numbers.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::record::{At, GraphBlockRef, GraphNode, NODES_PER_BLOCK, block_of};
use crate::store::compact::copy::{Copy, SLICE_BYTES};
use crate::store::compact::numbers::Numbers;
use crate::store::control::GraphHead;
use crate::store::keys;
use crate::store::part::IndexId;
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::tx::{Snapshot, WriteTx};

/// Blocks of links that one transaction of the copy takes.
const SLICE_BLOCKS: usize = SLICE_BYTES / BLOCK_BYTES;
/// Bytes of a block of links in memory: about 32 links a node, in lists of their own.
const BLOCK_BYTES: usize = NODES_PER_BLOCK * 512;

/// A graph that can be copied.
pub(super) struct Graph {
    head: GraphHead,
}

impl Numbers {
    fn of_slot(&self, at: At<'_>, slot: u32) -> Result<u32> {
        self.of(slot).ok_or_else(|| {
            Error::corrupted(at.table, at.key, format!("the graph names slot {slot}, which holds nothing"))
        })
    }

    fn of_links(&self, at: At<'_>, links: impl Iterator<Item = u32>) -> Result<Vec<u32>> {
        links.map(|link| self.of_slot(at, link)).collect()
    }

    /// Appends the nodes of a block to `out`, under their new numbers.
    fn of_block(&self, block: u32, at: At<'_>, bytes: &[u8], out: &mut Vec<(u32, CopiedNode)>) -> Result<()> {
        let slots = (0..NODES_PER_BLOCK as u32)
            .map(|n| block.saturating_mul(NODES_PER_BLOCK as u32).saturating_add(n));
        for (slot, node) in slots.zip(GraphBlockRef::open(at, bytes)?.nodes()) {
            let Some(node) = node else { continue };
            let upper = (1..=node.level()).map(|level| self.of_links(at, node.upper(level)));
            let upper = upper.collect::<Result<_>>()?;
            let bottom = self.of_links(at, node.bottom())?;
            let host = node.host().map(|host| self.of_slot(at, host)).transpose()?;
            out.push((self.of_slot(at, slot)?, CopiedNode { bottom, upper, host }));
        }
        Ok(())
    }
}

/// A node that is being copied.
struct CopiedNode {
    bottom: Vec<u32>,
    upper: Vec<Vec<u32>>,
    host: Option<u32>,
}

impl Graph {
    /// The graph of an index; none where it has none, or where it is damaged, which is said in the log. It is
    /// derived data: a copy without it answers as exactly as one with it.
    pub(super) fn of(from: &Snapshot, index: IndexId, numbers: &Numbers) -> Result<Option<Self>> {
        match Graph::checked(from, index, numbers) {
            Err(why @ Error::Corrupted { .. }) => {
                tracing::warn!(
                    namespace = index.ns.0,
                    partition = index.part.0,
                    space = index.space.0,
                    %why,
                    "the copy leaves a damaged graph out; it has to be built anew"
                );
                Ok(None)
            }
            checked => checked,
        }
    }

    /// The graph of an index, every row of it read and every link followed to its slot.
    fn checked(from: &Snapshot, index: IndexId, numbers: &Numbers) -> Result<Option<Self>> {
        let Some(head) = from.graph_head(index)? else { return Ok(None) };
        let key = keys::index(index);
        if let Some(entry) = head.entry {
            numbers.of_slot(At::new(Table::GraphHead.name(), &key), entry)?;
        }
        let mut nodes = Vec::new();
        from.graph_blocks(&Walk::prefix(&key), &mut |_, block, at, bytes| {
            nodes.clear();
            numbers.of_block(block, at, bytes, &mut nodes)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Some(Graph { head }))
    }
}

impl Copy<'_> {
    /// Copies the links of an index and what stands above them, in slices. The walk stays open from slice to slice, as that
    /// over other rows does.
    pub(super) fn graph(&mut self, index: IndexId, graph: &Graph, numbers: &Numbers) -> Result<()> {
        // The nodes of the last block of a slice may go on in the next one.
        let mut open: Vec<(u32, CopiedNode)> = Vec::new();
        let (from, mut rows) = (self.from, 0);
        from.graph_blocks(&Walk::prefix(&keys::index(index)), &mut |_, block, at, bytes| {
            numbers.of_block(block, at, bytes, &mut open)?;
            rows += 1;
            if rows % SLICE_BLOCKS == 0 {
                let whole = whole_blocks(&open);
                self.nodes(index, open.drain(..whole).collect())?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.nodes(index, open)?;
        self.graph_head(index, graph, numbers)
    }

    fn nodes(&mut self, index: IndexId, nodes: Vec<(u32, CopiedNode)>) -> Result<()> {
        let mut written = 0;
        self.commit(|tx| {
            written = put_nodes(tx, index, &nodes)?;
            Ok(())
        })?;
        self.rows += written;
        Ok(())
    }

    fn graph_head(&mut self, index: IndexId, graph: &Graph, numbers: &Numbers) -> Result<()> {
        let key = keys::index(index);
        let at = At::new(Table::GraphHead.name(), &key);
        let entry = graph.head.entry.map(|entry| numbers.of_slot(at, entry)).transpose()?;
        let head = GraphHead { entry, version: graph.head.version.wrapping_add(1), ..graph.head.clone() };
        self.rows += 1;
        self.commit(|tx| tx.put_graph_head(index, &head))
    }
}

/// How many nodes stand before the block of the last one.
fn whole_blocks(nodes: &[(u32, CopiedNode)]) -> usize {
    let last = nodes.last().map(|(slot, _)| block_of(*slot));
    nodes.partition_point(|(slot, _)| Some(block_of(*slot)) < last)
}

/// Writes nodes, which come by their numbers, and says in how many blocks they lie.
fn put_nodes(tx: &mut WriteTx<'_>, index: IndexId, nodes: &[(u32, CopiedNode)]) -> Result<u64> {
    let mut blocks = 0;
    for of_block in nodes.chunk_by(|(a, _), (b, _)| block_of(*a) == block_of(*b)) {
        let mut entries = [None; NODES_PER_BLOCK];
        for (slot, node) in of_block {
            let at = *slot as usize % NODES_PER_BLOCK;
            if let Some(entry) = entries.get_mut(at) {
                *entry = Some(GraphNode { bottom: &node.bottom, upper: &node.upper, host: node.host });
            }
        }
        if let Some((slot, _)) = of_block.first() {
            tx.put_graph_block(index, block_of(*slot), &entries)?;
            blocks += 1;
        }
    }
    Ok(blocks)
}
