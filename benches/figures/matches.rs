//! Filtered queries with a declared index, against plain loops over the rows that match, which are told which those are.

use std::path::Path;

use oubliette::{Database, Draft, Filter, Mode, NamespaceName, Query};
use redb::{ReadableDatabase, TableDefinition};
use serde_json::json;

use crate::sample::{Rng, Sample, near, word};
use crate::{builder, fill, p50, row, time, us};

type Table = TableDefinition<'static, &'static [u8], &'static [u8]>;
const VITALS: Table = TableDefinition::new("vitals");
const TEXTS: Table = TableDefinition::new("texts");
const VECTORS: Table = TableDefinition::new("vectors");
/// Bytes of the hot part of a memory.
const VITALS_BYTES: usize = 150;
const ROWS: usize = 50_000;
const QUERIES: usize = 40;
const K: usize = 10;
/// Ranks of the words that are asked for: two that are in nearly every text, four that say something.
const ASKED: [usize; 6] = [0, 3, 60, 200, 400, 900];

fn id(at: usize) -> [u8; 16] {
    ((at as u128) << 64).to_be_bytes()
}

/// Bare redb with the hot part, the text and the vector of each row.
fn bare(path: &Path, sample: &Sample) -> redb::Database {
    let db = redb::Database::builder().set_cache_size(512 << 20).create(path).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut vitals = txn.open_table(VITALS).unwrap();
        let mut texts = txn.open_table(TEXTS).unwrap();
        let mut vectors = txn.open_table(VECTORS).unwrap();
        for (at, (text, vector)) in sample.texts.iter().zip(&sample.vectors).enumerate() {
            let vector: Vec<u8> = vector.iter().flat_map(|v| v.to_le_bytes()).collect();
            vitals.insert(&id(at)[..], &[7_u8; VITALS_BYTES][..]).unwrap();
            texts.insert(&id(at)[..], text.as_bytes()).unwrap();
            vectors.insert(&id(at)[..], &vector[..]).unwrap();
        }
    }
    txn.commit().unwrap();
    db
}

fn best(mut scores: Vec<(f32, usize)>) -> Vec<(f32, usize)> {
    if scores.len() > K {
        scores.select_nth_unstable_by(K, |a, b| b.0.total_cmp(&a.0));
        scores.truncate(K);
    }
    scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    scores
}

/// The hot part and the vector of each matching row.
fn by_vector(db: &redb::Database, rows: &[usize], query: &[f32]) -> Vec<(f32, usize)> {
    let txn = db.begin_read().unwrap();
    let (vitals, vectors) = (txn.open_table(VITALS).unwrap(), txn.open_table(VECTORS).unwrap());
    let score = |at: &usize| {
        let hot = vitals.get(&id(*at)[..]).unwrap().unwrap();
        std::hint::black_box(hot.value());
        let vector = vectors.get(&id(*at)[..]).unwrap().unwrap();
        let numbers = vector.value().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let mut lanes = [0.0_f32; 16];
        for (place, (a, b)) in numbers.zip(query).enumerate() {
            lanes[place % 16] += a * b;
        }
        (lanes.iter().sum(), *at)
    };
    best(rows.iter().map(score).collect())
}

/// The hot part and the words of each matching row.
fn by_words(db: &redb::Database, rows: &[usize], words: &[&str]) -> Vec<(f32, usize)> {
    let txn = db.begin_read().unwrap();
    let (vitals, texts) = (txn.open_table(VITALS).unwrap(), txn.open_table(TEXTS).unwrap());
    let score = |at: &usize| {
        let hot = vitals.get(&id(*at)[..]).unwrap().unwrap();
        std::hint::black_box(hot.value());
        let text = texts.get(&id(*at)[..]).unwrap().unwrap();
        let text = std::str::from_utf8(text.value()).unwrap();
        let found = text.split(|c: char| !c.is_alphanumeric()).filter(|word| words.contains(word)).count();
        (found as f32, *at)
    };
    best(rows.iter().map(score).collect())
}

/// The numbers that open the texts of the hits.
fn numbers(db: &Database, ns: &NamespaceName, hits: &[oubliette::Hit]) -> Vec<usize> {
    let text = |hit: &oubliette::Hit| match db.namespace(ns).unwrap().look_up(hit.id, false).unwrap() {
        oubliette::memory::Got::Memory(memory) => memory.row_text,
        other => panic!("{other:?}"),
    };
    hits.iter().map(|hit| text(hit).split(':').next().unwrap().parse().unwrap()).collect()
}

/// The rows with two keys that tell their places.
fn drafts(sample: &Sample, places: &[usize]) -> Vec<Draft> {
    let draft = |at: usize| {
        let place = places[at];
        let metadata =
            json!({ "hundredth": format!("h{}", place % 100), "tenth": format!("t{}", place % 10) });
        Draft::new(sample.texts[at].clone()).metadata(metadata).vector(sample.vectors[at].clone())
    };
    (0..ROWS).map(draft).collect()
}

pub fn take() {
    let sample = Sample::of_many_words(ROWS, 21);
    let folder = tempfile::tempdir().unwrap();
    let db = builder().open(folder.path().join("a")).unwrap();
    let ns = db.namespace("default").unwrap();
    // Where the matches lie is no question of their number.
    let (mut rng, mut places) = (Rng(5), (0..ROWS).collect::<Vec<_>>());
    for at in (1..ROWS).rev() {
        places.swap(at, (rng.next() % (at as u64 + 1)) as usize);
    }
    let drafts = drafts(&sample, &places);
    let (_, without) = time(|| fill(&db, ns.name(), &drafts, 1_000));
    let (_, declared) = time(|| {
        for key in ["hundredth", "tenth"] {
            assert_eq!(ns.declare_index(key).unwrap(), ROWS as u64);
        }
    });
    eprintln!("import {without:?}, two indexes declared in {declared:?}");
    db.maintain_with(
        &oubliette::maintain::MaintainOptions::live().passes([oubliette::maintain::Pass::Index]),
    )
    .unwrap();
    let floor = bare(&folder.path().join("b"), &sample);
    let asked = ASKED.map(word);
    let words: Vec<&str> = asked.iter().map(String::as_str).collect();
    let asked = words.join(" ");
    for (key, value, percent, modulus) in [("hundredth", "h7", 1, 100), ("tenth", "t3", 10, 10)] {
        let wanted: usize = value[1..].parse().unwrap();
        let rows: Vec<usize> = (0..ROWS).filter(|at| places[*at] % modulus == wanted).collect();
        let filter = Filter::from_json(&json!({ format!("metadata.{key}"): value })).unwrap();
        let (mut ours, mut plain) = ([Vec::new(), Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        let mut by = ["", ""];
        for at in 0..QUERIES {
            let vector = near(&sample.vectors[at * 37], 0.8, &mut rng);
            let ask = Query::vector(vector.clone()).k(K).filter(filter.clone());
            let (found, took) = time(|| ns.search(&ask).unwrap());
            ours[0].push(took);
            let (right, took) = time(|| by_vector(&floor, &rows, &vector));
            plain[0].push(took);
            let right: Vec<usize> = right.iter().map(|(_, at)| *at).collect();
            assert_eq!(numbers(&db, ns.name(), &found.hits), right, "query {at}");
            by[0] = found.plan.filter;
            let ask = Query::text(asked.as_str()).mode(Mode::Text).k(K).filter(filter.clone());
            let (found, took) = time(|| ns.search(&ask).unwrap());
            ours[1].push(took);
            assert_eq!(found.hits.len(), K);
            by[1] = found.plan.filter;
            plain[1].push(time(|| by_words(&floor, &rows, &words)).1);
            let ask =
                Query { vector: Some(vector), ..Query::text(asked.as_str()).k(K).filter(filter.clone()) };
            ours[2].push(time(|| ns.search(ask.mode(Mode::Hybrid)).unwrap()).1);
        }
        let [vector, text, hybrid] = ours.map(p50);
        let [loop_vector, loop_text] = plain.map(p50);
        for (name, by, ours, floor) in [
            ("vector", by[0], vector, loop_vector),
            ("words", by[1], text, loop_text),
            ("both", by[0], hybrid, loop_vector + loop_text),
        ] {
            row(
                &format!(
                    "search by {name} of 50,000 where {percent} % match a key with an index, by {by}; against reading \
                     the matches out of bare redb and scoring them"
                ),
                us(ours),
                us(floor),
                ours.as_secs_f64() / floor.as_secs_f64(),
                "≤ 1.2",
            );
        }
    }
}
