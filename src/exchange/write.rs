//! What an export writes: one JSON object a line, its members always in the same order.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::exchange::restore::field_name;
use crate::model::{
    Content, Delta, ExpiresBy, Holder, JournalRow, Limbo, Memory, Namespace, Tombstone, TombstoneReason,
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

    /// A number of 32 bits in the fewest digits that read back as it, over f64 too.
    fn float(&mut self, name: &str, value: f32) {
        self.member(name, &widened(value));
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
}

/// The f64 with the shortest decimal form of `value`, as long as that reads back as `value`.
pub(super) fn widened(value: f32) -> f64 {
    match value.to_string().parse::<f64>() {
        Ok(short) if (short as f32).to_bits() == value.to_bits() => short,
        _ => f64::from(value),
    }
}

/// Appends `memory` as one JSON line, with its line feed; the vector only where `vector` asks and it has one.
///
/// The members come in a fixed order. Always there are: `id key keys namespace agent state kind tier text
/// created_at updated_at recorded_at happened_at expires_at valid_from valid_to significance importance
/// confidence reinforcement_count retrieval_count included_count_total pinned tags entities categories metadata
/// channel thread author version holders`. Every other field of MODEL-9 is there when it differs from its
/// default. Numbers of 32 bits have the fewest digits that read back as them. The text is that of
/// [`Memory::text`], so for an export the memory must have been read by its id.
pub fn write_memory(memory: &Memory, vector: bool, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.member("id", &memory.id);
    object.member("key", &memory.keys.first());
    object.member("keys", &memory.keys);
    object.member("namespace", &memory.namespace);
    object.member("agent", &memory.partition.agent_name());
    object.member("state", &memory.state);
    object.member("kind", &memory.kind());
    object.member("tier", &memory.vitals.tier);
    object.member("text", &memory.text);
    write_times(memory, &mut object);
    write_weights(memory, &mut object);
    object.member("tags", &memory.content.tags);
    object.member("entities", &memory.entities);
    object.member("categories", &memory.categories);
    write_content(memory, &mut object);
    write_access(memory, &mut object);
    object.list("links", &memory.links);
    // The name that the specification gives to `sources` in JSON.
    object.list("source_memory_ids", &memory.sources);
    object.list("consolidated_from", &memory.content.consolidated_from);
    object.member("version", &memory.vitals.version);
    object.maybe("also", &memory.also);
    object.name("holders");
    write_holders(&memory.holders, object.out);
    let last = memory.holders.last().map(|holder| holder.number.saturating_add(1));
    object.unless("next_holder", &memory.vitals.place.next_holder, &last.unwrap_or_default());
    if let Some(limbo) = &memory.limbo {
        object.name("limbo");
        write_limbo(limbo, object.out);
    }
    if let Some(numbers) = memory.vector.as_ref().filter(|_| vector) {
        object.member("vector", numbers);
    }
    object.end();
    out.push(b'\n');
}

fn write_times(memory: &Memory, object: &mut Object<'_>) {
    let vitals = &memory.vitals;
    let times = &vitals.times;
    object.member("created_at", &vitals.created_at);
    object.member("updated_at", &vitals.updated_at);
    object.member("recorded_at", &times.recorded_at);
    object.member("happened_at", &vitals.happened_at);
    object.member("expires_at", &times.expires_at);
    object.unless("expires_by", &vitals.expires_by, &ExpiresBy::Tier);
    object.member("valid_from", &times.valid_from);
    object.member("valid_to", &times.valid_to);
    object.maybe("valid_to_before", &times.valid_to_before);
    object.maybe("removed_at", &times.removed_at);
    if let Some(superseded) = &times.superseded {
        object.member("superseded_at", &superseded.at);
        object.member("superseded_by", &superseded.by);
        object.member("supersede_mode", &superseded.mode);
    }
}

fn write_weights(memory: &Memory, object: &mut Object<'_>) {
    let vitals = &memory.vitals;
    object.member("significance", &vitals.significance);
    object.float("importance", vitals.importance);
    object.member("confidence", &vitals.confidence.map(widened));
    object.member("reinforcement_count", &vitals.reinforcement_count);
    object.maybe("last_reinforced_at", &vitals.last_reinforced_at);
    object.member("retrieval_count", &memory.access.retrieval_count);
    object.member("included_count_total", &memory.access.included_count_total);
    object.member("pinned", &vitals.pinned);
    object.unless("admin_locked", &vitals.admin_locked, &false);
    object.unless("system_locked", &vitals.system_locked, &false);
    object.unless("deletes_source", &vitals.deletes_source, &false);
}

fn write_content(memory: &Memory, object: &mut Object<'_>) {
    let content = &memory.content;
    if content.metadata.is_object() {
        object.member("metadata", &content.metadata);
    } else {
        object.member("metadata", &Map::new());
    }
    object.unless("scope_label", content.scope_label.as_str(), Content::SCOPE_LABEL);
    object.member("channel", &content.channel);
    object.member("thread", &content.thread);
    object.maybe("session", &content.session);
    object.maybe("reply_to", &content.reply_to);
    match (content.author_kind, &content.author_id) {
        (None, None) => object.member("author", &Value::Null),
        (kind, id) => object.member("author", &json!({ "kind": kind, "id": id })),
    }
    object.maybe("event_type", &content.event_type);
    object.maybe("step", &content.step);
    object.maybe("agent_id", &content.agent_id);
    object.list("attachments", &content.attachments);
    object.list("embeds", &content.embeds);
    object.maybe("family_id", &content.family_id);
    object.maybe("aggregate_id", &content.aggregate_id);
    if let Some(summary) = &content.summary {
        object.maybe("topic", &summary.topic);
        object.maybe("time_range", &summary.time_range);
        object.maybe("bullet_events", &summary.bullet_events);
        object.maybe("decisions", &summary.decisions);
        object.maybe("open_loops", &summary.open_loops);
        object.maybe("spam_patterns", &summary.spam_patterns);
    }
    object.unless("series", content.series.as_str(), Content::SERIES);
    object.maybe("resource", &content.resource);
}

fn write_access(memory: &Memory, object: &mut Object<'_>) {
    let access = &memory.access;
    object.maybe("last_retrieved", &access.last_retrieved);
    object.unless("relevance_score_sum", &access.relevance_score_sum, &0.0);
    object.unless("relevance_score_count", &access.relevance_score_count, &0);
    if access.relevance_max != 0.0 {
        object.float("relevance_max", access.relevance_max);
    }
    object.unless("included_count_decay", &access.included_count_decay, &0.0);
    object.maybe("last_included_at", &access.last_included_at);
    object.maybe("protected_until", &access.protected_until);
    object.maybe("summarized_at", &access.summarized_at);
    object.maybe("promoted_at", &access.promoted_at);
    object.maybe("last_consolidated_at", &access.last_consolidated_at);
    object.unless("access_seq", &access.access_seq, &0);
}

fn write_holders(holders: &[Holder], out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, holder) in holders.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut object = Object::begin(out);
        object.member("number", &holder.number);
        object.member("key", &holder.key);
        object.member("count", &holder.count);
        object.member("share", &holder.share);
        object.list("tags", &holder.tags);
        object.list("categories", &holder.categories);
        object.list("entities", &holder.entities);
        object.list("links", &holder.links);
        let fields: Vec<String> = holder.fields.iter().map(|(code, _)| field_name(*code)).collect();
        object.list("fields", &fields);
        object.maybe("run", &holder.run);
        object.maybe("text", &holder.text);
        object.maybe("from", &holder.from);
        object.maybe("follows", &holder.follows.then_some(true));
        object.end();
    }
    out.push(b']');
}

/// Appends what is kept of a memory that is gone as one JSON line, with its line feed. For the reason
/// `summarized` the memory in its place is called `replaced_by_summary_id`.
pub fn write_tombstone(namespace: &Namespace, tombstone: &Tombstone, out: &mut Vec<u8>) {
    let mut line = Object::begin(out);
    line.member("namespace", namespace);
    line.name("tombstone");
    tombstone_members(tombstone, line.out);
    line.end();
    out.push(b'\n');
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
    object.end();
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// One line of the journal as `history` and `explain` show it.
pub fn journal_json(row: &JournalRow) -> Value {
    let evidence = &row.evidence;
    json!({
        "seq": row.seq,
        "at": row.at,
        "actor": row.actor.as_str(),
        "run": row.run,
        "op": row.op,
        "rule": row.rule.0,
        "subject": row.subject,
        "holder": row.holder,
        "changes": row.deltas.iter().map(delta_json).collect::<Vec<_>>(),
        "evidence": {
            "score": evidence.score.map(widened),
            "signature": evidence.signature,
            "members": evidence.members,
            "transferred": evidence.transferred,
        },
        "policy": { "number": row.policy_number, "hash": hex(&row.policy_hash) },
    })
}

pub(super) fn delta_json(delta: &Delta) -> Value {
    json!({ "field": delta.field, "before": delta.before, "after": delta.after })
}
