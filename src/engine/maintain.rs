//! Maintenance: which passes a call runs, and what it tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::at_work::AtWork;
use crate::engine::database::Database;
use crate::engine::failed::FailedPass;
use crate::engine::inner::Inner;
use crate::engine::namespace::Namespace;
use crate::engine::options::MaintainOptions;
use crate::engine::pace::Pace;
use crate::error::{Error, Result, sound};
use crate::hygiene::{DueInput, PassReport, implementation};
use crate::model::{NamespaceName, Pass, RunId, RunSort, Span};
use crate::store::{NsId, Rows};

/// What a maintenance run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MaintainReport {
    /// The run that its journal rows name, for [`Namespace::undo`](crate::Namespace::undo); none of a dry run, and where nothing was to be done.
    pub run: Option<RunId>,
    /// The passes that ended well, in the order in which they ran.
    pub passes: Vec<PassReport>,
    /// The passes that failed. What they had done before stands, and the passes after each of them ran all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedPass>,
}

impl MaintainReport {
    /// The memories that a pass removed, also where it failed then; in a dry run those that it would remove.
    pub(super) fn removed(&self, pass: Pass, dry_run: bool) -> u64 {
        let count =
            |report: &PassReport| if dry_run { report.planned - report.cut } else { report.tombstoned };
        let failed = self.failed.iter().filter_map(|failed| failed.done.as_ref());
        self.passes.iter().chain(failed).find(|report| report.pass == pass).map_or(0, count)
    }
}

/// The passes that end what others have left, and keep up what follows from it. Summaries are made before them.
const LAST: [Pass; 4] = [Pass::Limbo, Pass::Retention, Pass::Index, Pass::Repair];

/// How a call runs its passes.
pub(super) struct Manner<'m> {
    pub(super) pace: Pace,
    /// How long no host has called, if a pass that waits for that is to wait.
    pub(super) idle: Option<Span>,
    /// What is done before the last passes, while nothing else of the call is under way.
    pub(super) between: Option<&'m mut dyn FnMut()>,
    /// Told of each pass that failed, with what it had done. The next one runs all the same.
    pub(super) failed: &'m mut dyn FnMut(PassReport, Error),
}

impl<'m> Manner<'m> {
    /// At the pace of the options, with nothing to wait for.
    pub(super) fn of(options: &MaintainOptions, failed: &'m mut dyn FnMut(PassReport, Error)) -> Self {
        Manner { pace: Pace::of(options), idle: None, between: None, failed }
    }
}

/// What all passes of one call share.
pub(super) struct Sweep {
    pub(super) run: RunId,
    /// The one namespace that it looks at; none: all, one by one.
    pub(super) only: Option<NamespaceName>,
    pub(super) sort: RunSort,
    pub(super) pace: Pace,
    /// Rows of a namespace that automatic actors may still remove.
    pub(super) destroy: BTreeMap<NsId, u64>,
    /// The runs that the call works on: its own, and those of earlier calls that a pass goes on with.
    pub(super) entered: BTreeMap<(NsId, RunId), (NamespaceName, AtWork)>,
    /// Whether the row of a run tells of something that the call did.
    pub(super) has_counted: bool,
}

impl Sweep {
    pub(super) fn new(
        run: RunId,
        sort: RunSort,
        only: Option<NamespaceName>,
        options: &MaintainOptions,
    ) -> Self {
        Sweep {
            run,
            sort,
            only,
            pace: Pace::of(options),
            destroy: BTreeMap::new(),
            entered: BTreeMap::new(),
            has_counted: false,
        }
    }

    /// Says that the handle works on a run in a namespace, until the call ends.
    pub(super) fn enter(&mut self, inner: &Arc<Inner>, namespace: &NamespaceName, ns: NsId, run: RunId) {
        let enter = || (namespace.clone(), inner.works_on(run));
        self.entered.entry((ns, run)).or_insert_with(enter);
    }
}

impl Database {
    /// Maintains every namespace, one by one, as [`Namespace::maintain`](crate::Namespace::maintain) does one.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// db.namespace("team")?.add("Ann prefers tea")?;
    /// assert!(!db.maintain()?.passes.is_empty());
    /// # db.close()?;
    /// let reader = Database::builder().read_only(true).open(&path)?;
    /// assert!(reader.maintain().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::maintain_with`].
    pub fn maintain(&self) -> Result<MaintainReport> {
        self.maintain_with(&MaintainOptions::live())
    }

    /// Maintains every namespace, one by one, as [`Namespace::maintain_with`](crate::Namespace::maintain_with) does one.
    ///
    /// ```
    /// use oubliette::Database;
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// # let folder = tempfile::tempdir()?;
    /// let db = Database::open(folder.path().join("m.oub"))?;
    /// let report = db.maintain_with(&MaintainOptions::live().passes([Pass::Index, Pass::Repair]))?;
    /// assert_eq!(report.passes[1].pass, Pass::Repair);
    /// assert!(db.maintain_with(&MaintainOptions { threads: Some(0), ..MaintainOptions::live() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for options out of bounds; `ReadOnly`, `Closed`. Where no pass that was asked for ended well, the error of the first one: `Embedding`; `Retry`,
    /// `Unavailable`; `Conflict` when rows change faster than a pass can work on them, or the policy changes under it; `Corrupted`
    /// where it met damage; in a `PartlyDone` if something was written before. Where another pass ended well, the report tells which
    /// ones failed, and what they had done.
    pub fn maintain_with(&self, options: &MaintainOptions) -> Result<MaintainReport> {
        self.maintain_in(None, options)
    }

    /// The passes that a call runs which names none: those that the policy enables as stages of the sweep, and those that are due.
    ///
    /// ```
    /// use oubliette::maintain::Pass;
    /// # let folder = tempfile::tempdir()?;
    /// let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let due = db.due_passes()?;
    /// assert!(due.contains(&Pass::Expire) && !due.contains(&Pass::Prune));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn due_passes(&self) -> Result<Vec<Pass>> {
        self.enabled(None, None)
    }

    /// Runs passes over one namespace, or over all.
    ///
    /// # Errors
    /// As [`Database::maintain_with`].
    pub(super) fn maintain_in(
        &self,
        only: Option<&NamespaceName>,
        options: &MaintainOptions,
    ) -> Result<MaintainReport> {
        // A pass that follows another does nothing of what was asked for.
        let was_asked_for =
            |pass: &PassReport| options.passes.is_empty() || options.passes.contains(&pass.pass);
        match self.maintain_to_end(only, options)? {
            (report, Some(why)) if !report.passes.iter().any(was_asked_for) => Err(match report.run {
                Some(run) => Error::PartlyDone { run: run.to_string(), source: Box::new(why) },
                None => why,
            }),
            (report, _) => Ok(report),
        }
    }

    /// Runs passes over one namespace, or over all, and gives the error of the first one that failed beside the report.
    ///
    /// # Errors
    /// Those of a call that begins no pass.
    pub(super) fn maintain_to_end(
        &self,
        only: Option<&NamespaceName>,
        options: &MaintainOptions,
    ) -> Result<(MaintainReport, Option<Error>)> {
        let (mut all, mut first) = (Vec::new(), None);
        let mut note = |report, why: Error| {
            all.push(FailedPass::new(report, &why));
            first.get_or_insert(why);
        };
        let report = self.maintain_each(only, options, Manner::of(options, &mut note))?;
        Ok((MaintainReport { failed: all, ..report }, first))
    }

    /// Runs passes over one namespace, or over all, in a manner.
    ///
    /// # Errors
    /// Those of a call that begins no pass.
    pub(super) fn maintain_each(
        &self,
        only: Option<&NamespaceName>,
        options: &MaintainOptions,
        manner: Manner<'_>,
    ) -> Result<MaintainReport> {
        options.check()?;
        self.inner.check_outside()?;
        if !options.dry_run {
            self.inner.check_open()?;
        }
        let Manner { pace, idle, between, failed } = manner;
        let one = self.inner.upkeep.lock();
        // A pass decides by what is used.
        if !options.dry_run && !options.passes.contains(&Pass::Fold) {
            self.flush_access_at_end()?;
        }
        let enabled;
        let passes = if options.passes.is_empty() {
            enabled = self.enabled(only, idle)?;
            &enabled
        } else {
            &options.passes
        };
        let mut run = self.inner.new_run()?;
        if !options.dry_run {
            run = self.cut_off(passes, only, options)?.unwrap_or(run);
        }
        let mut sweep = Sweep::new(run, RunSort::Maintain, only.cloned(), options);
        sweep.pace = pace;
        let followed = passes.iter().flat_map(|pass| {
            let next = implementation(*pass).followed_by().filter(|next| !passes.contains(next));
            std::iter::once(*pass).chain(next)
        });
        let followed: Vec<Pass> = followed.collect();
        let last = followed.iter().position(|pass| LAST.contains(pass)).unwrap_or(followed.len());
        let (first, last) = followed.split_at(last);
        let mut reports = Vec::new();
        let mut run_each = |passes: &[Pass]| {
            passes.iter().for_each(|pass| match self.run_to_end(*pass, options, &mut sweep) {
                (report, None) => reports.push(report),
                (report, Some(why)) => failed(report, why),
            });
        };
        run_each(first);
        let _one = match between {
            Some(between) => {
                drop(one);
                between();
                self.inner.upkeep.lock()
            }
            None => one,
        };
        run_each(last);
        self.end_runs(&sweep);
        // A run that has written nothing is not in the file.
        let has_written = sweep.has_counted || reports.iter().any(|report| report.run.is_some());
        let run = Some(run).filter(|_| has_written && !options.dry_run);
        Ok(MaintainReport { run, passes: reports, failed: Vec::new() })
    }

    /// The passes that are stages of the policy, and those that are due; in the order of the list.
    fn enabled(&self, namespace: Option<&NamespaceName>, idle: Option<Span>) -> Result<Vec<Pass>> {
        let in_force = self.inner.in_force();
        let published = self.inner.state()?;
        let namespaces: Vec<NsId> = self.tenants(namespace)?.into_iter().map(|(_, ns)| ns).collect();
        let input = DueInput {
            rows: published.snapshot(),
            namespaces: &namespaces,
            policy: &in_force.policy,
            has_embedder: self.inner.embedder_for(&published)?.is_some(),
        };
        let mut all = Vec::new();
        for pass in Pass::ALL {
            let is_stage = in_force.policy.sweeper.stages.iter().any(|stage| stage.pass() == Some(*pass));
            let wait = implementation(*pass).waits_for_idle(&in_force.policy);
            if idle.zip(wait).is_some_and(|(idle, wait)| idle < wait) {
                continue;
            }
            if is_stage || implementation(*pass).is_due(&input)? {
                all.push(*pass);
            }
        }
        Ok(all)
    }

    /// The run of one of these passes that was cut off, if there is one: the call goes on with it.
    fn cut_off(
        &self,
        passes: &[Pass],
        only: Option<&NamespaceName>,
        options: &MaintainOptions,
    ) -> Result<Option<RunId>> {
        let hash = options.effective(&self.inner.in_force().policy).hash().0;
        let published = self.inner.state()?;
        for (_, ns) in self.tenants(only)? {
            for pass in passes {
                let row = published.snapshot().pass(ns, pass.as_str())?;
                if let Some(row) = row.filter(|row| row.open && row.policy_hash == hash) {
                    return Ok(Some(row.run));
                }
            }
        }
        Ok(None)
    }

    /// The namespaces that a pass looks at, by name. Of one that is named, no row but its own is read: a run over many
    /// namespaces asks for each.
    pub(super) fn tenants(&self, namespace: Option<&NamespaceName>) -> Result<Vec<(NamespaceName, NsId)>> {
        let published = self.inner.state()?;
        let snapshot = published.snapshot();
        let Some(named) = namespace else {
            let all = snapshot.namespaces()?.into_iter().filter(|(_, row)| !row.dropping);
            return all.map(|(name, row)| Ok((name.parse()?, NsId(row.number)))).collect();
        };
        let row = sound(snapshot.namespace(named.as_str()))?.flatten();
        Ok(row.filter(|row| !row.dropping).map(|row| (named.clone(), NsId(row.number))).into_iter().collect())
    }
}

impl Namespace {
    /// Maintains the namespace: runs the passes that the policy enables as stages of the sweep, `embed` where the handle
    /// has an embedder for the vectors of the database, then `index` and `repair`.
    ///
    /// A run can be stopped at any point, by a crash as well: the next call goes on with it. What it removed waits in
    /// limbo, and [`Namespace::undo`] brings it back until `undo.horizon` is over.
    ///
    /// ```
    /// use oubliette::maintain::Pass;
    /// use oubliette::{Database, Draft};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = Database::open(folder.path().join("m.oub"))?;
    /// let team = db.namespace("team")?;
    /// team.add("Ann prefers tea")?;
    /// let report = team.maintain()?;
    /// let passes: Vec<Pass> = report.passes.iter().map(|pass| pass.pass).collect();
    /// assert!(passes.contains(&Pass::Limbo) && passes.ends_with(&[Pass::Index, Pass::Repair]));
    /// db.close()?;
    /// assert!(team.maintain().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Namespace::maintain_with`].
    pub fn maintain(&self) -> Result<MaintainReport> {
        self.maintain_with(&MaintainOptions::live())
    }

    /// The passes that a call runs which names none, as [`Database::due_passes`] says them of all namespaces.
    ///
    /// ```
    /// use oubliette::maintain::Pass;
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// assert!(team.due_passes()?.ends_with(&[Pass::Index, Pass::Repair]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::due_passes`].
    pub fn due_passes(&self) -> Result<Vec<Pass>> {
        self.db.enabled(Some(&self.name), None)
    }

    /// Maintains the namespace with options: which passes, how much of them, or as a dry run, which says what there is
    /// to do and is the default of the options.
    ///
    /// ```
    /// use oubliette::maintain::{MaintainOptions, Pass};
    /// use oubliette::{Database, Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// for apps in [4, 7] {
    ///     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// }
    /// let dry = team.maintain_with(&MaintainOptions::default().passes([Pass::Collapse]))?;
    /// assert_eq!((dry.passes[0].planned, dry.run), (1, None));
    /// let live = team.maintain_with(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// assert_eq!(live.passes[0].tombstoned, 1);
    /// assert!(team.maintain_with(&MaintainOptions { threads: Some(0), ..MaintainOptions::live() }).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::maintain_with`].
    pub fn maintain_with(&self, options: &MaintainOptions) -> Result<MaintainReport> {
        self.db.maintain_in(Some(&self.name), options)
    }
}
