//! What is to take the place of a row at an instant ahead, for the reference.

use crate::model::reference::{Edit, Hold, Model, Row, To, Told, Write};
use oubliette::memory::SupersedeMode;
use oubliette::{MemoryId, Time};
use std::collections::BTreeSet;

impl Row {
    /// Whether a row is true as a write says: from the instant that the write gives, or, if it gives none, since the row took the place
    /// of another.
    pub(super) fn is_true_as(&self, write: &Write, now: Time) -> bool {
        let says_none = |hold: &Hold| !hold.follows && hold.valid.0.is_none();
        let began =
            self.valid_from.is_some_and(|from| from <= now) && self.holders.iter().take(8).any(says_none);
        let from = self.valid_from == write.valid.0 || (write.valid.0.is_none() && began);
        from && self.valid_to == write.valid.1
    }
}

impl Model {
    /// The row that a key means: what is true until another takes its place, or else what will be true first, or else the
    /// current one.
    pub(crate) fn meant_by(&self, key: &str, now: Time) -> Option<(MemoryId, usize)> {
        let current = self.holder_of(key, now);
        if current.is_some_and(|(id, at)| self.rows[&id].visible(now) && !self.leads_ahead(id, at, now)) {
            return current;
        }
        let rows = self.rows.iter().filter(|(_, row)| row.current(now) || !row.over(now));
        let found = rows.filter_map(|(id, row)| {
            let at = row.holders.iter().position(|hold| hold.key.as_deref() == Some(key))?;
            let leads = self.leads_ahead(*id, at, now);
            Some(((!row.visible(now) || leads, leads, row.valid_from, *id), at))
        });
        found.min().map(|((.., id), at)| (id, at)).or(current)
    }

    /// Whether a key leads to a row from an instant ahead on only.
    pub(super) fn leads_ahead(&self, id: MemoryId, at: usize, now: Time) -> bool {
        let key = &self.rows[&id].holders[at].key;
        let (mut at, mut seen) = (id, BTreeSet::new());
        while seen.insert(at) {
            let hold = self.rows.get(&at).and_then(|row| row.holders.iter().find(|hold| hold.key == *key));
            let Some((from, follows)) = hold.and_then(|hold| Some((hold.from?, hold.follows))) else {
                return false;
            };
            let ends_ahead = |before: &Row| before.replaced_ahead(now).is_some();
            let has_key = |before: &Row| before.holders.iter().any(|hold| hold.key == *key);
            let before = self.rows.get(&from);
            if !follows {
                return before.is_some_and(|before| ends_ahead(before) && has_key(before));
            }
            if before.is_some_and(ends_ahead) {
                return true;
            }
            at = from;
        }
        false
    }

    /// A change through one holder, or through all.
    pub(crate) fn edit(
        &mut self,
        id: MemoryId,
        through: Option<usize>,
        edit: Edit,
        new: MemoryId,
        now: Time,
    ) -> Told {
        let (steps, before) = (self.ahead(id, now), self.clone());
        let stands = steps.is_some() || self.rows[&id].superseded.is_none();
        let led = through.filter(|_| stands).and_then(|at| self.led_ahead(id, at, &edit, now));
        if let Some(steps) = &steps {
            self.bring_back(id, steps, now);
            if led.is_none() {
                self.change_all_ahead((id, through), steps, &edit, now);
            }
        }
        let told = self.edit_current(id, through, edit, new, now, led);
        if matches!(told, Told::Conflict | Told::Invalid) {
            *self = before;
            return told;
        }
        // What is true until the row begins takes nothing from what follows the row.
        if let Some(begins) = led {
            self.replace((new, id), SupersedeMode::Replaced, Some(None), [now, begins]);
        }
        if let Some(steps) = steps {
            self.replace_again(if led.is_some() { id } else { new }, &steps, now);
        }
        told
    }

    /// What is to take the place of a row that is seen now, or will be before: each row, with its own successor and the instant.
    pub(crate) fn ahead(&self, id: MemoryId, now: Time) -> Option<Vec<(MemoryId, MemoryId, Time)>> {
        self.rows[&id].superseded.filter(|_| !self.rows[&id].over(now))?;
        Some(self.steps_from(id, now))
    }

    /// The same of a row that another overtakes before it begins.
    fn steps_from(&self, id: MemoryId, now: Time) -> Vec<(MemoryId, MemoryId, Time)> {
        let (mut steps, mut at) = (Vec::new(), id);
        while let Some(step) = self.step(at, now) {
            steps.push(step);
            at = step.1;
        }
        steps
    }

    pub(super) fn step(&self, id: MemoryId, now: Time) -> Option<(MemoryId, MemoryId, Time)> {
        let row = &self.rows[&id];
        let (by, mode) = row.superseded?;
        let end = row.valid_to.filter(|_| mode == SupersedeMode::Replaced)?;
        // What was to come can be merged into a row that has ended by then.
        let lives = |next: &MemoryId| {
            let next = &self.rows[next];
            let own = if next.superseded.is_some() { next.valid_to_before } else { next.valid_to };
            next.valid_from.is_some() || own.is_none_or(|own| own > end)
        };
        let (new, itself) = match self.successor(by, now).filter(lives) {
            Some(new) => (new, row.valid_to_before.is_some_and(|own| own <= end)),
            // What was to come is gone, but a text of a key of the row can come later.
            None => {
                let keys = row.holders.iter().filter_map(|hold| hold.key.as_deref());
                let mut others = keys.flat_map(|key| self.with_key(key, now));
                (others.find(|(other, at)| *other != id && self.to_come(*other, *at, now))?.0, true)
            }
        };
        let from = self.rows[&new].valid_from.filter(|_| itself);
        Some((id, new, from.map_or(end, |from| from.max(end))))
    }

    /// What stands for a row in the world, as long as it has not ended.
    pub(super) fn successor(&self, mut id: MemoryId, now: Time) -> Option<MemoryId> {
        loop {
            let row = self.rows.get(&id)?;
            match row.superseded {
                Some((by, mode)) if mode != SupersedeMode::Replaced => id = by,
                _ => return Some(id).filter(|_| now < row.until()),
            }
        }
    }

    /// A text that takes the place of what a key says, at an instant ahead. No other writer has the text that is true now.
    pub(crate) fn replace_key(&mut self, write: &Write, id: MemoryId, [now, at]: [Time; 2]) -> Told {
        let key = write.key.as_deref().unwrap();
        let (held, _) = self.meant_by(key, now).unwrap();
        let before = self.clone();
        let (mut old, mut later) = (held, None);
        if let Some(steps) = self.ahead(held, now) {
            let passed = steps.iter().take_while(|(.., begins)| *begins <= at).count();
            old = steps[..passed].last().map_or(held, |(_, by, _)| *by);
            later = Some(steps[passed..].to_vec()).filter(|rest| passed == 0 || !rest.is_empty());
        }
        // What the write under the key gave stays, but for an end that comes before the new text begins.
        let like = |id: MemoryId| {
            let row = &self.rows[&id];
            let hold = row.holders.iter().find(|hold| hold.key == write.key)?;
            Some((row.expires.filter(|end| hold.expiry.is_some() && *end > at), hold.clone()))
        };
        let (expires, was) = like(old).or_else(|| like(held)).unwrap();
        let mut hold = Hold {
            number: 0,
            count: was.count,
            share: was.share,
            expiry: was.expiry.filter(|_| expires.is_some()),
            valid: (Some(at), None),
            run: None,
            from: None,
            follows: false,
            ahead: true,
            ..was
        };
        hold.leave_imports();
        let row = Row {
            agent: self.rows[&held].agent.clone(),
            text: write.text.clone(),
            vector: write.vector,
            reinforcement: hold.share.max(1),
            holders: vec![hold],
            valid_from: Some(at),
            begun: false,
            valid_to: None,
            valid_to_before: None,
            expires,
            superseded: None,
        };
        self.rows.insert(id, row);
        later.iter().for_each(|later| self.bring_back(old, later, now));
        if self.supersede(old, id, SupersedeMode::Replaced, [now, at]) == Told::Conflict {
            *self = before;
            return Told::Conflict;
        }
        later.iter().for_each(|later| self.replace_again(id, later, now));
        Told::Stored
    }

    /// Whether a change lets a row that is not true yet end before it begins, with what the changed row keeps of its own.
    pub(super) fn ends_before(
        &self,
        id: MemoryId,
        (through, apart): (Option<usize>, Option<usize>),
        (edit, led): (&Edit, Option<Time>),
        now: Time,
    ) -> bool {
        let mut row = self.rows[&id].clone();
        if apart.is_some() || edit.text.is_some() {
            let hold = &row.holders[apart.or(through).unwrap_or(0)];
            let says_other = hold.follows && edit.text.is_some();
            let gave_end = hold.expiry.is_some() && !says_other;
            row.expires = row.expires.filter(|_| gave_end);
            if let Some(at) = apart {
                row.valid_from = self.begin_of(id, at).filter(|_| led.is_none() && !says_other);
            }
        }
        row.give(edit);
        let ends = row.valid_from.zip(row.expires).is_some_and(|(from, end)| end <= from && from > now);
        ends && (edit.expiry.is_some() || edit.valid.0.is_some())
    }

    /// A memory takes the place of another, and so does what is to replace it later on.
    pub(crate) fn supersede_beyond(
        &mut self,
        old: MemoryId,
        new: MemoryId,
        mode: SupersedeMode,
        [now, at]: [Time; 2],
    ) -> Told {
        // By then another memory may have taken the place of the one that is named.
        let steps = if old == new { None } else { self.ahead(new, now) };
        let passed = steps.iter().flatten().take_while(|(.., begins)| *begins <= at).last();
        let new = passed.map_or(new, |(_, next, _)| *next);
        let ends = self.rows[&new].expires.is_some_and(|end| end <= at);
        if ends && at > now && mode == SupersedeMode::Replaced {
            return Told::Invalid;
        }
        let told = self.supersede(old, new, mode, [now, at]);
        let goes_on = told != Told::Conflict && mode != SupersedeMode::Aggregate;
        // What is never true leads on all the same.
        let is_replaced = self.rows[&new].replaced_ahead(now).is_some();
        let steps = if goes_on && is_replaced { self.steps_from(new, now) } else { Vec::new() };
        if !steps.is_empty() && steps.iter().all(|(.., begins)| *begins >= at) {
            self.bring_back(new, &steps, now);
            self.replace_again(new, &steps, now);
        }
        told
    }

    /// A row that is seen now can be changed, and so can those that come later.
    pub(super) fn bring_back(&mut self, id: MemoryId, steps: &[(MemoryId, MemoryId, Time)], now: Time) {
        for (later, ..) in steps.iter().skip(1).rev() {
            self.restore(*later, now, To::Write).unwrap();
        }
        self.restore(id, now, To::Write).unwrap();
    }

    /// The same of all keys for which a change is one.
    pub(super) fn change_all_ahead(
        &mut self,
        (id, through): (MemoryId, Option<usize>),
        steps: &[(MemoryId, MemoryId, Time)],
        edit: &Edit,
        now: Time,
    ) {
        let all = 0..self.rows[&id].holders.len();
        for at in all.filter(|at| through.is_none_or(|through| *at == through)) {
            let had = self.rows[&id].holders[at].clone();
            self.change_ahead(steps, &had, edit, now);
        }
    }

    /// What the texts that a key announces have of a change of what it says: what the announcement did not give itself.
    fn change_ahead(&mut self, steps: &[(MemoryId, MemoryId, Time)], had: &Hold, edit: &Edit, now: Time) {
        for (_, id, at) in steps {
            let own = |hold: &Hold| hold.key == had.key && hold.ahead;
            // What was to come went with its last writer, where that is back now.
            let Some(row) = self.rows.get(id) else { continue };
            let Some(place) = row.holders.iter().position(own) else { continue };
            let next = &row.holders[place];
            if edit.run.is_some() && next.run != edit.run {
                continue;
            }
            let gave_end = next.expiry.is_some() && next.expiry != had.expiry;
            let kept = Edit {
                tags: edit.tags.as_ref().and_then(|tags| next.lasting(had, tags)),
                expiry: edit.expiry.filter(|end| end > at && !gave_end),
                ..Edit::default()
            };
            // Others do not have the text, so no row is made.
            self.edit_current(*id, Some(place), kept, MemoryId::from_bytes([0; 16]), now, None);
        }
    }

    /// Whether a key announces a text that others have as well.
    pub(crate) fn announces_with_others(&self, key: &str) -> bool {
        self.rows.iter().any(|(id, row)| {
            let mut holders = row.holders.iter().enumerate();
            holders
                .any(|(at, hold)| hold.ahead && hold.key.as_deref() == Some(key) && self.has_others(*id, at))
        })
    }

    /// What a change has left, and what it made, is replaced once more.
    pub(super) fn replace_again(&mut self, new: MemoryId, steps: &[(MemoryId, MemoryId, Time)], now: Time) {
        let made = steps.first().map(|(_, by, at)| (new, *by, *at));
        for (old, by, at) in steps.iter().take(1).copied().chain(made).chain(steps.iter().skip(1).copied()) {
            let lives = |row: &Row| row.superseded.is_none() && row.expires.is_none_or(|end| end > now);
            if old != by && self.rows.get(&old).is_some_and(lives) && self.rows.contains_key(&by) {
                self.replace((old, by), SupersedeMode::Replaced, Some(None), [now, at]);
            }
        }
    }

    /// Whether a holder waits to take the place of what its key says.
    pub(super) fn to_come(&self, id: MemoryId, at: usize, now: Time) -> bool {
        let row = &self.rows[&id];
        row.holders[at].ahead && row.valid_from.is_some_and(|from| from > now)
    }

    /// When a row begins to which a key leads that says another text now.
    pub(super) fn led_ahead(&self, id: MemoryId, at: usize, edit: &Edit, now: Time) -> Option<Time> {
        let row = &self.rows[&id];
        let hold = &row.holders[at];
        let says = (hold.follows || hold.ahead) && edit.text.is_some();
        let begins =
            row.valid_from.filter(|from| *from > now && edit.valid.0.is_none_or(|given| given < *from));
        begins.filter(|_| says)
    }
}
