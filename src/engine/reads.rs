//! Reads: each on one published state, with the instant of the call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::engine::database::Database;
use crate::engine::inner::Inner;
use crate::engine::lease::{Held, Keeper, Lease};
use crate::error::{Error, Result};
use crate::hygiene::{CheckOptions, CheckReport, check, check_erased};
use crate::index::Published;
use crate::ledger::unsettled;
use crate::model::{NamespaceName, Time};
use crate::recall::{FileStats, IndexStats, Stats, StatsContext, Unsettled, file_stats, index_stats, stats};
use crate::store::{NsId, Rows};

/// Rows that `stats` settles before it answers, one slice at a time.
const SETTLE_SLICE: usize = 1_000;

/// The database at one instant: every read of a snapshot sees the same commit and the same clock.
///
/// It pins space in the file, so it has a lease ([`Builder::lease`](crate::Builder::lease)), which ends in the middle of no
/// export.
///
/// ```
/// # use oubliette::{Database, PageRequest};
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::open(folder.path().join("m.oub"))?;
/// let team = db.namespace("team")?;
/// team.add("before")?;
/// let before = db.snapshot()?.namespace("team")?;
/// team.add("after")?;
/// assert_eq!(before.list(&PageRequest::default())?.items.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(super) inner: Arc<Inner>,
    held: Arc<Held>,
    now: Time,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Keeps the lease from ending while one call works through the snapshot.
    ///
    /// # Errors
    /// `SnapshotExpired`.
    pub(crate) fn keep(&self) -> Result<Keeper<'_>> {
        // Under the lock that whoever ends the lease takes.
        let published = self.held.published.lock();
        if published.is_none() || self.held.is_over(self.inner.clock.now()) {
            return Err(self.expired());
        }
        self.held.kept.fetch_add(1, Ordering::SeqCst);
        Ok(Keeper(&self.held))
    }

    /// Checks what the snapshot sees, as [`Database::check`] does without options.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// let snapshot = db.snapshot()?;
    /// assert!(snapshot.check()?.ok);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`, `SnapshotExpired`. Damage is a finding, not an error.
    pub fn check(&self) -> Result<CheckReport> {
        self.read(|published, _| check(published.snapshot(), &CheckOptions::default()))
    }

    fn expired(&self) -> Error {
        Error::SnapshotExpired { lease_ms: self.inner.lease.as_millis().unsigned_abs() }
    }

    pub(super) fn read<R>(&self, read: impl Fn(&Published, Time) -> Result<R>) -> Result<R> {
        if self.inner.is_closed() {
            return Err(Error::Closed);
        }
        self.inner.called();
        let published = self.held.published.lock().clone();
        let is_of_this_file = |held: &Arc<Published>| held.snapshot().epoch() == self.inner.store.epoch();
        let is_in_time = !self.held.is_over(self.inner.clock.now());
        let published = published.filter(|held| is_in_time && is_of_this_file(held));
        let published = published.ok_or_else(|| self.expired())?;
        match read(&published, self.now) {
            // The file was replaced under the read, which is no failure of the storage.
            Err(Error::Retry { .. }) if !is_of_this_file(&published) => Err(self.expired()),
            done => done,
        }
    }
}

impl Database {
    /// A view of the database at this instant, for reads that must fit together. A memory that is forgotten meanwhile can
    /// still be read through the view, until the view is dropped or its lease has ended.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("before")?;
    /// let before = db.snapshot()?.namespace("team")?;
    /// let after = team.add("after")?.id;
    /// assert!(before.get(after)?.is_none());
    /// db.clone().close()?;
    /// assert!(db.snapshot().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let inner = Arc::clone(&self.inner);
        if inner.is_closed() {
            return Err(Error::Closed);
        }
        let published = inner.state()?;
        let (now, until) = (inner.instant(&published), inner.clock.now().plus(inner.lease));
        let published = Mutex::new(Some(published));
        let held = Arc::new(Held { published, until, kept: AtomicUsize::new(0) });
        inner.leases.lock().push(Lease(Arc::downgrade(&held)));
        Ok(Snapshot { inner, held, now })
    }

    /// Reads from what is published now. A state whose file was replaced under it is read again, once.
    pub(super) fn read<R>(&self, read: impl Fn(&Published, Time) -> Result<R>) -> Result<R> {
        if self.inner.is_closed() {
            return Err(Error::Closed);
        }
        self.inner.called();
        let once = || {
            let published = self.inner.state()?;
            read(&published, self.inner.instant(&published))
        };
        match once() {
            Err(Error::Retry { .. }) if !self.inner.is_closed() => once(),
            Err(Error::Retry { .. }) => Err(Error::Closed),
            other => other,
        }
    }

    /// Counters, sizes and health of the whole file. What came due is settled first, at most
    /// `stats.max_due` rows; the rest is `pending_due`. A handle that only reads counts as if it had settled, but for duplicates.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// db.namespace("others")?.add("It rains")?;
    /// let stats = db.stats()?;
    /// assert_eq!((stats.memories.live, stats.by_namespace["team"]), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn stats(&self) -> Result<Stats> {
        self.stats_in(None)
    }

    pub(super) fn stats_in(&self, namespace: Option<&NamespaceName>) -> Result<Stats> {
        self.settle(namespace)?;
        let file_bytes = self.inner.store.file_bytes()?;
        let in_force = self.inner.in_force();
        self.read(|published, now| {
            let clock = self.inner.clock.now();
            let (policy, unsettled) = (&in_force.policy.stats, self.unsettled(published, now, namespace)?);
            let context = StatsContext { now, clock, file_bytes, policy, unsettled: &unsettled };
            let access_dropped = self.inner.accesses.dropped();
            Ok(Stats { access_dropped, ..stats(published, namespace, context)? })
        })
    }

    /// Every vector index of the file, each loaded into memory and walked. An index larger than the memory
    /// budget is left out.
    ///
    /// ```
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// db.namespace("team")?.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
    /// assert_eq!(db.index_stats()?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn index_stats(&self) -> Result<Vec<IndexStats>> {
        self.read(|published, _| index_stats(published, None))
    }

    /// What the file and each of its tables take, page by page: it reads the whole file.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert!(db.file_stats()?.bytes.file > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn file_stats(&self) -> Result<FileStats> {
        let file_bytes = self.inner.store.file_bytes()?;
        self.read(|published, _| file_stats(published.snapshot(), file_bytes))
    }

    /// What settling would change, for a handle that only reads, as far as `stats.max_due` allows.
    pub(super) fn unsettled(
        &self,
        published: &Published,
        now: Time,
        namespace: Option<&NamespaceName>,
    ) -> Result<BTreeMap<NsId, Unsettled>> {
        let mut all = BTreeMap::new();
        if self.inner.check_open().is_ok() {
            return Ok(all);
        }
        let rows = published.snapshot();
        let spaces = match namespace {
            Some(name) => Vec::from_iter(rows.namespace(name.as_str())?),
            None => rows.namespaces()?.into_iter().map(|(_, row)| row).collect(),
        };
        let mut left = usize::try_from(self.inner.in_force().policy.stats.max_due).unwrap_or(usize::MAX);
        for row in spaces {
            let (instants, counters) = unsettled(&**rows, NsId(row.number), now, left)?;
            left = left.saturating_sub(instants);
            all.insert(NsId(row.number), Unsettled { instants, counters });
        }
        Ok(all)
    }

    /// Applies the instants that have come, as far as `stats.max_due` allows. A handle that only reads leaves them.
    pub(super) fn settle(&self, namespace: Option<&NamespaceName>) -> Result<()> {
        if self.inner.check_open().is_err() {
            return if self.inner.is_closed() { Err(Error::Closed) } else { Ok(()) };
        }
        let mut left = usize::try_from(self.inner.in_force().policy.stats.max_due).unwrap_or(usize::MAX);
        let namespaces = match namespace {
            Some(namespace) => vec![namespace.clone()],
            None => self.namespaces()?,
        };
        for namespace in namespaces {
            loop {
                if left == 0 || !self.is_anything_due(&namespace)? {
                    break;
                }
                let settled = self.settle_slice(&namespace, left.min(SETTLE_SLICE))?;
                left = left.saturating_sub(settled.max(1));
            }
        }
        Ok(())
    }

    fn is_anything_due(&self, namespace: &NamespaceName) -> Result<bool> {
        self.read(|published, now| {
            let rows = published.snapshot();
            let Some(row) = rows.namespace(namespace.as_str())? else { return Ok(false) };
            Ok(!rows.due(NsId(row.number), now, 1)?.is_empty())
        })
    }

    fn settle_slice(&self, namespace: &NamespaceName, most: usize) -> Result<usize> {
        self.inner.run_alone(|session| {
            let Some(row) = session.ledger.tx.namespace(namespace.as_str())? else { return Ok(0) };
            let context = session.context(NsId(row.number), None);
            session.ledger.settle(&context, most, |_, _| Ok(false))
        })
    }

    /// The namespaces, by name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// assert!(db.namespaces()?.is_empty()); // A handle alone makes nothing.
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(db.namespaces()?[0].as_str(), "team");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        self.read(|published, _| {
            let all = published.snapshot().namespaces()?;
            all.into_iter().filter(|(_, row)| !row.dropping).map(|(name, _)| name.parse()).collect()
        })
    }

    /// Walks the file and compares everything in it with what it must be; changes nothing.
    ///
    /// ```
    /// use oubliette::report::CheckOptions;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// # let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() })?;
    /// assert!(report.ok && report.findings.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Closed`, `Retry`. Damage is a finding, not an error.
    pub fn check(&self, options: &CheckOptions) -> Result<CheckReport> {
        self.read(|published, _| {
            let mut report = check(published.snapshot(), options)?;
            if let Some(why) = self.inner.store.misfit() {
                report.file_misfits(why);
            }
            if !options.erased.is_empty() {
                let files = self.inner.store.bytes()?;
                check_erased(published.snapshot(), files, &options.erased, &mut report)?;
            }
            Ok(report)
        })
    }
}
