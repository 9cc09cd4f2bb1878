//! Memories that a pass has united: what their writers said before, say since, and say apart again (MODEL-8, MODEL-59).

use crate::backup::copy_of;
use crate::growth;
use crate::world::{World, at, axis, near, revised, text};
use oubliette::maintain::{MaintainOptions, Pass, RunSort, Undone};
use oubliette::memory::{Field, PointInTime, Significance, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::{
    Draft, Filter, Forget, Kind, Memory, MemoryId, PageRequest, Patch, Scope, State, WriteOptions,
};
use serde_json::json;

/// The words of `a` and of `b`, which a pass unites.
const WORDS: [&str; 2] = ["the cat sat on the mat", "the cat sat on a mat"];

/// What `a` and `b` wrote, each with its own channel, metadata and importance, united by a pass.
fn united() -> (World, MemoryId) {
    let world = World::new();
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        world.add(told(WORDS[number], number as f64, key));
        world.advance("1m");
    }
    let id = unite(&world);
    (world, id)
}

fn told(words: &str, degrees: f64, key: &str) -> Draft {
    let mut draft = near(words, degrees).key(key).importance(0.2 + degrees as f32 / 10.0);
    draft = draft.metadata(json!({ "of": key }));
    draft.fields.channel = Field::from(Some(format!("channel {key}")));
    draft
}

/// Unites near vectors, and gives the one memory that is left.
fn unite(world: &World) -> MemoryId {
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
    let [united] = world.live()[..] else { panic!("one memory") };
    united
}

/// Takes the last pass back.
fn undo(world: &World) -> Undone {
    let runs = world.ns.runs(None, 10).unwrap().items;
    let run = runs.iter().find(|run| run.sort == RunSort::Maintain).unwrap();
    world.ns.undo(run.id).unwrap()
}

/// Takes the last pass back, of which nothing is lost.
fn undo_whole(world: &World) {
    let undone = undo(world);
    assert_eq!((undone.restored, undone.lost), (1, Vec::new()));
}

/// Everything that an update in these tests changes.
fn says(memory: &Memory) -> (Option<&str>, &serde_json::Value, f32, Kind, Option<oubliette::Time>) {
    let Memory { channel, metadata, importance, kind, expires_at, .. } = memory;
    (channel.as_deref(), metadata, *importance, kind.clone(), *expires_at)
}

/// A change of everything that [`says`] shows.
fn change(world: &World) -> Patch {
    let patch = Patch::new().channel("since").metadata(json!({ "since": 1 })).importance(0.9);
    let mut patch = patch.kind(Kind::Event);
    patch.expiry = Some(oubliette::memory::Expiry::At(world.ahead("90d")));
    patch
}

/// MODEL-8, MODEL-33: what was said of united memories by id is said by both after an undo.
#[test]
fn an_undo_leaves_what_was_said_of_united_memories_by_id() {
    let (world, id) = united();
    world.ns.update(id, change(&world)).unwrap();
    let since = world.row(id);
    undo_whole(&world);
    for key in ["a", "b"] {
        let back = world.row(key);
        assert_eq!((says(&back), back.keys.as_slice()), (says(&since), [key.to_owned()].as_slice()));
        assert_eq!(back.text, WORDS[usize::from(key == "b")]);
    }
    world.check();
}

/// MODEL-8, MODEL-33: so does what the one writer that is left has said through its key.
#[test]
fn an_undo_leaves_what_the_writer_that_is_left_has_said_since() {
    for leaves in 0..2 {
        let (world, _) = united();
        let (gone, stays) = (["a", "b"][leaves], ["b", "a"][leaves]);
        world.forget(&[gone]);
        world.ns.update(stays, change(&world)).unwrap();
        let since = world.row(stays);
        undo(&world);
        let back = world.row(stays);
        assert_eq!((says(&back), &back.text), (says(&since), &since.text), "{stays} stays");
        world.check();
    }
}

/// MODEL-8, MODEL-33: memories that a pass has removed say it when they come back.
#[test]
fn an_undo_of_a_collapse_leaves_what_was_said_by_id() {
    let world = World::new();
    for (number, key) in ["a", "b"].into_iter().enumerate() {
        let words = format!("Gateway status: {} apps pending", 4 + number);
        let mut draft = text(&words).key(key).tag(key).kind(Kind::Profile);
        draft.fields.channel = Field::from(Some(format!("channel {key}")));
        world.add(draft);
        world.advance("1m");
    }
    world.ns.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap();
    let [id] = world.live()[..] else { panic!("one memory") };
    let mut patch = change(&world);
    patch.tags = Some(vec!["since".to_owned()]);
    world.ns.update(id, patch).unwrap();
    world.check();
    let since = world.row(id);
    undo_whole(&world);
    for key in ["a", "b"] {
        let back = world.row(key);
        assert_eq!((says(&back), &back.tags), (says(&since), &since.tags), "{key}");
    }
    assert_eq!(world.forget_tag("since").forgotten, 2);
    world.check();
}

/// MODEL-8, MODEL-59: it outlives further passes, whoever leaves then and however.
#[test]
fn what_was_said_by_id_outlives_a_second_pass() {
    let ways: [fn(&World, &str); 3] = [
        |world, key| drop(world.forget(&[key])),
        |world, key| drop(world.ns.update(key, Patch::new().text("other words altogether")).unwrap()),
        |world, key| drop(world.ns.pin(key, true).unwrap()),
    ];
    let mut looked_at = 0;
    for first in [0.1, 0.9] {
        for leaves in ["a", "b", "c"] {
            for way in ways {
                let (world, id) = united();
                let patch = Patch::new().channel("since").metadata(json!({ "since": 1 }));
                world.ns.update(id, patch).unwrap();
                world.add(told("the cat sat on one mat", 2.0, "c").importance(first));
                unite(&world);
                way(&world, leaves);
                for key in ["a", "b"] {
                    let Some(row) = world.get(key).unwrap().into_memory() else { continue };
                    if !row.keys.contains(&"c".to_owned()) {
                        looked_at += 1;
                        let left = (row.channel.as_deref(), row.metadata);
                        assert_eq!(left, (Some("since"), json!({ "since": 1 })), "{key}, {leaves}, {first}");
                    }
                }
                world.check();
            }
        }
    }
    // A row that still stands for `c` says what `c` says, so it is none of these.
    assert!(looked_at >= 16, "{looked_at}");
}

/// MODEL-59, MODEL-30: of equal texts the memory says what the first of those says that are left, again and again; the journal tells
/// nothing of those that were forgotten.
#[test]
fn of_equal_texts_the_memory_says_what_those_say_that_are_left() {
    for by_filter in [false, true] {
        for order in [["a", "b"], ["b", "a"]] {
            let world = World::new();
            for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
                let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                world.ns.add_all(vec![told(WORDS[0], number as f64, key)], &apart).unwrap();
                world.advance("1m");
            }
            let own = world.row("c");
            let id = unite(&world);
            world.ns.update(id, Patch::new().channel("since")).unwrap();
            for key in order {
                let filter = Filter::parse(&json!({ "metadata.of": key }).to_string()).unwrap();
                match by_filter {
                    true => drop(world.ns.forget(Forget::filter(filter, Scope::Shared)).unwrap()),
                    false => drop(world.forget(&[key])),
                }
                assert!(!world.has_bytes_of(&format!("channel {key}")), "{order:?}, {by_filter}");
            }
            let left = world.row("c");
            assert_eq!(
                (left.keys.as_slice(), left.channel.as_deref()),
                (["c".to_owned()].as_slice(), Some("since"))
            );
            let says = |memory: &Memory| (memory.metadata.clone(), memory.importance);
            assert_eq!(
                (says(&left), left.created_at),
                (says(&own), own.created_at),
                "{order:?}, {by_filter}"
            );
            world.check();
        }
    }
}

/// MODEL-30: a filter judges the writers of united memories by what was said last.
#[test]
fn a_filter_finds_what_was_said_of_united_memories_since() {
    let cases = [
        (json!({ "channel": "channel a" }), 0),
        (json!({ "channel": "channel b" }), 0),
        (json!({ "channel": "since" }), 2),
        (json!({ "metadata.since": 1 }), 2),
        (json!({ "importance": { "$lt": 0.3 } }), 0),
        (json!({ "importance": { "$gt": 0.8 } }), 2),
        (json!({ "kind": "event" }), 2),
    ];
    for (filter, gone) in cases {
        let (world, id) = united();
        world.ns.update(id, change(&world)).unwrap();
        let asked = Filter::parse(&filter.to_string()).unwrap();
        world.ns.forget(Forget::filter(asked, Scope::Shared)).unwrap();
        let left =
            ["a", "b"].into_iter().filter(|key| world.get(key).is_ok_and(|got| got.into_memory().is_some()));
        assert_eq!(left.count(), 2 - gone, "{filter}");
        world.check();
    }
}

/// MODEL-8: a text that all writers were given by id leaves each of them the fields that it brought.
#[test]
fn a_text_given_by_id_leaves_each_writer_its_own_fields() {
    for (leaves, how) in [("a", "pin"), ("b", "pin"), ("a", "forget"), ("b", "forget")] {
        let (world, id) = united();
        world.ns.update(id, Patch::new().text("quite new words")).unwrap();
        match how {
            "pin" => drop(world.ns.pin(leaves, true).unwrap()),
            _ => drop(world.forget(&[leaves])),
        }
        for key in ["a", "b"].into_iter().filter(|key| how == "pin" || *key != leaves) {
            let row = world.row(key);
            assert_eq!(row.text, "quite new words", "{key}: {leaves}, {how}");
            assert_eq!(row.keys, [key], "{leaves}, {how}");
            assert_eq!(row.metadata, json!({ "of": key }), "{leaves}, {how}");
            assert_eq!(row.channel.as_deref(), Some(&*format!("channel {key}")), "{leaves}, {how}");
        }
        world.check();
    }
}

/// MODEL-8: what an update by id gives beside a text is given to every writer.
#[test]
fn what_is_given_by_id_beside_a_text_is_every_writers() {
    for (leaves, how) in [("a", "pin"), ("b", "pin"), ("a", "forget"), ("b", "forget")] {
        let (world, id) = united();
        let mut patch = change(&world).text("quite new words");
        patch.tags = Some(vec!["since".to_owned()]);
        let id = world.ns.update(id, patch).unwrap().id;
        let since = world.row(id);
        assert_eq!(since.tags, ["since"]);
        match how {
            "pin" => drop(world.ns.pin(leaves, true).unwrap()),
            _ => drop(world.forget(&[leaves])),
        }
        for key in ["a", "b"].into_iter().filter(|key| how == "pin" || *key != leaves) {
            let row = world.row(key);
            assert_eq!((says(&row), &row.text), (says(&since), &since.text), "{key}: {leaves}, {how}");
        }
        world.check();
    }
}

/// MODEL-67: an undo of a pass does not bring back a text that its writers were given another for, by id or by a memory that took
/// its place, whichever way the pass had taken.
#[test]
fn an_undo_brings_no_text_back_that_was_replaced_by_id() {
    for pass in [Pass::Collapse, Pass::NearDuplicates] {
        let ways: [fn(&World, MemoryId); 2] = [
            |world, id| drop(world.ns.update(id, Patch::new().text("quite new words")).unwrap()),
            |world, id| {
                let draft = text("quite new words");
                drop(world.ns.replace([id], draft, SupersedeMode::Correction, None).unwrap());
            },
        ];
        for way in ways {
            let world = World::new();
            for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
                let words = format!("Gateway status: {} apps pending", 4 + number);
                let words = if pass == Pass::Collapse { words } else { WORDS[0].to_owned() };
                let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                world.ns.add_all(vec![text(&words).key(key).kind(Kind::Profile)], &apart).unwrap();
                world.advance("1m");
            }
            world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
            let [id] = world.live()[..] else { panic!("one memory") };
            way(&world, id);
            let undone = undo(&world);
            assert_eq!((undone.restored, undone.lost.len()), (0, 2), "{pass:?}: {:?}", undone.lost);
            let [id] = world.live()[..] else { panic!("one memory: {:?}", world.live()) };
            for key in ["a", "b", "c"] {
                assert_eq!((world.row(key).id, world.row(key).text.as_str()), (id, "quite new words"));
            }
            world.check();
        }
    }
}

/// MODEL-67: a record that its writer has ended through its key does not come back with the undo of a pass.
#[test]
fn an_undo_brings_nothing_back_that_its_writer_has_ended() {
    let ways: [fn(&World); 4] = [
        |world| drop(world.ns.update("b", ending(world, "1h")).unwrap()),
        |world| drop(world.ns.contradict("b", None).unwrap()),
        |world| {
            let mut patch = Patch::new();
            patch.fields.valid_to = Field::from(Some(world.ago("1m")));
            drop(world.ns.update("b", patch).unwrap());
        },
        |world| {
            drop(
                world
                    .ns
                    .update("b", Patch { text: Some("gone soon".into()), ..ending(world, "1h") })
                    .unwrap(),
            )
        },
    ];
    for (number, way) in ways.into_iter().enumerate() {
        for pass in [Pass::VectorDuplicates, Pass::NearDuplicates] {
            let world = World::new();
            for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
                let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                world.ns.add_all(vec![near(WORDS[0], number as f64).key(key)], &apart).unwrap();
                world.advance("1m");
            }
            world.ns.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
            let [_] = world.live()[..] else { panic!("one memory") };
            world.advance("1h");
            way(&world);
            world.advance("2h");
            let undone = undo(&world);
            let live = world.live();
            let keys: Vec<_> = live.iter().flat_map(|id| world.row(id).keys).collect();
            assert!(!keys.contains(&"b".to_owned()), "{number}, {pass:?}: {keys:?}");
            // It is told as lost, and one version alone stands for it.
            let is_told = |lost: &String| lost.contains("key b ") && lost.contains("said since");
            assert!(undone.lost.iter().any(is_told), "{number}, {pass:?}: {undone:?}");
            assert_eq!(undone.restored, 1, "{number}, {pass:?}: {undone:?}");
            let versions = world.ns.history("b").unwrap().versions;
            // What has ended by an instant that its writer set may be erased by now.
            let standing = versions
                .iter()
                .filter(|version| version.superseded_by.is_none() && version.state != State::Tombstoned)
                .count();
            assert!(standing <= 1, "{number}, {pass:?}: {versions:?}");
            world.check();
        }
    }
}

/// A life that ends after a while.
fn ending(world: &World, span: &str) -> Patch {
    let mut patch = Patch::new();
    patch.expiry = Some(oubliette::memory::Expiry::At(world.ahead(span)));
    patch
}

/// MODEL-8: of the instant at which something happened a key takes along what it gave, not what the other writer of its text did.
#[test]
fn a_key_that_parts_leaves_the_instant_of_the_other_writer() {
    for given in [None, Some("2h")] {
        let world = World::new();
        let mut draft = text(WORDS[0]).key("a");
        draft.fields.happened_at = Field::from(Some(world.ahead("1h")));
        world.add(draft);
        let mut draft = text(WORDS[0]).key("b");
        draft.fields.happened_at = Field::from(given.map(|span| world.ahead(span)));
        world.add(draft);
        world.ns.update("b", Patch::new().channel("new")).unwrap();
        assert_eq!(world.row("b").happened_at, None, "{given:?}");
        assert_eq!(world.row("a").happened_at, Some(world.ahead("1h")));
        world.check();
    }
}

/// A text that a key writes is as new as that of a key that was alone, so no pass takes it for an old one.
#[test]
fn a_new_text_through_one_key_of_several_begins_now() {
    for by_pass in [false, true] {
        let world = World::new();
        for (number, key) in ["a", "b"].into_iter().enumerate() {
            let words = WORDS[if by_pass { number } else { 0 }];
            world.add(near(words, number as f64).key(key).created_at(world.ago("40d")));
        }
        if by_pass {
            unite(&world);
        }
        world.advance("1h");
        world.ns.update("b", Patch::new().text("a dog came")).unwrap();
        let row = world.row("b");
        assert_eq!((row.created_at, row.updated_at), (world.now(), world.now()), "{by_pass}");
        assert_eq!(world.row("a").created_at, world.ago("961h"));
        world.check();
    }
}

/// A key that parts from others takes no new life along.
#[test]
fn what_has_expired_stays_so_when_a_key_of_several_changes_a_field() {
    for pins in [false, true] {
        let world = World::new();
        for key in ["a", "b"] {
            world.add(text(WORDS[0]).key(key).tier(Tier::Episodic));
        }
        world.advance("40d");
        match pins {
            true => drop(world.ns.pin("b", true).unwrap()),
            false => drop(world.ns.update("b", Patch::new().channel("new")).unwrap()),
        }
        // A write takes away what has ended, as it goes.
        assert!(matches!(world.row("b").state, State::Expired | State::Limbo), "{pins}");
        assert!(world.live().is_empty() && world.ns.search("cat").unwrap().hits.is_empty());
        world.check();
    }
}

/// MODEL-8: what a pass has united parts again with what each writer had said, also where the other stands for the text.
#[test]
fn a_change_through_one_key_of_united_memories_keeps_what_its_writer_had_said() {
    let patch = || Patch::new().importance(0.9);
    for (key, of) in [("a", 0), ("b", 1)] {
        let world = World::new();
        let words = ["the cat sat on the mat", "the cat sat on a mat"];
        for (number, key) in ["a", "b"].into_iter().enumerate() {
            let mut draft = near(words[number], number as f64).key(key);
            draft = draft.metadata(json!({ "of": key, key: number }));
            draft.fields.channel = Field::from(Some(format!("channel {key}")));
            draft.fields.thread = Field::from(Some(format!("thread {key}")));
            draft.fields.happened_at = Field::from(Some(world.ahead(["1h", "2h"][number])));
            draft.fields.significance = Some([Significance::Routine, Significance::Important][number]);
            draft.fields.confidence = Field::from(Some([0.3, 0.8][number]));
            world.add(draft);
            world.advance("1m");
        }
        let said = world.row(key);
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
        let [united] = world.live()[..] else { panic!("one memory") };
        // What both are told since is theirs as well.
        world.ns.update(united, Patch::new().kind(Kind::Event)).unwrap();
        world.ns.update(key, patch()).unwrap();
        let own = world.row(key);
        assert_eq!((own.keys, own.text.as_str(), own.kind), (vec![key.to_owned()], words[of], Kind::Event));
        assert_eq!((own.metadata, own.channel, own.thread), (said.metadata, said.channel, said.thread));
        assert_eq!((own.happened_at, own.importance), (said.happened_at, 0.9));
        assert_eq!(
            (own.significance, own.confidence, own.created_at),
            (said.significance, said.confidence, said.created_at)
        );
        let vector = world.ns.look_up(own.id, true).unwrap().into_memory().unwrap().vector.unwrap();
        let off = vector.iter().zip(at(of as f64)).map(|(is, was)| (is - was).abs()).fold(0.0, f32::max);
        assert!(off < 1e-6, "{key}: {vector:?}");
        world.check();
    }
}

/// MODEL-8: an update by id is one of every writer, so it outlives the writer into whose row the others had come.
#[test]
fn what_was_said_of_united_memories_by_id_stays_with_those_that_are_left() {
    for texts in [["the cat sat on the mat", "the cat sat on a mat"], ["the cat sat on the mat"; 2]] {
        for leaves in 0..2 {
            let world = World::new();
            for (number, key) in ["a", "b"].into_iter().enumerate() {
                let mut draft = near(texts[number], number as f64).key(key).importance(0.2);
                draft = draft.metadata(json!({ "of": key }));
                draft.fields.channel = Field::from(Some(format!("channel {key}")));
                let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                world.ns.add_all(vec![draft], &apart).unwrap();
                world.advance("1m");
            }
            world.ns.maintain_with(&MaintainOptions::live().passes([Pass::VectorDuplicates])).unwrap();
            let [united] = world.live()[..] else { panic!("one memory") };
            let mut patch = Patch::new().importance(0.9).channel("told to both").kind(Kind::Event);
            patch.payload = Some(Some(vec![7_u8; 9].into()));
            world.ns.update(united, patch).unwrap();
            world.forget(&[["a", "b"][leaves]]);
            let stays = ["b", "a"][leaves];
            let left = world.row(stays);
            let case = format!("{texts:?}, {stays} stays");
            assert_eq!((left.importance, left.kind), (0.9, Kind::Event), "{case}");
            assert_eq!(left.channel.as_deref(), Some("told to both"), "{case}");
            assert_eq!((left.metadata, left.has_payload), (json!({ "of": stays }), true), "{case}");
            world.check();
        }
    }
}

/// MODEL-8: a text that nothing else tells stays as the version before, when its key says another: also where a pass had
/// united it with the text of another key, and where it was absorbed as it was written.
#[test]
fn a_text_that_stood_for_others_stays_as_the_version_before() {
    for by_pass in [true, false] {
        for key in ["a", "b"] {
            let (world, id) = match by_pass {
                true => united(),
                false => {
                    let world = World::new();
                    world.db.set_policy("write.normalized_match = 'absorb'", Syntax::Toml).unwrap();
                    let id = world.add(text("the cat sat").key("a")).id;
                    world.advance("1m");
                    assert_eq!(world.add(text("The  cat sat").key("b")).id, id);
                    (world, id)
                }
            };
            let other = if key == "a" { "b" } else { "a" };
            let own = world.row(key);
            let text_of = |memory: &Memory| match memory
                .holders
                .iter()
                .find(|holder| holder.key.as_deref() == Some(key))
            {
                Some(holder) => holder.text.clone().unwrap_or_else(|| memory.text.clone()),
                None => panic!("a holder of {key}"),
            };
            let said = text_of(&own);
            world.advance("1h");
            let before = world.now();
            world.advance("1h");
            let run = world.start_import();
            let outcome = world.import(run, vec![text("a dog came").key(key)]).remove(0);
            assert_ne!(outcome.id, id);
            let versions = world.ns.history(key).unwrap().versions;
            let told = |id| world.row(id).text == said;
            assert!(versions.iter().any(|version| told(version.id)), "{by_pass}, {key}: {versions:?}");
            let told_at = |at| {
                let page = PageRequest { at: PointInTime::as_of(at), ..PageRequest::default() };
                world.ns.list(&page).unwrap().items.iter().any(|memory| memory.text == said)
            };
            // The pass had superseded the text for which the memory stands, and a near text had no row of its own.
            assert!(own.row_text != said || told_at(before), "{by_pass}, {key}");
            let first_alone = "2026-01-02T10:00:30Z".parse().unwrap();
            assert!(key == "a" || !told_at(first_alone), "{by_pass}: a text is told before it was written");
            assert_eq!(world.row(other).keys, [other]);
            world.check();
            // Undo of the write brings the text back to its key.
            let undone = world.ns.undo(run).unwrap();
            assert_eq!(text_of(&world.row(key)), said, "{by_pass}, {key}: {undone:?}");
            assert_eq!(world.row(other).keys, [other]);
            world.check();
        }
    }
}

/// MODEL-60: the plan counts what the forget takes, also where only the text of a memory goes that others wrote too.
#[test]
fn a_plan_counts_the_texts_that_go_from_united_memories() {
    for tagged in ["a", "b"] {
        let world = World::new();
        for (number, key) in ["a", "b"].into_iter().enumerate() {
            let mut draft = told(WORDS[number], number as f64, key);
            if key == tagged {
                draft = draft.tag("people").importance(0.9);
            }
            world.add(draft);
            world.advance("1m");
        }
        unite(&world);
        world.add(text("another memory").tag("people"));
        let plan = world.ns.forget_plan(Forget::tag("people")).unwrap();
        let done = world.forget_tag("people");
        assert_eq!((plan.answer.forgotten, plan.memories()), (done.forgotten, done.tombstones.len() as u64));
        assert!(plan.texts > 0, "{plan:?}");
        world.check();
    }
}

/// MODEL-8: a row has no more tags than a draft may have, so what would go past that is in no plan, and no run skips it.
#[test]
fn what_one_row_has_no_room_for_is_in_no_plan() {
    for pass in [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates] {
        let world = World::new();
        for (number, (key, tags)) in [("a", 40), ("b", 40), ("c", 20), ("d", 24)].into_iter().enumerate() {
            let mut draft = match pass {
                Pass::Collapse => text(&format!("Gateway status: {} apps pending", 4 + number)),
                Pass::NearDuplicates => text(WORDS[0]),
                _ => near(WORDS[0], number as f64 / 10.0),
            };
            draft = draft.kind(if pass == Pass::Collapse { Kind::Profile } else { Kind::Knowledge });
            draft = draft.importance(0.9 - number as f32 / 10.0).key(key);
            for tag in 0..tags {
                draft = draft.tag(format!("{key}{tag}"));
            }
            let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            world.ns.add_all(vec![draft], &how).unwrap();
            world.advance("1m");
        }
        let run = |live: bool| {
            let options = if live { MaintainOptions::live() } else { MaintainOptions::default() };
            let passes = world.ns.maintain_with(&options.passes([pass])).unwrap().passes;
            let done = passes.iter().find(|done| done.pass == pass).unwrap();
            (done.planned, done.changed, done.skipped)
        };
        assert_eq!(run(false).0, 2, "{pass}: a with d or c, and b with the other");
        assert_eq!(run(true), (2, 2, 0), "{pass}");
        assert_eq!(run(true), (0, 0, 0), "{pass}");
        assert_eq!(world.live().len(), 2);
        world.check();
    }
}

/// Writers of equal texts leave the memory that a pass has made of them at the same cost, in the order in which they came, and so
/// do those that come back after the first of them has gone.
#[test]
fn writers_of_equal_texts_leave_one_by_one() {
    let of = |n: usize| {
        let world = growth::world();
        let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("equal text").key(format!("k{at}"));
        world.ns.add_all((0..n).map(say).collect(), &apart).unwrap();
        let unite = MaintainOptions::live().passes([Pass::NearDuplicates]);
        let run = world.ns.maintain_with(&unite).unwrap().run.unwrap();
        let first = growth::cost(|| drop(world.ns.forget(Forget::names(["k0"])).unwrap()));
        let undo = growth::cost(|| drop(world.ns.undo(run).unwrap()));
        assert_eq!(world.live().len(), n - 1);
        world.ns.maintain_with(&unite).unwrap();
        let keys = (1..n).map(|at| format!("k{at}"));
        let forget = growth::cost(|| drop(world.ns.forget(Forget::names(keys)).unwrap()));
        world.check();
        (first, undo, forget)
    };
    let (small, large) = (of(50), of(200));
    growth::linear(small.0, large.0, 4);
    growth::linear(small.1, large.1, 4);
    growth::linear(small.2, large.2, 4);
}

/// DEDUP-56: the same file again changes nothing, also where the memory of a united text is erased by now. Another vector of that text
/// is another write.
#[test]
fn the_same_write_is_known_where_the_row_of_a_united_text_is_gone() {
    for absorbs in [false, true] {
        let world = World::new();
        let policy =
            if absorbs { "write.vector_match = \"reinforce\"" } else { "sweeper.tombstone_ttl = \"8d\"" };
        let lines = || [near(WORDS[0], 0.0).key("a"), near(WORDS[1], 0.1).key("b")];
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        for line in lines() {
            world.add(line);
        }
        world.advance("1m");
        if !absorbs {
            let id = unite(&world);
            world.advance("9d");
            let passes = [Pass::Superseded, Pass::Limbo];
            world.ns.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
            assert_eq!(world.list_in(Scope::Any, State::Superseded).len(), 0);
            assert_eq!(world.row("b").id, id);
        }
        let all = world.live();
        assert_eq!(all.len(), 1, "{absorbs}");
        for world in [&world, &copy_of(&world)] {
            for line in lines() {
                assert_eq!(world.add(line).decision, oubliette::Decision::Unchanged, "{absorbs}");
            }
            assert_eq!(world.live(), all);
        }
        assert_eq!(world.add(near(WORDS[1], 60.0).key("b")).decision, oubliette::Decision::Stored);
        assert_eq!(world.live().len(), 2);
        world.check();
    }
}

/// A pass has united the later text of a key with that of another. The key goes back to the earlier text that is restored, the
/// other keeps what both had said, and nobody reaches the key's texts but by the key.
#[test]
fn life_7_a_restored_text_has_its_key_again_from_a_memory_of_others() {
    for other_first in [true, false] {
        let world = World::new();
        let earlier = world.add(text("Ann lives in Ghent").key("k").vector(axis(1))).id;
        world.advance("1h");
        let later = text("the cat sat on the mat.").key("k").vector(axis(0));
        let other = text("the cat sat on the mat!").key("o").vector(axis(0));
        for draft in if other_first { [other, later] } else { [later, other] } {
            let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            world.ns.add_all(vec![draft], &apart).unwrap();
            world.advance("1h");
        }
        let pass = MaintainOptions::live().passes([Pass::VectorDuplicates]);
        let run = world.db.maintain_with(&pass).unwrap().run.unwrap();
        assert_eq!(world.live().len(), 1);
        world.advance("1h");
        let report = world.ns.restore(earlier.to_string()).unwrap();
        assert!(report.keys_taken.is_empty(), "{report:?}");
        assert_eq!((world.row("k").id, world.live().len()), (earlier, 2));
        let undone = world.ns.undo(run).unwrap();
        world.check();
        assert_eq!((world.row("k").id, world.live().len()), (earlier, 2), "{undone:?}");
        assert_eq!(world.row("o").text, "the cat sat on the mat!");
        world.forget(&["k"]);
        assert_eq!(world.live(), [world.row("o").id]);
        world.check();
    }
}

/// MODEL-8: a pass asks no memory that is true already since when it is. A writer whose own memory is gone keeps a begin that it
/// gave, and none that another writer gave.
#[test]
fn model_8_a_writer_of_a_united_memory_keeps_no_begin_of_another() {
    for given in [[true, false], [false, true]] {
        let world = World::new();
        let begins = world.ago("10d");
        for (apps, given) in [4, 7].into_iter().zip(given) {
            let mut draft = text(&format!("Gateway status: {apps} apps pending")).kind(Kind::Profile);
            draft.fields.valid_from = if given { Field::Value(begins) } else { Field::Absent };
            world.add(draft.key(format!("g{apps}")));
            world.advance("1m");
        }
        let live = MaintainOptions::live();
        world.ns.maintain_with(&live.clone().passes([Pass::Collapse])).unwrap();
        assert_eq!(world.live().len(), 1);
        world.advance("8d");
        world.ns.maintain_with(&live.passes([Pass::Limbo])).unwrap();
        let version = world.row(revised(&world.add(text("the gateway is gone").key("g7"))));
        assert_eq!(version.text, "Gateway status: 7 apps pending");
        // What the united memory does not say either is not known of it any more.
        assert_eq!(version.valid_from, None, "{given:?}");
        world.check();
    }
}
