//! Pruning without doing it: which memories would go, and what several policies would cost.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::engine::namespace::Namespace;
use crate::error::Result;
use crate::hygiene::{
    Field, Judge, PlanInput, Planned, PruneReport, PruneTarget, Selection, implementation, pruned_in,
};
use crate::index::Published;
use crate::model::{MemoryId, Pass, Query, Time};
use crate::policy::Policy;
use crate::recall::Reader;
use crate::store::{NsId, Rows};

/// What a policy would prune, and what searches would miss then. Nothing is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PruneSimulation {
    /// Memories that would go, however many the destruction budget allows at a time.
    pub rows: u64,
    /// Bytes of their texts.
    pub bytes: u64,
    /// How many of them are too old.
    pub by_age: u64,
    /// How many of them score too low.
    pub by_score: u64,
    /// The queries that find something now.
    pub probes: u64,
    /// Hits of these queries now.
    pub hits_before: u64,
    /// Hits of these queries that would stay.
    pub hits_after: u64,
    /// The share of the hits that would stay; none where no query finds anything.
    pub recall: Option<f64>,
}

impl<Of> Namespace<Of> {
    /// What each of several policies would prune now, on the same state, as if `prune.enabled` was true, and which share of the
    /// hits of some queries would stay. Nothing is written, and the queries count as no use. `step` is that of the host, if
    /// it counts steps.
    ///
    /// ```
    /// use oubliette::policy::{Policy, Syntax};
    /// use oubliette::{Draft, Kind, Query};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let old = Draft::new("Chapter 1: Ann moved").kind(Kind::ChapterSummary);
    /// team.add(old.created_at("2020-01-01T00:00:00Z".parse()?))?;
    /// let keeping = Policy::parse("prune.l2.max_age = '36525d'\nprune.l2.mus = 0", Syntax::Toml)?;
    /// let both = team.compare_pruning(&[Policy::default(), keeping], &[Query::text("Ann")], None)?;
    /// assert_eq!((both[0].rows, both[0].recall), (1, Some(0.0)));
    /// assert_eq!((both[1].rows, both[1].recall), (0, Some(1.0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Policy` for a value out of its bounds; those of a search; `Corrupted`, `Closed`.
    pub fn compare_pruning(
        &self,
        policies: &[Policy],
        probes: &[Query],
        step: Option<u64>,
    ) -> Result<Vec<PruneSimulation>> {
        policies.iter().try_for_each(Policy::validate)?;
        self.read(|published, now| {
            let Some(ns) = self.number(published)? else {
                return Ok(vec![PruneSimulation::default(); policies.len()]);
            };
            let found = self.found(published, now, probes)?;
            let simulate = |policy: &Policy| {
                let mut policy = policy.clone();
                policy.prune.enabled = true;
                let selection = Selection { step, ..Selection::default() };
                let (gone, report) = self.would_prune(published, ns, now, &policy, &selection)?;
                Ok(simulated(&gone.into_iter().collect(), &report, &found))
            };
            policies.iter().map(simulate).collect()
        })
    }

    /// The memories of a kind that score lowest, as many as there are more than `target.count`, in the order in which they
    /// would go: fewer where the rest is protected. Nothing is written.
    ///
    /// ```
    /// use oubliette::maintain::PruneTarget;
    /// use oubliette::{Draft, Kind};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let first = team.add(Draft::new("Ann moved").kind(Kind::Episode))?.id;
    /// let pinned = team.add(Draft::new("Bob married").kind(Kind::Episode).tag("pinned"))?.id;
    /// assert_eq!(team.select_prune(&PruneTarget::new(Kind::Episode, 1), None)?, [first]);
    /// assert_eq!(team.select_prune(&PruneTarget::new(Kind::Episode, 0), None)?, [first]);
    /// # let _ = pinned;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupted`, `Closed`.
    pub fn select_prune(&self, target: &PruneTarget, step: Option<u64>) -> Result<Vec<MemoryId>> {
        let in_force = self.db.inner.in_force();
        self.read(|published, now| {
            let Some(ns) = self.number(published)? else { return Ok(Vec::new()) };
            let selection = Selection { prune: Some(target.clone()), step, ..Selection::default() };
            Ok(self.would_prune(published, ns, now, &in_force.policy, &selection)?.0)
        })
    }

    fn number(&self, published: &Published) -> Result<Option<NsId>> {
        let row = published.snapshot().namespace(self.name.as_str())?;
        Ok(row.filter(|row| !row.dropping).map(|row| NsId(row.number)))
    }

    /// The hits of each query.
    fn found(&self, published: &Published, now: Time, probes: &[Query]) -> Result<Vec<Vec<MemoryId>>> {
        let inner = &self.db.inner;
        let in_force = inner.in_force();
        let reader = Reader::open(published, &self.name, &inner.secret, now)?;
        let of = |query: &Query| {
            let query = inner.with_vector(published, query)?.query;
            let hits = reader.search(&query, &in_force.policy.recall)?.hits;
            Ok(hits.into_iter().map(|hit| hit.id).collect())
        };
        probes.iter().map(of).collect()
    }

    /// What the pass would do, in its order.
    fn would_prune(
        &self,
        published: &Published,
        ns: NsId,
        now: Time,
        policy: &Policy,
        selection: &Selection,
    ) -> Result<(Vec<MemoryId>, PruneReport)> {
        let noted = Arc::clone(&self.db.inner.accesses);
        let field = Field::new(ns, now, noted);
        let asking = self.db.inner.asking(published, &self.name, now)?;
        let judge = asking.as_ref().map(|asking| asking as &dyn Judge);
        let (namespace, field, looks) = (&self.name, &field, &self.db.inner.looks);
        let (is_named, secret) = (true, &self.db.inner.secret);
        let input =
            PlanInput { published, namespace, field, secret, policy, selection, is_named, judge, looks };
        match implementation(Pass::Prune).plan(input, &mut |_| false)? {
            Some(Planned::Actions { plan, details, .. }) => {
                let report = details.get::<PruneReport>().cloned().unwrap_or_default();
                Ok((pruned_in(&plan), report))
            }
            Some(Planned::Jobs(_)) | None => unreachable!("the pass plans actions, and nothing stops it"),
        }
    }
}

fn simulated(gone: &BTreeSet<MemoryId>, report: &PruneReport, found: &[Vec<MemoryId>]) -> PruneSimulation {
    let (mut before, mut after) = (0, 0);
    for hits in found {
        before += hits.len() as u64;
        after += hits.iter().filter(|id| !gone.contains(id)).count() as u64;
    }
    PruneSimulation {
        rows: gone.len() as u64,
        bytes: report.bytes,
        by_age: report.by_age,
        by_score: report.by_score,
        probes: found.iter().filter(|hits| !hits.is_empty()).count() as u64,
        hits_before: before,
        hits_after: after,
        recall: (before > 0).then(|| after as f64 / before as f64),
    }
}
