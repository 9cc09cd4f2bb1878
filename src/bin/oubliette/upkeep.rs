//! `maintain` and `reindex`: the indexes, kept up and built anew.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use oubliette::exchange::Target;
use oubliette::limits::{LISTING_ROWS_MAX, SAMPLES_MAX, THREADS_MAX};
use oubliette::maintain::{
    CapReport, ConsolidateReport, DedupReport, ExpireReport, FailedPass, IndexReport, NearDuplicateReport,
    Pass, PassReport, ProfileCollapseGroupSample, ProfileCollapseReport, RetentionReport, RunId, SweepReport,
    SweeperConfig,
};
use oubliette::policy::{Policy, Preset};
use oubliette::report::Stats;
use oubliette::{Database, Error, Namespace, Result, Span, State};
use serde_json::{Value, json};

use crate::arguments::{IndexCommand, MaintainOptions};
use crate::caller::Caller;
use crate::embedder;
use crate::output::{Done, Failure, Output, failure_of_pass, unwritable};
use crate::place::{Access, Place, metadata_key, named};
use crate::progress::Progress;
use crate::{gc, prune, read, story, told};

/// How often a sweeper that has nothing to do looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);
/// Duplicates of a group that the table shows.
const SHOWN_DUPLICATES: usize = 3;
/// Groups of near vectors that a table shows.
const SHOWN_GROUPS: usize = 20;

/// `maintain`: of the namespace that was typed, or of the whole file.
pub(crate) fn maintain(options: &MaintainOptions, place: &Place, output: Output<'_>) -> Done {
    let (asked, namespace) = (library_options(options)?, place.typed_namespace()?);
    if !options.prune.compare.is_empty() {
        return prune::compare(options, place, output);
    }
    if let Some(every) = &options.every {
        return sweep(named("--every", every.parse())?, asked, options, place, output);
    }
    if options.summarizer.is_some() && !asked.passes.contains(&Pass::Cluster) {
        let why = "must stand beside --every or the pass cluster";
        return Err(Error::invalid("--summarizer", why, listed(&asked.passes, " ")).into());
    }
    if options.summarizer.as_deref() == Some("builtin") {
        let why = "must be a command or openai:MODEL beside the pass cluster: builtin only summarizes, and unites nothing";
        return Err(Error::invalid("--summarizer", why, "builtin").into());
    }
    let file = options.report.as_deref().map(Target::create).transpose()?;
    // What only looks changes nothing, not even the time of the file.
    let database = place.open(if options.dry_run { Access::Read } else { Access::Write })?;
    if namespace.is_some() {
        place.check_namespace(&database.namespaces()?)?;
    }
    let progress = Progress::new(output, None);
    let named = namespace.map(|name| database.namespace(name)).transpose()?;
    if options.passes.is_empty() {
        let due = named.as_ref().map_or_else(|| database.due_passes(), Namespace::due_passes)?;
        of_their_passes(options, &due)?;
    }
    let moved = || Some(moved(&stats(&database, named.as_ref()).ok()?));
    let before = moved().unwrap_or_default();
    let look = || Some(moved()?.saturating_sub(before));
    let maintain = || match &named {
        Some(namespace) => namespace.maintain_with(&asked),
        None => database.maintain_with(&asked),
    };
    let report = progress.during(look, maintain)?;
    let united = consolidate_clusters(options, &database, named.as_ref(), place.caller())?;
    drop(progress);
    let (policy, _) = database.policy();
    let run = undoable(&database, named.as_ref(), report.run)?;
    let near = near(&report.passes, &database, output)?;
    place.close(database)?;
    let mut document = place.dated(json!(report));
    if let (Value::Object(members), Some(united)) = (&mut document, &united) {
        members.insert("united".to_owned(), json!(united));
    }
    if let Some(file) = file {
        write(file, options.report.as_deref(), &document)?;
    }
    if output.json {
        output.document(&document)?;
    } else {
        tell(&all_done(report.passes, &report.failed), &options.passes, (&near, run), output)?;
        tell_off(options, &policy, output);
        let can_undo = policy.undo.horizon > Span::ZERO;
        united
            .iter()
            .flatten()
            .try_for_each(|(namespace, united)| tell_united(namespace, united, can_undo, output))?;
    }
    came_to_nothing(united.unwrap_or_default().values())?;
    without_failure(report.failed)
}

/// Whoever runs maintenance by a clock must hear that a pass failed, though the others are done and told.
fn without_failure(failed: Vec<FailedPass>) -> Done {
    if failed.is_empty() { Ok(()) } else { Err(Failure::Passes(failed)) }
}

/// Whoever runs a summarizer by a clock must hear that it united no cluster because it failed.
fn came_to_nothing<'u>(united: impl Iterator<Item = &'u ConsolidateReport> + Clone) -> Done {
    let first = united.clone().flat_map(|united| &united.failures).next();
    match first.filter(|_| united.map(|united| united.created.len()).sum::<usize>() == 0) {
        Some(first) => {
            Err(Error::Conflict { what: "maintain cluster".to_owned(), why: first.clone() }.into())
        }
        None => Ok(()),
    }
}

/// Passes that were named but that the policy switches off.
fn tell_off(options: &MaintainOptions, policy: &Policy, output: Output<'_>) {
    for pass in &options.passes {
        let switch = match pass {
            Pass::Prune if options.prune.kind.is_some() || options.prune.preset.is_some() => continue,
            Pass::Prune if !policy.prune.enabled => "prune.enabled is false",
            Pass::Cap if policy.sweeper.short_term_cap < 0 => "sweeper.short_term_cap is below 0",
            Pass::Cap if policy.sweeper.short_term_cap == 0 => "sweeper.short_term_cap is 0",
            Pass::Superseded if policy.sweeper.tombstone_ttl <= Span::ZERO => "sweeper.tombstone_ttl is 0",
            Pass::Demote if policy.sweeper.demote_after <= Span::ZERO => "sweeper.demote_after is 0",
            _ => continue,
        };
        output.remark(&format!("{pass} is off: {switch} in the policy"));
    }
}

/// What a summarizer made of the clusters of each namespace, if one was asked for.
fn consolidate_clusters(
    options: &MaintainOptions,
    database: &Database,
    named: Option<&Namespace>,
    caller: &Caller,
) -> Result<Option<BTreeMap<String, ConsolidateReport>>> {
    let Some(summarizer) = &options.summarizer else { return Ok(None) };
    let all = match named {
        Some(namespace) => vec![namespace.clone()],
        None => {
            let names = database.namespaces()?.into_iter();
            names.map(|name| database.namespace(name)).collect::<Result<_>>()?
        }
    };
    let mut united = BTreeMap::new();
    for namespace in all {
        let summarizer = gc::summarizer(&namespace, summarizer, &options.timeout, caller)?;
        united.insert(namespace.name().to_string(), namespace.consolidate_clusters(&summarizer)?);
    }
    Ok(Some(united))
}

fn tell_united(namespace: &str, united: &ConsolidateReport, can_undo: bool, output: Output<'_>) -> Done {
    let (of, made) = (told::of(united.shown - united.left, "memory", "memories"), united.created.len());
    output.line(&format!(
        "{}: {} in the place of {of}",
        namespace,
        told::of(made as u64, "memory", "memories")
    ))?;
    for why in &united.failures {
        output.remark(&format!("a cluster was left: {why}"));
    }
    if let Some(run) = united.run.filter(|_| can_undo) {
        output.remark(&format!("undo {run} takes this back"));
    }
    Ok(())
}

/// `maintain --every`: sweeps until the program is ended.
fn sweep(
    every: Span,
    asked: oubliette::maintain::MaintainOptions,
    options: &MaintainOptions,
    place: &Place,
    output: Output<'_>,
) -> Done {
    if every <= Span::ZERO {
        return Err(Error::invalid("--every", "must be longer than 0", every).into());
    }
    if let Some(namespace) = place.typed_namespace()? {
        return Err(Error::invalid("--namespace", "must not stand beside --every", namespace).into());
    }
    // A file that can't be written to is refused before the first sweep.
    options.report.as_deref().map(Target::create).transpose()?;
    let database = place.open(Access::Write)?;
    if options.passes.is_empty() {
        // What is not due yet may be in a later sweep.
        let later = [Pass::Collapse, Pass::Snapshots];
        of_their_passes(options, &database.due_passes()?.into_iter().chain(later).collect::<Vec<_>>())?;
    }
    let namespace = database.namespace(place.namespace()?)?;
    let summarizer = options.summarizer.as_ref();
    let summarizer = summarizer
        .map(|name| gc::summarizer(&namespace, name, &options.timeout, place.caller()))
        .transpose()?;
    let (reports, coming) = std::sync::mpsc::channel::<SweepReport>();
    let on_sweep = Box::new(move |report: &SweepReport| drop(reports.send(report.clone())));
    let config =
        SweeperConfig { interval: Some(every), options: asked, summarizer, on_sweep: Some(on_sweep) };
    let sweeper = database.sweeper(config)?;
    // Until somebody ends the program. What a sweep has begun, the next one goes on with.
    loop {
        refuse_replaced(&database)?;
        let report = match coming.recv_timeout(LOOK) {
            Ok(report) => report,
            Err(RecvTimeoutError::Timeout) => {
                place.caller().check().map_err(unwritable)?;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Some(path) = &options.report {
            write(Target::create(path)?, Some(path), &json!(report))?;
        }
        if output.json {
            output.document(&json!(report))?;
            continue;
        }
        let at = story::local(report.at, &place.present());
        output.line(&format!("Swept at {at} in {} ms", report.ms))?;
        let (near, run) = (near(&report.passes, &database, output)?, undoable(&database, None, report.run)?);
        tell(&all_done(report.passes, &report.failed), &options.passes, (&near, run), output)?;
        for swept in &report.summaries {
            let namespace = database.namespace(swept.namespace.clone())?;
            let done = swept.report.as_ref().map(|report| {
                gc::run_told(report, &gc::undoable(&namespace, report.runs.iter().copied()), false)
            });
            let told = done.or_else(|| swept.why.clone()).unwrap_or_default();
            output.line(&format!("{}: {told}", swept.namespace))?;
        }
        for failed in &report.failed {
            output.remark(&failure_of_pass(failed));
        }
    }
    sweeper.stop();
    Ok(())
}

/// A file that nobody finds by its name is not swept on: the file that has the name would go without.
fn refuse_replaced(database: &Database) -> Result<()> {
    if !database.is_replaced()? {
        return Ok(());
    }
    let path = database.path().display();
    let why =
        format!("{path} was replaced or deleted since it was opened; begin again with the file of that name");
    Err(Error::Unavailable { why })
}

/// What the passes did, also those that failed: it stands.
fn all_done(mut passes: Vec<PassReport>, failed: &[FailedPass]) -> Vec<PassReport> {
    passes.extend(failed.iter().filter_map(|failed| failed.done.clone()));
    passes
}

/// What a run came to, for a person; the run, if it can be taken back.
fn tell(
    passes: &[PassReport],
    asked: &[Pass],
    (near, run): (&Near, Option<RunId>),
    output: Output<'_>,
) -> Done {
    show(passes, asked, output)?;
    near.show(output)?;
    for pass in passes {
        show_samples(pass, output)?;
        tell_left(pass, output);
    }
    if let Some(run) = run {
        output.remark(&format!("undo {run} takes this run back"));
    }
    Ok(())
}

/// The run, if `undo` brings back something of what it did, in the namespace that was named or in any.
pub(crate) fn undoable(
    database: &Database,
    named: Option<&Namespace>,
    run: Option<RunId>,
) -> Result<Option<RunId>> {
    let Some(run) = run else { return Ok(None) };
    let left = |team: &Namespace| -> Result<bool> { Ok(team.run(run)?.is_some_and(|run| run.can_be_undone)) };
    if let Some(team) = named {
        return Ok(left(team)?.then_some(run));
    }
    for name in database.namespaces()? {
        if left(&database.namespace(name)?)? {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// What a pass left alone, and why.
fn tell_left(pass: &PassReport, output: Output<'_>) {
    let went = match pass.pass {
        Pass::NearDuplicates => Some(("in limbo: another says the same", State::Limbo)),
        Pass::VectorDuplicates => Some(("superseded by what says the same", State::Superseded)),
        _ => None,
    };
    if let Some((what, state)) = went.filter(|_| pass.changed > 0) {
        let united = told::of(pass.changed, "memory is", "memories are");
        output.remark(&format!("{united} {what}; `list --state {state}` shows them"));
    }
    if matches!(pass.pass, Pass::Index | Pass::Repair) && pass.skipped > 0 {
        output.remark(
            "partitions were left out: they are damaged, which check tells, or larger than the memory budget",
        );
    }
    if pass.resumed {
        let whole = "its numbers are those of the whole run";
        output.remark(&format!("{} went on with a run that had been cut off; {whole}", pass.pass));
    }
    if pass.budget_exhausted {
        output.remark(&format!(
            "{} is cut by the destruction budget, which leaves {} to the next run; run it again, or allow more with --destroy-max",
            pass.pass,
            told::of(pass.cut, "row", "rows")
        ));
    }
    let held = pass.report.get().map_or(0, |report: &CapReport| report.cap_held_by_pins);
    if held > 0 {
        let stay = told::of(held, "memory above the cap stays", "memories above the cap stay");
        output.remark(&format!("{stay} (cap_held_by_pins): more are pinned or locked than the cap allows"));
    }
    let protected = pass.report.get().map_or(0, |report: &ExpireReport| report.protected);
    if protected > 0 {
        let stay = told::of(protected, "expired memory stays", "expired memories stay");
        output.remark(&format!("{stay}: pinned or locked; unpin them, or forget them"));
    }
    if let Some(went) = pass.report.get() {
        tell_too_old(went, output);
    }
    if pass.damaged > 0 && pass.pass == Pass::Fold {
        let stay = told::of(pass.damaged, "damaged memory was", "damaged memories were");
        output.remark(&format!("the uses of {stay} not counted; `check` tells more"));
    }
    if pass.damaged > 0 && pass.pass == Pass::Retention {
        let stay = told::of(pass.damaged, "damaged event stays", "damaged events stay");
        output.remark(&format!("{stay}, with what it says; `check` tells more, and `compact` takes it away"));
    }
}

/// What was too old, by its sort.
pub(crate) fn tell_too_old(went: &RetentionReport, output: Output<'_>) {
    let sorts = [
        (went.journal, "row of the journal", "rows of the journal"),
        (went.plans, "plan of summaries", "plans of summaries"),
        (went.payloads, "text of a message", "texts of messages"),
        (went.events, "event", "events"),
        (went.tombstones, "tombstone", "tombstones"),
    ];
    let all: Vec<String> = sorts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| told::of(count, one, many))
        .collect();
    if !all.is_empty() {
        output.remark(&format!("retention took what was too old: {}", all.join(", ")));
    }
}

/// An option of some passes must not stand beside others alone: it would look like a bound, and be none. `passes` are those that
/// run.
fn of_their_passes(options: &MaintainOptions, passes: &[Pass]) -> Result<()> {
    const GROUPS: &[Pass] = &[Pass::Collapse, Pass::NearDuplicates, Pass::VectorDuplicates, Pass::Cluster];
    let MaintainOptions { fuzzy, batch_size, series, samples, prune, .. } = options;
    // This variant is one of clusters.
    let of_preset: &[Pass] = match prune.preset {
        Some(Preset::Redundancy) => &[Pass::Cluster],
        _ => &[Pass::Prune],
    };
    let all: [(&str, bool, &[Pass]); 7] = [
        ("--fuzzy", *fuzzy, &[Pass::Collapse]),
        ("--batch-size", batch_size.is_some(), &[Pass::Collapse]),
        ("--series", series.is_some(), &[Pass::Snapshots]),
        ("--samples", samples.is_some(), GROUPS),
        ("--step", prune.step.is_some(), &[Pass::Prune, Pass::Cluster]),
        ("--kind", prune.kind.is_some(), &[Pass::Prune]),
        ("--preset", prune.preset.is_some(), of_preset),
    ];
    let strange =
        |(_, given, of): &(_, bool, &[Pass])| *given && !passes.iter().any(|pass| of.contains(pass));
    match all.into_iter().find(strange) {
        Some((option, _, of)) => {
            let why = format!("must stand beside a pass that it is for: {}", listed(of, ", "));
            Err(Error::invalid(option, why, listed(&options.passes, " ")))
        }
        None => Ok(()),
    }
}

/// The names of passes.
fn listed(passes: &[Pass], between: &str) -> String {
    match passes {
        [] => "no pass by name".to_owned(),
        passes => passes.iter().map(|pass| pass.as_str()).collect::<Vec<_>>().join(between),
    }
}

fn library_options(options: &MaintainOptions) -> Result<oubliette::maintain::MaintainOptions> {
    if let Some(threads) = options.threads.filter(|threads| !(1..=THREADS_MAX).contains(threads)) {
        return Err(Error::invalid("--threads", format!("must be 1 to {THREADS_MAX}"), threads));
    }
    if let Some(rows) = options.batch_size.filter(|rows| !(1..=LISTING_ROWS_MAX).contains(rows)) {
        return Err(Error::invalid("--batch-size", format!("must be 1 to {LISTING_ROWS_MAX}"), rows));
    }
    if let Some(samples) = options.samples.filter(|samples| *samples > SAMPLES_MAX) {
        return Err(Error::invalid("--samples", format!("must be 0 to {SAMPLES_MAX}"), samples));
    }
    if !options.passes.is_empty() {
        of_their_passes(options, &options.passes)?;
    }
    let span = |text: &String| -> Result<Span> { named("--budget", text.parse()) };
    let mut passes: Vec<Pass> = Vec::new();
    for pass in &options.passes {
        if !passes.contains(pass) {
            passes.push(*pass);
        }
    }
    Ok(oubliette::maintain::MaintainOptions {
        passes,
        dry_run: options.dry_run,
        budget: options.budget.as_ref().map(span).transpose()?,
        max_rows: options.max_rows,
        threads: options.threads,
        destroy_max: options.destroy_max,
        fuzzy: options.fuzzy.then_some(true),
        max_samples: options.samples,
        batch_size: options.batch_size,
        series: options.series.clone(),
        step: options.prune.step,
        prune: prune::target(&options.prune)?,
        preset: options.prune.preset,
        dedup: None,
    })
}

/// A number that grows by one with most of the rows that a pass changes: nodes that were linked, and rows that are no
/// longer live.
fn moved(stats: &Stats) -> u64 {
    stats.vectors.in_graph + stats.memories.limbo + stats.memories.superseded
}

/// The statistics of the namespace that was named, or of the whole file.
fn stats(database: &Database, named: Option<&Namespace>) -> Result<Stats> {
    named.map_or_else(|| database.stats(), Namespace::stats)
}

fn write(mut file: Target, path: Option<&Path>, document: &Value) -> Result<()> {
    writeln!(file, "{document}").map_err(|source| Error::Io {
        action: "write",
        path: path.unwrap_or(Path::new("")).to_owned(),
        source,
    })?;
    file.finish()
}

/// Passes that had something to do as a table, and the others in a sentence.
fn show(passes: &[PassReport], asked: &[Pass], output: Output<'_>) -> Done {
    if output.verbose {
        return show_all(passes, output);
    }
    let counts = |pass: &PassReport| [pass.planned, pass.changed, pass.tombstoned, pass.skipped, pass.left];
    let (busy, mut idle): (Vec<&PassReport>, Vec<&PassReport>) =
        passes.iter().partition(|pass| counts(pass).iter().any(|count| *count > 0));
    let of_texts = passes.iter().find_map(|pass| pass.report.get::<IndexReport>()).map(texts_told);
    let of_texts = of_texts.unwrap_or_default();
    // A pass that only follows another one was not asked for.
    idle.retain(|pass| asked.is_empty() || asked.contains(&pass.pass));
    idle.retain(|pass| pass.pass != Pass::Index || of_texts.is_empty());
    if !busy.is_empty() {
        let row = |pass: &&PassReport| {
            let counts = counts(pass);
            std::iter::once(pass.pass.to_string()).chain(counts.iter().map(ToString::to_string)).collect()
        };
        output.table(
            &["pass", "to do", "changed", "removed", "skipped", "still to do"],
            busy.iter().map(row),
        )?;
    }
    if !of_texts.is_empty() {
        output.text(&of_texts)?;
    }
    let names = |passes: Vec<&PassReport>| {
        passes.iter().map(|pass| pass.pass.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (unknown, idle): (Vec<&PassReport>, Vec<&PassReport>) =
        idle.into_iter().partition(|pass| pass.cut_short);
    if !idle.is_empty() {
        output.text(&[format!("Nothing to do for {}.", names(idle))])?;
    }
    if !unknown.is_empty() {
        let told = "The call ended before it could tell what there is to do for";
        output.text(&[format!("{told} {}; allow more with --budget or --max-rows.", names(unknown))])?;
    }
    Ok(())
}

/// What the pass `index` did for the search by words: its counts are those of vectors.
fn texts_told(index: &IndexReport) -> Vec<String> {
    let texts = |count| told::of(count, "text", "texts");
    let written = (index.posted > 0).then(|| format!("index: wrote the words of {}.", texts(index.posted)));
    let waiting = || format!("index: the words of {} are still to be written.", texts(index.unposted));
    written.into_iter().chain((index.unposted > 0).then(waiting)).collect()
}

/// Passes as a table, with everything that they counted.
fn show_all(passes: &[PassReport], output: Output<'_>) -> Done {
    let names =
        ["pass", "planned", "scanned", "changed", "removed", "skipped", "still to do", "ms", "report"];
    let row = |pass: &PassReport| {
        let counts =
            [pass.planned, pass.scanned, pass.changed, pass.tombstoned, pass.skipped, pass.left, pass.ms];
        let details = json!(pass.report);
        let details = details.as_object().into_iter().flatten().filter(|(_, value)| value.is_number());
        let details = details.map(|(name, count)| format!("{name} {count}"));
        let mut cells = vec![pass.pass.as_str().to_owned()];
        cells.extend(counts.iter().map(ToString::to_string));
        cells.push(details.collect::<Vec<_>>().join(", "));
        cells
    };
    output.table(&names, passes.iter().map(row))
}

/// The groups that a pass merges, or would: what stays, what goes into it, by what they are the same.
fn show_samples(pass: &PassReport, output: Output<'_>) -> Done {
    let collapsed = pass.report.get().map(|report: &ProfileCollapseReport| &report.samples);
    let merged = || pass.report.get().map(|report: &NearDuplicateReport| &report.samples);
    let Some(samples) = collapsed.or_else(merged) else { return Ok(()) };
    if samples.is_empty() {
        return Ok(());
    }
    let row = |sample: &ProfileCollapseGroupSample| {
        let others = sample.duplicate_summaries.iter().filter(|text| **text != sample.canonical_summary);
        let mut gone: Vec<&str> = others.take(SHOWN_DUPLICATES).map(String::as_str).collect();
        if gone.is_empty() {
            gone.push("the same text");
        }
        let mut row = vec![sample.group_size.to_string(), sample.canonical_summary.clone(), gone.join("\n")];
        row.extend(output.verbose.then(|| sample.signature.clone()));
        row
    };
    let heads = ["memories", "stays", "goes into it", "the same by"];
    output.table(if output.verbose { &heads } else { &heads[..3] }, samples.iter().map(row))
}

/// The groups of near vectors of which one memory stands for the others, or would.
#[derive(Default)]
struct Near {
    /// The first of them: how many memories, what stays, and what it stands for.
    rows: Vec<Vec<String>>,
    more: u64,
}

/// What the pass `vector-duplicates` united, for a person, who can't tell by ids whether the texts say the same.
fn near(passes: &[PassReport], database: &Database, output: Output<'_>) -> Result<Near> {
    let report = passes.iter().find_map(|pass| pass.report.get::<DedupReport>());
    let Some(report) = report.filter(|_| !output.json) else { return Ok(Near::default()) };
    let mut near = Near { more: report.actions.len() as u64, ..Near::default() };
    for action in report.actions.iter().take(SHOWN_GROUPS) {
        let others = action.tombstoned_ids.iter().take(SHOWN_DUPLICATES);
        let ids: Vec<_> = std::iter::once(&action.representative_id).chain(others).copied().collect();
        let mut texts = read::called_in_any(database, &ids)?.into_iter();
        let stays = texts.next().unwrap_or_default();
        let left = action.tombstoned_ids.len().saturating_sub(SHOWN_DUPLICATES);
        let left = (left > 0).then(|| format!("and {left} more"));
        let others = texts.chain(left).collect::<Vec<_>>().join("\n");
        near.rows.push(vec![(1 + action.tombstoned_ids.len()).to_string(), stays, others]);
        near.more -= 1;
    }
    Ok(near)
}

impl Near {
    fn show(&self, output: Output<'_>) -> Done {
        if self.rows.is_empty() {
            return Ok(());
        }
        output.table(&["memories", "stays", "goes into it"], self.rows.iter().cloned())?;
        match self.more {
            0 => Ok(()),
            more => output.line(&format!("and {}", told::of(more, "more group", "more groups"))),
        }
    }
}

/// `reindex`: of the namespace that was typed, or of the whole file.
pub(crate) fn reindex(place: &Place, output: Output<'_>) -> Done {
    let namespace = place.typed_namespace()?;
    let database = place.open(Access::Write)?;
    if namespace.is_some() {
        place.check_namespace(&database.namespaces()?)?;
    }
    let bytes_before = database.stats()?.bytes.file;
    let progress = Progress::new(output, None);
    let named = namespace.map(|name| database.namespace(name)).transpose()?;
    let look = || Some(stats(&database, named.as_ref()).ok()?.vectors.in_graph);
    let reindex = || named.as_ref().map_or_else(|| database.reindex(), Namespace::reindex);
    let vectors = progress.during(look, reindex)?;
    drop(progress);
    let bytes_after = database.stats()?.bytes.file;
    place.close(database)?;
    let document = json!({ "vectors": vectors, "bytes_before": bytes_before, "bytes_after": bytes_after });
    place.done(output, document, |document| told::bytes("Built the indexes anew", document))
}

/// `index`: declared indexes of metadata.
pub(crate) fn index(command: &IndexCommand, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    match command {
        IndexCommand::Add { key } => {
            let key = metadata_key(key)?;
            let database = place.open(Access::Write)?;
            let rows = database.namespace(&namespace)?.declare_index(key)?;
            place.close(database)?;
            let document = json!({ "namespace": namespace, "key": key, "rows": rows });
            place.done(output, document, |_| {
                format!("Indexed metadata.{key} of {} in {namespace}", told::of(rows, "memory", "memories"))
            })
        }
        IndexCommand::Drop { key } => {
            let key = metadata_key(key)?;
            let database = place.open(Access::Write)?;
            let dropped = database.namespace(&namespace)?.drop_index(key)?;
            place.close(database)?;
            place.done(output, json!({ "namespace": namespace, "key": key, "dropped": dropped }), |_| {
                match dropped {
                    true => format!("Ended the index of metadata.{key} in {namespace}"),
                    false => format!("There is no index of metadata.{key} in {namespace}"),
                }
            })
        }
        IndexCommand::List => {
            let database = place.open_best()?;
            place.unknown_namespace(&database.namespaces()?, output)?;
            let keys = database.namespace(&namespace)?.indexes()?;
            if output.json {
                return output.document(&json!({ "namespace": namespace, "keys": keys }));
            }
            let rows = keys.into_iter().map(|key| vec![key]).collect();
            output.list(&["key"], rows, "No key of the metadata has an index; `index add KEY` makes one")
        }
    }
}

/// `reembed`.
pub(crate) fn reembed(name: &str, place: &Place, output: Output<'_>) -> Done {
    let model = embedder::named(name, place.caller())?
        .ok_or_else(|| Error::invalid("embedder", "must name a model, such as static-mini or hash", name))?;
    let database = place.open(Access::Rebuild)?;
    let progress = Progress::new(output, None);
    let done = progress.during(|| None, || database.reembed(model))?;
    drop(progress);
    let space = database.embedding_space()?;
    place.close(database)?;
    let document = json!({
        "embedder": space.as_ref().map(|space| &space.name),
        "dim": space.as_ref().map(|space| space.dimensions),
        "changed": done.changed, "filled": done.filled, "skipped": done.skipped,
    });
    place.done(output, document, |_| {
        let embedded = told::of(done.changed + done.filled, "memory has", "memories have");
        let skipped = match done.skipped {
            0 => String::new(),
            skipped => format!("; {} could not be embedded", told::of(skipped, "memory", "memories")),
        };
        format!("{embedded} a new vector of {name}{skipped}")
    })
}
