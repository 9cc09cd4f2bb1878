//! How long the list of a walk has to be for a share of the nearest: measured on the index itself.
//!
//! A sample of nodes is looked for as if they were not there, with lists of growing length, and what is found is
//! compared with a scan of all codes. So the queries are spread like the rows, and none finds itself. What the f32
//! ranking afterwards adds or loses is below what the sample can tell.

use std::sync::Arc;

use crate::hnsw::{Near, Points, Scratch, Verdict};
use crate::index::view::View;
use crate::limits::EF_MAX;
use crate::store::control::RecallPoint;
use crate::vector::dot_i8_many;

/// Lengths of lists that are tried.
const LADDER: [u16; 13] = [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024];
/// The k of the measurement.
const K: usize = 10;
/// Nodes of a sample.
const SAMPLE: usize = 128;
/// Codes that a measurement scans at most: the sample of a large index is smaller.
const SCANNED_MAX: usize = 1 << 27;
/// Nodes of the smallest sample.
const SAMPLE_MIN: usize = 32;
/// Recall past which longer lists are not tried.
const ENOUGH: u16 = 9_995;
/// Parts of a recall of 1.
const WHOLE: f32 = 10_000.0;
/// Length of the list before anything was measured.
const UNMEASURED: usize = 128;

/// Length of the list of a walk for `k` results with a recall of at least `recall`, by what was measured for 10.
pub(crate) fn ef_for(measured: &[RecallPoint], recall: f32, k: usize) -> usize {
    // Half of what may be missed is kept back for the error of the sample.
    let wanted = (recall + (1.0 - recall) / 2.0) * WHOLE;
    let enough = measured.iter().find(|point| f32::from(point.recall) >= wanted);
    let ef = match (enough, measured.last()) {
        (Some(point), _) => usize::from(point.ef),
        (None, Some(last)) => 2 * usize::from(last.ef),
        (None, None) => UNMEASURED,
    };
    (ef * k.max(K) / K).clamp(k, EF_MAX.max(k))
}

/// Measures the recall of walks through the graph of a view; empty where there is nothing to measure.
pub(crate) fn measure(view: &View) -> Arc<[RecallPoint]> {
    let Some(linked) = view.linked() else { return Arc::default() };
    let graph = &linked.graph;
    let alive = |slot: u32| view.id(slot).is_some();
    // The upper levels are the way to all nodes: taking one of theirs away would tear the graph.
    let all: Vec<u32> = graph.nodes().filter(|slot| graph.level(*slot) == Some(0) && alive(*slot)).collect();
    if all.len() <= K {
        return Arc::default();
    }
    let most = (SCANNED_MAX / view.len().max(1) as usize).clamp(SAMPLE_MIN, SAMPLE);
    let sample: Vec<u32> = all.iter().copied().step_by(all.len().div_ceil(most)).collect();
    let floors: Vec<Near> = sample.iter().map(|slot| floor(view, *slot)).collect();
    let mut scratch = Scratch::default();
    let mut points = Vec::new();
    for ef in LADDER {
        let mut hits = 0;
        for (&slot, floor) in sample.iter().zip(&floors) {
            let accept = |found: u32| Verdict::from(alive(found));
            graph.search_without(view, slot, usize::from(ef), &mut scratch, accept);
            hits += scratch.found().iter().take(K).filter(|near| near.score() >= floor.score()).count();
        }
        let recall = (hits as f32 / (sample.len() * K) as f32 * WHOLE) as u16;
        points.push(RecallPoint { ef, recall });
        if recall >= ENOUGH {
            break;
        }
    }
    points.into()
}

/// The tenth of the nearest other nodes of a slot, by a scan of all codes.
fn floor(view: &View, slot: u32) -> Near {
    let probe = view.probe(slot);
    let Some(linked) = view.linked() else { return Near::new(f32::NEG_INFINITY, slot) };
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
            if other != slot && view.id(other).is_some() && linked.graph.contains(other) {
                let at = best.partition_point(|better| *better > near);
                best.insert(at, near);
                best.truncate(K);
            }
        }
    }
    best.last().copied().unwrap_or(Near::new(f32::NEG_INFINITY, slot))
}
