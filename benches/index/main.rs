//! The figures of the vector index in `docs/benchmarks.md`: what forgetting costs, and what it leaves.
//!
//! `cargo bench --bench index` takes all of them; names as arguments take some: `scan regimes costs churn repeats unseen filters
//! upkeep delete repair import memory reopen growth`. `regimes` and `growth` take minutes; a number behind it is the largest size. Vectors are real
//! (`../shared/data`, or the folder in `OUBLIETTE_DATA`) where there are enough, and synthetic otherwise.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod costs;
mod counting;
mod memory;
#[path = "../figures/plot.rs"]
#[allow(dead_code, reason = "the other bench uses the rest")]
mod plot;
mod regimes;
#[path = "../figures/sample.rs"]
#[allow(dead_code, reason = "the other bench uses the rest")]
mod sample;
mod scan;
mod vectors;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use oubliette::maintain::{MaintainOptions, Pass};
use oubliette::policy::{Policy, Syntax};
use oubliette::{
    Builder, Database, Draft, Durability, Effort, Filter, Forget, NamespaceName, PageRequest, Query,
    WriteOptions,
};
use sample::Rng;

#[global_allocator]
static COUNTED: counting::Counting = counting::Counting;

/// Always a graph, and no help by writers.
const FORCED: &str = "index.scan_max = 0\nindex.tail_min = 1000000000";
/// Never a graph.
const EXACT: &str = "index.scan_max = 1000000000000";

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    // `cargo test --benches` only wants to see that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, path] = arguments.as_slice()
        && flag == RESIDENT
    {
        return resident(path);
    }
    let all: [(&str, fn()); 14] = [
        ("scan", scan::scan),
        ("regimes", regimes::regimes),
        ("costs", costs::costs),
        ("churn", churn),
        ("repeats", repeats),
        ("unseen", scan::unseen),
        ("filters", filters),
        ("upkeep", upkeep),
        ("delete", delete),
        ("repair", repair),
        ("import", import),
        ("memory", memory_of),
        ("reopen", reopen),
        ("growth", growth),
    ];
    println!("| figure | ours | floor | ratio | bound |\n|---|---|---|---|---|");
    for (name, take) in all {
        if wanted.is_empty() || wanted.iter().any(|want| want == name) {
            take();
        }
    }
}

fn row(figure: &str, ours: String, floor: String, ratio: f64, bound: &str) {
    println!("| {figure} | {ours} | {floor} | {ratio:.3} | {bound} |");
}

fn time<R>(run: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let value = run();
    (value, start.elapsed().as_secs_f64())
}

/// The value below which a share of the values lie.
fn percentile(mut times: Vec<f64>, share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[((times.len() as f64 * share) as usize).min(times.len() - 1)]
}

fn us(seconds: f64) -> String {
    format!("{:.0} µs", seconds * 1e6)
}

fn policy(text: &str) -> Policy {
    Policy::parse(text, Syntax::Toml).unwrap()
}

fn builder(text: &str) -> Builder {
    Database::builder().durability(Durability::Batch).policy(policy(text)).memory_budget_bytes(2 << 30)
}

fn key(at: usize) -> String {
    format!("v{at:07}")
}

fn draft(at: usize, vector: &[f32]) -> Draft {
    Draft::new(format!("row {at}")).key(key(at)).vector(vector.to_vec())
}

fn add(db: &Database, ns: &NamespaceName, rows: impl Iterator<Item = usize>, vectors: &[Vec<f32>]) {
    let rows: Vec<usize> = rows.collect();
    for part in rows.chunks(1_000) {
        let drafts = part.iter().map(|&at| draft(at, &vectors[at])).collect();
        db.namespace(ns)
            .unwrap()
            .add_all(drafts, &WriteOptions { no_dedup: true, ..WriteOptions::default() })
            .unwrap();
    }
}

fn run(db: &Database, pass: Pass) {
    let report = db.maintain_with(&MaintainOptions::live().passes([pass])).unwrap();
    assert!(report.passes.iter().all(|pass| pass.left == 0 && pass.skipped == 0), "{report:?}");
}

fn forget(db: &Database, ns: &NamespaceName, rows: &[usize]) {
    for part in rows.chunks(1_000) {
        db.namespace(ns).unwrap().forget(Forget::names(part.iter().map(|&at| key(at)))).unwrap();
    }
}

/// Share of the ten nearest that searches find, by distance; every hit has to be in `live`.
fn recall(db: &Database, ns: &NamespaceName, queries: &[Vec<f32>], effort: Effort, live: &[bool]) -> f64 {
    let mut right = 0;
    for query in queries {
        let exact =
            db.namespace(ns).unwrap().search(Query::vector(query.clone()).effort(Effort::Exact)).unwrap();
        let found = db.namespace(ns).unwrap().search(Query::vector(query.clone()).effort(effort)).unwrap();
        assert!(found.plan.regime == "graph" || effort == Effort::default());
        for hit in &found.hits {
            let text = db.namespace(ns).unwrap().text(hit.id).unwrap().unwrap();
            let at: usize = text.strip_prefix("row ").unwrap().parse().unwrap();
            assert!(live[at], "{text} is dead");
        }
        let floor = exact.hits.last().unwrap().score - 1e-6;
        right += found.hits.iter().filter(|hit| hit.score >= floor).count();
    }
    right as f64 / (10 * queries.len()) as f64
}

/// The recall of an aged database against that of a new one of the same rows: walks with a list of 64, and the default effort,
/// with the graph and by the default policy.
fn aged(db: Database, path: &Path, what: &str, vectors: &[Vec<f32>], live: &[bool], queries: &[Vec<f32>]) {
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let new_path = folder.path().join("a");
    let new = builder(FORCED).open(&new_path).unwrap();
    add(&new, &ns, (0..live.len()).filter(|at| live[*at]), vectors);
    run(&new, Pass::Index);
    let both = |how: &str, dbs: [&Database; 2], effort, bound: &str| {
        let [aged, new] = dbs.map(|db| recall(db, &ns, queries, effort, live));
        row(&format!("{what}, {how}"), format!("{aged:.4}"), format!("{new:.4}"), aged - new, bound);
    };
    // A thousand rows are scanned, though there is a graph.
    if live.iter().filter(|live| **live).count() > 1_000 {
        both("ef 64", [&db, &new], Effort::Ef(64), "≥ −0.002");
    }
    both("default effort, graph", [&db, &new], Effort::default(), "ours ≥ 0.999");
    db.close().unwrap();
    new.close().unwrap();
    let [db, new] = [path, &new_path].map(|path| builder("").open(path).unwrap());
    both("default effort and policy", [&db, &new], Effort::default(), "ours ≥ 0.999");
}

fn nearest_rows(vectors: &[Vec<f32>], live: &[bool], center: usize, count: usize) -> Vec<usize> {
    let dot = |at: usize| vectors[at].iter().zip(&vectors[center]).map(|(a, b)| a * b).sum::<f32>();
    let mut rows: Vec<(f32, usize)> =
        (0..live.len()).filter(|at| live[*at]).map(|at| (dot(at), at)).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    rows.into_iter().take(count).map(|(_, at)| at).collect()
}

/// Recall after 20 rounds that each replace 30 % of 10,000 rows, and after 95 % of 20,000 are gone.
fn churn() {
    let (mut vectors, real) = vectors::rows(22_000);
    let queries = vectors.split_off(20_000);
    for by_cluster in [false, true] {
        for seed in 1..=3 {
            let mut rng = Rng(seed);
            let folder = tempfile::tempdir().unwrap();
            let (db, ns) = (builder(FORCED).open(folder.path().join("a")).unwrap(), NamespaceName::default());
            let mut live: Vec<bool> = (0..20_000).map(|at| at < 10_000).collect();
            add(&db, &ns, 0..10_000, &vectors);
            run(&db, Pass::Index);
            for _ in 0..20 {
                let alive: Vec<usize> = (0..20_000).filter(|at| live[*at]).collect();
                let doomed: Vec<usize> = if by_cluster {
                    nearest_rows(&vectors, &live, alive[rng.next() as usize % alive.len()], 3_000)
                } else {
                    choose(&alive, 3_000, &mut rng)
                };
                let resting: Vec<usize> = (0..20_000).filter(|at| !live[*at]).collect();
                let born = choose(&resting, 3_000, &mut rng);
                forget(&db, &ns, &doomed);
                run(&db, Pass::Repair);
                add(&db, &ns, born.iter().copied(), &vectors);
                run(&db, Pass::Index);
                doomed.iter().for_each(|at| live[*at] = false);
                born.iter().for_each(|at| live[*at] = true);
            }
            let report = db.check(&oubliette::report::CheckOptions { deep: true, erased: vec![] }).unwrap();
            assert!(report.ok, "{:?}", report.findings);
            let how = if by_cluster { "cluster-wise" } else { "random" };
            let what = format!(
                "recall@10 after 20 rounds of 30 % of 10,000 ({real}), {how}, seed {seed}, against new"
            );
            aged(db, &folder.path().join("a"), &what, &vectors, &live, &queries);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (db, ns) = (builder(FORCED).open(folder.path().join("a")).unwrap(), NamespaceName::default());
    let mut live = vec![true; 20_000];
    add(&db, &ns, 0..20_000, &vectors);
    run(&db, Pass::Index);
    let all: Vec<usize> = (0..20_000).collect();
    let doomed = choose(&all, 19_000, &mut Rng(9));
    forget(&db, &ns, &doomed);
    doomed.iter().for_each(|at| live[*at] = false);
    run(&db, Pass::Repair);
    let what = format!("the same after 95 % of 20,000 ({real}) are gone");
    aged(db, &folder.path().join("a"), &what, &vectors, &live, &queries);
}

/// Recall where most rows repeat a vector, few of them often: after linking, after a rebuild, and after the first of each
/// crowd has gone.
fn repeats() {
    const ROWS: usize = 13_200;
    const DIFFERENT: usize = 2_949;
    let (mut vectors, real) = vectors::rows(DIFFERENT + 500);
    let queries = vectors.split_off(DIFFERENT);
    let mut rng = Rng(13);
    let of: Vec<usize> = (0..ROWS)
        .map(|at| {
            let (a, b) = (rng.next() as usize % DIFFERENT, rng.next() as usize % DIFFERENT);
            if at < DIFFERENT { at } else { a * b / DIFFERENT / 3 }
        })
        .collect();
    let rows: Vec<Vec<f32>> = of.iter().map(|at| vectors[*at].clone()).collect();
    let questions: Vec<Vec<f32>> = queries.iter().chain(&vectors[..500]).cloned().collect();
    let folder = tempfile::tempdir().unwrap();
    let (db, ns) = (builder(FORCED).open(folder.path().join("a")).unwrap(), NamespaceName::default());
    let recall = |when: &str| {
        let mut right = 0;
        for question in &questions {
            let ask = |effort| {
                db.namespace(&ns)
                    .unwrap()
                    .search(Query::vector(question.clone()).effort(effort))
                    .unwrap()
                    .hits
            };
            let floor = ask(Effort::Exact).last().unwrap().score - 1e-6;
            right += ask(Effort::default()).iter().filter(|hit| hit.score >= floor).count();
        }
        let share = right as f64 / (10 * questions.len()) as f64;
        let what =
            format!("recall@10 in 13,200 rows of 2,949 different vectors ({real}), default effort, {when}");
        row(&what, format!("{share:.4}"), "1".to_owned(), share, "≥ 0.99");
    };
    add(&db, &ns, 0..ROWS, &rows);
    run(&db, Pass::Index);
    recall("after `maintain index`");
    db.reindex().unwrap();
    recall("after `reindex`");
    forget(&db, &ns, &(0..DIFFERENT).collect::<Vec<_>>());
    run(&db, Pass::Repair);
    recall("after the first of each was forgotten and `maintain repair`");
    assert!(db.check(&oubliette::report::CheckOptions { deep: true, erased: vec![] }).unwrap().ok);
}

fn choose(from: &[usize], count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut all = from.to_vec();
    for at in 0..count {
        let other = at + rng.next() as usize % (all.len() - at);
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// Searches among rows that match, against trying the filter on all rows and scanning those that match.
fn filters() {
    let (mut vectors, real) = vectors::rows(20_500);
    let queries = vectors.split_off(20_000);
    let folder = tempfile::tempdir().unwrap();
    let (db, ns) = (builder(FORCED).open(folder.path().join("a")).unwrap(), NamespaceName::default());
    let mut rng = Rng(5);
    for (part, rows) in vectors.chunks(1_000).enumerate() {
        let drafts = rows.iter().enumerate().map(|(at, vector)| {
            let share = serde_json::json!({ "share": rng.unit() * 100.0 });
            draft(part * 1_000 + at, vector).metadata(share)
        });
        db.namespace(&ns)
            .unwrap()
            .add_all(drafts.collect(), &WriteOptions { no_dedup: true, ..WriteOptions::default() })
            .unwrap();
    }
    run(&db, Pass::Index);
    for percent in [100.0, 50.0, 10.0, 1.0, 0.1] {
        let text = format!(r#"{{"metadata.share": {{"$lt": {percent}}}}}"#);
        let filter = Filter::parse(&text).unwrap();
        let (mut ours, mut floor, mut right, mut wanted) = (Vec::new(), Vec::new(), 0, 0);
        let mut plan = oubliette::report::SearchPlan::default();
        for query in queries.iter().take(20) {
            let ask = Query::vector(query.clone()).filter(filter.clone());
            let (found, took) = time(|| db.namespace(&ns).unwrap().search(&ask).unwrap());
            ours.push(took);
            let (matching, took) = time(|| all_matching(&db, &ns, &filter));
            let scores: Vec<f32> = matching.iter().map(|at| dot(&vectors[*at], query)).collect();
            let (best, scan) = time(|| {
                let mut best = scores;
                best.sort_by(|a, b| b.total_cmp(a));
                best.truncate(10);
                best
            });
            floor.push(took + scan);
            let least = best.last().map_or(2.0, |least| least - 1e-6);
            right += found.hits.iter().filter(|hit| hit.score >= least).count();
            wanted += best.len();
            plan = found.plan;
        }
        let (ours, floor) = (percentile(ours, 0.5), percentile(floor, 0.5));
        let what = format!(
            "search of 20,000 ({real}) where {percent} % match: by {}, recall@10 {:.3}; against trying the filter \
             on all rows and scanning the matches",
            plan.filter,
            right as f64 / wanted as f64
        );
        row(&what, us(ours), us(floor), ours / floor, "≤ 1.2");
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Numbers of the rows that match, by a walk over all rows that knows no index: the same evaluation of the filter.
fn all_matching(db: &Database, ns: &NamespaceName, filter: &Filter) -> Vec<usize> {
    let mut rows = Vec::new();
    let mut request = PageRequest { filter: Some(filter.clone()), limit: 10_000, ..PageRequest::default() };
    loop {
        let page = db.namespace(ns).unwrap().list(&request).unwrap();
        let number = |text: &str| text.strip_prefix("row ").and_then(|at| at.parse::<usize>().ok());
        rows.extend(page.items.iter().filter_map(|memory| number(&memory.row_text)));
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => return rows,
        }
    }
}

/// A `Safe` add alone, and while a pass runs beside it.
fn upkeep() {
    let (vectors, real) = vectors::rows(21_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let ns = NamespaceName::default();
    let db = builder(FORCED).open(&path).unwrap();
    add(&db, &ns, 0..20_000, &vectors);
    db.close().unwrap();
    let db = builder(FORCED).durability(Durability::Safe).open(&path).unwrap();
    let mut next = 1_000_000;
    let mut adds = |busy: Option<&AtomicBool>| {
        let mut times = Vec::new();
        while busy.map_or(times.len() < 1_000, |busy| busy.load(Ordering::SeqCst) || times.len() < 100) {
            let draft = draft(next, &vectors[20_000 + next % 1_000]);
            next += 1;
            times.push(time(|| db.namespace(&ns).unwrap().add(draft).unwrap()).1);
        }
        times
    };
    let alone = percentile(adds(None), 0.99);
    for pass in [Pass::Index, Pass::Repair] {
        if pass == Pass::Repair {
            forget(&db, &ns, &(0..6_000).collect::<Vec<_>>());
        }
        let busy = AtomicBool::new(true);
        let options = MaintainOptions { threads: Some(1), ..MaintainOptions::live() };
        let times = std::thread::scope(|scope| {
            scope.spawn(|| {
                db.maintain_with(&options.clone().passes([pass])).unwrap();
                busy.store(false, Ordering::SeqCst);
            });
            adds(Some(&busy))
        });
        let count = times.len();
        let beside = percentile(times, 0.99);
        let what = format!(
            "p99 of {count} `Safe` adds beside `maintain {}` of 20,000 ({real}), against 1,000 alone",
            pass.as_str()
        );
        row(&what, us(beside), us(alone), beside / alone, "≤ 3");
    }
}

/// Forgetting in the deleting transaction, with and without a graph.
fn delete() {
    let (vectors, real) = vectors::rows(20_000);
    let ns = NamespaceName::default();
    let (mut graph, mut exact) = (Vec::new(), Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, text: &str| {
        let db = builder(text).open(folder.path().join(name)).unwrap();
        add(&db, &ns, 0..20_000, &vectors);
        run(&db, Pass::Index);
        db
    };
    let (with, without) = (open("graph", FORCED), open("exact", EXACT));
    let names = choose(&(0..20_000).collect::<Vec<_>>(), 6_000, &mut Rng(4));
    for part in names.chunks(100) {
        graph.push(
            time(|| {
                with.namespace(&ns).unwrap().forget(Forget::names(part.iter().map(|&at| key(at)))).unwrap()
            })
            .1,
        );
        exact.push(
            time(|| {
                without.namespace(&ns).unwrap().forget(Forget::names(part.iter().map(|&at| key(at)))).unwrap()
            })
            .1,
        );
    }
    let (graph, exact) = (percentile(graph, 0.5) / 100.0, percentile(exact, 0.5) / 100.0);
    let what = format!("`forget` of one of 20,000 ({real}), by hundreds, with a graph, against without one");
    row(&what, us(graph), us(exact), graph / exact, "≤ 1.2");
}

/// Unlinking rows, against linking as many.
fn repair() {
    let (vectors, real) = vectors::rows(20_000);
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let db = builder(FORCED).open(folder.path().join("a")).unwrap();
    let options = MaintainOptions { threads: Some(1), ..MaintainOptions::live() };
    add(&db, &ns, 0..14_000, &vectors);
    db.maintain_with(&options.clone().passes([Pass::Index])).unwrap();
    add(&db, &ns, 14_000..20_000, &vectors);
    let (_, linked) = time(|| db.maintain_with(&options.clone().passes([Pass::Index])).unwrap());
    forget(&db, &ns, &choose(&(0..20_000).collect::<Vec<_>>(), 6_000, &mut Rng(6)));
    let (_, mended) = time(|| db.maintain_with(&options.passes([Pass::Repair])).unwrap());
    let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    let what = format!(
        "`maintain repair` after 6,000 of 20,000 ({real}) went, against `maintain index` of 6,000 more"
    );
    row(&what, ms(mended), ms(linked), mended / linked, "≤ 1");
}

/// An import whose writer links what it writes, and one that leaves it to maintenance.
fn import() {
    let (vectors, real) = vectors::rows(20_000);
    let ns = NamespaceName::default();
    let rate = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let db = builder(text).durability(Durability::Fast).open(folder.path().join("a")).unwrap();
        let (_, took) = time(|| add(&db, &ns, 0..20_000, &vectors));
        20_000.0 / took
    };
    let (helped, alone) = (rate(""), rate(EXACT));
    let shown = |rate: f64| format!("{rate:.0} rows/s");
    let what = format!(
        "import of 20,000 ({real}) whose writer links past the bound of the tail, against tail undrained"
    );
    row(&what, shown(helped), shown(alone), helped / alone, "–");
}

/// Bytes of the image of an index, and of a process that searches more than its budget allows.
fn memory_of() {
    let (vectors, real) = vectors::rows(20_000);
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let db = builder(FORCED).open(&path).unwrap();
    add(&db, &ns, 0..20_000, &vectors);
    run(&db, Pass::Index);
    db.close().unwrap();
    let db = builder(FORCED).cache_bytes(1 << 20).open(&path).unwrap();
    db.namespace("nowhere").unwrap().search(Query::vector(vectors[0].clone())).unwrap();
    let before = memory::allocated();
    db.namespace(&ns).unwrap().search(Query::vector(vectors[0].clone()).k(1)).unwrap();
    let bytes = (memory::allocated() - before) as f64 / 20_000.0;
    let what =
        format!("memory of the image of 20,000 × 384 ({real}) with its graph, cache of 1 MiB among it");
    row(&what, format!("{bytes:.0} bytes/vector"), "650".to_owned(), bytes / 650.0, "≤ 1");
    db.close().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    let db = builder(FORCED).open(&path).unwrap();
    for part in 0..10 {
        for rows in (0..20_000).collect::<Vec<_>>().chunks(1_000) {
            let drafts =
                rows.iter().map(|&at| draft(part * 20_000 + at, &vectors[at]).agent(format!("agent-{part}")));
            let how = WriteOptions { no_dedup: true, ..WriteOptions::default() };
            db.namespace(&ns).unwrap().add_all(drafts.collect(), &how).unwrap();
        }
    }
    run(&db, Pass::Index);
    db.close().unwrap();
    // In a process of its own: what this one has freed would be used again and hide what is taken.
    let child =
        std::process::Command::new(std::env::current_exe().unwrap()).arg(RESIDENT).arg(&path).output();
    let grown =
        String::from_utf8(child.unwrap().stdout).unwrap().trim().parse::<f64>().unwrap() / (1 << 20) as f64;
    let allowed = (CACHE_BYTES + BUDGET_BYTES) as f64 / (1 << 20) as f64;
    let what = "growth of the resident set over 200 searches in 10 partitions of 20,000 × 384, against cache + budget";
    row(what, format!("{grown:.1} MiB"), format!("{allowed:.1} MiB"), grown / allowed, "≤ 1.1");
}

/// Argument of the child that measures its resident set.
const RESIDENT: &str = "--resident";
const CACHE_BYTES: usize = 8 << 20;
const BUDGET_BYTES: usize = 40 << 20;

/// Prints by how many bytes the resident set of this process grows over 200 searches of the file.
fn resident(path: &str) {
    let ns = NamespaceName::default();
    let before = memory::resident();
    let db =
        Database::builder().cache_bytes(CACHE_BYTES).memory_budget_bytes(BUDGET_BYTES).open(path).unwrap();
    let mut most = 0;
    for turn in 0..200 {
        let scope = oubliette::Scope::agent(&format!("agent-{}", turn % 10)).unwrap();
        let query = Query::vector((0..384).map(|at| ((at * turn) as f32).sin() + 0.01).collect::<Vec<_>>());
        db.namespace(&ns).unwrap().search(query.scope(scope)).unwrap();
        most = most.max(memory::resident());
    }
    println!("{}", most.saturating_sub(before));
}

/// From opening to the first answer, against reading the bytes of codes and graph.
fn reopen() {
    let rows = 100_000;
    let sample = sample::Sample::new(rows, 12);
    let ns = NamespaceName::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let db = builder(FORCED).open(&path).unwrap();
    add(&db, &ns, 0..rows, &sample.vectors);
    run(&db, Pass::Index);
    db.close().unwrap();
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (db, took) = time(|| {
            let db = builder(FORCED).open(&path).unwrap();
            let found = db.namespace(&ns).unwrap().search(Query::vector(sample.vectors[77].clone())).unwrap();
            assert_eq!((found.plan.regime, found.hits.len()), ("graph", 10));
            db
        });
        ours.push(took);
        db.close().unwrap();
        floor.push(time(|| vectors::read_tables(&path, &["slot", "graph"])).1);
    }
    let (ours, floor) = (percentile(ours, 0.5), percentile(floor, 0.5));
    let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
    row(
        "opening a partition of 100,000 × 384 with a graph, to its first answer, against reading codes and graph",
        ms(ours),
        ms(floor),
        ours / floor,
        "≤ 3",
    );
}

/// Cost of a query and of an insert as a partition grows.
fn growth() {
    let most =
        std::env::args().filter_map(|argument| argument.parse::<usize>().ok()).next().unwrap_or(1_000_000);
    let folder = tempfile::tempdir().unwrap();
    // Warm: the vectors that are ranked lie in the cache of the key-value store, at every size.
    let db = builder("").cache_bytes(2 << 30).open(folder.path().join("a")).unwrap();
    let ns = db.namespace("default").unwrap();
    let options = MaintainOptions { threads: Some(1), ..MaintainOptions::live() };
    let mut source = vectors::Clusters::new(128, 21);
    let (mut rows, mut first) = (0, None);
    println!("| rows | query p50 | regime, ef | recall@10 | `maintain index` of a new row | | |");
    for size in [10_000, 30_000, 100_000, 300_000, 1_000_000] {
        if size > most {
            break;
        }
        while rows < size {
            let vectors: Vec<Vec<f32>> = (0..1_000).map(|_| source.next()).collect();
            let drafts = vectors.iter().zip(rows..).map(|(vector, at)| draft(at, vector)).collect();
            ns.add_all(drafts, &WriteOptions { no_dedup: true, ..WriteOptions::default() }).unwrap();
            rows += 1_000;
        }
        let tail = ns.stats().unwrap().vectors;
        let waiting = tail.live - tail.in_graph;
        let (_, linked) = time(|| db.maintain_with(&options.clone().passes([Pass::Index])).unwrap());
        let insert = linked / waiting as f64;
        let queries: Vec<Vec<f32>> = (0..500).map(|_| source.question()).collect();
        let (mut times, mut right, mut how) = (Vec::new(), 0, String::new());
        for (at, query) in queries.iter().enumerate() {
            let (found, took) = time(|| ns.search(Query::vector(query.clone())).unwrap());
            times.push(took);
            how = format!("{}, {}", found.plan.regime, found.plan.ef);
            if at < 50 {
                let exact = ns.search(Query::vector(query.clone()).effort(Effort::Exact)).unwrap();
                let floor = exact.hits.last().unwrap().score - 1e-6;
                right += found.hits.iter().filter(|hit| hit.score >= floor).count();
            }
        }
        let query = percentile(times, 0.5);
        println!("| {size} | {} | {how} | {:.3} | {} | | |", us(query), right as f64 / 500.0, us(insert));
        let first = *first.get_or_insert(query);
        if size == most.min(1_000_000) {
            let what = format!("cost of a query at {size} × 128 against 10,000");
            row(&what, us(query), us(first), query / first, "≤ 6");
        }
    }
}
