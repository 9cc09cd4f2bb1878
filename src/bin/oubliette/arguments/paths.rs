//! The paths that a command names, as they are meant where it was typed.

use std::path::{Path, PathBuf};

use oubliette::exchange::Target;
use oubliette::{Error, Result};

use crate::arguments::{
    AccessCommand, Arguments, Command, ExportOptions, FieldOptions, GoalCommand, ImportOptions,
    MaintainOptions, PolicyCommand,
};
use crate::gc_arguments::GcCommand;

/// What stands for standard input and output in the place of a path.
const STREAM: &str = "-";

impl Arguments {
    /// Gives every path the meaning that it had where it was typed.
    ///
    /// # Errors
    /// Those of `meant`.
    pub(crate) fn mean(&mut self, meant: impl Fn(&Path) -> Result<PathBuf>) -> Result<()> {
        for path in self.paths() {
            if path.as_path() != Path::new(STREAM) {
                *path = meant(path)?;
            }
        }
        Ok(())
    }

    /// Refuses a file to write that is another file of the call as well.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub(crate) fn keep_apart(&mut self) -> Result<()> {
        let written = self.command.as_ref().map(written_by).unwrap_or_default();
        let written: Vec<_> = written.into_iter().map(|(name, path)| (name, path.to_owned())).collect();
        // The database comes first, if it was named. Whoever opens the file to write refuses that in words of its own.
        let named = usize::from(self.global.db.is_some());
        let all: Vec<PathBuf> = self.paths().into_iter().skip(named).map(|path| path.clone()).collect();
        for (name, file) in written {
            // Standard output, a pipe, or the terminal, takes one text after the other.
            let is_stream =
                file == Path::new(STREAM) || std::fs::metadata(&file).is_ok_and(|found| !found.is_file());
            let places =
                all.iter().filter(|other| Target::place_of(other) == Target::place_of(&file)).count();
            if places > 1 && !is_stream {
                return Err(not_its_own(name, &file));
            }
        }
        Ok(())
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

/// The refusal of a file to write that is another file of the call as well.
pub(crate) fn not_its_own(name: &str, file: &Path) -> Error {
    Error::invalid(name, "must be a file of its own", file.display())
}

/// The files that a command writes, with the names of their options.
fn written_by(command: &Command) -> Vec<(&'static str, &Path)> {
    let all = match command {
        Command::Import(options) => vec![("--decisions", options.decisions.as_ref())],
        Command::Access(AccessCommand::Export { file }) => vec![("file", Some(file))],
        Command::Maintain(options) => vec![("--report", options.report.as_ref())],
        Command::Export(options) => {
            vec![("--vectors", options.vectors.as_ref()), ("file", Some(&options.file))]
        }
        Command::Backup(options) => vec![("file", Some(&options.file))],
        _ => Vec::new(),
    };
    all.into_iter().filter_map(|(name, path)| Some((name, path?.as_path()))).collect()
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
        Command::Goal(GoalCommand::Set(options)) => some([&mut options.vector_file]),
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
        #[cfg(feature = "mcp-http")]
        Command::Serve(options) => some([&mut options.http.token_file]),
        #[cfg(all(feature = "mcp", not(feature = "mcp-http")))]
        Command::Serve(_) => Vec::new(),
        #[cfg(feature = "mcp")]
        Command::Setup(_) => Vec::new(),
    }
}

fn of_fields(fields: &mut FieldOptions) -> Vec<&mut PathBuf> {
    some([&mut fields.payload, &mut fields.vector_file])
}

fn some<const N: usize>(paths: [&mut Option<PathBuf>; N]) -> Vec<&mut PathBuf> {
    paths.into_iter().flatten().collect()
}

fn with<'p, const N: usize>(
    path: &'p mut PathBuf,
    others: [&'p mut Option<PathBuf>; N],
) -> Vec<&'p mut PathBuf> {
    std::iter::once(path).chain(some(others)).collect()
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::{CommandFactory, Parser};
    use oubliette::Result;
    use std::path::{Path, PathBuf};

    fn is_path(arg: &&clap::Arg) -> bool {
        arg.get_value_parser().type_id() == clap::builder::ValueParser::path_buf().type_id()
    }

    /// The options of a command and of those below it that take a path, without those that every command has.
    fn count(command: &clap::Command) -> usize {
        let own = command.get_arguments().filter(|arg| !arg.is_global_set()).filter(is_path).count();
        own + command.get_subcommands().map(count).sum::<usize>()
    }

    fn in_folder(path: &Path) -> Result<PathBuf> {
        Ok(Path::new("/folder").join(path))
    }

    #[test]
    fn every_path_is_given_its_meaning() {
        let all: &[&[&str]] = &[
            &["--db", "p", "--policy", "p", "--instructions", "p", "list"],
            &["add", "x", "--payload", "p"],
            &["add", "x", "--vector-file", "p"],
            &["update", "x", "--payload", "p"],
            &["update", "x", "--vector-file", "p"],
            &["import", "p", "--vectors", "p", "--decisions", "p"],
            &["search", "x", "--vector-file", "p"],
            &["search", "--queries", "p", "--vectors", "p"],
            &["access", "export", "p"],
            &["context-log", "x", "p"],
            &["goal", "set", "x", "--vector-file", "p"],
            &["forget", "--keys", "p", "--yes"],
            &["maintain", "--report", "p"],
            &["maintain", "prune", "--dry-run", "--compare", "p", "--queries", "p", "--vectors", "p"],
            &["gc", "commit", "x", "x", "--summary", "p"],
            &["check", "--erased", "p"],
            &["eval", "--queries", "p", "--vectors", "p"],
            &["export", "p", "--vectors", "p"],
            &["backup", "p"],
            &["policy", "set", "p"],
            #[cfg(feature = "mcp-http")]
            &["serve", "--http", "127.0.0.1:0", "--token-file", "p"],
        ];
        let mut seen = 0;
        for words in all {
            let words = || std::iter::once("oubliette").chain(words.iter().copied());
            let mut arguments = Arguments::try_parse_from(words()).unwrap();
            arguments.mean(in_folder).unwrap();
            let paths = arguments.paths();
            assert!(paths.iter().all(|path| path.as_path() == Path::new("/folder/p")), "{paths:?}");
            assert_eq!(paths.len(), words().filter(|word| *word == "p").count());
            seen += paths.len();
        }
        let mut command = Arguments::command();
        command.build();
        let of_all = command.get_arguments().filter(|arg| arg.is_global_set()).filter(is_path).count();
        assert_eq!(seen, of_all + count(&command), "an option that takes a path is missing above");
        let mut stream = Arguments::try_parse_from(["oubliette", "import", "-"]).unwrap();
        stream.mean(in_folder).unwrap();
        assert_eq!(stream.paths()[0].as_path(), Path::new("-"));
    }
}
