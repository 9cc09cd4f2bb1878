//! From the names that a caller uses to the numbers of the file.

use crate::error::{Error, Result};
use crate::index::holder_of_key;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::ledger::{Change, Ledger, tier_ttl};
use crate::model::{Memory, MemoryId, NamespaceName, Partition, Scope, is_blank};
use crate::store::control::{NamespaceRow, SpaceRow};
use crate::store::{NsId, PartId, Rows, SpaceId, Traces};

/// The number of a namespace; a new number if the namespace is new. While the row of a namespace is damaged, no namespace is
/// made: it might have the name of the damaged row, and memories would be hidden behind it.
pub(crate) fn open_namespace(ledger: &mut Ledger<'_, '_>, name: &NamespaceName) -> Result<NsId> {
    if let Some(row) = ledger.tx.namespace(name.as_str())? {
        return Ok(NsId(row.number));
    }
    if !ledger.namespaces_are_sound {
        ledger.tx.no_namespace_is_damaged()?;
        ledger.namespaces_are_sound = true;
    }
    let number = ledger.clock.next_ns;
    ledger.clock.next_ns += 1;
    let row = NamespaceRow {
        number,
        created_ms: ledger.now().as_millis(),
        next_part: 1,
        horizon_known_ms: i64::MIN,
        horizon_valid_ms: i64::MIN,
        dropping: false,
    };
    ledger.tx.put_namespace(name.as_str(), &row)?;
    Ok(NsId(number))
}

impl NamespaceWriter<'_, '_, '_> {
    /// The number of a partition; a new number if the partition is new.
    pub(super) fn open_partition(&mut self, partition: &Partition) -> Result<PartId> {
        let Some(agent) = partition.agent_name() else { return Ok(PartId(0)) };
        let ns = self.ns();
        if let Some(part) = self.ledger.tx.partition(ns, agent)? {
            return Ok(part);
        }
        let name = self.namespace.as_str();
        let mut row = self
            .ledger
            .tx
            .namespace(name)?
            .ok_or_else(|| Error::NotFound { what: "namespace", name: name.to_owned() })?;
        let part = PartId(row.next_part);
        row.next_part += 1;
        self.ledger.tx.put_namespace(name, &row)?;
        self.ledger.tx.put_partition(ns, agent, part)?;
        Ok(part)
    }

    /// Takes the vectors of an embedder back from drafts, if the vectors of the file have meanwhile come to belong to
    /// another space.
    pub(crate) fn leave_out_strangers(&self, drafts: &mut [Prepared]) -> Result<()> {
        for draft in drafts {
            let Some(name) = draft.embedder.as_deref() else { continue };
            if self.is_stranger(name)? {
                (draft.vector, draft.embedder) = (None, None);
            }
        }
        Ok(())
    }

    /// Whether the vectors of the file belong to a space other than that of an embedder with this name.
    pub(super) fn is_stranger(&self, name: &str) -> Result<bool> {
        let space = self.ledger.tx.space(SpaceId(self.ledger.clock.space))?;
        Ok(space.is_some_and(|space| name != space.embedder()))
    }

    /// The space for vectors of `dim` dimensions. The first vector of a file opens the space, under `name`; but a caller's
    /// vectors belong to the embedder that was asked for.
    ///
    /// # Errors
    /// As [`Self::check_dim`].
    pub(super) fn open_space_of(&mut self, dim: usize, name: &str) -> Result<SpaceId> {
        self.check_dim(dim)?;
        let known = SpaceId(self.ledger.clock.space);
        if self.ledger.tx.space(known)?.is_some() {
            return Ok(known);
        }
        let asked_for = self.embeds.clone().filter(|space| !space.suggested && name == SpaceRow::CALLER);
        self.ledger.open_space(asked_for.as_ref().map_or(name, |space| &space.name), dim)
    }

    /// The space of the vector of an exported memory. None for a vector of another space than that of the file, where the memory
    /// has a text: the text waits for a vector. A memory without a text is nothing but its vector and keeps it, in a space in
    /// which no search looks. A vector whose line names no space is one of the caller's, as in a draft.
    ///
    /// # Errors
    /// As [`Self::check_dim`], where the line names no space.
    pub(super) fn space_of_export(&mut self, memory: &Memory, dim: usize) -> Result<Option<SpaceId>> {
        let Some(name) = memory.embedding_space.as_deref() else {
            return self.open_space_of(dim, SpaceRow::CALLER).map(Some);
        };
        let present = match memory.is_of_former_space {
            // In this file it may be the present space.
            true => self.known_space(name, dim)?,
            false => self.present_space(name, dim)?,
        };
        if present.is_some() || !is_blank(&memory.row_text) {
            return Ok(present);
        }
        self.ledger.former_space(name, dim).map(Some)
    }

    /// The space of the file, if the vectors of a space of an export are of it. The first of them opens it by their name, and an
    /// embedder that nobody asked for gives way. A caller's vectors belong to any space with their dimensions, as in a draft.
    pub(super) fn present_space(&mut self, name: &str, dim: usize) -> Result<Option<SpaceId>> {
        let known = self.ledger.tx.space(SpaceId(self.ledger.clock.space))?;
        let asked_for = self.embeds.as_ref().filter(|space| !space.suggested);
        let takes = |own: &str, own_dim: usize| own_dim == dim && (own == name || name == SpaceRow::CALLER);
        let is_its = match (&known, asked_for) {
            (Some(space), _) => takes(space.embedder(), space.dim as usize),
            (None, Some(space)) => takes(&space.name, space.dim),
            (None, None) => true,
        };
        if is_its { self.open_space_of(dim, name).map(Some) } else { Ok(None) }
    }

    /// The space of the file, if it is known by this name and has these dimensions.
    fn known_space(&self, name: &str, dim: usize) -> Result<Option<SpaceId>> {
        let id = SpaceId(self.ledger.clock.space);
        let known = self.ledger.tx.space(id)?;
        Ok(known.filter(|space| space.embedder() == name && space.dim as usize == dim).map(|_| id))
    }

    /// Refuses a vector with other dimensions than the space of the file has, or, before there is one, that of the embedder
    /// that was asked for.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check_dim(&self, dim: usize) -> Result<()> {
        let due = match self.ledger.tx.space(SpaceId(self.ledger.clock.space))? {
            Some(space) => Some(space.dim as usize),
            None => self.embeds.as_ref().filter(|space| !space.suggested).map(|space| space.dim),
        };
        match due.filter(|due| *due != dim) {
            Some(due) => Err(Error::invalid("vector", format!("must have {due} dimensions"), dim)),
            None => Ok(()),
        }
    }

    /// Refuses a new key that is the id of a memory: the name would mean that memory, and the key would reach nothing.
    ///
    /// # Errors
    /// `Invalid`.
    pub(super) fn check_new_key(&self, key: &str) -> Result<()> {
        let Ok(id) = key.parse::<MemoryId>() else { return Ok(()) };
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        if tx.vitals(ns, id)?.is_some() || tx.tombstone(ns, id)?.is_some() {
            return Err(Error::invalid("key", "must not be the id of a memory", key));
        }
        Ok(())
    }

    /// The partition of a scope: none in the inner option is all of them, none in the outer one that there is no
    /// such partition.
    pub(crate) fn part_of(&self, scope: &Scope) -> Result<Option<Option<PartId>>> {
        match scope.partition() {
            None => Ok(Some(None)),
            Some(Partition::Shared) => Ok(Some(Some(PartId(0)))),
            Some(Partition::Agent(name)) => Ok(self.known_part(name.as_str())?.map(Some)),
        }
    }

    /// The number of an agent's partition, if there is one.
    pub(super) fn known_part(&self, agent: &str) -> Result<Option<PartId>> {
        self.ledger.tx.partition(self.ns(), agent)
    }

    /// Counts uses of a memory: the expiry slides, if there is one, and the confidence grows.
    pub(super) fn use_of(&self, id: MemoryId, by: u32) -> Result<Change> {
        let (vitals, _) = self.ledger.load(self.ns(), id)?;
        let ttl = tier_ttl(vitals.tier, &self.policy.ttl);
        // A use after the end does not bring a memory back.
        let ttl = ttl.filter(|_| vitals.times.expires_at.is_some_and(|end| end > self.now()));
        let expires_at = vitals.life().slid(self.now(), ttl).end;
        let confidence = self.grown(id, &vitals)?;
        Ok(Change::Reinforce { id, by: i64::from(by), expires_at, confidence })
    }

    /// The memory that `name` means. For a key, also the number of its holder.
    pub(crate) fn find(&self, name: &str) -> Result<(MemoryId, Option<u32>)> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        if let Ok(id) = name.parse::<MemoryId>()
            && tx.vitals(ns, id)?.is_some()
        {
            return Ok((id, None));
        }
        let found = self.meant_by_key(name)?;
        let found = found.ok_or_else(|| Error::NotFound { what: "memory", name: name.to_owned() })?;
        Ok((found.id, Some(found.number)))
    }

    /// The current row that holds `key`, and the number of the holder.
    pub(super) fn current_holder(&self, key: &str) -> Result<Option<(MemoryId, u32)>> {
        let found = holder_of_key(&*self.ledger.tx, self.ns(), key, self.now())?;
        let current = found.filter(|found| found.vitals.times.is_current(self.now()));
        Ok(current.map(|found| (found.id, found.number)))
    }

    /// The name of a partition by its number.
    pub(super) fn partition_of(&self, part: PartId) -> Result<Partition> {
        if part == PartId(0) {
            return Ok(Partition::Shared);
        }
        let name = self.ledger.tx.partition_name(self.ns(), part)?;
        Partition::of(name.as_deref())
    }
}
