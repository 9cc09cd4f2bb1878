//! What a search or a listing leaves out because of damage is told.

use std::collections::BTreeSet;
use std::path::Path;

use oubliette::clock::{Clock, ManualClock};
use oubliette::memory::{PointInTime, SupersedeMode};
use oubliette::report::CheckOptions;
use oubliette::{
    Database, Draft, ErrorKind, Forget, MemoryId, Mode, PageRequest, Query, Scope, WriteOptions,
};

use super::store::{overwrite, rot_key, tables, word};

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

/// The listings of a store with partitions of their own: each whole, and in pages of this size, the oldest and the newest first.
fn listings(path: &Path, limit: usize) -> Vec<(bool, BTreeSet<MemoryId>)> {
    let db = Database::open(path).unwrap();
    let ns = db.namespace("default").unwrap();
    let mut all = Vec::new();
    for newest_first in [false, true] {
        let mut request = PageRequest { scope: Scope::Any, limit, newest_first, ..PageRequest::default() };
        let (mut named, mut pages) = (BTreeSet::new(), 0);
        loop {
            let page = ns.list(&request).unwrap();
            named.extend(page.items.iter().map(|memory| memory.id).chain(page.damaged));
            request.cursor = page.next;
            pages += 1;
            assert!(pages < 100, "a listing comes to its end");
            if request.cursor.is_none() {
                break;
            }
        }
        all.push((newest_first, named));
    }
    all
}

/// A key out of order led each step of a listing with the newest first astray, and took the name of a damaged memory from the pages
/// of the other: what was in between was hidden from both.
#[test]
fn a_listing_goes_past_a_key_that_is_out_of_order() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.oub"), folder.path().join("memory.oub"));
    let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
    let db = Database::builder().clock(clock.clone()).open(&whole).unwrap();
    let ns = db.namespace("default").unwrap();
    for at in 0..24 {
        let draft = Draft::new(format!("note {at}"));
        ns.add(if at % 3 == 0 { draft.agent("scout") } else { draft }).unwrap();
        clock.advance("1m".parse().unwrap());
    }
    db.close().unwrap();
    let rows = tables(&whole).remove("by_time").unwrap();
    let all: BTreeSet<MemoryId> = rows.iter().map(|(key, _)| id_of(key)).collect();
    assert_eq!(all.len(), 24);
    // Of the instant and of the id: behind namespace, partition and instant.
    let mut wrong = Vec::new();
    for (nth, at, byte) in (0..24).step_by(5).flat_map(|nth| {
        [(8, 0), (12, 0xff), (13, 0), (13, 0xff), (20, 0xff)].map(|(at, byte)| (nth, at, byte))
    }) {
        std::fs::copy(&whole, &path).unwrap();
        let key = &rows[nth].0;
        rot_key(&path, "by_time", key, at, byte);
        let mut rotten = key.clone();
        rotten[at] = byte;
        let expected: BTreeSet<_> =
            all.iter().map(|id| if *id == id_of(key) { id_of(&rotten) } else { *id }).collect();
        for limit in [10_000, 5, 1] {
            for (newest, named) in listings(&path, limit) {
                // Where a page ends beside a key that is out of order, the next page may begin behind the row.
                let is_whole = limit > all.len() || at == 20;
                let fits = if is_whole { named == expected } else { named.is_subset(&expected) };
                if !fits {
                    let (lost, more) =
                        (expected.difference(&named).count(), named.difference(&expected).count());
                    wrong.push(format!("row {nth} byte {at}={byte:#x}, limit {limit}, newest {newest}: {lost} lost, {more} more"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A memory whose holder stands under a damaged key answered without its key and without a word, and a forget by the key found
/// nothing.
#[test]
fn a_memory_that_has_lost_a_holder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let open = || Database::open(&path).unwrap();
    let db = open();
    let ns = db.namespace("default").unwrap();
    let ids = ["a", "b", "c"].map(|key| ns.add(Draft::new(format!("harbour {key}")).key(key)).unwrap().id);
    db.close().unwrap();
    let rows = tables(&path).remove("holder").unwrap();
    // The id stands behind the namespace; the last row keeps its place.
    assert_eq!(&rows[2].0[4..20], ids[2].as_bytes());
    rot_key(&path, "holder", &rows[2].0, 19, 0xff);
    let db = open();
    let ns = db.namespace("default").unwrap();
    // An export is made of such a list, and loses no text.
    assert_eq!(ns.list(&PageRequest::default()).unwrap().items.len(), 3);
    for name in ["c".to_owned(), ids[2].to_string()] {
        assert_eq!(ns.look_up(&name, false).unwrap_err().kind(), ErrorKind::Corrupted, "{name}");
        assert_eq!(ns.history(&name).unwrap().damaged, [ids[2]], "{name}");
        assert!(!ns.explain(&name).unwrap().damaged.is_empty(), "{name}");
    }
    assert_eq!(ns.forget(Forget::names(["c"])).unwrap_err().kind(), ErrorKind::Corrupted);
    assert!(!db.check(&CheckOptions::default()).unwrap().ok);
    db.close().unwrap();
    assert_eq!(search(&path, "harbour"), (3, 1));
    let db = open();
    db.compact().unwrap();
    assert!(db.check(&CheckOptions::default()).unwrap().ok);
    assert_eq!(db.namespace("default").unwrap().keys_of(ids[2]).unwrap(), ["c"]);
    // The memory itself can be forgotten in any case.
    db.namespace("default").unwrap().forget(Forget::names(["c"])).unwrap();
    db.close().unwrap();
}

/// A read of the past asks which texts the keys of a memory have announced, and a row of such a key that can't be read ended a whole
/// search, and took the memory out of a list (MODEL-15).
#[test]
fn a_read_of_the_past_goes_past_a_damaged_row_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.oub");
    let clock = ManualClock::at("2026-01-02T10:00:00Z".parse().unwrap());
    let open = || Database::builder().clock(clock.clone()).open(&path).unwrap();
    let db = open();
    let ns = db.namespace("default").unwrap();
    let acme = ns.add(Draft::new("Ann works at Acme").key("x")).unwrap().id;
    ns.add(Draft::new("Bob likes tea").key("y")).unwrap();
    clock.advance("1h".parse().unwrap());
    let at = PointInTime { known_at: Some(clock.now()), valid_at: Some(clock.now()), allow_partial: false };
    clock.advance("1h".parse().unwrap());
    let globex = Draft::new("Ann works at Globex");
    ns.replace(["x"], globex, SupersedeMode::Replaced, Some(clock.now().plus("20h".parse().unwrap())))
        .unwrap();
    db.close().unwrap();
    let (row, _) = tables(&path)["holder_key"][0].clone();
    // Behind the key stand an id and a number.
    let short = [&row[..row.len() - 20], &[1]].concat();
    overwrite(&path, "holder_key", &short, &[]);
    let db = open();
    let ns = db.namespace("default").unwrap();
    let texts = |at: PointInTime| -> BTreeSet<String> {
        let page = ns.list(&PageRequest { at, ..PageRequest::default() }).unwrap();
        page.items.into_iter().map(|row| row.text).collect()
    };
    let both = ["Ann works at Acme", "Bob likes tea"].map(str::to_owned);
    assert_eq!(texts(PointInTime::default()), both.clone().into());
    assert_eq!(texts(at), both.into());
    let found = ns.search(Query { at, ..Query::text("Ann").mode(Mode::Text) }).unwrap();
    assert_eq!(found.hits.iter().map(|hit| &hit.text[..]).collect::<Vec<_>>(), ["Ann works at Acme"]);
    assert_eq!(ns.get_at(acme, &at).unwrap().unwrap().text, "Ann works at Acme");
    assert!(!db.check(&CheckOptions::default()).unwrap().ok);
    db.close().unwrap();
}

fn id_of(key: &[u8]) -> MemoryId {
    MemoryId::from_bytes(*key.last_chunk().unwrap())
}
