//! Reads: each on one published state, with the instant of the call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::engine::database::{Database, Inner};
use crate::error::{Error, Result};
use crate::hygiene::{Briefed, CheckOptions, CheckReport, briefing, check, check_erased};
use crate::index::Published;
use crate::model::{
    Aggregate, AggregateId, Event, EventId, EventQuery, Family, JournalRow, Memory, MemoryId, NamespaceName,
    Page, PageRequest, Query, Run, RunId, Scope, State, Time, Tombstone,
};
use crate::recall::{
    Around, Deadline, Explanation, FileStats, Got, History, IndexStats, MemoryStats, Reader, SearchResult,
    Stats, StatsContext, Why, file_stats, index_stats, memory_stats, stats,
};
use crate::store::{NsId, Rows};

/// Rows that `stats` settles before it answers, one slice at a time.
const SETTLE_SLICE: usize = 1_000;

/// A snapshot that is pinned, as the engine sees it.
pub(super) struct Lease(Weak<Held>);

/// What a snapshot holds until its time is over.
struct Held {
    published: Mutex<Option<Arc<Published>>>,
    until: Time,
    /// Whether a call is under way that may last longer than the lease.
    kept: AtomicUsize,
}

impl Held {
    fn is_over(&self, now: Time) -> bool {
        now >= self.until && self.kept.load(Ordering::SeqCst) == 0
    }
}

/// As long as it lives the lease of its snapshot does not end.
pub(crate) struct Keeper<'s>(&'s Held);

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lease {
    /// Whether the snapshot is still held; one past its time loses its state.
    pub(super) fn holds(&self, now: Time) -> bool {
        let Some(held) = self.0.upgrade() else { return false };
        let mut published = held.published.lock();
        if held.is_over(now) {
            published.take();
        }
        published.is_some()
    }
}

/// The database at one instant: every read of a snapshot sees the same commit and the same clock.
///
/// It pins space in the file, so it has a lease ([`Builder::lease`](crate::Builder::lease)), which ends in the middle of no
/// export.
///
/// ```
/// # use oubliette::{Database, Draft, NamespaceName, PageRequest};
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::open(folder.path().join("m.oub"))?;
/// let ns = NamespaceName::default();
/// db.add(&ns, Draft::new("before"))?;
/// let before = db.snapshot()?;
/// db.add(&ns, Draft::new("after"))?;
/// assert_eq!(before.list(&ns, &PageRequest::default())?.items.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshot {
    inner: Arc<Inner>,
    held: Arc<Held>,
    now: Time,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(super) fn take(database: &Database) -> Result<Self> {
        let inner = Arc::clone(&database.inner);
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

    fn expired(&self) -> Error {
        Error::SnapshotExpired { lease_ms: self.inner.lease.as_millis().unsigned_abs() }
    }

    fn read<R>(&self, read: impl Fn(&Published, Time) -> Result<R>) -> Result<R> {
        if self.inner.is_closed() {
            return Err(Error::Closed);
        }
        let published = self.held.published.lock().clone();
        let is_of_this_file = |held: &Arc<Published>| held.snapshot().epoch() == self.inner.store.epoch();
        let is_in_time = !self.held.is_over(self.inner.clock.now());
        let published = published.filter(|held| is_in_time && is_of_this_file(held));
        let published = published.ok_or_else(|| self.expired())?;
        read(&published, self.now)
    }
}

impl Database {
    /// Reads from what is published now. A state whose file was replaced under it is read again, once.
    pub(super) fn read<R>(&self, read: impl Fn(&Published, Time) -> Result<R>) -> Result<R> {
        if self.inner.is_closed() {
            return Err(Error::Closed);
        }
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

    /// Counters, sizes and health, of one namespace or of all. What came due is settled first, at most
    /// `stats.max_due` rows; the rest is `pending_due`.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn stats(&self, namespace: Option<&NamespaceName>) -> Result<Stats> {
        self.settle(namespace)?;
        let file_bytes = self.inner.store.file_bytes()?;
        let in_force = self.inner.in_force();
        self.read(|published, now| {
            let clock = self.inner.clock.now();
            stats(
                published,
                namespace,
                StatsContext { now, clock, file_bytes, policy: &in_force.policy.stats },
            )
        })
    }

    /// Every vector index of a namespace, or of all, each loaded into memory and walked. One larger than the memory
    /// budget is left out.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn index_stats(&self, namespace: Option<&NamespaceName>) -> Result<Vec<IndexStats>> {
        self.read(|published, _| index_stats(published, namespace))
    }

    /// What the file and each of its tables take, page by page: it reads the whole file.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn file_stats(&self) -> Result<FileStats> {
        let file_bytes = self.inner.store.file_bytes()?;
        self.read(|published, _| file_stats(published.snapshot(), file_bytes))
    }

    /// The small document of `get_memory_stats`.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn memory_stats(&self, namespace: &NamespaceName) -> Result<MemoryStats> {
        self.settle(Some(namespace))?;
        let in_force = self.inner.in_force();
        self.read(|published, now| {
            let clock = self.inner.clock.now();
            let context = StatsContext { now, clock, file_bytes: 0, policy: &in_force.policy.stats };
            memory_stats(published, namespace, &self.inner.secret, context)
        })
    }

    /// Applies the instants that have come, as far as `stats.max_due` allows. A handle that only reads leaves them.
    fn settle(&self, namespace: Option<&NamespaceName>) -> Result<()> {
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
            session.ledger.settle(&context, most)
        })
    }

    /// The namespaces, by name.
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
    /// # Errors
    /// `Closed`, `Retry`. Damage is a finding, not an error.
    pub fn check(&self, options: &CheckOptions) -> Result<CheckReport> {
        self.read(|published, _| {
            let mut report = check(published.snapshot(), options)?;
            if !options.erased.is_empty() {
                let files = self.inner.store.bytes()?;
                check_erased(published.snapshot(), files, &options.erased, &mut report)?;
            }
            Ok(report)
        })
    }
}

macro_rules! search {
    ($($name:ident),+) => {$(
        impl $name {
            /// The memories that answer a query best: by vector, by words, or by both, as its mode and what it has allow. A
            /// text is given its vector by the embedder of this handle, if there is one. Cosines are those of the f32
            /// vectors; small partitions are scanned as a whole, and in large ones a walk through a graph finds as much as
            /// the effort of the query asks for.
            ///
            /// # Errors
            /// - `NoEmbedder` for a query of text alone in the mode [`Mode::Vector`](crate::Mode::Vector), and `Embedding` where the embedder fails
            ///   on it;
            /// - `Invalid` for another dimension, a vector that is zero or not finite, or a `k` outside 1 to 1,000.
            pub fn search(&self, namespace: &NamespaceName, query: &Query) -> Result<SearchResult> {
                let weights = self.inner.in_force().policy.recall.clone();
                let begun = Instant::now();
                let most = query.deadline.map(|most| Duration::from_millis(most.as_millis().unsigned_abs()));
                let over = || most.is_some_and(|most| begun.elapsed() >= most);
                self.read(|published, now| {
                    let query = self.inner.with_vector(published, query)?;
                    let deadline = Deadline::new(&over);
                    let reader = Reader::open(published, namespace, &self.inner.secret, now)?;
                    reader.until(&deadline).search(&query, &weights)
                })
            }
        }
    )+};
}

search!(Database, Snapshot);

macro_rules! why {
    ($($name:ident),+) => {$(
        impl $name {
            /// Why a query finds a memory by id or key, or why it does not: what its score is made of and what the last hit has,
            /// or what keeps it from being one.
            ///
            /// # Errors
            /// `NotFound` for a memory that nothing is known of, and those of `search`.
            pub fn why(&self, namespace: &NamespaceName, query: &Query, name: &str) -> Result<Why> {
                let weights = self.inner.in_force().policy.recall.clone();
                self.read(|published, now| {
                    let query = self.inner.with_vector(published, query)?;
                    Reader::open(published, namespace, &self.inner.secret, now)?.why(&query, name, &weights)
                })
            }
        }
    )+};
}

why!(Database, Snapshot);

macro_rules! briefing {
    ($($name:ident),+) => {$(
        impl $name {
            /// What a session should know before anything is asked: every visible pinned memory, the most important first, then
            /// those with the highest RetentionScore, as far as `tokens` go, a token for 4 bytes. The budget never cuts pinned ones
            ///. It counts as no retrieval.
            ///
            /// # Errors
            /// `Corrupted`, `Closed`.
            pub fn briefing(&self, namespace: &NamespaceName, scope: &Scope, tokens: usize) -> Result<Vec<Briefed>> {
                let policy = self.inner.in_force().policy.clone();
                self.read(|published, now| {
                    let reader = Reader::open(published, namespace, &self.inner.secret, now)?;
                    briefing(&reader, scope, tokens, now, &policy)
                })
            }
        }
    )+};
}

briefing!(Database, Snapshot);

/// The reads that a database and a snapshot share.
macro_rules! reads {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)+) => {
        impl Database {
            $($(#[$doc])*
            pub fn $name(&self, namespace: &NamespaceName, $($arg: $ty),*) -> Result<$out> {
                self.read(|published, now| {
                    Reader::open(published, namespace, &self.inner.secret, now)?.$name($($arg),*)
                })
            })+
        }

        impl Snapshot {
            $($(#[$doc])*
            pub fn $name(&self, namespace: &NamespaceName, $($arg: $ty),*) -> Result<$out> {
                self.read(|published, now| {
                    Reader::open(published, namespace, &self.inner.secret, now)?.$name($($arg),*)
                })
            })+
        }
    };
}

reads! {
    /// A memory by id or key in any state, with its unit vector on request, or the tombstone of one that is gone.
    ///
    /// # Errors
    /// `NotFound`.
    get(name: &str, with_vector: bool) -> Got;
    /// The text of a memory.
    ///
    /// # Errors
    /// `Corrupted`.
    text(id: MemoryId) -> Option<String>;
    /// The keys of a memory, sorted.
    ///
    /// # Errors
    /// `Corrupted`.
    keys_of(id: MemoryId) -> Vec<String>;
    /// The visible neighbours of a memory in its thread, or its session: at most `steps` before and after it.
    ///
    /// # Errors
    /// `Invalid` for more than 1,000 steps.
    around(id: MemoryId, steps: usize) -> Around;
    /// A page of memories, by partition and creation.
    ///
    /// # Errors
    /// `Invalid` for a limit outside 1 to 10,000 or a cursor of another listing.
    list(request: &PageRequest) -> Page<Memory>;
    /// The visible snapshots of a series that were taken from one instant on and before another, by their time;
    /// those whose time can't be read are left out. With [`Scope::Any`] of all partitions.
    ///
    /// # Errors
    /// `Corrupted`.
    list_snapshots(scope: &Scope, series: &str, from: Option<Time>, until: Option<Time>) -> Vec<Memory>;
    /// A page of tombstones, by id.
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    tombstones(cursor: Option<&str>, limit: usize) -> Page<Tombstone>;
    /// A page of messages as they came: one, those of an aggregate or a memory, or those of a time.
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    events(query: &EventQuery) -> Page<Event>;
    /// A page of families of repeated messages in numbers, by id.
    ///
    /// # Errors
    /// `Invalid`, as for `list`.
    aggregates(cursor: Option<&str>, limit: usize) -> Page<Aggregate>;
    /// A family of repeated messages in numbers.
    ///
    /// # Errors
    /// `NotFound`.
    aggregate(id: AggregateId) -> Aggregate;
    /// Names of the agents whose partitions the namespace has, sorted.
    ///
    /// # Errors
    /// `Corrupted`.
    agents() -> Vec<String>;
    /// The memories that one took the place of, by id.
    ///
    /// # Errors
    /// `Corrupted`.
    replaces(id: MemoryId) -> Vec<MemoryId>;
    /// The state of an id; none for one that nothing is known of.
    ///
    /// # Errors
    /// `Corrupted`.
    state(id: MemoryId) -> Option<State>;
    /// Whether a live read sees the memory with an id.
    ///
    /// # Errors
    /// `Corrupted`.
    is_visible(id: MemoryId) -> bool;
    /// Of the memories that a live read sees the one that answers to a key.
    ///
    /// # Errors
    /// `Corrupted`.
    visible_holder(key: &str) -> Option<MemoryId>;
    /// The runs of which something is left that can be taken back, by id.
    ///
    /// # Errors
    /// `Corrupted`.
    runs_left() -> Vec<Run>;
    /// What taking a run of maintenance back would still look at, in the order in which it was done: at most `most` rows of
    /// the journal, behind the row with the number `after`.
    ///
    /// # Errors
    /// `Corrupted`.
    steps_left(run: RunId, after: Option<u64>, most: usize) -> Vec<JournalRow>;
    /// The slice of a family that a message began; none where it began none.
    ///
    /// # Errors
    /// `Corrupted`.
    family(event: EventId) -> Option<Family>;
    /// The versions of a memory and what the journal tells of them, oldest first.
    ///
    /// # Errors
    /// `NotFound`.
    history(name: &str) -> History;
    /// The story of a memory by id, key or content: made by, merged from, replaced by, why it is gone.
    ///
    /// # Errors
    /// `NotFound` when nothing is known of it.
    explain(name: &str) -> Explanation;
}
