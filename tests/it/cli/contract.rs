//! Every command, its document and its exit code.

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox, has};

#[test]
fn init_makes_an_empty_database() {
    let sandbox = Sandbox::new();
    let document = sandbox.document(&["init", "--dim", "8"]);
    has(&document, &["path", "format", "dim", "embedder"]);
    assert_eq!((document["format"].clone(), document["dim"].clone()), (json!(17), json!(8)));
    assert_eq!(sandbox.document(&["init"])["dim"], 8, "once more is no harm");
    assert_eq!(sandbox.run(&["init", "--dim", "9"]).error().0, "Invalid");
}

#[test]
fn add_tells_what_became_of_a_write() {
    let sandbox = Sandbox::new();
    let add = |arguments: &[&str]| {
        let document = sandbox.document(&[&["add"], arguments].concat());
        has(&document, &["id", "key", "decision", "into", "rule", "evidence", "hints"]);
        document
    };
    let first =
        add(&["Ann prefers tea", "--key", "a", "--tag", "t", "--entity", "Ann=subject", "--ttl", "30d"]);
    assert_eq!(
        (&first["decision"], &first["key"], &first["into"]),
        (&json!("stored"), &json!("a"), &Value::Null)
    );
    let again = add(&["Ann prefers tea", "--key", "b", "--ttl", "30d"]);
    assert_eq!((&again["decision"], &again["into"]), (&json!("reinforced"), &first["id"]));
    let sooner = add(&["Ann prefers tea", "--key", "e", "--ttl", "20d"]);
    assert_eq!(
        (&sooner["decision"], &sooner["hints"][0]["why"]),
        (&json!("stored"), &json!("equal content, ends later"))
    );
    let endless = add(&["Ann prefers tea", "--key", "d"]);
    assert_eq!((&endless["decision"], &endless["into"]), (&json!("stored"), &Value::Null));
    assert_eq!(add(&["Ann prefers tea", "--key", "c", "--no-dedup"])["decision"], "stored");
    assert_eq!(add(&["Ann prefers milk", "--key", "c"])["decision"], "revised");
    let got = sandbox.document(&["get", "a"]);
    assert_eq!((&got["keys"], &got["tags"]), (&json!(["a", "b"]), &json!(["t"])));
    assert_eq!(got["entities"], json!([{ "name": "Ann", "role": "subject" }]));
    assert_eq!(got["expires_at"], "2026-03-31T00:00:00Z", "nobody else moves the end that a caller set");
    add(&["Bob walks", "--key", "w", "--ttl", "30d"]);
    assert_eq!(sandbox.document(&["get", "w"])["expires_at"], "2026-03-31T00:00:00Z");
}

#[test]
fn add_of_lines_answers_line_by_line() {
    let sandbox = Sandbox::new();
    let lines = b"{\"key\":\"a\",\"text\":\"one\"}\n\n{\"key\":\"a\",\"text\":\"one\"}\n{\"text\":7}\n{\"text\":\"never\"}\n";
    let answer = sandbox.run_with(&["add", "-"], lines);
    assert_eq!(answer.code, 1);
    let decisions: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        decisions.iter().map(|d| d["decision"].as_str().unwrap()).collect::<Vec<_>>(),
        ["stored", "unchanged"]
    );
    assert!(answer.err.contains("line 4: text"), "{}", answer.err);
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
}

#[test]
fn import_counts_and_can_be_repeated_and_undone() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("more.jsonl", "{\"key\":\"a\",\"text\":\"Ann prefers tea\",\"tags\":[\"drink\"],\"vector\":[1,0]}\n{\"key\":\"d\",\"text\":\"Dee\"}\n{\"key\":\"e\",\"text\":\"Eve\",\"namespace\":\"other\"}\n");
    let document = sandbox.document(&["import", "more.jsonl", "--decisions", "d.jsonl", "--batch", "2"]);
    has(
        &document,
        &[
            "run",
            "read",
            "stored",
            "unchanged",
            "updated",
            "reinforced",
            "revised",
            "aggregated",
            "ignored",
            "routed",
            "consolidated",
            "bad",
            "seconds",
        ],
    );
    assert_eq!(
        (&document["read"], &document["stored"], &document["unchanged"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(document["runs"].as_array().unwrap().len(), 2);
    let decisions = std::fs::read_to_string(sandbox.path("d.jsonl")).unwrap();
    let lines: Vec<Value> = decisions.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|d| d["line"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    let again = sandbox.document(&["import", "more.jsonl"]);
    assert_eq!((&again["stored"], &again["unchanged"]), (&json!(0), &json!(3)));
    let undone = sandbox.document(&["undo", document["run"].as_str().unwrap()]);
    has(&undone, &["restored", "lost"]);
    assert_eq!(undone["removed"], 1);
    assert_eq!(sandbox.document(&["get", "a"])["state"], "live");
    has(&sandbox.document(&["get", "d"]), &["tombstone"]);
    assert_eq!(sandbox.run(&["undo", document["run"].as_str().unwrap()]).code, 0, "undoing twice is no harm");
    assert_eq!(sandbox.run(&["get", "e"]).error().0, "NotFound");
    assert_eq!(sandbox.document(&["--namespace", "other", "get", "e"])["text"], "Eve");
}

#[test]
fn runs_lists_what_was_done_in_many_parts() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let before = sandbox.document(&["runs"])["items"].as_array().unwrap().len();
    sandbox.write("more.jsonl", "{\"key\":\"d\",\"text\":\"Dee\"}\n{\"key\":\"e\",\"text\":7}\n");
    // The order is that of the ids, which is that of the milliseconds.
    let later = ["--db", "m.oub", "--json", "--now", "2026-03-01T00:00:01Z"];
    let failed = sandbox.plain(&[&later[..], &["import", "more.jsonl", "--batch", "1"]].concat(), b"");
    assert_eq!(failed.code, 1);
    // The run is told before anything is written.
    let started: Value = serde_json::from_str(failed.err.lines().next().unwrap_or_default()).unwrap();
    let run = started["started"]["run"].as_str().unwrap();
    assert_eq!(started["started"]["namespace"], "default");
    let page = sandbox.document(&["runs", "--limit", "1"]);
    has(&page, &["items", "next"]);
    let listed = &page["items"][0];
    has(
        listed,
        &[
            "id",
            "what",
            "state",
            "by",
            "started_at",
            "latest_at",
            "counts",
            "can_be_undone",
            "undoable_until",
        ],
    );
    assert_eq!(
        (&listed["id"], &listed["what"], &listed["state"]),
        (&json!(run), &json!("import"), &json!("cut off"))
    );
    assert_eq!((&listed["counts"], &listed["by"]), (&json!({ "stored": 1 }), &json!("caller")));
    assert_eq!(sandbox.document(&["runs", run]), *listed);
    assert_eq!(sandbox.document(&["runs"])["items"].as_array().unwrap().len(), before + 1);
    if before > 0 {
        let rest = sandbox.document(&["runs", "--cursor", page["next"].as_str().unwrap()]);
        assert_eq!(rest["items"].as_array().unwrap().len(), before);
    }
    assert_eq!(sandbox.document(&["undo", run])["removed"], 1);
    assert_eq!(sandbox.document(&["runs", run])["state"], "undone");
    let shown = sandbox.plain(&["--db", "m.oub", "runs"], b"");
    assert!(shown.out.contains("undone") && shown.out.contains("import"), "{shown:?}");
    assert_eq!(sandbox.run(&["runs", "00000000-0000-7000-8000-000000000000"]).error().0, "NotFound");
    assert_eq!(sandbox.run(&["runs", "x"]).error().0, "Invalid");
    assert_eq!(sandbox.run(&["runs", "--limit", "0"]).error().0, "Invalid");
}

#[test]
fn import_reads_standard_input_vectors_and_other_tools() {
    let sandbox = Sandbox::new();
    sandbox.npy("v.npy", &[&[1.0, 0.0], &[0.0, 2.0]]);
    let lines = b"{\"key\":\"a\",\"text\":\"one\"}\n{\"key\":\"b\",\"text\":\"two\",\"colour\":\"red\"}\n";
    let arguments = ["import", "-", "--vectors", "v.npy", "--lenient"];
    assert_eq!(sandbox.run_with(&arguments, lines).document()["stored"], 2);
    let got = sandbox.document(&["get", "b", "--vector"]);
    assert_eq!((&got["vector"], &got["metadata"]), (&json!([0.0, 1.0]), &json!({ "colour": "red" })));
    sandbox.write("mem0.json", r#"{"results":[{"id":"1","memory":"likes tea"}]}"#);
    assert_eq!(sandbox.document(&["import", "mem0.json", "--format", "mem0"])["stored"], 1);
    let tags = &sandbox.document(&["get", "mem0:1"])["tags"];
    assert_eq!(tags, &json!(["import:mem0:2026-03-01"]));
    sandbox.write(
        "graph.jsonl",
        r#"{"type":"entity","name":"Ann","entityType":"person","observations":["tea"]}"#,
    );
    assert_eq!(sandbox.document(&["import", "graph.jsonl", "--format", "server-memory"])["stored"], 2);
}

#[test]
fn search_finds_one_and_many() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.npy("q.npy", &[&[0.9, 0.1], &[0.1, 0.9]]);
    let found = sandbox.document(&["search", "tea?", "--vector-file", "q.npy", "-k", "2", "--explain"]);
    has(&found, &["hits", "plan", "took_us"]);
    has(&found["hits"][0], &["id", "key", "score", "text", "signals"]);
    assert_eq!((&found["hits"][0]["key"], found["hits"].as_array().unwrap().len()), (&json!("a"), 2));
    let filtered = ["search", "--vector-file", "q.npy", "--filter", r#"{"tags":{"$in":["drink"]}}"#];
    assert_eq!(sandbox.document(&filtered)["hits"].as_array().unwrap().len(), 2);
    // "Ann prefers tea" has 15 bytes: 4 tokens; the next one would be too much.
    let short = sandbox.document(&["search", "--vector-file", "q.npy", "--max-tokens", "7"]);
    assert_eq!(short["hits"].as_array().unwrap().len(), 1);
    let agent = sandbox.document(&["search", "--vector-file", "q.npy", "--agent", "nobody"]);
    assert_eq!(agent["hits"], json!([]));
    sandbox.write("q.jsonl", "{\"query\":\"x\"}\n{\"filter\":{\"key\":\"a\"}}\n");
    let answer = sandbox.run(&["search", "--queries", "q.jsonl", "--vectors", "q.npy", "-k", "1"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let lines: Vec<Value> = answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    lines.iter().for_each(|line| has(line, &["keys", "scores", "took_us"]));
    assert_eq!(lines[0]["keys"], json!(["a"]));
    assert_eq!(lines[1]["keys"], json!(["a"]), "its filter leaves only a");
    assert_eq!(sandbox.run(&["search", "tea", "--mode", "vector"]).error().0, "NoEmbedder");
    assert_eq!(sandbox.run(&["search"]).code, 2);
    let document = sandbox.document(&["eval", "--queries", "q.jsonl", "--vectors", "q.npy", "-k", "2"]);
    has(&document, &["recall_at_k", "queries", "p50_us", "p95_us", "p99_us", "exact_p50_us", "live", "dead"]);
    assert_eq!((&document["recall_at_k"], &document["queries"]), (&json!(1.0), &json!(2)));
}

#[test]
fn list_pages_through_and_history_and_explain_tell() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let page = sandbox.document(&["list", "--limit", "2"]);
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let next = page["next"].as_str().unwrap();
    let page = sandbox.document(&["list", "--limit", "2", "--cursor", next]);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next"]), (1, &Value::Null));
    let revised =
        sandbox.document(&["update", "a", "--text", "Ann prefers coffee now", "--importance", "0.9"]);
    assert_eq!(revised["decision"], "revised");
    assert_eq!(sandbox.document(&["get", "a"])["importance"], 0.9);
    let old = sandbox.document(&["list", "--state", "superseded"]);
    assert_eq!(old["items"][0]["text"], "Ann prefers tea");
    assert_eq!(sandbox.document(&["list", "--state", "any"])["items"].as_array().unwrap().len(), 4);
    let history = sandbox.document(&["history", "a"]);
    has(&history, &["events"]);
    assert_eq!(history["versions"].as_array().unwrap().len(), 2);
    let story = sandbox.document(&["explain", "a"]);
    has(&story, &["id", "state", "created", "merged_from", "replaced_by", "removed", "events"]);
    sandbox.document(&["forget", "b", "--yes"]);
    assert_eq!(sandbox.document(&["explain", "b"])["removed"]["reason"], "forget");
    assert_eq!(sandbox.document(&["list", "--state", "tombstoned"])["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["get", "nobody"]).error().0, "NotFound");
}

#[test]
fn one_memory_can_be_changed() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    assert_eq!(sandbox.document(&["update", "a", "--tag", "x", "--channel", "ops"])["decision"], "updated");
    assert_eq!(
        sandbox.document(&["update", "a", "--clear", "channel", "--clear", "tags"])["decision"],
        "updated"
    );
    let got = sandbox.document(&["get", "a"]);
    assert_eq!((&got["channel"], &got["tags"]), (&Value::Null, &json!([])));
    sandbox.document(&["pin", "a"]);
    assert_eq!(sandbox.document(&["get", "a"])["pinned"], true);
    sandbox.document(&["unpin", "a"]);
    assert_eq!(sandbox.document(&["get", "a"])["pinned"], false);
    let new = sandbox.document(&["supersede", "a", "--with", "b", "--mode", "correction"]);
    assert_eq!(new["text"], "Bob prefers coffee");
    let old =
        sandbox.document(&["list", "--state", "superseded"])["items"][0]["id"].as_str().unwrap().to_owned();
    has(&sandbox.document(&["restore", &old]), &["id", "keys_taken"]);
    let new = sandbox.document(&["supersede", "c", "--with-text", "Cy runs", "--at", "2026-02-01T00:00:00Z"]);
    assert_eq!((&new["decision"], &new["key"]), (&json!("revised"), &json!("c")));
    assert_eq!(sandbox.run(&["supersede", "c"]).code, 2, "with what?");
}

#[test]
fn forget_needs_a_yes_and_erases() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["add", "Ann prefers tea", "--key", "a2"]);
    let export = sandbox.document(&["export", "before.jsonl"]);
    assert_eq!(export["memories"], 3);
    assert_eq!(sandbox.run(&["forget", "a"]).code, 2);
    let done = sandbox.document(&["forget", "a", "nobody", "--yes"]);
    has(&done, &["forgotten", "detached", "missing", "tombstones"]);
    assert_eq!(
        (&done["forgotten"], &done["detached"], &done["missing"], &done["tombstones"]),
        (&json!(0), &json!(1), &json!(1), &json!(0)),
        "a2 still holds the text (MODEL-8)"
    );
    sandbox.write("keys", "a2\nb\n");
    let done = sandbox.document(&["forget", "--keys", "keys", "--yes"]);
    assert_eq!((&done["forgotten"], &done["tombstones"]), (&json!(2), &json!(2)));
    let left = sandbox.run(&["check", "--erased", "before.jsonl"]);
    assert_eq!(left.code, 3, "before compaction their bytes are in free pages: {left:?}");
    assert_eq!(serde_json::from_str::<Value>(&left.out).unwrap()["ok"], false);
    let done = sandbox.document(&["forget", "--filter", r#"{"key":"c"}"#, "--erase", "--yes"]);
    has(&done, &["bytes_before", "bytes_after"]);
    let check = sandbox.document(&["check", "--deep", "--erased", "before.jsonl"]);
    has(&check, &["ok", "findings", "checked"]);
    sandbox.fill();
    let done = sandbox.document(&["forget", "--tag", "drink", "--yes"]);
    assert_eq!(done["forgotten"], 2);
}

#[test]
fn forget_says_first_what_would_go() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let before = sandbox.run(&["export", "-", "--all-states"]).out;
    let plan = sandbox.document(&["forget", "a", "nobody", "--dry-run"]);
    has(&plan, &["dry_run", "memories", "sample", "answer"]);
    assert_eq!((&plan["memories"]["live"], &plan["answer"]["missing"]), (&json!(1), &json!(1)));
    assert_eq!((&plan["sample"][0]["state"], &plan["sample"][0]["keys"]), (&json!("live"), &json!(["a"])));
    assert_eq!(sandbox.run(&["export", "-", "--all-states"]).out, before);
    assert_eq!(sandbox.run(&["forget", "a", "--dry-run", "--yes"]).code, 2, "one or the other");
    let refused = sandbox.run(&["forget", "--filter", "{}", "--yes"]).error();
    assert!(refused.0 == "Invalid" && refused.1.contains("filter"), "{refused:?}");
    let told = sandbox.plain(&["--db", "m.oub", "forget", "--filter", "{}", "--all", "--dry-run"], b"");
    assert!(told.out.starts_with("Would forget 3 memories (3 live, 0 superseded, "), "{told:?}");
    let done = sandbox.document(&["forget", "--filter", "{}", "--all", "--yes"]);
    assert_eq!(done["forgotten"], 3);
}

#[test]
fn whole_files_and_namespaces() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["--namespace", "other", "add", "elsewhere"]);
    let stats = sandbox.document(&["stats", "--deep"]);
    has(
        &stats,
        &["memories", "by_namespace", "by_partition", "by_kind", "by_tier", "vectors", "bytes", "health"],
    );
    has(&stats["memories"], &["live", "superseded", "expired", "limbo", "tombstoned"]);
    has(&stats["vectors"], &["live", "dead", "tail", "in_graph", "regime"]);
    has(&stats["bytes"], &["file", "live", "overhead", "free", "by_table"]);
    has(&stats["bytes"]["by_table"]["vitals"], &["rows", "live", "overhead"]);
    has(&stats["health"], &["duplicates_detected", "last_prune"]);
    assert_eq!(stats["memories"]["live"], 4);
    assert_eq!(sandbox.document(&["stats", "--namespace", "other"])["memories"]["live"], 1);
    let list = sandbox.document(&["namespace", "list"]);
    assert_eq!(list["namespaces"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.document(&["namespace", "drop", "other"])["dropped"], 1);
    assert_eq!(sandbox.run(&["namespace", "drop", "other"]).error().0, "NotFound");
    let copied = ["bytes_before", "bytes_after", "rows", "expired", "limbo", "damaged"];
    has(&sandbox.document(&["compact"]), &copied);
    has(&sandbox.document(&["backup", "copy.oub"]), &copied);
    assert_eq!(sandbox.run(&["backup", "copy.oub"]).error().0, "Conflict");
    let copy = sandbox.plain(&["--db", "copy.oub", "--json", "get", "a"], b"").document();
    assert_eq!(copy["text"], "Ann prefers tea");
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn model_48_export_import_export_through_files() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.document(&["add", "old", "--key", "old"]);
    sandbox.document(&["update", "old", "--text", "new"]);
    sandbox.document(&["forget", "b", "--yes"]);
    sandbox.document(&["export", "one.jsonl", "--all-states", "--all-namespaces"]);
    let one = std::fs::read_to_string(sandbox.path("one.jsonl")).unwrap();
    assert_eq!(one.lines().count(), 6, "4 memories, a tombstone, and the run of an import: {one}");
    let other = |arguments: &[&str]| {
        sandbox.plain(&[&["--db", "n.oub", "--json", "--now", NOW], arguments].concat(), b"")
    };
    assert_eq!(other(&["import", "one.jsonl"]).document()["tombstones"], 1);
    let two = other(&["export", "-", "--all-states", "--all-namespaces"]);
    assert_eq!((two.code, two.out.as_str()), (0, one.as_str()));
    sandbox.document(&["export", "bare.jsonl", "--vectors", "bare.npy"]);
    let third =
        sandbox.plain(&["--db", "o.oub", "--json", "import", "bare.jsonl", "--vectors", "bare.npy"], b"");
    assert_eq!(third.document()["stored"], 3);
    assert_eq!(sandbox.plain(&["--db", "o.oub", "--json", "check"], b"").code, 0);
    let names: Vec<_> =
        std::fs::read_dir(sandbox.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

#[test]
fn policies_can_be_shown_and_set() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", "[ttl]\nworking = \"1h\"\n");
    let set = sandbox.document(&["policy", "set", "p.toml"]);
    has(&set, &["number", "hash"]);
    let show = sandbox.document(&["policy", "show"]);
    assert_eq!((&show["number"], &show["hash"]), (&json!(1), &set["hash"]));
    sandbox.document(&["add", "x", "--key", "x", "--tier", "working"]);
    assert_eq!(sandbox.document(&["get", "x"])["expires_at"], "2026-03-01T01:00:00Z");
    sandbox.write("q.toml", "[ttl]\nworking = \"2h\"\n");
    sandbox.document(&["--policy", "q.toml", "add", "y", "--key", "y", "--tier", "working"]);
    assert_eq!(sandbox.document(&["get", "y"])["expires_at"], "2026-03-01T02:00:00Z");
    sandbox.write("bad.toml", "[ttl]\nworkng = \"1h\"\n");
    assert_eq!(sandbox.run(&["policy", "set", "bad.toml"]).error().0, "Policy");
}

#[test]
fn expiry_follows_the_clock_that_is_given() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "short", "--key", "s", "--ttl", "1h"]);
    assert_eq!(sandbox.document(&["list"])["items"].as_array().unwrap().len(), 1);
    let later = ["--db", "m.oub", "--json", "--now", "2026-03-01T01:00:00Z", "list"];
    assert_eq!(sandbox.plain(&later, b"").document()["items"], json!([]));
}

#[test]
fn the_database_is_found_by_flag_environment_config_and_folder() {
    let sandbox = Sandbox::new();
    let live = |arguments: &[&str], env: Option<&str>| {
        let mut command = sandbox.command(arguments);
        if let Some(path) = env {
            command.env("OUBLIETTE_DB", path);
        }
        assert!(command.output().unwrap().status.success());
    };
    live(&["add", "one", "-q"], None);
    let data = [".local/share/oubliette/memory.oub", "Library/Application Support/oubliette/memory.oub"];
    assert!(data.iter().any(|path| sandbox.path(path).exists()));
    sandbox.write("oubliette.toml", "db = \"config.oub\"\nnamespace = \"team\"\n");
    live(&["add", "two"], None);
    assert!(sandbox.path("config.oub").exists());
    live(&["add", "three"], Some("env.oub"));
    assert!(sandbox.path("env.oub").exists());
    live(&["add", "four", "--db", "flag.oub"], Some("other.oub"));
    assert!(sandbox.path("flag.oub").exists() && !sandbox.path("other.oub").exists());
    let stats = sandbox.plain(&["--json", "--db", "config.oub", "stats"], b"").document();
    assert_eq!(stats["by_namespace"]["team"], 1);
    for (document, told) in [
        ("database = \"config.oub\"\n", "oubliette.toml: there is no such key; expected one of `db`, "),
        ("wait = 5\n", "oubliette.toml: wait: invalid type: integer `5`, expected a string (got 5)"),
        (
            "durability = \"quick\"\n",
            "oubliette.toml: durability: must be safe, fast or batch (got \"quick\")",
        ),
        ("wait = \n", "must be a config file, in TOML"),
    ] {
        sandbox.write("oubliette.toml", document);
        let (kind, message) = sandbox.plain(&["--json", "stats"], b"").error();
        assert!(kind == "Invalid" && message.contains(told), "{document}: {message}");
    }
}

#[test]
fn the_config_file_of_the_guide_is_read() {
    let guide = include_str!("../../../docs/guide.md");
    let mut examples = guide.split("```toml\n").skip(1);
    let example = examples.find(|example| !example.starts_with("[dependencies]")).unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("oubliette.toml", example);
    assert_eq!(sandbox.plain(&["add", "Ann prefers tea"], b"").code, 0);
    let stats = sandbox.plain(&["--json", "stats"], b"").document();
    assert_eq!(stats["by_namespace"]["team"], 1);
    assert!(sandbox.path("memory.oub").exists());
}

#[test]
fn people_get_tables_and_help() {
    let sandbox = Sandbox::new();
    let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");
    sandbox.document(&["add", "an \u{1b}[31mescape", "--key", "k"]);
    for arguments in
        [&["list"][..], &["get", "k"], &["stats"], &["history", "k"], &["explain", "k"], &["check"]]
    {
        let answer = plain(arguments);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(!answer.out.is_empty() && !answer.out.contains('\u{1b}'), "{arguments:?}: {answer:?}");
    }
    let error = plain(&["get", "nobody"]);
    assert_eq!(error.code, 1);
    assert!(error.err.starts_with("error: memory not found: nobody\nhint: "), "{}", error.err);
    assert_eq!(plain(&["--help"]).code, 0);
    assert!(plain(&["completions", "bash"]).out.contains("oubliette"));
    let policy = plain(&["policy", "show"]);
    assert!(policy.out.contains("[ttl]"), "{policy:?}");
}

#[test]
fn people_read_a_sentence_for_what_was_done() {
    let sandbox = Sandbox::new();
    let told = |arguments: &[&str]| {
        let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
        assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
        answer.out
    };
    let home = [
        "Ann lives in Ghent",
        "--key",
        "ann:home",
        "--namespace",
        "team",
        "--tag",
        "people",
        "--tag",
        "home",
    ];
    assert_eq!(told(&[&["add"], &home[..]].concat()), "Stored ann:home in team\n");
    assert!(told(&[&["add"], &home[..]].concat()).starts_with("Unchanged: ann:home in team"));
    assert!(told(&[&["-v", "add"], &home[..]].concat()).contains("DEDUP-"), "-v adds the rule");
    assert_eq!(
        told(&["update", "ann:home", "--namespace", "team", "--pinned"]),
        "Updated ann:home in team\n"
    );
    assert_eq!(told(&["add", "x", "--key", "x", "--agent", "bob"]), "Stored x in default, the part of bob\n");
    assert_eq!(told(&["forget", "x", "nobody", "--yes"]), "Forgot 1 memory; 1 not found: nobody\n");
    sandbox.write("in.jsonl", "{\"text\":\"a\"}\n{\"text\":\"a\"}\n");
    let import = told(&["import", "in.jsonl"]);
    assert!(import.starts_with("Read 2 lines: 1 stored, 1 reinforced; `undo "), "{import}");
    assert!(told(&["compact"]).starts_with("Compacted: "));
    // Tables hold no JSON, no rule, and are no wider than 100 columns where there is no terminal.
    sandbox.document(&["add", &"long ".repeat(200), "--key", "long", "--metadata", "{\"a\":{\"b\":[1,2]}}"]);
    for arguments in [
        &["get", "ann:home", "--namespace", "team"][..],
        &["explain", "ann:home", "--namespace", "team"],
        &["history", "ann:home", "--namespace", "team"],
        &["get", "long"],
        &["list"],
        &["stats"],
        &["search", "long"],
    ] {
        let shown = told(arguments);
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{arguments:?}: {shown}");
        assert!(!shown.contains(['{', '[', '"']) && !shown.contains("DEDUP-"), "{arguments:?}: {shown}");
    }
    assert!(told(&["get", "ann:home", "--namespace", "team"]).contains("home, people"));
    for arguments in [&["search", "zebra", "--mode", "text"][..], &["list", "--agent", "eve"], &["events"]] {
        let shown = told(arguments);
        assert!(!shown.contains('─') && shown.lines().count() == 1, "{arguments:?}: {shown}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let lines: String =
        (0..3_000).map(|i| format!("{{\"key\":\"k{i}\",\"text\":\"memory number {i}\"}}\n")).collect();
    sandbox.write("many.jsonl", lines);
    sandbox.document(&["import", "many.jsonl"]);
    let mut child = sandbox.spawn(&["--db", "m.oub", "export", "-"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()),
        (Some(0), String::new())
    );
}

#[test]
fn a_second_writer_waits_or_is_told() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let mut holder = sandbox.spawn(&["--db", "m.oub", "--json", "add", "-"]);
    let mut input = holder.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{\"text\":\"held\"}\n").unwrap();
    let mut answer = String::new();
    let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut answer).unwrap();
    assert!(answer.contains("stored"), "{answer}");
    assert_eq!(sandbox.run(&["--no-share", "add", "me too"]).error().0, "Locked");
    let waiting = ["--db", "m.oub", "--json", "--no-share", "--wait", "30s", "add", "me too"];
    let waiting = sandbox.spawn(&waiting);
    drop(input);
    assert!(holder.wait().unwrap().success());
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn readers_read_beside_a_writer_that_shares() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let mut holder = sandbox.spawn(&["--db", "m.oub", "--json", "--shared", "add", "-"]);
    let mut input = holder.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{\"key\":\"h\",\"text\":\"held\"}\n").unwrap();
    let mut answer = String::new();
    let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut answer).unwrap();
    // They could ask it too; this is the way of those that do not.
    assert_eq!(sandbox.document(&["--no-share", "get", "h"])["text"], "held");
    let stats = sandbox.document(&["--no-share", "stats"]);
    assert_eq!(stats["memories"]["live"], 4, "stats falls back to reading");
    drop(input);
    assert!(holder.wait().unwrap().success());
}

/// A story without the sizes of its file: each slice of a pass leaves a row in the journal, and a busy machine cuts more slices.
fn without_bytes(story: Value) -> Value {
    match story {
        Value::Object(story) => story
            .into_iter()
            .filter(|(key, _)| !key.starts_with("bytes"))
            .map(|(key, value)| (key, without_bytes(value)))
            .collect(),
        Value::Array(all) => all.into_iter().map(without_bytes).collect(),
        other => other,
    }
}

#[test]
fn the_demo_tells_its_story_the_same_each_time() {
    let sandbox = Sandbox::new();
    let run = || {
        let answer = sandbox.plain(&["--json", "demo"], b"");
        let mut document = answer.document();
        document.as_object_mut().unwrap().remove("timing");
        document
    };
    let document = run();
    let (before, after) = (&document["before"], &document["after"]);
    assert_eq!((&before["memories"], &before["writes_held"]), (&json!(1_851), &json!(3_577)));
    assert_eq!((&before["dead_returned"], &after["dead_returned"]), (&json!(0), &json!(0)));
    for side in ["before", "forgotten", "after"] {
        assert_eq!(document[side]["recall_at_10_of_exact_scan"], 1.0, "{side}");
    }
    assert!(after["bytes"].as_u64() < before["bytes"].as_u64());
    let summarized = &document["summarized"];
    assert!(summarized["bytes"].as_u64() < after["bytes"].as_u64(), "{summarized} {after}");
    assert!(summarized["memories"].as_u64() < after["memories"].as_u64());
    let found = |side: &Value| side["answer_recall_at_10"].as_f64().unwrap();
    assert!(found(summarized) > 0.5 * found(after), "{summarized} {after}");
    let steps = document["steps"].as_array().unwrap();
    let check = steps.iter().find(|step| step["step"] == "check").unwrap();
    assert_eq!(
        (&check["ok"], check["erased_memories_searched_for"].as_u64() > Some(0)),
        (&json!(true), true)
    );
    let told = sandbox.plain(&["demo"], b"").out;
    assert!(
        told.contains("every invariant holds; no byte of") && !told.contains("something is wrong"),
        "{told}"
    );
    let step = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    let collapse = step("collapse");
    assert!(
        collapse["removed"].as_u64() > Some(500) && collapse["kept_apart"].as_u64() > Some(0),
        "{collapse}"
    );
    assert_eq!(collapse["removed"], step("undo")["restored"]);
    let (superseded, expired) = (step("supersede"), step("expire"));
    let answer = |at: usize| superseded["answers"][at]["text"].as_str().unwrap();
    assert!(answer(0).contains("tracer bullet on gt-oiv0") && answer(1).contains("SUCCESS"), "{superseded}");
    assert_eq!(superseded["now"], superseded["answers"][1]["text"]);
    assert_eq!(
        (&expired["found_before"], &expired["found_after"], &expired["removed"]),
        (&json!(true), &json!(false), &json!(1))
    );
    let summaries = step("summarize");
    assert!(summaries["memories"].as_u64() > Some(200) && summaries["refused"] == 0, "{summaries}");
    assert_eq!(
        (&step("undo")["lost"], &step("collapse_again")["removed"]),
        (&json!(0), &collapse["removed"])
    );
    assert_eq!(without_bytes(document), without_bytes(run()));
    let page = sandbox.plain(&["demo", "--db", "kept.oub"], b"");
    assert!(page.code == 0 && page.out.contains("What happened"), "{page:?}");
    assert!(sandbox.path("kept.oub").exists());
    assert_eq!(sandbox.plain(&["--json", "demo", "--db", "kept.oub"], b"").error().0, "Conflict");
}

#[test]
fn rules_route_ignore_and_consolidate_and_are_told() {
    let sandbox = Sandbox::new();
    let add = |arguments: &[&str]| sandbox.document(&[&["add"], arguments].concat());
    let routed = add(&["rust hnsw", "--kind", "search_history", "--key", "q"]);
    assert_eq!((&routed["decision"], &routed["inner"]), (&json!("routed"), &json!("stored")));
    assert_eq!((&routed["rule"], &routed["partition"]), (&json!("R1"), &json!("perplexity")));
    assert_eq!(add(&["rust hnsw", "--kind", "search_history", "--key", "q"])["inner"], "unchanged");
    assert_eq!(add(&["likes tea", "--tag", "profile-fact"])["rule"], "R3");
    let stays = add(&["likes milk", "--tag", "profile-fact", "--skip-instructions"]);
    assert_eq!((&stays["decision"], &stays["partition"]), (&json!("stored"), &json!("shared")));

    let strict = sandbox.write("strict.toml", "rules.strict = true");
    let maybe = add(&["maybe uses Rust", "--policy", &strict]);
    assert_eq!(
        (&maybe["decision"], &maybe["rule"], &maybe["into"]),
        (&json!("ignored"), &json!("R5"), &Value::Null)
    );
    assert_eq!(sandbox.document(&["stats"])["ignored"], 1);
    let lang = sandbox.write(
        "lang.toml",
        r#"rules.typed = [{ id = "lang", match = { keyword = ["typescript"] }, action = { consolidate = "lang" } }]"#,
    );
    let lines =
        b"{\"text\":\"TypeScript\"}\n{\"text\":\"TypeScript 5\"}\n{\"text\":\"x\",\"kind\":\"snapshot\"}\n";
    let file = sandbox.write("lines.jsonl", lines);
    let report = sandbox.document(&["import", &file, "--policy", &lang]);
    assert_eq!(
        (&report["stored"], &report["consolidated"], &report["routed"]),
        (&json!(2), &json!(1), &json!(0))
    );
    let report = sandbox.document(&["import", &file]);
    assert_eq!((&report["routed"], &report["ignored"]), (&json!(1), &json!(0)));
    let got = sandbox.document(&["get", "lang"]);
    assert_eq!(got["text"], "TypeScript 5");
}

#[test]
fn instructions_are_printed_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.document(&["init"]);
    let plain = sandbox.plain(&["--db", "m.oub", "policy", "instructions"], b"");
    assert!(
        plain.out.starts_with("STORE:\n- decisions") && plain.out.ends_with("\"uses TypeScript\")"),
        "{}",
        plain.out
    );
    assert_eq!(sandbox.document(&["policy", "instructions"])["instructions"], plain.out);
    let spaces = sandbox.write("spaces", "  \n");
    assert_eq!(sandbox.document(&["policy", "instructions", "--instructions", &spaces])["instructions"], "");
}

#[test]
fn index_declares_what_a_filter_looks_up() {
    let sandbox = Sandbox::new();
    for room in ["hall", "cellar"] {
        sandbox.document(&[
            "add",
            &format!("in the {room}"),
            "--metadata",
            &format!("{{\"room\":\"{room}\"}}"),
        ]);
    }
    let added = sandbox.document(&["index", "add", "room"]);
    assert_eq!(added, json!({ "namespace": "default", "key": "room", "rows": 2 }));
    assert_eq!(sandbox.document(&["index", "add", "room"])["rows"], 0, "once more is no harm");
    assert_eq!(sandbox.document(&["index", "list"]), json!({ "namespace": "default", "keys": ["room"] }));
    let found = sandbox.document(&["list", "--filter", "{\"metadata.room\":\"hall\"}"]);
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.document(&["index", "drop", "room"])["dropped"], true);
    assert_eq!(sandbox.document(&["index", "drop", "room"])["dropped"], false);
    assert_eq!(sandbox.document(&["index", "list"])["keys"], json!([]));
    assert_eq!(sandbox.run(&["index", "add", "a..b"]).error().0, "Invalid");
    assert_eq!(sandbox.run(&["index", "add", &"x".repeat(129)]).error().0, "Invalid");
}

#[test]
fn memory_stats_is_the_small_document() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--tag", "preferences"]);
    sandbox.document(&["add", "Bob walks", "--agent", "bob"]);
    let stats = sandbox.document(&["memory-stats"]);
    assert_eq!(stats["local"]["by_tag"], json!({ "preferences": 1 }));
    assert_eq!(stats["mem0"], json!({ "total": 2, "by_agent": { "bob": 1, "shared-memory": 1 } }));
    assert_eq!(stats["health"]["last_prune"], Value::Null);
    let plain = sandbox.plain(&["memory-stats", "--db", "m.oub"], b"");
    assert!(plain.out.contains("preferences") && !plain.out.contains('{'), "{plain:?}");
}

#[test]
fn maintain_every_stays_and_sweeps() {
    use std::io::{BufRead, BufReader};
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea"]);
    let mut child = sandbox.spawn(&["maintain", "--db", "m.oub", "--every", "10ms", "--json"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let report: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        has(&report, &["at", "ms", "run", "passes", "failed"]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for (arguments, name) in [
        (&["maintain", "--every", "0s"][..], "--every"),
        (&["maintain", "--every", "10ms", "--namespace", "default"], "--namespace"),
    ] {
        let answer = sandbox.run(arguments);
        assert_eq!(answer.error().0, "Invalid");
        assert!(answer.err.contains(name), "{answer:?}");
    }
    assert_eq!(sandbox.run(&["maintain", "--every", "1s", "--dry-run"]).code, 2);
}

#[test]
fn namespaces_are_moved_and_taken_apart() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--metadata", r#"{"user_id":"ann"}"#]);
    sandbox.document(&["add", "the sky is blue"]);
    let dry = sandbox.document(&["namespace", "split", "default", "--dry-run"]);
    assert_eq!(dry["targets"], json!({ "ann": 1 }));
    let done = sandbox.document(&["namespace", "split", "default", "--by", "project,user_id"]);
    has(&done, &["moved", "targets", "skipped", "dry_run", "cross_namespace_edges"]);
    assert_eq!((&done["moved"], &done["skipped"]), (&json!(1), &json!(1)));
    assert_eq!(sandbox.document(&["namespace", "move", "ann", "default"])["moved"], 1);
    assert_eq!(sandbox.document(&["namespace", "list"])["namespaces"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.run(&["namespace", "move", "nobody", "default"]).error().0, "NotFound");
    let plain = sandbox.plain(&["namespace", "move", "default", "team", "--db", "m.oub"], b"");
    assert!(plain.out.starts_with("Moved 2 memories out of default"), "{plain:?}");
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

/// A run is taken back wherever its memories are.
#[test]
fn what_was_split_away_is_taken_back_without_its_namespace() {
    let sandbox = Sandbox::new();
    for (key, count) in [("g1", 1), ("g2", 2)] {
        let text = format!("Gateway status: {count} apps pending");
        let owner = r#"{"user_id":"ann"}"#;
        sandbox.document(&["add", &text, "--kind", "profile", "--key", key, "--metadata", owner]);
    }
    let run = sandbox.document(&["maintain", "collapse"])["run"].as_str().unwrap().to_owned();
    sandbox.document(&["namespace", "split", "default"]);
    let refused = sandbox.run(&["--namespace", "default", "undo", &run]).error();
    assert_eq!(refused.0, "Conflict", "{}", refused.1);
    let undone = sandbox.document(&["undo", &run]);
    assert_eq!((&undone["restored"], &undone["lost"]), (&json!(1), &json!([])));
    let left = sandbox.document(&["--namespace", "ann", "list"]);
    assert_eq!(left["items"].as_array().unwrap().len(), 2);
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}
