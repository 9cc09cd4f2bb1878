//! The exact regime against a full scan: enough rows for many chunks, so that the order in which candidates arrive is
//! not the order of their bounds.

use oubliette::{Database, Draft, Durability, Filter, Query, WriteOptions};

const DIM: usize = 48;
const ROWS: usize = 4_000;

/// A small generator with a seed.
fn numbers(mut state: u64) -> impl FnMut() -> f32 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    }
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|v| *v /= norm);
    vector
}

#[test]
fn search_is_a_full_scan_at_every_k_filtered_or_not() {
    let mut next = numbers(7);
    let centers: Vec<Vec<f32>> = (0..40).map(|_| unit((0..DIM).map(|_| next()).collect())).collect();
    let near = |center: &[f32], next: &mut dyn FnMut() -> f32| {
        unit(center.iter().map(|v| v + 0.15 * next()).collect())
    };
    let rows: Vec<Vec<f32>> = (0..ROWS).map(|at| near(&centers[at % 40], &mut next)).collect();
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder().durability(Durability::Batch).open(folder.path().join("r.oub")).unwrap();
    let ns = db.namespace("default").unwrap();
    let drafts = rows.iter().enumerate().map(|(at, row)| Draft::new(format!("row {at}")).vector(row.clone()));
    ns.add_all(drafts.collect(), &WriteOptions::default()).unwrap();
    let everything = Filter::parse(r#"{"kind":"knowledge"}"#).unwrap();
    for at in 0..60 {
        let query = near(&centers[at % 40], &mut next);
        let mut scores: Vec<f32> =
            rows.iter().map(|row| row.iter().zip(&query).map(|(a, b)| a * b).sum()).collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        for k in [1, 5, 10, 50, 200] {
            let asked = Query::vector(query.clone()).k(k);
            for asked in [asked.clone(), asked.filter(everything.clone())] {
                let found = ns.search(&asked).unwrap();
                assert_eq!(found.hits.len(), k);
                for (hit, best) in found.hits.iter().zip(&scores) {
                    assert!(
                        (hit.score - best).abs() < 1e-5,
                        "query {at}, k {k}: {} is not {best}",
                        hit.score
                    );
                }
            }
        }
    }
}

/// A hit has one score and one place, however many are asked for, and its cosine is that of the vectors.
#[test]
fn the_hits_by_words_and_vector_are_the_first_of_a_longer_list() {
    let mut next = numbers(11);
    let mut vector = || unit((0..DIM).map(|_| next()).collect());
    let rows: Vec<Vec<f32>> = (0..ROWS).map(|_| vector()).collect();
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder().durability(Durability::Batch).open(folder.path().join("r.oub")).unwrap();
    let ns = db.namespace("default").unwrap();
    let words = ["alpha", "beta", "gamma", "delta", "server", "deploy", "meeting"];
    let text = |at: usize| format!("{} {} {at}", words[at % 7], words[at / 7 % 7]);
    let drafts =
        rows.iter().enumerate().map(|(at, row)| Draft::new(text(at)).key(at.to_string()).vector(row.clone()));
    ns.add_all(drafts.collect(), &WriteOptions::default()).unwrap();
    for at in 0..40 {
        let given = vector();
        let words = format!("{} {}", words[at % 7], words[at % 5]);
        let asked = Query { text: Some(words), ..Query::vector(given.clone()) };
        let long = ns.search(asked.clone().k(40)).unwrap().hits;
        assert_eq!(long.len(), 40);
        for hit in &long {
            let row = &rows[hit.key.as_ref().unwrap().parse::<usize>().unwrap()];
            let cosine: f32 = row.iter().zip(&given).map(|(a, b)| a * b).sum();
            let told = hit.signals.vector.unwrap();
            assert!((told - cosine).abs() < 1e-5, "query {at}: {told} is not {cosine}");
        }
        for k in [1, 3, 10, 20] {
            let short = ns.search(asked.clone().k(k)).unwrap().hits;
            let told =
                |hits: &[oubliette::Hit]| hits.iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>();
            assert_eq!(told(&short), told(&long[..k]), "query {at}, k {k}");
        }
    }
}
