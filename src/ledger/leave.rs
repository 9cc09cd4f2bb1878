//! Holders leave a row, and the text goes with the last holder that wrote it.
//!
//! If a remaining holder carries a text of its own, it gives that text to the row. If none does, the row goes. A key
//! that only led to the newest text is still on the row from which it came, and that row stays superseded.

use std::collections::BTreeSet;

use crate::error::{Error, Result, sound};
use crate::index::{Former, Lineage};
use crate::ledger::applied::{Applied, Erased, Left};
use crate::ledger::erase::Going;
use crate::ledger::given::{Unsaid, forget_said, said_by, seed, taken_by, tell};
use crate::ledger::lifetime::tier_ttl;
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::model::{
    Access, Content, ExpiresBy, Holder, Life, MemoryId, Op, Parts, SupersedeMode, Time, TombstoneReason,
    Vitals,
};
use crate::store::control::CounterSort as Sort;
use crate::store::{NsId, PartId, Rows, SpaceId};
use crate::text::normal_form;
use crate::vector::UnitVector;

/// Why holders leave.
#[derive(Clone, Copy)]
pub(super) enum Departure {
    /// They are forgotten. If their text goes and the row stays, a tombstone with this id tells of them.
    Forgotten(TombstoneReason, MemoryId),
    /// A holder gets a row of its own, and takes its share along.
    Apart,
    /// They return to this row, of which they are copies. Their shares are settled elsewhere.
    Back(MemoryId),
}

/// What happens to the text of a row.
enum Fate {
    /// A remaining holder wrote the text. If everyone leaves who wrote the text into this row itself, this holder says what
    /// else is known of the text.
    Stays(Option<Box<Holder>>),
    /// The text of this holder takes the place of the text.
    Retold(Box<Holder>),
}

/// A row as it was before its holders left, and as it is so far.
struct Changing<'r> {
    before: &'r Vitals,
    old: &'r Content,
    vitals: Vitals,
    content: Content,
}

/// Holders that are forgotten while their row stays.
struct Forgetting<'h> {
    leaving: &'h [Holder],
    reason: TombstoneReason,
    /// The id of the tombstone that tells of them.
    stone: MemoryId,
    /// Whether another text has taken the place of theirs.
    retold: bool,
}

/// The row from which a holder came, and whose text the holder carries.
pub(crate) struct Origin {
    id: MemoryId,
    pub(crate) parts: Parts,
    pub(crate) vector: Option<UnitVector>,
}

impl Ledger<'_, '_> {
    /// Lets holders leave a row. The row goes with its last holder, or with the last holder that has a text.
    pub(super) fn detach(
        &mut self,
        context: &Context,
        id: MemoryId,
        numbers: &[u32],
        departure: Departure,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let Some((leaving, fate)) = sound(self.leaving(ns, id, numbers))? else {
            return self.detach_damaged(context, id, numbers, departure, why);
        };
        let applied = self.leave_to(fate, context, id, &leaving, departure, &why)?;
        if let Some(Left { said_anew, .. }) = applied.left {
            self.redact_holders(ns, id, &leaving, said_anew)?;
            for number in numbers {
                self.journal(context, Op::Detach, Some((id, Some(*number))), Vec::new(), why.clone())?;
            }
        }
        Ok(applied)
    }

    /// The holders of a row with these numbers, and what happens to the text without them. Damage shows here, before the
    /// first write.
    ///
    /// # Errors
    /// `NotFound`; `Corrupted` if the holders, or the rows that decide about their text, are damaged.
    fn leaving(&mut self, ns: NsId, id: MemoryId, numbers: &[u32]) -> Result<(Vec<Holder>, Option<Fate>)> {
        let mut leaving = Vec::with_capacity(numbers.len());
        for number in numbers {
            let holder = self.tx.holder(ns, id, *number)?;
            leaving.push(
                holder
                    .ok_or_else(|| Error::NotFound { what: "holder", name: format!("{number} of {id}") })?,
            );
        }
        let fate = self.fate_of(ns, id, &leaving)?;
        Ok((leaving, fate))
    }

    /// The same of a row that is not read yet. The row is read as a whole, so that damage of its text shows as well.
    fn fate_of(&mut self, ns: NsId, id: MemoryId, leaving: &[Holder]) -> Result<Option<Fate>> {
        let (vitals, _) = self.load(ns, id)?;
        self.fate(ns, id, &vitals, leaving)
    }

    /// Lets copies return to the row from which they came. The journal of that row tells of it.
    pub(super) fn leave(
        &mut self,
        context: &Context,
        id: MemoryId,
        leaving: &[Holder],
        departure: Departure,
        why: &Why,
    ) -> Result<Applied> {
        let Some(fate) = sound(self.fate_of(context.ns, id, leaving))? else {
            let numbers: Vec<u32> = leaving.iter().map(|holder| holder.number).collect();
            return self.detach_damaged(context, id, &numbers, departure, why.clone());
        };
        self.leave_to(fate, context, id, leaving, departure, why)
    }

    /// Lets holders leave a row whose text has this fate.
    fn leave_to(
        &mut self,
        fate: Option<Fate>,
        context: &Context,
        id: MemoryId,
        leaving: &[Holder],
        departure: Departure,
        why: &Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let Some(fate) = fate else {
            return self.end(context, id, leaving, departure, why);
        };
        let (before, old) = self.load(ns, id)?;
        let (mut vitals, mut content) = (before.clone(), old.clone());
        self.take_holders(ns, id, leaving)?;
        for holder in leaving {
            // The row has more holders than leave, or `fate` would end it, so the count does not underflow.
            vitals.place.holders -= 1;
            if !matches!(departure, Departure::Back(_)) {
                vitals.reinforcement_count = vitals.reinforcement_count.saturating_sub(holder.share).max(1);
            }
        }
        self.leave_tags(ns, id, &mut content, leaving)?;
        match departure {
            Departure::Back(from) => content.consolidated_from.retain(|merged| *merged != from),
            Departure::Forgotten(..) | Departure::Apart => {
                self.take_expiry(context, id, &mut vitals, leaving)?;
            }
        }
        vitals.version += 1;
        let retold = matches!(fate, Fate::Retold(_));
        let text_held = !retold && leaving.iter().any(Holder::wrote_row_text);
        let said_anew = retold || matches!(fate, Fate::Stays(Some(_)));
        let is_back = matches!(departure, Departure::Back(_));
        match fate {
            Fate::Retold(teller) => {
                if !is_back {
                    self.take_what_they_said(context, id, (&mut vitals, &mut content), leaving)?;
                }
                let changing = Changing { before: &before, old: &old, vitals, content };
                self.put_retold(context, id, changing, *teller, why)?;
            }
            Fate::Stays(heir) => {
                // A damaged row tells nothing, and keeps nothing from leaving.
                let origin = match &heir {
                    Some(heir) => sound(self.origin(ns, heir, &content.text))?.flatten(),
                    None => None,
                };
                if let Some((heir, origin)) = heir.as_ref().zip(origin) {
                    (vitals, content) = self.said(vitals, content, Some(&origin), heir);
                } else if !is_back {
                    self.take_what_they_said(context, id, (&mut vitals, &mut content), leaving)?;
                }
                self.place_row(context, id, &before, &old, vitals, &content)?;
            }
        }
        let is_asked = match departure {
            Departure::Forgotten(reason, _) => reason.is_asked_for(),
            Departure::Apart | Departure::Back(_) => true,
        };
        if retold && is_asked {
            // They had found the text that goes. Where it goes to another row with its writer, whoever forgets it there does
            // not find them here.
            self.leave_queries(ns, id, true)?;
        }
        let marked = match departure {
            Departure::Forgotten(reason, stone) => {
                self.mark(context, id, &before, &old, Forgetting { leaving, reason, stone, retold })?
            }
            Departure::Apart | Departure::Back(_) => None,
        };
        let derived = match departure {
            // An undo withdraws the messages of its run by itself; those of before are none of it.
            Departure::Forgotten(reason, _) if is_asked && reason != TombstoneReason::Undone => {
                self.erase_messages_of(context, id, (leaving, &[]), retold)?
            }
            _ => Vec::new(),
        };
        let left = Some(Left { text_held, said_anew });
        Ok(Applied { left, derived, erased: marked.into_iter().collect(), ..Applied::default() })
    }

    /// Of what a row says beside its text, nothing stays that only those said who have left: a channel, an author, an instant, a
    /// figure.
    fn take_what_they_said(
        &self,
        context: &Context,
        id: MemoryId,
        (vitals, content): (&mut Vitals, &mut Content),
        leaving: &[Holder],
    ) -> Result<()> {
        let mut row = Parts { vitals: vitals.clone(), content: content.clone(), access: Access::default() };
        let taken = leaving.iter().flat_map(|holder| taken_by(holder, &row, self.secret));
        let mut theirs: BTreeSet<_> = taken.collect();
        if theirs.is_empty() {
            return Ok(());
        }
        // Mostly the first of the others said the same, and the rest need not be read.
        let (mut since, mut is_imported) = (None, true);
        let said_all = &mut |stays: &Holder| {
            theirs.retain(|field| !stays.fields.contains(field));
            let (first, last) = since.unwrap_or((stays.since, stays.since));
            since = Some((first.min(stays.since), last.max(stays.since)));
            is_imported &= stays.run.is_some();
            theirs.is_empty()
        };
        sound(self.tx.any_holder(context.ns, id, said_all))?;
        let codes: Vec<u8> = theirs.iter().map(|(code, _)| *code).collect();
        let recorded = row.vitals.times.recorded_at;
        let seed = seed(&context.confidence, is_imported);
        forget_said(&mut row, &codes, Unsaid { since: since.unwrap_or((recorded, recorded)), seed });
        (*vitals, *content) = (row.vitals, row.content);
        Ok(())
    }

    /// The end that a caller set goes with the last writer that gave one. Then the row lives as long as its tier says.
    fn take_expiry(
        &self,
        context: &Context,
        id: MemoryId,
        vitals: &mut Vitals,
        leaving: &[Holder],
    ) -> Result<()> {
        let theirs = vitals.expires_by == ExpiresBy::Caller && leaving.iter().any(Holder::gave_expiry);
        if theirs && sound(self.any_holder(context.ns, id, &mut Holder::gave_expiry))? == Some(false) {
            let used = sound(self.tx.access(context.ns, id))?.unwrap_or_default().last_accessed(vitals);
            let base = used.max(vitals.times.recorded_at);
            vitals.set_life(Life::of_tier(base, tier_ttl(vitals.tier, &context.ttl)));
        }
        Ok(())
    }

    /// What happens to the text of a row when holders leave; none if the row goes.
    fn fate(&mut self, ns: NsId, id: MemoryId, row: &Vitals, leaving: &[Holder]) -> Result<Option<Fate>> {
        if usize::try_from(row.place.holders).is_ok_and(|holders| holders <= leaving.len()) {
            return Ok(None);
        }
        let leaving_numbers: BTreeSet<u32> = leaving.iter().map(|holder| holder.number).collect();
        let stays = |number: u32| !leaving_numbers.contains(&number);
        let wrote_here = |holder: &Holder| holder.wrote_row_text() && holder.from.is_none();
        if !leaving.iter().any(Holder::wrote_row_text) {
            return Ok(Some(Fate::Stays(None)));
        }
        let writers = match self.known_writers(ns, id)? {
            Some(known) => known,
            None => {
                // Mostly one of the first holders wrote the text, and stays.
                let keeps = &mut |holder: &Holder| stays(holder.number) && wrote_here(holder);
                if self.tx.any_holder(ns, id, keeps)? {
                    return Ok(Some(Fate::Stays(None)));
                }
                self.read_writers(ns, id)?
            }
        };
        let heir = writers.first_that_wrote(row, stays);
        let fate = if writers.wrote_here(stays).is_some() {
            Some(Fate::Stays(None))
        } else if heir.is_some() {
            // Whoever wrote the text into the row itself says what is known of it, and after them the first of the others.
            let said = writers.wrote_here(|_| true).or_else(|| writers.first_that_wrote(row, |_| true));
            let heir = heir.filter(|_| said.is_some_and(|said| !stays(said.number)));
            Some(Fate::Stays(heir.cloned().map(Box::new)))
        } else {
            let teller = writers.first_with_text(row, stays);
            teller.map(|teller| Fate::Retold(Box::new(teller.clone())))
        };
        self.keep_writers(ns, writers);
        Ok(fate)
    }

    /// Ends the row. Its tombstone does not name keys that return to the row from which they came.
    fn end(
        &mut self,
        context: &Context,
        id: MemoryId,
        leaving: &[Holder],
        departure: Departure,
        why: &Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let (reason, replaced_by) = match departure {
            Departure::Forgotten(reason, _) => (reason, None),
            Departure::Back(to) => (TombstoneReason::Forget, Some(to)),
            Departure::Apart => (TombstoneReason::Forget, None),
        };
        let mut went_with = 0;
        let leaving: BTreeSet<u32> = leaving.iter().map(|holder| holder.number).collect();
        for holder in self.tx.holders(ns, id)? {
            let leaves = leaving.contains(&holder.number);
            let returns = leaves && matches!(departure, Departure::Back(_));
            // A row in limbo already has its tombstone.
            if returns && holder.key.is_some() && self.tx.limbo(ns, id)?.is_none() {
                self.drop_key(ns, id, holder.number)?;
            } else if !leaves && holder.key.is_none() && !self.waits_superseded(ns, &holder)? {
                went_with += u64::from(holder.count);
            }
        }
        let applied = self.remove(context, id, Going { reason, replaced_by }, why.clone())?;
        Ok(Applied { went_with, ..applied })
    }

    /// Whether a holder is still on the row from which it came, and another row superseded that row.
    fn waits_superseded(&self, ns: NsId, holder: &Holder) -> Result<bool> {
        let Some(from) = holder.from else { return Ok(false) };
        let row = sound(self.tx.vitals(ns, from))?.flatten().filter(|row| row.times.removed_at.is_none());
        let superseded = row.and_then(|row| row.times.superseded);
        Ok(superseded.is_some_and(|superseded| superseded.mode != SupersedeMode::Duplicate))
    }

    /// Lets a holder give the row its text. Everything else that is known of the row where the text was written comes
    /// with it. If nothing is left of that row, the present row says no more than the text.
    fn retell(
        &mut self,
        ns: NsId,
        id: MemoryId,
        changing: Changing<'_>,
        mut teller: Holder,
    ) -> Result<(Vitals, Content)> {
        let Changing { before, old, vitals, content } = changing;
        let text = teller.text.take().unwrap_or_default();
        // A damaged row tells nothing beside the text.
        let origin = sound(self.origin(ns, &teller, &text))?.flatten();
        let (mut vitals, content) = self.said(vitals, Content { text, ..content }, origin.as_ref(), &teller);
        // A text is bounded far below 4 GiB, so the fallback is never taken.
        vitals.content_bytes = u32::try_from(content.text.len()).unwrap_or(u32::MAX);
        vitals.place.fingerprint = normal_form(&content.text).prefix();
        self.say_text(ns, id, &content.text, origin.as_ref())?;
        // The postings are found by the terms of the old text, so the old row is handed over.
        if let Some(doc) = vitals.place.doc.take() {
            self.forget_text(Self::text_of(ns, before), doc, id, before, old)?;
        }
        let space = origin.as_ref().map_or(SpaceId::NONE.0, |origin| origin.parts.vitals.place.space);
        let vector = origin.and_then(|origin| origin.vector);
        self.swap_vector(ns, id, &mut vitals, vector.map(|vector| (space, vector)))?;
        Ok((vitals, content))
    }

    /// What a row says when it has its text from a teller: all that was said of that text in the row where it was written, and
    /// beside it what other rows have brought. What protects the row, and what passes have raised, stays.
    fn said(
        &self,
        vitals: Vitals,
        content: Content,
        origin: Option<&Origin>,
        teller: &Holder,
    ) -> (Vitals, Content) {
        let (series, merged) = (content.series.clone(), content.consolidated_from.clone());
        let mut parts = Parts { vitals, content, access: Access::default() };
        let own = said_by(teller, &parts, self.secret);
        tell(&mut parts, origin.map(|origin| &origin.parts), |code| origin.is_some() || own.contains(&code));
        parts.content.consolidated_from = merged;
        if origin.is_none() {
            parts.content.series = series;
        }
        (parts.vitals, parts.content)
    }

    /// Gives a row whose writers have left the text of the first of those that are left and can be read. Returns what the
    /// tombstone tells of those that are gone.
    pub(super) fn retell_from(
        &mut self,
        context: &Context,
        id: MemoryId,
        (gone, left): (Vec<Holder>, Vec<Holder>),
        departure: Departure,
        why: &Why,
    ) -> Result<Option<Erased>> {
        let (before, old) = self.load(context.ns, id)?;
        let left = self.ranked(context.ns, id, left)?;
        let teller = left.first_with_text(&before, |_| true).cloned();
        let Some(teller) = teller else { return Ok(None) };
        let changing = Changing { before: &before, old: &old, vitals: before.clone(), content: old.clone() };
        self.put_retold(context, id, changing, teller, why)?;
        self.leave_queries(context.ns, id, true)?;
        let Departure::Forgotten(reason, stone) = departure else { return Ok(None) };
        self.mark(context, id, &before, &old, Forgetting { leaving: &gone, reason, stone, retold: true })
    }

    fn put_retold(
        &mut self,
        context: &Context,
        id: MemoryId,
        changing: Changing<'_>,
        teller: Holder,
        why: &Why,
    ) -> Result<()> {
        let (before, old, from) = (changing.before, changing.old, teller.from);
        let stands_since = self.stands_since(context, id, before, &teller)?;
        let (mut vitals, content) = self.retell(context.ns, id, changing, teller)?;
        vitals.times.recorded_at = stands_since;
        self.place_row(context, id, before, old, vitals, &content)?;
        let mut why = why.clone();
        why.evidence.members.extend(from);
        self.journal(context, Op::Retell, Some((id, None)), Vec::new(), why)
    }

    /// From when on a row stands for the text of a teller: since the row from which the teller came ended, and since the text was
    /// written into the row itself if the teller came from no other. Where that other row is gone, it ended as the teller came. So no
    /// read of the past sees the text before it was written, or twice. A row that has ended begins no later than it ended.
    fn stands_since(&self, context: &Context, id: MemoryId, row: &Vitals, teller: &Holder) -> Result<Time> {
        let since = match teller.from {
            None => {
                let said = teller.text.as_deref().map(|text| self.said_here_since(context.ns, id, text));
                said.transpose()?.flatten().map_or(teller.since, |said| said.min(teller.since))
            }
            Some(from) => {
                let ended = sound(self.tx.vitals(context.ns, from))?.flatten().map(|row| row.times.tx_end());
                // Its tombstone is from its removal.
                let stone = sound(self.tx.tombstone(context.ns, from))?.flatten();
                let removed =
                    stone.filter(|stone| stone.replaced_by == Some(id)).map(|stone| stone.deleted_at);
                ended.unwrap_or(removed.or(Some(teller.since))).unwrap_or(context.now)
            }
        };
        let superseded = row.times.superseded.map(|superseded| superseded.at);
        Ok([row.times.removed_at, superseded].into_iter().flatten().fold(since, Time::min))
    }

    /// Makes the remaining holders that wrote this text its writers.
    fn say_text(&mut self, ns: NsId, id: MemoryId, text: &str, origin: Option<&Origin>) -> Result<()> {
        // Those that can't be read stay as they are.
        let beside =
            origin.map(|origin| self.readable_holders(ns, origin.id)).transpose()?.unwrap_or_default();
        let from = origin.map(|origin| origin.id);
        self.change_holders(ns, id, text, |holder| {
            let wrote = |there: &Holder| {
                there.wrote_row_text()
                    && (there.key.is_none(), there.run, &there.tags) == (true, holder.run, &holder.tags)
            };
            let came = holder.key.is_none() && holder.from == from;
            if holder.text.as_deref() == Some(text) {
                holder.text = None;
            } else if holder.follows && came && beside.iter().any(wrote) {
                holder.follows = false;
            } else {
                return false;
            }
            true
        })
    }

    /// The row in which the text of a holder was written, if that row still exists. Where all writers were given another text by
    /// id since, that row has the text from before, and its vector is none of the present text.
    pub(crate) fn origin(&self, ns: NsId, holder: &Holder, text: &str) -> Result<Option<Origin>> {
        for Former { id, vitals, holder } in Lineage::new(&*self.tx, ns).of(holder)?.into_iter().rev() {
            let content = self.content_of(ns, id)?;
            let says_it = content.text == text;
            let wrote_another = holder.wrote_row_text() && holder.from.is_none();
            if !says_it && !wrote_another {
                continue;
            }
            let vector = match (vitals.place.slot, self.tx.limbo(ns, id)?) {
                _ if !says_it => None,
                (Some(_), _) => self.vector_of(ns, &vitals)?,
                (None, Some(limbo)) => UnitVector::from_stored(limbo.vector),
                (None, None) => None,
            };
            let parts = Parts { vitals, content, access: Access::default() };
            return Ok(Some(Origin { id, parts, vector }));
        }
        Ok(None)
    }

    /// Replaces the vector of a row. Without a new vector the row waits for one.
    fn swap_vector(
        &mut self,
        ns: NsId,
        id: MemoryId,
        vitals: &mut Vitals,
        vector: Option<(u16, UnitVector)>,
    ) -> Result<()> {
        if let Some(at) = vitals.times.removed_at {
            let mut limbo = self.tx.limbo(ns, id)?.unwrap_or_default();
            vitals.place.space = vector.as_ref().map_or(SpaceId::NONE.0, |(space, _)| *space);
            limbo.vector = vector.map(|(_, vector)| vector.as_slice().to_vec()).unwrap_or_default();
            return truth(self.tx).put_limbo(ns, id, at, &limbo);
        }
        // A vector of a former space does not help a search.
        let fits = |space: u16| space == vitals.place.space || space == self.clock.space;
        let vector = vector.filter(|(space, _)| fits(*space));
        let Some((space, vector)) = vector else {
            self.free_slot(ns, id, vitals)?;
            vitals.place.space = SpaceId::NONE.0;
            return Ok(());
        };
        self.set_vector(ns, id, vitals, space, &vector)
    }

    /// Leaves a tombstone for writes whose text is gone while their row stays. A write that came from a row of its own
    /// has the tombstone of that row.
    fn mark(
        &mut self,
        context: &Context,
        id: MemoryId,
        row: &Vitals,
        content: &Content,
        forgetting: Forgetting<'_>,
    ) -> Result<Option<Erased>> {
        let Forgetting { leaving, reason, stone, retold } = forgetting;
        let ns = context.ns;
        let gone = |holder: &&Holder| match &holder.text {
            Some(_) => holder.from.is_none(),
            None => retold && holder.wrote_row_text() && holder.from.is_none(),
        };
        let gone: Vec<Holder> = leaving.iter().filter(gone).cloned().collect();
        let Some(first) = gone.first() else { return Ok(None) };
        let said = Content::new(first.text.as_ref().unwrap_or(&content.text).as_str());
        let derived = self.made_from(ns, id)?;
        let erased = Erased { id: stone, predecessors: Vec::new(), onward: None, derived };
        let tombstone =
            self.tombstone_of(context, &erased, &gone, Some(&said), Going { reason, replaced_by: None });
        truth(self.tx).put_tombstone(ns, &tombstone)?;
        self.counters.add(ns, PartId(row.place.partition), Sort::Tombstones, "", 1, 0);
        Ok(Some(erased))
    }
}
