//! Fields as flags: they become a JSON line, so that names, types and errors are those of an import.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use oubliette::exchange::{DraftLine, NpyReader, ParsedLine, parse_line};
use oubliette::limits::{CONTENT_BYTES_MAX, LINE_BYTES_MAX, PAYLOAD_BYTES_MAX};
use oubliette::memory::{Fields, Payload, Significance, SupersedeMode, Tier};
use oubliette::{Error, Patch, Result};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::arguments::{AddOptions, FieldOptions, UpdateOptions};
use crate::caller::Caller;
use crate::output::Failure;
use crate::typed::{self, STREAM, Slot};

/// The new text of a memory.
const UPDATED: Slot = Slot { after: "update --text", name: "text", most: CONTENT_BYTES_MAX };

/// The members of a line. Typed JSON stays as it was typed, so that the reader of lines sees a name that stands twice.
#[derive(Default, Serialize)]
#[serde(transparent)]
struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    fn set(&mut self, name: &str, value: impl Serialize) -> Result<()> {
        let value = to_raw_value(&value).map_err(|_| no_json(name, "a value"))?;
        let text = value.get().to_owned();
        self.set_json(name, &text)
    }

    /// The word that was given for a field.
    fn word(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(|value| serde_json::from_str(value.get()).ok())
    }

    /// A payload of null would be left out silently, as if none had been given.
    fn check_payload(&self) -> Result<()> {
        match self.0.get("payload") {
            Some(payload) if payload.get() == "null" => Err(Error::invalid(
                "payload",
                "must not be null: leave it out, or use --clear payload",
                "null",
            )),
            _ => Ok(()),
        }
    }

    fn set_json(&mut self, name: &str, text: &str) -> Result<()> {
        let value = RawValue::from_string(text.to_owned());
        let value = value.map_err(|_| no_json(name, text))?;
        match self.0.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(name, "must not be given twice", text)),
        }
    }
}

fn no_json(name: &str, text: &str) -> Error {
    Error::invalid(name, "must be JSON", text)
}

impl FieldOptions {
    /// The flags that were given, as members of a line.
    fn members(&self) -> Result<Members> {
        let mut members = Members::default();
        let texts = [
            ("kind", &self.kind),
            ("significance", &self.significance),
            ("created_at", &self.created_at),
            ("happened_at", &self.happened_at),
            ("ttl", &self.ttl),
            ("valid_from", &self.valid_from),
            ("valid_to", &self.valid_to),
            ("channel", &self.channel),
            ("thread", &self.thread),
            ("session", &self.session),
            ("author_kind", &self.author_kind),
            ("author_id", &self.author_id),
        ];
        for (name, text) in texts {
            text.as_ref().map_or(Ok(()), |text| members.set(name, text))?;
        }
        self.tier.map_or(Ok(()), |tier| members.set("tier", tier))?;
        for (name, number) in [("importance", self.importance), ("confidence", self.confidence)] {
            if let Some(number) = number {
                // JSON has no such number: it would be read as if nothing had been given.
                if !number.is_finite() {
                    return Err(Error::invalid(name, "must be from 0 to 1", number));
                }
                members.set(name, number)?;
            }
        }
        match self.expires_at.as_deref() {
            Some("never") => members.set("expires_at", ())?,
            Some(at) => members.set("expires_at", at)?,
            None => {}
        }
        if self.pinned {
            members.set("pinned", true)?;
        }
        for (name, list) in [("tags", &self.tags), ("categories", &self.categories)] {
            if !list.is_empty() {
                members.set(name, list)?;
            }
        }
        self.add_relations(&mut members)?;
        self.add_json(&mut members)?;
        Ok(members)
    }

    fn add_relations(&self, members: &mut Members) -> Result<()> {
        if !self.entities.is_empty() {
            let entity = |text: &String| match text.split_once('=') {
                Some((name, role)) => json!({ "name": name, "role": role }),
                None => json!({ "name": text }),
            };
            members.set("entities", self.entities.iter().map(entity).collect::<Vec<_>>())?;
        }
        if !self.links.is_empty() {
            let link = |text: &String| match text.split_once('=') {
                Some((to, relation)) => Ok(json!({ "to": to, "relation": relation })),
                None => Err(Error::invalid("--link", "must be ID=RELATION", text)),
            };
            members.set("links", self.links.iter().map(link).collect::<Result<Vec<_>>>()?)?;
        }
        Ok(())
    }

    fn add_json(&self, members: &mut Members) -> Result<()> {
        if let Some(metadata) = &self.metadata {
            members.set_json("metadata", metadata)?;
        }
        for other in &self.others {
            let (name, value) =
                other.split_once('=').ok_or_else(|| Error::invalid("--field", "must be NAME=JSON", other))?;
            members.set_json(name, value)?;
        }
        if let Some(vector) = &self.vector {
            members.set_json("vector", vector)?;
        }
        Ok(())
    }

    /// The payload of a file, if one was named.
    fn payload_of_file(&self, caller: &Caller) -> Result<Option<Payload>> {
        let Some(path) = &self.payload else { return Ok(None) };
        let io = |source| Error::Io { action: "read", path: path.clone(), source };
        let mut bytes = Vec::new();
        // White space between the parts of a JSON text does not count.
        let most = LINE_BYTES_MAX as u64;
        let read = if path == Path::new("-") {
            caller.input().take(most + 1).read_to_end(&mut bytes)
        } else {
            File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        };
        read.map_err(io)?;
        if bytes.len() as u64 > most {
            return Err(Error::invalid(
                "payload",
                format!("must be at most {PAYLOAD_BYTES_MAX} bytes"),
                "a longer file",
            ));
        }
        if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("json")) {
            return Ok(Some(Payload::Bytes(bytes)));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::invalid("payload", "must be JSON in UTF-8", path.display()))?;
        // A line is read strictly: no name stands twice.
        let mut members = Members::default();
        members.set("text", "-")?;
        members.set_json("payload", text.strip_prefix('\u{feff}').unwrap_or(&text))?;
        members.check_payload()?;
        Ok(line(&members)?.draft.payload)
    }

    /// The vector of a file, if one was named.
    fn vector_of_file(&self) -> Result<Option<Vec<f32>>> {
        self.vector_file.as_deref().map(first_row).transpose()
    }
}

/// The first row of a NumPy file.
pub(crate) fn first_row(path: &std::path::Path) -> Result<Vec<f32>> {
    let mut reader = NpyReader::open(path)?;
    let mut row = Vec::new();
    if !reader.next_row(&mut row)? {
        return Err(Error::invalid("vectors", "must have a row", "0 rows"));
    }
    Ok(row)
}

/// The line that flags stand for.
fn line(members: &Members) -> Result<DraftLine> {
    let text = serde_json::to_string(members).map_err(|_| no_json("line", "members"))?;
    match parse_line(text.as_bytes(), false)? {
        ParsedLine::Draft(line) => Ok(*line),
        ParsedLine::Memory(_) | ParsedLine::Kept(_) => {
            Err(Error::invalid("--field", "must not be what only an export carries", "id and holders"))
        }
    }
}

/// Refuses fields beside `-`: each line has its own.
pub(crate) fn check_none(options: &AddOptions) -> Result<(), Failure> {
    let AddOptions { key, agent, supersedes, supersede_mode, fields, .. } = options;
    let own = key.is_some() || agent.is_some() || supersede_mode.is_some() || !supersedes.is_empty();
    if own || fields.vector_file.is_some() || fields.payload.is_some() || !fields.members()?.0.is_empty() {
        return Err(Failure::Usage("with - the fields of a memory stand in the lines".to_owned()));
    }
    Ok(())
}

/// How one memory takes the place of another. That of a family of messages is not for a caller to say.
pub(crate) fn mode(option: &str, given: &str) -> Result<SupersedeMode> {
    match given.parse() {
        Ok(mode) if mode != SupersedeMode::Aggregate => Ok(mode),
        _ => Err(Error::invalid(option, "must be replaced, correction or duplicate", given)),
    }
}

/// The draft that was typed.
pub(crate) fn draft(options: &AddOptions, caller: &Caller) -> Result<DraftLine> {
    let mut members = options.fields.members()?;
    options.supersede_mode.as_deref().map(|given| mode("--supersede-mode", given)).transpose()?;
    members.set("text", &options.text)?;
    members.check_payload()?;
    check_tier(&members)?;
    for (name, text) in
        [("key", &options.key), ("agent", &options.agent), ("supersede_mode", &options.supersede_mode)]
    {
        text.as_ref().map_or(Ok(()), |text| members.set(name, text))?;
    }
    if !options.supersedes.is_empty() {
        members.set("supersedes", &options.supersedes)?;
    }
    if let Some(namespace) = members.0.get("namespace") {
        // A text is never written past the border that the call names.
        return Err(Error::invalid("--field", "must not be the namespace: use --namespace", namespace));
    }
    let mut line = line(&members)?;
    if let Some(mode) = line.draft.supersede_mode {
        let why = match mode {
            // That of a family of messages, which no caller ends.
            SupersedeMode::Aggregate => "must be replaced, correction or duplicate",
            _ if !members.0.contains_key("supersedes") => "must stand beside --supersedes",
            _ => "",
        };
        if !why.is_empty() {
            return Err(Error::invalid("--supersede-mode", why, mode));
        }
    }
    if let Some(vector) = options.fields.vector_of_file()? {
        line.draft.vector = Some(vector);
    }
    line.draft.payload = options.fields.payload_of_file(caller)?.or(line.draft.payload);
    Ok(line)
}

/// The changes that were typed.
pub(crate) fn patch(options: &UpdateOptions, caller: &Caller) -> Result<Patch, Failure> {
    let mut members = options.fields.members()?;
    members.check_payload()?;
    check_levels(&members)?;
    clear(options, &mut members)?;
    for name in ["key", "agent", "namespace", "supersedes", "supersede_mode", "sources"] {
        if let Some(value) = members.0.get(name) {
            return Err(Error::invalid(name, "can't be changed", value).into());
        }
    }
    if let Some(text) = members.0.get("text") {
        return Err(Error::invalid("--field", "must not be the text: use --text", text).into());
    }
    let is_stream = |path: &Path| path == Path::new(STREAM);
    if options.text.as_deref() == Some(STREAM) && options.fields.payload.as_deref().is_some_and(is_stream) {
        return Err(Failure::Usage("standard input is the text or the payload, not both".to_owned()));
    }
    let text = options.text.as_deref().map(|typed| typed::text(UPDATED, typed, caller)).transpose()?;
    // A line must have a text; a patch need not.
    members.set("text", text.as_deref().unwrap_or("-"))?;
    let draft = line(&members)?.draft;
    let given = options.fields.payload_of_file(caller)?.or(draft.payload);
    let cleared = options.clear.iter().any(|name| name == "payload");
    Ok(Patch {
        payload: if cleared { Some(None) } else { given.map(Some) },
        text,
        vector: options.fields.vector_of_file()?.or(draft.vector),
        fields: draft.fields,
        expiry: draft.expiry,
        tags: draft.tags,
        categories: draft.categories,
        entities: draft.entities,
        links: draft.links,
    })
}

/// Adds the fields that are to be cleared.
fn clear(options: &UpdateOptions, members: &mut Members) -> Result<()> {
    for name in options.clear.iter().collect::<BTreeSet<_>>() {
        let given = match name.as_str() {
            "expires_at" => members.0.contains_key(name) || members.0.contains_key("ttl"),
            "payload" => members.0.contains_key(name) || options.fields.payload.is_some(),
            _ => members.0.contains_key(name),
        };
        if given {
            return Err(Error::invalid(name, "must not be cleared and given in one call", "both"));
        }
        if matches!(name.as_str(), "tags" | "categories" | "entities" | "links") {
            members.set(name, json!([]))?;
            continue;
        }
        if !matches!(name.as_str(), "expires_at" | "payload") && !can_be_null(name)? {
            let why = format!("can't clear {name}: it has no empty value, so give it another one");
            return Err(Error::invalid("--clear", why, name));
        }
        members.set(name, ())?;
    }
    Ok(())
}

/// Whether null says something of a field: for a field with a default it says nothing.
fn can_be_null(name: &str) -> Result<bool> {
    if name == "text" {
        return Ok(false);
    }
    let mut members = Members::default();
    members.set(name, ())?;
    members.set("text", "-")?;
    Ok(line(&members)?.draft.fields != Fields::default())
}

/// Refuses an unknown tier. A line of an import may have one and gets the default, with a warning. Whoever types one means
/// another, and the default would let a memory live that was to end.
fn check_tier(members: &Members) -> Result<()> {
    members.word("tier").map_or(Ok(()), |tier| tier.parse::<Tier>().map(drop))
}

/// The same of the significance, too. A new memory gets the default, with a warning. An update would change what the memory has.
fn check_levels(members: &Members) -> Result<()> {
    check_tier(members)?;
    members.word("significance").map_or(Ok(()), |significance| significance.parse::<Significance>().map(drop))
}
