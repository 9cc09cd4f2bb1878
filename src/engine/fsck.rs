//! The audit of a file: what is over goes, what is too much goes, and what else is to be looked at is told.

use std::sync::Arc;

use serde::Serialize;

use crate::engine::database::Database;
use crate::engine::failed::FailedPass;
use crate::engine::maintain::{MaintainReport, Manner};
use crate::engine::options::MaintainOptions;
use crate::error::{Error, Result};
use crate::hygiene::{CheckOptions, CheckReport, Field, duplicate_groups};
use crate::model::{MemoryId, Pass, RunId};

/// What an audit found and did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FsckReport {
    /// The run that the removals belong to; none where nothing was removed.
    pub run: Option<RunId>,
    /// Memories whose life was over and that were removed; in a dry run those that would be.
    pub expired_purged: u64,
    /// Short-term memories above `sweeper.short_term_cap` that were removed; in a dry run those that would be.
    pub short_term_evicted: u64,
    /// Number of namespaces.
    pub namespaces: u64,
    /// Visible memories of a namespace whose texts are equal but for white space and case, at least two in a group. Such
    /// repeats may be poisoning, and are told and never removed. Snapshots are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicate_groups: Vec<Vec<MemoryId>>,
    /// Passes that could not do their work, as on a damaged file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedPass>,
    /// Everything in the file that is not as it must be, after the removals.
    pub check: CheckReport,
}

impl Database {
    /// Audits the file: removes the memories whose life is over, then the short-term memories above the cap of the
    /// policy, without the bound that a sweep has; counts the namespaces; tells which visible memories repeat each other; and
    /// checks the file. A dry run removes nothing.
    ///
    /// What was removed is taken back like any run of maintenance ([`Namespace::runs`](crate::Namespace::runs)), except
    /// for memories whose end a caller had set.
    ///
    /// ```
    /// use oubliette::{Database, WriteOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    /// team.add_all(vec!["Ann prefers tea".into(), "ann  prefers TEA".into()], &apart)?;
    /// let report = db.fsck(true)?;
    /// assert_eq!((report.expired_purged, report.namespaces), (0, 1));
    /// assert_eq!(report.duplicate_groups[0].len(), 2);
    /// assert!(report.check.ok && report.run.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`, `Retry`; `ReadOnly` unless it is a dry run. Damage is a finding, not an error.
    pub fn fsck(&self, dry_run: bool) -> Result<FsckReport> {
        let mut failed = Vec::new();
        let options = MaintainOptions { dry_run, destroy_max: Some(u64::MAX), ..MaintainOptions::default() };
        let options = options.passes([Pass::Expire, Pass::Cap]);
        let mut note = |report, why: Error| failed.push(FailedPass::new(report, &why));
        let done = self.maintain_each(None, &options, Manner::of(&options, &mut note))?;
        let done = MaintainReport { failed, ..done };
        Ok(FsckReport {
            run: done.run,
            expired_purged: done.removed(Pass::Expire, dry_run),
            short_term_evicted: done.removed(Pass::Cap, dry_run),
            namespaces: self.namespaces()?.len() as u64,
            duplicate_groups: self.repeats()?,
            failed: done.failed,
            check: self.check(&CheckOptions::default())?,
        })
    }

    /// The groups of visible memories that say the same, of all namespaces, in order.
    fn repeats(&self) -> Result<Vec<Vec<MemoryId>>> {
        let published = self.inner.state()?;
        let mut all = Vec::new();
        for (_, ns) in self.tenants(None)? {
            let (now, noted) = (self.inner.instant(&published), Arc::clone(&self.inner.accesses));
            let field = Field::new(ns, now, noted);
            all.append(&mut duplicate_groups(published.snapshot(), &field)?);
        }
        all.sort_unstable();
        Ok(all)
    }
}
