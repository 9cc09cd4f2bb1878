//! The handle that applications hold.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::engine::batch::Batch;
use crate::engine::builder::Builder;
use crate::engine::clock::Clock;
use crate::engine::embed::Given;
use crate::engine::queue::{Queue, Weight};
use crate::engine::reads::{Lease, Snapshot};
use crate::engine::session::{InForce, Session, Work};
use crate::engine::state::Watched;
use crate::error::{Error, Result};
use crate::index::{Current, Images, Published, ViewBudget};
use crate::ingest::Rulebook;
use crate::limits::FORMAT_VERSION;
use crate::model::{Actor, IdSource, Span};
use crate::policy::{Policy, PolicyVersion, Syntax};
use crate::store::control::{Clock as ClockRow, SpaceRow};
use crate::store::{Durability, IndexId, Rows, SpaceId, Store};
use crate::text::{Analyzer, Messages, Secret};

/// An open database: cheap to clone, safe to share between threads, blocking.
///
/// ```
/// use oubliette::{Database, Decision, Draft, Query};
/// let folder = tempfile::tempdir()?;
/// let db = Database::open(folder.path().join("memory.oub"))?;
/// let team = db.namespace("team")?;
/// let tea = team.add(Draft::new("Ann prefers tea").key("ann:drink").vector([0.6, 0.8]))?;
/// assert_eq!(tea.decision, Decision::Stored);
/// // The same content again is one more holder of the memory, not one more memory.
/// let again = team.add(Draft::new("Ann prefers tea").vector([0.6, 0.8]))?;
/// assert_eq!((again.decision, again.id), (Decision::Reinforced, tea.id));
/// let found = team.search(Query::vector([0.8, 0.6]))?;
/// assert_eq!(found.hits[0].id, tea.id);
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    pub(super) inner: Arc<Inner>,
}

/// What all clones of a handle share.
pub(super) struct Inner {
    pub(super) store: Store,
    /// What was published last; none in a handle that only reads, which looks at the file before each call.
    pub(super) current: Option<Current>,
    /// What a handle that only reads has in memory.
    pub(super) watched: Mutex<Watched>,
    pub(super) queue: Queue<Work>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) secret: Secret,
    pub(super) durability: Durability,
    pub(super) actor: Actor,
    pub(super) lease: Span,
    /// Gives texts their vectors.
    pub(super) embedder: RwLock<Option<Given>>,
    pub(super) in_force: RwLock<Arc<InForce>>,
    /// A policy of this handle's own, which hides the stored one.
    pub(super) own_policy: Option<Policy>,
    /// The instructions in place of the policy's.
    pub(super) own_instructions: Option<String>,
    read_only: bool,
    closed: AtomicBool,
    pub(super) leases: Mutex<Vec<Lease>>,
    /// Whoever holds it is the one who publishes.
    pub(super) publishing: Mutex<()>,
    /// Whoever holds it is the one who changes graphs.
    pub(super) upkeep: Mutex<()>,
    /// Indexes past their bounds.
    pub(super) pressed: Mutex<BTreeSet<IndexId>>,
}

/// What a [`Builder`] has gathered.
pub(super) struct Opening {
    pub(super) store: Store,
    pub(super) durability: Durability,
    pub(super) budget_bytes: usize,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) policy: Option<Policy>,
    pub(super) instructions: Option<String>,
    pub(super) lease: Span,
    pub(super) actor: Actor,
    pub(super) read_only: bool,
}

impl Inner {
    pub(super) fn open(opening: Opening) -> Result<Arc<Self>> {
        let Opening {
            store,
            durability,
            budget_bytes,
            clock,
            ids,
            policy,
            instructions,
            lease,
            actor,
            read_only,
        } = opening;
        let snapshot = store.snapshot()?;
        let identity =
            snapshot.identity()?.ok_or_else(|| Error::corrupted("meta", b"identity", "no identity row"))?;
        let row = snapshot.clock()?;
        let in_force = in_force(&snapshot, &row, policy.as_ref())?;
        let budget = ViewBudget::new(budget_bytes);
        let images = Arc::new(Images::none(budget));
        let watched = Watched { epoch: snapshot.epoch(), row, images: Arc::clone(&images) };
        let current = (!read_only).then(|| Current::new(Published::with(Arc::new(snapshot), &row, images)));
        Ok(Arc::new(Inner {
            store,
            current,
            watched: Mutex::new(watched),
            queue: Queue::new(),
            clock,
            ids,
            secret: Secret::from_bytes(identity.secret),
            durability,
            actor,
            lease,
            embedder: RwLock::new(None),
            in_force: RwLock::new(Arc::new(in_force)),
            own_policy: policy,
            own_instructions: instructions,
            read_only,
            closed: AtomicBool::new(false),
            leases: Mutex::new(Vec::new()),
            publishing: Mutex::new(()),
            upkeep: Mutex::new(()),
            pressed: Mutex::new(BTreeSet::new()),
        }))
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read())
    }

    pub(super) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        self.check_outside()?;
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        Ok(())
    }

    /// Refuses what would wait for the very thread that calls: it is in the midst of a batch of this handle.
    pub(super) fn check_outside(&self) -> Result<()> {
        if self.queue.is_led_here() {
            return Err(Error::Conflict {
                what: "a call of the handle within its batch".to_owned(),
                why: "the batch has the lead until its closure is done: use what the closure is given"
                    .to_owned(),
            });
        }
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// The policy that the clock row names, or the handle's own.
pub(super) fn in_force(rows: &impl Rows, row: &ClockRow, own: Option<&Policy>) -> Result<InForce> {
    let policy = match (own, row.policy) {
        (Some(policy), _) => policy.clone(),
        (None, 0) => Policy::default(),
        (None, number) => {
            let text = rows.policy_text(number)?.ok_or_else(|| {
                Error::corrupted("policy", &number.to_be_bytes(), "the policy in force is not there")
            })?;
            Policy::parse(&text, Syntax::Toml)?
        }
    };
    let (hash, rules) = (policy.hash().0, Rulebook::new(&policy)?);
    let messages = Messages::new(&policy.msg, &policy.sim)?;
    let analyzer = Analyzer::new(policy.text.stemming).id();
    Ok(InForce { policy, rules, messages, analyzer, number: row.policy, hash })
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.durability == Durability::Batch
            && !self.is_closed()
            && !self.read_only
            && let Err(why) = self.store.flush()
        {
            tracing::error!(%why, "what was written since the last flush may be lost");
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database at `path` with the options that [`Builder`] begins with, and makes it when there is none. With the
    /// feature `static-mini` texts are given vectors by the embedder that ships with the crate, unless a caller brings
    /// vectors of its own; without an embedder texts are found by their words.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Builder::default().suggest_shipped().open(path)
    }

    /// Options to choose before opening.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn from_inner(inner: Arc<Inner>) -> Self {
        Database { inner }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.inner.store.path()
    }

    /// Version of the file format.
    pub fn format(&self) -> u32 {
        FORMAT_VERSION
    }

    /// Dimensions of the vectors; none before the first.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn dimensions(&self) -> Result<Option<usize>> {
        self.read(|published, _| {
            let rows = published.snapshot();
            let space = rows.space(SpaceId(rows.clock()?.space))?;
            Ok(space.map(|space| space.dim as usize))
        })
    }

    pub(super) fn fix_dimensions(&self, dimensions: Option<usize>) -> Result<()> {
        let Some(dim) = dimensions else { return Ok(()) };
        match self.dimensions()? {
            Some(found) if found == dim => Ok(()),
            Some(found) => Err(Error::invalid("dimensions", format!("must be {found}, as in the file"), dim)),
            None => {
                self.inner.run_alone(|session| session.ledger.open_space(SpaceRow::CALLER, dim).map(|_| ()))
            }
        }
    }

    /// Ends the handle: what is unsynced is synced, the file is let go. Other clones then answer `Closed`.
    ///
    /// # Errors
    /// `Retry` or `Unavailable` when the last sync failed.
    pub fn close(self) -> Result<()> {
        self.inner.check_outside()?;
        self.inner.queue.alone(|| {
            if self.inner.closed.swap(true, Ordering::SeqCst) {
                return Ok(());
            }
            let flushed = match self.inner.durability {
                Durability::Batch if !self.inner.read_only => self.inner.store.flush().map(|_| ()),
                _ => Ok(()),
            };
            flushed.and(self.inner.store.close())
        })
    }

    /// Queues a unit and waits for its answer; what it leaves without a vector gets one after its commit.
    pub(super) fn submit<R: Send + 'static>(
        &self,
        weight: Weight,
        unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.submit_embedded(weight, true, unit)
    }

    /// As [`Database::submit`], of a unit whose texts were given to the embedder: one that did not work is not asked again.
    pub(super) fn submit_embedded<R: Send + 'static>(
        &self,
        weight: Weight,
        works: bool,
        mut unit: impl FnMut(&mut Session<'_, '_, '_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.inner.check_open()?;
        let value = Arc::new(Mutex::new(None));
        let answer = Arc::clone(&value);
        let work: Work = Box::new(move |session| {
            let value = unit(session)?;
            *answer.lock() = Some((value, std::mem::take(&mut session.ledger.waiting)));
            Ok(())
        });
        self.inner.queue.submit(&self.inner, work, weight)?;
        self.relieve(weight.rows);
        let (value, waiting) = value.lock().take().ok_or(Error::Closed)?;
        if works {
            self.embed_waiting(waiting);
        }
        Ok(value)
    }

    /// Several operations in one transaction. `unit` may run more than once, if the storage fails.
    ///
    /// An embedder of the handle gives the texts that come without a vector theirs right after the commit, so that no model
    /// works while others wait to write. Until then they are found by their words.
    ///
    /// ```
    /// # use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// db.batch(|b| {
    ///     b.add(team.name(), Draft::new("the build is green").key("build"))?;
    ///     b.add(team.name(), Draft::new("the build is red").key("build"))
    /// })?;
    /// assert_eq!(team.history("build")?.versions.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of `unit`; nothing of it is written then.
    pub fn batch<R>(&self, mut unit: impl FnMut(&mut Batch<'_, '_, '_, '_>) -> Result<R>) -> Result<R> {
        let (value, rows, waiting) = self.inner.run_alone(|session| {
            let mut batch = Batch { session, rows: 0 };
            let value = unit(&mut batch)?;
            Ok((value, batch.rows, std::mem::take(&mut batch.session.ledger.waiting)))
        })?;
        self.relieve(rows);
        self.embed_waiting(waiting);
        Ok(value)
    }

    /// The policy in force, and its version.
    pub fn policy(&self) -> (Policy, PolicyVersion) {
        self.inner.catch_up();
        let in_force = self.inner.in_force();
        let version =
            PolicyVersion { number: in_force.number, hash: crate::policy::PolicyHash(in_force.hash) };
        (in_force.policy.clone(), version)
    }

    /// Stores another policy document, which is in force from this commit on.
    ///
    /// # Errors
    /// `Policy` naming the key of the document that is refused; the stored one stays.
    pub fn set_policy(&self, text: &str, syntax: Syntax) -> Result<PolicyVersion> {
        let policy = Policy::parse(text, syntax)?;
        let (text, hash) = (policy.to_toml()?, policy.hash());
        let number = self.submit(ONE, move |session| {
            let number = session.ledger.clock.policy + 1;
            session.ledger.clock.policy = number;
            session.ledger.tx.put_policy(number, &text)?;
            Ok(number)
        })?;
        Ok(PolicyVersion { number, hash })
    }

    /// Makes every commit so far durable; needed with [`Durability::Batch`] alone.
    ///
    /// # Errors
    /// `Retry`, `Unavailable`.
    pub fn flush(&self) -> Result<()> {
        self.inner.check_open()?;
        self.inner.sync()
    }

    /// A view of the database at this instant, for reads that must fit together.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(self)
    }
}

/// The weight of a unit that changes a row or two.
pub(super) const ONE: Weight = Weight { rows: 1, bytes: 1_024 };

pub(super) fn weight_of(rows: usize) -> Weight {
    Weight { rows, bytes: rows * 1_024 }
}
