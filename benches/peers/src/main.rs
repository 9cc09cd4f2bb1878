//! Oubliette's search beside other libraries in one run: by vector hnsw_rs, usearch, SQLite with sqlite-vec and a flat
//! scan, by words tantivy.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml -- [PARTS…] [--data DIR] [--out DIR]`
//!
//! Parts are `build search two-cores memory text`, data sets are `real synthetic`; without a name of either kind all of it is
//! taken. Each part prints a table in Markdown; with `--out` plots go to `DIR/plots/`. Everything compared in a table was
//! measured in turns in this one run.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod contest;
#[path = "../../text/corpus.rs"]
mod corpus;
mod dataset;
mod heap;
mod ours;
mod parts;
mod peers;
#[path = "../../figures/plot.rs"]
#[allow(dead_code, reason = "the other bench uses the rest")]
mod plot;
mod words;

use std::path::PathBuf;

use dataset::Dataset;
use parts::Settings;

const PARTS: [&str; 5] = ["build", "search", "two-cores", "memory", "text"];
/// The parts about vectors.
const VECTORS: [&str; 4] = ["build", "search", "two-cores", "memory"];
const DATA: [&str; 2] = ["real", "synthetic"];
const USAGE: &str = "usage: peers [build] [search] [two-cores] [memory] [text] [real] [synthetic]
    [--data DIR]   folder of *_384.f32.npy files (else OUBLIETTE_DATA, else ../shared/data)
    [--out DIR]    write plots into DIR/plots
    [--rows N] [--queries N] [--rounds N]   20000, 1000, 3";

/// What the command line asks for.
struct Asked {
    names: Vec<String>,
    data: PathBuf,
    settings: Settings,
}

fn asked(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let folder = std::env::var_os("OUBLIETTE_DATA").unwrap_or_else(|| "../shared/data".into());
    let settings = Settings { rows: 20_000, queries: 1_000, rounds: 3, plots: None };
    let mut asked = Asked { names: Vec::new(), data: folder.into(), settings };
    while let Some(argument) = arguments.next() {
        if PARTS.contains(&argument.as_str()) || DATA.contains(&argument.as_str()) {
            asked.names.push(argument);
            continue;
        }
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number =
            |text: String| text.parse().ok().filter(|&n| n > 0).ok_or(format!("{text} is not a number"));
        match argument.as_str() {
            "--data" => asked.data = value()?.into(),
            "--out" => asked.settings.plots = Some(PathBuf::from(value()?).join("plots")),
            "--rows" => asked.settings.rows = number(value()?)?,
            "--queries" => asked.settings.queries = number(value()?)?,
            "--rounds" => asked.settings.rounds = number(value()?)?,
            _ => return Err(format!("{argument} is not known")),
        }
    }
    Ok(asked)
}

impl Asked {
    /// Whether `name` is asked for: by name, or because nothing of its kind is.
    fn wants(&self, name: &str) -> bool {
        let kind: &[&str] = if PARTS.contains(&name) { &PARTS } else { &DATA };
        let named = |name: &str| self.names.iter().any(|asked| asked == name);
        named(name) || !kind.iter().any(|other| named(other))
    }
}

fn main() {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(why) => {
            println!("{why}\n{USAGE}");
            std::process::exit(2);
        }
    };
    let cores = std::thread::available_parallelism().unwrap();
    println!(
        "hnsw_rs 0.3.5; usearch {} ({}); SQLite {}; our kernels: {}; {cores} cores\n",
        usearch::version(),
        peers::Usearch::instructions(),
        peers::Sqlite::new().version(),
        oubliette::faults::vector::instruction_set(),
    );
    if asked.wants("text") {
        words::report(&asked.data);
    }
    if !VECTORS.iter().any(|part| asked.wants(part)) {
        return;
    }
    let Settings { rows, queries, .. } = asked.settings;
    if asked.wants("real") {
        match Dataset::real(&asked.data, rows, queries) {
            Some(data) => report(&data, &asked),
            None => println!("real: skipped, no *_384.f32.npy in {}\n", asked.data.display()),
        }
    }
    if asked.wants("synthetic") {
        report(&Dataset::synthetic(rows, queries), &asked);
    }
}

fn report(data: &Dataset, asked: &Asked) {
    let (rows, queries) = (data.len(), data.queries.len());
    println!("## {}: {rows} rows × {} dimensions, {queries} queries\n", data.name, dataset::DIM);
    let settings = &asked.settings;
    if ["build", "search", "memory"].iter().any(|part| asked.wants(part)) {
        let mut built = parts::built(data);
        if asked.wants("build") {
            parts::build(data, &built, settings);
        }
        if asked.wants("search") {
            parts::search(data, &mut built, settings);
        }
        if asked.wants("memory") {
            parts::memory(data, &built);
        }
    }
    if asked.wants("two-cores") {
        parts::cores(data);
    }
}
