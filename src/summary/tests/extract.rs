use proptest::prelude::*;

use crate::error::Error;
use crate::model::Kind;
use crate::summary::{
    Expected, Extractive, InputPack, PackAggregate, PackLimits, PackSource, Summarizer, SummaryDocument,
    TimeSpan, accept, token_estimate,
};

const LIMITS: PackLimits = PackLimits { bullets: 25, patterns: 10 };
const DAY_MS: i64 = 86_400_000;

fn source(number: i64, text: &str) -> PackSource {
    let (id, kind) = (number.to_string(), Kind::Message);
    PackSource { id, ts: number * DAY_MS / 4, channel: None, author_kind: None, kind, text: text.to_owned() }
}

fn pack(texts: &[&str]) -> InputPack {
    let sources = (0..).zip(texts).map(|(number, text)| source(number, text));
    InputPack::new(sources.collect(), vec![], LIMITS)
}

fn summary(pack: &InputPack, share: f64) -> SummaryDocument {
    let answer = Extractive::new(share).unwrap().summarize(pack).unwrap();
    SummaryDocument::parse(&answer).unwrap()
}

#[test]
fn what_is_said_twice_is_kept_once() {
    let filler = "Bob: Well, you know how it is with all of that and so on and so on and what not.";
    let mut texts = vec![filler; 12];
    texts[2] = "Ann: The boiler broke on 3 March and the plumber asks for 480 euros.";
    texts[7] = "Ann: The plumber asks for 480 euros, and the boiler broke on 3 March.";
    let found = summary(&pack(&texts), 0.1);
    let told: Vec<&String> = found.summary.iter().filter(|event| event.contains("boiler")).collect();
    assert_eq!(told, ["Ann: boiler broke on 3 March plumber asks for 480 euros."]);
    assert!(found.summary[0].starts_with("1970-01-01 "), "the day stands where it begins");
    assert!(found.entities.contains(&"Ann".to_owned()));
}

#[test]
fn a_summary_fits_into_the_fields_of_a_memory() {
    let said = |at: usize| {
        let words: Vec<String> = (0..300).map(|word| format!("w{}", at * 300 + word)).collect();
        format!("Ann: {}.", words.join(" "))
    };
    let texts: Vec<String> = (0..150).map(said).collect();
    let mut pack = pack(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let aggregate = |text: String| PackAggregate {
        aggregate_id: "a".into(),
        dup_count: 3,
        time_span: TimeSpan { start: 0, end: 1 },
        examples: vec![text],
        signals: vec![],
    };
    pack.aggregates = vec![aggregate("spam ".repeat(20_000)), aggregate("You have won".into())];
    let answer = Extractive::new(0.5).unwrap().summarize(&pack).unwrap();
    let found = accept(&answer, &Expected::of(&pack)).unwrap().document;
    let bytes = serde_json::to_string(&found.summary).unwrap().len();
    assert!((50_000..=65_536).contains(&bytes), "{bytes} bytes");
    assert_eq!(found.spam_patterns.iter().map(|item| &*item.pattern).collect::<Vec<_>>(), ["You have won"]);
}

/// Sources that differ in a name and a figure alone each say something, and the budget has room for them.
#[test]
fn alike_sources_are_each_told_while_the_budget_lasts() {
    let names = ["Ann", "Bob", "Carla", "Dan", "Eva", "Finn"];
    let paid = |(at, name): (usize, &&str)| {
        format!("{name} paid {}1 euros for the group ticket to the museum.", at + 2)
    };
    let texts: Vec<String> = names.iter().enumerate().map(paid).collect();
    let found = summary(&pack(&texts.iter().map(String::as_str).collect::<Vec<_>>()), 0.9);
    let told = found.summary.join(" ");
    let of = |at: usize, name: &str| format!("{name} paid {}1 euros for group ticket to museum.", at + 2);
    let known = names.iter().enumerate().filter(|(at, name)| told.contains(&of(*at, name))).count();
    assert!(known >= 5, "{told}");
}

/// One sentence of the first source is worth less for its length than the second source, and both are worth more.
#[test]
fn a_source_in_two_sentences_is_told_as_a_whole() {
    let texts = [
        "Granite lantern harvest pottery compass blanket. Thunder cabinet mustard village sapphire orchard.",
        "Fox jug elm kite yarn moss clay drum lamp.",
        &"It was so, and she was there with them. ".repeat(5),
    ];
    let found = summary(&pack(&texts), 0.2);
    assert_eq!(found.summary, [format!("1970-01-01 {}", texts[0])]);
}

#[test]
fn a_text_without_a_word_for_a_topic_has_its_day() {
    let found = summary(&pack(&["x".repeat(100).as_str(), "y".repeat(300).as_str()]), 0.5);
    assert_eq!(found.topic, "1970-01-01");
}

#[test]
fn events_stand_in_order_of_time_and_within_the_limits() {
    let texts: Vec<String> =
        (0..120).map(|at| format!("Ann: Topic{at} met theme{} at noon.", at * 7)).collect();
    let pack = pack(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let found = summary(&pack, 0.9);
    assert!(found.summary.len() <= 25 && found.summary.len() > 10);
    let said = found.summary.join(" ");
    let days: Vec<&str> = said.split(' ').filter(|word| word.starts_with("1970-")).collect();
    // Each day is said once, and in order.
    assert!(days.len() > 10 && days.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn a_budget_is_kept() {
    let text = "Ann: We went to the harbour of Ghent. The boats were red, green and blue. It rained a little at night.";
    let texts = vec![text; 60];
    let unlike: Vec<String> =
        texts.iter().enumerate().map(|(at, text)| format!("{text} Number {at} won.")).collect();
    let pack = pack(&unlike.iter().map(String::as_str).collect::<Vec<_>>());
    for share in [0.05, 0.1, 0.2, 0.4] {
        let tokens = token_estimate(&summary(&pack, share).content());
        assert!(tokens as f64 <= (pack.tokens() as f64 * share).max(60.0) + 1.0, "{tokens} at {share}");
    }
}

#[test]
fn a_group_without_a_sentence_that_fits_has_no_summary() {
    let long = "word ".repeat(1_000);
    assert!(Extractive::default().summarize(&pack(&[&long])).is_err());
    assert!(Extractive::default().summarize(&pack(&[" ", ""])).is_err());
    assert!(Extractive::default().summarize(&pack(&[])).is_err());
    // A summary of these would be longer than they are.
    match Extractive::default().summarize(&pack(&["it is", "so"])).unwrap_err() {
        Error::Refused { code, why, .. } => {
            assert_eq!(code, "no_gain");
            assert_eq!(
                why,
                "no sentence of the sources fits into a summary of at most 1 tokens; the sources have 3"
            );
        }
        other => panic!("{other}"),
    }
}

/// Messages of every length, from a few words on: a summary takes at most half of what it stands for, or there is none.
#[test]
fn a_summary_gains_half_of_its_sources_at_least() {
    let mut written = 0;
    for words in 0..60 {
        let rest =
            ["and so we all went to the harbour", "it rained", "for hours"].join(" ").repeat(words / 9 + 1);
        let texts: Vec<String> =
            (0..4).map(|at| format!("msg about boiler {at} {}", &rest[..words.min(rest.len())])).collect();
        let pack = pack(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        for share in [0.05, 0.2, 0.5] {
            let Ok(answer) = Extractive::new(share).unwrap().summarize(&pack) else { continue };
            let tokens = token_estimate(&SummaryDocument::parse(&answer).unwrap().content());
            assert!(tokens * 2 <= pack.tokens(), "{tokens} in place of {}: {answer}", pack.tokens());
            written += 1;
        }
    }
    assert!(written > 60, "{written}");
    // Who asks for more than half gets more, and still gains.
    let texts: Vec<String> = (0..9).map(|at| format!("Box{at} went to Ghent{at}.")).collect();
    let pack = pack(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let tokens = token_estimate(&summary(&pack, 1.0).content());
    assert!(tokens * 2 > pack.tokens() && tokens < pack.tokens(), "{tokens} of {}", pack.tokens());
}

#[test]
fn aggregates_become_patterns_with_their_observed_counts() {
    let mut pack = pack(&[
        "Ann: The build is broken. That is how it was, and so it will be for all of us. When would you do that?",
    ]);
    pack.aggregates.push(PackAggregate {
        aggregate_id: "7".into(),
        dup_count: 40,
        time_span: TimeSpan { start: 0, end: 5 },
        examples: vec!["Build 7 failed".into()],
        signals: vec!["a bot writes it".into()],
    });
    let found = summary(&pack, 0.2);
    let pattern = &found.spam_patterns[0];
    assert_eq!((pattern.count_estimate, pattern.estimated), (Some(40), Some(false)));
    assert_eq!((pattern.pattern.as_str(), found.time_range.end), ("Build 7 failed", 5));
}

/// What is short and common may be a name, or half of a time.
#[test]
fn a_sentence_keeps_its_times_names_and_its_end() {
    for (text, shown) in [
        (
            "The standup moved from 9 PM to 9 AM from Monday on.",
            "standup moved from 9 PM to 9 AM from Monday on.",
        ),
        ("It starts at 9 am, so hurry!", "starts 9 am, hurry!"),
        (
            "Carla flew to the US and joined the IT department there.",
            "Carla flew to US joined IT department.",
        ),
        ("Dana lives in Toledo, OH and Eve in Hilo, HI.", "Dana lives Toledo, OH Eve Hilo, HI."),
        ("An Li and I've met OUR plan A.", "An Li met OUR plan A."),
        ("I am at the dam, you are not.", "am dam, are not."),
        ("Carla is owed 500 euros.", "Carla is owed 500 euros."),
        ("The lights are on.", "lights are on."),
    ] {
        let found = summary(&pack(&[text, &"Well, and so on. ".repeat(20)]), 0.9);
        assert!(found.summary.iter().any(|event| event.ends_with(shown)), "{shown:?}: {:?}", found.summary);
    }
    let texts =
        ["Carla flew to the US yesterday.", "Carla walked home.", "Carla and so on and so on and what not."];
    let found = summary(&pack(&texts), 0.9);
    assert!(found.entities.contains(&"US".to_owned()), "{:?}", found.entities);
}

proptest! {
    /// Whatever the texts are: the summary is of the form, has its sources' words only, and is the same again.
    #[test]
    fn a_summary_has_no_word_of_its_own(
        texts in prop::collection::vec("([A-Za-z]{1,7}[ .,!?\n:]{1,2}|[0-9.]{1,4} |\\PC{1,3}){1,12}", 1..12),
        share in 0.05_f64..1.0,
    ) {
        let pack = pack(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let Ok(answer) = Extractive::new(share).unwrap().summarize(&pack) else { return Ok(()) };
        prop_assert_eq!(&answer, &Extractive::new(share).unwrap().summarize(&pack).unwrap());
        let found = SummaryDocument::parse(&answer).unwrap();
        let days: Vec<String> = pack.sources.iter().map(|row| crate::model::Time::from_millis(row.ts).day()).collect();
        let known: Vec<&str> = texts.iter().flat_map(|text| text.split_whitespace()).collect();
        for word in found.summary.iter().flat_map(|event| event.split_whitespace()) {
            // The end of a sentence stays where its last word was left out.
            let bare = word.strip_suffix(['.', '!', '?']).unwrap_or(word);
            let is_known = known.iter().any(|known| known.contains(word) || known.contains(bare));
            prop_assert!(is_known || days.iter().any(|day| day == word), "{}", word);
        }
        // A name can have several words.
        for word in found.topic.split(", ").flat_map(str::split_whitespace) {
            prop_assert!(known.iter().any(|known| known.contains(word)) || days.iter().any(|day| day == word), "{}", word);
        }
        let held = accept(&answer, &Expected::of(&pack)).unwrap();
        prop_assert_eq!((held.document, held.repairs.len(), held.warnings.len()), (found, 0, 0));
    }
}
