//! The graph of a vector index: when a partition has one, that nobody sees the difference in an answer, and that what
//! is forgotten is in none of them. A policy makes partitions large that are not.

mod churn;
mod deletion;
mod dropped;
mod regimes;
mod repeats;
mod scopes;

use crate::world::World;
use oubliette::maintain::{MaintainOptions, Pass, PassReport};
use oubliette::policy::{Policy, Syntax};
use oubliette::report::VectorStats;
use oubliette::{Builder, Draft, Effort, Filter, Hit, MemoryId, Query, Scope, WriteOptions};

/// Dimensions of the vectors here.
const WIDTH: usize = 24;
/// Rows past which a partition has a graph.
const EXACT_MAX: usize = 50;
/// Rows below which it loses it.
const EXACT_MIN: usize = 35;
/// Rows beside the graph past which writers help.
const TAIL_MAX: usize = 10;

/// Partitions of more than 50 rows have a graph, and whoever writes builds it.
fn helped(builder: Builder) -> Builder {
    builder.policy(policy(TAIL_MAX))
}

/// The same, and only maintenance builds it.
fn maintained(builder: Builder) -> Builder {
    builder.policy(policy(100_000))
}

fn policy(tail: usize) -> Policy {
    let scanned = EXACT_MAX * (WIDTH + 64);
    let text = format!("[index]\nscan_max = {scanned}\ntail_min = {tail}\ntail_share = 0.0");
    Policy::parse(&text, Syntax::Toml).unwrap()
}

/// Numbers from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5
    }
}

/// Vectors in crowds: `at` names one, whatever was asked before.
fn vector(at: usize) -> Vec<f32> {
    let (mut of_crowd, mut own) = (Chance(crowd(at) as u64), Chance(1_000_000 + at as u64));
    (0..WIDTH).map(|_| of_crowd.unit() + 0.35 * own.unit()).collect()
}

/// The crowd of a vector, one of 30.
fn crowd(at: usize) -> usize {
    Chance(2_000_000 + at as u64).below(30)
}

/// A question near many rows that is none of them.
fn question(at: usize) -> Vec<f32> {
    vector(10_000_000 + at)
}

fn row(at: usize) -> Draft {
    Draft::new(format!("row {at}")).key(format!("k{at}")).vector(vector(at))
}

/// All but `embed`: the vectors are the caller's here, and what has none goes on waiting.
fn all_passes() -> Vec<Pass> {
    Pass::ALL.iter().copied().filter(|pass| *pass != Pass::Embed).collect()
}

impl World {
    fn add_rows(&self, rows: impl Iterator<Item = Draft>) -> Vec<MemoryId> {
        let outcomes = self.ns.add_all(rows.collect(), &WriteOptions::default()).unwrap();
        outcomes.into_iter().map(|outcome| outcome.id).collect()
    }

    /// Runs passes to their end.
    fn maintain(&self, passes: &[Pass]) -> Vec<PassReport> {
        let report = self.db.maintain_with(&MaintainOptions::live().passes(passes)).unwrap();
        assert!(report.passes.iter().all(|pass| (pass.left, pass.skipped) == (0, 0)), "{report:?}");
        report.passes
    }

    fn vectors(&self) -> VectorStats {
        self.ns.stats().unwrap().vectors
    }

    fn hits(&self, query: &Query) -> Vec<Hit> {
        self.ns.search(query).unwrap().hits
    }

    /// The mean recall of queries with an effort, by score against an exact search. No hit is one that the exact
    /// search would not give for a larger `k`.
    fn recall(&self, ask: impl Fn(usize) -> Query, queries: usize) -> f64 {
        let (mut found, mut wanted) = (0, 0);
        for at in 0..queries {
            let query = ask(at);
            let hits = self.hits(&query);
            let best = self.hits(&query.clone().effort(Effort::Exact));
            let floor = best.last().map_or(f32::INFINITY, |hit| hit.score);
            assert!(hits.len() <= best.len(), "more hits than there are");
            assert!(hits.is_sorted_by_key(|hit| (std::cmp::Reverse(bits(hit.score)), hit.id)));
            assert!(hits.iter().zip(&best).all(|(hit, best)| hit.score <= best.score));
            found += hits.iter().filter(|hit| hit.score >= floor).count();
            wanted += best.len();
        }
        found as f64 / wanted.max(1) as f64
    }

    /// Ids of the exact answer, and that the default one gives no other scores.
    fn agreed(&self, query: Query) -> Vec<MemoryId> {
        let (hits, best) = (self.hits(&query), self.hits(&query.clone().effort(Effort::Exact)));
        assert_eq!(hits, best);
        best.iter().map(|hit| hit.id).collect()
    }
}

/// A score as a number with the same order.
fn bits(score: f32) -> i32 {
    let bits = score.to_bits().cast_signed();
    bits ^ (bits >> 31 & i32::MAX)
}

fn asking(at: usize) -> Query {
    Query::vector(question(at))
}

fn everywhere(at: usize) -> Query {
    asking(at).scope(Scope::Any)
}

fn filter(json: serde_json::Value) -> Filter {
    Filter::from_json(&json).unwrap()
}
