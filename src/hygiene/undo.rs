//! Taking a run of maintenance back, a slice at a time.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::hygiene::adjust::Adjustable;
use crate::ledger::{Change, Context, Entry, Ledger, OF_THE_OTHER, RestoreTo, Restored};
use crate::model::{
    Delta, ExpiresBy, JournalRow, MemoryId, Op, RuleId, RunId, RunSort, SupersedeMode, TombstoneReason,
    Vitals,
};
use crate::store::Rows;
use crate::store::control::RunState;

/// Journal rows that one slice takes back.
const SLICE: usize = 64;

/// What one slice of an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned {
    /// Rows that are live again.
    pub(crate) restored: u64,
    /// Rows that the run had made, now gone.
    pub(crate) removed: u64,
    /// What could not be taken back, with the reason.
    pub(crate) lost: Vec<String>,
    /// Current memories that say anew what the run had made.
    pub(crate) summaries: Vec<MemoryId>,
    /// Whether nothing of the run is left.
    pub(crate) finished: bool,
    /// Rows that this slice has read as a whole. A row of many writers is not read again for each step that changes it.
    pub(crate) readable: BTreeSet<MemoryId>,
}

impl Returned {
    /// Counts a row that came back, and names what did not come with it.
    fn tell(&mut self, id: MemoryId, restored: &Restored) {
        self.restored += u64::from(restored.is_live());
        self.lost.extend(restored.lost(id));
    }
}

/// Takes back what the last journal rows of a run tell. Rows that were taken back go off the list of the run, which is
/// how the next slice, or the next call, knows where to go on.
pub(crate) fn undo_slice(ledger: &mut Ledger<'_, '_>, context: &Context, run: RunId) -> Result<Returned> {
    let ns = context.ns;
    let mut all = Returned::default();
    for seq in ledger.tx.journal_of_run(ns, run, SLICE)? {
        match sound(ledger.tx.journal_row(ns, seq))? {
            Some(Some(row)) => take_back(ledger, context, run, &row, &mut all)?,
            Some(None) => {}
            None => all.lost.push(format!("row {seq} of the journal: it is damaged")),
        }
        ledger.tx.delete_journal_run(ns, run, seq)?;
    }
    all.finished = ledger.tx.journal_of_run(ns, run, 1)?.is_empty();
    Ok(all)
}

fn take_back(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    run: RunId,
    row: &JournalRow,
    all: &mut Returned,
) -> Result<()> {
    let Some(subject) = row.subject else { return Ok(()) };
    if row.op == Op::Insert {
        take_away(ledger, context, run, subject, all)?;
    } else if row.op == Op::Merge {
        // The last that went comes back first.
        let lost = all.lost.len();
        for id in row.evidence.members.iter().rev() {
            bring_back(ledger, context, run, *id, all)?;
        }
        name_damaged(ledger, context, subject, all);
        if all.lost.len() == lost {
            lower(ledger, context, (subject, row.seq), &row.deltas, all)?;
        }
    } else if row.op == Op::Retire {
        bring_back(ledger, context, run, subject, all)?;
    } else if row.op == Op::Supersede {
        let by = row.evidence.members.first().copied();
        let lost = all.lost.len();
        restore(ledger, context, subject, by, all)?;
        by.into_iter().for_each(|by| name_damaged(ledger, context, by, all));
        if let Some(by) = by.filter(|_| all.lost.len() == lost) {
            let of_other = |delta: &Delta| {
                Some(Delta { field: delta.field.strip_prefix(OF_THE_OTHER)?.to_owned(), ..delta.clone() })
            };
            let deltas: Vec<Delta> = row.deltas.iter().filter_map(of_other).collect();
            lower(ledger, context, (by, row.seq), &deltas, all)?;
        }
    } else if row.op == Op::Adjust {
        readjust(ledger, context, (subject, row.seq), &row.deltas, all)?;
    }
    Ok(())
}

/// The parts of a row that a pass may have changed; none where it was erased, or is damaged.
fn adjustable(
    ledger: &Ledger<'_, '_>,
    context: &Context,
    id: MemoryId,
    all: &mut Returned,
) -> Result<Option<Adjustable>> {
    if !is_readable(ledger, context, id, all) {
        return Ok(None);
    }
    let vitals = sound(ledger.tx.vitals(context.ns, id))?.flatten();
    let access = sound(ledger.tx.access(context.ns, id))?;
    Ok(vitals.zip(access).map(|(vitals, access)| Adjustable { vitals, access }))
}

/// Changes a row from `before` to `next`.
fn adjust(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    id: MemoryId,
    before: &Adjustable,
    next: Adjustable,
) -> Result<()> {
    let (version, deltas) = (before.vitals.version, before.deltas(&next));
    let (vitals, access) = (Box::new(next.vitals), Box::new(next.access));
    let change = Change::Adjust { id, version, vitals, access, deltas };
    ledger.apply(context, Entry::new(RuleId::UNDO, change)).map(drop)
}

/// What may happen to a row without changing what it says: it went for another, or for maintenance, and came back.
const LEAVES_FIELDS: [Op; 7] =
    [Op::Supersede, Op::Restore, Op::Retire, Op::Return, Op::Merge, Op::Adjust, Op::Fold];

/// The fields of a row are again what they were before a step of the run, if nothing has changed the row since. Its version is that
/// of before as well, because the row says the same; but a row that went and came back since has a later one.
fn readjust(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    (id, seq): (MemoryId, u64),
    deltas: &[Delta],
    all: &mut Returned,
) -> Result<()> {
    let Some(before) = adjustable(ledger, context, id, all)? else {
        all.lost.push(format!("{id}: it was erased, or is damaged"));
        return Ok(());
    };
    let mut next = before.clone();
    let (version, fields): (Vec<_>, Vec<_>) = deltas.iter().partition(|delta| delta.field == "version");
    let mut is_back = fields.iter().all(|delta| next.put_back(delta).is_some());
    if !version.iter().all(|delta| next.put_back(delta).is_some()) {
        let since = ledger.told_since(context.ns, id, seq)?;
        let is_there = next.vitals.times.removed_at.is_none() && next.vitals.times.superseded.is_none();
        is_back &= is_there && since.iter().all(|step| LEAVES_FIELDS.contains(&step.op));
        next.vitals.version += 1;
    }
    if !is_back || next.vitals.version == before.vitals.version {
        all.lost.push(format!("{id}: it has changed since"));
        return Ok(());
    }
    adjust(ledger, context, id, &before, next)?;
    all.restored += 1;
    Ok(())
}

/// The fields that say how long a memory lives. They are one value, and go back together or not at all.
const LIFE: [&str; 3] = ["tier", "expires_at", "expires_by"];

fn is_of_life(delta: &&Delta) -> bool {
    LIFE.contains(&&*delta.field)
}

/// What a row that merged others by a step of the journal has of them, such as the longest life, goes when they are back: fields
/// that nothing has changed since are what they were before. What has joined the row since had its own share in its life and tier,
/// so these stay; if it was a merge as well, they go with the undo of that. They also stay where somebody has given the row
/// another life or tier since.
fn lower(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    (id, seq): (MemoryId, u64),
    deltas: &[Delta],
    all: &mut Returned,
) -> Result<()> {
    let Some(before) = adjustable(ledger, context, id, all)? else { return Ok(()) };
    let has_life = deltas.iter().any(|delta| is_of_life(&delta));
    let heir = if has_life { ledger.joined_since(context.ns, id, seq)? } else { None };
    let is_lowered = heir.is_none() && has_life && keeps_life(ledger, context, (id, seq), deltas, &before)?;
    let mut next = before.clone();
    for delta in deltas.iter().filter(|delta| is_lowered || !is_of_life(delta)) {
        // Other fields of a merge go back with the rows.
        let _ = next.put_back(delta);
    }
    if let Some(heir) = heir.filter(|heir| heir.op != Op::Hold) {
        ledger.rewrite_step(context.ns, &inheriting(heir, deltas.iter().filter(is_of_life)))?;
    }
    if next == before {
        return Ok(());
    }
    next.vitals.version += 1;
    adjust(ledger, context, id, &before, next)
}

/// Whether a row has the life that a step of the journal gave it. A use moves an end that the tier gave, and nothing else.
fn keeps_life(
    ledger: &Ledger<'_, '_>,
    context: &Context,
    (id, seq): (MemoryId, u64),
    deltas: &[Delta],
    row: &Adjustable,
) -> Result<bool> {
    let since = ledger.told_since(context.ns, id, seq)?;
    let given = |field: &str| {
        let later = since.iter().flat_map(|row| &row.deltas).find(|delta| delta.field == field);
        let step = deltas.iter().find(|delta| delta.field == field);
        step.map(|delta| &delta.after).or_else(|| later.map(|delta| &delta.before))
    };
    let moves = row.vitals.expires_by == ExpiresBy::Tier;
    let fields = LIFE.into_iter().filter(|field| !moves || *field != "expires_at");
    Ok(fields
        .into_iter()
        .all(|field| given(field).is_none_or(|value| row.value(field).as_ref() == Some(value))))
}

/// A step of the journal by which a row was merged, with the undo of what an earlier step had changed of the row that stands.
fn inheriting<'d>(mut heir: JournalRow, deltas: impl Iterator<Item = &'d Delta>) -> JournalRow {
    let prefix = if heir.op == Op::Supersede { OF_THE_OTHER } else { "" };
    for delta in deltas {
        let field = format!("{prefix}{}", delta.field);
        match heir.deltas.iter_mut().find(|later| later.field == field) {
            Some(later) => later.before = delta.before.clone(),
            None => heir.deltas.push(Delta { field, ..delta.clone() }),
        }
    }
    heir
}

/// Whether a row, if it is there, can be read as a whole.
fn is_readable(ledger: &Ledger<'_, '_>, context: &Context, id: MemoryId, all: &mut Returned) -> bool {
    let is_readable = all.readable.contains(&id) || ledger.whole(context.ns, id).is_ok();
    if is_readable {
        all.readable.insert(id);
    }
    is_readable
}

/// Names the row that took in others, if it can't be read: what it has of them stays with it.
fn name_damaged(ledger: &Ledger<'_, '_>, context: &Context, id: MemoryId, all: &mut Returned) {
    let what = format!("{id}: it is damaged");
    if !is_readable(ledger, context, id, all) && !all.lost.contains(&what) {
        all.lost.push(what);
    }
}

/// A row that the run had made goes, but not one that alone still tells what its sources said.
fn take_away(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    run: RunId,
    id: MemoryId,
    all: &mut Returned,
) -> Result<()> {
    let Some(there) = sound(ledger.tx.vitals(context.ns, id))? else {
        all.lost.push(format!("{id}: it is damaged"));
        return Ok(());
    };
    if let Some(row) = there.filter(|row| row.times.removed_at.is_none()) {
        if is_left_alone(ledger, context, run, id)? {
            all.lost.push(format!("{id}: it stays, because its sources can't come back"));
            return Ok(());
        }
        all.summaries.extend(said_anew(ledger, context, &row)?);
        let change = Change::Remove { id, reason: TombstoneReason::Undone, replaced_by: None };
        ledger.apply(context, Entry::new(RuleId::UNDO, change))?;
        all.removed += 1;
    } else {
        all.lost.push(format!("{id}: it was removed since"));
    }
    Ok(())
}

/// How far a run is; none if it is not one of maintenance.
fn state_of_maintenance(ledger: &Ledger<'_, '_>, context: &Context, run: RunId) -> Result<Option<RunState>> {
    let run = sound(ledger.tx.run(context.ns, run))?.flatten();
    Ok(run.filter(|run| run.sort == RunSort::Maintain).map(|run| run.state))
}

/// Whether nothing is left of the sources of a row that a run of maintenance made, though nobody has asked for their end.
fn is_left_alone(ledger: &Ledger<'_, '_>, context: &Context, run: RunId, id: MemoryId) -> Result<bool> {
    let (ns, tx) = (context.ns, &*ledger.tx);
    if state_of_maintenance(ledger, context, run)?.is_none() {
        return Ok(false);
    }
    let mut is_lost = false;
    for source in tx.sources(ns, id)? {
        let is_in_limbo = |row: &Vitals| row.times.removed_at.is_some();
        let row = ledger.whole_vitals(ns, source)?;
        if row.is_some_and(|row| !is_in_limbo(&row)) || sound(tx.limbo(ns, source))?.flatten().is_some() {
            return Ok(false);
        }
        let stone = sound(tx.tombstone(ns, source))?.flatten();
        is_lost |= stone.is_none_or(|stone| !stone.reason.is_asked_for() && stone.forgotten_at.is_none());
    }
    Ok(is_lost)
}

/// The current memory that stands in the end in the place of a row that was superseded.
fn said_anew(ledger: &Ledger<'_, '_>, context: &Context, row: &Vitals) -> Result<Option<MemoryId>> {
    // Damaged rows could lead in a circle, so no row is visited twice.
    let (mut at, mut seen) = (row.times.superseded_by(), BTreeSet::new());
    while let Some(id) = at.filter(|id| seen.insert(*id)) {
        let Some(next) = sound(ledger.tx.vitals(context.ns, id))?.flatten() else { return Ok(None) };
        if next.times.is_current(context.now) {
            return Ok(Some(id));
        }
        at = next.times.superseded_by();
    }
    Ok(None)
}

/// Whether the run of maintenance that made a row in limbo was taken back, and some of what the row stands for is live again.
fn is_taken_back(
    ledger: &Ledger<'_, '_>,
    context: &Context,
    id: MemoryId,
    sources: &[MemoryId],
) -> Result<bool> {
    let mut is_source_live = false;
    for source in sources {
        let row = ledger.whole_vitals(context.ns, *source)?;
        is_source_live |= row.is_some_and(|row| row.times.is_current(context.now));
    }
    // Few rows have sources, and the others need no look at their story.
    if !is_source_live {
        return Ok(false);
    }
    let story = ledger.told_since(context.ns, id, 0)?;
    let made_by = story.iter().find(|step| step.op == Op::Insert).and_then(|step| step.run);
    let Some(made_by) = made_by else { return Ok(false) };
    let state = state_of_maintenance(ledger, context, made_by)?;
    Ok(state == Some(RunState::Undone))
}

/// A row returns from limbo, if this run removed it and it is still there.
fn bring_back(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    run: RunId,
    id: MemoryId,
    all: &mut Returned,
) -> Result<()> {
    let Some(limbo) =
        sound(ledger.tx.limbo(context.ns, id))?.filter(|_| is_readable(ledger, context, id, all))
    else {
        all.lost.push(format!("{id}: it is damaged"));
        return Ok(());
    };
    match limbo {
        Some(limbo) if limbo.run == Some(run) => {
            if is_taken_back(ledger, context, id, &limbo.sources)? {
                all.lost.push(format!("{id}: the run that had made it was taken back"));
                return Ok(());
            }
            let restored = ledger.apply(context, Entry::new(RuleId::UNDO, Change::Return { id }))?.restored;
            let restored = restored.unwrap_or_default();
            if limbo.reason == TombstoneReason::Summarized && !restored.stays {
                ledger.note_summarized(context, id)?;
            }
            all.tell(id, &restored);
        }
        Some(_) => all.lost.push(format!("{id}: another run removed it since")),
        None if ledger.tx.vitals(context.ns, id)?.is_some() => {
            all.lost.push(format!("{id}: it came back before"));
        }
        None => all.lost.push(format!("{id}: it was erased, or is in another namespace")),
    }
    Ok(())
}

/// A row is live again that the run had superseded, if it still is by the same row.
fn restore(
    ledger: &mut Ledger<'_, '_>,
    context: &Context,
    id: MemoryId,
    by: Option<MemoryId>,
    all: &mut Returned,
) -> Result<()> {
    if !is_readable(ledger, context, id, all) {
        all.lost.push(format!("{id}: it is damaged"));
        return Ok(());
    }
    let Some(vitals) = ledger.tx.vitals(context.ns, id)? else {
        all.lost.push(format!("{id}: it was erased"));
        return Ok(());
    };
    let superseded = vitals.times.superseded.filter(|_| vitals.times.removed_at.is_none());
    let by_run = |mode| matches!(mode, SupersedeMode::Duplicate | SupersedeMode::Aggregate);
    match superseded.filter(|s| by_run(s.mode) && Some(s.by) == by) {
        Some(_) => {
            let change = Change::Restore { id, to: RestoreTo::Undo };
            let restored = ledger.apply(context, Entry::new(RuleId::UNDO, change))?.restored;
            all.tell(id, &restored.unwrap_or_default());
        }
        None => all.lost.push(format!("{id}: it has changed since")),
    }
    Ok(())
}
