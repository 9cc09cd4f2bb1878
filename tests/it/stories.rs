//! Every verb in any order, on few keys and few texts, so that they meet: after each of them a deep `check` finds nothing (MODEL-8,
//! MODEL-59, LIFE-6, LIFE-26).
//!
//! `PROPTEST_CASES=5000 cargo test --test it stories::` for longer.

use std::io::Cursor;

use crate::world::{World, axis, random, text};
use oubliette::exchange::{Export, Import, LineReader, VectorsTo};
use oubliette::maintain::{DedupOptions, MaintainOptions, Pass, RenamespaceOptions, RunId};
use oubliette::memory::{Expiry, Field, SupersedeMode};
use oubliette::policy::Syntax;
use oubliette::report::CheckOptions;
use oubliette::{
    Draft, ErrorKind, Filter, Forget, Kind, MemoryId, Namespace, PageRequest, Patch, Result, Scope, Span,
    State, Time, WriteOptions,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const KEYS: [&str; 2] = ["a", "b"];
const TEXTS: [&str; 4] = ["Gateway status: 1 apps pending", "Gateway status: 2 apps pending", "tea", "Tea"];
const TAGS: [&str; 2] = ["t", "u"];
const AGENTS: [Option<&str>; 2] = [None, Some("agent")];
const NAMESPACES: [&str; 2] = ["default", "other"];
const PASSES: [Pass; 10] = [
    Pass::Collapse,
    Pass::NearDuplicates,
    Pass::VectorDuplicates,
    Pass::Expire,
    Pass::Superseded,
    Pass::Limbo,
    Pass::Supersession,
    Pass::Cluster,
    Pass::Repair,
    Pass::Demote,
];
const MODES: [SupersedeMode; 4] =
    [SupersedeMode::Replaced, SupersedeMode::Correction, SupersedeMode::Duplicate, SupersedeMode::Aggregate];

const POLICIES: [&str; 4] = [
    "",
    "write.on_key = \"error\"",
    "write.on_key = \"reinforce\"",
    "undo.horizon = \"0s\"\ncluster.prune = true",
];

/// So many hours from now.
type Hours = i64;

/// A memory by its place among those of a state, or a key.
#[derive(Clone, Debug)]
enum Who {
    Row(State, Index),
    Key(usize),
}

#[derive(Clone, Debug)]
struct Say {
    key: Option<usize>,
    agent: usize,
    text: usize,
    tag: Option<usize>,
    from: Option<Hours>,
    to: Option<Hours>,
    end: Option<Hours>,
    supersedes: Option<(Who, SupersedeMode)>,
    apart: bool,
}

#[derive(Clone, Debug)]
struct Change {
    text: Option<usize>,
    tags: Option<Option<usize>>,
    from: Option<Option<Hours>>,
    to: Option<Option<Hours>>,
    end: Option<Hours>,
    importance: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Add(Say),
    Import(Vec<Say>),
    Update(Who, Change),
    Supersede(Who, Who, SupersedeMode, Option<Hours>),
    Replace(Vec<Who>, Say, SupersedeMode, Option<Hours>),
    Restore(Who),
    Rename(usize, usize),
    Touch(Who, Hours),
    Contradict(Who, Option<Hours>),
    Pin(Who, bool),
    Forget(Who, bool, bool, bool),
    ForgetTag(usize),
    Undo(Index),
    Pass(usize),
    Filter(usize, bool),
    Move(bool),
    /// Into a new file: all states, or what is visible.
    Copy(bool),
    /// An export that is kept.
    Save(bool),
    /// What was kept, put back.
    Load,
    Policy(usize),
    Wait(Hours),
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        3 => (0..KEYS.len()).prop_map(Who::Key),
        2 => any::<Index>().prop_map(|at| Who::Row(State::Live, at)),
        1 => any::<Index>().prop_map(|at| Who::Row(State::Superseded, at)),
        1 => any::<Index>().prop_map(|at| Who::Row(State::Limbo, at)),
    ]
}

fn hours(share: f64) -> impl Strategy<Value = Option<Hours>> {
    proptest::option::weighted(share, -2..4_i64)
}

fn mode() -> impl Strategy<Value = SupersedeMode> {
    select(MODES.to_vec())
}

fn say() -> impl Strategy<Value = Say> {
    let key = proptest::option::weighted(0.8, 0..KEYS.len());
    let agent = prop_oneof![9 => Just(0_usize), 1 => Just(1_usize)];
    let tag = proptest::option::weighted(0.3, 0..TAGS.len());
    let supersedes = proptest::option::weighted(0.15, (who(), mode()));
    let end = proptest::option::weighted(0.1, 0..4_i64);
    let apart = proptest::bool::weighted(0.2);
    (key, agent, 0..TEXTS.len(), tag, hours(0.15), hours(0.15), end, supersedes, apart).prop_map(
        |(key, agent, text, tag, from, to, end, supersedes, apart)| Say {
            key,
            agent,
            text,
            tag,
            from,
            to,
            end,
            supersedes,
            apart,
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let text = proptest::option::of(0..TEXTS.len());
    let tags = proptest::option::weighted(0.2, proptest::option::of(0..TAGS.len()));
    let (from, to) =
        (proptest::option::weighted(0.2, hours(0.7)), proptest::option::weighted(0.2, hours(0.7)));
    let end = proptest::option::weighted(0.1, 0..4_i64);
    (text, tags, from, to, end, any::<bool>()).prop_map(|(text, tags, from, to, end, importance)| Change {
        text,
        tags,
        from,
        to,
        end,
        importance,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => say().prop_map(Op::Add),
        2 => proptest::collection::vec(say(), 1..4).prop_map(Op::Import),
        3 => (who(), change()).prop_map(|(who, change)| Op::Update(who, change)),
        4 => (who(), who(), mode(), hours(0.6)).prop_map(|(old, new, mode, at)| Op::Supersede(old, new, mode, at)),
        5 => (proptest::collection::vec(who(), 1..3), say(), mode(), hours(0.7))
            .prop_map(|(old, new, mode, at)| Op::Replace(old, new, mode, at)),
        3 => who().prop_map(Op::Restore),
        1 => (0..KEYS.len(), 0..KEYS.len()).prop_map(|(old, new)| Op::Rename(old, new)),
        1 => (who(), 0..4_i64).prop_map(|(who, end)| Op::Touch(who, end)),
        1 => (who(), hours(0.6)).prop_map(|(who, at)| Op::Contradict(who, at)),
        1 => (who(), any::<bool>()).prop_map(|(who, pinned)| Op::Pin(who, pinned)),
        2 => (who(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(who, keep, merged, with)| Op::Forget(who, keep, merged, with)),
        1 => (0..TAGS.len()).prop_map(Op::ForgetTag),
        2 => any::<Index>().prop_map(Op::Undo),
        3 => prop_oneof![1 => 0..1_usize, 2 => 0..PASSES.len()].prop_map(Op::Pass),
        1 => any::<bool>().prop_map(Op::Move),
        1 => (0..KEYS.len(), any::<bool>()).prop_map(|(key, visible)| Op::Filter(key, visible)),
        1 => any::<bool>().prop_map(Op::Copy),
        1 => any::<bool>().prop_map(Op::Save),
        1 => Just(Op::Load),
        1 => (0..POLICIES.len()).prop_map(Op::Policy),
        3 => prop_oneof![5 => 1..4_i64, 1 => -3..0_i64].prop_map(Op::Wait),
    ]
}

struct Story {
    world: World,
    runs: Vec<(usize, RunId)>,
    saved: Option<String>,
}

impl Story {
    fn new() -> Self {
        let world = World::new();
        world.db.namespace(NAMESPACES[1]).unwrap();
        Story { world, runs: Vec::new(), saved: None }
    }

    fn at(&self, hours: Hours) -> Time {
        self.world.now().plus(Span::from_millis(hours * 3_600_000))
    }

    fn ns(&self, at: usize) -> Namespace {
        self.world.db.namespace(NAMESPACES[at]).unwrap()
    }

    fn name(&self, ns: usize, who: &Who) -> Option<String> {
        match who {
            Who::Key(key) => Some(KEYS[*key].to_owned()),
            Who::Row(state, at) => {
                let request =
                    PageRequest { scope: Scope::Any, state: *state, limit: 100, ..PageRequest::default() };
                let mut ids: Vec<MemoryId> =
                    self.ns(ns).list(&request).ok()?.items.iter().map(|row| row.id).collect();
                ids.sort();
                (!ids.is_empty()).then(|| ids[at.index(ids.len())].to_string())
            }
        }
    }

    fn draft(&self, ns: usize, say: &Say) -> Draft {
        let mut draft = text(TEXTS[say.text]).vector(axis(say.text / 2));
        if say.text < 2 {
            draft = draft.kind(Kind::Profile);
        }
        draft.key = say.key.map(|key| KEYS[key].to_owned());
        draft.agent = AGENTS[say.agent].map(str::to_owned);
        draft.tags = say.tag.map(|tag| vec![TAGS[tag].to_owned()]);
        let given = |hours: Option<Hours>| hours.map_or(Field::Absent, |hours| Field::Value(self.at(hours)));
        draft.fields.valid_from = given(say.from);
        draft.fields.valid_to = given(say.to);
        draft.expiry = say.end.map(|end| Expiry::At(self.at(end)));
        if let Some((who, mode)) = &say.supersedes
            && let Some(name) = self.name(ns, who)
        {
            draft.supersedes = vec![name];
            draft.supersede_mode = Some(*mode);
        }
        draft
    }

    fn patch(&self, change: &Change) -> Patch {
        let mut patch = Patch { text: change.text.map(|at| TEXTS[at].to_owned()), ..Patch::default() };
        patch.vector = change.text.map(|at| axis(at / 2).to_vec());
        patch.tags = change.tags.map(|tag| tag.map(|tag| TAGS[tag].to_owned()).into_iter().collect());
        let given = |hours: Option<Option<Hours>>| match hours {
            None => Field::Absent,
            Some(None) => Field::Null,
            Some(Some(hours)) => Field::Value(self.at(hours)),
        };
        patch.fields.valid_from = given(change.from);
        patch.fields.valid_to = given(change.to);
        patch.expiry = change.end.map(|end| Expiry::At(self.at(end)));
        if change.importance {
            patch.fields.importance = Some(0.7);
        }
        patch
    }

    fn step(&mut self, ns: usize, op: &Op) {
        let told = self.carry_out(ns, op);
        if let Err(why) = told {
            let expected = [
                ErrorKind::NotFound,
                ErrorKind::Conflict,
                ErrorKind::Invalid,
                ErrorKind::KeyInOtherPartition,
            ];
            assert!(expected.contains(&why.kind()), "{op:?}: {why}");
        }
        let report = self.world.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{op:?}: {:#?}", report.findings);
    }

    #[expect(clippy::too_many_lines, reason = "one arm an operation")]
    fn carry_out(&mut self, ns: usize, op: &Op) -> Result<()> {
        let handle = self.ns(ns);
        let name = |who: &Who| {
            let none = || "nobody".to_owned();
            self.name(ns, who).unwrap_or_else(none)
        };
        let at = |hours: &Option<Hours>| hours.map(|hours| self.at(hours));
        match op {
            Op::Add(say) => {
                let how = WriteOptions { no_dedup: say.apart, ..WriteOptions::default() };
                handle.add_all(vec![self.draft(ns, say)], &how).map(drop)
            }
            Op::Import(all) => {
                let run = handle.start_import()?;
                let drafts = all.iter().map(|say| self.draft(ns, say)).collect();
                let done =
                    handle.add_all(drafts, &WriteOptions { run: Some(run), ..WriteOptions::default() });
                handle.finish_import(run)?;
                self.runs.push((ns, run));
                done.map(drop)
            }
            Op::Update(who, change) => handle.update(name(who), self.patch(change)).map(drop),
            Op::Supersede(old, new, mode, hours) => {
                handle.supersede_all([name(old)], name(new), *mode, at(hours)).map(drop)
            }
            Op::Replace(old, new, mode, hours) => {
                let mut draft = self.draft(ns, new);
                draft.supersedes = Vec::new();
                draft.supersede_mode = None;
                if matches!(old[..], [Who::Key(_)]) {
                    draft.key = None;
                }
                let hours = hours.filter(|_| *mode == SupersedeMode::Replaced);
                handle.replace(old.iter().map(name), draft, *mode, at(&hours)).map(drop)
            }
            Op::Restore(who) => handle.restore(name(who)).map(drop),
            Op::Rename(old, new) => handle.rename_key(KEYS[*old], KEYS[*new]).map(drop),
            Op::Touch(who, end) => handle.touch([name(who)], Expiry::At(self.at(*end))).map(drop),
            Op::Contradict(who, hours) => handle.contradict(name(who), at(hours)).map(drop),
            Op::Pin(who, pinned) => handle.pin(name(who), *pinned).map(drop),
            Op::Forget(who, keep_history, also_merged, with_history) => handle
                .forget(Forget::Names {
                    names: vec![name(who)],
                    scope: Scope::Any,
                    keep_history: *keep_history,
                    also_merged: *also_merged,
                    with_history: *with_history && !*keep_history,
                })
                .map(drop),
            Op::ForgetTag(tag) => handle.forget(Forget::tag(TAGS[*tag])).map(drop),
            Op::Undo(at) if !self.runs.is_empty() => {
                let (ns, run) = self.runs[at.index(self.runs.len())];
                self.ns(ns).undo(run).map(drop)
            }
            Op::Undo(_) => Ok(()),
            Op::Pass(pass) => {
                let dedup = DedupOptions { dry_run: false, ..DedupOptions::default() };
                let options = MaintainOptions { dedup: Some(dedup), ..MaintainOptions::live() };
                let run = self.world.db.maintain_with(&options.passes([PASSES[*pass]]))?.run;
                self.runs.extend(run.map(|run| (ns, run)));
                Ok(())
            }
            Op::Move(drop_keys) => {
                let how = RenamespaceOptions { drop_keys: *drop_keys, ..RenamespaceOptions::default() };
                self.world.db.move_namespace(NAMESPACES[ns], NAMESPACES[1 - ns], &how)?;
                self.runs.iter_mut().filter(|(at, _)| *at == ns).for_each(|(at, _)| *at = 1 - ns);
                Ok(())
            }
            Op::Filter(key, visible_only) => {
                let filter = Filter::parse(&format!(r#"{{"key": "{}"}}"#, KEYS[*key]))?;
                let (scope, all) = (Scope::Any, false);
                handle.forget(Forget::Filter { filter, scope, visible_only: *visible_only, all }).map(drop)
            }
            Op::Copy(all_states) => {
                let lines = exported(&self.world, *all_states);
                let copy = World::new();
                copy.clock.set(self.world.now());
                copy.align_ids(&self.world);
                load(&copy, &lines).unwrap();
                if *all_states {
                    assert_eq!(exported(&copy, true), lines);
                }
                self.world = copy;
                Ok(())
            }
            Op::Save(all_states) => {
                self.saved = Some(exported(&self.world, *all_states));
                Ok(())
            }
            Op::Load => self.saved.as_ref().map_or(Ok(()), |lines| load(&self.world, lines)),
            Op::Policy(at) => self.world.db.set_policy(POLICIES[*at], Syntax::Toml).map(drop),
            Op::Wait(hours) => {
                self.world.clock.set(self.at(*hours));
                Ok(())
            }
        }
    }
}

fn load(world: &World, lines: &str) -> Result<()> {
    let import = Import { skip_bad: true, ..Import::default() };
    import.run(&world.db, LineReader::new(lines.as_bytes(), "lines"), &mut ()).map(drop)
}

fn exported(world: &World, all_states: bool) -> String {
    let mut out = Vec::new();
    let export = Export { namespaces: world.db.namespaces().unwrap(), all_states };
    let lines = VectorsTo::<Cursor<Vec<u8>>>::Lines;
    export.write(&world.db.snapshot().unwrap(), &mut out, "out", lines).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(random(48, 3_000))]

    #[test]
    fn no_story_leaves_a_finding(ops in proptest::collection::vec((proptest::bool::weighted(0.05), op()), 4..=24)) {
        let mut story = Story::new();
        for (at, key) in KEYS.iter().enumerate() {
            story.world.add(text(TEXTS[at]).key(*key).kind(Kind::Profile).vector(axis(0)));
        }
        for (ns, op) in &ops {
            story.step(usize::from(*ns), op);
        }
    }
}
