use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::policy::Msg;
use crate::policy::Sim;

fn messages(max_tokens: u32) -> Messages {
    Messages::new(&Msg::default(), &Sim { max_tokens, ..Sim::default() }).unwrap()
}

fn tokens(text: &str) -> Vec<String> {
    let messages = messages(64);
    let text = messages.normalize(text, Some(AuthorKind::Bot), None);
    messages.tokens(&text, Some(AuthorKind::Bot), None, &[], &[])
}

fn print(text: &str) -> Option<u64> {
    fingerprint(&tokens(text))
}

#[test]
fn v81_hash_of_a_token() {
    assert_eq!(token_hash("build"), 0x8FCA_71F8_FA68_6433);
    assert_eq!(SIM_ID, "sh-1");
}

#[test]
fn v82_to_v85_and_v95_tokens_and_fingerprints() {
    for (text, expected, bits) in [
        ("Build 123 failed on main", "# build failed main on", 0x02A3_F0F4_E906_76B2),
        ("今日は雨です", "です は雨 今日 日は 雨で", 0xE9C9_85B6_F06B_F819),
        ("雨", "雨", 0x3A51_3325_F084_9CF3),
        ("Привет мир", "мир привет", 0x1046_0004_2127_22E0),
        (
            "build done https://ci.example.com/job/7?utm_source=a",
            "build done u:ci.example.com/job/#",
            0x83C0_73DC_DA6C_E631,
        ),
    ] {
        assert_eq!(tokens(text).join(" "), expected);
        assert_eq!(print(text), Some(bits), "{text}");
    }
}

#[test]
fn v86_to_v89_without_tokens_there_is_no_fingerprint() {
    for text in ["", "!!! ...", "a the of", "x y z"] {
        assert_eq!(print(text), None, "{text:?}");
    }
}

// DEDUP-34.
#[test]
fn words_of_any_script_make_tokens() {
    for (text, expected) in [
        ("The dry_run of And IN it's", "dry it run"),
        ("12 ١٢ 1a 1.5", "# 1a"),
        ("ver今日2雨x ok", "# ok ver 今日 雨"),
        ("한국어 ｶﾞｷﾞ カ゚キ", "カ\u{309A}キ ガギ 국어 한국"),
        ("cafe\u{301} x\u{316} 👩‍👧 Ünï", "café x\u{316} ünï"),
        ("שלום עולם", "עולם שלום"),
        ("see <@12> 12:34 HTTP://A.com/b1", "see time u:a.com/b# user"),
    ] {
        assert_eq!(tokens(text).join(" "), expected, "{text:?}");
    }
}

// DEDUP-34.
#[test]
fn the_most_frequent_words_stay_and_the_signature_always() {
    let messages = messages(2);
    let cut = |text: &str| messages.tokens(text, None, None, &[], &[]).join(" ");
    assert_eq!(cut("dd cc bb aa dd"), "aa dd", "ties by bytes");
    assert_eq!(cut("dd cc http://a.com bb aa bb dd http://b.com"), "bb dd u:a.com u:b.com");
    let attachment = |kind: &str| Attachment { media_type: kind.to_owned(), size: 1, blob_id: None };
    let attachments = [attachment("image/png"), attachment("Image/gif"), attachment("text/plain")];
    let embed = |url: &str| Embed { url: url.to_owned(), title: Some("Release notes".to_owned()) };
    let embeds = [embed("HTTP://X.com/7?q"), embed("http://y.com")];
    assert_eq!(
        messages.tokens("cc bb aa", None, None, &attachments, &embeds).join(" "),
        "aa bb k:image k:text t:1254829bd9996472 u:x.com/#"
    );
}

#[test]
fn v90_v93_and_v94_distance_and_verification() {
    let messages = messages(64);
    let family = |a: &str, b: &str| {
        let (one, other) = (tokens(a), tokens(b));
        let near = hamming(fingerprint(&one).unwrap(), fingerprint(&other).unwrap());
        (near, messages.same_family_text((&one, a), (&other, b)))
    };
    assert_eq!(family("Build 123 failed on main", "Build 456 failed on main"), (0, true), "V-90");
    assert_eq!(family("user prefers dark mode", "user prefers light mode"), (11, false), "V-93");
    assert_eq!(family("今日は雨です", "明日は晴れ"), (33, false), "V-94");
    assert!((jaccard(&tokens("今日は雨です"), &tokens("明日は晴れ")) - 0.125).abs() < 1e-12, "V-94");
}

// DEDUP-36.
#[test]
fn verification_takes_nearly_equal_sets_or_texts_equal_but_for_digits() {
    let messages = messages(64);
    let set = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let same = |a: &str, b: &str| messages.same_family_text((&set(a), "x"), (&set(b), "y"));
    assert!(same("a b c d", "a b c d e"), "4 of 5");
    assert!(!same("a b c d", "a b c e"), "3 of 5");
    assert!(!messages.same_family_text((&[], "x"), (&[], "y")), "nothing in common");
    assert!(messages.same_family_text((&[], "v1 12"), (&[], "v22 3")));
    assert!(!messages.same_family_text((&[], "v1 12"), (&[], "v22 3 4")));
}

#[test]
fn long_texts_take_linear_time() {
    let started = std::time::Instant::now();
    for unit in ["雨", "a", "ab ", "1", "http:///", "http://a ", "か\u{309A}", "x雨"] {
        let text = unit.repeat(1_000_000 / unit.len());
        let _ = fingerprint(&messages(64).tokens(&text, None, None, &[], &[]));
        assert!(started.elapsed().as_secs() < 60, "{unit:?}");
    }
}

proptest! {
    #[test]
    fn any_text_has_its_tokens(text in any::<String>()) {
        let messages = messages(8);
        let normalized = messages.normalize(&text, None, None);
        let embed = Embed { url: text.clone(), title: Some(text.clone()) };
        let attachment = Attachment { media_type: text.clone(), size: 0, blob_id: None };
        let tokens = messages.tokens(&normalized, None, None, &[attachment], &[embed]);
        prop_assert!(tokens.is_sorted_by(|a, b| a < b) && tokens.len() <= 8 + normalized.len() / 8 + 4);
        prop_assert_eq!(tokens.is_empty(), fingerprint(&tokens).is_none());
        prop_assert!(messages.same_family_text((&tokens, &normalized), (&tokens, &normalized)));
    }

    #[test]
    fn jaccard_is_that_of_sets(a in "[a-e]{0,6}", b in "[a-e]{0,6}") {
        let set = |text: &str| text.chars().map(String::from).collect::<BTreeSet<_>>();
        let (one, other) = (set(&a), set(&b));
        let all = one.union(&other).count();
        let expected = if all == 0 { 0.0 } else { one.intersection(&other).count() as f64 / all as f64 };
        let sorted = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
        prop_assert_eq!(jaccard(&sorted(&one), &sorted(&other)), expected);
    }
}
