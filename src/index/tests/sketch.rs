//! One-bit codes on disk are those of the codes, whatever happens, and a search that has nothing else in memory finds
//! what a search of all codes finds.

use super::bits::crowded;
use super::*;
use crate::index::bit_rows::{Coder, frame_of};
use crate::index::sketch::Sketch;
use crate::limits::BITS_SLOTS_MIN;
use crate::record::{BIT_ROW_SLOTS, BitRow, slots_per_block};
use crate::store::{BitRows, keys};

type Damage = fn(&mut Truth<'_, '_>) -> Result<(), crate::Error>;

/// Too little for a view of the crowd, and enough for its sketch.
const LEAN: usize = 500_000;

/// That the rows of one-bit codes say what the codes say. Returns the number of the center.
fn check_rows(world: &World, index: IndexId) -> u32 {
    let (rows, _) = world.snapshot();
    let dim = world.dim;
    let head = rows.bits_head(index).unwrap().expect("an index of this size has one-bit codes");
    let mut coder = Coder::new(frame_of(index, &head, dim).unwrap());
    let len = rows.slot_head(index).unwrap().len;
    let zeros = BitRow::vacant(dim, head.center).code(0);
    let mut count = 0;
    rows.bit_rows(index, dim, &mut |number, row| {
        let row = row.expect("no row is damaged");
        assert_eq!((number, row.center), (count, head.center));
        count += 1;
        for at in 0..BIT_ROW_SLOTS {
            let slot = number * BIT_ROW_SLOTS as u32 + at as u32;
            let per = slots_per_block(dim) as u32;
            let block = rows.slot_block(index, slot / per, dim).unwrap();
            let meta = block.as_ref().and_then(|block| block.meta((slot % per) as usize));
            let held = meta.filter(|meta| !meta.is_vacant());
            assert_eq!(row.span(at), held.map(|meta| (meta.from, meta.until)), "slot {slot}");
            let expected = held.map(|meta| {
                let code = block.as_ref().unwrap().code((slot % per) as usize).unwrap();
                coder.code(code, meta.scale)
            });
            assert_eq!(row.code(at), expected.unwrap_or_else(|| zeros.clone()), "slot {slot}");
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })
    .unwrap();
    assert_eq!(count, len.div_ceil(BIT_ROW_SLOTS as u32));
    head.center
}

/// A search at the default recall, with its regime, and whether it found the ten nearest.
fn searched(world: &World, published: &Published, query: &UnitVector, now: i64) -> (&'static str, usize) {
    let asked = ask(query, 10, Time::from_millis(now), Effort::Recall(0.999));
    let found = nearest(published, Target::Index(index(0)), asked).unwrap();
    let (exact, visible) = world.full_scan(Target::Index(index(0)), query, 10, now, |_| true);
    assert_eq!(found.scanned, visible, "every visible slot, and no other");
    (found.regime, found.hits.iter().filter(|hit| exact.contains(hit)).count())
}

#[test]
fn rows_follow_every_change() {
    let (mut world, _) = crowded(72, 19);
    let center = check_rows(&world, index(0));
    let gone: Vec<_> = world.rows.keys().copied().step_by(3).collect();
    world.release(&gone);
    check_rows(&world, index(0));
    let kept: Vec<_> = world.rows.keys().copied().step_by(5).collect();
    for (number, at) in kept.into_iter().take(20).enumerate() {
        let until = (number % 2 == 0).then_some(70);
        world.retime(at, times((number % 3 == 0).then_some(-5), until));
    }
    // Free slots are given out again.
    let rows = (0..200).map(|at| (index(0), id(700_000 + at), world.vector(None), times(None, None)));
    let rows = rows.collect();
    world.add(rows);
    assert_eq!(check_rows(&world, index(0)), center, "a center lasts");
}

#[test]
fn an_index_that_grew_gets_another_center() {
    let (mut world, _) = crowded(64, 23);
    let center = check_rows(&world, index(0));
    world.commit(|tx, _| {
        let head = tx.bits_head(index(0))?.unwrap();
        tx.put_bits_head(index(0), crate::store::control::BitsHead { made_at: 1_000, ..head })
    });
    let (published, query) = (world.first(LEAN), world.vector(None));
    assert_eq!(searched(&world, &published, &query, 0), ("bits", 10));
    world.add(vec![(index(0), id(800_000), query.clone(), times(None, None))]);
    let published = world.next(&published);
    assert_ne!(check_rows(&world, index(0)), center);
    assert_eq!(searched(&world, &published, &query, 0), ("bits", 10));
}

#[test]
fn a_search_without_a_view_reads_one_bit_codes_and_the_codes_of_candidates() {
    let (mut world, _) = crowded(100, 29);
    let mut published = world.first(LEAN);
    let mut right = 0;
    for round in 0..6 {
        for now in [0, 60] {
            for _ in 0..5 {
                let query = world.vector(None);
                let (regime, found) = searched(&world, &published, &query, now);
                assert_eq!(regime, "bits");
                right += found;
            }
        }
        assert!(published.loaded(index(0)).is_none(), "there is no room for a view");
        assert!(published.kept_bytes() > 0, "the sketch stays");
        let gone: Vec<_> = world.rows.keys().copied().step_by(7).skip(round * 100).take(100).collect();
        world.release(&gone);
        published = world.next(&published);
        let from = 600_000 + 1_000 * round as u32;
        let rows = (0..150).map(|at| (index(0), id(from + at), world.vector(None), times(None, None)));
        let rows = rows.collect();
        world.add(rows);
        published = world.next(&published);
    }
    assert!(right >= 596, "{right} of 600");
}

#[test]
fn the_first_search_makes_a_sketch_and_the_second_a_view() {
    let (mut world, _) = crowded(64, 31);
    let published = world.first(usize::MAX);
    let query = world.vector(None);
    assert_eq!(searched(&world, &published, &query, 0).0, "bits");
    assert!(published.loaded(index(0)).is_none());
    let sketch = published.kept_bytes();
    assert!(sketch > 0);
    assert_eq!(searched(&world, &published, &query, 0).0, "bits");
    let view = published.loaded(index(0)).expect("the second search loads a view");
    assert_eq!(published.kept_bytes(), view.bytes(), "in place of the sketch");
    // Where there is room for neither, both are read and dropped.
    let published = world.first(0);
    assert_eq!(searched(&world, &published, &query, 0).0, "bits");
    assert_eq!(searched(&world, &published, &query, 0).0, "bits");
    assert_eq!(published.kept_bytes(), 0);
}

#[test]
fn damaged_one_bit_codes_are_not_used_and_a_write_mends_them() {
    let (mut world, _) = crowded(64, 37);
    let damages: [Damage; 4] = [
        |tx| tx.put(Table::Bits, &keys::block(index(0), 0), b"rubbish"),
        |tx| tx.delete(Table::Bits, &keys::block(index(0), 0)),
        |tx| {
            let mut row = tx.bit_row(index(0), 0, 64)?.unwrap();
            row.center += 1;
            tx.put_bits(index(0), 0, &row)
        },
        |tx| tx.put(Table::BitsHead, &keys::index(index(0)), b"rubbish"),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        world.commit(|tx, _| damage(tx));
        let query = world.vector(None);
        let published = world.first(LEAN);
        let asked = ask(&query, 10, Time::from_millis(0), Effort::Recall(0.999));
        let found = nearest(&published, Target::Index(index(0)), asked).unwrap();
        let exact = world.full_scan(Target::Index(index(0)), &query, 10, 0, |_| true).0;
        assert_eq!((found.hits, found.regime), (exact, "codes"), "damage {number}");
        // A slot of the row is forgotten, and another one is given out.
        let (first, _) = world.rows.first_key_value().unwrap();
        let first = *first;
        world.release(&[first]);
        world.add(vec![(index(0), id(500_000 + number as u32), query.clone(), times(None, None))]);
        check_rows(&world, index(0));
    }
}

#[test]
fn what_is_forgotten_leaves_no_one_bit_code() {
    let (mut world, _) = crowded(128, 41);
    let rows = world.snapshot().0;
    let gone: Vec<_> = world.rows.keys().copied().step_by(9).collect();
    let signs = |at: u32| {
        let row = rows.bit_row(index(0), at / BIT_ROW_SLOTS as u32, 128).unwrap().unwrap();
        row.code(at as usize % BIT_ROW_SLOTS).signs
    };
    let eights = |signs: Vec<u8>| signs.chunks_exact(8).map(|eight| eight.to_vec()).collect::<Vec<_>>();
    let erased: BTreeSet<Vec<u8>> = gone.iter().flat_map(|(_, slot)| eights(signs(*slot))).collect();
    drop(rows);
    world.release(&gone);
    world.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    let bytes = std::fs::read(world.store.path()).unwrap();
    // Eight bytes of random signs stand nowhere else but by a chance of one in a hundred million millions. The next byte
    // of a slot comes behind those of all slots of its row.
    let found = bytes
        .windows(7 * BIT_ROW_SLOTS + 1)
        .filter(|window| erased.contains(&window.iter().copied().step_by(BIT_ROW_SLOTS).collect::<Vec<_>>()));
    assert_eq!(found.count(), 0);
    // The copy has the codes of the others, under new numbers.
    check_rows(&world, index(0));
    assert_eq!(world.snapshot().0.slot_head(index(0)).unwrap().len as usize, world.rows.len());
}

#[test]
fn a_copy_with_few_slots_has_no_one_bit_codes() {
    let (mut world, _) = crowded(64, 43);
    let gone: Vec<_> = world.rows.keys().copied().skip(BITS_SLOTS_MIN as usize / 2).collect();
    world.release(&gone);
    world.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    let rows = world.snapshot().0;
    assert!(rows.bits_head(index(0)).unwrap().is_none() && rows.bit_row(index(0), 0, 64).unwrap().is_none());
}

#[test]
fn a_sketch_of_384_dimensions_takes_64_bytes_a_slot() {
    assert!(Sketch::bytes_of(1 << 20, 384) <= 64 << 20);
}
