//! Bytes as a list of calls, three bytes each: what call, on what, with what. A walk through the file finds no fault
//! after them, nor after it was closed and opened again.
#![no_main]

#[path = "../../tests/it/disk.rs"]
#[allow(dead_code)]
mod disk;

use std::sync::Arc;

use disk::{Image, SimDisk};
use libfuzzer_sys::fuzz_target;
use oubliette::clock::ManualClock;
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::Expiry;
use oubliette::memory::{AuthorKind, SupersedeMode, Tier};
use oubliette::policy::Syntax;
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, Durability, ErrorKind, Forget, Kind, NamespaceName, Patch, Query, Result, Scope,
    WriteOptions,
};

const FILE: &str = "/db/memory.oub";
/// Calls of one input.
const CALLS_MAX: usize = 48;
/// A few steps of the clock let everything grow old.
const AGES: &str =
    "events.payload_ttl = \"8d\"\nevents.metadata_ttl = \"11d\"\ntombstone.retention = \"9d\"";

struct Story {
    disk: SimDisk,
    clock: ManualClock,
    db: Database,
    runs: Vec<RunId>,
}

fn open(disk: &SimDisk, clock: &ManualClock) -> Database {
    let builder = Database::builder().disk(Arc::new(disk.clone())).clock(clock.clone()).secret([3; 32]);
    builder.durability(Durability::Fast).cache_bytes(1 << 20).open(FILE).unwrap()
}

fn ns(what: u8) -> NamespaceName {
    if what & 64 == 0 { NamespaceName::default() } else { "other".parse().unwrap() }
}

fn draft(what: u8, how: u8) -> Draft {
    let mut draft = Draft::new(format!("memory {}", how % 12)).tag(format!("t{}", how % 3));
    draft.key = (what & 8 == 0).then(|| key(what));
    draft.vector = (how & 16 == 0).then(|| vec![f32::from(how % 12) + 1.0, 2.0, f32::from(what % 4)]);
    draft.agent = (what & 32 != 0).then(|| "scout".to_owned());
    if how & 128 != 0 {
        // Operational reports, and snapshots of a series.
        draft.text = format!("gateway status {}", how % 12);
        draft = draft.kind(if what & 128 == 0 { Kind::Profile } else { Kind::Snapshot });
    }
    let draft = if how & 32 != 0 { draft.tier(Tier::Working) } else { draft };
    if how & 64 != 0 { draft.expiry(Expiry::After("1h".parse().unwrap())) } else { draft }
}

/// A message of a program or a person; some have a key.
fn message(what: u8, how: u8) -> Draft {
    let mut draft = Draft::new(format!("build {} failed on main", how % 5)).kind(Kind::Message);
    draft.key = (what & 8 == 0).then(|| key(what));
    draft.fields.author_kind = Some(if how & 32 == 0 { AuthorKind::Bot } else { AuthorKind::Human }).into();
    draft.fields.channel = Some(format!("c{}", what % 2)).into();
    draft.vector = (how & 16 == 0).then(|| vec![f32::from(how % 5) + 1.0, 1.0, 2.0]);
    draft
}

fn key(what: u8) -> String {
    format!("k{}", what % 8)
}

impl Story {
    fn call(&mut self, call: u8, what: u8, how: u8) -> Result<()> {
        let (db, ns, name) = (&self.db, ns(what), key(what));
        match call % 23 {
            0..=3 => db.namespace(&ns).unwrap().add(draft(what, how)).map(drop),
            4 => {
                let run = self.runs.get(usize::from(how) % self.runs.len().max(1)).copied();
                let drafts = (0..4).map(|at| draft(what.wrapping_add(at), how.wrapping_mul(at))).collect();
                db.namespace(&ns)
                    .unwrap()
                    .add_all(drafts, &WriteOptions { run, no_dedup: how & 1 == 0, ..WriteOptions::default() })
                    .map(drop)
            }
            5 => {
                let text = (how & 1 == 0).then(|| format!("memory {}", how % 12));
                let tags = (how & 2 == 0).then(|| vec![format!("t{}", how % 3)]);
                db.namespace(&ns).unwrap().update(&name, Patch { text, tags, ..Patch::default() }).map(drop)
            }
            6 => db.namespace(&ns).unwrap().pin(&name, how & 1 == 0).map(drop),
            7 => {
                let mode = [SupersedeMode::Replaced, SupersedeMode::Duplicate, SupersedeMode::Correction];
                let mode = mode[usize::from(how) % 3];
                db.namespace(&ns).unwrap().supersede_all(&[name], &key(how), mode, None).map(drop)
            }
            8 => {
                let versions = db.namespace(&ns).unwrap().history(&name)?.versions;
                let Some(version) = versions.get(usize::from(how) % versions.len().max(1)) else {
                    return Ok(());
                };
                db.namespace(&ns).unwrap().restore(&version.id.to_string()).map(drop)
            }
            9 => db.namespace(&ns).unwrap().reinforce(&name, u32::from(how)),
            10 => db.namespace(&ns).unwrap().forget(Forget::names([name])).map(drop),
            11 => db.namespace(&ns).unwrap().forget(Forget::tag(format!("t{}", how % 3))).map(drop),
            12 => {
                self.runs.push(db.namespace(&ns).unwrap().start_import()?);
                Ok(())
            }
            13 => {
                let Some(run) = self.runs.get(usize::from(how) % self.runs.len().max(1)) else {
                    return Ok(());
                };
                db.namespace(&ns).unwrap().undo(*run).map(drop)
            }
            14 => {
                self.clock.advance("31m".parse()?);
                db.stats().map(drop)
            }
            15 => db
                .namespace(&ns)
                .unwrap()
                .search(Query::vector([1.0, f32::from(how), 0.5]).scope(Scope::Any))
                .map(drop),
            16 if how % 4 == 0 => db.drop_namespace(&ns).map(drop),
            16 => db.compact().map(drop),
            17 | 18 => {
                let pass = Pass::ALL[usize::from(how) % Pass::ALL.len()];
                let max_rows = (what & 16 != 0).then_some(2);
                let report = db
                    .maintain_with(&MaintainOptions { max_rows, ..MaintainOptions::live() }.passes([pass]))?;
                self.runs.extend(report.run);
                Ok(())
            }
            19 | 20 => db.namespace(&ns).unwrap().add(message(what, how)).map(drop),
            21 => {
                self.clock.advance("3d".parse()?);
                db.stats().map(drop)
            }
            _ => {
                self.db.clone().close()?;
                self.db = open(&self.disk, &self.clock);
                Ok(())
            }
        }
    }

    fn check(&self) {
        let report = self.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{:?}", report.findings);
    }
}

fuzz_target!(|data: &[u8]| {
    let disk = SimDisk::new(Image::default());
    let clock = ManualClock::at("2026-03-01T12:00:00Z".parse().unwrap());
    let db = open(&disk, &clock);
    db.set_policy(AGES, Syntax::Toml).unwrap();
    let mut story = Story { disk, clock, db, runs: Vec::new() };
    for call in data.chunks_exact(3).take(CALLS_MAX) {
        if let Err(why) = story.call(call[0], call[1], call[2]) {
            let fair = [
                ErrorKind::NotFound,
                ErrorKind::Conflict,
                ErrorKind::Invalid,
                ErrorKind::KeyInOtherPartition,
            ];
            assert!(fair.contains(&why.kind()), "{call:?}: {why:?}");
        }
    }
    story.check();
    story.db.clone().close().unwrap();
    story.db = open(&story.disk, &story.clock);
    story.check();
});
