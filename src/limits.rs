//! Every bound and every constant of the file format, in one place.
//!
//! Bounds that a user can meet are errors of kind [`Invalid`](crate::ErrorKind::Invalid) when they are
//! broken; nothing is ever truncated. Units stand last in a name.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};

/// Holds a number to its bounds, both included.
pub(crate) fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(field, format!("must be {} to {}", bounds.start(), bounds.end()), value))
}

/// Holds a number to the largest that is allowed.
pub(crate) fn at_most<T: PartialOrd + Display>(field: &str, value: T, most: T) -> Result<()> {
    if value <= most {
        return Ok(());
    }
    Err(Error::invalid(field, format!("must be at most {most}"), value))
}

/// Embedding spaces of a file past which an import opens no other for vectors that nothing searches.
pub const FORMER_SPACES_MAX: u16 = 256;

/// Version of the file format: the only one that this build reads and writes (`docs/format.md`).
pub const FORMAT_VERSION: u32 = 17;
/// Uses of a memory that its row tells apart for the tables of memories by use; more count as these.
pub const USES_MAX: u8 = 15;
/// Classes into which the importance of unused memories is divided.
pub const IMPORTANCE_CLASSES: u8 = 16;
/// Bands of a SimHash of 64 bits, a byte each: two fingerprints at most 7 bits apart share one.
pub const SIMHASH_BANDS: usize = 8;
/// Texts that an aggregate shows of its members.
pub const SNIPPETS_MAX: usize = 3;
/// Bytes of each of them.
pub const SNIPPET_BYTES: usize = 200;

/// Id of the normalizer of fingerprints, written into each file.
pub const NORMALIZER: &str = "fp-1";

/// Id of the analyzer of full-text indexes, unless the policy names a language of its own.
pub const ANALYZER: &str = "terms-1/english";

/// Namespace and agent names.
pub const NAME_BYTES_MAX: usize = 256;
/// Caller keys.
pub const KEY_BYTES_MAX: usize = 512;
/// Text of one memory.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Payload of one memory: its bytes, or its JSON text.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Metadata of one memory, as JSON text.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Nesting of a metadata value or a payload; deeper JSON is refused before it is walked.
pub const METADATA_DEPTH_MAX: usize = 32;
/// Tags of one memory.
pub const TAGS_MAX: usize = 64;
/// One tag, category, entity name, role or relation.
pub const TAG_BYTES_MAX: usize = 128;
/// Entities, categories, links or sources of one memory, each.
pub const LINKS_MAX: usize = 1_024;
/// Memories of which one says that they were merged into it, as a write gives them: more than a line of an export can name. What
/// passes merge has no bound.
pub const CONSOLIDATED_MAX: usize = 1 << 23;
/// Number of a holder in a line of an export: a memory has as many numbers again for the writes to come.
pub const HOLDER_NUMBER_MAX: u32 = u32::MAX / 2;
/// Every other short string field: channel, thread, session, author, series, resource …
pub const FIELD_BYTES_MAX: usize = 1_024;
/// Entries of each list that only a summary carries (bullets, decisions, open loops, patterns).
pub const SUMMARY_ITEMS_MAX: usize = 256;
/// Bullets of one summary as its writer gives it.
pub const SUMMARY_BULLETS_MAX: usize = 40;
/// JSON text of one summary as its writer gives it.
pub const SUMMARY_JSON_BYTES_MAX: usize = 4 << 20;
/// Tokens that the built-in summarizer gives a summary however small its share is, where that is at most half of the sources.
pub const SUMMARY_TOKENS_MIN: u64 = 60;
/// Attachments or embeds of one message, each.
pub const ATTACHMENTS_MAX: usize = 64;

/// Memories of one context in the inclusion log.
pub const CONTEXT_ITEMS_MAX: usize = 500;
/// Name of a context, or of the session that it is of.
pub const CONTEXT_NAME_BYTES_MAX: usize = 128;

/// Characters of a question that a plan of summaries is asked, and of a query that is kept to be one.
pub const PROBE_CHARS_MAX: usize = 400;
/// Memories that a query has found which is kept: a search that finds more of them asks for no memory.
pub const QUERY_HITS_MAX: usize = 100;
/// Queries that are kept of one partition.
pub const QUERY_LOG_MAX: u64 = 10_000;

/// Text of one goal.
pub const GOAL_BYTES_MAX: usize = 8 << 10;
/// Goals of one namespace: each memory that is scored is compared with all goals of its agent.
pub const GOALS_MAX: usize = 1_000;
/// Weight of a goal.
pub const GOAL_WEIGHT_MAX: f32 = 10.0;

/// Dimensions of an embedding.
pub const DIM_MAX: usize = 4_096;
/// Results of one query, with those that its offset skips.
pub const K_MAX: usize = 1_000;
/// Most neighbours that deduplication looks at for a row: a search for them finds the row itself as well.
pub const NEIGHBOURS_MAX: u32 = K_MAX as u32 - 1;
/// Largest value of the least members of a cluster.
pub const CLUSTER_MAX: u32 = 1_000_000;
/// Most rows of a page of a pass's listing.
pub const LISTING_ROWS_MAX: u32 = 1_000_000;
/// Most sample groups of a pass's report.
pub const SAMPLES_MAX: u32 = 10_000;
/// Memories that a plan of a forget names.
pub const FORGET_SAMPLE_MAX: usize = 20;
/// Neighbours of a memory in its thread, to each side.
pub const AROUND_MAX: usize = 1_000;
/// Items of one page of a listing.
pub const PAGE_MAX: usize = 10_000;
/// Bytes of text that count as a token where texts are packed into a budget of tokens.
pub const TOKEN_BYTES: usize = 4;
/// Nesting of a filter.
pub const FILTER_DEPTH_MAX: usize = 16;
/// Comparisons in one filter, all levels together.
pub const FILTER_CLAUSES_MAX: usize = 256;
/// Values of one `$in` or `$nin`.
pub const FILTER_IDS_MAX: usize = 10_000;
/// JSON text of one filter.
pub const FILTER_BYTES_MAX: usize = 1 << 20;
/// One line of JSON that a caller writes: the largest record, with every byte of it escaped, fits.
pub const LINE_BYTES_MAX: usize = 16 << 20;
/// One line of an export: a memory stands in one line with every write that it stands for, however many there are.
pub const EXPORT_LINE_BYTES_MAX: usize = 256 << 20;
/// A file of another tool that is one JSON document.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Members of the object that one line holds.
pub const LINE_FIELDS_MAX: usize = 1_024;
/// JSON text of one field of a line, besides text, vector and holders: every legal value fits, with every
/// byte of it escaped.
pub const FIELD_JSON_BYTES_MAX: usize = 2 << 20;
/// Header of a NumPy file.
pub const NPY_HEADER_BYTES_MAX: usize = 64 << 10;

/// Rows that one group commit takes at most; a caller's own batch is never split.
pub const GROUP_ROWS_MAX: usize = 4_096;
/// Bytes of drafts that one group commit takes at most.
pub const GROUP_BYTES_MAX: usize = 16 << 20;
/// Rows of the largest slice of upkeep: of what is written, cleared or looked at in one transaction.
pub const SLICE_ROWS_MAX: usize = 8_192;
/// Bytes of decoded blocks that a transaction keeps for its end, whatever it changes.
pub const STAGED_BYTES_MAX: usize = 16 << 20;
/// Bytes of rows that a transaction gathers before it changes the tables in the order of their keys.
pub const GATHERED_BYTES_MAX: usize = 4 << 20;
/// Operations of one caller's batch.
pub const BATCH_ROWS_MAX: usize = 100_000;

/// Page of the key-value store that a vector block or slot block fills; where too few entries fit, a power of two of it.
pub const BLOCK_PAGE_BYTES: usize = 8 << 10;
/// What of such a page belongs to the key-value store: a header, two offsets and the key.
pub const BLOCK_PAGE_OVERHEAD: usize = 40;

/// Slots from which on an index has one-bit codes. A scan of the codes of fewer slots is as fast, and certain.
pub const BITS_SLOTS_MIN: u32 = 4_096;
/// Dimensions from which on an index has one-bit codes. Errors of fewer dimensions are few, so that their sum is not
/// normal, and codes of so few bytes are soon read.
pub const BITS_DIM_MIN: usize = 64;

/// Links of a node of the vector graph on each level from 1 on (`M` of Malkov and Yashunin, 2018).
pub const GRAPH_M: usize = 16;
/// Links of a node of the vector graph on level 0 (`M_max0` of the same: twice `M`).
pub const GRAPH_M0: usize = 32;
/// Highest level of a node of the vector graph; with `M` 16 one node in 16^15 would reach higher.
pub const GRAPH_LEVEL_MAX: usize = 15;
/// Nearest nodes among which a new node of the vector graph chooses its links (`efConstruction` of the same).
pub const GRAPH_EF_CONSTRUCTION: usize = 200;
/// Groups of a plan of summaries.
pub const PLAN_GROUPS_MAX: u32 = 50;
/// Threads of a maintenance pass.
pub const THREADS_MAX: usize = 1_024;
/// Share of the nearest that a search finds unless it is told otherwise.
pub const RECALL_TARGET: f32 = 0.999;
/// Longest list of a walk through the vector graph (`ef` of the same).
pub const EF_MAX: usize = 4_096;

/// Term of the full-text index: longer words are cut at the end of a character.
pub const TERM_BYTES_MAX: usize = 64;
/// Text of one query.
pub const QUERY_BYTES_MAX: usize = 64 << 10;
/// Distinct clauses of one query in words, and terms of one phrase; what comes behind them is not asked for.
pub const QUERY_CLAUSES_MAX: usize = 256;

/// Path below `metadata` that an index is declared for.
pub const INDEX_KEY_BYTES_MAX: usize = 128;
/// Declared indexes of one namespace.
pub const INDEXES_MAX: usize = 16;
/// Bytes of a text by which a declared index finds a row; longer texts are cut, and their rows are looked at.
pub const INDEX_TEXT_BYTES_MAX: usize = 256;
/// Values of one memory that a declared index holds; a memory with more is looked at by every query of the index.
pub const INDEX_VALUES_MAX: usize = 256;

/// Values of one metadata key that are counted, and that one answer gives.
pub const DISTINCT_VALUES_MAX: usize = 10_000;

/// Text of one policy document.
pub const POLICY_BYTES_MAX: usize = 1 << 20;
/// Steps of one dotted key of a policy document in JSON. The longest key of a policy has three.
pub const POLICY_KEY_STEPS_MAX: usize = 8;
/// Items of one list or table of a policy document.
pub const POLICY_ITEMS_MAX: usize = 10_000;
/// Compiled size of one regular expression of the policy; a larger one is refused at load.
pub const REGEX_BYTES_MAX: usize = 1 << 20;
/// Longest span of time in a policy: 100 years of 365.25 days.
pub const SPAN_MS_MAX: u64 = 36_525 * 86_400_000;

/// Earliest and latest instant that a field may hold, in milliseconds since 1970: from year 0001 to
/// 9999-12-30T22:00:00Z, the last instant that can be shown and read as RFC 3339 with every offset.
pub const TIME_MIN_MS: i64 = -62_135_596_800_000;
/// See [`TIME_MIN_MS`].
pub const TIME_MAX_MS: i64 = 253_402_207_200_000;

const _: () = assert!(
    CONTENT_BYTES_MAX * 6 + METADATA_BYTES_MAX * 6 + PAYLOAD_BYTES_MAX * 4 / 3 + DIM_MAX * 32
        < LINE_BYTES_MAX
);
const _: () =
    assert!(LINE_BYTES_MAX < EXPORT_LINE_BYTES_MAX && EXPORT_LINE_BYTES_MAX / 36 < CONSOLIDATED_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX * 4 / 3 + 16 < FIELD_JSON_BYTES_MAX);
const _: () = assert!(METADATA_BYTES_MAX * 6 < FIELD_JSON_BYTES_MAX);
const _: () = assert!(LINKS_MAX * TAG_BYTES_MAX * 2 * 6 < FIELD_JSON_BYTES_MAX);
const _: () = assert!(FILTER_IDS_MAX * 36 < FILTER_BYTES_MAX);
const _: () = assert!(GOAL_BYTES_MAX * 6 + DIM_MAX * 32 < FIELD_JSON_BYTES_MAX);
const _: () = assert!(GRAPH_M0 == 2 * GRAPH_M);
const _: () = assert!(GROUP_ROWS_MAX <= BATCH_ROWS_MAX);
const _: () = assert!(TAG_BYTES_MAX <= KEY_BYTES_MAX);
const _: () = assert!("metadata.".len() + INDEX_KEY_BYTES_MAX <= FIELD_BYTES_MAX);
const _: () = assert!(SPAN_MS_MAX < TIME_MAX_MS as u64);
