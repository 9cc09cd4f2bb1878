//! The common form of what a pass would do: a list of actions in a deterministic order, made from one
//! snapshot and carried out later in slices, each action only on rows that have not changed since.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Result, sound};
use crate::hygiene::accesses::Accesses;
use crate::hygiene::adjust::Adjustment;
use crate::hygiene::goals::GoalStamp;
use crate::limits::NORMALIZER;
use crate::model::{Access, Evidence, MemoryId, Time, TombstoneReason, Vitals};
use crate::policy::Policy;
use crate::record::{At, decode_vitals};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::keys;
use crate::store::{NsId, PagePlace, PartId, Rows, Snapshot, Table, Walk, walk_page};
use crate::text::{Guard, OP_ID};

/// What a planner calls now and then with the work done since it last asked, one unit a row read or a comparison
/// made; when it answers true the planner gives up and there is no plan. The engine turns units into time.
pub(crate) type Stop<'s> = &'s mut dyn FnMut(u64) -> bool;

/// What a pass looks at: a namespace at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) ns: NsId,
    /// The instant at which rows are current or not.
    pub(crate) now: Time,
    /// Rows that could not be read, and are left alone.
    pub(crate) damaged: Cell<u64>,
    /// Accesses that no commit holds yet: a plan counts them.
    pub(crate) noted: Arc<Accesses>,
}

impl Field {
    pub(crate) fn new(ns: NsId, now: Time, noted: Arc<Accesses>) -> Self {
        Field { ns, now, damaged: Cell::new(0), noted }
    }

    /// The statistics of a row, with the accesses that no commit holds yet; none where they are damaged: nobody knows then whether
    /// the row is in use.
    pub(crate) fn access(&self, rows: &Snapshot, id: MemoryId) -> Result<Option<Access>> {
        let Some(mut access) = self.sound(rows.access(self.ns, id))? else { return Ok(None) };
        if let Some(noted) = self.noted.of(self.ns, id) {
            noted.count_in(&mut access);
        }
        Ok(Some(access))
    }

    /// What was read of a row; none where it is damaged, which is counted.
    pub(super) fn sound<T>(&self, read: Result<T>) -> Result<Option<T>> {
        let read = sound(read)?;
        self.pass_over(read.is_none().into());
        Ok(read)
    }

    /// Counts what can't be read, and is left alone.
    pub(super) fn pass_over(&self, damaged: u64) {
        self.damaged.set(self.damaged.get() + damaged);
    }
}

/// What made the members of a group one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// The same operational signature.
    Exact,
    /// The same token key.
    Token,
    /// Token sets near that of the first.
    Fuzzy,
    /// The same text, as the write ladder would have absorbed it (step 2).
    Content,
}

impl Phase {
    /// What stands before the signature in reports and journal.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Phase::Exact => "",
            Phase::Token => "tokens:",
            Phase::Fuzzy => "fuzzy:",
            Phase::Content => "content:",
        }
    }

    /// Id of the normalizer that made the signature.
    pub(super) const fn normalizer(self) -> &'static str {
        match self {
            Phase::Exact | Phase::Token | Phase::Fuzzy => OP_ID,
            Phase::Content => NORMALIZER,
        }
    }
}

/// A member of a group that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loser {
    pub(crate) id: MemoryId,
    /// The version that the plan saw; one that has changed since is skipped.
    pub(crate) version: u64,
    /// What it transfers, at least 1.
    pub(crate) count: u32,
    pub(crate) happened_at: Option<Time>,
    /// Whether a live read saw it when the plan was made: only such rows count as destroyed.
    pub(crate) visible: bool,
}

/// Duplicates of one partition: what stays and what goes into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) phase: Phase,
    pub(crate) part: PartId,
    /// What they have in common, behind the prefix of the phase.
    pub(crate) signature: String,
    pub(crate) canonical: MemoryId,
    /// The version of that row that the plan saw.
    pub(crate) version: u64,
    /// Those that go, at least one, in canonical order.
    pub(crate) losers: Vec<Loser>,
    /// Members that are protected and stay beside the canonical one.
    pub(crate) protected: u32,
}

impl Group {
    /// Members, those that stay as well.
    pub(crate) fn size(&self) -> u64 {
        1 + self.losers.len() as u64 + u64::from(self.protected)
    }

    /// Reinforcement that the losers bring.
    pub(crate) fn transfer(&self) -> u64 {
        self.losers.iter().map(|loser| u64::from(loser.count)).sum()
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Members of a group of duplicates become one.
    Merge(Group),
    /// Rows that say nearly the same are superseded by one of them.
    Supersede {
        /// The one that stands for them.
        by: MemoryId,
        /// At least one.
        members: Vec<Similar>,
    },
    /// A row goes to limbo.
    Retire {
        id: MemoryId,
        /// The version that the plan saw.
        version: u64,
        /// The count of uses that the plan saw, if a use since is to keep the row. A use changes no version.
        access_seq: Option<u64>,
        /// As [`Loser::visible`].
        visible: bool,
        reason: TombstoneReason,
        /// What stands in its place.
        replaced_by: Option<MemoryId>,
    },
    /// A row goes to limbo because of its age or its score.
    Prune(Pruning),
    /// A superseded row becomes live again.
    Restore {
        id: MemoryId,
        /// The version that the plan saw.
        version: u64,
    },
    /// Fields of a row change.
    Adjust {
        id: MemoryId,
        /// The version that the plan saw.
        version: u64,
        by: Adjustment,
    },
    /// A superseded row of a cycle points to the one that was restored.
    Repoint {
        id: MemoryId,
        /// The version that the plan saw.
        version: u64,
        to: MemoryId,
    },
}

impl Action {
    /// Visible rows that it removes.
    pub(crate) fn cost(&self) -> u64 {
        match self {
            Action::Merge(group) => group.losers.iter().filter(|loser| loser.visible).count() as u64,
            Action::Supersede { members, .. } => {
                members.iter().filter(|member| member.visible).count() as u64
            }
            Action::Retire { visible, .. } => u64::from(*visible),
            Action::Prune(_) => 1,
            Action::Restore { .. } | Action::Adjust { .. } | Action::Repoint { .. } => 0,
        }
    }

    /// Rows that it changes, but for the one that stays.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Action::Merge(group) => group.losers.len(),
            Action::Supersede { members, .. } => members.len(),
            Action::Retire { .. }
            | Action::Prune(_)
            | Action::Restore { .. }
            | Action::Adjust { .. }
            | Action::Repoint { .. } => 1,
        }
    }
}

/// A visible row that is pruned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pruning {
    pub(crate) id: MemoryId,
    /// The version that the plan saw.
    pub(crate) version: u64,
    /// The count of uses that the plan saw: a use since keeps the row.
    pub(crate) access_seq: u64,
    pub(crate) reason: PruneReason,
    /// The goals under which it was decided, if they have a say: a change of them since keeps the row.
    pub(crate) goals: Option<GoalStamp>,
}

/// Why a row is pruned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PruneReason {
    /// A summary of a level is too old.
    Age { level: u8 },
    /// The score is too low, or, without a threshold, among the lowest of too many.
    Score {
        score: f64,
        threshold: Option<f64>,
        /// Whether it is the final score, which goals have a part in, and not the utility.
        by_goals: bool,
        /// The score by the built-in formula, where a hook has a part in it.
        built_in: Option<f64>,
    },
    /// Another memory of its cluster says what it says.
    Redundant { by: MemoryId, cosine: f32 },
}

impl PruneReason {
    /// The memory that stands for the row from then on.
    pub(super) fn replaced_by(self) -> Option<MemoryId> {
        match self {
            PruneReason::Redundant { by, .. } => Some(by),
            PruneReason::Age { .. } | PruneReason::Score { .. } => None,
        }
    }

    /// As the journal tells it.
    pub(super) fn evidence(self) -> Evidence {
        let (score, signature) = match self {
            PruneReason::Age { level } => (None, format!("age of level {level}")),
            PruneReason::Redundant { by, cosine } => {
                let evidence = Evidence { score: Some(cosine), members: vec![by], ..Evidence::default() };
                return Evidence { signature: Some(format!("cosine {cosine:.6} to {by}")), ..evidence };
            }
            PruneReason::Score { score, threshold, by_goals, built_in } => {
                let name = if by_goals { "final score" } else { "utility" };
                let below =
                    threshold.map_or_else(|| "the lowest".to_owned(), |below| format!("below {below}"));
                let built_in = built_in.map(|score| format!(" ({score:.6} by the built-in formula)"));
                let built_in = built_in.unwrap_or_default();
                (Some(score as f32), format!("{name} {score:.6}{built_in}, {below}"))
            }
        };
        Evidence { score, signature: Some(signature), ..Evidence::default() }
    }
}

/// A row that says nearly the same as another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Similar {
    pub(crate) id: MemoryId,
    /// The version that the plan saw.
    pub(crate) version: u64,
    /// Similarity to the one that stands for it.
    pub(crate) score: f32,
    /// As [`Loser::visible`].
    pub(crate) visible: bool,
}

/// Two rows that a guard kept apart: told, not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptApart {
    /// The row that stays by itself.
    pub id: MemoryId,
    /// The row into which it would have gone.
    pub near: MemoryId,
    /// The guard that failed.
    pub guard: Guard,
}

/// How many pairs a guard kept apart, and the first of them for a report.
pub(super) fn told_apart(hints: &[KeptApart], policy: &Policy) -> (u64, Vec<KeptApart>) {
    (hints.len() as u64, hints.iter().take(policy.collapse.max_samples as usize).copied().collect())
}

/// Visible rows of a kind in a namespace.
pub(super) fn visible_of_kind(rows: &Snapshot, ns: NsId, kind: &str) -> Result<u64> {
    let counter = rows.counter(ns, TOTAL, CounterSort::Kind as u8, kind)?;
    Ok(u64::try_from(counter.rows).unwrap_or(0))
}

/// The rows that a plan prunes, in its order.
pub(crate) fn pruned_in(plan: &Plan) -> Vec<MemoryId> {
    let pruned = |action: &Action| match action {
        Action::Prune(pruning) => Some(pruning.id),
        _ => None,
    };
    plan.actions.iter().filter_map(pruned).collect()
}

/// What a pass would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// In the order in which they are carried out.
    pub(crate) actions: Vec<Action>,
    /// Pairs that a guard kept apart.
    pub(crate) hints: Vec<KeptApart>,
    /// Whether it was cut.
    pub(crate) budget_exhausted: bool,
}

impl Plan {
    /// Visible rows that it removes.
    pub(crate) fn cost(&self) -> u64 {
        self.actions.iter().map(Action::cost).sum()
    }

    /// Rows that it changes.
    pub(crate) fn rows(&self) -> u64 {
        self.actions.iter().map(|action| action.rows() as u64).sum()
    }

    /// Ends the plan before the first removal that goes past `budget`, if need be inside a group; says whether it had
    /// to.
    pub(crate) fn cut(&mut self, budget: u64) -> bool {
        let mut left = budget;
        let fits = |action: &Action| {
            let cost = action.cost();
            let fits = cost <= left;
            left -= cost.min(left) * u64::from(fits);
            fits
        };
        let Some(over) = self.actions.iter().map(fits).position(|fits| !fits) else { return false };
        let rest = self.actions.split_off(over);
        let mut within = |visible: bool| {
            let fits = u64::from(visible) <= left;
            left -= u64::from(visible).min(left);
            fits
        };
        match rest.into_iter().next() {
            Some(Action::Merge(mut group)) => {
                let kept = group.losers.iter().take_while(|loser| within(loser.visible)).count();
                group.losers.truncate(kept);
                if kept > 0 {
                    self.actions.push(Action::Merge(group));
                }
            }
            Some(Action::Supersede { by, mut members }) => {
                let kept = members.iter().take_while(|member| within(member.visible)).count();
                members.truncate(kept);
                if kept > 0 {
                    self.actions.push(Action::Supersede { by, members });
                }
            }
            _ => {}
        }
        self.budget_exhausted = true;
        true
    }
}

/// The rows of a namespace in the order of their ids, a page at a time.
pub(super) struct Pages<'f> {
    field: &'f Field,
    /// Rows of a page that are looked for.
    page: usize,
    place: PagePlace,
}

impl<'f> Pages<'f> {
    pub(super) fn new(field: &'f Field, page: usize) -> Self {
        Pages { field, page, place: PagePlace::Start }
    }

    /// The next rows of the partitions of the field that `wanted` takes: a page, and what stands before a place at which the next
    /// one can begin.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn turn(
        &mut self,
        rows: &Snapshot,
        stop: Stop<'_>,
        wanted: impl Fn(&Vitals) -> bool,
    ) -> Result<Page> {
        let (mut page, mut stopped) = (Vec::new(), false);
        let walk = Walk::prefix(&keys::ns(self.field.ns));
        walk_page(rows, Table::Vitals, &walk, &mut self.place, &mut |key, bytes| {
            stopped |= stop(1);
            if stopped {
                return Ok(ControlFlow::Break(()));
            }
            let decoded = self.field.sound(decode_vitals(At::new(Table::Vitals.name(), key), bytes))?;
            let Some(vitals) = decoded else { return Ok(ControlFlow::Continue(())) };
            let keys::Vitals { id, .. } = keys::Vitals::read(Table::Vitals, key)?;
            if wanted(&vitals) {
                page.push((id, vitals));
            }
            Ok(if page.len() < self.page { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(match (stopped, page.is_empty()) {
            (true, _) => Page::Stopped,
            (false, true) => Page::End,
            (false, false) => Page::Rows(page),
        })
    }
}

/// What a call for the next page gives.
pub(super) enum Page {
    /// At least one row.
    Rows(Vec<(MemoryId, Vitals)>),
    /// There are no more.
    End,
    /// The planner is to give up.
    Stopped,
}
