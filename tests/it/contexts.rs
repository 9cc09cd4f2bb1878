//! The inclusion log: what it counts, what it refuses, how long it stays, and how it travels.

use crate::world::{World, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{Bucket, ContextDraft, Inclusion, SupersedeMode, Tier};
use oubliette::{Database, ErrorKind, Memory, MemoryId, Namespace};

fn row(world: &World, id: MemoryId) -> Memory {
    world.ns.get(id).unwrap().unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 5e-7, "{found}, not {expected}");
}

/// Notes a context of one memory.
fn include(ns: &Namespace, context: &str, id: MemoryId) -> u64 {
    ns.context_log_write(&ContextDraft::new(context, [Inclusion::new(id, 10)])).unwrap().counted
}

#[test]
fn v113_to_v115_inclusions_decay_with_the_clock() {
    let world = World::new();
    let id = world.add(text("memory")).id;
    let version = row(&world, id).version;
    for (turn, (stored, total)) in [(1.0, 1), (1.716_531, 2), (2.229_948, 3)].into_iter().enumerate() {
        assert_eq!(include(&world.ns, &format!("turn {turn}"), id), 1);
        let found = row(&world, id);
        near(found.included_count_decay, stored);
        assert_eq!(
            (found.included_count_total, found.access_seq, found.access_count()),
            (total, total, total)
        );
        assert_eq!((found.last_included_at, found.last_accessed()), (Some(world.now()), world.now()));
        assert_eq!((found.version, found.retrieval_count), (version, 0));
        world.advance("7d");
    }
}

#[test]
fn v116_and_v123_a_context_that_comes_late_counts_in_full_and_moves_nothing_back() {
    let world = World::new();
    let id = world.add(text("memory")).id;
    let first = world.now();
    world.advance("7d");
    let later = world.now();
    include(&world.ns, "later", id);
    let mut early = ContextDraft::new("earlier", [Inclusion::new(id, 10)]);
    early.at = Some(first);
    assert_eq!(world.ns.context_log_write(&early).unwrap().counted, 1);
    let found = row(&world, id);
    near(found.included_count_decay, 2.0);
    assert_eq!(found.last_included_at, Some(later));
    // An instant ahead counts as now, or the count would never fall.
    early.id = "ahead".to_owned();
    early.at = Some(world.ahead("900d"));
    world.ns.context_log_write(&early).unwrap();
    assert_eq!(row(&world, id).last_included_at, Some(later));
}

#[test]
fn v124_a_context_is_counted_once() {
    let world = World::new();
    let id = world.add(text("memory").key("k")).id;
    let old = world.add(text("old")).id;
    world.supersede(old, id, SupersedeMode::Correction, None).unwrap();
    let nobody = MemoryId::from_bytes([9; 16]);
    let items = [
        Inclusion::new("k", 5).bucket(Bucket::Related),
        Inclusion::new(id, 7),
        Inclusion::new("k", 6),
        Inclusion::new(old, 1),
        Inclusion::new(nobody, 2),
        Inclusion::new("no such key", 3),
    ];
    let context = ContextDraft::new("turn", items);
    let first = world.ns.context_log_write(&context).unwrap();
    assert_eq!((first.counted, first.already), (1, false));
    assert_eq!(first.unknown, [old.to_string(), nobody.to_string(), "no such key".to_owned()]);
    assert_eq!(row(&world, id).included_count_total, 1);
    let again = world.ns.context_log_write(&context).unwrap();
    assert_eq!((again.counted, again.already, again.unknown), (1, true, first.unknown));
    // A later text under the key is another memory; the same call is the same call.
    world.add(text("newer").key("k"));
    assert!(world.ns.context_log_write(&context).unwrap().already);
    let other = ContextDraft::new("turn", [Inclusion::new("k", 5)]);
    assert_eq!(world.ns.context_log_write(&other).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(row(&world, id).included_count_total, 1);
    let log = world.ns.contexts(None, 10).unwrap().items;
    let tokens: Vec<u32> = log[0].items.iter().map(|item| item.tokens).collect();
    assert_eq!((log.len(), tokens), (1, vec![11, 7, 1, 2, 3]));
    assert!(world.ns.context_log_write(&ContextDraft::new("turn", [])).is_err());
    world.check();
}

#[test]
fn an_inclusion_before_the_end_moves_it() {
    let world = World::new();
    let id = world.add(text("memory").tier(Tier::Working)).id;
    world.advance("71h");
    let mut context = ContextDraft::new("turn", [Inclusion::new(id, 1)]);
    context.at = Some(world.now());
    world.advance("2h");
    assert!(!world.is_live(id));
    assert_eq!(world.ns.context_log_write(&context).unwrap().counted, 1);
    assert!(world.is_live(id));
    world.advance("80h");
    let late = world.ns.context_log_write(&ContextDraft::new("late", [Inclusion::new(id, 1)])).unwrap();
    assert_eq!((late.counted, late.unknown), (0, vec![id.to_string()]));
    world.check();
}

#[test]
fn a_memory_tells_its_contexts_and_so_does_its_tombstone() {
    let world = World::new();
    let id = world.add(text("memory").key("k")).id;
    for turn in 0..25 {
        include(&world.ns, &format!("turn {turn:02}"), id);
        world.advance("1m");
    }
    let story = world.ns.explain("k").unwrap();
    assert_eq!((story.contexts.items.len(), &story.contexts.items[0].context[..]), (20, "turn 24"));
    let rest = world.ns.contexts_of("k", story.contexts.next.as_deref(), 20).unwrap();
    let names: Vec<&str> = rest.items.iter().map(|one| &one.context[..]).collect();
    assert_eq!((names, rest.next), (vec!["turn 04", "turn 03", "turn 02", "turn 01", "turn 00"], None));
    world.forget_id(id);
    assert_eq!(world.ns.explain(id.to_string()).unwrap().contexts.items.len(), 20);
    world.check();
}

#[test]
fn the_pass_fold_ends_the_log_where_it_is_old() {
    let world = World::new();
    let id = world.add(text("memory")).id;
    include(&world.ns, "old", id);
    world.advance("80d");
    include(&world.ns, "new", id);
    world.advance("11d");
    let run = |options: MaintainOptions| {
        let report = world.ns.maintain_with(&options.passes([Pass::Fold])).unwrap();
        (report.passes[0].planned, report.passes[0].changed, report.passes[0].left)
    };
    assert_eq!(run(MaintainOptions::default()), (1, 0, 1));
    assert_eq!(run(MaintainOptions::live()), (1, 1, 0));
    let left = world.ns.contexts(None, 10).unwrap().items;
    assert_eq!((left.len(), &left[0].id[..]), (1, "new"));
    assert_eq!(row(&world, id).included_count_total, 2, "what was counted stays");
    world.check();
}

fn exported(db: &Database) -> Vec<u8> {
    let mut lines = Vec::new();
    let export = Export { all_states: true, ..Export::new(["default".parse().unwrap()]) };
    let report =
        export.write(&db.snapshot().unwrap(), &mut lines, "lines", VectorsTo::<std::io::Empty>::Lines);
    assert_eq!(report.unwrap().contexts, 2);
    lines
}

#[test]
fn an_export_carries_the_log_and_counts_nothing_twice() {
    let world = World::new();
    let id = world.add(text("memory").key("k")).id;
    let context = ContextDraft {
        session: Some("s".to_owned()),
        window_tokens: Some(8_000),
        ..ContextDraft::new("a", [Inclusion::new("k", 3).bucket(Bucket::Recent), Inclusion::new("none", 1)])
    };
    world.ns.context_log_write(&context).unwrap();
    world.advance("1d");
    include(&world.ns, "b", id);
    let lines = exported(&world.db);
    let other = World::new();
    other.advance("1d");
    let read = || LineReader::new(lines.as_slice(), "lines");
    Import::default().run(&other.db, read(), &mut ()).unwrap();
    assert_eq!(String::from_utf8(exported(&other.db)).unwrap(), String::from_utf8(lines.clone()).unwrap());
    assert_eq!(row(&other, id).included_count_total, 2);
    Import::default().run(&other.db, read(), &mut ()).unwrap();
    // The same call is known there as well.
    assert!(other.ns.context_log_write(&context).unwrap().already);
    assert_eq!(row(&other, id).included_count_total, 2);
    other.check();
    // A compact copy has it, and a dropped namespace takes it along.
    other.db.compact().unwrap();
    assert_eq!(other.ns.contexts(None, 10).unwrap().items.len(), 2);
    other.db.reindex().unwrap();
    other.check();
    other.db.drop_namespace("default").unwrap();
    other.check();
}

#[test]
fn an_inclusion_raises_no_confidence() {
    let world = World::new();
    let id = world.add(text("memory").confidence(0.4)).id;
    include(&world.ns, "turn", id);
    // An inclusion is no recall, so the confidence stays.
    assert_eq!(row(&world, id).confidence, Some(0.4));
}
