//! Supersessions at instants ahead: which are called off as an earlier text comes back, and what stays known of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::index::leads_ahead;
use crate::ledger::applied::Erased;
use crate::ledger::change::{Moves, RestoreTo, Superseding};
use crate::ledger::writer::{Context, Ledger, Why};
use crate::model::{Announced, Holder, MemoryId, Overtaken, SupersedeMode, Time, Times, Vitals};
use crate::store::{NsId, Rows};

/// What keys have said in the place of a row that a caller brings back, and what they have announced.
#[derive(Default)]
pub(super) struct CalledOff {
    /// The rows that only these keys have written, or keys that lead to what these keys alone have written.
    pub(super) own: Vec<MemoryId>,
    /// The rows that were to end for what is called off, or are called off themselves.
    pub(super) steps: Vec<ToEnd>,
    /// What went with that.
    pub(super) erased: Vec<Erased>,
}

/// What the keys of a row that a caller brings back say now and have announced: whether only these keys have written it.
type Spoken = BTreeMap<MemoryId, bool>;

/// A row that another one is to replace at an instant ahead.
#[derive(Clone)]
pub(super) struct ToEnd {
    row: MemoryId,
    /// When it begins itself.
    from: Time,
    next: MemoryId,
    /// What stands for that row by now.
    comes: MemoryId,
    announced: Announced,
    /// Whether only the keys have written it.
    is_own: bool,
    /// Of a row of others, what its own keys are to say after that, and the end that the row gets by it.
    onward: Option<(MemoryId, Announced)>,
}

impl Ledger<'_, '_> {
    /// A caller brings back an earlier text of keys that may have announced later ones. What the keys say now, and what they have
    /// announced, is to become an earlier text itself: nothing takes its place at an instant ahead any more, and it takes no other
    /// place. A row of others that was to end for it ends for what its own keys are to say next, or not at all. What others wrote as
    /// well stays as it is. All that the keys say by now joins the superseders.
    pub(super) fn call_off(
        &mut self,
        context: &Context,
        (id, to): (MemoryId, RestoreTo),
        superseders: &mut BTreeSet<MemoryId>,
        why: &Why,
    ) -> Result<CalledOff> {
        // A pass brings a row back without asking what its keys are to say.
        if to != RestoreTo::Live || context.run.is_some() {
            return Ok(CalledOff::default());
        }
        let spoken = self.spoken(context, id, superseders)?;
        let to_end = self.to_end(context, id, &spoken)?;
        let mut called_off = CalledOff::default();
        for step in &to_end {
            let mut back = self.restore(context, step.row, RestoreTo::Write, why.clone())?;
            self.unbegin_for_gone(context, step.next, step.row, why.rule)?;
            called_off.erased.append(&mut back.erased);
        }
        called_off.steps = to_end;
        let begins = self.begins(context.ns, id)?;
        for (row, is_own) in spoken {
            let times = sound(self.tx.vitals(context.ns, row))?.flatten().map(|row| row.times);
            // What others replace before the restored row comes is what the keys say until then.
            if times.is_some_and(|times| times.superseded.is_some() && (is_own || times.until() <= begins)) {
                superseders.remove(&row);
                continue;
            }
            superseders.insert(row);
            called_off.own.extend(is_own.then_some(row));
        }
        Ok(called_off)
    }

    /// What the keys of a row say now and have announced, as far as a superseder of the row is part of it: a key that has been
    /// taken elsewhere since stays there. A key that leads to what these keys alone have said goes where they go, with what it has
    /// announced itself.
    fn spoken(&self, context: &Context, id: MemoryId, superseders: &BTreeSet<MemoryId>) -> Result<Spoken> {
        let (ns, now) = (context.ns, context.now);
        let (mut spoken, mut keys, mut is_led) = (Spoken::new(), BTreeSet::new(), false);
        let mut next = BTreeSet::new();
        for key in self.readable_holders(ns, id)?.into_iter().filter_map(|holder| holder.key) {
            if !leads_ahead(&*self.tx, ns, (&key, id), now)? {
                next.insert(key);
            }
        }
        while !next.is_empty() {
            for key in std::mem::take(&mut next) {
                let mut rows = Vec::new();
                for (row, _) in self.tx.holders_of_key(ns, &key)? {
                    let times = sound(self.tx.vitals(ns, row))?.flatten().map(|vitals| vitals.times);
                    let stands =
                        |times: Times| times.is_or_will_be_true(now) || times.replaced_ahead(now).is_some();
                    let is_said = row != id && times.is_some_and(stands);
                    rows.extend((is_said && !self.goes_to(ns, row, id, now)?).then_some(row));
                }
                if is_led || rows.iter().any(|row| superseders.contains(row)) {
                    for row in rows {
                        spoken.entry(row).or_insert(false);
                    }
                    keys.insert(key);
                }
            }
            is_led = true;
            let by_others = |holder: &Holder| {
                holder.has_text() && holder.key.as_ref().is_none_or(|key| !keys.contains(key))
            };
            for (row, is_own) in spoken.iter_mut().filter(|(_, is_own)| !**is_own) {
                // Who else wrote a row of which a writer is damaged is unknown.
                *is_own = sound(self.any_holder(ns, *row, &mut |holder| by_others(holder)))? == Some(false);
                let vitals = if *is_own { sound(self.tx.vitals(ns, *row))?.flatten() } else { None };
                // To what nothing replaces, a key leads with all that it says.
                if vitals.is_some_and(|vitals| vitals.times.superseded.is_some()) {
                    let led = self.readable_holders(ns, *row)?.into_iter().filter_map(|holder| holder.key);
                    for key in led.filter(|key| !keys.contains(key)) {
                        if !leads_ahead(&*self.tx, ns, (&key, *row), now)? {
                            next.insert(key);
                        }
                    }
                }
            }
        }
        Ok(spoken)
    }

    /// Whether a row ends at an instant ahead at which another one follows, at once or after others.
    fn goes_to(&self, ns: NsId, row: MemoryId, to: MemoryId, now: Time) -> Result<bool> {
        // Damaged rows could lead in a circle, so no row is visited twice.
        let (mut at, mut seen) = (row, BTreeSet::new());
        while seen.insert(at) {
            let times = sound(self.tx.vitals(ns, at))?.flatten().map(|row| row.times);
            let Some((next, _)) = times.and_then(|times| times.replaced_ahead(now)) else { return Ok(false) };
            let way = self.stands_for(ns, next, Some(to))?;
            if way.contains(&to) {
                return Ok(true);
            }
            at = way.last().copied().unwrap_or(next);
        }
        Ok(false)
    }

    /// A row, and the rows that have corrected or merged it, one after the other, up to a certain one.
    pub(crate) fn stands_for(&self, ns: NsId, id: MemoryId, to: Option<MemoryId>) -> Result<Vec<MemoryId>> {
        let (mut way, mut next, mut seen) = (Vec::new(), Some(id), BTreeSet::new());
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            way.push(at);
            let superseded = sound(self.tx.vitals(ns, at))?.flatten().and_then(|row| row.times.superseded);
            let corrects = superseded.filter(|by| by.mode != SupersedeMode::Replaced);
            next = corrects.map(|by| by.by).filter(|_| to != Some(at));
        }
        Ok(way)
    }

    /// The rows of others that a row is to replace at an instant ahead, or that were to be replaced by what the row has corrected
    /// or merged, but for what comes back.
    fn replaced_by(
        &self,
        context: &Context,
        (row, back): (MemoryId, MemoryId),
        spoken: &Spoken,
    ) -> Result<Vec<ToEnd>> {
        let (ns, mut found, mut next) = (context.ns, Vec::new(), vec![row]);
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::from([back]);
        while let Some(at) = next.pop() {
            if !seen.insert(at) {
                continue;
            }
            for before in self.tx.superseded_by(ns, at)? {
                let Some(vitals) = sound(self.tx.vitals(ns, before))?.flatten() else { continue };
                if vitals.times.superseded.is_some_and(|by| by.mode != SupersedeMode::Replaced) {
                    next.push(before);
                } else if spoken.get(&before) != Some(&true) {
                    found.extend(self.step(context, before, false)?);
                }
            }
        }
        Ok(found)
    }

    /// Whether the keys that wrote a row say or have announced something else by now: neither what they are to say no more, nor
    /// what the row is to replace.
    fn says_other(&self, context: &Context, id: MemoryId, spoken: &Spoken) -> Result<bool> {
        let (ns, now) = (context.ns, context.now);
        let writers = self.readable_holders(ns, id)?.into_iter().filter(Holder::has_text);
        for key in writers.filter_map(|holder| holder.key) {
            for (row, number) in self.tx.holders_of_key(ns, &key)? {
                let times = sound(self.tx.vitals(ns, row))?.flatten().map(|row| row.times);
                let stands = times.is_some_and(|times| times.is_or_will_be_true(now));
                let is_other = row != id && spoken.get(&row) != Some(&true);
                if is_other && stands && self.says(ns, row, number)? && !self.goes_to(ns, row, id, now)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn step(&self, context: &Context, row: MemoryId, is_own: bool) -> Result<Option<ToEnd>> {
        let Some(vitals) = sound(self.tx.vitals(context.ns, row))?.flatten() else { return Ok(None) };
        let Some((next, announced)) = vitals.times.replaced_ahead(context.now) else { return Ok(None) };
        let comes = self.stands_for(context.ns, next, None)?.last().copied().unwrap_or(next);
        Ok(Some(ToEnd { row, from: vitals.times.from(), next, comes, announced, is_own, onward: None }))
    }

    /// When a row begins to be true.
    fn begins(&self, ns: NsId, id: MemoryId) -> Result<Time> {
        Ok(sound(self.tx.vitals(ns, id))?.flatten().map_or(Time::MIN, |row| row.times.from()))
    }

    /// The rows that end at an instant ahead, as what the keys say or have announced takes their place, the last first, so that a
    /// key goes back the way that it went. Of others, these are the rows for which nothing comes any more, and those that another
    /// row of others is to follow.
    fn to_end(&self, context: &Context, id: MemoryId, spoken: &Spoken) -> Result<Vec<ToEnd>> {
        let (ns, now) = (context.ns, context.now);
        let begins = self.begins(ns, id)?;
        let own = || spoken.iter().filter(|(_, is_own)| **is_own).map(|(row, _)| *row);
        let mut steps = BTreeMap::new();
        for row in own() {
            let Some(step) = self.step(context, row, true)? else { continue };
            // What is true before the restored row comes ends as it was announced, but for a text of others that the keys leave.
            let comes = sound(self.tx.vitals(ns, step.comes))?.flatten().map(|row| row.times);
            let leaves =
                spoken.get(&step.comes) == Some(&false) && comes.is_some_and(|times| times.until() > begins);
            if step.announced.end >= begins || leaves {
                steps.insert(row, step);
            }
        }
        let mut to_end: Vec<ToEnd> = steps.values().cloned().collect();
        for row in own() {
            let from = self.begins(ns, row)?;
            let comes = from <= now || from < begins;
            let after = self.after(context, row, &steps)?;
            if comes && after.is_empty() {
                continue;
            }
            for mut step in self.replaced_by(context, (row, id), spoken)? {
                // What was overtaken at its own instant does not come again beside what its keys say by now.
                let is_over =
                    step.from >= step.announced.end && self.says_other(context, step.row, spoken)?;
                let onward = self.says_next(ns, step.row, &after)?;
                let ends = |end| if is_over { step.announced.end } else { end };
                let at = step.announced.at;
                step.onward = onward.map(|(next, end)| (next, Announced { end: ends(end), at }));
                let stays = (comes || is_over) && onward.is_none();
                to_end.extend((step.row != id && !stays).then_some(step));
            }
        }
        to_end.sort_by_key(|row| Reverse((row.announced.end, row.from)));
        Ok(to_end)
    }

    /// The rows of others that come after a row, one after the other, each with the instant at which it comes.
    fn after(
        &self,
        context: &Context,
        row: MemoryId,
        own: &BTreeMap<MemoryId, ToEnd>,
    ) -> Result<Vec<(MemoryId, Time)>> {
        let (mut after, mut seen) = (Vec::new(), BTreeSet::from([row]));
        let mut next = own.get(&row).cloned();
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(step) = next.filter(|step| seen.insert(step.comes)) {
            if !own.contains_key(&step.comes) {
                after.push((step.comes, step.announced.end));
            }
            next = self.step(context, step.comes, false)?;
        }
        Ok(after)
    }

    /// The first of these rows that a key of a row has written.
    fn says_next(
        &self,
        ns: NsId,
        id: MemoryId,
        after: &[(MemoryId, Time)],
    ) -> Result<Option<(MemoryId, Time)>> {
        let holders = self.readable_holders(ns, id)?.into_iter();
        let keys: BTreeSet<String> = holders.filter_map(|holder| holder.key).collect();
        let says = &mut |holder: &Holder| {
            holder.has_text() && holder.key.as_ref().is_some_and(|key| keys.contains(key))
        };
        for (next, at) in after {
            if sound(self.any_holder(ns, *next, says))? == Some(true) {
                return Ok(Some((*next, *at)));
            }
        }
        Ok(None)
    }

    /// What the keys have said keeps beside the end that it has now the end that it was to have. A row of others that was to end for
    /// that ends for what its own keys are to say next.
    pub(super) fn settle_called_off(
        &mut self,
        context: &Context,
        steps: Vec<ToEnd>,
        why: &Why,
    ) -> Result<()> {
        for step in &steps {
            if step.is_own {
                self.keep_announced(context, step.row, step.announced)?;
            }
        }
        for (row, (next, end)) in steps.into_iter().filter_map(|step| Some((step.row, step.onward?))) {
            self.replace_onward(context, (row, next, end), why)?;
        }
        Ok(())
    }

    fn replace_onward(
        &mut self,
        context: &Context,
        (old, new, end): (MemoryId, MemoryId, Announced),
        why: &Why,
    ) -> Result<()> {
        let ns = context.ns;
        let Some(row) = sound(self.load_there(ns, old))?.flatten() else { return Ok(()) };
        let next = sound(self.tx.vitals(ns, new))?.flatten().map(|row| row.times);
        // What follows may be announced to end in the instant in which it begins.
        let stands = next.is_some_and(|times| times.removed_at.is_none() && times.until() >= end.end);
        if !row.0.times.is_current(context.now) || !stands {
            return Ok(());
        }
        let (mode, at, since) = (SupersedeMode::Replaced, end.end, Some(end.at));
        let superseding = Superseding { old, new, mode, at, moves: Moves::All, since, via: None };
        self.take_place(context, superseding, row, why.clone())?;
        Ok(())
    }

    /// The holders that have said what the keys have said since, in the rows that only they have written.
    pub(super) fn words_in(&self, ns: NsId, own: &[MemoryId]) -> Result<Vec<(MemoryId, BTreeSet<u32>)>> {
        let mut words = Vec::new();
        for row in own {
            let times = sound(self.tx.vitals(ns, *row))?.flatten().map(|row| row.times);
            if times.is_none_or(|times| times.superseded.is_some()) {
                continue;
            }
            let writers = self.readable_holders(ns, *row)?.into_iter().filter(Holder::has_text);
            let numbers: BTreeSet<u32> = writers.map(|holder| holder.number).collect();
            words.extend((!numbers.is_empty()).then_some((*row, numbers)));
        }
        Ok(words)
    }

    /// Keeps of a row that was to be superseded at an instant ahead, and now is superseded in another way, by what it was to be, and
    /// what was known of that end until then. A damaged row stays as it is.
    pub(crate) fn keep_overtaken(
        &mut self,
        context: &Context,
        id: MemoryId,
        (overtaken, is_own): (Overtaken, bool),
    ) -> Result<()> {
        let Overtaken { by: told, end, at, .. } = overtaken;
        self.keep_announced(context, id, Announced { end, at })?;
        let Some(row) = sound(self.tx.vitals(context.ns, id))?.flatten() else { return Ok(()) };
        let Some(by) = row.times.superseded else { return Ok(()) };
        let is_as_told =
            by.by == told && by.mode == SupersedeMode::Replaced && row.times.valid_to >= Some(end);
        let comes = self.comes_as(context, told)?;
        // What the row's own keys have announced says so itself.
        let mut is_kept = is_own;
        for one in &row.overtaken {
            is_kept |= self.comes_as(context, one.by)? == comes;
        }
        self.change_overtaken(context, id, |kept| {
            if is_as_told {
                kept.retain(|one| one.by != told);
            } else if !is_kept {
                kept.push(overtaken);
            }
        })
    }

    /// What has corrected or merged a row, or the row itself.
    fn comes_as(&self, context: &Context, id: MemoryId) -> Result<MemoryId> {
        Ok(self.successor(context.ns, id, context.now)?.map_or(id, |(id, _)| id))
    }

    /// Gives what a row has kept to the row that has taken its place. Of a row that is to be replaced at an instant ahead, what takes its
    /// place asks for that itself, as long as the row is there.
    pub(crate) fn inherit_overtaken(
        &mut self,
        context: &Context,
        from: MemoryId,
        to: MemoryId,
    ) -> Result<()> {
        let had = sound(self.tx.vitals(context.ns, from))?.flatten();
        let had = had.filter(|had| had.times.told().is_none_or(|told| told.by != to));
        had.map_or(Ok(()), |had| self.hand_on(context, &had, to))
    }

    /// A row goes: what takes its place can't ask it any more.
    pub(super) fn hand_on_overtaken(&mut self, context: &Context, had: &Vitals) -> Result<()> {
        had.times.told().map_or(Ok(()), |told| self.hand_on(context, had, told.by))
    }

    fn hand_on(&mut self, context: &Context, had: &Vitals, to: MemoryId) -> Result<()> {
        let heir = sound(self.tx.vitals(context.ns, to))?.flatten().map(|row| row.times);
        let Some(heir) = heir.filter(|_| !had.overtaken.is_empty()) else { return Ok(()) };
        let had = handed_on(had, to, &heir);
        self.change_overtaken(context, to, |kept| {
            let known: BTreeSet<MemoryId> = kept.iter().map(|one| one.by).collect();
            kept.extend(had.filter(|one| !known.contains(&one.by)));
        })
    }

    /// What a row keeps, and what those rows keep whose places it is to take: those of which a caller has said so, also after others
    /// that only come along with it.
    pub(crate) fn overtaken(&self, ns: NsId, id: MemoryId, row: &Vitals) -> Result<Vec<Overtaken>> {
        let mut all = row.overtaken.clone();
        let mut known: BTreeSet<MemoryId> = all.iter().map(|one| one.by).collect();
        // Damaged rows could lead in a circle, so no row is visited twice.
        let (mut next, mut seen) = (vec![id], BTreeSet::from([id]));
        while let Some(at) = next.pop() {
            for before in self.tx.superseded_by(ns, at)? {
                let Some(had) = sound(self.tx.vitals(ns, before))?.flatten() else { continue };
                let Some(told) = had.times.told().filter(|_| seen.insert(before)) else { continue };
                all.extend(handed_on(&had, id, &row.times).filter(|one| known.insert(one.by)));
                next.extend(told.via.is_some().then_some(before));
            }
        }
        Ok(all)
    }

    /// What a row that is gone was to replace before others came first is to be replaced by the row that had corrected or merged it. The
    /// rows that keep so lie on the ways to that row.
    pub(super) fn repoint_overtaken(
        &mut self,
        context: &Context,
        (gone, by): (MemoryId, MemoryId),
    ) -> Result<()> {
        let last = self.comes_as(context, by)?;
        // Damaged rows could lead in a circle, so no row is visited twice.
        let (mut next, mut seen) = (vec![last], BTreeSet::from([last]));
        while let Some(at) = next.pop() {
            for before in self.tx.superseded_by(context.ns, at)? {
                let had = sound(self.tx.vitals(context.ns, before))?.flatten();
                let ahead = had.filter(|had| had.times.replaced_ahead(context.now).is_some());
                let Some(had) = ahead.filter(|_| seen.insert(before)) else { continue };
                next.push(before);
                if had.overtaken.iter().all(|one| one.by != gone) {
                    continue;
                }
                let is_known = had.overtaken.iter().any(|one| one.by == by);
                self.change_overtaken(context, before, |kept| {
                    kept.retain(|one| !is_known || one.by != gone);
                    for one in kept.iter_mut().filter(|one| one.by == gone) {
                        one.by = by;
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Whether a holder was written to take the place of what its key says, at an instant that is still ahead, or leads on from such a
    /// one.
    pub(super) fn comes_later(&self, ns: NsId, (id, number): (MemoryId, u32), now: Time) -> Result<bool> {
        let (mut at, mut seen) = (Some((id, number)), BTreeSet::new());
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some((id, number)) = at.filter(|(id, _)| seen.insert(*id)) {
            let vitals: Option<Vitals> = sound(self.tx.vitals(ns, id))?.flatten();
            if vitals.is_none_or(|vitals| vitals.times.from() <= now) {
                break;
            }
            let holder = sound(self.tx.holder(ns, id, number))?.flatten();
            if holder.as_ref().is_some_and(Holder::replaces_ahead) {
                return Ok(true);
            }
            let led = holder.filter(|holder| holder.follows);
            let Some((from, key)) = led.and_then(|led| Some((led.from?, led.key?))) else { break };
            at = self.holder_of_key(ns, from, Some(&key))?.map(|before| (from, before.number));
        }
        Ok(false)
    }

    /// A row that had brought the row `by` together with what is to come is gone. Where that was to come for the row `from` already, whose
    /// place `by` has taken now, it is `by` that brings the two together, and what comes after that, unless `only_next` is asked for.
    pub(super) fn rejoin(
        &mut self,
        context: &Context,
        (from, gone, by): (MemoryId, MemoryId, MemoryId),
        only_next: bool,
    ) -> Result<()> {
        let ns = context.ns;
        let is_joined = |row: &Vitals| {
            let via = row.times.superseded.and_then(|superseded| superseded.via);
            via == Some(gone) || row.overtaken.iter().any(|one| one.via == Some(gone))
        };
        let (mut told, mut next, mut seen) = (None::<BTreeSet<MemoryId>>, Some(by), BTreeSet::new());
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            let Some(row) = sound(self.tx.vitals(ns, at))?.flatten() else { break };
            next = row.times.replaced_ahead(context.now).map(|(next, _)| next).filter(|_| !only_next);
            if !is_joined(&row) {
                continue;
            }
            if told.is_none() {
                let Some(had) = sound(self.tx.vitals(ns, from))?.flatten() else { return Ok(()) };
                told = Some(self.overtaken(ns, from, &had)?.iter().map(|one| one.by).collect());
            }
            let is_told = |to: MemoryId| told.as_ref().is_some_and(|told| told.contains(&to));
            let again = |via: Option<MemoryId>, to: MemoryId| {
                if via == Some(gone) && is_told(to) { Some(by) } else { via }
            };
            let Some((before, content)) = sound(self.load_there(ns, at))?.flatten() else { break };
            let mut vitals = before.clone();
            if let Some(superseded) = &mut vitals.times.superseded {
                superseded.via = again(superseded.via, superseded.by);
            }
            for one in &mut vitals.overtaken {
                one.via = again(one.via, one.by);
            }
            if vitals != before {
                self.place_row(context, at, &before, &content, vitals, &content)?;
            }
        }
        Ok(())
    }

    /// A row was brought together with what was to come by the row `via`, which stands no more for all of those for whom that was to
    /// come. The row keeps of that only what stays.
    pub(crate) fn part_overtaken(
        &mut self,
        context: &Context,
        (id, via): (MemoryId, MemoryId),
        stays: &[Overtaken],
    ) -> Result<()> {
        self.change_overtaken(context, id, |kept| {
            kept.retain(|one| one.via != Some(via));
            let mut known: BTreeSet<MemoryId> = kept.iter().map(|one| one.by).collect();
            kept.extend(stays.iter().filter(|one| known.insert(one.by)));
        })
    }

    fn change_overtaken(
        &mut self,
        context: &Context,
        id: MemoryId,
        change: impl FnOnce(&mut Vec<Overtaken>),
    ) -> Result<()> {
        let Some((before, content)) = sound(self.load_there(context.ns, id))?.flatten() else {
            return Ok(());
        };
        let mut vitals = before.clone();
        change(&mut vitals.overtaken);
        vitals.overtaken.sort_by_key(|one| one.end);
        if vitals.overtaken != before.overtaken {
            self.place_row(context, id, &before, &content, vitals, &content)?;
        }
        Ok(())
    }

    /// Keeps of a row that was to end at an instant ahead, and now is superseded in another way, what was known of that end until
    /// then. A damaged row stays as it is.
    pub(crate) fn keep_announced(
        &mut self,
        context: &Context,
        id: MemoryId,
        announced: Announced,
    ) -> Result<()> {
        let Some((before, content)) = sound(self.load_there(context.ns, id))?.flatten() else {
            return Ok(());
        };
        // Where a write has only interrupted the supersession, it is known since the same instant.
        let is_other = before.times.superseded.is_some_and(|by| announced.at < by.at);
        if !is_other || before.times.own_end() == Some(announced.end) {
            return Ok(());
        }
        let mut vitals = before.clone();
        vitals.times.announced = Some(announced);
        self.place_row(context, id, &before, &content, vitals, &content)?;
        Ok(())
    }
}

/// What a row leaves of what it keeps to the row that has taken its place: what was to come before that comes is over by then.
fn handed_on(had: &Vitals, to: MemoryId, heir: &Times) -> impl Iterator<Item = Overtaken> {
    let (from, by) = (heir.from(), heir.superseded_by());
    let stays = move |one: &Overtaken| one.by != to && Some(one.by) != by && one.end >= from;
    let had = had.overtaken.clone().into_iter().filter(stays);
    had.map(move |one| Overtaken { via: one.via.or(Some(to)), ..one })
}
