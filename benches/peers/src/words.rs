//! Search by words beside tantivy: latencies, size of the index, and what is found in conversations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use oubliette::embed::{Embedder, StaticMini};
use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::{Database, Draft, Durability, MemoryId, Mode, NamespaceName, Query, Time, WriteOptions};
use serde_json::Value;
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer};
use tantivy::{Index, IndexWriter, ReloadPolicy, Searcher, TantivyDocument};

use crate::corpus::{self, Corpus};
use crate::dataset::K;

const ROWS: usize = 50_000;
const QUERIES: usize = 300;
/// Passes over the queries; the first one warms up.
const ROUNDS: usize = 6;

/// Tantivy with its usual chain for English, positions, and one segment in a folder, mapped into memory.
struct Tantivy {
    searcher: Searcher,
    parser: QueryParser,
    folder: tempfile::TempDir,
}

impl Tantivy {
    fn filled(texts: &[String]) -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("english")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
        let row = schema.add_u64_field("row", FAST);
        let folder = tempfile::tempdir().unwrap();
        let index = Index::create_in_dir(folder.path(), schema.build()).unwrap();
        let chain = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(40))
            .filter(LowerCaser)
            .filter(Stemmer::new(Language::English))
            .build();
        index.tokenizers().register("english", chain);
        write(&index, (text, row), texts);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
        let searcher = reader.searcher();
        assert_eq!(searcher.segment_readers().len(), 1);
        Tantivy { searcher, parser: QueryParser::for_index(&index, vec![text]), folder }
    }

    /// The rows with the best BM25, best first, of a disjunction of the words.
    fn search(&self, words: &str) -> Vec<u64> {
        let query = self.parser.parse_query(&plain(words)).unwrap();
        let best = self.searcher.search(&query, &TopDocs::with_limit(K).order_by_score()).unwrap();
        let rows = |segment: u32| self.searcher.segment_reader(segment).fast_fields().u64("row").unwrap();
        best.iter().map(|(_, at)| rows(at.segment_ord).first(at.doc_id).unwrap()).collect()
    }

    fn bytes(&self) -> u64 {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }
}

fn write(index: &Index, (text, row): (Field, Field), texts: &[String]) {
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 100_000_000).unwrap();
    for (at, words) in (0_u64..).zip(texts) {
        let mut document = TantivyDocument::default();
        document.add_text(text, words);
        document.add_u64(row, at);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    let segments = index.searchable_segment_ids().unwrap();
    if segments.len() > 1 {
        writer.merge(&segments).wait().unwrap();
    }
    writer.garbage_collect_files().wait().unwrap();
    writer.wait_merging_threads().unwrap();
}

/// Words without what the parser takes for a sign.
fn plain(words: &str) -> String {
    words.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ")
}

fn percentile(times: &mut [Duration], p: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * p / 100]
}

fn us(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

pub fn report(data: &Path) {
    let corpus = Corpus::read(data);
    let texts = corpus.rows(ROWS, 3);
    let questions = corpus::questions(&texts, QUERIES, 4);
    println!("## Words: {ROWS} texts, sentences of {}, {QUERIES} questions\n", corpus.name);
    let tantivy = Tantivy::filled(&texts);
    latencies(&texts, &questions, &tantivy);
    let bytes: usize = texts.iter().map(String::len).sum();
    println!(
        "tantivy: {:.2} MiB of index for {:.2} MiB of text, {:.2} (ours: `cargo bench --bench text -- size`)\n",
        tantivy.bytes() as f64 / 1_048_576.0,
        bytes as f64 / 1_048_576.0,
        tantivy.bytes() as f64 / bytes as f64
    );
    match conversations(data) {
        Some(all) => recall(&all),
        None => println!("recall: skipped, no LoCoMo in {}\n", data.display()),
    }
}

fn latencies(texts: &[String], questions: &[String], tantivy: &Tantivy) {
    let embedder = StaticMini::new();
    let vectors =
        |texts: &[String]| embedder.embed(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder().durability(Durability::Fast).open(folder.path().join("ours.oub")).unwrap();
    let ns = db.namespace("default").unwrap();
    let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let rows: Vec<_> = texts.iter().zip(vectors(texts)).collect();
    for part in rows.chunks(5_000) {
        let drafts = part.iter().map(|(text, vector)| Draft::new((*text).clone()).vector(vector.clone()));
        ns.add_all(drafts.collect(), &options).unwrap();
    }
    db.maintain_with(&MaintainOptions::live().passes([Pass::Index])).unwrap();
    let mut times = [const { Vec::new() }; 4];
    let asked: Vec<_> = questions.iter().zip(vectors(questions)).collect();
    for round in 0..ROUNDS {
        // Each goes through all questions, so that none finds in the caches what the one before has looked at for the same.
        for (mode, times) in
            [Some(Mode::Hybrid), Some(Mode::Vector), Some(Mode::Text), None].iter().zip(&mut times)
        {
            for (words, vector) in &asked {
                let query = Query { text: Some((*words).clone()), ..Query::vector(vector.clone()) };
                let start = Instant::now();
                let found = match mode {
                    Some(mode) => ns.search(&query.mode(*mode)).unwrap().hits.len(),
                    None => tantivy.search(words).len(),
                };
                if round > 0 {
                    times.push(start.elapsed());
                }
                assert_eq!(found, K);
            }
        }
    }
    let names = ["ours, hybrid", "ours, by vector", "ours, by words", "tantivy, by words"];
    println!("| query, k 10, {} calls in turns | p50 | p95 |\n|---|---|---|", questions.len() * (ROUNDS - 1));
    for (name, times) in names.iter().zip(&mut times) {
        println!("| {name} | {} | {} |", us(percentile(times, 50)), us(percentile(times, 95)));
    }
    let [hybrid, vector, text, other] = times.map(|mut times| percentile(&mut times, 50).as_secs_f64());
    println!("| hybrid / (by vector + tantivy), p50 | {:.2} | bound ≤ 1 |", hybrid / (vector + other));
    println!("| by words / tantivy, p50 | {:.2} | |\n", text / other);
}

/// A conversation: its turns, and questions with the turns that answer them.
#[derive(Default)]
struct Conversation {
    turns: Vec<Value>,
    questions: Vec<(String, HashSet<String>)>,
}

fn conversations(data: &Path) -> Option<BTreeMap<String, Conversation>> {
    let lines = |file: &str| -> Option<Vec<Value>> {
        let text = std::fs::read_to_string(data.join(file)).ok()?;
        Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    };
    let mut all: BTreeMap<String, Conversation> = BTreeMap::new();
    let mut of = |line: &Value, take: &mut dyn FnMut(&mut Conversation)| {
        take(all.entry(line["conversation"].as_str().unwrap().to_owned()).or_default());
    };
    for turn in lines("locomo_dev_memories.jsonl")? {
        of(&turn, &mut |conversation| conversation.turns.push(turn.clone()));
    }
    for question in lines("locomo_dev_questions.jsonl")? {
        let evidence: HashSet<String> = question["evidence"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        if !evidence.is_empty() {
            let words = question["question"].as_str().unwrap().to_owned();
            of(&question, &mut |conversation| conversation.questions.push((words.clone(), evidence.clone())));
        }
    }
    Some(all)
}

/// Share of the turns of evidence that are among the first `K`, averaged over the questions.
fn recall(all: &BTreeMap<String, Conversation>) {
    let (mut found, mut asked) = ([0.0; 3], 0);
    let folder = tempfile::tempdir().unwrap();
    let db = Database::builder().durability(Durability::Fast).open(folder.path().join("ours.oub")).unwrap();
    for (name, conversation) in all {
        let ids: Vec<&str> = conversation.turns.iter().map(|turn| turn["id"].as_str().unwrap()).collect();
        let texts: Vec<String> =
            conversation.turns.iter().map(|turn| turn["content"].as_str().unwrap().to_owned()).collect();
        let tantivy = Tantivy::filled(&texts);
        let loose = remember(&db, &format!("{name}-loose"), conversation, false);
        let threads = remember(&db, &format!("{name}-threads"), conversation, true);
        for (words, evidence) in &conversation.questions {
            let ours = |(ns, rows): &(NamespaceName, HashMap<MemoryId, usize>)| -> Vec<usize> {
                let hits = db
                    .namespace(ns)
                    .unwrap()
                    .search(Query::text(words.clone()).mode(Mode::Text).k(K))
                    .unwrap()
                    .hits;
                hits.iter().map(|hit| rows[&hit.id]).collect()
            };
            let theirs = tantivy.search(words).into_iter().map(|row| row as usize).collect();
            for (sum, rows) in found.iter_mut().zip([ours(&loose), ours(&threads), theirs]) {
                let right = rows.iter().filter(|row| evidence.contains(ids[**row])).count();
                *sum += right as f64 / evidence.len() as f64;
            }
            asked += 1;
        }
    }
    let [loose, threads, theirs] = found.map(|sum| sum / f64::from(asked));
    println!(
        "| recall@{K} by words, {asked} questions on {} conversations | | ratio |\n|---|---|---|",
        all.len()
    );
    println!("| ours, no threads | {loose:.4} | {:.3}, bound ≥ 1 |", loose / theirs);
    println!("| ours, sessions as threads | {threads:.4} | {:.3}, bound ≥ 1 |", threads / theirs);
    println!("| tantivy | {theirs:.4} | |\n");
}

/// A namespace of the turns, with the session of each or without.
fn remember(
    db: &Database,
    name: &str,
    conversation: &Conversation,
    threads: bool,
) -> (NamespaceName, HashMap<MemoryId, usize>) {
    let ns: NamespaceName = name.parse().unwrap();
    let draft = |turn: &Value| {
        let draft = Draft::new(turn["content"].as_str().unwrap());
        let at: Time = format!("{}Z", turn["timestamp"].as_str().unwrap()).parse().unwrap();
        if !threads {
            return draft;
        }
        draft.created_at(at).metadata(serde_json::json!({"session": turn["session"]}))
    };
    let options = WriteOptions { no_dedup: true, ..WriteOptions::default() };
    let drafts = conversation.turns.iter().map(draft).collect();
    let outcomes = db.namespace(&ns).unwrap().add_all(drafts, &options).unwrap();
    (ns, outcomes.iter().map(|outcome| outcome.id).zip(0..).collect())
}
