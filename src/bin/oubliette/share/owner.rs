//! The owner: answers other processes while it has the file open.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use oubliette::{Database, Durability};

use crate::caller::{Caller, Portion, Streams, hand_over};
use crate::share::address::socket_of;
use crate::share::frames::{Arriving, Frame, GROUP_BYTES_MAX, Greeting, Sort, encoded, is_late};
use crate::share::host::{Host, Terms};
use crate::share::order::{Ended, Order, Work};

/// Most guests at a time; each has a thread.
const GUESTS_MAX: usize = 64;
/// How often one who waits looks whether the process ends.
const LOOK: Duration = Duration::from_millis(50);
/// How long a guest may take to say what it wants, and how long one may read nothing of what it is sent when the process wants to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a guest may read nothing of what it is sent when another one wants its place.
const UNREAD: Duration = Duration::from_secs(60);
/// How long commands may take to end while nobody more is answered. It is shorter than others wait for the file.
const LAST: Duration = Duration::from_secs(1);

/// A listener beside the file.
pub(super) struct Owner {
    answering: Arc<Answering>,
    socket: Socket,
}

/// The name of a listener, and which file it stood for then.
struct Socket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Socket {
    /// Takes the name away, unless another owner has put its own socket there.
    fn remove(&self) -> std::io::Result<()> {
        let found = std::fs::symlink_metadata(&self.path)?;
        match (found.dev(), found.ino()) == (self.device, self.inode) {
            true => std::fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

/// What the threads of guests share.
struct Answering {
    host: Mutex<Option<Arc<Host>>>,
    work: Work,
    /// The process wants to end.
    leaving: AtomicBool,
    /// Nobody more is answered: the process ends, or another file has the name.
    ending: AtomicBool,
    /// Somebody was refused who found no place.
    wanted: AtomicBool,
    guests: Mutex<Guests>,
    changed: Condvar,
}

/// Who is there.
#[derive(Default)]
struct Guests {
    count: usize,
    /// How many there have been.
    last: u64,
    /// Those whose command is at work, and does not wait for its next line.
    at_work: BTreeSet<u64>,
}

impl Owner {
    /// Listens. The caller holds the lock of the file, so a socket that stands there already was left behind.
    ///
    /// # Errors
    /// In words, where there can be no socket.
    pub(super) fn begin(database: &Database, terms: &Terms, work: Work) -> Result<Self, String> {
        if terms.durability == Some(Durability::Batch) {
            return Err("with --durability batch an answer may be lost, and others would not know".to_owned());
        }
        let socket = socket_of(database.path()).ok_or("the file has no place")?;
        let bound = bind(&socket).map_err(|why| format!("{}: {why}", socket.display()));
        let (listener, socket) = bound?;
        let answering = Arc::new(Answering {
            host: Mutex::new(Some(Arc::new(Host::new(database.clone(), terms)))),
            work,
            leaving: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            guests: Mutex::default(),
            changed: Condvar::new(),
        });
        let owner = Owner { answering: Arc::clone(&answering), socket };
        let accept = move || answering.accept(&listener);
        match std::thread::Builder::new().name("guests".to_owned()).spawn(accept) {
            Ok(_) => Ok(owner),
            Err(why) => {
                owner.end();
                Err(why.to_string())
            }
        }
    }

    /// Answers whom it has begun with, and whoever else comes as long as that lasts; then takes the socket away. The lock of the file is still
    /// held, so nobody puts a socket there meanwhile unless another file has the name.
    pub(super) fn end(self) {
        self.answering.leave();
        if let Err(why) = self.socket.remove() {
            tracing::debug!(%why, "the socket is left behind; the next owner replaces it");
        }
        self.answering.host.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A listener with this name, for this user alone. It is made in a folder that nobody else can look into, so that there is no instant at
/// which another user could reach it.
fn bind(socket: &Path) -> std::io::Result<(UnixListener, Socket)> {
    match std::fs::symlink_metadata(socket) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(std::io::Error::new(ErrorKind::AlreadyExists, "another sort of file has its name"));
        }
        _ => {}
    }
    let beside = socket.parent().unwrap_or(Path::new("."));
    let private = std::fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix(".s").permissions(private).tempdir_in(beside)?;
    let draft = folder.path().join("s");
    let listener = UnixListener::bind(&draft)?;
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))?;
    // A name that is too long for a guest to connect to is found here.
    std::os::unix::net::SocketAddr::from_pathname(socket)?;
    let made = std::fs::symlink_metadata(&draft)?;
    std::fs::rename(&draft, socket)?;
    Ok((listener, Socket { path: socket.to_owned(), device: made.dev(), inode: made.ino() }))
}

impl Answering {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn host(&self) -> Option<Arc<Host>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    /// Whether nobody more is answered. Guests look for the file by its name, so they are sent on once that leads to another one.
    fn looks_to_end(&self) -> bool {
        if !self.is_ending() && self.host().is_some_and(|host| host.is_replaced()) {
            self.ending.store(true, Ordering::SeqCst);
        }
        self.is_ending()
    }

    /// Waits until nobody is there. A long command keeps the file from every other process, so whoever comes is answered until it is done;
    /// then nobody more is answered, as long as the short ones take to end.
    fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        let mut guests = self.guests();
        loop {
            self.ending.store(true, Ordering::SeqCst);
            let waited = self.changed.wait_timeout_while(guests, LAST, |guests| guests.count > 0);
            guests = waited.unwrap_or_else(PoisonError::into_inner).0;
            if guests.count == 0 {
                return;
            }
            let long = guests.at_work.clone();
            self.ending.store(false, Ordering::SeqCst);
            let waited = self.changed.wait_while(guests, |guests| !guests.at_work.is_disjoint(&long));
            guests = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            // Without a descriptor to spare, one that is waited for may become free.
            let Ok(stream) = stream else {
                std::thread::sleep(LOOK);
                continue;
            };
            // Without the listener nobody reaches the socket, whoever's name it has.
            if self.host().is_none_or(|host| host.is_replaced()) {
                self.ending.store(true, Ordering::SeqCst);
                return;
            }
            let mut guests = self.guests();
            // Whoever is hung up on before a greeting has asked for nothing, and tries again.
            if self.is_ending() {
                continue;
            }
            if guests.count >= GUESTS_MAX {
                drop(guests);
                self.wanted.store(true, Ordering::SeqCst);
                refuse(&stream, "");
                continue;
            }
            guests.count += 1;
            guests.last += 1;
            let guest = Guest { number: guests.last, answering: Arc::clone(self) };
            drop(guests);
            // Where there is no thread the guest is dropped, and asks again.
            let _ = std::thread::Builder::new().name("guest".to_owned()).spawn(move || guest.answer(stream));
        }
    }
}

/// One of the guests; counted until it is dropped.
struct Guest {
    number: u64,
    answering: Arc<Answering>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut guests = self.answering.guests();
        guests.count -= 1;
        guests.at_work.remove(&self.number);
        self.answering.changed.notify_all();
    }
}

impl Guest {
    fn answer(self, stream: UnixStream) {
        // A guest that can't be told anything has gone.
        let _ = self.serve(stream);
    }

    fn serve(&self, stream: UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        let far = Arc::new(Far {
            stream,
            arriving: Mutex::default(),
            is_gone: AtomicBool::new(false),
            group: AtomicUsize::new(0),
            number: self.number,
            answering: Arc::clone(&self.answering),
        });
        let greeting = far.expect(Sort::Greeting)?;
        if let Err(why) = Greeting::check(&greeting) {
            refuse(&far.stream, &why);
            return Ok(());
        }
        far.send(Sort::Greeting, &Greeting::ours().bytes())?;
        let order = far.expect(Sort::Order)?;
        let order: Order = postcard::from_bytes(&order).map_err(std::io::Error::other)?;
        far.set_at_work(true);
        let host = self.answering.host().filter(|host| !host.is_replaced());
        let caller = Caller::far(order.surroundings, Box::new(Arc::clone(&far)));
        let ended = match host {
            Some(host) => (self.answering.work)(order.words, caller, host),
            None => Ended::HandOver,
        };
        match ended {
            Ended::Exit(code) => far.send(Sort::Exit, &[code]),
            Ended::HandOver => far.send(Sort::HandOver, &[]),
        }
    }
}

/// Says why no order is taken. A guest that does not read that finds out by itself.
fn refuse(mut stream: &UnixStream, why: &str) {
    let told = stream.set_write_timeout(Some(LOOK)).and_then(|()| encoded(Sort::Refused, why.as_bytes()));
    let _ = told.and_then(|frame| stream.write_all(&frame));
}

/// The streams of a guest.
struct Far {
    stream: UnixStream,
    arriving: Mutex<Arriving>,
    is_gone: AtomicBool,
    /// Bytes of the lines that are read as one, from the first on.
    group: AtomicUsize,
    number: u64,
    answering: Arc<Answering>,
}

impl Far {
    fn set_at_work(&self, is_at_work: bool) {
        let mut guests = self.answering.guests();
        match is_at_work {
            true => guests.at_work.insert(self.number),
            false => guests.at_work.remove(&self.number),
        };
        self.answering.changed.notify_all();
    }

    /// The next frame, which must be of this sort and come soon.
    fn expect(&self, wanted: Sort) -> std::io::Result<Vec<u8>> {
        self.wait(
            wanted,
            |waited, _| if waited > PATIENCE { Err(ErrorKind::TimedOut.into()) } else { Ok(()) },
        )
    }

    /// The next frame, which must be of this sort. `look` says from time to time whether it is still waited for; it is told how long, and
    /// whether nothing has come so far.
    fn wait(
        &self,
        wanted: Sort,
        look: impl Fn(Duration, bool) -> std::io::Result<()>,
    ) -> std::io::Result<Vec<u8>> {
        let begun = Instant::now();
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match arriving.next(&mut &self.stream) {
                Ok(Frame { sort, bytes }) if sort == wanted => return Ok(bytes),
                // The guest is there still, to be told how the command ends.
                Ok(Frame { sort: Sort::Unread, .. }) if wanted == Sort::Input => {
                    return Err(ErrorKind::BrokenPipe.into());
                }
                Ok(_) => return Err(self.lost()),
                Err(why) if is_late(&why) => look(begun.elapsed(), arriving.is_empty())?,
                Err(_) => return Err(self.lost()),
            }
        }
    }

    /// Whether a command between two lines is to go on elsewhere, or here once it has something to say: one of them is enough where somebody
    /// wants a place.
    fn is_to_make_room(&self) -> bool {
        self.answering.looks_to_end() || self.answering.wanted.swap(false, Ordering::SeqCst)
    }

    /// Nobody is there any more, or somebody who speaks another language.
    fn lost(&self) -> std::io::Error {
        self.is_gone.store(true, Ordering::SeqCst);
        ErrorKind::BrokenPipe.into()
    }

    fn send(&self, sort: Sort, bytes: &[u8]) -> std::io::Result<()> {
        if self.is_gone.load(Ordering::SeqCst) {
            return Err(self.lost());
        }
        let frame = encoded(sort, bytes)?;
        let (mut rest, mut moved) = (frame.as_slice(), Instant::now());
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(0) => return Err(self.lost()),
                Ok(sent) => {
                    rest = rest.get(sent..).unwrap_or_default();
                    moved = Instant::now();
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if is_late(&why) => {
                    // A reader that pauses, such as a pager, is waited for as long as that harms nobody.
                    let most = match self.answering.is_leaving() {
                        true => PATIENCE,
                        false if self.answering.guests().count >= GUESTS_MAX => UNREAD,
                        false => Duration::MAX,
                    };
                    if moved.elapsed() > most {
                        return Err(self.lost());
                    }
                }
                Err(_) => return Err(self.lost()),
            }
        }
        Ok(())
    }
}

impl Streams for Arc<Far> {
    fn read(&self, portion: Portion) -> std::io::Result<Vec<u8>> {
        match portion {
            // A command that waits for the middle of its input can't go on elsewhere, however long that takes to come.
            Portion::Any => {
                self.send(Sort::More, &[])?;
                self.wait(Sort::Input, |_, _| Ok(()))
            }
            Portion::Line | Portion::RestOfLine => {
                let is_line = portion == Portion::Line;
                if is_line && self.answering.looks_to_end() {
                    return Err(hand_over());
                }
                if is_line {
                    self.group.store(0, Ordering::SeqCst);
                }
                let before = self.group.load(Ordering::SeqCst);
                self.send(if is_line { Sort::Line } else { Sort::MoreOfLine }, &[])?;
                // What was begun and does not pause is ended here, and what has become too long to begin anew.
                let is_bound = before > GROUP_BYTES_MAX;
                self.set_at_work(is_bound);
                let is_due = || if is_line { self.is_to_make_room() } else { self.answering.looks_to_end() };
                let line = self.wait(Sort::Input, |_, nothing| match nothing && !is_bound && is_due() {
                    true => Err(hand_over()),
                    false => Ok(()),
                });
                self.set_at_work(true);
                self.group.fetch_add(line.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
                line
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.send(Sort::Output, bytes)
    }

    fn write_error(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.send(Sort::Error, bytes)
    }

    fn is_gone(&self) -> bool {
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = self.stream.set_nonblocking(true).and_then(|()| arriving.next(&mut &self.stream));
        // Nothing is due from a guest that was not asked.
        if self.stream.set_nonblocking(false).is_err() || !matches!(&looked, Err(why) if is_late(why)) {
            self.is_gone.store(true, Ordering::SeqCst);
        }
        self.is_gone.load(Ordering::SeqCst)
    }

    fn is_ending(&self) -> bool {
        self.answering.is_ending()
    }
}
