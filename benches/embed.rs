//! What does a vector cost beside taking its text apart?
//!
//! The yardstick is WordPiece alone, over the same texts, in the same run.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop at a surprise, and prints"
)]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oubliette::embed::{Embedder, StaticMini};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The texts of the demo: memories of coding agents.
const MEMORIES: &str = include_str!("../src/bin/oubliette/demo/data/memories.jsonl");

/// Passes over all texts for the ratio; the two are measured in turns.
const ROUNDS: usize = 40;

fn texts() -> Vec<String> {
    let text = |line: &str| {
        let memory: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        memory.get("text").and_then(|text| text.as_str()).expect("a text").to_owned()
    };
    MEMORIES.lines().map(text).collect()
}

fn tokenize(embedder: &StaticMini, texts: &[&str], tokens: &mut Vec<u32>) -> usize {
    let mut count = 0;
    for text in texts {
        tokens.clear();
        embedder.tokenize(black_box(text), tokens);
        count += tokens.len();
    }
    count
}

fn embed(c: &mut Criterion) {
    let embedder = StaticMini::new();
    let owned = texts();
    let texts: Vec<&str> = owned.iter().map(String::as_str).collect();
    let mut tokens = Vec::new();
    let count = tokenize(&embedder, &texts, &mut tokens);

    let mut group = c.benchmark_group("embed");
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function("wordpiece", |b| b.iter(|| tokenize(&embedder, &texts, &mut tokens)));
    group.bench_function("static-mini", |b| b.iter(|| embedder.embed(black_box(&texts))));
    group.finish();

    let mut rounds: Vec<(Duration, Duration)> = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        black_box(tokenize(&embedder, &texts, &mut tokens));
        let apart = begun.elapsed();
        let begun = Instant::now();
        black_box(embedder.embed(black_box(&texts)).expect("vectors"));
        rounds.push((apart, begun.elapsed()));
    }
    let median = |of: fn(&(Duration, Duration)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(ROUNDS / 2).copied().expect("a round")
    };
    let per = |time: f64| time / count as f64 * 1e9;
    println!(
        "{} texts, {count} tokens; a token: WordPiece {:.1} ns, static-mini {:.1} ns; ratio {:.2} (median of {ROUNDS})",
        texts.len(),
        per(median(|round| round.0.as_secs_f64())),
        per(median(|round| round.1.as_secs_f64())),
        median(|round| round.1.as_secs_f64() / round.0.as_secs_f64()),
    );
}

criterion_group!(benches, embed);
criterion_main!(benches);
