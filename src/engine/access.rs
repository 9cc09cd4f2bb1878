//! Accesses: what searches note, and when it is counted.

use crate::engine::commit::FOLDED_MAX;
use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::session::Session;
use crate::error::{Error, Result};
use crate::hygiene::{Noted, Taken, fold};
use crate::index::Published;
use crate::model::{Hit, NamespaceName, Query};
use crate::store::{Durability, NsId, Rows};

impl Inner {
    /// Notes that a search has found these memories, if the query, or the handle, asks for that. A handle that only reads
    /// notes nothing.
    pub(super) fn note_hits(
        &self,
        published: &Published,
        namespace: &NamespaceName,
        query: &Query,
        hits: &[Hit],
    ) -> Result<()> {
        // A look at the past is no use of the present.
        let is_use = query.at.is_present() && query.track.unwrap_or(self.track);
        if self.read_only || hits.is_empty() || !is_use {
            return Ok(());
        }
        let Some(row) = published.snapshot().namespace(namespace.as_str())? else { return Ok(()) };
        let now = self.instant(published);
        let most = self.in_force().policy.access.buffer as usize;
        let retrievals = hits.iter().map(|hit| (hit.id, Noted::one(now, hit.signals.vector, query.step)));
        self.accesses.note(NsId(row.number), most, retrievals);
        Ok(())
    }

    /// Counts in a transaction what was taken for it.
    pub(super) fn fold_taken(&self, session: &mut Session<'_, '_, '_>, taken: &Taken) -> Result<()> {
        for (ns, _) in taken.by_namespace() {
            if !session.is_dropping(ns)? {
                let context = session.context(ns, None);
                fold(session.ledger, &context, &session.in_force.policy, taken)?;
            }
        }
        Ok(())
    }
}

impl Database {
    /// Counts the searches that the handle has noted and no write has counted yet. What searches note meanwhile may be
    /// left to the next write.
    ///
    /// ```
    /// use oubliette::{Database, Query};
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.search(Query::text("tea").track(true))?;
    /// assert_eq!(team.get(tea)?.unwrap().retrieval_count, 0); // A search writes nothing.
    /// db.flush_access()?;
    /// assert_eq!(team.get(tea)?.unwrap().retrieval_count, 1);
    /// # db.clone().close()?;
    /// # assert!(db.flush_access().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Retry`, `Unavailable`, `Closed`. A handle that only reads has noted nothing, and answers `ReadOnly`.
    pub fn flush_access(&self) -> Result<()> {
        self.inner.check_open()?;
        // Each commit begins with counting. One sync at the end is enough for all of them.
        for _ in 0..self.inner.accesses.len(None).div_ceil(FOLDED_MAX) {
            self.inner.run_alone_as(Durability::Batch, |_| Ok(()))?;
        }
        if self.inner.durability == Durability::Batch { Ok(()) } else { self.inner.sync() }
    }

    /// The same when the handle is about to end.
    pub(super) fn flush_access_at_end(&self) -> Result<()> {
        if self.inner.accesses.len(None) == 0 {
            return Ok(());
        }
        match self.flush_access() {
            Err(Error::Closed) => Ok(()),
            done => done,
        }
    }
}
