//! `context-log`: which memories went into a context of a language model.

use oubliette::Error;
use oubliette::exchange::LineReader;
use oubliette::memory::{ContextDraft, Inclusion};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::ContextLogOptions;
use crate::output::{Done, Output, plain};
use crate::place::{Access, Place, named};
use crate::{told, write};

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemLine {
    #[serde(alias = "memory")]
    memory_id: String,
    tokens: u32,
    bucket: Option<String>,
}

/// `context-log`.
pub(crate) fn run(options: &ContextLogOptions, place: &Place, output: Output<'_>) -> Done {
    let mut lines = LineReader::new(write::read(&options.file, place.caller())?, &options.file);
    let mut context = ContextDraft::new(&options.context, []);
    while let Some((number, text)) = lines.next_line()? {
        let item = item(text).map_err(|error| error.at_line(number))?;
        context.items.push(item);
    }
    context.session.clone_from(&options.session);
    context.window_tokens = options.window_tokens;
    context.at = options.at.as_deref().map(|at| named("--at", at.parse())).transpose()?;
    let database = place.open(Access::Write)?;
    let report = database.namespace(place.namespace()?)?.context_log_write(&context)?;
    place.close(database)?;
    place.done(output, json!(report), |_| {
        let counted = told::of(report.counted, "memory", "memories");
        let told = if report.already { "Nothing changed; the log has" } else { "Counted" };
        match report.unknown.as_slice() {
            [] => format!("{told} {counted}"),
            unknown => format!("{told} {counted}; not visible: {}", unknown.join(", ")),
        }
    })
}

fn item(text: &[u8]) -> oubliette::Result<Inclusion> {
    let read = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text));
    let line: ItemLine = read.map_err(|why| {
        let place = why.path().to_string();
        let (field, bound) = match place.as_str() {
            "memory" | "memory_id" => (place.as_str(), "must be a text: an id or a key"),
            "tokens" => ("tokens", "must be a whole number, 0 to 4294967295"),
            "bucket" => ("bucket", "must be persistent, related or recent"),
            _ => ("line", "must be an object {\"memory\": ID|KEY, \"tokens\": N, \"bucket\"?: BUCKET}"),
        };
        let line = serde_json::from_slice::<Value>(text).ok();
        let value = line.as_ref().and_then(|line| line.get(field)).map(plain);
        Error::invalid(field, bound, value.unwrap_or_else(|| String::from_utf8_lossy(text).into_owned()))
    })?;
    let item = Inclusion::new(line.memory_id, line.tokens);
    Ok(match line.bucket {
        Some(bucket) => item.bucket(bucket.parse()?),
        None => item,
    })
}
