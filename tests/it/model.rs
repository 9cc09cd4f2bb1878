//! Random operations on the database and on a reference of plain lists; after every one of them `check` finds
//! nothing, and keys, listings, searches and statistics say the same.
//!
//! The same once more with a policy under which a handful of rows has a graph, and with maintenance among the operations.
//!
//! `PROPTEST_CASES=5000 cargo test --test it model::` for longer. What it finds is kept as a test of its own in
//! `regress.rs`.

mod ahead;
mod imports;
mod leaving;
mod off;
mod reference;

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, ms, random};
use oubliette::maintain::{MaintainOptions, Pass, RunId};
use oubliette::memory::Expiry;
use oubliette::memory::{Fields, Got, Partition, SupersedeMode, TombstoneReason};
use oubliette::policy::{Policy, Syntax};
use oubliette::report::Forgotten;
use oubliette::{
    Builder, Decision, Draft, ErrorKind, Forget, MemoryId, NamespaceName, Outcome, PageRequest, Patch, Query,
    Result, Scope, Time, WriteOptions,
};
use proptest::prelude::*;
use proptest::sample::Index;
use reference::{Edit, Model, To, Told, Write};

const TEXTS: [&str; 6] = ["tea", "Tea", "the build is green", "coffee", "Ann lives in Bonn", "x"];
/// World time that belongs to each text, in milliseconds; the clock begins at 1,000.
const VALID: [Option<(Option<i64>, Option<i64>)>; 6] =
    [None, None, None, Some((Some(1_080), None)), Some((None, Some(1_120))), None];
const TAGS: [&str; 4] = ["t0", "t1", "import:x", "import:y"];
const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
const AGENTS: [Option<&str>; 2] = [None, Some("agent")];
const NAMESPACES: [&str; 2] = ["one", "two"];
const VECTORS: [[f32; 4]; 5] = [
    [1.0, 0.0, 0.0, 0.0],
    [0.0, 1.0, 0.0, 0.0],
    [0.6, 0.8, 0.0, 0.0],
    [0.5, 0.5, 0.5, 0.5],
    [0.0, -0.28, 0.96, 0.0],
];
const MODES: [SupersedeMode; 4] =
    [SupersedeMode::Replaced, SupersedeMode::Duplicate, SupersedeMode::Correction, SupersedeMode::Aggregate];

/// A write by places in the pools.
#[derive(Clone, Debug)]
struct Pick {
    key: Option<usize>,
    agent: usize,
    text: usize,
    vector: bool,
    tags: Option<Vec<usize>>,
    expires_in: Option<i64>,
}

/// A row by its place among all that there are, or a key.
#[derive(Clone, Debug)]
enum Name {
    Row(Index),
    Key(usize),
}

#[derive(Clone, Debug)]
enum Op {
    Add(Pick),
    Update {
        name: Name,
        text: Option<usize>,
        vector: Option<usize>,
        tags: Option<Vec<usize>>,
        expires_in: Option<i64>,
    },
    Pin(Index, bool),
    /// The second in place of the first, so many milliseconds ahead.
    Supersede(Index, Index, usize, i64),
    /// A text in the place of what a key says, so many milliseconds ahead.
    Replace(usize, usize, i64),
    Reinforce(Index, u32),
    Restore(Index),
    ForgetKey(usize),
    ForgetId(Index),
    ForgetTag(usize),
    Advance(i64),
    Drop,
    Compact,
    Reopen,
    /// One pass, of at most so many rows.
    Maintain(Pass, Option<u64>),
    Reindex,
    Import(Vec<Pick>),
    Undo(Index),
}

fn picks() -> impl Strategy<Value = Pick> {
    let tags = proptest::option::of(proptest::collection::vec(0..TAGS.len(), 0..3));
    let expires = proptest::option::weighted(0.3, 1..200_i64);
    let key = proptest::option::weighted(0.6, 0..KEYS.len());
    (key, 0..AGENTS.len(), 0..TEXTS.len(), any::<bool>(), tags, expires).prop_map(
        |(key, agent, text, vector, tags, expires_in)| Pick { key, agent, text, vector, tags, expires_in },
    )
}

/// Operations, and those of maintenance so many times in twenty.
fn ops(upkeep: u32) -> impl Strategy<Value = Op> {
    let pass = prop_oneof![Just(Pass::Index), Just(Pass::Repair), Just(Pass::Expire)];
    let rows = proptest::option::of(1..4_u64);
    prop_oneof![
        20 => calls(),
        upkeep => (pass, rows).prop_map(|(pass, rows)| Op::Maintain(pass, rows)),
        upkeep.div_ceil(10) => Just(Op::Reindex),
    ]
}

fn calls() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    let name = || prop_oneof![index().prop_map(Name::Row), (0..KEYS.len()).prop_map(Name::Key)];
    let of = proptest::option::of::<std::ops::Range<usize>>;
    let tags = proptest::option::of(proptest::collection::vec(0..TAGS.len(), 0..3));
    let update = (name(), of(0..TEXTS.len()), of(0..VECTORS.len()), tags, proptest::option::of(1..200_i64));
    prop_oneof![
        10 => picks().prop_map(Op::Add),
        4 => update.prop_map(|(name, text, vector, tags, expires_in)| Op::Update { name, text, vector, tags, expires_in }),
        1 => (index(), any::<bool>()).prop_map(|(row, pinned)| Op::Pin(row, pinned)),
        4 => (index(), index(), 0..MODES.len(), prop_oneof![Just(0), 1..150_i64])
            .prop_map(|(old, new, mode, ahead)| Op::Supersede(old, new, mode, ahead)),
        3 => (0..KEYS.len(), 0..TEXTS.len(), 1..150_i64)
            .prop_map(|(key, text, ahead)| Op::Replace(key, text, ahead)),
        1 => (index(), 1..5_u32).prop_map(|(row, by)| Op::Reinforce(row, by)),
        2 => index().prop_map(Op::Restore),
        2 => (0..KEYS.len()).prop_map(Op::ForgetKey),
        2 => index().prop_map(Op::ForgetId),
        1 => (0..TAGS.len()).prop_map(Op::ForgetTag),
        2 => (1..100_i64).prop_map(Op::Advance),
        1 => Just(Op::Drop),
        1 => Just(Op::Compact),
        1 => Just(Op::Reopen),
        2 => proptest::collection::vec(picks(), 1..4).prop_map(Op::Import),
        2 => index().prop_map(Op::Undo),
    ]
}

struct Machine {
    world: World,
    models: BTreeMap<NamespaceName, Model>,
    runs: Vec<(NamespaceName, RunId)>,
}

impl Machine {
    fn new(options: fn(Builder) -> Builder) -> Self {
        let models = NAMESPACES.map(|name| (name.parse().unwrap(), Model::default()));
        Machine { world: World::at_with(1_000, options), models: models.into(), runs: Vec::new() }
    }

    fn now(&self) -> Time {
        self.world.now()
    }

    fn model(&mut self, ns: &NamespaceName) -> &mut Model {
        self.models.get_mut(ns).unwrap()
    }

    fn row(&self, ns: &NamespaceName, at: &Index) -> Option<MemoryId> {
        let rows = &self.models[ns].rows;
        (!rows.is_empty()).then(|| *rows.keys().nth(at.index(rows.len())).unwrap())
    }

    #[expect(clippy::too_many_lines, reason = "one arm an operation")]
    fn step(&mut self, ns: &NamespaceName, op: &Op) {
        let now = self.now();
        match op {
            Op::Add(pick) => self.write(ns, std::slice::from_ref(pick), None),
            Op::Import(picks) => {
                let run = self.world.db.namespace(ns).unwrap().start_import().unwrap();
                self.runs.push((ns.clone(), run));
                self.write(ns, picks, Some(run));
            }
            Op::Undo(at) if !self.runs.is_empty() => {
                let (ns, run) = self.runs[at.index(self.runs.len())].clone();
                // Its namespace may be gone since, and the run with it.
                if let Ok(undone) = self.world.db.namespace(&ns).unwrap().undo(run) {
                    let gone = self.model(&ns).take(|hold| hold.run == Some(run), now);
                    assert_eq!(undone.removed, gone.len() as u64);
                } else {
                    self.runs.retain(|(_, other)| *other != run);
                }
            }
            Op::Undo(_) => {}
            Op::Update { name, text, vector, tags, expires_in } => {
                let edit = Edit {
                    text: text.map(|at| TEXTS[at].to_owned()),
                    vector: vector.map(|at| VECTORS[at]),
                    tags: tags.as_ref().map(|tags| tagged(tags)),
                    expiry: expires_in.map(|ms| now.plus(oubliette::Span::from_millis(ms))),
                    ..Edit::default()
                };
                self.update(ns, name, edit);
            }
            Op::Pin(at, pinned) => {
                let Some(id) = self.row(ns, at) else { return };
                let outcome = self.world.db.namespace(ns).unwrap().pin(id.to_string(), *pinned);
                let row = &self.model(ns).rows[&id];
                let is_over = row.superseded.is_some() && self.model(ns).ahead(id, now).is_none();
                assert_eq!(outcome.is_ok(), !is_over, "{outcome:?}");
                if outcome.is_ok() {
                    // What is to follow gets nothing of that.
                    self.model(ns).edit(id, None, Edit::default(), id, now);
                    self.model(ns).pin(id, *pinned);
                }
            }
            Op::Reinforce(at, by) => {
                let Some(id) = self.row(ns, at) else { return };
                self.model(ns).rows.get_mut(&id).unwrap().reinforcement += by;
                self.world.db.namespace(ns).unwrap().reinforce(id.to_string(), *by).unwrap();
            }
            Op::Supersede(old, new, mode, ahead) => {
                let (Some(old), Some(new)) = (self.row(ns, old), self.row(ns, new)) else { return };
                self.supersede(ns, [old, new], MODES[*mode], *ahead);
            }
            Op::Replace(key, text, ahead) => self.replace(ns, KEYS[*key], TEXTS[*text], *ahead),
            Op::Restore(at) => {
                let Some(id) = self.row(ns, at) else { return };
                let told = self.model(ns).restore(id, now, To::Live);
                match (self.world.db.namespace(ns).unwrap().restore(id.to_string()), told) {
                    (Ok(report), Ok(taken)) => assert_eq!(BTreeSet::from_iter(report.keys_taken), taken),
                    (Err(why), Err(_)) => assert_eq!(why.kind(), ErrorKind::Conflict),
                    (done, told) => panic!("{done:?} against {told:?}"),
                }
            }
            Op::ForgetKey(key) => {
                let gone = self.model(ns).forget_key(KEYS[*key]);
                self.forgot(ns, Forget::names([KEYS[*key]]), &gone);
            }
            Op::ForgetId(at) => {
                let Some(id) = self.row(ns, at) else { return };
                let gone = self.model(ns).forget_id(id);
                self.forgot(ns, Forget::names([id.to_string()]), &gone);
            }
            Op::ForgetTag(tag) => {
                let gone = self.model(ns).forget_tag(TAGS[*tag], now);
                self.forgot(ns, Forget::tag(TAGS[*tag]), &gone);
            }
            Op::Advance(ms) => self.world.clock.advance(oubliette::Span::from_millis(*ms)),
            Op::Drop => {
                let rows = std::mem::take(self.model(ns)).rows.len() as u64;
                match self.world.db.drop_namespace(ns) {
                    Ok(dropped) => assert_eq!(dropped, rows),
                    Err(why) => assert_eq!((why.kind(), rows), (ErrorKind::NotFound, 0)),
                }
            }
            Op::Compact => {
                let ended = self.models.values_mut().map(|model| model.erase_ended(now)).sum::<u64>();
                assert_eq!(self.world.db.compact().unwrap().expired, ended);
            }
            Op::Reopen => self.world.reopen(),
            Op::Maintain(pass, max_rows) => {
                let options = MaintainOptions { max_rows: *max_rows, ..MaintainOptions::live() };
                let report = self.world.db.maintain_with(&options.passes([*pass])).unwrap();
                let done = report.passes.iter().all(|pass| pass.skipped == 0 && pass.left == 0);
                assert!(done || max_rows.is_some(), "{report:?}");
                let names: Vec<NamespaceName> = self.models.keys().cloned().collect();
                let gone = names.iter().map(|name| self.forget_ended(name, false)).sum::<u64>();
                assert_eq!(gone, if *pass == Pass::Expire { report.passes[0].tombstoned } else { 0 });
                assert!(
                    !done || *pass != Pass::Expire || names.iter().all(|name| self.ended(name).is_empty())
                );
            }
            Op::Reindex => {
                let rows = self.world.db.namespace(ns).unwrap().reindex().unwrap();
                let vectors = self.models[ns].rows.values().filter(|row| row.vector.is_some()).count();
                assert_eq!(rows, vectors as u64);
            }
        }
    }

    /// The memories of a namespace whose life is over and which nothing protects.
    fn ended(&self, ns: &NamespaceName) -> Vec<MemoryId> {
        self.models[ns].ended(self.now())
    }

    /// Takes what a write, or a pass, has forgotten by itself out of the model: only memories whose life is over, and
    /// at least eight of them where there were so many.
    fn forget_ended(&mut self, ns: &NamespaceName, wrote: bool) -> u64 {
        let ended = self.ended(ns);
        let gone = |id: &MemoryId| {
            let got = self.world.db.namespace(ns).unwrap().look_up(id.to_string(), false);
            matches!(got, Ok(Got::Tombstone(stone)) if stone.reason == TombstoneReason::Expired)
        };
        let gone: Vec<MemoryId> = ended.iter().filter(|id| gone(id)).copied().collect();
        assert!(!wrote || gone.len() >= ended.len().min(8), "{ended:?} of which went {gone:?}");
        gone.iter().for_each(|id| self.model(ns).erase(*id));
        gone.len() as u64
    }

    fn forgot(&self, ns: &NamespaceName, what: Forget, gone: &BTreeSet<MemoryId>) {
        let Forgotten { tombstones, .. } = self.world.db.namespace(ns).unwrap().forget(what).unwrap();
        assert_eq!(&BTreeSet::from_iter(tombstones), gone);
    }

    /// One transaction of writes.
    fn write(&mut self, ns: &NamespaceName, picks: &[Pick], run: Option<RunId>) {
        let now = self.now();
        let writes: Vec<Write> = picks.iter().map(|pick| pick.write(now, run)).collect();
        // A change of a text that is to come makes a memory of which the answer does not tell, where others have the text.
        let mut keys = writes.iter().filter_map(|write| write.key.as_deref());
        if keys.any(|key| self.models[ns].announces_with_others(key)) {
            return;
        }
        let drafts = writes.iter().map(draft).collect();
        let before = self.model(ns).clone();
        match self
            .world
            .db
            .namespace(ns)
            .unwrap()
            .add_all(drafts, &WriteOptions { run, ..WriteOptions::default() })
        {
            Ok(outcomes) => {
                for (write, outcome) in writes.iter().zip(outcomes) {
                    let expected = told_by(&outcome);
                    let apart = match expected {
                        Told::Revised(old) => Some(old),
                        _ => None,
                    };
                    let told = self.model(ns).write(&Write { apart, ..write.clone() }, outcome.id, now);
                    assert_eq!(told, expected, "{write:?}");
                }
                self.forget_ended(ns, true);
            }
            Err(why) => {
                let expected = match why.kind() {
                    ErrorKind::KeyInOtherPartition => Told::KeyInOtherPartition,
                    ErrorKind::Invalid => Told::Invalid,
                    _ => panic!("{why}"),
                };
                let mut made = (1..).map(|at: u8| MemoryId::from_bytes([at; 16]));
                let mut told = writes.iter().map(|write| {
                    let write = Write { apart: made.next(), ..write.clone() };
                    self.model(ns).write(&write, made.next().unwrap(), now)
                });
                assert!(told.any(|told| told == expected), "{why}");
                *self.model(ns) = before;
            }
        }
    }

    fn update(&mut self, ns: &NamespaceName, name: &Name, edit: Edit) {
        let now = self.now();
        let (id, through, shown) = match name {
            Name::Row(at) => match self.row(ns, at) {
                Some(id) => (id, None, id.to_string()),
                None => return,
            },
            Name::Key(key) if self.model(ns).announces_with_others(KEYS[*key]) => return,
            Name::Key(key) => match self.model(ns).meant_by(KEYS[*key], now) {
                Some((id, at)) => (id, Some(at), KEYS[*key].to_owned()),
                None => return,
            },
        };
        let text = edit.text.clone().filter(|text| *text != self.models[ns].rows[&id].text);
        let patch = Patch {
            text: edit.text.clone(),
            vector: edit.vector.map(|vector| vector.to_vec()),
            tags: edit.tags.as_ref().map(|tags| tags.iter().cloned().collect()),
            expiry: edit.expiry.map(Expiry::At),
            ..Patch::default()
        };
        let done: Result<Outcome> = self.world.db.namespace(ns).unwrap().update(&shown, patch);
        let new = done.as_ref().map_or(MemoryId::from_bytes([0; 16]), |outcome| outcome.id);
        let says = edit.text.is_some() && text.is_none();
        let told = self.model(ns).edit(id, through, Edit { text, says, ..edit }, new, now);
        match done {
            Ok(outcome) => assert_eq!(told, told_by(&outcome)),
            Err(why) => assert_eq!(Some(why.kind()), refused(&told)),
        }
    }

    /// The second in place of the first, so many milliseconds ahead.
    fn supersede(&mut self, ns: &NamespaceName, [old, new]: [MemoryId; 2], mode: SupersedeMode, ahead: i64) {
        let now = self.now();
        let at = now.plus(oubliette::Span::from_millis(ahead));
        let told = self.model(ns).supersede_beyond(old, new, mode, [now, at]);
        let namespace = self.world.db.namespace(ns).unwrap();
        let done = namespace.supersede_all(&[old.to_string()], new.to_string(), mode, Some(at));
        assert_eq!(done.map_err(|why| why.kind()).err(), refused(&told));
    }

    /// A text takes the place of what a key says, at an instant ahead. Where others have the same text as the key, the key's
    /// write would get a memory of its own first, of which the answer does not tell.
    fn replace(&mut self, ns: &NamespaceName, key: &str, text: &str, ahead: i64) {
        let now = self.now();
        let Some((held, at)) = self.model(ns).meant_by(key, now) else { return };
        if self.models[ns].has_others(held, at) {
            return;
        }
        let (write, at) = (
            Write { key: Some(key.to_owned()), text: text.to_owned(), ..Write::default() },
            now.plus(oubliette::Span::from_millis(ahead)),
        );
        let done =
            self.world.db.namespace(ns).unwrap().replace([key], text, SupersedeMode::Replaced, Some(at));
        let new = done.as_ref().map_or(MemoryId::from_bytes([0; 16]), |outcome| outcome.id);
        let told = self.model(ns).replace_key(&write, new, [now, at]);
        match done {
            Ok(outcome) => {
                assert_eq!((told, outcome.key.as_deref()), (told_by(&outcome), Some(key)));
                self.forget_ended(ns, true);
            }
            Err(why) => assert_eq!((why.kind(), told), (ErrorKind::Conflict, Told::Conflict)),
        }
    }

    /// Everything that can be read, compared.
    fn compare(&self) {
        self.world.check();
        for (ns, model) in &self.models {
            self.compare_keys(ns, model);
            self.compare_lists(ns, model);
            for query in [VECTORS[0], VECTORS[2], [0.1, 0.2, -0.3, 0.4]] {
                self.compare_search(ns, model, query);
            }
            self.compare_counts(ns, model);
        }
    }

    fn compare_keys(&self, ns: &NamespaceName, model: &Model) {
        for key in KEYS {
            let got = self.world.db.namespace(ns).unwrap().look_up(key, false);
            let seen = |row: &reference::Row| row.visible(self.now()) && row.keys().contains(key);
            let current = model.holder_of(key, self.now()).filter(|(id, _)| seen(&model.rows[id]));
            if current.is_none() && model.rows.values().any(seen) {
                // Until another memory takes its place, what is true answers.
                let Ok(Got::Memory(memory)) = got else { panic!("{key}: {got:?}") };
                assert!(seen(&model.rows[&memory.id]), "{key}: {memory:?}");
            } else if let Some((id, _)) = model.meant_by(key, self.now()) {
                let Ok(Got::Memory(memory)) = got else { panic!("{key}: {got:?}") };
                assert_eq!((memory.id, &memory.text), (id, &model.rows[&id].text));
            } else if model.rows.values().any(|row| row.keys().contains(key)) {
                match got.unwrap() {
                    Got::Memory(memory) => assert!(model.rows[&memory.id].keys().contains(key)),
                    // It led to a memory that was forgotten.
                    Got::Tombstone(stone) => {
                        let led = |row: &reference::Row| row.superseded.is_some_and(|(by, _)| by == stone.id);
                        assert!(model.rows.values().any(|row| led(row) && row.keys().contains(key)));
                        assert!(
                            model.forgotten.contains(&stone.id) && !model.stones[&stone.id].contains(key)
                        );
                    }
                }
            } else if model.stones.values().any(|keys| keys.contains(key)) {
                let Ok(Got::Tombstone(stone)) = got else { panic!("{key}: {got:?}") };
                assert!(model.stones[&stone.id].contains(key));
            } else {
                assert_eq!(got.unwrap_err().kind(), ErrorKind::NotFound);
            }
        }
        for id in model.stones.keys() {
            assert!(matches!(
                self.world.db.namespace(ns).unwrap().look_up(id.to_string(), false),
                Ok(Got::Tombstone(_))
            ));
        }
    }

    fn compare_lists(&self, ns: &NamespaceName, model: &Model) {
        for agent in AGENTS {
            let scope = agent.map_or(Scope::Shared, |name| Scope::agent(name).unwrap());
            let request = PageRequest { scope, limit: 10_000, ..PageRequest::default() };
            let items = self.world.db.namespace(ns).unwrap().list(&request).unwrap().items;
            let listed: BTreeSet<_> = items.iter().map(|memory| memory.id).collect();
            let mine = model.rows.iter().filter(|(_, row)| row.agent.as_deref() == agent);
            let visible: BTreeSet<_> =
                mine.filter(|(_, row)| row.visible(self.now())).map(|(id, _)| *id).collect();
            assert_eq!(listed, visible);
            for memory in items {
                let row = &model.rows[&memory.id];
                assert_eq!(memory.partition, Partition::of(agent).unwrap());
                assert_eq!((&memory.text, memory.reinforcement_count), (&row.text, row.reinforcement));
                assert_eq!(BTreeSet::from_iter(memory.tags), row.tags());
                assert_eq!(BTreeSet::from_iter(memory.keys), row.keys());
                // The tag and the flag are one (MODEL-9).
                let pinned = row.tags().contains("pinned");
                assert_eq!((memory.holders.len(), memory.pinned), (row.holders.len(), pinned));
                assert_eq!(
                    (memory.expires_at, memory.valid_from, memory.valid_to),
                    (row.expires, row.valid_from, row.valid_to)
                );
            }
        }
    }

    fn compare_search(&self, ns: &NamespaceName, model: &Model, query: [f32; 4]) {
        let unit = |v: [f32; 4]| {
            let length = v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
            v.map(|x| f64::from(x) / length)
        };
        let cosine = |v| unit(query).iter().zip(unit(v)).map(|(a, b)| a * b).sum::<f64>();
        for (scope, agents) in [(Scope::Shared, &AGENTS[..1]), (Scope::Any, &AGENTS[..])] {
            let mut scores: Vec<(f64, MemoryId)> = model
                .rows
                .iter()
                .filter(|(_, row)| row.visible(self.now()) && agents.contains(&row.agent.as_deref()))
                .filter_map(|(id, row)| row.vector.map(|vector| (cosine(vector), *id)))
                .collect();
            scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let hits = self
                .world
                .db
                .namespace(ns)
                .unwrap()
                .search(Query::vector(query).k(5).scope(scope))
                .unwrap()
                .hits;
            assert_eq!(hits.len(), scores.len().min(5), "{scores:?}");
            for (at, (hit, (score, _))) in hits.iter().zip(&scores).enumerate() {
                // Scores are sums of f32 there and of f64 here, so near ties may stand the other way round; equal
                // vectors may not.
                assert!((f64::from(hit.score) - score).abs() < 1e-5, "{hits:?} against {scores:?}");
                let mine = scores.iter().find(|(_, id)| *id == hit.id);
                assert!(
                    mine.is_some_and(|(mine, _)| (mine - score).abs() < 1e-5),
                    "{hits:?} against {scores:?}"
                );
                let ascending =
                    hits.get(at + 1).is_none_or(|next| (-hit.score, hit.id) < (-next.score, next.id));
                assert!(ascending, "{hits:?}");
            }
        }
    }

    fn compare_counts(&self, ns: &NamespaceName, model: &Model) {
        let now = self.now();
        let stats = self.world.db.namespace(ns).unwrap().stats().unwrap();
        let count = |wanted: &dyn Fn(&reference::Row) -> bool| {
            model.rows.values().filter(|row| wanted(row)).count() as u64
        };
        assert_eq!(stats.memories.live, count(&|row| row.visible(now)));
        assert_eq!(stats.memories.superseded, count(&|row| row.superseded.is_some() && row.over(now)));
        assert_eq!(stats.memories.ahead, count(&|row| row.ahead(now)));
        let ended =
            |row: &reference::Row| row.superseded.is_none() && row.expires.is_some_and(|end| end <= now);
        assert_eq!(stats.memories.expired, count(&ended));
        assert_eq!(stats.memories.tombstoned, model.stones.len() as u64);
        assert_eq!(stats.holders, model.rows.values().map(|row| row.holders.len() as u64).sum::<u64>());
        assert_eq!(stats.pending_due, 0);
        let mut groups = BTreeMap::<_, u64>::new();
        for row in model.rows.values().filter(|row| row.current(now)) {
            *groups.entry((&row.agent, row.text.to_lowercase())).or_default() += 1;
        }
        assert_eq!(stats.health.duplicates_detected, groups.values().map(|rows| rows - 1).sum::<u64>());
        let small = self.world.db.namespace(ns).unwrap().memory_stats().unwrap();
        let mut tags = BTreeMap::<String, u64>::new();
        for row in model.rows.values().filter(|row| row.agent.is_none() && row.visible(now)) {
            row.tags().into_iter().for_each(|tag| *tags.entry(tag).or_default() += 1);
        }
        assert_eq!(small.local.by_tag, tags);
        assert_eq!(small.local.total, count(&|row| row.agent.is_none() && row.visible(now)));
    }
}

impl Pick {
    fn write(&self, now: Time, run: Option<RunId>) -> Write {
        Write {
            key: self.key.map(|at| KEYS[at].to_owned()),
            agent: AGENTS[self.agent].map(str::to_owned),
            text: TEXTS[self.text].to_owned(),
            // A vector belongs to its text, so that two equal texts never bring two vectors.
            vector: VECTORS
                .get(self.text)
                .copied()
                .filter(|_| self.text.is_multiple_of(2) || self.vector && self.key.is_some()),
            tags: self.tags.as_ref().map(|tags| tagged(tags)),
            expiry: self.expires_in.map(|ms| now.plus(oubliette::Span::from_millis(ms))),
            valid: VALID[self.text].map_or((None, None), |(from, to)| (from.map(ms), to.map(ms))),
            run,
            apart: None,
        }
    }
}

fn tagged(tags: &[usize]) -> BTreeSet<String> {
    tags.iter().map(|at| TAGS[*at].to_owned()).collect()
}

fn draft(write: &Write) -> Draft {
    Draft {
        key: write.key.clone(),
        agent: write.agent.clone(),
        text: write.text.clone(),
        vector: write.vector.map(|vector| vector.to_vec()),
        tags: write.tags.as_ref().map(|tags| tags.iter().cloned().collect()),
        expiry: write.expiry.map(Expiry::At),
        fields: Fields {
            valid_from: write.valid.0.into(),
            valid_to: write.valid.1.into(),
            ..Fields::default()
        },
        ..Draft::default()
    }
}

fn refused(told: &Told) -> Option<ErrorKind> {
    match told {
        Told::Conflict => Some(ErrorKind::Conflict),
        Told::Invalid => Some(ErrorKind::Invalid),
        _ => None,
    }
}

fn told_by(outcome: &Outcome) -> Told {
    match outcome.decision.clone() {
        Decision::Stored => Told::Stored,
        Decision::Unchanged => Told::Unchanged(outcome.id),
        Decision::Updated => Told::Updated(outcome.id),
        Decision::Reinforced => Told::Reinforced(outcome.id),
        Decision::Revised { old } => Told::Revised(old),
        other => panic!("{other:?}"),
    }
}

/// A partition of three rows has a graph, and of two keeps it.
fn graphs(builder: Builder) -> Builder {
    let scanned = 2 * (4 + 64);
    let text = format!("[index]\nscan_max = {scanned}\ntail_min = 1\ntail_share = 0.0");
    builder.policy(Policy::parse(&text, Syntax::Toml).unwrap())
}

fn run(options: fn(Builder) -> Builder, ops: &[(usize, Op)]) {
    let mut machine = Machine::new(options);
    for (ns, op) in ops {
        let ns: NamespaceName = NAMESPACES[*ns].parse().unwrap();
        machine.step(&ns, op);
        for name in NAMESPACES {
            machine.forget_ended(&name.parse().unwrap(), false);
        }
        machine.compare();
    }
}

proptest! {
    #![proptest_config(random(64, 2_000))]

    #[test]
    fn the_database_says_what_the_reference_says(
        ops in proptest::collection::vec((prop_oneof![4 => Just(0_usize), 1 => Just(1)], ops(0)), 1..=30)
    ) {
        run(|builder| builder, &ops);
    }

    #[test]
    fn with_graphs_the_database_says_what_the_reference_says(
        ops in proptest::collection::vec((prop_oneof![4 => Just(0_usize), 1 => Just(1)], ops(5)), 1..=40)
    ) {
        run(graphs, &ops);
    }
}

/// LIFE-6: what an announced text overtakes before it begins is never true. A memory whose place it has taken is led on to that text all
/// the same.
#[test]
fn life_6_what_is_overtaken_before_it_begins_leads_on() {
    for mode in MODES {
        let mut machine = Machine::new(|builder| builder);
        let ns: NamespaceName = NAMESPACES[0].parse().unwrap();
        let pick = |key, text| Pick { key, agent: 0, text, vector: false, tags: None, expires_in: None };
        machine.step(&ns, &Op::Add(pick(None, 0)));
        machine.step(&ns, &Op::Add(pick(Some(1), 3)));
        machine.step(&ns, &Op::Replace(1, 0, 1));
        let rows: Vec<MemoryId> = machine.models[&ns].rows.keys().copied().collect();
        machine.supersede(&ns, [rows[0], rows[1]], mode, 0);
        machine.compare();
        for ms in [1, 100] {
            machine.step(&ns, &Op::Advance(ms));
            machine.compare();
        }
    }
}

/// LIFE-6: where what a key said is gone before the text begins that it has announced, what is written through the key is true at once,
/// also where another text is to follow the one that was announced.
#[test]
fn life_6_a_text_is_true_at_once_before_the_first_of_two_that_are_announced() {
    let mut machine = Machine::new(|builder| builder);
    let ns: NamespaceName = NAMESPACES[0].parse().unwrap();
    let pick = |key, agent, text| Pick { key, agent, text, vector: false, tags: None, expires_in: None };
    machine.step(&ns, &Op::Add(pick(Some(1), 1, 3)));
    machine.step(&ns, &Op::Add(pick(None, 0, 0)));
    for ms in [81, 1] {
        machine.step(&ns, &Op::Replace(1, 0, ms));
        machine.compare();
    }
    machine.step(&ns, &Op::Add(pick(Some(1), 1, 1)));
    machine.compare();
    for ms in [1, 78, 2] {
        machine.step(&ns, &Op::Advance(ms));
        machine.compare();
    }
}
