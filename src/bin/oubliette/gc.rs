//! `gc`: old memories make room for summaries. `expand`: what a summary stands for.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use oubliette::gc::{
    GcOptions, GcPlan, GcProbe, GcReport, GcRunOptions, GcRunReport, GroupState, PlanState, RecallGuard,
    Summarizer,
};
use oubliette::maintain::RunId;
use oubliette::memory::{Got, Tombstone};
use oubliette::{Database, Error, ErrorKind, Kind, MemoryId, Namespace, Result, Span, Time};
use serde_json::{Map, Value, json};

use crate::arguments::NameOptions;
use crate::caller::{Caller, Loan};
use crate::gc_arguments::{CommitOptions, GcCommand, RunOptions};
use crate::output::{Done, Failure, Output, printable};
use crate::place::{Access, Place, named};
use crate::progress::Progress;
use crate::summarizer::{ANSWER_BYTES_MAX, Commanded};
use crate::told::of;
use crate::{runs, story};

/// Runs that a sentence names.
const RUNS_NAMED: usize = 3;

/// `gc`.
pub(crate) fn run(command: &GcCommand, place: &Place, output: Output<'_>) -> Done {
    let access = match command {
        GcCommand::Show { .. } | GcCommand::Pack { .. } | GcCommand::Report { .. } => Access::Read,
        _ => Access::Write,
    };
    let database = place.open(access)?;
    if access == Access::Read {
        place.unknown_namespace(&database.namespaces()?, output)?;
    }
    let done = run_on(&database, command, place, output);
    // What was done before a failure is written.
    let closed = place.close(database);
    done?;
    Ok(closed?)
}

fn run_on(database: &Database, command: &GcCommand, place: &Place, output: Output<'_>) -> Done {
    let namespace = database.namespace(place.namespace()?)?;
    match command {
        GcCommand::Plan(options) => {
            let plan = namespace.gc_plan(&named("--age-min", options.options())?).map_err(refused)?;
            let nothing = if plan.groups.is_empty() { nothing(database, &namespace)? } else { String::new() };
            place.note_writes(database);
            place.done(output, json!(plan), |_| plan_told(&plan, nothing))
        }
        GcCommand::Show { plan: Some(plan) } => {
            let plan = namespace.gc_show(id(plan)?)?;
            if output.json {
                output.document(&json!(plan))
            } else {
                groups(&namespace, &plan, &place.present(), output)
            }
        }
        GcCommand::Show { plan: None } => plans(&namespace, &place.present(), output),
        GcCommand::Pack { plan, group } => {
            let pack = namespace.gc_pack(id(plan)?, group).map_err(refused)?;
            output.line(&json!(pack).to_string())
        }
        GcCommand::Commit(options) => commit(&namespace, options, place, output),
        GcCommand::Abort { plan, group, reason } => {
            let plan = namespace.gc_abort(id(plan)?, group.as_deref(), reason).map_err(refused)?;
            let committed = committed_told(&namespace, &plan);
            place.note_writes(database);
            place.done(output, json!(plan), |_| given_up(&plan, group.as_deref()) + &committed)
        }
        GcCommand::Report { since } => {
            let since = since.as_deref().map(|since| since_of(since, place)).transpose()?;
            let report = namespace.gc_report(since)?;
            if output.json {
                output.document(&json!(report))
            } else {
                output.line(&report_told(&report, &place.present()))
            }
        }
        GcCommand::Run(options) => {
            place.check_namespace(&database.namespaces()?)?;
            summarize(database, &namespace, options, place, output)
        }
    }
}

/// The beginning of a report: an instant, or how long ago.
fn since_of(text: &str, place: &Place) -> Result<Time> {
    match text.parse::<Span>() {
        Ok(span) => Ok(place.now().minus(span)),
        Err(_) => {
            let why = "must be an instant, such as 2026-03-01T00:00:00Z, or how long ago it lies, such as 7d";
            text.parse().map_err(|_| Error::invalid("--since", why, text))
        }
    }
}

/// A refusal with its rule and its pointers.
fn refused(error: Error) -> Failure {
    let more = match &error {
        Error::Refused { code, pointers, .. } => {
            Map::from_iter([("code".to_owned(), json!(code)), ("pointers".to_owned(), json!(pointers))])
        }
        _ => return error.into(),
    };
    Failure::Partly(error, Box::new(more))
}

/// There is no group.
const NOTHING: &str = "Nothing to summarize";

/// Why there is no group: an open plan may have the memories that would be summarized, or there are none of them.
fn nothing(database: &Database, namespace: &Namespace) -> Result<String> {
    let is_open = |plan: &&GcPlan| plan.state == PlanState::Open && !plan.groups.is_empty();
    if let Some(plan) = namespace.gc_plans()?.iter().find(is_open) {
        let id = plan.plan_id;
        return Ok(format!(
            "{NOTHING} but what the open plan {id} has: `gc show {id}` lists it, `gc abort {id} --reason WHY` frees it"
        ));
    }
    let gc = database.policy().0.gc;
    let kinds = match gc.kinds.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        kinds => kinds.concat(),
    };
    let plain = Kind::default().to_string();
    let plain = match gc.kinds.contains(&plain) {
        true => String::new(),
        false => format!("; a plain `add` makes {plain}, which stays as it is"),
    };
    Ok(format!(
        "{NOTHING}: a summary takes the place of {} or more memories of one thread, or of one channel and day, of the kinds {kinds} \
         (gc.kinds), that are older than --age-min (gc.age_min: {}) and little used, and of no summary that was taken back within \
         gc.resummarize_after{plain}",
        gc.min_group, gc.age_min
    ))
}

fn plan_told(plan: &GcPlan, nothing: String) -> String {
    let sources: usize = plan.groups.iter().map(|group| group.source_ids.len()).sum();
    if plan.groups.is_empty() {
        return nothing;
    }
    let (groups, sources) = (plan.groups.len() as u64, sources as u64);
    let groups = of(groups, "group", "groups");
    format!(
        "Planned {groups} of {}; `gc show {}` lists them",
        of(sources, "memory", "memories"),
        plan.plan_id
    )
}

/// What giving up a plan, or a group of it, came to.
fn given_up(plan: &GcPlan, group: Option<&str>) -> String {
    match (plan.state, group) {
        (PlanState::Open, Some(group)) => format!("Gave up group {group}; the plan is open"),
        (PlanState::Aborted, _) => "Gave up the plan".to_owned(),
        (state, _) => format!("There was nothing to give up: the plan is {state}"),
    }
}

/// The groups of a plan that are committed where the plan has others, and which runs take them back.
fn committed_told(namespace: &Namespace, plan: &GcPlan) -> String {
    let committed: Vec<_> = plan.groups.iter().filter(|group| group.state == GroupState::Committed).collect();
    if committed.is_empty() || committed.len() == plan.groups.len() {
        return String::new();
    }
    let runs = undoable(namespace, committed.iter().filter_map(|group| group.run));
    let stand = if committed.len() == 1 { "was committed and stands" } else { "were committed and stand" };
    let groups = of(plan.groups.len() as u64, "group", "groups");
    format!("; {} of its {groups} {stand}{}", committed.len(), taken_back(&runs))
}

/// Those of some runs that `undo` can take back: none where the policy has no horizon.
pub(crate) fn undoable(namespace: &Namespace, runs: impl IntoIterator<Item = RunId>) -> Vec<RunId> {
    let is_undoable = |run: &RunId| namespace.run(*run).ok().flatten().is_some_and(|run| run.can_be_undone);
    runs.into_iter().filter(is_undoable).collect()
}

/// What takes runs back, each that of a group.
fn taken_back(runs: &[RunId]) -> String {
    match runs {
        [] => String::new(),
        [run] => format!("; `undo {run}` takes it back"),
        runs if runs.len() <= RUNS_NAMED => {
            let all: Vec<String> = runs.iter().map(|run| format!("`undo {run}`")).collect();
            format!("; {} take it back, each a group", all.join(", "))
        }
        runs => format!("; `undo` takes each of its {} runs back, which `runs` lists", runs.len()),
    }
}

/// Memories that a plan left alone because they can't be read.
fn tell_passed_over(damaged: u64, output: Output<'_>) {
    if damaged > 0 {
        let memories = of(damaged, "memory is damaged and was", "memories are damaged and were");
        output.remark(&format!("{memories} left alone; `check` tells more"));
    }
}

/// A run that failed after some of its groups were committed, which stand.
fn stopped(error: Error, committed: u64, runs: &[RunId]) -> Failure {
    let failure = refused(error);
    if committed == 0 {
        return failure;
    }
    let (error, mut more) = match failure {
        Failure::Error(error) => (error, Map::new()),
        Failure::Partly(error, more) => (error, *more),
        other => return other,
    };
    more.insert("committed".to_owned(), json!(committed));
    more.insert("runs".to_owned(), json!(runs));
    Failure::Partly(error, Box::new(more))
}

/// A report with its period in local dates.
fn report_told(report: &GcReport, now: &story::Present) -> String {
    let (since, until) = (report.since, report.until);
    let told = report.to_string();
    let rest = told.strip_prefix(&format!("{since} to {until}")).unwrap_or(&told);
    format!("{} to {}{rest}", story::when(since, now), story::when(until, now))
}

fn plans(namespace: &Namespace, now: &story::Present, output: Output<'_>) -> Done {
    let plans = namespace.gc_plans()?;
    if output.json {
        return output.document(&json!({ "plans": plans }));
    }
    let rows = plans.iter().map(|plan| {
        let state = if plan.groups.is_empty() { "nothing to do".to_owned() } else { plan.state.to_string() };
        let groups = plan.groups.len().to_string();
        vec![plan.plan_id.to_string(), state, groups, story::when(plan.created_at, now)]
    });
    output.list(&["plan", "state", "groups", "made"], rows.collect(), "No plan; `gc plan` makes one")
}

fn groups(namespace: &Namespace, plan: &GcPlan, now: &story::Present, output: Output<'_>) -> Done {
    if plan.groups.is_empty() {
        return output.line("The plan has no group: there was nothing to summarize when it was made");
    }
    let ends = match plan.state {
        PlanState::Open => format!("; it ends {}", story::when(plan.expires_at, now)),
        _ => String::new(),
    };
    output.line(&format!("The plan is {}{ends}{}", plan.state, committed_told(namespace, plan)))?;
    tell_passed_over(plan.damaged, output);
    let rows = plan.groups.iter().map(|group| {
        let place = group.thread.clone().or_else(|| group.channel_id.clone()).unwrap_or_default();
        let state = group.refusal.map_or(group.state.to_string(), |why| format!("{}: {why}", group.state));
        let time = format!("{} to {}", group.time_range.start.day(), group.time_range.end.day());
        let (sources, tokens) = (group.source_ids.len().to_string(), group.estimated_tokens.to_string());
        vec![group.group_id.clone(), state, sources, tokens, time, place]
    });
    output.table(&["group", "state", "memories", "tokens", "time", "where"], rows)?;
    for group in &plan.groups {
        for GcProbe { text, from } in &group.probes {
            output.line(&printable(&format!("Group {} is asked ({from}): {text}", group.group_id)))?;
        }
        if output.verbose {
            output.line(&format!("Group {} takes:", group.group_id))?;
            let row = |id: &MemoryId| vec![id.to_string(), text_of(namespace, *id).unwrap_or_default()];
            let rows = group.source_ids.iter().map(row).collect();
            output.list(&["memory", "text"], rows, "No memory any more")?;
        }
    }
    Ok(())
}

/// What a memory says; nothing where it is gone. What maintenance removed can be read until it can't be brought back any more.
fn text_of(namespace: &Namespace, id: MemoryId) -> Result<String> {
    match namespace.look_up(id, false) {
        Ok(Got::Memory(memory)) => Ok(memory.text),
        Ok(Got::Tombstone(_)) => Ok(String::new()),
        // Its tombstone has gone as well.
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(why) => Err(why),
    }
}

/// The plan that was typed.
fn id(plan: &str) -> Result<RunId> {
    runs::id("plan", plan, "gc show")
}

fn commit(namespace: &Namespace, options: &CommitOptions, place: &Place, output: Output<'_>) -> Done {
    let answer = read(&options.summary, output.caller)?;
    let ids = options.sources.iter().map(|id| id.parse()).collect::<Result<Vec<MemoryId>>>()?;
    let sources = (!ids.is_empty()).then_some(ids.as_slice());
    let plan = id(&options.plan)?;
    let done = namespace.gc_commit(plan, &options.group, &answer, sources).map_err(refused)?;
    place.note_writes(namespace.database());
    place.done(output, json!(done), |_| {
        let gone = of(done.deleted_count, "memory", "memories");
        let undo = taken_back(&undoable(namespace, done.run));
        let found = found_told(done.recall_guard, "find");
        format!("Summary {} stands in the place of {gone}{undo}{found}", done.summary_memory_id)
    })
}

/// A file, or standard input for `-`.
fn read(file: &PathBuf, caller: &Caller) -> Result<String> {
    let mut text = String::new();
    let read = match file.as_os_str() == "-" {
        true => caller.input().take(ANSWER_BYTES_MAX + 1).read_to_string(&mut text),
        false => std::fs::File::open(file)
            .and_then(|file| file.take(ANSWER_BYTES_MAX + 1).read_to_string(&mut text)),
    };
    read.map_err(|source| Error::Io { action: "read", path: file.clone(), source })?;
    Ok(text)
}

/// How long a command may take for a summary, as it was typed.
pub(crate) fn timeout(typed: &str) -> Result<Duration> {
    let timeout: Span = named("--timeout", typed.parse())?;
    if timeout <= Span::ZERO {
        return Err(Error::invalid("--timeout", "must be longer than 0", timeout));
    }
    Ok(Duration::from_millis(timeout.as_millis().unsigned_abs()))
}

/// Who writes summaries, by the name that was typed.
pub(crate) fn summarizer(
    namespace: &Namespace,
    name: &str,
    timeout: &str,
    caller: &Caller,
) -> Result<Arc<dyn Summarizer>> {
    let timeout = self::timeout(timeout)?;
    Ok(match name {
        "builtin" => Arc::new(namespace.gc_builtin()?),
        name => match name.strip_prefix("openai:") {
            Some(model) => openai(model, timeout, caller)?,
            None => Arc::new(Commanded { command: name.to_owned(), timeout, loan: Loan::of(caller) }),
        },
    })
}

fn summarize(
    database: &Database,
    namespace: &Namespace,
    options: &RunOptions,
    place: &Place,
    output: Output<'_>,
) -> Done {
    let summarizer = summarizer(namespace, &options.summarizer, &options.timeout, output.caller)?;
    let plan = GcOptions { max_groups: None, ..named("--age-min", options.plan.options())? };
    let max_groups = options.plan.max_groups.map(u64::from);
    let wanted = GcRunOptions { plan, max_groups, dry_run: options.dry_run };
    let progress = Progress::new(output, max_groups);
    let (mut committed, mut runs) = (0, Vec::new());
    let report = namespace.gc_run(summarizer.as_ref(), &wanted, |report| {
        progress.set(report.groups);
        committed = report.committed;
        runs.extend(report.runs.iter().skip(runs.len()));
    });
    drop(progress);
    let report = report.map_err(|error| stopped(error, committed, &runs))?;
    let mut document = json!(report);
    let nothing = if report.groups == 0 { nothing(database, namespace)? } else { String::new() };
    if let Value::Object(members) = &mut document {
        members.insert("dry_run".to_owned(), json!(options.dry_run));
        // A script that is told nothing would try the same for ever.
        members.extend((!nothing.is_empty()).then(|| ("nothing".to_owned(), json!(nothing))));
    }
    let failure = report.first_failure.as_ref().filter(|_| report.summaries == 0);
    // A person hears of it by the error alone.
    if failure.is_none() || output.json || output.verbose {
        place.note_writes(database);
        place.done(output, document, |_| match report.groups {
            0 => nothing,
            _ => run_told(&report, &undoable(namespace, report.runs.iter().copied()), options.dry_run),
        })?;
    }
    tell_passed_over(report.damaged, output);
    // Whoever runs this by a clock must hear that it came to nothing.
    failure.map_or(Ok(()), |first| Err(Failure::Summaries(Box::new(first.clone()))))
}

#[cfg(feature = "openai")]
fn openai(model: &str, timeout: Duration, caller: &Caller) -> Result<Arc<dyn Summarizer>> {
    use oubliette::gc::{ChatOptions, OpenAiSummarizer};
    let (base_url, api_key) = crate::embedder::openai_server(caller);
    let mut options = ChatOptions::new(base_url, model);
    (options.api_key, options.timeout) = (api_key, timeout);
    Ok(Arc::new(OpenAiSummarizer::new(options)?))
}

#[cfg(not(feature = "openai"))]
fn openai(_model: &str, _timeout: Duration, _caller: &Caller) -> Result<Arc<dyn Summarizer>> {
    Err(Error::invalid("summarizer", "must be one that this build has: it was made without openai", "openai"))
}

/// How many of the questions that had found a memory find its summary.
fn found_told(guard: RecallGuard, verb: &str) -> String {
    if guard.hit_before == 0 {
        return String::new();
    }
    let before = of(guard.hit_before.into(), "question", "questions");
    let verb = if verb == "find" && guard.hit_after == 1 { "finds" } else { verb };
    format!("; of {before} that found a memory, {} {verb} its summary", guard.hit_after)
}

/// What a run came to, of which `undoable` can be taken back.
pub(crate) fn run_told(report: &GcRunReport, undoable: &[RunId], dry_run: bool) -> String {
    if report.groups == 0 {
        return NOTHING.to_owned();
    }
    let verb = if dry_run { "Would put" } else { "Put" };
    let mut told = format!(
        "{verb} {} in the place of {}: {} tokens in place of {}",
        of(report.summaries, "summary", "summaries"),
        of(report.sources, "memory", "memories"),
        report.tokens_after,
        report.tokens_before,
    );
    told.push_str(&found_told(report.recall_guard, if dry_run { "would find" } else { "find" }));
    told.push_str(&taken_back(undoable));
    if report.too_short > 0 {
        let groups = of(report.too_short, "group is", "groups are");
        told.push_str(&format!("; {groups} too short for a summary that is shorter"));
    }
    let left = report.aborted + report.refused;
    if left > 0 {
        let left = match left {
            1 => "1 group was left as it was".to_owned(),
            left => format!("{left} groups were left as they were"),
        };
        told.push_str(&format!("; {left}"));
        if let Some(first) = report.failures.first() {
            told.push_str(&format!(" ({first})"));
        }
    }
    told
}

/// `expand`.
pub(crate) fn expand(options: &NameOptions, place: &Place, output: Output<'_>) -> Done {
    let database = place.open_best()?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let team = database.namespace(place.namespace()?)?;
    let found = team.expand(options.name.as_str())?;
    if !output.json {
        let now = place.present();
        let row = |(id, stone): &(MemoryId, Option<Tombstone>)| {
            if found.damaged.contains(id) {
                return Ok(vec![id.to_string(), "damaged".to_owned(), String::new()]);
            }
            let text = text_of(&team, *id)?;
            let fate = stone
                .as_ref()
                .map(|stone| format!("{} {}", stone.reason, story::when(stone.deleted_at, &now)));
            Ok(vec![id.to_string(), fate.unwrap_or_else(|| "there".to_owned()), text])
        };
        let rows = found.sources.iter().map(row).collect::<Result<Vec<_>>>()?;
        return output.list(&["memory", "fate", "text"], rows, "It was made from no other memory");
    }
    let sources = found.sources.iter().map(|(id, stone)| match stone {
        None if found.damaged.contains(id) => json!({ "id": id, "damaged": true }),
        None => json!({ "id": id }),
        Some(stone) => json!({ "id": id, "tombstone": {
            "reason": stone.reason, "deleted_at": stone.deleted_at, "run": stone.run,
            "replaced_by_summary_id": stone.replaced_by, "erased_at": stone.erased_at,
        }}),
    });
    output.document(&json!({ "summary": found.summary, "sources": sources.collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_stops_names_what_it_has_committed() {
        let why = || Error::Unavailable { why: "the disk is gone".to_owned() };
        assert!(matches!(stopped(why(), 0, &[]), Failure::Error(_)));
        let run = RunId::from_bytes([7; 16]);
        let Failure::Partly(_, more) = stopped(why(), 1, &[run]) else { panic!("it is told of no group") };
        assert_eq!((more.get("committed"), more.get("runs")), (Some(&json!(1)), Some(&json!([run]))));
    }
}
