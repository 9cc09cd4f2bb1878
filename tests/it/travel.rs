//! Random stores and their copies (V-275): whatever the public interface can make of a store, an export of all states
//! brings it into an empty one, which exports the same bytes; `check` finds nothing in either; and every pass of
//! maintenance, and every undo, does the same to both.
//!
//! `PROPTEST_CASES=5000 cargo test --test it travel::` for longer. What it finds is kept as a test of its own in `backup.rs`.

use std::io::Cursor;

use crate::world::{World, random};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{MaintainOptions, Pass, PassDetails, RenamespaceOptions, RunId};
use oubliette::memory::Expiry;
use oubliette::memory::{AuthorKind, Entity, Field, Link, SupersedeMode};
use oubliette::{Draft, Forget, Kind, MemoryId, Patch, Scope, Span, WriteOptions};
use proptest::prelude::*;
use proptest::sample::Index;

const TEXTS: [&str; 10] = [
    "tea",
    "Tea",
    "the build is green",
    "coffee, no sugar",
    "Ann lives in Bonn",
    "x",
    "Gateway status: 4 apps pending",
    "Gateway status: 7 apps pending",
    "Gateway status: 9 apps pending since 2026-01-01",
    "disk full on host 4",
];
const TAGS: [&str; 3] = ["t0", "t1", "t2"];
const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
const AGENTS: [Option<&str>; 3] = [None, Some("zoe"), Some("adam")];
const VECTORS: [[f32; 4]; 5] = [
    [1.0, 0.0, 0.0, 0.0],
    [1.0, 0.02, 0.0, 0.0],
    [0.6, 0.8, 0.0, 0.0],
    [0.5, 0.5, 0.5, 0.5],
    [0.0, -0.28, 0.96, 0.0],
];
const MODES: [SupersedeMode; 4] =
    [SupersedeMode::Replaced, SupersedeMode::Duplicate, SupersedeMode::Correction, SupersedeMode::Aggregate];
/// Passes that change memories.
const PASSES: [Pass; 6] = [
    Pass::Snapshots,
    Pass::Collapse,
    Pass::NearDuplicates,
    Pass::VectorDuplicates,
    Pass::Supersession,
    Pass::Limbo,
];

/// What a write is of.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Plain,
    Profile,
    Bot,
    Human,
    Snapshot,
}

/// A write by places in the pools.
#[derive(Clone, Debug)]
struct Pick {
    sort: Sort,
    key: Option<usize>,
    agent: usize,
    text: usize,
    vector: Option<usize>,
    tags: Option<Vec<usize>>,
    expires_in: Option<i64>,
    valid_in: Option<i64>,
    joined: Option<Index>,
}

#[derive(Clone, Debug)]
enum Op {
    Add(Pick),
    Apart(Pick),
    Import(Vec<Pick>),
    Rewrite { row: Index, text: Option<usize>, tags: Option<Vec<usize>>, link: Option<Index> },
    RewriteKey { key: usize, text: Option<usize>, tags: Option<Vec<usize>> },
    Pin(Index, bool),
    Supersede(Index, Index, usize, i64),
    Reinforce(Index),
    Restore(Index),
    ForgetId(Index),
    ForgetKey(usize),
    ForgetTag(usize),
    Undo(Index),
    Maintain(usize),
    Advance(i64),
    Compact,
}

fn picks() -> impl Strategy<Value = Pick> {
    let sort = prop_oneof![
        4 => Just(Sort::Plain),
        3 => Just(Sort::Profile),
        2 => Just(Sort::Bot),
        2 => Just(Sort::Human),
        2 => Just(Sort::Snapshot),
    ];
    let tags = proptest::option::of(proptest::collection::vec(0..TAGS.len(), 0..3));
    let places = (
        proptest::option::weighted(0.5, 0..KEYS.len()),
        0..AGENTS.len(),
        0..TEXTS.len(),
        proptest::option::of(0..VECTORS.len()),
    );
    let times = (
        proptest::option::weighted(0.2, 1..9_000_000_i64),
        proptest::option::weighted(0.2, -9_000_000..9_000_000_i64),
    );
    (sort, places, tags, times, proptest::option::weighted(0.3, any::<Index>())).prop_map(
        |(sort, (key, agent, text, vector), tags, (expires_in, valid_in), joined)| Pick {
            sort,
            key,
            agent,
            text,
            vector,
            tags,
            expires_in,
            valid_in,
            joined,
        },
    )
}

fn ops() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    let text = || proptest::option::of(0..TEXTS.len());
    let tags = || proptest::option::of(proptest::collection::vec(0..TAGS.len(), 0..3));
    prop_oneof![
        12 => picks().prop_map(Op::Add),
        3 => picks().prop_map(Op::Apart),
        3 => proptest::collection::vec(picks(), 1..4).prop_map(Op::Import),
        3 => (index(), text(), tags(), proptest::option::of(index()))
            .prop_map(|(row, text, tags, link)| Op::Rewrite { row, text, tags, link }),
        3 => (0..KEYS.len(), text(), tags()).prop_map(|(key, text, tags)| Op::RewriteKey { key, text, tags }),
        1 => (index(), any::<bool>()).prop_map(|(row, pinned)| Op::Pin(row, pinned)),
        3 => (index(), index(), 0..MODES.len(), prop_oneof![Just(0), -9_000_000..9_000_000_i64])
            .prop_map(|(old, new, mode, ahead)| Op::Supersede(old, new, mode, ahead)),
        1 => index().prop_map(Op::Reinforce),
        2 => index().prop_map(Op::Restore),
        2 => index().prop_map(Op::ForgetId),
        1 => (0..KEYS.len()).prop_map(Op::ForgetKey),
        1 => (0..TAGS.len()).prop_map(Op::ForgetTag),
        2 => index().prop_map(Op::Undo),
        6 => (0..PASSES.len()).prop_map(Op::Maintain),
        3 => prop_oneof![1..4_000_000_i64, Just(700_000_000_i64)].prop_map(Op::Advance),
        1 => Just(Op::Compact),
    ]
}

fn tagged(tags: &[usize]) -> Vec<String> {
    tags.iter().map(|tag| TAGS[*tag].to_owned()).collect()
}

/// A store, with what was ever written to it.
struct Machine {
    world: World,
    ids: Vec<MemoryId>,
    runs: Vec<RunId>,
}

impl Machine {
    fn id(&self, at: &Index) -> Option<MemoryId> {
        (!self.ids.is_empty()).then(|| self.ids[at.index(self.ids.len())])
    }

    fn draft(&self, pick: &Pick) -> Draft {
        let (world, ahead) = (&self.world, |ms: i64| self.world.now().plus(Span::from_millis(ms)));
        let mut draft = Draft::new(TEXTS[pick.text]);
        draft.key = pick.key.map(|key| KEYS[key].to_owned());
        draft.agent = AGENTS[pick.agent].map(str::to_owned);
        draft.vector = pick.vector.map(|at| VECTORS[at].to_vec());
        draft.tags = pick.tags.as_deref().map(tagged);
        draft.expiry = pick.expires_in.map(|ms| Expiry::At(ahead(ms)));
        let fields = &mut draft.fields;
        fields.valid_from = Field::from(pick.valid_in.map(ahead));
        match pick.sort {
            Sort::Plain => {}
            Sort::Profile => fields.kind = Some(Kind::Profile),
            Sort::Snapshot => fields.kind = Some(Kind::Snapshot),
            Sort::Bot | Sort::Human => {
                let bot = matches!(pick.sort, Sort::Bot);
                fields.kind = Some(Kind::Message);
                fields.channel = Field::Value("ops".to_owned());
                fields.thread = Field::Value("night".to_owned());
                fields.author_id = Field::Value(KEYS[pick.text % KEYS.len()].to_owned());
                fields.author_kind = Field::Value(if bot { AuthorKind::Bot } else { AuthorKind::Human });
            }
        }
        if let Some(to) = pick.joined.and_then(|at| self.id(&at)) {
            // What is gone can be no end of a link.
            if world.get(to).is_ok_and(|got| got.into_memory().is_some()) {
                draft.links = Some(vec![Link { to, relation: "about".to_owned() }]);
                draft.sources = Some(vec![to]);
                draft.categories = Some(vec![TAGS[pick.text % TAGS.len()].to_owned()]);
                draft.entities = Some(vec![Entity { name: "Ann".to_owned(), role: "subject".to_owned() }]);
            }
        }
        draft
    }

    fn write(&mut self, picks: &[Pick], how: &WriteOptions) {
        let drafts = picks.iter().map(|pick| self.draft(pick)).collect();
        if let Ok(outcomes) = self.world.ns.add_all(drafts, how) {
            self.ids.extend(outcomes.iter().map(|outcome| outcome.id));
        }
    }

    fn rewrite(&mut self, name: &str, text: Option<usize>, tags: Option<&[usize]>, link: Option<MemoryId>) {
        let patch = Patch {
            text: text.map(|at| TEXTS[at].to_owned()),
            tags: tags.map(tagged),
            links: link.map(|to| vec![Link { to, relation: "with".to_owned() }]),
            ..Patch::default()
        };
        if let Ok(outcome) = self.world.ns.update(name, patch) {
            self.ids.push(outcome.id);
        }
    }

    /// Carries one operation out; one that the state forbids does nothing.
    fn step(&mut self, op: &Op) {
        let (db, ns) = (self.world.db.clone(), self.world.ns.name().clone());
        match op {
            Op::Add(pick) => self.write(std::slice::from_ref(pick), &WriteOptions::default()),
            Op::Apart(pick) => {
                let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
                self.write(std::slice::from_ref(pick), &how);
            }
            Op::Import(picks) => {
                let run = self.world.start_import();
                self.runs.push(run);
                self.write(picks, &WriteOptions { run: Some(run), ..WriteOptions::default() });
            }
            Op::Rewrite { row, text, tags, link } => {
                let link = link.as_ref().and_then(|at| self.id(at));
                if let Some(id) = self.id(row) {
                    self.rewrite(&id.to_string(), *text, tags.as_deref(), link);
                }
            }
            Op::RewriteKey { key, text, tags } => self.rewrite(KEYS[*key], *text, tags.as_deref(), None),
            Op::Pin(at, pinned) => {
                self.id(at).map(|id| db.namespace(&ns).unwrap().pin(id.to_string(), *pinned));
            }
            Op::Supersede(old, new, mode, ahead) => {
                if let (Some(old), Some(new)) = (self.id(old), self.id(new)) {
                    let at = self.world.now().plus(Span::from_millis(*ahead));
                    let _ = self.world.supersede(old, new, MODES[*mode], Some(at.as_millis()));
                }
            }
            Op::Reinforce(at) => {
                self.id(at).map(|id| db.namespace(&ns).unwrap().reinforce(id.to_string(), 2));
            }
            Op::Restore(at) => {
                self.id(at).map(|id| db.namespace(&ns).unwrap().restore(id.to_string()));
            }
            Op::ForgetId(at) => {
                self.id(at).map(|id| db.namespace(&ns).unwrap().forget(Forget::names([id.to_string()])));
            }
            Op::ForgetKey(key) => drop(self.world.forget(&[KEYS[*key]])),
            Op::ForgetTag(tag) => drop(db.namespace(&ns).unwrap().forget(Forget::tag(TAGS[*tag]))),
            Op::Undo(at) => {
                if !self.runs.is_empty() {
                    let run = self.runs[at.index(self.runs.len())];
                    let _ = db.namespace(&ns).unwrap().undo(run);
                }
            }
            Op::Maintain(pass) => {
                let report = db.maintain_with(&MaintainOptions::live().passes([PASSES[*pass]])).unwrap();
                self.runs.extend(report.run);
            }
            Op::Advance(ms) => self.world.clock.advance(Span::from_millis(*ms)),
            Op::Compact => drop(db.compact().unwrap()),
        }
    }
}

fn export(world: &World, all_states: bool) -> String {
    let mut out = Vec::new();
    let export = Export { namespaces: vec![world.ns.name().clone()], all_states };
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    String::from_utf8(out).unwrap()
}

fn assert_same(one: &str, other: &str, what: &str) {
    let differing = one.lines().zip(other.lines()).find(|(a, b)| a != b);
    assert!(
        one == other,
        "{what}: {differing:#?}, {} and {} lines",
        one.lines().count(),
        other.lines().count()
    );
}

fn copy_of(world: &World, lines: &str, batch_rows: usize) -> World {
    let copy = World::new();
    copy.clock.set(world.now());
    // The run of the import is none that the original has.
    copy.align_ids(world);
    let import = Import { batch_rows, ..Import::default() };
    let report = import.run(&copy.db, LineReader::new(lines.as_bytes(), "lines"), &mut ());
    let report = report.unwrap_or_else(|why| panic!("{why}\n{lines}"));
    assert_eq!((report.dangling, report.bad), (0, 0), "{lines}");
    copy.check();
    copy
}

/// Moves all into a namespace that is there, row by row, and gives that the name of the first.
fn through_another_namespace(world: &World) {
    let other = world.db.namespace("other").unwrap();
    // It is there, with nothing in it.
    other.finish_import(other.start_import().unwrap()).unwrap();
    let name = world.ns.name().as_str();
    if !world.db.namespaces().unwrap().contains(world.ns.name()) {
        world.db.drop_namespace("other").unwrap();
        return;
    }
    let how = RenamespaceOptions::default();
    let report = world.db.move_namespace(name, "other", &how).unwrap();
    assert_eq!((report.cross_namespace_edges, report.dropped_keys.len()), (0, 0));
    world.check();
    assert_eq!(world.db.move_namespace("other", name, &how).unwrap().moved, report.moved);
}

/// What is visible, imported into a namespace of another name and taken apart again, is what it was.
fn taken_apart(world: &World, seen: &str) {
    let copy = World::new();
    copy.clock.set(world.now());
    copy.align_ids(world);
    let import = Import { into: Some("mixed".parse().unwrap()), ..Import::default() };
    import.run(&copy.db, LineReader::new(seen.as_bytes(), "lines"), &mut ()).unwrap();
    if copy.db.namespaces().unwrap().is_empty() {
        return;
    }
    let report = copy.db.split_namespace("mixed", &[], &RenamespaceOptions::default()).unwrap();
    assert_eq!((report.skipped, report.cross_namespace_edges), (0, 0));
    copy.check();
    let stamp = "\"import_source_namespace\":\"default\"";
    let there = export(&copy, false).replace(&format!(",{stamp}"), "").replace(stamp, "");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let memories = |text: &str| lines(text).into_iter().filter(|line| line.contains("\"holders\"")).collect();
    let (there, seen): (Vec<String>, Vec<String>) = (memories(&there), memories(seen));
    assert_same(&seen.join("\n"), &there.join("\n"), "taken apart");
}

fn travel(ops: &[Op], batch_rows: usize) {
    let mut machine = Machine { world: World::new(), ids: Vec::new(), runs: Vec::new() };
    for op in ops {
        machine.step(op);
    }
    let Machine { world, runs, .. } = machine;
    world.check();
    let lines = export(&world, true);
    let copy = copy_of(&world, &lines, batch_rows);
    assert_same(&lines, &export(&copy, true), "the copy");
    let seen = export(&world, false);
    let plain = copy_of(&world, &seen, batch_rows);
    assert_same(&seen, &export(&plain, false), "what is visible");
    through_another_namespace(&copy);
    copy.check();
    assert_same(&lines, &export(&copy, true), "there and back");
    taken_apart(&world, &seen);
    let query = |world: &World, vector| world.find_in(vector, 10, Scope::Any);
    VECTORS.iter().for_each(|vector| assert_eq!(query(&world, *vector), query(&copy, *vector)));

    // From here on both do the same.
    copy.align_ids(&world);
    for pass in PASSES {
        let mut done = [&world, &copy].map(|world| {
            // Instants that came are settled in a copy, and wait for the next write in the original.
            world.ns.stats().unwrap();
            let mut report = world.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
            report.passes.iter_mut().for_each(|pass| pass.ms = 0);
            report
        });
        // A namespace of which nothing is left does not travel, and passes tell nothing of it.
        if !copy.db.namespaces().unwrap().iter().any(|ns| ns == world.ns.name()) {
            done[0].passes.iter_mut().for_each(|pass| pass.report = PassDetails::default());
        }
        assert_eq!(done[0], done[1]);
        assert_same(&export(&world, true), &export(&copy, true), pass.as_str());
        copy.align_ids(&world);
    }
    for run in runs.iter().rev() {
        // An undo is a write, and a write forgets what has ended. The copy does not write where it knows no such run.
        for world in [&world, &copy] {
            world.db.maintain_with(&MaintainOptions::live().passes([Pass::Expire])).unwrap();
        }
        copy.align_ids(&world);
        let mut undone = [&world, &copy].map(|world| world.ns.undo(*run).ok());
        // What an import has parted from a text of several writers, and changed in place, are counts of its run, and runs of imports
        // do not travel.
        let of_the_run = ["keys that had only led", "changes of fields in place"];
        for undone in undone.iter_mut().flatten() {
            undone.lost.retain(|what| !of_the_run.iter().any(|counted| what.starts_with(counted)));
        }
        // A run of which nothing is left is none that the copy knows.
        match undone {
            [Some(one), Some(other)] => assert_eq!(one, other),
            [Some(one), None] => assert_eq!((one.restored, one.removed, one.detached), (0, 0, 0), "{one:?}"),
            [None, other] => assert_eq!(other, None),
        }
        assert_same(&export(&world, true), &export(&copy, true), "an undo");
        copy.align_ids(&world);
    }
    world.check();
    copy.check();
}

proptest! {
    #![proptest_config(random(24, 400))]

    /// V-275 over every state, each pass having run.
    #[test]
    fn v275_any_store_travels(ops in proptest::collection::vec(ops(), 1..40), batch_rows in 1..9_usize) {
        travel(&ops, batch_rows);
    }
}
