//! Memories go from one namespace to another, with everything that belongs to them: holders, junctions, vectors,
//! statistics, the payload, the place in limbo, messages, the journal and the inclusion log.
//!
//! A memory is first brought to the namespace in which it will be, and leaves the other one after all have been brought. A
//! name that leads across the border afterwards, to a superseder, a source or the first memory of a message, ends at
//! a tombstone that says `moved`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::aged::is_named;
use crate::ledger::change::Recreated;
use crate::ledger::derived::IndexRow;
use crate::ledger::writer::{Context, Ledger, Whole, gone, truth};
use crate::model::{Access, JournalRow, Limbo, MemoryId, Parts, RunId, Tombstone, TombstoneReason};
use crate::store::control::{CounterSort as Sort, RunRow};
use crate::store::{
    EventRow, Id, IndexId, Junction, MessageRows, NsId, PartId, Rows, Table, TextId, TextRows, Walk, keys,
    last_id,
};
use crate::text::Secret;

/// How many rows of a journal are in memory at a time.
const JOURNAL_PAGE: usize = 1_024;

/// How memories go to another namespace.
pub(crate) struct Relocation<'r> {
    /// The namespace that they leave.
    pub(crate) from: NsId,
    /// For each partition of `from`, the partition of the same name in the other namespace.
    pub(crate) parts: &'r BTreeMap<PartId, PartId>,
    /// The keys that they lose.
    pub(crate) lost: &'r LostKeys,
    /// Whether another memory is in the other namespace when all have come.
    pub(crate) comes: &'r dyn Fn(MemoryId) -> bool,
    /// Whether the namespace goes as a whole, and its journal with it.
    pub(crate) is_all: bool,
    /// Where `from` has no rows.
    pub(crate) gaps: &'r Gaps,
}

/// The keys that memories lose on their way, because current memories of the other namespace hold them. There such a key names
/// another record, to which nothing that comes belongs: no memory, no message, no tombstone.
#[derive(Default)]
pub(crate) struct LostKeys {
    keys: BTreeSet<String>,
    /// The hashes under which they may stand in tombstones.
    hashes: BTreeSet<[u8; 32]>,
}

impl LostKeys {
    pub(crate) fn new(keys: BTreeSet<String>, secret: &Secret) -> Self {
        let hashes = keys.iter().flat_map(|key| secret.names_of_key(key)).collect();
        LostKeys { keys, hashes }
    }

    pub(crate) fn into_keys(self) -> BTreeSet<String> {
        self.keys
    }

    /// A key as it comes.
    fn left_of(&self, key: Option<String>) -> Option<String> {
        key.filter(|key| !self.keys.contains(key))
    }

    /// A tombstone as it comes.
    fn told_by(&self, mut stone: Tombstone) -> Tombstone {
        stone.key_hashes.retain(|hash| !self.hashes.contains(hash));
        stone
    }
}

/// The tables of what belongs to a memory that most memories have nothing of.
const SPARSE: [Table; 6] =
    [Table::Access, Table::Payload, Table::Junction, Table::EventOf, Table::ContextOf, Table::QueryOf];

/// Those of them in which a namespace has no row, so that no memory is looked for there.
pub(crate) struct Gaps(Vec<Table>);

impl Gaps {
    /// The gaps of a namespace, which stay until something is written to it.
    pub(crate) fn of(rows: &impl Rows, ns: NsId) -> Result<Self> {
        let mut gaps = Vec::new();
        for table in SPARSE {
            if !rows.any(table, &Walk::prefix(&keys::ns(ns)))? {
                gaps.push(table);
            }
        }
        Ok(Gaps(gaps))
    }

    fn has(&self, table: Table) -> bool {
        debug_assert!(SPARSE.contains(&table), "nobody has looked into this table");
        self.0.contains(&table)
    }
}

/// What a memory that comes refers to: runs, and memories that may be on the other side of the border.
pub(crate) struct Trail {
    runs: BTreeSet<RunId>,
    ends: BTreeSet<MemoryId>,
}

impl Trail {
    /// What a memory refers to.
    pub(crate) fn of(row: &Recreated) -> Self {
        let runs = row.holders.iter().filter_map(|holder| holder.run);
        Trail {
            runs: runs.chain(row.limbo.iter().filter_map(|limbo| limbo.run)).collect(),
            ends: row.sources.iter().copied().chain(row.parts.vitals.times.superseded_by()).collect(),
        }
    }
}

impl Ledger<'_, '_> {
    /// Whether everything of a memory can be read that goes with it to another namespace.
    pub(crate) fn can_relocate(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let Some(whole) = sound(self.whole(ns, id))?.flatten() else { return Ok(false) };
        let vitals = &whole.vitals;
        let vector = |slot| -> Result<bool> {
            self.tx.vector(IndexId::of(ns, vitals), self.dim_of(vitals)?, slot, &mut Vec::new())
        };
        Ok(sound(vitals.place.slot.map(vector).transpose())?.is_some()
            && sound(self.tx.limbo(ns, id))?.is_some()
            && sound(self.tx.tombstone(ns, id))?.is_some()
            && sound(self.tx.access(ns, id))?.is_some()
            && sound(self.tx.payload(ns, id))?.is_some())
    }

    /// A memory of another namespace as it is to be recreated, with the number of references that end at the border.
    ///
    /// # Errors
    /// `NotFound` for a row that does not exist; `Corrupted` for a row that can't be read as a whole.
    pub(crate) fn to_relocate(&self, way: &Relocation<'_>, id: MemoryId) -> Result<(Recreated, u64)> {
        let ns = way.from;
        let Whole { mut vitals, content, mut holders } = self.whole(ns, id)?.ok_or_else(|| gone(id))?;
        let row = match vitals.times.removed_at {
            Some(_) => self.tx.limbo(ns, id)?,
            None => None,
        };
        let mut vector = row.as_ref().map(|row| row.vector.clone()).unwrap_or_default();
        if let Some(slot) = vitals.place.slot {
            self.tx.vector(IndexId::of(ns, &vitals), self.dim_of(&vitals)?, slot, &mut vector)?;
        }
        let sources = match &row {
            Some(row) => row.sources.clone(),
            None if way.gaps.has(Table::Junction) => Vec::new(),
            None => self.sources_of(ns, id)?,
        };
        let mut cut = 0;
        for end in sources.iter().copied().chain(vitals.times.superseded_by()) {
            // What is gone already is on no side of the border.
            cut += usize::from(!(way.comes)(end) && self.tx.has_row(ns, end)?);
        }
        for holder in &mut holders {
            let mut links = Vec::with_capacity(holder.links.len());
            for link in std::mem::take(&mut holder.links) {
                // A row in limbo may have a link to a memory that is gone, and loses such a link when it returns.
                match (way.comes)(link.to) || (row.is_some() && !self.tx.has_row(ns, link.to)?) {
                    true => links.push(link),
                    false => cut += 1,
                }
            }
            holder.links = links;
            holder.key = way.lost.left_of(holder.key.take());
        }
        // Other memories have no tombstone.
        let tombstone = if row.is_some() { self.tx.tombstone(ns, id)? } else { None };
        let tombstone = tombstone.map(|stone| way.lost.told_by(stone));
        let part = PartId(vitals.place.partition);
        vitals.place.partition = way.parts.get(&part).copied().unwrap_or(part).0;
        (vitals.place.slot, vitals.place.doc) = (None, None);
        let access = match way.gaps.has(Table::Access) {
            true => Access::default(),
            false => self.tx.access(ns, id)?,
        };
        let payload = match way.gaps.has(Table::Payload) {
            true => None,
            false => self.tx.payload(ns, id)?,
        };
        let vector = Some(vector).filter(|vector| !vector.is_empty());
        let limbo = row.map(|row| {
            Box::new(Limbo {
                reason: row.reason,
                run: row.run,
                replaced_by: row.replaced_by,
                replaced: row.replaced,
                transferred: row.transferred,
                links: row.links,
                tombstone,
            })
        });
        let parts = Parts { vitals, content, access };
        Ok((Recreated { id, parts, holders, vector, sources, limbo, payload }, cut as u64))
    }

    /// Makes room for a memory that comes: a tombstone that only says that it had moved is no longer true.
    pub(crate) fn welcome(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        let stone = self.tx.tombstone(ns, id)?.filter(|stone| stone.reason == TombstoneReason::Moved);
        let Some(stone) = stone else { return Ok(()) };
        truth(self.tx).delete_tombstone(ns, &stone)?;
        self.counters.add(ns, PartId(0), Sort::Tombstones, "", -1, 0);
        Ok(())
    }

    /// Brings what belongs to a memory and is not part of its row: the runs that its rows name, and its messages. What it refers
    /// to across the border gets a tombstone. The journal comes for all memories together.
    pub(crate) fn bring_along(
        &mut self,
        to: &Context,
        way: &Relocation<'_>,
        id: MemoryId,
        trail: Trail,
    ) -> Result<()> {
        let from = way.from;
        let Trail { mut runs, ends } = trail;
        for (event, row) in self.messages_with(from, id, way.gaps)? {
            runs.extend(row.run.map(RunId::from_bytes));
            self.bring_message(to, way, &event, row)?;
        }
        // A whole namespace brings its journal and its runs at the end.
        if !way.is_all {
            for run in runs {
                self.bring_run(from, to.ns, run)?;
            }
        }
        if !way.gaps.has(Table::ContextOf) {
            self.bring_contexts(from, to.ns, id)?;
        }
        for end in ends {
            self.stand_in(from, to, end, way.lost)?;
        }
        Ok(())
    }

    /// Takes a memory that was brought elsewhere out of its namespace, with everything that was brought.
    pub(crate) fn send_away(&mut self, context: &Context, id: MemoryId, gaps: &Gaps) -> Result<()> {
        let ns = context.ns;
        let whole = self.whole(ns, id)?.ok_or_else(|| gone(id))?;
        self.send_along(ns, id, gaps)?;
        self.take_out(context, id, &whole)?;
        if let Some(removed_at) = whole.vitals.times.removed_at {
            truth(self.tx).delete_limbo(ns, id, removed_at)?;
            self.leave_limbo(ns, id, PartId(whole.vitals.place.partition))?;
        }
        Ok(())
    }

    /// Takes all memories of a namespace out of it, which were brought elsewhere, with everything that was brought. What is theirs
    /// alone goes table by table: to look for the rows of each of them takes several times as long. Returns the indexes that are
    /// gone, whose images are no longer valid.
    pub(crate) fn send_all_away(
        &mut self,
        context: &Context,
        ids: &[MemoryId],
        gaps: &Gaps,
    ) -> Result<BTreeSet<IndexId>> {
        let ns = context.ns;
        let mut indexes: BTreeSet<IndexId> =
            self.tx.slot_heads(Some(ns))?.into_iter().map(|(index, _)| index).collect();
        indexes.extend(self.tx.text_ids(ns)?.into_iter().map(TextId::index));
        // The content of a memory names its aggregate, so messages go while it stands.
        for id in ids {
            self.send_along(ns, *id, gaps)?;
        }
        for id in self.all_ids(Table::Limbo, ns)? {
            if let Some(vitals) = self.tx.vitals(ns, id)? {
                self.leave_limbo(ns, id, PartId(vitals.place.partition))?;
            }
        }
        truth(self.tx).delete_memories(ns, &IndexRow::TABLES)?;
        // To count what is left takes less than to count off what has gone.
        self.recount.insert(ns);
        Ok(indexes)
    }

    /// Takes away what tells of a memory beside its own rows: messages, contexts and queries.
    fn send_along(&mut self, ns: NsId, id: MemoryId, gaps: &Gaps) -> Result<()> {
        for (event, row) in self.messages_with(ns, id, gaps)? {
            self.send_message_away(ns, &event, &row)?;
        }
        if !gaps.has(Table::ContextOf) {
            self.leave_contexts(ns, id)?;
        }
        // Whoever forgets the memory in its new namespace does not know of the queries of this one.
        if !gaps.has(Table::QueryOf) {
            self.leave_queries(ns, id, true)?;
        }
        Ok(())
    }

    /// Brings the rows of a journal that tell of memories to the namespaces into which these went, with the runs that the rows
    /// name. A row goes away if it tells of no memory that is still here. The journal is walked once, because to look for the
    /// rows of each memory takes several times as long.
    pub(crate) fn part_journal(&mut self, from: NsId, places: &BTreeMap<MemoryId, NsId>) -> Result<()> {
        let mut next = 0;
        loop {
            let page = self.journal_page(from, &mut next)?;
            let (mut coming, mut away) = (BTreeMap::<NsId, Vec<&JournalRow>>::new(), Vec::new());
            for row in page.iter().filter_map(|(_, row)| row.as_ref()) {
                // A merge stands in the history of each of its members.
                let targets: BTreeSet<NsId> =
                    row.found_by().filter_map(|(id, _)| places.get(id)).copied().collect();
                if targets.is_empty() {
                    continue;
                }
                targets.into_iter().for_each(|to| coming.entry(to).or_default().push(row));
                let mut is_of_others = false;
                for (other, _) in row.found_by().filter(|(other, _)| !places.contains_key(other)) {
                    is_of_others |= self.tx.has_row(from, *other)?;
                }
                if !is_of_others {
                    away.push(row);
                }
            }
            // Rows of one namespace lie side by side.
            for (to, row) in coming.iter().flat_map(|(to, rows)| rows.iter().map(|row| (*to, *row))) {
                self.bring_journal(to, row)?;
                // Most rows tell of one memory, which has come.
                if row.found_by().nth(1).is_some() {
                    self.redact_in(to, row)?;
                }
                if let Some(run) = row.run {
                    self.bring_run(from, to, run)?;
                }
            }
            for row in &away {
                self.count_moved(from, row, 1)?;
            }
            truth(self.tx).delete_journal(from, away)?;
            if page.len() < JOURNAL_PAGE {
                return Ok(());
            }
        }
    }

    /// Replaces the values in a journal row that came, where it also tells of a memory of which only a tombstone is left there.
    fn redact_in(&mut self, to: NsId, row: &JournalRow) -> Result<()> {
        for (id, _) in row.found_by() {
            if !self.tx.has_row(to, *id)? && self.tx.tombstone(to, *id)?.is_some() {
                self.redact(to, *id)?;
            }
        }
        Ok(())
    }

    /// The next rows of a journal with their numbers; none for a damaged row. A page bounds the memory, and its walk is over before
    /// its rows are written elsewhere.
    fn journal_page(&self, ns: NsId, next: &mut u64) -> Result<Vec<(u64, Option<JournalRow>)>> {
        let mut page = Vec::new();
        self.tx.journal_on(ns, *next, &mut |seq, row| {
            *next = seq.saturating_add(1);
            page.push((seq, row));
            Ok(if page.len() < JOURNAL_PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(page)
    }

    /// Takes the tombstone of a memory away that was in limbo.
    fn leave_limbo(&mut self, ns: NsId, id: MemoryId, part: PartId) -> Result<()> {
        let Some(stone) = self.tx.tombstone(ns, id)? else { return Ok(()) };
        truth(self.tx).delete_tombstone(ns, &stone)?;
        self.counters.add(ns, part, Sort::Tombstones, "", -1, 0);
        Ok(())
    }

    /// Whether something in a namespace names a memory that may be gone.
    pub(crate) fn names_memories(&self, ns: NsId) -> Result<bool> {
        let all = Walk::prefix(&keys::ns(ns));
        for table in [Table::Superseded, Table::JunctionBack, Table::EventOf] {
            if self.tx.any(table, &all)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves a tombstone where a memory has gone away and something still refers to it.
    pub(crate) fn stand_in_if_named(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let ns = context.ns;
        match is_named(self.tx, ns, id)? {
            true => self.stand_in(ns, context, id, &LostKeys::default()),
            false => Ok(()),
        }
    }

    /// Brings what is left in a namespace that goes as a whole when its memories have come: tombstones, the whole journal,
    /// runs, and messages that no memory tells of.
    pub(crate) fn bring_rest(&mut self, to: &Context, way: &Relocation<'_>) -> Result<()> {
        let from = way.from;
        for id in self.all_ids(Table::Tombstone, from)? {
            if !self.tx.has_row(to.ns, id)?
                && let Some(stone) = self.tx.tombstone(from, id)?
            {
                self.keep_tombstone(to, &way.lost.told_by(stone))?;
            }
        }
        let mut next = 0;
        loop {
            let page = self.journal_page(from, &mut next)?;
            for (seq, row) in &page {
                match row {
                    Some(row) => self.bring_journal(to.ns, row)?,
                    // Asked again, a damaged row says what is wrong with it.
                    None => drop(self.tx.journal_row(from, *seq)?),
                }
            }
            if page.len() < JOURNAL_PAGE {
                break;
            }
        }
        let runs = self.tx.each_key(Table::Run, &Walk::prefix(&keys::ns(from)), usize::MAX, |key| {
            keys::Run::read(Table::Run, key).map(|row| row.run)
        })?;
        for run in runs {
            self.bring_run(from, to.ns, run)?;
        }
        for id in self.all_ids(Table::Event, from)? {
            let id = *id.as_bytes();
            if let Some(row) = self.tx.event(from, &id)? {
                self.bring_message(to, way, &id, row)?;
            }
        }
        self.bring_goals(from, to.ns)?;
        self.bring_log(from, to.ns)
    }

    /// The ids of the memories of a namespace, in every state.
    pub(crate) fn ids_of(&self, ns: NsId) -> Result<Vec<MemoryId>> {
        self.all_ids(Table::Vitals, ns)
    }

    /// The ids at the end of the keys of a table.
    pub(super) fn all_ids(&self, table: Table, ns: NsId) -> Result<Vec<MemoryId>> {
        self.tx.each_key(table, &Walk::prefix(&keys::ns(ns)), usize::MAX, |key| last_id(table, key))
    }

    /// A tombstone for a memory that something here refers to and that is in `from`, or was: then its own tombstone.
    fn stand_in(&mut self, from: NsId, to: &Context, id: MemoryId, lost: &LostKeys) -> Result<()> {
        if self.tx.has_row(to.ns, id)? {
            return Ok(());
        }
        if !self.tx.has_row(from, id)?
            && let Some(stone) = self.tx.tombstone(from, id)?
        {
            return self.keep_tombstone(to, &lost.told_by(stone)).map(|_| ());
        }
        let stone = Tombstone::bare(id, to.now, TombstoneReason::Moved);
        self.keep_tombstone(to, &stone).map(|_| ())
    }

    fn sources_of(&self, ns: NsId, id: MemoryId) -> Result<Vec<MemoryId>> {
        let rows = self.tx.junctions(ns, id)?.into_iter().filter(|row| row.sort == Junction::Source);
        Ok(rows.filter_map(|row| row.target.try_into().ok().map(MemoryId::from_bytes)).collect())
    }

    /// A row of the journal that comes, or comes back.
    fn bring_journal(&mut self, to: NsId, row: &JournalRow) -> Result<()> {
        self.redacted.remove(&(to, row.seq));
        if row.run.is_none() || !row.can_be_undone() {
            return truth(self.tx).put_journal(to, row);
        }
        let is_there = sound(self.tx.journal_row(to, row.seq))?.is_none_or(|there| there.is_some());
        truth(self.tx).put_journal(to, row)?;
        if is_there { Ok(()) } else { self.count_moved(to, row, -1) }
    }

    /// Counts in a run how many of the changes that could be taken back went to another namespace with their memories.
    fn count_moved(&mut self, ns: NsId, row: &JournalRow, by: i64) -> Result<()> {
        let Some(run) = row.run.filter(|_| row.can_be_undone()) else { return Ok(()) };
        let Some(mut told) = self.tx.run(ns, run)? else { return Ok(()) };
        let before = told.counts.remove(RunRow::MOVED).unwrap_or(0);
        let moved = before.saturating_add_signed(by);
        if moved == before {
            return Ok(());
        }
        if moved > 0 {
            told.counts.insert(RunRow::MOVED.to_owned(), moved);
        }
        self.tx.put_run(ns, run, &told)
    }

    /// A run that rows of two namespaces name is told of in both.
    fn bring_run(&mut self, from: NsId, to: NsId, run: RunId) -> Result<()> {
        match self.tx.run(from, run)? {
            Some(mut row) if self.tx.run(to, run)?.is_none() => {
                row.counts.remove(RunRow::MOVED);
                self.tx.put_run(to, run, &row)
            }
            _ => Ok(()),
        }
    }

    /// The messages that go where a memory goes: those of its aggregate if it stands for one, and those that became or
    /// reinforced the memory and are counted by no other memory.
    fn messages_with(&self, ns: NsId, id: MemoryId, gaps: &Gaps) -> Result<BTreeMap<Id, EventRow>> {
        if gaps.has(Table::EventOf) {
            return Ok(BTreeMap::new());
        }
        let mut all = self.members(ns, id.as_bytes())?;
        let counted: BTreeSet<Id> = all.values().filter_map(|row| row.aggregate).collect();
        all.retain(|_, row| row.aggregate.is_none());
        for aggregate in counted {
            // What counts the repeats of a person has no memory of its own.
            if self.tx.aggregate(ns, &aggregate)?.is_some_and(|row| row.memory.is_none()) {
                all.append(&mut self.members(ns, &aggregate)?);
            }
        }
        if let Some(aggregate) = self.aggregate_of_memory(ns, id)? {
            all.append(&mut self.members(ns, &aggregate)?);
        }
        Ok(all)
    }

    /// Brings a message, the family that it began, and the aggregate that counts it.
    fn bring_message(
        &mut self,
        to: &Context,
        way: &Relocation<'_>,
        id: &Id,
        mut row: EventRow,
    ) -> Result<()> {
        let (from, parts) = (way.from, way.parts);
        if self.tx.event(to.ns, id)?.is_some() {
            return Ok(());
        }
        let there = |part: u32| parts.get(&PartId(part)).map_or(part, |part| part.0);
        row.part = there(row.part);
        row.key = way.lost.left_of(row.key.take());
        if let Some(aggregate) = row.aggregate
            && self.tx.aggregate(to.ns, &aggregate)?.is_none()
            && let Some(mut counted) = self.tx.aggregate(from, &aggregate)?
        {
            counted.part = there(counted.part);
            self.keep_aggregate(to.ns, &aggregate, &counted)?;
        }
        let mut family = self.tx.family(from, id)?;
        if let Some(family) = &mut family {
            family.part = there(family.part);
        }
        let ends = row.memory.into_iter().chain(family.as_ref().map(|family| family.first_memory));
        for end in ends.collect::<BTreeSet<_>>() {
            self.stand_in(from, to, MemoryId::from_bytes(end), way.lost)?;
        }
        self.keep_event(to.ns, id, &row, family.as_ref())
    }

    /// Takes a message away that was brought elsewhere, with its family, and with its aggregate when it is the last member.
    fn send_message_away(&mut self, ns: NsId, id: &Id, row: &EventRow) -> Result<()> {
        truth(self.tx).delete_family(ns, id)?;
        truth(self.tx).delete_event(ns, id, row)?;
        self.counters.add(ns, PartId(row.part), Sort::Events, "", -1, 0);
        let Some(aggregate) = row.aggregate else { return Ok(()) };
        if !self.tx.events_of(ns, &aggregate, 1)?.is_empty() {
            return Ok(());
        }
        if let Some(counted) = self.tx.aggregate(ns, &aggregate)? {
            truth(self.tx).delete_aggregate(ns, &aggregate)?;
            self.counters.add(ns, PartId(counted.part), Sort::Aggregates, "", -1, 0);
        }
        Ok(())
    }
}
