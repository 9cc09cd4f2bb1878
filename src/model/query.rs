//! Questions and their answers: query, hit, page, and what became of a forget.

use crate::error::{Error, Result};
use crate::limits::{EF_MAX, K_MAX, PAGE_MAX, RECALL_TARGET};
use crate::model::filter::Filter;
use crate::model::id::MemoryId;
use crate::model::kind::State;
use crate::model::name::Scope;

/// A search.
///
/// ```
/// use oubliette::Query;
/// let query = Query::vector(vec![0.6, 0.8]).k(5);
/// assert!(query.check().is_ok());
/// assert!(Query::vector(vec![0.6, 0.8]).k(0).check().is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// What to look for, as a vector of any positive length in space.
    pub vector: Option<Vec<f32>>,
    /// What to look for, as text; needs an embedder or a full-text index.
    pub text: Option<String>,
    /// How many hits at most: 1 to 1,000.
    pub k: usize,
    /// Which partitions.
    pub scope: Scope,
    /// Only memories that match.
    pub filter: Option<Filter>,
    /// How much of a large partition to look at.
    pub effort: Effort,
}

/// How much of a large partition a search looks at. A partition without a graph is scanned as a whole, whatever it
/// says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// Enough to find this share of the nearest, above 0 and below 1, as measured on the partition itself.
    Recall(f32),
    /// A walk through the graph with a list of this length: 1 to 4,096, raised to `k`.
    Ef(usize),
    /// Every vector: the answer is that of a full scan.
    Exact,
}

impl Default for Effort {
    fn default() -> Self {
        Effort::Recall(RECALL_TARGET)
    }
}

impl Query {
    /// The 10 memories nearest to `vector` in the shared part.
    pub fn vector(vector: impl Into<Vec<f32>>) -> Self {
        Query { vector: Some(vector.into()), k: 10, ..Query::default() }
    }

    /// The 10 memories that answer `text` best in the shared part.
    pub fn text(text: impl Into<String>) -> Self {
        Query { text: Some(text.into()), k: 10, ..Query::default() }
    }

    /// With another number of hits.
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// In other partitions.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Among the memories that match a filter.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// With another effort.
    ///
    /// ```
    /// use oubliette::{Effort, Query};
    /// let query = Query::vector(vec![0.6, 0.8]).effort(Effort::Recall(0.999));
    /// assert!(query.check().is_ok());
    /// assert!(query.effort(Effort::Ef(0)).check().is_err());
    /// ```
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.effort = effort;
        self
    }

    /// Bounds of the query.
    ///
    /// # Errors
    /// `Invalid` when `k` is not 1 to 1,000, `ef` not 1 to 4,096, or the recall not above 0 and below 1.
    pub fn check(&self) -> Result<()> {
        check_k(self.k)?;
        match self.effort {
            Effort::Recall(recall) if !(recall > 0.0 && recall < 1.0) => {
                Err(Error::invalid("recall", "must be above 0 and below 1", recall))
            }
            Effort::Ef(ef) if !(1..=EF_MAX).contains(&ef) => {
                Err(Error::invalid("ef", format!("must be 1 to {EF_MAX}"), ef))
            }
            _ => Ok(()),
        }
    }
}

/// Bounds of a number of hits.
pub(crate) fn check_k(k: usize) -> Result<()> {
    if k == 0 || k > K_MAX {
        return Err(Error::invalid("k", format!("must be 1 to {K_MAX}"), k));
    }
    Ok(())
}

/// One result of a search; its text is fetched when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The memory.
    pub id: MemoryId,
    /// Cosine similarity, -1 to 1, higher is nearer.
    pub score: f32,
}

/// How a search was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPlan {
    /// Partitions looked at.
    pub partitions: u64,
    /// Visible vectors whose codes were scanned.
    pub scanned: u64,
    /// Nodes of graphs whose codes were scored on a walk.
    pub walked: u64,
    /// Length of the list of the widest walk; 0 without one.
    pub ef: u64,
    /// Vectors ranked exactly.
    pub ranked: u64,
    /// How: through a `graph`, by all `codes`, by `blocks` of vectors where too many codes are alike, by `rows` where a
    /// filter names them; empty when there was nothing to search.
    pub regime: &'static str,
    /// How a filter was met: by `names` that it gives, by a `walk` or a `rank` of codes on which it was tried as far as
    /// was needed, or by a `scan` of the rows that match, after it was tried on all; empty without one.
    pub filter: &'static str,
    /// Rows on which the filter was tried.
    pub tested: u64,
    /// Rows without a vector in the scope, which no vector query can find.
    pub pending: u64,
}

/// Which part of a listing to give.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// Which partitions.
    pub scope: Scope,
    /// Only memories that match.
    pub filter: Option<Filter>,
    /// Only memories in this state; live ones by default.
    pub state: State,
    /// Every row, whatever its state; then `state` decides nothing.
    pub any_state: bool,
    /// At most so many: 1 to 10,000.
    pub limit: usize,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

impl Default for PageRequest {
    fn default() -> Self {
        PageRequest {
            scope: Scope::Shared,
            filter: None,
            state: State::Live,
            any_state: false,
            limit: 100,
            cursor: None,
        }
    }
}

impl PageRequest {
    /// Bounds of the request.
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000.
    pub fn check(&self) -> Result<()> {
        if self.limit == 0 || self.limit > PAGE_MAX {
            return Err(Error::invalid("limit", format!("must be 1 to {PAGE_MAX}"), self.limit));
        }
        Ok(())
    }
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor of the next page; none after the last.
    pub next: Option<String>,
}

/// The answer to a forget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgotten {
    /// Rows that are gone, each with a tombstone.
    pub forgotten: u64,
    /// Records whose text is still held by another write.
    pub detached: u64,
    /// Names that named nothing.
    pub missing: u64,
    /// Rows that became live again since what superseded them is gone.
    pub restored: u64,
    /// Ids of the rows that are gone.
    pub tombstones: Vec<MemoryId>,
    /// Summaries, aggregates and consolidated rows made from erased rows, which may still carry the fact.
    pub derived: Vec<MemoryId>,
}
