//! `namespace move` and `namespace split`.

use oubliette::maintain::{RenamespaceOptions, RenamespaceReport};
use oubliette::{Error, Result};
use serde_json::json;

use crate::arguments::{MoveOptions, SplitOptions};
use crate::output::{Done, Output};
use crate::place::{Access, Place};
use crate::told;

/// `namespace move`.
pub(crate) fn move_all(options: &MoveOptions, place: &Place, output: Output<'_>) -> Done {
    let how = RenamespaceOptions { dry_run: options.how.dry_run, drop_keys: options.how.drop_keys };
    let database = if how.dry_run { place.open_to_rehearse() } else { place.open(Access::Write) }?;
    let done = database.move_namespace(options.from.as_str(), options.to.as_str(), &how);
    place.close(database)?;
    show(&options.from, done, place, output)
}

/// `namespace split`.
pub(crate) fn split(options: &SplitOptions, place: &Place, output: Output<'_>) -> Done {
    let how = RenamespaceOptions { dry_run: options.how.dry_run, drop_keys: options.how.drop_keys };
    let keys: Vec<&str> = options.by.iter().map(String::as_str).collect();
    if keys.contains(&"") {
        return Err(Error::invalid("--by", "must name keys of the metadata", options.by.join(",")).into());
    }
    let database = if how.dry_run { place.open_to_rehearse() } else { place.open(Access::Write) }?;
    let done = database.split_namespace(options.from.as_str(), &keys, &how);
    place.close(database)?;
    show(&options.from, done, place, output)
}

/// The error, which says by which option the memories that come lose their keys.
fn with_option(error: Error) -> Error {
    match error {
        Error::Conflict { what, why } if what.starts_with("keys ") => {
            Error::Conflict { what, why: format!("{why} (--drop-keys)") }
        }
        error => error,
    }
}

fn show(from: &str, done: Result<RenamespaceReport>, place: &Place, output: Output<'_>) -> Done {
    let report = done.map_err(with_option)?;
    place.done(output, json!(report), |_| {
        let moved = if report.dry_run { "Would move" } else { "Moved" };
        let mut told = format!("{moved} {} out of {from}", told::of(report.moved, "memory", "memories"));
        for (target, count) in &report.targets {
            told.push_str(&format!("\n  {count} to {target}"));
        }
        let stayed = "stayed: the metadata names no other namespace";
        let (one, many) =
            ("reference leads to another namespace now", "references lead to another namespace now");
        let lost = ("key was lost to a memory that holds it", "keys were lost to memories that hold them");
        let rest = [
            (report.skipped - report.damaged.len() as u64, stayed, stayed),
            (report.cross_namespace_edges, one, many),
            (report.dropped_keys.len() as u64, lost.0, lost.1),
        ];
        for (count, one, many) in rest.into_iter().filter(|(count, ..)| *count > 0) {
            told.push_str(&format!("\n  {}", told::of(count, one, many)));
        }
        if !report.damaged.is_empty() {
            let count =
                told::of(report.damaged.len() as u64, "is damaged and stayed", "are damaged and stayed");
            told.push_str(&format!("\n  {count}{}", told::names(Some(&json!(report.damaged)))));
        }
        told
    })
}
