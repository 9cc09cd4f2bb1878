//! The chapter on operational reports: 1,403 real ones, of which most say the same but for their figures.

use oubliette::maintain::{MaintainOptions, Pass, ProfileCollapseReport};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Database, Draft, Filter, Kind, MemoryId, Namespace, PageRequest, Result, Scope, WriteOptions,
};
use serde_json::{Value, json};

use crate::demo::data;

/// Whose partition they lie in.
const AGENT: &str = "patrol";
/// Words of these reports beside the built-in ones.
const KEYWORDS: [&str; 4] = ["patrol", "patrols", "cycle", "cycles"];
/// Groups that the page shows.
const SAMPLES: u32 = 8;
/// Pairs that a guard kept apart, and reports that stay alone, on the page.
const SHOWN: usize = 4;

/// Writes them, collapses them, takes that back and does it again.
pub(super) fn tell(database: &Database, namespace: &Namespace) -> Result<Vec<Value>> {
    let mut policy = Policy::default();
    policy.collapse.keywords.extend(KEYWORDS.map(str::to_owned));
    database.set_policy(&policy.to_toml()?, Syntax::Toml)?;
    let drafts = data::reports()?.into_iter().map(|draft| draft.kind(Kind::Profile).agent(AGENT));
    let drafts: Vec<Draft> = drafts.collect();
    let written = namespace.add_all(drafts.clone(), &WriteOptions::default())?.len();
    let options = MaintainOptions {
        fuzzy: Some(true),
        max_samples: Some(10_000),
        // All of these are reports: that most of them go is what is wanted.
        destroy_max: Some(written as u64),
        ..MaintainOptions::live().passes([Pass::Collapse])
    };
    let dry = MaintainOptions { dry_run: true, ..options.clone() };
    let planned = namespace.maintain_with(&dry)?.passes.swap_remove(0);
    let done = namespace.maintain_with(&options)?;
    let run = done.run;
    let undone = run.map(|run| namespace.undo(run)).transpose()?.unwrap_or_default();
    let again = namespace.maintain_with(&options)?.passes.swap_remove(0);
    let mut told: ProfileCollapseReport = planned.report.get().cloned().unwrap_or_default();
    let text = |id: MemoryId| text_of(namespace, id);
    let apart: Vec<Value> = told
        .hints
        .iter()
        .take(SHOWN)
        .map(|hint| Ok(json!({ "text": text(hint.id)?, "near": text(hint.near)?, "guard": hint.guard })))
        .collect::<Result<_>>()?;
    told.samples.sort_by_key(|sample| std::cmp::Reverse(sample.group_size));
    told.samples.truncate(SAMPLES as usize);
    let alone = alone(namespace)?;
    Ok(vec![
        json!({
            "step": "collapse",
            "reports": written,
            "operational": told.operational_profiles,
            "signatures": told.unique_signatures,
            "groups": told.duplicate_groups,
            "planned": planned.planned,
            "removed": done.passes.iter().map(|pass| pass.tombstoned).sum::<u64>(),
            "kept_apart": told.kept_apart,
            "left": alone.0,
            "samples": told.samples,
            "guarded": apart,
            "alone": alone.1,
        }),
        json!({ "step": "undo", "restored": undone.restored, "lost": undone.lost.len() }),
        json!({ "step": "collapse_again", "removed": again.tombstoned }),
    ])
}

fn text_of(namespace: &Namespace, id: MemoryId) -> Result<String> {
    let memory = namespace.get(id)?;
    Ok(memory.map(|memory| memory.text).unwrap_or_default())
}

/// How many reports are left, and some that stand for no other.
fn alone(namespace: &Namespace) -> Result<(usize, Vec<String>)> {
    let request = PageRequest {
        scope: Scope::agent(AGENT)?,
        filter: Some(Filter::parse(r#"{"kind":"profile"}"#)?),
        limit: 10_000,
        ..PageRequest::default()
    };
    let items = namespace.list(&request)?.items;
    let mut single: Vec<_> = items.iter().filter(|memory| memory.holders.len() == 1).collect();
    single.sort_by_key(|memory| (memory.text.len(), memory.id));
    Ok((items.len(), single.iter().take(SHOWN).map(|memory| memory.text.clone()).collect()))
}
