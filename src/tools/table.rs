//! The list of tools: one row a tool.

use serde_json::Value;

use crate::error::Result;
use crate::tools::arguments::Arguments;
use crate::tools::clock::{clock_member, dated};
use crate::tools::host::{Caller, Host};
use crate::tools::shape::Shape;
use crate::tools::{forgetting, maintenance, reading, summaries, upkeep, writing};

/// Which tools a host hands out together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// Called by envelopes.
    Envelope,
    /// The same, where the policy allows it.
    Combined,
    /// Called by name, beside the others.
    Memory,
}

/// What a tool does to the memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It changes none.
    Reads,
    /// It notes that they were read.
    Retrieves,
    /// It adds to them. The same call again changes nothing more.
    AddsOnce,
    /// It adds to them.
    Adds,
    /// It changes what they say; what they said stays in their history. The same call again changes nothing more.
    Changes,
    /// It may remove memories. The same call again removes nothing more.
    Removes,
}

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) set: Set,
    pub(super) effect: Effect,
    /// What it is for, in a sentence or two for a language model.
    pub(super) about: &'static str,
    pub(super) arguments: fn() -> Shape,
    /// What it answers, but for the clock.
    answer: fn() -> Shape,
    run: fn(&Host, Value, &dyn Caller) -> Result<Value>,
}

impl Tool {
    /// Whether it changes no memory, but for the count of how often one was found.
    pub(super) fn only_reads(&self) -> bool {
        matches!(self.effect, Effect::Reads | Effect::Retrieves)
    }

    /// What it answers. Every write can be by a clock that is behind.
    pub(super) fn answer(&self) -> Shape {
        let answer = (self.answer)();
        if self.only_reads() { answer } else { answer.and(clock_member()) }
    }

    /// Carries out a call whose arguments have their shape.
    ///
    /// # Errors
    /// Those of the database.
    pub(super) fn run(&self, host: &Host, args: Value, caller: &dyn Caller) -> Result<Value> {
        let database = host.namespace.database();
        let before = database.writes();
        let answer = (self.run)(host, args, caller)?;
        let has_written = !self.only_reads() && database.writes() != before;
        Ok(if has_written { dated(answer, database) } else { answer })
    }
}

/// An answer with these members and others.
fn with(names: &[&'static str]) -> Shape {
    Shape::Open(names.iter().map(|name| Shape::Any.required().named(name)).collect())
}

/// Rows: `Set Effect "name" handler(Arguments) -> answer "about";`.
macro_rules! tools {
    ($($set:ident $effect:ident $name:literal $file:ident::$run:ident($arguments:ident) -> $answer:expr; $about:literal;)+) => {
        /// All tools, in the order in which they are told.
        pub(super) static TOOLS: &[Tool] = &[$(Tool {
            name: $name,
            set: Set::$set,
            effect: Effect::$effect,
            about: $about,
            arguments: <$file::$arguments as Arguments>::shape,
            answer: $answer,
            run: |host, args, caller| $file::$run(host, <$file::$arguments as Arguments>::read(args)?, caller),
        },)+];
    };
}

tools! {
    Memory Adds "add_memory" writing::add(AddArguments) -> writing::written_answer;
        "Remember one fact. The same text with the same metadata and the same end is stored once. By a key that is there, the new text corrects the old one.";
    Memory Retrieves "search_memories" reading::search(SearchArguments) -> reading::search_answer;
        "Find memories by meaning and words. Call it before you answer from memory. What agents keep in parts of their own is not searched.";
    Memory Reads "get_memory" reading::get(GetArguments) -> reading::get_answer;
        "Read one memory as a whole, by its id or key, whatever became of it.";
    Memory Reads "list_memories" reading::list(ListArguments) -> reading::list_answer;
        "Page through the memories, the newest first, but for those that agents keep in parts of their own.";
    Memory Changes "update_memory" writing::update(UpdateArguments) -> writing::written_answer;
        "Correct a memory whose text was never true, or change its fields. What is left out stays; tags and metadata that are given replace the old ones. If the text was true until now, use supersede_memory.";
    Memory Changes "supersede_memory" writing::supersede(SupersedeArguments) -> writing::written_answer;
        "Put what is true now in place of what was true until now, under its key and with its end, unless ttl is given. By a key, others who wrote the old text keep it.";
    Memory Removes "forget_memory" forgetting::one(ForgetArguments) -> forgetting::answer;
        "Forget one memory for good. By default it only tells what would go; dry_run false forgets.";
    Memory Removes "forget_memories" forgetting::many(ForgetAllArguments) -> forgetting::answer;
        "Forget many memories for good, by ids, a tag or a filter. By default it only tells what would go; dry_run false forgets.";
    Memory Reads "memory_stats" upkeep::brief_stats(NoArguments) -> || with(&["local", "mem0", "health"]);
        "Count the memories by agent, scope and tag, of each the 50 most frequent. Use it rather than get_memory_stats.";
    Memory Removes "run_maintenance" maintenance::run(MaintainArguments) -> maintenance::answer;
        "Run maintenance: what is over goes, vectors and indexes are made. Duplicates become one if `passes` or the policy says so. By default it only tells what there is to do; dry_run false does it.";
    Envelope AddsOnce "memory.context_log_write" summaries::context_log_write(ContextArguments)
        -> || with(&["counted", "already", "unknown"]);
        "Note which memories were put into the context of a language model. Call it once for each context.";
    Envelope Adds "memory.gc_plan" summaries::gc_plan(PlanArguments) -> summaries::plan_answer;
        "Plan in groups which old and unused memories become summaries: messages, unless the policy says otherwise. Nothing is removed.";
    Envelope Reads "memory.summarize" summaries::summarize(SummarizeArguments) -> || with(&[]);
        "Get the memories of a group and the instructions to summarize them as JSON. Nothing is removed.";
    Envelope Removes "memory.compact_commit" summaries::compact_commit(CommitArguments)
        -> || with(&["summary_memory_id", "deleted_count", "skipped", "recall_guard", "run"]);
        "Put a summary in the place of its sources, in one step. Undo of its run brings the sources back.";
    Envelope AddsOnce "memory.compact_abort" summaries::compact_abort(AbortArguments)
        -> summaries::plan_answer;
        "Give up a plan, or one group of it. Its memories stay as they are.";
    Envelope Reads "get_memory_stats" upkeep::stats(NoArguments) -> || with(&["local", "mem0", "health"]);
        "Count the memories by agent, scope and tag, all of these. The answer can be long: it is for a program.";
    Envelope Removes "memory.hygiene" upkeep::hygiene(HygieneArguments) -> || with(&["dry_run"]);
        "Run one pass of maintenance, and tell each group of memories that it changes. By default it only tells what it would do; dry_run false does it.";
    Envelope Reads "memory.explain" upkeep::explain(ExplainArguments) -> || with(&["stories"]);
        "Tell where a memory came from, what happened to it and why it is gone. Give its id, or a question or its text.";
    Envelope Removes "memory.undo" upkeep::undo(UndoArguments) -> || with(&["dry_run"]);
        "Take back a run of maintenance, a summary or an import. By default it only tells what is known of the run.";
    Envelope Reads "memory.gc_report" summaries::gc_report(ReportArguments)
        -> || with(&["changed", "compacted", "summaries_created", "memories_deleted", "text"]);
        "Report what happened to repeated messages and summaries since an instant, in milliseconds since 1970.";
    Combined Removes "memory.summarize_and_compact" summaries::summarize_and_compact(CombinedArguments)
        -> || with(&["groups", "committed", "aborted", "refused", "sources", "runs"]);
        "Write a summary for each open group of a plan and put it in the place of its sources. `stopped` says why it ended early.";
}
