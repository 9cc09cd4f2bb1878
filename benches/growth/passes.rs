//! Maintenance that finds nothing to do, and what a plan costs.

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::Syntax;
use oubliette::{Draft, Durability, Kind, NamespaceName};

use crate::ground::{Ground, median_ms, ms};
use crate::{Bound, Row};

pub const ROWS: &[Row] = &[
    Row {
        name: "idle maintenance of n namespaces, a namespace",
        unit: "ms",
        sizes: (50, 200),
        bound: Bound::Most(1.0),
        measure: idle,
    },
    Row {
        name: "what five idle runs over n namespaces leave in the compacted file",
        unit: "KiB",
        sizes: (50, 200),
        bound: Bound::Most(4.0),
        measure: idle_bytes,
    },
    Row {
        name: "the plan of a fuzzy collapse of n reports with a name each, a report",
        unit: "ms",
        sizes: (2_000, 16_000),
        bound: Bound::Growth(2.0),
        measure: fuzzy_plan,
    },
];

fn tenants(n: usize) -> Ground {
    let ground = Ground::with(|builder| builder.durability(Durability::Safe));
    ground
        .db
        .batch(|batch| {
            for at in 0..n {
                let tenant: NamespaceName = format!("tenant-{at}").parse()?;
                batch.add(&tenant, Draft::new("a memory"))?;
            }
            Ok(())
        })
        .unwrap();
    ground
}

fn maintain(ground: &Ground) {
    ground.db.maintain_with(&MaintainOptions::live().passes([Pass::Collapse, Pass::NearDuplicates])).unwrap();
}

fn idle(n: usize) -> f64 {
    let ground = tenants(n);
    median_ms(5, |_| maintain(&ground)) / n as f64
}

fn idle_bytes(n: usize) -> f64 {
    let ground = tenants(n);
    let before = ground.db.compact().unwrap().bytes_after;
    (0..5).for_each(|_| maintain(&ground));
    let after = ground.db.compact().unwrap().bytes_after;
    after.saturating_sub(before) as f64 / 1024.0
}

/// Seven words that all have, and one that only one has: no two are near.
fn fuzzy_plan(n: usize) -> f64 {
    let ground = Ground::new();
    ground.db.set_policy("collapse.fuzzy = true", Syntax::Toml).unwrap();
    let letters = |at: usize| {
        [at / 2_197, at / 169 % 13, at / 13 % 13, at % 13].map(|at| b"bcdfghjklmnpr"[at % 13] as char)
    };
    ground.fill(n, true, |at| {
        let name: String = letters(at).into_iter().collect();
        Draft::new(format!("Gateway status: 5 apps pending alert provider latency x{name}"))
            .kind(Kind::Profile)
    });
    let plan = MaintainOptions::default().passes([Pass::Collapse]);
    ms(|| drop(ground.db.maintain_with(&plan).unwrap())) / n as f64
}
