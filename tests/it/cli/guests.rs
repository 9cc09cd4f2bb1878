//! What becomes of guests (MODEL-66) when something happens to the file, to its owner, or to them.

use super::sandbox::Sandbox;
use super::sharing::{Session, filled, has_whole};

/// Puts a backup in the place of the file.
fn replace(sandbox: &Sandbox) {
    sandbox.document(&["backup", "copy.oub"]);
    std::fs::rename(sandbox.path("copy.oub"), sandbox.path("m.oub")).unwrap();
}

const ADD: &str = r#"{"type":"tool_call","name":"add_memory","args":{"text":"It snows"}}"#;

#[test]
fn guests_go_to_the_file_that_has_taken_the_name() {
    let sandbox = filled();
    let mut owner = Session::owner(&sandbox);
    let mut lines = Session::begin(&sandbox, &["add", "-"]);
    assert_eq!(lines.ask("one")["decision"], "stored");
    replace(&sandbox);
    // The session goes on with the new file, and answers others there.
    assert_eq!(lines.ask("two")["decision"], "stored");
    assert_eq!(sandbox.document(&["add", "three"])["decision"], "stored");
    assert_eq!(sandbox.run(&["--no-share", "add", "four"]).error().0, "Locked");
    let refused = owner.ask(ADD).to_string();
    assert!(refused.contains("Unavailable") && refused.contains("has taken the name"), "{refused}");
    // The socket is not the old owner's any more.
    owner.end();
    assert_eq!(sandbox.document(&["add", "five"])["decision"], "stored");
    assert!(sandbox.path("m.oub.sock").exists());
    lines.end();
    assert!(!sandbox.path("m.oub.sock").exists());
    has_whole(&sandbox, 7);
}

#[test]
fn a_command_after_another_file_has_taken_the_name_is_done_there() {
    let sandbox = filled();
    let owner = Session::owner(&sandbox);
    replace(&sandbox);
    assert_eq!(sandbox.document(&["add", "It rains"])["decision"], "stored");
    assert_eq!(sandbox.run(&["compact"]).code, 0);
    owner.end();
    has_whole(&sandbox, 4);
}
