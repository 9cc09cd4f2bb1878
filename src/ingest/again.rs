//! A file that is imported again, of which later lines had changed what earlier lines wrote under the same keys.
//!
//! The earlier line of such a key says what the key no longer says. Written once more, it would take the newer text back, and
//! the later line would bring that again: two rows more with each import. So the lines of one key in a batch are looked at
//! together. If the versions of the key end with what these lines say, one after the other, each line is the same write again.
//!
//! Lines that say one text, one after the other, have left one version, which says what they say together. A key that left a
//! text of several writers has left no version there; the row that it got then tells from where it came. A line whose text a
//! later line supersedes under another key has been written if that other text stands in its place, or if both say the same
//! and stand in one row.
//!
//! The lines of a key that announce a text for one instant are looked at in the same way: the last texts that the key has
//! announced for the instant say what these lines say.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::ingest::add::Named;
use crate::ingest::fields::replaces_from;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::model::{Decision, Draft, Evidence, Holder, JournalRow, MemoryId, Outcome, RuleId, Time};
use crate::store::{PartId, Rows, Table, Walk, keys};

/// The drafts of a batch whose key comes more than once in it: with another draft, or among what a draft supersedes.
#[derive(Default)]
pub(crate) struct Rewrites {
    /// The drafts of one key, by the place of the first.
    lines: BTreeMap<usize, Lines>,
    /// The places of the first drafts of keys that supersede others, or are superseded.
    linked: BTreeSet<usize>,
    /// The drafts of one key that announce a text for one instant, by the place of the first.
    plans: BTreeMap<usize, Vec<usize>>,
    /// The version of its key that a draft repeats, by its place.
    again: BTreeMap<usize, MemoryId>,
}

/// The drafts of one key.
struct Lines {
    /// Their places.
    written: Vec<usize>,
    /// The place of the draft behind them that supersedes the key.
    superseding: Option<usize>,
}

impl Lines {
    fn of(first: usize) -> Self {
        Lines { written: vec![first], superseding: None }
    }
}

impl Rewrites {
    /// Finds the keys that come more than once.
    pub(crate) fn of(batch: &[Prepared]) -> Self {
        let (mut first, mut named) = (BTreeMap::new(), BTreeMap::<&str, Vec<usize>>::new());
        let mut lines: BTreeMap<usize, Lines> = BTreeMap::new();
        let mut plans = BTreeMap::<(&str, Time), Vec<usize>>::new();
        for (at, prepared) in batch.iter().enumerate() {
            let key = prepared.checked.key();
            for name in prepared.supersedes().iter().filter(|name| key != Some(name)) {
                named.entry(name).or_default().push(at);
            }
            let Some(key) = key else { continue };
            if let Some(from) = replaces_from(prepared.checked.draft()) {
                plans.entry((key, from)).or_default().push(at);
            }
            match first.entry(key) {
                Entry::Vacant(place) => drop(place.insert(at)),
                Entry::Occupied(place) => {
                    lines.entry(*place.get()).or_insert_with(|| Lines::of(*place.get())).written.push(at);
                }
            }
        }
        let plans = plans.into_values().filter(|places| places.len() > 1);
        let plans = plans.filter_map(|places| Some((*places.first()?, places))).collect();
        let mut rewrites = Rewrites { lines, plans, ..Rewrites::default() };
        if !rewrites.link(batch, &first, &named) {
            let Rewrites { lines, linked, .. } = &mut rewrites;
            lines.retain(|first, _| !linked.contains(first));
            linked.clear();
        }
        rewrites
    }

    /// Links the keys that supersede one another. False where what a key means may change to and fro: where several drafts
    /// supersede it, or it comes again behind one that does.
    fn link(
        &mut self,
        batch: &[Prepared],
        first: &BTreeMap<&str, usize>,
        named: &BTreeMap<&str, Vec<usize>>,
    ) -> bool {
        let mut is_plain = true;
        for (name, superseding) in named {
            for line in superseding.iter().filter_map(|place| batch.get(*place)) {
                let own = line.checked.key().and_then(|key| first.get(key));
                self.linked.extend(own);
                is_plain &= own.is_some();
            }
            let Some(own) = first.get(name) else { continue };
            self.linked.insert(*own);
            let lines = self.lines.entry(*own).or_insert_with(|| Lines::of(*own));
            lines.superseding = superseding.first().copied();
            let is_last = |place: &usize| lines.written.iter().all(|written| written < place);
            is_plain &= superseding.len() == 1 && superseding.iter().all(is_last);
        }
        for own in &self.linked {
            self.lines.entry(*own).or_insert_with(|| Lines::of(*own));
        }
        is_plain
    }
}

impl Prepared {
    /// The keys and ids that the draft supersedes.
    fn supersedes(&self) -> &[String] {
        &self.checked.draft().supersedes
    }

    /// What drafts of one key and one text say together, one after the other.
    fn of_lines(lines: &[&Prepared]) -> Option<Prepared> {
        let (first, later) = lines.split_first()?;
        Some(later.iter().fold((*first).clone(), |said, line| {
            let from = if line.brings_vector() { *line } else { &said };
            let (vector, embedder) = (from.vector.clone(), from.embedder.clone());
            Prepared { checked: said.checked.followed_by(line.checked.draft()), vector, embedder, ..said }
        }))
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Decides about the draft at a place of the batch, if it is the same write again.
    pub(crate) fn written_before(
        &mut self,
        batch: &[Prepared],
        at: usize,
        rewrites: &mut Rewrites,
    ) -> Result<Option<Outcome>> {
        let mut linked = Vec::new();
        for first in std::mem::take(&mut rewrites.linked) {
            let Some(lines) = rewrites.lines.remove(&first) else { continue };
            let versions = self.last_versions(batch, &lines)?;
            linked.push(versions.map(|versions| lines.written.into_iter().zip(versions)));
        }
        // Where one of them is written, others can lead elsewhere then. So all or none are.
        if let Some(again) = linked.into_iter().collect::<Option<Vec<_>>>() {
            rewrites.again.extend(again.into_iter().flatten());
        }
        if let Some(lines) = rewrites.lines.remove(&at) {
            let versions = self.last_versions(batch, &lines)?.unwrap_or_default();
            rewrites.again.extend(lines.written.into_iter().zip(versions));
        }
        if let Some(places) = rewrites.plans.remove(&at).filter(|_| !rewrites.again.contains_key(&at)) {
            let announced = self.announced_last(batch, &places)?.unwrap_or_default();
            rewrites.again.extend(places.into_iter().zip(announced));
        }
        let Some((id, prepared)) = rewrites.again.remove(&at).zip(batch.get(at)) else { return Ok(None) };
        let (decision, rule) = (Decision::Unchanged, RuleId::KEY);
        let outcome = self.outcome(prepared, id, decision, rule, Evidence::default(), Vec::new());
        self.settled(outcome).map(Some)
    }

    /// The version of their key that each of these drafts repeats, if the last versions of the key are just these.
    fn last_versions(&self, batch: &[Prepared], lines: &Lines) -> Result<Option<Vec<MemoryId>>> {
        let drafts: Vec<&Prepared> = lines.written.iter().filter_map(|place| batch.get(*place)).collect();
        let Some(key) = drafts.first().and_then(|draft| draft.checked.key()) else { return Ok(None) };
        let Some(found) = self.meant_by_key(key)? else { return Ok(None) };
        let superseding = lines.superseding.and_then(|place| batch.get(place));
        let (mut newest, mut at) = (found.id, found.id);
        if !found.vitals.times.is_or_will_be_true(self.now()) {
            // A key of another agent does not follow to what supersedes its text.
            let by = found.vitals.times.superseded_by();
            let (Some(by), Some(line)) = (by, superseding) else { return Ok(None) };
            if !self.wrote(by, line)? {
                return Ok(None);
            }
            newest = by;
        } else {
            let follows = self.holder(at, found.number)?.follows;
            match superseding {
                Some(line) if follows => {
                    let Some(own) = self.superseded_by_line(key, at, line)? else { return Ok(None) };
                    at = own;
                }
                // A line that says the same text under another key has taken no place: both stand in one row.
                Some(line) if self.has_text(at, line)? => {}
                None if !follows => {}
                _ => return Ok(None),
            }
        }
        let mut versions = Vec::with_capacity(drafts.len());
        for lines in drafts.chunk_by(says_the_same).rev() {
            let Some(said) = Prepared::of_lines(lines) else { return Ok(None) };
            if !self.said_under(key, at, &said)? {
                // The last of the drafts says what the key says now, or all are written.
                if versions.is_empty() {
                    return Ok(None);
                }
                let Some(earlier) = self.version_before(key, at, &said)? else { return Ok(None) };
                at = earlier;
            }
            versions.extend(lines.iter().map(|_| at));
        }
        versions.reverse();
        for (line, version) in drafts.iter().zip(&versions) {
            if !self.has_led_to((newest, *version), line)? {
                return Ok(None);
            }
        }
        Ok(Some(versions))
    }

    /// The announced text of their key that each of these drafts repeats, if the last texts that the key has announced for their instant
    /// are just these.
    fn announced_last(&mut self, batch: &[Prepared], places: &[usize]) -> Result<Option<Vec<MemoryId>>> {
        let drafts: Vec<&Prepared> = places.iter().filter_map(|place| batch.get(*place)).collect();
        let first =
            drafts.first().and_then(|draft| draft.checked.key().zip(replaces_from(draft.checked.draft())));
        let Some((key, from)) = first else { return Ok(None) };
        let Some(held) = self.holder_to_change(key)? else { return Ok(None) };
        let (own, texts) = (self.own_at(held, from)?, drafts.chunk_by(says_the_same));
        let texts: Vec<_> = texts.collect();
        let Some(left) = own.len().checked_sub(texts.len()) else { return Ok(None) };
        let mut announced = Vec::with_capacity(drafts.len());
        for ((id, holder), lines) in own.iter().skip(left).zip(texts) {
            let Some(said) = Prepared::of_lines(lines) else { return Ok(None) };
            if !self.says_again(&said, *id, holder)? {
                return Ok(None);
            }
            for name in lines.iter().flat_map(|line| line.supersedes()) {
                let Ok((found, _)) = self.find(name) else { return Ok(None) };
                let ahead = self.ahead_of(found)?;
                if ahead.is_none_or(|ahead| ahead.begins(*id) != Some(from)) {
                    return Ok(None);
                }
            }
            announced.extend(lines.iter().map(|_| *id));
        }
        Ok(Some(announced))
    }

    /// Whether all that a draft supersedes means one of these rows by now, or, of another agent, was superseded by one of them:
    /// the newest of its key, or the version in which it stands itself, of an equal text. Where its writer has left others who say that
    /// text, what it had replaced leads to their row.
    fn has_led_to(&self, (newest, version): (MemoryId, MemoryId), draft: &Prepared) -> Result<bool> {
        for name in draft.supersedes() {
            let Ok((found, _)) = self.find(name) else { return Ok(false) };
            let vitals = sound(self.ledger.tx.vitals(self.ns(), found))?.flatten();
            let by = vitals.and_then(|vitals| vitals.times.superseded_by());
            let leads_to = |row| found == row || by == Some(row);
            if !leads_to(newest)
                && !leads_to(version)
                && !self.left_saying(version, draft.text())?.is_some_and(leads_to)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last version that a key wrote itself, if a draft says under another key what superseded it.
    fn superseded_by_line(&self, key: &str, mut at: MemoryId, line: &Prepared) -> Result<Option<MemoryId>> {
        let mut by = at;
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while seen.insert(at) {
            let Some(holder) = self.ledger.holder_of_key(self.ns(), at, Some(key))? else { return Ok(None) };
            let Some(from) = holder.from.filter(|_| holder.follows) else { break };
            (by, at) = (at, from);
        }
        Ok(self.wrote(by, line)?.then_some(at))
    }

    /// Whether a draft says under its key what a row says, and has written it.
    fn wrote(&self, id: MemoryId, line: &Prepared) -> Result<bool> {
        let holder = self.ledger.holder_of_key(self.ns(), id, line.checked.key())?;
        Ok(holder.is_some_and(|holder| holder.has_text()) && self.has_text(id, line)?)
    }

    /// The version of a key before another one, if it says what a draft says.
    fn version_before(&self, key: &str, at: MemoryId, said: &Prepared) -> Result<Option<MemoryId>> {
        let mut earlier = None;
        self.ledger.versions_superseded_by(self.ns(), key, at, &mut |old| {
            earlier = self.said_under(key, old, said)?.then_some(old);
            Ok(if earlier.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if earlier.is_some() {
            return Ok(earlier);
        }
        // What the key had brought to the text that it left went with it, so the text alone is compared.
        let left = self.left_by(at)?;
        Ok(left.map(|left| Ok::<_, Error>(self.has_text(left, said)?.then_some(left))).transpose()?.flatten())
    }

    /// The row of several writers that the writer of a row had left, as the first step of its journal tells. The steps after that may be many.
    fn left_by(&self, id: MemoryId) -> Result<Option<MemoryId>> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let steps = Walk::prefix(&keys::memory(ns, id));
        let number = |key: &[u8]| keys::JournalSubject::read(Table::JournalSubject, key).map(|row| row.seq);
        let Some(first) = tx.each_key(Table::JournalSubject, &steps, 1, number)?.pop() else {
            return Ok(None);
        };
        let made = sound(tx.journal_row(ns, first))?.flatten().filter(JournalRow::is_parted);
        Ok(made.and_then(|row| row.evidence.members.first().copied()))
    }

    /// The row of several writers that the writer of a row had left, if it says this text.
    fn left_saying(&self, id: MemoryId, text: &str) -> Result<Option<MemoryId>> {
        let Some(left) = self.left_by(id)? else { return Ok(None) };
        let content = sound(self.ledger.load_there(self.ns(), left))?.flatten().map(|(_, content)| content);
        Ok(content.filter(|content| content.text == text).map(|_| left))
    }

    /// Whether a version of a key says what a draft says.
    fn said_under(&self, key: &str, id: MemoryId, said: &Prepared) -> Result<bool> {
        let Some(holder) = self.ledger.holder_of_key(self.ns(), id, Some(key))? else { return Ok(false) };
        self.says_again(said, id, &holder)
    }

    /// Whether the key of a draft says by itself what the draft says, now or from the instant on that the draft names. Nothing is
    /// asked for a draft that supersedes nothing.
    pub(super) fn is_said_already(&mut self, draft: &Draft) -> Result<bool> {
        let Some(key) = draft.key.as_deref().filter(|_| !draft.supersedes.is_empty()) else {
            return Ok(false);
        };
        let Some(found) = self.holder_to_change(key)? else { return Ok(false) };
        let found = match self.replaces_ahead(draft, found)? {
            Some(at) => self.announced_already(draft, found, at)?,
            None => Some(found),
        };
        let said = found.map(|(id, number)| self.said_in(id, number)).transpose()?;
        Ok(said.is_some_and(|(holder, text)| holder.has_text() && text == draft.text))
    }

    /// A holder of a row, with what it says there.
    fn said_in(&self, id: MemoryId, number: u32) -> Result<(Holder, String)> {
        let (holder, (_, content)) = (self.holder(id, number)?, self.ledger.load(self.ns(), id)?);
        let text = holder.text.clone().unwrap_or(content.text);
        Ok((holder, text))
    }

    /// Whether a key, which a draft names, says another text by now than the one whose place the draft has taken before, and not by
    /// the import that writes now. `by` is the memory of the draft.
    pub(super) fn has_gone_on(
        &self,
        (name, (id, number)): (&str, Named),
        (draft, by): (&Draft, MemoryId),
    ) -> Result<bool> {
        let Some(number) = number else { return Ok(false) };
        let run = self.context.run;
        let Some((holder, says)) = sound(self.said_in(id, number))? else { return Ok(false) };
        if run.is_some() && holder.run == run {
            return Ok(false);
        }
        // The key of the draft may have come with its text from rows that were merged since.
        let (mut at, mut seen) = (Some(by), BTreeSet::new());
        while let Some(place) = at.filter(|place| seen.insert(*place)) {
            if let Some(said) = self.text_replaced(name, place)? {
                return Ok(said != says);
            }
            let own = self.ledger.holder_of_key(self.ns(), place, draft.key.as_deref())?;
            at = match own.and_then(|own| own.from) {
                // A change of fields parts the key from others that say the text.
                None => self.left_saying(place, &draft.text)?,
                from => from,
            };
        }
        let took = self.took_place_of_gone(draft, by)?;
        Ok(took.is_some_and(|took| took < holder.since))
    }

    /// The last text of a key whose place a memory has taken, if it is still there.
    fn text_replaced(&self, key: &str, by: MemoryId) -> Result<Option<String>> {
        let (mut at, mut seen) = (None, BTreeSet::new());
        self.ledger.versions_superseded_by(self.ns(), key, by, &mut |old| {
            at = Some(old);
            Ok(ControlFlow::Break(()))
        })?;
        // The key may have led to that row only, from one in which it had said something.
        while let Some(id) = at.filter(|id| seen.insert(*id)) {
            let Some(holder) = self.ledger.holder_of_key(self.ns(), id, Some(key))? else { break };
            if holder.has_text() {
                return Ok(sound(self.said_in(id, holder.number))?.map(|(_, text)| text));
            }
            at = holder.from;
        }
        Ok(None)
    }

    /// When the memory of a draft took the place of others, if none of these is there any more.
    fn took_place_of_gone(&self, draft: &Draft, by: MemoryId) -> Result<Option<Time>> {
        let places = Walk::prefix(&keys::memory(self.ns(), by));
        if draft.fields.valid_from.is_given() || self.ledger.tx.any(Table::Superseded, &places)? {
            return Ok(None);
        }
        Ok(sound(self.ledger.tx.vitals(self.ns(), by))?.flatten().and_then(|row| row.times.valid_from))
    }

    /// Whether a row has the text of a draft, in the same partition.
    fn has_text(&self, id: MemoryId, said: &Prepared) -> Result<bool> {
        let Some((vitals, content)) = sound(self.ledger.load_there(self.ns(), id))?.flatten() else {
            return Ok(false);
        };
        let part = self.partition_of(PartId(vitals.place.partition))?;
        Ok(content.text == said.text() && part == *said.checked.partition())
    }
}

/// Whether two drafts of a key give one text to one partition.
fn says_the_same(a: &&Prepared, b: &&Prepared) -> bool {
    a.text() == b.text() && a.checked.partition() == b.checked.partition()
}
