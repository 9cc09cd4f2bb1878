//! Embedders that need no model.

use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn hashed_vectors_do_not_drift() {
    let embedder = HashEmbedder::with_dimensions(4).unwrap();
    assert_eq!(embedder.id(), "hash-1@4");
    let vector = embedder.embed_query("Hello, wörld").unwrap();
    assert_eq!(vector, HELLO, "the vectors of a database in use would change: that is hash-2");
}

/// What `hash-1` says, for ever.
const HELLO: [f32; 4] = [0.0, -0.487_950_03, 0.780_720_06, 0.390_360_03];

#[test]
fn shared_words_are_near_in_any_script() {
    let embedder = HashEmbedder::new();
    let texts = [
        ["the cat sleeps on the mat", "a cat sleeps on a mat", "quarterly revenue grew"],
        ["кошка спит на ковре", "кошки спят на ковре", "выручка выросла вдвое"],
        ["今日は天気がいいです", "今日は天気が悪いです", "株価が下落した"],
    ];
    for [text, near, far] in texts {
        let vectors = embedder.embed(&[text, near, far]).unwrap();
        let [text, near, far] = vectors.try_into().unwrap();
        assert!(cosine(&text, &near) > 0.4, "{}", cosine(&text, &near));
        assert!(cosine(&text, &far) < 0.3, "{}", cosine(&text, &far));
    }
}

#[test]
fn bounds_of_embedders_without_a_model() {
    for dimensions in [0, 4097] {
        assert_eq!(HashEmbedder::with_dimensions(dimensions).unwrap_err().kind(), ErrorKind::Invalid);
        let refused = embedder_fn("x", dimensions, |_: &[&str]| Ok(Vec::new())).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    let refused = embedder_fn("x".repeat(257), 2, |_: &[&str]| Ok(Vec::new())).unwrap_err();
    assert!(refused.to_string().contains("256"), "{refused}");
}

#[test]
fn a_closure_is_an_embedder() {
    let embedder = embedder_fn("lengths", 1, |texts: &[&str]| {
        Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
    });
    let embedder: Box<dyn Embedder> = Box::new(embedder.unwrap());
    assert_eq!((embedder.id(), embedder.dimensions()), ("lengths", 1));
    assert_eq!(embedder.embed(&["a", "abc"]).unwrap(), [[1.0], [3.0]]);
    assert_eq!(embedder.embed_query("ab").unwrap(), [2.0]);
}

proptest! {
    #[test]
    fn a_hashed_vector_has_unit_length(text in any::<String>(), dimensions in 1_usize..40) {
        let vector = HashEmbedder::with_dimensions(dimensions).unwrap().embed_query(&text).unwrap();
        prop_assert_eq!(vector.len(), dimensions);
        let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        prop_assert!((length - 1.0).abs() < 1e-6, "{length}");
    }
}
