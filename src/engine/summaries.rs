//! Summaries in a sweep: whoever summarizes for the host is asked in each namespace whose time has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::engine::database::Database;
use crate::engine::deadline::answered_within;
use crate::engine::gc_run::{GcRunOptions, GcRunReport};
use crate::engine::namespace::Namespace;
use crate::error::{Error, Result};
use crate::model::{NamespaceName, Span, Time};
use crate::store::PlanRows;
use crate::summary::{Fault, InputPack, Summarizer};

/// What a sweep did about the summaries of one namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweptSummaries {
    /// The namespace.
    pub namespace: NamespaceName,
    /// What the run came to; none where it failed as a whole.
    pub report: Option<GcRunReport>,
    /// What went wrong with the run as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A summarizer of the host in a sweep: each answer has a deadline, and none is waited for when the sweeper stops.
struct Awaited {
    summarizer: Arc<dyn Summarizer>,
    deadline: Span,
    stop: Arc<AtomicBool>,
    /// Answers in a row that did not come in time.
    late: AtomicU32,
}

/// Late answers in a row after which a sweep asks no more. The stages behind this one wait as long as it does.
const LATE_MAX: u32 = 3;

impl Awaited {
    /// Whether the summarizer seems to answer nobody.
    fn is_lost(&self) -> bool {
        self.late.load(Ordering::Relaxed) >= LATE_MAX
    }

    fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Summarizer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (summarizer, begun) = (Arc::clone(&self.summarizer), Instant::now());
        let answer = answered_within(self.deadline, &self.stop, move || ask(summarizer.as_ref()));
        match answer.is_err() && begun.elapsed() >= Duration::from(self.deadline) {
            true => self.late.fetch_add(1, Ordering::Relaxed),
            false => self.late.swap(0, Ordering::Relaxed),
        };
        answer.map_err(|why| Error::Conflict { what: "a summary".to_owned(), why })
    }
}

impl Summarizer for Awaited {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let pack = pack.clone();
        self.ask(move |summarizer| summarizer.summarize(&pack))
    }

    fn group_tokens(&self) -> Option<u64> {
        self.summarizer.group_tokens()
    }

    fn repair(&self, pack: &InputPack, answer: &str, faults: &[Fault]) -> Result<Option<String>> {
        let (pack, answer, faults) = (pack.clone(), answer.to_owned(), faults.to_vec());
        self.ask(move |summarizer| summarizer.repair(&pack, &answer, &faults))
    }
}

impl Database {
    /// Summarizes in each namespace in which no plan of summaries was made within `gc.interval`, within the budget of a sweep. A namespace that fails does not
    /// keep the next one from its turn.
    ///
    /// # Errors
    /// `Corrupted`, `Closed`, where the namespaces can't be read.
    pub(super) fn summarize_due(
        &self,
        summarizer: &Arc<dyn Summarizer>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<SweptSummaries>> {
        let gc = self.inner.in_force().policy.gc.clone();
        let (summarizer, stopped) = (Arc::clone(summarizer), Arc::clone(stop));
        let late = AtomicU32::new(0);
        let awaited = Awaited { summarizer, deadline: gc.deadline, stop: stopped, late };
        let mut all = Vec::new();
        for (namespace, _) in self.tenants(None)? {
            if stop.load(Ordering::Relaxed) || awaited.is_lost() {
                break;
            }
            let of = self.namespace(namespace.clone())?;
            let done = match of.is_due(gc.interval) {
                Ok(false) => continue,
                Ok(true) => of.summarize_within_budget(&awaited, stop),
                Err(why) => Err(why),
            };
            let (report, why) = match done {
                Ok(report) => (Some(report), None),
                Err(why) => {
                    tracing::warn!(%namespace, %why, "a sweep can't summarize");
                    (None, Some(why.to_string()))
                }
            };
            all.push(SweptSummaries { namespace, report, why });
        }
        Ok(all)
    }
}

impl Namespace {
    /// Summarizes until nothing is left to do, the next group would let more memories go than one sweep may, or the summarizer does
    /// not answer any more.
    fn summarize_within_budget(&self, summarizer: &Awaited, stop: &AtomicBool) -> Result<GcRunReport> {
        let policy = &self.db.inner.in_force().policy;
        let budget = self.gc_read(|_, ns, _| self.db.inner.budget_of(ns, policy))?;
        // Without the sources' removal, nothing is taken from the budget.
        let may_destroy = budget.filter(|_| policy.gc.delete_sources).unwrap_or(u64::MAX);
        let goes_on = &mut |_: &GcRunReport| !stop.load(Ordering::Relaxed) && !summarizer.is_lost();
        self.gc_run_while(summarizer, &GcRunOptions::default(), may_destroy, goes_on)
    }

    /// Whether the last plan of summaries was made so long ago, or none was made.
    fn is_due(&self, interval: Span) -> Result<bool> {
        let due = self.gc_read(|rows, ns, now| {
            let last = rows.gc_plans(ns)?.into_iter().map(|(_, row)| row.created_ms).max();
            Ok(last.is_none_or(|last| now >= Time::from_millis(last).plus(interval)))
        })?;
        Ok(due.unwrap_or(false))
    }
}
