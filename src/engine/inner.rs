//! What all handles of an open file share, and what each has of its own.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use crate::engine::attached::AttachedEmbedder;
use crate::engine::clock::Clock;
use crate::engine::in_force::{InForce, in_force};
use crate::engine::lease::Lease;
use crate::engine::queue::Queue;
use crate::engine::scorer::AttachedScorer;
use crate::engine::session::Work;
use crate::error::{Error, Result};
use crate::hygiene::{Accesses, Looks};
use crate::index::{Current, Images, Published, ViewBudget};
use crate::model::{Actor, IdSource, RunId, Span};
use crate::policy::Policy;
use crate::store::control::{Clock as ClockRow, CounterSort, TOTAL};
use crate::store::{Durability, IndexId, NsId, Rows, Store};
use crate::text::Secret;

/// What a handle has of its own, before what it shares with the others of the file.
#[derive(Clone)]
pub(super) struct Inner {
    core: Arc<Core>,
    pub(super) actor: Actor,
    /// Whether searches note what they find, where the query does not say.
    pub(super) track: bool,
    /// Whether it refuses to write.
    pub(super) read_only: bool,
}

impl Deref for Inner {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

/// A handle that does not keep the file open. There is one as long as any handle of the file is open, whichever it was made
/// from.
pub(super) struct FaintInner {
    core: Weak<Core>,
    actor: Actor,
    track: bool,
    read_only: bool,
}

impl FaintInner {
    pub(super) fn upgrade(&self) -> Option<Arc<Inner>> {
        let core = self.core.upgrade()?;
        Some(Arc::new(Inner { core, actor: self.actor, track: self.track, read_only: self.read_only }))
    }
}

/// The file, what was read of it, and who works on it.
pub(super) struct Core {
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
    pub(super) lease: Span,
    /// Gives texts their vectors.
    pub(super) embedder: RwLock<Option<AttachedEmbedder>>,
    /// What scores memories in place of the built-in formulas.
    pub(super) scorer: RwLock<Option<AttachedScorer>>,
    pub(super) in_force: RwLock<Arc<InForce>>,
    /// A policy of this handle's own, which hides the stored one.
    pub(super) own_policy: Option<Policy>,
    /// The instructions in place of the policy's.
    pub(super) own_instructions: Option<String>,
    pub(super) closed: AtomicBool,
    pub(super) leases: Mutex<Vec<Lease>>,
    /// Whoever holds it is the one who publishes.
    pub(super) publishing: Mutex<()>,
    /// Whoever holds it is the one who changes graphs.
    pub(super) upkeep: Mutex<()>,
    /// Plans of summaries that were made since the file was opened, in all namespaces.
    pub(super) gc_plans: AtomicU64,
    /// Indexes past their bounds.
    pub(super) pressed: Mutex<BTreeSet<IndexId>>,
    /// The runs that the handle works on.
    pub(super) at_work: Mutex<Vec<RunId>>,
    /// Whether a sweeper is at work.
    pub(super) is_swept: AtomicBool,
    /// Commits that have changed more than the clock of the file.
    pub(super) writes: AtomicU64,
    /// When a host last read or wrote, in milliseconds by the clock.
    pub(super) called_ms: AtomicI64,
    /// What searches have found since a commit counted it.
    pub(super) accesses: Arc<Accesses>,
    /// The looks of maintenance that found nothing to do.
    pub(super) looks: Looks,
}

/// The images that a handle has which only reads, and the commit that they are of. They pin no page of the file, as a
/// published state does.
pub(super) struct Watched {
    pub(super) epoch: u64,
    pub(super) row: ClockRow,
    pub(super) images: Arc<Images>,
}

/// What a [`Builder`](crate::Builder) has gathered.
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
    pub(super) track: bool,
}

impl Inner {
    /// How many visible rows of a namespace one sweep, or one commit of a summary that somebody asks for, may remove or supersede.
    pub(super) fn budget_of(&self, ns: NsId, policy: &Policy) -> Result<u64> {
        let live = self.state()?.snapshot().counter(ns, TOTAL, CounterSort::Live as u8, "")?;
        let share = policy.budget.share * live.rows.max(0) as f64;
        Ok(policy.budget.floor.max(share.floor() as u64))
    }

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
            track,
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
        let called_ms = AtomicI64::new(clock.now().as_millis());
        let core = Core {
            store,
            current,
            watched: Mutex::new(watched),
            queue: Queue::new(),
            clock,
            ids,
            secret: Secret::from_bytes(identity.secret),
            durability,
            lease,
            embedder: RwLock::new(None),
            scorer: RwLock::new(None),
            in_force: RwLock::new(Arc::new(in_force)),
            own_policy: policy,
            own_instructions: instructions,
            closed: AtomicBool::new(false),
            leases: Mutex::new(Vec::new()),
            publishing: Mutex::new(()),
            upkeep: Mutex::new(()),
            gc_plans: AtomicU64::new(0),
            pressed: Mutex::new(BTreeSet::new()),
            at_work: Mutex::new(Vec::new()),
            is_swept: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            called_ms,
            accesses: Arc::default(),
            looks: Looks::default(),
        };
        Ok(Arc::new(Inner { core: Arc::new(core), actor, track, read_only }))
    }

    pub(super) fn downgrade(&self) -> FaintInner {
        let core = Arc::downgrade(&self.core);
        FaintInner { core, actor: self.actor, track: self.track, read_only: self.read_only }
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

    /// An id for a run that begins now.
    pub(super) fn new_run(&self) -> Result<RunId> {
        Ok(RunId::from_bytes(self.ids.next(self.clock.now())?))
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

    /// Notes that a host reads or writes. Maintenance does neither by this way.
    pub(super) fn called(&self) {
        self.called_ms.store(self.clock.now().as_millis(), Ordering::Relaxed);
    }

    /// How long no host has read or written; nothing where the clock has stepped back since.
    pub(super) fn idle_for(&self) -> Span {
        let since = self.clock.now().as_millis().saturating_sub(self.called_ms.load(Ordering::Relaxed));
        Span::from_millis(since.max(0))
    }

    /// What a read before a write finds. A handle that is closed meanwhile says so, whatever the storage says.
    pub(super) fn while_open<R>(&self, read: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        read().map_err(|why| if self.is_closed() { Error::Closed } else { why })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.durability == Durability::Batch
            && !self.closed.load(Ordering::SeqCst)
            // A file that is open for reading has published nothing of its own.
            && self.current.is_some()
            && let Err(why) = self.store.flush()
        {
            tracing::error!(%why, "what was written since the last flush may be lost");
        }
    }
}
