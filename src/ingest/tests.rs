//! Keys of messages are compared only with those that the same normalizers made.

// DEDUP-1.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::engine::Database;
use crate::model::{AuthorKind, Decision, Draft, Field, Kind, Outcome};
use crate::store::disk::Folder;
use crate::store::{
    Durability, FamilyRow, Id, MessageRows, NsId, Options, Read, Rows, Store, Table, Walk, last_id,
};

const SECRET: [u8; 32] = [7; 32];

/// Adds messages of a program, in order.
fn add(path: &Path, texts: &[&str]) -> Vec<Outcome> {
    let db = Database::builder().secret(SECRET).open(path).unwrap();
    let message = |text: &&str| {
        let mut draft = Draft::new(*text).kind(Kind::Message);
        draft.fields.author_kind = Field::from(Some(AuthorKind::Bot));
        db.namespace("default").unwrap().add(draft).unwrap()
    };
    let outcomes = texts.iter().map(message).collect();
    db.close().unwrap();
    outcomes
}

/// Changes the families of a file, and gives them as they were.
fn families(path: &Path, change: impl Fn(&mut FamilyRow)) -> Vec<FamilyRow> {
    let options = Options {
        path: path.to_owned(),
        cache_bytes: 1 << 20,
        shared: false,
        read_only: false,
        create: false,
        paranoid: false,
        secret: SECRET,
        opener: [1; 8],
    };
    let store = Store::open(Arc::new(Folder), options).unwrap();
    let mut before = Vec::new();
    store
        .write(Durability::Safe, |tx| {
            let ns = tx.namespace("default")?.unwrap().number;
            let mut ids: Vec<Id> = Vec::new();
            tx.walk(Table::Family, &Walk::all(), &mut |key, _| {
                ids.push(*last_id(Table::Family, key)?.as_bytes());
                Ok(ControlFlow::Continue(()))
            })?;
            for id in ids {
                let mut row = tx.family(NsId(ns), &id)?.unwrap();
                before.push(row.clone());
                change(&mut row);
                tx.forged().put_family(NsId(ns), &id, &row)?;
            }
            Ok(())
        })
        .unwrap();
    before
}

/// Whether a message joins the family of `first`, of whose row `change` has made another.
fn joins(first: &str, then: &str, change: fn(&mut FamilyRow)) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    assert_eq!(add(&path, &[first])[0].decision, Decision::Stored);
    let before = families(&path, change);
    let ids: Vec<_> = before.iter().map(|row| (&*row.normalizer, &*row.sim_normalizer)).collect();
    assert_eq!(ids, [("msg-1", "sh-1")]);
    matches!(add(&path, &[then])[0].decision, Decision::Aggregated { .. })
}

#[test]
fn dedup1_families_of_other_normalizers_take_no_member() {
    let (first, equal, near) =
        ("build 123 failed on main", "build 123 failed on main", "build 456 failed on main");
    let same = |_: &mut FamilyRow| ();
    let other_text = |row: &mut FamilyRow| row.normalizer = "msg-2".to_owned();
    let other_hash = |row: &mut FamilyRow| row.sim_normalizer = "sh-2".to_owned();
    assert!(joins(first, equal, same) && joins(first, near, same));
    assert!(!joins(first, equal, other_text), "the exact key is of the text");
    assert!(!joins(first, near, other_text), "and so are the tokens");
    assert!(joins(first, equal, other_hash), "the exact key is not of the SimHash");
    assert!(!joins(first, near, other_hash));
}
