//! A memory as one JSON line: what a caller wants remembered, or what an export wrote.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::error::{Error, NO_FIELD, NO_MEMORY, Result};
use crate::exchange::line::{DraftLine, ParsedLine, mistyped, strict, text, typed, wrong};
use crate::exchange::{restore, told};
use crate::json::{Members, Refusal, clean};
use crate::limits::{DIM_MAX, EXPORT_LINE_BYTES_MAX, LINE_BYTES_MAX};
use crate::model::closed::nearest;
use crate::model::{Entity, Expiry, Payload, Significance, Span, SupersedeMode, Tier};

/// Reads one line: a JSON object in UTF-8 whose members are the fields of a memory by their names.
///
/// A line with `id` and `holders` is one of an export and gives [`ParsedLine::Memory`]; the HMACs of the fields
/// that its holders gave are zero, for they depend on the database. One whose member `tombstone`, `run`, `step`,
/// `aggregate`, `event`, `context` or `goal` is an object gives [`ParsedLine::Kept`]. Any other one gives [`ParsedLine::Draft`]; `lenient` moves members that are no
/// field of a draft into its metadata. The names of other tools are taken as well: `content`, `embedding`,
/// `source_memory_ids`, `memory_type` and `relevance_scores`. `null` for a field that can't be null says nothing.
///
/// # Errors
/// `Invalid` that names the member: malformed JSON, a member that stands twice, an unknown member or kind, a
/// value of another type, NUL in a text, a field that only an export may carry.
///
/// ```
/// use oubliette::exchange::{ParsedLine, parse_line};
/// let line = parse_line(br#"{"text":"Ann prefers tea","tags":["drink"],"ttl":"30d"}"#, false)?;
/// let ParsedLine::Draft(line) = line else { unreachable!() };
/// assert_eq!(line.draft.text, "Ann prefers tea");
/// assert!(parse_line(br#"{"text":"x","colour":"red"}"#, false).is_err());
/// # Ok::<(), oubliette::Error>(())
/// ```
pub fn parse_line(text: &[u8], lenient: bool) -> Result<ParsedLine> {
    check_length(text, EXPORT_LINE_BYTES_MAX)?;
    let text = std::str::from_utf8(text).map_err(|why| {
        Error::invalid("line", "must be UTF-8", format!("other bytes from byte {} on", why.valid_up_to()))
    })?;
    let members: Members<'_> = serde_json::from_str(text)
        .map_err(|why| wrong("line", format!("{NO_MEMORY}: {}", clean(&why)), text))?;
    if let Some(sort) = told::sort_of(&members) {
        return told::read(members, sort).map(|line| ParsedLine::Kept(Box::new(line)));
    }
    let has = |wanted: &str| members.0.iter().any(|(name, raw)| name == wanted && raw.get() != "null");
    let mut reader = Reader { lenient, exported: has("id") && has("holders"), ..Reader::default() };
    if !reader.exported {
        check_length(text.as_bytes(), LINE_BYTES_MAX)?;
    }
    for (name, raw) in members.0 {
        reader.member(&name, raw)?;
    }
    reader.finish()
}

fn check_length(line: &[u8], most: usize) -> Result<()> {
    if line.len() > most {
        let why = format!("must be at most {most} bytes");
        return Err(Error::invalid("line", why, format!("{} bytes", line.len())));
    }
    Ok(())
}

/// The numbers of a list, each the f32 that is nearest to its digits.
///
/// The list is JSON already. Going from the digits to f32 at once is exact, where the way over f64 rounds twice.
fn vector(name: &str, raw: &RawValue) -> Result<Option<Vec<f32>>> {
    const WHY: &str = "must be a list of finite numbers";
    let text = raw.get();
    if text == "null" {
        return Ok(None);
    }
    let list = text.strip_prefix('[').and_then(|list| list.strip_suffix(']')).map(str::trim);
    let list = list.ok_or_else(|| wrong(name, WHY, text))?;
    let mut numbers = Vec::new();
    if list.is_empty() {
        return Ok(Some(numbers));
    }
    for digits in list.split(',') {
        let number: f32 = digits.trim().parse().map_err(|_| wrong(name, WHY, digits))?;
        if !number.is_finite() {
            return Err(wrong(name, WHY, digits));
        }
        if numbers.len() == DIM_MAX {
            return Err(wrong(name, format!("must have 1 to {DIM_MAX} dimensions"), "more"));
        }
        numbers.push(number);
    }
    Ok(Some(numbers))
}

/// A list of entities; a plain text is the name of one that is mentioned.
fn entities(name: &str, raw: &RawValue) -> Result<Option<Vec<Entity>>> {
    let read = |item: Value| match item {
        Value::String(entity) => serde_json::from_value(json!({ "name": entity })),
        item => serde_json::from_value(item),
    };
    match strict(name, raw)? {
        Value::Null => Ok(None),
        Value::Array(items) => {
            let list: std::result::Result<_, _> = items.into_iter().map(read).collect();
            list.map(Some).map_err(|why| mistyped(name, Refusal::whole(clean(&why)), raw.get()))
        }
        _ => Err(wrong(name, "must be a list of entities", raw.get())),
    }
}

/// A payload of a memory: a JSON value, or bytes in Base64; a null is none.
fn payload(given: &str, name: &str, raw: &RawValue) -> Result<Option<Payload>> {
    if name == "payload" {
        let value = strict(given, raw)?;
        return Ok(Some(value).filter(|value| !value.is_null()).map(Payload::Json));
    }
    let Some(text) = text(given, raw)? else { return Ok(None) };
    let bytes = STANDARD.decode(text.as_bytes()).map_err(|why| {
        let shown = format!("{} characters", text.len());
        Error::invalid(given, format!("must be Base64 with padding: {why}"), shown)
    })?;
    Ok(Some(Payload::Bytes(bytes)))
}

/// The spelling of ours for the name of a member.
fn canonical(name: &str) -> &str {
    match name {
        "content" => "text",
        "embedding" => "vector",
        "source_memory_ids" => "sources",
        "memory_type" => "kind",
        "last_retrieved_timestamp" => "last_retrieved",
        "accumulated_relevance_score" => "relevance_score_sum",
        "retrieval_relevance_count" => "relevance_score_count",
        name => name,
    }
}

/// The members of a line as they are read, one after the other.
#[derive(Default)]
struct Reader<'a> {
    lenient: bool,
    exported: bool,
    line: DraftLine,
    /// Names that were read, in our spelling.
    seen: BTreeSet<String>,
    expires: Option<Expiry>,
    ttl: Option<Span>,
    /// Members that only an export may carry.
    kept: Vec<(&'static str, &'a RawValue)>,
    /// Members that are no field, to go into the metadata.
    unknown: Map<String, Value>,
}

impl<'a> Reader<'a> {
    /// Notes that `name` was given, by itself or as part of the member `given`.
    fn once(&mut self, name: &str, given: &str) -> Result<()> {
        if self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        Err(Error::invalid(given, "must not stand twice, nor under two names", name))
    }

    fn member(&mut self, given: &str, raw: &'a RawValue) -> Result<()> {
        let name = canonical(given);
        self.once(name, given)?;
        let line = &mut self.line;
        let draft = &mut line.draft;
        match name {
            "namespace" => {
                line.namespace = text(given, raw)?.map(|name| name.parse()).transpose()?;
            }
            "text" => match text(given, raw)? {
                Some(text) => draft.text = text,
                None => return Err(wrong(given, "must be a text", "null")),
            },
            "vector" => draft.vector = vector(given, raw)?,
            "key" => draft.key = text(given, raw)?,
            "agent" => draft.agent = text(given, raw)?,
            "expires_at" => {
                let at = typed::<Option<_>>(given, raw)?;
                self.expires = Some(at.map_or(Expiry::Never, Expiry::At));
            }
            "ttl" => self.ttl = typed(given, raw)?,
            "tags" => draft.tags = typed(given, raw)?,
            "categories" => draft.categories = typed(given, raw)?,
            "entities" => draft.entities = entities(given, raw)?,
            "links" => draft.links = typed(given, raw)?,
            "sources" => draft.sources = typed(given, raw)?,
            "supersedes" => {
                draft.supersedes = match raw.get().starts_with('"') {
                    true => vec![typed(given, raw)?],
                    false => typed::<Option<_>>(given, raw)?.unwrap_or_default(),
                };
            }
            "supersede_mode" => draft.supersede_mode = typed::<Option<SupersedeMode>>(given, raw)?,
            "payload" | "payload_base64" => {
                let other = if name == "payload" { "payload_base64" } else { "payload" };
                if self.seen.contains(other) {
                    return Err(wrong(given, format!("must not stand beside {other}"), raw.get()));
                }
                draft.payload = payload(given, name, raw)?;
            }
            "author" => self.author(raw)?,
            "relevance_scores" => self.relevance_scores(raw)?,
            // An export writes as many ids as were merged, and a list of ids can't nest: only the bound of the line holds.
            "consolidated_from" => draft.fields.consolidated_from = typed(given, raw)?,
            "tier" | "significance" => self.level(given, name, raw)?,
            _ => self.field(given, name, raw)?,
        }
        Ok(())
    }

    /// A field of the table, one that the engine keeps, or an unknown one.
    fn field(&mut self, given: &str, name: &str, raw: &'a RawValue) -> Result<()> {
        let kept = restore::KEPT.iter().find(|kept| **kept == name);
        if let (Some(kept), true) = (kept, self.exported) {
            self.kept.push((kept, raw));
            return Ok(());
        }
        let value = strict(given, raw)?;
        let shown = raw.get();
        let set = self.line.draft.fields.set_json(name, value.clone()).map_err(|error| match error {
            Error::Invalid { why, .. } => mistyped(given, Refusal::whole(why), shown),
            error => error,
        })?;
        if set {
            return Ok(());
        }
        if self.lenient {
            self.unknown.insert(given.to_owned(), value);
            return Ok(());
        }
        Err(match kept {
            Some(_) => wrong(
                given,
                "is kept by the engine: only a line of an export, with id and holders, carries it; `key` holds a name of your own",
                shown,
            ),
            None => wrong(given, NO_FIELD, shown),
        })
    }

    /// A tier or a significance: an unknown name is the default one, with a warning.
    fn level(&mut self, given: &str, name: &str, raw: &RawValue) -> Result<()> {
        let Some(level) = text(given, raw)? else { return Ok(()) };
        let fields = &mut self.line.draft.fields;
        let (fallback, names) = if name == "tier" {
            let tier = level.parse();
            fields.tier = Some(*tier.as_ref().unwrap_or(&Tier::Semantic));
            let names: Vec<&str> = Tier::ALL.iter().map(|tier| tier.as_str()).collect();
            (tier.is_err().then_some(Tier::Semantic.as_str()), names)
        } else {
            let significance = level.parse();
            fields.significance = Some(*significance.as_ref().unwrap_or(&Significance::Routine));
            let names = Significance::ALL.iter().map(|significance| significance.as_str()).collect();
            (significance.is_err().then_some(Significance::Routine.as_str()), names)
        };
        if let Some(fallback) = fallback {
            let shown: String = level.chars().take(40).collect();
            let near = nearest(&names, &level).map(|near| format!("; {near} is the nearest"));
            let near = near.unwrap_or_default();
            self.line.warnings.push(format!("{given}: {shown:?} is unknown, read as {fallback}{near}"));
        }
        Ok(())
    }

    /// `{"kind","id"}`, the short form of `author_kind` and `author_id`.
    fn author(&mut self, raw: &RawValue) -> Result<()> {
        let mut members = match strict("author", raw)? {
            Value::Null => Map::from_iter([("kind".to_owned(), Value::Null), ("id".to_owned(), Value::Null)]),
            Value::Object(members) => members,
            _ => return Err(wrong("author", "must be an object of kind and id", raw.get())),
        };
        for (member, name) in [("kind", "author_kind"), ("id", "author_id")] {
            if let Some(value) = members.shift_remove(member) {
                self.once(name, "author")?;
                let set = self.line.draft.fields.set_json(name, value.clone());
                set.map_err(|error| match error {
                    Error::Invalid { why, .. } => {
                        mistyped(&format!("author.{member}"), Refusal::whole(why), &value.to_string())
                    }
                    error => error,
                })?;
            }
        }
        match members.keys().next() {
            Some(other) => Err(wrong("author", format!("has no member {other:?}"), raw.get())),
            None => Ok(()),
        }
    }

    /// A list of relevances, folded into sum, count and maximum.
    fn relevance_scores(&mut self, raw: &RawValue) -> Result<()> {
        let Some(scores) = typed::<Option<Vec<f64>>>("relevance_scores", raw)? else { return Ok(()) };
        for name in ["relevance_score_sum", "relevance_score_count", "relevance_max"] {
            self.once(name, "relevance_scores")?;
        }
        let fields = &mut self.line.draft.fields;
        let scores = || scores.iter().map(|score| score.clamp(0.0, 1.0));
        fields.relevance_score_sum = Some(scores().sum());
        fields.relevance_score_count = Some(scores().count() as u64);
        fields.relevance_max = Some(scores().fold(0.0, f64::max) as f32);
        Ok(())
    }

    fn finish(mut self) -> Result<ParsedLine> {
        if !self.seen.contains("text") {
            return Err(Error::invalid("text", "is required", "no text"));
        }
        let draft = &mut self.line.draft;
        draft.expiry = match (self.expires, self.ttl) {
            (Some(Expiry::At(at)), Some(_)) => {
                return Err(Error::invalid("expires_at", "must not stand beside ttl", at));
            }
            // A ttl says more than an end that is null.
            (_, Some(ttl)) => Some(Expiry::After(ttl)),
            (expires, None) => expires,
        };
        if !self.unknown.is_empty() {
            let metadata = draft.fields.metadata.get_or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(metadata) = metadata else {
                return Err(Error::invalid("metadata", "must be a JSON object", metadata));
            };
            for (name, value) in self.unknown {
                if metadata.contains_key(&name) {
                    return Err(Error::invalid(
                        name,
                        "is no field of a memory, and metadata has it too",
                        value,
                    ));
                }
                metadata.insert(name, value);
            }
        }
        if self.exported {
            return restore::memory(self.line, &self.kept).map(|memory| ParsedLine::Memory(Box::new(memory)));
        }
        Ok(ParsedLine::Draft(Box::new(self.line)))
    }
}

#[cfg(test)]
mod tests;
