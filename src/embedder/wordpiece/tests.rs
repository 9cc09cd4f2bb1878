//! Texts and their tokens, as the `tokenizers` library sees them (`tests/fixtures/embed/wordpiece.py`).

use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    vocabulary: Vec<String>,
    cases: Vec<(String, Vec<u32>)>,
}

fn fixture() -> (WordPiece, Fixture) {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../../tests/fixtures/embed/wordpiece.json")).unwrap();
    (WordPiece::from_vocabulary(&fixture.vocabulary.join("\n")).unwrap(), fixture)
}

fn tokens(pieces: &WordPiece, text: &str) -> Vec<u32> {
    let mut out = Vec::new();
    pieces.tokenize(text, usize::MAX, &mut out);
    out
}

#[test]
fn tokens_are_those_of_the_reference() {
    let (pieces, fixture) = fixture();
    assert!(fixture.cases.len() > 60, "{}", fixture.cases.len());
    for (text, expected) in &fixture.cases {
        assert_eq!(&tokens(&pieces, text), expected, "{text:?}");
    }
}

#[test]
fn a_limit_cuts_the_same_tokens_short() {
    let (pieces, fixture) = fixture();
    for (text, expected) in &fixture.cases {
        for limit in [0, 1, 2, 7, expected.len()] {
            let mut out = vec![7, 7];
            pieces.tokenize(text, limit, &mut out);
            let wanted: Vec<u32> = [7, 7].into_iter().chain(expected.iter().copied().take(limit)).collect();
            assert_eq!(out, wanted, "{limit} of {text:?}");
        }
    }
}

#[test]
fn a_limit_ends_the_reading() {
    let (pieces, _) = fixture();
    let started = std::time::Instant::now();
    for unit in ["the ", "我", "é "] {
        let long = unit.repeat(4_000_000);
        let mut out = Vec::new();
        for _ in 0..1000 {
            out.clear();
            pieces.tokenize(&long, 16, &mut out);
        }
        assert_eq!(out.len(), 16);
    }
    assert!(started.elapsed().as_secs() < 60, "a thousand readings of the whole take minutes");
}

#[test]
fn ids_are_lines() {
    let pieces = WordPiece::from_vocabulary("[UNK]\r\nfor\r\n##get\r\n").unwrap();
    assert_eq!(
        (pieces.len(), pieces.id("##get"), pieces.id("get"), pieces.id("[UNK]")),
        (3, Some(2), None, Some(0))
    );
    assert_eq!(tokens(&pieces, "FORGET forgot get"), [1, 2, 0, 0]);
}

#[test]
fn bad_vocabularies_are_refused() {
    for bad in ["", "a\nb\n", "[UNK]\na\na\n", "[UNK]\n##a\n##a\n", "[UNK]\n\na\n"] {
        let error = WordPiece::from_vocabulary(bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad:?}: {error}");
        assert!(error.to_string().contains("vocabulary"), "{error}");
    }
    let long = "x".repeat(VOCABULARY_BYTES_MAX + 1);
    assert_eq!(WordPiece::from_vocabulary(&long).unwrap_err().kind(), ErrorKind::Invalid);
}

proptest! {
    /// A space between two texts parts their tokens, and whatever the text every id is of the vocabulary.
    #[test]
    fn texts_side_by_side_are_tokens_side_by_side(left in "\\PC{0,40}", right in any::<String>()) {
        let (pieces, _) = fixture();
        let both = tokens(&pieces, &format!("{left} {right}"));
        let apart: Vec<u32> = tokens(&pieces, &left).into_iter().chain(tokens(&pieces, &right)).collect();
        prop_assert_eq!(&both, &apart);
        prop_assert!(both.iter().all(|id| (*id as usize) < pieces.len()));
    }
}
