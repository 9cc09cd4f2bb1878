//! What a person is shown: which texts a pass unites, how it stands with a memory, what to type next.

use super::sandbox::{NOW, Sandbox};

/// What a person reads on standard output and on standard error, of a command that ends with this code.
#[track_caller]
fn read(sandbox: &Sandbox, code: i32, arguments: &[&str]) -> (String, String) {
    read_at(sandbox, NOW, code, arguments)
}

#[track_caller]
fn read_at(sandbox: &Sandbox, now: &str, code: i32, arguments: &[&str]) -> (String, String) {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", now], arguments].concat(), b"");
    assert_eq!(answer.code, code, "{arguments:?}: {answer:?}");
    (answer.out, answer.err)
}

/// The line of a table that has these words.
#[track_caller]
fn line<'t>(table: &'t str, words: &str) -> &'t str {
    table.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words}: {table}"))
}

/// Only the texts tell whether two memories with near vectors say the same.
#[test]
fn a_pass_over_near_vectors_shows_the_texts() {
    let sandbox = Sandbox::new();
    let pair = |number: usize| {
        let (a, b) = ((number as f64).cos(), (number as f64).sin());
        let line = |text: &str| format!("{{\"text\":\"{text} {number:0>3}\",\"vector\":[{a},{b}]}}\n");
        line("the cat sat on the mat") + &line("the cat sat on a mat")
    };
    sandbox.write("in.jsonl", (0..23).map(pair).collect::<String>());
    read(&sandbox, 0, &["import", "in.jsonl"]);
    let (dry, _) = read(&sandbox, 0, &["maintain", "vector-duplicates", "--dry-run"]);
    let row = line(&dry, "on a mat 000");
    assert!(row.contains("on the mat 000") || dry.contains("on the mat 000"), "{dry}");
    assert!(dry.contains("and 3 more groups"), "{dry}");
    let (done, _) = read(&sandbox, 0, &["maintain", "vector-duplicates"]);
    assert!(done.contains("on a mat 000") && done.contains("and 3 more groups"), "{done}");
}
