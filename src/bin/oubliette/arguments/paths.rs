//! The paths that a command names, as they are meant where it was typed.

use std::path::{Path, PathBuf};

use crate::arguments::{
    AccessCommand, Arguments, Command, ExportOptions, FieldOptions, ImportOptions, MaintainOptions,
    PolicyCommand,
};
use crate::gc_arguments::GcCommand;

/// What stands for standard input and output in the place of a path.
const STREAM: &str = "-";

impl Arguments {
    /// Lets relative paths start from a folder; an empty one leaves them as they are.
    pub(crate) fn start_from(&mut self, folder: &Path) {
        if folder.as_os_str().is_empty() {
            return;
        }
        for path in self.paths() {
            if path.as_path() != Path::new(STREAM) {
                *path = folder.join(&*path);
            }
        }
    }

    /// Every path that was named.
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        let global = &mut self.global;
        let of_all = [&mut global.db, &mut global.policy, &mut global.instructions];
        let mut paths: Vec<&mut PathBuf> = of_all.into_iter().flatten().collect();
        paths.extend(self.command.as_mut().map(of_command).unwrap_or_default());
        paths
    }
}

/// Commands without a path stand here too, so that a new one asks for its place.
fn of_command(command: &mut Command) -> Vec<&mut PathBuf> {
    match command {
        Command::Add(options) => of_fields(&mut options.fields),
        Command::Update(options) => of_fields(&mut options.fields),
        Command::Import(ImportOptions { file, vectors, decisions, .. }) => with(file, [vectors, decisions]),
        Command::Search(options) => {
            some([&mut options.vector_file, &mut options.queries, &mut options.vectors])
        }
        Command::Access(AccessCommand::Export { file }) => vec![file],
        Command::ContextLog(options) => vec![&mut options.file],
        Command::Forget(options) => some([&mut options.keys]),
        Command::Maintain(MaintainOptions { prune, report, .. }) => {
            let mut paths = some([report, &mut prune.queries, &mut prune.vectors]);
            paths.extend(&mut prune.compare);
            paths
        }
        Command::Gc { command: GcCommand::Commit(options) } => vec![&mut options.summary],
        Command::Check(options) => some([&mut options.erased]),
        Command::Eval(options) => with(&mut options.queries, [&mut options.vectors]),
        Command::Export(ExportOptions { file, vectors, .. }) => with(file, [vectors]),
        Command::Backup(options) => vec![&mut options.file],
        Command::Policy { command: PolicyCommand::Set { file } } => vec![file],
        Command::Gc { .. }
        | Command::Policy { .. }
        | Command::Init(_)
        | Command::Briefing(_)
        | Command::Get(_)
        | Command::Goal(_)
        | Command::List(_)
        | Command::Distinct(_)
        | Command::History(_)
        | Command::Changes(_)
        | Command::Events(_)
        | Command::Aggregates(_)
        | Command::Explain(_)
        | Command::Rename(_)
        | Command::Touch(_)
        | Command::Supersede(_)
        | Command::Restore(_)
        | Command::Contradict(_)
        | Command::Pin(_)
        | Command::Unpin(_)
        | Command::Expand(_)
        | Command::Reindex
        | Command::Reembed(_)
        | Command::Runs(_)
        | Command::Undo(_)
        | Command::Namespace { .. }
        | Command::Index { .. }
        | Command::Stats(_)
        | Command::MemoryStats
        | Command::Fsck(_)
        | Command::Compact
        | Command::Tool(_)
        | Command::Demo
        | Command::Completions { .. } => Vec::new(),
        #[cfg(feature = "mcp")]
        Command::Serve(_) | Command::Setup(_) => Vec::new(),
    }
}

fn of_fields(fields: &mut FieldOptions) -> Vec<&mut PathBuf> {
    some([&mut fields.payload, &mut fields.vector_file])
}

fn some<'p, const N: usize>(paths: [&'p mut Option<PathBuf>; N]) -> Vec<&'p mut PathBuf> {
    paths.into_iter().flatten().collect()
}

fn with<'p, const N: usize>(
    path: &'p mut PathBuf,
    others: [&'p mut Option<PathBuf>; N],
) -> Vec<&'p mut PathBuf> {
    std::iter::once(path).chain(some(others)).collect()
}
