//! The typed form of a filter: a tree of comparisons.

use crate::model::filter::column::{Column, KEYS, Named};
use crate::model::filter::datum::Operand;
use crate::model::filter::row::Needs;

/// A condition, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    /// Every part holds. Without any part the condition always holds.
    And(Vec<Expr>),
    /// At least one part holds.
    Or(Vec<Expr>),
    /// The part does not hold.
    Not(Box<Expr>),
    /// A comparison of one field.
    Test(Test),
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    pub(super) column: Column,
    pub(super) op: Op,
    /// Whether the result is negated: `$ne`, `$nin`, `$exists: false`.
    pub(super) negated: bool,
}

/// What a comparison asks of the values of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// Equal to a member: `$eq` and `$in`.
    In(Set),
    /// Before or after a bound of the same type.
    Order(Relation, Operand),
    /// A text that begins with these bytes.
    Prefix(String),
    /// There is a value.
    Exists,
}

/// Members of `$in`: values in ascending order, each once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Set {
    pub(super) values: Vec<Operand>,
    /// Whether null, which also stands for a missing value, is a member.
    pub(super) null: bool,
}

/// How a value lies to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Expr {
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(|part| part.add_needs(needs)),
            Expr::Not(part) => part.add_needs(needs),
            Expr::Test(test) => test.column.add_needs(needs),
        }
    }

    pub(super) fn add_key_prefix<'a>(&'a self, longest: &mut Option<&'a str>) {
        match self {
            Expr::And(parts) => parts.iter().for_each(|part| part.add_key_prefix(longest)),
            Expr::Test(Test { column: Column::Named(found), op: Op::Prefix(prefix), negated: false })
                if **found == KEYS && longest.is_none_or(|longest| longest.len() < prefix.len()) =>
            {
                *longest = Some(prefix);
            }
            Expr::Or(_) | Expr::Not(_) | Expr::Test(_) => {}
        }
    }

    pub(super) fn add_demanded<'a>(&'a self, column: &Named, sets: &mut Vec<&'a [Operand]>) {
        match self {
            Expr::And(parts) => parts.iter().for_each(|part| part.add_demanded(column, sets)),
            Expr::Test(Test { column: Column::Named(found), op: Op::In(set), negated: false })
                if *found == column && !set.null =>
            {
                sets.push(&set.values);
            }
            Expr::Or(_) | Expr::Not(_) | Expr::Test(_) => {}
        }
    }
}
