//! An envelope, as bytes: the answer is one line of JSON, a result or an error; an error changes nothing but the notes of a plan.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use oubliette::tools::Toolbox;
use oubliette::{Database, Draft, Kind};

/// The tools of a namespace with old messages, in a file of this process.
fn tools() -> &'static Toolbox {
    static TOOLS: OnceLock<Toolbox> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("oubliette-tools-{}.oub", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let team = Database::open(path).unwrap().namespace("team").unwrap();
        for number in 0..4 {
            let draft = Draft::new(format!("Ann: Box {number} went to Ghent")).kind(Kind::Message).channel("yard");
            team.add(draft.created_at("2025-01-02T10:00:00Z".parse().unwrap())).unwrap();
        }
        Toolbox::new(team)
    })
}

fuzz_target!(|line: &[u8]| {
    let memories = |tools: &Toolbox| tools.namespace().stats().unwrap().memories;
    let before = memories(tools());
    let answer = tools().answer(line);
    assert!(!answer.contains('\n'));
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    if answer["type"] == "tool_error" {
        assert!(answer["code"].is_string() && answer["pointers"].is_array());
        assert_eq!(memories(tools()), before);
    } else {
        assert!(answer["result"].is_object());
    }
});
