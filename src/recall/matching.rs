//! Filters on rows: the hot part first, the others only when it does not decide.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::{Access, Content, Filter, MemoryId, Needs, Partition, RowView, Vitals, VitalsView};
use crate::recall::Reader;
use crate::recall::assemble::{Joined, keys_of};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{NsId, PartId, Rows};

/// Rows with a tag that a direct look-up takes at most; a more common tag is no short cut.
const TAGGED_ROWS_MAX: i64 = 4_096;

/// Evaluates one filter on many rows.
pub(super) struct Matcher<'r> {
    reader: &'r Reader<'r>,
    ns: NsId,
    filter: &'r Filter,
    needs: Needs,
    partitions: BTreeMap<u32, Partition>,
}

impl<'r> Matcher<'r> {
    pub(super) fn new(reader: &'r Reader<'r>, ns: NsId, filter: &'r Filter) -> Self {
        Matcher { reader, ns, filter, needs: filter.needs(), partitions: BTreeMap::new() }
    }

    /// Where the rows are read.
    pub(super) fn reader(&self) -> &'r Reader<'r> {
        self.reader
    }

    /// Whether a row matches.
    pub(super) fn matches(&mut self, id: MemoryId, vitals: &Vitals) -> Result<bool> {
        let number = vitals.place.partition;
        if !self.partitions.contains_key(&number) {
            self.partitions.insert(number, self.reader.partition(self.ns, PartId(number))?);
        }
        let shared = Partition::Shared;
        let partition = self.partitions.get(&number).unwrap_or(&shared);
        if let Some(decided) = self.filter.on_vitals(&VitalsView { id, partition, vitals }) {
            return Ok(decided);
        }
        let (reader, ns, needs) = (self.reader, self.ns, self.needs);
        let content = if needs.content { reader.content(ns, id)? } else { Content::default() };
        let access = if needs.access { reader.rows().access(ns, id)? } else { Access::default() };
        let keys = if needs.keys { keys_of(&reader.rows().holders(ns, id)?) } else { Vec::new() };
        let Joined { categories, entities, sources, .. } =
            if needs.links { reader.joined(ns, id)? } else { Joined::default() };
        Ok(self.filter.matches(&RowView {
            id,
            partition,
            vitals,
            content: &content,
            access: &access,
            keys: &keys,
            categories: &categories,
            entities: &entities,
            sources: &sources,
        }))
    }
}

impl Reader<'_> {
    /// The only rows that can match a filter, ascending, where it names ids, keys or a rare tag; none when the
    /// filter has to be tried on all.
    pub(super) fn short_list(&self, ns: NsId, filter: &Filter) -> Result<Option<Vec<MemoryId>>> {
        let mut rows = if let Some(ids) = filter.required_ids() {
            ids
        } else if let Some(keys) = filter.required_keys() {
            let mut rows = Vec::new();
            for key in keys {
                rows.extend(self.rows().holders_of_key(ns, key)?.into_iter().map(|(id, _)| id));
            }
            rows
        } else if let Some(tag) = filter.required_tag()
            && self.rows().counter(ns, TOTAL, CounterSort::Tag as u8, tag)?.rows <= TAGGED_ROWS_MAX
        {
            self.rows().holders_of_tag(ns, tag)?.into_iter().map(|(id, _)| id).collect()
        } else {
            return Ok(None);
        };
        rows.sort_unstable();
        rows.dedup();
        Ok(Some(rows))
    }
}
