//! `goal`: what the agents of a namespace are after.

use oubliette::memory::{Goal, GoalDraft};
use serde_json::{Value, json};

use crate::arguments::{GoalCommand, GoalSetOptions};
use crate::fields;
use crate::output::{Done, Output, short};
use crate::place::{Access, Place};
use crate::story;

/// `goal`.
pub(crate) fn run(command: &GoalCommand, place: &Place, output: Output<'_>) -> Done {
    match command {
        GoalCommand::Set(options) => set(options, place, output),
        GoalCommand::List => list(place, output),
        GoalCommand::Drop { id } => {
            let goal = place.open(Access::Write)?.namespace(place.namespace()?)?.drop_goal(id.parse()?)?;
            output.done(&document(&goal), |_| format!("Dropped the goal: {}", short(&goal.text, 60)))
        }
    }
}

fn set(options: &GoalSetOptions, place: &Place, output: Output<'_>) -> Done {
    let mut draft = GoalDraft::new(&options.text).weight(options.weight);
    draft.agent.clone_from(&options.agent);
    draft.vector = options.vector_file.as_deref().map(fields::first_row).transpose()?;
    // Refused before a database is made for it.
    draft.check()?;
    let namespace = place.namespace()?;
    let database = place.open(Access::Create)?;
    let goal = database.namespace(&namespace)?.set_goal(draft)?;
    place.close(database)?;
    output.done(&document(&goal), |_| {
        let of =
            goal.agent.as_deref().map_or_else(|| "all agents".to_owned(), |agent| format!("agent {agent}"));
        let waits =
            if goal.vector.is_none() { "; it waits for a vector, which `maintain embed` gives" } else { "" };
        format!("Set a goal of {of} in {namespace}{waits}")
    })
}

fn list(place: &Place, output: Output<'_>) -> Done {
    let goals = place.open(Access::Read)?.namespace(place.namespace()?)?.goals()?;
    if output.json {
        let goals: Vec<Value> = goals.iter().map(document).collect();
        return output.document(&json!({ "goals": goals }));
    }
    let now = place.present();
    let row = |goal: &Goal| {
        vec![
            goal.id.to_string(),
            goal.agent.clone().unwrap_or_default(),
            goal.weight.to_string(),
            story::when(goal.set_at, &now),
            short(&goal.text, 60),
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
