//! What was forgotten is gone: a text goes with the last write that wrote it, under whatever key it was found.

use crate::world::{World, axis, keeping, ms, text};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::{Expiry, Field, Fields, Got, Significance, SupersedeMode, Tier, TombstoneReason};
use oubliette::report::{ForgetPlan, Forgotten};
use oubliette::{
    Decision, Draft, ErrorKind, Filter, Forget, Kind, MemoryId, PageRequest, Patch, Query, Scope, State,
    WriteOptions,
};
use serde_json::json;

fn profile(words: &str) -> Draft {
    let mut draft = text(words);
    draft.fields.kind = Some(Kind::Profile);
    draft
}

/// Ids that a search for words finds.
fn by_words(world: &World, words: &str) -> Vec<MemoryId> {
    world.ns.search(Query::text(words)).unwrap().hits.iter().map(|hit| hit.id).collect()
}

/// Texts of everything that is live.
fn texts(world: &World) -> Vec<String> {
    world.live().iter().map(|id| world.row(id).text).collect()
}

fn collapse(world: &World) -> RunId {
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse])).unwrap().run.unwrap()
}

fn counts(answer: &Forgotten) -> (u64, u64, u64) {
    (answer.forgotten, answer.detached, answer.went_with)
}

/// V-309: a holder that a supersession had moved kept the newest text alive, under a key that never wrote it.
#[test]
fn v309_a_key_that_was_led_on_keeps_no_text_alive() {
    let world = World::at(10);
    let a = world.add(text("ash in the grate").key("pa").vector(axis(0))).id;
    let b = world.add(text("birch by the door").key("pb").vector(axis(1))).id;
    world.supersede(a, b, SupersedeMode::Correction, None).unwrap();
    assert_eq!(world.row("pa").text, "birch by the door", "the key leads to the newest text");
    let answer = world.forget(&["pb"]);
    assert_eq!(counts(&answer), (1, 0, 0));
    assert_eq!(answer.tombstones, [b]);
    assert!(world.live().is_empty());
    assert!(by_words(&world, "birch").is_empty() && !world.find(axis(1), 9).contains(&b));
    assert_eq!(world.row(a).state, State::Superseded);
    assert_eq!(world.tombstone("pa").id, b);
    for name in ["pa".to_owned(), a.to_string()] {
        let why = world.ns.restore(&name).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Conflict, "{why}");
    }
    world.check();
    assert_eq!(counts(&world.forget(&["pa"])), (1, 0, 0));
    assert_eq!(world.tombstone("pa").id, a, "each key answers with its own");
    assert_eq!(world.tombstone("pb").id, b);
}

/// MODEL-59: a change through a key that was led on would need a row with the text of another write, which would outlive
/// that write. Tags and links are of the key alone.
#[test]
fn a_key_that_was_led_on_makes_no_copy_of_the_text() {
    let world = World::at(10);
    let a = world.add(text("ash in the grate").key("pa").vector(axis(0))).id;
    let b = world.add(text("birch by the door").key("pb").vector(axis(1))).id;
    world.supersede(a, b, SupersedeMode::Replaced, None).unwrap();
    let patches = [
        Patch::new().importance(0.9),
        Patch::new().metadata(serde_json::json!({ "x": 1 })),
        Patch::new().vector(axis(2)),
    ];
    for patch in patches {
        let why = world.ns.update("pa", patch).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Conflict, "{why}");
    }
    assert_eq!(world.live(), [b]);
    let tagged = world.ns.update("pa", Patch::new().tags(["t"])).unwrap();
    assert_eq!((tagged.id, tagged.decision), (b, Decision::Updated));
    // The key says the text itself, and may have a row of its own.
    let said = world.ns.update("pa", Patch::new().text("birch by the door").importance(0.9)).unwrap();
    assert_eq!(said.decision, Decision::Stored);
    assert_eq!(counts(&world.forget(&["pb"])), (1, 0, 0));
    assert_eq!(world.row("pa").text, "birch by the door");
    world.check();
}

/// A key that was led on and then wrote the newest text itself does hold it.
#[test]
fn a_key_that_was_led_on_holds_what_it_writes_itself() {
    let world = World::at(10);
    let a = world.add(text("old").key("pa")).id;
    let b = world.add(text("new").key("pb")).id;
    world.supersede(a, b, SupersedeMode::Correction, None).unwrap();
    let again = world.add(text("new").key("pa"));
    assert_eq!((again.id, again.decision), (b, Decision::Updated));
    assert_eq!(world.add(text("new").key("pa")).decision, Decision::Unchanged);
    assert_eq!(counts(&world.forget(&["pb"])), (0, 1, 0));
    assert_eq!(world.row("pa").id, b);
    world.check();
}

/// New content for the key that others were led to leads them on: the text that it had does not stay under them.
#[test]
fn keys_that_were_led_on_follow_a_revision() {
    let world = World::at(10);
    let a = world.add(text("one").key("pa")).id;
    let b = world.add(text("two").key("pb")).id;
    world.supersede(a, b, SupersedeMode::Correction, None).unwrap();
    let c = world.add(text("three").key("pb")).id;
    assert_eq!(texts(&world), ["three"]);
    assert_eq!((world.row("pa").id, world.row(b).state), (c, State::Superseded));
    world.check();
    assert_eq!(counts(&world.forget(&["pb"])), (1, 0, 0), "all versions of it");
    assert!(world.live().is_empty());
    assert!(matches!(world.get("pa").unwrap(), Got::Tombstone(_)));
    assert_eq!(world.row(a).text, "one");
}

/// An update by id is a write of every holder: none of them loses its record when another is forgotten.
#[test]
fn an_update_by_id_is_a_write_of_each_key() {
    let world = World::new();
    let id = world.add(text("said by both").key("a")).id;
    world.add(text("said by both").key("b"));
    let patch = Patch { text: Some("changed for both".to_owned()), ..Patch::default() };
    world.ns.update(id.to_string(), patch).unwrap();
    assert_eq!(counts(&world.forget(&["a"])), (0, 1, 0));
    assert_eq!(world.row("b").text, "changed for both");
    world.check();
}

/// V-314: the text of a canonical row stayed, under keys that had never written it.
#[test]
fn v314_a_merged_row_says_what_its_next_writer_said() {
    let world = World::new();
    let status =
        |apps: u32, at: usize| profile(&format!("Gateway status: {apps} apps pending")).vector(axis(at));
    let a = world.add(status(4, 0).key("a")).id;
    let b = world.add(status(7, 1).key("b")).id;
    let c = world.add(status(3, 2).key("c")).id;
    collapse(&world);
    assert_eq!(world.live(), [a]);
    let before = world.row(a).version;

    let answer = world.forget(&["a"]);
    assert_eq!((counts(&answer), answer.tombstones.len()), ((1, 0, 0), 1));
    let row = world.row(a);
    assert_eq!(
        (row.text.as_str(), row.keys),
        ("Gateway status: 7 apps pending", vec!["b".into(), "c".into()])
    );
    assert!(row.version > before);
    assert_eq!((world.row("b").text, world.row("c").text.contains("3 apps")), (row.text, true));
    assert_eq!(world.find(axis(1), 1), [a], "its vector is that of the text");
    assert_eq!(by_words(&world, "gateway"), [a]);
    let found = world.ns.search(Query::text("gateway status 4 apps")).unwrap();
    assert!(found.hits.iter().all(|hit| !world.row(hit.id).text.contains("4 apps")));
    assert!(by_words(&world, "4").is_empty());
    let stone = world.tombstone("a");
    assert_eq!((stone.reason, stone.replaced_by), (TombstoneReason::Forget, None));
    let told = world.ns.history("b").unwrap().events;
    assert!(told.iter().any(|row| row.op == oubliette::report::Op::Retell && row.evidence.members == [b]));
    world.check();

    assert_eq!(counts(&world.forget(&["b"])), (1, 0, 0));
    assert_eq!(
        (world.row(a).text.as_str(), world.row(a).keys),
        ("Gateway status: 3 apps pending", vec!["c".into()])
    );
    assert!(matches!(world.get("b").unwrap(), Got::Tombstone(_)) && by_words(&world, "7").is_empty());
    world.check();
    assert_eq!(counts(&world.forget(&["c"])), (1, 0, 0));
    assert!(world.live().is_empty());
    for key in ["a", "b", "c"] {
        assert!(matches!(world.get(key).unwrap(), Got::Tombstone(_)), "{key}");
    }
    world.db.compact().unwrap();
    for gone in ["4 apps", "7 apps", "3 apps"] {
        assert!(!holds(&world, gone), "{gone}");
    }
    let _ = c;
}

fn holds(world: &World, needle: &str) -> bool {
    std::fs::read(world.path()).unwrap().windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Past the horizon of limbo nothing is left but the texts of the keys: the row waits for its vector.
#[test]
fn a_row_is_retold_when_limbo_is_over() {
    let world = World::new();
    let a = world.add(profile("Gateway status: 4 apps pending").key("a").vector(axis(0))).id;
    world.add(profile("Gateway status: 7 apps pending").key("b").vector(axis(1)));
    collapse(&world);
    world.advance("8d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    assert_eq!(counts(&world.forget(&["a"])), (1, 0, 0));
    assert_eq!(world.row("b").text, "Gateway status: 7 apps pending");
    assert_eq!((world.find(axis(0), 9), world.db.stats().unwrap().pending), (vec![], 1));
    assert_eq!(by_words(&world, "gateway"), [a]);
    world.check();
}

/// What was merged returns from a row that says another text by now.
#[test]
fn undoing_a_merge_takes_back_the_text_that_was_retold() {
    let world = World::new();
    let a = world.add(profile("Gateway status: 4 apps pending").key("a")).id;
    let b = world.add(profile("Gateway status: 7 apps pending").key("b")).id;
    let c = world.add(profile("Gateway status: 3 apps pending").key("c")).id;
    let run = collapse(&world);
    world.forget(&["a"]);
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (2, 0));
    assert_eq!(world.live(), [b, c]);
    assert_eq!((world.row("b").id, world.row("c").id), (b, c));
    assert!(matches!(world.get(a).unwrap(), Got::Tombstone(_)));
    world.check();
}

/// V-315: writes without a key keep no text when they are merged.
#[test]
fn v315_what_was_merged_without_a_key_goes_with_its_row() {
    let world = World::new();
    let a = world.add(profile("Gateway status: 4 apps pending").key("a")).id;
    world.add(profile("Gateway status: 7 apps pending"));
    world.add(profile("Gateway status: 3 apps pending"));
    collapse(&world);
    let answer = world.forget(&["a"]);
    assert_eq!((counts(&answer), answer.tombstones), ((1, 0, 2), vec![a]));
    assert!(world.live().is_empty() && by_words(&world, "gateway").is_empty());
    world.check();
}

/// A write without a key that wrote the very text holds it.
#[test]
fn an_equal_text_without_a_key_is_held() {
    let world = World::new();
    let drafts = vec![profile("Gateway status: 4 apps").key("a"), profile("Gateway status: 4 apps")];
    let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    world.ns.add_all(drafts, &options).unwrap();
    collapse(&world);
    assert_eq!(counts(&world.forget(&["a"])), (0, 1, 0));
    assert_eq!(texts(&world), ["Gateway status: 4 apps"]);
    world.check();
}

/// New content for the key of a merged row left its old text to the others, which never wrote it.
#[test]
fn writing_a_merged_key_anew_leaves_the_text_of_the_next() {
    let world = World::new();
    let a = world.add(profile("Gateway status: 4 apps pending").key("a")).id;
    world.add(profile("Gateway status: 7 apps pending").key("b"));
    collapse(&world);
    let new = world.add(profile("Gateway status: 9 apps pending").key("a")).id;
    assert_ne!(new, a);
    assert_eq!(texts(&world), ["Gateway status: 7 apps pending", "Gateway status: 9 apps pending"]);
    assert_eq!((world.row("a").id, world.row("b").id), (new, a));
    world.check();
}

/// A holder that moved to a row of its own left its tags in the journal of the old row, and `history` of another key
/// printed them after it was forgotten.
#[test]
fn a_holder_that_moves_leaves_nothing_in_the_journal_of_the_others() {
    let world = World::new();
    world.add(text("equal text").key("b"));
    world.add(text("equal text").key("a"));
    world.add(text("equal text").key("a").tag("diagnosis:XYZZY-SECRET"));
    // What another write tells of the row's tags names it as well.
    world.add(text("equal text").key("b").tag("harmless"));
    world.add(text("another text now").key("a"));
    assert_eq!(counts(&world.forget(&["a"])), (1, 0, 0));
    assert!(!format!("{:?}", world.ns.history("b").unwrap()).contains("XYZZY"));
    world.db.compact().unwrap();
    assert!(!holds(&world, "XYZZY-SECRET"));
    world.check();
}

/// V-277, V-279: the losers that are forgotten while they wait in limbo do not return, the others do.
#[test]
fn v277_v279_what_was_forgotten_in_limbo_does_not_return() {
    let world = World::new();
    let status = |apps: u32, key: &str| profile(&format!("Gateway status: {apps} apps pending")).key(key);
    let canonical = world.add(status(4, "a")).id;
    let shared = world.add(status(7, "b")).id;
    world.add(status(7, "c"));
    let alone = world.add(status(3, "d")).id;
    let run = collapse(&world);
    assert_eq!(counts(&world.forget(&["b"])), (0, 1, 0), "c says the same");
    assert!(world.unknown("b"));
    assert_eq!(counts(&world.forget(&["d"])), (1, 0, 0), "nobody else says that");
    assert_eq!(world.tombstone("d").id, alone);
    world.check();
    let undone = world.ns.undo(run).unwrap();
    assert_eq!((undone.restored, undone.lost.len()), (1, 1));
    assert!(undone.lost[0].contains(&alone.to_string()), "{:?}", undone.lost);
    assert_eq!(
        (world.row(shared).keys, world.row(canonical).keys),
        (vec!["c".to_owned()], vec!["a".to_owned()])
    );
}

/// V-291: the run that erased a row of limbo, or forgot it, took the place of the run that had removed it, and the memory
/// that stood for it forgot its id.
#[test]
fn v291_a_tombstone_says_what_was_true_at_the_removal() {
    let world = World::new();
    let status = |apps: u32, key: &str| profile(&format!("Gateway status: {apps} apps pending")).key(key);
    let canonical = world.add(status(4, "a")).id;
    let losers = [world.add(status(7, "b")).id, world.add(status(3, "c")).id];
    let run = collapse(&world);
    let merged = |world: &World| world.ns.explain(canonical.to_string()).unwrap().merged_from;
    let removed = |loser: MemoryId| world.ns.explain(loser.to_string()).unwrap().removed.unwrap();
    let before = losers.map(removed);
    assert_eq!(merged(&world), losers);
    world.advance("8d");
    world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
    for (loser, before) in losers.into_iter().zip(before) {
        let stone = world.tombstone(loser);
        assert_eq!((stone.run, stone.reason), (Some(run), TombstoneReason::Collapsed));
        assert_eq!((stone.deleted_at, before.run), (before.at, stone.run));
        assert_eq!(stone.erased_at, Some(world.now()));
    }
    assert_eq!(merged(&world), losers);
    world.forget_id(canonical);
    assert_eq!(world.tombstone(canonical).merged_from, losers);
    assert_eq!(merged(&world), losers);
    world.check();
}

fn of_ann(mut draft: Draft) -> Draft {
    draft.fields.metadata = Some(serde_json::json!({ "user": "ann" }));
    draft
}

fn ann() -> Forget {
    Forget::filter(Filter::parse(r#"{"metadata.user": "ann"}"#).unwrap(), Scope::Shared)
}

/// Every row of the shared part, in whatever state.
fn rows(world: &World) -> Vec<MemoryId> {
    let request = PageRequest { any_state: true, ..PageRequest::default() };
    world.ns.list(&request).unwrap().items.iter().map(|memory| memory.id).collect()
}

fn by_state(plan: &ForgetPlan) -> [u64; 4] {
    [plan.live, plan.superseded, plan.expired, plan.limbo]
}

/// Plans a forget, looks whether anything has changed, and carries it out.
fn planned_and_done(world: &World, what: Forget) -> (ForgetPlan, Forgotten) {
    let (before, file) = (rows(world), std::fs::read(world.path()).unwrap());
    let plan = world.ns.forget_plan(what.clone()).unwrap();
    assert_eq!(rows(world), before);
    assert!(std::fs::read(world.path()).unwrap() == file, "a plan writes nothing");
    let done = world.ns.forget(what).unwrap();
    assert_eq!(plan.answer, done);
    assert_eq!(plan.memories(), done.tombstones.len() as u64);
    assert_eq!(plan.memories(), (before.len() - rows(world).len()) as u64);
    world.check();
    (plan, done)
}

/// V-310: a forget by filter left the superseded versions that match, and an export of all states had them.
#[test]
fn v310_a_filter_reaches_the_superseded() {
    let world = World::new();
    let tea = world.add(of_ann(text("Ann prefers tea").key("drink"))).id;
    let coffee = world.add(of_ann(text("Ann prefers coffee").key("drink"))).id;
    let other = world.add(text("Ben prefers milk")).id;
    let (plan, done) = planned_and_done(&world, ann());
    assert_eq!((by_state(&plan), done.forgotten), ([1, 1, 0, 0], 2));
    let sample: Vec<_> = plan.sample.iter().map(|one| (one.id, one.state)).collect();
    assert_eq!(sample, [(tea, State::Superseded), (coffee, State::Live)]);
    assert!(plan.sample.iter().all(|one| one.keys == ["drink"]));
    assert_eq!(rows(&world), [other]);
}

/// A filter reaches each state, with an index of what it asks for and without one; narrowed, it takes what is seen.
#[test]
fn a_filter_reaches_every_state_or_the_visible_alone() {
    for (declared, visible_only) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::with(keeping);
        if declared {
            world.ns.declare_index("user").unwrap();
        }
        let status = |apps: u32| of_ann(profile(&format!("Gateway status: {apps} apps pending")));
        world.add(status(4).key("a"));
        let merged = world.add(status(7).key("b")).id;
        collapse(&world);
        assert_eq!(world.row(merged).state, State::Limbo);
        world.add(of_ann(text("old").key("k")));
        world.add(of_ann(text("new").key("k")));
        let mut brief = of_ann(text("brief"));
        brief.expiry = Some(Expiry::At(world.ahead("1h")));
        world.add(brief);
        let other = world.add(text("of nobody")).id;
        world.advance("2h");
        let Forget::Filter { filter, scope, .. } = ann() else { unreachable!() };
        let what = Forget::Filter { filter, scope, visible_only, all: false };
        let (plan, _) = planned_and_done(&world, what);
        // Forgetting what stands for another one takes that one too.
        assert_eq!(by_state(&plan), if visible_only { [2, 0, 0, 1] } else { [2, 1, 1, 1] });
        assert_eq!(rows(&world).len(), if visible_only { 3 } else { 1 });
        assert!(rows(&world).contains(&other));
    }
}

/// A row of limbo that matches goes alone where the row that stands for it does not match, and its text goes from that
/// row, which had answered with it under its key. What had joined it counts as well.
#[test]
fn a_row_of_limbo_that_matches_goes_with_its_text() {
    for (declared, filter) in [
        (false, r#"{"metadata.user": "ann"}"#),
        (true, r#"{"metadata.user": "ann"}"#),
        (false, r#"{"categories": "hers", "metadata.user": "ann"}"#),
    ] {
        let world = World::new();
        let stays = world.add(profile("Gateway status: 4 apps pending").key("a")).id;
        let mut draft = of_ann(profile("Gateway status: 7 apps pending").key("b"));
        draft.categories = Some(vec!["hers".to_owned()]);
        let gone = world.add(draft).id;
        if declared {
            world.ns.declare_index("user").unwrap();
        }
        let run = collapse(&world);
        assert_eq!((world.live(), world.row("b").text.contains("7 apps")), (vec![stays], true));
        let what = Forget::filter(Filter::parse(filter).unwrap(), Scope::Shared);
        let (plan, done) = planned_and_done(&world, what);
        assert_eq!((by_state(&plan), done.tombstones), ([0, 0, 0, 1], vec![gone]));
        let stone = world.tombstone("b");
        assert_eq!((stone.id, stone.erased_at), (gone, Some(world.now())));
        assert_eq!(
            (world.row(stays).keys, world.row(stays).text.contains("4 apps")),
            (vec!["a".into()], true)
        );
        assert_eq!(world.ns.undo(run).unwrap().restored, 0);
        world.check();
    }
}

/// A plan of names and tags says what the forget does then, and tells of those that stay for others.
#[test]
fn every_forget_has_a_plan() {
    let world = World::new();
    let tagged = |words: &str, key: &str| {
        let mut draft = text(words).key(key);
        draft.tags = Some(vec!["t".to_owned()]);
        draft
    };
    world.add(tagged("said by both", "a"));
    world.add(text("said by both").key("b"));
    world.add(tagged("alone", "c"));
    world.add(text("alone, and newer").key("c"));
    let names = |names: [&str; 2]| Forget::names(names);
    let (plan, done) = planned_and_done(&world, names(["a", "nobody"]));
    assert_eq!((counts(&done), done.missing(), by_state(&plan)), ((0, 1, 0), 1, [0; 4]));
    let (plan, _) = planned_and_done(&world, Forget::tag("t"));
    assert_eq!(by_state(&plan), [1, 1, 0, 0], "new content for a key keeps its tags");
    let (plan, _) = planned_and_done(&world, names(["b", "c"]));
    assert_eq!(by_state(&plan), [1, 0, 0, 0]);
    let elsewhere = world.db.namespace("elsewhere").unwrap();
    let plan = elsewhere.forget_plan(names(["a", "b"])).unwrap();
    assert_eq!((plan.answer.missing(), plan.memories()), (2, 0));
}

/// A filter without any condition matches everything: it is refused, planned or not, unless that is meant.
#[test]
fn a_filter_without_a_condition_has_to_be_meant() {
    let world = World::new();
    for at in 0..25 {
        world.add(text(&format!("memory {at}")));
    }
    let what = Forget::filter(Filter::parse("{}").unwrap(), Scope::Any);
    let refused = world.ns.forget(what.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().starts_with("filter: "), "{refused}");
    assert_eq!(world.ns.forget_plan(what).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(rows(&world).len(), 25);
    let filter = Filter::parse("{}").unwrap();
    let (plan, _) = planned_and_done(
        &world,
        Forget::Filter { filter, scope: Scope::Any, visible_only: false, all: true },
    );
    assert_eq!((by_state(&plan), plan.sample.len()), ([25, 0, 0, 0], 20));
}

/// MODEL-8: what one writer is forgotten by takes nothing from the others of a row. What the row says as a whole takes the row.
#[test]
fn a_filter_takes_the_writers_that_match() {
    let shared = || {
        let world = World::new();
        let ann = world.add(text("the ferry runs at noon").key("ann").tag("t1")).id;
        assert_eq!(world.add(text("the ferry runs at noon").key("zoe").tag("t2")).id, ann);
        (world, ann)
    };
    let forget = |world: &World, filter: &str| {
        let what = Forget::filter(Filter::parse(filter).unwrap(), Scope::Shared);
        let plan = world.ns.forget_plan(what.clone()).unwrap();
        let done = world.ns.forget(what).unwrap();
        assert_eq!(
            (plan.answer.forgotten, plan.answer.detached),
            (done.forgotten, done.detached),
            "{filter}"
        );
        world.check();
        (done.forgotten, done.detached)
    };
    for filter in [r#"{"tags": "t2"}"#, r#"{"key": "zoe"}"#, r#"{"tags": "t2", "kind": "knowledge"}"#] {
        let (world, ann) = shared();
        assert_eq!(forget(&world, filter), (0, 1), "{filter}");
        let row = world.row(ann);
        assert_eq!((row.keys, row.tags), (vec!["ann".to_owned()], vec!["t1".to_owned()]), "{filter}");
        assert_eq!(forget(&world, r#"{"tags": "t1"}"#), (1, 0), "{filter}: the last writer");
        assert!(rows(&world).is_empty(), "{filter}");
    }
    // Every writer matches, or none by itself.
    for filter in [r#"{"kind": "knowledge"}"#, r#"{"$and": [{"tags": "t1"}, {"tags": "t2"}]}"#] {
        let (world, _) = shared();
        assert_eq!(forget(&world, filter), (1, 0), "{filter}");
        assert!(rows(&world).is_empty(), "{filter}");
    }
    // What a pass has united is judged by the rows that were united.
    let of_bob = |words| {
        let mut draft = text(words);
        draft.fields.metadata = Some(serde_json::json!({ "user": "bob" }));
        draft
    };
    for (user, stays) in [("ann", "b"), ("bob", "a")] {
        let world = World::new();
        world.add(of_ann(profile("Gateway status: 4 apps pending")).key("a"));
        let mut draft = of_bob("Gateway status: 7 apps pending").key("b");
        draft.fields.kind = Some(Kind::Profile);
        world.add(draft);
        collapse(&world);
        assert_eq!(world.live().len(), 1);
        forget(&world, &format!(r#"{{"metadata.user": "{user}"}}"#));
        let left = world.live();
        assert_eq!((left.len(), world.row(left[0]).keys), (1, vec![stays.to_owned()]), "{user}");
    }
    // A text that took the place of another has what its writer brought, and its own.
    let world = World::new();
    let [old, new] = ["Ann lives in Ghent", "Ann lives in Bruges"].map(|words| {
        let name = if words.contains("Ghent") { "pa" } else { "pb" };
        world.add(text(words).key(name).tag(name)).id
    });
    world.supersede(old, new, SupersedeMode::Correction, None).unwrap();
    forget(&world, r#"{"tags": "pa"}"#);
    assert_eq!((rows(&world), world.row(new).keys), (vec![new], vec!["pb".to_owned()]));
}

/// A field that the row says as a whole still takes those alone who brought it to what a pass has united; and a key that has only
/// moved to a text keeps that from going with its writer.
#[test]
fn a_filter_on_the_row_takes_the_writers_that_brought_it() {
    let forget = |world: &World, filter: &str| {
        let filter = Filter::parse(filter).unwrap();
        let done = world.ns.forget(Forget::filter(filter, Scope::Shared)).unwrap();
        world.check();
        (done.forgotten, done.detached)
    };
    for (filter, left) in [
        (r#"{"importance": {"$gt": 0.6}}"#, Some(["a", "c"].as_slice())),
        (r#"{"importance": {"$lt": 0.3}}"#, Some(&["b", "c"])),
        (r#"{"importance": {"$gt": 0.1}}"#, None),
    ] {
        let world = World::new();
        for (key, apps, importance) in [("a", 4, 0.2), ("b", 7, 0.9), ("c", 9, 0.5)] {
            let draft = profile(&format!("Gateway status: {apps} apps pending"));
            world.add(draft.key(key).importance(importance));
        }
        collapse(&world);
        let [one] = world.live()[..] else { panic!("{:?}", world.live()) };
        forget(&world, filter);
        let mut keys: Vec<String> = world.live().iter().flat_map(|id| world.row(*id).keys).collect();
        keys.sort_unstable();
        assert_eq!(keys, left.unwrap_or_default(), "{filter}");
        let named = World::new();
        named.add(profile("Gateway status: 4 apps pending"));
        named.add(profile("Gateway status: 7 apps pending"));
        collapse(&named);
        let id = named.live()[0];
        forget(&named, &format!(r#"{{"id": "{id}"}}"#));
        assert!(named.live().is_empty(), "{one}: an id names the memory with all that is in it");
    }
    // The filter matches the one writer of a text to which an earlier one has lost its key.
    let world = World::new();
    let [old, new] = [1, 2].map(|list| {
        let draft = text(&format!("text number {list}")).key(format!("k{list}"));
        world.add(draft.metadata(serde_json::json!({ "list": list }))).id
    });
    world.supersede(old, new, SupersedeMode::Replaced, None).unwrap();
    assert_eq!(forget(&world, r#"{"metadata.list": 2}"#), (1, 0));
    assert_eq!((world.tombstone(new).id, rows(&world)), (new, vec![old]));
}

/// What was united in two steps is judged by the rows that each writer came from, and goes from every row that it has come to.
#[test]
fn a_filter_reaches_through_rows_that_were_united_again() {
    let united = || {
        let world = World::new();
        for (key, apps, importance) in [("a", 4, 0.1), ("b", 7, 0.4), ("c", 9, 0.8)] {
            let draft = profile(&format!("Gateway status: {apps} apps pending"));
            world.add(draft.key(key).importance(importance));
            if world.live().len() > 1 {
                collapse(&world);
            }
        }
        world
    };
    for (filter, left) in [
        (r#"{"importance": {"$gte": 0.4}}"#, ["a"].as_slice()),
        (r#"{"importance": 0.4}"#, &["a", "c"]),
        (r#"{"text": "Gateway status: 7 apps pending"}"#, &["a", "c"]),
        (r#"{"importance": {"$lt": 0.2}}"#, &["b", "c"]),
    ] {
        let world = united();
        world.ns.forget(Forget::filter(Filter::parse(filter).unwrap(), Scope::Shared)).unwrap();
        world.check();
        let mut keys: Vec<String> = world.live().iter().flat_map(|id| world.row(*id).keys).collect();
        keys.sort_unstable();
        assert_eq!(keys, left, "{filter}");
        for (key, apps) in [("a", 4), ("b", 7), ("c", 9)] {
            let said = format!("Gateway status: {apps} apps pending");
            assert_eq!(left.contains(&key), world.has_bytes_of(&said), "{filter}: {key}");
        }
    }
}

/// What is left of a united row says what its writers said: the same filter, used again, takes nobody who does not match, and a
/// listing shows the same. So it is where their texts differ, and where they are equal.
#[test]
fn the_same_filter_twice_takes_those_alone_who_match() {
    let united = |apps: [u32; 2]| {
        let world = World::new();
        let created = [world.ahead("0s"), world.ahead("1s")];
        for (at, (key, importance)) in [("a", 0.1), ("b", 0.4)].into_iter().enumerate() {
            let mut draft = profile(&format!("Gateway status: {} apps pending", apps[at])).key(key);
            draft = draft.importance(importance).created_at(created[at]).confidence(0.2 + importance);
            let significance = if key == "a" { Significance::Routine } else { Significance::Important };
            draft = draft.significance(significance).channel(key);
            let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            world.ns.add_all(vec![draft], &how).unwrap();
        }
        collapse(&world);
        assert_eq!(world.live().len(), 1);
        (world, created)
    };
    for apps in [[4, 7], [4, 4]] {
        for (filter, stays) in [
            (r#"{"significance": "important"}"#, "a"),
            (r#"{"significance": "routine"}"#, "b"),
            (r#"{"importance": {"$gt": 0.3}}"#, "a"),
            (r#"{"importance": {"$lt": 0.3}}"#, "b"),
            (r#"{"channel": "a"}"#, "b"),
        ] {
            let (world, created) = united(apps);
            let forget = || {
                let filter = Filter::parse(filter).unwrap();
                let done = world.ns.forget(Forget::filter(filter, Scope::Shared)).unwrap();
                world.check();
                done.forgotten + done.detached
            };
            assert_eq!((forget(), forget()), (1, 0), "{apps:?} {filter}");
            let [left] = world.live()[..] else { panic!("{apps:?} {filter}: {:?}", world.live()) };
            let row = world.row(left);
            let at = usize::from(stays == "b");
            assert_eq!((row.keys, row.channel), (vec![stays.to_owned()], Some(stays.to_owned())));
            assert_eq!((row.importance, row.created_at), ([0.1, 0.4][at], created[at]), "{apps:?} {filter}");
            assert_eq!(row.text, format!("Gateway status: {} apps pending", apps[at]));
        }
    }
}

/// A caller may let a memory take the place of one of another part. That part is not asked.
#[test]
fn what_is_forgotten_in_one_part_takes_nothing_of_another() {
    for mode in [SupersedeMode::Correction, SupersedeMode::Duplicate] {
        for by_filter in [false, true] {
            let world = World::new();
            let shared = world.add(text("the cat sat").key("k1")).id;
            let of_bob = world.add(text("the dog ran").key("k2").agent("bob")).id;
            world.supersede(shared, of_bob, mode, None).unwrap();
            let scope = Scope::agent("bob").unwrap();
            let what = match by_filter {
                true => {
                    let filter = Filter::from_json(&json!({"key": "k2"})).unwrap();
                    Forget::Filter { filter, scope, visible_only: true, all: false }
                }
                false => Forget::Names {
                    names: vec![of_bob.to_string()],
                    scope,
                    keep_history: false,
                    also_merged: true,
                    with_history: true,
                },
            };
            let done = world.ns.forget(what).unwrap();
            assert_eq!(done.tombstones, [of_bob], "{mode}, by filter: {by_filter}");
            assert_eq!(world.row(shared).text, "the cat sat");
            world.check();
        }
    }
}

/// MODEL-8: the instants and figures of the write that made a row go with it, as far as nobody who stays gave the same.
#[test]
fn model_8_a_writer_that_leaves_takes_along_its_instants_and_figures() {
    let said = |key: &str| {
        let draft = text("the cat sat").key(key).created_at(ms(1_000)).importance(0.9).confidence(0.6);
        draft.updated_at(ms(2_000)).significance(Significance::Core).tier(Tier::Semantic)
    };
    let told = |world: &World| {
        let row = world.row("k2");
        (row.created_at, row.updated_at, row.importance, row.significance)
    };
    for how in ["forget", "apart", "undo"] {
        let world = World::at(10_000);
        let run = world.start_import();
        match how {
            "undo" => drop(world.import(run, vec![said("k1")])),
            _ => drop(world.add(said("k1"))),
        }
        for key in ["k2", "k3"] {
            world.advance("5s");
            world.add(text("the cat sat").key(key).tier(Tier::Semantic));
        }
        assert_eq!(world.live().len(), 1);
        match how {
            "forget" => drop(world.forget(&["k1"])),
            "undo" => drop(world.ns.undo(run).unwrap()),
            _ => drop(world.add(text("the dog ran").key("k1"))),
        }
        assert_eq!(told(&world), (ms(15_000), ms(20_000), 0.5, Significance::default()), "{how}");
        assert_eq!(world.row("k2").confidence, Some(0.4), "{how}");
        let old = Filter::from_json(&json!({"created_at": {"$lt": ms(9_000)}})).unwrap();
        let found = world.ns.list(&PageRequest { filter: Some(old), ..PageRequest::default() }).unwrap();
        assert!(found.items.iter().all(|row| row.keys == ["k1"]), "{how}");
        world.check();
    }
    // Who gave the same keeps it.
    let world = World::at(10_000);
    for key in ["k1", "k2"] {
        world.add(said(key));
    }
    let before = (told(&world), world.row("k2").confidence);
    world.forget(&["k1"]);
    assert_eq!((told(&world), world.row("k2").confidence), before);
}

/// MODEL-8: a key that leaves the memory of another takes none of that one's instants along.
#[test]
fn model_8_a_writer_that_leaves_takes_none_of_the_instants_of_another() {
    let world = World::at(10_000);
    world.add(text("the cat sat").key("k1").created_at(ms(1_000)));
    world.advance("5s");
    world.add(text("the cat sat").key("k2"));
    world.advance("5s");
    world
        .ns
        .update(
            "k2",
            Patch {
                fields: Fields { channel: Field::Value("ward".into()), ..Fields::default() },
                ..Patch::default()
            },
        )
        .unwrap();
    world.forget(&["k1"]);
    assert_eq!(world.row("k2").created_at, ms(15_000));
    world.check();
}
