//! Maintenance that finds nothing to do.

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{Draft, Durability, NamespaceName};

use crate::ground::{Ground, median_ms};
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
