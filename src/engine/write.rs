//! Writes to a namespace: each is one unit, answered when its commit is published.

use crate::engine::namespace::Namespace;
use crate::engine::options::cores;
use crate::engine::queue::{ONE, Weight, weight_of};
use crate::error::{Error, Result};
use crate::ingest::{Prepared, Rewrites, prepare};
use crate::limits::{BATCH_ROWS_MAX, at_most};
use crate::model::{
    Draft, Expiry, Name, Outcome, Patch, RenameReport, RestoreReport, RunId, SupersedeMode, SupersedeReport,
    Time,
};

/// How a batch of drafts is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The run that the writes belong to; `undo` takes them back by it.
    pub run: Option<RunId>,
    /// Store byte-equal content as rows of their own. Keys still decide.
    pub no_dedup: bool,
    /// Leave out the rules that belong to the instructions: of the defaults R3 to R5.
    pub skip_instructions: bool,
    /// Store every draft as it is given, as a row of its own, whatever is near or equal: the same as
    /// [`Draft::verbatim`] for every draft that does not say otherwise. Keys still revise.
    pub verbatim: bool,
    /// Keep the part that a draft names, also where that is the shared one: no rule sends the draft to the part of an agent.
    pub keep_part: bool,
}

impl WriteOptions {
    /// The draft as these options have it written.
    pub(super) fn applied_to(&self, mut draft: Draft) -> Draft {
        if self.verbatim {
            draft.fields.verbatim.get_or_insert(true);
        }
        draft
    }
}

impl Namespace {
    /// Adds one memory through the whole write path, and says what became of it. A text alone is a draft of it.
    ///
    /// ```
    /// use oubliette::{Database, Decision, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(team.add("Ann prefers tea")?.decision, Decision::Stored);
    /// assert_eq!(team.add("Ann prefers tea")?.decision, Decision::Reinforced);
    /// let refused = team.add(Draft::new("Ann lives in Ghent").importance(7.0)).unwrap_err();
    /// assert_eq!(refused.to_string(), "importance: must be from 0 to 1 (got 7)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Invalid` naming the field that breaks its bound;
    /// - `KeyInOtherPartition` when a current memory of another partition holds the key;
    /// - `NotFound` for a memory that it is to supersede;
    /// - `Retry`, `Unavailable`, `ReadOnly`, `Closed`.
    pub fn add(&self, draft: impl Into<Draft>) -> Result<Outcome> {
        let mut all = self.add_all(vec![draft.into()], &WriteOptions::default())?;
        Ok(all.pop().unwrap_or_else(|| unreachable!("each draft has an outcome")))
    }

    /// Adds many memories in one transaction: all or none.
    ///
    /// ```
    /// use oubliette::{Draft, WriteOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let drafts = vec![Draft::new("Ann prefers tea"), Draft::new("Bob walks").tag("people")];
    /// assert_eq!(team.add_all(drafts, &WriteOptions::default())?.len(), 2);
    /// let why = team.add_all(vec!["It rains".into(), "".into()], &WriteOptions::default()).unwrap_err();
    /// assert!(why.to_string().starts_with("line 2: "));
    /// assert_eq!(team.memory_stats()?.local.total, 2); // All or none.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::add`], and `Invalid` for more than 100,000 drafts. An error of a draft names its position,
    /// counted from 1, as a line.
    pub fn add_all(&self, drafts: Vec<Draft>, how: &WriteOptions) -> Result<Vec<Outcome>> {
        at_most("drafts", drafts.len(), BATCH_ROWS_MAX)?;
        let many = drafts.len() > 1;
        let place = move |at: usize| move |why: Error| if many { why.at_line(at as u64 + 1) } else { why };
        let mut prepared: Vec<Prepared> = drafts
            .into_iter()
            .enumerate()
            .map(|(at, draft)| prepare(how.applied_to(draft)).map_err(place(at)))
            .collect::<Result<_>>()?;
        let works = self.db.inner.embed_drafts(&self.name, &mut prepared, how.no_dedup)?;
        let weight = Weight { rows: prepared.len(), bytes: prepared.iter().map(Prepared::weight).sum() };
        let (name, how) = (self.name.clone(), *how);
        let mut outcomes: Vec<Outcome> = self.db.submit_embedded(weight, works, move |session| {
            let mut writer = session.writer(&name, how.run, how.no_dedup)?;
            writer.skip_instructions = how.skip_instructions;
            writer.keep_part = how.keep_part;
            writer.leave_out_strangers(&mut prepared)?;
            let mut near = writer.neighbours(&prepared, cores())?.into_iter();
            let mut rewrites = how.run.map_or_else(Rewrites::default, |_| Rewrites::of(&prepared));
            let mut one = |at: usize, draft: &Prepared| {
                let near = near.next().flatten();
                match writer.written_before(&prepared, at, &mut rewrites)? {
                    Some(again) => Ok(again),
                    None => writer.add_beside(draft, near),
                }
            };
            let outcomes: Vec<Outcome> = prepared
                .iter()
                .enumerate()
                .map(|(at, draft)| one(at, draft).map_err(place(at)))
                .collect::<Result<_>>()?;
            writer.note_in_run(&outcomes)?;
            Ok(outcomes)
        })?;
        self.tell_pending(&mut outcomes);
        Ok(outcomes)
    }

    /// Looks again at writes whose text waited for a vector when they were committed: the embedder of the handle has had
    /// its turn since.
    pub(super) fn tell_pending(&self, outcomes: &mut [Outcome]) {
        if self.db.inner.embedder.read().is_none() {
            return;
        }
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.pending) {
            // The write is done, whatever becomes of this read.
            outcome.pending = self.ask(|reader| reader.waits_for_vector(outcome.id)).unwrap_or(true);
        }
    }

    /// Changes a memory by id or key. New text revises it: a new row supersedes the old one.
    ///
    /// ```
    /// use oubliette::{Draft, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// team.update("home", Patch::new().importance(0.9))?;
    /// team.update("home", Patch::new().text("Ann lives in Bruges"))?;
    /// assert_eq!(team.history("home")?.versions.len(), 2);
    /// assert!(team.update("work", Patch::new().importance(0.9)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Invalid`, `Conflict` for a superseded memory. Also `Conflict` if a supersession led the key to the
    /// text of another write, and the patch names fields and no text: such a change would copy that text.
    pub fn update(&self, name: impl Into<Name>, patch: Patch) -> Result<Outcome> {
        let name = name.into();
        let (embedded, works) = self.db.inner.embed_update(&self.name, name.as_str(), &patch)?;
        let namespace = self.name.clone();
        let mut outcome = self.db.submit_embedded(ONE, works, move |session| {
            session.known_writer(&namespace)?.update(name.as_str(), patch.clone(), embedded.clone())
        })?;
        self.tell_pending(std::slice::from_mut(&mut outcome));
        Ok(outcome)
    }

    /// Gives a record another key: the memory, its earlier versions, its rows in limbo, and what the tombstones tell of the
    /// key. Nothing answers to the old key any more. No run can take it back; renaming back does.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann"))?;
    /// team.add(Draft::new("Ann lives in Bruges").key("ann"))?;
    /// assert_eq!(team.rename_key("ann", "ann:home")?.rows, 2);
    /// assert!(team.get("ann")?.is_none());
    /// assert_eq!(team.history("ann:home")?.versions.len(), 2);
    ///
    /// team.add(Draft::new("Bob lives in Bonn").key("bob"))?;
    /// assert!(team.rename_key("bob", "ann:home").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `NotFound` where no memory has the old key in any state;
    /// - `Conflict` where a current memory has the new key, or a version of this one has both;
    /// - `Invalid` for a new key that is not 1 to 512 bytes or has a NUL.
    pub fn rename_key(&self, old: impl Into<Name>, new: impl Into<Name>) -> Result<RenameReport> {
        let (namespace, old, new) = (self.name.clone(), old.into(), new.into());
        self.db.submit(ONE, move |session| {
            session.known_writer(&namespace)?.rename_key(old.as_str(), new.as_str())
        })
    }

    /// Gives memories another end and changes nothing else of them, in one transaction. It is an update of the expiry
    /// alone, so [`Expiry::After`] counts from now, or from when a memory begins to be true if that is later. A key gives its own write an
    /// end: others that wrote the same text keep it, as the outcome tells. There is an answer for each name, in order. A name that names
    /// nothing (`NotFound`), a superseded memory (`Conflict`), or a memory that would end before it begins (`Invalid`), does not keep the
    /// others from their new end.
    ///
    /// ```
    /// use oubliette::memory::Expiry;
    /// use oubliette::{Database, Draft, Time};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The build is red").key("build"))?;
    /// let end: Time = "2099-01-01T00:00:00Z".parse()?;
    /// let answers = team.touch(["build", "gone"], end)?;
    /// assert!(answers[0].is_ok() && answers[1].is_err());
    /// assert_eq!(team.get("build")?.unwrap().expires_at, Some(end));
    /// team.touch(["build"], Expiry::Never)?;
    /// assert_eq!(team.get("build")?.unwrap().expires_at, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for more than 100,000 names.
    pub fn touch(
        &self,
        names: impl IntoIterator<Item = impl Into<Name>>,
        expiry: impl Into<Expiry>,
    ) -> Result<Vec<Result<Outcome>>> {
        let names: Vec<Name> = names.into_iter().map(Into::into).collect();
        at_most("names", names.len(), BATCH_ROWS_MAX)?;
        let (namespace, expiry) = (self.name.clone(), expiry.into());
        self.db.submit(weight_of(names.len()), move |session| {
            session.known_writer(&namespace)?.touch(&names, expiry)
        })
    }

    /// Pins a memory, or unpins it: automatic actors leave a pinned one alone. A key pins its own write, and an id the memory
    /// of all its writers.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let nuts = team.add("Ann is allergic to nuts")?.id;
    /// team.pin(nuts, true)?;
    /// assert!(team.get(nuts)?.unwrap().is_protected());
    /// assert!(team.pin("nobody", true).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a superseded memory, and for a key that a supersession led to the text of another write.
    pub fn pin(&self, name: impl Into<Name>, pinned: bool) -> Result<Outcome> {
        let (namespace, name) = (self.name.clone(), name.into());
        self.db.submit(ONE, move |session| session.known_writer(&namespace)?.pin(name.as_str(), pinned))
    }

    /// Says that something contradicts a memory: it is no longer true from an instant on, now by default, and is believed less,
    /// the more so the more it was used. A read of an earlier instant still finds it. A key contradicts its own write, and an id
    /// the memory of all its writers.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.contradict(tea, None)?;
    /// assert!(!team.is_visible(tea)?);
    /// assert!(team.contradict("coffee", None).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a superseded memory, and for a key that a supersession led to the text of another write;
    /// `Invalid` for an instant that does not lie after the beginning of
    /// what the memory says.
    pub fn contradict(&self, name: impl Into<Name>, at: Option<Time>) -> Result<Outcome> {
        let (namespace, name) = (self.name.clone(), name.into());
        self.db.submit(ONE, move |session| session.known_writer(&namespace)?.contradict(name.as_str(), at))
    }

    /// Adds a memory that takes the place of another, from now on. Where the draft has the key of the old memory, the write
    /// revises that key, or call [`Namespace::replace`], which does so. Otherwise the old key only leads to the new memory: the
    /// key did not write that text, so it can neither revise nor forget it.
    ///
    /// ```
    /// use oubliette::{Database, Draft, State};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
    /// let bruges = team.supersede("ann:home", Draft::new("Ann lives in Bruges").key("ann:home"))?;
    /// assert_eq!(team.state(ghent.id)?, Some(State::Superseded));
    /// assert_eq!(team.get("ann:home")?.map(|home| home.id), Some(bruges.id));
    /// assert!(team.supersede("bob:home", "Bob lives in Bonn").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Namespace::add`]; `NotFound` where there is no old memory; `Conflict` for one that is superseded already.
    pub fn supersede(&self, old: impl Into<Name>, new: impl Into<Draft>) -> Result<Outcome> {
        let mut draft: Draft = new.into();
        draft.supersedes.push(old.into().into_string());
        self.add(draft)
    }

    /// Lets a memory that is there take the place of others; `at` is the instant at which the world changed, for the
    /// mode `replaced`. Their keys and tags go to it, except those of another partition, which stay where they are. An id
    /// stands for the memory with all its writers. A key stands for its own write: others that wrote the same text keep it, as the
    /// answer tells.
    ///
    /// ```
    /// use oubliette::Draft;
    /// use oubliette::memory::SupersedeMode;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let (ghent, gent) = (team.add("Ann lives in Ghent")?.id, team.add("Ann lives in Gent")?.id);
    /// let bruges = team.add("Ann lives in Bruges")?.id;
    /// team.supersede_all([ghent, gent], bruges, SupersedeMode::Correction, None)?;
    /// assert_eq!(team.search("Ann")?.hits.len(), 1);
    /// assert!(team.supersede_all([bruges], bruges, SupersedeMode::Correction, None).is_err());
    /// for key in ["ann:home", "chat:1"] {
    ///     team.add(Draft::new("Ann has a flat").key(key))?;
    /// }
    /// let done = team.supersede_all(["ann:home"], bruges, SupersedeMode::Replaced, None)?;
    /// assert_eq!(done.kept_for_others[0].keys, ["chat:1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for an instant ahead by which the new memory has ended; `Conflict` for a memory that is superseded already,
    /// for itself, for a cycle, or where the new memory would have more than 64 tags with those of the old.
    pub fn supersede_all(
        &self,
        old: impl IntoIterator<Item = impl Into<Name>>,
        new: impl Into<Name>,
        mode: SupersedeMode,
        at: Option<Time>,
    ) -> Result<SupersedeReport> {
        let (namespace, new) = (self.name.clone(), new.into());
        let old: Vec<Name> = old.into_iter().map(Into::into).collect();
        self.db.submit(ONE, move |session| {
            session.known_writer(&namespace)?.supersede_names(&old, new.as_str(), mode, at)
        })
    }

    /// Makes a memory live again that was superseded, or that a pass has removed and that still waits in limbo.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let ghent = team.add("Ann lives in Ghent")?.id;
    /// team.supersede(ghent, "Ann lives in Bruges")?;
    /// assert!(team.restore(ghent)?.keys_taken.is_empty());
    /// assert!(team.is_visible(ghent)?);
    /// assert!(team.restore(ghent).is_err()); // It is live already.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, and `Conflict` for a memory that is neither superseded nor in limbo, or whose place another one has taken.
    pub fn restore(&self, name: impl Into<Name>) -> Result<RestoreReport> {
        let (namespace, name) = (self.name.clone(), name.into());
        self.db.submit(ONE, move |session| session.known_writer(&namespace)?.restore(name.as_str()))
    }

    /// Counts uses of a memory.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.reinforce(tea, 3)?;
    /// assert_eq!(team.get(tea)?.unwrap().reinforcement_count, 4); // The write was the first use.
    /// assert!(team.reinforce("coffee", 1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn reinforce(&self, name: impl Into<Name>, by: u32) -> Result<()> {
        let (namespace, name) = (self.name.clone(), name.into());
        self.db.submit(ONE, move |session| session.known_writer(&namespace)?.reinforce(name.as_str(), by))
    }
}
