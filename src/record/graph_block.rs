//! Graph blocks: the links of 16 consecutive slots of a vector index, so that a walk reads a row for many nodes.
//!
//! ```text
//! header 4 | present u16 | present nodes, by slot | crc u32
//! node: level u8 | count u8 | count × link u32 | level × ( count u8 | count × link u32 )
//! twin: 255 u8 | host u32
//! ```
//! Bit n of `present` is set when slot n of the block is a node of the graph. The first list of a node is that of
//! level 0 (at most 32 links), then come those of the levels from 1 on (at most 16 each). A link is the number of a
//! slot of the same index; the order of the links is that of the graph and is kept. A twin has no links: its code is that
//! of another node, its host, and whoever comes to the host has come to the twin.

use crate::error::Result;
use crate::limits::{GRAPH_LEVEL_MAX, GRAPH_M, GRAPH_M0};
use crate::record::frame::{At, begin, no_flags, open, seal, tag};

/// Slots whose links lie in one block.
pub(crate) const NODES_PER_BLOCK: usize = 16;

/// The block of a slot.
pub(crate) fn block_of(slot: u32) -> u32 {
    slot / NODES_PER_BLOCK as u32
}
/// Bytes of a link.
const LINK_BYTES: usize = 4;
/// Stands for the level of a twin.
const TWIN: u8 = u8::MAX;

/// The links of one node: `bottom` of level 0, `upper` of the levels from 1 on; its level is `upper.len()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GraphNode<'a> {
    /// Links of level 0, at most 32.
    pub(crate) bottom: &'a [u32],
    /// Links of the levels from 1 on, at most 15 levels of at most 16.
    pub(crate) upper: &'a [Vec<u32>],
    /// Of a twin, which has no links, the node whose code it has.
    pub(crate) host: Option<u32>,
}

#[cfg(test)]
impl<'a> GraphNode<'a> {
    /// A node with links.
    pub(crate) fn linked(bottom: &'a [u32], upper: &'a [Vec<u32>]) -> Self {
        GraphNode { bottom, upper, host: None }
    }
}

/// Writes a block into `out`, replacing what is there. Entries past the end of `nodes` are absent.
///
/// # Panics
/// For more than 16 entries, a level or a degree out of bounds: bugs of ours.
pub(crate) fn encode_graph_block(nodes: &[Option<GraphNode<'_>>], key: &[u8], out: &mut Vec<u8>) {
    assert!(nodes.len() <= NODES_PER_BLOCK, "{} nodes in one block", nodes.len());
    begin(tag::GRAPH_BLOCK, out);
    let present = nodes.iter().rev().fold(0_u16, |bits, node| (bits << 1) | u16::from(node.is_some()));
    out.extend_from_slice(&present.to_le_bytes());
    for node in nodes.iter().flatten() {
        if let Some(host) = node.host {
            out.push(TWIN);
            out.extend_from_slice(&host.to_le_bytes());
            continue;
        }
        assert!(node.upper.len() <= GRAPH_LEVEL_MAX, "a node of level {}", node.upper.len());
        // Bounded by the assertions far below 256, here and for each list.
        out.push(node.upper.len() as u8);
        write_links(node.bottom, GRAPH_M0, out);
        node.upper.iter().for_each(|links| write_links(links, GRAPH_M, out));
    }
    seal(0, key, out);
}

fn write_links(links: &[u32], most: usize, out: &mut Vec<u8>) {
    assert!(links.len() <= most, "{} links where {most} fit", links.len());
    out.push(links.len() as u8);
    out.extend(links.iter().flat_map(|link| link.to_le_bytes()));
}

/// A block read where it lies: checked once, then only walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphBlockRef<'b> {
    present: u16,
    nodes: &'b [u8],
}

impl<'b> GraphBlockRef<'b> {
    /// Checks frame, checksum, level and degrees of every node, and the length.
    ///
    /// # Errors
    /// `Corrupted` for bytes that [`encode_graph_block`] did not write.
    pub(crate) fn open(at: At<'_>, bytes: &'b [u8]) -> Result<Self> {
        let (flags, body) = open(tag::GRAPH_BLOCK, at, bytes)?;
        no_flags(at, flags)?;
        let Some((present, nodes)) = body.split_first_chunk::<2>() else {
            return Err(at.corrupted("a graph block without its nodes"));
        };
        let block = GraphBlockRef { present: u16::from_le_bytes(*present), nodes };
        let mut rest = nodes;
        for slot in (0..NODES_PER_BLOCK).filter(|slot| block.has(*slot)) {
            let sound = GraphNodeRef::take(&mut rest).is_some_and(|node| node.is_sound());
            if !sound {
                return Err(at.corrupted(format!("node {slot} of the block has a list out of bounds")));
            }
        }
        match rest.len() {
            0 => Ok(block),
            left => Err(at.corrupted(format!("{left} bytes after the last node"))),
        }
    }

    /// Whether a slot of the block is a node.
    pub(crate) fn has(&self, slot: usize) -> bool {
        slot < NODES_PER_BLOCK && self.present & (1 << slot) != 0
    }

    /// The 16 slots of the block in order, none where a slot is no node.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Option<GraphNodeRef<'b>>> + use<'b> {
        // `open` has taken every node once, so each of them can be taken again.
        let (block, mut rest) = (*self, self.nodes);
        (0..NODES_PER_BLOCK)
            .map(move |slot| if block.has(slot) { GraphNodeRef::take(&mut rest) } else { None })
    }
}

/// A node of a block that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphNodeRef<'b> {
    bottom: &'b [[u8; LINK_BYTES]],
    levels: u8,
    host: Option<u32>,
    /// The lists of the levels from 1 on, each behind its count.
    upper: &'b [u8],
}

impl<'b> GraphNodeRef<'b> {
    /// The node at the front of `bytes`, which it takes; none when they end before it does.
    fn take(bytes: &mut &'b [u8]) -> Option<Self> {
        let (&levels, mut rest) = bytes.split_first()?;
        if levels == TWIN {
            let (host, rest) = rest.split_first_chunk::<LINK_BYTES>()?;
            *bytes = rest;
            let host = Some(u32::from_le_bytes(*host));
            return Some(GraphNodeRef { bottom: &[], levels: 0, host, upper: &[] });
        }
        let bottom = take_links(&mut rest)?;
        let before = rest;
        for _ in 0..levels {
            take_links(&mut rest)?;
        }
        let (upper, _) = before.split_at_checked(before.len() - rest.len())?;
        *bytes = rest;
        Some(GraphNodeRef { bottom, levels, host: None, upper })
    }

    fn is_sound(&self) -> bool {
        let mut upper = self.upper;
        self.level() <= GRAPH_LEVEL_MAX
            && self.bottom.len() <= GRAPH_M0
            && (0..self.levels).all(|_| take_links(&mut upper).is_some_and(|links| links.len() <= GRAPH_M))
    }

    /// Its highest level.
    pub(crate) fn level(&self) -> usize {
        usize::from(self.levels)
    }

    /// The node whose code it has, of a twin.
    pub(crate) fn host(&self) -> Option<u32> {
        self.host
    }

    /// Its links of level 0.
    pub(crate) fn bottom(&self) -> impl ExactSizeIterator<Item = u32> + use<'b> {
        self.bottom.iter().map(|link| u32::from_le_bytes(*link))
    }

    /// Its links of a level from 1 on; none of a level that it does not have.
    pub(crate) fn upper(&self, level: usize) -> impl ExactSizeIterator<Item = u32> + use<'b> {
        let mut rest = if (1..=self.level()).contains(&level) { self.upper } else { &[] };
        for _ in 1..level {
            if take_links(&mut rest).is_none() {
                break;
            }
        }
        let links = take_links(&mut rest).unwrap_or_default();
        links.iter().map(|link| u32::from_le_bytes(*link))
    }
}

/// The list at the front of `bytes`, behind its count; none when they end before it does.
fn take_links<'b>(bytes: &mut &'b [u8]) -> Option<&'b [[u8; LINK_BYTES]]> {
    let (&count, rest) = bytes.split_first()?;
    let (links, rest) = rest.split_at_checked(usize::from(count) * LINK_BYTES)?;
    *bytes = rest;
    // The length is a multiple of that of a link, so nothing remains.
    Some(links.as_chunks::<LINK_BYTES>().0)
}

const _: () = assert!(NODES_PER_BLOCK == u16::BITS as usize);
const _: () = assert!(GRAPH_M0 <= u8::MAX as usize && GRAPH_M <= GRAPH_M0 && GRAPH_LEVEL_MAX < TWIN as usize);
