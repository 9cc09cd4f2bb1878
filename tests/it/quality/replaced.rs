//! A fact and the fact that replaces it are two, however near their texts are: the new one is never swallowed.

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::Syntax;
use oubliette::{Decision, Draft, WriteOptions};

use super::{folder, lines};
use crate::world::World;

/// The passes that make one of several.
const MERGING: [Pass; 3] = [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates];

/// Policies: the default one, and one that absorbs all that a policy can let it absorb without vectors, of which these
/// texts have none.
const POLICIES: [&str; 2] = ["", "[write]\nnormalized_match = 'absorb'\ntoken_match = true\nop_match = true"];

#[test]
fn a_fact_that_replaces_another_is_never_swallowed() {
    let Some(folder) = folder() else { return };
    let facts = lines(folder.join("supersede_letta_dev.jsonl"));
    assert!(facts.len() > 1_000);
    for policy in POLICIES {
        let world = World::new();
        world.db.set_policy(policy, Syntax::Toml).unwrap();
        for (at, fact) in facts.iter().enumerate() {
            let agent = format!("pair-{at}");
            // All that the new one replaces; a few lists of these name the new one among them, which is then no old one.
            let old = fact["old_all"].as_array().unwrap().iter().filter(|old| **old != fact["new"]);
            let texts = old.chain([&fact["new"]]).map(|text| text.as_str().unwrap());
            let drafts = texts.map(|text| Draft::new(text).agent(&*agent)).collect();
            let written = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
            assert!(written.len() >= 2);
            for outcome in &written {
                assert_eq!(outcome.decision, Decision::Stored, "{policy}: {fact}");
            }
        }
        let rows = world.live();
        assert!(rows.len() > 2 * facts.len());
        for fuzzy in [false, true] {
            let options = MaintainOptions {
                destroy_max: Some(u64::MAX),
                fuzzy: Some(fuzzy),
                ..MaintainOptions::live()
            };
            let report = world.db.maintain_with(&options.clone().passes(MERGING)).unwrap();
            assert!(report.passes.iter().all(|pass| pass.changed == 0), "{policy}: {report:?}");
        }
        assert_eq!(world.live(), rows);
    }
}

/// A text of an old fact that two records share is replaced for one of them at a time, so no new fact is lost with it.
#[test]
fn every_new_fact_is_live_when_records_share_an_old_one() {
    let Some(folder) = folder() else { return };
    let facts = lines(folder.join("supersede_letta_dev.jsonl"));
    let pairs: Vec<(&str, &str)> =
        facts.iter().filter_map(|fact| Some((fact["old"].as_str()?, fact["new"].as_str()?))).collect();
    let world = World::new();
    let old = |at: usize| format!("l{at}");
    let drafts = pairs.iter().enumerate().map(|(at, (said, _))| Draft::new(*said).key(old(at))).collect();
    let written = world.ns.add_all(drafts, &WriteOptions::default()).unwrap();
    assert!(
        written.iter().any(|outcome| outcome.decision == Decision::Reinforced),
        "some old facts are shared"
    );
    for (at, (_, said)) in pairs.iter().enumerate() {
        let mut draft = Draft::new(*said).key(format!("n{at}"));
        draft.supersedes = vec![old(at)];
        world.add(draft);
    }
    for (at, (_, said)) in pairs.iter().enumerate() {
        for key in [old(at), format!("n{at}")] {
            let memory = world.row(key);
            assert_eq!((memory.text.as_str(), memory.state), (*said, oubliette::State::Live), "{at}");
        }
    }
    let texts: std::collections::BTreeSet<&str> = pairs.iter().map(|(_, said)| *said).collect();
    assert_eq!(world.live().len(), texts.len());
    world.check();
}
