//! Shape of a key, table by table, and whose it is.

use crate::limits::SIMHASH_BANDS;
use crate::model::{AuthorKind, NamespaceName, Partition, Tier, check_index_key};
use crate::store::control::CounterSort;
use crate::store::control::TOTAL;
use crate::store::keys::Parts;
use crate::store::{CLOCK, IDENTITY, Junction, NsId, PartId, SIZE, SpaceId, Table};

/// To what a key belongs.
#[derive(Default)]
pub(super) struct Address {
    pub(super) ns: Option<NsId>,
    pub(super) part: Option<PartId>,
    pub(super) space: Option<SpaceId>,
}

/// The address of a key; none when no key of this table is built like it.
pub(super) fn address(table: Table, key: &[u8]) -> Option<Address> {
    let mut parts = Parts(key);
    let sound = match table {
        Table::Meta => [IDENTITY, CLOCK, SIZE].contains(&key),
        Table::Namespace => {
            // A name that begins with NUL is one of a namespace that is being dropped; `namespace` looks closer.
            let name = parts.rest()?;
            name.starts_with('\0')
                || name.parse::<NamespaceName>().is_ok_and(|name| name.as_str().as_bytes() == key)
        }
        Table::Space => parts.take::<2>().is_some() && parts.0.is_empty(),
        Table::Policy => parts.u64().is_some() && parts.0.is_empty(),
        _ => return owned(table, &mut parts),
    };
    sound.then(Address::default)
}

/// A key that begins with a namespace.
fn owned(table: Table, parts: &mut Parts<'_>) -> Option<Address> {
    let indexed = matches!(
        table,
        Table::Slot
            | Table::Vector
            | Table::Graph
            | Table::SlotHead
            | Table::GraphHead
            | Table::SlotFree
            | Table::SlotDead
    );
    if indexed {
        let index = parts.index()?;
        body(table, parts)?;
        let address = Address { ns: Some(index.ns), part: Some(index.part), space: Some(index.space) };
        return parts.0.is_empty().then_some(address);
    }
    let mut address = Address { ns: Some(NsId(parts.u32()?)), ..Address::default() };
    let parted = [
        Table::PartitionName,
        Table::ByTime,
        Table::ByFingerprint,
        Table::Pending,
        Table::Counter,
        Table::FamilyKey,
        Table::FamilyBand,
        Table::Series,
        Table::TextHead,
        Table::TextDoc,
        Table::Thread,
        Table::TextPosting,
    ];
    if parted.contains(&table) {
        let part = PartId(parts.u32()?);
        address.part = Some(part).filter(|part| table != Table::Counter || *part != TOTAL);
    }
    body(table, parts)?;
    parts.0.is_empty().then_some(address)
}

/// Takes what lies behind namespace, partition and space.
fn body(table: Table, parts: &mut Parts<'_>) -> Option<()> {
    match table {
        Table::Partition => {
            let name = take_rest(parts)?;
            Partition::agent(name).ok().filter(|agent| agent.agent_name() == Some(name))?;
        }
        Table::Slot | Table::Vector | Table::Graph => {
            parts.u32()?;
        }
        Table::SlotFree | Table::SlotDead => {
            let _ = (parts.u64()?, parts.u32()?);
        }
        Table::Run
        | Table::Vitals
        | Table::Memory
        | Table::Access
        | Table::Tombstone
        | Table::Pending
        | Table::Limbo
        | Table::Event
        | Table::Aggregate
        | Table::Family => {
            parts.id()?;
        }
        Table::EventOf | Table::FamilyKey | Table::FamilyBand | Table::Series => message(table, parts)?,
        Table::Pass => {
            Some(take_rest(parts)?).filter(|name| !name.is_empty())?;
        }
        Table::Holder | Table::HolderKey | Table::HolderTag | Table::HolderRun => holder(table, parts)?,
        Table::Term | Table::TermName | Table::Junction | Table::JunctionBack => junction(table, parts)?,
        Table::Superseded => {
            let _ = (parts.id()?, parts.id()?);
        }
        Table::Journal => {
            parts.u64()?;
        }
        Table::JournalSubject => {
            let _ = (parts.id()?, parts.u32()?, parts.u64()?);
        }
        Table::JournalRun => {
            let _ = (parts.id()?, parts.u64()?);
        }
        Table::TombstoneHash => {
            let _ = (parts.take::<32>()?, parts.id()?);
        }
        Table::ByTime | Table::Due | Table::LimboTime | Table::EventTime => {
            let _ = (parts.u64()?, parts.id()?);
        }
        Table::ByFingerprint => {
            let [tier] = parts.take::<1>()?;
            let _ = (Tier::from_code(tier)?, parts.take::<28>()?, parts.id()?);
        }
        Table::Counter => {
            let [sort] = parts.take::<1>()?;
            let _ = (CounterSort::from_code(sort)?, take_rest(parts)?);
        }
        Table::TextDoc | Table::Thread | Table::TextPosting => words(table, parts)?,
        Table::MetaKey => {
            check_index_key(take_rest(parts)?).ok()?;
        }
        Table::MetaValue => {
            check_index_key(parts.text()?).ok()?;
            let _ = (parts.meta_value()?, parts.id()?);
        }
        Table::PartitionName | Table::SlotHead | Table::GraphHead | Table::TextHead => {}
        Table::Meta | Table::Namespace | Table::Space | Table::Policy => return None,
    }
    Some(())
}

/// The same of documents, threads and postings.
fn words(table: Table, parts: &mut Parts<'_>) -> Option<()> {
    match table {
        Table::TextDoc => {
            parts.u32()?;
        }
        Table::Thread => {
            let _ = (parts.text()?, parts.u64()?, parts.u32()?);
        }
        Table::TextPosting => {
            Some(parts.text()?).filter(|term| !term.is_empty())?;
            parts.u32()?;
        }
        _ => return None,
    }
    Some(())
}

/// The same of events and families in their indexes, and of snapshots in their series.
fn message(table: Table, parts: &mut Parts<'_>) -> Option<()> {
    match table {
        Table::EventOf => {
            let _ = (parts.id()?, parts.u64()?, parts.id()?);
        }
        Table::FamilyKey => {
            let _ = (parts.take::<32>()?, parts.u64()?, parts.id()?);
        }
        Table::FamilyBand => {
            let [author] = parts.take::<1>()?;
            AuthorKind::from_code(author)?;
            let (_, [band, _]) = (parts.take::<8>()?, parts.take::<2>()?);
            Some(band).filter(|band| usize::from(*band) < SIMHASH_BANDS)?;
            let _ = (parts.u64()?, parts.id()?);
        }
        Table::Series => {
            let _ = (parts.text()?, parts.u64()?, parts.id()?);
        }
        _ => return None,
    }
    Some(())
}

/// The same of a holder, and of what it is found by.
fn holder(table: Table, parts: &mut Parts<'_>) -> Option<()> {
    match table {
        Table::Holder => {
            let _ = (parts.id()?, parts.u32()?);
        }
        Table::HolderKey => {
            let _ = (parts.text()?, parts.id()?, parts.u32()?);
        }
        Table::HolderTag => {
            Some(parts.text()?).filter(|tag| !tag.is_empty())?;
            let _ = (parts.id()?, parts.u32()?);
        }
        Table::HolderRun => {
            let _ = (parts.id()?, parts.id()?, parts.u32()?);
        }
        _ => return None,
    }
    Some(())
}

/// The same of a name that memories share, and of a tie to one.
fn junction(table: Table, parts: &mut Parts<'_>) -> Option<()> {
    match table {
        Table::Term => {
            term_sort(parts)?;
            Some(take_rest(parts)?).filter(|name| !name.is_empty())?;
        }
        Table::TermName => {
            let _ = (term_sort(parts)?, parts.u32()?);
        }
        Table::Junction => {
            let _ = (parts.id()?, target(parts)?, take_rest(parts)?);
        }
        Table::JunctionBack => {
            let _ = (target(parts)?, parts.id()?, take_rest(parts)?);
        }
        _ => return None,
    }
    Some(())
}

/// Sort of a term: a category or an entity.
pub(super) fn term_sort(parts: &mut Parts<'_>) -> Option<Junction> {
    let [code] = parts.take::<1>()?;
    Junction::from_code(code).filter(|sort| matches!(sort, Junction::Category | Junction::Entity))
}

/// Sort and other end of a junction.
pub(super) fn target<'k>(parts: &mut Parts<'k>) -> Option<(Junction, &'k [u8])> {
    let [code] = parts.take::<1>()?;
    let sort = Junction::from_code(code)?;
    let (target, rest) = parts.0.split_at_checked(sort.target_bytes())?;
    parts.0 = rest;
    Some((sort, target))
}

/// All that is left, as text without a NUL.
pub(super) fn take_rest<'k>(parts: &mut Parts<'k>) -> Option<&'k str> {
    let text = parts.rest()?;
    parts.0 = &[];
    (!text.contains('\0')).then_some(text)
}
