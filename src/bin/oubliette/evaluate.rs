//! `eval`: what the index finds against an exact scan of the same snapshot.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use oubliette::report::VectorStats;
use oubliette::{
    Filter, MemoryId, Mode, Namespace, NamespaceName, PageRequest, Query, Result, Scope, Snapshot,
};
use serde_json::json;

use crate::answers;
use crate::arguments::EvalOptions;
use crate::eval_gc;
use crate::evidence;
use crate::latency::{micros, percentile};
use crate::output::{Done, Failure, Output};
use crate::place::{Access, Place};
use crate::progress::Progress;
use crate::search::Queries;

/// Rows that are read at a time.
const PAGE_ROWS: usize = 1_000;
/// Queries that are asked one after the other before their answers are compared.
const BATCH: usize = 64;
/// Two sums of the same products in another order differ by less.
const ROUNDING: f32 = 1e-5;
/// Products that are summed apart.
const LANES: usize = 16;

/// The vectors of every visible memory that a query may find, for a scan that knows no index.
pub(crate) struct Exact {
    places: HashMap<MemoryId, usize>,
    numbers: Vec<f32>,
    dim: usize,
}

impl Exact {
    pub(crate) fn load(
        namespace: &Namespace<Snapshot>,
        scope: &Scope,
        filter: Option<&Filter>,
    ) -> Result<Self> {
        let mut exact = Exact { places: HashMap::new(), numbers: Vec::new(), dim: 0 };
        let (scope, filter) = (scope.clone(), filter.cloned());
        let mut request = PageRequest { scope, filter, limit: PAGE_ROWS, ..PageRequest::default() };
        loop {
            let page = namespace.list(&request)?;
            for memory in page.items {
                let found = namespace.look_up(memory.id, true)?.into_memory();
                if let Some(vector) = found.and_then(|found| found.vector) {
                    exact.dim = vector.len();
                    exact.places.insert(memory.id, exact.places.len());
                    exact.numbers.extend(vector);
                }
            }
            match page.next {
                Some(next) => request.cursor = Some(next),
                None => return Ok(exact),
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The scores of the `k` nearest, best first.
    fn best(&self, query: &[f32], k: usize) -> Vec<f32> {
        let rows = self.numbers.chunks_exact(self.dim.max(1));
        let mut scores: Vec<f32> = rows.map(|row| dot(row, query)).collect();
        let k = k.min(scores.len());
        if k > 0 && k < scores.len() {
            scores.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
        }
        scores.truncate(k);
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        scores
    }

    fn score(&self, id: MemoryId, query: &[f32]) -> Option<f32> {
        let at = self.places.get(&id)? * self.dim;
        self.numbers.get(at..at + self.dim).map(|row| dot(row, query))
    }

    /// The share of the `k` nearest that `found` has, by distance: one as near as the k-th is as good. It is 1
    /// where there is nothing to find. The time is that of the scan.
    pub(crate) fn recall(&self, query: &[f32], k: usize, found: &[MemoryId]) -> (f64, u64) {
        let query = unit(query);
        let begun = Instant::now();
        let best = self.best(&query, k);
        let took_us = micros(begun);
        let Some(least) = best.last() else { return (1.0, took_us) };
        let good =
            found.iter().filter(|id| self.score(**id, &query).is_some_and(|score| score >= least - ROUNDING));
        (good.count().min(best.len()) as f64 / best.len() as f64, took_us)
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    vector.iter().map(|number| (f64::from(*number) / length) as f32).collect()
}

/// What the queries came to.
#[derive(Default)]
struct Asked {
    /// The vectors that a query may find, by its scope and filter.
    exact: HashMap<String, Exact>,
    namespaces: BTreeSet<NamespaceName>,
    recall: f64,
    took: Vec<u64>,
    exact_took: Vec<u64>,
    walked: u64,
    scanned: u64,
    ef: u64,
}

impl Asked {
    /// Asks some queries, and then compares the answers. A scan of all vectors leaves nothing else in the cache of the processor, so
    /// no scan stands between two searches.
    fn ask(&mut self, batch: &[(u64, Namespace<Snapshot>, Query)]) -> Result<()> {
        let same = |namespace: &Namespace<Snapshot>, query: &Query| {
            format!("{namespace:?} {:?} {:?}", query.scope, query.filter)
        };
        for (number, namespace, query) in batch {
            if let Entry::Vacant(entry) = self.exact.entry(same(namespace, query)) {
                // The first search of a partition loads it; that is no latency of a query.
                namespace.search(query).map_err(|error| error.at_line(*number))?;
                entry.insert(Exact::load(namespace, &query.scope, query.filter.as_ref())?);
                self.namespaces.insert(namespace.name().clone());
            }
        }
        let mut found = Vec::with_capacity(batch.len());
        for (number, namespace, query) in batch {
            let begun = Instant::now();
            found.push(namespace.search(query).map_err(|error| error.at_line(*number))?);
            self.took.push(micros(begun));
        }
        for ((_, namespace, query), found) in batch.iter().zip(found) {
            let ids: Vec<MemoryId> = found.hits.iter().map(|hit| hit.id).collect();
            let Some(exact) = self.exact.get(&same(namespace, query)) else { continue };
            let (share, exact_us) = exact.recall(query.vector.as_deref().unwrap_or_default(), query.k, &ids);
            self.recall += share;
            self.walked += found.plan.walked;
            self.scanned += found.plan.scanned;
            self.ef = self.ef.max(found.plan.ef);
            self.exact_took.push(exact_us);
        }
        Ok(())
    }
}

/// `eval`.
pub(crate) fn run(options: &EvalOptions, place: &Place, output: Output<'_>) -> Done {
    if options.gc.gc {
        return eval_gc::run(options, place, output);
    }
    if options.text {
        return evidence::run(options, place, output);
    }
    let Some(vectors) = &options.vectors else {
        return Err(Failure::Usage("eval needs --vectors, or --text".to_owned()));
    };
    let effort = options.effort.effort();
    let (mode, scope) = (Mode::Vector, options.scope.scope()?);
    let defaults = Query { mode, k: options.k, scope, effort, ..Query::default() };
    defaults.check()?;
    let defaults = (place.namespace()?, defaults);
    let mut queries = Queries::open(&options.queries, Some(vectors), place.caller())?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let snapshot = database.snapshot()?;
    let mut asked = Asked::default();
    let progress = Progress::new(output, None);
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH
            && let Some((number, namespace, query)) = queries.next(&defaults)?
        {
            batch.push((number, snapshot.namespace(namespace)?, query));
        }
        if batch.is_empty() {
            break;
        }
        asked.ask(&batch)?;
        progress.set(asked.took.len() as u64);
    }
    drop(progress);
    let Asked { namespaces, recall, mut took, mut exact_took, walked, scanned, ef, .. } = asked;
    took.sort_unstable();
    exact_took.sort_unstable();
    let mut vectors = VectorStats::default();
    for namespace in if namespaces.is_empty() { BTreeSet::from([defaults.0]) } else { namespaces } {
        add(&mut vectors, &database.namespace(&namespace)?.stats()?.vectors);
    }
    let mean = |sum: f64| (!took.is_empty()).then(|| sum / took.len() as f64);
    output.document(&json!({
        "recall_at_k": mean(recall),
        "k": options.k,
        "queries": took.len(),
        "p50_us": percentile(&took, 50),
        "p95_us": percentile(&took, 95),
        "p99_us": percentile(&took, 99),
        "exact_p50_us": percentile(&exact_took, 50),
        "live": vectors.live,
        "dead": vectors.dead,
        "tail": vectors.tail,
        "in_graph": vectors.in_graph,
        "regime": vectors.regime,
        "effort": answers::effort(effort),
        "ef": ef,
        "walked": mean(walked as f64),
        "scanned": mean(scanned as f64),
    }))
}

/// Counts the vectors of another namespace.
fn add(sum: &mut VectorStats, more: &VectorStats) {
    sum.regime = if sum.regime.is_empty() || sum.regime == more.regime { more.regime } else { "mixed" };
    sum.live += more.live;
    sum.dead += more.dead;
    sum.tail += more.tail;
    sum.in_graph += more.in_graph;
}
