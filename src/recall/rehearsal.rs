//! Searches as if memories were gone and another one was there: what a summary would be worth in the place of its
//! sources, before anything is written.
//!
//! The memory that would come is ranked by its words and its vector like one that is stored. The statistics of words
//! are those of the state that is read, so its score can differ a little from the one that it has once it is stored.

use std::collections::BTreeSet;

use crate::error::{Result, sound};
use crate::index::Stop;
use crate::index::text::{TextAsk, lexical};
use crate::model::{MemoryId, Partition, Query, Scope};
use crate::policy;
use crate::recall::Reader;
use crate::store::{PartId, Rows, TextId};
use crate::vector::UnitVector;

/// A memory that is not stored.
#[derive(Clone, Debug)]
pub(crate) struct Newcomer {
    /// An id that no stored memory has.
    pub(crate) id: MemoryId,
    /// Its partition.
    pub(crate) part: PartId,
    pub(crate) text: String,
    /// Its vector in the space of the database; none leaves its words to go by.
    pub(crate) vector: Option<UnitVector>,
}

/// What a query finds before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rehearsed {
    /// Whether one of the memories that go is among the hits.
    pub(crate) before: bool,
    /// Whether the newcomer would be.
    pub(crate) after: bool,
}

impl Reader<'_> {
    /// The words that tell a memory apart best from others of its partition, in their order. Empty for a memory that cannot
    /// be read.
    ///
    /// # Errors
    /// `Corrupted`, where more than single rows is damaged.
    pub(crate) fn specific_words(
        &self,
        part: PartId,
        id: MemoryId,
        weights: &policy::Recall,
        most: usize,
    ) -> Result<String> {
        let Some(ns) = self.ns else { return Ok(String::new()) };
        let Some(text) = sound(self.rows().text(ns, id))?.flatten() else { return Ok(String::new()) };
        let ask = TextAsk {
            ns,
            text: Some(TextId { ns, part }),
            words: &text,
            now: self.now,
            all: false,
            only_weights: true,
            function_words: weights.function_words as f32,
            stop: Stop(&|| false),
        };
        Ok(lexical(self.source, ask)?.specific_words(&text, most).join(" "))
    }

    /// The scope of a partition.
    ///
    /// # Errors
    /// `Corrupted` for a partition without a name.
    pub(crate) fn scope_of(&self, part: PartId) -> Result<Scope> {
        let Some(ns) = self.ns else { return Ok(Scope::Shared) };
        Ok(match self.partition(ns, part)? {
            Partition::Shared => Scope::Shared,
            Partition::Agent(name) => Scope::Agent(name),
        })
    }

    /// Whether a query finds one of some memories now, and whether it would find a newcomer in their place. `is_gone` says
    /// whether they would be gone then, or stay beside the newcomer.
    ///
    /// # Errors
    /// Those of [`Reader::search`].
    pub(crate) fn rehearse(
        &self,
        query: &Query,
        weights: &policy::Recall,
        sources: &BTreeSet<MemoryId>,
        newcomer: &Newcomer,
        is_gone: bool,
    ) -> Result<Rehearsed> {
        query.check()?;
        let k = query.k;
        // What is left of so many hits without the sources and the newcomer is at least `k` hits, or all there are.
        let deep = Query { k: k.saturating_add(sources.len() + 1), ..query.clone() };
        let reader = Reader { newcomer: Some(newcomer), ..*self };
        let hits = reader.rank(&deep, weights)?.map(|ranking| ranking.hits).unwrap_or_default();
        let ids = || hits.iter().map(|hit| hit.id);
        Ok(Rehearsed {
            before: ids().filter(|id| *id != newcomer.id).take(k).any(|id| sources.contains(&id)),
            after: ids().filter(|id| !is_gone || !sources.contains(id)).take(k).any(|id| id == newcomer.id),
        })
    }
}
