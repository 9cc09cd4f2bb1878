//! How much faster do two threads build our index than one?

use super::rate;
use crate::contest::median;
use crate::dataset::Dataset;
use crate::ours::Ours;

const PAIRS: usize = 5;

/// The table of five alternating pairs.
pub fn cores(data: &Dataset) {
    println!("### Our build with one and two threads\n");
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let time = |threads| Ours::filled(data).index(threads);
        let (Some(one), Some(two)) = (time(1), time(2)) else {
            println!("Skipped: this version of Oubliette builds no graph.\n");
            return;
        };
        pairs.push((one, two));
    }
    println!("| pair | one thread, rows/s | two threads, rows/s | ratio |\n|---|---|---|---|");
    let ratio =
        |(one, two): &(std::time::Duration, std::time::Duration)| one.as_secs_f64() / two.as_secs_f64();
    for (number, pair) in pairs.iter().enumerate() {
        let [one, two] = [pair.0, pair.1].map(|time| rate(data.len(), time));
        println!("| {} | {one:.0} | {two:.0} | {:.2} |", number + 1, ratio(pair));
    }
    println!("| median | | | {:.2} |\n", median(pairs.iter().map(ratio).collect()));
}
