//! Commands about the whole file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, ErrorKind};
use std::path::Path;

use clap::CommandFactory;
use oubliette::embed::Embedder;
use oubliette::exchange::{
    Export, ExportReport, Kept, LineReader, NpyWriter, ParsedLine, Target, VectorsTo, parse_line,
};
use oubliette::policy::{Policy, Stage};
use oubliette::report::{CheckOptions, CheckReport, CompactReport, ErasedProbe, Finding};
use oubliette::{Database, Error, Memory, NamespaceName, Result, Snapshot};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{self, Arguments, ExportOptions, FsckOptions, InitOptions};
use crate::caller::Caller;
use crate::embedder;
use crate::output::{self, Done, Failure, Output, failure_of_pass, printable};
use crate::place::{Access, Place, by_option, policy_text};
use crate::share::Extra;
use crate::upkeep::undoable;
use crate::{read, temporary, told, upkeep, write};

/// How often a long read begins before its file is taken to be replaced for ever.
const READS_MAX: u32 = 16;
/// What is said of a damaged row that a copy does not have.
pub(crate) const LEFT_OUT: &str = "damaged, left out";

/// Namespaces that are named to people of those that an export has not.
const NAMED: usize = 5;
/// Rows that are named to people of what is damaged.
const DAMAGED_SHOWN: usize = 20;

/// `init`.
pub(crate) fn init(options: &InitOptions, place: &Place, output: Output<'_>) -> Done {
    let embedder = asked_embedder(place)?;
    if let (Some(dim), Some(embedder)) = (options.dim, &embedder)
        && dim != embedder.dimensions()
    {
        let why = format!("must be {}, the dimensions of {}", embedder.dimensions(), embedder.id());
        return Err(Error::invalid("--dim", why, dim).into());
    }
    let dimensions = options.dim.filter(|_| embedder.is_none());
    let database = place.open_with(Access::Create, Extra { dimensions, ..Extra::default() });
    let database = database.map_err(by_option("dimensions", "--dim"))?;
    // One that was asked for is that of the file from now on.
    if let Some(embedder) = embedder {
        database.fix_embedder(embedder)?;
    }
    let space = database.embedding_space()?;
    let own = space.as_ref().map(|space| space.name.as_str()).filter(|name| *name != "caller");
    let document = json!({
        "path": database.path().display().to_string(),
        "format": database.format(),
        "dim": database.dimensions()?,
        "embedder": own,
    });
    let mut told = format!("{} is a database", database.path().display());
    if let (None, Some(dim)) = (own, database.dimensions()?) {
        told.push_str(&format!(
            " for vectors of {dim} dimensions that you bring; a text without one is found by its words (`reembed \
             EMBEDDER` gives it an embedder)"
        ));
    }
    place.close(database)?;
    place.done(output, document, |_| told)
}

/// The embedder that was named.
fn asked_embedder(place: &Place) -> Result<Option<Box<dyn Embedder>>> {
    place.embedder().map_or(Ok(None), |name| embedder::named(name, place.caller()))
}

/// `namespace list`.
pub(crate) fn namespaces(place: &Place, output: Output<'_>) -> Done {
    let database = place.open_to_count()?;
    let by_namespace = database.stats()?.by_namespace;
    let list = database.namespaces()?.into_iter().map(|name| {
        let live = by_namespace.get(name.as_str()).copied().unwrap_or_default();
        (name, live)
    });
    if output.json {
        let list: Vec<Value> = list.map(|(name, live)| json!({ "namespace": name, "live": live })).collect();
        return output.document(&json!({ "namespaces": list }));
    }
    output.table(&["namespace", "live"], list.map(|(name, live)| vec![name.to_string(), live.to_string()]))
}

/// `check`.
pub(crate) fn check(options: &arguments::CheckOptions, place: &Place, output: Output<'_>) -> Done {
    let erased =
        options.erased.as_deref().map(|path| probes(path, place.caller())).transpose()?.unwrap_or_default();
    let database = place.open(Access::Read)?;
    let asked = options.erased.is_some().then_some(erased.len() as u64);
    let report = database.check(&CheckOptions { deep: options.deep, erased })?;
    if output.json {
        let mut document = json!({
            "ok": report.ok, "findings": report.findings, "more": report.more, "checked": report.checked,
        });
        if let (Some(asked), Value::Object(members)) = (asked, &mut document) {
            members.insert("records".to_owned(), json!(asked));
            members.insert("unproven".to_owned(), json!(report.unproven));
        }
        output.document(&document)?;
    } else {
        tell_check(&report, asked.is_some(), output)?;
        asked.map_or(Ok(()), |asked| tell_erased(asked, &report, output))?;
    }
    if report.ok { Ok(()) } else { Err(Failure::Findings) }
}

/// What a check found, as a table. Of erased memories `compact` takes away what is left.
fn tell_check(report: &CheckReport, erased: bool, output: Output<'_>) -> Done {
    if report.ok {
        let rows = told::of(report.checked, "row", "rows");
        return output.line(&format!("{rows} checked, everything is as it must be"));
    }
    let rows = report.findings.iter().map(|finding| {
        vec![finding.code.to_owned(), finding.table.to_owned(), finding.place(), finding.what.clone()]
    });
    output.table(&["finding", "table", "where", "what"], rows)?;
    if erased {
        output.remark("`compact` writes the file again without what is left of forgotten memories");
        return Ok(());
    }
    output.remark(
        "`reindex` makes again what follows from other rows, or `compact` where look-ups fail or a damaged key is out of order, and `reembed` \
         the vectors that are lost; a new `backup` is a whole file of all that can be read",
    );
    Ok(())
}

/// What the bytes of the file say of an earlier export.
fn tell_erased(asked: u64, report: &CheckReport, output: Output<'_>) -> Done {
    let proven = asked.saturating_sub(report.unproven);
    if report.ok && proven > 0 {
        let records = told::of(proven, "record", "records");
        output.line(&format!("No byte of {records} of the export is left in the file"))?;
    }
    if report.unproven > 0 || asked == 0 {
        let records = told::of(report.unproven, "record", "records");
        output.line(&format!(
            "Nothing is proved of {records} of the export: what is still in the database, live, superseded or in limbo, \
             says the same, or the text is too short"
        ))?;
    }
    Ok(())
}

/// `fsck`.
pub(crate) fn fsck(options: &FsckOptions, place: &Place, output: Output<'_>) -> Done {
    let database = place.open(if options.dry_run { Access::Read } else { Access::Write })?;
    let report = database.fsck(options.dry_run)?;
    let run = undoable(&database, None, report.run)?;
    let equal = report.duplicate_groups.iter().map(|group| read::called_in_any(&database, group));
    let equal = equal.collect::<Result<Vec<_>>>()?;
    place.close(database)?;
    let is_ok = report.check.ok && report.failed.is_empty();
    if output.json {
        output.document(&place.dated(json!(report)))?;
    } else {
        let verb = if options.dry_run { "Would remove" } else { "Removed" };
        let expired = told::of(report.expired_purged, "expired memory", "expired memories");
        let (evicted, namespaces) =
            (report.short_term_evicted, told::of(report.namespaces, "namespace", "namespaces"));
        output.line(&format!("{verb} {expired} and {evicted} above the cap, in {namespaces}"))?;
        if let Some(run) = run {
            output.remark(&format!("undo {run} takes this run back, but for ends that a caller had set"));
        }
        for group in &equal {
            output.line(&printable(&format!("Say the same: {}", group.join(", "))))?;
        }
        for failed in &report.failed {
            output.line(&failure_of_pass(failed))?;
        }
        tell_check(&report.check, false, output)?;
    }
    if is_ok { Ok(()) } else { Err(Failure::Findings) }
}

/// What must be left nowhere, by the lines of an export: one record for each line that tells of something.
fn probes(path: &Path, caller: &Caller) -> Result<Vec<ErasedProbe>> {
    let mut lines = LineReader::new(write::read(path, caller)?, path);
    let mut probes = Vec::new();
    while let Some((number, text)) = lines.next_line()? {
        let probe = match parse_line(text, true).map_err(|error| error.at_line(number))? {
            ParsedLine::Memory(memory) => {
                let Memory { text, holders, vector, keys, .. } = *memory;
                let held = holders.into_iter().filter_map(|holder| holder.text);
                ErasedProbe { texts: std::iter::once(text).chain(held).collect(), vector, keys }
            }
            ParsedLine::Draft(line) => {
                let draft = line.draft;
                let keys = draft.key.into_iter().collect();
                ErasedProbe { texts: vec![draft.text], vector: draft.vector, keys }
            }
            ParsedLine::Kept(line) => kept_probe(line.row),
        };
        if probe != ErasedProbe::default() {
            probes.push(probe);
        }
    }
    Ok(probes)
}

/// What must be left nowhere of a row that is no memory. A tombstone, a run and a context tell of no text.
fn kept_probe(row: Kept) -> ErasedProbe {
    match row {
        Kept::Goal(goal) => {
            ErasedProbe { texts: vec![goal.text], vector: goal.vector, ..ErasedProbe::default() }
        }
        Kept::Event(event, _) => {
            let texts = event.payload.into_iter().chain(event.normalized).collect();
            ErasedProbe { texts, ..ErasedProbe::default() }
        }
        Kept::Aggregate(aggregate) => {
            ErasedProbe { texts: aggregate.example_snippets, ..ErasedProbe::default() }
        }
        _ => ErasedProbe::default(),
    }
}

/// `export`.
pub(crate) fn export(options: &ExportOptions, place: &Place, output: Output<'_>) -> Done {
    let database = place.open(Access::Read)?;
    let known = database.namespaces()?;
    let unknown = place.unknown_namespace(&known, output)?;
    // An export of all namespaces has what there is, whichever is named.
    let unknown = unknown.filter(|_| !options.all_namespaces);
    let namespaces = if options.all_namespaces { known.clone() } else { vec![place.namespace()?] };
    let export = Export { namespaces, all_states: options.all_states };
    // Whoever has named a namespace knows that there are others.
    let known = if place.typed_namespace()?.is_none() { known } else { Vec::new() };
    let beside = Beside::of(&database, &export, known);
    let dim = match options.vectors {
        Some(_) => database.dimensions()?,
        None => None,
    };
    if options.file == Path::new("-") {
        let snapshot = database.snapshot()?;
        let mut out = std::io::BufWriter::new(place.caller().output());
        let (report, vectors) =
            export_to(&export, options, &snapshot, dim, &mut out, Path::new("standard output"))?;
        let takes_a_place = vectors.as_ref().is_some_and(Target::takes_a_place);
        if let Some(named) = unknown.filter(|_| takes_a_place) {
            return Err(empty(&named, options.vectors.as_deref().unwrap_or(&options.file)));
        }
        if takes_a_place && !report.is_whole() {
            return Err(partial(&report, options.vectors.as_deref().unwrap_or(&options.file), output));
        }
        vectors.map(Target::finish).transpose()?;
        if output.json && !report.is_whole() {
            output.aside(&left_out(&report).to_string());
        }
        beside.told().into_iter().for_each(|told| output.remark(&told));
        return tell_partial(&report, output);
    }
    let replaced = options.file.exists();
    let (report, mut vectors, mut target) = again(|is_unseen| {
        let (snapshot, mut target) = (database.snapshot()?, Target::create(&options.file)?);
        *is_unseen = target.is_aside();
        let (report, vectors) = export_to(&export, options, &snapshot, dim, &mut target, &options.file)?;
        Ok((report, vectors, target))
    })
    .map_err(|error| unread(error, &options.file, place.caller()))?;
    let takes_a_place = target.takes_a_place() || vectors.as_ref().is_some_and(Target::takes_a_place);
    if let Some(named) = unknown.filter(|_| takes_a_place) {
        return Err(empty(&named, place.caller().shown(&options.file)));
    }
    if takes_a_place && !report.is_whole() {
        return Err(partial(&report, place.caller().shown(&options.file), output));
    }
    vectors.as_mut().map(Target::sync).transpose()?;
    target.sync().map_err(|error| unread(error, &options.file, place.caller()))?;
    vectors.map(Target::finish).transpose()?;
    target.finish()?;
    let bytes = std::fs::metadata(&options.file).map(|found| found.len()).ok();
    tell_export((&report, &beside), place.caller().shown(&options.file), (bytes, replaced), output)?;
    tell_partial(&report, output)
}

/// The failure of an export. Where its file is standard output by another name, nobody may read that any more, which is no error.
fn unread(error: Error, file: &Path, caller: &Caller) -> Failure {
    match error {
        Error::Io { source, .. } if source.kind() == ErrorKind::BrokenPipe && caller.is_output(file) => {
            output::unwritable(source)
        }
        error => error.into(),
    }
}

/// A long read, which begins anew where `compact` has replaced the file under it meanwhile, and nobody has seen of it yet. What
/// fails otherwise would fail again.
fn again<T>(mut read: impl FnMut(&mut bool) -> Result<T>) -> Result<T> {
    let mut tries = 1;
    loop {
        let mut is_unseen = true;
        match read(&mut is_unseen) {
            Err(Error::SnapshotExpired { .. }) if is_unseen && tries < READS_MAX => tries += 1,
            done => return done,
        }
    }
}

/// What an export was not asked for, and has not.
#[derive(Default, Serialize)]
struct Beside {
    /// Memories whose place others have taken, in the namespaces of the export.
    superseded: u64,
    /// Live memories of other namespaces.
    namespaces: BTreeMap<NamespaceName, u64>,
}

impl Beside {
    /// What can't be counted is not told.
    fn of(database: &Database, export: &Export, known: Vec<NamespaceName>) -> Self {
        let count = |name: &NamespaceName| {
            let stats = database.namespace(name).and_then(|namespace| namespace.stats());
            stats.map(|stats| stats.memories).unwrap_or_default()
        };
        let superseded = match export.all_states {
            true => 0,
            false => export.namespaces.iter().map(|name| count(name).superseded).sum(),
        };
        let others = known.into_iter().filter(|name| !export.namespaces.contains(name));
        let others = others.map(|name| (count(&name).live, name)).filter(|(live, _)| *live > 0);
        Beside { superseded, namespaces: others.map(|(live, name)| (name, live)).collect() }
    }

    /// The same in a sentence, with the options that ask for it.
    fn told(&self) -> Option<String> {
        let superseded = told::of(self.superseded, "superseded memory", "superseded memories");
        let superseded = (self.superseded > 0).then(|| format!("{superseded} (--all-states)"));
        let mut names: Vec<String> =
            self.namespaces.iter().take(NAMED).map(|(name, live)| format!("{name} {live}")).collect();
        names.extend((self.namespaces.len() > NAMED).then(|| "…".to_owned()));
        let names = names.join(", ");
        let others = (!names.is_empty()).then(|| format!("other namespaces (--all-namespaces): {names}"));
        let all: Vec<String> = superseded.into_iter().chain(others).collect();
        (!all.is_empty()).then(|| format!("Not asked for and left out: {}", all.join("; ")))
    }
}

/// What was written to a file: how many bytes it has, and whether one was there before.
fn tell_export(
    (report, beside): (&ExportReport, &Beside),
    file: &Path,
    (bytes, replaced): (Option<u64>, bool),
    output: Output<'_>,
) -> Done {
    let exported = report.memories
        + report.tombstones
        + report.runs
        + report.aggregates
        + report.events
        + report.contexts
        + report.goals;
    let mut document =
        json!({ "exported": exported, "bytes": bytes, "replaced": replaced, "not_asked_for": beside });
    if let (Value::Object(members), Value::Object(more)) = (&mut document, json!(report)) {
        members.extend(more);
    }
    output.done(&document, |_| {
        let mut wrote = told::of(report.memories, "memory", "memories");
        let others = [
            (report.tombstones, "tombstone", "tombstones"),
            (report.events, "message", "messages"),
            (report.aggregates, "aggregate", "aggregates"),
            (report.runs, "run", "runs"),
            (report.goals, "goal", "goals"),
        ];
        for (count, one, many) in others.into_iter().filter(|(count, ..)| *count > 0) {
            wrote.push_str(&format!(", {}", told::of(count, one, many)));
        }
        let size = told::size(bytes.unwrap_or_default());
        let instead = if replaced { ", in place of the file that was there" } else { "" };
        let former = match report.vectors_left_out {
            0 => String::new(),
            count => format!(
                "; without {} of a former embedding space, whose texts get new ones",
                told::of(count, "vector", "vectors")
            ),
        };
        let made_from = match report.provenance_left_out {
            0 => String::new(),
            count => format!(
                "; {} without what {} made from (--all-states has it)",
                told::of(count, "memory", "memories"),
                if count == 1 { "it was" } else { "they were" }
            ),
        };
        format!("Wrote {wrote} to {} ({size}){instead}{former}{made_from}", file.display())
    })?;
    beside.told().into_iter().for_each(|told| output.remark(&told));
    Ok(())
}

/// An export of a namespace that is not there, perhaps of a mistyped name, never takes the place of another.
pub(crate) fn empty(named: &NamespaceName, file: &Path) -> Failure {
    let what = format!("export to {}", file.display());
    let why = format!("there is no namespace {named}, and an empty export would take the place of a file");
    Error::Conflict { what, why }.into()
}

/// An export that misses something never takes the place of one that may have it.
fn partial(report: &ExportReport, file: &Path, output: Output<'_>) -> Failure {
    let what = format!("export to {}", file.display());
    let why = "it would miss what is damaged, and take the place of a file: name one that is not there yet";
    let error = Error::Conflict { what, why: why.to_owned() };
    match (tell_partial(report, output), left_out(report)) {
        (Err(Failure::Findings), Value::Object(more)) if output.json => {
            Failure::Partly(error, Box::new(more))
        }
        _ => error.into(),
    }
}

/// What an export misses because it is damaged, as a document.
fn left_out(report: &ExportReport) -> Value {
    let mut document = json!(report);
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| name.starts_with("damaged") || name == "check");
    }
    document
}

/// The same for people, on standard error. Whoever calls from a script learns it by the exit code.
fn tell_partial(report: &ExportReport, output: Output<'_>) -> Done {
    let goals = report.damaged_goals.iter().map(|(namespace, id)| format!("{namespace} goal {id}"));
    let contexts = report.damaged_contexts.iter().map(|(namespace, id)| format!("{namespace} context {id}"));
    let others = report.damaged.iter().map(|(namespace, id)| format!("{namespace} {id}"));
    let left_out = tell_damaged(LEFT_OUT, others.chain(goals).chain(contexts).collect(), output);
    if report.check.ok {
        return left_out;
    }
    if !output.json {
        output.aside(&format!(
            "`check` has {} in what is exported, and what is behind it may be missing: make a `backup` of the file, which is as whole \
             as it can be, and export that",
            told::of(report.check.findings.len() as u64 + report.check.more, "finding", "findings")
        ));
    }
    left_out.and(Err(Failure::Findings))
}

/// What a copy of the file misses, and why. A copy that is not whole has what is damaged as it stood.
pub(crate) fn tell_lost(report: &CompactReport, output: Output<'_>) -> Done {
    let lost: BTreeSet<_> = report.lost.iter().copied().collect();
    let (gone, mended): (Vec<&Finding>, Vec<&Finding>) =
        report.damaged.iter().partition(|row| row.id.is_some_and(|id| lost.contains(&id)));
    let told = |rows: &[&Finding]| {
        rows.iter().map(|row| format!("{}: {}", row.place(), row.what)).collect::<Vec<_>>()
    };
    // No finding may name what is lost: the rows that would are not there.
    let named: BTreeSet<_> = gone.iter().filter_map(|row| row.id).collect();
    let gone: Vec<_> =
        told(&gone).into_iter().chain(lost.difference(&named).map(ToString::to_string)).collect();
    if !lost.is_empty() && !output.json {
        output
            .aside(&format!("the copy does not have {}", told::of(lost.len() as u64, "memory", "memories")));
    }
    for lost in report.lost_keys.iter().filter(|_| !output.json) {
        let namespace = &lost.namespace;
        output.aside(&format!("the copy does not have the key {} of the namespace {namespace}", lost.key));
    }
    if !report.whole && !output.json {
        output.aside("the copy is not whole, and has what is damaged as it stood: `check` tells what");
    }
    let gone = tell_damaged(LEFT_OUT, gone, output);
    let mended = tell_damaged("damaged", told(&mended), output);
    if report.more > 0 && !output.json {
        output.aside(&format!("damaged: {} more that nothing names", report.more));
    }
    gone.and(mended)
}

/// What is damaged, on standard error; with `--json` the document names it. Whoever calls from a script learns it by the exit code.
pub(crate) fn tell_damaged(how: &str, rows: Vec<String>, output: Output<'_>) -> Done {
    if rows.is_empty() {
        return Ok(());
    }
    if !output.json {
        for row in rows.iter().take(DAMAGED_SHOWN) {
            output.aside(&printable(&format!("{how}: {row}")));
        }
        if let Some(more) = rows.len().checked_sub(DAMAGED_SHOWN).filter(|more| *more > 0) {
            output.aside(&format!("{how}: {more} more (--json names all)"));
        }
    }
    Err(Failure::Findings)
}

/// Writes an export; its file of vectors takes no name before the export is known to be whole.
fn export_to(
    export: &Export,
    options: &ExportOptions,
    snapshot: &Snapshot,
    dim: Option<usize>,
    out: &mut dyn std::io::Write,
    path: &Path,
) -> Result<(ExportReport, Option<Target>)> {
    let Some(npy) = &options.vectors else {
        let vectors = if options.no_vectors { VectorsTo::Nowhere } else { VectorsTo::Lines };
        return Ok((export.write::<Cursor<Vec<u8>>>(snapshot, out, path, vectors)?, None));
    };
    let dim =
        dim.ok_or_else(|| Error::invalid("vectors", "must not be asked of a file without any", "none"))?;
    let mut writer = NpyWriter::new(Target::create(npy)?, dim, npy)?;
    let report = export.write(snapshot, out, path, VectorsTo::Npy(&mut writer, dim))?;
    Ok((report, Some(writer.finish()?)))
}

/// `backup`.
pub(crate) fn backup(file: &Path, place: &Place, output: Output<'_>) -> Done {
    // Elsewhere this is standard output, which no database is written to.
    if file == Path::new("-") {
        let why = "backup writes a file, and not to standard output; `export -` writes lines there";
        return Err(Failure::Usage(why.to_owned()));
    }
    // What is left of forgotten memories goes from the file where that can be written to, so that one copy is enough.
    let report = place.open_to_count()?.backup(file)?;
    if let Some(named) = place.typed_namespace()? {
        output.remark(&format!("the copy has every namespace, not {named} alone; `export` writes one"));
    }
    output.done(&json!(report), |report| {
        told::bytes(&format!("Copied to {}", place.caller().shown(file).display()), report)
    })?;
    tell_lost(&report, output)
}

/// `compact`.
pub(crate) fn compact(place: &Place, output: Output<'_>) -> Done {
    let database = place.open(Access::Write)?;
    let report = compacted(&database)?;
    place.close(database)?;
    let report = CompactReport { bytes_after: bytes_of(place).unwrap_or(report.bytes_after), ..report };
    place.done(output, json!(report), |report| told::bytes("Compacted", report))?;
    tell_ended(&report, output);
    tell_lost(&report, output)
}

/// The bytes of the file by now: closing it writes what the copy has not.
pub(crate) fn bytes_of(place: &Place) -> Option<u64> {
    place.path().ok().and_then(|path| std::fs::metadata(path).ok()).map(|found| found.len())
}

/// Compacts the file, and takes away the copies of it that a command which was cut off has left among the temporary files: of
/// what is forgotten there must be none.
pub(crate) fn compacted(database: &Database) -> Result<CompactReport> {
    temporary::clear_left();
    database.compact()
}

/// What a copy left behind because its time was over, and what is left of the file before it.
pub(crate) fn tell_ended(report: &CompactReport, output: Output<'_>) {
    if report.other_names > 0 {
        let names = told::of(report.other_names, "other name (a hard link)", "other names (hard links)");
        output.remark(&format!(
            "The file had {names}, which still lead to what it was, with everything that was erased"
        ));
    }
    let sorts = [
        (report.expired, "expired memory", "expired memories"),
        (report.limbo, "memory that a run had removed", "memories that runs had removed"),
    ];
    for (count, one, many) in sorts.into_iter().filter(|(count, ..)| *count > 0) {
        output.remark(&format!("{} went for good", told::of(count, one, many)));
    }
    upkeep::tell_too_old(&report.retention, output);
}

/// `policy show`.
pub(crate) fn show_policy(place: &Place, output: Output<'_>) -> Done {
    let (policy, version) = place.open(Access::Read)?.policy();
    if !output.json {
        return output.bytes(policy.to_toml()?.as_bytes());
    }
    let entries: serde_json::Map<String, Value> = policy.entries().into_iter().collect();
    output.document(&json!({ "number": version.number, "hash": version.hash.to_string(), "policy": entries }))
}

/// `policy instructions`.
pub(crate) fn instructions(place: &Place, output: Output<'_>) -> Done {
    let text = place.open(Access::Read)?.instructions();
    if output.json {
        output.document(&json!({ "instructions": text }))
    } else {
        output.bytes(text.as_bytes())
    }
}

/// `policy set`.
pub(crate) fn set_policy(file: &Path, place: &Place, output: Output<'_>) -> Done {
    let (text, syntax) = policy_text(file)?;
    // Refused before a database is made for it.
    let policy = Policy::parse(&text, syntax)?;
    let database = place.open(Access::Create)?;
    let version = database.set_policy(&text, syntax)?;
    place.close(database)?;
    let document = json!({ "number": version.number, "hash": version.hash.to_string() });
    place.done(output, document, |_| format!("Stored as policy {}", version.number))?;
    let stages =
        [("prune", policy.prune.enabled, Stage::Prune), ("cluster", policy.cluster.enabled, Stage::Cluster)];
    for (name, _, _) in
        stages.iter().filter(|(_, enabled, stage)| *enabled && !policy.sweeper.stages.contains(stage))
    {
        output.remark(&format!(
            "{name}.enabled is true, but sweeper.stages has no {name}: only `maintain {name}` runs this pass"
        ));
    }
    Ok(())
}

/// `completions`.
pub(crate) fn completions(shell: clap_complete::Shell, output: Output<'_>) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "oubliette", &mut script);
    output.bytes(&script)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a read is tried that ends with an error, and whether it came to an end.
    fn tries(fails: impl Fn(u32) -> Option<Error>, is_seen: bool) -> (u32, bool) {
        let mut count = 0;
        let done = again(|is_unseen| {
            count += 1;
            *is_unseen = !is_seen;
            fails(count).map_or(Ok(()), Err)
        });
        (count, done.is_ok())
    }

    #[test]
    fn a_read_begins_anew_only_where_its_file_was_replaced() {
        let replaced = || Error::SnapshotExpired { lease_ms: 1 };
        assert_eq!(tries(|count| (count < 3).then(replaced), false), (3, true));
        assert_eq!(tries(|_| Some(replaced()), false), (READS_MAX, false));
        assert_eq!(tries(|_| Some(replaced()), true), (1, false), "its lines would stand there twice");
        let failed = || Error::Retry { why: "no disk".to_owned() };
        assert_eq!(tries(|_| Some(failed()), false), (1, false));
    }
}
