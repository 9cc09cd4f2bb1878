//! Members of closed sets as values of options.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use oubliette::Error;

/// Reads a member of a closed set of the library by its name. Help and completions show the names.
pub(crate) fn member<T>(all: &[T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = Error> + Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.iter().map(|one| name(*one))).try_map(|text| text.parse())
}
