//! Past queries: they are kept, they go with what they had found, and they are cleared.
//!
//! A query changes no memory, so keeping one is not a `Change`, and has no row in the journal, which would tell of it.

use crate::error::{Error, Result, sound};
use crate::ledger::writer::{Ledger, truth};
use crate::model::MemoryId;
use crate::store::{NsId, PartId, QueryPlace, QueryRow, QueryRows, Rows, SpaceId, Table, Traces, keys};
use crate::vector::UnitVector;

impl Ledger<'_, '_> {
    /// Keeps a query in the ring of a partition, of whose queries the last `most`, at least one, stay.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn keep_query(&mut self, ns: NsId, part: PartId, row: &QueryRow, most: u32) -> Result<()> {
        let last = self.tx.last_query(ns, part)?;
        let number = last.checked_add(1).ok_or_else(|| {
            Error::corrupted(Table::Query.name(), &keys::query(ns, part, last), "no number comes behind it")
        })?;
        truth(self.tx).put_query(ns, (part, number), row)?;
        let first = number.saturating_sub(u64::from(most) - 1);
        for place in self.tx.queries_before(ns, part, first)? {
            self.drop_query(ns, place)?;
        }
        Ok(())
    }

    /// Lets the last `most` queries of each partition of a namespace stay, and says how many others there were.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn trim_queries(&mut self, ns: NsId, most: u32) -> Result<u64> {
        let doomed = queries_beyond(&*self.tx, ns, most)?;
        for place in &doomed {
            self.drop_query(ns, *place)?;
        }
        Ok(doomed.len() as u64)
    }

    /// A memory goes. The queries that had found it no longer name it, or go with it (`whole`), because a query tells of
    /// what it has found. So does a query that names no other memory of its partition.
    pub(super) fn leave_queries(&mut self, ns: NsId, id: MemoryId, whole: bool) -> Result<()> {
        for place in self.tx.queries_of(ns, id)? {
            let row = sound(self.tx.query(ns, place))?.flatten();
            self.drop_query(ns, place)?;
            if let Some(mut row) = row.filter(|_| !whole) {
                row.hits.retain(|hit| *hit != id);
                self.keep_rest(ns, place, &row)?;
            }
        }
        Ok(())
    }

    /// Takes away the queries of a namespace that make no sense, and from the others the memories that are not there.
    pub(super) fn mend_queries(&mut self, ns: NsId) -> Result<()> {
        for place in self.tx.query_places(ns)? {
            let Some(mut row) = sound(self.tx.query(ns, place))?.flatten() else {
                self.drop_query(ns, place)?;
                continue;
            };
            if !self.has_fit_vector(&row)? {
                self.drop_query(ns, place)?;
                continue;
            }
            let before = row.clone();
            let mut there = Vec::with_capacity(row.hits.len());
            for id in row.hits.drain(..) {
                if self.tx.has_row(ns, id)? {
                    there.push(id);
                }
            }
            row.hits = there;
            if row != before || !self.names_one_of(ns, place.0, &row)? {
                truth(self.tx).delete_query(ns, place, &before)?;
                self.keep_rest(ns, place, &row)?;
            }
        }
        Ok(())
    }

    /// Whether the vector of a query is one of its space, if it has any.
    fn has_fit_vector(&self, row: &QueryRow) -> Result<bool> {
        if row.vector.is_empty() {
            return Ok(true);
        }
        let dim = self.tx.space(SpaceId(row.space))?.map(|space| space.dim as usize);
        Ok(UnitVector::from_stored(row.vector.as_slice()).is_some_and(|vector| dim == Some(vector.dim())))
    }

    /// Puts back what is left of a query, if that names a memory of its partition.
    fn keep_rest(&mut self, ns: NsId, place: QueryPlace, row: &QueryRow) -> Result<()> {
        match self.names_one_of(ns, place.0, row)? {
            true => truth(self.tx).put_query(ns, place, row),
            false => Ok(()),
        }
    }

    fn names_one_of(&self, ns: NsId, part: PartId, row: &QueryRow) -> Result<bool> {
        for id in &row.hits {
            // It is unknown of which partition a damaged memory is.
            let vitals = sound(self.tx.vitals(ns, *id))?;
            if vitals.is_none_or(|row| row.is_some_and(|row| row.place.partition == part.0)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn drop_query(&mut self, ns: NsId, place: QueryPlace) -> Result<()> {
        if let Some(row) = sound(self.tx.query(ns, place))?.flatten() {
            return truth(self.tx).delete_query(ns, place, &row);
        }
        // What a damaged query had found is known only from the rows that lead to it.
        let (part, number) = place;
        let end = [part.0.to_be_bytes().as_slice(), &number.to_be_bytes()].concat();
        for key in self.tx.keys_ending(Table::QueryOf, ns, &end)? {
            truth(self.tx).delete(Table::QueryOf, &key)?;
        }
        truth(self.tx).delete(Table::Query, &keys::query(ns, part, number))
    }
}

/// The queries of a namespace that are not among the last `most` of their partitions.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn queries_beyond(rows: &impl QueryRows, ns: NsId, most: u32) -> Result<Vec<QueryPlace>> {
    let mut all = Vec::new();
    for ring in rows.query_places(ns)?.chunk_by(|a, b| a.0 == b.0) {
        let last = ring.last().map_or(0, |(_, number)| *number);
        // Numbers ascend in a ring.
        all.extend(ring.iter().filter(|(_, number)| last - number >= u64::from(most)));
    }
    Ok(all)
}
