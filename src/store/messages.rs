//! Messages, their families and the numbers of these: rows, typed reads, typed writes.
//!
//! The rows by which an event or a family is found follow from the row alone ([`EventRow::keys`],
//! [`FamilyRow::keys`]), so a write replaces those of the row before, and `check` asks the same functions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::limits::SIMHASH_BANDS;
use crate::model::{MemoryId, Time};
use crate::record;
use crate::store::control::{AggregateRow, EventRow, FamilyRow, Id};
use crate::store::keys::{self, Key};
use crate::store::part::{NsId, PartId};
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::{Table, last_id, meta_of};
use crate::store::truth::Truth;
use crate::store::tx::Read;

/// The rows by which a row is found.
type Places = BTreeSet<(Table, Key)>;

impl EventRow {
    /// When it was written.
    pub(crate) fn at(&self) -> Time {
        Time::from_millis(self.ts)
    }

    /// The rows by which it is found: by time, by aggregate, by author within that, by memory, by the memory that told it first, by
    /// import, by key.
    pub(crate) fn keys(&self, ns: NsId, id: &Id) -> Places {
        let author = self.aggregate.zip(self.author_id.as_deref());
        let author = author.map(|(aggregate, author)| author_in(&aggregate, author));
        let id = MemoryId::from_bytes(*id);
        let key = self.key.as_deref().map(under);
        let owners = [self.aggregate, author, self.memory, self.origin, self.run, key].into_iter().flatten();
        let by_owner = owners.map(|owner| (Table::EventOf, keys::event_of(ns, &owner, self.at(), id)));
        let by_time = (Table::EventTime, keys::event_time(ns, u8::from(!self.has_text()), self.at(), id));
        by_owner.chain([by_time]).collect()
    }

    /// Whether it tells anything of what was said.
    pub(crate) fn has_text(&self) -> bool {
        self.payload.is_some() || self.normalized.is_some() || self.embed_sig.is_some()
    }

    /// Takes away what was said, and leaves who said it where, and by what it is recognised. The addresses in the signature of the
    /// embeds are text as well.
    pub(crate) fn redact(&mut self) {
        (self.payload, self.normalized, self.embed_sig) = (None, None, None);
    }

    /// Whether it was forgotten: what it said, and everything by which it was recognised.
    pub(crate) fn is_erased(&self) -> bool {
        self.dup_key.is_none()
    }

    /// Takes away everything that tells what was said, and who said it where.
    pub(crate) fn erase(&mut self) {
        let EventRow { part, ts, author, normalizer, aggregate, memory, origin, run, decision, .. } =
            std::mem::take(self);
        *self = EventRow {
            part,
            ts,
            author,
            normalizer,
            aggregate,
            memory,
            origin,
            run,
            decision,
            ..EventRow::default()
        };
    }
}

/// The place of an event in the order of time: events that have a text, and the others, stand in two halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventPlace {
    half: u8,
    pub(crate) at: Time,
    pub(crate) id: Id,
}

impl EventPlace {
    /// The half of the events that have a text.
    pub(crate) const TEXT: u8 = 0;
    /// Both halves.
    pub(crate) const HALVES: [u8; 2] = [EventPlace::TEXT, 1];

    /// In which half it is.
    pub(crate) fn half(self) -> u8 {
        self.half
    }

    /// The first place of an instant.
    pub(crate) fn starting(at: Time) -> Self {
        EventPlace { half: EventPlace::TEXT, at, id: [0; 16] }
    }

    /// Whether the event is older, whichever half the two stand in.
    pub(crate) fn is_before(self, other: EventPlace) -> bool {
        (self.at, self.id) < (other.at, other.id)
    }
}

impl FamilyRow {
    /// When its latest member was written.
    pub(crate) fn latest(&self) -> Time {
        Time::from_millis(self.latest_ts)
    }

    /// The rows by which it is found: by exact key, and by each band of its SimHash.
    pub(crate) fn keys(&self, ns: NsId, id: &Id) -> Places {
        let (part, latest, id) = (PartId(self.part), self.latest(), MemoryId::from_bytes(*id));
        let print = print_of(&self.standing, &self.channel);
        let near = self.simhash.into_iter().flat_map(bands).map(|band| {
            let key = keys::family_band(ns, part, self.author, &print, &band, latest, id);
            (Table::FamilyBand, key)
        });
        let exact = (Table::FamilyKey, keys::family_key(ns, part, &self.dup_key, &self.standing, latest, id));
        near.chain([exact]).collect()
    }
}

/// What stands for an author of an aggregate where its messages are found.
fn author_in(aggregate: &Id, author: &str) -> Id {
    owner_of([aggregate, author.as_bytes()])
}

/// What stands in the place of an owner for the messages that were written under a key.
fn under(key: &str) -> Id {
    owner_of([b"key\0", key.as_bytes()])
}

fn owner_of(parts: [&[u8]; 2]) -> Id {
    let digest: [u8; 32] =
        parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// The bands of a SimHash with their places, by which near ones are found. Two at a distance of at most 7 have a band in
/// common at the same place, since 7 bits can not change 8 bands.
fn bands(simhash: u64) -> [[u8; 2]; SIMHASH_BANDS] {
    let mut place = 0;
    simhash.to_le_bytes().map(|band| {
        place += 1;
        [place - 1, band]
    })
}

/// What stands for a standing and a channel in a key.
fn print_of(standing: &[u8; 8], channel: &str) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::new().chain_update(standing).chain_update(channel).finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// Most families that one look-up by an exact key reads at each end of a window. More than one takes members only where memories
/// were changed or removed since.
const OF_KEY_MAX: usize = 8;

/// An exact key, with what the families that have it must have in common besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactKey<'k> {
    pub(crate) dup_key: &'k [u8; 32],
    pub(crate) standing: &'k [u8; 8],
}

/// A SimHash, with what families near it must have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimKey<'k> {
    /// Code of the author kind.
    pub(crate) author: u8,
    /// Channel; empty where there is none.
    pub(crate) channel: &'k str,
    pub(crate) standing: &'k [u8; 8],
    pub(crate) simhash: u64,
    /// Largest Hamming distance of a family that is near, at most 7.
    pub(crate) distance: u32,
}

/// Those that enough bands name to be within a distance: so many bits touch that many bands at most, and the others are equal. A burst of
/// messages that differ names many families by one band, and few by two.
fn in_enough_bands<T: Copy + Ord>(mut named: Vec<T>, distance: u32) -> Vec<T> {
    named.sort_unstable();
    let least = SIMHASH_BANDS.saturating_sub(distance as usize);
    let of_one = named.chunk_by(|a, b| a == b).filter(|bands| bands.len() >= least);
    of_one.filter_map(|bands| bands.first().copied()).collect()
}

/// Typed reads of messages.
pub(crate) trait MessageRows: Rows {
    fn event(&self, ns: NsId, id: &Id) -> Result<Option<EventRow>> {
        self.meta(Table::Event, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }

    fn family(&self, ns: NsId, id: &Id) -> Result<Option<FamilyRow>> {
        self.meta(Table::Family, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }

    fn aggregate(&self, ns: NsId, id: &Id) -> Result<Option<AggregateRow>> {
        self.meta(Table::Aggregate, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }

    /// At most `most` of the events of an aggregate, a memory or an import, by time.
    fn events_of(&self, ns: NsId, owner: &Id, most: usize) -> Result<Vec<Id>> {
        self.last_ids(Table::EventOf, &Walk::prefix(&keys::memory(ns, MemoryId::from_bytes(*owner))), most)
    }

    /// The messages that were written under a key, by time.
    fn events_under(&self, ns: NsId, key: &str) -> Result<Vec<Id>> {
        self.events_of(ns, &under(key), usize::MAX)
    }

    /// Visits the events of one half of the order of time, behind a place of that half.
    fn events_in(
        &self,
        ns: NsId,
        half: u8,
        after: Option<EventPlace>,
        visit: &mut dyn FnMut(EventPlace) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk = Walk::prefix(&keys::event_half(ns, half));
        let after = after.filter(|place| place.half == half);
        let behind = |place: EventPlace| keys::event_time(ns, half, place.at, MemoryId::from_bytes(place.id));
        let walk = after.into_iter().fold(walk, |walk, place| walk.after(&behind(place)));
        self.walk(Table::EventTime, &walk, &mut |key, _| {
            let keys::EventTime { textless, at, id, .. } = keys::EventTime::read(Table::EventTime, key)?;
            visit(EventPlace { half: textless, at, id: *id.as_bytes() })
        })
    }

    /// The first and the last event of an aggregate, with their instants.
    fn first_and_last_of(&self, ns: NsId, aggregate: &Id) -> Result<Option<[(Time, Id); 2]>> {
        let walk = Walk::prefix(&keys::memory(ns, MemoryId::from_bytes(*aggregate)));
        let one = |walk: &Walk| -> Result<Option<(Time, Id)>> {
            let mut found = None;
            self.walk(Table::EventOf, walk, &mut |key, _| {
                let keys::EventOf { at, id, .. } = keys::EventOf::read(Table::EventOf, key)?;
                found = Some((at, *id.as_bytes()));
                Ok(ControlFlow::Break(()))
            })?;
            Ok(found)
        };
        let first = one(&walk)?;
        Ok(first.zip(one(&walk.reversed())?).map(|(first, last)| [first, last]))
    }

    /// Whether a member of an aggregate is of this author.
    fn is_author_in(&self, ns: NsId, aggregate: &Id, author: &str) -> Result<bool> {
        Ok(!self.events_of(ns, &author_in(aggregate, author), 1)?.is_empty())
    }

    /// Ids at the end of the keys of a walk, at most `most`.
    fn last_ids(&self, table: Table, walk: &Walk, most: usize) -> Result<Vec<Id>> {
        self.each_key(table, walk, most, |key| last_id(table, key).map(|id| *id.as_bytes()))
    }

    /// The partitions of a namespace in which something lies: a memory in any state, an event, an aggregate, a family.
    ///
    /// # Errors
    /// `Corrupted` for a row that can't be read: it may lie in any of them.
    fn parts_in_use(&self, ns: NsId) -> Result<BTreeSet<PartId>> {
        let (mut all, prefix) = (BTreeSet::new(), Walk::prefix(&keys::ns(ns)));
        for table in [Table::Vitals, Table::Event, Table::Aggregate, Table::Family] {
            self.walk(table, &prefix, &mut |key, bytes| {
                all.insert(PartId(match table {
                    Table::Vitals => {
                        record::decode_vitals(record::At::new(table.name(), key), bytes)?.place.partition
                    }
                    Table::Event => meta_of::<EventRow>(table, key, bytes)?.part,
                    Table::Aggregate => meta_of::<AggregateRow>(table, key, bytes)?.part,
                    _ => meta_of::<FamilyRow>(table, key, bytes)?.part,
                }));
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(all)
    }

    /// The families with an exact key whose latest member is not before `from` and before `until`: the first of them by their latest
    /// members, and the last.
    fn families_of_key(
        &self,
        ns: NsId,
        part: PartId,
        key: ExactKey<'_>,
        from: Time,
        until: Option<Time>,
    ) -> Result<Vec<(Id, FamilyRow)>> {
        let walk = span(&keys::family_key_prefix(ns, part, key.dup_key, key.standing), from, until);
        let mut ids = BTreeSet::from_iter(self.last_ids(Table::FamilyKey, &walk, OF_KEY_MAX)?);
        if ids.len() == OF_KEY_MAX {
            ids.extend(self.last_ids(Table::FamilyKey, &walk.reversed(), OF_KEY_MAX)?);
        }
        self.families(ns, ids)
    }

    /// The family with an exact key whose latest member is the latest of all.
    fn last_family_of_key(&self, ns: NsId, part: PartId, key: ExactKey<'_>) -> Result<Option<FamilyRow>> {
        let walk = Walk::prefix(&keys::family_key_prefix(ns, part, key.dup_key, key.standing)).reversed();
        let ids = self.last_ids(Table::FamilyKey, &walk, 1)?;
        Ok(self.families(ns, ids)?.pop().map(|(_, row)| row))
    }

    /// The families of a channel and a standing that share as many bands with a SimHash as one that is near must share, in the same
    /// window. Only their rows are read.
    fn families_near(
        &self,
        ns: NsId,
        part: PartId,
        like: SimKey<'_>,
        from: Time,
        until: Option<Time>,
    ) -> Result<Vec<(Id, FamilyRow)>> {
        let mut named = Vec::new();
        let print = print_of(like.standing, like.channel);
        for band in bands(like.simhash) {
            let prefix = keys::family_band_prefix(ns, part, like.author, &print, &band);
            named.extend(self.last_ids(Table::FamilyBand, &span(&prefix, from, until), usize::MAX)?);
        }
        self.families(ns, in_enough_bands(named, like.distance))
    }

    /// The rows that an index names.
    fn families(&self, ns: NsId, ids: impl IntoIterator<Item = Id>) -> Result<Vec<(Id, FamilyRow)>> {
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(self.family(ns, &id)?.map(|row| (id, row)));
        }
        Ok(rows)
    }
}

impl<T: Read + ?Sized> MessageRows for T {}

/// The rows behind a prefix whose latest member lies in a window.
fn span(prefix: &Key, from: Time, until: Option<Time>) -> Walk {
    let walk = Walk::prefix(prefix).starting_at(&keys::at(prefix, from));
    until.into_iter().fold(walk, |walk, until| walk.before(&keys::at(prefix, until)))
}

impl Truth<'_, '_> {
    /// Puts a small row in place of `old` keys that it no longer has.
    fn put_found<T: Serialize>(
        &mut self,
        table: Table,
        key: &[u8],
        row: &T,
        old: Places,
        new: Places,
    ) -> Result<()> {
        // Mostly both sets are equal, and only the row itself is written.
        for (table, key) in old.difference(&new) {
            self.delete(*table, key)?;
        }
        for (table, key) in new.difference(&old) {
            self.put(*table, key, &[])?;
        }
        let mut bytes = Vec::with_capacity(256);
        record::encode_meta(table.tag(), key, row, &mut bytes);
        self.put(table, key, &bytes)
    }

    /// Puts an event with the rows by which it is found.
    pub(crate) fn put_event(&mut self, ns: NsId, id: &Id, row: &EventRow) -> Result<()> {
        let old = self.event(ns, id)?.map(|row| row.keys(ns, id)).unwrap_or_default();
        let key = keys::memory(ns, MemoryId::from_bytes(*id));
        self.put_found(Table::Event, &key, row, old, row.keys(ns, id))
    }

    /// Takes an event away with the rows by which it is found.
    pub(crate) fn delete_event(&mut self, ns: NsId, id: &Id, row: &EventRow) -> Result<()> {
        for (table, key) in row.keys(ns, id) {
            self.delete(table, &key)?;
        }
        self.delete(Table::Event, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }

    /// Puts a family with the rows by which it is found: they move with its latest member.
    pub(crate) fn put_family(&mut self, ns: NsId, id: &Id, row: &FamilyRow) -> Result<()> {
        let old = self.family(ns, id)?.map(|row| row.keys(ns, id)).unwrap_or_default();
        let key = keys::memory(ns, MemoryId::from_bytes(*id));
        self.put_found(Table::Family, &key, row, old, row.keys(ns, id))
    }

    /// Takes a family away with the rows by which it is found, if there is one.
    pub(crate) fn delete_family(&mut self, ns: NsId, id: &Id) -> Result<()> {
        let Some(row) = self.family(ns, id)? else { return Ok(()) };
        for (table, key) in row.keys(ns, id) {
            self.delete(table, &key)?;
        }
        self.delete(Table::Family, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }

    pub(crate) fn put_aggregate(&mut self, ns: NsId, id: &Id, row: &AggregateRow) -> Result<()> {
        let key = keys::memory(ns, MemoryId::from_bytes(*id));
        let none = BTreeSet::new;
        self.put_found(Table::Aggregate, &key, row, none(), none())
    }

    pub(crate) fn delete_aggregate(&mut self, ns: NsId, id: &Id) -> Result<()> {
        self.delete(Table::Aggregate, &keys::memory(ns, MemoryId::from_bytes(*id)))
    }
}

#[cfg(test)]
mod tests;
