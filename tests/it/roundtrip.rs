//! Export, import into an empty store, export: equal bytes (MODEL-48, V-275).

use std::io::Cursor;

use crate::world::{World, axis, keeping, text};
use oubliette::embed::Embed;
use oubliette::exchange::Kept;
use oubliette::exchange::{Export, ParsedLine, VectorsTo, parse_line};
use oubliette::limits::LINKS_MAX;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::memory::{Attachment, AuthorKind, Entity, Link, Significance, SupersedeMode, Tier};
use oubliette::{Decision, Durability, Kind, Patch, Scope, WriteOptions};
use serde_json::json;

/// An export of all states.
fn export(world: &World) -> Vec<u8> {
    let mut out = Vec::new();
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    out
}

/// What the rows of an export became, none of which somebody has edited.
fn import(world: &World, lines: &[u8]) -> Vec<Option<Decision>> {
    let mut kept = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        kept.push(match parse_line(line, false).unwrap() {
            ParsedLine::Memory(memory) => Kept::Memory(memory),
            ParsedLine::Kept(line) => line.row,
            ParsedLine::Draft(draft) => panic!("{draft:?}"),
        });
    }
    let part = world.ns.recreate_part(kept).unwrap();
    assert_eq!((part.ahead, part.differing), (Vec::new(), Vec::new()));
    part.outcomes.into_iter().map(|outcome| outcome.map(|outcome| outcome.decision)).collect()
}

/// One memory of each sort that there is.
fn furnish(world: &World) {
    let target = world.add(text("target").vector([0.1, 0.2, 0.3, 0.4])).id;
    let mut rich = text("ein Text mit Ümläuten, \"quotes\" and\nlines").key("rich").tag("a").tag("b");
    rich = rich.vector([-0.3, 0.7, 1e-3, 12.5]).importance(0.1).significance(Significance::Core);
    rich =
        rich.metadata(json!({"z": 1, "a": [1.5, null, {"deep": "x"}]})).kind("custom:odd".parse().unwrap());
    rich.categories = Some(vec!["work".to_owned()]);
    rich.entities = Some(vec![Entity { name: "Ann".to_owned(), role: "subject".to_owned() }]);
    rich.links = Some(vec![Link { to: target, relation: "about".to_owned() }]);
    rich.sources = Some(vec![target]);
    rich.fields.valid_from = Some(world.ago("1h")).into();
    rich.fields.confidence = Some(0.3).into();
    rich.fields.retrieval_count = Some(3);
    world.add(rich);
    let mut message = text("hello").kind(Kind::Message);
    message.fields.author_kind = Some(AuthorKind::Human).into();
    message.fields.channel = Some("c1".to_owned()).into();
    let attachment = Attachment { media_type: "image/png".to_owned(), size: 7, blob_id: None };
    message.fields.attachments = Some(vec![attachment]);
    message.fields.embeds = Some(vec![Embed { url: "https://x.y/".to_owned(), title: Some("t".to_owned()) }]);
    world.add(message);
    world.add(text("shared").key("s1").tag("one"));
    world.add(text("shared").key("s2"));
    world.import(world.start_import(), vec![text("shared"), text("shared")]);
    world.add(text("internal").agent("perplexity").vector(axis(2)));
    world.add(text("short").tier(Tier::Working));
    world.add(text("ends").expiry(Expiry::After("1s".parse().unwrap())).key("ends"));
    world.advance("1m");
    world.add(text("version 1").key("k").vector(axis(1)));
    world.add(text("version 2").key("k").vector(axis(1)));
    let (twin, one) = (world.add(text("twin").tag("t")).id, world.add(text("one")).id);
    world.supersede(twin, one, SupersedeMode::Duplicate, None).unwrap();
    let ahead = world.add(text("what will be")).id;
    world.supersede(one, ahead, SupersedeMode::Replaced, Some(world.ahead("1h").as_millis())).unwrap();
    world.add(text("gone").key("gone"));
    world.forget(&["gone"]);
    world.ns.reinforce("rich", 4).unwrap();
    world
        .db
        .namespace(world.ns.name())
        .unwrap()
        .update("rich", Patch { tags: Some(vec!["c".to_owned()]), ..Patch::default() })
        .unwrap();
    world.ns.pin("s1", true).unwrap();
}

#[test]
fn v275_export_import_export_gives_equal_bytes() {
    let world = World::with(keeping);
    furnish(&world);
    world.check();
    let first = export(&world);
    let other = World::with(keeping);
    other.clock.set(world.now());
    let decisions = import(&other, &first);
    assert!(decisions.iter().flatten().all(|decision| *decision == Decision::Stored));
    other.check();
    let second = export(&other);
    let lines = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (a, b) in lines(&first).iter().zip(&lines(&second)) {
        assert_eq!(a, b);
    }
    assert_eq!(first, second);
    assert_eq!(lines(&first).len(), 16, "13 memories, a tombstone, a message and the run of an import");

    // What is found is the same as well, and so is what is said of it.
    for query in [axis(0), axis(1), axis(2), [0.3, 0.3, -0.1, 0.9]] {
        assert_eq!(world.find_in(query, 10, Scope::Any), other.find_in(query, 10, Scope::Any));
    }
    let mut stats = [&world, &other].map(|world| world.ns.stats().unwrap());
    for stats in &mut stats {
        (stats.bytes, stats.commit) = (Default::default(), 0);
    }
    assert_eq!(stats[0], stats[1]);
    assert_eq!(other.row("k").text, "version 2");
    assert_eq!(
        other.tombstone("gone").key_hashes.len(),
        1,
        "found by the HMAC of the key: the secret is the same"
    );

    let again = import(&other, &first);
    assert!(again.iter().flatten().all(|decision| *decision == Decision::Unchanged), "the same file again");
    assert_eq!(export(&other), second);
}

#[test]
fn an_import_of_an_export_refuses_what_was_used() {
    let world = World::new();
    let id = world.add(text("t").key("k")).id;
    let lines = export(&world);
    world.forget_id(id);
    let ParsedLine::Memory(memory) = parse_line(lines.trim_ascii_end(), false).unwrap() else { panic!() };
    let why = world.ns.recreate(vec![Kept::Memory(memory.clone())]).unwrap_err();
    assert_eq!(why.kind(), oubliette::ErrorKind::Conflict, "ids are never used again");
    let other = World::new();
    other.advance("1h");
    other.add(text("another").key("k"));
    let why = other.ns.recreate(vec![Kept::Memory(memory)]).unwrap_err();
    assert_eq!(why.kind(), oubliette::ErrorKind::Conflict, "the key is held");
}

/// A memory may have taken in more others than a write may name of anything else.
#[test]
fn model_48_a_memory_that_took_in_very_many_comes_back() {
    let world = World::with(|builder| builder.durability(Durability::Batch));
    let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let drafts = (0..LINKS_MAX + 2).map(|at| text("the queue is empty").key(format!("k{at}"))).collect();
    world.ns.add_all(drafts, &apart).unwrap();
    let options = MaintainOptions::live().passes([Pass::NearDuplicates]);
    world.ns.maintain_with(&MaintainOptions { destroy_max: Some(10_000), ..options }).unwrap();
    assert_eq!(world.live().len(), 1);
    let lines = export(&world);
    let other = World::new();
    import(&other, &lines);
    assert!(export(&other) == lines, "the exports differ");
    other.check();
}
