//! A text in the place of a memory that a caller names by its id: where the memory has one writer with a key, an id does what the
//! key does (LIFE-6, MODEL-59).
//!
//! `PROPTEST_CASES=5000 cargo test --test it by_id::` for longer.

use std::collections::BTreeMap;

use crate::world::{World, random, text};
use oubliette::memory::{Got, SupersedeMode};
use oubliette::tools::Toolbox;
use oubliette::{Decision, ErrorKind, Forget, Outcome, Patch, Result, Span, State, Time};
use proptest::prelude::*;
use serde_json::json;

const REPLACED: SupersedeMode = SupersedeMode::Replaced;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// How a caller names what a key means.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Key,
    Id,
}

impl By {
    fn name(self, world: &World, key: &str) -> String {
        match (self, world.get(key)) {
            (By::Id, Ok(Got::Memory(row))) => row.id.to_string(),
            _ => key.to_owned(),
        }
    }

    /// The same where no other key leads there: an id stands for the memory with all its writers.
    fn name_of_own(self, world: &World, key: &str) -> String {
        match world.get(key) {
            Ok(Got::Memory(row)) if row.holders.len() == 1 => self.name(world, key),
            _ => key.to_owned(),
        }
    }

    fn replace(self, world: &World, key: &str, say: &str, at: Option<Time>) -> Result<Outcome> {
        world.ns.replace([self.name(world, key)], text(say), REPLACED, at)
    }
}

fn true_now(world: &World) -> Vec<String> {
    let mut all: Vec<String> = world.live().iter().map(|id| world.row(id).text).collect();
    all.sort_unstable();
    all
}

/// What a search finds as true is what the key revises and forgets, however its place was taken.
#[test]
fn life_6_a_text_in_the_place_of_an_id_is_said_by_the_key_of_its_writer() {
    for by in [By::Key, By::Id] {
        let world = World::new();
        world.add(text("Ann lives in Ghent").key("home"));
        world.advance("1d");
        let bruges = by.replace(&world, "home", "Ann lives in Bruges", None).unwrap();
        assert_eq!(bruges.key.as_deref(), Some("home"));
        assert!(matches!(bruges.decision, Decision::Revised { .. }), "{bruges:?}");
        world.advance("1d");
        // What the writer says again is no second memory, and a next text takes the place of the one before.
        assert_eq!(world.add(text("Ann lives in Bruges").key("home")).decision, Decision::Unchanged);
        by.replace(&world, "home", "Ann lives in Antwerp", None).unwrap();
        world.add(text("Ann lives in Mons").key("home"));
        assert_eq!(true_now(&world), ["Ann lives in Mons"]);
        let gone = world.forget(&["home"]);
        assert_eq!((gone.forgotten, gone.tombstones.len()), (1, 4), "{gone:?}");
        assert!(world.live().is_empty());
        world.check();
    }
}

/// A change that is announced by the id goes with the key before its instant, as one that is announced by the key does.
#[test]
fn life_6_what_is_announced_by_an_id_goes_when_its_key_is_forgotten() {
    for by in [By::Key, By::Id] {
        let world = World::new();
        world.add(text("Ann lives in Ghent").key("home"));
        by.replace(&world, "home", "Ann lives in Rome", Some(world.ahead("90d"))).unwrap();
        world.advance("1d");
        world.forget(&["home"]);
        world.advance("100d");
        assert!(world.live().is_empty(), "nothing shows what was forgotten");
        world.check();
    }
}

/// An id stands for all writers: the new text has the key of the first, and the keys of the others lead there.
#[test]
fn life_6_of_several_writers_of_an_id_the_first_with_a_key_says_the_new_text() {
    let world = World::new();
    let id = world.add(text("Ann lives in Ghent")).id;
    for key in ["home", "address"] {
        assert_eq!(world.add(text("Ann lives in Ghent").key(key)).id, id);
    }
    let new = world.ns.replace([id], text("Ann lives in Bruges"), REPLACED, None).unwrap();
    assert_eq!(new.key.as_deref(), Some("home"));
    assert_eq!(true_now(&world), ["Ann lives in Bruges"]);
    for key in ["home", "address"] {
        assert_eq!(world.row(key).id, new.id);
    }
    world.check();
    world.forget(&["home"]);
    assert!(world.live().is_empty());
    world.check();
}

/// A key that only leads to a memory is none of its writer: a text in the place of the id is under no key, as the old text was.
#[test]
fn model_59_a_key_that_leads_to_an_id_does_not_say_what_takes_its_place() {
    let world = World::new();
    world.add(text("Ann lives in Ghent").key("home"));
    let bruges = world.add(text("Ann lives in Bruges")).id;
    world.ns.supersede_all(["home"], bruges, REPLACED, None).unwrap();
    let new = world.ns.replace([bruges], text("Ann lives in Mons"), REPLACED, None).unwrap();
    assert_eq!(new.key, None);
    assert_eq!(world.row("home").id, new.id);
    world.check();
}

/// Keys that only lead to a memory are no writers of it: what its id names, and what its key names, is the same in whatever order names are
/// given, also where something is announced in its place.
#[test]
fn life_6_an_id_to_which_other_keys_lead_is_named_among_others() {
    for names in [["o", "c"], ["c", "o"]] {
        for key in [None, Some("x")] {
            let told = [By::Key, By::Id].map(|by| {
                let world = World::new();
                for key in ["c", "k", "o"] {
                    world.add(text(&format!("{key} says")).key(key));
                }
                world.ns.supersede_all(["k"], "c", REPLACED, None).unwrap();
                world.ns.replace(["c"], text("plan"), REPLACED, Some(world.ahead("10d"))).unwrap();
                let all = key.into_iter().fold(text("all"), |all, key| all.key(key));
                world.ns.replace(names.map(|name| by.name(&world, name)), all, REPLACED, None).unwrap();
                world.check();
                let told = |world: &World| (true_now(world), ["c", "k", "o"].map(|key| world.row(key).text));
                let now = told(&world);
                world.advance("11d");
                (now, told(&world))
            });
            assert_eq!(told[0], told[1], "{names:?} {key:?}");
            assert_eq!(told[1].0.0, ["all"]);
        }
    }
}

/// A model that has only the id of a fact without a key forgets all that was known of it (MODEL-61).
#[test]
fn model_61_a_tool_forgets_an_id_with_its_versions() {
    let world = World::new();
    let mut id = world.add(text("Ann lives in Ghent")).id;
    for say in ["Ann lives in Bruges", "Ann lives in Antwerp"] {
        world.advance("1d");
        id = world.ns.replace([id], text(say), REPLACED, None).unwrap().id;
    }
    let tools = Toolbox::new(world.ns.clone());
    let call = |with_history: bool, dry_run: bool| {
        let args = json!({ "id": id, "with_history": with_history, "dry_run": dry_run });
        tools.call("forget_memory", args).unwrap()
    };
    assert_eq!(call(false, true)["versions_left"], 2);
    for dry_run in [true, false] {
        let answer = call(true, dry_run);
        let told = (&answer["memories"], &answer["versions"], &answer["versions_left"]);
        assert_eq!(told, (&json!(1), &json!(2), &json!(0)), "{answer}");
    }
    assert!(world.ns.look_up(id, false).unwrap().into_memory().is_none());
    world.check();
}

#[derive(Clone, Debug)]
enum Op {
    Add(usize),
    Update(usize),
    Weigh(usize),
    Replace(usize, Option<i64>),
    Wait(i64),
    Forget(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS.len();
    prop_oneof![
        2 => key().prop_map(Op::Add),
        2 => key().prop_map(Op::Update),
        1 => key().prop_map(Op::Weigh),
        5 => (key(), proptest::option::of(1_i64..20)).prop_map(|(key, hours)| Op::Replace(key, hours)),
        3 => (1_i64..12).prop_map(Op::Wait),
        1 => key().prop_map(Op::Forget),
    ]
}

/// What is true and what each key means at one instant, by the texts.
type Told = (Vec<String>, BTreeMap<&'static str, (String, State)>);

/// What is told now and later on.
fn told(world: &World) -> Vec<Told> {
    let now = world.now();
    let mut all = Vec::new();
    for hours in [0, 7, 14, 40] {
        world.clock.set(now.plus(Span::from_millis(hours * 3_600_000)));
        let means = KEYS.into_iter().filter_map(|key| match world.get(key).ok()? {
            Got::Memory(row) => Some((key, (row.text, row.state))),
            Got::Tombstone(_) => None,
        });
        all.push((true_now(world), means.collect()));
    }
    world.clock.set(now);
    all
}

fn step(world: &World, by: By, op: &Op, number: usize) -> Option<ErrorKind> {
    let say = format!("text {number}");
    match *op {
        Op::Add(at) => world.ns.add(text(&say).key(KEYS[at])).map(drop),
        Op::Update(at) => {
            world.ns.update(by.name_of_own(world, KEYS[at]), Patch::new().text(&*say)).map(drop)
        }
        Op::Weigh(at) => {
            let patch = Patch::new().importance(0.7).tags([say.as_str()]);
            world.ns.update(by.name_of_own(world, KEYS[at]), patch).map(drop)
        }
        Op::Replace(at, hours) => {
            let at = (KEYS[at], hours.map(|hours| world.now().plus(Span::from_millis(hours * 3_600_000))));
            by.replace(world, at.0, &say, at.1).map(drop)
        }
        Op::Wait(hours) => {
            world.clock.set(world.now().plus(Span::from_millis(hours * 3_600_000)));
            Ok(())
        }
        Op::Forget(at) => world.ns.forget(Forget::from(KEYS[at])).map(drop),
    }
    .err()
    .map(|why| why.kind())
}

proptest! {
    #![proptest_config(random(64, 3_000))]

    /// Told at each step, and by what is left when the keys are forgotten.
    #[test]
    fn life_6_an_id_of_one_writer_does_what_its_key_does(ops in proptest::collection::vec(op(), 2..=12)) {
        let worlds = [By::Key, By::Id].map(|by| (World::new(), by));
        for (number, op) in ops.iter().enumerate() {
            let ends = worlds.each_ref().map(|(world, by)| step(world, *by, op, number));
            prop_assert_eq!(ends[0], ends[1]);
            worlds.iter().for_each(|(world, _)| world.check());
            let [by_key, by_id] = worlds.each_ref().map(|(world, _)| told(world));
            prop_assert_eq!(by_key, by_id);
        }
        for (world, _) in &worlds {
            world.ns.forget(Forget::names(KEYS)).unwrap();
            world.advance("3d");
        }
        prop_assert_eq!(told(&worlds[0].0), told(&worlds[1].0));
    }
}
