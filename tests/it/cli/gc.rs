//! `gc` and `expand`: their documents, their refusals, and summarizers that do not do what they should.

use serde_json::{Value, json};

use super::sandbox::{NOW, Sandbox, has, until};

/// A message with more words than it says anything with, so that a summary can be shorter.
fn said(number: usize) -> String {
    let rest = "That is how it was, and so it will be for all of us. Well, when would you do that?";
    format!("Ann: Box {number} went to Ghent{number}. {rest}")
}

/// A sandbox with old messages of one channel.
fn old() -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..3 {
        let text = said(number);
        let arguments =
            ["add", &text, "--kind", "message", "--channel", "yard", "--created-at", "2001-01-02T10:00:00Z"];
        sandbox.document(&arguments);
    }
    sandbox
}

fn live(sandbox: &Sandbox) -> usize {
    sandbox.document(&["list"])["items"].as_array().unwrap().len()
}

#[test]
fn a_plan_is_packed_committed_expanded_and_undone() {
    let sandbox = old();
    let plan = sandbox.document(&["gc", "plan"]);
    has(&plan, &["plan_id", "policy_version", "expires_at", "groups"]);
    has(&plan["groups"][0], &["group_id", "source_ids", "estimated_tokens", "time_range", "channel_id"]);
    let id = plan["plan_id"].as_str().unwrap();
    let pack = sandbox.document(&["gc", "pack", id, "1"]);
    has(&pack, &["format", "instructions", "sources", "aggregates", "limits"]);
    let sources = plan["groups"][0]["source_ids"].clone();
    let summary = json!({
        "topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": ["boxes went to Ghent2"],
        "source_ids": sources,
    });
    let commit =
        |answer: &str| sandbox.run_with(&["gc", "commit", id, "1", "--summary", "-"], answer.as_bytes());
    let refused = commit("{}");
    assert_eq!((refused.code, refused.error().0.as_str()), (1, "Refused"));
    let done = commit(&summary.to_string());
    assert_eq!(done.code, 0, "{}", done.err);
    let done: Value = serde_json::from_str(&done.out).unwrap();
    has(&done, &["summary_memory_id", "deleted_count", "skipped", "run", "warnings", "recall_guard"]);
    assert_eq!((done["deleted_count"].clone(), live(&sandbox)), (json!(3), 1));
    let expanded = sandbox.document(&["expand", done["summary_memory_id"].as_str().unwrap()]);
    assert_eq!(expanded["sources"][0]["tombstone"]["reason"], "summarized");
    let told =
        sandbox.plain(&["--db", "m.oub", "expand", done["summary_memory_id"].as_str().unwrap()], b"").out;
    assert!(told.contains("summarized 20") && told.contains("Ann: Box"), "{told}");
    let hit = sandbox.document(&["search", "Ghent2"])["hits"][0].clone();
    assert_eq!((&hit["id"], &hit["sources"]["count"]), (&done["summary_memory_id"], &json!(3)));
    assert_eq!(sandbox.document(&["gc", "show", id])["state"], "committed");
    sandbox.document(&["undo", done["run"].as_str().unwrap()]);
    assert_eq!(live(&sandbox), 3);
}

#[test]
fn work_on_a_namespace_that_is_not_there_is_refused_and_makes_none() {
    let sandbox = old();
    for rest in [
        &["gc", "plan"][..],
        &["gc", "run"],
        &["gc", "run", "--dry-run"],
        &["maintain"],
        &["maintain", "retention"],
        &["maintain", "collapse", "--dry-run"],
        &["maintain", "prune", "--dry-run", "--compare", "preset:redundancy"],
        &["reindex"],
    ] {
        let refused = sandbox.run(&[&["--namespace", "typo"], rest].concat());
        assert_eq!((refused.code, refused.error().0.as_str()), (1, "NotFound"), "{rest:?}");
    }
    assert_eq!(sandbox.document(&["namespace", "list"])["namespaces"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_does_the_whole_loop() {
    let sandbox = old();
    let dry = sandbox.document(&["gc", "run", "--dry-run", "--probe", "Ghent2"]);
    assert_eq!((dry["sources"].clone(), live(&sandbox)), (json!(3), 3));
    let done = sandbox.document(&["gc", "run", "--probe", "Ghent2"]);
    assert_eq!(done["recall_guard"], json!({"probes": 4, "hit_before": 4, "hit_after": 4, "ratio": 1.0}));
    assert_eq!(dry["recall_guard"], done["recall_guard"]);
    has(
        &done,
        &[
            "plans",
            "groups",
            "committed",
            "aborted",
            "refused",
            "sources",
            "summaries",
            "tokens_before",
            "runs",
        ],
    );
    assert_eq!((done["committed"].clone(), live(&sandbox)), (json!(1), 1));
    let nothing = sandbox.document(&["gc", "run"]);
    assert_eq!(nothing["groups"], 0);
    assert!(nothing["nothing"].as_str().unwrap().starts_with("Nothing to summarize"), "{nothing}");
    assert_eq!(done.get("nothing"), None);
    let report = sandbox.document(&["gc", "report"]);
    has(
        &report,
        &[
            "top_families",
            "compacted",
            "summaries_created",
            "memories_deleted",
            "new_patterns",
            "suggested_filters",
            "budget",
            "refusals",
        ],
    );
    assert_eq!(
        (report["summaries_created"].clone(), report["memories_deleted"].clone()),
        (json!(1), json!(3))
    );
    let ahead = sandbox.run(&["gc", "report", "--since", "2999-01-01T00:00:00Z"]);
    assert_eq!((ahead.code, ahead.error().0.as_str()), (2, "Invalid"));
}

#[cfg(unix)]
#[test]
fn a_command_may_write_the_summaries() {
    let sandbox = old();
    let answer = r#"{"topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": ["all went"]}"#;
    let command = format!("cat > /dev/null; echo 'Here: {answer}'");
    let done = sandbox.document(&["gc", "run", "--summarizer", &command]);
    assert_eq!((done["committed"].clone(), live(&sandbox)), (json!(1), 1));
}

#[cfg(unix)]
#[test]
fn a_bad_command_changes_nothing() {
    for (command, left, kind) in [
        ("sleep 6", "aborted", "Conflict"),
        ("yes", "aborted", "Conflict"),
        ("exit 3", "aborted", "Conflict"),
        ("/nothing/there", "aborted", "Conflict"),
        ("echo no JSON", "refused", "Refused"),
        ("printf '\\377'", "aborted", "Conflict"),
    ] {
        let sandbox = old();
        let answer = sandbox.run(&["gc", "run", "--summarizer", command, "--timeout", "2s"]);
        assert_eq!(answer.code, 1, "a run that comes to nothing has failed: {answer:?}");
        let error: Value = serde_json::from_str(answer.err.lines().last().unwrap()).unwrap();
        assert_eq!(error["error"]["kind"], kind, "{command}: {error}");
        let done: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!((done[left].clone(), live(&sandbox)), (json!(1), 3), "{command}: {done}");
        // The sources are free again.
        assert_eq!(sandbox.document(&["gc", "run", "--dry-run"])["groups"], 1);
    }
}

#[test]
fn a_timeout_is_read_whoever_writes() {
    let sandbox = old();
    for timeout in ["banana", "0s"] {
        let (kind, message) = sandbox.run(&["gc", "run", "--timeout", timeout]).error();
        assert!(kind == "Invalid" && message.contains("--timeout"), "{timeout}: {message}");
    }
    assert_eq!(live(&sandbox), 3);
}

/// A command is asked again with its answer and the faults (GC-23), once unless the policy says otherwise.
#[cfg(unix)]
#[test]
fn a_command_is_told_what_was_wrong() {
    let bad = r#"{"time_range": {"start": 0, "end": 0}, "summary": ["all went"]}"#;
    let good = bad.replacen('{', r#"{"topic": "boxes", "#, 1);
    // It answers well only when it is given its own answer back, with the place of the fault.
    let told = r#""pointer":"/topic""#;
    let command = format!("given=$(cat); case $given in *'{told}'*) echo '{good}';; *) echo '{bad}';; esac");
    let sandbox = old();
    let dry = sandbox.document(&["gc", "run", "--dry-run", "--summarizer", &command]);
    assert_eq!((dry["committed"].clone(), live(&sandbox)), (json!(1), 3));
    let done = sandbox.document(&["gc", "run", "--summarizer", &command]);
    assert_eq!((done["committed"].clone(), live(&sandbox)), (json!(1), 1), "{done}");

    // Each attempt is one call; a repair that fails leaves the answer as it was.
    for (attempts, repair) in [(0, ""), (1, ""), (3, ""), (1, "exit 3;")] {
        let sandbox = old();
        sandbox.write("p.toml", format!("gc.repair_attempts = {attempts}"));
        sandbox.document(&["policy", "set", "p.toml"]);
        let calls = tempfile::NamedTempFile::new().unwrap();
        let command = format!(
            "given=$(cat); echo call >> '{}'; case $given in *'\"repair\"'*) {repair} ;; esac; echo '{bad}'",
            calls.path().display()
        );
        let done = sandbox.run(&["gc", "run", "--summarizer", &command]);
        let done: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!((done["refused"].clone(), live(&sandbox)), (json!(1), 3), "{done}");
        assert_eq!(std::fs::read_to_string(calls.path()).unwrap().lines().count(), 1 + attempts);
    }
}

#[test]
fn a_plan_is_given_up() {
    let sandbox = old();
    let plan = sandbox.document(&["gc", "plan"]);
    let id = plan["plan_id"].as_str().unwrap();
    // Whoever runs the loop meanwhile, as after a run that was killed, is told of it.
    let told = sandbox.plain(&["--db", "m.oub", "--now", NOW, "gc", "run"], b"").out;
    assert!(told.contains(&format!("the open plan {id} has")) && told.contains("gc abort"), "{told}");
    assert_eq!(sandbox.document(&["gc", "abort", id, "--reason", "not now"])["state"], "aborted");
    let shown = sandbox.document(&["gc", "show"]);
    let plans = shown["plans"].as_array().unwrap();
    // The loop has left a plan of its own, without a group.
    let given_up = plans.iter().find(|plan| plan["plan_id"] == id).unwrap();
    assert_eq!(given_up["reason"], "not now", "{shown}");
    assert_eq!(sandbox.run(&["gc", "show", "00000000-0000-7000-8000-000000000000"]).error().0, "NotFound");
}

/// Past queries are questions of a plan, and go with what they had found (GC-38).
#[test]
fn a_tracked_search_becomes_a_question_of_a_plan() {
    let sandbox = old();
    sandbox.write("p.toml", "gc.keep_queries = true");
    sandbox.document(&["policy", "set", "p.toml"]);
    sandbox.document(&["search", "--track", "who took Box 1 to Ghent1"]);
    sandbox.document(&["search", "Box 2, of which nobody keeps it"]);
    assert_eq!(sandbox.document(&["stats"])["kept_queries"], 1);
    let plan = sandbox.document(&["gc", "plan"]);
    let asked = json!([{"text": "who took Box 1 to Ghent1", "from": "query"}]);
    assert_eq!(plan["groups"][0]["probes"], asked);
    let id = plan["plan_id"].as_str().unwrap();
    let shown = sandbox.plain(&["--db", "m.oub", "--now", NOW, "gc", "show", id], b"").out;
    assert!(shown.contains("Group 1 is asked (query): who took Box 1 to Ghent1"), "{shown}");
    let source = plan["groups"][0]["source_ids"][1].as_str().unwrap();
    sandbox.document(&["forget", source, "--erase", "--yes"]);
    assert_eq!(sandbox.document(&["stats"])["kept_queries"], 0);
    let file = std::fs::read(sandbox.path("m.oub")).unwrap();
    assert!(!file.windows(8).any(|bytes| bytes == b"who took"));
    assert_eq!(sandbox.document(&["check"])["ok"], true);
}

#[test]
fn the_evaluation_asks_before_and_after() {
    let sandbox = Sandbox::new();
    for (number, day) in ["2001-01-02", "2001-01-03"].iter().enumerate() {
        let (text, key) = (said(number), format!("k{number}"));
        let at = format!("{day}T10:00:00Z");
        sandbox.document(&["add", &text, "--key", &key, "--kind", "message", "--created-at", &at]);
    }
    let queries = sandbox.write("q.jsonl", b"{\"query\":\"who went to Ghent0?\",\"evidence\":[\"k0\"]}\n");
    let told = sandbox.document(&["eval", "--gc", "--queries", &queries, "--share", "0.5"]);
    has(
        &told["shares"][0],
        &["share", "compacted", "summaries", "tokens", "by_source", "by_text", "file_bytes"],
    );
    assert_eq!(told["before"]["by_source"], 1.0);
    assert_eq!(
        (told["shares"][0]["compacted"].clone(), told["shares"][0]["by_text"].clone()),
        (json!(1), json!(1.0))
    );
    assert_eq!(live(&sandbox), 2);
}

/// A server that gives one answer of a model, and what it was asked.
#[cfg(feature = "openai")]
fn model(content: String) -> (String, std::thread::JoinHandle<String>) {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head).unwrap() > 2 {
            let last = head.lines().last().unwrap_or_default().to_lowercase();
            length = last.strip_prefix("content-length: ").map_or(length, |value| value.parse().unwrap());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let answer =
            json!({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}).to_string();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        )
        .unwrap();
        String::from_utf8(body).unwrap()
    });
    (address, server)
}

#[cfg(feature = "openai")]
#[test]
fn a_language_model_may_write_the_summaries() {
    let sandbox = old();
    let summary = json!({"topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": ["all went"]});
    let (address, server) = model(format!("```json\n{summary}\n```"));
    let arguments = ["--json", "--db", "m.oub", "gc", "run", "--summarizer", "openai:tiny"];
    let done = sandbox.command(&arguments).env("OPENAI_BASE_URL", address).output().unwrap();
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done["committed"].clone(), live(&sandbox)), (json!(1), 1), "{done}");
    let asked: Value = serde_json::from_str(&server.join().unwrap()).unwrap();
    assert_eq!(asked["model"], "tiny");
    assert!(asked["messages"][1]["content"].as_str().unwrap().contains("Box 2 went to Ghent2"));
    // Nobody is at home: the group stays, and the report says why.
    let other = old();
    let done = other.command(&arguments).env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").output().unwrap();
    let done: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done["aborted"].clone(), live(&other)), (json!(1), 3), "{done}");
    assert_eq!(other.document(&["gc", "report"])["refusals"]["no_summary"], 1);
}

/// A file that a summarizer writes to as long as it works, and the summarizer: it never ends, nor does what it has started.
#[cfg(unix)]
fn restless() -> (tempfile::NamedTempFile, String) {
    let ticks = tempfile::NamedTempFile::new().unwrap();
    let command = format!("(while sleep 0.1; do echo tick >> '{}'; done) & wait", ticks.path().display());
    (ticks, command)
}

#[cfg(unix)]
fn assert_at_rest(ticks: &tempfile::NamedTempFile) {
    let length = || std::fs::metadata(ticks.path()).unwrap().len();
    let before = length();
    assert!(before > 0, "it had begun to work");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(length(), before, "it works on");
}

/// A command that is too late is ended with what it has started.
#[cfg(unix)]
#[test]
fn a_late_command_leaves_no_process_behind() {
    let (sandbox, (ticks, command)) = (old(), restless());
    let done = sandbox.run(&["gc", "run", "--summarizer", &command, "--timeout", "2s"]);
    let done: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done["aborted"].clone(), live(&sandbox)), (json!(1), 3), "{done}");
    assert_at_rest(&ticks);
}

/// Nor does it work for a program that is gone: not even the kernel can ask that program to clean up.
#[cfg(unix)]
#[test]
fn a_command_ends_with_the_program_that_asked_it() {
    let (sandbox, (ticks, command)) = (old(), restless());
    let mut asking = sandbox.spawn(&["--db", "m.oub", "gc", "run", "--summarizer", &command]);
    while std::fs::metadata(ticks.path()).unwrap().len() == 0 {
        assert!(asking.try_wait().unwrap().is_none(), "it waits for the command");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    asking.kill().unwrap();
    asking.wait().unwrap();
    // What kills the command is told of it by the system, a moment later.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_at_rest(&ticks);
    assert_eq!(live(&sandbox), 3);
}

/// A command may wait for all its children, and none must be there that it has not started.
#[cfg(target_os = "linux")]
#[test]
fn a_command_has_no_children_but_its_own() {
    if !std::path::Path::new("/proc/self/task").join(std::process::id().to_string()).join("children").exists()
    {
        return eprintln!("skipped: this kernel does not list the children of a process");
    }
    let sandbox = old();
    let told = tempfile::NamedTempFile::new().unwrap();
    let path = told.path().display();
    let command = format!(
        "cat > /dev/null; read -r kids < /proc/$$/task/$$/children; echo \"$kids.\" >> '{path}'; echo nonsense"
    );
    sandbox.run(&["gc", "run", "--summarizer", &command]);
    assert_eq!(std::fs::read_to_string(told.path()).unwrap(), ".\n.\n");
}

/// What a command that did its work leaves behind, such as a server that keeps a model in memory, is its own affair.
#[cfg(unix)]
#[test]
fn what_a_command_leaves_behind_at_its_end_stays() {
    let sandbox = old();
    let stays = tempfile::NamedTempFile::new().unwrap();
    let path = stays.path().display();
    let command =
        format!("(sleep 1; echo here >> '{path}') > /dev/null 2>&1 & cat > /dev/null; echo nonsense");
    sandbox.run(&["gc", "run", "--summarizer", &command]);
    // Asked twice: once to mend its answer.
    until("both have come to their ends", || {
        std::fs::read_to_string(stays.path()).unwrap() == "here\nhere\n"
    });
}

#[cfg(unix)]
#[test]
fn a_command_writes_one_memory_for_a_cluster() {
    let sandbox = Sandbox::new();
    let lines = r#"{"text":"a tall tree","tags":["oak"],"vector":[1,0]}
{"text":"a high tree","vector":[0.96,0.28]}
{"text":"a small boat","vector":[0,1]}
"#;
    sandbox.write("trees.jsonl", lines);
    sandbox.document(&["import", "trees.jsonl"]);
    let dry = sandbox.document(&["maintain", "cluster", "--dry-run"]);
    assert_eq!(
        (dry["passes"][0]["planned"].clone(), dry["passes"][0]["report"]["clusters"].clone()),
        (json!(2), json!(1))
    );
    // It tells whether it was given both members.
    let told = r#"{"text":"a tall, high tree"}"#;
    let command = format!(
        "given=$(cat); case $given in *'a tall tree'*'a high tree'*|*'a high tree'*'a tall tree'*) echo '{told}';; esac"
    );
    let done = sandbox.document(&["maintain", "cluster", "--summarizer", &command]);
    let united = &done["united"]["default"];
    assert_eq!((united["shown"].clone(), united["left"].clone()), (json!(2), json!(0)), "{done}");
    let made = sandbox.document(&["get", united["created"][0].as_str().unwrap()]);
    assert_eq!((made["text"].clone(), made["tags"].clone()), (json!("a tall, high tree"), json!(["oak"])));
    assert_eq!(live(&sandbox), 2);
    sandbox.document(&["undo", united["run"].as_str().unwrap()]);
    assert_eq!(live(&sandbox), 3);
    // One that writes nonsense changes nothing, which whoever runs it by a clock must hear; one that stands nowhere is refused.
    let answer = sandbox.run(&["maintain", "cluster", "--summarizer", "echo nonsense"]);
    assert!(answer.code == 1 && answer.err.contains("maintain cluster"), "{answer:?}");
    let done: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((done["united"]["default"]["left"].clone(), live(&sandbox)), (json!(2), 3));
    assert_eq!(sandbox.run(&["maintain", "prune", "--summarizer", "cat"]).error().0, "Invalid");
    assert_eq!(sandbox.run(&["maintain", "--summarizer", "cat"]).error().0, "Invalid");
}

/// A plan that ends when some of its groups are committed says that these stand, and what takes them back. It said only that it
/// was given up.
#[test]
fn a_plan_that_is_given_up_tells_of_its_committed_groups() {
    let sandbox = Sandbox::new();
    for number in 0..6 {
        let channel = format!("yard-{}", number % 3);
        let text = said(number);
        let arguments = [
            "add",
            &text,
            "--kind",
            "message",
            "--channel",
            &channel,
            "--created-at",
            "2001-01-02T10:00:00Z",
        ];
        sandbox.document(&arguments);
    }
    let plan = sandbox.document(&["gc", "plan"]);
    assert_eq!(plan["groups"].as_array().unwrap().len(), 3);
    let id = plan["plan_id"].as_str().unwrap();
    let commit = |group: usize| {
        let summary = json!({
            "topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": ["boxes went"],
            "source_ids": plan["groups"][group]["source_ids"],
        });
        let name = plan["groups"][group]["group_id"].as_str().unwrap();
        let arguments = ["gc", "commit", id, name, "--summary", "-"];
        sandbox.run_with(&arguments, summary.to_string().as_bytes()).document()
    };
    let plain =
        |arguments: &[&str]| sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), b"").out;
    let run = commit(0)["run"].as_str().unwrap().to_owned();
    let shown = plain(&["gc", "show", id]);
    assert!(shown.contains("1 of its 3 groups was committed and stands"), "{shown}");
    let told = plain(&["gc", "abort", id, "--reason", "enough"]);
    let stands = format!("1 of its 3 groups was committed and stands; `undo {run}` takes it back");
    assert!(told.contains("Gave up the plan") && told.contains(&stands), "{told}");
    sandbox.document(&["undo", &run]);
    let shown = plain(&["gc", "show", id]);
    assert!(!shown.contains("`undo "), "it is taken back already: {shown}");
}

/// Without a horizon nothing takes a summary back, so nothing offers it.
#[test]
fn no_undo_is_offered_without_a_horizon() {
    let plain = |sandbox: &Sandbox, arguments: &[&str], input: &[u8]| {
        sandbox.plain(&[&["--db", "m.oub", "--now", NOW], arguments].concat(), input).out
    };
    for (horizon, offered) in [("30d", true), ("0s", false)] {
        let policy = format!("[undo]\nhorizon = '{horizon}'\n");
        let sandbox = old();
        let file = sandbox.write("policy.toml", &policy);
        sandbox.document(&["policy", "set", &file]);
        let ran = plain(&sandbox, &["gc", "run"], b"");
        assert!(ran.contains("Put 1 summary") && ran.contains("`undo ") == offered, "{ran}");

        let sandbox = old();
        let file = sandbox.write("policy.toml", &policy);
        sandbox.document(&["policy", "set", &file]);
        let plan = sandbox.document(&["gc", "plan"]);
        let (id, group) = (plan["plan_id"].as_str().unwrap(), &plan["groups"][0]);
        let summary = json!({
            "topic": "boxes", "time_range": {"start": 0, "end": 0}, "summary": ["boxes went"],
            "source_ids": group["source_ids"],
        });
        let arguments = ["gc", "commit", id, group["group_id"].as_str().unwrap(), "--summary", "-"];
        let told = plain(&sandbox, &arguments, summary.to_string().as_bytes());
        assert!(told.contains("stands in the place") && told.contains("`undo ") == offered, "{told}");
    }
}
