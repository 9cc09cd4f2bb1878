//! Scores of texts are those of BM25 over the visible texts, computed one by one, wherever their terms lie.

use super::*;
use crate::index::text::upkeep::{is_loose, join, post, waiting};
use crate::index::text::{TextAsk, Window, erase_postings, lexical};
use crate::model::{Content, Vitals};
use crate::store::{TextId, TextRows, Walk};
use crate::text::{Analyzer, Clause};

const K1: f64 = 1.0;
const B: f64 = 0.5;
const FUNCTION_WORDS: f32 = 0.25;
const WORDS: [&str; 18] = [
    "lamp",
    "lamps",
    "hall",
    "the",
    "of",
    "run",
    "running",
    "getUserName",
    "user name",
    "naïve",
    "今日は",
    "zebra",
    "42",
    "x-ray",
    "don't",
    "❤️",
    "what is",
    "github",
];
const QUERIES: [&str; 13] = [
    "lamp",
    "the lamp of the hall",
    "\"user name\"",
    "\"the lamp\" zebra",
    "run*",
    "running* lamps*",
    "la* \"lamp hall\"",
    "getusername naive",
    "今日は",
    "what of the",
    "x-ray ❤️ 42",
    "nowhere",
    "nowhere lamp lamp running",
];

/// A text as the oracle knows it.
#[derive(Clone, Debug)]
struct Row {
    text: TextId,
    doc: u32,
    id: MemoryId,
    words: String,
    thread: Option<(String, Time)>,
    vitals: Vitals,
    /// Terms with their positions, each once.
    terms: BTreeSet<(String, u32)>,
}

impl Row {
    fn seen(&self, now: i64) -> bool {
        (self.vitals.times.from().as_millis()..self.vitals.times.until().as_millis()).contains(&now)
    }

    /// How often it holds a clause.
    fn often(&self, clause: &Clause) -> usize {
        let has = |term: &String, position: u32| self.terms.contains(&(term.clone(), position));
        match clause {
            Clause::Term { term } => self.terms.iter().filter(|(found, _)| found == term).count(),
            Clause::Prefix { prefix, word } => {
                let begins = |found: &String| found.starts_with(prefix) || word.as_ref() == Some(found);
                self.terms.iter().filter(|(found, _)| begins(found)).count()
            }
            Clause::Phrase { terms } => (0..self.terms.len() as u32 + 64)
                .filter(|start| terms.iter().all(|(term, behind)| has(term, start + behind)))
                .count(),
        }
    }
}

/// A file with full-text indexes alone, the published state, and what should be in them.
struct Texts {
    _folder: tempfile::TempDir,
    store: Store,
    published: Published,
    rows: Vec<Row>,
    added: u32,
    analyzer: Analyzer,
}

fn text(part: u32) -> TextId {
    TextId { ns: NS, part: PartId(part) }
}

impl Texts {
    fn new(budget: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            path: folder.path().join("texts.oub"),
            cache_bytes: 8 << 20,
            shared: false,
            read_only: false,
            create: true,
            paranoid: false,
            secret: [7; 32],
            opener: [1; 8],
        };
        let store = Store::open(Arc::new(Folder), options).unwrap();
        let snapshot = Arc::new(store.snapshot().unwrap());
        let clock = snapshot.clock().unwrap();
        let published = Published::first(snapshot, &clock, ViewBudget::new(budget));
        let analyzer = Analyzer::from_id(crate::limits::ANALYZER).unwrap();
        Texts { _folder: folder, store, published, rows: Vec::new(), added: 0, analyzer }
    }

    fn commit<R>(&mut self, change: impl FnOnce(&mut Truth<'_, '_>) -> Result<R, crate::Error>) -> R {
        let written = self.store.write(Durability::Batch, |tx| {
            let mut clock = tx.clock()?;
            clock.commit += 1;
            clock.at_ms = clock.commit as i64;
            tx.put_clock(&clock)?;
            change(&mut tx.forged())
        });
        let written = written.unwrap();
        let snapshot = Arc::new(self.store.snapshot().unwrap());
        let clock = snapshot.clock().unwrap();
        let linked = BTreeMap::new();
        self.published = self.published.next(snapshot, &clock, &changes(&written.staged, &[], &linked));
        written.value
    }

    /// Forgets every image.
    fn reload(&mut self, budget: usize) {
        let snapshot = Arc::new(self.store.snapshot().unwrap());
        let clock = snapshot.clock().unwrap();
        self.published = Published::first(snapshot, &clock, ViewBudget::new(budget));
    }

    fn add(&mut self, text: TextId, words: &str, thread: Option<(String, Time)>, times: Times) {
        let id = id(self.added);
        self.added += 1;
        let mut vitals = Vitals::new(words, Time::from_millis(0));
        vitals.times = times;
        let of_doc = (vitals.clone(), thread.clone());
        let doc = self.commit(move |tx| {
            tx.put_content(NS, id, &Content::new(words))?;
            tx.claim_doc(text, id, &of_doc.0, of_doc.1, crate::limits::ANALYZER)
        });
        let mut terms = BTreeSet::new();
        self.analyzer.analyze(words, &mut |term, position| {
            terms.insert((term.to_owned(), position));
        });
        self.rows.push(Row { text, doc, id, words: words.to_owned(), thread, vitals, terms });
    }

    /// How many texts of an index are found by the order of their ids.
    fn found_by_id(&self, part: u32) -> usize {
        let (text, words, now) = (Some(text(part)), "lamp", Time::from_millis(0));
        let ask = TextAsk {
            ns: NS,
            text,
            words,
            now,
            all: false,
            only_weights: false,
            function_words: FUNCTION_WORDS,
            stop: Stop::NEVER,
        };
        let found = lexical(&self.published, ask).unwrap();
        self.rows.iter().filter(|row| found.doc_of(row.id) == found.doc(row.text, row.doc)).count()
    }

    fn remove(&mut self, at: usize) {
        let Row { text, doc, id, words, thread, .. } = self.rows.remove(at);
        self.commit(|tx| {
            thread.iter().try_for_each(|(thread, at)| tx.leave_thread(text, doc, thread, *at))?;
            if tx.release_doc(text, doc, id)? {
                erase_postings(tx, text, doc, &words)?;
            }
            tx.delete_there(Table::Memory, &keys::memory(NS, id)).map(|gone| assert!(gone))
        });
    }

    fn retime(&mut self, at: usize, times: Times) {
        let row = &mut self.rows[at];
        row.vitals.times = times;
        let row = row.clone();
        self.commit(|tx| tx.refresh_doc(row.text, row.doc, &row.vitals));
    }

    fn post(&mut self, text: TextId, most: usize) {
        if let Some(edit) = post(&self.published, text, most).unwrap() {
            assert!(self.commit(|tx| edit.write(tx)));
        }
    }

    fn join(&mut self, text: TextId, most: usize) {
        self.commit(|tx| join(tx, text, most));
    }

    /// Compares everything that a query says with the definition.
    fn compare(&self, part: Option<u32>, words: &str, now: i64, window: Window) {
        let ask = TextAsk {
            ns: NS,
            text: part.map(text),
            words,
            now: Time::from_millis(now),
            all: false,
            only_weights: false,
            function_words: FUNCTION_WORDS,
            stop: Stop::NEVER,
        };
        let found = lexical(&self.published, ask).unwrap();
        let all: Vec<&Row> =
            self.rows.iter().filter(|row| part.is_none_or(|part| row.text == text(part))).collect();
        let visible: Vec<&Row> = all.iter().copied().filter(|row| row.seen(now)).collect();
        let oracle = Oracle::new(&self.analyzer, words, &visible);
        let shown = format!("{words:?} in {part:?} at {now}");
        if !all.is_empty() {
            assert_eq!(found.docs, visible.len() as u64, "{shown}");
            close(f64::from(found.mass), oracle.mass, &shown);
        }
        let mut scored = BTreeSet::new();
        let mut docs = Vec::new();
        for row in &all {
            let at = found.doc(row.text, row.doc);
            assert_eq!(at.is_some(), row.seen(now), "{shown}: document {} of {:?}", row.doc, row.text);
            let Some(at) = at else { continue };
            assert_eq!(found.id(at), Some(row.id));
            assert!(found.doc_of(row.id).is_none_or(|guess| guess == at), "{shown}: {:?}", row.id);
            let expected = oracle.share(&[(row, 1.0)], now);
            close(f64::from(found.share(at)), expected, &format!("{shown}: {:?}", row.words));
            if expected > 0.0 {
                scored.insert(at);
            }
            docs.push((at, *row));
        }
        let alone: Vec<_> = docs.iter().map(|(at, _)| found.share(*at).to_bits()).collect();
        let mut whole = found.top(10_000);
        let among_the_best = docs.iter().map(|(at, _)| found.share(*at).to_bits());
        assert!(among_the_best.eq(alone), "{shown}: the same bits, whichever way a score is worked out");
        whole.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        assert_eq!(whole.iter().map(|(_, at)| *at).collect::<BTreeSet<_>>(), scored, "{shown}");
        for most in [1, 3, 16, 50] {
            let mut best = found.top(most);
            best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            assert_eq!(best, whole[..most.min(whole.len())], "{shown}: the {most} best");
        }
        let asked: Vec<_> = docs.iter().map(|(at, _)| *at).collect();
        for ((_, row), found) in docs.iter().zip(found.evidence(&asked, window)) {
            let around = self.around(row, window, oracle.mean, now);
            let shown = format!("{shown}, with neighbours: {:?}", row.words);
            close(f64::from(found), oracle.share(&around, now), &shown);
        }
    }

    /// A text and its visible neighbours in its thread, with the share that each lends.
    fn around<'r>(&'r self, row: &'r Row, window: Window, mean: f64, now: i64) -> Vec<(&'r Row, f64)> {
        let mut all = vec![(row, 1.0)];
        let Some((thread, _)) = &row.thread else { return all };
        let mut turns: Vec<&Row> = self
            .rows
            .iter()
            .filter(|other| other.text == row.text && other.seen(now))
            .filter(|other| other.thread.as_ref().is_some_and(|(other, _)| other == thread))
            .collect();
        turns.sort_by_key(|turn| (turn.thread.as_ref().map(|(_, at)| *at), turn.doc));
        let here = turns.iter().position(|turn| turn.doc == row.doc).unwrap();
        let ratio = row.terms.len() as f64 / mean;
        let gate = 2.0 * ratio / (1.0 + ratio);
        for (place, turn) in turns.iter().enumerate() {
            let steps = place.abs_diff(here);
            if (1..=window.reach).contains(&steps) {
                let share = f64::from(window.share) * gate * f64::from(window.decay).powi(steps as i32 - 1);
                all.push((turn, share));
            }
        }
        all
    }
}

/// BM25 as `score.rs` writes it down.
struct Oracle {
    clauses: Vec<(Clause, f64)>,
    mean: f64,
    mass: f64,
}

impl Oracle {
    fn new(analyzer: &Analyzer, words: &str, visible: &[&Row]) -> Self {
        let docs = visible.len() as f64;
        let terms: usize = visible.iter().map(|row| row.terms.len()).sum();
        let mut clauses = Vec::new();
        for (clause, _) in analyzer.parse_query(words).clauses {
            let holders = visible.iter().filter(|row| row.often(&clause) > 0).count() as f64;
            let mut weight = (1.0 + (docs - holders + 0.5) / (holders + 0.5)).ln();
            if matches!(&clause, Clause::Term { term } if analyzer.is_function_word(term)) {
                weight *= f64::from(FUNCTION_WORDS);
            }
            clauses.push((clause, weight));
        }
        let mass = clauses.iter().map(|(_, weight)| weight).sum();
        Oracle { clauses, mean: (terms as f64 / docs.max(1.0)).max(1.0), mass }
    }

    /// What texts say together, each with a share of its terms.
    fn share(&self, lenders: &[(&Row, f64)], now: i64) -> f64 {
        let mut score = 0.0;
        for (clause, weight) in &self.clauses {
            let density: f64 = lenders
                .iter()
                .filter(|(row, _)| row.seen(now))
                .map(|(row, share)| {
                    let length = 1.0 - B + B * (row.terms.len() as f64 / self.mean).min(2.0);
                    share * row.often(clause) as f64 / length
                })
                .sum();
            score += weight * density * (K1 + 1.0) / (density + K1);
        }
        if self.mass > 0.0 { score / self.mass } else { 0.0 }
    }
}

fn close(found: f64, expected: f64, shown: &str) {
    assert!((found - expected).abs() < 1e-4 * expected.max(1.0), "{found}, not {expected}: {shown}");
}

#[derive(Clone, Debug)]
enum Step {
    Add { part: u32, words: Vec<usize>, thread: Option<(u8, i64)>, from: Option<i64>, until: Option<i64> },
    Remove(prop::sample::Index),
    Retime { at: prop::sample::Index, from: Option<i64>, until: Option<i64> },
    Post { part: u32, most: usize },
    Join { part: u32, most: usize },
    Reload { small: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let instant = || prop_oneof![3 => Just(None), 1 => (0..100_i64).prop_map(Some)];
    let words = prop::collection::vec(0..WORDS.len(), 0..12);
    let thread = prop::option::of((0..3_u8, 0..20_i64));
    prop_oneof![
        8 => (0..3_u32, words, thread, instant(), instant())
            .prop_map(|(part, words, thread, from, until)| Step::Add { part, words, thread, from, until }),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (any::<prop::sample::Index>(), instant(), instant())
            .prop_map(|(at, from, until)| Step::Retime { at, from, until }),
        3 => (0..3_u32, prop_oneof![1..6_usize, Just(1_000)]).prop_map(|(part, most)| Step::Post { part, most }),
        1 => (0..3_u32, 1..40_usize).prop_map(|(part, most)| Step::Join { part, most }),
        1 => any::<bool>().prop_map(|small| Step::Reload { small }),
    ]
}

impl Texts {
    fn take(&mut self, step: Step) {
        match step {
            Step::Add { part, words, thread, from, until } => {
                let words: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
                let thread = thread.map(|(thread, at)| (format!("\u{1}t{thread}"), Time::from_millis(at)));
                self.add(text(part), &words.join(" "), thread, times(from, until));
            }
            Step::Remove(at) if !self.rows.is_empty() => self.remove(at.index(self.rows.len())),
            Step::Retime { at, from, until } if !self.rows.is_empty() => {
                self.retime(at.index(self.rows.len()), times(from, until));
            }
            Step::Post { part, most } => self.post(text(part), most),
            Step::Join { part, most } => self.join(text(part), most),
            Step::Reload { small } => self.reload(if small { 1 } else { usize::MAX }),
            Step::Remove(_) | Step::Retime { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn scores_are_those_of_every_text_one_by_one(
        steps in prop::collection::vec((step(), 0..QUERIES.len(), 0..100_i64), 1..60),
        share in prop::sample::select(vec![0.0_f32, 0.45, 1.0]),
        decay in prop::sample::select(vec![0.0_f32, 0.7, 1.0]),
        reach in 0_usize..4,
    ) {
        let window = Window { share, decay, reach };
        let mut texts = Texts::new(usize::MAX);
        for (at, (step, query, now)) in steps.into_iter().enumerate() {
            texts.take(step);
            let part = Some(at as u32 % 4).filter(|part| *part < 3);
            texts.compare(part, QUERIES[query], now, window);
        }
        let last = |texts: &Texts| {
            for words in QUERIES {
                for now in [0, 50, 1_000] {
                    texts.compare(None, words, now, window);
                }
            }
        };
        last(&texts);
        for part in 0..3 {
            texts.post(text(part), 1_000);
            texts.join(text(part), 1_000);
        }
        last(&texts);
    }
}

/// Many texts: blocks are split, cut off from their tail, joined, and a term is taken out of the middle of one.
#[test]
fn blocks_are_split_and_joined_and_say_the_same() {
    let window = Window { share: 0.45, decay: 0.7, reach: 2 };
    let mut texts = Texts::new(usize::MAX);
    for number in 0..700 {
        let words = format!("lamp {} {number}", WORDS[number % WORDS.len()]);
        texts.add(text(0), &words, None, Times::default());
    }
    assert_eq!(texts.found_by_id(0), 700, "ids ascend with the documents");
    let blocks = |texts: &Texts| {
        let (mut sizes, walk) = (Vec::new(), Walk::prefix(&keys::posting_term(NS, PartId(0), "lamp")));
        let count = &mut |_: &str, block: Option<crate::record::PostingsRef<'_>>| {
            sizes.push(block.unwrap().to_owned(|_| true).unwrap().count());
            Ok(std::ops::ControlFlow::Continue(()))
        };
        texts.published.snapshot().postings(&walk, count).unwrap();
        sizes
    };
    let head = |texts: &Texts| texts.published.snapshot().text_head(text(0)).unwrap().unwrap();
    texts.compare(None, "lamp hall", 0, window);
    assert_eq!((waiting(&head(&texts)), blocks(&texts)), (700, vec![]));
    for _ in 0..3 {
        texts.post(text(0), 30);
    }
    texts.post(text(0), 4_096);
    assert_eq!(blocks(&texts), [30, 30, 30, 512, 98]);
    assert!(waiting(&head(&texts)) == 0 && is_loose(&head(&texts)));
    texts.compare(None, "lamp hall", 0, window);
    for at in [650, 600, 40, 0] {
        texts.remove(at);
    }
    assert_eq!(blocks(&texts), [29, 29, 30, 511, 97]);
    texts.compare(None, "lamp hall", 0, window);
    // A slice reads the blocks of a few terms, and goes on with the next one.
    let mut slices = 0;
    while is_loose(&head(&texts)) {
        texts.join(text(0), 100);
        slices += 1;
    }
    assert!(slices > 3, "{slices}");
    assert_eq!(blocks(&texts), [88, 511, 97]);
    texts.compare(None, "lamp hall", 0, window);
    texts.reload(1);
    texts.compare(None, "lamp hall", 0, window);
}

/// Postings that were worked out before a text went are not written.
#[test]
fn postings_of_a_text_that_went_meanwhile_are_not_written() {
    let mut texts = Texts::new(usize::MAX);
    for number in 0..5 {
        texts.add(text(0), &format!("secret {number}"), None, Times::default());
    }
    let edit = post(&texts.published, text(0), 100).unwrap().unwrap();
    texts.remove(2);
    assert!(!texts.commit(|tx| edit.write(tx)), "document 2 is another's or nobody's");
    let edit = post(&texts.published, text(0), 100).unwrap().unwrap();
    texts.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    assert!(!texts.commit(|tx| edit.write(tx)), "another file has the name");
    texts.reload(usize::MAX);
    let edit = post(&texts.published, text(0), 100).unwrap().unwrap();
    assert!(texts.commit(|tx| edit.write(tx)));
    assert!(!texts.commit(|tx| edit.write(tx)), "they have been written");
    texts.compare(None, "secret 2", 0, Window { share: 0.0, decay: 0.0, reach: 0 });
}

// The joining of blocks goes on at a term that a text has: no word of one that is gone stays in the head (MODEL-30).
#[test]
fn the_head_keeps_no_word_of_a_text_that_is_gone() {
    let mut texts = Texts::new(1 << 20);
    for words in ["amber", "birch", "cedar", "dogwood"] {
        texts.add(text(0), words, None, Times::default());
        texts.post(text(0), 1_000);
    }
    let merging = |texts: &Texts| texts.published.snapshot().text_head(text(0)).unwrap().unwrap().merging;
    texts.join(text(0), 1);
    assert_eq!(merging(&texts).as_deref(), Some("birch"));
    texts.remove(1);
    assert_eq!(merging(&texts).as_deref(), Some("cedar"));
    texts.remove(2);
    texts.remove(1);
    assert_eq!(merging(&texts), None, "none is left to go on with");
    assert!(!is_loose(&texts.published.snapshot().text_head(text(0)).unwrap().unwrap()));
}

/// No writer of ours makes blocks of one term that overlap: joining them is refused as damage.
#[test]
fn blocks_that_overlap_are_damage() {
    let mut texts = Texts::new(usize::MAX);
    for _ in 0..5 {
        texts.add(text(0), "lamp", None, Times::default());
    }
    texts.post(text(0), 100);
    texts.commit(|tx| {
        let mut postings = crate::record::Postings::default();
        postings.push(3, [0].into_iter());
        tx.put_postings(text(0), "lamp", &postings)
    });
    let joined = texts.store.write(Durability::Batch, |tx| join(tx, text(0), 100));
    assert_eq!(joined.map(|written| written.value).unwrap_err().kind(), ErrorKind::Corrupted);
}

/// A clock that stands at the end after it was asked so many times.
fn after(calls: usize) -> impl Fn() -> bool {
    let asked = std::cell::Cell::new(0);
    move || {
        asked.set(asked.get() + 1);
        asked.get() > calls
    }
}

fn lamps(texts: &Texts, part: Option<u32>, over: &dyn Fn() -> bool) -> usize {
    let now = Time::from_millis(0);
    let (text, words, stop) = (part.map(text), "lamp", Stop(over));
    let (all, only_weights, function_words) = (false, false, FUNCTION_WORDS);
    let ask = TextAsk { ns: NS, text, words, now, all, only_weights, function_words, stop };
    lexical(&texts.published, ask).unwrap().top(1_000).len()
}

/// A18: a tail is cut into terms until the time is over, and the next search goes on where that one ended.
#[test]
fn a_deadline_ends_the_cutting_of_a_tail_and_nothing_is_done_twice() {
    let mut texts = Texts::new(usize::MAX);
    for number in 0..60 {
        texts.add(text(0), &format!("the lamp {number}"), None, Times::default());
    }
    texts.reload(usize::MAX);
    let asked = std::cell::Cell::new(0);
    let over = || {
        asked.set(asked.get() + 1);
        asked.get() > 20
    };
    assert_eq!(lamps(&texts, Some(0), &over), 0, "no clause is looked for any more");
    assert!(asked.get() <= 25, "asked {} times", asked.get());
    // 40 documents are left, and the two clauses.
    assert_eq!(lamps(&texts, Some(0), &after(50)), 60);
    assert_eq!(lamps(&texts, Some(0), &after(5)), 60, "the tail is kept");
}

/// A18: a deadline ends a clause, of however many postings.
#[test]
fn a_deadline_ends_a_clause() {
    let mut texts = Texts::new(usize::MAX);
    for number in 0..600 {
        texts.add(text(0), &format!("the lamp {number}"), None, Times::default());
        if number % 100 == 99 {
            texts.post(text(0), usize::MAX);
        }
    }
    assert_eq!(lamps(&texts, Some(0), &|| false), 600);
    let some = lamps(&texts, Some(0), &after(3));
    assert!((1..600).contains(&some), "{some}");
}

/// The images that a search of all partitions has made stay for the next one, within the budget, and drive out no others.
#[test]
fn tails_of_all_partitions_are_cut_once() {
    let mut texts = Texts::new(usize::MAX);
    for number in 0..90 {
        texts.add(text(number % 9), &format!("the lamp {number}"), None, Times::default());
    }
    texts.reload(usize::MAX);
    assert_eq!(lamps(&texts, None, &|| false), 90);
    // One look at each partition that is loaded, and at each clause; none at a document.
    assert_eq!(lamps(&texts, None, &after(9 + 2)), 90);
    let whole = texts.published.kept_bytes();
    texts.reload(whole / 2);
    texts.published.text_view(text(8)).unwrap();
    assert_eq!(lamps(&texts, None, &|| false), 90);
    assert!(texts.published.kept_bytes() <= whole / 2);
    assert!(texts.published.loaded_text(text(8)).is_some(), "what somebody else looks at stays");
}

/// A search for the weights alone counts the same documents, posted ones and those of the tail, and scores none.
#[test]
fn weights_alone_are_those_of_a_search() {
    let mut texts = Texts::new(usize::MAX);
    for number in 0..600 {
        let rare = if number % 50 == 0 { "heron" } else { "gull" };
        texts.add(text(0), &format!("the {rare} and lamp {number}"), None, Times::default());
        if number == 400 {
            texts.post(text(0), usize::MAX);
        }
    }
    let words = "a heron, a gull, lamp 550 and the lamps";
    let found = |only_weights| {
        let (ns, text, now, stop) = (NS, Some(text(0)), Time::from_millis(0), Stop(&|| false));
        let ask =
            TextAsk { ns, text, words, now, all: false, only_weights, function_words: FUNCTION_WORDS, stop };
        lexical(&texts.published, ask).unwrap()
    };
    let (whole, alone) = (found(false), found(true));
    for most in 1..9 {
        assert_eq!(whole.specific_words(words, most), alone.specific_words(words, most));
    }
    assert_eq!((alone.specific_words(words, 2), alone.top(10).len()), (vec!["heron", "550"], 0));
    assert!(!whole.top(10).is_empty());
}
