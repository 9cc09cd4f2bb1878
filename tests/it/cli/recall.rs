//! What a newcomer types: texts in, the right memories out, and what a search can be asked besides.

use serde_json::{Value, json};

use super::sandbox::{Sandbox, has};

/// A talk of three turns, and two memories of something else.
fn talk() -> Sandbox {
    let sandbox = Sandbox::new();
    let turn = |key: &str, at: &str, text: &str| {
        let line = json!({"key": key, "text": text, "created_at": at, "metadata": {"session": "s1"}});
        format!("{line}\n")
    };
    let lines = turn("t1", "2026-01-03T10:00:00Z", "Ann: which pottery class did you book?")
        + &turn("t2", "2026-01-03T10:01:00Z", "Ben: the one on Friday, in the old mill")
        + &turn("t3", "2026-01-03T10:02:00Z", "Ann: lovely, see you there")
        + "{\"key\":\"other\",\"text\":\"The gateway restarts at night\",\"pinned\":true}\n"
        + "{\"key\":\"far\",\"text\":\"Cat paints boats\"}\n";
    sandbox.write("talk.jsonl", lines);
    assert_eq!(sandbox.document(&["import", "talk.jsonl"])["stored"], 5);
    sandbox
}

fn keys(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["key"].as_str().unwrap()).collect()
}

#[test]
fn a_newcomer_adds_and_finds_at_once() {
    let sandbox = Sandbox::new();
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "ann"]);
    sandbox.document(&["add", "Ben sails on Sundays", "--key", "ben"]);
    let found = sandbox.document(&["search", "where does Ann live?"]);
    assert_eq!(keys(&found)[0], "ann");
    assert_eq!(found["plan"]["mode"], "hybrid");
    has(&found["hits"][0]["signals"], &["vector", "text"]);
    // What no word says is found by its meaning, and what is revised by what it says now.
    sandbox.document(&["update", "ben", "--text", "Ben repairs bicycles in his garage"]);
    sandbox.document(&["maintain", "embed"]);
    assert_eq!(sandbox.document(&["stats"])["memories"]["live"], 2);
    let by_vector = sandbox.document(&["search", "who mends bikes", "--mode", "vector"]);
    assert_eq!(keys(&by_vector)[0], "ben");
    let by_word = sandbox.document(&["search", "sails", "--mode", "text"]);
    assert_eq!(keys(&by_word), Vec::<&str>::new(), "the old text is gone from the index");
    let check = sandbox.document(&["check", "--deep"]);
    assert_eq!(check["ok"], true, "{check}");
}

#[test]
fn each_mode_ranks_by_what_it_says() {
    let sandbox = talk();
    for (mode, signals) in
        [("text", ["text"].as_slice()), ("vector", &["vector"]), ("hybrid", &["text", "vector"])]
    {
        let found = sandbox.document(&["search", "pottery class", "--mode", mode, "-k", "1"]);
        assert_eq!((keys(&found), &found["plan"]["mode"]), (vec!["t1"], &json!(mode)));
        for signal in ["text", "vector"] {
            let given = !found["hits"][0]["signals"][signal].is_null();
            assert_eq!(given, signals.contains(&signal), "{signal} in {mode}");
        }
    }
    let none = sandbox.run(&["search", "pottery", "--mode", "blurry"]);
    assert_eq!(none.code, 2, "{none:?}");
}

#[test]
fn around_gives_the_turns_beside_a_hit() {
    let sandbox = talk();
    let found = sandbox.document(&["search", "old mill", "--mode", "text", "-k", "1", "--around", "1"]);
    assert_eq!(keys(&found), ["t2"]);
    let beside: Vec<(i64, &str)> = found["hits"][0]["around"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| (turn["step"].as_i64().unwrap(), turn["key"].as_str().unwrap()))
        .collect();
    assert_eq!(beside, [(-1, "t1"), (1, "t3")]);
    let (kind, message) = sandbox.run(&["search", "mill", "--around", "1001"]).error();
    assert!(kind == "Invalid" && message.contains("around"), "{message}");
}

#[test]
fn why_explains_a_hit_and_a_miss() {
    let sandbox = talk();
    let hit = sandbox.document(&["search", "pottery class", "--mode", "text", "--why", "t1"]);
    assert_eq!((&hit["rank"], &hit["state"]), (&json!(1), &json!("live")), "{hit}");
    has(&hit, &["id", "reason", "score", "least", "signals"]);
    let miss = sandbox.document(&["search", "pottery class", "--mode", "text", "--why", "far"]);
    assert!(miss["rank"].is_null() && miss["reason"].as_str().unwrap().len() > 3, "{miss}");
    let filtered = sandbox.document(&["search", "pottery", "--filter", "{\"pinned\":true}", "--why", "t1"]);
    assert!(filtered["rank"].is_null() && filtered["reason"] != miss["reason"], "{filtered}");
    let (kind, _) = sandbox.run(&["search", "pottery", "--why", "nobody"]).error();
    assert_eq!(kind, "NotFound");
}

#[test]
fn diversity_prefers_what_says_something_else() {
    let sandbox = Sandbox::new();
    let lines: String = [
        ("a", "the gateway restarted at noon"),
        ("b", "the gateway restarted at noon again"),
        ("c", "the gateway was replaced by a router"),
    ]
    .iter()
    .map(|(key, text)| format!("{}\n", json!({"key": key, "text": text})))
    .collect();
    sandbox.write("m.jsonl", lines);
    sandbox.document(&["import", "m.jsonl"]);
    let query = ["search", "gateway restarted noon", "-k", "2"];
    let near = sandbox.document(&query);
    assert!(keys(&near).iter().all(|key| ["a", "b"].contains(key)), "{near}");
    let diverse = sandbox.document(&[&query[..], &["--diversity", "0.9"]].concat());
    assert!(keys(&diverse).contains(&"c"), "{diverse}");
    let (kind, message) = sandbox.run(&["search", "gateway", "--diversity", "1.5"]).error();
    assert!(kind == "Invalid" && message.contains("diversity"), "{message}");
}

#[test]
fn a_deadline_cuts_a_query_and_says_so() {
    let sandbox = talk();
    let whole = sandbox.document(&["search", "pottery class", "--deadline", "1h"]);
    assert_eq!((&whole["plan"]["partial"], keys(&whole)[0]), (&json!(false), "t1"));
    let cut = sandbox.document(&["search", "pottery class", "--deadline", "0s"]);
    assert_eq!((&cut["plan"]["partial"], &cut["hits"]), (&json!(true), &json!([])));
    sandbox.write("q.jsonl", "{\"query\":\"pottery class\"}\n");
    for (deadline, partial, first) in [("1h", false, json!("t1")), ("0s", true, Value::Null)] {
        let answer = sandbox.document(&["search", "--queries", "q.jsonl", "--deadline", deadline]);
        assert_eq!((&answer["partial"], &answer["keys"][0]), (&json!(partial), &first));
    }
    let (kind, message) = sandbox.run(&["search", "pottery", "--deadline", "soon"]).error();
    assert!(kind == "Invalid" && message.contains("--deadline"), "{message}");
}

#[test]
fn a_briefing_begins_with_what_is_pinned_and_keeps_to_its_budget() {
    let sandbox = talk();
    let all = sandbox.document(&["briefing"]);
    let items = all["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["key"], &items[0]["pinned"]), (5, &json!("other"), &json!(true)));
    let worth: Vec<f64> = items[1..].iter().map(|item| item["score"].as_f64().unwrap()).collect();
    assert!(worth.is_sorted_by(|a, b| a >= b), "{worth:?}");
    let least = sandbox.document(&["briefing", "--max-tokens", "0"]);
    assert_eq!(least["items"].as_array().unwrap().len(), 1, "pinned ones are never cut");
    let packed = sandbox.document(&["search", "Ann Ben pottery Friday", "--max-tokens", "12"]);
    let bytes: usize =
        packed["hits"].as_array().unwrap().iter().map(|hit| hit["text"].as_str().unwrap().len()).sum();
    assert!(bytes > 0 && bytes <= 48, "{packed}");
}

#[test]
fn a_database_is_made_for_an_embedder_and_moves_to_another() {
    let sandbox = Sandbox::new();
    let init = sandbox.document(&["init", "--embedder", "hash"]);
    assert_eq!((&init["dim"], init["embedder"].as_str().unwrap().starts_with("hash")), (&json!(256), true));
    sandbox.document(&["add", "Ann lives in Ghent", "--key", "ann"]);
    sandbox.document(&["add", "Ben sails on Sundays", "--key", "ben"]);
    let (kind, message) = sandbox.run(&["--embedder", "static-mini", "search", "Ann"]).error();
    assert!(kind == "OtherSpace" && message.contains("hash"), "{kind}: {message}");
    let done = sandbox.document(&["reembed", "static-mini"]);
    assert_eq!(
        (&done["changed"], &done["filled"], &done["skipped"]),
        (&json!(2), &json!(0), &json!(0)),
        "{done}"
    );
    let found = sandbox.document(&["search", "where is Ann's home", "--mode", "vector"]);
    assert_eq!(keys(&found)[0], "ann");
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

#[test]
fn an_embedder_has_the_argument_that_the_help_shows() {
    let sandbox = Sandbox::new();
    sandbox.document(&["init", "--embedder", "none"]);
    let names = "static-mini, hash, minilm:FOLDER, minilm-int8:FOLDER, openai:MODEL:DIM or none";
    for wrong in ["word2vec", "hash:256", "minilm", "minilm:", "openai", "none:x"] {
        let (kind, message) = sandbox.run(&["reembed", wrong]).error();
        assert_eq!((kind.as_str(), message), ("Invalid", format!("embedder: must be {names} (got {wrong})")));
    }
}

#[test]
fn evaluation_by_text_tells_the_share_of_the_evidence() {
    let sandbox = talk();
    let questions = [
        json!({"question": "which pottery class was booked?", "evidence": ["t1"]}),
        json!({"question": "who paints boats?", "evidence": ["far", "nowhere"]}),
        json!({"question": "who sings?"}),
    ];
    sandbox.write("q.jsonl", questions.map(|line| format!("{line}\n")).concat());
    let told = sandbox.document(&["eval", "--text", "--queries", "q.jsonl"]);
    for mode in ["hybrid", "vector", "text"] {
        has(&told[mode], &["evidence_recall", "queries", "p50_us", "p95_us"]);
        assert_eq!(told[mode]["queries"], 2, "one line has no evidence");
        let share = told[mode]["evidence_recall"]["5"].as_f64().unwrap();
        assert!((share - 0.75).abs() < 1e-6, "one of the memories that are named is nowhere: {told}");
    }
    assert_eq!((&told["without_evidence"], &told["unknown_evidence"]), (&json!(1), &json!(1)));
    // People are told which name is wrong, and which questions fail.
    let answer = sandbox.plain(&["--db", "m.oub", "eval", "--text", "--queries", "q.jsonl", "-v"], b"");
    let remarks = answer.err;
    assert_eq!(answer.code, 0);
    assert!(
        remarks.contains("1 name of evidence leads to no memory, so no search finds it: nowhere"),
        "{remarks}"
    );
    assert!(remarks.contains("line 2: text does not find all among "), "{remarks}");
    assert!(!remarks.contains("line 1: "), "{remarks}");
}

#[test]
fn a_line_of_queries_is_read_strictly() {
    let sandbox = talk();
    let refused = |line: &str| {
        sandbox.write("q.jsonl", format!("{line}\n"));
        let answer = sandbox.run(&["search", "--queries", "q.jsonl"]);
        assert_eq!(answer.code, 1, "{answer:?}");
        answer.error().1
    };
    for (line, why) in [
        (r#"{"query":"x","min_scor":1}"#, "line 1: min_scor: is no member of a query; min_score is"),
        (r#"{"query":"x","max_tokens":9}"#, "line 1: max_tokens: is an option of one search"),
        (r#"{"query":"x","vector":[1,0]}"#, "line 1: vector: "),
        (r#"{"query":5}"#, "line 1: query: "),
        (r#"{"query":"x","k":"many"}"#, "line 1: k: "),
        (r#"{"query":"x","query":"y"}"#, "line 1: "),
        (r#"{"query":"x","diversity":2}"#, "line 1: diversity: "),
    ] {
        let told = refused(line);
        assert!(told.starts_with(why), "{line}: {told}");
    }
    // What belongs to the caller is left aside, as before.
    sandbox.write("q.jsonl", "{\"id\":\"q1\",\"question\":\"pottery\",\"category\":2,\"diversity\":0.5}\n");
    assert_eq!(sandbox.run(&["search", "--queries", "q.jsonl"]).code, 0);
}

#[test]
fn an_empty_answer_says_why_it_is_empty() {
    let sandbox = talk();
    for (flags, why) in [
        (&["--min-score", "9"][..], "no hit has a score of 9 or more"),
        (&["--offset", "900"], "fewer hits than --offset skips"),
        (&["--max-tokens", "1"], "more than 1 token"),
        (&[], "try other words"),
    ] {
        let words = if flags.is_empty() { "zebra" } else { "pottery class" };
        let all = [&["--db", "m.oub", "search", words, "--mode", "text"], flags].concat();
        let told = sandbox.plain(&all, b"");
        assert!(told.out.contains(why), "{flags:?}: {told:?}");
    }
}

#[test]
fn the_table_of_a_search_shows_the_neighbours() {
    let sandbox = talk();
    let all =
        ["--db", "m.oub", "search", "which pottery class", "--mode", "text", "-k", "1", "--around", "1"];
    let told = sandbox.plain(&all, b"");
    assert!(told.out.contains("+1 t2"), "{told:?}");
}

#[test]
fn refusals_name_the_flag_and_the_place() {
    let sandbox = talk();
    let refused = |arguments: &[&str], why: &str| {
        let (_, message) = sandbox.run(arguments).error();
        assert!(message.starts_with(why), "{arguments:?}: {message}");
    };
    refused(&["events", "--from", "x"], "--from: ");
    refused(&["events", "--to", "x"], "--to: ");
    refused(&["maintain", "collapse", "--samples", "10001"], "--samples: ");
    refused(&["index", "add", "metadata.speaker"], "key: must be named without metadata.");
    refused(&["distinct", "metadata.speaker"], "key: must be named without metadata.");
    let (_, message) = sandbox.run(&["search", "x", "--filter", "{\"tier\":\"working\",}"]).error();
    assert!(message.contains("at line 1 column 19"), "{message}");
}

#[test]
fn undo_finds_the_run_and_says_when_it_is_taken_back_already() {
    let sandbox = Sandbox::new();
    sandbox.write("in.jsonl", "{\"key\":\"a\",\"text\":\"one\"}\n");
    let run = sandbox.document(&["import", "in.jsonl", "--into", "team"])["run"].as_str().unwrap().to_owned();
    let done = sandbox.document(&["undo", &run]);
    assert_eq!((&done["removed"], &done["already"]), (&json!(1), &json!(false)));
    assert_eq!(sandbox.document(&["undo", &run])["already"], true);
    let told = sandbox.plain(&["--db", "m.oub", "undo", &run], b"");
    assert!(told.out.starts_with(&format!("The run {run} is taken back already")), "{told:?}");
    let unknown = "01a2b3c4-0000-7000-8000-000000000000";
    assert_eq!(sandbox.run(&["undo", unknown]).error().0, "NotFound");
    assert_eq!(sandbox.run(&["undo", &run, "--namespace", "other"]).error().0, "NotFound");
}
