//! Maintenance: which passes there are, how a run of them goes, and what it tells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::engine::database::Database;
use crate::engine::documents::DedupOptions;
use crate::engine::pace::Pace;
use crate::error::{Error, Result};
use crate::hygiene::{self, Asked};
use crate::limits::{LISTING_ROWS_MAX, SAMPLES_MAX, THREADS_MAX};
use crate::model::{Kind, NamespaceName, RuleId, RunId};
use crate::policy::{Policy, Stage};
use crate::store::control::{CounterSort, TOTAL};
use crate::store::{NsId, Rows};

/// A maintenance pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// Reduces histories of snapshots to the latest of each period.
    Snapshots,
    /// Makes one of operational reports that differ in numbers and dates alone.
    Collapse,
    /// Makes one of rows of equal text, as the write path would have done.
    NearDuplicates,
    /// Lets one of near-equal vectors stand for the others.
    VectorDuplicates,
    /// Makes superseded rows live again whose chain of superseders leads nowhere.
    Supersession,
    /// Gives vectors to memories that wait for one; nothing without an embedder.
    Embed,
    /// Erases what has been in limbo for longer than the undo horizon.
    Limbo,
    /// Builds the graphs of large partitions, links what lies beside them, drops those of partitions that became small; goes on
    /// with declared indexes that are not whole.
    Index,
    /// Unlinks the nodes of memories that are gone, erases their codes and frees their slots.
    Repair,
}

impl Pass {
    /// Every pass, in the order in which they run.
    pub const ALL: [Pass; 9] = [
        Pass::Snapshots,
        Pass::Collapse,
        Pass::NearDuplicates,
        Pass::VectorDuplicates,
        Pass::Supersession,
        Pass::Embed,
        Pass::Limbo,
        Pass::Index,
        Pass::Repair,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Pass::Snapshots => "snapshots",
            Pass::Collapse => "collapse",
            Pass::NearDuplicates => "near-duplicates",
            Pass::VectorDuplicates => "vector-duplicates",
            Pass::Supersession => "supersession",
            Pass::Embed => "embed",
            Pass::Limbo => "limbo",
            Pass::Index => "index",
            Pass::Repair => "repair",
        }
    }

    /// The rule that its journal rows name.
    pub(super) fn rule(self) -> RuleId {
        match self {
            Pass::Embed => RuleId::EMBED,
            Pass::Limbo => RuleId::LIMBO,
            Pass::Index => RuleId::INDEX,
            Pass::Repair => RuleId::REPAIR,
            planned => planned.planner().map_or(RuleId::LIMBO, hygiene::Pass::rule),
        }
    }

    /// What plans it; none for passes that go by what the rows of an index or of limbo say from slice to slice.
    pub(super) fn planner(self) -> Option<&'static dyn hygiene::Pass> {
        match self {
            Pass::Snapshots => Some(&hygiene::Snapshots),
            Pass::Collapse => Some(&hygiene::Collapse),
            Pass::NearDuplicates => Some(&hygiene::NearDuplicates),
            Pass::VectorDuplicates => Some(&hygiene::VectorDuplicates),
            Pass::Supersession => Some(&hygiene::Supersession),
            Pass::Embed | Pass::Limbo | Pass::Index | Pass::Repair => None,
        }
    }

    /// The pass of a stage of the sweep.
    fn of_stage(stage: Stage) -> Pass {
        match stage {
            Stage::Collapse => Pass::Collapse,
            Stage::Dedup => Pass::VectorDuplicates,
            Stage::Snapshots => Pass::Snapshots,
            Stage::Limbo => Pass::Limbo,
        }
    }
}

impl std::str::FromStr for Pass {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let names = Pass::ALL.map(Pass::as_str).join(", ");
        let found = Pass::ALL.into_iter().find(|pass| pass.as_str() == name);
        found.ok_or_else(|| Error::invalid("pass", format!("must be one of {names}"), name))
    }
}

/// How maintenance runs.
#[derive(Clone, Debug)]
pub struct MaintainOptions {
    /// Only say what there is to do; the default.
    pub dry_run: bool,
    /// Stop after so much time; what is left the next call goes on with.
    pub budget: Option<Duration>,
    /// Stop after so many rows; what is left the next call goes on with.
    pub max_rows: Option<u64>,
    /// Threads that work on one slice of an index; as many as there are cores by default. The result is the same.
    pub threads: Option<usize>,
    /// Only this namespace.
    pub namespace: Option<NamespaceName>,
    /// Visible rows of a namespace that this call may remove or supersede, in place of what `budget.share` and
    /// `budget.floor` allow.
    pub destroy_max: Option<u64>,
    /// Whether `collapse` has its fuzzy phase, in place of `collapse.fuzzy`.
    pub fuzzy: Option<bool>,
    /// Sample groups in a report, 0 to 10,000, in place of `collapse.max_samples`.
    pub max_samples: Option<u32>,
    /// Rows of a page of the listing of `collapse`, 1 to 1,000,000, in place of `collapse.batch`.
    pub batch_size: Option<u32>,
    /// Only this series, in `snapshots`.
    pub series: Option<String>,
    /// How `vector-duplicates` runs, in place of the policy's `dedup.*`; of its other fields only the tiers count here.
    pub dedup: Option<DedupOptions>,
}

impl Default for MaintainOptions {
    fn default() -> Self {
        MaintainOptions {
            dry_run: true,
            budget: None,
            max_rows: None,
            threads: None,
            namespace: None,
            destroy_max: None,
            fuzzy: None,
            max_samples: None,
            batch_size: None,
            series: None,
            dedup: None,
        }
    }
}

impl MaintainOptions {
    /// A run that does the work.
    pub fn live() -> Self {
        MaintainOptions { dry_run: false, ..MaintainOptions::default() }
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(threads) = self.threads.filter(|threads| !(1..=THREADS_MAX).contains(threads)) {
            return Err(Error::invalid("threads", format!("must be 1 to {THREADS_MAX}"), threads));
        }
        if let Some(samples) = self.max_samples.filter(|samples| *samples > SAMPLES_MAX) {
            return Err(Error::invalid("max_samples", format!("must be at most {SAMPLES_MAX}"), samples));
        }
        if let Some(rows) = self.batch_size.filter(|rows| !(1..=LISTING_ROWS_MAX).contains(rows)) {
            return Err(Error::invalid("batch_size", format!("must be 1 to {LISTING_ROWS_MAX}"), rows));
        }
        self.dedup.as_ref().map_or(Ok(()), DedupOptions::check)
    }

    /// What a pass is asked that no policy says.
    pub(super) fn asked(&self) -> Asked {
        let tiers = self.dedup.iter().flat_map(|dedup| dedup.tiers.iter().copied()).collect();
        Asked { series: self.series.clone(), tiers }
    }

    /// The policy with the overrides of the call.
    pub(super) fn effective(&self, policy: &Policy) -> Policy {
        let mut policy = policy.clone();
        policy.collapse.fuzzy = self.fuzzy.unwrap_or(policy.collapse.fuzzy);
        policy.collapse.max_samples = self.max_samples.unwrap_or(policy.collapse.max_samples);
        policy.collapse.batch = self.batch_size.unwrap_or(policy.collapse.batch);
        if let Some(dedup) = &self.dedup {
            dedup.over(&mut policy);
        }
        policy
    }
}

/// What one pass came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// Which.
    pub pass: Pass,
    /// Rows that there were to work on when it began: the whole plan, of a run that is gone on with the plan of its
    /// beginning.
    pub planned: u64,
    /// Rows that it looked at.
    pub scanned: u64,
    /// Rows that it worked on.
    pub changed: u64,
    /// Memories of which only the tombstone, and until its horizon limbo, is left.
    pub tombstoned: u64,
    /// Rows that changed under it, or partitions that it could not work on: damaged, or larger than the memory budget.
    pub skipped: u64,
    /// Rows that it left alone because they are damaged; `check` names them.
    pub damaged: u64,
    /// Rows that were left when it stopped.
    pub left: u64,
    /// The run that its journal rows name; of a pass that went on with one that had been cut off, that one. None of a pass
    /// over memories that wrote nothing.
    pub run: Option<RunId>,
    /// Whether it went on with a run that had been cut off.
    pub resumed: bool,
    /// Whether the destruction budget cut its plan.
    pub budget_exhausted: bool,
    /// Time that it took, in milliseconds.
    pub ms: u64,
    /// Details, by name: those of a pass over memories read as its own type, [`ProfileCollapseReport`] or another. What
    /// it tells of several namespaces is added up.
    ///
    /// [`ProfileCollapseReport`]: crate::maintain::ProfileCollapseReport
    pub report: Map<String, Value>,
}

impl PassReport {
    pub(super) fn new(pass: Pass) -> Self {
        PassReport {
            pass,
            planned: 0,
            scanned: 0,
            changed: 0,
            tombstoned: 0,
            skipped: 0,
            damaged: 0,
            left: 0,
            run: None,
            resumed: false,
            budget_exhausted: false,
            ms: 0,
            report: Map::new(),
        }
    }

    pub(super) fn note(&mut self, name: &'static str, count: u64) {
        let before = self.report.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.report.insert(name.to_owned(), (before + count).into());
    }
}

/// What a maintenance run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintainReport {
    /// The run that its journal rows name, for [`Namespace::undo`](crate::Namespace::undo); none of a dry run, and where nothing was to be done.
    pub run: Option<RunId>,
    /// Its passes, in the order in which they ran.
    pub passes: Vec<PassReport>,
}

/// What all passes of one call share.
pub(super) struct Sweep {
    pub(super) run: RunId,
    pub(super) pace: Pace,
    /// Rows of a namespace that automatic actors may still remove.
    pub(super) destroy: BTreeMap<NsId, u64>,
}

impl Sweep {
    pub(super) fn new(run: RunId, options: &MaintainOptions) -> Self {
        Sweep { run, pace: Pace::of(options), destroy: BTreeMap::new() }
    }
}

impl Database {
    /// Runs maintenance passes, or with [`MaintainOptions::dry_run`] says what they would do. With no pass named, those
    /// run that the policy enables as stages of the sweep, `embed` where the handle has an embedder for the vectors of
    /// the database, then `index` and `repair`.
    ///
    /// A run can be stopped at any point, by a crash as well: the next call goes on with it. What it removed waits in
    /// limbo, and [`Namespace::undo`](crate::Namespace::undo) brings it back until `undo.horizon` is over.
    ///
    /// ```
    /// use oubliette::{Database, Draft, Kind, NamespaceName};
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let ns = NamespaceName::default();
    /// for apps in [4, 7] {
    ///     let mut draft = Draft::new(format!("Gateway status: {apps} apps pending"));
    ///     draft.fields.kind = Some(Kind::Profile);
    ///     db.add(&ns, draft)?;
    /// }
    /// let report = db.maintain(&[Pass::Collapse], &MaintainOptions::live())?;
    /// assert_eq!(report.passes[0].tombstoned, 1);
    /// let undone = db.undo(&ns, report.run.expect("a live run"))?;
    /// assert_eq!(undone.restored, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for options out of bounds; `Retry`, `Unavailable`, `ReadOnly`, `Closed`; `Conflict` when rows change
    /// faster than a pass can work on them, or the policy changes under it.
    pub fn maintain(&self, passes: &[Pass], options: &MaintainOptions) -> Result<MaintainReport> {
        options.check()?;
        self.inner.check_outside()?;
        if !options.dry_run {
            self.inner.check_open()?;
        }
        let _one = self.inner.upkeep.lock();
        let enabled;
        let passes = if passes.is_empty() {
            enabled = self.enabled(options.namespace.as_ref())?;
            &enabled
        } else {
            passes
        };
        let mut run = RunId::from_bytes(self.inner.ids.next(self.inner.clock.now()));
        if !options.dry_run {
            run = self.cut_off(passes, options)?.unwrap_or(run);
        }
        let mut sweep = Sweep::new(run, options);
        let mut reports = Vec::new();
        for &pass in passes {
            reports.push(self.run_pass(pass, options, &mut sweep)?);
            // A superseder of a cluster may have been one that is gone (DEDUP-46).
            if pass == Pass::VectorDuplicates && !passes.contains(&Pass::Supersession) {
                reports.push(self.run_pass(Pass::Supersession, options, &mut sweep)?);
            }
        }
        // A run that has written nothing is not in the file.
        let has_written = reports.iter().any(|report| report.run.is_some() || report.changed > 0);
        Ok(MaintainReport { run: Some(run).filter(|_| has_written && !options.dry_run), passes: reports })
    }

    pub(super) fn run_pass(
        &self,
        pass: Pass,
        options: &MaintainOptions,
        sweep: &mut Sweep,
    ) -> Result<PassReport> {
        let begun = Instant::now();
        let mut report = PassReport::new(pass);
        match pass {
            Pass::Index | Pass::Repair => {
                self.keep_up(pass, options, sweep, &mut report)?;
                if pass == Pass::Index {
                    self.keep_texts(options, sweep, &mut report)?;
                    self.finish_indexes(options, sweep, &mut report)?;
                }
            }
            Pass::Embed => self.embed_pending(options, sweep, &mut report)?,
            Pass::Limbo => self.empty_limbo(options, sweep, &mut report)?,
            _ => self.sweep_memories(pass, options, sweep, &mut report)?,
        }
        report.ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(report)
    }

    /// The stages that the policy enables, in the order of the passes; `embed`, if it can; then the indexes. Snapshot
    /// histories from before there were periods are reduced once, and operational reports past
    /// `collapse.threshold` collapse.
    fn enabled(&self, namespace: Option<&NamespaceName>) -> Result<Vec<Pass>> {
        let policy = self.inner.in_force().policy.clone();
        let mut all: BTreeSet<Pass> =
            policy.sweeper.stages.iter().map(|stage| Pass::of_stage(*stage)).collect();
        all.extend([Pass::Index, Pass::Repair]);
        let published = self.inner.state()?;
        let rows = published.snapshot();
        if self.inner.embedder_for(&published)?.is_some() {
            all.insert(Pass::Embed);
        }
        for (_, ns) in self.tenants(namespace)? {
            let of_kind = |kind: &str| {
                let counter = rows.counter(ns, TOTAL, CounterSort::Kind as u8, kind)?;
                Ok::<_, Error>(u64::try_from(counter.rows).unwrap_or(0))
            };
            if of_kind(&Kind::Snapshot.to_string())? > 0 && rows.pass(ns, Pass::Snapshots.as_str())?.is_none()
            {
                all.insert(Pass::Snapshots);
            }
            let kinds = policy.collapse.kinds.iter().map(|kind| of_kind(kind));
            let visible = kinds.sum::<Result<u64>>()?;
            if hygiene::collapse_is_due(&policy, visible) {
                all.insert(Pass::Collapse);
            }
        }
        Ok(all.into_iter().collect())
    }

    /// The run of one of these passes that was cut off, if there is one: the call goes on with it.
    fn cut_off(&self, passes: &[Pass], options: &MaintainOptions) -> Result<Option<RunId>> {
        let hash = options.effective(&self.inner.in_force().policy).hash().0;
        let published = self.inner.state()?;
        for (_, ns) in self.tenants(options.namespace.as_ref())? {
            for pass in passes {
                let row = published.snapshot().pass(ns, pass.as_str())?;
                if let Some(row) = row.filter(|row| row.open && row.policy_hash == hash) {
                    return Ok(Some(RunId::from_bytes(row.run)));
                }
            }
        }
        Ok(None)
    }

    /// The namespaces that a pass looks at, by name.
    pub(super) fn tenants(&self, namespace: Option<&NamespaceName>) -> Result<Vec<(NamespaceName, NsId)>> {
        let mut all = Vec::new();
        for (name, row) in self.inner.state()?.snapshot().namespaces()? {
            if !row.dropping && namespace.is_none_or(|wanted| wanted.as_str() == name) {
                all.push((name.parse()?, NsId(row.number)));
            }
        }
        Ok(all)
    }
}
