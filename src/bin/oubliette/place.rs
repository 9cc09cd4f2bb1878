//! Where the database is, and how it is opened.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oubliette::clock::{Clock, ManualClock, SystemClock};
use oubliette::policy::{Policy, Syntax};
use oubliette::tools::{BEHIND_UNTOLD, behind_told};
use oubliette::{
    Builder, Database, Durability, Error, ErrorKind, NamespaceName, Outcome, Result, Scope, Span, Time,
};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{Global, ScopeOptions};
use crate::caller::Caller;
use crate::embedder;
use crate::output::{Done, Failure, Output};
use crate::share::{Extra, Host, Sharing, Terms, Work};
use crate::story::{self, Present};
use crate::told;

/// Name of the config file.
const CONFIG: &str = "oubliette.toml";
/// Name of the database in the user's data folder.
const FILE: &str = "memory.oub";
/// A command may hold its snapshot as long as it runs.
const LEASE: Span = Span::from_days(30);
/// How long a file is waited for that another process has open, unless the command says otherwise: whoever has it may just have begun to
/// listen, or be about to end.
const PATIENCE: Span = Span::from_millis(5_000);
/// A `--now` that is ahead of the clock of the machine by so much or less is not told of.
const AHEAD: Span = Span::from_days(1);
/// How long an opening is put off that finds the file locked.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest policy document or config file that is read.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Whether a file that could not be opened for writing may be opened for reading.
fn may_be_read(why: ErrorKind) -> bool {
    matches!(why, ErrorKind::Locked | ErrorKind::Io | ErrorKind::Corrupted | ErrorKind::Unavailable)
}

/// Whether a file, or all of its disk, may only be read.
fn is_write_protected(why: &std::io::Error) -> bool {
    matches!(why.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}

/// What the config file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    db: Option<PathBuf>,
    namespace: Option<String>,
    durability: Option<Durability>,
    shared: Option<bool>,
    share: Option<bool>,
    wait: Option<String>,
    embedder: Option<String>,
}

/// How a command needs the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read; it must be there.
    Read,
    /// To write; it must be there.
    Write,
    /// To try what a command would do, on a file that is not written; it must be there.
    Rehearse,
    /// To write; it is made if need be.
    Create,
    /// To write, whatever made its vectors; it must be there.
    Rebuild,
}

/// The database that is meant, and how.
#[derive(Debug)]
pub(crate) struct Place {
    caller: Arc<Caller>,
    path: Option<PathBuf>,
    default_path: bool,
    namespace: Option<String>,
    terms: Terms,
    read_only: bool,
    shared: bool,
    wait: Option<Span>,
    standing: Standing,
    /// Whether the file was named in the command itself.
    is_typed: bool,
    /// Whether the namespace was.
    is_namespace_typed: bool,
    /// What the clock is behind the last write of the file that was opened for writing.
    behind: Mutex<Behind>,
    /// Why a file that was written was not closed in order.
    unclosed: Mutex<Option<Error>>,
}

/// A clock that is behind the last write of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    /// By how much it is.
    by: Span,
    /// How often the handle had written when it was opened, for others perhaps.
    writes: u64,
    /// Whether something was written since.
    has_written: bool,
}

/// How a command stands to others of the same file.
#[derive(Debug)]
enum Standing {
    /// It opens the file, and speaks with nobody.
    Alone,
    /// It opens the file and answers others then, or asks whoever has it open.
    Sharing(Sharing),
    /// It works for another process, on the handle that is open here.
    Guest(Arc<Host>),
}

impl Place {
    /// For a command that was typed at this process.
    pub(crate) fn new(global: &Global, caller: Arc<Caller>, work: Work) -> Result<Self, Failure> {
        Place::read(global, caller, Standing::Sharing(Sharing::new(work)))
    }

    /// For a command of another process.
    pub(crate) fn of_guest(global: &Global, caller: Arc<Caller>, host: Arc<Host>) -> Result<Self, Failure> {
        Place::read(global, caller, Standing::Guest(host))
    }

    fn read(global: &Global, caller: Arc<Caller>, standing: Standing) -> Result<Self, Failure> {
        let (config, folder) = config(&caller)?;
        let from_env = || caller.variable("OUBLIETTE_DB").filter(|path| !path.is_empty()).map(PathBuf::from);
        let from_env = || from_env().map(|path| caller.folder().join(path));
        let from_config = || config.db.as_ref().map(|path| folder.join(path));
        let given = global.db.clone().or_else(from_env).or_else(from_config);
        let default_path = given.is_none();
        let wait = match (&global.wait, &config.wait) {
            (None, Some(wait)) => {
                Some(named(&format!("wait in {}", folder.join(CONFIG).display()), wait.parse())?)
            }
            (wait, _) => wait.as_deref().map(|wait| named("--wait", wait.parse())).transpose()?,
        };
        let embedder = global.embedder.clone();
        let from_env = || caller.variable("OUBLIETTE_EMBEDDER").map(OsString::into_string).transpose();
        let embedder = match embedder {
            None => from_env().map_err(|other| {
                Error::invalid("OUBLIETTE_EMBEDDER", "must be UTF-8", other.to_string_lossy())
            })?,
            named => named,
        };
        let standing = match standing {
            Standing::Sharing(_) if global.no_share || config.share == Some(false) => Standing::Alone,
            standing => standing,
        };
        Ok(Place {
            path: given.or_else(|| data_folder(&caller).map(|folder| folder.join("oubliette").join(FILE))),
            default_path,
            namespace: global.namespace.clone().or(config.namespace),
            terms: Terms {
                now: global.now.as_deref().map(|now| named("--now", now.parse())).transpose()?,
                policy: global.policy.as_deref().map(read_policy).transpose()?,
                instructions: global.instructions.clone().map(there).transpose()?,
                durability: global.durability.or(config.durability),
                embedder: embedder.or(config.embedder),
            },
            read_only: global.read_only,
            shared: global.shared || config.shared.unwrap_or(false),
            wait,
            standing,
            caller,
            is_typed: global.db.is_some(),
            is_namespace_typed: global.namespace.is_some(),
            behind: Mutex::default(),
            unclosed: Mutex::default(),
        })
    }

    /// Who typed the command.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The namespace that is meant.
    pub(crate) fn namespace(&self) -> Result<NamespaceName> {
        self.namespace.as_deref().map_or_else(|| Ok(NamespaceName::default()), str::parse)
    }

    /// The namespace that the command itself names: one of the config file narrows no command that is for the whole file.
    pub(crate) fn typed_namespace(&self) -> Result<Option<NamespaceName>> {
        if self.is_namespace_typed { self.named_namespace() } else { Ok(None) }
    }

    /// The namespace that was named, if one was.
    pub(crate) fn named_namespace(&self) -> Result<Option<NamespaceName>> {
        self.namespace.as_deref().map(str::parse).transpose()
    }

    /// The namespace that was named, if it is none of those that there are: perhaps its name was mistyped, which is told on
    /// standard error.
    pub(crate) fn unknown_namespace(
        &self,
        known: &[NamespaceName],
        output: Output<'_>,
    ) -> Result<Option<NamespaceName>> {
        let unknown = self.named_namespace()?.filter(|named| !known.contains(named));
        if let Some(named) = &unknown {
            output.note(&told::no_namespace(named, known));
        }
        Ok(unknown)
    }

    /// Refuses the namespace that was named, if it is none of those that there are.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn check_namespace(&self, known: &[NamespaceName]) -> Result<()> {
        match self.named_namespace()?.filter(|named| !known.contains(named)) {
            Some(unknown) => Err(Error::NotFound { what: "namespace", name: unknown.to_string() }),
            None => Ok(()),
        }
    }

    /// The embedder that was named, if one was.
    pub(crate) fn embedder(&self) -> Option<&str> {
        self.terms.embedder.as_deref()
    }

    /// The present instant.
    pub(crate) fn now(&self) -> Time {
        let of_host = || match &self.standing {
            Standing::Guest(host) => host.now(),
            _ => None,
        };
        self.terms.now.or_else(of_host).unwrap_or_else(|| SystemClock.now())
    }

    /// The present instant, for whoever typed the command to read of: that of the last write of the file where the clock is behind
    /// it, as for every read.
    pub(crate) fn present(&self) -> Present {
        let behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner).by;
        Present { at: self.now().plus(behind), reader: Arc::clone(&self.caller) }
    }

    /// The file, if the command itself names one: a variable or a config file names that of the user's memories.
    pub(crate) fn typed_path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.is_typed)
    }

    /// The file that is meant.
    pub(crate) fn path(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| {
            Error::invalid("--db", "must be given where there is no user data folder", "nothing")
        })
    }

    /// Options that every way of opening shares.
    pub(crate) fn builder(&self) -> Builder {
        let durability = self.terms.durability.unwrap_or_default();
        let mut builder = Database::builder().durability(durability).shared(self.shared).lease(LEASE);
        if let Some(now) = self.terms.now {
            builder = builder.clock(ManualClock::at(now));
        }
        if let Some(policy) = &self.terms.policy {
            builder = builder.policy(policy.clone());
        }
        if let Some(file) = &self.terms.instructions {
            builder = builder.instructions_file(file);
        }
        builder
    }

    /// Opens the database.
    pub(crate) fn open(&self, access: Access) -> Result<Database> {
        self.open_with(access, Extra::default())
    }

    /// Opens it, with more options.
    pub(crate) fn open_with(&self, access: Access, extra: Extra) -> Result<Database> {
        let is_read = access == Access::Read || self.read_only && access != Access::Rehearse;
        let database = match &self.standing {
            Standing::Guest(host) => host.open(&self.terms, &self.caller, is_read, extra),
            Standing::Alone => self.open_here(access, extra, self.wait),
            Standing::Sharing(sharing) => self.open_shared(sharing, access, extra, self.patience()),
        }?;
        let by = database.behind()?;
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        *behind = Behind { by, writes: database.writes(), ..*behind };
        drop(behind);
        Ok(database)
    }

    /// Says so where the clock by which something was written does not fit the file or the machine.
    pub(crate) fn tell_clock(&self, output: Output<'_>) {
        self.clock_told().iter().for_each(|told| output.remark(told));
    }

    /// What a command has done: one document as JSON, for people a sentence. It says which clock it counts by.
    pub(crate) fn done(
        &self,
        output: Output<'_>,
        document: Value,
        told: impl FnOnce(&Value) -> String,
    ) -> Done {
        output.done(&self.dated(document), told)
    }

    /// An answer with what is told of the clock.
    pub(crate) fn dated(&self, mut answer: Value) -> Value {
        if let (Value::Object(members), Some(told)) = (&mut answer, self.clock_told()) {
            members.insert("clock".to_owned(), told.into());
        }
        answer
    }

    /// What is told where something was written by a clock that was behind the last write of the file: it counts as of that write.
    /// Two processes of one machine may differ by moments; who gives an instant means it. One far ahead of the machine's clock stays
    /// with the file.
    fn clock_told(&self) -> Option<String> {
        let behind = *self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if !behind.has_written {
            return None;
        }
        let now = self.present();
        let at = story::local(self.now(), &now);
        let (clock, least) = match self.terms.now {
            Some(_) => ("--now", Span::ZERO),
            None => ("the clock of this machine", BEHIND_UNTOLD),
        };
        if behind.by > least {
            return Some(behind_told(clock, at, story::local(now.at, &now)));
        }
        let machine = SystemClock.now();
        self.terms.now.filter(|given| *given > machine.plus(AHEAD))?;
        let machine = story::local(machine, &now);
        Some(format!(
            "--now says {at}, ahead of the clock of this machine, which says {machine}: until then every write of this file counts as of \
             {at}. Only a copy from before leads back"
        ))
    }

    /// Whether the end that a write gave lies ahead of the clock, and yet no later than the last write of the file.
    pub(crate) fn is_over_at_once(&self, outcome: &Outcome) -> bool {
        let (clock, file) = (self.now(), self.present().at);
        [outcome.expires_at, outcome.valid_to].iter().flatten().any(|end| *end > clock && *end <= file)
    }

    /// Notes whether something was written since the file was opened.
    pub(crate) fn note_writes(&self, database: &Database) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        behind.has_written |= database.writes() != behind.writes;
    }

    /// Opens it and answers others from then on, if it is open for writing.
    fn open_shared(
        &self,
        sharing: &Sharing,
        access: Access,
        extra: Extra,
        patience: Duration,
    ) -> Result<Database> {
        let database = self.open_or_find(sharing, access, extra, patience)?;
        // Others would write what is kept in memory alone.
        if !matches!(access, Access::Read | Access::Rehearse) && !self.read_only {
            sharing.begin(&database, &self.terms);
        }
        Ok(database)
    }

    /// Opens it, or finds that another process has it open and answers.
    fn open_or_find(
        &self,
        sharing: &Sharing,
        access: Access,
        extra: Extra,
        patience: Duration,
    ) -> Result<Database> {
        let deadline = Instant::now() + patience;
        loop {
            match self.open_here(access, extra, None) {
                Err(locked @ Error::Locked { .. }) => {
                    // What was read of standard input can't be handed over any more.
                    let is_answered = !self.caller.is_read() && sharing.look_around(self.path()?);
                    if is_answered || Instant::now() >= deadline {
                        return Err(locked);
                    }
                    std::thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    /// How long a file is waited for that another process has open.
    pub(crate) fn patience(&self) -> Duration {
        self.wait.unwrap_or(PATIENCE).into()
    }

    fn open_here(&self, access: Access, extra: Extra, wait: Option<Span>) -> Result<Database> {
        let path = self.path()?;
        let open = |access: Access| {
            let builder = self.builder().create(access == Access::Create).read_only(access == Access::Read);
            let builder = builder.rehearsal(access == Access::Rehearse);
            let builder = match wait {
                Some(wait) => builder.wait(wait),
                None => builder,
            };
            let builder = match extra.dimensions {
                Some(dimensions) => builder.dimensions(dimensions),
                None => builder,
            };
            let database = builder.actor(extra.actor()).track(extra.track).open(path)?;
            // What changes the embedder brings its own.
            if access != Access::Rebuild {
                embedder::attach(&database, self.embedder(), &self.caller)?;
            }
            Ok(database)
        };
        if self.read_only && access != Access::Rehearse {
            return open(Access::Read);
        }
        if access == Access::Create
            && self.default_path
            && let Some(folder) = path.parent()
        {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|source| Error::Io { action: "create", path: folder.to_owned(), source })?;
        }
        match open(access) {
            // After a crash the file must be opened for writing once; then it can be read.
            Err(Error::Unavailable { .. }) if access == Access::Read => open(Access::Write),
            other => other,
        }
    }

    /// To try what a command would do. Where the file can't be written, or is not to be, what the trial writes stays in memory.
    pub(crate) fn open_to_rehearse(&self) -> Result<Database> {
        let opened = if self.read_only { None } else { Some(self.open(Access::Write)) };
        match opened {
            Some(Err(Error::Io { source, .. })) if is_write_protected(&source) => self.open(Access::Rehearse),
            Some(opened) => opened,
            None => self.open(Access::Rehearse),
        }
    }

    /// To count. What came due is settled first, which is a write, so an instant of `--now` only looks: the time of a
    /// file never goes back.
    pub(crate) fn open_to_count(&self) -> Result<Database> {
        if self.terms.now.is_some() { self.open(Access::Read) } else { self.open_best() }
    }

    /// For writing if that is possible at once, else for reading, as where the file is damaged in what only a writer needs.
    pub(crate) fn open_best(&self) -> Result<Database> {
        let (opened, is_answered) = match &self.standing {
            Standing::Sharing(sharing) => {
                let opened = self.open_shared(sharing, Access::Write, Extra::default(), Duration::ZERO);
                (opened, sharing.is_found())
            }
            _ => (self.open(Access::Write), false),
        };
        match opened {
            Err(error) if may_be_read(error.kind()) && !is_answered => self.open(Access::Read),
            other => other,
        }
    }

    /// Ends the work of a command on the database. Others are answered first; one that belongs to another process stays open.
    pub(crate) fn close(&self, database: Database) -> Result<()> {
        self.note_writes(&database);
        let closed = match &self.standing {
            Standing::Guest(_) => Ok(()),
            Standing::Alone => database.close(),
            Standing::Sharing(sharing) => {
                sharing.end();
                database.close()
            }
        };
        match closed {
            // What the command did is on the disk, so its answer stands.
            Err(why @ Error::Io { .. }) => {
                *self.unclosed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                Ok(())
            }
            closed => closed,
        }
    }

    /// Says so where the file was not closed in order.
    pub(crate) fn tell_unclosed(&self, output: Output<'_>) {
        if let Some(why) = &*self.unclosed.lock().unwrap_or_else(PoisonError::into_inner) {
            output.remark(&format!("All that was written is there, but the file was not closed in order: {why}. The next opening looks through it"));
        }
    }

    /// How the command stands to other processes, if it was typed at this one and may ask them.
    pub(crate) fn sharing(&self) -> Option<&Sharing> {
        match &self.standing {
            Standing::Sharing(sharing) => Some(sharing),
            _ => None,
        }
    }

    /// Lets the command have the file for itself. It waits for others as it would to share the file with them.
    pub(crate) fn alone(mut self) -> Self {
        if self.sharing().is_some() {
            self.wait.get_or_insert(PATIENCE);
        }
        self.standing = Standing::Alone;
        self
    }
}

impl ScopeOptions {
    /// The partitions that are meant.
    pub(crate) fn scope(&self) -> Result<Scope> {
        match &self.agent {
            Some(agent) => Scope::agent(agent),
            None if self.any_agent => Ok(Scope::Any),
            None => Ok(Scope::Shared),
        }
    }
}

/// The result, an invalid value of which is blamed on `name`.
pub(crate) fn named<T>(name: &str, value: Result<T>) -> Result<T> {
    value.map_err(|error| match error {
        Error::Invalid { why, value, .. } => Error::Invalid { field: name.to_owned(), why, value },
        error => error,
    })
}

/// The error, which names an argument of the library, by the option that was typed.
pub(crate) fn by_option(field: &str, option: &str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Invalid { field: named, why, value } if named == field => {
            Error::Invalid { field: option.to_owned(), why, value }
        }
        error => error,
    }
}

/// A key of the metadata as it was typed. With the name of the field in front it would name a key that no memory has.
pub(crate) fn metadata_key(key: &str) -> Result<&str> {
    match key.strip_prefix("metadata.") {
        Some(rest) => Err(Error::invalid("key", format!("must be named without metadata.: {rest}"), key)),
        None => Ok(key),
    }
}

/// A file that was typed, and is there. A program may name one that is yet to be made.
fn there(path: PathBuf) -> Result<PathBuf> {
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(source) => Err(Error::Io { action: "read", path, source }),
    }
}

/// The policy document of a file.
pub(crate) fn read_policy(path: &Path) -> Result<Policy> {
    let (text, syntax) = policy_text(path)?;
    Policy::parse(&text, syntax)
}

/// The text of a policy file, and how it is written.
pub(crate) fn policy_text(path: &Path) -> Result<(String, Syntax)> {
    let json = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    Ok((read_text(path)?, if json { Syntax::Json } else { Syntax::Toml }))
}

/// A file of text, read whole, without its byte order mark.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
    let name = || path.display().to_string();
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Error::invalid(
            name(),
            format!("must be at most {TEXT_BYTES_MAX} bytes"),
            "a longer file",
        ));
    }
    let marked = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec);
    String::from_utf8(marked.unwrap_or(bytes)).map_err(|why| {
        Error::invalid(
            name(),
            "must be UTF-8",
            format!("other bytes from byte {} on", why.utf8_error().valid_up_to()),
        )
    })
}

/// What a config file says.
///
/// # Errors
/// `Invalid`, with the file, the member and its value.
fn config_of(text: &str, path: &Path) -> Result<Config> {
    let wrong =
        |why: &toml::de::Error| why.span().and_then(|span| text.get(span)).unwrap_or_default().to_owned();
    let parsed = toml::Deserializer::parse(text).map_err(|why| {
        let bound = format!("must be a config file, in TOML: {}", why.message());
        Error::invalid(path.display().to_string(), bound, wrong(&why))
    })?;
    serde_path_to_error::deserialize(parsed).map_err(|error| {
        let member = error.path().to_string();
        let why = error.into_inner();
        let (file, said) = (path.display(), why.message());
        // A bound of ours has the name and the value already.
        let said = said.strip_prefix(&format!("{member}: ")).unwrap_or(said);
        let said = said.split(" (got ").next().unwrap_or(said);
        if let Some(expected) = said.strip_prefix(&format!("unknown field `{member}`, ")) {
            return Error::invalid(file.to_string(), format!("there is no such key; {expected}"), member);
        }
        let field = if member == "." { file.to_string() } else { format!("{file}: {member}") };
        Error::invalid(field, said, wrong(&why))
    })
}

/// The config file, and the folder that its paths start from: `oubliette.toml` here, or in the user's config folder.
fn config(caller: &Caller) -> Result<(Config, PathBuf), Failure> {
    let of_user = config_folder(caller).map(|folder| folder.join("oubliette"));
    let candidates = [Some(caller.folder().to_owned()), of_user];
    for folder in candidates.into_iter().flatten() {
        let path = folder.join(CONFIG);
        if !path.is_file() {
            continue;
        }
        let text = read_text(&path)?;
        return Ok((config_of(&text, &path)?, folder));
    }
    Ok((Config::default(), PathBuf::new()))
}

fn folder_of(caller: &Caller, variable: &str) -> Option<PathBuf> {
    caller.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn config_folder(caller: &Caller) -> Option<PathBuf> {
    if cfg!(windows) {
        return folder_of(caller, "APPDATA");
    }
    let home = || folder_of(caller, "HOME");
    folder_of(caller, "XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

fn data_folder(caller: &Caller) -> Option<PathBuf> {
    if cfg!(windows) {
        return folder_of(caller, "LOCALAPPDATA");
    }
    let home = || folder_of(caller, "HOME");
    let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    folder_of(caller, "XDG_DATA_HOME").or_else(|| Some(home()?.join(usual)))
}
