//! `goal`: what the agents of a namespace are after.

use oubliette::limits::GOAL_BYTES_MAX;
use oubliette::memory::{Goal, GoalDraft};
use serde_json::{Value, json};

use crate::arguments::{GoalCommand, GoalSetOptions};
use crate::fields;
use crate::output::{Done, Output, short};
use crate::place::{Access, Place};
use crate::story;
use crate::told;
use crate::typed::{self, Slot};

/// The text of a goal.
const GOAL: Slot = Slot { after: "goal set", name: "goal", most: GOAL_BYTES_MAX };

/// Characters of a goal that a table shows; `-v` shows the whole goal.
const GOAL_CHARS: usize = 60;

/// `goal`.
pub(crate) fn run(command: &GoalCommand, place: &Place, output: Output<'_>) -> Done {
    match command {
        GoalCommand::Set(options) => set(options, place, output),
        GoalCommand::List => list(place, output),
        GoalCommand::Drop { id } => {
            let id = id.parse()?;
            let database = place.open(Access::Write)?;
            let dropped = database.namespace(place.namespace()?)?.drop_goal(id)?;
            place.close(database)?;
            match dropped {
                Some(goal) => done(&goal, place, output, || {
                    format!("Dropped the goal: {}", short(&goal.text, GOAL_CHARS))
                }),
                None => place.done(output, json!({ "goal_id": id, "damaged": true }), |_| {
                    format!("Dropped goal {id}, which was damaged")
                }),
            }
        }
    }
}

fn set(options: &GoalSetOptions, place: &Place, output: Output<'_>) -> Done {
    let text = typed::text(GOAL, &options.text, output.caller)?;
    let mut draft = GoalDraft::new(text).weight(options.weight);
    draft.agent.clone_from(&options.agent);
    draft.vector = options.vector_file.as_deref().map(fields::first_row).transpose()?;
    // Refused before a database is made for it.
    draft.check()?;
    let namespace = place.namespace()?;
    let database = place.open(Access::Create)?;
    let goal = database.namespace(&namespace)?.set_goal(draft)?;
    place.close(database)?;
    done(&goal, place, output, || {
        let of =
            goal.agent.as_deref().map_or_else(|| "all agents".to_owned(), |agent| format!("agent {agent}"));
        let waits =
            if goal.vector.is_none() { "; it waits for a vector, which `maintain embed` gives" } else { "" };
        format!("Set a goal of {of} in {namespace}{waits}; `goal drop {}` ends it", goal.id)
    })
}

/// What was done with a goal; with `-v` also the goal, its instant as a local date.
fn done(goal: &Goal, place: &Place, output: Output<'_>, told: impl FnOnce() -> String) -> Done {
    let shown = document(goal);
    let shown = if output.json { shown } else { story::dated(shown, &place.present()) };
    place.done(output, shown, |_| told())
}

fn list(place: &Place, output: Output<'_>) -> Done {
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let namespace = database.namespace(place.namespace()?)?;
    let (goals, damaged) = (namespace.goals()?, namespace.damaged_goals()?);
    if output.json {
        let goals: Vec<Value> = goals.iter().map(document).collect();
        return output.document(&match damaged.is_empty() {
            true => json!({ "goals": goals }),
            false => json!({ "goals": goals, "damaged": damaged }),
        });
    }
    if let Some(first) = damaged.first() {
        let left_out = told::of(damaged.len() as u64, "goal is", "goals are");
        output.remark(&format!("{left_out} damaged and left out; `goal drop {first}` ends the first"));
    }
    let now = place.present();
    let row = |goal: &Goal| {
        vec![
            goal.id.to_string(),
            goal.agent.clone().unwrap_or_default(),
            goal.weight.to_string(),
            story::when(goal.set_at, &now),
            if output.verbose { goal.text.clone() } else { short(&goal.text, GOAL_CHARS) },
        ]
    };
    let rows = goals.iter().map(row).collect();
    output.list(&["id", "agent", "weight", "set at", "goal"], rows, "No goals; `goal set TEXT` sets one")
}

/// A goal in JSON: its vector only as whether it has one.
fn document(goal: &Goal) -> Value {
    json!({
        "goal_id": goal.id, "agent": goal.agent, "text": goal.text, "weight": goal.weight,
        "set_at": goal.set_at, "pending": goal.vector.is_none(),
    })
}
