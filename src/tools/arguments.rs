//! The arguments of a tool: one type, from which come the schema and the reading.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json;
use crate::tools::shape::Shape;

/// The arguments of a tool.
pub(super) trait Arguments: DeserializeOwned {
    /// What they may be.
    fn shape() -> Shape;

    /// The arguments of a value that has their shape.
    ///
    /// # Errors
    /// `Invalid` for a value that has another shape.
    fn read(value: Value) -> Result<Self> {
        typed(&value)
    }
}

/// Arguments of a type. A refusal names the value that is wrong, and shows it.
///
/// # Errors
/// `Invalid`.
pub(super) fn typed<A: DeserializeOwned>(args: &Value) -> Result<A> {
    json::typed(args).map_err(|refusal| {
        let given = args.pointer(&refusal.pointer).unwrap_or(args);
        let place = if refusal.place.is_empty() { "arguments".to_owned() } else { refusal.place };
        Error::invalid(place, refusal.why, given)
    })
}

/// Declares the arguments of a tool: `field: Type = shape.required();`, in the order of the schema. Below them may stand of which
/// of them exactly one is given.
macro_rules! arguments {
    (
        $(#[$doc:meta])*
        $name:ident { $($field:ident: $type:ty = $member:expr;)* }
        $(one of $($one:ident)+;)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)*
        }

        impl $crate::tools::arguments::Arguments for $name {
            fn shape() -> $crate::tools::shape::Shape {
                let members: Vec<$crate::tools::shape::Member> = vec![$($member.named(stringify!($field)),)*];
                $(
                    let names = vec![$(stringify!($one)),+];
                    return $crate::tools::shape::Shape::OneOf(members, names);
                )?
                #[allow(unreachable_code, reason = "what has a choice has returned")]
                $crate::tools::shape::Shape::Closed(members)
            }
        }
    };
}
pub(super) use arguments;
