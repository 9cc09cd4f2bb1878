//! The data that ships with the program; `data/NOTICE.md` says where it comes from.

use oubliette::exchange::{LineReader, NpyReader, ParsedLine, Records};
use oubliette::{Draft, Error, Result};
use serde::Deserialize;

const MEMORIES: &[u8] = include_bytes!("data/memories.jsonl");
const REPORTS: &[u8] = include_bytes!("data/reports.jsonl");
const QUESTIONS: &[u8] = include_bytes!("data/questions.jsonl");

/// A question, and the keys of the memories that answer it.
#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) answers: Vec<String>,
    pub(super) query: String,
}

/// The memories, as an import reads them.
pub(super) fn lines() -> LineReader<&'static [u8]> {
    LineReader::new(MEMORIES, "memories.jsonl")
}

/// The memories as drafts.
pub(super) fn drafts() -> Result<Vec<Draft>> {
    read(lines())
}

/// Operational reports, in the order in which they were written.
pub(super) fn reports() -> Result<Vec<Draft>> {
    read(LineReader::new(REPORTS, "reports.jsonl"))
}

fn read(lines: LineReader<&'static [u8]>) -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    for (_, record) in Records::new(lines, None::<NpyReader<std::io::Empty>>, false) {
        if let ParsedLine::Draft(line) = record? {
            drafts.push(line.draft);
        }
    }
    Ok(drafts)
}

/// The questions.
pub(super) fn questions() -> Result<Vec<Question>> {
    let mut lines = LineReader::new(QUESTIONS, "questions.jsonl");
    let mut questions = Vec::new();
    while let Some((number, text)) = lines.next_line()? {
        let question: Question = serde_json::from_slice(text)
            .map_err(|why| Error::invalid("question", why.to_string(), number).at_line(number))?;
        questions.push(question);
    }
    Ok(questions)
}
