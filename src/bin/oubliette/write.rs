//! Commands that write memories.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use oubliette::exchange::{
    DraftLine, Format, Import, ImportReport, Kept, LineReader, NpyReader, Observer, ParsedLine, Target,
    parse_line,
};
use oubliette::limits::CONTENT_BYTES_MAX;
use oubliette::maintain::RunId;
use oubliette::memory::{Expiry, Got, SupersedeMode};
use oubliette::{
    Database, Draft, Error, ErrorKind, Kind, Memory, MemoryId, Namespace, NamespaceName, Outcome, Patch,
    Result, State, Time, WriteOptions,
};
use serde_json::{Map, Value, json};

use crate::answers;
use crate::arguments::paths::not_its_own;
use crate::arguments::{
    AddOptions, ContradictOptions, FieldOptions, ImportOptions, RenameOptions, SupersedeOptions,
    TouchOptions, UpdateOptions,
};
use crate::caller::Caller;
use crate::fields;
use crate::output::{self, Done, Failure, Output};
use crate::place::{Access, Place, by_option, named};
use crate::progress::Progress;
use crate::read::{called, tell_gone};
use crate::typed::{self, STREAM, Slot};
use crate::written::{GONE, Said, told_time, written};
use crate::{story, told};

/// The text of a memory that takes the place of others.
const NEWER: Slot = Slot { after: "supersede --with-text", name: "text", most: CONTENT_BYTES_MAX };

/// Characters that a remark shows of a name with a comma.
const COMMA_CHARS: usize = 60;

/// After how many lines an import looks whether somebody still waits for it.
const LOOKED_EVERY: u64 = 256;

/// `add`.
pub(crate) fn add(options: &AddOptions, place: &Place, output: Output<'_>) -> Done {
    let AddOptions { no_dedup, skip_instructions, verbatim, .. } = *options;
    let how = WriteOptions { run: None, no_dedup, skip_instructions, verbatim, keep_part: false };
    let namespace = place.namespace()?;
    if options.text == STREAM {
        fields::check_none(options)?;
        let database = place.open(Access::Create)?;
        let done = add_lines(&database, &namespace, (&how, options.jsonl), place, output);
        // The lines before one that is refused are written.
        let closed = place.close(database);
        done?;
        return Ok(closed?);
    }
    if options.jsonl {
        return Err(Error::invalid(
            "--jsonl",
            "must stand beside -, the lines of standard input",
            &options.text,
        )
        .into());
    }
    let line = fields::draft(options, place.caller())?;
    line.warnings.iter().for_each(|warning| output.remark(warning));
    tell_fields(&options.fields, output);
    let database = place.open(Access::Create)?;
    let said = Said::of(line.draft.expiry, &line.draft.fields);
    let answer = add_one(&database, &namespace, line.draft, &how, place)?;
    let mut answer = told_time(&database.namespace(&namespace)?, answer, said, &place.present());
    place.close(database)?;
    // What only repeats a write has taken no place by that.
    let is_new =
        ["stored", "revised"].iter().any(|decision| answer.get("decision") == Some(&json!(decision)));
    if let (Value::Object(members), false) = (&mut answer, options.supersedes.is_empty() || !is_new) {
        members.insert("supersedes".to_owned(), json!(options.supersedes));
    }
    place.done(output, warned(answer, &line.warnings), told::write)
}

/// What somebody may have meant otherwise. A pin keeps a memory from what acts by itself, and an end that the caller sets is no such
/// thing. A comma divides no tags.
fn tell_fields(fields: &FieldOptions, output: Output<'_>) {
    let ends = fields.ttl.is_some() || fields.expires_at.as_ref().is_some_and(|end| end != "never");
    if fields.pinned && ends {
        output.remark("The end that is set holds for a pinned memory too: no search finds it from then on");
    }
    for (option, what, names) in [
        ("--tag", "tag", &fields.tags),
        ("--category", "category", &fields.categories),
        ("--entity", "entity", &fields.entities),
    ] {
        if let Some(name) = names.iter().find(|name| name.contains(',')) {
            let name = output::short(name, COMMA_CHARS);
            output.remark(&format!("`{name}` is one {what}; {option} can be given several times"));
        }
    }
}

/// The answer to a write, with what was read otherwise than it stands there.
fn warned(mut answer: Value, warnings: &[String]) -> Value {
    if let (Value::Object(members), false) = (&mut answer, warnings.is_empty()) {
        members.insert("warnings".to_owned(), json!(warnings));
    }
    answer
}

fn add_one(
    database: &Database,
    namespace: &NamespaceName,
    draft: Draft,
    how: &WriteOptions,
    place: &Place,
) -> Result<Value> {
    let team = database.namespace(namespace)?;
    let mut outcomes = team.add_all(vec![draft], how)?;
    let outcome = outcomes.pop().unwrap_or_else(|| unreachable!("each draft has an outcome"));
    Ok(written(&team, &outcome, &place.present()))
}

/// One answer line for each line of standard input, written before the next is read, or with the lines of an export that belong
/// to it. A line that begins like an object must be one, so that a memory with a slip is no text.
fn add_lines(
    database: &Database,
    namespace: &NamespaceName,
    (how, jsonl): (&WriteOptions, bool),
    place: &Place,
    output: Output<'_>,
) -> Done {
    let mut lines = LineReader::new(output.caller.lines(), "standard input");
    let mut written = 0_u64;
    while let Some((number, text)) = lines.next_text().map_err(|error| unheard(error, written))? {
        let answers = match std::str::from_utf8(text) {
            Ok(words) if words.trim_ascii().is_empty() => continue,
            Ok(words) if !jsonl && !words.trim_start().starts_with('{') => {
                let draft = Draft::new(words);
                add_one(database, namespace, draft, how, place).map(|answer| vec![answer])
            }
            _ => match parse_line(text, false).map(kept) {
                Ok(Ok(row)) => {
                    let head = (number, row);
                    output.caller.within(|| take_over(database, namespace, head, &mut lines))
                }
                Ok(Err(line)) => add_line(database, namespace, *line, how, place),
                Err(error) => Err(error),
            },
        };
        let answers = answers.map_err(|error| match Failure::from(error) {
            Failure::Error(error @ Error::Line { .. }) => stopped(error, written),
            Failure::Error(error) => stopped(error.at_line(number), written),
            // Where lines that belong together are cut off, none of them is written.
            other => other,
        })?;
        written += answers.len() as u64;
        place.note_writes(database);
        let shown = answers.into_iter().zip(number..).try_for_each(|(answer, number)| {
            let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
            warnings.for_each(|warning| output.remark(&format!("line {number}: {}", output::plain(warning))));
            place.done(output, answer, told::line)
        });
        match shown {
            Err(Failure::Pipe) => {
                drop(lines);
                return Err(if output.caller.may_have_lines() { unread(written) } else { Failure::Pipe });
            }
            shown => shown?,
        }
    }
    Ok(())
}

/// The error of lines that were left because nobody reads their answers: whoever reads only the first has not asked for that.
fn unread(written: u64) -> Failure {
    let source = std::io::ErrorKind::BrokenPipe.into();
    stopped(Error::Io { action: "write", path: "standard output".into(), source }, written)
}

/// The failure of the next line: it can't be read, or the process that has it shows no answers any more.
fn unheard(error: Error, written: u64) -> Failure {
    match Failure::from(error) {
        Failure::Error(error) => stopped(error, written),
        Failure::Pipe => unread(written),
        other => other,
    }
}

/// The error of a line, with the number of lines before it, which are written.
fn stopped(error: Error, written: u64) -> Failure {
    match written {
        0 => error.into(),
        written => Failure::Partly(error, Box::new(Map::from_iter([("written".to_owned(), json!(written))]))),
    }
}

fn add_line(
    database: &Database,
    namespace: &NamespaceName,
    line: DraftLine,
    how: &WriteOptions,
    place: &Place,
) -> Result<Vec<Value>> {
    let namespace = line.namespace.unwrap_or_else(|| namespace.clone());
    let answer = add_one(database, &namespace, line.draft, how, place)?;
    Ok(vec![warned(answer, &line.warnings)])
}

/// The row of a line of an export, with the namespace that it names; else what is to be remembered.
fn kept(line: ParsedLine) -> std::result::Result<(Option<NamespaceName>, Kept), Box<DraftLine>> {
    match line {
        ParsedLine::Draft(line) => Err(line),
        ParsedLine::Memory(memory) => Ok((Some(memory.namespace.clone()), Kept::Memory(memory))),
        ParsedLine::Kept(line) => Ok((line.namespace, line.row)),
    }
}

/// Puts the row of line `head` of an export back, together with those behind it that it counts: the messages of an aggregate, the
/// steps of a run.
fn take_over(
    database: &Database,
    namespace: &NamespaceName,
    (head, (named, row)): (u64, (Option<NamespaceName>, Kept)),
    lines: &mut LineReader<impl BufRead>,
) -> Result<Vec<Value>> {
    let namespace = named.as_ref().unwrap_or(namespace);
    let count = row.lines_behind();
    let (mut rows, mut numbers) = (vec![row], vec![head]);
    for left in (1..=count).rev() {
        let Some((number, text)) = lines.next_line()? else { break };
        let line = parse_line(text, false).map_err(|error| error.at_line(number))?;
        let Ok((_, row)) = kept(line) else {
            let why = format!("must belong to line {head}, which counts {left} more");
            return Err(Error::invalid("line", why, "a memory to be").at_line(number));
        };
        rows.push(row);
        numbers.push(number);
    }
    let sorts: Vec<&str> = rows.iter().map(sort_of).collect();
    let outcomes = database.namespace(namespace)?.recreate(rows).map_err(|error| match error {
        Error::Line { line, source } => {
            let at = usize::try_from(line - 1).ok().and_then(|at| numbers.get(at));
            source.at_line(at.copied().unwrap_or(head))
        }
        error => error,
    })?;
    let answers = outcomes.iter().zip(sorts).map(|(outcome, sort)| match outcome {
        Some(outcome) => answers::outcome(namespace, outcome),
        None => Value::Object(Map::from_iter([(sort.to_owned(), json!(true))])),
    });
    Ok(answers.collect())
}

/// What the answer to a row of an export calls it.
fn sort_of(row: &Kept) -> &'static str {
    match row {
        Kept::Memory(_) | Kept::Joint(_) => "memory",
        Kept::Tombstone(_) => "tombstone",
        Kept::Run(_) => "run",
        Kept::Step(_) => "step",
        Kept::Aggregate(_) => "aggregate",
        Kept::Event(..) => "event",
        Kept::Context(_) => "context",
        Kept::Goal(_) => "goal",
    }
}

/// What `import` tells while it works.
struct Watch<'a> {
    output: Output<'a>,
    progress: &'a Progress,
    decisions: Option<&'a mut Target>,
    runs: Vec<(NamespaceName, RunId)>,
    place: &'a Place,
    /// The writes whose end the clock has not reached, and the file has.
    over: u64,
}

impl Observer for Watch<'_> {
    fn started(&mut self, namespace: &NamespaceName, run: RunId) -> Result<()> {
        self.runs.push((namespace.clone(), run));
        // Said before the first memory is written, so that it is there to be taken back whatever happens then.
        if self.output.json && !self.output.quiet {
            let started = json!({ "started": { "namespace": namespace, "run": run } });
            self.output.aside(&started.to_string());
        }
        self.output.remark(&format!("Run {run} in {namespace}"));
        Ok(())
    }

    fn decided(&mut self, line: u64, namespace: &NamespaceName, outcome: &Outcome) -> Result<()> {
        if line.is_multiple_of(LOOKED_EVERY) && self.output.caller.is_gone() {
            let source = std::io::ErrorKind::BrokenPipe.into();
            return Err(Error::Io { action: "answer", path: "the process that asked".into(), source });
        }
        self.over += u64::from(self.place.is_over_at_once(outcome));
        let Some(file) = &mut self.decisions else { return Ok(()) };
        let mut document = answers::outcome(namespace, outcome);
        if let Value::Object(members) = &mut document {
            members.insert("line".to_owned(), json!(line));
        }
        let written = writeln!(file, "{document}");
        written.map_err(|source| Error::Io { action: "write", path: file.path().to_owned(), source })
    }

    fn bad(&mut self, error: &Error) {
        let text = if self.output.json {
            let kind = error.kind().to_string();
            json!({ "bad": { "kind": kind, "message": error.to_string() } }).to_string()
        } else {
            format!("left out: {}", output::printable(&error.to_string()))
        };
        if !self.output.quiet {
            self.output.aside(&text);
        }
    }

    fn warned(&mut self, line: u64, warning: &str) {
        self.output.remark(&format!("line {line}: {warning}"));
    }

    fn progress(&mut self, read: u64) {
        self.progress.set(read);
    }
}

/// `import`.
pub(crate) fn import(options: &ImportOptions, place: &Place, output: Output<'_>) -> Done {
    let format = options.format;
    let tag = (format != Format::Oubliette).then(|| format!("import:{format}:{}", place.now().day()));
    let import = Import {
        namespace: place.namespace()?,
        into: options.into.as_deref().map(str::parse).transpose()?,
        lenient: options.lenient,
        batch_rows: options.batch,
        no_dedup: options.no_dedup,
        skip_instructions: options.skip_instructions,
        verbatim: options.verbatim,
        skip_bad: options.skip_bad,
        format,
        tag,
    };
    let vectors = options.vectors.as_deref().map(NpyReader::open).transpose()?;
    let total = count(&options.file, place.caller())?;
    if let (Some(vectors), Some(lines)) = (&vectors, total)
        && vectors.rows() != lines
    {
        // Found before anything is written.
        let lines = told::of(lines, "line", "lines");
        let shown = format!("{} for {lines}", told::of(vectors.rows(), "row", "rows"));
        return Err(Error::invalid("vectors", "must have as many rows as there are lines", shown).into());
    }
    let lines = LineReader::new(read(&options.file, place.caller())?, &options.file);
    let mut decisions = options.decisions.as_deref().map(Target::create).transpose()?;
    // A database that is not there yet would be made, and lost to the file.
    let database = Target::place_of(place.path()?);
    if let Some(file) = options.decisions.as_deref().filter(|file| Target::place_of(file) == database) {
        return Err(not_its_own("--decisions", file).into());
    }
    let database = place.open(Access::Create)?;
    let progress = Progress::new(output, total);
    let (decided, runs) = (decisions.as_mut(), Vec::new());
    let mut watch = Watch { output, progress: &progress, decisions: decided, runs, place, over: 0 };
    let done = import.run_with_vectors(&database, lines, vectors, &mut watch);
    let (runs, over) = (Brought::new(&database, std::mem::take(&mut watch.runs)), watch.over);
    let seconds = progress.seconds();
    drop(progress);
    // The batches before one that is refused are written.
    let closed = place.close(database);
    // What the batches before one that is refused have become is told as well.
    let decisions = decisions.filter(|_| done.is_ok() || !runs.runs.is_empty());
    let decided = decisions.map_or(Ok(()), Target::finish);
    let report = done.map_err(|error| partly(error, &runs))?;
    decided?;
    closed?;
    let elsewhere = place.named_namespace()?.filter(|_| options.into.is_none());
    if let Some(named) = elsewhere {
        let others = report.runs.iter().map(|(namespace, _)| namespace).filter(|of| **of != named);
        let others: Vec<_> = others.map(NamespaceName::as_str).collect();
        if !others.is_empty() {
            // The namespace is the border between tenants.
            output.remark(&format!(
                "lines that name a namespace went there and not to {named}: {}; `import --into {named}` takes all lines there",
                others.join(", ")
            ));
        }
    }
    // A file of another server has its memories in its own lines.
    let items = if format == Format::Oubliette { ("line", "lines") } else { ("memory", "memories") };
    let mut document = report_json(&report, &runs, seconds);
    if let (Value::Object(members), 1..) = (&mut document, over) {
        members.insert("ended_at_once".to_owned(), json!(over));
    }
    place.done(output, document, |report| told::import(report, items))
}

/// An import that ended early: what its first batches wrote is there, and can be taken back. Where whoever typed it reads no more, nothing
/// is said; a file of decisions that takes no more is an error as any other.
fn partly(error: Error, brought: &Brought) -> Failure {
    if brought.runs.is_empty()
        || matches!(&error, Error::Io { path, source, .. }
            if source.kind() == std::io::ErrorKind::BrokenPipe && output::is_stream(path))
    {
        return error.into();
    }
    Failure::Partly(error, Box::new(brought.json()))
}

/// The runs of an import, and whether `undo` finds something to take back of one: memories of an export keep the runs that first
/// brought them.
struct Brought {
    runs: Vec<(NamespaceName, RunId)>,
    can_be_undone: bool,
}

impl Brought {
    fn new(database: &Database, runs: Vec<(NamespaceName, RunId)>) -> Self {
        let left = |(namespace, run): &(NamespaceName, RunId)| {
            let found = database.namespace(namespace).and_then(|namespace| namespace.run(*run));
            // What can't be read now does not undo what was written.
            matches!(found, Ok(Some(run)) if run.can_be_undone)
        };
        let can_be_undone = runs.iter().any(left);
        Brought { runs, can_be_undone }
    }

    fn json(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("run".to_owned(), json!(self.runs.first().map(|(_, run)| run)));
        if self.runs.len() > 1 {
            let run =
                |(namespace, run): &(NamespaceName, RunId)| json!({ "namespace": namespace, "run": run });
            members.insert("runs".to_owned(), self.runs.iter().map(run).collect());
        }
        members.insert("can_be_undone".to_owned(), json!(self.can_be_undone));
        members
    }
}

fn report_json(report: &ImportReport, brought: &Brought, seconds: f64) -> Value {
    let mut members = brought.json();
    if let Value::Object(mut counts) = json!(report) {
        counts.remove("runs");
        members.extend(counts);
    }
    if !brought.can_be_undone {
        let why = match report.put_back {
            0 => "nothing that it wrote is left to take back",
            _ => {
                "its memories came with their ids, as an export writes them, and only `forget` takes them away"
            }
        };
        members.insert("why_not".to_owned(), json!(why));
    }
    members.insert("seconds".to_owned(), json!((seconds * 1_000.0).round() / 1_000.0));
    Value::Object(members)
}

/// A file, or standard input.
pub(crate) fn read<'c>(path: &Path, caller: &'c Caller) -> Result<Box<dyn BufRead + 'c>> {
    if path == Path::new("-") {
        return Ok(caller.input());
    }
    let file =
        File::open(path).map_err(|source| Error::Io { action: "open", path: path.to_owned(), source })?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// The lines of a file; none of what can be read only once.
fn count(path: &Path, caller: &Caller) -> Result<Option<u64>> {
    if path == Path::new("-") || !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    LineReader::new(read(path, caller)?, path).count_lines().map(Some)
}

/// `update`.
pub(crate) fn update(options: &UpdateOptions, place: &Place, output: Output<'_>) -> Done {
    let (namespace, patch) = (place.namespace()?, fields::patch(options, place.caller())?);
    if patch == Patch::default() {
        return Err(Failure::Usage("update must change something: give a text or an option".to_owned()));
    }
    tell_fields(&options.fields, output);
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let said = Said::of(patch.expiry, &patch.fields);
    let (outcome, now) =
        (team.update(&options.name, patch).map_err(tell_gone(&team, place))?, place.present());
    let answer = told_time(&team, written(&team, &outcome, &now), said, &now);
    place.close(database)?;
    place.done(output, answer, told::write)
}

/// `contradict`.
pub(crate) fn contradict(options: &ContradictOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let at = options.at.as_deref().map(|at| named("--at", at.parse())).transpose()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let outcome = team.contradict(options.name.as_str(), at).map_err(tell_gone(&team, place))?;
    // What the key announces is what it means from now on.
    let means = team.look_up(options.name.as_str(), false).ok().and_then(Got::into_memory);
    let again = match means.is_none_or(|memory| memory.id == outcome.id) {
        true => format!("`update {} --clear valid_to` makes it true again", options.name),
        false => format!("`restore {0}`, then `update {0} --clear valid_to` make it true again", outcome.id),
    };
    place.close(database)?;
    place.done(output, answers::outcome(&namespace, &outcome), |answer| {
        told::change("Contradicted", answer)
    })?;
    output.remark(&again);
    Ok(())
}

/// `pin` and `unpin`.
pub(crate) fn pin(name: &str, pinned: bool, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let outcome = team.pin(name, pinned).map_err(tell_gone(&team, place))?;
    place.close(database)?;
    let verb = if pinned { "Pinned" } else { "Unpinned" };
    place.done(output, answers::outcome(&namespace, &outcome), |answer| told::change(verb, answer))
}

/// `rename`.
pub(crate) fn rename(options: &RenameOptions, place: &Place, output: Output<'_>) -> Done {
    let RenameOptions { old, new } = options;
    let namespace = place.namespace()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let report = team.rename_key(old, new).map_err(tell_gone(&team, place))?;
    place.close(database)?;
    let document = json!({ "id": report.id, "old": old, "new": new, "rows": report.rows });
    let versions = told::of(report.rows, "version", "versions");
    place.done(output, document, |_| format!("Renamed {old} to {new} in {namespace}: {versions}"))
}

/// The end of a life that options give.
fn end_of(ttl: Option<&str>, expires_at: Option<&str>) -> Result<Option<Expiry>> {
    Ok(match (ttl, expires_at) {
        (Some(ttl), _) => Some(Expiry::After(named("--ttl", ttl.parse())?)),
        (None, Some("never")) => Some(Expiry::Never),
        (None, Some(at)) => Some(Expiry::At(named("--expires-at", at.parse())?)),
        (None, None) => None,
    })
}

/// `touch`.
pub(crate) fn touch(options: &TouchOptions, place: &Place, output: Output<'_>) -> Done {
    let expiry = end_of(options.ttl.as_deref(), options.expires_at.as_deref())?.unwrap_or(Expiry::Never);
    let namespace = place.namespace()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let names: Vec<&String> = options.names.iter().collect::<BTreeSet<_>>().into_iter().collect();
    let (mut answers, mut touched, mut missing, mut refused) = (Vec::new(), 0, 0, 0);
    let (mut gone, mut first, mut remarks, mut kept_for_others) = (0, None, Vec::new(), Vec::new());
    for (name, answer) in names.iter().zip(team.touch(names.iter().copied(), expiry)?) {
        answers.push(match answer {
            Ok(outcome) => {
                touched += 1;
                let memory = team.get(outcome.id)?;
                let over = memory.is_none().then_some(GONE);
                gone += u64::from(over.is_some());
                let end = memory.and_then(|memory| memory.expires_at);
                let kept = &outcome.kept_for_others;
                kept_for_others.extend(kept.iter().map(|kept| json!(kept)));
                let mut answer = json!({ "name": name, "id": outcome.id, "expires_at": end, "kept_for_others": kept });
                if let (Value::Object(members), Some(over)) = (&mut answer, over) {
                    members.insert("over".to_owned(), json!(over));
                }
                answer
            }
            Err(why) => {
                let why = tell_gone(&team, place)(why);
                let counter = if why.kind() == ErrorKind::NotFound { &mut missing } else { &mut refused };
                *counter += 1;
                let told = json!({ "name": name, "error": { "kind": why.kind().to_string(), "message": why.to_string() } });
                let why_not = why.to_string();
                remarks.push(if why_not.contains(name.as_str()) { why_not } else { format!("{name}: {why}") });
                first = first.or(Some(why));
                told
            }
        });
    }
    place.close(database)?;
    // One error is told once.
    remarks.iter().filter(|_| touched > 0 || remarks.len() > 1).for_each(|remark| output.remark(remark));
    if let (0, Some(why)) = (touched, first) {
        return Err(why.into());
    }
    let (missing, refused): (u64, u64) = (missing, refused);
    let document = json!({ "touched": touched, "missing": missing, "refused": refused, "answers": answers });
    place.done(output, document, |_| {
        let over = match gone {
            0 => String::new(),
            gone => format!("; {} ended at once, and the text is gone", told::of(gone, "memory", "memories")),
        };
        let stays = told::staying_for_others(&kept_for_others);
        format!("Touched {} in {namespace}{over}{stays}", told::of(touched, "memory", "memories"))
    })
}

/// `supersede`.
pub(crate) fn supersede(options: &SupersedeOptions, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let mode = fields::mode("--mode", &options.mode)?;
    let at: Option<Time> = options.at.as_deref().map(|at| named("--at", at.parse())).transpose()?;
    if let (Some(at), true) = (at, mode != SupersedeMode::Replaced) {
        return Err(Error::invalid("--at", "must be given with the mode replaced alone", at).into());
    }
    let end = end_of(options.ttl.as_deref(), options.expires_at.as_deref())?;
    let text =
        options.with_text.as_deref().map(|typed| typed::text(NEWER, typed, output.caller)).transpose()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    // A memory of many names is read once. What can't be read is told by the call itself.
    let ids = options.old.iter().filter_map(|old| team.id_of(old.as_str()).ok().flatten());
    let ids: BTreeSet<MemoryId> = ids.collect();
    // What the key of the new text says ends with the others.
    let own = options.key.as_deref().and_then(|key| memory_of(&team, key));
    let own = own.filter(|own| own.state == State::Live && !ids.contains(&own.id));
    let (document, kept) = match (&options.with, text) {
        (Some(new), _) => {
            let done = team.supersede_all(&options.old, new, mode, at).map_err(tell_gone(&team, place))?;
            let mut shown = shown(&database, &namespace, new)?;
            if let Value::Object(members) = &mut shown {
                members.insert("kept_for_others".to_owned(), json!(done.kept_for_others));
            }
            (shown, done.kept_for_others)
        }
        (None, text) => {
            let mut draft = Draft::new(text.unwrap_or_default());
            draft.key.clone_from(&options.key);
            draft.expiry = end;
            let outcome = team
                .replace(&options.old, draft, mode, at)
                .map_err(by_option("key", "--key"))
                .map_err(by_option("at", "--at"))
                .map_err(tell_gone(&team, place))?;
            let said = Said { end, until: false, from: at.is_some_and(|at| at > place.now()) };
            let now = place.present();
            let told = told_time(&team, written(&team, &outcome, &now), said, &now);
            (told, outcome.kept_for_others)
        }
    };
    let others: Vec<String> = kept.iter().map(|kept| called(&team, &kept.id.to_string())).collect();
    place.close(database)?;
    let old: BTreeSet<&String> = options.old.iter().collect();
    let old = told::of((old.len() + usize::from(own.is_some())) as u64, "memory", "memories");
    let ahead = at.filter(|at| *at > place.now());
    place.done(output, document, |answer| {
        let new = options.with.as_deref().unwrap_or(told::name(answer));
        let from =
            ahead.map(|at| format!(" from {} on", story::local(at, &place.present()))).unwrap_or_default();
        let over = answer.get("over").and_then(Value::as_str).map(|over| format!("; {over}"));
        format!("{new} takes the place of {old}{from}{}", over.unwrap_or_default())
    })?;
    if !others.is_empty() {
        output.remark(&format!(
            "{} {} live: a key stands for its own write, and others wrote the same text. An id stands for all of them",
            others.join(", "),
            if others.len() == 1 { "stays" } else { "stay" }
        ));
    }
    Ok(())
}

/// The memory that an id or key means, if it can be read.
fn memory_of(team: &Namespace, name: &str) -> Option<Memory> {
    team.look_up(name, false).ok().and_then(Got::into_memory)
}

/// `restore`.
pub(crate) fn restore(name: &str, place: &Place, output: Output<'_>) -> Done {
    let namespace = place.namespace()?;
    let database = place.open(Access::Write)?;
    let team = database.namespace(&namespace)?;
    let by = team.look_up(name, false).ok().and_then(|got| match got {
        Got::Memory(memory) => memory.superseded_by(),
        Got::Tombstone(_) => None,
    });
    let report = team.restore(name).map_err(tell_gone(&team, place)).map_err(of_file(name, place))?;
    // What took its place stays, if it has a writer of its own: then both are true. The restoration is done, so what can't be
    // read is no failure of it.
    let beside =
        by.and_then(|by| team.get(by).ok().flatten()).filter(|memory| memory.superseded_by().is_none());
    let beside = beside.map_or_else(String::new, |memory| {
        let name = called(&team, &memory.id.to_string());
        match memory.kind {
            // Forgetting a summary erases all that it covers.
            Kind::Summary | Kind::ConsolidatedSummary => format!(
                "; {name} stays beside it, for all that it covers (`explain {}` names the run, and `undo` of the run brings all of \
                 these back)",
                memory.id
            ),
            _ => format!("; {name} stays beside it (`forget {}` takes it away)", memory.id),
        }
    });
    let mut document = shown(&database, &namespace, &report.id.to_string())?;
    if let Value::Object(members) = &mut document {
        members.insert("keys_taken".to_owned(), json!(report.keys_taken));
        members.insert("replaced".to_owned(), json!(report.replaced));
    }
    place.close(database)?;
    let now = place.present();
    place.done(output, document, |answer| {
        let taken = report.keys_taken.join(", ");
        let taken = if taken.is_empty() { taken } else { format!("; another memory has {taken} by now") };
        let replaced: Vec<String> = report.replaced.iter().map(ToString::to_string).collect();
        let replaced = match replaced.join(", ") {
            ids if ids.is_empty() => ids,
            ids => format!("; it replaces what its key said since (`restore {ids}` brings that back)"),
        };
        match answer.get("state").map(|_| story::condition_of(answer, &now)) {
            Some(live) if live == "live" => {
                format!("{} is live again{taken}{replaced}{beside}", told::name(answer))
            }
            Some(ended) => format!("{} is back, and {ended}{taken}{beside}", told::name(answer)),
            None => format!("The end of {name} had come meanwhile, so it is gone"),
        }
    })
}

/// The error of a name that leads to no memory, and is that of a file: a backup is put back without a command.
fn of_file(name: &str, place: &Place) -> impl Fn(Error) -> Error {
    let is_file = place.caller().meant(Path::new(name)).is_ok_and(|path| path.is_file());
    move |error| {
        match error.kind() {
        ErrorKind::NotFound if is_file => Error::Conflict {
            what: format!("restore {name}"),
            why: "it is a file, and restore brings a memory back. A backup is a database: open it with --db, or move it to the place of \
                  the old file"
                .to_owned(),
        },
        _ => error,
    }
    }
}

/// A memory as a document.
fn shown(database: &Database, namespace: &NamespaceName, name: &str) -> Result<Value> {
    let got = database.namespace(namespace)?.look_up(name, false)?;
    serde_json::from_str(&answers::got_text(namespace, &got, false))
        .map_err(|why| Error::invalid("memory", "must be JSON", why))
}
