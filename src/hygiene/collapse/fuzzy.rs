//! The fuzzy phase: each item joins the cluster whose first member is nearest to it by tokens.
//!
//! An index over rare tokens makes it linear in the common case. Two sets of sizes `m` and `n` that reach Jaccard `j` share
//! `a = ceil(j · (m + n) / (1 + j))` tokens and more. So if tokens are ordered, rare ones first, the first `m - a + 1` of the one
//! and the first `n - a + 1` of the other have a token in common (prefix filtering; Bayardo, Ma and Srikant, "Scaling up all pairs
//! similarity search", 2007; Xiao et al., "Efficient similarity joins for near duplicate detection", 2008): only these are looked
//! up and put down. What the index finds is compared exactly. Where texts of one template differ in so many names that they are not
//! near, the first tokens are these names, and none of the texts finds another.

use std::collections::{BTreeMap, HashMap};

use crate::hygiene::plan::Stop;

/// When two token sets are near.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Tokens that they share at least.
    pub(super) min_shared: usize,
    /// Jaccard similarity that they reach.
    pub(super) jaccard: f64,
}

impl Bounds {
    /// Tokens that a set of `len` shares at least with any other that is near. A hair is taken off, so that an error in
    /// the last bit of the product never asks for one too many.
    fn shared_at_least(self, len: usize) -> usize {
        let by_jaccard = (self.jaccard * len as f64 - 1e-9).ceil().max(1.0) as usize;
        by_jaccard.max(self.min_shared)
    }

    /// Tokens that two sets of these sizes share at least if they are near. It grows with either size.
    fn shared_of(self, a: usize, b: usize) -> usize {
        let by_jaccard =
            (self.jaccard / (1.0 + self.jaccard) * (a + b) as f64 - 1e-9).ceil().max(1.0) as usize;
        by_jaccard.max(self.min_shared)
    }

    /// Tokens of a set of `len` that stand in the index.
    fn prefix(self, len: usize) -> usize {
        (len + 1).saturating_sub(self.shared_at_least(len))
    }
}

/// What is clustered, in order of creation.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Each once.
    pub(super) tokens: Vec<String>,
    /// Words that deny.
    pub(super) negations: usize,
}

/// The clusters, and what the guard of negation kept out of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clusters {
    /// Positions of their members, the first first.
    pub(super) clusters: Vec<Vec<usize>>,
    /// An item with the first member of the cluster that it would have joined.
    pub(super) apart: Vec<(usize, usize)>,
}

/// A cluster that an item could join.
#[derive(Clone, Copy, Debug)]
struct NearCluster {
    jaccard: f64,
    cluster: usize,
}

impl NearCluster {
    /// More alike, or as much and older.
    fn beats(self, other: Option<NearCluster>) -> bool {
        other.is_none_or(|other| {
            self.jaccard > other.jaccard || (self.jaccard == other.jaccard && self.cluster < other.cluster)
        })
    }
}

/// The clusters whose first member has a token early enough that another set may be near, by the size of the first member and the
/// place of the token in it.
type Postings = BTreeMap<(usize, usize), Vec<usize>>;

/// The clusters that the index finds for a set: those whose first member may be near. One that several tokens find is named for each.
fn candidates(set: &[usize], bounds: Bounds, postings: &[Postings]) -> Vec<usize> {
    let (len, mut found) = (set.len(), Vec::new());
    let least = bounds.shared_at_least(len);
    for (at, token) in set.iter().enumerate().take(bounds.prefix(len)) {
        for ((size, place), clusters) in
            postings.get(*token).into_iter().flat_map(|all| all.range((least, 0)..))
        {
            let shared = bounds.shared_of(len, *size);
            // All that follow are larger.
            if at + shared > len {
                break;
            }
            if place + shared <= *size {
                found.extend(clusters);
            }
        }
    }
    found
}

/// Items in the order of their creation to clusters in the order of their first members. None when `stop` ended it.
pub(super) fn cluster(items: Vec<Item>, bounds: Bounds, stop: Stop<'_>) -> Option<Clusters> {
    let (sets, distinct) = rarest_first(&items);
    let mut found = Clusters::default();
    let mut postings: Vec<Postings> = Vec::new();
    postings.resize_with(distinct, Postings::new);
    // For each cluster the last item that was compared with it.
    let mut compared: Vec<usize> = Vec::new();
    for (at, (set, item)) in sets.iter().zip(&items).enumerate() {
        let (mut best, mut refused, mut work) = (None, None, 1);
        for cluster in candidates(set, bounds, &postings) {
            let first = found.clusters.get(cluster).and_then(|members| members.first()).copied();
            let first = first.and_then(|first| sets.get(first).zip(items.get(first)));
            let (Some((other, first)), Some(last)) = (first, compared.get_mut(cluster)) else { continue };
            if std::mem::replace(last, at) == at {
                continue;
            }
            work += 1;
            let Some(jaccard) = nearness(set, other, bounds) else { continue };
            let near = NearCluster { jaccard, cluster };
            let kind = if first.negations == item.negations { &mut best } else { &mut refused };
            if near.beats(*kind) {
                *kind = Some(near);
            }
        }
        if stop(work) {
            return None;
        }
        if let Some(near) = refused.filter(|near: &NearCluster| near.beats(best))
            && let Some(first) = found.clusters.get(near.cluster).and_then(|members| members.first())
        {
            found.apart.push((at, *first));
        }
        if let Some(members) = best.and_then(|near: NearCluster| found.clusters.get_mut(near.cluster)) {
            members.push(at);
            continue;
        }
        for (place, token) in set.iter().enumerate().take(bounds.prefix(set.len())) {
            if let Some(of_token) = postings.get_mut(*token) {
                of_token.entry((set.len(), place)).or_default().push(found.clusters.len());
            }
        }
        found.clusters.push(vec![at]);
        compared.push(at);
    }
    Some(found)
}

/// Jaccard similarity of two sets in the same order, if they are near.
fn nearness(a: &[usize], b: &[usize], bounds: Bounds) -> Option<f64> {
    if a.len().min(b.len()) < bounds.shared_at_least(a.len().max(b.len())) {
        return None;
    }
    let (mut left, mut right, mut shared) = (a, b, 0_usize);
    while let (Some((x, rest_of_left)), Some((y, rest_of_right))) = (left.split_first(), right.split_first())
    {
        match x.cmp(y) {
            std::cmp::Ordering::Less => left = rest_of_left,
            std::cmp::Ordering::Greater => right = rest_of_right,
            std::cmp::Ordering::Equal => {
                (left, right, shared) = (rest_of_left, rest_of_right, shared + 1);
            }
        }
    }
    let jaccard = shared as f64 / (a.len() + b.len() - shared).max(1) as f64;
    (shared >= bounds.min_shared && jaccard >= bounds.jaccard).then_some(jaccard)
}

/// Each item's tokens as numbers, those that few items have first, and how many tokens there are.
fn rarest_first(items: &[Item]) -> (Vec<Vec<usize>>, usize) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for token in items.iter().flat_map(|item| &item.tokens) {
        *counts.entry(token).or_default() += 1;
    }
    let mut order: Vec<(usize, &str)> = counts.into_iter().map(|(token, count)| (count, token)).collect();
    order.sort_unstable();
    let numbers: HashMap<&str, usize> =
        order.iter().enumerate().map(|(at, (_, token))| (*token, at)).collect();
    let numbered = |item: &Item| {
        let mut set: Vec<usize> =
            item.tokens.iter().filter_map(|token| numbers.get(token.as_str())).copied().collect();
        set.sort_unstable();
        set
    };
    (items.iter().map(numbered).collect(), order.len())
}

#[cfg(test)]
mod tests;
