//! New rows, absorbed writes, changes in place.

use crate::error::{Error, Result};
use crate::index::slots::{self, Filling};
use crate::ledger::applied::Applied;
use crate::ledger::change::{NewRow, Raise};
use crate::ledger::writer::{Context, Ledger, Why, truth};
use crate::limits::{FORMER_SPACES_MAX, TAGS_MAX};
use crate::model::{Access, Content, Delta, Evidence, Holder, MemoryId, Op, Payload, RuleId, Time, Vitals};
use crate::store::control::SpaceRow;
use crate::store::{IndexId, NsId, Rows, SpaceId};
use crate::vector::{Coded, UnitVector};

/// A row after an update.
pub(crate) struct Next {
    pub(crate) vitals: Vitals,
    pub(crate) content: Content,
    pub(crate) access: Access,
    pub(crate) holders: Vec<Holder>,
    pub(crate) vector: Option<UnitVector>,
    pub(crate) payload: Option<Option<Payload>>,
}

impl Ledger<'_, '_> {
    /// The dimensions of the space in which a row has its slot.
    pub(crate) fn dim_of(&self, vitals: &Vitals) -> Result<usize> {
        let space = SpaceId(vitals.place.space);
        let row = self.tx.space(space)?.ok_or_else(|| {
            Error::corrupted("space", &space.0.to_be_bytes(), "a memory lies in a space that is not there")
        })?;
        Ok(row.dim as usize)
    }

    pub(super) fn insert(&mut self, context: &Context, row: NewRow, why: Why) -> Result<Applied> {
        let NewRow { id, mut vitals, mut content, access, mut holder, vector, sources, payload } = row;
        let ns = context.ns;
        self.refuse_used(ns, id)?;
        (holder.number, holder.since) = (0, vitals.times.recorded_at);
        vitals.place.next_holder = 1;
        vitals.place.holders = 1;
        vitals.place.doc = None;
        vitals.place.payload = payload.is_some();
        vitals.place.usage = access.usage(vitals.tier);
        // The slot is claimed before the vitals are written, because the vitals name it.
        vitals.place.slot = match &vector {
            Some(vector) => {
                let coded = Coded::of(vector);
                let index = IndexId::of(ns, &vitals);
                self.staged.push(index, id, &coded);
                let (commit, times) = (self.clock.commit, &vitals.times);
                Some(slots::claim(self.tx, index, Filling { commit, id, times, coded: &coded })?)
            }
            None => None,
        };
        content.tags.clone_from(&holder.tags);
        self.put_holder(ns, id, &holder)?;
        self.join_sources(ns, id, &sources)?;
        self.store_row(context, id, None, vitals, &content)?;
        truth(self.tx).put_access(ns, id, &access)?;
        truth(self.tx).put_payload(ns, id, payload.as_ref())?;
        self.journal(context, Op::Insert, Some((id, Some(0))), Vec::new(), why)?;
        Ok(Applied::default())
    }

    /// Lets a memory stand for one more write.
    pub(super) fn hold(
        &mut self,
        context: &Context,
        id: MemoryId,
        mut holder: Holder,
        raise: Raise,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let (before, old) = self.load(ns, id)?;
        let (mut vitals, mut content) = (before.clone(), old.clone());
        holder.run = context.run;
        let number = match self.shared_holder(ns, id, &holder)? {
            Some(mut shared) => {
                shared.count = shared.count.saturating_add(holder.count);
                shared.share = shared.share.saturating_add(holder.share);
                let number = shared.number;
                self.unite_links(&mut shared, &holder);
                self.put_holder(ns, id, &shared)?;
                number
            }
            None => {
                (holder.number, holder.since) = (vitals.place.give_number()?, context.now);
                vitals.place.holders += 1;
                self.put_holder(ns, id, &holder)?;
                holder.number
            }
        };
        unite(&mut content.tags, &holder.tags);
        vitals.reinforcement_count = vitals.reinforcement_count.saturating_add(holder.share);
        vitals.version += 1;
        let deltas = raise_row(&mut vitals, &raise);
        self.stamp_growth(context, id, raise.confidence)?;
        if let Some((space, vector)) = raise.vector.filter(|_| vitals.place.slot.is_none()) {
            self.set_vector(ns, id, &mut vitals, space.0, &vector)?;
        }
        self.place_row(context, id, &before, &old, vitals, &content)?;
        self.journal(context, Op::Hold, Some((id, Some(number))), deltas, why)?;
        Ok(Applied::default())
    }

    /// Writes a row after a change: slot instants, derived rows, vitals, content.
    pub(super) fn place_row(
        &mut self,
        context: &Context,
        id: MemoryId,
        before: &Vitals,
        old: &Content,
        vitals: Vitals,
        content: &Content,
    ) -> Result<Vitals> {
        if let Some(slot) = vitals.place.slot.filter(|_| before.times != vitals.times) {
            let dim = self.dim_of(&vitals)?;
            slots::set_times(self.tx, IndexId::of(context.ns, &vitals), dim, slot, &vitals.times)?;
        }
        self.store_row(context, id, Some((before, old)), vitals, content)
    }

    pub(super) fn update(
        &mut self,
        context: &Context,
        id: MemoryId,
        version: u64,
        next: Next,
        deltas: Vec<Delta>,
        why: Why,
    ) -> Result<Applied> {
        let ns = context.ns;
        let (before, old) = self.load_at(ns, id, version)?;
        let Next { mut vitals, mut content, access, holders, vector, payload } = next;
        // The new vector may lie in another space than the stored place, so its space is kept before the place
        // is replaced.
        let space = vitals.place.space;
        vitals.place = before.place.clone();
        vitals.place.usage = access.usage(vitals.tier);
        vitals.version = version + 1;
        if let Some(vector) = vector {
            self.set_vector(ns, id, &mut vitals, space, &vector)?;
        }
        if let Some(payload) = payload {
            vitals.place.payload = payload.is_some();
            truth(self.tx).put_payload(ns, id, payload.as_ref())?;
        }
        let numbers: Vec<u32> = holders.iter().map(|holder| holder.number).collect();
        let mut had = Vec::with_capacity(holders.len());
        content.tags.clone_from(&old.tags);
        for holder in holders {
            had.extend(self.tx.holder(ns, id, holder.number)?);
            self.rewrite_holder(ns, id, &holder, before.times.removed_at.is_some())?;
            unite(&mut content.tags, &holder.tags);
        }
        self.leave_tags(ns, id, &mut content, &had)?;
        self.place_row(context, id, &before, &old, vitals, &content)?;
        truth(self.tx).put_access(ns, id, &access)?;
        // The journal names a holder only if the update changed no other holder.
        let holder = numbers.first().copied().filter(|_| numbers.len() == 1);
        self.journal(context, Op::Update, Some((id, holder)), deltas, why)?;
        Ok(Applied::default())
    }

    /// Gives a memory a vector of the current space, which is that of an embedder. The memory waits for a vector, or
    /// has a vector of another space. Returns false if the memory is gone or already has its vector.
    pub(crate) fn embed(
        &mut self,
        context: &Context,
        id: MemoryId,
        (text, vector): (&str, &UnitVector),
        name: &str,
    ) -> Result<bool> {
        let ns = context.ns;
        let Some(found) = self.tx.vitals(ns, id)? else { return Ok(false) };
        let space = match self.tx.space(SpaceId(self.clock.space))? {
            Some(row) if row.embedder() == name => SpaceId(self.clock.space),
            // Another embedder has become current meanwhile, and its searches would never find this vector.
            Some(_) => return Ok(false),
            None => self.open_space(name, vector.dim())?,
        };
        let has_it = found.place.slot.is_some() && found.place.space == space.0;
        if found.times.removed_at.is_some() || has_it {
            return Ok(false);
        }
        let (before, content) = self.load(ns, id)?;
        if content.text != text {
            // Whoever wrote the text has left the row meanwhile, and may be forgotten.
            return Ok(false);
        }
        let mut vitals = before.clone();
        vitals.version += 1;
        self.set_vector(ns, id, &mut vitals, space.0, vector)?;
        self.store_row(context, id, Some((&before, &content)), vitals, &content)?;
        let delta = Delta {
            field: "embedding_space".to_owned(),
            before: self.space_name(before.place.space)?.into(),
            after: name.into(),
        };
        let why = Why { rule: RuleId::EMBED, evidence: Evidence::default() };
        self.journal(context, Op::Update, Some((id, None)), vec![delta], why)?;
        Ok(true)
    }

    /// Opens the space of an embedder, or of the caller's vectors, and makes it the current space.
    pub(crate) fn open_space(&mut self, name: &str, dim: usize) -> Result<SpaceId> {
        let space = self.new_space(name, dim)?;
        self.clock.space = space.0;
        Ok(space)
    }

    /// A space for vectors of an export that are not of the current space: the one with this name and these dimensions, or a new
    /// one.
    ///
    /// # Errors
    /// `Invalid` for a new one where the file has [`FORMER_SPACES_MAX`] spaces: each line could name another.
    pub(crate) fn former_space(&mut self, name: &str, dim: usize) -> Result<SpaceId> {
        for space in (1..self.clock.next_space).map(SpaceId) {
            let row = self.tx.space(space)?;
            if row.is_some_and(|row| row.embedder() == name && row.dim as usize == dim) {
                return Ok(space);
            }
        }
        if self.clock.next_space > FORMER_SPACES_MAX {
            let why = format!("must be one of the {FORMER_SPACES_MAX} that the file knows");
            return Err(Error::invalid("former_space", why, name));
        }
        self.new_space(name, dim)
    }

    fn new_space(&mut self, name: &str, dim: usize) -> Result<SpaceId> {
        let space = SpaceId(self.clock.next_space);
        self.clock.next_space += 1;
        let dim = u32::try_from(dim).unwrap_or(u32::MAX);
        self.tx.put_space(space, &SpaceRow { name: name.to_owned(), dim })?;
        Ok(space)
    }

    fn space_name(&self, space: u16) -> Result<Option<String>> {
        Ok(self.tx.space(SpaceId(space))?.map(|row| row.name))
    }

    /// Gives a row a vector of a space. A slot that it has in another space is free again.
    pub(super) fn set_vector(
        &mut self,
        ns: NsId,
        id: MemoryId,
        vitals: &mut Vitals,
        space: u16,
        vector: &UnitVector,
    ) -> Result<()> {
        // The old slot is freed while the vitals still name the old space, because its index follows from the
        // space.
        if vitals.place.space != space {
            self.free_slot(ns, id, vitals)?;
            vitals.place.space = space;
        }
        let index = IndexId::of(ns, vitals);
        let (commit, coded) = (self.clock.commit, Coded::of(vector));
        self.staged.push(index, id, &coded);
        let filling = Filling { commit, id, times: &vitals.times, coded: &coded };
        vitals.place.slot = Some(match vitals.place.slot {
            Some(slot) => slots::refill(self.tx, index, slot, filling)?,
            None => slots::claim(self.tx, index, filling)?,
        });
        Ok(())
    }

    /// Takes its slot from a row.
    pub(super) fn free_slot(&mut self, ns: NsId, id: MemoryId, vitals: &mut Vitals) -> Result<()> {
        let Some(slot) = vitals.place.slot else { return Ok(()) };
        let (index, dim) = (IndexId::of(ns, vitals), self.dim_of(vitals)?);
        self.staged.end(index, id);
        slots::release(self.tx, index, dim, self.clock.commit, slot)?;
        vitals.place.slot = None;
        Ok(())
    }

    pub(super) fn reinforce(
        &mut self,
        context: &Context,
        id: MemoryId,
        by: i64,
        expires_at: Option<Time>,
        confidence: Option<f32>,
        why: Why,
    ) -> Result<Applied> {
        let (before, content) = self.load(context.ns, id)?;
        let mut vitals = before.clone();
        let count = i64::from(vitals.reinforcement_count).saturating_add(by).clamp(1, i64::from(u32::MAX));
        vitals.reinforcement_count = u32::try_from(count).unwrap_or(u32::MAX);
        vitals.last_reinforced_at = Some(context.now);
        vitals.times.expires_at = expires_at.or(vitals.times.expires_at);
        vitals.confidence = confidence.or(vitals.confidence);
        vitals.version += 1;
        self.stamp_growth(context, id, confidence)?;
        let delta = Delta {
            field: "reinforcement_count".to_owned(),
            before: before.reinforcement_count.into(),
            after: vitals.reinforcement_count.into(),
        };
        self.place_row(context, id, &before, &content, vitals, &content)?;
        self.journal(context, Op::Reinforce, Some((id, None)), vec![delta], why)?;
        Ok(Applied::default())
    }
}

/// Raises the values that an absorbed write raises, and returns the changes.
fn raise_row(vitals: &mut Vitals, raise: &Raise) -> Vec<Delta> {
    let mut deltas = Vec::new();
    let mut note = |field: &str, before: serde_json::Value, after: serde_json::Value| {
        deltas.push(Delta { field: field.to_owned(), before, after });
    };
    if let Some(life) = raise.life {
        let old = vitals.life();
        if life.end != old.end {
            let shown = |at: Option<Time>| at.map(|at| at.to_string()).into();
            note("expires_at", shown(old.end), shown(life.end));
        }
        if life.by != old.by {
            note("expires_by", old.by.as_str().into(), life.by.as_str().into());
        }
        vitals.set_life(life);
    }
    if let Some(tier) = raise.tier.filter(|tier| *tier > vitals.tier) {
        note("tier", vitals.tier.as_str().into(), tier.as_str().into());
        vitals.tier = tier;
    }
    if let Some(significance) = raise.significance.filter(|s| *s > vitals.significance) {
        note("significance", vitals.significance.as_str().into(), significance.as_str().into());
        vitals.significance = significance;
    }
    if let Some(importance) = raise.importance.filter(|i| *i > vitals.importance) {
        note("importance", vitals.importance.into(), importance.into());
        vitals.importance = importance;
    }
    vitals.confidence = raise.confidence.or(vitals.confidence);
    vitals.last_reinforced_at = raise.last_reinforced_at.or(vitals.last_reinforced_at);
    deltas
}

/// Adds to a sorted set.
pub(crate) fn unite<T: Ord + Clone>(set: &mut Vec<T>, more: &[T]) {
    for item in more {
        if let Err(at) = set.binary_search(item) {
            set.insert(at, item.clone());
        }
    }
}

/// The error of a memory that has no room for the tags of another one whose place it takes.
pub(super) fn too_many_tags(old: MemoryId, new: MemoryId) -> Error {
    let why = format!("with the tags of {old}, {new} would have more than {TAGS_MAX} tags");
    Error::Conflict { what: format!("supersede {old}"), why }
}

/// Whether a row with these tags can take a write with those. A row has no more tags than one draft may have, so that
/// the cost of a write does not grow with the writes before it. Tags that the row already has need no room, however
/// many they are.
pub(crate) fn tags_fit<T: Ord>(tags: &[T], more: &[T]) -> bool {
    let fresh = more.iter().filter(|tag| tags.binary_search(tag).is_err()).count();
    fresh == 0 || tags.len() + fresh <= TAGS_MAX
}
