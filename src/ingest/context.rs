//! What went into a context, as it is counted.

use std::collections::BTreeSet;

use crate::error::{Error, Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Change, Entry, Folded, tier_ttl};
use crate::model::{ContextDraft, ContextLog, ContextReport, Included, Inclusion, MemoryId, RuleId, Time};
use crate::store::{ContextRow, ContextRows, Rows};

impl NamespaceWriter<'_, '_, '_> {
    /// Writes a context to the inclusion log and counts its memories. The same context again changes nothing.
    ///
    /// # Errors
    /// `Conflict` for a context that the log has with other items.
    pub(crate) fn write_context(&mut self, draft: &ContextDraft) -> Result<ContextReport> {
        let items = joined(&draft.items);
        let mut row = self.context_row(draft, &items)?;
        let already = self.ledger.tx.context(self.ns(), &draft.id)?;
        if let Some(known) = &already {
            let same = match known.digest {
                Some(digest) => row.digest == Some(digest),
                // A context of an export does not tell by which names it was written.
                None => known.items.iter().map(named).eq(row.items.iter().map(named)),
            };
            if !same {
                return Err(Error::Conflict {
                    what: format!("context {}", draft.id),
                    why: "it is in the log with other items: another context has another id".to_owned(),
                });
            }
        } else {
            let at = row.at();
            let mut rows = Vec::new();
            let mut met = BTreeSet::new();
            for item in &mut row.items {
                let Some(id) = item.id else { continue };
                if met.insert(id) {
                    rows.extend(self.included(id, at)?);
                }
                item.counted = rows.iter().any(|folded: &Folded| folded.id == id);
            }
            // A context of which nothing is there, as by a slip in the names, may be told again under its id.
            if !rows.is_empty() || row.items.is_empty() {
                let change =
                    Change::LogContext { context: draft.id.clone(), row: Box::new(row.clone()), rows };
                self.apply_entry(Entry::new(RuleId::FOLD, change))?;
            }
        }
        let stands = already.as_ref().unwrap_or(&row);
        let counted: BTreeSet<MemoryId> =
            stands.items.iter().filter(|item| item.counted).filter_map(|item| item.id).collect();
        let unknown = items.iter().zip(&stands.items).filter(|(_, item)| !item.counted);
        Ok(ContextReport {
            counted: counted.len() as u64,
            already: already.is_some(),
            unknown: unknown.map(|(item, _)| item.name.as_str().to_owned()).collect(),
        })
    }

    /// The row of a context whose items stand each under a name of its own. Nothing is counted yet.
    fn context_row(&self, draft: &ContextDraft, items: &[Inclusion]) -> Result<ContextRow> {
        let mut told = Vec::new();
        let mut included = Vec::with_capacity(items.len());
        for item in items {
            let bucket = item.bucket.map_or("", |bucket| bucket.as_str());
            told.extend_from_slice(format!("{}\0{}\0{bucket}\0", item.name.as_str(), item.tokens).as_bytes());
            let id = match self.find(item.name.as_str()) {
                Ok((id, _)) => Some(id),
                Err(Error::NotFound { .. }) => item.name.as_str().parse().ok(),
                Err(why) => return Err(why),
            };
            included.push(Included { id, tokens: item.tokens, bucket: item.bucket, counted: false });
        }
        let digest = self.ledger.secret.hmac("context", &told);
        Ok(ContextRow {
            // An instant ahead would keep the count from ever falling.
            at_ms: draft.at.map_or(self.now(), |at| at.min(self.now())).as_millis(),
            session: draft.session.clone(),
            window_tokens: draft.window_tokens,
            items: included,
            digest: digest.first_chunk().copied(),
        })
    }

    /// A memory after its inclusion; none where no live read would find it, or where its uses can't be read.
    fn included(&self, id: MemoryId, at: Time) -> Result<Option<Folded>> {
        let (ns, tx) = (self.ns(), &*self.ledger.tx);
        let Some(vitals) = sound(tx.vitals(ns, id))?.flatten() else { return Ok(None) };
        let life = vitals.life();
        let mut times = vitals.times;
        // An inclusion before the end moves the end, also when it is told later.
        let in_time = life.end.is_some_and(|end| at < end);
        if in_time {
            times.expires_at = None;
        }
        if !times.visible_live(self.now()) {
            return Ok(None);
        }
        let Some(mut access) = sound(tx.access(ns, id))? else { return Ok(None) };
        access.include(at, self.policy.access.tau_days);
        let slid = life.slid(at, tier_ttl(vitals.tier, &self.policy.ttl)).end.filter(|_| in_time);
        let expires_at = slid.filter(|end| life.end != Some(*end));
        Ok(Some(Folded { id, before: vitals, access, expires_at, confidence: None }))
    }

    /// Puts a context of an export back, whose memories have counted it already.
    pub(super) fn recreate_context(&mut self, log: &ContextLog) -> Result<()> {
        log.check()?;
        if self.ledger.tx.context(self.ns(), &log.id)?.is_some() {
            return Ok(());
        }
        let row = ContextRow {
            at_ms: log.at.as_millis(),
            session: log.session.clone(),
            window_tokens: log.window_tokens,
            items: log.items.clone(),
            digest: None,
        };
        let change = Change::LogContext { context: log.id.clone(), row: Box::new(row), rows: Vec::new() };
        self.apply_entry(Entry::new(RuleId::IMPORT_ROW, change)).map(drop)
    }
}

/// The items by name, each name once with the sum of its tokens, in the order in which they came first.
fn joined(items: &[Inclusion]) -> Vec<Inclusion> {
    let mut all: Vec<Inclusion> = Vec::with_capacity(items.len());
    for item in items {
        match all.iter_mut().find(|known| known.name == item.name) {
            Some(known) => known.tokens = known.tokens.saturating_add(item.tokens),
            None => all.push(item.clone()),
        }
    }
    all
}

/// What an item says, without what became of it.
fn named(item: &Included) -> (Option<MemoryId>, u32, Option<&'static str>) {
    (item.id, item.tokens, item.bucket.map(|bucket| bucket.as_str()))
}
