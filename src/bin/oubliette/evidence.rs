//! `eval --text`: which share of the memories that answer a question is found.

use std::collections::{BTreeMap, BTreeSet};

use oubliette::{ErrorKind, Mode, NamespaceName, Query, Result, Snapshot};
use serde_json::{Map, Value, json};

use crate::arguments::EvalOptions;
use crate::latency::{micros, percentile};
use crate::output::{Done, Failure, Output};
use crate::place::{Access, Place};
use crate::progress::Progress;
use crate::search::Queries;
use crate::told;

/// Hits among which evidence is looked for, besides as many as are asked for.
const DEPTHS: [usize; 5] = [1, 5, 10, 20, 50];

/// Sums over the questions of one mode.
struct Tally {
    /// The share that is found, by the number of hits among which it is looked for.
    shares: BTreeMap<usize, f64>,
    took: Vec<u64>,
}

impl Tally {
    fn new(k: usize) -> Self {
        let depths = DEPTHS.into_iter().chain([k]);
        Tally { shares: depths.map(|depth| (depth, 0.0)).collect(), took: Vec::new() }
    }

    fn add(&mut self, found: &[BTreeSet<String>], evidence: &[String]) {
        let wanted: BTreeSet<&String> = evidence.iter().collect();
        for (depth, share) in &mut self.shares {
            let top: BTreeSet<&String> = found.iter().take(*depth).flatten().collect();
            *share += wanted.intersection(&top).count() as f64 / wanted.len() as f64;
        }
    }

    fn document(mut self) -> Value {
        self.took.sort_unstable();
        let queries = self.took.len();
        // Of no question nothing is measured.
        let mean = |sum: f64| (queries > 0).then(|| sum / queries as f64);
        let recall: Map<String, Value> =
            self.shares.into_iter().map(|(depth, sum)| (depth.to_string(), json!(mean(sum)))).collect();
        json!({
            "evidence_recall": recall, "queries": queries,
            "p50_us": percentile(&self.took, 50), "p95_us": percentile(&self.took, 95),
        })
    }
}

/// Evidence recall by mode, of the modes that every question can be asked in.
pub(crate) fn run(options: &EvalOptions, place: &Place, output: Output<'_>) -> Done {
    let (scope, effort) = (options.scope.scope()?, options.effort.effort());
    let defaults = Query { k: options.k, scope, effort, ..Query::default() };
    defaults.check()?;
    let k = DEPTHS.into_iter().fold(options.k, usize::max);
    let defaults = (place.namespace()?, Query { k, ..defaults });
    let mut queries = Queries::open(&options.queries, options.vectors.as_deref(), place.caller())?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let snapshot = database.snapshot()?;
    let embeds =
        options.vectors.is_some() || database.embedding_space()?.is_some_and(|space| space.name != "caller");
    let modes: Vec<Mode> = Mode::ALL.iter().copied().filter(|mode| embeds || *mode == Mode::Text).collect();
    let mut tallies: Vec<Tally> = modes.iter().map(|_| Tally::new(options.k)).collect();
    let (mut without, mut unknown) = (0_u64, BTreeSet::new());
    let progress = Progress::new(output, None);
    while let Some((number, namespace, query)) = queries.next(&defaults)? {
        if query.text.is_none() {
            return Err(Failure::Usage(format!("line {number}: eval --text needs a `query` in each line")));
        }
        if queries.evidence.is_empty() {
            without += 1;
            continue;
        }
        note_unknown(&snapshot, &namespace, &queries.evidence, &mut unknown)?;
        for (mode, tally) in modes.iter().zip(&mut tallies) {
            let asked = query.clone().mode(*mode);
            let begun = std::time::Instant::now();
            let found =
                snapshot.namespace(&namespace)?.search(&asked).map_err(|error| error.at_line(number))?;
            tally.took.push(micros(begun));
            let names = found.hits.iter().map(|hit| names(&snapshot, &namespace, hit.id));
            let names = names.collect::<Result<Vec<_>>>()?;
            tally.add(&names, &queries.evidence);
            let is_missed = |name: &&String| !names.iter().any(|names| names.contains(*name));
            let missed: Vec<&String> = queries.evidence.iter().filter(is_missed).collect();
            if output.verbose && !missed.is_empty() {
                let missed = told::names(Some(&json!(missed)));
                output.remark(&format!(
                    "line {number}: {mode} does not find all among {} hits{missed}",
                    names.len()
                ));
            }
        }
        progress.set(tallies.first().map_or(0, |tally| tally.took.len() as u64));
    }
    drop(progress);
    tell_unknown(&unknown, output);
    if !output.json && tallies.iter().all(|tally| tally.took.is_empty()) {
        let told = "No query names what answers it, so nothing is measured: a line does so with \"evidence\": [\"KEY\"]";
        return output.line(told);
    }
    let mut members: Map<String, Value> =
        modes.iter().zip(tallies).map(|(mode, tally)| (mode.as_str().to_owned(), tally.document())).collect();
    members.insert("without_evidence".to_owned(), json!(without));
    members.insert("unknown_evidence".to_owned(), json!(unknown.len()));
    output.document(&Value::Object(members))
}

/// All that a memory is called. One whose keys can't be read has its id alone.
pub(crate) fn names(
    snapshot: &Snapshot,
    namespace: &NamespaceName,
    id: oubliette::MemoryId,
) -> Result<BTreeSet<String>> {
    let keys = match snapshot.namespace(namespace)?.keys_of(id) {
        Err(error) if error.kind() == ErrorKind::Corrupted => Vec::new(),
        keys => keys?,
    };
    Ok(keys.into_iter().chain([id.to_string()]).collect())
}

/// Adds the names of evidence that lead to no memory, and to none that is gone. They are found by no search.
pub(crate) fn note_unknown(
    snapshot: &Snapshot,
    namespace: &NamespaceName,
    evidence: &[String],
    unknown: &mut BTreeSet<String>,
) -> Result<()> {
    let namespace = snapshot.namespace(namespace)?;
    for name in evidence {
        match namespace.look_up(name.as_str(), false) {
            Err(error) if error.kind() == ErrorKind::NotFound => drop(unknown.insert(name.clone())),
            // A damaged memory is there.
            Err(error) if error.kind() == ErrorKind::Corrupted => {}
            found => drop(found?),
        }
    }
    Ok(())
}

/// Tells people of evidence that leads to no memory: a name that is misspelt counts as one that is not found.
pub(crate) fn tell_unknown(unknown: &BTreeSet<String>, output: Output<'_>) {
    if !unknown.is_empty() {
        let count = told::of(unknown.len() as u64, "name of evidence leads", "names of evidence lead");
        output.remark(&format!(
            "{count} to no memory, so no search finds it{}",
            told::names(Some(&json!(unknown)))
        ));
    }
}
