//! Commands that forget.

use std::path::Path;

use oubliette::exchange::LineReader;
use oubliette::{Error, Filter, Forget, ForgetPlan, Result, Scope};
use serde_json::{Value, json};

use crate::answers;
use crate::arguments::ForgetOptions;
use crate::output::{Done, Output};
use crate::place::{Access, Place, named};
use crate::write;

/// `forget`.
pub(crate) fn run(options: &ForgetOptions, place: &Place, output: Output) -> Done {
    let (namespace, scope) = (place.namespace()?, options.scope.scope()?);
    let what = match (&options.tag, &options.filter) {
        (Some(tag), _) => {
            let scope = if options.scope.agent.is_none() { Scope::Any } else { scope };
            Forget::Tag { tag: tag.clone(), scope, keep_pinned: options.keep_pinned }
        }
        (None, Some(filter)) => {
            let (visible_only, all) = (options.visible_only, options.all);
            Forget::Filter { filter: Filter::parse(filter)?, scope, visible_only, all }
        }
        (None, None) => {
            let names = match &options.keys {
                Some(file) => names_of(file)?,
                None => options.names.clone(),
            };
            let (keep_history, with_history) = (options.keep_history, options.with_history);
            Forget::Names { names, keep_history, also_merged: true, with_history }
        }
    };
    let database = place.open(Access::Write)?;
    if options.dry_run {
        let plan = database.forget_plan(&namespace, what)?;
        database.close()?;
        output.remark(&told(&plan));
        return output.document(&answers::forget_plan(&plan));
    }
    let done = database.forget(&namespace, what)?;
    let mut document = answers::forgotten(&done);
    if options.erase {
        let report = database.compact()?;
        if let (Value::Object(members), Value::Object(more)) = (&mut document, answers::compaction(&report)) {
            members.extend(more);
        }
    }
    database.close()?;
    output.document(&document)
}

/// A plan in a sentence.
fn told(plan: &ForgetPlan) -> String {
    let all = plan.memories();
    let memories = if all == 1 { "memory" } else { "memories" };
    format!(
        "would forget {all} {memories} ({} live, {} superseded, {} expired, {} in limbo); nothing is forgotten yet",
        plan.live, plan.superseded, plan.expired, plan.limbo
    )
}

/// Ids or keys, one a line.
fn names_of(path: &Path) -> Result<Vec<String>> {
    let mut lines = LineReader::new(write::read(path)?, path);
    let mut names = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let name = std::str::from_utf8(line);
        let name = name.map_err(|why| {
            Error::invalid("name", "must be UTF-8", format!("byte {}", why.valid_up_to())).at_line(number)
        })?;
        names.push(name.to_owned());
    }
    Ok(names)
}

/// `undo`.
pub(crate) fn undo(run: &str, place: &Place, output: Output) -> Done {
    let (namespace, run) = (place.namespace()?, named("run", run.parse())?);
    let database = place.open(Access::Write)?;
    let undone = database.undo(&namespace, run)?;
    database.close()?;
    output.document(&json!({
        "restored": undone.restored,
        "removed": undone.removed,
        "detached": undone.detached,
        "lost": undone.lost,
    }))
}

/// `namespace drop`.
pub(crate) fn drop(name: &str, place: &Place, output: Output) -> Done {
    let namespace = name.parse()?;
    let database = place.open(Access::Write)?;
    let dropped = database.drop_namespace(&namespace)?;
    database.close()?;
    output.document(&json!({ "namespace": namespace, "dropped": dropped }))
}
