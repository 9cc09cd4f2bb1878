//! Filters on rows: the hot part first, the other parts only if the hot part does not decide.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::index::{Former, Lineage, Published};
use crate::model::{
    Access, Content, Filter, Holder, MemoryId, MetaTest, MetaValue, MetaWanted, Needs, Partition, RowView,
    Time, Vitals, VitalsView,
};
use crate::recall::assemble::{Joined, keys_of};
use crate::recall::{Reader, Source};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{NsId, PartId, Rows, Table, Walk, keys, last_id_and_number};

/// The largest number of rows with a tag for which a direct look-up is used. A more common tag is no short
/// cut.
const TAGGED_ROWS_MAX: i64 = 4_096;
/// The largest number of rows with a beginning of a key for which the same is done.
const KEYED_ROWS_MAX: usize = 4_096;
/// The largest number of rows that are read from a declared index, or half of all rows if that is more.
const INDEXED_ROWS_MAX: usize = 4_096;

/// The only rows that can match a filter.
pub(super) struct ShortList<'f> {
    /// The ids, ascending, each once.
    pub(super) ids: Vec<MemoryId>,
    /// The part of the filter that is still to be tried on these rows; none if they all match.
    pub(super) rest: Option<Cow<'f, Filter>>,
    /// Whether a declared index named the rows, so that there may be many.
    pub(super) by_index: bool,
}

/// Which rows a short list must contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All rows except those in limbo, which are in no declared index.
    Standing,
    /// All rows, including those in limbo.
    All,
}

/// Evaluates one filter on many rows.
pub(super) struct Matcher<'r, S = Published> {
    reader: &'r Reader<'r, S>,
    ns: NsId,
    /// The rows to be tried; none means any row.
    list: Option<&'r ShortList<'r>>,
    /// The filter; none if every row of the list matches.
    filter: Option<&'r Filter>,
    needs: Needs,
    partitions: BTreeMap<u32, Partition>,
    /// Rows that are too damaged to decide.
    damaged: BTreeSet<MemoryId>,
}

impl<'r, S: Source> Matcher<'r, S> {
    pub(super) fn new(reader: &'r Reader<'r, S>, ns: NsId, filter: &'r Filter) -> Self {
        Matcher::with(reader, ns, Some(filter), None)
    }

    /// A matcher that knows which rows alone can match, if something names them. Without a filter every row matches that
    /// the reader sees.
    pub(super) fn with(
        reader: &'r Reader<'r, S>,
        ns: NsId,
        filter: Option<&'r Filter>,
        list: Option<&'r ShortList<'r>>,
    ) -> Self {
        let filter = match list {
            Some(list) => list.rest.as_deref(),
            None => filter,
        };
        let needs = filter.map(Filter::needs).unwrap_or_default();
        Matcher { reader, ns, list, filter, needs, partitions: BTreeMap::new(), damaged: BTreeSet::new() }
    }

    /// The reader that reads the rows.
    pub(super) fn reader(&self) -> &'r Reader<'r, S> {
        self.reader
    }

    /// The only rows that can match, if they are known.
    pub(super) fn list(&self) -> Option<&'r ShortList<'r>> {
        self.list
    }

    /// Whether a memory can match, as far as is known without reading it.
    pub(super) fn may_match(&self, id: MemoryId) -> bool {
        self.list.is_none_or(|list| list.ids.binary_search(&id).is_ok())
    }

    /// Whether a memory matches, of which nothing is known yet. A reader of the past must see it as well, which no index
    /// tells.
    pub(super) fn admits(&mut self, id: MemoryId) -> Result<bool> {
        if !self.may_match(id) {
            return Ok(false);
        }
        let is_past = self.reader.past.is_some();
        if self.filter.is_none() && !is_past {
            return Ok(true);
        }
        match sound(self.reader.vitals(self.ns, id))? {
            Some(vitals) if is_past && !self.reader.sees(id, &vitals)? => Ok(false),
            Some(vitals) => self.lets_pass(id, &vitals),
            None => Ok(self.leave_out(id)),
        }
    }

    /// Whether a row matches and the filter could be decided on it.
    pub(super) fn lets_pass(&mut self, id: MemoryId, vitals: &Vitals) -> Result<bool> {
        match sound(self.matches(id, vitals))? {
            Some(matches) => Ok(matches),
            None => Ok(self.leave_out(id)),
        }
    }

    /// The vitals of a row that a list names; none where the row is gone. One that is too damaged to decide is noted.
    pub(super) fn vitals(&mut self, id: MemoryId) -> Result<Option<Vitals>> {
        let found = sound(self.reader.rows().vitals(self.ns, id))?;
        if found.is_none() {
            self.leave_out(id);
        }
        Ok(found.flatten())
    }

    /// Notes a row that is too damaged to decide.
    pub(super) fn leave_out(&mut self, id: MemoryId) -> bool {
        self.damaged.insert(id);
        false
    }

    /// The number of rows that were too damaged to decide.
    pub(super) fn damaged(&self) -> u64 {
        self.damaged.len() as u64
    }

    /// Whether a row matches. If there is a list, the row is one of the list.
    ///
    /// # Errors
    /// `Corrupted` if a part that the filter needs is damaged.
    pub(super) fn matches(&mut self, id: MemoryId, vitals: &Vitals) -> Result<bool> {
        let Some(filter) = self.filter else { return Ok(true) };
        self.judge(filter, [id, id], vitals, None)
    }

    /// The writers of a row that matches who match by what they bring themselves: key, tags, categories and entities, and
    /// everything else where they come from a row of their own. None if
    /// the row is matched as a whole, because each of them does, or none of them alone.
    ///
    /// # Errors
    /// As [`Matcher::matches`].
    pub(super) fn writers(&mut self, id: MemoryId, vitals: &Vitals) -> Result<Option<Vec<u32>>> {
        let Some(filter) = self.filter.filter(|_| vitals.place.holders > 1) else { return Ok(None) };
        let holders = self.reader.holders(self.ns, id, vitals)?;
        let (mut all, mut is_whole) = (Vec::new(), true);
        let mut lineage = Lineage::new(self.reader.rows(), self.ns);
        for holder in &holders {
            // What the writer brought is judged by the row in which it was written, while that row is there.
            let matches = match lineage.of(holder)?.pop() {
                Some(Former { id: from, vitals: mut own, .. }) => {
                    // Which memory that is, and what became of it, the row itself says.
                    (own.times.superseded, own.times.removed_at) =
                        (vitals.times.superseded, vitals.times.removed_at);
                    self.judge(filter, [id, from], &own, Some(holder))?
                }
                None => self.judge(filter, [id, id], vitals, Some(holder))?,
            };
            // What a supersession has moved here has written nothing here.
            is_whole &= matches || holder.follows;
            if matches {
                all.push(holder.number);
            }
        }
        Ok(Some(all).filter(|all| !all.is_empty() && !is_whole))
    }

    /// Whether a row matches, or would with this writer alone. Of two ids the first names the memory, and the second says where
    /// its parts are.
    fn judge(
        &mut self,
        filter: &Filter,
        [named, id]: [MemoryId; 2],
        vitals: &Vitals,
        alone: Option<&Holder>,
    ) -> Result<bool> {
        let number = vitals.place.partition;
        if !self.partitions.contains_key(&number) {
            self.partitions.insert(number, self.reader.partition(self.ns, PartId(number))?);
        }
        let shared = Partition::Shared;
        let partition = self.partitions.get(&number).unwrap_or(&shared);
        // The other parts cost a look-up each, so they are read only if the vitals leave the filter open.
        if let Some(decided) = filter.on_vitals(&VitalsView { id: named, partition, vitals }) {
            return Ok(decided);
        }
        let (reader, ns, needs) = (self.reader, self.ns, self.needs);
        let mut content = if needs.content { reader.content(ns, id)? } else { Content::default() };
        let access = if needs.access { reader.rows().access(ns, id)? } else { Access::default() };
        let holders = if needs.keys || needs.links { reader.holders(ns, id, vitals)? } else { Vec::new() };
        let mut keys = keys_of(&holders);
        let Joined { mut categories, mut entities, sources, .. } =
            if needs.links { reader.joined_of(ns, id, vitals, &holders)? } else { Joined::default() };
        if let Some(holder) = alone {
            keys = holder.key.iter().cloned().collect();
            content.tags.clone_from(&holder.tags);
            (categories, entities) = (holder.categories.clone(), holder.entities.clone());
        }
        Ok(filter.matches(&RowView {
            id: named,
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

impl<S: Source> Reader<'_, S> {
    /// The only rows that can match a filter, if the filter names ids, keys or how they begin, a rare tag, or values of
    /// metadata with an index. None if the filter must be tried on all rows.
    pub(super) fn short_list<'f>(
        &self,
        ns: NsId,
        filter: &'f Filter,
        wanted: Wanted,
    ) -> Result<Option<ShortList<'f>>> {
        let mut ids = if let Some(ids) = filter.required_ids() {
            ids
        } else if let Some(keys) = filter.required_keys() {
            let mut rows = Vec::new();
            for key in keys {
                rows.extend(self.rows().holders_of_key(ns, key)?.into_iter().map(|(id, _)| id));
            }
            rows
        } else if let Some(begins) = filter.required_key_prefix()
            && let Some(rows) = self.ids_of_keys(ns, begins)?
        {
            rows
        } else if let Some(tag) = filter.required_tag()
            && self.rows().counter(ns, TOTAL, CounterSort::Tag as u8, tag)?.rows <= TAGGED_ROWS_MAX
        {
            self.rows().holders_of_tag(ns, tag)?.into_iter().map(|(id, _)| id).collect()
        } else {
            let list = self.indexed(ns, filter)?;
            return if wanted == Wanted::All { self.with_limbo(ns, filter, list) } else { Ok(list) };
        };
        ids.sort_unstable();
        ids.dedup();
        // One test of the filter gave the list, so the whole filter is still tried on its rows.
        Ok(Some(ShortList { ids, rest: Some(Cow::Borrowed(filter)), by_index: false }))
    }

    /// Adds the rows in limbo, on which the whole filter is tried; none if there are too many.
    fn with_limbo<'f>(
        &self,
        ns: NsId,
        filter: &'f Filter,
        list: Option<ShortList<'f>>,
    ) -> Result<Option<ShortList<'f>>> {
        let Some(mut list) = list else { return Ok(None) };
        let limbo = self.rows().limbo_before(ns, Time::MAX, INDEXED_ROWS_MAX + 1)?;
        if limbo.len() > INDEXED_ROWS_MAX {
            return Ok(None);
        }
        if !limbo.is_empty() {
            list.ids.extend(limbo.into_iter().map(|(_, id)| id));
            list.ids.sort_unstable();
            list.ids.dedup();
            list.rest = Some(Cow::Borrowed(filter));
        }
        Ok(Some(list))
    }

    /// The number of rows of a namespace that are not in limbo.
    pub(super) fn standing(&self, ns: NsId) -> Result<usize> {
        let count =
            |sort: CounterSort| self.rows().counter(ns, TOTAL, sort as u8, "").map(|found| found.rows);
        let rows = count(CounterSort::Vectors)? + count(CounterSort::Pending)?;
        Ok(usize::try_from(rows).unwrap_or_default())
    }

    /// The rows that a declared index names. If the filter asks for several indexes, the one with the fewest
    /// rows.
    fn indexed<'f>(&self, ns: NsId, filter: &'f Filter) -> Result<Option<ShortList<'f>>> {
        let mut tests = filter.required_metadata();
        if tests.is_empty() {
            return Ok(None);
        }
        let declared = self.rows().indexed_paths(ns)?;
        tests.retain(|test| declared.iter().any(|path| **path == *test.path));
        if tests.is_empty() {
            return Ok(None);
        }
        let mut most = INDEXED_ROWS_MAX.max(self.standing(ns)? / 2);
        let mut best = None;
        for test in tests {
            let Some((ids, many)) = self.ids_of(ns, &test, most)? else { continue };
            most = ids.len();
            best = Some((ids, test, many));
        }
        Ok(best.map(|(ids, test, many)| {
            let rest = match test.exact && !many {
                true => Some(filter.given(&test)).filter(|rest| !rest.holds_always()).map(Cow::Owned),
                false => Some(Cow::Borrowed(filter)),
            };
            ShortList { ids, rest, by_index: true }
        }))
    }

    /// The rows that an index names for a comparison, ascending, and whether rows with too many values to tell are
    /// among them. None if there are more than `most`.
    fn ids_of(&self, ns: NsId, test: &MetaTest<'_>, most: usize) -> Result<Option<(Vec<MemoryId>, bool)>> {
        let mut ids = Vec::new();
        self.rows().ids_by_meta(&keys::meta_value(ns, &test.path, &MetaValue::Many), most + 1, &mut ids)?;
        let many = !ids.is_empty();
        let begins = match &test.wanted {
            MetaWanted::OneOf(values) => {
                values.iter().map(|value| keys::meta_value(ns, &test.path, value)).collect()
            }
            MetaWanted::Prefix(bytes) => vec![keys::meta_text(ns, &test.path, bytes)],
        };
        for begins in begins {
            if ids.len() > most {
                return Ok(None);
            }
            let left = most + 1 - ids.len();
            self.rows().ids_by_meta(&begins, left, &mut ids)?;
        }
        if ids.len() > most {
            return Ok(None);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some((ids, many)))
    }

    /// The rows with a key that begins so, in every state. None if there are too many for a short cut.
    fn ids_of_keys(&self, ns: NsId, begins: &str) -> Result<Option<Vec<MemoryId>>> {
        let walk = Walk::prefix(&keys::holder_keys_of(ns, begins));
        let id = |key: &[u8]| Ok(last_id_and_number(Table::HolderKey, key)?.0);
        let ids = self.rows().each_key(Table::HolderKey, &walk, KEYED_ROWS_MAX + 1, id)?;
        Ok(Some(ids).filter(|ids| ids.len() <= KEYED_ROWS_MAX))
    }
}
