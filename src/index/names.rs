//! The memory that answers to a key, and the memories from which a writer came there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::model::{Holder, MemoryId, Time, Vitals};
use crate::store::{NsId, Rows, Table, keys};

/// A memory that answers to a key.
#[derive(Clone, Debug)]
pub(crate) struct Answering {
    /// The memory.
    pub(crate) id: MemoryId,
    /// Its hot part.
    pub(crate) vitals: Vitals,
    /// The number of the holder with the key.
    pub(crate) number: u32,
}

/// The current row that holds `key`, or else the row that held it last.
///
/// # Errors
/// `Corrupted` if no readable current row holds the key, but an unreadable one does.
pub(crate) fn holder_of_key(rows: &impl Rows, ns: NsId, key: &str, now: Time) -> Result<Option<Answering>> {
    holder_among(rows, ns, key, now, |_, _, _| Ok(true))
}

/// The row that answers to `key` among the rows that a live read sees. Two of them can hold the key, if one is to take
/// the place of the other at an instant ahead.
///
/// # Errors
/// As [`holder_of_key`].
pub(crate) fn visible_holder_of_key(
    rows: &impl Rows,
    ns: NsId,
    key: &str,
    now: Time,
) -> Result<Option<Answering>> {
    holder_among(rows, ns, key, now, |id, _, vitals| {
        // Where a key came from another row, another holder has written this one.
        let may_be_ahead = vitals.place.holders > 1;
        Ok(vitals.times.visible_live(now) && !(may_be_ahead && leads_ahead(rows, ns, (key, id), now)?))
    })
}

/// Whether a key leads to a row from an instant ahead on only, until which another row is true of it, whatever that says. The row may
/// have begun long before, and may have come in the place of others to which the key was to lead.
pub(crate) fn leads_ahead(
    rows: &impl Rows,
    ns: NsId,
    (key, id): (&str, MemoryId),
    now: Time,
) -> Result<bool> {
    let (mut at, mut seen) = (id, BTreeSet::new());
    // Damaged rows could lead in a circle, so no row is visited twice.
    while seen.insert(at) {
        let mut came = None;
        for (_, number) in
            rows.id_and_number(Table::HolderKey, &keys::holder_key_row(ns, key, at), usize::MAX)?
        {
            let holder = sound(rows.holder(ns, at, number))?.flatten();
            came = holder.and_then(|holder| Some((holder.from?, holder.follows)));
            if came.is_none_or(|(_, follows)| !follows) {
                break;
            }
        }
        let Some((before, follows)) = came else { return Ok(false) };
        let times = sound(rows.vitals(ns, before))?.flatten().map(|vitals| vitals.times);
        let ends_ahead = times.is_some_and(|times| times.replaced_ahead(now).is_some());
        if !follows {
            // Here the key has said something itself, and says the same there as long as it is there.
            let there = keys::holder_key_row(ns, key, before);
            return Ok(ends_ahead && !rows.id_and_number(Table::HolderKey, &there, 1)?.is_empty());
        }
        if ends_ahead {
            return Ok(true);
        }
        at = before;
    }
    Ok(false)
}

/// The row that answers to `key` now: the row that a live read sees, or else the row that it will see first, or else as
/// [`holder_of_key`]. They differ while a memory is to be replaced at an instant ahead. Until then its key answers with the old text.
///
/// # Errors
/// As [`holder_of_key`].
pub(crate) fn answering_to_key(
    rows: &impl Rows,
    ns: NsId,
    key: &str,
    now: Time,
) -> Result<Option<Answering>> {
    if let Some(found) = visible_holder_of_key(rows, ns, key, now)? {
        return Ok(Some(found));
    }
    let mut first: Option<((bool, Time, MemoryId), Answering)> = None;
    rows.latest_holders_of_key(ns, key, &mut |id, number| {
        let ahead =
            sound(rows.vitals(ns, id))?.flatten().filter(|vitals| vitals.times.is_or_will_be_true(now));
        if let Some(vitals) = ahead {
            let may_lead = vitals.place.holders > 1;
            let leads = may_lead && leads_ahead(rows, ns, (key, id), now)?;
            let rank = (leads, vitals.times.from(), id);
            if first.as_ref().is_none_or(|(other, _)| rank < *other) {
                first = Some((rank, Answering { id, vitals, number }));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    first.map_or_else(|| holder_of_key(rows, ns, key, now), |(_, first)| Ok(Some(first)))
}

/// The row that answers to `key` among those that are `wanted`.
///
/// # Errors
/// As [`holder_of_key`]; those of `wanted`.
pub(crate) fn holder_among(
    rows: &impl Rows,
    ns: NsId,
    key: &str,
    now: Time,
    wanted: impl Fn(MemoryId, u32, &Vitals) -> Result<bool>,
) -> Result<Option<Answering>> {
    let (mut best, mut damaged): (Option<Answering>, _) = (None, None);
    // At most one row is current, and of many versions it is nearly always the latest. So the versions before it are
    // not read.
    rows.latest_holders_of_key(ns, key, &mut |id, number| {
        let read = rows.vitals(ns, id).and_then(|vitals| match vitals {
            Some(vitals) => Ok(wanted(id, number, &vitals)?.then_some(vitals)),
            None => Ok(None),
        });
        let vitals = match read {
            Ok(Some(vitals)) => vitals,
            Ok(None) => return Ok(ControlFlow::Continue(())),
            Err(why) if why.is_damage() => {
                damaged = Some(why);
                return Ok(ControlFlow::Continue(()));
            }
            Err(other) => return Err(other),
        };
        let found = Answering { id, vitals, number };
        let is_current = found.vitals.times.is_current(now);
        if best.as_ref().is_none_or(|other| other.rank(now) < found.rank(now)) {
            best = Some(found);
        }
        Ok(if is_current { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    match (best, damaged) {
        // A current row answers, whatever happened to others. Without a current row, the damaged row may be the one
        // that is meant.
        (Some(best), _) if best.vitals.times.is_current(now) => Ok(Some(best)),
        (_, Some(why)) => Err(why),
        (best, None) => Ok(best),
    }
}

/// A row from which a writer came, before that row was united with another one.
pub(crate) struct Former {
    /// The row.
    pub(crate) id: MemoryId,
    /// Its hot part.
    pub(crate) vitals: Vitals,
    /// The writer, as that row has it.
    pub(crate) holder: Holder,
}

/// Where writers came from. Writers of one row often came from the same rows, which are read once.
pub(crate) struct Lineage<'r, R> {
    rows: &'r R,
    ns: NsId,
    /// Rows that were read, with their writers; none for a row that is gone or damaged.
    known: BTreeMap<MemoryId, Option<(Vitals, Vec<Holder>)>>,
}

impl<'r, R: Rows> Lineage<'r, R> {
    /// Where writers of a namespace came from.
    pub(crate) fn new(rows: &'r R, ns: NsId) -> Self {
        Lineage { rows, ns, known: BTreeMap::new() }
    }

    /// The rows from which a writer came with a text of its own, the nearest first, as far as they are still there and can be read.
    /// In the last of them the text was written. It has the changes that the writer has made since in the other rows.
    ///
    /// A key that a supersession led here has written nothing that is said here, so it came from nowhere.
    pub(crate) fn of(&mut self, holder: &Holder) -> Result<Vec<Former>> {
        let (mut all, mut copy) = (Vec::new(), holder.clone());
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while let Some(id) = copy.from.filter(|id| seen.insert(*id)) {
            let Some((vitals, holders)) = self.row(id)? else { break };
            if copy.follows && vitals.times.merged_into().is_none() {
                break;
            }
            let Some(holder) = holders.iter().find(|one| copy.is_copy_of(one)) else { break };
            all.push(Former { id, vitals: vitals.clone(), holder: holder.clone() });
            copy = holder.clone();
        }
        Ok(all)
    }

    fn row(&mut self, id: MemoryId) -> Result<Option<&(Vitals, Vec<Holder>)>> {
        if !self.known.contains_key(&id) {
            let vitals = sound(self.rows.vitals(self.ns, id))?.flatten();
            let holders = sound(self.rows.holders(self.ns, id))?;
            self.known.insert(id, vitals.zip(holders));
        }
        Ok(self.known.get(&id).and_then(Option::as_ref))
    }
}

impl Answering {
    /// The higher rank answers. What took the place of another at an instant that was ahead has had the key since that instant.
    fn rank(&self, now: Time) -> (bool, Time, Time, MemoryId) {
        let times = &self.vitals.times;
        let ended = times.removed_at.max(times.superseded.map(|superseded| superseded.at));
        let began = if times.from() <= now { times.from().max(times.recorded_at) } else { times.recorded_at };
        let last = ended.unwrap_or(began);
        (times.is_current(now), last, times.recorded_at, self.id)
    }
}
