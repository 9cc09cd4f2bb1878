//! Where a command is done when another process has the file open.

use oubliette::Error;

use crate::arguments::{
    Command, GoalCommand, IndexCommand, MoveOptions, NamespaceCommand, PolicyCommand, SplitOptions,
};
use crate::gc_arguments::GcCommand;

/// Where a command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// By the process that has the file open. It changes nothing, so it can be asked for twice.
    Reads,
    /// As above; it may change something.
    Writes,
    /// Here, with the file for itself: it gives the open handle another embedder.
    Alone,
    /// Here: it opens no database that another process could have open.
    Here,
    /// Here, call by call by the process that has the file open.
    #[cfg(feature = "mcp")]
    Serves,
}

impl Route {
    /// The route of a command; none is the short screen.
    pub(crate) fn of(command: Option<&Command>) -> Self {
        let Some(command) = command else { return Route::Reads };
        match command {
            Command::Briefing(_)
            | Command::Get(_)
            | Command::Access(_)
            | Command::List(_)
            | Command::Distinct(_)
            | Command::History(_)
            | Command::Changes(_)
            | Command::Events(_)
            | Command::Aggregates(_)
            | Command::Explain(_)
            | Command::Expand(_)
            | Command::Runs(_)
            | Command::Stats(_)
            | Command::MemoryStats
            | Command::Check(_)
            | Command::Eval(_)
            | Command::Export(_)
            | Command::Goal(GoalCommand::List)
            | Command::Gc { command: GcCommand::Show { .. } | GcCommand::Pack { .. } | GcCommand::Report { .. } }
            | Command::Namespace { command: NamespaceCommand::List }
            | Command::Index { command: IndexCommand::List }
            | Command::Policy { command: PolicyCommand::Show | PolicyCommand::Instructions } => Route::Reads,
            Command::Search(options) if !options.track => Route::Reads,
            // What is only rehearsed changes nothing.
            Command::Forget(options) if options.dry_run => Route::Reads,
            Command::Maintain(options) if options.dry_run => Route::Reads,
            Command::Fsck(options) if options.dry_run => Route::Reads,
            Command::Gc { command: GcCommand::Run(options) } if options.dry_run => Route::Reads,
            Command::Namespace { command: NamespaceCommand::Move(MoveOptions { how, .. }) } if how.dry_run => {
                Route::Reads
            }
            Command::Namespace { command: NamespaceCommand::Split(SplitOptions { how, .. }) } if how.dry_run => {
                Route::Reads
            }
            Command::Search(_)
            | Command::Init(_)
            | Command::Add(_)
            | Command::Import(_)
            | Command::ContextLog(_)
            | Command::Goal(_)
            | Command::Update(_)
            | Command::Rename(_)
            | Command::Touch(_)
            | Command::Supersede(_)
            | Command::Restore(_)
            | Command::Contradict(_)
            | Command::Pin(_)
            | Command::Unpin(_)
            | Command::Forget(_)
            | Command::Maintain(_)
            | Command::Gc { .. }
            | Command::Reindex
            | Command::Undo(_)
            | Command::Namespace { .. }
            | Command::Index { .. }
            | Command::Fsck(_)
            // A copy that was begun has its name, and another is refused.
            | Command::Backup(_)
            | Command::Compact
            | Command::Policy { .. }
            | Command::Tool(_) => Route::Writes,
            Command::Reembed(_) => Route::Alone,
            Command::Demo | Command::Completions { .. } => Route::Here,
            #[cfg(feature = "mcp")]
            Command::Serve(_) => Route::Serves,
            #[cfg(feature = "mcp")]
            Command::Setup(_) => Route::Here,
        }
    }

    /// Whether the whole command is handed over.
    pub(crate) fn is_handed_over(self) -> bool {
        matches!(self, Route::Reads | Route::Writes)
    }

    /// Whether the command has the file for itself, or none.
    pub(crate) fn is_alone(self) -> bool {
        matches!(self, Route::Alone | Route::Here)
    }
}

/// The error where the process that did a command has gone.
pub(crate) fn lost() -> Error {
    let why =
        "the process that has the database open ended in the middle of the command; look whether it was done";
    Error::Unavailable { why: why.to_owned() }
}
