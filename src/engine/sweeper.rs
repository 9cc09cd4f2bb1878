//! The sweeper: a thread that maintains a file at intervals, as long as a handle of the file is open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use crate::engine::database::Database;
use crate::engine::failed::FailedPass;
use crate::engine::inner::{FaintInner, Inner};
use crate::engine::maintain::Manner;
use crate::engine::options::MaintainOptions;
use crate::engine::pace::Pace;
use crate::engine::summaries::SweptSummaries;
use crate::error::{Error, Result};
use crate::hygiene::PassReport;
use crate::model::{RunId, Span, Stage, Time};
use crate::summary::Summarizer;

/// What is called after each sweep, on the thread of the sweeper.
type OnSweep = Box<dyn FnMut(&SweepReport) + Send>;

/// How a sweeper sweeps.
///
/// ```
/// use oubliette::maintain::SweeperConfig;
/// let config = SweeperConfig { interval: Some("30m".parse()?), ..SweeperConfig::default() };
/// assert!(config.options.passes.is_empty()); // Those that the policy enables.
/// # Ok::<(), oubliette::Error>(())
/// ```
pub struct SweeperConfig {
    /// The time from the beginning of a sweep to the beginning of the next one; none: `sweeper.interval` of the policy. Zero
    /// switches the sweeper off. A sweep that lasts longer is followed by the next one at once.
    pub interval: Option<Span>,
    /// What each sweep does. No pass named: those that the policy enables, in its order. A budget bounds each sweep.
    pub options: MaintainOptions,
    /// Who writes the summaries of the stage `gc`, which a sweep leaves out without it. It is asked at most every `gc.interval`, on a
    /// thread of its own, and has `gc.deadline` for each summary.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// Called with the report of each sweep, on the thread of the sweeper.
    pub on_sweep: Option<OnSweep>,
}

impl Default for SweeperConfig {
    fn default() -> Self {
        SweeperConfig { interval: None, options: MaintainOptions::live(), summarizer: None, on_sweep: None }
    }
}

impl fmt::Debug for SweeperConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SweeperConfig { interval, options, summarizer: _, on_sweep: _ } = self;
        let mut shown = f.debug_struct("SweeperConfig");
        shown.field("interval", interval).field("options", options).finish_non_exhaustive()
    }
}

/// What one sweep came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepReport {
    /// When the sweep began, by the clock of the database.
    pub at: Time,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// The run that its journal rows name, for [`Namespace::undo`](crate::Namespace::undo); none where nothing was to be done.
    pub run: Option<RunId>,
    /// The passes that ended well, in the order in which they ran.
    pub passes: Vec<PassReport>,
    /// The passes that failed. The passes after each of them ran all the same.
    pub failed: Vec<FailedPass>,
    /// What the stage `gc` did, for each namespace in which its time had come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<SweptSummaries>,
}

/// A sweeper at work. It ends when it is stopped or dropped, and when the file is closed.
///
/// ```
/// use oubliette::Database;
/// use oubliette::maintain::SweeperConfig;
/// # let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("m.oub"))?;
/// let sweeper = db.sweeper(SweeperConfig { interval: Some("1h".parse()?), ..Default::default() })?;
/// while sweeper.last_report().is_none() {
///     std::thread::yield_now(); // The first sweep begins at once.
/// }
/// sweeper.stop();
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sweeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the handle of a sweeper and its thread share.
#[derive(Debug, Default)]
struct Shared {
    /// Set once, for good. A pass that is under way ends with its slice.
    stop: Arc<AtomicBool>,
    last: Mutex<Option<SweepReport>>,
    /// Told when `stop` is set, so that nobody waits for the end of an interval.
    woken: Condvar,
}

impl Sweeper {
    /// The report of the last sweep that ended.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::maintain::SweeperConfig;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let sweeper = db.sweeper(SweeperConfig::default())?; // `sweeper.interval` is 0: off.
    /// assert_eq!(sweeper.last_report(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn last_report(&self) -> Option<SweepReport> {
        self.shared.last.lock().clone()
    }

    /// Whether the thread is there: it is not where the interval is zero, nor after the file was closed.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::maintain::SweeperConfig;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// assert!(!db.sweeper(SweeperConfig::default())?.is_running());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops the sweeper and waits until its thread has ended, which is within one slice of a pass.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::maintain::SweeperConfig;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let often = || SweeperConfig { interval: Some("1s".parse().unwrap()), ..Default::default() };
    /// let sweeper = db.sweeper(often())?;
    /// assert!(db.sweeper(often()).is_err()); // A file has one.
    /// sweeper.stop();
    /// db.sweeper(often())?.stop();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop(self) {
        drop(self);
    }

    /// Waits until the thread ends by itself, because the file was closed.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::maintain::SweeperConfig;
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let other = db.clone();
    /// let on_sweep = Box::new(move |_: &_| drop(other.clone().close()));
    /// let interval = Some("1s".parse()?);
    /// db.sweeper(SweeperConfig { interval, on_sweep: Some(on_sweep), ..Default::default() })?.wait();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(mut self) {
        self.join();
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // A callback may drop the sweeper: its own thread can't wait for itself.
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            tracing::error!("the thread of the sweeper has panicked");
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Under the lock, or the thread could look at `stop` before and begin to wait after.
        let lock = self.shared.last.lock();
        self.shared.woken.notify_all();
        drop(lock);
        self.join();
    }
}

impl Database {
    /// Starts the sweeper of the file: a thread that maintains every namespace at once and then at each interval. A pass
    /// that fails is told in the report, and the next pass runs. The thread keeps no handle open: it ends with the
    /// last one.
    ///
    /// ```
    /// use oubliette::maintain::SweeperConfig;
    /// use oubliette::policy::Syntax;
    /// # let folder = tempfile::tempdir()?;
    /// let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// db.set_policy("sweeper.interval = \"10m\"", Syntax::Toml)?;
    /// let sweeper = db.sweeper(SweeperConfig::default())?;
    /// assert!(sweeper.is_running());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for options out of bounds, and for a dry run; `Conflict` where a sweeper of this handle is at work; `Io` where no thread can be
    /// started; `ReadOnly`, `Closed`.
    pub fn sweeper(&self, config: SweeperConfig) -> Result<Sweeper> {
        let SweeperConfig { interval, options, summarizer, on_sweep } = config;
        options.check()?;
        self.inner.check_open()?;
        if options.dry_run {
            return Err(Error::invalid("dry_run", "must be false: a sweeper does the work", "true"));
        }
        let interval = interval.unwrap_or_else(|| self.inner.in_force().policy.sweeper.interval);
        let shared = Arc::new(Shared::default());
        if interval <= Span::ZERO {
            return Ok(Sweeper { shared, thread: None });
        }
        let at_work = Swept::begin(&self.inner)?;
        let (of_thread, interval) = (Arc::clone(&shared), Duration::from(interval));
        let thread = thread::Builder::new().name("oubliette-sweeper".to_owned());
        let work = SweepWork { options, summarizer };
        let thread = thread.spawn(move || of_thread.run(&at_work, interval, &work, on_sweep));
        let thread = thread.map_err(|source| Error::io("start a thread for", self.path(), source))?;
        Ok(Sweeper { shared, thread: Some(thread) })
    }
}

/// The file that a sweeper sweeps, which has no second one as long as this lives.
struct Swept(FaintInner);

impl Swept {
    fn begin(inner: &Inner) -> Result<Self> {
        if inner.is_swept.swap(true, Ordering::SeqCst) {
            let why = "one is at work on this file: stop it first".to_owned();
            return Err(Error::Conflict { what: "sweeper".to_owned(), why });
        }
        Ok(Swept(inner.downgrade()))
    }

    /// The database; none when every handle of it is gone or it was closed.
    fn database(&self) -> Option<Database> {
        self.0.upgrade().filter(|inner| !inner.is_closed()).map(Database::from_inner)
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.is_swept.store(false, Ordering::SeqCst);
        }
    }
}

/// What each sweep does.
struct SweepWork {
    options: MaintainOptions,
    summarizer: Option<Arc<dyn Summarizer>>,
}

impl Shared {
    /// Sweeps at once, and then at each interval, until it is stopped or the file is closed.
    fn run(&self, swept: &Swept, interval: Duration, work: &SweepWork, mut on_sweep: Option<OnSweep>) {
        loop {
            let begun = Instant::now();
            let Some(database) = swept.database() else { return };
            let report = database.swept(work, &self.stop);
            drop(database);
            *self.last.lock() = Some(report.clone());
            if let Some(on_sweep) = &mut on_sweep {
                on_sweep(&report);
            }
            // The lock with which `stop` is told, so that none is told between the look and the wait.
            let mut last = self.last.lock();
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let left = interval.saturating_sub(begun.elapsed());
                // A closed file is noticed within a second, however long the interval is.
                if left.is_zero() || swept.database().is_none() {
                    break;
                }
                self.woken.wait_for(&mut last, left.min(Duration::from_secs(1)));
            }
        }
    }
}

impl Database {
    /// One sweep, which ends early when `stop` is set.
    fn swept(&self, work: &SweepWork, stop: &Arc<AtomicBool>) -> SweepReport {
        let (begun, at) = (Instant::now(), self.inner.clock.now());
        let (mut failed, mut summaries, mut unbegun) = (Vec::new(), Vec::new(), None);
        let SweepWork { options, summarizer } = work;
        let mut note = |report: PassReport, why: Error| {
            tracing::warn!(pass = %report.pass, %why, "a pass of the sweeper has failed");
            failed.push(FailedPass::new(report, &why));
        };
        let is_stage = || self.inner.in_force().policy.sweeper.stages.contains(&Stage::Gc);
        let mut summarize = || {
            let Some(summarizer) = summarizer.as_ref().filter(|_| is_stage()) else { return };
            match self.summarize_due(summarizer, stop) {
                Ok(done) => summaries = done,
                Err(why) => unbegun = Some(FailedPass::unbegun(&why)),
            }
        };
        let manner = Manner {
            pace: Pace::of(options).stopped_by(Arc::clone(stop)),
            idle: Some(self.inner.idle_for()),
            // Whoever names passes asks for these alone.
            between: options.passes.is_empty().then_some(&mut summarize),
            failed: &mut note,
        };
        let report = self.maintain_each(None, options, manner);
        failed.extend(unbegun);
        let (run, passes) = match report {
            Ok(report) => (report.run, report.passes),
            Err(why) => {
                failed.push(FailedPass::unbegun(&why));
                (None, Vec::new())
            }
        };
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(ms, passes = passes.len(), failed = failed.len(), "swept");
        SweepReport { at, ms, run, passes, failed, summaries }
    }
}
