//! The vector index: graphs of partitions that are large by the policy, their upkeep, and what is shown of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sandbox::{Sandbox, has};

const ROWS: usize = 300;
const DIM: usize = 16;
const QUERIES: usize = 40;
/// A partition of more than 50 vectors gets a graph, one of less than 35 loses it.
const POLICY: &str = "[index]\nscan_max = 4000\ntail_min = 10\n";

/// Vectors around some centres, the same in each run.
fn vectors(rows: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut state = seed;
    let mut number = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let centres: Vec<Vec<f32>> = (0..8).map(|_| (0..DIM).map(|_| number()).collect()).collect();
    (0..rows).map(|row| centres[row % 8].iter().map(|centre| centre + 0.7 * number()).collect()).collect()
}

fn npy(sandbox: &Sandbox, name: &str, vectors: &[Vec<f32>]) {
    let rows: Vec<&[f32]> = vectors.iter().map(Vec::as_slice).collect();
    sandbox.npy(name, &rows);
}

/// Imports memories `k0`, `k1` … that are scanned as a whole, then stores the policy that asks for a graph.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    let lines: String = (0..ROWS)
        .map(|row| {
            format!("{{\"key\":\"k{row}\",\"text\":\"memory {row}\",\"tags\":[\"mod{}\"]}}\n", row % 3)
        })
        .collect();
    sandbox.write("rows.jsonl", lines);
    npy(&sandbox, "rows.npy", &vectors(ROWS, 1));
    npy(&sandbox, "q.npy", &vectors(QUERIES, 2));
    sandbox.write("q.jsonl", "{}\n".repeat(QUERIES));
    sandbox.write("policy.toml", POLICY);
    let import = sandbox.document(&["import", "rows.jsonl", "--vectors", "rows.npy"]);
    assert_eq!(import["stored"], ROWS);
    sandbox.document(&["policy", "set", "policy.toml"]);
    sandbox
}

/// The same, with its graph built.
fn linked() -> Sandbox {
    let sandbox = filled();
    assert_eq!(sandbox.document(&["maintain"])["passes"][0]["left"], 0);
    sandbox
}

fn stats(sandbox: &Sandbox) -> Value {
    sandbox.document(&["stats"])["vectors"].clone()
}

fn eval(sandbox: &Sandbox, more: &[&str]) -> Value {
    sandbox.document(&[&["eval", "--queries", "q.jsonl", "--vectors", "q.npy"], more].concat())
}

/// The keys that each query finds.
fn answers(sandbox: &Sandbox, more: &[&str]) -> Vec<Value> {
    let answer = sandbox.run(&[&["search", "--queries", "q.jsonl", "--vectors", "q.npy"], more].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["keys"].clone()).collect()
}

/// That every search finds what there is, and nothing else.
#[track_caller]
fn sound(sandbox: &Sandbox, live: usize) {
    let recall = |more: &[&str]| eval(sandbox, more)["recall_at_k"].as_f64().unwrap();
    assert!(recall(&[]) >= 0.95, "{}", recall(&[]));
    assert_eq!(recall(&["--exact"]), 1.0);
    // A walk with room for every vector comes to every one.
    assert_eq!(answers(sandbox, &["--ef", "300"]), answers(sandbox, &["--exact"]));
    let all = answers(sandbox, &["--ef", "300", "-k", "300"]);
    for keys in all {
        assert_eq!(keys.as_array().unwrap().len(), live);
    }
    assert_eq!(sandbox.document(&["check", "--deep"])["ok"], true);
}

fn write_keys(sandbox: &Sandbox, rows: impl Iterator<Item = usize>) {
    sandbox.write("keys", rows.map(|row| format!("k{row}\n")).collect::<String>());
}

#[test]
fn a_graph_is_built_kept_up_and_built_anew() {
    let sandbox = filled();
    assert_eq!(stats(&sandbox)["regime"], "exact");
    let maintain = sandbox.document(&["maintain", "index"]);
    assert_eq!((&maintain["passes"][0]["changed"], &maintain["passes"][0]["left"]), (&json!(300), &json!(0)));
    let vectors = stats(&sandbox);
    assert_eq!((&vectors["regime"], &vectors["in_graph"]), (&json!("graph"), &json!(300)));
    sound(&sandbox, 300);
    write_keys(&sandbox, (0..ROWS).filter(|row| row % 3 == 0));
    assert_eq!(sandbox.document(&["forget", "--keys", "keys", "--yes"])["forgotten"], 100);
    let vectors = stats(&sandbox);
    assert_eq!((&vectors["live"], &vectors["dead"]), (&json!(200), &json!(100)));
    sound(&sandbox, 200);
    let repair = &sandbox.document(&["maintain", "repair"])["passes"][0];
    assert_eq!((&repair["planned"], &repair["changed"]), (&json!(100), &json!(100)));
    let vectors = stats(&sandbox);
    assert_eq!((&vectors["dead"], &vectors["in_graph"]), (&json!(0), &json!(200)));
    sound(&sandbox, 200);
    let reindex = sandbox.document(&["reindex"]);
    has(&reindex, &["vectors", "bytes_before", "bytes_after"]);
    assert_eq!(reindex["vectors"], 200);
    let vectors = stats(&sandbox);
    assert_eq!(
        (&vectors["regime"], &vectors["in_graph"], &vectors["dead"], &vectors["tail"]),
        (&json!("graph"), &json!(200), &json!(0), &json!(0))
    );
    sound(&sandbox, 200);
    write_keys(&sandbox, (0..ROWS - 20).filter(|row| row % 3 != 0));
    sandbox.document(&["forget", "--keys", "keys", "--yes"]);
    sandbox.document(&["maintain"]);
    assert_eq!(stats(&sandbox)["regime"], "exact", "14 vectors need no graph");
    sound(&sandbox, 14);
}

#[test]
fn maintain_tells_what_it_did_and_stops_where_it_is_told() {
    let sandbox = filled();
    let planned = sandbox.document(&["maintain", "index", "repair", "--dry-run"]);
    assert_eq!(planned["run"], Value::Null);
    let names: Vec<&Value> = planned["passes"].as_array().unwrap().iter().map(|pass| &pass["pass"]).collect();
    assert_eq!(names, ["index", "repair"]);
    let index = &planned["passes"][0];
    has(
        index,
        &["planned", "scanned", "changed", "tombstoned", "skipped", "left", "resumed", "ms", "report"],
    );
    assert_eq!(
        (&index["planned"], &index["scanned"], &index["changed"], &index["left"]),
        (&json!(300), &json!(300), &json!(0), &json!(300))
    );
    assert_eq!(stats(&sandbox)["regime"], "exact", "it only said so");
    let some = sandbox.document(&["maintain", "index", "--max-rows", "100", "--report", "r.json"]);
    assert_eq!((&some["passes"][0]["changed"], &some["passes"][0]["left"]), (&json!(100), &json!(200)));
    assert!(some["run"].is_string());
    let report = std::fs::read_to_string(sandbox.path("r.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&report).unwrap(), some);
    let vectors = stats(&sandbox);
    assert_eq!((&vectors["in_graph"], &vectors["tail"]), (&json!(100), &json!(200)));
    sound(&sandbox, 300);
    let none = sandbox.document(&["maintain", "index", "repair", "--budget", "0s"]);
    assert_eq!((&none["passes"][0]["changed"], &none["passes"][0]["left"]), (&json!(0), &json!(200)));
    sandbox.document(&["--namespace", "other", "add", "gone at once", "--key", "gone"]);
    sandbox.document(&["--namespace", "other", "forget", "gone", "--yes"]);
    let elsewhere = sandbox.document(&["--namespace", "other", "maintain", "index"]);
    assert_eq!(elsewhere["passes"][0]["planned"], 0, "only the namespace that was named");
    let rest = sandbox.document(&["maintain", "index", "repair", "--budget", "10m", "--threads", "2"]);
    assert_eq!((&rest["passes"][0]["changed"], &rest["passes"][0]["left"]), (&json!(200), &json!(0)));
    let done = sandbox.document(&["maintain", "index", "repair", "--dry-run"]);
    assert_eq!((&done["passes"][0]["planned"], &done["passes"][1]["planned"]), (&json!(0), &json!(0)));
    let by_policy = sandbox.document(&["maintain", "--dry-run"]);
    let names: Vec<&Value> =
        by_policy["passes"].as_array().unwrap().iter().map(|pass| &pass["pass"]).collect();
    assert_eq!(
        names,
        ["fold", "expire", "cap", "superseded", "demote", "limbo", "retention", "index", "repair"],
        "the stages that there are, and the indexes; vectors are the caller's"
    );
    let table = sandbox.plain(&["--db", "m.oub", "maintain"], b"");
    assert!(table.code == 0 && table.out.contains("repair"), "{table:?}");
    let table = sandbox.plain(&["--db", "m.oub", "-v", "stats"], b"");
    for name in ["vectors.regime", "vectors.in_graph", "vectors.tail"] {
        assert!(table.out.contains(name), "{name} is not in {}", table.out);
    }
}

#[test]
fn a_policy_of_one_call_decides_the_regime() {
    let sandbox = linked();
    sandbox.write("scan.toml", "");
    let dropped = sandbox.document(&["--policy", "scan.toml", "maintain", "index"]);
    assert_eq!(dropped["passes"][0]["report"]["dropped"], 1);
    assert_eq!(stats(&sandbox)["regime"], "exact");
    sandbox.document(&["--policy", "policy.toml", "maintain"]);
    assert_eq!(stats(&sandbox)["regime"], "graph");
}

#[test]
fn a_search_is_as_thorough_as_it_is_told() {
    let sandbox = linked();
    let search = |more: &[&str]| {
        sandbox.document(&[&["search", "--vector-file", "q.npy", "--explain"], more].concat())
    };
    let plan = search(&[])["plan"].clone();
    has(&plan, &["partitions", "scanned", "walked", "ef", "ranked", "regime", "filter", "tested", "pending"]);
    assert_eq!((&plan["regime"], &plan["scanned"]), (&json!("graph"), &json!(0)));
    assert!(plan["walked"].as_u64() > Some(0), "{plan}");
    assert_eq!(search(&["--ef", "77"])["plan"]["ef"], 77);
    assert_eq!(search(&["--ef", "2", "-k", "5"])["plan"]["ef"], 5, "raised to k");
    let ef = |recall| search(&["--recall", recall])["plan"]["ef"].as_u64().unwrap();
    assert!(ef("0.5") <= ef("0.999"));
    let exact = search(&["--exact"]);
    assert_eq!(
        (&exact["plan"]["regime"], &exact["plan"]["walked"], &exact["plan"]["scanned"]),
        (&json!("codes"), &json!(0), &json!(300))
    );
    let filter = r#"{"tags":{"$nin":["mod1"]}}"#;
    let filtered = search(&["--filter", filter, "--ef", "300"]);
    assert!(filtered["plan"]["tested"].as_u64() > Some(0) && filtered["plan"]["filter"] != "", "{filtered}");
    assert_eq!(filtered["hits"], search(&["--filter", filter, "--exact"])["hits"]);
    let named = search(&["--filter", r#"{"tags":{"$in":["mod1"]}}"#]);
    assert_eq!((&named["plan"]["regime"], &named["plan"]["filter"]), (&json!("rows"), &json!("names")));
    let told = ["--db", "m.oub", "search", "--vector-file", "q.npy", "--explain"];
    assert!(sandbox.plain(&told, b"").out.contains("looked at on a walk through the graph"));
    let table = sandbox.plain(&[&["-v"], &told[..]].concat(), b"");
    assert!(table.out.contains("plan.walked"), "{table:?}");
}

#[test]
fn each_query_may_say_how_thorough_it_is() {
    let sandbox = linked();
    let lines = [r#"{"exact":true}"#, r#"{"ef":300}"#, r#"{"recall":0.9,"exact":false}"#, "{}"];
    sandbox.write("q.jsonl", lines.map(|line| format!("{line}\n")).concat());
    npy(&sandbox, "q.npy", &vec![vectors(1, 3).concat(); 4]);
    let answers = answers(&sandbox, &["--exact"]);
    assert_eq!((&answers[0], &answers[0]), (&answers[1], &answers[3]));
    let document = eval(&sandbox, &["--exact"]);
    assert_eq!((&document["ef"], &document["effort"]), (&json!(300), &json!({ "exact": true })));
    assert!(document["walked"].as_f64().unwrap() > 0.0, "{document}");
}

#[test]
fn eval_measures_the_graph_against_a_scan() {
    let sandbox = linked();
    let document = eval(&sandbox, &[]);
    has(&document, &["recall_at_k", "queries", "p50_us", "p95_us", "p99_us", "exact_p50_us"]);
    assert_eq!(document["effort"], json!({ "recall": 0.999 }));
    assert_eq!((&document["regime"], &document["in_graph"]), (&json!("graph"), &json!(300)));
    assert_eq!((&document["tail"], &document["scanned"]), (&json!(0), &json!(0.0)));
    assert!(document["walked"].as_f64().unwrap() > 0.0 && document["ef"].as_u64() > Some(0), "{document}");
    let narrow = eval(&sandbox, &["--ef", "1", "-k", "1"]);
    let wide = eval(&sandbox, &["--ef", "300", "-k", "1"]);
    assert_eq!((&narrow["effort"], &wide["recall_at_k"]), (&json!({ "ef": 1 }), &json!(1.0)));
    assert!(narrow["walked"].as_f64() < wide["walked"].as_f64(), "{narrow} {wide}");
    assert!(narrow["recall_at_k"].as_f64().unwrap() < 1.0, "a list of one does not find all: {narrow}");
    // The figures are those of the namespaces of the queries.
    let elsewhere = eval(&sandbox, &["--namespace", "nobody"]);
    assert_eq!((&elsewhere["live"], &elsewhere["regime"]), (&json!(0), &json!("exact")));
    sandbox.write("q.jsonl", "{\"namespace\":\"default\"}\n".repeat(QUERIES));
    let named = eval(&sandbox, &["--namespace", "nobody"]);
    assert_eq!((&named["live"], &named["in_graph"]), (&json!(300), &json!(300)));
    let exact = eval(&sandbox, &["--exact"]);
    assert_eq!((&exact["walked"], &exact["scanned"]), (&json!(0.0), &json!(300.0)));
}

#[test]
fn model_30_erasing_leaves_no_code_of_a_dead_node() {
    let sandbox = linked();
    sandbox.document(&["export", "before.jsonl"]);
    let lines = std::fs::read_to_string(sandbox.path("before.jsonl")).unwrap();
    let gone: String =
        lines.lines().filter(|line| line.contains("mod0")).map(|line| format!("{line}\n")).collect();
    sandbox.write("gone.jsonl", gone);
    write_keys(&sandbox, (0..ROWS).filter(|row| row % 3 == 0).skip(1));
    sandbox.document(&["forget", "--keys", "keys", "--yes"]);
    assert_eq!(stats(&sandbox)["dead"], 99);
    assert_eq!(sandbox.run(&["check", "--erased", "gone.jsonl"]).code, 3);
    sandbox.document(&["forget", "k0", "--erase", "--yes"]);
    let check = sandbox.document(&["check", "--deep", "--erased", "gone.jsonl"]);
    assert_eq!(check["ok"], true);
    let vectors = stats(&sandbox);
    assert_eq!(
        (&vectors["regime"], &vectors["live"], &vectors["dead"]),
        (&json!("graph"), &json!(200), &json!(0))
    );
    sound(&sandbox, 200);
}

/// Turns a byte in the links of every block of a graph that has no vacant slot: version 1, tag 9, no flags, 16 nodes.
fn damage_links(sandbox: &Sandbox) -> usize {
    const HEAD: [u8; 6] = [1, 9, 0, 0, 0xFF, 0xFF];
    let mut bytes = std::fs::read(sandbox.path("m.oub")).unwrap();
    let places: Vec<usize> =
        bytes.windows(HEAD.len()).enumerate().filter(|(_, six)| *six == HEAD).map(|(at, _)| at).collect();
    for place in &places {
        bytes[place + 12] ^= 0x40;
    }
    sandbox.write("m.oub", bytes);
    places.len()
}

#[test]
fn a_damaged_graph_is_found_gone_round_and_healed() {
    let sandbox = linked();
    assert_eq!(sandbox.document(&["stats", "--deep"])["health"]["index_warnings"], json!([]));
    let whole = sandbox.document(&["stats", "--deep"])["indexes"].clone();
    assert_eq!((&whole[0]["regime"], &whole[0]["unreachable"]), (&json!("graph"), &json!(0)), "{whole}");
    assert!(damage_links(&sandbox) >= ROWS / 16);
    let check = sandbox.run(&["check", "--deep"]);
    assert_eq!(check.code, 3, "{check:?}");
    let findings = serde_json::from_str::<Value>(&check.out).unwrap()["findings"].clone();
    let tables: BTreeSet<&str> =
        findings.as_array().unwrap().iter().map(|finding| finding["table"].as_str().unwrap()).collect();
    assert!(tables.contains("graph"), "{findings}");
    let stats = sandbox.document(&["stats", "--deep"]);
    let warnings = stats["health"]["index_warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && warnings[0].as_str().unwrap().contains("shared"), "{stats}");
    assert_eq!(stats["indexes"][0]["regime"], "damaged");
    let found = sandbox.document(&["search", "--vector-file", "q.npy"]);
    assert_eq!((&found["plan"]["regime"], &found["plan"]["scanned"]), (&json!("codes"), &json!(300)));
    assert_eq!(eval(&sandbox, &[])["recall_at_k"], 1.0);
    let skipped = &sandbox.document(&["maintain", "index"])["passes"][0];
    assert_eq!(skipped["changed"], 0, "{skipped}");
    // Damage to an index keeps nobody from forgetting.
    write_keys(&sandbox, 0..30);
    assert_eq!(sandbox.document(&["forget", "--keys", "keys", "--yes"])["forgotten"], 30);
    assert_eq!(sandbox.document(&["reindex"])["vectors"], 270);
    assert_eq!(sandbox.document(&["stats", "--deep"])["health"]["index_warnings"], json!([]));
    let vectors = sandbox.document(&["stats"])["vectors"].clone();
    assert_eq!((&vectors["regime"], &vectors["in_graph"]), (&json!("graph"), &json!(270)));
    sound(&sandbox, 270);
}

#[test]
fn upkeep_needs_a_file_that_can_be_written() {
    let sandbox = linked();
    for command in [&["maintain"][..], &["maintain", "index", "--report", "r.json"], &["reindex"]] {
        let answer = sandbox.run(&[&["--read-only"], command].concat());
        assert_eq!((answer.code, answer.error().0.as_str()), (1, "ReadOnly"), "{command:?}");
        let nowhere = [&["--db", "nowhere.oub", "--json"], command].concat();
        assert_eq!(sandbox.plain(&nowhere, b"").error().0, "NotFound", "{command:?}");
        assert!(!sandbox.path("nowhere.oub").exists() && !sandbox.path("r.json").exists());
    }
    let answer = sandbox.run(&["maintain", "--report", "no/such/r.json"]);
    assert_eq!((answer.code, answer.error().0.as_str()), (1, "Io"));
}
