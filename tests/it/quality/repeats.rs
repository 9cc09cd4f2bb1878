//! A vector index of a real trace, most of whose rows repeat a text.

use std::collections::HashMap;

use oubliette::maintain::Pass;
use oubliette::policy::{Policy, Syntax};
use oubliette::{Builder, Draft, Effort, Query, WriteOptions};

use super::{folder, lines, vectors};
use crate::world::World;

/// Rows of an import.
const IMPORT: usize = 600;

/// The vector of every row that the trace writes, in order: what is added or changed with its text, and changes of a status
/// with the text that stands there.
fn trace(folder: &std::path::Path) -> Vec<Vec<f32>> {
    let texts = lines(folder.join("churn_gastown_add_texts.jsonl"));
    let texts = texts.iter().map(|line| line["text"].as_str().unwrap().to_owned());
    let known: HashMap<String, Vec<f32>> =
        texts.zip(vectors(folder.join("churn_gastown_add_texts_384.f32.npy"))).collect();
    let mut present: HashMap<String, String> = HashMap::new();
    let mut rows = Vec::new();
    for line in lines(folder.join("churn_gastown_git.jsonl")) {
        let id = line["id"].as_str().unwrap().to_owned();
        if let Some(text) = line["text"].as_str() {
            present.insert(id.clone(), text.to_owned());
        }
        let text = present.get(&id).filter(|_| line["op"] != "delete");
        rows.extend(text.and_then(|text| known.get(text)).cloned());
    }
    rows
}

/// A partition is large from a quarter of the trace on, and its tail is short.
fn helped(builder: Builder) -> Builder {
    let scanned = 2_000 * (384 + 64);
    let text = format!("[index]\nscan_max = {scanned}\ntail_min = 100\ntail_share = 0.02");
    builder.policy(Policy::parse(&text, Syntax::Toml).unwrap())
}

/// MODEL-56, V-293: after every import of 600 rows the deep check is clean and recall@10, by distance, is at least 0.99,
/// though no pass ran.
#[test]
fn writers_link_a_trace_of_repeats_and_no_neighbour_is_missed() {
    let Some(folder) = folder() else { return };
    let world = World::with(helped);
    let all = trace(&folder);
    assert!(all.len() >= 8_000, "{} rows", all.len());
    for (part, vectors) in all.chunks(IMPORT).enumerate() {
        let row = |(at, vector): (usize, &Vec<f32>)| {
            Draft::new(format!("row {at}")).key(format!("r{at}")).vector(vector.clone())
        };
        let drafts = (part * IMPORT..).zip(vectors).map(row).collect();
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        world.ns.add_all(drafts, &how).unwrap();
        world.check();
        assert_recall(&world, &all, &format!("after import {part}"));
    }
    assert_eq!(world.db.stats().unwrap().vectors.regime, "graph");
    world.db.maintain_with(&oubliette::maintain::MaintainOptions::live().passes([Pass::Index])).unwrap();
    assert_recall(&world, &all, "after the pass");
}

fn assert_recall(world: &World, all: &[Vec<f32>], when: &str) {
    let (mut right, mut wanted) = (0, 0);
    for vector in all.iter().step_by(all.len() / 50) {
        let search = |effort| {
            let query = Query::vector(vector.clone()).effort(effort);
            world.ns.search(&query).unwrap().hits
        };
        let (exact, found) = (search(Effort::Exact), search(Effort::default()));
        let floor = exact.last().unwrap().score - 1e-6;
        right += found.iter().filter(|hit| hit.score >= floor).count();
        wanted += exact.len();
    }
    assert!(right as f64 >= 0.99 * wanted as f64, "{when}: {right} of {wanted}");
}
