use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use super::*;

const STOPWORDS: &[&str] = &["a", "of", "the", "to", "was"];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fingerprint(text: &str) -> Option<String> {
    normal_form(text).fingerprint().map(|hash| hex(&hash))
}

#[test]
fn v80_fingerprints_meet_over_case_and_white_space() {
    let expected = "c32aa60cbe3faa7871fee6ce9384dd24d802069fa4808fa4d3afbea02aac49ad";
    for text in ["User   Likes\nTea ", "user likes tea"] {
        assert_eq!(fingerprint(text).as_deref(), Some(expected), "{text:?}");
        assert_eq!(hex(&normal_form(text).prefix().unwrap()), expected[..32], "{text:?}");
    }
}

#[test]
fn v266_an_empty_normal_form_has_no_fingerprint() {
    for text in ["", "   ", "\t\r\n\x0B\x0C", "\u{00A0}\u{2003}\u{3000}"] {
        assert_eq!(fingerprint(text), None, "{text:?}");
    }
}

#[test]
fn the_normal_form_is_compatible_and_in_lower_case() {
    for (a, b) in [
        ("mc²", "mc2"),
        ("ﬁne Ⅳ", "FINE iv"),
        ("１２ ｋｍ", "12 km"),
        ("Ünïcödé", "u\u{308}ni\u{308}co\u{308}de\u{301}"),
        ("ПРИВЕТ\u{2003}мир", "привет мир"),
        ("a\x0Bb", "a b"),
    ] {
        assert_eq!(fingerprint(a), fingerprint(b), "{a:?} {b:?}");
    }
    for (a, b) in [("ab", "a b"), ("tea", "tea."), ("a\x1Fb", "a b"), ("naïve", "naive"), ("45ms", "45 ms")]
    {
        assert_ne!(fingerprint(a), fingerprint(b), "{a:?} {b:?}");
    }
}

#[test]
fn v265_only_spacing_and_the_case_of_ordinary_words_may_differ() {
    let same =
        |a, b| same_but_spacing_and_case(a, b, STOPWORDS) && same_but_spacing_and_case(b, a, STOPWORDS);
    assert!(same("The user likes tea", "the  user likes tea"));
    assert!(!same("US report", "us report"));
    assert!(!same("mc²", "mc2"));
    assert!(same(" a\u{2003}quiet night\n", "a quiet night"));
    assert!(same("an iPhone", "an iphone"), "begins with a lowercase letter, has no digit");
    assert!(!same("Patrol 5: Quiet", "Patrol 5: quiet"), "V-264");
    assert!(!same("route b12", "route B12"), "letters and digits mixed");
    assert!(!same("tea", "tea tea") && !same("a b", "ab") && !same("tea.", "tea"));
    assert!(!same_but_spacing_and_case("The user", "the user", &[]), "without the stopword it is a name");
    assert!(same("", " ") && !same("", "a"));
}

#[test]
fn hmac_is_that_of_the_standard() {
    // Computed with another program: HMAC-SHA-256 of `key`, a zero byte and `conv-1:3` under the bytes 1 to 32.
    let expected = "c04663395adbdc6a9296e4f9542b779067124ae4db99cc320268189eafed3924";
    let secret = Secret::from_bytes(std::array::from_fn(|at| at as u8 + 1));
    assert_eq!(hex(&secret.hmac("key", b"conv-1:3")), expected);
    assert_eq!(hex(&secret.short("key", b"conv-1:3")), expected[..16]);
}

#[test]
fn hmac_tells_secrets_domains_and_bytes_apart() {
    let (one, other) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
    assert_ne!(one.hmac("key", b"a"), other.hmac("key", b"a"));
    assert_ne!(one.hmac("key", b"a"), one.hmac("content", b"a"));
    assert_ne!(one.hmac("key", b"a"), one.hmac("key", b"b"));
    assert_ne!(one.hmac("a", b"b"), one.hmac("", b"ab"));
    assert_eq!(one.hmac("key", b"a"), one.clone().hmac("key", b"a"));
}

#[test]
fn a_secret_does_not_show_itself() {
    assert_eq!(format!("{:?}", Secret::from_bytes([0xAB; 32])), "Secret(..)");
}

#[test]
fn long_texts_take_linear_time() {
    // One base letter and a million marks out of canonical order: the worst case of normalization.
    let marks: String =
        std::iter::once('a').chain((0..500_000).flat_map(|_| ['\u{301}', '\u{316}'])).collect();
    let started = std::time::Instant::now();
    assert!(normal_form(&marks).fingerprint().is_some());
    assert!(same_but_spacing_and_case(&marks, &marks, STOPWORDS));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

proptest! {
    #[test]
    fn fingerprints_ignore_white_space_case_and_composition(
        words in prop::collection::vec("[a-zA-Z0-9.é가ß½]{1,6}", 1..6),
        gaps in prop::collection::vec("[ \t\n\u{0B}\u{00A0}\u{2003}\u{3000}]{1,3}", 8),
    ) {
        let plain = words.join(" ");
        let mut spaced = gaps[6].clone();
        for (word, gap) in words.iter().zip(&gaps) {
            spaced.push_str(word);
            spaced.push_str(gap);
        }
        let expected = fingerprint(&plain);
        prop_assert_eq!(&fingerprint(&spaced), &expected);
        prop_assert_eq!(&fingerprint(&plain.to_ascii_uppercase()), &expected);
        prop_assert_eq!(&fingerprint(&plain.nfd().collect::<String>()), &expected);
        prop_assert_eq!(&fingerprint(&plain.nfkc().collect::<String>()), &expected);
        prop_assert_ne!(&fingerprint(&format!("{plain}x")), &expected);
        prop_assert!(same_but_spacing_and_case(&plain, &spaced, STOPWORDS));
    }

    #[test]
    fn ascii_takes_the_same_way_as_any_text(text in "[ -~\t\n\u{0B}\u{0C}\r\u{1C}]{0,40}") {
        prop_assert_eq!(normal::normalize_ascii(&text), normal::normalize(&text));
    }

    #[test]
    fn what_is_absorbed_has_one_fingerprint(a in "[aA ½bB1.]{0,8}", b in "[aA ½bB1.]{0,8}") {
        let form = |text: &str| super::form_but_spacing_and_case(text, STOPWORDS);
        prop_assert_eq!(same_but_spacing_and_case(&a, &b, STOPWORDS), form(&a) == form(&b));
        if same_but_spacing_and_case(&a, &b, STOPWORDS) {
            prop_assert_eq!(fingerprint(&a), fingerprint(&b));
        }
    }

    #[test]
    fn any_string_has_an_answer(a in any::<String>(), b in any::<String>()) {
        let _ = normal_form(&a);
        prop_assert!(same_but_spacing_and_case(&a, &a, STOPWORDS));
        prop_assert_eq!(
            same_but_spacing_and_case(&a, &b, STOPWORDS),
            same_but_spacing_and_case(&b, &a, STOPWORDS)
        );
    }
}
