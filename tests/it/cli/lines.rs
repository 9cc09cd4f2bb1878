//! Lines of an export that come in again: into another namespace, one by one, without their vectors.

use serde_json::{Value, json};

use super::sandbox::Sandbox;

/// A run over several namespaces stands in an export once for each, under one id. Into one namespace all of its steps come.
#[test]
fn a_run_over_two_namespaces_can_be_undone_where_both_were_imported_into_one() {
    let sandbox = Sandbox::new();
    for namespace in ["a", "b"] {
        let text = format!("the same text here {namespace}");
        for number in 1..3 {
            let key = format!("k{number}{namespace}");
            sandbox.document(&["add", &text, "--key", &key, "--no-dedup", "--namespace", namespace]);
        }
    }
    let run = sandbox.document(&["maintain", "near-duplicates"])["run"].as_str().unwrap().to_owned();
    sandbox.document(&["export", "all.jsonl", "--all-states", "--all-namespaces"]);
    for batch in ["1", "2", "3", "1000"] {
        let other = Sandbox::new();
        other.write("all.jsonl", std::fs::read(sandbox.path("all.jsonl")).unwrap());
        let import = ["import", "all.jsonl", "--into", "z", "--batch", batch];
        let told = &other.document(&import)["told"];
        other.document(&import);
        let steps = || {
            let all = other.run(&["export", "-", "--all-states", "--namespace", "z"]).out;
            all.lines().filter(|line| line.contains("\"step\":{")).count()
        };
        assert_eq!((steps(), told), (2, &json!(4)), "batch {batch}: once more adds nothing");
        let undone = other.document(&["undo", &run]);
        assert_eq!((&undone["restored"], &undone["lost"]), (&json!(2), &json!([])), "batch {batch}");
        assert_eq!(other.document(&["list", "--namespace", "z"])["items"].as_array().map(Vec::len), Some(4));
        assert_eq!(other.document(&["check", "--deep"])["ok"], true);
    }
}

/// What lines of an export belong together comes together, by `add -` as by `import`, each line with its answer.
#[test]
fn lines_that_count_others_come_in_one_by_one() {
    let sandbox = Sandbox::new();
    for number in 0..4 {
        let text = format!("Deploy of api number {number} done");
        let add = ["add", &text, "--kind", "message", "--author-kind", "bot", "--channel", "ops"];
        sandbox.document(&add);
    }
    for key in ["one", "two"] {
        sandbox.document(&["add", "Ann prefers tea", "--key", key, "--no-dedup"]);
    }
    sandbox.document(&["maintain", "near-duplicates"]);
    sandbox.document(&["goal", "set", "ship it"]);
    let all = sandbox.run(&["export", "-", "--all-states"]).out;
    let other = Sandbox::new();
    let added = other.run_with(&["add", "-"], all.as_bytes());
    assert_eq!((added.code, added.out.lines().count()), (0, all.lines().count()), "{added:?}");
    for sort in ["run", "step", "aggregate", "event", "goal"] {
        assert!(added.out.contains(&format!("{{\"{sort}\":true}}")), "{sort}: {}", added.out);
    }
    assert_eq!(other.run(&["export", "-", "--all-states"]).out, all);
    // Where a line is missing, the one that counts it is refused whole, by one number.
    let at = all.lines().position(|line| line.contains("\"event\":{")).unwrap();
    let short: Vec<&str> =
        all.lines().enumerate().filter(|(line, _)| *line != at).map(|(_, line)| line).collect();
    let added = Sandbox::new().run_with(&["add", "-"], short.join("\n").as_bytes());
    assert_eq!((added.code, added.out.contains("aggregate")), (1, false), "{added:?}");
    assert_eq!(added.err.matches("line ").count(), 1, "{added:?}");
}

/// A memory that is nothing but its vector takes it along wherever it is exported to.
#[test]
fn a_memory_without_text_keeps_its_vector_in_an_export_without_vectors() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "in.jsonl",
        "{\"key\":\"a\",\"text\":\"\",\"vector\":[1,0]}\n{\"key\":\"b\",\"text\":\"b\",\"vector\":[0,1]}\n\
         {\"key\":\"c\",\"text\":\" \",\"vector\":[1,0]}\n",
    );
    sandbox.document(&["import", "in.jsonl"]);
    let export = ["export", "-", "--all-states", "--no-vectors"];
    let lines = sandbox.run(&export).out;
    let memories = lines.lines().filter(|line| line.contains("\"holders\""));
    let vectors = memories.map(|line| serde_json::from_str::<Value>(line).unwrap()["vector"].clone());
    assert_eq!(vectors.collect::<Vec<_>>(), [json!([1.0, 0.0]), Value::Null, json!([1.0, 0.0])]);
    let other = Sandbox::new();
    assert_eq!(other.run_with(&["import", "-"], lines.as_bytes()).document()["stored"], 3);
}

/// `-` stands for standard input: for the text of a search as for the lines of `add`.
#[test]
fn a_search_reads_its_text_from_standard_input() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let typed = sandbox.document(&["search", "who drinks\ncoffee?"])["hits"].clone();
    assert_eq!(typed[0]["key"], "b");
    let read = sandbox.run_with(&["search", "-"], b"\nwho drinks\ncoffee?\n").document();
    assert_eq!(read["hits"], typed, "all lines are one text");
    for nothing in ["", " \n"] {
        let answer = sandbox.run_with(&["search", "-"], nothing.as_bytes());
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Usage"), "{nothing:?}");
    }
    for (bad, why) in [(&[b'x'; 65_537][..], "65536 bytes"), (b"tea \xff", "UTF-8")] {
        let answer = sandbox.run_with(&["search", "-"], bad);
        let (kind, message) = answer.error();
        assert_eq!((answer.code, kind.as_str()), (1, "Invalid"), "{message}");
        assert!(message.starts_with("query: ") && message.contains(why), "{message}");
    }
}

/// A text is stored as it stands, by `add -` as by `add`.
#[test]
fn white_space_at_both_ends_of_a_text_stays() {
    let sandbox = Sandbox::new();
    let added = sandbox.run_with(&["add", "-"], b"  indented  \r\n   \n\nplain\n  {\"text\":\"tea\"}\n");
    assert_eq!((added.code, added.out.lines().count()), (0, 3), "{added:?}");
    assert_eq!(sandbox.document(&["add", "  indented  "])["decision"], "reinforced");
    let items = sandbox.document(&["list"])["items"].clone();
    let texts: Vec<_> = items.as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["  indented  ", "plain", "tea"]);
}

/// `-` stands for standard input for every text of one memory, not only for that of a search.
#[test]
fn a_text_that_is_changed_or_set_comes_from_standard_input() {
    let sandbox = Sandbox::new();
    sandbox.fill();
    let text = |key: &str| sandbox.document(&["get", key])["text"].clone();
    let revised = sandbox.run_with(&["update", "a", "--text", "-"], b"\xef\xbb\xbfAnn prefers\n  coffee\r\n");
    assert_eq!(
        (revised.document()["decision"].as_str(), text("a")),
        (Some("revised"), "Ann prefers\n  coffee".into())
    );
    sandbox.run_with(&["supersede", "b", "--with-text", "-"], b"Bob prefers water\n").document();
    assert_eq!(text("b"), "Bob prefers water");
    let goal = sandbox.run_with(&["goal", "set", "-"], b"plan the trip\n").document();
    assert_eq!(goal["text"], "plan the trip");
    let commands =
        [&["update", "a", "--text", "-"][..], &["supersede", "b", "--with-text", "-"], &["goal", "set", "-"]];
    for (command, most) in commands.into_iter().zip([1 << 20, 1 << 20, 8 << 10]) {
        let answer = sandbox.run_with(command, b" \n");
        assert_eq!((answer.code, answer.error().0.as_str()), (2, "Usage"), "{command:?}");
        for (bad, why) in
            [(vec![b'x'; most + 1], most.to_string()), (b"tea \xff".to_vec(), "UTF-8".to_owned())]
        {
            let (kind, message) = sandbox.run_with(command, &bad).error();
            assert!(kind == "Invalid" && message.contains(&why), "{command:?}: {message}");
        }
    }
    let both = sandbox.run_with(&["update", "a", "--text", "-", "--payload", "-"], b"tea");
    assert_eq!((both.code, both.error().0.as_str()), (2, "Usage"));
    assert_eq!((text("a"), text("b")), ("Ann prefers\n  coffee".into(), "Bob prefers water".into()));
    assert_eq!(sandbox.document(&["goal", "list"])["goals"].as_array().unwrap().len(), 1);
}
