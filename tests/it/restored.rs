//! An earlier text comes back by its name while others are announced (LIFE-6, LIFE-7): stories that went wrong once, and random ones.
//!
//! `PROPTEST_CASES=5000 cargo test --test it restored::` for longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, random, text};
use oubliette::memory::{Got, SupersedeMode};
use oubliette::{Draft, Memory, MemoryId, PageRequest, Scope, Span, State, Time};
use proptest::prelude::*;
use proptest::sample::Index;

const REPLACED: SupersedeMode = SupersedeMode::Replaced;

/// What is true, with the keys that answer with it.
fn told(world: &World) -> BTreeMap<String, Vec<String>> {
    let rows = world.live().into_iter().map(|id| world.row(id));
    rows.map(|row| {
        let mut keys = row.keys.clone();
        keys.retain(|key| world.row(key).id == row.id);
        (row.text, keys)
    })
    .collect()
}

fn facts(all: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    all.iter().map(|(text, of)| ((*text).to_owned(), keys(of))).collect()
}

/// A key leads to the memory of another one, and announces what it says next. That goes with the memory to which the key leads, as
/// a key belongs to one current memory (MODEL-8).
#[test]
fn life_7_what_a_led_key_has_announced_goes_with_the_memory_to_which_it_leads() {
    let world = World::new();
    world.add(text("one").key("a"));
    let two = world.add(text("two").key("b")).id;
    world.add(Draft { supersedes: vec!["a".to_owned()], ..text("three").key("b") });
    world.advance("1h");
    let four = world.ns.replace(["a"], text("four"), REPLACED, Some(world.ahead("10h"))).unwrap().id;
    let report = world.ns.restore(two).unwrap();
    assert!(report.replaced.contains(&four), "{report:?}");
    for _ in 0..2 {
        world.check();
        assert_eq!(told(&world), facts(&[("two", &["a", "b"])]));
        world.advance("11h");
    }
}

/// One text is announced for two keys, and one of them says its earlier text again: the announcement is off for both.
#[test]
fn life_7_what_is_announced_for_two_keys_is_called_off_for_both() {
    let world = World::new();
    world.add(text("the kitchen").key("b"));
    let garden = world.add(text("the garden").key("a")).id;
    world.advance("1h");
    world.ns.replace(["a", "b"], text("the car"), REPLACED, Some(world.ahead("9d"))).unwrap();
    world.advance("1h");
    world.ns.restore(garden).unwrap();
    for _ in 0..2 {
        world.check();
        assert_eq!(told(&world), facts(&[("the garden", &["a"]), ("the kitchen", &["b"])]));
        world.advance("10d");
    }
}

/// A key leads to the memory of another one and announces a text in its place. An earlier text of the key comes back: the other memory
/// stays, without an end.
#[test]
fn life_7_a_memory_of_others_does_not_end_for_what_is_called_off() {
    let world = World::new();
    world.add(text("one").key("a"));
    world.advance("1h");
    let two = world.ns.replace(["a"], text("two"), REPLACED, None).unwrap().id;
    world.add(text("of b").key("b"));
    world.advance("1h");
    world.ns.supersede_all(["a"], "b", REPLACED, None).unwrap();
    world.advance("1h");
    world.ns.replace(["a"], text("four"), REPLACED, Some(world.ahead("2d"))).unwrap();
    world.ns.restore(two).unwrap();
    for _ in 0..2 {
        world.check();
        assert_eq!(told(&world), facts(&[("of b", &["b"]), ("two", &["a"])]));
        world.advance("3d");
    }
}

/// What a key says now is to be replaced by the memory that has taken the place of what comes back.
#[test]
fn life_7_what_a_key_says_goes_where_it_is_announced_to_lead_to_what_replaced_the_earlier_text() {
    let world = World::new();
    let two = world.add(text("two").key("a")).id;
    world.advance("1h");
    world.add(Draft { supersedes: vec!["a".to_owned()], ..text("three").key("b") });
    world.advance("1h");
    world.add(text("five").key("a"));
    world.advance("1h");
    world.ns.supersede_all(["a"], "b", REPLACED, Some(world.ahead("9d"))).unwrap();
    world.advance("1h");
    world.ns.restore(two).unwrap();
    for _ in 0..2 {
        world.check();
        assert_eq!(told(&world), facts(&[("three", &["b"]), ("two", &["a"])]));
        world.advance("10d");
    }
}

/// An announced text came back as such, and what the key says until then was written after it.
#[test]
fn life_7_what_a_key_says_until_an_announced_text_that_came_back_is_an_earlier_text_as_well() {
    let world = World::new();
    let one = world.add(text("one").key("a")).id;
    let two = world.ns.replace(["a"], text("two"), REPLACED, Some(world.ahead("40h"))).unwrap().id;
    world.advance("1h");
    world.ns.restore(one).unwrap();
    world.advance("1h");
    world.ns.restore(two).unwrap();
    world.add(text("four").key("a"));
    world.ns.replace(["a"], text("five"), REPLACED, Some(world.ahead("10h"))).unwrap();
    world.ns.restore(one).unwrap();
    for _ in 0..2 {
        world.check();
        assert_eq!(told(&world), facts(&[("one", &["a"])]));
        world.advance("50h");
    }
}

/// A text that is to come later comes back: what comes before that, and what is true until then, stay as they are.
#[test]
fn life_7_what_comes_before_an_announced_text_that_comes_back_is_not_called_off() {
    let world = World::new();
    let ten = world.add(text("the price is 10").key("price")).id;
    let replace = |city: &str, at| world.ns.replace(["price"], text(city), REPLACED, Some(at)).unwrap().id;
    let fourteen = replace("the price is 14", world.ahead("60d"));
    world.advance("1h");
    world.ns.restore(ten).unwrap();
    replace("the price is 12", world.ahead("30d"));
    world.ns.restore(fourteen).unwrap();
    for (price, wait) in [(10, "35d"), (12, "35d"), (14, "1d")] {
        world.check();
        assert_eq!(told(&world), facts(&[(&format!("the price is {price}"), &["price"])]));
        world.advance(wait);
    }
}

/// A key is to lead to a text that another key corrects or replaces before: until then the key means what it says (LIFE-6).
#[test]
fn life_6_a_key_means_what_it_says_whatever_replaces_the_memory_to_which_it_is_to_lead() {
    for at_once in [true, false] {
        let world = World::new();
        world.add(text("Ghent").key("a"));
        world.advance("1h");
        world.ns.replace(["a"], text("Bruges").key("b"), REPLACED, Some(world.ahead("2d"))).unwrap();
        world.advance("1h");
        let at = (!at_once).then(|| world.ahead("1d"));
        world.ns.replace(["b"], text("Rome").key("b"), REPLACED, at).unwrap();
        world.check();
        world.advance("36h");
        assert_eq!(told(&world), facts(&[("Ghent", &["a"]), ("Rome", &["b"])]), "{at_once}");
        world.advance("2d");
        assert_eq!(told(&world), facts(&[("Rome", &["a", "b"])]), "{at_once}");
        world.check();
    }
}

const KEYS: [&str; 3] = ["a", "b", "c"];

/// So many hours from now.
type Hours = i64;

#[derive(Clone, Debug)]
enum Op {
    /// A text under a key, which can supersede what another key says, and can begin later.
    Add(usize, Option<usize>, Option<Hours>),
    /// A text in the place of what keys say.
    Replace(Vec<usize>, Option<usize>, Option<Hours>),
    /// What one key says takes the place of what the other one says.
    Supersede(usize, usize, Option<Hours>),
    Restore(Index),
    Wait(Hours),
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS.len();
    let ahead = |share| proptest::option::weighted(share, 1..5_i64);
    prop_oneof![
        3 => (key(), proptest::option::weighted(0.3, key()), ahead(0.2)).prop_map(|(key, old, from)| Op::Add(key, old, from)),
        3 => (proptest::collection::vec(key(), 1..3), proptest::option::weighted(0.3, key()), ahead(0.7))
            .prop_map(|(old, key, at)| Op::Replace(old, key, at)),
        2 => (key(), key(), ahead(0.6)).prop_map(|(old, new, at)| Op::Supersede(old, new, at)),
        3 => any::<Index>().prop_map(Op::Restore),
        2 => (1..3_i64).prop_map(Op::Wait),
    ]
}

struct Story {
    world: World,
    /// Who wrote each memory. No two writes say the same.
    writers: BTreeMap<MemoryId, String>,
}

/// What is true at an instant, and with which memory each key answers then.
type At = BTreeMap<Time, (BTreeSet<MemoryId>, BTreeMap<&'static str, MemoryId>)>;

impl Story {
    fn at(&self, hours: Option<Hours>) -> Option<Time> {
        hours.map(|hours| self.world.now().plus(Span::from_millis(hours * 3_600_000)))
    }

    fn rows(&self) -> Vec<MemoryId> {
        let request = |state| PageRequest { scope: Scope::Any, state, limit: 500, ..PageRequest::default() };
        let page = |state| self.world.ns.list(&request(state)).unwrap().items;
        let all = [State::Live, State::Superseded].into_iter().flat_map(page).map(|row| row.id);
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What is true from hour to hour.
    fn told(&self) -> At {
        let now = self.world.now();
        let mut told = At::new();
        for hour in 0..=12 {
            let at = self.at(Some(hour)).unwrap();
            self.world.clock.set(at);
            let live = self.world.live().into_iter().collect();
            let means = KEYS.into_iter().filter_map(|key| Some((key, self.world.get(key).ok()?)));
            let means = means.filter_map(|(key, got)| match got {
                Got::Memory(row) => Some((key, row.id)),
                _ => None,
            });
            told.insert(at, (live, means.collect()));
            self.world.clock.set(now);
        }
        told
    }

    fn step(&mut self, op: &Op) {
        let say = || text(&format!("text {}", self.writers.len()));
        let key = |at: &usize| KEYS[*at].to_owned();
        match op {
            Op::Add(at, old, from) => {
                let mut draft = say().key(KEYS[*at]);
                draft.supersedes = old.iter().map(key).collect();
                if let Some(from) = self.at(*from) {
                    draft = draft.valid_from(from);
                }
                if let Ok(outcome) = self.world.ns.add(draft) {
                    self.writers.insert(outcome.id, key(at));
                }
            }
            Op::Replace(old, new, at) => {
                let mut draft = say();
                draft.key = new.as_ref().map(key);
                let (names, at) = (old.iter().map(key), self.at(*at));
                if let Ok(outcome) = self.world.ns.replace(names, draft, REPLACED, at) {
                    self.writers.insert(outcome.id, outcome.key.unwrap_or_default());
                }
            }
            Op::Supersede(old, new, at) => {
                drop(self.world.ns.supersede_all([key(old)], key(new), REPLACED, self.at(*at)));
            }
            Op::Restore(at) => {
                let rows = self.rows();
                if !rows.is_empty() {
                    self.restore(rows[at.index(rows.len())]);
                }
            }
            Op::Wait(hours) => self.world.clock.set(self.at(Some(*hours)).unwrap()),
        }
        self.world.check();
    }

    /// A memory comes back. What its key says from now on is this memory alone, and what others have said stays.
    fn restore(&self, id: MemoryId) {
        let (before, led) = (self.told(), self.world.row(id).keys);
        let written: Vec<Memory> = self.writers.keys().map(|id| self.world.row(*id)).collect();
        let Ok(report) = self.world.ns.restore(id) else { return };
        let Some(key) = self.writers.get(&id).filter(|key| !key.is_empty()) else { return };
        if !report.keys_taken.is_empty() {
            return;
        }
        let now = self.world.now();
        let of_key = |row: &MemoryId| self.writers.get(row) == Some(key);
        // A key that leads to what the key says or announces is the same memory, and so is one that had led to what comes back.
        let stands = |row: &Memory| {
            let ahead = row.superseded.is_none_or(|by| by.mode == REPLACED);
            of_key(&row.id) && ahead && row.valid_to.is_none_or(|end| end > now)
        };
        let rows = written.into_iter().filter(stands).flat_map(|row| row.keys);
        let same: BTreeSet<String> = rows.chain(led).chain([key.clone()]).collect();
        let of_others = |row: &MemoryId| self.writers.get(row).is_none_or(|by| !same.contains(by));
        for (at, (live, means)) in self.told() {
            let (was_live, meant) = &before[&at];
            let mut said: Vec<_> = live.iter().filter(|row| of_key(row) && **row != id).collect();
            // What came back while a third text had the key has no key.
            said.retain(|row| self.world.row(*row).keys.contains(key));
            let begins = self.world.row(id).valid_from;
            if begins.is_none_or(|from| from <= now) {
                assert!(said.is_empty(), "{at}: {key} says {said:?} beside {id}");
                // It may end where something was announced that is gone (LIFE-6).
                if live.contains(&id) {
                    assert_eq!(means.get(key.as_str()), Some(&id), "{at}: {key}");
                }
            }
            for row in was_live.iter().filter(|row| of_others(row)) {
                assert!(live.contains(row), "{at}: {row} of others is gone");
            }
            let stays = |other: &str, row| {
                at == now && !same.contains(other) && of_others(row) && was_live.contains(row)
            };
            // A key means what it said itself where that is true again, as nobody is led to it later on any more.
            let says = |other: &str| {
                let now = means.get(other).and_then(|row| self.writers.get(row));
                now.is_some_and(|by| by == other)
            };
            for (other, row) in meant.iter().filter(|(other, row)| stays(other, row) && !says(other)) {
                assert_eq!(means.get(other), Some(row), "{at}: {other}");
            }
        }
    }
}

proptest! {
    #![proptest_config(random(64, 3_000))]

    #[test]
    fn what_comes_back_is_all_that_its_key_says(ops in proptest::collection::vec(op(), 3..=12)) {
        let mut story = Story { world: World::new(), writers: BTreeMap::new() };
        for key in KEYS {
            let id = story.world.add(text(&format!("text of {key}")).key(key)).id;
            story.writers.insert(id, key.to_owned());
            story.world.advance("1s");
        }
        for op in &ops {
            story.step(op);
        }
    }
}
