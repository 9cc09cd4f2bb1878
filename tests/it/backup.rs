//! An export is a backup: what comes back from one is what was there, in every state, and whatever an import accepts is
//! whole.

use std::io::Cursor;

use crate::world::{World, axis, span, text};
use oubliette::embed::{Embedder, HashEmbedder, embedder_fn};
use oubliette::exchange::{Export, Import, ImportReport, LineReader, NpyReader, NpyWriter, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{AuthorKind, EventQuery, Field, GoalDraft, Link, SupersedeMode, Tier};
use oubliette::{Draft, ErrorKind, Forget, Kind, MemoryId, Mode, Outcome, Query, Result, Scope, State};
use serde_json::{Value, json};

fn export(world: &World, all_states: bool) -> String {
    let mut out = Vec::new();
    let export = Export { namespaces: world.db.namespaces().unwrap(), all_states };
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    String::from_utf8(out).unwrap()
}

fn import_by(world: &World, text: &str, batch_rows: usize) -> Result<ImportReport> {
    let import = Import { batch_rows, ..Import::default() };
    import.run(&world.db, LineReader::new(text.as_bytes(), "lines"), &mut ())
}

/// A new world at the same instant with what an export of all states brings; it exports the same bytes.
pub(crate) fn copy_of(world: &World) -> World {
    let lines = export(world, true);
    let mut copies: Vec<World> = [1, 7, 10_000]
        .into_iter()
        .map(|batch_rows| {
            let copy = World::new();
            copy.clock.set(world.now());
            copy.align_ids(world);
            let report = import_by(&copy, &lines, batch_rows).unwrap();
            assert_eq!((report.dangling, report.bad), (0, 0));
            let again = export(&copy, true);
            let other = lines.lines().zip(again.lines()).find(|(a, b)| a != b);
            assert!(lines == again, "in batches of {batch_rows}: {other:#?}");
            copy.check();
            assert_eq!(import_by(&copy, &lines, batch_rows).unwrap().stored, 0, "the same file again");
            assert_eq!(export(&copy, true), lines);
            copy
        })
        .collect();
    copies.pop().unwrap()
}

fn snapshot(world: &World, text: &str) -> Outcome {
    world.ns.push_snapshot(Draft::new(text), world.now()).unwrap()
}

fn profiles(world: &World) -> Vec<MemoryId> {
    let draft = |apps: u32| Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
    [4, 7, 9].into_iter().map(|apps| world.add(draft(apps).key(format!("k{apps}"))).id).collect()
}

fn maintain(world: &World, pass: Pass) -> RunId {
    world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap().run.unwrap()
}

fn message(text: &str, author: AuthorKind) -> Draft {
    let mut draft = Draft::new(text).kind(Kind::Message);
    draft.fields.author_kind = Field::Value(author);
    draft.fields.channel = Field::Value("ops".to_owned());
    draft
}

/// MODEL-20: a key whose later text was forgotten with its history kept answers with what it said before, and one that only led
/// there answers with nothing; in a copy, too, which can't read what the tombstones of another file hide.
#[test]
fn a_key_whose_later_text_was_forgotten_answers_in_a_copy_as_before() {
    let world = World::new();
    let keep_history = |key: &str| Forget::Names {
        names: vec![key.to_owned()],
        scope: Scope::Shared,
        keep_history: true,
        also_merged: true,
        with_history: false,
    };
    let first = world.add(text("Ann lives in Ghent").key("ann")).id;
    world.add(text("Ann lives in Bruges").key("ann"));
    let led = world.add(text("Bob walks").key("bob")).id;
    let next = world.add(text("Bob runs")).id;
    world.ns.supersede_all([led], next, SupersedeMode::Correction, None).unwrap();
    // What an import has put between the first text and the last leads on to the last.
    let of_import = world.add(text("Cy drinks tea").key("cy")).id;
    let run = world.start_import();
    world.import(run, vec![text("Cy drinks water").key("cy")]);
    world.add(text("Cy drinks wine").key("cy"));
    let before = copy_of(&world);
    for world in [&world, &before] {
        for key in ["ann", "cy"] {
            world.ns.forget(keep_history(key)).unwrap();
        }
        world.forget_id(next);
        world.ns.undo(run).unwrap();
        for world in [world, &copy_of(world), &copy_of(&copy_of(world))] {
            assert_eq!([world.row("ann").id, world.row("cy").id], [first, of_import]);
            assert_eq!(world.tombstone("bob").id, next);
            world.check();
        }
    }
}

/// MODEL-16: an instant counts as reached once something was committed at it, and a memory tells when it was written last. So what
/// was contradicted before the clock stepped back stays so in a copy. An instant that a caller gave is none of a commit.
#[test]
fn what_was_contradicted_before_the_clock_stepped_back_stays_so_in_a_copy() {
    let world = World::new();
    world.add(text("Ann lives in Ghent").key("k"));
    let begun = world.now();
    world.advance("5s");
    world.ns.contradict("k", None).unwrap();
    world.clock.set(begun.minus(span("1h")));
    assert!(world.live().is_empty());
    let copy = copy_of(&world);
    assert!(copy.live().is_empty());
    assert_eq!(copy.add(text("later")).decision, world.add(text("later")).decision);
    assert_eq!(copy.row(copy.live()[0]).recorded_at, world.row(world.live()[0]).recorded_at);

    let world = World::new();
    let mut draft = text("Ann lives in Ghent").key("k");
    draft.fields.updated_at = Some(world.ahead("1h"));
    draft.fields.valid_to = Field::Value(world.ahead("30m"));
    world.add(draft);
    assert_eq!((copy_of(&world).live(), world.live().len()), (world.live(), 1));
    // Of one that has left nothing tells what it gave.
    let mut far = text("Ann prefers tea").key("a");
    far.fields.updated_at = Some(world.ahead("365d"));
    world.add(far);
    world.add(text("Ann prefers tea").key("b"));
    world.forget(&["a"]);
    assert_eq!(copy_of(&world).live(), world.live());
}

/// V-292, MODEL-50: two snapshots of one day come back, and the replaced one can be restored in the copy.
#[test]
fn v292_a_replaced_snapshot_travels_and_returns() {
    let world = World::new();
    let old = snapshot(&world, "likes tea").id;
    world.advance("1m");
    let new = snapshot(&world, "likes coffee").id;
    assert_eq!(world.row(old).state, State::Limbo);
    let copy = copy_of(&world);
    let limbo = copy.row(old).limbo.unwrap();
    assert_eq!(limbo.replaced_by, Some(new));
    assert_eq!(limbo.tombstone, world.row(old).limbo.unwrap().tombstone);
    for world in [&world, &copy] {
        world.ns.restore(old.to_string()).unwrap();
        world.check();
    }
    assert_eq!(export(&world, true), export(&copy, true));
    // Past its horizon it goes from a copy as it goes from the original.
    let late = copy_of(&{
        let world = World::new();
        snapshot(&world, "likes tea");
        world.advance("1m");
        snapshot(&world, "likes coffee");
        world
    });
    late.advance("8d");
    let report = late.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    assert_eq!(report.passes[0].changed, 1);
}

/// MODEL-50: a run of maintenance is taken back in the copy, with holders, shares and links.
#[test]
fn a_run_is_taken_back_in_the_copy() {
    let world = World::new();
    let ids = profiles(&world);
    let mut link = text("about the gateway");
    link.links = Some(vec![Link { to: ids[2], relation: "about".to_owned() }]);
    world.add(link.vector(axis(1)));
    let before = export(&world, true);
    let run = maintain(&world, Pass::Collapse);
    assert_eq!(ids.iter().filter(|id| world.row(id).state == State::Limbo).count(), 2);
    let copy = copy_of(&world);
    for world in [&world, &copy] {
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.lost.len()), (2, 0));
        world.check();
    }
    assert_eq!(export(&world, true), export(&copy, true));
    assert_eq!(before.lines().count(), export(&copy, true).lines().count());
    // A run that was taken back is none that an export tells of.
    assert!(!export(&copy, true).contains("\"run\":{"));
    copy_of(&world);
}

/// MODEL-50: an import that could be taken back can be taken back in the copy.
#[test]
fn an_import_is_taken_back_in_the_copy() {
    let world = World::new();
    world.add(text("one").key("a"));
    let run = world.start_import();
    world.import(run, vec![text("two").key("a"), text("three"), message("hello", AuthorKind::Human)]);
    world.ns.finish_import(run).unwrap();
    let copy = copy_of(&world);
    for world in [&world, &copy] {
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.restored, undone.removed), (1, 3));
        world.check();
    }
    let shown = |world: &World| world.row("a").text;
    assert_eq!((shown(&world), shown(&copy)), ("one".to_owned(), "one".to_owned()));
    copy_of(&world);
}

/// MODEL-50: messages, the families of a bot and of a person, and their numbers; a repeat joins its family in the copy.
#[test]
fn messages_and_their_families_travel() {
    let world = World::new();
    for n in 0..5 {
        world.add(message("disk full on host 4", AuthorKind::Bot));
        world.add(message("good morning", AuthorKind::Human));
        world.add(message(&format!("alone {n} {}", "x".repeat(n)), AuthorKind::Human));
        world.advance("1m");
    }
    world.add(message("kept under a key", AuthorKind::Human).key("m"));
    let gone = world.add(message("to be forgotten", AuthorKind::Human)).id;
    world.forget_id(gone);
    let copy = copy_of(&world);
    let stats = |world: &World| {
        let stats = world.ns.stats().unwrap();
        (stats.events, stats.aggregates)
    };
    assert_eq!(stats(&world), stats(&copy));
    assert!(stats(&copy).1 >= 2, "{:?}", stats(&copy));
    let told = |world: &World| world.ns.events(&EventQuery::default()).unwrap().items;
    assert_eq!(told(&world), told(&copy));
    let bot = message("disk full on host 4", AuthorKind::Bot);
    for world in [&world, &copy] {
        assert_eq!(world.add(bot.clone()).decision.as_str(), "aggregated");
        assert_eq!(world.add(message("good morning", AuthorKind::Human)).decision.as_str(), "reinforced");
        world.check();
    }
    let count = |world: &World| {
        let page = world.ns.aggregates(None, 10).unwrap();
        page.items.iter().map(|aggregate| aggregate.dup_count).collect::<Vec<_>>()
    };
    assert_eq!(count(&world), count(&copy));
    copy_of(&world);
}

/// The union of what several holders brought is not bound as one draft is.
#[test]
fn unions_of_many_holders_travel() {
    let world = World::new();
    for k in 0..2 {
        let mut draft = text("equal text").key(format!("k{k}"));
        draft.tags = Some((0..40).map(|t| format!("tag-{k}-{t}")).collect());
        draft.categories = Some((0..600).map(|c| format!("c-{k}-{c}")).collect());
        world.add(draft);
        let mut draft = text("told without a key");
        draft.categories = Some((0..600).map(|c| format!("d-{k}-{c}")).collect());
        world.add(draft);
    }
    world.ns.pin("k0", true).unwrap();
    copy_of(&world);
}

/// Numbers of holders are never given out twice, in a copy neither.
#[test]
fn numbers_of_holders_travel() {
    let world = World::new();
    for key in ["a", "b", "c"] {
        world.add(text("equal").key(key));
    }
    world.forget(&["c"]);
    let copy = copy_of(&world);
    for world in [&world, &copy] {
        world.add(text("equal").key("d"));
    }
    assert_eq!(copy.row("d").holders.last().unwrap().number, 3);
    assert_eq!(export(&world, true), export(&copy, true));
}

/// Whatever superseded what, in whatever partition, and world time that was cut before it began.
#[test]
fn chains_of_superseders_travel() {
    let world = World::new();
    for version in 0..5 {
        world.add(text(&format!("version {version}")).key("k").vector(axis(version % 4)));
        world.advance("1s");
    }
    let ids: Vec<_> = ["z", "a", "m"].map(|agent| world.add(text(agent).agent(agent)).id).to_vec();
    let root = world.add(text("of all")).id;
    world.supersede(ids[0], ids[2], SupersedeMode::Correction, None).unwrap();
    world.supersede(ids[2], root, SupersedeMode::Duplicate, None).unwrap();
    world.supersede(ids[1], root, SupersedeMode::Replaced, None).unwrap();
    let mut ahead = text("not yet");
    ahead.fields.valid_from = Field::Value(world.ahead("1h"));
    let ahead = world.add(ahead).id;
    world.supersede(ahead, root, SupersedeMode::Replaced, None).unwrap();
    let copy = copy_of(&world);
    let instants = |row: &oubliette::Memory| (row.valid_from, row.valid_to, row.superseded);
    assert_eq!(instants(&copy.row(ahead)), instants(&world.row(ahead)));
}

/// An export of what is visible names nothing that is not in it.
#[test]
fn a_plain_export_is_whole() {
    let world = World::new();
    let a = world.add(text("a, version one").key("a")).id;
    let mut draft = text("b");
    draft.links = Some(vec![Link { to: a, relation: "about".to_owned() }]);
    draft.sources = Some(vec![a]);
    draft.fields.consolidated_from = Some(vec![a]);
    let b = world.add(draft).id;
    world.add(text("a, version two").key("a"));
    let lines = export(&world, false);
    assert!(!lines.contains(&a.to_string()), "{lines}");
    for batch_rows in [1, 100] {
        let copy = World::new();
        let report = import_by(&copy, &lines, batch_rows).unwrap();
        assert_eq!((report.stored, report.dangling), (2, 0));
        assert!(copy.row(b).links.is_empty() && copy.row(b).sources.is_empty());
        assert_eq!(export(&copy, false), lines);
        copy.check();
    }
}

/// A memory that was to give way at an instant ahead is still seen, and its key means it although what was to take its place
/// was forgotten: a write under the key replaces it, and one memory travels with the key.
#[test]
fn a_key_whose_next_memory_was_forgotten_travels_once() {
    let world = World::new();
    let old = world.add(text("Ann lives in Bonn").key("home")).id;
    let next = world.add(text("Ann lives in Ghent")).id;
    let at = world.ahead("1h");
    world.supersede(old, next, SupersedeMode::Replaced, Some(at.as_millis())).unwrap();
    world.forget_id(next);
    let said = world.add(text("Ann lives in Bruges").key("home")).id;
    let lines = export(&world, false);
    for batch_rows in [1, 100] {
        let copy = World::new();
        let report = import_by(&copy, &lines, batch_rows).unwrap();
        assert_eq!(report.stored, 1);
        let row = copy.row("home");
        assert_eq!((row.id, row.valid_to, row.keys.as_slice()), (said, Some(at), &["home".to_owned()][..]));
        assert_eq!(export(&copy, false), lines);
        copy.check();
    }
}

/// Links lead ahead in a file, over the batches of an import; what leads nowhere is left out and said.
#[test]
fn links_lead_ahead_and_never_nowhere() {
    let world = World::new();
    let (a, b) = (world.add(text("a").key("a")).id, world.add(text("b").key("b")).id);
    let link = |to| oubliette::Patch {
        links: Some(vec![Link { to, relation: "r".to_owned() }]),
        ..oubliette::Patch::default()
    };
    world.ns.update("a", link(b)).unwrap();
    world.ns.update("b", link(a)).unwrap();
    let lines = export(&world, true);
    copy_of(&world);
    let first: String = lines.lines().take(1).map(|line| format!("{line}\n")).collect();
    let copy = World::new();
    let report = import_by(&copy, &first, 10).unwrap();
    assert_eq!((report.stored, report.dangling), (1, 1));
    copy.check();
    // The rest of the file mends it.
    let report = import_by(&copy, &lines, 1).unwrap();
    assert_eq!((report.stored, report.unchanged, report.dangling), (1, 1, 0));
    assert_eq!(export(&copy, true), lines);
}

/// A machine whose clock is ahead takes the copy along; nothing is ahead of what a clock may be wrong by.
#[test]
fn times_ahead() {
    let world = World::new();
    world.advance("5s");
    world.add(text("harbour").key("k").vector(axis(0)));
    let copy = World::new();
    import_by(&copy, &export(&world, true), 10).unwrap();
    assert_eq!((copy.live().len(), copy.find(axis(0), 5).len()), (1, 1));
    copy.check();
    let late = World::new();
    world.advance("2d");
    world.add(text("too late"));
    let why = import_by(&late, &export(&world, true), 10).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Invalid);
    assert!(why.to_string().contains("recorded_at"), "{why}");
    assert!(late.db.namespaces().unwrap().is_empty() || late.live().is_empty());
}

/// What a line is turned into.
type Change = fn(&mut Value);

/// A line of the export with this id, changed.
fn changed(lines: &str, id: MemoryId, change: Change) -> String {
    let one = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if value["id"] == json!(id) {
            change(&mut value);
        }
        format!("{value}\n")
    };
    lines.lines().map(one).collect()
}

/// Lines that contradict themselves, with the field that the error names.
const HAND: &[(&str, Change)] = &[
    ("keys", |line| line["keys"] = json!([])),
    ("key", |line| line["key"] = json!("other")),
    ("key", |line| line["holders"][0]["key"] = json!("other")),
    ("tags", |line| line["tags"] = json!([])),
    ("tags", |line| line["holders"][0]["tags"] = json!(["u"])),
    ("categories", |line| line["categories"] = json!(["c"])),
    ("entities", |line| line["entities"] = json!([{"name": "n", "role": "r"}])),
    ("links", |line| {
        line["links"] = json!([{"to": "0198c0de-0000-7000-8000-000000000001", "relation": "r"}])
    }),
    ("pinned", |line| line["pinned"] = json!(true)),
    ("holders.number", |line| line["holders"][0]["number"] = json!(u32::MAX)),
    ("holders.number", |line| {
        let holder = line["holders"][0].clone();
        line["holders"] = json!([holder, holder]);
    }),
    ("next_holder", |line| line["next_holder"] = json!(0)),
    ("next_holder", |line| line["next_holder"] = json!(u32::MAX)),
    ("holders.count", |line| line["holders"][0]["count"] = json!(0)),
    ("holders.count", |line| line["holders"][0]["count"] = json!(2)),
    ("holders.from", |line| line["holders"][0]["from"] = line["id"].clone()),
    ("holders.since", |line| line["holders"][0]["since"] = json!("2030-01-01T00:00:00Z")),
    ("holders.since", |line| line["holders"][0]["since"] = json!("2020-01-01T00:00:00Z")),
    ("holders.fields", |line| line["holders"][0]["fields"] = json!(["ended_since"])),
    ("holders", |line| line["holders"] = json!([])),
    ("version", |line| line["version"] = json!(0)),
    ("version", |line| line["version"] = json!(u64::MAX)),
    ("reinforcement_count", |line| line["holders"][0]["share"] = json!(5)),
    ("state", |line| line["state"] = json!("superseded")),
    ("state", |line| line["state"] = json!("limbo")),
    ("state", |line| line["state"] = json!("expired")),
    ("state", |line| line["state"] = json!("tombstoned")),
    ("state", |line| line["removed_at"] = line["recorded_at"].clone()),
    ("limbo", |line| {
        line["removed_at"] = line["recorded_at"].clone();
        line["state"] = json!("limbo");
    }),
    ("limbo", |line| line["limbo"] = json!({"reason": "collapsed"})),
    ("superseded_by", |line| supersede(line, "0198c0de-0000-7000-8000-000000000001")),
    ("superseded_by", |line| {
        let id = line["id"].as_str().unwrap().to_owned();
        supersede(line, &id);
    }),
    ("superseded_by", |line| line["superseded_by"] = line["id"].clone()),
    ("valid_from_recorded_at", |line| line["valid_from_recorded_at"] = line["recorded_at"].clone()),
    ("announced_valid_to", |line| line["announced_at"] = line["recorded_at"].clone()),
    ("announced_valid_to", |line| {
        line["announced_at"] = line["recorded_at"].clone();
        line["announced_valid_to"] = line["recorded_at"].clone();
    }),
    ("superseded_via", |line| line["superseded_via"] = line["id"].clone()),
    ("overtaken", |line| line["overtaken"] = json!([{"by": line["id"], "at": line["recorded_at"]}])),
    ("valid_to_before", |line| line["valid_to_before"] = line["recorded_at"].clone()),
    ("valid_to", |line| {
        line["valid_from"] = json!("2026-01-01T00:00:00Z");
        line["valid_to"] = json!("2025-01-01T00:00:00Z");
    }),
    ("recorded_at", |line| line["recorded_at"] = json!("2030-01-01T00:00:00Z")),
    ("vector", |line| line["vector"] = json!([0.0, 0.0])),
    ("text", |line| line["text"] = json!("")),
];

/// Lines that contradict themselves are refused, naming line and field, and nothing of their batch is written.
#[test]
fn lines_made_by_hand_are_refused() {
    let world = World::new();
    world.add(text("filler"));
    let id = world.add(text("a").key("k").tag("t")).id;
    let lines = export(&world, true);
    for (at, (field, change)) in HAND.iter().enumerate() {
        let hand = changed(&lines, id, *change);
        assert_ne!(hand, changed(&lines, id, |_| {}), "case {at} changes something");
        let copy = World::new();
        let why = import_by(&copy, &hand, 100).expect_err(&format!("case {at}: {field}"));
        assert_eq!(why.kind(), ErrorKind::Invalid, "case {at}: {why}");
        assert!(why.to_string().starts_with(&format!("line 2: {field}: ")), "case {at}, {field}: {why}");
        assert!(copy.live().is_empty(), "case {at}: {field}");
        // Without it the others come in, and what is there is whole.
        let import = Import { skip_bad: true, ..Import::default() };
        let report = import.run(&copy.db, LineReader::new(hand.as_bytes(), "lines"), &mut ()).unwrap();
        assert_eq!((report.stored, report.bad), (1, 1), "case {at}: {field}");
        copy.check();
    }
}

fn supersede(line: &mut Value, by: &str) {
    line["superseded_at"] = line["recorded_at"].clone();
    line["superseded_by"] = json!(by);
    line["supersede_mode"] = json!("correction");
    line["state"] = json!("superseded");
}

/// Rows that contradict each other: circles, a tombstone of a memory, a key twice, an id twice.
#[test]
fn lines_that_contradict_each_other_are_refused() {
    let world = World::new();
    let (a, b) = (world.add(text("a").key("a")).id, world.add(text("b").key("b")).id);
    let lines = export(&world, true);
    let circle: String = lines
        .lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).unwrap();
            let by = if value["id"] == json!(a) { b } else { a };
            supersede(&mut value, &by.to_string());
            format!("{value}\n")
        })
        .collect();
    let why = import_by(&World::new(), &circle, 100).unwrap_err();
    assert!(why.to_string().contains("superseded_by"), "{why}");

    let stone = {
        let world = World::new();
        let id = world.add(text("a")).id;
        world.forget_id(id);
        export(&world, true)
    };
    let stone_of_a = {
        let mut value: Value = serde_json::from_str(stone.trim()).unwrap();
        value["tombstone"]["id"] = json!(a);
        format!("{value}\n")
    };
    for hand in [format!("{stone_of_a}{lines}"), format!("{lines}{stone_of_a}")] {
        let copy = World::new();
        let why = import_by(&copy, &hand, 100).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Conflict, "{why}");
        assert!(copy.live().is_empty());
    }

    // The key of a line belongs to a memory that is there.
    let copy = World::new();
    copy.advance("1h");
    let mine = copy.add(text("another").key("a")).id;
    let why = import_by(&copy, &lines, 100).unwrap_err().to_string();
    assert!(why.contains("line 1") && why.contains("key a") && why.contains(&mine.to_string()), "{why}");
    assert_eq!(copy.row("a").id, mine);

    // An id that stands twice is the same memory again.
    let copy = World::new();
    let report = import_by(&copy, &format!("{lines}{lines}"), 100).unwrap();
    assert_eq!((report.stored, report.unchanged), (2, 2));
}

/// Messages and runs that contradict each other, or name what is not there.
#[test]
fn messages_made_by_hand_are_refused() {
    let world = World::new();
    for _ in 0..3 {
        world.add(message("disk full on host 4", AuthorKind::Bot));
    }
    let run = world.start_import();
    world.import(run, vec![message("imported", AuthorKind::Human)]);
    profiles(&world);
    maintain(&world, Pass::Collapse);
    let lines = export(&world, true);
    let without = |what: &str| -> String {
        let kept = lines.lines().filter(|line| !line.contains(what));
        kept.map(|line| format!("{line}\n")).collect()
    };
    let sorts = ["\"aggregate\":{", "\"what\":\"import\"", "\"what\":\"maintain\"", "\"step\":{"];
    for what in sorts.into_iter().chain(["\"decision\":\"aggregated\"", "\"kind\":\"aggregate\""]) {
        let hand = without(what);
        assert_ne!(hand, lines, "{what}");
        for batch_rows in [1, 1_000] {
            let copy = World::new();
            let why = import_by(&copy, &hand, batch_rows).expect_err(what);
            assert_eq!(why.kind(), ErrorKind::Invalid, "without {what}: {why}");
            copy.check();
        }
    }
    for (from, to) in [
        ("\"dup_count\":3,\"time_span\":0,", "\"dup_count\":4,\"time_span\":0,"),
        ("\"dup_count\":3,\"time_span\":0,", "\"dup_count\":3,\"time_span\":1,"),
        ("\"example_snippets\":[\"", "\"example_snippets\":[\"evil "),
        ("\"authors_seen\":[]", "\"authors_seen\":[\"evil\"]"),
        ("\"count\":3", "\"count\":2"),
        ("\"steps\":1", "\"steps\":2"),
        ("\"op\":\"merge\"", "\"op\":\"update\""),
        ("\"decision\":\"aggregated\"", "\"decision\":\"lost\""),
    ] {
        let hand = lines.replacen(from, to, 1);
        assert_ne!(hand, lines, "{from}");
        let copy = World::new();
        let why = import_by(&copy, &hand, 1_000).expect_err(from);
        assert_eq!(why.kind(), ErrorKind::Invalid, "{from}: {why}");
        copy.check();
    }
    let earlier = |line: &str| match line.contains("\"aggregate\":{") {
        true => {
            line.replace("\"ts_first\":\"2", "\"ts_first\":\"1").replace("\"ts_last\":\"2", "\"ts_last\":\"1")
        }
        false => line.to_owned(),
    };
    let hand: String = lines.lines().map(|line| earlier(line) + "\n").collect();
    let why = import_by(&World::new(), &hand, 1_000).unwrap_err().to_string();
    assert!(why.contains("ts_first: must be the instants"), "{why}");
}

/// Namespaces of one file do not mix.
#[test]
fn namespaces_travel_together() {
    let world = World::new();
    let other = world.db.namespace("other").unwrap();
    world.add(text("one").key("k"));
    other.add(text("two").key("k").agent("x")).unwrap();
    let copy = copy_of(&world);
    assert_eq!(copy.db.namespaces().unwrap().len(), 2);
}

/// What maintenance removed takes nobody's place: in limbo nothing is joined.
#[test]
fn nothing_is_superseded_by_what_is_in_limbo() {
    let world = World::new();
    let old = snapshot(&world, "likes tea").id;
    world.advance("1m");
    snapshot(&world, "likes coffee");
    let mut draft = text("a note");
    draft.categories = Some(vec!["c".to_owned()]);
    let note = world.add(draft).id;
    let why = world.supersede(note, old, SupersedeMode::Correction, None).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Conflict);
    world.check();
}

/// The name of the space of a world.
fn space(world: &World) -> Option<String> {
    world.db.embedding_space().unwrap().map(|space| space.name)
}

fn nearest(world: &World, text: &str) -> (MemoryId, f32) {
    let query = Query { mode: Mode::Vector, ..text.into() };
    let hit = world.ns.search(query).unwrap().hits.remove(0);
    (hit.id, hit.signals.vector.unwrap())
}

fn vector_of(world: &World, id: MemoryId) -> Vec<f32> {
    world.ns.look_up(id, true).unwrap().into_memory().unwrap().vector.unwrap()
}

/// MODEL-48: a copy has the space of the original, whatever embedder the handle that imports suggests; another embedder
/// of the same dimensions would find what is far and miss what is near.
#[test]
fn a_copy_has_the_embedding_space_of_the_original() {
    let world = World::new();
    world.db.use_embedder(HashEmbedder::new()).unwrap();
    world.add(Draft::new("Ann prefers tea"));
    world.ns.set_goal(GoalDraft::new("Ship the release")).unwrap();
    let other = embedder_fn("other", HashEmbedder::new().dimensions(), |_: &[&str]| Ok(Vec::new())).unwrap();
    let copy = World::new();
    copy.clock.set(world.now());
    copy.db.suggest_embedder(other).unwrap();
    import_by(&copy, &export(&world, true), 10).unwrap();
    assert_eq!(space(&copy), space(&world));
    assert_eq!(export(&copy, true), export(&world, true));
    copy.db.use_embedder(HashEmbedder::new()).unwrap();
    assert_eq!(nearest(&copy, "Ann prefers tea"), nearest(&world, "Ann prefers tea"));
}

/// MODEL-48: a memory that is nothing but a vector of a former space comes back as it was, and a text whose vector is of
/// a former space waits for a new one, as after an undo.
#[test]
fn vectors_of_a_former_space_keep_no_copy_from_being_made() {
    let world = World::new();
    let bare = world.add(Draft::new("").key("bare").vector([1.0, 2.0, 3.0, 4.0])).id;
    world.add(Draft::new("Ann prefers tea").key("tea").vector([4.0, 3.0, 2.0, 1.0]));
    let working = Draft::new("Bob waits for the train").tier(Tier::Working).vector([1.0, 1.0, 2.0, 1.0]);
    world.add(working);
    world.advance("4d");
    let expired = maintain(&world, Pass::Expire);
    assert_eq!(world.db.reembed(HashEmbedder::new()).unwrap().skipped, 1);
    let copy = copy_of(&world);
    let lines = export(&world, true);
    assert!(
        lines.contains(r#""former_space":"caller""#) && lines.contains(r#""embedding_space":"hash-1@256""#)
    );
    assert_eq!(space(&copy), space(&world));
    assert_eq!(vector_of(&copy, bare), vector_of(&world, bare));
    for world in [&world, &copy] {
        world.db.use_embedder(HashEmbedder::new()).unwrap();
        world.ns.undo(expired).unwrap();
        world.db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
        world.check();
        assert!(nearest(world, "Bob waits for the train").1 > 0.99);
    }
}

/// The same with a NumPy file, whose rows all have the dimensions of the present space.
#[test]
fn a_vector_of_a_former_space_stands_in_its_line_beside_a_numpy_file() {
    let world = World::new();
    let bare = world.add(Draft::new("").vector([1.0, 2.0, 3.0, 4.0])).id;
    world.add(Draft::new("Ann prefers tea").vector([4.0, 3.0, 2.0, 1.0]));
    world.db.reembed(HashEmbedder::new()).unwrap();
    let dim = HashEmbedder::new().dimensions();
    let (mut lines, mut npy) = (Vec::new(), NpyWriter::new(Cursor::new(Vec::new()), dim, "v.npy").unwrap());
    let to = VectorsTo::Npy(&mut npy, dim);
    let all = Export { all_states: true, ..Export::new([world.ns.name().clone()]) };
    assert_eq!(all.write(&world.db.snapshot().unwrap(), &mut lines, "lines", to).unwrap().vectors, 2);
    let rows = npy.finish().unwrap().into_inner();
    let copy = World::new();
    copy.clock.set(world.now());
    let vectors = NpyReader::from_reader(rows.as_slice(), "v.npy").unwrap();
    let read = LineReader::new(lines.as_slice(), "lines");
    Import::default().run_with_vectors(&copy.db, read, Some(vectors), &mut ()).unwrap();
    assert_eq!(export(&copy, true), export(&world, true));
    assert_eq!(vector_of(&copy, bare), vector_of(&world, bare));
}

/// A file of another store stays importable: texts wait for vectors of the space of the store that takes them in.
#[test]
fn texts_of_another_space_wait_for_vectors_of_their_new_store() {
    let world = World::new();
    world.db.use_embedder(HashEmbedder::with_dimensions(64).unwrap()).unwrap();
    let tea = world.add(Draft::new("Ann prefers tea")).id;
    world.add(Draft::new("").vector(vec![1.0; 64]));
    let store = World::new();
    store.clock.set(world.now());
    store.align_ids(&world);
    store.db.use_embedder(HashEmbedder::new()).unwrap();
    store.add(Draft::new("Bob waits for the train"));
    let report = import_by(&store, &export(&world, true), 10).unwrap();
    assert_eq!((report.stored, report.vectors_left_out, report.vectors_apart), (2, 1, 1));
    store.check();
    store.db.maintain_with(&MaintainOptions::live().passes([Pass::Embed])).unwrap();
    assert_eq!(nearest(&store, "Ann prefers tea").0, tea);
}

/// What an import has changed for good is told by the undo in a copy as well: the counts of the run travel with it.
#[test]
fn an_undo_in_a_copy_names_what_it_does_not_bring_back() {
    let world = World::new();
    world.add(text("Ann prefers tea").key("ann").importance(0.2));
    let run = world.start_import();
    world.import(run, vec![text("Ann prefers tea").key("ann").importance(0.9), text("It rains").key("rain")]);
    let copy = copy_of(&world);
    let undone = [&world, &copy].map(|world| world.ns.undo(run).unwrap());
    let [here, there] = &undone;
    assert!(!here.lost.is_empty(), "{here:?}");
    assert_eq!((&here.lost, here.removed), (&there.lost, there.removed));
}
