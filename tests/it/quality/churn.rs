//! The life of a real memory: what a team of coding agents added, changed and deleted, record by record. Texts come again
//! and again under other keys; whatever becomes one row, each record is answered by its key with its own text.

use std::collections::{BTreeMap, BTreeSet};

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{
    Batch, Decision, Draft, Durability, Kind, NamespaceName, Outcome, Patch, Result, Scope, State,
    WriteOptions,
};
use serde_json::Value;

use super::{folder, lines};
use crate::world::World;

/// Operations between two looks at everything.
const ROUND: usize = 1_000;
/// Operations of one transaction.
const BATCH: usize = 50;

/// Operations of the trace.
const OPERATIONS: usize = 14_251;

/// What the trace says.
#[derive(Default)]
struct Trace {
    /// Texts by key, of what lives.
    live: BTreeMap<String, String>,
    /// Keys that hold each text.
    keys: BTreeMap<String, BTreeSet<String>>,
    /// Adds of a text that lived under another key.
    repeats: u64,
}

impl Trace {
    fn put(&mut self, key: &str, text: &str) {
        self.remove(key);
        self.live.insert(key.to_owned(), text.to_owned());
        self.keys.entry(text.to_owned()).or_default().insert(key.to_owned());
    }

    fn remove(&mut self, key: &str) {
        if let Some(text) = self.live.remove(key) {
            let keys = self.keys.get_mut(&text).unwrap();
            keys.remove(key);
            if keys.is_empty() {
                self.keys.remove(&text);
            }
        }
    }

    /// Notes an add, and says whether its text is there already.
    fn add(&mut self, key: &str, text: &str) -> bool {
        let repeat = self.keys.contains_key(text);
        self.repeats += u64::from(repeat);
        self.put(key, text);
        repeat
    }
}

/// One operation.
fn replay(
    batch: &mut Batch<'_, '_, '_, '_>,
    ns: &NamespaceName,
    line: &Value,
    how: &WriteOptions,
) -> Result<Option<Outcome>> {
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let key = text("id").unwrap();
    match line["op"].as_str().unwrap() {
        "add" => {
            // Lines of a collector, so that every pass looks at them.
            let draft = Draft::new(text("text").unwrap()).key(key).kind(Kind::Profile);
            return batch.add_with(ns, draft, how).map(Some);
        }
        "update" => {
            batch.update(ns, &key, Patch { text: text("text"), ..Patch::default() })?;
        }
        "status" => {
            batch.update(
                ns,
                &key,
                Patch { tags: Some(vec![text("status").unwrap()]), ..Patch::default() },
            )?;
        }
        "delete" => assert_eq!(batch.forget(ns, &[key])?.missing(), 0),
        other => panic!("{other}"),
    }
    Ok(None)
}

/// Every record that lives by the trace is answered by its key with its text.
fn look(world: &World, trace: &Trace, at: usize) {
    let lost: Vec<_> = trace.live.iter().filter(|(key, text)| world.row(key).text != **text).collect();
    assert!(lost.is_empty(), "after operation {at}: {} lost: {:?}", lost.len(), lost.first());
}

/// Replays the trace, and looks after every round.
fn life(no_dedup: bool) -> Option<(World, Trace)> {
    let lines = lines(folder()?.join("churn_gastown_git.jsonl"));
    assert_eq!(lines.len(), OPERATIONS);
    let world = World::with(|builder| builder.durability(Durability::Batch));
    let how = WriteOptions { no_dedup, ..WriteOptions::default() };
    let mut trace = Trace::default();
    for (round, operations) in lines.chunks(ROUND).enumerate() {
        for part in operations.chunks(BATCH) {
            let replayed = |batch: &mut Batch<'_, '_, '_, '_>| {
                part.iter().map(|line| replay(batch, world.ns.name(), line, &how)).collect::<Result<Vec<_>>>()
            };
            let outcomes = world.db.batch(replayed).unwrap();
            for (line, outcome) in part.iter().zip(outcomes) {
                let (key, text) = (line["id"].as_str().unwrap(), line["text"].as_str());
                match (line["op"].as_str().unwrap(), text) {
                    ("add", Some(text)) => {
                        let absorbed = trace.add(key, text) && !no_dedup;
                        let expected = if absorbed { Decision::Reinforced } else { Decision::Stored };
                        assert_eq!(outcome.unwrap().decision, expected, "{key}: {text}");
                    }
                    ("update", Some(text)) => trace.put(key, text),
                    ("delete", _) => trace.remove(key),
                    _ => {}
                }
            }
        }
        look(&world, &trace, round * ROUND + operations.len());
    }
    assert_eq!((trace.live.len(), trace.repeats), (933, 1940), "as many as a count of the trace alone gives");
    Some((world, trace))
}

/// Reinforcement of the rows with each text, and how many rows there are.
fn counts(world: &World) -> (BTreeMap<String, usize>, usize) {
    let rows = world.list_in(Scope::Any, State::Live);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        *counts.entry(row.text.clone()).or_default() += row.reinforcement_count as usize;
    }
    (counts, rows.len())
}

/// The passes that merge, on everything, and what they removed.
fn merge(world: &World) -> u64 {
    let options = MaintainOptions { destroy_max: Some(u64::MAX), ..MaintainOptions::live() };
    let report = world.db.maintain_with(&options.passes([Pass::NearDuplicates, Pass::Collapse])).unwrap();
    assert!(report.passes.iter().all(|pass| (pass.left, pass.skipped) == (0, 0)), "{report:?}");
    report.passes.iter().map(|pass| pass.tombstoned).sum()
}

#[test]
fn every_record_of_a_real_memory_keeps_its_own_text() {
    let Some((world, trace)) = life(false) else { return };
    world.check();
    let expected: BTreeMap<String, usize> =
        trace.keys.iter().map(|(text, keys)| (text.clone(), keys.len())).collect();
    let (counted, rows) = counts(&world);
    assert_eq!(counted, expected, "each write that lives counts once");
    let removed = merge(&world);
    eprintln!(
        "{} repeats absorbed; {} records in {rows} rows with {} texts; passes removed {removed}",
        trace.repeats,
        trace.live.len(),
        expected.len()
    );
    assert!(removed > 0);
    look(&world, &trace, OPERATIONS);
    let total = |world: &World| counts(world).0.values().sum::<usize>();
    assert_eq!(total(&world), trace.live.len());
    world.check();
}

#[test]
fn a_memory_that_let_every_duplicate_in_is_cleaned_up_without_a_loss() {
    let Some((world, trace)) = life(true) else { return };
    let (_, rows) = counts(&world);
    assert_eq!(rows, trace.live.len(), "a row for each record");
    let removed = merge(&world);
    eprintln!("{rows} rows, {removed} removed");
    let (counted, rows) = counts(&world);
    assert!(rows <= trace.keys.len(), "no text twice");
    assert_eq!(counted.values().sum::<usize>(), trace.live.len(), "each write that lives counts once");
    look(&world, &trace, OPERATIONS);
    world.check();
}
