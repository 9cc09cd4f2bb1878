//! Figures as a person reads them: how a file stands, how a search was answered, why a memory is a hit.

use oubliette::State;
use oubliette::report::{SearchPlan, Signals, Stats, Why};

use crate::output::{Done, Output};
use crate::{story, told};

/// `stats`: what there is, and what takes how much room.
pub(crate) fn stats(stats: &Stats, now: &story::Present, output: Output<'_>) -> Done {
    let memories = &stats.memories;
    let mut rows = vec![("memories", memories.live.to_string())];
    let mut count = |name: &'static str, count: u64| {
        rows.extend((count > 0).then(|| (name, count.to_string())));
    };
    count("not true yet", memories.ahead);
    count("no longer true", memories.past);
    count("superseded", memories.superseded);
    count("expired", memories.expired);
    count("in limbo", memories.limbo);
    count("tombstones, with those of limbo", memories.tombstoned);
    count("waiting for a vector", stats.pending);
    count("say the same as another", stats.health.duplicates_detected);
    count("messages", stats.events);
    count("groups of repeated messages", stats.aggregates);
    count("writes that stored nothing", stats.ignored);
    let bytes = &stats.bytes;
    rows.push(("file", told::size(bytes.file)));
    rows.push(("free pages in it", told::size(bytes.free)));
    let last = stats.health.last_prune.as_ref().map(|at| ("snapshots last pruned", story::date(at, now)));
    rows.extend(last);
    output.table(&[], rows.into_iter().map(|(name, figure)| vec![name.to_owned(), figure]))?;
    let parts = [
        ("namespace", &stats.by_namespace),
        ("part", &stats.by_partition),
        ("kind", &stats.by_kind),
        ("tier", &stats.by_tier),
    ];
    // What all memories have in common is no news.
    let parts = parts.into_iter().filter(|(_, counts)| counts.len() > 1);
    let rows: Vec<Vec<String>> = parts
        .flat_map(|(what, counts)| {
            counts.iter().map(move |(name, count)| vec![what.to_owned(), name.clone(), count.to_string()])
        })
        .collect();
    if !rows.is_empty() {
        output.table(&["by", "name", "memories"], rows)?;
    }
    let health = &stats.health;
    let warnings = health.clock_warning.iter().chain(&health.size_warning).chain(&health.index_warnings);
    warnings.for_each(|warning| output.remark(warning));
    Ok(())
}

/// `search --explain`: how the search was answered, and what it left out.
pub(crate) fn plan(plan: &SearchPlan, took_us: u64, output: Output<'_>) -> Done {
    let by = match plan.mode {
        "vector" => "by vectors",
        "text" => "by words",
        _ => "by vectors and words",
    };
    let millis = took_us as f64 / 1_000.0;
    let mut lines = vec![format!("Searched {by} in {millis:.1} ms.")];
    let of_vectors = plan.scanned + plan.walked;
    if of_vectors > 0 {
        let how = if plan.regime == "graph" { "on a walk through the graph" } else { "one after the other" };
        let vectors = told::of(of_vectors, "vector was", "vectors were");
        lines.push(format!("{vectors} looked at {how}, and {} compared exactly.", plan.ranked));
    }
    if plan.texts > 0 {
        let met = told::of(plan.postings, "time", "times");
        let texts = told::of(plan.texts, "text", "texts");
        lines.push(format!("A word of the query was met {met} in {texts}."));
    }
    if plan.tested > 0 && !plan.filter.is_empty() {
        lines.push(format!("The filter was tried on {}.", told::of(plan.tested, "memory", "memories")));
    }
    let pending = told::of(plan.pending, "memory has", "memories have");
    let notes = [
        (plan.cut, "The query has more words than are looked for: the others were left out.".to_owned()),
        (plan.partial, "The deadline was over before all was looked at.".to_owned()),
        (plan.pending > 0, format!("{pending} no vector and can be found by words alone.")),
    ];
    lines.extend(notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note));
    output.text(&lines)
}

/// `search --why`: whether a memory is a hit, and what decided it.
pub(crate) fn why(name: &str, why: &Why, output: Output<'_>) -> Done {
    let least = why.least.map(|least| format!("; the last hit has {least:.4}")).unwrap_or_default();
    let mut lines = vec![match (why.rank, why.reason) {
        (Some(rank), _) => format!("{name} is hit number {rank}."),
        (None, "not_visible") => {
            let state = if why.state == State::Live { "not true now" } else { why.state.as_str() };
            format!("{name} is no hit: it is {state}, and a search finds what is true now.")
        }
        (None, "other_partition") => {
            format!("{name} is no hit: it is in another part; --agent or --any-agent looks there.")
        }
        (None, "filter") => format!("{name} is no hit: the filter leaves it out."),
        (None, "nothing_in_common") => {
            format!("{name} is no hit: it has no word of the query, and there is no vector to compare.")
        }
        (None, "below_min_score") => format!("{name} is no hit: its score is below --min-score."),
        (None, "skipped") => format!("{name} is a hit that --offset skips."),
        (None, "damaged") => format!("{name} is no hit: its index is damaged, and `reindex` mends it."),
        (None, _) => format!("{name} is no hit: others are better{least}; a higher -k shows more."),
    }];
    if let Some(score) = why.score {
        let Signals { vector, text, context, time, prior } = why.signals;
        // What adds nothing is not named.
        let beside = |part: Option<f32>| part.filter(|part| *part != 0.0);
        let parts = [
            ("vector", vector),
            ("words", text),
            ("neighbours", beside(context)),
            ("time", beside(time)),
            ("recency and trust", beside(prior)),
        ];
        let parts = parts.into_iter().filter_map(|(name, part)| Some(format!("{name} {:.4}", part?)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
        lines.push(format!("Its score is {score:.4}{parts}."));
    }
    output.text(&lines)
}
