//! Every key of the file, built here and in the rows of [`tables`](crate::store::tables) and nowhere else.
//!
//! A whole key is built, and read back, by what its row in the list of tables declares. What stands here are the
//! beginnings of keys, for walks over all that begin so. The namespace's number stands first in every key that belongs to
//! one: dropping a namespace is a range delete, and no range can cross from one tenant to another by mistake.

use crate::model::{self, MemoryId, Tier, Time};
use crate::store::part::{End, NsId, PartId, Rest, TEXT, Text};

pub(crate) use crate::store::part::Key;
pub(crate) use crate::store::tables::keys::*;

/// Everything of a namespace: the prefix of all its keys.
pub(crate) fn ns(ns: NsId) -> Key {
    Key::new().and(&ns)
}

/// The documents of a thread by time.
pub(crate) fn thread_prefix(ns: NsId, part: PartId, thread: &str) -> Key {
    ns_part(ns, part).and(&Text(thread))
}

/// Every term of a full-text index that begins with these bytes.
pub(crate) fn posting_prefix(ns: NsId, part: PartId, begins: &str) -> Key {
    ns_part(ns, part).and(&Rest(begins))
}

/// Every block of one term.
pub(crate) fn posting_term(ns: NsId, part: PartId, term: &str) -> Key {
    ns_part(ns, part).and(&Text(term))
}

/// The holders with a key or a tag.
pub(crate) fn holder_key_prefix(ns: NsId, key: &str) -> Key {
    self::ns(ns).and(&Text(key))
}

/// The holders of one memory with a key or a tag.
pub(crate) fn holder_key_row(ns: NsId, key: &str, id: MemoryId) -> Key {
    holder_key_prefix(ns, key).and(&id)
}

/// The keyless holders of a memory: they stand under the empty key.
pub(crate) fn keyless(ns: NsId, id: MemoryId) -> Key {
    holder_key_row(ns, "", id)
}

/// The holders of one memory that came with a run.
pub(crate) fn holder_run_row(ns: NsId, run: model::RunId, id: MemoryId) -> Key {
    self::run(ns, run).and(&id)
}

/// The terms of a sort.
pub(crate) fn terms(ns: NsId, sort: crate::store::part::Junction) -> Key {
    self::ns(ns).and(&sort)
}

/// The memories that are joined to another end.
pub(crate) fn junction_back_prefix(ns: NsId, end: End<'_>) -> Key {
    self::ns(ns).and(&end)
}

/// What the journal tells of one holder of a memory, or of none of them.
pub(crate) fn journal_holder(ns: NsId, id: MemoryId, holder: Option<u32>) -> Key {
    memory(ns, id).and(&holder)
}

/// The tombstones with the HMAC of a key or of a content.
pub(crate) fn tombstone_hash_prefix(ns: NsId, hash: &[u8; 32]) -> Key {
    self::ns(ns).and(&hash)
}

/// Of every row with a fingerprint and a likeness that begins with some bytes.
pub(crate) fn by_fingerprint_prefix(
    ns: NsId,
    part: PartId,
    tier: Tier,
    fingerprint: &[u8; 16],
    likeness: &[u8],
) -> Key {
    ns_part(ns, part).and(&tier).and(&fingerprint).bytes(likeness)
}

/// Everything of a namespace from an instant on.
pub(crate) fn from_instant(ns: NsId, at: Time) -> Key {
    self::ns(ns).and(&at)
}

/// The memories whose life is over: those that are protected, or the others.
pub(crate) fn ended_half(ns: NsId, protected: u8) -> Key {
    self::ns(ns).and(&protected)
}

/// The events that have a text, or those that have none.
pub(crate) fn event_half(ns: NsId, textless: u8) -> Key {
    self::ns(ns).and(&textless)
}

/// The unused memories of a class of importance.
pub(crate) fn of_class(ns: NsId, class: u8) -> Key {
    self::ns(ns).and(&class)
}

/// The memories in use of a short-term tier.
pub(crate) fn of_tier(ns: NsId, tier: Tier) -> Key {
    self::ns(ns).and(&tier)
}

/// Those of them that were used so often, and what follows.
pub(crate) fn used(ns: NsId, tier: Tier, uses: u8) -> Key {
    of_tier(ns, tier).and(&uses)
}

/// The summaries of a level.
pub(crate) fn level(ns: NsId, level: u8) -> Key {
    self::ns(ns).and(&level)
}

/// The families with an exact key and a standing.
pub(crate) fn family_key_prefix(ns: NsId, part: PartId, key: &[u8; 32], standing: &[u8; 8]) -> Key {
    ns_part(ns, part).and(&key).and(&standing)
}

/// The families of a channel and a standing that have one byte of the SimHash in common. `print` stands for both.
pub(crate) fn family_band_prefix(ns: NsId, part: PartId, author: u8, print: &[u8; 8], band: &[u8; 2]) -> Key {
    ns_part(ns, part).and(&author).and(&print).and(&band)
}

/// What begins with some parts and goes on with an instant.
pub(crate) fn at(prefix: &Key, at: Time) -> Key {
    prefix.clone().and(&at)
}

/// The snapshots of a series.
pub(crate) fn series_prefix(ns: NsId, part: PartId, series: &str) -> Key {
    ns_part(ns, part).and(&Text(series))
}

/// Every row of the index of a path.
pub(crate) fn meta_values(ns: NsId, path: &str) -> Key {
    self::ns(ns).and(&Text(path))
}

/// The memories with a text that begins with some bytes, by text.
pub(crate) fn meta_text(ns: NsId, path: &str, begins: &[u8]) -> Key {
    meta_values(ns, path).bytes(&[TEXT]).bytes(begins)
}

/// The holders of every key that begins so.
pub(crate) fn holder_keys_of(ns: NsId, begins: &str) -> Key {
    self::ns(ns).and(&Rest(begins))
}

/// The memories with a value, by id.
pub(crate) fn meta_value(ns: NsId, path: &str, value: &model::MetaValue) -> Key {
    meta_values(ns, path).and(value)
}

/// The first key after every key that begins with `prefix`; none when there is no such key.
pub(crate) fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    // A byte at its highest value can't grow, so the byte before it takes the carry.
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
