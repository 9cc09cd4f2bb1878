//! What a search or a listing leaves out because of damage is told.

use std::path::Path;

use oubliette::{Database, Draft, Mode, Query, WriteOptions};

use super::store::{overwrite, tables, word};

/// The memories of a store by words: more than a block of documents has.
const TEXTS: usize = 140;

/// A store whose texts have postings.
fn texts(path: &Path) {
    let db = Database::open(path).unwrap();
    let ns = db.namespace("default").unwrap();
    let drafts = (0..TEXTS).map(|at| Draft::new(format!("harbour {}", word(at))));
    ns.add_all(drafts.collect(), &WriteOptions::default()).unwrap();
    db.maintain().unwrap();
    db.close().unwrap();
}

/// The hits of a query, and the number that was left out.
fn search(path: &Path, words: &str) -> (usize, u64) {
    let db = Database::open(path).unwrap();
    let found =
        db.namespace("default").unwrap().search(Query::text(words).mode(Mode::Text).k(1_000)).unwrap();
    (found.hits.len(), found.plan.damaged)
}

/// A block of documents that could not be read took all of its memories along without a word, and most of the others: a word that
/// more documents hold than there are had a weight below 0.
#[test]
fn a_search_by_words_counts_the_memories_of_a_lost_block() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    texts(&whole);
    assert_eq!(search(&whole, "harbour"), (TEXTS, 0));
    let blocks = tables(&whole).remove("text_doc").unwrap();
    assert_eq!(blocks.len(), 2);
    for ((key, _), lost) in blocks.iter().zip([128, TEXTS - 128]) {
        std::fs::copy(&whole, &path).unwrap();
        overwrite(&path, "text_doc", key, &[7; 40]);
        for words in ["harbour", "harb*"] {
            assert_eq!(search(&path, words), (TEXTS - lost, lost as u64), "{words} {key:x?}");
        }
        let db = Database::open(&path).unwrap();
        db.reindex().unwrap();
        db.close().unwrap();
        assert_eq!(search(&path, "harbour"), (TEXTS, 0), "{key:x?}");
    }
}

#[test]
fn a_search_by_words_tells_that_the_rows_of_a_word_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    texts(&whole);
    let rows = tables(&whole).remove("text_posting").unwrap();
    let of_word = |key: &[u8]| key.windows(7).any(|bytes| bytes == b"harbour");
    let (key, _) = rows.iter().find(|(key, _)| of_word(key)).unwrap();
    std::fs::copy(&whole, &path).unwrap();
    overwrite(&path, "text_posting", key, &[7; 40]);
    for words in ["harbour", "harb*", &format!("\"harbour {}\"", word(17)), "harbour harb*"] {
        let (hits, damaged) = search(&path, words);
        assert!(hits < TEXTS && damaged == 1, "{words}: {hits} hits, {damaged} damaged");
    }
    assert_eq!(search(&path, &word(17)), (1, 0), "other words are whole");
}
