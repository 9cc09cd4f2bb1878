//! The audit of one namespace: what is over goes, what is too much goes, and what repeats is told.

use std::sync::Arc;

use serde::Serialize;

use crate::engine::namespace::Namespace;
use crate::engine::options::MaintainOptions;
use crate::error::Result;
use crate::hygiene::{Field, duplicate_groups};
use crate::model::{MemoryId, Pass};

/// What the audit of a namespace found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamespaceAudit {
    /// Memories whose life was over and that were removed; in a dry run those that would be.
    pub expired_purged: u64,
    /// Short-term memories above `sweeper.short_term_cap` that were removed, within the destruction budget; in a dry run those
    /// that would be.
    pub short_term_evicted: u64,
    /// Number of namespaces: 1, or 0 where nothing was ever written.
    pub namespaces: u64,
    /// Visible memories whose texts are equal but for white space and case, at least two in a group. Such repeats may be
    /// poisoning, and are told and never removed. Snapshots are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub duplicate_groups: Vec<Vec<MemoryId>>,
}

impl Namespace {
    /// Audits the namespace: removes the memories whose life is over, then the short-term memories above the cap of the policy,
    /// and tells which visible memories repeat each other. A dry run removes nothing.
    ///
    /// ```
    /// use oubliette::{Database, WriteOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// let apart = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    /// team.add_all(vec!["Ann prefers tea".into(), "ann  prefers TEA".into()], &apart)?;
    /// assert_eq!(team.audit(true)?.duplicate_groups[0].len(), 2);
    /// # db.close()?;
    /// assert!(team.audit(false).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::maintain_with`], for the first of its passes that fails.
    pub fn audit(&self, dry_run: bool) -> Result<NamespaceAudit> {
        let options = MaintainOptions { dry_run, ..MaintainOptions::default() };
        let options = options.passes([Pass::Expire, Pass::Cap]);
        let (done, failed) = self.db.maintain_to_end(Some(&self.name), &options)?;
        failed.map_or(Ok(()), Err)?;
        let noted = Arc::clone(&self.db.inner.accesses);
        let groups = self.gc_read(|rows, ns, now| duplicate_groups(rows, &Field::new(ns, now, noted)))?;
        Ok(NamespaceAudit {
            expired_purged: done.removed(Pass::Expire, dry_run),
            short_term_evicted: done.removed(Pass::Cap, dry_run),
            namespaces: u64::from(groups.is_some()),
            duplicate_groups: groups.unwrap_or_default(),
        })
    }
}
