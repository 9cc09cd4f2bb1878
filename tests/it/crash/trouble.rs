//! A story told on a disk that fails at one operation, once or for ever.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oubliette::{Durability, Error, ErrorKind, Result};

use super::recording::{Recording, Seen, difference};
use super::world::{World, seen_in};
use crate::disk::{Plan, Site};

/// Times that a step is tried before it counts as one that never succeeds.
const TRIES: usize = 4;

/// A telling with a fault in it.
struct Telling<'r> {
    recording: &'r Recording<'r>,
    plan: Plan,
    world: World,
    /// The first state that must not be lost any more.
    least: usize,
}

impl Recording<'_> {
    /// Tells the story once for each of the faults that `plans` makes for an operation; `stride` operations lie
    /// between one that fails and the next. Gives the number of tellings.
    pub fn fail_everywhere(&self, site: Site, first: u64, stride: u64, faults: &[Plan]) -> u64 {
        let operations = match site {
            Site::Change => self.tape.len() as u64,
            Site::Read => self.reads,
        };
        let mut told = 0;
        for at in (first..operations).step_by(stride as usize) {
            for fault in faults {
                self.tell(Plan { site, at, ..*fault });
                told += 1;
            }
        }
        told
    }

    /// Tells the story with a fault. Every call answers, with a typed error at worst; after a fault that passes the
    /// story goes on to its end; what was promised is there when the disk is well again, and after a power cut.
    fn tell(&self, plan: Plan) {
        let mut world = World::new(self.base.clone(), self.durability);
        world.run = self.run;
        world.disk.fail(plan);
        let mut telling = Telling { recording: self, plan, world, least: 0 };
        let most = match plan.lasting {
            true => telling.told_until_it_fails(),
            false => telling.told_whole(),
        };
        telling.world.disk.heal();
        let (seed, lossy) = (plan.at, self.durability == Durability::Batch);
        let after_a_cut = telling.world.disk.cut(seed);
        telling.expect("after a power cut", seen_in(&after_a_cut, false), telling.least, most);
        drop(telling.world.db.take());
        let least = if lossy || plan.lasting { telling.least } else { most };
        telling.expect("after a restart", seen_in(&telling.world.disk.image(), true), least, most);
    }
}

impl Telling<'_> {
    fn place(&self) -> String {
        let Recording { scenario, durability, tape, .. } = self.recording;
        let operation = match self.plan.site {
            Site::Change => tape.get(self.plan.at as usize).map(super::recording::name),
            Site::Read => None,
        };
        format!("{} in {durability:?}, {:?}, {operation:?}", scenario.name, self.plan)
    }

    /// One step; what escapes it must be an error of the storage.
    fn step(&mut self, number: usize) -> Result<()> {
        let step = &self.recording.scenario.steps[number];
        self.world.ids.begin(number);
        let result = catch_unwind(AssertUnwindSafe(|| (step.run)(&mut self.world)));
        let result = result.unwrap_or_else(|_| panic!("{}: step {number} ended in a panic", self.place()));
        match &result {
            Ok(()) if step.flushes || self.recording.durability != Durability::Batch => {
                self.least = number + 1
            }
            Ok(()) => {}
            Err(why) => {
                let typed = matches!(why.kind(), ErrorKind::Retry | ErrorKind::Unavailable | ErrorKind::Io);
                assert!(typed && self.world.disk.has_failed(), "{}: step {number}: {why:?}", self.place());
            }
        }
        result
    }

    /// Steps until one fails. Gives the last state that may be there.
    fn told_until_it_fails(&mut self) -> usize {
        let steps = self.recording.scenario.steps.len();
        let failed = (0..steps).find(|number| self.step(*number).is_err());
        failed.map_or(steps, |number| number + 1)
    }

    /// All steps; one that failed is tried again, as its error says.
    fn told_whole(&mut self) -> usize {
        let steps = self.recording.scenario.steps.len();
        let (mut number, mut tries) = (0, 0);
        while number < steps {
            let Err(why) = self.step(number) else {
                number += 1;
                continue;
            };
            tries += 1;
            assert!(tries < TRIES, "{}: step {number} never succeeds: {why}", self.place());
            number = self.recover(number, &why);
        }
        steps
    }

    /// Goes on after the failure of step `number`. Gives the step that is next.
    fn recover(&mut self, number: usize, why: &Error) -> usize {
        let opened = number > 0 || self.recording.seen[0].is_some();
        if self.world.db.is_none() && !opened {
            return number;
        }
        if self.world.db.is_none() || why.kind() == ErrorKind::Unavailable {
            self.world.db = None;
            let opened = self.world.open();
            opened.unwrap_or_else(|why| panic!("{}: open after a passing fault: {why}", self.place()));
        }
        let found =
            self.world.seen().unwrap_or_else(|why| panic!("{}: after step {number}: {why}", self.place()));
        let (found, seen) = (Some(found), &self.recording.seen);
        let lossy = self.recording.durability == Durability::Batch;
        if !lossy && why.kind() == ErrorKind::Retry {
            let said = "an error that says nothing was written";
            let differs = difference(&found, &seen[number]);
            assert!(found == seen[number], "{}: step {number}: {said}: {why}\n{differs}", self.place());
        }
        // Of equal states the earliest: what a reader does not see may be lost as well.
        let least = if lossy { self.least } else { number };
        let state = (least..=number + 1).find(|state| seen[*state] == found);
        let differs = difference(&found, &seen[number]);
        state.unwrap_or_else(|| {
            panic!("{}: step {number} left half of itself: {why}\n{differs}", self.place())
        })
    }

    fn expect(&self, when: &str, found: Result<Seen>, least: usize, most: usize) {
        let found = found.unwrap_or_else(|why| panic!("{}, {when}: {why}", self.place()));
        let seen = &self.recording.seen;
        let known = seen.iter().position(|state| *state == found);
        let right = seen[least..=most].contains(&found);
        let differs = difference(&found, &seen[least]);
        assert!(right, "{}, {when}: state {known:?} instead of {least}..={most}\n{differs}", self.place());
    }
}
