//! Searches without a graph: by one-bit codes against all codes, with the recall that they keep.

use oubliette::memory::Expiry;
use oubliette::{Database, Effort, NamespaceName, Query, WriteOptions};

use crate::sample::Rng;
use crate::{EXACT, add, builder, draft, forget, percentile, row, time, us, vectors};

/// One row in so many is left by [`unseen`].
const SEEN: usize = 100;

/// Real vectors, and then blends of two of them, which lie nowhere near a cluster.
pub fn blends(of: &[Vec<f32>], count: usize) -> Vec<Vec<f32>> {
    let mut rng = Rng(21);
    let mut pick = || &of[rng.next() as usize % of.len()];
    (0..count)
        .map(|at| match of.get(at) {
            Some(row) => row.clone(),
            None => {
                let (a, b) = (pick(), pick());
                let blend: Vec<f32> = a.iter().zip(b).map(|(a, b)| 0.6 * a + 0.4 * b).collect();
                let length = blend.iter().map(|value| value * value).sum::<f32>().sqrt();
                blend.iter().map(|value| value / length).collect()
            }
        })
        .collect()
}

/// Searches at three sizes.
pub fn scan() {
    let (mut vectors, real) = vectors::rows(20_500);
    let queries = vectors.split_off(20_000);
    for rows in [5_000, 20_000, 200_000] {
        let vectors = blends(&vectors, rows);
        let what = if rows > 20_000 { format!("{real}, blended") } else { real.to_owned() };
        let folder = tempfile::tempdir().unwrap();
        let (db, ns) = (builder(EXACT).open(folder.path().join("a")).unwrap(), NamespaceName::default());
        add(&db, &ns, 0..rows, &vectors);
        let team = db.namespace(&ns).unwrap();
        let (mut took, mut right, mut ranked, mut regime) = ([Vec::new(), Vec::new()], 0, 0, String::new());
        // A scan of all codes drives those of one bit out of the cache, so searches of one sort follow each other.
        let wanted = queries.iter().cycle().take(if rows > 20_000 { 300 } else { 500 });
        for queries in wanted.collect::<Vec<_>>().chunks(25) {
            let ask = |effort: Effort| {
                let ask = |query: &&Vec<f32>| {
                    time(|| team.search(Query::vector((*query).clone()).effort(effort)).unwrap())
                };
                queries.iter().map(ask).collect::<Vec<_>>()
            };
            for ((exact, exact_took), (found, found_took)) in
                ask(Effort::Exact).into_iter().zip(ask(Effort::default()))
            {
                took[0].push(found_took);
                took[1].push(exact_took);
                let floor = exact.hits.last().unwrap().score - 1e-6;
                right += found.hits.iter().filter(|hit| hit.score >= floor).count();
                ranked += found.plan.ranked;
                regime = found.plan.regime.to_owned();
            }
        }
        let searches = took[0].len();
        let [found, exact] = took.map(|took| percentile(took, 0.5));
        let recall = right as f64 / (10 * searches) as f64;
        let ranked = ranked as f64 / searches as f64;
        let what = format!(
            "search of {rows} × 384 ({what}), {regime}, {ranked:.0} f32 vectors read, recall {recall:.4}, against all codes"
        );
        row(&what, us(found), us(exact), found / exact, "recall ≥ 0.999");
    }
}

/// Searches where all rows but one in a hundred have ended, or were forgotten, against those of a database with these rows
/// alone.
pub fn unseen() {
    let (mut real, _) = vectors::rows(20_500);
    let queries = real.split_off(20_000);
    for rows in [20_000, 200_000] {
        let vectors = blends(&real, rows);
        let alone: Vec<Vec<f32>> = vectors.iter().step_by(SEEN).cloned().collect();
        let (db, _folder) = with(&alone, |_| false);
        let alone = |effort| median(&db, &queries, effort);
        for what in ["ended", "were forgotten"] {
            let forgets = what == "were forgotten";
            let (db, _folder) = with(&vectors, |at| !forgets && at % SEEN != 0);
            if forgets {
                let doomed: Vec<usize> = (0..rows).filter(|at| at % SEEN != 0).collect();
                forget(&db, &NamespaceName::default(), &doomed);
            }
            for (how, effort) in [("default effort", Effort::default()), ("`--exact`", Effort::Exact)] {
                let (ours, floor) = (median(&db, &queries, effort), alone(effort));
                let what =
                    format!("search of {rows} × 384 where 99 % {what}, {how}, against one of the rest alone");
                row(&what, us(ours), us(floor), ours / floor, "≤ 1.2");
            }
        }
    }
}

/// A database of rows, some of which have ended when it is asked.
fn with(vectors: &[Vec<f32>], ends: impl Fn(usize) -> bool) -> (Database, tempfile::TempDir) {
    let clock = oubliette::clock::ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let db = builder(EXACT).clock(clock.clone()).open(folder.path().join("a")).unwrap();
    let expiry = Expiry::After("1d".parse().unwrap());
    for part in (0..vectors.len()).collect::<Vec<_>>().chunks(1_000) {
        let drafts = part.iter().map(|&at| {
            let mut draft = draft(at, &vectors[at]);
            draft.expiry = ends(at).then_some(expiry);
            draft
        });
        let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        db.namespace("default").unwrap().add_all(drafts.collect(), &how).unwrap();
    }
    clock.advance("2d".parse().unwrap());
    (db, folder)
}

/// The median of searches whose f32 vectors lie in the cache of pages, in seconds.
fn median(db: &Database, queries: &[Vec<f32>], effort: Effort) -> f64 {
    let team = db.namespace("default").unwrap();
    let asked = queries.iter().take(101).map(|query| {
        let ask = || team.search(Query::vector(query.clone()).effort(effort)).unwrap();
        let _ = [ask(), ask()];
        time(ask).1
    });
    percentile(asked.collect(), 0.5)
}
