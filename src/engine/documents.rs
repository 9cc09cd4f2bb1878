//! Maintenance by the names that the documents behind the rules use.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::engine::database::Database;
use crate::engine::maintain::MaintainReport;
use crate::engine::namespace::Namespace;
use crate::engine::options::{DedupOptions, MaintainOptions};
use crate::error::{ErrorKind, Result};
use crate::hygiene::{BackfillConfidenceReport, DedupReport, ProfileCollapseReport, PruneHistoryReport};
use crate::model::{NamespaceName, Pass, Span};

/// Options of [`collapse_operational_profile_snapshots`].
#[derive(Clone, Debug)]
pub struct ProfileCollapseOptions {
    /// Only say what would be done; the default.
    pub dry_run: bool,
    /// Whether paraphrases of the same report are looked for as well; off by default.
    pub enable_fuzzy: bool,
    /// Sample groups of the report, 0 to 10,000; 20 by default.
    pub max_sample_groups: u32,
    /// Rows of a page of the listing, 1 to 1,000,000; below 50 counts as 50. 500 by default.
    pub batch_size: u32,
    /// Only this namespace; all by default, one by one.
    pub namespace: Option<NamespaceName>,
}

impl Default for ProfileCollapseOptions {
    fn default() -> Self {
        let (max_sample_groups, batch_size) = (20, 500);
        ProfileCollapseOptions {
            dry_run: true,
            enable_fuzzy: false,
            max_sample_groups,
            batch_size,
            namespace: None,
        }
    }
}

/// Collapses operational reports that differ only in numbers and dates: the pass `collapse`.
///
/// ```
/// use oubliette::Database;
/// use oubliette::maintain::{ProfileCollapseOptions, collapse_operational_profile_snapshots};
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::open(folder.path().join("m.oub"))?;
/// let report = collapse_operational_profile_snapshots(&db, &ProfileCollapseOptions::default())?;
/// assert!(report.dry_run && report.duplicate_groups == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Invalid` for an option out of its bounds; else as [`Database::maintain_with`].
pub fn collapse_operational_profile_snapshots(
    store: &Database,
    options: &ProfileCollapseOptions,
) -> Result<ProfileCollapseReport> {
    let asked = MaintainOptions {
        dry_run: options.dry_run,
        fuzzy: Some(options.enable_fuzzy),
        max_samples: Some(options.max_sample_groups),
        batch_size: Some(options.batch_size),
        ..MaintainOptions::default().passes([Pass::Collapse])
    };
    let done = store.maintain_in(options.namespace.as_ref(), &asked)?;
    let mut report: ProfileCollapseReport = report_of(&done);
    report.dry_run = options.dry_run;
    report.samples.truncate(options.max_sample_groups as usize);
    Ok(report)
}

/// The report of the first pass as its own type; where there was no namespace to look at, the default one.
fn report_of<T: Clone + Default + 'static>(done: &MaintainReport) -> T {
    done.passes.iter().find_map(|pass| pass.report.get()).cloned().unwrap_or_default()
}

impl Database {
    /// Merges memories whose vectors are nearly equal: the pass `vector-duplicates`, then the repair of supersession.
    ///
    /// ```
    /// use oubliette::maintain::DedupOptions;
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// for text in ["Ann prefers tea", "Ann likes tea best"] {
    ///     team.add(Draft::new(text).vector([0.6, 0.8]))?;
    /// }
    /// assert_eq!(db.dedup(&DedupOptions { dry_run: true, ..DedupOptions::default() })?.tombstoned, 1);
    /// assert!(db.dedup(&DedupOptions { similarity: 1.5, ..DedupOptions::default() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for a similarity of NaN or more than 1; else as [`Database::maintain_with`].
    pub fn dedup(&self, options: &DedupOptions) -> Result<DedupReport> {
        options.check()?;
        let asked = MaintainOptions {
            dry_run: options.dry_run,
            dedup: Some(options.clone()),
            ..MaintainOptions::default().passes([Pass::VectorDuplicates])
        };
        Ok(report_of(&self.maintain_in(options.namespace.as_ref(), &asked)?))
    }
}

impl Namespace {
    /// Gives durable memories without a confidence that of an imported memory (`confidence.imported`). The run can be
    /// taken back.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let report = team.backfill_confidence()?;
    /// assert_eq!((report.inspected, report.seeded, report.skipped), (1, 0, 1)); // Writes give one themselves.
    /// # team.database().clone().close()?;
    /// # assert!(team.backfill_confidence().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::maintain_with`].
    pub fn backfill_confidence(&self) -> Result<BackfillConfidenceReport> {
        Ok(report_of(&self.maintain_with(&MaintainOptions::live().passes([Pass::Backfill]))?))
    }

    /// What [`Namespace::backfill_confidence`] would do; nothing is written.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// assert_eq!(team.backfill_confidence_preview()?.inspected, 1);
    /// # team.database().clone().close()?;
    /// # assert!(team.backfill_confidence_preview().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::maintain_with`].
    pub fn backfill_confidence_preview(&self) -> Result<BackfillConfidenceReport> {
        Ok(report_of(&self.maintain_with(&MaintainOptions::default().passes([Pass::Backfill]))?))
    }

    /// Reduces the history of a series of snapshots, or of all with none named, to the latest of each period: the pass
    /// `snapshots`.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// team.push_snapshot("12 facts", "2026-01-03T12:00:00Z".parse()?)?;
    /// let report = team.prune_history(Some("profile"), true)?;
    /// assert_eq!(report.deleted, 0); // Each push keeps the latest of a day already.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::maintain_with`].
    pub fn prune_history(&self, series: Option<&str>, dry_run: bool) -> Result<PruneHistoryReport> {
        let series = series.map(str::to_owned);
        let asked =
            MaintainOptions { dry_run, series, ..MaintainOptions::default().passes([Pass::Snapshots]) };
        Ok(report_of(&self.maintain_with(&asked)?))
    }
}

/// [`Database::dedup`] again and again.
#[derive(Clone, Debug)]
pub struct DedupJob {
    /// Time between the end of one pass and the beginning of the next; zero ends the job before its first.
    pub interval: Span,
    /// How each pass runs.
    pub options: DedupOptions,
}

impl DedupJob {
    /// Runs passes on this thread until `stop` is told or hung up; gives each report to `told`.
    ///
    /// ```
    /// use oubliette::Span;
    /// use oubliette::maintain::{DedupJob, DedupOptions};
    /// use std::sync::mpsc;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let job = DedupJob { interval: Span::from_millis(1), options: DedupOptions::default() };
    /// let (stop, stopped) = mpsc::channel();
    /// let mut passes = 0;
    /// job.run(&db, &stopped, |_report| {
    ///     passes += 1;
    ///     let _ = stop.send(()); // One pass is enough here.
    /// })?;
    /// assert_eq!(passes, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Of a pass over the one namespace that is named; with none named an error is logged and the next pass comes.
    pub fn run(
        &self,
        database: &Database,
        stop: &Receiver<()>,
        mut told: impl FnMut(DedupReport),
    ) -> Result<()> {
        if self.interval == Span::ZERO {
            return Ok(());
        }
        loop {
            match stop.recv_timeout(self.interval.into()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            match database.dedup(&self.options) {
                Ok(report) => told(report),
                Err(why) if self.options.namespace.is_none() && why.kind() != ErrorKind::Closed => {
                    tracing::warn!(%why, "a pass of the dedup job failed");
                }
                Err(why) => return Err(why),
            }
        }
    }
}
