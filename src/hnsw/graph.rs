//! The adjacency of all nodes, in chunks that are shared between states and copied when they change.

use std::sync::Arc;

use crate::limits::{GRAPH_LEVEL_MAX, GRAPH_M, GRAPH_M0};

/// The number of nodes in a chunk, which is what one change copies.
const CHUNK: usize = 64;
/// The level of a slot that is not in the graph.
const ABSENT: u8 = u8::MAX;
/// The level of a twin.
const TWIN: u8 = u8::MAX - 1;
/// Stands behind the last link of a list that is not full. No slot has this number.
const END: u32 = u32::MAX;

/// One node in 16 has a list of 64 bytes with its two headers, and one in 16 of these has another one.
const UPPER_BYTES: usize = 10;

const _: () = assert!(GRAPH_LEVEL_MAX < TWIN as usize);

/// The adjacency of neighbouring slots.
#[derive(Clone)]
struct Chunk {
    levels: [u8; CHUNK],
    /// Links by position. A walk finds a list and its length in the same two lines of the cache.
    bottom: [[u32; GRAPH_M0]; CHUNK],
    /// The links of the levels from 1 on, by position. Few nodes have any.
    upper: Vec<(u8, Vec<Vec<u32>>)>,
    /// The twins of the nodes that have twins, by position, ascending.
    twins: Vec<(u8, Vec<u32>)>,
    /// The hosts of the nodes that are twins, by position.
    hosts: Vec<(u8, u32)>,
}

impl Chunk {
    const EMPTY: Chunk = Chunk {
        levels: [ABSENT; CHUNK],
        bottom: [[END; GRAPH_M0]; CHUNK],
        upper: Vec::new(),
        twins: Vec::new(),
        hosts: Vec::new(),
    };

    fn bottom(&self, at: usize) -> &[u32] {
        let Some(links) = self.bottom.get(at) else { return &[] };
        let degree = GRAPH_M0 - links.iter().map(|link| usize::from(*link == END)).sum::<usize>();
        links.get(..degree).unwrap_or_default()
    }

    fn upper(&self, at: usize) -> &[Vec<u32>] {
        let found = self.upper.iter().find(|(node, _)| usize::from(*node) == at);
        found.map(|(_, levels)| levels.as_slice()).unwrap_or_default()
    }

    fn set_node(&mut self, at: usize, level: u8) {
        put(&mut self.levels, at, level);
        put(&mut self.bottom, at, [END; GRAPH_M0]);
        self.upper.retain(|(node, _)| usize::from(*node) != at);
        self.hosts.retain(|(node, _)| usize::from(*node) != at);
        if usize::from(level) <= GRAPH_LEVEL_MAX && level > 0 {
            self.upper.push((at as u8, vec![Vec::new(); usize::from(level)]));
        }
    }

    fn host(&self, at: usize) -> Option<u32> {
        self.levels.get(at).filter(|level| **level == TWIN)?;
        self.hosts.iter().find(|(node, _)| usize::from(*node) == at).map(|(_, host)| *host)
    }

    fn set_host(&mut self, at: usize, host: u32) {
        self.set_node(at, TWIN);
        self.hosts.push((at as u8, host));
    }

    fn twins(&self, at: usize) -> &[u32] {
        let found = self.twins.iter().find(|(node, _)| usize::from(*node) == at);
        found.map(|(_, twins)| twins.as_slice()).unwrap_or_default()
    }

    fn add_twin(&mut self, at: usize, twin: u32) {
        match self.twins.iter_mut().find(|(node, _)| usize::from(*node) == at) {
            Some((_, twins)) => {
                if let Err(place) = twins.binary_search(&twin) {
                    twins.insert(place, twin);
                }
            }
            None => self.twins.push((at as u8, vec![twin])),
        }
    }

    fn take_twin(&mut self, at: usize, twin: u32) {
        if let Some((_, twins)) = self.twins.iter_mut().find(|(node, _)| usize::from(*node) == at)
            && let Ok(place) = twins.binary_search(&twin)
        {
            twins.remove(place);
        }
        self.twins.retain(|(_, twins)| !twins.is_empty());
    }

    fn set_links(&mut self, at: usize, level: usize, links: &[u32]) {
        match level.checked_sub(1) {
            None => {
                if let Some(place) = self.bottom.get_mut(at) {
                    *place = [END; GRAPH_M0];
                    place.iter_mut().zip(links).for_each(|(to, from)| *to = *from);
                }
            }
            Some(above) => {
                let node = self.upper.iter_mut().find(|(node, _)| usize::from(*node) == at);
                if let Some(place) = node.and_then(|(_, levels)| levels.get_mut(above)) {
                    *place = links.to_vec();
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        let lists = |levels: &Vec<Vec<u32>>| {
            levels.capacity() * size_of::<Vec<u32>>()
                + levels.iter().map(|links| links.capacity() * size_of::<u32>()).sum::<usize>()
        };
        let upper = self.upper.iter().map(|(_, levels)| lists(levels)).sum::<usize>();
        let twins = self.twins.iter().map(|(_, twins)| twins.capacity() * size_of::<u32>()).sum::<usize>();
        size_of::<Chunk>()
            + self.upper.capacity() * size_of::<(u8, Vec<Vec<u32>>)>()
            + self.twins.capacity() * size_of::<(u8, Vec<u32>)>()
            + self.hosts.capacity() * size_of::<(u8, u32)>()
            + upper
            + twins
    }
}

fn put<T>(list: &mut [T], at: usize, value: T) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

/// A node in its stored form: its links by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'g> {
    /// The links of the bottom level, at most [`GRAPH_M0`].
    pub bottom: &'g [u32],
    /// The links of the levels from 1 on, at most [`GRAPH_M`] each.
    pub upper: &'g [Vec<u32>],
    /// The host of a twin. A twin has no links.
    pub host: Option<u32>,
}

/// The links between nodes. A clone shares all chunks until one of the two graphs changes.
#[derive(Clone, Default)]
pub struct Graph {
    chunks: Vec<Arc<Chunk>>,
    entry: Option<u32>,
    len: usize,
    /// The number of nodes that are twins.
    twins: usize,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("len", &self.len).field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// Chunk and position of a slot.
#[inline]
fn place(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

impl Graph {
    /// The bytes that a slot takes in memory. The links of the upper levels are spread over all slots.
    pub const SLOT_BYTES: usize = size_of::<Chunk>() / CHUNK + UPPER_BYTES;

    /// A graph without a node.
    pub fn new() -> Self {
        Graph::default()
    }

    /// The number of nodes, including nodes that are not alive.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the graph has no node.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The node where every walk begins: a node of the highest level. None in an empty graph.
    pub fn entry(&self) -> Option<u32> {
        self.entry
    }

    /// Only slots below this number can be nodes.
    pub fn slots(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// The bytes in memory. Chunks that are shared with another state count for both.
    pub fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.bytes() + 2 * size_of::<usize>()).sum::<usize>();
        size_of::<Graph>() + self.chunks.capacity() * size_of::<Arc<Chunk>>() + chunks
    }

    /// The level of a node, 0 for a twin; none if the slot is not a node.
    #[inline]
    pub fn level(&self, slot: u32) -> Option<u8> {
        let (chunk, at) = place(slot);
        let level = self.chunks.get(chunk)?.levels.get(at).copied().filter(|level| *level != ABSENT)?;
        Some(if level == TWIN { 0 } else { level })
    }

    /// The host of a twin; none for every other slot.
    pub fn host(&self, slot: u32) -> Option<u32> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.host(at)
    }

    /// The twins of a node, ascending.
    #[inline]
    pub fn twins(&self, slot: u32) -> &[u32] {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk).map(|chunk| chunk.twins(at)).unwrap_or_default()
    }

    /// Whether any node is a twin.
    pub(super) fn has_twins(&self) -> bool {
        self.twins > 0
    }

    /// The nodes with twins, each with its twins.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (u32, &[u32])> {
        (0_u32..).step_by(CHUNK).zip(&self.chunks).flat_map(|(first, chunk)| {
            chunk.twins.iter().map(move |(at, twins)| (first + u32::from(*at), twins.as_slice()))
        })
    }

    /// Whether a slot is a node.
    #[inline]
    pub fn contains(&self, slot: u32) -> bool {
        self.level(slot).is_some()
    }

    /// The links of a slot on a level; none if the slot does not have the level.
    #[inline]
    pub fn links(&self, slot: u32, level: usize) -> &[u32] {
        let (chunk, at) = place(slot);
        let Some(chunk) = self.chunks.get(chunk) else { return &[] };
        match level.checked_sub(1) {
            None => chunk.bottom(at),
            Some(above) => chunk.upper(at).get(above).map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// The whole list of a node on the bottom level, to be prefetched before [`Graph::links`].
    #[inline]
    pub(super) fn list(&self, slot: u32) -> &[u32] {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk).and_then(|chunk| chunk.bottom.get(at)).map_or(&[], |list| list.as_slice())
    }

    /// A node with all its links.
    pub fn node(&self, slot: u32) -> Option<Node<'_>> {
        let (chunk, at) = place(slot);
        let chunk = self.chunks.get(chunk)?;
        chunk.levels.get(at).filter(|level| **level != ABSENT)?;
        Some(Node { bottom: chunk.bottom(at), upper: chunk.upper(at), host: chunk.host(at) })
    }

    /// Every node, by slot.
    pub fn nodes(&self) -> impl Iterator<Item = u32> {
        (0_u32..).step_by(CHUNK).zip(&self.chunks).flat_map(|(first, chunk)| {
            let present = (first..).zip(&chunk.levels).filter(|(_, level)| **level != ABSENT);
            present.map(|(slot, _)| slot)
        })
    }

    /// A bit for each node among the 64 slots from `first` on, which is a multiple of 64.
    pub fn nodes_of_word(&self, first: u32) -> u64 {
        const _: () = assert!(CHUNK == u64::BITS as usize);
        let Some(chunk) = self.chunks.get(first as usize / CHUNK) else { return 0 };
        let bits = chunk.levels.iter().enumerate();
        bits.fold(0, |word, (bit, level)| word | (u64::from(*level != ABSENT) << bit))
    }

    /// Replaces a node, or makes one, with stored links.
    ///
    /// # Panics
    /// For more links or levels than a node may have.
    pub fn set_node(&mut self, slot: u32, bottom: &[u32], upper: &[Vec<u32>]) {
        assert!(upper.len() <= GRAPH_LEVEL_MAX, "a node has at most {GRAPH_LEVEL_MAX} levels");
        self.add_node(slot, upper.len() as u8);
        self.set_links(slot, 0, bottom);
        for (level, links) in (1..).zip(upper) {
            self.set_links(slot, level, links);
        }
    }

    /// Makes a slot the twin of a node. The node may be stored later.
    pub fn set_twin(&mut self, slot: u32, host: u32) {
        self.add_node(slot, 0);
        self.twins += 1;
        let (chunk, at) = place(slot);
        self.chunk_mut(chunk).set_host(at, host);
        let (chunk, at) = place(host);
        // The host may be stored after its twin, so its chunk may not exist yet.
        self.make_room(chunk);
        self.chunk_mut(chunk).add_twin(at, slot);
    }

    /// Sets the node where walks begin. It must be a node of the highest level, or none in an empty graph.
    pub fn set_entry(&mut self, entry: Option<u32>) {
        self.entry = entry;
    }

    /// Makes a node without links, in place of whatever the slot was.
    pub(super) fn add_node(&mut self, slot: u32, level: u8) {
        // The slot may have been a twin. Its former host must lose it, and the counts must not count it twice.
        self.take_node(slot);
        let (chunk, at) = place(slot);
        self.make_room(chunk);
        self.len += 1;
        self.chunk_mut(chunk).set_node(at, level);
    }

    fn make_room(&mut self, chunk: usize) {
        while self.chunks.len() <= chunk {
            self.chunks.push(Arc::new(Chunk::EMPTY));
        }
    }

    /// Removes a node. If it has twins, they must be removed too.
    pub(super) fn take_node(&mut self, slot: u32) {
        if let Some(host) = self.host(slot) {
            self.twins -= 1;
            let (chunk, at) = place(host);
            self.chunk_mut(chunk).take_twin(at, slot);
        }
        let (chunk, at) = place(slot);
        if self.contains(slot) {
            self.len -= 1;
            self.chunk_mut(chunk).set_node(at, ABSENT);
        }
    }

    /// # Panics
    /// For more links than the level allows.
    pub(super) fn set_links(&mut self, slot: u32, level: usize, links: &[u32]) {
        assert!(links.len() <= degree_max(level), "a node has at most {} links", degree_max(level));
        let (chunk, at) = place(slot);
        self.chunk_mut(chunk).set_links(at, level, links);
    }

    #[expect(clippy::expect_used, reason = "a node of the graph has a chunk")]
    fn chunk_mut(&mut self, chunk: usize) -> &mut Chunk {
        Arc::make_mut(self.chunks.get_mut(chunk).expect("a chunk of the graph"))
    }
}

/// The largest number of links of a node on a level.
pub(super) const fn degree_max(level: usize) -> usize {
    if level == 0 { GRAPH_M0 } else { GRAPH_M }
}
