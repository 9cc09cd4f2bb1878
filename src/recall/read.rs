//! Reads one memory by its id or its key, in any state.

use crate::error::{Error, Result, sound};
use crate::index::{Answering, answering_to_key};
use crate::model::{Holder, Memory, MemoryId, Payload, SupersedeMode, Tombstone, Vitals};
use crate::recall::assemble::keys_of;
use crate::recall::{Reader, Source};
use crate::store::{NsId, Rows};

/// The memory or the tombstone under a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    /// A memory, in any state.
    Memory(Box<Memory>),
    /// The tombstone of a memory that is gone.
    Tombstone(Tombstone),
}

impl Got {
    /// The memory; none if only a tombstone is left.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert!(team.look_up(tea, false)?.into_memory().is_some());
    /// team.forget(tea)?;
    /// assert!(team.look_up(tea, false)?.into_memory().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_memory(self) -> Option<Memory> {
        match self {
            Got::Memory(memory) => Some(*memory),
            Got::Tombstone(_) => None,
        }
    }
}

/// A resolved name: the row, its hot part, and the number of the holder that has the name as its key.
pub(super) enum Named {
    Row(MemoryId, Box<Vitals>, Option<u32>),
    Gone(Tombstone),
}

impl<S: Source> Reader<'_, S> {
    /// The memory or tombstone with an id or a key. Of several rows with a key, the current row is preferred, then the
    /// row that held the key last. Of several tombstones, the latest.
    ///
    /// # Errors
    /// `NotFound`, with a hint when the namespace was dropped; `Corrupted`.
    pub(crate) fn get(&self, name: &str, with_vector: bool) -> Result<Got> {
        match (self.ns, self.resolve(name)?) {
            (Some(ns), Some(Named::Row(id, vitals, number))) => {
                let spoken: Option<Holder> =
                    number.map(|number| self.rows().holder(ns, id, number)).transpose()?.flatten();
                // A list keeps a memory that has lost a key, so that an export loses no text.
                self.holders(ns, id, &vitals)?;
                let memory = self.memory(ns, id, *vitals, spoken.as_ref(), with_vector)?;
                Ok(Got::Memory(Box::new(memory)))
            }
            (_, Some(Named::Gone(tombstone))) => Ok(Got::Tombstone(tombstone)),
            _ => Err(self.not_found(name)),
        }
    }

    /// The id of the memory with an id or a key, of which nothing else is read; none if only a tombstone is left.
    ///
    /// # Errors
    /// Those of [`Reader::get`].
    pub(crate) fn id_of(&self, name: &str) -> Result<Option<MemoryId>> {
        match self.resolve(name)? {
            Some(Named::Row(id, ..)) => Ok(Some(id)),
            Some(Named::Gone(_)) => Ok(None),
            None => Err(self.not_found(name)),
        }
    }

    /// What a memory by id or key carries beside its text, in any state.
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`.
    pub(crate) fn payload(&self, name: &str) -> Result<Option<Payload>> {
        match (self.ns, self.resolve(name)?) {
            (Some(ns), Some(Named::Row(id, vitals, _))) if vitals.place.payload => {
                self.rows().payload(ns, id)
            }
            (_, Some(_)) => Ok(None),
            (_, None) => Err(self.not_found(name)),
        }
    }

    /// The text of a memory; none if there is no such row.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn text(&self, id: MemoryId) -> Result<Option<String>> {
        self.ns.map_or(Ok(None), |ns| self.rows().text(ns, id))
    }

    /// All keys that a memory answers to, sorted; empty if there is no such memory.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn keys_of(&self, id: MemoryId) -> Result<Vec<String>> {
        self.ns.map_or(Ok(Vec::new()), |ns| Ok(keys_of(&self.rows().holders(ns, id)?)))
    }

    pub(super) fn not_found(&self, name: &str) -> Error {
        let name = if self.dropped {
            format!("{name} (the namespace {} was dropped)", self.namespace)
        } else {
            name.to_owned()
        };
        Error::NotFound { what: "memory", name }
    }

    /// Resolves a name: first as an id, then as a key.
    pub(super) fn resolve(&self, name: &str) -> Result<Option<Named>> {
        let Some(ns) = self.ns else { return Ok(None) };
        if let Ok(id) = name.parse::<MemoryId>()
            && let Some(named) = self.by_id(ns, id)?
        {
            return Ok(Some(named));
        }
        if crate::model::check_key(name).is_err() {
            return Ok(None);
        }
        if let Some(Answering { id, vitals, number }) = answering_to_key(self.rows(), ns, name, self.now)? {
            if let Some(tombstone) = self.forgotten_successor(ns, id, &vitals, number)? {
                return Ok(Some(Named::Gone(tombstone)));
            }
            return Ok(Some(Named::Row(id, Box::new(vitals), Some(number))));
        }
        let hashes = self.secret.names_of_key(name);
        let has_key = |found: &Tombstone| hashes.iter().any(|hash| found.key_hashes.contains(hash));
        Ok(self.latest_tombstone(ns, &hashes, has_key)?.map(Named::Gone))
    }

    /// The tombstone of the memory that took the place of a row, if that memory was forgotten. The key of the holder with this
    /// number had led there without having written the text, and the old text must not come back under that key.
    fn forgotten_successor(
        &self,
        ns: NsId,
        id: MemoryId,
        vitals: &Vitals,
        number: u32,
    ) -> Result<Option<Tombstone>> {
        let superseded = vitals.times.superseded.filter(|_| vitals.times.removed_at.is_none());
        let is_over = !self.sees(id, vitals)? && !vitals.times.is_or_will_be_true(self.now);
        let led = superseded.filter(|s| s.mode != SupersedeMode::Aggregate && is_over);
        let Some(by) = led.map(|superseded| superseded.by) else { return Ok(None) };
        if self.rows().vitals(ns, by)?.is_some() {
            return Ok(None);
        }
        let Some(stone) = self.rows().tombstone(ns, by)?.filter(Tombstone::leaves_nothing) else {
            return Ok(None);
        };
        let holder = sound(self.rows().holder(ns, id, number))?.flatten();
        Ok(Some(stone).filter(|_| !holder.is_some_and(|holder| holder.wrote_next())))
    }

    pub(super) fn by_id(&self, ns: NsId, id: MemoryId) -> Result<Option<Named>> {
        if let Some(vitals) = self.rows().vitals(ns, id)? {
            return Ok(Some(Named::Row(id, Box::new(vitals), None)));
        }
        Ok(self.rows().tombstone(ns, id)?.map(Named::Gone))
    }

    /// The latest of the tombstones with an HMAC.
    pub(super) fn latest_tombstone(
        &self,
        ns: NsId,
        hashes: &[[u8; 32]],
        fits: impl Fn(&Tombstone) -> bool,
    ) -> Result<Option<Tombstone>> {
        let mut latest: Option<Tombstone> = None;
        for hash in hashes {
            for id in self.rows().tombstones_of_hash(ns, hash)? {
                let Some(found) = sound(self.rows().tombstone(ns, id))?.flatten().filter(&fits) else {
                    continue;
                };
                let later = |other: &Tombstone| (other.deleted_at, other.id) < (found.deleted_at, found.id);
                if latest.as_ref().is_none_or(later) {
                    latest = Some(found);
                }
            }
        }
        Ok(latest)
    }
}
