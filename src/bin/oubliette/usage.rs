//! Which errors are errors of usage: those of an option or a name whose value breaks a bound.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory};
use oubliette::Error;

use crate::arguments::Arguments;

/// Whether an error names something that was typed, so that its value was refused. What a line of a file says is data, and so is
/// what a file holds that an option names.
pub(crate) fn is_of_option(words: &[OsString], error: &Error) -> bool {
    let Error::Invalid { field, .. } = error else { return false };
    let mut command = Arguments::command();
    let Ok(typed) = command.try_get_matches_from_mut(words) else { return false };
    let (mut command, mut typed) = (&command, &typed);
    loop {
        if command
            .get_arguments()
            .any(|option| (names(option, field) && has_value(option, typed)) || gives(option, field, typed))
        {
            return true;
        }
        let within =
            typed.subcommand().and_then(|(name, typed)| Some((command.find_subcommand(name)?, typed)));
        let Some(within) = within else { return false };
        (command, typed) = within;
    }
}

/// Whether the field of an error is an option: by the field that the option sets, or as it is typed.
fn names(option: &Arg, field: &str) -> bool {
    let first = field.split('.').next().unwrap_or(field);
    match first.strip_prefix("--") {
        Some(long) => option.get_long() == Some(long),
        None => option.get_id() == first,
    }
}

/// Whether an option whose values are fields behind their names has given a field.
fn gives(option: &Arg, field: &str, typed: &ArgMatches) -> bool {
    let first = field.split('.').next().unwrap_or(field);
    let values =
        (option.get_long() == Some("field")).then(|| typed.get_many::<String>(option.get_id().as_str()));
    let mut values = values.into_iter().flatten().flatten();
    values.any(|value| value.split_once('=').is_some_and(|(name, _)| name == first))
}

/// Whether the value of an option was typed, and is no file.
fn has_value(option: &Arg, typed: &ArgMatches) -> bool {
    let is_file = option.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    !is_file && typed.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
}
