//! The cost model of searches: over a grid of sizes, shares and efforts, and beside what searches count.

use super::*;
use crate::index::cost::Cost;

const SIZES: [u32; 8] = [100, 1_000, 10_000, 50_000, 200_000, 1_000_000, 5_000_000, u32::MAX];
const SHARES: [f64; 12] = [0.0, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.24, 0.26, 0.5, 0.9, 1.0];
const EFS: [usize; 7] = [1, 10, 64, 256, 1_024, 4_096, 100_000];

fn grid(mut visit: impl FnMut(Cost, usize)) {
    for slots in SIZES {
        for seen in SHARES {
            for by_bits in [false, true] {
                EFS.iter().for_each(|&ef| visit(Cost { slots, seen, by_bits }, ef));
            }
        }
    }
}

#[test]
fn more_to_read_never_costs_less() {
    grid(|cost, ef| {
        let (scan, walk) = (cost.scan(), cost.walk(ef));
        assert!(scan.is_finite() && scan > 0.0 && walk > 0.0, "{cost:?}: {scan}, {walk} at {ef}");
        assert!(walk <= f64::from(cost.slots), "a walk scores no code twice: {cost:?}");
        for slots in SIZES.into_iter().filter(|slots| *slots >= cost.slots) {
            let larger = Cost { slots, ..cost };
            assert!(larger.scan() >= scan && larger.walk(ef) >= walk, "{cost:?} of {slots}");
        }
        for seen in SHARES.into_iter().filter(|seen| *seen >= cost.seen) {
            let wider = Cost { seen, ..cost };
            assert!(wider.scan() >= scan, "{cost:?} with {seen}");
            assert!(wider.walk(ef) <= walk, "{cost:?} with {seen}");
        }
        assert!(Cost { by_bits: true, ..cost }.scan() <= Cost { by_bits: false, ..cost }.scan(), "{cost:?}");
        assert!(cost.walk(2 * ef) >= walk);
    });
}

#[test]
fn the_cheaper_way_is_taken_and_stays_the_cheaper_one() {
    grid(|cost, ef| {
        let asked_for = !cost.by_bits && cost.seen > 0.25;
        assert_eq!(cost.walks(ef), asked_for || cost.walk(ef) < cost.scan(), "{cost:?} at {ef}");
        // An index that grows is not scanned again, and a longer list does not bring the walk back.
        for slots in SIZES.into_iter().filter(|slots| cost.walks(ef) && *slots >= cost.slots) {
            assert!(Cost { slots, ..cost }.walks(ef), "{cost:?} of {slots} at {ef}");
        }
        assert!(cost.walks(ef) || !cost.walks(2 * ef), "{cost:?} at {ef}");
        assert!(cost.passes(ef) >= ef);
    });
}

/// By sizes, dimensions and shares that are dead or have ended: a scan reads what is visible, and a walk scores about as
/// many codes as the model says.
#[test]
fn searches_count_what_the_model_says() {
    for (rows, dim, one_in) in [(700, 8, 1), (700, 64, 2), (3_000, 64, 1), (3_000, 64, 3), (3_000, 16, 40)] {
        let mut world = World::new(dim, u64::from(rows) + dim as u64);
        let at = index(0);
        let all = (1..=rows).map(|number| {
            let until = (number % 2 == 0 && number % one_in != 0).then_some(50);
            (at, id(number), world.vector(None), times(None, until))
        });
        let all = all.collect();
        world.add(all);
        let mut published = world.first(usize::MAX);
        link_all(&mut world, &mut published, at, 1_000);
        let is_doomed = |slot: u32| slot.is_multiple_of(2) && !(slot + 1).is_multiple_of(one_in);
        let doomed = world.rows.keys().copied().filter(|(_, slot)| is_doomed(*slot)).collect::<Vec<_>>();
        world.linked.clear();
        world.release(&doomed);
        published = world.next(&published);
        let now = Time::from_millis(100);
        let seen = f64::from(rows / one_in) / f64::from(rows);
        let query = world.vector(None);
        let target = Target::Index(at);
        let exact = nearest(&published, target, ask(&query, 10, now, Effort::Exact)).unwrap();
        assert_eq!(exact.scanned, u64::from(rows / one_in), "of {rows}");
        for ef in [16, 128] {
            let cost = Cost { slots: rows, seen, by_bits: false };
            let found = nearest(&published, target, ask(&query, 10, now, Effort::Ef(ef))).unwrap();
            assert_eq!(found.regime == "graph", cost.walks(ef), "{found:?} of {cost:?} at {ef}");
            if found.regime == "graph" {
                let ratio = found.walked as f64 / cost.walk(ef);
                assert!((0.3..3.0).contains(&ratio), "{ratio}: {found:?} of {cost:?} at {ef}");
            }
        }
    }
}
