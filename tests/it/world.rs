//! What the integration tests share: a database in a folder that goes away, a clock that stands still until it is
//! told otherwise, ids that count, a fixed secret, vectors of four dimensions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oubliette::clock::{Clock, IdSource, ManualClock};
use oubliette::maintain::RunId;
use oubliette::memory::{Got, SupersedeMode, Tombstone};
use oubliette::policy::{Policy, Syntax};
use oubliette::report::{CheckOptions, Forgotten};
use oubliette::{
    Builder, Database, Decision, Draft, Durability, ErrorKind, Forget, Memory, MemoryId, Namespace, Outcome,
    PageRequest, Query, Result, Scope, Span, State, Time, WriteOptions,
};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};

/// Dimensions of every vector of these tests.
pub(crate) const DIM: usize = 4;

/// Where the clock stands at first.
pub(crate) const START: &str = "2026-01-02T10:00:00Z";

/// How a random test runs: so many cases, the same each time. With `PROPTEST_CASES` it draws so many others.
pub(crate) fn random(cases: u32, max_shrink_iters: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(1) };
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters,
        rng_seed,
        ..ProptestConfig::default()
    }
}

/// UUIDv7 whose random part counts up, so that a run is repeatable and ids of one instant ascend.
#[derive(Clone, Default)]
pub(crate) struct CountingIds(Arc<AtomicU64>);

impl IdSource for CountingIds {
    fn next(&self, now: Time) -> oubliette::Result<[u8; 16]> {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        let millis = now.as_millis().max(0) as u64;
        let mut id = [0; 16];
        id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        id[6] = 0x70;
        id[8..].copy_from_slice(&count.to_be_bytes());
        id[8] = 0x80;
        Ok(id)
    }
}

/// A database with everything injected.
pub(crate) struct World {
    pub(crate) db: Database,
    pub(crate) clock: ManualClock,
    pub(crate) ns: Namespace,
    ids: CountingIds,
    folder: tempfile::TempDir,
    options: fn(Builder) -> Builder,
}

impl World {
    /// A new database with the clock at [`START`].
    pub(crate) fn new() -> Self {
        World::with(|builder| builder)
    }

    /// A new database with other options.
    pub(crate) fn with(options: fn(Builder) -> Builder) -> Self {
        World::starting(START.parse().unwrap(), options)
    }

    /// A new database whose clock stands at so many milliseconds: the "abstract instants" of the vectors.
    pub(crate) fn at(millis: i64) -> Self {
        World::at_with(millis, |builder| builder)
    }

    /// The same with other options.
    pub(crate) fn at_with(millis: i64, options: fn(Builder) -> Builder) -> Self {
        World::starting(Time::from_millis(millis), options)
    }

    fn starting(time: Time, options: fn(Builder) -> Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (clock, ids) = (ManualClock::at(time), CountingIds::default());
        let db = options(builder(&clock, &ids)).open(folder.path().join("memory.oub")).unwrap();
        World { ns: db.namespace("default").unwrap(), db, clock, ids, folder, options }
    }

    /// The file.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("memory.oub")
    }

    /// A name beside the file.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Options for one more handle with the same clock and ids.
    pub(crate) fn builder(&self) -> Builder {
        builder(&self.clock, &self.ids)
    }

    /// Closes the database and opens it again.
    pub(crate) fn reopen(&mut self) {
        self.db.clone().close().unwrap();
        self.open_again(self.options);
    }

    /// Opens the database of the same file with other options.
    pub(crate) fn open_again(&mut self, options: impl FnOnce(Builder) -> Builder) {
        self.db = options(self.builder()).open(self.path()).unwrap();
        self.ns = self.db.namespace(self.ns.name()).unwrap();
    }

    /// Sets the clock to so many milliseconds.
    pub(crate) fn set(&self, millis: i64) {
        self.clock.set(Time::from_millis(millis));
    }

    /// Moves the clock forwards by a span such as `3d`.
    pub(crate) fn advance(&self, span: &str) {
        self.clock.advance(span.parse().unwrap());
    }

    /// Lets two worlds count their next ids from the same number.
    pub(crate) fn align_ids(&self, other: &World) {
        let next = self.ids.0.load(Ordering::SeqCst).max(other.ids.0.load(Ordering::SeqCst));
        self.ids.0.store(next, Ordering::SeqCst);
        other.ids.0.store(next, Ordering::SeqCst);
    }

    /// The present instant.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// An instant from now on.
    pub(crate) fn ahead(&self, span: &str) -> Time {
        self.now().plus(span.parse().unwrap())
    }

    /// An instant before now.
    pub(crate) fn ago(&self, span: &str) -> Time {
        self.now().minus(span.parse().unwrap())
    }

    pub(crate) fn add(&self, draft: Draft) -> Outcome {
        self.ns.add(draft).unwrap()
    }

    /// The sort of error that an add gives.
    pub(crate) fn refused(&self, draft: Draft) -> ErrorKind {
        self.ns.add(draft).unwrap_err().kind()
    }

    /// Adds in a run.
    pub(crate) fn import(&self, run: RunId, drafts: Vec<Draft>) -> Vec<Outcome> {
        self.ns.add_all(drafts, &WriteOptions { run: Some(run), ..WriteOptions::default() }).unwrap()
    }

    pub(crate) fn start_import(&self) -> RunId {
        self.ns.start_import().unwrap()
    }

    pub(crate) fn forget(&self, names: &[&str]) -> Forgotten {
        self.ns.forget(Forget::names(names.iter().copied())).unwrap()
    }

    pub(crate) fn forget_id(&self, id: MemoryId) -> Forgotten {
        self.ns.forget(Forget::names([id.to_string()])).unwrap()
    }

    pub(crate) fn forget_tag(&self, tag: &str) -> Forgotten {
        self.ns.forget(Forget::tag(tag)).unwrap()
    }

    pub(crate) fn supersede(
        &self,
        old: MemoryId,
        new: MemoryId,
        mode: SupersedeMode,
        at: Option<i64>,
    ) -> Result<()> {
        let at = at.map(Time::from_millis);
        self.ns.supersede_all(&[old.to_string()], new.to_string(), mode, at).map(drop)
    }

    pub(crate) fn get(&self, name: impl ToString) -> Result<Got> {
        self.ns.look_up(name.to_string(), false)
    }

    /// The memory with an id or key, which must be there.
    pub(crate) fn row(&self, name: impl ToString) -> Memory {
        match self.get(name).unwrap() {
            Got::Memory(memory) => *memory,
            Got::Tombstone(tombstone) => panic!("a tombstone: {tombstone:?}"),
        }
    }

    /// The tombstone with an id or key, which must be there.
    pub(crate) fn tombstone(&self, name: impl ToString) -> Tombstone {
        match self.get(name).unwrap() {
            Got::Tombstone(tombstone) => tombstone,
            Got::Memory(memory) => panic!("a memory: {memory:?}"),
        }
    }

    /// Whether nothing is known by that name, not even a tombstone.
    pub(crate) fn unknown(&self, name: impl ToString) -> bool {
        self.get(name).is_err_and(|why| why.kind() == ErrorKind::NotFound)
    }

    /// Everything that is visible in a scope, by id.
    pub(crate) fn list_in(&self, scope: Scope, state: State) -> Vec<Memory> {
        let request = PageRequest { scope, state, limit: 10_000, ..PageRequest::default() };
        let page = self.ns.list(&request).unwrap();
        assert_eq!(page.next, None, "one page holds all");
        let mut items = page.items;
        items.sort_by_key(|memory| memory.id);
        items
    }

    /// Ids that are visible in any partition, ascending.
    pub(crate) fn live(&self) -> Vec<MemoryId> {
        self.list_in(Scope::Any, State::Live).iter().map(|memory| memory.id).collect()
    }

    pub(crate) fn is_live(&self, id: MemoryId) -> bool {
        self.live().contains(&id)
    }

    /// Ids that a vector search finds.
    pub(crate) fn find(&self, vector: [f32; DIM], k: usize) -> Vec<MemoryId> {
        self.find_in(vector, k, Scope::Shared)
    }

    pub(crate) fn find_in(&self, vector: [f32; DIM], k: usize, scope: Scope) -> Vec<MemoryId> {
        let query = Query::vector(vector).k(k).scope(scope);
        self.ns.search(&query).unwrap().hits.iter().map(|hit| hit.id).collect()
    }

    /// Whether some bytes are in the file, once nothing is left in it of what was deleted.
    pub(crate) fn has_bytes_of(&self, words: &str) -> bool {
        self.db.compact().unwrap();
        let file = std::fs::read(self.path()).unwrap();
        file.windows(words.len()).any(|bytes| bytes == words.as_bytes())
    }

    /// What `check` says about counters, indexes and everything else: nothing.
    pub(crate) fn check(&self) {
        assert_clean(&self.db);
    }

    /// Counters of duplicates, from the small document.
    pub(crate) fn duplicates(&self) -> u64 {
        self.ns.memory_stats().unwrap().health.duplicates_detected
    }
}

impl Drop for World {
    /// Whatever a test did, it left a whole file.
    fn drop(&mut self) {
        if !std::thread::panicking() && self.db.namespaces().is_ok() {
            self.check();
        }
    }
}

fn builder(clock: &ManualClock, ids: &CountingIds) -> Builder {
    Database::builder()
        .durability(Durability::Fast)
        .cache_bytes(4 << 20)
        .clock(clock.clone())
        .ids(ids.clone())
        .secret([7; 32])
        .lease("10000d".parse::<Span>().unwrap())
}

/// Options of a handle that removes nothing which expired, unless it is asked to.
pub(crate) fn keeping(builder: Builder) -> Builder {
    let policy = "purge.per_write = 0\nsweeper.stages = [\"limbo\"]";
    builder.policy(Policy::parse(policy, Syntax::Toml).unwrap())
}

/// A deep check without a finding.
pub(crate) fn assert_clean(db: &Database) {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    assert!(report.ok, "check: {:#?}", report.findings);
}

pub(crate) fn ms(millis: i64) -> Time {
    Time::from_millis(millis)
}

pub(crate) fn span(text: &str) -> Span {
    text.parse().unwrap()
}

/// An axis of the space: distinct vectors that no pair of which is near.
pub(crate) fn axis(at: usize) -> [f32; DIM] {
    let mut vector = [0.0; DIM];
    vector[at] = 1.0;
    vector
}

/// A unit vector at so many degrees in the plane of the first two axes.
pub(crate) fn at(degrees: f64) -> Vec<f32> {
    let angle = degrees.to_radians();
    vec![angle.cos() as f32, angle.sin() as f32, 0.0, 0.0]
}

/// A text with a vector at so many degrees.
pub(crate) fn near(say: &str, degrees: f64) -> Draft {
    text(say).vector(at(degrees))
}

pub(crate) fn text(text: &str) -> Draft {
    Draft::new(text)
}

/// Keys, counts, shares and tags of the holders of a memory.
pub(crate) fn holders(memory: &Memory) -> Vec<(Option<&str>, u32, u32, Vec<&str>)> {
    let mut all: Vec<_> = memory
        .holders
        .iter()
        .map(|holder| {
            let tags = holder.tags.iter().map(String::as_str).collect();
            (holder.key.as_deref(), holder.count, holder.share, tags)
        })
        .collect();
    all.sort();
    all
}

/// The old row of a revision.
pub(crate) fn revised(outcome: &Outcome) -> MemoryId {
    match outcome.decision.clone() {
        Decision::Revised { old } => old,
        other => panic!("{other:?}"),
    }
}
