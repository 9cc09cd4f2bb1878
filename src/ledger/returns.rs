//! The world to which a row returns: what its writers have said since, and what has taken the place of the
//! row that had superseded it.

use serde_json::json;

use crate::error::{Error, Result, sound};
use crate::index::{Answering, holder_among};
use crate::ledger::applied::{Applied, Onward, Restored};
use crate::ledger::change::{Moves, RestoreTo, Superseding};
use crate::ledger::insert::{tags_fit, too_many_tags, unite};
use crate::ledger::leave::Departure;
use crate::ledger::raised::VALID_FROM;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{
    Actor, Content, Delta, Evidence, Holder, JournalRow, MemoryId, Op, PINNED_TAG, RuleId, SupersedeMode,
    Supersession, Time, Times, Vitals,
};
use crate::store::{NsId, Rows, Traces};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// What the writers of a row have said since, through their keys.
#[derive(Default)]
pub(super) struct SaidSince {
    /// The writers that said something else.
    rewritten: Vec<Rewritten>,
    /// Those whose later text has ended for good, or that have ended their records.
    ended: Vec<Holder>,
    /// Whether these are all writers of the row.
    all: bool,
}

/// A writer of a row that said something else since the row went.
struct Rewritten {
    /// The writer, as the row has it.
    holder: Holder,
    /// The row that has its key now.
    later: MemoryId,
    /// When it said something else for the first time.
    since: Time,
    /// Whether the row was there before the writer's row went: then the key was to say this at an instant ahead.
    was_there: bool,
}

impl Ledger<'_, '_> {
    /// A row whose superseder is gone becomes superseded by what had superseded that superseder, in the same way. What
    /// followed the superseder now follows this row.
    pub(super) fn lead_on(
        &mut self,
        context: &Context,
        id: MemoryId,
        onward: Onward,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let by = onward.superseded.by;
        // What is damaged stands: nobody knows that it is gone.
        let is_gone = sound(self.tx.vitals(ns, by))? == Some(None);
        let stands = !is_gone || sound(self.tx.tombstone(ns, by))? != Some(None);
        if by == id || !stands {
            return self.restore(context, id, RestoreTo::Undo, why);
        }
        let (before, content) = self.load(ns, id)?;
        let Some(superseded) = before.times.superseded else {
            return Err(Error::Conflict {
                what: format!("lead {id} on"),
                why: "it is not superseded; `history` tells which memories it replaced".to_owned(),
            });
        };
        let mut vitals = before.clone();
        let times = &mut vitals.times;
        if let Some(mut limbo) = self.tx.limbo(ns, id)? {
            times.superseded = Some(Supersession { by, ..superseded });
            if !onward.merged
                && let Some(at) = times.removed_at
            {
                // The reinforcement that it had brought did not go on with the row that is gone.
                limbo.transferred = 0;
                truth(self.tx).put_limbo(ns, id, at, &limbo)?;
            }
        } else if onward.superseded.mode == SupersedeMode::Duplicate || onward.is_past {
            // The superseder and the row into which it went said the same, so that row has taken the place of this one. So it has where
            // the superseder is no more than history.
            times.superseded = Some(Supersession { by, ..superseded });
        } else {
            if superseded.mode == SupersedeMode::Replaced {
                times.valid_to = times.valid_to_before.take();
            }
            times.superseded = Some(onward.superseded);
            if onward.superseded.mode == SupersedeMode::Replaced {
                times.valid_to_before = times.valid_to;
                times.valid_to = match (times.valid_to, onward.valid_to) {
                    (Some(own), Some(end)) => Some(own.min(end)),
                    (own, end) => own.or(end),
                };
            }
        }
        vitals.version += 1;
        self.place_row(context, id, &before, &content, vitals, &content)?;
        if is_gone {
            let wrote_next = onward.holders.iter().filter(|holder| holder.wrote_next());
            self.note_next(ns, id, &wrote_next.filter_map(|holder| holder.key.clone()).collect())?;
        }
        self.adopt_copies(ns, by, id, &onward)?;
        self.adopt_keys(context, id, &onward)?;
        // What was to follow the row that is gone parts, or stays as it was.
        let only_next = onward.told().is_some();
        self.rejoin(context, (id, onward.gone, by), only_next)?;
        let mut why = why;
        // `JournalRow::led_on` reads them.
        why.evidence.members = vec![by, onward.gone];
        self.journal(context, Op::Supersede, Some((id, None)), Vec::new(), why)?;
        Ok(Applied::default())
    }

    /// A row that says now what had replaced the row `old`, and by which that is superseded, is true since then, if nothing says since when
    /// it is true: as if it had taken the place itself.
    pub(crate) fn begin_for(
        &mut self,
        context: &Context,
        by: MemoryId,
        old: MemoryId,
        rule: RuleId,
    ) -> Result<()> {
        let ns = context.ns;
        let times = sound(self.tx.vitals(ns, old))?.flatten().map(|row| row.times);
        let Some(Times { valid_to: Some(at), superseded: Some(superseded), valid_to_before, .. }) = times
        else {
            return Ok(());
        };
        // Of a row that ended before, nothing tells the instant.
        let is_told = superseded.by == by && superseded.mode == SupersedeMode::Replaced;
        let row = sound(self.load_there(ns, by))?.flatten().filter(|(row, _)| row.times.valid_from.is_none());
        let Some((before, content)) = row.filter(|_| is_told && valid_to_before.is_none_or(|own| own > at))
        else {
            return Ok(());
        };
        let mut vitals = before.clone();
        vitals.times.valid_from = Some(at);
        vitals.times.valid_from_recorded_at =
            Some(superseded.at).filter(|known| before.times.recorded_at < *known);
        vitals.version += 1;
        self.place_row(context, by, &before, &content, vitals, &content)?;
        let begins = Delta { field: VALID_FROM.to_owned(), before: json!(null), after: json!(at) };
        self.tell_begin(context, by, begins, rule)
    }

    /// Tells in the journal of a memory that it begins at another instant, as a step of its own.
    pub(super) fn tell_begin(
        &mut self,
        context: &Context,
        id: MemoryId,
        begins: Delta,
        rule: RuleId,
    ) -> Result<()> {
        let why = Why { rule, evidence: Evidence::default() };
        self.journal(context, Op::Adjust, Some((id, None)), vec![begins], why)
    }

    /// What erased rows were to replace at an instant ahead is to be replaced by what had corrected or merged them, and so is what they
    /// had corrected before that instant; a row that was to be replaced by them, and by something else first, keeps that too. Who forgets a text for good, or an old version, takes nothing of that back.
    pub(super) fn lead_past(&mut self, context: &Context, applied: &Applied, why: &Why) -> Result<()> {
        for erased in &applied.erased {
            let Some(onward) = erased.onward.as_ref().filter(|onward| onward.replaced_by().is_none()) else {
                continue;
            };
            if onward.valid_from.is_some_and(|from| from > context.now) {
                self.repoint_overtaken(context, (erased.id, onward.superseded.by))?;
            }
            for (old, _) in &erased.predecessors {
                let row = sound(self.tx.vitals(context.ns, *old))?.flatten();
                let times = row.map(|row| row.times).filter(|times| times.superseded_by() == Some(erased.id));
                let now = context.now;
                let waits =
                    times.is_some_and(|times| times.replaced_ahead(now).is_some() || times.from() > now);
                if waits && self.is_whole(context.ns, *old)? {
                    let onward = Onward { is_past: true, ..onward.clone() };
                    self.lead_on(context, *old, onward, why.clone())?;
                }
            }
        }
        Ok(())
    }

    /// The rows that were led on to a row, by the row that had superseded them before, and the number of rows among which they were
    /// found.
    pub(crate) fn led_on_to(
        &self,
        ns: NsId,
        by: MemoryId,
    ) -> Result<(BTreeMap<MemoryId, Vec<MemoryId>>, usize)> {
        let mut led = BTreeMap::<MemoryId, Vec<MemoryId>>::new();
        let superseded = self.tx.superseded_by(ns, by)?;
        for id in &superseded {
            let last = self.last_supersession(ns, *id, |_| true)?;
            if let Some((to, gone)) = last.as_ref().and_then(JournalRow::led_on)
                && to == by
            {
                led.entry(gone).or_default().push(*id);
            }
        }
        Ok((led, superseded.len()))
    }

    /// The holders of `id` that had gone on with the row that is gone now count as coming from `id` itself, and go
    /// back there.
    fn adopt_copies(&mut self, ns: NsId, at: MemoryId, id: MemoryId, onward: &Onward) -> Result<()> {
        let mut copies = self.copies_from(ns, at, onward.gone)?;
        for holder in onward.holders.iter().filter(|holder| holder.from == Some(id)) {
            if let Some(found) = copies.iter().position(|copy| copy.is_copy_of(holder)) {
                // Each copy is taken once, so equal holders do not meet in the same copy.
                let copy = Holder { from: Some(id), ..copies.swap_remove(found) };
                truth(self.tx).put_holder(ns, at, &copy)?;
                self.note_came_from(ns, at, &copy, onward.gone);
            }
        }
        Ok(())
    }

    /// The keys of `id` that had been led on from the row that is gone now, wherever they lead, are led there from `id` itself: they go
    /// no more with what had brought them to that row, or with what an import had said there through them.
    fn adopt_keys(&mut self, context: &Context, id: MemoryId, onward: &Onward) -> Result<()> {
        let ns = context.ns;
        let mut keyed = self.readable_holders(ns, id)?;
        keyed.retain(|holder| holder.key.is_some());
        let by = onward.merged_into().is_none().then_some(onward.superseded.by);
        let (mut came, mut from, mut next) = (onward.gone, id, by);
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            // There may be many others whose keys lead from one row to the next.
            let wrote = onward.holders.iter().filter(|holder| holder.has_text());
            let apart = wrote.filter(|holder| keyed.iter().all(|keyed| !keyed.is_copy_of(holder)));
            let wanted: Vec<Holder> = keyed.iter().chain(apart).cloned().collect();
            let mut copies = self.copies_of(ns, at, came, &wanted)?;
            copies.retain(|copy| copy.follows || onward.wrote(copy));
            // A row of which nobody else has said the text goes with them.
            let said: BTreeSet<u32> =
                copies.iter().filter(|copy| copy.has_text()).map(|copy| copy.number).collect();
            let says_it = &mut |holder: &Holder| holder.has_text() && !said.contains(&holder.number);
            if !said.is_empty() && sound(self.any_holder(ns, at, says_it))? == Some(false) {
                break;
            }
            keyed.retain(|holder| copies.iter().any(|copy| copy.is_copy_of(holder)));
            let row = if keyed.is_empty() { None } else { sound(self.load_there(ns, at))?.flatten() };
            // A memory in limbo answers to no key.
            let Some((before, old)) = row.filter(|(row, _)| row.times.removed_at.is_none()) else { break };
            let (mut vitals, mut content) = (before.clone(), old.clone());
            let (mut left, mut tags) = (Vec::new(), Vec::new());
            for holder in &keyed {
                let Some(copy) = copies.iter().find(|copy| copy.is_copy_of(holder)) else { continue };
                // The row stands by the words of others, also where the key had once said the same.
                let mut led = Holder { follows: true, text: None, ..holder.clone() };
                (led.number, led.share, led.from, led.since) =
                    (copy.number, copy.share, Some(from), copy.since);
                led.links.retain(|link| link.to != at);
                if !tags_fit(&old.tags, &led.tags) {
                    led.tags.clone_from(&copy.tags);
                }
                self.replace_holder(ns, at, &led)?;
                // It stays for what was there before.
                self.leaving.remove(&(at, led.number));
                self.note_came_from(ns, at, &led, came);
                unite(&mut tags, &led.tags);
                left.push(copy.clone());
            }
            // What the others bring is not read: the row may have many.
            self.leave_tags(ns, at, &mut content, &left)?;
            unite(&mut content.tags, &tags);
            vitals.pinned = content.tags.iter().any(|tag| tag == PINNED_TAG);
            vitals.version += 1;
            self.place_row(context, at, &before, &old, vitals, &content)?;
            (came, from, next) = (at, at, before.times.superseded_by());
        }
        Ok(())
    }

    /// Lets the key of a holder of a superseded row lead to what has taken the row's place, and on from there, as far as there is room
    /// for its tags.
    pub(super) fn lead_again(
        &mut self,
        context: &Context,
        id: MemoryId,
        number: u32,
        why: &Why,
    ) -> Result<Applied> {
        let gone = || Error::NotFound { what: "holder", name: format!("{number} of {id}") };
        let holder = self.tx.holder(context.ns, id, number)?.ok_or_else(gone)?;
        let led = Some(holder).filter(|holder| holder.key.is_some()).into_iter().collect();
        for (at, number) in self.lead_from(context, id, led, Moves::Fitting)? {
            let mut why = why.clone();
            why.evidence.members.push(id);
            self.journal(context, Op::Adjust, Some((at, Some(number))), Vec::new(), why)?;
        }
        Ok(Applied::default())
    }

    /// Lets holders of a superseded row lead to what has taken the row's place, and on from there. A key that is there already goes
    /// on from there, but for what only fits in. Returns the rows to which they have come, with their numbers there.
    pub(super) fn lead_from(
        &mut self,
        context: &Context,
        id: MemoryId,
        mut led: Vec<Holder>,
        moves: Moves,
    ) -> Result<Vec<(MemoryId, u32)>> {
        let (ns, mut came) = (context.ns, Vec::new());
        let (mut from, (mut row, Content { mut text, .. })) = (id, self.load(ns, id)?);
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::from([id]);
        while !led.is_empty()
            && let Some(at) = row.times.superseded_by().filter(|at| seen.insert(*at))
        {
            let there = sound(self.load_there(ns, at))?.flatten();
            // A memory in limbo answers to no key, and in another partition the key could no longer be written.
            let answers = |there: &Vitals| {
                there.times.removed_at.is_none() && there.place.partition == row.place.partition
            };
            let Some((before, old)) = there.filter(|(there, _)| answers(there)) else { break };
            let (mut vitals, mut content) = (before.clone(), old.clone());
            for holder in std::mem::take(&mut led) {
                let is_there = holder.key.as_ref().map(|key| self.tx.holds_key(ns, key, at)).transpose()?;
                let has_room = tags_fit(&content.tags, &holder.tags);
                if moves != Moves::Fitting && is_there == Some(true) {
                    led.extend(self.holder_of_key(ns, at, holder.key.as_deref())?);
                }
                if is_there == Some(true) || (moves == Moves::Fitting && !has_room) {
                    continue;
                }
                if moves.needs_room() && context.actor != Actor::Sweeper && !has_room {
                    return Err(too_many_tags(from, at));
                }
                let mut holder = holder.led_on(&text, &old.text);
                (holder.number, holder.share, holder.from, holder.since) =
                    (vitals.place.give_number()?, 0, Some(from), context.now);
                holder.links.retain(|link| link.to != at);
                self.put_holder(ns, at, &holder)?;
                self.note_copy(ns, at, &holder);
                unite(&mut content.tags, &holder.tags);
                vitals.place.holders += 1;
                came.push((at, holder.number));
                led.push(holder);
            }
            if vitals != before {
                vitals.pinned = content.tags.iter().any(|tag| tag == PINNED_TAG);
                vitals.version += 1;
                self.place_row(context, at, &before, &old, vitals, &content)?;
            }
            (from, row, text) = (at, before, old.text);
        }
        Ok(came)
    }

    /// The writers of a returning row that have said something else since. For each of them another row has the key, after
    /// everything that had come there from the returning row itself was given back: a current row, or a row that was
    /// written since and has ended. What has ended is no reason to say again what was said before. An undo asks as well for a
    /// version that was written since and stands, and for what has ended for good. What can't be read says nothing, and what is about
    /// to leave its row says nothing any more.
    pub(super) fn said_since(&self, context: &Context, id: MemoryId, to: RestoreTo) -> Result<SaidSince> {
        let ns = context.ns;
        let (mut said, mut all) = (SaidSince::default(), true);
        let times = self.tx.vitals(ns, id)?.map(|row| row.times);
        let went = times.and_then(|times| times.removed_at.or(times.superseded.map(|by| by.at)));
        for holder in self.tx.holders(ns, id)?.into_iter().filter(Holder::has_text) {
            if let Some(later) = self.later_of(context, (&holder, id), went, to)? {
                let since = self.first_said(ns, &holder, id, went.unwrap_or(context.now))?;
                let recorded = self.tx.vitals(ns, later)?.map(|row| row.times.recorded_at);
                let was_there = recorded.zip(went).is_some_and(|(recorded, went)| recorded < went);
                said.rewritten.push(Rewritten { holder, later, since, was_there });
            } else if to == RestoreTo::Undo && holder.has_ended() {
                said.ended.push(holder);
            } else {
                all = false;
            }
        }
        said.all = all && !(said.rewritten.is_empty() && said.ended.is_empty());
        Ok(said)
    }

    /// Whether a holder is about to leave its row.
    pub(crate) fn is_leaving(&self, ns: NsId, id: MemoryId, number: u32) -> Result<bool> {
        match &self.undoing {
            Some((run, slice)) if !slice.contains(&(id, number)) => self.tx.holds_run(ns, *run, id, number),
            _ => Ok(self.leaving.contains(&(id, number))),
        }
    }

    /// The row that answers to a key, without those that the key is about to leave.
    pub(crate) fn staying_holder_of_key(&self, ns: NsId, key: &str, now: Time) -> Result<Option<Answering>> {
        let stays = |id: MemoryId, number: u32, _: &Vitals| Ok(!self.is_leaving(ns, id, number)?);
        holder_among(&*self.tx, ns, key, now, stays)
    }

    /// The row that tells what the key of a holder of `id` has said since that row went.
    fn later_of(
        &self,
        context: &Context,
        (holder, id): (&Holder, MemoryId),
        went: Option<Time>,
        to: RestoreTo,
    ) -> Result<Option<MemoryId>> {
        let ns = context.ns;
        let Some(key) = &holder.key else { return Ok(None) };
        let is_later = |times: &Times| {
            let stands = times.removed_at.is_none() && times.superseded.is_none();
            times.is_current(context.now) || (stands && went.is_some_and(|went| times.recorded_at >= went))
        };
        let found = sound(self.staying_holder_of_key(ns, key, context.now))?.flatten();
        let found = found.filter(|found| found.id != id && is_later(&found.vitals.times));
        let is_ahead = found.as_ref().is_some_and(|found| found.vitals.times.from() > context.now);
        let mut later = found.map(|found| found.id);
        if is_ahead && to == RestoreTo::Undo {
            // Until what is to come begins, the key says what that is to replace.
            later = self.said_until(context, key, id)?;
        }
        if later.is_none() && to == RestoreTo::Undo {
            later = self.last_version(ns, key, (id, went))?;
        }
        Ok(match later {
            Some(later) if sound(self.load(ns, later))?.is_some() => Some(later),
            _ => None,
        })
    }

    /// The row that tells what a key says now, and that another one is to replace at an instant ahead.
    fn said_until(&self, context: &Context, key: &str, id: MemoryId) -> Result<Option<MemoryId>> {
        let (ns, now, mut said) = (context.ns, context.now, None);
        self.tx.latest_holders_of_key(ns, key, &mut |other, number| {
            let row = sound(self.tx.vitals(ns, other))?.flatten().filter(|row| row.times.visible_live(now));
            if row.is_none() || other == id || self.is_leaving(ns, other, number)? {
                return Ok(ControlFlow::Continue(()));
            }
            let says =
                sound(self.tx.holder(ns, other, number))?.flatten().is_some_and(|said| said.has_text());
            // What the row itself is to replace is older.
            let says = says && !self.leads_to(ns, other, id)?;
            said = says.then_some(other);
            Ok(if says { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(said)
    }

    /// The last text of a key that was written since the row `id` went, and that another text of a caller has superseded. What
    /// superseded it is gone, or it would have the key.
    fn last_version(
        &self,
        ns: NsId,
        key: &str,
        (id, went): (MemoryId, Option<Time>),
    ) -> Result<Option<MemoryId>> {
        let Some(went) = went else { return Ok(None) };
        let mut last = None;
        self.tx.latest_holders_of_key(ns, key, &mut |other, number| {
            let row = sound(self.tx.vitals(ns, other))?.flatten();
            let is_other = other != id && !self.is_leaving(ns, other, number)?;
            let times = row.filter(|_| is_other).map(|row| row.times);
            let Some(times) = times else { return Ok(ControlFlow::Continue(())) };
            if times.recorded_at < went {
                return Ok(ControlFlow::Break(()));
            }
            // Of one instant, the ids tell what came first.
            let is_later = times.recorded_at > went || other > id;
            let is_version = times.removed_at.is_none()
                && times.superseded.is_some_and(|by| by.mode != SupersedeMode::Duplicate);
            let holder =
                if is_later && is_version { sound(self.tx.holder(ns, other, number))? } else { None };
            // What the row itself has replaced is older.
            if holder.flatten().is_some_and(|holder| holder.has_text()) && !self.leads_to(ns, other, id)? {
                last = Some(other);
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(last)
    }

    /// What an undo tells of a row that does not come back, because what all its writers have said since has ended for good, so that
    /// nothing is left that could take its place; none for any other row.
    pub(super) fn stays_ended(&self, context: &Context, id: MemoryId) -> Result<Option<Restored>> {
        let mut any = false;
        let mut says_on = |holder: &Holder| {
            any |= holder.has_text();
            holder.has_text() && !holder.has_ended()
        };
        // Mostly the first holder has not ended.
        if self.any_holder(context.ns, id, &mut says_on)? || !any {
            return Ok(None);
        }
        let said = self.said_since(context, id, RestoreTo::Undo)?;
        let stays = Restored { keys_ended: said.keys_ended(), stays: true, ..Restored::default() };
        Ok((said.all && said.rewritten.is_empty()).then_some(stays))
    }

    /// Forgets of the holders of a row that their writers have ended: a caller brings the row back.
    pub(super) fn forget_ended(&mut self, ns: NsId, id: MemoryId) -> Result<()> {
        for mut holder in self.tx.holders(ns, id)? {
            if holder.forget_ended() {
                truth(self.tx).put_holder(ns, id, &holder)?;
            }
        }
        Ok(())
    }

    /// When the key of a holder said something else than a row that went at `went`: the transaction time of the first row that
    /// it got since, and `went` if it joined a row that was there before.
    fn first_said(&self, ns: NsId, holder: &Holder, id: MemoryId, went: Time) -> Result<Time> {
        let mut first: Option<Time> = None;
        let Some(key) = &holder.key else { return Ok(went) };
        // What was said before it went is of no interest, and there may be much of it.
        self.tx.latest_holders_of_key(ns, key, &mut |other, number| {
            let row = sound(self.tx.vitals(ns, other))?.flatten();
            let is_other = other != id && !self.is_leaving(ns, other, number)?;
            let Some(row) = row.filter(|_| is_other) else { return Ok(ControlFlow::Continue(())) };
            let recorded = row.times.recorded_at;
            if recorded < went {
                return Ok(ControlFlow::Break(()));
            }
            first = Some(first.map_or(recorded, |known| known.min(recorded)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(first.unwrap_or(went))
    }

    /// Whether what the key of a holder of `old` said last stands in another row than `new`, also where that has ended, or stands
    /// nowhere any more because it has ended.
    pub(super) fn says_elsewhere(
        &self,
        context: &Context,
        holder: &Holder,
        (old, new): (MemoryId, MemoryId),
    ) -> Result<bool> {
        if holder.has_ended() {
            return Ok(true);
        }
        // A key that only leads here leads on.
        let Some(key) = holder.key.as_deref().filter(|_| holder.has_text()) else { return Ok(false) };
        let others = |id: MemoryId, _: u32, _: &Vitals| Ok(id != old);
        let last = sound(holder_among(&*self.tx, context.ns, key, context.now, others))?.flatten();
        Ok(last.is_some_and(|last| last.id != new))
    }

    /// Lets writers that have said something else leave a row that is back. If all writers have, the row is superseded
    /// by the latest of what they said, also where it has ended as that has.
    pub(super) fn follow_writers(
        &mut self,
        context: &Context,
        (id, to): (MemoryId, RestoreTo),
        said: SaidSince,
        why: Why,
    ) -> Result<Option<MemoryId>> {
        let superseded_by = self.follow(context, id, said, why)?;
        let times = self.tx.vitals(context.ns, id)?.map(|row| row.times);
        if to == RestoreTo::Undo && times.is_some_and(|times| times.superseded.is_none()) {
            // What nothing replaces asks nobody to say it again.
            self.forget_ended(context.ns, id)?;
        }
        Ok(superseded_by)
    }

    fn follow(
        &mut self,
        context: &Context,
        id: MemoryId,
        said: SaidSince,
        why: Why,
    ) -> Result<Option<MemoryId>> {
        if said.rewritten.is_empty() && said.ended.is_empty() {
            return Ok(None);
        }
        let row = self.load(context.ns, id)?;
        let times = &row.0.times;
        if times.removed_at.is_some() || times.superseded.is_some() {
            return Ok(None);
        }
        if !said.all {
            let current = times.is_current(context.now);
            let leaving = said.rewritten.into_iter().map(|one| one.holder).chain(said.ended);
            for holder in leaving.filter(|_| current) {
                self.detach(context, id, &[holder.number], Departure::Apart, why.clone())?;
            }
            return Ok(None);
        }
        let (mut latest, mut ended, mut is_new) = (None, None, false);
        for Rewritten { later, since, was_there, .. } in said.rewritten {
            is_new |= !was_there;
            let recorded = self.tx.vitals(context.ns, later)?.map(|row| row.times.recorded_at);
            // The id decides between equal instants, so the choice does not depend on the order of the holders.
            latest = latest.max(Some((recorded, later)));
            ended = ended.max(Some(since));
        }
        let Some((_, later)) = latest else { return Ok(None) };
        // What is not true yet leaves the text until then.
        let begins = self.tx.vitals(context.ns, later)?.and_then(|row| row.times.valid_from);
        let begins = begins.filter(|from| *from > context.now && times.from() < *from);
        let rewritten = Superseding {
            old: id,
            new: later,
            mode: if begins.is_some() { SupersedeMode::Replaced } else { SupersedeMode::Correction },
            at: begins.unwrap_or(context.now),
            // The row is back already, and tags are no reason to refuse that.
            moves: Moves::Fitting,
            // The text was told until the last of its writers said something else, and not until it came back.
            since: ended,
            via: None,
        };
        self.take_place(context, rewritten, row, why)?;
        // What was announced before is as it was, and no news of an undo.
        Ok(Some(later).filter(|_| is_new || begins.is_none()))
    }
}

impl SaidSince {
    /// Whether all writers of the row said something else.
    pub(super) fn by_all(&self) -> bool {
        self.all
    }

    /// The keys of the writers that said something else since the row went.
    pub(super) fn keys(&self) -> Vec<String> {
        let new = self.rewritten.iter().filter(|one| !one.was_there);
        new.filter_map(|one| one.holder.key.clone()).collect()
    }

    /// The keys of the writers whose later text has ended for good.
    pub(super) fn keys_ended(&self) -> Vec<String> {
        self.ended.iter().filter_map(|holder| holder.key.clone()).collect()
    }
}
