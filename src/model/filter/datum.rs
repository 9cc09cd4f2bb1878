//! Values as a filter compares them: those of a row ([`Datum`]) and those of the filter ([`Operand`]).

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::id::MemoryId;
use crate::model::time::Time;

/// One value of a row. Values are ordered by type, then by value. A filter compares only values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Datum<'a> {
    /// Null in the metadata.
    Null,
    Bool(bool),
    Number(Number),
    Text(&'a str),
    Time(Time),
    Id(MemoryId),
    /// Code of a closed set, which is its rank.
    Code(u8),
    /// The code of a kind, and the name of a custom kind.
    Kind(u8, &'a str),
    /// A value that no filter can name: an object, or a list as a whole.
    Opaque,
}

impl<'a> Datum<'a> {
    /// A value of the metadata.
    pub(super) fn of_json(value: &'a Value) -> Self {
        match value {
            Value::Null => Datum::Null,
            Value::Bool(b) => Datum::Bool(*b),
            Value::Number(n) => Number::of_json(n).map_or(Datum::Opaque, Datum::Number),
            Value::String(text) => Datum::Text(text),
            Value::Array(_) | Value::Object(_) => Datum::Opaque,
        }
    }

    /// The order of this value and `bound`, if both have one type.
    pub(super) fn order(self, bound: Datum<'_>) -> Option<Ordering> {
        let same = std::mem::discriminant(&self) == std::mem::discriminant(&bound);
        same.then(|| self.cmp(&bound))
    }
}

/// One value of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Bool(bool),
    Number(Number),
    Text(String),
    Time(Time),
    Id(MemoryId),
    Code(u8),
    Kind(u8, String),
}

impl Operand {
    /// The same value, as a row would hold it.
    pub(super) fn datum(&self) -> Datum<'_> {
        match self {
            Operand::Bool(b) => Datum::Bool(*b),
            Operand::Number(n) => Datum::Number(*n),
            Operand::Text(text) => Datum::Text(text),
            Operand::Time(time) => Datum::Time(*time),
            Operand::Id(id) => Datum::Id(*id),
            Operand::Code(code) => Datum::Code(*code),
            Operand::Kind(code, name) => Datum::Kind(*code, name),
        }
    }

    pub(super) fn id(&self) -> Option<MemoryId> {
        match self {
            Operand::Id(id) => Some(*id),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Operand::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A finite number, compared by its exact value. A whole number is always [`Number::Whole`], so that 1 and
/// 1.0 are equal, and 2^53 + 1 is not 2^53.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Every whole number of magnitude below 2^100.
    Whole(i128),
    /// Every other finite number.
    Broken(f64),
}

/// Below this magnitude a whole `f64` is held as an integer: well above what JSON integers can say.
const WHOLE_MAX: f64 = (1_u128 << 100) as f64;

impl Number {
    /// None for infinities and NaN.
    pub(super) fn of_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            None
        } else if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
            Some(Number::Whole(value as i128))
        } else {
            Some(Number::Broken(value))
        }
    }

    pub(super) fn of_json(value: &serde_json::Number) -> Option<Self> {
        let whole = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        match whole {
            Some(whole) => Some(Number::Whole(whole)),
            None => value.as_f64().and_then(Number::of_f64),
        }
    }

    /// The order of a whole number and a broken number, which are never equal.
    fn whole_to_broken(whole: i128, broken: f64) -> Ordering {
        // A broken number either lies beyond every whole number held here, or is so small that its floor is
        // exact.
        let below = if broken.abs() >= WHOLE_MAX { broken > 0.0 } else { whole <= broken.floor() as i128 };
        if below { Ordering::Less } else { Ordering::Greater }
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (*self, *other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (Number::Broken(a), Number::Broken(b)) => a.total_cmp(&b),
            (Number::Whole(a), Number::Broken(b)) => Number::whole_to_broken(a, b),
            (Number::Broken(a), Number::Whole(b)) => Number::whole_to_broken(b, a).reverse(),
        }
    }
}
