//! The options of commands that read memories.

use std::path::PathBuf;

use clap::Args;
use oubliette::Mode;

use crate::arguments::member::member;
use crate::number::number;
use crate::past::PastOptions;

#[derive(Debug, Default, Args)]
pub(crate) struct ScopeOptions {
    /// Look in the part of an agent instead of the shared part
    #[arg(long, conflicts_with = "any_agent")]
    pub(crate) agent: Option<String>,
    /// Look in every part
    #[arg(long)]
    pub(crate) any_agent: bool,
}

// How much of a large partition a search looks at.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct EffortOptions {
    /// Length of the candidate list of a graph walk, 1 to 4096 [default: as long as --recall needs]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 4096"))]
    pub(crate) ef: Option<usize>,
    /// Search until this share of the nearest is found, above 0 and below 1 [default: 0.999]
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = number::<f32>("a number above 0 and below 1"))]
    pub(crate) recall: Option<f32>,
    /// Scan every vector and leave the graph aside
    #[arg(long)]
    pub(crate) exact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// What to look for; with -, all of standard input is the text
    pub(crate) text: Option<String>,
    /// The vector to look for, as the first row of a NumPy file
    #[arg(long, value_name = "F.npy", conflicts_with = "queries")]
    pub(crate) vector_file: Option<PathBuf>,
    /// How many hits, 1 to 1000
    #[arg(short, aliases = ["limit", "k"], short_alias = 'n', default_value_t = 10, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 1000"))]
    pub(crate) k: usize,
    /// How many of the best hits to skip; with -k at most 1000
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 0 to 1000"))]
    pub(crate) offset: usize,
    /// Lowest score of a hit [default: any]
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true, value_parser = number::<f32>("a number"))]
    pub(crate) min_score: Option<f32>,
    /// What the search ranks by: hybrid (vector and words, as far as there are both), vector or text (words)
    #[arg(long, default_value_t, ignore_case = true, value_parser = member(Mode::ALL, Mode::as_str))]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Only memories that match a condition, in the style of MongoDB
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) effort: EffortOptions,
    /// Show how the search was answered
    #[arg(long, conflicts_with = "queries")]
    pub(crate) explain: bool,
    /// Largest number of tokens of text; 4 bytes count as a token [default: no bound]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 0 or more"))]
    pub(crate) max_tokens: Option<usize>,
    /// Show this many neighbours of each hit in its thread, before and after the hit, 0 to 1000 [default: 0]
    #[arg(long, value_name = "N", conflicts_with = "queries", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 0 or more"))]
    pub(crate) around: Option<usize>,
    /// How long a query may take, such as 50ms; the hits found by then are ranked [default: no bound]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) deadline: Option<String>,
    /// Say why this memory is a hit or not
    #[arg(long, value_name = "ID|KEY", conflicts_with_all = ["queries", "explain", "around", "max_tokens"])]
    pub(crate) why: Option<String>,
    /// How much the hits should differ from each other, 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", allow_negative_numbers = true, value_parser = number::<f32>("a number, 0 to 1"))]
    pub(crate) diversity: f32,
    /// Many queries, each as a line of JSON: {"query"?, "namespace"?, "filter"?, "agent"?, "mode"?, "k"?, "offset"?, "min_score"?, "ef"?, "recall"?, "exact"?, "diversity"?}
    #[arg(long, value_name = "Q.jsonl", conflicts_with = "text")]
    pub(crate) queries: Option<PathBuf>,
    /// Vectors of the queries, one row for each
    #[arg(long, value_name = "Q.npy", requires = "queries", conflicts_with = "text")]
    pub(crate) vectors: Option<PathBuf>,
    /// Count the hits as retrieved, for scores and pruning
    #[arg(long, conflicts_with_all = ["why", "read_only"])]
    pub(crate) track: bool,
    /// The step of the host, if it counts steps; a hit that counts as retrieved keeps it
    #[arg(long, value_name = "N", requires = "track", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) step: Option<u64>,
    #[command(flatten)]
    pub(crate) past: PastOptions,
}

#[derive(Debug, Args)]
pub(crate) struct BriefingOptions {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Largest number of tokens of text; 4 bytes count as a token; pinned memories are never cut
    #[arg(long, value_name = "N", default_value_t = 1500, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 0 or more"))]
    pub(crate) max_tokens: usize,
}

#[derive(Debug, Args)]
pub(crate) struct NameOptions {
    /// Id or key
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct GetOptions {
    /// Id or key
    pub(crate) name: String,
    /// Also show the vector
    #[arg(long, conflicts_with_all = ["as_of", "valid_at", "known_at"])]
    pub(crate) vector: bool,
    /// Also show what the memory carries beside its text; bytes in Base64
    #[arg(long)]
    pub(crate) payload: bool,
    #[command(flatten)]
    pub(crate) past: PastOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// State: live, superseded, expired, limbo, tombstoned or any
    #[arg(long, default_value = "live")]
    pub(crate) state: String,
    /// Only memories that match
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    /// List the latest created memories first, those of all parts together
    #[arg(long)]
    pub(crate) newest: bool,
    /// Where the page before ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Items of a page, 1 to 10000
    #[arg(long, short_alias = 'n', default_value_t = 100, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 10000"))]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) past: PastOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DistinctOptions {
    /// The key as a filter names it, without `metadata.`; dots descend into objects
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Only memories that match
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    /// How many values, 1 to 10000
    #[arg(long, short_alias = 'n', default_value_t = 100, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 10000"))]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Where the page before ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Items of a page, 1 to 10000
    #[arg(long, short_alias = 'n', default_value_t = 100, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 10000"))]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct EventsOptions {
    /// Only messages that this aggregate counts
    #[arg(long, value_name = "ID", conflicts_with_all = ["memory", "event"])]
    pub(crate) aggregate: Option<String>,
    /// Only messages behind this memory, by id or key
    #[arg(long, value_name = "ID|KEY", conflicts_with = "event")]
    pub(crate) memory: Option<String>,
    /// Only the message with this id
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    /// Only messages written at this time or later
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,
    /// Only messages written before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}
