//! What the checks look at: the project's files, and the tokens of those that are Rust.
//!
//! Comments are dropped and a literal is one token, so that a word in a sentence or in a string is never taken
//! for code, and a path that is broken over lines is still one sequence of tokens.

use std::fmt;
use std::fs;
use std::path::Path;

/// One thing that is wrong, as an editor can jump to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Fails with all findings at once, a line each.
#[track_caller]
pub(crate) fn verdict(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(lines.is_empty(), "{} finding(s)\n{}", lines.len(), lines.join("\n"));
}

/// A word, a literal or one character of punctuation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A file of the project, by its path from the root with `/` between the parts.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Empty for a file that is not Rust.
    pub(crate) tokens: Vec<Token>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let tokens = if path.ends_with(".rs") { tokens(text) } else { Vec::new() };
        Source { path: path.to_owned(), text: text.to_owned(), tokens }
    }

    pub(crate) fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { file: self.path.clone(), line, what: what.into() }
    }

    /// The module that the first part below `src/` names; `None` for `lib.rs`, the binary and files elsewhere.
    pub(crate) fn room(&self) -> Option<&str> {
        let (first, _) = self.path.strip_prefix("src/")?.split_once(['/', '.'])?;
        (first != "lib" && first != "bin").then_some(first)
    }

    /// Whether this is `place.rs` or stands below the folder `place`.
    pub(crate) fn inside(&self, place: &str) -> bool {
        self.path.strip_prefix(place).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Whether only tests are in it.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// Where `pattern`, itself Rust, begins in the tokens.
    pub(crate) fn find(&self, pattern: &str) -> Vec<usize> {
        let wanted = tokens(pattern);
        assert!(!wanted.is_empty(), "an empty pattern is found everywhere");
        let same = |at: &[Token]| at.iter().zip(&wanted).all(|(a, b)| a.text == b.text);
        self.tokens.windows(wanted.len()).enumerate().filter(|(_, at)| same(at)).map(|(i, _)| i).collect()
    }

    /// The text of the token at `index`, empty past the end.
    pub(crate) fn token(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text.as_str())
    }
}

/// Every text file below the root that people write; what is built, locked or data is left out.
pub(crate) fn project() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|file| file.path == "src/lib.rs"), "the walk missed the sources");
    assert!(found.iter().any(|file| file.path == "tests/tidy.rs"), "the walk missed the tests");
    assert!(found.iter().all(|file| !file.path.ends_with(".rs") || !file.tokens.is_empty()), "an empty file");
    found
}

/// Rust files below one of `places`.
pub(crate) fn rust(places: &[&str]) -> Vec<Source> {
    let mut files = project();
    files
        .retain(|file| file.path.ends_with(".rs") && places.iter().any(|place| file.path.starts_with(place)));
    files
}

/// Folders that are built, fetched or hold data.
const LEFT_OUT: &[&str] = &[
    ".git",
    "target",
    "fuzz/target",
    "fuzz/corpus",
    "fuzz/artifacts",
    "benches/peers/target",
    "tests/fixtures",
    "src/bin/oubliette/demo/data",
];

fn walk(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !LEFT_OUT.iter().any(|left_out| path == root.join(left_out)) {
                walk(root, &path, found);
            }
            continue;
        }
        let written = [".rs", ".md", ".toml", ".snap", ".stdout", ".sh", ".py", ".yml"];
        let script = !name.contains('.') && !name.starts_with("LICENSE");
        if !script && !written.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let short: Vec<_> =
            path.strip_prefix(root).unwrap().iter().map(|part| part.to_string_lossy().into_owned()).collect();
        found.push(Source::new(&short.join("/"), &String::from_utf8_lossy(&bytes)));
    }
}

/// The tokens of Rust text. Enough of the language to tell code from comments and literals, no more.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let (end, keep) = lexeme(&chars, at);
        let text: String = chars[at..end].iter().collect();
        let lines = text.matches('\n').count();
        if keep {
            found.push(Token { line, text });
        }
        line += lines;
        at = end;
    }
    found
}

/// The end of what begins at `at`, and whether it is a token (and not space or a comment).
fn lexeme(chars: &[char], at: usize) -> (usize, bool) {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    match chars[at] {
        c if c.is_whitespace() => (at + 1, false),
        '/' if next(1) == '/' => (at + chars[at..].iter().take_while(|c| **c != '\n').count(), false),
        '/' if next(1) == '*' => (block_comment_end(chars, at), false),
        '"' => (string_end(chars, at + 1), true),
        '\'' if next(1) == '\\' => (quote_end(chars, at + 3), true),
        '\'' if next(2) == '\'' => (at + 3, true),
        c if word(c) => {
            let end = at + chars[at..].iter().take_while(|c| word(**c)).count();
            let prefix: String = chars[at..end].iter().collect();
            let hashes = chars[end..].iter().take_while(|c| **c == '#').count();
            let quote = chars.get(end + hashes) == Some(&'"');
            match prefix.as_str() {
                "r" | "br" | "cr" if quote => (raw_string_end(chars, end + hashes + 1, hashes), true),
                "b" | "c" if quote && hashes == 0 => (string_end(chars, end + 1), true),
                _ => (end, true),
            }
        }
        _ => (at + 1, true),
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start + 2, 1);
    while at < chars.len() && depth > 0 {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, depth) = (at + 2, depth + 1),
            ('*', Some('/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at.min(chars.len())
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn quote_end(chars: &[char], at: usize) -> usize {
    let from = at.min(chars.len());
    (from + chars[from..].iter().take_while(|c| **c != '\'').count() + 1).min(chars.len())
}

fn raw_string_end(chars: &[char], mut at: usize, hashes: usize) -> usize {
    while at < chars.len() {
        at += 1;
        if chars[at - 1] == '"' && chars[at..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return at + hashes;
        }
    }
    at
}
