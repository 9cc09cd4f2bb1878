//! Which rows say nearly the same, so that one of them can stand for the others? The pass `vector-duplicates`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::hygiene::clusters::{ClusterRow, Edges, Rules, Search, among, linked};
use crate::hygiene::joining::Joining;
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, KeptApart, Plan, Similar, Stop, told_apart};
use crate::hygiene::score::Worth;
use crate::hygiene::told::details;
use crate::ingest::Threshold;
use crate::limits::TAGS_MAX;
use crate::model::{MemoryId, Pass, is_zero};
use crate::policy::Linkage;
use crate::store::IndexId;

/// Report of the pass `vector-duplicates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DedupReport {
    /// Namespaces with enough current rows for a cluster.
    pub namespaces: u64,
    /// Current rows of them with a vector, of the tiers asked for.
    pub memories_seen: u64,
    /// Clusters in which something can go, within the destruction budget.
    pub clusters_found: u64,
    /// Rows that another one represents; in a dry run those that would be.
    pub tombstoned: u64,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The clusters, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<DedupAction>,
    /// Pairs that a guard kept apart.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_apart: u64,
    /// The first of these pairs, at most `collapse.max_samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<KeptApart>,
}

details!(DedupReport {
    numbers {
        namespaces "namespaces", memories_seen "memories_seen", clusters_found "clusters_found",
        tombstoned "tombstoned", kept_apart "kept_apart"
    }
    lists { actions, hints }
    flags { dry_run = dry_run }
    cut { cut }
});

/// Leaves out the clusters, and members of the last one, that a plan has no more.
fn cut(report: &mut DedupReport, plan: &Plan) {
    let mut left: BTreeMap<MemoryId, usize> = BTreeMap::new();
    for action in &plan.actions {
        if let Action::Supersede { by, members } = action {
            left.insert(*by, members.len());
        }
    }
    report.actions.retain_mut(|action| {
        let kept = left.get(&action.representative_id).copied().unwrap_or(0);
        action.tombstoned_ids.truncate(kept);
        kept > 0
    });
    report.clusters_found = report.actions.len() as u64;
    report.tombstoned = left.values().map(|members| *members as u64).sum();
}

impl DedupReport {
    /// Counts a cluster of `size` members, of which some are to be represented.
    fn count(&mut self, representative_id: MemoryId, members: &[Similar], size: usize) {
        self.clusters_found += 1;
        self.tombstoned += members.len() as u64;
        let tombstoned_ids = members.iter().map(|member| member.id).collect();
        self.actions.push(DedupAction { representative_id, tombstoned_ids, size: size as u64 });
    }
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DedupAction {
    /// The row that stays.
    pub representative_id: MemoryId,
    /// The rows that it represents.
    pub tombstoned_ids: Vec<MemoryId>,
    /// Members, those that stay as well.
    pub size: u64,
}

/// The pass `vector-duplicates`.
pub(crate) struct VectorDuplicates;

impl MaintenancePass for VectorDuplicates {
    fn plan(&self, input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<Planned>> {
        let found = plan(input, stop)?;
        Ok(found.map(|(plan, report)| Planned::actions(plan, report.memories_seen, report)))
    }

    /// A superseder of a cluster may have been one that is gone.
    fn followed_by(&self) -> Option<Pass> {
        Some(Pass::Supersession)
    }
}

/// Plans the clusters of a field. None when `stop` ended it.
///
/// # Errors
/// `Invalid` for a similarity of NaN or more than 1; damage.
fn plan(input: PlanInput<'_>, stop: Stop<'_>) -> Result<Option<(Plan, DedupReport)>> {
    let dedup = &input.policy.dedup;
    let mut report = DedupReport { dry_run: true, ..DedupReport::default() };
    let mut plan = Plan::default();
    let Some(threshold) = Threshold::new(dedup.metric, dedup.similarity)? else {
        return Ok(Some((plan, report)));
    };
    let rules = Rules {
        threshold,
        linkage: dedup.linkage,
        size_min: dedup.min_cluster_size.max(2) as usize,
        tiers: &input.selection.tiers,
        only_visible: false,
        nearest: None,
    };
    let mut search = Search::new(input, rules);
    let Some(indexes) = search.rows(stop)? else { return Ok(None) };
    (report.namespaces, report.memories_seen) = (u64::from(search.seen.is_some()), search.seen.unwrap_or(0));
    for (index, rows) in indexes {
        let Some(edges) = search.edges(index, &rows, stop)? else { return Ok(None) };
        let order = order(input, &search, &rows, &linked(&edges))?;
        for cluster in search.clusters(&order, &edges) {
            let Some(groups) = joining(input, &mut search, &rows, &edges, cluster, stop)? else {
                return Ok(None);
            };
            for group in groups {
                let found = similar(&search, index, &rows, &edges, &group)?;
                if let Some((by, members)) = found.filter(|(_, members)| !members.is_empty()) {
                    report.count(by, &members, group.len());
                    plan.actions.push(Action::Supersede { by, members });
                }
            }
        }
    }
    plan.hints = search.kept_apart;
    plan.actions.sort_by_key(|action| match action {
        Action::Supersede { by, .. } => *by,
        other => unreachable!("a cluster supersedes, it does not {other:?}"),
    });
    (report.kept_apart, report.hints) = told_apart(&plan.hints, input.policy);
    report.actions.sort_by_key(|action| action.representative_id);
    Ok(Some((plan, report)))
}

/// The members of a cluster, apart where callers have set ends that can't be one, or where one row can't have their tags. What can't go into the first member may go
/// together, if it makes a cluster of its own. None when `stop` ended it.
fn joining(
    input: PlanInput<'_>,
    search: &mut Search<'_>,
    rows: &[ClusterRow],
    edges: &Edges,
    cluster: Vec<u32>,
    stop: Stop<'_>,
) -> Result<Option<Vec<Vec<u32>>>> {
    let row_of = |at: u32| rows.get(at as usize);
    let members = cluster.iter().filter_map(|at| row_of(*at));
    if !members.clone().any(|row| row.ends) && search.tags(members.map(|row| row.id))? <= TAGS_MAX {
        return Ok(Some(vec![cluster]));
    }
    let dedup = &input.policy.dedup;
    let (mut groups, mut open) = (Vec::new(), vec![cluster]);
    while let Some(mut cluster) = open.pop() {
        // What is protected stays, so its end moves no other.
        let is_protected = |at: &mut u32| row_of(*at).is_some_and(|row| row.protected);
        let protected: Vec<u32> = cluster.extract_if(1.., is_protected).collect();
        let members = cluster.into_iter().filter_map(|at| Some((at, row_of(at)?.id)));
        let snapshot = &**input.published.snapshot();
        let Some(mut joining) = Joining::read(snapshot, input.field, members, |(_, id)| *id, stop)? else {
            return Ok(None);
        };
        let places = |members: Vec<(u32, MemoryId)>| members.into_iter().map(|(at, _)| at).collect();
        let mut next = || joining.next_group().map(places);
        groups.extend(next().map(|group: Vec<u32>| [group, protected].concat()));
        match dedup.linkage {
            // One leads to another through whatever the cluster has.
            Linkage::Chain => groups.extend(std::iter::from_fn(next)),
            Linkage::Representative => {
                let apart: Vec<u32> = places(joining.left());
                open.extend(search.clusters(&apart, &among(edges, &apart)));
            }
        }
    }
    groups.retain(|group: &Vec<u32>| group.len() >= dedup.min_cluster_size.max(2) as usize);
    Ok(Some(groups))
}

/// The rows that have an edge, those that are worth the most first.
fn order(
    input: PlanInput<'_>,
    search: &Search<'_>,
    rows: &[ClusterRow],
    linked: &BTreeSet<u32>,
) -> Result<Vec<u32>> {
    let (field, snapshot) = (input.field, input.published.snapshot());
    let mut order = Vec::with_capacity(linked.len());
    for &at in linked {
        let Some(row) = rows.get(at as usize) else { continue };
        let access = field.access(snapshot, row.id)?.unwrap_or_default();
        let score = Worth::of(&search.vitals(row.id)?, &access, field.now).score(input.policy);
        order.push((score, *row, at));
    }
    order.sort_by(|(a_score, a, _), (b_score, b, _)| {
        let newest = b.updated_at.cmp(&a.updated_at).then(b.created_at.cmp(&a.created_at));
        b_score.total_cmp(a_score).then(newest).then(a.id.cmp(&b.id))
    });
    Ok(order.into_iter().map(|(_, _, at)| at).collect())
}

/// The first member, and those of the others that are not protected and were not made from sources, with their scores. What was made
/// from sources is found by them, so no other memory can stand for it.
fn similar(
    search: &Search<'_>,
    index: IndexId,
    rows: &[ClusterRow],
    edges: &Edges,
    cluster: &[u32],
) -> Result<Option<(MemoryId, Vec<Similar>)>> {
    let mut members = cluster.iter().filter_map(|at| Some((*at, rows.get(*at as usize)?)));
    let Some((first, representative)) = members.next() else { return Ok(None) };
    let mut similar = Vec::with_capacity(cluster.len());
    for (at, row) in members.filter(|(_, row)| !row.protected) {
        if search.has_sources(row.id)? {
            continue;
        }
        let score = match edges.get(&(first.min(at), first.max(at))) {
            Some(score) => *score,
            None => search.score_between(index, representative, row)?,
        };
        similar.push(Similar { id: row.id, version: row.version, score, visible: row.visible });
    }
    Ok(Some((representative.id, similar)))
}
