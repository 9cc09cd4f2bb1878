//! Writes, passes and imports in any order, and what undoing them in any other order may not bring back (I15): no key has
//! two current rows, no superseded fact is live while a later one of its chain is, and no row outlives what all of its
//! writers have said since (MODEL-33, MODEL-67).
//!
//! `PROPTEST_CASES=5000 cargo test --test it undo_random::` for longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, axis, random, span, text};
use oubliette::maintain::{DedupOptions, MaintainOptions, Pass, RunId};
use oubliette::memory::SupersedeMode;
use oubliette::policy::Syntax;
use oubliette::{Decision, Draft, ErrorKind, Kind, MemoryId, Patch, Scope, State};
use proptest::prelude::*;

/// The last four are those of snapshots, which have a partition of their own.
const KEYS: [&str; 8] = ["a", "b", "c", "d", "s", "t", "u", "v"];
const TAG: &str = "import:x:2026-01-01";
const PASSES: [Pass; 5] =
    [Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates, Pass::Snapshots, Pass::Cluster];

#[derive(Clone, Debug)]
struct Say {
    key: Option<usize>,
    text: usize,
    tagged: bool,
    core: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Write(Say),
    Import(Vec<Say>),
    /// A text for a whole row, by its id.
    Revise(usize, usize),
    Supersede(usize, usize, SupersedeMode),
    Pass(usize),
    /// The run with this number, the last first.
    Undo(usize),
    /// A row of limbo.
    Restore(usize),
    ForgetTag,
    Wait,
}

fn say() -> impl Strategy<Value = Say> {
    let key = proptest::option::weighted(0.8, 0..4_usize);
    (key, 0..8_usize, proptest::bool::weighted(0.2), proptest::bool::weighted(0.2)).prop_map(
        |(key, text, tagged, core)| {
            let key = key.map(|key| if text < 6 { key } else { key + 4 });
            Say { key, text, tagged, core }
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let modes = [SupersedeMode::Replaced, SupersedeMode::Correction, SupersedeMode::Duplicate];
    prop_oneof![
        8 => say().prop_map(Op::Write),
        3 => proptest::collection::vec(say(), 1..4).prop_map(Op::Import),
        1 => (0..8_usize, 0..8_usize).prop_map(|(row, text)| Op::Revise(row, text)),
        2 => (0..8_usize, 0..8_usize, proptest::sample::select(modes.to_vec()))
            .prop_map(|(old, new, mode)| Op::Supersede(old, new, mode)),
        4 => (0..PASSES.len()).prop_map(Op::Pass),
        4 => (0..4_usize).prop_map(Op::Undo),
        1 => (0..4_usize).prop_map(Op::Restore),
        1 => Just(Op::ForgetTag),
        1 => Just(Op::Wait),
    ]
}

/// Status lines that collapse, lines whose vectors are near, snapshots of one day.
fn draft(say: &Say) -> Draft {
    let mut draft = match say.text {
        0..4 => text(&format!("Gateway status: {} apps pending", say.text)).kind(Kind::Profile),
        4..6 => {
            text(&format!("Ann drinks tea in the {}", ["garden", "kitchen"][say.text - 4])).vector(axis(0))
        }
        other => text(&format!("{{\"version\": {other}}}")).kind(Kind::Snapshot),
    };
    draft.key = say.key.map(|key| KEYS[key].to_owned());
    draft.tags = Some(if say.tagged { vec![TAG.to_owned()] } else { Vec::new() });
    if say.core {
        draft.fields.significance = Some(oubliette::memory::Significance::Core);
    }
    draft
}

/// One write, as the answers told of it.
struct Wrote {
    key: Option<usize>,
    text: usize,
    row: MemoryId,
    run: Option<RunId>,
    tagged: bool,
}

/// One write that took the place of a row.
struct Replaced {
    key: Option<usize>,
    run: Option<RunId>,
    tagged: bool,
    old: MemoryId,
    new: MemoryId,
}

struct Story {
    world: World,
    wrote: Vec<Wrote>,
    /// Who took whose place by the word of a caller, and whether as a duplicate.
    chain: BTreeMap<MemoryId, BTreeSet<(MemoryId, bool)>>,
    /// Who took whose place by a write that an undo or a forget takes back: what others have said stays, and so may both.
    written: Vec<Replaced>,
    runs: Vec<RunId>,
}

impl Story {
    fn new() -> Self {
        let world = World::new();
        world.db.set_policy("cluster.prune = true", Syntax::Toml).unwrap();
        Story { world, wrote: Vec::new(), chain: BTreeMap::new(), written: Vec::new(), runs: Vec::new() }
    }

    fn note(&mut self, say: &Say, outcome: &oubliette::Outcome, run: Option<RunId>) {
        match outcome.decision {
            // A repeat of what the key said says nothing new.
            Decision::Unchanged => return,
            // The key says the same with other tags, wherever its text is by now.
            Decision::Updated => {
                let last = self.wrote.iter_mut().rev().find(|wrote| wrote.key == say.key);
                if let Some(last) = last.filter(|last| last.text == say.text) {
                    // A tag that names an import comes to what somebody has said before, and goes alone.
                    last.tagged &= say.tagged;
                    let replaced = self.written.iter_mut().filter(|one| one.key == say.key);
                    replaced.filter(|one| one.new == last.row).for_each(|one| one.tagged &= say.tagged);
                    return;
                }
            }
            // A text that others have written too is theirs, and the key leaves it (MODEL-8).
            Decision::Stored => {
                let last = self.wrote.iter().rposition(|wrote| wrote.key.is_some() && wrote.key == say.key);
                if let Some(last) = last.filter(|last| self.world.is_live(self.wrote[*last].row)) {
                    self.wrote.remove(last);
                }
            }
            Decision::Revised { old } => {
                let (key, tagged, new) = (say.key, say.tagged, outcome.id);
                self.written.push(Replaced { key, run, tagged, old, new });
            }
            _ => {}
        }
        self.wrote.push(Wrote { key: say.key, text: say.text, row: outcome.id, run, tagged: say.tagged });
    }

    fn nth(&self, state: State, at: usize) -> Option<MemoryId> {
        let scope = if state == State::Live { Scope::Shared } else { Scope::Any };
        let rows = self.world.list_in(scope, state);
        (!rows.is_empty()).then(|| rows[at % rows.len()].id)
    }

    fn step(&mut self, op: &Op) {
        let world = &self.world;
        let before: BTreeSet<MemoryId> = world.live().into_iter().collect();
        match op {
            Op::Write(say) => {
                let outcome = world.add(draft(say));
                self.note(say, &outcome, None);
            }
            Op::Import(all) => {
                let run = world.start_import();
                let outcomes = world.import(run, all.iter().map(draft).collect());
                for (say, outcome) in all.iter().zip(&outcomes) {
                    self.note(say, outcome, Some(run));
                }
                self.runs.push(run);
            }
            Op::Revise(row, words) => {
                let Some(id) = self.nth(State::Live, *row) else { return };
                let patch = Patch { text: Some(format!("revised to {words}")), ..Patch::default() };
                let new = world.ns.update(id.to_string(), patch).unwrap();
                if let Decision::Revised { old } = new.decision {
                    self.chain.entry(old).or_default().insert((new.id, false));
                }
            }
            Op::Supersede(old, new, mode) => {
                let (Some(old), Some(new)) = (self.nth(State::Live, *old), self.nth(State::Live, *new))
                else {
                    return;
                };
                if world.supersede(old, new, *mode, None).is_ok() {
                    let is_duplicate = *mode == SupersedeMode::Duplicate;
                    self.chain.entry(old).or_default().insert((new, is_duplicate));
                }
            }
            Op::Pass(pass) => {
                let dedup = DedupOptions { dry_run: false, ..DedupOptions::default() };
                let options = MaintainOptions { dedup: Some(dedup), ..MaintainOptions::live() };
                self.runs.extend(world.db.maintain_with(&options.passes([PASSES[*pass]])).unwrap().run);
            }
            Op::Undo(at) => {
                let Some(place) = self.runs.len().checked_sub(1 + at) else { return };
                let run = self.runs.remove(place);
                match world.ns.undo(run) {
                    // A run that had nothing to do is not kept.
                    Err(why) if why.kind() == ErrorKind::NotFound => return,
                    undone => drop(undone.unwrap()),
                }
                self.wrote.retain(|wrote| wrote.run != Some(run));
                self.written.retain(|one| one.run != Some(run));
                self.compare(op, &before);
            }
            Op::Restore(at) => {
                let Some(id) = self.nth(State::Limbo, *at) else { return };
                world.ns.restore(id.to_string()).unwrap();
                self.compare(op, &before);
            }
            Op::ForgetTag => {
                world.forget_tag(TAG);
                self.wrote.retain(|wrote| !wrote.tagged);
                self.written.retain(|one| !one.tagged);
                self.compare(op, &before);
            }
            Op::Wait => world.advance(&span("1h").to_string()),
        }
    }

    fn compare(&self, op: &Op, before: &BTreeSet<MemoryId>) {
        self.world.check();
        let rows = self.world.list_in(Scope::Any, State::Live);
        let live: BTreeSet<MemoryId> = rows.iter().map(|row| row.id).collect();
        let mut keys = BTreeSet::new();
        for key in rows.iter().flat_map(|row| &row.keys) {
            assert!(keys.insert(key), "{op:?}: the key {key} has two current rows");
        }
        let mut chain = self.chain.clone();
        for Replaced { old, new, .. } in &self.written {
            chain.entry(*old).or_default().insert((*new, false));
        }
        for old in chain.keys().filter(|old| live.contains(old)) {
            let (mut open, mut met) = (vec![*old], BTreeSet::new());
            while let Some(at) = open.pop().filter(|at| met.insert(*at)) {
                // What a row had replaced is back when the row has gone with its writers: a memory of which it was a duplicate stands
                // for it as long as they say it there.
                let gone = self.world.get(at).map_or(true, |got| got.into_memory().is_none());
                let onward = chain.get(&at).into_iter().flatten();
                open.extend(onward.filter(|(_, is_duplicate)| !(gone && *is_duplicate)).map(|(new, _)| *new));
            }
            let later = met.iter().find(|id| *id != old && live.contains(id));
            assert_eq!(later, None, "{op:?}: {old} is live beside what took its place");
        }
        let last =
            |key: usize| self.wrote.iter().rev().find(|wrote| wrote.key == Some(key)).map(|wrote| wrote.row);
        for row in live.difference(before) {
            let own = self.wrote.iter().filter(|wrote| wrote.row == *row).map(|wrote| wrote.key);
            // Who had written a row that was merged into this one has a text here as well.
            let memory = rows.iter().find(|memory| memory.id == *row).unwrap();
            let merged = memory.holders.iter().filter(|holder| holder.from.is_some() && !holder.follows);
            let place = |key: &String| KEYS.iter().position(|other| other == key);
            let merged = merged.map(|holder| holder.key.as_ref().and_then(place));
            let writers: Vec<_> = own.chain(merged).collect();
            let left = |key: &Option<usize>| {
                key.and_then(last).is_some_and(|last| last != *row && live.contains(&last))
            };
            let outlives = !writers.is_empty() && writers.iter().all(left);
            assert!(!outlives, "{op:?}: {row} outlives what its writers {writers:?} have said since");
        }
    }
}

proptest! {
    #![proptest_config(random(32, 400))]

    #[test]
    fn no_undo_brings_an_old_fact_back(ops in proptest::collection::vec(op(), 4..=36)) {
        let mut story = Story::new();
        for op in &ops {
            story.step(op);
        }
    }
}

/// A line of k1 was merged into the equal one of k2, which says something else since. Taking back what k1 said later makes
/// the merged row live again: for k1, which has no other.
#[test]
fn a_merged_writer_has_its_text_again() {
    let say = |key: usize, text: usize, core: bool| Say { key: Some(key), text, tagged: false, core };
    let mut story = Story::new();
    story.step(&Op::Write(say(2, 4, true)));
    story.step(&Op::Write(say(1, 5, false)));
    story.step(&Op::Write(say(2, 5, false)));
    story.step(&Op::Pass(1));
    let merged = story.world.row(KEYS[2]).id;
    story.step(&Op::Write(say(2, 0, false)));
    story.step(&Op::Import(vec![say(1, 0, false)]));
    story.step(&Op::Undo(0));
    assert_eq!((story.world.row(KEYS[1]).id, story.world.is_live(merged)), (merged, true));
}

/// A caller lets another memory replace what a key says. An import gives the key a new text, which a pass merges into that
/// memory. The undo of the import takes back the text, and not what the caller said.
#[test]
fn a_replacement_by_a_caller_outlives_the_import_that_was_merged_there() {
    let say = |key: Option<usize>, text: usize, core: bool| Say { key, text, tagged: false, core };
    let mut story = Story::new();
    story.step(&Op::Write(say(None, 1, true)));
    story.step(&Op::Write(say(None, 1, false)));
    story.step(&Op::Write(say(Some(0), 4, false)));
    story.step(&Op::Write(say(None, 0, false)));
    story.step(&Op::Pass(0));
    let old = story.world.row(KEYS[0]).id;
    story.step(&Op::Supersede(1, 0, SupersedeMode::Replaced));
    story.step(&Op::Import(vec![say(Some(0), 0, false)]));
    story.step(&Op::Import(vec![say(None, 0, false)]));
    story.step(&Op::Pass(0));
    story.step(&Op::Undo(2));
    assert!(!story.world.is_live(old));
}

/// A caller has called what a key said a duplicate. A line says something else through the key, and is taken back: what the caller has
/// said stays (MODEL-33).
#[test]
fn what_a_caller_called_a_duplicate_stays_so_after_a_line_is_taken_back() {
    let say = |key: Option<usize>, text: usize| Say { key, text, tagged: false, core: false };
    let mut story = Story::new();
    story.step(&Op::Import(vec![say(None, 0)]));
    story.step(&Op::Write(say(Some(3), 2)));
    story.step(&Op::Write(say(Some(0), 4)));
    story.step(&Op::Write(say(Some(3), 0)));
    story.step(&Op::Revise(4, 0));
    story.step(&Op::Supersede(2, 0, SupersedeMode::Duplicate));
    story.step(&Op::Import(vec![say(Some(0), 0)]));
    story.step(&Op::Undo(0));
}

/// LIFE-26: an import says again, with a tag, what a key had said in the place of an earlier text. The tag goes alone, and the earlier
/// text stays replaced.
#[test]
fn a_tag_that_comes_later_takes_no_text_along() {
    let say = |key: Option<usize>, text: usize, tagged: bool| Say { key, text, tagged, core: false };
    let mut story = Story::new();
    story.step(&Op::Import(vec![say(Some(3), 0, false), say(Some(3), 3, false)]));
    story.step(&Op::Import(vec![say(None, 3, false)]));
    story.step(&Op::Import(vec![say(Some(3), 3, true)]));
    story.step(&Op::ForgetTag);
    let texts: BTreeSet<String> =
        story.world.list_in(Scope::Any, State::Live).into_iter().map(|row| row.text).collect();
    assert_eq!(texts, BTreeSet::from(["Gateway status: 3 apps pending".to_owned()]));
}

/// LIFE-26: the rows that a forgotten one had superseded are live again, also where a caller had called the forgotten one a duplicate
/// of a memory that stays.
#[test]
fn what_a_forgotten_row_had_replaced_is_back_where_it_was_merged() {
    let say = |key: Option<usize>, text: usize, tagged: bool| Say { key, text, tagged, core: false };
    let mut story = Story::new();
    story.step(&Op::Import(vec![say(None, 0, false), say(Some(3), 1, false)]));
    story.step(&Op::Write(say(None, 2, true)));
    let old = story.world.row(KEYS[3]).id;
    story.step(&Op::Supersede(7, 2, SupersedeMode::Replaced));
    story.step(&Op::Supersede(5, 2, SupersedeMode::Duplicate));
    story.step(&Op::Write(say(Some(3), 0, true)));
    story.step(&Op::ForgetTag);
    assert!(story.world.is_live(old));
}

/// A caller lets another memory replace what a key says, and an import says that memory's words through the key and through another. The
/// undo of the import takes back its words, and not what the caller said.
#[test]
fn a_replacement_by_a_caller_outlives_what_an_import_says_there_through_two_keys() {
    let say = |key: usize, text: usize| Say { key: Some(key), text, tagged: false, core: false };
    let mut story = Story::new();
    story.step(&Op::Write(say(1, 0)));
    story.step(&Op::Write(say(0, 5)));
    let old = story.world.row(KEYS[1]).id;
    story.step(&Op::Supersede(0, 1, SupersedeMode::Correction));
    assert!(!story.world.is_live(old));
    story.step(&Op::Import(vec![say(1, 5), say(2, 5)]));
    story.step(&Op::Undo(0));
    assert!(!story.world.is_live(old));
}

/// A key was led to the memory of which a caller had called what it says a duplicate, and an import says that memory's words through it.
/// The undo of the import leads the key there again, and brings nothing back that the key had said before (MODEL-33).
#[test]
fn a_key_that_a_caller_had_led_leads_there_again_where_an_import_had_said_the_text() {
    let say = |key: Option<usize>, text: usize| Say { key, text, tagged: false, core: false };
    for mode in [SupersedeMode::Replaced, SupersedeMode::Correction, SupersedeMode::Duplicate] {
        let mut story = Story::new();
        story.step(&Op::Import(vec![say(Some(2), 0), say(None, 4)]));
        story.step(&Op::Write(say(Some(2), 1)));
        let [old, new] = [1, 0].map(|at| story.nth(State::Live, at).unwrap());
        assert_eq!(story.world.row(KEYS[2]).id, old);
        story.step(&Op::Supersede(1, 6, mode));
        let leads = |story: &Story| {
            let row = story.world.row(KEYS[2]);
            assert_eq!(row.id, new, "{mode:?}");
            row.holders.iter().map(|holder| (holder.key.clone(), holder.follows)).collect::<Vec<_>>()
        };
        let before = (story.world.live(), leads(&story));
        story.step(&Op::Import(vec![say(Some(2), 4)]));
        story.step(&Op::Undo(0));
        assert_eq!((story.world.live(), leads(&story)), before, "{mode:?}");
    }
}

/// What a pass had united was pruned beside another memory since, which counts its own writes alone. The undo of the first pass takes
/// nothing from it (DEDUP-17, LIFE-43).
#[test]
fn what_was_pruned_has_handed_no_count_on() {
    let say = |key: Option<usize>, text: usize| Say { key, text, tagged: false, core: false };
    let mut story = Story::new();
    story.step(&Op::Write(say(None, 5)));
    let other = story.nth(State::Live, 0).unwrap();
    story.step(&Op::Write(say(Some(2), 0)));
    story.step(&Op::Supersede(1, 2, SupersedeMode::Correction));
    story.step(&Op::Import(vec![say(None, 4)]));
    story.step(&Op::Write(say(Some(2), 4)));
    story.step(&Op::Pass(1));
    story.step(&Op::Pass(4));
    story.step(&Op::Import(vec![say(None, 5)]));
    assert_eq!((story.world.live(), story.world.row(other).reinforcement_count), (vec![other], 2));
    story.step(&Op::Undo(2));
    assert_eq!(story.world.row(other).reinforcement_count, 2);
}
