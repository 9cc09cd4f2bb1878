//! The relevance of hits, held against which of them are evidence of a real question.

use std::collections::BTreeMap;

use oubliette::embed::StaticMini;
use oubliette::{Draft, Mode, Namespace, Query, WriteOptions};

use super::{folder, lines};
use crate::world::World;

/// Groups of hits by relevance.
const GROUPS: usize = 5;

/// The relevance of each hit of every third question, and whether the hit is evidence.
fn judged(world: &World, data: &std::path::Path, mode: Mode) -> Vec<(f32, bool)> {
    let mut all = Vec::new();
    for question in lines(data.join("locomo_dev_questions.jsonl")).iter().step_by(3) {
        let evidence = question["evidence"].as_array().unwrap();
        let team = of(world, question["conversation"].as_str().unwrap());
        let query = Query::text(question["question"].as_str().unwrap()).mode(mode);
        let hits = team.search(query).unwrap().hits;
        assert!(hits.windows(2).all(|pair| pair[0].relevance >= pair[1].relevance), "as the scores");
        let is_evidence = |key: &Option<String>| evidence.iter().any(|one| one.as_str() == key.as_deref());
        all.extend(hits.iter().map(|hit| (hit.relevance, is_evidence(&hit.key))));
    }
    all
}

fn of(world: &World, conversation: &str) -> Namespace {
    world.db.namespace(conversation).unwrap()
}

#[test]
fn relevance_is_the_share_of_hits_that_are_evidence() {
    let Some(data) = folder() else { return };
    let world = World::with(|builder| builder.embedder(StaticMini::new()));
    let mut drafts: BTreeMap<String, Vec<Draft>> = BTreeMap::new();
    for line in lines(data.join("locomo_dev_memories.jsonl")) {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        let draft = Draft::new(text("content")).key(text("id"));
        let draft = draft.happened_at(format!("{}Z", text("timestamp")).parse::<oubliette::Time>().unwrap());
        let session = serde_json::json!({ "session": line["session"].to_string() });
        drafts.entry(text("conversation")).or_default().push(draft.metadata(session));
    }
    for (conversation, drafts) in drafts {
        of(&world, &conversation).add_all(drafts, &WriteOptions::default()).unwrap();
    }
    for mode in [Mode::Hybrid, Mode::Vector, Mode::Text] {
        let mut hits = judged(&world, &data, mode);
        assert!(hits.len() > 1_000, "{mode}");
        hits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let groups: Vec<(f64, f64)> = hits
            .chunks(hits.len().div_ceil(GROUPS))
            .map(|group| {
                let size = group.len() as f64;
                let told: f64 = group.iter().map(|(relevance, _)| f64::from(*relevance)).sum();
                (told / size, group.iter().filter(|(_, is_evidence)| *is_evidence).count() as f64 / size)
            })
            .collect();
        let error = groups.iter().map(|(told, found)| (told - found).abs()).sum::<f64>() / GROUPS as f64;
        println!("{mode}: error {error:.4}, groups {groups:.3?}");
        assert!(error < 0.03, "{mode}: {error} in {groups:?}");
        assert!(groups[GROUPS - 1].1 > 3.0 * groups[0].1, "{mode}: {groups:?}");
    }
}
