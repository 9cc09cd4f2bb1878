//! `runs`: operations of many parts, and what became of them.

use oubliette::maintain::{RunId, RunReport, RunStatus};
use oubliette::{Database, Error, NamespaceName, Result, Time};
use serde_json::{Map, Value, json};

use crate::arguments::RunsOptions;
use crate::output::{Done, Output, plain};
use crate::place::Place;
use crate::story;

/// `runs`. Whoever may write knows that nobody else does, and can tell a run that was cut off from one at work.
pub(crate) fn run(options: &RunsOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    if let Some(run) = &options.run {
        let run = id("run", run, "runs")?;
        let database = place.open_best()?;
        // As `undo` does: where no namespace is named, the run may be of any, and of several.
        let others = if place.typed_namespace()?.is_some() { Vec::new() } else { database.namespaces()? };
        let of_any = others.into_iter().filter(|other| *other != namespace);
        let mut reports = Vec::new();
        for namespace in std::iter::once(namespace.clone()).chain(of_any) {
            reports.extend(database.namespace(&namespace)?.run(run)?.map(|report| (namespace, report)));
        }
        if let Some(whole) = whole_of(&reports) {
            if !output.json {
                return output.text(&story_of(&whole, &reports, &place.present()));
            }
            let mut document = json!(whole);
            if let (Value::Object(members), true) = (&mut document, reports.len() > 1) {
                let each = reports.iter().map(|(namespace, report)| {
                    json!({ "namespace": namespace, "counts": report.counts, "state": report.status,
                            "can_be_undone": report.can_be_undone, "undoable_until": report.undoable_until })
                });
                members.insert("namespaces".to_owned(), each.collect());
            }
            return output.document(&document);
        }
        return Err(Error::NotFound { what: "run", name: run.to_string() }.into());
    }
    let before = options.page.cursor.as_ref().map(|cursor| id("--cursor", cursor, "runs")).transpose()?;
    let database = place.open_best()?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let page = database.namespace(&namespace)?.runs(before, options.page.limit)?;
    if output.json {
        let mut document = Map::new();
        document.insert("items".to_owned(), json!(page.items));
        document.insert("next".to_owned(), json!(page.next));
        if !page.damaged.is_empty() {
            document.insert("damaged".to_owned(), json!(page.damaged));
        }
        return output.document(&Value::Object(document));
    }
    let elsewhere =
        if page.items.is_empty() && before.is_none() { with_runs(&database)? } else { Vec::new() };
    let none = match elsewhere.first() {
        None => "No run; an import or `maintain` makes one".to_owned(),
        Some(first) => {
            let more = if elsewhere.len() > 1 { " and others" } else { "" };
            format!("No run in {namespace}, but in {first}{more} (--namespace {first})")
        }
    };
    let (now, runs) = (place.present(), page.items.iter());
    let (heads, rows): (&[&str], Vec<_>) = match output.verbose {
        true => (
            &["id", "what", "by", "started", "state", "counts", "undo until"],
            runs.map(|run| whole_row(run, &now)).collect(),
        ),
        false => (&["id", "what", "started", "counts"], runs.map(|run| row(run, &now)).collect()),
    };
    output.list(heads, rows, &none)?;
    if !page.damaged.is_empty() {
        output.remark("damaged runs are left out, which check tells");
    }
    page.next.map_or(Ok(()), |next| output.line(&format!("more: --cursor {next}")))
}

/// The namespaces that have runs.
fn with_runs(database: &Database) -> Result<Vec<NamespaceName>> {
    let mut all = Vec::new();
    for namespace in database.namespaces()? {
        if !database.namespace(&namespace)?.runs(None, 1)?.items.is_empty() {
            all.push(namespace);
        }
    }
    Ok(all)
}

/// A run of several namespaces as one, which `undo` takes back in all of them. Its counts are those of the first: a namespace that
/// was split has left a copy in each part.
fn whole_of(reports: &[(NamespaceName, RunReport)]) -> Option<RunReport> {
    let (_, mut whole) = reports.first()?.clone();
    let all = || reports.iter().map(|(_, report)| report);
    let undoable = || all().filter(|report| report.can_be_undone);
    whole.status = all().map(|report| report.status).min().unwrap_or(whole.status);
    whole.started_at = all().map(|report| report.started_at).min().unwrap_or(whole.started_at);
    whole.latest_at = all().map(|report| report.latest_at).max().unwrap_or(whole.latest_at);
    whole.can_be_undone = undoable().next().is_some();
    let ends: Option<Vec<Time>> = undoable().map(|report| report.undoable_until).collect();
    whole.undoable_until = ends.and_then(|ends| ends.into_iter().max());
    Some(whole)
}

/// What a run was, in each of its namespaces, and whether it can be taken back.
fn story_of(whole: &RunReport, reports: &[(NamespaceName, RunReport)], now: &story::Present) -> Vec<String> {
    let RunReport { id, sort, status, by, started_at, latest_at, .. } = whole;
    let counts = |run: &RunReport| match plain(&json!(run.counts)) {
        counts if counts.is_empty() => "nothing is counted".to_owned(),
        counts => counts,
    };
    let back = match (whole.can_be_undone, whole.undoable_until) {
        (false, _) if whole.counts.contains_key("put_back") => {
            "It can't be taken back: its memories came with their ids, as an export writes them.".to_owned()
        }
        (false, _) => "It can't be taken back.".to_owned(),
        (true, None) => format!("`undo {id}` takes it back."),
        (true, Some(until)) => format!("`undo {id}` takes it back until {}.", story::when(until, now)),
    };
    let mut told = vec![
        format!("Run {id}: {sort} by {by}, {status}."),
        format!(
            "It began {}; its last step was {}.",
            story::when(*started_at, now),
            story::when(*latest_at, now)
        ),
    ];
    match reports {
        [_] => told.push(format!("What it did: {}.", counts(whole))),
        all => told.extend(all.iter().map(|(namespace, run)| {
            let left =
                if run.can_be_undone || !whole.can_be_undone { "" } else { "; nothing is left to take back" };
            format!("What it did in {namespace}: {}{left}.", counts(run))
        })),
    }
    told.push(back);
    told
}

/// A run in a list; of one that is not done, its state.
fn row(run: &RunReport, now: &story::Present) -> Vec<String> {
    let counts = plain(&json!(run.counts));
    let is_done = run.status == RunStatus::Done;
    let mut told = if is_done { counts } else { format!("{}; {counts}", run.status) };
    match (run.can_be_undone, run.undoable_until) {
        (false, _) => {}
        (true, None) => told.push_str("; can be undone"),
        (true, Some(until)) => told.push_str(&format!("; can be undone until {}", story::local(until, now))),
    }
    vec![run.id.to_string(), run.sort.to_string(), story::local(run.started_at, now), told]
}

/// The same with who made it, and how long it can be taken back.
fn whole_row(run: &RunReport, now: &story::Present) -> Vec<String> {
    let until = match (run.can_be_undone, run.undoable_until) {
        (false, _) => String::new(),
        (true, None) => "any time".to_owned(),
        (true, Some(until)) => story::when(until, now),
    };
    vec![
        run.id.to_string(),
        run.sort.to_string(),
        run.by.to_string(),
        story::when(run.started_at, now),
        run.status.to_string(),
        plain(&json!(run.counts)),
        until,
    ]
}

/// The id of a run that was typed; `list` is the command that lists such ids.
pub(crate) fn id(name: &str, text: &str, list: &str) -> Result<RunId> {
    text.parse()
        .map_err(|_| Error::invalid(name, format!("must be an id, such as those that `{list}` lists"), text))
}
