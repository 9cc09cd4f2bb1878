//! Plans and commits of summaries beside a model of them: random orders of planning, editing, pinning, using, forgetting,
//! committing, repeating, giving up, undoing, waiting, opening again and dying without a close, while a second process reads
//! the same file.

use std::collections::BTreeMap;

use crate::world::World;
use oubliette::gc::{GcOptions, PlanState};
use oubliette::maintain::RunId;
use oubliette::memory::{ContextDraft, Inclusion};
use oubliette::policy::Syntax;
use oubliette::{Database, Draft, Durability, Error, Kind, MemoryId, Namespace, PageRequest, Patch, Time};
use proptest::prelude::*;
use serde_json::json;

const ROWS: usize = 7;

#[derive(Clone, Debug)]
enum Op {
    Plan,
    Edit(usize),
    Pin(usize),
    Use(usize),
    Forget(usize),
    Commit {
        plan: usize,
        group: usize,
        variant: u8,
    },
    Abort {
        plan: usize,
        group: Option<usize>,
    },
    Undo(usize),
    Wait,
    Reopen,
    /// The process dies, and what it had written is opened again.
    Die,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => Just(Op::Plan),
        1 => (0..ROWS).prop_map(Op::Edit),
        1 => (0..ROWS).prop_map(Op::Pin),
        1 => (0..ROWS).prop_map(Op::Use),
        1 => (0..ROWS).prop_map(Op::Forget),
        6 => (0..3_usize, 0..3_usize, 0..2_u8).prop_map(|(plan, group, variant)| Op::Commit { plan, group, variant }),
        1 => (0..3_usize, prop::option::of(0..3_usize)).prop_map(|(plan, group)| Op::Abort { plan, group }),
        2 => (0..3_usize).prop_map(Op::Undo),
        1 => Just(Op::Wait),
        1 => Just(Op::Reopen),
        1 => Just(Op::Die),
    ];
    prop::collection::vec(op, 1..24)
}

/// A message as the model knows it.
#[derive(Clone, Copy, Default)]
struct Row {
    gone: bool,
    summarized: bool,
    pinned: bool,
    covered: bool,
    /// Grows with each change.
    version: u32,
    /// Grows with each use.
    uses: u32,
    /// What its uses were worth at the last of them, and when that was.
    used: Option<(f64, Time)>,
}

impl Row {
    /// What its uses are worth at an instant, by which they count less from day to day.
    fn worth(&self, now: Time) -> f64 {
        let Some((count, last)) = self.used else { return 0.0 };
        count * (-((now.as_millis() - last.as_millis()) as f64 / 86_400_000.0) / 21.0).exp()
    }
}

struct Group {
    /// Each with its version and its uses at the time of the plan.
    sources: Vec<(MemoryId, u32, u32)>,
    aborted: bool,
    committed: Option<Commit>,
}

#[derive(Clone, Copy)]
struct Commit {
    variant: u8,
    summary: MemoryId,
    run: RunId,
    undone: bool,
}

struct Plan {
    id: RunId,
    expires_at: Time,
    aborted: bool,
    groups: Vec<Group>,
}

impl Plan {
    fn state(&self, now: Time) -> PlanState {
        let open = |group: &Group| !group.aborted && group.committed.is_none();
        if self.aborted {
            PlanState::Aborted
        } else if !self.groups.iter().any(open) {
            let any = self.groups.is_empty() || self.groups.iter().any(|group| group.committed.is_some());
            if any { PlanState::Committed } else { PlanState::Aborted }
        } else if now >= self.expires_at {
            PlanState::Expired
        } else {
            PlanState::Open
        }
    }
}

struct Tale {
    world: World,
    /// The namespace as another process reads it.
    reader: Option<Namespace>,
    ids: Vec<MemoryId>,
    rows: BTreeMap<MemoryId, Row>,
    plans: Vec<Plan>,
    waits: u32,
}

impl Tale {
    fn new() -> Self {
        let world = World::with(|builder| builder.durability(Durability::Fast).shared(true));
        world.db.set_policy("gc.max_sources = 2", Syntax::Toml).unwrap();
        let old = world.ago("20d");
        let add = |number: usize| {
            let draft = Draft::new(format!("Ann: Box {number} went to Ghent{number}."));
            world.add(draft.kind(Kind::Message).channel("yard").created_at(old)).id
        };
        let ids: Vec<MemoryId> = (0..ROWS).map(add).collect();
        let rows = ids.iter().map(|id| (*id, Row::default())).collect();
        let mut tale = Tale { world, reader: None, ids, rows, plans: Vec::new(), waits: 0 };
        tale.join();
        tale
    }

    /// Lets another process open the file.
    fn join(&mut self) {
        let db: Database = self.world.builder().shared(true).read_only(true).open(self.world.path()).unwrap();
        self.reader = Some(db.namespace("default").unwrap());
    }

    /// Whatever this process has written is what the next one finds, though nobody closes the file.
    fn die(&mut self) {
        let left = self.world.beside("left.oub");
        std::fs::copy(self.world.path(), &left).unwrap();
        self.reader = None;
        self.world.db.clone().close().unwrap();
        std::fs::rename(left, self.world.path()).unwrap();
        self.world.open_again(|builder| builder.shared(true));
        self.join();
    }

    fn is_live(row: &Row) -> bool {
        !row.gone && !row.summarized
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Plan => self.plan(),
            Op::Edit(at) => self.change(*at, |world, id, row| {
                world.ns.update(id, Patch::new().importance(0.1 + 0.01 * row.version as f32)).unwrap();
            }),
            Op::Pin(at) => self.change(*at, |world, id, row| {
                row.pinned = !row.pinned;
                world.ns.pin(id, row.pinned).unwrap();
            }),
            Op::Use(at) => self.uses(*at),
            Op::Forget(at) => self.change(*at, |world, id, row| {
                row.gone = true;
                world.forget_id(id);
            }),
            Op::Commit { plan, group, variant } => self.commit(*plan, *group, *variant),
            Op::Abort { plan, group } => self.abort(*plan, *group),
            Op::Undo(at) => self.undo(*at),
            Op::Wait if self.waits < 10 => {
                self.waits += 1;
                self.world.advance("13h");
            }
            Op::Wait => {}
            Op::Reopen => {
                self.reader = None;
                self.world.reopen();
                self.join();
            }
            Op::Die => self.die(),
        }
        let summaries = self.plans.iter().flat_map(|plan| &plan.groups).filter_map(|group| group.committed);
        let mut live: Vec<MemoryId> =
            summaries.filter(|done| !done.undone).map(|done| done.summary).collect();
        live.extend(self.rows.iter().filter(|(_, row)| Tale::is_live(row)).map(|(id, _)| *id));
        live.sort_unstable();
        assert_eq!(self.world.live(), live);
        let reader = self.reader.as_ref().unwrap();
        let read = reader.list(&PageRequest::default()).unwrap().items;
        let mut read: Vec<MemoryId> = read.iter().map(|row| row.id).collect();
        read.sort_unstable();
        assert_eq!(read, live, "the other process");
        for plan in &self.plans {
            let told = self.world.ns.gc_show(plan.id).unwrap();
            assert_eq!(told.state, plan.state(self.world.now()));
            assert_eq!(reader.gc_show(plan.id).unwrap(), told);
        }
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&World, MemoryId, &mut Row)) {
        let id = self.ids[at];
        let row = self.rows.get_mut(&id).unwrap();
        if Tale::is_live(row) {
            row.version += 1;
            change(&self.world, id, row);
        }
    }

    fn uses(&mut self, at: usize) {
        let (id, now) = (self.ids[at], self.world.now());
        let row = self.rows.get_mut(&id).unwrap();
        let name = format!("{id}-{}", row.uses);
        let context = ContextDraft::new(name, [Inclusion::new(id, 5)]);
        let counted = self.world.ns.context_log_write(&context).unwrap().counted;
        assert_eq!(counted == 1, Tale::is_live(row));
        if counted == 1 {
            (row.used, row.uses) = (Some((row.worth(now) + 1.0, now)), row.uses + 1);
        }
    }

    fn plan(&mut self) {
        let now = self.world.now();
        let open = self.plans.iter().filter(|plan| plan.state(now) == PlanState::Open);
        let groups = open.flat_map(|plan| &plan.groups);
        let at_work = groups.filter(|group| !group.aborted && group.committed.is_none());
        let taken: Vec<MemoryId> = at_work.flat_map(|group| &group.sources).map(|(id, ..)| *id).collect();
        let free = |(id, row): &(&MemoryId, &Row)| {
            let is_free = !row.pinned && !row.covered && !taken.contains(id);
            is_free && Tale::is_live(row) && row.worth(now) < 0.8
        };
        let mut free: Vec<(&MemoryId, &Row)> = self.rows.iter().filter(free).collect();
        // Of one instant, the least used come first; the map is in the order of ids.
        free.sort_by(|(_, a), (_, b)| a.worth(now).total_cmp(&b.worth(now)));
        let free: Vec<(MemoryId, u32, u32)> =
            free.into_iter().map(|(id, row)| (*id, row.version, row.uses)).collect();
        let told = self.world.ns.gc_plan(&GcOptions::default()).unwrap();
        let pairs = free.chunks(2).filter(|pair| pair.len() == 2);
        let groups: Vec<Group> =
            pairs.map(|pair| Group { sources: pair.to_vec(), aborted: false, committed: None }).collect();
        let sources: Vec<Vec<MemoryId>> = told.groups.iter().map(|group| group.source_ids.clone()).collect();
        let expected: Vec<Vec<MemoryId>> =
            groups.iter().map(|group| group.sources.iter().map(|(id, ..)| *id).collect()).collect();
        assert_eq!(sources, expected);
        self.plans.push(Plan { id: told.plan_id, expires_at: told.expires_at, aborted: false, groups });
    }

    /// What a commit must be refused for.
    fn refusal(&self, plan: &Plan, group: &Group) -> Option<&'static str> {
        if group.aborted || plan.state(self.world.now()) != PlanState::Open {
            return Some("plan_closed");
        }
        let mut changed = group.sources.iter().filter_map(|(id, version, uses)| {
            let row = &self.rows[id];
            match () {
                () if !Tale::is_live(row) => Some("source_gone"),
                () if row.pinned => Some("source_protected"),
                () if row.version != *version => Some("source_changed"),
                () if row.uses != *uses => Some("source_used"),
                () => None,
            }
        });
        changed.next_back()
    }

    fn commit(&mut self, plan: usize, group: usize, variant: u8) {
        let Some(at) = self.plans.len().checked_sub(1 + plan) else { return };
        let (plan, number) = (&self.plans[at], group);
        let Some(group) = plan.groups.get(number) else { return };
        let ids: Vec<String> = group.sources.iter().map(|(id, ..)| id.to_string()).collect();
        let answer = json!({
            "topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": [format!("boxes went {variant}")],
            "source_ids": ids,
        });
        let done = self.world.ns.gc_commit(plan.id, &(number + 1).to_string(), &answer.to_string(), None);
        if let Some(first) = group.committed {
            match done {
                // It would promise a summary that is gone.
                Err(Error::Refused { code, .. }) if first.undone => assert_eq!(code, "plan_closed"),
                Ok(again) if first.undone => panic!("{} is gone", again.summary_memory_id),
                Ok(again) => assert_eq!((again.summary_memory_id, variant), (first.summary, first.variant)),
                Err(Error::Refused { code, .. }) => {
                    assert_eq!((code, variant != first.variant), ("already_committed", true));
                }
                Err(other) => panic!("{other}"),
            }
            return;
        }
        match (done, self.refusal(plan, group)) {
            (Ok(done), None) => {
                for (id, ..) in &group.sources {
                    self.rows.get_mut(id).unwrap().summarized = true;
                }
                let (summary, run) = (done.summary_memory_id, done.run.unwrap());
                let commit = Commit { variant, summary, run, undone: false };
                self.plans[at].groups[number].committed = Some(commit);
            }
            (Err(Error::Refused { code, .. }), Some(expected)) => assert_eq!(code, expected),
            (done, expected) => panic!("{done:?} and not {expected:?}"),
        }
    }

    fn abort(&mut self, plan: usize, group: Option<usize>) {
        let now = self.world.now();
        let Some(at) = self.plans.len().checked_sub(1 + plan) else { return };
        let plan = &mut self.plans[at];
        if group.is_some_and(|group| group >= plan.groups.len()) {
            return;
        }
        let name = group.map(|group| (group + 1).to_string());
        self.world.ns.gc_abort(plan.id, name.as_deref(), "no").unwrap();
        if plan.state(now) != PlanState::Open {
            return;
        }
        plan.aborted |= group.is_none();
        for (number, one) in plan.groups.iter_mut().enumerate() {
            one.aborted |= group.is_none_or(|group| group == number) && one.committed.is_none();
        }
    }

    fn undo(&mut self, at: usize) {
        let groups = self.plans.iter_mut().flat_map(|plan| &mut plan.groups);
        let done: Vec<&mut Group> = groups.filter(|group| group.committed.is_some()).collect();
        let Some(group) = done.into_iter().rev().nth(at) else { return };
        let commit = group.committed.as_mut().unwrap();
        let undone = self.world.ns.undo(commit.run).unwrap();
        assert_eq!(undone.already, commit.undone);
        if !commit.undone {
            assert_eq!((undone.restored, undone.lost.len()), (group.sources.len() as u64, 0));
            commit.undone = true;
            for (id, ..) in &group.sources {
                let row = self.rows.get_mut(id).unwrap();
                (row.summarized, row.covered, row.version) = (false, true, row.version + 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_and_commits_do_what_the_model_says(ops in ops()) {
        let mut tale = Tale::new();
        for op in &ops {
            tale.step(op);
        }
    }
}
