//! The life of memories: expiry, looks at the past, moves, the counting of use.

use std::time::Instant;

use oubliette::clock::Clock;
use oubliette::maintain::{MaintainOptions, Pass, RenamespaceOptions};
use oubliette::memory::Tier;
use oubliette::policy::{Policy, Syntax};
use oubliette::{Draft, Durability, Effort, Mode, Query, Span};

use crate::bare::Bare;
use crate::ground::{Ground, median_ms, ms, vector};
use crate::{Bound, Row};

/// Memories that expire, whatever the size of the store.
const EXPIRING: usize = 100_000;
/// Dimensions of the vectors.
const DIM: usize = 128;

pub const ROWS: &[Row] = &[
    Row {
        name: "expiry of 100,000 of n memories, a memory",
        unit: "ms",
        sizes: (EXPIRING, 1_000_000),
        bound: Bound::Growth(1.2),
        measure: expiry,
    },
    Row {
        name: "the floor of an expiry of 100,000 of n memories, a memory: as many rows in bare redb",
        unit: "ms",
        sizes: (EXPIRING, 1_000_000),
        bound: Bound::Growth(1.2),
        measure: bare_expiry,
    },
    Row {
        name: "a sweep of n memories that finds nothing to do",
        unit: "ms",
        sizes: (10_000, 1_000_000),
        bound: Bound::Growth(1.5),
        measure: idle_sweep,
    },
    Row {
        name: "a durable add that also removes memories whose life is over, of n, against one where no life is over",
        unit: "x",
        sizes: (2_000, 20_000),
        bound: Bound::Most(1.1),
        measure: add_with_backlog,
    },
    Row {
        name: "the floor of a durable add that also removes memories: as many rows in bare redb",
        unit: "x",
        sizes: (2_000, 20_000),
        bound: Bound::Most(1.1),
        measure: bare_with_backlog,
    },
    Row {
        name: "a durable add to n memories that looks for memories whose life is over, against one that does not",
        unit: "x",
        sizes: (2_000, 20_000),
        bound: Bound::Most(1.01),
        measure: add_without_backlog,
    },
    Row {
        name: "a search by vector of n memories as of an earlier instant, against an exact one of now",
        unit: "x",
        sizes: (5_000, 50_000),
        bound: Bound::Most(3.0),
        measure: as_of_by_vector,
    },
    Row {
        name: "a search by words of n memories as of an earlier instant, against one of now",
        unit: "x",
        sizes: (5_000, 50_000),
        bound: Bound::Most(3.0),
        measure: as_of_by_words,
    },
    Row {
        name: "a move of n memories into a namespace, a memory",
        unit: "ms",
        sizes: (5_000, 50_000),
        bound: Bound::Most(0.05),
        measure: moved,
    },
    Row {
        name: "a split of n memories into ten namespaces, a memory",
        unit: "ms",
        sizes: (5_000, 50_000),
        bound: Bound::Most(0.05),
        measure: split,
    },
    Row {
        name: "ten searches that are counted and an add, n times, against searches that are not",
        unit: "x",
        sizes: (200, 1_000),
        bound: Bound::Most(1.05),
        measure: counted,
    },
];

fn maintain(ground: &Ground, pass: Pass) {
    ground.db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
}

/// Memories without vectors, the first `expiring` of which live for an hour.
fn mortals(ground: &Ground, n: usize, expiring: usize) {
    let hour = Span::from_hours(1);
    ground.fill(n, true, |at| {
        let draft = Draft::new(format!("memory {at} says what {} said", at % 97)).tier(Tier::Semantic);
        if at < expiring { draft.expiry(hour) } else { draft }
    });
}

fn expiry(n: usize) -> f64 {
    let ground = Ground::new();
    mortals(&ground, n, EXPIRING);
    ground.clock.advance(Span::from_hours(2));
    let spent = ms(|| maintain(&ground, Pass::Expire));
    assert!(
        ground.db.maintain_with(&MaintainOptions::default().passes([Pass::Expire])).unwrap().passes[0]
            .planned
            == 0
    );
    spent / EXPIRING as f64
}

fn bare_expiry(n: usize) -> f64 {
    let mut store = Bare::new(n as u64);
    ms(|| store.remove(EXPIRING as u64)) / EXPIRING as f64
}

fn idle_sweep(n: usize) -> f64 {
    let ground = Ground::new();
    mortals(&ground, n, 0);
    // What the writes have left to be done is done first.
    ground.db.maintain().unwrap();
    median_ms(5, |_| drop(ground.db.maintain_with(&MaintainOptions::live()).unwrap()))
}

/// The time of a durable add to a store where `expiring` of `n` memories have lived to their end, against that of one where none
/// has: the first removes memories if `purge.per_write` says so, which the second does not.
fn adds(n: usize, expiring: usize, per_write: [u32; 2]) -> f64 {
    let grounds = [(per_write[0], expiring), (per_write[1], 0)].map(|(per_write, expiring)| {
        let text = format!("purge.per_write = {per_write}");
        let policy = Policy::parse(&text, Syntax::Toml).unwrap();
        let ground = Ground::with(|builder| builder.durability(Durability::Safe).policy(policy.clone()));
        mortals(&ground, n, expiring);
        ground.clock.advance(Span::from_hours(2));
        ground
    });
    let mut times = [Vec::new(), Vec::new()];
    for at in 0..201 {
        for (ground, times) in grounds.iter().zip(&mut times) {
            let begun = Instant::now();
            ground.add(Draft::new(format!("new {at}")));
            times.push(begun.elapsed());
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    });
    with / without
}

fn add_with_backlog(n: usize) -> f64 {
    adds(n, n, [8, 8])
}

fn bare_with_backlog(n: usize) -> f64 {
    let mut stores = [Bare::new(n as u64), Bare::new(n as u64)];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..201 {
        for ((store, times), removed) in stores.iter_mut().zip(&mut times).zip([8, 0]) {
            times.push(store.add(removed));
        }
    }
    let [with, without] = times.map(|mut times| {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    });
    with / without
}

fn add_without_backlog(n: usize) -> f64 {
    adds(n, 0, [8, 0])
}

/// Memories with vectors, a tenth of which was superseded by now, and the instant before that.
fn replaced(n: usize) -> (Ground, oubliette::Time) {
    let ground = Ground::new();
    let said = |at: usize, version: usize| {
        let text = format!("Ann lives at number {at}, {version} years long, near {}", at % 31);
        Draft::new(text).key(format!("k{at}")).vector(vector(at * 7 + version, DIM))
    };
    ground.fill(n, true, |at| said(at, 0));
    ground.clock.advance(Span::from_hours(1));
    let then = ground.clock.now();
    ground.clock.advance(Span::from_hours(1));
    ground.fill(n / 10, true, |at| said(at * 10, 1));
    (ground, then)
}

fn against_now(ground: &Ground, past: impl Fn(usize) -> Query, now: impl Fn(usize) -> Query) -> f64 {
    let search = |query: Query| drop(ground.ns.search(query).unwrap());
    // The images are loaded before.
    search(past(0));
    search(now(0));
    median_ms(31, |at| search(past(at))) / median_ms(31, |at| search(now(at)))
}

fn as_of_by_vector(n: usize) -> f64 {
    let (ground, then) = replaced(n);
    let query = |at: usize| Query::vector(vector(at * 13 + 5, DIM)).k(10).effort(Effort::Exact);
    against_now(&ground, |at| query(at).as_of(then), query)
}

fn as_of_by_words(n: usize) -> f64 {
    let (ground, then) = replaced(n);
    let query = |at: usize| Query::text(format!("number {at} near {}", at % 31)).k(10).mode(Mode::Text);
    against_now(&ground, |at| query(at).as_of(then), query)
}

fn tenants(n: usize) -> Ground {
    let ground = Ground::new();
    ground.fill(n, true, |at| {
        let draft = Draft::new(format!("memory {at} of tenant {}", at % 10)).vector(vector(at, DIM));
        draft.metadata(serde_json::json!({ "user_id": format!("u{}", at % 10) }))
    });
    ground.db.namespace("other").unwrap().add("is there already").unwrap();
    ground
}

fn moved(n: usize) -> f64 {
    let ground = tenants(n);
    let work = || drop(ground.db.move_namespace("default", "other", &RenamespaceOptions::default()).unwrap());
    ms(work) / n as f64
}

fn split(n: usize) -> f64 {
    let ground = tenants(n);
    let work = || drop(ground.db.split_namespace("default", &[], &RenamespaceOptions::default()).unwrap());
    ms(work) / n as f64
}

/// Milliseconds of rounds of ten searches and one add, with and without counting, taken by turns.
fn counted(n: usize) -> f64 {
    let grounds = [true, false].map(|track| {
        let ground = Ground::new();
        ground.fill(5_000, true, |at| Draft::new(format!("memory {at}")).vector(vector(at, DIM)));
        (ground, track, 0.0)
    });
    let mut grounds = grounds;
    for round in 0..n {
        for (ground, track, spent) in &mut grounds {
            *spent += ms(|| {
                for at in 0..10 {
                    let query = Query::vector(vector(round * 10 + at, DIM)).k(10).track(*track);
                    ground.ns.search(query).unwrap();
                }
                ground.add(Draft::new(format!("new {round}")));
            });
        }
    }
    // What waits to be counted belongs to the searches.
    for (ground, _, spent) in &mut grounds {
        *spent += ms(|| maintain(ground, Pass::Fold));
    }
    grounds[0].2 / grounds[1].2
}
