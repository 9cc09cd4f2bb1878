//! `check --erased` searches the file for everything that a line of the export says.

// MODEL-30.

use serde_json::json;

use super::sandbox::Sandbox;

const SECOND: &str = "dog lay under green table birch";

/// A pass had united two writes, and the text of each stood in the line.
#[test]
fn the_texts_of_united_writes_are_searched_for() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "cat sat on the mat amber today", "--key", "one", "--vector", "[1,0,0.01]"]);
    sandbox.document(&["add", SECOND, "--key", "two", "--vector", "[1,0,0.0100001]"]);
    sandbox.document(&["maintain", "vector-duplicates"]);
    sandbox.document(&["export", "before.jsonl"]);
    let export = std::fs::read_to_string(sandbox.path("before.jsonl")).unwrap();
    assert_eq!(export.lines().count(), 1, "they are one memory: {export}");
    let check = sandbox.document(&["check", "--erased", "before.jsonl"]);
    assert_eq!((&check["ok"], &check["records"], &check["unproven"]), (&json!(true), &json!(1), &json!(1)));
    sandbox.document(&["forget", "one", "two", "--yes", "--erase"]);
    let check = sandbox.document(&["check", "--erased", "before.jsonl"]);
    assert_eq!((&check["ok"], &check["unproven"]), (&json!(true), &json!(0)));
    // One of the two texts is left in free pages.
    for text in ["cat sat on the mat amber today", SECOND] {
        let sandbox = Sandbox::new();
        sandbox.write("before.jsonl", &export);
        sandbox.document(&["add", text, "--key", "three"]);
        sandbox.document(&["forget", "three", "--yes"]);
        let left = sandbox.run(&["check", "--erased", "before.jsonl"]);
        assert_eq!(left.code, 3, "{text}: {left:?}");
    }
}

/// A message that was only counted has its text in its event, and the beginning of it in the aggregate.
#[test]
fn the_texts_of_messages_are_searched_for() {
    let sandbox = Sandbox::new();
    let add = |text: &str| {
        let arguments = ["add", text, "--kind", "message", "--author-kind", "bot", "--channel", "ops"];
        sandbox.document(&arguments);
    };
    for number in 0..4 {
        add(&format!("Deploy of api number {number} to the cluster of customer Miller done"));
    }
    sandbox.document(&["export", "all.jsonl", "--all-states"]);
    let export = std::fs::read_to_string(sandbox.path("all.jsonl")).unwrap();
    let of = |member: &str| {
        let head = format!("\"{member}\":{{");
        export.lines().filter(|line| line.contains(&head)).map(|line| format!("{line}\n")).collect::<String>()
    };
    for member in ["event", "aggregate"] {
        let lines = of(member);
        assert!(!lines.is_empty(), "{export}");
        sandbox.write(member, &lines);
        let check = sandbox.document(&["check", "--erased", member]);
        let all = json!(lines.lines().count());
        assert_eq!((&check["records"], &check["unproven"]), (&all, &all), "they are still there");
    }
    sandbox.document(&["namespace", "drop", "default", "--yes"]);
    for member in ["event", "aggregate"] {
        let left = sandbox.run(&["check", "--erased", member]);
        assert_eq!(left.code, 3, "before a copy their bytes are in free pages: {left:?}");
    }
    sandbox.document(&["compact"]);
    for member in ["event", "aggregate"] {
        let check = sandbox.document(&["check", "--erased", member]);
        assert_eq!((&check["ok"], &check["unproven"]), (&json!(true), &json!(0)), "{check}");
    }
}

/// A version that is restored takes its key back. The newer text stays without the key.
#[test]
fn a_key_that_a_restore_moved_is_forgotten_wholly() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "one cat sat quietly on a mat", "--key", "k"]);
    let first = sandbox.document(&["get", "k"])["id"].as_str().unwrap().to_owned();
    sandbox.document(&["update", "k", "--text", "two dogs ran through the garden"]);
    sandbox.document(&["rename", "k", "patient-of-room-7"]);
    sandbox.document(&["export", "before.jsonl", "--all-states"]);
    sandbox.document(&["restore", &first]);
    sandbox.document(&["forget", "patient-of-room-7", "--yes", "--erase"]);
    let file = std::fs::read(sandbox.path("m.oub")).unwrap();
    assert!(!file.windows(15).any(|bytes| bytes == b"patient-of-room"));
}

/// What a redaction begins with may also begin a name that a caller gave.
#[test]
fn a_name_that_looks_like_a_redaction_leaves_the_journal_too() {
    let sandbox = Sandbox::new();
    let add = [
        "add",
        "the cat sat quietly on a mat",
        "--key",
        "hmac:patient-of-room-7",
        "--channel",
        "hmac:ward-of-alice",
    ];
    sandbox.document(&add);
    sandbox.document(&["export", "before.jsonl", "--all-states"]);
    sandbox.document(&["update", "hmac:patient-of-room-7", "--channel", "hmac:ward-of-bob"]);
    sandbox.document(&["rename", "hmac:patient-of-room-7", "k2"]);
    sandbox.document(&["forget", "k2", "--yes", "--erase"]);
    assert_eq!(sandbox.document(&["check", "--deep", "--erased", "before.jsonl"])["ok"], true);
    let file = std::fs::read(sandbox.path("m.oub")).unwrap();
    for name in ["hmac:patient", "hmac:ward"] {
        assert!(!file.windows(name.len()).any(|bytes| bytes == name.as_bytes()), "{name}");
    }
}

/// `eval --gc` works on copies of the file. One that was cut off has left them, and whoever erases has never heard of them.
#[test]
fn an_erasure_takes_away_the_copies_of_a_command_that_was_cut_off() {
    for arguments in [&["compact"][..], &["forget", "a", "--erase", "--yes"]] {
        let sandbox = Sandbox::new();
        sandbox.fill();
        let left = sandbox.path("oubliette-Ab12Cd");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("in-use"), "").unwrap();
        std::fs::copy(sandbox.path("m.oub"), left.join("copy.oub")).unwrap();
        let mut command = sandbox.command(&[&["--db", "m.oub"], arguments].concat());
        let done = command.env("TMPDIR", sandbox.path(".")).output().unwrap();
        assert!(done.status.success() && !left.exists(), "{arguments:?}: {done:?}");
    }
}

/// A copy has no name of an agent of whom nothing is left, whether the file can be written to or not.
#[test]
fn a_backup_has_no_name_of_an_agent_that_is_gone() {
    const AGENT: &[u8] = b"zqagentname";
    let sandbox = Sandbox::new();
    let has_name = |file: &str| {
        std::fs::read(sandbox.path(file)).unwrap().windows(AGENT.len()).any(|bytes| bytes == AGENT)
    };
    sandbox.document(&["add", "a stay", "--key", "stays"]);
    sandbox.document(&["add", "hello", "--key", "gone", "--agent", "zqagentname"]);
    sandbox.document(&["forget", "gone", "--yes"]);
    assert!(has_name("m.oub"));
    // An instant that is given only looks.
    sandbox.document(&["backup", "looked.oub"]);
    assert!(has_name("m.oub") && !has_name("looked.oub"));
    assert_eq!(sandbox.plain(&["--db", "m.oub", "backup", "written.oub"], b"").code, 0);
    assert!(!has_name("written.oub"));
    assert_eq!(sandbox.plain(&["--db", "looked.oub", "check", "--deep"], b"").code, 0);
}

/// A key that a live memory has is no residue where the journal quotes the key.
#[test]
fn a_key_that_is_still_in_use_is_no_residue() {
    let sandbox = Sandbox::new();
    let old = sandbox.document(&["add", "Ann lives in the old town of Ghent", "--key", "user-4711-home"]);
    sandbox.document(&["export", "before.jsonl", "--all-states"]);
    sandbox.document(&["add", "Bob moved house to Rome last week", "--key", "user-4711-home"]);
    sandbox.document(&["rename", "user-4711-home", "another-name-of-it"]);
    sandbox.document(&["rename", "another-name-of-it", "user-4711-home"]);
    sandbox.document(&["forget", old["id"].as_str().unwrap(), "--yes", "--erase"]);
    let check = sandbox.document(&["check", "--erased", "before.jsonl"]);
    assert_eq!(check["ok"], json!(true), "{check}");
}
