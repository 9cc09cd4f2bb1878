//! Questions of a client of the Model Context Protocol, put to the process that has the file open.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use oubliette::mcp::Question;
use oubliette::tools::{Caller, ToolError};
use serde_json::{Value, json};

use crate::share::frames::{Frame, Sort, is_late};
use crate::share::guest::Connection;
use crate::share::order::Told;

/// Bytes of a question that are sent at once.
const CHUNK: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The question was not put, or can be put again.
    Nobody,
    /// The owner has gone in the middle, and may have done what was asked.
    Lost,
    /// Whoever asked has left, and nobody would hear an answer.
    Left,
    /// The owner does not work for this process, and says why.
    Refused(String),
}

/// The way to the process that has a file open. Each question has a connection to itself while it is answered.
#[derive(Debug)]
pub(crate) struct FarDesk {
    file: PathBuf,
    words: Vec<OsString>,
    /// A connection that is kept for the next question. One takes a place of the few that the owner has.
    idle: Mutex<Option<Connection>>,
}

impl FarDesk {
    /// To the owner of a file, for a process that was called with these words.
    pub(crate) fn new(file: PathBuf, words: Vec<OsString>) -> Self {
        FarDesk { file, words, idle: Mutex::default() }
    }

    /// Puts a question.
    pub(crate) fn ask(
        &self,
        question: &Question,
        caller: &dyn Caller,
    ) -> Result<Result<Value, ToolError>, Unanswered> {
        let line = format!("{}\n", json!(question));
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
            let is_kept = kept.is_some();
            let mut connection = kept.map_or_else(|| self.connect(), Ok)?;
            match converse(&mut connection, line.as_bytes(), question, caller) {
                Ok(answer) => {
                    *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
                    return Ok(answer);
                }
                // One that was kept may be of an owner that has gone since.
                Err(Unanswered::Nobody) if is_kept => {}
                Err(why) => return Err(why),
            }
        }
    }

    fn connect(&self) -> Result<Connection, Unanswered> {
        let mut connection = Connection::open(&self.file).map_err(|_| Unanswered::Nobody)?;
        connection.give(&self.words).and_then(|()| connection.look_up()).map_err(|_| Unanswered::Nobody)?;
        Ok(connection)
    }
}

/// Sends a question piece by piece, as the owner asks for it, and waits for the answer.
fn converse(
    connection: &mut Connection,
    line: &[u8],
    question: &Question,
    caller: &dyn Caller,
) -> Result<Result<Value, ToolError>, Unanswered> {
    let (mut pieces, mut text, mut complaint) = (line.chunks(CHUNK).peekable(), Vec::new(), Vec::new());
    // Where the search for the end of a line of the answer goes on: long answers come in many frames.
    let mut looked = 0;
    loop {
        let Frame { sort, bytes } = match connection.next() {
            Ok(frame) => frame,
            Err(why) if is_late(&why) && !(question.may_be_left() && caller.is_gone()) => continue,
            // The owner notices that nobody listens.
            Err(why) if is_late(&why) => return Err(Unanswered::Left),
            // Without its last piece the question has no end, so nothing has come of it.
            Err(_) => {
                return Err(if question.is_read() || pieces.peek().is_some() {
                    Unanswered::Nobody
                } else {
                    Unanswered::Lost
                });
            }
        };
        match sort {
            Sort::Line | Sort::MoreOfLine => match pieces.peek().map(|piece| connection.feed(piece)) {
                Some(Ok(())) => drop(pieces.next()),
                // An owner that takes nothing, for as long as a write waits, can't be asked.
                Some(Err(why)) if is_late(&why) => return Err(Unanswered::Nobody),
                // Where nobody is there to be sent it, the next frame is the last, or there is none.
                Some(Err(_)) | None => {}
            },
            Sort::HandOver => return Err(Unanswered::Nobody),
            Sort::Output => text.extend_from_slice(&bytes),
            Sort::Error => complaint.extend_from_slice(&bytes),
            _ => return Err(Unanswered::Refused(String::from_utf8_lossy(&complaint).trim().to_owned())),
        }
        while let Some(end) = text.iter().skip(looked).position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=looked + end).collect();
            looked = 0;
            match serde_json::from_slice(&line) {
                Ok(Told::Progress(done, of)) => caller.progress(done, of),
                Ok(Told::Answer(answer)) => return Ok(answer),
                Err(_) => return Err(Unanswered::Lost),
            }
        }
        looked = text.len();
    }
}
