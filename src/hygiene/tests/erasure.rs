//! What is left of an erased memory is found in the bytes of the file, and only that.

// MODEL-30.

use std::path::PathBuf;

use super::fixture::{ERASED_KEY, ERASED_TEXT, Fixture, values};
use crate::hygiene::erased::{ErasedProbe, check_erased};
use crate::hygiene::report::CheckReport;
use crate::vector::{UnitVector, encode};

fn erased() -> ErasedProbe {
    ErasedProbe {
        texts: vec![ERASED_TEXT.to_owned()],
        vector: Some(values(5)),
        keys: vec![ERASED_KEY.to_owned()],
    }
}

/// What is found of `probes` in `bytes`, by the word that names the part.
fn residues(fixture: &Fixture, bytes: &[u8], probes: &[ErasedProbe]) -> Vec<String> {
    let mut report = CheckReport::default();
    let snapshot = fixture.store.snapshot().unwrap();
    let files = [(PathBuf::from("check.db"), bytes)];
    check_erased(&snapshot, files, probes, &mut report).unwrap();
    assert!(report.findings.iter().all(|finding| finding.code == "residue"));
    report.findings.into_iter().map(|finding| finding.what).collect()
}

fn file_of(fixture: &Fixture) -> Vec<u8> {
    std::fs::read(fixture.folder.path().join("check.db")).unwrap()
}

#[test]
fn a_file_from_before_the_erasure_is_full_of_it_and_a_compacted_one_has_nothing() {
    let before = Fixture::with_e();
    before.store.flush().unwrap();
    let old = file_of(&before);
    let after = Fixture::new();
    after.store.compact(&[9; 32], false, &mut |_, _| Ok(())).unwrap();
    assert_eq!(residues(&after, &file_of(&after), &[erased()]), Vec::<String>::new());
    let all = ["text", "vector", "code of the vector", "key"];
    let all = all.map(|part| format!("the {part} of record 1 of the earlier export is left in check.db"));
    assert_eq!(residues(&after, &old, &[erased()]), all);
    // What a live row says as well is no residue.
    assert_eq!(residues(&before, &old, &[erased()]), Vec::<String>::new());
}

#[test]
fn every_window_counts_wherever_it_lies() {
    let fixture = Fixture::new();
    let unit = UnitVector::new("vector", &values(5)).unwrap();
    let floats: Vec<u8> = unit.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut code = vec![0_i8; unit.dim()];
    encode(&unit, &mut code);
    let code: Vec<u8> = code.iter().map(|byte| byte.cast_unsigned()).collect();
    let (text, key) = (ERASED_TEXT.as_bytes(), ERASED_KEY.as_bytes());
    // Across the border of two chunks, at the very beginning, at the very end.
    for offset in [0, 77, (1 << 20) - 7, (1 << 20) - 16, (2 << 20) - 16] {
        for (part, piece) in [
            ("text", &text[text.len() - 16..]),
            ("text", &text[9..25]),
            ("vector", &floats[12..28]),
            ("code of the vector", &code[5..21]),
            ("key", key),
        ] {
            let mut bytes = vec![0_u8; (2 << 20) + 1];
            bytes[offset..offset + 16].copy_from_slice(&piece[..16]);
            let tail = piece.len() - 16;
            let end = bytes.len().min(offset + 16 + tail);
            bytes[offset + 16..end].copy_from_slice(&piece[16..16 + end - offset - 16]);
            let found = residues(&fixture, &bytes, &[ErasedProbe::default(), erased()]);
            let told = format!("the {part} of record 2 of the earlier export is left in check.db");
            assert_eq!(found, [told], "at {offset}");
            // One byte less is no window.
            bytes[offset + 8] ^= 0x80;
            assert_eq!(residues(&fixture, &bytes, &[erased()]), Vec::<String>::new(), "{part} at {offset}");
        }
    }
}

#[test]
fn short_texts_and_keys_are_searched_whole() {
    let fixture = Fixture::new();
    let probe = |text: &str, key: &str| ErasedProbe {
        texts: vec![text.to_owned()],
        vector: None,
        keys: vec![key.to_owned()],
    };
    let find = |bytes: &[u8], text: &str, key: &str| residues(&fixture, bytes, &[probe(text, key)]).len();
    assert_eq!(find(b"..likes tea..", "likes tea", ""), 1);
    assert_eq!(find(b"..likes te..", "likes tea", ""), 0);
    assert_eq!(find(b"..user-4711..", "", "user-4711"), 1);
    assert_eq!(find(b"..tea..", "", "tea"), 0, "three letters stand in many a text");
    assert_eq!(
        find(b"..\0\0\0\x01tea\0\x01\x9a\x02\x03", "", "tea"),
        1,
        "the row by which namespace 1 found it"
    );
    assert_eq!(find(b"..\0\0\0\x01lamp\0\x01\x9a\x02\x03", "", "lamp"), 0, "that key is held by a live row");
    // In the branches of a tree one shortened key follows the other: the beginning of `teapot` before that of another.
    assert_eq!(find(b"..\0\0\0\x01tea\0\0\0\x01teapot\0\0\0\x01", "", "tea"), 0);
    assert_eq!(find(b"..\0\0\0\x01tea\0\0\0\0\0", "", "tea"), 0, "the last of a branch");
    assert_eq!(find(b"tea", "tea", ""), 0, "a text below 5 bytes proves nothing");
}

/// Keys that are made by a rule begin alike, and one may be the beginning of another or that of two records.
#[test]
fn keys_that_begin_alike_are_told_apart() {
    let fixture = Fixture::new();
    let keys = ["user-record-1", "user-record-12", "user-record-2", "user-record-12"];
    let probes = keys.map(|key| ErasedProbe { keys: vec![key.to_owned()], ..ErasedProbe::default() });
    let find = |bytes: &[u8]| residues(&fixture, bytes, &probes);
    let told =
        |record: usize| format!("the key of record {record} of the earlier export is left in check.db");
    assert_eq!(find(b"..user-record-12.."), [told(1), told(2), told(4)]);
    assert_eq!(find(b"..user-record-2"), [told(3)]);
    assert!(find(b"..user-record-3 user-record").is_empty());
}

/// A live key, text or tag that contains a forgotten key takes no form of it out of the search but the bare one.
#[test]
fn a_key_that_a_live_row_contains_is_still_searched_for() {
    let fixture = Fixture::new();
    let key = "lamp stands";
    let probe = |key: &str| ErasedProbe { keys: vec![key.to_owned()], ..ErasedProbe::default() };
    let find = |bytes: &[u8]| residues(&fixture, bytes, &[probe(key)]).len();
    assert_eq!(find(b"The lamp stands in the hall"), 0, "the text of a live row");
    assert_eq!(find(&[&[key.len() as u8], key.as_bytes()].concat()), 1, "as a holder has it");
    assert_eq!(find(format!("\"{key}\"").as_bytes()), 1, "as the journal has it");
    let row = [b"\0\0\0\x01", key.as_bytes(), b"\0\x01\x9a\x02\x03"].concat();
    assert_eq!(find(&row), 1, "as its index row has it");
    let unproven = |key: &str| {
        let mut report = CheckReport::default();
        let files = [(PathBuf::from("check.db"), &b""[..])];
        check_erased(&fixture.store.snapshot().unwrap(), files, &[probe(key)], &mut report).unwrap();
        report.unproven
    };
    assert_eq!((unproven(key), unproven("lamp")), (0, 1), "a live row has the second key itself");
}
