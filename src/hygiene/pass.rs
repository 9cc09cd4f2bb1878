//! What is a pass? The trait that each implements in a file of its own, and what its work consists of.
//!
//! A pass looks at one namespace and says what there is to do. That is either a [`Plan`] of actions on memories, or a list
//! of [`Job`]s, which work step by step on the state that is published when each step begins. `engine` runs both in
//! the same loop.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::hygiene::looks::Looks;
use crate::hygiene::plan::{Field, Plan, Stop};
use crate::hygiene::scorer::Judge;
use crate::hygiene::told::{Details, PassDetails, PassReport};
use crate::index::{Linked, Published};
use crate::ledger::{Context, Ledger};
use crate::model::{Kind, NamespaceName, Pass, RunId, Span, Tier};
use crate::policy::Policy;
use crate::store::{IndexId, NsId, Snapshot};
use crate::text::{Messages, Secret};
use crate::vector::UnitVector;

/// What a call asks `prune` for, in place of what the policy says of summaries.
///
/// ```
/// use oubliette::Kind;
/// use oubliette::maintain::PruneTarget;
/// let target = PruneTarget::new(Kind::Episode, 1_000);
/// assert_eq!((target.count, target.agent), (1_000, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneTarget {
    /// The kind of the memories.
    pub kind: Kind,
    /// Only memories of this agent, as they name it in `agent_id`; none: of all.
    pub agent: Option<String>,
    /// How many visible memories of the kind are left, at least.
    pub count: u64,
}

impl PruneTarget {
    /// All but this number of the memories of a kind.
    ///
    /// ```
    /// use oubliette::Kind;
    /// use oubliette::maintain::PruneTarget;
    /// assert_eq!(PruneTarget::new(Kind::Episode, 1_000).kind, Kind::Episode);
    /// ```
    pub fn new(kind: Kind, count: u64) -> Self {
        PruneTarget { kind, agent: None, count }
    }
}

/// The rows to which a call confines a pass, as no policy can.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// What `prune` is asked for.
    pub(crate) prune: Option<PruneTarget>,
    /// The step of the host, where it counts steps.
    pub(crate) step: Option<u64>,
    /// Only this series of snapshots.
    pub(crate) series: Option<String>,
    /// Only rows of these tiers; empty: all.
    pub(crate) tiers: BTreeSet<Tier>,
}

impl Selection {
    /// Whether nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.series.is_none() && self.tiers.is_empty() && self.prune.is_none()
    }
}

/// What a pass is planned on.
#[derive(Clone, Copy)]
pub(crate) struct PlanInput<'s> {
    pub(crate) published: &'s Published,
    pub(crate) namespace: &'s NamespaceName,
    /// Number of the namespace, its partitions and the instant.
    pub(crate) field: &'s Field,
    /// The secret of the file, under which names stand that may be gone.
    pub(crate) secret: &'s Secret,
    /// The policy in effect, with the overrides of the call.
    pub(crate) policy: &'s Policy,
    pub(crate) selection: &'s Selection,
    /// Whether the call names the pass; else the policy does, as a stage of the sweep.
    pub(crate) is_named: bool,
    /// What scores memories in place of the built-in formulas.
    pub(crate) judge: Option<&'s dyn Judge>,
    /// The looks of the handle that found nothing to do.
    pub(crate) looks: &'s Looks,
}

impl PlanInput<'_> {
    /// The hash of an agent, under which the changes of its goals stand.
    pub(super) fn hash_of(&self, agent: Option<&str>) -> Option<[u8; 32]> {
        agent.map(|agent| self.secret.of_agent(agent))
    }
}

/// An embedder, and the space that its vectors open.
pub(crate) trait Vectorizer {
    /// Name of the space.
    fn space(&self) -> &str;

    /// What the embedder gives for each text.
    ///
    /// # Errors
    /// Those of the embedder, where it does not answer at all.
    fn vectors_of(&self, texts: &[&str]) -> Result<Vec<Given>>;
}

/// What an embedder gives for a text.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// Its vector.
    Vector(UnitVector),
    /// Nothing: the text has no vector, or the embedder refuses it while it answers otherwise.
    Nothing,
    /// It was not asked any more, because the call is to end, or because it answers too slowly.
    Unasked,
}

impl Given {
    /// The vector, where there is one.
    pub(crate) fn vector(&self) -> Option<&UnitVector> {
        match self {
            Given::Vector(vector) => Some(vector),
            Given::Nothing | Given::Unasked => None,
        }
    }
}

impl From<Option<UnitVector>> for Given {
    fn from(vector: Option<UnitVector>) -> Self {
        vector.map_or(Given::Nothing, Given::Vector)
    }
}

/// What a step is worked out on.
#[derive(Clone, Copy)]
pub(crate) struct StepInput<'s> {
    pub(crate) published: &'s Published,
    pub(crate) policy: &'s Policy,
    /// How the policy reads messages.
    pub(crate) messages: &'s Messages,
    /// None where the handle has none for the vectors of the database.
    pub(crate) embedder: Option<&'s dyn Vectorizer>,
    /// The run that the step belongs to.
    pub(crate) run: Option<RunId>,
    /// Threads that may work on the step.
    pub(crate) threads: usize,
    /// Rows of the step, at least 1.
    pub(crate) rows: usize,
    /// Rows that are left of the budget of the call.
    pub(crate) rows_left: usize,
}

/// What tells whether a pass runs in a call that names none.
pub(crate) struct DueInput<'s> {
    pub(crate) rows: &'s Snapshot,
    /// The namespaces of the call.
    pub(crate) namespaces: &'s [NsId],
    pub(crate) policy: &'s Policy,
    pub(crate) has_embedder: bool,
}

/// The transaction in which a step is applied.
pub(crate) struct Slice<'s, 'a, 't> {
    pub(crate) ledger: &'s mut Ledger<'a, 't>,
    pub(crate) context: Context,
    /// Graphs that the commit replaces; none where it drops one.
    pub(crate) linked: &'s mut BTreeMap<IndexId, Option<Linked>>,
    /// Whether the slice has lasted long enough.
    pub(crate) enough: &'s mut dyn FnMut() -> bool,
}

/// What applying a step came to.
#[derive(Default)]
pub(crate) struct Applied {
    /// The rows have changed since the step was worked out: nothing is written.
    pub(crate) is_stale: bool,
    /// Rows that the budget of the call pays for.
    pub(crate) rows: u64,
    /// What the job counts, and the row of its run.
    pub(crate) count: u64,
    /// Nothing is left to be done.
    pub(crate) is_last: bool,
}

impl Applied {
    /// A step on so many rows.
    pub(crate) fn rows(rows: u64) -> Self {
        Applied { rows, count: rows, ..Applied::default() }
    }

    /// A step that has written only if its rows were as it expected them.
    pub(crate) fn if_fresh(is_fresh: bool, rows: u64) -> Self {
        if is_fresh { Applied::rows(rows) } else { Applied { is_stale: true, ..Applied::default() } }
    }
}

/// One step, applied in a transaction. It is applied again where the transaction was given up, so what it leaves elsewhere
/// does not add up.
pub(crate) type Step<'s> = Box<dyn FnMut(&mut Slice<'_, '_, '_>) -> Result<Applied> + 's>;

/// A piece of the work of a pass in one namespace.
pub(crate) trait Job {
    /// Works out the next step; none when nothing is left.
    ///
    /// # Errors
    /// `Corrupted`; those of the embedder.
    fn next<'s>(&'s mut self, input: StepInput<'s>) -> Result<Option<Step<'s>>>;

    /// Takes note of a step that was committed.
    fn applied(&mut self, applied: Applied);

    /// Takes note of damage that a step met, of which nothing is written; says whether the next step goes past it.
    fn met_damage(&mut self) -> bool {
        false
    }

    /// Adds to the report what there was to do, what was done, and what is left on the state as it is now.
    ///
    /// # Errors
    /// `Corrupted`.
    fn tell(&self, rows: &Snapshot, report: &mut PassReport) -> Result<()>;

    /// Whether damage that it meets is no obstacle to the other jobs of the pass.
    fn may_be_left_out(&self) -> bool {
        false
    }

    /// Whether it keeps in the file how far it is, so that slices between two syncs may be lost.
    fn keeps_progress(&self) -> bool {
        false
    }
}

/// What there is to do in a namespace.
pub(crate) enum Planned {
    /// Actions on memories, held against the destruction budget and carried out later.
    Actions {
        plan: Plan,
        /// Rows that were looked at.
        scanned: u64,
        details: PassDetails,
    },
    /// Work on what follows from memories, or on what no live read sees.
    Jobs(Vec<Box<dyn Job>>),
}

impl Planned {
    pub(super) fn actions(plan: Plan, scanned: u64, report: impl Details) -> Self {
        Planned::Actions { plan, scanned, details: PassDetails::new(report) }
    }
}

/// A maintenance pass. What it does to memories goes through the ledger, whose journal [`undo`](crate::hygiene::undo)
/// takes back: the inverse belongs to the kind of change, not to the pass.
pub(crate) trait MaintenancePass: Sync {
    /// What there is to do; none when `stop` ended it. It changes nothing.
    ///
    /// # Errors
    /// `Corrupted`; `Invalid` for options out of their bounds.
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>>;

    /// Whether it runs in a call that names no pass, also where the policy does not name it as a stage.
    ///
    /// # Errors
    /// `Corrupted`.
    fn is_due(&self, _: &DueInput<'_>) -> Result<bool> {
        Ok(false)
    }

    /// The pass that has to follow.
    fn followed_by(&self) -> Option<Pass> {
        None
    }

    /// How long nobody may have called before a sweeper runs it; none of a pass that no sweeper waits with.
    fn waits_for_idle(&self, _: &Policy) -> Option<Span> {
        None
    }

    /// Whether a run without anything to do is written down where none was before.
    fn notes_first_look(&self) -> bool {
        false
    }
}
