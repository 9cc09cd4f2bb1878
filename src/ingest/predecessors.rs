//! What a row had superseded, when the row or some of its writers go: it comes back, or follows to where they are now.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::written::Written;
use crate::ledger::{Applied, Change, Onward, inverse};
use crate::model::{
    Delta, Holder, JournalRow, MemoryId, Op, RuleId, RunId, SupersedeMode, Tombstone, TombstoneReason, Vitals,
};
use crate::store::{Rows, Walk, keys};

/// A slice of an undo may read so many rows for each step beside the rows of the step itself, which are some more.
const ROWS_OF_STEP: usize = 16;

/// What a supersession that a line of an import had named has left.
enum NamedLeft {
    /// The row is superseded by it still.
    Superseded {
        /// The row.
        id: MemoryId,
        /// The row that has taken its place.
        by: MemoryId,
    },
    /// The row has gone since, superseded as it was.
    Gone {
        /// The row.
        id: MemoryId,
        /// The row that has taken its place.
        by: MemoryId,
        /// Whether the run itself had brought the row, which goes with its undo and is not missed.
        is_own: bool,
    },
    /// The row can't be read.
    Damaged(MemoryId),
}

/// What became of a row that was to come back.
#[derive(Default)]
struct TakenBack {
    /// What is live again: the row, and what a row had replaced that went with its return.
    live: BTreeSet<MemoryId>,
    /// What did not come back, with the reason.
    lost: Vec<String>,
}

/// For rows that are gone, the rows of their own for which the first of their writers had left them.
type Parted = BTreeMap<MemoryId, Option<MemoryId>>;

/// What a slice of an undo has read of the rows that had taken the place of others. The next slice reads that anew.
#[derive(Default)]
struct Looked {
    /// The steps of the journal that were taken back.
    steps: usize,
    /// The rows that had taken the place of others.
    met: BTreeSet<MemoryId>,
    /// The rows that were led on to such a row, by the rows that had superseded them before.
    led_on: BTreeMap<MemoryId, BTreeMap<MemoryId, Vec<MemoryId>>>,
    /// About how many rows were read for all steps of such a row together: its writers, and what it has superseded.
    rows: usize,
}

impl Looked {
    /// Whether a slice of `most` steps takes one more, of a row that has taken the place of others.
    fn has_room(&self, by: Option<MemoryId>, most: usize) -> bool {
        let is_met = by.is_some_and(|by| self.met.contains(&by));
        self.steps < most || (is_met && self.steps < self.rows / ROWS_OF_STEP)
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Makes the rows live again that an erased row had superseded, the latest first: what a key had said before is no news
    /// then. If something has superseded the erased row since, the rows are led on to it, so that an old fact does not come back
    /// beside the newest; where texts were to follow the erased row, each goes on to what was announced for it. What others than
    /// these imports had let be replaced stays so, where what they had put in its place is still there.
    pub(super) fn restore_predecessors(
        &mut self,
        applied: &Applied,
        runs: &BTreeSet<RunId>,
    ) -> Result<BTreeSet<MemoryId>> {
        let (mut restored, mut parted) = (BTreeSet::new(), BTreeMap::new());
        for erased in &applied.erased {
            let ids = Vec::from_iter(erased.predecessors.iter().map(|(id, _)| *id));
            let onward = erased.onward.as_ref();
            // Where the writers have left the row into which the erased one was merged, nothing leads there any more.
            let merged = onward
                .and_then(Onward::merged_into)
                .map(|at| self.ledger.merged_on(self.ns(), at))
                .transpose()?;
            let merged = merged.unwrap_or_default();
            let stays = !self.copies_at_end(erased.id, None, &merged)?.is_empty();
            let plan = self.plan_after(onward)?;
            let (mut led, mut back, mut off_plan) = (Vec::new(), Vec::new(), Vec::new());
            let mut called_off = Vec::new();
            for id in self.latest_first(ids.clone())? {
                let Some(row) = self.superseded_by_gone(id, erased.id)? else { continue };
                if self.is_called_off(id, &row.times)? {
                    called_off.push(id);
                    continue;
                }
                if let Some(left) = self.led_before(id, erased.id, runs)? {
                    self.lead_apart(id, erased.id, left)?;
                    continue;
                }
                let has_left = !merged.is_empty() && !stays && !self.is_still_at(&merged, id)?;
                let goes_on = match onward.filter(|_| !has_left) {
                    Some(onward) if !plan.is_empty() => self.back_to_plan((id, &row), (onward, &plan))?,
                    onward => onward.map(|onward| onward.for_told(row.times.told())),
                };
                let change = match goes_on {
                    Some(onward) => Some(Change::LeadOn { id, onward: Box::new(onward) }),
                    None => self.unless_replaced(id, erased.id, (runs, &mut parted))?,
                };
                match change {
                    Some(Change::LeadOn { .. }) => led.push((id, change)),
                    _ => {
                        off_plan.push((id, self.plan_by_way(&row.times)?));
                        back.push((id, change));
                    }
                }
            }
            let on_plan: Vec<MemoryId> = led.iter().map(|(id, _)| *id).collect();
            let mut live = self.all_back(led)?;
            // The keys that say something else again lead there no more.
            if let Some((next, _)) = plan.first() {
                self.take_keys_of_gone(erased.id, *next)?;
                self.part_plan(&[erased.id], &ids, &plan)?;
                for id in on_plan {
                    self.lead_on_again(id)?;
                    let row = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
                    live.extend(row.filter(|row| row.times.visible_live(self.now())).map(|_| id));
                }
            }
            live.append(&mut self.all_back(back)?);
            for (id, plan) in off_plan {
                self.go_on(id, &plan)?;
            }
            self.keep_called_off(erased.id, &called_off, &live)?;
            restored.append(&mut live);
        }
        Ok(restored)
    }

    /// A row as long as it is superseded by one that is gone: one that was brought back itself, and took the writers of that row along,
    /// is superseded no more. A damaged row stays superseded, by the tombstone. What limbo says of it is a part of it.
    fn superseded_by_gone(&self, id: MemoryId, gone: MemoryId) -> Result<Option<Vitals>> {
        let limbo = sound(self.ledger.tx.limbo(self.ns(), id))?;
        let row = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
        let row = row.filter(|row| limbo.is_some() && row.times.superseded_by() == Some(gone));
        Ok(match row {
            Some(row) if self.ledger.is_whole(self.ns(), id)? => Some(row),
            _ => None,
        })
    }

    /// The change by which a row comes back whose superseder is gone; none where somebody else than these imports had let it be
    /// replaced, and it stays so.
    fn unless_replaced(
        &mut self,
        id: MemoryId,
        gone: MemoryId,
        (runs, parted): (&BTreeSet<RunId>, &mut Parted),
    ) -> Result<Option<Change>> {
        let Some(by) = self.replaced_by_others(id, runs, parted)? else {
            return Ok(inverse(Op::Supersede, id));
        };
        self.lead_apart(id, gone, by)?;
        Ok(None)
    }

    /// The row that somebody else than these imports had let take the place of another one, while it is there; or the row of its own for
    /// which a writer has left that row.
    fn replaced_by_others(
        &self,
        id: MemoryId,
        runs: &BTreeSet<RunId>,
        parted: &mut Parted,
    ) -> Result<Option<MemoryId>> {
        let step = self.superseding_step(id)?.filter(JournalRow::is_named_supersession);
        let step = step.filter(|step| step.run.is_none_or(|run| !runs.contains(&run)));
        let Some(by) = step.and_then(|step| step.evidence.members.first().copied()) else { return Ok(None) };
        let stands = match (self.ledger.tx.has_row(self.ns(), by)?, parted.entry(by)) {
            (true, _) => Some(by),
            // Without an import the row comes back for what its writers have said since.
            (false, _) if runs.is_empty() => None,
            (false, Entry::Occupied(known)) => *known.get(),
            (false, Entry::Vacant(unknown)) => *unknown.insert(self.parted_from(by)?),
        };
        Ok(match stands {
            Some(stands) if !self.ledger.leads_to(self.ns(), stands, id)? => Some(stands),
            _ => None,
        })
    }

    /// The row of its own for which the first of the writers of a row that is gone had left that row.
    fn parted_from(&self, gone: MemoryId) -> Result<Option<MemoryId>> {
        let ns = self.ns();
        let mut left = self.ledger.tx.journal_of(ns, gone)?;
        left.retain(|step| step.op == Op::Detach && step.rule == RuleId::DETACH);
        left.sort_unstable_by_key(|step| step.holder);
        for step in left {
            // The row was made with it.
            let made = sound(self.ledger.tx.journal_row(ns, step.seq + 1))?.flatten();
            let made = made.filter(|made| made.is_parted() && made.evidence.members.first() == Some(&gone));
            if let Some(row) = made.and_then(|made| made.subject)
                && self.ledger.tx.has_row(ns, row)?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Makes these changes of rows, and says which of the rows are live again.
    fn all_back(&mut self, changes: Vec<(MemoryId, Option<Change>)>) -> Result<BTreeSet<MemoryId>> {
        let mut restored = BTreeSet::new();
        for (id, change) in changes {
            if let Some(change) = change
                && self.is_back(change)?
            {
                restored.insert(id);
            }
        }
        Ok(restored)
    }

    /// Makes the rows live again that writers had replaced through their keys, where these writers have left the row that took
    /// their place and others stay on it. A row of which somebody has gone on to the row that stays is replaced still, and so is
    /// a row if its key says something newer, or if the word of a caller has replaced it by a row that none of the writers wrote.
    pub(super) fn restore_of_leavers(
        &mut self,
        at: MemoryId,
        leavers: &[Holder],
        written: &Written,
    ) -> Result<BTreeSet<MemoryId>> {
        let (ns, mut restored) = (self.ns(), BTreeSet::new());
        let stays = sound(self.ledger.tx.vitals(ns, at))?.flatten().map(|vitals| vitals.times);
        if stays.is_none_or(|times| times.superseded.is_some() || times.removed_at.is_some()) {
            return Ok(restored);
        }
        let runs: BTreeSet<RunId> = leavers.iter().filter_map(|leaver| leaver.run).collect();
        for (id, by) in self.replaced_by_leavers(at, leavers)? {
            let holders = self.ledger.readable_holders(ns, id)?.into_iter();
            let of_row: Vec<String> = holders.filter_map(|holder| holder.key).collect();
            let step = self.last_supersession(id)?.filter(JournalRow::is_named_supersession);
            let is_by_others = step.is_some_and(|step| step.run.is_none_or(|run| !runs.contains(&run)));
            if !is_by_others
                && !written.is_by_caller(at, (id, &of_row), by)
                && let Some(change) = inverse(Op::Supersede, id)
                && self.is_back(change)?
            {
                restored.insert(id);
            }
        }
        Ok(restored)
    }

    /// Makes those rows live again that lines of an import had named, to be superseded by rows that were there before and stay;
    /// the latest `most` of those that were not looked at yet, and more where that makes up for what was read for these. Returns how
    /// many are live again, and which are not, with the reason.
    pub(super) fn restore_named(&mut self, run: RunId, most: usize) -> Result<(u64, Vec<String>)> {
        let (ns, mut restored, mut lost) = (self.ns(), 0, Vec::new());
        let mut looked = Looked::default();
        loop {
            let page = self.ledger.tx.journal_of_run(ns, run, most)?;
            for seq in &page {
                let step = sound(self.ledger.tx.journal_row(ns, *seq))?;
                let by = step.as_ref().and_then(|step| step.as_ref()?.evidence.members.first().copied());
                if !looked.has_room(by, most) {
                    return Ok((restored, lost));
                }
                looked.steps += 1;
                match step {
                    Some(Some(step)) => {
                        let mut back = self.take_back_step(run, &step, &mut looked)?;
                        restored += back.live.len() as u64;
                        lost.append(&mut back.lost);
                    }
                    Some(None) => {}
                    None => lost.push(format!("row {seq} of the journal: it is damaged")),
                }
                self.ledger.tx.delete_journal_run(ns, run, *seq)?;
            }
            if page.len() < most {
                return Ok((restored, lost));
            }
        }
    }

    /// Takes back what a step of the journal has left of a row that a line of an import had named.
    fn take_back_step(&mut self, run: RunId, step: &JournalRow, looked: &mut Looked) -> Result<TakenBack> {
        let (ns, mut all) = (self.ns(), TakenBack::default());
        let (by, backs) = match self.left_of(step)? {
            Some(NamedLeft::Superseded { id, by }) => (by, vec![id]),
            Some(NamedLeft::Gone { id, by, is_own }) => {
                if !is_own {
                    self.take_keys_of_gone(id, by)?;
                    all.lost.push(format!("{id} does not come back: it is gone"));
                }
                // The step leads on what the row had superseded, too.
                let led_on = match looked.led_on.entry(by) {
                    Entry::Occupied(found) => found.into_mut(),
                    Entry::Vacant(unread) => {
                        let (led_on, rows) = self.ledger.led_on_to(ns, by)?;
                        looked.rows += rows;
                        unread.insert(led_on)
                    }
                };
                let of_row = self.latest_first(led_on.get(&id).cloned().unwrap_or_default())?;
                if of_row.is_empty() {
                    self.ledger.unbegin_for_gone(&self.context, by, id, RuleId::UNDO)?;
                }
                (by, of_row)
            }
            Some(NamedLeft::Damaged(id)) => {
                all.lost.push(format!("{id}: it is damaged"));
                return Ok(all);
            }
            None => return Ok(all),
        };
        if looked.met.insert(by) {
            let writers = sound(self.ledger.tx.vitals(ns, by))?.flatten().map_or(0, |row| row.place.holders);
            looked.rows += usize::try_from(writers).unwrap_or(usize::MAX);
        }
        for id in backs {
            let mut back = self.take_back_named(id, by, &BTreeSet::from([run]))?;
            all.live.append(&mut back.live);
            all.lost.append(&mut back.lost);
        }
        Ok(all)
    }

    /// The same of the rows that lines of some runs had named, where these runs wrote or changed no writer of the row `at` but those
    /// with the numbers `taken`.
    pub(super) fn restore_named_by(
        &mut self,
        at: MemoryId,
        all: &BTreeSet<RunId>,
        taken: &BTreeSet<u32>,
    ) -> Result<BTreeSet<MemoryId>> {
        let (ns, mut restored) = (self.ns(), BTreeSet::new());
        if all.is_empty() {
            return Ok(restored);
        }
        let mut others = self.ledger.readable_holders(ns, at)?;
        others.retain(|holder| !taken.contains(&holder.number));
        let stay = self.runs_of(at, &others)?;
        let runs: BTreeSet<RunId> = all.difference(&stay).copied().collect();
        if runs.is_empty() {
            return Ok(restored);
        }
        for old in self.ledger.tx.superseded_by(ns, at)? {
            if self.is_named_in(&runs, old, at)? {
                restored.append(&mut self.take_back_named(old, at, all)?.live);
            }
        }
        Ok(restored)
    }

    /// Whether lines of these runs had named a row, to be superseded by another one as it is; or one that has gone since, and from
    /// which the row was led on.
    fn is_named_in(&self, runs: &BTreeSet<RunId>, id: MemoryId, by: MemoryId) -> Result<bool> {
        let (mut next, mut seen) = (Some(id), BTreeSet::new());
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            let told = self.ledger.tx.journal_of(self.ns(), id)?;
            for step in told.iter().filter(|step| step.run.is_some_and(|run| runs.contains(&run))) {
                let is_its = match self.left_of(step)? {
                    Some(NamedLeft::Superseded { by: its, .. } | NamedLeft::Gone { by: its, .. }) => {
                        its == by
                    }
                    Some(NamedLeft::Damaged(_)) | None => false,
                };
                if is_its {
                    return Ok(true);
                }
            }
            let last = told.iter().rfind(|step| step.op == Op::Supersede);
            next = last.and_then(JournalRow::led_on).filter(|(to, _)| *to == by).map(|(_, gone)| gone);
        }
        Ok(false)
    }

    /// The runs that wrote holders of a row, or changed them.
    pub(super) fn runs_of(&self, at: MemoryId, holders: &[Holder]) -> Result<BTreeSet<RunId>> {
        let mut runs: BTreeSet<RunId> = holders.iter().filter_map(|holder| holder.run).collect();
        for holder in holders {
            runs.extend(self.changes_of_holder(at, holder.number)?.iter().filter_map(|step| step.run));
        }
        Ok(runs)
    }

    /// The run that put a tag on a holder which was there before, if no later one has said the same and put a tag that names it.
    pub(super) fn run_of_tag(&self, at: MemoryId, holder: &Holder, tag: &str) -> Result<Option<RunId>> {
        let adds = |delta: &Delta, tag: &str| {
            let has = |tags: &Value| tags.as_array().is_some_and(|tags| tags.iter().any(|its| its == tag));
            delta.field == "tags" && has(&delta.after) && !has(&delta.before)
        };
        let names = |step: &&JournalRow| {
            let mut tags = holder.import_tags();
            tags.any(|tag| step.deltas.iter().any(|delta| adds(delta, tag)))
        };
        let told = self.changes_of_holder(at, holder.number)?;
        if let Some(last) = told.iter().rfind(names) {
            let is_its = last.deltas.iter().any(|delta| adds(delta, tag));
            return Ok(last.run.filter(|_| is_its));
        }
        // What was told of the tags of a writer who has left another row for this one is told no more.
        let parted = self.parting(at)?.filter(|step| step.holder == Some(holder.number));
        let is_alone = holder.import_tags().all(|its| its == tag);
        Ok(parted.filter(|_| is_alone).and_then(|step| step.run))
    }

    /// The step of the journal by which a row was made for a writer that had left another row for it.
    fn parting(&self, id: MemoryId) -> Result<Option<JournalRow>> {
        Ok(self.told_of_holder(id, 0)?.into_iter().find(JournalRow::is_parted))
    }

    /// What the journal tells of the changes of a holder.
    fn changes_of_holder(&self, at: MemoryId, number: u32) -> Result<Vec<JournalRow>> {
        let mut told = self.told_of_holder(at, number)?;
        told.retain(|step| step.op == Op::Update);
        Ok(told)
    }

    fn told_of_holder(&self, at: MemoryId, number: u32) -> Result<Vec<JournalRow>> {
        let walk = Walk::prefix(&keys::journal_holder(self.ns(), at, Some(number)));
        self.ledger.tx.journal_rows(self.ns(), self.ledger.tx.journal_numbers(&walk)?)
    }

    /// The row of others that a key had left for this row, in one of these imports, which had written there before. Nobody of that
    /// import may be there any more.
    pub(super) fn left_for(&self, id: MemoryId, runs: &BTreeSet<RunId>) -> Result<Option<MemoryId>> {
        let parted = if runs.is_empty() { None } else { self.parting(id)? };
        let parted = parted.filter(|step| step.run.is_some_and(|run| runs.contains(&run)));
        let Some(before) = parted.and_then(|step| step.evidence.members.first().copied()) else {
            return Ok(None);
        };
        Ok(self.ledger.tx.has_row(self.ns(), before)?.then_some(before))
    }

    /// Makes the rows live again that were led on from erased rows to what a line of these imports had put in their place.
    pub(super) fn restore_led_on(
        &mut self,
        applied: &Applied,
        runs: &BTreeSet<RunId>,
    ) -> Result<BTreeSet<MemoryId>> {
        let (ns, mut restored) = (self.ns(), BTreeSet::new());
        for erased in applied.erased.iter().filter(|erased| !erased.predecessors.is_empty()) {
            let Some(by) = erased.onward.as_ref().and_then(Onward::replaced_by) else { continue };
            let is_named = |step: &JournalRow| {
                step.is_named_supersession()
                    && step.run.is_some_and(|run| runs.contains(&run))
                    && step.evidence.members.first() == Some(&by)
            };
            if runs.is_empty() || !self.ledger.tx.journal_of(ns, erased.id)?.iter().any(is_named) {
                continue;
            }
            let ids = erased.predecessors.iter().map(|(id, _)| *id);
            for id in self.latest_first(ids.collect())? {
                let row = sound(self.ledger.tx.vitals(ns, id))?.flatten();
                if row.is_some_and(|row| row.times.superseded_by() == Some(by)) {
                    restored.append(&mut self.take_back_named(id, by, runs)?.live);
                }
            }
        }
        Ok(restored)
    }

    /// Lets keys lead again to a row that stays, where a supersession had led them there before the leavers said through them what the
    /// row says.
    pub(super) fn lead_again(&mut self, at: MemoryId, leavers: &[Holder], rule: RuleId) -> Result<()> {
        let ns = self.ns();
        let stays = sound(self.ledger.tx.vitals(ns, at))?.flatten().map(|row| row.times);
        // Where the row was united with another one, what the leavers had replaced may come back from there.
        let stands = stays.is_some_and(|times| times.merged_into().is_none());
        let wrote = leavers.iter().filter(|leaver| leaver.has_text());
        for (key, leaver) in wrote.filter_map(|leaver| Some((leaver.key.as_deref()?, leaver))) {
            let mut numbers = BTreeMap::new();
            for (id, number) in self.ledger.tx.holders_of_key(ns, key)? {
                let by = sound(self.ledger.tx.vitals(ns, id))?.flatten().and_then(|row| row.times.superseded);
                // A pass that unites rows leaves a key its own text; a caller leads it to that of the other row.
                let is_led = by.is_some_and(|by| {
                    by.by == at && (by.mode != SupersedeMode::Duplicate || leaver.text.is_none())
                });
                numbers.extend((is_led && (stands || leaver.from == Some(id))).then_some((id, number)));
            }
            let Some(from) = self.latest_first(numbers.keys().copied().collect())?.into_iter().next() else {
                continue;
            };
            let Some(number) = numbers.remove(&from) else { continue };
            let before = sound(self.ledger.tx.holder(ns, from, number))?.flatten();
            let was_led = before.map_or(Ok(false), |before| self.was_led(at, (from, before)))?;
            if was_led && self.says_nothing(key)? {
                self.apply(rule, Change::LeadAgain { id: from, number })?;
            }
        }
        Ok(())
    }

    /// What a step of the journal has left of a row that was to be superseded by its name; none where the row has come back since,
    /// or something else has taken its place.
    fn left_of(&self, step: &JournalRow) -> Result<Option<NamedLeft>> {
        let Some(id) = step.subject.filter(|_| step.is_named_supersession()) else { return Ok(None) };
        let Some(by) = step.evidence.members.first().copied() else { return Ok(None) };
        let Some(row) = sound(self.ledger.tx.vitals(self.ns(), id))? else {
            return Ok(Some(NamedLeft::Damaged(id)));
        };
        let Some(row) = row else {
            let stone = sound(self.ledger.tx.tombstone(self.ns(), id))?.flatten();
            let is_own = stone.is_some_and(|stone| stone.made_by.is_some() && stone.made_by == step.run);
            let since = self.ledger.told_since(self.ns(), id, step.seq)?;
            let is_elsewhere = since.iter().any(|later| matches!(later.op, Op::Restore | Op::Supersede));
            return Ok((!is_elsewhere).then_some(NamedLeft::Gone { id, by, is_own }));
        };
        let (named, mut by) = (by, by);
        for later in self.ledger.told_since(self.ns(), id, step.seq)? {
            by = later.led_on().filter(|(_, gone)| *gone == by).map_or(by, |(to, _)| to);
        }
        // A later supersession is another one. One that an earlier write had asked for, and the step has only put back, is older.
        let by_step =
            row.times.superseded.filter(|superseded| superseded.at == step.at && superseded.by == by);
        // Where it was led on to what was announced for it, which may have been said in the same instant, it is back.
        if by_step.is_none() || (by != named && self.was_announced_for(id, &row, by)?) {
            return Ok(None);
        }
        Ok(Some(NamedLeft::Superseded { id, by }))
    }

    /// Restores a row whose superseder stays, and which these imports had named.
    fn take_back_named(&mut self, id: MemoryId, by: MemoryId, runs: &BTreeSet<RunId>) -> Result<TakenBack> {
        let stays = |why: &str| TakenBack {
            lost: vec![format!("{id} stays superseded: {why}")],
            ..TakenBack::default()
        };
        let end = self.ledger.merged_on(self.ns(), by)?.last().copied().unwrap_or(by);
        let stands = sound(self.ledger.tx.vitals(self.ns(), end))?.flatten();
        // What was announced before is no newer fact, whether its instant has come or not.
        if stands.is_some_and(|row| row.times.superseded.is_some() && row.times.told().is_none()) {
            // An old fact does not come back beside the newest.
            return Ok(stays(&format!("{end}, which took its place, has been replaced since")));
        }
        if !self.ledger.is_whole(self.ns(), id)? {
            return Ok(stays("it is damaged"));
        }
        let Some(change) = inverse(Op::Supersede, id) else { return Ok(TakenBack::default()) };
        let plan = self.plan_on((by, self.now()))?;
        if let Some(row) = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten()
            && self.has_begun((id, &row), &plan)?
            && self.lead_on_next((id, &row), by, &plan)?
        {
            self.go_on_apart(id, (by, &plan))?;
            return Ok(TakenBack::default());
        }
        // Its keys do not go on to lead to what follows the row that had taken its place.
        let led = self.led_along(id, by)?.into_iter().filter(|(at, _)| *at != by);
        let led = Vec::from_iter(led.map(|(at, holder)| (at, holder.number)));
        self.ledger.leaving.extend(&led);
        // Every change takes a number of the journal. What is refused half-way is taken back with all else.
        let untouched = self.ledger.clock.next_seq;
        match self.apply(RuleId::RESTORE, change) {
            Ok(applied) => {
                self.take_holders(&led, &|_| true, RuleId::UNDO, TombstoneReason::Undone)?;
                // The row that had taken its place may go with the last of its writers, who return.
                self.keep_replaced(&applied, id, runs)?;
                self.go_on_apart(id, (by, &plan))?;
                let mut live = self.restore_predecessors(&applied, runs)?;
                let back = applied.restored.unwrap_or_default();
                live.extend(back.is_live().then_some(id));
                Ok(TakenBack { live, lost: back.lost(id) })
            }
            Err(Error::Conflict { why, .. }) if self.ledger.clock.next_seq == untouched => {
                self.ledger.leaving.retain(|leaving| !led.contains(leaving));
                Ok(stays(&why))
            }
            Err(other) => Err(other),
        }
    }

    /// What somebody else had let erased rows replace is replaced by the row `id` now, to which their last writers have returned; the
    /// supersessions of these imports are not among it.
    fn keep_replaced(&mut self, applied: &Applied, id: MemoryId, runs: &BTreeSet<RunId>) -> Result<()> {
        let ns = self.ns();
        for erased in &applied.erased {
            for (old, _) in erased.predecessors.iter().filter(|(_, mode)| *mode != SupersedeMode::Duplicate) {
                let times = sound(self.ledger.tx.vitals(ns, *old))?.flatten().map(|row| row.times);
                let step = self.superseding_step(*old)?;
                let is_of_run = |step: JournalRow| step.run.is_some_and(|run| runs.contains(&run));
                let is_there = times.is_some_and(|times| times.superseded_by() == Some(erased.id));
                if *old == id || !is_there || step.is_none_or(is_of_run) || !self.ledger.is_whole(ns, *old)? {
                    continue;
                }
                self.lead_apart(*old, erased.id, id)?;
            }
        }
        Ok(())
    }

    /// Somebody has forgotten what writers say through their keys, and others stay on the row: what the writers had replaced there
    /// stays superseded for good, by a tombstone, whatever becomes of the row.
    pub(super) fn settle_of_leavers(&mut self, at: MemoryId, leavers: &[Holder], rule: RuleId) -> Result<()> {
        let mut replaced = self.replaced_by_leavers(at, leavers)?;
        replaced.append(&mut self.led_by_import(at, leavers)?);
        if replaced.is_empty() {
            return Ok(());
        }
        let stone = Tombstone::bare(self.next_id()?, self.now(), TombstoneReason::Forget);
        self.ledger.keep_tombstone(&self.context, &stone)?;
        for (id, _) in replaced {
            let onward = Box::new(Onward::apart(at, stone.id, self.now()));
            self.apply(rule, Change::LeadOn { id, onward })?;
        }
        Ok(())
    }

    /// What the keys of leavers had said before a line of an import led them to a row, each with the row that has superseded it: the undo
    /// of the import would bring it back.
    fn led_by_import(&self, at: MemoryId, leavers: &[Holder]) -> Result<Vec<(MemoryId, MemoryId)>> {
        let ns = self.ns();
        let is_of_import = &mut |holder: &Holder| holder.has_text() && holder.run.is_some();
        let mut led = Vec::new();
        if !leavers.iter().any(|leaver| leaver.follows) || !self.ledger.any_holder(ns, at, is_of_import)? {
            return Ok(led);
        }
        for from in leavers.iter().filter(|leaver| leaver.follows).filter_map(|leaver| leaver.from) {
            let times = sound(self.ledger.tx.vitals(ns, from))?.flatten().map(|row| row.times);
            let by = times.and_then(|times| times.superseded);
            let is_there = by.is_some_and(|by| by.by == at && by.mode != SupersedeMode::Duplicate);
            if is_there && self.ledger.is_whole(ns, from)? {
                led.push((from, at));
            }
        }
        Ok(led)
    }

    /// The rows that writers had replaced through their keys by a row, or by one that was merged into the row since, and which
    /// these writers have left; the latest first, each with the row that has superseded it. A row of which somebody is still there
    /// is not among them.
    pub(super) fn replaced_by_leavers(
        &mut self,
        at: MemoryId,
        leavers: &[Holder],
    ) -> Result<Vec<(MemoryId, MemoryId)>> {
        let (ns, mut replaced) = (self.ns(), Vec::new());
        let wrote = leavers.iter().filter(|holder| !holder.follows);
        for key in wrote.filter_map(|holder| holder.key.as_deref()) {
            for (id, _) in self.ledger.tx.holders_of_key(ns, key)? {
                let by = sound(self.ledger.tx.vitals(ns, id))?.flatten().and_then(|row| row.times.superseded);
                replaced.extend(by.filter(|by| by.mode != SupersedeMode::Duplicate).map(|by| (id, by.by)));
            }
        }
        let by = BTreeMap::from_iter(replaced);
        let mut left = Vec::new();
        for id in self.latest_first(by.keys().copied().collect())? {
            let Some(by) = by.get(&id) else { continue };
            let merged = self.ledger.merged_on(self.ns(), *by)?;
            let Some(place) = merged.iter().position(|row| *row == at) else { continue };
            let way = merged.get(..=place).unwrap_or_default();
            if self.ledger.is_whole(ns, id)? && !self.is_still_at(way, id)? {
                left.push((id, *by));
            }
        }
        Ok(left)
    }

    /// Whether a writer of a row is among those of the last row of a way, by its key, or because the writer went this way.
    fn is_still_at(&mut self, way: &[MemoryId], id: MemoryId) -> Result<bool> {
        let ns = self.ns();
        let mut writers = self.ledger.readable_holders(ns, id)?;
        writers.retain(Holder::has_text);
        let keys: Vec<String> = writers.iter().filter_map(|holder| holder.key.clone()).collect();
        let has_keyless = keys.len() < writers.len();
        if !self.copies_at_end(id, Some(writers), way)?.is_empty() {
            return Ok(true);
        }
        for key in keys {
            if self.ledger.tx.holders_of_key(ns, &key)?.iter().any(|(there, _)| way.last() == Some(there)) {
                return Ok(true);
            }
        }
        Ok(has_keyless && self.is_of_same_writer(id, way)?)
    }

    /// Whether a writer without a key, who said something else in the place of a row by its id, is still on the row which that made.
    fn is_of_same_writer(&self, id: MemoryId, way: &[MemoryId]) -> Result<bool> {
        let [by] = way else { return Ok(false) };
        let maker = sound(self.ledger.tx.holder(self.ns(), *by, 0))?.flatten();
        if !maker.is_some_and(|maker| maker.key.is_none() && maker.wrote_row_text()) {
            return Ok(false);
        }
        let step = self.superseding_step(id)?.filter(|step| step.rule == RuleId::REVISE);
        Ok(step.is_some_and(|step| step.evidence.members.first() == Some(by)))
    }

    /// The copies of writers of a row in the last row of a way, on which each row has taken in the one before; of all writers, if
    /// it does not matter which.
    fn copies_at_end(
        &mut self,
        from: MemoryId,
        writers: Option<Vec<Holder>>,
        way: &[MemoryId],
    ) -> Result<Vec<Holder>> {
        let (mut came, mut writers) = (from, writers);
        for by in way {
            let mut copies = self.ledger.copies_from(self.ns(), *by, came)?;
            copies
                .retain(|copy| writers.iter().flatten().any(|one| copy.is_copy_of(one)) || writers.is_none());
            (came, writers) = (*by, Some(copies));
        }
        Ok(writers.unwrap_or_default())
    }

    /// Rows by the instants of their writes, the latest first, each once. The id decides between equal instants.
    fn latest_first(&self, mut ids: Vec<MemoryId>) -> Result<Vec<MemoryId>> {
        ids.sort_unstable();
        ids.dedup();
        let mut dated = Vec::with_capacity(ids.len());
        for id in ids {
            let vitals = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
            dated.push((vitals.map(|vitals| vitals.times.recorded_at), id));
        }
        dated.sort_unstable_by(|a, b| b.cmp(a));
        Ok(dated.into_iter().map(|(_, id)| id).collect())
    }

    /// Restores a row, and says whether it is live again.
    pub(super) fn is_back(&mut self, change: Change) -> Result<bool> {
        let back = self.apply(RuleId::RESTORE, change)?.restored;
        Ok(back.is_some_and(|back| back.is_live()))
    }
}
