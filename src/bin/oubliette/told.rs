//! What was done, in a sentence.

use oubliette::report::RuleId;
use oubliette::{Memory, MemoryId, NamespaceName};
use serde_json::Value;

use crate::output::{printable, short};

/// Keys of a memory that a table names.
const KEYS: usize = 3;

/// Names that a sentence names.
const NAMED: usize = 5;

/// Characters of a text in a sentence.
const TEXT_CHARS: usize = 60;

/// Characters of a key in a table; `get` and `-v` show the whole key.
const KEY_CHARS: usize = 60;

/// A change that has a name of its own, such as `Pinned`.
pub(crate) fn change(verb: &str, answer: &Value) -> String {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    match text("decision") {
        Some("updated") => format!("{verb} {} in {}", name(answer), text("namespace").unwrap_or("default")),
        _ => write(answer),
    }
}

/// A write: what became of it, under what name, where.
pub(crate) fn write(answer: &Value) -> String {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let decision = text("decision").unwrap_or("done");
    let name = name(answer);
    let mut place = format!("in {}", text("namespace").unwrap_or("default"));
    if let Some(agent) = text("partition").filter(|part| *part != "shared") {
        place.push_str(&format!(", the part of {agent}"));
    }
    let told = match decision {
        "reinforced" => format!("Reinforced {name} {place}: {}", reinforced(answer)),
        "unchanged" => format!("Unchanged: {name} {place} says the same"),
        "aggregated" => format!("Counted {place} with the messages that it repeats"),
        "ignored" => format!("Ignored, as a rule of the policy says; nothing is stored {place}"),
        _ => {
            let mut letters = decision.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            format!("{first}{} {name} {place}", letters.as_str())
        }
    };
    let told = format!("{told}{}{}", takes_place(answer), kept_for_others(answer));
    let told = match not_taken(answer) {
        Some(left) => format!("{told}; {left}"),
        None => told,
    };
    let told = match answer.get("payload_left_behind").and_then(Value::as_bool) {
        Some(true) => format!("{told}; its payload stays with the earlier version"),
        _ => told,
    };
    let told = match answer.get("pending").and_then(Value::as_bool) {
        Some(true) => format!("{told}; it has no vector and is found by its words"),
        _ => told,
    };
    let told = match text("over") {
        Some(why) => format!("{told}; {why}"),
        None => told,
    };
    let told = match text("unread") {
        Some(why) => format!("{told}; it can't be read back: {why}"),
        None => told,
    };
    match answer.get("hints").and_then(Value::as_array).map_or(0, Vec::len) {
        0 => told,
        near => format!("{told}; {} near to it (-v tells)", of(near as u64, "memory is", "memories are")),
    }
}

/// What a write has taken the place of. A key of that only leads to a text without a key, which no forget of the key takes.
fn takes_place(answer: &Value) -> String {
    let named = answer.get("supersedes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_key = |name: &Value| name.as_str().is_some_and(|name| name.parse::<MemoryId>().is_err());
    let by_id = match answer.get("key").is_some_and(Value::is_string) || !named.iter().any(is_key) {
        true => "",
        false => ", which only leads to it: forget it by its id",
    };
    match names(Some(&Value::Array(named.to_vec()))) {
        none if none.is_empty() => none,
        names => format!("; it takes the place of {}{by_id}", names.trim_start_matches(": ")),
    }
}

/// What others go on to say of what a key said before, and how it is changed for all of them.
fn kept_for_others(answer: &Value) -> String {
    staying_for_others(answer.get("kept_for_others").and_then(Value::as_array).map_or(&[], Vec::as_slice))
}

/// The same of several writes, the first ones where they are many.
pub(crate) fn staying_for_others(all: &[Value]) -> String {
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; {} stay for others as well", of(more as u64, "more text", "more texts")),
    };
    let told = all.iter().take(NAMED).map(|kept| {
        let id = kept.get("id").and_then(Value::as_str).unwrap_or_default();
        let keys = kept.get("keys").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let writers = kept.get("writers").and_then(Value::as_u64).unwrap_or_default();
        let others = match (names(kept.get("keys")), writers.saturating_sub(keys)) {
            (keys, 0) => keys.trim_start_matches(": ").to_owned(),
            (keys, more) if keys.is_empty() => of(more, "other writer", "other writers"),
            (keys, more) => {
                format!("{} and {}", keys.trim_start_matches(": "), of(more, "other writer", "other writers"))
            }
        };
        format!("; the text before stays for {others}: the id {id} stands for all of them")
    });
    told.chain([more]).collect()
}

/// Why a memory stands for one more write.
fn reinforced(answer: &Value) -> &'static str {
    let step = answer.get("step").and_then(Value::as_str);
    match step.and_then(|step| RuleId::ALL.iter().find(|rule| rule.0 == step).copied()) {
        Some(RuleId::KEY) => "its key has another text, which stays, as write.on_key says",
        Some(RuleId::CONTENT | RuleId::MESSAGE_EXACT) | None => "the same content was there",
        Some(_) => "nearly the same content was there, as the policy says",
    }
}

/// What a write gave and the memory does not say.
fn not_taken(answer: &Value) -> Option<String> {
    let named = answer.get("not_taken").and_then(Value::as_array)?;
    let fields: Vec<&str> = named.iter().filter_map(Value::as_str).filter(|name| *name != "text").collect();
    let (last, rest) = fields.split_last()?;
    let (names, verb) = match rest.is_empty() {
        // A list has a name in the plural.
        true if !last.ends_with('s') => ((*last).to_owned(), "is that"),
        true => ((*last).to_owned(), "are those"),
        false => (format!("{} and {last}", rest.join(", ")), "are those"),
    };
    Some(format!("its {names} {verb} of an earlier write (`--verbatim` stores it apart)"))
}

/// A line of `add -`; one of an export that is no memory is only taken over.
pub(crate) fn line(answer: &Value) -> String {
    match answer.get("decision") {
        Some(_) => write(answer),
        None => "Taken over as the export tells it".to_owned(),
    }
}

/// The key of a memory, or its id.
pub(crate) fn name(answer: &Value) -> &str {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    text("key").or(text("id")).unwrap_or("it")
}

/// A memory in a table: its keys, of many the first ones; its id where it has none.
pub(crate) fn memory(memory: &Memory) -> String {
    if memory.keys.is_empty() {
        return memory.id.to_string();
    }
    let mut named: Vec<String> = memory.keys.iter().take(KEYS).map(|key| short(key, KEY_CHARS)).collect();
    let more = memory.keys.len() - named.len();
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join(", ")
}

/// What an undo has left to another namespace.
pub(crate) fn moved(changes: u64) -> Option<String> {
    let told = of(changes, "change: its memory is", "changes: their memories are");
    (changes > 0).then(|| format!("{told} in another namespace now, where the run can be undone"))
}

/// An import.
pub(crate) fn import(report: &Value, (one, many): (&str, &str)) -> String {
    const WORDS: [&str; 10] = [
        "stored",
        "unchanged",
        "updated",
        "reinforced",
        "revised",
        "aggregated",
        "ignored",
        "routed",
        "consolidated",
        "bad",
    ];
    let count = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or_default();
    let counts = WORDS.iter().filter(|name| count(name) > 0).map(|name| format!("{} {name}", count(name)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let mut told = format!("Read {}", of(count("read"), one, many));
    let others = count("told") + count("tombstones");
    let others = (others > 0).then(|| format!("{others} of messages, goals, runs or tombstones"));
    let counts: Vec<String> =
        [counts].into_iter().filter(|counts| !counts.is_empty()).chain(others).collect();
    if !counts.is_empty() {
        told.push_str(&format!(": {}", counts.join(", ")));
    }
    let can_be_undone = report.get("can_be_undone").and_then(Value::as_bool) == Some(true);
    let runs: Vec<&str> = match report.get("runs").and_then(Value::as_array) {
        Some(each) => each.iter().filter_map(|run| run.get("run")?.as_str()).collect(),
        None => report.get("run").and_then(Value::as_str).into_iter().collect(),
    };
    if let (true, Some((last, others))) = (can_be_undone, runs.split_last()) {
        let mut all: String = others.iter().map(|run| format!("`undo {run}`, ")).collect();
        all.push_str(&format!("`undo {last}`"));
        let takes = if others.is_empty() { "takes it back" } else { "take it back, each a namespace" };
        let but = if count("updated") > 0 { ", but for what was updated" } else { "" };
        told.push_str(&format!("; {all} {takes}{but}"));
    }
    if let (1.., Some(why)) = (count("put_back"), report.get("why_not").and_then(Value::as_str)) {
        told.push_str(&format!("; the import can't be undone: {why}"));
    }
    if count("not_taken") > 0 {
        let writes = of(count("not_taken"), "of these gives", "of these give");
        told.push_str(&format!(
            "; {writes} a session, an author, an instant or another field that an earlier write with the same text gave otherwise, \
             and did not keep it (`--verbatim` stores each apart)"
        ));
    }
    if count("ended_at_once") > 0 {
        told.push_str(&format!("; {} ended at once", of(count("ended_at_once"), "memory", "memories")));
    }
    if count("vectors_left_out") > 0 {
        let vectors = of(count("vectors_left_out"), "vector", "vectors");
        told.push_str(&format!(
            "; left out {vectors} of another embedding space than this file's: the file's embedder makes new ones, and without \
             one the texts wait for an `update` with a vector"
        ));
    }
    if count("vectors_apart") > 0 {
        let memories = of(count("vectors_apart"), "memory has", "memories have");
        told.push_str(&format!(
            "; {memories} no text and a vector of another embedding space than this file's: kept, but no search finds them"
        ));
    }
    told
}

/// What a forget takes: records or rows, and the versions of them that go along, by all tombstones.
pub(crate) fn gone(forgotten: u64, tombstones: u64) -> String {
    let memories = of(forgotten, "memory", "memories");
    match tombstones.saturating_sub(forgotten) {
        0 => memories,
        versions => format!("{memories} and {}", of(versions, "other version", "other versions")),
    }
}

/// Why a memory stays that a forget has met, by what was asked for.
#[derive(Clone, Copy)]
pub(crate) enum Kept {
    /// A key or an id: others have said the text.
    Name,
    /// A tag, which goes in any case: others have said the text, or its writer before it got the tag.
    Tag,
    /// A filter, which only some of the writers match.
    Filter,
}

impl Kept {
    /// The words behind a count.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Kept::Name => "for another write of the same text, without the key",
            Kept::Tag => "without the tag, because another write said the text as well",
            Kept::Filter => "for another write of the same text",
        }
    }
}

/// A forget.
pub(crate) fn forgotten(answer: &Value, kept: Kept) -> String {
    let count = |name: &str| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut told = format!("Forgot {}", gone(count("forgotten"), count("tombstones")));
    let detached = format!("kept {}", kept.why());
    let notes = [
        ("detached", detached.as_str()),
        ("went_with", "more that went with what was forgotten"),
        ("restored", "live again that it had superseded"),
        ("missing", "not found"),
    ];
    for (name, note) in notes {
        if count(name) > 0 {
            told.push_str(&format!("; {} {note}", count(name)));
            if name == "missing" {
                told.push_str(&names(answer.get("missing_names")));
            }
        }
    }
    told.push_str(&versions_left(answer));
    let undecided = answer.get("undecided").and_then(Value::as_array).map_or(0, Vec::len);
    if undecided > 0 {
        let undecided = of(undecided as u64, "memory stays", "memories stay");
        let why = "because it can't be read whether they were to go; forget them by id";
        told.push_str(&format!("; {undecided} {why}{}", names(answer.get("undecided"))));
    }
    let derived = answer.get("derived").and_then(Value::as_array).into_iter().flatten();
    let derived: Vec<_> = derived.filter_map(Value::as_str).map(str::to_owned).collect();
    told.push_str(&still_told(&derived));
    told
}

/// The versions that a forget left where they are.
pub(crate) fn versions_left(answer: &Value) -> String {
    let ids = |name: &str| answer.get(name).and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let (newer, to_come) = (ids("later"), ids("to_come"));
    let all = answer.get("versions_left").and_then(Value::as_u64).unwrap_or_default();
    let other = match all.saturating_sub(newer + to_come) {
        0 => String::new(),
        count => format!("{} still there", of(count, "earlier version is", "earlier versions are")),
    };
    let newer = match newer {
        0 => String::new(),
        1 => format!("the text that took its place is still there{}", staying(answer, "later")),
        count => {
            format!("the {count} texts that took its place are still there{}", staying(answer, "later"))
        }
    };
    let to_come = match to_come {
        0 => String::new(),
        1 => format!("the text that is to take its place is still there{}", staying(answer, "to_come")),
        count => {
            format!(
                "the {count} texts that are to take its place are still there{}",
                staying(answer, "to_come")
            )
        }
    };
    let takes = match all {
        0 => return String::new(),
        1 => " (with an id, --with-history takes it too)",
        _ => " (with an id, --with-history takes them too)",
    };
    let told: Vec<String> = [other, newer, to_come].into_iter().filter(|told| !told.is_empty()).collect();
    format!("; {}{takes}", told.join("; "))
}

/// The memories of a list of the answer, each with the beginning of what it says.
fn staying(answer: &Value, list: &str) -> String {
    let texts = answer.get("staying").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let told = |id: &Value| {
        let text =
            texts.iter().find(|one| one.get("id") == Some(id)).and_then(|one| one.get("text")?.as_str());
        let id = id.as_str().unwrap_or_default();
        Value::String(
            text.map_or_else(|| id.to_owned(), |text| format!("{id} “{}”", short(text, TEXT_CHARS))),
        )
    };
    let ids = answer.get(list).and_then(Value::as_array).into_iter().flatten();
    names(Some(&Value::Array(ids.map(told).collect())))
}

/// Some names behind a count of them, the first ones where they are many.
pub(crate) fn names(all: Option<&Value>) -> String {
    let all = all.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named: Vec<&str> = all.iter().take(NAMED).filter_map(Value::as_str).collect();
    let more = all.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if named.is_empty() { String::new() } else { format!(": {}{more}", named.join(", ")) }
}

/// Summaries that stay, and may tell of what went.
pub(crate) fn still_told(summaries: &[String]) -> String {
    match summaries {
        [] => String::new(),
        stay => {
            let summaries = of(stay.len() as u64, "summary", "summaries");
            format!("; {summaries} may still tell of it: {}", stay.join(", "))
        }
    }
}

/// A file before and after.
pub(crate) fn bytes(what: &str, document: &Value) -> String {
    let size = |name: &str| size(document.get(name).and_then(Value::as_u64).unwrap_or_default());
    format!("{what}: {} before, {} after", size("bytes_before"), size("bytes_after"))
}

/// A namespace that is not there, and those that are.
pub(crate) fn no_namespace(missing: &NamespaceName, known: &[NamespaceName]) -> String {
    let named: Vec<_> = known.iter().take(5).map(NamespaceName::as_str).collect();
    let more = if known.len() > named.len() { ", …" } else { "" };
    let told = match named.is_empty() {
        true => format!("There is no namespace {missing}, nor any other: nothing is stored yet"),
        false => format!("There is no namespace {missing}; the file has {}{more}", named.join(", ")),
    };
    printable(&told)
}

/// A number of bytes.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = UNITS.into_iter().find(|(least, _)| bytes >= *least);
    unit.map_or(format!("{bytes} bytes"), |(least, name)| {
        let tenths = u128::from(bytes) * 10 / u128::from(least);
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    })
}

/// A count with its noun.
pub(crate) fn of(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
