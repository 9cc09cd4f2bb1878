//! Carrying a plan out, a slice at a time, inside a write transaction: each action only on rows that are as the plan
//! saw them.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::hygiene::adjust::{Adjustable, Adjustment};
use crate::hygiene::plan::{Action, Group, Plan, Pruning};
use crate::ledger::{Change, Context, Entry, Ledger, Merge, Moves, RestoreTo, tags_fit};
use crate::model::{Evidence, MemoryId, RuleId, SupersedeMode, Time, TombstoneReason, Vitals};
use crate::store::Rows;

/// How far a plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Actions that are done.
    actions: usize,
    /// Rows of the next one that are done.
    rows: usize,
    /// Version that the last slice left on the row that the rest of a group goes into.
    version: Option<u64>,
}

impl Cursor {
    /// Whether nothing of the plan is left.
    pub(crate) fn is_done(self, plan: &Plan) -> bool {
        self.actions >= plan.actions.len()
    }

    /// Rows that are left.
    pub(crate) fn left(self, plan: &Plan) -> u64 {
        let all = plan.actions.iter().skip(self.actions).map(|action| action.rows() as u64).sum::<u64>();
        all - self.rows as u64
    }

    /// The row that the rest of a group that was cut goes into.
    pub(crate) fn cut(self, plan: &Plan) -> Option<MemoryId> {
        match plan.actions.get(self.actions) {
            Some(Action::Merge(group)) if self.rows > 0 => Some(group.canonical),
            _ => None,
        }
    }
}

/// What a slice, or a whole run, did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Rows of the plan that were looked at.
    pub(crate) rows: u64,
    /// Groups of which a row was removed, each counted once.
    pub(crate) groups: u64,
    /// Rows that went to limbo, or were erased where there is none.
    pub(crate) removed: u64,
    /// Rows that stay and were superseded.
    pub(crate) superseded: u64,
    /// Rows of both sorts that were visible when the plan was made: those that the destruction budget counts.
    pub(crate) destroyed: u64,
    /// Rows that are live again, or point elsewhere.
    pub(crate) mended: u64,
    /// Reinforcement that moved.
    pub(crate) transferred: u64,
    /// Rows that were no longer as the plan saw them, or whose tags or end the one that stays can't take.
    pub(crate) skipped: u64,
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, mut more: Done) {
        for ((_, sum), (_, more)) in self.numbers().into_iter().zip(more.numbers()) {
            *sum += *more;
        }
    }
}

impl Done {
    /// Its numbers, by the names under which a run that was cut off keeps them.
    pub(super) fn numbers(&mut self) -> [(&'static str, &mut u64); 8] {
        [
            ("done.rows", &mut self.rows),
            ("done.groups", &mut self.groups),
            ("done.removed", &mut self.removed),
            ("done.superseded", &mut self.superseded),
            ("done.destroyed", &mut self.destroyed),
            ("done.mended", &mut self.mended),
            ("done.transferred", &mut self.transferred),
            ("done.skipped", &mut self.skipped),
        ]
    }
}

/// A plan with what its actions ask for.
#[derive(Clone, Copy)]
pub(crate) struct Carried<'p> {
    pub(crate) plan: &'p Plan,
    /// The rule that journal rows name.
    pub(crate) rule: RuleId,
    /// Whether a row into which others go takes over the latest time of what happened.
    pub(crate) latest_happened_at: bool,
    /// The canonical row of a group of which an earlier slice or run removed a row.
    pub(crate) counted: Option<MemoryId>,
}

/// Carries out the next actions of a plan, at most `rows` rows of them, and asks `enough` after each step whether the
/// slice is long enough.
pub(crate) fn carry_out(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    carried: Carried<'_>,
    mut cursor: Cursor,
    rows: usize,
    enough: &mut dyn FnMut() -> bool,
) -> Result<(Cursor, Done)> {
    let mut all = Done::default();
    let mut left = rows.max(1);
    let mut slice = Slice { ledger, context, carried };
    while let Some(action) = carried.plan.actions.get(cursor.actions) {
        let most = left.min(action.rows() - cursor.rows);
        let (mut done, version) = match action {
            Action::Merge(group) => slice.merge(group, cursor, most)?,
            other => (slice.one(other, cursor.rows, most)?, None),
        };
        // A group that was cut is one group.
        let again = match action {
            Action::Merge(group) => cursor.version.is_some() || carried.counted == Some(group.canonical),
            _ => cursor.rows > 0,
        };
        done.groups = u64::from(done.removed + done.superseded > 0 && !again);
        done.rows = most as u64;
        cursor.rows += most;
        cursor.version = version.or(cursor.version);
        if cursor.rows >= action.rows() {
            cursor = Cursor { actions: cursor.actions + 1, ..Cursor::default() };
        }
        all += done;
        left -= most;
        if left == 0 || enough() {
            break;
        }
    }
    Ok((cursor, all))
}

/// One transaction's part of a plan.
struct Slice<'s, 'a, 't> {
    ledger: &'s mut Ledger<'a, 't>,
    context: &'s Context,
    carried: Carried<'s>,
}

impl Slice<'_, '_, '_> {
    fn apply(&mut self, change: Change, evidence: Evidence) -> Result<crate::ledger::Applied> {
        self.ledger.apply(self.context, Entry { change, rule: self.carried.rule, evidence })
    }

    fn merge(&mut self, group: &Group, cursor: Cursor, most: usize) -> Result<(Done, Option<u64>)> {
        let losers = group.losers.iter().skip(cursor.rows).take(most);
        let merge = Merge {
            canonical: (group.canonical, cursor.version.unwrap_or(group.version)),
            losers: losers.map(|loser| (loser.id, loser.version)).collect(),
            latest_happened_at: self.carried.latest_happened_at,
        };
        let signature = format!("{} {}", group.phase.normalizer(), group.signature);
        let evidence = Evidence { signature: Some(signature), ..Evidence::default() };
        let applied = self.apply(Change::Merge(Box::new(merge)), evidence)?;
        let merged = applied.merged.unwrap_or_default();
        let gone: BTreeSet<MemoryId> = merged.removed.iter().copied().collect();
        let visible = group.losers.iter().skip(cursor.rows).take(most).filter(|loser| loser.visible);
        let done = Done {
            removed: merged.removed.len() as u64,
            destroyed: visible.filter(|loser| gone.contains(&loser.id)).count() as u64,
            transferred: merged.transferred,
            skipped: merged.skipped,
            ..Done::default()
        };
        Ok((done, Some(merged.version).filter(|version| *version > 0)))
    }

    fn one(&mut self, action: &Action, from: usize, most: usize) -> Result<Done> {
        let mut done = Done::default();
        match action {
            Action::Merge(_) => {}
            Action::Supersede { by, members, .. } => {
                for member in members.iter().skip(from).take(most) {
                    let evidence = Evidence { score: Some(member.score), ..Evidence::default() };
                    if self.supersede(member.id, member.version, *by, evidence)? {
                        done.superseded += 1;
                        done.destroyed += u64::from(member.visible);
                    } else {
                        done.skipped += 1;
                    }
                }
            }
            Action::Retire { id, version, access_seq, visible, reason, replaced_by } => {
                if self.is_as_planned(*id, *version)? && self.is_unused(*id, *access_seq)? {
                    let change = Change::Retire { id: *id, reason: *reason, replaced_by: *replaced_by };
                    self.apply(change, Evidence::default())?;
                    done.removed += 1;
                    done.destroyed += u64::from(*visible);
                } else {
                    done.skipped += 1;
                }
            }
            Action::Prune(pruning) => match self.prune(pruning)? {
                true => (done.removed, done.destroyed) = (done.removed + 1, done.destroyed + 1),
                false => done.skipped += 1,
            },
            Action::Restore { id, version } => {
                if self.vitals(*id)?.is_some_and(|row| row.version == *version) {
                    self.apply(Change::Restore { id: *id, to: RestoreTo::Undo }, Evidence::default())?;
                    done.mended += 1;
                } else {
                    done.skipped += 1;
                }
            }
            Action::Adjust { id, version, by } => match self.adjust(*id, *version, *by)? {
                true => done.mended += 1,
                false => done.skipped += 1,
            },
            Action::Repoint { id, version, to } => {
                let row = self.vitals(*id)?.filter(|row| row.version == *version);
                match row.and_then(|row| row.times.superseded) {
                    Some(superseded) => {
                        self.apply(Change::Restore { id: *id, to: RestoreTo::Live }, Evidence::default())?;
                        let (old, new, mode, at) = (*id, *to, superseded.mode, superseded.at);
                        let change = Change::Supersede {
                            old,
                            new,
                            mode,
                            at,
                            moves: Moves::All,
                            since: None,
                            via: None,
                        };
                        self.apply(change, Evidence::default())?;
                        done.mended += 1;
                    }
                    None => done.skipped += 1,
                }
            }
        }
        Ok(done)
    }

    /// Takes a row to limbo that is as the plan saw it, that nobody has used since, and of which no goal says anything new; what
    /// is to stand for it must still be there.
    fn prune(&mut self, pruning: &Pruning) -> Result<bool> {
        let Pruning { id, version, access_seq, reason, goals } = pruning;
        let stands = match goals {
            Some(stamp) => stamp.stands(&*self.ledger.tx, self.context.ns)?,
            None => true,
        };
        let replaced_by = reason.replaced_by();
        let stands = stands && replaced_by.map_or(Ok(true), |by| self.is_current(by))?;
        if !stands || !self.is_as_planned(*id, *version)? || !self.is_unused(*id, Some(*access_seq))? {
            return Ok(false);
        }
        let change = Change::Retire { id: *id, reason: TombstoneReason::Pruned, replaced_by };
        self.apply(change, reason.evidence())?;
        Ok(true)
    }

    fn supersede(&mut self, old: MemoryId, version: u64, new: MemoryId, evidence: Evidence) -> Result<bool> {
        // The one that stays may have changed in what does not matter here, as by the members before.
        let stays = self.is_current(new)?;
        if !stays || !self.is_as_planned(old, version)? {
            return Ok(false);
        }
        let (kept, goes) =
            (self.ledger.whole(self.context.ns, new)?, self.ledger.whole(self.context.ns, old)?);
        let Some((kept, goes)) = kept.zip(goes) else { return Ok(false) };
        if !tags_fit(&kept.content.tags, &goes.content.tags) || !kept.end().may_join(&goes.end()) {
            return Ok(false);
        }
        let (mode, at) = (SupersedeMode::Duplicate, self.now());
        let change = Change::Supersede { old, new, mode, at, moves: Moves::All, since: None, via: None };
        self.apply(change, evidence)?;
        Ok(true)
    }

    /// Changes fields of a row for which the reason still holds: an access since the plan changes no version.
    fn adjust(&mut self, id: MemoryId, version: u64, by: Adjustment) -> Result<bool> {
        let ns = self.context.ns;
        let Some(vitals) = self.vitals(id)?.filter(|row| row.version == version) else { return Ok(false) };
        let Some(access) = sound(self.ledger.tx.access(ns, id))? else { return Ok(false) };
        let row = Adjustable { vitals, access };
        let Some(next) = by.of(&row, self.now()) else { return Ok(false) };
        let deltas = row.deltas(&next);
        let (vitals, access) = (Box::new(next.vitals), Box::new(next.access));
        self.apply(Change::Adjust { id, version, vitals, access, deltas }, Evidence::default())?;
        Ok(true)
    }

    fn now(&self) -> Time {
        self.context.now
    }

    /// The hot part of a row; none of one that is gone, or damaged.
    fn vitals(&self, id: MemoryId) -> Result<Option<Vitals>> {
        self.ledger.whole_vitals(self.context.ns, id)
    }

    fn is_current(&self, id: MemoryId) -> Result<bool> {
        Ok(self.vitals(id)?.is_some_and(|row| row.times.is_current(self.now())))
    }

    /// Whether nobody has used a row since the plan saw it; true where that does not matter, false where the use can't be read.
    fn is_unused(&self, id: MemoryId, access_seq: Option<u64>) -> Result<bool> {
        let Some(seen) = access_seq else { return Ok(true) };
        let access = sound(self.ledger.tx.access(self.context.ns, id))?;
        Ok(access.is_some_and(|access| access.access_seq == seen))
    }

    /// Whether a row is current, open to automatic actors, and has the version that the plan saw.
    fn is_as_planned(&self, id: MemoryId, version: u64) -> Result<bool> {
        let fits =
            |row: &Vitals| row.version == version && row.times.is_current(self.now()) && !row.is_protected();
        Ok(self.vitals(id)?.is_some_and(|row| fits(&row)))
    }
}
