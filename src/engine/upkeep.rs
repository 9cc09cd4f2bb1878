//! What keeps indexes up beside the passes: the help of writers who are past a bound, and a rebuild.

use std::collections::BTreeSet;

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::maintain::Sweep;
use crate::engine::namespace::Namespace;
use crate::engine::options::{MaintainOptions, cores};
use crate::engine::rebuild::batches;
use crate::error::{Error, Result};
use crate::hnsw::Crew;
use crate::hygiene::{write, write_texts};
use crate::index::text::upkeep as text_upkeep;
use crate::index::upkeep::{self, Counts, Need, Regimes};
use crate::ledger::Afresh;
use crate::limits::SLICE_ROWS_MAX;
use crate::model::{NamespaceName, Pass, RuleId, RunId, RunSort};
use crate::store::control::TextHead;
use crate::store::{IndexId, NsId, Read, Rows, TextId, TextRows, Traces};

/// Rows that a writer links at least when it helps: so it is one write in so many that waits.
const HELP_ROWS: usize = 128;
/// Rows that a writer links for each of its own.
const HELP_PER_ROW: usize = 4;
/// Rows of a write that is helped by all cores.
const HELP_BY_ALL: usize = 1_024;

impl Database {
    /// Unlinks all that is dead, so that no code of it is copied.
    pub(super) fn repair_all(&self) -> Result<()> {
        if !self.inner.state()?.snapshot().has_dead_slots()? {
            return Ok(());
        }
        let run = self.inner.new_run()?;
        let options = MaintainOptions::live();
        let mut sweep = Sweep::new(run, RunSort::Maintain, None, &options);
        self.run_pass(Pass::Repair, &options, &mut sweep)?;
        self.end_runs(&sweep);
        Ok(())
    }

    /// Builds the indexes of every namespace anew, as [`Namespace::reindex`](crate::Namespace::reindex) does those of one.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// db.namespace("team")?.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(db.reindex()?, 1);
    /// # db.close()?;
    /// assert!(Database::builder().read_only(true).open(&path)?.reindex().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::reindex`](crate::Namespace::reindex).
    pub fn reindex(&self) -> Result<u64> {
        self.reindex_in(None)
    }

    pub(super) fn reindex_in(&self, only: Option<&NamespaceName>) -> Result<u64> {
        self.inner.check_open()?;
        let _one = self.inner.upkeep.lock();
        if let Some((table, key)) = self.inner.state()?.snapshot().first_out_of_order()? {
            let why =
                "it stands out of order: `compact` makes the table anew, and nothing is changed until then";
            return Err(Error::corrupted(table.name(), &key, why));
        }
        self.inner.run_alone(|session| session.ledger.mend_spaces())?;
        let run = self.inner.new_run()?;
        let options = MaintainOptions::live();
        let mut sweep = Sweep::new(run, RunSort::Reindex, only.cloned(), &options);
        let mut rows = 0;
        for (name, ns) in self.tenants(only)? {
            sweep.enter(&self.inner, &name, ns, run);
            self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(());
                }
                let context = session.context(ns, Some(run));
                session.ledger.mend(&context)?;
                session.ledger.note_part(&context, run, RunSort::Reindex, [])
            })?;
            self.derive_afresh(&name, ns, run)?;
            self.inner.run_alone(|session| match session.stands(&name, ns)? {
                true => session.ledger.recount_families(&session.context(ns, Some(run))),
                false => Ok(()),
            })?;
            for indexes in batches(self.inner.state()?.snapshot().indexes_of(ns)?) {
                rows += self.inner.run_alone(|session| {
                    if !session.stands(&name, ns)? {
                        return Ok(0);
                    }
                    session.reset.extend(&indexes);
                    let context = session.context(ns, Some(run));
                    let rows = session.ledger.rebuild_indexes(&context, &indexes)?;
                    session.ledger.note_part(&context, run, RunSort::Reindex, [("vectors", rows)])?;
                    Ok(rows)
                })?;
            }
        }
        if only.is_none() {
            self.inner.run_alone(|session| session.ledger.mend_drops())?;
        }
        self.rebuild_texts(only, run)?;
        self.void_declared(only, run)?;
        self.run_pass(Pass::Index, &options, &mut sweep)?;
        self.inner.run_alone(|session| session.ledger.tx.count_size())?;
        self.end_runs(&sweep);
        Ok(rows)
    }

    /// Puts derived rows back that are missing and takes those away that nothing asks for, in slices.
    fn derive_afresh(&self, name: &NamespaceName, ns: NsId, run: RunId) -> Result<()> {
        let (mut at, mut whole) = (Afresh::default(), false);
        while !whole {
            (at, whole) = self.inner.run_alone(|session| {
                let mut next = at.clone();
                if !session.stands(name, ns)? {
                    return Ok((next, true));
                }
                let context = session.context(ns, Some(run));
                let whole = session.ledger.derive_afresh(&context, &mut next, SLICE_ROWS_MAX)?;
                Ok((next, whole))
            })?;
        }
        Ok(())
    }

    /// Helps with the indexes that are past their bounds, after a write of so many rows. The write itself stands
    /// already: what goes wrong here is no error of it.
    pub(super) fn relieve(&self, rows: usize) {
        let pressed = self.inner.pressed.lock().pop_first();
        let Some(index) = pressed else { return };
        // Maintenance is at work, and does more than this.
        let Some(_one) = self.inner.upkeep.try_lock() else { return };
        if let Err(why) = self.help(index, rows) {
            tracing::warn!(?index, %why, "a writer could not help with an index that is past its bounds");
        }
    }

    fn help(&self, index: IndexId, rows: usize) -> Result<()> {
        if let Some(text) = TextId::at(index) {
            let run = self.inner.new_run()?;
            return self.post_tail(text, run, text_upkeep::is_pressed);
        }
        let published = self.inner.state()?;
        let counts = Counts::read(&**published.snapshot(), index)?;
        let head = published.snapshot().readable_slot_head(index)?;
        let dim = published.dim(index.space)?;
        if !published.has_room_for(&head, dim) {
            return Ok(());
        }
        let run = self.inner.new_run()?;
        let edit = match Regimes::of(&self.inner.in_force().policy, dim).need(counts) {
            Need::Nothing => None,
            Need::Drop => upkeep::unlink_all(&published, index)?,
            Need::Link(_) => {
                let mut crew = Crew::new(if rows >= HELP_BY_ALL { cores() } else { 1 });
                upkeep::link(&published, index, HELP_ROWS.max(rows * HELP_PER_ROW), &mut crew)?
            }
        };
        if let Some(edit) = edit {
            self.apply(index.ns, Some(run), None, write(edit, RuleId::of_pass(Pass::Index)))?;
        }
        Ok(())
    }

    /// Writes the postings of what an import has left in the tails of a namespace: the next program that searches would read
    /// all these texts first. The import itself is whole already: what goes wrong here is no error of it.
    pub(super) fn post_tails(&self, ns: NsId) {
        // Maintenance is at work, and does more than this.
        let Some(_one) = self.inner.upkeep.try_lock() else { return };
        let settle = || {
            let run = self.inner.new_run()?;
            let heads = self.inner.state()?.snapshot().text_heads(Some(ns))?.into_iter();
            heads
                .filter(|(_, head)| text_upkeep::is_worth_posting(head))
                .try_for_each(|(text, _)| self.post_tail(text, run, text_upkeep::is_worth_posting))
        };
        if let Err(why) = settle() {
            tracing::warn!(%why, "the postings of an import could not be written at its end");
        }
    }

    /// Posts the tail of an index as long as it is `long`.
    fn post_tail(&self, text: TextId, run: RunId, is_long: fn(&TextHead) -> bool) -> Result<()> {
        loop {
            let published = self.inner.state()?;
            let Some(edit) = text_upkeep::post(&published, text, text_upkeep::POST_MAX)? else {
                return Ok(());
            };
            let applied = self.apply(text.ns, Some(run), None, write_texts(vec![edit]))?;
            let head = self.inner.state()?.snapshot().text_head(text)?.unwrap_or_default();
            if applied.is_stale || !is_long(&head) {
                return Ok(());
            }
        }
    }

    /// Writes the full-text indexes of a namespace, or of all, anew, with the analyzer of the policy in force.
    fn rebuild_texts(&self, namespace: Option<&NamespaceName>, run: RunId) -> Result<u64> {
        let mut rows = 0;
        for (name, ns) in self.tenants(namespace)? {
            rows += u64::from(self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(0);
                }
                let context = session.context(ns, Some(run));
                let (texts, rows) = session.ledger.rebuild_texts(&context, None)?;
                let counts = [("texts", u64::from(rows))];
                session.ledger.note_part(&context, run, RunSort::Reindex, counts)?;
                session.reset.extend(texts.into_iter().map(TextId::index));
                Ok(rows)
            })?);
        }
        Ok(rows)
    }
}

impl Namespace {
    /// Drops the indexes of the namespace and builds them anew from the memories and their vectors: codes,
    /// slots and graphs, and the full-text indexes from the texts, declared
    /// indexes from the metadata, counters from the rows. Heals what is damaged there. Rows by which memories, messages and
    /// what is told of them are found are put back where they are missing, and go where nothing asks for them. Gives the number of vectors.
    ///
    /// A memory that is damaged stands in no index of what can't be read of it; one whose vector is damaged waits for a
    /// vector again. Rows of the journal, of passes and of messages that can't be read go.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// # let db = Database::open(&path)?;
    /// let team = db.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(team.reindex()?, 1);
    /// # drop(team);
    /// # db.close()?;
    /// let reader = Database::builder().read_only(true).open(&path)?;
    /// assert!(reader.namespace("team")?.reindex().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `ReadOnly`, `Closed`; `Corrupted` where the key of a row is damaged so that the row stands out of
    /// the order of its table, which only [`Database::compact`](crate::Database::compact) mends.
    pub fn reindex(&self) -> Result<u64> {
        self.db.reindex_in(Some(&self.name))
    }
}

impl Inner {
    /// Notes which of the indexes that a commit wrote to are past their bounds.
    pub(super) fn note_pressed(&self, written: BTreeSet<IndexId>) {
        let (Ok(current), in_force) = (self.state(), self.in_force()) else { return };
        let rows = &**current.snapshot();
        for index in written {
            let is_pressed = match TextId::at(index) {
                Some(text) => rows
                    .text_head(text)
                    .is_ok_and(|head| head.is_some_and(|head| text_upkeep::is_pressed(&head))),
                None => {
                    let counts = Counts::read(rows, index).ok().zip(current.dim(index.space).ok());
                    counts.is_some_and(|(counts, dim)| Regimes::of(&in_force.policy, dim).is_pressed(counts))
                }
            };
            if is_pressed {
                self.pressed.lock().insert(index);
            }
        }
    }
}
