//! Commands that read memories and what is told of them.

use oubliette::exchange::{journal_json, write_tombstone};
use oubliette::{CheckOptions, Filter, Memory, PageRequest, State};
use serde_json::{Value, json};

use crate::answers;
use crate::arguments::{GetOptions, ListOptions};
use crate::output::{self, Done, Output, plain, short};
use crate::place::{Access, Place};

/// `get`.
pub(crate) fn get(options: &GetOptions, place: &Place, output: Output) -> Done {
    let namespace = place.namespace()?;
    let got = place.open(Access::Read)?.get(&namespace, &options.name, options.vector)?;
    raw(output, &answers::got_text(&namespace, &got, options.vector))
}

/// A document that is JSON text already, shown as it is or as a table.
fn raw(output: Output, text: &str) -> Done {
    if output.json {
        return output::line(text);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(document) => output.document(&document),
        Err(_) => output::line(text),
    }
}

/// `list`.
pub(crate) fn list(options: &ListOptions, place: &Place, output: Output) -> Done {
    let namespace = place.namespace()?;
    if options.state == State::Tombstoned.as_str() {
        return tombstones(options, place, output);
    }
    let any_state = options.state == "any";
    let request = PageRequest {
        scope: options.scope.scope()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        state: if any_state { State::Live } else { options.state.parse()? },
        any_state,
        limit: options.limit,
        cursor: options.cursor.clone(),
    };
    let page = place.open(Access::Read)?.list(&namespace, &request)?;
    if output.json {
        let items: Vec<String> =
            page.items.iter().map(|memory| answers::memory_text(memory, false)).collect();
        let next = json!(page.next);
        return output::line(&format!("{{\"items\":[{}],\"next\":{next}}}", items.join(",")));
    }
    let row = |memory: &Memory| {
        vec![
            memory.id.to_string(),
            memory.keys.join(" "),
            memory.kind().to_string(),
            memory.vitals.tier.to_string(),
            memory.state.to_string(),
            short(&memory.text, 60),
        ]
    };
    output::table(&["id", "keys", "kind", "tier", "state", "text"], page.items.iter().map(row))?;
    page.next.map_or(Ok(()), |next| output::line(&format!("more: --cursor {next}")))
}

fn tombstones(options: &ListOptions, place: &Place, output: Output) -> Done {
    let namespace = place.namespace()?;
    let page = place.open(Access::Read)?.tombstones(&namespace, options.cursor.as_deref(), options.limit)?;
    if output.json {
        let mut items = Vec::new();
        for tombstone in &page.items {
            let mut line = Vec::new();
            write_tombstone(&namespace, tombstone, &mut line);
            items.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        let next = json!(page.next);
        return output::line(&format!("{{\"items\":[{}],\"next\":{next}}}", items.join(",")));
    }
    let rows = page.items.iter().map(|tombstone| {
        vec![tombstone.id.to_string(), tombstone.reason.as_str().to_owned(), tombstone.deleted_at.to_string()]
    });
    output::table(&["id", "reason", "deleted at"], rows)?;
    page.next.map_or(Ok(()), |next| output::line(&format!("more: --cursor {next}")))
}

/// `history`.
pub(crate) fn history(name: &str, place: &Place, output: Output) -> Done {
    let history = place.open(Access::Read)?.history(&place.namespace()?, name)?;
    let versions: Vec<Value> = history.versions.iter().map(answers::version).collect();
    let events: Vec<Value> = history.events.iter().map(journal_json).collect();
    if output.json {
        return output.document(&json!({ "versions": versions, "events": events }));
    }
    let names = ["recorded_at", "id", "state", "superseded_by", "mode"];
    output::table(&names, versions.iter().map(|version| cells(version, &names)))?;
    let names = ["at", "op", "subject", "rule", "actor"];
    output::table(&names, events.iter().map(|event| cells(event, &names)))
}

fn cells(document: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| document.get(name).map(plain).unwrap_or_default()).collect()
}

/// `explain`.
pub(crate) fn explain(name: &str, place: &Place, output: Output) -> Done {
    let story = place.open(Access::Read)?.explain(&place.namespace()?, name)?;
    output.document(&answers::explanation(&story))
}

/// `stats`: of the namespace that was named, or of the whole file.
pub(crate) fn stats(deep: bool, place: &Place, output: Output) -> Done {
    let namespace = place.named_namespace()?;
    let database = place.open_best()?;
    // It loads every index, and so the warnings of all of them are among those of the other statistics.
    let indexes = deep.then(|| database.index_stats(namespace.as_ref())).transpose()?;
    let stats = database.stats(namespace.as_ref())?;
    let mut document = serde_json::to_value(&stats).unwrap_or_default();
    if let (Some(indexes), Value::Object(members)) = (indexes, &mut document) {
        let report = database.check(&CheckOptions::default())?;
        let recount =
            json!({ "rows": report.checked, "findings": report.findings.len() as u64 + report.more });
        members.insert("recount".to_owned(), recount);
        members.insert("indexes".to_owned(), serde_json::to_value(indexes).unwrap_or_default());
    }
    output.document(&document)
}
