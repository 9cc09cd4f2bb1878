//! A filter as JSON text: parsed or refused; what it shows is what it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oubliette::Filter;

fuzz_target!(|text: &str| {
    let Ok(filter) = Filter::parse(text) else { return };
    let value = serde_json::from_str(text).unwrap();
    assert_eq!(Filter::from_json(&value).unwrap(), filter);
    oubliette::faults::demands(&filter);
});
