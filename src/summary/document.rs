//! The form `json_v1` of a summary: the type, and the strict reader of it.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::{self, Strict};
use crate::limits::{SUMMARY_BULLETS_MAX, SUMMARY_JSON_BYTES_MAX, TIME_MAX_MS, TIME_MIN_MS};

/// Faults of one document that are told; a document with more is as wrong.
const FAULTS_MAX: usize = 64;
/// Characters of an id of a source.
const SOURCE_ID_CHARS_MAX: usize = 128;
/// Integers up to this size have one form as a float.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// A summary as its writer gives it: the form `json_v1`.
///
/// ```
/// use oubliette::gc::SummaryDocument;
///
/// let text = r#"{"topic": "tea", "time_range": {"start": 0, "end": 9}, "summary": ["Ann drinks tea"],
///                "source_ids": ["019584a0-0000-7000-8000-000000000001"]}"#;
/// let summary = SummaryDocument::parse(text).unwrap();
/// assert_eq!(summary.summary, ["Ann drinks tea"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SummaryDocument {
    /// What the summary is about, at least one character.
    pub topic: String,
    /// The time that the summary covers.
    pub time_range: TimeSpan,
    /// What happened: 1 to 40 texts, none empty.
    pub summary: Vec<String>,
    /// How to recognise each kind of spam among the sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spam_patterns: Vec<SpamPattern>,
    /// Decisions that were taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// Questions that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_loops: Vec<String>,
    /// Names of persons, places and things.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<String>,
    /// The memories that the summary stands for: at least one id, each once.
    pub source_ids: Vec<String>,
}

/// A span of time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimeSpan {
    /// Milliseconds since 1970.
    pub start: i64,
    /// Milliseconds since 1970, not before `start`.
    pub end: i64,
}

/// A kind of spam, and how to recognise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpamPattern {
    /// What its messages look like.
    pub pattern: String,
    /// What tells them from others.
    pub signals: Vec<String>,
    /// How many there were; none if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_estimate: Option<u64>,
    /// Whether the number was not counted; none if that is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<bool>,
}

/// How many faults of an answer an error names.
const FAULTS_TOLD: usize = 4;

/// What is wrong with a value of a summary, or was changed in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// The value, as a JSON pointer; empty for the document as a whole.
    pub pointer: String,
    /// What is wrong or was changed, in words.
    pub what: String,
}

impl Fault {
    pub(crate) fn new(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Fault { pointer: pointer.into(), what: what.into() }
    }

    /// The first faults of a list, in one line.
    pub(crate) fn first_of(faults: &[Fault]) -> String {
        let told: Vec<String> = faults.iter().take(FAULTS_TOLD).map(Fault::to_string).collect();
        let more = faults.len() - told.len();
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        format!("{}{more}", told.join("; "))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.pointer.is_empty() { "the answer" } else { &self.pointer };
        write!(out, "{subject} {}", self.what)
    }
}

impl SummaryDocument {
    /// Reads a summary strictly, without any repair.
    ///
    /// ```
    /// use oubliette::gc::SummaryDocument;
    ///
    /// let text = r#"{"topic": "", "time_range": {"start": 5, "end": 4}, "summary": ["a"], "source_ids": ["1"]}"#;
    /// let faults = SummaryDocument::parse(text).unwrap_err();
    /// let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    /// assert_eq!(pointers, ["/time_range", "/topic"]);
    /// ```
    ///
    /// # Errors
    /// What is wrong, value by value: not JSON, a name that stands twice, a member that is missing, unknown or of
    /// another type, a list that is empty, too long or has equal ids, a span that ends before it begins.
    pub fn parse(text: &str) -> Result<Self, Vec<Fault>> {
        SummaryDocument::read(&value_of(text)?)
    }

    /// Reads a summary from its JSON value.
    pub(super) fn read(value: &Value) -> Result<Self, Vec<Fault>> {
        let mut reader = Reader { faults: Vec::new() };
        let document = reader.document(value);
        let mut faults = reader.faults;
        faults.sort_unstable();
        match document {
            Some(document) if faults.is_empty() => Ok(document),
            _ => Err(faults),
        }
    }

    /// The text under which the summary is stored and found: the topic, and below it a line for each event.
    ///
    /// ```
    /// # use oubliette::gc::SummaryDocument;
    /// # let text = r#"{"topic": "tea", "time_range": {"start": 0, "end": 9}, "summary": ["Ann drinks tea"],
    /// #                "source_ids": ["1"]}"#;
    /// assert_eq!(SummaryDocument::parse(text).unwrap().content(), "tea\n- Ann drinks tea");
    /// ```
    pub fn content(&self) -> String {
        let lines = self.summary.iter().flat_map(|event| ["\n- ", event]);
        std::iter::once(self.topic.as_str()).chain(lines).collect()
    }
}

/// The JSON value of a text.
pub(super) fn value_of(text: &str) -> Result<Value, Vec<Fault>> {
    if text.len() > SUMMARY_JSON_BYTES_MAX {
        let what = format!("must have at most {SUMMARY_JSON_BYTES_MAX} bytes, and has {}", text.len());
        return Err(vec![Fault::new("", what)]);
    }
    let read = json::read::<Strict>(text);
    read.map(|Strict(value)| value)
        .map_err(|refusal| vec![Fault::new("", format!("can't be read: {}", refusal.why))])
}

/// A pointer to a member of the value at `at`.
pub(super) fn below(at: &str, name: &str) -> String {
    let name: String = name.chars().take(40).collect();
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The members of the objects of a summary, each with whether it must be there.
pub(super) const MEMBERS: &[(&str, bool)] = &[
    ("topic", true),
    ("time_range", true),
    ("summary", true),
    ("spam_patterns", false),
    ("decisions", false),
    ("open_loops", false),
    ("entities", false),
    ("source_ids", true),
];
pub(super) const SPAN_MEMBERS: &[(&str, bool)] = &[("start", true), ("end", true)];
pub(super) const PATTERN_MEMBERS: &[(&str, bool)] =
    &[("pattern", true), ("signals", true), ("count_estimate", false), ("estimated", false)];

/// Reads a document, and notes each fault.
struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn fault(&mut self, at: &str, what: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault::new(at, what));
        }
    }

    fn document(&mut self, value: &Value) -> Option<SummaryDocument> {
        let members = self.object("", value, MEMBERS)?;
        let topic = self.member(members, "topic", |reader, at, value| reader.text(at, value, 1));
        let time_range = self.member(members, "time_range", Reader::span);
        let summary = self.member(members, "summary", |reader, at, value| {
            let list = reader.texts(at, value, 1)?;
            match list.len() {
                1..=SUMMARY_BULLETS_MAX => return Some(list),
                0 => reader.fault(at, "must not be empty"),
                more => reader.fault(at, format!("has {more} texts, and {SUMMARY_BULLETS_MAX} are allowed")),
            }
            None
        });
        let spam_patterns = self.member(members, "spam_patterns", Reader::patterns);
        let decisions = self.member(members, "decisions", |reader, at, value| reader.texts(at, value, 1));
        let open_loops = self.member(members, "open_loops", |reader, at, value| reader.texts(at, value, 1));
        let entities = self.member(members, "entities", |reader, at, value| reader.texts(at, value, 1));
        let source_ids = self.member(members, "source_ids", Reader::ids);
        Some(SummaryDocument {
            topic: topic?,
            time_range: time_range?,
            summary: summary?,
            spam_patterns: spam_patterns.unwrap_or_default(),
            decisions: decisions.unwrap_or_default(),
            open_loops: open_loops.unwrap_or_default(),
            entities: entities.unwrap_or_default(),
            source_ids: source_ids?,
        })
    }

    /// The members of an object that has those of a table and no others.
    fn object<'v>(
        &mut self,
        at: &str,
        value: &'v Value,
        table: &[(&str, bool)],
    ) -> Option<&'v Map<String, Value>> {
        let Value::Object(members) = value else {
            self.fault(at, "must be an object");
            return None;
        };
        for name in members.keys().filter(|name| !table.iter().any(|(known, _)| known == name)) {
            self.fault(&below(at, name), "is not a member of a summary");
        }
        for (name, _) in table.iter().filter(|(name, required)| *required && !members.contains_key(*name)) {
            self.fault(&below(at, name), "is missing");
        }
        Some(members)
    }

    /// Reads a member at the top of the document, if it is there.
    fn member<T>(
        &mut self,
        members: &Map<String, Value>,
        name: &str,
        read: impl FnOnce(&mut Self, &str, &Value) -> Option<T>,
    ) -> Option<T> {
        members.get(name).and_then(|value| read(self, &below("", name), value))
    }

    fn text(&mut self, at: &str, value: &Value, least: usize) -> Option<String> {
        match value {
            Value::String(text) if text.len() >= least => return Some(text.clone()),
            Value::String(_) => self.fault(at, "must not be empty"),
            _ => self.fault(at, "must be a string"),
        }
        None
    }

    fn list<'v>(&mut self, at: &str, value: &'v Value) -> Option<&'v [Value]> {
        if let Value::Array(items) = value {
            return Some(items);
        }
        self.fault(at, "must be a list");
        None
    }

    fn texts(&mut self, at: &str, value: &Value, least: usize) -> Option<Vec<String>> {
        let items = self.list(at, value)?.iter().enumerate();
        let texts = items.map(|(number, item)| self.text(&format!("{at}/{number}"), item, least));
        // Each is read, so that each fault is told.
        texts.collect::<Vec<_>>().into_iter().collect()
    }

    fn ids(&mut self, at: &str, value: &Value) -> Option<Vec<String>> {
        let ids = self.texts(at, value, 1)?;
        if ids.is_empty() {
            self.fault(at, "must not be empty");
        }
        let mut seen = std::collections::HashSet::new();
        for (number, id) in ids.iter().enumerate() {
            if !seen.insert(id) {
                self.fault(&format!("{at}/{number}"), "stands there twice");
            }
            if id.chars().nth(SOURCE_ID_CHARS_MAX).is_some() {
                self.fault(
                    &format!("{at}/{number}"),
                    format!("must have at most {SOURCE_ID_CHARS_MAX} characters"),
                );
            }
        }
        Some(ids)
    }

    fn integer(&mut self, at: &str, value: &Value, bounds: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let number = value.as_i64().or_else(|| {
            let float = value.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT_FLOAT);
            // In these bounds a float without a fraction is an integer.
            float.map(|float| float as i64)
        });
        match number {
            Some(number) if bounds.contains(&number) => return Some(number),
            None if !value.is_number() => self.fault(at, "must be an integer"),
            None if value.as_f64().is_some_and(|float| float.fract() != 0.0) => {
                self.fault(at, "must be an integer");
            }
            _ => self.fault(at, format!("must be {} to {}", bounds.start(), bounds.end())),
        }
        None
    }

    fn span(&mut self, at: &str, value: &Value) -> Option<TimeSpan> {
        let members = self.object(at, value, SPAN_MEMBERS)?;
        let mut instant = |name| {
            members
                .get(name)
                .and_then(|value| self.integer(&below(at, name), value, TIME_MIN_MS..=TIME_MAX_MS))
        };
        let (start, end) = (instant("start"), instant("end"));
        let (start, end) = (start?, end?);
        if start > end {
            self.fault(at, "must not end before it starts");
            return None;
        }
        Some(TimeSpan { start, end })
    }

    fn patterns(&mut self, at: &str, value: &Value) -> Option<Vec<SpamPattern>> {
        let items = self.list(at, value)?.iter().enumerate();
        let patterns = items.map(|(number, item)| self.pattern(&format!("{at}/{number}"), item));
        patterns.collect::<Vec<_>>().into_iter().collect()
    }

    fn pattern(&mut self, at: &str, value: &Value) -> Option<SpamPattern> {
        let members = self.object(at, value, PATTERN_MEMBERS)?;
        let get = |name| members.get(name).map(|value| (below(at, name), value));
        let pattern = get("pattern").and_then(|(at, value)| self.text(&at, value, 1));
        let signals = get("signals").and_then(|(at, value)| self.texts(&at, value, 0));
        let count = get("count_estimate").map(|(at, value)| self.integer(&at, value, 0..=i64::MAX));
        let estimated = get("estimated").map(|(at, value)| {
            let flag = value.as_bool();
            if flag.is_none() {
                self.fault(&at, "must be true or false");
            }
            flag
        });
        Some(SpamPattern {
            pattern: pattern?,
            signals: signals?,
            count_estimate: count.flatten().map(i64::unsigned_abs),
            estimated: estimated.flatten(),
        })
    }
}
