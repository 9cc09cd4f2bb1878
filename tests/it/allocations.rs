//! What a call allocates, in bytes.

#![allow(unsafe_code, reason = "an allocator is unsafe by trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeSet;

use crate::world::{World, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{Draft, Durability, Query, WriteOptions};

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// The allocator of the system; it counts what a thread asks for.
struct Counting;

// SAFETY: every call goes to the allocator of the system as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|all| all.set(all.get() + layout.size()));
        // SAFETY: the layout is the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: place and layout are the caller's.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// The bytes that this thread asks for while it works.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATED.with(Cell::get);
    work();
    ALLOCATED.with(Cell::get) - before
}

/// A query by a word that few texts hold has a bit for each text that there is, and no score.
#[test]
fn a_query_by_a_rare_word() {
    let bytes = |n: usize| {
        let world = World::with(|builder| builder.durability(Durability::Batch));
        let say =
            |at: usize| Draft::new(format!("{} number {at}", if at % 500 == 7 { "lamp" } else { "chair" }));
        for from in (0..n).step_by(1_000) {
            let drafts = (from..from + 1_000).map(say).collect();
            world.ns.add_all(drafts, &Default::default()).unwrap();
        }
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
        let query = Query::text("lamp").k(2);
        let search = || assert_eq!(world.ns.search(&query).unwrap().hits.len(), 2);
        search();
        let before = ALLOCATED.with(Cell::get);
        search();
        ALLOCATED.with(Cell::get) - before
    };
    let (small, large) = (bytes(1_000), bytes(9_000));
    assert!(large < small + 8_000, "{small} bytes for 1,000 texts, {large} for 9,000");
}

/// The drafts of a batch that are near to each other are compared by vectors of blocks that are not written yet, and no
/// block is copied for it.
#[test]
fn a_batch_of_drafts_that_are_near_to_each_other() {
    const DRAFTS: usize = 64;
    const DIM: usize = 256;
    let world = World::new();
    let near = |at: usize| {
        let numbers = (0..DIM).map(|n| if n == at { 1.2 } else { 1.0 }).collect::<Vec<f32>>();
        Draft::new(format!("Ann has seen heron number {at} by the river")).vector(numbers)
    };
    let drafts = (0..DRAFTS).map(near).collect();
    let before = ALLOCATED.with(Cell::get);
    let outcomes = world.ns.add_all(drafts, &Default::default()).unwrap();
    let a_draft = (ALLOCATED.with(Cell::get) - before) / DRAFTS;
    assert!(outcomes.iter().any(|outcome| !outcome.hints.is_empty()), "no draft met another");
    assert!(a_draft < 100_000, "{a_draft} bytes a draft");
}

/// A row of the journal that tells of many memories is read once for all of them, and so is the memory that took them in.
#[test]
fn what_a_pass_has_united_is_read_once_for_all() {
    let bytes = |n: usize| {
        let world = World::with(|builder| builder.durability(Durability::Batch));
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("the queue is empty").key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        let told = allocated_by(|| {
            let history = world.ns.history("k0").unwrap();
            let numbers: BTreeSet<u64> = history.events.iter().map(|row| row.seq).collect();
            assert_eq!((history.versions.len(), history.events.len()), (n, numbers.len()));
        });
        let mut lines = Vec::new();
        let exported = allocated_by(|| {
            let export = Export { all_states: true, ..Export::new([world.ns.name().clone()]) };
            let snapshot = world.db.snapshot().unwrap();
            export.write(&snapshot, &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines).unwrap();
        });
        let copy = World::new();
        copy.align_ids(&world);
        let imported = allocated_by(|| {
            let lines = LineReader::new(lines.as_slice(), "lines");
            Import::default().run(&copy.db, lines, &mut ()).unwrap();
        });
        assert_eq!(copy.live().len(), 1);
        let indexed = allocated_by(|| _ = world.db.reindex().unwrap());
        world.advance("90d");
        let removed = allocated_by(|| {
            let report = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
            assert_eq!(report.passes[0].changed, n as u64 - 1, "{report:?}");
        });
        world.check();
        [told, exported, imported, indexed, removed]
    };
    let (small, large) = (bytes(100), bytes(400));
    for (small, large) in small.into_iter().zip(large) {
        assert!(large < 6 * small, "{small} bytes for 100 memories, {large} for 400");
    }
}
