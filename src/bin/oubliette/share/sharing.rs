//! How the command of this process stands to other processes.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::caller::Caller;
use crate::output::Failure;
use crate::share::host::Terms;
use crate::share::order::{Asked, Work};
#[cfg(unix)]
use crate::share::{address, guest, owner};

/// The owner's side, once the file is open here, and what was seen of other owners before.
pub(crate) struct Sharing {
    #[cfg(unix)]
    work: Work,
    #[cfg(unix)]
    owner: Mutex<Option<owner::Owner>>,
    /// Whether somebody else was found who has the file and answers.
    found: AtomicBool,
    /// Why no other process can be answered or asked.
    trouble: Mutex<Option<String>>,
}

impl std::fmt::Debug for Sharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sharing")
            .field("found", &self.found)
            .field("trouble", &self.trouble())
            .finish_non_exhaustive()
    }
}

impl Sharing {
    /// Of a process that does the commands of others by `work`.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "nobody else is answered there"))]
    pub(crate) fn new(work: Work) -> Self {
        Sharing {
            #[cfg(unix)]
            work,
            #[cfg(unix)]
            owner: Mutex::default(),
            found: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    /// Why no other process can be answered or asked, in words.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, why: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Whether an opening has found somebody else who has the file and answers.
    pub(crate) fn is_found(&self) -> bool {
        self.found.load(Ordering::SeqCst)
    }

    /// As [`Sharing::is_found`], once.
    pub(crate) fn take_found(&self) -> bool {
        self.found.swap(false, Ordering::SeqCst)
    }
}

#[cfg(unix)]
impl Sharing {
    /// Answers other processes from now on; where there can be no socket, [`Sharing::trouble`] says why.
    pub(crate) fn begin(&self, database: &oubliette::Database, terms: &Terms) {
        match owner::Owner::begin(database, terms, self.work) {
            Ok(owner) => *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(owner),
            Err(why) => self.note(format!("other processes cannot use the file meanwhile: {why}")),
        }
    }

    /// Answers those who have begun, and nobody else. The file can be closed then.
    pub(crate) fn end(&self) {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(owner) = owner {
            owner.end();
        }
    }

    /// Whether somebody else has the file and answers.
    pub(crate) fn look_around(&self, file: &Path) -> bool {
        let found = match guest::Connection::open(file) {
            Ok(_) => true,
            Err(guest::Silence::Busy) => false,
            Err(guest::Silence::Nobody) => {
                if address::has_other_names(file) {
                    self.note("the file has several names: use the one that it was opened by".to_owned());
                }
                false
            }
            Err(guest::Silence::Refused(why)) => {
                self.note(why);
                false
            }
        };
        self.found.fetch_or(found, Ordering::SeqCst);
        found
    }

    /// Hands a command over to whoever has the file. One that only reads is asked for again where nothing has come of it.
    pub(crate) fn ask(
        &self,
        file: &Path,
        words: &[OsString],
        reads: bool,
        caller: &Caller,
    ) -> Result<Asked, Failure> {
        match guest::Connection::open(file) {
            Ok(connection) => connection.order(words, reads, caller),
            Err(guest::Silence::Busy) => Ok(Asked::Busy),
            Err(guest::Silence::Nobody) => Ok(Asked::Nobody),
            Err(guest::Silence::Refused(why)) => {
                self.note(why);
                Ok(Asked::Nobody)
            }
        }
    }
}

#[cfg(not(unix))]
impl Sharing {
    /// Says that no other process can be answered.
    pub(crate) fn begin(&self, _database: &oubliette::Database, _terms: &Terms) {
        self.note("other processes cannot use the file meanwhile: this system is not supported".to_owned());
    }

    /// Nobody was answered.
    pub(crate) fn end(&self) {}

    /// Nobody answers.
    pub(crate) fn look_around(&self, _file: &Path) -> bool {
        false
    }

    /// Nobody answers.
    pub(crate) fn ask(
        &self,
        _file: &Path,
        _words: &[OsString],
        _reads: bool,
        _caller: &Caller,
    ) -> Result<Asked, Failure> {
        Ok(Asked::Nobody)
    }
}
