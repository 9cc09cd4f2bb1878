//! What users of other programs type from habit, and what it is called here.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands of others, and ours.
const HABITS: [(&[&str], &str); 8] = [
    (&["rm", "del", "delete", "remove", "erase", "drop", "unlearn", "clear", "wipe", "reset"], "forget"),
    (&["edit", "change", "modify", "patch"], "update"),
    (&["put", "set", "store", "insert", "create", "remember", "write", "save", "push"], "add"),
    (&["query", "find", "recall", "ask", "lookup", "grep", "retrieve"], "search"),
    (&["show", "cat", "read", "fetch", "view"], "get"),
    (&["dump", "save-all"], "export"),
    (&["load", "restore-all", "ingest"], "import"),
    (&["clean", "cleanup", "prune", "sweep", "vacuum", "dedup"], "maintain"),
];

/// Commands that take a text, which can have several words.
const OF_TEXTS: [&str; 3] = ["add", "search", "goal"];

/// Commands that have `--filter`.
const OF_FILTERS: [&str; 4] = ["search", "list", "distinct", "forget"];

/// What others ask for by an option, and a filter asks for here, by the name of its field.
const FIELDS: [(&str, &str); 8] = [
    ("--tag", "tags"),
    ("--tags", "tags"),
    ("--kind", "kind"),
    ("--tier", "tier"),
    ("--category", "categories"),
    ("--channel", "channel"),
    ("--thread", "thread"),
    ("--session", "session"),
];

/// Options of others, by the command at which they are typed, and how that is done here.
const OPTIONS: [(&str, &str, &str); 2] = [
    ("list", "--all", "--state any lists memories of every state, and --limit more on a page"),
    ("add", "--id", "the database gives ids; --key is the name of a record in your own world"),
];

/// Commands of the feature `mcp`.
const OF_MCP: [&str; 2] = ["serve", "setup"];

/// Whether an option that is missing is this one.
fn asks_for(error: &Error, option: &str) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing)) if missing.iter().any(|one| one == option))
}

/// The command at which something was typed, as the line on its use names it.
fn command(error: &Error) -> Option<String> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    usage.to_string().split_whitespace().nth(2).map(str::to_owned)
}

/// What leads from an argument that a command has not to what was meant.
fn of_option(command: &str, word: &str) -> Option<String> {
    if !word.starts_with('-') {
        let tip = "a text of several words stands in quotes";
        return OF_TEXTS.contains(&command).then(|| tip.to_owned());
    }
    let field = FIELDS.iter().find(|(option, _)| *option == word && OF_FILTERS.contains(&command));
    let tip = OPTIONS.iter().find(|(of, option, _)| (*of, *option) == (command, word));
    field
        .map(|(_, field)| format!("a filter asks for that: --filter '{{\"{field}\":\"X\"}}'"))
        .or(tip.map(|(.., tip)| (*tip).to_owned()))
}

/// The error, with a tip that leads from a habit to what was meant.
pub(crate) fn advised(mut error: Error) -> Error {
    let typed = |error: &Error, kind| match error.get(kind) {
        Some(ContextValue::String(typed)) => Some(typed.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = typed(&error, ContextKind::InvalidSubcommand);
            if !cfg!(feature = "mcp") && word.as_ref().is_some_and(|word| OF_MCP.contains(&word.as_str())) {
                error.remove(ContextKind::SuggestedSubcommand);
                let tip = "this build was made without the feature mcp, which has this command".into();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            }
            let known = word.and_then(|word| HABITS.iter().find(|(words, _)| words.contains(&&*word)));
            if let Some((_, ours)) = known {
                let ours = ContextValue::Strings(vec![(*ours).to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, ours);
            }
        }
        ErrorKind::UnknownArgument => {
            let (word, command) = (typed(&error, ContextKind::InvalidArg), command(&error));
            if let Some(tip) = word.zip(command).and_then(|(word, command)| of_option(&command, &word)) {
                // The one that is spelled most like it is not what was meant, and neither is the use that shows it.
                if error.remove(ContextKind::SuggestedArg).is_some() {
                    error.remove(ContextKind::Usage);
                }
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
        }
        ErrorKind::MissingRequiredArgument if asks_for(&error, "--yes") => {
            let tip = "--dry-run tells what would go, and forgets nothing".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        _ => {}
    }
    error
}
