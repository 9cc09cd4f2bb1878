use proptest::prelude::*;
use regex::Regex;

use super::*;

fn sorted(words: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[test]
fn the_table_of_zeros_is_that_of_unicode() {
    let digit = Regex::new(r"\A\d\z").unwrap();
    for c in ('\u{80}'..=char::MAX).filter(|c| c.nfkc().eq([*c])) {
        let mut buffer = [0; 4];
        assert_eq!(decimal(c).is_some(), digit.is_match(c.encode_utf8(&mut buffer)), "{:X}", u32::from(c));
    }
    assert_eq!(compatible("٠٩ 𝟘𝟡 ０９ 𞥐𞥙"), "09 09 09 09");
}

#[test]
fn words_are_letters_marks_and_numbers() {
    let of = |text| words(text).collect::<Vec<_>>();
    assert_eq!(of("a_b c-d, don't ½x"), ["a", "b", "c", "d", "don", "t", "½x"]);
    assert_eq!(of("नमस्ते x\u{304}12\u{20E3}。今日は"), ["नमस्ते", "x\u{304}12\u{20E3}", "今日は"]);
    assert_eq!(of(" .,"), [""; 0]);
}

#[test]
fn sets_normalize_their_words() {
    let set = WordSet::new(&["µs".to_owned(), "e\u{301}te\u{301}".to_owned(), "ok".to_owned()]);
    for word in ["μs", "été", "ok"] {
        assert!(set.contains(word), "{word:?}");
    }
    for word in ["", "o", "of", "okk", "µs", "ete"] {
        assert!(!set.contains(word), "{word:?}");
    }
}

#[test]
fn overlaps_of_empty_sets() {
    assert_eq!(overlap(&[], &[]), Overlap { shared: 0, jaccard: 1.0 });
    assert_eq!(overlap(&sorted(&["a"]), &[]), Overlap { shared: 0, jaccard: 0.0 });
}

proptest! {
    #[test]
    fn overlap_is_that_of_sets(a in "[a-f]{0,8}", b in "[a-f]{0,8}") {
        let set = |text: &str| sorted(&text.split("").filter(|c| !c.is_empty()).collect::<Vec<_>>());
        let (a, b) = (set(&a), set(&b));
        let shared = a.iter().filter(|word| b.contains(word)).count();
        prop_assert_eq!(overlap(&a, &b).shared, shared);
        prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
    }

    #[test]
    fn lowered_ascii_takes_the_same_way(text in "[ -~]{0,30}") {
        let lower: String = text.nfkc().collect::<String>().to_lowercase();
        prop_assert_eq!(lowered(&text), lower);
    }
}
