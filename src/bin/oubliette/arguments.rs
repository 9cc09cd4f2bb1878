//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use oubliette::Pass;

/// An embedded memory database for AI agents that forgets on purpose.
#[derive(Debug, Parser)]
#[command(name = "oubliette", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Database file; else $OUBLIETTE_DB, the config file oubliette.toml, the user's data folder
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) db: Option<PathBuf>,
    /// Namespace, the tenant boundary [default: default]
    #[arg(long, global = true, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// One JSON document on standard output, errors as JSON on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Tell ids, rules and evidence as well
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// No progress bar, no remarks
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// The present instant, for tests and replays
    #[arg(long, global = true, value_name = "RFC3339")]
    pub(crate) now: Option<String>,
    /// A policy in place of the stored one, for this call
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// A file in place of the policy's instructions for the host's language model
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) instructions: Option<PathBuf>,
    /// What gives texts their vectors: static-mini, hash, minilm:FOLDER, minilm-int8:FOLDER, openai:MODEL:DIM or none; else
    /// $OUBLIETTE_EMBEDDER, the config file, what the vectors of the file are of; static-mini for a file without vectors
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) embedder: Option<String>,
    /// When a write counts as done [default: safe]
    #[arg(long, global = true)]
    pub(crate) durability: Option<DurabilityName>,
    /// Open for reading only
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Let other processes read while this one writes
    #[arg(long, global = true)]
    pub(crate) shared: bool,
    /// How long to wait for a file that another process has open, such as 5s
    #[arg(long, global = true, value_name = "DURATION")]
    pub(crate) wait: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DurabilityName {
    /// Synced and safe against torn writes
    Safe,
    /// Synced
    Fast,
    /// Synced at the end of the call
    Batch,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make an empty database; any first write does it too
    Init(InitOptions),
    /// Add one memory through the whole write path; with - one a line from standard input
    Add(Box<AddOptions>),
    /// Import many memories; all or nothing for each batch
    Import(ImportOptions),
    /// Find memories
    Search(SearchOptions),
    /// What a session should know before anything is asked: what is pinned, then what is worth keeping most
    Briefing(BriefingOptions),
    /// Show one memory, or what stays of it
    Get(GetOptions),
    /// Page through memories
    List(ListOptions),
    /// The versions of a memory and what was done to them
    History(NameOptions),
    /// Page through messages as they came
    Events(EventsOptions),
    /// Page through families of repeated messages
    Aggregates(PageOptions),
    /// The story of a memory by id, key or text: made by, merged from, superseded by, why it is gone
    Explain(NameOptions),
    /// Change fields or text of a memory
    Update(Box<UpdateOptions>),
    /// Let one memory take the place of others; their keys and tags go to it where it has the same agent
    Supersede(Box<SupersedeOptions>),
    /// Make a superseded memory live again
    Restore(NameOptions),
    /// Protect a memory from automatic actors
    Pin(NameOptions),
    /// End its protection
    Unpin(NameOptions),
    /// Forget at once
    Forget(ForgetOptions),
    /// Run maintenance passes; with none named those that the policy enables, then index and repair
    Maintain(MaintainOptions),
    /// Drop the indexes and build them anew from the memories
    Reindex,
    /// Give every memory a vector of another embedder
    Reembed(ReembedOptions),
    /// Take a maintenance run or an import back
    Undo(UndoOptions),
    /// Whole namespaces
    Namespace {
        #[command(subcommand)]
        command: NamespaceCommand,
    },
    /// Indexes of metadata, with which a filter on one of its keys looks at the matching memories alone
    Index {
        #[command(subcommand)]
        command: IndexCommand,
    },
    /// Counters, sizes and health
    Stats(StatsOptions),
    /// Compare everything in the file with what it must be; exit code 3 when something is found
    Check(CheckOptions),
    /// Recall of the index against an exact scan, with latencies
    Eval(EvalOptions),
    /// Write memories as JSON lines
    Export(ExportOptions),
    /// Write a compact copy of the file
    Backup(BackupOptions),
    /// Rewrite the file without free space and without a byte of what was forgotten
    Compact,
    /// The policy document
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// The main job, end to end, on real text that ships with the program
    Demo,
    /// A completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// Dimensions of the vectors, 1 to 4096; else the first vector decides
    #[arg(long)]
    pub(crate) dim: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ReembedOptions {
    /// static-mini, hash, minilm:FOLDER, minilm-int8:FOLDER or openai:MODEL:DIM
    #[arg(value_name = "EMBEDDER")]
    pub(crate) embedder: String,
}

/// The fields of a memory, by their names in JSON.
#[derive(Debug, Default, Args)]
pub(crate) struct FieldOptions {
    /// What sort of memory [default: knowledge]
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// working, episodic, semantic or procedural [default: semantic]
    #[arg(long)]
    pub(crate) tier: Option<String>,
    /// routine, noteworthy, important or core [default: routine]
    #[arg(long)]
    pub(crate) significance: Option<String>,
    /// 0 to 1 [default: 0.5]
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) importance: Option<f64>,
    /// 0 to 1
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) confidence: Option<f64>,
    /// A tag; can be given again
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// A category; can be given again
    #[arg(long = "category", value_name = "NAME")]
    pub(crate) categories: Vec<String>,
    /// An entity it is about; can be given again
    #[arg(long = "entity", value_name = "NAME[=ROLE]")]
    pub(crate) entities: Vec<String>,
    /// A link to another memory; can be given again
    #[arg(long = "link", value_name = "ID=RELATION")]
    pub(crate) links: Vec<String>,
    /// A JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// Protected from automatic actors
    #[arg(long)]
    pub(crate) pinned: bool,
    /// When it came to be
    #[arg(long, value_name = "TIME")]
    pub(crate) created_at: Option<String>,
    /// When what it tells happened
    #[arg(long, value_name = "TIME")]
    pub(crate) happened_at: Option<String>,
    /// When it ends: a time, or never
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<String>,
    /// After how long it ends
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) ttl: Option<String>,
    /// World time from which it holds
    #[arg(long, value_name = "TIME")]
    pub(crate) valid_from: Option<String>,
    /// World time until which it holds
    #[arg(long, value_name = "TIME")]
    pub(crate) valid_to: Option<String>,
    /// Channel of a message
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// Thread of a message
    #[arg(long)]
    pub(crate) thread: Option<String>,
    /// Session
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Who wrote it: human or bot
    #[arg(long, value_name = "KIND")]
    pub(crate) author_kind: Option<String>,
    /// Whose it is
    #[arg(long, value_name = "ID")]
    pub(crate) author_id: Option<String>,
    /// Any other field by its name in JSON; can be given again
    #[arg(long = "field", value_name = "NAME=JSON")]
    pub(crate) others: Vec<String>,
    /// The vector, a JSON list of numbers
    #[arg(long, value_name = "JSON", conflicts_with = "vector_file")]
    pub(crate) vector: Option<String>,
    /// The vector, first row of a NumPy file
    #[arg(long, value_name = "F.npy")]
    pub(crate) vector_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// The text; - reads a memory a line from standard input, as import does, with the fields in the lines
    pub(crate) text: String,
    /// Name of the record in your world
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// In the part of an agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// A memory that it supersedes, by key or id; can be given again
    #[arg(long, value_name = "ID|KEY")]
    pub(crate) supersedes: Vec<String>,
    /// How: replaced, correction or duplicate
    #[arg(long, value_name = "MODE")]
    pub(crate) supersede_mode: Option<String>,
    #[command(flatten)]
    pub(crate) fields: FieldOptions,
    /// Store byte-equal content as a row of its own
    #[arg(long)]
    pub(crate) no_dedup: bool,
    /// Leave out the rules that belong to the instructions
    #[arg(long)]
    pub(crate) skip_instructions: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum FormatName {
    /// Memories as JSON lines
    #[default]
    Oubliette,
    /// The file of the knowledge-graph server
    ServerMemory,
    /// The answer of get_all
    Mem0,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// File, or - for standard input
    pub(crate) file: PathBuf,
    /// Vectors: row i belongs to line i
    #[arg(long, value_name = "F.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Namespace of lines that name none, as --namespace
    #[arg(long, value_name = "NS", conflicts_with = "namespace")]
    pub(crate) into: Option<String>,
    /// What wrote the file
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: FormatName,
    /// Store byte-equal content as rows of their own
    #[arg(long)]
    pub(crate) no_dedup: bool,
    /// Leave out the rules that belong to the instructions
    #[arg(long)]
    pub(crate) skip_instructions: bool,
    /// Rows of one batch, 1 to 100000
    #[arg(long, default_value_t = 1_000)]
    pub(crate) batch: usize,
    /// Leave bad lines out, report them and go on
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Move unknown fields into the metadata
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Write what became of each line to a file, one JSON line each
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ScopeOptions {
    /// The part of an agent, instead of the shared one
    #[arg(long, conflicts_with = "any_agent")]
    pub(crate) agent: Option<String>,
    /// Every part
    #[arg(long)]
    pub(crate) any_agent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// By vector and text, with what there is
    Hybrid,
    /// By vector
    Vector,
    /// By text
    Text,
}

/// How much of a large partition is looked at.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct EffortOptions {
    /// Walk the graph with a list of this length, 1 to 4096
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) ef: Option<usize>,
    /// Walk it so far that this share of the nearest is found, above 0 and below 1 [default: 0.99]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) recall: Option<f32>,
    /// By exact scan, past the graph
    #[arg(long)]
    pub(crate) exact: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchOptions {
    /// What to look for
    pub(crate) text: Option<String>,
    /// The vector to look for, first row of a NumPy file
    #[arg(long, value_name = "F.npy", conflicts_with = "queries")]
    pub(crate) vector_file: Option<PathBuf>,
    /// How many hits, 1 to 1000
    #[arg(short, default_value_t = 10, allow_negative_numbers = true)]
    pub(crate) k: usize,
    /// What decides
    #[arg(long, value_enum, default_value = "hybrid")]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Only memories that match, a condition in the Mongo manner
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) effort: EffortOptions,
    /// Show how it was answered
    #[arg(long)]
    pub(crate) explain: bool,
    /// At most so many tokens of text, a token for 4 bytes
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,
    /// So many neighbours of each hit in its thread, before and after it
    #[arg(long, value_name = "N", conflicts_with = "queries")]
    pub(crate) around: Option<usize>,
    /// How long a query may take, such as 50ms; what was found until then is ranked
    #[arg(long, value_name = "DURATION")]
    pub(crate) deadline: Option<String>,
    /// Why this memory, an id or a key, is a hit or is none
    #[arg(long, value_name = "ID|KEY", conflicts_with = "queries")]
    pub(crate) why: Option<String>,
    /// How much hits shall differ from each other, 0 to 1
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub(crate) diversity: f32,
    /// Many queries, a JSON line each: {"query"?, "namespace"?, "filter"?, "agent"?, "mode"?, "k"?, "ef"?, "recall"?, "exact"?}
    #[arg(long, value_name = "Q.jsonl", conflicts_with = "text")]
    pub(crate) queries: Option<PathBuf>,
    /// Vectors of the queries, by row
    #[arg(long, value_name = "Q.npy", requires = "queries")]
    pub(crate) vectors: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BriefingOptions {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// Tokens of text, a token for 4 bytes; pinned memories are never cut
    #[arg(long, value_name = "N", default_value_t = 1500)]
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
    /// With its vector
    #[arg(long)]
    pub(crate) vector: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    /// live, superseded, expired, limbo, tombstoned or any
    #[arg(long, default_value = "live")]
    pub(crate) state: String,
    /// Only memories that match
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    /// Where the page before ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Items of a page, 1 to 10000
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PageOptions {
    /// Where the page before ended
    #[arg(long)]
    pub(crate) cursor: Option<String>,
    /// Items of a page, 1 to 10000
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct EventsOptions {
    /// Those that an aggregate counts
    #[arg(long, value_name = "ID", conflicts_with_all = ["memory", "event"])]
    pub(crate) aggregate: Option<String>,
    /// Those behind a memory, by id or key
    #[arg(long, value_name = "ID|KEY", conflicts_with = "event")]
    pub(crate) memory: Option<String>,
    /// The one with this id
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    /// Written at this time or later
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Written before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateOptions {
    /// Id or key
    pub(crate) name: String,
    /// New text: the memory is revised
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// A field to clear, by its name in JSON; can be given again
    #[arg(long, value_name = "NAME")]
    pub(crate) clear: Vec<String>,
    #[command(flatten)]
    pub(crate) fields: FieldOptions,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("new").required(true).args(["with", "with_text"])))]
pub(crate) struct SupersedeOptions {
    /// Ids or keys of the memories whose place is taken
    #[arg(required = true)]
    pub(crate) old: Vec<String>,
    /// Id or key of the memory that takes it
    #[arg(long, value_name = "ID|KEY")]
    pub(crate) with: Option<String>,
    /// Text of a new memory that takes it
    #[arg(long, value_name = "TEXT")]
    pub(crate) with_text: Option<String>,
    /// replaced, correction or duplicate
    #[arg(long, default_value = "replaced")]
    pub(crate) mode: String,
    /// When the world changed, for the mode replaced
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["names", "keys", "tag", "filter"])))]
pub(crate) struct ForgetOptions {
    /// Ids or keys
    pub(crate) names: Vec<String>,
    /// File of ids or keys, one a line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Every write that brought a tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Every memory that matches, in any state
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    /// With --filter, only memories that a search can see
    #[arg(long, requires = "filter")]
    pub(crate) visible_only: bool,
    /// With --filter, one that matches everything is meant
    #[arg(long, requires = "filter")]
    pub(crate) all: bool,
    /// Only what is in the part of an agent; without it names and --tag reach every part, --filter the shared one
    #[arg(long, conflicts_with = "any_agent")]
    pub(crate) agent: Option<String>,
    /// Every part, which only --filter has to be told
    #[arg(long)]
    pub(crate) any_agent: bool,
    /// Leave the superseded versions of a key
    #[arg(long)]
    pub(crate) keep_history: bool,
    /// With an id, the earlier versions as well, and all that a key of the memory leads to
    #[arg(long, conflicts_with = "keep_history")]
    pub(crate) with_history: bool,
    /// With --tag, leave protected memories
    #[arg(long, requires = "tag")]
    pub(crate) keep_pinned: bool,
    /// Rewrite the file as well, so that no byte is left
    #[arg(long)]
    pub(crate) erase: bool,
    /// Only say what would go
    #[arg(long, conflicts_with_all = ["yes", "erase"])]
    pub(crate) dry_run: bool,
    /// Yes, forget: it can't be undone
    #[arg(long, required_unless_present = "dry_run")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(after_help = passes_help())]
pub(crate) struct MaintainOptions {
    /// Passes, in the order in which they are to run [default: those that the policy enables, then index and repair]
    #[arg(value_name = "PASS", value_parser = pass)]
    pub(crate) passes: Vec<Pass>,
    /// Only say what there is to do
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Stop after so much time, such as 5s; the next run goes on
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Stop after so many rows; the next run goes on
    #[arg(long, value_name = "N")]
    pub(crate) max_rows: Option<u64>,
    /// Visible memories of a namespace that this run may remove, in place of the policy's budget.*
    #[arg(long, value_name = "N")]
    pub(crate) destroy_max: Option<u64>,
    /// Let collapse join near texts as well (collapse.fuzzy)
    #[arg(long)]
    pub(crate) fuzzy: bool,
    /// Rows of a page of collapse's listing [default: collapse.batch]
    #[arg(long, value_name = "N")]
    pub(crate) batch_size: Option<u32>,
    /// Only this series of snapshots
    #[arg(long, value_name = "SERIES")]
    pub(crate) series: Option<String>,
    /// Sample groups in the report, 0 to 10000 [default: collapse.max_samples]
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<u32>,
    /// Threads, 1 to 1024 [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Write the report to a file as well
    #[arg(long, value_name = "F.json")]
    pub(crate) report: Option<PathBuf>,
}

/// The passes with what they do, in the order in which they run by default.
fn passes_help() -> String {
    let lines = Pass::ALL.iter().map(|pass| format!("  {:17}  {}", pass.as_str(), pass.help()));
    format!("Passes:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A pass by its name.
fn pass(name: &str) -> Result<Pass, String> {
    let known = Pass::ALL.iter().map(|pass| pass.as_str()).collect::<Vec<_>>().join(", ");
    name.parse().map_err(|_| format!("this version has no such pass, only {known}"))
}

#[derive(Debug, Args)]
pub(crate) struct UndoOptions {
    /// The run, as maintain or import named it
    pub(crate) run: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// Index a key of the metadata; dots descend
    Add {
        /// What stands behind `metadata.` in a filter
        key: String,
    },
    /// End an index
    Drop {
        /// Its key
        key: String,
    },
    /// Show the keys that have an index
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceCommand {
    /// All namespaces
    List,
    /// Drop one with everything in it
    Drop {
        /// The namespace
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// Recount every row, look at every index as a whole, and count bytes page by page and by table
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Compute fingerprints and codes again from texts and vectors, and follow every graph
    #[arg(long)]
    pub(crate) deep: bool,
    /// Lines of an earlier export of which nothing must be left in the file
    #[arg(long, value_name = "FILE")]
    pub(crate) erased: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalOptions {
    /// Queries, a JSON line each
    #[arg(long, value_name = "Q.jsonl")]
    pub(crate) queries: PathBuf,
    /// Their vectors, by row
    #[arg(long, value_name = "Q.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// The share of the memories that answer a question which is found, by mode: a line has "query" and "evidence", the
    /// keys of these memories
    #[arg(long)]
    pub(crate) text: bool,
    /// How many hits, 1 to 1000
    #[arg(short, default_value_t = 10)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) scope: ScopeOptions,
    #[command(flatten)]
    pub(crate) effort: EffortOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// File, or - for standard output
    pub(crate) file: PathBuf,
    /// Also what is superseded, expired, not yet or no longer valid, and tombstones
    #[arg(long)]
    pub(crate) all_states: bool,
    /// Every namespace
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Vectors into a NumPy file, a row a line
    #[arg(long, value_name = "F.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// No vectors at all
    #[arg(long, conflicts_with = "vectors")]
    pub(crate) no_vectors: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// The copy, which must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// The policy in force, whole
    Show,
    /// The instructions for the host's language model, byte for byte
    Instructions,
    /// Store another one
    Set {
        /// TOML, or JSON in a file that ends in .json; a key that is not in it has its default
        file: PathBuf,
    },
}
