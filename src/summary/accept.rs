//! Whether an answer is a summary of its sources.

use std::collections::BTreeSet;

use serde_json::json;

use super::document::{Fault, SummaryDocument, TimeSpan};
use super::pack::{InputPack, PackLimits, token_estimate};
use super::repair::repaired;
use crate::limits::{
    CONTENT_BYTES_MAX, FIELD_BYTES_MAX, METADATA_BYTES_MAX, SUMMARY_ITEMS_MAX, TAG_BYTES_MAX,
};
use crate::model::Time;

/// What is known before a summary is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The memories that the summary is to stand for.
    pub committing: Vec<String>,
    /// The observed numbers of messages of the aggregates among the sources.
    pub observed: Vec<u64>,
    /// The time of the sources.
    pub span: TimeSpan,
    /// How much a summary may have.
    pub limits: PackLimits,
    /// Estimated tokens of what the writer was shown.
    pub tokens: u64,
    /// The numbers of what the writer was shown, each by its digits.
    pub numbers: BTreeSet<String>,
}

impl Expected {
    /// What is known of the summary of a pack.
    ///
    /// ```
    /// use oubliette::Kind;
    /// use oubliette::gc::{Expected, InputPack, PackLimits, PackSource, accept};
    ///
    /// let source = PackSource {
    ///     id: "1".into(), ts: 0, channel: None, author_kind: None, kind: Kind::Message, text: "The plumber asks for 480 euros, and he wants them at once.".into(),
    /// };
    /// let pack = InputPack::new(vec![source], vec![], PackLimits { bullets: 25, patterns: 10 });
    /// let answer = r#"{"topic": "tea", "time_range": {"start": 0, "end": 0}, "summary": ["It cost 700 euros"]}"#;
    /// let accepted = accept(answer, &Expected::of(&pack)).unwrap();
    /// assert_eq!(accepted.warnings[0].pointer, "/summary/0"); // No source says 700.
    /// ```
    pub fn of(pack: &InputPack) -> Self {
        let times = || pack.sources.iter().map(|source| source.ts);
        let span =
            TimeSpan { start: times().min().unwrap_or_default(), end: times().max().unwrap_or_default() };
        let observed: Vec<u64> = pack.aggregates.iter().map(|aggregate| aggregate.dup_count).collect();
        let examples = || pack.aggregates.iter().flat_map(|aggregate| &aggregate.examples);
        let mut numbers = BTreeSet::new();
        numbers.extend(observed.iter().map(u64::to_string));
        numbers.insert(pack.sources.len().to_string());
        for text in pack.sources.iter().map(|source| &source.text).chain(examples()) {
            numbers.extend(figures(text));
            numbers.extend(grouped(text));
        }
        for at in times().chain(
            pack.aggregates.iter().flat_map(|aggregate| [aggregate.time_span.start, aggregate.time_span.end]),
        ) {
            numbers.extend(figures(&Time::from_millis(at).to_string()));
        }
        Expected {
            committing: pack.sources.iter().map(|source| source.id.clone()).collect(),
            observed,
            span,
            limits: pack.limits,
            tokens: pack.tokens() + examples().map(|text| token_estimate(text)).sum::<u64>(),
            numbers,
        }
    }
}

/// The runs of digits of a text, without leading zeros.
fn figures(text: &str) -> impl Iterator<Item = String> + '_ {
    let runs = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    runs.map(|run| match run.trim_start_matches('0') {
        "" => "0".to_owned(),
        run => run.to_owned(),
    })
}

/// The numbers of a text whose digits stand in groups of three, as in 1,200.
fn grouped(text: &str) -> impl Iterator<Item = String> + '_ {
    let numbers = text.split(|c: char| !c.is_ascii_digit() && !",.'’".contains(c));
    numbers.filter_map(|number| {
        let mut runs =
            number.trim_matches(|c: char| !c.is_ascii_digit()).split(|c: char| !c.is_ascii_digit());
        let first = runs.next()?;
        let rest: String = runs.take_while(|run| run.len() == 3).collect();
        (!rest.is_empty()).then(|| format!("{first}{rest}").trim_start_matches('0').to_owned())
    })
}

/// A summary that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The summary, as it is stored.
    pub document: SummaryDocument,
    /// What was repaired before it could be read.
    pub repairs: Vec<Fault>,
    /// What was cut or corrected.
    pub warnings: Vec<Fault>,
}

/// Repairs an answer where that is certain, reads it strictly, and holds it to its sources.
///
/// Too many events or patterns are cut in order. A number of spam messages that was not observed is marked as
/// estimated. A time outside that of the sources is moved inside. Each is told as a warning, and so is a text with a number that
/// the writer was not shown: it may be a sum, or invented.
///
/// ```
/// use oubliette::gc::{Expected, PackLimits, TimeSpan, accept};
///
/// let expected = Expected {
///     committing: vec!["1".into()],
///     observed: vec![],
///     span: TimeSpan { start: 3, end: 9 },
///     limits: PackLimits { bullets: 25, patterns: 10 },
///     tokens: 100,
///     numbers: Default::default(),
/// };
/// let answer = r#"Here: {"topic": "tea", "time_range": {"start": 0, "end": 9}, "summary": "Ann drinks tea"}"#;
/// let accepted = accept(answer, &expected).unwrap();
/// assert_eq!(accepted.document.source_ids, ["1"]);
/// assert_eq!(accepted.document.time_range.start, 3);
/// assert_eq!((accepted.repairs.len(), accepted.warnings.len()), (3, 1));
/// assert!(accept("no object", &expected).is_err());
/// ```
///
/// # Errors
/// What is wrong, value by value, as [`SummaryDocument::parse`] tells it; and a topic of more than 1,024 bytes, a text
/// with NUL, a summary of white space, a summary of more than 1 MiB, a list of more than 64 KiB of JSON, and a summary that is not shorter than what it
/// stands for.
pub fn accept(answer: &str, expected: &Expected) -> Result<Accepted, Vec<Fault>> {
    let (value, repairs) = repaired(answer, &expected.committing)?;
    let mut document = SummaryDocument::read(&value)?;
    let faults = beyond_bounds(&document);
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut warnings = Vec::new();
    cut(&mut document.summary, expected.limits.bullets, "/summary", &mut warnings);
    cut(&mut document.spam_patterns, expected.limits.patterns, "/spam_patterns", &mut warnings);
    cut(&mut document.decisions, SUMMARY_ITEMS_MAX, "/decisions", &mut warnings);
    cut(&mut document.open_loops, SUMMARY_ITEMS_MAX, "/open_loops", &mut warnings);
    cut(&mut document.entities, SUMMARY_ITEMS_MAX, "/entities", &mut warnings);
    drop_long_names(&mut document.entities, &mut warnings);
    let tokens = token_estimate(&document.content());
    if tokens >= expected.tokens {
        let what = format!(
            "must have fewer tokens with the topic than the {} of what it stands for, and has {tokens}",
            expected.tokens
        );
        return Err(vec![Fault::new("/summary", what)]);
    }
    label_counts(&mut document, &expected.observed, &mut warnings);
    clamp(&mut document.time_range, expected.span, &mut warnings);
    let faults = too_long(&document);
    if !faults.is_empty() {
        return Err(faults);
    }
    tell_unknown_numbers(&document, &expected.numbers, &mut warnings);
    Ok(Accepted { document, repairs, warnings })
}

fn beyond_bounds(document: &SummaryDocument) -> Vec<Fault> {
    let mut faults = Vec::new();
    if document.topic.len() > FIELD_BYTES_MAX {
        faults.push(Fault::new("/topic", format!("must have at most {FIELD_BYTES_MAX} bytes")));
    }
    if document.content().len() > CONTENT_BYTES_MAX {
        faults.push(Fault::new(
            "/summary",
            format!("must have at most {CONTENT_BYTES_MAX} bytes with the topic"),
        ));
    }
    let patterns = document.spam_patterns.iter().enumerate().flat_map(|(number, item)| {
        let all = std::iter::once(&item.pattern).chain(&item.signals);
        all.map(move |text| (format!("/spam_patterns/{number}"), text.as_str()))
    });
    if document.summary.iter().all(|item| item.trim().is_empty()) {
        faults.push(Fault::new("/summary", "must say something"));
    }
    for (at, _) in texts(document).chain(patterns).filter(|(_, text)| text.contains('\0')) {
        faults.push(Fault::new(at, "must not contain NUL"));
    }
    faults
}

/// The lists of a summary that no field of a memory can hold.
fn too_long(document: &SummaryDocument) -> Vec<Fault> {
    let lists = [
        ("/summary", json!(document.summary)),
        ("/spam_patterns", json!(document.spam_patterns)),
        ("/decisions", json!(document.decisions)),
        ("/open_loops", json!(document.open_loops)),
    ];
    let too_long = lists.into_iter().filter(|(_, list)| list.to_string().len() > METADATA_BYTES_MAX);
    let what = || format!("must have at most {METADATA_BYTES_MAX} bytes of JSON");
    too_long.map(|(at, _)| Fault::new(at, what())).collect()
}

/// The texts of a summary, each with its place.
fn texts(document: &SummaryDocument) -> impl Iterator<Item = (String, &str)> {
    let lists = [
        ("/summary", &document.summary),
        ("/decisions", &document.decisions),
        ("/open_loops", &document.open_loops),
        ("/entities", &document.entities),
    ];
    let items = lists.into_iter().flat_map(|(at, list)| {
        list.iter().enumerate().map(move |(number, text)| (format!("{at}/{number}"), text.as_str()))
    });
    std::iter::once(("/topic".to_owned(), document.topic.as_str())).chain(items)
}

/// Tells the texts that have a number that their writer was not shown.
fn tell_unknown_numbers(document: &SummaryDocument, known: &BTreeSet<String>, warnings: &mut Vec<Fault>) {
    for (at, text) in texts(document) {
        let wholes: Vec<String> = grouped(text).filter(|whole| known.contains(whole)).collect();
        let is_known = |number: &String| {
            known.contains(number) || wholes.iter().any(|whole| whole.contains(number.as_str()))
        };
        if let Some(number) = figures(text).find(|number| !is_known(number)) {
            warnings.push(Fault::new(at, format!("says {number}, which stands in no source")));
        }
    }
}

fn cut<T>(list: &mut Vec<T>, most: usize, at: &str, warnings: &mut Vec<Fault>) {
    if list.len() > most {
        warnings.push(Fault::new(at, format!("had {} items, and was cut to {most}", list.len())));
        list.truncate(most);
    }
}

/// A name that is too long for an entity is left out: the text still has it.
fn drop_long_names(entities: &mut Vec<String>, warnings: &mut Vec<Fault>) {
    let before = entities.len();
    entities.retain(|name| name.len() <= TAG_BYTES_MAX);
    if entities.len() < before {
        let what =
            format!("{} names of more than {TAG_BYTES_MAX} bytes were left out", before - entities.len());
        warnings.push(Fault::new("/entities", what));
    }
}

fn label_counts(document: &mut SummaryDocument, observed: &[u64], warnings: &mut Vec<Fault>) {
    for (number, item) in document.spam_patterns.iter_mut().enumerate() {
        let Some(count) = item.count_estimate else { continue };
        let estimated = !observed.contains(&count);
        if estimated && item.estimated != Some(true) {
            let what = format!("{count} was not observed, and is now marked as estimated");
            warnings.push(Fault::new(format!("/spam_patterns/{number}/estimated"), what));
        }
        item.estimated = Some(estimated);
    }
}

fn clamp(range: &mut TimeSpan, span: TimeSpan, warnings: &mut Vec<Fault>) {
    let inside = |at: i64| at.max(span.start).min(span.end);
    let held = TimeSpan { start: inside(range.start), end: inside(range.end) };
    if held != *range {
        warnings
            .push(Fault::new("/time_range", "reached beyond the sources, and was moved inside their time"));
        *range = held;
    }
}
