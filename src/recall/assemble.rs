//! Puts a memory together from its rows.

use std::collections::BTreeSet;

use crate::error::{Error, Result, sound};
use crate::model::{Content, Entity, Holder, Link, Memory, MemoryId, Parts, Time, Vitals};
use crate::recall::{Reader, Source};
use crate::store::{IndexId, Junction, JunctionRow, NsId, PartId, Rows, SpaceId, keys};

/// The names that the junction rows of a memory stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Joined {
    pub(super) categories: Vec<String>,
    pub(super) entities: Vec<Entity>,
    pub(super) links: Vec<Link>,
    pub(super) sources: Vec<MemoryId>,
}

/// The keys of the holders, sorted, each once.
pub(super) fn keys_of(holders: &[Holder]) -> Vec<String> {
    let mut all: Vec<String> = holders.iter().filter_map(|holder| holder.key.clone()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl<S: Source> Reader<'_, S> {
    /// Whether the reader sees a row: a live reader now, a reader of the past at its instants.
    pub(super) fn sees(&self, id: MemoryId, vitals: &Vitals) -> Result<bool> {
        let Some(past) = self.past else { return Ok(vitals.times.visible_live(self.now)) };
        if !vitals.times.visible(past.valid, past.known) {
            return Ok(false);
        }
        Ok(self.end_told(id, vitals, past.known)?.is_none_or(|end| past.valid < end))
    }

    /// The end that was known of a row, where several texts were announced for it, one before the other: the row itself tells no more
    /// than since when the last of these ends was known.
    fn end_told(&self, id: MemoryId, vitals: &Vitals, known: Time) -> Result<Option<Time>> {
        let Some(ns) = self.ns.filter(|_| vitals.times.may_end_as_announced(known)) else { return Ok(None) };
        // Others have announced it.
        let overtaken = vitals.overtaken.iter().filter(|one| one.at <= known);
        let mut end = overtaken.map(|one| one.end).min();
        // What a key of the row has announced says so itself.
        let (rows, begins) = (self.rows(), vitals.times.from().max(known));
        let own = |to: MemoryId, number: u32| -> Result<Option<Time>> {
            let Some(holder) = rows.holder(ns, to, number)?.filter(Holder::replaces_ahead) else {
                return Ok(None);
            };
            let next = rows.vitals(ns, to)?.filter(|_| holder.since <= known);
            let next = next.filter(|next| next.times.tx_end().is_none_or(|end| known < end));
            Ok(next.and_then(|next| next.times.valid_from).filter(|from| *from > begins))
        };
        let mut holders = sound(rows.holders(ns, id))?.unwrap_or_default();
        holders.retain(|holder| holder.since <= known);
        for key in keys_of(&holders) {
            // What is damaged tells of no end, and is named where it is read itself.
            let there = sound(rows.holders_of_key(ns, &key))?.unwrap_or_default();
            for (to, number) in there.into_iter().filter(|(to, _)| *to != id) {
                let next = sound(own(to, number))?.flatten();
                end = [end, next].into_iter().flatten().min();
            }
        }
        Ok(end)
    }

    /// The cold part of a row that has vitals.
    pub(super) fn content(&self, ns: NsId, id: MemoryId) -> Result<Content> {
        self.rows()
            .content(ns, id)?
            .ok_or_else(|| Error::corrupted("memory", &keys::memory(ns, id), "vitals without content"))
    }

    /// The hot part of a row that an index names.
    pub(super) fn vitals(&self, ns: NsId, id: MemoryId) -> Result<Vitals> {
        self.rows().vitals(ns, id)?.ok_or_else(|| {
            Error::corrupted("vitals", &keys::memory(ns, id), "an index names a row that is gone")
        })
    }

    pub(super) fn joined(&self, ns: NsId, id: MemoryId) -> Result<Joined> {
        let mut joined = Joined::default();
        for row in self.rows().junctions(ns, id)? {
            match row.sort {
                Junction::Category => joined.categories.push(self.term(ns, id, &row)?),
                Junction::Entity => {
                    joined.entities.push(Entity { name: self.term(ns, id, &row)?, role: row.role });
                }
                Junction::Link => joined.links.push(Link { to: target(ns, id, &row)?, relation: row.role }),
                Junction::Source => joined.sources.push(target(ns, id, &row)?),
            }
        }
        joined.categories.sort_unstable();
        joined.entities.sort_unstable();
        joined.links.sort_unstable();
        Ok(joined)
    }

    /// The holders of a memory.
    ///
    /// # Errors
    /// `Corrupted` where one is damaged, or where there are not as many as the memory counts: the key of one is damaged then.
    pub(super) fn holders(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<Vec<Holder>> {
        let (holders, counted) = (self.rows().holders(ns, id)?, vitals.place.holders);
        if usize::try_from(counted) == Ok(holders.len()) {
            return Ok(holders);
        }
        let what = format!("{counted} holders counted, {} there", holders.len());
        Err(Error::corrupted("holder", &keys::memory(ns, id), what))
    }

    /// What a row is joined to, or was joined to before it came to limbo.
    pub(super) fn joined_of(
        &self,
        ns: NsId,
        id: MemoryId,
        vitals: &Vitals,
        holders: &[Holder],
    ) -> Result<Joined> {
        match vitals.times.removed_at {
            None => self.joined(ns, id),
            Some(_) => self.joined_before(ns, id, holders),
        }
    }

    /// What a row in limbo was joined to, and will be joined to when it comes back.
    fn joined_before(&self, ns: NsId, id: MemoryId, holders: &[Holder]) -> Result<Joined> {
        let mut joined = Joined::default();
        for holder in holders {
            joined.categories.extend_from_slice(&holder.categories);
            joined.entities.extend_from_slice(&holder.entities);
            joined.links.extend_from_slice(&holder.links);
        }
        joined.categories.sort_unstable();
        joined.categories.dedup();
        joined.entities.sort_unstable();
        joined.entities.dedup();
        joined.links.sort_unstable();
        joined.links.dedup();
        let limbo = self.rows().limbo(ns, id)?.unwrap_or_default();
        joined.sources = limbo.sources;
        Ok(joined)
    }

    pub(super) fn term(&self, ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<String> {
        let term = row.target.as_slice().try_into().map(u32::from_be_bytes).ok();
        let name = term.map(|term| self.rows().term_name(ns, row.sort, term)).transpose()?.flatten();
        name.ok_or_else(|| dangling(ns, id, "a name that is not there"))
    }

    /// The whole memory. If `spoken`, the requested holder, has a text of its own, the text is that one.
    pub(super) fn memory(
        &self,
        ns: NsId,
        id: MemoryId,
        vitals: Vitals,
        spoken: Option<&Holder>,
        with_vector: bool,
    ) -> Result<Memory> {
        let content = self.content(ns, id)?;
        let mut holders = self.rows().holders(ns, id)?;
        let Joined { categories, entities, links, sources } = self.joined_of(ns, id, &vitals, &holders)?;
        let vector = if with_vector { self.vector(ns, id, &vitals)? } else { None };
        let (partition, space) =
            (self.partition(ns, PartId(vitals.place.partition))?, SpaceId(vitals.place.space));
        let (state, also) = (vitals.times.state(self.now), self.also(ns, id, &vitals)?);
        let (limbo, access) = (self.limbo_of(ns, id, &vitals)?, self.rows().access(ns, id)?);
        let parts = Parts { vitals, content, access };
        let said = self.said(&parts, &holders);
        holders.iter_mut().for_each(|holder| holder.mark_otherwise(&said));
        let mut memory = Memory {
            namespace: self.namespace.clone(),
            partition,
            state,
            keys: keys_of(&holders),
            also,
            limbo,
            categories,
            entities,
            links,
            sources,
            vector,
            ..Memory::of(id, parts)
        };
        if let Some(text) = spoken.and_then(|holder| holder.text.as_ref()) {
            memory.text.clone_from(text);
        }
        if memory.vector.is_some() {
            memory.embedding_space =
                sound(self.rows().space(space))?.flatten().map(|row| row.embedder().to_owned());
            memory.is_of_former_space = self.rows().clock()?.space != space.0;
        }
        memory.holders = holders;
        Ok(memory)
    }

    /// The HMACs of what a row says of the fields that its holders gave, by code.
    fn said(&self, row: &Parts, holders: &[Holder]) -> Vec<(u8, [u8; 8])> {
        let given: BTreeSet<u8> =
            holders.iter().flat_map(|holder| &holder.fields).map(|(code, _)| *code).collect();
        let mut said = Vec::new();
        row.fields().for_each_of(
            |code| given.contains(&code),
            |code, value| {
                if !value.is_null() {
                    said.push((code, self.secret.of_field(code, &value)));
                }
            },
        );
        said
    }

    fn vector(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<Option<Vec<f32>>> {
        if vitals.times.removed_at.is_some() {
            let limbo = self.rows().limbo(ns, id)?.unwrap_or_default();
            return Ok(Some(limbo.vector).filter(|vector| !vector.is_empty()));
        }
        let Some(slot) = vitals.place.slot else { return Ok(None) };
        let vector = self.source.vector(IndexId::of(ns, vitals), slot)?;
        let missing =
            || Error::corrupted("vector", &keys::memory(ns, id), format!("slot {slot} has no vector"));
        vector.map(Some).ok_or_else(missing)
    }

    /// The other memory of a supersession that lies ahead: the successor of a memory that is or will be true,
    /// or the predecessor of a successor.
    fn also(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<Option<MemoryId>> {
        if let Some(superseded) = vitals.times.superseded {
            return Ok(Some(superseded.by).filter(|_| vitals.times.is_or_will_be_true(self.now)));
        }
        if vitals.times.from() <= self.now {
            return Ok(None);
        }
        for old in self.rows().superseded_by(ns, id)? {
            let seen = sound(self.rows().vitals(ns, old))?.flatten();
            if seen.is_some_and(|vitals| vitals.times.is_or_will_be_true(self.now)) {
                return Ok(Some(old));
            }
        }
        Ok(None)
    }
}

fn target(ns: NsId, id: MemoryId, row: &JunctionRow) -> Result<MemoryId> {
    let bytes = row.target.as_slice().try_into().map_err(|_| dangling(ns, id, "an end of another length"))?;
    Ok(MemoryId::from_bytes(bytes))
}

fn dangling(ns: NsId, id: MemoryId, why: &str) -> Error {
    Error::corrupted("junction", &keys::memory(ns, id), why)
}
