//! Upkeep beside `drop_namespace`: what is dropped stays gone.

use std::sync::atomic::{AtomicBool, Ordering};

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{Draft, NamespaceName};

use super::maintained;
use crate::world::{DIM, World, axis, text};

/// What a thread beside the drops does again and again.
fn beside(work: impl Fn(&World) + Sync) {
    let world = World::with(maintained);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                work(&world);
            }
        });
        for round in 0..25 {
            let all: Vec<NamespaceName> =
                (0..8).map(|at| format!("t{round}-{at}").parse().unwrap()).collect();
            for ns in &all {
                let drafts: Vec<Draft> =
                    (0..3).map(|at| text(&format!("row {at}")).vector(axis(at % DIM))).collect();
                world.db.namespace(ns).unwrap().add_all(drafts, &oubliette::WriteOptions::default()).unwrap();
            }
            for ns in &all {
                world.db.drop_namespace(ns).unwrap();
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    world.check();
}

/// A11: the namespace of a rebuild is looked up again in its transaction.
#[test]
fn a_rebuild_beside_drops_leaves_no_orphans() {
    beside(|world| assert!(world.db.reindex().is_ok()));
}

/// A11: so are those of the passes over indexes.
#[test]
fn passes_beside_drops_leave_no_orphans() {
    let passes = [Pass::Index, Pass::Repair, Pass::Embed];
    beside(move |world| assert!(world.db.maintain_with(&MaintainOptions::live().passes(passes)).is_ok()));
}
