//! Bits that flip, pages that are zeroed, files that are cut: a reader gets the truth or a typed error.
//!
//! Never other data: every text and vector that a damaged file gives is compared with what was written. Never a panic.
//! `OUBLIETTE_ROT=n` damages n copies.

#![cfg(feature = "faults")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test may panic and tell"
)]

#[path = "crash/disk.rs"]
#[allow(dead_code, reason = "the crash tests use the rest")]
mod disk;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use disk::{Chance, Image, SimDisk};
use oubliette::{
    CheckOptions, Database, Draft, Error, ErrorKind, Got, MemoryId, Namespace, PageRequest, Query, Result,
    Scope,
};

const FILE: &str = "/db/memory.oub";
const ROWS: usize = 400;
const DIM: usize = 24;

/// What was written: text and unit vector by id.
type Truth = BTreeMap<MemoryId, (String, Vec<f32>)>;

fn open(image: Image) -> Result<Database> {
    Database::builder().disk(Arc::new(SimDisk::new(image))).secret([3; 32]).cache_bytes(4 << 20).open(FILE)
}

fn vector(seed: usize) -> Vec<f32> {
    (0..DIM).map(|at| 1.0 + ((seed * 7 + at * 13) % 97) as f32).collect()
}

/// A small database, and what is in it.
fn written() -> (Image, Truth) {
    let disk = SimDisk::new(Image::default());
    let db = Database::builder().disk(Arc::new(disk.clone())).secret([3; 32]).open(FILE).unwrap();
    let ns = Namespace::default();
    let drafts = (0..ROWS).map(|at| {
        let text = format!("memory {at} says {}", "something ".repeat(at % 40));
        Draft::new(text).key(format!("k{at}")).tag(format!("t{}", at % 5)).vector(vector(at))
    });
    db.add_all(&ns, drafts.collect(), &oubliette::WriteOptions::default()).unwrap();
    for at in (0..ROWS).step_by(10) {
        db.forget(&ns, oubliette::Forget::names([format!("k{at}")])).unwrap();
    }
    let page = PageRequest { limit: 10_000, ..PageRequest::default() };
    let mut truth = Truth::new();
    for memory in db.list(&ns, &page).unwrap().items {
        let Got::Memory(memory) = db.get(&ns, &memory.id.to_string(), true).unwrap() else { unreachable!() };
        truth.insert(memory.id, (memory.text, memory.vector.unwrap()));
    }
    db.close().unwrap();
    (disk.image(), truth)
}

/// What became of one damaged copy.
#[derive(Debug, Default)]
struct Tally {
    refused: u64,
    errors: u64,
    findings: u64,
    harmless: u64,
}

/// An error that a damaged file may give.
fn typed(why: &Error) -> bool {
    let kinds = [
        ErrorKind::Corrupted,
        ErrorKind::NotADatabase,
        ErrorKind::Format,
        ErrorKind::Io,
        ErrorKind::Retry,
        ErrorKind::Unavailable,
    ];
    kinds.contains(&why.kind())
}

/// Reads everything that a damaged file gives.
fn read(image: Image, truth: &Truth, what: &str, tally: &mut Tally) {
    let db = match open(image) {
        Ok(db) => db,
        Err(why) => {
            assert!(typed(&why), "{what}: open: {why:?}");
            tally.refused += 1;
            return;
        }
    };
    let ns = Namespace::default();
    let mut errors = 0;
    for (id, (text, vector)) in truth {
        match db.get(&ns, &id.to_string(), true) {
            Ok(Got::Memory(memory)) => {
                assert_eq!(&memory.text, text, "{what}: another text of {id}");
                assert!(
                    memory.vector.as_ref().is_none_or(|found| found == vector),
                    "{what}: another vector of {id}"
                );
            }
            Ok(Got::Tombstone(_)) => panic!("{what}: {id} was never forgotten"),
            // A row whose key is damaged is not found, which the walk below must tell.
            Err(why) => {
                assert!(typed(&why) || why.kind() == ErrorKind::NotFound, "{what}: get {id}: {why:?}");
                errors += 1;
            }
        }
    }
    match db.search(&ns, &Query::vector(vector(11)).k(20).scope(Scope::Any)) {
        Ok(found) => {
            assert!(found.hits.iter().all(|hit| truth.contains_key(&hit.id)), "{what}: a hit from nowhere")
        }
        Err(why) => assert!(typed(&why), "{what}: search: {why:?}"),
    }
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() });
    let sound = match &report {
        Ok(report) => report.ok,
        Err(why) => {
            assert!(typed(why), "{what}: check: {why:?}");
            false
        }
    };
    assert!(errors == 0 || !sound, "{what}: {errors} reads fail and the check finds nothing");
    match (errors, sound) {
        (0, true) => tally.harmless += 1,
        (0, false) => tally.findings += 1,
        _ => tally.errors += 1,
    }
}

#[test]
fn damage_is_an_error_and_never_other_data() {
    // What the store fences need not be printed hundreds of times.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_none_or(|place| !place.file().contains("redb")) {
            loud(panic);
        }
    }));
    let (image, truth) = written();
    let file = image.names[Path::new(FILE)];
    let len = image.files[file].len();
    let mutations: u64 = std::env::var("OUBLIETTE_ROT").map_or(300, |n| n.parse().unwrap());
    let (mut tally, mut chance) = (Tally::default(), Chance::new(11));
    for mutation in 0..mutations {
        let mut copy = image.clone();
        let data = &mut copy.files[file];
        // Most of a fresh file is empty: look for a place where something stands.
        let place =
            std::iter::repeat_with(|| chance.below(len as u64) as usize).find(|at| data[*at] != 0).unwrap();
        let what = match mutation % 4 {
            0 | 1 => {
                data[place] ^= 1 << chance.below(8);
                format!("a bit of byte {place}")
            }
            2 => {
                let page = place / 4_096 * 4_096;
                data[page..(page + 4_096).min(len)].fill(0);
                format!("the page at {page}")
            }
            _ => {
                data.truncate(place);
                format!("cut to {place}")
            }
        };
        read(copy, &truth, &what, &mut tally);
    }
    eprintln!("{mutations} damaged copies of {len} bytes: {tally:?}");
    assert!(
        tally.refused + tally.errors + tally.findings > mutations / 3,
        "the damage does not reach: {tally:?}"
    );
}
