//! What the cost model of the index weighs: a code that a walk scores, a code and a one-bit code of a scan, and a slot
//! that is looked at and not visible.

use oubliette::maintain::Pass;
use oubliette::memory::Expiry;
use oubliette::{Database, Effort, Query, WriteOptions};

use crate::scan::blends;
use crate::{EXACT, FORCED, builder, draft, percentile, run, time, vectors};

/// Searches whose median counts.
const SEARCHES: usize = 101;
/// One row in so many stays visible in the end.
const SEEN: usize = 100;

/// The median of searches in seconds, and the means of codes scanned and walked.
fn asked(db: &Database, queries: &[Vec<f32>], effort: Effort) -> (f64, f64, f64, String) {
    let team = db.namespace("default").unwrap();
    let ask = |query: &Vec<f32>| Query::vector(query.clone()).effort(effort);
    let (mut took, mut scanned, mut walked, mut regime) = (Vec::new(), 0, 0, "");
    for query in queries.iter().take(SEARCHES) {
        // The first two load the image. The second search for a query finds its f32 vectors in the cache of pages.
        let _ = [(); 3].map(|()| team.search(ask(query)).unwrap());
        let (found, seconds) = time(|| team.search(ask(query)).unwrap());
        took.push(seconds);
        (scanned, walked) = (scanned + found.plan.scanned, walked + found.plan.walked);
        regime = found.plan.regime;
    }
    let mean = |sum: u64| sum as f64 / SEARCHES as f64;
    (percentile(took, 0.5), mean(scanned), mean(walked), regime.to_owned())
}

/// Nanoseconds of each, at three shapes that lie where partitions get graphs.
pub fn costs() {
    let (mut real, _) = vectors::rows(20_500);
    let asked_for = real.split_off(20_000);
    println!(
        "| rows × dimensions | a code of a walk | a code of a scan | a one-bit code | a slot that is not visible |"
    );
    println!("|---|---|---|---|---|");
    for (rows, dim) in [(200_000, 384), (200_000, 128), (50_000, 1_536)] {
        let shaped = |rows: Vec<Vec<f32>>| -> Vec<Vec<f32>> {
            let wide = |row: &Vec<f32>| row.iter().copied().cycle().take(dim).collect::<Vec<f32>>();
            let turned = |(at, row): (usize, &Vec<f32>)| {
                // Copies of one row side by side would be a vector of 384 dimensions: the parts are of other rows.
                let mut row = wide(row);
                for part in 1..dim / 384 {
                    let other = &rows[(at + part * 4_099) % rows.len()];
                    row[part * 384..(part + 1) * 384].copy_from_slice(other);
                }
                row
            };
            rows.iter().enumerate().map(turned).collect()
        };
        let (vectors, queries) = (shaped(blends(&real, rows)), shaped(asked_for.clone()));
        let clock = oubliette::clock::ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let open = |policy| builder(policy).clock(clock.clone()).open(folder.path().join("a")).unwrap();
        let db = open(EXACT);
        let expiry = Expiry::After("1d".parse().unwrap());
        for part in (0..rows).collect::<Vec<_>>().chunks(1_000) {
            let drafts = part.iter().map(|&at| {
                let mut draft = draft(at, &vectors[at]);
                draft.expiry = (at % SEEN != 0).then_some(expiry);
                draft
            });
            let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            db.namespace("default").unwrap().add_all(drafts.collect(), &how).unwrap();
        }
        let (took, scanned, _, _) = asked(&db, &queries, Effort::Exact);
        let code = took / scanned;
        let (took, scanned, _, regime) = asked(&db, &queries, Effort::default());
        assert_eq!(regime, "bits");
        let bits = took / scanned;
        drop(db);
        let db = open(FORCED);
        run(&db, Pass::Index);
        let [few, many] = [32, 512].map(|ef| asked(&db, &queries, Effort::Ef(ef)));
        let walked = (many.0 - few.0) / (many.2 - few.2);
        clock.advance("2d".parse().unwrap());
        let (took, scanned, _, _) = asked(&db, &queries, Effort::Exact);
        let unseen = (took - scanned * code) / (rows as f64 - scanned);
        let of = |seconds: f64| format!("{:.2} ns, {:.4}", seconds * 1e9, seconds / walked);
        println!(
            "| {rows} × {dim} | {} at ef 32 {:.0}, at ef 512 {:.0} scored | {} | {} | {} |",
            of(walked),
            few.2,
            many.2,
            of(code),
            of(bits),
            of(unseen)
        );
    }
}
