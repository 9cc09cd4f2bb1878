//! The figures of the full-text index in `docs/benchmarks.md`, each a ratio that is taken in one run.
//!
//! `cargo bench --bench text --features static-mini` takes all of them; names as arguments take some: `import size
//! queries effort add open`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod corpus;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corpus::{Corpus, Rng};
use oubliette::embed::{Embedder, StaticMini};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Builder, Database, Draft, Durability, Effort, Mode, Namespace, NamespaceName, Query, WriteOptions,
};
use redb::{ReadableDatabase, ReadableTableMetadata, TableHandle};

/// Rows of the store that is searched.
const ROWS: usize = 50_000;
/// Documents that may wait in a tail before writers help.
const TAIL: usize = 4_096;
const QUERIES: usize = 300;
/// Adds with a query behind each.
const ADDS: usize = 150;
/// Tables of the full-text index.
const TABLES: [&str; 4] = ["text_head", "text_doc", "thread", "text_posting"];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let corpus = Corpus::read(&std::env::var_os("OUBLIETTE_DATA").map_or(beside, PathBuf::from));
    println!("texts: sentences of {}\n", corpus.name);
    println!("| figure | ours | compared with | ratio | bound |\n|---|---|---|---|---|");
    if wants("import") {
        import(&corpus);
    }
    if ["size", "queries", "effort", "add", "open"].iter().any(|name| wants(name)) {
        let mut store = Filled::new(&corpus);
        if wants("size") {
            store.size();
        }
        if wants("queries") {
            store.queries("tail posted");
        }
        if wants("effort") {
            store.thorough();
        }
        if wants("add") {
            store.after_adds(&corpus, 7);
        }
        store.fill_tail(&corpus, TAIL - ADDS);
        store.after_adds(&corpus, 8);
        if wants("queries") {
            store.queries("4,096 in the tail");
        }
        if wants("open") {
            store.open();
        }
    }
}

fn row(figure: &str, ours: String, other: String, ratio: f64, bound: &str) {
    println!("| {figure} | {ours} | {other} | {ratio:.2} | {bound} |");
}

/// The p-th percentile.
fn percentile(times: &mut [Duration], p: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * p / 100]
}

fn us(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn time<R>(run: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed())
}

fn builder(policy: &str) -> Builder {
    Database::builder().durability(Durability::Fast).policy(Policy::parse(policy, Syntax::Toml).unwrap())
}

fn drafts(texts: &[String], vectors: &[Vec<f32>]) -> Vec<Draft> {
    texts.iter().zip(vectors).map(|(text, vector)| Draft::new(text.clone()).vector(vector.clone())).collect()
}

fn vectors(texts: &[String]) -> Vec<Vec<f32>> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    StaticMini::new().embed(&texts).unwrap()
}

/// The same bytes and vectors with texts that give many terms, and with texts that give one.
fn import(corpus: &Corpus) {
    let rows = 20_000;
    let texts = corpus.rows(rows, 1);
    let vectors = vectors(&texts);
    let mut rng = Rng(2);
    let bare: Vec<String> = texts.iter().map(|text| unbreakable(text, &mut rng)).collect();
    let import = |policy: &str, texts: &[String]| {
        let folder = tempfile::tempdir().unwrap();
        let db = builder(policy).open(folder.path().join("a")).unwrap();
        let drafts = drafts(texts, &vectors);
        time(|| {
            for part in drafts.chunks(1_000) {
                db.namespace(NamespaceName::default())
                    .unwrap()
                    .add_all(part.to_vec(), &WriteOptions::default())
                    .unwrap();
            }
        })
        .1
    };
    let cases = [
        (
            "`write.vector_match = off`, no graph",
            "write.vector_match = \"off\"\nindex.scan_max = 1000000000000",
            "≤ 1.4",
        ),
        ("the default policy", "", "≤ 1.4"),
    ];
    for (name, policy, bound) in cases {
        let mut pairs: Vec<_> = (0..5).map(|_| (import(policy, &texts), import(policy, &bare))).collect();
        pairs.sort_by(|a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)));
        let (ours, other) = pairs[pairs.len() / 2];
        let rate = |time: Duration| format!("{:.0} rows/s", rows as f64 / time.as_secs_f64());
        row(
            &format!(
                "time of an import of 20,000 rows, `Fast`, batches of 1,000, {name}, against texts of one term (median of 5)"
            ),
            rate(ours),
            rate(other),
            ratio(ours, other),
            bound,
        );
    }
}

/// A word as long as a text, of small letters: the same bytes, and one term.
fn unbreakable(text: &str, rng: &mut Rng) -> String {
    (0..text.len()).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// A store with its text index whole.
struct Filled {
    folder: tempfile::TempDir,
    db: Option<Database>,
    ns: Namespace,
    text_bytes: usize,
    /// Each with its vector.
    questions: Vec<(String, Vec<f32>)>,
    /// Documents in the tail.
    waiting: usize,
}

impl Filled {
    fn new(corpus: &Corpus) -> Self {
        let texts = corpus.rows(ROWS, 3);
        let questions = corpus::questions(&texts, QUERIES, 4);
        let asked = vectors(&questions);
        let folder = tempfile::tempdir().unwrap();
        let db = builder("").open(folder.path().join("a")).unwrap();
        let ns = db.namespace("default").unwrap();
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        for part in drafts(&texts, &vectors(&texts)).chunks(5_000) {
            ns.add_all(part.to_vec(), &options).unwrap();
        }
        db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
        Filled {
            folder,
            db: Some(db),
            ns,
            text_bytes: texts.iter().map(String::len).sum(),
            questions: questions.into_iter().zip(asked).collect(),
            waiting: 0,
        }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a")
    }

    fn size(&mut self) {
        self.db().compact().unwrap();
        self.db.take().unwrap().close().unwrap();
        let tables = table_bytes(&self.path());
        self.db = Some(builder("").open(self.path()).unwrap());
        let all: u64 = tables.iter().map(|(_, stored, rest)| stored + rest).sum();
        let mib = |bytes: f64| format!("{:.2} MiB", bytes / 1_048_576.0);
        row(
            "bytes of the text index of 50,000 rows, positions and pages included, against those of the texts",
            mib(all as f64),
            mib(self.text_bytes as f64),
            all as f64 / self.text_bytes as f64,
            "≤ 0.9",
        );
        let shown = tables
            .iter()
            .map(|(name, stored, rest)| format!("{name} {}+{}", mib(*stored as f64), mib(*rest as f64)));
        println!("| … by table, stored + pages: {} | | | | |", shown.collect::<Vec<_>>().join("; "));
    }

    /// Latencies of the three modes, taken in turns.
    fn queries(&self, state: &str) {
        let ns = &self.ns;
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..4 {
            for (words, vector) in &self.questions {
                let hybrid = Query { text: Some(words.clone()), ..Query::vector(vector.clone()) };
                let asked = [hybrid.clone().mode(Mode::Text), hybrid.clone().mode(Mode::Vector), hybrid];
                for (asked, times) in asked.iter().zip(&mut times) {
                    let (found, took) = time(|| ns.search(asked).unwrap());
                    assert_eq!(found.hits.len(), 10);
                    // The first round warms up.
                    if round > 0 {
                        times.push(took);
                    }
                }
            }
        }
        let [text, vector, hybrid] =
            times.map(|mut times| (percentile(&mut times, 50), percentile(&mut times, 95)));
        let shown = |(p50, p95)| format!("{} ({})", us(p50), us(p95));
        let figure = |mode: &str| {
            format!("{mode} query, 50,000 rows, {state}, p50 (p95) of 3 × 300, against by vector")
        };
        row(&figure("text"), shown(text), shown(vector), ratio(text.0, vector.0), "");
        row(&figure("hybrid"), shown(hybrid), shown(vector), ratio(hybrid.0, vector.0), "");
    }

    /// What share of the hits of the exact hybrid answer one with a recall has, and its time against that of the default.
    fn thorough(&self) {
        let ns = &self.ns;
        let hybrid = |(words, vector): &(String, Vec<f32>), effort| {
            let query = Query { text: Some(words.clone()), ..Query::vector(vector.clone()) }.effort(effort);
            time(|| ns.search(&query).unwrap().hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>())
        };
        let exact: Vec<_> = self.questions.iter().map(|question| hybrid(question, Effort::Exact).0).collect();
        let mut default = None;
        for recall in [0.99, 0.998, 0.98, 0.96] {
            let (mut found, mut times) = (0, Vec::new());
            for (question, exact) in self.questions.iter().zip(&exact) {
                let (hits, took) = hybrid(question, Effort::Recall(recall));
                found += hits.iter().filter(|id| exact.contains(id)).count();
                times.push(took);
            }
            let (share, p50) = (found as f64 / (10 * exact.len()) as f64, percentile(&mut times, 50));
            let default = *default.get_or_insert(p50);
            row(
                &format!(
                    "hits of the exact hybrid answer that one with a recall of {recall} has; its p50 against that of 0.99"
                ),
                format!("{share:.4}, {}", us(p50)),
                us(default),
                ratio(p50, default),
                &format!("share ≥ {recall}"),
            );
        }
    }

    /// Adds rows until so many are in the tail.
    fn fill_tail(&mut self, corpus: &Corpus, waiting: usize) {
        let texts = corpus.rows(waiting - self.waiting, 5);
        let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
        self.db().namespace(&self.ns).unwrap().add_all(drafts(&texts, &vectors(&texts)), &options).unwrap();
        self.waiting = waiting;
    }

    /// A query right after an add against the same once more.
    fn after_adds(&mut self, corpus: &Corpus, seed: u64) {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        let texts = corpus.rows(ADDS, seed);
        for (draft, (words, _)) in drafts(&texts, &vectors(&texts)).into_iter().zip(&self.questions) {
            let asked = Query::text(words.clone()).mode(Mode::Text);
            drop(self.db().namespace(&self.ns).unwrap().search(&asked).unwrap());
            self.db().namespace(&self.ns).unwrap().add(draft).unwrap();
            first.push(time(|| self.db().namespace(&self.ns).unwrap().search(&asked).unwrap()).1);
            again.push(time(|| self.db().namespace(&self.ns).unwrap().search(&asked).unwrap()).1);
        }
        let (from, to) = (self.waiting, self.waiting + ADDS);
        self.waiting = to;
        let (first, again) = (percentile(&mut first, 50), percentile(&mut again, 50));
        row(
            &format!(
                "text query right after an add, tail of {from} to {to}, p50 of {ADDS}, against the same once more"
            ),
            us(first),
            us(again),
            ratio(first, again),
            "",
        );
    }

    /// Open and first query, with a tail that nobody has read yet, against a bare open and a query that follows.
    fn open(&mut self) {
        self.db.take().unwrap().close().unwrap();
        let (mut first, mut later, mut opened) = (Vec::new(), Vec::new(), Vec::new());
        for (words, _) in self.questions.iter().take(9) {
            let asked = Query::text(words.clone()).mode(Mode::Text);
            let (db, took) = time(|| builder("").open(self.path()).unwrap());
            opened.push(took);
            first.push(time(|| db.namespace(&self.ns).unwrap().search(&asked).unwrap()).1);
            later.push(time(|| db.namespace(&self.ns).unwrap().search(&asked).unwrap()).1);
            db.close().unwrap();
        }
        self.db = Some(builder("").open(self.path()).unwrap());
        let [opened, first, later] = [opened, first, later].map(|mut times| percentile(&mut times, 50));
        row(
            "open, then the first text query with 4,096 unposted texts, 50,000 posted (median of 9), against the same once more",
            format!("{} + {}", us(opened), us(first)),
            us(later),
            ratio(opened + first, later),
            "",
        );
    }
}

/// What the tables of the index take: entries, and pages with what is free in them.
fn table_bytes(path: &Path) -> Vec<(&'static str, u64, u64)> {
    let bare = redb::Database::open(path).unwrap();
    let txn = bare.begin_read().unwrap();
    let tables: Vec<_> = txn.list_tables().unwrap().collect();
    TABLES
        .into_iter()
        .map(|name| {
            let table = tables.iter().find(|table| table.name() == name).unwrap();
            let stats = txn.open_untyped_table(table.clone()).unwrap().stats().unwrap();
            (name, stats.stored_bytes(), stats.metadata_bytes() + stats.fragmented_bytes())
        })
        .collect()
}
