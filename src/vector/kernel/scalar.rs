//! The scalar twin in plain Rust. Every other kernel must equal it, and it runs where there is no other.

#![allow(clippy::indexing_slicing, reason = "lanes are indexed below a constant count")]

use super::instruction_set::{
    BIT_SLOTS, Kernel, LANES, Levels, ScanBlock, SignBytes, SignQueries, Tables, Wanted, at_least, marks,
    padded,
};

pub(super) static KERNEL: Kernel =
    Kernel { name: "scalar", supported: || true, dot_i8, gather_i8, dot_f32, sign_scores, sign_marks };

fn dot_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = query.iter().zip(row).map(|(&q, &r)| i32::from(q) * i32::from(r)).sum();
    }
}

fn gather_i8(query: &[i8], rows: &[&[i8]], out: &mut [i32]) {
    for (row, out) in rows.iter().zip(out) {
        dot_i8(query, row, std::slice::from_mut(out));
    }
}

fn dot_f32(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let (query_groups, query_tail) = query.as_chunks::<LANES>();
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let (row_groups, row_tail) = row.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for (q, r) in query_groups.iter().zip(row_groups) {
            add_products(&mut lanes, q, r);
        }
        add_products(&mut lanes, &padded(query_tail), &padded(row_tail));
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        *out = lanes[0];
    }
}

fn add_products(lanes: &mut [f32; LANES], query: &[f32; LANES], row: &[f32; LANES]) {
    for ((lane, q), r) in lanes.iter_mut().zip(query).zip(row) {
        *lane += q * r;
    }
}

fn sign_sums(tables: &[Tables], signs: &[SignBytes], out: &mut [i32; BIT_SLOTS]) {
    *out = [0; _];
    for ([low, high], row) in tables.iter().zip(signs) {
        for (sum, byte) in out.iter_mut().zip(row) {
            *sum += i32::from(low[usize::from(byte & 0xf)]) + i32::from(high[usize::from(byte >> 4)]);
        }
    }
}

fn sign_scores(levels: &Levels, block: &ScanBlock<'_>, wanted: Wanted, out: &mut [f32; BIT_SLOTS]) -> u64 {
    let mut sums = [0; BIT_SLOTS];
    sign_sums(&levels.tables, block.signs, &mut sums);
    match levels.scores(block.numbers, &sums, wanted.least, out) {
        true => wanted.slots & at_least(out, wanted.least),
        false => 0,
    }
}

fn sign_marks(queries: SignQueries<'_>, rows: &[SignBytes], out: &mut [u64]) {
    for (out, (signs, level)) in out.iter_mut().zip(queries.each(rows.len())) {
        *out = marks(rows, signs, queries.limits, level);
    }
}
