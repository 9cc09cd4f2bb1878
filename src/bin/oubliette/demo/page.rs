//! The story as a page for people.

use serde_json::Value;

use crate::output::{self, Done, plain};

/// Rows of the table of both sides: the member, and what it is called.
const ROWS: [(&str, &str); 8] = [
    ("memories", "memories"),
    ("writes_held", "writes that they stand for"),
    ("answers", "answers that are left to find"),
    ("answers_found", "of them among the first 10"),
    ("answer_recall_at_10", "recall of the answers"),
    ("recall_at_10_of_exact_scan", "recall@10 against an exact scan"),
    ("dead_returned", "forgotten memories returned"),
    ("bytes", "bytes of the file"),
];

/// Shows it.
pub(super) fn show(document: &Value) -> Done {
    let steps = document.get("steps").and_then(Value::as_array).into_iter().flatten();
    output::line("What happened")?;
    output::table(&["step", "what became of it"], steps.map(|step| vec![text(step, "step"), told(step)]))?;
    output::line("\n150 questions, asked three times")?;
    let sides = ["before", "forgotten", "after"].map(|side| document.get(side).unwrap_or(&Value::Null));
    let row = |(member, name): &(&str, &str)| {
        let figures = sides.iter().map(|side| text(side, member));
        std::iter::once((*name).to_owned()).chain(figures).collect::<Vec<_>>()
    };
    output::table(&["", "before", "after forgetting", "after compaction"], ROWS.iter().map(row))?;
    let timing = document.get("timing").unwrap_or(&Value::Null);
    output::line(&format!(
        "\nmedian search: {} µs before, {} µs after; all of it took {} ms",
        text(timing, "before_p50_us"),
        text(timing, "after_p50_us"),
        text(timing, "total_ms"),
    ))
}

/// One step in words.
fn told(step: &Value) -> String {
    let get = |name: &str| text(step, name);
    match get("step").as_str() {
        "import" => format!("{} memories read, {} stored", get("read"), get("stored")),
        "repeat" => format!(
            "{} writes repeat a text word for word: {} absorbed, {} stored",
            get("written"),
            get("reinforced"),
            get("stored")
        ),
        "forget" => format!(
            "by {}: {} memories gone, {} writes gone whose text another still holds",
            get("by"),
            get("forgotten"),
            get("detached")
        ),
        "compact" => format!("{} bytes before, {} after", get("bytes_before"), get("bytes_after")),
        "check" => format!(
            "{}; no byte of {} forgotten memories is in the file: {}",
            if get("ok") == "true" { "every invariant holds" } else { "something is wrong" },
            get("erased_memories_searched_for"),
            get("ok")
        ),
        _ => String::new(),
    }
}

fn text(document: &Value, name: &str) -> String {
    match document.get(name) {
        Some(Value::Number(number)) if number.is_f64() => {
            format!("{:.3}", number.as_f64().unwrap_or_default())
        }
        Some(value) => plain(value),
        None => String::new(),
    }
}
