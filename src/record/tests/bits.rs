//! Rows of one-bit codes.

use proptest::prelude::*;

use super::*;
use crate::record::bit_row::{BIT_ROW_SLOTS, BitCode, BitRow};

const ALWAYS: (i64, i64) = (crate::limits::TIME_MIN_MS, crate::limits::TIME_MAX_MS);

fn code(words: usize, seed: u64) -> BitCode {
    let word = |word: u64| word.wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let signs: Vec<u8> = (1..=words as u64).flat_map(|at| word(at).to_le_bytes()).collect();
    let ones = signs.iter().map(|byte| byte.count_ones()).sum::<u32>() as u16;
    let number = seed as f32 / 16.0;
    BitCode { signs, ones, factor: number, error: number + 1.0, offset: -number }
}

/// Slot 1 is always seen, slot 9 has an end.
pub(super) fn bits() -> BitRow {
    let mut row = BitRow::vacant(2, 7);
    row.put(1, ALWAYS, &code(1, 3));
    row.put(9, (-1, 9_000), &code(1, 5));
    row
}

/// What a row says of its slots.
fn slots(row: &BitRow) -> Vec<Option<((i64, i64), BitCode)>> {
    (0..BIT_ROW_SLOTS).map(|at| row.span(at).map(|span| (span, row.code(at)))).collect()
}

proptest! {
    /// Whatever is written, in whatever order: a row says of each slot what was written last.
    #[test]
    fn a_row_says_what_was_written_last(
        dim in prop_oneof![Just(1_usize), Just(64), Just(65), Just(384)],
        writes in prop::collection::vec((0..BIT_ROW_SLOTS, 0_u8..5, -50_i64..50), 0..120),
    ) {
        let (mut row, mut expected) = (BitRow::vacant(dim, 3), vec![None; BIT_ROW_SLOTS]);
        for (step, (at, what, time)) in writes.into_iter().enumerate() {
            let (span, code) = ((time, time + 100), code(dim.div_ceil(64), step as u64));
            match what {
                0 => {
                    row.erase(at);
                    expected[at] = None;
                }
                1 => {
                    row.set_span(at, span);
                    expected[at] = expected[at].take().map(|(_, code)| (span, code));
                }
                2 => {
                    row.set_span(at, ALWAYS);
                    expected[at] = expected[at].take().map(|(_, code)| (ALWAYS, code));
                }
                3 => {
                    row.put(at, ALWAYS, &code);
                    expected[at] = Some((ALWAYS, code));
                }
                _ => {
                    row.put(at, span, &code);
                    expected[at] = Some((span, code));
                }
            }
        }
        prop_assert_eq!(&slots(&row), &expected);
        let bytes = encoded(BitRow::encode, &row);
        prop_assert_eq!(&BitRow::decode(at(), dim, &bytes)?, &row);
        prop_assert!(BitRow::decode(at(), dim + 64, &bytes).is_err());
        (0..BIT_ROW_SLOTS).for_each(|at| row.erase(at));
        prop_assert_eq!(row, BitRow::vacant(dim, 3));
    }
}

#[test]
fn a_row_that_no_encoder_writes_is_refused() {
    let row = bits();
    let broken: [fn(&mut BitRow); 4] = [
        |row| row.factors[5] = f32::NAN,
        |row| row.errors[0] = f32::INFINITY,
        |row| row.offsets[63] = f32::NEG_INFINITY,
        |row| row.ones[2] = 65,
    ];
    for break_it in broken {
        let mut row = row.clone();
        break_it(&mut row);
        let bytes = encoded(BitRow::encode, &row);
        assert_eq!(BitRow::decode(at(), 2, &bytes).unwrap_err().kind(), ErrorKind::Corrupted);
    }
    // A slot that is open and timed; a count that is not that of the timed slots; a row that is too short.
    let bytes = encoded(BitRow::encode, &row);
    let body = &bytes[HEADER_BYTES..bytes.len() - CRC_BYTES];
    let mut both = body.to_vec();
    both[8] |= 1 << 1;
    both[17] |= 1 << 1;
    both[16] |= 1 << 1;
    let mut count = body.to_vec();
    count[0] = 2;
    for body in [both, count, body[..body.len() - 1].to_vec(), body[..5].to_vec()] {
        assert!(BitRow::decode(at(), 2, &forged(tag::BIT_ROW, 0, &body)).is_err());
    }
}

#[test]
fn a_row_of_384_dimensions_fits_a_page() {
    let mut row = BitRow::vacant(384, 1);
    (0..BIT_ROW_SLOTS).for_each(|at| row.put(at, ALWAYS, &code(6, at as u64)));
    let bytes = encoded(BitRow::encode, &row).len();
    assert!(bytes + BLOCK_PAGE_OVERHEAD <= 4 << 10, "{bytes} bytes");
    assert!(bytes <= 63 * BIT_ROW_SLOTS, "{bytes} bytes of 64 slots");
    let in_memory = row.bytes() + 24;
    assert!(in_memory <= 64 * BIT_ROW_SLOTS, "{in_memory} bytes in memory");
}
