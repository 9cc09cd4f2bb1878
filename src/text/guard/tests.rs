use proptest::prelude::*;

use super::*;

fn guards() -> Guards {
    Guards::new(&policy::Guards::default(), &policy::Collapse::default())
}

/// Checks one guard both ways, on texts and on profiles.
fn passes(guard: Guard, a: &str, b: &str) -> bool {
    let guards = guards();
    let passes = guards.check(guard, a, b);
    assert_eq!(guards.check(guard, b, a), passes, "{a:?} {b:?}");
    assert_eq!(guards.profile(a).passes(guard, &guards.profile(b), &guards), passes, "{a:?} {b:?}");
    passes
}

#[test]
fn v105_to_v112_each_guard() {
    for (vector, guard, a, b, expected) in [
        ("V-105", Guard::Digits, "limit is 45ms", "limit is 45s", false),
        ("V-106", Guard::Digits, "1,000 users", "1000 users", true),
        ("V-107", Guard::Dates, "due 2026-03-01", "due 2026-03-02", false),
        ("V-108", Guard::Negation, "User does not like tea", "User does like tea", false),
        ("V-109", Guard::Negation, "I don't smoke", "I do not smoke", true),
        ("V-110", Guard::Names, "Alice likes tea", "Bob likes tea", false),
        ("V-111", Guard::Names, "Gateway is up", "the gateway is up", true),
        ("V-112", Guard::Opposites, "dark mode", "light mode", false),
    ] {
        assert_eq!(passes(guard, a, b), expected, "{vector}");
        // No other guard has a part in the vector.
        assert_eq!(guards().first_failing(a, b), (!expected).then_some(guard), "{vector}");
    }
}

#[test]
fn v40_a_negation_keeps_a_fuzzy_pair_apart() {
    let a = "gateway queue alert provider latency dashboard cron ticket 1";
    let b = "gateway queue alert provider latency dashboard cron ticket not 1";
    assert!(!passes(Guard::Negation, a, b));
    assert_eq!(guards().first_failing(a, b), Some(Guard::Negation));
}

#[test]
fn dedup_53_words_of_two_texts_stand_in_one_order() {
    for (a, b) in [
        ("Ann owes Bob 50 euros", "Bob owes Ann 50 euros"),
        ("translates dutch to english", "translates english to dutch, now"),
        ("3 of 5 are done", "5 of 3 are done"),
        ("the train from Ghent to Bruges", "a train from Bruges to Ghent"),
    ] {
        assert_eq!(guards().first_failing(a, b), Some(Guard::Order), "{a:?} {b:?}");
        assert!(!passes(Guard::Order, b, a), "{a:?} {b:?}");
    }
    for (a, b) in [
        ("Ann owes Bob 50 euros", "Ann now owes Bob 50 euros, she says"),
        ("Ann prefers tea", "Bob prefers coffee"),
        // What a text has twice has no place of its own.
        ("Ann calls Bob and Bob calls Ann", "Bob calls Ann and Ann calls Bob"),
        ("", "Ann"),
    ] {
        assert!(passes(Guard::Order, a, b) && passes(Guard::Order, b, a), "{a:?} {b:?}");
    }
}

#[test]
fn guards_have_names_in_order() {
    assert_eq!(
        Guard::ALL.iter().map(|guard| guard.as_str()).collect::<Vec<_>>(),
        ["digits", "dates", "negation", "names", "opposites", "order"]
    );
    assert!(Guard::ALL.is_sorted());
}

#[test]
fn dedup_49_numbers_are_compared_as_a_multiset_with_their_units() {
    for (a, b) in [
        ("3 of 5", "5 of 3"),
        ("1,234,567.5% up", "1234567.5% up"),
        ("took 1h30m", "took 30m, 1h"),
        ("٤٥ms", "４５ms"),
        ("in 2026-03-15", "never"),
        ("run-7 failed", "failed run-7"),
    ] {
        assert!(passes(Guard::Digits, a, b), "{a:?} {b:?}");
    }
    for (a, b) in [
        ("3", "3 3"),
        ("5%", "5"),
        ("1,5", "15"),
        ("1,0000", "10000"),
        ("1234,567", "1234567"),
        ("1.000", "1000"),
        ("07:05", "7:05"),
        ("run-7 failed", "run-8 failed"),
        ("step 1\u{FE0F}\u{20E3}", "step 2\u{FE0F}\u{20E3}"),
    ] {
        assert!(!passes(Guard::Digits, a, b), "{a:?} {b:?}");
    }
}

#[test]
fn dedup_50_datetimes_are_compared_as_a_set_in_one_form() {
    for (a, b) in [
        ("2026-03-15T9:30:00Z", "2026-03-15 09:30:00 +00:00"),
        ("2026-03-15 09:30:00,5 -0330", "2026-03-15T09:30:00.5-03:30"),
        ("2026-03-15, 2026-03-15", "on 2026-03-15"),
        ("2026-03-15 2026-03-16", "2026-03-16 2026-03-15"),
    ] {
        assert!(passes(Guard::Dates, a, b), "{a:?} {b:?}");
    }
    for (a, b) in [
        ("2026-03-15 09:30", "2026-03-15"),
        ("2026-03-15 09:30", "2026-03-15 09:30:00"),
        ("2026-03-15 09:30Z", "2026-03-15 09:30"),
        ("2026-03-15 09:30+01:00", "2026-03-15 09:30-01:00"),
        ("2026-03-15", "someday"),
    ] {
        assert!(!passes(Guard::Dates, a, b), "{a:?} {b:?}");
    }
}

#[test]
fn dedup_51_denying_words_are_counted() {
    let count = |text| guards().negations(text);
    for (text, expected) in [
        ("No, not never. NONE!", 4),
        ("don't won’t canʼt cannot", 4),
        ("nobody's 'no' and ''nor''", 3),
        ("notable knot nothingness n't", 1),
        ("no_one", 1),
        ("", 0),
    ] {
        assert_eq!(count(text), expected, "{text:?}");
    }
}

#[test]
fn a_policy_brings_the_words_of_its_language() {
    let policy = policy::Guards {
        negation: vec!["nicht".to_owned(), "*los".to_owned()],
        opposites: vec![["an".to_owned(), "aus".to_owned()]],
        ..policy::Guards::default()
    };
    let guards = Guards::new(&policy, &policy::Collapse::default());
    assert!(!guards.check(Guard::Negation, "arbeitslos", "Arbeit"));
    assert!(guards.check(Guard::Negation, "not here", "here"));
    assert!(!guards.check(Guard::Opposites, "Licht AN", "Licht aus"));
    assert!(guards.check(Guard::Opposites, "on", "off"));
}

#[test]
fn dedup_52_names_occur_in_both() {
    for (a, b) in [
        ("ask alice", "Ask ALICE"),
        ("The host b12", "host B12"),
        ("mc² is energy", "MC2 is energy"),
        ("likes tea", "hates tea"),
    ] {
        assert!(passes(Guard::Names, a, b), "{a:?} {b:?}");
    }
    for (a, b) in [
        ("host b12", "host b13"),
        ("Alice met Bob", "Alice met"),
        ("lives in Ürgüp", "lives in Urgup"),
        ("ΟΔΟΣ 5", "ΟΔΟΙ 5"),
        ("getTotal = 5", "setTotal = 5"),
    ] {
        assert!(!passes(Guard::Names, a, b), "{a:?} {b:?}");
    }
}

#[test]
fn dedup_52_caseless_texts_are_compared_by_their_words() {
    assert!(!passes(Guard::Names, "田中さんはお茶が好きです。", "鈴木さんはお茶が好きです。"));
    assert!(
        !passes(Guard::Names, "田中さんはお茶が好きです。", "田中さんは、お茶が好きです"),
        "one clause, two clauses"
    );
    assert!(passes(Guard::Names, "今日は、雨です。", "雨です、今日は"));
    let words: Vec<String> = (0..20).map(|n| ["של", "ום"].concat().repeat(n + 1)).collect();
    let (nine, eight) = (words[..18].join(" "), words[..17].join(" "));
    assert!(passes(Guard::Names, &words.join(" "), &nine), "18 of 20 words are 0.9");
    assert!(!passes(Guard::Names, &words.join(" "), &eight), "17 of 20 are less");
    assert!(!passes(Guard::Names, "今日はGoogle", "Google"), "one caseless text is enough");
    assert!(passes(Guard::Names, "雨 rain", "rain"), "more than half of the letters");
}

#[test]
fn dedup_53_opposites_are_words() {
    for (a, b) in [
        ("turned ON", "turned off"),
        ("likes tea", "Dislikes tea"),
        ("light and dark", "dark"),
        ("true", "false"),
    ] {
        assert!(!passes(Guard::Opposites, a, b), "{a:?} {b:?}");
    }
    for (a, b) in
        [("on", "on"), ("on and off", "off and on"), ("once", "office"), ("on", "closed"), ("open", "")]
    {
        assert!(passes(Guard::Opposites, a, b), "{a:?} {b:?}");
    }
}

/// Texts in which every guard finds something.
fn telling() -> impl Strategy<Value = String> {
    let parts = [
        "Alice",
        "Bob",
        "tea",
        "don't",
        "not",
        "on",
        "off",
        "light",
        "dark",
        "45ms",
        "1,000",
        "1000",
        "99%",
        "2026-03-15",
        "2026-03-15T14:30Z",
        "deadbeef01",
        "run-7",
        "今日は",
        "雨です",
        "İ",
        "ΟΔΟΣ",
        "1\u{FE0F}\u{20E3}",
        "the",
        "The",
    ];
    let known =
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..6).prop_map(|parts| parts.join(" "));
    prop_oneof![known, any::<String>()]
}

proptest! {
    #[test]
    fn guards_are_symmetric_and_pass_equal_texts(a in telling(), b in telling()) {
        let guards = guards();
        let (one, other) = (guards.profile(&a), guards.profile(&b));
        prop_assert_eq!(one.failing(&one, &guards), None);
        let first = guards.first_failing(&a, &b);
        prop_assert_eq!(first, one.failing(&other, &guards));
        prop_assert_eq!(first, other.failing(&one, &guards));
        prop_assert_eq!(first, Guard::ALL.iter().copied().find(|&guard| !guards.check(guard, &a, &b)));
        for guard in Guard::ALL.iter().copied() {
            prop_assert!(guards.check(guard, &a, &a), "{:?}", guard);
            prop_assert_eq!(guards.check(guard, &a, &b), guards.check(guard, &b, &a), "{:?}", guard);
        }
    }

    #[test]
    fn another_number_is_another_fact(text in "[a-z ]{0,20}", n in any::<u32>(), m in any::<u32>()) {
        let guards = guards();
        let (a, b) = (format!("{text} {n} x"), format!("{text} {m} x"));
        prop_assert_eq!(guards.check(Guard::Digits, &a, &b), n == m);
    }

    #[test]
    fn order_matters_to_one_guard_and_spacing_to_none(
        mut words in prop::collection::vec("[a-zA-Z]{1,6}|[0-9]{1,5}", 1..8),
    ) {
        let guards = guards();
        let text = words.join(" ");
        prop_assert_eq!(guards.first_failing(&text, &words.join(" ; ")), None);
        words.reverse();
        let failing = guards.first_failing(&text, &words.join(" ; "));
        prop_assert!(failing.is_none_or(|guard| guard == Guard::Order), "{:?}", failing);
    }
}
