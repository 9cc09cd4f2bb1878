//! Every key of the file, built here and nowhere else.
//!
//! Numbers are big-endian so that byte order is number order; instants have their sign bit flipped for the same
//! reason. The namespace's number stands first in every key that belongs to one: dropping a namespace is a range
//! delete, and no range can cross from one tenant to another by mistake. A text is followed by a NUL, which no name
//! may hold, so that no text is a prefix of another.
//!
//! ```text
//! namespace        name                          partition       ns | name
//! partition_name   ns | part                     space           space
//! run              ns | run                      policy          number(8)
//! slot, vector, graph  ns | part | space | block
//! slot_head, graph_head  ns | part | space
//! slot_free, slot_dead  ns | part | space | died(8) | slot
//! vitals memory access tombstone  ns | id        holder          ns | id | number
//! holder_key       ns | key NUL | id | number    holder_tag      ns | tag NUL | id | number
//! holder_run       ns | run | id | number
//! term             ns | sort | name              term_name       ns | sort | term
//! junction         ns | id | sort | target | role
//! junction_back    ns | sort | target | id | role
//! superseded       ns | new | old                journal         ns | seq(8)
//! journal_subject  ns | id | holder | seq(8)     tombstone_hash  ns | hash(32) | id
//! by_time          ns | part | created(8) | id   pending         ns | part | id
//! by_fingerprint   ns | part | tier | fp(16) | likeness(12) | id
//! due              ns | at(8) | id               counter         ns | part | sort | name
//! limbo, event, aggregate, family  ns | id       limbo_time, event_time  ns | at(8) | id
//! event_of         ns | owner(16) | id           journal_run     ns | run | seq(8)
//! family_key       ns | part | key(32) | latest(8) | id
//! family_band      ns | part | author(1) | channel(8) | band(1) | byte(1) | latest(8) | id
//! series           ns | part | series NUL | at(8) | id
//! pass             ns | name
//! meta_key         ns | path                     meta_value      ns | path NUL | value | id
//! ```
//! ns, part, block, slot, number and term take 4 bytes, space 2, sort and tier 1, ids 16.

use crate::model::{MemoryId, MetaValue, RunId, Tier, Time};

/// Number of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NsId(pub(crate) u32);

/// Number of a partition in its namespace; 0 is the shared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartId(pub(crate) u32);

/// Number of an embedding space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SpaceId(pub(crate) u16);

impl SpaceId {
    /// Where rows without a vector are.
    pub(crate) const NONE: SpaceId = SpaceId(0);
}

/// One vector index: a partition in an embedding space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct IndexId {
    pub(crate) ns: NsId,
    pub(crate) part: PartId,
    pub(crate) space: SpaceId,
}

impl SpaceId {
    /// The space in which a full-text index lies, beside the images of vectors; no vector does.
    pub(crate) const TEXT: SpaceId = SpaceId(u16::MAX);
}

/// What a junction row joins a memory to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Junction {
    /// A category, by term.
    Category = 1,
    /// An entity, by term, with a role.
    Entity = 2,
    /// Another memory, with a relation.
    Link = 3,
    /// A memory that it was made from.
    Source = 4,
}

impl Junction {
    /// The sort with a code from disk.
    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Junction::Category),
            2 => Some(Junction::Entity),
            3 => Some(Junction::Link),
            4 => Some(Junction::Source),
            _ => None,
        }
    }
}

/// A key under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    fn new(capacity: usize) -> Self {
        Key(Vec::with_capacity(capacity))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    fn text(self, text: &str) -> Self {
        debug_assert!(!text.contains('\0'), "names hold no NUL");
        self.bytes(text.as_bytes()).bytes(&[0])
    }

    pub(super) fn time(self, time: Time) -> Self {
        self.u64((time.as_millis() as u64) ^ (1 << 63))
    }

    fn index(self, index: IndexId) -> Self {
        self.u32(index.ns.0).u32(index.part.0).bytes(&index.space.0.to_be_bytes())
    }
}

impl std::ops::Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Everything of a namespace: the prefix of all its keys.
pub(crate) fn ns(ns: NsId) -> Key {
    Key::new(4).u32(ns.0)
}

pub(crate) fn ns_part(ns: NsId, part: PartId) -> Key {
    Key::new(8).u32(ns.0).u32(part.0)
}

pub(crate) fn partition(ns: NsId, name: &str) -> Key {
    Key::new(4 + name.len()).u32(ns.0).bytes(name.as_bytes())
}

pub(crate) fn space(space: SpaceId) -> Key {
    Key::new(2).bytes(&space.0.to_be_bytes())
}

pub(crate) fn run(ns: NsId, run: RunId) -> Key {
    Key::new(20).u32(ns.0).bytes(run.as_bytes())
}

pub(crate) fn policy(number: u64) -> Key {
    Key::new(8).u64(number)
}

pub(crate) fn index(index: IndexId) -> Key {
    Key::new(10).index(index)
}

pub(crate) fn block(index: IndexId, block: u32) -> Key {
    Key::new(14).index(index).u32(block)
}

/// Full-text index of a partition.
pub(crate) fn text(ns: NsId, part: PartId, number: u32) -> Key {
    Key::new(12).u32(ns.0).u32(part.0).u32(number)
}

/// The documents of a thread by time.
pub(crate) fn thread_prefix(ns: NsId, part: PartId, thread: &str) -> Key {
    Key::new(21 + thread.len()).u32(ns.0).u32(part.0).text(thread)
}

/// A document in its thread.
pub(crate) fn thread(ns: NsId, part: PartId, thread: &str, at: Time, doc: u32) -> Key {
    thread_prefix(ns, part, thread).time(at).u32(doc)
}

/// Every term of a full-text index that begins with these bytes.
pub(crate) fn posting_prefix(ns: NsId, part: PartId, begins: &str) -> Key {
    Key::new(8 + begins.len()).u32(ns.0).u32(part.0).bytes(begins.as_bytes())
}

/// Every block of one term.
pub(crate) fn posting_term(ns: NsId, part: PartId, term: &str) -> Key {
    Key::new(13 + term.len()).u32(ns.0).u32(part.0).text(term)
}

/// The block of a term that begins with a document.
pub(crate) fn posting(ns: NsId, part: PartId, term: &str, first: u32) -> Key {
    posting_term(ns, part, term).u32(first)
}

/// A slot of the free list or of the dead, by the commit that ended it.
pub(crate) fn slot_ended(index: IndexId, died: u64, slot: u32) -> Key {
    Key::new(22).index(index).u64(died).u32(slot)
}

pub(crate) fn memory(ns: NsId, id: MemoryId) -> Key {
    Key::new(20).u32(ns.0).bytes(id.as_bytes())
}

pub(crate) fn holder(ns: NsId, id: MemoryId, number: u32) -> Key {
    Key::new(24).u32(ns.0).bytes(id.as_bytes()).u32(number)
}

pub(crate) fn holder_key_prefix(ns: NsId, key: &str) -> Key {
    Key::new(5 + key.len()).u32(ns.0).text(key)
}

/// The holders of one memory with a key or a tag.
pub(crate) fn holder_key_row(ns: NsId, key: &str, id: MemoryId) -> Key {
    Key::new(21 + key.len()).u32(ns.0).text(key).bytes(id.as_bytes())
}

/// The keyless holders of a memory: they stand under the empty key.
pub(crate) fn keyless(ns: NsId, id: MemoryId) -> Key {
    holder_key_row(ns, "", id)
}

pub(crate) fn holder_key(ns: NsId, key: &str, id: MemoryId, number: u32) -> Key {
    Key::new(25 + key.len()).u32(ns.0).text(key).bytes(id.as_bytes()).u32(number)
}

pub(crate) fn holder_run_prefix(ns: NsId, run: RunId) -> Key {
    Key::new(20).u32(ns.0).bytes(run.as_bytes())
}

pub(crate) fn holder_run(ns: NsId, run: RunId, id: MemoryId, number: u32) -> Key {
    Key::new(40).u32(ns.0).bytes(run.as_bytes()).bytes(id.as_bytes()).u32(number)
}

pub(crate) fn term(ns: NsId, sort: Junction, name: &str) -> Key {
    Key::new(5 + name.len()).u32(ns.0).bytes(&[sort as u8]).bytes(name.as_bytes())
}

pub(crate) fn term_name(ns: NsId, sort: Junction, term: u32) -> Key {
    Key::new(9).u32(ns.0).bytes(&[sort as u8]).u32(term)
}

/// `target` is a term or an id, `role` a role or a relation, empty for categories and sources.
pub(crate) fn junction(ns: NsId, id: MemoryId, sort: Junction, target: &[u8], role: &str) -> Key {
    Key::new(40).u32(ns.0).bytes(id.as_bytes()).bytes(&[sort as u8]).bytes(target).bytes(role.as_bytes())
}

pub(crate) fn junction_back(ns: NsId, sort: Junction, target: &[u8], id: MemoryId, role: &str) -> Key {
    Key::new(40).u32(ns.0).bytes(&[sort as u8]).bytes(target).bytes(id.as_bytes()).bytes(role.as_bytes())
}

pub(crate) fn junction_back_prefix(ns: NsId, sort: Junction, target: &[u8]) -> Key {
    Key::new(21).u32(ns.0).bytes(&[sort as u8]).bytes(target)
}

pub(crate) fn superseded(ns: NsId, new: MemoryId, old: MemoryId) -> Key {
    Key::new(36).u32(ns.0).bytes(new.as_bytes()).bytes(old.as_bytes())
}

pub(crate) fn journal(ns: NsId, seq: u64) -> Key {
    Key::new(12).u32(ns.0).u64(seq)
}

/// What the journal tells of one holder of a memory, or of none of them.
pub(crate) fn journal_holder(ns: NsId, id: MemoryId, holder: Option<u32>) -> Key {
    Key::new(32).u32(ns.0).bytes(id.as_bytes()).u32(holder.unwrap_or(u32::MAX))
}

pub(crate) fn journal_subject(ns: NsId, id: MemoryId, holder: Option<u32>, seq: u64) -> Key {
    journal_holder(ns, id, holder).u64(seq)
}

pub(crate) fn tombstone_hash_prefix(ns: NsId, hash: &[u8; 32]) -> Key {
    Key::new(36).u32(ns.0).bytes(hash)
}

pub(crate) fn tombstone_hash(ns: NsId, hash: &[u8; 32], id: MemoryId) -> Key {
    Key::new(52).u32(ns.0).bytes(hash).bytes(id.as_bytes())
}

pub(crate) fn by_time(ns: NsId, part: PartId, created: Time, id: MemoryId) -> Key {
    Key::new(32).u32(ns.0).u32(part.0).time(created).bytes(id.as_bytes())
}

/// Of every row with a fingerprint and a likeness that begins with some bytes.
pub(crate) fn by_fingerprint_prefix(
    ns: NsId,
    part: PartId,
    tier: Tier,
    (fingerprint, likeness): (&[u8; 16], &[u8]),
) -> Key {
    let head = Key::new(37).u32(ns.0).u32(part.0);
    head.bytes(&[tier.code()]).bytes(fingerprint).bytes(likeness)
}

pub(crate) fn by_fingerprint(
    ns: NsId,
    part: PartId,
    tier: Tier,
    (fingerprint, likeness): (&[u8; 16], &[u8; 12]),
    id: MemoryId,
) -> Key {
    by_fingerprint_prefix(ns, part, tier, (fingerprint, likeness)).bytes(id.as_bytes())
}

pub(crate) fn pending(ns: NsId, part: PartId, id: MemoryId) -> Key {
    Key::new(24).u32(ns.0).u32(part.0).bytes(id.as_bytes())
}

pub(crate) fn due(ns: NsId, at: Time, id: MemoryId) -> Key {
    Key::new(28).u32(ns.0).time(at).bytes(id.as_bytes())
}

/// The first key of `due` that lies after `at`.
pub(crate) fn due_after(ns: NsId, at: Time) -> Key {
    Key::new(12).u32(ns.0).u64(((at.as_millis() as u64) ^ (1 << 63)) + 1)
}

/// An id in the order of an instant: a row of limbo by its removal, an event by its time.
pub(crate) fn by_instant(ns: NsId, at: Time, id: &[u8; 16]) -> Key {
    Key::new(28).u32(ns.0).time(at).bytes(id)
}

/// Everything of a namespace from an instant on.
pub(crate) fn from_instant(ns: NsId, at: Time) -> Key {
    Key::new(12).u32(ns.0).time(at)
}

pub(crate) fn event_of(ns: NsId, owner: &[u8; 16], at: Time, event: &[u8; 16]) -> Key {
    Key::new(44).u32(ns.0).bytes(owner).time(at).bytes(event)
}

pub(crate) fn journal_run(ns: NsId, run: RunId, seq: u64) -> Key {
    Key::new(28).u32(ns.0).bytes(run.as_bytes()).u64(seq)
}

/// The families with an exact key.
pub(crate) fn family_key_prefix(ns: NsId, part: PartId, key: &[u8; 32]) -> Key {
    Key::new(40).u32(ns.0).u32(part.0).bytes(key)
}

/// Where a family stands among those with its key or in its band: by its latest member.
pub(crate) fn by_latest(prefix: Key, latest: Time, family: &[u8; 16]) -> Key {
    prefix.time(latest).bytes(family)
}

/// The families of a channel that have one byte of the SimHash in common.
pub(crate) fn family_band_prefix(
    ns: NsId,
    part: PartId,
    author: u8,
    channel: [u8; 8],
    (band, byte): (u8, u8),
) -> Key {
    Key::new(43).u32(ns.0).u32(part.0).bytes(&[author]).bytes(&channel).bytes(&[band, byte])
}

pub(crate) fn series_prefix(ns: NsId, part: PartId, series: &str) -> Key {
    Key::new(34 + series.len()).u32(ns.0).u32(part.0).text(series)
}

pub(crate) fn series(ns: NsId, part: PartId, series: &str, at: Time, id: MemoryId) -> Key {
    series_prefix(ns, part, series).time(at).bytes(id.as_bytes())
}

pub(crate) fn pass(ns: NsId, name: &str) -> Key {
    Key::new(4 + name.len()).u32(ns.0).bytes(name.as_bytes())
}

pub(crate) fn meta_key(ns: NsId, path: &str) -> Key {
    Key::new(4 + path.len()).u32(ns.0).bytes(path.as_bytes())
}

/// Every row of the index of a path.
pub(crate) fn meta_values(ns: NsId, path: &str) -> Key {
    Key::new(5 + path.len()).u32(ns.0).text(path)
}

/// The memories with a value, by id.
///
/// A value ends by itself, so that none is a prefix of another: of numbers, truth values and `many` the first byte says
/// how long they are, and a NUL, which no metadata holds, ends a text.
pub(crate) fn meta_value(ns: NsId, path: &str, value: &MetaValue) -> Key {
    let key = meta_values(ns, path);
    match value {
        MetaValue::Bool(value) => key.bytes(&[BOOL, u8::from(*value)]),
        MetaValue::Number(bits) => key.bytes(&[NUMBER]).u64(*bits),
        MetaValue::Text(text) => {
            debug_assert!(!text.contains(&0), "metadata holds no NUL");
            key.bytes(&[TEXT]).bytes(text).bytes(&[0])
        }
        MetaValue::Many => key.bytes(&[MANY]),
    }
}

pub(crate) fn meta_row(ns: NsId, path: &str, value: &MetaValue, id: MemoryId) -> Key {
    meta_value(ns, path, value).bytes(id.as_bytes())
}

const BOOL: u8 = b'b';
const MANY: u8 = b'm';
const NUMBER: u8 = b'n';
const TEXT: u8 = b't';

pub(crate) fn counter(ns: NsId, part: PartId, sort: u8, name: &str) -> Key {
    Key::new(9 + name.len()).u32(ns.0).u32(part.0).bytes(&[sort]).bytes(name.as_bytes())
}

/// The first key after every key that begins with `prefix`; none when there is no such key.
pub(crate) fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// Reads numbers and ids back out of a key, from its front.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a>(pub(crate) &'a [u8]);

impl<'a> Parts<'a> {
    /// The next `N` bytes; none when the key is too short.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub(crate) fn id(&mut self) -> Option<MemoryId> {
        self.take().map(MemoryId::from_bytes)
    }

    pub(crate) fn time(&mut self) -> Option<Time> {
        self.u64().map(|bits| Time::from_millis((bits ^ (1 << 63)) as i64))
    }

    /// Index at the front of a key.
    pub(crate) fn index(&mut self) -> Option<IndexId> {
        let (ns, part) = (self.u32()?, self.u32()?);
        let space = self.take().map(u16::from_be_bytes)?;
        Some(IndexId { ns: NsId(ns), part: PartId(part), space: SpaceId(space) })
    }

    /// The text up to the next NUL.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let end = self.0.iter().position(|&b| b == 0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        std::str::from_utf8(text).ok()
    }

    /// A value of the metadata.
    pub(crate) fn meta_value(&mut self) -> Option<MetaValue> {
        let [sort] = self.take()?;
        Some(match sort {
            BOOL => MetaValue::Bool(self.take::<1>().filter(|[value]| *value <= 1)? == [1]),
            NUMBER => MetaValue::Number(self.u64()?),
            TEXT => {
                let end = self.0.iter().position(|&b| b == 0)?;
                let (text, rest) = self.0.split_at_checked(end)?;
                self.0 = rest.get(1..)?;
                MetaValue::Text(text.to_vec())
            }
            MANY => MetaValue::Many,
            _ => return None,
        })
    }

    /// All that is left, as text.
    pub(crate) fn rest(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }
}
