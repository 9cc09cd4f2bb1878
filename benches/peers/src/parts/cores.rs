//! How much faster do two threads build our index than one?

use std::time::{Duration, Instant};

use super::rate;
use crate::contest::median;
use crate::dataset::Dataset;
use crate::ours::Ours;
use crate::peers::{OwnGraph, Peer};

const PAIRS: usize = 5;

/// The tables of five alternating pairs.
pub fn cores(data: &Dataset) {
    println!("### Our build with one and two threads\n");
    println!("| what | pair | one thread, rows/s | two threads, rows/s | ratio |\n|---|---|---|---|---|");
    pairs("the graph alone", data, |threads| {
        let mut graph = OwnGraph::new(data, threads);
        let start = Instant::now();
        graph.insert(data, 0, data.len());
        Some(start.elapsed())
    });
    pairs("`maintain index`", data, |threads| {
        let mut ours = Ours::new();
        ours.insert(data, 0, data.len());
        ours.index(threads)
    });
    println!();
}

fn pairs(what: &str, data: &Dataset, build: impl Fn(usize) -> Option<Duration>) {
    let mut ratios = Vec::new();
    for pair in 1..=PAIRS {
        let (Some(one), Some(two)) = (build(1), build(2)) else { return };
        let ratio = one.as_secs_f64() / two.as_secs_f64();
        let [one, two] = [one, two].map(|time| rate(data.len(), time));
        println!("| {what} | {pair} | {one:.0} | {two:.0} | {ratio:.2} |");
        ratios.push(ratio);
    }
    println!("| {what} | median | | | {:.2} |", median(ratios));
}
