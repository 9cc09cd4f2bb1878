//! Listings: pages of memories by creation, pages of tombstones by id.

use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::model::hex::hex;
use crate::model::{Filter, Memory, MemoryId, Page, PageRequest, Scope, State, Tombstone, Vitals};
use crate::recall::matching::{Matcher, ShortList, Wanted};
use crate::recall::{Part, Reader};
use crate::store::keys::{self, Key};
use crate::store::{NsId, PartId, Read, Rows, Table, Walk, last_id};

/// An empty last page.
pub(super) fn nothing<T>() -> Page<T> {
    Page { items: Vec::new(), next: None, damaged: Vec::new() }
}

impl Reader<'_> {
    /// The memories of a scope in one state, in the order of creation, those of equal instants by id. With
    /// [`Scope::Any`] the partitions follow each other in the order of their first write. `live` lists the
    /// memories that a live read sees. Damaged rows are named beside the others.
    ///
    /// # Errors
    /// `Invalid` for a request out of bounds, for a cursor of another listing, and for the state `tombstoned`, whose
    /// content no longer exists; `Corrupted`.
    pub(crate) fn list(&self, request: &PageRequest) -> Result<Page<Memory>> {
        request.check()?;
        let Some((ns, Listed { rows, mut damaged, next })) = self.listed_rows(request)? else {
            return Ok(nothing());
        };
        let mut items = Vec::with_capacity(rows.len());
        for (place, id, vitals) in rows {
            match sound(self.memory(ns, id, vitals, None, false))? {
                Some(memory) => items.push(memory),
                None => damaged.push((place, id)),
            }
        }
        damaged.sort_unstable();
        Ok(Page { items, next, damaged: damaged.into_iter().map(|(_, id)| id).collect() })
    }

    /// The memories of a scope that match, in the order of a listing: in every state, or only those that a live read
    /// sees. A damaged row is among them if the filter can still be decided. Otherwise it is among the undecided rows.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn matching(
        &self,
        filter: &Filter,
        scope: &Scope,
        visible_only: bool,
    ) -> Result<(Vec<MemoryId>, Vec<MemoryId>)> {
        let (scope, filter) = (scope.clone(), Some(filter.clone()));
        let (any_state, limit) = (!visible_only, usize::MAX);
        let request = PageRequest { scope, filter, any_state, limit, ..PageRequest::default() };
        let Some((_, Listed { rows, damaged, .. })) = self.listed_rows(&request)? else {
            return Ok(Default::default());
        };
        let found = rows.into_iter().map(|(_, id, _)| id).collect();
        Ok((found, damaged.into_iter().map(|(_, id)| id).collect()))
    }

    /// The rows of a page, with the parts that were read to find them.
    fn listed_rows(&self, request: &PageRequest) -> Result<Option<(NsId, Listed)>> {
        if !request.any_state && request.state == State::Tombstoned {
            let why = "must be live, superseded, expired or limbo";
            return Err(Error::invalid("state", why, request.state.as_str()));
        }
        let Some(ns) = self.ns else { return Ok(None) };
        let prefix = match self.part(ns, &request.scope)? {
            Part::Nowhere => return Ok(None),
            Part::One(part) => keys::ns_part(ns, part),
            Part::Every => keys::ns(ns),
        };
        let after =
            request.cursor.as_deref().map(|cursor| position(cursor, &prefix, PLACE_BYTES)).transpose()?;
        let wanted = match request.state {
            State::Limbo => Wanted::All,
            _ if request.any_state => Wanted::All,
            _ => Wanted::Standing,
        };
        let filter = request.filter.as_ref();
        let list = filter.map(|filter| self.short_list(ns, filter, wanted)).transpose()?.flatten();
        let matcher = filter.map(|filter| Matcher::with(self, ns, filter, list.as_ref()));
        let mut listing =
            Listing { reader: self, ns, request, matcher, rows: Vec::new(), damaged: Vec::new() };
        match list.as_ref().map(|list| self.places(ns, list, request.limit, &prefix)).transpose()?.flatten() {
            Some(places) => {
                let after = after.as_deref().unwrap_or_default();
                for (place, id) in places.iter().filter(|(place, _)| **place > *after) {
                    if listing.offer(place, *id)?.is_break() {
                        break;
                    }
                }
            }
            None => {
                let walk = Walk::prefix(&prefix);
                let walk = after.iter().fold(walk, |walk, after| walk.after(after));
                self.rows().walk(Table::ByTime, &walk, &mut |key, _| {
                    listing.offer(key, last_id(Table::ByTime, key)?)
                })?;
            }
        }
        let Listing { mut rows, mut damaged, .. } = listing;
        let more = rows.len() > request.limit;
        rows.truncate(request.limit);
        let last = rows.last().filter(|_| more).map(|(place, ..)| place);
        // The next page names what is damaged behind this page.
        damaged.retain(|(place, _)| last.is_none_or(|last| place <= last));
        let next = last.map(|place| hex(place));
        Ok(Some((ns, Listed { rows, damaged, next })))
    }

    /// The places in the listing of the rows of a list, in order. None if a page is full before as many rows of the
    /// listing have been read as the list has.
    fn places(
        &self,
        ns: NsId,
        list: &ShortList<'_>,
        limit: usize,
        prefix: &[u8],
    ) -> Result<Option<Vec<(Key, MemoryId)>>> {
        let rows = list.ids.len();
        if list.by_index && rows.saturating_mul(rows) > limit.saturating_mul(self.standing(ns)?) {
            return Ok(None);
        }
        let mut places = Vec::new();
        for &id in &list.ids {
            let Some(vitals) = sound(self.rows().vitals(ns, id))?.flatten() else { continue };
            let place = keys::by_time(ns, PartId(vitals.place.partition), vitals.created_at, id);
            if place.starts_with(prefix) {
                places.push((place, id));
            }
        }
        places.sort_unstable();
        Ok(Some(places))
    }

    /// The tombstones of removed memories, by id.
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000 or the cursor is of another listing; `Corrupted`.
    pub(crate) fn tombstones(&self, cursor: Option<&str>, limit: usize) -> Result<Page<Tombstone>> {
        PageRequest { limit, ..PageRequest::default() }.check()?;
        let Some(ns) = self.ns else { return Ok(nothing()) };
        let prefix = keys::ns(ns);
        let mut walk = Walk::prefix(&prefix);
        if let Some(cursor) = cursor {
            walk = walk.after(&position(cursor, &prefix, TOMBSTONE_BYTES)?);
        }
        let mut ids = Vec::new();
        self.rows().walk(Table::Tombstone, &walk, &mut |key, _| {
            ids.push(last_id(Table::Tombstone, key)?);
            Ok(if ids.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let more = ids.len() > limit;
        ids.truncate(limit);
        let next = ids.last().filter(|_| more).map(|id| hex(&keys::memory(ns, *id)));
        let (mut items, mut damaged) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match sound(self.rows().tombstone(ns, id))? {
                Some(tombstone) => items.extend(tombstone),
                None => damaged.push(id),
            }
        }
        Ok(Page { items, next, damaged })
    }
}

/// The rows of a page, the rows that could not be read, and the cursor of the next page.
struct Listed {
    rows: Vec<(Vec<u8>, MemoryId, Vitals)>,
    damaged: Vec<(Vec<u8>, MemoryId)>,
    next: Option<String>,
}

/// A page under construction. It reads one row more than requested, which tells whether there is a next page.
struct Listing<'r> {
    reader: &'r Reader<'r>,
    ns: NsId,
    request: &'r PageRequest,
    matcher: Option<Matcher<'r>>,
    rows: Vec<(Vec<u8>, MemoryId, Vitals)>,
    damaged: Vec<(Vec<u8>, MemoryId)>,
}

impl Listing<'_> {
    /// Takes a row if it is wanted. A row that can't be read is noted.
    fn offer(&mut self, place: &[u8], id: MemoryId) -> Result<ControlFlow<()>> {
        if self.matcher.as_ref().is_some_and(|matcher| !matcher.may_match(id)) {
            return Ok(ControlFlow::Continue(()));
        }
        match sound(self.matching(id))? {
            Some(Some(vitals)) => self.rows.push((place.to_vec(), id, vitals)),
            Some(None) => {}
            None => self.damaged.push((place.to_vec(), id)),
        }
        let full = self.rows.len() > self.request.limit;
        Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The vitals of a row in the requested state that matches the filter.
    fn matching(&mut self, id: MemoryId) -> Result<Option<Vitals>> {
        let vitals = self.reader.vitals(self.ns, id)?;
        let wanted = match self.request.state {
            _ if self.request.any_state => true,
            State::Live => self.reader.sees(&vitals),
            state => vitals.times.state(self.reader.now) == state,
        };
        let matches = match &mut self.matcher {
            Some(matcher) if wanted => matcher.matches(id, &vitals)?,
            _ => wanted,
        };
        Ok(Some(vitals).filter(|_| matches))
    }
}

/// Bytes of a key of `by_time`: namespace, partition, instant, id.
const PLACE_BYTES: usize = 4 + 4 + 8 + 16;
/// Bytes of a key of `tombstone`: namespace, id.
const TOMBSTONE_BYTES: usize = 4 + 16;

/// The key in a cursor, which is the key of the last row in hexadecimal.
pub(super) fn position(cursor: &str, prefix: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let bad = || Error::invalid("cursor", "must be the cursor of the page before", cursor);
    let digits = cursor.as_bytes();
    if digits.len() != 2 * bytes {
        return Err(bad());
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let pairs = digits.as_chunks::<2>().0.iter();
    let key: Option<Vec<u8>> =
        pairs.map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect();
    key.filter(|key| key.starts_with(prefix)).ok_or_else(bad)
}
