//! `eval --gc`: what is still found when old memories have made room for summaries. Everything happens on copies.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use oubliette::clock::ManualClock;
use oubliette::gc::{Extractive, GcOptions, GcRunOptions, InputPack, Summarizer, token_estimate};
use oubliette::memory::Got;
use oubliette::policy::Policy;
use oubliette::{
    Database, Error, ErrorKind, Kind, Memory, MemoryId, NamespaceName, PageRequest, Patch, Query, Result,
    Scope, Span, Time,
};
use serde_json::{Value, json};

use crate::arguments::EvalOptions;
use crate::caller::Caller;
use crate::embedder;
use crate::evidence::{names, note_unknown, tell_unknown};
use crate::gc_arguments::GcEvalOptions;
use crate::maintain;
use crate::output::{Done, Failure, Output};
use crate::place::{Access, Place};
use crate::progress::Progress;
use crate::search::Queries;
use crate::temporary::TemporaryFolder;

/// Share of the content words of an evidence that a summary must have to carry it.
const CARRIED: f64 = 0.6;
/// Rows that are read at a time.
const PAGE_ROWS: usize = 1_000;
/// Events of a summary of one of the baselines.
const EVENTS: usize = 25;
/// Budget of a summary in bytes of text, however small the share, as long as it is at most half of the sources: that of the built-in summarizer.
const BYTES_MIN: usize = 240;
/// Words that say nothing of what a text is about.
const EMPTY_WORDS: &str = "a an and are as at be been being by for from had has have he her his how i in is it its me my no not \
    of on or our she so that the their them then there these they this those to us was we were what when where which who \
    why will with you your do does did but if just can could would should about up out all also some any than too very am";

/// A question, and the keys of what answers it.
struct Question {
    namespace: NamespaceName,
    query: Query,
    evidence: Vec<String>,
}

/// What the questions find.
#[derive(Default)]
struct Found {
    by_source: f64,
    by_text: f64,
    /// Tokens of the hits of all questions.
    tokens: u64,
}

/// The options, if all of them can be measured.
fn checked(options: &GcEvalOptions) -> Result<&GcEvalOptions> {
    if let Some(share) = options.shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(Error::invalid("--share", "must be 0 to 1", share));
    }
    match options.budgets.iter().find(|budget| !(**budget > 0.0 && **budget <= 1.0)) {
        Some(budget) => Err(Error::invalid("--budget", "must be above 0 and at most 1", budget)),
        None => Ok(options),
    }
}

/// `eval --gc`.
pub(crate) fn run(options: &EvalOptions, place: &Place, output: Output<'_>) -> Done {
    let questions = questions(options, place)?;
    if questions.is_empty() {
        return Err(Failure::Usage("eval --gc needs `query` and `evidence` in its lines".to_owned()));
    }
    let options = checked(&options.gc)?;
    let database = place.open(Access::Read)?;
    place.unknown_namespace(&database.namespaces()?, output)?;
    let folder = TemporaryFolder::new()?;
    let original = folder.path().join("original.oub");
    let report = database.backup(&original)?;
    let policy = policy(&database)?;
    let shares = if options.shares.is_empty() { &[0.25, 0.5, 0.75, 0.9][..] } else { &options.shares };
    let budgets =
        if options.budgets.is_empty() { vec![policy.gc.summary_tokens] } else { options.budgets.clone() };
    let (texts, mut unknown) = (texts(&database, &questions)?, BTreeSet::new());
    let snapshot = database.snapshot()?;
    for question in &questions {
        note_unknown(&snapshot, &question.namespace, &question.evidence, &mut unknown)?;
    }
    drop(snapshot);
    tell_unknown(&unknown, output);
    let before = asked(&database, &questions, &texts)?;
    let progress =
        Progress::new(output, Some((shares.len() * budgets.len() * options.summarizers.len()) as u64));
    let mut rows = Vec::new();
    for name in &options.summarizers {
        for budget in &budgets {
            for share in shares {
                let copy = folder.path().join("copy.oub");
                std::fs::copy(&original, &copy).map_err(|source| Error::Io {
                    action: "copy",
                    path: copy.clone(),
                    source,
                })?;
                let row = measured(
                    &copy,
                    place,
                    (&policy, options.group_tokens),
                    (*share, *budget, name),
                    &questions,
                    &texts,
                )?;
                rows.push(row);
                progress.set(rows.len() as u64);
            }
        }
    }
    drop(progress);
    let count = questions.len() as f64;
    let file_bytes = size(&original)?;
    let before = json!({
        "by_source": before.by_source / count, "by_text": before.by_text / count,
        "tokens": before.tokens as f64 / count, "file_bytes": file_bytes, "questions": questions.len(),
    });
    output.document(&json!({ "shares": rows, "before": before, "unknown_evidence": unknown.len() }))?;
    // A copy that misses memories is not what was to be measured.
    maintain::tell_lost(&report, output)
}

/// One row: a copy in which a share of the memories has made room for summaries.
fn measured(
    copy: &Path,
    place: &Place,
    (policy, group_tokens): (&Policy, Option<u64>),
    (share, budget, name): (f64, f64, &str),
    questions: &[Question],
    texts: &HashMap<String, BTreeSet<String>>,
) -> Result<Value, Failure> {
    // A day later nothing is too young.
    let clock = ManualClock::at(place.now().plus(Span::from_days(1)));
    let database = place.builder().clock(clock).policy(policy.clone()).open(copy)?;
    embedder::attach(&database, place.embedder(), place.caller())?;
    let namespaces: BTreeSet<&NamespaceName> = questions.iter().map(|question| &question.namespace).collect();
    let (mut compacted, mut summaries, mut before, mut after) = (0, 0, 0, 0);
    for namespace in namespaces {
        let namespace = database.namespace(namespace)?;
        let rows = rows(&namespace)?;
        let kept = younger(&rows, share);
        let keys =
            rows.iter().map(|row| (row.id.to_string(), row.key().unwrap_or_default().to_owned())).collect();
        database.batch(|batch| {
            for id in &kept {
                batch.update(namespace.name(), *id, Patch::new().admin_locked(true))?;
            }
            Ok(())
        })?;
        let summarizer = summarizer(name, budget, keys, place.caller())?;
        let plan = GcOptions {
            age_min: Some(Span::ZERO),
            access_threshold: Some(1e6),
            group_tokens: group_tokens.or(Extractive::default().group_tokens()),
            ..GcOptions::default()
        };
        let wanted = GcRunOptions { plan, ..GcRunOptions::default() };
        let report = namespace.gc_run(summarizer.as_ref(), &wanted, |_| ())?;
        compacted += report.sources;
        summaries += report.summaries;
        before += report.tokens_before;
        after += report.tokens_after;
    }
    let found = asked(&database, questions, texts)?;
    database.compact()?;
    database.close()?;
    let count = questions.len() as f64;
    Ok(json!({
        "share": share, "budget": budget, "summarizer": name, "compacted": compacted, "summaries": summaries,
        "by_source": found.by_source / count, "by_text": found.by_text / count,
        "tokens": found.tokens as f64 / count, "summary_tokens": after, "source_tokens": before,
        "file_bytes": size(copy)?,
    }))
}

/// The policy of the file, under which every kind of memory can be summarized, and nothing waits in limbo.
fn policy(database: &Database) -> Result<Policy> {
    let (mut policy, _) = database.policy();
    let kinds = database.stats()?.by_kind.into_keys();
    policy.gc.kinds = kinds.filter(|kind| !policy.gc.never_kinds.contains(kind)).collect();
    policy.gc.min_group = 1;
    policy.undo.horizon = Span::ZERO;
    policy.budget.share = 1.0;
    Ok(policy)
}

/// The visible memories of a namespace, oldest first.
fn rows(namespace: &oubliette::Namespace) -> Result<Vec<Memory>> {
    let mut all = Vec::new();
    let mut request = PageRequest { scope: Scope::Any, limit: PAGE_ROWS, ..PageRequest::default() };
    loop {
        let page = namespace.list(&request)?;
        all.extend(page.items);
        match page.next {
            Some(next) => request.cursor = Some(next),
            None => break,
        }
    }
    all.sort_by_key(|row| (when(row), row.id));
    Ok(all)
}

fn when(row: &Memory) -> Time {
    row.happened_at.unwrap_or(row.created_at)
}

/// The memories that stay: those younger than the oldest share. What happened at one instant stays together.
fn younger(rows: &[Memory], share: f64) -> Vec<MemoryId> {
    let wanted = (share * rows.len() as f64).round() as usize;
    let last = wanted.checked_sub(1).and_then(|at| rows.get(at)).map(when);
    rows.iter().filter(|row| last.is_none_or(|last| when(row) > last)).map(|row| row.id).collect()
}

/// The questions of a file.
fn questions(options: &EvalOptions, place: &Place) -> Result<Vec<Question>, Failure> {
    let scope = options.scope.scope()?;
    let defaults = Query { k: options.k, scope, effort: options.effort.effort(), ..Query::default() };
    defaults.check()?;
    let defaults = (place.namespace()?, defaults);
    let mut queries = Queries::open(&options.queries, options.vectors.as_deref(), place.caller())?;
    let mut all = Vec::new();
    while let Some((_, namespace, query)) = queries.next(&defaults)? {
        if query.text.is_some() && !queries.evidence.is_empty() {
            all.push(Question { namespace, query, evidence: queries.evidence.clone() });
        }
    }
    Ok(all)
}

/// The content words of each evidence, by its key.
fn texts(database: &Database, questions: &[Question]) -> Result<HashMap<String, BTreeSet<String>>> {
    let mut all = HashMap::new();
    for question in questions {
        let namespace = database.namespace(&question.namespace)?;
        for key in &question.evidence {
            if let Some(memory) = readable(namespace.get(key.as_str()))? {
                all.insert(key.clone(), content_words(&memory.text));
            }
        }
    }
    Ok(all)
}

/// A memory that was read; none where it is damaged.
fn readable(read: Result<Option<Memory>>) -> Result<Option<Memory>> {
    match read {
        Err(error) if error.kind() == ErrorKind::Corrupted => Ok(None),
        read => read,
    }
}

fn content_words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    words
        .filter(|word| !EMPTY_WORDS.split_ascii_whitespace().any(|one| one == *word))
        .map(str::to_owned)
        .collect()
}

/// Asks every question.
fn asked(
    database: &Database,
    questions: &[Question],
    texts: &HashMap<String, BTreeSet<String>>,
) -> Result<Found> {
    let snapshot = database.snapshot()?;
    let mut found = Found::default();
    for question in questions {
        let namespace = snapshot.namespace(&question.namespace)?;
        let hits = namespace.search(&question.query)?.hits;
        let (mut named, mut told, mut carried) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for hit in hits.iter().take(question.query.k) {
            named.extend(names(&snapshot, &question.namespace, hit.id)?);
            let Some(memory) = readable(namespace.get(hit.id))? else { continue };
            found.tokens += token_estimate(&memory.text);
            if memory.kind != Kind::Summary {
                continue;
            }
            let has = content_words(&memory.text);
            for key in &question.evidence {
                let source = match namespace.look_up(key.as_str(), false) {
                    Ok(Got::Tombstone(gone)) => gone.id,
                    Ok(Got::Memory(memory)) => memory.id,
                    Err(_) => continue,
                };
                if !memory.sources.contains(&source) {
                    continue;
                }
                told.insert(key);
                let words = texts.get(key).cloned().unwrap_or_default();
                let shared = words.iter().filter(|word| has.contains(*word)).count();
                if shared as f64 >= CARRIED * words.len() as f64 {
                    carried.insert(key);
                }
            }
        }
        let wanted: BTreeSet<&String> = question.evidence.iter().collect();
        let share = |more: &BTreeSet<&String>| {
            let got = wanted.iter().filter(|key| named.contains(**key) || more.contains(*key)).count();
            got as f64 / wanted.len() as f64
        };
        found.by_source += share(&told);
        found.by_text += share(&carried);
    }
    Ok(found)
}

fn summarizer(
    name: &str,
    budget: f64,
    keys: BTreeMap<String, String>,
    caller: &Caller,
) -> Result<Box<dyn Summarizer>> {
    Ok(match name {
        "builtin" => Box::new(Extractive::new(budget)?),
        "first" | "random" => Box::new(Plain { budget, random: name == "random" }),
        file => Box::new(Facts::read(&caller.folder().join(file), keys)?),
    })
}

/// Sentences to a budget: the first of each source, or any.
struct Plain {
    budget: f64,
    random: bool,
}

impl Summarizer for Plain {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let mut left = ((pack.tokens() as f64 * self.budget) as usize * 4)
            .max(BYTES_MIN.min(pack.tokens() as usize / 2 * 4));
        let mut all: Vec<(usize, usize, &str)> = Vec::new();
        for (source, row) in pack.sources.iter().enumerate() {
            all.extend(sentences(&row.text).into_iter().enumerate().map(|(at, text)| (at, source, text)));
        }
        if self.random {
            // A fixed order that has nothing to do with the texts.
            let mix = |at: usize, source: usize| {
                (at as u64 * 31 + source as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            };
            all.sort_by_key(|(at, source, _)| {
                mix(*at, *source).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            });
        } else {
            all.sort_by_key(|(at, source, _)| (*at, *source));
        }
        let mut chosen: Vec<(usize, usize, &str)> = Vec::new();
        for one in all {
            if one.2.len() < left {
                left -= one.2.len() + 1;
                chosen.push(one);
            }
        }
        chosen.sort_by_key(|(at, source, _)| (*source, *at));
        written(chosen.into_iter().map(|(_, _, text)| text.to_owned()).collect())
    }
}

/// The sentences of a text, roughly.
fn sentences(text: &str) -> Vec<&str> {
    let ends = |pair: &str| [". ", "! ", "? "].iter().any(|end| pair.ends_with(end));
    let (mut all, mut start) = (Vec::new(), 0);
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        if text.get(start..end).is_some_and(ends) {
            all.extend(text.get(start..end).map(str::trim));
            start = end;
        }
    }
    all.extend(text.get(start..).map(str::trim).filter(|rest| !rest.is_empty()));
    all
}

/// Facts that were drawn from the sources, whatever their length.
struct Facts {
    by_key: HashMap<String, Vec<String>>,
    keys: BTreeMap<String, String>,
}

impl Facts {
    fn read(file: &Path, keys: BTreeMap<String, String>) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
            action: "read",
            path: file.to_owned(),
            source,
        })?;
        let mut by_key: HashMap<String, Vec<String>> = HashMap::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).map_err(|why| {
                Error::invalid("--summarizer", format!("must have JSON lines: {why}"), line)
            })?;
            let fact = line.get("text").and_then(Value::as_str).unwrap_or_default();
            let turns = line.get("source_turns").and_then(Value::as_array);
            if let Some(first) = turns.and_then(|turns| turns.first()).and_then(Value::as_str) {
                by_key.entry(first.to_owned()).or_default().push(fact.to_owned());
            }
        }
        Ok(Facts { by_key, keys })
    }
}

impl Summarizer for Facts {
    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let keys = pack.sources.iter().filter_map(|source| self.keys.get(&source.id));
        written(keys.filter_map(|key| self.by_key.get(key)).flatten().cloned().collect())
    }
}

/// A summary of some sentences.
fn written(sentences: Vec<String>) -> Result<String> {
    let each = sentences.len().div_ceil(EVENTS).max(1);
    let events: Vec<String> = sentences.chunks(each).map(|some| some.join(" ")).collect();
    Ok(json!({ "topic": "summary", "time_range": { "start": 0, "end": 0 }, "summary": events }).to_string())
}

fn size(file: &Path) -> Result<u64> {
    let read = std::fs::metadata(file);
    read.map(|meta| meta.len()).map_err(|source| Error::Io { action: "read", path: file.to_owned(), source })
}
