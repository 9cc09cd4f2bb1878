//! What `collapse` makes of real logs, from the import to the undo: pairs of lines that became one row against pairs of
//! the same event template.

use std::collections::{BTreeMap, HashMap};

use oubliette::maintain::{MaintainOptions, Pass, ProfileCollapseReport, RunId};
use oubliette::memory::Got;
use oubliette::{Draft, Kind, MemoryId, State, WriteOptions};
use serde_json::Value;

use super::{folder, lines};
use crate::world::World;

/// System, recall of the exact and the token phase.
const RECALL: [(&str, f64); 8] = [
    ("Apache", 0.50),
    ("HDFS", 0.84),
    ("HealthApp", 1.0),
    ("Linux", 0.12),
    ("OpenStack", 0.58),
    ("Spark", 0.99),
    ("Windows", 0.64),
    ("Zookeeper", 1.0),
];

/// Pairs in the same class of both, of the first, of the second.
fn pairs(found: &[MemoryId], truth: &[&str]) -> [f64; 3] {
    let two = |counts: Vec<u64>| counts.into_iter().map(|n| n * (n - 1) / 2).sum::<u64>() as f64;
    let (mut both, mut first, mut second) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (found, truth) in found.iter().zip(truth) {
        *both.entry((found, truth)).or_insert(0) += 1;
        *first.entry(found).or_insert(0) += 1;
        *second.entry(truth).or_insert(0) += 1;
    }
    [
        two(both.into_values().collect()),
        two(first.into_values().collect()),
        two(second.into_values().collect()),
    ]
}

/// The row that stands for a line now.
fn stands_for(world: &World, id: MemoryId) -> MemoryId {
    let row = world.row(id);
    let by = row.superseded_by();
    assert_eq!((row.state == State::Limbo, row.state == State::Live), (by.is_some(), by.is_none()), "{id}");
    by.unwrap_or(id)
}

/// Collapses, and gives precision and recall of the pairs of lines, and the run.
fn collapse(world: &World, ids: &[MemoryId], lines: &[Value], fuzzy: bool) -> (f64, f64, RunId) {
    let options =
        MaintainOptions { destroy_max: Some(u64::MAX), fuzzy: Some(fuzzy), ..MaintainOptions::live() };
    let report = world.ns.maintain_with(&options.passes([Pass::Collapse])).unwrap();
    let told: &ProfileCollapseReport = report.passes[0].report.get().unwrap();
    assert_eq!(
        (told.scanned_profiles, told.operational_profiles),
        (ids.len() as u64, ids.len() as u64),
        "every line is operational"
    );
    let found: Vec<MemoryId> = ids.iter().map(|id| stands_for(world, *id)).collect();
    let live = world.live();
    assert_eq!(live.len() as u64, ids.len() as u64 - told.totals.duplicates_removed);
    let counts: u64 = live.iter().map(|id| u64::from(world.row(id).reinforcement_count)).sum();
    assert_eq!(counts, ids.len() as u64, "each line counts once, wherever it is now (DEDUP-17)");
    let truth: Vec<_> = lines.iter().map(|line| line["event_id"].as_str().unwrap()).collect();
    let [both, found, same] = pairs(&found, &truth);
    (both / found, both / same, report.run.unwrap())
}

#[test]
fn lines_of_logs_collapse_by_their_templates_and_come_back() {
    let Some(folder) = folder() else { return };
    let mut systems: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in lines(folder.join("loghub_dev.jsonl")) {
        systems.entry(line["system"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    let mut faults = Vec::new();
    for (system, expected) in RECALL {
        let lines = &systems[system];
        let mut world = World::new();
        world.ns = world.db.namespace(system.to_lowercase()).unwrap();
        let drafts = lines
            .iter()
            .map(|line| Draft::new(format!("{} status", line["line"].as_str().unwrap())).kind(Kind::Profile));
        // Equal lines stay apart at the door: what makes one of them here is the pass.
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let written = world.ns.add_all(drafts.collect(), &how).unwrap();
        let ids: Vec<MemoryId> = written.iter().map(|outcome| outcome.id).collect();
        let (precision, recall, run) = collapse(&world, &ids, lines, false);
        world.check();

        let undone = world.ns.undo(run).unwrap();
        assert!(undone.lost.is_empty(), "{system}: {undone:?}");
        assert_eq!(world.live(), ids, "{system}: every line is back");
        for (id, line) in ids.iter().zip(lines) {
            let Got::Memory(row) = world.get(id).unwrap() else { panic!("{system}: {id}") };
            assert_eq!(row.text, format!("{} status", line["line"].as_str().unwrap()));
            assert_eq!(row.reinforcement_count, 1, "{system}: {}", row.text);
        }
        world.check();

        let (fuzzy_precision, fuzzy_recall, _) = collapse(&world, &ids, lines, true);
        eprintln!(
            "{system}: precision {precision:.4} recall {recall:.3} (expected {expected:.2}); \
             fuzzy: precision {fuzzy_precision:.4} recall {fuzzy_recall:.3}"
        );
        let near = (recall - expected).abs() <= 0.02;
        if !near || precision < 0.999 || fuzzy_precision < 0.99 || fuzzy_recall < recall {
            faults.push(system);
        }
    }
    assert_eq!(faults, Vec::<&str>::new());
}
