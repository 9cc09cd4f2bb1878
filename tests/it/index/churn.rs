//! The life of a real memory: what a team of coding agents added, changed and deleted, with its vectors.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use oubliette::exchange::NpyReader;
use oubliette::policy::{Policy, Syntax};
use oubliette::{Draft, Durability, Effort, Forget, MemoryId, PageRequest, Patch, Query, Scope};
use serde_json::Value;

use super::all_passes;
use crate::world::World;

/// Operations between two looks at everything.
const ROUND: usize = 1_000;
/// Questions of a look. With a few dozen, one that is hard decides whether the mean is above 0.99.
const QUESTIONS: usize = 200;

/// The folder of the data; none where it is not at hand.
fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = if beside.is_dir() { beside } else { PathBuf::from(std::env::var_os("OUBLIETTE_DATA")?) };
    folder.join("churn_gastown_git.jsonl").is_file().then_some(folder)
}

fn lines(folder: &std::path::Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The vectors of the texts that were added.
fn vectors(folder: &std::path::Path) -> HashMap<String, Vec<f32>> {
    let mut rows = NpyReader::open(folder.join("churn_gastown_add_texts_384.f32.npy")).unwrap();
    let mut vectors = HashMap::new();
    for line in lines(folder, "churn_gastown_add_texts.jsonl") {
        let mut row = Vec::new();
        assert!(rows.next_row(&mut row).unwrap());
        vectors.insert(line["text"].as_str().unwrap().to_owned(), row);
    }
    vectors
}

/// One operation on the database and on a map of texts by key.
fn replay(
    world: &World,
    line: &Value,
    vectors: &HashMap<String, Vec<f32>>,
    live: &mut BTreeMap<String, String>,
) {
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let key = text("id").unwrap();
    match line["op"].as_str().unwrap() {
        "add" => {
            let text = text("text").unwrap();
            let mut draft = Draft::new(text.clone()).key(key.clone());
            draft.vector = vectors.get(&text).cloned();
            world.add(draft);
            live.insert(key, text);
        }
        "update" if live.contains_key(&key) => {
            let Some(text) = text("text") else { return };
            let vector = vectors.get(&text).cloned();
            let patch = Patch { text: Some(text.clone()), vector, ..Patch::default() };
            world.ns.update(&key, patch).unwrap();
            live.insert(key, text);
        }
        "status" if live.contains_key(&key) => {
            let patch = Patch { tags: Some(vec![text("status").unwrap()]), ..Patch::default() };
            world.ns.update(&key, patch).unwrap();
        }
        "delete" => {
            let forgotten = world.ns.forget(Forget::names([key.clone()])).unwrap();
            assert_eq!(forgotten.missing() == 0, live.remove(&key).is_some(), "{key}: {forgotten:?}");
        }
        _ => {}
    }
}

/// What lives by the trace is found by its key, and the index says what a full scan of it says.
fn look(world: &World, live: &BTreeMap<String, String>, queries: &[Vec<f32>], at: usize) -> f64 {
    let mut known = BTreeSet::new();
    for (key, text) in live {
        let memory = world.row(key);
        assert_eq!(&memory.text, text, "{key} after operation {at}");
        known.insert(memory.id);
    }
    let seen: BTreeSet<MemoryId> = pages(world).into_iter().collect();
    assert_eq!(seen, known, "after operation {at}");
    let query = |at: usize| Query::vector(queries[at].clone());
    for at in 0..queries.len() {
        let hits = world.hits(&query(at).effort(Effort::Recall(0.99)));
        assert!(hits.iter().all(|hit| known.contains(&hit.id)), "a dead id");
    }
    let recall = world.recall(query, queries.len());
    let vectors = world.vectors();
    eprintln!("after {at} operations: recall {recall}, {vectors:?}");
    let wide = world.recall(|at| query(at).effort(Effort::Ef(256)), queries.len());
    assert!(recall >= 0.97 && wide >= 0.998, "after operation {at}: recall {recall}, {wide} with long lists");
    recall
}

/// Every live row.
fn pages(world: &World) -> Vec<MemoryId> {
    let request = PageRequest { scope: Scope::Any, limit: 10_000, ..PageRequest::default() };
    world.ns.list(&request).unwrap().items.iter().map(|memory| memory.id).collect()
}

#[test]
fn the_index_agrees_with_a_full_scan_all_along_the_churn_of_a_real_memory() {
    let Some(folder) = data() else {
        eprintln!("skipped: no ../shared/data and no OUBLIETTE_DATA");
        return;
    };
    let vectors = vectors(&folder);
    let mut texts: Vec<&String> = vectors.keys().collect();
    texts.sort_unstable();
    let queries: Vec<Vec<f32>> =
        texts.iter().step_by(texts.len() / QUESTIONS).map(|text| vectors[*text].clone()).collect();
    let mut world = World::with(|builder| {
        let scanned = 300 * (384 + 64);
        let text = format!("[index]\nscan_max = {scanned}\ntail_min = 64\ntail_share = 0.0");
        builder.policy(Policy::parse(&text, Syntax::Toml).unwrap()).durability(Durability::Batch)
    });
    let mut live = BTreeMap::new();
    let trace = lines(&folder, "churn_gastown_git.jsonl");
    let (mut graphs, mut recalls) = (0, Vec::new());
    for (round, operations) in trace.chunks(ROUND).enumerate() {
        for line in operations {
            replay(&world, line, &vectors, &mut live);
        }
        let at = round * ROUND + operations.len();
        // Before maintenance the length of the walks is that of the last time, when the partition had another size.
        look(&world, &live, &queries, at);
        world.maintain(&all_passes());
        recalls.push(look(&world, &live, &queries, at));
        let vectors = world.vectors();
        assert_eq!((vectors.dead, vectors.tail), (0, 0), "after operation {at}");
        graphs += usize::from(vectors.regime == "graph");
        if round % 5 == 4 {
            world.check();
            world.reopen();
        }
    }
    let mean = recalls.iter().sum::<f64>() / recalls.len() as f64;
    assert!(mean >= 0.99, "recall {mean} where 0.99 was asked for: {recalls:?}");
    assert!(graphs > 10, "the graph was hardly in use");
    world.check();
    world.db.compact().unwrap();
    look(&world, &live, &queries, trace.len());
}
