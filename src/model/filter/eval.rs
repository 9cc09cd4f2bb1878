//! Evaluation of a filter: on the hot part of a row with three results, on the whole row with two.

use std::cmp::Ordering;

use serde_json::Value;

use crate::model::filter::column::{Column, Seen, Values};
use crate::model::filter::datum::Datum;
use crate::model::filter::expr::{Expr, Op, Relation, Set, Test};
use crate::model::filter::row::{RowView, VitalsView};

impl Expr {
    /// Uses Kleene's logic: an unknown part decides nothing, but another part still may.
    pub(super) fn on_vitals(&self, row: &VitalsView<'_>) -> Option<bool> {
        match self {
            Expr::And(parts) => decided(parts, row, false),
            Expr::Or(parts) => decided(parts, row, true),
            Expr::Not(part) => part.on_vitals(row).map(|holds| !holds),
            Expr::Test(test) => test.on_vitals(row),
        }
    }

    pub(super) fn matches(&self, row: &RowView<'_>) -> bool {
        match self {
            Expr::And(parts) => parts.iter().all(|part| part.matches(row)),
            Expr::Or(parts) => parts.iter().any(|part| part.matches(row)),
            Expr::Not(part) => !part.matches(row),
            Expr::Test(test) => test.matches(row),
        }
    }
}

/// Returns `early` as soon as one part has that result, the opposite when every part has the opposite, and
/// unknown otherwise.
fn decided(parts: &[Expr], row: &VitalsView<'_>, early: bool) -> Option<bool> {
    let mut unknown = false;
    for part in parts {
        match part.on_vitals(row) {
            Some(holds) if holds == early => return Some(early),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!early)
}

impl Test {
    fn on_vitals(&self, row: &VitalsView<'_>) -> Option<bool> {
        let mut decided = true;
        let holds = self.holds(|seen| {
            let any = self.column.any_hot(row, seen);
            decided = any.is_some();
            any.unwrap_or_default()
        });
        decided.then_some(holds)
    }

    fn matches(&self, row: &RowView<'_>) -> bool {
        self.holds(|seen| match &self.column {
            Column::Named(field) => match field.values {
                Values::Hot(any) => any(&row.hot(), seen),
                Values::Content(any) | Values::Access(any) | Values::Keys(any) | Values::Links(any) => {
                    any(row, seen)
                }
                Values::Kind => seen(Datum::Kind(row.vitals.kind_code, "")),
                Values::CustomKind => {
                    let name = row.content.custom_kind.as_deref().unwrap_or_default();
                    seen(Datum::Kind(row.vitals.kind_code, name))
                }
            },
            Column::Metadata(path) => any_at(&row.content.metadata, path, seen),
        })
    }

    /// `any(f)` says whether `f` holds for any value of the field.
    fn holds(&self, any: impl FnOnce(Seen<'_>) -> bool) -> bool {
        let holds = match &self.op {
            Op::In(set) => set.holds(any),
            Op::Order(relation, bound) => {
                let bound = bound.datum();
                any(&mut |datum| datum.order(bound).is_some_and(|order| relation.admits(order)))
            }
            Op::Prefix(prefix) => {
                any(&mut |datum| matches!(datum, Datum::Text(text) if text.starts_with(prefix.as_str())))
            }
            Op::Exists => any(&mut |_| true),
        };
        holds != self.negated
    }
}

impl Set {
    fn holds(&self, any: impl FnOnce(Seen<'_>) -> bool) -> bool {
        let mut missing = true;
        let found = any(&mut |datum| {
            missing = false;
            match datum {
                Datum::Null => self.null,
                _ => self.values.binary_search_by(|value| value.datum().cmp(&datum)).is_ok(),
            }
        });
        found || (missing && self.null)
    }
}

impl Relation {
    fn admits(self, order: Ordering) -> bool {
        match self {
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
        }
    }
}

/// Whether `f` holds for any value at `path` below `value`. A list on the way is searched one level deep. So is a list
/// at the end, where the list itself counts as a value that equals nothing. Each call takes one name off the path or
/// leaves one list, so the depth is at most twice the length of the path.
pub(super) fn any_at(value: &Value, path: &[String], f: Seen<'_>) -> bool {
    match (value, path.split_first()) {
        (Value::Array(items), None) => f(Datum::Opaque) || items.iter().any(|item| f(Datum::of_json(item))),
        (_, None) => f(Datum::of_json(value)),
        (Value::Object(map), Some((name, rest))) => map.get(name).is_some_and(|next| any_at(next, rest, f)),
        (Value::Array(items), Some(_)) => items.iter().any(|item| item.is_object() && any_at(item, path, f)),
        _ => false,
    }
}
