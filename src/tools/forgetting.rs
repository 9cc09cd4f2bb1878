//! The tools that forget. What they would do is told first.

use serde_json::{Value, json};

use crate::engine::{Doomed, Forget};
use crate::error::{Result, sound};
use crate::limits::TAG_BYTES_MAX;
use crate::model::{Filter, Forgotten, Scope};
use crate::recall::Got;
use crate::tools::arguments::arguments;
use crate::tools::host::{Caller, Host};
use crate::tools::reading::{all, name, told, with_beginning};
use crate::tools::shape::{Member, Shape, at_least, bytes, list};

/// Ids and names in an answer.
const IDS_MAX: usize = 100;

/// Versions that stay of which an answer tells the text.
const STAYING_MAX: usize = 10;

fn dry_run() -> Member {
    Shape::Flag.or(true).about("true tells what would go; false forgets it for good.")
}

arguments! {
    /// The arguments of `forget_memory`.
    ForgetArguments {
        id: String = name().required().about("The id of the memory, or its key.");
        with_history: Option<bool> = Shape::Flag.or(false)
            .about(
                "With an id, whether its earlier and later versions go too, and everything that a key of it leads to, be it the memory of another key. With a key its versions always go, and what others have put in their place stays.",
            );
        dry_run: Option<bool> = dry_run();
    }
}

/// `forget_memory`.
pub(super) fn one(host: &Host, args: ForgetArguments, _: &dyn Caller) -> Result<Value> {
    let what = Forget::names([args.id]);
    let what = if args.with_history.unwrap_or_default() { what.with_history() } else { what };
    forget(host, what, args.dry_run)
}

arguments! {
    /// The arguments of `forget_memories`.
    ForgetAllArguments {
        ids: Option<Vec<String>> = list(name(), 1, 500).optional().about("Ids or keys.");
        tag: Option<String> = bytes(TAG_BYTES_MAX).optional().about("Every write with this tag.");
        filter: Option<Value> = Shape::Object.optional()
            .about("Every memory that matches, as {\"metadata.user\":\"ann\"}, also in the parts of agents; it must have a condition.");
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
            // Whoever asks to forget what tells of somebody means all of it, as with a tag.
            Forget::filter(Filter::from_json(&filter.unwrap_or_default())?, Scope::Any)
        }
    };
    forget(host, what, args.dry_run)
}

fn forget(host: &Host, what: Forget, dry_run: Option<bool>) -> Result<Value> {
    if dry_run.unwrap_or(true) {
        let plan = host.namespace.forget_plan(what)?;
        let sample = plan.sample.iter().map(|one| doomed(host, one)).collect::<Result<Vec<Value>>>()?;
        let mut answer = told_of(&plan.answer, true);
        if let Value::Object(members) = &mut answer {
            members.insert("sample".to_owned(), json!(sample));
        }
        return with_staying(host, answer, &plan.answer);
    }
    let done = host.namespace.forget(what)?;
    let mut answer = told_of(&done, false);
    if let Value::Object(members) = &mut answer {
        members.insert("ids".to_owned(), json!(done.tombstones.iter().take(IDS_MAX).collect::<Vec<_>>()));
    }
    with_staying(host, answer, &done)
}

/// What goes, or would, and what stays, counted the same way before and after. No member of the answer is left out, and of a list
/// of ids that is cut it says how many more there are.
fn told_of(done: &Forgotten, dry_run: bool) -> Value {
    let Forgotten {
        forgotten,
        detached,
        went_with,
        missing_names,
        versions_left,
        earlier: _,
        later,
        to_come,
        undecided,
        restored,
        tombstones,
        derived,
    } = done;
    let mut answer = json!({
        "dry_run": dry_run, "memories": forgotten, "missing": done.missing(), "kept_for_others": detached,
        "versions": (tombstones.len() as u64).saturating_sub(*forgotten), "went_with": went_with,
        "missing_names": missing_names.iter().take(IDS_MAX).collect::<Vec<_>>(), "versions_left": versions_left,
        "restored": restored,
    });
    let lists = [
        ("later_versions", later),
        ("versions_to_come", to_come),
        ("undecided", undecided),
        ("derived", derived),
    ];
    for (name, ids) in lists {
        let Value::Object(members) = &mut answer else { continue };
        members.insert(name.to_owned(), json!(ids.iter().take(IDS_MAX).collect::<Vec<_>>()));
        let more = ids.len().saturating_sub(IDS_MAX);
        if more > 0 {
            members.insert(format!("{name}_left_out"), json!(more));
        }
    }
    answer
}

/// Adds the versions that stay where they are, the first ones, each with the beginning of what it says.
fn with_staying(host: &Host, mut answer: Value, done: &Forgotten) -> Result<Value> {
    let ids = [&done.earlier, &done.later, &done.to_come].into_iter().flatten().take(STAYING_MAX);
    // A memory that is too damaged to tell can be forgotten as well.
    let told = ids.map(|id| {
        let found = sound(host.namespace.look_up(*id, false))?.and_then(Got::into_memory);
        Ok(with_beginning(json!({ "id": id }), found))
    });
    let told = told.collect::<Result<Vec<Value>>>()?;
    if let (Value::Object(members), false) = (&mut answer, told.is_empty()) {
        members.insert("staying".to_owned(), told.into());
    }
    Ok(answer)
}

/// A memory that would go, with the beginning of what it says.
fn doomed(host: &Host, one: &Doomed) -> Result<Value> {
    // A memory that is too damaged to tell can be forgotten as well.
    let found = sound(host.namespace.look_up(one.id, false))?.and_then(Got::into_memory);
    Ok(with_beginning(json!({ "id": one.id, "state": one.state, "keys": one.keys }), found))
}

/// What a tool answers that forgets.
pub(super) fn answer() -> Shape {
    let doomed = Shape::Open(vec![
        told().required().named("id"),
        told().required().named("state"),
        all(told()).required().named("keys"),
        told().optional().about("The beginning of what it says.").named("text"),
    ]);
    let staying = Shape::Open(vec![
        told().required().named("id"),
        told().optional().about("The beginning of what it says.").named("text"),
    ]);
    Shape::Open(vec![
        Shape::Flag.required().named("dry_run"),
        at_least(0).required().about("Memories that go, or would.").named("memories"),
        at_least(0)
            .required()
            .about("Other versions of them that go too, and memories to which their keys lead.")
            .named("versions"),
        at_least(0).required().about("Names that named nothing.").named("missing"),
        all(told()).optional().about("The first of these names.").named("missing_names"),
        all(doomed)
            .optional()
            .about("The first of all that would go; one that is live may be the memory of another key.")
            .named("sample"),
        all(staying).optional().about("Earlier and later versions that stay, the first 10.").named("staying"),
        all(told()).optional().about("The ids of what is gone, the first 100.").named("ids"),
        all(told())
            .optional()
            .about("Ids of the texts that took the place of one that goes, and stay, though a key that goes has answered with them: forget them by these.")
            .named("later_versions"),
        all(told())
            .optional()
            .about("Ids of the texts that are to take its place at an instant ahead, and stay.")
            .named("versions_to_come"),
        at_least(0)
            .optional()
            .about("Keys that went while another write still holds the text.")
            .named("kept_for_others"),
        at_least(0)
            .optional()
            .about("Earlier and later versions that are still there: with_history forgets them too, as their ids or their key do.")
            .named("versions_left"),
        all(told())
            .optional()
            .about(
                "Ids of memories that stay because it can't be read whether they were to go: forget them by these.",
            )
            .named("undecided"),
        at_least(0)
            .optional()
            .about("Writes without a key that go too: they were merged into what goes.")
            .named("went_with"),
        at_least(0).optional().about("Memories that are live again.").named("restored"),
        all(told()).optional().about("Summaries that may still tell of it.").named("derived"),
        left_out("later_versions_left_out"),
        left_out("versions_to_come_left_out"),
        left_out("undecided_left_out"),
        left_out("derived_left_out"),
    ])
}

/// How many ids of a list an answer leaves out.
fn left_out(name: &'static str) -> Member {
    at_least(1)
        .optional()
        .about("More ids of this list, which are not told: forget these, and ask again.")
        .named(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::told_of;
    use crate::model::{Forgotten, MemoryId};

    #[test]
    fn ids_that_are_left_out_are_counted() {
        let ids = |count: u8| (0..count).map(|at| MemoryId::from_bytes([at; 16])).collect();
        let done = Forgotten { undecided: ids(150), later: ids(100), ..Forgotten::default() };
        let told = told_of(&done, true);
        assert_eq!(told["undecided"].as_array().unwrap().len(), 100);
        assert_eq!(
            (&told["undecided_left_out"], &told["later_versions_left_out"]),
            (&json!(50), &json!(null))
        );
    }
}
