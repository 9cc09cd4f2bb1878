//! What the ledger notes of summaries: on sources that stay, and of refusals.

use crate::error::Result;
use crate::ledger::change::{Change, Entry};
use crate::ledger::writer::{Context, Ledger, Why};
use crate::model::{Delta, Evidence, MemoryId, Op, RuleId};
use crate::store::Rows;

impl Ledger<'_, '_> {
    /// Notes on a memory that a summary covers it, so that it is not summarized again at once.
    pub(crate) fn note_summarized(&mut self, context: &Context, id: MemoryId) -> Result<()> {
        let (vitals, content) = self.load(context.ns, id)?;
        let before = self.tx.access(context.ns, id)?;
        let mut access = before.clone();
        access.summarized_at = Some(context.now);
        let value = |at| serde_json::to_value(at).unwrap_or_default();
        let deltas = vec![Delta {
            field: "summarized_at".into(),
            before: value(before.summarized_at),
            after: value(access.summarized_at),
        }];
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
        self.apply(context, Entry::new(RuleId::SUMMARIZE, change)).map(drop)
    }

    /// Journals that a summary was refused.
    pub(crate) fn refuse_summary(&mut self, context: &Context, evidence: Evidence) -> Result<()> {
        let why = Why { rule: RuleId::REFUSE_SUMMARY, evidence };
        self.journal(context, Op::Refuse, None, Vec::new(), why)
    }
}
