//! Which rows say nearly the same by their vectors? What the passes `vector-duplicates` and `cluster` share.
//!
//! For each row the nearest of its index are searched, for a block of rows at once. Pairs at the threshold, of equal kind
//! and past the guards are edges; clusters are made of them, each with the row that a pass ranks first as its
//! representative. Kept in memory: an entry of fixed width for each row with a vector, and at most `dedup.neighbours` edges
//! a row. Texts are read for pairs at the threshold only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::error::{Error, Result};
use crate::hygiene::pass::PlanInput;
use crate::hygiene::plan::{Field, KeptApart, Page, Pages, Stop};
use crate::hygiene::uniqueness::unlike;
use crate::index::{Nearness, Published, near_many};
use crate::ingest::{Threshold, is_record_of_its_own, owner_of};
use crate::model::{Kind, MemoryId, Tier, Time, Vitals};
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

/// What is kept of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterRow {
    pub(super) id: MemoryId,
    slot: u32,
    kind_code: u8,
    pub(super) version: u64,
    pub(super) updated_at: Time,
    pub(super) created_at: Time,
    pub(super) protected: bool,
    /// Whether a caller set its end.
    pub(super) ends: bool,
    pub(super) visible: bool,
}

/// Two rows that say nearly the same, by their positions, the smaller first, with their score.
pub(super) type Edges = BTreeMap<(u32, u32), f32>;

/// The text of a row as the guards see it, and its kind.
struct Said {
    profile: Profile,
    kind: Kind,
    owner: String,
    /// From when and until when it is true.
    valid: (Option<Time>, Option<Time>),
    /// Whether it is united with no other row.
    is_of_its_own: bool,
    /// How many tags it has.
    tags: usize,
}

/// What makes memories a cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'s> {
    /// From which score on two rows are near.
    pub(super) threshold: Threshold,
    /// How a cluster holds together.
    pub(super) linkage: Linkage,
    /// Least members of a cluster.
    pub(super) size_min: usize,
    /// Only rows of these tiers; empty: all.
    pub(super) tiers: &'s BTreeSet<Tier>,
    /// Whether a row is left out that is current and not visible, because its time is yet to come.
    pub(super) only_visible: bool,
    /// How many of the nearest memories tell how much a row differs from all; none where nobody asks.
    pub(super) nearest: Option<usize>,
}

/// A search for clusters in a field.
pub(super) struct Search<'s> {
    published: &'s Published,
    field: &'s Field,
    policy: &'s Policy,
    rules: Rules<'s>,
    guards: Guards,
    texts: HashMap<MemoryId, Rc<Said>>,
    /// Pairs that a guard kept apart, in order.
    pub(super) kept_apart: Vec<KeptApart>,
    /// How much rows with a near neighbour differ from all others, as the search for their neighbours has told.
    pub(super) unlike: HashMap<MemoryId, f64>,
    /// Rows with a vector that were looked at; none where all rows are fewer than a cluster has.
    pub(super) seen: Option<u64>,
}

impl<'s> Search<'s> {
    pub(super) fn new(input: PlanInput<'s>, rules: Rules<'s>) -> Self {
        let PlanInput { published, field, policy, .. } = input;
        Search {
            published,
            field,
            policy,
            rules,
            guards: Guards::new(&policy.guards, &policy.collapse),
            texts: HashMap::new(),
            kept_apart: Vec::new(),
            unlike: HashMap::new(),
            seen: None,
        }
    }

    fn snapshot(&self) -> &'s Snapshot {
        self.published.snapshot()
    }

    /// The current rows with a vector, by index, in the order of their ids. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn rows(&mut self, stop: Stop<'_>) -> Result<Option<BTreeMap<IndexId, Vec<ClusterRow>>>> {
        let mut indexes: BTreeMap<IndexId, Vec<ClusterRow>> = BTreeMap::new();
        let mut pages = Pages::new(self.field, PAGE);
        let (mut current, mut seen) = (0, 0);
        let (now, only_visible) = (self.field.now, self.rules.only_visible);
        let wanted = |row: &Vitals| match only_visible {
            true => row.times.visible_live(now),
            false => row.times.is_current(now),
        };
        loop {
            let page = match pages.turn(self.snapshot(), stop, wanted)? {
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
        if current < self.rules.size_min {
            return Ok(Some(BTreeMap::new()));
        }
        self.seen = Some(seen);
        Ok(Some(indexes))
    }

    /// Neighbours that are searched for each row.
    fn neighbours(&self) -> usize {
        match self.policy.dedup.neighbours as usize {
            0 => NEIGHBOURS_DEFAULT,
            neighbours => neighbours,
        }
    }

    fn takes(&self, tier: Tier) -> bool {
        self.rules.tiers.is_empty() || self.rules.tiers.contains(&tier)
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
            ends: vitals.life().is_promised_end(),
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

    /// The pairs of an index that are one. None when `stop` ended it.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn edges(
        &mut self,
        index: IndexId,
        rows: &[ClusterRow],
        stop: Stop<'_>,
    ) -> Result<Option<Edges>> {
        let at: HashMap<MemoryId, u32> = rows.iter().map(|row| row.id).zip(0..).collect();
        let dim = self.published.dim(index.space)?;
        let nearness = Nearness {
            least: self.rules.threshold.least_cosine(),
            most: self.neighbours() + 1,
            now: self.field.now,
        };
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
            let found = near_many(self.published, index, &asked, nearness, 1)?;
            compared.clear();
            for ((anchor, row, _), hits) in vectors.iter().zip(found) {
                let anchor = *anchor;
                if let Some(most) = self.rules.nearest {
                    let nearest = hits.get(..=most).unwrap_or(&hits);
                    let unlike = unlike(self.snapshot(), self.field.ns, row.id, nearest, self.field.now)?;
                    self.unlike.extend(unlike.map(|unlike| (row.id, unlike)));
                }
                let others = hits.iter().filter(|hit| hit.id != row.id).take(self.neighbours());
                for hit in others {
                    let Some(other) = at.get(&hit.id).copied() else { continue };
                    let pair = (anchor.min(other), anchor.max(other));
                    let Some(score) = self.rules.threshold.reached_by(hit.score) else { continue };
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
        self.kept_apart.sort_unstable_by_key(|hint| (hint.id, hint.near));
        self.kept_apart.dedup();
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

    /// Whether a pair at the threshold may be united: both of one kind, owner and validity, neither a record of its own, and both
    /// pass the guards. Where a guard fails it is told.
    fn are_one(&mut self, a: &ClusterRow, b: &ClusterRow) -> Result<bool> {
        if a.kind_code != b.kind_code {
            return Ok(false);
        }
        let (one, other) = (self.said(a.id), self.said(b.id));
        let (Some(one), Some(other)) = (self.field.sound(one)?, self.field.sound(other)?) else {
            return Ok(false);
        };
        let is_of_its_own = one.is_of_its_own || other.is_of_its_own;
        let is_apart = one.kind != other.kind || one.owner != other.owner || one.valid != other.valid;
        if is_apart || is_of_its_own || self.exempts(&one.kind) {
            return Ok(false);
        }
        let failing = one.profile.failing(&other.profile, &self.guards);
        if let Some(guard) = failing {
            self.kept_apart.push(KeptApart { id: b.id, near: a.id, guard });
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
        let owner = owner_of(&content.metadata);
        let valid = (vitals.times.valid_from, vitals.times.valid_to);
        let said = Rc::new(Said { profile, kind, owner, valid, is_of_its_own, tags: content.tags.len() });
        self.texts.insert(id, Rc::clone(&said));
        Ok(said)
    }

    /// How many tags some rows have, each row's own.
    ///
    /// # Errors
    /// Damage that is not of single rows.
    pub(super) fn tags(&mut self, ids: impl Iterator<Item = MemoryId>) -> Result<usize> {
        let mut sum = 0;
        for id in ids {
            let said = self.said(id);
            sum += self.field.sound(said)?.map_or(0, |said| said.tags);
        }
        Ok(sum)
    }

    /// Whether a row was made from others.
    pub(super) fn has_sources(&self, id: MemoryId) -> Result<bool> {
        Ok(!self.snapshot().sources(self.field.ns, id)?.is_empty())
    }

    pub(super) fn vitals(&self, id: MemoryId) -> Result<Vitals> {
        let found = self.snapshot().vitals(self.field.ns, id)?;
        found.ok_or_else(|| Error::corrupted("vitals", id.as_bytes(), "a row of the walk is gone"))
    }

    /// The clusters that the edges of an index make, each in the order of `order`: its first row stands for the others.
    pub(super) fn clusters(&self, order: &[u32], edges: &Edges) -> Vec<Vec<u32>> {
        match self.rules.linkage {
            Linkage::Representative => by_representative(order, edges, self.rules.size_min),
            Linkage::Chain => by_chain(order, edges, self.rules.size_min),
        }
    }

    /// The score of two members of a chain that are no neighbours.
    ///
    /// # Errors
    /// Damage.
    pub(super) fn score_between(&self, index: IndexId, a: &ClusterRow, b: &ClusterRow) -> Result<f32> {
        let dim = self.published.dim(index.space)?;
        let (a, b) = (self.vector(index, dim, a.slot)?, self.vector(index, dim, b.slot)?);
        Ok(self.rules.threshold.score_of(dot_f32(a.as_slice(), b.as_slice())))
    }
}

/// The places of the rows that have an edge.
pub(super) fn linked(edges: &Edges) -> BTreeSet<u32> {
    edges.keys().flat_map(|(a, b)| [*a, *b]).collect()
}

/// The edges that have both their ends among some rows.
pub(super) fn among(edges: &Edges, rows: &[u32]) -> Edges {
    let among: BTreeSet<u32> = rows.iter().copied().collect();
    let from = |at: &u32| edges.range((*at, 0)..=(*at, u32::MAX));
    let both = among.iter().flat_map(from).filter(|((_, to), _)| among.contains(to));
    both.map(|(pair, score)| (*pair, *score)).collect()
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
