//! What is decided about a write?
//!
//! `prepare` turns a draft into what the ladder needs: bounds checked, fingerprint, unit vector. The ladder
//! ([`NamespaceWriter::add`]) then decides inside the write transaction, on the rows that are current there, and hands
//! changes to the ledger. So do updating ([`NamespaceWriter::update`]) and forgetting ([`NamespaceWriter::forget_names`] …).
//!
//! Invariants. Two equal drafts can never both be stored, because the probe and the write are in one
//! transaction. Only byte-equal content is absorbed, unless the policy says otherwise. Dedup never loses a
//! record that a caller wrote.
//!
//! The room reads no clock and writes no table. Instants come with the context, and rows go through `ledger`.

mod add;
mod again;
mod ahead;
mod announced;
mod apart;
mod beside;
mod change;
mod confidence;
mod context;
mod edit;
mod fields;
mod forget;
mod goal;
mod leading;
mod likeness;
mod message;
mod named;
mod names;
mod near;
mod operational;
mod predecessors;
mod probe;
mod recreate;
mod relocate;
mod rename;
mod rules;
mod similarity;
mod snapshot;
mod summary;
#[cfg(test)]
mod tests;
mod undo;
mod versions;
mod written;

use std::cell::{Cell, OnceCell};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::index::Published;
use crate::ledger::{Applied, Change, Context, Entry, Ledger};
use crate::model::{
    AuthorKind, CheckedDraft, Content, Draft, IdSource, Kind, MemoryId, NamespaceName, Outcome, Partition,
    RuleId, RunSort, Time, is_blank,
};
use crate::policy::Policy;
use crate::store::control::SpaceRow;
use crate::store::{NsId, Read, Table, Walk, keys, last_id};
use crate::text::{Guards, Messages, NormalForm, normal_form};
use crate::vector::UnitVector;

pub(crate) use again::Rewrites;
pub(crate) use confidence::grown;
pub(crate) use forget::ForgetNames;
pub(crate) use likeness::{Likeness, is_record_of_its_own, owner_in, owner_of, stands_apart};
pub(crate) use message::Slice;
pub(crate) use names::open_namespace;
pub(crate) use near::Neighbours;
pub(crate) use probe::text_of_update;
pub(crate) use rules::Rulebook;
pub(crate) use similarity::Threshold;

/// A draft that has passed every check that needs no transaction.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    checked: CheckedDraft,
    normal: NormalForm,
    vector: Option<UnitVector>,
    /// The name of the space of the embedder that made the vector; none for a vector of the caller.
    embedder: Option<Arc<str>>,
    /// That the text takes the place of what its key says.
    replaces: Option<Replaces>,
}

/// When a text takes the place of what its key says.
#[derive(Clone, Copy, Debug)]
enum Replaces {
    /// At once, also of a text that is no longer true.
    Now,
    /// At an instant ahead. Until then the key means the old text.
    At(Time),
}

/// The embedding space that the vectors of the handle's embedder open.
#[derive(Clone, Debug)]
pub(crate) struct EmbedderSpace {
    /// Name of the space: the id of the embedder.
    pub(crate) name: Arc<str>,
    /// Dimensions of its vectors.
    pub(crate) dim: usize,
    /// Whether nobody asked for the embedder: the vectors of a caller may still decide what the space of the file is.
    pub(crate) suggested: bool,
}

/// The vector that an embedder made from a text.
#[derive(Clone, Debug)]
pub(crate) struct Embedded {
    pub(crate) vector: UnitVector,
    /// The name of the space of the vector.
    pub(crate) space: Arc<str>,
}

/// Checks a draft, normalises its text and its vector (design, "How a write flows").
///
/// # Errors
/// `Invalid` naming the field.
pub(crate) fn prepare(draft: Draft) -> Result<Prepared> {
    let mut checked = CheckedDraft::new(draft)?;
    let normal = normal_form(&checked.draft().text);
    let vector = checked.take_vector().map(|values| UnitVector::new("vector", &values)).transpose()?;
    Ok(Prepared { checked, normal, vector, embedder: None, replaces: None })
}

impl Prepared {
    /// The same draft in another partition.
    fn moved(&self, to: &Partition) -> Self {
        Prepared { checked: self.checked.clone().moved(to.clone()), ..self.clone() }
    }

    /// The same draft under a key.
    fn keyed(&self, key: &str) -> Self {
        Prepared { checked: self.checked.clone().keyed(key), ..self.clone() }
    }

    /// The same draft, to take the place of what its key says: at an instant ahead, or at once.
    pub(crate) fn replacing(self, at: Option<Time>) -> Self {
        Prepared { replaces: Some(at.map_or(Replaces::Now, Replaces::At)), ..self }
    }

    /// The same draft with the vector that was made for another one of its text.
    pub(crate) fn with_vector_of(self, other: &Prepared) -> Self {
        Prepared { vector: other.vector.clone(), embedder: other.embedder.clone(), ..self }
    }

    /// Whether the draft has a text and no vector.
    pub(crate) fn wants_vector(&self) -> bool {
        self.vector.is_none() && !is_blank(&self.checked.draft().text)
    }

    /// The text of the draft that is embedded.
    pub(crate) fn meant(&self, messages: &Messages) -> String {
        let draft = self.checked.draft();
        let fields = &draft.fields;
        let kind = fields.kind.as_ref().map_or(Kind::default().code(), Kind::code);
        let author = fields.author_kind.value().copied();
        let channel = fields.channel.value().map(String::as_str);
        meant_by(&draft.text, kind, author, channel, messages)
    }

    /// The name of the space of the vector.
    fn space(&self) -> &str {
        space_of(self.embedder.as_ref())
    }

    /// Takes the vector that an embedder made from the text.
    pub(crate) fn embedded(&mut self, Embedded { vector, space }: Embedded) {
        (self.vector, self.embedder) = (Some(vector), Some(space));
    }

    /// The text of the draft.
    pub(crate) fn text(&self) -> &str {
        &self.checked.draft().text
    }

    /// The vector of the draft, if it has one.
    pub(crate) fn vector(&self) -> Option<&UnitVector> {
        self.vector.as_ref()
    }

    /// Whether the caller gave a vector.
    pub(crate) fn brings_vector(&self) -> bool {
        self.vector.is_some() && self.embedder.is_none()
    }

    /// The bytes that the draft weighs in a group commit.
    pub(crate) fn weight(&self) -> usize {
        self.checked.draft().weight() + self.vector.as_ref().map_or(0, |vector| vector.dim() * 4)
    }
}

/// The name of the space of a vector that an embedder made, or that a caller gave.
fn space_of(embedder: Option<&Arc<str>>) -> &str {
    embedder.map_or(SpaceRow::CALLER, |name| name)
}

/// The text of a memory that is embedded: the normal form of an author's message or of an aggregate, the unchanged
/// text of any other memory.
pub(crate) fn meant(content: &Content, kind_code: u8, messages: &Messages) -> String {
    meant_by(&content.text, kind_code, content.author_kind, content.channel.as_deref(), messages)
}

fn meant_by(
    text: &str,
    kind_code: u8,
    author: Option<AuthorKind>,
    channel: Option<&str>,
    messages: &Messages,
) -> String {
    const NORMALIZED: [Kind; 4] = [Kind::Message, Kind::AssistantMessage, Kind::ToolResult, Kind::Aggregate];
    let author = author.filter(|_| NORMALIZED.iter().any(|kind| kind.code() == kind_code));
    let form = author.map(|author| messages.normalize(text, Some(author), channel));
    // If nothing is left of a message, it is embedded as it came.
    form.filter(|form| !form.trim().is_empty()).unwrap_or_else(|| text.to_owned())
}

/// Decides the units of one namespace, inside a write transaction.
pub(crate) struct NamespaceWriter<'d, 'a, 't> {
    pub(crate) ledger: &'d mut Ledger<'a, 't>,
    pub(crate) context: Context,
    pub(crate) namespace: &'d NamespaceName,
    pub(crate) policy: &'d Policy,
    /// How the policy reads messages.
    pub(crate) messages: &'d Messages,
    pub(crate) ids: &'d dyn IdSource,
    /// The last id that it gave out at an instant at which others may have given out some.
    pub(crate) last_id: Cell<Option<MemoryId>>,
    /// The space of the handle's embedder.
    pub(crate) embeds: Option<EmbedderSpace>,
    /// The rules of the policy, prepared for use.
    pub(crate) rules: &'d Rulebook,
    /// Whether to store byte-equal content as a row of its own.
    pub(crate) no_dedup: bool,
    /// Whether to leave out the rules that belong to the instructions.
    pub(crate) skip_instructions: bool,
    /// Whether a rule leaves a draft in the shared part, as it leaves one in the part of an agent that the draft names.
    pub(crate) keep_part: bool,
    /// The state that the transaction began with.
    pub(crate) published: &'d Published,
    /// The memories near to the present draft in that state, if they were searched ahead of time.
    pub(crate) near: Option<Neighbours>,
    /// Made when the first pair of texts is compared.
    pub(crate) guards: OnceCell<Guards>,
}

impl NamespaceWriter<'_, '_, '_> {
    pub(crate) fn ns(&self) -> NsId {
        self.context.ns
    }

    fn now(&self) -> Time {
        self.context.now
    }

    /// Notes in the import that the writes belong to, if they do, what became of them.
    pub(crate) fn note_in_run(&mut self, outcomes: &[Outcome]) -> Result<()> {
        let Some(run) = self.context.run else { return Ok(()) };
        let counts = outcomes.iter().map(|outcome| (outcome.decision.as_str(), 1));
        self.ledger.note_part(&self.context, run, RunSort::Import, counts)
    }

    /// An id for a memory or a message, above those of the namespace that were made at the same instant: the rows of a key, and
    /// messages, are in the order of their ids. While the clock is behind the last commit, and in one millisecond, the processes that
    /// write to a file write at one instant, and each knows its own ids alone.
    fn next_id(&self) -> Result<MemoryId> {
        let next = self.ids.next(self.now()).map(MemoryId::from_bytes)?;
        if self.published.committed_at() < self.now() {
            return Ok(next);
        }
        let last = match self.last_id.get() {
            Some(last) => Some(last),
            None => self.last_of_instant()?,
        };
        let next = last.filter(|last| *last >= next).map_or(next, |last| last.above(next));
        self.last_id.set(Some(next));
        Ok(next)
    }

    /// The last id of the namespace that was made at this instant or before.
    fn last_of_instant(&self) -> Result<Option<MemoryId>> {
        let mut last = None;
        for table in [Table::Vitals, Table::Event] {
            let walk = Walk::prefix(&keys::ns(self.ns()));
            let walk = walk.before(&keys::memory(self.ns(), MemoryId::first_after(self.now()))).reversed();
            self.ledger.tx.walk(table, &walk, &mut |key, _| {
                last = last.max(Some(last_id(table, key)?));
                Ok(ControlFlow::Break(()))
            })?;
        }
        Ok(last)
    }

    fn apply(&mut self, rule: RuleId, change: Change) -> Result<Applied> {
        self.ledger.apply(&self.context, Entry::new(rule, change))
    }

    fn apply_entry(&mut self, entry: Entry) -> Result<Applied> {
        self.ledger.apply(&self.context, entry)
    }
}
