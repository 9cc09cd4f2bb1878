//! Which memories belong together by their vectors, and which of them stands for the others? The pass `cluster`.
//!
//! Clusters are those of the pass `vector-duplicates`, at a lower threshold. Of each the most important memory is the
//! representative. A member notes its representative in `cluster_id`; a memory that no cluster holds any more loses the note. If the policy
//! says so, members that add little to their representative go to limbo: those that are neither used much nor of use to a goal.
//! Then a representative stays one, whatever scores say later, because it stands for members that have gone.
//! Where a host distils clusters, what it makes of one takes the place of the members
//! ([`consolidate`](crate::hygiene::consolidate())).
//!
//! A plan searches the neighbours of every memory with a vector. So a sweep looks only where something has changed since a
//! look that found nothing to do ([`looks`](crate::hygiene::looks)), and a sweeper only while nobody calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::adjust::{Adjustment, Membership};
use crate::hygiene::clusters::{ClusterRow, Edges, Rules, Search, linked};
use crate::hygiene::goals::{Goals, Relevance, memory_importance};
use crate::hygiene::looks::Sight;
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, KeptApart, Plan, PruneReason, Pruning, Stop, told_apart};
use crate::hygiene::prune::is_left_alone;
use crate::hygiene::score::Worth;
use crate::hygiene::told::details;
use crate::hygiene::uniqueness::{uniqueness, vector_of};
use crate::hygiene::utility::utility_of;
use crate::ingest::Threshold;
use crate::model::{Access, MemoryId, Span, is_zero};
use crate::policy::{Metric, Policy};
use crate::record::{At, decode_access};
use crate::store::{Read, Rows, Table, Walk, keys};

/// How long members stay for their use without another look.
const FADING: Span = Span::from_hours(24);

/// The pass `cluster`.
pub(crate) struct Cluster;

/// Report of the pass `cluster`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterReport {
    /// Visible memories with a vector.
    pub memories_seen: u64,
    /// Namespaces that a sweep has not looked at, because nothing has changed there since a look that found nothing to do.
    #[serde(skip_serializing_if = "is_zero")]
    pub unchanged: u64,
    /// Clusters of two memories and more.
    pub clusters: u64,
    /// Members of them, their representatives included.
    pub members: u64,
    /// Memories that are of another cluster than before, or of none; 0 in a dry run.
    #[serde(skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Members that add little to their representative, if `cluster.prune` asks for them.
    #[serde(skip_serializing_if = "is_zero")]
    pub redundant: u64,
    /// Members that went to limbo; 0 in a dry run.
    #[serde(skip_serializing_if = "is_zero")]
    pub pruned: u64,
    /// Members that stay because they are pinned or locked.
    #[serde(skip_serializing_if = "is_zero")]
    pub protected: u64,
    /// Members that stay because they are used, or protected by an earlier use, or too young to have been used, or stand for
    /// members that have gone.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_use: u64,
    /// Members that stay because they matter to a goal, or because a goal of their agent waits for a vector.
    #[serde(skip_serializing_if = "is_zero")]
    pub for_goals: u64,
    /// Pairs that a guard kept apart.
    #[serde(skip_serializing_if = "is_zero")]
    pub kept_apart: u64,
    /// The first of these pairs, at most `collapse.max_samples`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<KeptApart>,
    /// The first clusters, at most `collapse.max_samples`, by their representatives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<ClusterSample>,
}

details!(ClusterReport {
    numbers {
        memories_seen "memories_seen", unchanged "unchanged", clusters "clusters", members "members", marked "marked",
        redundant "redundant", pruned "pruned", protected "protected", in_use "in_use",
        for_goals "for_goals", kept_apart "kept_apart"
    }
    lists { hints, samples }
    done { marked = mended, pruned = removed }
});

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSample {
    /// The member that stands for the others.
    pub representative_id: MemoryId,
    /// The other members, the most important first.
    pub member_ids: Vec<MemoryId>,
}

impl MaintenancePass for Cluster {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        if !input.is_named && !input.policy.cluster.enabled {
            return Ok(Some(Planned::actions(Plan::default(), 0, ClusterReport::default())));
        }
        let PlanInput { published, field, policy, .. } = input;
        let step = input.selection.step.filter(|_| policy.cluster.prune);
        let sight = Sight { rows: published.snapshot(), field, policy, step };
        // A hook can say something else each time.
        if !input.is_named && input.judge.is_none() && input.looks.stand(sight)? {
            let report = ClusterReport { unchanged: 1, ..ClusterReport::default() };
            return Ok(Some(Planned::actions(Plan::default(), 0, report)));
        }
        let Some(found) = Clustering::of(input, &mut *stop)? else { return Ok(None) };
        let mut report = found.report(input.policy);
        let Some(actions) = marks(input, &found, stop)? else { return Ok(None) };
        let mut plan = Plan { actions, ..Plan::default() };
        if input.policy.cluster.prune {
            let goals = Goals::read(input.published.snapshot(), input.field.ns)?;
            let redundant = Redundant { input, goals, report: &mut report }.of(&found)?;
            let gone: BTreeSet<MemoryId> = redundant.iter().map(|pruning| pruning.id).collect();
            // What goes gets no note: what undo brings back is as it was.
            plan.actions.retain(|action| !matches!(action, Action::Adjust { id, .. } if gone.contains(id)));
            plan.actions.extend(redundant.into_iter().map(Action::Prune));
        }
        (plan.hints, report.memories_seen) = (found.kept_apart, found.seen);
        if plan.actions.is_empty() {
            // A use fades with time, and then its member may go.
            let until = (report.in_use > 0).then(|| input.field.now.plus(FADING));
            input.looks.note(sight, until)?;
        }
        Ok(Some(Planned::actions(plan, report.memories_seen, report)))
    }

    fn waits_for_idle(&self, policy: &Policy) -> Option<Span> {
        Some(policy.cluster.idle_after)
    }
}

/// A member of a cluster.
pub(super) struct Member {
    pub(super) id: MemoryId,
    pub(super) version: u64,
    pub(super) protected: bool,
    /// Whether a caller set its end.
    pub(super) ends: bool,
    access: Access,
    agent: Option<String>,
    relevance: Relevance,
    /// The cosine to the representative; none of the representative, and of a member that is near to it through others only.
    cosine: Option<f32>,
    is_left_alone: bool,
}

/// The clusters of a field.
pub(super) struct Clustering {
    /// Visible memories with a vector.
    seen: u64,
    kept_apart: Vec<KeptApart>,
    /// By their representatives, which come first in their clusters.
    pub(super) clusters: Vec<Vec<Member>>,
}

impl Clustering {
    /// Searches the clusters of the visible memories. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn of(input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Self>> {
        let mut found = Clustering { seen: 0, kept_apart: Vec::new(), clusters: Vec::new() };
        let Some(threshold) = Threshold::new(Metric::Cosine, input.policy.cluster.cosine)? else {
            return Ok(Some(found));
        };
        let every_tier = Default::default();
        let rules = Rules {
            threshold,
            linkage: input.policy.dedup.linkage,
            size_min: input.policy.dedup.min_cluster_size.max(2) as usize,
            tiers: &every_tier,
            only_visible: true,
            nearest: Some(input.policy.sus.neighbours as usize),
        };
        let goals = Goals::read(input.published.snapshot(), input.field.ns)?;
        input.field.pass_over(goals.damaged());
        let mut search = Search::new(input, rules);
        let Some(indexes) = search.rows(stop)? else { return Ok(None) };
        for (index, rows) in indexes {
            let Some(edges) = search.edges(index, &rows, stop)? else { return Ok(None) };
            let mut scoring = Scoring { input, search: &search, goals: &goals };
            let Some(scored) = scoring.linked(&rows, &edges, stop)? else { return Ok(None) };
            found.take(&search, &scored, &rows, &edges);
        }
        (found.seen, found.kept_apart) = (search.seen.unwrap_or(0), search.kept_apart);
        found.clusters.sort_unstable_by_key(|cluster| cluster.first().map(|member| member.id));
        Ok(Some(found))
    }

    /// Makes the clusters of an index, the most important members first.
    fn take(&mut self, search: &Search<'_>, scored: &[Scored], rows: &[ClusterRow], edges: &Edges) {
        let order: Vec<u32> = scored.iter().map(|row| row.at).collect();
        let by_place: BTreeMap<u32, &Scored> = scored.iter().map(|row| (row.at, row)).collect();
        for places in search.clusters(&order, edges) {
            let Some(&first) = places.first() else { continue };
            let member = |at: &u32| {
                let (row, scored) = (rows.get(*at as usize)?, by_place.get(at)?);
                Some(Member {
                    id: row.id,
                    version: row.version,
                    protected: row.protected,
                    ends: row.ends,
                    access: scored.access.clone(),
                    agent: scored.agent.clone(),
                    relevance: scored.relevance,
                    cosine: edges.get(&(first.min(*at), first.max(*at))).copied(),
                    is_left_alone: scored.is_left_alone,
                })
            };
            self.clusters.push(places.iter().filter_map(member).collect());
        }
    }

    fn report(&self, policy: &Policy) -> ClusterReport {
        let (kept_apart, hints) = told_apart(&self.kept_apart, policy);
        let sample = |cluster: &Vec<Member>| {
            let (first, others) = cluster.split_first()?;
            let member_ids = others.iter().map(|member| member.id).collect();
            Some(ClusterSample { representative_id: first.id, member_ids })
        };
        let most = policy.collapse.max_samples as usize;
        ClusterReport {
            clusters: self.clusters.len() as u64,
            members: self.clusters.iter().map(|cluster| cluster.len() as u64).sum(),
            kept_apart,
            hints,
            samples: self.clusters.iter().filter_map(sample).take(most).collect(),
            ..ClusterReport::default()
        }
    }
}

/// What decides about the place of a row in its cluster.
struct Scored {
    at: u32,
    id: MemoryId,
    access: Access,
    agent: Option<String>,
    relevance: Relevance,
    /// The importance for the store (MIS).
    importance: f64,
    retention: f64,
    is_left_alone: bool,
}

/// Whether a memory stands for members that may have gone. It goes on to stand for them, however its score changes: its
/// place would otherwise pass from memory to memory, to one that is not near to the first members any more.
fn stands_for_others(access: &Access, policy: &Policy) -> bool {
    policy.cluster.prune && access.is_representative
}

/// Works out the scores of rows.
struct Scoring<'s> {
    input: PlanInput<'s>,
    search: &'s Search<'s>,
    goals: &'s Goals,
}

impl Scoring<'_> {
    /// The rows that have an edge, those that stand for others first, then of the highest MIS, then of the highest RetentionScore,
    /// then by id. None when `stop` ended it.
    fn linked(&mut self, rows: &[ClusterRow], edges: &Edges, stop: Stop<'_>) -> Result<Option<Vec<Scored>>> {
        let mut all = Vec::new();
        for at in linked(edges) {
            if stop(1) {
                return Ok(None);
            }
            let Some(row) = rows.get(at as usize) else { continue };
            all.push(self.of(at, row.id)?);
        }
        let stands = |row: &Scored| stands_for_others(&row.access, self.input.policy);
        all.sort_unstable_by(|a, b| {
            let by_score = stands(b).cmp(&stands(a)).then(b.importance.total_cmp(&a.importance));
            by_score.then(b.retention.total_cmp(&a.retention)).then(a.id.cmp(&b.id))
        });
        Ok(Some(all))
    }

    fn of(&self, at: u32, id: MemoryId) -> Result<Scored> {
        let PlanInput { published, field, policy, selection, judge, .. } = self.input;
        let (ns, now, rows) = (field.ns, field.now, published.snapshot());
        let vitals = self.search.vitals(id)?;
        let used = field.access(rows, id)?;
        // A row whose use can't be read may be in use.
        let is_left_alone =
            used.as_ref().is_none_or(|used| is_left_alone(&vitals, used, policy, now, selection.step));
        let access = used.unwrap_or_default();
        let agent = rows.content(ns, id)?.and_then(|content| content.agent_id);
        let vector = vector_of(published, ns, &vitals)?;
        let relevance = self.goals.relevance(agent.as_deref(), vector.as_ref());
        let relevance = self.goals.judged(judge, id, agent.as_deref(), relevance);
        // A row that has an edge was searched for already, so nearly all of them know it.
        let unique = match self.search.unlike.get(&id) {
            Some(unlike) => *unlike,
            None => uniqueness(published, ns, id, &vitals, policy, now)?,
        };
        Ok(Scored {
            at,
            id,
            importance: memory_importance(relevance.grs, unique, policy),
            retention: Worth::of(&vitals, &access, now).score(policy),
            is_left_alone,
            access,
            agent,
            relevance,
        })
    }
}

/// What each memory is to note of its cluster, where it notes something else. None when `stop` ended it.
fn marks(input: PlanInput<'_>, found: &Clustering, stop: Stop<'_>) -> Result<Option<Vec<Action>>> {
    let (field, rows) = (input.field, input.published.snapshot());
    let (mut noted, mut stopped) = (BTreeMap::<MemoryId, Membership>::new(), false);
    rows.walk(Table::Access, &Walk::prefix(&keys::ns(field.ns)), &mut |key, bytes| {
        if stop(1) {
            stopped = true;
            return Ok(ControlFlow::Break(()));
        }
        let keys::Vitals { id, .. } = keys::Vitals::read(Table::Access, key)?;
        let access = field.sound(decode_access(At::new(Table::Access.name(), key), bytes))?;
        let was = access.map(|access| Membership::of(&access)).filter(|was| *was != Membership::NONE);
        noted.extend(was.map(|was| (id, was)));
        Ok(ControlFlow::Continue(()))
    })?;
    if stopped {
        return Ok(None);
    }
    let mut actions = Vec::new();
    let mut mark = |id, version, to: Membership| {
        if noted.remove(&id).unwrap_or(Membership::NONE) != to {
            actions.push(Action::Adjust { id, version, by: Adjustment::Cluster(to) });
        }
    };
    for cluster in &found.clusters {
        let Some(first) = cluster.first() else { continue };
        for member in cluster {
            let stands = member.id == first.id || stands_for_others(&member.access, input.policy);
            let by = if stands { member.id } else { first.id };
            mark(member.id, member.version, Membership { cluster: Some(by), is_representative: stands });
        }
    }
    let lost = noted.into_iter().filter(|(_, was)| !(was.is_representative && input.policy.cluster.prune));
    for (id, _) in lost {
        let vitals = field.sound(rows.vitals(field.ns, id))?.flatten();
        if let Some(vitals) = vitals.filter(|vitals| vitals.times.visible_live(field.now)) {
            let by = Adjustment::Cluster(Membership::NONE);
            actions.push(Action::Adjust { id, version: vitals.version, by });
        }
    }
    Ok(Some(actions))
}

/// Looks for members that add little to their representatives.
struct Redundant<'s> {
    input: PlanInput<'s>,
    goals: Goals,
    report: &'s mut ClusterReport,
}

impl Redundant<'_> {
    fn of(mut self, found: &Clustering) -> Result<Vec<Pruning>> {
        let (rows, ns) = (self.input.published.snapshot(), self.input.field.ns);
        let mut redundant = Vec::new();
        for cluster in &found.clusters {
            let Some((first, others)) = cluster.split_first() else { continue };
            for member in others {
                // Near through others only: the representative does not say what it says.
                let Some(cosine) = member.cosine else { continue };
                // What was made from sources is found by them.
                if rows.sources(ns, member.id)?.is_empty() && self.may_go(member) {
                    let agent = self.input.hash_of(member.agent.as_deref());
                    let goals = Some(self.goals.stamp(rows, ns, agent)?);
                    let (id, version, access_seq) = (member.id, member.version, member.access.access_seq);
                    let reason = PruneReason::Redundant { by: first.id, cosine };
                    redundant.push(Pruning { id, version, access_seq, reason, goals });
                }
            }
        }
        Ok(redundant)
    }

    fn may_go(&mut self, member: &Member) -> bool {
        let policy = self.input.policy;
        let is_used = utility_of(&member.access, self.input.field.now, policy) >= policy.cluster.keep_mus;
        let Relevance { grs, is_stale, .. } = member.relevance;
        let (may_go, count) = if member.protected {
            (false, &mut self.report.protected)
        } else if member.is_left_alone || is_used || stands_for_others(&member.access, policy) {
            (false, &mut self.report.in_use)
        } else if is_stale || grs >= policy.prune.protect_goal {
            (false, &mut self.report.for_goals)
        } else {
            (true, &mut self.report.redundant)
        };
        *count += 1;
        may_go
    }
}
