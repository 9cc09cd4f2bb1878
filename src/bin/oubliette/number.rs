//! Numbers as values of options.

use std::str::FromStr;

use clap::builder::TypedValueParser;

/// Reads a number, and refuses what is none by saying what the option takes. Whoever uses the number holds it to its bound.
pub(crate) fn number<T>(what: &'static str) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
{
    move |text: &str| text.parse::<T>().map_err(|_| format!("must be {what}"))
}
