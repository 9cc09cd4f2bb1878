//! What users of other programs type from habit, and what it is called here.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands of others, and ours.
const HABITS: [(&[&str], &str); 7] = [
    (&["rm", "del", "delete", "remove", "erase", "drop", "unlearn"], "forget"),
    (&["put", "set", "store", "insert", "create", "remember", "write", "save", "push"], "add"),
    (&["query", "find", "recall", "ask", "lookup", "grep", "retrieve"], "search"),
    (&["show", "cat", "read", "fetch", "view"], "get"),
    (&["dump", "save-all"], "export"),
    (&["load", "restore-all", "ingest"], "import"),
    (&["clean", "cleanup", "prune", "sweep", "vacuum", "dedup"], "maintain"),
];

/// Commands of the feature `mcp`.
const OF_MCP: [&str; 2] = ["serve", "setup"];

/// Whether an option that is missing is this one.
fn asks_for(error: &Error, option: &str) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing)) if missing.iter().any(|one| one == option))
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
            let word = typed(&error, ContextKind::InvalidArg).filter(|word| !word.starts_with('-'));
            if word.is_some() {
                let tip = "a text of several words stands in quotes".into();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
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
