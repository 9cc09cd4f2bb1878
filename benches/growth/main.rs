//! What grows, and by how much: each row measures one operation at two sizes and says how far the larger one is from the
//! smaller. `cargo bench --bench growth`, or `cargo bench --bench growth -- WORD` for the rows whose name has the word.
//!
//! A row is one line of a theme's table: a name, two sizes, a bound and a function from a size to a cost. The bounds stand in
//! `docs/benchmarks.md` as well. The process ends with an error when a row is past its bound.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench may panic")]
#![allow(clippy::print_stdout, reason = "its figures are its output")]

mod bare;
mod bytes;
#[path = "../index/counting.rs"]
mod counting;
mod ground;
mod history;
mod holders;
mod life;
mod passes;
mod search;
mod writes;

use std::process::ExitCode;

/// What is allocated is counted.
#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// What of a row is held against its bound.
#[derive(Clone, Copy)]
pub enum Bound {
    /// The cost at the large size by that at the small one.
    Growth(f64),
    /// The cost at the large size, in the unit of the row.
    Most(f64),
}

/// One operation at two sizes.
pub struct Row {
    /// What grows, and the cost of what is measured.
    pub name: &'static str,
    /// What `measure` gives: `ms`, `MiB`, `x`.
    pub unit: &'static str,
    /// The small and the large size.
    pub sizes: (usize, usize),
    /// What must hold.
    pub bound: Bound,
    /// The cost at a size.
    pub measure: fn(usize) -> f64,
}

fn main() -> ExitCode {
    let themes =
        [writes::ROWS, holders::ROWS, history::ROWS, passes::ROWS, search::ROWS, bytes::ROWS, life::ROWS];
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let asked = |row: &&Row| words.is_empty() || words.iter().any(|word| row.name.contains(word.as_str()));
    println!("| row | small | large | ratio | bound | |");
    println!("|---|---|---|---|---|---|");
    let mut past = 0;
    for row in themes.iter().flat_map(|rows| rows.iter()).filter(asked) {
        let (small, large) = ((row.measure)(row.sizes.0), (row.measure)(row.sizes.1));
        // What costs nothing at both sizes does not grow.
        let ratio = if small == large { 1.0 } else { large / small };
        let (held, bound) = match row.bound {
            Bound::Growth(most) => (ratio <= most, format!("ratio ≤ {most}")),
            Bound::Most(most) => (large <= most, format!("large ≤ {most} {}", row.unit)),
        };
        past += usize::from(!held);
        println!(
            "| {} | {}: {small:.3} {unit} | {}: {large:.3} {unit} | {ratio:.2} | {bound} | {} |",
            row.name,
            row.sizes.0,
            row.sizes.1,
            if held { "" } else { "**past**" },
            unit = row.unit,
        );
    }
    if past == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
