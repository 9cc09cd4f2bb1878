//! Where writers that are about to leave rows had written.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::model::{Holder, MemoryId, SupersedeMode};
use crate::store::Rows;

/// Numbers of holders, by their rows.
pub(super) type ByRow = BTreeMap<MemoryId, Vec<u32>>;

pub(super) fn by_row(holders: Vec<(MemoryId, u32)>) -> ByRow {
    let mut rows = ByRow::new();
    for (id, number) in holders {
        rows.entry(id).or_default().push(number);
    }
    rows
}

/// Where writers that leave rows had written, and what had taken the place of the rows of their keys.
#[derive(Default)]
pub(super) struct Written {
    /// For each row that is left, the rows in which those who leave it had written, by their keys; none where nothing tells that of one
    /// of them.
    rows: BTreeMap<MemoryId, BTreeMap<String, MemoryId>>,
    /// What had superseded a row.
    superseded: BTreeMap<MemoryId, MemoryId>,
    /// The holders that only lead to their row, or came there: whether from a row whose place it has taken, and which is left as well.
    led: BTreeMap<(MemoryId, u32), bool>,
}

impl Written {
    /// Whether a caller had let a row with these keys, which now leads to `at`, be replaced by a row that none of these keys wrote.
    pub(super) fn is_by_caller(
        &self,
        at: MemoryId,
        (id, of_row): (MemoryId, &[String]),
        by: MemoryId,
    ) -> bool {
        // What was superseded by a row that has gone meanwhile is superseded by another one now.
        let by = self.superseded.get(&id).copied().unwrap_or(by);
        let wrote = |rows: &BTreeMap<String, MemoryId>| of_row.iter().any(|key| rows.get(key) == Some(&by));
        self.rows.get(&at).is_some_and(|rows| !wrote(rows))
    }

    /// Parts the holders that leave rows: those that came because their row has taken the place of one that goes first, and those of
    /// rows where all came from others; and all the rest.
    pub(super) fn led_last(&self, leaving: &ByRow) -> (ByRow, ByRow) {
        let (mut last, mut first) = (ByRow::new(), ByRow::new());
        for (id, numbers) in leaving {
            let only_led = numbers.iter().all(|number| self.led.contains_key(&(*id, *number)));
            for number in numbers {
                let came = self.led.get(&(*id, *number)).is_some_and(|came| *came);
                let part = if only_led || came { &mut last } else { &mut first };
                part.entry(*id).or_default().push(*number);
            }
        }
        (last, first)
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Where writers that are about to leave rows have written. It is asked before the first of them leaves: of a writer whose own
    /// row is gone nothing tells where it wrote.
    pub(super) fn written_by(&self, leaving: &ByRow) -> Result<Written> {
        let (ns, tx, mut written) = (self.ns(), &*self.ledger.tx, Written::default());
        // The holders of a key, by their rows. Many rows may be left by writers of one key.
        let mut of_keys: BTreeMap<String, BTreeMap<MemoryId, u32>> = BTreeMap::new();
        for (at, numbers) in leaving {
            let mut rows = Some(BTreeMap::new());
            for number in numbers {
                let leaver = sound(tx.holder(ns, *at, *number))?.flatten();
                if let Some(leaver) = &leaver {
                    let came = self.came_from_leaving(leaver, leaving)?;
                    written.led.extend((came || leaver.follows).then_some(((*at, *number), came)));
                }
                let leaver = leaver.filter(Holder::has_text);
                let Some((key, leaver)) = leaver.and_then(|leaver| Some((leaver.key.clone()?, leaver)))
                else {
                    continue;
                };
                if leaver.from.is_some() && !of_keys.contains_key(&key) {
                    let of_key: BTreeMap<_, _> = tx.holders_of_key(ns, &key)?.into_iter().collect();
                    for id in of_key.keys() {
                        let times = sound(tx.vitals(ns, *id))?.flatten().map(|row| row.times);
                        let by = times.and_then(|times| times.superseded_by());
                        written.superseded.extend(by.map(|by| (*id, by)));
                    }
                    of_keys.insert(key.clone(), of_key);
                }
                let row = self.written_in(*at, leaver, of_keys.get(&key))?;
                rows = rows.zip(row).map(|(mut rows, row)| {
                    rows.insert(key, row);
                    rows
                });
            }
            written.rows.extend(rows.map(|rows| (*at, rows)));
        }
        Ok(written)
    }

    /// Whether a writer came to its row because that has taken the place of a row which is left as well, and not because the two were
    /// united.
    fn came_from_leaving(&self, leaver: &Holder, leaving: &ByRow) -> Result<bool> {
        let Some(from) = leaver.from.filter(|from| leaving.contains_key(from)) else { return Ok(false) };
        let times = sound(self.ledger.tx.vitals(self.ns(), from))?.flatten().map(|row| row.times);
        let by = times.and_then(|times| times.superseded);
        Ok(by.is_some_and(|by| by.mode != SupersedeMode::Duplicate))
    }

    /// The row in which a writer of the row `at` has written what it says there, among the rows of its key: the first on its way. A key
    /// that a supersession had led to a row, and which has said the same since, has written there. None if nothing tells it.
    fn written_in(
        &self,
        at: MemoryId,
        mut writer: Holder,
        of_key: Option<&BTreeMap<MemoryId, u32>>,
    ) -> Result<Option<MemoryId>> {
        let (ns, mut row) = (self.ns(), at);
        // Damaged rows could lead in a circle, so no row is visited twice.
        let mut seen = BTreeSet::new();
        while let Some(from) = writer.from.filter(|from| seen.insert(*from)) {
            let Some(number) = of_key.and_then(|of_key| of_key.get(&from)) else {
                return Ok(self.ledger.tx.has_row(ns, from)?.then_some(from));
            };
            match sound(self.ledger.tx.holder(ns, from, *number))?.flatten() {
                Some(before) if before.follows || self.is_led((row, &writer), (from, &before))? => break,
                Some(before) => (row, writer) = (from, before),
                None => return Ok(None),
            }
        }
        Ok(Some(row))
    }

    /// Whether a writer of a row that a caller had called a duplicate of another one was led there, and says the text there by now.
    fn is_led(&self, (at, writer): (MemoryId, &Holder), (from, before): (MemoryId, &Holder)) -> Result<bool> {
        // A pass that unites rows leaves a key its own text.
        if writer.text.is_some() {
            return Ok(false);
        }
        let times = sound(self.ledger.tx.vitals(self.ns(), from))?.flatten().map(|row| row.times);
        let is_merged = times.is_some_and(|times| times.merged_into().is_some());
        Ok(is_merged && self.was_led(at, (from, before.clone()))?)
    }

    /// Whether a writer of a row was led to another text, as the row `at` took its place.
    pub(super) fn was_led(&self, at: MemoryId, (from, before): (MemoryId, Holder)) -> Result<bool> {
        let (old, new) = (self.ledger.load_there(self.ns(), from), self.ledger.load_there(self.ns(), at));
        let said = sound(old)?.flatten().zip(sound(new)?.flatten());
        Ok(said.is_some_and(|((_, old), (_, new))| before.led_on(&old.text, &new.text).follows))
    }
}
