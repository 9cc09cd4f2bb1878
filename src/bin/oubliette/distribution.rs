//! `stats --access`: how memories are used, for a person.

use oubliette::report::AccessDistribution;

use crate::output::{Done, Output};
use crate::told;

/// The tables of a distribution, one below the other. `prunes` is whether the pass `prune` removes anything.
pub(crate) fn tell(used: &AccessDistribution, prunes: bool, output: Output<'_>) -> Done {
    let never =
        used.never_retrieved_share.map_or_else(String::new, |share| format!(" ({:.0} %)", share * 100.0));
    output.line(&format!(
        "{}, {} of them never found by a search that counts{never}",
        told::of(used.memories, "memory", "memories"),
        used.never_retrieved,
    ))?;
    let retrievals = used.retrievals.iter().map(|bar| {
        let range =
            if bar.from == bar.to { bar.from.to_string() } else { format!("{} to {}", bar.from, bar.to) };
        vec![range, bar.memories.to_string()]
    });
    output.table(&["retrievals", "memories"], retrievals)?;
    let scores = [("mean relevance from", &used.mean_relevance), ("utility from", &used.utility)];
    for (name, bars) in scores {
        let bars = bars.iter().filter(|bar| bar.memories > 0);
        let rows: Vec<_> = bars.map(|bar| vec![bar.from.to_string(), bar.memories.to_string()]).collect();
        if !rows.is_empty() {
            output.table(&[name, "memories"], rows)?;
        }
    }
    let effects = used.thresholds.iter().map(|effect| {
        let counts = [effect.below, effect.would_go, effect.l1, effect.l2].map(|count| count.to_string());
        let mut row = vec![effect.threshold.to_string()];
        row.extend(counts);
        row.push(told::size(effect.bytes));
        row
    });
    let names = ["utility below", "memories", "unprotected", "of sessions", "of chapters", "text"];
    output.table(&names, effects)?;
    output.remark(match prunes {
        true => "`maintain prune` takes those of sessions and of chapters alone",
        false => {
            "Nothing goes for its utility: prune.enabled is false in the policy. With true, `maintain prune` takes those of \
             sessions and of chapters alone"
        }
    });
    let most = used.most_retrieved.iter().map(|row| {
        let contexts = row.contexts.iter().map(|context| context.context.as_str()).collect::<Vec<_>>();
        vec![
            row.id.to_string(),
            row.retrieval_count.to_string(),
            row.mean_relevance.map_or_else(String::new, |mean| format!("{mean:.2}")),
            format!("{:.2}", row.memory_utility_score),
            contexts.join(", "),
        ]
    });
    if used.most_retrieved.is_empty() {
        return Ok(());
    }
    output.table(&["most retrieved", "retrievals", "relevance", "utility", "last contexts"], most)
}
