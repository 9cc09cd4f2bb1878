//! What a person reads: stories, distances of time, what to try; in a pipe, and at terminals of several widths.

use serde_json::json;

use super::sandbox::Sandbox;

const NOW: &str = "2026-03-10T12:00:00Z";

/// What a person reads, standard error included.
fn read(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let answer = sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"");
    assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
    answer.out + &answer.err
}

#[test]
fn a_call_without_a_command_shows_what_is_there() {
    let sandbox = Sandbox::new();
    let empty = read(&sandbox, &[]);
    assert!(empty.contains("There is no memory yet at") && empty.contains("oubliette demo"), "{empty}");
    sandbox.write(
        "in.jsonl",
        "{\"text\":\"Ann prefers tea\"}\n{\"text\":\"Bob walks\",\"namespace\":\"team\"}\n",
    );
    read(&sandbox, &["import", "in.jsonl"]);
    let full = read(&sandbox, &[]);
    assert!(full.starts_with("2 memories in ") && full.contains("default 1, team 1"), "{full}");
    assert!(
        full.contains("import 2026-03-10") && full.contains("`undo ") && full.contains("--help"),
        "{full}"
    );
    let document = sandbox.document(&[]);
    assert_eq!((&document["by_namespace"]["team"], &document["memories"]["live"]), (&json!(1), &json!(2)));
}

#[test]
fn get_and_explain_tell_a_story() {
    let sandbox = Sandbox::new();
    let add = [
        "add",
        "Ann lives in Ghent",
        "--key",
        "home",
        "--tag",
        "people",
        "--metadata",
        "{\"session\":\"s1\"}",
    ];
    read(&sandbox, &add);
    let later = |arguments: &[&str]| {
        let answer =
            sandbox.plain(&[&["--db", "m.oub", "--now", "2026-03-13T12:00:00Z"], arguments].concat(), b"");
        assert_eq!(answer.code, 0, "{arguments:?}: {answer:?}");
        answer.out
    };
    let told = later(&["get", "home"]);
    for part in [
        "Ann lives in Ghent\n",
        "home: knowledge, semantic, in default",
        "(3 days ago)",
        "Tags: people",
        "Metadata: session s1",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let old = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    later(&["supersede", "home", "--with-text", "Ann lives in Bruges"]);
    let told = later(&["get", &old]);
    assert!(told.contains("took its place 2026-03-13") && told.contains("(just now)"), "{told}");
    let told = later(&["explain", &old]);
    for part in [
        "Ann lives in Ghent\n",
        " is superseded.",
        "Stored 2026-03-10",
        "“Ann lives in Bruges” (home) took its place 2026-03-13",
        "replaced by caller",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(['{', '│']), "{told}");
    later(&["forget", &old, "--yes"]);
    let told = later(&["explain", &old]);
    assert!(told.contains(" is gone.") && told.contains("Removed 2026-03-13"), "{told}");
    assert!(later(&["get", &old]).contains("is gone from default."));
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea", "--namespace", "team"]);
    for arguments in [&["search", "tea", "--namespace", "tem"][..], &["list", "--namespace", "tem"]] {
        let told = read(&sandbox, arguments);
        assert_eq!(told, "There is no namespace tem; the file has team\n", "{arguments:?}");
    }
    let far = read(&sandbox, &["search", "quarterly tax report", "--namespace", "team"]);
    assert!(far.contains("No memory fits well"), "{far}");
    assert!(!read(&sandbox, &["search", "Ann tea", "--namespace", "team"]).contains("No memory fits well"));
}

#[test]
fn maintenance_is_told_by_what_it_had_to_do() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "x", "--ttl", "1s"]);
    let later = ["--db", "m.oub", "--now", "2026-03-10T12:01:00Z", "maintain", "--dry-run"];
    let told = sandbox.plain(&later, b"").out;
    assert!(told.contains("expire") && told.contains("Nothing to do for fold, cap"), "{told}");
    assert!(!told.contains("scanned"), "{told}");
    assert!(sandbox.plain(&[&later[..], &["-v"]].concat(), b"").out.contains("scanned"));
    let index = |more: &[&str]| read(&sandbox, &[&["maintain", "index"], more].concat());
    assert_eq!(index(&["--dry-run"]), "index: the words of 1 text are still to be written.\n");
    assert_eq!(index(&[]), "index: wrote the words of 1 text.\n");
    assert_eq!(index(&[]), "Nothing to do for index.\n");
}

#[test]
fn lines_of_text_are_memories_and_a_slip_in_an_object_is_none() {
    let sandbox = Sandbox::new();
    let add = |more: &[&str], input: &[u8]| {
        sandbox.plain(&[&["--db", "m.oub", "--json", "add", "-"], more].concat(), input)
    };
    let answer = add(&[], b"Ann prefers tea\r\n{\"text\":\"Bob walks\",\"key\":\"bob\"}\n");
    assert_eq!((answer.code, answer.out.lines().count()), (0, 2), "{answer:?}");
    assert_eq!(sandbox.document(&["get", "bob"])["text"], "Bob walks");
    let page = sandbox.document(&["list"]);
    let texts: Vec<_> = page["items"].as_array().unwrap().iter().map(|item| item["text"].clone()).collect();
    assert!(texts.contains(&json!("Ann prefers tea")), "{texts:?}");
    assert_eq!(add(&[], b"{\"text\":\"cut").error().0, "Invalid");
    assert_eq!(add(&["--jsonl"], b"a text\n").error().0, "Invalid");
    assert_eq!(sandbox.run(&["add", "a text", "--jsonl"]).error().0, "Invalid");
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], 2);
}

#[test]
fn an_export_says_what_it_replaced() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea"]);
    assert!(!read(&sandbox, &["export", "out.jsonl"]).contains("in place of"));
    assert!(read(&sandbox, &["export", "out.jsonl"]).contains("in place of the file that was there"));
    assert_eq!(sandbox.document(&["export", "out.jsonl"])["replaced"], true);
}

/// What a command shows at a terminal of so many columns, if the system has `script`. What is typed comes from `input`.
#[cfg(target_os = "linux")]
fn at_terminal(sandbox: &Sandbox, columns: u16, command: &str, input: &str) -> Option<String> {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let program = env!("CARGO_BIN_EXE_oubliette");
    let line = format!("stty cols {columns} rows 50; exec '{program}' --db m.oub --now {NOW} {command}");
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(sandbox.path(""))
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let shown = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&shown.stdout).replace('\r', ""))
}

/// Escape sequences out, as a terminal would show what is left.
#[cfg(target_os = "linux")]
fn visible(line: &str) -> usize {
    let mut rest = line.chars();
    let mut count = 0;
    while let Some(letter) = rest.next() {
        match letter {
            '\u{1b}' => drop(rest.by_ref().find(char::is_ascii_alphabetic)),
            letter if letter.is_control() => {}
            _ => count += 1,
        }
    }
    count
}

#[cfg(target_os = "linux")]
#[test]
fn terminals_of_every_width_are_kept_to() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", &"a long story ".repeat(30), "--key", "long", "--tag", "t"]);
    read(&sandbox, &["add", "Ann prefers tea", "--key", "ann"]);
    for (columns, most) in [(0, 100), (40, 40), (80, 80), (200, 200)] {
        for command in ["list", "get long", "explain ann", "search story", "maintain --dry-run", ""] {
            let Some(shown) = at_terminal(&sandbox, columns, command, "") else {
                eprintln!("skipped: there is no `script` to make a terminal");
                return;
            };
            assert!(!shown.trim().is_empty(), "{command} at {columns}");
            // An id, a path and a command to try stand whole, or nobody could copy them.
            let is_whole =
                |line: &str| line.contains("oubliette") || line.contains("0000-7") || line.contains("-7");
            for line in shown.lines().filter(|line| !is_whole(line)) {
                assert!(visible(line) <= most, "{command} at {columns}: {line}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_is_asked_before_a_namespace_goes() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea", "--namespace", "team"]);
    let Some(kept) = at_terminal(&sandbox, 80, "namespace drop team", "n\n") else {
        eprintln!("skipped: there is no `script` to make a terminal");
        return;
    };
    assert!(kept.contains("Drop team with 1 live memory") && kept.contains("Nothing was dropped"), "{kept}");
    assert_eq!(sandbox.document(&["stats"])["by_namespace"]["team"], 1);
    let dropped = at_terminal(&sandbox, 80, "namespace drop team", "y\n").unwrap();
    assert!(dropped.contains("Dropped team with 1 memory"), "{dropped}");
    read(&sandbox, &["add", "Bob walks", "--namespace", "team"]);
    let refused = sandbox.plain(&["--db", "m.oub", "namespace", "drop", "team"], b"");
    assert_eq!((refused.code, refused.out.as_str()), (2, ""), "a pipe can't be asked: {refused:?}");
    assert!(refused.err.contains("say --yes"), "{refused:?}");
    assert_eq!(sandbox.document(&["stats"])["by_namespace"]["team"], 1, "nothing is dropped");
    assert!(read(&sandbox, &["namespace", "drop", "team", "--yes"]).starts_with("Dropped team"));
}

#[test]
fn a_database_for_vectors_of_others_says_so_and_a_refused_one_is_not_made() {
    let sandbox = Sandbox::new();
    let refused = sandbox.plain(&["--db", "a.oub", "init", "--dim", "384", "--embedder", "static-mini"], b"");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--dim: must be 256, the dimensions of static-mini"), "{refused:?}");
    assert!(!sandbox.path("a.oub").exists(), "a refused call leaves nothing behind");

    let made = read(&sandbox, &["init", "--dim", "384"]);
    assert!(made.contains("vectors of 384 dimensions that you bring") && made.contains("reembed"), "{made}");
    let added = read(&sandbox, &["add", "Ann prefers tea", "--key", "ann"]);
    assert!(added.contains("it has no vector and is found by its words"), "{added}");
    let shown = read(&sandbox, &["get", "ann", "--vector", "--payload"]);
    assert!(shown.contains("It has no vector") && shown.contains("It has no payload"), "{shown}");
}

#[test]
fn a_vector_and_a_payload_are_shown_to_a_person() {
    let sandbox = Sandbox::new();
    sandbox.write("p.json", "{\"steps\":[1,2]}");
    read(&sandbox, &["add", "Ann prefers tea", "--key", "ann", "--payload", "p.json"]);
    let shown = read(&sandbox, &["get", "ann", "--vector", "--payload"]);
    assert!(shown.contains("Payload: {\"steps\":[1,2]}"), "{shown}");
    assert!(shown.contains("Vector of 256 dimensions: "), "{shown}");
}

#[test]
fn tables_tell_instants_as_local_dates_with_their_distance() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent", "--key", "home"]);
    for command in [&["history", "home"][..], &["changes"]] {
        let shown = read(&sandbox, command);
        assert!(shown.contains("(just now)") && !shown.contains("T12:00:00"), "{shown}");
    }
    sandbox.write("in.jsonl", "{\"text\":\"Bob walks\"}\n");
    read(&sandbox, &["import", "in.jsonl"]);
    let runs = read(&sandbox, &["runs"]);
    assert!(runs.contains("2026-03-10") && !runs.contains("T12:00:00"), "{runs}");
    let id = runs.lines().filter_map(|line| line.split_whitespace().next());
    assert!(id.into_iter().any(|word| word.len() == 36), "an id stands whole: {runs}");
}

/// Whoever looks at the versions of a memory wants to read what each said. Ids are for -v.
#[test]
fn a_history_shows_what_each_version_said() {
    let sandbox = Sandbox::new();
    for town in ["Ghent", "Bruges"] {
        read(&sandbox, &["add", &format!("Ann lives in {town}"), "--key", "home"]);
    }
    let id = sandbox.document(&["get", "home"])["id"].as_str().unwrap().to_owned();
    let shown = read(&sandbox, &["history", "home"]);
    assert!(shown.contains("Ann lives in Ghent") && shown.contains("Ann lives in Bruges"), "{shown}");
    assert!(!shown.contains(&id), "{shown}");
    assert!(read(&sandbox, &["-v", "history", "home"]).contains(&id));
}

#[test]
fn habits_of_other_programs_lead_to_the_commands_that_are_meant() {
    let sandbox = Sandbox::new();
    for (typed, meant) in [("rm", "forget"), ("delete", "forget"), ("query", "search"), ("put", "add")] {
        let answer = sandbox.plain(&[typed, "x"], b"");
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.err.contains(&format!("'{meant}'")), "{typed}: {}", answer.err);
    }
    for (typed, meant) in [
        ("upsert", "`add TEXT --key KEY`"),
        ("ttl", "`touch KEY --ttl 30d`"),
        ("rollback", "'undo'"),
        ("dedupe", "'maintain'"),
        ("doctor", "'check'"),
        ("mv", "`rename`"),
        ("keys", "'list'"),
        ("mcp", "`serve --mcp`"),
        ("copy", "'backup'"),
    ] {
        let answer = sandbox.plain(&[typed, "x"], b"");
        assert!(answer.code == 2 && answer.err.contains(meant), "{typed}: {}", answer.err);
    }
    let answer = sandbox.plain(&["backup", "--output", "b.oub"], b"");
    assert!(answer.code == 2 && answer.err.contains("the file stands alone: backup FILE"), "{answer:?}");
    let ago = sandbox.plain(&["--db", "m.oub", "search", "x", "--as-of", "-30d"], b"");
    assert!(ago.code == 2 && ago.err.contains("must be RFC 3339"), "{ago:?}");
    let help = sandbox.plain(&["help", "--help"], b"");
    assert_eq!((help.code, help.out), (0, sandbox.plain(&["help"], b"").out));
    let answer = sandbox.plain(&["search", "where", "does", "Ann", "live"], b"");
    assert!(answer.err.contains("a text of several words stands in quotes"), "{}", answer.err);
    read(&sandbox, &["add", "Ann prefers tea"]);
    for count in [&["-k", "1"][..], &["-n", "1"], &["--limit", "1"]] {
        assert!(read(&sandbox, &[&["search", "tea"], count].concat()).contains("Ann prefers tea"));
    }
    for (command, list) in [(&["undo", "nosuch"][..], "`runs`"), (&["gc", "show", "99"], "`gc show`")] {
        let answer = sandbox.plain(&[&["--db", "m.oub"], command].concat(), b"");
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.err.contains(list), "{}", answer.err);
    }
}

#[test]
fn a_heading_of_the_help_has_only_its_own_options() {
    let sandbox = Sandbox::new();
    for (command, heading, own) in [
        ("search", "Options that read the past:", "--explain"),
        ("get", "Options that read the past:", "--vector"),
        ("list", "Options that read the past:", "--limit"),
        ("maintain", "Options of prune:", "--report"),
    ] {
        let help = sandbox.plain(&[command, "--help"], b"").out;
        let (at, heading) = (help.find(own).unwrap(), help.find(heading).unwrap());
        assert!(at < heading, "{command}: {own} stands below another heading\n{help}");
    }
}

#[test]
fn a_dry_run_of_forget_is_a_sentence_and_the_memories_that_would_go() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent", "--key", "home"]);
    let refused = sandbox.plain(&["--db", "m.oub", "forget", "home"], b"");
    assert!(refused.code == 2 && refused.err.contains("--dry-run tells what would go"), "{refused:?}");
    let told = read(&sandbox, &["forget", "home", "--dry-run"]);
    assert!(told.starts_with("Would forget 1 memory") && told.contains("Ann lives in Ghent"), "{told}");
    assert!(!told.contains("answer."), "{told}");
}

/// Nothing that only looks moves the time of the file, at whatever instant it is asked to look.
#[test]
fn a_look_at_another_instant_changes_nothing() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann is away for ten days", "--key", "away", "--ttl", "10d"]);
    let looks: [&[&str]; 7] = [
        &["maintain", "--dry-run"],
        &["maintain", "expire", "--dry-run"],
        &["stats"],
        &["stats", "--deep"],
        &["memory-stats"],
        &["namespace", "list"],
        &["fsck", "--dry-run"],
    ];
    for look in looks {
        let later = sandbox.plain(&[&["--db", "m.oub", "--now", "2031-01-01T00:00:00Z"], look].concat(), b"");
        assert_eq!(later.code, 0, "{look:?}: {later:?}");
        read(&sandbox, &["add", &format!("Bob says {look:?}")]);
        let shown = read(&sandbox, &["get", "away"]);
        assert!(shown.starts_with("Ann is away"), "{look:?} took it: {shown}");
    }
}

/// What is still there is no proof of an erasure.
#[test]
fn check_erased_says_of_what_it_proves_nothing() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "the passphrase is quicksilver-orchid-9981", "--key", "a"]);
    read(&sandbox, &["export", "e.jsonl"]);
    let unproven = |told: &str| {
        assert!(told.contains("Nothing is proved of 1 record") && !told.contains("No byte of"), "{told}");
        let document = sandbox.document(&["check", "--erased", "e.jsonl"]);
        assert_eq!((&document["records"], &document["unproven"]), (&json!(1), &json!(1)));
    };
    unproven(&read(&sandbox, &["check", "--erased", "e.jsonl"]));
    read(&sandbox, &["update", "a", "--text", "nothing to see"]);
    unproven(&read(&sandbox, &["check", "--erased", "e.jsonl"]));
    read(&sandbox, &["forget", "a", "--with-history", "--erase", "--yes"]);
    let told = read(&sandbox, &["check", "--erased", "e.jsonl"]);
    assert!(told.contains("No byte of 1 record") && !told.contains("Nothing is proved"), "{told}");
}

#[test]
fn a_line_that_is_refused_says_that_the_lines_before_it_are_written() {
    let sandbox = Sandbox::new();
    let answer = sandbox.plain(&["--db", "m.oub", "add", "-"], b"six\n{\"text\":\"\"}\n");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.err.contains("the lines before it are written"), "{}", answer.err);
    assert!(
        answer.err.contains("written: 1") && !answer.err.contains("no memory was written"),
        "{}",
        answer.err
    );
}

#[test]
fn a_pass_that_the_policy_switches_off_says_so() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea"]);
    for (pass, key) in
        [("prune", "prune.enabled"), ("cap", "sweeper.short_term_cap"), ("demote", "demote_after")]
    {
        let told = read(&sandbox, &["maintain", pass]);
        assert!(told.contains(&format!("{pass} is off: ")) && told.contains(key), "{told}");
    }
}

#[test]
fn an_answer_in_other_words_is_not_disowned() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann moved to Ghent in spring"]);
    assert!(!read(&sandbox, &["search", "where does Ann live?"]).contains("No memory fits well"));
    assert!(read(&sandbox, &["search", "zebra quantum"]).contains("No memory fits well"));
}

/// MODEL-2, MODEL-44: every name is counted, whatever it looks like.
#[test]
fn counts_of_names_that_look_alike_stay_apart() {
    let sandbox = Sandbox::new();
    for (text, more) in [
        ("one", &[][..]),
        ("two", &[]),
        ("x", &["--agent", "shared"]),
        ("y", &["--agent", "shared-memory"]),
        ("z", &["--namespace", "default/shared"]),
        ("w", &["--agent", "a/b", "--namespace", "c"]),
        ("v", &["--agent", "b", "--namespace", "c/a"]),
    ] {
        read(&sandbox, &[&["add", text], more].concat());
    }
    let stats = sandbox.document(&["stats"]);
    let counts: Vec<u64> =
        stats["by_partition"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 7, "{stats}");
    assert_eq!(stats["by_partition"]["default/shared"], 2);
    let small = sandbox.document(&["memory-stats"]);
    assert_eq!(
        (&small["local"]["total"], &small["mem0"]["by_agent"]["shared-memory"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(small["mem0"]["by_agent"]["%73hared-memory"], 1, "{small}");
}

/// What says nothing of a pin leaves it.
#[test]
fn new_tags_keep_a_pin() {
    let sandbox = Sandbox::new();
    sandbox.write("in.jsonl", "{\"text\":\"w\",\"key\":\"w\",\"tags\":[\"a\"]}\n");
    read(&sandbox, &["import", "in.jsonl"]);
    read(&sandbox, &["pin", "w"]);
    let pinned = || sandbox.document(&["get", "w"])["pinned"].clone();
    assert!(read(&sandbox, &["import", "in.jsonl"]).contains("1 unchanged"), "a repeat changes nothing");
    assert_eq!(pinned(), json!(true));
    for write in [&["update", "w", "--tag", "q"][..], &["add", "w", "--key", "w", "--tag", "b"]] {
        read(&sandbox, write);
        assert_eq!(pinned(), json!(true), "{write:?}");
    }
    assert_eq!(sandbox.document(&["get", "w"])["tags"], json!(["b", "pinned"]));
    read(&sandbox, &["unpin", "w"]);
    assert_eq!(pinned(), json!(false));
    read(&sandbox, &["update", "w", "--tag", "c"]);
    assert_eq!(pinned(), json!(false));
}

/// MODEL-57: whoever has no cursor yet begins with the changes that are kept.
#[test]
fn changes_without_a_cursor_begin_with_what_is_kept() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann prefers tea"]);
    let later = |arguments: &[&str]| {
        sandbox.plain(&[&["--db", "m.oub", "--now", "2026-06-01T00:00:00Z"], arguments].concat(), b"")
    };
    assert_eq!(later(&["add", "Bob walks"]).code, 0);
    assert_eq!(later(&["maintain", "retention"]).code, 0);
    let told = later(&["changes"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.err.contains("Earlier changes are no longer kept") && told.out.contains("insert"),
        "{told:?}"
    );
    let refused = later(&["--json", "changes", "--since", "0"]);
    assert!(refused.code == 1 && refused.err.contains("CursorTooOld"), "{refused:?}");
}

#[test]
fn undo_is_promised_where_it_takes_something_back_and_for_all_of_it() {
    let sandbox = Sandbox::new();
    let lines = "{\"text\":\"a\",\"key\":\"a\",\"namespace\":\"one\"}\n{\"text\":\"b\",\"key\":\"b\",\"namespace\":\"two\"}\n";
    sandbox.write("in.jsonl", lines);
    let told = read(&sandbox, &["import", "in.jsonl"]);
    let runs: Vec<&str> = told.split("`undo ").skip(1).filter_map(|part| part.split('`').next()).collect();
    assert_eq!(runs.len(), 2, "{told}");
    let again = read(&sandbox, &["import", "in.jsonl"]);
    assert!(again.contains("2 unchanged") && !again.contains("undo"), "{again}");
    for run in runs {
        read(&sandbox, &["undo", run]);
    }
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], 0);
    // The end of limbo and of old events has no way back.
    let later = ["--db", "m.oub", "--now", "2027-06-01T00:00:00Z", "maintain"];
    let told = sandbox.plain(&later, b"");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(!(told.out + &told.err).contains("undo"));
}

#[test]
fn a_forget_tells_the_same_before_and_after() {
    let sandbox = Sandbox::new();
    for text in ["Ghent", "Bruges", "Ypres"] {
        read(&sandbox, &["add", text, "--key", "home"]);
    }
    read(&sandbox, &["add", "shared", "--key", "k1"]);
    read(&sandbox, &["add", "shared", "--key", "k2"]);
    let plan = read(&sandbox, &["forget", "home", "--dry-run"]);
    assert!(plan.contains("Would forget 1 memory and 2 other versions (1 live, 2 superseded"), "{plan}");
    let told = read(&sandbox, &["forget", "home", "--yes"]);
    assert!(told.contains("Forgot 1 memory and 2 other versions"), "{told}");
    let plan = read(&sandbox, &["forget", "k2", "--dry-run"]);
    assert!(
        plan.contains("1 memory would stay for another write of the same text, without the key"),
        "{plan}"
    );
    // A tag goes alone from what its key had said before.
    sandbox.write("lines.jsonl", r#"{"text":"shared","key":"k1","tags":["import:a:1"]}"#);
    read(&sandbox, &["import", "lines.jsonl"]);
    let plan = read(&sandbox, &["forget", "--tag", "import:a:1", "--dry-run"]);
    let stays = "without the tag, because another write said the text as well";
    assert!(plan.contains(&format!("1 memory would stay {stays}")), "{plan}");
    let told = read(&sandbox, &["forget", "--tag", "import:a:1", "--yes"]);
    assert!(told.contains(&format!("1 kept {stays}")), "{told}");
    // What is true until an instant ahead, and what is true from then on, are both live.
    read(&sandbox, &["add", "Ghent", "--key", "office"]);
    read(&sandbox, &["supersede", "office", "--with-text", "Bruges", "--at", "2099-01-01"]);
    let plan = read(&sandbox, &["forget", "office", "--dry-run"]);
    assert!(plan.contains("Would forget 1 memory and 1 other version (2 live, 0 superseded"), "{plan}");
}

#[test]
fn what_takes_a_place_ahead_has_not_taken_it_yet() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "the office is in Ghent", "--key", "office"]);
    let told = read(
        &sandbox,
        &["supersede", "office", "--with-text", "the office is in Bruges", "--at", "2027-01-01"],
    );
    assert!(told.contains("takes the place of 1 memory from 2027-01-01"), "{told}");
    let story = read(&sandbox, &["get", "office"]);
    assert!(
        story.contains("the office is in Ghent") && story.contains("takes its place 2027-01-01"),
        "{story}"
    );
    assert!(!story.contains("took its place"), "{story}");
    let explained = read(&sandbox, &["explain", "office"]);
    // Until then the key means the old text, so the new one goes by its id.
    let new = sandbox.document(&["history", "office"])["versions"][1]["id"].as_str().unwrap().to_owned();
    let takes = format!("“the office is in Bruges” ({new}) takes its place 2027-01-01");
    assert!(explained.contains("office is live.") && explained.contains(&takes), "{explained}");
    assert!(!explained.contains("took its place"), "{explained}");

    // Once it has come, the key forgets what it shows.
    let later = ["--now", "2027-01-02T00:00:00Z"];
    let story = read(&sandbox, &[&["get", "office"], &later[..]].concat());
    assert!(story.contains("the office is in Bruges"), "{story}");
    sandbox.document(&[&["forget", "office", "--yes"], &later[..]].concat());
    assert!(sandbox.document(&[&["list"], &later[..]].concat())["items"].as_array().unwrap().is_empty());
}

#[test]
fn a_context_of_which_nothing_is_there_can_be_told_again() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "tea", "--key", "k"]);
    sandbox.write("slip.jsonl", "{\"memory\":\"kk\",\"tokens\":3}\n");
    sandbox.write("right.jsonl", "{\"memory\":\"k\",\"tokens\":3}\n");
    let slip = read(&sandbox, &["context-log", "c1", "slip.jsonl"]);
    assert!(slip.contains("Counted 0 memories"), "{slip}");
    let right = read(&sandbox, &["context-log", "c1", "right.jsonl"]);
    assert!(right.contains("Counted 1 memory"), "{right}");
    assert_eq!(sandbox.document(&["get", "k"])["included_count_total"], 1);
    let changes = sandbox.document(&["changes"])["changes"].as_array().unwrap().clone();
    let folds = changes.iter().filter(|change| change["op"] == "fold");
    assert!(folds.map(|fold| assert!(fold.as_object().unwrap()["id"].is_null(), "{fold}")).count() > 0);
}

/// The options of a command are built when it is typed, and what they are made of must not tell another story of the command.
#[test]
fn the_help_of_a_command_says_what_the_list_of_commands_says() {
    let sandbox = Sandbox::new();
    let help = |arguments: &[&str]| sandbox.plain(&[arguments, &["--help"]].concat(), b"").out;
    let all = help(&[]);
    let listed =
        all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut seen = 0;
    for line in listed.filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let about: Vec<&str> = words.collect();
        if name != "help" {
            let own = help(&[name]);
            let own: Vec<&str> = own.split_whitespace().take(about.len()).collect();
            assert_eq!(own, about, "{name}");
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} commands: {all}");
}

/// An upgrade may put a new program behind the link that a user calls.
#[cfg(all(unix, feature = "mcp"))]
#[test]
fn a_client_is_set_up_with_the_name_that_was_typed() {
    let sandbox = Sandbox::new();
    let link = sandbox.path("memory");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_oubliette"), &link).unwrap();
    let called = |program: &std::path::Path| {
        let mut command = std::process::Command::new(program);
        command
            .args(["--db", "m.oub", "setup", "cursor"])
            .current_dir(sandbox.path("."))
            .env("PATH", sandbox.path("."));
        let told = command.output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        told["mcpServers"]["oubliette"]["command"].as_str().unwrap().to_owned()
    };
    assert!(called(&link).ends_with("/memory"));
    assert!(!called(std::path::Path::new(env!("CARGO_BIN_EXE_oubliette"))).ends_with("/memory"));
}

#[test]
fn what_stays_and_what_is_over_is_said() {
    let sandbox = Sandbox::new();
    let old = sandbox.document(&["add", "Ann weighs 80 kg", "--key", "weight"]);
    read(&sandbox, &["add", "Ann weighs 79 kg", "--key", "weight"]);
    let told = read(&sandbox, &["restore", old["id"].as_str().unwrap()]);
    assert!(told.contains("it replaces what its key said since (`restore "), "{told}");
    let other = sandbox.document(&["add", "Ann is 180 cm tall", "--key", "height"]);
    read(&sandbox, &["add", "Ann is tall", "--key", "tall"]);
    read(&sandbox, &["supersede", "height", "--with", "tall"]);
    let told = read(&sandbox, &["restore", other["id"].as_str().unwrap()]);
    assert!(told.contains("“Ann is tall” (tall) stays beside it"), "{told}");
    let told = read(&sandbox, &["touch", "weight", "--expires-at", "2020-01-01"]);
    assert!(told.starts_with("Touched 1 memory in default; 1 memory ended at once"), "{told}");
}

/// A mistyped namespace has nothing to export, which is no reason to lose the export of yesterday.
#[test]
fn an_export_of_a_namespace_that_is_not_there_takes_no_place() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "Ann lives in Ghent"]);
    sandbox.write("old.jsonl", "of yesterday\n");
    let answer = sandbox.plain(&["--db", "m.oub", "--namespace", "typo", "export", "old.jsonl"], b"");
    assert!(answer.code == 1 && answer.err.contains("there is no namespace typo"), "{answer:?}");
    assert_eq!(std::fs::read_to_string(sandbox.path("old.jsonl")).unwrap(), "of yesterday\n");
    let typo = |arguments: &[&str]| {
        sandbox.plain(&[&["--db", "m.oub", "--namespace", "typo", "export"], arguments].concat(), b"").code
    };
    assert_eq!(typo(&["new.jsonl"]), 0);
    assert_eq!(typo(&["-", "--vectors", "old.jsonl"]), 1);
    assert_eq!(std::fs::read_to_string(sandbox.path("old.jsonl")).unwrap(), "of yesterday\n");
    let typo = sandbox.plain(&["--db", "m.oub", "--namespace", "typo", "access", "export", "old.jsonl"], b"");
    assert!(typo.code == 1 && typo.err.contains("there is no namespace typo"), "{typo:?}");
    assert_eq!(std::fs::read_to_string(sandbox.path("old.jsonl")).unwrap(), "of yesterday\n");
    let typo = sandbox.plain(&["--db", "m.oub", "--namespace", "typo", "access", "export", "-"], b"");
    assert!(typo.code == 0 && typo.err.contains("There is no namespace typo"), "{typo:?}");
    let all = ["--db", "m.oub", "--namespace", "typo", "export", "old.jsonl", "--all-namespaces"];
    assert_eq!(sandbox.plain(&all, b"").code, 0, "all that there is");
}

#[test]
fn what_is_left_of_a_forgotten_memory_goes_with_compact() {
    let sandbox = Sandbox::new();
    read(&sandbox, &["add", "the code of the safe is 4711, says Ann", "--key", "secret"]);
    read(&sandbox, &["export", "e.jsonl"]);
    read(&sandbox, &["forget", "secret", "--yes"]);
    let answer = sandbox.plain(&["--db", "m.oub", "--now", NOW, "check", "--erased", "e.jsonl"], b"");
    assert_eq!(answer.code, 3, "{answer:?}");
    let told = answer.out + &answer.err;
    assert!(told.contains("`compact` writes the file again") && !told.contains("reindex"), "{told}");
    read(&sandbox, &["compact"]);
    assert!(read(&sandbox, &["check", "--erased", "e.jsonl"]).contains("No byte of 1 record"));
}

#[test]
fn a_copy_says_what_its_time_took() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "here for an hour", "--ttl", "1h"]);
    for minute in ["30", "31"] {
        let said = format!("build done 12:{minute}");
        sandbox.document(&["add", &said, "--kind", "message", "--author-kind", "bot"]);
    }
    let compact = || {
        let answer = sandbox.plain(&["--db", "m.oub", "--now", "2026-04-20T00:00:00Z", "compact"], b"");
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.err
    };
    let told = compact();
    assert!(told.contains("1 expired memory went for good"), "{told}");
    assert!(told.contains("2 texts of messages"), "{told}");
    assert!(!compact().contains("went for good"));
    let none = read(&sandbox, &["events", "--from", "2027-01-01T00:00:00Z"]);
    assert!(none.contains("No messages there"), "{none}");
}
