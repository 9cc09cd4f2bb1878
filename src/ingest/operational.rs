//! Steps 3 and 4 of the ladder: one more report of the same state.

use std::ops::ControlFlow;

use crate::error::{Result, sound};
use crate::ingest::likeness::Likeness;
use crate::ingest::{NamespaceWriter, Prepared};
use crate::model::order::canonical;
use crate::model::{Draft, Evidence, MemoryId, RuleId};
use crate::store::{PartId, Rows};
use crate::text::{OP_ID, Signature};

/// The parts of a report that are compared.
struct Report {
    signature: Signature,
    /// None if `write.token_match = false`, and for a text of too few words.
    tokens: Option<String>,
}

impl NamespaceWriter<'_, '_, '_> {
    /// The row that already stands for a report. Among the latest `write.op_window` current rows of its kind, it is a
    /// row with an equal signature (step 3), or else a row with an equal token key (step 4). Of several rows it is the
    /// canonical one. Both steps are off by default, and are for operational texts of the kinds of `collapse` alone.
    pub(super) fn operational_step(
        &self,
        prepared: &Prepared,
        part: PartId,
    ) -> Result<Option<(MemoryId, (RuleId, Evidence))>> {
        let write = &self.policy.write;
        let draft = prepared.checked.draft();
        let kind = draft.fields.kind.clone().unwrap_or_default();
        let collapses = (write.op_match || write.token_match)
            && self.policy.collapse.kinds.iter().any(|name| name.parse().is_ok_and(|other| kind == other));
        let Some(report) = Some(&draft.text).filter(|_| collapses).and_then(|text| self.report(text)) else {
            return Ok(None);
        };
        let (mut equal, mut near) = (None, None);
        for id in self.latest_of_kind(draft, part)? {
            let Some((vitals, content)) = sound(self.ledger.load(self.ns(), id))? else { continue };
            if !Likeness::of_draft(draft).is_near(&Likeness::of_row(&vitals, &content)) {
                continue;
            }
            let Some(other) = self.report(&content.text) else { continue };
            let best = if write.op_match && other.signature == report.signature {
                &mut equal
            } else if report.tokens.is_some() && other.tokens == report.tokens {
                &mut near
            } else {
                continue;
            };
            let rank = vitals.rank(id);
            if best.as_ref().is_none_or(|other| canonical(&rank, other).is_lt()) {
                *best = Some(rank);
            }
        }
        let found = match (equal, near) {
            (Some(rank), _) => Some((rank.id, RuleId::OPERATIONAL, report.signature.into_string())),
            (None, Some(rank)) => {
                Some((rank.id, RuleId::TOKEN_KEY, format!("tokens:{}", report.tokens.unwrap_or_default())))
            }
            (None, None) => None,
        };
        Ok(found.map(|(id, rule, signature)| {
            let signature = Some(format!("{OP_ID} {signature}"));
            (id, (rule, Evidence { signature, ..Evidence::default() }))
        }))
    }

    /// The compared parts of an operational text; none for any other text.
    fn report(&self, text: &str) -> Option<Report> {
        let operational = &self.rules.operational;
        let signature = operational.signature(text)?;
        if !operational.is_operational(text, &signature) {
            return None;
        }
        let least = self.policy.collapse.min_token_key as usize;
        let tokens =
            operational.token_key(signature.as_str(), least).filter(|_| self.policy.write.token_match);
        Some(Report { signature, tokens })
    }

    /// The latest `write.op_window` current rows of a partition with the kind of a draft, by creation. There is no
    /// index by kind, so newer rows of other kinds are passed over.
    fn latest_of_kind(&self, draft: &Draft, part: PartId) -> Result<Vec<MemoryId>> {
        let kind = draft.fields.kind.clone().unwrap_or_default().code();
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let most = self.policy.write.op_window as usize;
        let mut latest = Vec::new();
        tx.latest_by_time(ns, part, &mut |id| {
            let row = sound(tx.vitals(ns, id))?.flatten();
            if row.is_some_and(|row| row.kind_code == kind && row.times.is_current(self.now())) {
                latest.push(id);
            }
            Ok(if latest.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(latest)
    }
}
