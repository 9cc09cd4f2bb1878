//! A command goes past a damaged memory that it was not asked for.

use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// A file in which some bytes of a row were changed, one copy for each place that `check` finds fault with.
fn damaged(sandbox: &Sandbox, word: &[u8]) -> Vec<Sandbox> {
    sandbox.document(&["compact"]);
    let file = std::fs::read(sandbox.path("m.oub")).unwrap();
    let places = file.windows(word.len()).enumerate().filter(|(_, bytes)| *bytes == word);
    let copies = places.map(|(at, _)| {
        let mut bytes = file.clone();
        bytes[at + 1] ^= 1;
        let copy = Sandbox::new();
        copy.write("m.oub", bytes);
        copy
    });
    let all: Vec<Sandbox> = copies.filter(|copy| copy.run(&["check"]).code == 3).collect();
    assert!(!all.is_empty(), "no row says {word:?}");
    all
}

#[test]
fn get_tells_a_memory_whose_superseder_is_damaged() {
    let sandbox = Sandbox::new();
    let old =
        sandbox.document(&["add", "Ann lives in Ghent", "--key", "home"])["id"].as_str().unwrap().to_owned();
    let add = ["add", "Ann lives in quicksilver-town", "--key", "homeofann", "--importance", "0.8123457"];
    sandbox.document(&add);
    sandbox.document(&["supersede", "home", "--with", "homeofann"]);
    let importance = 0.812_345_7_f32.to_le_bytes();
    for bytes in ["quicksilver-town".as_bytes(), b"homeofann", &importance] {
        for copy in damaged(&sandbox, bytes) {
            assert_eq!(copy.document(&["get", &old])["text"], "Ann lives in Ghent", "{bytes:?}");
        }
    }
}

#[test]
fn a_search_tells_the_neighbours_beside_a_damaged_one() {
    let sandbox = Sandbox::new();
    let line = |at: usize| {
        let text =
            if at == 1 { "the cable".to_owned() } else { format!("turn {at} on the quicksilver engine") };
        let text = format!("{text} wordof{at}");
        let line = json!({ "key": format!("key-of-turn-{at}"), "text": text, "thread": "t", "kind": "event",
            "created_at": format!("2026-01-0{}T00:00:00Z", at + 1) });
        format!("{line}\n")
    };
    sandbox.write("in.jsonl", (0..3).map(line).collect::<String>());
    sandbox.document(&["import", "in.jsonl"]);
    for word in ["wordof1", "key-of-turn-1"] {
        for copy in damaged(&sandbox, word.as_bytes()) {
            let search = ["search", "quicksilver engine", "--mode", "text", "--around", "2", "-k", "3"];
            let answer = copy.run(&search);
            let told: Value = answer.document();
            let hit = told["hits"].as_array().unwrap().iter().find(|hit| hit["key"] == "key-of-turn-0");
            let around = hit.unwrap_or_else(|| panic!("{told}"))["around"].as_array().unwrap();
            assert!(around.iter().any(|one| one["key"] == "key-of-turn-2"), "{told}");
            let plain = copy.plain(&[&["--db", "m.oub"], &search[..]].concat(), b"");
            assert!(plain.code == 0 && plain.out.contains("+2 key-of-turn-2"), "{plain:?}");
        }
    }
}

/// Whoever opens a pipe waits for its other end; a command says what it has found.
#[cfg(unix)]
#[test]
fn a_pipe_is_no_database() {
    let sandbox = Sandbox::new();
    assert!(std::process::Command::new("mkfifo").arg(sandbox.path("m.oub")).status().unwrap().success());
    for arguments in
        [&["list"][..], &["check"], &["export", "x.jsonl"], &["add", "Ann prefers tea"], &["stats"]]
    {
        let (kind, message) = sandbox.run(arguments).error();
        assert!(kind == "NotADatabase" && message.contains("a pipe"), "{arguments:?}: {message}");
    }
}

/// Of a file without its end nothing can be read, whatever a command wants of it: only a backup helps.
#[test]
fn a_file_that_was_cut_is_told_alike_to_readers_and_writers() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    sandbox.write("m.oub", &whole[..4096]);
    for arguments in
        [&["list"][..], &["stats"], &["add", "Ann prefers tea"], &["compact"], &["backup", "b.oub"]]
    {
        let answer = sandbox.run(arguments);
        assert_eq!(answer.error().0, "Corrupted", "{arguments:?}");
        assert!(answer.err.contains("`backup` writes a new file"), "{arguments:?}: {}", answer.err);
    }
}

/// A copy that was cut off or added to can be read and not be opened for writing: `check` tells, and `backup` makes a whole one.
#[test]
fn check_tells_of_a_file_that_no_write_can_open() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    let longer = [&whole[..], &[7; 5_000]].concat();
    for (at, bytes) in [&whole[..whole.len() - 1], &longer].into_iter().enumerate() {
        sandbox.write("m.oub", bytes);
        let found = sandbox.run(&["check"]);
        assert!(found.code == 3 && found.out.contains("file_length"), "{found:?}");
        let refused = sandbox.run(&["add", "It rains"]);
        assert_eq!(refused.error().0, "Corrupted");
        assert!(
            refused.err.contains("`backup` writes a new file") && !refused.err.contains("at key"),
            "{refused:?}"
        );
        let copy = format!("copy{at}.oub");
        assert_eq!(sandbox.run(&["backup", &copy]).code, 3, "it names what is damaged");
        std::fs::rename(sandbox.path(&copy), sandbox.path("m.oub")).unwrap();
        assert_eq!(sandbox.run(&["check"]).code, 0);
        assert_eq!(sandbox.run(&["add", "It rains"]).code, 0);
    }
}

/// A page that leads beyond the end of the file is damage as any other: what else there is goes into an export, a backup and a
/// compacted file.
#[test]
fn a_page_that_leads_beyond_the_end_of_the_file_is_no_cut() {
    const PAGE: usize = 4096;
    const BRANCH: u8 = 2;
    let sandbox = Sandbox::new();
    let line = |at: usize| format!("{{\"text\":\"note {at} {}\"}}\n", format!("{at}word ").repeat(60));
    sandbox.write("in.jsonl", (0..120).map(line).collect::<String>());
    sandbox.document(&["import", "in.jsonl", "--no-dedup"]);
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    let mut told = 0;
    for at in (PAGE..whole.len()).step_by(PAGE).filter(|at| whole[*at] == BRANCH) {
        let mut bytes = whole.clone();
        // Another number of keys: what stands behind the keys is read as the number of a page.
        bytes[at + 2] ^= 5;
        for command in [&["export", "out.jsonl", "--all-states"][..], &["backup", "b.oub"], &["compact"]] {
            let copy = Sandbox::new();
            copy.write("m.oub", &bytes);
            let answer = copy.run(command);
            assert!(!answer.err.contains("ends before this page"), "{at}, {command:?}: {answer:?}");
            // On what these tables say the whole file hangs.
            let is_lost =
                ["the file is damaged", "in table meta"].iter().any(|told| answer.err.contains(told));
            assert!([0, 3].contains(&answer.code) || is_lost, "{at}, {command:?}: {answer:?}");
            told += i32::from(answer.code == 3);
        }
    }
    assert!(told > 0);
}
