//! Messages, their families and the numbers of these, and the rows by which they are found.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::hygiene::check::rows::memory_of;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::model::{AuthorKind, MemoryId};
use crate::store::control::{CounterSort as Sort, TOTAL};
use crate::store::keys;
use crate::store::{AggregateRow, EventRow, FamilyRow, Id, MessageRows, NsId, PartId, Table, meta_of};

impl Check<'_> {
    pub(super) fn event(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: EventRow = meta_of(Table::Event, key, value)?;
        let keys::Event { ns, id } = keys::Event::read(Table::Event, key)?;
        self.counted(ns, row.part, Sort::Events, Table::Event, key);
        if AuthorKind::from_code(row.author).is_none() {
            self.find(Code::ValueShape, Table::Event, key, format!("author kind {}", row.author));
        }
        for (table, place) in row.keys(ns, id.as_bytes()) {
            if self.lacks(table, &place)? {
                self.find(Code::IndexMissing, table, &place, format!("event {id} is not found here"));
            }
        }
        self.memory_linked(ns, row.memory, Table::Event, key)?;
        let linked = [(Table::Aggregate, row.aggregate), (Table::Run, row.run)];
        for (table, other) in linked {
            if let Some(other) = other {
                self.linked(ns, table, other, Table::Event, key)?;
            }
        }
        Ok(())
    }

    pub(super) fn aggregate(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: AggregateRow = meta_of(Table::Aggregate, key, value)?;
        let keys::Aggregate { ns, id } = keys::Aggregate::read(Table::Aggregate, key)?;
        self.counted(ns, row.part, Sort::Aggregates, Table::Aggregate, key);
        self.memory_linked(ns, row.memory, Table::Aggregate, key)?;
        let Some(members) = seen(self.snapshot.events_of(ns, id.as_bytes(), usize::MAX))? else {
            return Ok(());
        };
        let members = BTreeSet::from_iter(members);
        if (members.len() as u64).checked_add(row.ended) != Some(row.dup_count) {
            let (all, ended) = (row.dup_count, row.ended);
            let what = format!("{all} members, where {} events name it, and {ended} ended", members.len());
            self.find(Code::AggregateCount, Table::Aggregate, key, what);
        }
        // The first and the last member may be among those that have ended.
        let ends = [row.first_event, row.last_event].into_iter().filter(|_| row.ended == 0);
        for event in ends.chain(row.examples) {
            if !members.contains(&event) {
                let what = format!("event {} is no member", MemoryId::from_bytes(event));
                self.find(Code::EventLink, Table::Aggregate, key, what);
            }
        }
        Ok(())
    }

    pub(super) fn family(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let row: FamilyRow = meta_of(Table::Family, key, value)?;
        let keys::Family { ns, id } = keys::Family::read(Table::Family, key)?;
        if !self.knows_part(ns, PartId(row.part)) {
            self.find(Code::PartitionUnknown, Table::Family, key, format!("no partition {}", row.part));
        }
        for (table, place) in row.keys(ns, id.as_bytes()) {
            if self.lacks(table, &place)? {
                self.find(Code::IndexMissing, table, &place, format!("family {id} is not found here"));
            }
        }
        self.memory_linked(ns, Some(row.first_memory), Table::Family, key)?;
        self.linked(ns, Table::Event, *id.as_bytes(), Table::Family, key)?;
        let mut members = Some(1);
        if let Some(aggregate) = row.aggregate {
            self.linked(ns, Table::Aggregate, aggregate, Table::Family, key)?;
            let numbers = seen(self.snapshot.aggregate(ns, &aggregate))?.flatten();
            members = numbers.map(|numbers| numbers.dup_count);
        }
        if members.is_some_and(|members| members != row.count) || row.first_ts > row.latest_ts {
            let what = format!("{} members from {} to {}", row.count, row.first_ts, row.latest_ts);
            self.find(Code::FamilyCount, Table::Family, key, what);
        }
        Ok(())
    }

    /// A row by which an event or a family is found must be one that it asks for.
    pub(super) fn message_index(&mut self, table: Table, key: &[u8]) -> Result<()> {
        let Some((ns, id)) = memory_of(table, key) else { return Ok(()) };
        let id = *id.as_bytes();
        let asked = if matches!(table, Table::EventTime | Table::EventOf) {
            seen(self.snapshot.event(ns, &id))?.map(|row| row.map(|row| row.keys(ns, &id)))
        } else {
            seen(self.snapshot.family(ns, &id))?.map(|row| row.map(|row| row.keys(ns, &id)))
        };
        // One that is damaged is a finding of its own table.
        let Some(asked) = asked else { return Ok(()) };
        let stands = asked.is_some_and(|all| all.iter().any(|(of, place)| *of == table && **place == *key));
        if !stands {
            let what = format!("{} does not stand here", MemoryId::from_bytes(id));
            self.find(Code::IndexExtra, table, key, what);
        }
        Ok(())
    }

    fn counted(&mut self, ns: NsId, part: u32, sort: Sort, table: Table, key: &[u8]) {
        if !self.knows_part(ns, PartId(part)) {
            self.find(Code::PartitionUnknown, table, key, format!("no partition {part}"));
        }
        for part in [PartId(part), TOTAL] {
            self.counts.add(ns, part, sort, "", 1, 0);
        }
    }

    /// A link to a memory leads to a row or to a tombstone.
    fn memory_linked(&mut self, ns: NsId, memory: Option<Id>, table: Table, key: &[u8]) -> Result<()> {
        let Some(memory) = memory.map(MemoryId::from_bytes) else { return Ok(()) };
        if self.lacks_row(ns, memory)? && self.lacks_tombstone(ns, memory)? {
            self.find(Code::EventLink, table, key, format!("no memory {memory}, and no tombstone"));
        }
        Ok(())
    }

    fn linked(&mut self, ns: NsId, to: Table, id: Id, table: Table, key: &[u8]) -> Result<()> {
        let id = MemoryId::from_bytes(id);
        if self.lacks(to, &keys::memory(ns, id))? {
            self.find(Code::EventLink, table, key, format!("no {} {id}", to.name()));
        }
        Ok(())
    }
}
