//! Which rows say nearly the same by their vectors? The pass `vector-duplicates`.
//!
//! For each row the nearest of its index are searched, for a block of rows at once. Pairs at the threshold, of equal kind
//! and past the guards are edges; clusters are made of them, each with the row that is worth the most as its
//! representative. Kept in memory: an entry of fixed width for each row with a vector, and at most `dedup.neighbours` edges
//! a row. Texts are read for pairs at the threshold only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hygiene::pass::{MaintenancePass, PlanInput, Planned};
use crate::hygiene::plan::{Action, Field, KeptApart, Page, Pages, Plan, Similar, Stop, told_apart};
use crate::hygiene::score::Worth;
use crate::hygiene::told::{details, is_zero};
use crate::index::{Published, near_many};
use crate::ingest::{Threshold, is_record_of_its_own};
use crate::model::{Kind, MemoryId, Pass, Tier, Time, Vitals};
use crate::policy::{Linkage, Policy};
use crate::store::{IndexId, PartId, Rows, Snapshot, SpaceId};
use crate::text::{Guards, Profile};
use crate::vector::{UnitVector, dot_f32};

/// Rows whose neighbours are searched together.
const ANCHORS_PER_BLOCK: usize = 1_024;
/// Rows of a page.
const PAGE: usize = 4_096;
/// Neighbours of a row where `dedup.neighbours` is 0.
const NEIGHBOURS_DEFAULT: usize = 20;
/// Texts that are kept as the guards see them.
const PROFILES_MAX: usize = 4_096;

/// Report of the pass `vector-duplicates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DedupReport {
    /// Namespaces with enough current rows for a cluster.
    pub namespaces: u64,
    /// Current rows of them with a vector, of the tiers asked for.
    pub memories_seen: u64,
    /// Clusters in which something can go.
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
});

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
    let PlanInput { published, field, policy, selection, .. } = input;
    let mut report = DedupReport { dry_run: true, ..DedupReport::default() };
    let Some(threshold) = Threshold::new(policy.dedup.metric, policy.dedup.similarity)? else {
        return Ok(Some((Plan::default(), report)));
    };
    let mut search = Search {
        published,
        field,
        policy,
        tiers: &selection.tiers,
        threshold,
        guards: Guards::new(&policy.guards, &policy.collapse),
        texts: HashMap::new(),
        plan: Plan::default(),
        report: &mut report,
    };
    let Some(indexes) = search.rows(stop)? else { return Ok(None) };
    for (index, rows) in indexes {
        let Some(edges) = search.edges(index, &rows, stop)? else { return Ok(None) };
        search.cluster(index, &rows, &edges)?;
    }
    let mut plan = search.plan;
    plan.actions.sort_by_key(|action| match action {
        Action::Supersede { by, .. } => *by,
        other => unreachable!("a cluster supersedes, it does not {other:?}"),
    });
    (report.kept_apart, report.hints) = told_apart(&plan.hints, policy);
    report.actions.sort_by_key(|action| action.representative_id);
    Ok(Some((plan, report)))
}

/// What is kept of a row.
#[derive(Clone, Copy, Debug)]
struct ClusterRow {
    id: MemoryId,
    slot: u32,
    kind_code: u8,
    version: u64,
    updated_at: Time,
    created_at: Time,
    protected: bool,
    visible: bool,
}

/// Two rows that say nearly the same, by their positions, the smaller first.
type Edges = BTreeMap<(u32, u32), f32>;

/// The text of a row as the guards see it, and its kind.
struct Said {
    profile: Profile,
    kind: Kind,
    /// Whether it is united with no other row.
    is_of_its_own: bool,
}

/// A plan under way.
struct Search<'s> {
    published: &'s Published,
    field: &'s Field,
    policy: &'s Policy,
    /// Only rows of these; empty: all.
    tiers: &'s BTreeSet<Tier>,
    threshold: Threshold,
    guards: Guards,
    texts: HashMap<MemoryId, Rc<Said>>,
    plan: Plan,
    report: &'s mut DedupReport,
}

impl<'s> Search<'s> {
    fn snapshot(&self) -> &'s Snapshot {
        self.published.snapshot()
    }

    /// The current rows with a vector, by index, in the order of their ids.
    fn rows(&mut self, stop: Stop<'_>) -> Result<Option<BTreeMap<IndexId, Vec<ClusterRow>>>> {
        let mut indexes: BTreeMap<IndexId, Vec<ClusterRow>> = BTreeMap::new();
        let mut pages = Pages::new(self.field, PAGE);
        let (mut current, mut seen) = (0, 0);
        loop {
            let page = match pages.turn(self.snapshot(), stop, |row| row.times.is_current(self.field.now))? {
                Page::Rows(page) => page,
                Page::End => break,
                Page::Stopped => return Ok(None),
            };
            current += page.len();
            for (id, vitals) in page {
                let Some(slot) = vitals.place.slot.filter(|_| self.takes(vitals.tier)) else { continue };
                seen += 1;
                if !self.is_exempt(&vitals) {
                    let (part, space) = (PartId(vitals.place.partition), SpaceId(vitals.place.space));
                    let index = IndexId { ns: self.field.ns, part, space };
                    indexes.entry(index).or_default().push(self.row(id, slot, &vitals));
                }
            }
        }
        if current < self.size_min() {
            return Ok(Some(BTreeMap::new()));
        }
        (self.report.namespaces, self.report.memories_seen) = (1, seen);
        Ok(Some(indexes))
    }

    /// Least members of a cluster; 0 and 1 count as 2.
    fn size_min(&self) -> usize {
        self.policy.dedup.min_cluster_size.max(2) as usize
    }

    /// Neighbours that are searched for each row.
    fn neighbours(&self) -> usize {
        match self.policy.dedup.neighbours as usize {
            0 => NEIGHBOURS_DEFAULT,
            neighbours => neighbours,
        }
    }

    fn takes(&self, tier: Tier) -> bool {
        self.tiers.is_empty() || self.tiers.contains(&tier)
    }

    fn row(&self, id: MemoryId, slot: u32, vitals: &Vitals) -> ClusterRow {
        ClusterRow {
            id,
            slot,
            kind_code: vitals.kind_code,
            version: vitals.version,
            updated_at: vitals.updated_at,
            created_at: vitals.created_at,
            protected: vitals.is_protected(),
            visible: vitals.times.visible_live(self.field.now),
        }
    }

    /// Whether a kind that has no name of its own is never deduplicated; custom ones are asked with their text.
    fn is_exempt(&self, vitals: &Vitals) -> bool {
        Kind::from_code(vitals.kind_code, None).is_some_and(|kind| self.exempts(&kind))
    }

    fn exempts(&self, kind: &Kind) -> bool {
        let name = kind.to_string();
        self.policy.dedup.exempt_kinds.contains(&name)
    }

    /// The pairs of an index that are one.
    fn edges(&mut self, index: IndexId, rows: &[ClusterRow], stop: Stop<'_>) -> Result<Option<Edges>> {
        let at: HashMap<MemoryId, u32> = rows.iter().map(|row| row.id).zip(0..).collect();
        let dim = self.published.dim(index.space)?;
        let (least, most) = (self.threshold.least_cosine(), self.neighbours() + 1);
        let mut edges = Edges::new();
        let mut compared = BTreeSet::new();
        for (block, first) in rows.chunks(ANCHORS_PER_BLOCK).zip((0..).step_by(ANCHORS_PER_BLOCK)) {
            if stop(block.len() as u64) {
                return Ok(None);
            }
            let mut vectors = Vec::with_capacity(block.len());
            for (anchor, row) in (first..).zip(block) {
                let vector = self.field.sound(self.vector(index, dim, row.slot))?;
                vectors.extend(vector.map(|vector| (anchor, row, vector)));
            }
            let asked: Vec<&UnitVector> = vectors.iter().map(|(_, _, vector)| vector).collect();
            let found = near_many(self.published, index, &asked, least, most, self.field.now)?;
            compared.clear();
            for ((anchor, row, _), hits) in vectors.iter().zip(found) {
                let anchor = *anchor;
                let others = hits.iter().filter(|hit| hit.id != row.id).take(self.neighbours());
                for hit in others {
                    let Some(other) = at.get(&hit.id).copied() else { continue };
                    let pair = (anchor.min(other), anchor.max(other));
                    let Some(score) = self.threshold.reached_by(hit.score) else { continue };
                    if edges.contains_key(&pair) || !compared.insert(pair) {
                        continue;
                    }
                    let (Some(a), Some(b)) = (rows.get(pair.0 as usize), rows.get(pair.1 as usize)) else {
                        continue;
                    };
                    if stop(1) {
                        return Ok(None);
                    }
                    if self.are_one(a, b)? {
                        edges.insert(pair, score);
                    }
                }
            }
        }
        self.plan.hints.sort_unstable_by_key(|hint| (hint.id, hint.near));
        self.plan.hints.dedup();
        Ok(Some(edges))
    }

    fn vector(&self, index: IndexId, dim: usize, slot: u32) -> Result<UnitVector> {
        let mut values = Vec::with_capacity(dim);
        let there = self.snapshot().vector(index, dim, slot, &mut values)?;
        UnitVector::from_stored(values).filter(|_| there).ok_or_else(|| {
            let key = crate::store::keys::index(index);
            Error::corrupted("vector", &key, format!("slot {slot} of a memory has no vector"))
        })
    }

    /// Whether a pair at the threshold may be united: both of one kind, neither a record of its own, and both pass the
    /// guards. Where a guard fails it is told.
    fn are_one(&mut self, a: &ClusterRow, b: &ClusterRow) -> Result<bool> {
        if a.kind_code != b.kind_code {
            return Ok(false);
        }
        let (one, other) = (self.said(a.id), self.said(b.id));
        let (Some(one), Some(other)) = (self.field.sound(one)?, self.field.sound(other)?) else {
            return Ok(false);
        };
        let is_of_its_own = one.is_of_its_own || other.is_of_its_own;
        if one.kind != other.kind || is_of_its_own || self.exempts(&one.kind) {
            return Ok(false);
        }
        let failing = one.profile.failing(&other.profile, &self.guards);
        if let Some(guard) = failing {
            self.plan.hints.push(KeptApart { id: b.id, near: a.id, guard });
        }
        Ok(failing.is_none())
    }

    fn said(&mut self, id: MemoryId) -> Result<Rc<Said>> {
        if let Some(said) = self.texts.get(&id) {
            return Ok(Rc::clone(said));
        }
        if self.texts.len() >= PROFILES_MAX {
            self.texts.clear();
        }
        let (vitals, content) = match (self.vitals(id)?, self.snapshot().content(self.field.ns, id)?) {
            (vitals, Some(content)) => (vitals, content),
            _ => return Err(Error::corrupted("memory", id.as_bytes(), "vitals without content")),
        };
        let profile = self.guards.profile(&content.text);
        let (kind, is_of_its_own) = (content.kind(vitals.kind_code), is_record_of_its_own(&vitals, &content));
        let said = Rc::new(Said { profile, kind, is_of_its_own });
        self.texts.insert(id, Rc::clone(&said));
        Ok(said)
    }

    fn vitals(&self, id: MemoryId) -> Result<Vitals> {
        let found = self.snapshot().vitals(self.field.ns, id)?;
        found.ok_or_else(|| Error::corrupted("vitals", id.as_bytes(), "a row of the walk is gone"))
    }

    /// Makes the clusters of an index of its edges.
    fn cluster(&mut self, index: IndexId, rows: &[ClusterRow], edges: &Edges) -> Result<()> {
        let order = self.order(rows, edges)?;
        let clusters = match self.policy.dedup.linkage {
            Linkage::Representative => by_representative(&order, edges, self.size_min()),
            Linkage::Chain => by_chain(&order, edges, self.size_min()),
        };
        for cluster in clusters {
            self.supersede(index, rows, edges, &cluster)?;
        }
        Ok(())
    }

    /// The rows that have an edge, those that are worth the most first.
    fn order(&self, rows: &[ClusterRow], edges: &Edges) -> Result<Vec<u32>> {
        let linked: BTreeSet<u32> = edges.keys().flat_map(|(a, b)| [*a, *b]).collect();
        let mut order = Vec::with_capacity(linked.len());
        for at in linked {
            let Some(row) = rows.get(at as usize) else { continue };
            let access = self.field.access(self.snapshot(), row.id)?;
            let score = Worth::of(&self.vitals(row.id)?, &access, self.field.now).score(self.policy);
            order.push((score, *row, at));
        }
        order.sort_by(|(a_score, a, _), (b_score, b, _)| {
            let newest = b.updated_at.cmp(&a.updated_at).then(b.created_at.cmp(&a.created_at));
            b_score.total_cmp(a_score).then(newest).then(a.id.cmp(&b.id))
        });
        Ok(order.into_iter().map(|(_, _, at)| at).collect())
    }

    /// Members but the first are superseded by it; protected ones stay.
    fn supersede(
        &mut self,
        index: IndexId,
        rows: &[ClusterRow],
        edges: &Edges,
        cluster: &[u32],
    ) -> Result<()> {
        let mut members = cluster.iter().filter_map(|at| Some((*at, rows.get(*at as usize)?)));
        let Some((first, representative)) = members.next() else { return Ok(()) };
        let mut similar = Vec::with_capacity(cluster.len());
        for (at, row) in members.filter(|(_, row)| !row.protected) {
            let score = match edges.get(&(first.min(at), first.max(at))) {
                Some(score) => *score,
                None => self.score_between(index, representative, row)?,
            };
            similar.push(Similar { id: row.id, version: row.version, score, visible: row.visible });
        }
        if similar.is_empty() {
            return Ok(());
        }
        self.report.clusters_found += 1;
        self.report.tombstoned += similar.len() as u64;
        self.report.actions.push(DedupAction {
            representative_id: representative.id,
            tombstoned_ids: similar.iter().map(|member| member.id).collect(),
            size: cluster.len() as u64,
        });
        self.plan.actions.push(Action::Supersede { by: representative.id, members: similar });
        Ok(())
    }

    /// The score of two members of a chain that are no neighbours.
    fn score_between(&self, index: IndexId, a: &ClusterRow, b: &ClusterRow) -> Result<f32> {
        let dim = self.published.dim(index.space)?;
        let (a, b) = (self.vector(index, dim, a.slot)?, self.vector(index, dim, b.slot)?);
        Ok(self.threshold.score_of(dot_f32(a.as_slice(), b.as_slice())))
    }
}

/// Each row that no other has taken takes its neighbours that none has taken, in the order of their worth.
fn by_representative(order: &[u32], edges: &Edges, size_min: usize) -> Vec<Vec<u32>> {
    let rank: HashMap<u32, usize> = order.iter().copied().zip(0..).collect();
    let mut near: HashMap<u32, Vec<u32>> = HashMap::with_capacity(order.len());
    for (a, b) in edges.keys() {
        near.entry(*a).or_default().push(*b);
        near.entry(*b).or_default().push(*a);
    }
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    let mut clusters = Vec::new();
    for at in order {
        if taken.contains(at) {
            continue;
        }
        let neighbours = near.get(at).into_iter().flatten().copied();
        let mut members: Vec<u32> = neighbours.filter(|other| !taken.contains(other)).collect();
        if members.len() + 1 < size_min {
            continue;
        }
        members.sort_unstable_by_key(|other| rank.get(other));
        members.insert(0, *at);
        taken.extend(&members);
        clusters.push(members);
    }
    clusters
}

/// Rows that edges lead to from one another are one cluster, in the order of their worth.
fn by_chain(order: &[u32], edges: &Edges, size_min: usize) -> Vec<Vec<u32>> {
    let mut parent: HashMap<u32, u32> = order.iter().map(|at| (*at, *at)).collect();
    for (a, b) in edges.keys() {
        let (a, b) = (root(&mut parent, *a), root(&mut parent, *b));
        parent.insert(a.max(b), a.min(b));
    }
    let mut of_root: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for at in order {
        of_root.entry(root(&mut parent, *at)).or_default().push(*at);
    }
    of_root.into_values().filter(|members| members.len() >= size_min).collect()
}

/// The smallest known member of a chain; paths are halved on the way.
fn root(parent: &mut HashMap<u32, u32>, mut at: u32) -> u32 {
    while let Some(above) = parent.get(&at).copied().filter(|above| *above != at) {
        let next = parent.get(&above).copied().unwrap_or(above);
        parent.insert(at, next);
        at = next;
    }
    at
}
