//! The story as a page for people.

use serde_json::Value;

use crate::output::{Done, Output, plain};

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
pub(super) fn show(document: &Value, output: Output<'_>) -> Done {
    let steps = document.get("steps").and_then(Value::as_array).into_iter().flatten();
    output.line("What happened")?;
    output.table(&["step", "what became of it"], steps.map(|step| vec![text(step, "step"), told(step)]))?;
    for step in document.get("steps").and_then(Value::as_array).into_iter().flatten() {
        match text(step, "step").as_str() {
            "collapse" => show_reports(step, output)?,
            "supersede" => show_answers(step, output)?,
            _ => {}
        }
    }
    output.line("\n150 questions in words, asked four times")?;
    let sides =
        ["before", "forgotten", "after", "summarized"].map(|side| document.get(side).unwrap_or(&Value::Null));
    let row = |(member, name): &(&str, &str)| {
        let figures = sides.iter().map(|side| text(side, member));
        std::iter::once((*name).to_owned()).chain(figures).collect::<Vec<_>>()
    };
    output.table(
        &["", "before", "after forgetting", "after compaction", "half in summaries"],
        ROWS.iter().map(row),
    )?;
    let timing = document.get("timing").unwrap_or(&Value::Null);
    output.line(&format!(
        "\nmedian search: {} µs before, {} µs after; all of it took {} ms",
        text(timing, "before_p50_us"),
        text(timing, "after_p50_us"),
        text(timing, "total_ms"),
    ))
}

/// What became of operational reports: what was merged, and what was kept apart and why.
fn show_reports(step: &Value, output: Output<'_>) -> Done {
    let of = |name: &str| step.get(name).and_then(Value::as_array).into_iter().flatten();
    let one_line = |value: &Value| plain(value).replace('\n', " ");
    output.line("\nReports that were the same but for their figures; the largest groups")?;
    let sample = |sample: &Value| {
        let gone = sample.get("duplicateSummaries").and_then(|all| all.get(0)).unwrap_or(&Value::Null);
        let stays = one_line(sample.get("canonicalSummary").unwrap_or(&Value::Null));
        vec![text(sample, "groupSize"), stays, one_line(gone)]
    };
    output.table(&["reports", "stays", "goes into it, for one"], of("samples").map(sample))?;
    output.line("\nNear, and kept apart by a guard")?;
    let pair = |pair: &Value| {
        let side = |name: &str| one_line(pair.get(name).unwrap_or(&Value::Null));
        vec![side("text"), side("near"), text(pair, "guard")]
    };
    output.table(&["report", "near", "guard"], of("guarded").map(pair))?;
    output.line("\nAlone: no other report says the same")?;
    output.table(&["report"], of("alone").map(|report| vec![one_line(report)]))
}

/// What a question is answered with at two instants, between which a report has taken the place of another.
fn show_answers(step: &Value, output: Output<'_>) -> Done {
    let answers = step.get("answers").and_then(Value::as_array).into_iter().flatten();
    output.line(&format!("\n{}: what was true then", text(step, "asked")))?;
    let row = |answer: &Value| vec![text(answer, "at"), text(answer, "text").replace('\n', " ")];
    output.table(&["at", "answer"], answers.map(row))
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
        "collapse" => format!(
            "{} reports, {} of them operational; {} groups, {} reports went into others, {} are left, {} near \
             pairs were kept apart by a guard",
            get("reports"),
            get("operational"),
            get("groups"),
            get("removed"),
            get("left"),
            get("kept_apart")
        ),
        "undo" => format!("{} reports came back, {} could not", get("restored"), get("lost")),
        "collapse_again" => format!("{} reports went again", get("removed")),
        "forget" => format!(
            "by {}: {} memories gone, {} writes gone whose text another still holds",
            get("by"),
            get("forgotten"),
            get("detached")
        ),
        "supersede" => {
            "a report took the place of an earlier one, which still answers for its own time".to_owned()
        }
        "expire" => format!(
            "a report with a life of {} was {} before its end and {} after it; maintenance took {} away",
            get("life"),
            found(step, "found_before"),
            found(step, "found_after"),
            get("removed")
        ),
        "summarize" => format!(
            "{} summaries stand for {} memories, {} tokens in place of {}",
            get("summaries"),
            get("memories"),
            get("tokens_after"),
            get("tokens_before")
        ),
        "compact" => format!("{} bytes before, {} after", get("bytes_before"), get("bytes_after")),
        "check" => {
            let searched = get("erased_memories_searched_for");
            match step.get("ok").and_then(Value::as_bool) {
                Some(true) => {
                    format!("every invariant holds; no byte of {searched} forgotten memories is in the file")
                }
                _ => format!(
                    "something is wrong, in the rows or in the bytes of {searched} forgotten memories"
                ),
            }
        }
        _ => String::new(),
    }
}

fn found(step: &Value, name: &str) -> &'static str {
    if step.get(name) == Some(&Value::Bool(true)) { "found" } else { "not found" }
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
