//! SQLite with sqlite-vec 0.1.9: an exact scan of a `vec0` table, as its crate compiles it (without AVX).

#![allow(unsafe_code, reason = "an extension of SQLite is registered through C")]

use rusqlite::{Connection, ffi, params};

use super::Peer;
use crate::dataset::{DIM, Dataset, K};

pub struct Sqlite {
    db: Connection,
    found: Vec<u32>,
    /// The file goes when this does.
    _folder: tempfile::TempDir,
}

type Entry = unsafe extern "C" fn(
    *mut ffi::sqlite3,
    *mut *mut std::ffi::c_char,
    *const ffi::sqlite3_api_routines,
) -> i32;

impl Sqlite {
    pub fn new() -> Self {
        // SAFETY: the function has the signature of an extension's entry point; the crate declares it without.
        unsafe {
            let entry = std::mem::transmute::<*const (), Entry>(sqlite_vec::sqlite3_vec_init as *const ());
            assert_eq!(ffi::sqlite3_auto_extension(Some(entry)), ffi::SQLITE_OK);
        }
        let folder = tempfile::tempdir().unwrap();
        let db = Connection::open(folder.path().join("vectors.sqlite")).unwrap();
        // A cache that holds the whole table. The distance is L2, which orders unit vectors as the cosine does and is
        // cheaper here.
        db.execute_batch(&format!(
            "pragma cache_size = -262144; create virtual table rows using vec0(vector float[{DIM}])"
        ))
        .unwrap();
        Sqlite { db, found: Vec::new(), _folder: folder }
    }

    pub fn version(&self) -> String {
        self.db
            .query_row("select sqlite_version() || ', sqlite-vec ' || vec_version()", [], |row| row.get(0))
            .unwrap()
    }
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|v| v.to_le_bytes()).collect()
}

impl Peer for Sqlite {
    fn name(&self) -> String {
        "SQLite with sqlite-vec".into()
    }

    fn is_approximate(&self) -> bool {
        false
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        let transaction = self.db.transaction().unwrap();
        let mut insert =
            transaction.prepare_cached("insert into rows(rowid, vector) values (?1, ?2)").unwrap();
        for at in from..to {
            insert.execute(params![at as i64, bytes(data.row(at))]).unwrap();
        }
        drop(insert);
        transaction.commit().unwrap();
    }

    fn search(&mut self, query: &[f32], _ef: usize) {
        let text = "select rowid from rows where vector match ?1 and k = ?2 order by distance";
        let mut search = self.db.prepare_cached(text).unwrap();
        let rows = search.query_map(params![bytes(query), K as i64], |row| row.get::<_, i64>(0)).unwrap();
        self.found = rows.map(|row| row.unwrap() as u32).collect();
    }

    fn found(&self) -> Vec<u32> {
        self.found.clone()
    }
}
