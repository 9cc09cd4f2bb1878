//! Bad input: a typed error that names the line and the field, and nothing is written.

use std::path::Path;

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use crate::damage::store::{change, overwrite, tables};

/// A line of an import, what its error must say, and in which case it is there.
#[track_caller]
fn refused(sandbox: &Sandbox, line: &[u8], says: &[&str]) {
    let before = sandbox.run(&["export", "-", "--all-states", "--all-namespaces"]).out;
    let good = b"{\"key\":\"good\",\"text\":\"good\",\"vector\":[1,1]}\n";
    sandbox.write("bad.jsonl", [good, line, b"\n"].concat());
    let answer = sandbox.run(&["import", "bad.jsonl"]);
    let (kind, message) = answer.error();
    assert_eq!((answer.code, kind.as_str()), (1, "Invalid"), "{message}");
    assert!(message.starts_with("line 2: "), "{message}");
    for word in says {
        assert!(message.contains(word), "{word} is not in {message}");
    }
    let after = sandbox.run(&["export", "-", "--all-states", "--all-namespaces"]).out;
    assert_eq!(before, after, "nothing of the batch is written");
}

#[test]
fn bad_lines_are_named_with_their_field() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let long = format!("{{\"text\":\"x\",\"key\":\"{}\"}}", "k".repeat(513));
    let text = format!("{{\"text\":\"{}\"}}", "t".repeat((1 << 20) + 1));
    let tags =
        format!("{{\"text\":\"x\",\"tags\":{:?}}}", (0..65).map(|i| i.to_string()).collect::<Vec<_>>());
    let deep = format!("{{\"text\":\"x\",\"metadata\":{{\"a\":{}1{}}}}}", "[".repeat(40), "]".repeat(40));
    let cases: &[(&[u8], &[&str])] = &[
        (b"{\"text\":\"x\"", &["line:"]),
        (b"[1]", &["line:"]),
        (b"{\"key\":\"x\"}", &["text: is required"]),
        (b"{\"text\":\"\"}", &["text:"]),
        (b"{\"text\":\"x\",\"vector\":[1,2,3]}", &["vector", "2 dimensions"]),
        (b"{\"text\":\"x\",\"vector\":[0,0]}", &["vector"]),
        (b"{\"text\":\"x\",\"vector\":[1e999,0]}", &["vector"]),
        (b"{\"text\":\"x\",\"vector\":[NaN,0]}", &["line:"]),
        (b"{\"text\":\"x\",\"vector\":[]}", &["vector"]),
        (b"{\"text\":\"a\\u0000b\"}", &["text", "NUL"]),
        (b"{\"text\":\"x\",\"key\":\"a\\u0000b\"}", &["key", "NUL"]),
        (b"{\"text\":\"x\xff\"}", &["UTF-8"]),
        (b"{\"text\":\"x\",\"kind\":\"poem\"}", &["kind"]),
        (b"{\"text\":\"x\",\"colour\":\"red\"}", &["colour"]),
        (b"{\"text\":\"x\",\"text\":\"y\"}", &["text"]),
        (b"{\"text\":\"x\",\"created_at\":\"yesterday\"}", &["created_at", "RFC 3339"]),
        (b"{\"text\":\"x\",\"ttl\":\"soon\"}", &["ttl"]),
        (b"{\"text\":\"x\",\"ttl\":\"-1d\"}", &["ttl", "not negative"]),
        (b"{\"text\":\"x\",\"importance\":2}", &["importance"]),
        (b"{\"text\":\"x\",\"namespace\":\"*\"}", &["namespace"]),
        (b"{\"text\":\"x\",\"version\":7}", &["version"]),
        (long.as_bytes(), &["key", "512"]),
        (text.as_bytes(), &["text", "1048576"]),
        (tags.as_bytes(), &["tags", "64"]),
        (deep.as_bytes(), &["metadata"]),
    ];
    for (line, says) in cases {
        refused(&sandbox, line, says);
    }
}

#[test]
fn a_first_import_that_is_bad_leaves_no_namespace() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.jsonl", "{\"text\":\"x\"}\n{\"text\":\"y\",\"vector\":[0]}\n");
    sandbox.run(&["import", "bad.jsonl"]).error();
    assert_eq!(sandbox.document(&["namespace", "list"])["namespaces"], serde_json::json!([]));
}

#[test]
fn skip_bad_reports_each_and_keeps_the_rest() {
    let sandbox = Sandbox::new();
    let lines = "{\"key\":\"a\",\"text\":\"a\"}\nnot json\n{\"text\":\"\"}\n{\"key\":\"b\",\"text\":\"b\",\"supersedes\":\"nobody\"}\n{\"key\":\"c\",\"text\":\"c\"}\n";
    sandbox.write("bad.jsonl", lines);
    let answer = sandbox.run(&["import", "bad.jsonl", "--skip-bad"]);
    let document: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((&document["stored"], &document["bad"], &document["read"]), (&2.into(), &3.into(), &5.into()));
    let told: Vec<&str> = answer.err.lines().collect();
    assert_eq!(told.len(), 4, "{told:?}");
    // Nothing is written before the run is told, and what can't be read is told at once.
    assert!(told[0].contains("line 2: line"), "{told:?}");
    let run = format!("\"run\":{}", document["run"]);
    assert_eq!(told.iter().filter(|line| line.contains(&run)).count(), 1, "{told:?}");
}

#[test]
fn a_later_bad_batch_tells_the_run_that_can_be_taken_back() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.jsonl", "{\"key\":\"a\",\"text\":\"a\"}\n{\"text\":\"\"}\n");
    let answer = sandbox.run(&["import", "bad.jsonl", "--batch", "1"]);
    answer.error();
    let lines: Vec<Value> = answer.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "the run, when it began, and the error: {lines:?}");
    let run = lines[1]["error"]["run"].as_str().unwrap();
    assert_eq!(lines[0]["started"]["run"], run);
    let hint = lines[1]["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("undo") && !hint.contains("no memory was written"), "{hint}");
    assert_eq!(sandbox.document(&["undo", run])["removed"], 1);
}

#[test]
fn numpy_files_are_checked_before_anything_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("two.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    let float = |count: usize| vec![0_u8; count * 4];
    let head = |descr: &str, fortran: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
    };
    sandbox.npy_of("double.npy", &head("<f8", "False", "(2, 2)"), float(8));
    sandbox.npy_of("int.npy", &head("<i4", "False", "(2, 2)"), float(4));
    sandbox.npy_of("big.npy", &head(">f4", "False", "(2, 2)"), float(4));
    sandbox.npy_of("fortran.npy", &head("<f4", "True", "(2, 2)"), float(4));
    sandbox.npy_of("flat.npy", &head("<f4", "False", "(4,)"), float(4));
    sandbox.npy_of("huge.npy", &head("<f4", "False", "(18446744073709551615, 4096)"), float(4));
    sandbox.npy_of("wide.npy", &head("<f4", "False", "(2, 4097)"), float(4));
    sandbox.npy_of("cut.npy", &head("<f4", "False", "(2, 2)"), float(3));
    sandbox.npy("few.npy", &[&[1.0, 0.0]]);
    sandbox.npy("many.npy", &[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]);
    sandbox.write("text.npy", "not an array");
    let files = ["double", "int", "big", "fortran", "flat", "huge", "wide", "cut", "few", "many", "text"];
    for file in files {
        let file = format!("{file}.npy");
        let answer = sandbox.run(&["import", "two.jsonl", "--vectors", &file]);
        let (kind, message) = answer.error();
        assert_eq!((answer.code, kind.as_str()), (1, "Invalid"), "{file}: {message}");
        assert!(message.contains("vectors"), "{file}: {message}");
        assert!(!sandbox.path("m.oub").exists(), "{file}: nothing is made");
    }
    sandbox.npy("zero.npy", &[&[1.0, 0.0], &[0.0, 0.0]]);
    sandbox.npy("nan.npy", &[&[1.0, 0.0], &[f32::NAN, 0.0]]);
    for file in ["zero.npy", "nan.npy"] {
        let (_, message) = sandbox.run(&["import", "two.jsonl", "--vectors", file]).error();
        assert!(message.starts_with("line 2: vector"), "{file}: {message}");
    }
    assert_eq!(sandbox.document(&["list"])["items"], serde_json::json!([]));
}

#[test]
fn bad_flags_are_typed_errors() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.npy("q.npy", &[&[1.0, 0.0]]);
    sandbox.npy("wide.npy", &[&[1.0, 0.0, 0.0]]);
    sandbox.npy("zero.npy", &[&[0.0, 0.0]]);
    let deep = format!("{}{{}}{}", "{\"$not\":".repeat(17), "}".repeat(17));
    let wide = format!("{{\"$or\":[{}]}}", vec!["{\"key\":\"a\"}"; 257].join(","));
    let ids = format!("{{\"key\":{{\"$in\":[{}]}}}}", vec!["\"a\""; 10_001].join(","));
    // What a file says that an option names is no slip of usage.
    let others: &[(&[&str], &str)] = &[
        (&["search", "--vector-file", "wide.npy"], "vector"),
        (&["search", "--vector-file", "zero.npy"], "vector"),
    ];
    let of_options: &[(&[&str], &str)] = &[
        (&["search", "--vector-file", "q.npy", "-k", "0"], "k:"),
        (&["search", "--vector-file", "q.npy", "-k", "1000000000"], "k:"),
        (&["search", "--vector-file", "q.npy", "--filter", &deep], "filter"),
        (&["search", "--vector-file", "q.npy", "--filter", &wide], "filter"),
        (&["search", "--vector-file", "q.npy", "--filter", &ids], "filter"),
        (&["search", "--vector-file", "q.npy", "--filter", "{\"key\":"], "filter"),
        (&["search", "--vector-file", "q.npy", "--filter", "{\"key\":{\"$near\":1}}"], "filter"),
        (&["add", "x", "--created-at", "yesterday"], "created_at"),
        (&["add", "x", "--ttl", "-1d"], "ttl"),
        (&["add", "x", "--ttl", "P-1D"], "ttl"),
        (&["add", "x", "--kind", "poem"], "kind"),
        (&["add", "x", "--importance", "nan"], "importance"),
        (&["update", "a", "--confidence", "inf"], "confidence"),
        (&["add", "x", "--importance", "-1"], "importance"),
        (&["add", "x", "--confidence", "inf"], "confidence"),
        (&["add", "x", "--field", "colour"], "--field"),
        (&["add", "x", "--field", "colour=1"], "colour"),
        (&["add", ""], "text"),
        (&["add", " "], "text"),
        (&["undo", "not-a-run"], "run"),
        (&["update", "a", "--field", "key=\"z\""], "key"),
        (&["add", "x", "--metadata", "[1]"], "metadata"),
        (&["add", "x", "--metadata", "{\"a\":1,\"a\":2}"], "stands twice"),
        (&["add", "x", "--metadata", "{}", "--field", "metadata={}"], "twice"),
        (&["add", "x", "--vector", "[0,0]"], "vector"),
        (&["--namespace", "*", "add", "x"], "namespace"),
        (&["--wait", "a bit", "add", "x"], "--wait"),
        (&["list", "--limit", "0"], "limit"),
        (&["search", "x", "--limit", "99999"], "k:"),
        (&["update", "a", "--text", " "], "text"),
        (&["list", "--cursor", "zz"], "cursor"),
        (&["list", "--state", "gone"], "state"),
        (&["import", "fill.jsonl", "--batch", "0"], "batch"),
        (&["supersede", "a", "--with", "b", "--mode", "eaten"], "--mode"),
    ];
    let before = sandbox.run(&["export", "-", "--all-states"]).out;
    let with = |code: i32| move |(arguments, field): &(_, _)| (code, *arguments, *field);
    for (code, arguments, field) in others.iter().map(with(1)).chain(of_options.iter().map(with(2))) {
        let answer = sandbox.run(arguments);
        let (kind, message) = answer.error();
        assert_eq!((answer.code, kind.as_str()), (code, "Invalid"), "{arguments:?}: {message}");
        assert!(message.contains(field), "{field} is not in {message}");
    }
    assert_eq!(before, sandbox.run(&["export", "-", "--all-states"]).out);
    let noon = sandbox.plain(&["--db", "m.oub", "--json", "--now", "noon", "add", "x"], b"");
    assert!(noon.error().1.starts_with("--now: must be RFC 3339"), "{noon:?}");
    for arguments in
        [&["search", "-k", "-1", "x"][..], &["frobnicate"], &["get"], &["add", "x", "--importance", "y"]]
    {
        let answer = sandbox.run(arguments);
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Usage"), "{arguments:?}");
    }
}

/// A type that reads itself had said its own name and the value, and the line then said both once more.
#[test]
fn an_error_names_field_bound_and_value_once() {
    let sandbox = Sandbox::new();
    let message = |arguments: &[&str]| sandbox.run(&[&["add", "x"], arguments].concat()).error().1;
    for (flag, value, field) in [
        ("--kind", "poem", "kind"),
        ("--ttl", "30", "ttl"),
        ("--created-at", "yesterday", "created_at"),
        ("--author-kind", "alien", "author_kind"),
        ("--supersede-mode", "eaten", "--supersede-mode"),
    ] {
        let told = message(&[flag, value]);
        assert!(told.starts_with(&format!("{field}: must be ")), "{told}");
        assert_eq!(told.matches("(got ").count(), 1, "{told}");
        assert!(told.contains(value), "{told}");
        assert!(!told.contains("MODEL-"), "{told}");
    }
    assert!(message(&["--kind", "poem"]).contains("profile, event, knowledge"));
    // A mode that no caller may give is not offered.
    assert!(message(&["--supersede-mode", "eaten"]).contains("replaced, correction or duplicate"));
    let early = message(&["--expires-at", "0000-12-31T23:59:59Z"]);
    assert!(early.contains("0001-01-01T00:00:00Z"), "it is RFC 3339, and too early: {early}");
}

#[test]
fn what_is_not_there_has_a_hint_of_its_own() {
    let sandbox = Sandbox::new();
    let hint = |arguments: &[&str]| {
        let answer = sandbox.run(arguments);
        answer.error();
        let error: Value = serde_json::from_str(&answer.err).unwrap();
        error["error"]["hint"].as_str().unwrap().to_owned()
    };
    assert!(hint(&["search", "x"]).contains("path"), "no database is there yet");
    sandbox.fill();
    assert!(hint(&["get", "nobody"]).contains("key"));
    assert!(hint(&["undo", "01a2053d-3ecb-7083-b446-3cc5c8babf3d"]).contains("run"));
    assert!(hint(&["namespace", "drop", "nowhere"]).contains("namespace list"));
}

#[test]
fn bad_flags_of_the_index_are_typed_errors() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.npy("q.npy", &[&[1.0, 0.0]]);
    sandbox.write("none.jsonl", "");
    sandbox.write("ef.jsonl", "{\"ef\":5000}\n");
    sandbox.write("recall.jsonl", "{\"recall\":2}\n");
    sandbox.write("both.jsonl", "{\"ef\":10,\"exact\":true}\n");
    let cases: &[(&[&str], &str)] = &[
        (&["search", "--vector-file", "q.npy", "--ef", "0"], "ef: must be 1 to 4096"),
        (&["search", "--vector-file", "q.npy", "--ef", "5000"], "ef: must be 1 to 4096"),
        (&["search", "--vector-file", "q.npy", "--recall", "0"], "recall: must be above 0 and below 1"),
        (&["search", "--vector-file", "q.npy", "--recall", "1.5"], "recall: must be above 0 and below 1"),
        (&["search", "--vector-file", "q.npy", "--recall", "-0.5"], "recall"),
        (&["search", "--vector-file", "q.npy", "--recall", "nan"], "recall"),
        (&["search", "--queries", "none.jsonl", "--ef", "0"], "ef"),
        (&["eval", "--queries", "none.jsonl", "--vectors", "q.npy", "--recall", "1"], "recall"),
        (&["search", "--queries", "ef.jsonl", "--vectors", "q.npy"], "line 1: ef"),
        (&["search", "--queries", "recall.jsonl", "--vectors", "q.npy"], "line 1: recall"),
        (&["eval", "--queries", "both.jsonl", "--vectors", "q.npy"], "line 1: line: must have one of ef"),
        (&["maintain", "--threads", "0"], "threads: must be 1 to 1024"),
        (&["maintain", "--threads", "18446744073709551615"], "threads"),
        (&["maintain", "collapse", "--batch-size", "0"], "--batch-size: must be 1 to 1000000"),
        (&["maintain", "--budget", "abc"], "--budget"),
        (&["maintain", "--budget", "-1s"], "--budget"),
        (&["maintain", "--namespace", "*"], "namespace"),
        (&["reindex", "--namespace", "*"], "namespace"),
    ];
    for (arguments, field) in cases {
        let answer = sandbox.run(arguments);
        let (kind, message) = answer.error();
        // What a line of a file says is no slip of usage.
        let code = if message.starts_with("line ") { 1 } else { 2 };
        assert_eq!((answer.code, kind.as_str()), (code, "Invalid"), "{arguments:?}: {message}");
        assert!(message.contains(field), "{field} is not in {message}");
    }
    let usage: &[&[&str]] = &[
        &["search", "--vector-file", "q.npy", "--ef", "10", "--exact"],
        &["search", "--vector-file", "q.npy", "--ef", "10", "--recall", "0.9"],
        &["search", "--vector-file", "q.npy", "--ef", "-1"],
        &["eval", "--queries", "none.jsonl", "--vectors", "q.npy", "--recall", "0.9", "--exact"],
        &["maintain", "nosuch"],
        &["maintain", "index", "sweep"],
        &["maintain", "--max-rows", "-1"],
    ];
    for arguments in usage {
        let answer = sandbox.run(arguments);
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Usage"), "{arguments:?}");
    }
}

#[test]
fn what_is_no_database_is_left_alone() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("text", "hello, this is a text file and no database at all\n".repeat(400));
    sandbox.write("empty", "");
    sandbox.fill();
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    for (name, length) in [("cut4", 4), ("cut4k", 4_096), ("cuthalf", whole.len() / 2)] {
        sandbox.write(name, &whole[..length]);
    }
    for name in ["folder", "text", "empty", "cut4", "cut4k", "cuthalf"] {
        let before = std::fs::read(sandbox.path(name)).ok();
        for command in [
            &["get", "a"][..],
            &["add", "x"],
            &["stats"],
            &["import", "fill.jsonl"],
            &["check"],
            &["maintain"],
            &["reindex"],
        ] {
            let answer = sandbox.plain(&[&["--db", name, "--json"], command].concat(), b"");
            let (kind, message) = answer.error();
            assert_eq!(answer.code, 1, "{name} {command:?}: {message}");
            let kinds = ["NotADatabase", "Corrupted"];
            assert!(kinds.contains(&kind.as_str()), "{name} {command:?}: {kind} {message}");
        }
        assert_eq!(before, std::fs::read(sandbox.path(name)).ok(), "{name} is not touched");
    }
    let answer = sandbox.plain(&["--db", "nowhere.oub", "--json", "get", "a"], b"");
    assert_eq!((answer.code, answer.error().0.as_str()), (1, "NotFound"));
    assert!(!sandbox.path("nowhere.oub").exists(), "reading makes no file");
    let answer = sandbox.plain(&["--db", "no/such/folder.oub", "--json", "add", "x"], b"");
    assert_eq!((answer.code, answer.error().0.as_str()), (1, "Io"));
}

#[test]
fn a_damaged_file_gives_typed_errors_and_findings_never_a_panic() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let whole = std::fs::read(sandbox.path("m.oub")).unwrap();
    let mut told = 0;
    for step in 1..24 {
        let mut damaged = whole.clone();
        // From behind the header page on, one byte in some 7,000 is turned.
        damaged.iter_mut().skip(4_096 + step * 331).step_by(7_001).for_each(|byte| *byte ^= 0x55);
        sandbox.write("damaged.oub", &damaged);
        for command in [&["check"][..], &["get", "a"], &["export", "-"], &["stats"]] {
            let answer = sandbox.plain(&[&["--db", "damaged.oub", "--json"], command].concat(), b"");
            assert!([0, 1, 3].contains(&answer.code), "{command:?}: {answer:?}");
            told += u32::from(answer.code != 0);
        }
    }
    assert!(told > 0, "no damage was ever noticed");
}

/// Whoever keeps copies from a script must learn that one is not whole before it replaces the last good one.
#[test]
fn a_copy_that_misses_something_says_so_and_ends_with_3() {
    let sandbox = Sandbox::new();
    for (key, text) in [("tea", "Ann prefers tea"), ("walk", "Bob walks")] {
        sandbox.document(&["add", text, "--key", key]);
    }
    let id = sandbox.document(&["get", "tea"])["id"].as_str().unwrap().to_owned();
    let path = sandbox.path("m.oub");
    let rows = tables(&path)["memory"].clone();
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (key, value) = rows.iter().find(|(key, _)| hex(key).ends_with(&id.replace('-', ""))).unwrap();
    overwrite(&path, "memory", key, &value[..value.len() / 2]);

    let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");
    let told = plain(&["backup", "copy.oub"]);
    assert!(told.code == 3 && told.out.starts_with("Copied to copy.oub"), "{told:?}");
    assert!(told.err.contains(&format!("damaged, left out: default {id} tea: ")), "{told:?}");
    for arguments in [&["backup", "again.oub"][..], &["export", "e.jsonl"]] {
        let told = plain(&[arguments, &["--json"]].concat());
        let document: Value = serde_json::from_str(&told.out).unwrap();
        assert!(told.code == 3 && told.err.is_empty(), "{told:?}");
        let damaged = document["damaged"].as_array().unwrap();
        assert!(damaged.iter().any(|row| row["id"] == id.as_str()), "{document}");
    }
    let told = plain(&["export", "-"]);
    assert!(told.code == 3 && told.out.contains("Bob walks") && told.err.contains(&id), "{told:?}");
    let told = plain(&["export", "-", "--json"]);
    let aside: Value = serde_json::from_str(&told.err).unwrap();
    assert!(told.code == 3 && aside["damaged"][0]["id"] == id.as_str(), "{told:?}");

    let told = plain(&["compact"]);
    assert!(told.code == 3 && told.err.contains("damaged, left out: "), "{told:?}");
    assert_eq!(plain(&["compact"]).code, 0, "what is left is whole");
    assert_eq!(plain(&["backup", "whole.oub"]).code, 0);
}

/// A key has no checksum: what stands behind a damaged key of an index is still read from its own row.
#[test]
fn an_export_has_what_no_index_leads_to() {
    let sandbox = Sandbox::new();
    for (key, agent) in [("tea", "ann"), ("walk", "bob"), ("home", "ann")] {
        sandbox.document(&["add", &format!("{agent} says {key}"), "--key", key, "--agent", agent]);
    }
    sandbox.document(&["add", "shared", "--key", "shared"]);
    sandbox.document(&["supersede", "shared", "--with-text", "shared anew"]);
    let whole = ["--all-states", ""].map(|option| {
        let option = [option].into_iter().filter(|option| !option.is_empty());
        let all: Vec<&str> = ["export", "-"].into_iter().chain(option).collect();
        let lines = sandbox.run(&all).out;
        let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        (all, lines)
    });
    let path = sandbox.path("m.oub");
    change(&path, "by_time", |rows| rows.retain(|_, _| false).unwrap());
    for (all, lines) in whole {
        let answer = sandbox.run(&all);
        let mut found: Vec<&str> = answer.out.lines().collect();
        found.sort_unstable();
        assert_eq!((answer.code, found), (3, lines.iter().map(String::as_str).collect()), "{all:?}");
        assert!(answer.err.contains("\"index_missing\""), "{answer:?}");
    }
}

/// The first row of a table under a key of which one byte is damaged.
fn damage_key(path: &Path, table: &str, byte: usize, by: u8) {
    let (key, value) = tables(path)[table].first().unwrap().clone();
    let mut damaged = key.clone();
    damaged[byte] ^= by;
    change(path, table, |rows| {
        rows.remove(&*key).unwrap();
        rows.insert(&*damaged, &*value).unwrap();
    });
}

/// What a damaged key hides can't be named, but an export knows that it misses something: it never takes the place of one that
/// may be whole, and what it has can be imported.
#[test]
fn an_export_that_misses_something_takes_no_place() {
    let sandbox = Sandbox::new();
    for key in ["tea", "walk"] {
        let vector = if key == "tea" { "[1,0]" } else { "[0,1]" };
        let line = json!({"text": format!("Ann says {key}"), "key": key, "tags": ["said"], "vector": vector});
        sandbox.write("line.jsonl", line.to_string().replace("\"[", "[").replace("]\"", "]"));
        sandbox.document(&["import", "line.jsonl"]);
    }
    for old in ["old.jsonl", "old.npy"] {
        sandbox.write(old, b"of yesterday");
    }
    damage_key(&sandbox.path("m.oub"), "holder", 10, 1);
    let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");

    let told = plain(&["export", "old.jsonl"]);
    assert!(told.code == 1 && told.err.contains("take the place of a file"), "{told:?}");
    let told = plain(&["export", "old.jsonl", "--json"]);
    assert!(told.code == 1 && told.err.contains("\"kind\":\"Conflict\""), "{told:?}");
    for file in ["other.jsonl", "-"] {
        let told = plain(&["export", file, "--vectors", "old.npy"]);
        assert!(told.code == 1 && told.err.contains("take the place of a file"), "{told:?}");
    }
    for old in ["old.jsonl", "old.npy"] {
        assert_eq!(std::fs::read(sandbox.path(old)).unwrap(), b"of yesterday");
    }
    let told = plain(&["export", "new.jsonl"]);
    assert!(told.code == 3 && told.err.contains("`check` has "), "{told:?}");
    let told = plain(&["export", "newer.jsonl", "--json"]);
    let document: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((told.code, &document["memories"]), (3, &json!(2)), "{document}");
    assert!(!document["check"]["findings"].as_array().unwrap().is_empty(), "{document}");

    let back = sandbox.plain(&["--db", "back.oub", "--json", "import", "new.jsonl"], b"");
    assert_eq!(back.code, 0, "{back:?}");
    let back = sandbox.plain(&["--db", "back.oub", "export", "-"], b"").out;
    assert_eq!(back.lines().filter(|line| line.contains("\"tags\":[\"said\"]")).count(), 2, "{back}");
    assert_key_comes_back(&sandbox);
    assert_eq!(plain(&["export", "old.jsonl"]).code, 0);
}

/// A copy gives a row its key back, and nothing is lost.
fn assert_key_comes_back(sandbox: &Sandbox) {
    let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");
    let told = plain(&["compact"]);
    assert!(told.code == 3 && told.err.contains("has its key again"), "{told:?}");
    assert!(!told.err.contains("left out"), "{told:?}");
    assert_eq!(plain(&["check", "--deep"]).code, 0);
    assert_eq!(plain(&["get", "tea"]).code, 0);
}

/// A writer whose row is lost, with its own value, comes back by the rows that lead to it.
#[test]
fn a_copy_gives_a_memory_its_lost_writer_again() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--key", "tea", "--tag", "said", "--category", "drinks"]);
    let path = sandbox.path("m.oub");
    let (key, value) = tables(&path)["holder"].first().unwrap().clone();
    overwrite(&path, "holder", &key, &value[..value.len() / 2]);
    assert_eq!(sandbox.plain(&["--db", "m.oub", "compact"], b"").code, 3);
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
    let found = sandbox.document(&["get", "tea"]);
    assert_eq!((&found["text"], &found["tags"]), (&json!("Ann prefers tea"), &json!(["said"])), "{found}");
    assert_eq!(found["categories"], json!(["drinks"]), "{found}");
}

/// A namespace under a damaged name is neither empty nor new, and the others are as they were.
#[test]
fn a_namespace_with_a_damaged_name_is_not_taken_for_an_empty_one() {
    for by in [1, 0x80] {
        let sandbox = Sandbox::new();
        for space in ["default", "other"] {
            sandbox.document(&["add", "Ann prefers tea", "--key", "tea", "--namespace", space]);
        }
        damage_key(&sandbox.path("m.oub"), "namespace", 0, by);
        let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");
        for command in [
            &["list"][..],
            &["get", "tea"],
            &["search", "tea"],
            &["export", "e.jsonl"],
            &["add", "Bob walks", "--key", "walk"],
        ] {
            let told = plain(command);
            assert!(told.code == 1 && told.err.contains("corrupted value in table namespace"), "{told:?}");
            let told = plain(&[command, &["--namespace", "other"]].concat());
            assert!(told.code == if command[0] == "export" { 3 } else { 0 }, "{command:?}: {told:?}");
        }
        assert_eq!(plain(&["backup", "copy.oub"]).code, 3);
        assert_key_comes_back(&sandbox);
    }
}

/// A key that stands out of order leads look-ups astray, so nothing is written beside it; a copy puts it in its place.
#[test]
fn reindex_changes_nothing_where_a_key_is_out_of_order() {
    let sandbox = Sandbox::new();
    for key in ["tea", "walk"] {
        sandbox.document(&["add", &format!("Ann says {key}"), "--key", key]);
    }
    let path = sandbox.path("m.oub");
    let keys = tables(&path)["holder_key"].clone();
    let (key, _) = keys.iter().find(|(key, _)| key[4..].starts_with(b"tea")).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - key.len()).filter(|at| bytes[*at..].starts_with(key)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at + 4] = b'~');
    std::fs::write(&path, &bytes).unwrap();
    let plain = |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub"], arguments].concat(), b"");

    let told = plain(&["reindex"]);
    assert!(told.code == 1 && told.err.contains("out of order: `compact`"), "{told:?}");
    assert_eq!(plain(&["get", "walk"]).code, 0);
    assert_eq!(plain(&["compact"]).code, 3);
    for command in [&["reindex"][..], &["check", "--deep"], &["get", "tea"], &["get", "walk"]] {
        let told = plain(command);
        assert_eq!(told.code, 0, "{command:?}: {told:?}");
    }
}

/// A row under a damaged key of its own is found by no look-up; the export names it and goes on.
#[test]
fn an_export_goes_past_a_row_under_a_damaged_key() {
    let sandbox = Sandbox::new();
    for key in ["tea", "walk"] {
        sandbox.document(&["add", &format!("Ann says {key}"), "--key", key]);
    }
    // The last byte of the id, behind the number of the namespace.
    damage_key(&sandbox.path("m.oub"), "vitals", 19, 1);
    let told = sandbox.plain(&["--db", "m.oub", "export", "-"], b"");
    assert!(told.code == 3 && told.out.lines().count() == 1, "{told:?}");
    assert!(told.err.contains("damaged, left out: default "), "{told:?}");
}

#[test]
fn after_a_kill_the_file_can_be_read() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let mut child = sandbox.spawn(&["--db", "m.oub", "--json", "add", "-"]);
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{\"key\":\"k\",\"text\":\"acknowledged\"}\n").unwrap();
    let mut answer = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut answer).unwrap();
    assert!(answer.contains("stored"), "{answer}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sandbox.document(&["get", "k"])["text"], "acknowledged");
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn a_policy_with_an_unknown_zone_is_not_stored() {
    let sandbox = Sandbox::new();
    sandbox.write("p.toml", "snapshot.zone = \"Mars/Base\"");
    let error = sandbox.run(&["policy", "set", "p.toml"]).error();
    assert!(error.1.starts_with("policy snapshot.zone: must be an IANA zone"), "{error:?}");
    sandbox.document(&["add", "a snapshot", "--kind", "snapshot"]);
}

/// A slip in the name of a file to write must not take a database, nor the lines that are read.
#[test]
fn no_output_takes_the_place_of_a_database_or_of_another_file_of_the_call() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    sandbox.write("in.jsonl", "{\"text\":\"one more line\"}\n");
    sandbox.write("p.toml", "prune.enabled = true\n");
    sandbox.write("i.txt", "only English\n");
    assert_eq!(sandbox.plain(&["--db", "other.oub", "add", "another store"], b"").code, 0);
    let mut names = vec!["m.oub", "other.oub"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(sandbox.path("m.oub"), sandbox.path("link.oub")).unwrap();
        names.push("link.oub");
    }
    let before = ["m.oub", "other.oub"].map(|name| std::fs::read(sandbox.path(name)).unwrap());
    for name in names {
        for arguments in [
            &["export", name][..],
            &["export", name, "--all-states", "--all-namespaces"],
            &["export", "out.jsonl", "--vectors", name],
            &["access", "export", name],
            &["import", "in.jsonl", "--decisions", name],
            &["maintain", "collapse", "--report", name],
        ] {
            let (kind, message) = sandbox.run(arguments).error();
            assert_eq!(kind, "Io", "{arguments:?}: {message}");
            assert!(message.contains("a database is there"), "{arguments:?}: {message}");
        }
    }
    let after = ["m.oub", "other.oub"].map(|name| std::fs::read(sandbox.path(name)).unwrap());
    assert!(before == after, "nothing was written");
    for (arguments, option) in [
        (&["import", "in.jsonl", "--decisions", "in.jsonl"][..], "--decisions"),
        (&["import", "in.jsonl", "--decisions", "./in.jsonl"], "--decisions"),
        (&["export", "out.jsonl", "--vectors", "out.jsonl"], "--vectors"),
        (&["export", "out.jsonl", "--vectors", "./out.jsonl"], "--vectors"),
        (&["--policy", "p.toml", "maintain", "--report", "p.toml"], "--report"),
        (&["--policy", "p.toml", "export", "./p.toml"], "file"),
        (&["--policy", "p.toml", "access", "export", "p.toml"], "file"),
        (&["--policy", "p.toml", "backup", "p.toml"], "file"),
        (&["--instructions", "i.txt", "export", "i.txt"], "file"),
        (&["--policy", "p.toml", "import", "in.jsonl", "--decisions", "p.toml"], "--decisions"),
        (&["--policy", "p.toml", "export", "e.jsonl", "--vectors", "p.toml"], "--vectors"),
    ] {
        let (kind, message) = sandbox.run(arguments).error();
        assert_eq!((kind.as_str(), message.contains(option)), ("Invalid", true), "{arguments:?}: {message}");
    }
    assert_eq!(std::fs::read(sandbox.path("in.jsonl")).unwrap(), b"{\"text\":\"one more line\"}\n");
    assert_eq!(std::fs::read(sandbox.path("p.toml")).unwrap(), b"prune.enabled = true\n");
    assert_eq!(std::fs::read(sandbox.path("i.txt")).unwrap(), b"only English\n");
    assert!(!sandbox.path("out.jsonl").exists());
    // A database that is not there yet.
    for name in ["new.oub", "./new.oub"] {
        let told = sandbox.plain(&["--db", "new.oub", "import", "in.jsonl", "--decisions", name], b"");
        assert_eq!((told.code, told.err.contains("--decisions")), (1, true), "{}", told.err);
        assert!(!sandbox.path("new.oub").exists());
    }
}

/// The first batches of an import that ends early are written, and so is what became of them.
#[test]
fn the_decisions_of_an_import_that_ends_early_are_told() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("in.jsonl"), "{\"text\":\"one\"}\n{\"text\":7}\n").unwrap();
    let told = || std::fs::read_to_string(sandbox.path("d.jsonl")).ok().map(|text| text.lines().count());
    let import = ["import", "in.jsonl", "--decisions", "d.jsonl"];
    sandbox.run(&import).error();
    assert_eq!(told(), None, "nothing was written");
    sandbox.run(&[&import[..], &["--batch", "1"]].concat()).error();
    assert_eq!(told(), Some(1));
}

#[test]
fn an_update_that_changes_nothing_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.run(&["add", "tea", "--key", "k"]).document();
    let (kind, message) = sandbox.run(&["update", "k"]).error();
    assert_eq!((kind.as_str(), message.contains("must change something")), ("Usage", true), "{message}");
    assert_eq!(sandbox.document(&["get", "k"])["version"], 1);
}

/// A write is done, whatever can be read of the memory that it went into.
#[test]
fn a_write_that_can_not_be_read_back_is_told_as_done() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann prefers tea", "--key", "tea"]);
    let path = sandbox.path("m.oub");
    let (key, value) = tables(&path)["holder"][0].clone();
    overwrite(&path, "holder", &key, &value[..value.len() / 2]);
    let answer = sandbox.document(&["add", "Ann prefers tea", "--key", "drink"]);
    assert_eq!(answer["decision"], "reinforced", "{answer}");
    assert!(answer["unread"].as_str().unwrap().contains("holder"), "{answer}");
    let told = sandbox.plain(&["--db", "m.oub", "add", "Ann prefers tea", "--key", "cup"], b"");
    assert!(told.code == 0 && told.out.contains("it can't be read back"), "{told:?}");
}

/// The story of a damaged memory tells what of it is damaged, and ends as a check that found something.
#[test]
fn an_explanation_says_what_is_damaged() {
    for table in ["holder", "memory"] {
        let sandbox = Sandbox::new();
        let id = sandbox.document(&["add", "Ann prefers tea", "--key", "tea"])["id"].clone();
        let path = sandbox.path("m.oub");
        let (key, value) = tables(&path)[table][0].clone();
        overwrite(&path, table, &key, &value[..value.len() / 2]);
        let answer = sandbox.run(&["explain", "tea"]);
        let document: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!((answer.code, &document["id"], &document["state"]), (3, &id, &json!("live")));
        assert_eq!(document["events"][0]["op"], "insert", "{table}");
        assert!(document["damaged"][0].as_str().unwrap().contains(table), "{document}");
        let told = sandbox.plain(&["--db", "m.oub", "explain", "tea"], b"");
        assert!(told.code == 3 && told.out.contains("Stored") && told.err.contains(table), "{told:?}");
    }
}

/// What took the place of a memory stays beside it, as far as it can be read: the restoration was done.
#[test]
fn a_memory_is_restored_from_behind_a_damaged_one() {
    let sandbox = Sandbox::new();
    let old =
        sandbox.document(&["add", "Ann prefers tea", "--key", "tea"])["id"].as_str().unwrap().to_owned();
    let new =
        sandbox.document(&["add", "Ann prefers milk", "--key", "tea"])["id"].as_str().unwrap().to_owned();
    let path = sandbox.path("m.oub");
    let rows = tables(&path)["memory"].clone();
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (key, value) = rows.iter().find(|(key, _)| hex(key).ends_with(&new.replace('-', ""))).unwrap();
    overwrite(&path, "memory", key, &value[..value.len() / 2]);
    let told = sandbox.plain(&["--db", "m.oub", "restore", &old], b"");
    assert!(told.code == 0 && told.out.contains("is live again"), "{told:?}");
}

/// A model that is away stops no other pass. The report is told, and the exit code says that it is not whole.
#[cfg(feature = "openai")]
#[test]
fn maintenance_tells_what_was_done_beside_a_pass_that_failed() {
    let sandbox = Sandbox::new();
    let ask = |words: &[&str]| {
        let all = [&["--db", "m.oub", "--json", "--embedder", "openai:m:3"], words].concat();
        sandbox.command(&all).env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").output().unwrap()
    };
    assert!(ask(&["add", "Ann prefers tea"]).status.success());
    let done = ask(&["maintain"]);
    assert_eq!(done.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["failed"][0]["pass"], "embed", "{report}");
    assert!(report["passes"].as_array().unwrap().iter().any(|pass| pass["pass"] == "limbo"), "{report}");
    let told: Value = serde_json::from_slice(&done.stderr).unwrap();
    assert!(told["error"]["message"].as_str().unwrap().contains("embed failed: "), "{told}");
    assert_eq!(
        (&told["error"]["kind"], &report["failed"][0]["kind"]),
        (&json!("Embedding"), &json!("Embedding"))
    );
    assert_eq!(told["error"]["hint"], report["failed"][0]["hint"]);
    let alone = ask(&["maintain", "embed"]);
    let told: Value = serde_json::from_slice(&alone.stderr).unwrap();
    assert_eq!((alone.status.code(), &told["error"]["kind"]), (Some(1), &json!("Embedding")));
}
