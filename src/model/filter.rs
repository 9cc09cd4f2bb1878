//! Filters: JSON in the Mongo manner, over fields and `metadata.*`.

use serde_json::Value;

/// A condition on a memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Every part holds.
    And(Vec<Filter>),
    /// Some part holds.
    Or(Vec<Filter>),
    /// The part does not hold.
    Not(Box<Filter>),
    /// A comparison of one field.
    Compare {
        /// Name of the field, or `metadata.` and a path.
        field: String,
        /// How.
        op: Op,
    },
}

/// A comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Equal; a list field equals any of its members.
    Eq(Value),
}
