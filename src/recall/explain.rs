//! Where a memory came from, and what happened to it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::{Result, sound};
use crate::model::{
    Actor, Aggregate, InContext, JournalRow, MemoryId, Op, Page, RuleId, RunId, State, SupersedeMode, Tier,
    Time, Tombstone, TombstoneReason, Vitals,
};
use crate::recall::Reader;
use crate::recall::read::Named;
use crate::store::{NsId, PartId, Rows, Walk, keys};
use crate::text::normal_form;

/// One version of a record of the caller's world. [`Namespace::text`](crate::Namespace::text) reads what it said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Version {
    /// The memory.
    pub id: MemoryId,
    /// The state at the instant of the read.
    pub state: State,
    /// The transaction time of the first write; none if only a tombstone is left.
    pub recorded_at: Option<Time>,
    /// The transaction time of the supersession or the removal.
    pub ended_at: Option<Time>,
    /// The memory that took its place.
    pub superseded_by: Option<MemoryId>,
    /// How the memory was superseded.
    pub mode: Option<SupersedeMode>,
}

/// All versions that a name leads to, and what happened to them, without their texts:
/// [`Namespace::text`](crate::Namespace::text) reads the text of a version by its id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Ordered by transaction time, then by id. If only a tombstone is left, the time of the removal counts.
    pub versions: Vec<Version>,
    /// The journal rows of all versions, oldest first, as far as the journal is kept.
    pub events: Vec<JournalRow>,
    /// Versions of which the text, the state or a writer can't be read, and messages that began a family that can't be read.
    pub damaged: Vec<MemoryId>,
}

/// How a memory was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Origin {
    /// The transaction time; none if the memory and its journal are gone.
    pub at: Option<Time>,
    /// The run that made the memory.
    pub run: Option<RunId>,
    /// The rule that stored the memory, as far as the journal is kept.
    pub rule: Option<RuleId>,
    /// Who wrote the memory, as far as the journal is kept.
    pub actor: Option<Actor>,
}

/// How a memory was removed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Removal {
    /// The transaction time.
    pub at: Time,
    /// The reason.
    pub reason: TombstoneReason,
    /// The run that removed the memory.
    pub run: Option<RunId>,
    /// The rule that decided, as far as the journal is kept.
    pub rule: Option<RuleId>,
}

/// Everything that is known of one memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The memory.
    pub id: MemoryId,
    /// The state at the instant of the read.
    pub state: State,
    /// How the memory was created.
    pub created: Origin,
    /// Memories that were merged into the memory.
    pub merged_from: Vec<MemoryId>,
    /// Memories that the memory replaced in another way.
    pub replaces: Vec<MemoryId>,
    /// The memory that took its place.
    pub replaced_by: Option<MemoryId>,
    /// How the memory was removed; none if it was not.
    pub removed: Option<Removal>,
    /// The family of repeated messages to which the memory belongs, as its first message or as the memory that stands
    /// for the family. None as long as there is no repeat.
    pub family: Option<Aggregate>,
    /// Of a summary: how many of its sources were forgotten after it was made.
    pub source_forgotten: u64,
    /// The latest contexts in which the memory was, at most 20, the latest first. Their cursor goes on with
    /// [`Namespace::contexts_of`](crate::Namespace::contexts_of).
    pub contexts: Page<InContext>,
    /// The journal rows of the memory, oldest first, as far as the journal is kept.
    pub events: Vec<JournalRow>,
    /// What of the memory is damaged, a text each. What follows from it is missing from the explanation.
    pub damaged: Vec<String>,
}

/// Contexts of an explanation.
const CONTEXTS: usize = 20;

impl Reader<'_> {
    /// Every version of what `name` stands for: the chain of supersessions in both directions, and all memories that
    /// ever held the key.
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`.
    pub(crate) fn history(&self, name: &str) -> Result<History> {
        let (Some(ns), Some(named)) = (self.ns, self.resolve(name)?) else {
            return self.ignored(name)?.ok_or_else(|| self.not_found(name));
        };
        let mut open = vec![match &named {
            Named::Row(id, ..) => *id,
            Named::Gone(tombstone) => tombstone.id,
        }];
        open.extend(self.rows().holders_of_key(ns, name)?.into_iter().map(|(id, _)| id));
        let mut history = History::default();
        for hash in self.secret.names_of_key(name) {
            for id in self.rows().tombstones_of_hash(ns, &hash)? {
                let found = sound(self.rows().tombstone(ns, id))?;
                history.damaged.extend(found.is_none().then_some(id));
                open.extend(
                    found.flatten().filter(|found| found.key_hashes.contains(&hash)).map(|found| found.id),
                );
            }
        }
        let (mut seen, mut merged) = (BTreeSet::new(), BTreeSet::new());
        // One row of the journal may tell of many versions.
        let mut seqs = Vec::new();
        let named: BTreeSet<MemoryId> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let version = sound(self.version(ns, id))?;
            let is_readable = version.is_some() && self.can_be_told(ns, id)?;
            history.damaged.extend((!is_readable).then_some(id));
            history.damaged.extend(self.family_lost_of(ns, id)?);
            seqs.extend(self.rows().journal_numbers(&Walk::prefix(&keys::memory(ns, id)))?);
            let Some(version) = version.flatten() else { continue };
            if version.mode == Some(SupersedeMode::Duplicate) {
                merged.extend(version.superseded_by);
            }
            open.extend(version.superseded_by);
            open.extend(self.versions_before(ns, id, merged.contains(&id) && !named.contains(&id))?);
            history.versions.push(version);
        }
        history
            .versions
            .sort_unstable_by_key(|version| (version.recorded_at.or(version.ended_at), version.id));
        history.damaged.sort_unstable();
        history.damaged.dedup();
        history.events = self.rows().journal_rows(ns, seqs)?;
        Ok(history)
    }

    /// Whether the text and the writers of a version can be read, where it has any.
    fn can_be_told(&self, ns: NsId, id: MemoryId) -> Result<bool> {
        let Some(vitals) = sound(self.rows().vitals(ns, id))? else { return Ok(false) };
        let writers = |vitals| sound(self.holders(ns, id, vitals));
        let has_writers = vitals.as_ref().map(writers).transpose()?.is_none_or(|holders| holders.is_some());
        Ok(has_writers && sound(self.rows().content(ns, id))?.is_some())
    }

    /// The memories whose place one took. Where a version went into a memory that stands for many, such as a summary, the others
    /// that went into it are no versions of it.
    fn versions_before(&self, ns: NsId, id: MemoryId, is_merged: bool) -> Result<Vec<MemoryId>> {
        let mut all = self.rows().superseded_by(ns, id)?;
        if is_merged {
            let mut modes = Vec::with_capacity(all.len());
            for old in &all {
                let row = sound(self.rows().vitals(ns, *old))?.flatten();
                modes.push(row.and_then(|row| row.times.superseded).map(|superseded| superseded.mode));
            }
            let mut modes = modes.into_iter();
            all.retain(|_| modes.next().flatten() != Some(SupersedeMode::Duplicate));
        }
        Ok(all)
    }

    /// What the journal tells of a write that was not stored. The write was answered with this id.
    fn ignored(&self, name: &str) -> Result<Option<History>> {
        let (Some(ns), Ok(id)) = (self.ns, name.parse()) else { return Ok(None) };
        let events = self.rows().journal_of(ns, id)?;
        Ok((!events.is_empty()).then(|| History { events, ..History::default() }))
    }

    fn version(&self, ns: NsId, id: MemoryId) -> Result<Option<Version>> {
        if let Some(vitals) = self.rows().vitals(ns, id)? {
            let superseded = vitals.times.superseded;
            return Ok(Some(Version {
                id,
                state: vitals.times.state(self.now),
                recorded_at: Some(vitals.times.recorded_at),
                ended_at: superseded.map(|superseded| superseded.at).or(vitals.times.removed_at),
                superseded_by: superseded.map(|superseded| superseded.by),
                mode: superseded.map(|superseded| superseded.mode),
            }));
        }
        Ok(self.rows().tombstone(ns, id)?.map(|tombstone| Version {
            id,
            state: State::Tombstoned,
            recorded_at: None,
            ended_at: Some(tombstone.deleted_at),
            superseded_by: tombstone.replaced_by,
            mode: None,
        }))
    }

    /// What is known of the memory with an id, a key or a content, looked up in this order. A content means a current
    /// memory, or else the memory with that content that was removed last.
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`.
    pub(crate) fn explain(&self, name_or_text: &str) -> Result<Explanation> {
        let Some(ns) = self.ns else { return Err(self.not_found(name_or_text)) };
        let named = match self.resolve(name_or_text)? {
            Some(named) => Some(named),
            None => self.by_content(ns, name_or_text)?,
        };
        match named {
            Some(Named::Row(id, vitals, _)) => self.explain_row(ns, id, &vitals),
            Some(Named::Gone(tombstone)) => self.explain_gone(ns, tombstone),
            None => Err(self.not_found(name_or_text)),
        }
    }

    fn by_content(&self, ns: NsId, text: &str) -> Result<Option<Named>> {
        if let Some(fingerprint) = normal_form(text).prefix() {
            let agents = self.rows().partitions(ns)?.into_iter().map(|(_, part)| part);
            for part in std::iter::once(PartId(0)).chain(agents) {
                for tier in Tier::ALL {
                    let mut equal = None;
                    self.rows().by_fingerprint(ns, part, *tier, &fingerprint, &[], &mut |id| {
                        equal = sound(self.rows().text(ns, id))?
                            .flatten()
                            .filter(|found| found == text)
                            .map(|_| id);
                        Ok(if equal.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                    })?;
                    if let Some(id) = equal {
                        return self.by_id(ns, id);
                    }
                }
            }
        }
        let hashes = self.secret.names_of_content(text);
        let has_text = |found: &Tombstone| hashes.contains(&found.content_hash);
        Ok(self.latest_tombstone(ns, &hashes, has_text)?.map(Named::Gone))
    }

    fn explain_row(&self, ns: NsId, id: MemoryId, vitals: &Vitals) -> Result<Explanation> {
        let events = self.rows().journal_of(ns, id)?;
        let mut damaged = Vec::new();
        let content = noted(self.rows().content(ns, id), &mut damaged)?;
        let mut merged_from = content.unwrap_or_default().consolidated_from;
        let known: BTreeSet<MemoryId> = merged_from.iter().copied().collect();
        let mut replaces = Vec::new();
        for old in self.rows().superseded_by(ns, id)? {
            let superseded =
                sound(self.rows().vitals(ns, old))?.flatten().and_then(|old| old.times.superseded);
            match superseded.map(|superseded| superseded.mode) {
                Some(SupersedeMode::Duplicate) if known.contains(&old) => {}
                Some(SupersedeMode::Duplicate) => merged_from.push(old),
                _ => replaces.push(old),
            }
        }
        let holders = noted(self.holders(ns, id, vitals).map(Some), &mut damaged)?.unwrap_or_default();
        let run = holders.iter().find(|holder| holder.from.is_none()).and_then(|holder| holder.run);
        let created = Origin { at: Some(vitals.times.recorded_at), run, ..origin(&events) };
        // A row in limbo still exists, and its tombstone already says why it was removed.
        let tombstone = noted(self.rows().tombstone(ns, id), &mut damaged)?;
        let removed = tombstone.map(|tombstone| removal(&tombstone, &events));
        let access = noted(self.rows().access(ns, id).map(Some), &mut damaged)?;
        let replaced_by = vitals.times.superseded_by();
        let state = vitals.times.state(self.now);
        Ok(Explanation {
            id,
            state,
            created,
            merged_from,
            replaces,
            replaced_by,
            removed,
            family: self.family_of(ns, id)?,
            source_forgotten: access.map_or(0, |access| access.source_forgotten),
            contexts: self.in_contexts(ns, id, None, CONTEXTS)?,
            events,
            damaged,
        })
    }

    fn explain_gone(&self, ns: NsId, tombstone: Tombstone) -> Result<Explanation> {
        let events = self.rows().journal_of(ns, tombstone.id)?;
        let removed = removal(&tombstone, &events);
        Ok(Explanation {
            id: tombstone.id,
            state: State::Tombstoned,
            created: Origin { run: tombstone.made_by, ..origin(&events) },
            merged_from: tombstone.merged_from,
            replaces: Vec::new(),
            replaced_by: tombstone.replaced_by,
            removed: Some(removed),
            family: self.family_of(ns, tombstone.id)?,
            source_forgotten: 0,
            contexts: self.in_contexts(ns, tombstone.id, None, CONTEXTS)?,
            events,
            damaged: Vec::new(),
        })
    }
}

/// What was read; none where it is damaged, which is noted.
fn noted<T>(read: Result<Option<T>>, damaged: &mut Vec<String>) -> Result<Option<T>> {
    match read {
        Err(why) if why.is_damage() => {
            damaged.push(why.to_string());
            Ok(None)
        }
        read => read,
    }
}

/// How a memory was removed. The rule comes from the journal, from the step that wrote the tombstone: a row in limbo goes in
/// two steps.
fn removal(tombstone: &Tombstone, events: &[JournalRow]) -> Removal {
    let mut removals =
        events.iter().rev().filter(|row| matches!(row.op, Op::Remove | Op::Retire | Op::Merge));
    let rule = removals.find(|row| row.at == tombstone.deleted_at).map(|row| row.rule);
    Removal { at: tombstone.deleted_at, reason: tombstone.reason, run: tombstone.run, rule }
}

/// What the journal says of the creation.
fn origin(events: &[JournalRow]) -> Origin {
    let first = events.iter().find(|row| matches!(row.op, Op::Insert | Op::Recreate));
    first.map_or_else(Origin::default, |row| Origin {
        at: Some(row.at),
        run: row.run,
        rule: Some(row.rule),
        actor: Some(row.actor),
    })
}
