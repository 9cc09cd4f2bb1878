//! Answers that lead on: what stays beside what was done, and how it is done after all.

use serde_json::json;

use super::sandbox::Sandbox;

const NOW: &str = "2026-03-10T12:00:00Z";

/// What a person reads, standard error included.
#[track_caller]
fn read(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
    assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    answer.out + &answer.err
}

/// MODEL-61: whoever forgets a key hears what others have put in the place of its text, and stays.
#[test]
fn forgetting_a_key_tells_of_the_text_to_which_it_led() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent", "--key", "ann:home"]);
    let told = read(&sandbox, &["add", "Ann lives in Bruges", "--supersedes", "ann:home"]);
    assert!(
        told.contains("it takes the place of ann:home, which only leads to it: forget it by its id"),
        "{told}"
    );
    let id = sandbox.document(&["search", "Bruges"])["hits"][0]["id"].as_str().unwrap().to_owned();
    let place = format!("the text that took its place is still there: {id} “Ann lives in Bruges”");
    let told = read(&sandbox, &["forget", "ann:home", "--dry-run"]);
    assert!(told.contains(&place) && told.contains("nothing is forgotten yet"), "{told}");
    let plan = sandbox.document(&["forget", "ann:home", "--dry-run"]);
    assert_eq!(plan["answer"]["later"], json!([id]), "{plan}");
    let told = read(&sandbox, &["forget", "ann:home", "--yes"]);
    assert!(told.contains(&place) && told.contains("(with an id, --with-history takes it too)"), "{told}");
    read(&sandbox, &["add", "Bob lives in Ghent", "--key", "bob:home"]);
    read(&sandbox, &["add", "Bob lives in Bruges", "--supersedes", "bob:home"]);
    let done = sandbox.document(&["forget", "bob:home", "--with-history", "--yes"]);
    assert_eq!((&done["versions_left"], &done["tombstones"]), (&1.into(), &1.into()), "{done}");
    let own = ["add", "Cy lives in Ghent", "--key", "cy:home", "--supersedes", &id];
    let told = read(&sandbox, &own);
    assert!(told.contains(&format!("it takes the place of {id}")) && !told.contains("only leads"), "{told}");
    let again = read(&sandbox, &own);
    assert!(again.starts_with("Unchanged") && !again.contains("takes the place"), "{again}");
}

/// DEDUP-57: what a write says again of others stands for them as well, so its id is no name of the write alone, and nobody is told to
/// forget it.
#[test]
fn a_text_that_others_have_said_is_not_offered_to_be_forgotten() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann is a nurse", "--key", "b"]);
    read(&sandbox, &["add", "Ann works at Acme", "--key", "x"]);
    let told = read(&sandbox, &["add", "Ann is a nurse", "--supersedes", "x"]);
    assert!(told.starts_with("Reinforced") && !told.contains("forget it"), "{told}");
    let found = sandbox.document(&["search", "Ann"]);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
}

/// MODEL-65: what came with its ids is no write of the import, and whoever wants to take it back hears why it stays.
#[test]
fn an_import_of_an_export_says_that_no_undo_takes_it_back() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let all = sandbox.document(&["export", "all.jsonl"])["memories"].as_u64().unwrap();
    let copy = |words: &[&str]| {
        let result = sandbox.plain(&[&["--db", "copy.oub"], words].concat(), b"");
        assert!(result.code <= 1, "{result:?}");
        (result.code, result.out + &result.err)
    };
    let (_, told) = copy(&["import", "all.jsonl"]);
    assert!(told.contains("the import can't be undone: its memories came with their ids"), "{told}");
    let (_, again) = copy(&["import", "all.jsonl", "--json"]);
    assert!(again.contains("\"why_not\":\"nothing that it wrote is left to take back\""), "{again}");
    let run = told.split_once("Run ").unwrap().1.split_whitespace().next().unwrap();
    let (code, why) = copy(&["undo", run]);
    assert!(code == 1 && why.contains("only `forget` takes them away"), "{why}");
    let (_, stats) = copy(&["stats", "--json"]);
    assert!(stats.contains(&format!("\"live\":{all}")), "{stats}");
    let lines = std::fs::read_to_string(sandbox.path("all.jsonl")).unwrap();
    sandbox.write("mixed.jsonl", format!("{lines}{{\"text\":\"Cy plays chess\"}}\n"));
    let mixed = |words: &[&str]| sandbox.plain(&[&["--db", "mixed.oub"], words].concat(), b"").out;
    let report: serde_json::Value =
        serde_json::from_str(&mixed(&["import", "mixed.jsonl", "--json"])).unwrap();
    assert_eq!((&report["can_be_undone"], &report["put_back"]), (&true.into(), &all.into()), "{report}");
    let told = mixed(&["undo", report["run"].as_str().unwrap()]);
    let stay = format!(
        "lost: memories of an export, which came with their ids and stay: `forget` takes them away: {all}"
    );
    assert!(told.contains("1 record that it wrote is gone") && told.contains(&stay), "{told}");
}

/// DEDUP-57: a person hears for whom the text before stays, and a program has the ends of what it wrote.
#[test]
fn a_change_through_a_key_tells_for_whom_the_text_before_stays() {
    let sandbox = Sandbox::new();
    let first =
        sandbox.document(&["add", "Ann likes tea", "--key", "ann:drink", "--expires-at", "2026-06-01"]);
    assert!(first["expires_at"].is_string() && first["valid_to"].is_null(), "{first}");
    let id = first["id"].as_str().unwrap();
    read(&sandbox, &["add", "Ann likes tea", "--key", "chat:1", "--expires-at", "2026-06-01"]);
    read(&sandbox, &["add", "Ann likes tea", "--expires-at", "2026-06-01"]);
    read(&sandbox, &["add", "Ann likes tea", "--key", "chat:2", "--expires-at", "2026-06-01"]);
    let told = read(&sandbox, &["update", "ann:drink", "--text", "Ann likes coffee"]);
    let stays = format!(
        "; the text before stays for chat:1, chat:2 and 1 other writer: the id {id} stands for all of them"
    );
    assert!(told.contains(&stays), "{told}");
    let done = sandbox.document(&["supersede", "chat:2", "--with-text", "Ann likes milk"]);
    let kept = json!([{ "id": id, "keys": ["chat:1"], "writers": 2 }]);
    assert_eq!(done["kept_for_others"], kept, "{done}");
    let done = sandbox.document(&["add", "Ann likes water", "--key", "chat:2"]);
    assert_eq!(done["kept_for_others"], json!([]), "{done}");
    let done = sandbox.document(&["supersede", "chat:1", "--with", "ann:drink"]);
    assert_eq!(done["kept_for_others"], json!([{ "id": id, "keys": [], "writers": 1 }]), "{done}");
}

/// DEDUP-57: an end of life through a key, and a memory that takes the places of several, tell the same to a person and to a program.
#[test]
fn an_end_of_life_and_a_supersession_tell_for_whom_the_text_stays() {
    let sandbox = Sandbox::new();
    let add = |text: &str, key: &str| sandbox.document(&["add", text, "--key", key])["id"].clone();
    let [tea, milk] = [("tea", "Ann likes tea"), ("milk", "Ann likes milk")].map(|(name, text)| {
        let id = add(text, &format!("ann:{name}"));
        add(text, &format!("chat:{name}"));
        id
    });
    let kept = |id: &serde_json::Value, name: &str| json!({ "id": id, "keys": [format!("chat:{name}")], "writers": 1 });
    let touch = ["touch", "ann:tea", "ann:milk", "--ttl", "1h"];
    let done = sandbox.document(&touch);
    // The answers are in the order of the names.
    assert_eq!(done["answers"][0]["kept_for_others"], json!([kept(&milk, "milk")]), "{done}");
    assert_eq!(done["answers"][1]["kept_for_others"], json!([kept(&tea, "tea")]), "{done}");
    assert_eq!(sandbox.document(&touch)["answers"][0]["kept_for_others"], json!([]));
    let told = read(&sandbox, &["touch", "chat:tea", "--ttl", "1h"]);
    assert!(!told.contains("stays for"), "nobody else says it any more: {told}");
    for key in ["ann:water", "chat:water"] {
        add("Ann likes water", key);
    }
    let told = read(&sandbox, &["touch", "ann:water", "--ttl", "1h"]);
    assert!(
        told.contains("Touched 1 memory in default; the text before stays for chat:water: the id "),
        "{told}"
    );
    let ids = ["cola", "juice"].map(|name| {
        let text = format!("Ann likes {name}");
        let id = add(&text, &format!("ann:{name}"));
        add(&text, &format!("chat:{name}"));
        id
    });
    add("Ann likes coffee", "coffee");
    let all = ["supersede", "ann:cola", "ann:juice", "--with", "coffee"];
    let told = sandbox.document(&all);
    assert_eq!(told["kept_for_others"], json!([kept(&ids[0], "cola"), kept(&ids[1], "juice")]), "{told}");
}

/// What an export was not asked for is told, with the options that ask for it.
#[test]
fn an_export_tells_what_it_was_not_asked_for() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent", "--key", "home"]);
    read(&sandbox, &["add", "Ann lives in Bruges", "--key", "home"]);
    read(&sandbox, &["--namespace", "two", "add", "Bob lives in Ghent"]);
    let all = |words: &[&str]| {
        let answer = sandbox.plain(&[&["--db", "m.oub", "export"], words].concat(), b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer
    };
    let left = "Not asked for and left out: 1 superseded memory (--all-states); other namespaces (--all-namespaces): two 1";
    assert!(all(&["a.jsonl"]).err.contains(left) && all(&["-"]).err.contains(left));
    let whole = all(&["b.jsonl", "--all-states", "--all-namespaces"]);
    assert!(!whole.err.contains("left out"), "{whole:?}");
    let document = sandbox.document(&["export", "c.jsonl"]);
    let beside = json!({ "superseded": 1, "namespaces": { "two": 1 } });
    assert_eq!(document["not_asked_for"], beside, "{document}");
    let named = sandbox.document(&["export", "d.jsonl", "--namespace", "two"]);
    assert_eq!(named["not_asked_for"], json!({ "superseded": 0, "namespaces": {} }));
}

/// The refusals of an import that meets what the file has already lead on.
#[test]
fn an_import_that_meets_its_own_memories_says_how_it_goes_on() {
    let sandbox = Sandbox::new();
    let bob =
        sandbox.document(&["add", "Bob lives in Ghent", "--key", "bob"])["id"].as_str().unwrap().to_owned();
    read(&sandbox, &["export", "bob.jsonl"]);
    read(&sandbox, &["forget", "bob", "--yes"]);
    let import = |db: &str, file: &str| {
        let answer = sandbox.plain(&["--db", db, "import", file], b"");
        assert_eq!(answer.code, 1, "{answer:?}");
        answer.err
    };
    let told = import("m.oub", "bob.jsonl");
    assert!(told.contains("is forgotten here since") && told.contains("`--skip-bad`"), "{told}");
    read(&sandbox, &["export", "gone.jsonl", "--all-states"]);
    sandbox.plain(&["--db", "copy.oub", "import", "bob.jsonl"], b"");
    let told = import("copy.oub", "gone.jsonl");
    assert!(told.contains("the memory is still here") && told.contains("`forget` of the id does"), "{told}");
    let copy = sandbox.plain(&["--db", "copy.oub", "forget", &bob, "--yes"], b"");
    assert_eq!(copy.code, 0, "{copy:?}");
    sandbox.plain(&["--db", "other.oub", "add", "Bob lives in Bonn", "--key", "bob"], b"");
    let told = import("other.oub", "bob.jsonl");
    assert!(told.contains("a line without id and holders revises what the key says"), "{told}");
    sandbox.plain(&["--db", "m.oub", "backup", "bak.oub"], b"");
    let told = sandbox.plain(&["--db", "m.oub", "restore", "bak.oub"], b"");
    assert!(told.code == 1 && told.err.contains("A backup is a database: open it with --db"), "{told:?}");
    let size = sandbox.document(&["compact"])["bytes_after"].as_u64().unwrap();
    assert_eq!(std::fs::metadata(sandbox.path("m.oub")).unwrap().len(), size);
}

/// What is gone has its id and its state where a memory has them.
#[test]
fn what_is_gone_has_its_id_and_its_state_at_the_top() {
    let sandbox = Sandbox::new();
    let id = sandbox.document(&["add", "Ann lives in Ghent", "--key", "home"])["id"].clone();
    assert_eq!(sandbox.document(&["get", "home"])["state"], "live");
    sandbox.document(&["forget", "home", "--yes"]);
    let listed = sandbox.document(&["list", "--state", "tombstoned"])["items"][0].clone();
    for gone in [sandbox.document(&["get", "home"]), listed] {
        assert_eq!((&gone["id"], &gone["state"]), (&id, &json!("tombstoned")), "{gone}");
        assert_eq!(
            (&gone["tombstone"]["id"], &gone["tombstone"]["reason"]),
            (&id, &json!("forget")),
            "{gone}"
        );
    }
}
