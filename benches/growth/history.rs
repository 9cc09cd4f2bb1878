//! What follows from what came before: chains of supersessions, families of messages.

use oubliette::memory::{AuthorKind, Field, SupersedeMode};
use oubliette::{Draft, Kind, Time};

use crate::ground::{Ground, median_ms};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "a chain of n supersessions, one more",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(1.5),
        measure: chain,
    },
    Row {
        name: "an aggregate of n events, forgetting a member",
        unit: "ms",
        sizes: (1_000, 8_000),
        bound: Bound::Growth(1.5),
        measure: aggregate,
    },
];

/// Each memory is superseded by the next, the last first: behind the new one lies the whole chain.
fn chain(n: usize) -> f64 {
    let ground = Ground::new();
    let all = ground.fill(n, false, |at| Draft::new(format!("version {at}")));
    let supersede = |old: usize, new: usize| {
        let (old, new) = (all[old].id.to_string(), all[new].id.to_string());
        ground.ns.supersede_all(&[old], &new, SupersedeMode::Correction, None).unwrap();
    };
    (32..n).rev().for_each(|at| supersede(at - 1, at));
    median_ms(31, |at| supersede(30 - at, 31 - at))
}

fn aggregate(n: usize) -> f64 {
    let ground = Ground::new();
    let now: Time = "2026-01-02T10:00:00Z".parse().unwrap();
    let run = ground.ns.start_import().unwrap();
    let how = |run| oubliette::WriteOptions { run, ..Default::default() };
    let event = |at: usize| {
        let mut draft = Draft::new("build 1 failed on main").kind(Kind::Message);
        draft.fields.author_kind = Field::Value(AuthorKind::Bot);
        draft.fields.channel = Field::Value("ci".to_owned());
        draft.fields.created_at = Some(Time::from_millis(now.as_millis() + at as i64));
        draft
    };
    ground.fill(n, false, event);
    // Each import brings one more member; undoing it takes the member out of the numbers.
    let runs: Vec<_> = (0..9)
        .map(|at| {
            let run = if at == 0 { run } else { ground.ns.start_import().unwrap() };
            ground.ns.add_all(vec![event(n + at)], &how(Some(run))).unwrap();
            run
        })
        .collect();
    median_ms(9, |at| drop(ground.ns.undo(runs[at]).unwrap()))
}
