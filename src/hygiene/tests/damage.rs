//! One fault for each code.

use super::fixture::{
    A, B, C, D, DIM, E, F, H, I, NOBODY, NOW, NS, PART, RUN, SHARED, SPACE, graph_head, past_query, put_links,
};
use super::fixture::{AGGREGATE, FIRST, REPEAT, ROOM};
use crate::error::Result;
use crate::hygiene::report::Code;
use crate::ledger::derived::IndexRow;
use crate::limits::QUERY_LOG_MAX;
use crate::model::{
    Access, Actor, Content, Counted, Delta, Holder, MemoryId, MetaValue, Payload, SupersedeMode,
    Supersession, Tier, Time, Vitals,
};
use crate::record::{ALIVE, GraphNode, NODES_PER_BLOCK, SlotMeta, encode_graph_block, encode_meta};
use crate::store::control::CounterSort;
use crate::store::control::{
    CounterRow, GraphHead, LimboRow, NamespaceRow, RunRow, RunSort, SizeRow, SlotHead, SpaceRow,
};
use crate::store::{AggregateRow, EventRow, FamilyRow, MessageRows, QueryRow};
use crate::store::{
    End, IDENTITY, IndexId, Junction, JunctionRow, NsId, PartId, Rows, SIZE, SpaceId, Table, Truth, keys,
};
use crate::vector::UnitVector;

pub(super) type Fault = Box<dyn Fn(&mut Truth<'_, '_>) -> Result<()>>;

pub(super) fn cases() -> Vec<(Code, Fault)> {
    let mut all = names();
    all.extend(rows());
    all.extend(uses());
    all.extend(holders());
    all.extend(slots());
    all.extend(graph());
    all.extend(super::bits::cases());
    all.extend(dead());
    all.extend(past());
    all.extend(messages());
    all.extend(limbo());
    all.extend(queries());
    all.extend(super::texts::cases());
    all
}

/// Past queries.
fn queries() -> Vec<(Code, Fault)> {
    let other = |code, number, change: fn(&mut QueryRow)| {
        case(code, move |tx| {
            let mut row = past_query()?;
            change(&mut row);
            tx.put_query(NS, (PartId(0), number), &row)
        })
    };
    vec![
        other(Code::Corrupted, 2, |row| row.text = " ".to_owned()),
        other(Code::Corrupted, 2, |row| row.text = "x".repeat(401)),
        other(Code::Corrupted, 2, |row| row.hits.clear()),
        other(Code::Corrupted, 2, |row| row.hits.push(A)),
        other(Code::Corrupted, 2, |row| row.at_ms = i64::MAX),
        other(Code::Corrupted, 2, |row| row.vector[0] = f32::NAN),
        other(Code::RowMissing, 2, |row| row.hits.push(NOBODY)),
        other(Code::ValueShape, 2, |row| row.hits = vec![B]),
        other(Code::ValueShape, 2, |row| row.vector[0] += 1.0),
        other(Code::ValueShape, 2, |row| row.vector.truncate(3)),
        other(Code::ValueShape, 1 + QUERY_LOG_MAX, |_| ()),
        other(Code::SpaceUnknown, 2, |row| row.space = 9),
        case(Code::IndexMissing, |tx| take(tx, Table::QueryOf, &keys::query_of(NS, A, PartId(0), 1))),
        case(Code::IndexExtra, |tx| tx.put(Table::QueryOf, &keys::query_of(NS, D, PartId(0), 1), &[])),
        case(Code::IndexExtra, |tx| tx.put(Table::QueryOf, &keys::query_of(NS, A, PartId(0), 7), &[])),
    ]
}

fn limbo() -> Vec<(Code, Fault)> {
    vec![
        case(Code::Limbo, |tx| take(tx, Table::LimboTime, &keys::by_instant(NS, NOW, H))),
        case(Code::Limbo, |tx| take(tx, Table::Limbo, &keys::memory(NS, H))),
        case(Code::Limbo, |tx| take(tx, Table::Tombstone, &keys::memory(NS, H))),
        case(Code::Limbo, |tx| tx.put(Table::LimboTime, &keys::by_instant(NS, NOW, A), &[])),
        case(Code::Limbo, |tx| {
            let vector = vec![0.5; 3];
            tx.put_limbo(NS, H, NOW, &LimboRow { vector, ..LimboRow::default() })
        }),
        vitals(Code::Limbo, |vitals| vitals.times.removed_at = Some(NOW)),
        case(Code::JournalRun, |tx| tx.put(Table::JournalRun, &keys::journal_run(NS, RUN, 0), &[])),
        case(Code::JournalRun, |tx| tx.put(Table::JournalRun, &keys::journal_run(NS, RUN, 900), &[])),
    ]
}

pub(super) fn case(code: Code, fault: impl Fn(&mut Truth<'_, '_>) -> Result<()> + 'static) -> (Code, Fault) {
    (code, Box::new(fault))
}

/// A fault in the vitals of a memory.
pub(super) fn vitals(code: Code, change: impl Fn(&mut Vitals) + 'static) -> (Code, Fault) {
    vitals_of(code, A, change)
}

fn vitals_of(
    code: Code,
    id: crate::model::MemoryId,
    change: impl Fn(&mut Vitals) + 'static,
) -> (Code, Fault) {
    case(code, move |tx| {
        let mut vitals = tx.vitals(NS, id)?.unwrap();
        change(&mut vitals);
        tx.put_vitals(NS, id, &vitals)
    })
}

/// Puts a row of a secondary index, whatever its memory says.
fn put_index(tx: &mut Truth<'_, '_>, id: MemoryId, row: IndexRow) -> Result<()> {
    let (table, key) = row.place(NS, id);
    tx.put(table, &key, &[])
}

/// Takes a row away, which must be there.
pub(super) fn take(tx: &mut Truth<'_, '_>, table: Table, key: &[u8]) -> Result<()> {
    assert!(tx.delete_there(table, key)?, "no such row in {}", table.name());
    Ok(())
}

fn names() -> Vec<(Code, Fault)> {
    vec![
        case(Code::KeyShape, |tx| tx.put(Table::Pending, b"abc", &[])),
        case(Code::ValueShape, |tx| tx.put(Table::ByTime, &keys::by_time(NS, PartId(0), NOW, A), b"x")),
        case(Code::NamespaceUnknown, |tx| {
            let row = RunRow::new(RunSort::Maintain, Actor::Caller, Time::EPOCH);
            tx.put_run(NsId(9), RUN, &row)
        }),
        case(Code::PartitionUnknown, |tx| put_index(tx, A, IndexRow::Pending(PartId(7)))),
        case(Code::SpaceUnknown, |tx| {
            let index = IndexId { ns: NS, part: PartId(0), space: SpaceId(9) };
            tx.put_slot_head(index, SlotHead::default());
            Ok(())
        }),
        case(Code::Meta, |tx| take(tx, Table::Meta, IDENTITY)),
        case(Code::Size, |tx| take(tx, Table::Meta, SIZE)),
        case(Code::Size, |tx| {
            let size = tx.size()?.unwrap();
            tx.put_size(&SizeRow { live: size.live + 1, ..size })
        }),
        case(Code::Namespace, |tx| {
            let row: NamespaceRow = tx.namespace(super::fixture::NAME)?.unwrap();
            tx.put_namespace("twin", &row)
        }),
        case(Code::Partition, |tx| take(tx, Table::Partition, &keys::partition(NS, "scout"))),
        case(Code::Partition, |tx| take(tx, Table::PartitionName, &keys::ns_part(NS, PART))),
        case(Code::Space, |tx| {
            tx.put_space(SpaceId(5), &SpaceRow { name: "caller".to_owned(), dim: DIM as u32 })
        }),
        case(Code::Meta, |tx| take(tx, Table::Space, &keys::space(SPACE))),
        case(Code::Meta, |tx| take(tx, Table::Policy, &keys::policy(1))),
        case(Code::Term, |tx| take(tx, Table::TermName, &keys::term_name(NS, Junction::Category, 0))),
        case(Code::Term, |tx| take(tx, Table::Term, &keys::term(NS, Junction::Category, "light"))),
        case(Code::TermUnused, |tx| tx.put_term(NS, Junction::Category, "dark", 1)),
    ]
}

/// The value of A in the index of the fixture.
fn hall() -> MetaValue {
    MetaValue::Text(b"hall".to_vec())
}

/// Rows of the tables of memories by their use.
fn uses() -> Vec<(Code, Fault)> {
    vec![
        case(Code::IndexExtra, |tx| put_index(tx, B, IndexRow::Unused(8, NOW))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::InUse(Tier::Working, 3))),
        case(Code::KeyShape, |tx| tx.put(Table::Unused, &keys::unused(NS, 16, NOW, A), &[])),
        case(Code::KeyShape, |tx| tx.put(Table::InUse, &keys::in_use(NS, Tier::Semantic, 1, A), &[])),
        vitals_of(Code::Usage, A, |vitals| vitals.place.usage.uses = 2),
    ]
}

fn rows() -> Vec<(Code, Fault)> {
    vec![
        case(Code::Corrupted, |tx| tx.put(Table::Memory, &keys::memory(NS, A), b"rubbish")),
        case(Code::ContentMissing, |tx| take(tx, Table::Memory, &keys::memory(NS, A))),
        case(Code::RowMissing, |tx| {
            tx.put_access(NS, NOBODY, &Access { retrieval_count: 1, ..Access::default() })
        }),
        case(Code::RowMissing, |tx| take(tx, Table::Vitals, &keys::memory(NS, A))),
        case(Code::RowMissing, |tx| take(tx, Table::Payload, &keys::memory(NS, A))),
        case(Code::RowMissing, |tx| tx.put_payload(NS, NOBODY, Some(&Payload::Bytes(vec![7])))),
        case(Code::RowMissing, |tx| tx.put_payload(NS, D, Some(&Payload::Bytes(vec![7])))),
        case(Code::Corrupted, |tx| tx.put(Table::Payload, &keys::memory(NS, A), b"rubbish")),
        case(Code::RowMissing, |tx| tx.put_content(NS, NOBODY, &Content::default())),
        vitals(Code::ContentBytes, |vitals| vitals.content_bytes += 1),
        vitals(Code::Kind, |vitals| vitals.kind_code = 255),
        vitals(Code::Version, |vitals| vitals.version = 0),
        vitals(Code::Times, |vitals| vitals.times.recorded_at = Time::MAX),
        vitals(Code::Times, |vitals| {
            vitals.times.valid_from = Some(NOW);
            vitals.times.valid_to = Some(NOW);
        }),
        vitals(Code::Counted, |vitals| vitals.place.counted = Counted::Past),
        vitals(Code::Fingerprint, |vitals| vitals.place.fingerprint = Some([1; 16])),
        case(Code::IndexMissing, |tx| take(tx, Table::ByTime, &keys::by_time(NS, PartId(0), NOW, A))),
        case(Code::IndexMissing, |tx| take(tx, Table::Pending, &keys::pending(NS, PartId(0), D))),
        case(Code::IndexMissing, |tx| take(tx, Table::Superseded, &keys::superseded(NS, D, C))),
        vitals(Code::IndexMissing, |vitals| vitals.kind_code = crate::model::Kind::Snapshot.code()),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Series(PartId(0), "profile".to_owned(), NOW))),
        case(Code::IndexExtra, |tx| {
            put_index(tx, NOBODY, IndexRow::Series(PartId(0), "profile".to_owned(), NOW))
        }),
        case(Code::IndexMissing, |tx| take(tx, Table::MetaValue, &keys::meta_row(NS, ROOM, hall(), A))),
        case(Code::IndexMissing, |tx| tx.put_meta_key(NS, "floor.number", None)),
        case(Code::IndexExtra, |tx| put_index(tx, D, IndexRow::Meta(ROOM.into(), hall()))),
        case(Code::IndexExtra, |tx| put_index(tx, NOBODY, IndexRow::Meta(ROOM.into(), hall()))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Meta(ROOM.into(), MetaValue::Many))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Meta("floor".into(), hall()))),
        // H waits in limbo.
        case(Code::IndexExtra, |tx| put_index(tx, H, IndexRow::Meta(ROOM.into(), hall()))),
        case(Code::IndexExtra, |tx| take(tx, Table::MetaKey, &keys::meta_key(NS, ROOM))),
        case(Code::KeyShape, |tx| tx.put_meta_key(NS, "", None)),
        case(Code::KeyShape, |tx| tx.put_meta_key(NS, "a..b", None)),
        case(Code::KeyShape, |tx| put_index(tx, A, IndexRow::Meta("x".repeat(129).into(), hall()))),
        case(Code::KeyShape, |tx| {
            let value = keys::meta_value(NS, ROOM, &hall());
            tx.put(Table::MetaValue, &[value.split_last().unwrap().1, A.as_bytes()].concat(), &[])
        }),
        case(Code::Corrupted, |tx| tx.put(Table::MetaKey, &keys::meta_key(NS, ROOM), b"x")),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Pending(PartId(0)))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Due(NOW))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::Ended(false, NOW))),
        case(Code::IndexMissing, |tx| take(tx, Table::Ended, &keys::ended(NS, 0, NOW, I))),
        case(Code::IndexExtra, |tx| put_index(tx, NOBODY, IndexRow::Ended(true, NOW))),
        case(Code::IndexMissing, |tx| take(tx, Table::ShortTerm, &keys::memory(NS, B))),
        case(Code::IndexExtra, |tx| put_index(tx, A, IndexRow::ShortTerm)),
        case(Code::KeyShape, |tx| tx.put(Table::Ended, &keys::ended(NS, 2, NOW, A), &[])),
        case(Code::IndexExtra, |tx| put_index(tx, D, IndexRow::Superseded(A))),
        case(Code::IndexExtra, |tx| put_index(tx, NOBODY, IndexRow::ByTime(PART, NOW))),
        case(Code::IndexExtra, |tx| {
            put_index(tx, A, IndexRow::ByFingerprint(PART, Default::default(), [3; 16], [3; 12]))
        }),
        vitals_of(Code::SupersederMissing, C, |vitals| {
            vitals.times.superseded =
                Some(Supersession { at: NOW, by: NOBODY, mode: SupersedeMode::Correction, via: None });
        }),
        vitals_of(Code::SupersessionCycle, D, |vitals| {
            vitals.times.superseded =
                Some(Supersession { at: NOW, by: C, mode: SupersedeMode::Correction, via: None });
        }),
    ]
}

fn join(sort: Junction, target: &[u8], role: &str) -> JunctionRow {
    JunctionRow { sort, target: target.to_vec(), role: role.to_owned() }
}

fn holders() -> Vec<(Code, Fault)> {
    let light = 0_u32.to_be_bytes();
    vec![
        case(Code::HolderMissing, |tx| {
            let holder = tx.holder(NS, F, 0)?.unwrap();
            tx.delete_holder(NS, F, &holder)
        }),
        vitals(Code::HolderCount, |vitals| vitals.place.holders = 2),
        vitals(Code::HolderNumber, |vitals| vitals.place.next_holder = 0),
        case(Code::HolderIndexMissing, |tx| take(tx, Table::HolderKey, &keys::holder_key(NS, "lamp", A, 0))),
        case(Code::HolderIndexMissing, |tx| take(tx, Table::HolderTag, &keys::holder_key(NS, "home", A, 0))),
        case(Code::HolderIndexMissing, |tx| take(tx, Table::HolderRun, &keys::holder_run(NS, RUN, A, 0))),
        case(Code::HolderIndexExtra, |tx| tx.put(Table::HolderTag, &keys::holder_key(NS, "zz", A, 0), &[])),
        case(Code::HolderIndexExtra, |tx| tx.put(Table::HolderKey, &keys::holder_key(NS, "zz", A, 0), &[])),
        case(Code::HolderIndexExtra, |tx| {
            let run = crate::model::RunId::from_bytes([0xbb; 16]);
            tx.put(Table::HolderRun, &keys::holder_run(NS, run, A, 0), &[])
        }),
        case(Code::Tags, |tx| {
            let content = Content { tags: Vec::new(), ..tx.content(NS, A)?.unwrap() };
            tx.put_content(NS, A, &content)
        }),
        vitals(Code::Reinforcement, |vitals| vitals.reinforcement_count = 0),
        case(Code::TextWriter, |tx| {
            let holder = tx.holder(NS, F, 0)?.unwrap();
            tx.put_holder(NS, F, &Holder { follows: true, ..holder })
        }),
        case(Code::Times, |tx| {
            let holder = tx.holder(NS, A, 0)?.unwrap();
            let since = Time::from_millis(tx.clock()?.at_ms + 1);
            tx.put_holder(NS, A, &Holder { since, ..holder })
        }),
        case(Code::Times, |tx| {
            let holder = tx.holder(NS, A, 0)?.unwrap();
            tx.put_holder(NS, A, &Holder { since: Time::EPOCH, ..holder })
        }),
        case(Code::KeyShared, |tx| {
            let key = Some("lamp".to_owned());
            tx.put_holder(NS, F, &Holder { number: 1, key, count: 1, share: 1, ..Holder::default() })
        }),
        case(Code::JunctionMissing, move |tx| {
            tx.delete_junction(NS, A, &join(Junction::Category, &light, ""))
        }),
        case(Code::JunctionExtra, |tx| tx.put_junction(NS, F, &join(Junction::Link, A.as_bytes(), "near"))),
        case(Code::JunctionOneWay, move |tx| {
            take(tx, Table::JunctionBack, &keys::junction_back(NS, End(Junction::Category, &light), A, ""))
        }),
        case(Code::JunctionOneWay, |tx| {
            tx.put(
                Table::JunctionBack,
                &keys::junction_back(NS, End(Junction::Link, D.as_bytes()), A, "x"),
                &[],
            )
        }),
        case(Code::LinkTarget, |tx| tx.put_junction(NS, A, &join(Junction::Link, E.as_bytes(), "near"))),
        case(Code::SourceTarget, |tx| tx.put_junction(NS, A, &join(Junction::Source, NOBODY.as_bytes(), ""))),
    ]
}

/// Changes what stands in slot 0, which is A's.
fn slot(code: Code, change: impl Fn(&mut SlotMeta, &mut [i8]) + 'static) -> (Code, Fault) {
    case(code, move |tx| {
        let block = tx.slot_block_mut(SHARED, 0, DIM)?;
        let (mut meta, mut bytes) = (*block.meta(0).unwrap(), block.code(0).unwrap().to_vec());
        change(&mut meta, &mut bytes);
        block.put(0, meta, &bytes);
        Ok(())
    })
}

fn slots() -> Vec<(Code, Fault)> {
    // Slots of the shared index: A 0, C 1, E 2, which is free since, and 3, which is dead.
    vec![
        vitals(Code::SlotMissing, |vitals| vitals.place.slot = Some(50)),
        vitals(Code::SlotTimes, |vitals| vitals.times.valid_from = Some(NOW)),
        slot(Code::SlotTimes, |meta, _| meta.until = 5),
        vitals(Code::SlotOrphan, |vitals| vitals.place.slot = None),
        slot(Code::SlotOrphan, |meta, _| meta.id = NOBODY),
        case(Code::SlotFree, |tx| {
            let (died, slot) = tx.free_slot(SHARED)?.unwrap();
            tx.delete_free_slot(SHARED, died, slot)
        }),
        case(Code::SlotFree, |tx| tx.put_free_slot(SHARED, 1, 0)),
        case(Code::SlotFree, |tx| tx.put_free_slot(SHARED, 1, 2)),
        case(Code::SlotHead, |tx| {
            tx.put_slot_head(SHARED, SlotHead { len: 4, used: 3 });
            Ok(())
        }),
        case(Code::SlotHead, |tx| {
            tx.put_slot_head(SHARED, SlotHead { len: 5, used: 2 });
            Ok(())
        }),
        case(Code::SlotHead, |tx| {
            tx.put_slot_head(SHARED, SlotHead { len: 3, used: 2 });
            Ok(())
        }),
        case(Code::SlotHead, |tx| take(tx, Table::SlotHead, &keys::index(SHARED))),
        slot(Code::SlotValue, |_, code| code[3] ^= 1),
        slot(Code::SlotValue, |meta, _| meta.residual *= 1.5),
        slot(Code::SlotBorn, |meta, _| meta.born = 1_000),
        slot(Code::SlotBorn, |meta, _| meta.died = 1),
        case(Code::VectorMissing, |tx| {
            tx.vector_block_mut(SHARED, 0, DIM)?.erase(0);
            Ok(())
        }),
        case(Code::VectorExtra, |tx| {
            let vector = UnitVector::new("vector", &super::fixture::values(8))?;
            tx.vector_block_mut(SHARED, 0, DIM)?.put(2, vector.as_slice());
            Ok(())
        }),
        case(Code::VectorLength, |tx| {
            let block = tx.vector_block_mut(SHARED, 0, DIM)?;
            let long: Vec<f32> = block.get(0).unwrap().iter().map(|value| value * 1.002).collect();
            block.put(0, &long);
            Ok(())
        }),
    ]
}

/// The graph of the fixture with other links, by slot; slot 0 has the level 1.
fn links(code: Code, nodes: &'static [(usize, &'static [u32])]) -> (Code, Fault) {
    case(code, |tx| put_links(tx, nodes, &[vec![]]))
}

/// A fault in the head of the graph.
fn head(change: impl Fn(&mut GraphHead) + 'static) -> (Code, Fault) {
    case(Code::GraphHead, move |tx| {
        let mut head = graph_head();
        change(&mut head);
        tx.put_graph_head(SHARED, &head)
    })
}

/// Slot 1 becomes a twin of another slot, whose code it does not have: of slot 0, of itself, of one that is no node, of none.
fn twin(host: u32) -> (Code, Fault) {
    case(Code::GraphLink, move |tx| {
        let upper = [vec![]];
        let mut block = [None; NODES_PER_BLOCK];
        block[0] = Some(GraphNode::linked(&[3], &upper));
        block[1] = Some(GraphNode { bottom: &[], upper: &[], host: Some(host) });
        block[3] = Some(GraphNode::linked(&[0], &[]));
        tx.put_graph_block(SHARED, 0, &block)
    })
}

fn graph() -> Vec<(Code, Fault)> {
    vec![
        case(Code::Corrupted, |tx| tx.put(Table::Graph, &keys::block(SHARED, 0), b"rubbish")),
        case(Code::Corrupted, |tx| tx.put(Table::GraphHead, &keys::index(SHARED), b"rubbish")),
        case(Code::KeyShape, |tx| tx.put(Table::Graph, &keys::index(SHARED), &[])),
        links(Code::GraphLink, &[(0, &[3, 3]), (1, &[3]), (3, &[0, 1])]),
        links(Code::GraphLink, &[(0, &[3, 0]), (1, &[3]), (3, &[0, 1])]),
        links(Code::GraphLink, &[(0, &[3, 2]), (1, &[3]), (3, &[0, 1])]),
        links(Code::GraphLink, &[(0, &[3, 77]), (1, &[3]), (3, &[0, 1])]),
        case(Code::GraphLink, |tx| put_links(tx, &[(0, &[3]), (1, &[3]), (3, &[0, 1])], &[vec![3]])),
        twin(0),
        twin(1),
        twin(2),
        twin(77),
        links(Code::GraphReach, &[(0, &[3]), (1, &[3]), (3, &[0])]),
        case(Code::GraphLevel, |tx| put_links(tx, &[(0, &[3]), (1, &[3]), (3, &[0, 1])], &[])),
        case(Code::GraphLevel, |tx| put_links(tx, &[(0, &[3]), (1, &[3]), (3, &[0, 1])], &[vec![], vec![]])),
        links(Code::GraphNode, &[(0, &[3]), (1, &[3]), (2, &[0]), (3, &[0, 1])]),
        links(Code::GraphNode, &[(0, &[3]), (1, &[3]), (3, &[0, 1]), (9, &[0])]),
        links(Code::GraphNode, &[(0, &[1]), (1, &[0])]),
        case(Code::GraphNode, |tx| {
            let (key, mut bytes) = (keys::block(SHARED, 1), Vec::new());
            encode_graph_block(&[], &key, &mut bytes);
            tx.put(Table::Graph, &key, &bytes)
        }),
        case(Code::GraphHead, |tx| tx.delete_graph_head(SHARED)),
        case(Code::GraphHead, |tx| {
            assert_eq!(tx.delete_graph_slice(SHARED, 9)?, 1);
            Ok(())
        }),
        head(|head| head.linked = 2),
        head(|head| head.dead = 0),
        head(|head| head.entry = None),
        head(|head| head.entry = Some(2)),
        head(|head| head.entry = Some(1)),
        head(|head| head.recall[0].recall = 10_001),
    ]
}

/// Commit that ended slot 3.
fn died(tx: &Truth<'_, '_>) -> Result<u64> {
    Ok(tx.dead_slots(SHARED, 9)?[0].0)
}

/// Changes what stands in slot 3, which is dead.
fn grave(code: Code, change: impl Fn(&mut SlotMeta) + 'static) -> (Code, Fault) {
    case(code, move |tx| {
        let block = tx.slot_block_mut(SHARED, 0, DIM)?;
        let (mut meta, bytes) = (*block.meta(3).unwrap(), block.code(3).unwrap().to_vec());
        change(&mut meta);
        block.put(3, meta, &bytes);
        Ok(())
    })
}

fn dead() -> Vec<(Code, Fault)> {
    vec![
        grave(Code::SlotDead, |meta| meta.died -= 1),
        grave(Code::SlotBorn, |meta| meta.died = ALIVE),
        grave(Code::SlotBorn, |meta| meta.born = meta.died + 1),
        grave(Code::SlotTimes, |meta| meta.until = 2),
        grave(Code::SlotOrphan, |meta| meta.id = NOBODY),
        // Of an index without a graph nothing walks through a dead slot.
        case(Code::SlotValue, |tx| {
            tx.delete_graph_slice(SHARED, 9)?;
            tx.delete_graph_head(SHARED)
        }),
        case(Code::SlotValue, |tx| {
            tx.slot_block_mut(SHARED, 0, DIM)?.put(2, SlotMeta { born: 1, ..SlotMeta::VACANT }, &[0; DIM]);
            Ok(())
        }),
        case(Code::SlotDead, |tx| {
            let died = died(tx)?;
            tx.delete_dead_slot(SHARED, died, 3).map(|gone| assert!(gone))
        }),
        case(Code::SlotDead, |tx| tx.put_dead_slot(SHARED, 1, 0)),
        case(Code::SlotDead, |tx| tx.put_dead_slot(SHARED, 1, 2)),
        case(Code::SlotDead, |tx| tx.put_dead_slot(SHARED, 1, 3)),
        case(Code::ValueShape, |tx| {
            let key = keys::slot_ended(SHARED, died(tx)?, 3);
            tx.put(Table::SlotDead, &key, b"x")
        }),
        case(Code::SlotFree, |tx| tx.put_free_slot(SHARED, 1, 3)),
        case(Code::VectorExtra, |tx| {
            let vector = UnitVector::new("vector", &super::fixture::values(9))?;
            tx.vector_block_mut(SHARED, 0, DIM)?.put(3, vector.as_slice());
            Ok(())
        }),
    ]
}

/// Number of the first journal row of a memory.
fn first_of(tx: &Truth<'_, '_>, id: crate::model::MemoryId) -> Result<crate::model::JournalRow> {
    Ok(tx.journal_of(NS, id)?.remove(0))
}

fn past() -> Vec<(Code, Fault)> {
    vec![
        case(Code::TombstoneRow, |tx| {
            let tombstone = tx.tombstone(NS, E)?.unwrap();
            tx.put_tombstone(NS, &crate::model::Tombstone { id: A, ..tombstone })
        }),
        case(Code::TombstoneHash, |tx| {
            let hash = tx.tombstone(NS, E)?.unwrap().key_hashes[0];
            take(tx, Table::TombstoneHash, &keys::tombstone_hash(NS, &hash, E))
        }),
        case(Code::TombstoneHash, |tx| {
            tx.put(Table::TombstoneHash, &keys::tombstone_hash(NS, &[1; 32], E), &[])
        }),
        case(Code::JournalSeq, |tx| {
            let row = first_of(tx, A)?;
            tx.put_journal(NS, &crate::model::JournalRow { seq: 1_000, ..row })
        }),
        case(Code::JournalSubject, |tx| {
            let row = first_of(tx, A)?;
            take(tx, Table::JournalSubject, &keys::journal_subject(NS, A, row.holder, row.seq))
        }),
        case(Code::JournalSubject, |tx| {
            let seq = first_of(tx, A)?.seq;
            tx.put(Table::JournalSubject, &keys::journal_subject(NS, F, None, seq), &[])
        }),
        case(Code::JournalPlain, |tx| {
            let mut row = first_of(tx, E)?;
            row.deltas =
                vec![Delta { field: "channel".to_owned(), before: "phone".into(), after: false.into() }];
            tx.put_journal(NS, &row)
        }),
        case(Code::Counter, |tx| {
            let value = CounterRow { rows: 99, bytes: 1 };
            tx.put_counter(NS, PartId(0), CounterSort::Live as u8, "", value)
        }),
        case(Code::Counter, |tx| {
            let nothing = CounterRow::default();
            tx.put_counter(NS, PartId(0), CounterSort::Duplicates as u8, "", nothing)
        }),
        case(Code::Counter, |tx| {
            let value = CounterRow { rows: 2, bytes: 0 };
            tx.put_counter(NS, PART, CounterSort::Tombstones as u8, "", value)
        }),
        case(Code::CounterZero, |tx| {
            let key = keys::counter(NS, PART, CounterSort::Ahead as u8, "");
            let mut bytes = Vec::new();
            encode_meta(Table::Counter.tag(), &key, &CounterRow::default(), &mut bytes);
            tx.put(Table::Counter, &key, &bytes)
        }),
    ]
}

fn messages() -> Vec<(Code, Fault)> {
    let (first, repeat) = (MemoryId::from_bytes(FIRST), MemoryId::from_bytes(REPEAT));
    let (early, late) = (Time::from_millis(5), Time::from_millis(2_000));
    let event = |change: fn(&mut EventRow)| {
        move |tx: &mut Truth<'_, '_>| {
            let mut row = tx.event(NS, &REPEAT)?.unwrap();
            change(&mut row);
            tx.put_event(NS, &REPEAT, &row)
        }
    };
    let numbers = |change: fn(&mut AggregateRow)| {
        move |tx: &mut Truth<'_, '_>| {
            let mut row = tx.aggregate(NS, &AGGREGATE)?.unwrap();
            change(&mut row);
            tx.put_aggregate(NS, &AGGREGATE, &row)
        }
    };
    let family = |change: fn(&mut FamilyRow)| {
        move |tx: &mut Truth<'_, '_>| {
            let mut row = tx.family(NS, &FIRST)?.unwrap();
            change(&mut row);
            tx.put_family(NS, &FIRST, &row)
        }
    };
    let near = |tx: &Truth<'_, '_>| -> Result<_> {
        let places = tx.family(NS, &FIRST)?.unwrap().keys(NS, &FIRST);
        Ok(places.into_iter().rfind(|(table, _)| *table == Table::FamilyBand).unwrap())
    };
    vec![
        case(Code::EventLink, event(|row| row.memory = Some(*NOBODY.as_bytes()))),
        case(Code::EventLink, event(|row| row.run = Some([9; 16]))),
        case(Code::EventLink, event(|row| row.aggregate = Some([9; 16]))),
        case(Code::EventLink, numbers(|row| row.examples = vec![[9; 16]])),
        case(Code::EventLink, family(|row| row.first_memory = *NOBODY.as_bytes())),
        case(Code::ValueShape, event(|row| row.author = 7)),
        case(Code::PartitionUnknown, event(|row| row.part = 9)),
        case(Code::AggregateCount, numbers(|row| row.dup_count = 3)),
        case(Code::AggregateCount, event(|row| row.aggregate = None)),
        case(Code::FamilyCount, family(|row| row.count = 3)),
        case(Code::FamilyCount, family(|row| row.first_ts = 3_000)),
        case(Code::IndexMissing, move |tx| {
            take(tx, Table::EventTime, &keys::event_time(NS, 0, late, repeat))
        }),
        case(Code::IndexMissing, move |tx| {
            take(tx, Table::EventOf, &keys::event_of(NS, D.as_bytes(), late, repeat))
        }),
        case(Code::IndexMissing, move |tx| {
            let (table, key) = near(tx)?;
            take(tx, table, &key)
        }),
        case(Code::IndexExtra, move |tx| {
            tx.put(Table::EventTime, &keys::event_time(NS, 1, late, repeat), &[])
        }),
        case(Code::IndexExtra, move |tx| {
            tx.put(Table::EventOf, &keys::event_of(NS, A.as_bytes(), late, repeat), &[])
        }),
        case(Code::IndexExtra, move |tx| {
            tx.put(Table::FamilyKey, &keys::family_key(NS, PartId(0), &[73; 32], &[0; 8], early, first), &[])
        }),
        case(Code::Counter, |tx| {
            let value = CounterRow { rows: 9, bytes: 0 };
            tx.put_counter(NS, PartId(0), CounterSort::Events as u8, "", value)
        }),
    ]
}
