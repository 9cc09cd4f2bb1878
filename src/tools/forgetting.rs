//! The tools that forget. What they would do is told first.

use serde_json::{Value, json};

use crate::engine::Forget;
use crate::error::Result;
use crate::model::{Filter, Scope};
use crate::tools::arguments::arguments;
use crate::tools::host::{Caller, Host};
use crate::tools::reading::{all, name, told};
use crate::tools::shape::{Member, Shape, at_least, list, text};

fn dry_run() -> Member {
    Shape::Flag.or(true).about("true tells what would go; false forgets it for good.")
}

arguments! {
    /// The arguments of `forget_memory`.
    ForgetArguments {
        id: String = name().required().about("The id of the memory, or its key.");
        dry_run: Option<bool> = dry_run();
    }
}

/// `forget_memory`.
pub(super) fn one(host: &Host, args: ForgetArguments, _: &dyn Caller) -> Result<Value> {
    forget(host, Forget::names([args.id]), args.dry_run)
}

arguments! {
    /// The arguments of `forget_memories`.
    ForgetAllArguments {
        ids: Option<Vec<String>> = list(name(), 1, 500).optional().about("Ids or keys.");
        tag: Option<String> = text(1, 128).optional().about("Every write with this tag.");
        filter: Option<Value> = Shape::Object.optional()
            .about("Every memory that matches, as {\"metadata.user\":\"ann\"}; it must have a condition.");
        dry_run: Option<bool> = dry_run();
    }
    one of ids tag filter;
}

/// `forget_memories`.
pub(super) fn many(host: &Host, args: ForgetAllArguments, _: &dyn Caller) -> Result<Value> {
    let what = match (args.ids, args.tag, args.filter) {
        (Some(ids), ..) => Forget::names(ids),
        (None, Some(tag), _) => Forget::tag(tag),
        (None, None, filter) => {
            Forget::filter(Filter::from_json(&filter.unwrap_or_default())?, Scope::Shared)
        }
    };
    forget(host, what, args.dry_run)
}

fn forget(host: &Host, what: Forget, dry_run: Option<bool>) -> Result<Value> {
    if dry_run.unwrap_or(true) {
        let plan = host.namespace.forget_plan(what)?;
        let sample =
            plan.sample.iter().map(|one| json!({ "id": one.id, "state": one.state, "keys": one.keys }));
        return Ok(json!({
            "dry_run": true, "memories": plan.memories(), "missing": plan.answer.missing,
            "sample": sample.collect::<Vec<_>>(),
        }));
    }
    let done = host.namespace.forget(what)?;
    Ok(json!({
        "dry_run": false, "memories": done.forgotten, "missing": done.missing, "kept_for_others": done.detached,
        "derived": done.derived,
    }))
}

/// What a tool answers that forgets.
pub(super) fn answer() -> Shape {
    let doomed = Shape::Open(vec![
        told().required().named("id"),
        told().required().named("state"),
        all(told()).required().named("keys"),
    ]);
    Shape::Open(vec![
        Shape::Flag.required().named("dry_run"),
        at_least(0).required().about("Memories that go, or would.").named("memories"),
        at_least(0).required().about("Names that named nothing.").named("missing"),
        all(doomed).optional().named("sample"),
        at_least(0)
            .optional()
            .about("Keys that went while another write still holds the text.")
            .named("kept_for_others"),
        all(told()).optional().about("Summaries that may still tell of it.").named("derived"),
    ])
}
