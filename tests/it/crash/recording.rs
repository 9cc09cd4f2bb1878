//! A story told once on a healthy disk, and every way in which the power may fail during it.

use std::ops::RangeInclusive;

use oubliette::Durability;
use oubliette::maintain::RunId;

use super::scenarios::Scenario;
use super::world::{World, seen_in};
use crate::disk::{Chance, Change, Image, Tape};

/// What a reader sees; none where there is no database yet.
pub type Seen = Option<Vec<String>>;

/// One step as it was told.
#[derive(Debug)]
struct Told {
    /// Number of its first operation.
    begin: usize,
    /// Number of the first operation after it.
    end: usize,
    flushes: bool,
}

/// A story, told without a fault.
pub struct Recording<'s> {
    pub scenario: &'s Scenario,
    pub durability: Durability,
    pub base: Image,
    pub run: Option<RunId>,
    pub tape: Vec<Change>,
    /// What is seen before the first step and after each.
    pub seen: Vec<Seen>,
    /// Reads of files in all.
    pub reads: u64,
    told: Vec<Told>,
}

impl<'s> Recording<'s> {
    pub fn of(scenario: &'s Scenario, durability: Durability) -> Self {
        let mut before = World::new(Image::default(), Durability::Safe);
        before.ids.begin(999);
        (scenario.before)(&mut before).unwrap();
        before.close().unwrap();
        let (base, run) = (before.disk.image(), before.run);
        let mut seen = vec![seen_in(&base, false).unwrap()];
        let mut told = Vec::new();
        let mut world = World::new(base.clone(), durability);
        world.run = run;
        for (number, step) in scenario.steps.iter().enumerate() {
            let begin = world.disk.changes() as usize;
            world.ids.begin(number);
            (step.run)(&mut world).unwrap_or_else(|why| panic!("{}, step {number}: {why}", scenario.name));
            told.push(Told { begin, end: world.disk.changes() as usize, flushes: step.flushes });
            seen.push(match &world.db {
                Some(_) => Some(world.seen().unwrap()),
                None => seen_in(&world.disk.image(), false).unwrap(),
            });
        }
        let reads = world.disk.reads();
        let (_, mut tape) = world.disk.recording();
        // What the handle does when it is dropped belongs to no step.
        tape.truncate(told.last().unwrap().end);
        Recording { scenario, durability, base, run, tape, seen, reads, told }
    }

    /// The states that may be found after a power cut during operation `at`: those after the steps that began, but
    /// none before the last step that had made its promise.
    pub fn allowed(&self, at: usize) -> RangeInclusive<usize> {
        let kept = |step: &Told| step.end <= at && (step.flushes || self.durability != Durability::Batch);
        let least = self.told.iter().rposition(kept).map_or(0, |step| step + 1);
        let most = self.told.iter().filter(|step| step.begin <= at).count();
        least..=most
    }

    /// Cuts the power during every operation whose number `stride` divides, and after the last. Gives the number of
    /// images tried.
    pub fn cut_everywhere(&self, seeds: u64, stride: usize) -> u64 {
        let mut tape = Tape::new(self.base.clone());
        let mut tried = 0;
        for (at, change) in self.tape.iter().enumerate() {
            let here = if at.is_multiple_of(stride) { seeds } else { 0 };
            for (seed, image) in (0..).zip(tape.cut_during(change, self.seeds(at, here))) {
                self.verify(at, seed, &image, tried);
                tried += 1;
            }
        }
        for seed in self.seeds(self.tape.len(), seeds) {
            self.verify(self.tape.len(), seed, &tape.cut(seed), tried);
            tried += 1;
        }
        tried
    }

    /// Seeds of the cuts at one operation, other ones at each.
    fn seeds(&self, at: usize, seeds: u64) -> impl Iterator<Item = u64> + use<> {
        let mode = self.durability as u64;
        (0..seeds).map(move |seed| Chance::new(seed << 32 | mode << 24 | at as u64).next())
    }

    /// The image, the `tried`th, opens, is whole, and holds one of the states that it may.
    fn verify(&self, at: usize, seed: u64, image: &Image, tried: u64) {
        let place = || {
            let Recording { scenario, durability, tape, .. } = self;
            let operation = tape.get(at).map_or("the end".to_owned(), name);
            format!("{} in {durability:?}, cut {seed} during operation {at}, {operation}", scenario.name)
        };
        let allowed = self.allowed(at);
        let found = match seen_in(image, tried.is_multiple_of(8)) {
            Ok(found) => found,
            Err(why) => panic!("{}: {why}", place()),
        };
        if !self.seen[allowed.clone()].contains(&found) {
            let known = self.seen.iter().position(|seen| *seen == found);
            let wanted = &self.seen[*allowed.start()];
            let difference = difference(&found, wanted);
            panic!("{}: state {known:?} instead of {allowed:?}\n{difference}", place());
        }
        // The recovery is a story of its own, in which the power may fail as well.
        if tried.is_multiple_of(16) {
            self.cut_recovery(at, image, &place());
        }
    }

    /// Cuts the power during operations of the recovery after a cut at `at`.
    fn cut_recovery(&self, at: usize, image: &Image, place: &str) {
        if !image.names.contains_key(std::path::Path::new(super::world::FILE)) {
            return;
        }
        let mut world = World::new(image.clone(), Durability::Safe);
        world.open().unwrap_or_else(|why| panic!("{place}: {why}"));
        drop(world.db.take());
        let (base, changes) = world.disk.recording();
        let mut tape = Tape::new(base);
        for (second, change) in changes.iter().enumerate() {
            let seeds = std::iter::once((at * 1_000 + second) as u64);
            let images = tape.cut_during(change, seeds);
            for image in images.iter().filter(|_| second.is_multiple_of(4)) {
                let found =
                    seen_in(image, false).unwrap_or_else(|why| panic!("{place}, again at {second}: {why}"));
                let allowed = &self.seen[self.allowed(at)];
                assert!(allowed.contains(&found), "{place}, again at {second}: another state");
            }
        }
    }
}

/// An operation in a few words.
pub fn name(change: &Change) -> String {
    match change {
        Change::Write { file, offset, bytes } => {
            format!("write of {} bytes at {offset} of file {file}", bytes.len())
        }
        other => format!("{other:?}"),
    }
}

/// The lines that only one of two states has.
pub fn difference(found: &Seen, wanted: &Seen) -> String {
    const CHARS_MAX: usize = 400;
    let (found, wanted) = (found.as_deref().unwrap_or_default(), wanted.as_deref().unwrap_or_default());
    let only = |sign: &str, some: &[String], others: &[String]| -> String {
        let lines = some.iter().filter(|line| !others.contains(line));
        lines.map(|line| format!("{sign} {}\n", line.chars().take(CHARS_MAX).collect::<String>())).collect()
    };
    only("+", found, wanted) + &only("-", wanted, found)
}
