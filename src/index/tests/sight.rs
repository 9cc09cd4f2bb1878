//! What a search sees is kept from one search to the next, and from one commit to the next.

use super::*;
use crate::index::chunk::Window;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_kept_sight_shows_what_each_slot_says(seed in any::<u64>(), rounds in 1_usize..6) {
        let mut world = World::new(2, seed);
        let at = index(0);
        let mut published = world.first(usize::MAX);
        for round in 0..rounds as u32 {
            let rows = (0..40 + world.pick(150) as u32).map(|row| {
                // Most slots are open, so that some chunks are seen as a whole.
                let from = Some(world.pick(100) as i64).filter(|from| from % 20 == 0);
                let until = Some(world.pick(100) as i64).filter(|until| until % 15 == 0);
                (at, id(round * 1_000 + row), world.vector(None), times(from, until))
            });
            let rows = rows.collect();
            world.add(rows);
            published = world.next(&published);
            let all: Vec<_> = world.rows.keys().copied().collect();
            let one = all[world.pick(all.len() as u64) as usize];
            match world.pick(3) {
                0 => world.release(&[one]),
                1 => world.retime(one, times(Some(30), Some(45))),
                _ => continue,
            }
            published = world.next(&published);
            let view = published.view(at).unwrap();
            for _ in 0..20 {
                let now = Time::from_millis(world.pick(100) as i64);
                for window in [Window::live(now), Window::current(now), Window::all()] {
                    let sight = view.sight(window);
                    let seen = |slot: u32| sight.words()[slot as usize / 64] >> (slot % 64) & 1 == 1;
                    for slot in 0..view.len() {
                        prop_assert_eq!(seen(slot), view.sees(slot, window), "slot {} in {:?}", slot, window);
                    }
                    let count: u32 = sight.words().iter().map(|word| word.count_ones()).sum();
                    prop_assert_eq!(sight.seen(), u64::from(count));
                }
            }
        }
    }
}
