//! A file may grow no more: the limit of the size of a file (`ulimit -f`) is told as a full disk is.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// Runs a command under a limit in blocks of 512 bytes, and tells its exit code and its error, which is the last line.
fn limited(sandbox: &Sandbox, blocks: u64, arguments: &[&str]) -> (Option<i32>, Value) {
    let program = env!("CARGO_BIN_EXE_oubliette");
    // The shell waits for it and tells its end; what it writes goes through pipes, which have no limit.
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        "ulimit -f \"$0\" && exec \"$@\"",
        &blocks.to_string(),
        program,
        "--db",
        "m.oub",
        "--json",
    ]);
    command.args(arguments).current_dir(sandbox.path("")).env("HOME", sandbox.path(""));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let last = told.lines().last().unwrap_or_default();
    (output.status.code(), serde_json::from_str(last).unwrap_or(Value::String(told)))
}

#[test]
fn a_file_that_may_grow_no_more_is_told() {
    let sandbox = Sandbox::new();
    let (code, told) = limited(&sandbox, 8, &["add", "Ann prefers tea"]);
    assert_eq!((code, &told["error"]["kind"]), (Some(1), &Value::from("Io")), "{told}");
    assert_eq!(sandbox.run(&["list"]).code, 1, "there is no database");
    sandbox.fill();
    // No shell counts in smaller blocks than 512 bytes.
    let blocks = std::fs::metadata(sandbox.path("m.oub")).unwrap().len() / 1024;
    let line =
        |at: usize| format!("{}\n", json!({ "text": format!("{at} {}", "tea and cake ".repeat(1_000)) }));
    sandbox.write("long.jsonl", (0..100).map(line).collect::<String>());
    let (code, told) = limited(&sandbox, blocks * 2, &["import", "long.jsonl"]);
    assert_eq!(code, Some(1), "{told}");
    let kind = told["error"]["kind"].as_str().unwrap();
    assert!(["Io", "Retry", "Unavailable"].contains(&kind), "{told}");
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("File too large"), "{told}");
    let (code, told) = limited(&sandbox, blocks / 4, &["compact"]);
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(sandbox.document(&["check"])["ok"], true);
    assert_eq!(sandbox.document(&["get", "a"])["text"], "Ann prefers tea");
}
