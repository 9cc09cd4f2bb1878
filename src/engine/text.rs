//! The upkeep of full-text indexes: postings for their tails, blocks of one term joined, and a rebuild.

use crate::engine::database::Database;
use crate::engine::maintain::{MaintainOptions, PassReport, Sweep};
use crate::engine::pace::{STALE_MAX, outpaced};
use crate::error::{Error, Result};
use crate::index::text::upkeep::{self, TextEdit};
use crate::model::{NamespaceName, RunId};
use crate::store::control::TextHead;
use crate::store::{Read, TextId, TextRows};

/// Documents that are posted in one commit while others write: few make many blocks, which are to be joined again.
const POST_MIN: usize = 256;
/// Blocks that are read for joining in one commit.
const JOIN_BLOCKS: usize = 1_024;

impl Database {
    /// What the pass `index` does for full-text indexes.
    pub(super) fn keep_texts(
        &self,
        options: &MaintainOptions,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        for (text, head) in self.texts(options.namespace.as_ref())? {
            // The counters of the pass are those of vectors; texts have their own in its report.
            let waiting = u64::from(upkeep::waiting(&head));
            report.note("texts", u64::from(head.used));
            if options.dry_run || sweep.pace.is_over() {
                report.note("unposted", waiting);
                continue;
            }
            match self.keep_text(text, waiting, sweep, report) {
                Err(why @ Error::Corrupted { .. }) => {
                    tracing::warn!(%why, "a full-text index is left out of maintenance");
                    report.skipped += 1;
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn keep_text(
        &self,
        text: TextId,
        waiting: u64,
        sweep: &mut Sweep,
        report: &mut PassReport,
    ) -> Result<()> {
        let (mut done, mut stale) = (0, 0);
        while done < waiting && !sweep.pace.is_over() {
            let published = self.inner.state()?;
            let most = sweep.pace.rows(published.commit()).max(POST_MIN).min(sweep.pace.rows_left());
            let Some(edit) = upkeep::post(&published, text, most)? else { break };
            if self.write_text(&edit, sweep.run)? {
                (done, stale) = (done + edit.rows(), 0);
                sweep.pace.spend(edit.rows(), self.inner.state()?.commit());
            } else {
                stale += 1;
                if stale > STALE_MAX {
                    return Err(outpaced());
                }
            }
        }
        report.note("unposted", waiting.saturating_sub(done));
        report.note("posted", done);
        let mut joined = 0;
        loop {
            let head = self.inner.state()?.snapshot().text_head(text)?.unwrap_or_default();
            if !upkeep::is_loose(&head) || sweep.pace.is_over() {
                break;
            }
            joined += self.inner.run_alone(|session| {
                let context = session.context(text.ns, Some(sweep.run));
                session.ledger.join_postings(&context, text, JOIN_BLOCKS)
            })?;
        }
        report.note("joined", joined);
        Ok(())
    }

    fn write_text(&self, edit: &TextEdit, run: RunId) -> Result<bool> {
        self.inner.run_alone(|session| {
            let context = session.context(edit.text.ns, Some(run));
            session.ledger.post(&context, edit)
        })
    }

    /// The full-text indexes of a namespace or of all.
    fn texts(&self, namespace: Option<&NamespaceName>) -> Result<Vec<(TextId, TextHead)>> {
        let mut all = Vec::new();
        for (_, ns) in self.tenants(namespace)? {
            all.extend(self.read(|published, _| published.snapshot().text_heads(Some(ns)))?);
        }
        Ok(all)
    }

    /// Posts the tail of an index that is past its bound, on behalf of a writer.
    pub(super) fn help_text(&self, text: TextId, run: RunId) -> Result<()> {
        loop {
            let published = self.inner.state()?;
            let Some(edit) = upkeep::post(&published, text, upkeep::POST_MAX)? else { return Ok(()) };
            let written = self.write_text(&edit, run)?;
            let head = self.inner.state()?.snapshot().text_head(text)?.unwrap_or_default();
            if !written || !upkeep::is_pressed(&head) {
                return Ok(());
            }
        }
    }

    /// Writes the full-text indexes of a namespace, or of all, anew, with the analyzer of the policy in force.
    pub(super) fn rebuild_texts(&self, namespace: Option<&NamespaceName>, run: RunId) -> Result<u64> {
        let mut rows = 0;
        for (name, ns) in self.tenants(namespace)? {
            rows += u64::from(self.inner.run_alone(|session| {
                if !session.stands(&name, ns)? {
                    return Ok(0);
                }
                let context = session.context(ns, Some(run));
                let (texts, rows) = session.ledger.rebuild_texts(&context)?;
                session.reset.extend(texts.into_iter().map(TextId::index));
                Ok(rows)
            })?);
        }
        Ok(rows)
    }
}
