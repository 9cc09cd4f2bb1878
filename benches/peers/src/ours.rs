//! Oubliette behind the same calls as its peers: the whole database, with its transactions and its ranking on the
//! vectors in the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Builder, Database, Draft, Durability, Effort, Hit, MemoryId, NamespaceName, PageRequest, Query,
    WriteOptions,
};

use crate::dataset::{Dataset, K};
use crate::heap;
use crate::peers::Peer;

/// redb's cache while index memory is counted: its least.
const SMALL_CACHE_BYTES: usize = 1 << 20;

pub struct Ours {
    db: Database,
    namespace: NamespaceName,
    rows: HashMap<MemoryId, u32>,
    hits: Vec<Hit>,
    /// The file goes when this does.
    folder: tempfile::TempDir,
}

impl Ours {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = builder().open(file(folder.path())).unwrap();
        Ours { db, namespace: NamespaceName::default(), rows: HashMap::new(), hits: Vec::new(), folder }
    }

    /// A database of all rows, in its graph.
    pub fn filled(data: &Dataset) -> Self {
        let mut ours = Ours::new();
        ours.insert(data, 0, data.len());
        ours.index(1);
        ours
    }

    /// Brings all rows into the graph, as `maintain index` does.
    pub fn index(&self, threads: usize) -> Option<Duration> {
        let options = MaintainOptions { threads: Some(threads), ..MaintainOptions::live() };
        let start = Instant::now();
        let report = self.db.maintain_with(&options.clone().passes([Pass::Index])).unwrap();
        assert!(report.passes.iter().all(|pass| pass.left == 0 && pass.skipped == 0));
        Some(start.elapsed())
    }

    /// Bytes of the image that the first search loads: redb's cache is small, and full before.
    pub fn image_bytes(self, query: &[f32]) -> isize {
        let Ours { db, namespace, folder, .. } = self;
        db.close().unwrap();
        let open = builder().cache_bytes(SMALL_CACHE_BYTES);
        let db = open.open(file(folder.path())).unwrap();
        let page = db
            .namespace(&namespace)
            .unwrap()
            .list(&PageRequest { limit: 2_000, ..PageRequest::default() })
            .unwrap();
        for memory in &page.items {
            drop(db.namespace(&namespace).unwrap().look_up(&memory.id.to_string(), true).unwrap());
        }
        let query = Query::vector(query).k(K);
        // The answer is kept too: ten hits.
        let (_answer, bytes) = heap::kept(|| db.namespace(&namespace).unwrap().search(&query).unwrap());
        bytes
    }
}

/// A graph from the first row on, and no help of writers: what is linked is linked by [`Ours::index`].
fn builder() -> Builder {
    let forced = "index.scan_max = 0\nindex.tail_min = 1000000000";
    let policy = Policy::parse(forced, Syntax::Toml).unwrap();
    Database::builder().durability(Durability::Batch).policy(policy)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("ours.oub")
}

impl Peer for Ours {
    fn name(&self) -> String {
        "Oubliette".into()
    }

    fn is_approximate(&self) -> bool {
        true
    }

    fn insert(&mut self, data: &Dataset, from: usize, to: usize) {
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        let draft = |at: usize| Draft::new(format!("row {at}")).vector(data.row(at).to_vec());
        let mut at = from;
        while at < to {
            let end = to.min(at + 1_000);
            let outcomes = self
                .db
                .namespace(&self.namespace)
                .unwrap()
                .add_all((at..end).map(draft).collect(), &options)
                .unwrap();
            self.rows.extend(outcomes.iter().zip(at as u32..).map(|(outcome, row)| (outcome.id, row)));
            at = end;
        }
    }

    fn search(&mut self, query: &[f32], ef: usize) {
        let query = Query::vector(query).k(K).effort(Effort::Ef(ef));
        self.hits = self.db.namespace(&self.namespace).unwrap().search(&query).unwrap().hits;
    }

    fn found(&self) -> Vec<u32> {
        self.hits.iter().map(|hit| self.rows[&hit.id]).collect()
    }
}
