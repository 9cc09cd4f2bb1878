//! Past queries: rows, typed reads, typed writes.
//!
//! Each partition has a ring of them, in the order in which they were kept. The rows by which a query is found of a memory
//! follow from its row alone ([`QueryRow::keys`]), so `check` asks the same function.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::limits::{DIM_MAX, PROBE_CHARS_MAX, QUERY_HITS_MAX, TIME_MAX_MS, TIME_MIN_MS};
use crate::model::MemoryId;
use crate::store::control::QueryRow;
use crate::store::keys::{self, Key};
use crate::store::part::{NsId, PartId};
use crate::store::raw::Walk;
use crate::store::rows::Rows;
use crate::store::tables::Table;
use crate::store::truth::Truth;

/// A query of a namespace: the partition whose ring it is in, and its number there.
pub(crate) type QueryPlace = (PartId, u64);

impl QueryRow {
    /// The rows by which the query is found: one for each memory that it had found.
    pub(crate) fn keys(&self, ns: NsId, (part, number): QueryPlace) -> BTreeSet<Key> {
        self.hits.iter().map(|id| keys::query_of(ns, *id, part, number)).collect()
    }

    /// Whether the values are those of a query that is kept.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn check(&self, key: &[u8]) -> Result<()> {
        let ids: BTreeSet<&MemoryId> = self.hits.iter().collect();
        let what = if self.text.trim().is_empty() || self.text.chars().count() > PROBE_CHARS_MAX {
            "its words"
        } else if !(TIME_MIN_MS..=TIME_MAX_MS).contains(&self.at_ms) {
            "its instant"
        } else if self.vector.len() > DIM_MAX || self.vector.iter().any(|value| !value.is_finite()) {
            "its vector"
        } else if !(1..=QUERY_HITS_MAX).contains(&self.hits.len()) || ids.len() < self.hits.len() {
            "what it had found"
        } else {
            return Ok(());
        };
        Err(Error::corrupted(Table::Query.name(), key, format!("{what} can't be that of a kept query")))
    }
}

/// Typed reads of past queries.
pub(crate) trait QueryRows: Rows {
    fn query(&self, ns: NsId, (part, number): QueryPlace) -> Result<Option<QueryRow>> {
        let key = keys::query(ns, part, number);
        let row: Option<QueryRow> = self.meta(Table::Query, &key)?;
        row.iter().try_for_each(|row| row.check(&key))?;
        Ok(row)
    }

    /// The queries of a namespace, ring after ring, each in the order in which they were kept.
    fn query_places(&self, ns: NsId) -> Result<Vec<QueryPlace>> {
        self.places_of_queries(&Walk::prefix(&keys::ns(ns)), usize::MAX)
    }

    /// The number of the last query that a partition has kept; 0 where there is none.
    fn last_query(&self, ns: NsId, part: PartId) -> Result<u64> {
        let last = self.places_of_queries(&Walk::prefix(&keys::ns_part(ns, part)).reversed(), 1)?;
        Ok(last.first().map_or(0, |(_, number)| *number))
    }

    /// The queries of a ring with a number below `until`.
    fn queries_before(&self, ns: NsId, part: PartId, until: u64) -> Result<Vec<QueryPlace>> {
        let walk = Walk::prefix(&keys::ns_part(ns, part)).before(&keys::query(ns, part, until));
        self.places_of_queries(&walk, usize::MAX)
    }

    fn places_of_queries(&self, walk: &Walk, most: usize) -> Result<Vec<QueryPlace>> {
        self.each_key(Table::Query, walk, most, |key| {
            keys::Query::read(Table::Query, key).map(|row| (row.part, row.number))
        })
    }

    /// The queries that had found a memory.
    fn queries_of(&self, ns: NsId, id: MemoryId) -> Result<Vec<QueryPlace>> {
        self.each_key(Table::QueryOf, &Walk::prefix(&keys::memory(ns, id)), usize::MAX, |key| {
            keys::QueryOf::read(Table::QueryOf, key).map(|row| (row.part, row.number))
        })
    }
}

impl<R: Rows> QueryRows for R {}

impl Truth<'_, '_> {
    /// Puts a query into the ring of a partition, where its place is free.
    pub(crate) fn put_query(&mut self, ns: NsId, place: QueryPlace, row: &QueryRow) -> Result<()> {
        self.put_meta(Table::Query, &keys::query(ns, place.0, place.1), row)?;
        row.keys(ns, place).iter().try_for_each(|key| self.put(Table::QueryOf, key, &[]))
    }

    /// Takes a query away.
    pub(crate) fn delete_query(&mut self, ns: NsId, place: QueryPlace, row: &QueryRow) -> Result<()> {
        self.delete(Table::Query, &keys::query(ns, place.0, place.1))?;
        row.keys(ns, place).iter().try_for_each(|key| self.delete(Table::QueryOf, key))
    }
}
