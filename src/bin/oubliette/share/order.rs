//! A command of another process, and what becomes of it.

use std::ffi::OsString;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::caller::{Caller, Surroundings};
use crate::share::host::Host;

/// A command as it is handed over.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What was typed, the name of the program first.
    pub(crate) words: Vec<OsString>,
    pub(crate) surroundings: Surroundings,
}

/// How a command of another process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With an exit code.
    Exit(u8),
    /// Between two parts, because this process ends. It can go on elsewhere.
    HandOver,
}

/// Does the command of another process.
pub(crate) type Work = fn(Vec<OsString>, Caller, Arc<Host>) -> Ended;

/// What became of a command that was to be handed over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It was done, with this exit code.
    Exit(u8),
    /// It was not done, or may be asked for again, with the rest of the input: nobody answers, or who answered has ended.
    Nobody,
    /// As above; what came so far stands.
    HandOver,
    /// The owner has too many guests.
    Busy,
    /// Who answered has gone in the middle, and may have done it.
    Lost,
}

/// A line that answers the question of a server at another process.
#[cfg(feature = "mcp")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// So much of a long answer is done, of so much where that is known.
    Progress(u64, Option<u64>),
    /// The answer.
    Answer(Result<serde_json::Value, oubliette::tools::ToolError>),
}
