//! Declared indexes that were cut off between two slices.

use std::ops::ControlFlow;

use serde_json::json;
use tempfile::TempDir;

use crate::error::Result;
use crate::maintain::{IndexReport, MaintainOptions, Pass};
use crate::report::CheckOptions;
use crate::{Database, Draft, Filter, Namespace, PageRequest, WriteOptions};

struct Bed {
    folder: TempDir,
    db: Database,
    ns: Namespace,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("m.oub")).unwrap();
        let bed = Bed { folder, ns: db.namespace("default").unwrap(), db };
        bed.add(0..20);
        bed
    }

    fn add(&self, rooms: std::ops::Range<usize>) {
        let draft = |at: usize| {
            let mut draft = Draft::new(format!("memory {at}")).key(format!("k{at}"));
            draft.fields.metadata = Some(json!({ "room": at % 5 }));
            draft
        };
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        self.ns.add_all(rooms.map(draft).collect(), &options).unwrap();
    }

    /// A slice of so many rows, in a commit of its own.
    fn slice(&self, most: usize) -> ControlFlow<u64> {
        let slice = self.db.inner.run_alone(|session| {
            let writer = session.known_writer(self.ns.name())?;
            writer.ledger.go_on_declared(&writer.context, "room", most)
        });
        slice.unwrap()
    }

    /// Begins an index, or its end.
    fn begin(&self, ends: bool) {
        let begun: Result<bool> = self.db.inner.run_alone(|session| {
            let writer = session.known_writer(self.ns.name())?;
            match ends {
                true => writer.ledger.end_declared(&writer.context, "room"),
                false => writer.ledger.declare(&writer.context, "room"),
            }
        });
        assert!(begun.unwrap());
    }

    /// What is there is whole, and a filter finds as much as if there were no index.
    fn check(&self, in_room: usize) {
        let filter = Some(Filter::parse(r#"{"metadata.room": 3}"#).unwrap());
        let page = self.ns.list(&PageRequest { filter, ..PageRequest::default() }).unwrap();
        assert_eq!(page.items.len(), in_room);
        let report = self.db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
        assert!(report.ok, "{report:?}");
    }

    fn reopen(&mut self) {
        self.db.clone().close().unwrap();
        self.db = Database::open(self.folder.path().join("m.oub")).unwrap();
        self.ns = self.db.namespace("default").unwrap();
    }
}

/// Each cut leaves an index that no read asks and every write keeps; whoever comes next goes on with it.
#[test]
fn a_declaration_that_was_cut_off_is_gone_on_with() {
    for cut in 0..6 {
        let mut bed = Bed::new();
        bed.begin(false);
        assert_eq!(bed.slice(100), ControlFlow::Continue(()), "cleared");
        for _ in 0..cut {
            assert_eq!(bed.slice(4), ControlFlow::Continue(()));
            bed.check(4);
        }
        bed.reopen();
        assert_eq!(bed.ns.indexes().unwrap(), [""; 0], "not whole");
        bed.add(20..25);
        bed.ns.forget(crate::Forget::names(["k3", "k4", "k18", "k19"])).unwrap();
        bed.check(3);
        if cut % 2 == 0 {
            assert!(bed.ns.declare_index("room").unwrap() >= 21);
        } else {
            let report = bed.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
            assert_eq!(report.passes[0].report.get::<IndexReport>().unwrap().unfinished_indexes, 1);
        }
        assert_eq!(bed.ns.indexes().unwrap(), ["room"]);
        bed.check(3);
    }
}

/// An index that is being ended answers nothing, and nothing is left of it in the end.
#[test]
fn an_end_that_was_cut_off_is_gone_on_with() {
    let mut bed = Bed::new();
    assert_eq!(bed.ns.declare_index("room").unwrap(), 20);
    bed.begin(true);
    assert_eq!(bed.slice(7), ControlFlow::Continue(()));
    bed.reopen();
    assert_eq!(bed.ns.indexes().unwrap(), [""; 0]);
    bed.check(4);
    bed.db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    assert!(!bed.ns.drop_index("room").unwrap(), "gone");
    bed.check(4);
    // Declared while it ends, it begins anew.
    bed.ns.declare_index("room").unwrap();
    bed.begin(true);
    assert_eq!(bed.slice(7), ControlFlow::Continue(()));
    assert_eq!(bed.ns.declare_index("room").unwrap(), 20);
    bed.check(4);
}
