//! Two openers of one file on a disk that fails and loses its power: a random plan for both of them, and what the file must
//! hold after a cut at any operation.
//!
//! A unit is a pair of memories that are written and forgotten together, each time with the number of another round. The
//! book keeps, for every unit, the rounds that a reader may see now and those that a power cut may leave.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use oubliette::memory::Got;
use oubliette::{
    Database, Draft, Durability, ErrorKind, Forget, Mode, Namespace, NamespaceName, Query, Result,
};

use super::world::{FILE, World, clean};
use crate::disk::{Chance, Image, Plan, SimDisk, Site, Tape, broken, full};

/// Pairs of memories, each with a word of its own.
const WORDS: [&str; 5] = ["alpha", "beta", "gamma", "delta", "omega"];
const UNITS: usize = WORDS.len();
/// Calls between one start of the machine and the next.
const CALLS: usize = 24;
/// Lives of a file: each but the first begins with what a power cut has left.
const LIVES: usize = 3;

/// The number of the round that wrote a unit; none where it is not there.
type Round = Option<u32>;
type Rounds = BTreeSet<Round>;

/// How a file is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Alone(Durability),
    Shared(Durability),
    Reading,
}

const HOWS: [How; 6] = [
    How::Alone(Durability::Safe),
    How::Alone(Durability::Fast),
    How::Alone(Durability::Batch),
    How::Shared(Durability::Safe),
    How::Shared(Durability::Fast),
    How::Reading,
];

#[derive(Clone, Debug, Default)]
struct Unit {
    /// What a reader may see.
    live: Rounds,
    /// What a power cut may leave.
    safe: Rounds,
}

/// What was promised so far.
#[derive(Debug, Default)]
struct Book {
    units: Vec<Unit>,
    /// What a cut may leave from an operation of the disk on.
    past: Vec<(usize, Vec<Rounds>)>,
    /// The unit that is being written.
    busy: Option<usize>,
    round: u32,
}

impl Book {
    fn note(&mut self, at: usize) {
        self.past.push((at, self.units.iter().map(|unit| unit.safe.clone()).collect()));
    }

    fn may_see(&self) -> Vec<Rounds> {
        self.units.iter().map(|unit| unit.live.clone()).collect()
    }
}

/// One of the two.
#[derive(Default)]
struct Opener {
    db: Option<(Database, How)>,
    /// Units whose last write waits for a flush.
    pending: BTreeSet<usize>,
}

/// The stage of one life.
#[derive(Clone)]
struct Stage {
    disk: SimDisk,
    book: Arc<Mutex<Book>>,
    openers: Arc<[Mutex<Opener>; 2]>,
    chance: Arc<Mutex<Chance>>,
    /// Tells one file of a campaign from another.
    seed: u64,
}

fn ns(db: &Database) -> Namespace {
    db.namespace("default").unwrap()
}

fn keys(unit: usize) -> [String; 2] {
    ["a", "b"].map(|half| format!("u{unit}{half}"))
}

fn text(unit: usize, round: u32, half: &str) -> String {
    format!("{} as written in round {round} half {half}", WORDS[unit])
}

/// What a snapshot shows of each unit: by key and by word, and both halves alike.
fn read(db: &Database) -> Result<Vec<Round>> {
    let snapshot = db.snapshot()?;
    let mut found = Vec::new();
    for (unit, word) in WORDS.iter().enumerate() {
        let mut halves = Vec::new();
        let mut ids = BTreeSet::new();
        for key in keys(unit) {
            halves.push(match snapshot.namespace("default").unwrap().look_up(&key, false) {
                Ok(Got::Memory(memory)) => {
                    ids.insert(memory.id);
                    Some(memory.text.split(' ').nth(5).unwrap().parse::<u32>().unwrap())
                }
                Ok(Got::Tombstone(_)) => None,
                Err(why) if why.kind() == ErrorKind::NotFound => None,
                Err(why) => return Err(why),
            });
        }
        assert_eq!(halves[0], halves[1], "half of unit {unit}");
        let query = Query::text(*word).mode(Mode::Text).k(10);
        let hits: BTreeSet<_> = snapshot
            .namespace("default")
            .unwrap()
            .search(&query)?
            .hits
            .into_iter()
            .map(|hit| hit.id)
            .collect();
        assert_eq!(hits, ids, "unit {unit} by its word and by its keys");
        found.push(halves[0]);
    }
    Ok(found)
}

impl Stage {
    fn below(&self, bound: u64) -> u64 {
        self.chance.lock().unwrap().below(bound)
    }

    fn book<R>(&self, with: impl FnOnce(&mut Book) -> R) -> R {
        with(&mut self.book.lock().unwrap())
    }

    /// One call of one of the two. Whoever stands still in the middle of a call makes no other one.
    fn call(&self, who: usize) {
        let Ok(mut opener) = self.openers[who].try_lock() else { return };
        if opener.db.is_none() {
            let how = HOWS[self.below(HOWS.len() as u64) as usize];
            return self.open(&mut opener, how);
        }
        match self.below(16) {
            0..=5 => self.write(&mut opener, true),
            6..=7 => self.write(&mut opener, false),
            8..=10 => self.look(&mut opener),
            11 => self.flushed(&mut opener, Database::flush),
            12..=13 => self.flushed(&mut opener, |db| db.compact().map(drop)),
            _ => self.close(&mut opener),
        }
    }

    fn open(&self, opener: &mut Opener, how: How) {
        let builder = World::new(Image::default(), Durability::Safe).builder();
        let builder = builder
            .disk(Arc::new(self.disk.clone()))
            .ids(oubliette::clock::RandomIds::default())
            .create(false);
        let builder = match how {
            How::Alone(durability) => builder.durability(durability),
            How::Shared(durability) => builder.durability(durability).shared(true),
            How::Reading => builder.read_only(true),
        };
        match builder.open(FILE) {
            Ok(db) => opener.db = Some((db, how)),
            Err(why) => self.typed(&why, ErrorKind::Locked),
        }
    }

    /// An error is one of the storage or of the other opener, or the one that is `expected`.
    fn typed(&self, why: &oubliette::Error, expected: ErrorKind) {
        use ErrorKind::{Io, Locked, Retry, SnapshotExpired, Unavailable};
        let kind = why.kind();
        let typed = matches!(kind, Retry | Unavailable | Io | Locked | SnapshotExpired) || kind == expected;
        assert!(typed, "seed {}: {why:?}", self.seed);
    }

    /// After an error what waits for a flush may be lost.
    fn unsettle(&self, opener: &mut Opener) {
        self.book(|book| {
            for unit in std::mem::take(&mut opener.pending) {
                let Unit { live, safe } = &mut book.units[unit];
                live.extend(safe.iter().copied());
                *safe = live.clone();
            }
            book.note(self.disk.taped());
        });
    }

    /// Writes a unit anew, or forgets it.
    fn write(&self, opener: &mut Opener, add: bool) {
        let Some((db, how)) = opener.db.clone() else { return };
        let unit = self.below(UNITS as u64) as usize;
        let begun = self.book(|book| {
            if book.busy == Some(unit) {
                return None;
            }
            book.round += 1;
            let round = add.then_some(book.round);
            let before = book.units[unit].clone();
            book.units[unit].live.insert(round);
            book.units[unit].safe.insert(round);
            let others = book.busy.replace(unit);
            book.note(self.disk.taped());
            Some((round, before, others))
        });
        let Some((round, before, others)) = begun else { return };
        let done = match round {
            Some(round) => db.batch(|batch| {
                for (key, half) in keys(unit).into_iter().zip(["a", "b"]) {
                    batch.add(&NamespaceName::default(), Draft::new(text(unit, round, half)).key(key))?;
                }
                Ok(())
            }),
            None => ns(&db).forget(Forget::names(keys(unit))).map(drop),
        };
        self.book(|book| {
            book.busy = others;
            let Unit { live, safe } = &mut book.units[unit];
            match &done {
                Ok(()) => {
                    *live = Rounds::from([round]);
                    match how {
                        How::Alone(Durability::Batch) => drop(opener.pending.insert(unit)),
                        _ => *safe = live.clone(),
                    }
                }
                // Nothing of it is in the file.
                Err(why) if matches!(why.kind(), ErrorKind::Retry | ErrorKind::ReadOnly) => {
                    book.units[unit] = before;
                }
                Err(_) => {}
            }
            book.note(self.disk.taped());
        });
        if let Err(why) = done {
            let expected = if how == How::Reading { ErrorKind::ReadOnly } else { ErrorKind::Retry };
            self.typed(&why, expected);
            self.unsettle(opener);
        }
    }

    /// What is read is what may be seen: when the call began, or when it had ended.
    fn look(&self, opener: &mut Opener) {
        let Some((db, how)) = opener.db.clone() else { return };
        let before = self.book(|book| book.may_see());
        match read(&db) {
            Ok(found) => {
                let after = self.book(|book| book.may_see());
                for (unit, round) in found.iter().enumerate() {
                    let right = before[unit].contains(round) || after[unit].contains(round);
                    let seed = self.seed;
                    assert!(
                        right,
                        "seed {seed}, {how:?}: unit {unit} is {round:?}, not {before:?} or {after:?}"
                    );
                }
            }
            Err(why) => {
                self.typed(&why, ErrorKind::Retry);
                self.unsettle(opener);
            }
        }
    }

    /// A call after which all that came before it is durable.
    fn flushed(&self, opener: &mut Opener, call: fn(&Database) -> Result<()>) {
        let Some((db, how)) = opener.db.clone() else { return };
        match call(&db) {
            Ok(()) => self.settle(opener),
            Err(why) => {
                let expected = if how == How::Reading { ErrorKind::ReadOnly } else { ErrorKind::Retry };
                self.typed(&why, expected);
                self.unsettle(opener);
            }
        }
    }

    fn settle(&self, opener: &mut Opener) {
        self.book(|book| {
            for unit in std::mem::take(&mut opener.pending) {
                book.units[unit].safe = book.units[unit].live.clone();
            }
            book.note(self.disk.taped());
        });
    }

    fn close(&self, opener: &mut Opener) {
        let Some((db, _)) = opener.db.take() else { return };
        match db.close() {
            Ok(()) => self.settle(opener),
            Err(why) => {
                self.typed(&why, ErrorKind::Retry);
                self.unsettle(opener);
            }
        }
    }

    /// One call, on a disk that may refuse meanwhile, with a call of the other between any two of its operations.
    fn act(&self) {
        let who = self.below(2) as usize;
        if self.below(4) == 0 {
            let error = if self.below(2) == 0 { broken } else { full };
            let site = if self.below(4) == 0 { Site::Read } else { Site::Change };
            let now = if site == Site::Read { self.disk.reads() } else { self.disk.changes() };
            let (at, lasting) = (now + self.below(24), self.below(3) == 0);
            self.disk.fail(Plan { site, at, lasting, error });
        }
        if self.below(2) == 0 {
            let other = self.clone();
            self.disk.meanwhile(self.below(60), move || other.call(1 - who));
        }
        self.call(who);
        self.disk.nothing_meanwhile();
        if self.below(2) == 0 {
            self.disk.heal();
        }
    }

    /// Lets both go, and looks at what is left on a disk that is well.
    fn end(&self) {
        self.disk.heal();
        self.openers.iter().for_each(|opener| self.close(&mut opener.lock().unwrap()));
        let found = seen(&self.disk.image());
        let may = self.book(|book| book.may_see());
        for (unit, round) in found.iter().enumerate() {
            assert!(may[unit].contains(round), "seed {}: unit {unit} is {round:?} of {may:?}", self.seed);
        }
    }
}

/// What the file of an image holds, which is well and can be written.
fn seen(image: &Image) -> Vec<Round> {
    let world = World::new(image.clone(), Durability::Safe);
    let db = world.builder().create(false).open(FILE).unwrap();
    clean(&db).unwrap();
    let found = read(&db).unwrap();
    ns(&db).add(Draft::new("written after the recovery").key("after")).unwrap();
    assert_eq!(read(&db).unwrap(), found);
    found
}

/// Lives of one file: random plans for two openers, each ended by a power cut. Gives the cuts that were tried.
pub fn lives(seed: u64, cuts: usize) -> usize {
    let mut before = World::new(Image::default(), Durability::Safe);
    before.open().unwrap();
    before.close().unwrap();
    let mut image = before.disk.image();
    assert!(image.names.contains_key(Path::new(FILE)));
    let (mut held, mut round) = (vec![None; UNITS], 0);
    let chance = Arc::new(Mutex::new(Chance::new(seed)));
    let mut tried = 0;
    for _ in 0..LIVES {
        let is = |round: &Round| Rounds::from([*round]);
        let units = held.iter().map(|round| Unit { live: is(round), safe: is(round) }).collect();
        let mut book = Book { units, round, ..Book::default() };
        book.note(0);
        let stage = Stage {
            disk: SimDisk::new(image.clone()),
            book: Arc::new(Mutex::new(book)),
            openers: Arc::default(),
            chance: Arc::clone(&chance),
            seed,
        };
        (0..CALLS).for_each(|_| stage.act());
        stage.end();
        let (base, changes) = stage.disk.recording();
        let wanted: BTreeSet<usize> =
            (0..cuts).map(|_| stage.below(changes.len() as u64 + 1) as usize).collect();
        let mut tape = Tape::new(base);
        for at in 0..=changes.len() {
            let seeds = wanted.contains(&at).then(|| stage.below(u64::MAX)).into_iter();
            let images: Vec<Image> = match changes.get(at) {
                Some(change) => tape.cut_during(change, seeds),
                None => seeds.map(|seed| tape.cut(seed)).collect(),
            };
            for cut in images {
                let found = seen(&cut);
                stage.book(|book| {
                    let may = book.past.iter().rev().find(|(from, _)| *from <= at).unwrap();
                    for (unit, round) in found.iter().enumerate() {
                        let may = &may.1[unit];
                        let what = || format!("seed {seed}, cut at {at} of {}", changes.len());
                        assert!(may.contains(round), "{}: unit {unit} is {round:?} of {may:?}", what());
                    }
                    round = book.round;
                });
                (image, held) = (cut, found);
                tried += 1;
            }
        }
    }
    tried
}

/// One that asks for the file alone is refused, and whoever reads it meanwhile, between any two operations of that, is not told
/// that the file is damaged.
pub fn read_beside_one_that_is_refused() {
    let mut before = World::new(Image::default(), Durability::Safe);
    before.open().unwrap();
    before.close().unwrap();
    let disk = Arc::new(SimDisk::new(before.disk.image()));
    let reader = before.builder().disk(disk.clone()).read_only(true).create(false).open(FILE).unwrap();
    let mut refused = 0;
    for operations in 0..40 {
        let (reader, answer) = (reader.clone(), Arc::new(Mutex::new(None)));
        let told = Arc::clone(&answer);
        disk.meanwhile(operations, move || *told.lock().unwrap() = Some(read(&reader).map(drop)));
        let alone = before.builder().disk(disk.clone()).create(false).open(FILE);
        assert_eq!(alone.unwrap_err().kind(), ErrorKind::Locked);
        disk.nothing_meanwhile();
        if let Some(Err(why)) = answer.lock().unwrap().take() {
            assert_eq!(why.kind(), ErrorKind::Retry, "{operations} operations: {why}");
            refused += 1;
        }
    }
    assert!(refused > 0, "the reader has met the locks of the other");
}
