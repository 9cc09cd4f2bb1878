//! The data that ships with the program; `data/NOTICE.md` says where it comes from.

use oubliette::exchange::{LineReader, NpyReader, ParsedLine, Records};
use oubliette::{Draft, Error, Result};
use serde::Deserialize;

const MEMORIES: &[u8] = include_bytes!("data/memories.jsonl");
const MEMORY_VECTORS: &[u8] = include_bytes!("data/memories.f16.npy");
const REPORTS: &[u8] = include_bytes!("data/reports.jsonl");
const QUESTIONS: &[u8] = include_bytes!("data/questions.jsonl");
const QUESTION_VECTORS: &[u8] = include_bytes!("data/questions.f16.npy");

/// A question, and the keys of the memories that answer it.
#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) answers: Vec<String>,
    #[serde(skip)]
    pub(super) vector: Vec<f32>,
}

/// The memories, as an import reads them.
pub(super) fn lines() -> LineReader<&'static [u8]> {
    LineReader::new(MEMORIES, "memories.jsonl")
}

/// Their vectors.
pub(super) fn vectors() -> Result<NpyReader<&'static [u8]>> {
    NpyReader::from_reader(MEMORY_VECTORS, "memories.f16.npy")
}

/// The memories as drafts, with their vectors.
pub(super) fn drafts() -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    for (_, record) in Records::new(lines(), Some(vectors()?), false) {
        if let ParsedLine::Draft(line) = record? {
            drafts.push(line.draft);
        }
    }
    Ok(drafts)
}

/// Operational reports, in the order in which they were written.
pub(super) fn reports() -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    let lines = LineReader::new(REPORTS, "reports.jsonl");
    for (_, record) in Records::new(lines, None::<NpyReader<std::io::Empty>>, false) {
        if let ParsedLine::Draft(line) = record? {
            drafts.push(line.draft);
        }
    }
    Ok(drafts)
}

/// The questions, with their vectors.
pub(super) fn questions() -> Result<Vec<Question>> {
    let mut lines = LineReader::new(QUESTIONS, "questions.jsonl");
    let mut vectors = NpyReader::from_reader(QUESTION_VECTORS, "questions.f16.npy")?;
    let mut questions = Vec::new();
    while let Some((number, text)) = lines.next_line()? {
        let mut question: Question = serde_json::from_slice(text)
            .map_err(|why| Error::invalid("question", why.to_string(), number).at_line(number))?;
        vectors.next_row(&mut question.vector)?;
        questions.push(question);
    }
    Ok(questions)
}
