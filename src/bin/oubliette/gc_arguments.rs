//! What is typed behind `gc`, and behind `eval --gc`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use oubliette::Result;
use oubliette::gc::GcOptions;

use crate::number::number;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum GcCommand {
    /// Plan summaries: which memories are old and unused, and which of them become one summary
    Plan(PlanOptions),
    /// Show a plan with its groups, or all plans
    Show {
        /// The plan [default: all plans]
        plan: Option<String>,
    },
    /// Print what the writer of the summary of a group is given, as JSON
    Pack {
        /// The plan
        plan: String,
        /// The group of the plan
        group: String,
    },
    /// Put a summary in the place of a group
    Commit(CommitOptions),
    /// Give up a plan, or one group of it
    Abort {
        /// The plan
        plan: String,
        /// The group of the plan [default: all that are not committed]
        group: Option<String>,
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// Tell what happened to summaries and repeated messages, for a report to a person
    Report {
        /// The first instant of the report, or how long ago it lies, such as 7d [default: report.interval of the policy ago]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        since: Option<String>,
    },
    /// Summarize everything that is old and unused: plan, summarize and commit, group by group
    Run(RunOptions),
}

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    /// Largest number of tokens of all memories of a plan, 1 to 1000000 [default: 60000]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 1 to 1000000"))]
    pub(crate) limit_tokens: Option<u64>,
    /// Tokens that the memories of a summary should have; longer groups are divided [default: as many as the policy allows;
    /// for run, as many as suit the summarizer]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 1 to 1000000"))]
    pub(crate) group_tokens: Option<u64>,
    /// Age above which a memory may be summarized, such as 14d [default: gc.age_min of the policy]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) age_min: Option<String>,
    /// A memory may be summarized if it was put into contexts fewer times than this, older times counting less [default: gc.access_threshold of the policy]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, value_parser = number::<f64>("a number, 0 or more"))]
    pub(crate) access_threshold: Option<f64>,
    /// Largest number of groups, 1 to 50 for a plan [default: gc.max_groups of the policy; for run, all there are]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<u32>("a whole number, 1 to 50 for a plan"))]
    pub(crate) max_groups: Option<u32>,
    /// A question that must still be answered afterwards: if it finds a memory of a group, it must find its summary; can be given
    /// several times
    #[arg(long = "probe", value_name = "TEXT")]
    pub(crate) probes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CommitOptions {
    /// The plan
    pub(crate) plan: String,
    /// The group of the plan
    pub(crate) group: String,
    /// The summary, JSON of the form json_v1; - for standard input
    #[arg(long, value_name = "FILE.json")]
    pub(crate) summary: PathBuf,
    /// A memory that the summary stands for; can be given several times [default: all of the group]
    #[arg(long = "source", value_name = "ID")]
    pub(crate) sources: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) plan: PlanOptions,
    /// Who writes the summaries: builtin, which copies sentences without their filler words; openai:MODEL at $OPENAI_BASE_URL, with $OPENAI_API_KEY; or
    /// a command that reads the pack as JSON from standard input and prints JSON of the form json_v1. An answer that is no
    /// summary is given back, to a command under "repair"
    #[arg(long, value_name = "WHO", default_value = "builtin")]
    pub(crate) summarizer: String,
    /// How long a command or a server may take for one summary
    #[arg(long, value_name = "DURATION", default_value = "2m", allow_hyphen_values = true)]
    pub(crate) timeout: String,
    /// Say what would be done, and change nothing. The recall figure is measured against today's memories; a real run
    /// measures after its earlier summaries are in place, so its figure may differ
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl PlanOptions {
    pub(crate) fn options(&self) -> Result<GcOptions> {
        Ok(GcOptions {
            limit_tokens: self.limit_tokens,
            group_tokens: self.group_tokens,
            age_min: self.age_min.as_deref().map(str::parse).transpose()?,
            access_threshold: self.access_threshold,
            max_groups: self.max_groups,
            probes: self.probes.clone(),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct GcEvalOptions {
    /// Measure how much of the evidence is still found after the oldest memories have made room for summaries, on a copy
    #[arg(long, conflicts_with = "text")]
    pub(crate) gc: bool,
    /// Share of the memories that is summarized; can be given several times [default: 0.25, 0.5, 0.75, 0.9]
    #[arg(long = "share", value_name = "0..1", requires = "gc", allow_negative_numbers = true, value_parser = number::<f64>("a number, 0 to 1"))]
    pub(crate) shares: Vec<f64>,
    /// Tokens of the summaries as a share of those of their sources; can be given several times [default: gc.summary_tokens
    /// of the policy]
    #[arg(long = "budget", value_name = "0..1", requires = "gc", allow_negative_numbers = true, value_parser = number::<f64>("a number above 0, at most 1"))]
    pub(crate) budgets: Vec<f64>,
    /// Tokens that the memories of a summary should have, whoever writes it [default: as many as suit builtin]
    #[arg(long, value_name = "N", requires = "gc", allow_negative_numbers = true, value_parser = number::<u64>("a whole number, 1 to 1000000"))]
    pub(crate) group_tokens: Option<u64>,
    /// Who writes the summaries: builtin, first (the first sentences), random (any sentences), or a file of facts as JSON
    /// lines with their "source_turns"; can be given several times
    #[arg(long = "summarizer", value_name = "NAME|F.jsonl", default_value = "builtin", requires = "gc")]
    pub(crate) summarizers: Vec<String>,
}
