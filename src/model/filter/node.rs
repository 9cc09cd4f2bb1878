//! The typed form of a filter: a tree of comparisons.

use crate::model::filter::column::{Column, Named};
use crate::model::filter::datum::Operand;
use crate::model::filter::row::Needs;

/// A condition, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Every part holds. Without any part the condition always holds.
    And(Vec<Node>),
    /// At least one part holds.
    Or(Vec<Node>),
    /// The part does not hold.
    Not(Box<Node>),
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

impl Node {
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| part.add_needs(needs)),
            Node::Not(part) => part.add_needs(needs),
            Node::Test(test) => test.column.add_needs(needs),
        }
    }

    pub(super) fn add_demanded<'a>(&'a self, column: &Named, sets: &mut Vec<&'a [Operand]>) {
        match self {
            Node::And(parts) => parts.iter().for_each(|part| part.add_demanded(column, sets)),
            Node::Test(Test { column: Column::Named(found), op: Op::In(set), negated: false })
                if *found == column && !set.null =>
            {
                sets.push(&set.values);
            }
            Node::Or(_) | Node::Not(_) | Node::Test(_) => {}
        }
    }
}
