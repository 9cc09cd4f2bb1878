//! What an undo leaves of supersessions at instants ahead: each text that was announced takes the place again of what its own key
//! says, and of nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::ahead::Step;
use crate::ledger::{Change, Onward, RestoreTo};
use crate::model::{Holder, JournalRow, MemoryId, Overtaken, RuleId, Time, Times, Vitals};
use crate::store::{Rows, Traces};

/// Texts that are to come one after the other, each with its instant.
pub(super) type Plan = [(MemoryId, Time)];

impl NamespaceWriter<'_, '_, '_> {
    /// What was to follow an erased row at instants that lay ahead when that was said.
    pub(super) fn plan_after(&mut self, onward: Option<&Onward>) -> Result<Vec<(MemoryId, Time)>> {
        let Some(first) = onward.and_then(Onward::told) else { return Ok(Vec::new()) };
        let mut plan = vec![first];
        plan.append(&mut self.plan_on(first)?);
        Ok(plan)
    }

    /// What was announced to follow a row that comes at an instant, one after the other, with what has corrected or merged each of these.
    pub(super) fn plan_on(&self, first: (MemoryId, Time)) -> Result<Vec<(MemoryId, Time)>> {
        let (mut plan, mut next) = (Vec::new(), Some(first));
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while let Some((id, comes)) = next.take().filter(|(id, _)| seen.insert(*id)) {
            let way = self.ledger.stands_for(self.ns(), id, None)?;
            plan.extend(way.iter().skip(1).map(|id| (*id, comes)));
            let row = sound(self.ledger.tx.vitals(self.ns(), way.last().copied().unwrap_or(id)))?.flatten();
            next = row.and_then(|row| row.times.told()).map(|told| (told.by, told.end));
            plan.extend(next);
        }
        Ok(plan)
    }

    /// The plan of the row by way of which a row was brought together with what takes its place: it may be in another order than what the
    /// key of the row has announced.
    pub(super) fn plan_by_way(&mut self, times: &Times) -> Result<Vec<(MemoryId, Time)>> {
        let told = times.told().and_then(|told| Some((told.via?, told.end)));
        told.map_or(Ok(Vec::new()), |from| self.plan_on(from))
    }

    /// What a row that an erased one had superseded goes on to where texts were to follow that: it ends for what was announced for it.
    /// What all its writers say by now stays in its place; of some of them, those leave it.
    pub(super) fn back_to_plan(
        &mut self,
        (id, vitals): (MemoryId, &Vitals),
        (onward, plan): (&Onward, &Plan),
    ) -> Result<Option<Onward>> {
        let now = self.now();
        let said = if vitals.times.from() > now { Vec::new() } else { self.said_now(id, plan)? };
        Ok(match said.iter().flatten().max() {
            Some((_, by)) if said.iter().all(Option::is_some) => Some(Onward::apart(onward.gone(), *by, now)),
            Some(_) => None,
            None => {
                let next = self.next_on((id, vitals), (onward, plan))?;
                next.map(|next| onward.replaced_as(next))
            }
        })
    }

    /// For each writer of a row that is not back yet, the row in which its key says another text by now, with the instant of that, if it
    /// does. What comes by the plan has its own place.
    fn said_now(&self, id: MemoryId, plan: &Plan) -> Result<Vec<Option<(Time, MemoryId)>>> {
        let mut said = Vec::new();
        for writer in self.ledger.readable_holders(self.ns(), id)?.into_iter().filter(Holder::has_text) {
            let meant = writer.key.map(|key| sound(self.meant_by_key(&key))).transpose()?;
            let is_planned = |other: MemoryId| plan.iter().any(|(planned, _)| *planned == other);
            let meant = meant.flatten().flatten().filter(|found| found.id != id && !is_planned(found.id));
            let Some(meant) = meant.filter(|found| found.vitals.times.visible_live(self.now())) else {
                said.push(None);
                continue;
            };
            let holder = sound(self.ledger.tx.holder(self.ns(), meant.id, meant.number))?.flatten();
            let is_said = holder.is_some_and(|holder| holder.has_text());
            said.push(is_said.then_some((meant.vitals.times.recorded_at, meant.id)));
        }
        Ok(said)
    }

    /// What was to take the place of a row before an erased one did: what the row keeps, what its own keys have announced of what was to
    /// follow the erased row, and what was said of the erased row, if the two have a key in common or a caller had let the erased row
    /// take the place.
    fn next_on(
        &mut self,
        (id, vitals): (MemoryId, &Vitals),
        (onward, plan): (&Onward, &Plan),
    ) -> Result<Option<Overtaken>> {
        let last = self.last_supersession(id)?;
        let is_by_caller = last.is_some_and(|step| step.rule == RuleId::SUPERSEDE && step.run.is_none());
        let holders = self.staying_holders(id)?;
        let keys = |holders: &[Holder]| -> BTreeSet<String> {
            holders
                .iter()
                .filter(|holder| holder.has_text())
                .filter_map(|holder| holder.key.clone())
                .collect()
        };
        let is_said = onward.via().is_none() && !keys(&holders).is_disjoint(&keys(onward.holders()));
        let follows = |place| is_by_caller || (place == 0 && is_said);
        let kept = self.kept_by(id, vitals)?;
        for next in self.follows_on((kept, &holders), (plan, onward.at()), follows)? {
            let comes = comes_after(&vitals.times, &holders, &next) && !self.is_taken_back(next.by)?;
            if comes && !self.ledger.leads_to(self.ns(), next.by, id)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    /// The holders of a row without the writers that are about to leave it, as long as others stay.
    fn staying_holders(&self, id: MemoryId) -> Result<Vec<Holder>> {
        let mut holders = self.ledger.readable_holders(self.ns(), id)?;
        let mut leaving = BTreeSet::new();
        for holder in holders.iter().filter(|holder| holder.has_text()) {
            let leaves = self.ledger.is_leaving(self.ns(), id, holder.number)?;
            leaving.extend(leaves.then_some(holder.number));
        }
        let stays = |holder: &Holder| !leaving.contains(&holder.number);
        if holders.iter().any(|holder| holder.has_text() && stays(holder)) {
            holders.retain(stays);
        }
        Ok(holders)
    }

    /// What is to take the place of a row that keeps this and has these writers: what it keeps, and of a plan what its keys have
    /// announced, or what follows by its place in the plan. It is in the order of the instants; of two for one instant, the first in the
    /// plan comes first.
    fn follows_on(
        &mut self,
        (kept, holders): (Vec<Overtaken>, &[Holder]),
        (plan, since): (&Plan, Time),
        follows: impl Fn(usize) -> bool,
    ) -> Result<Vec<Overtaken>> {
        let its: BTreeMap<MemoryId, Overtaken> = kept.iter().map(|one| (one.by, *one)).collect();
        let mut all = Vec::new();
        for (place, (by, end)) in plan.iter().enumerate() {
            let placed = follows(place).then_some((since, None));
            let said = self.announced_via(*by, holders)?.or(placed);
            let said = said.map(|(at, via)| Overtaken { by: *by, end: *end, at: at.min(since), via });
            // It may have been told for two instants, of which the first counts.
            let both = its.get(by).copied().into_iter().chain(said);
            all.extend(both.min_by_key(|one| one.end));
        }
        let planned: BTreeSet<MemoryId> = plan.iter().map(|(by, _)| *by).collect();
        all.extend(kept.into_iter().filter(|one| !planned.contains(&one.by)));
        all.sort_by_key(|one| one.end);
        Ok(all)
    }

    /// What a row keeps, and those whose places it is to take, of what is still to come, each by what comes in its place by now, the
    /// first of each.
    fn kept_by(&mut self, id: MemoryId, row: &Vitals) -> Result<Vec<Overtaken>> {
        let (mut kept, mut known) = (Vec::new(), BTreeSet::new());
        for one in self.ledger.overtaken(self.ns(), id, row)? {
            let by = self.comes_as(id, &one)?.filter(|by| known.insert(*by));
            kept.extend(by.map(|by| Overtaken { by, ..one }));
        }
        Ok(kept)
    }

    /// What comes in the place of the memory that was to take the place of a row, but for what is taken back itself; none if that was called
    /// off.
    fn comes_as(&mut self, id: MemoryId, kept: &Overtaken) -> Result<Option<MemoryId>> {
        // What has brought the two together may have gone as an old version, which takes nothing back.
        if let Some(via) = kept.via
            && self.is_taken_back(via)?
        {
            return Ok(None);
        }
        let way = self.ledger.stands_for(self.ns(), kept.by, None)?;
        for by in way.into_iter().rev() {
            let row = sound(self.ledger.tx.vitals(self.ns(), by))?.flatten();
            let row = row.filter(|row| row.times.removed_at.is_none());
            let Some(row) = row else { continue };
            if self.is_taken_back(by)? {
                continue;
            }
            // What has ended by now takes the place all the same. What the row itself has brought along does not once it ended before
            // its instant.
            let comes = kept.via != Some(id) || row.times.until() >= kept.end;
            return Ok((comes && !self.is_called_off(by, &row.times)?).then_some(by));
        }
        Ok(None)
    }

    /// Lets what was announced for a row take its place again, now that the row has left the row `by`, which had taken its place and after
    /// which this plan was to come: what `by` had brought together with what was announced for the row parts again. What `by` says in the
    /// place of others as well goes on as before.
    pub(super) fn go_on_apart(&mut self, id: MemoryId, (by, plan): (MemoryId, &Plan)) -> Result<()> {
        let (ns, now) = (self.ns(), self.now());
        self.go_on(id, plan)?;
        let told = self.told_of(id, (by, plan))?;
        let stays = sound(self.ledger.tx.vitals(ns, by))?.flatten();
        let Some(stays) = stays.filter(|_| !told.is_empty() && !plan.is_empty()) else { return Ok(()) };
        // Where it goes as well, all that it had brought together parts with it.
        if self.is_taken_back(by)? {
            return Ok(());
        }
        let mut others = self.told_of(by, (by, plan))?;
        for before in self.ledger.tx.superseded_by(ns, by)? {
            others.append(&mut self.told_of(before, (by, plan))?);
        }
        let leaves: BTreeSet<MemoryId> = told.difference(&others).copied().collect();
        let mut goes_on = Vec::new();
        for (at, _) in [(by, now)].iter().chain(plan) {
            let told = sound(self.ledger.tx.vitals(ns, *at))?.flatten().and_then(|row| row.times.told());
            goes_on.extend(told.filter(|one| one.via == Some(by) && !leaves.contains(&one.by)));
        }
        for one in stays.overtaken.iter().filter(|one| one.via == Some(by)) {
            let comes = self.comes_as(by, one)?;
            goes_on.extend(Some(*one).filter(|_| comes.is_none_or(|comes| !leaves.contains(&comes))));
        }
        self.ledger.part_overtaken(&self.context, (by, id), &[])?;
        self.ledger.part_overtaken(&self.context, (by, by), &goes_on)?;
        for (next, _) in plan {
            self.ledger.part_overtaken(&self.context, (*next, by), &[])?;
        }
        let whole = Vec::from_iter([(by, now)].iter().chain(plan).copied());
        self.part_plan(&[by, id], &[id], &whole)
    }

    /// Whether a row was taken back, or all its writers are about to leave it for that.
    fn is_taken_back(&self, id: MemoryId) -> Result<bool> {
        if !self.ledger.tx.has_row(self.ns(), id)? {
            let stone = sound(self.ledger.tx.tombstone(self.ns(), id))?.flatten();
            return Ok(stone.is_some_and(|stone| stone.reason.is_taken_back()));
        }
        // Mostly the first of them stays.
        let (mut any, mut stays) = (false, Ok(false));
        self.ledger.any_holder(self.ns(), id, &mut |writer| {
            if writer.has_text() {
                any = true;
                stays = self.ledger.is_leaving(self.ns(), id, writer.number).map(|leaves| !leaves);
            }
            !matches!(stays, Ok(false))
        })?;
        Ok(any && !stays?)
    }

    /// What was to take the place of a row, and of such a text in its turn: what they keep, what the rows say, and what their writers have
    /// announced of a plan; but nothing that the row `by` has brought together.
    fn told_of(&mut self, id: MemoryId, (by, plan): (MemoryId, &Plan)) -> Result<BTreeSet<MemoryId>> {
        let (mut all, mut next) = (BTreeSet::new(), vec![id]);
        while let Some(at) = next.pop() {
            let Some(row) = sound(self.ledger.tx.vitals(self.ns(), at))?.flatten() else { continue };
            // What others keep whose place such a text is to take may have come to them by way of the row `by`.
            let kept = if at == id { self.kept_by(at, &row)? } else { row.overtaken };
            let told = kept.into_iter().chain(row.times.told());
            let mut told = Vec::from_iter(told.filter(|one| one.via != Some(by)).map(|one| one.by));
            let later = match plan.iter().position(|(planned, _)| *planned == at) {
                Some(place) => self.later_in(plan, place)?,
                None => plan,
            };
            told.append(&mut self.announced_in(at, later)?);
            next.extend(told.into_iter().filter(|later| *later != id && all.insert(*later)));
        }
        Ok(all)
    }

    /// The texts of a plan that the writers of a row have announced.
    fn announced_in(&self, id: MemoryId, plan: &Plan) -> Result<Vec<MemoryId>> {
        let mut writers = self.ledger.readable_holders(self.ns(), id)?;
        writers.retain(Holder::has_text);
        let mut announced = Vec::new();
        for (later, _) in plan.iter().filter(|(later, _)| *later != id) {
            announced.extend(self.is_announced_for(*later, &writers)?.then_some(*later));
        }
        Ok(announced)
    }

    /// Lets what was announced for a row take its place again, now that the row is back: what the row keeps, and what its keys have
    /// announced of a plan.
    pub(super) fn go_on(&mut self, id: MemoryId, plan: &Plan) -> Result<()> {
        let Some(row) = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten() else { return Ok(()) };
        if row.times.removed_at.is_some() || row.times.superseded.is_some() {
            return Ok(());
        }
        for next in self.comes_next((id, &row), plan)? {
            let step = Step { since: Some(next.at), via: next.via, ..Step::new(id, next.by, next.end) };
            // Every change takes a number of the journal. What is refused half-way is taken back with all else.
            let untouched = self.ledger.clock.next_seq;
            match self.replace_at(step) {
                Err(Error::Conflict { .. }) if self.ledger.clock.next_seq == untouched => {}
                // What takes the place may have been replaced itself by now.
                done => return done.and_then(|()| self.lead_on_again(next.by)),
            }
        }
        Ok(())
    }

    /// What was to take the place of a row, the first first: what the row keeps, and what its keys have announced of a plan.
    fn comes_next(&mut self, (id, row): (MemoryId, &Vitals), plan: &Plan) -> Result<Vec<Overtaken>> {
        let (now, holders) = (self.now(), self.staying_holders(id)?);
        let kept = self.kept_by(id, row)?;
        let mut next = self.follows_on((kept, &holders), (plan, now), |_| false)?;
        next.retain(|next| next.by != id && comes_after(&row.times, &holders, next));
        let mut stay = Vec::with_capacity(next.len());
        for next in next {
            stay.extend((!self.is_taken_back(next.by)?).then_some(next));
        }
        Ok(stay)
    }

    /// Parts what erased rows had brought together in a plan: each text goes on to what was announced for it, if anything was. So does a
    /// text that was to be replaced first by one of the rows that are back.
    pub(super) fn part_plan(&mut self, gone: &[MemoryId], back: &[MemoryId], plan: &Plan) -> Result<()> {
        let mut parted = Vec::new();
        for (place, (old, _)) in plan.iter().enumerate() {
            let row = sound(self.ledger.tx.vitals(self.ns(), *old))?.flatten();
            let row = row.filter(|row| row.times.told().is_some_and(|told| told.end <= self.now()));
            if let Some(row) = row
                && self.is_to_part(&row, gone, back)?
            {
                self.part_begun((*old, &row), self.later_in(plan, place)?)?;
            }
        }
        for (place, (old, _)) in plan.iter().enumerate().rev() {
            let Some(row) = sound(self.ledger.tx.vitals(self.ns(), *old))?.flatten() else { continue };
            if row.times.superseded.is_some() {
                let has_begun = row.times.told().is_some_and(|told| told.end <= self.now());
                if has_begun || !self.is_to_part(&row, gone, back)? {
                    continue;
                }
                self.apply(RuleId::RESTORE, Change::Restore { id: *old, to: RestoreTo::Write })?;
            } else if self.announced_in(*old, plan)?.is_empty() {
                continue;
            }
            parted.push((*old, self.later_in(plan, place)?));
        }
        // A key that was led along leads no more by then. What a text goes on to may depend on what went on to that text.
        parted.into_iter().rev().try_for_each(|(id, later)| self.go_on(id, later))
    }

    /// The texts of a plan that may follow the one at a place. What its key has not announced may be to end before it begins.
    fn later_in<'p>(&self, plan: &'p Plan, place: usize) -> Result<&'p Plan> {
        let Some((id, _)) = plan.get(place) else { return Ok(&[]) };
        let is_announced = &mut |writer: &Holder| writer.has_text() && writer.replaces_ahead();
        let is_announced = sound(self.ledger.any_holder(self.ns(), *id, is_announced))? == Some(true);
        let first = if is_announced { place + 1 } else { 0 };
        Ok(plan.get(first..).unwrap_or_default())
    }

    /// Parts a row from what has taken its place already: it is led on to what was announced for it, with its keys, or comes back.
    fn part_begun(&mut self, (id, row): (MemoryId, &Vitals), later: &Plan) -> Result<()> {
        let Some(told) = row.times.told() else { return Ok(()) };
        // What has taken its place comes next again, if that was to come for others who stay.
        let back = Vitals { times: Times { superseded: None, ..row.times }, ..row.clone() };
        if !self.lead_on_next((id, &back), told.by, later)? {
            self.take_led(id, told.by)?;
            self.apply(RuleId::RESTORE, Change::Restore { id, to: RestoreTo::Undo })?;
        }
        Ok(())
    }

    /// Leads a row, which another one has superseded, on to what was announced for it, if anything was.
    pub(super) fn lead_on_next(
        &mut self,
        (id, row): (MemoryId, &Vitals),
        by: MemoryId,
        later: &Plan,
    ) -> Result<bool> {
        for next in self.comes_next((id, row), later)? {
            if self.ledger.leads_to(self.ns(), next.by, id)? {
                continue;
            }
            if next.by != by {
                self.take_led(id, by)?;
            }
            let onward = Box::new(Onward::apart(by, next.by, self.now()).replaced_as(next));
            self.apply(RuleId::RESTORE, Change::LeadOn { id, onward })?;
            self.lead_on_again(id)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether what was announced for a row, of what it keeps and of a plan, has begun.
    pub(super) fn has_begun(&mut self, of: (MemoryId, &Vitals), plan: &Plan) -> Result<bool> {
        let now = self.now();
        Ok(self.comes_next(of, plan)?.first().is_some_and(|next| next.end <= now))
    }

    /// Whether a row goes on to something else than to what is to take its place, or has taken it, now that some rows are gone and others
    /// are back.
    fn is_to_part(&self, row: &Vitals, gone: &[MemoryId], back: &[MemoryId]) -> Result<bool> {
        let Some(told) = row.times.told() else { return Ok(false) };
        let is_gone = match told.via {
            // What had brought the two together may have been corrected since by a row that is gone.
            Some(via) => {
                let way = self.ledger.stands_for(self.ns(), via, None)?;
                way.iter().any(|row| gone.contains(row)) || self.is_taken_back(via)?
            }
            None => false,
        };
        let comes_first =
            |one: &Overtaken| one.end <= told.end && one.by != told.by && back.contains(&one.by);
        Ok(is_gone || row.overtaken.iter().any(comes_first))
    }

    /// Since when it has been known that one of the keys of a row has announced a text, if one has. Where the key only leads to the row,
    /// the row from which it was led brings the two together.
    fn announced_via(
        &mut self,
        by: MemoryId,
        holders: &[Holder],
    ) -> Result<Option<(Time, Option<MemoryId>)>> {
        let (own, led): (Vec<&Holder>, Vec<_>) = holders.iter().partition(|holder| holder.has_text());
        for holder in own.into_iter().chain(led).filter(|holder| holder.key.is_some()) {
            // What can't be read announces nothing.
            if let Some(announced) = sound(self.own_ahead(by, holder))?.flatten() {
                return Ok(Some((announced.since, holder.from.filter(|_| !holder.has_text()))));
            }
        }
        Ok(None)
    }

    /// Whether another row was announced for a row before others came first.
    pub(super) fn was_announced_for(&self, id: MemoryId, row: &Vitals, by: MemoryId) -> Result<bool> {
        let holders = self.ledger.readable_holders(self.ns(), id)?;
        Ok(row.overtaken.iter().any(|one| one.by == by) || self.is_announced_for(by, &holders)?)
    }

    /// Whether a row was written to take the place of what one of these keys says, at an instant that lay ahead.
    pub(super) fn is_announced_for(&self, id: MemoryId, holders: &[Holder]) -> Result<bool> {
        for holder in holders.iter().filter(|holder| holder.key.is_some()) {
            // What can't be read announces nothing.
            if sound(self.own_ahead(id, holder))?.flatten().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a caller has called a text off, which was to come, by a restoration of what the key had said before.
    pub(super) fn is_called_off(&self, id: MemoryId, times: &Times) -> Result<bool> {
        if times.valid_from.is_none() {
            return Ok(false);
        }
        let step = self.superseding_step(id)?.filter(|step| step.at < times.from());
        Ok(step.is_some_and(|step| step.rule == RuleId::RESTORE && step.run.is_none()))
    }

    /// The step of the journal by which a row was superseded, before it was led on from rows that have gone.
    pub(super) fn superseding_step(&self, id: MemoryId) -> Result<Option<JournalRow>> {
        self.ledger.last_supersession(self.ns(), id, |step| step.led_on().is_none())
    }

    /// The last step of the journal by which another row took the place of this one.
    pub(super) fn last_supersession(&self, id: MemoryId) -> Result<Option<JournalRow>> {
        self.ledger.last_supersession(self.ns(), id, |_| true)
    }

    /// What a caller's restoration had called off for erased rows is replaced by the rows with the same key that are back in
    /// their place.
    pub(super) fn keep_called_off(
        &mut self,
        gone: MemoryId,
        called_off: &[MemoryId],
        back: &BTreeSet<MemoryId>,
    ) -> Result<()> {
        for id in called_off {
            let holders = self.ledger.readable_holders(self.ns(), *id)?.into_iter();
            let keys: Vec<_> = holders.filter_map(|holder| holder.key).collect();
            let mut new = None;
            for row in back {
                for key in &keys {
                    new = new.or(self.ledger.tx.holds_key(self.ns(), key, *row)?.then_some(*row));
                }
            }
            match new {
                Some(new) => {
                    let onward = Box::new(Onward::apart(gone, new, self.now()));
                    self.apply(RuleId::RESTORE, Change::LeadOn { id: *id, onward })?;
                }
                None => drop(self.is_back(Change::Restore { id: *id, to: RestoreTo::Undo })?),
            }
        }
        Ok(())
    }
}

/// Whether what was to take the place of a row comes after the row was written, and after the row itself comes if one of these writers
/// has announced it. A row that others let come at an instant ahead may be replaced before.
fn comes_after(times: &Times, holders: &[Holder], next: &Overtaken) -> bool {
    let is_announced = holders.iter().any(|holder| holder.has_text() && holder.replaces_ahead());
    next.end > times.recorded_at && (!is_announced || next.end >= times.from())
}
