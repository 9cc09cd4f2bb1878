//! `fsck`: what it removes, what it tells, and its exit code.

use serde_json::json;

use super::sandbox::{Answer, Sandbox};

#[test]
fn fsck_says_what_would_go_and_then_removes_it() {
    let sandbox = Sandbox::new();
    let run = |now: &'static str, rest: &[&str]| -> Answer {
        let all = [&["--db", "m.oub", "--json", "--now", now][..], rest].concat();
        sandbox.plain(&all, b"")
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    run(early, &["add", "over soon", "--ttl", "1h"]).document();
    for text in ["Ann prefers tea", "ann  prefers TEA"] {
        run(early, &["add", text, "--no-dedup"]).document();
    }
    let dry = run(late, &["fsck", "--dry-run"]).document();
    assert_eq!((&dry["expired_purged"], &dry["namespaces"]), (&json!(1), &json!(1)));
    assert_eq!(dry["duplicate_groups"].as_array().unwrap().len(), 1);
    assert_eq!(dry["duplicate_groups"][0].as_array().unwrap().len(), 2);
    let done = run(late, &["fsck"]).document();
    assert_eq!((&done["expired_purged"], &done["short_term_evicted"]), (&json!(1), &json!(0)));
    assert_eq!((&done["check"]["ok"], &done["duplicate_groups"]), (&json!(true), &dry["duplicate_groups"]));
    assert_eq!(run(late, &["fsck"]).document()["expired_purged"], 0);
    let told = sandbox.plain(&["--db", "m.oub", "--now", late, "fsck"], b"");
    assert!(told.code == 0 && told.out.contains("Say the same: "), "{told:?}");
    assert!(told.out.contains("everything is as it must be"), "{told:?}");
}
