//! An answer of a summarizer: accepted or refused, and what is accepted is of the form. And the built-in summarizer on
//! the lines of the same text: what it writes is accepted as it stands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oubliette::Kind;
use oubliette::gc::{
    Expected, Extractive, InputPack, PackLimits, PackSource, Summarizer, SummaryDocument, TimeSpan, accept,
};

const LIMITS: PackLimits = PackLimits { bullets: 25, patterns: 10 };

fuzz_target!(|text: &str| {
    let span = TimeSpan { start: -5, end: 5 };
    let expected = Expected {
        committing: vec!["1".to_owned()],
        observed: vec![40],
        span,
        limits: LIMITS,
        tokens: 500,
        numbers: ["40".to_owned()].into(),
    };
    if let Ok(accepted) = accept(text, &expected) {
        assert!(accepted.document.summary.len() <= LIMITS.bullets);
        let again = serde_json::to_string(&accepted.document).unwrap();
        let again = accept(&again, &expected).unwrap();
        assert_eq!((again.document, again.repairs), (accepted.document, vec![]));
        // What is cut and corrected is so for good. A number that stands in no source is told each time.
        assert!(again.warnings.iter().all(|warning| warning.what.starts_with("says ")));
    }
    let sources = (0_i64..).zip(text.split("\n\n")).map(|(number, text)| PackSource {
        id: number.to_string(),
        ts: number,
        channel: None,
        author_kind: None,
        kind: Kind::Message,
        text: text.to_owned(),
    });
    let pack = InputPack::new(sources.collect(), vec![], LIMITS);
    assert!(serde_json::to_string(&pack).unwrap().contains("json_v1"));
    if let Ok(answer) = Extractive::default().summarize(&pack) {
        let summary = SummaryDocument::parse(&answer).unwrap();
        let accepted = accept(&answer, &Expected::of(&pack)).unwrap();
        assert_eq!((accepted.document, accepted.repairs, accepted.warnings), (summary, vec![], vec![]));
    }
});
