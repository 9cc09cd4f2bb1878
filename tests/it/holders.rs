//! A row that several writers share: what is done through the key of one of them leaves the others their record
//! (MODEL-8, LIFE-6).

use std::collections::BTreeSet;

use crate::backup::copy_of;
use crate::world::{DIM, World, axis, ms, text};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::SupersedeMode;
use oubliette::memory::{AuthorKind, EventQuery, Expiry, Field, Tier, TombstoneReason};
use oubliette::{
    Decision, Draft, Error, ErrorKind, Filter, Forget, Kind, MemoryId, Patch, Scope, Span, State,
    WriteOptions,
};
use serde_json::json;

const WAITING: &str = "status: waiting";

/// A world where `t1`, `t2` and a write without a key share a row.
fn shared() -> (World, MemoryId) {
    let world = World::at(10);
    let id = world.add(text(WAITING).key("t1").tag("one").vector(axis(0))).id;
    world.add(text(WAITING).key("t2").tag("two"));
    assert_eq!(world.add(text(WAITING)).id, id);
    world.set(300);
    (world, id)
}

/// Texts of everything that is live.
fn texts(world: &World) -> BTreeSet<String> {
    world.live().iter().map(|id| world.row(id).text).collect()
}

fn said(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

/// MODEL-8, LIFE-6: each way to supersede by a key takes along that key's write and no other.
#[test]
fn model_8_a_supersession_by_key_takes_that_keys_write_alone() {
    type Way = fn(&World);
    let ways: [(&str, Way, &[&str]); 4] = [
        (
            "supersede_all",
            |world| {
                let new = world.add(text("parser done").key("p")).id;
                world.ns.supersede_all(["t1"], new, SupersedeMode::Replaced, None).unwrap();
            },
            &["p", "t1"],
        ),
        (
            "supersedes",
            |world| {
                let mut draft = text("parser done").key("p");
                draft.supersedes = vec!["t1".to_owned()];
                world.add(draft);
            },
            &["p", "t1"],
        ),
        (
            "replace",
            |world| {
                drop(world.ns.replace(["t1"], text("parser done"), SupersedeMode::Replaced, None).unwrap())
            },
            &["t1"],
        ),
        (
            "replace under another key",
            |world| {
                let draft = text("parser done").key("p");
                drop(world.ns.replace(["t1"], draft, SupersedeMode::Replaced, None).unwrap());
            },
            &["p", "t1"],
        ),
    ];
    for (way, supersede, keys) in ways {
        let (world, id) = shared();
        supersede(&world);
        assert_eq!(texts(&world), said(&[WAITING, "parser done"]), "{way}");
        let (done, kept) = (world.row("t1"), world.row("t2"));
        assert_eq!((done.text.as_str(), kept.id), ("parser done", id), "{way}");
        assert_eq!(done.keys, keys, "{way}");
        assert_eq!(kept.keys, ["t2"], "{way}");
        assert_eq!(
            (kept.tags, kept.holders.len()),
            (vec!["two".to_owned()], 2),
            "{way}: the keyless write stays"
        );
        // The earlier version of the key is its own.
        let history = world.ns.history("t1").unwrap();
        let versions: BTreeSet<_> =
            history.versions.iter().map(|version| world.row(version.id).text).collect();
        assert_eq!((history.versions.len(), versions), (2, said(&[WAITING, "parser done"])), "{way}");
        let apart =
            history.versions.iter().map(|version| version.id).find(|version| *version != done.id).unwrap();
        assert!(apart != id && world.row(apart).state == State::Superseded, "{way}");
        assert_eq!(world.row(apart).tags, ["one"], "{way}");
        world.check();

        // The other writer can now say something of its own, and each fact stays.
        world.ns.replace(["t2"], text("lexer done"), SupersedeMode::Replaced, None).unwrap();
        assert_eq!(texts(&world), said(&[WAITING, "parser done", "lexer done"]), "{way}");
        world.forget_id(id);
        assert_eq!(texts(&world), said(&["parser done", "lexer done"]), "{way}");
        world.check();
    }
}

/// LIFE-6: an id names the whole row, so all its writers go along.
#[test]
fn life_6_a_supersession_by_id_takes_every_write() {
    let (world, id) = shared();
    let new = world.add(text("parser done").key("p")).id;
    world.ns.supersede_all([id], new, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(texts(&world), said(&["parser done"]));
    assert_eq!(world.row("t1").id, new);
    assert_eq!(world.row("t2").id, new);
    world.check();
}

/// LIFE-6, LIFE-7: what a key superseded comes back to that key, and a repeat changes nothing.
/// A row has no more tags than one draft may have (MODEL-9).
#[test]
fn life_6_a_supersession_whose_tags_have_no_room_is_refused() {
    let world = World::new();
    let tagged = |key: &str| {
        let draft = text(&format!("Ann said {key}")).key(key);
        world.add((0..64).fold(draft, |draft, number| draft.tag(format!("{key}{number}")))).id
    };
    let (old, new) = (tagged("one"), tagged("two"));
    let error = world.ns.supersede_all([old], new, SupersedeMode::Duplicate, None).unwrap_err();
    assert!(matches!(&error, Error::Conflict { why, .. } if why.contains("more than 64 tags")), "{error}");
    for row in [old, new].map(|id| world.row(id)) {
        assert_eq!((row.state, row.tags.len()), (State::Live, 64));
    }
    world.check();
}

#[test]
fn life_7_a_write_that_was_set_apart_is_restored_and_undone() {
    let (world, id) = shared();
    let run = world.start_import();
    let mut draft = text("parser done").key("p");
    draft.supersedes = vec!["t1".to_owned()];
    let new = world.import(run, vec![draft.clone()])[0].id;
    let again = world.import(run, vec![draft]);
    assert_eq!((again[0].id, &again[0].decision), (new, &Decision::Unchanged));
    assert_eq!(world.ns.history("t1").unwrap().versions.len(), 2);
    world.ns.undo(run).unwrap();
    assert_eq!(texts(&world), said(&[WAITING]));
    let back = world.row("t1");
    assert!(back.id != id && back.keys == ["t1"]);
    assert_eq!(world.row("t2").id, id);
    world.check();

    let new = world.ns.replace(["t1"], text("parser done"), SupersedeMode::Replaced, None).unwrap();
    assert_eq!(new.decision, Decision::Revised { old: back.id });
    world.ns.restore(back.id).unwrap();
    assert_eq!(world.row("t1").id, back.id);
    world.forget_id(new.id);
    world.check();

    // Forgetting the key leaves nothing of it and nothing of the others is touched.
    world.ns.replace(["t1"], text("parser done"), SupersedeMode::Replaced, None).unwrap();
    world.forget(&["t1"]);
    assert_eq!(world.row(id).keys, ["t2"]);
    assert!(!texts(&world).contains("parser done"));
    world.check();
}

/// MODEL-8: two names of one row are two writes of it, and a memory does not supersede itself through a key.
/// DEDUP-56: what was said under a key is the same again, in whatever memory the key stands by now.
#[test]
fn dedup_56_the_same_write_again_takes_no_united_memory_apart() {
    let world = World::new();
    let drafts = || {
        let of = |key: &str, says: &str, vector: [f32; DIM]| text(says).key(key).vector(vector);
        let mut near = axis(0);
        near[1] = 0.01;
        vec![of("k1", "the cat sat on the mat", axis(0)), of("k2", "the cat sat  on the mat.", near)]
    };
    world.ns.add_all(drafts(), &WriteOptions::default()).unwrap();
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
    assert_eq!(world.live().len(), 1);
    for again in drafts() {
        assert_eq!(world.add(again).decision, Decision::Unchanged);
    }
    assert_eq!(world.live().len(), 1);
    world.check();
}

/// MODEL-33: the undo of an import leaves what was there before, with the changes of fields that it made.
#[test]
fn model_33_a_field_changed_through_a_key_of_several_does_not_make_the_write_one_of_the_import() {
    type Change = fn(Draft) -> Draft;
    let changes: [Change; 4] = [
        |draft| draft.importance(0.9),
        |draft| draft.expiry(Span::from_days(30)),
        |draft| draft.metadata(json!({"a": 1})),
        |draft| draft.vector(axis(1)),
    ];
    for change in changes {
        let world = World::new();
        let said = |key: &str| text("the cat sat").key(key);
        for key in ["k1", "k2"] {
            world.add(said(key));
        }
        let run = world.start_import();
        let outcome = world.import(run, vec![change(said("k2"))]).remove(0);
        assert_eq!(outcome.decision, Decision::Stored);
        let undone = world.ns.undo(run).unwrap();
        assert_eq!((undone.removed, undone.lost.len()), (0, 1), "{undone:?}");
        assert_eq!(world.row("k2").id, outcome.id);
        assert_eq!(world.row("k1").text, "the cat sat");
        world.check();
    }
}

/// MODEL-8: what only the writers said who have left, the others did not say.
#[test]
fn model_8_a_writer_that_leaves_takes_along_what_it_alone_said() {
    let said = |key: &str, channel: &str| {
        let mut draft = text("the cat sat").key(key).channel(channel).author_id("alice");
        draft.fields.happened_at = Field::Value(ms(1_000));
        draft
    };
    for apart in [false, true] {
        let world = World::new();
        world.add(said("k1", "ward of alice"));
        world.add(text("the cat sat").key("k2"));
        assert_eq!(world.live().len(), 1);
        if apart {
            world.add(text("the dog ran").key("k1"));
        } else {
            world.forget(&["k1"]);
            assert!(!world.has_bytes_of("ward of alice"));
        }
        let left = world.row("k2");
        assert_eq!((left.text.as_str(), left.channel, left.happened_at), ("the cat sat", None, None));
        world.check();
        // What another writer said as well stays.
        let world = World::new();
        for key in ["k1", "k2"] {
            world.add(said(key, "ward"));
        }
        world.forget(&["k1"]);
        assert_eq!(world.row("k2").channel.as_deref(), Some("ward"));
    }
}

/// MODEL-48: a copy knows as well which writers said what its memory says.
#[test]
fn model_48_a_copy_knows_what_a_writer_alone_said() {
    let said = |key: &str, channel: &str| {
        let mut draft = text("the cat sat").key(key).channel(channel).author_id(format!("author of {key}"));
        draft.fields.happened_at = Field::Value(ms(1_000));
        draft
    };
    let world = World::new();
    world.add(said("k1", "ward of alice"));
    world.add(said("k2", "ward of bob"));
    assert_eq!(world.live().len(), 1);
    let copy = copy_of(&world);
    let again = copy_of(&copy);
    for world in [world, copy, again] {
        assert_eq!(world.add(said("k1", "ward of alice")).decision, Decision::Unchanged);
        world.forget(&["k1"]);
        let left = world.row("k2");
        assert_eq!((left.channel, left.author_id, left.happened_at), (None, None, Some(ms(1_000))));
        assert!(!world.has_bytes_of("ward of alice"));
        world.check();
    }
}

#[test]
fn model_8_several_keys_of_one_row() {
    let (world, id) = shared();
    let new = world.add(text("all done")).id;
    world.ns.supersede_all(["t1", "t2"], new, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(texts(&world), said(&[WAITING, "all done"]));
    assert!(world.row(id).keys.is_empty());
    assert_eq!(world.row(new).keys, ["t1", "t2"]);
    world.check();

    let (world, _) = shared();
    let why = world.ns.supersede_all(["t1"], "t2", SupersedeMode::Replaced, None).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Conflict);
    assert_eq!(texts(&world), said(&[WAITING]));
    assert_eq!(world.row("t1").keys, ["t1", "t2"]);
    world.check();
}

/// MODEL-8: a contradiction or a pin through a key is a change of that key's write.
#[test]
fn model_8_contradict_and_pin_by_key_leave_the_others() {
    let (world, id) = shared();
    world.ns.contradict("t1", None).unwrap();
    assert_eq!(world.live(), [id]);
    assert_eq!(world.row("t2").valid_to, None);
    assert_eq!(world.row("t1").valid_to, Some(world.now()));
    world.check();

    let (world, id) = shared();
    let pinned = world.ns.pin("t1", true).unwrap();
    assert_eq!(pinned.key.as_deref(), Some("t1"));
    assert!(world.row("t1").is_protected() && !world.row("t2").is_protected());
    world.check();

    // By id the memory is changed for all, and a key that lets go keeps it for the others.
    world.ns.pin(id, true).unwrap();
    let loose = world.ns.pin("t2", false).unwrap().id;
    assert!(
        world.row("t1").is_protected() && world.row(id).is_protected() && !world.row("t2").is_protected()
    );
    world.forget_id(loose);
    world.add(text(WAITING).key("t2"));
    world.check();
    assert_eq!(world.row("t2").id, id);
    world.ns.contradict(id, None).unwrap();
    assert_eq!(world.live(), [pinned.id]);
    world.check();

    // A key that only leads to the text of others has no write there to change.
    let world = World::at(10);
    let old = world.add(text("Ann lives in Ghent").key("home")).id;
    let new = world.add(text("Ann lives in Bruges").key("bruges")).id;
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    for refused in [world.ns.contradict("home", None), world.ns.pin("home", true)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    }
}

/// DEDUP-55, LIFE-56, V-317: a write that named no end does not end with a row to which another writer gave one.
#[test]
fn dedup_55_a_write_without_an_end_outlives_one_that_has_one() {
    for (first, second) in [(Some("t1"), Some("t2")), (None, None)] {
        let world = World::new();
        let named = |key: Option<&str>| match key {
            Some(key) => text("Ann is allergic to nuts").key(key),
            None => text("Ann is allergic to nuts"),
        };
        let short = world.add(named(first).expiry(Expiry::After("1h".parse().unwrap()))).id;
        world.advance("10m");
        let long = world.add(named(second));
        assert_eq!(long.decision, Decision::Stored);
        assert_eq!(
            long.hints.iter().map(|hint| (hint.id, hint.why)).collect::<Vec<_>>(),
            [(short, "equal content, ends earlier")]
        );
        // Whoever says it again without an end joins the one that lives on.
        assert_eq!(world.add(named(None)).id, long.id);
        world.advance("49m");
        assert_eq!(world.live(), [short, long.id]);
        world.advance("1m");
        assert_eq!(world.live(), [long.id]);
        assert_eq!(world.row(long.id).expires_at, None);
        world.check();
        world.db.maintain().unwrap();
        assert_eq!(world.tombstone(short).reason, TombstoneReason::Expired);
        world.check();
    }

    // Forgetting the longer one leaves the promise of the shorter one.
    let world = World::new();
    let short = world.add(text("omega fact").key("o1").expiry(Expiry::After("1h".parse().unwrap()))).id;
    world.add(text("omega fact").key("o2"));
    world.forget(&["o2"]);
    assert_eq!(world.live(), [short]);
    world.advance("1h");
    assert!(world.live().is_empty());

    // An end that a caller names is the later of both, and an end of the tier's that comes sooner changes nothing.
    let world = World::new();
    let day = |days: &str| Expiry::After(days.parse().unwrap());
    let id = world.add(text("delta").expiry(day("1h"))).id;
    assert_eq!(world.add(text("delta").expiry(day("9h"))).id, id);
    assert_eq!(world.row(id).expires_at, Some(world.ahead("9h")));
    assert_eq!(world.add(text("delta").expiry(Expiry::Never)).id, id);
    assert_eq!(world.row(id).expires_at, None);
    assert_eq!(world.add(text("delta")).id, id);
    world.check();
}

/// A world with an aggregate of three messages: its memory, and that of the first message.
fn spam() -> (World, MemoryId, MemoryId) {
    let world = World::new();
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(world.add(spamming()).id);
        world.advance("1m");
    }
    assert_eq!(all[1], all[2]);
    (world, all[1], all[0])
}

fn spamming() -> Draft {
    let mut draft = text("spam nebula-orchid-77 run").kind(Kind::Message).tag("sp");
    draft.fields.author_kind = Some(AuthorKind::Bot).into();
    draft.fields.author_id = Some("botty".to_owned()).into();
    draft.fields.channel = Some("ops".to_owned()).into();
    draft
}

/// MODEL-30: the first message of an aggregate says what the aggregate says, so it goes with it.
#[test]
fn model_30_an_aggregate_is_forgotten_with_its_first_message() {
    type Way = fn(&World, MemoryId) -> Forget;
    let ways: [(&str, Way); 3] = [
        ("id", |_, id| Forget::names([id.to_string()])),
        ("key", |world, id| Forget::names(world.row(id).keys)),
        ("filter", |_, _| Forget::filter(Filter::parse(r#"{"kind": "aggregate"}"#).unwrap(), Scope::Any)),
    ];
    for (name, way) in ways {
        let (world, aggregate, first) = spam();
        assert_eq!(world.row(first).state, State::Superseded);
        let what = way(&world, aggregate);
        let plan = world.ns.forget_plan(what.clone()).unwrap();
        assert_eq!((plan.live, plan.superseded), (1, 1), "{name}");
        let answer = world.ns.forget(what).unwrap();
        assert_eq!((answer.forgotten, answer.versions_left), (1, 0), "{name}");
        assert!(answer.derived.is_empty(), "{name}");
        for id in [aggregate, first] {
            assert_eq!(world.tombstone(id).reason, TombstoneReason::Forget, "{name}");
        }
        assert!(world.ns.restore(first).is_err(), "{name}");
        world.check();
        world.db.compact().unwrap();
        let bytes = std::fs::read(world.path()).unwrap();
        assert!(!bytes.windows(16).any(|window| window == b"nebula-orchid-77"), "{name}");
    }

    // Whoever keeps what was merged is told of it.
    let (world, aggregate, first) = spam();
    let names = vec![aggregate.to_string()];
    let what = Forget::Names {
        names,
        scope: Scope::Any,
        keep_history: false,
        also_merged: false,
        with_history: false,
    };
    assert_eq!(world.ns.forget(what).unwrap().versions_left, 1);
    assert_eq!(world.row(first).state, State::Superseded);
    world.check();
}

/// MODEL-27, MODEL-30: a tag is brought by the memory of the first message. Forgetting by it, or by a filter on it, leaves
/// an aggregate that counts the messages that came, and shows none of what was said by what is gone.
#[test]
fn model_27_an_aggregate_counts_its_messages_after_its_members_are_forgotten() {
    let tagged = || Forget::filter(Filter::parse(r#"{"tags": "sp"}"#).unwrap(), Scope::Any);
    for (name, what) in [("tag", Forget::tag("sp")), ("filter", tagged())] {
        let (world, aggregate, first) = spam();
        let counted = world.ns.aggregates(None, 10).unwrap().items[0].clone();
        let answer = world.ns.forget(what).unwrap();
        assert!(answer.tombstones.contains(&first), "{name}: {answer:?}");
        world.check();
        let left = world.ns.aggregates(None, 10).unwrap().items[0].clone();
        let events = world.ns.events(&EventQuery::of_aggregate(counted.id)).unwrap().items;
        assert_eq!((left.dup_count, events.len()), (3, 3), "{name}");
        let memory = world.row(aggregate);
        assert_eq!((memory.state, &memory.metadata["dup_count"]), (State::Live, &3.into()), "{name}");
        assert_eq!(answer.derived, [aggregate], "{name}: it may still carry the text");
        assert_eq!(events.iter().filter(|event| event.payload.is_none()).count(), 1, "{name}");
        // What is said once more begins a count of its own.
        world.add(spamming());
        assert_eq!(world.ns.aggregate(counted.id).unwrap().dup_count, 3, "{name}");
        world.check();
    }
}

/// A world where Paris takes the place of Ghent in an hour: the two memories.
fn moving() -> (World, MemoryId, MemoryId) {
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent").key("home").tag("ann")).id;
    let paris = world.add(text("Ann lives in Paris")).id;
    let at = world.ahead("1h").as_millis();
    world.supersede(ghent, paris, SupersedeMode::Replaced, Some(at)).unwrap();
    world.advance("10m");
    (world, ghent, paris)
}

/// LIFE-6, V-211: until a supersession ahead the key means the old text, for every reader and writer.
#[test]
fn life_6_a_key_means_what_is_true_until_a_supersession_ahead() {
    let (world, ghent, paris) = moving();
    let row = world.row("home");
    assert_eq!((row.id, row.also), (ghent, Some(paris)), "both ids are shown");
    world.advance("50m");
    assert_eq!((world.row("home").id, world.row("home").also), (paris, None));

    // A write in between says what is true until then.
    type Way = fn(&World) -> MemoryId;
    let ways: [(&str, Way); 4] = [
        ("add", |world| world.add(text("Ann lives in Rome").key("home")).id),
        ("update", |world| {
            world.ns.update("home", oubliette::Patch::new().text("Ann lives in Rome")).unwrap().id
        }),
        ("replace", |world| {
            let rome = text("Ann lives in Rome");
            world.ns.replace(["home"], rome, SupersedeMode::Replaced, None).unwrap().id
        }),
        ("supersede", |world| {
            let rome = world.add(text("Ann lives in Rome")).id;
            world.ns.supersede_all(["home"], rome, SupersedeMode::Replaced, None).unwrap();
            rome
        }),
    ];
    for (name, way) in ways {
        let (world, ghent, paris) = moving();
        let until = world.ahead("50m");
        let rome = way(&world);
        assert_eq!(texts(&world), said(&["Ann lives in Rome"]), "{name}");
        let row = world.row("home");
        assert_eq!((row.id, row.also, row.valid_to), (rome, Some(paris), Some(until)), "{name}");
        assert!(!world.is_live(ghent) && row.keys.contains(&"home".to_owned()), "{name}");
        world.check();
        // Once more, and then the instant comes.
        let oslo = world.add(text("Ann lives in Oslo").key("home")).id;
        assert!(world.row("home").id == oslo && world.is_live(oslo), "{name}");
        world.advance("50m");
        assert_eq!(texts(&world), said(&["Ann lives in Paris"]), "{name}");
        assert_eq!(world.row("home").id, paris, "{name}");
        world.check();
        // All that the key said goes with the key.
        world.forget(&["home"]);
        assert!(
            world.get(oslo).unwrap().into_memory().is_none()
                && world.get(ghent).unwrap().into_memory().is_none()
        );
        assert_eq!(texts(&world), said(&["Ann lives in Paris"]), "{name}: another write said it");
        world.check();
    }
}

/// The same where what takes the place of the text is true already, for others.
#[test]
fn life_6_a_key_does_not_go_before_its_instant_to_what_has_begun() {
    let world = World::new();
    world.add(text("Bob lives in Rome").key("bob"));
    world.advance("1m");
    world.ns.replace(["bob"], text("Bob lives in Oslo").key("bob"), SupersedeMode::Replaced, None).unwrap();
    let ghent = world.add(text("Ann lives in Ghent").key("home")).id;
    let at = world.ahead("1h").as_millis();
    let oslo = world.row("bob").id;
    world.supersede(ghent, oslo, SupersedeMode::Replaced, Some(at)).unwrap();
    world.advance("10m");
    assert_eq!((world.row("home").id, world.row("home").also), (ghent, Some(oslo)));
    let paris = world.add(text("Ann lives in Paris").key("home")).id;
    assert_eq!(world.row("home").id, paris);
    assert!(!world.is_live(ghent) && world.live().len() == 2);
    world.check();
    world.forget(&["home"]);
    assert_eq!(world.live(), [oslo]);
    world.check();
}

/// A key that only led to a memory has said nothing there: its next text has nothing of that memory.
#[test]
fn model_59_a_key_that_led_to_another_memory_begins_one_of_its_own() {
    let world = World::new();
    let mut other = text("Bob lives in Oslo").key("bob").importance(0.9).kind(Kind::Event);
    other.fields.tier = Some(Tier::Working);
    let until = world.ahead("2d");
    other.fields.valid_to = Field::from(Some(until));
    let other = world.add(other).id;
    world.add(text("Ann lives in Ghent").key("home").tag("ann"));
    world.ns.supersede_all(["home"], other, SupersedeMode::Replaced, None).unwrap();
    world.add(text("Ann lives in Paris").key("home"));
    let home = world.row("home");
    assert_eq!((home.tier, home.importance, &home.kind), (Tier::default(), 0.5, &Kind::default()));
    assert_eq!((home.valid_from, home.valid_to, home.expires_at), (None, None, None));
    assert!(world.is_live(other));
    world.check();
}

/// LIFE-6: what is to come is corrected, replaced or forgotten before it comes. The key means the old text until the instant,
/// for every writer, and what comes then comes to the key.
#[test]
fn life_6_what_is_ahead_can_change_before_it_comes() {
    type Change = fn(&World, MemoryId);
    let ways: [(&str, Change, &[&str]); 4] = [
        (
            "corrected",
            |world, paris| {
                drop(world.ns.update(paris, oubliette::Patch::new().text("Ann lives in Nice")).unwrap())
            },
            &["Ann lives in Nice", "Ann lives in Nice"],
        ),
        (
            "replaced",
            |world, paris| {
                let lyon = world.add(text("Ann lives in Lyon")).id;
                let at = world.ahead("2h").as_millis();
                world.supersede(paris, lyon, SupersedeMode::Replaced, Some(at)).unwrap();
            },
            &["Ann lives in Paris", "Ann lives in Lyon"],
        ),
        (
            "corrected twice and replaced",
            |world, paris| {
                let nice =
                    world.ns.update(paris, oubliette::Patch::new().text("Ann lives in Nizza")).unwrap();
                let fixed =
                    world.ns.update(nice.id, oubliette::Patch::new().text("Ann lives in Nice")).unwrap();
                let lyon = world.add(text("Ann lives in Lyon")).id;
                let at = world.ahead("2h").as_millis();
                world.supersede(fixed.id, lyon, SupersedeMode::Replaced, Some(at)).unwrap();
            },
            &["Ann lives in Nice", "Ann lives in Lyon"],
        ),
        ("forgotten", |world, paris| drop(world.forget_id(paris)), &[]),
    ];
    for (name, change, then) in ways {
        let (world, ghent, paris) = moving();
        let until = world.ahead("50m");
        change(&world, paris);
        world.check();
        assert_eq!(world.row("home").id, ghent, "{name}");
        world.ns.pin("home", true).unwrap();
        let row = world.row("home");
        assert_eq!((row.id, row.pinned, row.valid_to), (ghent, true, Some(until)), "{name}");
        world.check();
        let rome = world.add(text("Ann lives in Rome").key("home")).id;
        let live: BTreeSet<String> =
            texts(&world).into_iter().filter(|text| !text.ends_with("Lyon")).collect();
        assert_eq!(live, said(&["Ann lives in Rome"]), "{name}");
        assert_eq!((world.row("home").id, world.row("home").valid_to), (rome, Some(until)), "{name}");
        world.check();
        world.advance("50m");
        let hours = then.iter().zip(["0s", "3h"]);
        for (there, wait) in hours {
            world.advance(wait);
            assert_eq!(texts(&world), said(&[*there]), "{name}");
            assert_eq!(world.row("home").text, *there, "{name}");
            world.check();
        }
        if then.is_empty() {
            assert!(world.live().is_empty(), "{name}: the old text has ended all the same");
            let bern = world.add(text("Ann lives in Bern").key("home")).id;
            assert_eq!((world.row("home").id, world.live()), (bern, vec![bern]));
            world.check();
        }
    }
}

/// LIFE-6: what changes no text changes the memory that is true now, and it still ends at the instant ahead.
#[test]
fn life_6_changes_by_key_before_a_supersession_ahead() {
    let (world, ghent, paris) = moving();
    let until = world.ahead("50m");
    assert_eq!(world.add(text("Ann lives in Ghent").key("home")).decision, Decision::Unchanged);
    world.ns.pin("home", true).unwrap();
    let row = world.row("home");
    assert_eq!((row.id, row.pinned, row.valid_to, row.also), (ghent, true, Some(until), Some(paris)));
    world.ns.touch(["home"], Expiry::Never).unwrap()[0].as_ref().unwrap();
    world.ns.reinforce("home", 1).unwrap();
    assert_eq!(world.row(ghent).reinforcement_count, 2);
    world.check();
    world.ns.contradict("home", None).unwrap();
    assert!(world.live().is_empty());
    assert_eq!(world.row(ghent).valid_to, Some(world.now()));
    world.check();
    world.advance("50m");
    assert_eq!(world.live(), [paris]);
    world.check();

    // Restoring the key takes the supersession back.
    let (world, ghent, paris) = moving();
    assert_eq!(world.ns.restore("home").unwrap().id, ghent);
    world.advance("50m");
    assert_eq!(world.live(), [ghent, paris]);
    assert_eq!(world.row("home").id, ghent);
    world.check();

    // Of two writers of the text, one says something else until then, and Paris takes the place of both.
    let world = World::new();
    let ghent = world.add(text("Ann lives in Ghent").key("home")).id;
    world.add(text("Ann lives in Ghent").key("post"));
    let paris = world.add(text("Ann lives in Paris")).id;
    world.supersede(ghent, paris, SupersedeMode::Replaced, Some(world.ahead("1h").as_millis())).unwrap();
    world.add(text("Ann lives in Rome").key("home"));
    assert_eq!(texts(&world), said(&["Ann lives in Ghent", "Ann lives in Rome"]));
    assert_eq!(world.row("post").id, ghent);
    world.check();
    world.advance("1h");
    assert_eq!(world.live(), [paris]);
    assert_eq!((world.row("home").id, world.row("post").id), (paris, paris));
    world.check();

    // A replacement that comes after the one ahead replaces that one.
    let (world, ghent, paris) = moving();
    let bern = world.add(text("Ann lives in Bern")).id;
    world.ns.supersede_all(["home"], bern, SupersedeMode::Replaced, Some(world.ahead("2h"))).unwrap();
    for (wait, there) in [("0s", ghent), ("50m", paris), ("2h", bern)] {
        world.advance(wait);
        assert_eq!((world.row("home").id, world.live()), (there, vec![there]));
    }
    world.check();
}

/// LIFE-6: where what a key said has gone before something else takes its place, a write through the key is true until then.
#[test]
fn life_6_a_write_between_the_end_of_one_and_the_beginning_of_the_next_is_seen() {
    for gone in ["expired", "purged", "forgotten"] {
        for update in [false, true] {
            let world = World::new();
            let ghent = world
                .add(text("Ann lives in Ghent").key("k").expiry(Expiry::After("4d".parse().unwrap())))
                .id;
            let begins = world.ahead("9d");
            let bruges = world.ns.replace(
                ["k"],
                text("Ann lives in Bruges").key("b"),
                SupersedeMode::Replaced,
                Some(begins),
            );
            let bruges = bruges.unwrap().id;
            world.advance(if gone == "forgotten" { "1d" } else { "5d" });
            match gone {
                "purged" => drop(world.db.maintain().unwrap()),
                "forgotten" => drop(world.forget_id(ghent)),
                _ => {}
            }
            assert!(world.live().is_empty(), "{gone}");
            let ostend = match update {
                true => world
                    .ns
                    .update("k", Patch { text: Some("Ann lives in Ostend".to_owned()), ..Patch::default() }),
                false => world.ns.add(text("Ann lives in Ostend").key("k")),
            };
            let ostend = ostend.unwrap().id;
            assert_eq!(world.live(), [ostend], "{gone}, {update}");
            assert_eq!(world.row("k").text, "Ann lives in Ostend", "{gone}");
            let again = world.add(text("Ann lives in Ostend").key("k"));
            assert_eq!((again.id, again.decision), (ostend, Decision::Unchanged), "{gone}");
            world.check();
            world.set(begins.as_millis());
            assert_eq!(world.live(), [bruges], "{gone}");
            assert_eq!(world.row("k").id, bruges, "{gone}");
            world.check();
        }
    }
}
