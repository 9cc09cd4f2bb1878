//! Commands that forget.

use std::io::Write;
use std::path::Path;

use oubliette::exchange::LineReader;
use oubliette::maintain::{RunId, Undone};
use oubliette::memory::Got;
use oubliette::report::{Doomed, ForgetPlan, Forgotten};
use oubliette::{Database, Error, Filter, Forget, MemoryId, Namespace, NamespaceName, Result, Scope};
use serde_json::{Value, json};

use crate::answers;
use crate::arguments::ForgetOptions;
use crate::caller::Caller;
use crate::output::{Done, Failure, Output};
use crate::place::{Access, Place};
use crate::told::Kept;
use crate::{maintain, runs, told, write};

/// Versions that stay of which an answer tells the text.
const STAYING_MAX: usize = 10;

/// `forget`.
pub(crate) fn run(options: &ForgetOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let scope = match &options.agent {
        Some(agent) => Scope::agent(agent)?,
        None if options.any_agent || options.filter.is_none() => Scope::Any,
        None => Scope::Shared,
    };
    let kept = match (&options.tag, &options.filter) {
        (Some(_), _) => Kept::Tag,
        (None, Some(_)) => Kept::Filter,
        (None, None) => Kept::Name,
    };
    let database = if options.dry_run { place.open_to_rehearse() } else { place.open(Access::Write) }?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let what = match (&options.tag, &options.filter) {
        (Some(tag), _) => Forget::Tag { tag: tag.clone(), scope, keep_pinned: options.keep_pinned },
        (None, Some(filter)) => {
            let (visible_only, all) = (options.visible_only, options.all);
            Forget::Filter { filter: Filter::parse(filter)?, scope, visible_only, all }
        }
        (None, None) => {
            let names = match &options.keys {
                Some(file) => names_of(file, place.caller())?,
                None => options.names.clone(),
            };
            let (keep_history, with_history) = (options.keep_history, options.with_history);
            Forget::Names { names, scope, keep_history, also_merged: true, with_history }
        }
    };
    if options.dry_run {
        return rehearse(what, kept, database, place, output);
    }
    let team = database.namespace(&namespace)?;
    let done = team.forget(what).map_err(with_all)?;
    let mut document = with_staying(&team, answers::forgotten(&done), &done);
    let mut copied = None;
    if options.erase {
        // The memories are forgotten whether or not their bytes can be erased now, and the answer says so.
        let partly =
            |error| Failure::Partly(error, Box::new(document.as_object().cloned().unwrap_or_default()));
        let report = maintain::compacted(&database).map_err(partly)?;
        if let (Value::Object(members), Value::Object(more)) = (&mut document, json!(report)) {
            members.extend(more);
        }
        copied = Some(report);
    }
    place.close(database)?;
    if let (Value::Object(members), Some(bytes), true) =
        (&mut document, maintain::bytes_of(place), copied.is_some())
    {
        members.insert("bytes_after".to_owned(), json!(bytes));
    }
    place.done(output, document, |answer| told::forgotten(answer, kept))?;
    let Some(report) = copied else { return Ok(()) };
    maintain::tell_ended(&report, output);
    maintain::tell_lost(&report, output)
}

/// What a forget would take and leave.
fn rehearse(what: Forget, kept: Kept, database: Database, place: &Place, output: Output<'_>) -> Done {
    let team = database.namespace(place.namespace()?)?;
    let plan = team.forget_plan(what).map_err(with_all)?;
    let sample: Vec<Vec<String>> = plan.sample.iter().map(|doomed| row(&team, doomed)).collect();
    let answer = with_staying(&team, answers::forgotten(&plan.answer), &plan.answer);
    place.close(database)?;
    let told = format!("{}; nothing is forgotten yet", told(&plan, &answer, kept));
    if output.json || output.verbose {
        output.remark(&told);
        return output.document(&answers::forget_plan(&plan, answer));
    }
    output.line(&told)?;
    if sample.is_empty() {
        return Ok(());
    }
    let more = plan.memories().saturating_sub(sample.len() as u64);
    output.list(&["memory", "state", "text"], sample, "")?;
    if more > 0 { output.line(&format!("and {more} more")) } else { Ok(()) }
}

/// The error of a filter that matches everything, with the option that allows it.
fn with_all(error: Error) -> Error {
    match error {
        Error::Invalid { field, why, value } if field == "filter" && why.contains("matches everything") => {
            Error::Invalid { field, why: format!("{why}, which --all allows"), value }
        }
        error => error,
    }
}

/// A memory that would go, with what it says; what is in limbo or damaged has nothing to show.
fn row(team: &Namespace, doomed: &Doomed) -> Vec<String> {
    let (name, text) = match team.look_up(doomed.id, false) {
        Ok(Got::Memory(memory)) => (told::memory(&memory), memory.text),
        Ok(Got::Tombstone(_)) | Err(_) => {
            (doomed.keys.first().map_or_else(|| doomed.id.to_string(), String::clone), String::new())
        }
    };
    vec![name, doomed.state.to_string(), text]
}

/// Adds the first versions that stay, each with what it says; what is damaged has nothing to show.
fn with_staying(team: &Namespace, mut answer: Value, done: &Forgotten) -> Value {
    let ids = [&done.later, &done.to_come, &done.earlier].into_iter().flatten().take(STAYING_MAX);
    let told = ids.filter_map(|id| match team.look_up(*id, false) {
        Ok(Got::Memory(memory)) => Some(json!({ "id": id, "text": memory.row_text })),
        Ok(Got::Tombstone(_)) | Err(_) => None,
    });
    let told: Vec<Value> = told.collect();
    if let (Value::Object(members), false) = (&mut answer, told.is_empty()) {
        members.insert("staying".to_owned(), told.into());
    }
    answer
}

/// A plan in a sentence, with the answer that the forget would give.
fn told(plan: &ForgetPlan, answer: &Value, kept: Kept) -> String {
    let gone = told::gone(plan.answer.forgotten, plan.memories());
    let texts = match plan.texts {
        0 => String::new(),
        texts => {
            let texts = told::of(texts, "text of a memory that stays", "texts of memories that stay");
            format!(", {texts} for other writers")
        }
    };
    let detached = match plan.answer.detached {
        0 => String::new(),
        count => format!("; {} would stay {}", told::of(count, "memory", "memories"), kept.why()),
    };
    let missing = match plan.answer.missing() {
        0 => String::new(),
        missing => {
            format!("; {missing} not found{}", told::names(Some(&json!(plan.answer.missing_names))))
        }
    };
    let summaries: Vec<String> = plan.answer.derived.iter().map(ToString::to_string).collect();
    let told = told::still_told(&summaries);
    let left = told::versions_left(answer);
    format!(
        "Would forget {gone} ({} live, {} superseded, {} expired, {} in limbo{texts}){detached}{missing}{left}{told}",
        plan.live, plan.superseded, plan.expired, plan.limbo
    )
}

/// Asks a person who sits at the terminal.
fn is_confirmed(question: &str, caller: &Caller) -> Result<bool, Failure> {
    let mut answer = String::new();
    let asked =
        write!(caller.error(), "{question} [y/N] ").and_then(|()| caller.input().read_line(&mut answer));
    asked.map_err(|source| Error::Io { action: "ask at", path: "the terminal".into(), source })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Ids or keys, one a line as it stands: a key may begin or end with white space.
fn names_of(path: &Path, caller: &Caller) -> Result<Vec<String>> {
    let mut lines = LineReader::new(write::read(path, caller)?, path);
    let mut names = Vec::new();
    while let Some((number, line)) = lines.next_text()? {
        let name = std::str::from_utf8(line);
        let name = name.map_err(|why| {
            Error::invalid("name", "must be UTF-8", format!("other bytes from byte {} on", why.valid_up_to()))
                .at_line(number)
        })?;
        // An id has no white space of its own.
        let id = name.trim().parse::<MemoryId>().ok();
        names.push(id.map_or_else(|| name.to_owned(), |id| id.to_string()));
    }
    Ok(names)
}

/// `undo`.
pub(crate) fn undo(run: &str, place: &Place, output: Output<'_>) -> Done {
    let run = runs::id("run", run, "runs")?;
    let database = place.open(Access::Write)?;
    let undone = undo_everywhere(&database, run, place.typed_namespace()?)?;
    place.close(database)?;
    place.done(output, json!(undone), |_| {
        if undone.already {
            return format!("The run {run} is taken back already");
        }
        let counts = [undone.restored, undone.removed, undone.detached];
        let mut told = match counts {
            [0, 0, 0] if undone.lost.is_empty() => {
                "Nothing of the run came back: it changed nothing, or erased what had ended".to_owned()
            }
            [0, 0, 0] => "Nothing of the run came back".to_owned(),
            [restored, removed, detached] => {
                let counts = [
                    (restored, "memory of before is back", "memories of before are back"),
                    (removed, "record that it wrote is gone", "records that it wrote are gone"),
                    (
                        detached,
                        "memory stays for other writes of its text",
                        "memories stay for other writes of their texts",
                    ),
                ];
                let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
                let counts: Vec<String> =
                    counts.map(|(count, one, many)| told::of(count, one, many)).collect();
                format!("Took the run back: {}", counts.join(", "))
            }
        };
        told.push_str(&told::still_told(
            &undone.summaries.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ));
        undone.lost.iter().for_each(|lost| told.push_str(&format!("\nlost: {lost}")));
        told
    })
}

/// Takes a run back where it wrote: in the namespace that was named, or in all that know the run. A namespace that all memories of
/// the run have left refuses, which tells nothing where another one has taken them back; one to which it brought nothing but memories
/// of an export says so beside what others have taken back.
fn undo_everywhere(database: &Database, run: RunId, named: Option<NamespaceName>) -> Result<Undone> {
    let is_named = named.is_some();
    let namespaces = named.map_or_else(|| database.namespaces(), |named| Ok(vec![named]))?;
    let (mut all, mut refused): (Option<Undone>, Vec<(NamespaceName, Error)>) = (None, Vec::new());
    for namespace in namespaces {
        let team = database.namespace(&namespace)?;
        let counts =
            |name: &str| Ok::<_, Error>(team.run(run)?.is_some_and(|run| run.counts.contains_key(name)));
        let done = match team.undo(run) {
            Err(Error::NotFound { .. }) => continue,
            Err(why @ Error::Conflict { .. }) if counts("moved")? || counts("put_back")? => {
                refused.push((namespace, why));
                continue;
            }
            done => done?,
        };
        let sum = all.get_or_insert_with(|| Undone { already: true, ..Undone::default() });
        sum.restored += done.restored;
        sum.removed += done.removed;
        sum.detached += done.detached;
        sum.lost.extend(done.lost);
        sum.summaries.extend(done.summaries);
        // Another namespace takes back what has moved there, where all are asked.
        let moved = if is_named { done.moved } else { 0 };
        sum.moved += moved;
        sum.lost.extend(told::moved(moved));
        sum.already &= done.already;
    }
    let Some(mut all) = all else {
        let unknown = || Error::NotFound { what: "run", name: run.to_string() };
        return Err(refused.pop().map_or_else(unknown, |(_, why)| why));
    };
    for (namespace, why) in refused {
        let put_back =
            database.namespace(&namespace)?.run(run)?.is_some_and(|run| run.counts.contains_key("put_back"));
        all.lost.extend(put_back.then(|| format!("{namespace}: {why}")));
    }
    Ok(all)
}

/// `namespace drop`. A person at a terminal is asked first; where nobody can be asked, `--yes` says so, or `--json` a program.
pub(crate) fn drop(name: &str, yes: bool, place: &Place, output: Output<'_>) -> Done {
    let namespace: NamespaceName = name.parse()?;
    let asks = !yes && !output.json;
    let database = place.open(Access::Write)?;
    let is_there = database.namespaces()?.contains(&namespace);
    if asks && is_there && !place.caller().can_be_asked() {
        let why =
            format!("{namespace} goes with everything in it: say --yes, as there is no terminal to ask at");
        return Err(Failure::Usage(why));
    }
    if asks && is_there {
        let memories = database.namespace(&namespace)?.stats()?.memories;
        let live = told::of(memories.live, "live memory", "live memories");
        if !is_confirmed(&format!("Drop {namespace} with {live} and everything else in it?"), place.caller())?
        {
            return output.line("Nothing was dropped");
        }
    }
    let dropped = database.drop_namespace(&namespace)?;
    place.close(database)?;
    place.done(output, json!({ "namespace": namespace, "dropped": dropped }), |_| {
        format!("Dropped {namespace} with {}", told::of(dropped, "memory", "memories"))
    })
}
