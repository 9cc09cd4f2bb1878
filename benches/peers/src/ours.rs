//! Oubliette behind the same calls as its peers.
//!
//! This version answers every search exactly, from codes and f32 rows, and builds no graph.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oubliette::{Database, Draft, Durability, Hit, MemoryId, Namespace, PageRequest, Query, WriteOptions};

use crate::dataset::{Dataset, K};
use crate::heap;
use crate::peers::Peer;

/// redb's cache while index memory is counted: its least.
const SMALL_CACHE_BYTES: usize = 1 << 20;

pub struct Ours {
    db: Database,
    namespace: Namespace,
    rows: HashMap<MemoryId, u32>,
    hits: Vec<Hit>,
    /// The file goes when this does.
    folder: tempfile::TempDir,
}

impl Ours {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::builder().durability(Durability::Batch).open(file(folder.path())).unwrap();
        Ours { db, namespace: Namespace::default(), rows: HashMap::new(), hits: Vec::new(), folder }
    }

    /// A database of all rows.
    pub fn filled(data: &Dataset) -> Self {
        let mut ours = Ours::new();
        ours.insert(data, 0, data.len());
        ours
    }

    /// Brings all rows into the graph, as `maintain index` does; none when this version has no graph.
    pub fn index(&self, _threads: usize) -> Option<Duration> {
        None
    }

    /// Bytes of the image that the first search loads: redb's cache is small, and full before.
    pub fn image_bytes(self, query: &[f32]) -> isize {
        let Ours { db, namespace, folder, .. } = self;
        db.close().unwrap();
        let open = Database::builder().durability(Durability::Batch).cache_bytes(SMALL_CACHE_BYTES);
        let db = open.open(file(folder.path())).unwrap();
        let page = db.list(&namespace, &PageRequest { limit: 2_000, ..PageRequest::default() }).unwrap();
        for memory in &page.items {
            drop(db.get(&namespace, &memory.id.to_string(), true).unwrap());
        }
        let query = Query::vector(query).k(K);
        // The answer is kept too: ten hits.
        let (_answer, bytes) = heap::kept(|| db.search(&namespace, &query).unwrap());
        bytes
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("ours.oub")
}

impl Peer for Ours {
    fn name(&self) -> String {
        "Oubliette".into()
    }

    fn is_approximate(&self) -> bool {
        false
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let draft = |at: usize| Draft::new(format!("row {at}")).vector(data.row(at).to_vec());
        let mut at = from;
        while at < to {
            let end = to.min(at + 1_000);
            let outcomes =
                self.db.add_all(&self.namespace, (at..end).map(draft).collect(), &options).unwrap();
            self.rows.extend(outcomes.iter().zip(at as u32..).map(|(outcome, row)| (outcome.id, row)));
            at = end;
        }
    }

    fn search(&mut self, query: &[f32], _ef: usize) {
        self.hits = self.db.search(&self.namespace, &Query::vector(query).k(K)).unwrap().hits;
    }

    fn found(&self) -> Vec<u32> {
        self.hits.iter().map(|hit| self.rows[&hit.id]).collect()
    }
}
