//! How long must the list of a walk be for a share of the nearest? The answer is measured on the index
//! itself.
//!
//! A sample of nodes is searched with lists of growing length, and the results are compared with a scan of all codes.
//! Every other node is searched as if it were absent, so that it does not find itself. The other nodes are replaced by
//! a point two thirds of the way to another row: questions do not lie where the rows lie, and their neighbours are
//! harder to find. What the f32 ranking afterwards adds or loses is below the error of the sample.

use std::sync::Arc;

use crate::error::Result;
use crate::hnsw::{Near, Points, Probe, Scratch, Verdict};
use crate::index::adjacency::Linked;
use crate::index::view::View;
use crate::limits::EF_MAX;
use crate::model::Effort;
use crate::store::control::RecallPoint;
use crate::store::{IndexId, Rows, Snapshot};
use crate::vector::{dot_i8_many, unit_scale};

/// The lengths of lists that are tried.
const LADDER: [u16; 13] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024];
/// The k of the measurement.
const K: usize = 10;
/// The number of nodes in a sample.
const SAMPLE: usize = 128;
/// The largest number of codes that a measurement scans. So the sample of a large index is smaller.
const SCANNED_MAX: usize = 1 << 27;
/// The number of nodes in the smallest sample.
const SAMPLE_MIN: usize = 32;
/// The number of nodes in a sample that is searched by the nodes' own codes.
const OWN_SAMPLE: usize = 256;
/// With this recall reached, longer lists are not tried.
const ENOUGH: u16 = 9_995;
/// The largest factor by which a list grows with its index.
const GROWTH_MAX: f64 = 4.0;
/// The parts of a recall of 1.
const WHOLE: f32 = 10_000.0;
/// The length of the list before anything was measured.
const UNMEASURED: usize = 128;

/// The length of the list for a walk for `k` results with a recall of at least `recall`, by the measurement for 10
/// results. If the index has grown since by some factor, the list grows by the same factor.
pub(crate) fn ef_for(linked: &Linked, live: u32, recall: f32, k: usize) -> usize {
    let measured = &linked.recall;
    // Half of the allowed misses is held back for the error of the sample.
    let wanted = (recall + (1.0 - recall) / 2.0) * WHOLE;
    let enough = measured.iter().find(|point| f32::from(point.recall) >= wanted);
    let ef = match (enough, measured.last()) {
        (Some(point), _) => usize::from(point.ef),
        (None, Some(last)) => 2 * usize::from(last.ef),
        (None, None) => UNMEASURED,
    };
    let grown = (f64::from(live) / f64::from(linked.measured_on.max(1))).clamp(1.0, GROWTH_MAX);
    let ef = (ef * k.max(K)) as f64 / K as f64 * grown;
    (ef as usize).clamp(k, EF_MAX.max(k))
}

/// Measures the recall of walks through the graph of a view; empty if there is nothing to measure.
pub(crate) fn measure(view: &View) -> Arc<[RecallPoint]> {
    let Some(linked) = view.linked() else { return Arc::default() };
    let graph = &linked.graph;
    let alive = |slot: u32| view.id(slot).is_some();
    // The upper levels are the way to all nodes, so removing one of their nodes, or the entry of a graph without them, would tear
    // the graph. The twins of a node hang on it, so a host cannot be removed either.
    let is_leaf = |slot: &u32| {
        graph.level(*slot) == Some(0) && graph.twins(*slot).is_empty() && graph.entry() != Some(*slot)
    };
    let all: Vec<u32> = graph.nodes().filter(|slot| is_leaf(slot) && alive(*slot)).collect();
    if all.len() <= K {
        return Arc::default();
    }
    let most = (SCANNED_MAX / view.len().max(1) as usize).clamp(SAMPLE_MIN, SAMPLE);
    let sample: Vec<u32> = all.iter().copied().step_by(all.len().div_ceil(most)).collect();
    let questions: Vec<Question> = sample
        .iter()
        .enumerate()
        .map(|(at, slot)| {
            let other = sample.get((at + sample.len() / 2) % sample.len()).unwrap_or(slot);
            Question::new(view, *slot, (at % 2 == 1).then_some(*other))
        })
        .collect();
    let mut scratch = Scratch::default();
    let mut points = Vec::new();
    for ef in LADDER {
        let hits: usize =
            questions.iter().map(|question| question.hits(view, usize::from(ef), &mut scratch)).sum();
        let recall = (hits as f32 / (sample.len() * K) as f32 * WHOLE) as u16;
        points.push(RecallPoint { ef, recall });
        if recall >= ENOUGH {
            break;
        }
    }
    points.into()
}

/// How many nodes of a sample a walk of the default effort finds by their own codes, and the size of the sample.
///
/// # Errors
/// `Corrupted` for damaged codes.
pub(crate) fn found_by_themselves(snapshot: &Snapshot, index: IndexId, dim: usize) -> Result<(usize, usize)> {
    let view = View::load(snapshot, index, dim)?;
    let Some(linked) = view.linked() else { return Ok((0, 0)) };
    let alive = |slot: u32| view.id(slot).is_some();
    let all: Vec<u32> = linked.graph.nodes().filter(|slot| alive(*slot)).collect();
    let ef = match Effort::default() {
        Effort::Recall(recall) => ef_for(linked, snapshot.readable_slot_head(index)?.used, recall, K),
        Effort::Ef(ef) => ef,
        Effort::Exact => return Ok((0, 0)),
    };
    let (mut scratch, mut found, mut sampled) = (Scratch::default(), 0, 0);
    for &slot in all.iter().step_by(all.len().div_ceil(OWN_SAMPLE).max(1)) {
        linked.graph.search(&view, view.probe(slot), ef, &mut scratch, |found| alive(found).into());
        let own = view.probe(slot);
        let mut dot = [0];
        dot_i8_many(own.code, own.code, &mut dot);
        let [dot] = dot;
        let own = dot as f32 * (own.scale * own.scale);
        sampled += 1;
        found += usize::from(scratch.found().first().is_some_and(|near| near.score() >= own));
    }
    Ok((found, sampled))
}

/// A point to search for, and the score of the tenth of its nearest nodes.
struct Question {
    /// None stands for the node itself, searched as if it were absent.
    code: Option<Vec<i8>>,
    slot: u32,
    floor: f32,
}

impl Question {
    /// A search for a node, or for a point between the node and another one.
    fn new(view: &View, slot: u32, other: Option<u32>) -> Self {
        let code = other.map(|other| {
            let pairs = view.code(slot).iter().zip(view.code(other));
            pairs.map(|(a, b)| ((2 * i16::from(*a) + i16::from(*b)) / 3) as i8).collect::<Vec<i8>>()
        });
        let mut question = Question { code: code.filter(|code| unit_scale(code) > 0.0), slot, floor: 0.0 };
        question.floor = question.tenth(view);
        question
    }

    fn probe<'q>(&'q self, view: &'q View) -> Probe<'q> {
        match &self.code {
            Some(code) => Probe { code, scale: unit_scale(code) },
            None => view.probe(self.slot),
        }
    }

    /// How many of the ten nearest a walk finds, compared by distance.
    fn hits(&self, view: &View, ef: usize, scratch: &mut Scratch) -> usize {
        let Some(linked) = view.linked() else { return 0 };
        let accept = |found: u32| Verdict::from(view.id(found).is_some());
        match &self.code {
            Some(_) => linked.graph.search(view, self.probe(view), ef, scratch, accept),
            None => linked.graph.search_without(view, self.slot, ef, scratch, accept),
        }
        scratch.found().iter().take(K).filter(|near| near.score() >= self.floor).count()
    }

    /// The score of the tenth of the nearest nodes, by a scan of all codes.
    fn tenth(&self, view: &View) -> f32 {
        let Some(linked) = view.linked() else { return f32::NEG_INFINITY };
        let probe = self.probe(view);
        let mut best: Vec<Near> = Vec::with_capacity(2 * K);
        let mut dots = Vec::new();
        for (first, codes, scales) in view.rows() {
            dots.clear();
            dots.resize(scales.len(), 0);
            dot_i8_many(probe.code, codes, &mut dots);
            for (other, (&dot, &scale)) in (first..).zip(dots.iter().zip(scales)) {
                let near = Near::new(dot as f32 * (probe.scale * scale), other);
                if best.len() == K && best.last().is_some_and(|last| near < *last) {
                    continue;
                }
                let counts = self.code.is_some() || other != self.slot;
                if counts && view.id(other).is_some() && linked.graph.contains(other) {
                    let at = best.partition_point(|better| *better > near);
                    best.insert(at, near);
                    best.truncate(K);
                }
            }
        }
        best.last().map_or(f32::NEG_INFINITY, |last| last.score())
    }
}
