//! What was known of the time to come is told of the past as well: a memory that was to end for one announced text, and then for
//! another that comes before (MODEL-15, LIFE-6).

use std::collections::BTreeSet;

use crate::backup::copy_of;
use crate::world::{World, text};
use oubliette::memory::{PointInTime, SupersedeMode};
use oubliette::{PageRequest, Time};

/// What a caller does with the memory of the key `b`; the instants are in hours from the beginning.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Its own key announces a text.
    Own(i64),
    /// Another key announces a text in its place.
    Other(i64),
    /// A memory that is there is to take its place.
    With(i64),
    /// Its key says something else.
    Revise,
    /// Something else takes its place at once.
    Replace,
    /// A field of it changes.
    Weigh,
    /// What its key has announced, or another one, is corrected.
    Correct(&'static str),
}

fn hour(start: Time, hour: i64) -> Time {
    start.plus(oubliette::Span::from_millis(hour * 3_600_000))
}

fn texts(world: &World, at: PointInTime) -> BTreeSet<String> {
    let page = world.ns.list(&PageRequest { at, ..PageRequest::default() }).unwrap();
    let listed: BTreeSet<String> = page.items.iter().map(|row| row.text.clone()).collect();
    let found = world.ns.get_at("b", &at).unwrap().map(|row| row.text);
    assert!(found.as_ref().is_none_or(|text| listed.contains(text)), "{found:?} {listed:?}");
    for row in page.items {
        assert!(world.ns.get_at(row.id, &at).unwrap().is_some());
    }
    listed
}

fn act(world: &World, start: Time, act: Act) {
    let replaced = SupersedeMode::Replaced;
    match act {
        Act::Own(at) => drop(
            world.ns.replace(["b"], text(&format!("own {at}")), replaced, Some(hour(start, at))).unwrap(),
        ),
        Act::Other(at) => {
            let plan = text(&format!("other {at}")).key(format!("k{at}")).supersedes("b");
            drop(world.add(plan.valid_from(hour(start, at))));
        }
        Act::With(at) => {
            world.ns.supersede_all(["b"], format!("with {at}"), replaced, Some(hour(start, at))).unwrap();
        }
        Act::Revise => drop(world.add(text("revised").key("b"))),
        Act::Replace => drop(world.ns.replace(["b"], text("replaced"), replaced, None).unwrap()),
        Act::Weigh => drop(world.ns.update("b", oubliette::Patch::new().importance(0.9)).unwrap()),
        Act::Correct(text) => {
            let all = PageRequest { any_state: true, ..PageRequest::default() };
            let row = world.ns.list(&all).unwrap().items.into_iter().find(|row| row.text == text).unwrap();
            drop(world.ns.update(row.id, oubliette::Patch::new().text(format!("{text} corrected"))).unwrap());
        }
    }
    world.check();
}

/// What was told at each step of what is true at each instant from then on, is told later of what was known then.
fn is_told_again(acts: &[Act], copies: bool) {
    let world = World::new();
    let start = world.now();
    world.add(text("first").key("b"));
    for at in [25, 15, 5] {
        world.add(text(&format!("with {at}")).key(format!("with {at}")));
    }
    let mut told = Vec::new();
    for now in std::iter::once(None).chain(acts.iter().copied().map(Some)) {
        now.into_iter().for_each(|now| act(&world, start, now));
        let known = world.now();
        for valid in [1, 4, 6, 14, 16, 24, 26, 40] {
            let valid = hour(start, valid);
            let at = PointInTime { valid_at: Some(valid), ..PointInTime::default() };
            told.push((known, valid, texts(&world, at)));
        }
        world.advance("10m");
    }
    let says = |world: &World, by: &str| {
        for (known, valid, then) in &told {
            let at = PointInTime { valid_at: Some(*valid), known_at: Some(*known), ..PointInTime::default() };
            assert_eq!(texts(world, at), *then, "{acts:?}, {by}: {valid} as known at {known}");
        }
    };
    says(&world, "the store");
    if copies {
        says(&copy_of(&world), "a copy");
    }
}

#[test]
fn model_15_each_end_that_was_announced_was_known_until_another_came_before() {
    let orders = [[25, 15, 5], [15, 25, 5], [5, 25, 15], [25, 5, 15], [5, 15, 25], [15, 5, 25]];
    let who: [fn(i64) -> Act; 3] = [Act::Own, Act::Other, Act::With];
    let tails: [&[Act]; 4] = [&[], &[Act::Revise], &[Act::Replace], &[Act::Weigh, Act::Revise]];
    for order in orders {
        for tail in tails {
            for each in who {
                is_told_again(&[&order.map(each)[..], tail].concat(), false);
            }
            for turn in 0..who.len() {
                let mixed = [0, 1, 2].map(|at| who[(turn + at) % who.len()](order[at]));
                is_told_again(&[&mixed[..], tail].concat(), tail.is_empty());
                let between = [mixed[0], Act::Revise, mixed[1], Act::Weigh, mixed[2]];
                is_told_again(&[&between[..], tail].concat(), false);
            }
        }
    }
    for corrected in [
        &[Act::Own(25), Act::Correct("own 25"), Act::Own(15), Act::Own(5)][..],
        &[Act::Own(25), Act::Own(15), Act::Correct("own 25"), Act::Own(5), Act::Correct("own 15")],
        &[Act::Other(25), Act::Correct("other 25"), Act::Other(15), Act::Own(5)],
    ] {
        is_told_again(corrected, true);
    }
}
