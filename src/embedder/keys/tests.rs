use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Inserted, Keys};

/// Bytes of few sorts, so that keys share their beginnings.
fn word() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(b"abAB\xc3\xa9".to_vec()), 1..12)
}

proptest! {
    #[test]
    fn the_longest_key_is_that_of_a_search_through_all(
        words in prop::collection::vec(word(), 0..60),
        texts in prop::collection::vec(word(), 1..20),
        room in 0_usize..50,
    ) {
        let (mut keys, mut known) = (Keys::with_room(room, room), BTreeMap::new());
        for (word, id) in words.iter().zip(0..) {
            let expected = if known.contains_key(word) { Inserted::Twice } else { Inserted::Done };
            prop_assert_eq!(keys.insert(word, id), expected);
            known.entry(word.clone()).or_insert(id);
        }
        for text in words.iter().chain(&texts) {
            prop_assert_eq!(keys.get(text), known.get(text).copied());
            let small = text.to_ascii_lowercase();
            let found = (1..=small.len()).rev().find_map(|end| known.get(&small[..end]).map(|id| (*id, &text[end..])));
            prop_assert_eq!(keys.longest(text), found);
        }
    }
}

#[test]
fn many_keys_find_their_places() {
    let mut keys = Keys::with_room(0, 0);
    let names: Vec<String> = (0..50_000).map(|at| format!("key{}", at * 7)).collect();
    for (name, id) in names.iter().zip(0..) {
        assert_eq!(keys.insert(name.as_bytes(), id), Inserted::Done, "{name}");
    }
    for (name, id) in names.iter().zip(0..) {
        assert_eq!(keys.get(name.as_bytes()), Some(id), "{name}");
    }
}

/// Keys that somebody has chosen so that all begin their way at one place.
#[test]
fn keys_that_crowd_at_a_place_are_refused() {
    let mut keys = Keys::with_room(1_100, 0);
    let mask = keys.places.len() - 1;
    let alike = (0_u32..)
        .map(|at| format!("{at:08}"))
        .filter(|name| super::way(super::hash_of(name.as_bytes()), 0, mask + 1) < 2);
    let outcomes: Vec<_> =
        alike.take(1_100).zip(0..).map(|(name, id)| keys.insert(name.as_bytes(), id)).collect();
    assert!(outcomes[..super::MET_MAX].iter().all(|outcome| *outcome == Inserted::Done));
    assert_eq!(outcomes.last(), Some(&Inserted::Crowded));
}
