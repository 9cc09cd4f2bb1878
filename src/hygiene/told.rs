//! What does a pass tell?

use std::any::Any;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::hygiene::carry::Done;
use crate::hygiene::plan::Plan;
use crate::model::{Pass, RunId};

/// What one pass came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Whether the time or the rows of the call were over before the pass knew what there is to do in all namespaces. The next
    /// call looks at everything again, so it needs a larger budget.
    pub cut_short: bool,
    /// Rows of the plan that the budget leaves to a later run; a dry run cuts as a live one does.
    pub cut: u64,
    /// Time that it took, in milliseconds.
    pub ms: u64,
    /// Details, as the type of the pass: [`ProfileCollapseReport`](crate::maintain::ProfileCollapseReport) or another. What it tells of several
    /// namespaces is added up.
    pub report: PassDetails,
}

impl PassReport {
    pub(crate) fn new(pass: Pass) -> Self {
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
            cut_short: false,
            cut: 0,
            ms: 0,
            report: PassDetails::default(),
        }
    }
}

/// What a run did, for the report of a pass that has a place for it.
pub(super) struct Outcome {
    pub(super) done: Done,
    pub(super) run_id: Option<RunId>,
    pub(super) dry_run: bool,
    pub(super) budget_exhausted: bool,
}

/// A report of a pass as its own type, implemented with [`details`].
pub(super) trait Details: Any + fmt::Debug + Send + Sync {
    /// Its numbers by their names in JSON, under which a run that is cut off keeps them.
    fn numbers(&mut self) -> Vec<(&'static str, &mut u64)>;

    /// Takes what a plan does not know from what was done.
    fn settle(&mut self, outcome: &Outcome);

    /// Leaves out what was cut off the plan, where it tells what goes.
    fn cut(&mut self, plan: &Plan);

    /// Appends the lists of another namespace, and takes over what is the same for all.
    fn append(&mut self, more: &PassDetails);

    fn json(&self) -> Value;

    fn boxed(&self) -> Box<dyn Details>;
}

/// Implements [`Details`]: which members are numbers, with their names in JSON; which are lists; which count what was done; and
/// which flags are the same for all namespaces; how it leaves out what was cut off the plan.
macro_rules! details {
    ($report:ident {
        $(numbers { $($($number:ident).+ $name:literal),+ })?
        $(lists { $($list:ident),+ })?
        $(done { $($($count:ident).+ = $done:ident),+ })?
        $(flags { $($($flag:ident).+ = $set:ident),+ })?
        $(cut { $cut:ident })?
    }) => {
        impl $crate::hygiene::told::Details for $report {
            fn numbers(&mut self) -> Vec<(&'static str, &mut u64)> {
                vec![$($(($name, &mut self.$($number).+)),+)?]
            }

            fn settle(&mut self, _outcome: &$crate::hygiene::told::Outcome) {
                $($(self.$($count).+ = _outcome.done.$done;)+)?
                $($(self.$($flag).+ = _outcome.$set;)+)?
            }

            fn cut(&mut self, _plan: &$crate::hygiene::plan::Plan) {
                $($cut(self, _plan);)?
            }

            fn append(&mut self, more: &$crate::hygiene::told::PassDetails) {
                let Some(_more) = more.get::<Self>() else { return };
                $($(self.$list.extend_from_slice(&_more.$list);)+)?
                $($(self.$($flag).+ = _more.$($flag).+;)+)?
            }

            fn json(&self) -> serde_json::Value {
                serde_json::json!(self)
            }

            fn boxed(&self) -> Box<dyn $crate::hygiene::told::Details> {
                Box::new(self.clone())
            }
        }
    };
}

pub(super) use details;

/// What a pass tells beside its counts: a report of its own type, in JSON that type alone. Empty for a pass whose counts tell
/// everything, and where there was no namespace.
#[derive(Debug, Default)]
pub struct PassDetails(Option<Box<dyn Details>>);

impl PassDetails {
    pub(super) fn new(report: impl Details) -> Self {
        PassDetails(Some(Box::new(report)))
    }

    /// The report as its own type, as [`ProfileCollapseReport`](crate::maintain::ProfileCollapseReport) of the pass `collapse`; none where it is of another.
    ///
    /// ```
    /// use oubliette::maintain::{IndexReport, MaintainOptions, Pass, ProfileCollapseReport};
    /// # use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// # for apps in [4, 7] {
    /// #     team.add(Draft::new(format!("Gateway status: {apps} apps pending")).kind(Kind::Profile))?;
    /// # }
    /// let plan = team.plan(&MaintainOptions::live().passes([Pass::Collapse]))?;
    /// let details = plan.report().report;
    /// assert!(details.get::<ProfileCollapseReport>().is_some());
    /// assert!(details.get::<IndexReport>().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let report: &dyn Any = self.0.as_deref()?;
        report.downcast_ref()
    }

    /// The report as its own type, to which a job adds.
    pub(super) fn of<T: Details + Default>(&mut self) -> &mut T {
        let report: &mut dyn Any = &mut **self.0.get_or_insert_with(|| Box::new(T::default()));
        report.downcast_mut().unwrap_or_else(|| unreachable!("a pass tells as one type"))
    }

    pub(super) fn numbers(&mut self) -> Vec<(&'static str, &mut u64)> {
        self.0.as_mut().map_or_else(Vec::new, |report| report.numbers())
    }

    /// Leaves out what was cut off the plan.
    pub(crate) fn cut(&mut self, plan: &Plan) {
        if let Some(report) = &mut self.0 {
            report.cut(plan);
        }
    }

    pub(super) fn settle(&mut self, outcome: &Outcome) {
        if let Some(report) = &mut self.0 {
            report.settle(outcome);
        }
    }

    /// Adds the report of another namespace.
    pub(super) fn add(&mut self, mut more: PassDetails) {
        let Some(report) = &mut self.0 else {
            *self = more;
            return;
        };
        for ((_, sum), (_, more)) in report.numbers().into_iter().zip(more.numbers()) {
            *sum += *more;
        }
        report.append(&more);
    }
}

impl Clone for PassDetails {
    fn clone(&self) -> Self {
        PassDetails(self.0.as_ref().map(|report| report.boxed()))
    }
}

impl PartialEq for PassDetails {
    fn eq(&self, other: &Self) -> bool {
        json!(self) == json!(other)
    }
}

impl Serialize for PassDetails {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().map_or_else(|| json!({}), |report| report.json()).serialize(serializer)
    }
}
