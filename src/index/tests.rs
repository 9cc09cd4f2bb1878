//! The answer is that of a full scan, whatever is in memory; a state never mixes two commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::published::{CurrentIn, Lock, Locks, PublishedIn};
use super::*;
use crate::error::ErrorKind;
use crate::hnsw::Crew;
use crate::index::search::Slots;
use crate::index::slots::Filling;
use crate::index::view::View;
use crate::model::{Effort, MemoryId, Ranked, Time, Times};
use crate::record::{GraphNode, NODES_PER_BLOCK};
use crate::store::StagedBlocks;
use crate::store::control::{Clock, GraphHead, SlotHead, SpaceRow};
use crate::store::disk::Folder;
use crate::store::{
    Durability, IndexId, NsId, Options, PartId, Read, Rows, Snapshot, SpaceId, Store, Table, Truth, keys,
};
use crate::vector::{Coded, TopK, UnitVector, dot_f32};

const SPACE: SpaceId = SpaceId(1);
const NS: NsId = NsId(7);

fn index(part: u32) -> IndexId {
    IndexId { ns: NS, part: PartId(part), space: SPACE }
}

fn id(number: u32) -> MemoryId {
    let mut bytes = [1; 16];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    MemoryId::from_bytes(bytes)
}

fn times(from: Option<i64>, until: Option<i64>) -> Times {
    Times {
        valid_from: from.map(Time::from_millis),
        expires_at: until.map(Time::from_millis),
        ..Times::default()
    }
}

/// A file with slots alone, and what should be in it.
struct World {
    _folder: tempfile::TempDir,
    store: Store,
    dim: usize,
    rows: BTreeMap<(IndexId, u32), (MemoryId, UnitVector, Times)>,
    changed: StagedBlocks,
    linked: BTreeMap<IndexId, Option<Linked>>,
    random: u64,
}

fn changes<'c>(
    blocks: &'c StagedBlocks,
    dropped: &'c [NsId],
    linked: &'c BTreeMap<IndexId, Option<Linked>>,
) -> Changes<'c> {
    static NONE: BTreeSet<IndexId> = BTreeSet::new();
    Changes { blocks, dropped, linked, reset: &NONE }
}

fn ask(query: &UnitVector, k: usize, now: Time, effort: Effort) -> Ask<'_> {
    Ask { query, k, sure: k, slots: Slots::Live(now), effort, stop: Stop::NEVER }
}

/// A filter on ids alone.
struct ById<'w> {
    world: &'w World,
    passes: fn(MemoryId) -> bool,
}

fn in_three(id: MemoryId) -> bool {
    id.as_bytes()[15].is_multiple_of(3)
}

impl Sieve for ById<'_> {
    fn matches(&mut self, id: MemoryId) -> Result<bool, crate::Error> {
        Ok((self.passes)(id))
    }

    fn all(&mut self, target: Target, visit: &mut dyn FnMut(IndexId, u32)) -> Result<(), crate::Error> {
        for ((index, slot), (id, ..)) in &self.world.rows {
            let inside = match target {
                Target::Index(wanted) => *index == wanted,
                Target::Namespace(ns, _) => index.ns == ns,
            };
            if inside && (self.passes)(*id) {
                visit(*index, *slot);
            }
        }
        Ok(())
    }
}

impl World {
    fn new(dim: usize, random: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: folder.path().join("slots.oub"),
            cache_bytes: 64 << 20,
            shared: false,
            read_only: false,
            create: true,
            paranoid: false,
            secret: [7; 32],
            opener: [1; 8],
        };
        let store = Store::open(Arc::new(Folder), options).unwrap();
        let mut world = World {
            _folder: folder,
            store,
            dim,
            rows: BTreeMap::new(),
            changed: StagedBlocks::default(),
            linked: BTreeMap::new(),
            random: random | 1,
        };
        world.commit(|tx, _| tx.put_space(SPACE, &SpaceRow { name: "caller".to_owned(), dim: dim as u32 }));
        world
    }

    fn commit<R>(&mut self, change: impl FnOnce(&mut Truth<'_, '_>, u64) -> Result<R, crate::Error>) -> R {
        let written = self.store.write(Durability::Batch, |tx| {
            let mut clock = tx.clock()?;
            clock.commit += 1;
            clock.at_ms = clock.commit as i64;
            let value = change(&mut tx.forged(), clock.commit)?;
            tx.put_clock(&clock)?;
            Ok(value)
        });
        let written = written.unwrap();
        self.changed = written.staged;
        written.value
    }

    fn add(&mut self, rows: Vec<(IndexId, MemoryId, UnitVector, Times)>) {
        let slots = self.commit(|tx, commit| {
            let claim = |(index, id, vector, times): &(IndexId, MemoryId, UnitVector, Times)| {
                slots::claim(tx, *index, Filling { commit, id: *id, times, coded: &Coded::of(vector) })
            };
            rows.iter().map(claim).collect::<Result<Vec<u32>, _>>()
        });
        for (slot, (index, id, vector, times)) in slots.into_iter().zip(rows) {
            self.rows.insert((index, slot), (id, vector, times));
        }
    }

    fn release(&mut self, gone: &[(IndexId, u32)]) {
        let dim = self.dim;
        self.commit(|tx, commit| {
            gone.iter().try_for_each(|(index, slot)| slots::release(tx, *index, dim, commit, *slot))
        });
        gone.iter().for_each(|at| drop(self.rows.remove(at)));
    }

    fn retime(&mut self, at: (IndexId, u32), times: Times) {
        let dim = self.dim;
        self.commit(|tx, _| slots::set_times(tx, at.0, dim, at.1, &times));
        self.rows.get_mut(&at).unwrap().2 = times;
    }

    fn snapshot(&self) -> (Arc<Snapshot>, Clock) {
        let snapshot = self.store.snapshot().unwrap();
        let clock = snapshot.clock().unwrap();
        (Arc::new(snapshot), clock)
    }

    fn first(&self, budget: usize) -> Published {
        let (snapshot, clock) = self.snapshot();
        Published::first(snapshot, &clock, ViewBudget::new(budget))
    }

    fn next(&self, before: &Published) -> Published {
        let (snapshot, clock) = self.snapshot();
        before.next(snapshot, &clock, &changes(&self.changed, &[], &self.linked))
    }

    /// Writes a step of the upkeep of a graph.
    fn write(&mut self, edit: &Edit) -> bool {
        self.linked.clear();
        match self.commit(|tx, commit| edit.write(tx, commit)) {
            Written::Done(linked) => {
                self.linked.insert(edit.index, linked);
                true
            }
            Written::Stale => false,
        }
    }

    /// Takes steps until there is none.
    fn steps(
        &mut self,
        published: &mut Published,
        mut step: impl FnMut(&Published) -> Result<Option<Edit>, crate::Error>,
    ) {
        while let Some(edit) = step(published).unwrap() {
            assert!(self.write(&edit), "nothing else changes the index");
            *published = self.next(published);
        }
    }

    /// xorshift64*: the tests choose what happens by it.
    fn pick(&mut self, below: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }

    fn vector(&mut self, near: Option<&UnitVector>) -> UnitVector {
        let noise: Vec<f32> = (0..self.dim).map(|_| self.pick(2_001) as f32 / 1_000.0 - 1.0).collect();
        let values: Vec<f32> = match near {
            Some(near) => {
                near.as_slice().iter().zip(noise).map(|(value, noise)| value + 1e-5 * noise).collect()
            }
            None if noise.iter().all(|value| *value == 0.0) => vec![1.0; self.dim],
            None => noise,
        };
        UnitVector::new("vector", &values).unwrap()
    }

    /// The definition of the answer.
    fn full_scan(
        &self,
        target: Target,
        query: &UnitVector,
        k: usize,
        now: i64,
        passes: impl Fn(MemoryId) -> bool,
    ) -> (Vec<Ranked>, u64) {
        let mut top = TopK::new(k);
        let mut scanned = 0;
        for ((index, _), (id, vector, times)) in &self.rows {
            let inside = match target {
                Target::Index(one) => one == *index,
                Target::Namespace(ns, space) => (ns, space) == (index.ns, index.space),
            };
            if inside && times.visible_live(Time::from_millis(now)) {
                scanned += 1;
                if passes(*id) {
                    top.push(dot_f32(query.as_slice(), vector.as_slice()), *id);
                }
            }
        }
        let hits = top.into_sorted().into_iter().map(|best| Ranked::near(best.id, best.score));
        (hits.collect(), scanned)
    }

    #[track_caller]
    fn check(&self, published: &Published, target: Target, query: &UnitVector, k: usize, now: i64) -> Found {
        let at = Time::from_millis(now);
        let found = nearest(published, target, ask(query, k, at, Effort::Exact)).unwrap();
        let (hits, scanned) = self.full_scan(target, query, k, now, |_| true);
        assert_eq!(found.hits, hits, "{target:?} k {k} now {now} {found:?}");
        assert_eq!(found.scanned, scanned, "{target:?} now {now}");
        for passes in [in_three, |id: MemoryId| id.as_bytes()[15] % 50 == 1, |_| false] {
            let mut sieve = ById { world: self, passes };
            let ask = ask(query, k, at, Effort::Exact);
            let filtered = nearest_matching(published, target, ask, &mut sieve).unwrap();
            let expected = self.full_scan(target, query, k, now, passes).0;
            assert_eq!(filtered.hits, expected, "filtered by {}, {target:?}", filtered.filter);
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_answer_is_that_of_a_full_scan(
        seed in any::<u64>(),
        dim in prop::sample::select(vec![2_usize, 64, 384]),
        rounds in 1_usize..5,
        budget in prop::sample::select(vec![1_usize, 60_000, usize::MAX]),
    ) {
        let mut world = World::new(dim, seed);
        let mut published = world.first(budget);
        let mut number = 0;
        let center = world.vector(None);
        for _ in 0..rounds {
            let mut rows = Vec::new();
            for _ in 0..20 + world.pick(160) {
                let vector = match world.pick(3) {
                    0 => center.clone(),
                    1 => world.vector(Some(&center)),
                    _ => world.vector(None),
                };
                let from = Some(world.pick(100) as i64).filter(|from| from % 4 == 0);
                let until = Some(world.pick(100) as i64).filter(|until| until % 3 == 0);
                number += 1;
                rows.push((index(world.pick(3) as u32), id(number * 7_919 % 65_521), vector, times(from, until)));
            }
            world.add(rows);
            published = world.next(&published);
            let all: Vec<_> = world.rows.keys().copied().collect();
            let gone: BTreeSet<_> = (0..world.pick(30)).map(|_| all[world.pick(all.len() as u64) as usize]).collect();
            world.release(&gone.into_iter().collect::<Vec<_>>());
            published = world.next(&published);
            if let Some(at) = world.rows.keys().next().copied() {
                world.retime(at, times(None, Some(50)));
                published = world.next(&published);
            }
            for _ in 0..4 {
                let near = world.pick(2) == 0;
                let query = world.vector(near.then_some(&center));
                let target = match world.pick(4) {
                    3 => Target::Namespace(NS, SPACE),
                    part => Target::Index(index(part as u32)),
                };
                let k = [1, 2, 10, 1_000][world.pick(4) as usize];
                let now = world.pick(100) as i64;
                let answer = world.check(&published, target, &query, k, now);
                // A state of its own has read everything anew, and has the same answer.
                let fresh = world.check(&world.first(usize::MAX), target, &query, k, now);
                prop_assert_eq!(answer.hits, fresh.hits);
                prop_assert!(published.kept_bytes() <= budget);
            }
        }
    }
}

/// The memories of a view, vacant slots left out.
fn live(view: &View) -> usize {
    (0..view.len()).filter(|slot| view.id(*slot).is_some()).count()
}

#[test]
fn a_view_brought_forward_equals_one_that_is_loaded() {
    let mut world = World::new(384, 3);
    let mut published = world.first(usize::MAX);
    published.view(index(0)).unwrap();
    for round in 0..6 {
        let rows =
            (0..40).map(|at| (index(0), id(round * 40 + at + 1), world.vector(None), times(None, None)));
        let rows = rows.collect();
        world.add(rows);
        published = world.next(&published);
        world.release(&[(index(0), round * 3)]);
        published = world.next(&published);
    }
    let forward = published.loaded(index(0)).expect("inherited from state to state");
    let loaded = View::load(published.snapshot(), index(0), 384).unwrap();
    assert_eq!((forward.len(), live(&forward)), (loaded.len(), live(&loaded)));
    assert_eq!(live(&forward), world.rows.len());
    for slot in 0..forward.len() {
        assert_eq!(forward.id(slot), loaded.id(slot), "slot {slot}");
        assert_eq!(forward.id(slot), world.rows.get(&(index(0), slot)).map(|row| row.0), "slot {slot}");
    }
}

#[test]
fn near_equal_vectors_are_ranked_by_blocks() {
    let mut world = World::new(384, 5);
    let center = world.vector(None);
    let rows =
        (1..=300).map(|at| (index(0), id(at), world.vector(Some(&center)), times(None, None))).collect();
    world.add(rows);
    let published = world.first(usize::MAX);
    assert_eq!(world.check(&published, Target::Index(index(0)), &center, 2, 0).regime, "blocks");
    assert_eq!(world.check(&world.first(1), Target::Namespace(NS, SPACE), &center, 2, 0).regime, "blocks");
    assert_eq!(world.check(&published, Target::Index(index(0)), &center, 10, 0).regime, "codes");
}

#[test]
fn dead_slots_take_no_place_of_live_ones() {
    // V-218: 80 dead and 3 live, limit 3.
    let mut world = World::new(64, 9);
    let center = world.vector(None);
    let mut rows = vec![];
    for at in 1..=83 {
        let until = (at > 3).then_some(100);
        let vector = if at > 3 { center.clone() } else { world.vector(Some(&center)) };
        rows.push((index(0), id(at), vector, times(None, until)));
    }
    world.add(rows);
    let published = world.first(usize::MAX);
    let found = world.check(&published, Target::Index(index(0)), &center, 3, 100);
    let ids: BTreeSet<_> = found.hits.iter().map(|hit| hit.id).collect();
    assert_eq!(ids, [id(1), id(2), id(3)].into(), "V-218");
    assert_eq!(
        nearest(&published, Target::Index(index(0)), ask(&center, 3, Time::EPOCH, Effort::Exact))
            .unwrap()
            .scanned,
        83
    );
}

#[test]
fn a_query_of_another_dimension_is_refused() {
    let mut world = World::new(64, 9);
    let vector = world.vector(None);
    world.add(vec![(index(0), id(1), vector, times(None, None))]);
    let query = UnitVector::new("vector", &[1.0, 2.0]).unwrap();
    let ask = ask(&query, 1, Time::EPOCH, Effort::Exact);
    let why = nearest(&world.first(1), Target::Index(index(0)), ask).unwrap_err();
    assert_eq!(why.to_string(), "vector: must have 64 dimensions (got 2)");
}

#[test]
fn a_block_that_is_gone_hides_its_own_memories_alone() {
    let mut world = World::new(384, 11);
    let rows = (1..=40).map(|at| (index(0), id(at), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let query = world.vector(None);
    let damage = |world: &mut World, what: &str, left: usize, change: &dyn Fn(&mut Truth<'_, '_>)| {
        world.commit(|tx, _| {
            change(tx);
            Ok(())
        });
        for target in [Target::Index(index(0)), Target::Namespace(NS, SPACE)] {
            let ask = ask(&query, 1, Time::EPOCH, Effort::Exact);
            let hits = nearest(&world.first(usize::MAX), target, ask).unwrap().hits;
            assert_eq!(hits.len(), left, "{what} {target:?}");
        }
    };
    let head = SlotHead { len: 40, used: 40 };
    damage(&mut world, "a block too few", 1, &|tx| {
        tx.put_slot_head(index(0), SlotHead { len: 60, ..head });
    });
    world.commit(|tx, _| {
        tx.put_slot_head(index(0), head);
        Ok(())
    });
    damage(&mut world, "a hole", 1, &|tx| {
        assert!(tx.delete_there(Table::Slot, &keys::block(index(0), 1)).unwrap());
    });
    let mut world = World::new(384, 11);
    let vector = world.vector(None);
    world.add(vec![(index(0), id(1), vector, times(None, None))]);
    damage(&mut world, "a code without a vector", 0, &|tx| {
        assert!(tx.delete_there(Table::Vector, &keys::block(index(0), 0)).unwrap());
    });
}

#[test]
fn the_budget_holds_and_the_least_recently_used_view_goes() {
    let mut world = World::new(384, 13);
    let rows: Vec<_> =
        (1..=40).map(|at| (index(at % 8), id(at), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let size = world.first(usize::MAX).view(index(0)).unwrap().bytes();
    let published = world.first(size * 4);
    for part in [0, 1, 2, 0, 3] {
        published.view(index(part)).unwrap();
        published.view(index(0)).unwrap();
    }
    published.view(index(4)).unwrap();
    published.view(index(5)).unwrap();
    assert!(published.kept_bytes() <= size * 4);
    assert!(published.loaded(index(1)).is_none() && published.loaded(index(2)).is_none());
    assert!(published.loaded(index(0)).is_some() && published.loaded(index(5)).is_some());
    let small = world.first(size - 1);
    small.view(index(0)).unwrap();
    assert_eq!((small.kept_bytes(), small.loaded(index(0)).is_none()), (0, true), "larger than the budget");
}

#[test]
fn dropping_and_compacting_lose_their_views() {
    let mut world = World::new(384, 17);
    let vector = world.vector(None);
    world.add(vec![(index(0), id(1), vector, times(None, None))]);
    let published = world.first(usize::MAX);
    published.view(index(0)).unwrap();
    let (snapshot, clock) = world.snapshot();
    let (none, same) = (StagedBlocks::default(), BTreeMap::new());
    let kept = published.next(Arc::clone(&snapshot), &clock, &changes(&none, &[NsId(8)], &same));
    assert!(kept.loaded(index(0)).is_some() && kept.kept_bytes() > 0);
    let dropped = published.next(Arc::clone(&snapshot), &clock, &changes(&none, &[NS], &same));
    assert!(dropped.loaded(index(0)).is_none() && dropped.kept_bytes() == 0);
    let compacted = published.afresh(snapshot, &clock);
    assert!(compacted.loaded(index(0)).is_none());
    assert!(published.loaded(index(0)).is_some(), "an old state keeps what it had");
}

mod bits;
mod cost;
mod damage;
mod extract;
mod near;
mod sight;
mod sketch;
mod steps;
mod texts;

/// Links everything, in slices of so many rows.
fn link_all(world: &mut World, published: &mut Published, at: IndexId, rows: usize) {
    let mut crew = Crew::new(2);
    world.steps(published, |published| upkeep::link(published, at, rows, &mut crew));
    let mut measured = false;
    world.steps(published, |published| {
        if std::mem::replace(&mut measured, true) { Ok(None) } else { upkeep::calibrate(published, at, true) }
    });
}

fn repair_all(world: &mut World, published: &mut Published, at: IndexId, rows: usize) {
    let (mut crew, mut work) = (Crew::new(2), upkeep::Work::default());
    world.steps(published, |published| upkeep::repair(published, at, rows, &mut work, &mut crew));
}

/// The image that was brought forward is the one that the rows of the file give.
fn check_image(world: &World, published: &Published, at: IndexId) {
    let (kept, fresh) = (published.view(at).unwrap(), world.first(usize::MAX).view(at).unwrap());
    assert_eq!((kept.fault(), fresh.fault()), (None, None));
    assert_eq!(kept.tail_slots().collect::<Vec<_>>(), fresh.tail_slots().collect::<Vec<_>>());
    let graph = |view: &View| view.linked().map(|linked| Arc::clone(&linked.graph));
    match (graph(&kept), graph(&fresh)) {
        (Some(kept), Some(fresh)) => {
            assert_eq!((kept.len(), kept.entry()), (fresh.len(), fresh.entry()));
            assert!(fresh.nodes().all(|slot| kept.node(slot) == fresh.node(slot)));
        }
        (kept, fresh) => assert_eq!(kept.is_some(), fresh.is_some()),
    }
}

#[test]
fn a_graph_is_grown_mended_and_dropped_in_slices() {
    let mut world = World::new(64, 23);
    let at = index(0);
    let centers: Vec<UnitVector> = (0..30).map(|_| world.vector(None)).collect();
    let mut published = world.first(usize::MAX);
    let mut number = 0;
    for round in 0..4 {
        let mut rows = Vec::new();
        for _ in 0..500 {
            let center = centers[world.pick(30) as usize].clone();
            let vector = world.vector(Some(&center));
            number += 1;
            let until = (number % 11 == 0).then_some(50);
            rows.push((at, id(number), vector, times(None, until)));
        }
        world.linked.clear();
        world.add(rows);
        published = world.next(&published);
        check_image(&world, &published, at);
        link_all(&mut world, &mut published, at, [97, 256, 500, 64][round]);
        check_image(&world, &published, at);
        assert_eq!(published.view(at).unwrap().tail_slots().count(), 0);

        let doomed: Vec<(IndexId, u32)> = world
            .rows
            .keys()
            .copied()
            .filter(|(_, slot)| slot.wrapping_mul(2_654_435_761) % 10 < 3)
            .collect();
        world.linked.clear();
        world.release(&doomed);
        published = world.next(&published);
        let counts = upkeep::Counts::read(&**published.snapshot(), at).unwrap();
        assert_eq!(counts.dead as usize, doomed.len());
        check_answers(&mut world, &published, at, &centers);
        repair_all(&mut world, &mut published, at, [50, 400, 1_000, 77][round]);
        let counts = upkeep::Counts::read(&**published.snapshot(), at).unwrap();
        assert_eq!((counts.dead, counts.tail, counts.live as usize), (0, 0, world.rows.len()));
        check_image(&world, &published, at);
        check_answers(&mut world, &published, at, &centers);
        // Codes of what is gone are gone.
        for (_, slot) in &doomed {
            let (block, at_slot) = slots::place(*slot, crate::record::slots_per_block(64));
            let block = published.snapshot().slot_block(at, block, 64).unwrap().unwrap();
            assert!(block.code(at_slot).unwrap().iter().all(|value| *value == 0));
        }
    }
    let edit = upkeep::unlink_all(&published, at).unwrap().unwrap();
    assert!(world.write(&edit));
    published = world.next(&published);
    check_image(&world, &published, at);
    assert!(published.view(at).unwrap().linked().is_none());
    check_answers(&mut world, &published, at, &centers);
}

/// What is found through the graph is live, scored exactly, and nearly all of what a scan finds.
fn check_answers(world: &mut World, published: &Published, at: IndexId, centers: &[UnitVector]) {
    let (mut hits, mut wanted) = (0, 0);
    for now in [0, 100] {
        for center in centers {
            let query = world.vector(Some(center));
            let target = Target::Index(at);
            world.check(published, target, &query, 10, now);
            let live = Time::from_millis(now);
            let found = nearest(published, target, ask(&query, 10, live, Effort::Recall(0.99))).unwrap();
            let (best, _) = world.full_scan(target, &query, 10, now, |_| true);
            // By distance: whoever is as near as the last of the best is as good.
            let good = |hit: &&Ranked, best: &[Ranked]| {
                hit.score >= best.last().map_or(2.0, |last| last.score - 1e-6)
            };
            hits += found.hits.iter().filter(|hit| good(hit, &best)).count();
            wanted += best.len();
            for passes in [in_three, |id: MemoryId| id.as_bytes()[15] == 7] {
                let ask = ask(&query, 10, live, Effort::Recall(0.99));
                let mut sieve = ById { world, passes };
                let found = nearest_matching(published, target, ask, &mut sieve).unwrap();
                let (best, _) = world.full_scan(target, &query, 10, now, passes);
                assert_eq!(found.hits.len(), best.len());
                assert!(found.hits.iter().all(|hit| passes(hit.id)));
                hits += found.hits.iter().filter(|hit| good(hit, &best)).count();
                wanted += best.len();
            }
        }
    }
    assert!(hits as f64 / wanted as f64 >= 0.98, "{hits} of {wanted}");
}

#[test]
fn a_damaged_graph_is_not_used_and_rebuilt() {
    let mut world = World::new(64, 31);
    let at = index(0);
    let rows: Vec<_> = (1..=300).map(|n| (at, id(n), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 300);
    let query = world.vector(None);
    let ask = ask(&query, 10, Time::EPOCH, Effort::Ef(64));
    assert_eq!(nearest(&published, Target::Index(at), ask).unwrap().regime, "graph");
    let key = keys::index(at);
    let mut rows = Vec::new();
    published
        .snapshot()
        .graph_blocks(&crate::store::Walk::prefix(&key), &mut |_, block, _, bytes| {
            rows.push((keys::block(at, block), bytes.to_vec()));
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    let (damaged, sound) = rows[3].clone();
    let mut flipped = sound.clone();
    flipped[20] ^= 4;
    for bytes in [Some(flipped), None] {
        world.commit(|tx, _| match &bytes {
            Some(bytes) => tx.put(Table::Graph, &damaged, bytes),
            None => tx.delete(Table::Graph, &damaged),
        });
        let published = world.first(usize::MAX);
        let found = nearest(&published, Target::Index(at), ask).unwrap();
        assert_eq!(
            (found.regime, &found.hits),
            ("codes", &world.check(&published, Target::Index(at), &query, 10, 0).hits)
        );
        assert!(published.view(at).unwrap().fault().is_some());
        let why = upkeep::link(&published, at, 10, &mut Crew::new(1)).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Corrupted);
    }
    let edit = upkeep::unlink_all(&world.first(usize::MAX), at).unwrap().unwrap();
    assert!(world.write(&edit));
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 300);
    assert_eq!(nearest(&published, Target::Index(at), ask).unwrap().regime, "graph");
}

#[test]
fn regimes_change_with_hysteresis() {
    let regimes = upkeep::Regimes { scanned_max: 100, tail_min: 20, tail_share: 0.25 };
    let exact = |live| upkeep::Counts { live, ..upkeep::Counts::default() };
    let graph = |live, tail| upkeep::Counts { live, tail, in_graph: live - tail, has_graph: true, dead: 0 };
    use upkeep::Need;
    assert_eq!(regimes.need(exact(100)), Need::Nothing);
    assert_eq!(regimes.need(exact(101)), Need::Link(101));
    assert_eq!(regimes.need(graph(70, 0)), Need::Nothing);
    assert_eq!(regimes.need(graph(69, 0)), Need::Drop);
    assert_eq!(regimes.need(graph(90, 3)), Need::Link(3));
    assert!(!regimes.is_pressed(graph(200, 50)) && regimes.is_pressed(graph(200, 51)));
    assert!(!regimes.is_pressed(graph(75, 20)) && regimes.is_pressed(graph(72, 21)));
    assert!(regimes.is_pressed(exact(101)) && !regimes.is_pressed(exact(100)));
}

/// The locks of the model checker.
struct Shuttled;

impl Locks for Shuttled {
    type Of<T: Send + Sync> = shuttle::sync::RwLock<T>;
}

impl<T> Lock<T> for shuttle::sync::RwLock<T> {
    fn new(value: T) -> Self {
        shuttle::sync::RwLock::new(value)
    }

    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&shuttle::sync::RwLock::read(self).unwrap())
    }

    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut shuttle::sync::RwLock::write(self).unwrap())
    }
}

/// Every schedule of one publisher and two readers: a state shows rows and views of one commit.
#[test]
fn a_reader_never_sees_two_commits_at_once() {
    // Each commit puts another memory into slot 0 of two indexes.
    let mut world = World::new(4096, 19);
    let mut commits = Vec::new();
    for number in 1..=4 {
        if number > 1 {
            world.release(&[(index(0), 0), (index(1), 0)]);
        }
        let vector = world.vector(None);
        let times = times(None, None);
        let row = |part| (index(part), id(number), vector.clone(), times);
        let mut freed = std::mem::take(&mut world.changed);
        world.add(vec![row(0), row(1)]);
        freed.slots.append(&mut world.changed.slots);
        let (snapshot, clock) = world.snapshot();
        commits.push((snapshot, clock, freed, id(number)));
    }
    let size = View::load(&commits[0].0, index(0), 4096).unwrap().bytes();
    let commits = Arc::new(commits);
    let mut config = shuttle::Config::new();
    // The key-value store reads pages deeper in the stack than the checker gives by default.
    config.stack_size = 4 << 20;
    let scheduler = shuttle::scheduler::RandomScheduler::new(150);
    shuttle::Runner::new(scheduler, config).run(move || {
        let (snapshot, clock, ..) = &commits[0];
        // Room for one view and a half: the second one drives the first one out.
        let budget = ViewBudget::new(size * 3 / 2);
        let first = PublishedIn::<Shuttled>::first(Arc::clone(snapshot), clock, budget);
        let current = Arc::new(CurrentIn::new(first));
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (current, commits) = (Arc::clone(&current), Arc::clone(&commits));
                shuttle::thread::spawn(move || {
                    let mut last = 0;
                    for turn in 0..2 {
                        let state = current.read();
                        assert!(state.commit() >= last, "the state runs backwards");
                        last = state.commit();
                        assert_eq!(state.snapshot().clock().unwrap().commit, last);
                        let view = state.view(index((reader + turn) % 2)).unwrap();
                        let of = commits.iter().find(|commit| commit.1.commit == last).unwrap();
                        assert_eq!(view.id(0), Some(of.3), "rows and view of different commits");
                        assert!(state.kept_bytes() <= size * 3 / 2);
                    }
                })
            })
            .collect();
        let same = BTreeMap::new();
        for (snapshot, clock, changed, _) in &commits[1..] {
            let changes = changes(changed, &[], &same);
            let next = current.read().next(Arc::clone(snapshot), clock, &changes);
            current.publish(next);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn a_graph_in_which_walks_lose_their_way_is_told() {
    let mut world = World::new(24, 41);
    let at = index(0);
    let rows = (1..=600).map(|number| (at, id(number), world.vector(None), times(None, None))).collect();
    world.add(rows);
    let mut published = world.first(usize::MAX);
    link_all(&mut world, &mut published, at, 600);
    let found = |world: &World| found_by_themselves(world.first(usize::MAX).snapshot(), at, 24).unwrap();
    let (all, sampled) = found(&world);
    assert!(sampled >= 200 && all == sampled, "{all} of {sampled}");
    // A ring leads to all of them, and no walk goes around it.
    world.commit(|tx, _| {
        for block in 0..600_u32.div_ceil(NODES_PER_BLOCK as u32) {
            let first = block * NODES_PER_BLOCK as u32;
            let lists: Vec<[u32; 1]> =
                (first..600).take(NODES_PER_BLOCK).map(|slot| [(slot + 1) % 600]).collect();
            let nodes: Vec<_> = lists.iter().map(|links| Some(GraphNode::linked(links, &[]))).collect();
            tx.put_graph_block(at, block, &nodes)?;
        }
        let head = tx.graph_head(at)?.unwrap();
        tx.put_graph_head(at, &GraphHead { entry: Some(0), ..head })
    });
    let (few, sampled) = found(&world);
    assert!(few * 2 < sampled, "{few} of {sampled}");
}

/// What an image of more slots than the address space has room for would take is more than any budget, not a small number.
#[test]
fn the_size_of_an_image_does_not_overflow() {
    assert_eq!(View::bytes_of(usize::MAX / 100, 384), usize::MAX);
    assert_eq!(View::bytes_of(2, 384), 2 * View::bytes_of(1, 384));
}
