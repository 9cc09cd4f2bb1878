//! How fast does each library take the rows on one thread?

use std::time::{Duration, Instant};

use super::{Settings, rate};
use crate::contest::median;
use crate::dataset::Dataset;
use crate::heap;
use crate::ours::{self, Ours};
use crate::peers::{Codes, Flat, HnswRs, Peer, Sqlite, Usearch};
use crate::plot;

/// Rows that one library takes before it is the next one's turn.
const TURN: usize = 1_000;
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
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(HnswRs::new(rows)), Box::new(Codes::new(data))];
    peers.extend(Usearch::all(rows).map(|peer| Box::new(peer) as Box<dyn Peer>));
    peers.push(Box::new(Sqlite::new()));
    peers.push(Box::<Flat>::default());
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

/// Name and time of our own ways to build, each the middle of three.
fn ours(data: &Dataset) -> Vec<(&'static str, Duration)> {
    let (mut graphs, mut imports, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        graphs.extend(ours::graph(data));
        let (ours, import) = timed(|| Ours::filled(data));
        imports.push(import);
        indexes.extend(ours.index(1));
    }
    let all = [
        ("Oubliette, the graph alone", graphs),
        ("Oubliette, `maintain index` after the import", indexes),
        ("Oubliette, the import alone", imports),
    ];
    all.into_iter()
        .filter(|(_, times)| times.len() == TIMES)
        .map(|(name, times)| (name, median(times)))
        .collect()
}

/// The table of build speeds.
pub fn build(data: &Dataset, peers: &[Built], settings: &Settings) {
    let rows = data.len();
    let mut lines: Vec<(String, f64)> =
        ours(data).into_iter().map(|(name, time)| (name.into(), rate(rows, time))).collect();
    let graphs = lines.len().saturating_sub(1);
    lines.extend(peers.iter().map(|built| (built.peer.name(), rate(rows, built.spent))));
    println!("### Build on one thread\n");
    println!("| library | rows/s | times as fast as hnsw_rs |\n|---|---|---|");
    let hnsw = lines.iter().find(|(name, _)| name == "hnsw_rs").unwrap().1;
    for (name, rate) in &lines {
        println!("| {name} | {rate:.0} | {:.2} |", rate / hnsw);
    }
    println!();
    // Imports and copies are no index.
    let indexes = lines
        .iter()
        .enumerate()
        .filter(|(at, (name, _))| *at < graphs || name.starts_with("hnsw_rs") || name.starts_with("usearch"));
    let bars: Vec<(String, f64)> = indexes.map(|(_, line)| line.clone()).collect();
    let title = format!("Rows indexed per second, one thread ({}, {rows} × 384)", data.name);
    settings.plot(&format!("peers_build_{}.svg", data.name), &plot::bars(&title, &bars));
}
