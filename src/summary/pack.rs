//! What the writer of a summary is given.

use serde::Serialize;

use super::document::TimeSpan;
use crate::limits::TOKEN_BYTES;
use crate::model::{AuthorKind, Kind};

/// The name of the form in which a summary is asked for.
pub(crate) const FORMAT: &str = "json_v1";
/// Examples of one aggregate that a pack has at most.
pub(crate) const EXAMPLES_MAX: usize = 10;

/// A group of memories, for the writer of their summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputPack {
    /// The form of the answer: `json_v1`.
    pub format: &'static str,
    /// What the writer is asked to do.
    pub instructions: String,
    /// The memories, oldest first.
    pub sources: Vec<PackSource>,
    /// Repeated messages in numbers and samples.
    pub aggregates: Vec<PackAggregate>,
    /// How much the answer may have.
    pub limits: PackLimits,
}

/// One memory of a pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackSource {
    /// Its id.
    pub id: String,
    /// When it happened, or was created: milliseconds since 1970.
    pub ts: i64,
    /// Its channel.
    pub channel: Option<String>,
    /// Who wrote it.
    pub author_kind: Option<AuthorKind>,
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub text: String,
}

/// Repeated messages, not one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackAggregate {
    /// The id of the aggregate.
    pub aggregate_id: String,
    /// The observed number of messages.
    pub dup_count: u64,
    /// From the first to the last message.
    pub time_span: TimeSpan,
    /// At most ten of the texts.
    pub examples: Vec<String>,
    /// What tells these messages from others.
    pub signals: Vec<String>,
}

/// How much a summary may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PackLimits {
    /// Events.
    pub bullets: usize,
    /// Patterns of spam.
    pub patterns: usize,
}

impl InputPack {
    /// A pack of these sources, with the instructions.
    ///
    /// ```
    /// use oubliette::gc::{InputPack, PackLimits};
    ///
    /// let pack = InputPack::new(vec![], vec![], PackLimits { bullets: 25, patterns: 10 });
    /// assert!(pack.instructions.contains("Output only JSON"));
    /// ```
    pub fn new(mut sources: Vec<PackSource>, mut aggregates: Vec<PackAggregate>, limits: PackLimits) -> Self {
        sources.sort_by(|a, b| (a.ts, &a.id).cmp(&(b.ts, &b.id)));
        aggregates.iter_mut().for_each(|aggregate| aggregate.examples.truncate(EXAMPLES_MAX));
        InputPack { format: FORMAT, instructions: instructions(limits), sources, aggregates, limits }
    }

    /// The estimated tokens of its sources.
    ///
    /// ```
    /// # use oubliette::gc::{InputPack, PackLimits};
    /// # let pack = InputPack::new(vec![], vec![], PackLimits { bullets: 25, patterns: 10 });
    /// assert_eq!(pack.tokens(), 0);
    /// ```
    pub fn tokens(&self) -> u64 {
        self.sources.iter().map(|source| token_estimate(&source.text)).sum()
    }
}

/// The estimated tokens of a text of which nothing was counted: a quarter of its bytes, rounded up.
///
/// ```
/// use oubliette::gc::token_estimate;
/// assert_eq!((token_estimate(""), token_estimate("four"), token_estimate("tokens")), (0, 1, 2));
/// ```
pub fn token_estimate(text: &str) -> u64 {
    tokens_of(text.len())
}

/// The estimate for a text of so many bytes.
pub(crate) fn tokens_of(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN_BYTES) as u64
}

fn instructions(limits: PackLimits) -> String {
    let PackLimits { bullets, patterns } = limits;
    format!(
        "Summarize the sources. Output only JSON: one object with the members topic (a text), time_range ({{\"start\", \
         \"end\"}} in milliseconds since 1970), summary (1 to {bullets} texts, the most important events in order of \
         time, each with who and when), source_ids (the ids of the sources), and if there are any spam_patterns (at \
         most {patterns} objects {{\"pattern\", \"signals\", \"count_estimate\", \"estimated\"}}), decisions, \
         open_loops and entities (lists of texts). Do not invent facts. Write \"unknown\" when unsure. Keep a count \
         only if it was observed; otherwise estimate it and set \"estimated\" to true. For each spam pattern say how to \
         recognize it (signals), so that the summary can become a filter."
    )
}
