//! What an operation costs as a database grows, in rows read and written: the same at any size.

#![cfg(feature = "faults")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod world;

use oubliette::faults::Tally;
use oubliette::limits::{DIM_MAX, STAGED_BYTES_MAX};
use oubliette::{Decision, Draft, Durability, Forget, MaintainOptions, Namespace, Pass, Query, WriteOptions};
use serde_json::json;
use world::{World, text};

/// Rows that `work` reads and writes.
fn cost(work: impl FnOnce()) -> Tally {
    let before = Tally::of_thread();
    work();
    let after = Tally::of_thread();
    Tally { read: after.read - before.read, written: after.written - before.written, ..after }
}

/// The larger may cost a little more: a page of a listing, a block that is full.
#[track_caller]
fn constant(small: Tally, large: Tally) {
    assert!(
        large.read <= small.read + 8 && large.written <= small.written + 8,
        "it grows: {small:?}, then {large:?}"
    );
}

fn world() -> World {
    World::with(|builder| builder.durability(Durability::Batch))
}

/// Adds drafts `from` to `to`, a hundred at a time.
fn fill(world: &World, from: usize, to: usize, draft: impl Fn(usize) -> Draft) {
    for from in (from..to).step_by(100) {
        let drafts = (from..to.min(from + 100)).map(&draft).collect();
        world.db.add_all(&world.ns, drafts, &Default::default()).unwrap();
    }
}

/// Look-ups by a key look at its newest version first, and at no other where that is current.
#[test]
fn a_key_revised_many_times() {
    let world = world();
    let say = |at: usize| text(&format!("status number {at}")).key("status");
    fill(&world, 0, 50, say);
    let add = |at: usize| cost(|| drop(world.add(say(at))));
    let get = || cost(|| drop(world.row("status")));
    let small = (add(50), get());
    fill(&world, 51, 1_000, say);
    constant(small.0, add(1_000));
    constant(small.1, get());
    assert_eq!(world.db.history(&world.ns, "status").unwrap().versions.len(), 1_001);
}

/// Whether anything else is in a category is asked of one row.
#[test]
fn forgetting_a_member_of_a_large_category() {
    let world = world();
    let say = |at: usize| Draft {
        categories: Some(vec!["work".to_owned()]),
        ..text(&format!("memory {at} of the crowd")).key(format!("k{at}"))
    };
    fill(&world, 0, 50, say);
    let forget =
        |at: usize| cost(|| drop(world.db.forget(&world.ns, Forget::names([format!("k{at}")])).unwrap()));
    let small = forget(7);
    fill(&world, 50, 2_000, say);
    constant(small, forget(8));
}

/// Each memory is superseded by the next, the last first: whether that closes a circle is not asked of the whole chain.
#[test]
fn superseding_at_the_end_of_a_long_chain() {
    let world = world();
    let ids: Vec<_> = (0..1_000).map(|at| world.add(text(&format!("version {at}"))).id).collect();
    let supersede = |at: usize| {
        cost(|| world.supersede(ids[at], ids[at + 1], oubliette::SupersedeMode::Correction, None).unwrap())
    };
    for at in (951..999).rev() {
        supersede(at);
    }
    let small = supersede(950);
    for at in (1..950).rev() {
        supersede(at);
    }
    constant(small, supersede(0));
    assert!(
        world.supersede(ids[999], ids[0], oubliette::SupersedeMode::Correction, None).is_err(),
        "a circle"
    );
}

/// Maintenance that finds nothing to do writes nothing, however often it runs, and reads as much for each namespace as for one.
#[test]
fn maintenance_with_nothing_to_do() {
    let world = world();
    let tenants = |from: usize, to: usize| {
        for at in from..to {
            let tenant: Namespace = format!("tenant-{at}").parse().unwrap();
            world.db.add(&tenant, text("a memory").kind(oubliette::Kind::Profile)).unwrap();
        }
    };
    let passes = [
        Pass::Snapshots,
        Pass::Collapse,
        Pass::NearDuplicates,
        Pass::VectorDuplicates,
        Pass::Supersession,
        Pass::Embed,
        Pass::Limbo,
    ];
    let run = || {
        let mut report = None;
        let cost = cost(|| report = Some(world.db.maintain(&passes, &MaintainOptions::live()).unwrap()));
        assert!(report.unwrap().passes.iter().all(|pass| pass.changed == 0));
        assert_eq!(cost.written, 0, "an idle run writes");
        cost.read
    };
    tenants(0, 4);
    let small = run();
    tenants(4, 64);
    let large = run();
    assert!(large <= small * 17, "{small} rows for 4 namespaces, {large} for 64");
    run();
    let before = world.db.compact().unwrap().bytes_after;
    run();
    assert_eq!(world.db.compact().unwrap().bytes_after, before);
}

/// Of many rows with an equal text a write looks at those alone that could stand for it, and tells of a few others.
#[test]
fn equal_texts_with_other_metadata() {
    let world = world();
    let say = |at: usize| text("user opened the settings page").metadata(json!({ "user_id": at }));
    let add = |at: usize| {
        let mut hints = 0;
        let cost = cost(|| hints = world.add(say(at)).hints.len());
        assert!((1..=10).contains(&hints), "{hints} hints");
        cost
    };
    fill(&world, 0, 50, say);
    let small = add(50);
    let again = |at: usize| cost(|| assert_eq!(world.add(say(at)).decision, Decision::Reinforced));
    let small_again = again(17);
    fill(&world, 51, 1_000, say);
    constant(small, add(1_000));
    // The one that is equal in all is found among all that are equal in their text.
    constant(small_again, again(517));
    constant(small_again, again(999));
    assert_eq!(world.live().len(), 1_001);
}

/// The same with rows that are equal in all, stored with dedup off: one of them takes the write in.
#[test]
fn equal_rows_stored_apart() {
    let world = world();
    let say = || text("user opened the settings page");
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let more = |count: usize| {
        let drafts = (0..count).map(|_| say()).collect();
        world.db.add_all(&world.ns, drafts, &apart).unwrap()
    };
    let first = more(50)[0].id;
    let add = || cost(|| assert_eq!(world.add(say()).id, first, "the oldest of those that are equal"));
    add();
    let small = add();
    more(1_000);
    constant(small, add());
}

/// Half of all rows go at once, and few blocks of them are decoded at any time.
#[test]
fn a_forget_of_many_rows_keeps_few_blocks() {
    const ROWS: usize = 1_200;
    let world = world();
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let vector = |at: usize| (0..DIM_MAX).map(|d| ((at * 31 + d) as f32).sin()).collect::<Vec<_>>();
    for from in (0..ROWS).step_by(100) {
        let say = |at: usize| text(&format!("memory {at} of the crowd")).tag(["kept", "gone"][at % 2]);
        let drafts = (from..from + 100).map(|at| say(at).vector(vector(at))).collect();
        world.db.add_all(&world.ns, drafts, &apart).unwrap();
    }
    let find = |at: usize, k: usize| {
        let query = Query { text: Some(format!("memory {at}")), ..Query::vector(vector(at)).k(k) };
        let hits = world.db.search(&world.ns, &query).unwrap().hits;
        (hits.len(), world.db.text(&world.ns, hits[0].id).unwrap().unwrap())
    };
    let last = ROWS - 1;
    assert_eq!(find(last, 1).1, format!("memory {last} of the crowd"));
    let kept = Tally::of_thread().staged;
    assert!((1..STAGED_BYTES_MAX).contains(&kept), "{kept} bytes by a hundred rows");
    assert_eq!(world.forget_tag("gone").forgotten, ROWS as u64 / 2);
    let kept = Tally::of_thread().staged;
    assert!(kept <= STAGED_BYTES_MAX, "{kept} bytes");
    assert_eq!(find(last - 1, 600), (ROWS / 2, format!("memory {} of the crowd", last - 1)));
    assert_ne!(find(last, 1).1, format!("memory {last} of the crowd"));
}
