//! Accesses: what searches note, and when it is counted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::engine::commit::FOLDED_MAX;
use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::namespace::Namespace;
use crate::engine::session::Session;
use crate::error::{Error, Result, sound};
use crate::hygiene::{FoundText, Noted, NotedQuery, Taken, TakenQueries, fold, keep_queries};
use crate::index::Published;
use crate::limits::{PROBE_CHARS_MAX, QUERY_HITS_MAX};
use crate::model::{Hit, Query};
use crate::recall::{Deadline, Reader, SearchResult};
use crate::store::{Durability, NsId, Rows};
use crate::vector::UnitVector;

impl Inner {
    /// Notes that a search of a namespace has found these memories, if the query, or the handle, asks for that. A handle that
    /// only reads notes nothing.
    pub(super) fn note_hits(
        &self,
        published: &Published,
        ns: Option<NsId>,
        query: &Query,
        hits: &[Hit],
    ) -> Result<()> {
        // A look at the past is no use of the present.
        let is_use = query.at.is_present() && query.track.unwrap_or(self.track);
        if self.read_only || hits.is_empty() || !is_use {
            return Ok(());
        }
        let Some(ns) = ns else { return Ok(()) };
        let now = self.instant(published);
        let most = self.in_force().policy.access.buffer as usize;
        let retrievals = hits.iter().map(|hit| (hit.id, Noted::one(now, hit.signals.vector, query.step)));
        self.accesses.note(ns, most, retrievals);
        if self.in_force().policy.gc.keep_queries {
            self.note_query(published, ns, query, hits)?;
        }
        Ok(())
    }

    /// Notes a query in words that has found some memories, to be kept as a question for summaries. One of very many words
    /// or hits is none.
    fn note_query(&self, published: &Published, ns: NsId, query: &Query, hits: &[Hit]) -> Result<()> {
        let words = query.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let Some(text) = words.filter(|text| text.chars().count() <= PROBE_CHARS_MAX) else { return Ok(()) };
        if hits.len() > QUERY_HITS_MAX {
            return Ok(());
        }
        let rows = published.snapshot();
        let mut found = Vec::with_capacity(hits.len());
        for Hit { id, .. } in hits {
            // A row that is damaged by now keeps no search from its answer.
            let Some(vitals) = sound(rows.vitals(ns, *id))?.flatten() else { return Ok(()) };
            found.push(FoundText { id: *id, fingerprint: vitals.place.fingerprint });
        }
        let vector = query.vector.as_deref().and_then(|vector| UnitVector::new("vector", vector).ok());
        let query = NotedQuery {
            at: self.instant(published),
            text: text.to_owned(),
            space: rows.clock()?.space,
            vector: vector.map(|vector| vector.as_slice().to_vec()).unwrap_or_default(),
            hits: found,
        };
        self.accesses.queries.note(ns, query);
        Ok(())
    }

    /// Counts in a transaction what was taken for it, and keeps the queries.
    pub(super) fn fold_taken(
        &self,
        session: &mut Session<'_, '_, '_>,
        taken: &Taken,
        queries: &TakenQueries,
    ) -> Result<()> {
        for (ns, _) in taken.by_namespace() {
            if !session.is_dropping(ns)? {
                let context = session.context(ns, None);
                fold(session.ledger, &context, &session.in_force.policy, taken)?;
            }
        }
        let asked: BTreeSet<NsId> = queries.entries().iter().map(|(ns, _)| *ns).collect();
        for ns in asked {
            if !session.is_dropping(ns)? {
                keep_queries(session.ledger, ns, &session.in_force.policy, queries)?;
            }
        }
        Ok(())
    }
}

impl Database {
    /// Counts the searches that the handle has noted and no write has counted yet, and keeps their queries where the policy
    /// wants it (`gc.keep_queries`). What searches note meanwhile may be left to the next write.
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
        for _ in 0..self.inner.accesses.waiting().div_ceil(FOLDED_MAX) {
            self.inner.run_alone_as(Durability::Batch, |_| Ok(()))?;
        }
        if self.inner.durability == Durability::Batch { Ok(()) } else { self.inner.sync() }
    }

    /// The same when the handle is about to end.
    pub(super) fn flush_access_at_end(&self) -> Result<()> {
        if self.inner.accesses.waiting() == 0 {
            return Ok(());
        }
        match self.flush_access() {
            Err(Error::Closed) => Ok(()),
            done => done,
        }
    }
}

impl<Of> Namespace<Of> {
    /// As [`Namespace::search`], for a caller that hands on the first hits alone, such as those that fit into a budget of tokens.
    /// `given` is shown all hits and says how many of them are handed on: these are in the answer, and where hits count as
    /// retrieved, no others do. Also tells how many were left out.
    ///
    /// ```
    /// use oubliette::{Hit, Query, gc::token_estimate};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for text in ["Ann prefers tea", "Bob prefers coffee"] {
    ///     team.add(text)?;
    /// }
    /// let max_tokens = 5;
    /// let fit = |hits: &[Hit]| {
    ///     let ends = hits.iter().scan(0, |tokens, hit| {
    ///         *tokens += token_estimate(&hit.text);
    ///         Some(*tokens)
    ///     });
    ///     ends.take_while(|tokens| *tokens <= max_tokens).count()
    /// };
    /// let (found, left_out) = team.search_given(Query::text("prefers").track(true), fit)?;
    /// assert_eq!((found.hits.len(), left_out), (1, 1));
    /// assert!(team.search_given(Query::text("prefers").k(0), |hits| hits.len()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Namespace::search`].
    pub fn search_given(
        &self,
        query: impl Into<Query>,
        given: impl Fn(&[Hit]) -> usize,
    ) -> Result<(SearchResult, usize)> {
        let query = query.into();
        let weights = self.db.inner.in_force().policy.recall.clone();
        let begun = Instant::now();
        let most = query.deadline.map(Duration::from);
        let over = || most.is_some_and(|most| begun.elapsed() >= most);
        self.read(|published, now| {
            let asked = self.db.inner.with_vector(published, &query)?;
            let deadline = Deadline::new(&over);
            let reader = Reader::open(published, &self.name, &self.db.inner.secret, now)?;
            let ns = reader.ns();
            let mut found = reader.until(&deadline).search(&asked.query, &weights)?;
            found.plan.embedder_failed = asked.failed;
            let all = found.hits.len();
            found.hits.truncate(given(&found.hits));
            self.db.inner.note_hits(published, ns, &asked.query, &found.hits)?;
            let left_out = all - found.hits.len();
            Ok((found, left_out))
        })
    }
}
