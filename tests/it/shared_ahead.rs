//! A text of several writers, of whom one says it in the place of a memory for which another text is announced: what the others say
//! does not end for that (MODEL-8, LIFE-6, DEDUP-55).

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, text};
use oubliette::memory::SupersedeMode;
use oubliette::{Decision, Draft, Time};

const REPLACED: SupersedeMode = SupersedeMode::Replaced;
const NURSE: &str = "Ann is a nurse";
const ACME: &str = "Ann works at Acme";
const GLOBEX: &str = "Ann works at Globex";

/// What is true, with the keys that answer with it.
type Told = BTreeMap<String, BTreeSet<String>>;

fn told_at(world: &World, at: Time) -> Told {
    let now = world.now();
    world.clock.set(at);
    let mut told = Told::new();
    for row in world.live().into_iter().map(|id| world.row(id)) {
        let answers = row.keys.iter().filter(|key| world.row(key).id == row.id).cloned();
        told.entry(row.text).or_default().extend(answers);
    }
    world.clock.set(now);
    told
}

fn says<const N: usize>(all: [(&str, &[&str]); N]) -> Told {
    all.map(|(text, keys)| (text.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())).into()
}

/// x is to be replaced in twenty hours, by its own key or by another one, and b says a text that another writer says in x's place.
fn announced(by: &str) -> (World, Time) {
    let world = World::new();
    world.add(text(ACME).key("x"));
    world.add(text(NURSE).key("b"));
    let at = world.ahead("20h");
    if by == "x" {
        world.ns.replace(["x"], text(GLOBEX), REPLACED, Some(at)).unwrap();
    } else {
        world.add(text(GLOBEX).key(by).supersedes("x").valid_from(at));
    }
    world.advance("1h");
    (world, at.plus("1h".parse().unwrap()))
}

/// MODEL-8: nobody has said anything of what b says, so it does not end where another writer says the same in the place of x.
#[test]
fn life_6_what_a_writer_says_does_not_end_for_what_another_writer_of_the_text_replaces() {
    for by in ["x", "g"] {
        // The key of the other writer, whether it has said the text before, and whether it names x by a draft.
        for (key, said, by_draft) in
            [(Some("e"), false, true), (Some("e"), true, true), (None, false, true), (Some("e"), true, false)]
        {
            let (world, then) = announced(by);
            let draft = || Draft { key: key.map(str::to_owned), ..text(NURSE) };
            if said {
                world.add(draft());
            }
            let before = world.row("b");
            if by_draft {
                let outcome = world.add(draft().supersedes("x"));
                assert_eq!(outcome.decision, Decision::Stored, "{by} {key:?} {said}");
                assert_eq!(world.row("x").id, outcome.id);
            } else {
                world.ns.supersede_all(["x"], "e", REPLACED, None).unwrap();
            }
            world.check();
            let keys = BTreeSet::from_iter(key.into_iter().chain(["x"]).map(str::to_owned));
            let now = told_at(&world, world.now());
            assert_eq!(
                now,
                says([(NURSE, &["b", "e", "x"][..])])
                    .into_iter()
                    .map(|(text, mut all)| {
                        all.retain(|name| name == "b" || keys.contains(name));
                        (text, all)
                    })
                    .collect::<Told>()
            );
            let led = Vec::from_iter(keys.iter().map(String::as_str).chain(Some(by).filter(|by| *by != "x")));
            let after = || told_at(&world, then);
            let mut expected = says([(NURSE, &["b"]), (GLOBEX, &led)]);
            assert_eq!(after(), expected, "{by} {key:?} {said} {by_draft}");
            let b = world.row("b");
            assert_eq!((b.id, b.valid_to, b.superseded_by()), (before.id, None, None));
            // What b says is as it was, whether the other writer stays or goes.
            if let Some(key) = key {
                world.forget(&[key]);
                world.check();
                expected.get_mut(GLOBEX).unwrap().remove(key);
                assert_eq!(after(), expected, "{by} {key} {said} {by_draft}");
            }
        }
    }
}

/// The same in an import, told twice, and taken back: everything is as without the import (MODEL-33, LIFE-26).
#[test]
fn model_33_an_import_that_says_what_another_writer_says_leaves_it_as_it_was() {
    const TAG: &str = "import:x:1";
    let all = [("x", false), ("g", false), ("x", true), ("g", true)];
    for ((by, by_tag), said) in all.into_iter().flat_map(|each| [(each, false), (each, true)]) {
        let (world, then) = announced(by);
        if said {
            world.add(text(NURSE).key("e"));
        }
        let told = || [told_at(&world, world.now()), told_at(&world, then)];
        let before = told();
        let run = world.start_import();
        let line = || text(NURSE).key("e").supersedes("x").tag(TAG);
        world.import(run, vec![line()]);
        let once = told();
        assert!(once[1].contains_key(NURSE), "{by} {said}");
        assert_eq!(world.import(run, vec![line()])[0].decision, Decision::Unchanged);
        assert_eq!(told(), once, "{by} {said}");
        if by_tag {
            world.forget_tag(TAG);
        } else {
            world.ns.undo(run).unwrap();
        }
        world.check();
        assert_eq!(told(), before, "{by} {by_tag} {said}");
    }
}

/// Each of several writers of one text ends for what is announced for that which it names, and for nothing else.
#[test]
fn life_6_writers_of_one_text_each_end_for_what_they_replace() {
    let world = World::new();
    for (at, key) in ["x", "y", "z"].into_iter().enumerate() {
        world.add(text(&format!("{key} now")).key(key));
        if key != "z" {
            let later = text(&format!("{key} later"));
            let hours = format!("{}h", 20 + 10 * at);
            world.ns.replace([key], later, REPLACED, Some(world.ahead(&hours))).unwrap();
        }
    }
    for (key, name) in [("p", "x"), ("q", "y"), ("r", "z"), ("s", "z")] {
        world.add(text(NURSE).key(key).supersedes(name));
        world.check();
    }
    let at = |hours: &str| told_at(&world, world.ahead(hours));
    assert_eq!(at("1h"), says([(NURSE, &["p", "q", "r", "s", "x", "y", "z"])]));
    assert_eq!(at("21h"), says([(NURSE, &["q", "r", "s", "y", "z"]), ("x later", &["p", "x"])]));
    assert_eq!(
        at("31h"),
        says([(NURSE, &["r", "s", "z"]), ("x later", &["p", "x"]), ("y later", &["q", "y"])])
    );
}

/// What several writers say is to end as a whole. A writer that says it in the place of x ends for what is announced for x as well, and
/// the others do not.
#[test]
fn life_6_a_text_of_several_writers_that_is_to_end_ends_as_before_for_the_others() {
    for (hours, first) in [("10h", "Ann is a doctor"), ("30h", GLOBEX)] {
        let (world, then) = announced("x");
        world.add(text(NURSE).key("e"));
        let own = world.ahead(hours);
        let doctor = world.add(text("Ann is a doctor")).id.to_string();
        world.ns.supersede_all([world.row("b").id.to_string()], doctor, REPLACED, Some(own)).unwrap();
        let before = world.row("b");
        world.add(text(NURSE).key("e").supersedes("x"));
        world.check();
        let b = world.row("b");
        assert_eq!((b.id, b.valid_to), (before.id, before.valid_to), "{hours}");
        let by = |hours: &str| told_at(&world, world.ahead(hours));
        assert_eq!(by("1h"), says([(NURSE, &["b", "e", "x"])]), "{hours}");
        assert!(told_at(&world, own)["Ann is a doctor"].contains("b"), "{hours}");
        assert!(told_at(&world, own.min(then))[first].contains("e"), "{hours}");
        assert_eq!(by("31h").values().map(BTreeSet::len).sum::<usize>(), 3, "{hours}: {:?}", by("31h"));
    }
}

/// Drafts without a key that say a text in the place of x, for which another text is announced.
fn drafts_without_key(world: &World) -> [Draft; 6] {
    let draft = || text(NURSE).supersedes("x");
    [
        draft(),
        draft().tag("import:x:1").tag("work"),
        draft().valid_from(world.ago("30m")),
        draft().valid_from(world.ahead("10h")),
        draft().valid_from(world.ahead("30h")),
        draft().metadata(serde_json::json!({ "project": "p" })),
    ]
}

/// DEDUP-55: a text that stands in the places of all that a draft names ends for what is announced for them anyway, so the draft is
/// the same write again.
#[test]
fn dedup_55_a_draft_without_a_key_that_takes_a_place_is_stored_once() {
    let cases = ["x", "g"].into_iter().flat_map(|by| [(by, 0), (by, 1), (by, 2)]);
    for (by, others, nth) in cases.flat_map(|(by, others)| (0..6).map(move |nth| (by, others, nth))) {
        for by_import in [true, false] {
            let why = format!("{by} {others} {nth} {by_import}");
            let (world, then) = announced(by);
            match others {
                0 => drop(world.forget(&["b"])),
                1 => {}
                _ => drop(world.add(text(NURSE))),
            }
            let draft = drafts_without_key(&world)[nth].clone();
            let write = || match by_import {
                true => world.import(world.start_import(), vec![draft.clone()]).remove(0),
                false => world.add(draft.clone()),
            };
            let hours = [world.now(), world.ahead("11h"), then, world.ahead("31h")];
            let told = || hours.map(|at| told_at(&world, at));
            let first = write();
            assert_eq!(first.decision, Decision::Stored, "{why}");
            let (once, rows) = (told(), world.ns.stats().unwrap().memories);
            for _ in 0..3 {
                world.advance("1m");
                let again = write();
                assert_eq!((again.decision, again.id), (Decision::Reinforced, first.id), "{why}");
                world.check();
                assert_eq!(world.ns.stats().unwrap().memories, rows, "{why}");
            }
            assert_eq!(told(), once, "{why}");
        }
    }
}

/// MODEL-33, LIFE-26: a line without a key that is imported each night is taken back whole, whichever night goes first. What is
/// announced for one of the memories that it names ends for nothing else.
#[test]
fn model_33_a_line_without_a_key_of_several_nights_is_taken_back() {
    const TAG: &str = "import:x:1";
    for (by, names) in ["x", "g"].into_iter().flat_map(|by| [(by, &["x"][..]), (by, &["x", "b"])]) {
        for order in ["tag", "first", "last"] {
            let why = format!("{by} {names:?} {order}");
            let (world, then) = announced(by);
            world.ns.replace(["b"], text("Ann is a doctor"), REPLACED, Some(world.ahead("30h"))).unwrap();
            let hours = [world.now(), then, world.ahead("31h")];
            let told = || hours.map(|at| told_at(&world, at));
            let before = told();
            let line = names.iter().fold(text("Ann is away").tag(TAG), |line, name| line.supersedes(*name));
            let mut nights = Vec::new();
            for _ in 0..2 {
                nights.push(world.start_import());
                world.import(nights[nights.len() - 1], vec![line.clone()]);
                world.advance("1m");
            }
            match order {
                "tag" => drop(world.forget_tag(TAG)),
                _ => {
                    if order == "last" {
                        nights.reverse();
                    }
                    for night in nights {
                        world.ns.undo(night).unwrap();
                        world.check();
                    }
                }
            }
            world.check();
            assert_eq!(told(), before, "{why}");
        }
    }
}
