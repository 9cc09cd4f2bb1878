//! A consolidation whose disk fails between two batches: what was stored before stands, and the report says what is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oubliette::gc::{InputPack, Summarizer};
use oubliette::memory::{Field, Tier};
use oubliette::policy::Syntax;
use oubliette::{Draft, Durability, Memory, Patch, Result};

use super::world::{FILE, World};
use crate::disk::{Image, Plan, SimDisk, Site, broken};
use crate::world::assert_clean;

/// Joins texts, and lets the disk fail for good while it works on the second batch.
struct Failing {
    disk: SimDisk,
    asked: AtomicUsize,
}

impl Summarizer for Failing {
    fn summarize(&self, _: &InputPack) -> Result<String> {
        panic!("asked for a summary")
    }

    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        if self.asked.fetch_add(1, Ordering::SeqCst) == 1 {
            self.disk.fail(Plan { site: Site::Change, at: 0, lasting: true, error: broken });
        }
        let texts: Vec<&str> = memories.iter().map(|memory| memory.text.as_str()).collect();
        Ok(Draft::new(texts.join("; ")))
    }
}

#[test]
fn a_disk_that_fails_between_two_batches_leaves_the_first_and_tells_of_the_second() {
    let mut world = World::new(Image::default(), Durability::Safe);
    world.open().unwrap();
    world.ids.begin(1);
    world.db().set_policy("promote.batch = 2", Syntax::Toml).unwrap();
    let team = world.db().namespace("team").unwrap();
    for at in 0..5 {
        let id = team.add(Draft::new(format!("in use {at}")).tier(Tier::Working)).unwrap().id;
        let mut patch = Patch::default();
        patch.fields.retrieval_count = Some(3);
        patch.fields.last_retrieved = Field::Value("2026-03-01T12:00:00Z".parse().unwrap());
        team.update(id, patch).unwrap();
    }
    let failing = Failing { disk: world.disk.clone(), asked: AtomicUsize::new(0) };
    let summarizer: Arc<dyn Summarizer> = Arc::new(failing);
    let report = team.consolidate(&summarizer).unwrap();
    assert_eq!((report.shown, report.created.len(), report.left), (4, 1, 2), "{report:?}");
    assert_eq!((report.failures.len(), report.run.is_some()), (1, true));
    drop(team);
    world.disk.heal();
    // The handle is as dead as its file was, and another one finds what was acknowledged.
    drop(world.db.take());
    world.db = Some(world.builder().create(false).open(FILE).unwrap());
    assert_clean(world.db());
    let team = world.db().namespace("team").unwrap();
    assert_eq!(team.get(report.created[0]).unwrap().unwrap().sources.len(), 2);
    let left = team.consolidate(&summarizer).unwrap();
    assert_eq!((left.shown, left.created.len(), left.left), (3, 2, 0), "{left:?}");
    assert_clean(world.db());
}
