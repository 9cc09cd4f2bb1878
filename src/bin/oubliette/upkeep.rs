//! `maintain` and `reindex`: the indexes, kept up and built anew.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use oubliette::exchange::Target;
use oubliette::{Database, Error, Pass, PassReport, Result, Span};
use serde_json::{Value, json};

use crate::answers;
use crate::arguments::MaintainOptions;
use crate::output::{self, Done, Output};
use crate::place::{Access, Place, named};
use crate::progress::Progress;

/// Most threads that can be asked for.
const THREADS_MAX: usize = 1_024;

/// `maintain`: of the namespace that was named, or of the whole file.
pub(crate) fn maintain(options: &MaintainOptions, place: &Place, output: Output) -> Done {
    let asked = library_options(options, place)?;
    let passes = if options.passes.is_empty() { Pass::ALL.to_vec() } else { options.passes.clone() };
    let file = options.report.as_deref().map(Target::create).transpose()?;
    let database = place.open(Access::Write)?;
    let plan = oubliette::MaintainOptions { dry_run: true, ..asked.clone() };
    let planned = database.maintain(&passes, &plan)?.passes.iter().map(|pass| pass.planned).sum();
    let progress = Progress::new(output, Some(planned));
    let before = linked(&database, &asked).unwrap_or_default();
    let look = || {
        let now = linked(&database, &asked)?;
        Some((now.0.saturating_sub(before.0) + before.1.saturating_sub(now.1)).min(planned))
    };
    let report = progress.during(look, || database.maintain(&passes, &asked))?;
    drop(progress);
    database.close()?;
    let document = answers::maintenance(&report);
    if let Some(file) = file {
        write(file, options.report.as_deref(), &document)?;
    }
    if output.json {
        return output.document(&document);
    }
    show(&report.passes)?;
    if report.passes.iter().any(|pass| pass.skipped > 0) {
        output.remark(
            "partitions were left out: they are damaged, which check tells, or larger than the memory budget",
        );
    }
    Ok(())
}

fn library_options(options: &MaintainOptions, place: &Place) -> Result<oubliette::MaintainOptions> {
    if let Some(threads) = options.threads.filter(|threads| !(1..=THREADS_MAX).contains(threads)) {
        return Err(Error::invalid("--threads", format!("must be 1 to {THREADS_MAX}"), threads));
    }
    let span = |text: &String| -> Result<Duration> {
        let span: Span = named("--budget", text.parse())?;
        Ok(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or_default()))
    };
    Ok(oubliette::MaintainOptions {
        dry_run: options.dry_run,
        budget: options.budget.as_ref().map(span).transpose()?,
        max_rows: options.max_rows,
        threads: options.threads,
        namespace: place.named_namespace()?,
    })
}

/// Nodes that are alive, and nodes that are dead.
fn linked(database: &Database, options: &oubliette::MaintainOptions) -> Option<(u64, u64)> {
    let vectors = database.stats(options.namespace.as_ref()).ok()?.vectors;
    Some((vectors.in_graph, vectors.dead))
}

fn write(mut file: Target, path: Option<&Path>, document: &Value) -> Result<()> {
    writeln!(file, "{document}").map_err(|source| Error::Io {
        action: "write",
        path: path.unwrap_or(Path::new("")).to_owned(),
        source,
    })?;
    file.finish()
}

/// Passes as a table.
fn show(passes: &[PassReport]) -> Done {
    let names = ["pass", "planned", "scanned", "changed", "skipped", "left", "ms", "report"];
    let row = |pass: &PassReport| {
        let counts = [pass.planned, pass.scanned, pass.changed, pass.skipped, pass.left, pass.ms];
        let details = pass.report.iter().map(|(name, count)| format!("{name} {count}"));
        let mut cells = vec![pass.pass.as_str().to_owned()];
        cells.extend(counts.iter().map(ToString::to_string));
        cells.push(details.collect::<Vec<_>>().join(", "));
        cells
    };
    output::table(&names, passes.iter().map(row))
}

/// `reindex`: of the namespace that was named, or of the whole file.
pub(crate) fn reindex(place: &Place, output: Output) -> Done {
    let namespace = place.named_namespace()?;
    let database = place.open(Access::Write)?;
    let bytes_before = database.stats(None)?.bytes.file;
    let progress = Progress::new(output, None);
    let look = || Some(database.stats(namespace.as_ref()).ok()?.vectors.in_graph);
    let vectors = progress.during(look, || database.reindex(namespace.as_ref()))?;
    drop(progress);
    let bytes_after = database.stats(None)?.bytes.file;
    database.close()?;
    output.document(&json!({
        "vectors": vectors, "bytes_before": bytes_before, "bytes_after": bytes_after,
    }))
}
