//! Two years of an agent's life: `cargo bench --bench life`, with 200,000 writes and 20,000 searches, or with so many
//! writes as the first argument says. It prints what each month leaves, and writes a plot if the second argument names a
//! file. It fails where a month breaks a promise.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic, and prints"
)]

#[path = "../figures/plot.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod plot;
mod story;

use plot::Series;
use story::{DAYS, Life, MONTH, Month};

const WRITES: usize = 200_000;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let writes = arguments.first().map_or(WRITES, |number| number.parse().unwrap());
    let mut life = Life::new(writes, 1);
    println!(
        "| month | writes | working | episodic | semantic | procedural | hidden | kept by the other store | rows, KiB | \
         file, KiB | file / rows | file of the other, KiB | recall@10 | longest sweep, ms |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut months = Vec::new();
    for _ in 0..DAYS / MONTH {
        let month = life.month();
        tell(&month);
        hold(&month);
        months.push(month);
    }
    println!("\n{} searches were counted.", life.recalls());
    if let Some(path) = arguments.get(1) {
        std::fs::write(path, plotted(&months)).unwrap();
    }
}

/// Memories at the end of each month, with and without forgetting.
fn plotted(months: &[Month]) -> String {
    let line = |name: &str, value: fn(&Month) -> u64| Series {
        name: name.to_owned(),
        points: months.iter().map(|month| (month.number as f64, value(month).max(1) as f64)).collect(),
    };
    let lines = [
        line("visible, forgetting", |month| month.tiers.iter().sum()),
        line("visible, nothing forgotten", |month| month.kept),
        line("writes so far", |month| month.writes as u64),
    ];
    plot::growth("Memories in two years", "month", "memories", &lines)
}

/// What the life promises of each month.
fn hold(month: &Month) {
    let number = month.number;
    assert_eq!((month.over, month.findings), (0, 0), "month {number}");
    assert!(month.recall >= 0.98, "month {number}: recall {}", month.recall);
    assert!(month.is_compact(), "month {number}: the file is too long");
}

fn tell(month: &Month) {
    let kib = |bytes: u64| bytes / 1_024;
    let [working, episodic, semantic, procedural] = month.tiers;
    println!(
        "| {} | {} | {working} | {episodic} | {semantic} | {procedural} | {} | {} | {} | {} | {:.2} | {} | {:.3} | {:.1} |",
        month.number,
        month.writes,
        month.hidden,
        month.kept,
        kib(month.live),
        kib(month.file),
        month.file as f64 / month.live as f64,
        kib(month.file_kept),
        month.recall,
        month.sweep_ms,
    );
}
