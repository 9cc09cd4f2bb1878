//! The command line: what a user types, told to the public API, and its answers shown.
//!
//! With `--json` one document (or JSON lines) goes to standard output and nothing else; errors go to standard error.
//! Exit codes: 0 done, 1 error, 2 usage, which the value of an option is that breaks a bound, 3 `check` found something, or a
//! copy misses what is damaged.

mod access;
mod answers;
mod arguments;
mod caller;
mod changes;
mod context_log;
mod demo;
#[cfg(feature = "mcp")]
mod desk;
mod distribution;
mod embedder;
mod eval_gc;
mod evaluate;
mod evidence;
mod fields;
mod figures;
mod forget;
mod front;
mod gc;
mod gc_arguments;
mod goal;
mod habit;
mod latency;
mod maintain;
mod number;
mod output;
mod past;
mod place;
mod progress;
mod prune;
mod read;
mod renamespace;
mod route;
mod runs;
mod search;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(feature = "mcp")]
mod setup;
mod share;
mod story;
mod summarizer;
mod temporary;
mod told;
mod tool;
mod typed;
mod upkeep;
mod usage;
mod write;
mod written;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use oubliette::Error;

use crate::arguments::{Arguments, Command, Global, NamespaceCommand, PolicyCommand};
use crate::caller::Caller;
use crate::output::{Done, Failure, Output};
use crate::place::Place;
use crate::route::Route;
use crate::share::{Asked, Ended, Host};

/// Where the last panic happened. The default hook would print a backtrace; a panic that the store catches is no
/// news at all.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// How long a process is left alone that has too many guests, or did nothing with a command.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut place) = PANIC.lock() {
            *place = info.location().map(ToString::to_string);
        }
    }));
    outlive_file_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    let caller = Arc::new(Caller::here());
    match guarded(&words, &caller, || start(&words, &caller)) {
        Ended::Exit(code) => ExitCode::from(code),
        Ended::HandOver => ExitCode::SUCCESS,
    }
}

/// A write past the size that a file may have (`ulimit -f`) fails like one to a full disk, and is told. By itself the system would
/// end the process with a signal, which says nothing. Programs that this one starts hear the signal as ever.
fn outlive_file_limit() {
    #[cfg(unix)]
    {
        let heard = Arc::new(std::sync::atomic::AtomicBool::new(false));
        // Where it can't be heard, it ends the process as it would anyway.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, heard);
    }
}

/// The end of a piece of work; a panic is told as a bug of ours.
fn guarded(words: &[OsString], caller: &Caller, work: impl FnOnce() -> Ended) -> Ended {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let place = PANIC.lock().ok().and_then(|mut place| place.take()).unwrap_or_default();
        let failure = Failure::Bug(format!("{text} ({place})"));
        Ended::Exit(output::report(&failure, wants_json(words), false, caller))
    })
}

fn wants_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

fn start(words: &[OsString], caller: &Arc<Caller>) -> Ended {
    let mut arguments = match Arguments::try_parse_from(habit::help_of_help(words)).map_err(habit::advised) {
        Ok(arguments) => arguments,
        Err(error) if error.exit_code() != 0 && wants_json(words) => {
            return Ended::Exit(output::report(&Failure::Usage(error.to_string()), true, false, caller));
        }
        Err(error) => {
            // Help and version too; a pipe that is closed early is no error.
            let _ = error.print();
            return Ended::Exit(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let Global { json, quiet, verbose, .. } = arguments.global;
    let output = Output { json, quiet, verbose, caller };
    let route = Route::of(arguments.command.as_ref());
    let apart = arguments.keep_apart().map_err(Failure::from);
    let done = apart
        .and_then(|()| Place::new(&arguments.global, Arc::clone(caller), answer))
        .map(|place| if route.is_alone() { place.alone() } else { place })
        .and_then(|place| shared(words, &arguments, &Arc::new(place), (route, output)));
    ended(done, words, route == Route::Writes, output)
}

/// Does a command here, or lets the process do it that has the file open.
fn shared(
    words: &[OsString],
    arguments: &Arguments,
    place: &Arc<Place>,
    (route, output): (Route, Output<'_>),
) -> Result<u8, Failure> {
    let Some(sharing) = place.sharing() else { return run(arguments, place, output).map(|()| 0) };
    let mut deadline = Instant::now() + place.patience();
    loop {
        if route.is_handed_over()
            && let Ok(path) = place.path()
        {
            let begun = Instant::now();
            let asked = sharing.ask(path, words, route == Route::Reads, place.caller())?;
            // While another process works on the command, the file is not waited for.
            deadline += begun.elapsed();
            match asked {
                Asked::Exit(code) => return Ok(code),
                Asked::Lost => return Err(route::lost().into()),
                Asked::HandOver => continue,
                Asked::Busy if Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Asked::Busy | Asked::Nobody => {}
            }
        }
        let done = run(arguments, place, output);
        // Those who were answered meanwhile are answered to the end, whatever became of the command.
        sharing.end();
        if let (Some(trouble), true) = (sharing.trouble(), output.verbose || is_locked(&done)) {
            output.remark(&trouble);
        }
        if !(is_locked(&done) && sharing.take_found() && Instant::now() < deadline) {
            return done.map(|()| 0);
        }
        std::thread::sleep(PAUSE);
    }
}

fn is_locked(done: &Done) -> bool {
    matches!(done, Err(Failure::Error(Error::Locked { .. })))
}

fn ended(done: Result<u8, Failure>, words: &[OsString], writes: bool, output: Output<'_>) -> Ended {
    match done {
        Ok(code) => Ended::Exit(code),
        Err(Failure::HandOver) => Ended::HandOver,
        Err(failure) => {
            let code = output::report(&failure, output.json, writes, output.caller);
            let is_usage = matches!(&failure, Failure::Error(error) if usage::is_of_option(words, error));
            Ended::Exit(if is_usage { output::USAGE } else { code })
        }
    }
}

/// Does the command of another process on the handle that is open here.
fn answer(words: Vec<OsString>, caller: Caller, host: Arc<Host>) -> Ended {
    let caller = Arc::new(caller);
    guarded(&words, &caller, || {
        let mut arguments = match Arguments::try_parse_from(&words) {
            Ok(arguments) => arguments,
            Err(error) => {
                let failure = Failure::Usage(error.to_string());
                return Ended::Exit(output::report(&failure, wants_json(&words), false, &caller));
            }
        };
        let meant = arguments.mean(|path| caller.meant(path)).and_then(|()| arguments.keep_apart());
        let meant = meant.map_err(Failure::from);
        let Global { json, quiet, verbose, .. } = arguments.global;
        let output = Output { json, quiet, verbose, caller: &caller };
        let place = meant.and_then(|()| Place::of_guest(&arguments.global, Arc::clone(&caller), host));
        let done = place.and_then(|place| run(&arguments, &Arc::new(place), output));
        ended(done.map(|()| 0), &words, Route::of(arguments.command.as_ref()) == Route::Writes, output)
    })
}

fn run(arguments: &Arguments, place: &Arc<Place>, output: Output<'_>) -> Done {
    let done = work(arguments, place, output);
    place.tell_clock(output);
    place.tell_unclosed(output);
    done
}

fn work(arguments: &Arguments, place: &Arc<Place>, output: Output<'_>) -> Done {
    let Some(command) = &arguments.command else { return front::run(place, output) };
    match command {
        Command::Init(options) => maintain::init(options, place, output),
        Command::Add(options) => write::add(options, place, output),
        Command::Import(options) => write::import(options, place, output),
        Command::Search(options) => search::run(options, place, output),
        Command::Briefing(options) => read::briefing(options, place, output),
        Command::Get(options) => read::get(options, place, output),
        Command::Access(command) => access::run(command, place, output),
        Command::ContextLog(options) => context_log::run(options, place, output),
        Command::Goal(command) => goal::run(command, place, output),
        Command::List(options) => read::list(options, place, output),
        Command::Distinct(options) => read::distinct(options, place, output),
        Command::History(options) => read::history(&options.name, place, output),
        Command::Changes(options) => changes::run(options, place, output),
        Command::Events(options) => read::events(options, place, output),
        Command::Aggregates(options) => read::aggregates(options, place, output),
        Command::Explain(options) => read::explain(&options.name, place, output),
        Command::Update(options) => write::update(options, place, output),
        Command::Rename(options) => write::rename(options, place, output),
        Command::Touch(options) => write::touch(options, place, output),
        Command::Supersede(options) => write::supersede(options, place, output),
        Command::Restore(options) => write::restore(&options.name, place, output),
        Command::Contradict(options) => write::contradict(options, place, output),
        Command::Pin(options) => write::pin(&options.name, true, place, output),
        Command::Unpin(options) => write::pin(&options.name, false, place, output),
        Command::Forget(options) => forget::run(options, place, output),
        Command::Maintain(options) => upkeep::maintain(options, place, output),
        Command::Gc { command } => gc::run(command, place, output),
        Command::Expand(options) => gc::expand(options, place, output),
        Command::Reindex => upkeep::reindex(place, output),
        Command::Reembed(options) => upkeep::reembed(&options.model, place, output),
        Command::Runs(options) => runs::run(options, place, output),
        Command::Undo(options) => forget::undo(&options.run, place, output),
        Command::Namespace { command: NamespaceCommand::List } => maintain::namespaces(place, output),
        Command::Namespace { command: NamespaceCommand::Drop { name, yes } } => {
            forget::drop(name, *yes, place, output)
        }
        Command::Namespace { command: NamespaceCommand::Move(options) } => {
            renamespace::move_all(options, place, output)
        }
        Command::Namespace { command: NamespaceCommand::Split(options) } => {
            renamespace::split(options, place, output)
        }
        Command::Index { command } => upkeep::index(command, place, output),
        Command::Stats(options) => read::stats(options, place, output),
        Command::MemoryStats => read::memory_stats(place, output),
        Command::Check(options) => maintain::check(options, place, output),
        Command::Fsck(options) => maintain::fsck(options, place, output),
        Command::Eval(options) => evaluate::run(options, place, output),
        Command::Export(options) => maintain::export(options, place, output),
        Command::Backup(options) => maintain::backup(&options.file, place, output),
        Command::Compact => maintain::compact(place, output),
        Command::Policy { command: PolicyCommand::Show } => maintain::show_policy(place, output),
        Command::Policy { command: PolicyCommand::Instructions } => maintain::instructions(place, output),
        Command::Policy { command: PolicyCommand::Set { file } } => maintain::set_policy(file, place, output),
        #[cfg(feature = "mcp")]
        Command::Serve(options) => serve::run(options, place, output),
        #[cfg(feature = "mcp")]
        Command::Setup(options) => setup::run(options, &arguments.global, place, output),
        Command::Tool(options) => tool::run(options, place, output),
        Command::Demo => demo::run(place, output),
        Command::Completions { shell } => maintain::completions(*shell, output),
    }
}
