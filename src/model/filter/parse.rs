//! From JSON to a typed filter. Every bound is checked on the way down.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::limits::{
    FIELD_BYTES_MAX, FILTER_CLAUSES_MAX, FILTER_DEPTH_MAX, FILTER_IDS_MAX, METADATA_DEPTH_MAX,
};
use crate::model::filter::column::{CUSTOM_KIND, Column, Type, find, near};
use crate::model::filter::datum::{Number, Operand};
use crate::model::filter::expr::{Expr, Op, Relation, Set, Test};
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, SupersedeMode, Tier};
use crate::model::time::Time;

const OPERATORS: &str = "must be one of $eq $ne $gt $gte $lt $lte $in $nin $prefix $exists $not";

/// The whole filter.
pub(super) fn root(value: &Value) -> Result<Expr> {
    if value.as_object().is_some_and(Map::is_empty) {
        return Ok(Expr::And(Vec::new()));
    }
    Parser { clauses: 0 }.filter("filter", value, 1)
}

struct Parser {
    /// The number of comparisons read so far.
    clauses: usize,
}

impl Parser {
    /// An object whose entries must all hold; the outermost is at depth 1.
    fn filter(&mut self, path: &str, value: &Value, depth: usize) -> Result<Expr> {
        let map = self.object(path, value, depth)?;
        let mut parts = Vec::with_capacity(map.len().min(FILTER_CLAUSES_MAX));
        for (name, value) in map {
            parts.push(match name.as_str() {
                "$and" => Expr::And(self.list(&format!("{path}.$and"), value, depth + 1)?),
                "$or" => Expr::Or(self.list(&format!("{path}.$or"), value, depth + 1)?),
                "$not" => Expr::Not(Box::new(self.filter(&format!("{path}.$not"), value, depth + 1)?)),
                _ if name.starts_with('$') => {
                    return Err(Error::invalid(path, "must name a field, $and, $or or $not", name));
                }
                _ => self.field(path, name, value, depth)?,
            });
        }
        Ok(all_of(parts))
    }

    /// The entries of an object at `depth`, which holds at least one.
    fn object<'a>(&self, path: &str, value: &'a Value, depth: usize) -> Result<&'a Map<String, Value>> {
        if depth > FILTER_DEPTH_MAX {
            return Err(Error::invalid(
                "filter",
                format!("must nest at most {FILTER_DEPTH_MAX} deep"),
                "deeper",
            ));
        }
        let Some(map) = value.as_object() else {
            return Err(Error::invalid(path, "must be a JSON object", shown(value)));
        };
        if map.is_empty() {
            return Err(Error::invalid(path, "must not be empty", "{}"));
        }
        Ok(map)
    }

    /// The members of `$and` or `$or`.
    fn list(&mut self, path: &str, value: &Value, depth: usize) -> Result<Vec<Expr>> {
        let items = value.as_array().filter(|items| !items.is_empty());
        let Some(items) = items else {
            return Err(Error::invalid(path, "must be a list of at least one filter", shown(value)));
        };
        let items = items.iter().enumerate();
        items.map(|(at, item)| self.filter(&format!("{path}.{at}"), item, depth)).collect()
    }

    /// `"field": value` or `"field": {"$op": value, …}`.
    fn field(&mut self, path: &str, name: &str, value: &Value, depth: usize) -> Result<Expr> {
        let (column, kind) = column(path, name)?;
        let subject = Subject { path: format!("{path}.{name}"), column, kind };
        match value {
            Value::Object(_) => self.operators(&subject, &subject.path, value, depth),
            _ => self.test(&subject, &subject.path, "$eq", value),
        }
    }

    /// An object of operators on one field.
    fn operators(&mut self, subject: &Subject, path: &str, value: &Value, depth: usize) -> Result<Expr> {
        let map = self.object(path, value, depth)?;
        let mut parts = Vec::with_capacity(map.len().min(FILTER_CLAUSES_MAX));
        for (operator, value) in map {
            parts.push(match operator.as_str() {
                "$not" => {
                    let path = format!("{path}.$not");
                    Expr::Not(Box::new(self.operators(subject, &path, value, depth + 1)?))
                }
                "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" | "$in" | "$nin" | "$prefix" | "$exists" => {
                    self.test(subject, &format!("{path}.{operator}"), operator, value)?
                }
                _ => return Err(Error::invalid(path, OPERATORS, operator)),
            });
        }
        Ok(all_of(parts))
    }

    /// One comparison.
    fn test(&mut self, subject: &Subject, path: &str, operator: &str, value: &Value) -> Result<Expr> {
        self.clauses += 1;
        if self.clauses > FILTER_CLAUSES_MAX {
            let why = format!("must have at most {FILTER_CLAUSES_MAX} comparisons");
            return Err(Error::invalid("filter", why, "more"));
        }
        let (op, negated) = match operator {
            "$eq" | "$ne" => (Op::In(subject.set(path, std::slice::from_ref(value))?), operator == "$ne"),
            "$in" | "$nin" => (Op::In(subject.members(path, value)?), operator == "$nin"),
            "$gt" => (subject.order(path, Relation::Greater, value)?, false),
            "$gte" => (subject.order(path, Relation::GreaterOrEqual, value)?, false),
            "$lt" => (subject.order(path, Relation::Less, value)?, false),
            "$lte" => (subject.order(path, Relation::LessOrEqual, value)?, false),
            "$prefix" => (subject.prefix(path, value)?, false),
            _ => match value {
                Value::Bool(exists) => (Op::Exists, !exists),
                _ => return Err(Error::invalid(path, "must be true or false", shown(value))),
            },
        };
        Ok(Expr::Test(Test { column: subject.column_for(&op), op, negated }))
    }
}

/// The field of a comparison.
struct Subject {
    /// The place in the filter.
    path: String,
    column: Column,
    kind: Type,
}

impl Subject {
    /// A custom kind can be told from another only by its name, which is not in the hot part.
    fn column_for(&self, op: &Op) -> Column {
        let custom = |value: &Operand| matches!(value, Operand::Kind(Kind::CUSTOM_CODE, _));
        match op {
            Op::In(set) if set.values.iter().any(custom) => Column::Named(&CUSTOM_KIND),
            Op::In(_) | Op::Order(..) | Op::Prefix(_) | Op::Exists => self.column.clone(),
        }
    }

    fn members(&self, path: &str, value: &Value) -> Result<Set> {
        let Some(values) = value.as_array() else {
            return Err(Error::invalid(path, "must be a list of values", shown(value)));
        };
        if values.len() > FILTER_IDS_MAX {
            let why = format!("must have at most {FILTER_IDS_MAX} values");
            return Err(Error::invalid(path, why, values.len()));
        }
        self.set(path, values)
    }

    fn set(&self, path: &str, values: &[Value]) -> Result<Set> {
        let mut set = Set::default();
        for value in values {
            match value {
                Value::Null => set.null = true,
                _ => set.values.push(operand(path, self.kind, value)?),
            }
        }
        set.values.sort_unstable_by(|a, b| a.datum().cmp(&b.datum()));
        set.values.dedup();
        Ok(set)
    }

    fn prefix(&self, path: &str, value: &Value) -> Result<Op> {
        if !matches!(self.kind, Type::Text | Type::Any) {
            let why = "applies to keys, metadata and other fields that hold text";
            return Err(Error::invalid(path, why, shown(value)));
        }
        match value {
            Value::String(prefix) if !prefix.is_empty() => Ok(Op::Prefix(prefix.clone())),
            _ => Err(Error::invalid(path, "must be a text of at least one character", shown(value))),
        }
    }

    fn order(&self, path: &str, relation: Relation, value: &Value) -> Result<Op> {
        if !self.kind.is_ordered() || (self.kind == Type::Any && value.is_boolean()) {
            let why = "has no order: only $eq, $ne, $in, $nin, $exists and $not apply";
            return Err(Error::invalid(path, why, shown(value)));
        }
        Ok(Op::Order(relation, operand(path, self.kind, value)?))
    }
}

/// A single part stands for itself.
fn all_of(mut parts: Vec<Expr>) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            Expr::And(parts)
        }
        None => Expr::And(parts),
    }
}

fn column(path: &str, name: &str) -> Result<(Column, Type)> {
    if let Some(field) = find(name) {
        return Ok((Column::Named(field), field.of));
    }
    if let Some(rest) = name.strip_prefix("metadata.") {
        return metadata_path(path, name, rest);
    }
    let why = match name {
        "state" => {
            "has no state: a listing chooses it by an argument of its own, and a search sees live rows"
        }
        "namespace" => "has no namespace: it is chosen by the call",
        "metadata" => "must name a path below metadata, such as metadata.user_id",
        _ => match near(name).as_slice() {
            [] => "must name a field of a memory, such as tags, kind or created_at, or metadata and a path",
            near => {
                let why = format!("must name a field of a memory, such as {}", near.join(" or "));
                return Err(Error::invalid(path, why, name));
            }
        },
    };
    Err(Error::invalid(path, why, name))
}

pub(super) fn metadata_path(path: &str, name: &str, rest: &str) -> Result<(Column, Type)> {
    let names: Vec<String> = rest.split('.').take(METADATA_DEPTH_MAX + 1).map(str::to_owned).collect();
    if name.len() > FIELD_BYTES_MAX || names.len() > METADATA_DEPTH_MAX {
        let why = format!(
            "must name a path of at most {FIELD_BYTES_MAX} bytes and {METADATA_DEPTH_MAX} names below metadata"
        );
        return Err(Error::invalid(path, why, name));
    }
    if names.iter().any(String::is_empty) {
        return Err(Error::invalid(path, "must not have an empty name in a path below metadata", name));
    }
    Ok((Column::Metadata(names), Type::Any))
}

/// A value of a field's type. Null has been handled before.
fn operand(path: &str, kind: Type, value: &Value) -> Result<Operand> {
    let wrong = |why: &str| Err(Error::invalid(path, why, shown(value)));
    // The errors of the types below name the field of the type; the error of a filter names the place.
    let at = |error: Error| match error {
        Error::Invalid { why, value, .. } => Error::invalid(path, why, value),
        other => other,
    };
    match (kind, value) {
        (Type::Text | Type::Any, Value::String(text)) => Ok(Operand::Text(text.clone())),
        (Type::Id, Value::String(text)) => text.parse::<MemoryId>().map(Operand::Id).map_err(at),
        (Type::Time, Value::String(text)) => text.parse::<Time>().map(Operand::Time).map_err(at),
        (Type::Tier, Value::String(text)) => {
            text.parse::<Tier>().map(|tier| Operand::Code(tier.code())).map_err(at)
        }
        (Type::Significance, Value::String(text)) => {
            text.parse::<Significance>().map(|rank| Operand::Code(rank.code())).map_err(at)
        }
        (Type::AuthorKind, Value::String(text)) => {
            text.parse::<AuthorKind>().map(|kind| Operand::Code(kind.code())).map_err(at)
        }
        (Type::SupersedeMode, Value::String(text)) => {
            text.parse::<SupersedeMode>().map(|mode| Operand::Code(mode.code())).map_err(at)
        }
        (Type::Kind, Value::String(text)) => text.parse::<Kind>().map(kind_operand).map_err(at),
        (Type::Bool | Type::Any, Value::Bool(value)) => Ok(Operand::Bool(*value)),
        (Type::Single | Type::Number | Type::Whole | Type::Any, Value::Number(number)) => {
            match numeric(kind, number) {
                Some(number) => Ok(Operand::Number(number)),
                None => wrong("must be a whole number"),
            }
        }
        (Type::Text, _) => wrong("must be text, or $in and a list of texts"),
        (Type::Id, _) => wrong("must be an id as text, or $in and a list of ids"),
        (Type::Single | Type::Number, _) => wrong("must be a number"),
        (Type::Whole, _) => wrong("must be a whole number"),
        (Type::Bool, _) => wrong("must be true or false"),
        (Type::Time, _) => wrong("must be a time as text, RFC 3339"),
        (Type::Kind | Type::Tier | Type::Significance | Type::AuthorKind | Type::SupersedeMode, _) => {
            wrong("must be a name as text, or $in and a list of names")
        }
        (Type::Any, _) => wrong("must be text, a number, true or false, or $in and a list of these"),
    }
}

fn kind_operand(kind: Kind) -> Operand {
    let code = kind.code();
    match kind {
        Kind::Custom(name) => Operand::Kind(code, name),
        _ => Operand::Kind(code, String::new()),
    }
}

/// A number as a field of that type holds it; none for a fraction where the type holds whole numbers only.
fn numeric(kind: Type, number: &serde_json::Number) -> Option<Number> {
    match (kind, Number::of_json(number)?) {
        (Type::Whole, Number::Broken(_)) => None,
        // A bound beyond single precision would become an infinity. Kept in double precision, it keeps its
        // order.
        (Type::Single, _) => Number::of_f64(f64::from(number.as_f64()? as f32)).or(Number::of_json(number)),
        (_, number) => Some(number),
    }
}

/// A value as an error shows it. Lists and objects, which may be of any depth, are shown by their sort only.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        _ => value.to_string(),
    }
}
