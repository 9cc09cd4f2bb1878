//! The commands and options of the command line. A struct of options has no doc comment, which would be told as what the command
//! does.

mod access;
mod changes;
mod context_log;
mod contradict;
mod goal;
mod member;
pub(crate) mod paths;
mod reading;
mod renamespace;
mod tool;
mod upkeep;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use oubliette::Durability;
use oubliette::exchange::Format;
use oubliette::memory::Tier;

pub(crate) use self::access::AccessCommand;
pub(crate) use self::changes::ChangesOptions;
pub(crate) use self::context_log::ContextLogOptions;
pub(crate) use self::contradict::ContradictOptions;
pub(crate) use self::goal::{GoalCommand, GoalSetOptions};
pub(crate) use self::reading::{
    BriefingOptions, DistinctOptions, EffortOptions, EventsOptions, GetOptions, ListOptions, NameOptions,
    PageOptions, ScopeOptions, SearchOptions,
};
pub(crate) use self::renamespace::{MoveOptions, NamespaceCommand, SplitOptions};
#[cfg(feature = "mcp-http")]
pub(crate) use self::tool::HttpOptions;
#[cfg(feature = "mcp")]
pub(crate) use self::tool::{Compat, HandOptions, McpClient, ServeOptions, SetupOptions};
pub(crate) use self::tool::{ToolOptions, WriterOptions};
pub(crate) use self::upkeep::{MaintainOptions, PruneOptions};
use crate::arguments::member::member;
use crate::number::number;
use crate::{embedder, gc_arguments};

/// An embedded memory database for AI agents that forgets on purpose.
#[derive(Debug, Parser)]
#[command(name = "oubliette", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Database file [default: $OUBLIETTE_DB, then the config file oubliette.toml, then the user's data folder]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) db: Option<PathBuf>,
    /// Namespace: the border between tenants [default: default]
    #[arg(long, global = true, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// Print one JSON document on standard output; errors, and the run of an import when it begins, are lines of JSON on
    /// standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Also print ids, rules and evidence
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print no progress bar and no remarks
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Use this instant as the present, for tests and replays
    #[arg(long, global = true, value_name = "RFC3339", allow_hyphen_values = true)]
    pub(crate) now: Option<String>,
    /// Use this policy instead of the stored policy, for this call
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Use this file instead of the policy's instructions for the host's language model
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) instructions: Option<PathBuf>,
    #[arg(long, global = true, value_name = "NAME", help = embedder::option_help())]
    pub(crate) embedder: Option<String>,
    /// When a write counts as done: safe (synced, and safe against torn writes), fast (synced) or batch (synced once, at the
    /// end of the call) [default: safe]
    #[arg(long, global = true, ignore_case = true, value_parser = member(Durability::ALL, Durability::as_str))]
    pub(crate) durability: Option<Durability>,
    /// Open the database for reading only
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Let other processes read while this one writes
    #[arg(long, global = true)]
    pub(crate) shared: bool,
    /// Neither ask a process that has the database open, nor answer other processes
    #[arg(long, global = true)]
    pub(crate) no_share: bool,
    /// How long to wait for a database that another process has open and does not share, such as 30s [default: 5s; with
    /// --no-share 0s]
    #[arg(long, global = true, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) wait: Option<String>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Create an empty database; the first write also creates it
    Init(InitOptions),
    /// Add one memory; with -, add one memory for each line of standard input
    Add(Box<AddOptions>),
    /// Import many memories; each batch is written as a whole or not at all
    Import(ImportOptions),
    /// Find memories
    Search(SearchOptions),
    /// Show what a session should know from the start: the pinned memories, then the most valuable memories
    Briefing(BriefingOptions),
    /// Show one memory, or the tombstone of a memory that is gone
    Get(GetOptions),
    /// Show or export how often memories are used
    #[command(subcommand)]
    Access(AccessCommand),
    /// Note which memories went into a context of a language model, and count them
    ContextLog(ContextLogOptions),
    /// Set, list or drop what an agent is after; memories near to a goal are worth more
    #[command(subcommand)]
    Goal(GoalCommand),
    /// Page through memories
    List(ListOptions),
    /// Count the values of a metadata key among the visible memories, the most frequent first
    Distinct(DistinctOptions),
    /// Show the versions of a memory and what happened to them
    History(NameOptions),
    /// Page through what changed in a namespace, without content, for hosts that keep copies
    Changes(ChangesOptions),
    /// Page through messages in the order in which they came
    Events(EventsOptions),
    /// Page through aggregates: families of repeated messages without a key, each counted instead of stored
    Aggregates(PageOptions),
    /// Tell the story of a memory: who made it, what was merged into it, what superseded it, why it is gone
    Explain(NameOptions),
    /// Change the fields or the text of a memory
    Update(Box<UpdateOptions>),
    /// Give a record another key, with its history; the old key no longer finds anything
    Rename(RenameOptions),
    /// Change when memories expire, and nothing else of them
    Touch(TouchOptions),
    /// Let one memory take the place of others; if they belong to the same agent, it takes over their tags and their keys lead to it
    Supersede(Box<SupersedeOptions>),
    /// Make a superseded or removed memory live again
    Restore(NameOptions),
    /// Record that a memory has been contradicted: it ends now, and its confidence drops
    Contradict(ContradictOptions),
    /// Protect a memory from automatic actors
    Pin(NameOptions),
    /// End the protection of a memory
    Unpin(NameOptions),
    /// Forget memories for good
    Forget(ForgetOptions),
    /// Run maintenance passes [default: the passes that the policy enables, then embed, index and repair]
    Maintain(MaintainOptions),
    /// Let summaries take the place of memories that are old and unused
    Gc {
        #[command(subcommand)]
        command: gc_arguments::GcCommand,
    },
    /// Show what a summary stands for
    Expand(NameOptions),
    /// Drop the indexes and build them again from the memories
    Reindex,
    /// Give every memory a vector from another embedder
    Reembed(ReembedOptions),
    /// List the runs, the latest first: imports, maintenance and other operations of many parts, whether they ended or were
    /// cut off
    Runs(RunsOptions),
    /// Take a run back: an import, maintenance, or summaries that `gc` has put in place
    Undo(UndoOptions),
    /// List, drop, move or take apart whole namespaces
    Namespace {
        #[command(subcommand)]
        command: NamespaceCommand,
    },
    /// Add, drop or list indexes of metadata keys; a filter on an indexed key reads the matching memories only
    Index {
        #[command(subcommand)]
        command: IndexCommand,
    },
    /// Show counters, sizes and health
    Stats(StatsOptions),
    /// Show the memories of a namespace in numbers: by agent, scope and tag, with their health
    MemoryStats,
    /// Check everything in the file; exit code 3 means that something is wrong
    Check(CheckOptions),
    /// Audit the file: remove what has expired or exceeds the cap, report duplicates, and check; exit code 3 means that
    /// something is wrong
    Fsck(FsckOptions),
    /// Measure the recall of the index against an exact scan, with latencies
    Eval(EvalOptions),
    /// Write memories as JSON lines; exit code 3 means that damaged memories were left out
    Export(ExportOptions),
    /// Write a compact copy of the file; exit code 3 means that damaged data was left out
    Backup(BackupOptions),
    /// Rewrite the file without free space and without a byte of forgotten memories; exit code 3 means that
    /// damaged data was left out
    Compact,
    /// Show or replace the policy document
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Answer the calls of a language model: one envelope per line on standard input, one answer per line
    /// on standard output
    Tool(ToolOptions),
    /// Hand the tools to a client of the Model Context Protocol, over standard input and output
    #[cfg(feature = "mcp")]
    Serve(ServeOptions),
    /// Show the lines that make a client of the Model Context Protocol use this program on this database
    #[cfg(feature = "mcp")]
    Setup(SetupOptions),
    /// Show the main job, end to end, on real text that ships with the program
    Demo,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitOptions {
    /// Dimensions of the vectors, 1 to 4096 [default: those of the first vector]
    #[arg(long, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 4096"))]
    pub(crate) dim: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct ReembedOptions {
    #[arg(value_name = "EMBEDDER", conflicts_with = "embedder", help = embedder::named_help())]
    pub(crate) model: String,
}

// The fields of a memory, by their names in JSON.
#[derive(Debug, Default, Args)]
pub(crate) struct FieldOptions {
    /// Kind of the memory: knowledge, event, profile, behavior, skill, tool, self, episode, message, assistant_message,
    /// tool_result, snapshot, system, developer, admin, search_history, custom:NAME, or one that maintenance makes; a new
    /// memory has knowledge
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Tier: working (3 days by default), episodic (30 days), semantic or procedural; a new memory has semantic
    #[arg(long, ignore_case = true, value_parser = member(Tier::ALL, Tier::as_str), hide_possible_values = true)]
    pub(crate) tier: Option<Tier>,
    /// Significance: routine, noteworthy, important or core; a new memory has routine
    #[arg(long)]
    pub(crate) significance: Option<String>,
    /// Importance, 0 to 1; a new memory has 0.5
    #[arg(long, allow_negative_numbers = true, value_parser = number::<f64>("a number, 0 to 1"))]
    pub(crate) importance: Option<f64>,
    /// Confidence of the writer, 0 to 1; more than confidence.caller_max of the policy counts as that, and use moves it
    /// between the bounds of the policy (confidence.*)
    #[arg(long, allow_negative_numbers = true, value_parser = number::<f64>("a number, 0 to 1"))]
    pub(crate) confidence: Option<f64>,
    /// A tag; can be given several times. An update replaces all tags by these
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// A category; can be given several times. An update replaces all
    #[arg(long = "category", value_name = "NAME")]
    pub(crate) categories: Vec<String>,
    /// An entity that the memory is about; can be given several times. An update replaces all
    #[arg(long = "entity", value_name = "NAME[=ROLE]")]
    pub(crate) entities: Vec<String>,
    /// A link to another memory; can be given several times. An update replaces all
    #[arg(long = "link", value_name = "ID=RELATION")]
    pub(crate) links: Vec<String>,
    /// Metadata, a JSON object. An update replaces the whole object
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// Protect the memory from automatic actors
    #[arg(long)]
    pub(crate) pinned: bool,
    /// When the memory was created
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) created_at: Option<String>,
    /// When the event that the text tells of happened
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) happened_at: Option<String>,
    /// When the memory ends: a time (UTC unless it names its offset), or never
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) expires_at: Option<String>,
    /// After how long the memory ends, counted from when its text begins to be true if that is later
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, conflicts_with = "expires_at")]
    pub(crate) ttl: Option<String>,
    /// World time from which the text is true; UTC unless it names its offset
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) valid_from: Option<String>,
    /// World time until which the text is true
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) valid_to: Option<String>,
    /// Channel of a message
    #[arg(long)]
    pub(crate) channel: Option<String>,
    /// Thread of a message
    #[arg(long)]
    pub(crate) thread: Option<String>,
    /// Session of a message
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Sort of author: human or bot
    #[arg(long, value_name = "KIND")]
    pub(crate) author_kind: Option<String>,
    /// Id of the author
    #[arg(long, value_name = "ID")]
    pub(crate) author_id: Option<String>,
    /// Any other field by its name in JSON; can be given several times
    #[arg(long = "field", value_name = "NAME=JSON")]
    pub(crate) others: Vec<String>,
    /// A file that the memory carries beside its text, at most 1 MiB: JSON if its name ends in .json, bytes otherwise; - for
    /// bytes from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) payload: Option<PathBuf>,
    /// The vector, as a JSON list of numbers
    #[arg(long, value_name = "JSON", conflicts_with = "vector_file")]
    pub(crate) vector: Option<String>,
    /// The vector, as the first row of a NumPy file
    #[arg(long, value_name = "F.npy")]
    pub(crate) vector_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// The text; with -, each line of standard input is a memory: a text, or a JSON object with its fields, as for import
    pub(crate) text: String,
    /// With -, each line must be a JSON object
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Key: the name of the record in your own world
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Store the memory in the part of an agent
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// A memory that the new memory supersedes, by key or id; can be given several times
    #[arg(long, value_name = "ID|KEY")]
    pub(crate) supersedes: Vec<String>,
    /// How it supersedes: replaced, correction or duplicate [default: replaced]
    #[arg(long, value_name = "MODE")]
    pub(crate) supersede_mode: Option<String>,
    #[command(flatten)]
    pub(crate) fields: FieldOptions,
    /// Store byte-equal content as a memory of its own
    #[arg(long)]
    pub(crate) no_dedup: bool,
    /// Store the text as given, as a memory of its own, whatever is near or equal; no rule and no pass unites it with
    /// another, and a key still revises
    #[arg(long)]
    pub(crate) verbatim: bool,
    /// Leave out the rules that belong to the instructions
    #[arg(long)]
    pub(crate) skip_instructions: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "undo takes an import back. Lines of an export come with their ids and keep the runs that first brought them: no undo \
                  of the import takes these memories away, only forget does."
)]
pub(crate) struct ImportOptions {
    /// File of memories, or - for standard input
    pub(crate) file: PathBuf,
    /// Vectors in a NumPy file: row i belongs to line i
    #[arg(long, value_name = "F.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Namespace of every line, whatever it names; the metadata then has the name as import_source_namespace
    #[arg(long, value_name = "NS", conflicts_with = "namespace")]
    pub(crate) into: Option<String>,
    /// What the file is: oubliette (memories as JSON lines), server-memory (the file of the knowledge-graph server) or mem0
    /// (the answer of get_all)
    #[arg(long, default_value_t, ignore_case = true, value_parser = member(Format::ALL, Format::as_str))]
    pub(crate) format: Format,
    /// Store byte-equal content as memories of their own
    #[arg(long)]
    pub(crate) no_dedup: bool,
    /// Store each text as given, as a memory of its own, whatever is near or equal; no rule and no pass unites it with
    /// another, and a key still revises
    #[arg(long)]
    pub(crate) verbatim: bool,
    /// Leave out the rules that belong to the instructions
    #[arg(long)]
    pub(crate) skip_instructions: bool,
    /// Memories in one batch, 1 to 100000
    #[arg(long, default_value_t = 1_000, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 100000"))]
    pub(crate) batch: usize,
    /// Skip bad lines, report them and go on
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Move unknown fields into the metadata
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Write the decision on each line to a file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Lists and metadata that are given, such as --tag, take the place of those that are there."
)]
pub(crate) struct UpdateOptions {
    /// Id or key
    pub(crate) name: String,
    /// New text, or - for standard input; the memory is revised, and its payload stays with the earlier version
    #[arg(long)]
    pub(crate) text: Option<String>,
    /// A field to clear, by its name in JSON, if it can be empty; can be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) clear: Vec<String>,
    #[command(flatten)]
    pub(crate) fields: FieldOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RenameOptions {
    /// The key
    pub(crate) old: String,
    /// The new key
    pub(crate) new: String,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A name of nothing is told and counted. The exit code is 1 only if no name is that of a memory."
)]
#[command(group(clap::ArgGroup::new("end").required(true).args(["ttl", "expires_at", "never"])))]
pub(crate) struct TouchOptions {
    /// Ids or keys
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    /// After how long they end, counted from now, or from when their text begins to be true if that is later; 0s erases them at once,
    /// for good
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) ttl: Option<String>,
    /// When they end: a time, or never; a time that is over erases them at once, for good
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) expires_at: Option<String>,
    /// They never end
    #[arg(long)]
    pub(crate) never: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("new").required(true).args(["with", "with_text"])))]
pub(crate) struct SupersedeOptions {
    /// Ids or keys of the memories that are superseded
    #[arg(required = true)]
    pub(crate) old: Vec<String>,
    /// Id or key of the memory that supersedes them
    #[arg(long, value_name = "ID|KEY")]
    pub(crate) with: Option<String>,
    /// Text of a new memory that supersedes them; - for standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) with_text: Option<String>,
    /// Key of the new text, by which that text is then revised and forgotten. If --at lies ahead, the key of an old memory answers
    /// with the old text until then [default: the first key of the old memories]
    #[arg(long, conflicts_with = "with")]
    pub(crate) key: Option<String>,
    /// After how long the new text ends, counted from --at if that is later [default: under a key the end of the text before]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, conflicts_with_all = ["with", "expires_at"])]
    pub(crate) ttl: Option<String>,
    /// When the new text ends: a time, or never
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "with")]
    pub(crate) expires_at: Option<String>,
    /// How it supersedes them: replaced, correction or duplicate
    #[arg(long, default_value = "replaced")]
    pub(crate) mode: String,
    /// When the world changed; for the mode replaced [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["names", "keys", "tag", "filter"])))]
pub(crate) struct ForgetOptions {
    /// Ids or keys of memories
    pub(crate) names: Vec<String>,
    /// File of ids or keys, one for each line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Forget every write that brought this tag. A tag import:SOURCE:DATE takes one import back: what others have said as well stays,
    /// without the tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Forget every memory that matches, in any state
    #[arg(long, value_name = "JSON")]
    pub(crate) filter: Option<String>,
    /// With --filter, forget only memories that a search can see
    #[arg(long, requires = "filter")]
    pub(crate) visible_only: bool,
    /// With --filter, allow a filter that matches everything
    #[arg(long, requires = "filter")]
    pub(crate) all: bool,
    /// Only this agent's part [default: every part for names and --tag, the shared part for --filter]
    #[arg(long, conflicts_with = "any_agent")]
    pub(crate) agent: Option<String>,
    /// In every part; needed with --filter only
    #[arg(long)]
    pub(crate) any_agent: bool,
    /// With names, keep the superseded versions of a key
    #[arg(long, conflicts_with_all = ["tag", "filter"])]
    pub(crate) keep_history: bool,
    /// With an id, also forget the earlier and later versions and everything that a key of the memory leads to
    #[arg(long, conflicts_with_all = ["keep_history", "tag", "filter"])]
    pub(crate) with_history: bool,
    /// With --tag, keep protected memories
    #[arg(long, requires = "tag")]
    pub(crate) keep_pinned: bool,
    /// Also rewrite the file, so that no byte is left
    #[arg(long)]
    pub(crate) erase: bool,
    /// Only say what would be forgotten
    #[arg(long, conflicts_with_all = ["yes", "erase"])]
    pub(crate) dry_run: bool,
    /// Confirm: forgetting can't be undone
    #[arg(long, required_unless_present = "dry_run")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsOptions {
    /// Show only the run with this id
    #[arg(value_name = "RUN", conflicts_with_all = ["cursor", "limit"])]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) page: PageOptions,
}

#[derive(Debug, Args)]
pub(crate) struct UndoOptions {
    /// Id of the run, as runs lists it. Undoing an import removes its writes; a memory that others have written too stays for them
    /// ("detached" in JSON), and what the import had replaced is back. Memories that came with their ids, as an export writes them, stay
    pub(crate) run: String,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum IndexCommand {
    /// Add an index of a metadata key; dots descend into objects
    Add {
        /// The key as a filter names it, without `metadata.`
        key: String,
    },
    /// Drop an index
    Drop {
        /// The key
        key: String,
    },
    /// List the keys that have an index
    List,
}

#[derive(Debug, Args)]
pub(crate) struct StatsOptions {
    /// Recount every row, inspect every index as a whole, and count bytes by page and by table
    #[arg(long)]
    pub(crate) deep: bool,
    /// Tell how memories are used: how often and how well they were found, which most, and what each threshold of utility would
    /// prune
    #[arg(long)]
    pub(crate) access: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FsckOptions {
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Recompute fingerprints and codes from texts and vectors, and follow every graph
    #[arg(long)]
    pub(crate) deep: bool,
    /// An earlier export, as `export all.jsonl --all-states` has written it: no byte of what is gone since may be left in the file. Nothing is proved of what is still there
    #[arg(long, value_name = "FILE")]
    pub(crate) erased: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalOptions {
    /// Queries, each as a line of JSON
    #[arg(long, value_name = "Q.jsonl")]
    pub(crate) queries: PathBuf,
    /// Vectors of the queries, one row for each
    #[arg(long, value_name = "Q.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Measure, for each mode, which share of the memories that answer a question is found; each line has a "query" and
    /// its "evidence", the keys of these memories
    #[arg(long)]
    pub(crate) text: bool,
    #[command(flatten)]
    pub(crate) gc: gc_arguments::GcEvalOptions,
    /// How many hits, 1 to 1000; --text looks among the first 1, 5, 10, 20 and 50 as well
    #[arg(short, default_value_t = 10, allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 1000"))]
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
    /// Also export superseded and expired memories, memories not yet or no longer valid, limbo, tombstones, messages with
    /// their aggregates, and runs
    #[arg(long)]
    pub(crate) all_states: bool,
    /// Export every namespace
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Write the vectors to a NumPy file, one row for each line
    #[arg(long, value_name = "F.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Leave out the vectors, except for memories without text
    #[arg(long, conflicts_with = "vectors")]
    pub(crate) no_vectors: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The copy is a database: open it with --db, or move it to the place of the old file to put it back; a program of the \
                  library that has the old file open must be ended first."
)]
pub(crate) struct BackupOptions {
    /// The copy; a file of that name must not exist
    pub(crate) file: PathBuf,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PolicyCommand {
    /// Show the whole policy in force
    Show,
    /// Print the instructions for the host's language model, byte for byte
    Instructions,
    /// Store another policy
    Set {
        /// TOML, or JSON in a file that ends in .json; absent keys have their defaults
        file: PathBuf,
    },
}
