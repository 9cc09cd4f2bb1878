//! Where few of many slots are seen, searches of these slots alone answer as searches of all.

use super::*;
use crate::index::chunk::Window;
use crate::limits::BITS_SLOTS_MIN;
use crate::vector::{BIT_SLOTS, Wanted};

const AT: IndexId = IndexId { ns: NS, part: PartId(0), space: SPACE };
const ALL: Target = Target::Index(AT);

/// Most of the memories end at 50.
fn mostly_ended() -> (World, Published) {
    let mut world = World::new(72, 41);
    let first = world.first(usize::MAX);
    let rows = (0..BITS_SLOTS_MIN + 400).map(|at| {
        let until = (at % 40 != 7).then_some(50);
        (AT, id(at + 1), world.vector(None), times(None, until))
    });
    let rows = rows.collect();
    world.add(rows);
    let published = world.next(&first);
    (world, published)
}

/// Searches more often than an extract needs, each time as a full scan does.
fn check(world: &mut World, published: &Published, now: i64) {
    for _ in 0..3 {
        let query = world.vector(None);
        for k in [1, 10, 300] {
            world.check(published, ALL, &query, k, now);
        }
        let asked = ask(&query, 10, Time::from_millis(now), Effort::default());
        let found = nearest(published, ALL, asked).unwrap();
        assert_eq!(found.hits, world.full_scan(ALL, &query, 10, now, |_| true).0);
    }
}

fn has_extract(published: &Published, now: i64) -> bool {
    let view = published.view(AT).unwrap();
    view.extract(Window::live(Time::from_millis(now))).is_some()
}

#[test]
fn searches_that_see_few_slots_answer_as_a_full_scan() {
    let (mut world, mut published) = mostly_ended();
    published.view(AT).unwrap();
    check(&mut world, &published, 10);
    assert!(!has_extract(&published, 10), "all are seen");
    check(&mut world, &published, 60);
    assert!(has_extract(&published, 60));
    // A write shows other slots: one that has ended gives its place to another, and one that was seen goes.
    let seen: Vec<_> = world.rows.keys().copied().filter(|(_, slot)| slot % 40 == 7).collect();
    world.release(&[seen[3], (AT, 8)]);
    published = world.next(&published);
    check(&mut world, &published, 60);
    let next = vec![(AT, id(900_001), world.vector(None), times(None, None))];
    world.add(next);
    published = world.next(&published);
    check(&mut world, &published, 60);
    world.retime(seen[5], times(None, Some(70)));
    published = world.next(&published);
    check(&mut world, &published, 60);
    check(&mut world, &published, 75);
    assert!(has_extract(&published, 75));
    // Time goes back, too, for those who ask as of then.
    check(&mut world, &published, 10);
}

#[test]
fn the_first_search_after_a_write_makes_no_extract() {
    let (mut world, published) = mostly_ended();
    let query = world.vector(None);
    let asked = ask(&query, 10, Time::from_millis(60), Effort::default());
    published.view(AT).unwrap();
    nearest(&published, ALL, asked).unwrap();
    assert!(has_extract(&published, 60), "this is the second that asks");
    let all = published.view(AT).unwrap();
    assert!(!has_extract(&world.next(&published), 55), "and this the first that sees these slots");
    assert!(all.extract(Window::all()).is_none() && all.extract(Window::all()).is_none());
}

#[test]
fn one_bit_codes_are_those_of_the_whole() {
    let (mut world, published) = mostly_ended();
    let view = published.view(AT).unwrap();
    let slots: Vec<u32> = (0..view.len()).filter(|slot| slot % 41 != 5).collect();
    let few = view.of_slots(&slots);
    assert!(slots.len() >= BITS_SLOTS_MIN as usize);
    let (all, few_bits) = (view.bits().unwrap(), few.bits().unwrap());
    let query = world.vector(None);
    let of = all.query(query.as_slice(), 0.999);
    let upper = |bits: &crate::index::bits::Bits, slot: usize| {
        let (mut out, wanted) = ([0.0; BIT_SLOTS], Wanted { slots: u64::MAX, least: f32::NEG_INFINITY });
        of.likely_uppers(bits.block(slot / BIT_SLOTS).unwrap(), None, wanted, &mut out);
        out[slot % BIT_SLOTS]
    };
    for (number, slot) in slots.iter().enumerate() {
        assert_eq!(upper(few_bits, number), upper(all, *slot as usize), "slot {slot}");
        assert_eq!(few.id(number as u32), view.id(*slot));
    }
    assert!(view.of_slots(&slots[..100]).bits().is_none(), "few codes are scanned as they are");
    assert!(few.bytes() < view.bytes());
}
