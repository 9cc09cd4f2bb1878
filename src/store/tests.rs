//! Rows of graphs: written and read, copied under new numbers; a table that is missing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::control::{GraphHead, RecallPoint, SlotHead, SpaceRow};
use super::disk::Folder;
use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Access, MemoryId, Time};
use crate::record::{
    ALIVE, GraphBlockRef, GraphNode, NODES_PER_BLOCK, SlotMeta, slots_per_block, vectors_per_block,
};

const NS: NsId = NsId(1);
const INDEX: IndexId = IndexId { ns: NS, part: PartId(0), space: SpaceId(1) };
/// The next index in key order: what belongs to it must never be met under [`INDEX`].
const OTHER: IndexId = IndexId { ns: NS, part: PartId(0), space: SpaceId(2) };
const OTHER_NS: IndexId = IndexId { ns: NsId(2), part: PartId(0), space: SpaceId(1) };
const NEW_TABLES: [Table; 3] = [Table::Graph, Table::GraphHead, Table::SlotDead];

pub(super) fn options(path: PathBuf) -> Options {
    Options {
        path,
        cache_bytes: 1 << 20,
        shared: false,
        read_only: false,
        create: true,
        paranoid: false,
        secret: [7; 32],
        opener: [1; 8],
    }
}

pub(super) fn open(options: Options) -> Result<Store> {
    Store::open(Arc::new(Folder), options)
}

fn fresh() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(options(folder.path().join("store.db"))).unwrap();
    (folder, store)
}

fn write(store: &Store, unit: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) {
    store.write(Durability::Batch, unit).unwrap();
}

/// Rows of a table.
fn count(rows: &impl Read, table: Table) -> usize {
    let mut count = 0;
    rows.walk(table, &Walk::all(), &mut |_, _| {
        count += 1;
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    count
}

/// Lists of each node of an index: level 0, then the levels from 1 on.
fn links(rows: &(impl Rows + ?Sized), index: IndexId) -> BTreeMap<u32, Vec<Vec<u32>>> {
    let mut all = BTreeMap::new();
    rows.graph_blocks(&Walk::prefix(&keys::index(index)), &mut |found, block, at, bytes| {
        assert_eq!(found, index);
        for (slot, node) in (block * 16..).zip(GraphBlockRef::open(at, bytes)?.nodes()) {
            if let Some(node) = node {
                let upper = (1..=node.level()).map(|level| node.upper(level).collect());
                all.insert(slot, [node.bottom().collect()].into_iter().chain(upper).collect());
            }
        }
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    all
}

/// Writes lists as [`links`] reads them, in place of all blocks that they lie in.
fn put_links(tx: &mut WriteTx<'_>, index: IndexId, nodes: &BTreeMap<u32, Vec<Vec<u32>>>) -> Result<()> {
    let mut blocks: BTreeMap<u32, [Option<GraphNode<'_>>; NODES_PER_BLOCK]> = BTreeMap::new();
    for (slot, lists) in nodes {
        let node = GraphNode::linked(&lists[0], &lists[1..]);
        blocks.entry(slot / 16).or_default()[(slot % 16) as usize] = Some(node);
    }
    blocks.iter().try_for_each(|(block, nodes)| tx.put_graph_block(index, *block, nodes))
}

fn head() -> GraphHead {
    let recall = vec![RecallPoint { ef: 32, recall: 9_850 }, RecallPoint { ef: 64, recall: 9_960 }];
    GraphHead { version: 41, entry: Some(3), linked: 5, dead: 1, recall, calibrated_at: 4 }
}

#[test]
fn links_are_read_as_they_were_written_and_only_those_of_their_index() {
    let (_folder, store) = fresh();
    let nodes = BTreeMap::from([
        (0, vec![vec![3, 17]]),
        (3, vec![vec![], vec![17], vec![]]),
        (17, vec![vec![0]]),
        (40, vec![vec![0, 3, 17]]),
    ]);
    let other = BTreeMap::from([(1, vec![vec![2]]), (2, vec![vec![1]])]);
    write(&store, |tx| {
        put_links(tx, INDEX, &nodes)?;
        put_links(tx, OTHER, &other)?;
        tx.put_graph_head(INDEX, &head())?;
        tx.put_graph_head(OTHER_NS, &GraphHead::default())?;
        assert!(tx.is_linked(INDEX, 17)?, "a transaction sees what it wrote");
        Ok(())
    });
    let rows = store.snapshot().unwrap();
    assert_eq!((links(&rows, INDEX), links(&rows, OTHER)), (nodes, other));
    let linked: Vec<u32> = (0..64).filter(|slot| rows.is_linked(INDEX, *slot).unwrap()).collect();
    assert_eq!(linked, [0, 3, 17, 40]);
    assert_eq!(rows.graph_head(INDEX).unwrap(), Some(head()));
    assert_eq!(rows.graph_head(OTHER).unwrap(), None);
    assert_eq!(rows.graph_head(INDEX).unwrap(), Some(head()));

    write(&store, |tx| {
        tx.put_graph_block(INDEX, 1, &[None; NODES_PER_BLOCK])?;
        tx.put_graph_block(INDEX, 7, &[])?;
        tx.delete_graph_head(INDEX)?;
        assert!(tx.graph_head(INDEX)?.is_none());
        Ok(())
    });
    let rows = store.snapshot().unwrap();
    assert_eq!(count(&rows, Table::Graph), 3, "a block without a node is no row");
    assert!(!rows.is_linked(INDEX, 17).unwrap() && rows.is_linked(INDEX, 3).unwrap());
    assert_eq!(rows.graph_head(INDEX).unwrap(), None);

    write(&store, |tx| {
        assert_eq!([tx.delete_graph_slice(INDEX, 1)?, tx.delete_graph_slice(INDEX, 9)?], [1, 1]);
        assert_eq!(tx.delete_graph_slice(INDEX, 9)?, 0);
        Ok(())
    });
    assert_eq!(links(&store.snapshot().unwrap(), OTHER).len(), 2);
}

#[test]
fn dead_slots_come_by_the_commit_that_ended_them() {
    let (_folder, store) = fresh();
    assert!(!store.snapshot().unwrap().has_dead_slots().unwrap());
    write(&store, |tx| {
        for (index, died, slot) in [(INDEX, 300, 1), (INDEX, 2, 9), (INDEX, 300, 0), (OTHER, 1, 5)] {
            tx.put_dead_slot(index, died, slot)?;
        }
        tx.put_free_slot(INDEX, 1, 77)
    });
    let rows = store.snapshot().unwrap();
    assert!(rows.has_dead_slots().unwrap());
    assert_eq!(rows.dead_slots(INDEX, 9).unwrap(), [(2, 9), (300, 0), (300, 1)]);
    assert_eq!(rows.dead_slots(INDEX, 2).unwrap(), [(2, 9), (300, 0)]);
    assert_eq!(rows.dead_slots(INDEX, 0).unwrap(), []);
    assert_eq!(rows.free_slot(INDEX).unwrap(), Some((1, 77)), "the free slots are others");
    write(&store, |tx| {
        assert!(tx.delete_dead_slot(INDEX, 2, 9)? && !tx.delete_dead_slot(INDEX, 2, 9)?);
        Ok(())
    });
    assert_eq!(store.snapshot().unwrap().dead_slots(INDEX, 1).unwrap(), [(300, 0)]);
}

#[test]
fn a_damaged_block_is_corrupted_and_not_without_nodes() {
    let (_folder, store) = fresh();
    write(&store, |tx| tx.put(Table::Graph, &keys::block(INDEX, 2), b"rubbish"));
    let refused = store.snapshot().unwrap().is_linked(INDEX, 33).unwrap_err();
    assert!(matches!(refused, Error::Corrupted { table: "graph", .. }), "{refused:?}");
}

#[test]
fn a_dropped_namespace_takes_its_graphs_along() {
    let (_folder, store) = fresh();
    write(&store, |tx| {
        for index in [INDEX, OTHER, OTHER_NS] {
            put_links(tx, index, &BTreeMap::from([(0, vec![vec![1]]), (20, vec![vec![0]])]))?;
            tx.put_graph_head(index, &head())?;
            tx.put_dead_slot(index, 4, 20)?;
        }
        Ok(())
    });
    write(&store, |tx| {
        // 8 rows, and in slices.
        assert_eq!([tx.forged().delete_rows_of(NS, 3)?, tx.forged().delete_rows_of(NS, 100)?], [3, 5]);
        assert_eq!(tx.forged().delete_rows_of(NS, 100)?, 0);
        Ok(())
    });
    let rows = store.snapshot().unwrap();
    assert_eq!(NEW_TABLES.map(|table| count(&rows, table)), [2, 1, 1], "those of the other namespace");
}

/// Takes a table out of a file.
fn delete_table(path: &Path, table: Table) {
    let database = redb::Database::open(path).unwrap();
    let write = database.begin_write().unwrap();
    let definition = redb::TableDefinition::<&[u8], &[u8]>::new(table.name());
    assert!(write.delete_table(definition).unwrap());
    write.commit().unwrap();
}

#[test]
fn a_missing_table_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.db");
    open(options(path.clone())).unwrap().close().unwrap();
    delete_table(&path, Table::Graph);
    let store = open(Options { read_only: true, ..options(path) }).unwrap();
    let rows = store.snapshot().unwrap();
    let looked = rows.walk(Table::Graph, &Walk::all(), &mut |_, _| Ok(ControlFlow::Continue(())));
    assert_eq!(looked.unwrap_err().kind(), ErrorKind::Corrupted);
}

/// What stands in a slot of the tests.
#[derive(Clone, Copy, PartialEq)]
enum Filled {
    Live,
    Dead,
    Free,
}

const DIM: usize = 8;

fn id(slot: u32) -> MemoryId {
    MemoryId::from_bytes((u128::from(slot) + 1).to_be_bytes())
}

/// Fills the slots of [`INDEX`]; each has a code, a vector and a commit of death that say its number.
fn fill(tx: &mut WriteTx<'_>, slots: &[Filled], dim: usize) -> Result<()> {
    tx.put_space(INDEX.space, &SpaceRow { name: SpaceRow::CALLER.to_owned(), dim: dim as u32 })?;
    for (slot, filled) in (0_u32..).zip(slots) {
        let per = slots_per_block(dim) as u32;
        let block = tx.slot_block_mut(INDEX, slot / per, dim)?;
        let code = vec![slot as i8; dim];
        let meta = SlotMeta { id: id(slot), born: 1, died: ALIVE, scale: 1.0, ..SlotMeta::VACANT };
        let at = (slot % per) as usize;
        block.put(at, meta, &code);
        match filled {
            Filled::Live => {
                let per = vectors_per_block(dim) as u32;
                let block = tx.vector_block_mut(INDEX, slot / per, dim)?;
                block.put((slot % per) as usize, &vec![slot as f32 + 1.0; dim]);
            }
            Filled::Dead => {
                block.bury(at, 1_000 + u64::from(slot));
                tx.put_dead_slot(INDEX, 1_000 + u64::from(slot), slot)?;
            }
            Filled::Free => {
                block.erase(at);
                tx.put_free_slot(INDEX, 1, slot)?;
            }
        }
    }
    let used = slots.iter().filter(|slot| **slot == Filled::Live).count() as u32;
    tx.put_slot_head(INDEX, SlotHead { len: slots.len() as u32, used });
    Ok(())
}

/// Old number of each slot of a copy, as its meta says; none for one that holds nothing.
fn old_numbers(rows: &Snapshot, dim: usize) -> Vec<Option<u32>> {
    let per = slots_per_block(dim) as u32;
    let len = rows.slot_head(INDEX).unwrap().len;
    let mut vector = Vec::new();
    let old = |slot: u32| {
        let block = rows.slot_block(INDEX, slot / per, dim).unwrap()?;
        let (at, mut number) = ((slot % per) as usize, None);
        let meta = block.meta(at)?;
        if meta.is_dead() {
            number = Some((meta.died - 1_000) as u32);
        } else if !meta.is_vacant() {
            let [.., a, b, c, d] = *meta.id.as_bytes();
            number = Some(u32::from_be_bytes([a, b, c, d]) - 1);
        }
        let old = number?;
        assert_eq!(block.code(at), Some(&*vec![old as i8; dim]), "the code of another slot");
        let present = rows.vector(INDEX, dim, slot, &mut vector).unwrap();
        assert_eq!(present, !meta.is_dead());
        assert!(!present || vector == vec![old as f32 + 1.0; dim], "the vector of another slot");
        Some(old)
    };
    (0..len).map(old).collect()
}

/// 150 slots in two blocks of codes, two of seven live, one dead, the rest free; a graph over all that hold
/// something, with levels up to 2.
fn churned() -> (Vec<Filled>, BTreeMap<u32, Vec<Vec<u32>>>) {
    let slots: Vec<_> = (0..150_u32)
        .map(|slot| match slot % 7 {
            0 | 3 => Filled::Live,
            5 if slot != 75 => Filled::Dead,
            _ => Filled::Free,
        })
        .collect();
    let held: Vec<u32> = (0..150).filter(|slot| slots[*slot as usize] != Filled::Free).collect();
    let nodes = held.iter().enumerate().map(|(n, slot)| {
        let bottom = (1..=n % 33).map(|step| held[(n + step * 2 + 1) % held.len()]).collect();
        let upper = (0..n % 3).map(|_| vec![held[(n * 5 + 1) % held.len()]]);
        (*slot, [bottom].into_iter().chain(upper).collect())
    });
    (slots.clone(), nodes.collect())
}

/// A store of [`churned`] after `damage`, compacted.
fn compacted(damage: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) -> (tempfile::TempDir, Store) {
    let (folder, store) = fresh();
    let (slots, nodes) = churned();
    write(&store, |tx| {
        fill(tx, &slots, DIM)?;
        put_links(tx, INDEX, &nodes)?;
        let linked = nodes.len() as u32;
        tx.put_graph_head(INDEX, &GraphHead { entry: Some(5), linked, dead: 20, ..head() })
    });
    write(&store, damage);
    store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    (folder, store)
}

#[test]
fn a_copy_has_the_same_graph_under_new_numbers() {
    let (_folder, store) = compacted(|_| Ok(()));
    let rows = store.snapshot().unwrap();
    let (slots, nodes) = churned();
    let old = old_numbers(&rows, DIM);
    let kept: Vec<_> = (0..150).filter(|slot| slots[*slot as usize] != Filled::Free).map(Some).collect();
    assert_eq!(old, kept, "live and dead slots, in order, without holes");
    let of = |slot: u32| old[slot as usize].unwrap();
    let copied: BTreeMap<u32, Vec<Vec<u32>>> = links(&rows, INDEX)
        .into_iter()
        .map(|(slot, lists)| (of(slot), lists.iter().map(|l| l.iter().map(|s| of(*s)).collect()).collect()))
        .collect();
    assert_eq!(copied, nodes);
    assert_eq!(count(&rows, Table::Graph), nodes.len().div_ceil(16), "blocks are packed");
    let dead: Vec<(u64, u32)> = rows.dead_slots(INDEX, 999).unwrap();
    let expected = (0..150_u32).filter(|slot| slots[*slot as usize] == Filled::Dead);
    let expected: Vec<_> = expected.map(|slot| (1_000 + u64::from(slot), slot)).collect();
    assert_eq!(dead.iter().map(|(died, slot)| (*died, of(*slot))).collect::<Vec<_>>(), expected);
    assert_eq!(count(&rows, Table::SlotFree), 0);
    let used = slots.iter().filter(|slot| **slot == Filled::Live).count() as u32;
    assert_eq!(rows.slot_head(INDEX).unwrap(), SlotHead { len: kept.len() as u32, used });
    let found = rows.graph_head(INDEX).unwrap().unwrap();
    let entry = found.entry.map(of);
    let (linked, dead) = (nodes.len() as u32, 20);
    assert_eq!(
        GraphHead { entry, ..found },
        GraphHead { version: 42, entry: Some(5), linked, dead, ..head() }
    );
}

/// That a copy after `damage` holds the live slots and nothing of the graph.
fn assert_left_out(what: &str, damage: impl FnOnce(&mut WriteTx<'_>) -> Result<()>) {
    let (_folder, store) = compacted(damage);
    let rows = store.snapshot().unwrap();
    let live: Vec<_> =
        (0..150).filter(|slot| churned().0[*slot as usize] == Filled::Live).map(Some).collect();
    assert_eq!(old_numbers(&rows, DIM), live, "{what}");
    assert_eq!(NEW_TABLES.map(|table| count(&rows, table)), [0; 3], "{what}");
    let len = live.len() as u32;
    assert_eq!(rows.slot_head(INDEX).unwrap(), SlotHead { len, used: len }, "{what}");
}

#[test]
fn a_copy_leaves_a_damaged_graph_out_with_the_slots_that_only_it_needed() {
    assert_left_out("a row that does not decode", |tx| {
        tx.put(Table::Graph, &keys::block(INDEX, 5), b"rubbish")
    });
    assert_left_out("a head that does not decode", |tx| {
        tx.put(Table::GraphHead, &keys::index(INDEX), b"rubbish")
    });
    assert_left_out("a link to a free slot", |tx| {
        put_links(tx, INDEX, &BTreeMap::from([(147, vec![vec![1]])]))
    });
    assert_left_out("a link out of range", |tx| {
        put_links(tx, INDEX, &BTreeMap::from([(147, vec![vec![0], vec![150]])]))
    });
    assert_left_out("a node in a free slot", |tx| {
        put_links(tx, INDEX, &BTreeMap::from([(144, vec![vec![0]])]))
    });
    assert_left_out("a node without a slot", |tx| {
        put_links(tx, INDEX, &BTreeMap::from([(160, vec![vec![0]])]))
    });
    assert_left_out("a node of the last numbers there are", |tx| {
        put_links(tx, INDEX, &BTreeMap::from([(u32::MAX, vec![vec![0]])]))
    });
    assert_left_out("an entry in a free slot", |tx| {
        tx.put_graph_head(INDEX, &GraphHead { entry: Some(1), ..head() })
    });
    assert_left_out("no head", |tx| tx.delete_graph_head(INDEX));
}

#[test]
fn an_index_without_its_last_slots_is_copied_without_its_graph() {
    // Nothing but the graph says that they were there.
    let (_folder, store) = compacted(|tx| {
        assert_eq!(tx.slot_head(INDEX)?.len.div_ceil(slots_per_block(DIM) as u32), 2);
        assert!(tx.delete_there(Table::Slot, &keys::block(INDEX, 1))?);
        Ok(())
    });
    let rows = store.snapshot().unwrap();
    assert_eq!(NEW_TABLES.map(|table| count(&rows, table)), [0; 3]);
}

#[test]
fn blocks_of_links_that_go_over_the_border_of_two_commits_are_whole() {
    // Slot 0 is free, so that every block of the copy has its nodes from two blocks of the original.
    let (_folder, store) = fresh();
    let many = 52_000_u32;
    let slots: Vec<_> = (0..many).map(|slot| if slot == 0 { Filled::Free } else { Filled::Dead }).collect();
    let nodes: BTreeMap<u32, Vec<Vec<u32>>> =
        (1..many).map(|slot| (slot, vec![vec![if slot == 1 { many - 1 } else { slot - 1 }]])).collect();
    write(&store, |tx| {
        fill(tx, &slots, 1)?;
        put_links(tx, INDEX, &nodes)?;
        tx.put_graph_head(INDEX, &GraphHead { entry: Some(1), ..head() })
    });
    let rows = store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap().rows;
    let snapshot = store.snapshot().unwrap();
    let copied = links(&snapshot, INDEX);
    let expected: BTreeMap<u32, Vec<Vec<u32>>> =
        nodes.iter().map(|(slot, lists)| (slot - 1, vec![vec![lists[0][0] - 1]])).collect();
    assert!(copied == expected, "{} nodes of {}", copied.len(), expected.len());
    let blocks = count(&snapshot, Table::Graph);
    assert_eq!(blocks, 51_999_usize.div_ceil(16));
    // Slots, blocks, the head of the graph; identity, clock, size and space.
    assert_eq!(rows, 51_999 + blocks as u64 + 1 + 4);
}

/// A copy goes past rows that can't be read, whatever table they stand in, and names them.
#[test]
fn a_copy_goes_past_damage_and_names_it() {
    let (_folder, store) = compacted(|tx| {
        for table in [Table::Vitals, Table::Memory, Table::Holder, Table::Journal, Table::TextDoc] {
            tx.put(table, &keys::memory(NS, id(9)), b"rotten value")?;
            tx.put(table, &keys::memory(NS, id(10)), &[])?;
        }
        let block = tx.vector_block_mut(INDEX, 0, DIM)?;
        block.erase(3);
        Ok(())
    });
    write(&store, |tx| tx.put(Table::Slot, &keys::block(INDEX, 0), b"rotten block"));
    let again = store.compact(&[8; 32], false, &mut |_, _| Ok(())).unwrap();
    let tables: Vec<&str> = again.damaged.iter().map(|row| row.table.name()).collect();
    let twice = ["slot", "vitals", "memory", "holder", "journal", "text_doc"].map(|table| [table; 2]);
    assert_eq!(tables, twice.concat(), "an empty value is damage as well");
    let rows = store.snapshot().unwrap();
    for table in [Table::Vitals, Table::Memory, Table::Holder, Table::Journal, Table::TextDoc] {
        assert_eq!(count(&rows, table), 2, "{table:?}");
    }
    assert_eq!(rows.slot_head(INDEX).unwrap().len as usize, churned().1.len());
}

/// Sort and values of every table, in the words of the document.
#[test]
fn the_document_has_the_tables_of_the_list() {
    let page = include_str!("../../docs/format.md");
    let (_, page) = page.split_once("| table | sort | key | value |").unwrap();
    let rows = page.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let said: BTreeMap<&str, (&str, &str)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let value = cells[3].trim_end_matches(" |").split([';', ':']).next().unwrap();
            (cells[0].trim_start_matches("| `").trim_end_matches('`'), (cells[1], value))
        })
        .collect();
    assert_eq!(said.len(), Table::COUNT);
    for table in Table::ALL {
        let (sort, value) = said[table.name()];
        assert_eq!(sort, format!("{:?}", table.sort()).to_lowercase(), "{}", table.name());
        assert_eq!(value == "empty", table.is_all_key(), "{}", table.name());
        assert_eq!(value.strip_prefix("tag ").map_or(Ok(0), str::parse), Ok(table.tag()), "{}", table.name());
    }
}

proptest! {
    /// What a key says is what it was built of, and nothing that is shorter or longer is taken for it. Other bytes are
    /// no reason to panic.
    #[test]
    fn keys_are_read_back_whole_or_not_at_all(
        table in prop::sample::select(Table::ALL),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        (ns, part, doc) in any::<(u32, u32, u32)>(),
        millis in -1_000_000_000_000_i64..1_000_000_000_000,
        text in "[^\0]{0,12}",
    ) {
        let (address, _) = table.address(&bytes);
        prop_assert!(address.ns.is_none() || table.is_of_namespace());
        let key = keys::thread(NsId(ns), PartId(part), &text, Time::from_millis(millis), doc);
        let read = keys::Thread::parse(&key).unwrap();
        prop_assert_eq!((read.ns, read.part, read.thread.0), (NsId(ns), PartId(part), text.as_str()));
        prop_assert_eq!((read.at, read.doc), (Time::from_millis(millis), doc));
        for cut in 0..key.len() {
            prop_assert!(keys::Thread::parse(&key[..cut]).is_none());
        }
        prop_assert!(keys::Thread::parse(&[&key[..], &[0]].concat()).is_none());
    }
}

/// Many rows read at once are those of as many look-ups, however far apart they lie.
#[test]
fn many_rows_are_those_of_as_many_look_ups() {
    let (_folder, store) = fresh();
    let id = |number: u8| MemoryId::from_bytes([number; 16]);
    let row = |number: u8| Access { retrieval_count: u64::from(number) + 1, ..Access::default() };
    let written: Vec<u8> = (0..=250).step_by(3).collect();
    write(&store, |tx| {
        let mut truth = tx.forged();
        for number in &written {
            truth.put_access(NS, id(*number), &row(*number))?;
            // Another namespace is no part of it.
            truth.put_access(NsId(2), id(*number), &row(*number))?;
        }
        truth.put(Table::Access, &keys::memory(NS, id(60)), b"rubbish")
    });
    let rows = store.snapshot().unwrap();
    for (begin, step) in [(0, 1), (0, 2), (0, 3), (1, 3), (2, 30), (60, 60), (249, 1), (251, 2)] {
        let asked: Vec<u8> = (begin..=255).step_by(step).collect();
        let ids: Vec<MemoryId> = asked.iter().map(|number| id(*number)).collect();
        let mut met = Vec::new();
        rows.each_access(NS, &ids, &mut |id, access| {
            met.push((id, access));
            Ok(())
        })
        .unwrap();
        let there = asked.iter().filter(|number| written.contains(number));
        let expected: Vec<_> =
            there.map(|number| (id(*number), Some(row(*number)).filter(|_| *number != 60))).collect();
        assert_eq!(met, expected, "from {begin} in steps of {step}");
    }
    let stopped = rows.each_access(NS, &[id(0), id(3)], &mut |_, _| Err(Error::Closed));
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Closed, "what is no damage ends it");
}
