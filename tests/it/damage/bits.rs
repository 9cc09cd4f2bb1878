//! Damaged one-bit codes of a vector index: an index that is large enough to have them is none of the store of the other tests.

use std::path::{Path, PathBuf};

use oubliette::clock::ManualClock;
use oubliette::policy::{Policy, Syntax};
use oubliette::report::CheckOptions;
use oubliette::{Database, Draft, Durability, Effort, Forget, Query, Time, WriteOptions};

use super::store::{WAYS, damaged, overwrite, tables, vector};

const TABLES: [&str; 2] = ["bits", "bits_head"];
/// More slots than the number from which on an index has one-bit codes.
const ROWS: usize = 4_200;

fn open(path: &Path) -> Database {
    let clock = ManualClock::at("2026-01-02T10:00:00Z".parse::<Time>().unwrap());
    let builder = Database::builder().clock(clock).secret([7; 32]).durability(Durability::Batch);
    let policy = Policy::parse("[write]\nvector_match = \"off\"", Syntax::Toml).unwrap();
    builder.policy(policy).open(path).unwrap()
}

fn store(folder: &Path) -> PathBuf {
    let path = folder.join("store.oub");
    let db = open(&path);
    let team = db.namespace("default").unwrap();
    let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let drafts = (0..ROWS).map(|at| Draft::new(format!("row {at}")).key(format!("k{at}")).vector(vector(at)));
    team.add_all(drafts.collect(), &how).unwrap();
    db.close().unwrap();
    path
}

/// Whether each of some rows is the first that is found by its own vector, and the regimes of the searches.
fn searched(db: &Database, skipped: usize) -> Vec<&'static str> {
    let team = db.namespace("default").unwrap();
    let mut regimes = Vec::new();
    for at in (0..ROWS).step_by(419).filter(|at| *at != skipped) {
        for effort in [Effort::default(), Effort::default(), Effort::Exact] {
            let found = team.search(Query::vector(vector(at)).k(3).effort(effort)).unwrap();
            assert_eq!(found.hits[0].key.as_deref(), Some(format!("k{at}").as_str()));
            if effort != Effort::Exact {
                regimes.push(found.plan.regime);
            }
        }
    }
    regimes
}

fn deep(db: &Database) -> Vec<String> {
    let report = db.check(&CheckOptions { deep: true, ..CheckOptions::default() }).unwrap();
    report.findings.into_iter().map(|finding| finding.table.to_owned()).collect()
}

#[test]
fn damaged_one_bit_codes_hide_nothing_and_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let whole = store(folder.path());
    let rows = tables(&whole);
    for (number, table) in TABLES.into_iter().enumerate() {
        for (way_number, way) in WAYS.into_iter().enumerate() {
            let rows = &rows[table];
            let at = rows.len() / 2;
            // The ways alternate between the tables, because each case writes the store three times.
            if way_number % 2 != number {
                continue;
            }
            let path = folder.path().join(format!("{number}-{way_number}.oub"));
            std::fs::copy(&whole, &path).unwrap();
            overwrite(&path, table, &rows[at].0, &damaged(way, at, rows));
            let db = open(&path);
            let found = deep(&db);
            // A value of another length makes the sum of all bytes wrong as well.
            let is_told = |found: &String| TABLES.contains(&found.as_str()) || found == "meta";
            assert!(found.iter().any(|found| found != "meta") && found.iter().all(is_told), "{found:?}");
            searched(&db, usize::MAX);

            // A copy goes past them, and has others.
            let beside = folder.path().join(format!("{number}-{way_number}.copy"));
            let report = db.backup(&beside).unwrap();
            assert!(report.whole && report.damaged.iter().any(|row| TABLES.contains(&row.table)));
            let copy = open(&beside);
            assert_eq!((deep(&copy), searched(&copy, usize::MAX).contains(&"bits")), (vec![], true));
            copy.close().unwrap();

            // A memory whose slot has such a code is forgotten, and nothing else is found in its place.
            let doomed = 419 * 5;
            let done =
                db.namespace("default").unwrap().forget(Forget::names([format!("k{doomed}")])).unwrap();
            assert_eq!(done.forgotten, 1);
            searched(&db, doomed);
            db.reindex().unwrap();
            assert!(deep(&db).is_empty(), "{table} {way}: {:?}", deep(&db));
            assert!(searched(&db, doomed).contains(&"bits"));
            db.close().unwrap();
        }
    }
}
