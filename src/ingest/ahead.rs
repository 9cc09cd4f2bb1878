//! A memory that another one replaces at an instant ahead. Until then its key means the old text: a write through the key
//! changes that text, and what it leaves is replaced at the same instant.
//!
//! What is to come can change meanwhile. A correction of the memory that comes then comes in its place. If that memory is to
//! be replaced in its turn, so is the correction. If nothing is to come any more, the old text still ends at the instant.

use crate::error::{Result, sound};
use crate::index::{Answering, answering_to_key};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Moves, RestoreTo};
use crate::model::{Holder, MemoryId, Overtaken, RuleId, SupersedeMode, Time, Vitals};
use crate::store::{Rows, Table, keys};
use std::collections::{BTreeMap, BTreeSet};

/// What is to take the place of a memory that is true now, or will be before.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// The memory that is true until then.
    old: MemoryId,
    /// One replacement after the other. None if what was to come is gone.
    steps: Vec<Step>,
    /// The memories whose places others take, with what their rows say of that.
    told: Vec<(MemoryId, Overtaken)>,
}

/// One memory takes the place of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) old: MemoryId,
    pub(super) new: MemoryId,
    /// The instant.
    pub(super) at: Time,
    /// Since when it has been known that the place of this row is taken.
    pub(super) since: Option<Time>,
    /// The memory that has brought the two together, if nobody has said that the one replaces the other.
    pub(super) via: Option<MemoryId>,
    /// Whether the rows say so, and need no change as long as neither of them changes.
    pub(super) stands: bool,
}

impl Step {
    /// A step that no row says yet.
    pub(super) fn new(old: MemoryId, new: MemoryId, at: Time) -> Self {
        Step { old, new, at, since: None, via: None, stands: false }
    }
}

impl Ahead {
    /// Splits off what has happened by an instant: the memory that is true then, and what is still ahead.
    pub(super) fn by(mut self, at: Time) -> (MemoryId, Option<Ahead>) {
        let passed = self.steps.iter().take_while(|step| step.at <= at).count();
        let rest = self.steps.split_off(passed);
        let Some(last) = self.steps.last() else { return (self.old, Some(Ahead { steps: rest, ..self })) };
        let ahead = Ahead { old: last.new, steps: rest, told: self.told };
        (last.new, Some(ahead).filter(|ahead| !ahead.steps.is_empty()))
    }

    /// What takes the place of a memory that is to stand for others as well: what was to follow each of them, but for what is gone. The
    /// texts come one after the other, each at its own instant. At equal instants, what takes the place of the last of `all` comes
    /// last, and so is true from then on.
    fn joined(old: MemoryId, all: &[&Ahead], gone: &BTreeSet<MemoryId>) -> Ahead {
        let pair = |step: &Step| ((step.old, step.new), *step);
        let mut comes: Vec<Step> = all.iter().flat_map(|ahead| &ahead.steps).copied().collect();
        let known: BTreeMap<_, _> = comes.iter().map(pair).collect();
        if all.len() > 1 {
            comes.sort_by_key(|step| step.at);
        }
        let (mut last, mut seen) = (old, BTreeSet::from([old]));
        // Several may lead to the same memory.
        comes.retain(|step| !gone.contains(&step.new) && seen.insert(step.new));
        for step in &mut comes {
            step.old = std::mem::replace(&mut last, step.new);
            let before = known.get(&(step.old, step.new));
            let via = step.via.filter(|_| step.old == old).or(Some(old));
            step.since = before.and_then(|before| before.since);
            step.via = before.map_or(via, |before| before.via);
            step.stands = before.is_some_and(|before| before.stands && before.at == step.at);
        }
        let told = all.iter().flat_map(|ahead| &ahead.told).copied().collect();
        Ahead { old, steps: comes, told }
    }

    /// Whether nothing of what is to come comes before an instant.
    pub(super) fn is_after(&self, at: Time) -> bool {
        self.steps.iter().all(|step| step.at >= at)
    }

    /// What is to come, each with its instant, the next first.
    pub(super) fn to_come(&self) -> Vec<(MemoryId, Time)> {
        self.steps.iter().map(|step| (step.new, step.at)).collect()
    }

    /// Another row says now what a memory that is to come said.
    pub(super) fn is_now(&mut self, old: MemoryId, new: MemoryId) {
        for step in self.steps.iter_mut().filter(|_| old != new) {
            if step.new == old {
                step.new = new;
            }
            if step.old == old {
                (step.old, step.since) = (new, None);
            }
        }
    }

    /// A memory that is to come may change: what comes after it takes its place anew. Where another row may say then what it said,
    /// that row takes its place anew as well.
    pub(super) fn may_change(&mut self, id: MemoryId, may_move: bool) {
        for step in &mut self.steps {
            step.stands &= step.old != id && !(may_move && step.new == id);
        }
    }

    /// The instant at which this memory comes, if none before it comes later.
    pub(super) fn begins(&self, id: MemoryId) -> Option<Time> {
        let place = self.steps.iter().position(|step| step.new == id)?;
        let way = self.steps.get(..=place)?;
        way.is_sorted_by_key(|step| step.at).then(|| way.last().map(|step| step.at)).flatten()
    }

    /// Whether this memory comes next.
    pub(super) fn comes_next(&self, id: MemoryId) -> bool {
        self.steps.first().is_some_and(|step| step.new == id)
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// The row that a key means to a writer, as to a reader.
    pub(super) fn meant_by_key(&self, key: &str) -> Result<Option<Answering>> {
        answering_to_key(&*self.ledger.tx, self.ns(), key, self.now())
    }

    /// The row that a write under a key changes, and the number of the holder.
    pub(super) fn holder_to_change(&self, key: &str) -> Result<Option<(MemoryId, u32)>> {
        let Some(found) = self.meant_by_key(key)? else { return Ok(None) };
        Ok(found.vitals.times.is_or_will_be_true(self.now()).then_some((found.id, found.number)))
    }

    /// What takes the place of a memory that is true now, or will be before, if a caller said so.
    pub(super) fn ahead_of(&mut self, old: MemoryId) -> Result<Option<Ahead>> {
        self.ahead_beside(old, None)
    }

    /// The same beside a memory that is about to take a place, and has none yet.
    pub(super) fn ahead_beside(&mut self, old: MemoryId, new: Option<MemoryId>) -> Result<Option<Ahead>> {
        let times = sound(self.ledger.tx.vitals(self.ns(), old))?.flatten().map(|vitals| vitals.times);
        let is_true =
            times.is_some_and(|times| times.superseded.is_some() && times.is_or_will_be_true(self.now()));
        if is_true { self.ahead_on(old, new) } else { Ok(None) }
    }

    /// The same of a memory that may be overtaken at its own instant, so that it is never true.
    pub(super) fn ahead_on(&mut self, old: MemoryId, new: Option<MemoryId>) -> Result<Option<Ahead>> {
        let Some(mut vitals) = sound(self.ledger.tx.vitals(self.ns(), old))?.flatten() else {
            return Ok(None);
        };
        let mut ahead = Ahead { old, steps: Vec::new(), told: Vec::new() };
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        let mut at = old;
        while seen.insert(at) {
            // What was to take the place can have ended, or go itself where this is to go.
            ahead.told.extend(vitals.times.told_ahead(self.now()).map(|told| (at, told)));
            let Some((mut step, next)) = self.step_from(at, &vitals, new)? else { break };
            // What has ended before it comes takes a place only as long as nothing has taken its own.
            let ended = |last: &Step| vitals.times.valid_from.is_none() && vitals.times.until() <= last.at;
            step.stands &= !ahead.steps.last().is_some_and(ended);
            ahead.steps.push(step);
            (at, vitals) = (step.new, next);
        }
        Ok(Some(ahead))
    }

    /// Whether another memory takes the place of this one at an instant ahead.
    pub(crate) fn is_replaced_ahead(&mut self, id: MemoryId) -> Result<bool> {
        Ok(self.ahead_of(id)?.is_some())
    }

    /// The memory that replaces a row, and its hot part. A damaged row takes nobody's place.
    fn step_from(
        &mut self,
        old: MemoryId,
        vitals: &Vitals,
        beside: Option<MemoryId>,
    ) -> Result<Option<(Step, Vitals)>> {
        let times = &vitals.times;
        let superseded = times.superseded.filter(|by| by.mode == SupersedeMode::Replaced);
        let Some((superseded, end)) = superseded.zip(times.valid_to) else { return Ok(None) };
        let successor = self.ledger.successor(self.ns(), superseded.by, self.now())?;
        // What was to come can be merged into a memory that has ended by then.
        let successor = successor.filter(|(_, next)| {
            next.times.valid_from.is_some() || next.times.own_end().is_none_or(|own| own > end)
        });
        let is_gone = successor.is_none();
        // What was to come is gone, but a text of a key of the row can come later.
        let later = if is_gone { self.to_come_after(old, beside)? } else { None };
        let Some((new, next)) = successor.or(later) else { return Ok(None) };
        // An end of the row's own may come first. Then the other memory says when it begins.
        let ends_itself = is_gone || times.valid_to_before.is_some_and(|own| own <= end);
        let begins = next.times.valid_from.filter(|_| ends_itself);
        let at = begins.map_or(end, |from| from.max(end));
        let via = superseded.via.filter(|_| !is_gone);
        let stands = superseded.by == new;
        let step = Step { since: Some(superseded.at), via, stands, ..Step::new(old, new, at) };
        Ok(Some((step, next)))
    }

    /// The memory that one of the keys of a row says at an instant ahead.
    fn to_come_after(&self, old: MemoryId, beside: Option<MemoryId>) -> Result<Option<(MemoryId, Vitals)>> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        for key in self.ledger.readable_holders(ns, old)?.into_iter().filter_map(|holder| holder.key) {
            for (id, number) in tx.holders_of_key(ns, &key)? {
                let vitals = sound(tx.vitals(ns, id))?.flatten();
                let is_other = id != old && beside != Some(id);
                let current = vitals.filter(|vitals| is_other && vitals.times.is_current(self.now()));
                if let Some(vitals) = current
                    && self.ledger.is_to_come(ns, id, number, self.now())?
                {
                    return Ok(Some((id, vitals)));
                }
            }
        }
        Ok(None)
    }

    /// Finds which of the texts that the key of a holder announces leave their places before the holder changes: those that others have
    /// written as well, and those from which the key is led on.
    pub(super) fn open_ahead(&self, ahead: &mut Ahead, had: &Holder) -> Result<()> {
        let own = ahead.to_come().into_iter().map(|(id, _)| Ok((id, self.own_ahead(id, had)?)));
        let own = own.collect::<Result<Vec<_>>>()?;
        let next = own.iter().skip(1).map(|(_, next)| next.is_none()).chain([false]);
        for ((id, holder), leads_on) in own.iter().zip(next) {
            let Some(holder) = holder else { continue };
            let is_shared = self.has_others(*id, holder.number)?;
            if is_shared || leads_on {
                ahead.may_change(*id, is_shared);
            }
        }
        Ok(())
    }

    /// The holder of a memory that was written to take the place of what the key of this holder says. The other keys of the memory are
    /// not read.
    pub(super) fn own_ahead(&self, id: MemoryId, had: &Holder) -> Result<Option<Holder>> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let numbers = match &had.key {
            Some(key) => {
                let there =
                    tx.id_and_number(Table::HolderKey, &keys::holder_key_row(ns, key, id), usize::MAX)?;
                there.into_iter().map(|(_, number)| number).collect()
            }
            None => tx.keyless_holders(ns, id)?,
        };
        for number in numbers {
            let own = tx.holder(ns, id, number)?.filter(Holder::replaces_ahead);
            if own.is_some() {
                return Ok(own);
            }
        }
        Ok(None)
    }

    /// Makes the memory that is true now one that can be changed: its keys come back to it. Of what is to come after that, only what
    /// is to change leaves its place.
    pub(super) fn bring_back(&mut self, ahead: &mut Ahead) -> Result<()> {
        let mut whole = ahead.steps.len();
        for (place, step) in ahead.steps.iter().enumerate().skip(1).rev().filter(|(_, step)| !step.stands) {
            if !self.ledger.is_whole(self.ns(), step.old)? {
                whole = place;
            }
        }
        // A row of which a part is damaged stays as it is, with what comes after it.
        ahead.steps.truncate(whole);
        // From the last on, so that a key goes back the way that it went.
        let later = ahead.steps.iter().skip(1).rev().filter(|step| !step.stands).map(|step| step.old);
        for id in later.chain([ahead.old]) {
            // Two memories may be followed by the same one.
            let vitals = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
            if vitals.is_none_or(|vitals| vitals.times.superseded.is_some()) {
                self.apply(RuleId::RESTORE, Change::Restore { id, to: RestoreTo::Write })?;
            }
        }
        // No row says the first step any more.
        ahead.may_change(ahead.old, false);
        Ok(())
    }

    /// Lets what is left of memories, and the memory that was made of them or has taken their places, be replaced at the instants ahead:
    /// `plans` are those of the memories, and `own` is that of the other one. Of a memory that ends in another way now, it stays
    /// known how it was to end.
    pub(super) fn replace_ahead(
        &mut self,
        plans: &[Ahead],
        (made, own): (MemoryId, Option<&Ahead>),
    ) -> Result<()> {
        // At equal instants, what was to take the place of the first comes after that of the others.
        let all: Vec<&Ahead> = plans.iter().rev().chain(own).collect();
        let mut gone = BTreeSet::new();
        for (id, _) in all.iter().flat_map(|ahead| ahead.to_come()) {
            // What was to come went where it had nothing but the keys that are back now.
            gone.extend((!self.ledger.tx.has_row(self.ns(), id)?).then_some(id));
        }
        let mut joined = Ahead::joined(made, &all, &gone);
        // The steps of one memory alone are in their order already.
        if all.len() > 1 {
            self.bring_back(&mut joined)?;
        }
        let first = plans.iter().filter_map(|ahead| ahead.steps.first());
        let first = first.filter(|step| !gone.contains(&step.new));
        for step in first.chain(joined.steps.iter().filter(|step| !step.stands)) {
            self.replace_left(*step)?;
        }
        let stands: BTreeSet<MemoryId> =
            joined.steps.iter().filter(|step| step.stands).map(|step| step.old).collect();
        for (id, told) in joined.told.iter().filter(|(id, _)| !stands.contains(id)) {
            self.ledger.keep_overtaken(&self.context, *id, (*told, self.has_announced(*id, told.by)?))?;
        }
        for ahead in plans.iter().filter(|ahead| ahead.old != made) {
            self.ledger.inherit_overtaken(&self.context, ahead.old, made)?;
        }
        Ok(())
    }

    /// Carries a step out, if the memory whose place is to be taken ends in no other way.
    fn replace_left(&mut self, step: Step) -> Result<()> {
        if step.old == step.new {
            return Ok(());
        }
        let (vitals, _) = self.ledger.load(self.ns(), step.old)?;
        let is_over = vitals.times.superseded.is_some() || vitals.times.is_expired(self.now());
        if is_over { Ok(()) } else { self.replace_at(step) }
    }

    /// Whether a writer of a row has announced a text by its key, so that the text itself tells what it is to replace.
    fn has_announced(&self, id: MemoryId, by: MemoryId) -> Result<bool> {
        let mut writers = self.ledger.readable_holders(self.ns(), id)?;
        writers.retain(Holder::has_text);
        self.is_announced_for(by, &writers)
    }

    /// Lets what was announced before take the place of a row. That is no act of the run that writes now, and no undo of the run
    /// takes it away.
    pub(super) fn replace_at(&mut self, Step { old, new, at, since, via, .. }: Step) -> Result<()> {
        let run = self.context.run.take();
        let (mode, moves) = (SupersedeMode::Replaced, Moves::All);
        let done = self.apply(RuleId::ANNOUNCED, Change::Supersede { old, new, mode, at, moves, since, via });
        self.context.run = run;
        done.map(drop)
    }
}
