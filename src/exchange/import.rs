//! Memories of a file into a database, batch by batch, each whole or not at all.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, Read};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::engine::{AtWork, Database, SOURCE_NAMESPACE, WriteOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::exchange::adapters;
use crate::exchange::{LineReader, NpyReader, ParsedLine, Records};
use crate::limits::{BATCH_ROWS_MAX, DOCUMENT_BYTES_MAX, within};
use crate::model::closed::closed_set;
use crate::model::{
    CheckedDraft, Decision, Draft, Joint, Kept, MemoryId, NamespaceName, Outcome, RunId, check_metadata,
};

closed_set! {
    /// How the file of an import is written.
    #[derive(Default)]
    pub Format "format" {
        /// One memory a line, as [`parse_line`](crate::exchange::parse_line) reads it.
        #[default]
        Oubliette = 0, "oubliette";
        /// The file of the knowledge-graph server `server-memory`.
        ServerMemory = 1, "server-memory";
        /// The answer of mem0's `get_all`, one document.
        Mem0 = 2, "mem0";
    }
}

/// Who watches an import. Every method has a default that does nothing; `()` watches nothing.
pub trait Observer {
    /// The import of a namespace begins: its writes can be taken back by `run`.
    ///
    /// # Errors
    /// What is returned ends the import.
    fn started(&mut self, _namespace: &NamespaceName, _run: RunId) -> Result<()> {
        Ok(())
    }

    /// A batch was committed and this became of its line `line`.
    ///
    /// # Errors
    /// What is returned ends the import.
    fn decided(&mut self, _line: u64, _namespace: &NamespaceName, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }

    /// A bad line was left out.
    fn bad(&mut self, _error: &Error) {}

    /// Something in a line was read otherwise than it stands there.
    fn warned(&mut self, _line: u64, _warning: &str) {}

    /// So many lines were read and written, or left out.
    fn progress(&mut self, _read: u64) {}
}

impl Observer for () {}

/// An import.
///
/// ```
/// use oubliette::exchange::{Import, LineReader};
/// # let folder = tempfile::tempdir()?;
/// let db = oubliette::Database::open(folder.path().join("m.oub"))?;
/// let lines = br#"{"key":"a","text":"Ann prefers tea"}
/// {"key":"b","text":"Bob prefers coffee"}"#;
/// let report = Import::default().run(&db, LineReader::new(lines.as_slice(), "lines"), &mut ())?;
/// assert_eq!((report.read, report.stored), (2, 2));
/// let again = Import::default().run(&db, LineReader::new(lines.as_slice(), "lines"), &mut ())?;
/// assert_eq!((again.stored, again.unchanged), (0, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Import {
    /// Where lines go that name no namespace.
    pub namespace: NamespaceName,
    /// Where every line goes, whatever namespace it names. A memory that named another namespace has the name as
    /// `import_source_namespace` in its metadata, by which [`Database::split_namespace`] takes the namespace apart again.
    pub into: Option<NamespaceName>,
    /// Move unknown members of a line into the metadata.
    pub lenient: bool,
    /// Rows of one batch: 1 to 100,000; 1,000 by default.
    pub batch_rows: usize,
    /// Store byte-equal content as rows of their own. Keys still decide.
    pub no_dedup: bool,
    /// Leave out the rules that belong to the instructions.
    pub skip_instructions: bool,
    /// Store every draft as it is given, as a row of its own, whatever is near or equal. Keys still revise. Rows of an
    /// export are put back as they were.
    pub verbatim: bool,
    /// Leave bad lines out and go on, instead of giving up their batch and the rest.
    pub skip_bad: bool,
    /// How the file is written.
    pub format: Format,
    /// A tag for every memory to be; rows of an export are put back as they were.
    pub tag: Option<String>,
}

impl Default for Import {
    fn default() -> Self {
        Import {
            namespace: NamespaceName::default(),
            into: None,
            lenient: false,
            batch_rows: 1_000,
            no_dedup: false,
            skip_instructions: false,
            verbatim: false,
            skip_bad: false,
            format: Format::default(),
            tag: None,
        }
    }
}

/// What became of the lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// The runs, by namespace in the order of their first line: `undo` takes them back.
    #[serde(serialize_with = "with_namespaces")]
    pub runs: Vec<(NamespaceName, RunId)>,
    /// Memories and tombstones read, bad ones included.
    pub read: u64,
    /// Memories of their own.
    pub stored: u64,
    /// Of these, memories that came with their ids, as an export writes them. They keep the runs that first brought them, so `undo` of
    /// this import takes none of them away.
    pub put_back: u64,
    /// The same writes again.
    pub unchanged: u64,
    /// Memories of which fields changed.
    pub updated: u64,
    /// Writes that memories with the same content stand for as well.
    pub reinforced: u64,
    /// Of these, writes that gave a session, an author, an instant or another field of which the memory says something else. With
    /// `verbatim` each is stored apart.
    pub not_taken: u64,
    /// New content under old keys.
    pub revised: u64,
    /// Messages that are events of their families and no memories of their own.
    pub aggregated: u64,
    /// Writes that a rule, or a later snapshot, made unnecessary.
    pub ignored: u64,
    /// Writes that a rule sent to another partition, whatever became of them there.
    pub routed: u64,
    /// Writes that a rule united with the memory of a key.
    pub consolidated: u64,
    /// Tombstones of an export put back.
    pub tombstones: u64,
    /// Other lines of an export put back: runs and their steps, families of messages in numbers, messages, contexts, goals.
    pub told: u64,
    /// Links and provenance of an export that lead to memories which are nowhere: they are left out.
    pub dangling: u64,
    /// Memories of an export that have no vector now, because theirs is of another embedding space than the vectors of the
    /// database. The embedder of the handle, or the pass `embed`, makes new ones. Where the vectors of the file are the caller's, the
    /// memories wait until the caller gives them vectors.
    pub vectors_left_out: u64,
    /// Memories of an export without a text whose vector is of another embedding space than the vectors of the database. They are
    /// kept as they are, and no search finds them.
    pub vectors_apart: u64,
    /// Lines left out.
    pub bad: u64,
    /// Values that were read otherwise than they stand there, and lines of an export that somebody has edited, which are left
    /// out.
    pub warnings: u64,
}

/// The runs, each as an object of its namespace and its id.
fn with_namespaces<S: Serializer>(
    runs: &[(NamespaceName, RunId)],
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(runs.iter().map(|(namespace, run)| json!({ "namespace": namespace, "run": run })))
}

impl Import {
    /// Imports lines whose vectors, if any, stand in them.
    ///
    /// ```
    /// use oubliette::exchange::{Import, LineReader};
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let lines = b"{\"text\": \"Ann prefers tea\"}\n{\"text\": 7}";
    /// let read = || LineReader::new(lines.as_slice(), "lines");
    /// assert!(Import::default().run(&db, read(), &mut ()).unwrap_err().to_string().starts_with("line 2: "));
    /// let import = Import { skip_bad: true, ..Import::default() };
    /// let report = import.run(&db, read(), &mut ())?;
    /// assert_eq!((report.stored, report.bad), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Import::run_with_vectors`].
    pub fn run<L: BufRead>(
        &self,
        database: &Database,
        lines: LineReader<L>,
        observer: &mut dyn Observer,
    ) -> Result<ImportReport> {
        self.run_with_vectors::<L, std::io::Empty>(database, lines, None, observer)
    }

    /// Imports lines; row i of `vectors` belongs to the i-th of them. Consecutive lines of one namespace share
    /// batches, and a batch is written whole or not at all. A line of an export is put back as it was.
    ///
    /// ```
    /// use oubliette::exchange::{Import, LineReader, NpyReader, NpyWriter};
    /// use std::io::Cursor;
    /// # let folder = tempfile::tempdir()?;
    /// # let db = oubliette::Database::open(folder.path().join("m.oub"))?;
    /// let mut writer = NpyWriter::new(Cursor::new(Vec::new()), 2, "v.npy")?;
    /// writer.write_row(&[0.6, 0.8])?;
    /// let bytes = writer.finish()?.into_inner();
    /// let read = |text: &'static str| LineReader::new(text.as_bytes(), "lines");
    /// let vectors = || NpyReader::from_reader(bytes.as_slice(), "v.npy").map(Some);
    /// let report = Import::default().run_with_vectors(&db, read("{\"text\": \"tea\"}"), vectors()?, &mut ())?;
    /// assert_eq!((report.stored, db.dimensions()?), (1, Some(2)));
    /// let two = read("{\"text\": \"milk\"}\n{\"text\": \"salt\"}");
    /// assert!(Import::default().run_with_vectors(&db, two, vectors()?, &mut ()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Invalid`, `NotFound`, `KeyInOtherPartition` or `Conflict` of a line, with its number in the file: of its
    ///   batch nothing is written, the batches before it stay. With [`Import::skip_bad`] such a line is left out.
    /// - `Invalid` for a batch size outside 1 to 100,000, and for vectors beside the file of another tool.
    /// - `Invalid` for rows of `vectors` that end before the lines, or after them.
    /// - Errors of the files and of the database.
    pub fn run_with_vectors<L: BufRead, V: Read>(
        &self,
        database: &Database,
        lines: LineReader<L>,
        vectors: Option<NpyReader<V>>,
        observer: &mut dyn Observer,
    ) -> Result<ImportReport> {
        within("batch", self.batch_rows, 1..=BATCH_ROWS_MAX)?;
        if self.format != Format::Oubliette && vectors.is_some() {
            let why = "must not stand beside the file of another tool";
            return Err(Error::invalid("vectors", why, self.format.as_str()));
        }
        let mut running = Running {
            import: self,
            database,
            observer,
            report: ImportReport::default(),
            runs: BTreeMap::new(),
            batch: Vec::new(),
            namespace: self.into.as_ref().unwrap_or(&self.namespace).clone(),
            owed: None,
            ahead: BTreeMap::new(),
        };
        match self.format {
            Format::Oubliette => running.records(Records::new(lines, vectors, self.lenient))?,
            Format::ServerMemory => running.server_memory(lines)?,
            Format::Mem0 => running.mem0(lines)?,
        }
        running.finish()
    }
}

/// Where in the file a row stands.
#[derive(Clone, Copy, Debug)]
enum FilePosition {
    Line(u64),
    /// Number in a document, counted from 1.
    Item(u64),
}

impl FilePosition {
    fn number(self) -> u64 {
        match self {
            FilePosition::Line(number) | FilePosition::Item(number) => number,
        }
    }

    /// The error, said of this place.
    fn blame(self, error: Error) -> Error {
        match (self, error) {
            (FilePosition::Line(line), error) => error.at_line(line),
            (FilePosition::Item(item), Error::Invalid { field, why, value }) => {
                Error::Invalid { field: format!("item {item}: {field}"), why, value }
            }
            (FilePosition::Item(_), error) => error,
        }
    }
}

/// What is to be written of a line.
#[derive(Clone, Debug)]
enum ImportRow {
    Draft(Box<Draft>),
    Kept(Kept),
}

impl ImportRow {
    fn is_kept(&self) -> bool {
        matches!(self, ImportRow::Kept(_))
    }

    /// Notes in the metadata of a memory which namespace its line had named. Metadata without room for the note are as bad as
    /// metadata that are too long.
    fn stamp(&mut self, named: &NamespaceName) -> Result<()> {
        let metadata = match self {
            ImportRow::Draft(draft) => draft.fields.metadata.get_or_insert_with(|| Value::Object(Map::new())),
            ImportRow::Kept(Kept::Memory(memory)) => &mut memory.metadata,
            ImportRow::Kept(_) => return Ok(()),
        };
        if let Value::Object(members) = metadata {
            members.insert(SOURCE_NAMESPACE.to_owned(), named.as_str().into());
        }
        check_metadata("metadata", metadata)
    }
}

/// A row that waits for its commit.
struct Waiting {
    place: FilePosition,
    row: ImportRow,
    /// Whether the row stands for itself: no row before it must be in the same transaction.
    begins: bool,
}

/// The number of rows that are written next: at most `most`, but for those that belong together.
fn part_of(waiting: &VecDeque<Waiting>, most: usize) -> usize {
    let mut end = 0;
    for at in 1..=waiting.len() {
        if waiting.get(at).is_some_and(|next| !next.begins) {
            continue;
        }
        if at > most && end > 0 {
            break;
        }
        end = at;
    }
    end
}

/// Lets all rows but a bad one wait again, and says how many of them stood before it. What belongs to a bad row stands for
/// itself from then on, for it is bad without that row, each line of it for a reason of its own.
fn put_back(mut rows: Vec<Waiting>, at: usize, waiting: &mut VecDeque<Waiting>) -> usize {
    let is_begin = |row: &Waiting| row.begins;
    let first = rows.iter().take(at + 1).rposition(is_begin).unwrap_or(0);
    let end = rows.iter().skip(at + 1).position(is_begin).map_or(rows.len(), |next| at + 1 + next);
    rows.iter_mut().take(end).skip(first).for_each(|row| row.begins = true);
    rows.remove(at);
    for row in rows.into_iter().rev() {
        waiting.push_front(row);
    }
    first
}

/// The number of the line that brought the row at a position of a part, counted from 1.
fn line_of(lines: &[u64], place: u64) -> u64 {
    usize::try_from(place - 1).ok().and_then(|at| lines.get(at)).copied().unwrap_or_default()
}

/// An import under way.
struct Running<'a> {
    import: &'a Import,
    database: &'a Database,
    observer: &'a mut dyn Observer,
    report: ImportReport,
    /// The runs, at work until the import ends or fails.
    runs: BTreeMap<NamespaceName, AtWork>,
    /// Rows that wait for their commit, all drafts or all of an export, all of `namespace`.
    batch: Vec<Waiting>,
    namespace: NamespaceName,
    /// Whose lines must stand in one batch with what follows, and how many are still to come: the members of an aggregate,
    /// the steps of a run.
    owed: Option<([u8; 16], u64)>,
    /// Links and provenance that lead to memories of later lines, by these: the line and the end that it names.
    ahead: BTreeMap<(NamespaceName, MemoryId), Vec<(u64, Joint)>>,
}

impl Running<'_> {
    fn records<L: BufRead, V: Read>(&mut self, records: Records<L, V>) -> Result<()> {
        for (number, record) in records {
            let place = FilePosition::Line(number);
            match record {
                Ok(ParsedLine::Draft(line)) => {
                    for warning in &line.warnings {
                        self.report.warnings += 1;
                        self.observer.warned(number, warning);
                    }
                    self.draft(place, line.namespace, line.draft)?;
                }
                Ok(ParsedLine::Memory(memory)) => {
                    let namespace = memory.namespace.clone();
                    self.offer(place, namespace, ImportRow::Kept(Kept::Memory(memory)))?;
                }
                Ok(ParsedLine::Kept(line)) => {
                    let namespace = line.namespace.unwrap_or_else(|| self.import.namespace.clone());
                    self.offer(place, namespace, ImportRow::Kept(line.row))?;
                }
                Err(error) => {
                    let whole_file = is_about_vectors(&error);
                    self.bad(error, whole_file)?;
                }
            }
        }
        Ok(())
    }

    fn server_memory<L: BufRead>(&mut self, mut lines: LineReader<L>) -> Result<()> {
        loop {
            let (number, drafts) = match lines.next_line() {
                Ok(None) => return Ok(()),
                Ok(Some((number, text))) => (number, adapters::server_memory(text)),
                Err(Error::Line { line, source }) => (line, Err(*source)),
                Err(error) => return Err(error),
            };
            match drafts {
                Ok(drafts) => {
                    for draft in drafts {
                        self.draft(FilePosition::Line(number), None, draft)?;
                    }
                }
                Err(error) => self.bad(error.at_line(number), false)?,
            }
        }
    }

    fn mem0<L: BufRead>(&mut self, lines: LineReader<L>) -> Result<()> {
        let document = lines.into_document(DOCUMENT_BYTES_MAX)?;
        for (number, draft) in (1..).zip(adapters::mem0(&document)?) {
            let place = FilePosition::Item(number);
            match draft {
                Ok(draft) => self.draft(place, None, draft)?,
                Err(error) => self.bad(place.blame(error), false)?,
            }
        }
        Ok(())
    }

    fn draft(
        &mut self,
        place: FilePosition,
        namespace: Option<NamespaceName>,
        mut draft: Draft,
    ) -> Result<()> {
        if let Some(tag) = &self.import.tag {
            draft = draft.tag(tag);
        }
        let namespace = namespace.unwrap_or_else(|| self.import.namespace.clone());
        self.offer(place, namespace, ImportRow::Draft(Box::new(draft)))
    }

    fn offer(&mut self, place: FilePosition, named: NamespaceName, mut row: ImportRow) -> Result<()> {
        let namespace = self.import.into.as_ref().unwrap_or(&named).clone();
        if namespace != named
            && let Err(error) = row.stamp(&named)
        {
            return self.bad(place.blame(error), false);
        }
        self.report.read += 1;
        let other = self.batch.last().is_some_and(|last| last.row.is_kept() != row.is_kept());
        if other || namespace != self.namespace {
            self.flush()?;
            self.namespace = namespace;
        }
        let begins = !self.owe(&row);
        self.batch.push(Waiting { place, row, begins });
        if self.batch.len() >= self.import.batch_rows && self.owed.is_none() {
            self.flush()?;
        }
        Ok(())
    }

    /// Notes whether the lines that follow belong to this one, and says whether it belongs to the one before.
    fn owe(&mut self, row: &ImportRow) -> bool {
        let member = |of: [u8; 16]| self.owed.filter(|(owner, _)| *owner == of).map(|(_, left)| left - 1);
        let ImportRow::Kept(row) = row else {
            self.owed = None;
            return false;
        };
        let owner = match row {
            Kept::Aggregate(aggregate) => Some(*aggregate.id.as_bytes()),
            Kept::Run(run) => Some(*run.id.as_bytes()),
            Kept::Event(event, _) => event.aggregate_id.map(|id| *id.as_bytes()),
            Kept::Step(step) => step.run.map(|id| *id.as_bytes()),
            _ => None,
        };
        let brings = matches!(row, Kept::Aggregate(_) | Kept::Run(_));
        let left = if brings { row.lines_behind() } else { owner.and_then(member).unwrap_or(0) };
        let belongs = !brings && owner.is_some_and(|owner| self.owed.is_some_and(|(of, _)| of == owner));
        self.owed = owner.zip(Some(left)).filter(|(_, left)| *left > 0);
        belongs
    }

    /// A line that could not be read.
    fn bad(&mut self, error: Error, whole_file: bool) -> Result<()> {
        if whole_file || !self.import.skip_bad || !is_of_a_line(&error) {
            return Err(error);
        }
        self.report.read += 1;
        self.leave_out(&error);
        Ok(())
    }

    fn leave_out(&mut self, error: &Error) {
        self.report.bad += 1;
        self.observer.bad(error);
    }

    /// Writes what waits, in one transaction. With `skip_bad` a bad row is left out, what stood before it in the transaction is
    /// written, and then what follows: twice as many rows each time, until the next bad one. So a bad row makes no more begin anew
    /// than was written since the one before.
    fn flush(&mut self) -> Result<()> {
        let mut waiting = VecDeque::from(std::mem::take(&mut self.batch));
        let mut most = usize::MAX;
        while !waiting.is_empty() {
            let rows: Vec<Waiting> = waiting.drain(..part_of(&waiting, most)).collect();
            let Err((at, error)) = self.write(&rows) else {
                most = most.saturating_mul(2);
                continue;
            };
            let bad = at.and_then(|at| Some((at, rows.get(at)?.place)));
            let Some((at, place)) = bad else { return Err(error) };
            let error = place.blame(error);
            if !self.import.skip_bad || !is_of_a_line(&error) {
                return Err(error);
            }
            self.leave_out(&error);
            most = put_back(rows, at, &mut waiting).max(1);
        }
        self.observer.progress(self.report.read);
        Ok(())
    }

    /// Writes rows in one transaction, or tells which of them is bad.
    fn write(&mut self, rows: &[Waiting]) -> Result<(), (Option<usize>, Error)> {
        let run = match self.runs.get(&self.namespace) {
            Some(at_work) => at_work.run(),
            None => {
                // Nothing at all is written for a file whose first batch is bad, not even the run.
                self.check(rows)?;
                self.start().map_err(|error| (None, error))?
            }
        };
        let outcomes = self.commit(rows, run).map_err(|error| match error {
            Error::Line { line, source } => (usize::try_from(line - 1).ok(), *source),
            error if rows.len() == 1 && is_of_a_line(&error) => (Some(0), error),
            error => (None, error),
        })?;
        for (Waiting { place, row, .. }, outcome) in rows.iter().zip(&outcomes) {
            let counted = match outcome {
                None if matches!(row, ImportRow::Kept(Kept::Tombstone(_))) => &mut self.report.tombstones,
                None => &mut self.report.told,
                Some(outcome) => match &outcome.decision {
                    Decision::Stored => &mut self.report.stored,
                    Decision::Unchanged => &mut self.report.unchanged,
                    Decision::Updated => &mut self.report.updated,
                    Decision::Reinforced => &mut self.report.reinforced,
                    Decision::Revised { .. } => &mut self.report.revised,
                    Decision::Aggregated { .. } => &mut self.report.aggregated,
                    Decision::Ignored => &mut self.report.ignored,
                    Decision::Routed { .. } => &mut self.report.routed,
                    Decision::Consolidated => &mut self.report.consolidated,
                },
            };
            *counted += 1;
            if let Some(outcome) = outcome {
                let is_put_back = row.is_kept() && outcome.decision == Decision::Stored;
                self.report.put_back += u64::from(is_put_back);
                self.report.not_taken += u64::from(!outcome.not_taken.is_empty());
                let decided = self.observer.decided(place.number(), &self.namespace, outcome);
                decided.map_err(|error| (None, error))?;
            }
        }
        self.join(rows).map_err(|error| (None, error))
    }

    /// Joins the memories of earlier lines to those that were just written.
    fn join(&mut self, rows: &[Waiting]) -> Result<()> {
        if self.ahead.is_empty() {
            return Ok(());
        }
        let mut joints = Vec::new();
        for Waiting { row, .. } in rows {
            let id = match row {
                ImportRow::Kept(Kept::Memory(memory)) => memory.id,
                ImportRow::Kept(Kept::Tombstone(tombstone)) => tombstone.id,
                ImportRow::Draft(_) | ImportRow::Kept(_) => continue,
            };
            joints.extend(self.ahead.remove(&(self.namespace.clone(), id)).into_iter().flatten());
        }
        if joints.is_empty() {
            return Ok(());
        }
        let (lines, kept): (Vec<u64>, Vec<Kept>) =
            joints.into_iter().map(|(line, joint)| (line, Kept::Joint(joint))).unzip();
        let part = self.database.namespace(&self.namespace)?.recreate_part(kept)?;
        self.wait(&lines, part.ahead);
        Ok(())
    }

    /// Keeps what leads ahead, with the number of its line.
    fn wait(&mut self, lines: &[u64], ahead: Vec<(u64, Joint)>) {
        for (place, joint) in ahead {
            let to = (self.namespace.clone(), joint.to);
            self.ahead.entry(to).or_default().push((line_of(lines, place), joint));
        }
    }

    /// Warns of edited lines, which change nothing.
    fn warn_of_edits(&mut self, lines: &[u64], differing: &[(u64, Vec<&'static str>)]) {
        for (place, fields) in differing {
            let warning = format!(
                "the line is of an export, and its memory is there already: it stays as it is, though the line has another {}. \
                 An edit is a line with the key, the text and the fields alone",
                fields.join(", ")
            );
            self.report.warnings += 1;
            self.observer.warned(line_of(lines, *place), &warning);
        }
    }

    fn commit(&mut self, rows: &[Waiting], run: RunId) -> Result<Vec<Option<Outcome>>> {
        let (mut drafts, mut kept) = (Vec::new(), Vec::new());
        for Waiting { row, .. } in rows {
            match row {
                ImportRow::Draft(draft) => drafts.push((**draft).clone()),
                ImportRow::Kept(row) => kept.push(row.clone()),
            }
        }
        if drafts.is_empty() {
            let part = self.database.namespace(&self.namespace)?.recreate_part_of(run, kept)?;
            let lines: Vec<u64> = rows.iter().map(|row| row.place.number()).collect();
            self.wait(&lines, part.ahead);
            self.warn_of_edits(&lines, &part.differing);
            self.report.vectors_left_out += part.vectors_left_out;
            self.report.vectors_apart += part.vectors_apart;
            return Ok(part.outcomes);
        }
        let how = WriteOptions {
            run: Some(run),
            no_dedup: self.import.no_dedup,
            skip_instructions: self.import.skip_instructions,
            verbatim: self.import.verbatim,
            keep_part: false,
        };
        let outcomes = self.database.namespace(&self.namespace)?.add_all(drafts, &how)?;
        Ok(outcomes.into_iter().map(Some).collect())
    }

    /// What can be said of rows without a transaction.
    fn check(&self, rows: &[Waiting]) -> Result<(), (Option<usize>, Error)> {
        let mut dim = self.database.dimensions().map_err(|error| (None, error))?;
        for (at, Waiting { row, .. }) in rows.iter().enumerate() {
            let ImportRow::Draft(draft) = row else { continue };
            let checked = CheckedDraft::new((**draft).clone());
            checked.and_then(|_| check_vector(draft, &mut dim)).map_err(|error| (Some(at), error))?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<RunId> {
        let at_work = self.database.namespace(&self.namespace)?.begin_import()?;
        let run = at_work.run();
        self.runs.insert(self.namespace.clone(), at_work);
        self.report.runs.push((self.namespace.clone(), run));
        self.observer.started(&self.namespace, run)?;
        Ok(run)
    }

    fn finish(mut self) -> Result<ImportReport> {
        self.flush()?;
        for ((_, to), joints) in std::mem::take(&mut self.ahead) {
            for (line, joint) in joints {
                let what = if joint.number.is_some() { "a link" } else { "provenance" };
                self.report.dangling += 1;
                self.observer.warned(line, &format!("{what} to {to}, which is nowhere, was left out"));
            }
        }
        for (namespace, at_work) in &self.runs {
            self.database.namespace(namespace)?.finish_import(at_work.run())?;
        }
        Ok(self.report)
    }
}

/// Whether a vector has the dimensions of those before it, and a direction.
fn check_vector(draft: &Draft, dim: &mut Option<usize>) -> Result<()> {
    let Some(vector) = &draft.vector else { return Ok(()) };
    let dim = *dim.get_or_insert(vector.len());
    if vector.len() != dim {
        return Err(Error::invalid("vector", format!("must have {dim} dimensions"), vector.len()));
    }
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(Error::invalid("vector", "must be finite", "a number that is not"));
    }
    if vector.iter().all(|number| *number == 0.0) {
        return Err(Error::invalid("vector", "must not be zero", "zeros"));
    }
    Ok(())
}

/// Whether an error is one line's fault, so that the others can go on without it.
fn is_of_a_line(error: &Error) -> bool {
    let kind = error.kind();
    matches!(
        kind,
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::KeyInOtherPartition | ErrorKind::Conflict
    )
}

/// Whether an error is one of the vectors' file: what follows it would get the vectors of other lines.
fn is_about_vectors(error: &Error) -> bool {
    match error {
        Error::Line { source, .. } => is_about_vectors(source),
        Error::Invalid { field, .. } => field == "vectors",
        _ => false,
    }
}
