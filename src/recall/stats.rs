//! Statistics from the counters: a small document and a large one.
//!
//! The counters are right for the last settled instant. The caller settles first, or says what settling would change, and the
//! document says what is still due.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::{Error, Result, sound};
use crate::index::Published;
use crate::index::upkeep::Counts;
use crate::model::{Kind, NamespaceName, Partition, PurgeHorizon, RunId, Time};
use crate::policy::Stats as StatsPolicy;
use crate::recall::size::{self, BytesStats};
use crate::recall::{Reader, SHARED};
use crate::store::control::{CounterRow, CounterSort, NamespaceRow, PassRow, TOTAL};
use crate::store::keys;
use crate::store::{IndexId, NsId, PartId, QueryRows, Read, Rows, Table, Walk};
use crate::text::Secret;
use crate::vector::instruction_set;

/// The largest number of due instants that are counted.
const DUE_COUNTED_MAX: usize = 100_000;

/// The statistics of one namespace, kept small for a language model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryStats {
    /// The shared part.
    pub local: LocalStats,
    /// All parts.
    pub mem0: AgentStats,
    /// Signs of trouble.
    pub health: MemoryHealth,
}

/// Visible memories of the shared part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LocalStats {
    /// The number of memories.
    pub total: u64,
    /// By scope label.
    pub by_scope: BTreeMap<String, u64>,
    /// By tag. A memory with two tags counts under both.
    pub by_tag: BTreeMap<String, u64>,
    /// When the memories were created.
    pub date_range: DateRange,
}

/// The first and the last creation, as UTC dates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DateRange {
    /// The first creation.
    pub oldest: Option<String>,
    /// The last creation.
    pub newest: Option<String>,
}

/// Visible memories of every part.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgentStats {
    /// The number of memories.
    pub total: u64,
    /// By agent. The shared part stands under `stats.shared_label`; of an agent with that name the first character is
    /// percent-encoded.
    pub by_agent: BTreeMap<String, u64>,
}

/// Signs of trouble, in the small document.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryHealth {
    /// The number of current memories beyond the first with an equal fingerprint.
    pub duplicates_detected: u64,
    /// Visible memories of the kind `snapshot`.
    pub profile_snapshots: u64,
    /// The end of the last pruning of snapshots.
    pub last_prune: Option<String>,
}

/// The statistics of a namespace or of the whole file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// The number of the commit that the statistics describe.
    pub commit: u64,
    /// Memories by state.
    pub memories: MemoryCounts,
    /// Visible memories by namespace.
    pub by_namespace: BTreeMap<String, u64>,
    /// Visible memories by partition: `shared` or the agent. For the whole file the namespace and a `/` stand before
    /// it. Slashes and percent signs of names are percent-encoded, and so is the first character of an agent that is called
    /// `shared`.
    pub by_partition: BTreeMap<String, u64>,
    /// Visible memories by kind.
    pub by_kind: BTreeMap<String, u64>,
    /// Visible memories by tier.
    pub by_tier: BTreeMap<String, u64>,
    /// The vector indexes.
    pub vectors: VectorStats,
    /// Memories that wait for a vector.
    pub pending: u64,
    /// The number of writes that the memories stand for.
    pub holders: u64,
    /// The number of writes since the beginning that a rule or a later snapshot made unnecessary.
    pub ignored: u64,
    /// The number of messages as they came.
    pub events: u64,
    /// The number of families of repeated messages, counted for each slice of time.
    pub aggregates: u64,
    /// The number of past queries that are kept as questions for summaries (`gc.keep_queries`).
    pub kept_queries: u64,
    /// The last run of each pass, by its name. For all namespaces the name is `namespace/pass`.
    pub passes: BTreeMap<String, LastRun>,
    /// The bytes of the whole file.
    pub bytes: BytesStats,
    /// Signs of trouble.
    pub health: HealthStats,
    /// The number of accesses that the handle had no room to keep in mind since it was opened
    /// (`access.buffer`).
    pub access_dropped: u64,
    /// The number of due instants that are not yet in the counters, counted up to 100,000.
    pub pending_due: u64,
    /// How far back a read can reach, by namespace. Namespaces of which nothing was purged are left out.
    pub purge_horizon: BTreeMap<String, PurgeHorizon>,
    /// The number of the policy in force; 0 is the built-in policy.
    pub policy: u64,
}

/// Memories by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCounts {
    /// Visible.
    pub live: u64,
    /// Not yet valid.
    pub ahead: u64,
    /// Past their world time, neither superseded nor expired.
    pub past: u64,
    /// Superseded and no longer visible.
    pub superseded: u64,
    /// Expired, not yet purged.
    pub expired: u64,
    /// Removed by maintenance, kept for undo.
    pub limbo: u64,
    /// Only a tombstone is left.
    pub tombstoned: u64,
}

/// The vector indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VectorStats {
    /// The number of slots with a vector.
    pub live: u64,
    /// The number of graph nodes whose vectors are gone, until `repair` unlinks them.
    pub dead: u64,
    /// The number of slots that can be used again.
    pub free: u64,
    /// The number of vectors beside a graph that are not in it yet.
    pub tail: u64,
    /// The number of vectors in a graph.
    pub in_graph: u64,
    /// How searches are answered: `exact`, `graph`, or `mixed` where partitions differ.
    pub regime: &'static str,
    /// The instruction set of the distance kernels: `avx512`, `avx2`, `neon`, `scalar` …
    pub kernel: &'static str,
    /// The memory that the images of partitions take now, in bytes, for the whole file.
    pub memory_bytes: u64,
}

/// One vector index, inspected as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndexStats {
    /// The namespace.
    pub namespace: String,
    /// The partition: `shared` or the agent.
    pub partition: String,
    /// `exact` or `graph`; `damaged` for a graph that is not used.
    pub regime: &'static str,
    /// The number of slots with a vector.
    pub live: u64,
    /// The number of nodes whose vectors are gone.
    pub dead: u64,
    /// The number of vectors beside the graph.
    pub tail: u64,
    /// The number of vectors in the graph.
    pub in_graph: u64,
    /// The number of vectors in the graph that no walk reaches.
    pub unreachable: u64,
    /// The memory that the image of the index takes, in bytes.
    pub memory_bytes: u64,
    /// The recall for 10 results by length of the list, as last measured.
    pub recall: BTreeMap<u16, f64>,
}

/// The last run of a maintenance pass over a namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LastRun {
    /// The run, for `undo`.
    pub run: RunId,
    /// When the run began.
    pub started_at: Time,
    /// When the last slice of the run was written.
    pub ended_at: Time,
    /// Whether the run was interrupted. The next call continues it.
    pub open: bool,
    /// The number of visible rows that the run might still have removed.
    pub budget_left: u64,
    /// The numbers of the report.
    pub report: BTreeMap<String, u64>,
}

impl From<PassRow> for LastRun {
    fn from(row: PassRow) -> Self {
        LastRun {
            run: row.run,
            started_at: Time::from_millis(row.started_ms),
            ended_at: Time::from_millis(row.ended_ms),
            open: row.open,
            budget_left: row.budget_left,
            report: row.report.into_iter().filter(|(name, _)| !PassRow::is_inner(name)).collect(),
        }
    }
}

/// The pass whose end is shown as the last pruning of snapshots.
const PRUNE: &str = "snapshots";

/// Signs of trouble.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HealthStats {
    /// The number of current memories beyond the first with an equal fingerprint.
    pub duplicates_detected: u64,
    /// The end of the last pruning of snapshots.
    pub last_prune: Option<String>,
    /// A warning if the clock is far behind the last commit.
    pub clock_warning: Option<String>,
    /// A warning if the sum of the bytes of all rows is missing or damaged. `bytes` then tells only the length of the
    /// file.
    pub size_warning: Option<String>,
    /// Damaged graphs of the partitions that are in memory. These partitions are scanned until `reindex`.
    pub index_warnings: Vec<String>,
}

/// What statistics need to know besides the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatsContext<'c> {
    /// The present instant, never before the last commit.
    pub(crate) now: Time,
    /// The time that the clock shows.
    pub(crate) clock: Time,
    /// The length of the file.
    pub(crate) file_bytes: u64,
    /// The policy in force.
    pub(crate) policy: &'c StatsPolicy,
    /// What settling would change in each namespace, where the caller could not settle.
    pub(crate) unsettled: &'c BTreeMap<NsId, Unsettled>,
}

/// What settling would change in a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsettled {
    /// The number of due instants that are settled so.
    pub(crate) instants: usize,
    /// What is added to the counters, by partition, sort and name.
    pub(crate) counters: BTreeMap<(PartId, u8, String), CounterRow>,
}

impl StatsContext<'_> {
    /// The counters of a namespace as they are once it is settled.
    fn counters(self, published: &Published, ns: NsId) -> Result<Vec<(PartId, u8, String, CounterRow)>> {
        let mut all = published.snapshot().counters(ns)?;
        let Some(unsettled) = self.unsettled.get(&ns) else { return Ok(all) };
        let mut added = unsettled.counters.clone();
        for (part, sort, name, row) in &mut all {
            let more = added.remove(&(*part, *sort, name.clone())).unwrap_or_default();
            *row = CounterRow { rows: row.rows + more.rows, bytes: row.bytes + more.bytes };
        }
        all.extend(added.into_iter().map(|((part, sort, name), row)| (part, sort, name, row)));
        // What counts nothing has no row.
        all.retain(|(.., row)| *row != CounterRow::default());
        Ok(all)
    }
}

/// Every index of a namespace, or of all namespaces. Each is loaded and walked, which is slow. An index that does not
/// fit into memory is left out.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn index_stats(
    published: &Published,
    namespace: Option<&NamespaceName>,
) -> Result<Vec<IndexStats>> {
    let rows = published.snapshot();
    let mut all = Vec::new();
    for (name, row) in rows.namespaces()? {
        if row.dropping || namespace.is_some_and(|wanted| wanted.as_str() != name) {
            continue;
        }
        let ns = NsId(row.number);
        for (index, head) in rows.slot_heads(Some(ns))? {
            if !published.has_room_for(&head, published.dim(index.space)?) {
                continue;
            }
            let view = published.view(index)?;
            // If the head can't be read, the view reports it.
            let graph = rows.graph_head(index).unwrap_or_default();
            let counts = Counts::of(&head, graph.as_ref());
            let alive = |slot: u32| view.id(slot).is_some();
            let unreachable = view.linked().map_or(0, |linked| linked.graph.unreachable(alive).len());
            let measured = graph.map(|graph| graph.recall).unwrap_or_default();
            all.push(IndexStats {
                namespace: name.clone(),
                partition: partition_name(published, ns, index.part)?,
                regime: match (view.fault(), counts.has_graph) {
                    (Some(_), _) => "damaged",
                    (None, true) => "graph",
                    (None, false) => "exact",
                },
                live: u64::from(counts.live),
                dead: u64::from(counts.dead),
                tail: u64::from(counts.tail),
                in_graph: u64::from(counts.in_graph),
                unreachable: unreachable as u64,
                memory_bytes: view.bytes() as u64,
                recall: measured.iter().map(|point| (point.ef, f64::from(point.recall) / 1e4)).collect(),
            });
        }
    }
    Ok(all)
}

/// The small document of a namespace. A namespace that does not exist has zeros.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn memory_stats(
    published: &Published,
    namespace: &NamespaceName,
    secret: &Secret,
    context: StatsContext<'_>,
) -> Result<MemoryStats> {
    let reader = Reader::open(published, namespace, secret, context.now)?;
    let mut stats = MemoryStats::default();
    let label = &context.policy.shared_label;
    stats.mem0.by_agent.insert(label.clone(), 0);
    let Some(ns) = reader.ns else { return Ok(stats) };
    for (part, code, name, value) in context.counters(published, ns)? {
        let rows = count(value);
        match (CounterSort::from_code(code), part) {
            (Some(CounterSort::Live), TOTAL) => stats.mem0.total = rows,
            (Some(CounterSort::Live), SHARED) => {
                stats.local.total = rows;
                stats.mem0.by_agent.insert(label.clone(), rows);
            }
            (Some(CounterSort::Live), part) => {
                let name = reader.partition(ns, part)?.to_string();
                stats.mem0.by_agent.insert(apart(&name, label), rows);
            }
            (Some(CounterSort::Label), SHARED) => drop(stats.local.by_scope.insert(name, rows)),
            (Some(CounterSort::Tag), SHARED) => drop(stats.local.by_tag.insert(name, rows)),
            (Some(CounterSort::Duplicates), TOTAL) => stats.health.duplicates_detected = rows,
            (Some(CounterSort::Kind), TOTAL) if name == Kind::Snapshot.to_string() => {
                stats.health.profile_snapshots = rows;
            }
            _ => {}
        }
    }
    let pruned = published.snapshot().pass(ns, PRUNE)?.filter(|row| !row.open);
    stats.health.last_prune = pruned.map(|row| Time::from_millis(row.ended_ms).to_string());
    let shared = Walk::prefix(&keys::ns_part(ns, SHARED));
    stats.local.date_range.oldest = reader.first_seen(ns, &shared)?;
    stats.local.date_range.newest = reader.first_seen(ns, &shared.reversed())?;
    Ok(stats)
}

impl Reader<'_> {
    /// The day of creation of the first row of a walk that a live read sees.
    fn first_seen(&self, ns: NsId, walk: &Walk) -> Result<Option<String>> {
        let mut day = None;
        self.rows().walk(Table::ByTime, walk, &mut |key, _| {
            let keys::ByTime { created, id, .. } = keys::ByTime::read(Table::ByTime, key)?;
            // Rows come by creation, so the first visible row is the oldest one, or the newest of a reversed walk.
            let vitals = sound(self.vitals(ns, id))?;
            if !vitals.map_or(Ok(false), |vitals| self.sees(id, &vitals))? {
                return Ok(ControlFlow::Continue(()));
            }
            day = Some(created.day());
            Ok(ControlFlow::Break(()))
        })?;
        Ok(day)
    }
}

/// The large document of one namespace, or of all namespaces if none is given. A namespace that does not exist has
/// zeros. Namespaces that are being dropped are not counted.
///
/// # Errors
/// `Corrupted`.
pub(crate) fn stats(
    published: &Published,
    namespace: Option<&NamespaceName>,
    context: StatsContext<'_>,
) -> Result<Stats> {
    let rows = published.snapshot();
    let mut stats = Stats { policy: rows.clock()?.policy, ..Stats::default() };
    stats.vectors.kernel = instruction_set();
    stats.vectors.memory_bytes = published.kept_bytes() as u64;
    stats.commit = published.commit();
    (stats.bytes, stats.health.size_warning) = size::bytes(rows, context.file_bytes)?;
    let spaces: Vec<(String, NamespaceRow)> = match namespace {
        Some(name) => {
            let row = rows.namespace(name.as_str())?;
            row.into_iter().map(|row| (name.as_str().to_owned(), row)).collect()
        }
        None => rows.namespaces()?,
    };
    for (name, row) in spaces.into_iter().filter(|(_, row)| !row.dropping) {
        let prefix = if namespace.is_none() { format!("{}/", slashed(&name)) } else { String::new() };
        let ns = NsId(row.number);
        stats.add_counters(published, (ns, context), &name, &prefix)?;
        stats.add_passes(published, ns, &prefix)?;
        stats.add_vectors(published, ns)?;
        stats.kept_queries += rows.query_places(ns)?.len() as u64;
        let due = rows.due(ns, context.now.max(published.committed_at()), DUE_COUNTED_MAX)?;
        let settled = context.unsettled.get(&ns).map_or(0, |unsettled| unsettled.instants);
        stats.pending_due += due.len().saturating_sub(settled) as u64;
        let horizon = PurgeHorizon::of(row.horizon_known_ms, row.horizon_valid_ms);
        if horizon != PurgeHorizon::default() {
            stats.purge_horizon.insert(name, horizon);
        }
    }
    if stats.vectors.regime.is_empty() {
        stats.vectors.regime = "exact";
    }
    stats.health.clock_warning = clock_warning(published.committed_at(), context);
    Ok(stats)
}

/// A name as a part of a path: slashes and percent signs are percent-encoded.
fn slashed(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// The name of an agent, apart from the name that the shared part has in the same list: its first character is then
/// percent-encoded.
fn apart(name: &str, shared: &str) -> String {
    if name != shared {
        return name.to_owned();
    }
    let first = name.chars().next().map_or(0, char::len_utf8);
    let (first, rest) = name.split_at(first);
    let first: String = first.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{first}{rest}")
}

impl Stats {
    fn add_counters(
        &mut self,
        published: &Published,
        (ns, context): (NsId, StatsContext<'_>),
        name: &str,
        prefix: &str,
    ) -> Result<()> {
        self.by_namespace.insert(name.to_owned(), 0);
        for (part, code, label, value) in context.counters(published, ns)? {
            let Some(sort) = CounterSort::from_code(code) else { continue };
            let rows = count(value);
            if part != TOTAL {
                if sort == CounterSort::Live {
                    let partition = partition_name(published, ns, part)?;
                    let partition = match part {
                        SHARED => partition,
                        _ => apart(&slashed(&partition), &Partition::Shared.to_string()),
                    };
                    self.by_partition.insert(format!("{prefix}{partition}"), rows);
                }
                continue;
            }
            match sort {
                CounterSort::Live => {
                    self.memories.live += rows;
                    self.by_namespace.insert(name.to_owned(), rows);
                }
                CounterSort::Kind => *self.by_kind.entry(label).or_default() += rows,
                CounterSort::Tier => *self.by_tier.entry(label).or_default() += rows,
                CounterSort::Tag | CounterSort::Label | CounterSort::Vectors => {}
                CounterSort::Superseded => self.memories.superseded += rows,
                CounterSort::Expired => self.memories.expired += rows,
                CounterSort::Ahead => self.memories.ahead += rows,
                CounterSort::Past => self.memories.past += rows,
                CounterSort::Tombstones => self.memories.tombstoned += rows,
                CounterSort::Holders => self.holders += rows,
                CounterSort::Pending => self.pending += rows,
                CounterSort::Ignored => self.ignored += rows,
                CounterSort::Duplicates => self.health.duplicates_detected += rows,
                CounterSort::Limbo => self.memories.limbo += rows,
                CounterSort::Events => self.events += rows,
                CounterSort::Aggregates => self.aggregates += rows,
            }
        }
        Ok(())
    }

    fn add_passes(&mut self, published: &Published, ns: NsId, prefix: &str) -> Result<()> {
        for (name, row) in published.snapshot().passes(ns)? {
            if name == PRUNE && !row.open {
                let ended = Some(Time::from_millis(row.ended_ms).to_string());
                self.health.last_prune = ended.max(self.health.last_prune.take());
            }
            self.passes.insert(format!("{prefix}{name}"), row.into());
        }
        Ok(())
    }

    fn add_vectors(&mut self, published: &Published, ns: NsId) -> Result<()> {
        for (index, head) in published.snapshot().slot_heads(Some(ns))? {
            let graph = match published.snapshot().graph_head(index) {
                Err(Error::Corrupted { why, .. }) => {
                    self.warn_of_graph(published, index, &why)?;
                    None
                }
                other => other?,
            };
            let counts = Counts::of(&head, graph.as_ref());
            let [live, dead, tail, in_graph] =
                [counts.live, counts.dead, counts.tail, counts.in_graph].map(u64::from);
            self.vectors.live += live;
            self.vectors.dead += dead;
            self.vectors.free += u64::from(head.len).saturating_sub(live + dead);
            self.vectors.tail += tail;
            self.vectors.in_graph += in_graph;
            let regime = if counts.has_graph { "graph" } else { "exact" };
            self.vectors.regime = match self.vectors.regime {
                // An index without a row has no regime.
                before if live == 0 => before,
                "" => regime,
                before if before == regime => regime,
                _ => "mixed",
            };
        }
        let loaded = published.all_loaded().into_iter().filter(|(index, _)| index.ns == ns);
        for (index, view) in loaded {
            if let Some(why) = view.fault() {
                self.warn_of_graph(published, index, why)?;
            }
        }
        self.health.index_warnings.sort();
        self.health.index_warnings.dedup();
        Ok(())
    }

    fn warn_of_graph(&mut self, published: &Published, index: IndexId, why: &str) -> Result<()> {
        let part = partition_name(published, index.ns, index.part)?;
        let what =
            format!("the graph of partition {part} is damaged and not used; `reindex` heals it: {why}");
        self.health.index_warnings.push(what);
        Ok(())
    }
}

fn partition_name(published: &Published, ns: NsId, part: PartId) -> Result<String> {
    if part == SHARED {
        return Ok("shared".to_owned());
    }
    Ok(published.snapshot().partition_name(ns, part)?.unwrap_or_default())
}

/// The rows of a counter, which `check` requires to be at least 0.
fn count(value: CounterRow) -> u64 {
    u64::try_from(value.rows).unwrap_or(0)
}

fn clock_warning(committed: Time, context: StatsContext<'_>) -> Option<String> {
    let behind = committed.as_millis() - context.clock.as_millis();
    (behind > context.policy.clock_warn.as_millis()).then(|| {
        let StatsContext { clock, .. } = context;
        format!("the clock says {clock}, {} hours before the last commit at {committed}", behind / 3_600_000)
    })
}
