//! What an export writes: one JSON object a line, its members always in the same order.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::hex::hex;
use crate::model::{
    ExpiresBy, JournalRow, Limbo, Memory, NamespaceName, Parts, Payload, Shown, Tombstone, TombstoneReason,
    memory_fields,
};

/// Appends `value` as JSON.
fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    #[expect(
        clippy::expect_used,
        reason = "a vector takes every byte, and every map of ours has names of text"
    )]
    serde_json::to_writer(out, value).expect("JSON is written to memory");
}

/// An object being written.
pub(super) struct Object<'a> {
    pub(super) out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, first: true }
    }

    pub(super) fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        put(self.out, name);
        self.out.push(b':');
    }

    /// A member that is always there.
    pub(super) fn member(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        put(self.out, value);
    }

    /// A member that is there when it has a value.
    pub(super) fn maybe(&mut self, name: &str, value: &Option<impl Serialize>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    /// A member that is there when it differs from `default`.
    fn unless<T: Serialize + PartialEq + ?Sized>(&mut self, name: &str, value: &T, default: &T) {
        if value != default {
            self.member(name, value);
        }
    }

    /// A list that is there when it is not empty.
    pub(super) fn list(&mut self, name: &str, value: &[impl Serialize]) {
        if !value.is_empty() {
            self.member(name, value);
        }
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }

    /// The end of an object that is a line.
    pub(super) fn end_line(self) {
        self.out.extend_from_slice(b"}\n");
    }
}

/// Appends `memory` as one JSON line, with its line feed; the vector only where `vector` asks and it has one.
///
/// The members come in a fixed order, the fields of `docs/fields.md` by their numbers. Always there are `id key keys
/// namespace agent state kind text recorded_at expires_at reinforcement_count author tags entities categories version
/// holders` and the fields that the table calls `always`. Every other one is there when it differs from its default. Numbers of 32 bits have the fewest digits that read back as them. The text is that of
/// [`Memory::text`], so for an export the memory must have been read by its id.
///
/// ```
/// use oubliette::exchange::{ParsedLine, parse_line, write_memory};
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// let mut line = Vec::new();
/// write_memory(&team.get(tea)?.unwrap(), false, &mut line);
/// assert!(matches!(parse_line(&line, false)?, ParsedLine::Memory(memory) if memory.id == tea));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_memory(memory: &Memory, vector: bool, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("id", &memory.id);
    object.member("key", &memory.key());
    object.member("keys", &memory.keys);
    object.member("namespace", &memory.namespace);
    object.member("agent", &memory.partition.agent_name());
    object.member("state", &memory.state);
    object.member("kind", &memory.kind);
    object.member("text", &memory.text);
    write_kept(memory, &mut object);
    write_fields(memory, &mut object);
    match (memory.author_kind, &memory.author_id) {
        (None, None) => object.member("author", &Value::Null),
        (kind, id) => object.member("author", &json!({ "kind": kind, "id": id })),
    }
    object.unless("access_seq", &memory.access_seq, &0);
    object.member("tags", &memory.tags);
    object.member("entities", &memory.entities);
    object.member("categories", &memory.categories);
    object.list("links", &memory.links);
    // The name that the specification gives to `sources` in JSON.
    object.list("source_memory_ids", &memory.sources);
    object.member("version", &memory.version);
    object.maybe("also", &memory.also);
    object.member("holders", &memory.holders);
    let last = memory.holders.last().map(|holder| holder.number.saturating_add(1));
    object.unless("next_holder", &memory.next_holder, &last.unwrap_or_default());
    if let Some(limbo) = &memory.limbo {
        object.name("limbo");
        write_limbo(limbo, object.out);
    }
    match &memory.payload {
        Some(Payload::Json(value)) => object.member("payload", value),
        Some(Payload::Bytes(bytes)) => object.member("payload_base64", &STANDARD.encode(bytes)),
        None => {}
    }
    let space = if memory.is_of_former_space { "former_space" } else { "embedding_space" };
    object.maybe(space, &memory.embedding_space);
    if let Some(numbers) = memory.vector.as_ref().filter(|_| vector) {
        object.member("vector", numbers);
    }
    object.end_line();
}

/// What the engine keeps of its instants.
fn write_kept(memory: &Memory, object: &mut Object<'_>) {
    object.member("recorded_at", &memory.recorded_at);
    object.member("expires_at", &memory.expires_at);
    object.unless("expires_by", &memory.expires_by, &ExpiresBy::Tier);
    object.maybe("valid_from_recorded_at", &memory.valid_from_recorded_at);
    object.maybe("valid_to_before", &memory.valid_to_before);
    if let Some(announced) = &memory.announced {
        object.member("announced_valid_to", &announced.end);
        object.member("announced_at", &announced.at);
    }
    object.list("overtaken", &memory.overtaken);
    object.maybe("removed_at", &memory.removed_at);
    if let Some(superseded) = &memory.superseded {
        object.member("superseded_at", &superseded.at);
        object.member("superseded_by", &superseded.by);
        object.maybe("superseded_via", &superseded.via);
        object.member("supersede_mode", &superseded.mode);
    }
    object.member("reinforcement_count", &memory.reinforcement_count);
    object.unless("deletes_source", &memory.deletes_source, &false);
}

/// Writes a field of the table as its row says.
macro_rules! written {
    (always, $object:ident, $name:ident, $value:expr, $default:expr) => {
        $object.member(stringify!($name), &$value.shown());
    };
    (given, $object:ident, $name:ident, $value:expr, $default:expr) => {
        if $value != $default {
            $object.member(stringify!($name), &$value.shown());
        }
    };
    (apart, $object:ident, $name:ident, $value:expr, $default:expr) => {};
}

macro_rules! write_fields {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// The fields of the table, by number.
        fn write_fields(memory: &Memory, object: &mut Object<'_>) {
            let default = Parts::defaults();
            $($(written!($json, object, $name, memory.$name, default.$part.$($place).+);)+)+
        }
    };
}

memory_fields!(write_fields);

/// Appends what is kept of a memory that is gone as one JSON line, with its line feed. For the reason
/// `summarized` the memory in its place is called `replaced_by_summary_id`.
///
/// ```
/// use oubliette::exchange::write_tombstone;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// team.forget(tea)?;
/// let mut line = Vec::new();
/// write_tombstone(team.name(), &team.tombstones(None, 1)?.items[0], &mut line);
/// assert!(line.starts_with(br#"{"namespace":"team","tombstone":{"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_tombstone(namespace: &NamespaceName, tombstone: &Tombstone, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.name("tombstone");
    tombstone_members(tombstone, line.out);
    line.end_line();
}

/// How a memory in limbo was removed, and what will be left of it.
fn write_limbo(limbo: &Limbo, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("reason", limbo.reason.as_str());
    object.member("run_id", &limbo.run);
    object.member("replaced_by", &limbo.replaced_by);
    object.unless("replaced", &limbo.replaced, &false);
    object.unless("transferred", &limbo.transferred, &0);
    object.list("links", &limbo.links);
    if let Some(tombstone) = &limbo.tombstone {
        object.name("tombstone");
        tombstone_members(tombstone, object.out);
    }
    object.end();
}

fn tombstone_members(tombstone: &Tombstone, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("id", &tombstone.id);
    object.member("deleted_at", &tombstone.deleted_at);
    object.member("reason", tombstone.reason.as_str());
    object.member("run_id", &tombstone.run);
    let replaced_by = match tombstone.reason {
        TombstoneReason::Summarized => "replaced_by_summary_id",
        _ => "replaced_by",
    };
    object.member(replaced_by, &tombstone.replaced_by);
    object.member("made_by", &tombstone.made_by);
    object.member("merged_from", &tombstone.merged_from);
    let hashes: Vec<String> = tombstone.key_hashes.iter().map(|hash| hex(hash)).collect();
    object.member("key_hashes", &hashes);
    object.member("content_hash", &hex(&tombstone.content_hash));
    object.member("rows", &tombstone.rows);
    object.maybe("erased_at", &tombstone.erased_at);
    object.maybe("forgotten_at", &tombstone.forgotten_at);
    object.end();
}

/// One line of the journal as `history` and `explain` show it.
///
/// ```
/// use oubliette::exchange::journal_json;
/// # let folder = tempfile::tempdir()?;
/// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
/// let tea = team.add("Ann prefers tea")?.id;
/// let told = journal_json(&team.history(tea)?.events[0]);
/// assert_eq!(told["op"], "insert");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn journal_json(row: &JournalRow) -> Value {
    json!({
        "seq": row.seq,
        "at": row.at,
        "actor": row.actor,
        "run": row.run,
        "op": row.op,
        "rule": row.rule,
        "subject": row.subject,
        "holder": row.holder,
        "changes": row.deltas,
        "evidence": row.evidence,
        "policy": { "number": row.policy_number, "hash": hex(&row.policy_hash) },
    })
}
