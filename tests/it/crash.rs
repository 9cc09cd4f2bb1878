//! Power cuts and failing disks: every story of `crash/scenarios.rs`, cut and failed at every operation.
//!
//! What must hold after a power cut at any operation, with torn sectors and unsynced writes in any order: the file
//! opens, a walk through it finds no fault, and a reader sees a state that the story had after one of its steps, not
//! before the last one that was acknowledged (in `Batch` mode: flushed). Units are never halved, for no other state is
//! taken for right. What must hold on a disk that refuses: a typed error and no panic, a handle that works again when
//! the disk does, and the same promises after a restart. `crash/openers.rs` lets two handles work on one file.
//!
//! `OUBLIETTE_CRASH_SEEDS=n` tries n cuts at each operation, and every fault; the script `tests/crash-campaign` does so.

mod consolidation;
mod openers;
mod recording;
mod scenarios;
mod trouble;
mod world;

use std::time::Instant;

use crate::disk::{Image, Plan, Site, broken, full};
use oubliette::{Draft, Durability, ErrorKind, NamespaceName, WriteOptions};
use recording::Recording;
use scenarios::SCENARIOS;
use world::World;

/// Cuts at each operation, where the environment asks for a campaign.
fn seeds() -> Option<u64> {
    std::env::var("OUBLIETTE_CRASH_SEEDS").ok().map(|seeds| seeds.parse().unwrap())
}

/// Tells every `one_of`-th story in one mode and counts what `each` tries. Every story is told if the environment names one or
/// asks for a campaign.
fn every_story(
    what: &str,
    durability: Durability,
    one_of: usize,
    mut each: impl FnMut(&Recording<'_>) -> u64,
) {
    quiet();
    let only = std::env::var("OUBLIETTE_CRASH_ONLY").ok();
    let first = match durability {
        Durability::Safe => 0,
        Durability::Fast => 1,
        Durability::Batch => 2,
    };
    let mut tried = 0;
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        let is_told = match &only {
            Some(name) => scenario.name == name,
            None => seeds().is_some() || number % one_of == first % one_of,
        };
        if !is_told {
            continue;
        }
        let begun = Instant::now();
        let recording = Recording::of(scenario, durability);
        let here = each(&recording);
        tried += here;
        eprintln!(
            "{what} {durability:?} {}: {} operations, {here} tries, {:?}",
            scenario.name,
            recording.tape.len(),
            begun.elapsed()
        );
    }
    assert!(tried > 0, "nothing was tried");
}

/// The store fences panics of redb; a test that means to see hundreds of them need not print them.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.location().is_none_or(|place| !place.file().contains("redb")) {
                loud(panic);
            }
        }));
    });
}

fn cut(durability: Durability) {
    every_story("cut", durability, 1, |recording| match seeds() {
        Some(seeds) => recording.cut_everywhere(seeds, 1),
        // Neighbours among the like writes of a long story are left to the campaign.
        None => recording.cut_everywhere(1, 1 + recording.tape.len() / 25),
    });
}

#[test]
fn a_power_cut_in_safe_mode_loses_nothing_acknowledged() {
    cut(Durability::Safe);
}

#[test]
fn a_power_cut_in_fast_mode_loses_nothing_acknowledged() {
    cut(Durability::Fast);
}

#[test]
fn a_power_cut_in_batch_mode_loses_nothing_flushed() {
    cut(Durability::Batch);
}

/// Faults by number of the operation: which of them a run tries there.
const FAULTS: [Plan; 4] = [
    Plan { site: Site::Change, at: 0, lasting: false, error: broken },
    Plan { site: Site::Change, at: 0, lasting: true, error: full },
    Plan { site: Site::Change, at: 0, lasting: false, error: full },
    Plan { site: Site::Change, at: 0, lasting: true, error: broken },
];

/// Each story fails in one of the three modes, since what must hold after a refusal is the same in all of them.
fn fail(durability: Durability) {
    every_story("fault", durability, 3, |recording| match seeds() {
        Some(_) => {
            recording.fail_everywhere(Site::Change, 0, 1, &FAULTS)
                + recording.fail_everywhere(Site::Read, 0, 1, &FAULTS)
        }
        // One operation refuses for a moment and is full for good, the next one the other way round. Of the hundreds of
        // like writes of a compaction some are left to the campaign, and of those of stories with many rows.
        None => {
            let [a, b, c, d] = FAULTS;
            let most = if recording.scenario.name.starts_with("graph") { 4 } else { 6 };
            let stride = 1 + recording.tape.len() as u64 / most;
            recording.fail_everywhere(Site::Change, 0, 2 * stride, &[a, b])
                + recording.fail_everywhere(Site::Change, stride, 2 * stride, &[c, d])
                + recording.fail_everywhere(Site::Read, 0, 17, &[a])
        }
    });
}

#[test]
fn a_failing_disk_in_safe_mode_gives_typed_errors() {
    fail(Durability::Safe);
}

#[test]
fn a_failing_disk_in_fast_mode_gives_typed_errors() {
    fail(Durability::Fast);
}

#[test]
fn a_failing_disk_in_batch_mode_gives_typed_errors() {
    fail(Durability::Batch);
}

/// I1 with two openers: what either is told is stored is there after a power cut at any operation, whole, and what neither
/// was told is there whole or not at all.
#[test]
fn a_power_cut_with_two_openers_loses_nothing_acknowledged() {
    quiet();
    let (files, cuts) = seeds().map_or((12, 8), |seeds| (10 * seeds, 40));
    let tried: usize = (0..files).map(|seed| openers::lives(seed, cuts)).sum();
    assert!(tried as u64 > files, "{tried} cuts of {files} files");
}

#[test]
fn a_reader_beside_one_that_is_refused_reads_on() {
    quiet();
    openers::read_beside_one_that_is_refused();
}

/// A disk that refuses once fails the end of the transaction too, and what it says then is that it has failed before.
#[test]
fn a_write_that_finds_no_room_says_so() {
    let write = |plan: Option<Plan>| {
        let mut world = World::new(Image::default(), Durability::Fast);
        world.open().unwrap();
        let team = world.db().namespace(NamespaceName::default()).unwrap();
        let drafts = (0..300).map(|at| Draft::new(format!("{at} {}", "tea and cake ".repeat(300))));
        let before = world.disk.changes();
        plan.into_iter().for_each(|plan| world.disk.fail(Plan { at: before + plan.at, ..plan }));
        let told = team.add_all(drafts.collect(), &WriteOptions::default());
        (told, world.disk.changes() - before)
    };
    let (told, operations) = write(None);
    told.unwrap();
    for lasting in [false, true] {
        for part in 0..12 {
            let plan = Plan { site: Site::Change, at: operations * part / 12, lasting, error: full };
            if let Err(why) = write(Some(plan)).0 {
                assert!(why.to_string().contains("no space left on device"), "{plan:?}: {why}");
            }
        }
    }
}

/// Whatever fails while a file is closed: what was written before is there, and the error does not say otherwise.
#[test]
fn a_file_that_is_not_closed_in_order_has_all_that_was_written() {
    for durability in [Durability::Safe, Durability::Fast] {
        let mut failed = 0;
        loop {
            let mut world = World::new(Image::default(), durability);
            world.open().unwrap();
            let ns = NamespaceName::default();
            world.db().namespace(&ns).unwrap().add("Ann lives in Ghent").unwrap();
            let at = world.disk.changes() + failed;
            world.disk.fail(Plan { site: Site::Change, at, lasting: true, error: broken });
            let closed = world.close();
            let has_failed = world.disk.has_failed();
            world.disk.heal();
            world.open().unwrap();
            assert_eq!(world.db().namespace(&ns).unwrap().search("Ghent").unwrap().hits.len(), 1);
            if !has_failed {
                closed.unwrap();
                break;
            }
            if let Err(why) = closed {
                assert_eq!(why.kind(), ErrorKind::Io, "{durability:?}, operation {failed}: {why}");
            }
            failed += 1;
        }
        assert!(failed > 0, "a closing writes to the disk");
    }
}
