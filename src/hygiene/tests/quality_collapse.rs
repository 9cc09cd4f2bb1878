//! What the pass `collapse` makes of real logs: pairs of lines that it puts in one group against pairs of the same
//! event template.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::Value;

use super::bed::{Bed, field, go, row};
use crate::hygiene::collapse::plan;
use crate::hygiene::plan::Action;
use crate::model::{Kind, MemoryId};
use crate::policy::Policy;

/// Where the data lie beside the project or one of its parents.
const DATA: &str = "shared/data/loghub_dev.jsonl";

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
fn pairs(found: &[usize], truth: &[&str]) -> (f64, f64, f64) {
    let two = |counts: Vec<u64>| counts.into_iter().map(|n| n * (n - 1) / 2).sum::<u64>() as f64;
    let (mut both, mut first, mut second) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (found, truth) in found.iter().zip(truth) {
        *both.entry((found, truth)).or_insert(0) += 1;
        *first.entry(found).or_insert(0) += 1;
        *second.entry(truth).or_insert(0) += 1;
    }
    (
        two(both.into_values().collect()),
        two(first.into_values().collect()),
        two(second.into_values().collect()),
    )
}

/// Precision and recall of the pairs of one system.
fn measure(lines: &[Value], fuzzy: bool) -> (f64, f64) {
    let id = |at: usize| MemoryId::from_bytes((at as u128 + 1).to_be_bytes());
    let rows = lines.iter().enumerate().map(|(at, line)| {
        let mut row = row(id(at), &format!("{} status", line["content"].as_str().unwrap()));
        row.vitals.kind_code = Kind::Profile.code();
        row
    });
    let mut policy = Policy::default();
    policy.collapse.fuzzy = fuzzy;
    let bed = Bed::of(rows.collect());
    let (plan, _) = plan(&bed.snapshot(), &field(), &policy, &mut go).unwrap().unwrap();
    // Each row is a class of its own until a group takes it.
    let mut class: Vec<usize> = (0..lines.len()).collect();
    let at = |id: MemoryId| u128::from_be_bytes(*id.as_bytes()) as usize - 1;
    for action in &plan.actions {
        let Action::Merge(group) = action else { panic!("{action:?}") };
        for loser in &group.losers {
            class[at(loser.id)] = at(group.canonical);
        }
    }
    let truth: Vec<_> = lines.iter().map(|line| line["event_id"].as_str().unwrap()).collect();
    let (both, found, same) = pairs(&class, &truth);
    (both / found, both / same)
}

#[test]
#[expect(clippy::print_stdout, reason = "a skipped test says so, and a measurement shows its numbers")]
fn lines_of_logs_are_grouped_by_their_templates() {
    let parents = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    let Some(text) = parents.filter_map(|parent| std::fs::read_to_string(parent.join(DATA)).ok()).next()
    else {
        println!("skipped: no ../{DATA}");
        return;
    };
    let mut systems: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        systems.entry(line["system"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    let mut faults = Vec::new();
    for (system, expected) in RECALL {
        let lines = &systems[system];
        let (precision, recall) = measure(lines, false);
        let (fuzzy_precision, fuzzy_recall) = measure(lines, true);
        println!(
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
