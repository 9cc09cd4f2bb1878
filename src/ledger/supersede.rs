//! Taking the place of another memory, and giving the place back.

use serde_json::json;

use crate::error::{Error, Result, sound};
use crate::ledger::applied::{Applied, Erased, Restored};
use crate::ledger::change::{Moves, RestoreTo, Superseding};
use crate::ledger::insert::{tags_fit, too_many_tags, unite};
use crate::ledger::leave::Departure;
use crate::ledger::lifetime::renew;
use crate::ledger::raised::{OF_THE_OTHER, VALID_FROM, raised};
use crate::ledger::returns::SaidSince;
use crate::ledger::writer::{Context, Ledger, Why, gone, truth};
use crate::model::{
    Actor, Content, Delta, Holder, MemoryId, Op, PINNED_TAG, RuleId, SupersedeMode, Supersession, Time,
    Times, TombstoneReason, Vitals,
};
use crate::store::control::EventRow;
use crate::store::{NsId, Read, Rows, Table, Traces, Walk, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Which copies of holders go back from rows after the superseder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// All: the merge that moved them is taken back.
    All,
    /// Those that a merge has handed on, and those without a key. A key that a caller has led on stays where it leads.
    Merges,
}

/// What became of the keys of a row that returns.
#[derive(Default)]
pub(super) struct Reclaimed {
    /// Keys that other rows have taken since. They stay there.
    pub(super) keys_taken: Vec<String>,
    /// The numbers of the holders that said another text in the place of the row, under the same keys.
    said_since: BTreeMap<MemoryId, BTreeSet<u32>>,
}

impl Ledger<'_, '_> {
    pub(super) fn supersede(
        &mut self,
        context: &Context,
        superseding: Superseding,
        why: Why,
    ) -> Result<Applied> {
        let old = superseding.old;
        let row = self.load(context.ns, old)?;
        let stands = row.0.times.removed_at.is_none() && row.0.times.superseded.is_none();
        if stands && row.0.times.is_expired(context.now) {
            let what = format!("supersede {old}");
            return Err(Error::Conflict { what, why: "it has expired".to_owned() });
        }
        self.take_place(context, superseding, row, why)
    }

    /// The same, also of a row that has expired.
    pub(super) fn take_place(
        &mut self,
        context: &Context,
        superseding: Superseding,
        (before, content): (Vitals, Content),
        why: Why,
    ) -> Result<Applied> {
        let Superseding { old, new, mode, at, since, via, .. } = superseding;
        let ns = context.ns;
        // The new memory may be one of this transaction, which goes again.
        let refuse = |why: &str| Error::Conflict { what: format!("supersede {old}"), why: why.to_owned() };
        if old == new {
            return Err(refuse("it is itself the memory that is to take its place"));
        }
        if before.times.removed_at.is_some() {
            return Err(refuse("maintenance removed it; `restore` brings it back"));
        }
        if let Some(by) = before.times.superseded_by() {
            return Err(refuse(&format!("it is superseded already, by {by}")));
        }
        if self.leads_to(ns, new, old)? {
            return Err(refuse("that would close a cycle"));
        }
        let takes_over = self.tx.vitals(ns, new)?;
        if takes_over.as_ref().is_some_and(|row| row.times.removed_at.is_some()) {
            return Err(refuse("maintenance removed what is to take its place"));
        }
        let ends = takes_over.filter(|row| row.times.valid_from.is_none()).and_then(|row| row.times.valid_to);
        if mode == SupersedeMode::Replaced && ends.is_some_and(|end| end <= at) {
            return Err(refuse("what takes its place has ended by then"));
        }
        let mut vitals = before.clone();
        if mode == SupersedeMode::Replaced {
            // The earlier end is kept, so that a restoration gives back the exact interval.
            vitals.times.valid_to_before = vitals.times.valid_to;
            vitals.times.valid_to = Some(vitals.times.valid_to.map_or(at, |to| to.min(at)));
        }
        vitals.times.superseded = Some(Supersession { at: since.unwrap_or(context.now), by: new, mode, via });
        vitals.version += 1;
        self.place_row(context, old, &before, &content, vitals, &content)?;
        let deltas = self.receive(context, superseding, &before.times)?;
        let mut why = why;
        why.evidence.members.push(new);
        self.journal(context, Op::Supersede, Some((old, None)), deltas, why)?;
        Ok(Applied::default())
    }

    /// The row that stands for `id` in the world: `id` itself, or what has corrected or merged it. None if that is gone, or
    /// if its end has come.
    pub(crate) fn successor(&self, ns: NsId, id: MemoryId, now: Time) -> Result<Option<(MemoryId, Vitals)>> {
        let mut at = id;
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while seen.insert(at) {
            // Its writers are not asked: a row to which many keys lead has many.
            let Some((vitals, _)) = sound(self.load_there(ns, at))?.flatten() else { return Ok(None) };
            match vitals.times.superseded.filter(|by| by.mode != SupersedeMode::Replaced) {
                Some(by) => at = by.by,
                None => return Ok(Some((at, vitals)).filter(|(_, vitals)| vitals.times.until() > now)),
            }
        }
        Ok(None)
    }

    /// A row and all that has superseded it. Damaged rows could lead in a circle, so no row is visited twice.
    fn chain_from(&self, ns: NsId, id: MemoryId) -> Result<BTreeSet<MemoryId>> {
        let (mut chain, mut at) = (BTreeSet::new(), Some(id));
        while let Some(id) = at.filter(|id| chain.insert(*id)) {
            at = sound(self.tx.vitals(ns, id))?.flatten().and_then(|vitals| vitals.times.superseded_by());
        }
        Ok(chain)
    }

    /// A row that has superseded another, and what takes its place before anything of it is true: they give up a key that
    /// they got by that.
    fn superseder_and_to_come(&self, context: &Context, by: MemoryId) -> Result<BTreeSet<MemoryId>> {
        let (mut chain, mut next) = (BTreeSet::new(), Some(by));
        while let Some(at) = next.filter(|at| chain.insert(*at)) {
            let times = sound(self.tx.vitals(context.ns, at))?.flatten().map(|row| row.times);
            next = times.and_then(|times| times.superseded_by());
            if let Some(to) = next
                && !self.begins_ahead(context, to)?
            {
                break;
            }
        }
        Ok(chain)
    }

    /// Whether a row begins at an instant ahead.
    fn begins_ahead(&self, context: &Context, id: MemoryId) -> Result<bool> {
        let row: Option<Vitals> = sound(self.tx.vitals(context.ns, id))?.flatten();
        Ok(row.is_some_and(|row| row.times.valid_from > Some(context.now)))
    }

    /// A row, and the rows into which it was merged, one after the other.
    pub(crate) fn merged_on(&self, ns: NsId, id: MemoryId) -> Result<Vec<MemoryId>> {
        let (mut all, mut seen, mut next) = (Vec::new(), BTreeSet::new(), Some(id));
        // Damaged rows could lead in a circle, so no row is visited twice.
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            all.push(at);
            next = sound(self.tx.vitals(ns, at))?.flatten().and_then(|row| row.times.merged_into());
        }
        Ok(all)
    }

    /// Whether the chain of superseders that begins at `from` reaches `to`. The chain is walked only if it can: mostly
    /// `from` has no superseder, so the chain ends there, or `to` has superseded no row, so nothing leads to it.
    pub(crate) fn leads_to(&self, ns: NsId, from: MemoryId, to: MemoryId) -> Result<bool> {
        let next = self.tx.vitals(ns, from)?.and_then(|vitals| vitals.times.superseded_by());
        if from != to && (next.is_none() || self.tx.superseded_by(ns, to)?.is_empty()) {
            return Ok(false);
        }
        Ok(self.chain_from(ns, from)?.contains(&to))
    }

    /// The other side of a supersession. World time begins, and holders arrive with share 0. Holders of another
    /// partition never arrive. Returns what a row that merges another one has of it, each field behind `by.`: the journal
    /// row is that of the other. `stood` are the times of the other before.
    fn receive(&mut self, context: &Context, superseding: Superseding, stood: &Times) -> Result<Vec<Delta>> {
        let Superseding { old, new, mode, at, moves, .. } = superseding;
        let ns = context.ns;
        let replaced = self.load(ns, old)?;
        // A row that a pass merges answers to each key with its own text and lives as long as the longer of the two
        // (DEDUP-4, DEDUP-46). If a caller lets one memory take the place of another, the caller means the text and
        // the life of the other.
        let merges = mode == SupersedeMode::Duplicate && context.actor == Actor::Sweeper;
        let (before, old_content) = self.load(ns, new)?;
        let (mut vitals, mut content) = (before.clone(), old_content.clone());
        let was = (&replaced.0, &replaced.1);
        let brought = if merges { self.brought_vector(ns, was, &content.text)? } else { None };
        let begins = mode == SupersedeMode::Replaced && vitals.times.valid_from.is_none();
        // A row that was there before has been true before, and is so again if the other is restored.
        let begins_later = begins && vitals.times.recorded_at < context.now;
        if begins {
            vitals.times.valid_from = Some(at);
            vitals.times.valid_from_recorded_at = begins_later.then_some(context.now);
        }
        // A key belongs to the partition that wrote it. In another partition its agent could no longer write
        // it (MODEL-8).
        let apart = vitals.place.partition != replaced.0.place.partition;
        // What is to be replaced itself later on leads to what comes then.
        let (leads_on, mut came) = (before.times.replaced_ahead(context.now).is_some(), Vec::new());
        if moves != Moves::None && mode != SupersedeMode::Aggregate && !apart {
            for holder in self.tx.holders(ns, old)? {
                if !self.comes_along(context, &superseding, &holder, (stood, &content.tags))? {
                    if leads_on && !self.is_taken(context, &holder, (old, stood), new, moves)? {
                        came.extend(self.holder_of_key(ns, new, holder.key.as_deref())?);
                    }
                    continue;
                }
                unite(&mut content.tags, &holder.tags);
                let number = vitals.place.give_number()?;
                let mut moved = match moves {
                    _ if merges => {
                        self.merged_copy(holder, (&replaced.1.text, &content.text), brought.as_ref())
                    }
                    // An update by id is a write of every holder (MODEL-8).
                    Moves::AllBut(_) => Holder { text: None, ..holder },
                    _ => holder.led_on(&replaced.1.text, &content.text),
                };
                (moved.number, moved.share, moved.from) = (number, 0, Some(old));
                moved.since = context.now;
                // A memory is not linked to itself (MODEL-24).
                moved.links.retain(|link| link.to != new);
                self.put_holder(ns, new, &moved)?;
                self.note_copy(ns, new, &moved);
                vitals.place.holders += 1;
                came.push(moved);
            }
        }
        let mut deltas = Vec::new();
        if begins_later {
            let (field, after) = (format!("{OF_THE_OTHER}{VALID_FROM}"), json!(at));
            deltas.push(Delta { field, before: json!(null), after });
        }
        if merges {
            vitals.set_life(vitals.life().longer(replaced.0.life()));
            vitals.tier = vitals.tier.max(replaced.0.tier);
            deltas = raised(&before, &vitals);
            deltas.iter_mut().for_each(|delta| delta.field.insert_str(0, OF_THE_OTHER));
        }
        if vitals != before {
            vitals.version += 1;
            self.place_row(context, new, &before, &old_content, vitals, &content)?;
        }
        if leads_on {
            self.lead_from(context, new, came, moves)?;
        }
        Ok(deltas)
    }

    /// Whether a holder of `old` comes along to `new`, which has these tags. `stood` are the times of `old` before.
    fn comes_along(
        &self,
        context: &Context,
        superseding: &Superseding,
        holder: &Holder,
        (stood, tags): (&Times, &[String]),
    ) -> Result<bool> {
        let Superseding { old, new, moves, .. } = *superseding;
        // The key under which the new row was written is there already.
        let is_there = holder.key.as_ref().map(|key| self.tx.holds_key(context.ns, key, new)).transpose()?;
        if is_there == Some(true)
            || moves == Moves::AllBut(holder.number)
            || self.is_taken(context, holder, (old, stood), new, moves)?
        {
            return Ok(false);
        }
        let has_room = tags_fit(tags, &holder.tags);
        // Passes look for room before they plan, and an update gives the tags anew.
        if moves.needs_room() && context.actor != Actor::Sweeper && !has_room {
            return Err(too_many_tags(old, new));
        }
        Ok(moves != Moves::Fitting || (has_room && !self.says_elsewhere(context, holder, (old, new))?))
    }

    /// Whether the key of a holder of `old` belongs to a current row other than `old` and `new`. A row past its world
    /// time keeps no key against others, and can still be superseded. `stood` are the times of `old` before anything took
    /// its place.
    ///
    /// What comes at an instant ahead leaves the key to what a writer says until then, since the same transaction lets it take the place
    /// of that. It leaves the key to nothing that returns.
    pub(super) fn is_taken(
        &self,
        context: &Context,
        holder: &Holder,
        (old, stood): (MemoryId, &Times),
        new: MemoryId,
        moves: Moves,
    ) -> Result<bool> {
        let (ns, now) = (context.ns, context.now);
        let Some(key) = &holder.key else { return Ok(false) };
        // A key belongs to one current row (MODEL-8).
        if moves.takes_to_come() && stood.is_current(now) {
            return Ok(false);
        }
        let mut is_taken = false;
        // Mostly it is the latest that held it: the many that came before need no look.
        self.tx.latest_holders_of_key(ns, key, &mut |other, number| {
            let has_key = match other == old {
                true => moves != Moves::AllButToCome && stood.is_current(now),
                false => other != new && self.is_current(ns, other, now)?,
            };
            if !has_key || (moves.takes_to_come() && self.comes_later(ns, (other, number), now)?) {
                return Ok(ControlFlow::Continue(()));
            }
            is_taken = other != old;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(is_taken)
    }

    /// Whether a holder was written to take the place of what its key says, at an instant that is still ahead.
    pub(crate) fn is_to_come(&self, ns: NsId, id: MemoryId, number: u32, now: Time) -> Result<bool> {
        let vitals: Option<Vitals> = sound(self.tx.vitals(ns, id))?.flatten();
        let waits = vitals.is_some_and(|vitals| vitals.times.valid_from.is_some_and(|from| from > now));
        let holder = || sound(self.tx.holder(ns, id, number));
        Ok(waits && holder()?.flatten().is_some_and(|holder| holder.replaces_ahead()))
    }

    pub(super) fn restore(
        &mut self,
        context: &Context,
        id: MemoryId,
        to: RestoreTo,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let (before, mut content) = self.load(ns, id)?;
        let refuse = |why: &str| Error::Conflict { what: format!("restore {id}"), why: why.to_owned() };
        if before.times.removed_at.is_some() {
            return self.restore_from_limbo(context, (id, &before), to, why);
        }
        let Some(superseded) = before.times.superseded else {
            return Err(refuse(&self.why_in_place(context, id, &before)?));
        };
        // What a pass restores, because its chain is broken or is to lead elsewhere, lives no longer for it.
        let is_asked = context.run.is_none() && to != RestoreTo::Write;
        let promised = before.life().end.filter(|_| before.life().is_promised_end());
        if let Some(end) = promised.filter(|end| is_asked && to == RestoreTo::Live && *end <= context.now) {
            return Err(refuse(&format!("its life ended at {end}")));
        }
        if to != RestoreTo::Write && self.was_forgotten_after(ns, superseded)? {
            return Err(refuse("what took its place was forgotten"));
        }
        match to {
            RestoreTo::Undo => {
                if let Some(stays) = self.stays_ended(context, id)? {
                    return Ok(Applied { restored: Some(stays), ..Applied::default() });
                }
            }
            RestoreTo::Live | RestoreTo::Write => self.forget_ended(ns, id)?,
        }
        // Until an instant ahead the key means this row, through whatever has corrected what comes then.
        let (beyond, mut superseders) = match to {
            RestoreTo::Write => (Beyond::All, self.chain_from(ns, superseded.by)?),
            RestoreTo::Live | RestoreTo::Undo => {
                (Beyond::Merges, self.superseder_and_to_come(context, superseded.by)?)
            }
        };
        let called_off = self.call_off(context, (id, to), &mut superseders, &why)?;
        let keeps = to == RestoreTo::Undo && superseded.mode != SupersedeMode::Duplicate;
        let mut erased = called_off.erased;
        erased.append(&mut self.give_back(context, superseded.by, id, (beyond, keeps), &why)?);
        let said = match to {
            RestoreTo::Live | RestoreTo::Write => SaidSince::default(),
            RestoreTo::Undo => self.said_since(context, id, to)?,
        };
        let Reclaimed { keys_taken, mut said_since } =
            self.reclaim_keys(context, id, &superseders, &said, to)?;
        said_since.extend(self.words_in(ns, &called_off.own)?);
        let mut vitals = before.clone();
        (vitals.times.superseded, vitals.times.announced) = (None, None);
        if to == RestoreTo::Live {
            vitals.overtaken.clear();
        }
        if is_asked && promised.is_none() {
            renew(&mut vitals, context.now, &context.ttl);
        }
        self.give_end_back(context, &mut vitals.times, (superseded, to))?;
        vitals.version += 1;
        let old = content.clone();
        self.retag(ns, id, &mut vitals, &mut content)?;
        self.place_row(context, id, &before, &old, vitals, &content)?;
        let mut deltas = Vec::new();
        if superseded.mode == SupersedeMode::Replaced && to != RestoreTo::Write {
            deltas.extend(self.unbegin(context, superseded.by, id)?);
        }
        let mut told = why.clone();
        told.evidence.members.push(superseded.by);
        self.journal(context, Op::Restore, Some((id, None)), deltas, told)?;
        let replaced = self.replace_versions(context, id, said_since, &why)?;
        self.settle_called_off(context, called_off.steps, &why)?;
        let keys_ended = said.keys_ended();
        let superseded_by = self.follow_writers(context, (id, to), said, why)?;
        let restored =
            Some(Restored { keys_taken, replaced, superseded_by, keys_ended, ..Restored::default() });
        Ok(Applied { restored, erased, ..Applied::default() })
    }

    /// The end of a row that is back is its own again. What was said about the end stays true before a write, although nothing comes
    /// after the row any more; but what was overtaken at its own instant was never to be true.
    fn give_end_back(
        &mut self,
        context: &Context,
        times: &mut Times,
        (superseded, to): (Supersession, RestoreTo),
    ) -> Result<()> {
        if superseded.mode != SupersedeMode::Replaced {
            return Ok(());
        }
        let before = times.valid_to_before.take();
        let is_back = to != RestoreTo::Write || times.valid_to <= times.valid_from;
        if is_back || self.successor(context.ns, superseded.by, context.now)?.is_some() {
            times.valid_to = before;
        }
        Ok(())
    }

    /// What the keys of a row that is back had said in its place becomes an earlier text of theirs. A row that others wrote
    /// too stays theirs. Returns the rows whose place the row has taken.
    fn replace_versions(
        &mut self,
        context: &Context,
        id: MemoryId,
        said_since: BTreeMap<MemoryId, BTreeSet<u32>>,
        why: &Why,
    ) -> Result<Vec<MemoryId>> {
        let (ns, mut replaced) = (context.ns, Vec::new());
        // What is not true yet leaves what the keys say until then.
        let times = self.tx.vitals(ns, id)?.map(|row| row.times);
        let begins = times.and_then(|times| times.valid_from).filter(|from| *from > context.now);
        for (other, numbers) in said_since {
            // A damaged row stays, without the keys.
            let Some(row) = sound(self.load(ns, other))? else {
                for number in numbers {
                    self.drop_key(ns, other, number)?;
                }
                continue;
            };
            let is_of_others = &mut |holder: &Holder| holder.has_text() && !numbers.contains(&holder.number);
            // Who else wrote a row of which a writer is damaged is unknown, so the row stays as well.
            if sound(self.any_holder(ns, other, is_of_others))? != Some(false) {
                for number in numbers {
                    self.detach(context, other, &[number], Departure::Apart, why.clone())?;
                }
                continue;
            }
            let (mode, at) = match begins.filter(|from| row.0.times.from() < *from) {
                Some(from) => (SupersedeMode::Replaced, from),
                None => (SupersedeMode::Correction, context.now),
            };
            let moves = Moves::AllButToCome;
            let version = Superseding { old: other, new: id, mode, at, moves, since: None, via: None };
            self.take_place(context, version, row, why.clone())?;
            replaced.push(other);
        }
        Ok(replaced)
    }

    /// Brings a row back that maintenance removed. One that had been superseded before, and whose supersession is undone, is live
    /// again; for anybody else it is superseded as it was.
    fn restore_from_limbo(
        &mut self,
        context: &Context,
        (id, before): (MemoryId, &Vitals),
        to: RestoreTo,
        why: Why,
    ) -> Result<Applied> {
        let merged = sound(self.tx.limbo(context.ns, id))?.flatten().is_some_and(|limbo| limbo.replaced);
        let superseded = before.times.superseded.filter(|_| to == RestoreTo::Undo && !merged);
        // Asked before the first write.
        if let Some(superseded) = superseded
            && self.was_forgotten_after(context.ns, superseded)?
        {
            let why = "what took its place was forgotten".to_owned();
            return Err(Error::Conflict { what: format!("restore {id}"), why });
        }
        let mut applied = self.return_from_limbo(context, id, to, why.clone())?;
        if superseded.is_some() && !applied.restored.as_ref().is_some_and(|restored| restored.stays) {
            let mut live = self.restore(context, id, to, why)?;
            applied.erased.append(&mut live.erased);
            applied.restored = live.restored;
        }
        Ok(applied)
    }

    /// Whether somebody has forgotten what took the place of a row, and with it what the row said.
    fn was_forgotten_after(&self, ns: NsId, superseded: Supersession) -> Result<bool> {
        let replaced = matches!(superseded.mode, SupersedeMode::Replaced | SupersedeMode::Correction);
        let stone = sound(self.tx.tombstone(ns, superseded.by))?.flatten().filter(|_| replaced);
        Ok(stone.is_some_and(|stone| stone.reason == TombstoneReason::Forget && stone.replaced_by.is_none()))
    }

    /// A memory that was there before it took the place of `old`, which is restored, is true from when it was before. Nothing
    /// changes as long as it has replaced others too, nor if somebody has said since when it is true.
    fn unbegin(&mut self, context: &Context, by: MemoryId, old: MemoryId) -> Result<Option<Delta>> {
        let ns = context.ns;
        // A damaged row stays as it is.
        let Some((before, content)) = sound(self.load_there(ns, by))?.flatten() else { return Ok(None) };
        if before.times.valid_from_recorded_at.is_none() {
            return Ok(None);
        }
        let mut replaces_another = false;
        // Mostly one of the first is replaced still, and there may be many.
        self.tx.walk(Table::Superseded, &Walk::prefix(&keys::memory(ns, by)), &mut |key, _| {
            let other = keys::Superseded::read(Table::Superseded, key)?.id;
            let row = sound(self.tx.vitals(ns, other))?.flatten().filter(|_| other != old);
            let superseded = row.and_then(|row| row.times.superseded);
            replaces_another =
                superseded.is_some_and(|superseded| superseded.mode == SupersedeMode::Replaced);
            Ok(if replaces_another { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if replaces_another {
            return Ok(None);
        }
        let mut vitals = before.clone();
        (vitals.times.valid_from, vitals.times.valid_from_recorded_at) = (None, None);
        vitals.version += 1;
        self.place_row(context, by, &before, &content, vitals, &content)?;
        let field = format!("{OF_THE_OTHER}{VALID_FROM}");
        Ok(Some(Delta { field, before: json!(before.times.valid_from), after: json!(null) }))
    }

    /// The same as a step of its own, of which the journal of the memory tells: `old` does not come back to stay.
    pub(crate) fn unbegin_for_gone(
        &mut self,
        context: &Context,
        by: MemoryId,
        old: MemoryId,
        rule: RuleId,
    ) -> Result<()> {
        let Some(delta) = self.unbegin(context, by, old)? else { return Ok(()) };
        self.tell_begin(context, by, Delta { field: VALID_FROM.to_owned(), ..delta }, rule)
    }

    /// Why a row that nothing has replaced can't be restored, and what can.
    fn why_in_place(&self, context: &Context, id: MemoryId, row: &Vitals) -> Result<String> {
        if let Some(end) = row.times.valid_to.filter(|end| *end <= context.now) {
            return Ok(format!(
                "it was true until {end}, and nothing has replaced it; `update {id} --clear valid_to` makes it true again"
            ));
        }
        let mut latest: Option<(Time, MemoryId)> = None;
        for old in self.tx.superseded_by(context.ns, id)? {
            let before = sound(self.tx.vitals(context.ns, old))?.flatten();
            let said = before.and_then(|before| before.times.superseded);
            let is_version = |mode| matches!(mode, SupersedeMode::Replaced | SupersedeMode::Correction);
            let said = said.filter(|said| is_version(said.mode));
            latest = latest.max(said.map(|said| (said.at, old)));
        }
        Ok(match latest {
            Some((_, old)) => {
                format!("it is not superseded; `restore {old}` brings back the text that it replaced")
            }
            None => "it is not superseded, and replaced no text that is still there".to_owned(),
        })
    }

    /// Takes the holders that came from `old` off the row that superseded it, if that row still exists, and off the rows
    /// to which they went on from there. A row goes if they were its last holders, because no write stands behind it
    /// any more. A holder whose key was led there and has said the same since stays, if it `keeps` what it has said.
    ///
    /// What a key has brought since comes back with it: tags, categories and entities. The journal of the rows
    /// that it leaves tells of it no more, because a later deletion of the key would not look there.
    pub(super) fn give_back(
        &mut self,
        context: &Context,
        new: MemoryId,
        old: MemoryId,
        (beyond, keeps): (Beyond, bool),
        why: &Why,
    ) -> Result<Vec<Erased>> {
        let ns = context.ns;
        let (mut from, mut at, mut left) = (old, new, None::<Vec<Holder>>);
        let mut erased = Vec::new();
        loop {
            // A damaged row gives back what can be read of it, and where it has gone on to is unknown.
            let vitals = sound(self.tx.vitals(ns, at))?;
            if vitals == Some(None) {
                break;
            }
            let mut copies = match &left {
                Some(left) => self.copies_of(ns, at, from, left)?,
                None => self.copies_from(ns, at, from)?,
            };
            copies.retain(|copy| left.as_mut().is_none_or(|left| took(left, copy)));
            if from == old {
                // A key that has left the row since, and that another one has, stays where it leads.
                self.keep_those_with_keys_in(ns, old, &mut copies)?;
            }
            if keeps {
                let said = self.said_there(ns, at, old, &copies)?;
                copies.retain(|copy| !said.contains(&copy.number));
            }
            if !copies.is_empty() {
                let mut applied = self.leave(context, at, &copies, Departure::Back(from), why)?;
                erased.append(&mut applied.erased);
                if let Some(left) = applied.left {
                    self.redact_holders(ns, at, &copies, left.said_anew)?;
                }
            }
            let damaged = self.damaged_copies(ns, at, old)?;
            if !damaged.is_empty() {
                let back = Departure::Back(from);
                erased.append(&mut self.detach_damaged(context, at, &damaged, back, why.clone())?.erased);
            }
            if copies.is_empty() {
                break;
            }
            if from == old {
                self.bring_back(ns, old, &copies)?;
            }
            let Some(times) = vitals.flatten().map(|vitals| vitals.times) else { break };
            let Some(next) = times.superseded_by() else { break };
            let goes_on = beyond == Beyond::All || times.merged_into().is_some();
            if !goes_on && !self.begins_ahead(context, next)? {
                copies.retain(|copy| copy.key.is_none());
            }
            (from, at, left) = (at, next, Some(copies));
        }
        Ok(erased)
    }

    /// Leaves out of copies of the holders of a row those whose keys the row has no more.
    fn keep_those_with_keys_in(&self, ns: NsId, id: MemoryId, copies: &mut Vec<Holder>) -> Result<()> {
        let mut gone = BTreeSet::new();
        for copy in copies.iter() {
            let has_key = copy.key.as_ref().map(|key| self.tx.holds_key(ns, key, id)).transpose()?;
            gone.extend((has_key == Some(false)).then_some(copy.number));
        }
        copies.retain(|copy| !gone.contains(&copy.number));
        Ok(())
    }

    /// Those of the copies at a row whose keys a supersession of `old` had led there, and which have said since what they led to.
    fn said_there(&self, ns: NsId, at: MemoryId, old: MemoryId, copies: &[Holder]) -> Result<BTreeSet<u32>> {
        let mut said = BTreeSet::new();
        let text_of = |id: MemoryId, holder: &Holder| -> Result<Option<String>> {
            match &holder.text {
                Some(text) => Ok(Some(text.clone())),
                None => Ok(sound(self.content_of(ns, id))?.map(|content| content.text)),
            }
        };
        for copy in copies.iter().filter(|copy| copy.key.is_some() && copy.has_text()) {
            let writers = self.readable_holders(ns, old)?;
            let before = writers.iter().find(|writer| copy.is_copy_of(writer) && writer.has_text());
            // A writer that had said the same before was not led there: it came with what it had said.
            let came = match before {
                Some(before) => text_of(old, before)? == text_of(at, copy)?,
                None => false,
            };
            if !came {
                said.insert(copy.number);
            }
        }
        Ok(said)
    }

    /// Lets the keys of a row that returns bring what their copies bring now. Links are not among it: a copy has lost those
    /// to the row on which it was.
    fn bring_back(&mut self, ns: NsId, id: MemoryId, copies: &[Holder]) -> Result<()> {
        for holder in self.tx.holders(ns, id)? {
            let copy = copies.iter().find(|copy| holder.key.is_some() && copy.key == holder.key);
            let Some(copy) = copy.filter(|copy| !brings_the_same(copy, &holder)) else { continue };
            let mut others = Vec::new();
            let beside = self.tx.holders(ns, id)?.into_iter().filter(|other| other.number != holder.number);
            beside.for_each(|other| unite(&mut others, &other.tags));
            // A row that would get too many tags keeps what its key brought before.
            if tags_fit(&others, &copy.tags) {
                let Holder { tags, categories, entities, .. } = copy.clone();
                let mut back = Holder { tags, categories, entities, ..holder };
                back.note_before(copy.said_before());
                self.replace_holder(ns, id, &back)?;
            }
        }
        Ok(())
    }

    /// The tags of a row that returns, and whether it is pinned: as its holders say.
    pub(super) fn retag(
        &self,
        ns: NsId,
        id: MemoryId,
        vitals: &mut Vitals,
        content: &mut Content,
    ) -> Result<()> {
        content.tags = self.tags_of(ns, id)?;
        vitals.pinned = content.tags.iter().any(|tag| tag == PINNED_TAG);
        Ok(())
    }

    /// Gives a restored row its keys again, except for keys that a current row other than `superseders` holds. The
    /// restored row gives these up and names them. A row that all its writers have left keeps them, as a superseded
    /// row does. If the row is to be changed by a write before what comes at an instant ahead, that keeps its own key, and so does what
    /// follows that: the same transaction lets it take the place of what the write leaves.
    pub(super) fn reclaim_keys(
        &mut self,
        context: &Context,
        id: MemoryId,
        superseders: &BTreeSet<MemoryId>,
        said: &SaidSince,
        to: RestoreTo,
    ) -> Result<Reclaimed> {
        let ns = context.ns;
        if said.by_all() {
            return Ok(Reclaimed { keys_taken: said.keys(), ..Reclaimed::default() });
        }
        // A pass brings a row back without asking what its keys are to say.
        let is_asked = to == RestoreTo::Live && context.run.is_none();
        let mut merged = BTreeSet::new();
        for superseder in superseders.iter().filter(|_| is_asked) {
            merged.extend(self.merged_on(ns, *superseder)?.into_iter().skip(1));
        }
        let mut reclaimed = Reclaimed::default();
        for holder in self.tx.holders(ns, id)? {
            let Some(key) = holder.key.clone() else { continue };
            for (other, number) in self.tx.holders_of_key(ns, &key)? {
                // What the key has said in the place of the row may stand in a row of others since, where a pass has united the two.
                let is_united = merged.contains(&other)
                    && sound(self.tx.holder(ns, other, number))?.flatten().is_some_and(|said| {
                        let from_here = |from| superseders.contains(&from) || merged.contains(&from);
                        said.has_text() && said.from.is_some_and(from_here)
                    });
                // What a key has said there by itself stays its word when a pass or an import is undone.
                let is_word =
                    |said: Holder| to == RestoreTo::Undo && said.has_text() && said.from == Some(id);
                let is_superseder = is_united
                    || superseders.contains(&other)
                        && !sound(self.tx.holder(ns, other, number))?.flatten().is_some_and(is_word);
                let times = sound(self.tx.vitals(ns, other))?.flatten().map(|vitals| vitals.times);
                // Of what takes the place of a superseder at an instant ahead, the key is that of the restored row until then.
                let has_key = times.is_some_and(|times| match is_superseder && to != RestoreTo::Write {
                    true => times.is_or_will_be_true(context.now),
                    false => times.is_current(context.now),
                });
                if other == id || !has_key || (!is_superseder && self.is_leaving(ns, other, number)?) {
                    continue;
                }
                if to != RestoreTo::Live && self.says_ahead(context, other, &key)? {
                    continue;
                }
                if is_superseder {
                    let stands = times.is_some_and(|times| times.superseded.is_none());
                    // A holder that can't be read has nothing but its key.
                    match sound(self.tx.holder(ns, other, number))?.flatten() {
                        Some(said) if is_asked && stands && said.has_text() => {
                            reclaimed.said_since.entry(other).or_default().insert(number);
                        }
                        Some(_) => self.drop_key(ns, other, number)?,
                        None => self.drop_damaged_key(ns, &key, other, number)?,
                    }
                } else {
                    self.drop_key(ns, id, holder.number)?;
                    reclaimed.keys_taken.push(key.clone());
                }
            }
        }
        Ok(reclaimed)
    }

    fn is_current(&self, ns: NsId, id: MemoryId, now: Time) -> Result<bool> {
        let vitals: Option<Vitals> = sound(self.tx.vitals(ns, id))?.flatten();
        Ok(vitals.is_some_and(|vitals| vitals.times.is_current(now)))
    }

    /// Removes the key of a holder. The holder stays, and its messages and its steps in the journal do not name the key any more:
    /// nobody who forgets the key comes here.
    pub(super) fn drop_key(&mut self, ns: NsId, id: MemoryId, number: u32) -> Result<()> {
        let holder = self.tx.holder(ns, id, number)?.ok_or_else(|| gone(id))?;
        if let Some(key) = &holder.key {
            self.redact_key(ns, id, number, key)?;
            for (event, row) in self.messages_under(ns, key)? {
                if row.memory == Some(*id.as_bytes()) {
                    truth(self.tx).put_event(ns, &event, &EventRow { key: None, ..row })?;
                }
            }
        }
        // The row by key follows from the old form, so that form is deleted and not overwritten.
        truth(self.tx).delete_holder(ns, id, &holder)?;
        truth(self.tx).put_holder(ns, id, &Holder { key: None, ..holder })
    }
}

/// Whether `copy` is the copy of one of these holders. That holder is then removed from the list.
fn took(holders: &mut Vec<Holder>, copy: &Holder) -> bool {
    let found = holders.iter().position(|holder| copy.is_copy_of(holder));
    found.map(|found| holders.swap_remove(found)).is_some()
}

fn brings_the_same(a: &Holder, b: &Holder) -> bool {
    let tags_alike = a.tags == b.tags && a.said_before() == b.said_before();
    tags_alike && (&a.categories, &a.entities) == (&b.categories, &b.entities)
}
