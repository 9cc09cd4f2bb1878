//! Commands that read memories and what is told of them.

use oubliette::exchange::journal_json;
use oubliette::memory::{Aggregate, DistinctQuery, Event, EventQuery, EventsOf, Got, PointInTime};
use oubliette::report::{Briefed, ChainEnd, CheckOptions, Explanation, Version};
use oubliette::tools::explanation_json;
use oubliette::{
    Database, Error, ErrorKind, Filter, Memory, MemoryId, Namespace, PageRequest, Result, State, Time,
};
use serde_json::{Value, json};

use crate::answers;
use crate::arguments::{
    BriefingOptions, DistinctOptions, EventsOptions, GetOptions, ListOptions, PageOptions, StatsOptions,
};
use crate::output::{Done, Failure, Output, plain, short};
use crate::place::{Access, Place, metadata_key, named};
use crate::{distribution, figures, story, told};

/// Memories that are named of those that say the same.
const NAMED: usize = 5;

/// Keys of a memory of which it is asked whether they mean the memory.
const KEYS_ASKED: usize = 8;

/// Characters of a text by which a memory is named.
const CALLED_CHARS: usize = 60;

/// The error for a name that led to no memory at an instant. What is there now is no typing mistake.
fn not_then(team: &Namespace, name: &str, then: Time) -> Error {
    let now = match team.look_up(name, false) {
        Ok(Got::Memory(memory)) => format!("; it is there now, stored {}", memory.recorded_at),
        _ => String::new(),
    };
    Error::NotFound { what: "memory", name: format!("{name} at {then}{now}") }
}

/// `get`.
pub(crate) fn get(options: &GetOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let team = open(place, output)?;
    let at = options.past.point()?;
    let mut got = match at.valid_at.or(at.known_at) {
        Some(then) => {
            let missing = || not_then(&team, &options.name, then);
            Got::Memory(Box::new(team.get_at(&options.name, &at)?.ok_or_else(missing)?))
        }
        None => team.look_up(&options.name, options.vector)?,
    };
    if let (Got::Memory(memory), true) = (&mut got, options.payload) {
        memory.payload = team.payload(memory.id)?;
    }
    if let (Got::Memory(memory), false) = (&got, output.json) {
        let lacks = [
            (options.vector && memory.vector.is_none(), "vector"),
            (options.payload && memory.payload.is_none(), "payload"),
        ];
        lacks
            .iter()
            .filter(|(lacks, _)| *lacks)
            .for_each(|(_, what)| output.remark(&format!("It has no {what}")));
    }
    let carries = !options.payload && matches!(&got, Got::Memory(memory) if memory.has_payload);
    let mut text = answers::got_text(&namespace, &got, options.vector);
    if let Some(end) = successor(&team, &got, output)? {
        // What it is told in is one object.
        text.insert_str(text.len() - 1, &format!(",\"resolves_to\":{}", json!(end)));
    }
    let undoable = |run: &str| is_undoable(&team, run);
    raw(output, &options.name, &text, carries, (&place.present(), &|id| called(&team, id), &undoable))
}

/// What the error of a write becomes: of a memory that is gone it says when it went, and why.
pub(crate) fn tell_gone<'t>(team: &'t Namespace, place: &'t Place) -> impl Fn(Error) -> Error + 't {
    move |error| {
        let Error::NotFound { what: what @ ("memory" | "key"), name } = &error else { return error };
        let Ok(Got::Tombstone(stone)) = team.look_up(name.as_str(), false) else { return error };
        let reason = story::reason(stone.reason.as_str());
        let when = story::when(stone.deleted_at, &place.present());
        let name = format!("{name} is gone since {when}, because {reason}; nothing brings it back");
        Error::NotFound { what, name }
    }
}

/// The namespace that is meant, to read.
fn open(place: &Place, output: Output<'_>) -> Result<Namespace> {
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    database.namespace(place.namespace()?)
}

/// A memory as a person names it: by the beginning of its text, and its key. What is gone has only its id, and why it went.
pub(crate) fn called(team: &Namespace, id: &str) -> String {
    match team.look_up(id, false) {
        Ok(Got::Memory(memory)) => {
            let text = short(&memory.row_text, CALLED_CHARS);
            match name_of(team, &memory) {
                Some(name) => format!("“{text}” ({name})"),
                None => format!("“{text}”"),
            }
        }
        Ok(Got::Tombstone(stone)) => {
            format!("a memory that is gone by now ({id}: {})", story::reason(stone.reason.as_str()))
        }
        Err(_) => id.to_owned(),
    }
}

/// The name in brackets behind the text of a memory: a key; where none means the memory yet, its id. A key that is to lead to the
/// memory means another one until then.
fn name_of(team: &Namespace, memory: &Memory) -> Option<String> {
    let first = memory.keys.first()?;
    if memory.state != State::Live {
        return Some(first.clone());
    }
    let own = memory.holders.iter().filter(|holder| !holder.follows).filter_map(|holder| holder.key.as_ref());
    let means = |key: &&String| match team.look_up(key.as_str(), false) {
        Ok(Got::Memory(found)) => found.id == memory.id,
        _ => false,
    };
    let key = own.chain(&memory.keys).take(KEYS_ASKED).find(means);
    Some(key.cloned().unwrap_or_else(|| memory.id.to_string()))
}

/// Whether `undo` can still take a run back.
fn is_undoable(team: &Namespace, run: &str) -> bool {
    let run = run.parse().ok().and_then(|run| team.run(run).ok().flatten());
    run.is_some_and(|run| run.can_be_undone)
}

/// The first of several memories of one namespace, whichever that is, as a person names them.
pub(crate) fn called_in_any(database: &Database, ids: &[MemoryId]) -> Result<Vec<String>> {
    let names = database.namespaces()?.into_iter();
    let all = names.map(|name| database.namespace(name)).collect::<Result<Vec<_>>>()?;
    let first = ids.first().map(ToString::to_string).unwrap_or_default();
    let own = all.iter().find(|team| team.look_up(&first, false).is_ok());
    let name = |id: &MemoryId| own.map_or_else(|| id.to_string(), |team| called(team, &id.to_string()));
    let mut named: Vec<String> = ids.iter().take(NAMED).map(name).collect();
    let more = ids.len() - named.len();
    named.extend((more > 0).then(|| format!("and {more} more")));
    Ok(named)
}

/// The visible memory that stands in the end in the place of one that is not live. Where one on the way to it is damaged, nobody
/// knows which.
fn successor(team: &Namespace, got: &Got, output: Output<'_>) -> Result<Option<MemoryId>> {
    let id = match got {
        Got::Memory(memory) if memory.state == State::Live => return Ok(None),
        Got::Memory(memory) => memory.id,
        Got::Tombstone(tombstone) => tombstone.id,
    };
    match team.resolve(id) {
        Ok(ChainEnd::Visible(end)) if end != id => Ok(Some(end)),
        Ok(ChainEnd::Visible(_) | ChainEnd::Hidden(_) | ChainEnd::Gone(_)) => Ok(None),
        Err(why) if why.kind() == ErrorKind::Corrupted => {
            output.note("What took its place is damaged: `check` tells more");
            Ok(None)
        }
        Err(why) => Err(why),
    }
}

/// A memory that is JSON text already, shown as it is or told. `carries` tells of a payload that it does not have.
fn raw(
    output: Output<'_>,
    asked: &str,
    text: &str,
    carries: bool,
    (now, called, undoable): (&story::Present, story::Called<'_>, story::Undoable<'_>),
) -> Done {
    if output.json {
        return output.line(text);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut document) => {
            // Of several keys the one that was asked for is shown, beside the text that it wrote.
            let keys = document.get("keys").and_then(Value::as_array);
            let is_key = keys.is_some_and(|keys| keys.iter().any(|key| key == asked));
            if let Value::Object(members) = &mut document {
                if carries {
                    members.insert("payload".to_owned(), json!("yes; --payload shows it"));
                }
                if is_key {
                    members.insert("key".to_owned(), json!(asked));
                }
            }
            output.text(&story::memory(asked, &document, now, called, undoable))?;
            if output.verbose { output.document(&story::dated(document, now)) } else { Ok(()) }
        }
        Err(_) => output.line(text),
    }
}

/// `list`.
pub(crate) fn list(options: &ListOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    if options.state == State::Tombstoned.as_str() {
        return tombstones(options, place, output);
    }
    let any_state = options.state == "any";
    let request = PageRequest {
        scope: options.scope.scope()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        state: if any_state { State::Live } else { state(&options.state)? },
        any_state,
        newest_first: options.newest,
        limit: options.limit,
        cursor: options.cursor.clone(),
        at: options.past.point()?,
    };
    let database = place.open(Access::Read)?;
    let known = database.namespaces()?;
    let is_told = place.unknown_namespace(&known, output)?.is_some();
    let page = database.namespace(&namespace)?.list(&request)?;
    if output.json {
        let items: Vec<String> =
            page.items.iter().map(|memory| answers::memory_text(memory, false)).collect();
        let next = json!(page.next);
        let damaged = match page.damaged.is_empty() {
            true => String::new(),
            false => format!(",\"damaged\":{}", json!(page.damaged)),
        };
        let horizon =
            page.horizon.map(|horizon| format!(",\"horizon\":{}", json!(horizon))).unwrap_or_default();
        let items = items.join(",");
        return output.line(&format!("{{\"items\":[{items}],\"next\":{next}{damaged}{horizon}}}"));
    }
    if page.horizon.is_some() {
        output.remark("Maintenance has erased a part of that past: memories may be missing");
    }
    let now = place.present();
    let (heads, items): (&[&str], Vec<Vec<String>>) = match output.verbose {
        true => {
            let rows = page.items.iter().map(|memory| whole_row(memory, &now));
            (&["id", "keys", "kind", "tier", "state", "text"], rows.collect())
        }
        false if any_state => {
            let rows = page.items.iter().map(|memory| state_row(memory, &now));
            (&["memory", "kind", "state", "text"], rows.collect())
        }
        false => (&["memory", "kind", "text"], page.items.iter().map(row).collect()),
    };
    let none = match known.contains(&namespace) {
        false if is_told => String::new(),
        true => {
            let tries = [("--state any, ", any_state), ("--any-agent or ", options.scope.any_agent)];
            let tries: String = tries.iter().filter(|(_, given)| !given).map(|(option, _)| *option).collect();
            format!("Nothing to list; try {tries}another --namespace")
        }
        false => told::no_namespace(&namespace, &known),
    };
    tell_damaged(&page.damaged, output);
    output.list(heads, items, &none)?;
    page.next.map_or(Ok(()), |next| output.line(&format!("more: --cursor {next}")))
}

/// A memory in a list: the name by which it can be asked for, and what it says.
fn row(memory: &Memory) -> Vec<String> {
    vec![told::memory(memory), memory.kind.to_string(), memory.text.clone()]
}

/// The same in a list of every state.
fn state_row(memory: &Memory, now: &story::Present) -> Vec<String> {
    let mut row = row(memory);
    row.insert(2, condition(memory, now));
    row
}

/// How it stands with a memory at this instant, in the words of a person: live is what `--state live` lists.
fn condition(memory: &Memory, now: &story::Present) -> String {
    let shown = serde_json::from_str(&answers::memory_text(memory, false));
    shown.map_or_else(|_| memory.state.to_string(), |shown| story::condition_of(&shown, now))
}

/// The same with all that tells one memory from another.
fn whole_row(memory: &Memory, now: &story::Present) -> Vec<String> {
    let Memory { id, keys, kind, tier, text, .. } = memory;
    let state = condition(memory, now);
    let named = [id.to_string(), keys.join("\n"), kind.to_string(), tier.to_string(), state];
    named.into_iter().chain([text.clone()]).collect()
}

/// `distinct`.
pub(crate) fn distinct(options: &DistinctOptions, place: &Place, output: Output<'_>) -> Done {
    let query = DistinctQuery {
        key: metadata_key(&options.key)?.to_owned(),
        scope: options.scope.scope()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        limit: options.limit,
    };
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let found = database.namespace(place.namespace()?)?.distinct(query)?;
    if output.json {
        return output.document(&serde_json::to_value(&found).unwrap_or_default());
    }
    let rows = found.values.iter().map(|one| vec![short(&plain(&one.value), 80), one.count.to_string()]);
    let none = "No memory has this key in its metadata; try --any-agent or another --namespace";
    output.list(&["value", "memories"], rows.collect(), none)?;
    if found.left_out > 0 {
        output.line(&format!(
            "{} left out; --limit gives more",
            told::of(found.left_out, "value is", "values are")
        ))?;
    }
    if !found.complete {
        output.remark("The key has more values than are counted: only the first 10000 in order are");
    }
    Ok(())
}

/// A state that a list may ask for; `any` is none of a memory's own.
fn state(name: &str) -> Result<State> {
    name.parse().map_err(|_| {
        let why = "must be live, superseded, expired, limbo, tombstoned or any";
        Error::invalid("--state", why, name)
    })
}

/// `events`.
pub(crate) fn events(options: &EventsOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    let of = match (&options.aggregate, &options.memory, &options.event) {
        (Some(id), _, _) => EventsOf::Aggregate(id.parse().map_err(|_| {
            Error::invalid("--aggregate", "must be an id, such as those that `aggregates` lists", id)
        })?),
        (_, Some(name), _) => {
            EventsOf::Memory(match database.namespace(&namespace)?.look_up(name, false)? {
                Got::Memory(memory) => memory.id,
                Got::Tombstone(tombstone) => tombstone.id,
            })
        }
        (_, _, Some(id)) => EventsOf::Event(id.parse()?),
        _ => EventsOf::All,
    };
    let query = EventQuery {
        of,
        from: options.from.as_deref().map(|from| named("--from", from.parse())).transpose()?,
        to: options.to.as_deref().map(|to| named("--to", to.parse())).transpose()?,
        limit: options.page.limit,
        cursor: options.page.cursor.clone(),
    };
    if let (Some(from), Some(to)) = (query.from, query.to)
        && to < from
    {
        return Err(Error::invalid("--to", format!("must not lie before --from, which is {from}"), to).into());
    }
    place.unknown_namespace(&database.namespaces()?, output)?;
    let page = database.namespace(&namespace)?.events(&query)?;
    if output.json {
        return output.line(&of_page(json!(page.items), page.next, &page.damaged));
    }
    tell_damaged(&page.damaged, output);
    let row = |event: &Event| {
        let mut row = vec![
            story::when(event.ts, &place.present()),
            event.channel.clone().unwrap_or_default(),
            author(event),
            event.payload.as_deref().map_or_else(|| "its text is gone".to_owned(), |text| short(text, 60)),
            event.aggregate_id.map(|id| id.to_string()).unwrap_or_default(),
        ];
        if output.verbose {
            row.push(event.id.to_string());
            row.push(event.memory_id.map(|id| id.to_string()).unwrap_or_default());
            row.push(event.decision.to_string());
        }
        row
    };
    let heads = ["when", "channel", "author", "said", "aggregate", "id", "memory", "decision"];
    let heads = if output.verbose { &heads } else { &heads[..5] };
    let none = match (&query.of, query.from, query.to, &query.cursor) {
        (EventsOf::All, None, None, None) => {
            "No messages: `add TEXT --kind message --author-kind bot` writes one, and so does a line of `import` with an `author`"
        }
        _ => "No messages there",
    };
    output.list(heads, page.items.iter().map(row).collect(), none)?;
    page.next.map_or(Ok(()), |next| output.line(&format!("more: --cursor {next}")))
}

/// Who wrote a message: the sort of author, and the name if it is known.
fn author(event: &Event) -> String {
    let name = event.author_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    format!("{}{name}", event.author_kind)
}

/// A page of messages or of their aggregates, as a document.
fn of_page(items: Value, next: Option<String>, damaged: &[MemoryId]) -> String {
    of_damaged(json!({ "items": items, "next": next }), damaged)
}

/// A document with what it leaves out, where that is something.
fn of_damaged(mut document: Value, damaged: &[MemoryId]) -> String {
    if let (false, Value::Object(members)) = (damaged.is_empty(), &mut document) {
        members.insert("damaged".to_owned(), json!(damaged));
    }
    document.to_string()
}

/// Says what a page leaves out, and of which messages it can't be told any more what followed them.
fn tell_damaged(damaged: &[MemoryId], output: Output<'_>) {
    for id in damaged {
        output.remark(&format!("{id} is damaged; `check` tells more"));
    }
}

/// `aggregates`.
pub(crate) fn aggregates(options: &PageOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let page = database.namespace(&namespace)?.aggregates(options.cursor.as_deref(), options.limit)?;
    if output.json {
        return output.line(&of_page(json!(page.items), page.next, &page.damaged));
    }
    tell_damaged(&page.damaged, output);
    let row = |aggregate: &Aggregate| {
        let mut row = vec![
            aggregate.id.to_string(),
            aggregate.scope.clone().unwrap_or_default(),
            aggregate.dup_count.to_string(),
            story::when(aggregate.ts_first, &place.present()),
            story::when(aggregate.ts_last, &place.present()),
            aggregate.example_snippets.first().map(|text| short(text, 60)).unwrap_or_default(),
        ];
        if output.verbose {
            row.extend([
                aggregate.authors_seen.join("\n"),
                aggregate.first_event_id.to_string(),
                aggregate.last_event_id.to_string(),
            ]);
        }
        row
    };
    let heads =
        ["id", "channel", "messages", "first", "last", "example", "authors", "first message", "last message"];
    output.list(
        if output.verbose { &heads } else { &heads[..6] },
        page.items.iter().map(row).collect(),
        "No repeated messages, or none that have not ended",
    )?;
    page.next.map_or(Ok(()), |next| output.line(&format!("more: --cursor {next}")))
}

fn tombstones(options: &ListOptions, place: &Place, output: Output<'_>) -> Done {
    let of_memories = [
        ("--filter", options.filter.is_some()),
        ("--agent", options.scope.agent.is_some()),
        ("--newest", options.newest),
        ("an instant of the past", options.past.point()? != PointInTime::default()),
    ];
    if let Some((option, _)) = of_memories.into_iter().find(|(_, is_given)| *is_given) {
        let why = "of what is gone only the id, the reason and the time are kept, for all parts by id";
        return Err(Failure::Usage(format!("--state tombstoned goes without {option}: {why}")));
    }
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let team = database.namespace(&namespace)?;
    let page = team.tombstones(options.cursor.as_deref(), options.limit)?;
    if output.json {
        let mut items = Vec::new();
        for tombstone in &page.items {
            // What waits in limbo has its tombstone already.
            let state = team.state(tombstone.id)?.unwrap_or(State::Tombstoned);
            items.push(answers::tombstone_text(&namespace, tombstone, state));
        }
        let next = json!(page.next);
        let damaged = match page.damaged.as_slice() {
            [] => String::new(),
            damaged => format!(",\"damaged\":{}", json!(damaged)),
        };
        return output.line(&format!("{{\"items\":[{}],\"next\":{next}{damaged}}}", items.join(",")));
    }
    tell_damaged(&page.damaged, output);
    let rows = page.items.iter().map(|tombstone| {
        vec![
            tombstone.id.to_string(),
            story::reason(tombstone.reason.as_str()),
            story::when(tombstone.deleted_at, &place.present()),
        ]
    });
    let rows = rows.collect();
    output.list(&["id", "reason", "deleted at"], rows, "Nothing was forgotten or removed here")?;
    page.next.map_or(Ok(()), |next| output.line(&format!("more: --cursor {next}")))
}

/// `history`. Of many versions and events only what the library tells is there as a whole, and for people the cells of the tables.
pub(crate) fn history(name: &str, place: &Place, output: Output<'_>) -> Done {
    let team = open(place, output)?;
    let history = team.history(name)?;
    let (now, mut damaged) = (place.present(), Vec::new());
    let mut told = |version: &Version| {
        let mut told = json!(version);
        let Value::Object(members) = &mut told else { return told };
        // What is gone or damaged has no text any more.
        match team.look_up(version.id, false) {
            Ok(Got::Memory(memory)) => {
                members.insert("text".to_owned(), json!(memory.row_text));
                let shown = || serde_json::from_str(&answers::memory_text(&memory, false)).ok();
                if let Some(shown) = (!output.json).then(shown).flatten() {
                    members.insert("state".to_owned(), json!(story::validity_of(&shown, &now)));
                }
            }
            Ok(Got::Tombstone(_)) if !output.json => {
                members.insert("state".to_owned(), json!("gone"));
            }
            Err(why) if why.kind() == ErrorKind::Corrupted && !history.damaged.contains(&version.id) => {
                damaged.push(version.id);
            }
            _ => {}
        }
        told
    };
    if output.json {
        let document = json!({ "versions": [], "events": [], "damaged": history.damaged });
        let (mut versions, mut events) =
            (history.versions.iter().map(told), history.events.iter().map(journal_json));
        return output.streamed(&document, &mut [("versions", &mut versions), ("events", &mut events)]);
    }
    let (stored, state, how) = (("recorded_at", "stored"), ("state", "state"), ("mode", "how"));
    let (when, what, by, text) = (("at", "when"), ("op", "what"), ("actor", "by"), ("text", "text"));
    let (of_version, of_event) = match output.verbose {
        true => (
            vec![stored, ("id", "id"), state, ("superseded_by", "replaced by"), how, text],
            vec![when, what, ("subject", "subject"), ("rule", "rule"), by],
        ),
        false => (vec![stored, state, how, text], vec![when, what, by]),
    };
    let heads = |columns: &[(&'static str, &'static str)]| -> Vec<&str> {
        columns.iter().map(|(_, head)| *head).collect()
    };
    let versions: Vec<Vec<String>> =
        history.versions.iter().map(|version| cells(&told(version), &of_version, &now)).collect();
    tell_damaged(&damaged, output);
    tell_damaged(&history.damaged, output);
    output.table(&heads(&of_version), versions)?;
    let events = history.events.iter().map(|event| cells(&journal_json(event), &of_event, &now));
    output.table(&heads(&of_event), events)
}

/// The members of a document that stand in the columns of a table, instants as local dates.
fn cells(document: &Value, columns: &[(&str, &str)], now: &story::Present) -> Vec<String> {
    let shown = |value: &Value| value.as_str().map_or_else(|| plain(value), |text| story::date(text, now));
    let cell = |name: &str| document.get(name).map(shown).unwrap_or_default();
    columns
        .iter()
        .map(|(name, _)| if *name == "op" { story::happened(&cell(name)) } else { cell(name) })
        .collect()
}

/// `explain`.
pub(crate) fn explain(name: &str, place: &Place, output: Output<'_>) -> Done {
    let team = open(place, output)?;
    let mut explained = team.explain(name)?;
    let mut scores = None;
    if output.json || output.verbose {
        scores = match team.scores(explained.id) {
            Err(_) if !explained.damaged.is_empty() => None,
            Err(why) if why.kind() == ErrorKind::Corrupted => {
                explained.damaged.push(why.to_string());
                None
            }
            scores => scores?,
        };
    }
    let events = std::mem::take(&mut explained.events);
    let mut document = explanation_json(&explained);
    explained.events = events;
    if let (Some(scores), Value::Object(members)) = (scores, &mut document) {
        members.insert("scores".to_owned(), json!(scores));
    }
    if output.json {
        output.streamed(&document, &mut [("events", &mut explained.events.iter().map(journal_json))])?;
        return whole(&explained);
    }
    let told = team.look_up(explained.id, false).and_then(|got| match got {
        // A key is told of with the text that it wrote itself.
        Got::Memory(memory) if memory.keys.iter().any(|key| key == name) => team.look_up(name, false),
        got => Ok(got),
    });
    let memory = match told {
        Ok(Got::Memory(memory)) => serde_json::from_str(&answers::memory_text(&memory, false)).ok(),
        Ok(Got::Tombstone(_)) | Err(Error::NotFound { .. }) => None,
        // The story of a damaged memory is worth as much as any other.
        Err(why) => {
            if explained.damaged.is_empty() {
                output.remark(&format!("Its text is left out: {why}"));
            }
            None
        }
    };
    explained.damaged.iter().for_each(|why| output.remark(&format!("Left out what can't be read: {why}")));
    let (now, called) = (place.present(), |id: &str| called(&team, id));
    let asked: (_, story::Called<'_>, story::Undoable<'_>) = (&now, &called, &|run| is_undoable(&team, run));
    output.text(&story::explanation(
        name,
        (&document, &explained),
        memory.as_ref(),
        asked,
        output.verbose,
    ))?;
    if output.verbose {
        // The story has told the events, each with its reasons.
        if let Value::Object(members) = &mut document {
            members.shift_remove("events");
        }
        output.document(&story::dated(document, &now))?;
    }
    whole(&explained)
}

/// Whether all of a memory could be read that is told.
fn whole(explained: &Explanation) -> Done {
    if explained.damaged.is_empty() { Ok(()) } else { Err(Failure::Findings) }
}

/// `stats`: of the namespace that was typed, or of the whole file.
pub(crate) fn stats(options: &StatsOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.typed_namespace()?;
    let database = place.open_to_count()?;
    let named = namespace.map(|name| database.namespace(name)).transpose()?;
    // It loads every index, and so the warnings of all of them are among those of the other statistics.
    let indexes =
        options.deep.then(|| named.as_ref().map_or_else(|| database.index_stats(), Namespace::index_stats));
    let indexes = indexes.transpose()?;
    let used = options.access.then(|| {
        named.as_ref().map_or_else(|| database.access_distribution(), Namespace::access_distribution)
    });
    let used = used.transpose()?;
    if let Some(used) = used.as_ref().filter(|_| !output.json) {
        return distribution::tell(used, database.policy().0.prune.enabled, output);
    }
    let stats = named.as_ref().map_or_else(|| database.stats(), Namespace::stats)?;
    if named.is_some() {
        place.unknown_namespace(&database.namespaces()?, output)?;
    }
    if !output.json {
        figures::stats(&stats, &place.present(), output)?;
    }
    let mut document = serde_json::to_value(&stats).unwrap_or_default();
    if let (Some(indexes), Value::Object(members)) = (indexes, &mut document) {
        let report = database.check(&CheckOptions::default())?;
        let recount =
            json!({ "rows": report.checked, "findings": report.findings.len() as u64 + report.more });
        members.insert("recount".to_owned(), recount);
        let file = database.file_stats()?;
        if !output.json {
            let findings = told::of(report.findings.len() as u64 + report.more, "finding", "findings");
            output.line(&format!(
                "{} counted again: {findings}",
                told::of(report.checked, "row was", "rows were")
            ))?;
            let tables = file.by_table.iter().filter(|(_, table)| table.rows > 0);
            let tables =
                tables.map(|(name, of)| vec![(*name).to_owned(), of.rows.to_string(), told::size(of.live)]);
            output.table(&["table", "rows", "bytes"], tables)?;
        }
        members.insert("bytes".to_owned(), serde_json::to_value(file).unwrap_or_default());
        members.insert("indexes".to_owned(), serde_json::to_value(indexes).unwrap_or_default());
    }
    if let (Some(used), Value::Object(members)) = (used, &mut document) {
        members.insert("access".to_owned(), json!(used));
    }
    match (output.json, output.verbose) {
        (true, _) => output.document(&document),
        (false, true) => output.document(&story::dated(document, &place.present())),
        (false, false) => Ok(()),
    }
}

/// `memory-stats`: the small document, of one namespace.
pub(crate) fn memory_stats(place: &Place, output: Output<'_>) -> Done {
    let database = place.open_to_count()?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let stats = database.namespace(place.namespace()?)?.memory_stats()?;
    if output.json {
        return output.document(&json!(stats));
    }
    let (local, agents, health) = (&stats.local, &stats.mem0, &stats.health);
    let mut rows = vec![("all", String::new(), agents.total), ("shared", String::new(), local.total)];
    let each = [("agent", &agents.by_agent), ("scope", &local.by_scope), ("tag", &local.by_tag)];
    for (what, counts) in each {
        rows.extend(counts.iter().map(|(name, count)| (what, name.clone(), *count)));
    }
    rows.push(("duplicates", String::new(), health.duplicates_detected));
    rows.push(("snapshots", String::new(), health.profile_snapshots));
    let rows = rows.into_iter().map(|(what, name, count)| vec![what.to_owned(), name, count.to_string()]);
    output.table(&["what", "name", "memories"], rows)?;
    if let (Some(oldest), Some(newest)) = (&local.date_range.oldest, &local.date_range.newest) {
        output.line(&format!("The shared memories were created from {oldest} to {newest}."))?;
    }
    match &health.last_prune {
        Some(at) => {
            output.line(&format!("Snapshots were last pruned {}.", story::date(at, &place.present())))
        }
        None => Ok(()),
    }
}

/// `briefing`.
pub(crate) fn briefing(options: &BriefingOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    let known = database.namespaces()?;
    let is_told = place.unknown_namespace(&known, output)?.is_some();
    let briefed =
        database.snapshot()?.namespace(&namespace)?.briefing(&options.scope.scope()?, options.max_tokens)?;
    if output.json {
        let items = briefed.items.iter().map(|Briefed { memory, score }| {
            json!({
                "id": memory.id, "key": memory.key(), "text": memory.row_text,
                "pinned": memory.pinned, "score": score,
            })
        });
        return output.line(&of_damaged(json!({ "items": items.collect::<Vec<_>>() }), &briefed.damaged));
    }
    tell_damaged(&briefed.damaged, output);
    let rows = briefed.items.iter().map(|Briefed { memory, score }| {
        let mark = if memory.pinned { "pinned" } else { "" };
        vec![told::memory(memory), mark.to_owned(), format!("{score:.3}"), memory.row_text.clone()]
    });
    let none = match known.contains(&namespace) {
        false if is_told => String::new(),
        true => {
            let agents = if options.scope.any_agent { "" } else { "--any-agent or " };
            format!("Nothing to tell; try {agents}another --namespace")
        }
        false => told::no_namespace(&namespace, &known),
    };
    output.list(&["memory", "", "worth", "text"], rows.collect(), &none)
}
