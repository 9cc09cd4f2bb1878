//! What the ledger notes of summaries: on sources that stay, on summaries whose sources were forgotten, and of refusals.

use serde_json::{Value, json};

use crate::error::{Result, sound};
use crate::ledger::change::{Change, Entry};
use crate::ledger::writer::{Context, Ledger, Why};
use crate::model::{Access, Delta, Evidence, MemoryId, Op, RuleId};
use crate::store::Rows;

impl Ledger<'_, '_> {
    /// Notes on a memory that a summary covers it, so that it is not summarized again at once.
    pub(crate) fn note_summarized(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        self.note(context, RuleId::SUMMARIZE, id, |access| {
            let before = access.summarized_at.replace(context.now);
            delta("summarized_at", json!(before), json!(access.summarized_at))
        })
    }

    /// Notes on a summary that so many of its sources were forgotten.
    pub(crate) fn note_forgotten(&mut self, context: &Context, id: MemoryId, sources: u64) -> Result<()> {
        self.note(context, RuleId::FORGOTTEN_SOURCE, id, |access| {
            let before = access.source_forgotten;
            access.source_forgotten = before.saturating_add(sources);
            delta("source_forgotten", json!(before), json!(access.source_forgotten))
        })
    }

    fn note(
        &mut self,
        context: &Context,
        rule: RuleId,
        id: MemoryId,
        note: impl FnOnce(&mut Access) -> Delta,
    ) -> Result<()> {
        // What can't be read of the memory's use keeps nobody from forgetting its sources.
        let Some(mut access) = sound(self.tx.access(context.ns, id))? else { return Ok(()) };
        let (vitals, content) = self.load(context.ns, id)?;
        let deltas = vec![note(&mut access)];
        let change = Change::Update {
            id,
            version: vitals.version,
            vitals: Box::new(vitals),
            content: Box::new(content),
            access: Box::new(access),
            holders: Vec::new(),
            vector: None,
            payload: None,
            deltas,
        };
        self.apply(context, Entry::new(rule, change)).map(drop)
    }

    /// Journals that a summary or a consolidation was refused, by the rule that says of what.
    pub(crate) fn refuse(&mut self, context: &Context, rule: RuleId, evidence: Evidence) -> Result<()> {
        let why = Why { rule, evidence };
        self.journal(context, Op::Refuse, None, Vec::new(), why)
    }
}

fn delta(field: &str, before: Value, after: Value) -> Delta {
    Delta { field: field.to_owned(), before, after }
}
