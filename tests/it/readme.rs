//! The program that README.md shows whole: it is the example `quickstart`, and it runs in an empty folder, and again.

use std::process::Command;

use oubliette::Database;

#[path = "../../examples/quickstart.rs"]
mod quickstart;

/// Tells the test that it is the child, which is the program.
const CHILD: &str = "OUBLIETTE_README_CHILD";

#[test]
fn the_program_runs_and_runs_again() {
    if std::env::var_os(CHILD).is_some() {
        return quickstart::main().unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let told = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "readme::the_program_runs_and_runs_again", "--nocapture"])
            .env(CHILD, "1")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&told.stdout);
        assert!(told.status.success(), "{said}\n{}", String::from_utf8_lossy(&told.stderr));
        assert!(said.contains(" Ann lives in Bruges\n") && !said.contains("Ghent"), "{said}");
    }
    let db = Database::open(folder.path().join("memory.oub")).unwrap();
    let found = db.namespace("team").unwrap().search("Does Ann live in Ghent or in Bruges?").unwrap();
    assert!(found.hits.iter().all(|hit| hit.text == "Ann prefers tea"), "{found:?}");
}

#[test]
fn the_readme_shows_the_program_as_it_is() {
    let (page, program) = (include_str!("../../README.md"), include_str!("../../examples/quickstart.rs"));
    let shown = page.split("```rust,no_run\n").nth(1).unwrap().split("```").next().unwrap();
    // Its first lines say what it is; the test calls what a reader only starts.
    let (_, program) = program.split_once("\n\n").unwrap();
    assert_eq!(shown, program.replace("pub(crate) fn main", "fn main"));
}
