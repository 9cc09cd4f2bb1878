//! The rows of a graph. They are read as a whole, and written where they changed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hnsw::Graph;
use crate::record::{GraphBlockRef, GraphNode, NODES_PER_BLOCK};
use crate::store::control::{GraphHead, RecallPoint};
use crate::store::{IndexId, Rows, Snapshot, Table, Walk, WriteTx, keys};

/// The adjacency of an index at one commit, and its measured recall.
#[derive(Clone, Debug)]
pub(crate) struct Linked {
    /// The links.
    pub(crate) graph: Arc<Graph>,
    /// The recall for each length of the list of a walk, ascending; empty before the first measurement.
    pub(crate) recall: Arc<[RecallPoint]>,
    /// The number of rows of the index at that measurement.
    pub(crate) measured_on: u32,
    bytes: usize,
}

impl Linked {
    /// A graph with its measured recall.
    pub(crate) fn new(graph: Arc<Graph>, recall: Arc<[RecallPoint]>, measured_on: u32) -> Self {
        let bytes = graph.bytes();
        Linked { graph, recall, measured_on, bytes }
    }

    /// The bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Reads the graph of an index with this many slots; none if the index has no graph.
///
/// # Errors
/// `Corrupted` for a damaged row, for rows that do not fit the head or each other, and for links to a slot that no
/// walk can pass through.
pub(super) fn read_graph(snapshot: &Snapshot, index: IndexId, slots: u32) -> Result<Option<Linked>> {
    let Some(head) = snapshot.graph_head(index)? else { return Ok(None) };
    let mut graph = Graph::new();
    let mut bottom = Vec::new();
    snapshot.graph_blocks(&Walk::prefix(&keys::index(index)), &mut |_, block, at, bytes| {
        let first = u64::from(block) * NODES_PER_BLOCK as u64;
        for (slot, node) in (first..).zip(GraphBlockRef::open(at, bytes)?.nodes()) {
            let Some(node) = node else { continue };
            let Some(slot) = u32::try_from(slot).ok().filter(|slot| *slot < slots) else {
                return Err(disagree(index, format!("slot {slot} is a node and was never given out")));
            };
            if let Some(host) = node.host() {
                if host >= slots {
                    return Err(disagree(
                        index,
                        format!("slot {slot} hangs on {host}, which was never given out"),
                    ));
                }
                // A twin has no links of its own: walks pass through its host.
                graph.set_twin(slot, host);
                continue;
            }
            bottom.clear();
            bottom.extend(node.bottom());
            let upper: Vec<Vec<u32>> = (1..=node.level()).map(|level| node.upper(level).collect()).collect();
            graph.set_node(slot, &bottom, &upper);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    graph.set_entry(head.entry);
    // A link may lead to a slot of a later block, so links are checked when all blocks have been read.
    check_graph(&graph, &head).map_err(|why| disagree(index, why))?;
    Ok(Some(Linked::new(Arc::new(graph), head.recall.into(), head.calibrated_at)))
}

/// Checks what a walk relies on: an entry, and links that lead to nodes of their level.
fn check_graph(graph: &Graph, head: &GraphHead) -> std::result::Result<(), String> {
    if graph.len() != head.linked as usize {
        return Err(format!("{} nodes are there, {} counted", graph.len(), head.linked));
    }
    let top = graph.entry().map(|entry| graph.level(entry));
    if graph.is_empty() != top.is_none() || top == Some(None) {
        return Err(format!("the entry {:?} is not a node", graph.entry()));
    }
    for slot in graph.nodes() {
        if let Some(host) = graph.host(slot)
            && (!graph.contains(host) || graph.host(host).is_some())
        {
            return Err(format!("slot {slot} hangs on {host}, which is no node with links"));
        }
        for level in 0..=usize::from(graph.level(slot).unwrap_or(0)) {
            let leads = |link: &u32| {
                graph.host(*link).is_none()
                    && graph.level(*link).is_some_and(|found| usize::from(found) >= level)
            };
            if let Some(link) = graph.links(slot, level).iter().find(|link| !leads(link)) {
                return Err(format!("slot {slot} has a link to {link}, which is no node of level {level}"));
            }
        }
    }
    Ok(())
}

/// The error if the head and the rows of a graph contradict each other.
fn disagree(index: IndexId, why: String) -> Error {
    Error::corrupted(Table::GraphHead.name(), &keys::index(index), why)
}

/// Writes the rows of some blocks.
pub(super) fn write_blocks(
    tx: &mut WriteTx<'_>,
    index: IndexId,
    graph: &Graph,
    blocks: &BTreeSet<u32>,
) -> Result<()> {
    for &block in blocks {
        let first = block * NODES_PER_BLOCK as u32;
        let nodes: Vec<Option<GraphNode<'_>>> = (first..)
            .take(NODES_PER_BLOCK)
            .map(|slot| {
                let node = graph.node(slot)?;
                Some(GraphNode { bottom: node.bottom, upper: node.upper, host: node.host })
            })
            .collect();
        tx.put_graph_block(index, block, &nodes)?;
    }
    Ok(())
}
