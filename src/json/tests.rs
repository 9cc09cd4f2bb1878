//! What is refused, and where the refusal says that it stands.

use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    #[expect(dead_code, reason = "only read")]
    to: u8,
}

fn refused<'de, T: Deserialize<'de>>(text: &'de str) -> (String, String) {
    match read::<T>(text) {
        Err(Refusal { place, why, .. }) => (place, why),
        Ok(_) => panic!("{text} is not refused"),
    }
}

#[test]
fn a_name_that_stands_twice_is_refused_where_it_stands() {
    for (text, at) in [
        (r#"{"b":1,"b":1}"#, ""),
        (r#"{"a":[0,{"b":1,"b":2}]}"#, "a.1"),
        (r#"{"a":{"b":1,"\u0062":2}}"#, "a"),
    ] {
        let told = (at.to_owned(), r#"the name "b" stands twice in one object"#.to_owned());
        assert_eq!(refused::<Strict>(text), told, "{text}");
    }
    let Ok(Strict(value)) = read(r#"{"a":{"b":1},"b":[{"b":-0.0}]}"#) else { panic!("no value") };
    assert_eq!(value.to_string(), r#"{"a":{"b":1},"b":[{"b":-0.0}]}"#);
}

#[test]
fn a_value_of_another_type_or_an_unknown_name_is_refused_where_it_stands() {
    assert_eq!(refused::<Vec<Link>>(r#"[{"to":1},{"to":"x"}]"#).0, "1.to");
    assert_eq!(refused::<Vec<Link>>(r#"[{"to":256}]"#).0, "0.to");
    let (place, why) = refused::<Vec<Link>>(r#"[{"to":1,"ot":1}]"#);
    assert_eq!((place.as_str(), why.as_str()), ("0.ot", "unknown field `ot`, expected `to`"));
    assert_eq!(refused::<u8>("\"x\"").0, "");
}

#[test]
fn a_refusal_has_no_words_of_the_reader() {
    for (text, told) in [
        ("nix", "a value is not JSON"),
        ("hello", "a value is not JSON"),
        ("", "the JSON ends too early"),
        ("[1", "the JSON ends too early, in a list"),
        ("1 x", "more follows behind the JSON"),
    ] {
        assert_eq!(refused::<Strict>(text).1, told, "{text}");
    }
    assert_eq!(refused::<u32>("\"x\"").1, "invalid type: string \"x\", expected a whole number, 0 or more");
}

#[test]
fn what_is_no_json_is_refused_without_a_place() {
    let deep = "[".repeat(100_000);
    for text in ["", "[1,]", "[1] x", "{'a':1}", r#"{"a":1e999}"#, r#"["\ud800"]"#, &deep] {
        let (place, why) = refused::<Strict>(text);
        assert_eq!(place, "", "{text:.20}: {why}");
        assert!(!why.contains("column"), "{why}");
    }
}
