//! What a file of an older format lacks: rows of tables that came since and follow from rows that it has.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::limits::ANALYZER;
use crate::model::{Kind, series_place, thread_place};
use crate::record::{self, At};
use crate::store::keys::{NsId, PartId};
use crate::store::rows::{Rows, last_id};
use crate::store::tables::Table;
use crate::store::text::TextId;
use crate::store::tx::{Read, Walk, WriteTx};

/// A row, none where it is damaged: `check` tells of it, and the file can be opened all the same.
fn sound<T>(row: Result<T>) -> Result<Option<T>> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(Error::Corrupted { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

impl WriteTx<'_> {
    /// The index of series, which format 3 brought.
    pub(super) fn index_series(&mut self) -> Result<()> {
        for (_, row) in self.namespaces()? {
            let ns = NsId(row.number);
            let mut snapshots = Vec::new();
            self.walk(Table::Vitals, &Walk::prefix(&super::keys::ns(ns)), &mut |key, bytes| {
                let vitals = sound(record::decode_vitals(At::new(Table::Vitals.name(), key), bytes))?;
                if let Some(vitals) = vitals.filter(|vitals| vitals.kind_code == Kind::Snapshot.code()) {
                    snapshots.push((last_id(Table::Vitals, key)?, vitals));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            for (id, vitals) in snapshots {
                let Some(content) = sound(self.content(ns, id))?.flatten() else { continue };
                if let Some((series, at)) = series_place(&vitals, &content) {
                    self.put_series(ns, PartId(vitals.place.partition), series, at, id)?;
                }
            }
        }
        Ok(())
    }

    /// The documents of full-text indexes, which format 4 brought. Their postings follow when the pass `index` runs, or a
    /// writer meets the bound of a tail.
    pub(super) fn index_texts(&mut self) -> Result<()> {
        for (_, row) in self.namespaces()? {
            let ns = NsId(row.number);
            let mut rows = Vec::new();
            self.walk(Table::Vitals, &Walk::prefix(&super::keys::ns(ns)), &mut |key, bytes| {
                let vitals = sound(record::decode_vitals(At::new(Table::Vitals.name(), key), bytes))?;
                if let Some(vitals) = vitals.filter(|vitals| vitals.times.removed_at.is_none()) {
                    rows.push((last_id(Table::Vitals, key)?, vitals));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            let mut bytes = Vec::new();
            for (id, mut vitals) in rows {
                let text = TextId { ns, part: PartId(vitals.place.partition) };
                let content = sound(self.content(ns, id))?.flatten();
                let thread = content.as_ref().and_then(|content| thread_place(&vitals, content));
                vitals.place.doc = Some(self.claim_doc(text, id, &vitals, thread, ANALYZER)?);
                let key = super::keys::memory(ns, id);
                record::encode_vitals(&vitals, &key, &mut bytes);
                self.put(Table::Vitals, &key, &bytes)?;
            }
        }
        Ok(())
    }
}
