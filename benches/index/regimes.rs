//! A search by each regime, from small partitions to large ones: a scan of all codes, a scan by one-bit codes, and walks through
//! a graph with the shortest list that keeps a recall.

use oubliette::maintain::Pass;
use oubliette::{Effort, Namespace, NamespaceName, Query};

use crate::plot::{Series, growth};
use crate::scan::blends;
use crate::{EXACT, FORCED, add, builder, percentile, run, time, us, vectors};

/// Searches whose median counts.
const SEARCHES: usize = 200;

/// The median of searches in seconds, their recall by distance, and the regime.
fn asked(team: &Namespace, queries: &[Vec<f32>], effort: Effort, floors: &[f32]) -> (f64, f64, &'static str) {
    let (mut took, mut right, mut regime) = (Vec::new(), 0, "");
    // The first searches load the image; the others follow each other as they do in a program that asks often.
    for turn in 0..2 {
        for (query, floor) in queries.iter().zip(floors) {
            let ask = Query::vector(query.clone()).effort(effort);
            let (found, seconds) = time(|| team.search(ask).unwrap());
            if turn == 1 {
                took.push(seconds);
                right += found.hits.iter().filter(|hit| hit.score >= *floor).count();
                regime = found.plan.regime;
            }
        }
    }
    (percentile(took, 0.5), right as f64 / (10 * queries.len()) as f64, regime)
}

/// A table, and with `OUBLIETTE_PLOTS` a plot in that folder.
pub fn regimes() {
    let (mut real, what) = vectors::rows(20_500);
    let queries = real.split_off(20_500 - SEARCHES);
    let names =
        ["one bit a dimension, recall ≥ 0.999", "walk, recall ≥ 0.99", "walk, recall ≥ 0.999", "all codes"];
    let mut series = names.map(|name| Series { name: name.to_owned(), points: Vec::new() });
    println!("| rows × 384 ({what}) | {} |", names.join(" | "));
    println!("|---|---|---|---|---|");
    for rows in [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 400_000] {
        let vectors = blends(&real, rows);
        let folder = tempfile::tempdir().unwrap();
        let open = |policy| builder(policy).open(folder.path().join("a")).unwrap();
        let ns = NamespaceName::default();
        let db = open(EXACT);
        add(&db, &ns, 0..rows, &vectors);
        let team = db.namespace(&ns).unwrap();
        let floors: Vec<f32> = queries
            .iter()
            .map(|query| {
                let exact = team.search(Query::vector(query.clone()).effort(Effort::Exact)).unwrap();
                exact.hits.last().unwrap().score - 1e-6
            })
            .collect();
        let (codes, _, _) = asked(&team, &queries, Effort::Exact, &floors);
        let (bits, kept, regime) = asked(&team, &queries, Effort::default(), &floors);
        db.close().unwrap();
        let db = open(FORCED);
        run(&db, Pass::Index);
        let team = db.namespace(&ns).unwrap();
        let lists = [16, 32, 64, 128, 256, 512, 1_024, 2_048];
        let walks: Vec<_> =
            lists.iter().map(|ef| (*ef, asked(&team, &queries, Effort::Ef(*ef), &floors))).collect();
        let walk = |least: f64| walks.iter().find(|(_, (_, recall, _))| *recall >= least);
        let told = |walk: Option<&(usize, (f64, f64, &str))>| {
            walk.map_or("–".to_owned(), |(ef, (took, recall, _))| {
                format!("{}, ef {ef}, {recall:.4}", us(*took))
            })
        };
        let (loose, tight) = (walk(0.99), walk(0.999));
        println!(
            "| {rows} | {}, {kept:.4} ({regime}) | {} | {} | {} |",
            us(bits),
            told(loose),
            told(tight),
            us(codes)
        );
        let seconds = [Some(bits), loose.map(|walk| walk.1.0), tight.map(|walk| walk.1.0), Some(codes)];
        for (series, seconds) in series.iter_mut().zip(seconds) {
            series.points.extend(seconds.map(|seconds| (rows as f64, seconds * 1e6)));
        }
    }
    if let Some(folder) = std::env::var_os("OUBLIETTE_PLOTS") {
        let title = "A whole search by each regime, 384 dimensions";
        let svg = growth(title, "rows of the partition", "microseconds, p50", &series);
        std::fs::write(std::path::Path::new(&folder).join("index_regimes.svg"), svg).unwrap();
    }
}
