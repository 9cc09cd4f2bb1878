//! What an export carries besides memories and tombstones: memories in limbo, runs that can be undone, families of
//! messages. Also the check that a memory read back is whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{HOLDER_NUMBER_MAX, at_most, within};
use crate::model::context::ContextLog;
use crate::model::decision::RuleId;
use crate::model::draft::PINNED_TAG;
use crate::model::event::{Aggregate, Event};
use crate::model::goal::Goal;
use crate::model::history::{JournalRow, Op, Tombstone};
use crate::model::id::{AggregateId, MemoryId, RunId};
use crate::model::kind::{State, SupersedeMode};
use crate::model::limbo::Limbo;
use crate::model::memory::{Holder, Memory};
use crate::model::run::{RunSort, RunState};
use crate::model::time::Time;

/// A run of which something can still be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The id.
    pub id: RunId,
    /// What the run does.
    #[serde(rename = "what")]
    pub sort: RunSort,
    /// The transaction time of the start.
    pub started_at: Time,
    /// How far the run is.
    pub state: RunState,
    /// The number of journal rows that are still to be undone.
    pub steps: u64,
    /// What its parts did, by name: an undo says by these what it does not bring back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
}

/// A family of messages in one slice of time, as stored with the message that began it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// The family, which is the same in every slice of one exact key.
    #[serde(rename = "family_id")]
    pub id: MemoryId,
    /// The memory that the first message became.
    pub first_memory: MemoryId,
    /// When the earliest member was written.
    pub ts_first: Time,
    /// When the latest member was written.
    pub ts_last: Time,
    /// The number of members.
    pub count: u64,
    /// The tokens of the first message.
    pub tokens: Vec<String>,
    /// The id of the normalizer that made SimHash and tokens.
    pub sim_normalizer: String,
    /// The aggregate, from the second member on.
    pub aggregate_id: Option<AggregateId>,
}

/// A row of an export.
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// A memory with everything that the engine kept of it.
    Memory(Box<Memory>),
    /// The tombstone of a memory that is gone.
    Tombstone(Tombstone),
    /// A run. As many [`Kept::Step`] follow as it says.
    Run(Run),
    /// A journal row that `undo` of the run before it needs. Its number, its actor and its policy become those of the
    /// database that receives it.
    Step(Box<JournalRow>),
    /// A family of messages in numbers. Its members follow.
    Aggregate(Box<Aggregate>),
    /// A message, with the family that it began.
    Event(Box<Event>, Option<Box<Family>>),
    /// An end of a link, or of provenance, that did not exist when its memory was put back.
    Joint(Joint),
    /// A context of the inclusion log, whose memories have counted it.
    Context(Box<ContextLog>),
    /// A goal.
    Goal(Box<Goal>),
}

impl Kept {
    /// The number of lines behind its own that belong to it: the messages of an aggregate that have not ended, and the steps of
    /// a run.
    ///
    /// ```
    /// use oubliette::exchange::{ParsedLine, parse_line};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # let run = team.start_import()?;
    /// let line = format!(r#"{{"run":{{"id":"{run}","what":"import","started_at":"2026-01-03T10:00:00Z","state":"done","steps":2}}}}"#);
    /// let ParsedLine::Kept(line) = parse_line(line.as_bytes(), false)? else { panic!() };
    /// assert_eq!(line.row.lines_behind(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines_behind(&self) -> u64 {
        match self {
            Kept::Aggregate(aggregate) => aggregate.dup_count.saturating_sub(aggregate.events_ended),
            Kept::Run(run) => run.steps,
            _ => 0,
        }
    }
}

/// An end of a link, or of the provenance of a memory, that stands later in an export than the memory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joint {
    /// The memory.
    pub id: MemoryId,
    /// The number of the holder that brings the link. None means that the memory was made from `to`.
    pub number: Option<u32>,
    /// The other end.
    pub to: MemoryId,
    /// The relation of a link.
    pub relation: String,
}

impl JournalRow {
    /// What maintenance does to memories and `undo` takes back.
    pub(crate) const UNDONE: [Op; 5] = [Op::Insert, Op::Merge, Op::Retire, Op::Supersede, Op::Adjust];

    /// Whether `undo` of the run looks at the row: the row tells of something that the engine's own maintenance did to
    /// memories, or of a memory whose place a line of an import let another one take.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// assert!(!team.history(tea)?.events[0].can_be_undone()); // No maintenance did it.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn can_be_undone(&self) -> bool {
        match self.actor {
            crate::model::Actor::Sweeper => Self::UNDONE.contains(&self.op),
            _ => self.run.is_some() && self.is_named_supersession(),
        }
    }

    /// Whether the row tells of a memory that a write or a caller has named, to be superseded.
    pub(crate) fn is_named_supersession(&self) -> bool {
        self.op == Op::Supersede && self.rule == RuleId::SUPERSEDE
    }

    /// Whether the memory was made for a writer that has left another memory for it.
    pub(crate) fn is_parted(&self) -> bool {
        self.op == Op::Insert && self.rule == RuleId::DETACH
    }

    /// Where the memory was led on from one that has gone: what it was led to, and what has gone.
    pub(crate) fn led_on(&self) -> Option<(MemoryId, MemoryId)> {
        match self.evidence.members[..] {
            [to, gone] if self.op == Op::Supersede => Some((to, gone)),
            _ => None,
        }
    }
}

/// The highest count of changes that a line may name. As many changes again still have room.
const COUNT_MAX: u64 = u64::MAX / 2;

impl Memory {
    /// Checks that everything which the memory says of itself agrees, as it does in a memory read from a database.
    ///
    /// # Errors
    /// `Invalid` naming the first member that contradicts another member or a bound.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.check_times()?;
        self.check_state()?;
        self.check_holders()?;
        self.check_unions()?;
        for (field, count) in [("version", self.version), ("access_seq", self.access_seq)] {
            at_most(field, count, COUNT_MAX)?;
        }
        if self.version == 0 {
            return Err(Error::invalid("version", "must be at least 1", 0));
        }
        let shares: u64 = self.holders.iter().map(|holder| u64::from(holder.share)).sum();
        let least = shares.min(u64::from(u32::MAX)).max(1);
        if u64::from(self.reinforcement_count) < least {
            let why = format!("must be at least the shares of its holders, {least}");
            return Err(Error::invalid("reinforcement_count", why, self.reinforcement_count));
        }
        Ok(())
    }

    /// A memory is removed after it was recorded. The memory that took its place may have been superseded
    /// before the removal.
    fn check_times(&self) -> Result<()> {
        let times = self.times();
        if let Some(by) = times.superseded_by().filter(|by| *by == self.id) {
            return Err(Error::invalid("superseded_by", "must not be the memory itself", by));
        }
        if let Some(removed) = times.removed_at.filter(|removed| *removed < times.recorded_at) {
            return Err(Error::invalid("removed_at", "must not lie before recorded_at", removed));
        }
        if let (None, Some(since)) = (times.valid_from, times.valid_from_recorded_at) {
            return Err(Error::invalid(
                "valid_from_recorded_at",
                "must stand beside valid_from alone",
                since,
            ));
        }
        let replaced = times.superseded.is_some_and(|by| by.mode == SupersedeMode::Replaced);
        if let (None, Some(announced)) = (times.superseded, times.announced) {
            let why = "is allowed only beside superseded_by";
            return Err(Error::invalid("announced_valid_to", why, announced.end));
        }
        if let Some(before) = times.valid_to_before {
            if !replaced {
                let why = "is allowed only with supersede_mode replaced";
                return Err(Error::invalid("valid_to_before", why, before));
            }
            if times.valid_to.is_none_or(|to| to > before) {
                let why = "must not lie before valid_to, which a supersession cut";
                return Err(Error::invalid("valid_to_before", why, before));
            }
        }
        Ok(())
    }

    /// The state must agree with the instants. Only the reader's clock says whether a memory has expired.
    fn check_state(&self) -> Result<()> {
        let times = self.times();
        let is = match (self.state, times.removed_at, times.superseded) {
            (State::Limbo, Some(_), _) | (State::Superseded, None, Some(_)) => true,
            (State::Live, None, None) => true,
            (State::Expired, None, None) => times.expires_at.is_some(),
            _ => false,
        };
        if !is {
            let why = "must agree with removed_at, superseded_at and expires_at";
            return Err(Error::invalid("state", why, self.state.as_str()));
        }
        match (times.removed_at, &self.limbo) {
            (None, Some(_)) => Err(Error::invalid("limbo", "must stand beside removed_at alone", "limbo")),
            (Some(at), None) => Err(Error::invalid("limbo", "is required beside removed_at", at)),
            (None, None) => Ok(()),
            (Some(at), Some(limbo)) => self.check_limbo(at, limbo),
        }
    }

    fn check_limbo(&self, removed_at: Time, limbo: &Limbo) -> Result<()> {
        // The memory that took its place may have been replaced since: `superseded_by` says which memory
        // stands there now.
        if limbo.replaced && self.superseded.is_none() {
            return Err(Error::invalid("limbo.replaced", "must stand beside superseded_by alone", true));
        }
        if !limbo.replaced && limbo.transferred > 0 {
            let why = "must be 0 if nothing replaced the memory";
            return Err(Error::invalid("limbo.transferred", why, limbo.transferred));
        }
        let Some(tombstone) = &limbo.tombstone else { return Ok(()) };
        if tombstone.id != self.id {
            return Err(Error::invalid("limbo.tombstone.id", "must be that of the memory", tombstone.id));
        }
        if tombstone.deleted_at != removed_at {
            let why = "must equal removed_at";
            return Err(Error::invalid("limbo.tombstone.deleted_at", why, tombstone.deleted_at));
        }
        Ok(())
    }

    fn check_holders(&self) -> Result<()> {
        if self.holders.is_empty() {
            return Err(Error::invalid("holders", "must have at least one entry", "none"));
        }
        let mut numbers = self.holders.iter().map(|holder| holder.number);
        for (a, b) in numbers.clone().zip(numbers.clone().skip(1)) {
            if a >= b {
                return Err(Error::invalid("holders.number", "must ascend", b));
            }
        }
        let last = numbers.next_back().unwrap_or_default();
        at_most("holders.number", last, HOLDER_NUMBER_MAX)?;
        within("next_holder", self.next_holder, last + 1..=HOLDER_NUMBER_MAX + 1)?;
        for holder in &self.holders {
            if holder.count == 0 || (holder.count > 1 && holder.key.is_some()) {
                let why = "must be 1, and more only without a key";
                return Err(Error::invalid("holders.count", why, holder.count));
            }
            if holder.from == Some(self.id) {
                return Err(Error::invalid("holders.from", "must be another memory", self.id));
            }
            if holder.came_before(self.id, self.recorded_at) {
                let why = "must not lie before both recorded_at and the instant in the id";
                return Err(Error::invalid("holders.since", why, holder.since));
            }
            if holder.has_ended() && self.removed_at.is_none() && self.superseded.is_none() {
                let why = "must not name ended_since in a memory that is neither superseded nor in limbo";
                return Err(Error::invalid("holders.fields", why, holder.number));
            }
        }
        Ok(())
    }

    /// Keys, tags, links and other sets are the unions of those of the holders.
    fn check_unions(&self) -> Result<()> {
        fn union<'h, T: Ord + 'h>(
            holders: &'h [Holder],
            of: impl Fn(&'h Holder) -> &'h [T],
        ) -> std::collections::BTreeSet<&'h T> {
            holders.iter().flat_map(of).collect()
        }
        fn same<'h, T: Ord + 'h>(union: std::collections::BTreeSet<&'h T>, row: &'h [T]) -> bool {
            union.len() == row.len() && row.iter().collect::<std::collections::BTreeSet<_>>() == union
        }
        let holders = &self.holders;
        let agrees = [
            ("keys", same(union(holders, |holder| holder.key.as_slice()), &self.keys)),
            ("tags", same(union(holders, |holder| &holder.tags), &self.tags)),
            ("categories", same(union(holders, |holder| &holder.categories), &self.categories)),
            ("entities", same(union(holders, |holder| &holder.entities), &self.entities)),
            ("links", same(union(holders, |holder| &holder.links), &self.links)),
        ];
        if let Some((field, _)) = agrees.iter().find(|(_, agrees)| !agrees) {
            return Err(Error::invalid(*field, "must be the union over its holders", "others"));
        }
        if self.pinned != self.tags.iter().any(|tag| tag == PINNED_TAG) {
            let why = "must be true exactly when the tag pinned is there";
            return Err(Error::invalid("pinned", why, self.pinned));
        }
        Ok(())
    }
}
