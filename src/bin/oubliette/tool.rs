//! `tool`: answers the calls of a language model, a line each.

use oubliette::exchange::LineReader;
use oubliette::tools::{ToolError, Toolbox};
use oubliette::{Error, Result};
use serde_json::json;

use crate::arguments::{ToolOptions, WriterOptions};
use crate::caller::Caller;
use crate::gc;
use crate::output::{Done, Output};
use crate::place::{Access, Place};
use crate::share::Extra;
use crate::temporary::TemporaryFolder;

/// `tool`.
pub(crate) fn run(options: &ToolOptions, place: &Place, output: Output<'_>) -> Done {
    if options.schemas {
        return schemas(place, output);
    }
    let database = place.open_with(Access::Create, Extra { is_tool: true, ..Extra::default() })?;
    let tools = toolbox(&options.writer, database.namespace(place.namespace()?)?, place.caller())?;
    let mut lines = LineReader::new(place.caller().lines(), "standard input");
    loop {
        let answer = match lines.next_line() {
            Ok(None) => break,
            Ok(Some((_, line))) => tools.answer(line),
            // The line is skipped, and the caller hears why.
            Err(why @ Error::Line { .. }) => ToolError::from(why).to_json().to_string(),
            Err(other) => return Err(other.into()),
        };
        output.line(&answer)?;
    }
    place.close(database)?;
    Ok(())
}

/// `tool --schemas`. The policy decides which tools there are: that of the file or, where there is no file yet, that which it will
/// have.
fn schemas(place: &Place, output: Output<'_>) -> Done {
    let folder;
    let database = match place.open(Access::Read) {
        Err(Error::NotFound { what: "database", .. }) => {
            folder = TemporaryFolder::new()?;
            place.builder().open(folder.path().join("empty.oub"))?
        }
        opened => opened?,
    };
    let tools = Toolbox::new(database.namespace(place.namespace()?)?);
    output.line(&json!({ "envelope": tools.envelope_schema(), "tools": tools.schemas() }).to_string())
}

/// The tools of a namespace, with whoever was asked to write summaries.
pub(crate) fn toolbox(
    options: &WriterOptions,
    namespace: oubliette::Namespace,
    caller: &Caller,
) -> Result<Toolbox> {
    gc::timeout(&options.timeout)?;
    let summarizer = options.summarizer.as_deref();
    let summarizer =
        summarizer.map(|name| gc::summarizer(&namespace, name, &options.timeout, caller)).transpose()?;
    let tools = Toolbox::new(namespace);
    Ok(match summarizer {
        Some(summarizer) => tools.summarizer(summarizer),
        None => tools,
    })
}
