use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{Error, ErrorKind};
use crate::limits::{POLICY_BYTES_MAX, POLICY_ITEMS_MAX};
use crate::model::Span;

// The table of MODEL-47 as it is printed, but for the lists that the rules of DEDUP and LIFE spell out.
const MODEL_47: &str = include_str!("tests/model_47.toml");

// DEDUP-60, byte for byte.
const DEDUP_60: &str = "STORE:\n\
- decisions together with the reasons for them\n\
- preferences that the user stated explicitly\n\
- context of the project and what was learned in it\n\
- technical findings together with their solutions\n\
- ways of working that proved good\n\
\n\
IGNORE:\n\
- facts about the user's identity, skills or preferences (they go to the profile)\n\
- search queries (they have their own partition)\n\
- short-lived debugging context\n\
- speculation (might, maybe, possibly)\n\
- what is stored already\n\
\n\
CONSOLIDATE:\n\
- a fact that changes a stored memory updates that memory and is not added beside it\n\
- the specific wins over the general (\"uses TypeScript 5.3\" over \"uses TypeScript\")";

fn toml(text: &str) -> Result<Policy> {
    Policy::parse(text, Syntax::Toml)
}

fn json(text: &str) -> Result<Policy> {
    Policy::parse(text, Syntax::Json)
}

/// Where and why the document is refused.
#[track_caller]
fn refusal(read: Result<Policy>) -> (String, String) {
    match read {
        Err(Error::Policy { place, why }) => (place, why),
        other => panic!("not refused as a policy: {other:?}"),
    }
}

/// A TOML document that sets one key, as a table, to a JSON value.
fn nested(key: &str, value: Value) -> String {
    let document = key.rsplit('.').fold(value, |inner, part| json!({ part: inner }));
    document.to_string()
}

#[test]
fn every_default_is_the_one_of_model_47() {
    let default = Policy::default();
    // The keys of the indexes and of ranking are this project's own.
    let own =
        |key: &String| ["index.", "text.", "recall.", "storage."].iter().any(|group| key.starts_with(group));
    let mut seen = BTreeSet::from(["rules.text".to_owned()]);
    for line in MODEL_47.lines().filter(|line| !line.is_empty()) {
        let (key, _) = line.split_once(" = ").unwrap();
        assert!(seen.insert(key.to_owned()), "{key} stands in the table twice");
        assert_eq!(toml(line).unwrap(), default, "{line}");
    }
    let keys: BTreeSet<String> =
        default.entries().into_iter().map(|(key, _)| key).filter(|key| !own(key)).collect();
    assert_eq!(keys, seen, "keys of the document, and keys of MODEL-47");
    assert_eq!(default.rules.text, DEDUP_60, "DEDUP-60");
    assert_eq!(default.collapse.stopwords.len(), 50, "DEDUP-13");
    assert_eq!(toml("").unwrap(), default, "an absent value takes its default");
}

#[test]
fn the_list_of_keys_in_the_docs_is_complete() {
    let table = include_str!("../../docs/policy.md");
    for (key, value) in Policy::default().entries() {
        let row = table.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        let row = row.unwrap_or_else(|| panic!("{key} has no row in docs/policy.md"));
        let short = match &value {
            Value::String(text) => format!("`{text}`"),
            value => format!("`{value}`"),
        };
        if short.len() <= 40 {
            assert_eq!(row.split(" | ").nth(1), Some(short.as_str()), "default of {key} in docs/policy.md");
        }
    }
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Policy::default().entries().len(), "rows of docs/policy.md without a key");
}

#[test]
fn the_examples_in_the_docs_load() {
    let docs = include_str!("../../docs/policy.md");
    let examples: Vec<&str> =
        docs.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        assert_ne!(toml(example).unwrap(), Policy::default(), "{example}");
    }
}

#[test]
fn a_document_is_written_whole_and_read_back() {
    let text = Policy::default().to_toml().unwrap();
    assert!(text.starts_with("format = 1\n\n[ttl]\nworking = \"3d\"\nepisodic = \"30d\"\n"), "{text}");
    assert!(text.contains("\n[salience]\n"));
    assert!(text.lines().all(|line| line.chars().count() <= 200), "{text}");
    assert_eq!(toml(&text).unwrap(), Policy::default());
    let mut whole: toml::Table = text.parse().unwrap();
    assert_eq!(whole.remove("format"), Some(toml::Value::Integer(1)));
    let same: Value = whole.try_into().unwrap();
    assert_eq!(same, groups::value(&Policy::default()), "every key and value of the document is in the text");
}

#[test]
fn texts_and_tables_of_any_content_are_read_back() {
    let mut policy = Policy::default();
    for text in ["", "\n", "a\nb", "'''\"\"\"\\\n\t\u{7f}\u{1}é", "\r\n# no comment", "\"", "'"] {
        policy.rules.text = text.to_owned();
        policy.msg.query_allow.insert("a.example".to_owned(), vec!["q\"'\\".to_owned()]);
        policy.msg.counter_channels = vec!["#ops \"x\"".to_owned(), "línea".to_owned()];
        assert_eq!(toml(&policy.to_toml().unwrap()).unwrap(), policy, "{text:?}");
    }
}

#[test]
fn equal_documents_have_equal_hashes() {
    let dotted =
        toml("sim.max_hamming = 3\nttl.working = \"1d\"\nretention.tau_days = 9\nrecall.month = -0.0")
            .unwrap();
    let tables = toml(
        "[retention]\ntau_days = 9.0\n[recall]\nmonth = 0\n[ttl]\nworking = \"24h\"\n[sim]\nmax_hamming = 3\n",
    );
    let json = json(
        r#"{"recall":{"month":0.0},"ttl":{"working":"86400s"},"sim":{"max_hamming":3},"retention":{"tau_days":9}}"#,
    );
    assert_eq!(dotted.hash(), tables.unwrap().hash());
    assert_eq!(dotted.hash(), json.unwrap().hash());
    assert_eq!(dotted.hash(), toml(&dotted.to_toml().unwrap()).unwrap().hash());
    assert_ne!(dotted.hash(), Policy::default().hash());
}

/// Without the `float_roundtrip` feature of serde_json this number is read one bit too high from JSON, so that one
/// document had two hashes.
#[test]
fn numbers_are_read_exactly_in_both_syntaxes() {
    let number = "8.923164157624239e-246";
    let from_toml = toml(&format!("salience.working = {number}")).unwrap();
    let from_json = json(&format!("{{\"salience\": {{\"working\": {number}}}}}")).unwrap();
    assert_eq!(from_toml.salience.working, number.parse::<f64>().unwrap());
    assert_eq!(from_toml.hash(), from_json.hash());
}

#[test]
fn the_hash_is_sha_256_of_the_canonical_json() {
    let canonical = serde_json::to_string(&Policy::default()).unwrap();
    assert!(canonical.starts_with(
        r#"{"ttl":{"working":"3d","episodic":"30d"},"purge":{"batch":500,"per_write":8},"undo":"#
    ));
    let digest = format!("{:x}", Sha256::digest(canonical.as_bytes()));
    assert_eq!(Policy::default().hash().to_string(), digest[..16]);
    let version = PolicyVersion { number: 7, hash: Policy::default().hash() };
    assert_eq!(version.to_string(), format!("7-{}", &digest[..16]));
}

#[test]
fn each_key_takes_part_in_the_hash() {
    let default = Policy::default();
    let mut changed = 0;
    for (key, value) in default.entries() {
        let other = others(&value)
            .into_iter()
            .find_map(|other| json(&nested(&key, other)).ok().filter(|p| *p != default));
        if let Some(policy) = other {
            assert_ne!(policy.hash(), default.hash(), "{key}");
            changed += 1;
        }
    }
    assert!(changed > 60, "only {changed} keys could be changed");
}

/// Values of the same sort as `value`, some of them out of range.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(on) => vec![json!(!on)],
        Value::Number(number) if number.is_u64() => vec![json!(1), json!(2), json!(7), json!("36h")],
        Value::Number(_) => vec![json!(0.125), json!(1)],
        Value::String(_) => vec![json!("7h"), json!("other")],
        Value::Array(_) => vec![json!([]), json!(["message"]), json!(["dedup"])],
        _ => vec![json!({ "a.example": ["q"] })],
    }
}

#[test]
fn overrides_change_only_what_they_name() {
    let base = toml("ttl.working = \"12h\"\nmsg.query_allow = { \"a.example\" = [\"q\"] }").unwrap();
    let over = base
        .overlaid("salience.working = 0.4\nmsg.query_allow = { \"b.example\" = [\"p\"] }", Syntax::Toml)
        .unwrap();
    assert_eq!(over.ttl, base.ttl);
    assert_eq!((over.salience.working, over.salience.episodic), (0.4, 0.55));
    assert_eq!(
        over.msg.query_allow.keys().collect::<Vec<_>>(),
        ["b.example"],
        "a table is replaced, not merged"
    );
    assert_eq!(base.overlaid("", Syntax::Toml).unwrap(), base);
    assert_eq!(base.overlaid("{}", Syntax::Json).unwrap().hash(), base.hash());
}

#[test]
fn unknown_keys_are_refused_with_their_path() {
    for (document, key) in [
        ("tll.working = \"1h\"", "tll"),
        ("ttl.wroking = \"1h\"", "ttl.wroking"),
        ("salience.workin = 1", "salience.workin"),
        ("gc.keep_query = true", "gc.keep_query"),
        ("\"ttl.working\" = \"1h\"", "ttl.working"),
    ] {
        let (place, why) = refusal(toml(document));
        assert_eq!(place, key);
        assert!(why.starts_with("unknown key; known are "), "{why}");
    }
    assert!(refusal(toml("ttl.wroking = 0")).1.ends_with("known are working, episodic"));
    assert_eq!(refusal(toml("ttl = 3")).0, "ttl");
    assert_eq!(toml("x = 1").unwrap_err().kind(), ErrorKind::Policy);
}

#[test]
fn a_key_of_very_many_steps_is_refused() {
    for steps in [9, 500_000] {
        let key = vec!["a"; steps].join(".");
        let (place, why) = refusal(json(&format!("{{\"{key}\": 1}}")));
        assert!(place.starts_with("a.a.a.a") && place.len() <= 40, "{place}");
        assert_eq!(why, format!("must be a key of at most 8 steps (got {steps})"));
        // TOML is read by a reader with a bound of its own.
        assert_eq!(toml(&format!("{key} = 1")).unwrap_err().kind(), ErrorKind::Policy);
    }
    assert_eq!(refusal(json("{\"gc.a.b.c.d.e.f.g\": 1}")).0, "gc.a");
}

#[test]
fn bad_values_are_refused_with_their_key() {
    for (document, why) in [
        ("budget.share = 1.01", "must be 0 to 1 (got 1.01)"),
        ("budget.share = -0.1", "must be 0 to 1 (got -0.1)"),
        ("write.hint_cosine = -1.5", "must be -1 to 1 (got -1.5)"),
        ("sim.max_hamming = 8", "must be 0 to 7 (got 8)"),
        ("collapse.batch = 0", "must be 1 to 1000000 (got 0)"),
        ("dedup.neighbours = 1000", "must be 0 to 999 (got 1000)"),
        ("ttl.working = 0", "must be longer than 0"),
        ("retention.tau_days = 0", "must be 0.001 to 36525 (got 0)"),
        ("recall.window_reach = 17", "must be 0 to 16 (got 17)"),
        ("sweeper.stages = [\"dedup\", \"dedup\"]", "\"dedup\" stands in the list twice"),
        ("collapse.kinds = [\"profiles\"]", "\"profiles\": must be message, assistant_message, "),
        ("collapse.kinds = [\"Profile\"]", "\"Profile\": must be in small letters: profile"),
        ("collapse.kinds = [\"custom:\"]", "\"custom:\": must be 1 to 128 bytes (got 0)"),
        ("collapse.keywords = [\"Status\"]", "\"Status\": must be lowercase"),
        ("collapse.keywords = [\"two words\"]", "\"two words\": must be one word"),
        ("guards.opposites = [[\"on\", \"on\"]]", "[\"on\",\"on\"]: a word is not its own opposite"),
        ("guards.opposites = [[\"on\"]]", "invalid length 1"),
        ("stats.shared_label = \"\"", "must be 1 to 256 bytes (got 0)"),
        ("snapshot.agent = \" x\"", "must have no NUL and no white space at its ends"),
        ("snapshot.zone = \"Vienna!\"", "must be an IANA zone name"),
        ("msg.drop_fragment_hosts = [\"https://a.b\"]", "\"https://a.b\": must be a host name"),
        ("msg.query_allow = { \"A.B\" = [] }", "\"A.B\": must be a host name in lowercase"),
        (
            "msg.patterns = [{ custom = { regex = \"(\", put = \"<n>\" } }]",
            "invalid regular expression \"(\"",
        ),
        ("msg.patterns = [{ custom = { regex = \"a*\", put = \"<n>\" } }]", "\"a*\" matches the empty text"),
        ("msg.patterns = [{ custom = { regex = \"a\" } }]", "missing key `put`"),
        ("msg.patterns = [{ custom = { regex = \"a\", put = \"b\", x = 1 } }]", "unknown key `x`"),
        ("sweeper.stages = [\"index\"]", "unknown word `index`"),
        ("msg.volatile_for = [\"robot\"]", "must be human or bot"),
        ("msg.volatile_for = [\"bot\", \"bot\"]", "\"bot\" stands in the list twice"),
        ("msg.patterns = [\"uuid\"]", "unknown word `uuid`"),
        ("write.on_key = \"overwrite\"", "unknown word `overwrite`"),
        ("rules.strict = \"yes\"", "invalid type: string \"yes\", expected a boolean"),
        ("collapse.batch = 1.5", "invalid type: number `1.5`, expected a whole number"),
        ("collapse.batch = -1", "invalid value: number `-1`, expected a whole number"),
        ("snapshot.period = 1979-05-27", "invalid type: a table"),
    ] {
        let (place, said) = refusal(toml(document));
        assert_eq!(Some(place.as_str()), document.split(" = ").next(), "{document}");
        assert!(said.contains(why), "{document}: {said}");
    }
}

#[test]
fn a_regular_expression_that_grows_too_large_is_refused() {
    for document in [
        r#"{"msg":{"patterns":[{"custom":{"regex":"(?:\\pL{100}){100}","put":"x"}}]}}"#,
        r#"{"rules":{"typed":[{"id":"a","match":{"regex":"(?:\\pL{100}){100}"},"action":"ignore"}]}}"#,
    ] {
        let (_, why) = refusal(json(document));
        assert!(why.contains("invalid regular expression"), "{why}");
    }
}

#[test]
fn bad_rules_are_refused() {
    for (rule, why) in [
        (json!({"id": "", "action": "store"}), "rule \"\": id: must be 1 to 128 bytes"),
        (json!({"id": "a", "action": "drop"}), "unknown word `drop`"),
        (json!({"id": "a", "match": {"kinds": []}, "action": "store"}), "unknown key `kinds`"),
        (
            json!({"id": "a", "match": {"kind": ["memo"]}, "action": "store"}),
            "rule \"a\": kind: \"memo\": must be message, assistant_message, ",
        ),
        (
            json!({"id": "a", "match": {"regex": "["}, "action": "store"}),
            "rule \"a\": invalid regular expression",
        ),
        (
            json!({"id": "a", "match": {"near_dup": 1.5}, "action": "store"}),
            "near_dup: must be 0 to 1 (got 1.5)",
        ),
        (
            json!({"id": "a", "match": {"keyword": ["Big"]}, "action": "store"}),
            "keyword: \"Big\": must be lowercase",
        ),
        (json!({"id": "a", "action": {"route": {"agent": ""}}}), "agent: must be 1 to 256 bytes"),
        (json!({"id": "a", "action": {"consolidate": ""}}), "consolidate: must be 1 to 512 bytes"),
        (json!({"id": "a", "action": {"ladder": 8}}), "ladder: must be 1 to 7"),
        (json!({"id": "a", "match": {"tag": ["x"]}, "action": {"ladder": 2}}), "leave out `match`"),
        (json!({"action": "store"}), "missing key `id`"),
    ] {
        let (place, said) = refusal(json(&nested("rules.typed", json!([rule]))));
        assert_eq!(place, "rules.typed");
        assert!(said.contains(why), "{rule}: {said}");
        let misspelt = said.contains("`drop`") || said.contains("`kinds`");
        assert!(!misspelt || said.starts_with("at rules.typed.0"), "{rule}: {said}");
    }
    let twice = json!([{"id": "a", "action": "store"}, {"id": "a", "action": "ignore"}]);
    assert!(refusal(json(&nested("rules.typed", twice))).1.contains("the id stands in the list twice"));
}

#[test]
fn what_show_prints_as_json_can_be_set() {
    let policy = toml("ttl.working = \"12h\"\nrules.strict = true").unwrap();
    let shown = Value::Object(policy.entries().into_iter().collect());
    assert_eq!(json(&shown.to_string()).unwrap(), policy);
    for document in [
        r#"{"ttl": {"working": "1h"}, "ttl.working": "2h"}"#,
        r#"{"ttl.working": "2h", "ttl": {"working": "1h"}}"#,
        r#"{"ttl": 3, "ttl.working": "2h"}"#,
    ] {
        assert!(refusal(json(document)).0.starts_with("ttl"), "{document}");
    }
}

#[test]
fn a_rule_may_use_every_condition_and_action() {
    let rules = json!([
        {"id": "all", "match": {"keyword": ["deploy"], "regex": "^x", "kind": ["custom:memo"], "not_kind": ["message"],
            "tag": ["t"], "partition": {"agent": "a"}, "hedge": ["perhaps"], "exact_dup": true, "near_dup": 0.9},
         "action": {"route": "shared"}},
        {"id": "key", "match": {"partition": "shared"}, "action": {"consolidate": "user.editor"}},
    ]);
    let policy = json(&nested("rules.typed", rules.clone())).unwrap();
    assert_eq!(groups::value(&policy.rules.typed), rules);
    assert_eq!(toml(&policy.to_toml().unwrap()).unwrap(), policy);
}

#[test]
fn durations_of_a_document_need_a_unit_unless_they_are_zero() {
    for document in ["undo.horizon = 0", "undo.horizon = \"0\"", "undo.horizon = \"0s\""] {
        assert_eq!(toml(document).unwrap().undo.horizon, Span::ZERO, "{document}");
    }
    assert_eq!(toml("undo.horizon = \"PT72H\"").unwrap(), toml("undo.horizon = \"3d\"").unwrap());
    for document in [
        "undo.horizon = 7",
        "undo.horizon = -7",
        "undo.horizon = 0.0",
        "undo.horizon = true",
        "undo.horizon = \"36526d\"",
    ] {
        assert_eq!(refusal(toml(document)).0, "undo.horizon", "{document}");
    }
    assert!(refusal(toml("undo.horizon = 7")).1.contains("7 has no unit; write \"7s\", \"7h\""));
}

#[test]
fn syntax_errors_name_their_line() {
    assert_eq!(refusal(toml("\n\nttl.working == 1")).0, "line 3");
    assert_eq!(refusal(toml("[ttl]\nworking = \"1h\"\nworking = \"2h\"")).0, "line 3");
    assert_eq!(refusal(json("{\n\"ttl\": }")).0, "line 2");
    assert_eq!(refusal(json("[]")).0, "document");
    let (place, why) = refusal(json("{\"collapse\": {\"batch\": 1,\n \"batch\": 2}}"));
    assert_eq!(place, "line 2");
    assert!(why.contains("\"batch\" stands twice"), "{why}");
    for number in ["nan", "inf", "-inf"] {
        let (place, why) = refusal(toml(&format!("\nbudget.share = {number}")));
        assert!(place == "line 2" && why.contains("finite"), "{place}: {why}");
    }
}

#[test]
fn only_this_format_is_read() {
    assert!(toml("format = 1").is_ok());
    for document in ["format = 2", "format = \"1\"", "format = 1.0"] {
        assert_eq!(refusal(toml(document)).0, "format", "{document}");
    }
}

#[test]
fn documents_and_lists_are_bounded() {
    let words = |count: usize| {
        let list: Vec<String> = (0..count).map(|i| format!("w{i}")).collect();
        nested("collapse.keywords", json!(list))
    };
    assert!(json(&words(POLICY_ITEMS_MAX)).is_ok());
    let (place, why) = refusal(json(&words(POLICY_ITEMS_MAX + 1)));
    let told = "must have at most 10000 items (got 10001)";
    assert_eq!((place.as_str(), why.as_str()), ("collapse.keywords", told));
    let padded = |bytes: usize| format!("{}{}", "#".repeat(bytes - 1), "\n");
    assert!(toml(&padded(POLICY_BYTES_MAX)).is_ok());
    assert_eq!(refusal(toml(&padded(POLICY_BYTES_MAX + 1))).0, "document");
    let deep = "[".repeat(100_000);
    assert!(json(&deep).is_err() && toml(&format!("a = {deep}")).is_err());
}

#[test]
fn fields_set_by_hand_are_checked_before_they_are_written() {
    let mut policy = Policy::default();
    policy.budget.share = f64::NAN;
    assert_eq!(refusal(policy.validate().map(|()| policy.clone())).0, "budget.share");
    assert!(policy.to_toml().is_err());
    policy.budget.share = 0.5;
    policy.ttl.working = Span::from_millis(Span::MAX.as_millis() + 1);
    assert_eq!(refusal(policy.validate().map(|()| policy.clone())).0, "ttl.working");
    policy.ttl.working = Span::MAX;
    assert_eq!(toml(&policy.to_toml().unwrap()).unwrap(), policy);
}

/// A value that may fit some key: most do not, and must then be refused without a panic.
fn any_value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "profile",
        "message",
        "custom:x",
        "bot",
        "human",
        "limbo",
        "dedup",
        "hint",
        "off",
        "error",
        "sha256",
        "chain",
        "l2_score",
        "namespace",
        "half_life",
        "reinforcement_first",
        "hex",
        "UTC",
    ]);
    let scalar = prop_oneof![
        any::<bool>().prop_map(|v| json!(v)),
        (0u64..100_000).prop_map(|v| json!(v)),
        (0u64..8).prop_map(|v| json!(v)),
        any::<i64>().prop_map(|v| json!(v)),
        (-1.0..=1.0f64).prop_map(|v| json!(v)),
        any::<f64>().prop_map(|v| json!(v)),
        (0..=Span::MAX.as_millis()).prop_map(|v| json!(Span::from_millis(v))),
        word.prop_map(|v| json!(v)),
        "\\PC{0,12}".prop_map(|v| json!(v)),
        any::<String>().prop_map(|v| json!(v)),
    ];
    prop_oneof![
        6 => scalar.clone(),
        2 => prop::collection::vec(scalar, 0..6).prop_map(|v| json!(v)),
        1 => prop::collection::btree_map("[a-z]{1,8}", prop::collection::vec("\\PC{1,9}", 0..3), 0..4).prop_map(|v| json!(v)),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(edits in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..120)) {
        let mut policy = Policy::default();
        let keys: Vec<String> = policy.entries().into_iter().map(|(key, _)| key).collect();
        for (index, value) in edits {
            match policy.overlaid(&nested(index.get::<String>(&keys), value), Syntax::Json) {
                Ok(changed) => policy = changed,
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Policy),
            }
        }
        let again = toml(&policy.to_toml().unwrap()).unwrap();
        prop_assert_eq!(again.hash(), policy.hash());
        prop_assert_eq!(&again, &policy);
        let canonical = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(&json(&canonical).unwrap(), &policy);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = toml(&text);
        let _ = json(&text);
    }
}
