//! What a forget by ids leaves of the memories, and tells of: earlier versions, later ones, and those to come.

use std::collections::BTreeSet;

use crate::world::{World, span, text};
use oubliette::clock::RandomIds;
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::SupersedeMode;
use oubliette::{Forget, MemoryId, Patch, Scope, WriteOptions};

fn by_ids(ids: &[MemoryId], with_history: bool) -> Forget {
    let names = ids.iter().map(ToString::to_string).collect();
    Forget::Names { names, scope: Scope::Any, keep_history: false, also_merged: true, with_history }
}

/// V-311: a memory that was forgotten by its id left its earlier versions under its key, and nothing said so.
#[test]
fn v311_forgetting_by_id_tells_of_the_versions_that_are_left() {
    for with_history in [false, true] {
        let world = World::new();
        world.add(text("pin 1").key("pin"));
        world.add(text("pin 2").key("pin"));
        let newest = world.add(text("pin 3").key("pin")).id;
        let answer = world.ns.forget(by_ids(&[newest], with_history)).unwrap();
        assert_eq!((answer.forgotten, answer.missing()), (1, 0));
        let stones = answer.tombstones.len();
        assert_eq!((answer.versions_left, stones), if with_history { (0, 3) } else { (2, 1) });
        assert_eq!(answer.earlier.len() as u64, answer.versions_left);
        world.check();
    }
}

/// V-311: a caller who kept the id of the first text forgot only that text, and was told that the memory was forgotten.
#[test]
fn v311_forgetting_a_first_text_by_id_names_the_texts_that_took_its_place() {
    for key in [None, Some("pin")] {
        for with_history in [false, true] {
            let world = World::new();
            let draft = text("pin 1");
            let first = world.add(if let Some(key) = key { draft.key(key) } else { draft }).id;
            let change = |id: MemoryId, text: &str| {
                let patch = Patch { text: Some(text.to_owned()), ..Patch::default() };
                world.ns.update(id, patch).unwrap().id
            };
            let second = change(first, "pin 2");
            let third = change(second, "pin 3");
            let answer = world.ns.forget(by_ids(&[first], with_history)).unwrap();
            let (left, later) = if with_history { (0, vec![]) } else { (2, vec![second, third]) };
            assert_eq!((answer.forgotten, answer.versions_left), (1, left));
            assert_eq!(BTreeSet::from_iter(answer.later), BTreeSet::from_iter(later));
            assert_eq!(world.ns.get(third).unwrap().is_none(), with_history);
            world.check();
        }
    }
}

/// MODEL-61: a key goes with what it has said, and the answer names what others have put in the place of that.
#[test]
fn model61_forgetting_a_key_names_the_text_to_which_it_only_leads() {
    for with_history in [false, true] {
        for at in [None, Some("1h")] {
            let world = World::new();
            world.add(text("Ann lives in Ghent").key("home"));
            let by_hand = text("Ann lives in Bruges").verbatim(true);
            let at = at.map(|at| world.now().plus(span(at)));
            let draft = if let Some(at) = at { by_hand.valid_from(at) } else { by_hand };
            let led = world.add(draft.supersedes("home")).id;
            let mut what = Forget::names(["home"]);
            if with_history {
                what = what.with_history();
            }
            let plan = world.ns.forget_plan(what.clone()).unwrap().answer;
            let answer = world.ns.forget(what).unwrap();
            let (later, to_come) = if at.is_some() { (vec![], vec![led]) } else { (vec![led], vec![]) };
            assert_eq!((answer.forgotten, answer.detached, answer.missing()), (1, 0, 0));
            assert_eq!((&plan.later, &plan.to_come), (&later, &to_come));
            assert_eq!((&answer.later, &answer.to_come), (&later, &to_come), "{answer:?}");
            assert_eq!(answer.versions_left, 1);
            assert!(world.ns.get(led).unwrap().is_some());
            world.check();
        }
    }
}

/// MODEL-61: a memory that a caller has called the same is that of others, and no text in the place of what the key has said.
#[test]
fn model61_forgetting_a_key_names_no_memory_into_which_its_own_was_merged() {
    let world = World::new();
    let home = world.add(text("Ghent is nice").key("home")).id;
    let other = world.add(text("Ghent is lovely").key("other")).id;
    world.supersede(home, other, SupersedeMode::Duplicate, None).unwrap();
    let answer = world.ns.forget(Forget::names(["home"]).with_history()).unwrap();
    assert_eq!((answer.forgotten, answer.versions_left, world.live()), (1, 0, vec![other]), "{answer:?}");
    world.check();
}

/// MODEL-61: what the key has said itself is no text of others, whoever else has said it.
#[test]
fn model61_forgetting_a_key_names_nothing_that_it_has_said_itself() {
    let world = World::new();
    world.add(text("Ann likes tea").key("drink"));
    let coffee = world.add(text("Ann likes coffee").key("drink")).id;
    assert_eq!(world.add(text("Ann likes coffee").key("other")).id, coffee);
    let answer = world.ns.forget("drink").unwrap();
    assert_eq!((answer.forgotten, answer.detached), (0, 1), "{answer:?}");
    assert_eq!((answer.later.len(), answer.versions_left), (0, 0), "{answer:?}");
    world.check();
}

/// What one name leaves another one of the same call may take: nothing that is gone is told of as left or as missing.
#[test]
fn names_of_one_chain_are_told_of_together() {
    for with_history in [false, true] {
        for many in 1..=3 {
            let world = World::new();
            let mut ids = vec![world.add(text("pin 0").key("pin")).id];
            ids.extend((1..4).map(|at| world.add(text(&format!("pin {at}")).key("pin")).id));
            let answer = world.ns.forget(by_ids(&ids[..many], with_history)).unwrap();
            let left = if with_history { &[] } else { &ids[many..] };
            assert_eq!((answer.forgotten, answer.missing()), (many as u64, 0));
            assert_eq!((answer.versions_left, &answer.later[..]), (left.len() as u64, left));
        }
    }
}

/// V-311: what a pass has merged a version into is the memory of others as well: it is no version, and stays with its other keys.
#[test]
fn v311_a_memory_into_which_a_version_was_merged_is_no_version_of_it() {
    for (with_history, erased) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new();
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let say = |at: usize| text("the queue is empty").key(format!("k{at}"));
        let ids: Vec<MemoryId> =
            world.ns.add_all((0..5).map(say).collect(), &options).unwrap().iter().map(|row| row.id).collect();
        world.ns.maintain_with(&MaintainOptions::live().passes([Pass::NearDuplicates])).unwrap();
        assert_eq!(world.live(), [ids[0]]);
        if erased {
            world.advance("400d");
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Limbo])).unwrap();
        }
        let answer = world.ns.forget(by_ids(&[ids[3]], with_history)).unwrap();
        assert_eq!((answer.versions_left, answer.later.len()), (0, 0), "{answer:?}");
        assert_eq!(world.row("k1").id, ids[0]);
        assert_eq!(world.row("k1").keys.len(), 4, "{erased}");
        world.check();
    }
}

/// V-311: what one of the names took the place of goes, too, in whatever order they are named.
#[test]
fn v311_the_order_of_the_names_changes_nothing() {
    for order in [[0, 2], [2, 0], [1, 2], [0, 1]] {
        let world = World::new();
        let rows = ["ash", "birch", "cedar"].map(|tree| world.add(text(tree)).id);
        for old in [0, 1] {
            world.supersede(rows[old], rows[2], SupersedeMode::Correction, None).unwrap();
        }
        let answer = world.ns.forget(by_ids(&order.map(|at| rows[at]), true)).unwrap();
        assert_eq!(
            (answer.versions_left, answer.missing(), world.live().len()),
            (0, 0, 0),
            "{order:?}: {answer:?}"
        );
        assert!(rows.iter().all(|id| world.ns.get(id.to_string()).unwrap().is_none()), "{order:?}");
        world.check();
    }
}

/// V-311: a text that another one replaces at an instant ahead is still true: it was told that its place was taken.
#[test]
fn v311_a_version_that_is_not_true_yet_is_told_as_one_to_come() {
    for with_history in [false, true] {
        for comes_now in [false, true] {
            let world = World::new();
            let first = world.add(text("Ann lives in Ghent")).id;
            let at = Some(world.ahead("30d"));
            let second = world.ns.replace([first], text("Ann lives in Bruges"), SupersedeMode::Replaced, at);
            let second = second.unwrap().id;
            let third = world.ns.replace(
                [second],
                text("Ann lives in Lier"),
                SupersedeMode::Replaced,
                Some(world.ahead("60d")),
            );
            let third = third.unwrap().id;
            if comes_now {
                world.clock.advance(span("31d"));
            }
            let answer = world.ns.forget(by_ids(&[first], with_history)).unwrap();
            let (later, to_come) = match (with_history, comes_now) {
                (true, _) => (vec![], vec![]),
                (false, false) => (vec![], vec![second, third]),
                (false, true) => (vec![second], vec![third]),
            };
            assert_eq!(answer.versions_left as usize, later.len() + to_come.len());
            assert_eq!((answer.later, answer.to_come), (later, to_come));
            world.check();
        }
    }
}

/// A key that went with a memory that the same call forgets by its id was told as one that names nothing.
#[test]
fn a_key_of_a_memory_that_went_before_it_is_not_missing() {
    for with_history in [false, true] {
        let world = World::new();
        let other = world.add(text("pin 0").key("other")).id;
        world.add(text("pin 1").key("pin"));
        let id = world.add(text("pin 2").key("pin")).id;
        let names =
            [other.to_string(), "other".to_owned(), id.to_string(), "pin".to_owned(), "nobody".to_owned()];
        let answer = world
            .ns
            .forget(Forget::Names {
                names: names.to_vec(),
                scope: Scope::Any,
                keep_history: false,
                also_merged: true,
                with_history,
            })
            .unwrap();
        assert_eq!(answer.missing_names, ["nobody"], "{answer:?}");
        assert_eq!(world.live(), []);
        world.check();
    }
}

/// Handles that write one after the other at one instant, as commands do while the clock is behind the last commit (MODEL-38): what
/// they write is in the order in which it was written.
#[test]
fn model_38_what_is_written_at_one_instant_is_in_order_whoever_writes() {
    let mut world = World::new();
    let reopen = |world: &mut World| {
        world.db.clone().close().unwrap();
        world.open_again(|builder| builder.ids(RandomIds::default()));
    };
    let texts: Vec<String> = (1..=12).map(|at| format!("version {at}")).collect();
    let mut ids = Vec::new();
    for version in &texts {
        reopen(&mut world);
        ids.push(world.add(text(version).key("k")).id);
        world.check();
    }
    assert!(ids.is_sorted());
    let told = world.ns.history("k").unwrap().versions;
    assert_eq!(told.iter().map(|version| version.id).collect::<Vec<_>>(), ids);
    reopen(&mut world);
    let names = vec!["k".to_owned()];
    let forget = Forget::Names {
        names,
        scope: Scope::Any,
        keep_history: true,
        also_merged: true,
        with_history: false,
    };
    world.ns.forget(forget).unwrap();
    assert_eq!(world.row("k").text, texts[10]);
    world.check();
}
