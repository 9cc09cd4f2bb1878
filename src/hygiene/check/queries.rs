//! Past queries, and the rows by which they are found of a memory.

use crate::error::Result;
use crate::hygiene::check::state::{Check, seen};
use crate::hygiene::report::Code;
use crate::limits::QUERY_LOG_MAX;
use crate::store::keys;
use crate::store::{QueryRow, QueryRows, SpaceId, Table, meta_of};

impl Check<'_> {
    pub(super) fn query(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let keys::Query { ns, part, number } = keys::Query::read(Table::Query, key)?;
        let ring = self.ring_at.filter(|(of, at, _)| (*of, *at) == (ns, part));
        let (_, _, first) = *self.ring_at.insert(ring.unwrap_or((ns, part, number)));
        if number - first >= QUERY_LOG_MAX {
            let what = format!("more than {QUERY_LOG_MAX} queries of a partition, the first {first}");
            self.find(Code::ValueShape, Table::Query, key, what);
        }
        let row: QueryRow = meta_of(Table::Query, key, value)?;
        row.check(key)?;
        for place in row.keys(ns, (part, number)) {
            if self.lacks(Table::QueryOf, &place)? {
                let what = format!("query {number} of partition {} is not found here", part.0);
                self.find(Code::IndexMissing, Table::QueryOf, &place, what);
            }
        }
        let mut names_one = false;
        for id in &row.hits {
            match self.vitals_of(ns, *id)? {
                Some(Some(vitals)) => names_one |= vitals.place.partition == part.0,
                Some(None) => {
                    let what = format!("it had found memory {id}, which is not there");
                    self.find(Code::RowMissing, Table::Query, key, what);
                }
                // Of which partition a damaged memory is can't be said.
                None => names_one = true,
            }
        }
        if !names_one {
            self.find(Code::ValueShape, Table::Query, key, "it had found no memory of its partition");
        }
        self.stored_vector(Table::Query, key, SpaceId(row.space), row.vector);
        Ok(())
    }

    /// A row by which a query is found must be one that the query asks for.
    pub(super) fn query_index(&mut self, key: &[u8]) -> Result<()> {
        let keys::QueryOf { ns, id, part, number } = keys::QueryOf::read(Table::QueryOf, key)?;
        // One that is damaged is a finding of its own table.
        let Some(row) = seen(self.snapshot.query(ns, (part, number)))? else { return Ok(()) };
        if !row.is_some_and(|row| row.hits.contains(&id)) {
            let what = format!("query {number} of partition {} had not found it", part.0);
            self.find(Code::IndexExtra, Table::QueryOf, key, what);
        }
        Ok(())
    }
}
