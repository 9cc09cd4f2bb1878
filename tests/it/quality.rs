//! What dedup does to real texts: the vector rule with its guards on judged pairs of sentences, the default write path
//! on texts that are near and all different, lines of logs, facts that were replaced, and the whole life of a memory. The
//! data stand in `../shared/data` or the folder in `OUBLIETTE_DATA`; without them a test says that it is skipped.

mod churn;
mod collapse;
#[cfg(feature = "static-mini")]
mod relevance;
mod repeats;
mod replaced;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::world::World;
use oubliette::maintain::{DedupReport, MaintainOptions, Pass};
use oubliette::policy::Syntax;
use oubliette::{Decision, Draft, MemoryId, Outcome, WriteOptions};
use serde_json::Value;

/// Cosine that two vectors need to be one by default (DEDUP-43).
const THRESHOLD: f32 = 0.984_429;
const DIM: usize = 384;

fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let named = std::env::var_os("OUBLIETTE_DATA").map(PathBuf::from);
    let found = named.into_iter().chain([beside]).find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: no ../shared/data and no OUBLIETTE_DATA");
    }
    found
}

fn lines(path: PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The vectors of a NumPy file of f32, version 1.
fn vectors(path: PathBuf) -> Vec<Vec<f32>> {
    let bytes = std::fs::read(path).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let values = bytes[header..].chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap()));
    values.collect::<Vec<_>>().chunks_exact(DIM).map(<[f32]>::to_vec).collect()
}

/// A pair of sentences as the write path sees it: how near the second is to the first, and what keeps them apart.
struct Pair {
    duplicate: bool,
    ids: [MemoryId; 2],
    cosine: f32,
    guard: Option<&'static str>,
}

/// Precision and recall of a rule, and how many pairs it takes.
fn figures(pairs: &[Pair], takes: impl Fn(&Pair) -> bool) -> (f64, f64, usize) {
    let taken: Vec<_> = pairs.iter().filter(|pair| takes(pair)).collect();
    let right = taken.iter().filter(|pair| pair.duplicate).count() as f64;
    let all = pairs.iter().filter(|pair| pair.duplicate).count() as f64;
    (right / taken.len().max(1) as f64, right / all, taken.len())
}

/// Both sentences of every pair in a partition of its own.
fn write_pairs(world: &World, folder: &std::path::Path) -> Vec<Pair> {
    let judged = lines(folder.join("dedup_msrp_train.jsonl"));
    let of_text: std::collections::HashMap<String, Vec<f32>> =
        lines(folder.join("dedup_msrp_train_texts.jsonl"))
            .iter()
            .map(|line| line["text"].as_str().unwrap().to_owned())
            .zip(vectors(folder.join("dedup_msrp_train_texts_384.f32.npy")))
            .collect();
    let text = |pair: &Value, side: &str| pair[side].as_str().unwrap().to_owned();
    let mut pairs = Vec::new();
    for (block, judged) in judged.chunks(500).enumerate() {
        let drafts: Vec<Draft> = (block * 500..)
            .zip(judged)
            .flat_map(|(at, pair)| ["text_a", "text_b"].map(|side| (at, text(pair, side))))
            .map(|(at, text)| Draft::new(&*text).vector(of_text[&text].clone()).agent(format!("pair-{at}")))
            .collect();
        let outcomes: Vec<Outcome> = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
        for (pair, both) in judged.iter().zip(outcomes.chunks_exact(2)) {
            let hint = both[1].hints.iter().find(|hint| hint.id == both[0].id);
            pairs.push(Pair {
                duplicate: pair["duplicate"].as_bool().unwrap(),
                ids: [both[0].id, both[1].id],
                cosine: hint.and_then(|hint| hint.score).unwrap_or(0.0),
                guard: hint.and_then(|hint| hint.guard),
            });
        }
    }
    pairs
}

#[test]
fn guards_keep_the_precision_of_the_vector_rule_and_cost_little_recall() {
    let Some(folder) = folder() else { return };
    let world = World::new();
    world.db.set_policy("dedup.similarity = 0.85", Syntax::Toml).unwrap();
    let pairs = write_pairs(&world, &folder);
    assert!(pairs.len() > 4_000);
    for threshold in [THRESHOLD, 0.98, 0.97, 0.96, 0.95, 0.93, 0.90] {
        let plain = figures(&pairs, |pair| pair.cosine >= threshold);
        let guarded = figures(&pairs, |pair| pair.cosine >= threshold && pair.guard.is_none());
        eprintln!("{threshold}: plain precision, recall, pairs {plain:.4?}; guarded {guarded:.4?}");
        for name in ["digits", "dates", "negation", "names", "opposites", "order"] {
            let kept = |pair: &Pair| pair.cosine >= threshold && pair.guard == Some(name);
            let (wrong, all) =
                (figures(&pairs, |pair| kept(pair) && !pair.duplicate).2, figures(&pairs, kept).2);
            eprintln!("    {name} keeps {all} pairs apart, {wrong} of them rightly");
        }
        if threshold >= THRESHOLD {
            assert!(guarded.0 >= 0.95, "precision of the rule with guards");
            assert!(guarded.1 >= plain.1 - 0.02, "recall of the rule with guards");
        }
    }

    // The pass takes the same pairs.
    world.db.set_policy("", Syntax::Toml).unwrap();
    let report =
        world.db.maintain_with(&MaintainOptions::default().passes([Pass::VectorDuplicates])).unwrap();
    let pass = report.passes.into_iter().find(|pass| pass.pass == Pass::VectorDuplicates).unwrap();
    let report: &DedupReport = pass.report.get().unwrap();
    let merged: BTreeSet<BTreeSet<MemoryId>> = report
        .actions
        .iter()
        .map(|action| action.tombstoned_ids.iter().copied().chain([action.representative_id]).collect())
        .collect();
    let expected: BTreeSet<BTreeSet<MemoryId>> = pairs
        .iter()
        .filter(|pair| pair.cosine >= THRESHOLD && pair.guard.is_none() && pair.ids[0] != pair.ids[1])
        .map(|pair| pair.ids.into_iter().collect())
        .collect();
    assert_eq!(merged, expected);
}

#[test]
fn the_default_write_path_merges_no_two_package_descriptions() {
    let Some(folder) = folder() else { return };
    let world = World::new();
    let texts = lines(folder.join("debian_dev_desc.jsonl"));
    let vectors = vectors(folder.join("debian_dev_desc_384.f32.npy"));
    let drafts: Vec<Draft> = texts
        .iter()
        .zip(vectors)
        .map(|(line, vector)| Draft::new(line["text"].as_str().unwrap()).vector(vector))
        .collect();
    let (rows, mut hinted) = (drafts.len(), 0);
    for batch in drafts.chunks(1_000) {
        let outcomes = world.ns.add_all(batch.to_vec(), &WriteOptions::default()).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.decision == Decision::Stored));
        hinted += outcomes.iter().filter(|outcome| !outcome.hints.is_empty()).count();
    }
    eprintln!("{hinted} of {rows} descriptions have a near one before them");
    assert!(rows > 5_000 && hinted > rows / 4);
    assert_eq!(world.ns.memory_stats().unwrap().local.total, rows as u64);
}
