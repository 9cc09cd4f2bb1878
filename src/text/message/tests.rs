use std::time::Duration;
use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::policy::MessagePattern;
use crate::text::digit::digits_masked;

const BOT: Option<AuthorKind> = Some(AuthorKind::Bot);
const HUMAN: Option<AuthorKind> = Some(AuthorKind::Human);

fn messages(msg: &Msg) -> Messages {
    Messages::new(msg, &Sim::default()).unwrap()
}

fn bot(text: &str) -> String {
    messages(&Msg::default()).normalize(text, BOT, None)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn custom(patterns: &[(&str, &str)]) -> Messages {
    let pattern = |(regex, put): &(&str, &str)| MessagePattern::Custom {
        regex: (*regex).to_owned(),
        put: (*put).to_owned(),
    };
    messages(&Msg { patterns: patterns.iter().map(pattern).collect(), ..Msg::default() })
}

fn image(size: u64) -> Attachment {
    Attachment { media_type: "image/png".to_owned(), size, blob_id: None }
}

fn embed(url: &str, title: Option<&str>) -> Embed {
    Embed { url: url.to_owned(), title: title.map(str::to_owned) }
}

// Every example of the rules on the normal form: V-57 to V-69, in order.
#[test]
fn v57_to_v69_messages_of_bots() {
    for (text, expected) in [
        ("Deploy  \t done\r\nok  ", "Deploy done\nok"),
        ("at 2026-01-31 12:34:56 it failed", "at <ts> it failed"),
        ("ping 12:34 PM now", "ping <time> now"),
        (
            "hi <@123> in <#456> for <@&789> and <@!42> @everyone",
            "hi <@user> in <#channel> for <@role> and <@user> @everyone",
        ),
        ("HTTPS://Example.COM/Path?utm_source=x&id=5&FBCLID=q#frag", "https://example.com/Path?id=5#frag"),
        ("see http://A.com?ref=1.", "see http://a.com/."),
        ("<@123456789012345678> hello", "<@user> hello"),
        ("id 123456789012345678 done", "id <id> done"),
        ("commit deadbee1f pushed", "commit <hex> pushed"),
        ("defaced 1234567", "defaced 1234567"),
        (
            "https://ci.example.com/run/1234567890abcdef1?x=12:34",
            "https://ci.example.com/run/1234567890abcdef1?x=12:34",
        ),
        ("build (#1234) run=987", "build (#1234) run=987"),
        ("ﬁne Ⅳ", "fine IV"),
    ] {
        assert_eq!(bot(text), expected, "{text:?}");
    }
}

#[test]
fn v70_counters_are_noise_in_counter_channels_only() {
    let messages = messages(&Msg { counter_channels: vec!["ci".to_owned()], ..Msg::default() });
    let text = "build (#1234) run=987";
    assert_eq!(messages.normalize(text, BOT, Some("ci")), "build (#<n>) run=<n>");
    assert_eq!(messages.normalize(text, BOT, Some("ops")), text);
    assert_eq!(messages.normalize(text, BOT, None), text);
    assert_eq!(messages.normalize(text, HUMAN, Some("ci")), text, "DEDUP-28: skipped for people");
    assert_eq!(messages.normalize(text, None, Some("ci")), text, "DEDUP-28: skipped without an author");
    for (text, expected) in [
        ("Job=1 build=2 attempt=3 retry=4", "Job=<n> build=<n> attempt=<n> retry=<n>"),
        ("dry_run=1", "dry_run=<n>"),
        ("prerun=1 run=1a run= (#) (#12 fix(#3)", "prerun=1 run=1a run= (#) (#12 fix(#<n>)"),
        ("http://a.com/(#1)?run=1", "http://a.com/(#1)?run=1"),
        ("run=123456789012345", "run=<id>"),
    ] {
        assert_eq!(messages.normalize(text, BOT, Some("ci")), expected);
    }
}

#[test]
fn v245_and_v246_people_keep_their_times() {
    let messages = messages(&Msg::default());
    for author in [HUMAN, None] {
        let text = "Meeting at 14:30, 2026-01-31 14:30, 123456789012345678, deadbee1f";
        assert_eq!(messages.normalize(text, author, None), text);
    }
    let key = |author, text: &str| {
        let text = messages.normalize(text, Some(author), Some("c1"));
        dup_key(author, "c1", &text, &attachment_signature(&[]), "e1|0|||")
    };
    assert_ne!(key(AuthorKind::Human, "Meeting at 14:30"), key(AuthorKind::Human, "Meeting at 15:30"));
    assert_eq!(key(AuthorKind::Bot, "backup done 14:30"), key(AuthorKind::Bot, "backup done 15:30"));
    let all = Msg { volatile_for: vec![AuthorKind::Human], ..Msg::default() };
    let all = Messages::new(&all, &Sim::default()).unwrap();
    assert_eq!(all.normalize("at 14:30", HUMAN, None), "at <time>");
    assert_eq!(all.normalize("at 14:30", BOT, None), "at 14:30");
}

// DEDUP-27.
#[test]
fn times_and_ids_are_replaced_only_standing_alone() {
    for (text, expected) in [
        ("2026-01-31T1:02:03.456Z|2026-01-31 12:34 +02:00", "<ts>|<ts>"),
        ("2026-01-31 12:34:56,789 +0200 x", "<ts> x"),
        ("2026-01-31 12:34:567", "<ts>:567"),
        ("2026-01-31 is a day", "2026-01-31 is a day"),
        ("12026-01-31 12:34", "12026-01-31 <time>"),
        ("_12:34_ (9:05:07pm) 9:05 x", "_<time>_ (<time>) <time> x"),
        ("a12:34 12:34b 12:345 123:45 1:2", "a12:34 12:34b 12:345 123:45 1:2"),
        ("12:34 pmx", "<time> pmx"),
        ("12345678901234 123456789012345 x123456789012345", "12345678901234 <id> x123456789012345"),
        ("dead1 deadbe1 DEADBEE1 deadbee1g a1b2c3d_", "dead1 <hex> <hex> deadbee1g <hex>_"),
        ("１２：３４ ٠٩:٠٥ 123456789٠١٢٣٤٥", "<time> <time> <id>"),
        ("12:34\u{338} e\u{316}12:34 雨12:34", "12:34\u{338} e\u{316}12:34 雨12:34"),
        ("12:34http://a.com/12:34 http://a.com/ 12:34", "12:34http://a.com/12:34 http://a.com/ <time>"),
        ("<12:34> <@x> <@1 <#12:34>", "<<time>> <@x> <@1 <#<time>>"),
    ] {
        assert_eq!(bot(text), expected, "{text:?}");
    }
}

#[test]
fn custom_patterns_replace_what_stands_alone_and_was_not_replaced_before() {
    let messages = custom(&[(r"build-\d+", "$0 built"), (r"(?i)built|T\d", "<t>"), (r"\b", "?")]);
    for (text, expected) in [
        ("build-12, rebuild-12, build-12b", "$0 built, rebuild-12, build-12b"),
        ("Built t1 http://a.com/t1 <@1>", "<t> <t> http://a.com/t1 <@user>"),
        ("雨built", "雨built"),
    ] {
        assert_eq!(messages.normalize(text, BOT, None), expected);
    }
    let only = custom(&[]);
    assert_eq!(only.normalize("at 12:34", BOT, None), "at 12:34", "the list is the policy's");
}

#[test]
fn a_pattern_set_by_hand_that_does_not_compile_is_refused() {
    let broken = MessagePattern::Custom { regex: "(".to_owned(), put: "x".to_owned() };
    let msg = Msg { patterns: vec![broken], ..Msg::default() };
    let error = Messages::new(&msg, &Sim::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("policy msg.patterns: invalid regular expression \"(\""),
        "{error}"
    );
}

// DEDUP-26, DEDUP-30.
#[test]
fn spacing_lines_and_mentions() {
    for (text, expected) in [
        ("", ""),
        (" \t\r\n \n", ""),
        ("a\r\n\r\n  b\rc \t d\u{3000}\u{A0}e", "a\n\nb\rc d e"),
        ("Hello WORLD", "Hello WORLD"),
        ("<@> <@!> <@12 > <@&1><#٣> @here", "<@> <@!> <@12 > <@role><#channel> @here"),
        ("\u{202E}שלום <@1> 👩‍👩‍👧 é", "\u{202E}שלום <@user> 👩‍👩‍👧 é"),
    ] {
        assert_eq!(bot(text), expected, "{text:?}");
    }
}

#[test]
fn v72_signature_of_attachments() {
    let text = Attachment { media_type: "text/plain".to_owned(), size: 100, blob_id: None };
    assert_eq!(attachment_signature(&[image(2_048), text]), "a1|2|image,text|small,tiny");
    assert_eq!(attachment_signature(&[]), "a1|0||", "DEDUP-31");
    for (size, bucket) in [
        (0, "tiny"),
        (1_023, "tiny"),
        (1_024, "small"),
        ((1 << 20) - 1, "small"),
        (1 << 20, "medium"),
        ((10 << 20) - 1, "medium"),
        (10 << 20, "large"),
        (u64::MAX, "large"),
    ] {
        assert_eq!(attachment_signature(&[image(size), image(size)]), format!("a1|2|image|{bucket}"));
    }
    let odd = Attachment { media_type: "Video".to_owned(), size: 1, blob_id: Some("b".to_owned()) };
    assert_eq!(attachment_signature(&[odd]), "a1|1|video|tiny");
}

#[test]
fn v73_signature_of_embeds() {
    let messages = messages(&Msg::default());
    let sign = |embeds: &[Embed]| messages.embed_signature(embeds, BOT, None);
    let one = embed("https://X.com/a?utm_id=1", Some("Release notes"));
    assert_eq!(sign(std::slice::from_ref(&one)), "e1|1|https://x.com/a|1254829bd9996472|");
    assert_eq!(sign(&[]), "e1|0|||", "DEDUP-31");
    assert_eq!(sign(&[embed("https://x.com/a", None), one]), "e1|2|https://x.com/a||");
    assert_eq!(sign(&[embed("https://x.com/a", Some(" "))]), "e1|1|https://x.com/a||");
    assert_eq!(sign(&[embed(" ｇopher://A  b", None)]), "e1|1|gopher://A b||");
    let at = |author, title| messages.embed_signature(&[embed("http://x.com", Some(title))], author, None);
    assert_eq!(at(BOT, "done  12:34"), at(BOT, "done 13:01"), "the title is in form msg-1");
    assert_ne!(at(HUMAN, "done 12:34"), at(HUMAN, "done 13:01"));
}

#[test]
fn v74_to_v76_keys_of_exact_repeats() {
    assert_eq!(MSG_ID, "msg-1");
    for (author, scope, expected) in [
        (AuthorKind::Bot, "c1", "f5b5b1270ae71c73bfb73490c824c3170e9970c3e5a5402ec85d97338cd73e9c"),
        (AuthorKind::Human, "c1", "f20f883c61a992173d810dfb73fdc585b17b29b5b19b613a30f0a55d272b333a"),
        (AuthorKind::Bot, "", "5accf5ef3ac6b60a6770a77b97c75e6e9bd16c0c730e43c3cfee1a79efa766f9"),
    ] {
        assert_eq!(
            hex(&dup_key(author, scope, "hello", "a1|0||", "e1|0|||")),
            expected,
            "{author} {scope:?}"
        );
    }
}

// DEDUP-32.
#[test]
fn the_scope_of_a_key_is_the_policys() {
    let channel = messages(&Msg::default());
    assert_eq!((channel.scope_key(Some("c1")), channel.scope_key(None)), ("c1", ""));
    let namespace = messages(&Msg { key_scope: KeyScope::Namespace, ..Msg::default() });
    assert_eq!((namespace.scope_key(Some("c1")), namespace.scope_key(None)), ("", ""));
}

#[test]
fn v77_and_v78_what_makes_keys_equal() {
    let key = |text: &str, attachments: &[Attachment]| {
        dup_key(AuthorKind::Bot, "c1", &bot(text), &attachment_signature(attachments), "e1|0|||")
    };
    assert_eq!(key("Build  done 12:34", &[]), key("Build done 13:01", &[]));
    assert_ne!(key("Build done", &[]), key("Build done", &[image(1)]));
    assert_ne!(
        dup_key(AuthorKind::Bot, "ab", "c", "", ""),
        dup_key(AuthorKind::Bot, "a", "bc", "", ""),
        "each field has its length"
    );
}

#[test]
fn digits_are_masked_in_runs() {
    assert_eq!(digits_masked("a12b3 ٤٥ 6.7 Ⅳ½"), "a#b# # #.# Ⅳ½");
    assert_eq!(digits_masked(""), "");
}

#[test]
fn long_texts_take_linear_time() {
    let messages = messages(&Msg { counter_channels: vec!["c".to_owned()], ..Msg::default() });
    let started = Instant::now();
    for unit in [
        "http:///",
        "http://@/",
        "http://",
        "http://a",
        "<@1",
        "<@1>",
        "1",
        "12:34:",
        "a1",
        "-",
        "run=",
        "(#1",
        "2026-01-31 12:34:56.",
        "a\u{301}\u{316}",
        "http://a.com?ref=",
        "雨",
        " \t",
        "\r\n",
    ] {
        let text = unit.repeat(1_000_000 / unit.len());
        let normalized = messages.normalize(&text, BOT, Some("c"));
        assert!(normalized.len() <= 3 * text.len(), "{unit:?}");
        assert!(started.elapsed() < Duration::from_secs(60), "{unit:?}");
    }
}

/// Texts of what the rules look for, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "12:34",
            ":56",
            " PM",
            "2026-01-31",
            "T",
            " ",
            ".5",
            ",",
            "Z",
            "+02:00",
            "123456789012345",
            "deadbee1",
            "<@12>",
            "<#3>",
            "<",
            ">",
            "http://",
            "HTTPS://J\u{30C}.com",
            "a.com",
            "?ref=1",
            "&x=2",
            "#f",
            "/",
            ")",
            "run=",
            "7",
            "(#8)",
            "\r\n",
            "\t",
            "\u{301}",
            "\u{338}",
            "雨",
            "א",
            "👩‍👧",
            "١٢",
            "ﬁ",
            "１",
            "@",
            "?",
            "=",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

/// Found by the property below: what is no address must not become one when its end is replaced.
#[test]
fn noise_beside_a_bare_scheme_makes_no_address() {
    for text in ["http://+02:00:56@", "http:///12:34", "http://:12:34@ http://.12:34"] {
        let form = bot(text);
        assert_eq!(bot(&form), form, "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_form_of_a_form_is_itself(text in pieces(), author in 0..3_usize) {
        let messages = messages(&Msg { counter_channels: vec!["c".to_owned()], ..Msg::default() });
        let author = [None, HUMAN, BOT][author];
        let form = messages.normalize(&text, author, Some("c"));
        prop_assert_eq!(messages.normalize(&form, author, Some("c")), form);
    }

    #[test]
    fn the_form_is_never_longer_than_linear(text in pieces()) {
        // NFKC makes at most 11 bytes of one, `<#1>` becomes `<#channel>`, and a custom match 128 bytes.
        prop_assert!(bot(&text).len() <= 33 * text.len());
        let put = "a ".repeat(64);
        let growing = custom(&[("a", put.trim()), ("a", put.trim()), ("a", put.trim())]);
        let form = growing.normalize(&text, BOT, None);
        prop_assert!(form.len() <= 128 * 33 * text.len());
    }

    #[test]
    fn any_text_has_a_form_and_a_key(text in any::<String>(), put in any::<String>()) {
        let patterns = [r"\w+", r"^.", r"\s*$", r"[^a]"].map(|regex| (regex, put.as_str()));
        let form = custom(&patterns).normalize(&text, BOT, Some("c"));
        let _ = dup_key(AuthorKind::Bot, "c", &form, &text, &put);
        let _ = messages(&Msg::default()).embed_signature(&[embed(&text, Some(&put))], HUMAN, None);
        prop_assert!(!digits_masked(&text).contains(is_digit));
    }
}
