//! Where the database is, and how it is opened.

use std::path::{Path, PathBuf};

use oubliette::clock::{Clock, ManualClock, SystemClock};
use oubliette::policy::{Policy, Syntax};
use oubliette::{Builder, Database, Durability, Error, ErrorKind, NamespaceName, Result, Scope, Span, Time};
use serde::Deserialize;

use crate::arguments::{Global, ScopeOptions};
use crate::embedder;
use crate::output::Failure;

/// Name of the config file.
const CONFIG: &str = "oubliette.toml";
/// Name of the database in the user's data folder.
const FILE: &str = "memory.oub";
/// A command may hold its snapshot as long as it runs.
const LEASE: Span = Span::from_days(30);
/// Longest policy document or config file that is read.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// What the config file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    db: Option<PathBuf>,
    namespace: Option<String>,
    durability: Option<Durability>,
    shared: Option<bool>,
    wait: Option<String>,
    embedder: Option<String>,
}

/// A folder that is gone when it is dropped. What can't be removed from the folder for temporary files is left there.
pub(crate) fn temporary_folder() -> Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("oubliette-").tempdir().map_err(|source| Error::Io {
        action: "create a folder in",
        path: std::env::temp_dir(),
        source,
    })
}

/// How a command needs the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To read; it must be there.
    Read,
    /// To write; it must be there.
    Write,
    /// To write; it is made if need be.
    Create,
    /// To write, whatever made its vectors; it must be there.
    Rebuild,
}

/// The database that is meant, and how.
#[derive(Debug)]
pub(crate) struct Place {
    path: Option<PathBuf>,
    default_path: bool,
    namespace: Option<String>,
    now: Option<Time>,
    policy: Option<Policy>,
    instructions: Option<PathBuf>,
    durability: Durability,
    read_only: bool,
    shared: bool,
    wait: Option<Span>,
    embedder: Option<String>,
}

impl Place {
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let (config, folder) = config()?;
        let from_env = || std::env::var_os("OUBLIETTE_DB").filter(|path| !path.is_empty()).map(PathBuf::from);
        let from_config = || config.db.as_ref().map(|path| folder.join(path));
        let given = global.db.clone().or_else(from_env).or_else(from_config);
        let default_path = given.is_none();
        let wait = global.wait.as_ref().or(config.wait.as_ref());
        Ok(Place {
            path: given.or_else(|| data_folder().map(|folder| folder.join("oubliette").join(FILE))),
            default_path,
            namespace: global.namespace.clone().or(config.namespace),
            now: global.now.as_deref().map(|now| named("--now", now.parse())).transpose()?,
            policy: global.policy.as_deref().map(read_policy).transpose()?,
            instructions: global.instructions.clone(),
            durability: global.durability.or(config.durability).unwrap_or_default(),
            read_only: global.read_only,
            shared: global.shared || config.shared.unwrap_or(false),
            wait: wait.map(|wait| named("--wait", wait.parse())).transpose()?,
            embedder: global
                .embedder
                .clone()
                .or_else(|| std::env::var("OUBLIETTE_EMBEDDER").ok())
                .or(config.embedder),
        })
    }

    /// The namespace that is meant.
    pub(crate) fn namespace(&self) -> Result<NamespaceName> {
        self.namespace.as_deref().map_or_else(|| Ok(NamespaceName::default()), str::parse)
    }

    /// The namespace that was named, if one was.
    pub(crate) fn named_namespace(&self) -> Result<Option<NamespaceName>> {
        self.namespace.as_deref().map(str::parse).transpose()
    }

    /// The embedder that was named, if one was.
    pub(crate) fn embedder(&self) -> Option<&str> {
        self.embedder.as_deref()
    }

    /// The present instant.
    pub(crate) fn now(&self) -> Time {
        self.now.unwrap_or_else(|| SystemClock.now())
    }

    /// The file, if one was named.
    pub(crate) fn named_path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| !self.default_path)
    }

    /// The file that is meant.
    pub(crate) fn path(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| {
            Error::invalid("--db", "must be given where there is no user data folder", "nothing")
        })
    }

    /// Options that every way of opening shares.
    pub(crate) fn builder(&self) -> Builder {
        let mut builder = Database::builder().durability(self.durability).shared(self.shared).lease(LEASE);
        if let Some(now) = self.now {
            builder = builder.clock(ManualClock::at(now));
        }
        if let Some(policy) = &self.policy {
            builder = builder.policy(policy.clone());
        }
        if let Some(file) = &self.instructions {
            builder = builder.instructions_file(file);
        }
        if let Some(wait) = self.wait {
            builder = builder.wait(wait);
        }
        builder
    }

    /// Opens the database.
    pub(crate) fn open(&self, access: Access) -> Result<Database> {
        self.open_with(access, |builder| builder)
    }

    /// Opens it, with more options.
    pub(crate) fn open_with(&self, access: Access, more: impl Fn(Builder) -> Builder) -> Result<Database> {
        let path = self.path()?;
        let open = |access: Access| {
            let builder = self.builder().create(access == Access::Create).read_only(access == Access::Read);
            let database = more(builder).open(path)?;
            // What changes the embedder brings its own.
            if access != Access::Rebuild {
                embedder::attach(&database, self.embedder.as_deref())?;
            }
            Ok(database)
        };
        if self.read_only {
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

    /// For writing if that is possible, else for reading.
    pub(crate) fn open_best(&self) -> Result<Database> {
        match self.open(Access::Write) {
            Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Io) => {
                self.open(Access::Read)
            }
            other => other,
        }
    }
}

impl Place {
    /// To count. What came due is settled first, which is a write, so an instant of `--now` only looks: the time of a
    /// file never goes back.
    pub(crate) fn open_to_count(&self) -> Result<Database> {
        if self.now.is_some() { self.open(Access::Read) } else { self.open_best() }
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

/// A key of the metadata as it was typed. With the name of the field in front it would name a key that no memory has.
pub(crate) fn metadata_key(key: &str) -> Result<&str> {
    match key.strip_prefix("metadata.") {
        Some(rest) => Err(Error::invalid("key", format!("must be named without metadata.: {rest}"), key)),
        None => Ok(key),
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

/// A file of text, read whole.
fn read_text(path: &Path) -> Result<String> {
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
    String::from_utf8(bytes).map_err(|why| {
        Error::invalid(name(), "must be UTF-8", format!("byte {}", why.utf8_error().valid_up_to()))
    })
}

/// The config file, and the folder that its paths start from: `oubliette.toml` here, or in the user's config folder.
fn config() -> Result<(Config, PathBuf), Failure> {
    let candidates = [Some(PathBuf::new()), config_folder().map(|folder| folder.join("oubliette"))];
    for folder in candidates.into_iter().flatten() {
        let path = folder.join(CONFIG);
        if !path.is_file() {
            continue;
        }
        let text = read_text(&path)?;
        let config = toml::from_str(&text).map_err(|why| {
            Error::invalid(path.display().to_string(), "must be a config file", why.message())
        })?;
        return Ok((config, folder));
    }
    Ok((Config::default(), PathBuf::new()))
}

fn folder_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn config_folder() -> Option<PathBuf> {
    if cfg!(windows) {
        return folder_of("APPDATA");
    }
    let home = || folder_of("HOME");
    folder_of("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

fn data_folder() -> Option<PathBuf> {
    if cfg!(windows) {
        return folder_of("LOCALAPPDATA");
    }
    let home = || folder_of("HOME");
    let usual = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    folder_of("XDG_DATA_HOME").or_else(|| Some(home()?.join(usual)))
}
