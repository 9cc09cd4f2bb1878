//! A new text in the place of others, under the key by which the old text was known.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::engine::batch::Batch;
use crate::engine::namespace::Namespace;
use crate::engine::write::WriteOptions;
use crate::error::{Error, Result};
use crate::model::{Decision, Draft, Field, Memory, MemoryId, Name, Outcome, State, SupersedeMode, Time};
use crate::recall::Got;

/// When and how one memory takes the place of another.
#[derive(Clone, Copy)]
struct Change {
    mode: SupersedeMode,
    at: Option<Time>,
    now: Time,
}

/// A new text, with the names of the memories whose place it takes.
struct Text {
    draft: Draft,
    left: Vec<String>,
    /// Whether the text revises what its key says.
    revises: bool,
    change: Change,
}

impl Change {
    /// Whether the world changes later, so that until then a key answers with the old text.
    fn is_ahead(self) -> bool {
        self.at.is_some_and(|at| at > self.now)
    }

    /// Lets a draft revise what its key says. The instant of a change is given as the beginning too, so that what is to come is not seen
    /// before, and lives from then on.
    fn give_to(self, draft: &mut Draft) {
        draft.supersede_mode = Some(self.mode);
        self.begin(draft);
    }

    /// Gives the instant of a change as the beginning of what a draft says.
    fn begin(self, draft: &mut Draft) {
        if let Some(at) = self.at {
            draft.fields.valid_from = Field::Value(at);
        }
    }
}

impl Namespace {
    /// Writes a memory that takes the place of others, in their part of the namespace. Where the draft has no key, it is
    /// written under the first key of the old names whose memory is true now, so that this key can revise and forget what is
    /// true now. An id stands for the key of the first writer of its memory that has one; the keys of the others lead to the new
    /// memory. Where the draft has a key, what this key says now is replaced with the others. With [`Namespace::supersede`] such a key only leads to the new memory. A key stands for
    /// its own write: others that wrote the same text keep it. `at` is the instant at which the world changed, for the
    /// mode `replaced`; none stands for now, and for the beginning of a memory, named by its id, that is itself to take a place
    /// later. Until an instant ahead, the key means the old memory, and what it revises is replaced at the instant. Then it means the new one, as if the call had been made at that instant. Either way the new
    /// memory keeps what the draft does not give: tags, metadata, the pin, kind and tier.
    ///
    /// ```
    /// use oubliette::memory::SupersedeMode;
    /// use oubliette::{Draft, Forget};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
    /// let bruges = team.replace(["ann:home"], Draft::new("Ann lives in Bruges"), SupersedeMode::Replaced, None)?;
    /// assert_eq!(bruges.key.as_deref(), Some("ann:home"));
    /// team.forget("ann:home")?;
    /// assert!(team.search("Ann")?.hits.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Namespace::add`] and [`Namespace::supersede_all`]; `Conflict` for a text that a rule ignores; `Invalid` for memories of two parts, for an instant with
    /// a mode other than `replaced`, and for one before a memory that is itself to take a place begins.
    pub fn replace(
        &self,
        old: impl IntoIterator<Item = impl Into<Name>>,
        new: impl Into<Draft>,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<Outcome> {
        if let (Some(at), true) = (at, mode != SupersedeMode::Replaced) {
            return Err(Error::invalid("at", "must be given with the mode replaced alone", at));
        }
        let mut change = Change { mode, at, now: self.db.inner.clock.now() };
        let (mut draft, given) = (new.into(), old.into_iter().map(Into::into).collect::<Vec<Name>>());
        let (mut left, mut parts) = (Vec::<String>::new(), Vec::new());
        let (asked, mut revises) = (draft.key.clone(), false);
        let (mut seen, mut read) = (HashSet::new(), HashMap::new());
        for name in given.iter().filter(|name| seen.insert(*name)) {
            let Some(memory) = self.named_once(name, &mut read)? else {
                left.push(name.as_str().to_owned());
                continue;
            };
            let is_key = has_key(memory, name.as_str());
            let named = if is_key { Some(name.as_str()) } else { own_key(memory) };
            left.push(match named {
                Some(key) if is_key || self.is_all_of(key, memory)? => key.to_owned(),
                _ => memory.id.to_string(),
            });
            parts.push(memory.partition.agent_name().map(str::to_owned));
            if !is_key && let Some(begins) = self.is_to_begin(memory, change)? {
                if let Some(at) = at {
                    let why = format!("must not be before {begins}, when what it ends begins");
                    return Err(Error::invalid("at", why, at));
                }
                change.at = Some(begins);
            }
            let key = asked.as_deref().or(named).filter(|key| !revises && says(memory, key));
            if let Some(key) = key {
                revises = true;
                draft.key = Some(key.to_owned());
            }
        }
        draft.agent = part_of(parts, draft.agent)?;
        // A key has one text that is true, so what the key of the draft says ends with the others.
        if let Some(key) = asked.filter(|_| !revises)
            && let Some(memory) = self.get(&key)?
            && memory.partition.agent_name() == draft.agent.as_deref()
            && says(&memory, &key)
        {
            revises = true;
            left.push(key);
        }
        if revises {
            change.give_to(&mut draft);
        } else if change.is_ahead() {
            change.begin(&mut draft);
        }
        let text = Text { draft, left, revises, change };
        let mut outcome = self.db.batch(|batch| self.put_in_place(batch, &text))?;
        self.tell_pending(std::slice::from_mut(&mut outcome));
        Ok(outcome)
    }

    /// Writes a text, and lets it take the place of the others.
    fn put_in_place(&self, batch: &mut Batch<'_, '_, '_, '_>, text: &Text) -> Result<Outcome> {
        let Text { draft, left, revises, change } = text;
        let (revises, change) = (*revises, *change);
        let ahead = change.at.filter(|_| revises && change.is_ahead());
        // Found before the new memory is there, which may have the same key.
        let found = left.iter().map(|name| Ok((name.as_str(), batch.set_apart(&self.name, name)?)));
        let mut found = found.collect::<Result<Vec<_>>>()?;
        if let Some(key) = draft.key.as_deref().filter(|_| ahead.is_some()) {
            let of_named: Vec<_> = found.iter().map(|(_, found)| *found).collect();
            let own = batch.set_apart_beside(&self.name, key, &of_named)?;
            found.extend(own.map(|own| (key, own)));
        }
        // An equal text that somebody else wrote is another memory, and must not get this one's validity.
        // The new memory is of the part of the old ones.
        let apart = WriteOptions { no_dedup: true, keep_part: true, ..WriteOptions::default() };
        let outcome = match revises {
            true => batch.add_replacing(&self.name, draft.clone(), ahead, &apart)?,
            false => batch.add_with(&self.name, draft.clone(), &apart)?,
        };
        if *outcome.decision.settled() == Decision::Ignored {
            let what = format!("the text in the place of {}", left.join(", "));
            let rule = outcome.policy_rule.unwrap_or_default();
            return Err(Error::Conflict { what, why: format!("rule {rule} of the policy ignores the text") });
        }
        let (revised, key) = match outcome.decision.settled() {
            Decision::Revised { old } => (Some(*old), outcome.key.as_deref()),
            Decision::Stored => (None, outcome.key.as_deref()),
            _ => (None, None),
        };
        // What the write has changed through its key is done.
        let through_key = key.filter(|_| revises && ahead.is_none());
        let is_done = |name: &str, id: MemoryId| revised == Some(id) || through_key == Some(name);
        let left = found.into_iter().filter(|(name, (id, _))| !is_done(name, *id));
        batch.supersede_found(
            &self.name,
            left.map(|(_, found)| found),
            outcome.id,
            change.mode,
            change.at,
        )?;
        batch.settled(&self.name, outcome)
    }

    /// The id of the memory that a name means, of which nothing else is read: several names may mean one. None where only a
    /// tombstone is left.
    ///
    /// ```
    /// # use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?.id;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:city"))?;
    /// assert_eq!([team.id_of("ann:home")?, team.id_of("ann:city")?], [Some(ghent); 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `Closed`.
    pub fn id_of(&self, name: impl Into<Name>) -> Result<Option<MemoryId>> {
        let name = name.into();
        self.ask(|reader| reader.id_of(name.as_str()))
    }

    /// The memory that a name means, read once for all its names; none where only a tombstone is left.
    fn named_once<'m>(
        &self,
        name: &Name,
        read: &'m mut HashMap<MemoryId, Memory>,
    ) -> Result<Option<&'m Memory>> {
        let Some(id) = self.id_of(name.clone())? else { return Ok(None) };
        if let Entry::Vacant(place) = read.entry(id) {
            // What has gone since the name was looked up is a tombstone by now.
            let Got::Memory(memory) = self.look_up(id, false)? else { return Ok(None) };
            place.insert(*memory);
        }
        Ok(read.get(&id))
    }

    /// Whether a memory is what a key says, and nobody else has written it: then its id and the key name the same. Keys that only lead
    /// there go with it.
    fn is_all_of(&self, key: &str, memory: &Memory) -> Result<bool> {
        let is_alone = memory.holders.iter().filter(|holder| holder.has_text()).count() == 1;
        Ok(is_alone && self.ask(|reader| reader.id_of(key))? == Some(memory.id))
    }

    /// When a memory that is to take the place of another begins, if the change would end the memory before: until then the
    /// other is true, and a text in its place would be true beside it.
    fn is_to_begin(&self, memory: &Memory, change: Change) -> Result<Option<Time>> {
        let begins =
            memory.valid_from.filter(|begins| *begins > change.at.unwrap_or(change.now).max(change.now));
        match begins.filter(|_| change.mode == SupersedeMode::Replaced) {
            Some(begins) if !self.replaces(memory.id)?.is_empty() => Ok(Some(begins)),
            _ => Ok(None),
        }
    }
}

/// The key of the first writer of a memory that has one: the key under which the text was said, and not one that only leads there.
fn own_key(memory: &Memory) -> Option<&str> {
    memory.holders.iter().filter(|holder| holder.has_text()).find_map(|holder| holder.key.as_deref())
}

/// Whether a key answers with a memory that is true now. One that is replaced at an instant ahead is true until then.
fn says(memory: &Memory, key: &str) -> bool {
    let is_true = memory.state == State::Live || memory.also.is_some();
    is_true && has_key(memory, key)
}

/// Whether a memory has a key; its keys are sorted.
fn has_key(memory: &Memory, key: &str) -> bool {
    memory.keys.binary_search_by(|known| known.as_str().cmp(key)).is_ok()
}

/// The agent in whose part all of these memories are, none for the shared part; where there are none, the one that was asked for.
fn part_of(mut parts: Vec<Option<String>>, asked: Option<String>) -> Result<Option<String>> {
    parts.dedup();
    if parts.len() > 1 {
        let parts = parts.iter().map(|agent| agent.as_deref().unwrap_or("shared"));
        let parts = parts.collect::<Vec<_>>().join(", ");
        return Err(Error::invalid("old", "must be memories of one part, where the new one goes", parts));
    }
    Ok(parts.pop().unwrap_or(asked))
}
