//! What may an argument be? One description, from which come the JSON Schema and the check.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value, json};

use crate::json::step;
use crate::summary::Fault;

/// Faults of one call that are told at most.
const FAULTS_MAX: usize = 20;
/// Largest float that is a whole number for certain.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// How much a schema tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// What a value may be.
    Bare,
    /// And what each member is for.
    Full,
}

/// What a value may be.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// A text of so many characters.
    Text { min: usize, max: Option<usize> },
    /// A text that is not empty, of so many bytes as UTF-8. A schema counts characters alone, so its description says it.
    Bytes { max: usize },
    /// A whole number.
    Integer { min: u64, max: Option<u64> },
    /// A number.
    Number { min: f64, max: Option<f64> },
    /// True or false.
    Flag,
    /// One of these words.
    Word(Vec<&'static str>),
    /// This word.
    Const(&'static str),
    /// A list of values of one shape.
    List { of: Box<Shape>, min: Option<usize>, max: Option<usize>, unique: bool },
    /// An object with these members and no others.
    Closed(Vec<Member>),
    /// A closed object of which exactly one of these members is given.
    OneOf(Vec<Member>, Vec<&'static str>),
    /// An object with these members, and others.
    Open(Vec<Member>),
    /// Any object.
    Object,
    /// Any value.
    Any,
    /// A value of any of these shapes.
    Either(Vec<Shape>),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member {
    name: &'static str,
    shape: Shape,
    required: bool,
    default: Option<Value>,
    about: Option<&'static str>,
}

impl Member {
    /// With its name.
    pub(super) fn named(self, name: &'static str) -> Self {
        Member { name, ..self }
    }

    /// What it is for, where its name does not say so.
    pub(super) fn about(self, about: &'static str) -> Self {
        Member { about: Some(about), ..self }
    }

    fn schema(&self, detail: Detail) -> Value {
        let mut schema = self.shape.schema(detail);
        if let Value::Object(members) = &mut schema {
            members.extend(self.default.clone().map(|value| ("default".to_owned(), value)));
            let parts = [self.about, members.get("description").and_then(Value::as_str)];
            let about: Vec<&str> = parts.into_iter().flatten().collect();
            if !about.is_empty() && detail == Detail::Full {
                members.insert("description".to_owned(), json!(about.join(" ")));
            }
        }
        schema
    }
}

/// The faults of a call, the first of them.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// Whether another one would not be told.
    fn are_full(&self) -> bool {
        self.0.len() >= FAULTS_MAX
    }

    fn push(&mut self, fault: Fault) {
        if !self.are_full() {
            self.0.push(fault);
        }
    }
}

impl Shape {
    /// As a member that must be given.
    pub(super) fn required(self) -> Member {
        Member { required: true, ..self.optional() }
    }

    /// As a member that may be left out.
    pub(super) fn optional(self) -> Member {
        Member { name: "", shape: self, required: false, default: None, about: None }
    }

    /// As a member that may be left out, and what holds then. The schema tells it; who carries out the call applies it.
    pub(super) fn or(self, default: impl Into<Value>) -> Member {
        Member { default: Some(default.into()), ..self.optional() }
    }
}

/// A text of `min` to `max` characters.
pub(super) fn text(min: usize, max: usize) -> Shape {
    Shape::Text { min, max: Some(max) }
}

/// A text of 1 to `max` bytes as UTF-8.
pub(super) fn bytes(max: usize) -> Shape {
    Shape::Bytes { max }
}

/// A list of `min` to `max` values.
pub(super) fn list(of: Shape, min: usize, max: usize) -> Shape {
    Shape::List { of: Box::new(of), min: Some(min), max: Some(max), unique: false }
}

/// A list of `min` to `max` values, none twice.
pub(super) fn set(of: Shape, min: usize, max: usize) -> Shape {
    Shape::List { of: Box::new(of), min: Some(min), max: Some(max), unique: true }
}

/// A whole number of `min` or more.
pub(super) fn at_least(min: u64) -> Shape {
    Shape::Integer { min, max: None }
}

/// A whole number from `min` to `max`.
pub(super) fn integer(min: u64, max: u64) -> Shape {
    Shape::Integer { min, max: Some(max) }
}

/// The schema of an object with these members.
fn object(members: &[Member], more: bool, detail: Detail) -> Value {
    let properties: Map<String, Value> =
        members.iter().map(|member| (member.name.to_owned(), member.schema(detail))).collect();
    let required: Vec<&str> =
        members.iter().filter(|member| member.required).map(|member| member.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if let (false, Value::Object(schema)) = (more, &mut schema) {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

/// A schema of these names, without those that have no value.
fn schema_of<const N: usize>(names: [(&str, Option<Value>); N]) -> Value {
    names
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect::<Map<_, _>>()
        .into()
}

impl Shape {
    /// The JSON Schema, of draft 2020-12.
    pub(super) fn schema(&self, detail: Detail) -> Value {
        match self {
            Shape::Text { min, max } => schema_of([
                ("type", Some(json!("string"))),
                ("minLength", (*min > 0).then(|| json!(min))),
                ("maxLength", max.map(|max| json!(max))),
            ]),
            Shape::Bytes { max } => schema_of([
                ("type", Some(json!("string"))),
                ("minLength", Some(json!(1))),
                ("maxLength", Some(json!(max))),
                ("description", Some(json!(format!("At most {max} bytes as UTF-8.")))),
            ]),
            Shape::Integer { min, max } => schema_of([
                ("type", Some(json!("integer"))),
                ("minimum", Some(json!(min))),
                ("maximum", max.map(|max| json!(max))),
            ]),
            Shape::Number { min, max } => schema_of([
                ("type", Some(json!("number"))),
                ("minimum", Some(whole(*min))),
                ("maximum", max.map(whole)),
            ]),
            Shape::Flag => json!({ "type": "boolean" }),
            Shape::Word(words) => json!({ "enum": words }),
            Shape::Const(word) => json!({ "const": word }),
            Shape::List { of, min, max, unique } => schema_of([
                ("type", Some(json!("array"))),
                ("items", Some(of.schema(detail))),
                ("minItems", min.map(|min| json!(min))),
                ("maxItems", max.map(|max| json!(max))),
                ("uniqueItems", unique.then(|| json!(true))),
            ]),
            Shape::Closed(members) => object(members, false, detail),
            Shape::OneOf(members, names) => {
                let mut schema = object(members, false, detail);
                let each: Vec<Value> = names.iter().map(|name| json!({ "required": [name] })).collect();
                if let Value::Object(schema) = &mut schema {
                    schema.insert("oneOf".to_owned(), json!(each));
                }
                schema
            }
            Shape::Open(members) => object(members, true, detail),
            Shape::Object => json!({ "type": "object" }),
            Shape::Any => json!({}),
            Shape::Either(shapes) => {
                json!({ "anyOf": shapes.iter().map(|shape| shape.schema(detail)).collect::<Vec<_>>() })
            }
        }
    }

    /// An object with one more member.
    pub(super) fn and(mut self, member: Member) -> Self {
        if let Shape::Closed(members) | Shape::OneOf(members, _) | Shape::Open(members) = &mut self {
            members.push(member);
        }
        self
    }

    /// Whether an object of this shape has a member of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Shape::Closed(members) | Shape::OneOf(members, _) | Shape::Open(members) => {
                members.iter().any(|member| member.name == name)
            }
            _ => false,
        }
    }

    /// Holds a value to the shape, and names each value in it that is wrong. A whole number that is written as a float, such
    /// as `5.0`, becomes an integer: the schema says the same of both.
    pub(super) fn check(&self, value: &mut Value, pointer: &str) -> Vec<Fault> {
        let mut faults = Faults::default();
        self.look(value, pointer, &mut faults);
        faults.0
    }

    fn look(&self, value: &mut Value, pointer: &str, faults: &mut Faults) {
        if faults.are_full() {
            return;
        }
        if let Shape::Integer { .. } = self
            && let Some(number) = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0)
            && (0.0..=WHOLE_MAX).contains(&number)
        {
            *value = json!(number as u64);
        }
        match (self, value) {
            (Shape::Text { min, max }, Value::String(text)) => {
                sized(text.chars().count(), *min, *max, "characters", pointer, faults);
            }
            (Shape::Bytes { max }, Value::String(text)) => {
                sized(text.len(), 1, Some(*max), "bytes", pointer, faults);
            }
            (Shape::Integer { min, max }, Value::Number(number)) if whole_of(number).is_some() => {
                let number = whole_of(number).unwrap_or_default();
                if number < i128::from(*min) || max.is_some_and(|max| number > i128::from(max)) {
                    faults.push(out_of_bounds(pointer, *min, *max, &number));
                }
            }
            (Shape::Number { min, max }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                if !(number >= *min && max.is_none_or(|max| number <= max)) {
                    faults.push(out_of_bounds(pointer, *min, *max, &number));
                }
            }
            (Shape::Word(words), Value::String(word)) if words.contains(&word.as_str()) => {}
            (Shape::Const(only), Value::String(word)) if only == word => {}
            (Shape::Flag, Value::Bool(_)) | (Shape::Object, Value::Object(_)) | (Shape::Any, _) => {}
            (Shape::List { of, min, max, unique }, Value::Array(items)) => {
                sized(items.len(), min.unwrap_or_default(), *max, "items", pointer, faults);
                // A list past its bound is one fault, and its items are not looked at.
                if max.is_some_and(|max| items.len() > max) {
                    return;
                }
                if *unique {
                    twice(items, pointer, faults);
                }
                for (at, item) in items.iter_mut().enumerate() {
                    of.look(item, &format!("{pointer}/{at}"), faults);
                }
            }
            (Shape::Closed(members), Value::Object(given)) => inside(members, given, true, pointer, faults),
            (Shape::Open(members), Value::Object(given)) => inside(members, given, false, pointer, faults),
            (Shape::OneOf(members, names), Value::Object(given)) => {
                inside(members, given, true, pointer, faults);
                if names.iter().filter(|name| given.contains_key(**name)).count() != 1 {
                    let names = match names.split_last() {
                        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                        _ => names.concat(),
                    };
                    let what = format!("must have exactly one of {names}");
                    faults.push(fault(pointer, what));
                }
            }
            (Shape::Either(shapes), value) => {
                if !shapes.iter().any(|shape| shape.check(&mut value.clone(), pointer).is_empty()) {
                    faults.push(self.other(value, pointer));
                }
            }
            (shape, value) => faults.push(shape.other(value, pointer)),
        }
    }

    /// The fault of a value of another type.
    fn other(&self, value: &Value, pointer: &str) -> Fault {
        let mut what = format!("must be {}", self.told());
        if let (Shape::Integer { .. } | Shape::Number { .. }, Value::String(text)) = (self, value)
            && text.parse::<f64>().is_ok()
        {
            what.push_str(", not a number in a string");
        }
        let _ = write!(what, " (got {})", shown(value));
        fault(pointer, what)
    }

    /// What it is, in words.
    fn told(&self) -> String {
        match self {
            Shape::Text { .. } | Shape::Bytes { .. } => "a string".to_owned(),
            Shape::Integer { .. } => "an integer".to_owned(),
            Shape::Number { .. } => "a number".to_owned(),
            Shape::Flag => "true or false".to_owned(),
            Shape::Any => "any value".to_owned(),
            Shape::Word(words) => format!("one of {}", words.join(", ")),
            Shape::Const(word) => word.to_string(),
            Shape::List { .. } => "a list".to_owned(),
            Shape::Closed(_) | Shape::OneOf(..) | Shape::Open(_) | Shape::Object => "an object".to_owned(),
            Shape::Either(shapes) => shapes.iter().map(Shape::told).collect::<Vec<_>>().join(" or "),
        }
    }
}

/// A number as an integer where it is whole: schemas are written so.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && (0.0..=WHOLE_MAX).contains(&number) {
        json!(number as u64)
    } else {
        json!(number)
    }
}

/// A number that is an integer.
fn whole_of(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

fn fault(pointer: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { pointer: pointer.into(), what: what.into() }
}

/// A value, or its beginning.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}

fn out_of_bounds<T: std::fmt::Display>(
    pointer: &str,
    min: T,
    max: Option<T>,
    got: &impl std::fmt::Display,
) -> Fault {
    let bound = match max {
        Some(max) => format!("must be {min} to {max}"),
        None => format!("must be at least {min}"),
    };
    fault(pointer, format!("{bound} (got {got})"))
}

fn sized(len: usize, min: usize, max: Option<usize>, of: &str, pointer: &str, faults: &mut Faults) {
    if len >= min && max.is_none_or(|max| len <= max) {
        return;
    }
    let bound = match max {
        Some(max) => format!("must have {min} to {max} {of}"),
        None => format!("must have at least {min} {of}"),
    };
    faults.push(fault(pointer, format!("{bound} (got {len})")));
}

/// Items that stand in a list twice.
fn twice(items: &[Value], pointer: &str, faults: &mut Faults) {
    let mut seen = std::collections::HashSet::new();
    for (at, item) in items.iter().enumerate() {
        if !seen.insert(item.to_string()) {
            let what = format!("must not stand twice in the list (got {})", shown(item));
            faults.push(fault(format!("{pointer}/{at}"), what));
        }
    }
}

fn inside(
    members: &[Member],
    given: &mut Map<String, Value>,
    closed: bool,
    pointer: &str,
    faults: &mut Faults,
) {
    if closed {
        let is_surplus = |name: &&String| !members.iter().any(|member| member.name == name.as_str());
        for name in given.keys().filter(is_surplus).take(FAULTS_MAX) {
            let names: Vec<&str> = members.iter().map(|member| member.name).collect();
            let what = match names.as_slice() {
                [] => "is no argument: there are none".to_owned(),
                names => format!("is no argument: there are {}", names.join(", ")),
            };
            faults.push(fault(format!("{pointer}{}", step(name)), what));
        }
    }
    for member in members {
        let pointer = format!("{pointer}/{}", member.name);
        match given.get_mut(member.name) {
            Some(value) => member.shape.look(value, &pointer, faults),
            None if member.required => faults.push(fault(pointer, "must be given")),
            None => {}
        }
    }
}
