//! Small tables whose vectors can be worked out by hand, the shipped one, and bytes that are no table.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// A table of three dimensions: the multiplier and the row of each token.
fn table(rows: &[(&str, u8, [i8; 3])]) -> Vec<u8> {
    let vocabulary: String = rows.iter().map(|(token, ..)| format!("{token}\n")).collect();
    let mut bytes = b"oubl-emb".to_vec();
    for word in [1, rows.len() as u32, 3, vocabulary.len() as u32] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(vocabulary.bytes());
    bytes.extend(rows.iter().map(|(_, multiplier, _)| *multiplier));
    bytes.extend(rows.iter().flat_map(|(.., row)| row.map(i8::cast_unsigned)));
    signed(bytes)
}

/// `bytes` with their digest behind them.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

fn small() -> Vec<u8> {
    table(&[
        ("[UNK]", 1, [0, 0, 5]),
        ("cat", 1, [3, 0, 0]),
        ("dog", 2, [0, 2, 0]),
        ("anti", 2, [0, -2, 0]),
        ("##s", 63, [-128, 127, 0]),
    ])
}

fn embed(embedder: &StaticMini, text: &str) -> Vec<f32> {
    embedder.embed(&[text]).unwrap().pop().unwrap()
}

#[test]
fn a_text_has_the_sum_of_its_tokens_at_unit_length() {
    let embedder = StaticMini::from_bytes(small()).unwrap();
    assert_eq!(embedder.dimensions(), 3);
    assert_eq!(embed(&embedder, "Cat"), [1.0, 0.0, 0.0]);
    assert_eq!(embed(&embedder, "cat DOG"), [0.6, 0.8, 0.0], "multipliers weigh: 3 and 2 × 2");
    assert_eq!(embed(&embedder, "dog cat"), embed(&embedder, "cat dog"));
    assert_eq!(embed(&embedder, "cat cat cat dog dog dog"), [0.6, 0.8, 0.0], "every token counts");
    assert_eq!(embed(&embedder, "cat zebra"), [3.0, 0.0, 5.0].map(|x: f64| (x / 34_f64.sqrt()) as f32));
    let cats = [f64::from(3 - 128 * 63), 127.0 * 63.0].map(|x| x as f32);
    let vector = embed(&embedder, "cats");
    let ratio = vector[0] / vector[1];
    assert!((ratio - cats[0] / cats[1]).abs() < 1e-6, "{vector:?}: the largest product is not wrapped");
}

#[test]
fn a_text_that_adds_up_to_nothing_has_the_vector_of_the_unknown_token() {
    let embedder = StaticMini::from_bytes(small()).unwrap();
    for text in ["", " \t\r\n\u{a0}", "dog anti", "zebra", "🦓", "\0\u{200b}"] {
        assert_eq!(embed(&embedder, text), [0.0, 0.0, 1.0], "{text:?}");
    }
    assert_eq!(embedder.embed_query("").unwrap(), [0.0, 0.0, 1.0]);
    assert_eq!(embedder.embed(&[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn texts_do_not_leak_into_each_other() {
    let embedder = StaticMini::from_bytes(small()).unwrap();
    let vectors = embedder.embed(&["cat", "", "dog", "cat dog"]).unwrap();
    assert_eq!(vectors, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]]);
}

#[test]
fn more_tokens_than_32_bits_can_add_up_are_added_up() {
    let worst = [("[UNK]", 1, [1, 0, 0]), ("a", 63, [-128, -128, 127]), ("b", 63, [-128, 127, 127])];
    let embedder = StaticMini::from_bytes(table(&worst)).unwrap();
    let many = "a ".repeat(600_000) + "b";
    let sums = [-600_001.0 * 128.0, -600_000.0 * 128.0 + 127.0, 600_001.0 * 127.0_f64];
    let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
    assert_eq!(embed(&embedder, &many), sums.map(|sum| (sum / length) as f32));
}

#[test]
fn its_id_names_the_table() {
    let bytes = small();
    let digest: String =
        Sha256::digest(&bytes[..bytes.len() - 32]).iter().map(|b| format!("{b:02x}")).collect();
    let embedder = StaticMini::from_bytes(bytes).unwrap();
    assert_eq!(embedder.id(), format!("static-mini-1@{}", &digest[..16]));
    let other = StaticMini::from_bytes(table(&[("[UNK]", 1, [0, 0, 5])])).unwrap();
    assert_ne!(embedder.id(), other.id());
}

#[test]
fn a_table_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.bin");
    assert_eq!(StaticMini::from_file(&path).unwrap_err().kind(), crate::ErrorKind::Io);
    std::fs::write(&path, small()).unwrap();
    assert_eq!(StaticMini::from_file(&path).unwrap().dimensions(), 3);
    std::fs::File::create(&path).unwrap().set_len(TABLE_BYTES_MAX as u64 + 1).unwrap();
    refused(StaticMini::from_file(&path), "at most 268435456 bytes");
}

fn refused(made: Result<StaticMini>, why: &str) {
    let error = made.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn bytes_that_are_no_table_are_refused() {
    let good = small();
    let patched = |at: usize, with: &[u8]| {
        let mut bytes = good[..good.len() - 32].to_vec();
        bytes[at..at + with.len()].copy_from_slice(with);
        StaticMini::from_bytes(signed(bytes))
    };
    assert!(patched(0, b"oubl-emb").is_ok());
    refused(StaticMini::from_bytes(vec![]), "begin with");
    refused(StaticMini::from_bytes(*b"oubl-emb"), "header");
    refused(patched(0, b"O"), "begin with");
    refused(patched(8, &2_u32.to_le_bytes()), "version 1");
    for at in [12, 16, 20] {
        for count in [0, 1, 2, u32::MAX] {
            assert_eq!(patched(at, &count.to_le_bytes()).unwrap_err().kind(), crate::ErrorKind::Invalid);
        }
    }
    refused(patched(24, &[0xff]), "UTF-8");
    refused(patched(24, b"[unk]"), "[UNK]");
    refused(patched(30, b"dog"), "token twice");
    refused(patched(33, b"t"), "token for each of its 5 rows");
    refused(StaticMini::from_bytes(table(&[("[UNK]", 0, [0, 0, 5])])), "must not be zero");
    refused(StaticMini::from_bytes(table(&[("[UNK]", 9, [0; 3])])), "must not be zero");
    refused(StaticMini::from_bytes(table(&[("[UNK]", 64, [0, 0, 5])])), "at most 63");
    let mut damaged = good.clone();
    damaged[60] ^= 1;
    refused(StaticMini::from_bytes(damaged), "digest");
    for cut in 0..good.len() {
        assert!(StaticMini::from_bytes(&good[..cut]).is_err(), "cut to {cut} bytes");
    }
}

#[test]
fn the_shipped_table_is_whole() {
    let checked = StaticMini::from_bytes(SHIPPED).unwrap();
    let shipped = StaticMini::new();
    assert_eq!(shipped.id(), checked.id());
    assert_eq!(shipped.dimensions(), 256);
    assert!(SHIPPED.len() <= 8_000_000, "{}", SHIPPED.len());
    assert!(Arc::ptr_eq(&shipped.model, &StaticMini::default().model), "read once");
    let notice = include_str!("NOTICE");
    let digest: String = SHIPPED[SHIPPED.len() - 32..].iter().map(|b| format!("{b:02x}")).collect();
    assert!(notice.contains(&digest), "the notice speaks of another table than {digest}");
}

/// The vocabulary that the compiler has read is that of a program that reads it.
#[test]
fn the_vocabulary_of_the_compiler_is_that_of_the_table() {
    let table = Table::trusted(SHIPPED).unwrap();
    let (laid, read) = (
        WordPiece::of_laid(&VOCABULARY, SHIPPED).unwrap(),
        WordPiece::from_vocabulary(table.vocabulary()).unwrap(),
    );
    assert_eq!(laid.len(), read.len());
    for (token, id) in table.vocabulary().lines().zip(0..) {
        assert_eq!((laid.id(token), read.id(token)), (Some(id), Some(id)), "{token}");
        // Tokens of the one sort are looked up among those of the other.
        for other in [format!("##{token}"), token.trim_start_matches('#').to_owned(), format!("{token}q")] {
            assert_eq!(laid.id(&other), read.id(&other), "{other}");
        }
        let text = format!("{token}ish un{token} {token}{token}");
        let (mut a, mut b) = (Vec::new(), Vec::new());
        laid.tokenize(&text, usize::MAX, &mut a);
        read.tokenize(&text, usize::MAX, &mut b);
        assert_eq!(a, b, "{text}");
    }
}

#[test]
fn vectors_have_the_bits_of_the_reference() {
    // Worked out from the shipped table with NumPy and the `tokenizers` library.
    let texts = [
        "",
        "Ana adopted a puppy last week",
        "The tests fail on Windows: error[E0277] in src/lib.rs",
        "Übergröße, naïve café — 42 €",
        "日本語のテキスト",
    ];
    let mut bits = Sha256::new();
    for value in StaticMini::new().embed(&texts).unwrap().concat() {
        bits.update(value.to_le_bytes());
    }
    let bits: String = bits.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bits, "7bb84fa82411378b32a81ead39976600bafc27948fca894c80fd4ce7d3a8d47e");
}

#[test]
fn near_in_meaning_is_near_in_space() {
    let embedder = StaticMini::new();
    let cosine = |a: &str, b: &str| -> f32 {
        embed(&embedder, a).iter().zip(embed(&embedder, b)).map(|(a, b)| a * b).sum()
    };
    for (text, near, far) in [
        ("Ana adopted a puppy last week", "She got a new dog", "The server ran out of memory"),
        ("My favorite food is sushi", "I love eating Japanese fish", "We moved to a bigger flat"),
        ("Deploy the service to production", "release the app", "My sister plays the violin"),
        ("What is her job?", "She works as a nurse in a hospital", "The weather is nice today"),
        ("The tests fail on Windows", "a failing unit test", "The cake was delicious"),
    ] {
        let (near, far) = (cosine(text, near), cosine(text, far));
        assert!(near > far + 0.1, "{text}: {near} and {far}");
    }
}

#[test]
fn any_text_has_a_unit_vector() {
    let embedder = StaticMini::new();
    let million = "memory ".repeat(1_000_000);
    let texts = [
        "",
        " ",
        "\u{feff}",
        "🙂🙃🦓",
        "[UNK]",
        "[CLS] [SEP] [PAD] [MASK]",
        "##s",
        "שלום עולם",
        "مرحبا بالعالم",
        "今日は世界",
        "ᚠᛇᚻ᛫ᛒᛦᚦ",
        "𐍈𐌰𐌽",
        "a\u{301}\u{301}\u{301}",
        "\u{202e}abc",
        "\0\0",
        &"x".repeat(100_000),
        &million,
    ];
    let vectors = embedder.embed(&texts).unwrap();
    for (text, vector) in texts.iter().zip(&vectors) {
        let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        assert!((length - 1.0).abs() < 1e-6, "{length} of {:?}", text.get(..20));
    }
    assert_eq!(vectors.last(), Some(&embed(&embedder, "memory")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn vectors_are_those_of_floating_point(text in "\\PC{0,200}") {
        let embedder = StaticMini::new();
        let model = &embedder.model;
        let mut tokens = Vec::new();
        model.words.pieces.tokenize(&text, usize::MAX, &mut tokens);
        if tokens.is_empty() {
            tokens.push(model.words.unknown);
        }
        let mut sums = vec![0.0_f64; 256];
        for token in tokens {
            let row = token as usize;
            let rows = SHIPPED.len() - 32 - model.table.rows() * 256;
            let multiplier = f64::from(SHIPPED[rows - model.table.rows() + row]);
            for (sum, value) in sums.iter_mut().zip(&SHIPPED[rows + row * 256..]) {
                *sum += multiplier * f64::from(value.cast_signed());
            }
        }
        let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
        for (ours, sum) in embed(&embedder, &text).iter().zip(sums) {
            prop_assert!((f64::from(*ours) - sum / length).abs() < 1e-7);
        }
    }

    #[test]
    fn damaged_tables_never_panic(at in 0..160_usize, with in any::<u8>()) {
        let mut bytes = small();
        bytes.truncate(bytes.len() - 32);
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(embedder) = StaticMini::from_bytes(signed(bytes)) {
            let vector = embed(&embedder, "cats and dogs");
            prop_assert!(vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0));
        }
    }
}
