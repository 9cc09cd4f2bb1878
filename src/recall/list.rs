//! Listings: pages of memories by creation, pages of tombstones by id.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use crate::error::{Error, Result, sound};
use crate::model::hex::hex;
use crate::model::{Filter, Memory, MemoryId, Page, PageRequest, Scope, State, Time, Tombstone, Vitals};
use crate::recall::matching::{Matcher, ShortList, Wanted};
use crate::recall::{Part, Reader, SHARED, Source};
use crate::store::keys::{self, Key};
use crate::store::{NsId, PagePlace, PartId, Read, Rows, Table, Walk, last_id, walk_page};

/// An empty last page.
pub(super) fn nothing<T>() -> Page<T> {
    Page::new(Vec::new(), None, Vec::new())
}

impl<S: Source> Reader<'_, S> {
    /// The memories of a scope in one state, in the order of creation, those of equal instants by id. With
    /// [`Scope::Any`] the partitions follow each other in the order of their first write. With the newest first this
    /// order is turned around, and the partitions are merged into one order. `live` lists the memories that a live
    /// read sees. Damaged rows are named beside the others.
    ///
    /// # Errors
    /// `Invalid` for a request out of bounds, for a cursor of another listing, and for the state `tombstoned`, whose
    /// content no longer exists; `BeforePurgeHorizon`; `Corrupted`.
    pub(crate) fn list(&self, request: &PageRequest) -> Result<Page<Memory>> {
        self.list_given(request, <[Memory]>::len)
    }

    /// As [`Reader::list`], for a caller who can give on only the first memories of a page: as many as `given` says, at least one of several.
    /// The next page goes on behind these.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn list_given(
        &self,
        request: &PageRequest,
        given: impl Fn(&[Memory]) -> usize,
    ) -> Result<Page<Memory>> {
        request.check()?;
        let reader = self.at(&request.at)?;
        let horizon = reader.horizon();
        let Some((ns, Listed { rows, mut damaged, mut next })) = reader.listed_rows(request)? else {
            return Ok(Page { horizon, ..nothing() });
        };
        let (mut items, mut places) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for (place, id, vitals) in rows {
            match sound(reader.memory(ns, id, vitals, None, false))? {
                Some(memory) => {
                    items.push(memory);
                    places.push(place);
                }
                None => damaged.push((place, id)),
            }
        }
        let count = given(&items).max(1);
        if let Some(last) = places.get(count - 1).filter(|_| count < items.len()) {
            items.truncate(count);
            damaged.retain(|(place, _)| order(request, place, last).is_le());
            next = Some(cursor_behind(request, last));
        }
        damaged.sort_unstable_by(|(a, _), (b, _)| order(request, a, b));
        let damaged = damaged.into_iter().map(|(_, id)| id).collect();
        Ok(Page { items, next, damaged, horizon })
    }

    /// The memories of a scope that match, in the order of a listing: in every state, or only those that a live read
    /// sees. Beside each stand its writers that match, if others of it do not ([`Matcher::writers`]). A damaged row is among them
    /// if the filter can still be decided. Otherwise it is among the undecided rows.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn matching(
        &self,
        filter: &Filter,
        scope: &Scope,
        visible_only: bool,
    ) -> Result<(Vec<Matching>, Vec<MemoryId>)> {
        let (scope, asked) = (scope.clone(), Some(filter.clone()));
        let (any_state, limit) = (!visible_only, usize::MAX);
        let request = PageRequest { scope, filter: asked, any_state, limit, ..PageRequest::default() };
        let Some((ns, Listed { rows, damaged, .. })) = self.listed_rows(&request)? else {
            return Ok(Default::default());
        };
        let mut matcher = Matcher::new(self, ns, filter);
        let mut found = Vec::with_capacity(rows.len());
        let mut undecided: Vec<MemoryId> = damaged.into_iter().map(|(_, id)| id).collect();
        for (_, id, vitals) in rows {
            match sound(matcher.writers(id, &vitals))? {
                Some(writers) => found.push((id, writers)),
                // Of damaged writers nobody knows what they bring.
                None => undecided.push(id),
            }
        }
        Ok((found, undecided))
    }

    /// Those of these memories that match still, in the same way. What was found was found in an earlier state.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(crate) fn matching_still(
        &self,
        found: &[Matching],
        filter: &Filter,
        visible_only: bool,
    ) -> Result<(Vec<Matching>, Vec<MemoryId>)> {
        let (mut still, mut undecided) = (Vec::new(), Vec::new());
        let Some(ns) = self.ns else { return Ok((still, undecided)) };
        let mut matcher = Matcher::new(self, ns, filter);
        let mut ask = |id: MemoryId| -> Result<Option<Matching>> {
            let Some(vitals) = self.rows().vitals(ns, id)? else { return Ok(None) };
            let is_wanted = !visible_only || self.sees(id, &vitals)?;
            let matches = is_wanted && matcher.matches(id, &vitals)?;
            Ok(if matches { Some((id, matcher.writers(id, &vitals)?)) } else { None })
        };
        for (id, _) in found {
            match sound(ask(*id))? {
                Some(matching) => still.extend(matching),
                None => undecided.push(*id),
            }
        }
        Ok((still, undecided))
    }

    /// The rows of a page, with the parts that were read to find them.
    fn listed_rows(&self, request: &PageRequest) -> Result<Option<(NsId, Listed)>> {
        if !request.any_state && request.state == State::Tombstoned {
            let why = "must be live, superseded, expired or limbo";
            return Err(Error::invalid("state", why, request.state.as_str()));
        }
        let Some(ns) = self.ns else { return Ok(None) };
        let part = self.part(ns, &request.scope)?;
        let prefix = match part {
            Part::Nowhere => return Ok(None),
            Part::One(part) => keys::ns_part(ns, part),
            Part::Every => keys::ns(ns),
        };
        let after = request.cursor.as_deref().map(|cursor| after(cursor, request, &prefix)).transpose()?;
        let wanted = match request.state {
            State::Limbo => Wanted::All,
            _ if request.any_state || self.past.is_some() => Wanted::All,
            _ => Wanted::Standing,
        };
        let filter = request.filter.as_ref();
        let list = filter.map(|filter| self.short_list(ns, filter, wanted)).transpose()?.flatten();
        let matcher = filter.map(|filter| Matcher::with(self, ns, Some(filter), list.as_ref()));
        let (rows, damaged) = (Vec::new(), Vec::new());
        let mut listing =
            Listing { reader: self, ns, part, request, after: after.as_deref(), matcher, rows, damaged };
        match list.as_ref().map(|list| self.places(ns, list, request, part)).transpose()?.flatten() {
            Some(places) => {
                let is_behind =
                    |place: &[u8]| after.as_ref().is_none_or(|at| order(request, place, at).is_gt());
                for (place, id) in places.iter().filter(|(place, _)| is_behind(place)) {
                    if listing.offer(place, *id)?.is_break() {
                        break;
                    }
                }
            }
            None if request.newest_first => self.walk_newest(ns, part, after.as_deref(), &mut listing)?,
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
        // The next page names what is damaged behind this page. What a key that is out of order names was met before the last
        // row or stands before it: the next page may begin behind both.
        damaged.retain(|damaged| {
            let is_behind = |last| order(request, &damaged.place, last).is_gt();
            damaged.rows_before < request.limit || !last.is_some_and(|last| is_behind(last))
        });
        let damaged = damaged.into_iter().map(|Damaged { place, id, .. }| (place, id)).collect();
        let next = last.map(|place| cursor_behind(request, place));
        Ok(Some((ns, Listed { rows, damaged, next })))
    }

    /// Offers the rows of a scope, the latest created first, until the page is full. Partitions are merged: of each some
    /// rows that are left are known, and the latest of these comes next.
    fn walk_newest(
        &self,
        ns: NsId,
        part: Part,
        after: Option<&[u8]>,
        listing: &mut Listing<'_, S>,
    ) -> Result<()> {
        let parts = match part {
            Part::Nowhere => Vec::new(),
            Part::One(part) => vec![part],
            Part::Every => {
                let agents = self.rows().partitions(ns)?.into_iter().map(|(_, part)| part);
                agents.chain([SHARED]).collect()
            }
        };
        let after = after.map(moment);
        let ahead = (listing.request.limit / parts.len().max(1)).clamp(AHEAD_MIN, AHEAD_MAX);
        let mut streams: Vec<_> = parts.into_iter().map(|part| Latest::of(ns, part, after, ahead)).collect();
        // The heap holds one row of each partition, however many rows the partitions have.
        let mut heads = BinaryHeap::new();
        for (nth, stream) in streams.iter_mut().enumerate() {
            heads.extend(stream.next(self)?.map(|(at, place)| (at, nth, place)));
        }
        while let Some((_, nth, place)) = heads.pop() {
            if listing.offer(&place, last_id(Table::ByTime, &place)?)?.is_break() {
                break;
            }
            let Some(stream) = streams.get_mut(nth) else { continue };
            heads.extend(stream.next(self)?.map(|(at, place)| (at, nth, place)));
        }
        Ok(())
    }

    /// The places in the listing of the rows of a list, in order. None if a page is full before as many rows of the
    /// listing have been read as the list has.
    fn places(
        &self,
        ns: NsId,
        list: &ShortList<'_>,
        request: &PageRequest,
        part: Part,
    ) -> Result<Option<Vec<(Key, MemoryId)>>> {
        let rows = list.ids.len();
        if list.by_index && rows.saturating_mul(rows) > request.limit.saturating_mul(self.standing(ns)?) {
            return Ok(None);
        }
        let mut places = Vec::new();
        for &id in &list.ids {
            let (of, at) = match (sound(self.rows().vitals(ns, id))?, part) {
                (Some(None), _) => continue,
                (Some(Some(vitals)), _) => (PartId(vitals.place.partition), vitals.created_at),
                // Where one that is damaged stands nobody knows: it is named once, as the oldest of the scope.
                (None, Part::One(part)) => (part, Time::MIN),
                (None, _) => (SHARED, Time::MIN),
            };
            if part.holds(of.0) {
                places.push((keys::by_time(ns, of, at, id), id));
            }
        }
        places.sort_unstable_by(|(a, _), (b, _)| order(request, a, b));
        Ok(Some(places))
    }

    /// The tombstones of removed memories, by id.
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000 or the cursor is of another listing; `Corrupted`.
    pub(crate) fn tombstones(&self, cursor: Option<&str>, limit: usize) -> Result<Page<Tombstone>> {
        self.page_of_ids(Table::Tombstone, cursor, limit, |ns, id, _| {
            Ok(sound(self.rows().tombstone(ns, id))?.flatten())
        })
    }

    /// A page of a table whose keys are a namespace and an id. `read` gives one row, none where it is damaged, and may name
    /// more that is.
    pub(super) fn page_of_ids<T>(
        &self,
        table: Table,
        cursor: Option<&str>,
        limit: usize,
        read: impl Fn(NsId, MemoryId, &mut Vec<MemoryId>) -> Result<Option<T>>,
    ) -> Result<Page<T>> {
        PageRequest { limit, ..PageRequest::default() }.check()?;
        let Some(ns) = self.ns else { return Ok(nothing()) };
        let prefix = keys::ns(ns);
        let mut walk = Walk::prefix(&prefix);
        if let Some(cursor) = cursor {
            walk = walk.after(&position(cursor, &prefix, ID_BYTES)?);
        }
        let mut ids = self.rows().each_key(table, &walk, limit + 1, |key| last_id(table, key))?;
        let more = ids.len() > limit;
        ids.truncate(limit);
        let next = ids.last().filter(|_| more).map(|id| hex(&keys::memory(ns, *id)));
        let (mut items, mut damaged) = (Vec::with_capacity(ids.len()), Vec::new());
        for id in ids {
            match read(ns, id, &mut damaged)? {
                Some(item) => items.push(item),
                None => damaged.push(id),
            }
        }
        Ok(Page::new(items, next, damaged))
    }
}

/// A memory that matches a filter, and the numbers of its writers that do, if others of it do not.
type Matching = (MemoryId, Option<Vec<u32>>);

/// The cursor of a page that begins behind a place.
fn cursor_behind(request: &PageRequest, place: &[u8]) -> String {
    let mark = if request.newest_first { NEWEST } else { "" };
    format!("{mark}{}", hex(place))
}

/// The rows of a page, the rows that could not be read, and the cursor of the next page.
struct Listed {
    rows: Vec<(Vec<u8>, MemoryId, Vitals)>,
    damaged: Vec<(Vec<u8>, MemoryId)>,
    next: Option<String>,
}

/// The rows of a partition, the latest created first.
struct Latest {
    ns: NsId,
    walk: Walk,
    read: PagePlace,
    /// The number of rows that are read at once.
    ahead: usize,
    /// The keys that were read and not given out.
    keys: VecDeque<Vec<u8>>,
    /// The moment of the row that was given out last.
    before: Option<Vec<u8>>,
}

impl Latest {
    fn of(ns: NsId, part: PartId, before: Option<&[u8]>, ahead: usize) -> Self {
        let prefix = keys::ns_part(ns, part);
        let walk = Walk::prefix(&prefix).reversed();
        let walk = before.into_iter().fold(walk, |walk, at| walk.before(&[&*prefix, at].concat()));
        Latest { ns, walk, read: PagePlace::Start, ahead, keys: VecDeque::new(), before: None }
    }

    /// The moment and the key of the next row. Of a key that seems out of order the row itself says when it was made: the
    /// rows behind it would come too late or too early otherwise.
    fn next(&mut self, reader: &Reader<'_, impl Source>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        // The row behind the next one tells whether that is in order.
        if self.keys.len() < 2 {
            let (keys, mut left) = (&mut self.keys, self.ahead);
            walk_page(reader.rows(), Table::ByTime, &self.walk, &mut self.read, &mut |key, _| {
                keys.push_back(key.to_vec());
                left = left.saturating_sub(1);
                Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        }
        let Some(key) = self.keys.pop_front() else { return Ok(None) };
        let own = moment(&key);
        let behind = self.keys.front().map(|key| moment(key)).unwrap_or_default();
        let before = self.before.as_deref();
        let is_in_order = behind <= own && before.is_none_or(|before| own <= before);
        let at = match is_in_order {
            true => own.to_vec(),
            false => match sound(reader.vitals(self.ns, last_id(Table::ByTime, &key)?))? {
                Some(vitals) => {
                    let id = last_id(Table::ByTime, &key)?;
                    let part = PartId(vitals.place.partition);
                    moment(&keys::by_time(self.ns, part, vitals.created_at, id)).to_vec()
                }
                None => own.max(behind).min(before.unwrap_or(own.max(behind))).to_vec(),
            },
        };
        self.before = Some(at.clone());
        Ok(Some((at, key)))
    }
}

/// A row that can't be read, with the number of rows of the page that were met before it.
struct Damaged {
    place: Vec<u8>,
    id: MemoryId,
    rows_before: usize,
}

/// A page under construction. It reads one row more than requested, which tells whether there is a next page.
struct Listing<'r, S> {
    reader: &'r Reader<'r, S>,
    ns: NsId,
    part: Part,
    request: &'r PageRequest,
    /// Where the page before ended.
    after: Option<&'r [u8]>,
    matcher: Option<Matcher<'r, S>>,
    rows: Vec<(Vec<u8>, MemoryId, Vitals)>,
    damaged: Vec<Damaged>,
}

impl<S: Source> Listing<'_, S> {
    /// Takes a row if it is wanted. A row that can't be read is noted.
    fn offer(&mut self, place: &[u8], id: MemoryId) -> Result<ControlFlow<()>> {
        if self.matcher.as_ref().is_some_and(|matcher| !matcher.may_match(id)) {
            return Ok(ControlFlow::Continue(()));
        }
        match sound(self.matching(id))? {
            // A key may be damaged, so the row says itself where it stands: the next page begins there.
            Some(Some(vitals)) => {
                let part = PartId(vitals.place.partition);
                let place = keys::by_time(self.ns, part, vitals.created_at, id);
                // A walk that a damaged key leads astray meets rows of the pages before again.
                let is_behind = self.after.is_none_or(|after| order(self.request, &place, after).is_gt());
                if is_behind && self.part.holds(part.0) {
                    self.rows.push((place.to_vec(), id, vitals));
                }
            }
            Some(None) => {}
            None => self.damaged.push(Damaged { place: place.to_vec(), id, rows_before: self.rows.len() }),
        }
        let full = self.rows.len() > self.request.limit;
        Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The vitals of a row in the requested state that matches the filter.
    fn matching(&mut self, id: MemoryId) -> Result<Option<Vitals>> {
        let vitals = self.reader.vitals(self.ns, id)?;
        let wanted = match self.request.state {
            _ if self.request.any_state => true,
            State::Live => self.reader.sees(id, &vitals)?,
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
/// Where the instant and the id stand in such a key.
const MOMENT_AT: usize = 4 + 4;
/// The number of rows of each partition that a listing with the newest first reads at once.
const AHEAD_MIN: usize = 2;
const AHEAD_MAX: usize = 256;
/// What a cursor of a listing with the newest first begins with.
const NEWEST: &str = "newest-";
/// Bytes of a key of a namespace and an id.
const ID_BYTES: usize = 4 + 16;

/// The instant and the id in a place of a listing.
fn moment(place: &[u8]) -> &[u8] {
    place.get(MOMENT_AT..).unwrap_or_default()
}

/// The order of two places in a listing.
fn order(request: &PageRequest, a: &[u8], b: &[u8]) -> Ordering {
    if request.newest_first { moment(b).cmp(moment(a)) } else { a.cmp(b) }
}

/// The place in a cursor of a listing.
fn after(cursor: &str, request: &PageRequest, prefix: &[u8]) -> Result<Vec<u8>> {
    let digits = match request.newest_first {
        true => cursor.strip_prefix(NEWEST).unwrap_or_default(),
        false => cursor,
    };
    position(digits, prefix, PLACE_BYTES).map_err(|_| no_cursor(cursor))
}

fn no_cursor(cursor: &str) -> Error {
    Error::invalid("cursor", "must be the cursor of the page before", cursor)
}

/// The key in a cursor, which is the key of the last row in hexadecimal.
pub(super) fn position(cursor: &str, prefix: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let bad = || no_cursor(cursor);
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
