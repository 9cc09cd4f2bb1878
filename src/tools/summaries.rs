//! The tools of summaries: the inclusion log, plans, packs, commits, reports.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::{GcRunReport, Namespace};
use crate::error::{Error, Result};
use crate::hygiene::{GcGroup, GcOptions, GcPlan};
use crate::limits::{SPAN_MS_MAX, TIME_MAX_MS};
use crate::model::{
    Bucket, ContextDraft, GroupState, Inclusion, MemoryId, PlanState, Refusal, RunId, Span, Time,
};
use crate::tools::arguments::arguments;
use crate::tools::error::ToolError;
use crate::tools::host::{Caller, Host};
use crate::tools::reading::{all, told};
use crate::tools::shape::{Shape, at_least, integer, list, set, text};

/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;
/// Characters of an id.
pub(super) const ID_CHARS_MAX: usize = 128;

/// An id.
pub(super) fn id() -> Shape {
    text(1, ID_CHARS_MAX)
}

/// The sources of a summary.
fn sources() -> Shape {
    set(id(), 1, 200)
}

arguments! {
    /// A memory of a context.
    ContextItem {
        memory_id: String = id().required().about("The id of the memory, or its key.");
        tokens: u32 = at_least(0).required().about("The tokens that it took.");
        bucket: Option<Bucket> = Shape::Word(Bucket::ALL.iter().map(|bucket| bucket.as_str()).collect()).optional()
            .about("Why it was there: persistent in every context, related to what was asked, recent in what was said.");
    }
}

arguments! {
    /// The arguments of `memory.context_log_write`.
    ContextArguments {
        context_id: String = text(1, 128).required().about("A name of yours. A context is counted once.");
        memory_ids_with_token_costs: Vec<ContextItem> = list(ContextItem::shape(), 1, 500).required()
            .about("The memories that were put there.");
        session_id: Option<String> = text(1, 128).optional().about("A name of yours for the conversation.");
        window_tokens: Option<u32> = at_least(0).optional().about("The tokens that the context had room for.");
        ts: Option<i64> = at_least(0).optional().about("When, in milliseconds since 1970; now by default.");
    }
}

/// `memory.context_log_write`.
pub(super) fn context_log_write(host: &Host, args: ContextArguments, _: &dyn Caller) -> Result<Value> {
    let items = args.memory_ids_with_token_costs.into_iter();
    let items =
        items.map(|item| Inclusion { bucket: item.bucket, ..Inclusion::new(item.memory_id, item.tokens) });
    let mut context = ContextDraft::new(args.context_id, items);
    context.session = args.session_id;
    context.window_tokens = args.window_tokens;
    context.at = args.ts.map(|ts| instant("ts", ts)).transpose()?;
    Ok(json!(host.namespace.context_log_write(&context)?))
}

arguments! {
    /// The arguments of `memory.gc_plan`.
    PlanArguments {
        limit_tokens: Option<u64> = integer(1, 1_000_000).or(60_000).about("Tokens of all memories of the plan at most.");
        age_min_days: Option<f64> = Shape::Number { min: 0.0, max: None }.or(14).about("Only memories that are older than this.");
        access_threshold: Option<f64> = Shape::Number { min: 0.0, max: None }.or(0.8)
            .about("Only memories that were put into contexts fewer times than this, where older times count less.");
        max_groups: Option<u32> = integer(1, 50).or(10).about("How many groups at most.");
        probes: Option<Vec<String>> = list(text(1, 400), 0, 10).optional()
            .about("Questions to ask before and after a summary, to see whether it is found as its memories were.");
    }
}

/// `memory.gc_plan`. What is left out is as the policy says, whose defaults the schema names.
pub(super) fn gc_plan(host: &Host, args: PlanArguments, _: &dyn Caller) -> Result<Value> {
    let options = GcOptions {
        limit_tokens: args.limit_tokens,
        age_min: args.age_min_days.map(days).transpose()?,
        access_threshold: args.access_threshold,
        max_groups: args.max_groups,
        probes: args.probes.unwrap_or_default(),
        ..GcOptions::default()
    };
    let plan = host.namespace.gc_plan(&options)?;
    let mut answer = json!(plan);
    if let (Value::Object(members), true) = (&mut answer, plan.groups.is_empty()) {
        members.insert("why".to_owned(), why_empty(&host.namespace)?.into());
    }
    Ok(answer)
}

/// Why a plan has no group: an open plan may have the memories that would be summarized, or there are none of them.
fn why_empty(namespace: &Namespace) -> Result<String> {
    let is_open = |plan: &&GcPlan| plan.state == PlanState::Open && !plan.groups.is_empty();
    if let Some(plan) = namespace.gc_plans()?.iter().find(is_open) {
        let id = plan.plan_id;
        return Ok(format!(
            "The open plan {id} has the memories: memory_compact_commit or memory_compact_abort ends it."
        ));
    }
    let gc = namespace.database().policy().0.gc;
    Ok(format!(
        "A summary takes the place of {} or more memories of one thread, or of one channel and day, of the kinds {}, that are \
         older than {} and little used. Memories of other kinds stay as they are.",
        gc.min_group,
        gc.kinds.join(", "),
        gc.age_min
    ))
}

/// A plan as an answer.
pub(super) fn plan_answer() -> Shape {
    Shape::Open(vec![
        told().required().about("For memory_compact_commit and memory_compact_abort.").named("plan_id"),
        told()
            .required()
            .about("open, committed, aborted or expired; a plan without groups is committed at once.")
            .named("state"),
        all(Shape::Object)
            .required()
            .about("Each with its group_id, state, source_ids, estimated_tokens and time_range.")
            .named("groups"),
        told().optional().about("Why there is no group.").named("why"),
    ])
}

/// The form of a summary.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    #[default]
    JsonV1,
}

arguments! {
    /// The arguments of `memory.summarize`.
    SummarizeArguments {
        source_ids: Vec<String> = sources().required().about("The memories of one group of memory_gc_plan.");
        format: Option<Form> = Shape::Word(vec!["json_v1"]).or("json_v1").about("The form of the summary.");
    }
}

/// `memory.summarize`: what is to be summarized, or the summary where the host has somebody who writes it.
pub(super) fn summarize(host: &Host, args: SummarizeArguments, _: &dyn Caller) -> Result<Value> {
    let Form::JsonV1 = args.format.unwrap_or_default();
    let pack = host.namespace.gc_pack_of(&ids(&args.source_ids)?)?;
    match &host.summarizer {
        None => Ok(json!(pack)),
        Some(summarizer) => Ok(json!(host.namespace.gc_summary_of(summarizer.as_ref(), &pack)?)),
    }
}

arguments! {
    /// The arguments of `memory.compact_commit`.
    CommitArguments {
        summary_json: Value = Shape::Either(vec![Shape::Object, Shape::Text { min: 2, max: None }]).required()
            .about("The summary, in the form that the instructions of memory_summarize tell.");
        source_ids: Vec<String> = sources().required().about("The memories that it stands for, of one group of the plan.");
        plan_id: Option<String> = id().optional().about("The plan; by default the open one that has a group of all the sources.");
        group_id: Option<String> = id().optional().about("The group; by default the one that has all the sources.");
    }
}

/// `memory.compact_commit`.
pub(super) fn compact_commit(host: &Host, args: CommitArguments, _: &dyn Caller) -> Result<Value> {
    let sources = ids(&args.source_ids)?;
    let answer = match args.summary_json {
        Value::String(text) => text,
        summary => summary.to_string(),
    };
    let (plan, group) = group_of(&host.namespace, args.plan_id.as_deref(), args.group_id, &sources)?;
    let done = host.namespace.gc_commit(plan, &group, &answer, Some(&sources)).map_err(within_summary)?;
    Ok(json!(done))
}

/// A refusal, its pointers from the arguments on.
fn within_summary(error: Error) -> Error {
    match error {
        Error::Refused { code, why, pointers } => {
            let pointers = pointers.iter().map(|pointer| format!("/args/summary_json{pointer}")).collect();
            Error::Refused { code, why, pointers }
        }
        other => other,
    }
}

arguments! {
    /// The arguments of `memory.compact_abort`.
    AbortArguments {
        plan_id: String = id().required().about("The plan.");
        reason: String = text(1, 500).required().about("Why, for the report.");
        group_id: Option<String> = id().optional().about("Only this group of the plan.");
    }
}

/// `memory.compact_abort`.
pub(super) fn compact_abort(host: &Host, args: AbortArguments, _: &dyn Caller) -> Result<Value> {
    let plan = run("plan_id", &args.plan_id)?;
    Ok(json!(host.namespace.gc_abort(plan, args.group_id.as_deref(), &args.reason)?))
}

arguments! {
    /// The arguments of `memory.gc_report`.
    ReportArguments {
        since: Option<i64> = at_least(0).optional().about("From when on, in milliseconds since 1970; by default the last hour, or what report.interval of the policy says.");
    }
}

/// `memory.gc_report`: as data, and as a text.
pub(super) fn gc_report(host: &Host, args: ReportArguments, _: &dyn Caller) -> Result<Value> {
    let since = args.since.map(|since| instant("since", since)).transpose()?;
    let report = host.namespace.gc_report(since)?;
    let mut answer = json!(report);
    if let Value::Object(members) = &mut answer {
        members.insert("text".to_owned(), json!(report.to_string()));
    }
    Ok(answer)
}

arguments! {
    /// The arguments of `memory.summarize_and_compact`.
    CombinedArguments {
        plan_id: Option<String> = id().optional().about("The plan; by default the newest open one.");
    }
}

/// `memory.summarize_and_compact`: a summary in the place of each group of a plan that waits for one.
pub(super) fn summarize_and_compact(
    host: &Host,
    args: CombinedArguments,
    caller: &dyn Caller,
) -> Result<Value> {
    let Some(summarizer) = &host.summarizer else {
        return Err(refused("no_summarizer", "nobody was set up to write summaries"));
    };
    let plan = match &args.plan_id {
        Some(plan) => run("plan_id", plan)?,
        None => {
            let plans = host.namespace.gc_plans()?;
            let open = plans.iter().rfind(|plan| plan.state == PlanState::Open);
            open.ok_or_else(|| no_plan("there is no open plan"))?.plan_id
        }
    };
    let mut so_far = GcRunReport::default();
    let done = host.namespace.gc_run_plan(summarizer.as_ref(), plan, |report| {
        so_far.clone_from(report);
        caller.progress(report.groups, None);
    });
    match done {
        Ok(report) => Ok(json!(report)),
        // The groups that were committed stand, so an error alone would not be true.
        Err(why) if so_far.committed > 0 => {
            let ToolError { code, message, .. } = ToolError::of_error(&why);
            let mut answer = json!(so_far);
            if let Value::Object(members) = &mut answer {
                members.insert("stopped".to_owned(), json!({ "code": code, "message": message }));
            }
            Ok(answer)
        }
        Err(why) => Err(why),
    }
}

/// The group that a commit means: the one that is named, or the one whose plan is open and which has all the sources. A group
/// that is committed already is meant where there is no such group, so that a call that is made again gets its first answer.
fn group_of(
    namespace: &Namespace,
    plan: Option<&str>,
    group: Option<String>,
    sources: &[MemoryId],
) -> Result<(RunId, String)> {
    let plan = plan.map(|plan| run("plan_id", plan)).transpose()?;
    if let (Some(plan), Some(group)) = (plan, &group) {
        return Ok((plan, group.clone()));
    }
    let plans = match plan {
        Some(plan) => vec![namespace.gc_show(plan)?],
        None => namespace.gc_plans()?,
    };
    let meant = |found: &GcGroup| group.as_ref().is_none_or(|group| *group == found.group_id);
    let all = || plans.iter().flat_map(|plan| plan.groups.iter().map(move |group| (plan, group)));
    let named: Vec<(&GcPlan, &GcGroup)> = all().filter(|(_, group)| meant(group)).collect();
    let having: Vec<_> = named.iter().filter(|(_, group)| has_all(group, sources)).collect();
    let open = |(plan, group): &&(&GcPlan, &GcGroup)| plan.state == PlanState::Open && waits(group);
    let waiting: Vec<_> = having.iter().copied().filter(|found| open(found)).collect();
    let committed = || having.iter().rfind(|(_, group)| group.state == GroupState::Committed).copied();
    let found = match (waiting.as_slice(), plan, named.as_slice()) {
        ([only], ..) => Some(**only),
        ([], Some(_), [only]) => Some(*only),
        ([], ..) => committed().copied(),
        _ => None,
    };
    let (plan, group) =
        found.ok_or_else(|| no_plan("there is not exactly one open group that has all the sources"))?;
    Ok((plan.plan_id, group.group_id.clone()))
}

fn has_all(group: &GcGroup, sources: &[MemoryId]) -> bool {
    sources.iter().all(|source| group.source_ids.contains(source))
}

fn waits(group: &GcGroup) -> bool {
    matches!(group.state, GroupState::Planned | GroupState::Refused)
}

fn refused(code: &'static str, why: &str) -> Error {
    Error::Refused { code, why: why.to_owned(), pointers: Vec::new() }
}

fn no_plan(why: &str) -> Error {
    refused(Refusal::PlanNotFound.as_str(), why)
}

/// The ids of memories.
fn ids(names: &[String]) -> Result<Vec<MemoryId>> {
    let id = |(at, name): (usize, &String)| {
        name.parse().map_err(|_| {
            Error::invalid(
                format!("source_ids/{at}"),
                "must be the id of a memory: a UUID with hyphens",
                name,
            )
        })
    };
    names.iter().enumerate().map(id).collect()
}

/// The id of a run or of a plan.
pub(super) fn run(field: &str, name: &str) -> Result<RunId> {
    name.parse().map_err(|_| Error::invalid(field, "must be a UUID with hyphens", name))
}

/// Milliseconds since 1970 as an instant.
fn instant(field: &str, millis: i64) -> Result<Time> {
    if millis > TIME_MAX_MS {
        return Err(Error::invalid(field, format!("must be at most {TIME_MAX_MS}"), millis));
    }
    Ok(Time::from_millis(millis))
}

/// Days as a span of time.
fn days(days: f64) -> Result<Span> {
    let most = SPAN_MS_MAX as f64 / DAY_MS;
    if days > most {
        return Err(Error::invalid("age_min_days", format!("must be at most {most}"), days));
    }
    Ok(Span::from_millis((days * DAY_MS) as i64))
}
