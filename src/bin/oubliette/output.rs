//! What is shown: documents, tables, errors.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use oubliette::maintain::FailedPass;
use oubliette::{Error, ErrorKind};
use serde_json::{Map, Value, json};
use textwrap::core::display_width;

use crate::caller::{Caller, is_hand_over};

/// Columns of a table where there is no terminal.
const WIDTH: u16 = 100;

/// Columns below which a table becomes blocks of lines.
const NARROW: u16 = 80;

/// Characters of a text that a table shows on however narrow a terminal.
const TEXT_CHARS_MIN: usize = 60;

/// Columns that a text has at least; where the others leave fewer, the table becomes blocks of lines.
const TEXT_WIDTH_MIN: usize = 24;

/// Lines of a text in such a block.
const TEXT_LINES: usize = 2;

/// Columns of an id.
const ID_WIDTH: u16 = 36;

/// Columns that a column without ids has at least, beside those that have some.
const COLUMN_MIN: usize = 6;

/// Columns beside the content of a cell.
const PADDING: usize = 3;

/// The share of a text in front of the first word that was asked for: one of so many parts.
const LEAD: usize = 4;

/// Places of a long text that are compared.
const PARTS_MAX: usize = 1_000;

/// Characters from which on the beginning of a word counts as the word.
const STEM_CHARS: usize = 4;

/// The exit code of an error of usage.
pub(crate) const USAGE: u8 = 2;

/// Bytes of a long document that are written at once.
const STREAMED_BYTES: usize = 64 << 10;

/// The lists of a document by their names, each with its items.
pub(crate) type Lists<'l, 'i> = &'l mut [(&'l str, &'i mut dyn Iterator<Item = Value>)];

/// The end of a command.
pub(crate) type Done = Result<(), Failure>;

/// Why a command did not do what it was told.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database or a file refused.
    Error(Error),
    /// The same, with what a caller may need to go on.
    Partly(Error, Box<Map<String, Value>>),
    /// Passes of maintenance failed, at least one; what the others did is told.
    Passes(Vec<FailedPass>),
    /// A run of summaries came to nothing, first of all for this.
    Summaries(Box<FailedPass>),
    /// Something was typed that makes no sense.
    Usage(String),
    /// Nobody reads standard output any more.
    Pipe,
    /// `check` found something and has shown it.
    Findings,
    /// Another process goes on with the command, where this one is about to end.
    HandOver,
    /// A bug of ours.
    Bug(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { path, source, .. }
                if source.kind() == std::io::ErrorKind::BrokenPipe && is_stream(&path) =>
            {
                Failure::Pipe
            }
            Error::Io { source, .. } if is_hand_over(&source) => Failure::HandOver,
            error => Failure::Error(error),
        }
    }
}

/// Whether a path names a stream of whoever typed the command. A file that takes no more bytes, such as a pipe by its name, is cut off.
pub(crate) fn is_stream(path: &Path) -> bool {
    ["standard output", "standard input", "the process that asked"].iter().any(|name| path == Path::new(name))
}

/// An error of standard output.
pub(crate) fn unwritable(source: std::io::Error) -> Failure {
    Error::Io { action: "write", path: PathBuf::from("standard output"), source }.into()
}

/// Shows a failure on standard error, and gives the exit code. A command that `writes` says that it wrote nothing.
pub(crate) fn report(failure: &Failure, json: bool, writes: bool, caller: &Caller) -> u8 {
    let none = Map::new();
    let unwritten;
    let (kind, message, hint, more, code) = match failure {
        Failure::Pipe | Failure::HandOver => return 0,
        Failure::Findings => return 3,
        Failure::Error(error) => {
            let is_told = writes && error.kind() == ErrorKind::Invalid;
            // The file itself may be there by now.
            unwritten = format!("{}{}", error.hint(), if is_told { "; no memory was written" } else { "" });
            (error.kind().to_string(), message(error, caller), unwritten.as_str(), &none, 1)
        }
        Failure::Partly(error, more) => {
            (error.kind().to_string(), error.to_string(), hint_beside(error, more), &**more, 1)
        }
        Failure::Passes(failed) => {
            let first = failed.first();
            let kind = first.map_or_else(String::new, |first| first.kind.to_string());
            let why: Vec<String> = failed.iter().map(failure_of_pass).collect();
            (kind, why.join("; "), first.map_or("", |first| first.hint), &none, 1)
        }
        Failure::Summaries(first) => {
            (first.kind.to_string(), format!("gc run: {}", first.why), first.hint, &none, 1)
        }
        Failure::Usage(text) => {
            let text = text.strip_prefix("error: ").unwrap_or(text).trim_end();
            ("Usage".to_owned(), text.to_owned(), "see --help", &none, USAGE)
        }
        Failure::Bug(text) => (
            "Bug".to_owned(),
            format!("internal error: {text}"),
            "please report it with what you typed",
            &none,
            1,
        ),
    };
    let shown = if json {
        let mut error = json!({ "kind": kind, "message": message, "hint": hint });
        if let Value::Object(members) = &mut error {
            members.extend(more.clone());
        }
        json!({ "error": error }).to_string()
    } else {
        let more = more.iter().filter(|(_, value)| !is_empty(value));
        let more: String = more.map(|(name, value)| format!("\n{name}: {}", plain(value))).collect();
        format!("error: {}\nhint: {hint}{more}", printable(&message))
    };
    // Where not even standard error can be written to, the exit code has to do.
    let _ = caller.error().write_all(format!("{shown}\n").as_bytes());
    code
}

/// Why a pass failed, with its name.
pub(crate) fn failure_of_pass(failed: &FailedPass) -> String {
    let pass = failed.pass.map_or_else(|| "the sweep".to_owned(), |pass| pass.to_string());
    format!("{pass} failed: {}", failed.why)
}

/// What to do after an error beside which something stands: it speaks of one batch, and the batches before it are written.
fn hint_beside(error: &Error, more: &Map<String, Value>) -> &'static str {
    let is_of_storage = matches!(error.kind(), ErrorKind::Retry | ErrorKind::Io | ErrorKind::Unavailable);
    if more.contains_key("forgotten") {
        "the memories are forgotten, and their bytes are not erased yet: `compact` does it, with room for a copy of the file"
    } else if more.contains_key("committed") {
        "the groups that were committed stand: `runs` tells which `undo` takes back, and another `gc run` goes on with the rest"
    } else if more.contains_key("run") && is_of_storage {
        "look at the disk and its free space, and import the file again: what stands is not stored twice"
    } else if more.get("can_be_undone").and_then(Value::as_bool) == Some(true) {
        "correct what is named and import the rest; `undo` takes back what the run wrote"
    } else if more.contains_key("run") {
        "correct what is named and import the file again: what stands is not stored twice"
    } else if more.contains_key("written") && matches!(error, Error::Io { path, .. } if is_stream(path)) {
        "the lines before it are written: give the rest to a command whose answers are read, or to `import`"
    } else if more.contains_key("written") && is_of_storage {
        "the lines before it are written: look at the disk and its free space, and give this line and the rest again"
    } else if more.contains_key("written") {
        "the lines before it are written: correct this line, and give it and the rest"
    } else {
        error.hint()
    }
}

/// An error in words, a path as it was typed.
fn message(error: &Error, caller: &Caller) -> String {
    match error {
        Error::Io { action, path, source } => format!("{action} {}: {source}", caller.shown(path).display()),
        error => error.to_string(),
    }
}

/// How answers are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'c> {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Whether people are told what only a program needs.
    pub(crate) verbose: bool,
    /// Whom they are shown to.
    pub(crate) caller: &'c Caller,
}

impl Output<'_> {
    /// One document: as JSON, or its members as a table.
    pub(crate) fn document(self, document: &Value) -> Done {
        if self.json {
            return self.line(&document.to_string());
        }
        let mut rows = Vec::new();
        flatten("", document, &mut rows);
        self.table(&[], rows.into_iter().map(|(name, value)| vec![name, value]))
    }

    /// One document as JSON. The items of some of its lists, which are empty in it, are made and written one after the other: a
    /// document of many is never there as a whole.
    pub(crate) fn streamed(self, document: &Value, lists: Lists<'_, '_>) -> Done {
        let mut out = BufWriter::with_capacity(STREAMED_BYTES, self.caller.output());
        write_streamed(&mut out, document, lists).and_then(|()| out.flush()).map_err(unwritable)
    }

    /// What was done: one document as JSON, for people a sentence.
    pub(crate) fn done(self, document: &Value, told: impl FnOnce(&Value) -> String) -> Done {
        if !self.json {
            self.line(&printable(&told(document)))?;
        }
        if self.json || self.verbose { self.document(document) } else { Ok(()) }
    }

    /// A table for people; where it is empty, what to try. A column `text` is cut to what the others leave of a line.
    pub(crate) fn list(self, names: &[&str], rows: Vec<Vec<String>>, none: &str) -> Done {
        self.list_cut(names, rows, none, &short)
    }

    /// The same, a text being cut by `cut` to so many characters.
    pub(crate) fn list_cut(
        self,
        names: &[&str],
        mut rows: Vec<Vec<String>>,
        none: &str,
        cut: &dyn Fn(&str, usize) -> String,
    ) -> Done {
        if rows.is_empty() {
            return if none.is_empty() { Ok(()) } else { self.line(none) };
        }
        let Some(at) = names.iter().position(|name| *name == "text") else { return self.table(names, rows) };
        let width = usize::from(self.width());
        let room = width.saturating_sub(others(names, &rows, at));
        let has_columns = width >= NARROW.into() && room >= TEXT_WIDTH_MIN;
        let most = if has_columns { room } else { TEXT_LINES * width }.max(TEXT_CHARS_MIN);
        for text in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            *text = cut(text, most);
        }
        if has_columns { self.table(names, rows) } else { self.blocks(names, &printable_rows(rows)) }
    }

    /// A remark for people.
    pub(crate) fn remark(self, text: &str) {
        if !self.json && !self.quiet {
            self.aside(&printable(text));
        }
    }

    /// A remark on what an answer can't say, such as that it is empty because nothing is there to ask: for programs too.
    pub(crate) fn note(self, text: &str) {
        if self.json && !self.quiet {
            self.aside(&json!({ "remark": printable(text) }).to_string());
        }
        self.remark(text);
    }

    /// A line on standard error. Where that can't be written to, nobody is there to be told.
    pub(crate) fn aside(self, text: &str) {
        let _ = self.caller.error().write_all(format!("{text}\n").as_bytes());
    }

    /// One line on standard output.
    pub(crate) fn line(self, text: &str) -> Done {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Bytes on standard output, as they are.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Done {
        let mut out = self.caller.output();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(unwritable)
    }

    /// The columns that a text for people may take: those of the terminal or, where there is none, what `COLUMNS` says.
    fn width(self) -> u16 {
        let told = || self.caller.variable("COLUMNS")?.to_str()?.parse().ok();
        let is_wide = |width: &u16| *width > 0;
        self.caller.columns().filter(is_wide).or_else(|| told().filter(is_wide)).unwrap_or(WIDTH)
    }

    /// Lines for people, broken between words where they are too long.
    pub(crate) fn text(self, lines: &[String]) -> Done {
        let folded = |text: &String| folded(&printable(text), self.width());
        self.line(&lines.iter().map(folded).collect::<Vec<_>>().join("\n"))
    }

    /// A table for people, with a line of names or without.
    pub(crate) fn table(self, names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Done {
        let rows = printable_rows(rows);
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        let width = self.width();
        table.set_width(width);
        // An id stands whole, or nobody could copy it. Where the ids leave no room for the rest, there are no columns.
        let ids = ids(names, &rows);
        let taken = |id: &usize| PADDING + if *id == 0 { COLUMN_MIN } else { *id };
        if width < NARROW || ids.iter().map(taken).sum::<usize>() > width.into() {
            return self.blocks(names, &rows);
        }
        if !names.is_empty() {
            table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header(names);
        }
        for row in &rows {
            table.add_row(row);
        }
        let widths = table.column_max_content_widths();
        for (at, (name, id)) in names.iter().zip(ids).enumerate() {
            let widest = widths.get(at).copied().unwrap_or_default();
            let is_name = ["id", "memory"].contains(name) && widest <= ID_WIDTH;
            let Some(column) = table.column_mut(at) else { continue };
            if is_name || (id > 0 && id >= widest.into()) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if let Some(least) = u16::try_from(id + 2).ok().filter(|_| id > 0) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        self.line(&table.to_string())
    }

    /// Rows as blocks of lines.
    fn blocks(self, names: &[&str], rows: &[Vec<String>]) -> Done {
        let lines = blocks(names, rows);
        self.line(&lines.lines().map(|line| folded(line, self.width())).collect::<Vec<_>>().join("\n"))
    }
}

fn write_streamed(out: &mut impl Write, document: &Value, lists: Lists<'_, '_>) -> std::io::Result<()> {
    let members = document.as_object().into_iter().flatten();
    for (at, (name, value)) in members.enumerate() {
        write!(out, "{}{}:", if at == 0 { '{' } else { ',' }, json!(name))?;
        let Some((_, items)) = lists.iter_mut().find(|(of, _)| of == name) else {
            write!(out, "{value}")?;
            continue;
        };
        out.write_all(b"[")?;
        for (at, item) in items.enumerate() {
            write!(out, "{}{item}", if at == 0 { "" } else { "," })?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"}\n")
}

fn printable_rows(rows: impl IntoIterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    rows.into_iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect()
}

/// The columns of a line that a table takes beside the column `at`: the widest cells with a space on each side, and the
/// spaces of the column itself.
fn others(names: &[&str], rows: &[Vec<String>], at: usize) -> usize {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        cells.chain(names.get(column).copied()).map(display_width).max().unwrap_or_default()
    };
    let beside = (0..names.len()).filter(|column| *column != at);
    beside.map(|column| width(column) + PADDING).sum::<usize>() + PADDING
}

/// A line broken between words where it is too long. An id stands whole, or nobody could copy it.
fn folded(line: &str, width: u16) -> String {
    let options = textwrap::Options::new(width.into()).break_words(false);
    textwrap::fill(line, options.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// How wide the ids of each column of a table with names are; 0 for a column in which no line is an id.
fn ids(names: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |at: usize| {
        let lines = rows.iter().filter_map(|row| row.get(at)).flat_map(|cell| cell.lines());
        lines.filter(|line| is_id(line)).map(display_width).max().unwrap_or_default()
    };
    (0..names.len()).map(widest).collect()
}

/// Whether a line is an id, or a key that is made of one, such as that of an aggregate.
fn is_id(line: &str) -> bool {
    let is_uuid = |part: &str| {
        let fits = |(at, byte): (usize, u8)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        part.len() == usize::from(ID_WIDTH) && part.bytes().enumerate().all(fits)
    };
    !line.contains(char::is_whitespace) && line.split(':').any(is_uuid)
}

/// Rows as blocks of lines, where there is no room for columns. A value stands whole behind its name.
fn blocks(names: &[&str], rows: &[Vec<String>]) -> String {
    let block = |row: &Vec<String>| match names {
        [] => row.join(": "),
        names => {
            let lines = names.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            lines.map(|(name, cell)| format!("{name}: {}\n", cell.replace('\n', ", "))).collect()
        }
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// The members of a document with their values, those of objects in objects by their path; nothing of what is empty.
fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, rows);
            }
        }
        value if is_empty(value) => {}
        value => rows.push((path.to_owned(), plain(value))),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value for people: a text without quotes, the items of a list one by one.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => {
            let between = if items.iter().any(Value::is_object) { "\n" } else { ", " };
            items.iter().map(plain).collect::<Vec<_>>().join(between)
        }
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !is_empty(value));
            members.map(|(name, value)| format!("{name} {}", plain(value))).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

/// A text that can't move the cursor, nor turn the direction of what stands beside it: stored texts come from anywhere.
pub(crate) fn printable(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if (c.is_control() && c != '\n') || turns(c) { ' ' } else { c }).collect()
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str, chars: usize) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(chars) {
        words.truncate(at);
        words.push('…');
    }
    words
}

/// The part of a text, on one line, that has most of some words; its beginning where it has none further on.
pub(crate) fn around(text: &str, words: &[String], chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut at, mut met) = (0, Vec::new());
    for token in line.split(' ') {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        met.extend(words.iter().position(|asked| is_of(&word, asked)).map(|asked| (at, asked)));
        at += token.chars().count() + 1;
    }
    let lead = chars / LEAD;
    let found = |from: usize| {
        let within = met.iter().filter(|(at, _)| (from..from + chars - lead).contains(at));
        within.map(|(_, asked)| asked).collect::<BTreeSet<_>>().len()
    };
    // The earliest of equal ones.
    let starts = std::iter::once(0).chain(met.iter().map(|(at, _)| *at).filter(|at| *at > lead));
    let best = starts.take(PARTS_MAX).map(|from| (found(from), std::cmp::Reverse(from))).max();
    let from = best.map_or(0, |(_, from)| from.0.saturating_sub(lead));
    if from == 0 {
        return short(&line, chars);
    }
    let rest: String = line.chars().skip(from).collect();
    let whole = rest.split_once(' ').map_or(rest.as_str(), |(_, whole)| whole);
    format!("…{}", short(whole, chars.saturating_sub(1)))
}

/// Whether a word is one that was asked for, or one of the two begins with the other.
fn is_of(word: &str, asked: &str) -> bool {
    word == asked
        || (word.chars().count() >= STEM_CHARS && (word.starts_with(asked) || asked.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use oubliette::Error;
    use serde_json::{Map, json};

    use super::{around, blocks, hint_beside, ids};

    /// A hit says why it is one, however far in the text that stands.
    #[test]
    fn a_long_text_is_shown_around_the_words_that_were_asked_for() {
        let words = ["support".to_owned(), "groups".to_owned()];
        let text = format!(
            "Caroline: {} I went to a support group yesterday {}",
            "well ".repeat(30),
            "and ".repeat(30)
        );
        let shown = around(&text, &words, 60);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains("support group"), "{shown}");
        assert!(shown.chars().count() <= 61, "{shown}");
        for begins in [
            "a support group, well",
            "nothing of it at all, whatever one asks for in however many words it is asked",
        ] {
            assert!(begins.starts_with(around(begins, &words, 60).trim_end_matches('…')), "{begins}");
        }
        assert_eq!(around("short", &[], 60), "short");
    }

    /// What was written before the storage failed stands, and nobody is told to correct what is right.
    #[test]
    fn a_hint_after_a_failing_storage_says_what_stands() {
        let beside = |name: &str| Map::from_iter([(name.to_owned(), json!(1))]);
        let failed = Error::Retry { why: "no space left on the device".to_owned() };
        let invalid = Error::invalid("kind", "must be one of ours", "poem");
        for (name, stands, wrong) in [
            ("forgotten", "are forgotten", "are forgotten"),
            ("run", "import the file again", "correct what is named"),
            ("written", "lines before it are written: look at the disk", "written: correct this line"),
            ("code", "what was written before stands", "correct the named field"),
        ] {
            let hint = hint_beside(&failed, &beside(name));
            assert!(hint.contains(stands) && !hint.contains("correct"), "{name}: {hint}");
            assert!(hint_beside(&invalid, &beside(name)).contains(wrong), "{name}");
        }
    }

    #[test]
    fn a_narrow_table_is_a_block_for_each_row() {
        let rows = [["0198c0de-0000-7000-8000-000000000001", "tea"], ["b", ""]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        let told = blocks(&["id", "text"], &rows);
        assert_eq!(told, "id: 0198c0de-0000-7000-8000-000000000001\ntext: tea\n\nid: b\n");
        assert_eq!(blocks(&[], &rows).lines().last(), Some("b: "));
    }

    #[test]
    fn a_column_of_ids_is_as_wide_as_the_widest() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let (id, text) =
            ("0198c0de-0000-7000-8000-000000000001", "it is 0198c0de-0000-7000-8000-000000000001");
        let rows =
            [row(["home", id, text]), row(["home\nagg:0198c0de-0000-7000-8000-000000000001", "", "tea"])];
        assert_eq!(ids(&["keys", "id", "text"], &rows), [40, 36, 0]);
        assert_eq!(ids(&[], &rows), [0; 0]);
    }
}
