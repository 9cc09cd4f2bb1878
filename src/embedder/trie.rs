//! A trie over bytes: which is the longest key at the beginning of a text?
//!
//! The edges lie in one table with open addressing. So a step costs one probe, and the trie takes some 20 bytes for
//! each node. ASCII capitals are looked up as small letters, so that a caller need not copy a word to lower it.

/// Stands for no value and for no node.
const NONE: u32 = u32::MAX;

/// A map from keys to ids below `u32::MAX`.
#[derive(Debug)]
pub(super) struct Trie {
    /// `(node << 8 | byte, child)`, or `(_, NONE)` for a free place. The length is a power of two, and at least a
    /// quarter is free.
    edges: Vec<(u32, u32)>,
    /// The id of the key that ends at each node.
    ids: Vec<u32>,
}

impl Trie {
    /// An empty trie with room for so many nodes. It grows past them.
    pub(super) fn with_room(nodes: usize) -> Self {
        let places = (nodes / 3 * 4 + 1).next_power_of_two().max(1024);
        let mut ids = Vec::with_capacity(nodes + 1);
        ids.push(NONE);
        Self { edges: vec![(0, NONE); places], ids }
    }

    /// Gives `key` an id, and returns its earlier id if it had one. All keys together have fewer than 2^24
    /// bytes.
    pub(super) fn insert(&mut self, key: &[u8], id: u32) -> Option<u32> {
        let mut node = 0;
        for byte in key {
            node = match self.child(node, *byte) {
                NONE => self.grow(node, *byte),
                child => child,
            };
        }
        let place = self.ids.get_mut(node as usize)?;
        let old = std::mem::replace(place, id);
        (old != NONE).then_some(old)
    }

    /// The id of `key`. Here ASCII capitals and small letters differ.
    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        let mut node = 0;
        for byte in key {
            node = self.child(node, *byte);
            if node == NONE {
                return None;
            }
        }
        self.id(node)
    }

    /// The id of the longest key at the beginning of `text`, looked up in small letters, and the text behind it. The
    /// empty key does not count.
    pub(super) fn longest<'a>(&self, text: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (mut node, mut found, mut rest) = (0, None, text);
        while let Some((byte, after)) = rest.split_first() {
            node = self.child(node, byte.to_ascii_lowercase());
            if node == NONE {
                break;
            }
            if let Some(id) = self.id(node) {
                found = Some((id, after));
            }
            rest = after;
        }
        found
    }

    fn id(&self, node: u32) -> Option<u32> {
        self.ids.get(node as usize).copied().filter(|id| *id != NONE)
    }

    fn child(&self, node: u32, byte: u8) -> u32 {
        let label = label(node, byte);
        let mask = self.edges.len() - 1;
        let mut place = home(label) & mask;
        // `grow` keeps a quarter of the places vacant, so the search ends at the label or at a vacant place.
        while let Some((met, child)) = self.edges.get(place) {
            if *met == label || *child == NONE {
                return *child;
            }
            place = (place + 1) & mask;
        }
        NONE
    }

    fn grow(&mut self, node: u32, byte: u8) -> u32 {
        if self.ids.len() * 4 >= self.edges.len() * 3 {
            let wider = vec![(0, NONE); self.edges.len() * 2];
            for (label, child) in std::mem::replace(&mut self.edges, wider) {
                if child != NONE {
                    self.place(label, child);
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "fewer than 2^24 nodes")]
        let child = self.ids.len() as u32;
        self.ids.push(NONE);
        self.place(label(node, byte), child);
        child
    }

    fn place(&mut self, label: u32, child: u32) {
        let mask = self.edges.len() - 1;
        let mut place = home(label) & mask;
        while let Some(edge) = self.edges.get_mut(place) {
            if edge.1 == NONE {
                *edge = (label, child);
                return;
            }
            place = (place + 1) & mask;
        }
    }
}

/// There are fewer than 2^24 nodes, so the shift loses no bit.
fn label(node: u32, byte: u8) -> u32 {
    (node << 8) | u32::from(byte)
}

/// Where the search for a label begins: Fibonacci hashing (Knuth, TAOCP 3, 6.4), the high bits.
fn home(label: u32) -> usize {
    (u64::from(label).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}
