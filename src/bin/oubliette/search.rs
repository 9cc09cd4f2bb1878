//! `search`: one query, or many.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use oubliette::exchange::{LineReader, NpyReader};
use oubliette::limits::{QUERY_BYTES_MAX, TOKEN_BYTES};
use oubliette::memory::PointInTime;
use oubliette::report::{SearchPlan, SearchResult};
use oubliette::{
    Database, Effort, Error, ErrorKind, Filter, Hit, MemoryId, Namespace, NamespaceName, Query, Result,
    Scope, Snapshot, Span,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::{EffortOptions, SearchOptions};
use crate::caller::Caller;
use crate::fields;
use crate::latency::micros;
use crate::output::{self, Done, Failure, Output, printable, unwritable};
use crate::place::{Access, Place, named};
use crate::typed::{self, Slot};
use crate::{figures, told, write};

/// The text of a query.
const QUERY: Slot = Slot { after: "search", name: "query", most: QUERY_BYTES_MAX };
/// Characters of a word that tells where an answer stands.
const WORD_CHARS: usize = 3;
/// Such words of one query.
const WORDS_MAX: usize = 32;

/// The number of hits that fit into so many tokens.
fn fitting(hits: &[Hit], most: usize) -> usize {
    let ends = hits.iter().scan(0_usize, |tokens, hit| {
        *tokens += hit.text.len().div_ceil(TOKEN_BYTES);
        Some(*tokens)
    });
    ends.take_while(|tokens| *tokens <= most).count()
}

/// `search`.
pub(crate) fn run(options: &SearchOptions, place: &Place, output: Output<'_>) -> Done {
    if let Some(queries) = &options.queries {
        return many(queries, options, place, output);
    }
    let vector = options.vector_file.as_deref().map(fields::first_row).transpose()?;
    if options.text.is_none() && vector.is_none() {
        return Err(Failure::Usage("search needs TEXT, --vector-file or --queries".to_owned()));
    }
    let text = options.text.as_deref().map(|typed| typed::text(QUERY, typed, output.caller)).transpose()?;
    let query = Query {
        vector,
        text,
        mode: options.mode,
        k: options.k,
        offset: options.offset,
        min_score: options.min_score,
        scope: options.scope.scope()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        effort: options.effort.effort(),
        diversity: options.diversity,
        deadline: deadline(options)?,
        at: options.past.point()?,
        track: Some(options.track),
        step: options.step,
    };
    let namespace = place.namespace()?;
    let database = place.open(access(options))?;
    let is_told = place.unknown_namespace(&database.namespaces()?, output)?.is_some();
    let team = database.snapshot()?.namespace(namespace)?;
    if let Some(name) = &options.why {
        return why(&team, &query, name, output);
    }
    let begun = Instant::now();
    let (found, left_out) =
        team.search_given(&query, |hits| options.max_tokens.map_or(hits.len(), |most| fitting(hits, most)))?;
    let took_us = micros(begun);
    if options.track {
        database.flush_access()?;
    }
    let hits = found.hits;
    let plan = json!(found.plan);
    let around = options.around.map(|steps| Window { steps, at: &query.at });
    if output.json {
        let hits =
            hits.iter().map(|hit| hit_told((&team, output), hit, around)).collect::<Result<Vec<Value>>>()?;
        return output
            .document(&json!({ "hits": hits, "left_out": left_out, "plan": plan, "took_us": took_us }));
    }
    let most = options.max_tokens.filter(|_| left_out > 0);
    let none = none(&team, (&query, most, &found.plan), &database, is_told)?;
    tell(&team, (&query, &hits, &found.plan), around, &none, output)?;
    tell_left_out(hits.len(), left_out, output);
    if options.explain {
        figures::plan(&found.plan, took_us, output)?;
        if output.verbose {
            output.document(&json!({ "plan": plan, "took_us": took_us }))?;
        }
    }
    Ok(())
}

/// What stands in the place of hits where there are none; nothing where it is told already that the namespace is not there.
fn none(
    team: &Namespace<Snapshot>,
    (query, most, plan): (&Query, Option<usize>, &SearchPlan),
    database: &Database,
    is_told: bool,
) -> Result<String> {
    let known = database.namespaces()?;
    Ok(match known.contains(team.name()) {
        true => nothing(query, most, plan.partial),
        false if is_told => String::new(),
        false => told::no_namespace(team.name(), &known),
    })
}

/// The hits of a query, for a person.
fn tell(
    team: &Namespace<Snapshot>,
    (query, hits, plan): (&Query, &[Hit], &SearchPlan),
    around: Option<Window<'_>>,
    none: &str,
    output: Output<'_>,
) -> Done {
    // The best hit is on the first page.
    if query.offset == 0 && hits.first().is_some_and(|best| !best.is_relevant()) {
        output.remark("No memory fits well: the best hit is far from the question, so it may not answer it");
    }
    remark(plan, output);
    let rows = rows((team, output), hits, around)?;
    let heads: &[&str] = match output.verbose {
        true => &["score", "relevance", "id", "key", "signals", "text"],
        false => &["score", "relevance", "memory", "text"],
    };
    let words = words(query);
    output.list_cut(heads, rows, none, &|text, chars| output::around(text, &words, chars))
}

/// What `--max-tokens` has kept out of a list, for a person.
fn tell_left_out(shown: usize, left_out: usize, output: Output<'_>) {
    if shown > 0 && left_out > 0 {
        let hits = told::of(left_out as u64, "more hit is", "more hits are");
        output.remark(&format!("{hits} left out: the next one does not fit in --max-tokens"));
    }
}

/// The words of a query that tell where in a text its answer stands.
fn words(query: &Query) -> Vec<String> {
    let words = query.text.as_deref().unwrap_or_default().split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() >= WORD_CHARS);
    words.take(WORDS_MAX).map(str::to_lowercase).collect()
}

/// Why a memory is a hit, or not.
fn why(team: &Namespace<Snapshot>, query: &Query, name: &str, output: Output<'_>) -> Done {
    let why = team.why(query, name)?;
    if !output.json {
        figures::why(name, &why, output)?;
    }
    if !output.json && !output.verbose {
        return Ok(());
    }
    output.document(&json!({
        "id": why.id, "state": why.state.as_str(), "reason": why.reason, "rank": why.rank, "score": why.score,
        "least": why.least, "signals": why.signals,
    }))
}

/// Says why hits may be missing.
fn remark(plan: &SearchPlan, output: Output<'_>) {
    if let Some(why) = &plan.embedder_failed {
        output.remark(&format!("By words alone: {why}"));
    }
    if plan.damaged > 0 {
        let left = told::of(plan.damaged, "memory", "memories");
        output.remark(&format!("{left} could not be read and may be missing: `check` tells what is damaged"));
    }
    if plan.past.as_ref().is_some_and(|past| past.horizon.is_some()) {
        output.remark("Maintenance has erased a part of that past: memories may be missing");
    }
}

/// A hit as JSON, with its neighbours; of a summary, what it stands for.
fn hit_told(of: (&Namespace<Snapshot>, Output<'_>), hit: &Hit, window: Option<Window<'_>>) -> Result<Value> {
    let mut document = json!({
        "id": hit.id, "key": hit.key, "score": hit.score, "relevance": hit.relevance, "text": hit.text,
        "signals": hit.signals,
    });
    let Value::Object(members) = &mut document else { return Ok(document) };
    if let Some(window) = window {
        members.insert("around".to_owned(), around(of, hit.id, window)?);
    }
    if let Some(sources) = hit.stands_for {
        members.insert("sources".to_owned(), json!(sources));
    }
    Ok(document)
}

/// The hits as rows of a table, each with its neighbours; a verbose output also has ids and what the score is made of.
fn rows(
    of: (&Namespace<Snapshot>, Output<'_>),
    hits: &[Hit],
    around: Option<Window<'_>>,
) -> Result<Vec<Vec<String>>> {
    let verbose = of.1.verbose;
    let mut rows = Vec::new();
    for hit in hits {
        let mut row = vec![format!("{:.4}", hit.score), format!("{:.2}", hit.relevance)];
        match verbose {
            true => row.extend([hit.id.to_string(), hit.key.clone().unwrap_or_default(), signals(hit)]),
            false => row.push(name(hit.key.clone(), hit.id)),
        }
        row.push(hit.text.clone());
        rows.push(row);
        for neighbour in around.map_or_else(|| Ok(Vec::new()), |window| neighbours(of, hit.id, window))? {
            let (id, step) = (neighbour.id, neighbour.step);
            let mut row = vec![String::new(), String::new()];
            match verbose {
                true => row.extend([
                    id.to_string(),
                    format!("{step:+} {}", neighbour.key.unwrap_or_default()),
                    String::new(),
                ]),
                false => row.push(format!("{step:+} {}", name(neighbour.key, id))),
            }
            row.push(neighbour.text);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// What the score of a hit is made of, a line each.
fn signals(hit: &Hit) -> String {
    let signals = json!(hit.signals);
    let numbers = signals.as_object().into_iter().flatten();
    let lines = numbers.filter_map(|(name, value)| Some(format!("{name} {:.4}", value.as_f64()?)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What to try where there is no hit. `most` is the number of tokens that had no room for the best one.
fn nothing(query: &Query, most: Option<usize>, partial: bool) -> String {
    if let Some(most) = most {
        let most = told::of(most as u64, "token", "tokens");
        return format!("The best hit alone has more than {most}; allow more with --max-tokens");
    }
    if partial {
        return "Nothing was found before the deadline; allow more time with --deadline".to_owned();
    }
    match query.min_score {
        Some(least) => format!("Nothing was found: no hit has a score of {least} or more"),
        None if query.offset > 0 => "Nothing was found: there are fewer hits than --offset skips".to_owned(),
        None => {
            let ways = [
                ("try other words", true),
                ("without --filter", query.filter.is_some()),
                ("at another instant", query.at != PointInTime::default()),
                ("with --any-agent", query.scope != Scope::Any),
            ];
            let ways: Vec<&str> =
                ways.into_iter().filter(|(_, is_open)| *is_open).map(|(way, _)| way).collect();
            format!("Nothing was found; {} or in another --namespace", ways.join(", "))
        }
    }
}

fn deadline(options: &SearchOptions) -> Result<Option<Span>> {
    options.deadline.as_deref().map(|text| named("--deadline", text.parse())).transpose()
}

/// Which neighbours of a hit are shown.
#[derive(Clone, Copy)]
struct Window<'q> {
    /// How many on each side.
    steps: usize,
    /// When they were visible.
    at: &'q PointInTime,
}

/// The neighbours of a hit in its thread, in its order; how far each stands from it.
fn around(of: (&Namespace<Snapshot>, Output<'_>), id: MemoryId, window: Window<'_>) -> Result<Value> {
    let all = neighbours(of, id, window)?.into_iter();
    Ok(all.map(|one| json!({ "step": one.step, "id": one.id, "key": one.key, "text": one.text })).collect())
}

/// A neighbour of a hit in its thread.
struct Neighbour {
    /// How far it stands from the hit; below zero before the hit.
    step: i64,
    id: MemoryId,
    key: Option<String>,
    text: String,
}

/// The neighbours of a hit. One that is damaged is left out, and named on standard error.
fn neighbours(
    (team, output): (&Namespace<Snapshot>, Output<'_>),
    id: MemoryId,
    window: Window<'_>,
) -> Result<Vec<Neighbour>> {
    let found = team.around_at(id, window.steps, window.at)?;
    let first = -(i64::try_from(found.before.len()).unwrap_or(i64::MAX));
    let before = (first..).zip(found.before);
    let after = (1..).zip(found.after);
    let mut all = Vec::new();
    for (step, id) in before.chain(after) {
        let memory = match team.get(id) {
            Err(why) if why.kind() == ErrorKind::Corrupted => {
                output.note(&format!("{id} stands around a hit and is damaged: `check` tells more"));
                None
            }
            memory => memory?,
        };
        if let Some(memory) = memory {
            let key = memory.key().map(str::to_owned);
            all.push(Neighbour { step, id, key, text: memory.row_text });
        }
    }
    Ok(all)
}

/// A key, or the id where there is none.
fn name(key: Option<String>, id: MemoryId) -> String {
    key.unwrap_or_else(|| id.to_string())
}

/// A line of a file of queries; members that mean nothing to a search are the caller's own, but for those that were meant
/// for a search ([`check_names`]).
#[derive(Debug, Deserialize)]
struct QueryLine {
    #[serde(alias = "question")]
    query: Option<String>,
    mode: Option<String>,
    namespace: Option<String>,
    filter: Option<Value>,
    agent: Option<String>,
    k: Option<usize>,
    offset: Option<usize>,
    min_score: Option<f32>,
    ef: Option<usize>,
    recall: Option<f32>,
    exact: Option<bool>,
    diversity: Option<f32>,
}

/// The members of a line that a search reads.
const MEMBERS: [&str; 12] = [
    "query",
    "mode",
    "namespace",
    "filter",
    "agent",
    "k",
    "offset",
    "min_score",
    "ef",
    "recall",
    "exact",
    "diversity",
];
/// What a search of one text can be asked besides.
const OF_ONE: [&str; 9] = [
    "vector",
    "max_tokens",
    "around",
    "deadline",
    "any_agent",
    "as_of",
    "valid_at",
    "known_at",
    "allow_partial",
];

/// Refuses members that would be meant for the search and not be read: options that a line can't have, and names that are a
/// letter away from one that it can.
fn check_names(line: &Map<String, Value>) -> Result<()> {
    for (name, value) in line.iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str())) {
        if OF_ONE.contains(&name.as_str()) {
            return Err(Error::invalid(name, "is an option of one search, and no member of a query", value));
        }
        if let Some(meant) = MEMBERS.iter().find(|meant| meant.len() > 4 && is_slip(name, meant)) {
            return Err(Error::invalid(name, format!("is no member of a query; {meant} is"), value));
        }
    }
    Ok(())
}

/// Whether one letter was left out, added or replaced.
fn is_slip(typed: &str, meant: &str) -> bool {
    let (a, b) = (typed.as_bytes(), meant.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (left, due) = (a.get(same..), b.get(same..));
    let (next, due_next) = (a.get(same + 1..), b.get(same + 1..));
    next == due_next || left == due_next || next == due
}

/// What a line says beside the query.
#[derive(Debug, Deserialize)]
struct EvidenceLine {
    /// Keys or ids of the memories that answer it; a line without any counts for nothing.
    #[serde(default)]
    evidence: Vec<String>,
}

impl EffortOptions {
    /// What was typed; the parser lets only one of them through.
    pub(crate) fn effort(&self) -> Effort {
        match (self.ef, self.recall) {
            _ if self.exact => Effort::Exact,
            (Some(ef), _) => Effort::Ef(ef),
            (None, Some(recall)) => Effort::Recall(recall),
            (None, None) => Effort::default(),
        }
    }
}

impl QueryLine {
    /// What the line says, else what holds for all lines.
    fn effort(&self, default: Effort) -> Result<Effort> {
        match (self.ef, self.recall, self.exact) {
            (None, None, None) => Ok(default),
            (None, None, Some(false)) if default == Effort::Exact => Ok(Effort::default()),
            (None, None, Some(false)) => Ok(default),
            (None, None, Some(true)) => Ok(Effort::Exact),
            (Some(ef), None, None | Some(false)) => Ok(Effort::Ef(ef)),
            (None, Some(recall), None | Some(false)) => Ok(Effort::Recall(recall)),
            _ => Err(Error::invalid("line", "must have one of ef, recall and exact at most", "more of them")),
        }
    }
}

/// Reads queries, with their vectors by row.
pub(crate) struct Queries<'c> {
    lines: LineReader<Box<dyn std::io::BufRead + 'c>>,
    vectors: Option<NpyReader<std::io::BufReader<std::fs::File>>>,
    /// What the last line says that answers its query.
    pub(crate) evidence: Vec<String>,
}

impl<'c> Queries<'c> {
    pub(crate) fn open(queries: &Path, vectors: Option<&Path>, caller: &'c Caller) -> Result<Self> {
        let lines = LineReader::new(write::read(queries, caller)?, queries);
        Ok(Queries { lines, vectors: vectors.map(NpyReader::open).transpose()?, evidence: Vec::new() })
    }

    /// The next query; what its line does not say is as in `defaults`.
    pub(crate) fn next(
        &mut self,
        defaults: &(NamespaceName, Query),
    ) -> Result<Option<(u64, NamespaceName, Query)>> {
        let Some((number, text)) = self.lines.next_line()? else {
            return match &self.vectors {
                Some(vectors) if vectors.position() < vectors.rows() => {
                    let lines = told::of(vectors.position(), "line", "lines");
                    let shown = format!("{} for {lines}", told::of(vectors.rows(), "row", "rows"));
                    Err(Error::invalid("vectors", "must have as many rows as there are lines", shown))
                }
                _ => Ok(None),
            };
        };
        let read = read_line(text, defaults);
        let told: Option<EvidenceLine> = serde_json::from_slice(text).ok();
        self.evidence = told.map(|told| told.evidence).unwrap_or_default();
        let (namespace, mut query) = read.map_err(|error| error.at_line(number))?;
        if let Some(vectors) = &mut self.vectors {
            let mut row = Vec::new();
            if !vectors.next_row(&mut row)? {
                let shown = told::of(vectors.rows(), "row", "rows");
                return Err(Error::invalid("vectors", "must have a row for each line", shown).at_line(number));
            }
            query.vector = Some(row);
        }
        Ok(Some((number, namespace, query)))
    }
}

fn read_line(text: &[u8], defaults: &(NamespaceName, Query)) -> Result<(NamespaceName, Query)> {
    let refused = |field: &str, bound: &str| Error::invalid(field, bound, String::from_utf8_lossy(text));
    let no_query =
        || refused("line", "must be a query: a JSON object such as {\"query\": \"tea\", \"k\": 5}");
    let line: QueryLine = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text))
        .map_err(|error| match error.path().to_string().as_str() {
        "." => no_query(),
        field @ ("k" | "offset" | "ef") => refused(field, "must be a whole number, 0 or more"),
        field @ ("min_score" | "recall" | "diversity") => refused(field, "must be a number"),
        field @ "exact" => refused(field, "must be true or false"),
        field => refused(field, "must be a text, and be given once"),
    })?;
    let members: Map<String, Value> = serde_json::from_slice(text).map_err(|_| no_query())?;
    check_names(&members)?;
    let (namespace, mut query) = defaults.clone();
    query.effort = line.effort(query.effort)?;
    query.text = line.query;
    if let Some(mode) = &line.mode {
        query.mode = mode.parse()?;
    }
    query.k = line.k.unwrap_or(query.k);
    query.offset = line.offset.unwrap_or(query.offset);
    query.min_score = line.min_score.or(query.min_score);
    query.diversity = line.diversity.unwrap_or(query.diversity);
    if let Some(filter) = &line.filter {
        query.filter = Some(Filter::from_json(filter)?);
    }
    if let Some(agent) = &line.agent {
        query.scope = Scope::agent(agent)?;
    }
    Ok((line.namespace.map_or(Ok(namespace), |name| name.parse())?, query))
}

/// Many queries: a line each, in order.
fn many(queries: &Path, options: &SearchOptions, place: &Place, output: Output<'_>) -> Done {
    let defaults = Query {
        mode: options.mode,
        k: options.k,
        offset: options.offset,
        min_score: options.min_score,
        scope: options.scope.scope()?,
        filter: options.filter.as_deref().map(Filter::parse).transpose()?,
        effort: options.effort.effort(),
        diversity: options.diversity,
        deadline: deadline(options)?,
        at: options.past.point()?,
        track: Some(options.track),
        step: options.step,
        ..Query::default()
    };
    defaults.check()?;
    let defaults = (place.namespace()?, defaults);
    let mut queries = Queries::open(queries, options.vectors.as_deref(), place.caller())?;
    let database: Database = place.open(access(options))?;
    let unknown = place.unknown_namespace(&database.namespaces()?, output)?;
    let snapshot = database.snapshot()?;
    let mut out = BufWriter::new(place.caller().output());
    let mut answered = 0_u64;
    while let Some((number, namespace, query)) = queries.next(&defaults)? {
        answered += 1;
        let (team, begun) = (snapshot.namespace(&namespace)?, Instant::now());
        let given = |hits: &[Hit]| options.max_tokens.map_or(hits.len(), |most| fitting(hits, most));
        let (found, left_out) = team.search_given(&query, given).map_err(|error| error.at_line(number))?;
        if output.json {
            writeln!(out, "{}", answer(found, left_out, micros(begun))).map_err(unwritable)?;
            continue;
        }
        let asked = query.text.as_deref().unwrap_or("a vector");
        output.line(&printable(&format!("Query {number}: {asked}")))?;
        let is_told = unknown.as_ref() == Some(&namespace);
        let most = options.max_tokens.filter(|_| left_out > 0);
        let none = none(&team, (&query, most, &found.plan), &database, is_told)?;
        tell(&team, (&query, &found.hits, &found.plan), None, &none, output)?;
        tell_left_out(found.hits.len(), left_out, output);
    }
    if answered == 0 {
        output.remark("There is no query to answer: the file has no line");
    }
    if options.track {
        database.flush_access()?;
    }
    out.flush().map_err(unwritable)
}

/// A search that counts its hits writes.
fn access(options: &SearchOptions) -> Access {
    if options.track { Access::Write } else { Access::Read }
}

/// The answer to one of many queries, for a program.
fn answer(found: SearchResult, left_out: usize, took_us: u64) -> Value {
    let (mut keys, mut ids, mut scores, mut relevances) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for hit in found.hits {
        keys.push(hit.key);
        ids.push(hit.id);
        scores.push(hit.score);
        relevances.push(hit.relevance);
    }
    json!({
        "keys": keys, "ids": ids, "scores": scores, "relevances": relevances, "took_us": took_us,
        "left_out": left_out, "partial": found.plan.partial,
    })
}
