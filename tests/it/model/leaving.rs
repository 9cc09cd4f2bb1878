//! Forgetting and taking back, for the reference.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::reference::{Edit, Hold, Model, Row, Since, To, Told};
use oubliette::memory::SupersedeMode;
use oubliette::{MemoryId, Time};

/// For each row that writers leave, the rows in which they had written; none where nothing tells it.
type Written = BTreeMap<MemoryId, Option<BTreeMap<Option<String>, MemoryId>>>;

impl Model {
    /// What a row wrote goes from the rows into which it was merged, as duplicates of one text; the rows that went with it.
    fn forget_copies(&mut self, id: MemoryId) -> BTreeSet<MemoryId> {
        let (mut came, mut seen, mut gone) = (id, BTreeSet::from([id]), BTreeSet::new());
        let merged = |row: &Row| row.superseded.filter(|(_, mode)| *mode == SupersedeMode::Duplicate);
        while let Some((by, _)) = self.rows.get(&came).and_then(merged).filter(|(by, _)| seen.insert(*by)) {
            let Some(row) = self.rows.get(&by) else { break };
            let copies = row.holders.iter().filter(|hold| hold.from == Some(came) && !hold.follows);
            let numbers: Vec<u32> = copies.map(|hold| hold.number).collect();
            if numbers.is_empty() {
                break;
            }
            came = by;
            if self.detach(by, &numbers) {
                gone.insert(by);
            }
        }
        gone
    }

    /// What a writer says last is said in the rows as well in which the writer was before these were merged.
    pub(super) fn patch_former(&mut self, writer: &Hold, edit: &Edit) {
        self.change_former(writer, &|row, at| {
            if row.holders[at].from.is_none() {
                row.give(edit);
            }
            row.holders[at].patch(edit);
        });
    }

    /// Pins or unpins a row, with all its holders and the rows that were merged into it.
    pub(crate) fn pin(&mut self, id: MemoryId, pinned: bool) {
        let pin = |row: &mut Row, at: usize| {
            let tags = &mut row.holders[at].tags;
            tags.remove("pinned");
            tags.extend(pinned.then(|| "pinned".to_owned()));
        };
        let row = self.rows.get_mut(&id).unwrap();
        let writers = row.holders.clone();
        (0..writers.len()).for_each(|at| pin(row, at));
        writers.iter().for_each(|writer| self.change_former(writer, &pin));
    }

    fn change_former(&mut self, writer: &Hold, change: &dyn Fn(&mut Row, usize)) {
        let Some(row) = writer.from.and_then(|from| self.rows.get_mut(&from)) else { return };
        let merged = row.superseded.is_some_and(|(_, mode)| mode == SupersedeMode::Duplicate);
        let former = row.holders.iter().position(|hold| match &writer.key {
            Some(_) => hold.key == writer.key,
            None => {
                hold.key.is_none()
                    && (&hold.tags, hold.run, hold.count) == (&writer.tags, writer.run, writer.count)
            }
        });
        let Some(at) = former.filter(|_| merged || !writer.follows) else { return };
        let former = row.holders[at].clone();
        if merged {
            change(row, at);
        }
        self.change_former(&former, change);
    }

    /// Rows that went.
    pub(crate) fn forget_id(&mut self, id: MemoryId) -> BTreeSet<MemoryId> {
        let (mut doomed, mut gone) = (vec![id], BTreeSet::new());
        while let Some(id) = doomed.pop().filter(|id| self.rows.contains_key(id)) {
            let merged = self.superseded_by(id).into_iter();
            doomed.extend(merged.filter(|(_, mode)| *mode == SupersedeMode::Duplicate).map(|(old, _)| old));
            gone.extend(self.forget_copies(id));
            self.erase(id);
            gone.insert(id);
        }
        self.forgotten.extend(&gone);
        gone
    }

    /// A copy carries over no row past the end that its caller gave (LIFE-55, LIFE-56); says how many there were.
    pub(crate) fn erase_ended(&mut self, now: Time) -> u64 {
        let ended = self.ended(now);
        ended.iter().for_each(|id| self.erase(*id));
        ended.len() as u64
    }

    /// Rows whose life is over and which nothing protects.
    pub(crate) fn ended(&self, now: Time) -> Vec<MemoryId> {
        let over = |row: &Row| row.expires.is_some_and(|end| end <= now) && !row.tags().contains("pinned");
        self.rows.iter().filter(|(_, row)| over(row)).map(|(id, _)| *id).collect()
    }

    pub(super) fn holders_where(&self, wanted: impl Fn(&Hold) -> bool) -> Vec<(MemoryId, u32)> {
        let all = self.rows.iter().flat_map(|(id, row)| row.holders.iter().map(move |hold| (*id, hold)));
        all.filter(|(_, hold)| wanted(hold)).map(|(id, hold)| (id, hold.number)).collect()
    }

    /// Rows that went.
    pub(crate) fn forget_key(&mut self, key: &str) -> BTreeSet<MemoryId> {
        let doomed = self.holders_where(|hold| hold.key.as_deref() == Some(key));
        let gone = doomed.into_iter().filter(|(id, number)| self.detach(*id, &[*number]));
        let gone: BTreeSet<_> = gone.map(|(id, _)| id).collect();
        self.forgotten.extend(&gone);
        gone
    }

    /// Rows that went with the holders that are wanted; what they had superseded is live again.
    pub(crate) fn take(&mut self, wanted: impl Fn(&Hold) -> bool, now: Time) -> BTreeSet<MemoryId> {
        let (mut gone, mut left) = (BTreeSet::new(), Vec::new());
        let (mut back, mut apart) = (Vec::new(), Vec::new());
        let mut rows: BTreeMap<MemoryId, Vec<u32>> = BTreeMap::new();
        self.holders_where(wanted)
            .into_iter()
            .for_each(|(id, number)| rows.entry(id).or_default().push(number));
        let (written, was) = self.written_by(&rows);
        let led = |(id, numbers): &(&MemoryId, &Vec<u32>)| {
            let of_row = |number: &u32| self.rows[*id].holders.iter().find(|hold| hold.number == *number);
            let is_led = |hold: &Hold| {
                hold.follows
                    || hold.from.is_some_and(|from| {
                        let by = self.rows.get(&from).and_then(|row| row.superseded);
                        rows.contains_key(&from)
                            && by.is_some_and(|(_, mode)| mode != SupersedeMode::Duplicate)
                    })
            };
            numbers.iter().all(|number| of_row(number).is_some_and(is_led))
        };
        let (led, own): (Vec<_>, Vec<_>) = rows.iter().partition(led);
        let in_order = own.into_iter().chain(led).map(|(id, numbers)| (*id, numbers.clone()));
        for (id, mut numbers) in in_order.collect::<Vec<_>>() {
            let there = |row: &Row, number: &u32| row.holders.iter().any(|hold| hold.number == *number);
            let before = self.rows.get(&id).cloned();
            numbers.retain(|number| before.as_ref().is_some_and(|row| there(row, number)));
            let Some(before) = before.filter(|_| !numbers.is_empty()) else { continue };
            if !self.detach(id, &numbers) {
                let leavers = before.holders.into_iter().filter(|hold| numbers.contains(&hold.number));
                left.push((id, leavers.collect::<Vec<_>>()));
                continue;
            }
            gone.insert(id);
            let mut leavers = before.holders.iter().filter(|hold| numbers.contains(&hold.number));
            let is_of_import = leavers.any(|hold| hold.run.is_some());
            for (old, _) in self.superseded_by(id).into_iter().rev() {
                let merged = before.superseded.filter(|(_, mode)| *mode == SupersedeMode::Duplicate);
                match before.superseded {
                    Some(onward) if merged.is_none_or(|(at, _)| self.is_still_at(at, old, Some(id))) => {
                        self.lead_on(old, id, &before, onward);
                        back.push((old, id));
                    }
                    _ if is_of_import && let Some(by) = self.replaced_by_others(old) => {
                        self.rows.get_mut(&old).unwrap().superseded.as_mut().unwrap().0 = by;
                        apart.push(old);
                    }
                    _ => drop(self.restore(old, now, To::Undo).unwrap()),
                }
            }
        }
        back.into_iter().for_each(|(old, gone)| self.lead_ahead(old, gone, now));
        apart.into_iter().for_each(|old| self.lead_where_silent(old, now));
        for (id, leavers) in left {
            self.restore_of_leavers(id, &leavers, (&written, &was), now);
            self.lead_again(id, &leavers, now);
        }
        gone
    }

    /// What was to take the place of a row that is gone is to take the place of the one before: the keys of that lead there, and those
    /// of the row that is gone do not.
    fn lead_ahead(&mut self, id: MemoryId, gone: MemoryId, now: Time) {
        let Some(row) = self.rows.get(&id) else { return };
        let is_replaced = |(by, mode): (MemoryId, _)| (mode == SupersedeMode::Replaced).then_some(by);
        let by = row.superseded.and_then(is_replaced);
        let Some(by) = by.filter(|_| row.valid_to > Some(now)) else { return };
        let own = row.holders.clone();
        let (mut came, mut next, mut left) = (gone, Some(by), None::<BTreeSet<Option<String>>>);
        while let Some(at) = next {
            let Some(row) = self.rows.get_mut(&at) else { break };
            let copies = row.holders.extract_if(.., |hold| {
                let went = left.as_ref().is_none_or(|left| left.contains(&hold.key));
                hold.from == Some(came) && hold.follows && went
            });
            left = Some(copies.map(|hold| hold.key).collect());
            (came, next) = (at, row.superseded.and_then(is_replaced));
        }
        for hold in own.into_iter().filter(|hold| hold.key.is_some()) {
            self.lead_from(id, hold);
        }
    }

    /// What a caller had let take the place of a row by its name, or the row of its own for which the first of its writers has left it.
    fn replaced_by_others(&self, id: MemoryId) -> Option<MemoryId> {
        let by = *self.named.get(&id)?;
        let parted = self.parted.get(&by).into_iter().flat_map(BTreeMap::values);
        let stands = [by].iter().chain(parted).copied().find(|by| self.rows.contains_key(by));
        stands.filter(|by| !self.leads(*by, id))
    }

    /// The keys of a row lead to what has taken its place where they say nothing that is true or will be.
    fn lead_where_silent(&mut self, id: MemoryId, now: Time) {
        let own = self.rows.get(&id).map(|row| row.holders.clone()).unwrap_or_default();
        for hold in own {
            if hold.key.as_ref().is_some_and(|key| self.with_key(key, now).is_empty()) {
                self.lead_from(id, hold);
            }
        }
    }

    /// Keys that said what they had been led to lead there again.
    fn lead_again(&mut self, at: MemoryId, leavers: &[Hold], now: Time) {
        for leaver in leavers.iter().filter(|hold| !hold.follows) {
            let (Some(from), Some(key)) = (leaver.from, &leaver.key) else { continue };
            let Some(row) = self.rows.get(&from) else { continue };
            let is_led = row.superseded.is_some_and(|(by, mode)| {
                by == at && (mode != SupersedeMode::Duplicate || self.is_other_text(from, at))
            });
            let hold = row.holders.iter().find(|hold| hold.key.as_ref() == Some(key)).filter(|_| is_led);
            let differs = self.rows.get(&at).is_some_and(|there| there.text != row.text);
            if let Some(hold) = hold.filter(|hold| hold.follows || differs).cloned()
                && self.with_key(key, now).is_empty()
            {
                self.lead_from(from, hold);
            }
        }
    }

    /// The key of a superseded row leads to what has taken the place of the row, and on from there.
    fn lead_from(&mut self, mut from: MemoryId, hold: Hold) {
        while let Some((at, _)) = self.rows[&from].superseded {
            let agent = self.rows[&from].agent.clone();
            let Some(row) = self.rows.get_mut(&at).filter(|row| row.agent == agent) else { break };
            if row.holders.iter().any(|there| there.key == hold.key) {
                break;
            }
            let number = row.next_number();
            row.holders.push(Hold { number, share: 0, from: Some(from), follows: true, ..hold.clone() });
            from = at;
        }
    }

    /// The rows in which the writers with these numbers had written what they say, and what had superseded the rows of those that came
    /// from elsewhere.
    fn written_by(&self, leaving: &BTreeMap<MemoryId, Vec<u32>>) -> (Written, BTreeMap<MemoryId, MemoryId>) {
        let (mut written, mut was) = (Written::new(), BTreeMap::new());
        for (at, numbers) in leaving {
            let holders = self.rows[at].holders.iter();
            let writers: Vec<&Hold> = holders
                .filter(|hold| numbers.contains(&hold.number) && !hold.follows && hold.key.is_some())
                .collect();
            for key in writers.iter().filter(|hold| hold.from.is_some()).map(|hold| &hold.key) {
                let of_key =
                    self.rows.iter().filter(|(_, row)| row.holders.iter().any(|one| one.key == *key));
                was.extend(of_key.filter_map(|(id, row)| Some((*id, row.superseded?.0))));
            }
            let rows = writers.iter().map(|hold| Some((hold.key.clone(), self.written_in(*at, hold)?)));
            written.insert(*at, rows.collect());
        }
        (written, was)
    }

    fn written_in(&self, at: MemoryId, hold: &Hold) -> Option<MemoryId> {
        let (mut row, mut writer) = (at, hold);
        while let Some(from) = writer.from {
            match self.rows.get(&from)?.holders.iter().find(|one| one.key == writer.key) {
                // A caller had led the key there, which says that text by now.
                Some(before) if before.follows || self.is_other_text(from, row) => break,
                Some(before) => (row, writer) = (from, before),
                None => return Some(from),
            }
        }
        Some(row)
    }

    /// Whether a row that a caller had called a duplicate of another one says another text.
    fn is_other_text(&self, from: MemoryId, at: MemoryId) -> bool {
        let Some((row, other)) = self.rows.get(&from).zip(self.rows.get(&at)) else { return false };
        row.superseded.is_some_and(|(_, mode)| mode == SupersedeMode::Duplicate) && row.text != other.text
    }

    /// What the keys of writers said before comes back if these have left the row that took its place.
    fn restore_of_leavers(
        &mut self,
        at: MemoryId,
        leavers: &[Hold],
        (written, was): (&Written, &BTreeMap<MemoryId, MemoryId>),
        now: Time,
    ) {
        if self.rows.get(&at).is_none_or(|row| row.superseded.is_some()) {
            return;
        }
        let keys: BTreeSet<_> =
            leavers.iter().filter(|hold| !hold.follows).filter_map(|hold| hold.key.as_ref()).collect();
        let replaced = self.superseded_by(at).into_iter().filter(|(old, mode)| {
            let said = |hold: &Hold| hold.key.as_ref().is_some_and(|key| keys.contains(key));
            *mode != SupersedeMode::Duplicate
                && self.rows[old].holders.iter().any(said)
                // Otherwise a caller let another memory take its place.
                && written[&at].as_ref().is_none_or(|rows| {
                    let by = was.get(old).unwrap_or(&at);
                    self.rows[old].holders.iter().any(|hold| rows.get(&hold.key) == Some(by))
                })
                && !self.is_still_at(at, *old, None)
        });
        for (old, _) in replaced.collect::<Vec<_>>().into_iter().rev() {
            self.restore(old, now, To::Undo).unwrap();
        }
    }

    /// Whether a writer of a row, or of another one, is among those of the row `at`.
    fn is_still_at(&self, at: MemoryId, id: MemoryId, other: Option<MemoryId>) -> bool {
        let keys = self.rows[&id].keys();
        self.rows.get(&at).is_some_and(|row| {
            row.holders.iter().any(|there| {
                there.from.is_some_and(|from| from == id || Some(from) == other)
                    || there.key.as_ref().is_some_and(|key| keys.contains(key))
            })
        })
    }

    /// The rows into which rows were merged as their duplicates.
    pub(super) fn merged_from(&self, rows: &[MemoryId]) -> BTreeSet<MemoryId> {
        let (mut merged, mut open) = (BTreeSet::new(), rows.to_vec());
        while let Some(at) = open.pop() {
            let by = self.rows.get(&at).and_then(|row| row.superseded);
            let into = by.filter(|(_, mode)| *mode == SupersedeMode::Duplicate).map(|(by, _)| by);
            open.extend(into.filter(|into| merged.insert(*into)));
        }
        merged
    }

    /// A row whose superseder `gone` went is superseded by what had superseded that.
    pub(super) fn lead_on(
        &mut self,
        id: MemoryId,
        gone: MemoryId,
        was: &Row,
        onward: (MemoryId, SupersedeMode),
    ) {
        let row = self.rows.get_mut(&id).unwrap();
        if row.superseded.is_some_and(|(_, mode)| mode == SupersedeMode::Replaced) {
            row.valid_to = row.valid_to_before.take();
        }
        row.superseded = Some(onward);
        if onward.1 == SupersedeMode::Replaced {
            row.valid_to_before = row.valid_to;
            row.valid_to = [row.valid_to, was.valid_to].into_iter().flatten().min();
        }
        for hold in was.holders.iter().filter(|hold| hold.from == Some(id)) {
            let mut copies = self.rows.get_mut(&onward.0).into_iter().flat_map(|row| &mut row.holders);
            let like = |copy: &&mut Hold| {
                copy.from == Some(gone)
                    && (&copy.key, &copy.tags, copy.run, copy.count)
                        == (&hold.key, &hold.tags, hold.run, hold.count)
            };
            if let Some(copy) = copies.find(like) {
                copy.from = Some(id);
            }
        }
        self.adopt_words(id, gone, was, onward);
    }

    /// A key leads on from what it had said before, where an equal text had taken the place of what an import said through it.
    fn adopt_words(
        &mut self,
        id: MemoryId,
        gone: MemoryId,
        was: &Row,
        (by, mode): (MemoryId, SupersedeMode),
    ) {
        let own = self.rows[&id].holders.clone();
        let wrote = |copy: &Hold| {
            let is_its = |hold: &Hold| !hold.follows && hold.key == copy.key && hold.run == copy.run;
            copy.from == Some(gone) && !copy.follows && copy.run.is_some() && was.holders.iter().any(is_its)
        };
        let Some(row) = self.rows.get_mut(&by).filter(|_| mode != SupersedeMode::Duplicate) else { return };
        if row.holders.iter().all(|hold| hold.follows || wrote(hold)) {
            return;
        }
        for copy in row.holders.iter_mut().filter(|copy| wrote(copy)) {
            if let Some(hold) = own.iter().find(|hold| hold.key.is_some() && hold.key == copy.key) {
                let (number, share) = (copy.number, copy.share);
                *copy = Hold { number, share, from: Some(id), follows: true, ..hold.clone() };
            }
        }
    }

    /// Whether a writer of an import says another text through a key that had said one before the import.
    pub(super) fn is_of_before(&self, id: MemoryId, at: usize, edit: &Edit, now: Time) -> bool {
        let row = &self.rows[&id];
        let hold = &row.holders[at];
        let is_earlier = edit.run.is_some() && hold.run != edit.run;
        is_earlier && edit.text.is_some() && !hold.follows && row.current(now)
    }

    /// What the key had said gets a row of its own, which is superseded by the new text.
    pub(super) fn rewrite_apart(
        &mut self,
        id: MemoryId,
        at: usize,
        edit: Edit,
        new: MemoryId,
        now: Time,
    ) -> Told {
        let apart = edit.apart.unwrap_or(MemoryId::from_bytes([0; 16]));
        self.part_with(id, at, Edit::default(), apart, None);
        self.rewrite(apart, None, edit, new, now);
        Told::Revised(apart)
    }

    /// Where the key of a writer of a row that returns says something else, or has said itself what took the place of the row.
    pub(super) fn said_elsewhere(
        &self,
        id: MemoryId,
        hold: &Hold,
        chain: &[MemoryId],
        now: Time,
    ) -> Option<MemoryId> {
        let (other, at) = hold.key.as_deref().and_then(|key| self.holder_of(key, now))?;
        let there = &self.rows[&other].holders[at];
        let says = !there.follows && there.from == Some(id);
        (!chain.contains(&other) || says).then_some(other)
    }

    /// The earlier texts of a key whose place a row has taken, and at which nobody is any more there.
    fn versions(&self, key: &str, from: MemoryId) -> Vec<(MemoryId, SupersedeMode)> {
        let all = self.superseded_by(from).into_iter();
        let is_version = |old: &MemoryId| {
            let mut holders = self.rows[old].holders.iter();
            holders.any(|hold| hold.key.as_deref() == Some(key)) && !self.is_still_at(from, *old, None)
        };
        all.filter(|(old, mode)| *mode != SupersedeMode::Duplicate && is_version(old)).collect()
    }

    /// What a key had replaced follows it to a row of its own with the same text.
    pub(super) fn lead_versions(&mut self, key: &str, from: MemoryId, to: MemoryId) {
        for (old, mode) in self.versions(key, from) {
            self.rows.get_mut(&old).unwrap().superseded = Some((to, mode));
        }
    }

    /// When a row begins that a writer gets of its own: a begin that came as the row took the place of others is that of the keys
    /// which had said these.
    pub(super) fn begin_of(&self, id: MemoryId, at: usize) -> Option<Time> {
        if !self.rows[&id].begun {
            return self.rows[&id].valid_from;
        }
        let mut left = self.clone();
        let hold = left.rows.get_mut(&id).unwrap().holders.remove(at);
        let key = hold.key.filter(|_| !hold.follows);
        let led = key.is_some_and(|key| !left.versions(&key, id).is_empty());
        self.rows[&id].valid_from.filter(|_| led)
    }

    /// The holders that have said what the keys have said since, in the rows that only they have written.
    pub(super) fn words_in(&self, own: Vec<MemoryId>) -> Since {
        let words =
            |row: &Row| row.holders.iter().filter(|hold| !hold.follows).map(|hold| hold.number).collect();
        let rows = own.into_iter().filter_map(|id| Some((id, self.rows.get(&id)?)));
        rows.filter(|(_, row)| row.superseded.is_none()).map(|(id, row)| (id, words(row))).collect()
    }

    /// What keys said in the place of a row that is back becomes an earlier text, as the row is true.
    pub(super) fn replace_versions(&mut self, id: MemoryId, since: Since, now: Time) {
        let begins = self.rows[&id].valid_from.filter(|from| *from > now);
        for (other, numbers) in since {
            let from = self.rows[&other].valid_from.unwrap_or(Time::MIN);
            let how = begins.filter(|begins| from < *begins);
            let how = how.map_or((SupersedeMode::Correction, now), |at| (SupersedeMode::Replaced, at));
            let is_of_others =
                self.rows[&other].holders.iter().any(|hold| !hold.follows && !numbers.contains(&hold.number));
            if !is_of_others {
                // A key that is to say a text of its own later does not come along.
                let comes = |key: &str| {
                    let mut rows = self.with_key(key, now).into_iter();
                    rows.any(|(row, at)| row != other && row != id && self.to_come(row, at, now))
                };
                let all = self.rows[&other].holders.clone();
                let stay = all.iter().map(|hold| hold.key.as_deref().is_none_or(|key| !comes(key)));
                let stay: Vec<bool> = stay.collect();
                let mut stays = stay.into_iter();
                self.rows.get_mut(&other).unwrap().holders.retain(|_| stays.next().unwrap());
                self.replace((other, id), how.0, Some(None), [now, how.1]);
                self.rows.get_mut(&other).unwrap().holders = all;
                continue;
            }
            let row = self.rows.get_mut(&other).unwrap();
            for number in numbers {
                let at = row.holders.iter().position(|hold| hold.number == number).unwrap();
                row.part(at);
            }
        }
    }

    /// What replaces no other row any more is true from when it was before.
    pub(super) fn unbegin(&mut self, by: MemoryId) {
        let replaces = |(_, mode)| mode == SupersedeMode::Replaced;
        let stays = self.superseded_by(by).into_iter().any(replaces);
        if let Some(row) = self.rows.get_mut(&by).filter(|row| row.begun && !stays) {
            (row.valid_from, row.begun) = (None, false);
        }
    }

    pub(super) fn superseded_by(&self, id: MemoryId) -> Vec<(MemoryId, SupersedeMode)> {
        let rows = self.rows.iter().filter_map(|(old, row)| row.superseded.map(|by| (*old, by)));
        rows.filter(|(_, (by, _))| *by == id).map(|(old, (_, mode))| (old, mode)).collect()
    }
}
