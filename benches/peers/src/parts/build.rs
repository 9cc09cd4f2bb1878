//! How fast does each library take the rows on one thread?

use std::time::{Duration, Instant};

use super::{Settings, rate};
use crate::contest::median;
use crate::dataset::Dataset;
use crate::heap;
use crate::ours::Ours;
use crate::peers::{Codes, Flat, HnswRs, OwnGraph, Peer, Sqlite, Usearch};
use crate::plot;

/// Rows that one library takes before it is the next one's turn.
const TURN: usize = 1_000;
/// Our own way from the imported rows to the graph.
const INDEX: &str = "Oubliette, `maintain index` after the import";
/// Times that our own are built.
const TIMES: usize = 3;

/// A library with all rows in it.
pub struct Built {
    pub peer: Box<dyn Peer>,
    pub spent: Duration,
    /// What its insertions left allocated through Rust's allocator.
    pub heap_bytes: isize,
}

fn timed<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

fn peers(data: &Dataset) -> Vec<Built> {
    let rows = data.len();
    let mut peers: Vec<Box<dyn Peer>> =
        vec![Box::new(OwnGraph::new(data, 1)), Box::new(HnswRs::new(rows)), Box::new(Codes::new(data))];
    peers.extend(Usearch::all(rows).map(|peer| Box::new(peer) as Box<dyn Peer>));
    peers.push(Box::new(Sqlite::new()));
    peers.push(Box::new(Flat::new(data)));
    peers.into_iter().map(|peer| Built { peer, spent: Duration::ZERO, heap_bytes: 0 }).collect()
}

/// Builds all peers, in turns of 1,000 rows, so that what else the machine does slows all of them.
pub fn built(data: &Dataset) -> Vec<Built> {
    let mut peers = peers(data);
    for from in (0..data.len()).step_by(TURN) {
        let to = data.len().min(from + TURN);
        for built in &mut peers {
            let (((), bytes), spent) = timed(|| heap::kept(|| built.peer.insert(data, from, to)));
            built.spent += spent;
            built.heap_bytes += bytes;
        }
    }
    peers
}

/// Rows a second of our own ways in through the database, each the middle of three.
fn ours(data: &Dataset) -> Vec<(String, f64)> {
    let (mut imports, mut indexes) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let mut ours = Ours::new();
        let ((), import) = timed(|| ours.insert(data, 0, data.len()));
        imports.push(import);
        indexes.extend(ours.index(1));
    }
    let all = [(INDEX, indexes), ("Oubliette, the import alone", imports)];
    let done = all.into_iter().filter(|(_, times)| times.len() == TIMES);
    done.map(|(name, times)| (name.into(), rate(data.len(), median(times)))).collect()
}

/// The table of build speeds.
pub fn build(data: &Dataset, peers: &[Built], settings: &Settings) {
    let rows = data.len();
    let graphs = peers.iter().filter(|built| built.peer.is_approximate());
    let mut lines: Vec<(String, f64)> =
        graphs.map(|built| (built.peer.name(), rate(rows, built.spent))).collect();
    let graph = lines[0].1;
    let ours = ours(data);
    let index = ours.iter().find(|(name, _)| name == INDEX).map(|line| line.1);
    lines.splice(1..1, ours.clone());
    println!("### Build on one thread\n");
    println!(
        "| library | rows/s | the graph alone is as fast, times | through `maintain index`, times |\n|---|---|---|---|"
    );
    for (name, rate) in &lines {
        let index = index.map_or(String::new(), |index| format!("{:.2}", index / rate));
        println!("| {name} | {rate:.0} | {:.2} | {index} |", graph / rate);
    }
    println!();
    lines.retain(|line| line.0 == INDEX || !ours.contains(line));
    let title = format!("Rows indexed per second, one thread ({}, {rows} × 384)", data.name);
    settings.plot(&format!("peers_build_{}.svg", data.name), &plot::bars(&title, &lines));
}
