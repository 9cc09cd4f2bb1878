//! A guest: hands a command over to the process that has the file open.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use oubliette::Error;

use crate::caller::{Caller, Portion, Surroundings};
use crate::output::{Failure, unwritable};
use crate::share::address::socket_of;
use crate::share::frames::{Arriving, FRAME_BYTES_MAX, Frame, GROUP_BYTES_MAX, Greeting, Sort, send};
use crate::share::order::{Asked, Order};

/// How long an owner may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often somebody who waits for an answer looks whether it is still wanted.
#[cfg(feature = "mcp")]
const LOOK: Duration = Duration::from_millis(100);

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Silence {
    /// No process listens.
    Nobody,
    /// The owner has too many guests.
    Busy,
    /// The owner is of another version, or of another user.
    Refused(String),
}

/// Whether a socket belongs to the user of this process: nobody else is told the environment of a command. A descriptor belongs to whoever
/// opened it.
fn is_ours(socket: &Path, stream: &UnixStream) -> std::io::Result<bool> {
    let own = std::fs::File::from(OwnedFd::from(stream.try_clone()?)).metadata()?.uid();
    Ok(std::fs::symlink_metadata(socket)?.uid() == own)
}

/// A connection to the process that has a file open.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    arriving: Arriving,
}

impl Connection {
    /// Finds the owner of a file.
    pub(super) fn open(file: &Path) -> Result<Self, Silence> {
        let socket = socket_of(file).ok_or(Silence::Nobody)?;
        // Whatever fails here, no order was given, and the lock of the file says more than a socket.
        let nobody = |_: std::io::Error| Silence::Nobody;
        let mut stream = UnixStream::connect(&socket).map_err(|why| match why.kind() {
            ErrorKind::PermissionDenied => Silence::Refused(format!(
                "the process that has the file open was not asked: its socket {} is not for this user",
                socket.display()
            )),
            _ => Silence::Nobody,
        })?;
        if !is_ours(&socket, &stream).map_err(nobody)? {
            let why = "its socket belongs to another user".to_owned();
            return Err(Silence::Refused(format!("the process that has the file open was not asked: {why}")));
        }
        stream.set_read_timeout(Some(PATIENCE)).map_err(nobody)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(nobody)?;
        send(&mut stream, Sort::Greeting, &Greeting::ours().bytes()).map_err(nobody)?;
        let mut arriving = Arriving::default();
        let Frame { sort, bytes } = arriving.next(&mut stream).map_err(nobody)?;
        let refused = |why: String| {
            Silence::Refused(format!("the process that has the file open was not asked: {why}"))
        };
        match sort {
            Sort::Greeting => Greeting::check(&bytes).map_err(refused)?,
            Sort::Refused if bytes.is_empty() => return Err(Silence::Busy),
            Sort::Refused => return Err(refused(String::from_utf8_lossy(&bytes).into_owned())),
            _ => return Err(refused("it does not greet".to_owned())),
        }
        // A command takes as long as it takes.
        stream.set_read_timeout(None).map_err(nobody)?;
        Ok(Connection { stream, arriving })
    }

    /// Gives the order. Until the owner has all of it, it has begun with nothing.
    ///
    /// # Errors
    /// Those of the stream, and `InvalidInput` for an order that is too long.
    pub(super) fn give(&mut self, words: &[OsString]) -> std::io::Result<()> {
        let order = Order { words: words.to_vec(), surroundings: Surroundings::here()? };
        let order = postcard::to_stdvec(&order).map_err(std::io::Error::other)?;
        send(&mut self.stream, Sort::Order, &order)
    }

    /// Lets whoever waits for a frame look up from time to time.
    ///
    /// # Errors
    /// Those of the stream.
    #[cfg(feature = "mcp")]
    pub(super) fn look_up(&self) -> std::io::Result<()> {
        self.stream.set_read_timeout(Some(LOOK))
    }

    /// The next frame of the owner.
    ///
    /// # Errors
    /// Those of the stream.
    pub(super) fn next(&mut self) -> std::io::Result<Frame> {
        self.arriving.next(&mut self.stream)
    }

    /// Sends input.
    ///
    /// # Errors
    /// Those of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        send(&mut self.stream, Sort::Input, bytes)
    }

    /// Hands a command over, and shows its answer.
    ///
    /// # Errors
    /// Where the streams of this process can't be read or written to. The owner finds nobody there any more.
    pub(super) fn order(
        mut self,
        words: &[OsString],
        reads: bool,
        caller: &Caller,
    ) -> Result<Asked, Failure> {
        match self.give(words) {
            Err(why) if why.kind() == ErrorKind::InvalidInput => {
                let shown = format!("{FRAME_BYTES_MAX} bytes and more");
                return Err(
                    Error::invalid("the command", "must be shorter, with its environment", shown).into()
                );
            }
            Err(_) => return Ok(Asked::Nobody),
            Ok(()) => {}
        }
        // What was sent and not yet used, whether it could not be sent, and whether anything has come of the command.
        let (mut fed, mut is_unsent, mut is_begun) = (Vec::new(), false, false);
        // Whether the command asks for its input line by line, and whether nobody reads its answers any more.
        let (mut has_lines, mut is_unread) = (false, false);
        loop {
            let Ok(Frame { sort, bytes }) = self.next() else {
                if is_unsent {
                    caller.put_back(&fed);
                    return Ok(Asked::HandOver);
                }
                return Ok(if reads && !is_begun { Asked::Nobody } else { Asked::Lost });
            };
            is_begun |= !matches!(sort, Sort::Exit | Sort::HandOver);
            match sort {
                Sort::Output => {
                    fed.clear();
                    let mut out = caller.output();
                    let shown = out.write_all(&bytes).and_then(|()| out.flush());
                    // The lines that are left make an error of it, and only the owner knows how many are written.
                    is_unread |= has_lines && shown.is_err();
                    if !is_unread {
                        shown.map_err(unwritable)?;
                    }
                }
                // Where not even standard error can be written to, the exit code has to do.
                Sort::Error => drop(caller.error().write_all(&bytes)),
                Sort::More | Sort::Line | Sort::MoreOfLine => {
                    has_lines |= sort == Sort::Line;
                    if is_unread && sort == Sort::Line && caller.may_have_lines() {
                        // An owner that has gone may have said before how the command ended.
                        let _ = send(&mut self.stream, Sort::Unread, &[]);
                        continue;
                    }
                    let portion = if sort == Sort::More { Portion::Any } else { Portion::Line };
                    let some = caller.portion(portion).map_err(|source| Error::Io {
                        action: "read",
                        path: "standard input".into(),
                        source,
                    })?;
                    // An owner that has gone may have said before how the command ended; the next frame tells.
                    let is_sent = self.feed(&some).is_ok();
                    match sort {
                        Sort::MoreOfLine if fed.len() <= GROUP_BYTES_MAX => fed.extend(some),
                        // Its owner ends it.
                        Sort::MoreOfLine => {}
                        _ => fed = some,
                    }
                    is_unsent = !is_sent && sort != Sort::More && fed.len() <= GROUP_BYTES_MAX;
                }
                Sort::Exit => return Ok(Asked::Exit(bytes.first().copied().unwrap_or(1))),
                Sort::HandOver => {
                    caller.put_back(&fed);
                    return Ok(Asked::HandOver);
                }
                Sort::Greeting | Sort::Order | Sort::Input | Sort::Unread | Sort::Refused => {
                    return Ok(Asked::Lost);
                }
            }
        }
    }
}
