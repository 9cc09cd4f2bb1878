//! The floor of removals: the same numbers of rows in bare redb.

use std::time::Instant;

use redb::{Database, TableDefinition, WriteTransaction};
use tempfile::TempDir;

/// Tables in which a memory has a row by its id or its instant, so that the oldest stand together.
const ORDERED: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
/// Tables in which a memory has a row by a hash or by a rare word.
const SCATTERED: [&str; 2] = ["m", "n"];
/// Tables to which a removal adds a row at the end, and the table of its hash.
const TOLD: [&str; 3] = ["o", "p", "q"];
const HASHES: &str = "r";
/// Rows that each commit writes again.
const HEADS: (&str, u64) = ("s", 14);
/// Bytes of a row.
const ROW: [u8; 60] = [7; 60];

type Rows<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

/// A store of bare redb with the rows of `n` memories.
pub struct Bare {
    db: Database,
    removed: u64,
    added: u64,
    _folder: TempDir,
}

fn scattered(of: u64) -> [u8; 8] {
    (of + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn put(tx: &WriteTransaction, table: &str, keys: impl IntoIterator<Item = [u8; 8]>) {
    let mut rows = tx.open_table(Rows::new(table)).unwrap();
    for key in keys {
        rows.insert(key.as_slice(), ROW.as_slice()).unwrap();
    }
}

fn take(tx: &WriteTransaction, table: &str, keys: impl IntoIterator<Item = [u8; 8]>) {
    let mut rows = tx.open_table(Rows::new(table)).unwrap();
    for key in keys {
        assert!(rows.remove(key.as_slice()).unwrap().is_some());
    }
}

/// Takes the rows of old memories away, hashes in their order, and tells that they are gone.
fn remove(tx: &WriteTransaction, gone: std::ops::Range<u64>) {
    let mut hashes: Vec<[u8; 8]> = gone.clone().map(scattered).collect();
    hashes.sort_unstable();
    ORDERED.iter().for_each(|table| take(tx, table, gone.clone().map(u64::to_be_bytes)));
    SCATTERED.iter().for_each(|table| take(tx, table, hashes.iter().copied()));
    TOLD.iter().for_each(|table| put(tx, table, gone.clone().map(u64::to_be_bytes)));
    put(tx, HASHES, hashes.iter().copied());
}

impl Bare {
    pub fn new(n: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::builder().set_cache_size(256 << 20).create(folder.path().join("bare")).unwrap();
        let tx = db.begin_write().unwrap();
        ORDERED.iter().for_each(|table| put(&tx, table, (0..n).map(u64::to_be_bytes)));
        SCATTERED.iter().for_each(|table| put(&tx, table, (0..n).map(scattered)));
        tx.commit().unwrap();
        Bare { db, removed: 0, added: n, _folder: folder }
    }

    /// One durable commit, in two phases, with the rows of a new memory, and with those of `removed` old ones that go. Returns
    /// seconds.
    pub fn add(&mut self, removed: u64) -> f64 {
        let begun = Instant::now();
        let mut tx = self.db.begin_write().unwrap();
        tx.set_two_phase_commit(true);
        let (new, gone) = (self.added, self.removed..self.removed + removed);
        ORDERED.iter().for_each(|table| put(&tx, table, [new.to_be_bytes()]));
        SCATTERED.iter().for_each(|table| put(&tx, table, [scattered(new)]));
        put(&tx, HEADS.0, (0..HEADS.1).map(u64::to_be_bytes));
        if removed > 0 {
            remove(&tx, gone.clone());
        }
        tx.commit().unwrap();
        (self.added, self.removed) = (new + 1, gone.end);
        begun.elapsed().as_secs_f64()
    }

    /// Removes old memories, 500 in a commit without a sync.
    pub fn remove(&mut self, count: u64) {
        let until = self.removed + count;
        while self.removed < until {
            let gone = self.removed..until.min(self.removed + 500);
            let mut tx = self.db.begin_write().unwrap();
            tx.set_durability(redb::Durability::None).unwrap();
            remove(&tx, gone.clone());
            tx.commit().unwrap();
            self.removed = gone.end;
        }
    }
}
