//! The options of `maintain`.

use std::path::PathBuf;

use clap::Args;
use oubliette::maintain::Pass;
use oubliette::policy::Preset;

use crate::arguments::member::member;
use crate::number::number;

#[derive(Debug, Args)]
#[command(after_help = passes_help())]
pub(crate) struct MaintainOptions {
    /// Passes, in the order in which they are to run [default: those that the policy enables, then embed, index and repair]
    #[arg(value_name = "PASS", ignore_case = true, value_parser = member(Pass::ALL, Pass::as_str))]
    pub(crate) passes: Vec<Pass>,
    /// Only say what the passes would do
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Keep running: maintain the whole file now, and then at this interval, such as 30m
    #[arg(long, value_name = "DURATION", conflicts_with = "dry_run", allow_hyphen_values = true)]
    pub(crate) every: Option<String>,
    /// Stop after this time, such as 5s; the next run goes on from there [default: no bound]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) budget: Option<String>,
    /// Stop after this number of rows; the next run goes on from there [default: no bound]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) max_rows: Option<u64>,
    /// How many visible memories of a namespace this run may remove [default: budget.* of the policy]. What the passes expire,
    /// superseded, limbo and retention remove has ended anyway and does not count
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) destroy_max: Option<u64>,
    /// Let collapse also join near texts (collapse.fuzzy)
    #[arg(long)]
    pub(crate) fuzzy: bool,
    /// With collapse, memories on a page of its listing [default: collapse.batch]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u32>("a whole number, 1 to 1000000"))]
    pub(crate) batch_size: Option<u32>,
    /// With snapshots, only this series
    #[arg(long, value_name = "SERIES")]
    pub(crate) series: Option<String>,
    /// Sample groups in the report, 0 to 10000 [default: collapse.max_samples]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u32>("a whole number, 0 to 10000"))]
    pub(crate) samples: Option<u32>,
    /// Number of threads, 1 to 1024 [default: one for each core]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 1024"))]
    pub(crate) threads: Option<usize>,
    /// Who writes for this run: with --every, the summaries of the stage gc; with the pass cluster, one memory in the place of each
    /// cluster. builtin, which only summarizes; openai:MODEL; or a command as for gc run, which is given the members of a cluster as
    /// {"consolidate": [..]} and prints a memory as a line of JSON
    #[arg(long, value_name = "WHO", conflicts_with = "dry_run")]
    pub(crate) summarizer: Option<String>,
    /// How long a command or a server may take for one answer
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "2m",
        allow_hyphen_values = true,
        requires = "summarizer",
        conflicts_with = "dry_run"
    )]
    pub(crate) timeout: String,
    /// Also write the report to a file; with --every, that of the latest sweep
    #[arg(long, value_name = "F.json")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) prune: PruneOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of prune")]
pub(crate) struct PruneOptions {
    /// The step of the host, if it counts steps
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) step: Option<u64>,
    /// Prune memories of this kind, the lowest scores first, in place of what the policy says of summaries
    #[arg(long, value_name = "KIND", requires = "target")]
    pub(crate) kind: Option<String>,
    /// How many visible memories of the kind are left, at least
    #[arg(long, value_name = "N", requires = "kind", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 0 or more"))]
    pub(crate) target: Option<u64>,
    /// With --kind, only memories of this agent, as they name it in agent_id
    #[arg(long, value_name = "AGENT", requires = "kind")]
    pub(crate) agent: Option<String>,
    /// Lay a published variant of pruning over the policy for this run
    #[arg(long, value_name = "PRESET", ignore_case = true, value_parser = member(Preset::ALL, Preset::as_str), conflicts_with = "compare")]
    pub(crate) preset: Option<Preset>,
    /// Say what each of these policies would prune, each laid over the stored one, on the same state; nothing is written. preset:PRESET
    /// stands for a preset
    #[arg(long, value_name = "FILE", requires = "dry_run", num_args = 1.., conflicts_with_all = ["kind", "report", "budget", "max_rows", "destroy_max", "threads"])]
    pub(crate) compare: Vec<PathBuf>,
    /// With --compare, queries, each as a line of JSON: which share of their hits each policy would leave
    #[arg(long, value_name = "Q.jsonl", requires = "compare")]
    pub(crate) queries: Option<PathBuf>,
    /// Vectors of the queries, one row for each
    #[arg(long, value_name = "Q.npy", requires = "queries")]
    pub(crate) vectors: Option<PathBuf>,
    /// How many hits of each query, 1 to 1000
    #[arg(short, default_value_t = 10, requires = "queries", allow_negative_numbers = true, value_parser = number::<usize>("a whole number, 1 to 1000"))]
    pub(crate) k: usize,
}

/// The passes with what they do, in the order in which they run by default.
fn passes_help() -> String {
    let lines = Pass::ALL.iter().map(|pass| format!("  {:17}  {}", pass.as_str(), hanging(pass.help())));
    format!("Passes:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// A sentence in lines that stand below each other behind the name of a pass.
fn hanging(text: &str) -> String {
    const WIDTH: usize = 76;
    let (mut all, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        if column + word.len() > WIDTH {
            all.push_str(&format!("\n{:21}", ""));
            column = 0;
        } else if column > 0 {
            all.push(' ');
        }
        all.push_str(word);
        column += word.len() + 1;
    }
    all
}
