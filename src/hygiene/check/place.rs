//! Where a finding stands, in names: the namespace, the agent, the memory with its key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::report::{Finding, KEY_BYTES_MAX, unhex};
use crate::model::MemoryId;
use crate::store::keys;
use crate::store::{Address, NsId, PartId, Table, Traces, Walk};

/// What a key names.
#[derive(Default)]
struct Located {
    ns: Option<NsId>,
    part: Option<PartId>,
    id: Option<MemoryId>,
    /// Of a holder.
    number: Option<u32>,
    name: Option<String>,
}

/// A memory, by the number of its namespace.
type NsMemory = (NsId, MemoryId);

/// What other rows say of memories that can't say it themselves.
#[derive(Default)]
struct Said {
    parts: BTreeMap<NsMemory, PartId>,
    keys: BTreeMap<NsMemory, String>,
    /// Keys of single holders.
    own_keys: BTreeMap<(NsMemory, u32), String>,
}

/// Adds namespace, agent, id and name to findings, as far as the rows that can be read tell them.
pub(crate) fn locate(rows: &impl Traces, findings: &mut [Finding]) -> Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    let named = sound(rows.namespaces())?.unwrap_or_default();
    let namespaces: BTreeMap<NsId, String> =
        named.into_iter().map(|(name, row)| (NsId(row.number), name)).collect();
    let places: Vec<Located> = findings.iter().map(|finding| place_of(finding).unwrap_or_default()).collect();
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
        let own = row.zip(place.number).and_then(|holder| said.own_keys.get(&holder));
        finding.name = place.name.or_else(|| own.or_else(|| said.keys.get(&row?)).cloned());
    }
    Ok(())
}

/// Partitions and keys of memories, by two walks through a namespace.
fn said(rows: &impl Traces, wanted: BTreeSet<NsMemory>) -> Result<Said> {
    let mut said = Said::default();
    for ns in wanted.iter().map(|(ns, _)| *ns).collect::<BTreeSet<_>>() {
        let within = Walk::prefix(&keys::ns(ns));
        let by_time = rows.walk(Table::ByTime, &within, &mut |key, _| {
            if let Some(keys::ByTime { part, id, .. }) = keys::ByTime::parse(key)
                && wanted.contains(&(ns, id))
            {
                said.parts.insert((ns, id), part);
            }
            Ok(ControlFlow::Continue(()))
        });
        sound(by_time)?;
        let by_key = rows.walk(Table::HolderKey, &within, &mut |key, _| {
            if let Some(row) = keys::HolderKey::parse(key)
                && wanted.contains(&(ns, row.id))
                // Who wrote without a key stands there, too.
                && !row.key.0.is_empty()
            {
                said.own_keys.insert(((ns, row.id), row.number), row.key.0.to_owned());
                said.keys.entry((ns, row.id)).or_insert_with(|| row.key.0.to_owned());
            }
            Ok(ControlFlow::Continue(()))
        });
        sound(by_key)?;
    }
    Ok(said)
}

/// What the key of a finding names.
fn place_of(finding: &Finding) -> Option<Located> {
    let table = Table::named(finding.table)?;
    // Of a longer one only the beginning is known.
    let key = unhex(&finding.key).filter(|key| key.len() < KEY_BYTES_MAX)?;
    let (Address { ns, part, id, name, .. }, _) = table.address(&key);
    // A namespace that is being dropped has no name.
    let name = name.filter(|name| !name.contains('\0')).map(str::to_owned);
    let number = keys::Holder::parse(&key).filter(|_| table == Table::Holder).map(|holder| holder.number);
    Some(Located { ns, part, id, number, name })
}
