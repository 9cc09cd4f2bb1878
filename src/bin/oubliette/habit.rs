//! What users of other programs type from habit, and what it is called here.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands of others, and ours.
const HABITS: [(&[&str], &str); 15] = [
    (&["rm", "del", "delete", "remove", "erase", "drop", "unlearn", "clear", "wipe", "reset"], "forget"),
    (&["edit", "change", "modify", "patch"], "update"),
    (&["put", "set", "store", "insert", "create", "remember", "write", "save", "push"], "add"),
    (&["query", "find", "recall", "ask", "lookup", "grep", "retrieve"], "search"),
    (&["show", "cat", "read", "fetch", "view"], "get"),
    (&["dump", "save-all"], "export"),
    (&["load", "restore-all", "ingest"], "import"),
    (&["clean", "cleanup", "prune", "sweep", "dedup", "dedupe", "deduplicate", "purge"], "maintain"),
    (&["vacuum", "shrink", "optimize"], "compact"),
    (&["rollback", "revert"], "undo"),
    (&["repair", "verify", "validate", "doctor"], "check"),
    (&["keys", "ls"], "list"),
    (&["copy", "cp"], "backup"),
    (&["log", "versions"], "history"),
    (&["info", "status", "count", "size"], "stats"),
];

/// The same of commands that have commands of their own.
const NESTED: [(&str, &[&str], &str); 9] = [
    ("goal", &["add", "new", "create"], "set"),
    ("goal", &["remove", "rm", "delete", "del", "forget", "end"], "drop"),
    ("policy", &["get", "cat", "view", "print"], "show"),
    ("policy", &["edit", "load", "update"], "set"),
    ("index", &["rm", "remove", "delete", "del"], "drop"),
    ("index", &["create", "new", "set"], "add"),
    ("namespace", &["rename", "mv"], "move"),
    ("namespace", &["rm", "remove", "delete", "del"], "drop"),
    ("gc", &["start", "collect"], "run"),
];

/// Commands of others, and how that is done here without a command of its own.
const WAYS: [(&[&str], &str); 6] = [
    (&["upsert"], "`add TEXT --key KEY` stores a text, and corrects what the key has said"),
    (
        &["expire", "ttl"],
        "`touch KEY --ttl 30d` says when a memory ends, and `maintain` takes away what has ended",
    ),
    (
        &["mv", "move"],
        "`rename` gives a memory another key, and `namespace move` moves memories to another namespace",
    ),
    (
        &["mcp", "server"],
        "`serve --mcp` hands the tools to a client, and `setup` shows what to tell the client",
    ),
    (
        &["tags", "tag"],
        "`memory-stats` counts the memories of each tag, and `list --filter '{\"tags\":\"X\"}'` lists those of one",
    ),
    (&["version"], "`oubliette --version` tells it"),
];

/// What others call the work of `maintain`, and what does it here.
const PASSES: [(&[&str], &str); 6] = [
    (&["gc", "summarize"], "`gc run` makes summaries of old memories"),
    (&["all"], "`maintain` without a pass runs all that the policy enables"),
    (&["dedup", "duplicates"], "near-duplicates and vector-duplicates unite what says the same"),
    (
        &["merge", "unite", "join", "consolidate"],
        "collapse, near-duplicates and vector-duplicates unite what says the same; the first two keep the rest in limbo",
    ),
    (&["purge", "ttl", "expired"], "expire removes what is over; it is the stage purge of sweeper.stages"),
    (&["optimize", "vacuum"], "the pass index links what is new, and `compact` makes the file small"),
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
const OPTIONS: [(&str, &[&str], &str); 19] = [
    ("list", &["-k", "--top", "-n"], "--limit tells how many"),
    ("list", &["--sort", "--order", "--order-by"], "--newest lists the newest first"),
    ("list", &["--all"], "--state any lists memories of every state, and --limit more on a page"),
    ("add", &["--id"], "the database gives ids; --key is the name of a record in your own world"),
    ("add", &["--text", "-m", "--message", "--content"], "the text stands alone: add TEXT"),
    (
        "add",
        &["--user", "--user-id", "--user_id"],
        "--author-id tells who said it, and --agent whose part it is in",
    ),
    ("add", &["--file"], "`import FILE` reads lines, and `add -` standard input"),
    ("search", &["--top", "--top-k", "--top_k"], "-k tells how many"),
    ("search", &["--query", "-q", "--text"], "the text stands alone: search TEXT"),
    ("search", &["--threshold", "--min-relevance"], "--min-score leaves out what scores less"),
    (
        "search",
        &["--user", "--user-id", "--user_id"],
        "--filter '{\"author_id\":\"X\"}', and --agent for the part of an agent",
    ),
    ("search", &["--where"], "--filter tells what a hit must have"),
    ("search", &["--all"], "-k tells how many, and --any-agent looks in the parts of all agents"),
    ("get", &["--id", "--key"], "the id or the key stands alone: get ID|KEY"),
    ("forget", &["-y", "-f", "--force"], "--yes forgets without a question"),
    ("forget", &["--hard", "--permanent"], "--erase also rewrites the file, so that no byte is left"),
    ("forget", &["--older-than", "--before"], "--filter '{\"created_at\":{\"$lt\":\"2026-01-31\"}}'"),
    ("undo", &["--last", "--run"], "the id of the run stands alone; `runs` lists the last one first"),
    ("import", &["--dry-run"], "an import has none; `undo` takes it back"),
];

/// How others write the option that names a namespace.
const NAMESPACE: [&str; 3] = ["--ns", "--tenant", "--collection"];

/// How others write the option that names the file, where none of ours is called so.
const FILE: [&str; 3] = ["--path", "--database", "--store"];

/// How others ask for JSON.
const FORMAT: [&str; 3] = ["--format", "--output", "-o"];

/// Commands that write a file.
const OF_FILES: [&str; 2] = ["backup", "export"];

/// Commands of the feature `mcp`, and what others call them.
const OF_MCP: [&str; 4] = ["serve", "setup", "mcp", "server"];

/// Options of `serve` of the feature `mcp-http`.
const OF_HTTP: [&str; 2] = ["--http", "--token-file"];

/// What was typed, where it asks how to ask for help: `help` itself tells.
pub(crate) fn help_of_help(words: &[OsString]) -> Vec<&OsString> {
    let asks = words.get(1).is_some_and(|word| word == "help");
    words.iter().filter(|word| !(asks && (*word == "--help" || *word == "-h"))).collect()
}

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
    // No option begins like this.
    if OF_TEXTS.contains(&command) && !word.trim_start_matches('-').starts_with(char::is_alphabetic) {
        return Some("a text that begins with a dash stands behind --: add -- '-5 degrees'".to_owned());
    }
    if !cfg!(feature = "mcp-http") && command == "serve" && OF_HTTP.contains(&word) {
        return Some("this build was made without the feature mcp-http, which has this option".to_owned());
    }
    if NAMESPACE.contains(&word) {
        return Some("--namespace names the namespace".to_owned());
    }
    if FILE.contains(&word) {
        return Some("--db names the file".to_owned());
    }
    if OF_FILES.contains(&command) && FORMAT[1..].contains(&word) {
        return Some(format!("the file stands alone: {command} FILE"));
    }
    if FORMAT.contains(&word) {
        return Some("--json prints one JSON document".to_owned());
    }
    let field = FIELDS.iter().find(|(option, _)| *option == word && OF_FILTERS.contains(&command));
    let tip = OPTIONS.iter().find(|(of, options, _)| *of == command && options.contains(&word));
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
            let is_left_out =
                !cfg!(feature = "mcp") && word.as_ref().is_some_and(|word| OF_MCP.contains(&word.as_str()));
            if is_left_out {
                error.remove(ContextKind::SuggestedSubcommand);
                let tip = "this build was made without the feature mcp, which has this command".into();
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            }
            let way = |word: &String| WAYS.iter().find(|(words, _)| words.contains(&word.as_str()));
            let within = command(&error).filter(|command| command.chars().all(char::is_alphabetic));
            if let (Some((_, way)), None, false) = (word.as_ref().and_then(way), &within, is_left_out) {
                error.remove(ContextKind::SuggestedSubcommand);
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*way).into()]));
            }
            if let Some(ours) = word.and_then(|word| meant(&word, within.as_deref())) {
                let ours = ContextValue::Strings(vec![ours.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, ours);
            }
        }
        ErrorKind::UnknownArgument => {
            let (word, command) = (typed(&error, ContextKind::InvalidArg), command(&error));
            // Nobody means an option to be a text.
            error.remove(ContextKind::Suggested);
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
        ErrorKind::MissingRequiredArgument if asks_for(&error, "<RUN>") => {
            let tip = "`runs` lists the runs, the last one first".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
        ErrorKind::MissingRequiredArgument if asks_for(&error, "<FROM>") => {
            // `--by` takes all that follows it.
            let tip = "FROM stands before --by: namespace split FROM --by KEY".into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            error.remove(ContextKind::Usage);
        }
        ErrorKind::InvalidValue if asks_for_pass(&error) => {
            if let Some(tip) = typed(&error, ContextKind::InvalidValue).and_then(|word| of_pass(&word)) {
                error.remove(ContextKind::SuggestedValue);
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
        }
        _ => {}
    }
    error
}

/// Our command, or our command of a command, that a word of others means.
fn meant(word: &str, within: Option<&str>) -> Option<&'static str> {
    match within {
        Some(within) => {
            let known = NESTED.iter().find(|(of, words, _)| *of == within && words.contains(&word));
            known.map(|(.., ours)| *ours)
        }
        None => HABITS.iter().find(|(words, _)| words.contains(&word)).map(|(_, ours)| *ours),
    }
}

/// Whether a value that is none was to be the name of a pass.
fn asks_for_pass(error: &Error) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(of)) if of.contains("PASS"))
}

/// What leads from a name that is no pass to what was meant.
fn of_pass(word: &str) -> Option<String> {
    if word.contains(',') {
        return Some("names of passes stand apart, with a space between them".to_owned());
    }
    PASSES.iter().find(|(words, _)| words.contains(&word)).map(|(_, tip)| (*tip).to_owned())
}
