//! Where a finding stands, in names: the namespace, the agent, the memory with its key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::check::address::{take_rest, target, term_sort};
use crate::hygiene::report::{Finding, KEY_BYTES_MAX, unhex};
use crate::model::MemoryId;
use crate::store::keys::{self, Parts};
use crate::store::{NsId, PartId, Table, Traces, Walk};

/// What a key names.
#[derive(Default)]
struct Place {
    ns: Option<NsId>,
    part: Option<PartId>,
    id: Option<MemoryId>,
    name: Option<String>,
}

/// A memory, by the number of its namespace.
type Row = (NsId, MemoryId);

/// What other rows say of memories that can't say it themselves.
#[derive(Default)]
struct Said {
    parts: BTreeMap<Row, PartId>,
    keys: BTreeMap<Row, String>,
}

/// Adds namespace, agent, id and name to findings, as far as the rows that can be read tell them.
pub(crate) fn locate(rows: &impl Traces, findings: &mut [Finding]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    let named = sound(rows.namespaces())?.unwrap_or_default();
    let namespaces: BTreeMap<NsId, String> =
        named.into_iter().map(|(name, row)| (NsId(row.number), name)).collect();
    let places: Vec<Place> = findings.iter().map(|finding| place_of(finding).unwrap_or_default()).collect();
    let said = said(rows, places.iter().filter_map(|place| place.ns.zip(place.id)).collect())?;
    for (finding, place) in findings.iter_mut().zip(places) {
        let row = place.ns.zip(place.id);
        let part = place.part.or_else(|| row.and_then(|row| said.parts.get(&row).copied()));
        finding.namespace = place.ns.and_then(|ns| namespaces.get(&ns).cloned());
        finding.agent = match place.ns.zip(part).filter(|(_, part)| *part != PartId(0)) {
            Some((ns, part)) => sound(rows.partition_name(ns, part))?.flatten(),
            None => None,
        };
        finding.id = place.id;
        finding.name = place.name.or_else(|| row.and_then(|row| said.keys.get(&row).cloned()));
    }
    Ok(())
}

/// Partitions and keys of memories, by two walks through a namespace.
fn said(rows: &impl Traces, wanted: BTreeSet<Row>) -> Result<Said> {
    let mut said = Said::default();
    for ns in wanted.iter().map(|(ns, _)| *ns).collect::<BTreeSet<_>>() {
        let within = Walk::prefix(&keys::ns(ns));
        let by_time = rows.walk(Table::ByTime, &within, &mut |key, _| {
            let mut parts = Parts(key);
            let place = parts.u32().and(parts.u32()).zip(key.last_chunk().copied().map(MemoryId::from_bytes));
            if let Some((part, id)) = place
                && wanted.contains(&(ns, id))
            {
                said.parts.insert((ns, id), PartId(part));
            }
            Ok(ControlFlow::Continue(()))
        });
        sound(by_time)?;
        let by_key = rows.walk(Table::HolderKey, &within, &mut |key, _| {
            let mut parts = Parts(key);
            if let Some((name, id)) = parts.u32().and(parts.text()).zip(parts.id())
                && wanted.contains(&(ns, id))
            {
                said.keys.entry((ns, id)).or_insert_with(|| name.to_owned());
            }
            Ok(ControlFlow::Continue(()))
        });
        sound(by_key)?;
    }
    Ok(said)
}

/// What the key of a finding names; none where it is not built like one of its table.
fn place_of(finding: &Finding) -> Option<Place> {
    let table = Table::named(finding.table)?;
    // Of a longer one only the beginning is known.
    let key = unhex(&finding.key).filter(|key| key.len() < KEY_BYTES_MAX)?;
    let mut parts = Parts(&key);
    let mut place = Place::default();
    match table {
        Table::Meta | Table::Namespace => {
            place.name = take_rest(&mut parts).map(str::to_owned);
            return Some(place);
        }
        Table::Space | Table::Policy => return Some(place),
        _ => {}
    }
    match table {
        Table::Slot
        | Table::Vector
        | Table::Graph
        | Table::SlotHead
        | Table::GraphHead
        | Table::SlotFree
        | Table::SlotDead => {
            let index = parts.index()?;
            (place.ns, place.part) = (Some(index.ns), Some(index.part));
            return Some(place);
        }
        _ => place.ns = Some(NsId(parts.u32()?)),
    }
    name_in_namespace(table, &key, &mut parts, &mut place)?;
    Some(place)
}

/// What the key of a table that is ordered by namespace names behind it.
fn name_in_namespace(table: Table, key: &[u8], parts: &mut Parts<'_>, place: &mut Place) -> Option<()> {
    let mut name = None;
    match table {
        Table::Vitals
        | Table::Memory
        | Table::Access
        | Table::Holder
        | Table::Tombstone
        | Table::Limbo
        | Table::Event
        | Table::Aggregate
        | Table::Family
        | Table::Junction
        | Table::JournalSubject => place.id = Some(parts.id()?),
        Table::Superseded
        | Table::Due
        | Table::MetaValue
        | Table::LimboTime
        | Table::TombstoneHash
        | Table::EventTime
        | Table::EventOf => place.id = Some(last_id(key)?),
        Table::ByTime
        | Table::ByFingerprint
        | Table::Pending
        | Table::Series
        | Table::FamilyKey
        | Table::FamilyBand => {
            place.part = Some(PartId(parts.u32()?));
            place.id = Some(last_id(key)?);
        }
        Table::HolderKey | Table::HolderTag => {
            name = Some(parts.text()?);
            place.id = Some(parts.id()?);
        }
        Table::HolderRun => place.id = Some(parts.id().and(parts.id())?),
        Table::JunctionBack => {
            target(parts)?;
            place.id = Some(parts.id()?);
        }
        Table::Term => name = Some(term_sort(parts).and(take_rest(parts))?),
        Table::Partition | Table::Pass | Table::MetaKey => name = Some(take_rest(parts)?),
        Table::PartitionName | Table::TextHead | Table::TextDoc | Table::TextPosting | Table::Thread => {
            place.part = Some(PartId(parts.u32()?));
        }
        _ => {}
    }
    place.name = name.map(str::to_owned);
    Some(())
}

fn last_id(key: &[u8]) -> Option<MemoryId> {
    key.last_chunk().copied().map(MemoryId::from_bytes)
}
