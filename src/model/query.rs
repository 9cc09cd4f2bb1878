//! Questions and their answers: query, hit, page, and what became of a forget.

use crate::error::{Error, Result};
use crate::limits::{EF_MAX, K_MAX, PAGE_MAX, QUERY_BYTES_MAX, RECALL_TARGET};
use crate::model::closed::closed_set;
use crate::model::filter::Filter;
use crate::model::id::MemoryId;
use crate::model::kind::State;
use crate::model::name::Scope;
use crate::model::time::Span;

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
    /// What to look for, as text: at most 64 KiB. With an embedder it is looked for by its meaning as well.
    pub text: Option<String>,
    /// By what to look.
    pub mode: Mode,
    /// How many hits at most: 1 to 1,000.
    pub k: usize,
    /// Which partitions.
    pub scope: Scope,
    /// Only memories that match.
    pub filter: Option<Filter>,
    /// How much of a large partition to look at.
    pub effort: Effort,
    /// How much hits shall differ from each other, 0 to 1: 0 ranks by score alone.
    pub diversity: f32,
    /// How long it may take, 0 to 36,525 days; as long as it does, by default. What was found until then is ranked, and the
    /// plan says so.
    pub deadline: Option<Span>,
}

closed_set! {
    /// By what a search ranks.
    #[derive(Default)]
    pub Mode "mode" {
        /// By vector and words, whatever of them there is.
        #[default]
        Hybrid = 0, "hybrid";
        /// By vector alone.
        Vector = 1, "vector";
        /// By words alone.
        Text = 2, "text";
    }
}

/// How much of a large partition a search looks at. A partition without a graph is scanned as a whole, whatever it
/// says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// Enough to find this share of the nearest, above 0 and below 1, as measured on the partition itself; in a search by
    /// words as well, this share of the answer.
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

impl From<&str> for Query {
    /// As [`Query::text`].
    fn from(text: &str) -> Self {
        Query::text(text)
    }
}

impl From<String> for Query {
    /// As [`Query::text`].
    fn from(text: String) -> Self {
        Query::text(text)
    }
}

impl From<&Query> for Query {
    fn from(query: &Query) -> Self {
        query.clone()
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

    /// By something else.
    ///
    /// ```
    /// use oubliette::{Mode, Query};
    /// let query = Query::text("where does Ann live").mode(Mode::Text).k(3);
    /// assert!(query.check().is_ok());
    /// ```
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// With hits that differ from each other: each that comes later loses `diversity` times its cosine to the most alike
    /// one before it.
    #[must_use]
    pub fn diversity(mut self, diversity: f32) -> Self {
        self.diversity = diversity;
        self
    }

    /// With a time after which it ends with what it has found. A clause of the words, a walk through a graph and the scan of a
    /// partition are each finished once they have begun.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Span>) -> Self {
        self.deadline = Some(deadline.into());
        self
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
    /// `Invalid` when `k` is not 1 to 1,000, `ef` not 1 to 4,096, the recall not above 0 and below 1, the diversity not 0 to
    /// 1, the deadline not 0 to 36,525 days, or the text longer than 64 KiB.
    pub fn check(&self) -> Result<()> {
        check_k(self.k)?;
        if !(0.0..=1.0).contains(&self.diversity) {
            return Err(Error::invalid("diversity", "must be 0 to 1", self.diversity));
        }
        self.deadline.map_or(Ok(()), |deadline| deadline.check("deadline"))?;
        if let Some(len) = self.text.as_ref().map(String::len).filter(|len| *len > QUERY_BYTES_MAX) {
            return Err(Error::invalid("query", format!("must have at most {QUERY_BYTES_MAX} bytes"), len));
        }
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

/// One result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The memory.
    pub id: MemoryId,
    /// Higher is better. By vector alone: cosine similarity, -1 to 1; otherwise what [`Signals`] add up to.
    pub score: f32,
    /// A key that it answers to: of several the one that was written first.
    pub key: Option<String>,
    /// Its text.
    pub text: String,
    /// What the score is made of.
    pub signals: Signals,
}

/// A memory with its score, before its text is fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) id: MemoryId,
    pub(crate) score: f32,
    pub(crate) signals: Signals,
}

/// What brought a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Cosine similarity, -1 to 1; in a search by words as well it is that of the codes of the vectors, less than 0.01 off,
    /// for hits that are not among the nearest `k`. None where the query or the memory has no vector.
    pub vector: Option<f32>,
    /// Share of what the words of the query weigh that the memory holds, by its own words: 0 to 2. None where the query has
    /// no words.
    pub text: Option<f32>,
    /// What the words of its neighbours in its thread add to that.
    pub context: Option<f32>,
    /// What its time adds where the query names a month.
    pub time: Option<f32>,
    /// What its recency, trust and significance add, where the policy gives them a weight.
    pub prior: Option<f32>,
}

impl Ranked {
    /// By vector alone.
    pub(crate) fn near(id: MemoryId, score: f32) -> Self {
        Ranked { id, score, signals: Signals { vector: Some(score), ..Signals::default() } }
    }
}

/// How a search was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPlan {
    /// By what it ranked: `hybrid`, `vector` or `text`; `hybrid` where there was only one of them to go by is that one.
    pub mode: &'static str,
    /// Visible memories whose words could be found; 0 without words.
    pub texts: u64,
    /// Times that a word of the query was met in one of them.
    pub postings: u64,
    /// Memories that were ranked by both.
    pub candidates: u64,
    /// Whether more words were asked for than a query keeps.
    pub cut: bool,
    /// Whether something was left out because the deadline of the query was over.
    pub partial: bool,
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
    /// Rows that were left out because what the filter asks of them can't be read.
    pub damaged: u64,
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
    /// Rows of the page that are damaged and were left out, by id; whether such a row is one of those that were asked for
    /// is not always known.
    pub damaged: Vec<MemoryId>,
}

/// The answer to a forget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forgotten {
    /// Records or rows that are gone, each with a tombstone.
    pub forgotten: u64,
    /// Records whose own text is still held by another write.
    pub detached: u64,
    /// Writes without a key that had been merged into a row and went with it: no other write had kept a text.
    pub went_with: u64,
    /// Names that named nothing.
    pub missing: u64,
    /// Earlier versions of memories that were forgotten by id, and other rows that a key of theirs leads to: they are still
    /// there.
    pub versions_left: u64,
    /// Rows that were left alone because it can't be read whether they are among those that were to go. Forget them by
    /// their ids.
    pub undecided: Vec<MemoryId>,
    /// Rows that became live again since what superseded them is gone.
    pub restored: u64,
    /// Ids of the rows that are gone.
    pub tombstones: Vec<MemoryId>,
    /// Summaries, aggregates and consolidated rows made from erased rows, which may still carry the fact.
    pub derived: Vec<MemoryId>,
}
