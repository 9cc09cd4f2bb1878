//! What questions find when old turns of conversations have made room for summaries: `oubliette eval --gc` for each share,
//! budget and writer of summaries, as a table.
//!
//! `cargo bench --bench recall_after_gc --features cli` reads the LoCoMo conversations from the folder in `OUBLIETTE_DATA`, or from
//! `../shared/data`, and skips without them. A path behind `--` is where the plot goes.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench prints and may panic"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

const SHARES: [&str; 4] = ["0.25", "0.5", "0.75", "0.9"];
const BUDGETS: [&str; 3] = ["0.1", "0.2", "0.4"];
/// The writers that are drawn, at a budget of 0.2: the name, what the plot calls it, and its colour.
const DRAWN: [(&str, &str, &str); 4] = [
    ("builtin", "built-in", "#0b62a4"),
    ("observations", "given observations", "#4d8c2b"),
    ("first", "first sentences", "#b8860b"),
    ("random", "random sentences", "#a33a2a"),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to see that it starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let Some(data) = data() else {
        println!("skipped: no ../shared/data and no OUBLIETTE_DATA");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (memories, questions) = (folder.path().join("memories.jsonl"), folder.path().join("questions.jsonl"));
    std::fs::write(&memories, turns(&data)).unwrap();
    std::fs::write(&questions, asked(&data)).unwrap();
    let database = folder.path().join("memory.oub");
    run(&database, &["import", memories.to_str().unwrap()]);
    let facts = data.join("locomo_dev_observations.jsonl");
    let mut rows = Vec::new();
    let mut before = Value::Null;
    for writer in ["builtin", "first", "random", facts.to_str().unwrap()] {
        // Facts have their own length.
        let budgets = if writer == facts.to_str().unwrap() { &BUDGETS[1..2] } else { &BUDGETS[..] };
        let mut arguments =
            vec!["eval", "--gc", "--queries", questions.to_str().unwrap(), "--summarizer", writer];
        arguments.extend(SHARES.iter().flat_map(|share| ["--share", share]));
        arguments.extend(budgets.iter().flat_map(|budget| ["--budget", budget]));
        let told = run(&database, &arguments);
        before = told["before"].clone();
        rows.extend(told["shares"].as_array().unwrap().iter().cloned());
    }
    for row in &mut rows {
        if row["summarizer"] == json!(facts.to_str().unwrap()) {
            row["summarizer"] = json!("observations");
        }
    }
    println!("{}", table(&before, &rows));
    if let Some(plot) = arguments.iter().find(|argument| !argument.starts_with("--")) {
        std::fs::write(plot, drawn(&before, &rows)).unwrap();
    }
}

fn data() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let named = std::env::var_os("OUBLIETTE_DATA").map(PathBuf::from);
    named.into_iter().chain([beside]).find(|folder| folder.join("locomo_dev_memories.jsonl").is_file())
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The turns as memories: a namespace for each conversation, a thread for each session.
fn turns(data: &Path) -> String {
    let line = |turn: Value| {
        let at = format!("{}Z", turn["timestamp"].as_str().unwrap());
        let memory = json!({
            "key": turn["id"], "namespace": turn["conversation"], "kind": "message", "text": turn["content"],
            "thread": format!("session-{}", turn["session"]), "created_at": at, "happened_at": at,
        });
        format!("{memory}\n")
    };
    lines(&data.join("locomo_dev_memories.jsonl")).into_iter().map(line).collect()
}

/// The questions that something answers.
fn asked(data: &Path) -> String {
    let all = lines(&data.join("locomo_dev_questions.jsonl")).into_iter();
    let answered = all.filter(|question| !question["evidence"].as_array().unwrap().is_empty());
    let line = |question: Value| {
        let (query, namespace) = (&question["question"], &question["conversation"]);
        let asked = json!({ "query": query, "namespace": namespace, "evidence": question["evidence"] });
        format!("{asked}\n")
    };
    answered.map(line).collect()
}

fn run(database: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oubliette"));
    let done = command.arg("--json").arg("--db").arg(database).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap()
}

fn table(before: &Value, rows: &[Value]) -> String {
    let head = "| summaries by | asked for | got | compacted | summaries | by source | of before | by text | of before | tokens of ten hits | \
                file |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    let mut text = head.to_owned();
    let [source, by_text] = ["by_source", "by_text"].map(|name| number(before, name));
    let (tokens, bytes) = (number(before, "tokens"), number(before, "file_bytes") / 1e6);
    writeln!(
        text,
        "| before | – | – | 0 % | 0 | {source:.3} | 1 | {by_text:.3} | 1 | {tokens:.0} | {bytes:.2} MB |"
    )
    .unwrap();
    for row in rows {
        let writer = row["summarizer"].as_str().unwrap();
        let budget = match writer {
            "observations" => "–".to_owned(),
            _ => format!("{:.0} %", number(row, "budget") * 100.0),
        };
        writeln!(
            text,
            "| {writer} | {budget} | {:.0} % | {:.0} % | {} | {:.3} | {:.2} | {:.3} | {:.2} | {:.0} | {:.2} MB |",
            number(row, "summary_tokens") / number(row, "source_tokens") * 100.0,
            number(row, "share") * 100.0,
            row["summaries"],
            number(row, "by_source"),
            number(row, "by_source") / source,
            number(row, "by_text"),
            number(row, "by_text") / by_text,
            number(row, "tokens"),
            number(row, "file_bytes") / 1e6,
        )
        .unwrap();
    }
    text
}

/// Recall as a share of that before, by the share that was compacted: by source dashed, by text drawn through.
fn drawn(before: &Value, rows: &[Value]) -> String {
    let x = |share: f64| 60.0 + share * 480.0;
    let y = |ratio: f64| 20.0 + (1.05 - ratio) * 340.0 / 0.85;
    let mut svg = String::from(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="760" height="420" font-family="sans-serif" font-size="13">
<rect width="760" height="420" fill="white"/>
"##,
    );
    for step in 2..=10 {
        let at = y(f64::from(step) / 10.0);
        writeln!(
            svg,
            r##"<path d="M60 {at:.1}H540" stroke="#ddd"/><text x="26" y="{:.1}">{:.1}</text>"##,
            at + 4.0,
            f64::from(step) / 10.0
        )
        .unwrap();
    }
    for share in [0.0, 0.25, 0.5, 0.75, 0.9] {
        writeln!(svg, r##"<text x="{:.1}" y="384">{:.0} %</text>"##, x(share) - 12.0, share * 100.0).unwrap();
    }
    for (at, (writer, name, colour)) in (0_u32..).zip(DRAWN) {
        for (measure, dash) in [("by_source", "5 4"), ("by_text", "none")] {
            let mut path = format!("M{:.1} {:.1}", x(0.0), y(1.0));
            for row in rows.iter().filter(|row| row["summarizer"] == writer && number(row, "budget") == 0.2) {
                let ratio = number(row, measure) / number(before, measure);
                write!(path, " L{:.1} {:.1}", x(number(row, "share")), y(ratio)).unwrap();
            }
            writeln!(svg, r##"<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>"##)
                .unwrap();
        }
        writeln!(svg, r##"<text x="556" y="{}" fill="{colour}">{name}</text>"##, 60 + at * 22).unwrap();
    }
    svg.push_str(
        r##"<text x="556" y="170">dashed: by source</text><text x="556" y="192">drawn through: by text</text>
<text x="60" y="408">share of the turns that made room for summaries with 20 % of their tokens; recall among ten as a share of that before</text>
</svg>
"##,
    );
    svg
}
