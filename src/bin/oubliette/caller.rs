//! Who typed a command: the folder and the variables that it means, its streams and its terminal.
//!
//! A command is typed at this process, or at another one that has handed it over (`share`). What a command reads of its surroundings and
//! what it shows goes through this file, so that both give the same answers.

mod process;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, IsTerminal, Read, StdinLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use comfy_table::Table;
use jiff::tz::TimeZone;
use oubliette::Result;

use self::process::Process;

/// Bytes that are asked of another process at once.
const CHUNK: usize = 64 << 10;

/// How long an input is waited for that may have ended.
const SILENCE: Duration = Duration::from_millis(100);

/// How much a command asks of its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    /// What comes next.
    Any,
    /// At most a line. The command has answered the lines before, so another process can go on with it here.
    Line,
    /// More of a line that is too long to come at once, or of lines that belong together. Nothing has come of those before, so another
    /// process can begin with the first of them.
    RestOfLine,
}

/// The streams of another process.
pub(crate) trait Streams: Send + Sync {
    /// Some bytes of its standard input; none at the end.
    ///
    /// # Errors
    /// Where it has gone, or where this process is about to end and another may go on ([`is_hand_over`]).
    fn read(&self, portion: Portion) -> std::io::Result<Vec<u8>>;

    /// Bytes to its standard output.
    ///
    /// # Errors
    /// Where it has gone, or reads nothing.
    fn write(&self, bytes: &[u8]) -> std::io::Result<()>;

    /// Bytes to its standard error.
    ///
    /// # Errors
    /// As above.
    fn write_error(&self, bytes: &[u8]) -> std::io::Result<()>;

    /// Whether nobody waits for the command any more.
    fn is_gone(&self) -> bool;

    /// Whether this process is about to end, and another may go on with the command.
    fn is_ending(&self) -> bool;
}

/// What stands in the place of an error where another process may go on with a command.
#[derive(Debug)]
struct HandOver;

impl std::fmt::Display for HandOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the process that works on the command ends")
    }
}

impl std::error::Error for HandOver {}

/// The error that lets another process go on with a command.
pub(crate) fn hand_over() -> std::io::Error {
    std::io::Error::other(HandOver)
}

/// Whether an error lets another process go on with a command.
pub(crate) fn is_hand_over(why: &std::io::Error) -> bool {
    why.get_ref().is_some_and(|why| why.is::<HandOver>())
}

/// What of its surroundings another process has told.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Surroundings {
    /// The folder that its relative paths start from.
    pub(crate) folder: PathBuf,
    pub(crate) variables: HashMap<OsString, OsString>,
    process: Process,
    /// The name of its time zone, or the rules of one as `TZ` says them; none where it can't tell.
    zone: Option<String>,
    /// Whether its standard input is a terminal.
    pub(crate) asks: bool,
    /// Whether its standard error is one.
    pub(crate) tells: bool,
    /// Columns of its standard output, if that is a terminal.
    pub(crate) columns: Option<u16>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> std::io::Result<Self> {
        let caller = Caller::here();
        Ok(Surroundings {
            folder: folder()?,
            variables: std::env::vars_os().collect(),
            process: Process::here(),
            zone: zone(),
            asks: std::io::stdin().is_terminal(),
            tells: caller.has_terminal(),
            columns: caller.columns(),
        })
    }
}

/// The time zone of this process, for another one.
fn zone() -> Option<String> {
    let named = TimeZone::system().iana_name().map(str::to_owned);
    named.or_else(|| std::env::var("TZ").ok())
}

/// The folder of this process. One that was removed has no name, and nothing lies in it; so it is told as a place where
/// nothing can lie.
fn folder() -> std::io::Result<PathBuf> {
    match std::env::current_dir() {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok("/dev/null/removed".into()),
        found => found,
    }
}

/// Who typed a command.
pub(crate) struct Caller(Side);

enum Side {
    Here(Here),
    Far(Far),
}

/// Standard input of this process.
#[derive(Default)]
struct Here {
    /// What was read of it, and is to be read again.
    returned: Mutex<Vec<u8>>,
    is_read: AtomicBool,
}

struct Far {
    surroundings: Surroundings,
    streams: Box<dyn Streams>,
    /// Whether lines are read that belong together.
    is_within: AtomicBool,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Caller").field(&self.far_side().map(|far| &far.surroundings)).finish()
    }
}

impl Caller {
    /// Somebody who typed it at this process.
    pub(crate) fn here() -> Self {
        Caller(Side::Here(Here::default()))
    }

    /// Another process.
    pub(crate) fn far(surroundings: Surroundings, streams: Box<dyn Streams>) -> Self {
        Caller(Side::Far(Far { surroundings, streams, is_within: AtomicBool::new(false) }))
    }

    fn far_side(&self) -> Option<&Far> {
        match &self.0 {
            Side::Far(far) => Some(far),
            Side::Here(_) => None,
        }
    }

    /// The folder that relative paths start from; an empty path where that is the folder of this process.
    pub(crate) fn folder(&self) -> &Path {
        self.far_side().map_or(Path::new(""), |far| &far.surroundings.folder)
    }

    /// A path as it is meant where it was typed, for this process.
    ///
    /// # Errors
    /// `Invalid` for an open file of another process that can't be reached from here.
    pub(crate) fn meant(&self, path: &Path) -> Result<PathBuf> {
        match self.far_side().map(|far| &far.surroundings) {
            Some(theirs) => theirs.process.meant(theirs.folder.join(path)),
            None => Ok(path.to_owned()),
        }
    }

    /// Whether a path, as this process means it, leads to standard output of whoever typed the command.
    pub(crate) fn is_output(&self, path: &Path) -> bool {
        match self.far_side() {
            Some(far) => far.surroundings.process.has_output_at(path),
            None => Process::here().has_output_at(path),
        }
    }

    /// A path as it was typed.
    pub(crate) fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        self.far_side().and_then(|far| path.strip_prefix(&far.surroundings.folder).ok()).unwrap_or(path)
    }

    /// A variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        match self.far_side() {
            Some(far) => far.surroundings.variables.get(OsStr::new(name)).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// The time zone that instants are told in.
    pub(crate) fn zone(&self) -> TimeZone {
        let theirs = self.far_side().and_then(|far| far.surroundings.zone.as_deref());
        let known = |zone: &str| TimeZone::get(zone).or_else(|_| TimeZone::posix(zone));
        theirs.map_or_else(TimeZone::system, |zone| known(zone).unwrap_or(TimeZone::UTC))
    }

    /// Standard input.
    pub(crate) fn input(&self) -> Box<dyn BufRead + '_> {
        self.reader(Portion::Any)
    }

    /// Standard input, for a command that answers each line before it reads the next. Another process may go on with it between two lines.
    pub(crate) fn lines(&self) -> Box<dyn BufRead + '_> {
        self.reader(Portion::Line)
    }

    /// Does what reads several of the [`lines`](Self::lines) as one. Another process that goes on with the command between these begins
    /// with the first of them.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(far) = self.far_side() else { return work() };
        far.is_within.store(true, Ordering::SeqCst);
        let done = work();
        far.is_within.store(false, Ordering::SeqCst);
        done
    }

    fn reader(&self, portion: Portion) -> Box<dyn BufRead + '_> {
        match &self.0 {
            Side::Far(far) => {
                let input = Input { far, portion, left: Vec::new(), at: 0 };
                Box::new(BufReader::with_capacity(CHUNK, input))
            }
            Side::Here(here) => Box::new(Own { here, begun: None }),
        }
    }

    /// Whether a command has read of the standard input of this process.
    pub(crate) fn is_read(&self) -> bool {
        matches!(&self.0, Side::Here(here) if here.is_read.load(Ordering::SeqCst))
    }

    /// Some bytes of the standard input of this process, for another one; none at the end.
    ///
    /// # Errors
    /// Those of the stream.
    pub(crate) fn portion(&self, portion: Portion) -> std::io::Result<Vec<u8>> {
        let Side::Here(here) = &self.0 else { return Ok(Vec::new()) };
        let mut returned = here.returned();
        let from_stream = returned.is_empty();
        let mut stream = std::io::stdin().lock();
        let ready = if from_stream { stream.fill_buf()? } else { &returned };
        let end = ready.iter().position(|byte| *byte == b'\n').filter(|_| portion != Portion::Any);
        let taken = end.map_or(ready.len(), |end| end + 1).min(CHUNK);
        let some = ready.get(..taken).unwrap_or_default().to_vec();
        if from_stream {
            stream.consume(taken);
        } else {
            returned.drain(..taken);
        }
        Ok(some)
    }

    /// Whether standard input of this process may have more to say than blank lines. One that is silent for a moment, and open, may;
    /// it can't be read any more then.
    pub(crate) fn may_have_lines(&self) -> bool {
        let Side::Here(here) = &self.0 else { return false };
        let returned = std::mem::take(&mut *here.returned());
        let (told, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut input = Cursor::new(returned).chain(std::io::stdin().lock());
            // Nobody hears it where this took too long.
            let _ = told.send(says_more(&mut input));
        });
        heard.recv_timeout(SILENCE).unwrap_or(true)
    }

    /// Puts back what was read, in front of the rest.
    pub(crate) fn put_back(&self, bytes: &[u8]) {
        if let Side::Here(here) = &self.0 {
            here.returned().splice(..0, bytes.iter().copied());
        }
    }

    /// Standard output.
    pub(crate) fn output(&self) -> Box<dyn Write + '_> {
        match self.far_side() {
            Some(far) => Box::new(Shown { streams: far.streams.as_ref(), is_error: false }),
            None => Box::new(std::io::stdout().lock()),
        }
    }

    /// Standard error.
    pub(crate) fn error(&self) -> Box<dyn Write + '_> {
        match self.far_side() {
            Some(far) => Box::new(Shown { streams: far.streams.as_ref(), is_error: true }),
            None => Box::new(std::io::stderr()),
        }
    }

    /// Columns of the terminal that standard output is, if it is one and says how many.
    pub(crate) fn columns(&self) -> Option<u16> {
        match self.far_side() {
            Some(far) => far.surroundings.columns,
            None => std::io::stdout().is_terminal().then(|| Table::new().width()).flatten(),
        }
    }

    /// Whether standard error is a terminal.
    pub(crate) fn has_terminal(&self) -> bool {
        self.far_side().map_or_else(|| std::io::stderr().is_terminal(), |far| far.surroundings.tells)
    }

    /// Whether a person can be asked.
    pub(crate) fn can_be_asked(&self) -> bool {
        let asks =
            self.far_side().map_or_else(|| std::io::stdin().is_terminal(), |far| far.surroundings.asks);
        asks && self.has_terminal()
    }

    /// Whether the command was typed at this process.
    pub(crate) fn is_here(&self) -> bool {
        matches!(self.0, Side::Here(_))
    }

    /// Whether nobody waits for the command any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.far_side().is_some_and(|far| far.streams.is_gone())
    }

    /// Ends a command without an end where nobody waits for it, or where another process can go on with it.
    ///
    /// # Errors
    /// `BrokenPipe`, and that of [`is_hand_over`].
    pub(crate) fn check(&self) -> std::io::Result<()> {
        if self.is_gone() {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        if self.far_side().is_some_and(|far| far.streams.is_ending()) { Err(hand_over()) } else { Ok(()) }
    }
}

impl Here {
    fn returned(&self) -> MutexGuard<'_, Vec<u8>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a command of the shell that a summarizer is needs of whoever typed it: folder and variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loan(Option<(PathBuf, HashMap<OsString, OsString>)>);

impl Loan {
    /// Those of a caller.
    pub(crate) fn of(caller: &Caller) -> Self {
        let lent = |far: &Far| (far.surroundings.folder.clone(), far.surroundings.variables.clone());
        Loan(caller.far_side().map(lent))
    }

    /// Gives them to the command. What it says on its standard error reaches a person at this process only.
    pub(crate) fn give(&self, command: &mut std::process::Command) {
        if let Loan(Some((folder, variables))) = self {
            command.env_clear().envs(variables).current_dir(folder).stderr(std::process::Stdio::null());
        }
    }
}

/// Whether anything but white space is left.
fn says_more(input: &mut impl BufRead) -> bool {
    loop {
        // What can't be read is not left out.
        let Ok(some) = input.fill_buf() else { return false };
        match some.iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(_) => return true,
            None if some.is_empty() => return false,
            None => {
                let blank = some.len();
                input.consume(blank);
            }
        }
    }
}

/// Standard input of this process. Until the first byte is asked for, another process can still do the command.
struct Own<'a> {
    here: &'a Here,
    begun: Option<Chain<Cursor<Vec<u8>>, StdinLock<'static>>>,
}

impl Own<'_> {
    fn begun(&mut self) -> &mut Chain<Cursor<Vec<u8>>, StdinLock<'static>> {
        self.begun.get_or_insert_with(|| {
            self.here.is_read.store(true, Ordering::SeqCst);
            let returned = std::mem::take(&mut *self.here.returned());
            Cursor::new(returned).chain(std::io::stdin().lock())
        })
    }
}

/// What was returned and not read again is for whoever reads next.
impl Drop for Own<'_> {
    fn drop(&mut self) {
        let Some((returned, _)) = self.begun.take().map(Chain::into_inner) else { return };
        let read = usize::try_from(returned.position()).unwrap_or(usize::MAX);
        self.here.returned().splice(..0, returned.into_inner().into_iter().skip(read));
    }
}

impl Read for Own<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.begun().read(buffer)
    }
}

impl BufRead for Own<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.begun().fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.begun().consume(amount);
    }
}

/// Standard input of another process.
struct Input<'a> {
    far: &'a Far,
    portion: Portion,
    left: Vec<u8>,
    at: usize,
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.left.len() {
            let is_cut = self.left.last().is_some_and(|last| *last != b'\n');
            let is_within = is_cut || self.far.is_within.load(Ordering::SeqCst);
            let portion =
                if is_within && self.portion == Portion::Line { Portion::RestOfLine } else { self.portion };
            (self.left, self.at) = (self.far.streams.read(portion)?, 0);
        }
        let rest = self.left.get(self.at..).unwrap_or_default();
        let taken = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.at += taken;
        Ok(taken)
    }
}

/// Standard output or standard error of another process.
struct Shown<'a> {
    streams: &'a dyn Streams,
    is_error: bool,
}

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let some = bytes.get(..CHUNK).unwrap_or(bytes);
        match self.is_error {
            true => self.streams.write_error(some)?,
            false => self.streams.write(some)?,
        }
        Ok(some.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
