//! A text that takes the place of what a key says at an instant ahead is the key's own: from the instant on, what the key
//! shows is what it forgets, corrects and revises (LIFE-6).

use std::collections::BTreeSet;
use std::io::Cursor;

use crate::world::{World, assert_clean, span, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::{Expiry, PointInTime, Significance, SupersedeMode, Tier};
use oubliette::{
    Database, Decision, Draft, Forget, Kind, MemoryId, PageRequest, Patch, Scope, State, Time, WriteOptions,
};

fn texts(world: &World) -> BTreeSet<String> {
    world.live().iter().map(|id| world.row(id).text).collect()
}

fn said(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn replace_at(world: &World, new: &str, at: Time) -> MemoryId {
    let outcome = world.ns.replace(["home"], text(new), SupersedeMode::Replaced, Some(at)).unwrap();
    assert_eq!(outcome.key.as_deref(), Some("home"));
    outcome.id
}

/// A world where Bruges takes the place of Ghent in ten days: the two memories, and the instant.
fn moving() -> (World, MemoryId, MemoryId, Time) {
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent").key("home")).id;
    let at = world.ahead("10d");
    let bruges = replace_at(&world, "Ann lives in Bruges", at);
    world.advance("1d");
    assert_eq!((world.row("home").id, world.row("home").also), (ghent, Some(bruges)));
    world.check();
    (world, ghent, bruges, at)
}

/// What a caller does through the key, or to the memory, before the instant comes.
type Before = fn(&World, MemoryId);

/// Each of them, with what is true until the instant.
const BEFORE: [(&str, Before, &str); 9] = [
    ("nothing", |_, _| {}, "Ghent"),
    ("add", |world, _| drop(world.add(text("Ann lives in Rome").key("home"))), "Rome"),
    (
        "update",
        |world, _| drop(world.ns.update("home", Patch::new().text("Ann lives in Rome")).unwrap()),
        "Rome",
    ),
    (
        "replace",
        |world, _| {
            let rome = text("Ann lives in Rome");
            drop(world.ns.replace(["home"], rome, SupersedeMode::Replaced, None).unwrap());
        },
        "Rome",
    ),
    (
        "supersede",
        |world, _| {
            let rome = world.add(text("Ann lives in Rome")).id;
            world.ns.supersede_all(["home"], rome, SupersedeMode::Replaced, None).unwrap();
        },
        "Rome",
    ),
    (
        "replace ahead of it",
        |world, _| {
            replace_at(world, "Ann lives in Rome", world.ahead("1h"));
            world.advance("2h");
        },
        "Rome",
    ),
    ("pin", |world, _| drop(world.ns.pin("home", true).unwrap()), "Ghent"),
    ("touch", |world, _| drop(world.ns.touch(["home"], Expiry::Never).unwrap()), "Ghent"),
    (
        "writes, and writes again",
        |world, _| {
            world.add(text("Ann lives in Oslo").key("home"));
            world.ns.pin("home", true).unwrap();
            world.add(text("Ann lives in Rome").key("home"));
        },
        "Rome",
    ),
];

#[test]
fn life_6_what_a_key_shows_after_an_instant_ahead_is_what_it_forgets_and_revises() {
    for (name, before, until) in BEFORE {
        let world_then = || {
            let (world, ghent, bruges, at) = moving();
            before(&world, ghent);
            assert_eq!(texts(&world), said(&[&format!("Ann lives in {until}")]), "{name}");
            let row = world.row("home");
            assert_eq!((row.also, row.valid_to), (Some(bruges), Some(at)), "{name}");
            world.check();
            world.set(at.as_millis());
            assert_eq!((world.row("home").id, world.live()), (bruges, vec![bruges]), "{name}");
            world.check();
            (world, bruges)
        };
        let (world, bruges) = world_then();
        world.forget(&["home"]);
        assert!(world.live().is_empty(), "{name}: {:?}", texts(&world));
        assert!(world.get(bruges).unwrap().into_memory().is_none(), "{name}");
        world.check();

        let (world, bruges) = world_then();
        let ostend = world.add(text("Ann lives in Ostend").key("home"));
        assert_eq!(ostend.decision, Decision::Revised { old: bruges }, "{name}");
        assert_eq!((world.live(), world.row("home").id), (vec![ostend.id], ostend.id), "{name}");
        world.check();

        let (world, _) = world_then();
        world.ns.update("home", Patch::new().importance(0.9)).unwrap();
        world.advance("1h");
        world.ns.contradict("home", None).unwrap();
        assert!(world.live().is_empty(), "{name}");
        world.check();
    }
}

/// What a reader sees of a key.
fn shown(world: &World) -> impl PartialEq + std::fmt::Debug {
    let row = world.row("home");
    let fields = (row.metadata.clone(), row.kind.clone(), row.tier, row.importance, row.pinned);
    let rest = (row.tags.clone(), row.partition.clone(), row.valid_from, row.valid_to, row.confidence);
    (row.text.clone(), fields, rest, row.expires_at)
}

/// LIFE-6: a text to come keeps what the write under the key gave, as a text does that takes the place at once.
#[test]
fn life_6_a_text_to_come_keeps_what_the_key_gave() {
    let given = || {
        let mut draft = text("Ann lives in Ghent").key("home").tag("people").agent("planner");
        draft.fields.metadata = Some(serde_json::json!({"user_id": "ann"}));
        draft.fields.kind = Some("profile".parse().unwrap());
        draft.fields.tier = Some(Tier::Episodic);
        draft.fields.importance = Some(0.9);
        draft.fields.pinned = Some(true);
        draft
    };
    let first: [(&str, Option<Expiry>); 4] = [
        ("the end of its tier", None),
        ("no end", Some(Expiry::Never)),
        ("an end after the instant", Some(Expiry::After(span("20d")))),
        ("an end before the instant", Some(Expiry::After(span("5d")))),
    ];
    for (name, expiry) in first {
        let (ahead, then) = (World::new(), World::new());
        let at = ahead.ahead("10d");
        for world in [&ahead, &then] {
            world.add(Draft { expiry, ..given() });
        }
        replace_at(&ahead, "Ann lives in Bruges", at);
        ahead.check();
        then.set(at.as_millis());
        if name == "an end before the instant" {
            // By then the key is free, and the owner is known to the one that was announced.
            ahead.set(at.as_millis());
            let row = ahead.row("home");
            assert_eq!(
                (row.tags, row.expires_at, row.tier),
                (vec!["people".to_owned(), "pinned".to_owned()], Some(at.plus(span("30d"))), Tier::Episodic)
            );
            continue;
        }
        then.ns.replace(["home"], text("Ann lives in Bruges"), SupersedeMode::Replaced, Some(at)).unwrap();
        ahead.set(at.as_millis());
        assert_eq!(shown(&ahead), shown(&then), "{name}");
        ahead.check();
        // With the version before it.
        assert_eq!(ahead.forget_tag("people").forgotten, 2, "{name}");
        assert!(ahead.live().is_empty(), "{name}");
    }
}

/// LIFE-6: a text that follows one which is no longer true keeps what the key gave.
#[test]
fn life_6_a_text_after_the_end_of_another_keeps_what_the_key_gave() {
    for at in [None, Some("10d")] {
        let world = World::new();
        let owned = text("Bob lives in Ghent").key("home").tag("people");
        world.add(owned.metadata(serde_json::json!({ "user_id": "bob" })));
        world.advance("1d");
        world.ns.contradict("home", None).unwrap();
        world.advance("1d");
        let at = at.map(|span| world.ahead(span));
        let bruges = text("Bob lives in Bruges");
        let new = world.ns.replace(["home"], bruges, SupersedeMode::Replaced, at).unwrap().id;
        world.set(at.unwrap_or(world.now()).as_millis());
        let row = world.row("home");
        assert_eq!((row.id, row.tags.clone()), (new, vec!["people".to_owned()]), "{at:?}");
        assert_eq!((row.metadata["user_id"].as_str(), row.valid_to), (Some("bob"), None), "{at:?}");
        world.check();
    }
}

/// LIFE-6: a text that is to come after another one keeps what that one was given.
#[test]
fn life_6_a_text_to_come_keeps_what_the_one_before_it_was_given() {
    let world = World::new();
    world.add(text("Ann lives in Ghent").key("home").tag("people"));
    let bruges = text("Ann lives in Bruges").tag("coast");
    let (soon, late) = (world.ahead("5d"), world.ahead("10d"));
    world.ns.replace(["home"], bruges, SupersedeMode::Replaced, Some(soon)).unwrap();
    replace_at(&world, "Ann lives in Ostend", late);
    world.set(soon.as_millis());
    assert_eq!(world.row("home").tags, ["coast"]);
    world.set(late.as_millis());
    assert_eq!(
        (world.row("home").text.as_str(), world.row("home").tags),
        ("Ann lives in Ostend", vec!["coast".to_owned()])
    );
    world.check();
}

/// LIFE-6: what a key is given until the instant, the text to come has as if it were announced at the instant.
#[test]
fn life_6_a_text_to_come_keeps_what_the_key_is_given_before_it_comes() {
    fn patched(give: impl FnOnce(&mut Patch)) -> Patch {
        let mut patch = Patch::new();
        give(&mut patch);
        patch
    }
    type Give = fn() -> Patch;
    let gives: [(&str, Give); 9] = [
        ("an owner", || {
            let owner = serde_json::json!({"user_id": "ann"});
            Patch {
                tags: Some(vec!["people".into()]),
                ..patched(|patch| patch.fields.metadata = Some(owner))
            }
        }),
        ("a pin", || patched(|patch| patch.fields.pinned = Some(true))),
        ("a tier", || patched(|patch| patch.fields.tier = Some(Tier::Episodic))),
        ("a kind", || patched(|patch| patch.fields.kind = Some("profile".parse().unwrap()))),
        ("an importance", || patched(|patch| patch.fields.importance = Some(0.9))),
        ("an end after the instant", || Patch { expiry: Some(Expiry::After(span("20d"))), ..Patch::new() }),
        ("no end", || Patch { expiry: Some(Expiry::Never), ..Patch::new() }),
        ("the end of a tier", || {
            let tier = patched(|patch| patch.fields.tier = Some(Tier::Episodic));
            Patch { expiry: Some(Expiry::Tier), ..tier }
        }),
        ("a text and a tag", || Patch {
            tags: Some(vec!["people".into()]),
            ..Patch::new().text("Ann lives in Rome")
        }),
    ];
    // What the announcement itself gives, stays.
    let bruges: [fn() -> Draft; 2] =
        [|| text("Ann lives in Bruges"), || text("Ann lives in Bruges").tag("coast").importance(0.4)];
    for ((name, give), bruges) in gives.iter().flat_map(|give| bruges.iter().map(move |draft| (give, draft)))
    {
        let (ahead, then) = (World::new(), World::new());
        let (at, late) = (ahead.ahead("10d"), ahead.ahead("15d"));
        for world in [&ahead, &then] {
            world.add(text("Ann lives in Ghent").key("home").importance(0.2));
        }
        ahead.ns.replace(["home"], bruges(), SupersedeMode::Replaced, Some(at)).unwrap();
        replace_at(&ahead, "Ann lives in Ostend", late);
        // Another writer has the text that is to come, with its beginning: one row says it for both.
        let other = bruges().key("other").valid_from(at);
        ahead.add(Draft { tags: Some(vec!["strange".to_owned()]), ..other });
        for world in [&ahead, &then] {
            world.advance("1d");
            world.ns.update("home", give()).unwrap();
            world.check();
        }
        for world in [&ahead, &then] {
            world.set(at.as_millis());
        }
        then.ns.replace(["home"], bruges(), SupersedeMode::Replaced, Some(at)).unwrap();
        replace_at(&then, "Ann lives in Ostend", late);
        for at in [at, late] {
            for world in [&ahead, &then] {
                world.set(at.as_millis());
                world.check();
            }
            assert_eq!(shown(&ahead), shown(&then), "{name}");
        }
        assert_eq!(ahead.row("other").tags, ["strange"], "{name}");
    }
}

/// LIFE-6, MODEL-14: a text that is not true yet and is to be replaced later answers to its key, and is what a write changes.
#[test]
fn life_6_a_text_that_is_not_true_yet_is_changed_until_the_next_one_comes() {
    let later = |world: &World, new: &str| replace_at(world, new, world.ahead("9d"));
    let begin = || {
        let world = World::new();
        let from = world.ahead("5d");
        let ghent = world.add(text("Ann lives in Ghent").key("home").valid_from(from)).id;
        world.advance("1d");
        (world, ghent)
    };
    type Change = fn(&World);
    let changes: [(&str, Change); 3] = [
        ("update", |world| drop(world.ns.update("home", Patch::new().text("Ann lives in Rome")).unwrap())),
        ("add", |world| drop(world.add(text("Ann lives in Rome").key("home")))),
        ("replace", |world| {
            let rome = text("Ann lives in Rome");
            drop(world.ns.replace(["home"], rome, SupersedeMode::Replaced, Some(world.ahead("2d"))).unwrap());
        }),
    ];
    for (name, change) in changes {
        let (world, ghent) = begin();
        let bruges = later(&world, "Ann lives in Bruges");
        assert_eq!((world.row("home").id, world.row("home").also), (ghent, Some(bruges)), "{name}");
        change(&world);
        world.check();
        world.advance("5d");
        assert_eq!(texts(&world), said(&["Ann lives in Rome"]), "{name}");
        assert_eq!(world.row("home").text, "Ann lives in Rome", "{name}");
        world.check();
        world.advance("5d");
        assert_eq!((texts(&world), world.row("home").id), (said(&["Ann lives in Bruges"]), bruges), "{name}");
        world.check();
    }

    // What was to come is forgotten: the key leads to what will be true, and takes it along.
    let (world, ghent) = begin();
    let bruges = later(&world, "Ann lives in Bruges");
    world.ns.forget(bruges).unwrap();
    assert_eq!(world.row("home").id, ghent);
    world.check();
    later(&world, "Ann lives in Rome");
    let names = vec!["home".to_owned()];
    let what = Forget::Names {
        names,
        scope: Scope::Any,
        keep_history: true,
        also_merged: true,
        with_history: false,
    };
    assert_eq!(world.ns.forget(what).unwrap().forgotten, 1);
    world.check();
    world.advance("30d");
    assert!(texts(&world).is_empty());
}

/// LIFE-6: forgetting the key before the instant forgets what is true, and what was to come.
#[test]
fn life_6_a_key_forgets_what_it_says_and_what_it_will_say() {
    for (name, before, _) in BEFORE {
        // The memory that an id named belongs to another write.
        if name == "supersede" {
            continue;
        }
        for keep_history in [false, true] {
            let (world, ghent, bruges, at) = moving();
            before(&world, ghent);
            let names = vec!["home".to_owned()];
            let what = Forget::Names {
                names,
                scope: Scope::Any,
                keep_history,
                also_merged: true,
                with_history: false,
            };
            assert_eq!(world.ns.forget(what).unwrap().forgotten, 1, "{name}");
            assert!(world.live().is_empty(), "{name}, {keep_history}: {:?}", texts(&world));
            assert!(world.get(bruges).unwrap().into_memory().is_none(), "{name}");
            world.check();
            world.set(at.as_millis());
            assert!(world.live().is_empty(), "{name}, {keep_history}");
        }
    }
}

/// LIFE-6: several instants ahead, in any order: each text is true in its time, and all are the key's.
#[test]
fn life_6_a_key_has_several_texts_to_come() {
    for order in [["2d", "5d"], ["5d", "2d"]] {
        let (world, ..) = moving();
        for wait in order {
            replace_at(&world, &format!("Ann lives in {wait}"), world.ahead(wait));
            world.check();
        }
        let rome = world.add(text("Ann lives in Rome").key("home")).id;
        let times = [("1d", "Rome"), ("2d", "2d"), ("3d", "5d"), ("4d", "Bruges")];
        let mut seen = vec![rome];
        for (wait, there) in times {
            world.advance(wait);
            assert_eq!(texts(&world), said(&[&format!("Ann lives in {there}")]), "{order:?}");
            seen.push(world.row("home").id);
            world.check();
        }
        world.forget(&["home"]);
        assert!(seen.iter().all(|id| world.get(id).unwrap().into_memory().is_none()), "{order:?}");
        world.check();
    }
}

/// LIFE-6: the text that comes next is forgotten by its id. What is true still ends at that instant, and the text after it comes.
#[test]
fn life_6_a_text_to_come_is_forgotten_and_the_one_after_it_comes() {
    for write in [false, true] {
        let (world, ghent, bruges, _) = moving();
        let rome = replace_at(&world, "Ann lives in Rome", world.ahead("2d"));
        world.forget_id(rome);
        let mut said_now = ghent;
        if write {
            said_now = world.add(text("Ann lives in Ostend").key("home")).id;
        }
        assert_eq!((world.live(), world.row("home").id), (vec![said_now], said_now));
        world.check();
        for (wait, live) in [("2d", vec![]), ("7d", vec![bruges])] {
            world.advance(wait);
            assert_eq!((world.live(), world.row("home").id), (live, bruges), "{write}");
            world.check();
        }
        world.forget(&["home"]);
        assert!(world.live().is_empty());
        world.check();
    }
}

/// LIFE-6: another text is announced where the one that was to come has ended before it came.
#[test]
fn life_6_another_text_is_announced_in_the_place_of_one_that_has_ended() {
    let (world, ghent, bruges, at) = moving();
    let other = world.add(text("Ann lives with Bob")).id;
    let last = world.add(text("Ann lives alone")).id;
    world.supersede(other, last, SupersedeMode::Correction, None).unwrap();
    world.supersede(bruges, other, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(world.row("home").id, ghent);
    let rome = replace_at(&world, "Ann lives in Rome", at);
    world.check();
    world.set(at.as_millis());
    assert_eq!((world.live(), world.row("home").id), (vec![last, rome], rome));
    world.forget(&["home"]);
    assert_eq!(world.live(), [last]);
    world.check();
}

/// LIFE-6: where what the key said is gone before the instant, a text under the key is true at once, and what was to come
/// comes and is still the key's.
#[test]
fn life_6_a_text_between_the_end_of_one_and_the_beginning_of_the_next_leaves_the_next() {
    for gone in ["ended", "forgotten", "contradicted"] {
        for way in ["add", "update", "replace"] {
            let (world, ghent, bruges, at) = moving();
            match gone {
                "ended" => {
                    let end = Expiry::After("1h".parse().unwrap());
                    world.ns.touch(["home"], end).unwrap()[0].as_ref().unwrap();
                    world.advance("2h");
                    world.db.maintain().unwrap();
                }
                "forgotten" => drop(world.forget_id(ghent)),
                _ => drop(world.ns.contradict("home", None).unwrap()),
            }
            assert!(world.live().is_empty(), "{gone}");
            let ostend = match way {
                "add" => world.add(text("Ann lives in Ostend").key("home")),
                "update" => world.ns.update("home", Patch::new().text("Ann lives in Ostend")).unwrap(),
                _ => {
                    let ostend = text("Ann lives in Ostend");
                    world.ns.replace(["home"], ostend, SupersedeMode::Replaced, None).unwrap()
                }
            };
            assert_eq!(world.live(), [ostend.id], "{gone}, {way}");
            assert_eq!((world.row("home").id, world.row("home").also), (ostend.id, Some(bruges)));
            world.check();
            world.set(at.as_millis());
            assert_eq!((world.live(), world.row("home").id), (vec![bruges], bruges), "{gone}, {way}");
            world.forget(&["home"]);
            assert!(world.live().is_empty(), "{gone}, {way}");
            world.check();
        }
    }
    // Whoever says when the text begins corrects that text.
    let (world, ghent, bruges, _) = moving();
    world.forget_id(ghent);
    let mut later = Patch::new();
    later.fields.valid_from = Some(world.ahead("20d")).into();
    world.ns.update(bruges, later).unwrap();
    world.add(text("Ann lives in Ostend").key("home"));
    assert!(world.live().is_empty());
    world.advance("20d");
    assert_eq!(texts(&world), said(&["Ann lives in Ostend"]));

    let world = World::new();
    let mut conference = text("The conference is in Rome").key("conference");
    conference.fields.valid_from = Some(world.ahead("10d")).into();
    world.add(conference);
    world.add(text("The conference is in Oslo").key("conference"));
    assert!(world.live().is_empty());
    world.advance("10d");
    assert_eq!(texts(&world), said(&["The conference is in Oslo"]));
}

/// LIFE-6, MODEL-8: of two writers of a text one announces another text. The other keeps the old one.
#[test]
fn life_6_a_text_to_come_belongs_to_one_of_two_writers() {
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent").key("home")).id;
    world.add(text("Ann lives in Ghent").key("post"));
    let at = world.ahead("10d");
    let bruges = replace_at(&world, "Ann lives in Bruges", at);
    assert!(world.row("home").id != ghent && world.row("home").also == Some(bruges));
    world.set(at.as_millis());
    assert_eq!(texts(&world), said(&["Ann lives in Ghent", "Ann lives in Bruges"]));
    world.forget(&["home"]);
    assert_eq!((world.live(), world.row("post").id), (vec![ghent], ghent));
    world.check();
}

/// LIFE-6, LIFE-7: taken back, and what an import wrote before the instant undone.
#[test]
fn life_7_a_text_to_come_after_restore_and_undo() {
    // A restoration gives the key to the old text, as after any revision.
    let (world, ghent, bruges, at) = moving();
    assert_eq!(world.ns.restore("home").unwrap().replaced, [bruges]);
    world.set(at.as_millis());
    assert_eq!((world.row("home").id, world.live()), (ghent, vec![ghent]));
    assert_eq!(world.row(bruges).superseded_by(), Some(ghent));
    world.check();

    // So it does if another text takes the place of what comes then: that text is the key's own as well.
    let (world, ghent, bruges, at) = moving();
    let rome = text("Ann lives in Rome");
    let rome = world.ns.replace([bruges], rome, SupersedeMode::Replaced, None).unwrap().id;
    assert!(world.ns.restore("home").unwrap().keys_taken.is_empty());
    world.set(at.as_millis());
    assert_eq!((world.row("home").id, world.live()), (ghent, vec![ghent]));
    assert_eq!(world.row(rome).state, State::Superseded);
    world.check();

    let (world, ghent, bruges, at) = moving();
    let run = world.start_import();
    world.import(run, vec![text("Ann lives in Rome").key("home")]);
    world.ns.undo(run).unwrap();
    assert_eq!((world.row("home").id, world.row("home").also), (ghent, Some(bruges)));
    assert_eq!(world.row("home").valid_to, Some(at));
    world.check();
    world.set(at.as_millis());
    assert_eq!(world.live(), [bruges]);
    let ostend = world.add(text("Ann lives in Ostend").key("home"));
    assert_eq!((ostend.decision, world.live()), (Decision::Revised { old: bruges }, vec![ostend.id]));
    world.check();
}

/// LIFE-6, MODEL-48: a copy by an export of all states does the same before the instant, between, and after.
#[test]
fn model_48_a_copy_knows_what_is_to_come() {
    let copy = |world: &World| {
        let mut lines = Vec::new();
        let export = Export { namespaces: vec![world.ns.name().clone()], all_states: true };
        let snapshot = world.db.snapshot().unwrap();
        export.write(&snapshot, &mut lines, "out", VectorsTo::<Cursor<Vec<u8>>>::Lines).unwrap();
        let other: Database = world.builder().open(world.beside("copy.oub")).unwrap();
        Import::default().run(&other, LineReader::new(lines.as_slice(), "lines"), &mut ()).unwrap();
        assert_clean(&other);
        other
    };
    let live = |db: &Database, world: &World| -> Vec<String> {
        let items = db.namespace(world.ns.name()).unwrap().list(&Default::default()).unwrap().items;
        items.into_iter().map(|memory| memory.text).collect()
    };
    for gone in [false, true] {
        let (world, ghent, _, at) = moving();
        if gone {
            world.forget_id(ghent);
        }
        let other = copy(&world);
        let team = other.namespace(world.ns.name()).unwrap();
        team.add(text("Ann lives in Rome").key("home")).unwrap();
        assert_eq!(live(&other, &world), ["Ann lives in Rome"], "{gone}");
        world.set(at.as_millis());
        assert_eq!(live(&other, &world), ["Ann lives in Bruges"], "{gone}");
        team.forget("home").unwrap();
        assert!(live(&other, &world).is_empty(), "{gone}");
        assert_clean(&other);
    }
}

/// Once what was announced is over, its key still means it, whatever was done through the key before the instant.
#[test]
fn an_announced_text_that_is_over_is_what_its_key_held_last() {
    for announced in [true, false] {
        let world = World::new();
        world.add(text("Ann lives in Ghent").key("home"));
        let at = world.ahead("10d");
        if announced {
            replace_at(&world, "Ann lives in Bruges", at);
        }
        world.advance("1d");
        world.ns.update("home", Patch::new().tags(["moved"])).unwrap();
        world.advance("10d");
        if !announced {
            let bruges = text("Ann lives in Bruges");
            world.ns.replace(["home"], bruges, SupersedeMode::Replaced, None).unwrap();
        }
        world.advance("1d");
        world.ns.contradict("home", None).unwrap();
        world.advance("1d");
        assert_eq!(world.row("home").text, "Ann lives in Bruges", "announced: {announced}");
        assert!(world.ns.restore("home").is_err(), "announced: {announced}");
        world.check();
    }
}

/// A field that changes under the key changes nothing of what was known before: since the announcement the old text was known to end.
#[test]
fn what_was_known_of_an_announcement_does_not_change_with_a_field() {
    let (world, ..) = moving();
    let (known, later) = (world.now(), world.ahead("30d"));
    let of_then = || {
        let point = PointInTime { valid_at: Some(later), known_at: Some(known), ..PointInTime::default() };
        let page = world.ns.list(&PageRequest { at: point, ..PageRequest::default() }).unwrap();
        page.items.into_iter().map(|memory| memory.text).collect::<BTreeSet<_>>()
    };
    world.advance("1d");
    assert_eq!(of_then(), said(&["Ann lives in Bruges"]));
    world.ns.update("home", Patch::new().tags(["moved"])).unwrap();
    world.advance("1d");
    assert_eq!(of_then(), said(&["Ann lives in Bruges"]));
    world.check();
}

/// What is to come is replaced from its own beginning on: until then the old text is true.
#[test]
fn what_replaces_a_text_to_come_begins_with_it() {
    let (world, ghent, bruges, at) = moving();
    let early = world.ns.replace(
        [bruges],
        text("Ann lives in Rome"),
        SupersedeMode::Replaced,
        Some(world.ahead("1d")),
    );
    assert!(
        early.unwrap_err().to_string().contains("must not be before"),
        "Ghent is true until Bruges comes"
    );
    let rome =
        world.ns.replace([bruges], text("Ann lives in Rome"), SupersedeMode::Replaced, None).unwrap().id;
    assert_eq!((texts(&world), world.row("home").id), (said(&["Ann lives in Ghent"]), ghent));
    world.check();
    world.advance("10d");
    assert!(world.now() > at);
    assert_eq!((texts(&world), world.row("home").id), (said(&["Ann lives in Rome"]), rome));
    world.check();
}

/// MODEL-8: a key that led to a memory which a pass had united has said something since, and is to say another text at an instant ahead.
/// The undo of the pass leads it to nothing else, so it belongs to one current memory.
#[test]
fn an_undo_leaves_a_key_to_what_is_to_come() {
    let world = World::new();
    let apart = |draft: Draft| {
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let id = world.ns.add_all(vec![draft], &how).unwrap().remove(0).id;
        world.advance("1s");
        id
    };
    let status = |apps: usize| text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
    apart(status(4).key("other").significance(Significance::Core));
    let united = apart(status(7).key("gateway"));
    let ghent = apart(text("Ann lives in Ghent").key("home"));
    world.supersede(ghent, united, SupersedeMode::Replaced, None).unwrap();
    let run = world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap();
    world.advance("1s");
    let later = apart(text("The gateway is down").key("gateway"));
    let bonn = apart(text("Ann lives in Bonn").key("home"));
    let bruges = replace_at(&world, "Ann lives in Bruges", world.ahead("1d"));
    world.check();
    assert_eq!(world.ns.undo(run).unwrap().lost.len(), 1);
    world.check();
    assert_eq!((world.row(united).superseded_by(), world.row("gateway").id), (Some(later), later));
    assert_eq!(world.row("home").id, bonn);
    world.advance("1d");
    assert_eq!(world.row("home").id, bruges);
}

/// LIFE-6, MODEL-8: two keys say one memory, since a pass has united what they said. A text that takes the place of what one of them says, at an
/// instant ahead, and is to have the other key, takes the place of what that says as well.
#[test]
fn a_text_for_another_key_of_a_united_memory_takes_the_place_of_both() {
    let world = World::new();
    let status = |apps: usize| text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
    world.add(status(4).key("a"));
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(vec![status(7).key("b")], &how).unwrap();
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    assert_eq!(world.row("a").id, world.row("b").id);
    let at = world.ahead("1d");
    let down = text("The gateway is down").key("b");
    let down = world.ns.replace(["a"], down, SupersedeMode::Replaced, Some(at)).unwrap().id;
    world.check();
    for key in ["a", "b"] {
        assert_eq!(world.row(key).also, Some(down), "{key}");
    }
    world.advance("1d");
    assert_eq!((world.row("a").id, world.row("b").id, world.live()), (down, down, vec![down]));
}

/// A key has said two texts, and announces two. One that was said before comes back by its name: whatever the key has said and
/// announced since are earlier texts, whichever comes back first.
#[test]
fn life_7_an_earlier_text_of_a_key_comes_back_where_the_next_ones_are_announced() {
    for back in [[0, 1, 0], [1, 0, 1]] {
        let world = World::new();
        let said = ["Ghent", "Rome"].map(|city| {
            world.advance("1h");
            world.add(text(&format!("Ann lives in {city}")).key("home")).id
        });
        for (ahead, city) in [("10d", "Bruges"), ("20d", "Turin")] {
            replace_at(&world, &format!("Ann lives in {city}"), world.ahead(ahead));
        }
        for at in back {
            world.advance("1h");
            let report = world.ns.restore(said[at].to_string()).unwrap();
            assert_eq!(report.keys_taken, Vec::<String>::new());
            assert_eq!((world.live(), world.row("home").id), (vec![said[at]], said[at]), "{back:?}");
            assert_eq!(world.row(said[at]).valid_to, None);
            world.check();
        }
        world.advance("30d");
        assert_eq!(world.live(), [said[back[2]]]);
        world.check();
    }
}

/// A memory of somebody else, to which a key was led, stays to be replaced as it was announced when the key goes back.
#[test]
fn life_7_a_memory_of_others_is_replaced_at_its_instant_whatever_a_key_goes_back_to() {
    let world = World::new();
    let old = world.add(text("Ann lives in Ghent").key("home")).id;
    let other = world.add(text("Bob lives in Rome").key("bob")).id;
    world.supersede(old, other, SupersedeMode::Replaced, None).unwrap();
    world.advance("1h");
    let at = world.ahead("10d");
    let comes =
        world.ns.replace(["bob"], text("Bob lives in Oslo"), SupersedeMode::Replaced, Some(at)).unwrap().id;
    world.advance("1h");
    world.ns.restore(old.to_string()).unwrap();
    assert_eq!(
        (world.row("home").id, world.row("bob").id, world.row(other).valid_to),
        (old, other, Some(at))
    );
    world.advance("11d");
    assert_eq!(world.live().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([old, comes]));
    world.check();
}

/// A key has announced a text, and leads on from it to another one; what takes the place of its memory before that says the key's words
/// until then.
#[test]
fn life_6_a_key_goes_along_to_what_comes_before_its_own_text() {
    let world = World::new();
    for key in ["home", "other", "third"] {
        world.add(text(&format!("what {key} says")).key(key));
    }
    replace_at(&world, "the next home", world.ahead("20d"));
    world.add(text("what other says then").key("other").supersedes("home").valid_from(world.ahead("30d")));
    world.ns.supersede_all(["home"], "third", SupersedeMode::Replaced, Some(world.ahead("10d"))).unwrap();
    world.check();
    assert_eq!(world.row("home").text, "what home says");
    for says in ["what third says", "the next home", "what other says then"] {
        world.advance("10d");
        assert_eq!(world.row("home").text, says);
    }
}

/// An announced text that an earlier one has called off is announced again by its name: what the key says is true until then (LIFE-7).
#[test]
fn life_7_an_announced_text_comes_back_as_announced() {
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent").key("home")).id;
    let at = world.ahead("90d");
    let antwerp = replace_at(&world, "Ann lives in Antwerp", at);
    world.advance("1d");
    assert_eq!(world.ns.restore(ghent).unwrap().replaced, [antwerp]);
    world.check();
    world.advance("1d");
    assert_eq!(world.ns.restore(antwerp).unwrap().replaced, [ghent]);
    world.check();
    assert_eq!((world.live(), world.row("home").id), (vec![ghent], ghent));
    assert_eq!((world.row(ghent).valid_to, world.row("home").also), (Some(at), Some(antwerp)));
    world.advance("90d");
    assert_eq!((world.live(), world.row("home").id), (vec![antwerp], antwerp));
    world.check();
}
