//! `tool`: answers the calls of a language model, a line each.

use std::io::BufReader;

use oubliette::Error;
use oubliette::exchange::LineReader;
use oubliette::memory::Actor;
use oubliette::tools::{ToolError, Toolbox};
use serde_json::json;

use crate::arguments::{ToolOptions, WriterOptions};
use crate::gc;
use crate::output::{self, Done, Failure};
use crate::place::{Access, Place};

/// `tool`.
pub(crate) fn run(options: &ToolOptions, place: &Place) -> Done {
    let database = place.open_with(Access::Write, |builder| builder.actor(Actor::Tool))?;
    let tools = toolbox(&options.writer, database.namespace(place.namespace()?)?)?;
    if options.schemas {
        let schemas = json!({ "envelope": tools.envelope_schema(), "tools": tools.schemas() });
        return output::line(&schemas.to_string());
    }
    let mut lines = LineReader::new(BufReader::new(std::io::stdin()), "standard input");
    loop {
        let answer = match lines.next_line() {
            Ok(None) => break,
            Ok(Some((_, line))) => tools.answer(line),
            // The line is skipped, and the caller hears why.
            Err(why @ Error::Line { .. }) => ToolError::from(why).to_json().to_string(),
            Err(other) => return Err(other.into()),
        };
        output::line(&answer)?;
    }
    database.close()?;
    Ok(())
}

/// The tools of a namespace, with whoever was asked to write summaries.
pub(crate) fn toolbox(
    options: &WriterOptions,
    namespace: oubliette::Namespace,
) -> std::result::Result<Toolbox, Failure> {
    let summarizer = options.summarizer.as_deref();
    let summarizer = summarizer.map(|name| gc::summarizer(&namespace, name, &options.timeout)).transpose()?;
    let tools = Toolbox::new(namespace);
    Ok(match summarizer {
        Some(summarizer) => tools.summarizer(summarizer),
        None => tools,
    })
}
