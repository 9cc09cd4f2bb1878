//! What is told of one memory: what it says, where it comes from, what happened to it, what stands in its place.

use std::sync::Arc;

use jiff::Timestamp;
use oubliette::Time;
use oubliette::exchange::journal_json;
use oubliette::report::{Explanation, Op};
use serde_json::Value;

use crate::caller::Caller;
use crate::output::plain;
use crate::told;

/// Seconds of the units in which an age is told, the longest first. A month has 30 days, a year 365.
const UNITS: [(u64, &str, &str); 5] = [
    (31_536_000, "year", "years"),
    (2_592_000, "month", "months"),
    (86_400, "day", "days"),
    (3_600, "hour", "hours"),
    (60, "minute", "minutes"),
];
/// Events of a story, the latest ones.
const EVENTS: usize = 12;
/// Ids that a sentence names.
const NAMED: usize = 3;
/// What is said of a memory that will be true.
const NOT_YET: &str = "not true yet";
/// What is said of a memory that was true.
const NO_LONGER: &str = "no longer true";
/// What is said of a memory that was to be true and was overtaken before.
const NEVER: &str = "never true";

/// The present instant, and whoever reads of it. A zone is looked up on the disk, so only where a date is told.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    pub(crate) at: Time,
    pub(crate) reader: Arc<Caller>,
}

/// A local date with its distance from the present, such as `2026-03-01 10:00+01:00 (3 days ago)`.
pub(crate) fn when(at: Time, now: &Present) -> String {
    format!("{} ({})", local(at, now), distance(at, now.at))
}

/// A local date with its offset, such as `2026-03-01 10:00+01:00`: what is typed without one is read as UTC, so a date that is
/// shown without one would mean another instant when it is typed.
pub(crate) fn local(at: Time, now: &Present) -> String {
    let Ok(stamp) = Timestamp::from_millisecond(at.as_millis()) else { return at.to_string() };
    let zoned = stamp.to_zoned(now.reader.zone());
    let form = if zoned.offset().seconds() == 0 { "%Y-%m-%d %H:%MZ" } else { "%Y-%m-%d %H:%M%:z" };
    zoned.strftime(form).to_string()
}

/// The same of an instant that is text; another text stays as it is.
pub(crate) fn date(text: &str, now: &Present) -> String {
    text.parse().map_or_else(|_| text.to_owned(), |at| when(at, now))
}

/// A document with its instants as local dates, but for what was said in it: a text stays as it is.
pub(crate) fn dated(mut document: Value, now: &Present) -> Value {
    const SAID: [&str; 6] = ["text", "key", "keys", "tags", "metadata", "payload"];
    match &mut document {
        Value::String(text) => *text = date(text, now),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = dated(item.take(), now)),
        Value::Object(members) => {
            for (_, value) in members.iter_mut().filter(|(name, _)| !SAID.contains(&name.as_str())) {
                *value = dated(value.take(), now);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    document
}

fn distance(at: Time, now: Time) -> String {
    let millis = now.as_millis().saturating_sub(at.as_millis());
    let seconds = millis.unsigned_abs() / 1_000;
    let Some((length, one, many)) = UNITS.into_iter().find(|(length, ..)| seconds >= *length) else {
        return if millis < -1_000 { "in less than a minute" } else { "just now" }.to_owned();
    };
    // What is to come is told to the nearest: an end in five days is so in the next instant, too.
    let count = if millis < 0 { (seconds + length / 2) / length } else { seconds / length };
    let count = told::of(count, one, many);
    if millis < 0 { format!("in {count}") } else { format!("{count} ago") }
}

/// How a person names the memory with an id, such as by the beginning of its text.
pub(crate) type Called<'c> = &'c dyn Fn(&str) -> String;

/// Whether `undo` can take a run back, by its id.
pub(crate) type Undoable<'c> = &'c dyn Fn(&str) -> bool;

/// A document of which a story is told.
#[derive(Clone, Copy)]
struct Subject<'d> {
    members: &'d Value,
    now: &'d Present,
    called: Called<'d>,
    undoable: Undoable<'d>,
}

impl<'d> Subject<'d> {
    fn text(self, name: &str) -> Option<&'d str> {
        self.members.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    fn count(self, name: &str) -> u64 {
        self.members.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    fn at(self, name: &str) -> Option<Time> {
        self.text(name)?.parse().ok()
    }

    fn when(self, name: &str) -> Option<String> {
        Some(when(self.at(name)?, self.now))
    }

    fn list(self, name: &str) -> &'d [Value] {
        self.members.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn within(self, name: &str) -> Option<Subject<'d>> {
        let members = self.members.get(name).filter(|members| members.is_object())?;
        Some(Subject { members, ..self })
    }

    /// Whether it has a superseder that takes its place later. Until then the memory is the one that is true.
    fn is_replaced_ahead(self) -> bool {
        self.text("supersede_mode") == Some("replaced")
            && self.at("valid_to").is_some_and(|end| end > self.now.at)
    }
}

/// `get`: a memory, or the tombstone of one, as lines. It was asked for by a name.
pub(crate) fn memory(
    asked: &str,
    document: &Value,
    now: &Present,
    called: Called<'_>,
    undoable: Undoable<'_>,
) -> Vec<String> {
    let of = Subject { members: document, now, called, undoable };
    if let Some(stone) = of.within("tombstone") {
        return tombstone(asked, of, stone);
    }
    let mut lines = Vec::new();
    lines.extend(of.text("text").map(str::to_owned));
    lines.push(String::new());
    lines.push(standing(of));
    lines.extend(origin(of));
    lines.extend(end(of, &reason));
    lines.extend(details(of));
    lines
}

/// Name, sort and place of a memory.
fn standing(of: Subject<'_>) -> String {
    let mut told = told::name(of.members).to_owned();
    let (kind, tier) = (of.text("kind").unwrap_or_default(), of.text("tier").unwrap_or_default());
    told.push_str(&format!(": {kind}, {tier}"));
    told.extend(of.text("significance").filter(|word| *word != "routine").map(|word| format!(", {word}")));
    if of.members.get("pinned") == Some(&Value::Bool(true)) {
        told.push_str(", pinned");
    }
    told.push_str(&format!(", in {}", of.text("namespace").unwrap_or("default")));
    told.extend(of.text("agent").map(|agent| format!(", the part of {agent}")));
    told
}

/// Where a memory comes from, and what it was good for.
fn origin(of: Subject<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(of.when("recorded_at").map(|when| format!("Stored {when}.")));
    let day = |name: &str| of.at(name).map(Time::day);
    if day("created_at") != day("recorded_at") {
        lines.extend(of.when("created_at").map(|when| format!("Created {when}.")));
    }
    if of.at("updated_at") > of.at("recorded_at") {
        lines.extend(of.when("updated_at").map(|when| format!("Changed {when}.")));
    }
    lines.extend(of.when("happened_at").map(|when| format!("Tells of {when}.")));
    if let Some(author) = of.within("author") {
        let name = [author.text("kind"), author.text("id")].into_iter().flatten().collect::<Vec<_>>();
        lines.push(format!("By {}.", name.join(" ")));
    }
    match of.count("reinforcement_count") {
        0 | 1 => {}
        count => lines.push(format!("Stands for {count} observations.")),
    }
    if of.count("retrieval_count") > 0 {
        let last = of.when("last_retrieved").map(|when| format!(", the last {when}")).unwrap_or_default();
        let searches = told::of(of.count("retrieval_count"), "search", "searches");
        lines.push(format!("Found by {searches}{last}."));
    }
    let sources = of.list("source_memory_ids").len() as u64;
    if sources > 0 {
        let gone = match of.count("source_forgotten") {
            0 => String::new(),
            gone => format!(", of which {gone} {} forgotten since", if gone == 1 { "was" } else { "were" }),
        };
        lines
            .push(format!("Made of {}{gone}; `expand` lists them.", told::of(sources, "memory", "memories")));
    }
    lines
}

/// How long a memory holds, and what stands in its place. `reason` says in words why it was removed.
fn end(of: Subject<'_>, reason: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    let valid: Vec<_> = [("from", "valid_from"), ("until", "valid_to")]
        .into_iter()
        .filter_map(|(word, name)| Some(format!("{word} {}", of.when(name)?)))
        .collect();
    if !valid.is_empty() {
        lines.push(format!("True {}.", valid.join(" ")));
    }
    if let (Some(at), Some(when)) = (of.at("expires_at"), of.when("expires_at")) {
        lines.push(format!("{} {when}.", if at <= of.now.at { "Ended" } else { "Ends" }));
    }
    if let Some(by) = of.text("superseded_by") {
        let by = begun(&(of.called)(by));
        lines.push(match of.when("valid_to").filter(|_| of.is_replaced_ahead()) {
            Some(from) => format!("{by} takes its place {from}."),
            None => format!("{by} took its place {}.", of.when("superseded_at").unwrap_or_default()),
        });
    }
    if let Some(end) = of.text("resolves_to").filter(|end| Some(*end) != of.text("superseded_by")) {
        lines.push(format!("What is true now: {}.", (of.called)(end)));
    }
    if let (Some(limbo), Some(when)) = (of.within("limbo"), of.when("removed_at")) {
        let reason = reason(limbo.text("reason").unwrap_or("removed"));
        lines.push(format!("Maintenance removed it {when}: {reason}."));
        // Past its horizon a run is not undone any more, and what it removed can be brought back one by one until a sweep.
        let run = limbo.text("run_id").filter(|run| (of.undoable)(run));
        let undo = run.map(|run| format!("`undo {run}` or ")).unwrap_or_default();
        // A key leads to what has it now.
        let id = of.text("id").unwrap_or_default();
        lines.push(format!("{undo}`restore {id}` brings it back."));
    }
    lines
}

/// What else was said of a memory.
fn details(of: Subject<'_>) -> Vec<String> {
    let lists = [("Tags", "tags"), ("Categories", "categories")];
    let lists = lists.into_iter().filter(|(_, name)| !of.list(name).is_empty());
    let mut lines: Vec<String> = lists
        .map(|(word, name)| {
            format!("{word}: {}", of.list(name).iter().map(plain).collect::<Vec<_>>().join(", "))
        })
        .collect();
    let named = |item: &Value, what: &str, role: &str| {
        let [what, role] = [what, role].map(|name| item.get(name).map(plain).unwrap_or_default());
        format!("{what} ({role})")
    };
    for (word, name, what, role) in
        [("Entities", "entities", "name", "role"), ("Links", "links", "to", "relation")]
    {
        let items: Vec<_> = of.list(name).iter().map(|item| named(item, what, role)).collect();
        if !items.is_empty() {
            lines.push(format!("{word}: {}", items.join(", ")));
        }
    }
    let mut members = Vec::new();
    of.members.get("metadata").into_iter().for_each(|metadata| values("", metadata, &mut members));
    if !members.is_empty() {
        lines.push(format!("Metadata: {}", members.join(", ")));
    }
    let payload = of.members.get("payload").filter(|payload| !payload.is_null());
    lines.extend(payload.map(|payload| format!("Payload: {}", shown(payload))));
    let vector = of.list("vector");
    if !vector.is_empty() {
        let numbers = vector.iter().map(plain).collect::<Vec<_>>().join(" ");
        lines.push(format!("Vector of {} dimensions: {numbers}", vector.len()));
    }
    lines
}

/// The values of metadata behind their names; those of objects in objects by their path, and those of a list one by one.
fn values(path: &str, value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                values(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value, all);
            }
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                Value::Object(_) | Value::Array(_) => {
                    let mut inner = Vec::new();
                    values("", item, &mut inner);
                    format!("({})", inner.join(", "))
                }
                item => plain(item),
            });
            all.push(format!("{path} {}", items.collect::<Vec<_>>().join(", ")).trim_start().to_owned());
        }
        value => all.push(format!("{path} {}", plain(value)).trim_start().to_owned()),
    }
}

/// A payload: a text as it is, JSON as JSON.
fn shown(payload: &Value) -> String {
    payload.as_str().map_or_else(|| payload.to_string(), str::to_owned)
}

fn tombstone(asked: &str, of: Subject<'_>, stone: Subject<'_>) -> Vec<String> {
    let namespace = of.text("namespace").unwrap_or("default");
    let reason = reason(stone.text("reason").unwrap_or("forget"));
    let when = stone.when("deleted_at").unwrap_or_default();
    let mut lines = vec![format!("{asked} is gone from {namespace}."), format!("Removed {when}: {reason}.")];
    lines.extend(stone.text("replaced_by").map(|by| format!("{} took its place.", begun(&(of.called)(by)))));
    lines.extend(
        of.text("resolves_to")
            .filter(|end| Some(*end) != stone.text("replaced_by"))
            .map(|end| format!("What is true now: {}.", (of.called)(end))),
    );
    lines.extend(stone.text("run_id").map(|run| format!("It went in run {run}.")));
    // What was forgotten in limbo had been removed before.
    let erased = stone.when("erased_at").filter(|_| stone.at("erased_at") > stone.at("deleted_at"));
    lines.extend(erased.map(|when| format!("What it said was erased {when}.")));
    lines.extend(stone.when("forgotten_at").map(|when| format!("It was forgotten {when}.")));
    lines
}

/// `explain`: the story of a memory, and the memory itself where it is still there.
pub(crate) fn explanation(
    name: &str,
    (document, explained): (&Value, &Explanation),
    memory: Option<&Value>,
    (now, called, undoable): (&Present, Called<'_>, Undoable<'_>),
    verbose: bool,
) -> Vec<String> {
    let of = Subject { members: document, now, called, undoable };
    let memory = memory.map(|members| Subject { members, ..of });
    let text = memory.and_then(|memory| memory.text("text"));
    let mut lines: Vec<String> = text.map(|text| vec![text.to_owned(), String::new()]).unwrap_or_default();
    lines.push(format!("{name} is {}.", condition(of.text("state").unwrap_or("live"), memory)));
    if let Some(created) = of.within("created") {
        // The journal keeps for a while who stored it; the memory keeps when.
        let by = created.text("actor").map(|actor| format!(" by the {actor}")).unwrap_or_default();
        let run = created.text("run").map(|run| format!(", in run {run}")).unwrap_or_default();
        let when = created.when("at").or_else(|| memory.and_then(|memory| memory.when("recorded_at")));
        lines.extend(when.map(|when| format!("Stored {when}{by}{run}.")));
    }
    for (name, what) in [("merged_from", "Merged into it"), ("replaces", "It took the place of")] {
        lines.extend(named(of, name).map(|names| format!("{what}: {names}.")));
    }
    let reason = |name: &str| reason_told(explained, name);
    // What is gone has no validity and no end any more.
    lines.extend(memory.map(|memory| end(memory, &reason)).unwrap_or_default());
    if memory.is_none() {
        lines.extend(of.text("replaced_by").map(|by| format!("{} took its place.", begun(&called(by)))));
    }
    if let Some(removed) = of.within("removed").filter(|_| memory.is_none()) {
        let reason = reason(removed.text("reason").unwrap_or("removed"));
        let run = removed.text("run").map(|run| format!(", in run {run}")).unwrap_or_default();
        lines.push(format!("Removed {}: {reason}{run}.", removed.when("at").unwrap_or_default()));
    }
    if let Some(family) = of.within("family") {
        lines.push(format!("It stands for {} repeated messages.", family.count("dup_count")));
    }
    if of.count("source_forgotten") > 0 {
        let gone = told::of(of.count("source_forgotten"), "source of it was", "sources of it were");
        lines.push(format!("{gone} forgotten since it was made."));
    }
    if let Some(last) = of.list("contexts").first() {
        let last = Subject { members: last, ..of };
        let contexts = told::of(of.list("contexts").len() as u64, "context", "contexts");
        let when = last.when("at").unwrap_or_default();
        lines.push(format!("It was in {contexts}, the last {when}."));
    }
    lines.extend(happenings(of, explained, verbose));
    lines
}

/// Why a memory is gone, as [`reason`] says it; of one that was pruned the rule and its numbers, as far as the journal goes back.
fn reason_told(explained: &Explanation, name: &str) -> String {
    let removal = explained.events.iter().rev().find(|event| event.op == Op::Retire);
    let why = removal.and_then(|event| event.evidence.signature.as_deref());
    match why.filter(|_| name == "pruned") {
        Some(why) => format!("it was pruned for {why}"),
        None => reason(name),
    }
}

/// The latest events, a line each, the oldest first; with `verbose` all of them, and why each happened.
fn happenings(of: Subject<'_>, explained: &Explanation, verbose: bool) -> Vec<String> {
    let events = &explained.events;
    let left_out = if verbose { 0 } else { events.len().saturating_sub(EVENTS) };
    let mut lines = Vec::new();
    if !events.is_empty() {
        lines.push(String::new());
    }
    if left_out > 0 {
        let earlier = told::of(left_out as u64, "earlier event", "earlier events");
        lines.push(format!("… {earlier} (-v tells all)"));
    }
    lines.extend(events.iter().skip(left_out).map(|event| {
        let event = Subject { members: &journal_json(event), ..of };
        let mut fields: Vec<String> = Vec::new();
        let changed = event.list("changes").iter().filter_map(|change| change.get("field")?.as_str());
        for name in changed.filter_map(|name| field(name, verbose)) {
            // A pass that unites many names the same field for each of them.
            if !fields.contains(&name) {
                fields.push(name);
            }
        }
        let fields = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
        let op = happened(event.text("op").unwrap_or_default());
        let actor = event.text("actor").unwrap_or_default();
        let why = if verbose { why(event) } else { String::new() };
        format!("{}  {op}{fields} by {actor}{why}", event.when("at").unwrap_or_default())
    }));
    lines
}

/// The rule of an event, its evidence, its subject and its run.
fn why(event: Subject<'_>) -> String {
    let evidence = event.members.get("evidence").map(plain).filter(|evidence| !evidence.is_empty());
    let told = [
        event.text("rule").map(|rule| format!(": rule {rule}")),
        evidence.map(|evidence| format!(", evidence {evidence}")),
        event.text("subject").map(|id| format!(", memory {id}")),
        event.text("run").map(|run| format!(", run {run}")),
    ];
    told.into_iter().flatten().collect()
}

/// How it stands with a memory that is shown, in the words of a person.
pub(crate) fn condition_of(memory: &Value, now: &Present) -> String {
    let of = shown_alone(memory, now);
    condition(of.text("state").unwrap_or("live"), Some(of))
}

/// The same, with the instant from which it is true, or at which that ended.
pub(crate) fn validity_of(memory: &Value, now: &Present) -> String {
    let (of, told) = (shown_alone(memory, now), condition_of(memory, now));
    let since = match told.as_str() {
        NOT_YET => of.when("valid_from").map(|from| format!(": valid from {from}")),
        NO_LONGER => of.when("valid_to").map(|to| format!(": ended {to}")),
        _ => None,
    };
    told + &since.unwrap_or_default()
}

/// A memory of which no other memory and no run is told.
fn shown_alone<'d>(memory: &'d Value, now: &'d Present) -> Subject<'d> {
    Subject { members: memory, now, called: &str::to_owned, undoable: &|_| false }
}

/// How it stands with a memory, in the words of a person.
fn condition(state: &str, memory: Option<Subject<'_>>) -> String {
    let ends = |name: &str| memory.and_then(|memory| memory.at(name));
    let now = memory.map(|memory| memory.now.at);
    let (from, to) = (ends("valid_from"), ends("valid_to"));
    let state = match state {
        "superseded" if memory.is_some_and(Subject::is_replaced_ahead) => "live",
        state => state,
    };
    match state {
        "tombstoned" => "gone",
        "limbo" => "in limbo",
        "live" if to.is_some() && to <= from => NEVER,
        "live" if to.is_some() && to <= now => NO_LONGER,
        "live" if from.is_some() && from > now => NOT_YET,
        state => state,
    }
    .to_owned()
}

/// An operation of the journal, as commands name what they did.
pub(crate) fn happened(op: &str) -> String {
    match op {
        "insert" => "stored",
        "hold" => "written once more",
        "update" | "adjust" => "changed",
        "supersede" => "replaced",
        "restore" | "return" => "brought back",
        "remove" => "removed",
        "detach" => "left by one of its writers",
        "reinforce" => "used",
        "recreate" => "taken over from an export or another namespace",
        "merge" => "united with duplicates",
        "retire" => "put into limbo",
        "ignore" => "not stored",
        "event" => "written as a message",
        "withdraw" => "taken back with an import",
        "rename" => "given another key",
        other => return words(other),
    }
    .to_owned()
}

/// A field of a change, by the name of what a person gave; none for what only the database keeps, unless it is `verbose`.
fn field(name: &str, verbose: bool) -> Option<String> {
    const KEPT: [&str; 5] = ["version", "merged", "cluster_id", "is_representative", "expires_by"];
    match name {
        "embedding_space" => Some("vector".to_owned()),
        name if verbose => Some(name.to_owned()),
        "reinforcement_count" => Some("observations".to_owned()),
        name if KEPT.contains(&name) || name.contains('.') && !name.starts_with("metadata.") => None,
        name => Some(words(name)),
    }
}

/// The memories of a list, a few by name, and how many others there are.
fn named(of: Subject<'_>, list: &str) -> Option<String> {
    let all = of.list(list);
    let named: Vec<_> = all.iter().take(NAMED).map(|id| (of.called)(&plain(id))).collect();
    let more = all.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

/// Why a memory is gone, in the words of a person.
pub(crate) fn reason(name: &str) -> String {
    match name {
        "forget" => "it was forgotten",
        "forget_by_tag" => "it was forgotten by its tag",
        "undone" => "the run that wrote it was taken back",
        "expired" => "its life was over",
        "cap_evicted" => "there were more short-term memories than the policy allows",
        "collapsed" => "it said the same as another memory",
        "superseded_purged" => "it was superseded long ago",
        "pruned" => "it was of little use, or too old",
        "summarized" => "it stands in a summary",
        "snapshot_replaced" => "a later snapshot of the same period came",
        "namespace_dropped" => "its namespace was dropped",
        "retention" => "its retention time was over",
        "moved" => "it is in another namespace now",
        other => return words(other),
    }
    .to_owned()
}

/// The beginning of a sentence.
fn begun(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// A name of the contract as words.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_told_in_its_longest_unit() {
        let now: Time = "2026-03-10T12:00:00Z".parse().unwrap();
        for (at, told) in [
            ("2026-03-10T11:59:30Z", "just now"),
            ("2026-03-10T12:00:30Z", "in less than a minute"),
            ("2026-03-10T11:59:00Z", "1 minute ago"),
            ("2026-03-10T09:30:00Z", "2 hours ago"),
            ("2026-03-07T11:00:00Z", "3 days ago"),
            ("2026-05-10T12:00:00Z", "in 2 months"),
            ("1996-03-10T12:00:00Z", "30 years ago"),
            ("0001-01-01T00:00:00Z", "2026 years ago"),
        ] {
            assert_eq!(distance(at.parse().unwrap(), now), told, "{at}");
        }
    }
}
