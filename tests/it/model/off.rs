//! What keys have said in the place of a row that comes back, and what they have announced, for the reference.

use crate::model::reference::{Model, Row, To};
use oubliette::memory::SupersedeMode;
use oubliette::{MemoryId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A row that ends at an instant ahead, what follows then, and what is to follow instead, with the instant.
struct ToEnd {
    row: MemoryId,
    next: MemoryId,
    end: Time,
    onward: Option<(MemoryId, Time)>,
}

impl Row {
    /// What takes the place of a row at an instant ahead, and the instant.
    pub(super) fn replaced_ahead(&self, now: Time) -> Option<(MemoryId, Time)> {
        let (by, _) = self.superseded.filter(|(_, mode)| *mode == SupersedeMode::Replaced)?;
        let lives = self.expires.is_none_or(|end| end > now);
        self.valid_to.filter(|end| *end > now && lives).map(|end| (by, end))
    }

    fn stands(&self, now: Time) -> bool {
        !self.over(now) || self.current(now) || self.replaced_ahead(now).is_some()
    }

    fn from(&self) -> Time {
        self.valid_from.unwrap_or(Time::MIN)
    }
}

impl Model {
    /// What keys have said in the place of a row that comes back is not replaced at an instant ahead any more, and replaces
    /// nothing then. Gives the rows that only they have written, and what is to be replaced instead.
    pub(super) fn call_off(
        &mut self,
        id: MemoryId,
        chain: &mut Vec<MemoryId>,
        now: Time,
    ) -> (Vec<MemoryId>, Vec<(MemoryId, MemoryId, Time)>) {
        let spoken = self.spoken(id, chain, now);
        let mut onward = Vec::new();
        for ToEnd { row, next, onward: then, .. } in self.to_end(id, &spoken, now) {
            self.restore(row, now, To::Write).unwrap();
            self.unbegin(next);
            onward.extend(then.map(|(next, end)| (row, next, end)));
        }
        let mut own = Vec::new();
        for (row, is_own) in spoken {
            let is_over =
                |row: &Row| row.superseded.is_some() && (is_own || row.until() <= self.rows[&id].from());
            if self.rows.get(&row).is_some_and(is_over) {
                chain.retain(|other| *other != row);
                continue;
            }
            chain.push(row);
            own.extend(is_own.then_some(row));
        }
        (own, onward)
    }

    fn spoken(&self, id: MemoryId, chain: &[MemoryId], now: Time) -> BTreeMap<MemoryId, bool> {
        let leads = |row: MemoryId, at: usize| !self.leads_ahead(row, at, now);
        let keys_of = |row: MemoryId| -> BTreeSet<String> {
            let holders = self.rows[&row].holders.iter().enumerate();
            holders.filter(|(at, _)| leads(row, *at)).filter_map(|(_, hold)| hold.key.clone()).collect()
        };
        let (mut spoken, mut keys, mut next) = (BTreeMap::new(), BTreeSet::new(), keys_of(id));
        let mut is_led = false;
        while !next.is_empty() {
            for key in std::mem::take(&mut next) {
                let rows: Vec<MemoryId> = self
                    .rows
                    .iter()
                    .filter(|(row, told)| **row != id && told.keys().contains(&key) && told.stands(now))
                    .map(|(row, _)| *row)
                    .filter(|row| !self.goes_to(*row, id, now))
                    .collect();
                if is_led || rows.iter().any(|row| chain.contains(row)) {
                    rows.into_iter().for_each(|row| {
                        spoken.entry(row).or_insert(false);
                    });
                    keys.insert(key);
                }
            }
            is_led = true;
            for (row, is_own) in spoken.iter_mut().filter(|(_, is_own)| !**is_own) {
                let told = &self.rows[row];
                let is_its = |key: &Option<String>| key.as_ref().is_some_and(|key| keys.contains(key));
                *is_own = told.holders.iter().all(|hold| hold.follows || is_its(&hold.key));
                if *is_own && told.superseded.is_some() {
                    next.extend(keys_of(*row).difference(&keys).cloned());
                }
            }
        }
        spoken
    }

    /// What has corrected or merged a row, and so stands for it.
    fn stands_for(&self, id: MemoryId) -> Vec<MemoryId> {
        let mut way = vec![id];
        while let Some((by, mode)) = self.rows.get(&way[way.len() - 1]).and_then(|row| row.superseded) {
            if mode == SupersedeMode::Replaced {
                break;
            }
            way.push(by);
        }
        way
    }

    fn goes_to(&self, row: MemoryId, to: MemoryId, now: Time) -> bool {
        let mut at = row;
        while let Some((next, _)) = self.rows.get(&at).and_then(|row| row.replaced_ahead(now)) {
            let way = self.stands_for(next);
            if way.contains(&to) {
                return true;
            }
            at = way[way.len() - 1];
        }
        false
    }

    fn to_end(&self, id: MemoryId, spoken: &BTreeMap<MemoryId, bool>, now: Time) -> Vec<ToEnd> {
        let begins = self.rows[&id].from();
        let is_own = |row: &MemoryId| spoken.get(row) == Some(&true);
        let own: Vec<MemoryId> = spoken.keys().filter(|row| is_own(row)).copied().collect();
        let step = |row: &MemoryId| {
            let (next, end) = self.rows.get(row)?.replaced_ahead(now)?;
            Some(ToEnd { row: *row, next, end, onward: None })
        };
        let comes = |step: &ToEnd| *self.stands_for(step.next).last().unwrap();
        // A text of others is left by the keys.
        let leaves = |step: &ToEnd| {
            let comes = comes(step);
            spoken.get(&comes) == Some(&false)
                && self.rows.get(&comes).is_some_and(|row| row.until() > begins)
        };
        let steps: BTreeMap<MemoryId, ToEnd> = own
            .iter()
            .filter_map(|row| Some((*row, step(row)?)))
            .filter(|(_, step)| step.end >= begins || leaves(step))
            .collect();
        let after = |row: &MemoryId| {
            let (mut after, mut next) = (Vec::new(), steps.get(row).map(|step| (comes(step), step.end)));
            while let Some((at, end)) = next {
                after.push((at, end));
                next = step(&at).map(|step| (comes(&step), step.end));
            }
            after
        };
        let mut to_end: Vec<ToEnd> =
            own.iter().filter(|row| steps.contains_key(row)).filter_map(step).collect();
        for row in &own {
            let (from, after) = (self.rows[row].from(), after(row));
            let stays = from <= now || from < begins;
            let led = self.rows.iter().filter(|(before, told)| {
                let by = told.superseded.filter(|(_, mode)| *mode == SupersedeMode::Replaced);
                let way = by.map(|(by, _)| self.stands_for(by)).unwrap_or_default();
                let reaches = way.iter().position(|at| at == row);
                let first = way.iter().position(|at| *at == id);
                **before != id
                    && !is_own(before)
                    && reaches.is_some_and(|reaches| first.is_none_or(|first| reaches < first))
            });
            for mut step in led.filter_map(|(before, _)| step(before)) {
                let is_over =
                    self.rows[&step.row].from() >= step.end && self.says_other(step.row, spoken, now);
                let keys = self.rows[&step.row].keys();
                let says = |(next, _): &&(MemoryId, Time)| !wrote(&self.rows[next]).is_disjoint(&keys);
                let onward = after.iter().find(says);
                step.onward = onward.map(|(next, end)| (*next, if is_over { step.end } else { *end }));
                to_end.extend(((!is_over && !stays) || onward.is_some()).then_some(step));
            }
        }
        to_end.sort_by_key(|step| std::cmp::Reverse((step.end, self.rows[&step.row].from())));
        to_end
    }

    fn says_other(&self, id: MemoryId, spoken: &BTreeMap<MemoryId, bool>, now: Time) -> bool {
        let keys = wrote(&self.rows[&id]);
        self.rows.iter().any(|(row, told)| {
            *row != id
                && spoken.get(row) != Some(&true)
                && (!told.over(now) || told.current(now))
                && !wrote(told).is_disjoint(&keys)
                && !self.goes_to(*row, id, now)
        })
    }

    /// Lets what was to follow a text that is called off take the place of rows of others that were to end for that text.
    pub(super) fn replace_onward(&mut self, onward: Vec<(MemoryId, MemoryId, Time)>, now: Time) {
        for (old, new, end) in onward {
            let stands = self.rows.get(&new).is_some_and(|row| row.until() >= end);
            if stands && self.rows.get(&old).is_some_and(|row| row.current(now)) {
                self.replace((old, new), SupersedeMode::Replaced, Some(None), [now, end]);
            }
        }
    }
}

/// The keys that have written a row.
fn wrote(row: &Row) -> BTreeSet<String> {
    row.holders.iter().filter(|hold| !hold.follows).filter_map(|hold| hold.key.clone()).collect()
}
