//! The lines of a file, each of bounded length, and the vectors that belong to them.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::exchange::line::ParsedLine;
use crate::exchange::npy::NpyReader;
use crate::exchange::parse::parse_line;
use crate::limits::{EXPORT_LINE_BYTES_MAX, LINE_BYTES_MAX};
use crate::model::check_content;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines that end in LF or CR LF, the last one with or without; skips blank ones and a byte order mark
/// at the start. Never holds more than one line.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
    /// Bytes of the longest line that is read.
    most: usize,
}

impl<R: BufRead> LineReader<R> {
    /// Reads from `reader`; `path` is the name that an `Io` error gives.
    ///
    /// ```
    /// use oubliette::exchange::LineReader;
    /// let mut lines = LineReader::new("{}\n".as_bytes(), "lines");
    /// assert_eq!(lines.next_line()?, Some((1, b"{}".as_slice())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(reader: R, path: impl AsRef<Path>) -> Self {
        LineReader {
            reader,
            path: path.as_ref().to_owned(),
            line: Vec::new(),
            number: 0,
            most: EXPORT_LINE_BYTES_MAX,
        }
    }

    /// Number of the line that was read last, counted from 1; blank lines count.
    ///
    /// ```
    /// use oubliette::exchange::LineReader;
    /// let mut lines = LineReader::new("\n\n{}".as_bytes(), "lines");
    /// lines.next_line()?;
    /// assert_eq!(lines.number(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank, with its number; none at the end.
    ///
    /// ```
    /// use oubliette::exchange::LineReader;
    /// let mut lines = LineReader::new("one\r\n\n two ".as_bytes(), "lines");
    /// assert_eq!(lines.next_line()?, Some((1, b"one".as_slice())));
    /// assert_eq!(lines.next_line()?, Some((3, b"two".as_slice())));
    /// assert_eq!(lines.next_line()?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Invalid` of the line: longer than 256 MiB, or than 16 MiB where it does not begin as a JSON object. It is skipped, and
    ///   reading can go on after it.
    /// - `Io`.
    pub fn next_line(&mut self) -> Result<Option<(u64, &[u8])>> {
        let read = self.advance(|text| !text.trim_ascii().is_empty())?;
        Ok(read.then(|| (self.number, self.text().trim_ascii())))
    }

    /// The next line that is not empty as it stands, with its number; none at the end. White space at both ends may belong to
    /// what the line says, such as a key.
    ///
    /// ```
    /// use oubliette::exchange::LineReader;
    /// let mut lines = LineReader::new("one\r\n\n two ".as_bytes(), "lines");
    /// assert_eq!(lines.next_text()?, Some((1, b"one".as_slice())));
    /// assert_eq!(lines.next_text()?, Some((3, b" two ".as_slice())));
    /// assert_eq!(lines.next_text()?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`next_line`](Self::next_line).
    pub fn next_text(&mut self) -> Result<Option<(u64, &[u8])>> {
        let read = self.advance(|text| !text.is_empty())?;
        Ok(read.then(|| (self.number, self.text())))
    }

    /// Reads up to the next line that `counts`; tells whether there is one.
    fn advance(&mut self, counts: impl Fn(&[u8]) -> bool) -> Result<bool> {
        loop {
            self.line.clear();
            self.line.shrink_to(2 * LINE_BYTES_MAX);
            let ended = self.read_line()?;
            if !ended && self.line.is_empty() {
                return Ok(false);
            }
            self.number += 1;
            let most = self.most();
            if self.line.len() > most {
                if !ended {
                    self.skip_line()?;
                }
                let why = format!("must be at most {most} bytes");
                return Err(Error::invalid("line", why, "a longer line").at_line(self.number));
            }
            if counts(self.text()) {
                return Ok(true);
            }
        }
    }

    /// How many lines there are that are not blank, overlong ones too.
    ///
    /// ```
    /// use oubliette::exchange::LineReader;
    /// assert_eq!(LineReader::new("one\n\ntwo".as_bytes(), "lines").count_lines()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Io`.
    pub fn count_lines(mut self) -> Result<u64> {
        let mut count = 0;
        loop {
            match self.next_line() {
                Ok(None) => return Ok(count),
                Ok(Some(_)) | Err(Error::Line { .. }) => count += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The whole of what is not yet read, for a file that is one document.
    pub(super) fn into_document(self, max: usize) -> Result<Vec<u8>> {
        let mut document = Vec::new();
        let mut reader = self.reader.take(max as u64 + 1);
        let read = reader.read_to_end(&mut document);
        read.map_err(|source| Error::io("read", self.path, source))?;
        if document.len() > max {
            return Err(Error::invalid("document", format!("must be at most {max} bytes"), "a longer one"));
        }
        let unmarked = document.strip_prefix(BYTE_ORDER_MARK).map(<[u8]>::to_vec);
        Ok(unmarked.unwrap_or(document))
    }

    /// The line without mark and end.
    fn text(&self) -> &[u8] {
        let line = self.line.as_slice();
        let marked = if self.number == 1 { line.strip_prefix(BYTE_ORDER_MARK) } else { None };
        let line = marked.unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Bytes that the line may have: what is no JSON object is no line of an export.
    fn most(&self) -> usize {
        let line = self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line);
        if line.trim_ascii_start().starts_with(b"{") { self.most } else { LINE_BYTES_MAX }
    }

    /// Reads until LF, but one byte more than the line may have at most; tells whether it met the LF.
    fn read_line(&mut self) -> Result<bool> {
        let mut ended = self.read_up_to(LINE_BYTES_MAX + 1)?;
        if !ended && self.line.len() > LINE_BYTES_MAX {
            ended = self.read_up_to((self.most() + 1).saturating_sub(self.line.len()))?;
        }
        Ok(ended)
    }

    fn read_up_to(&mut self, bytes: usize) -> Result<bool> {
        let mut reader = self.reader.by_ref().take(bytes as u64);
        reader.read_until(b'\n', &mut self.line).map_err(|source| Error::io("read", &self.path, source))?;
        Ok(self.line.pop_if(|byte| *byte == b'\n').is_some())
    }

    fn skip_line(&mut self) -> Result<()> {
        self.reader.skip_until(b'\n').map_err(|source| Error::io("read", &self.path, source))?;
        Ok(())
    }
}

/// The records of an import: each line with its number, and with its row of a NumPy file where there is one.
///
/// Row i belongs to the i-th line that is not blank, whatever the line says. The row of what is no memory means
/// nothing, and a row of zeros beside an exported memory means that it has no vector but that of its line.
#[derive(Debug)]
pub struct Records<L, V> {
    lines: LineReader<L>,
    vectors: Option<NpyReader<V>>,
    lenient: bool,
    done: bool,
}

impl<L: BufRead, V: Read> Records<L, V> {
    /// Pairs `lines` with the rows of `vectors`; `lenient` moves unknown fields into the metadata.
    ///
    /// ```
    /// use oubliette::exchange::{LineReader, Records};
    /// let lines = LineReader::new("{\"text\": \"Ann prefers tea\"}\n{}".as_bytes(), "lines");
    /// let records: Vec<_> = Records::new(lines, None::<oubliette::exchange::NpyReader<std::io::Empty>>, false).collect();
    /// assert!(records[0].1.is_ok() && records[1].1.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(lines: LineReader<L>, vectors: Option<NpyReader<V>>, lenient: bool) -> Self {
        Records { lines, vectors, lenient, done: false }
    }

    fn row(&mut self) -> Result<Option<Vec<f32>>> {
        let Some(vectors) = &mut self.vectors else { return Ok(None) };
        let mut row = Vec::new();
        if !vectors.next_row(&mut row)? {
            let rows = vectors.rows();
            return Err(Error::invalid("vectors", "must have a row for each line", format!("{rows} rows")));
        }
        Ok(Some(row))
    }

    /// The error of rows that no line belongs to.
    fn left_over(&self) -> Option<Error> {
        let vectors = self.vectors.as_ref()?;
        let (rows, lines) = (vectors.rows(), vectors.position());
        (rows > lines).then(|| {
            let shown = format!("{rows} rows for {lines} lines");
            Error::invalid("vectors", "must have as many rows as there are lines", shown)
        })
    }
}

impl<L: BufRead, V: Read> Iterator for Records<L, V> {
    type Item = (u64, Result<ParsedLine>);

    /// The next record. A line that is bad is an error of kind `Invalid` and the next call goes on after it;
    /// nothing follows an error of the files themselves (`Io`, rows that end before the lines or after them).
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let lenient = self.lenient;
        let parsed = match self.lines.next_line() {
            Ok(Some((_, text))) => parse_line(text, lenient),
            Ok(None) => {
                self.done = true;
                return self.left_over().map(|error| (self.lines.number(), Err(error)));
            }
            Err(Error::Line { source, .. }) => Err(*source),
            Err(error) => {
                self.done = true;
                return Some((self.lines.number(), Err(error)));
            }
        };
        let number = self.lines.number();
        let record = match self.row() {
            Ok(None) => parsed,
            Ok(Some(row)) => parsed.and_then(|parsed| attach(parsed, row)),
            Err(error) => {
                self.done = true;
                Err(error)
            }
        };
        let record = record.and_then(holding_something);
        Some((number, record.map_err(|error| error.at_line(number))))
    }
}

/// Gives a record its row.
fn attach(mut parsed: ParsedLine, row: Vec<f32>) -> Result<ParsedLine> {
    let (place, row) = match &mut parsed {
        ParsedLine::Draft(line) => (&mut line.draft.vector, Some(row)),
        ParsedLine::Memory(memory) => {
            if row.iter().all(|number| *number == 0.0) {
                // A vector of a former space, with other dimensions perhaps, stands in the line.
                return Ok(parsed);
            }
            (&mut memory.vector, Some(row))
        }
        ParsedLine::Kept(_) => return Ok(parsed),
    };
    if place.is_some() {
        return Err(Error::invalid("vector", "must not stand in the line beside a NumPy file", "both"));
    }
    *place = row;
    Ok(parsed)
}

/// Refuses an exported memory without text whose vector is nowhere: it would hold nothing.
fn holding_something(parsed: ParsedLine) -> Result<ParsedLine> {
    if let ParsedLine::Memory(memory) = &parsed {
        check_content(&memory.text, memory.vector.is_some())?;
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests;
