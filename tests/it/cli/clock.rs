//! What programs are told of a clock that was ahead, and of a `--now` that is.

use serde_json::Value;

use super::sandbox::{Answer, Sandbox};

const AHEAD: &str = "2036-02-01T00:00:00Z";
const RIGHT: &str = "2026-02-01T01:00:00Z";
const LINE: &[u8] = b"{\"text\":\"Dan is away\",\"key\":\"dan\",\"expires_at\":\"2026-02-06T00:00:00Z\"}\n";

fn run(sandbox: &Sandbox, now: &str, words: &[&str], input: &[u8]) -> Answer {
    sandbox.plain(&[&["--db", "m.oub", "--json", "--now", now], words].concat(), input)
}

/// A file to which a clock wrote that was ten years ahead.
fn world() -> Sandbox {
    let sandbox = Sandbox::new();
    run(&sandbox, AHEAD, &["add", "a write at boot", "--key", "boot"], b"").document();
    sandbox
}

#[track_caller]
fn tells(answer: &Value) {
    let told = answer["clock"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(told.contains("--now says 2026-02-01 01:00") && told.contains("at 2036-02-01 00:00"), "{told}");
}

/// MODEL-38, DEDUP-57: an end that the clock has not reached, and the file has, erased a text without a word to a program.
#[test]
fn a_program_is_told_that_a_life_ended_at_once() {
    let sandbox = world();
    let gone = "its life ended at once, and it is gone";
    let written = run(&sandbox, RIGHT, &["add", "Call Bob", "--expires-at", "2026-02-05"], b"").document();
    tells(&written);
    assert_eq!(written["over"], gone, "{written}");
    let written = run(&sandbox, RIGHT, &["add", "-"], LINE).document();
    tells(&written);
    assert_eq!(written["over"], gone, "{written}");
    let written = run(&sandbox, RIGHT, &["import", "-"], LINE).document();
    tells(&written);
    assert_eq!(written["ended_at_once"], 1, "{written}");
    let kept = run(&sandbox, RIGHT, &["update", "boot", "--text", "at boot"], b"").document();
    tells(&kept);
    assert!(kept.get("over").is_none(), "{kept}");
    let touched = run(&sandbox, RIGHT, &["touch", "boot", "--expires-at", "2026-02-05"], b"").document();
    tells(&touched);
    assert_eq!(touched["answers"][0]["over"], gone, "{touched}");
    let told = sandbox.plain(&["--db", "m.oub", "--now", RIGHT, "import", "-"], LINE);
    assert!(told.out.contains("; 1 memory ended at once"), "{told:?}");
}

/// MODEL-38: what changes nothing counts as of no instant, and a clock that is right is not told of.
#[test]
fn nothing_is_told_of_a_clock_where_nothing_was_written() {
    let sandbox = world();
    let same = run(&sandbox, RIGHT, &["add", "a write at boot", "--key", "boot"], b"").document();
    assert_eq!((&same["decision"], same.get("clock")), (&"unchanged".into(), None), "{same}");
    let later = run(&sandbox, "2036-02-02T00:00:00Z", &["add", "later"], b"").document();
    assert!(!later["clock"].as_str().unwrap_or_default().contains("last written"), "{later}");
    let other = Sandbox::new();
    let right = run(&other, RIGHT, &["import", "-"], LINE).document();
    assert!(right.get("clock").is_none() && right.get("ended_at_once").is_none(), "{right}");
}

/// MODEL-38: one `--now` of the future dates the file until then, and whoever typed it heard nothing.
#[test]
fn a_now_far_ahead_of_the_machine_is_told_by_the_write_that_has_it() {
    let sandbox = Sandbox::new();
    let words = |rest: &[&'static str]| [&["--db", "m.oub", "--now", "2998-01-01T00:00:00Z"], rest].concat();
    let told = sandbox.plain(&words(&["add", "Ann prefers tea"]), b"");
    assert!(
        told.err.contains("--now says 2998-01-01 00:00Z, ahead of the clock of this machine"),
        "{told:?}"
    );
    let told = sandbox.plain(&words(&["--json", "add", "Bob prefers tea"]), b"").document();
    assert!(told["clock"].as_str().unwrap().contains("Only a copy from before leads back"), "{told}");
    let read = sandbox.plain(&words(&["list"]), b"");
    assert_eq!(read.err, "", "{read:?}");
}

/// MODEL-38: commands but those that give a text wrote by a clock that was behind, and no program heard of it.
#[test]
fn every_command_that_writes_tells_of_a_clock_that_was_ahead() {
    let sandbox = world();
    let lines = ["a", "b", "c", "d"].map(|key| format!("{{\"text\":\"says {key}\",\"key\":\"{key}\"}}\n"));
    let import = run(&sandbox, RIGHT, &["import", "-"], lines.concat().as_bytes()).document();
    tells(&import);
    let looked = run(&sandbox, RIGHT, &["forget", "a", "--dry-run"], b"").document();
    assert!(looked.get("clock").is_none(), "{looked}");
    let commands: [(&[&str], &str); 14] = [
        (&["pin", "a"], ""),
        (&["unpin", "a"], ""),
        (&["rename", "a", "e"], ""),
        (&["supersede", "b", "--with", "c"], ""),
        (&["contradict", "d"], ""),
        (&["goal", "set", "to find the tea"], ""),
        (&["context-log", "today", "-"], "{\"memory\":\"c\",\"tokens\":1}"),
        (&["index", "add", "user"], ""),
        (&["index", "drop", "user"], ""),
        (&["maintain"], ""),
        (&["gc", "plan"], ""),
        (&["namespace", "move", "default", "other"], ""),
        (&["forget", "c", "--yes", "--namespace", "other"], ""),
        (&["namespace", "drop", "other", "--yes"], ""),
    ];
    for (words, input) in commands {
        let answer = run(&sandbox, RIGHT, words, input.as_bytes());
        assert_eq!(answer.code, 0, "{words:?}: {answer:?}");
        tells(&answer.document());
    }
}
