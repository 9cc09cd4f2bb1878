//! Blocks of documents and of postings, and the numbers in them.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::limits::{TIME_MAX_MS, TIME_MIN_MS};
use crate::record::frame::HEADER_BYTES;
use crate::record::varint::{put_varint, take_varint};

/// Documents with every part and with none, and a number that stands for nothing.
pub(super) fn docs() -> DocBlock {
    let plain = DocMeta {
        id: id(1),
        from: TIME_MIN_MS,
        until: TIME_MAX_MS,
        terms: None,
        before: None,
        after: None,
        slot: None,
    };
    let whole = DocMeta {
        id: id(3),
        from: -1,
        until: 9_000,
        terms: Some(300),
        before: Some(0),
        after: Some(u32::MAX),
        slot: Some(6),
    };
    let mut block = DocBlock::default();
    block.put(0, Some(plain));
    block.put(2, Some(whole));
    block.put(3, Some(DocMeta { id: id(4), until: TIME_MIN_MS, ..plain }));
    block
}

/// Documents 0, 1 and 300: once, thrice, twice.
pub(super) fn postings() -> Postings {
    of(&[(0, &[7]), (1, &[0, 1, 200]), (300, &[5, 9])])
}

fn of(docs: &[(u32, &[u32])]) -> Postings {
    let mut all = Postings::default();
    docs.iter().for_each(|(doc, positions)| all.push(*doc, positions.iter().copied()));
    all
}

/// What a block says, none where it makes no sense.
fn read(block: PostingsRef<'_>) -> Option<Vec<(u32, Vec<u32>)>> {
    let mut all = Vec::new();
    block.positions(|doc, positions| all.push((doc, positions.to_vec()))).then_some(all)
}

fn instant() -> impl Strategy<Value = i64> {
    arbitrary::time().prop_map(|at| at.as_millis())
}

fn doc() -> impl Strategy<Value = DocMeta> {
    let number = || option::of(prop_oneof![any::<u32>(), 0..300_u32]);
    let id = any::<[u8; 16]>().prop_filter("an id", |id| id != &[0; 16]).prop_map(MemoryId::from_bytes);
    (id, instant(), instant(), number(), number(), number(), number()).prop_map(
        |(id, from, until, terms, before, after, slot)| DocMeta {
            id,
            from,
            until,
            terms,
            before,
            after,
            slot,
        },
    )
}

/// Ascending documents, each with ascending positions.
fn list() -> impl Strategy<Value = Vec<(u32, Vec<u32>)>> {
    let number = || prop_oneof![0..400_u32, 0..=DOC_MAX, Just(DOC_MAX), Just(0)];
    let position = || prop_oneof![0..50_u32, any::<u32>(), Just(u32::MAX)];
    (btree_set(number(), 1..40), vec(btree_set(position(), 1..6), 40)).prop_map(|(docs, positions)| {
        docs.into_iter().zip(positions.into_iter().map(|set| set.into_iter().collect())).collect()
    })
}

fn owned(list: &[(u32, Vec<u32>)]) -> Postings {
    let mut all = Postings::default();
    list.iter().for_each(|(doc, positions)| all.push(*doc, positions.iter().copied()));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_number_round_trips_and_has_one_form(value: u32, rest in vec(any::<u8>(), 0..4)) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        let needed = (32 - value.leading_zeros()).div_ceil(7).max(1) as usize;
        prop_assert_eq!(bytes.len(), needed);
        bytes.extend_from_slice(&rest);
        let mut left = bytes.as_slice();
        prop_assert_eq!(take_varint(&mut left), Some(value));
        prop_assert_eq!(left, rest.as_slice());
    }

    /// What is taken from hostile bytes is what would be written there.
    #[test]
    fn a_number_of_any_bytes_is_the_one_that_is_written_so(bytes in vec(any::<u8>(), 0..8)) {
        let mut left = bytes.as_slice();
        if let Some(value) = take_varint(&mut left) {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            prop_assert_eq!([written.as_slice(), left].concat(), bytes);
        }
    }

    #[test]
    fn doc_block_round_trip(docs in vec(option::of(doc()), 0..=DOCS_PER_BLOCK)) {
        let mut block = DocBlock::default();
        docs.iter().enumerate().for_each(|(at, doc)| block.put(at, *doc));
        let read = DocBlock::decode(at(), &encoded(DocBlock::encode, &block))?;
        prop_assert_eq!(read.docs(), docs.as_slice());
        prop_assert_eq!(read.is_vacant(), docs.iter().all(Option::is_none));
        prop_assert_eq!((read.len(), read.get(docs.len())), (docs.len(), None));
    }

    #[test]
    fn postings_round_trip(list in list()) {
        let postings = owned(&list);
        let bytes = encoded(Postings::encode, &postings);
        let block = PostingsRef::open(at(), postings.first(), &bytes)?;
        prop_assert_eq!(read(block), Some(list.clone()));
        let mut counted = Vec::new();
        prop_assert!(block.docs(|doc, often| counted.push((doc, often as usize))));
        let expected: Vec<_> = list.iter().map(|(doc, positions)| (*doc, positions.len())).collect();
        prop_assert_eq!(counted, expected);
        prop_assert_eq!(block.to_owned(|_| true), Some(postings.clone()));
        let ends = (list.first().map(|doc| doc.0), list.last().map(|doc| doc.0), list.len());
        prop_assert_eq!((Some(postings.first()), Some(postings.last()), postings.count() as usize), ends);
    }

    /// Blocks that are joined, and a block from which documents were taken, are the bytes of one that was made so.
    #[test]
    fn postings_are_the_same_however_they_came_about(
        list in list(),
        cut in any::<prop::sample::Index>(),
        gone in vec(any::<bool>(), 40),
    ) {
        let (front, back) = list.split_at(cut.index(list.len()));
        let mut joined = owned(front);
        let back = owned(back);
        joined.extend(back.as_ref(), back.last());
        prop_assert_eq!(&joined, &owned(&list));
        prop_assert_eq!(encoded(Postings::encode, &joined), encoded(Postings::encode, &owned(&list)));

        let gone: BTreeSet<u32> =
            list.iter().zip(gone).filter(|(_, gone)| *gone).map(|((doc, _), _)| *doc).collect();
        let left: Vec<_> = list.iter().filter(|(doc, _)| !gone.contains(doc)).cloned().collect();
        prop_assert_eq!(joined.as_ref().to_owned(|doc| !gone.contains(&doc)), Some(owned(&left)));
    }

    /// Behind a checksum that fits: whatever is read of a block of postings ascends, and is written so again.
    #[test]
    fn forged_postings_are_refused_or_sound(
        first in prop_oneof![0..9_u32, any::<u32>()],
        body in vec(prop_oneof![0..4_u8, any::<u8>()], 0..60),
    ) {
        let bytes = forged(tag::POSTING_BLOCK, 0, &body);
        let Ok(block) = PostingsRef::open(at(), first, &bytes) else { return Ok(()) };
        block.docs(|_, _| ());
        let Some(list) = read(block) else {
            prop_assert_eq!(block.to_owned(|_| true), None);
            return Ok(());
        };
        prop_assert!(list.is_sorted_by(|a, b| a.0 < b.0));
        prop_assert_eq!(list[0].0, first);
        let again = encoded(Postings::encode, &owned(&list));
        prop_assert_eq!(read(PostingsRef::open(at(), first, &again)?), Some(list));
    }
}

#[test]
fn forged_blocks_of_documents_are_refused() {
    let document = |shape: u8, rest: &[u8]| [&[1, shape], [9; 16].as_slice(), rest].concat();
    let cases = [
        (vec![], "no count"),
        (vec![129], "more documents than a block has"),
        (vec![1], "a document that is missing"),
        (vec![0, 0], "a byte behind the last document"),
        ([vec![1, 1], vec![0; 16]].concat(), "no id"),
        ([vec![1, 1], vec![9; 15]].concat(), "half an id"),
        (document(2, &[0; 8]), "a shape without a document"),
        (document(1 | 4 | 8, &[0; 8]), "an end, and an end at an instant"),
        (document(1 | 2, &i64::MIN.to_le_bytes()), "an instant out of bounds"),
        (document(1 | 2, &TIME_MIN_MS.to_le_bytes()), "the first instant written out"),
        (document(1 | 4, &TIME_MAX_MS.to_le_bytes()), "the last instant written out"),
        (document(1 | 16, &[0x80, 0]), "a number with a needless byte"),
        (document(1 | 16, &[0xff, 0xff, 0xff, 0xff, 0x1f]), "a number past 32 bits"),
        (document(1 | 128, &[]), "a slot that is missing"),
    ];
    for (body, what) in cases {
        assert_corrupted(tag::DOC_BLOCK, at(), &forged(tag::DOC_BLOCK, 0, &body), what);
    }
    let sound = forged(tag::DOC_BLOCK, 0, &document(1 | 16, &[5]));
    assert_eq!(DocBlock::decode(at(), &sound).unwrap().get(0).unwrap().terms, Some(5));
}

#[test]
fn forged_postings_out_of_bounds_are_refused() {
    // Count and bytes of documents, then documents and positions.
    let cases: [(&[u8], &str); 13] = [
        (&[], "nothing"),
        (&[0, 0], "no document"),
        (&[1, 1, 1], "a document without a position"),
        (&[1, 2, 1], "bytes of documents that are missing"),
        (&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1, 0], "four billion documents in a byte"),
        (&[1, 1, 3, 0], "a first document that is not the key's"),
        (&[2, 2, 1, 1, 0, 0], "a document twice"),
        (&[1, 2, 0, 0, 0], "a document with no position"),
        (&[1, 2, 0, 2, 0], "a position that is missing"),
        (&[1, 2, 0, 2, 5, 0], "a position twice"),
        (&[1, 1, 1, 0, 0], "a position behind the last one"),
        (&[1, 2, 1, 1, 0], "a byte behind the last document"),
        (&[1, 6, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0], "four billion positions in two bytes"),
    ];
    for (body, what) in cases {
        assert_corrupted(tag::POSTING_BLOCK, at(), &forged(tag::POSTING_BLOCK, 0, body), what);
    }
    let far = forged(tag::POSTING_BLOCK, 0, &[2, 2, 1, 3, 0, 0]);
    assert_eq!(
        read(PostingsRef::open(at(), DOC_MAX, &far).unwrap()),
        None,
        "a document past the last number"
    );
    assert_eq!(read(PostingsRef::open(at(), 4, &far).unwrap()), Some(vec![(4, vec![0]), (5, vec![0])]));
}

#[test]
fn a_document_beside_its_vitals() {
    let mut vitals = vitals();
    vitals.place.doc = Some(0x0102_0304);
    let bytes = encoded(encode_vitals, &vitals);
    assert_eq!(bytes[184..188], 0x0102_0304_u32.to_le_bytes(), "between likeness and checksum");
    assert_eq!(decode_vitals(at(), &bytes).unwrap(), vitals);
    let without = &bytes[HEADER_BYTES..184];
    assert_corrupted(tag::VITALS, at(), &forged(tag::VITALS, 1, without), "a document that is missing");
    let with = &bytes[HEADER_BYTES..188];
    assert_corrupted(tag::VITALS, at(), &forged(tag::VITALS, 0, with), "a document without its flag");
}
