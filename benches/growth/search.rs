//! Searches past what can't be found, and over what is not yet indexed.

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::memory::Expiry;
use oubliette::{Draft, Effort, Query, Scope};

use crate::ground::{Ground, median_ms, peak_mib, vector};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "a walk with 0.1 % visible, by a scan of the visible",
        unit: "x",
        sizes: (12_000, 24_000),
        bound: Bound::Most(2.0),
        measure: invisible,
    },
    Row {
        name: "words over n unposted partitions, the second search by one after `index`",
        unit: "x",
        sizes: (100, 400),
        bound: Bound::Most(2.0),
        measure: tails,
    },
    Row {
        name: "the first search in n unposted texts of 84 kB, peak memory",
        unit: "MiB",
        sizes: (100, 400),
        bound: Bound::Most(64.0),
        measure: long_tail,
    },
    Row {
        name: "a query of a rare word over n documents, peak memory",
        unit: "KiB",
        sizes: (20_000, 80_000),
        bound: Bound::Growth(2.0),
        measure: scores,
    },
];

fn invisible(n: usize) -> f64 {
    let ground = Ground::new();
    let end = "2026-01-03T10:00:00Z".parse().unwrap();
    ground.fill(n, true, |at| {
        let draft = Draft::new(format!("row {at}")).vector(vector(at, 32));
        if at % 1_000 == 0 { draft } else { Draft { expiry: Some(Expiry::At(end)), ..draft } }
    });
    ground.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    ground.clock.advance("2d".parse().unwrap());
    let walk = Query::vector(vector(999_999_937, 32)).k(10);
    let exact = walk.clone().effort(Effort::Exact);
    let time = |query: &Query| median_ms(21, |_| drop(ground.ns.search(query).unwrap()));
    time(&walk) / time(&exact)
}

fn tails(n: usize) -> f64 {
    let ground = Ground::new();
    for agent in 0..n {
        let drafts = (0..40).map(|at| {
            let text = format!(
                "note {at} of agent {agent}: the harbour master wrote about cargo {}",
                at * 7_919 % 1_000
            );
            Draft::new(text).agent(format!("a{agent}"))
        });
        ground.ns.add_all(drafts.collect(), &Default::default()).unwrap();
    }
    let query = Query::text("harbour cargo").k(10).scope(Scope::Any);
    let search = |_| drop(ground.ns.search(&query).unwrap());
    search(0);
    let unposted = median_ms(5, search);
    ground.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    search(0);
    unposted / median_ms(5, search)
}

fn long_tail(n: usize) -> f64 {
    let ground = Ground::with(|builder| builder.cache_bytes(8 << 20).memory_budget_bytes(16 << 20));
    let words = |seed: usize| {
        let mut state = seed as u64 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("w{} ", (state >> 33) % 200_000)
        };
        (0..12_000).map(|_| next()).collect::<String>()
    };
    for from in (0..n).step_by(50) {
        let drafts = (from..from + 50).map(|at| Draft::new(words(at))).collect();
        ground.ns.add_all(drafts, &Default::default()).unwrap();
    }
    let Ground { db, ns, folder, .. } = ground;
    db.close().unwrap();
    let builder = oubliette::Database::builder().cache_bytes(8 << 20).memory_budget_bytes(16 << 20);
    let db = builder.open(folder.path().join("m.oub")).unwrap();
    peak_mib(|| drop(db.namespace(&ns).unwrap().search(Query::text("w17 w42").k(5)).unwrap()))
}

fn scores(n: usize) -> f64 {
    let ground = Ground::new();
    // As many hold it, however many others there are.
    let word = |at: usize| if (at * 20).is_multiple_of(n) { "lamp" } else { "chair" };
    ground.fill(n, true, |at| Draft::new(format!("{} {at}", word(at))));
    ground.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    let query = Query::text("lamp").k(5);
    let search = || assert_eq!(ground.ns.search(&query).unwrap().hits.len(), 5);
    search();
    peak_mib(search) * 1_024.0
}
