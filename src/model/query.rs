//! Questions and their answers: query, hit, page, and the result of a forget.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::limits::{EF_MAX, K_MAX, PAGE_MAX, QUERY_BYTES_MAX, RECALL_TARGET};
use crate::model::closed::closed_set;
use crate::model::filter::Filter;
use crate::model::id::MemoryId;
use crate::model::kind::State;
use crate::model::name::Scope;
use crate::model::past::{PastPlan, PointInTime, PurgeHorizon};
use crate::model::span::Span;
use crate::model::time::Time;

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
    /// The vector to look for, of any positive length in space.
    pub vector: Option<Vec<f32>>,
    /// The text to look for: at most 64 KiB. With an embedder the search also goes by its meaning.
    pub text: Option<String>,
    /// What the search ranks by.
    pub mode: Mode,
    /// The largest number of hits: 1 to 1,000.
    pub k: usize,
    /// How many of the best hits to skip: 0 by default; with `k` at most 1,000.
    pub offset: usize,
    /// The least score of a hit; any score by default.
    pub min_score: Option<f32>,
    /// The partitions to search.
    pub scope: Scope,
    /// Only memories that match this filter.
    pub filter: Option<Filter>,
    /// How much of a large partition the search looks at.
    pub effort: Effort,
    /// How much the hits should differ from each other, 0 to 1. With 0 the score alone ranks.
    pub diversity: f32,
    /// How long the search may take, 0 to 36,525 days; without a bound by default. The hits found by then are ranked,
    /// and the plan says that it is partial.
    pub deadline: Option<Span>,
    /// The instants that the search asks about; the present by default.
    pub at: PointInTime,
    /// Whether the hits count as retrieved; by default as the handle says
    /// ([`Builder::track`](crate::Builder::track)).
    pub track: Option<bool>,
    /// The step of the host, where it counts steps: a hit that counts as retrieved keeps it.
    pub step: Option<u64>,
}

closed_set! {
    /// What a search ranks by.
    #[derive(Default)]
    pub Mode "mode" {
        /// By vector and words, as far as there are both.
        #[default]
        Hybrid = 0, "hybrid";
        /// By vector alone.
        Vector = 1, "vector";
        /// By words alone.
        Text = 2, "text";
    }
}

/// How much of a large partition a search looks at. A partition of fewer than 4,096 vectors is always scanned as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// Enough to find this share of the nearest, above 0 and below 1: in a graph as measured on the partition itself, in a
    /// scan by one-bit codes as their error says. In a search that also goes by words, this share of the answer.
    Recall(f32),
    /// A walk through the graph with a list of this length: 1 to 4,096, raised to `k`.
    Ef(usize),
    /// Every vector. The answer is that of a full scan.
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
    ///
    /// ```
    /// use oubliette::{Draft, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(team.search(Query::vector([0.6, 0.8]))?.hits.len(), 1);
    /// assert!(team.search(Query::vector([0.6, 0.8, 0.1])).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn vector(vector: impl Into<Vec<f32>>) -> Self {
        Query { vector: Some(vector.into()), k: 10, ..Query::default() }
    }

    /// The 10 memories that answer `text` best in the shared part.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(team.search(Query::text("tea"))?.hits.len(), 1);
    /// assert!(Query::text("x".repeat(70_000)).check().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text(text: impl Into<String>) -> Self {
        Query { text: Some(text.into()), k: 10, ..Query::default() }
    }

    /// With another mode.
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

    /// With hits that differ from each other. Each later hit loses `diversity` times its cosine to the most similar
    /// hit before it.
    ///
    /// ```
    /// use oubliette::Query;
    /// assert!(Query::text("where does Ann live?").diversity(0.5).check().is_ok());
    /// assert!(Query::text("where does Ann live?").diversity(1.5).check().is_err());
    /// ```
    #[must_use]
    pub fn diversity(mut self, diversity: f32) -> Self {
        self.diversity = diversity;
        self
    }

    /// With a deadline, after which the search ends with the hits found so far. A clause of the words, a walk through
    /// a graph and the scan of a partition are each finished once they have begun.
    ///
    /// ```
    /// use oubliette::Query;
    /// use std::time::Duration;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(team.search(Query::text("tea").deadline(Duration::from_secs(5)))?.hits.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Span>) -> Self {
        self.deadline = Some(deadline.into());
        self
    }

    /// With another number of hits.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for text in ["Ann prefers tea", "Bob prefers tea"] {
    ///     team.add(text)?;
    /// }
    /// assert_eq!(team.search(Query::text("tea").k(1))?.hits.len(), 1);
    /// assert!(team.search(Query::text("tea").k(0)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn k(mut self, k: usize) -> Self {
        self.k = k;
        self
    }

    /// Without the best `offset` hits: the page behind them. Pages of one length and one [`Snapshot`](crate::Snapshot) follow
    /// each other without a gap or a repeat within the first 50 hits, and again behind them. Where a page crosses that
    /// border, more candidates are ranked, which can move a hit from one page to another. So it can in a diverse search, and
    /// where a graph is walked. To see every hit once, ask for all of them with `k`.
    ///
    /// ```
    /// use oubliette::Query;
    /// let query = Query::text("where does Ann live").k(10).offset(10);
    /// assert!(query.check().is_ok());
    /// assert!(query.offset(991).check().is_err());
    /// ```
    #[must_use]
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Without hits whose [score](Hit::score) is lower. The scores of two modes, or of two embedders, do not compare;
    /// [`Hit::relevance`] does for modes.
    ///
    /// ```
    /// use oubliette::Query;
    /// let query = Query::vector(vec![0.6, 0.8]).min_score(0.7);
    /// assert!(query.check().is_ok());
    /// assert!(query.min_score(f32::NAN).check().is_err());
    /// ```
    #[must_use]
    pub fn min_score(mut self, min_score: f32) -> Self {
        self.min_score = Some(min_score);
        self
    }

    /// As it was at an instant: among the memories that were visible then, as they were known then. Memories in limbo take
    /// part if they were removed later. Filters and words read tags, metadata and counters as they stand now.
    ///
    /// ```
    /// use oubliette::{Draft, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let clock = oubliette::clock::ManualClock::at("2026-03-01T00:00:00Z".parse()?);
    /// # let builder = oubliette::Database::builder().clock(clock.clone());
    /// # let team = builder.open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("home"))?;
    /// # clock.set("2026-05-01T00:00:00Z".parse()?);
    /// team.add(Draft::new("Ann lives in Bruges").key("home"))?;
    /// let march = "2026-03-02T00:00:00Z".parse()?;
    /// assert_eq!(team.search("Ann")?.hits[0].text, "Ann lives in Bruges");
    /// assert_eq!(team.search(Query::text("Ann").as_of(march))?.hits[0].text, "Ann lives in Ghent");
    /// assert!(team.search(Query::text("Ann").as_of("2030-01-01T00:00:00Z".parse()?)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_of(self, at: Time) -> Self {
        self.valid_at(at).known_at(at)
    }

    /// What is true at an instant of the world, which may lie ahead, as far as it is known now.
    ///
    /// ```
    /// use oubliette::{Draft, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let spring = "2020-03-01T00:00:00Z".parse()?;
    /// team.add(Draft::new("Ann leads the team").valid_to("2021-01-01T00:00:00Z".parse::<oubliette::Time>()?))?;
    /// assert_eq!(team.search("Ann")?.hits.len(), 0);
    /// assert_eq!(team.search(Query::text("Ann").valid_at(spring))?.hits.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn valid_at(mut self, valid_at: Time) -> Self {
        self.at.valid_at = Some(valid_at);
        self
    }

    /// As far as the database knew at an instant of transaction time, which must not lie ahead.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let before = "2020-03-01T00:00:00Z".parse()?;
    /// assert!(team.search(Query::text("Ann").known_at(before))?.hits.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn known_at(mut self, known_at: Time) -> Self {
        self.at.known_at = Some(known_at);
        self
    }

    /// With an answer from what is left where maintenance has erased a part of the past that is asked for. The
    /// [plan](SearchPlan::past) then names the horizon. Without it, such a search is the error `BeforePurgeHorizon`.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let query = Query::text("Ann").as_of("2020-03-01T00:00:00Z".parse()?).allow_partial(true);
    /// assert!(team.search(query)?.hits.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn allow_partial(mut self, allow_partial: bool) -> Self {
        self.at.allow_partial = allow_partial;
        self
    }

    /// With hits that count as retrieved, or not. The search itself writes nothing: the next write counts them.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.search(Query::text("tea").track(true))?;
    /// team.add("It rains")?;
    /// assert_eq!(team.get(tea)?.unwrap().retrieval_count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn track(mut self, track: bool) -> Self {
        self.track = Some(track);
        self
    }

    /// With the step of the host at which it asks. A hit that counts as retrieved keeps the latest step.
    ///
    /// ```
    /// use oubliette::Query;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let tea = team.add("Ann prefers tea")?.id;
    /// team.search(Query::text("tea").track(true).step(17))?;
    /// team.add("It rains")?;
    /// assert_eq!(team.get(tea)?.unwrap().last_retrieved_step, Some(17));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn step(mut self, step: u64) -> Self {
        self.step = Some(step);
        self
    }

    /// How many hits are ranked: those that are skipped as well.
    pub(crate) fn depth(&self) -> usize {
        self.offset.saturating_add(self.k)
    }

    /// Whether a score is high enough for a hit.
    pub(crate) fn takes(&self, score: f32) -> bool {
        self.min_score.is_none_or(|least| score >= least)
    }

    /// In other partitions.
    ///
    /// ```
    /// use oubliette::{Draft, Query, Scope};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("The crawler ran").agent("crawler"))?;
    /// assert_eq!(team.search(Query::text("crawler"))?.hits.len(), 0);
    /// assert_eq!(team.search(Query::text("crawler").scope(Scope::Any))?.hits.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Among the memories that match a filter.
    ///
    /// ```
    /// use oubliette::{Draft, Filter, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann prefers tea").tag("people"))?;
    /// let query = Query::text("tea").filter(Filter::parse(r#"{"tags": "machines"}"#)?);
    /// assert!(team.search(query)?.hits.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Checks the bounds of the query.
    ///
    /// ```
    /// use oubliette::Query;
    /// assert!(Query::text("tea").k(1_000).check().is_ok());
    /// assert_eq!(Query::text("tea").k(0).check().unwrap_err().to_string(), "k: must be 1 to 1000 (got 0)");
    /// ```
    ///
    /// # Errors
    /// `Invalid` when `k` is not 1 to 1,000, the offset with `k` more than 1,000, the least score not finite, `ef` not
    /// 1 to 4,096, the recall not above 0 and below 1, the diversity not 0 to 1, the deadline not 0 to 36,525 days, or
    /// the text longer than 64 KiB.
    pub fn check(&self) -> Result<()> {
        if self.k == 0 || self.k > K_MAX {
            return Err(Error::invalid("k", format!("must be 1 to {K_MAX}"), self.k));
        }
        if self.depth() > K_MAX {
            let why = format!("must be at most {} with this k: both together {K_MAX}", K_MAX - self.k);
            return Err(Error::invalid("offset", why, self.offset));
        }
        if let Some(least) = self.min_score.filter(|least| !least.is_finite()) {
            return Err(Error::invalid("min_score", "must be a finite number", least));
        }
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

/// One result of a search. Its text is read when it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The memory.
    pub id: MemoryId,
    /// The score; higher is better. In a search by vector alone it is the cosine similarity, -1 to 1.
    /// Otherwise it is the sum of the [`Signals`].
    pub score: f32,
    /// How likely the memory answers the query, 0 to 1: 1 / (1 + exp(-(a · score + b))), with an `a` and a `b` for
    /// each mode ([`SearchPlan::mode`]) that were fitted to judged questions (`docs/recall.md`). It never falls within an
    /// answer where the score rises. It suits the default weights of the policy, and vectors like those of the shipped
    /// embedder.
    pub relevance: f32,
    /// A key that it answers to: of several the one that was written first.
    pub key: Option<String>,
    /// Its text.
    pub text: String,
    /// What the score is made of.
    pub signals: Signals,
    /// Of a summary: what it stands for.
    pub stands_for: Option<StandsFor>,
}

impl Hit {
    /// Relevance below which a hit has next to nothing to do with the question.
    const RELEVANT: f32 = 0.02;

    /// Whether the memory has anything to do with the query, by its [`Hit::relevance`]: at least 0.02.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert!(team.search("what does Ann prefer")?.hits[0].is_relevant());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_relevant(&self) -> bool {
        self.relevance >= Self::RELEVANT
    }
}

/// What a summary stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StandsFor {
    /// The number of its sources; [`Namespace::expand`](crate::Namespace::expand) names them.
    pub count: u64,
    /// When the first of them happened, as far as the summary says.
    pub start: Option<Time>,
    /// When the last of them happened.
    pub end: Option<Time>,
    /// How many of them were forgotten since. The summary may still tell what they said.
    pub source_forgotten: u64,
}

/// A memory with its score, before its text is fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) id: MemoryId,
    pub(crate) score: f32,
    pub(crate) signals: Signals,
}

/// What the score of a hit is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Signals {
    /// The cosine similarity, -1 to 1; none if the query or the memory has no vector. In a search that also goes by
    /// words, the cosine of a hit outside the nearest `k` is that of the codes of the vectors, with an error below
    /// 0.01.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<f32>,
    /// The share of the weight of the query's words that the memory holds by its own words, 0 to 2; none if the query
    /// has no words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<f32>,
    /// What the words of the neighbours in the thread add to that share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<f32>,
    /// What the time of the memory adds, if the query names a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f32>,
    /// What recency, trust and significance add, if the policy gives them a weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<f32>,
}

impl Ranked {
    /// By vector alone.
    pub(crate) fn near(id: MemoryId, score: f32) -> Self {
        Ranked { id, score, signals: Signals { vector: Some(score), ..Signals::default() } }
    }
}

/// How a search was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchPlan {
    /// What the search ranked by: `hybrid`, `vector` or `text`. A `hybrid` search that had only one of the two says
    /// which.
    pub mode: &'static str,
    /// Why the embedder gave no vector for the text of a `hybrid` search, which was answered by its words alone; none where it
    /// did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder_failed: Option<String>,
    /// The number of visible memories whose words could be found; 0 without words.
    pub texts: u64,
    /// How often a word of the query was met in one of them.
    pub postings: u64,
    /// The number of memories that were ranked by both.
    pub candidates: u64,
    /// Whether the query had more words than a query keeps.
    pub cut: bool,
    /// Whether something was left out because the deadline was over.
    pub partial: bool,
    /// The number of partitions searched.
    pub partitions: u64,
    /// The number of visible vectors whose codes were scanned.
    pub scanned: u64,
    /// The number of graph nodes whose codes were scored on a walk.
    pub walked: u64,
    /// The length of the list of the widest walk; 0 without a walk.
    pub ef: u64,
    /// The number of vectors that were ranked exactly.
    pub ranked: u64,
    /// How the vectors were searched: through a `graph`; by one-bit codes (`bits`) and the codes that these point to; by
    /// all `codes`; by `blocks` of vectors where too many codes are alike; or by `rows` where a filter names them. Empty
    /// when there was nothing to search.
    pub regime: &'static str,
    /// How a filter was applied: by the `names` that it gives; during a `walk`, or a `rank` of codes, as far as
    /// needed; or by a `scan` of the matching rows, after it was tried on all rows. Empty without a filter.
    pub filter: &'static str,
    /// The number of rows on which the filter was tried, or in a search of the past whether they were visible then.
    pub tested: u64,
    /// The number of rows that were left out because their codes, vectors, words or what the filter needs can't be read. Of
    /// one-bit codes only rows that were likely hits are counted. A hit whose key can't be read counts as well. A word of the query whose list of rows is damaged counts as one.
    pub damaged: u64,
    /// The number of rows in the scope without a vector, which no vector query can find.
    pub pending: u64,
    /// How the past was read; none for a search of the present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past: Option<PastPlan>,
}

/// Which part of a listing to give.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The partitions to list.
    pub scope: Scope,
    /// Only memories that match this filter.
    pub filter: Option<Filter>,
    /// Only memories in this state; live memories by default.
    pub state: State,
    /// Whether to list every row in any state. `state` then decides nothing.
    pub any_state: bool,
    /// Whether the latest created memories come first, those of all partitions together. By default the earliest do,
    /// partition by partition.
    pub newest_first: bool,
    /// The largest number of items: 1 to 10,000.
    pub limit: usize,
    /// The cursor of the page before.
    pub cursor: Option<String>,
    /// The instants that the listing asks about; the present by default. A listing of the past has the memories that were
    /// visible then, and no other `state` can be asked for.
    pub at: PointInTime,
}

impl Default for PageRequest {
    fn default() -> Self {
        PageRequest {
            scope: Scope::Shared,
            filter: None,
            state: State::Live,
            any_state: false,
            newest_first: false,
            limit: 100,
            cursor: None,
            at: PointInTime::default(),
        }
    }
}

impl PageRequest {
    /// Checks the bounds of the request.
    ///
    /// ```
    /// use oubliette::PageRequest;
    /// assert!(PageRequest::default().check().is_ok());
    /// assert!(PageRequest { limit: 10_001, ..PageRequest::default() }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid` when the limit is not 1 to 10,000, or when the listing asks about the past and for a state other than live.
    pub fn check(&self) -> Result<()> {
        if !self.at.is_present() && (self.any_state || self.state != State::Live) {
            let shown = if self.any_state { "any" } else { self.state.as_str() };
            return Err(Error::invalid("state", "must be live in a listing of the past", shown));
        }
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
    /// The cursor of the next page; none after the last page.
    pub next: Option<String>,
    /// The ids of damaged rows of the page, which were left out. It is not always known whether such a row belongs to
    /// the listing. A message is also named if it is shown and the family that it began is damaged.
    pub damaged: Vec<MemoryId>,
    /// The horizon behind which a listing of the past reaches, so that memories may be missing; none if none are.
    pub horizon: Option<PurgeHorizon>,
}

impl<T> Page<T> {
    /// A page of the present.
    pub(crate) fn new(items: Vec<T>, next: Option<String>, damaged: Vec<MemoryId>) -> Self {
        Page { items, next, damaged, horizon: None }
    }
}

/// The answer to a forget.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forgotten {
    /// The number of records or rows that are gone, each with a tombstone.
    pub forgotten: u64,
    /// The number of records whose text another write still holds.
    pub detached: u64,
    /// The number of keyless writes that had been merged into a row and went with it, because no other write
    /// had kept a text.
    pub went_with: u64,
    /// The names that named nothing, in the order in which they were given.
    pub missing_names: Vec<String>,
    /// The number of rows that are still there: earlier and later versions of memories that were forgotten by id, other rows
    /// to which one of their keys leads, and what took the place of a text that was forgotten by its key.
    pub versions_left: u64,
    /// The earlier versions among these, and the other rows. Ascending.
    pub earlier: Vec<MemoryId>,
    /// The later versions among these: what took the place of a text that was forgotten, as a new text or a correction. It has an
    /// id of its own, so a caller who kept the first one may mean it. A key goes with what it has said itself, and what somebody has
    /// put in the place of that stays, though the key has answered with it. Ascending.
    ///
    /// ```
    /// use oubliette::Draft;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add(Draft::new("Ann lives in Ghent").key("ann:home"))?;
    /// let bruges = team.supersede("ann:home", "Ann lives in Bruges")?.id;
    /// let done = team.forget("ann:home")?;
    /// assert_eq!((done.forgotten, done.later), (1, vec![bruges]));
    /// assert_eq!(team.text(bruges)?.as_deref(), Some("Ann lives in Bruges"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub later: Vec<MemoryId>,
    /// The versions among these that are not true yet: they are to take the place at an instant ahead. Ascending.
    pub to_come: Vec<MemoryId>,
    /// Rows that were left alone because it can't be read whether they were to be forgotten. They can be forgotten by
    /// id.
    pub undecided: Vec<MemoryId>,
    /// The number of rows that became live again because the row that superseded them is gone.
    pub restored: u64,
    /// The ids of the rows that are gone.
    pub tombstones: Vec<MemoryId>,
    /// Summaries, aggregates and consolidated rows made from erased rows. They may still contain the fact.
    pub derived: Vec<MemoryId>,
}

impl Forgotten {
    /// The number of names that named nothing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert_eq!(team.forget("nobody")?.missing(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn missing(&self) -> u64 {
        self.missing_names.len() as u64
    }
}

/// What renaming a key did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenameReport {
    /// The memory to which the new key leads.
    pub id: MemoryId,
    /// The number of rows that got the key: the memory, its earlier versions and its rows in limbo; 0 where both keys
    /// are the same.
    pub rows: u64,
}

/// What restoring did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The memory that is back.
    pub id: MemoryId,
    /// Keys that another memory has taken since; they stay there.
    pub keys_taken: Vec<String>,
    /// Memories that its keys had written in its place. It supersedes these in turn, because a key has one text that is
    /// true.
    pub replaced: Vec<MemoryId>,
    /// The memory that superseded it, where it came back from limbo and all its writers had said something else
    /// meanwhile; none: it is live.
    pub superseded_by: Option<MemoryId>,
}
