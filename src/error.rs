//! The one public error: what happened, and what the caller should do next.
//!
//! Rooms below build variants of [`Error`] with plain values; no type of an upper room appears here.
//! Bad input is [`Error::Invalid`] and names the field, the bound and the value. Bytes from disk that do
//! not say what they should are [`Error::Corrupted`]. Bugs of our own are assertions, not errors.

use std::fmt;
use std::path::PathBuf;

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the values that show it.
///
/// Match on [`Error::kind`] to decide what to do; the variants carry the details. The text says everything, the error below
/// too where there is one: that one is a field, and not the [`source`](std::error::Error::source), or a report of a chain of
/// errors would say it twice. `r#source` tells so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that the caller gave breaks a bound. Nothing was written; correct the field and call again.
    #[error("{field}: {why} (got {value})")]
    Invalid {
        /// Name of the field, as in JSON.
        field: String,
        /// The bound that is broken, in words with its number.
        why: String,
        /// The offending value, shortened to 80 characters.
        value: String,
    },
    /// A line of a file is bad. Nothing of its batch was written.
    #[error("line {line}: {source}")]
    Line {
        /// Number of the line, counted from 1.
        line: u64,
        /// What is wrong with it.
        r#source: Box<Error>,
    },
    /// A run of summaries failed, and its plan could not be given up either. The plan holds its sources until it is given up or
    /// expires.
    #[error("{source}; plan {plan} stays open: {abort}")]
    PlanOpen {
        /// The plan.
        plan: String,
        /// Why the run failed.
        r#source: Box<Error>,
        /// Why the plan could not be given up.
        abort: Box<Error>,
    },
    /// Maintenance failed after it had done a part of its work. That part stands, and the run takes it back.
    #[error("{source}; what was done before stands, as run {run}")]
    PartlyDone {
        /// The run.
        run: String,
        /// Why it failed.
        r#source: Box<Error>,
    },
    /// No memory, namespace, run or plan has this name.
    #[error("{what} not found: {name}")]
    NotFound {
        /// What was looked for: `memory`, `namespace`, `run` …
        what: &'static str,
        /// The id or key that was asked for.
        name: String,
    },
    /// The key is held by a current memory of another partition of the namespace.
    #[error("key {key:?} is held in {}", part(partition))]
    KeyInOtherPartition {
        /// The key.
        key: String,
        /// Where it is held: `shared` or the agent's id.
        partition: String,
    },
    /// A text query needs an embedder or a full-text index, and this database has neither.
    #[error("a text query needs an embedder, and this database has none")]
    NoEmbedder,
    /// The embedder did not give the vectors that it was asked for.
    #[error("embedder {embedder}: {why}")]
    Embedding {
        /// Id of the embedder.
        embedder: String,
        /// What it said, or what is wrong with its answer.
        why: String,
    },
    /// The embedder that this handle was opened with makes vectors of another space than the database holds.
    #[error("the database holds vectors of {stored}, and the embedder is {given}")]
    OtherSpace {
        /// The embedding space of the database.
        stored: String,
        /// That of the embedder.
        given: String,
    },
    /// A read reaches back behind content that maintenance has erased.
    #[error("maintenance has erased a part of the past before {}", horizon(*known, *valid))]
    BeforePurgeHorizon {
        /// Earliest known-at that can still be answered, milliseconds since 1970; none where any can.
        known: Option<i64>,
        /// Earliest valid-at that can still be answered, milliseconds since 1970; none where any can.
        valid: Option<i64>,
    },
    /// The operation contradicts the state of the memory: superseding itself, a cycle, a row that is gone.
    #[error("{what}: {why}")]
    Conflict {
        /// The operation or the subject.
        what: String,
        /// Why it can't be done.
        why: String,
    },
    /// A summary or a plan of summaries is refused, and nothing has changed.
    #[error("{code}: {why}")]
    Refused {
        /// The rule, as the name of a [`Refusal`](crate::gc::Refusal).
        code: &'static str,
        /// Why, in words.
        why: String,
        /// JSON pointers to the values of the summary that are wrong.
        pointers: Vec<String>,
    },
    /// Another process (or another handle of this one) has the file open for writing.
    #[error("{} is open in another process, or already in this one", path.display())]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// The file is not a database of ours.
    #[error("{}: not an Oubliette database: {why}", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// The file was written by a build of another file format.
    #[error("file format {found}; this build reads format {expected}")]
    Format {
        /// Version in the file.
        found: u32,
        /// Version that this build reads and writes.
        expected: u32,
    },
    /// Bytes from the disk do not say what they should.
    #[error("{}", corrupted(table, key, why))]
    Corrupted {
        /// Table name, as in `docs/format.md`.
        table: &'static str,
        /// The key, in hexadecimal.
        key: String,
        /// What does not fit.
        why: String,
    },
    /// The policy document is refused at load.
    #[error("policy {place}: {why}")]
    Policy {
        /// Key of the document, or its line.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// The operating system refused.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its answer.
        r#source: std::io::Error,
    },
    /// The storage failed in the middle of a transaction. Nothing of it is visible, the transactions of the call before it
    /// stand, and the handle has recovered by itself: the call can be made again.
    #[error("storage failed, and what was being written is not there: {why}")]
    Retry {
        /// What the storage said.
        why: String,
    },
    /// The storage can't go on: the file could not be opened again after a failure.
    #[error("storage unavailable: {why}")]
    Unavailable {
        /// What the storage said.
        why: String,
    },
    /// Changes behind the cursor were removed from the journal for their age.
    #[error("the changes since this cursor are no longer all there; the oldest has the number {oldest}")]
    CursorTooOld {
        /// The earliest cursor that can still be answered.
        oldest: u64,
    },
    /// This handle was closed.
    #[error("the database is closed")]
    Closed,
    /// A write on a handle that was opened for reading.
    #[error("the database is open for reading only")]
    ReadOnly,
    /// A snapshot was held past its lease, or its file was compacted or opened again after a failure; take a new one and go
    /// on from the last cursor.
    #[error(
        "the snapshot is gone: its lease of {lease_ms} ms is over, or its file was replaced or opened again"
    )]
    SnapshotExpired {
        /// The lease, in milliseconds.
        lease_ms: u64,
    },
}

/// The sort of an [`Error`], for deciding what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's input breaks a bound.
    Invalid,
    /// There is nothing by that name.
    NotFound,
    /// The key belongs to another partition.
    KeyInOtherPartition,
    /// A text query without an embedder.
    NoEmbedder,
    /// The embedder failed.
    Embedding,
    /// The embedder is not the one of the database.
    OtherSpace,
    /// The past asked for was purged.
    BeforePurgeHorizon,
    /// The journal no longer reaches back to the cursor.
    CursorTooOld,
    /// The state of the memory forbids it.
    Conflict,
    /// A summary is refused.
    Refused,
    /// The file is open elsewhere.
    Locked,
    /// Not a database file.
    NotADatabase,
    /// Another format version.
    Format,
    /// Damaged bytes.
    Corrupted,
    /// The policy document is refused.
    Policy,
    /// The operating system refused.
    Io,
    /// A transaction failed and was rolled back.
    Retry,
    /// The storage is gone.
    Unavailable,
    /// The handle is closed.
    Closed,
    /// The handle only reads.
    ReadOnly,
    /// The snapshot is too old.
    SnapshotExpired,
}

/// For conversions that can't fail, where others of their kind can.
impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Error {
    /// A broken bound: the field, the bound in words and the value, shortened to 80 characters.
    ///
    /// ```
    /// use oubliette::{Error, ErrorKind};
    /// let why = Error::invalid("threads", "must be 1 to 8", 9);
    /// assert_eq!((why.to_string().as_str(), why.kind()), ("threads: must be 1 to 8 (got 9)", ErrorKind::Invalid));
    /// ```
    pub fn invalid(field: impl Into<String>, why: impl Into<String>, value: impl fmt::Display) -> Self {
        Error::Invalid { field: field.into(), why: why.into(), value: shorten(&value.to_string()) }
    }

    /// What the file system answered to an action on a file.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io { action, path: path.into(), source }
    }

    /// Damaged bytes under `key` of `table`.
    ///
    /// ```
    /// use oubliette::{Error, ErrorKind};
    /// let why = Error::corrupted("memory", &[0xab], "the checksum does not match");
    /// assert_eq!(why.kind(), ErrorKind::Corrupted);
    /// ```
    pub fn corrupted(table: &'static str, key: &[u8], why: impl Into<String>) -> Self {
        let mut hex = String::with_capacity(key.len() * 2);
        for byte in key.iter().take(96) {
            use fmt::Write;
            let _ = write!(hex, "{byte:02x}");
        }
        Error::Corrupted { table, key: hex, why: why.into() }
    }

    /// The same error, said of line `line` (counted from 1) of a file.
    ///
    /// ```
    /// use oubliette::{Error, ErrorKind};
    /// let why = Error::invalid("text", "must not be empty", "").at_line(7);
    /// assert!(why.to_string().starts_with("line 7: text"));
    /// assert_eq!(why.kind(), ErrorKind::Invalid);
    /// ```
    #[must_use]
    pub fn at_line(self, line: u64) -> Self {
        Error::Line { line, source: Box::new(self) }
    }

    /// The sort of this error; a [`Error::Line`] has the kind of what is wrong with the line, and a [`Error::PlanOpen`] and a
    /// [`Error::PartlyDone`] that of the failure of their run.
    ///
    /// ```
    /// use oubliette::{ErrorKind, Patch};
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let why = team.update("nobody", Patch::new()).unwrap_err();
    /// assert_eq!(why.kind(), ErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Line { source, .. }
            | Error::PlanOpen { source, .. }
            | Error::PartlyDone { source, .. } => source.kind(),
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::KeyInOtherPartition { .. } => ErrorKind::KeyInOtherPartition,
            Error::NoEmbedder => ErrorKind::NoEmbedder,
            Error::Embedding { .. } => ErrorKind::Embedding,
            Error::OtherSpace { .. } => ErrorKind::OtherSpace,
            Error::BeforePurgeHorizon { .. } => ErrorKind::BeforePurgeHorizon,
            Error::CursorTooOld { .. } => ErrorKind::CursorTooOld,
            Error::Conflict { .. } => ErrorKind::Conflict,
            Error::Refused { .. } => ErrorKind::Refused,
            Error::Locked { .. } => ErrorKind::Locked,
            Error::NotADatabase { .. } => ErrorKind::NotADatabase,
            Error::Format { .. } => ErrorKind::Format,
            Error::Corrupted { .. } => ErrorKind::Corrupted,
            Error::Policy { .. } => ErrorKind::Policy,
            Error::Io { .. } => ErrorKind::Io,
            Error::Retry { .. } => ErrorKind::Retry,
            Error::Unavailable { .. } => ErrorKind::Unavailable,
            Error::Closed => ErrorKind::Closed,
            Error::ReadOnly => ErrorKind::ReadOnly,
            Error::SnapshotExpired { .. } => ErrorKind::SnapshotExpired,
        }
    }

    /// What is wrong, without the line or the run in which it is.
    pub(crate) fn innermost(&self) -> &Error {
        match self {
            Error::Line { source, .. } | Error::PartlyDone { source, .. } => source.innermost(),
            error => error,
        }
    }

    /// What the caller should do next about a line that is no memory at all: the file may be of another form.
    fn hint_of_line(&self) -> Option<&'static str> {
        let Error::Line { .. } = self else { return None };
        let Error::Invalid { field, why, .. } = self.innermost() else { return None };
        if field == "line" && why.starts_with(NO_MEMORY) {
            return Some(
                "write one JSON object a line (`jq -c '.[]' FILE` makes such lines of a JSON list; CSV is not read), or say what other \
                 file it is: `import --format mem0` or `--format server-memory`",
            );
        }
        (why == NO_FIELD).then_some(
            "correct the name, move unknown fields into the metadata (`import --lenient`), or say what other file it is: `import \
             --format mem0` or `--format server-memory`",
        )
    }

    /// Whether the same call may succeed when it is simply made again.
    ///
    /// ```
    /// use oubliette::Database;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("m.oub");
    /// let db = Database::open(&path)?;
    /// assert!(Database::open(&path).unwrap_err().is_retryable()); // Another handle has the file.
    /// assert!(!db.namespace("").unwrap_err().is_retryable());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Retry | ErrorKind::Locked)
    }

    /// Whether single values are damaged, beside which others can be read: not where the file was cut.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Error::Corrupted { why, .. } if why != FILE_CUT)
    }

    fn hint_of_io(&self) -> &'static str {
        let is_refused = |source: &std::io::Error| {
            use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
            matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem)
        };
        match self.innermost() {
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path: the file, or the folder that it is to be in, is not there"
            }
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
                "name a file that is not there yet"
            }
            Error::Io { action: "create", source, .. } if is_refused(source) => {
                "look at the folder: a new file is made there, so the folder must be one that may be written"
            }
            Error::Io { source, .. } if is_refused(source) => {
                "look at the path and its permissions; a file that may only be read is read with `--read-only`"
            }
            _ => "look at the path, its permissions and the free space",
        }
    }

    /// Whether the file is shorter or longer than its header tells.
    fn is_of_length(&self) -> bool {
        matches!(self, Error::Corrupted { why, .. } if [FILE_CUT, FILE_MISFIT].contains(&why.as_str()))
    }

    /// What the caller should do next, in one sentence.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let team = oubliette::Database::open(folder.path().join("m.oub"))?.namespace("team")?;
    /// let why = team.forget(oubliette::Forget::names(Vec::<String>::new())).unwrap_err();
    /// assert_eq!(why.hint(), "correct the named field and call again");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hint(&self) -> &'static str {
        if let Error::NotFound { what, .. } = self.innermost() {
            return hint_of_missing(what);
        }
        if let Some(hint) = self.hint_of_line() {
            return hint;
        }
        if let Error::Conflict { what, .. } = self.innermost()
            && what.starts_with(BACKUP_TO)
        {
            return "name a file that is not there yet: a backup replaces no file";
        }
        match self.kind() {
            ErrorKind::Invalid => "correct the named field and call again",
            ErrorKind::NotFound => "check the id or key and the namespace",
            ErrorKind::KeyInOtherPartition => "write with the agent that holds the key, or use another key",
            ErrorKind::NoEmbedder => {
                "give a vector with the query, or search by words; `reembed` gives each memory a vector of a model"
            }
            ErrorKind::Embedding => "look at the embedder; a search by text alone needs none",
            ErrorKind::OtherSpace => {
                "open it with the embedder of the database, or change the model with `reembed`"
            }
            ErrorKind::BeforePurgeHorizon => {
                "ask for a later instant, or allow a partial answer (`--allow-partial`)"
            }
            ErrorKind::CursorTooOld => {
                "read everything anew, and go on with a cursor that is no older than the named one"
            }
            ErrorKind::Conflict => {
                "the message says what is in the way; of a memory, `explain` tells what happened to it"
            }
            ErrorKind::Refused => "`gc show` tells how the plan stands; correct the summary, or plan again",
            ErrorKind::Locked => {
                "wait for the other process, or open with a waiting time (`--wait`); readers can go beside a writer that was opened with \
                 `--shared`"
            }
            ErrorKind::NotADatabase => {
                "check the path; the file was not touched. A first write makes a database where no file is"
            }
            ErrorKind::Format => "use the build that wrote the file",
            ErrorKind::Corrupted if self.innermost().is_of_length() => {
                "`backup` writes a new file of all that can be read, to be put in the place of this one; if that fails, put an earlier \
                 backup there, or import an export into a new file"
            }
            ErrorKind::Corrupted => {
                "run `check`; `reindex` heals indexes, `compact` also damaged pages and keys that are out of order, and `backup` \
                 writes a whole file of all that can be read"
            }
            ErrorKind::Policy => "correct the document; the stored policy is unchanged",
            ErrorKind::Io => self.hint_of_io(),
            ErrorKind::Retry => {
                "look at the disk and its free space, and call again; what was written before stands"
            }
            ErrorKind::Unavailable => "close this handle, look at the disk and open again",
            ErrorKind::Closed => "open the database again",
            ErrorKind::ReadOnly => "open the database for writing",
            ErrorKind::SnapshotExpired => "take a new snapshot and go on from the last cursor",
        }
    }
}

/// What is said of a backup, before the name of its file.
pub(crate) const BACKUP_TO: &str = "backup to";

/// What is said of a page that lies past the end of the file: after it nothing more can be read.
pub(crate) const FILE_CUT: &str = "the file ends before this page";
/// Of a file that is longer than its header tells.
pub(crate) const FILE_MISFIT: &str = "the file is not as long as its header says";

/// What the caller should do next where nothing has a name.
fn hint_of_missing(what: &str) -> &'static str {
    match what {
        "database" => "check the path; `init` or a first write makes a database there",
        "namespace" => "check its name; `namespace list` shows all of them",
        "run" => "check the id of the run and the namespace; a run that wrote nothing is not kept",
        "plan" => "check the id of the plan and the namespace",
        "aggregate" => "check the id and the namespace; `aggregates` lists what there is",
        _ => "check the id or key and the namespace",
    }
}

/// What is said of damage: of a value where it stands, else of the file.
fn corrupted(table: &str, key: &str, why: &str) -> String {
    match (table, key) {
        ("file", "") => format!("the file is damaged: {why}"),
        _ => format!("corrupted value in table {table} at key {key}: {why}"),
    }
}

/// What is said of a line that is no JSON object, with what is in the way behind it.
pub(crate) const NO_MEMORY: &str = "must be a memory as a JSON object";

/// What is said of a member of a line that memories do not have.
pub(crate) const NO_FIELD: &str = "is no field of a memory";

/// What was read; none where its bytes are damaged, which a warning tells. Reads over many rows go past one so.
///
/// # Errors
/// What is no damage of single values.
pub(crate) fn sound<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(why) if why.is_damage() => {
            tracing::warn!(%why, "a damaged value is left out");
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// A partition in words.
fn part(partition: &str) -> String {
    match partition {
        "shared" => "the shared part".to_owned(),
        agent => format!("the part of {agent}"),
    }
}

/// The instants of a purge horizon in words.
fn horizon(known: Option<i64>, valid: Option<i64>) -> String {
    let named = |name: &str, millis: Option<i64>| {
        let at = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        at.map(|at| format!("{name} {at}"))
    };
    let both: Vec<String> = named("known-at", known).into_iter().chain(named("valid-at", valid)).collect();
    both.join(" or ")
}

/// The value as an error shows it: at most 80 characters.
fn shorten(value: &str) -> String {
    const CHARS_MAX: usize = 80;
    if value.chars().count() <= CHARS_MAX {
        return value.to_owned();
    }
    value.chars().take(CHARS_MAX - 1).chain(['…']).collect()
}
