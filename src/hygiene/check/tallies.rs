//! What a check counts on its walk: of partitions, of indexes of vectors and their graphs, of full-text indexes.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::bit_rows::Coder;
use crate::ledger::derived::counted_in;
use crate::model::{Content, Tier, Vitals};
use crate::record::NODES_PER_BLOCK;
use crate::store::control::{CounterRow, CounterSort, TOTAL, TextHead};
use crate::store::{NsId, PartId};

/// Rows with an equal fingerprint stand under this.
type Equal = (NsId, PartId, Tier, [u8; 16]);

/// What a check knows of the one-bit codes of an index.
#[derive(Default)]
pub(super) struct Center {
    /// The number of the center, and the maker of codes; none where the head is missing or damaged.
    pub(super) known: Option<(u32, Coder)>,
    /// Whether there is a head at all.
    pub(super) there: bool,
    /// The number of rows that were met.
    pub(super) rows: u32,
}

/// What the rows count up to.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) rows: BTreeMap<(NsId, PartId, u8, String), CounterRow>,
    /// The fingerprint that was met last.
    pub(super) last: Option<Equal>,
    /// Tombstones by the counters of the partitions; a tombstone itself does not say where its row was.
    pub(super) tombstones: BTreeMap<NsId, i64>,
    /// Namespaces of which a row could not be read.
    pub(super) blind: BTreeSet<NsId>,
}

impl Counts {
    pub(super) fn add(
        &mut self,
        ns: NsId,
        part: PartId,
        sort: CounterSort,
        name: &str,
        rows: i64,
        bytes: i64,
    ) {
        let count = self.rows.entry((ns, part, sort as u8, name.to_owned())).or_default();
        count.rows = count.rows.saturating_add(rows);
        count.bytes = count.bytes.saturating_add(bytes);
    }

    pub(super) fn add_row(&mut self, ns: NsId, vitals: &Vitals, content: &Content) {
        for (sort, name, bytes) in counted_in(vitals, Some(content)) {
            let rows = if sort == CounterSort::Holders { i64::from(vitals.place.holders) } else { 1 };
            for part in [PartId(vitals.place.partition), TOTAL] {
                self.add(ns, part, sort, &name, rows, bytes);
            }
        }
    }

    /// Rows beyond the first with an equal fingerprint are duplicates; the index has them side by side.
    pub(super) fn add_fingerprint(&mut self, ns: NsId, part: PartId, tier: Tier, fingerprint: [u8; 16]) {
        let equal = (ns, part, tier, fingerprint);
        if self.last.replace(equal) == Some(equal) {
            self.add(ns, part, CounterSort::Duplicates, "", 1, 0);
            self.add(ns, TOTAL, CounterSort::Duplicates, "", 1, 0);
        }
    }

    pub(super) fn add_tombstone(&mut self, ns: NsId) {
        self.add(ns, TOTAL, CounterSort::Tombstones, "", 1, 0);
    }
}

/// Level in [`Mesh`] of a slot that is no node.
pub(super) const ABSENT: u8 = u8::MAX;
/// Level in [`Mesh`] of a twin.
pub(super) const TWIN: u8 = u8::MAX - 1;
/// Slots of one block, as slots are numbered.
pub(super) const PER: u32 = NODES_PER_BLOCK as u32;

/// The nodes of the graph of one index: a byte for each slot of a block that has a row.
#[derive(Default)]
pub(super) struct Mesh {
    pub(super) levels: BTreeMap<u32, [u8; NODES_PER_BLOCK]>,
    /// A row of the graph could not be read, so that nothing can be said of what is missing.
    pub(super) blind: bool,
}

impl Mesh {
    /// Level of a node, 0 for a twin; none for a slot that is no node.
    pub(super) fn level(&self, slot: u32) -> Option<usize> {
        self.byte(slot).filter(|level| *level != ABSENT).map(level_of_byte)
    }

    /// Whether a slot is a twin.
    pub(super) fn is_twin(&self, slot: u32) -> bool {
        self.byte(slot) == Some(TWIN)
    }

    pub(super) fn byte(&self, slot: u32) -> Option<u8> {
        self.levels.get(&(slot / PER))?.get((slot % PER) as usize).copied()
    }

    /// Every node with its level.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.levels.iter().flat_map(|(block, levels)| {
            let slots = (0..PER).map(|at| block.saturating_mul(PER).saturating_add(at));
            let nodes = slots.zip(levels).filter(|(_, level)| **level != ABSENT);
            nodes.map(|(slot, level)| (slot, level_of_byte(*level)))
        })
    }
}

fn level_of_byte(byte: u8) -> usize {
    if byte == TWIN { 0 } else { usize::from(byte) }
}

/// What the walk has met of one index.
#[derive(Default)]
pub(super) struct Tally {
    /// Slots that hold a memory.
    pub(super) used: u64,
    /// Slots of the blocks that hold nothing.
    pub(super) vacant: BTreeSet<u32>,
    /// Dead slots of the blocks with the commits that ended them.
    pub(super) dead: BTreeMap<u32, u64>,
    /// Slots of the list of dead ones.
    pub(super) listed: BTreeSet<u32>,
    /// Slots of the free list.
    pub(super) free: BTreeSet<u32>,
    /// A block could not be read.
    pub(super) blind: bool,
}

/// The last row of threads that the walk has met: its thread, its document, and the one that follows as that says; none
/// where the document cannot be read.
pub(super) type LastInThread = (Vec<u8>, u32, Option<Option<u32>>);

/// What the walk has met of one full-text index.
#[derive(Default)]
pub(super) struct TextTally {
    pub(super) head: TextHead,
    pub(super) used: u32,
    /// By block, a bit for each document that stands for a memory.
    pub(super) present: BTreeMap<u32, u128>,
    /// Sum over all postings of what a posting says: of those in the file, and of those that the texts give.
    pub(super) found: u64,
    pub(super) expected: u64,
    /// Rows of threads that no memory has asked for yet; each that one has is taken off.
    pub(super) threads: i64,
    /// Something could not be read.
    pub(super) blind: bool,
}

/// The number of members that are kept at once of all sets: a few tens of megabytes.
const MEMBERS_KEPT: usize = 1_000_000;

/// The number of members from which on a set is kept.
const MEMBERS_LEAST: usize = 16;

/// What rows of a table say that stand for many: each is read once, and not for each of its members.
pub(super) struct Sets<K, T> {
    sets: BTreeMap<(NsId, K), BTreeSet<T>>,
    /// Members of all of them.
    members: usize,
}

impl<K, T> Default for Sets<K, T> {
    fn default() -> Self {
        Sets { sets: BTreeMap::new(), members: 0 }
    }
}

impl<K: Ord, T: Ord> Sets<K, T> {
    /// The members of a row; none if the row was not kept.
    pub(super) fn of(&self, ns: NsId, row: K) -> Option<&BTreeSet<T>> {
        self.sets.get(&(ns, row))
    }

    /// Keeps the members of a row. Few are not worth it: the row is read as seldom.
    pub(super) fn keep(&mut self, ns: NsId, row: K, members: BTreeSet<T>) {
        if members.len() < MEMBERS_LEAST {
            return;
        }
        if self.members + members.len() > MEMBERS_KEPT {
            *self = Sets::default();
        }
        self.members += members.len();
        self.sets.insert((ns, row), members);
    }
}
