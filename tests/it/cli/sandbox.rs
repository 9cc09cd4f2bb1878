//! A folder in which the program runs, as on a machine where nothing is configured.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const NOW: &str = "2026-03-01T00:00:00Z";

/// Waits until something holds that another process brings about.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// The document on standard output of a command that did what it was told.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The error on standard error: kind and message. Nothing is on standard output.
    #[track_caller]
    pub(crate) fn error(&self) -> (String, String) {
        assert_eq!(self.out, "", "{self:?}");
        let line = self.err.lines().last().unwrap_or_default();
        let document: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {self:?}"));
        let text = |name: &str| document["error"][name].as_str().unwrap().to_owned();
        assert!(!text("hint").is_empty());
        (text("kind"), text("message"))
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Sandbox { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        name.to_owned()
    }

    /// A NumPy file of float32 rows.
    pub(crate) fn npy(&self, name: &str, rows: &[&[f32]]) -> String {
        let dim = rows.first().map_or(1, |row| row.len());
        let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {dim}), }}", rows.len());
        let numbers =
            rows.iter().flat_map(|row| row.iter()).flat_map(|number| number.to_le_bytes()).collect();
        self.npy_of(name, &head, numbers)
    }

    /// A NumPy file with any header.
    pub(crate) fn npy_of(&self, name: &str, head: &str, body: Vec<u8>) -> String {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        let padded = format!("{head:<117}\n");
        file.extend(u16::try_from(padded.len()).unwrap().to_le_bytes());
        file.extend(padded.as_bytes());
        file.extend(body);
        self.write(name, file)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oubliette"));
        command.args(arguments).current_dir(self.folder.path()).env("TZ", "UTC");
        for variable in ["OUBLIETTE_DB", "OUBLIETTE_TOKEN", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env_remove(variable);
        }
        command.env("HOME", self.folder.path()).env("RUST_BACKTRACE", "1");
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program as it is typed.
    #[track_caller]
    pub(crate) fn plain(&self, arguments: &[&str], input: &[u8]) -> Answer {
        let mut child = self.spawn(arguments);
        // It may have ended before it has read all.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        let answer = Answer {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        for word in ["panicked", "backtrace", "internal error"] {
            assert!(!answer.err.contains(word), "{arguments:?}: {}", answer.err);
        }
        answer
    }

    /// Runs it on `m.oub` with `--json`, at a fixed instant.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Answer {
        self.run_with(arguments, b"")
    }

    #[track_caller]
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Answer {
        let mut all = vec!["--db", "m.oub", "--json", "--now", NOW];
        all.extend(arguments);
        self.plain(&all, input)
    }

    #[track_caller]
    pub(crate) fn document(&self, arguments: &[&str]) -> Value {
        self.run(arguments).document()
    }

    /// Writes three memories with vectors of two dimensions.
    pub(crate) fn fill(&self) {
        let lines = r#"{"key":"a","text":"Ann prefers tea","tags":["drink"],"vector":[1,0]}
{"key":"b","text":"Bob prefers coffee","tags":["drink"],"vector":[0,1]}
{"key":"c","text":"Cy walks the dog","vector":[0.6,0.8]}
"#;
        self.write("fill.jsonl", lines);
        assert_eq!(self.document(&["import", "fill.jsonl"])["stored"], 3);
    }
}

/// Whether a document has members by these names.
#[track_caller]
pub(crate) fn has(document: &Value, names: &[&str]) {
    for name in names {
        assert!(document.get(name).is_some(), "{name} is missing in {document}");
    }
}
