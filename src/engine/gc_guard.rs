//! Would what finds the sources of a summary find the summary? Questions are made before a commit, and asked in its
//! transaction before anything is written.

use std::collections::BTreeSet;

use crate::engine::namespace::Namespace;
use crate::error::Result;
use crate::hygiene::past_queries;
use crate::index::Published;
use crate::ingest::Prepared;
use crate::model::{MemoryId, Query, RecallGuard};
use crate::policy;
use crate::recall::{Newcomer, Reader, Rehearsed};
use crate::store::{NsId, PartId, QueryRow, Rows, SpaceId};
use crate::vector::UnitVector;

/// Words of a question that is made of a source.
const WORDS_MAX: usize = 5;

/// The questions that a summary must answer in the place of its sources.
pub(super) struct Guard {
    questions: Vec<Query>,
    summary: Newcomer,
    /// Whether the sources go.
    is_gone: bool,
}

impl Namespace {
    /// The questions for a summary: those of a caller, past queries that had found a source, and as far as these are too few,
    /// one for each of some of the sources, spread over all of them.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(super) fn gc_guard(
        &self,
        published: &Published,
        part: u32,
        probes: &[String],
        sources: &[MemoryId],
        summary: &Prepared,
    ) -> Result<Guard> {
        let (inner, part) = (&self.db.inner, PartId(part));
        let (in_force, now) = (inner.in_force(), inner.instant(published));
        let gc = &in_force.policy.gc;
        let reader = Reader::open(published, &self.name, &inner.secret, now)?;
        let mut asked: Vec<Query> = probes.iter().map(Query::text).collect();
        let rows = &**published.snapshot();
        let ns = rows.namespace(self.name.as_str())?.map(|row| NsId(row.number));
        let past = ns.map(|ns| past_queries(rows, ns, sources, gc)).transpose()?.unwrap_or_default();
        let most = (gc.auto_probes as usize - past.len()).min(sources.len());
        for row in past {
            asked.push(past_query(published, row)?);
        }
        for at in 0..most {
            // The middle of each of `most` parts of equal length.
            let Some(id) = sources.get((2 * at + 1) * sources.len() / (2 * most)) else { continue };
            let words = reader.specific_words(part, *id, &in_force.policy.recall, WORDS_MAX)?;
            asked.extend(Some(words).filter(|words| !words.is_empty()).map(Query::text));
        }
        let scope = reader.scope_of(part)?;
        let questions = asked.into_iter().map(|query| {
            let query = query.k(gc.probe_k as usize).scope(scope.clone());
            Ok(inner.with_vector(published, &query)?.query.into_owned())
        });
        let questions = questions.collect::<Result<_>>()?;
        let id = MemoryId::from_bytes(inner.ids.next(now)?);
        let (text, vector) = (summary.text().to_owned(), summary.vector().cloned());
        let summary = Newcomer { id, part, text, vector };
        Ok(Guard { questions, summary, is_gone: gc.delete_sources })
    }
}

/// A past query, with its vector if that is one of the space that searches use now.
fn past_query(published: &Published, row: QueryRow) -> Result<Query> {
    let QueryRow { text, space, vector, .. } = row;
    let query = Query::text(text);
    let current = published.snapshot().clock()?.space;
    let dim = published.snapshot().space(SpaceId(current))?.map(|space| space.dim as usize);
    Ok(match UnitVector::from_stored(vector) {
        Some(vector) if space == current && dim == Some(vector.dim()) => {
            Query { vector: Some(vector.as_slice().to_vec()), ..query }
        }
        _ => query,
    })
}

impl Guard {
    /// Asks what finds one of the sources whether it would find the summary.
    ///
    /// # Errors
    /// `Corrupted`.
    pub(super) fn ask(
        &self,
        reader: &Reader<'_>,
        weights: &policy::Recall,
        sources: &[MemoryId],
    ) -> Result<RecallGuard> {
        let sources: BTreeSet<MemoryId> = sources.iter().copied().collect();
        let mut guard = RecallGuard::default();
        for question in &self.questions {
            let Rehearsed { before, after } =
                reader.rehearse(question, weights, &sources, &self.summary, self.is_gone)?;
            guard = guard.and(RecallGuard::new(1, before.into(), (before && after).into()));
        }
        Ok(guard)
    }
}
