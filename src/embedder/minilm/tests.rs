//! A tiny model with random weights, whose vectors `tests/fixtures/embed/bert.py` computed in double precision, and the
//! real one where it is there.

use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;
use std::path::PathBuf;

/// Largest difference to double precision in one dimension of a unit vector.
const OFF_MAX: f32 = 1e-5;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/embed/tiny-bert")
}

/// A copy of the tiny model, to be damaged.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["model.safetensors", "vocab.txt", "config.json"] {
        std::fs::copy(tiny().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn expected() -> Vec<(String, Vec<f64>)> {
    serde_json::from_str(&std::fs::read_to_string(tiny().join("expected.json")).unwrap()).unwrap()
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * b).sum()
}

fn off(a: &[f32], b: &[f64]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).abs() as f32).fold(0.0, f32::max)
}

#[test]
fn vectors_are_those_of_the_reference() {
    let model = MiniLm::open(tiny(), Precision::F32).unwrap();
    assert_eq!(model.dimensions(), 20);
    for (text, vector) in expected() {
        let off = off(&model.embed_query(&text).unwrap(), &vector);
        assert!(off <= OFF_MAX, "{off} for {text:?}");
    }
}

#[test]
fn int8_is_near_and_has_its_own_name() {
    let (f32, int8) =
        (MiniLm::open(tiny(), Precision::F32).unwrap(), MiniLm::open(tiny(), Precision::Int8).unwrap());
    assert!(f32.id().starts_with("all-MiniLM-L6-v2@") && f32.id().len() == 17 + 16, "{}", f32.id());
    assert_eq!(int8.id(), format!("{}-i8", f32.id()));
    for (text, vector) in expected() {
        let near = cosine(&int8.embed_query(&text).unwrap(), &vector);
        assert!(near > 0.995, "{near} for {text:?}");
    }
}

#[test]
fn company_and_threads_change_no_bit() {
    for precision in [Precision::F32, Precision::Int8] {
        let model = MiniLm::open(tiny(), precision).unwrap().with_threads(1).unwrap();
        let texts: Vec<String> = expected().into_iter().map(|(text, _)| text).collect();
        let alone: Vec<_> = texts.iter().map(|text| model.embed_query(text).unwrap()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(model.embed(&texts).unwrap(), alone);
        let crew = MiniLm::open(tiny(), precision).unwrap().with_threads(3).unwrap();
        let many: Vec<&str> = texts.iter().copied().cycle().take(50).collect();
        let wanted: Vec<_> = alone.iter().cloned().cycle().take(50).collect();
        assert_eq!(crew.embed(&many).unwrap(), wanted);
        assert!(crew.embed(&[]).unwrap().is_empty());
    }
}

#[test]
fn a_long_text_is_as_its_beginning() {
    let model = MiniLm::open(tiny(), Precision::F32).unwrap();
    // The tiny model has 24 places, two of them for the marks.
    assert_eq!(
        model.embed_query(&"cat ".repeat(22)).unwrap(),
        model.embed_query(&"cat ".repeat(1_000_000)).unwrap()
    );
    assert_ne!(
        model.embed_query(&"cat ".repeat(21)).unwrap(),
        model.embed_query(&"cat ".repeat(22)).unwrap()
    );
}

#[test]
fn tokenizer_json_stands_in_for_the_vocabulary() {
    let folder = copy();
    let lines = std::fs::read_to_string(tiny().join("vocab.txt")).unwrap();
    let vocab: serde_json::Map<String, _> =
        lines.lines().zip(0..).map(|(token, id)| (token.to_owned(), id.into())).collect();
    let json = |kind: &str, lowercase: bool| {
        serde_json::json!({
            "normalizer": { "type": "BertNormalizer", "lowercase": lowercase },
            "model": { "type": kind, "vocab": vocab },
        })
        .to_string()
    };
    std::fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    let file = folder.path().join("tokenizer.json");
    std::fs::write(&file, json("WordPiece", true)).unwrap();
    let model = MiniLm::open(folder.path(), Precision::F32).unwrap();
    let text = "the cats slept";
    assert_eq!(
        model.embed_query(text).unwrap(),
        MiniLm::open(tiny(), Precision::F32).unwrap().embed_query(text).unwrap()
    );
    for bad in [json("BPE", true), json("WordPiece", false), "{}".to_owned(), "[".repeat(10_000)] {
        std::fs::write(&file, bad).unwrap();
        let error = MiniLm::open(folder.path(), Precision::F32).unwrap_err();
        assert!(error.to_string().starts_with("tokenizer.json"), "{error}");
    }
}

#[test]
fn what_is_not_such_a_model_is_refused() {
    let bytes = std::fs::read(tiny().join("model.safetensors")).unwrap();
    let swap = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let last = |value: f32| [&bytes[..bytes.len() - 4], &value.to_le_bytes()].concat();
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("model.safetensors", Vec::new(), "must be safetensors"),
        ("model.safetensors", bytes[..bytes.len() / 2].to_vec(), "must be safetensors"),
        ("model.safetensors", [&u64::MAX.to_le_bytes()[..], b"{}"].concat(), "must be safetensors"),
        ("model.safetensors", swap("layer.1.output.dense.bias", "layer.1.output.dense.bIas"), "missing"),
        ("model.safetensors", swap("[36,20]", "[20,36]"), "must have the shape"),
        ("model.safetensors", last(f32::NAN), "must be finite"),
        ("config.json", br#"{"num_attention_heads": 3}"#.to_vec(), "must divide"),
        (
            "config.json",
            br#"{"num_attention_heads": 2, "num_hidden_layers": 3}"#.to_vec(),
            "num_hidden_layers",
        ),
        ("config.json", br#"{"num_attention_heads": 2, "hidden_act": "relu"}"#.to_vec(), "gelu"),
        ("vocab.txt", b"[UNK]\n[CLS]\n".to_vec(), "must hold [SEP]"),
    ];
    for (name, bytes, why) in cases {
        let folder = copy();
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let error = MiniLm::open(folder.path(), Precision::F32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(why), "{error} is not of {why}");
    }
}

#[test]
fn more_tokens_than_embeddings_are_refused() {
    let folder = copy();
    let lines = std::fs::read_to_string(tiny().join("vocab.txt")).unwrap();
    std::fs::write(folder.path().join("vocab.txt"), lines + "extra\n").unwrap();
    let error = MiniLm::open(folder.path(), Precision::F32).unwrap_err();
    assert!(error.to_string().contains("no more tokens than the model: 30"), "{error}");
}

#[test]
fn missing_files_are_named() {
    for name in ["model.safetensors", "vocab.txt"] {
        let folder = copy();
        std::fs::remove_file(folder.path().join(name)).unwrap();
        let error = MiniLm::open(folder.path(), Precision::F32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn weights_that_overflow_are_an_error_of_the_text() {
    let folder = copy();
    let path = folder.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[header..].as_chunks_mut::<4>().0.iter_mut().for_each(|value| *value = f32::MAX.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    for precision in [Precision::F32, Precision::Int8] {
        let error = MiniLm::open(folder.path(), precision).unwrap().embed_query("cat").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding, "{error}");
    }
}

#[test]
fn the_error_function_is_within_its_bound() {
    // Values of DLMF, table 7.23.1, to ten digits.
    for (x, exact) in [
        (0.0, 0.0),
        (0.1, 0.112_462_916),
        (0.5, 0.520_499_877_8),
        (1.0, 0.842_700_792_9),
        (1.5, 0.966_105_146_5),
        (2.0, 0.995_322_265),
        (3.0, 0.999_977_909_5),
        (9.0, 1.0),
    ] {
        for (x, exact) in [(x, exact), (-x, -exact)] {
            let off = (f64::from(layers::erf(x)) - exact).abs();
            assert!(off < 4e-7, "{off} at {x}");
        }
    }
}

/// The model itself, where `OUBLIETTE_MINILM` names its folder: its vectors in double precision, of the same script.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn the_real_model_gives_the_vectors_of_the_reference() {
    let Some(folder) = std::env::var_os("OUBLIETTE_MINILM") else {
        eprintln!("skipped: OUBLIETTE_MINILM names no folder with all-MiniLM-L6-v2");
        return;
    };
    let sample: Vec<(String, Vec<f64>)> =
        serde_json::from_str(include_str!("../../../tests/fixtures/embed/minilm.json")).unwrap();
    let texts: Vec<&str> = sample.iter().map(|(text, _)| text.as_str()).collect();
    let model = MiniLm::open(&folder, Precision::F32).unwrap();
    assert_eq!((model.id(), model.dimensions()), ("all-MiniLM-L6-v2@53aa51172d142c89", 384));
    let int8 = MiniLm::open(&folder, Precision::Int8).unwrap();
    let vectors = model.embed(&texts).unwrap().into_iter().zip(int8.embed(&texts).unwrap());
    for ((text, wanted), (vector, rough)) in sample.iter().zip(vectors) {
        let (off, near) = (off(&vector, wanted), cosine(&rough, wanted));
        assert!(off <= OFF_MAX && near > 0.99, "{off} and {near} for {text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever bytes are in the file of weights, the answer is a model or an error.
    #[test]
    fn damaged_weights_never_panic(at in 0_usize..3000, byte in any::<u8>(), cut in prop::option::of(0_usize..3000)) {
        let folder = copy();
        let path = folder.path().join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] = byte;
        bytes.truncate(cut.unwrap_or(bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        if let Ok(model) = MiniLm::open(folder.path(), Precision::Int8) {
            let _ = model.embed_query("the cat sat");
        }
    }
}
