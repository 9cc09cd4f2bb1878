//! Messages: their events, families and aggregates, written and undone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde_json::{Map, Value, json};

use crate::error::{Result, sound};
use crate::ledger::applied::Applied;
use crate::ledger::change::{Recorded, RestoreTo};
use crate::ledger::erase::Going;
use crate::ledger::writer::{Context, Ledger, Why, truth, used};
use crate::limits::{SNIPPET_BYTES, SNIPPETS_MAX};
use crate::model::{
    AggregateId, EventDecision, Holder, Kind, Life, MemoryId, Op, SupersedeMode, Time, TombstoneReason,
};
use crate::store::control::CounterSort as Sort;
use crate::store::{
    AggregateRow, EventRow, FamilyRow, Id, MessageRows, NsId, PartId, Read, Rows, Table, Traces, Walk, keys,
    last_id,
};

/// An aggregate as its memory shows it: the metadata of a memory of the kind `aggregate`.
pub(crate) fn statistics(id: &Id, row: &AggregateRow) -> Map<String, Value> {
    let shown = |ts| Time::from_millis(ts).to_string();
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
    put("family_id", json!(MemoryId::from_bytes(row.family)));
    put("aggregate_id", json!(AggregateId::from_bytes(*id)));
    put("dup_count", json!(row.dup_count));
    put("ts_first", json!(shown(row.first_ts)));
    put("ts_last", json!(shown(row.last_ts)));
    put("time_span", json!(row.last_ts.abs_diff(row.first_ts)));
    put("authors_seen", json!(row.authors.len()));
    put("slice", json!(row.slice));
    put("classification", json!(row.classification));
    map
}

/// How many members an aggregate names at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MembersMax {
    /// Messages that stand for the others.
    pub(crate) examples: usize,
    pub(crate) authors: usize,
}

/// The beginning of a text, as an aggregate shows it.
fn snippet(text: &str) -> String {
    // Position 0 is a boundary of every text, so an end is always found.
    let end = (0..=SNIPPET_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

impl AggregateRow {
    /// Adds the beginning of a text to the snippets, if the text is new and there is room.
    fn show(&mut self, text: Option<&str>) {
        let text = text.map(snippet).filter(|text| !text.is_empty());
        if let Some(text) =
            text.filter(|text| self.snippets.len() < SNIPPETS_MAX && !self.snippets.contains(text))
        {
            self.snippets.push(text);
        }
    }

    /// Counts one more member. A member that comes late may be an earlier example than the present ones.
    pub(crate) fn take(
        &mut self,
        rows: &impl MessageRows,
        ns: NsId,
        id: &Id,
        event: &EventRow,
        most: MembersMax,
    ) -> Result<()> {
        self.dup_count = self.dup_count.saturating_add(1);
        if let Some(author) = event.author_id.as_ref().filter(|author| !self.authors.contains(author))
            && self.authors.len() < most.authors
        {
            self.authors.push(author.clone());
        }
        let late = self.dup_count > 1 && event.ts < self.last_ts;
        if self.dup_count == 1 || event.ts < self.first_ts {
            (self.first_ts, self.first_event) = (event.ts, *id);
        }
        if !late {
            (self.last_ts, self.last_event) = (event.ts, *id);
            if self.examples.len() < most.examples {
                self.examples.push(*id);
                self.show(event.payload.as_deref());
            }
            return Ok(());
        }
        // Only the present examples are read again, so the cost does not grow with the number of members.
        let mut shown = vec![(event.ts, *id, event.payload.clone())];
        for example in &self.examples {
            if let Some(row) = rows.event(ns, example)? {
                shown.push((row.ts, *example, row.payload));
            }
        }
        shown.sort_unstable();
        shown.truncate(most.examples);
        self.examples = shown.iter().map(|(_, id, _)| *id).collect();
        self.snippets.clear();
        for (_, _, payload) in &shown {
            self.show(payload.as_deref());
        }
        Ok(())
    }
}

impl Ledger<'_, '_> {
    pub(super) fn record(&mut self, context: &Context, recorded: Recorded, why: Why) -> Result<Applied> {
        let Recorded { event, row, family, aggregate, life } = recorded;
        let ns = context.ns;
        if self.tx.event(ns, &event)?.is_some() {
            return Err(used(MemoryId::from_bytes(event)));
        }
        let part = PartId(row.part);
        self.counters.add(ns, part, Sort::Events, "", 1, 0);
        truth(self.tx).put_event(ns, &event, &row)?;
        let mut subject = row.memory;
        if let Some((id, numbers)) = &aggregate {
            if self.tx.aggregate(ns, id)?.is_none() {
                self.counters.add(ns, part, Sort::Aggregates, "", 1, 0);
                // The first message came before there was an aggregate, so its row names the aggregate from now
                // on.
                if let Some((first, _)) = &family
                    && let Some(mut first_row) = self.tx.event(ns, first)?
                {
                    first_row.aggregate = Some(*id);
                    truth(self.tx).put_event(ns, first, &first_row)?;
                }
            }
            truth(self.tx).put_aggregate(ns, id, numbers)?;
            self.refresh(context, id, numbers, life)?;
            subject = subject.or(numbers.memory);
        }
        if let Some((id, family)) = &family {
            truth(self.tx).put_family(ns, id, family)?;
        }
        let subject = subject.map(|id| (MemoryId::from_bytes(id), None));
        self.journal(context, Op::Event, subject, Vec::new(), why)?;
        Ok(Applied::default())
    }

    /// Updates the memory of an aggregate to its numbers, if the memory exists.
    fn refresh(&mut self, context: &Context, id: &Id, row: &AggregateRow, life: Option<Life>) -> Result<()> {
        let Some(memory) = row.memory.map(MemoryId::from_bytes) else { return Ok(()) };
        if !self.is_whole(context.ns, memory)? {
            return Ok(());
        }
        let (before, old) = self.load(context.ns, memory)?;
        let (mut vitals, mut content) = (before.clone(), old.clone());
        // Metadata that a caller has added stay.
        match &mut content.metadata {
            Value::Object(metadata) => metadata.extend(statistics(id, row)),
            other => *other = Value::Object(statistics(id, row)),
        }
        vitals.set_life(life.unwrap_or(vitals.life()));
        // A new version without a change would make plans about the memory stale.
        if vitals == before && content == old {
            return Ok(());
        }
        vitals.version += 1;
        vitals.updated_at = context.now;
        self.place_row(context, memory, &before, &old, vitals, &content).map(|_| ())
    }

    /// Takes messages back: their events, their part in the aggregates of their families, and the reinforcement that
    /// they brought. An aggregate with fewer than two members goes, with its memory, and the first message is live
    /// again.
    pub(super) fn withdraw(&mut self, context: &Context, events: &[Id], why: Why) -> Result<Applied> {
        let ns = context.ns;
        let mut applied = Applied::default();
        let mut touched = BTreeMap::new();
        for id in events {
            let Some(row) = self.tx.event(ns, id)? else { continue };
            truth(self.tx).delete_event(ns, id, &row)?;
            self.counters.add(ns, PartId(row.part), Sort::Events, "", -1, 0);
            // A slice has the id of its first message, so for every other message there is nothing to delete.
            truth(self.tx).delete_family(ns, id)?;
            if let Some(aggregate) = row.aggregate {
                *touched.entry(aggregate).or_insert(0) += 1;
            }
            if row.decision == EventDecision::Aggregated
                || (row.decision == EventDecision::Reinforced && row.aggregate.is_some())
            {
                applied.withdrawn += 1;
            }
            // A holder itself takes along what it brought. The repeat of a person brought no holder.
            let repeat = row.decision == EventDecision::Reinforced && row.aggregate.is_some();
            if let Some(memory) = row.memory.map(MemoryId::from_bytes).filter(|_| repeat)
                && self.is_whole(ns, memory)?
            {
                self.reinforce(context, memory, -1, None, None, why.clone())?;
            }
        }
        // Each aggregate is counted once, after all events of the call have gone.
        for (aggregate, gone) in touched {
            self.recount(context, &aggregate, gone, &why, &mut applied)?;
        }
        self.journal(context, Op::Withdraw, None, Vec::new(), why)?;
        Ok(applied)
    }

    /// Counts an aggregate again after this number of members has gone.
    fn recount(
        &mut self,
        context: &Context,
        id: &Id,
        gone: u64,
        why: &Why,
        applied: &mut Applied,
    ) -> Result<()> {
        let ns = context.ns;
        let Some(old) = self.tx.aggregate(ns, id)? else { return Ok(()) };
        let left = old.dup_count.saturating_sub(gone);
        if left < 2 {
            let left = self.members(ns, id)?;
            // A message that has no memory of its own, or none any more, is told by that of the aggregate alone.
            let mut stand_alone = true;
            // A forgotten message is told by nobody, and needs nobody to tell it.
            for row in left.values().filter(|row| !row.is_erased()) {
                let own = row.memory.filter(|memory| Some(*memory) != old.memory).map(MemoryId::from_bytes);
                stand_alone &= own.map(|own| self.tx.has_row(ns, own)).transpose()? == Some(true);
            }
            if stand_alone {
                return self.dissolve(context, id, &old, &left, why, applied);
            }
        }
        let family = self.family_counted(ns, id, &old)?;
        let mut row = self.recounted(ns, id, &old, left)?;
        if row.first_event != old.first_event && family.is_none() {
            (row.exact_hash, row.simhash) = (None, None);
        }
        if let Some((slice, mut family)) = family {
            family.count = row.dup_count;
            (family.first_ts, family.latest_ts) = (row.first_ts, row.last_ts);
            truth(self.tx).put_family(ns, &slice, &family)?;
        }
        self.refresh(context, id, &row, None)?;
        self.put_or_end_aggregate(ns, id, &row)
    }

    /// The members of an aggregate, by id.
    pub(super) fn members(&self, ns: NsId, aggregate: &Id) -> Result<BTreeMap<Id, EventRow>> {
        let mut all = BTreeMap::new();
        for id in self.tx.events_of(ns, aggregate, usize::MAX)? {
            if let Some(row) = self.tx.event(ns, &id)? {
                all.insert(id, row);
            }
        }
        Ok(all)
    }

    /// The slice of a family whose first event is one of these.
    pub(super) fn family_of(
        &self,
        ns: NsId,
        members: &BTreeMap<Id, EventRow>,
    ) -> Result<Option<(Id, FamilyRow)>> {
        for (id, row) in members {
            if row.decision == EventDecision::Stored
                && let Some(family) = self.tx.family(ns, id)?
            {
                return Ok(Some((*id, family)));
            }
        }
        Ok(None)
    }

    /// The slice of a family that an aggregate counts; none if the message that began it is gone.
    fn family_counted(&self, ns: NsId, id: &Id, row: &AggregateRow) -> Result<Option<(Id, FamilyRow)>> {
        let family = self.tx.family(ns, &row.began)?.filter(|family| family.aggregate == Some(*id));
        Ok(family.map(|family| (row.began, family)))
    }

    /// An aggregate with this number of members. Nothing stays that a removed or erased member said. Examples and
    /// authors that are gone are dropped, and no others come.
    pub(super) fn recounted(
        &self,
        ns: NsId,
        id: &Id,
        old: &AggregateRow,
        members: u64,
    ) -> Result<AggregateRow> {
        let mut row = AggregateRow {
            dup_count: members,
            authors: Vec::new(),
            examples: Vec::new(),
            snippets: Vec::new(),
            ..old.clone()
        };
        if let Some([(first, first_event), (last, last_event)]) = self.tx.first_and_last_of(ns, id)? {
            // The first member may be among those that have ended.
            if old.ended == 0 || first.as_millis() < old.first_ts {
                (row.first_ts, row.first_event) = (first.as_millis(), first_event);
            }
            (row.last_ts, row.last_event) = (last.as_millis(), last_event);
        }
        for author in &old.authors {
            if self.tx.is_author_in(ns, id, author)? {
                row.authors.push(author.clone());
            }
        }
        for example in &old.examples {
            if let Some(event) = self.tx.event(ns, example)?.filter(|event| event.aggregate == Some(*id)) {
                row.examples.push(*example);
                row.show(event.payload.as_deref());
            }
        }
        Ok(row)
    }

    /// Dissolves an aggregate of fewer than two members, with its memory. A first message that it had superseded is
    /// live again, and stands alone.
    fn dissolve(
        &mut self,
        context: &Context,
        id: &Id,
        old: &AggregateRow,
        left: &BTreeMap<Id, EventRow>,
        why: &Why,
        applied: &mut Applied,
    ) -> Result<()> {
        let ns = context.ns;
        for (event, row) in left {
            let mut row = row.clone();
            row.aggregate = None;
            let at = row.ts;
            truth(self.tx).put_event(ns, event, &row)?;
            if let Some(mut family) = self.tx.family(ns, event)? {
                family.aggregate = None;
                family.count = 1;
                (family.first_ts, family.latest_ts) = (at, at);
                truth(self.tx).put_family(ns, event, &family)?;
            }
        }
        truth(self.tx).delete_aggregate(ns, id)?;
        self.counters.add(ns, PartId(old.part), Sort::Aggregates, "", -1, 0);
        let Some(memory) = old.memory.map(MemoryId::from_bytes) else { return Ok(()) };
        if !self.tx.has_row(ns, memory)? {
            return Ok(());
        }
        for first in self.tx.superseded_by(ns, memory)? {
            if self.is_whole(ns, first)? && sound(self.tx.limbo(ns, first))?.is_some() {
                self.restore(context, first, RestoreTo::Undo, why.clone())?;
            }
        }
        let gone = Going { reason: TombstoneReason::Undone, replaced_by: None };
        applied.erased.append(&mut self.remove(context, memory, gone, why.clone())?.erased);
        Ok(())
    }

    /// Erases the text of the messages behind a memory, and everything by which they were recognised. These are the
    /// messages that became or reinforced the memory, and all messages that it stands for as the memory of an
    /// aggregate. Returns the memories of aggregates that may still carry the text.
    ///
    /// An undo takes back what its run has said. A message that maintenance had handed on to the memory, or whose key has gone on to
    /// say something else, was said by others. It stays, and notes who had told it. At an end that a caller set, what was said
    /// before the text with that end stays.
    pub(super) fn erase_messages(
        &mut self,
        context: &Context,
        memory: MemoryId,
        reason: TombstoneReason,
    ) -> Result<Vec<MemoryId>> {
        let ns = context.ns;
        let mut doomed = BTreeMap::new();
        for (id, row) in self.members(ns, memory.as_bytes())? {
            let goes = match reason {
                TombstoneReason::Undone => self.is_undone_with(ns, memory, &row)?,
                TombstoneReason::Expired | TombstoneReason::SupersededPurged => {
                    self.ends_with(ns, memory, &row)?
                }
                _ => true,
            };
            if goes {
                doomed.insert(id, row);
            } else if row.origin.is_none() {
                let row = EventRow { origin: Some(*memory.as_bytes()), ..row };
                truth(self.tx).put_event(ns, &id, &row)?;
            }
        }
        let own = self.aggregate_of_memory(ns, memory)?;
        if let Some(id) = own {
            doomed.extend(self.members(ns, &id)?);
        }
        let mut derived = self.erase_events(context, doomed, own, Some(memory))?;
        derived.extend(self.told_on_by(ns, memory)?);
        Ok(derived)
    }

    /// Whether a message goes with the memory that tells it when an undo takes that back.
    pub(crate) fn is_undone_with(&self, ns: NsId, memory: MemoryId, row: &EventRow) -> Result<bool> {
        let is_its_own = row.origin.is_none_or(|origin| origin == *memory.as_bytes());
        let has_writer = |key: &String| self.tx.holds_key(ns, key, memory);
        Ok(is_its_own && row.key.as_ref().map(has_writer).transpose()?.unwrap_or(true))
    }

    /// Whether a message goes with the memory that tells it at an end that a caller set. A text that the memory has replaced had
    /// another end, or none.
    fn ends_with(&self, ns: NsId, memory: MemoryId, row: &EventRow) -> Result<bool> {
        let Some(origin) = row.origin.map(MemoryId::from_bytes) else { return Ok(true) };
        let stone = sound(self.tx.tombstone(ns, origin))?.flatten();
        if stone.is_none_or(|stone| stone.reason != TombstoneReason::SupersededPurged) {
            return Ok(true);
        }
        // What said the same as the memory was superseded by it, too.
        let content = sound(self.tx.content(ns, memory))?.flatten();
        Ok(content.is_none_or(|content| content.consolidated_from.contains(&origin)))
    }

    /// The same of the messages that were written under a key, in a partition or anywhere, wherever they are told by now; but
    /// for those that a memory of `kept` tells. None if there is no such message.
    pub(crate) fn erase_messages_of_key(
        &mut self,
        context: &Context,
        key: &str,
        part: Option<PartId>,
        kept: &BTreeSet<MemoryId>,
    ) -> Result<Option<Vec<MemoryId>>> {
        let mut doomed = self.messages_under(context.ns, key)?;
        doomed.retain(|_, row| {
            let is_kept = row.memory.is_some_and(|memory| kept.contains(&MemoryId::from_bytes(memory)));
            !is_kept && part.is_none_or(|part| part.0 == row.part)
        });
        if doomed.is_empty() {
            return Ok(None);
        }
        self.erase_events(context, doomed, None, None).map(Some)
    }

    /// The same of the messages with which those who leave a memory came there, while the memory stays for others. A message knows
    /// the key of its writer, also where of the writer nothing but the key can be read (`keys`). Of those without a key it is known only from which memory they came: a message goes with the last
    /// that came from there, and if the memory says something else now (`retold`), with the text that it told.
    pub(super) fn erase_messages_of(
        &mut self,
        context: &Context,
        id: MemoryId,
        (leaving, keys): (&[Holder], &[String]),
        retold: bool,
    ) -> Result<Vec<MemoryId>> {
        let (ns, mut doomed) = (context.ns, BTreeMap::new());
        let known = leaving.iter().filter_map(|holder| holder.key.as_deref());
        for key in known.chain(keys.iter().map(String::as_str)).collect::<BTreeSet<_>>() {
            let told_here = |row: &EventRow| row.memory == Some(*id.as_bytes());
            doomed.extend(self.messages_under(ns, key)?.into_iter().filter(|(_, row)| told_here(row)));
        }
        if leaving.iter().any(|holder| holder.key.is_none()) {
            self.add_keyless_messages(ns, id, leaving, retold, &mut doomed)?;
        }
        self.erase_events(context, doomed, None, None)
    }

    fn add_keyless_messages(
        &self,
        ns: NsId,
        id: MemoryId,
        leaving: &[Holder],
        retold: bool,
        doomed: &mut BTreeMap<Id, EventRow>,
    ) -> Result<()> {
        let told = self.members(ns, id.as_bytes())?.into_iter().filter(|(_, row)| row.key.is_none());
        let mut told = told.peekable();
        if told.peek().is_none() {
            return Ok(());
        }
        let have_left = self.tx.keyless_holders(ns, id)?.is_empty();
        let without_key = leaving.iter().filter(|holder| holder.key.is_none());
        let mut origins: BTreeSet<Option<MemoryId>> = without_key.map(|holder| holder.from).collect();
        let mut take = |stays: &Holder| {
            if stays.key.is_none() {
                origins.remove(&stays.from);
            }
            origins.is_empty()
        };
        // A damaged writer keeps nothing from being erased.
        sound(self.tx.any_holder(ns, id, &mut take))?;
        doomed.extend(told.filter(|(_, row)| {
            let origin = row.origin.map(MemoryId::from_bytes);
            // The repeat of a person has no writer here.
            let has_writer = origin.is_some() || row.decision == EventDecision::Stored;
            (have_left || origins.contains(&origin)) && has_writer || retold && origin.is_none()
        }));
        Ok(())
    }

    /// The messages that were written under a key, by id.
    pub(super) fn messages_under(&self, ns: NsId, key: &str) -> Result<BTreeMap<Id, EventRow>> {
        let mut all = BTreeMap::new();
        for id in self.tx.events_under(ns, key)? {
            // A damaged message is told by `check`, and keeps no other from being erased.
            all.extend(sound(self.tx.event(ns, &id))?.flatten().map(|row| (id, row)));
        }
        Ok(all)
    }

    /// Lets the messages of a key go on with its writer, who gets a memory of its own.
    pub(crate) fn move_messages(&mut self, ns: NsId, key: &str, from: MemoryId, to: MemoryId) -> Result<()> {
        for (event, row) in self.messages_under(ns, key)? {
            if row.memory != Some(*from.as_bytes()) {
                continue;
            }
            truth(self.tx).put_event(ns, &event, &EventRow { memory: Some(*to.as_bytes()), ..row })?;
            if let Some(family) =
                self.tx.family(ns, &event)?.filter(|row| row.first_memory == *from.as_bytes())
            {
                let family = FamilyRow { first_memory: *to.as_bytes(), ..family };
                truth(self.tx).put_family(ns, &event, &family)?;
            }
        }
        Ok(())
    }

    /// Erases messages. `own` is the aggregate of the memory `of` that goes with them.
    fn erase_events(
        &mut self,
        context: &Context,
        doomed: BTreeMap<Id, EventRow>,
        own: Option<Id>,
        of: Option<MemoryId>,
    ) -> Result<Vec<MemoryId>> {
        let ns = context.ns;
        let mut touched = BTreeSet::from_iter(own);
        touched.extend(doomed.values().filter_map(|row| row.aggregate));
        // Asked before the slices go: afterwards every member would have to be asked whether it began another.
        let mut counting = Vec::new();
        for id in touched {
            let Some(old) = self.tx.aggregate(ns, &id)? else { continue };
            let counted = self.family_counted(ns, &id, &old)?;
            let is_left = counted.is_some_and(|(first, _)| !doomed.contains_key(&first));
            counting.push((id, old, is_left));
        }
        for (id, mut row) in doomed {
            truth(self.tx).delete_family(ns, &id)?;
            row.erase();
            truth(self.tx).put_event(ns, &id, &row)?;
        }
        let mut derived = Vec::new();
        for (id, old, is_left) in counting {
            let mut row = self.recounted(ns, &id, &old, old.dup_count)?;
            if !is_left {
                (row.exact_hash, row.simhash) = (None, None);
            }
            if own == Some(id) || !self.is_heard(ns, &id)? {
                (row.scope, row.signals) = (None, Vec::new());
            }
            truth(self.tx).put_aggregate(ns, &id, &row)?;
            let carrier = row.memory.map(MemoryId::from_bytes).filter(|carrier| Some(*carrier) != of);
            if let Some(carrier) = carrier
                && self.tx.has_row(ns, carrier)?
            {
                self.refresh(context, &id, &row, None)?;
                derived.push(carrier);
            }
        }
        Ok(derived)
    }

    /// Whether an aggregate has a member that was not erased.
    fn is_heard(&self, ns: NsId, id: &Id) -> Result<bool> {
        let (mut heard, members) = (false, Walk::prefix(&keys::memory(ns, MemoryId::from_bytes(*id))));
        self.tx.walk(Table::EventOf, &members, &mut |key, _| {
            let event = self.tx.event(ns, last_id(Table::EventOf, key)?.as_bytes())?;
            heard = event.is_some_and(|row| !row.is_erased());
            Ok(if heard { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(heard)
    }

    /// Hands the messages behind a memory on when maintenance erases the memory. They then belong to the memory that
    /// takes its place, if there is one, because forgetting that memory must find them. They keep the id of the erased memory,
    /// because whoever asks to forget that must find them too.
    pub(super) fn hand_on_messages(
        &mut self,
        ns: NsId,
        memory: MemoryId,
        to: Option<MemoryId>,
    ) -> Result<()> {
        let mut told = self.members(ns, memory.as_bytes())?;
        if let Some(aggregate) = self.aggregate_of_memory(ns, memory)? {
            // What an aggregate counts beyond its first message has no memory of its own.
            told.extend(self.members(ns, &aggregate)?.into_iter().filter(|(_, row)| row.memory.is_none()));
        }
        for (id, mut row) in told {
            let before = row.clone();
            row.origin.get_or_insert(*memory.as_bytes());
            if let Some(to) = to.filter(|_| before.memory == Some(*memory.as_bytes())) {
                row.memory = Some(*to.as_bytes());
            }
            if row != before {
                truth(self.tx).put_event(ns, &id, &row)?;
            }
        }
        Ok(())
    }

    /// Whether a memory of the kind `aggregate` stands for messages: those that an aggregate counts, or those that one had
    /// counted which has ended with them. Then the supersession alone tells which the first was.
    pub(crate) fn stands_for_messages(&self, ns: NsId, memory: MemoryId) -> Result<bool> {
        if self.aggregate_of_memory(ns, memory)?.is_some() {
            return Ok(true);
        }
        let named = sound(self.tx.content(ns, memory))?.flatten().and_then(|content| content.aggregate_id);
        Ok(match named {
            Some(id) => self.tx.aggregate(ns, id.as_bytes())?.is_none(),
            None => false,
        })
    }

    /// The memory that stands for the messages of which a memory was the first, where their aggregate has ended.
    fn told_on_by(&self, ns: NsId, first: MemoryId) -> Result<Option<MemoryId>> {
        let vitals = sound(self.tx.vitals(ns, first))?.flatten();
        let superseded = vitals.and_then(|vitals| vitals.times.superseded);
        let Some(by) = superseded.filter(|superseded| superseded.mode == SupersedeMode::Aggregate) else {
            return Ok(None);
        };
        let of_kind = sound(self.tx.vitals(ns, by.by))?.flatten();
        let is_ended = of_kind.is_some_and(|vitals| vitals.kind_code == Kind::Aggregate.code())
            && self.aggregate_of_memory(ns, by.by)?.is_none()
            && self.stands_for_messages(ns, by.by)?;
        Ok(Some(by.by).filter(|_| is_ended))
    }

    /// The aggregate that a memory stands for. The memory's own statement is not trusted, because a caller
    /// may have written it.
    pub(crate) fn aggregate_of_memory(&self, ns: NsId, memory: MemoryId) -> Result<Option<Id>> {
        let named = sound(self.tx.content(ns, memory))?.flatten().and_then(|content| content.aggregate_id);
        let mut candidates: Vec<Id> = named.iter().map(|id| *id.as_bytes()).collect();
        for first in self.tx.superseded_by(ns, memory)? {
            for event in self.tx.events_of(ns, first.as_bytes(), 1)? {
                candidates.extend(self.tx.event(ns, &event)?.and_then(|row| row.aggregate));
            }
        }
        // The row of the aggregate alone decides which memory stands for it.
        for id in candidates {
            if self.tx.aggregate(ns, &id)?.is_some_and(|row| row.memory == Some(*memory.as_bytes())) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}
