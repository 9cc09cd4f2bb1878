//! What stands after imports are undone is what would stand if nobody had imported (MODEL-33): the same story is told once more
//! without them, and each key says the same in both, and the same texts are live.
//!
//! `PROPTEST_CASES=5000 cargo test --test it replayed::` for longer.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, random, text};
use oubliette::maintain::RunId;
use oubliette::memory::Holder;
use oubliette::{Decision, Draft, ErrorKind, Memory, Outcome, Scope, State, WriteOptions};
use proptest::prelude::*;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TEXTS: [&str; 5] = [
    "Ann lives in Ghent",
    "the cat sleeps on the sofa",
    "coffee at nine",
    "Emil repaired his bicycle",
    "a train to Vienna",
];

#[derive(Clone, Debug)]
struct Say {
    key: Option<usize>,
    text: usize,
    /// The key whose memory is superseded.
    names: Option<usize>,
}

#[derive(Clone, Debug)]
enum Op {
    Write(Say),
    Import(Vec<Say>),
    /// The import with this number, the last first.
    Undo(usize),
    ForgetKey(usize),
}

fn say() -> impl Strategy<Value = Say> {
    let key = proptest::option::weighted(0.8, 0..KEYS.len());
    let names = proptest::option::weighted(0.3, 0..KEYS.len());
    (key, 0..TEXTS.len(), names).prop_map(|(key, text, names)| Say { key, text, names })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => say().prop_map(Op::Write),
        4 => proptest::collection::vec(say(), 1..4).prop_map(Op::Import),
        3 => (0..4_usize).prop_map(Op::Undo),
        1 => (0..KEYS.len()).prop_map(Op::ForgetKey),
    ]
}

/// The tag of an import.
fn tag(import: usize) -> String {
    format!("import:{import}")
}

fn draft(say: &Say, names: bool, import: Option<usize>) -> Draft {
    let mut draft = text(TEXTS[say.text]);
    draft.tags = import.map(|import| vec![tag(import)]);
    draft.key = say.key.map(|key| KEYS[key].to_owned());
    match say.names.filter(|_| names) {
        Some(named) => draft.supersedes(KEYS[named]),
        None => draft,
    }
}

/// A step that was taken, for the second telling.
#[derive(Clone, Debug)]
enum Step {
    /// What was said, and by which import, if one said it.
    Said(Say, Option<usize>),
    Forgot(usize),
}

struct Story {
    world: World,
    /// Whether imports are taken back by their tags.
    by_tag: bool,
    steps: Vec<Step>,
    /// The imports, none where one is undone.
    imports: Vec<Option<RunId>>,
    /// The import that said last what a key says, if one did.
    told_by: BTreeMap<usize, Option<usize>>,
    /// The keys of which a word replaced another memory by its name.
    named: BTreeSet<usize>,
}

/// What a store answers: the text of each key, and all live texts.
type Answers = (Vec<Option<String>>, BTreeSet<String>);

fn answers(world: &World) -> Answers {
    let said = KEYS.iter().map(|key| {
        let got = world.get(key).ok().and_then(|got| got.into_memory());
        got.filter(|memory| memory.state == State::Live).map(|memory| memory.text)
    });
    let live = world.list_in(Scope::Any, State::Live).into_iter().map(|row| row.text);
    (said.collect(), live.collect())
}

impl Story {
    fn new(by_tag: bool) -> Self {
        Story {
            world: World::new(),
            by_tag,
            steps: Vec::new(),
            imports: Vec::new(),
            told_by: BTreeMap::new(),
            named: BTreeSet::new(),
        }
    }

    /// Says something as a caller or in an import. Returns whether the story can be told on.
    fn say(&mut self, say: &Say, import: Option<usize>) -> bool {
        let row = |key: Option<usize>| self.world.get(KEYS[key?]).ok()?.into_memory();
        let (held, named) = (row(say.key), row(say.names));
        let run = import.and_then(|at| self.imports[at]);
        let options = WriteOptions { run, ..WriteOptions::default() };
        let outcome = match self.world.ns.add_all(vec![draft(say, true, import)], &options) {
            Ok(mut outcomes) => outcomes.remove(0),
            Err(why) => {
                let refused = [ErrorKind::NotFound, ErrorKind::Conflict, ErrorKind::Invalid];
                assert!(refused.contains(&why.kind()), "{say:?}: {why}");
                return true;
            }
        };
        if !self.is_told(say, import, &outcome, (held.as_ref(), named.as_ref())) {
            return false;
        }
        if let Some(key) = say.key {
            self.told_by.insert(key, import);
            self.named.extend(say.names.map(|_| key));
        }
        self.steps.push(Step::Said(say.clone(), import));
        true
    }

    /// Whether somebody who sees the store can tell what a word would have done without an import before it. Nobody can tell it of
    ///
    /// - what a key says again: it is of whoever said it first (a tag tells that another import has said it as well),
    /// - what a key says that has replaced another memory by its name, for an import: what was replaced goes on with the later word,
    /// - a key that an import takes away from where it was led: it does not go back there, which the undo reports,
    /// - one of several writers that leaves a memory to which keys lead, or is named there: the keys stay with the others,
    /// - a memory that is named by its own words.
    fn is_told(
        &self,
        say: &Say,
        import: Option<usize>,
        outcome: &Outcome,
        (held, named): (Option<&Memory>, Option<&Memory>),
    ) -> bool {
        let by = say.key.and_then(|key| self.told_by.get(&key).copied());
        let is_repeat = matches!(outcome.decision, Decision::Unchanged | Decision::Updated)
            && by.is_some_and(|by| by != import)
            && !(self.by_tag && import.is_some());
        let goes_on = by.is_some_and(|by| by.is_some() && by != import)
            && say.key.is_some_and(|key| self.named.contains(&key));
        let key = say.key.map(|key| KEYS[key]);
        let is_its = |one: &Holder| one.key.as_deref() == key;
        let was_led = outcome.decision == Decision::Stored
            && import.is_some()
            && held.is_some_and(|row| row.holders.iter().any(|one| one.follows && is_its(one)));
        let stays = |one: &Holder| one.follows || (one.from.is_some() && !is_its(one));
        let parts = held.is_some_and(|row| row.id != outcome.id && row.holders.iter().any(stays));
        let is_shared = named.is_some_and(|row| row.holders.len() > 1 || row.id == outcome.id);
        !(is_repeat || goes_on || was_led || parts || is_shared)
    }

    fn step(&mut self, op: &Op) -> bool {
        self.world.advance("1h");
        match op {
            Op::Write(say) => return self.say(say, None),
            Op::Import(all) => {
                let run = self.world.start_import();
                self.imports.push(Some(run));
                let at = self.imports.len() - 1;
                return all.iter().all(|say| self.say(say, Some(at)));
            }
            Op::Undo(at) => {
                let there: Vec<usize> =
                    (0..self.imports.len()).rev().filter(|at| self.imports[*at].is_some()).collect();
                let Some(place) = there.get(*at).copied() else { return true };
                let run = self.imports[place].take().unwrap();
                match self.by_tag {
                    true => drop(self.world.forget_tag(&tag(place))),
                    false => drop(self.world.ns.undo(run).unwrap()),
                }
                self.world.check();
                self.compare(op);
            }
            Op::ForgetKey(key) => {
                if self.told_by.get(key).copied().flatten().is_some() && self.named.contains(key) {
                    return false; // What a forgotten memory had replaced is replaced for good.
                }
                self.world.forget(&[KEYS[*key]]);
                self.told_by.remove(key);
                self.named.remove(key);
                self.steps.push(Step::Forgot(*key));
            }
        }
        true
    }

    /// Tells the story again without the imports that are undone.
    fn compare(&self, op: &Op) {
        let again = World::new();
        let mut imports = BTreeMap::new();
        for step in &self.steps {
            again.advance("1h");
            match step {
                Step::Said(_, Some(at)) if self.imports[*at].is_none() => {}
                Step::Said(say, import) => {
                    let run = import.map(|at| *imports.entry(at).or_insert_with(|| again.start_import()));
                    let options = WriteOptions { run, ..WriteOptions::default() };
                    let named = say.names.and_then(|named| again.get(KEYS[named]).ok()?.into_memory());
                    match again.ns.add_all(vec![draft(say, true, *import)], &options) {
                        // Without the import a memory is named by its own words.
                        Ok(told) if named.is_some_and(|named| named.id == told[0].id) => return,
                        Ok(_) => {}
                        // What it names was of an import.
                        Err(_) => drop(again.ns.add_all(vec![draft(say, false, *import)], &options)),
                    }
                }
                Step::Forgot(key) => drop(again.forget(&[KEYS[*key]])),
            }
        }
        assert_eq!(answers(&self.world), answers(&again), "{op:?}: {:#?}", self.steps);
    }
}

/// Tells a story as far as somebody who sees the store can tell it.
fn tell(ops: &[Op], by_tag: bool) {
    let mut story = Story::new(by_tag);
    let _ = ops.iter().all(|op| story.step(op));
}

proptest! {
    #![proptest_config(random(32, 1_000))]

    #[test]
    fn an_undone_import_leaves_what_would_be_there_without_it(ops in proptest::collection::vec(op(), 3..=16)) {
        tell(&ops, false);
    }

    #[test]
    fn an_import_that_is_forgotten_by_its_tag_leaves_what_would_be_there_without_it(
        ops in proptest::collection::vec(op(), 3..=16),
    ) {
        tell(&ops, true);
    }
}
