//! How maintenance is asked for.

use crate::error::Result;
use crate::hygiene::{PruneTarget, Selection};
use crate::ingest::Threshold;
use crate::limits::{
    CLUSTER_MAX, LISTING_ROWS_MAX, NEIGHBOURS_MAX, SAMPLES_MAX, THREADS_MAX, at_most, within,
};
use crate::model::{NamespaceName, Pass, Span, Tier};
use crate::policy::{Linkage, Metric, Policy, Preset};

/// How maintenance runs.
///
/// ```
/// use oubliette::Database;
/// use oubliette::maintain::{MaintainOptions, Pass};
/// # let folder = tempfile::tempdir()?;
/// # let db = Database::open(folder.path().join("m.oub"))?;
/// let bounded = MaintainOptions { max_rows: Some(1_000), ..MaintainOptions::live() };
/// db.maintain_with(&bounded.passes([Pass::Index]))?;
/// assert!(db.maintain_with(&MaintainOptions { threads: Some(0), ..MaintainOptions::default() }).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaintainOptions {
    /// The passes, in this order. None named: those that the policy enables as stages of the sweep, `embed` where the
    /// handle has an embedder for the vectors of the database, then `index` and `repair`.
    pub passes: Vec<Pass>,
    /// Only say what there is to do; the default.
    pub dry_run: bool,
    /// Stop after so much time; what is left the next call goes on with.
    pub budget: Option<Span>,
    /// Stop after so many rows; what is left the next call goes on with.
    pub max_rows: Option<u64>,
    /// Threads that work on one slice of an index; as many as there are cores by default. The result is the same.
    pub threads: Option<usize>,
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
    /// The step of the host, where it counts steps: `prune` looks at a level only every so many steps, and steps decide about
    /// age and rest where memories have them.
    pub step: Option<u64>,
    /// What `prune` removes, in place of what the policy says of summaries; `prune.enabled` does not matter then.
    pub prune: Option<PruneTarget>,
    /// A preset that is laid over the policy for this call.
    pub preset: Option<Preset>,
    /// How `vector-duplicates` runs, in place of the policy's `dedup.*`; of its other fields only the tiers count here.
    pub dedup: Option<DedupOptions>,
}

impl Default for MaintainOptions {
    fn default() -> Self {
        MaintainOptions {
            passes: Vec::new(),
            dry_run: true,
            budget: None,
            max_rows: None,
            threads: None,
            destroy_max: None,
            fuzzy: None,
            max_samples: None,
            batch_size: None,
            series: None,
            step: None,
            prune: None,
            preset: None,
            dedup: None,
        }
    }
}

impl MaintainOptions {
    /// A run that does the work.
    ///
    /// ```
    /// use oubliette::maintain::MaintainOptions;
    /// assert!(!MaintainOptions::live().dry_run);
    /// assert!(MaintainOptions::default().dry_run);
    /// ```
    pub fn live() -> Self {
        MaintainOptions { dry_run: false, ..MaintainOptions::default() }
    }

    /// Only these passes, in this order.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// let options = MaintainOptions::live().passes([Pass::Collapse, Pass::Index]);
    /// assert_eq!(options.passes, [Pass::Collapse, Pass::Index]);
    /// ```
    #[must_use]
    pub fn passes(self, passes: impl Into<Vec<Pass>>) -> Self {
        MaintainOptions { passes: passes.into(), ..self }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.threads.map_or(Ok(()), |threads| within("threads", threads, 1..=THREADS_MAX))?;
        self.max_samples.map_or(Ok(()), |samples| at_most("max_samples", samples, SAMPLES_MAX))?;
        self.batch_size.map_or(Ok(()), |rows| within("batch_size", rows, 1..=LISTING_ROWS_MAX))?;
        self.dedup.as_ref().map_or(Ok(()), DedupOptions::check)
    }

    /// Threads that may work on one slice.
    pub(super) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(cores)
    }

    /// The rows to which the call confines a pass.
    pub(super) fn selection(&self) -> Selection {
        let tiers = self.dedup.iter().flat_map(|dedup| dedup.tiers.iter().copied()).collect();
        Selection { prune: self.prune.clone(), step: self.step, series: self.series.clone(), tiers }
    }

    /// The policy with the overrides of the call.
    pub(super) fn effective(&self, policy: &Policy) -> Policy {
        let mut policy = match self.preset {
            None => policy.clone(),
            Some(preset) => policy
                .with_preset(preset)
                .unwrap_or_else(|why| unreachable!("a preset and a policy in force are in bounds: {why}")),
        };
        policy.collapse.fuzzy = self.fuzzy.unwrap_or(policy.collapse.fuzzy);
        policy.collapse.max_samples = self.max_samples.unwrap_or(policy.collapse.max_samples);
        policy.collapse.batch = self.batch_size.unwrap_or(policy.collapse.batch);
        if let Some(dedup) = &self.dedup {
            dedup.over(&mut policy);
        }
        policy
    }
}

/// Options of [`Database::dedup`](crate::Database::dedup).
#[derive(Clone, Debug)]
pub struct DedupOptions {
    /// Least score of a pair, up to 1; 0 is the default of the metric, a negative one turns the pass off.
    pub similarity: f64,
    /// Least members of a cluster, at most 1,000,000; 0 and 1 count as 2.
    pub min_cluster_size: u32,
    /// Only rows of these tiers; empty: all.
    pub tiers: Vec<Tier>,
    /// Only this namespace; all by default, one by one.
    pub namespace: Option<NamespaceName>,
    /// Neighbours that are searched for each row, at most 999; 0 counts as 20.
    pub neighbours_per_anchor: u32,
    /// How a pair is scored.
    pub metric: Metric,
    /// How a cluster holds together.
    pub linkage: Linkage,
    /// Only say what would be done.
    pub dry_run: bool,
}

impl Default for DedupOptions {
    fn default() -> Self {
        DedupOptions {
            similarity: 0.0,
            min_cluster_size: 0,
            tiers: Vec::new(),
            namespace: None,
            neighbours_per_anchor: 0,
            metric: Metric::Cosine,
            linkage: Linkage::Representative,
            dry_run: false,
        }
    }
}

impl DedupOptions {
    pub(super) fn check(&self) -> Result<()> {
        at_most("neighbours_per_anchor", self.neighbours_per_anchor, NEIGHBOURS_MAX)?;
        at_most("min_cluster_size", self.min_cluster_size, CLUSTER_MAX)?;
        Threshold::new(self.metric, self.similarity).map(|_| ())
    }

    /// Lays the options over a policy.
    pub(super) fn over(&self, policy: &mut Policy) {
        policy.dedup.similarity = self.similarity;
        policy.dedup.min_cluster_size = self.min_cluster_size;
        policy.dedup.neighbours = self.neighbours_per_anchor;
        policy.dedup.metric = self.metric;
        policy.dedup.linkage = self.linkage;
    }
}

/// The number of threads that the machine runs side by side.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
