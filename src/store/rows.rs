//! The typed reads of every table, for snapshots and write transactions alike.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result, sound};
use crate::model::{
    Access, Content, Holder, JournalRow, MemoryId, Payload, RunId, Tier, Time, Tombstone, Vitals,
};
use crate::record::{self, At, GraphBlockRef, NODES_PER_BLOCK};
use crate::store::control::{
    Clock, CounterRow, GraphHead, Identity, JournalHeadRow, LimboRow, NamespaceRow, PassRow, RunRow, SizeRow,
    SlotHead, SpaceRow, UnfinishedRow,
};
use crate::store::counterparts;
use crate::store::keys;
use crate::store::part::{End, IndexId, Junction, NsId, PartId, SpaceId};
use crate::store::raw::Walk;
use crate::store::tables::{CLOCK, IDENTITY, SIZE, Table, last_id, last_id_and_number, meta_of, space_of};
use crate::store::tx::Read;

/// One junction row: what the memory is joined to, and in which role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JunctionRow {
    /// Sort of the other end.
    pub(crate) sort: Junction,
    /// Term (4 bytes) or id (16 bytes) of the other end.
    pub(crate) target: Vec<u8>,
    /// Role or relation.
    pub(crate) role: String,
}

impl JunctionRow {
    /// The other end, as it stands in a key.
    pub(crate) fn end(&self) -> End<'_> {
        End(self.sort, &self.target)
    }

    /// The row that joins a memory to another end.
    pub(crate) fn of(End(sort, target): End<'_>, role: &str) -> Self {
        JunctionRow { sort, target: target.to_vec(), role: role.to_owned() }
    }
}

/// What a walk over memories calls, with the hot part of each; none where it can't be read.
pub(crate) type VisitVitals<'f> = &'f mut dyn FnMut(MemoryId, Option<&Vitals>) -> Result<ControlFlow<()>>;
/// What a walk over blocks of codes calls, with index, number of the block, key and bytes.
pub(crate) type VisitSlots<'f> = &'f mut dyn FnMut(IndexId, u32, &[u8], &[u8]) -> Result<ControlFlow<()>>;
/// What a walk over blocks of vectors calls, with number of the block, place and bytes.
pub(crate) type VisitVectors<'f> = &'f mut dyn FnMut(u32, At<'_>, &[u8]) -> Result<ControlFlow<()>>;

/// What a walk over blocks of links calls, with index, number of the block, place and bytes.
pub(crate) type VisitGraph<'f> = &'f mut dyn FnMut(IndexId, u32, At<'_>, &[u8]) -> Result<ControlFlow<()>>;

/// Typed reads; everything that can look and walk has them.
pub(crate) trait Rows: Read {
    /// A value decoded by `decode`.
    fn row<T>(
        &self,
        table: Table,
        key: &[u8],
        decode: impl Fn(At<'_>, &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.look(table, key, &mut |bytes| {
            found = Some(decode(At::new(table.name(), key), bytes)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// What `of` reads of the keys of a walk, at most `most`.
    fn each_key<T>(
        &self,
        table: Table,
        walk: &Walk,
        most: usize,
        mut of: impl FnMut(&[u8]) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        if most == 0 {
            return Ok(all);
        }
        self.walk(table, walk, &mut |key, _| {
            all.push(of(key)?);
            Ok(if all.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(all)
    }

    fn meta<T: DeserializeOwned>(&self, table: Table, key: &[u8]) -> Result<Option<T>> {
        self.row(table, key, |at, bytes| record::decode_meta(table.tag(), at, bytes))
    }

    fn identity(&self) -> Result<Option<Identity>> {
        self.meta(Table::Meta, IDENTITY)
    }

    fn clock(&self) -> Result<Clock> {
        self.meta(Table::Meta, CLOCK)?
            .ok_or_else(|| Error::corrupted(Table::Meta.name(), CLOCK, "no clock row"))
    }

    fn size(&self) -> Result<Option<SizeRow>> {
        self.meta(Table::Meta, SIZE)
    }

    fn namespace(&self, name: &str) -> Result<Option<NamespaceRow>> {
        self.meta(Table::Namespace, name.as_bytes())
    }

    /// Every namespace by name, those that are being dropped as well; one whose row or name is damaged is left out.
    fn namespaces(&self) -> Result<Vec<(String, NamespaceRow)>> {
        let mut all = Vec::new();
        self.walk(Table::Namespace, &Walk::all(), &mut |key, bytes| {
            let name = keys::Namespace::parse(key).map(|row| row.name.to_owned());
            let row = sound(meta_of(Table::Namespace, key, bytes))?;
            all.extend(name.zip(row));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Number of an agent's partition. Each of the two tables of names says what the other has lost.
    fn partition(&self, ns: NsId, name: &str) -> Result<Option<PartId>> {
        match sound(self.meta::<u32>(Table::Partition, &keys::partition(ns, name)))? {
            Some(found) => Ok(found.map(PartId)),
            None => {
                Ok(counterparts::number_named(self, Table::PartitionName, &keys::ns(ns), name)?.map(PartId))
            }
        }
    }

    /// Name of an agent's partition; the shared one has none.
    fn partition_name(&self, ns: NsId, part: PartId) -> Result<Option<String>> {
        match sound(self.meta(Table::PartitionName, &keys::ns_part(ns, part)))? {
            Some(found) if found.is_some() || part == PartId(0) => Ok(found),
            _ => counterparts::name_numbered(self, Table::Partition, &keys::ns(ns), part.0),
        }
    }

    /// The agents' partitions of a namespace by name.
    fn partitions(&self, ns: NsId) -> Result<Vec<(String, PartId)>> {
        let mut all = Vec::new();
        self.walk(Table::Partition, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            if let Some(keys::Partition { name, .. }) = keys::Partition::parse(key) {
                let part = match sound(meta_of(Table::Partition, key, bytes))? {
                    Some(part) => Some(PartId(part)),
                    None => self.partition(ns, name.0)?,
                };
                all.extend(part.map(|part| (name.0.to_owned(), part)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    fn space(&self, space: SpaceId) -> Result<Option<SpaceRow>> {
        self.row(Table::Space, &keys::space(space), |at, bytes| space_of(at.key, bytes))
    }

    fn run(&self, ns: NsId, run: RunId) -> Result<Option<RunRow>> {
        self.meta(Table::Run, &keys::run(ns, run))
    }

    fn policy_text(&self, number: u64) -> Result<Option<String>> {
        self.meta(Table::Policy, &keys::policy(number))
    }

    /// The indexes of a namespace, or of all, with their slot heads, as [`Rows::readable_slot_head`] gives them.
    fn slot_heads(&self, ns: Option<NsId>) -> Result<Vec<(IndexId, SlotHead)>> {
        let mut all = Vec::new();
        let walk = ns.map_or_else(Walk::all, |ns| Walk::prefix(&keys::ns(ns)));
        self.walk(Table::SlotHead, &walk, &mut |key, bytes| {
            let keys::SlotHead { index } = keys::SlotHead::read(Table::SlotHead, key)?;
            let head = sound(meta_of(Table::SlotHead, key, bytes))?;
            // No index has a row that does not fit its key and whose space is not there: the key is damaged.
            if head.is_some() || sound(self.space(index.space))? != Some(None) {
                all.push((index, head.map_or_else(|| self.counted_slots(index), Ok)?));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The head of the slots of an index for readers: one that is damaged is made up from the blocks.
    fn readable_slot_head(&self, index: IndexId) -> Result<SlotHead> {
        sound(self.slot_head(index))?.map_or_else(|| self.counted_slots(index), Ok)
    }

    /// The head of an index that its blocks give, as far as they can be read.
    fn counted_slots(&self, index: IndexId) -> Result<SlotHead> {
        let space = sound(self.space(index.space))?.flatten();
        counterparts::counted_slots(self, index, space.map_or(0, |space| space.dim as usize))
    }

    /// The graph of an index as a whole; none where it has none.
    fn graph_head(&self, index: IndexId) -> Result<Option<GraphHead>> {
        self.meta(Table::GraphHead, &keys::index(index))
    }

    /// The blocks of links of a walk, decoded by `visit` itself.
    fn graph_blocks(&self, walk: &Walk, visit: VisitGraph<'_>) -> Result<()> {
        self.walk(Table::Graph, walk, &mut |key, bytes| {
            let keys::Graph { index, block } = keys::Graph::read(Table::Graph, key)?;
            visit(index, block, At::new(Table::Graph.name(), key), bytes)
        })
    }

    /// Whether a slot is a node of the graph of its index.
    fn is_linked(&self, index: IndexId, slot: u32) -> Result<bool> {
        let per = NODES_PER_BLOCK as u32;
        let has = self.row(Table::Graph, &keys::block(index, slot / per), |at, bytes| {
            Ok(GraphBlockRef::open(at, bytes)?.has((slot % per) as usize))
        })?;
        Ok(has.unwrap_or(false))
    }

    /// The dead slots of an index with the commits that ended them, the longest dead first, at most `most`.
    fn dead_slots(&self, index: IndexId, most: usize) -> Result<Vec<(u64, u32)>> {
        self.ended_slots(Table::SlotDead, &keys::index(index), most)
    }

    /// Whether any index has a dead slot.
    fn has_dead_slots(&self) -> Result<bool> {
        Ok(!self.ended_slots(Table::SlotDead, &[], 1)?.is_empty())
    }

    /// Rows of the free slots or of the dead ones under a prefix, in order, at most `most`.
    fn ended_slots(&self, table: Table, prefix: &[u8], most: usize) -> Result<Vec<(u64, u32)>> {
        let place = |key: &[u8]| keys::SlotFree::read(table, key).map(|row| (row.died, row.slot));
        self.each_key(table, &Walk::prefix(prefix), most, place)
    }

    /// The slot of an index that has been free for longest.
    fn free_slot(&self, index: IndexId) -> Result<Option<(u64, u32)>> {
        Ok(self.ended_slots(Table::SlotFree, &keys::index(index), 1)?.pop())
    }

    /// The blocks of codes of a walk, decoded by `visit` itself.
    fn slot_blocks(&self, walk: &Walk, visit: VisitSlots<'_>) -> Result<()> {
        self.walk(Table::Slot, walk, &mut |key, bytes| {
            let keys::Slot { index, block } = keys::Slot::read(Table::Slot, key)?;
            visit(index, block, key, bytes)
        })
    }

    /// The blocks of f32 vectors of a walk.
    fn vector_blocks(&self, walk: &Walk, visit: VisitVectors<'_>) -> Result<()> {
        self.walk(Table::Vector, walk, &mut |key, bytes| {
            let keys::Vector { block, .. } = keys::Vector::read(Table::Vector, key)?;
            visit(block, At::new(Table::Vector.name(), key), bytes)
        })
    }

    fn vitals(&self, ns: NsId, id: MemoryId) -> Result<Option<Vitals>> {
        self.row(Table::Vitals, &keys::memory(ns, id), record::decode_vitals)
    }

    /// Whether a memory has a row, which may be damaged.
    fn has_row(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        self.look(Table::Vitals, &keys::memory(ns, id), &mut |_| Ok(()))
    }

    /// The hot part of every row of a namespace that can be read, by id.
    fn all_vitals(&self, ns: NsId, visit: &mut dyn FnMut(MemoryId, &Vitals) -> Result<()>) -> Result<()> {
        self.vitals_after(ns, None, &mut |id, vitals| {
            vitals.map_or(Ok(()), |vitals| visit(id, vitals)).map(ControlFlow::Continue)
        })
    }

    /// The indexes of a namespace, each with the number of memories that have their slots there, whatever else is damaged.
    fn indexes_of(&self, ns: NsId) -> Result<BTreeMap<IndexId, u64>> {
        // One in which no memory is left has rows of its own.
        let heads = self.slot_heads(Some(ns))?.into_iter();
        let mut all: BTreeMap<IndexId, u64> = heads.map(|(index, _)| (index, 0)).collect();
        self.all_vitals(ns, &mut |_, vitals| {
            let (part, space) = (PartId(vitals.place.partition), SpaceId(vitals.place.space));
            if vitals.place.slot.is_some() {
                *all.entry(IndexId { ns, part, space }).or_default() += 1;
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// The memories of a namespace behind one, by id, until `visit` breaks off; none where the hot part can't be read.
    fn vitals_after(&self, ns: NsId, after: Option<MemoryId>, visit: VisitVitals<'_>) -> Result<()> {
        let all = Walk::prefix(&keys::ns(ns));
        let walk = after.into_iter().fold(all, |walk, after| walk.after(&keys::memory(ns, after)));
        self.walk(Table::Vitals, &walk, &mut |key, bytes| {
            let vitals = sound(record::decode_vitals(At::new(Table::Vitals.name(), key), bytes))?;
            let id = Some(last_id(Table::Vitals, key)?).filter(|id| after < Some(*id));
            id.map_or(Ok(ControlFlow::Continue(())), |id| visit(id, vitals.as_ref()))
        })
    }

    /// As many of them as `most`, if there are so many.
    fn vitals_page(&self, ns: NsId, after: Option<MemoryId>, most: usize) -> Result<Vec<(MemoryId, Vitals)>> {
        let mut page = Vec::new();
        self.vitals_after(ns, after, &mut |id, vitals| {
            page.extend(vitals.map(|vitals| (id, vitals.clone())));
            Ok(if page.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(page)
    }

    /// The memories of a namespace that wait for a vector.
    fn pending_rows(&self, ns: NsId) -> Result<Vec<MemoryId>> {
        let id = |key: &[u8]| last_id(Table::Pending, key);
        self.each_key(Table::Pending, &Walk::prefix(&keys::ns(ns)), usize::MAX, id)
    }

    /// The memories of a walk over those of a partition by creation, and when each was made.
    fn ids_by_time(&self, walk: &Walk, visit: &mut dyn FnMut(Time, MemoryId) -> Result<()>) -> Result<()> {
        self.walk(Table::ByTime, walk, &mut |key, _| {
            let place = keys::ByTime::read(Table::ByTime, key)?;
            visit(place.created, place.id)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The memories of a partition, the latest created first, until `visit` breaks off.
    fn latest_by_time(
        &self,
        ns: NsId,
        part: PartId,
        visit: &mut dyn FnMut(MemoryId) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk = Walk::prefix(&keys::ns_part(ns, part)).reversed();
        self.walk(Table::ByTime, &walk, &mut |key, _| visit(last_id(Table::ByTime, key)?))
    }

    fn content(&self, ns: NsId, id: MemoryId) -> Result<Option<Content>> {
        self.row(Table::Memory, &keys::memory(ns, id), record::decode_content)
    }

    /// Only the text of a memory.
    fn text(&self, ns: NsId, id: MemoryId) -> Result<Option<String>> {
        self.row(Table::Memory, &keys::memory(ns, id), |at, bytes| {
            Ok(record::decode_text(at, bytes)?.to_owned())
        })
    }

    fn payload(&self, ns: NsId, id: MemoryId) -> Result<Option<Payload>> {
        self.row(Table::Payload, &keys::memory(ns, id), record::decode_payload)
    }

    fn access(&self, ns: NsId, id: MemoryId) -> Result<Access> {
        Ok(self.row(Table::Access, &keys::memory(ns, id), record::decode_access)?.unwrap_or_default())
    }

    /// The holders of a memory by number.
    fn holders(&self, ns: NsId, id: MemoryId) -> Result<Vec<Holder>> {
        let mut all = Vec::new();
        self.walk(Table::Holder, &Walk::prefix(&keys::memory(ns, id)), &mut |key, bytes| {
            all.push(record::decode_holder(At::new(Table::Holder.name(), key), bytes)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Whether a holder of a memory is one of these. It looks at no more than it must.
    fn any_holder(&self, ns: NsId, id: MemoryId, is_one: &mut dyn FnMut(&Holder) -> bool) -> Result<bool> {
        let mut found = false;
        self.walk(Table::Holder, &Walk::prefix(&keys::memory(ns, id)), &mut |key, bytes| {
            found = is_one(&record::decode_holder(At::new(Table::Holder.name(), key), bytes)?);
            Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }

    fn holder(&self, ns: NsId, id: MemoryId, number: u32) -> Result<Option<Holder>> {
        self.row(Table::Holder, &keys::holder(ns, id, number), record::decode_holder)
    }

    /// Every row that holds, or held, `key`, with the number of the holder.
    fn holders_of_key(&self, ns: NsId, key: &str) -> Result<Vec<(MemoryId, u32)>> {
        self.id_and_number(Table::HolderKey, &keys::holder_key_prefix(ns, key), usize::MAX)
    }

    /// The rows that hold, or held, `key`, the one with the highest id first, until `visit` breaks off.
    fn latest_holders_of_key(
        &self,
        ns: NsId,
        key: &str,
        visit: &mut dyn FnMut(MemoryId, u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk = Walk::prefix(&keys::holder_key_prefix(ns, key)).reversed();
        self.walk(Table::HolderKey, &walk, &mut |key, _| {
            let (id, number) = last_id_and_number(Table::HolderKey, key)?;
            visit(id, number)
        })
    }

    /// Whether any holder of a namespace has a key.
    fn has_keys(&self, ns: NsId) -> Result<bool> {
        // Those without one stand under the empty key, before all others.
        let after = keys::end_of(&keys::holder_key_prefix(ns, "")).unwrap_or_default();
        self.any(Table::HolderKey, &Walk::prefix(&keys::ns(ns)).starting_at(&after))
    }

    /// Whether a walk comes to any row.
    fn any(&self, table: Table, walk: &Walk) -> Result<bool> {
        Ok(!self.each_key(table, walk, 1, |_| Ok(()))?.is_empty())
    }

    /// Numbers of the holders of a memory that were written without a key.
    fn keyless_holders(&self, ns: NsId, id: MemoryId) -> Result<Vec<u32>> {
        let all = self.id_and_number(Table::HolderKey, &keys::keyless(ns, id), usize::MAX)?;
        Ok(all.into_iter().map(|(_, number)| number).collect())
    }

    /// Every holder that brought `tag`.
    fn holders_of_tag(&self, ns: NsId, tag: &str) -> Result<Vec<(MemoryId, u32)>> {
        self.id_and_number(Table::HolderTag, &keys::holder_key_prefix(ns, tag), usize::MAX)
    }

    /// At most `most` of the holders that came with `run`.
    fn holders_of_run(&self, ns: NsId, run: RunId, most: usize) -> Result<Vec<(MemoryId, u32)>> {
        self.id_and_number(Table::HolderRun, &keys::run(ns, run), most)
    }

    /// The id and number at the end of the keys that begin with `prefix`, at most `most`.
    fn id_and_number(&self, table: Table, prefix: &[u8], most: usize) -> Result<Vec<(MemoryId, u32)>> {
        self.each_key(table, &Walk::prefix(prefix), most, |key| last_id_and_number(table, key))
    }

    /// Number of a category or entity. Each of the two tables of names says what the other has lost.
    fn term(&self, ns: NsId, sort: Junction, name: &str) -> Result<Option<u32>> {
        match sound(self.meta(Table::Term, &keys::term(ns, sort, name)))? {
            Some(found) => Ok(found),
            None => counterparts::number_named(self, Table::TermName, &keys::terms(ns, sort), name),
        }
    }

    /// Name of a category or entity.
    fn term_name(&self, ns: NsId, sort: Junction, term: u32) -> Result<Option<String>> {
        match sound(self.meta(Table::TermName, &keys::term_name(ns, sort, term)))? {
            Some(found) => Ok(found),
            None => counterparts::name_numbered(self, Table::Term, &keys::terms(ns, sort), term),
        }
    }

    /// The memories from which a memory was made, as the row of the memory names them.
    fn sources(&self, ns: NsId, id: MemoryId) -> Result<Vec<MemoryId>> {
        let joined = self.junctions(ns, id)?.into_iter().filter(|row| row.sort == Junction::Source);
        Ok(joined.filter_map(|row| row.target.as_slice().try_into().ok().map(MemoryId::from_bytes)).collect())
    }

    /// What a memory is joined to, of every sort.
    fn junctions(&self, ns: NsId, id: MemoryId) -> Result<Vec<JunctionRow>> {
        self.each_key(Table::Junction, &Walk::prefix(&keys::memory(ns, id)), usize::MAX, |key| {
            let keys::Junction { end, role, .. } = keys::Junction::read(Table::Junction, key)?;
            Ok(JunctionRow::of(end, role.0))
        })
    }

    /// The memories that are joined to a target, with their roles.
    fn joined_to(&self, ns: NsId, sort: Junction, target: &[u8]) -> Result<Vec<(MemoryId, String)>> {
        let walk = Walk::prefix(&keys::junction_back_prefix(ns, End(sort, target)));
        self.each_key(Table::JunctionBack, &walk, usize::MAX, |key| {
            let row = keys::JunctionBack::read(Table::JunctionBack, key)?;
            Ok((row.id, row.role.0.to_owned()))
        })
    }

    /// The memories that were made from others.
    fn with_sources(&self, ns: NsId) -> Result<BTreeSet<MemoryId>> {
        let walk = Walk::prefix(&keys::junction_back_prefix(ns, End(Junction::Source, &[])));
        let id = |key: &[u8]| keys::JunctionBack::read(Table::JunctionBack, key).map(|row| row.id);
        Ok(self.each_key(Table::JunctionBack, &walk, usize::MAX, id)?.into_iter().collect())
    }

    /// Whether a memory is joined to a target.
    fn is_joined_to(&self, ns: NsId, sort: Junction, target: &[u8]) -> Result<bool> {
        let mut any = false;
        let walk = Walk::prefix(&keys::junction_back_prefix(ns, End(sort, target)));
        self.walk(Table::JunctionBack, &walk, &mut |_, _| {
            any = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(any)
    }

    /// The rows that `new` superseded.
    fn superseded_by(&self, ns: NsId, new: MemoryId) -> Result<Vec<MemoryId>> {
        let old = |key: &[u8]| keys::Superseded::read(Table::Superseded, key).map(|row| row.id);
        self.each_key(Table::Superseded, &Walk::prefix(&keys::memory(ns, new)), usize::MAX, old)
    }

    /// The journal rows of a memory that can be read, oldest first.
    fn journal_of(&self, ns: NsId, id: MemoryId) -> Result<Vec<JournalRow>> {
        self.journal_rows(ns, self.journal_numbers(&Walk::prefix(&keys::memory(ns, id)))?)
    }

    /// The journal rows of some numbers in their order, each once. Damaged ones are left out.
    fn journal_rows(&self, ns: NsId, seqs: Vec<u64>) -> Result<Vec<JournalRow>> {
        let mut rows = Vec::new();
        for seq in BTreeSet::from_iter(seqs) {
            rows.extend(sound(self.journal_row(ns, seq))?.flatten());
        }
        Ok(rows)
    }

    /// Numbers of the journal rows whose keys by subject a walk meets, damaged ones too.
    fn journal_numbers(&self, walk: &Walk) -> Result<Vec<u64>> {
        let seq = |key: &[u8]| keys::JournalSubject::read(Table::JournalSubject, key).map(|row| row.seq);
        self.each_key(Table::JournalSubject, walk, usize::MAX, seq)
    }

    /// The journal of a namespace from a number on, until `visit` breaks off: the number and the row; none where the row
    /// is damaged.
    fn journal_on(
        &self,
        ns: NsId,
        from: u64,
        visit: &mut dyn FnMut(u64, Option<JournalRow>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk = Walk::prefix(&keys::ns(ns)).starting_at(&keys::journal(ns, from));
        self.walk(Table::Journal, &walk, &mut |key, bytes| {
            let keys::Journal { seq, .. } = keys::Journal::read(Table::Journal, key)?;
            visit(seq, sound(record::decode_journal(At::new(Table::Journal.name(), key), bytes))?)
        })
    }

    /// The rows of the journal of a namespace, the latest first, until `visit` breaks off; none for a damaged row.
    fn journal_back(
        &self,
        ns: NsId,
        visit: &mut dyn FnMut(Option<JournalRow>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.walk(Table::Journal, &Walk::prefix(&keys::ns(ns)).reversed(), &mut |key, bytes| {
            visit(sound(record::decode_journal(At::new(Table::Journal.name(), key), bytes))?)
        })
    }

    /// The number from which on no row of the journal of a namespace was removed for its age.
    fn journal_from(&self, ns: NsId) -> Result<u64> {
        let head: Option<JournalHeadRow> = self.meta(Table::JournalHead, &keys::journal_head(ns))?;
        Ok(head.unwrap_or_default().from)
    }

    fn journal_row(&self, ns: NsId, seq: u64) -> Result<Option<JournalRow>> {
        self.row(Table::Journal, &keys::journal(ns, seq), record::decode_journal)
    }

    fn tombstone(&self, ns: NsId, id: MemoryId) -> Result<Option<Tombstone>> {
        self.row(Table::Tombstone, &keys::memory(ns, id), record::decode_tombstone)
    }

    /// The tombstones with the HMAC of a key or of a content.
    fn tombstones_of_hash(&self, ns: NsId, hash: &[u8; 32]) -> Result<Vec<MemoryId>> {
        let walk = Walk::prefix(&keys::tombstone_hash_prefix(ns, hash));
        self.each_key(Table::TombstoneHash, &walk, usize::MAX, |key| last_id(Table::TombstoneHash, key))
    }

    /// Whether a row of a partition and tier has a fingerprint.
    fn has_fingerprint(&self, ns: NsId, part: PartId, tier: Tier, fingerprint: &[u8; 16]) -> Result<bool> {
        let walk = Walk::prefix(&keys::by_fingerprint_prefix(ns, part, tier, fingerprint, &[]));
        // A damaged page can lead the walk to a row that lies elsewhere.
        let first = self.each_key(Table::ByFingerprint, &walk, 1, |key| Ok(walk.has(key)))?;
        Ok(first == [true])
    }

    /// The rows of a partition and tier with a fingerprint and a likeness that begins with some bytes, until `visit` breaks off.
    fn by_fingerprint(
        &self,
        ns: NsId,
        part: PartId,
        tier: Tier,
        fingerprint: &[u8; 16],
        likeness: &[u8],
        visit: &mut dyn FnMut(MemoryId) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk = Walk::prefix(&keys::by_fingerprint_prefix(ns, part, tier, fingerprint, likeness));
        self.walk(Table::ByFingerprint, &walk, &mut |key, _| visit(last_id(Table::ByFingerprint, key)?))
    }

    /// The same, the last of them first.
    fn latest_by_fingerprint(
        &self,
        ns: NsId,
        part: PartId,
        tier: Tier,
        fingerprint: &[u8; 16],
        likeness: &[u8],
        visit: &mut dyn FnMut(MemoryId) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let walk =
            Walk::prefix(&keys::by_fingerprint_prefix(ns, part, tier, fingerprint, likeness)).reversed();
        self.walk(Table::ByFingerprint, &walk, &mut |key, _| visit(last_id(Table::ByFingerprint, key)?))
    }

    /// The current snapshots of a series from the instant `from` on, before `until`, by time and id.
    fn series(
        &self,
        ns: NsId,
        part: PartId,
        series: &str,
        from: Time,
        until: Option<Time>,
    ) -> Result<Vec<(Time, MemoryId)>> {
        let prefix = keys::series_prefix(ns, part, series);
        let walk = Walk::prefix(&prefix).starting_at(&keys::at(&prefix, from));
        let walk = until.into_iter().fold(walk, |walk, until| walk.before(&keys::at(&prefix, until)));
        let place = |key: &[u8]| keys::Series::read(Table::Series, key).map(|row| (row.at, row.id));
        self.each_key(Table::Series, &walk, usize::MAX, place)
    }

    /// The paths of metadata of a namespace for which an index is declared, in order, each with whether that is whole.
    fn meta_keys(&self, ns: NsId) -> Result<Vec<(Arc<str>, bool)>> {
        let mut all = Vec::new();
        self.walk(Table::MetaKey, &Walk::prefix(&keys::ns(ns)), &mut |key, value| {
            // One that cannot say how far it is, is not whole.
            let row = meta_of::<Option<UnfinishedRow>>(Table::MetaKey, key, value);
            all.extend(keys::MetaKey::parse(key).map(|key| (key.path.0.into(), matches!(row, Ok(None)))));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The paths of metadata whose indexes are whole, in order: those that a read may ask.
    fn indexed_paths(&self, ns: NsId) -> Result<Vec<Arc<str>>> {
        let declared = self.meta_keys(ns)?.into_iter();
        Ok(declared.filter(|(_, is_whole)| *is_whole).map(|(path, _)| path).collect())
    }

    /// How far a declared index is; none of one that is whole, or not there.
    fn unfinished(&self, ns: NsId, path: &str) -> Result<Option<UnfinishedRow>> {
        let (key, mut row) = (keys::meta_key(ns, path), None);
        self.look(Table::MetaKey, &key, &mut |bytes| {
            row = meta_of(Table::MetaKey, &key, bytes)?;
            Ok(())
        })?;
        Ok(row)
    }

    /// Adds the memories under the keys of indexes that begin so to `all`; at most `most`.
    fn ids_by_meta(&self, begins: &keys::Key, most: usize, all: &mut Vec<MemoryId>) -> Result<()> {
        let until = all.len().saturating_add(most);
        self.walk(Table::MetaValue, &Walk::prefix(begins), &mut |key, _| {
            if all.len() >= until {
                return Ok(ControlFlow::Break(()));
            }
            all.push(last_id(Table::MetaValue, key)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The earliest instants that lie at or before `until`, at most `most`.
    fn due(&self, ns: NsId, until: Time, most: usize) -> Result<Vec<(Time, MemoryId)>> {
        // Behind every row of that instant.
        let end = keys::from_instant(ns, Time::from_millis(until.as_millis() + 1));
        self.by_instant(Table::Due, ns, &end, most)
    }

    /// The memories whose life was over at `until` and which no protection keeps, the longest over first, at most `most`.
    fn ended(&self, ns: NsId, until: Time, most: usize) -> Result<Vec<(Time, MemoryId)>> {
        self.ended_of(ns, 0, until, most)
    }

    /// The protected memories whose life was over at `until`.
    fn ended_protected(&self, ns: NsId, until: Time) -> Result<Vec<(Time, MemoryId)>> {
        self.ended_of(ns, 1, until, usize::MAX)
    }

    /// The memories of one half of the table of those whose life is over.
    fn ended_of(&self, ns: NsId, protected: u8, until: Time, most: usize) -> Result<Vec<(Time, MemoryId)>> {
        let place = |key: &[u8]| keys::Ended::read(Table::Ended, key).map(|row| (row.at, row.id));
        let half = keys::ended_half(ns, protected);
        // Behind every row of that instant.
        let end = keys::at(&half, Time::from_millis(until.as_millis() + 1));
        self.each_key(Table::Ended, &Walk::prefix(&half).before(&end), most, place)
    }

    /// The memories of the short-term tiers that are counted as visible, by id.
    fn short_term(&self, ns: NsId) -> Result<Vec<MemoryId>> {
        let id = |key: &[u8]| last_id(Table::ShortTerm, key);
        self.each_key(Table::ShortTerm, &Walk::prefix(&keys::ns(ns)), usize::MAX, id)
    }

    /// The visible summaries of a level, by creation.
    fn of_level(&self, ns: NsId, level: u8) -> Result<Vec<MemoryId>> {
        let walk = Walk::prefix(&keys::level(ns, level));
        self.each_key(Table::ByLevel, &walk, usize::MAX, |key| last_id(Table::ByLevel, key))
    }

    /// The ids of a table of instants that stand before `end`, at most `most`.
    fn by_instant(&self, table: Table, ns: NsId, end: &[u8], most: usize) -> Result<Vec<(Time, MemoryId)>> {
        let place = |key: &[u8]| keys::LimboTime::read(table, key).map(|row| (row.at, row.id));
        self.each_key(table, &Walk::prefix(&keys::ns(ns)).before(end), most, place)
    }

    /// What a row in limbo needs to come back.
    fn limbo(&self, ns: NsId, id: MemoryId) -> Result<Option<LimboRow>> {
        self.meta(Table::Limbo, &keys::memory(ns, id))
    }

    /// The rows of limbo that were removed before `until`, the longest removed first, at most `most`.
    fn limbo_before(&self, ns: NsId, until: Time, most: usize) -> Result<Vec<(Time, MemoryId)>> {
        self.instants_before(Table::LimboTime, ns, until, None, most)
    }

    /// The rows of a table of instants before `until`, behind `after`, the oldest first, at most `most`.
    fn instants_before(
        &self,
        table: Table,
        ns: NsId,
        until: Time,
        after: Option<(Time, MemoryId)>,
        most: usize,
    ) -> Result<Vec<(Time, MemoryId)>> {
        let walk = Walk::prefix(&keys::ns(ns)).before(&keys::from_instant(ns, until));
        let walk = after.into_iter().fold(walk, |walk, (at, id)| walk.after(&keys::by_instant(ns, at, id)));
        let place = |key: &[u8]| keys::LimboTime::read(table, key).map(|row| (row.at, row.id));
        self.each_key(table, &walk, most, place)
    }

    /// The rows of limbo that were removed after `known`, the longest removed first.
    fn limbo_after(&self, ns: NsId, known: Time) -> Result<Vec<MemoryId>> {
        let from = keys::from_instant(ns, Time::from_millis(known.as_millis().saturating_add(1)));
        let walk = Walk::prefix(&keys::ns(ns)).starting_at(&from);
        self.each_key(Table::LimboTime, &walk, usize::MAX, |key| last_id(Table::LimboTime, key))
    }

    /// Numbers of the journal rows of a run of maintenance, the last first, at most `most`.
    fn journal_of_run(&self, ns: NsId, run: RunId, most: usize) -> Result<Vec<u64>> {
        let seq = |key: &[u8]| keys::JournalRun::read(Table::JournalRun, key).map(|row| row.seq);
        self.each_key(Table::JournalRun, &Walk::prefix(&keys::run(ns, run)).reversed(), most, seq)
    }

    /// The last run of a pass over a namespace; of one whose row is damaged nothing is known, so it begins anew.
    fn pass(&self, ns: NsId, name: &str) -> Result<Option<PassRow>> {
        Ok(sound(self.meta(Table::Pass, &keys::pass(ns, name)))?.flatten())
    }

    /// The last run of every pass over a namespace that can be read, by name.
    fn passes(&self, ns: NsId) -> Result<Vec<(String, PassRow)>> {
        let mut all = Vec::new();
        self.walk(Table::Pass, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            let name = keys::Pass::read(Table::Pass, key)?.name.0;
            all.extend(sound(meta_of(Table::Pass, key, bytes))?.map(|row| (name.to_owned(), row)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// What a counter says; nothing where it is damaged, until `reindex` counts again.
    fn counter(&self, ns: NsId, part: PartId, sort: u8, name: &str) -> Result<CounterRow> {
        Ok(sound(self.counter_row(ns, part, sort, name))?.unwrap_or_default())
    }

    /// A counter that is about to be changed.
    fn counter_row(&self, ns: NsId, part: PartId, sort: u8, name: &str) -> Result<CounterRow> {
        Ok(self.meta(Table::Counter, &keys::counter(ns, part, sort, name))?.unwrap_or_default())
    }

    /// Every counter of a namespace that can be read: partition, sort, name and value.
    fn counters(&self, ns: NsId) -> Result<Vec<(PartId, u8, String, CounterRow)>> {
        let mut all = Vec::new();
        self.walk(Table::Counter, &Walk::prefix(&keys::ns(ns)), &mut |key, bytes| {
            let value = sound(meta_of(Table::Counter, key, bytes))?;
            let row = keys::Counter::parse(key).zip(value);
            all.extend(row.map(|(key, value)| (key.part, key.sort, key.name.0.to_owned(), value)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// One f32 vector, in place of what `out` holds; false when the slot holds none.
    fn vector(&self, index: IndexId, dim: usize, slot: u32, out: &mut Vec<f32>) -> Result<bool> {
        let per = record::vectors_per_block(dim) as u32;
        let key = keys::block(index, slot / per);
        let mut present = false;
        self.look(Table::Vector, &key, &mut |bytes| {
            present = record::read_vector(
                At::new(Table::Vector.name(), &key),
                bytes,
                dim,
                (slot % per) as usize,
                out,
            )?;
            Ok(())
        })?;
        Ok(present)
    }
}

impl<T: Read + ?Sized> Rows for T {}
