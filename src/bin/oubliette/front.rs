//! The short screen of a call without a command: what is in the file, what was done lately, what to try.

use oubliette::ErrorKind;
use serde_json::{Value, json};

use crate::output::{Done, Output};
use crate::place::{Access, Place};
use crate::{story, told};

/// Namespaces that the screen names.
const NAMESPACES: usize = 5;
/// Runs that the screen tells of.
const RUNS: usize = 3;

/// Shows the screen.
pub(crate) fn run(place: &Place, output: Output<'_>) -> Done {
    let database = match place.open(Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return nothing(place, output),
        opened => opened?,
    };
    let stats = database.stats()?;
    let mut runs = Vec::new();
    for namespace in database.namespaces()? {
        runs.extend(database.namespace(&namespace)?.runs(None, RUNS)?.items);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.started_at));
    runs.truncate(RUNS);
    let path = database.path().display().to_string();
    if output.json {
        return output.document(&json!({
            "path": path, "memories": stats.memories, "by_namespace": stats.by_namespace, "runs": runs,
        }));
    }
    let live = told::of(stats.memories.live, "memory", "memories");
    let mut lines = vec![format!("{live} in {path} ({}).", told::size(stats.bytes.file))];
    let counts = json!(stats.by_namespace);
    let counts: Vec<_> = counts.as_object().into_iter().flatten().collect();
    let named = counts.iter().take(NAMESPACES).map(|(name, count)| format!("{name} {count}"));
    let mut named = named.collect::<Vec<_>>().join(", ");
    if counts.len() > NAMESPACES {
        named.push_str(&format!(" and {} more", counts.len() - NAMESPACES));
    }
    if !counts.is_empty() {
        lines.push(format!("Namespaces: {named}."));
    }
    if !runs.is_empty() {
        lines.push("Last runs:".to_owned());
    }
    lines.extend(runs.iter().map(|run| {
        let undo =
            if run.can_be_undone { format!("; `undo {}` takes it back", run.id) } else { String::new() };
        format!("  {} {}, {}{undo}", run.sort, story::when(run.started_at, &place.present()), run.status)
    }));
    lines.extend(try_these(&[
        ("search \"what was decided\"", "finds memories by words and meaning"),
        ("add \"Ann prefers tea\"", "remembers a fact"),
        ("maintain --dry-run", "shows what maintenance would do"),
    ]));
    output.text(&lines)
}

/// The screen before there is a file.
fn nothing(place: &Place, output: Output<'_>) -> Done {
    let path = place.path().ok().map(|path| place.caller().shown(path).display().to_string());
    if output.json {
        return output.document(&json!({ "path": path, "memories": Value::Null }));
    }
    let mut lines =
        vec![format!("There is no memory yet at {}.", path.unwrap_or_else(|| "--db PATH".to_owned()))];
    lines.extend(try_these(&[
        ("demo", "shows the main job on real text, in a file of its own"),
        ("add \"Ann prefers tea\"", "remembers a fact, and makes the file"),
        ("import FILE.jsonl", "takes in many memories"),
    ]));
    output.text(&lines)
}

fn try_these(commands: &[(&str, &str)]) -> Vec<String> {
    let mut lines = vec![String::new(), "Try:".to_owned()];
    lines.extend(commands.iter().map(|(command, what)| format!("  oubliette {command:<28} {what}")));
    lines.push("  oubliette --help                       lists all commands".to_owned());
    lines
}
