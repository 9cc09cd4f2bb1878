//! A summarizer that is a command: with all that it starts it ends when it is too late, and when this process ends.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use oubliette::exchange::{ParsedLine, parse_line};
use oubliette::gc::{Fault, InputPack, Summarizer};
use oubliette::{Draft, Error, Memory, Result};
use serde_json::{Value, json};

use crate::answers::memory_text;
use crate::caller::Loan;

/// Bytes of an answer that are read.
pub(crate) const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// How often a command that has written its answer is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A command that writes summaries: the pack on its standard input, the summary on its standard output.
pub(crate) struct Commanded {
    /// A line of the shell.
    pub(crate) command: String,
    /// How long it may take for one answer.
    pub(crate) timeout: Duration,
    /// What it needs of whoever typed it.
    pub(crate) loan: Loan,
}

impl Commanded {
    fn error(why: impl Into<String>) -> Error {
        Error::Conflict { what: "the summarizer".to_owned(), why: why.into() }
    }

    /// What the command prints when it is given a document.
    fn answer(&self, given: String) -> Result<String> {
        let unstarted = |why: std::io::Error| Commanded::error(format!("it can't be started: {why}"));
        let mut command = Command::new("sh");
        let leash = Leash::on(&mut command, &self.command).map_err(unstarted)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        self.loan.give(&mut command);
        let mut child = command.spawn().map_err(unstarted)?;
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // Neither pipe may keep the other from moving. A command that reads nothing breaks its own pipe.
        std::thread::spawn(move || stdin.as_mut().map(|stdin| stdin.write_all(given.as_bytes())));
        let (send, answer) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.map(|stdout| stdout.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes));
            // Nobody waits any more for a command that was too late.
            let _ = send.send(read.transpose().map(|_| bytes));
        });
        let bytes = answer.recv_timeout(self.timeout);
        let flood = matches!(&bytes, Ok(Ok(bytes)) if bytes.len() as u64 > ANSWER_BYTES_MAX);
        if bytes.is_err() || flood {
            end(&mut child);
            let why = if flood { "it wrote more than 4 MiB" } else { "it took too long" };
            return Err(Commanded::error(why));
        }
        let status = ended(&mut child, self.timeout)?;
        leash.release();
        if !status.success() {
            return Err(Commanded::error(format!("it ended with {status}")));
        }
        let bytes = bytes.ok().and_then(std::result::Result::ok).unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| Commanded::error("it wrote what is no UTF-8"))
    }
}

impl Summarizer for Commanded {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        self.answer(json!(pack).to_string())
    }

    /// The command is given the memories under `consolidate`, and prints one as a line of an import.
    fn consolidate(&self, memories: &[Memory]) -> Result<Draft> {
        let lines: Vec<String> = memories.iter().map(|memory| memory_text(memory, false)).collect();
        let answer = self.answer(format!(r#"{{"consolidate":[{}]}}"#, lines.join(",")))?;
        match parse_line(answer.trim().as_bytes(), false)? {
            ParsedLine::Draft(line) => Ok(line.draft),
            ParsedLine::Memory(_) | ParsedLine::Kept(_) => {
                Err(Commanded::error("it wrote a line of an export, not a new memory"))
            }
        }
    }

    /// The command is given the pack once more, with the answer and its faults under `repair`.
    fn repair(&self, pack: &InputPack, answer: &str, faults: &[Fault]) -> Result<Option<String>> {
        let faults = faults.iter().map(|fault| json!({ "pointer": fault.pointer, "what": fault.what }));
        let mut given = json!(pack);
        if let Value::Object(members) = &mut given {
            let asked = json!({ "answer": answer, "faults": faults.collect::<Vec<_>>() });
            members.insert("repair".to_owned(), asked);
        }
        self.answer(given.to_string()).map(Some)
    }
}

/// What ends a command with everything that it has started, should this process end before it: however it ends, by a signal of
/// the terminal too, which the command's own group does not get.
///
/// Beside the command the shell waits for the end of a pipe whose other end is held here.
struct Leash {
    /// None where there are no process groups.
    held: Option<PipeWriter>,
    /// The end for the shell, which must be open until it has started.
    _watched: Option<PipeReader>,
}

impl Leash {
    /// Has the shell run a line, in a process group of its own, and watch over it.
    #[cfg(unix)]
    fn on(shell: &mut Command, line: &str) -> std::io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::process::CommandExt as _;

        let (watched, held) = std::io::pipe()?;
        // A child of another thread may get this end as well. That does no harm: only the other end says anything.
        rustix::io::fcntl_setfd(&watched, rustix::io::FdFlags::empty())?;
        let end = format!("/dev/fd/{}", watched.as_raw_fd());
        // Two shells deep, the watcher is no child of the command, which may wait for all its children.
        let watch =
            format!("if [ -e {end} ]; then ( (read -r _ < {end} || kill -KILL 0) > /dev/null 2>&1 & ) fi");
        shell.process_group(0).args(["-c", &format!("{watch}\nexec sh -c \"$1\""), "sh", line]);
        Ok(Leash { held: Some(held), _watched: Some(watched) })
    }

    /// Has the shell run a line.
    #[cfg(not(unix))]
    fn on(shell: &mut Command, line: &str) -> std::io::Result<Self> {
        shell.args(["-c", line]);
        Ok(Leash { held: None, _watched: None })
    }

    /// Leaves alone what a command has left behind at its end: a server, say, that the next command finds.
    fn release(self) {
        if let Some(mut held) = self.held {
            // Without a watcher nobody reads.
            let _ = held.write_all(b"\n");
        }
    }
}

/// Ends a command with everything that it has started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Ok(id) = i32::try_from(child.id())
        && let Some(group) = rustix::process::Pid::from_raw(id)
    {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // As above.
    let _ = child.kill();
    let _ = child.wait();
}

/// The end of a command that has closed its output.
fn ended(child: &mut Child, timeout: Duration) -> Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < timeout => std::thread::sleep(LOOK),
            _ => {
                end(child);
                return Err(Commanded::error("it took too long"));
            }
        }
    }
}
