//! The walk behind `check`: every row of every table is decoded and accounted for, and nothing is changed.
//!
//! Each row is looked up by its own key: a walk passes from page to page without the keys of inner pages, by which a look-up
//! finds its way. The row is then compared with its counterparts by look-ups, in both directions, so a walk needs no second copy of a
//! table. What is kept in memory meanwhile: names of namespaces, partitions, spaces and declared indexes; one entry for each counter;
//! for each index the numbers of its free and dead slots and a byte for each node of its graph; the ids of the superseded rows of one namespace.
//!
//! Damage that a look-up meets is not reported there: the walk of the row's own table meets it as well.

mod bits;
mod circles;
mod contexts;
mod counts;
mod events;
mod goals;
mod graph;
mod holders;
mod names;
mod past;
mod place;
mod queries;
mod rows;
mod slots;
mod state;
mod tallies;
mod texts;

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::hygiene::erased::ErasedProbe;
use crate::hygiene::report::{CheckReport, Code};
use crate::ledger::derived::IndexRow;
use crate::store::control::{DROPPED, TOTAL};
use crate::store::{Address, IndexId, NsId, Read, Snapshot, Table, Walk};

pub(crate) use place::locate;
use state::{Check, seen};

/// How to check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckOptions {
    /// Compute fingerprints and codes again from texts and vectors, and follow the links of every graph.
    pub deep: bool,
    /// What must be left nowhere in the file.
    pub erased: Vec<ErasedProbe>,
}

/// Checks every row that `snapshot` sees. Namespaces that are being dropped are left out.
///
/// # Errors
/// What is no damage but keeps it from reading on: `Retry`, `Closed`.
pub(crate) fn check(snapshot: &Snapshot, options: &CheckOptions) -> Result<CheckReport> {
    let mut check = Check::new(snapshot, options.deep)?;
    // What every key is compared with. Damage is left to the walk, which meets it again.
    for learn in [Check::learn_names, Check::learn_heads, Check::learn_graphs, Check::learn_texts] {
        seen(learn(&mut check))?;
    }
    // Counters come last: what they must say is counted meanwhile.
    let counted = Table::ALL.iter().filter(|table| **table != Table::Counter);
    for table in counted.chain([&Table::Counter]) {
        // One finding tells that look-ups fail in a table.
        let mut is_sound = true;
        let walked = snapshot.walk(*table, &Walk::all(), &mut |key, value| {
            check.bytes += (key.len() + value.len()) as u64;
            is_sound = is_sound && check.comes_to(*table, key, value)?;
            check.row(*table, key, value)?;
            Ok(ControlFlow::Continue(()))
        });
        check.walked &= walked.is_ok();
        check.note(walked)?;
    }
    for finish in [Check::finish_meta, Check::finish_graphs, Check::finish_bits] {
        let finished = finish(&mut check);
        check.note(finished)?;
    }
    check.finish_slots();
    check.finish_texts();
    check.finish_counters();
    locate(snapshot, &mut check.report.findings)?;
    Ok(check.report)
}

impl Check<'_> {
    /// One row of any table.
    fn row(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        let (address, built) = table.address(key);
        let is_dropping = |ns: NsId| self.tenants.get(&ns).is_some_and(|tenant| tenant.dropping);
        if built && address.ns.is_some_and(is_dropping) {
            return Ok(());
        }
        self.report.checked += 1;
        if !built {
            self.find(Code::KeyShape, table, key, "the key is not one of this table");
            return Ok(());
        }
        if let Some(ns) = address.ns {
            let tells_of_drop = ns == DROPPED && table.tells_of_drops();
            if !self.tenants.contains_key(&ns) && !tells_of_drop {
                self.find(Code::NamespaceUnknown, table, key, format!("no namespace {}", ns.0));
            }
            let totals = table == Table::Counter && address.part == Some(TOTAL);
            if let Some(part) = address.part.filter(|part| !totals && !self.knows_part(ns, *part)) {
                self.find(Code::PartitionUnknown, table, key, format!("no partition {}", part.0));
            }
        }
        if let Some(space) = address.space.filter(|space| !self.spaces.contains_key(space)) {
            self.find(Code::SpaceUnknown, table, key, format!("no embedding space {}", space.0));
        }
        // Rows of a table that is all key have no value.
        if table.is_all_key() && !value.is_empty() {
            self.find(Code::ValueShape, table, key, format!("{} bytes where none belong", value.len()));
        }
        let visited = self.visit(table, key, value);
        if matches!(visited, Err(Error::Corrupted { .. })) {
            self.turn_blind(table, &address);
        }
        self.note(visited)
    }

    /// What a row means beyond its own key and value.
    fn visit(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        match table {
            Table::Meta => self.meta(key, value),
            Table::Namespace => self.namespace(key, value),
            Table::Partition => self.partition(key, value),
            Table::PartitionName => self.partition_name(key, value),
            Table::Space => self.space(key, value),
            Table::Slot => self.slot_block(key, value),
            Table::SlotFree => self.slot_free(key),
            Table::Graph => self.graph_block(key, value),
            Table::GraphHead => self.graph_head(key, value),
            Table::SlotDead => self.slot_dead(key),
            Table::Bits => self.bits(key, value),
            Table::BitsHead => self.bits_head(key, value),
            Table::Vector => self.vector_block(key, value),
            Table::Vitals => self.vitals(key, value),
            Table::Memory | Table::Access => {
                table.read_value(key, value)?;
                self.belongs(table, key)
            }
            Table::Payload => {
                table.read_value(key, value)?;
                self.payload(key)
            }
            Table::Holder => self.holder(key, value),
            Table::HolderKey => self.holder_key(key),
            Table::HolderTag => self.holder_tag(key),
            Table::HolderRun => self.holder_run(key),
            Table::Term => self.term(key, value),
            Table::TermName => self.term_name(key, value),
            Table::Junction => self.junction(key),
            Table::JunctionBack => self.junction_back(key),
            Table::Journal => self.journal(key, value),
            Table::JournalSubject => self.journal_subject(key),
            Table::Tombstone => self.tombstone(key, value),
            Table::TombstoneHash => self.tombstone_hash(key),
            Table::TombstoneTime => self.tombstone_time(key),
            Table::Counter => self.counter(key, value),
            Table::Limbo => self.limbo(key, value),
            Table::LimboTime => self.limbo_time(key),
            Table::JournalRun => self.journal_run(key),
            Table::TextHead => self.text_head(key, value),
            Table::TextDoc => self.text_docs(key, value),
            Table::Thread => self.thread(key),
            Table::TextPosting => self.text_posting(key, value),
            Table::Event => self.event(key, value),
            Table::Aggregate => self.aggregate(key, value),
            Table::Family => self.family(key, value),
            Table::EventTime | Table::EventOf | Table::FamilyKey | Table::FamilyBand => {
                self.message_index(table, key)
            }
            Table::Context => self.context(key, value),
            Table::Goal => self.goal(key, value),
            Table::Query => self.query(key, value),
            Table::QueryOf => self.query_index(key),
            Table::ContextTime | Table::ContextOf => self.context_index(table, key),
            _ if IndexRow::TABLES.contains(&table) => self.index_row(table, key),
            _ => table.read_value(key, value),
        }
    }

    /// Counts of rows that could not be read say nothing: their comparison would only repeat the damage.
    fn turn_blind(&mut self, table: Table, address: &Address<'_>) {
        let index = address.ns.zip(address.part).zip(address.space);
        match table {
            Table::Vitals | Table::Memory | Table::Tombstone | Table::Event | Table::Aggregate => {
                self.counts.blind.extend(address.ns);
            }
            Table::Slot => {
                let index = index.map(|((ns, part), space)| IndexId { ns, part, space });
                index.into_iter().for_each(|index| self.slots.entry(index).or_default().blind = true);
            }
            _ => {}
        }
    }
}
