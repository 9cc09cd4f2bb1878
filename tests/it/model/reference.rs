//! The rules of holders, supersession and visibility once more, as plain lists: what the model test compares with.
//!
//! It takes from the engine nothing but the ids that new rows got.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use oubliette::maintain::RunId;
use oubliette::memory::SupersedeMode;
use oubliette::{MemoryId, Time};

/// Beginning and end of world time.
pub(crate) type Valid = (Option<Time>, Option<Time>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hold {
    pub(crate) number: u32,
    pub(crate) key: Option<String>,
    pub(crate) count: u32,
    pub(crate) share: u32,
    pub(crate) tags: BTreeSet<String>,
    /// The expiry that it gave.
    pub(crate) expiry: Option<Time>,
    /// The world time that it gave.
    pub(crate) valid: Valid,
    pub(crate) run: Option<RunId>,
    pub(crate) from: Option<MemoryId>,
    /// It led to the newest text and did not write it.
    pub(crate) follows: bool,
    /// It was written to take the place of what its key said, at an instant that lay ahead.
    pub(crate) ahead: bool,
    /// Its text was there before the first of its tags that name an import.
    pub(crate) said_before: bool,
}

/// Rows that say what keys said in the place of a row, with the numbers of their holders.
pub(super) type Since = BTreeMap<MemoryId, BTreeSet<u32>>;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) agent: Option<String>,
    pub(crate) text: String,
    pub(crate) vector: Option<[f32; 4]>,
    pub(crate) holders: Vec<Hold>,
    pub(crate) reinforcement: u32,
    pub(crate) valid_from: Option<Time>,
    /// It was there before, and begins since it took the place of another.
    pub(crate) begun: bool,
    pub(crate) valid_to: Option<Time>,
    pub(crate) valid_to_before: Option<Time>,
    pub(crate) expires: Option<Time>,
    pub(crate) superseded: Option<(MemoryId, SupersedeMode)>,
}

/// One write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Write {
    pub(crate) key: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) text: String,
    pub(crate) vector: Option<[f32; 4]>,
    pub(crate) tags: Option<BTreeSet<String>>,
    pub(crate) expiry: Option<Time>,
    pub(crate) valid: Valid,
    pub(crate) run: Option<RunId>,
    /// The row that the engine superseded, if any.
    pub(crate) apart: Option<MemoryId>,
}

/// What must become of it; a row that is made waits for the id that the engine gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Stored,
    Unchanged(MemoryId),
    Updated(MemoryId),
    Reinforced(MemoryId),
    Revised(MemoryId),
    KeyInOtherPartition,
    Conflict,
    /// World time would end before it begins.
    Invalid,
}

/// What a row comes back for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum To {
    /// A caller named the row.
    Live,
    /// A row whose writers have all said something else is superseded by that.
    Undo,
    /// A write that comes before another row takes its place.
    Write,
}

/// A namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) rows: BTreeMap<MemoryId, Row>,
    pub(crate) stones: BTreeMap<MemoryId, BTreeSet<String>>,
    /// Those of the stones that somebody asked for by name.
    pub(crate) forgotten: BTreeSet<MemoryId>,
    /// The rows that a caller has let another row replace by its name, with that row.
    pub(super) named: BTreeMap<MemoryId, MemoryId>,
    /// The rows of their own for which writers have left a row, by their numbers there.
    pub(super) parted: BTreeMap<MemoryId, BTreeMap<u32, MemoryId>>,
}

impl Row {
    pub(super) fn until(&self) -> Time {
        if self.superseded.is_some_and(|(_, mode)| mode != SupersedeMode::Replaced) {
            return Time::MIN;
        }
        [self.valid_to, self.expires].into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    pub(crate) fn visible(&self, now: Time) -> bool {
        self.valid_from.is_none_or(|from| from <= now) && now < self.until()
    }

    /// Not seen now, and never again.
    pub(crate) fn over(&self, now: Time) -> bool {
        let from = self.valid_from.unwrap_or(Time::MIN);
        let ahead = now < from && from < self.until();
        !self.visible(now) && !ahead
    }

    /// Not seen yet.
    pub(crate) fn ahead(&self, now: Time) -> bool {
        let ended = self.expires.is_some_and(|end| end <= now);
        let from = self.valid_from.is_some_and(|from| now < from);
        from && if self.superseded.is_some() { !self.over(now) } else { !ended }
    }

    pub(crate) fn current(&self, now: Time) -> bool {
        self.superseded.is_none() && now < self.until()
    }

    pub(crate) fn tags(&self) -> BTreeSet<String> {
        self.holders.iter().flat_map(|hold| hold.tags.iter().cloned()).collect()
    }

    pub(crate) fn keys(&self) -> BTreeSet<String> {
        self.holders.iter().filter_map(|hold| hold.key.clone()).collect()
    }

    fn next(&self) -> u32 {
        self.holders.iter().map(|hold| hold.number + 1).max().unwrap_or(0)
    }
}

impl Model {
    /// The current row that holds a key, with the place of the holder.
    pub(crate) fn holder_of(&self, key: &str, now: Time) -> Option<(MemoryId, usize)> {
        let found = self.with_key(key, now);
        assert!(found.len() < 2, "a key belongs to at most one current row");
        found.first().copied()
    }

    /// What must become of a write, and what it changes; `id` is that of the row that the engine made, if any.
    #[expect(clippy::too_many_lines, reason = "the ladder of DEDUP-55 reads best in one piece")]
    pub(crate) fn write(&mut self, write: &Write, id: MemoryId, now: Time) -> Told {
        if write.expiry.zip(write.valid.0).is_some_and(|(end, from)| end <= from) {
            return Told::Invalid;
        }
        if let Some((held, at)) = write.key.as_deref().and_then(|key| self.meant_by(key, now)) {
            if self.rows[&held].agent != write.agent {
                return Told::KeyInOtherPartition;
            }
            let same = self.rows[&held].text == write.text;
            let hold = &self.rows[&held].holders[at];
            let brings = write.tags.as_ref().map(|tags| if same { hold.beside(tags) } else { tags.clone() });
            let tags = brings.as_ref().is_some_and(|tags| hold.with_tags(tags) != hold.tags);
            let gives = |new: Option<Time>, old: Option<Time>| new.is_some() && new != old;
            let fields = gives(write.expiry, hold.expiry)
                || gives(write.valid.0, hold.valid.0)
                || gives(write.valid.1, hold.valid.1);
            let vector = same && write.vector.is_some() && write.vector != self.rows[&held].vector;
            if same && !tags && !fields && !vector && !hold.follows {
                return Told::Unchanged(held);
            }
            let edit = Edit {
                text: Some(write.text.clone()).filter(|_| !same),
                vector: write.vector.filter(|_| !same || vector),
                tags: brings,
                // New content comes with all that its write gives.
                expiry: write.expiry.filter(|_| fields || !same),
                valid: if fields || !same { write.valid } else { (None, None) },
                run: write.run,
                says: same,
                apart: write.apart,
            };
            return self.edit(held, Some(at), edit, id, now);
        }
        let equals = self.rows.iter().filter(|(_, row)| {
            let alike = row.text == write.text && row.agent == write.agent;
            // An end is a promise: only the writer itself moves it, and only by a write that names one.
            let tags = write.tags.clone().unwrap_or_default();
            let is_its_own = |hold: &Hold| hold.takes_keyless(&tags, write.run);
            let repeats = write.key.is_none() && row.holders.iter().all(is_its_own);
            let lasts = row.expires.is_none() || write.expiry.is_some();
            let ends = row.expires == write.expiry || (repeats && lasts);
            alike && ends && row.current(now) && row.is_true_as(write, now)
        });
        // The canonical one absorbs (DEDUP-15); ids ascend as rows come to be.
        let equal = equals.max_by_key(|(id, row)| (row.reinforcement, Reverse(**id)));
        let hold = Hold {
            number: 0,
            key: write.key.clone(),
            count: 1,
            share: 1,
            tags: write.tags.clone().unwrap_or_default(),
            expiry: write.expiry,
            valid: write.valid,
            run: write.run,
            from: None,
            follows: false,
            ahead: false,
            said_before: false,
        };
        if let Some(equal) = equal.map(|(id, _)| *id) {
            let row = self.rows.get_mut(&equal).unwrap();
            row.reinforcement += 1;
            // A row that waits for a vector takes the one that comes with the same content.
            row.vector = row.vector.or(write.vector);
            row.expires = row.expires.zip(write.expiry).map(|(end, other)| end.max(other));
            let number = row.next_number();
            let shared = row
                .holders
                .iter_mut()
                .find(|other| hold.key.is_none() && other.takes_keyless(&hold.tags, hold.run));
            match shared {
                Some(shared) => (shared.count, shared.share) = (shared.count + 1, shared.share + 1),
                None => row.holders.push(Hold { number, ..hold }),
            }
            return Told::Reinforced(equal);
        }
        self.rows.insert(
            id,
            Row {
                agent: write.agent.clone(),
                text: write.text.clone(),
                vector: write.vector,
                holders: vec![hold],
                reinforcement: 1,
                valid_from: write.valid.0,
                begun: false,
                valid_to: write.valid.1,
                valid_to_before: None,
                expires: write.expiry,
                superseded: None,
            },
        );
        Told::Stored
    }

    /// The current rows with a key, with the place of the holder.
    pub(super) fn with_key(&self, key: &str, now: Time) -> Vec<(MemoryId, usize)> {
        let rows = self.rows.iter().filter(|(_, row)| row.current(now));
        let place = |row: &Row| row.holders.iter().position(|hold| hold.key.as_deref() == Some(key));
        rows.filter_map(|(id, row)| Some((*id, place(row)?))).collect()
    }

    /// Whether others than this holder have written the text of a row.
    pub(crate) fn has_others(&self, id: MemoryId, at: usize) -> bool {
        let all = self.rows[&id].holders.iter().enumerate();
        all.into_iter().any(|(other, hold)| other != at && !hold.follows)
    }

    pub(super) fn edit_current(
        &mut self,
        id: MemoryId,
        through: Option<usize>,
        edit: Edit,
        new: MemoryId,
        now: Time,
        // When the row begins, if what is written is true until then.
        led: Option<Time>,
    ) -> Told {
        if self.rows[&id].superseded.is_some() {
            return Told::Conflict;
        }
        let mut given = self.rows[&id].clone();
        if led.is_some() {
            (given.valid_from, given.valid_to) = (None, None);
        }
        let of_holder = edit.text.is_none() && edit.vector.is_none() && !edit.gives();
        let others = |at: usize| self.has_others(id, at);
        let apart = through.filter(|at| led.is_some() || (others(*at) && !of_holder));
        if let Some(at) = apart.filter(|_| led.is_none()) {
            given.valid_from = self.begin_of(id, at);
        }
        given.give(&edit);
        let world = given.valid_from.zip(given.valid_to);
        if edit.valid != (None, None) && world.is_some_and(|(from, to)| from >= to) {
            return Told::Invalid;
        }
        let has_ended =
            apart.is_none() && edit.text.is_some() && self.rows[&id].expires.is_some_and(|end| end <= now);
        if has_ended || apart.is_some_and(|at| given.holders[at].follows && edit.text.is_none() && !edit.says)
        {
            return Told::Conflict;
        }
        if self.ends_before(id, (through, apart), (&edit, led), now) {
            return Told::Invalid;
        }
        if let Some(at) = apart {
            if led.is_none() && self.is_of_before(id, at, &edit, now) {
                return self.rewrite_apart(id, at, edit, new, now);
            }
            self.part_with(id, at, edit, new, led);
            return Told::Stored;
        }
        if edit.text.is_some() {
            self.rewrite(id, through, edit, new, now);
            return Told::Revised(id);
        }
        let holds = |(at, place): &(MemoryId, usize)| *at != id && !self.to_come(*at, *place, now);
        let taken = self.rows[&id].keys().iter().any(|key| self.with_key(key, now).iter().any(holds));
        let row = self.rows.get_mut(&id).unwrap();
        let before = row.clone();
        row.give(&edit);
        if !before.current(now) && row.current(now) && taken {
            *row = before;
            return Told::Conflict;
        }
        if edit.vector.is_some() {
            row.vector = edit.vector;
        }
        let mut writers = Vec::new();
        for (at, hold) in row.holders.iter_mut().enumerate() {
            if through.is_none_or(|through| through == at) {
                writers.extend((!(hold.follows && edit.says)).then(|| hold.clone()));
                hold.patch(&edit);
            }
        }
        writers.iter().for_each(|writer| self.patch_former(writer, &edit));
        Told::Updated(id)
    }

    /// What one holder writes takes the holder to a row of its own; the row goes on for the others.
    pub(super) fn part_with(
        &mut self,
        id: MemoryId,
        at: usize,
        mut edit: Edit,
        new: MemoryId,
        led: Option<Time>,
    ) {
        let mut copy = self.rows[&id].clone();
        copy.valid_from = self.begin_of(id, at);
        let vector = edit.vector.or(copy.vector.filter(|_| edit.text.is_none()));
        // What is to come stays the key's own.
        let mut hold = match copy.holders[at].follows || led.is_none() {
            true => self.rows.get_mut(&id).unwrap().part(at),
            false => copy.holders[at].clone(),
        };
        copy.expires = copy.expires.filter(|_| hold.expiry.is_some());
        if led.is_some() {
            (copy.valid_from, copy.valid_to, hold.valid) = (None, None, (None, None));
            (copy.begun, hold.ahead) = (false, false);
        }
        // What a key only led to was said by another: a text of its own begins a memory of its own.
        let wrote = !hold.follows;
        if !wrote && edit.text.is_some() {
            (copy.valid_from, copy.valid_to, copy.expires) = (None, None, None);
            (copy.begun, hold.valid, hold.expiry) = (false, (None, None), None);
        }
        if !wrote || led.is_none() {
            self.parted.entry(id).or_default().insert(hold.number, new);
        }
        hold.patch(&edit);
        if edit.text.is_none() && led.is_none() {
            // The write stays one of the run that brought it.
            edit.run = hold.run;
        }
        let goes_on = (edit.text.is_none() && led.is_none() && wrote).then(|| hold.key.clone()).flatten();
        copy.renew(hold, edit, vector);
        self.rows.insert(new, copy);
        if let Some(key) = goes_on {
            self.lead_versions(&key, id, new);
        }
    }

    /// A new text takes the place of a row, for the holder through which it came or for all.
    pub(super) fn rewrite(
        &mut self,
        id: MemoryId,
        through: Option<usize>,
        edit: Edit,
        new: MemoryId,
        now: Time,
    ) {
        let at = through.unwrap_or(0);
        let mut copy = self.rows[&id].clone();
        let mut hold = copy.holders[at].clone();
        // New content lives as long as its tier, unless the caller said otherwise.
        copy.expires = copy.expires.filter(|_| hold.expiry.is_some());
        hold.patch(&edit);
        let (vector, beside) = (edit.vector, Edit { text: None, vector: None, ..edit.clone() });
        copy.renew(hold, edit, vector);
        self.rows.insert(new, copy);
        let row = &self.rows[&id];
        let carried = (row.holders.len() > 1).then_some(Some(row.holders[at].number));
        self.replace((id, new), SupersedeMode::Correction, carried, [now, now]);
        if through.is_none() {
            // What is given beside the text is every writer's.
            let others = self.rows.get_mut(&new).unwrap().holders.iter_mut().skip(1);
            others.for_each(|hold| hold.patch(&beside));
        }
    }

    pub(crate) fn supersede(
        &mut self,
        old: MemoryId,
        new: MemoryId,
        mode: SupersedeMode,
        times: [Time; 2],
    ) -> Told {
        let [now, at] = times;
        let expired = self.rows[&old].expires.is_some_and(|end| end <= now);
        let next = &self.rows[&new];
        let over = next.valid_from.is_none() && next.valid_to.is_some_and(|end| end <= at);
        if mode == SupersedeMode::Replaced && over {
            return Told::Conflict;
        }
        if old == new || expired || self.rows[&old].superseded.is_some() || self.leads(new, old) {
            return Told::Conflict;
        }
        self.replace((old, new), mode, (mode != SupersedeMode::Aggregate).then_some(None), times);
        self.named.insert(old, new);
        Told::Updated(new)
    }

    pub(super) fn leads(&self, from: MemoryId, to: MemoryId) -> bool {
        let mut at = Some(from);
        while let Some(id) = at {
            if id == to {
                return true;
            }
            at = self.rows.get(&id).and_then(|row| row.superseded).map(|(by, _)| by);
        }
        false
    }

    pub(super) fn replace(
        &mut self,
        (old, new): (MemoryId, MemoryId),
        mode: SupersedeMode,
        // Which holders move: none, or all but the one that the new row was made with.
        moves: Option<Option<u32>>,
        [now, at]: [Time; 2],
    ) {
        self.named.remove(&old);
        let row = self.rows.get_mut(&old).unwrap();
        row.superseded = Some((new, mode));
        if mode == SupersedeMode::Replaced {
            row.valid_to_before = row.valid_to;
            row.valid_to = Some(row.valid_to.map_or(at, |to| to.min(at)));
        }
        let (holders, text, agent) = (row.holders.clone(), row.text.clone(), row.agent.clone());
        let row = self.rows.get_mut(&new).unwrap();
        // Holders stay in their partition.
        let moves = moves.filter(|_| row.agent == agent);
        if mode == SupersedeMode::Replaced && row.valid_from.is_none() {
            row.valid_from = Some(at);
            row.begun = made_at(new) < now;
        }
        let own = row.keys();
        for hold in
            holders.into_iter().filter(|hold| moves.is_some_and(|carried| carried != Some(hold.number)))
        {
            let key = hold.key.clone().unwrap_or_default();
            let holds = |(at, place): &(MemoryId, usize)| *at != new && !self.to_come(*at, *place, now);
            let taken = self.with_key(&key, now).iter().any(holds);
            if hold.key.is_some() && (own.contains(&key) || taken) {
                continue;
            }
            let row = self.rows.get_mut(&new).unwrap();
            let number = row.next_number();
            let follows = hold.follows || (moves == Some(None) && text != row.text);
            row.holders.push(Hold { number, share: 0, from: Some(old), follows, ..hold });
        }
    }

    pub(crate) fn restore(&mut self, id: MemoryId, now: Time, to: To) -> Result<BTreeSet<String>, Told> {
        let Some((by, mode)) = self.rows[&id].superseded else { return Err(Told::Conflict) };
        if mode != SupersedeMode::Duplicate
            && mode != SupersedeMode::Aggregate
            && to != To::Write
            && self.forgotten.contains(&by)
        {
            return Err(Told::Conflict);
        }
        // It would go at once (LIFE-7).
        if to == To::Live && self.rows[&id].expires.is_some_and(|end| end <= now) {
            return Err(Told::Conflict);
        }
        let mut chain = vec![by];
        while let Some(row) = self.rows.get(&chain[chain.len() - 1]) {
            let Some((next, _)) = row.superseded else { break };
            // A restoration by name takes the key from what is to come, as far as nothing before it is true.
            let comes = self.rows.get(&next).is_some_and(|next| next.valid_from > Some(now));
            if to != To::Write && !comes {
                break;
            }
            chain.push(next);
        }
        let (own, onward) =
            if to == To::Live { self.call_off(id, &mut chain, now) } else { Default::default() };
        self.give_back(id, by, to);
        let mut lost = BTreeSet::new();
        let writers = self.rows[&id].holders.iter().filter(|hold| to == To::Undo && !hold.follows);
        let said: Vec<_> =
            writers.map(|hold| (hold.number, self.said_elsewhere(id, hold, &chain, now))).collect();
        let later = said.iter().filter_map(|(_, later)| *later).max();
        if let Some(later) = later.filter(|_| said.iter().all(|(_, later)| later.is_some())) {
            let row = self.rows.get_mut(&id).unwrap();
            row.superseded = None;
            if mode == SupersedeMode::Replaced {
                row.valid_to = row.valid_to_before.take();
                self.unbegin(by);
            }
            self.replace((id, later), SupersedeMode::Correction, Some(None), [now, now]);
            return Ok(lost);
        }
        let row = self.rows.get_mut(&id).unwrap();
        for (number, _) in said.iter().filter(|(_, later)| later.is_some()) {
            let at = row.holders.iter().position(|hold| hold.number == *number).unwrap();
            row.part(at);
        }
        let (mut taken, mut since) = self.reclaim(id, &chain, to, now);
        since.extend(self.words_in(own));
        lost.append(&mut taken);
        let gone = to == To::Write && self.successor(by, now).is_none();
        let row = self.rows.get_mut(&id).unwrap();
        row.superseded = None;
        if mode == SupersedeMode::Replaced {
            let before = row.valid_to_before.take();
            // The end stays, although nothing comes then any more.
            row.valid_to = if gone && row.valid_to > row.valid_from { row.valid_to } else { before };
            if to != To::Write {
                self.unbegin(by);
            }
        }
        self.replace_versions(id, since, now);
        self.replace_onward(onward, now);
        Ok(lost)
    }

    /// A row that is back has its keys again, but for those that others than its superseders have; these it loses. What the keys
    /// said in its place is named, if a caller asked for the row.
    fn reclaim(&mut self, id: MemoryId, chain: &[MemoryId], to: To, now: Time) -> (BTreeSet<String>, Since) {
        let (mut lost, mut since) = (BTreeSet::new(), Since::new());
        let merged = if to == To::Live { self.merged_from(chain) } else { BTreeSet::new() };
        for at in 0..self.rows[&id].holders.len() {
            let Some(key) = self.rows[&id].holders[at].key.clone() else { continue };
            let others = self.with_key(&key, now).into_iter().filter(|(other, _)| *other != id);
            // Before a write, what is to come keeps its key.
            let comes = |other: MemoryId, place: usize| {
                let row = &self.rows[&other];
                row.valid_from.is_some_and(|from| from > now) && !row.holders[place].follows
            };
            let others = others.filter(|(other, place)| to != To::Write || !comes(*other, *place));
            // What is to be replaced at an instant ahead is true until then.
            let ahead = chain.iter().filter(|_| to != To::Write).filter_map(|other| {
                let row = self.rows.get(other).filter(|row| row.superseded.is_some())?;
                let is_true = row.valid_from.unwrap_or(now).max(now) < row.until();
                let place = row.holders.iter().position(|hold| hold.key.as_ref() == Some(&key));
                place.filter(|_| is_true).map(|place| (*other, place))
            });
            for (other, place) in others.chain(ahead).collect::<Vec<_>>() {
                let row = self.rows.get_mut(&other).unwrap();
                let hold = &mut row.holders[place];
                // What the key has said in the place of the row may have been united with the memory of others.
                let is_united = merged.contains(&other)
                    && !hold.follows
                    && hold.from.is_some_and(|from| chain.contains(&from) || merged.contains(&from));
                let is_word = to == To::Undo && !hold.follows && hold.from == Some(id);
                if (!chain.contains(&other) || is_word) && !is_united {
                    self.rows.get_mut(&id).unwrap().holders[at].key = None;
                    lost.insert(key.clone());
                } else if to == To::Live && row.superseded.is_none() && !hold.follows {
                    since.entry(other).or_default().insert(hold.number);
                } else {
                    hold.key = None;
                }
            }
        }
        (lost, since)
    }

    /// What came from a row goes back, and its copies off the rows to which they went on: those that a merge has handed
    /// on, and those without a key.
    fn give_back(&mut self, id: MemoryId, by: MemoryId, to: To) {
        let (mut from, mut next, mut moved) = (id, Some(by), None::<Vec<Hold>>);
        let led = self.rows[&id].superseded.is_some_and(|(_, mode)| mode != SupersedeMode::Duplicate);
        let old = self.rows[&id].text.clone();
        while let Some(at) = next.filter(|at| self.rows.contains_key(at)) {
            let row = self.rows.get_mut(&at).unwrap();
            let (mut left, text) = (moved.take(), row.text.clone());
            let keys = self.rows[&id].keys();
            let row = self.rows.get_mut(&at).unwrap();
            let copies = row.holders.extract_if(.., |hold| {
                // A key that has left the row since, and that another one has, stays where it leads.
                let stays = from == id && hold.key.as_ref().is_some_and(|key| !keys.contains(key));
                let alike = |other: &Hold| {
                    (&other.key, &other.tags, other.run, other.count)
                        == (&hold.key, &hold.tags, hold.run, hold.count)
                };
                // A key that has said since what it was led to keeps its word.
                let word = led && to == To::Undo && hold.key.is_some() && !hold.follows && old != text;
                hold.from == Some(from)
                    && !word
                    && !stays
                    && left.as_mut().is_none_or(|left| {
                        let found = left.iter().position(alike);
                        found.map(|found| left.remove(found)).is_some()
                    })
            });
            let mut copies: Vec<Hold> = copies.collect();
            if from == id {
                // What a key has brought since comes back with it.
                let back = &mut self.rows.get_mut(&id).unwrap().holders;
                for hold in back.iter_mut().filter(|hold| hold.key.is_some()) {
                    let copy = copies.iter().find(|copy| copy.key == hold.key);
                    copy.into_iter().for_each(|copy| {
                        (hold.tags, hold.said_before) = (copy.tags.clone(), copy.said_before);
                    });
                }
            }
            let row = self.rows.get_mut(&at).unwrap();
            let superseded = row.superseded;
            next = superseded.map(|(by, _)| by);
            if !copies.is_empty() && row.holders.iter().all(|hold| hold.follows) {
                self.erase(at);
            }
            if to != To::Write && superseded.is_some_and(|(_, mode)| mode != SupersedeMode::Duplicate) {
                copies.retain(|hold| hold.key.is_none());
            }
            if copies.is_empty() {
                break;
            }
            (from, moved) = (at, Some(copies));
        }
    }

    /// A row goes, with all its holders.
    pub(crate) fn erase(&mut self, id: MemoryId) {
        let row = self.rows.remove(&id).unwrap();
        let own = row.holders.into_iter().filter(|hold| !hold.follows);
        self.stones.insert(id, own.filter_map(|hold| hold.key).collect());
    }

    /// Holders leave; says whether the row went with them.
    pub(super) fn detach(&mut self, id: MemoryId, numbers: &[u32]) -> bool {
        let row = self.rows.get_mut(&id).unwrap();
        if row.holders.iter().all(|hold| hold.follows || numbers.contains(&hold.number)) {
            self.erase(id);
            return true;
        }
        let gone: Vec<Hold> = row.holders.extract_if(.., |hold| numbers.contains(&hold.number)).collect();
        let share: u32 = gone.iter().map(|hold| hold.share).sum();
        row.reinforcement = row.reinforcement.saturating_sub(share).max(1);
        row.lose_expiry(&gone.iter().collect::<Vec<_>>());
        false
    }
}

/// When a row was made: its id says it.
fn made_at(id: MemoryId) -> Time {
    let millis = id.as_bytes()[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte));
    Time::from_millis(millis)
}

/// What a change gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edit {
    pub(crate) text: Option<String>,
    pub(crate) vector: Option<[f32; 4]>,
    pub(crate) tags: Option<BTreeSet<String>>,
    pub(crate) expiry: Option<Time>,
    pub(crate) valid: Valid,
    pub(crate) run: Option<RunId>,
    /// It says the text that is there.
    pub(crate) says: bool,
    /// The row that the engine superseded, if any.
    pub(crate) apart: Option<MemoryId>,
}

impl Edit {
    /// Whether it gives a field that is not of the holder alone.
    fn gives(&self) -> bool {
        self.expiry.is_some() || self.valid != (None, None)
    }
}

impl Hold {
    /// Whether a keyless write with these tags and this run is a repeat of this one.
    fn takes_keyless(&self, tags: &BTreeSet<String>, run: Option<RunId>) -> bool {
        let is_keyless = self.key.is_none() && self.from.is_none() && !self.follows;
        is_keyless && self.run == run && self.tags == *tags
    }

    /// Tags that take the place of those that are there; they say nothing of a pin, so it stays.
    fn with_tags(&self, tags: &BTreeSet<String>) -> BTreeSet<String> {
        tags.iter().chain(self.tags.get("pinned")).cloned().collect()
    }

    pub(super) fn patch(&mut self, edit: &Edit) {
        self.valid = (edit.valid.0.or(self.valid.0), edit.valid.1.or(self.valid.1));
        let says_again = edit.says && !self.follows;
        if self.follows && edit.says {
            (self.follows, self.run) = (false, edit.run);
            self.leave_imports();
        }
        if edit.text.is_some() {
            self.leave_imports();
        }
        let imports = self.imports();
        if let Some(tags) = &edit.tags {
            self.tags = self.with_tags(tags);
        }
        self.note_before(&imports, says_again);
        self.expiry = edit.expiry.or(self.expiry);
        self.ahead &= edit.valid.0.is_none();
    }
}

impl Row {
    /// Numbers of a row are never given out twice, so a holder that left leaves a gap behind the last.
    pub(super) fn next_number(&self) -> u32 {
        self.next()
    }

    pub(super) fn give(&mut self, edit: &Edit) {
        // A new text that begins later does not end as the one before.
        let stays = |end: &Time| edit.text.is_none() || edit.valid.0.is_none_or(|from| *end > from);
        self.expires = edit.expiry.or(self.expires.filter(stays));
        self.valid_from = edit.valid.0.or(self.valid_from);
        self.begun &= edit.valid.0.is_none();
        self.valid_to = edit.valid.1.or(self.valid_to);
    }

    /// A holder leaves, with its share.
    pub(super) fn part(&mut self, at: usize) -> Hold {
        let hold = self.holders.remove(at);
        self.reinforcement = self.reinforcement.saturating_sub(hold.share).max(1);
        self.lose_expiry(&[&hold]);
        hold
    }

    /// The end goes with the last holder that gave one.
    fn lose_expiry(&mut self, gone: &[&Hold]) {
        let gave = |hold: &Hold| hold.expiry.is_some();
        if gone.iter().any(|hold| gave(hold)) && !self.holders.iter().any(gave) {
            self.expires = None;
        }
    }

    /// Makes of a copy the row that takes the place of the original.
    fn renew(&mut self, hold: Hold, edit: Edit, vector: Option<[f32; 4]>) {
        self.vector = vector;
        self.give(&edit);
        self.text = edit.text.unwrap_or_else(|| self.text.clone());
        self.reinforcement = hold.share.max(1);
        (self.valid_to_before, self.superseded, self.begun) = (None, None, false);
        self.holders = vec![Hold { number: 0, run: edit.run, from: None, follows: false, ..hold }];
    }
}
