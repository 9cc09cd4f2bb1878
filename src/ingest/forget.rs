//! Forgetting on request: by id, by key, by tag, or by the ids that a filter found.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ingest::change::no_holder;
use crate::ingest::edit::Edit;
use crate::ingest::versions::Versions;
use crate::ingest::written::{ByRow, Written, by_row};
use crate::ledger::{Applied, Change, Left};
use crate::model::{
    Forgotten, Holder, Kind, MemoryId, Patch, RuleId, RunId, SupersedeMode, Times, TombstoneReason,
};
use crate::policy::OnSourceForget;
use crate::store::{PartId, Rows, Traces};

/// How names are forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForgetNames {
    /// The only partition in which rows go; none for all partitions.
    pub(crate) part: Option<PartId>,
    /// Whether to keep the superseded versions of a key.
    pub(crate) keep_history: bool,
    /// Whether to also erase rows that were merged into a forgotten row as duplicates.
    pub(crate) also_merged: bool,
    /// Whether to also erase the versions of rows that are forgotten by id, and the rows to which one of their keys leads.
    pub(crate) with_history: bool,
}

impl NamespaceWriter<'_, '_, '_> {
    /// Forgets ids and keys. Each name is one record of the answer.
    pub(crate) fn forget_names(&mut self, names: &[String], how: ForgetNames) -> Result<Forgotten> {
        let mut answer = Forgotten::default();
        let (mut versions, mut others) = (Versions::default(), BTreeSet::new());
        // All are walked before one goes: what goes leads nowhere any more.
        for name in names {
            match name.parse::<MemoryId>() {
                Ok(id) if self.ledger.tx.has_row(self.ns(), id)? => {
                    if !self.is_elsewhere(id, how.part)? {
                        others.append(&mut self.add_versions_of(id, &mut versions)?);
                    }
                }
                _ => {
                    let rows = self.rows_of_key(name, how.part)?;
                    self.add_led_from(&rows, &mut versions)?;
                }
            }
        }
        let mut went: BTreeSet<MemoryId> = BTreeSet::new();
        for name in names {
            match name.parse::<MemoryId>() {
                // It went with a name before, and is counted there.
                Ok(id) if went.contains(&id) => {}
                Ok(id) if self.is_elsewhere(id, how.part)? => answer.miss(name),
                Ok(id) if self.ledger.tx.has_row(self.ns(), id)? => {
                    self.forget_row(id, RuleId::FORGET_ID, (how.also_merged, how.part), &mut answer)?;
                    answer.forgotten += 1;
                }
                // So did a key of it that leads nowhere else, but for its messages that memories of before had told.
                Err(_)
                    if versions.has_key(name)
                        && self.ledger.tx.holders_of_key(self.ns(), name)?.is_empty() =>
                {
                    self.forget_messages(name, how.part, &BTreeSet::new(), &mut answer)?;
                }
                id => {
                    if let Ok(id) = id
                        && self.forget_gone((id, None), RuleId::FORGET_ID, how.part, &mut answer)?
                    {
                        answer.forgotten += 1;
                    } else {
                        self.forget_key(name, how, &mut answer)?;
                    }
                }
            }
            went.extend(answer.tombstones.iter().skip(went.len()));
        }
        for version in others.into_iter().filter(|_| how.with_history) {
            if self.ledger.tx.has_row(self.ns(), version)? && !self.is_elsewhere(version, how.part)? {
                self.forget_row(version, RuleId::FORGET_ID, (how.also_merged, how.part), &mut answer)?;
            }
        }
        // Another name may have taken what one has left.
        self.tell_versions(&versions, &mut answer)?;
        self.tell_derived(&mut answer)?;
        Ok(answer)
    }

    /// Whether a memory is that of an aggregate. The first message, which it superseded, then says the same, and every
    /// message is counted in it.
    fn is_of_aggregate(&self, id: MemoryId) -> Result<bool> {
        // Of no other kind; to find the aggregate, every row is read that the memory superseded.
        let vitals = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten();
        if vitals.is_none_or(|row| row.kind_code != Kind::Aggregate.code()) {
            return Ok(false);
        }
        Ok(sound(self.ledger.stands_for_messages(self.ns(), id))?.unwrap_or_default())
    }

    /// Erases a row with all its holders, and the rows for which it stands: duplicates, and the first message of an
    /// aggregate. A caller may have let it take the place of a row of another partition, which stays where only those of `part`
    /// go.
    fn forget_row(
        &mut self,
        id: MemoryId,
        rule: RuleId,
        (also_merged, part): (bool, Option<PartId>),
        answer: &mut Forgotten,
    ) -> Result<()> {
        let mut doomed = vec![id];
        while let Some(id) = doomed.pop() {
            self.forget_copies(id, rule, answer)?;
            // Asked before the row goes, because its content names the aggregate.
            let is_of_aggregate = self.is_of_aggregate(id)?;
            let change = Change::Remove { id, reason: TombstoneReason::Forget, replaced_by: None };
            let applied = self.apply(rule, change)?;
            let same = |mode: SupersedeMode| match mode {
                SupersedeMode::Duplicate => true,
                SupersedeMode::Aggregate => is_of_aggregate,
                SupersedeMode::Replaced | SupersedeMode::Correction => false,
            };
            let merged = applied.erased.iter().flat_map(|erased| &erased.predecessors);
            for (id, _) in merged.filter(|(_, mode)| also_merged && same(*mode)) {
                doomed.extend((!self.is_elsewhere(*id, part)?).then_some(*id));
            }
            answer.note(&applied);
        }
        Ok(())
    }

    /// The copies of writers of a row, in the rows into which that row was merged since.
    fn copies_of(&mut self, id: MemoryId, mut writers: Vec<Holder>) -> Result<Vec<(MemoryId, Vec<Holder>)>> {
        let (ns, mut all, mut came) = (self.ns(), Vec::new(), id);
        let mut seen = BTreeSet::from([id]);
        loop {
            let row = sound(self.ledger.tx.vitals(ns, came))?.flatten();
            let by = row.and_then(|row| row.times.merged_into()).filter(|by| seen.insert(*by));
            let Some(by) = by.filter(|_| !writers.is_empty()) else { return Ok(all) };
            let mut copies = self.ledger.copies_from(ns, by, came)?;
            copies.retain(|copy| writers.iter().any(|one| copy.is_copy_of(one)));
            all.push((by, copies.clone()));
            (came, writers) = (by, copies);
        }
    }

    /// A row that was merged into another row lives on in copies of its writes there, which answer with its text under
    /// its keys. These copies are erased with the row.
    fn forget_copies(&mut self, id: MemoryId, rule: RuleId, answer: &mut Forgotten) -> Result<()> {
        let writers = self.ledger.readable_holders(self.ns(), id)?;
        for (by, copies) in self.copies_of(id, writers)? {
            let told = copies.iter().filter(|copy| copy.has_text());
            let numbers: Vec<u32> = told.map(|copy| copy.number).collect();
            if !numbers.is_empty() {
                answer.note(&self.detach(by, numbers, rule, TombstoneReason::Forget)?);
            }
        }
        Ok(())
    }

    /// The same of a row that maintenance has erased after it was merged into another. Returns whether a text went.
    fn forget_copies_of_gone(
        &mut self,
        id: MemoryId,
        rule: RuleId,
        part: Option<PartId>,
        answer: &mut Forgotten,
    ) -> Result<bool> {
        let stone = sound(self.ledger.tx.tombstone(self.ns(), id))?.flatten();
        let stone = stone.filter(|stone| !stone.reason.is_asked_for());
        let mut into = stone.and_then(|stone| stone.replaced_by);
        let (mut came, mut seen, mut has_gone) = (id, BTreeSet::from([id]), false);
        let mut writers = None::<Vec<Holder>>;
        while let Some(by) = into.filter(|by| seen.insert(*by)) {
            if self.is_elsewhere(by, part)? {
                break;
            }
            let mut copies = self.ledger.copies_from(self.ns(), by, came)?;
            // What that row had written itself went on as well, and is not asked for.
            copies.retain(|copy| {
                writers.as_ref().is_none_or(|writers| writers.iter().any(|one| copy.is_copy_of(one)))
            });
            let numbers: Vec<u32> =
                copies.iter().filter(|copy| copy.has_text()).map(|copy| copy.number).collect();
            // Asked before the row may go with them.
            into = sound(self.ledger.tx.vitals(self.ns(), by))?
                .flatten()
                .and_then(|row| row.times.merged_into());
            if !numbers.is_empty() {
                answer.note(&self.detach(by, numbers, rule, TombstoneReason::Forget)?);
                has_gone = true;
            }
            (came, writers) = (by, Some(copies));
        }
        Ok(has_gone)
    }

    /// Removes a key from every row that holds or held it.
    fn forget_key(&mut self, key: &str, how: ForgetNames, answer: &mut Forgotten) -> Result<()> {
        let ns = self.ns();
        let (mut gone, mut held, mut left) = (false, false, Vec::new());
        let holders = self.rows_of_key(key, how.part)?;
        let past = if how.keep_history { self.past_of_key(&holders)? } else { BTreeSet::new() };
        for (id, number) in holders {
            // A row that ended together with another row no longer exists.
            if past.contains(&id) || !self.ledger.tx.has_row(ns, id)? {
                continue;
            }
            let vitals = sound(self.ledger.tx.vitals(ns, id))?.flatten();
            // What is to be replaced at an instant ahead is true until then, and no earlier version.
            let times =
                vitals.map(|vitals| vitals.times).filter(|times| !times.is_or_will_be_true(self.now()));
            let mode = times.and_then(|times| times.superseded).map(|superseded| superseded.mode);
            let is_of_aggregate = how.also_merged && self.is_of_aggregate(id)?;
            let leaver = match sound(self.ledger.tx.holder(ns, id, number))? {
                Some(None) => return Err(no_holder(id)),
                found => found.flatten(),
            };
            let applied = self.detach(id, vec![number], RuleId::FORGET_KEY, TombstoneReason::Forget)?;
            answer.note(&applied);
            left.extend(leaver.filter(|_| applied.left.is_some()).map(|leaver| (id, leaver)));
            gone = true;
            if is_of_aggregate {
                self.forget_messages_of(&applied, how.part, answer)?;
            }
            // Another holder of an earlier version does not hold the present text of the key.
            let counts = mode.is_none_or(|mode| mode == SupersedeMode::Duplicate);
            held |= counts && applied.left.is_some_and(|left| left.text_held);
        }
        for (id, leaver) in left.into_iter().filter(|_| how.keep_history) {
            self.settle_of_leavers(id, &[leaver], RuleId::FORGET_KEY)?;
        }
        gone |= self.forget_messages(key, how.part, &past, answer)?;
        for id in self.ledger.gone_of_key(ns, key)? {
            gone |= self.forget_gone((id, Some(key)), RuleId::FORGET_KEY, how.part, answer)?;
        }
        match (gone, held) {
            (_, true) => answer.detached += 1,
            (true, false) => answer.forgotten += 1,
            (false, false) => answer.miss(key),
        }
        Ok(())
    }

    /// Those of the rows of a key that are its history: superseded, and true no longer. What was merged into another memory is
    /// still true as long as the key is there, and what is in limbo is no history.
    fn past_of_key(&self, holders: &[(MemoryId, u32)]) -> Result<BTreeSet<MemoryId>> {
        let ids: BTreeSet<MemoryId> = holders.iter().map(|(id, _)| *id).collect();
        // What is to be replaced at an instant ahead is true until then, and no earlier version.
        let superseded = |id: MemoryId| -> Result<Option<Times>> {
            let times = sound(self.ledger.tx.vitals(self.ns(), id))?.flatten().map(|vitals| vitals.times);
            let is_over = |times: &Times| times.superseded.is_some() && !times.is_or_will_be_true(self.now());
            Ok(times.filter(is_over))
        };
        let mut past = BTreeSet::new();
        for id in &ids {
            let Some(times) = superseded(*id)?.filter(|times| times.removed_at.is_none()) else { continue };
            let merged =
                times.merged_into().map(|into| self.ledger.merged_on(self.ns(), into)).transpose()?;
            let end = merged.and_then(|merged| merged.last().copied()).filter(|end| ids.contains(end));
            let is_true = match end {
                Some(end) => superseded(end)?.is_none(),
                None => false,
            };
            if !is_true {
                past.insert(*id);
            }
        }
        Ok(past)
    }

    /// What was made from a memory that maintenance has erased may still tell of the memory. Its messages told of it as well:
    /// returns whether they did.
    fn forget_gone(
        &mut self,
        (id, key): (MemoryId, Option<&str>),
        rule: RuleId,
        part: Option<PartId>,
        answer: &mut Forgotten,
    ) -> Result<bool> {
        let has_gone = key.is_none() && self.forget_copies_of_gone(id, rule, part, answer)?;
        let late = self.ledger.forget_gone(&self.context, (id, key), rule, part)?;
        answer.derived.extend(late.derived);
        if let Some(first) = late.first {
            self.forget_row(first, rule, (true, part), answer)?;
        }
        Ok(has_gone || late.had_messages)
    }

    /// The messages that were written under a key, whatever has become of the memories that told them; but for those of its
    /// history that is kept. Returns whether there were any.
    fn forget_messages(
        &mut self,
        key: &str,
        part: Option<PartId>,
        past: &BTreeSet<MemoryId>,
        answer: &mut Forgotten,
    ) -> Result<bool> {
        let derived = self.ledger.erase_messages_of_key(&self.context, key, part, past)?;
        let had_messages = derived.is_some();
        answer.derived.extend(derived.unwrap_or_default());
        Ok(had_messages)
    }

    /// The messages of keys with which nothing is left of what was asked for, in the partitions in which it was.
    fn forget_messages_of_gone(
        &mut self,
        keys: &BTreeSet<(PartId, String)>,
        answer: &mut Forgotten,
    ) -> Result<()> {
        for (part, key) in keys {
            if self.ledger.tx.holders_of_key(self.ns(), key)?.is_empty() {
                self.forget_messages(key, Some(*part), &BTreeSet::new(), answer)?;
            }
        }
        Ok(())
    }

    /// The rows that a forget of a key is about, each with the number of the key's holder.
    fn rows_of_key(&self, key: &str, part: Option<PartId>) -> Result<Vec<(MemoryId, u32)>> {
        let mut rows = Vec::new();
        for (id, number) in self.ledger.tx.holders_of_key(self.ns(), key)? {
            rows.extend((!self.is_elsewhere(id, part)?).then_some((id, number)));
        }
        Ok(rows)
    }

    /// Whether a row lies outside the only partition that counts.
    fn is_elsewhere(&self, id: MemoryId, part: Option<PartId>) -> Result<bool> {
        let Some(part) = part else { return Ok(false) };
        Ok(self.ledger.tx.part_of(self.ns(), id)?.is_some_and(|there| there != part))
    }

    /// Erases the first messages of an aggregate whose memory went with its key.
    fn forget_messages_of(
        &mut self,
        applied: &Applied,
        part: Option<PartId>,
        answer: &mut Forgotten,
    ) -> Result<()> {
        for (id, mode) in applied.erased.iter().flat_map(|erased| &erased.predecessors) {
            if *mode == SupersedeMode::Aggregate {
                self.forget_row(*id, RuleId::FORGET_KEY, (true, part), answer)?;
            }
        }
        Ok(())
    }

    /// Forgets holders. If their text goes and the row stays, a tombstone with an id of its own tells of
    /// them.
    fn detach(
        &mut self,
        id: MemoryId,
        numbers: Vec<u32>,
        rule: RuleId,
        reason: TombstoneReason,
    ) -> Result<Applied> {
        let stone = self.next_id()?;
        self.apply(rule, Change::Detach { id, numbers, reason, stone })
    }

    /// Removes every holder with a tag, on rows in any state. A row goes with its last holder.
    pub(crate) fn forget_tag(
        &mut self,
        tag: &str,
        part: Option<PartId>,
        keep_pinned: bool,
    ) -> Result<Forgotten> {
        let ns = self.ns();
        let (mut doomed, mut stay) = (Vec::new(), BTreeSet::new());
        let has_tag = |holder: &Holder| holder.tags.iter().any(|its| its == tag);
        for (id, number) in self.ledger.tx.holders_of_tag(ns, tag)? {
            let elsewhere = self.is_elsewhere(id, part)?;
            let vitals = sound(self.ledger.tx.vitals(ns, id))?.flatten();
            let spared = keep_pinned && vitals.is_some_and(|vitals| vitals.is_protected());
            if elsewhere || spared || !self.ledger.tx.has_row(ns, id)? {
                continue;
            }
            let holder = sound(self.ledger.tx.holder(ns, id, number))?.flatten();
            match holder.filter(|holder| holder.is_said_beside(tag)) {
                Some(holder) => drop(stay.insert((id, holder.number))),
                None => doomed.push((id, number)),
            }
        }
        let mut kept = BTreeMap::<_, (BTreeSet<RunId>, BTreeSet<u32>)>::new();
        for (id, number) in stay {
            // A change of what the key says takes the tag off the memories that were united with it as well.
            let holder = sound(self.ledger.tx.holder(ns, id, number))?.flatten().filter(has_tag);
            let (runs, numbers) = kept.entry(id).or_default();
            numbers.insert(number);
            if let Some(holder) = holder {
                runs.extend(self.run_of_tag(id, &holder, tag)?);
                self.take_tag(id, holder, tag)?;
            }
        }
        let mut answer =
            self.take_holders(&doomed, &has_tag, RuleId::FORGET_TAG, TombstoneReason::ForgetByTag)?;
        let gone: BTreeSet<MemoryId> = answer.tombstones.iter().copied().collect();
        let left: BTreeSet<MemoryId> = doomed.into_iter().map(|(id, _)| id).collect();
        let mut restored = BTreeSet::new();
        kept.retain(|id, _| !gone.contains(id));
        for id in self.latest_of_ways(&kept)? {
            let Some((runs, numbers)) = kept.remove(&id) else { continue };
            answer.detached += u64::from(!left.contains(&id));
            restored.append(&mut self.restore_named_by(id, &runs, &numbers)?);
            if let Some(before) = self.left_for(id, &runs)? {
                restored.append(&mut self.restore_named_by(before, &runs, &BTreeSet::new())?);
            }
        }
        answer.restored += restored.len() as u64;
        Ok(answer)
    }

    /// Takes a tag off a holder, which keeps all else.
    fn take_tag(&mut self, id: MemoryId, holder: Holder, tag: &str) -> Result<()> {
        // What can't be read keeps its tags.
        if !self.ledger.is_whole(self.ns(), id)? {
            return Ok(());
        }
        let tags = holder.tags.iter().filter(|its| *its != tag).cloned().collect();
        let edit = Edit::of(Patch { tags: Some(tags), ..Patch::default() });
        let parts = self.parts_of_row(id)?;
        self.edit_in_place(id, parts, edit, vec![holder]).map(drop)
    }

    /// Removes holders, row by row. A memory that a removed row had superseded becomes live again, unless a caller asked for just
    /// these holders to be forgotten: then the end of the memory was intended. A key that led on from a removed row follows what was
    /// there before, so a holder stays that no longer `goes`.
    pub(super) fn take_holders(
        &mut self,
        doomed: &[(MemoryId, u32)],
        goes: &dyn Fn(&Holder) -> bool,
        rule: RuleId,
        reason: TombstoneReason,
    ) -> Result<Forgotten> {
        let brings_back = reason != TombstoneReason::Forget;
        let mut answer = Forgotten::default();
        let (mut kept, mut restored, mut keys) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut left, mut parted) = (Vec::new(), BTreeMap::<_, Vec<Holder>>::new());
        let rows = by_row(doomed.to_vec());
        let written = if brings_back { self.written_by(&rows)? } else { Written::default() };
        // A key leaves the row from which it was led before those to which it leads.
        let (led, own) = written.led_last(&rows);
        self.ledger.leaving.extend(doomed.iter().filter(|_| brings_back));
        for (id, numbers) in self.in_order(&own)?.into_iter().chain(&led) {
            let (mut there, mut leavers, mut is_copy) = (Vec::new(), Vec::new(), true);
            for number in numbers {
                self.ledger.leaving.remove(&(*id, *number));
                // A holder that a supersession had moved has gone back, or went with its row.
                let holder = match sound(self.ledger.tx.holder(self.ns(), *id, *number))? {
                    Some(None) => continue,
                    Some(Some(holder)) if !goes(&holder) => continue,
                    holder => holder.flatten(),
                };
                // A holder that was moved here is the same record as the holder on the row from which it came. A
                // holder that a supersession moved has written nothing here, even if that row is gone.
                is_copy &= holder.as_ref().is_some_and(|holder| {
                    holder.follows || holder.from.is_some_and(|from| rows.contains_key(&from))
                });
                there.push(*number);
                leavers.extend(holder);
            }
            if there.is_empty() {
                continue;
            }
            let part = sound(self.ledger.tx.part_of(self.ns(), *id))?.flatten();
            let applied = self.detach(*id, there, rule, reason)?;
            match applied.left {
                Some(_) if is_copy => {}
                Some(Left { text_held: true, .. }) => drop(kept.insert(*id)),
                Some(Left { text_held: false, .. }) | None => answer.forgotten += 1,
            }
            answer.note(&applied);
            let of_leavers = leavers
                .iter()
                .filter_map(|leaver| leaver.key.clone())
                .chain(applied.lost_keys.iter().cloned());
            keys.extend(of_leavers.filter_map(|key| Some((part?, key))));
            let runs = leavers.iter().filter_map(|leaver| leaver.run).collect();
            if brings_back {
                restored.append(&mut self.restore_predecessors(&applied, &runs)?);
            }
            if reason == TombstoneReason::ForgetByTag {
                restored.append(&mut self.restore_led_on(&applied, &runs)?);
            }
            if brings_back && let Some(before) = self.left_for(*id, &runs)? {
                parted.entry(before).or_default().extend(leavers.iter().cloned());
            }
            left.extend(applied.left.map(|_| (*id, leavers)));
        }
        // An undo goes by the steps of its run: beside these, keys lead again to the rows that they had left.
        let is_undo = reason == TombstoneReason::Undone;
        let again = if is_undo { std::mem::take(&mut parted) } else { BTreeMap::new() };
        left.extend(parted);
        restored.append(&mut self.settle_left(left, &written, rule, reason)?);
        for (before, leavers) in again {
            self.lead_again(before, &leavers, rule)?;
        }
        let gone: BTreeSet<_> = answer.tombstones.iter().copied().collect();
        answer.detached = kept.difference(&gone).count() as u64;
        answer.restored = restored.difference(&gone).count() as u64;
        if reason != TombstoneReason::Undone {
            self.forget_messages_of_gone(&keys, &mut answer)?;
        }
        self.tell_derived(&mut answer)?;
        Ok(answer)
    }

    /// Rows that writers leave, each before what is to take its place at an instant ahead: as a row comes back, it takes its keys from
    /// all that follows.
    fn in_order<'r>(&self, rows: &'r ByRow) -> Result<Vec<(&'r MemoryId, &'r Vec<u32>)>> {
        let mut before = BTreeMap::<MemoryId, Vec<MemoryId>>::new();
        for id in rows.keys() {
            let times = sound(self.ledger.tx.vitals(self.ns(), *id))?.flatten().map(|row| row.times);
            if let Some((by, _)) = times.and_then(|times| times.replaced_ahead(self.now())) {
                before.entry(by).or_default().push(*id);
            }
        }
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        for id in rows.keys() {
            let mut way = vec![*id];
            while let Some(at) = way.pop() {
                match before.remove(&at) {
                    Some(first) => {
                        way.push(at);
                        way.extend(first.into_iter().rev());
                    }
                    None => order.extend(rows.get_key_value(&at).filter(|_| seen.insert(at))),
                }
            }
        }
        Ok(order)
    }

    /// Rows, each after those that have taken its place: what a row has replaced comes back only once the row itself is back.
    fn latest_of_ways<T>(&self, rows: &BTreeMap<MemoryId, T>) -> Result<Vec<MemoryId>> {
        let (mut order, mut seen) = (Vec::with_capacity(rows.len()), BTreeSet::new());
        for id in rows.keys() {
            let (mut way, mut next) = (Vec::new(), Some(*id));
            while let Some(at) = next.filter(|at| rows.contains_key(at) && seen.insert(*at)) {
                way.push(at);
                let times = sound(self.ledger.tx.vitals(self.ns(), at))?.flatten().map(|row| row.times);
                next = times.and_then(|times| times.superseded_by());
            }
            order.extend(way.into_iter().rev());
        }
        Ok(order)
    }

    /// What leavers had superseded by rows that stay: a row that was led on to another one comes back when its writers have left that
    /// row as well. Returns the rows that are live again.
    fn settle_left(
        &mut self,
        left: Vec<(MemoryId, Vec<Holder>)>,
        written: &Written,
        rule: RuleId,
        reason: TombstoneReason,
    ) -> Result<BTreeSet<MemoryId>> {
        let mut restored = BTreeSet::new();
        for (id, leavers) in left {
            if reason == TombstoneReason::ForgetByTag {
                restored.append(&mut self.restore_named_by(
                    id,
                    &self.runs_of(id, &leavers)?,
                    &BTreeSet::new(),
                )?);
            }
            if reason == TombstoneReason::Forget {
                self.settle_of_leavers(id, &leavers, rule)?;
            } else {
                restored.append(&mut self.restore_of_leavers(id, &leavers, written)?);
                self.lead_again(id, &leavers, rule)?;
            }
        }
        Ok(restored)
    }

    /// Erases rows that a filter found, in the same way as forgetting their ids. Of a row with numbers of holders beside it only
    /// these go, in the same way as forgetting a tag. Rows outside `part` stay.
    pub(crate) fn forget_found(
        &mut self,
        found: &[(MemoryId, Option<Vec<u32>>)],
        part: Option<PartId>,
    ) -> Result<Forgotten> {
        let (mut answer, mut keys) = (Forgotten::default(), BTreeSet::new());
        for id in found.iter().filter_map(|(id, numbers)| numbers.is_none().then_some(*id)) {
            if self.ledger.tx.has_row(self.ns(), id)? {
                let writers = self.ledger.readable_holders(self.ns(), id)?;
                let there = sound(self.ledger.tx.part_of(self.ns(), id))?.flatten();
                let of_row = writers.into_iter().filter_map(|writer| Some((there?, writer.key?)));
                keys.extend(of_row);
                self.forget_row(id, RuleId::FORGET_FILTER, (true, part), &mut answer)?;
                answer.forgotten += 1;
            }
        }
        let mut numbered = BTreeSet::new();
        for (id, numbers) in found {
            for number in numbers.iter().flatten() {
                numbered.insert((*id, *number));
                let writer = sound(self.ledger.tx.holder(self.ns(), *id, *number))?.flatten();
                for (by, copies) in self.copies_of(*id, Vec::from_iter(writer))? {
                    numbered.extend(copies.iter().map(|copy| (by, copy.number)));
                }
            }
        }
        let numbered = Vec::from_iter(numbered);
        let of_writers =
            self.take_holders(&numbered, &|_| true, RuleId::FORGET_FILTER, TombstoneReason::Forget)?;
        self.forget_messages_of_gone(&keys, &mut answer)?;
        self.tell_derived(&mut answer)?;
        answer.add(of_writers);
        Ok(answer)
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// What was made from forgotten memories and stays may still tell of them. It says how many of its sources were
    /// forgotten; a summary goes to limbo instead, if the policy wants so.
    fn tell_derived(&mut self, answer: &mut Forgotten) -> Result<()> {
        let gone: BTreeSet<MemoryId> = answer.tombstones.iter().copied().collect();
        let mut derived: BTreeMap<MemoryId, u64> = BTreeMap::new();
        for id in answer.derived.drain(..).filter(|id| !gone.contains(id)) {
            *derived.entry(id).or_default() += 1;
        }
        for (id, sources) in derived {
            answer.derived.push(id);
            // A damaged summary keeps nothing from being forgotten.
            let Some(vitals) = self.ledger.whole_vitals(self.ns(), id)? else { continue };
            // What waits in limbo, or goes there now, may come back.
            self.ledger.note_forgotten(&self.context, id, sources)?;
            // Sources that are left of a summary come back with its undo. What was distilled stands for its sources.
            let is_summary = vitals.kind_code == Kind::Summary.code() && vitals.times.removed_at.is_none();
            if is_summary && self.policy.gc.on_source_forget == OnSourceForget::Retire {
                let (reason, replaced_by) = (TombstoneReason::Pruned, None);
                self.apply(RuleId::FORGOTTEN_SOURCE, Change::Retire { id, reason, replaced_by })?;
            }
        }
        Ok(())
    }
}

impl Forgotten {
    /// Where none of some names names anything.
    pub(crate) fn none_of(names: &[String]) -> Self {
        Forgotten { missing_names: names.to_vec(), ..Forgotten::default() }
    }

    fn miss(&mut self, name: &str) {
        self.missing_names.push(name.to_owned());
    }

    /// Counts what another call has forgotten as well.
    fn add(&mut self, mut other: Forgotten) {
        self.forgotten += other.forgotten;
        self.detached += other.detached;
        self.went_with += other.went_with;
        self.restored += other.restored;
        self.tombstones.append(&mut other.tombstones);
        self.derived.append(&mut other.derived);
    }

    pub(super) fn note(&mut self, applied: &Applied) {
        for erased in &applied.erased {
            self.tombstones.push(erased.id);
            self.derived.extend(&erased.derived);
        }
        self.derived.extend(&applied.derived);
        self.went_with += applied.went_with;
    }
}
