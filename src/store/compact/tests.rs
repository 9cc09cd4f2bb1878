//! Slices of a copy are bounded by bytes, and numbers are given without holes.

use super::copy::{SLICE_BYTES, SLICE_ROWS, Slice};
use super::numbers::Numbers;

/// What one transaction of a copy holds: rows and bytes. Measured as it was: 50,000 rows of any size, 429 MiB of a file of 501.
#[test]
fn a_slice_holds_so_many_bytes_whatever_the_rows_are() {
    for len in [0, 100, 1 << 10, 1 << 16, 1 << 20, 16 << 20] {
        let (mut slice, value) = (Slice::default(), vec![7; len]);
        while slice.take(&[1; 16], &value).is_continue() {}
        assert!(slice.rows.len() <= SLICE_ROWS);
        assert!(slice.bytes < SLICE_BYTES + len + 16, "{} bytes in values of {len}", slice.bytes);
        assert!(slice.rows.len() == SLICE_ROWS || slice.bytes >= SLICE_BYTES);
    }
}

#[test]
fn numbers_have_no_holes() {
    let kept = |slot: u32| !slot.is_multiple_of(3) && !(64..192).contains(&slot);
    let mut words = vec![(0_u64, 0_u32); 5];
    let mut next = 0;
    for slot in 0..300 {
        let word = &mut words[slot as usize / 64];
        if slot % 64 == 0 {
            word.1 = next;
        }
        if kept(slot) {
            word.0 |= 1 << (slot % 64);
            next += 1;
        }
    }
    let numbers = Numbers::Anew(words);
    let given: Vec<u32> = (0..400).filter_map(|slot| numbers.of(slot)).collect();
    assert_eq!(given, (0..next).collect::<Vec<_>>());
    assert!((0..400).all(|slot| numbers.of(slot).is_some() == (slot < 300 && kept(slot))));
    assert_eq!(Numbers::Same.of(77), Some(77));
}
