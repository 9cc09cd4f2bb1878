//! Small rows that can't be read. They are mended from other rows, or given up if no memory is lost with
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ledger::damage::lost_payloads;
use crate::ledger::writer::{Context, Ledger, truth};
use crate::model::{JournalRow, MemoryId, Op, RunId, SupersedeMode, Tombstone, TombstoneReason};
use crate::store::control::DROPPED;
use crate::store::{
    AggregateRow, FamilyRow, Id, MessageRows, NsId, Read, Rows, Table, Traces, Walk, keys, last_id, space_of,
};

/// Tables whose rows are given up where they can't be read: nothing in them is a part of what a memory says.
const GIVEN_UP: [Table; 7] = [
    Table::Pass,
    Table::Access,
    Table::Context,
    Table::GcPlan,
    Table::GcGroup,
    Table::Goal,
    Table::GoalEpoch,
];

impl Ledger<'_, '_> {
    /// Mends the small rows of a namespace that nothing else writes again. Names come from the table that holds them
    /// the other way round, runs from the rows that tell of them, and tombstones from the journal. Values are removed
    /// where only keys belong. Rows that can't be read and belong to no memory are removed: rows of the journal and of
    /// passes, messages, families and aggregates.
    pub(crate) fn mend(&mut self, context: &Context) -> Result<()> {
        let ns = context.ns;
        self.recount.insert(ns);
        // Names stand in two tables, and what one has lost the other tells.
        let names = [Table::Partition, Table::PartitionName, Table::Term, Table::TermName];
        self.drop_lost(ns, &names)?;
        for table in names {
            for key in self.keys_of(table, ns)? {
                self.complete(ns, table, &key)?;
            }
        }
        for key in self.tx.lost(Table::Run, ns)? {
            self.mend_run(ns, keys::Run::read(Table::Run, &key)?.run)?;
        }
        for run in self.gone_runs(ns)? {
            self.mend_run(ns, run)?;
        }
        for key in self.tx.lost(Table::Tombstone, ns)? {
            let id = last_id(Table::Tombstone, &key)?;
            let vitals = sound(self.tx.vitals(ns, id))?.flatten();
            // What stands under a memory that is there tells of no removal.
            match vitals.is_some_and(|vitals| vitals.times.removed_at.is_none()) {
                true => truth(self.tx).delete(Table::Tombstone, &key)?,
                false => self.mend_tombstone(ns, id)?,
            }
        }
        for id in self.without(Table::Limbo, Table::Tombstone, ns)? {
            self.mend_tombstone(ns, id)?;
        }
        for key in self.tx.lost(Table::Journal, ns)? {
            if let Some(keys::Journal { seq, .. }) = keys::Journal::parse(&key) {
                self.drop_journal_row(ns, seq)?;
            }
        }
        for id in lost_payloads(self.tx, ns)? {
            if let Some(mut vitals) = sound(self.tx.vitals(ns, id))?.flatten() {
                vitals.place.payload = false;
                vitals.version += 1;
                truth(self.tx).put_vitals(ns, id, &vitals)?;
            }
        }
        self.drop_lost(ns, &[Table::Payload])?;
        self.drop_lost(ns, &GIVEN_UP)?;
        self.mend_queries(ns)?;
        self.mend_messages(ns)?;
        for table in Table::ALL.iter().filter(|table| table.is_all_key()) {
            for key in self.tx.with_value(*table, ns)? {
                truth(self.tx).put(*table, &key, &[])?;
            }
        }
        Ok(())
    }

    /// The ids that have a row in one table and none in another.
    fn without(&self, table: Table, other: Table, ns: NsId) -> Result<Vec<MemoryId>> {
        let mut all = Vec::new();
        self.tx.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
            if !self.tx.look(other, key, &mut |_| Ok(()))? {
                all.push(last_id(table, key)?);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// The messages that are gone although a row leads to them.
    fn gone_events(&self, ns: NsId) -> Result<BTreeSet<MemoryId>> {
        let mut all = BTreeSet::new();
        for table in [Table::EventTime, Table::EventOf] {
            self.tx.walk(table, &Walk::prefix(&keys::ns(ns)), &mut |key, _| {
                let id = last_id(table, key)?;
                if !self.tx.look(Table::Event, &keys::memory(ns, id), &mut |_| Ok(()))? {
                    all.insert(id);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(all)
    }

    /// The runs that messages came with and whose rows are gone.
    fn gone_runs(&self, ns: NsId) -> Result<BTreeSet<RunId>> {
        let mut all = BTreeSet::new();
        for id in self.all_ids(Table::Event, ns)? {
            let event = sound(self.tx.event(ns, id.as_bytes()))?.flatten();
            let run = event.and_then(|event| event.run).map(RunId::from_bytes);
            if let Some(run) = run.filter(|run| !all.contains(run))
                && !self.tx.look(Table::Run, &keys::run(ns, run), &mut |_| Ok(()))?
            {
                all.insert(run);
            }
        }
        Ok(all)
    }

    /// Mends what tells of dropped namespaces. A row of it that can't be read is given up.
    pub(crate) fn mend_drops(&mut self) -> Result<()> {
        self.drop_lost(DROPPED, &[Table::Tombstone])?;
        for key in self.tx.lost(Table::Journal, DROPPED)? {
            self.drop_journal_row(DROPPED, keys::Journal::read(Table::Journal, &key)?.seq)?;
        }
        for table in [Table::Tombstone, Table::Journal] {
            for key in self.keys_of(table, DROPPED)? {
                self.complete(DROPPED, table, &key)?;
            }
        }
        for table in [Table::TombstoneHash, Table::TombstoneTime, Table::JournalSubject] {
            for key in self.keys_of(table, DROPPED)? {
                self.prune(DROPPED, table, &key)?;
            }
        }
        Ok(())
    }

    /// Writes the rows of embedding spaces again of which one byte is damaged.
    pub(crate) fn mend_spaces(&mut self) -> Result<()> {
        let mut mended = Vec::new();
        self.tx.walk(Table::Space, &Walk::all(), &mut |key, value| {
            if Table::Space.check_value(key, value).is_err() {
                mended.extend(keys::Space::parse(key).zip(space_of(key, value).ok()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        mended.into_iter().try_for_each(|(key, row)| self.tx.put_space(key.space, &row))
    }

    /// Removes the rows of tables that can't be read.
    fn drop_lost(&mut self, ns: NsId, tables: &[Table]) -> Result<()> {
        for table in tables {
            for key in self.tx.lost(*table, ns)? {
                truth(self.tx).delete(*table, &key)?;
            }
        }
        Ok(())
    }

    fn keys_of(&self, table: Table, ns: NsId) -> Result<Vec<Vec<u8>>> {
        self.tx.each_key(table, &Walk::prefix(&keys::ns(ns)), usize::MAX, |key| Ok(key.to_vec()))
    }

    /// Mends a tombstone by the journal and by its hashes.
    fn mend_tombstone(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        let of_removal =
            |row: &JournalRow| matches!(row.op, Op::Remove | Op::Retire | Op::Merge | Op::DropNamespace);
        let removal = self.tx.journal_of(ns, id)?.into_iter().rev().find(of_removal);
        let limbo = sound(self.tx.limbo(ns, id))?.flatten();
        let vitals = sound(self.tx.vitals(ns, id))?.flatten();
        let removed_at = vitals.and_then(|vitals| vitals.times.removed_at);
        let at = removed_at.or(removal.as_ref().map(|row| row.at));
        let mut hashes = Vec::new();
        for key in self.tx.keys_ending(Table::TombstoneHash, ns, id.as_bytes())? {
            hashes.extend(keys::TombstoneHash::parse(&key).map(|row| *row.hash));
        }
        // It is unknown which hash is that of the content. Each of them leads here.
        let content_hash = hashes.pop().unwrap_or_default();
        let reason = limbo.as_ref().map_or(TombstoneReason::Forget, |limbo| limbo.reason);
        let tombstone = Tombstone {
            run: removal.as_ref().and_then(|row| row.run),
            replaced_by: limbo.and_then(|limbo| limbo.replaced_by),
            key_hashes: hashes,
            content_hash,
            ..Tombstone::bare(id, at.unwrap_or(self.now()), reason)
        };
        truth(self.tx).put_tombstone(ns, &tombstone)
    }

    /// Lets lost messages leave their families; [`Ledger::recount_families`] counts them again.
    fn mend_messages(&mut self, ns: NsId) -> Result<()> {
        let mut lost = self.gone_events(ns)?;
        lost.extend(self.without(Table::Family, Table::Event, ns)?);
        for key in self.tx.lost(Table::Event, ns)? {
            lost.insert(last_id(Table::Event, &key)?);
        }
        for id in lost {
            self.drop_message_row(ns, Table::Event, id)?;
            // A family is found by its first message.
            self.drop_message_row(ns, Table::Family, id)?;
        }
        for key in self.tx.lost(Table::Family, ns)? {
            self.drop_message_row(ns, Table::Family, last_id(Table::Family, &key)?)?;
        }
        for key in self.tx.lost(Table::Aggregate, ns)? {
            self.mend_aggregate(ns, last_id(Table::Aggregate, &key)?)?;
        }
        self.mend_gone_aggregates(ns)
    }

    /// Writes the aggregates again that messages or families name, and whose rows are gone.
    fn mend_gone_aggregates(&mut self, ns: NsId) -> Result<()> {
        let mut named: BTreeMap<Id, Vec<MemoryId>> = BTreeMap::new();
        for id in self.all_ids(Table::Event, ns)? {
            let event = sound(self.tx.event(ns, id.as_bytes()))?.flatten();
            named.extend(event.and_then(|event| event.aggregate).map(|aggregate| (aggregate, Vec::new())));
        }
        for id in self.all_ids(Table::Family, ns)? {
            let family = sound(self.tx.family(ns, id.as_bytes()))?.flatten();
            if let Some(aggregate) = family.and_then(|family| family.aggregate) {
                named.entry(aggregate).or_default().push(id);
            }
        }
        for (aggregate, families) in named {
            if self.tx.aggregate(ns, &aggregate)?.is_some() {
                continue;
            }
            self.mend_aggregate(ns, MemoryId::from_bytes(aggregate))?;
            if self.tx.aggregate(ns, &aggregate)?.is_some() {
                continue;
            }
            for id in families {
                if let Some(family) = self.tx.family(ns, id.as_bytes())? {
                    truth(self.tx).put_family(ns, id.as_bytes(), &FamilyRow { aggregate: None, ..family })?;
                }
            }
        }
        Ok(())
    }

    /// Counts the families again whose numbers are not those of their messages, when every row that leads to a message is
    /// there again.
    pub(crate) fn recount_families(&mut self, context: &Context) -> Result<()> {
        let ns = context.ns;
        for id in self.all_ids(Table::Aggregate, ns)? {
            let id = *id.as_bytes();
            let Some(old) = self.tx.aggregate(ns, &id)? else { continue };
            let members = self.tx.events_of(ns, &id, usize::MAX)?.len() as u64;
            if members.checked_add(old.ended) != Some(old.dup_count) {
                self.count_members(ns, &id, &old)?;
            }
        }
        Ok(())
    }

    /// Mends an aggregate by its messages and its memory.
    fn mend_aggregate(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        let members = self.members(ns, id.as_bytes())?;
        let (began, family) = self.family_of(ns, &members)?.unzip();
        let Some(first) = members.values().next() else {
            return self.drop_message_row(ns, Table::Aggregate, id);
        };
        let first_memory = family.as_ref().map(|family| MemoryId::from_bytes(family.first_memory));
        let superseded = match first_memory {
            Some(memory) => sound(self.tx.vitals(ns, memory))?.flatten().and_then(|row| row.times.superseded),
            None => None,
        };
        let memory = superseded.filter(|superseded| superseded.mode == SupersedeMode::Aggregate);
        let memory = memory.map(|superseded| superseded.by);
        let content = match memory {
            Some(memory) => sound(self.tx.content(ns, memory))?.flatten(),
            None => None,
        };
        let told = |name: &str| content.as_ref()?.metadata.get(name)?.as_str().map(str::to_owned);
        let counted = content.as_ref().and_then(|content| content.metadata.get("dup_count")?.as_u64());
        let old = AggregateRow {
            part: first.part,
            family: family.as_ref().map_or(*id.as_bytes(), |family| family.family),
            scope: first.channel.clone(),
            slice: told("slice"),
            began: began.unwrap_or_default(),
            // Its memory has counted those that have ended as well.
            ended: counted.unwrap_or_default().saturating_sub(members.len() as u64),
            authors: members.values().filter_map(|event| event.author_id.clone()).collect(),
            examples: members.keys().copied().collect(),
            exact_hash: family.as_ref().map(|family| family.dup_key),
            simhash: family.as_ref().and_then(|family| family.simhash),
            classification: told("classification").unwrap_or_else(|| "unclassified".to_owned()),
            memory: memory.map(|memory| *memory.as_bytes()),
            ..AggregateRow::default()
        };
        self.count_members(ns, id.as_bytes(), &old)
    }

    /// Writes an aggregate as its messages tell.
    fn count_members(&mut self, ns: NsId, id: &Id, old: &AggregateRow) -> Result<()> {
        let members = self.members(ns, id)?;
        if members.is_empty() {
            return self.drop_message_row(ns, Table::Aggregate, MemoryId::from_bytes(*id));
        }
        let mut row = self.recounted(ns, id, old, old.ended.saturating_add(members.len() as u64))?;
        row.authors.sort_unstable();
        row.authors.dedup();
        if let Some((slice, mut family)) = self.family_of(ns, &members)? {
            family.count = row.dup_count;
            (family.first_ts, family.latest_ts) = (row.first_ts, row.last_ts);
            truth(self.tx).put_family(ns, &slice, &family)?;
        }
        truth(self.tx).put_aggregate(ns, id, &row)
    }

    /// Removes a message, a family or an aggregate that can't be read, with everything that leads to it.
    fn drop_message_row(&mut self, ns: NsId, table: Table, id: MemoryId) -> Result<()> {
        let leading: &[Table] = match table {
            Table::Event => &[Table::EventTime, Table::EventOf],
            Table::Family => &[Table::FamilyKey, Table::FamilyBand],
            _ => &[],
        };
        // How it was counted is not known.
        self.recount.insert(ns);
        self.delete_found(ns, id, leading)?;
        truth(self.tx).delete(table, &keys::memory(ns, id))
    }
}
