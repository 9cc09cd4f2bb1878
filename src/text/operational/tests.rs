use proptest::prelude::*;

use super::*;
use crate::text::words::overlap;

#[test]
fn the_id_of_the_normalizer() {
    assert_eq!(OP_ID, "op-1");
}

fn operational() -> Operational {
    Operational::new(&Collapse::default())
}

fn signature(text: &str) -> Option<String> {
    operational().signature(text).map(Signature::into_string)
}

fn tokens(text: &str) -> Vec<String> {
    let operational = operational();
    operational.tokens(operational.signature(text).unwrap().as_str())
}

fn token_key(text: &str) -> Option<String> {
    let operational = operational();
    let min = Collapse::default().min_token_key as usize;
    operational.token_key(operational.signature(text)?.as_str(), min)
}

#[test]
fn v1_to_v29_signatures_and_what_is_operational() {
    let vectors = [
        (
            "V-1",
            "Gateway health: 3 agents, latency 45ms, 2026-03-15",
            "gateway health <num> agent latency <num> ms <datetime>",
            true,
        ),
        (
            "V-2",
            "Gateway health: 5 agents, latency 30ms, 2026-03-16",
            "gateway health <num> agent latency <num> ms <datetime>",
            true,
        ),
        (
            "V-3",
            "Gateway health: 3 agents connected, latency 45ms, uptime 99.2%",
            "gateway health <num> agent connected latency <num> ms uptime <num>",
            true,
        ),
        (
            "V-4",
            "Heartbeat status 2026-03-15: 12 tasks verified, 2 failed, score 85",
            "heartbeat status <datetime> <num> task verified <num> failed score <num>",
            true,
        ),
        (
            "V-5",
            "Discord channel metrics: 47 messages today, 3 alerts pending",
            "discord channel metric <num> message today <num> alert pending",
            true,
        ),
        ("V-6", "job 550e8400-e29b-41d4-a716-446655440000 status 3", "job <id> status <num>", true),
        ("V-7", "gateway run-abc123 status", "gateway <id> status", false),
        ("V-8", "run-time status 4", "run time status <num>", true),
        ("V-9", "ticket #42", "ticket <num>", true),
        ("V-10", "version 1.2.3 api", "version <num> api", true),
        ("V-11", "uptime 99.5% now", "uptime <num> now", true),
        ("V-12", "count 1,234,567", "count <num>", true),
        ("V-13", "check 2026-03-15 10:00 +02:00 status", "check <datetime> status", true),
        ("V-14", "check 2026-03-15T14:30:00Z status", "check <datetime> status", true),
        ("V-15", "14:30 gateway status", "<num> <num> gateway status", true),
        ("V-16", "status 20260315", "status <num>", true),
        ("V-17", "gateway deadbeef01 status 2", "gateway <id> status <num>", true),
        ("V-18", "latency 45ms", "latency <num> ms", true),
        ("V-19", "cron 1h30m queue", "cron <num> h <num> m queue", true),
        ("V-20", "p99 latency 12", "p99 latency <num>", true),
        ("V-21", "snapshot_12 count", "snapshot <num> count", true),
        ("V-22", "literal <num> status 4", "literal num status <num>", true),
        ("V-23", "The statuses: 4", "the status <num>", true),
        ("V-24", "services latencies 3 status", "service latency <num> status", true),
        ("V-25", "status １２", "status <num>", true),
        ("V-26", "ステータス status 12", "ステータス status <num>", true),
        ("V-27", "user likes tea 3 times", "user like tea <num> time", false),
        ("V-28", "Gateway health is good", "gateway health is good", false),
    ];
    let operational = operational();
    for (vector, text, expected, is_operational) in vectors {
        let signature = operational.signature(text).unwrap();
        assert_eq!(signature.as_str(), expected, "{vector}");
        assert_eq!(operational.is_operational(text, &signature), is_operational, "{vector}");
    }
    assert_eq!(signature("!!! ..."), None, "V-29");
}

#[test]
fn v7_an_id_alone_is_not_ephemeral() {
    let operational = operational();
    let signature = operational.signature("gateway run-abc123 status").unwrap();
    assert!(operational.has_keyword("gateway run-abc123 status") && !signature.is_ephemeral());
}

#[test]
fn keywords_are_whole_words_of_the_lowercased_text() {
    let operational = operational();
    for text in ["STATUS", "gateway-latencies", "snapshot_12", "ＡＰＩ", "the (model)", "ステータス。status"]
    {
        assert!(operational.has_keyword(text), "{text:?}");
    }
    for text in ["", "statusline", "healths", "ap i", "apí", "api\u{332}", "model3"] {
        assert!(!operational.has_keyword(text), "{text:?}");
    }
}

#[test]
fn v30_to_v34_token_keys() {
    let atera = Some("atera open ticket total".to_owned());
    assert_eq!(token_key("The conversation states there are 2 open tickets total in Atera."), atera, "V-30");
    assert_eq!(
        token_key("There are 4 total open tickets in the connected Atera environment."),
        atera,
        "V-31"
    );
    assert_eq!(
        token_key("There are 0 tickets assigned to him").as_deref(),
        Some("assigned him ticket"),
        "V-32"
    );
    assert_eq!(token_key("gateway health 3"), None, "V-33");
    assert_eq!(
        token_key("Gateway health: 3 agents, latency 45ms, 2026-03-15").as_deref(),
        Some("agent gateway health latency ms"),
        "V-34"
    );
}

#[test]
fn v35_to_v39_overlaps_of_the_fuzzy_phase() {
    for (vector, a, b, shared, jaccard) in [
        (
            "V-35",
            "gateway queue alert provider latency dashboard cron ticket 1",
            "gateway queue alert provider latency dashboard cron 2",
            7,
            7.0 / 8.0,
        ),
        ("V-36", "gateway queue alert provider 1", "gateway queue alert provider cron 2", 4, 4.0 / 5.0),
        (
            "V-37",
            "gateway queue alert provider latency ticket cron 1",
            "gateway queue alert provider latency ticket cron open pending 2",
            7,
            7.0 / 9.0,
        ),
        ("V-38", "gateway health latency 1", "gateway health latency queue 2", 3, 3.0 / 4.0),
        ("V-39 a b", "alert cron gateway queue 1", "alert cron gateway queue ticket 2", 4, 4.0 / 5.0),
        (
            "V-39 b c",
            "alert cron gateway queue ticket 1",
            "alert cron gateway queue ticket api 2",
            5,
            5.0 / 6.0,
        ),
        ("V-39 a c", "alert cron gateway queue 1", "alert cron gateway queue ticket api 2", 4, 4.0 / 6.0),
    ] {
        let found = overlap(&tokens(a), &tokens(b));
        assert_eq!(found.shared, shared, "{vector}");
        assert!((found.jaccard - jaccard).abs() < 1e-12, "{vector}: {found:?}");
        assert_eq!(found, overlap(&tokens(b), &tokens(a)), "{vector}");
    }
}

#[test]
fn stems_count_characters() {
    for (word, expected) in [
        ("statuses", "status"),
        ("latencies", "latency"),
        ("flies", "flie"),
        ("agents", "agent"),
        ("bots", "bots"),
        ("class", "class"),
        ("status", "status"),
        ("ééés", "ééés"),
        ("éééés", "éééé"),
        ("s", "s"),
        ("", ""),
    ] {
        assert_eq!(stem(word), expected, "{word:?}");
    }
}

#[test]
fn digits_of_other_scripts_are_digits() {
    assert_eq!(signature("status ١٢ at ٢٠٢٦-٠٣-١٥").as_deref(), Some("status <num> at <datetime>"));
    assert_eq!(signature("latency ४५ms p९९").as_deref(), Some("latency <num> ms p99"));
    assert_eq!(
        signature("step 1\u{FE0F}\u{20E3}").as_deref(),
        Some("step <num> \u{FE0F}\u{20E3}"),
        "a keycap"
    );
    assert_eq!(signature("x\u{304}12 ok").as_deref(), Some("x\u{304}12 ok"), "a mark belongs to its letter");
    assert_eq!(signature("İSTATUS 5").as_deref(), Some("i\u{307}status <num>"));
}

#[test]
fn a_policy_brings_its_own_words() {
    let policy = Collapse {
        keywords: vec!["zähler".to_owned()],
        stopwords: vec!["der".to_owned()],
        units: vec!["µs".to_owned(), "minuten".to_owned()],
        ..Collapse::default()
    };
    let operational = Operational::new(&policy);
    let text = "Der ZA\u{308}HLER: 5µs, 7minuten, 8ms";
    let signature = operational.signature(text).unwrap();
    assert_eq!(signature.as_str(), "der zähler <num> μs <num> minuten 8ms");
    assert!(operational.is_operational(text, &signature));
    assert_eq!(operational.tokens(signature.as_str()), ["8ms", "minuten", "zähler", "μs"]);
}

#[test]
fn stopwords_go_before_and_after_the_stem() {
    let policy = Collapse { stopwords: vec!["users".to_owned(), "agent".to_owned()], ..Collapse::default() };
    let operational = Operational::new(&policy);
    assert_eq!(operational.tokens("users agents gateway <num>"), ["gateway"]);
    assert_eq!(operational.token_key("gateway", 0).as_deref(), Some("gateway"));
    assert_eq!(operational.token_key("agents <num>", 0), None, "no key of no tokens");
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z]{1,8}|[가-힣]{1,3}|[а-яА-Я]{2,6}"
}

proptest! {
    #[test]
    fn any_string_has_an_answer(text in any::<String>(), min in 0_usize..5) {
        let operational = operational();
        if let Some(signature) = operational.signature(&text) {
            prop_assert!(!signature.as_str().is_empty());
            prop_assert!(!signature.as_str().contains("  "));
            prop_assert_eq!(signature.as_str().trim(), signature.as_str());
            let ephemeral = [NUMBER, DATETIME].iter().any(|mark| signature.as_str().contains(mark));
            prop_assert_eq!(signature.is_ephemeral(), ephemeral);
            let tokens = operational.tokens(signature.as_str());
            prop_assert!(tokens.is_sorted_by(|a, b| a < b));
            let key = operational.token_key(signature.as_str(), min);
            prop_assert_eq!(key, (tokens.len() >= min.max(1)).then(|| tokens.join(" ")));
        }
    }

    #[test]
    fn changed_figures_leave_the_signature(
        words in prop::collection::vec(word(), 1..8),
        figures in prop::collection::vec((0_u32..100_000, 0_u32..100_000), 8),
        shape in 0..5,
    ) {
        let line = |pick: fn(&(u32, u32)) -> u32| {
            let mut line = String::new();
            for (word, pair) in words.iter().zip(&figures) {
                let n = pick(pair);
                let figure = match shape {
                    0 => format!("{n}"),
                    1 => format!("{n}.{n}ms"),
                    2 => format!("20{:02}-{:02}-{:02} {}:{:02}", n % 90, n % 9 + 1, n % 28, n % 24, n % 60),
                    3 => format!("run-{n}x"),
                    _ => format!("{n}h{n}m"),
                };
                line.push_str(&format!("{word}: {figure}; "));
            }
            line
        };
        prop_assert_eq!(signature(&line(|pair| pair.0)), signature(&line(|pair| pair.1)));
    }

    #[test]
    fn case_and_punctuation_do_not_matter(words in prop::collection::vec("[a-z]{1,8}", 1..8)) {
        let plain = signature(&words.join(" "));
        prop_assert_eq!(&signature(&words.join(" -- ").to_uppercase()), &plain);
        prop_assert_eq!(&signature(&format!("({})!", words.join("; "))), &plain);
    }
}
