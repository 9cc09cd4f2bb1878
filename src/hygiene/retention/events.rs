//! Messages: first what they said, later their events.
//!
//! An event that has a text and one that has none stand in two halves of their order of time, so neither walk meets what the
//! other has left.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::hygiene::pass::Slice;
use crate::hygiene::retention::aged::{Aged, RetentionReport, Site, Visit};
use crate::model::{RunId, Time};
use crate::policy::Policy;
use crate::store::control::{CounterSort, RunState, TOTAL};
use crate::store::{EventPlace, EventRow, Id, MessageRows, NsId, Rows, Snapshot};

/// Which messages lose what they said.
pub(super) struct Texts {
    site: Site,
    /// Messages of before this instant do.
    old: Time,
}

impl Texts {
    pub(super) fn of(policy: &Policy, site: Site) -> Self {
        Texts { site, old: site.now.minus(policy.events.payload_ttl).min(site.undoable) }
    }
}

impl Aged for Texts {
    type Place = EventPlace;

    const JOURNALED: Option<&'static str> = Some("payloads");

    fn due(&self, rows: &Snapshot, after: Option<EventPlace>, visit: Visit<'_, EventPlace>) -> Result<u64> {
        let (mut imports, mut damaged) = (Imports::of(rows, self.site), 0);
        rows.events_in(self.site.ns, EventPlace::TEXT, after, &mut |place| {
            if place.at >= self.old {
                return Ok(ControlFlow::Break(()));
            }
            let row = sound(rows.event(self.site.ns, &place.id))?;
            damaged += u64::from(row.is_none());
            match row.flatten() {
                Some(row) if !imports.is_undoable(&row)? => Ok(visit(place)),
                _ => Ok(ControlFlow::Continue(())),
            }
        })?;
        Ok(damaged)
    }

    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[EventPlace]) -> Result<u64> {
        slice.ledger.redact_events(self.site.ns, &page.iter().map(|place| place.id).collect::<Vec<_>>())
    }

    fn counted(report: &mut RetentionReport) -> &mut u64 {
        &mut report.payloads
    }
}

/// Which events go.
pub(super) struct Messages {
    site: Site,
    /// Those before this place in the order of time.
    before: EventPlace,
    /// Damaged events with a text of before this instant are counted where texts go.
    counted: Time,
}

impl Messages {
    pub(super) fn of(rows: &Snapshot, policy: &Policy, site: Site) -> Result<Self> {
        let counted = Texts::of(policy, site).old;
        let mut before = EventPlace::starting(site.now.minus(policy.events.metadata_ttl));
        if let Some(kept) = first_kept(rows, site.ns, policy.events.max_rows)?
            && before.is_before(kept)
        {
            before = kept;
        }
        let undoable = EventPlace::starting(site.undoable);
        Ok(Messages { site, before: if undoable.is_before(before) { undoable } else { before }, counted })
    }

    /// Whether an event goes: it does not while its import can be undone, nor while a family goes on that it began. None
    /// if the event is damaged.
    fn goes<R: MessageRows>(&self, imports: &mut Imports<'_, R>, place: EventPlace) -> Result<Option<bool>> {
        let (ns, rows) = (self.site.ns, imports.rows);
        let Some(row) = sound(rows.event(ns, &place.id))? else { return Ok(None) };
        let Some(row) = row else { return Ok(Some(false)) };
        let family = sound(rows.family(ns, &place.id))?.flatten();
        let goes_on = family.is_some_and(|family| family.latest() >= self.before.at && family.count > 1);
        Ok(Some(!goes_on && !imports.is_undoable(&row)?))
    }
}

impl Aged for Messages {
    type Place = EventPlace;

    const JOURNALED: Option<&'static str> = Some("events");

    fn due(&self, rows: &Snapshot, after: Option<EventPlace>, visit: Visit<'_, EventPlace>) -> Result<u64> {
        let (mut imports, mut is_full, mut damaged) = (Imports::of(rows, self.site), false, 0);
        let first = after.map_or(EventPlace::TEXT, EventPlace::half);
        for half in EventPlace::HALVES.into_iter().skip_while(|half| *half != first) {
            rows.events_in(self.site.ns, half, after, &mut |place| {
                if is_full || !place.is_before(self.before) {
                    return Ok(ControlFlow::Break(()));
                }
                match self.goes(&mut imports, place)? {
                    Some(true) => is_full = visit(place).is_break(),
                    Some(false) => {}
                    None => damaged += u64::from(half != EventPlace::TEXT || place.at >= self.counted),
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(damaged)
    }

    /// A message may have come to the family of another one since the page was read.
    fn end(&self, slice: &mut Slice<'_, '_, '_>, page: &[EventPlace]) -> Result<u64> {
        let mut over = Vec::with_capacity(page.len());
        let mut imports = Imports::of(&*slice.ledger.tx, self.site);
        for place in page {
            if self.goes(&mut imports, *place)?.unwrap_or_default() {
                over.push(place.id);
            }
        }
        slice.ledger.end_events(self.site.ns, &over)
    }

    fn counted(report: &mut RetentionReport) -> &mut u64 {
        &mut report.events
    }
}

/// The place of the first event that is among the latest `most` of a namespace; none where there are no more, or no bound.
fn first_kept(rows: &Snapshot, ns: NsId, most: u64) -> Result<Option<EventPlace>> {
    let there = rows.counter(ns, TOTAL, CounterSort::Events as u8, "")?.rows;
    let beyond = u64::try_from(there).unwrap_or_default().saturating_sub(most);
    if most == 0 || beyond == 0 {
        return Ok(None);
    }
    let (beyond, mut oldest) = (usize::try_from(beyond).unwrap_or(usize::MAX), Vec::new());
    for half in EventPlace::HALVES {
        let mut left = beyond.saturating_add(1);
        rows.events_in(ns, half, None, &mut |place| {
            oldest.push(place);
            left -= 1;
            Ok(if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
    }
    oldest.sort_unstable_by_key(|place| (place.at, place.id));
    Ok(oldest.get(beyond).copied())
}

/// The imports of some messages. Those that came together mostly stand together, so the answer about the last one is kept.
struct Imports<'r, R> {
    rows: &'r R,
    site: Site,
    last: Option<(Id, bool)>,
}

impl<'r, R: MessageRows> Imports<'r, R> {
    fn of(rows: &'r R, site: Site) -> Self {
        Imports { rows, site, last: None }
    }

    /// Whether the import that brought a message can be taken back as it came, or is being taken back.
    fn is_undoable(&mut self, row: &EventRow) -> Result<bool> {
        let Some(id) = row.run else { return Ok(false) };
        if let Some((last, answer)) = self.last
            && last == id
        {
            return Ok(answer);
        }
        let run = sound(self.rows.run(self.site.ns, RunId::from_bytes(id)))?.flatten();
        let answer = run.is_some_and(|run| {
            run.state == RunState::Undoing || Time::from_millis(run.started_ms) >= self.site.undoable
        });
        self.last = Some((id, answer));
        Ok(answer)
    }
}
