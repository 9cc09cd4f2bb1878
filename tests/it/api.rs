//! The handle: threads, closing, locking, reading beside a writer, batches, snapshots, durability, errors, tenants.

use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::world::{World, axis, span, text};
use oubliette::clock::{IdSource, RandomIds};
use oubliette::memory::Expiry;
use oubliette::memory::{Got, SupersedeMode};
use oubliette::{
    Builder, Database, Decision, Draft, Durability, Error, ErrorKind, Forget, MemoryId, Mode, NamespaceName,
    PageRequest, Patch, Query, Scope, Time, WriteOptions,
};
use proptest::prelude::*;

fn count(db: &Database, ns: &NamespaceName) -> usize {
    db.namespace(ns)
        .unwrap()
        .list(&PageRequest { limit: 10_000, ..PageRequest::default() })
        .unwrap()
        .items
        .len()
}

#[test]
fn a_handle_goes_to_other_threads_and_is_cloned() {
    fn takes<T: Send + Sync + Clone + 'static>() {}
    takes::<Database>();
    fn sent<T: Send + Sync>() {}
    sent::<oubliette::Snapshot>();
    sent::<Error>();
}

/// The same where an embedder is asked before the write.
#[test]
fn after_close_a_clone_with_an_embedder_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path().join("m.oub")).unwrap();
    db.use_embedder(oubliette::embed::HashEmbedder::new()).unwrap();
    let ns = db.namespace("team").unwrap();
    ns.add(text("t").key("k")).unwrap();
    db.clone().close().unwrap();
    let patch = Patch { text: Some("u".to_owned()), ..Patch::default() };
    let kinds = [
        ns.add(text("u")).map(drop),
        ns.add_all(vec![text("u")], &WriteOptions::default()).map(drop),
        ns.update("k", patch).map(drop),
    ];
    for (at, done) in kinds.into_iter().enumerate() {
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Closed, "call {at}");
    }
}

#[test]
fn after_close_every_clone_says_so() {
    let world = World::new();
    let (ns, clone) = (world.ns.name().clone(), world.db.clone());
    let snapshot = clone.snapshot().unwrap();
    world.add(text("t").key("k"));
    world.db.clone().close().unwrap();
    let kinds = [
        clone.namespace(&ns).unwrap().add(text("u")).map(drop),
        clone.namespace(&ns).unwrap().add_all(vec![text("u")], &WriteOptions::default()).map(drop),
        clone.batch(|batch| batch.add(&ns, text("u")).map(drop)),
        clone.namespace(&ns).unwrap().look_up("k", false).map(drop),
        clone.namespace(&ns).unwrap().list(&PageRequest::default()).map(drop),
        clone.namespace(&ns).unwrap().search(Query::vector(axis(0))).map(drop),
        clone.namespace(&ns).unwrap().forget(Forget::names(["k"])).map(drop),
        clone.namespace(&ns).unwrap().update("k", Patch::default()).map(drop),
        clone.stats().map(drop),
        clone.namespace(&ns).unwrap().memory_stats().map(drop),
        clone.check(&oubliette::report::CheckOptions::default()).map(drop),
        clone.snapshot().map(drop),
        clone.compact().map(drop),
        clone.flush(),
        clone.namespaces().map(drop),
        clone.backup(world.beside("copy.oub")).map(drop),
        snapshot.namespace(&ns).unwrap().look_up("k", false).map(drop),
    ];
    for (at, done) in kinds.into_iter().enumerate() {
        assert_eq!(done.unwrap_err().kind(), ErrorKind::Closed, "call {at}");
    }
    clone.close().unwrap();
}

#[test]
fn reopening_keeps_everything() {
    let mut world = World::new();
    let run = world.start_import();
    world
        .import(run, vec![text("t").key("k").tag("x").vector(axis(0)), text("u").agent("a").vector(axis(1))]);
    let old = world.add(text("v").key("w")).id;
    world.add(text("v2").key("w"));
    let gone = world.add(text("gone").key("gone")).id;
    world.forget_id(gone);
    let all = |world: &World| {
        let states = [oubliette::State::Live, oubliette::State::Superseded];
        (
            states.map(|state| world.list_in(Scope::Any, state)),
            world.tombstone("gone"),
            world.find(axis(0), 5),
        )
    };
    let before = all(&world);
    world.reopen();
    assert_eq!(all(&world), before);
    assert_eq!(world.row(old).id, old);
    assert_eq!(world.ns.undo(run).unwrap().removed, 2, "the run is known as well");
    assert_eq!(world.db.dimensions().unwrap(), Some(4));
}

#[test]
fn a_second_open_is_locked_and_waits_if_asked() {
    let world = World::new();
    assert_eq!(world.builder().open(world.path()).unwrap_err().kind(), ErrorKind::Locked);
    let begin = Instant::now();
    assert_eq!(world.builder().wait(span("200ms")).open(world.path()).unwrap_err().kind(), ErrorKind::Locked);
    assert!(begin.elapsed() >= Duration::from_millis(200));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.builder().wait(span("30s")).open(world.path()));
        std::thread::sleep(Duration::from_millis(100));
        world.db.clone().close().unwrap();
        let second = waiting.join().unwrap().unwrap();
        second.namespace(world.ns.name()).unwrap().add(text("t")).unwrap();
        second.close().unwrap();
    });
    assert!(begin.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_read_only_handle_refuses_every_write() {
    let world = World::new();
    world.add(text("t").key("k").vector(axis(0)));
    world.db.clone().close().unwrap();
    let (ns, db) = (world.ns.name().clone(), world.builder().read_only(true).open(world.path()).unwrap());
    assert!(matches!(db.namespace(&ns).unwrap().look_up("k", false).unwrap(), Got::Memory(_)));
    assert_eq!(db.namespace(&ns).unwrap().search(Query::vector(axis(0))).unwrap().hits.len(), 1);
    assert_eq!(db.stats().unwrap().memories.live, 1);
    crate::world::assert_clean(&db);
    let writes = [
        db.namespace(&ns).unwrap().add(text("u")).map(drop),
        db.batch(|batch| batch.add(&ns, text("u")).map(drop)),
        db.namespace(&ns).unwrap().update("k", Patch::default()).map(drop),
        db.namespace(&ns).unwrap().pin("k", true).map(drop),
        db.namespace(&ns).unwrap().forget(Forget::names(["k"])).map(drop),
        db.namespace(&ns).unwrap().forget(Forget::tag("x")).map(drop),
        db.namespace(&ns).unwrap().reinforce("k", 1),
        db.namespace(&ns).unwrap().restore("k").map(drop),
        db.namespace(&ns).unwrap().supersede_all(["k"], "k", SupersedeMode::Replaced, None).map(drop),
        db.namespace(&ns).unwrap().start_import().map(drop),
        db.drop_namespace(&ns).map(drop),
        db.set_policy("", oubliette::policy::Syntax::Toml).map(drop),
        db.compact().map(drop),
        db.flush(),
    ];
    for (at, done) in writes.into_iter().enumerate() {
        assert_eq!(done.unwrap_err().kind(), ErrorKind::ReadOnly, "call {at}");
    }
    let missing = world.builder().read_only(true).open(world.beside("none.oub")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    db.close().unwrap();
}

#[test]
fn a_reader_beside_a_writer_sees_what_is_committed() {
    let world = World::with(|builder| builder.shared(true));
    world.add(text("first").key("k"));
    let open = || world.builder().read_only(true).shared(true).open(world.path()).unwrap();
    let reader = open();
    assert_eq!(count(&reader, world.ns.name()), 1);
    world.add(text("second"));
    assert_eq!(world.live().len(), 2);
    let later = open();
    assert_eq!(count(&later, world.ns.name()), 2, "a new handle sees the later commit");
    world.forget(&["k"]);
    assert_eq!(count(&open(), world.ns.name()), 1);
    assert!(count(&reader, world.ns.name()) >= 1, "the old handle still reads a whole state");
    let why =
        world.builder().shared(true).durability(Durability::Batch).open(world.beside("b.oub")).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Invalid);
}

#[test]
fn a_batch_is_whole_or_nothing() {
    let world = World::new();
    let ns = world.ns.name().clone();
    world.add(text("kept").key("kept"));
    let before = (
        world.list_in(Scope::Any, oubliette::State::Live),
        world.db.namespace(&ns).unwrap().tombstones(None, 10).unwrap(),
    );
    let why = world.db.batch(|batch| {
        batch.add(&ns, text("a").key("a"))?;
        batch.forget(&ns, &["kept".to_owned()])?;
        batch.add(&"other".parse()?, text("elsewhere"))?;
        batch.update(&ns, "nobody", Patch::default())
    });
    assert_eq!(why.unwrap_err().kind(), ErrorKind::NotFound);
    let after = (
        world.list_in(Scope::Any, oubliette::State::Live),
        world.db.namespace(&ns).unwrap().tombstones(None, 10).unwrap(),
    );
    assert_eq!(before, after);
    assert_eq!(world.db.namespaces().unwrap(), std::slice::from_ref(&ns));
    let decision = world.db.batch(|batch| {
        batch.add(&ns, text("a").key("a"))?;
        batch.reinforce(&ns, "a", 1)?;
        Ok(batch.add(&ns, text("a"))?.decision)
    });
    assert_eq!(decision.unwrap(), Decision::Reinforced, "a batch sees its own rows");
    assert_eq!(world.row("a").reinforcement_count, 3);
}

#[test]
fn add_all_names_the_line_and_writes_nothing() {
    let world = World::new();
    for bad in [text("x").importance(2.0), text("x").vector([1.0; 3]), text("x").supersedes("nobody")] {
        let drafts = vec![text("a").vector(axis(0)), text("b"), bad, text("c")];
        let why = world.ns.add_all(drafts, &WriteOptions::default()).unwrap_err();
        let Error::Line { line, .. } = why else { panic!("{why}") };
        assert_eq!(line, 3);
        assert!(world.live().is_empty());
    }
    assert!(world.ns.add_all(vec![], &WriteOptions::default()).unwrap().is_empty());
}

#[test]
fn a_snapshot_repeats_itself() {
    let world = World::new();
    let ns = world.ns.name().clone();
    let ids: Vec<_> = (0..4)
        .map(|at| world.add(text(&format!("{at}")).key(format!("k{at}")).vector(axis(at))).id)
        .collect();
    let snapshot = world.db.snapshot().unwrap();
    let all = || {
        let request = PageRequest { limit: 100, ..PageRequest::default() };
        let hits: Vec<_> = (0..4)
            .map(|at| snapshot.namespace(&ns).unwrap().search(Query::vector(axis(at))).unwrap().hits)
            .collect();
        (
            snapshot.namespace(&ns).unwrap().list(&request).unwrap(),
            hits,
            snapshot.namespace(&ns).unwrap().look_up("k0", true).unwrap(),
        )
    };
    let before = all();
    world.forget_id(ids[0]);
    world.add(text("new").vector(axis(0)));
    world
        .db
        .namespace(&ns)
        .unwrap()
        .update("k1", Patch { vector: Some(axis(2).to_vec()), ..Patch::default() })
        .unwrap();
    world
        .db
        .namespace(&ns)
        .unwrap()
        .update("k2", Patch { text: Some("revised".to_owned()), ..Patch::default() })
        .unwrap();
    world.add(text("reuses the slot").vector([-1.0, 0.0, 0.0, 0.5]));
    world.advance("1h");
    assert_eq!(all(), before);
    world.db.compact().unwrap();
    assert_eq!(world.find(axis(0), 1).len(), 1);
    let why = snapshot.namespace(&ns).unwrap().look_up("k0", true).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::SnapshotExpired, "the file was replaced: {why}");
}

#[test]
fn a_lease_ends() {
    let world = World::with(|builder| builder.lease("1m".parse::<oubliette::Span>().unwrap()));
    world.add(text("t"));
    let snapshot = world.db.snapshot().unwrap();
    world.advance("59s");
    assert_eq!(
        snapshot.namespace(world.ns.name()).unwrap().list(&PageRequest::default()).unwrap().items.len(),
        1
    );
    world.advance("1s");
    let why = snapshot.namespace(world.ns.name()).unwrap().list(&PageRequest::default()).unwrap_err();
    assert!(matches!(why, Error::SnapshotExpired { lease_ms: 60_000 }), "{why:?}");
    assert!(!why.is_retryable(), "the same snapshot answers nothing any more");
    world.add(text("u"));
    assert_eq!(
        snapshot.namespace(world.ns.name()).unwrap().look_up("x", false).unwrap_err().kind(),
        ErrorKind::SnapshotExpired
    );
}

#[test]
fn every_durability_keeps_what_a_closed_handle_wrote() {
    let options: [fn(Builder) -> Builder; 3] = [
        |builder| builder.durability(Durability::Safe),
        |builder| builder.durability(Durability::Fast),
        |builder| builder.durability(Durability::Batch),
    ];
    for options in options {
        let mut world = World::with(options);
        for at in 0..5 {
            world.add(text(&format!("{at}")).vector(axis(at % 4)));
        }
        world.db.flush().unwrap();
        world.add(text("last"));
        assert_eq!(world.live().len(), 6, "visible at once");
        world.reopen();
        assert_eq!(world.live().len(), 6);
    }
}

#[test]
fn eight_threads_share_commits_and_one_bad_unit_fails_alone() {
    let world = World::new();
    world.add(text("first").vector(axis(0)));
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (world, barrier) = (&world, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for at in 0..25 {
                    let outcome = world.add(text(&format!("{thread} {at}")).key(format!("{thread}.{at}")));
                    assert_eq!(outcome.decision, Decision::Stored);
                    assert_eq!(
                        world.row(format!("{thread}.{at}")).id,
                        outcome.id,
                        "seen by its writer at once"
                    );
                    assert_eq!(world.refused(text("bad").vector([1.0; 3])), ErrorKind::Invalid);
                    assert_eq!(world.refused(text("bad").supersedes("nobody")), ErrorKind::NotFound);
                }
            });
        }
    });
    assert_eq!(world.live().len(), 201);
    assert!(world.unknown("bad"));
}

#[test]
fn dimensions_are_fixed_by_the_builder_or_the_first_vector() {
    let world = World::with(|builder| builder.dimensions(3));
    assert_eq!(world.db.dimensions().unwrap(), Some(3));
    let why = world.ns.add(text("t").vector(axis(0))).unwrap_err();
    assert_eq!(why.to_string(), "vector: must have 3 dimensions (got 4)");
    world.add(text("t").vector([1.0, 0.0, 0.0]));
    let why = world.ns.search(Query::vector(axis(0))).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Invalid);
    world.db.clone().close().unwrap();
    assert_eq!(world.builder().dimensions(4).open(world.path()).unwrap_err().kind(), ErrorKind::Invalid);
    for bad in [0, 4_097] {
        assert_eq!(
            world.builder().dimensions(bad).open(world.beside("d")).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
    let world = World::new();
    assert_eq!(world.db.dimensions().unwrap(), None);
    world.add(text("t").vector(axis(0)));
    assert_eq!(world.db.dimensions().unwrap(), Some(4));
}

#[test]
fn queries_have_bounds() {
    let world = World::new();
    world.add(text("t").vector(axis(0)));
    let kind = |query: Query| world.ns.search(&query).map(drop).unwrap_err().kind();
    for k in [0, 1_001, 1_000_000_000] {
        assert_eq!(kind(Query::vector(axis(0)).k(k)), ErrorKind::Invalid);
    }
    for vector in [vec![0.0; 4], vec![f32::NAN; 4], vec![], vec![1.0; 5]] {
        assert_eq!(kind(Query::vector(vector)), ErrorKind::Invalid);
    }
    assert_eq!(kind(Query::text("words").mode(Mode::Vector)), ErrorKind::NoEmbedder);
    for limit in [0, 10_001] {
        let request = PageRequest { limit, ..PageRequest::default() };
        assert_eq!(world.ns.list(&request).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let request = PageRequest { cursor: Some("zz".to_owned()), ..PageRequest::default() };
    assert_eq!(world.ns.list(&request).unwrap_err().kind(), ErrorKind::Invalid);
    let empty = Forget::names(Vec::<String>::new());
    assert_eq!(world.ns.forget(empty).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let world = World::new();
    let open = |path: PathBuf| world.builder().open(path).unwrap_err().kind();
    assert_eq!(open(world.path().parent().unwrap().to_owned()), ErrorKind::NotADatabase, "a folder");
    for (name, bytes) in
        [("empty", vec![]), ("text", b"hello, world\n".to_vec()), ("noise", vec![0xa5; 70_000])]
    {
        std::fs::write(world.beside(name), &bytes).unwrap();
        assert_eq!(open(world.beside(name)), ErrorKind::NotADatabase, "{name}");
        assert_eq!(std::fs::read(world.beside(name)).unwrap(), bytes, "{name} was not touched");
    }
    assert_eq!(
        world.builder().create(false).open(world.beside("none")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert!(!world.beside("none").exists());
}

#[test]
fn every_error_has_a_kind_and_a_hint() {
    let path = PathBuf::from("m.oub");
    let io = || std::io::Error::other("no");
    let why = || "why".to_owned();
    let all = [
        (Error::invalid("f", "must", "v"), ErrorKind::Invalid, false),
        (Error::invalid("f", "must", "v").at_line(3), ErrorKind::Invalid, false),
        (Error::NotFound { what: "memory", name: why() }, ErrorKind::NotFound, false),
        (Error::KeyInOtherPartition { key: why(), partition: why() }, ErrorKind::KeyInOtherPartition, false),
        (Error::NoEmbedder, ErrorKind::NoEmbedder, false),
        (Error::CursorTooOld { oldest: 7 }, ErrorKind::CursorTooOld, false),
        (Error::BeforePurgeHorizon { known: Some(1), valid: None }, ErrorKind::BeforePurgeHorizon, false),
        (Error::Conflict { what: why(), why: why() }, ErrorKind::Conflict, false),
        (Error::Locked { path: path.clone() }, ErrorKind::Locked, true),
        (Error::NotADatabase { path: path.clone(), why: why() }, ErrorKind::NotADatabase, false),
        (Error::Format { found: 9, expected: 1 }, ErrorKind::Format, false),
        (Error::corrupted("t", b"k", "why"), ErrorKind::Corrupted, false),
        (Error::Policy { place: why(), why: why() }, ErrorKind::Policy, false),
        (Error::Io { action: "open", path, source: io() }, ErrorKind::Io, false),
        (Error::Retry { why: why() }, ErrorKind::Retry, true),
        (Error::Unavailable { why: why() }, ErrorKind::Unavailable, false),
        (Error::Closed, ErrorKind::Closed, false),
        (Error::ReadOnly, ErrorKind::ReadOnly, false),
        (Error::SnapshotExpired { lease_ms: 1 }, ErrorKind::SnapshotExpired, false),
    ];
    for (error, kind, retryable) in all {
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{error:?}");
        assert!(!error.hint().is_empty() && !error.to_string().is_empty(), "{error:?}");
        let below = std::error::Error::source(&error).map(ToString::to_string);
        assert!(below.is_none_or(|below| !error.to_string().contains(&below)), "said twice: {error:?}");
    }
}

/// A copy, a backup and an export make a file, and nobody wants to read there.
#[test]
fn a_folder_that_may_not_be_written_is_named_as_such() {
    for refused in [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::ReadOnlyFilesystem] {
        let hint = |action: &'static str| {
            Error::Io { action, path: PathBuf::from("m.oub"), source: refused.into() }.hint()
        };
        assert!(hint("create").contains("folder") && !hint("create").contains("--read-only"));
        assert!(hint("open").contains("--read-only"));
    }
}

/// Two tenants that write the same things in another order: what one does is never seen by the other.
#[derive(Clone, Debug)]
enum Deed {
    Add(usize, Option<usize>, bool),
    Forget(usize),
    Tag,
    Drop,
}

fn deeds() -> impl Strategy<Value = (bool, Deed)> {
    let add = (0..4_usize, proptest::option::of(0..3_usize), any::<bool>());
    let deed = prop_oneof![
        6 => add.prop_map(|(text, key, short)| Deed::Add(text, key, short)),
        1 => (0..3_usize).prop_map(Deed::Forget),
        1 => Just(Deed::Tag),
        1 => Just(Deed::Drop),
    ];
    (any::<bool>(), deed)
}

/// Everything that a tenant sees.
fn view(world: &World, ns: &NamespaceName) -> (Vec<oubliette::Memory>, Vec<(MemoryId, u32)>, u64, u64) {
    let request = PageRequest { scope: Scope::Any, limit: 1_000, ..PageRequest::default() };
    let rows = world.db.namespace(ns).unwrap().list(&request).unwrap().items;
    let hits = world.db.namespace(ns).unwrap().search(Query::vector([0.5; 4]).k(100)).unwrap().hits;
    assert!(hits.iter().all(|hit| rows.iter().any(|row| row.id == hit.id)), "a hit of another tenant");
    let hits = hits.iter().map(|hit| (hit.id, hit.score.to_bits())).collect();
    let stats = world.db.namespace(ns).unwrap().stats().unwrap();
    (rows, hits, stats.memories.live, stats.memories.tombstoned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tenants_never_see_each_other(deeds in proptest::collection::vec(deeds(), 1..25)) {
        let world = World::new();
        let tenants: [NamespaceName; 2] = ["a".parse().unwrap(), "b".parse().unwrap()];
        for (second, deed) in deeds {
            let (mine, theirs) = (&tenants[usize::from(second)], &tenants[usize::from(!second)]);
            let before = view(&world, theirs);
            match deed {
                Deed::Add(at, key, short) => {
                    let mut draft: Draft = text(&format!("text {at}")).vector(axis(at)).tag("t");
                    draft.key = key.map(|key| format!("k{key}"));
                    draft.expiry = short.then_some(Expiry::After(span("1h")));
                    world.db.namespace(mine).unwrap().add(draft).unwrap();
                }
                Deed::Forget(key) => drop(world.db.namespace(mine).unwrap().forget(Forget::names([format!("k{key}")])).unwrap()),
                Deed::Tag => drop(world.db.namespace(mine).unwrap().forget(Forget::tag("t")).unwrap()),
                Deed::Drop => drop(world.db.drop_namespace(mine)),
            }
            prop_assert_eq!(view(&world, theirs), before);
        }
    }
}

#[test]
fn ids_of_one_instant_ascend_and_tell_their_time() {
    let ids = RandomIds::default();
    let now: Time = "2026-01-02T03:04:05.678Z".parse().unwrap();
    let made: Vec<[u8; 16]> = (0..10_000).map(|_| ids.next(now).unwrap()).collect();
    assert!(made.is_sorted_by(|a, b| a < b), "RFC 9562, 6.2");
    for id in &made {
        let millis = id[..6].iter().fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte));
        assert_eq!((millis, id[6] >> 4, id[8] >> 6), (now.as_millis(), 7, 0b10), "a UUIDv7");
    }
    // A clock that steps back is believed.
    let before = Time::from_millis(now.as_millis() - 1);
    let next = |at| ids.next(at).unwrap();
    assert!(next(before) < made[0] && next(now) > next(before));
    let other = || RandomIds::default().next(now).unwrap();
    assert_ne!(other(), other());
}
