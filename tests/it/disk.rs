//! A disk in memory that loses its power, tears sectors and fails on demand.
//!
//! What a process sees and what would survive are two things: a write is durable after a sync of its file, a name
//! after a sync of its folder. Every operation that changes something has a number, counted from 0, and stands on a
//! [`Tape`]; played as far as one of them, the tape gives an image of what a power cut there leaves.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use oubliette::faults::{BackendError, Disk, FileId, OpenFile, StorageBackend};

/// What a disk writes in one piece.
const SECTOR_BYTES: usize = 512;

/// Files by number, and names that lead to them: everything that a disk holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub files: Vec<Vec<u8>>,
    pub names: BTreeMap<PathBuf, usize>,
}

/// One operation that changed something.
#[derive(Clone, Debug)]
pub enum Change {
    Create { path: PathBuf },
    Write { file: usize, offset: usize, bytes: Vec<u8> },
    SetLen { file: usize, len: usize },
    Sync { file: usize },
    Link { file: usize, to: PathBuf },
    Rename { file: usize, from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
    SyncFolder,
}

impl Change {
    /// Whether it only makes durable what came before.
    fn is_sync(&self) -> bool {
        matches!(self, Change::Sync { .. } | Change::SyncFolder)
    }

    /// Does it to an image, `skip` saying which of its sectors are lost.
    fn apply(&self, image: &mut Image, mut skip: impl FnMut() -> bool) {
        match self {
            Change::Create { path } => {
                image.names.insert(path.clone(), image.files.len());
                image.files.push(Vec::new());
            }
            Change::Write { file, offset, bytes } => {
                let mut at = 0;
                while at < bytes.len() {
                    let place = offset + at;
                    let end = bytes.len().min(at + SECTOR_BYTES - place % SECTOR_BYTES);
                    if !skip() {
                        let data = &mut image.files[*file];
                        data.resize(data.len().max(offset + end), 0);
                        data[place..offset + end].copy_from_slice(&bytes[at..end]);
                    }
                    at = end;
                }
            }
            Change::SetLen { file, len } if !skip() => image.files[*file].resize(*len, 0),
            Change::Link { file, to } if !skip() => {
                image.names.insert(to.clone(), *file);
            }
            Change::Rename { file, from, to } if !skip() => {
                image.names.remove(from);
                image.names.insert(to.clone(), *file);
            }
            Change::Remove { path } if !skip() => {
                image.names.remove(path);
            }
            _ => {}
        }
    }

    fn file(&self) -> Option<usize> {
        match self {
            Change::Write { file, .. } | Change::SetLen { file, .. } => Some(*file),
            _ => None,
        }
    }
}

/// A small generator of chance: the same numbers from the same seed, for ever.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// The next 64 bits (splitmix64).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True so many times in eight.
    fn eighths(&mut self, eighths: u64) -> bool {
        self.below(8) < eighths
    }
}

/// The operations of a run, played one by one: what is durable by then, and what may be.
pub struct Tape {
    durable: Image,
    /// What is not synced, of files and of names, in its order.
    unsynced: Vec<Change>,
}

impl Tape {
    pub fn new(base: Image) -> Self {
        Tape { durable: base, unsynced: Vec::new() }
    }

    /// Images of a power cut while `change` is under way, one for each seed; then `change` is done.
    pub fn cut_during(&mut self, change: &Change, seeds: impl Iterator<Item = u64>) -> Vec<Image> {
        if !change.is_sync() {
            self.play(change);
        }
        let images = seeds.map(|seed| self.cut(seed)).collect();
        if change.is_sync() {
            self.play(change);
        }
        images
    }

    /// What is left after a power cut now: all that is synced, and of the rest any sectors and any names.
    pub fn cut(&self, seed: u64) -> Image {
        const EIGHTHS: [u64; 5] = [4, 0, 8, 1, 7];
        let mut chance = Chance::new(seed);
        let kept = |chance: &mut Chance| EIGHTHS[chance.below(EIGHTHS.len() as u64) as usize];
        let (sectors, names) = (kept(&mut chance), kept(&mut chance));
        let mut image = self.durable.clone();
        for change in &self.unsynced {
            let kept = if change.file().is_some() { sectors } else { names };
            change.apply(&mut image, || !chance.eighths(kept));
        }
        let Image { files, names } = &mut image;
        for (number, data) in files.iter_mut().enumerate() {
            if !names.values().any(|file| *file == number) {
                *data = Vec::new();
            }
        }
        image
    }

    fn play(&mut self, change: &Change) {
        let synced: &dyn Fn(&Change) -> bool = match change {
            Change::Sync { file } => &|earlier| earlier.file() == Some(*file),
            Change::SyncFolder => {
                &|earlier| earlier.file().is_none() && !matches!(earlier, Change::Create { .. })
            }
            // A new file exists from the first; whether its name does is another thing.
            Change::Create { path } => {
                let file = self.durable.files.len();
                self.durable.files.push(Vec::new());
                self.unsynced.push(Change::Link { file, to: path.clone() });
                return;
            }
            other => {
                self.unsynced.push(other.clone());
                return;
            }
        };
        let (now_durable, unsynced) = std::mem::take(&mut self.unsynced).into_iter().partition(synced);
        self.unsynced = unsynced;
        let now_durable: Vec<Change> = now_durable;
        now_durable.iter().for_each(|change| change.apply(&mut self.durable, || false));
    }
}

/// Which operations fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Those that change something; their numbers are those of the tape while nothing fails.
    Change,
    /// Reads of a file.
    Read,
}

/// A failure that is to come.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub site: Site,
    /// Number of the operation that fails.
    pub at: u64,
    /// Whether every one after it fails as well.
    pub lasting: bool,
    pub error: fn() -> io::Error,
}

/// The controller gives up; half of a write may be done.
pub fn broken() -> io::Error {
    io::Error::other("input/output error (simulated)")
}

/// There is no room; nothing is done.
pub fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on device (simulated)")
}

#[derive(Debug, Default)]
struct State {
    seen: Image,
    base: Image,
    tape: Vec<Change>,
    /// Operations so far that change something.
    changes: u64,
    reads: u64,
    plan: Option<Plan>,
    locks: Vec<Lock>,
    handles: u64,
}

/// Bytes of a file that a handle has locked, the last one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lock {
    file: usize,
    handle: u64,
    bytes: (u64, u64),
    shared: bool,
}

impl Lock {
    fn excludes(&self, other: &Lock) -> bool {
        let apart = self.bytes.1 < other.bytes.0 || other.bytes.1 < self.bytes.0;
        self.file == other.file && self.handle != other.handle && !apart && !(self.shared && other.shared)
    }
}

/// What happens between two operations of the disk.
type Hook = Box<dyn FnOnce() + Send>;

/// The hook that is next, with the operations that come before it.
#[derive(Default)]
struct Meanwhile(Option<(u64, Hook)>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl State {
    /// Counts an operation; the error that it is to end with.
    fn trouble(&mut self, site: Site) -> Option<io::Error> {
        let count = match site {
            Site::Change => &mut self.changes,
            Site::Read => &mut self.reads,
        };
        let number = *count;
        *count += 1;
        let plan = self.plan.filter(|plan| plan.site == site)?;
        (number == plan.at || (plan.lasting && number > plan.at)).then(plan.error)
    }

    fn make(&mut self, change: Change) -> io::Result<()> {
        if let Some(why) = self.trouble(Site::Change) {
            if let Change::Write { file, offset, bytes } = &change
                && why.kind() == io::ErrorKind::Other
            {
                let half = bytes[..bytes.len() / 2].to_vec();
                let torn = Change::Write { file: *file, offset: *offset, bytes: half };
                torn.apply(&mut self.seen, || false);
                self.tape.push(torn);
            }
            return Err(why);
        }
        change.apply(&mut self.seen, || false);
        self.tape.push(change);
        Ok(())
    }

    fn number(&self, path: &Path) -> io::Result<usize> {
        self.seen.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The disk. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct SimDisk(Arc<Mutex<State>>, Arc<Mutex<Meanwhile>>);

impl SimDisk {
    /// A disk that holds an image, all of it durable.
    pub fn new(image: Image) -> Self {
        let state = State { seen: image.clone(), base: image, ..State::default() };
        SimDisk(Arc::new(Mutex::new(state)), Arc::default())
    }

    /// Lets something happen before an operation, `skipped` operations from now: whoever asked for it stands still
    /// meanwhile, as a process does that another one overtakes.
    pub fn meanwhile(&self, skipped: u64, hook: impl FnOnce() + Send + 'static) {
        self.1.lock().unwrap().0 = Some((skipped, Box::new(hook)));
    }

    /// Takes back what was to happen and has not.
    pub fn nothing_meanwhile(&self) {
        self.1.lock().unwrap().0 = None;
    }

    /// The state at the beginning of an operation.
    fn begin(&self) -> MutexGuard<'_, State> {
        let due = {
            let mut meanwhile = self.1.lock().unwrap();
            match &mut meanwhile.0 {
                Some((0, _)) => meanwhile.0.take(),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            }
        };
        if let Some((_, hook)) = due {
            hook();
        }
        self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// What processes see now.
    pub fn image(&self) -> Image {
        self.state().seen.clone()
    }

    /// What was durable at first, and every change since.
    pub fn recording(&self) -> (Image, Vec<Change>) {
        let state = self.state();
        (state.base.clone(), state.tape.clone())
    }

    /// What a power cut now would leave.
    pub fn cut(&self, seed: u64) -> Image {
        let (base, changes) = self.recording();
        let mut tape = Tape::new(base);
        changes.iter().for_each(|change| tape.play(change));
        tape.cut(seed)
    }

    /// How many operations stand on the tape so far: those that failed do not.
    pub fn taped(&self) -> usize {
        self.state().tape.len()
    }

    /// How many operations changed something so far.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// How many reads there were so far.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Lets operations fail from now on.
    pub fn fail(&self, plan: Plan) {
        self.state().plan = Some(plan);
    }

    /// Whether the failure has come.
    pub fn has_failed(&self) -> bool {
        let state = self.state();
        state.plan.is_some_and(|plan| match plan.site {
            Site::Change => state.changes > plan.at,
            Site::Read => state.reads > plan.at,
        })
    }

    /// Lets nothing fail any more.
    pub fn heal(&self) {
        self.state().plan = None;
    }

    fn handle(&self, state: &mut State, file: usize) -> OpenFile {
        state.handles += 1;
        let backend = Box::new(SimFile { disk: self.clone(), file, handle: state.handles });
        OpenFile { backend, id: Some(id_of(file)) }
    }
}

impl Disk for SimDisk {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.begin().seen.names.contains_key(path))
    }

    fn id(&self, path: &Path) -> io::Result<Option<FileId>> {
        self.begin().number(path).map(|file| Some(id_of(file)))
    }

    fn open(&self, path: &Path, _write: bool) -> io::Result<OpenFile> {
        let mut state = self.begin();
        let file = state.number(path)?;
        Ok(self.handle(&mut state, file))
    }

    fn create(&self, path: &Path) -> io::Result<OpenFile> {
        let mut state = self.begin();
        if state.seen.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.make(Change::Create { path: path.to_owned() })?;
        let file = state.number(path)?;
        Ok(self.handle(&mut state, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin();
        let file = state.number(from)?;
        state.make(Change::Rename { file, from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin();
        state.number(path)?;
        state.make(Change::Remove { path: path.to_owned() })
    }

    fn sync_folder(&self, _file: &Path) -> io::Result<()> {
        self.begin().make(Change::SyncFolder)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.begin();
        Ok(state.seen.files[state.number(path)?].len() as u64)
    }

    fn beside(&self, file: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.begin();
        let beside = state.seen.names.keys().filter(|path| path.parent() == file.parent());
        Ok(beside.cloned().collect())
    }
}

fn id_of(file: usize) -> FileId {
    FileId { device: 1, inode: file as u64 }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    file: usize,
    handle: u64,
}

impl StorageBackend for SimFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.begin().seen.files[self.file].len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.begin();
        if let Some(why) = state.trouble(Site::Read) {
            return Err(why);
        }
        let data = usize::try_from(offset)
            .ok()
            .and_then(|from| state.seen.files[self.file].get(from..from.checked_add(out.len())?));
        out.copy_from_slice(data.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        /// More than any scenario needs: a file that asks for it is damaged.
        const BYTES_MAX: u64 = 1 << 30;
        if len > BYTES_MAX {
            return Err(full());
        }
        self.disk.begin().make(Change::SetLen { file: self.file, len: len as usize })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.begin().make(Change::Sync { file: self.file })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.disk.begin();
        let len = state.seen.files[self.file].len();
        let offset = usize::try_from(offset).map_err(|_| full())?;
        assert!(offset + data.len() <= len, "a write behind the end: {offset} + {} of {len}", data.len());
        state.make(Change::Write { file: self.file, offset, bytes: data.to_vec() })
    }

    fn close(&self) -> io::Result<()> {
        self.disk.state().locks.retain(|lock| lock.handle != self.handle);
        Ok(())
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(self.lock((start, end), false))
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        Ok(self.lock((start, end), true))
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.wait((start, end), false)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.wait((start, end), true)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        let asked = self.range((start, end), false);
        self.disk.state().locks.retain(|lock| (lock.handle, lock.bytes) != (asked.handle, asked.bytes));
        Ok(())
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        let asked = self.range((start, end), false);
        Ok(self.disk.state().locks.iter().any(|lock| lock.excludes(&asked)))
    }
}

impl SimFile {
    fn range(&self, (start, end): (Bound<u64>, Bound<u64>), shared: bool) -> Lock {
        let first = match start {
            Bound::Unbounded => 0,
            Bound::Included(at) => at,
            Bound::Excluded(at) => at + 1,
        };
        let last = match end {
            Bound::Unbounded => u64::MAX,
            Bound::Included(at) => at,
            Bound::Excluded(at) => at - 1,
        };
        Lock { file: self.file, handle: self.handle, bytes: (first, last), shared }
    }

    fn lock(&self, bytes: (Bound<u64>, Bound<u64>), shared: bool) -> bool {
        let asked = self.range(bytes, shared);
        let mut state = self.disk.begin();
        if state.locks.iter().any(|lock| lock.excludes(&asked)) {
            return false;
        }
        state.locks.retain(|lock| (lock.handle, lock.bytes) != (asked.handle, asked.bytes));
        state.locks.push(asked);
        true
    }

    /// There is one thread: whoever would wait for another is told that the waiting was cut off.
    fn wait(&self, bytes: (Bound<u64>, Bound<u64>), shared: bool) -> Result<(), BackendError> {
        match self.lock(bytes, shared) {
            true => Ok(()),
            false => Err(BackendError::Io(io::ErrorKind::WouldBlock.into())),
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // As with a real file: no lock outlives its handle.
        let _ = StorageBackend::close(self);
    }
}
