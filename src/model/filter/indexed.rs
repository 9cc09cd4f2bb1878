//! What a declared index of metadata holds of a memory, and what a filter asks of it.
//!
//! The values are those that `$eq`, `$in` and `$prefix` compare with, collected by the same walk. So an index can't lose a row
//! that the filter would accept. The index may return too many rows where a text was cut or a number was rounded. The
//! filter is then tried on the row, as it is without an index.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::{INDEX_KEY_BYTES_MAX, INDEX_TEXT_BYTES_MAX, INDEX_VALUES_MAX};
use crate::model::filter::column::Column;
use crate::model::filter::datum::{Datum, Number, Operand};
use crate::model::filter::eval::any_at;
use crate::model::filter::expr::{Expr, Op, Test};
use crate::model::filter::{Filter, parse};

/// A value of the metadata as an index holds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetaValue {
    /// A truth value.
    Bool(bool),
    /// The `f64` nearest to a number, with its bits turned so that their order is that of the numbers.
    Number(u64),
    /// The first bytes of a text.
    Text(Vec<u8>),
    /// The memory has more values than an index holds for one memory.
    Many,
}

/// Each whole number below this bound has an `f64` of its own.
const EXACT: f64 = (1_u64 << 53) as f64;

impl MetaValue {
    /// The values at a path below `metadata`. Null, objects and lists of lists have no values.
    pub(crate) fn all_at(metadata: &Value, path: &str) -> BTreeSet<MetaValue> {
        let names: Vec<String> = path.split('.').map(str::to_owned).collect();
        let mut all = BTreeSet::new();
        any_at(metadata, &names, &mut |datum| {
            all.extend(MetaValue::of(datum));
            all.len() > INDEX_VALUES_MAX
        });
        if all.len() > INDEX_VALUES_MAX { BTreeSet::from([MetaValue::Many]) } else { all }
    }

    fn of(datum: Datum<'_>) -> Option<MetaValue> {
        match datum {
            Datum::Bool(value) => Some(MetaValue::Bool(value)),
            Datum::Number(number) => Some(MetaValue::Number(ordered(nearest(number)))),
            // No metadata holds a NUL, so a text with a NUL in a filter matches no row.
            Datum::Text(text) if text.contains('\0') => None,
            Datum::Text(text) => {
                let bytes = text.as_bytes();
                Some(MetaValue::Text(bytes.get(..INDEX_TEXT_BYTES_MAX).unwrap_or(bytes).to_vec()))
            }
            _ => None,
        }
    }
}

fn nearest(number: Number) -> f64 {
    match number {
        Number::Whole(whole) => whole as f64,
        Number::Broken(broken) => broken,
    }
}

/// The bits of a number in the order of numbers.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Whether no other operand of a filter has the same value in an index.
fn is_exact(operand: &Operand) -> bool {
    match operand {
        Operand::Number(number) => nearest(*number).abs() < EXACT,
        Operand::Text(text) => text.len() < INDEX_TEXT_BYTES_MAX,
        _ => true,
    }
}

/// What a comparison asks of the values of a row.
#[derive(Clone, Debug)]
pub(crate) enum MetaWanted {
    /// One of these values. Without any value no row matches.
    OneOf(BTreeSet<MetaValue>),
    /// A text that begins with these bytes.
    Prefix(Vec<u8>),
}

/// A comparison that every matching row meets, in a form that an index can answer.
#[derive(Clone, Debug)]
pub(crate) struct MetaTest<'f> {
    /// The path below `metadata`.
    pub(crate) path: String,
    /// What a matching row has.
    pub(crate) wanted: MetaWanted,
    /// Whether each row under these values meets the comparison.
    pub(crate) exact: bool,
    test: &'f Test,
}

impl Filter {
    /// The comparisons of metadata that the whole filter demands and that an index can answer.
    pub(crate) fn required_metadata(&self) -> Vec<MetaTest<'_>> {
        let mut all = Vec::new();
        self.root.add_metadata(&mut all);
        all
    }

    /// Whether every row matches, as far as the form of the filter tells.
    pub(crate) fn holds_always(&self) -> bool {
        self.root.holds_always()
    }

    /// The filter for rows that are known to meet one of its comparisons.
    pub(crate) fn given(&self, met: &MetaTest<'_>) -> Filter {
        Filter { root: self.root.given(met.test), json: self.json.clone() }
    }
}

impl Expr {
    fn add_metadata<'f>(&'f self, all: &mut Vec<MetaTest<'f>>) {
        match self {
            Expr::And(parts) => parts.iter().for_each(|part| part.add_metadata(all)),
            Expr::Test(test) => all.extend(test.by_metadata()),
            Expr::Or(_) | Expr::Not(_) => {}
        }
    }

    fn holds_always(&self) -> bool {
        matches!(self, Expr::And(parts) if parts.iter().all(Expr::holds_always))
    }

    fn given(&self, met: &Test) -> Expr {
        match self {
            Expr::And(parts) => Expr::And(parts.iter().map(|part| part.given(met)).collect()),
            Expr::Test(test) if std::ptr::eq(test, met) => Expr::And(Vec::new()),
            other => other.clone(),
        }
    }
}

impl Test {
    fn by_metadata(&self) -> Option<MetaTest<'_>> {
        let Test { column: Column::Metadata(names), op, negated: false } = self else { return None };
        let (wanted, exact) = match op {
            // A row without the value meets a comparison with null, but no index holds the row.
            Op::In(set) if !set.null => {
                let values = set.values.iter().filter_map(|value| MetaValue::of(value.datum()));
                (MetaWanted::OneOf(values.collect()), set.values.iter().all(is_exact))
            }
            // No metadata holds a NUL.
            Op::Prefix(prefix) if prefix.contains('\0') => (MetaWanted::OneOf(BTreeSet::new()), true),
            Op::Prefix(prefix) => {
                let bytes = prefix.as_bytes();
                let held = bytes.get(..INDEX_TEXT_BYTES_MAX).unwrap_or(bytes).to_vec();
                (MetaWanted::Prefix(held), bytes.len() <= INDEX_TEXT_BYTES_MAX)
            }
            Op::In(_) | Op::Order(..) | Op::Exists => return None,
        };
        Some(MetaTest { path: names.join("."), wanted, exact, test: self })
    }
}

/// Checks the path of an index: a path that a filter can name below `metadata`, 1 to 128 bytes, no NUL.
///
/// # Errors
/// `Invalid` naming `key`.
pub(crate) fn check_index_key(key: &str) -> Result<()> {
    if key.is_empty() || key.len() > INDEX_KEY_BYTES_MAX || key.contains('\0') {
        let why = format!("must be a path below metadata of 1 to {INDEX_KEY_BYTES_MAX} bytes without NUL");
        return Err(Error::invalid("key", why, key));
    }
    parse::metadata_path("key", key, key).map(|_| ())
}
