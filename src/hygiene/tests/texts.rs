//! Faults of full-text indexes.

use super::damage::{Fault, case, take, vitals};
use super::fixture::{A, C, Fixture, NAME, NOBODY, NOW, NS, SHARED_TEXT, THREAD};
use super::report;
use crate::error::Result;
use crate::hygiene::report::Code;
use crate::model::Time;
use crate::record::{DocBlock, DocMeta, Postings};
use crate::store::control::TextHead;
use crate::store::{Read, Rows, Table, Truth, keys};

/// A term of A's text and F's, and of no other.
const LAMP: &str = "lamp";

fn head(code: Code, change: impl Fn(&mut TextHead) + 'static) -> (Code, Fault) {
    case(code, move |tx| {
        let mut head = tx.text_head(SHARED_TEXT)?.unwrap();
        change(&mut head);
        tx.put_text_head(SHARED_TEXT, head);
        Ok(())
    })
}

fn doc(code: Code, doc: usize, change: impl Fn(&mut DocMeta) + 'static) -> (Code, Fault) {
    case(code, move |tx| {
        let block = tx.doc_block_mut(SHARED_TEXT, 0)?;
        let mut meta = *block.get(doc).unwrap();
        change(&mut meta);
        block.put(doc, Some(meta));
        Ok(())
    })
}

/// A block of one document that has a term at one position.
fn posting(tx: &mut Truth<'_, '_>, term: &str, doc: u32) -> Result<()> {
    let mut postings = Postings::default();
    postings.push(doc, [0].into_iter());
    tx.put_postings(SHARED_TEXT, term, &postings)
}

fn thread_row(doc: u32) -> keys::Key {
    keys::thread(NS, SHARED_TEXT.part, THREAD, NOW, doc)
}

pub(super) fn cases() -> Vec<(Code, Fault)> {
    let mut all = documents();
    all.extend(postings());
    all.extend(threads());
    all
}

fn documents() -> Vec<(Code, Fault)> {
    let block = keys::text(NS, SHARED_TEXT.part, 0);
    let of_head = keys::ns_part(NS, SHARED_TEXT.part);
    vec![
        vitals(Code::TextDoc, |vitals| vitals.place.doc = None),
        vitals(Code::TextDoc, |vitals| vitals.place.doc = Some(1)),
        vitals(Code::TextDoc, |vitals| vitals.place.doc = Some(700)),
        doc(Code::TextDoc, 0, |meta| meta.slot = Some(9)),
        doc(Code::TextDoc, 0, |meta| meta.id = C),
        doc(Code::TextDoc, 5, |meta| meta.id = NOBODY),
        case(Code::TextDoc, |tx| {
            tx.doc_block_mut(SHARED_TEXT, 0)?.put(0, None);
            Ok(())
        }),
        case(Code::TextDoc, move |tx| take(tx, Table::TextDoc, &block)),
        case(Code::TextDoc, |tx| {
            let head = tx.text_head(SHARED_TEXT)?.unwrap();
            tx.put_text_head(SHARED_TEXT, TextHead { len: 300, ..head });
            let (key, mut bytes) = (keys::text(NS, SHARED_TEXT.part, 1), Vec::new());
            DocBlock::default().encode(&key, &mut bytes);
            tx.put(Table::TextDoc, &key, &bytes)
        }),
        doc(Code::TextTimes, 0, |meta| meta.from = 1),
        doc(Code::TextTimes, 2, |meta| meta.until = Time::MAX.as_millis()),
        head(Code::TextHead, |head| head.posted = 8),
        head(Code::TextHead, |head| head.used = 4),
        head(Code::TextHead, |head| head.used = 8),
        head(Code::TextHead, |head| head.len = 5),
        case(Code::TextHead, move |tx| take(tx, Table::TextHead, &of_head)),
        head(Code::Corrupted, |head| head.analyzer = "terms-0/klingon".to_owned()),
    ]
}

fn postings() -> Vec<(Code, Fault)> {
    let lamp = keys::posting(NS, SHARED_TEXT.part, LAMP, 0);
    vec![
        head(Code::TextPosting, |head| head.posted = 4),
        head(Code::TextPosting, |head| head.posted = 6),
        doc(Code::TextPosting, 0, |meta| meta.terms = Some(1)),
        doc(Code::TextPosting, 0, |meta| meta.terms = None),
        doc(Code::TextPosting, 5, |meta| meta.terms = Some(1)),
        case(Code::TextPosting, move |tx| take(tx, Table::TextPosting, &lamp)),
        case(Code::TextPosting, |tx| tx.remove_posting(SHARED_TEXT, LAMP, 4)),
        case(Code::TextPosting, |tx| posting(tx, "zebra", 0)),
        // No memory, no postings yet, none at all.
        case(Code::TextPosting, |tx| posting(tx, LAMP, 3)),
        case(Code::TextPosting, |tx| posting(tx, LAMP, 5)),
        case(Code::TextPosting, |tx| posting(tx, LAMP, 1_000_000)),
        // Inside the block that holds documents 0 and 4.
        case(Code::TextPosting, |tx| posting(tx, LAMP, 1)),
        case(Code::KeyShape, |tx| {
            tx.put(Table::TextPosting, &keys::posting_term(NS, SHARED_TEXT.part, LAMP), &[])
        }),
        case(Code::KeyShape, |tx| {
            tx.put(Table::TextPosting, &keys::posting(NS, SHARED_TEXT.part, "", 0), &[])
        }),
    ]
}

fn threads() -> Vec<(Code, Fault)> {
    vec![
        case(Code::Thread, |tx| take(tx, Table::Thread, &thread_row(0))),
        case(Code::Thread, |tx| take(tx, Table::Thread, &thread_row(4))),
        case(Code::Thread, |tx| tx.put(Table::Thread, &thread_row(2), &[])),
        case(Code::Thread, |tx| tx.put(Table::Thread, &thread_row(3), &[])),
        case(Code::Thread, |tx| {
            let other = keys::thread(NS, SHARED_TEXT.part, "\u{1}sother", NOW, 2);
            tx.put(Table::Thread, &other, &[])
        }),
        doc(Code::Thread, 0, |meta| meta.before = Some(4)),
        doc(Code::Thread, 0, |meta| meta.after = Some(4)),
        doc(Code::Thread, 1, |meta| meta.before = None),
        doc(Code::Thread, 4, |meta| meta.after = Some(0)),
        doc(Code::Thread, 2, |meta| meta.after = Some(0)),
        case(Code::ValueShape, |tx| tx.put(Table::Thread, &thread_row(0), b"x")),
    ]
}

#[test]
fn the_fixture_has_what_the_faults_are_done_to() {
    let fixture = Fixture::new();
    let rows = fixture.store.snapshot().unwrap();
    let head = rows.text_head(SHARED_TEXT).unwrap().unwrap();
    assert_eq!((head.len, head.used, head.posted), (7, 5, 5));
    let docs = rows.doc_block(SHARED_TEXT, 0).unwrap().unwrap();
    let present: Vec<usize> = (0..docs.len()).filter(|at| docs.get(*at).is_some()).collect();
    assert_eq!(present, [0, 1, 2, 4, 5], "the documents of what is gone stand for nothing");
    let links: Vec<_> =
        [0, 1, 4].iter().map(|at| docs.get(*at).unwrap()).map(|doc| (doc.before, doc.after)).collect();
    assert_eq!(links, [(None, Some(1)), (Some(0), Some(4)), (Some(1), None)]);
    assert_eq!(docs.get(0).unwrap().id, A);
    assert!(rows.namespace(NAME).unwrap().is_some());
}

#[test]
fn a_damaged_row_of_a_full_text_index_is_one_finding() {
    let rows = [
        (Table::TextHead, keys::ns_part(NS, SHARED_TEXT.part)),
        (Table::TextDoc, keys::text(NS, SHARED_TEXT.part, 0)),
        (Table::TextPosting, keys::posting(NS, SHARED_TEXT.part, LAMP, 0)),
    ];
    for (table, key) in rows {
        let fixture = Fixture::new();
        fixture.write(|tx| tx.put(table, &key, b"rubbish"));
        let found = report(&fixture).findings;
        let codes: Vec<_> = found.iter().map(|finding| (finding.code, finding.table)).collect();
        assert_eq!(codes, [("corrupted", table.name())], "nothing is concluded from what could not be read");
    }
}
