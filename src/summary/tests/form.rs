//! The form of a summary: the reader beside the normative schema, repairs, bounds.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::summary::{Accepted, Expected, Fault, PackLimits, SummaryDocument, TimeSpan, accept};

/// The schema of the specification.
const SCHEMA: &str = r#"{"type":"object","properties":{"topic":{"type":"string","minLength":1},"time_range":{"type":"object","properties":{"start":{"type":"integer"},"end":{"type":"integer"}},"required":["start","end"],"additionalProperties":false},"summary":{"type":"array","items":{"type":"string","minLength":1},"minItems":1,"maxItems":40},"spam_patterns":{"type":"array","items":{"type":"object","properties":{"pattern":{"type":"string","minLength":1},"signals":{"type":"array","items":{"type":"string"}},"count_estimate":{"type":"integer","minimum":0},"estimated":{"type":"boolean"}},"required":["pattern","signals"],"additionalProperties":false}},"decisions":{"type":"array","items":{"type":"string","minLength":1}},"open_loops":{"type":"array","items":{"type":"string","minLength":1}},"entities":{"type":"array","items":{"type":"string","minLength":1}},"source_ids":{"type":"array","items":{"type":"string","minLength":1,"maxLength":128},"minItems":1,"uniqueItems":true}},"required":["topic","time_range","summary","source_ids"],"additionalProperties":false}"#;

fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap()
}

/// The example of the specification.
fn example() -> Value {
    json!({
        "topic": "build alerts of 3 March", "time_range": {"start": 1_772_496_000_000_i64, "end": 1_772_582_399_000_i64},
        "summary": ["nightly build failed 40 times, cause unknown"],
        "spam_patterns": [{"pattern": "Build # failed on main", "signals": ["author is a bot", "text starts with Build"],
                           "count_estimate": 40, "estimated": false}],
        "decisions": ["mute the build channel at night"], "open_loops": ["find the cause"], "entities": ["main"],
        "source_ids": ["019584a0-0000-7000-8000-000000000001"],
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut document = example();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer}"),
    }
    document
}

fn expected() -> Expected {
    Expected {
        committing: vec!["a".into(), "b".into()],
        observed: vec![40],
        span: TimeSpan { start: i64::MIN, end: i64::MAX },
        limits: PackLimits { bullets: 25, patterns: 10 },
        tokens: 1_000,
        numbers: ["3", "40"].map(str::to_owned).into(),
    }
}

fn parsed(document: &Value) -> Result<SummaryDocument, Vec<Fault>> {
    SummaryDocument::parse(&document.to_string())
}

fn accepted(document: &Value) -> Accepted {
    accept(&document.to_string(), &expected()).unwrap()
}

fn pointers(faults: Vec<Fault>) -> Vec<String> {
    faults.into_iter().map(|fault| fault.pointer).collect()
}

#[test]
fn what_is_not_json_is_told_in_one_sentence() {
    let faults = SummaryDocument::parse("Boxes went to Ghent").unwrap_err();
    assert_eq!(Fault::first_of(&faults), "the answer can't be read: a value is not JSON");
}

#[test]
fn the_example_is_read_as_it_stands() {
    let document = example();
    assert!(schema().is_valid(&document));
    let read = parsed(&document).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
    let Accepted { document: held, repairs, warnings } = accepted(&document);
    assert_eq!((held, repairs, warnings), (read, vec![], vec![]));
}

#[test]
fn v_231_a_span_ends_after_it_starts() {
    let faults = parsed(&with("/time_range", json!({"start": 5, "end": 4}))).unwrap_err();
    assert_eq!(pointers(faults), ["/time_range"]);
}

#[test]
fn v_232_an_unknown_member_is_repaired_away() {
    let document = with("/mood", json!("good"));
    assert_eq!(pointers(parsed(&document).unwrap_err()), ["/mood"]);
    assert_eq!(pointers(accepted(&document).repairs), ["/mood"]);
}

#[test]
fn v_233_too_many_events_are_refused_or_cut() {
    let events = |count| with("/summary", json!(vec!["an event"; count]));
    assert_eq!(pointers(parsed(&events(41)).unwrap_err()), ["/summary"]);
    let cut = accepted(&events(30));
    assert_eq!((cut.document.summary.len(), pointers(cut.warnings)), (25, vec!["/summary".to_owned()]));
}

#[test]
fn v_234_a_summary_has_sources() {
    assert_eq!(pointers(parsed(&with("/source_ids", json!([]))).unwrap_err()), ["/source_ids"]);
}

#[test]
fn v_235_a_count_that_nobody_observed_is_an_estimate() {
    let told = |count: u64, flag: Option<bool>| {
        let mut pattern = json!({"pattern": "p", "signals": [], "count_estimate": count});
        if let Some(flag) = flag {
            pattern["estimated"] = json!(flag);
        }
        let found = accepted(&with("/spam_patterns/0", pattern));
        (found.document.spam_patterns[0].estimated, found.warnings.len())
    };
    assert_eq!(told(40, None), (Some(false), 0));
    assert_eq!(told(40, Some(true)), (Some(false), 0));
    assert_eq!(told(45, None), (Some(true), 1));
    assert_eq!(told(45, Some(false)), (Some(true), 1));
    assert_eq!(told(45, Some(true)), (Some(true), 0));
}

#[test]
fn a_list_that_no_field_can_hold_is_refused() {
    let long = "word ".repeat(14_000);
    let mut document = with("/decisions", json!([long]));
    document["open_loops"] = json!([long]);
    document["spam_patterns"][0]["signals"] = json!([long]);
    let found = accept(&document.to_string(), &expected()).unwrap_err();
    assert!(found.iter().all(|fault| fault.what.contains("65536 bytes of JSON")), "{found:?}");
    assert_eq!(pointers(found), ["/spam_patterns", "/decisions", "/open_loops"]);
    let document = with("/summary", json!(["word ".repeat(14_000)]));
    let roomy = Expected { tokens: 1_000_000, ..expected() };
    assert_eq!(pointers(accept(&document.to_string(), &roomy).unwrap_err()), ["/summary"]);
}

/// Sources make room for a summary, so it says something.
#[test]
fn a_summary_of_white_space_is_refused() {
    for summary in [json!([" "]), json!(["\n", "\t "])] {
        let found = accept(&with("/summary", summary).to_string(), &expected()).unwrap_err();
        assert_eq!(pointers(found), ["/summary"]);
    }
}

#[test]
fn v_289_absent_sources_are_those_to_be_committed() {
    let mut document = example();
    document.as_object_mut().unwrap().remove("source_ids");
    let found = accepted(&document);
    assert_eq!(found.document.source_ids, ["a", "b"]);
    assert_eq!(pointers(found.repairs), ["/source_ids"]);
}

#[test]
fn an_answer_may_have_text_around_its_object() {
    let answer = format!("Sure {{here}} it is:\n```json\n{}\n```\nBye }}", example());
    let found = accept(&answer, &expected()).unwrap();
    assert_eq!(found.document, parsed(&example()).unwrap());
    assert_eq!(pointers(found.repairs), [""]);
}

#[test]
fn a_single_text_becomes_a_list() {
    let found = accepted(&with("/decisions", json!("mute it")));
    assert_eq!(found.document.decisions, ["mute it"]);
    let found = accepted(&with("/spam_patterns/0/signals", json!("a bot")));
    assert_eq!(found.document.spam_patterns[0].signals, ["a bot"]);
}

#[test]
fn a_summary_stays_in_the_time_of_its_sources() {
    let span = TimeSpan { start: 10, end: 20 };
    let found = accept(
        &with("/time_range", json!({"start": 5, "end": 30})).to_string(),
        &Expected { span, ..expected() },
    );
    let found = found.unwrap();
    assert_eq!((found.document.time_range, pointers(found.warnings)), (span, vec!["/time_range".to_owned()]));
}

#[test]
fn hostile_answers_are_refused() {
    for answer in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"topic\":1}",
        "{\"topic\":\"a\",\"topic\":\"b\"}",
        "no object at all",
        "{\"a\":\"\\\"}",
        "\u{feff}{}}{",
    ] {
        assert!(accept(answer, &expected()).is_err(), "{answer}");
    }
    assert!(accept(&"{".repeat(1 << 20), &expected()).is_err());
    assert!(accept(&"{}".repeat(1 << 20), &expected()).is_err());
    assert!(accept(&with("/topic", json!("x".repeat(1_025))).to_string(), &expected()).is_err());
    assert!(accept(&with("/entities/0", json!("a\0b")).to_string(), &expected()).is_err());
    assert!(accept(&with("/time_range/end", json!(9e18)).to_string(), &expected()).is_err());
}

/// Values that a member could have.
fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..50).prop_map(Value::from),
        Just(json!(2.0)),
        Just(json!(2.5)),
        "[a-c]{0,2}".prop_map(Value::from),
        Just(json!("i".repeat(128))),
        Just(json!("é".repeat(129))),
        prop::collection::vec("[a-c]{0,2}", 0..4).prop_map(|list| json!(list)),
        Just(json!(vec!["e"; 41])),
        Just(json!([{"pattern": "p", "signals": []}])),
        Just(json!({"start": 1, "end": 2})),
        Just(json!({})),
    ]
}

proptest! {
    /// The schema and the reader refuse and accept the same documents. What a schema can't say stands apart above.
    #[test]
    fn the_reader_and_the_schema_agree(
        changes in prop::collection::vec((0_usize..19, prop::option::of(any_value())), 1..4)
    ) {
        const PLACES: [&str; 19] = [
            "/topic", "/time_range", "/time_range/start", "/time_range/end", "/time_range/mid", "/summary", "/summary/0",
            "/spam_patterns", "/spam_patterns/0", "/spam_patterns/0/pattern", "/spam_patterns/0/signals",
            "/spam_patterns/0/count_estimate", "/spam_patterns/0/estimated", "/spam_patterns/0/mood", "/decisions",
            "/open_loops", "/entities", "/source_ids", "/mood",
        ];
        let mut document = example();
        for (place, value) in changes {
            let (parent, name) = PLACES[place].rsplit_once('/').unwrap();
            match (document.pointer_mut(parent), value) {
                (Some(Value::Object(members)), Some(value)) => drop(members.insert(name.to_owned(), value)),
                (Some(Value::Object(members)), None) => drop(members.shift_remove(name)),
                (Some(Value::Array(items)), Some(value)) if !items.is_empty() => items[0] = value,
                _ => {}
            }
        }
        let read = parsed(&document);
        let ends_early = read.as_ref().is_err_and(|faults| {
            faults.iter().all(|fault| fault.pointer == "/time_range" && fault.what.contains("end before"))
        });
        prop_assert_eq!(read.is_ok() || ends_early, schema().is_valid(&document), "{:?} {}", read, document);
    }
}
