//! Searches without a graph: by one-bit codes against all codes, with the recall that they keep.

use oubliette::{Effort, NamespaceName, Query};

use crate::sample::Rng;
use crate::{EXACT, add, builder, percentile, row, time, us, vectors};

/// Real vectors, and then blends of two of them, which lie nowhere near a cluster.
fn blends(of: &[Vec<f32>], count: usize) -> Vec<Vec<f32>> {
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

/// Searches at three sizes; then where one slot in a hundred is left.
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
