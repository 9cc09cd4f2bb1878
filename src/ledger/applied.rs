//! What a change did, for the answer to the caller and for the changes that follow from it.

use crate::model::{Holder, MemoryId, Overtaken, SupersedeMode, Supersession, Time, Vitals};

/// What applying a change did, for the answer to the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Applied {
    /// The rows that were erased.
    pub(crate) erased: Vec<Erased>,
    /// The keys of those holders that left a damaged row and can't be read.
    pub(crate) lost_keys: Vec<String>,
    /// What is left of the row from which holders were detached; none if the row is gone.
    pub(crate) left: Option<Left>,
    /// The number of keyless writes that were merged into a row and went with it.
    pub(crate) went_with: u64,
    /// What restoring, or returning from limbo, did.
    pub(crate) restored: Option<Restored>,
    /// What still tells of messages that were erased while their row stays.
    pub(crate) derived: Vec<MemoryId>,
    /// The number of messages without a memory of their own that were taken back.
    pub(crate) withdrawn: u64,
    /// What merging did.
    pub(crate) merged: Option<Merged>,
    /// The number of writes whose key was renamed.
    pub(crate) renamed: u64,
}

/// A row that was erased.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Erased {
    /// The memory.
    pub(crate) id: MemoryId,
    /// The rows that it had superseded, and how.
    pub(crate) predecessors: Vec<(MemoryId, SupersedeMode)>,
    /// The row that had superseded it.
    pub(crate) onward: Option<Onward>,
    /// The summaries and consolidated rows that were made from it.
    pub(crate) derived: Vec<MemoryId>,
}

/// The supersession of an erased row, and what the row had taken along.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Onward {
    /// The erased row.
    pub(super) gone: MemoryId,
    /// How the row was superseded.
    pub(super) superseded: Supersession,
    /// The begin and the end of the row in world time.
    pub(super) valid_from: Option<Time>,
    pub(super) valid_to: Option<Time>,
    /// Whether the row was merged, so that its reinforcement went along.
    pub(super) merged: bool,
    /// Whether the row has gone as an old version: what it had superseded stays superseded as it was.
    pub(super) is_past: bool,
    /// The holders that the row had.
    pub(super) holders: Vec<Holder>,
}

impl Onward {
    /// What an erased row leads on to.
    pub(super) fn of(gone: MemoryId, vitals: &Vitals, holders: &[Holder]) -> Option<Self> {
        vitals.times.superseded.map(|superseded| Onward {
            gone,
            superseded,
            valid_from: vitals.times.valid_from,
            valid_to: vitals.times.valid_to,
            merged: vitals.times.removed_at.is_some(),
            is_past: false,
            holders: holders.to_vec(),
        })
    }
}

impl Onward {
    /// The row that the erased one had been merged into, if it had.
    pub(crate) fn merged_into(&self) -> Option<MemoryId> {
        let is_duplicate = self.superseded.mode == SupersedeMode::Duplicate;
        (self.merged || is_duplicate).then_some(self.superseded.by)
    }

    /// The erased row.
    pub(crate) fn gone(&self) -> MemoryId {
        self.gone
    }

    /// The holders that the erased row had.
    pub(crate) fn holders(&self) -> &[Holder] {
        &self.holders
    }

    /// Whether a copy of a holder says only what an import had written in the erased row.
    pub(super) fn wrote(&self, copy: &Holder) -> bool {
        let is_its = |holder: &Holder| holder.has_text() && copy.run == holder.run && copy.is_copy_of(holder);
        copy.run.is_some() && self.holders.iter().any(is_its)
    }

    /// The row that had taken the place of the erased one as a new fact, if one had.
    pub(crate) fn replaced_by(&self) -> Option<MemoryId> {
        let is_replaced = self.superseded.mode == SupersedeMode::Replaced;
        (is_replaced && !self.merged).then_some(self.superseded.by)
    }

    /// The row that was to take the place of the erased one at an instant that lay ahead when that was said, and the instant.
    pub(crate) fn told(&self) -> Option<(MemoryId, Time)> {
        self.replaced_by().zip(self.valid_to.filter(|end| *end > self.superseded.at))
    }

    /// Since when it has been known that the place of the erased row is taken.
    pub(crate) fn at(&self) -> Time {
        self.superseded.at
    }

    /// The memory that has brought the erased row together with what was to take its place.
    pub(crate) fn via(&self) -> Option<MemoryId> {
        self.superseded.via
    }

    /// The same for a row whose place the erased one was to take at an instant ahead, as this was told: where the erased row has been
    /// corrected, the correction takes the place by then.
    pub(crate) fn for_told(&self, told: Option<Overtaken>) -> Self {
        let is_corrected = self.superseded.mode == SupersedeMode::Correction && !self.merged;
        let told = told.filter(|_| is_corrected);
        told.map_or_else(
            || self.clone(),
            |told| self.replaced_as(Overtaken { by: self.superseded.by, ..told }),
        )
    }

    /// The same, where another row takes the place as it was announced for the row that is back.
    pub(crate) fn replaced_as(&self, Overtaken { by, end, at, via }: Overtaken) -> Self {
        let superseded = Supersession { by, at, via, mode: SupersedeMode::Replaced };
        Onward { superseded, valid_to: Some(end), ..self.clone() }
    }

    /// To where what a row had superseded goes on, if the writer who had replaced that has left: for a row of its own with the same
    /// text, or for good, so that a tombstone stands there.
    pub(crate) fn apart(from: MemoryId, to: MemoryId, at: Time) -> Self {
        let superseded = Supersession { by: to, mode: SupersedeMode::Duplicate, at, via: None };
        Onward {
            gone: from,
            superseded,
            valid_from: None,
            valid_to: None,
            merged: true,
            is_past: false,
            holders: Vec::new(),
        }
    }
}

/// What is left of a row after holders have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whether the holders wrote the text of the row, and other holders of the row wrote it too.
    pub(crate) text_held: bool,
    /// Whether another writer says now what the row says: its text, or what else is known of the text.
    pub(crate) said_anew: bool,
}

/// What else restoring a memory did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Restored {
    /// Keys that another memory has taken since. They stay there.
    pub(crate) keys_taken: Vec<String>,
    /// The memories that its keys had written in its place, which are earlier texts of these keys now.
    pub(crate) replaced: Vec<MemoryId>,
    /// The memory that has taken its place, because all its writers have said something else meanwhile.
    pub(crate) superseded_by: Option<MemoryId>,
    /// The keys of those of its writers that have said something since which has ended for good.
    pub(crate) keys_ended: Vec<String>,
    /// Whether it stays where it is, because these are all its writers.
    pub(crate) stays: bool,
}

impl Restored {
    /// Whether the memory is live again.
    pub(crate) fn is_live(&self) -> bool {
        self.superseded_by.is_none() && !self.stays
    }

    /// What did not come back with the memory.
    pub(crate) fn lost(&self, id: MemoryId) -> Vec<String> {
        let what = match self.superseded_by {
            Some(by) => format!("superseded by {by}, which its writer has said since"),
            None => "another memory has it".to_owned(),
        };
        let of_key = |key: &String, what: &str| format!("key {key} of {id}: {what}");
        let taken = self.keys_taken.iter().map(|key| of_key(key, &what));
        let ended = self.keys_ended.iter().map(|key| of_key(key, "what its writer has said since has ended"));
        taken.chain(ended).collect()
    }
}

/// What a [`Merge`](crate::ledger::Merge) did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Merged {
    /// The rows that were removed.
    pub(crate) removed: Vec<MemoryId>,
    /// The reinforcement that they brought, counted by the rule: at least 1 for each.
    pub(crate) transferred: u64,
    /// The number of rows that were left out.
    pub(crate) skipped: u64,
    /// The version of the row that stays, for the next slice of the same group; 0 if nothing was merged.
    pub(crate) version: u64,
}
