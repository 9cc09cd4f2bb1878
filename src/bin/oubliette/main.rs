//! The command line: what a user types, told to the public API, and its answers shown.
//!
//! With `--json` one document (or JSON lines) goes to standard output and nothing else; errors go to standard error.
//! Exit codes: 0 done, 1 error, 2 usage, 3 `check` found something.

mod access;
mod answers;
mod arguments;
mod changes;
mod context_log;
mod demo;
mod distribution;
mod embedder;
mod eval_gc;
mod evaluate;
mod evidence;
mod fields;
mod forget;
mod front;
mod gc;
mod gc_arguments;
mod goal;
mod habit;
mod latency;
mod maintain;
mod output;
mod past;
mod place;
mod progress;
mod prune;
mod read;
mod renamespace;
mod runs;
mod search;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(feature = "mcp")]
mod setup;
mod story;
mod told;
mod tool;
mod upkeep;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::Parser;

use crate::arguments::{Arguments, Command, Global, NamespaceCommand, PolicyCommand};
use crate::output::{Done, Failure, Output};
use crate::place::Place;

/// Where the last panic happened. The default hook would print a backtrace; a panic that the store catches is no
/// news at all.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut place) = PANIC.lock() {
            *place = info.location().map(ToString::to_string);
        }
    }));
    let json =
        std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json");
    match catch_unwind(AssertUnwindSafe(|| start(json))) {
        Ok(code) => code,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
            let place = PANIC.lock().ok().and_then(|mut place| place.take()).unwrap_or_default();
            output::report(&Failure::Bug(format!("{text} ({place})")), json)
        }
    }
}

fn start(json: bool) -> ExitCode {
    let arguments = match Arguments::try_parse().map_err(habit::advised) {
        Ok(arguments) => arguments,
        Err(error) if error.exit_code() == 0 => {
            // Help and version; a pipe that is closed early is no error.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if json => return output::report(&Failure::Usage(error.to_string()), true),
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    };
    let Global { json, quiet, verbose, .. } = arguments.global;
    let output = Output { json, quiet, verbose };
    let done = Place::new(&arguments.global).and_then(|place| run(arguments.command, &place, output));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output::report(&failure, output.json),
    }
}

fn run(command: Option<Command>, place: &Place, output: Output) -> Done {
    let Some(command) = command else { return front::run(place, output) };
    match command {
        Command::Init(options) => maintain::init(&options, place, output),
        Command::Add(options) => write::add(&options, place, output),
        Command::Import(options) => write::import(&options, place, output),
        Command::Search(options) => search::run(&options, place, output),
        Command::Briefing(options) => read::briefing(&options, place, output),
        Command::Get(options) => read::get(&options, place, output),
        Command::Access(command) => access::run(&command, place, output),
        Command::ContextLog(options) => context_log::run(&options, place, output),
        Command::Goal(command) => goal::run(&command, place, output),
        Command::List(options) => read::list(&options, place, output),
        Command::Distinct(options) => read::distinct(&options, place, output),
        Command::History(options) => read::history(&options.name, place, output),
        Command::Changes(options) => changes::run(&options, place, output),
        Command::Events(options) => read::events(&options, place, output),
        Command::Aggregates(options) => read::aggregates(&options, place, output),
        Command::Explain(options) => read::explain(&options.name, place, output),
        Command::Update(options) => write::update(&options, place, output),
        Command::Rename(options) => write::rename(&options, place, output),
        Command::Touch(options) => write::touch(&options, place, output),
        Command::Supersede(options) => write::supersede(&options, place, output),
        Command::Restore(options) => write::restore(&options.name, place, output),
        Command::Contradict(options) => write::contradict(&options, place, output),
        Command::Pin(options) => write::pin(&options.name, true, place, output),
        Command::Unpin(options) => write::pin(&options.name, false, place, output),
        Command::Forget(options) => forget::run(&options, place, output),
        Command::Maintain(options) => upkeep::maintain(&options, place, output),
        Command::Gc { command } => gc::run(&command, place, output),
        Command::Expand(options) => gc::expand(&options, place, output),
        Command::Reindex => upkeep::reindex(place, output),
        Command::Reembed(options) => upkeep::reembed(&options.embedder, place, output),
        Command::Runs(options) => runs::run(&options, place, output),
        Command::Undo(options) => forget::undo(&options.run, place, output),
        Command::Namespace { command: NamespaceCommand::List } => maintain::namespaces(place, output),
        Command::Namespace { command: NamespaceCommand::Drop { name, yes } } => {
            forget::drop(&name, yes, place, output)
        }
        Command::Namespace { command: NamespaceCommand::Move(options) } => {
            renamespace::move_all(&options, place, output)
        }
        Command::Namespace { command: NamespaceCommand::Split(options) } => {
            renamespace::split(&options, place, output)
        }
        Command::Index { command } => upkeep::index(&command, place, output),
        Command::Stats(options) => read::stats(&options, place, output),
        Command::MemoryStats => read::memory_stats(place, output),
        Command::Check(options) => maintain::check(&options, place, output),
        Command::Fsck(options) => maintain::fsck(&options, place, output),
        Command::Eval(options) => evaluate::run(&options, place, output),
        Command::Export(options) => maintain::export(&options, place, output),
        Command::Backup(options) => maintain::backup(&options.file, place, output),
        Command::Compact => maintain::compact(place, output),
        Command::Policy { command: PolicyCommand::Show } => maintain::show_policy(place, output),
        Command::Policy { command: PolicyCommand::Instructions } => maintain::instructions(place, output),
        Command::Policy { command: PolicyCommand::Set { file } } => {
            maintain::set_policy(&file, place, output)
        }
        #[cfg(feature = "mcp")]
        Command::Serve(options) => serve::run(&options, place),
        #[cfg(feature = "mcp")]
        Command::Setup(options) => setup::run(&options, place, output),
        Command::Tool(options) => tool::run(&options, place),
        Command::Demo => demo::run(place, output),
        Command::Completions { shell } => maintain::completions(shell),
    }
}
