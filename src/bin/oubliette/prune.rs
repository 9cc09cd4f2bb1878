//! `maintain prune`: what it is asked for, and what several policies would do.

use oubliette::maintain::{Pass, PruneSimulation, PruneTarget};
use oubliette::{Error, Query, Result};
use serde_json::{Value, json};

use crate::arguments::{MaintainOptions, PruneOptions};
use crate::output::{Done, Output};
use crate::place::{Access, Place, policy_text};
use crate::search::Queries;
use crate::told;

/// The target that the options name.
pub(crate) fn target(options: &PruneOptions) -> Result<Option<PruneTarget>> {
    let Some((kind, count)) = options.kind.as_ref().zip(options.target) else { return Ok(None) };
    Ok(Some(PruneTarget { agent: options.agent.clone(), ..PruneTarget::new(kind.parse()?, count) }))
}

/// `maintain prune --dry-run --compare`.
pub(crate) fn compare(options: &MaintainOptions, place: &Place, output: Output<'_>) -> Done {
    if options.passes.as_slice() != [Pass::Prune] {
        return Err(
            Error::invalid("--compare", "must stand beside the pass prune alone", "other passes").into()
        );
    }
    let namespace = place.namespace()?;
    let database = place.open(Access::Read)?;
    place.check_namespace(&database.namespaces()?)?;
    let (stored, _) = database.policy();
    let (mut names, mut policies) = (Vec::new(), Vec::new());
    for file in &options.prune.compare {
        let name = place.caller().shown(file).display().to_string();
        policies.push(match name.strip_prefix("preset:") {
            Some(preset) => stored.with_preset(preset.parse()?)?,
            None => {
                let (text, syntax) = policy_text(file)?;
                stored.overlaid(&text, syntax)?
            }
        });
        names.push(name);
    }
    let mut probes = Vec::new();
    if let Some(queries) = &options.prune.queries {
        let defaults = (namespace.clone(), Query { k: options.prune.k, ..Query::default() });
        let mut lines = Queries::open(queries, options.prune.vectors.as_deref(), place.caller())?;
        while let Some((number, of, query)) = lines.next(&defaults)? {
            if of != namespace {
                let why = format!("must be {namespace}, which is pruned");
                return Err(Error::invalid("namespace", why, of).at_line(number).into());
            }
            probes.push(query);
        }
    }
    let all = database.namespace(&namespace)?.compare_pruning(&policies, &probes, options.prune.step)?;
    if output.json {
        let named = |(name, simulated): (&String, &PruneSimulation)| {
            let mut document = json!(simulated);
            if let Value::Object(members) = &mut document {
                members.shift_insert(0, "policy".to_owned(), json!(name));
            }
            document
        };
        let all: Vec<Value> = names.iter().zip(&all).map(named).collect();
        return output.document(&json!({ "policies": all }));
    }
    let row = |(name, of): (&String, &PruneSimulation)| {
        let recall = of.recall.map_or_else(String::new, |recall| format!("{recall:.3}"));
        let counts = [of.rows, of.by_age, of.by_score].map(|count| count.to_string());
        let [rows, by_age, by_score] = counts;
        vec![name.clone(), rows, told::size(of.bytes), by_age, by_score, of.probes.to_string(), recall]
    };
    let names_of = ["policy", "memories", "text", "by age", "by score", "queries", "recall"];
    output.table(&names_of, names.iter().zip(&all).map(row))
}
