//! Summaries without a model: the sentences of the sources that say most for their length.
//!
//! Each term of a group has a weight: how rare the term is in the group, more for names and figures. A source is worth the
//! cube of the weight of its terms, since what answers a question is rather said in a long message than in a short
//! one. A summary is worth, for each source, the cube of the share of its terms that the summary has, up to the share
//! by which a source counts as told; a term counts once, so a repetition adds nothing. What adds most for each byte is
//! taken until the budget is spent: a sentence, or a few of one source, since each of them may be worth little alone.
//!
//! Sentences are shown without filler words. Numbers, names and words that deny are none.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::document::{SpamPattern, SummaryDocument, TimeSpan};
use super::pack::{InputPack, PackSource, token_estimate};
use super::sentences::{sentences, speaker};
use super::summarizer::Summarizer;
use crate::error::{Error, Result};
use crate::limits::{
    METADATA_BYTES_MAX, SUMMARY_BULLETS_MAX, SUMMARY_TOKENS_MIN, TAG_BYTES_MAX, TOKEN_BYTES,
};
use crate::model::{Refusal, Time};
use crate::policy::Stemming;
use crate::text::Analyzer;

/// Words of English that carry no content by themselves.
const FUNCTION_WORDS: &str = "a an and are as at be been being but by can could did do does for from get got had has have he \
    her hers him his how i i'm i've i'd i'll if in into is it it's its just let me my no not of oh ok on or our out really \
    she so some that that's the their them then there these they this those to too up us very was wasn't we we're we've \
    well were what when where which who why will with would yeah yes you you're you've your about all also am any because \
    don't don didn't doesn't going gonna hey hi hello thanks thank wow much more most only over own same should than";
/// Words that a sentence of a summary can do without. What is to come, who it is for and what is wished are not among them, and no
/// form of *be*: "is owed" is not "owed".
const FILLERS: &str = "a an the and have has had do does did it its it's i i'm i've you your you're you've my \
    me we we're we've our us that that's this there so really just very too also some hey hi oh wow yeah yes well of in at as";
/// The signs that end a sentence.
const END_SIGNS: &str = ".!?";
/// The power that prefers a few sources that are told to many of which a little is.
const WORTH_POWER: i32 = 3;
/// Share of the terms of a source by which the source counts as told.
const SHARE_TOLD: f64 = 0.7;
/// The share of a budget, 1 in so many, that the lines of sources that are nearly told leave free.
const LINES_RESERVE: usize = 16;
/// Sentences of a group for which a round takes one sentence more.
const SENTENCES_A_ROUND: usize = 200;
/// Sentences of one source that are taken together at most.
const TOGETHER_MAX: usize = 4;
/// Tokens of the sources of a summary, about one session of talk. A shorter group has fewer words in common that need to be
/// said once only, and the summary of a longer one is found worse (`docs/benchmarks.md`).
const GROUP_TOKENS: u64 = 1_000;
/// Weight of a term that is a name or has a digit.
const FIGURE_WEIGHT: f64 = 1.5;
/// Names of the topic, and content words of it.
const TOPIC_NAMES: usize = 3;
const TOPIC_WORDS: usize = 4;
/// Bytes of a word of the topic.
const TOPIC_WORD_BYTES_MAX: usize = 40;
/// Bytes of a day and the space behind it, and of the sign before an event with its line end.
const DAY_BYTES: usize = 11;
const LINE_BYTES: usize = 3;
/// Bytes of an empty list as JSON.
const LIST_BYTES: usize = 2;
/// Names of a summary.
const ENTITIES_MAX: usize = 16;

/// Writes summaries by copying sentences, without a model: deterministic, offline, linear in its sources.
///
/// Sentences stand in order of time, with speaker and day. A sentence is copied as a whole but for filler words, so no
/// number, date, name or negation leaves its words. No word is added.
///
/// ```
/// use oubliette::Kind;
/// use oubliette::gc::{Extractive, InputPack, PackLimits, PackSource, Summarizer, SummaryDocument};
///
/// let source = |id: &str, text: &str| PackSource {
///     id: id.into(), ts: 0, channel: None, author_kind: None, kind: Kind::Message, text: text.into(),
/// };
/// let well = "Bob: That is how it was, and so it will be for all of us. Well, when would you do that? \
///     Yes, she could get more of it, but they can also do so.";
/// let texts = [source("1", "Ann: The flight leaves on 7 May at 14:05."), source("2", well)];
/// let pack = InputPack::new(texts.to_vec(), vec![], PackLimits { bullets: 25, patterns: 10 });
/// let summary = SummaryDocument::parse(&Extractive::default().summarize(&pack)?).unwrap();
/// assert_eq!(summary.summary[0], "1970-01-01 Ann: flight leaves on 7 May 14:05.");
/// # Ok::<(), oubliette::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extractive {
    share: f64,
}

impl Default for Extractive {
    fn default() -> Self {
        Extractive { share: 0.2 }
    }
}

impl Extractive {
    /// Writes summaries of this share of the tokens of their sources, above 0 and up to 1. Where the share is below 60 tokens, a
    /// summary may have 60 tokens, but at most half of the tokens of its sources. It is always shorter than its sources.
    ///
    /// ```
    /// use oubliette::gc::Extractive;
    /// assert!(Extractive::new(0.1).is_ok());
    /// assert!(Extractive::new(0.0).is_err());
    /// ```
    ///
    /// # Errors
    /// `Invalid` for another share.
    pub fn new(share: f64) -> Result<Self> {
        if share > 0.0 && share <= 1.0 {
            return Ok(Extractive { share });
        }
        Err(Error::invalid("summary_tokens", "must be above 0 and at most 1", share))
    }

    fn budget_bytes(self, tokens: u64) -> usize {
        let share = (tokens as f64 * self.share).floor() as u64;
        share.max(SUMMARY_TOKENS_MIN.min(tokens / 2)) as usize * TOKEN_BYTES
    }
}

impl Summarizer for Extractive {
    fn group_tokens(&self) -> Option<u64> {
        Some(GROUP_TOKENS)
    }

    fn summarize(&self, pack: &InputPack) -> Result<String> {
        let group = Group::read(pack);
        let topic = group.topic();
        let whole = self.budget_bytes(pack.tokens());
        // The sources must go for something: half of what they take, or what the share of the caller leaves.
        let most = (pack.tokens() / 2).max((whole / TOKEN_BYTES) as u64).min(pack.tokens().saturating_sub(1));
        let mut budget = whole.min(METADATA_BYTES_MAX).saturating_sub(topic.len());
        loop {
            let chosen = group.choose(budget);
            if chosen.is_empty() || budget == 0 {
                let why = format!(
                    "no sentence of the sources fits into a summary of at most {most} tokens; the sources have {}",
                    pack.tokens()
                );
                return Err(Error::Refused { code: Refusal::NoGain.as_str(), why, pointers: Vec::new() });
            }
            let document = group.document(pack, topic.clone(), &chosen);
            let tokens = token_estimate(&document.content());
            let beyond = json!(document.summary).to_string().len().saturating_sub(METADATA_BYTES_MAX);
            if tokens <= most && beyond == 0 {
                return Ok(serde_json::to_value(&document).unwrap_or(Value::Null).to_string());
            }
            // The days, the speakers and the signs of JSON, which the budget leaves out, have made the summary too long.
            let too_many = tokens.saturating_sub(most) as usize * TOKEN_BYTES;
            budget = budget.saturating_sub(too_many.max(beyond));
        }
    }
}

impl Group<'_> {
    /// The summary that consists of some sentences.
    fn document(&self, pack: &InputPack, topic: String, chosen: &[usize]) -> SummaryDocument {
        let bullets = pack.limits.bullets.clamp(1, SUMMARY_BULLETS_MAX);
        let times = pack.sources.iter().map(|source| source.ts);
        let spans = pack.aggregates.iter().map(|aggregate| aggregate.time_span);
        let start = times.clone().chain(spans.clone().map(|span| span.start)).min().unwrap_or_default();
        let end = times.chain(spans.map(|span| span.end)).max().unwrap_or_default();
        SummaryDocument {
            topic,
            time_range: TimeSpan { start, end },
            summary: self.events(chosen, bullets),
            spam_patterns: patterns(pack),
            decisions: Vec::new(),
            open_loops: Vec::new(),
            entities: self.names.iter().take(ENTITIES_MAX).map(|(name, _)| (*name).to_owned()).collect(),
            source_ids: pack.sources.iter().map(|source| source.id.clone()).collect(),
        }
    }
}

/// The patterns of spam that aggregates show: their texts, their signals, their observed counts.
fn patterns(pack: &InputPack) -> Vec<SpamPattern> {
    let with_text = pack.aggregates.iter().filter_map(|aggregate| {
        let pattern = aggregate.examples.iter().find(|text| !text.is_empty())?.clone();
        let (signals, count_estimate) = (aggregate.signals.clone(), Some(aggregate.dup_count));
        Some(SpamPattern { pattern, signals, count_estimate, estimated: Some(false) })
    });
    // One pattern that no field has room for is left out, and the others are told.
    let mut room = METADATA_BYTES_MAX - LIST_BYTES;
    let fitting = with_text.filter(|pattern| {
        let rest = room.checked_sub(json!(pattern).to_string().len() + 1);
        room = rest.unwrap_or(room);
        rest.is_some()
    });
    fitting.take(pack.limits.patterns).collect()
}

/// A sentence of a source.
struct Sentence<'a> {
    /// The position of its source.
    source: usize,
    text: &'a str,
    /// The text without filler words.
    shown: String,
    /// Its content terms, each once.
    terms: Vec<u32>,
}

/// A term of a group.
struct Term<'a> {
    /// The word in which the term was first seen.
    word: &'a str,
    /// How many sources have the term.
    sources: u32,
    /// The last source in which the term was seen.
    last: usize,
    /// Whether the term was seen as a name or has a digit.
    is_figure: bool,
    weight: f64,
}

/// The sources of a pack, read.
struct Group<'a> {
    sources: &'a [PackSource],
    speakers: Vec<Option<&'a str>>,
    /// The day of each source.
    days: Vec<String>,
    sentences: Vec<Sentence<'a>>,
    terms: Vec<Term<'a>>,
    /// The sources that have each term.
    sources_of: Vec<Vec<u32>>,
    /// The number of terms of each source, and what the whole source is worth.
    worths: Vec<(u32, f64)>,
    /// Names with their numbers, most frequent first.
    names: Vec<(&'a str, u32)>,
}

/// The terms while a group is read.
struct Reading<'a> {
    analyzer: Analyzer,
    function_words: std::collections::HashSet<String>,
    numbers: HashMap<String, u32>,
    terms: Vec<Term<'a>>,
    names: HashMap<&'a str, (u32, usize)>,
}

impl<'a> Reading<'a> {
    fn new() -> Self {
        let analyzer = Analyzer::new(Stemming::English);
        let mut function_words = std::collections::HashSet::new();
        analyzer.analyze(FUNCTION_WORDS, &mut |term, _| {
            function_words.insert(term.to_owned());
        });
        let (numbers, names) = (HashMap::new(), HashMap::new());
        Reading { analyzer, function_words, numbers, terms: Vec::new(), names }
    }

    fn name(&mut self, name: &'a str) {
        let next = self.names.len();
        self.names.entry(name).or_insert((0, next)).0 += 1;
    }

    /// The content terms of a sentence.
    fn sentence(&mut self, text: &'a str, source: usize) -> Vec<u32> {
        let mut found = Vec::new();
        // In a sentence of capitals, a word of capitals is no name.
        let has_small = text.contains(char::is_lowercase);
        for (at, word) in text.split_whitespace().enumerate() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            let is_abbreviation = has_small && word.len() > 1 && word.chars().all(char::is_uppercase);
            let before = found.len();
            let Reading { analyzer, function_words, numbers, terms, .. } = self;
            analyzer.analyze(word, &mut |term, _| {
                if function_words.contains(term) && !is_abbreviation {
                    return;
                }
                let number = numbers.get(term).copied().unwrap_or_else(|| {
                    let number = u32::try_from(terms.len()).unwrap_or(u32::MAX);
                    numbers.insert(term.to_owned(), number);
                    let is_figure = term.contains(|c: char| c.is_ascii_digit());
                    terms.push(Term { word, sources: 0, last: usize::MAX, is_figure, weight: 0.0 });
                    number
                });
                found.push(number);
            });
            // The first word of a sentence has a capital anyway.
            let is_name = at > 0 && word.starts_with(char::is_uppercase) && found.len() > before;
            if is_name && word.len() <= TAG_BYTES_MAX {
                let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
                self.name(word);
                for number in found.iter().skip(before) {
                    if let Some(term) = self.terms.get_mut(*number as usize) {
                        term.is_figure = true;
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        for number in &found {
            if let Some(term) = self.terms.get_mut(*number as usize).filter(|term| term.last != source) {
                (term.last, term.sources) = (source, term.sources + 1);
            }
        }
        found
    }
}

/// A sentence without filler words; as it is if it has no others.
fn without_fillers(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut words = text.split_whitespace().peekable();
    let mut begins = true;
    while let Some(word) = words.next() {
        let next = words.peek().copied();
        if !is_filler(begins, word, next) {
            if !shown.is_empty() {
                shown.push(' ');
            }
            shown.push_str(word);
        } else if next.is_none() && shown.ends_with(char::is_alphanumeric) {
            // The end of the sentence stays.
            shown.push_str(word.trim_start_matches(|c: char| !END_SIGNS.contains(c)));
        }
        begins = false;
    }
    if shown.is_empty() { text.to_owned() } else { shown }
}

/// Whether a word says nothing by itself, where a sentence `begins` with it or another word is `next`. A capital makes a name of most words: "9 AM", "the US", "IT", and
/// "An Li" even where the sentence begins. "I" has a capital anyway, and so has the first word if no name follows.
fn is_filler(begins: bool, word: &str, next: Option<&str>) -> bool {
    let bare = word.trim_matches(|c: char| c.is_ascii_punctuation()).replace('’', "'");
    let is_i = bare == "I" || bare.starts_with("I'");
    let begins = begins && !next.is_some_and(|next| next.starts_with(char::is_uppercase));
    let mut letters = bare.chars();
    let is_capital = letters.next().is_some_and(char::is_uppercase);
    // One capital letter may be a name: "plan A".
    let may_be_name = is_capital && !is_i && (!begins || letters.next().is_none_or(char::is_uppercase));
    let bare = bare.to_lowercase();
    !may_be_name && FILLERS.split_ascii_whitespace().any(|filler| filler == bare)
}

impl<'a> Group<'a> {
    fn read(pack: &'a InputPack) -> Self {
        let mut reading = Reading::new();
        let (mut all, mut speakers) = (Vec::new(), Vec::new());
        for (source, row) in pack.sources.iter().enumerate() {
            let (speaker, said) = speaker(&row.text);
            if let Some(name) = speaker {
                reading.name(name);
            }
            speakers.push(speaker);
            for text in sentences(said) {
                let terms = reading.sentence(text, source);
                all.push(Sentence { source, text, shown: without_fillers(text), terms });
            }
        }
        let count = pack.sources.len() as f64;
        let Reading { mut terms, names, .. } = reading;
        for term in &mut terms {
            let sources = f64::from(term.sources);
            let figure = if term.is_figure { FIGURE_WEIGHT } else { 1.0 };
            term.weight = figure * (1.0 + count / sources).ln();
        }
        let mut names: Vec<(&str, (u32, usize))> = names.into_iter().collect();
        names.sort_unstable_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
        let names = names.into_iter().map(|(name, (count, _))| (name, count)).collect();
        let mut sources_of = vec![Vec::new(); terms.len()];
        let mut worths = vec![(0, 0.0); pack.sources.len()];
        for sentence in &all {
            for number in &sentence.terms {
                let number = *number as usize;
                let (of, term) = (sources_of.get_mut(number), terms.get(number));
                let (Some(of), Some(term), Some(worth)) = (of, term, worths.get_mut(sentence.source)) else {
                    continue;
                };
                let source = sentence.source as u32;
                // Sentences of one source stand one behind the other.
                if of.last() != Some(&source) {
                    of.push(source);
                    *worth = (worth.0 + 1, worth.1 + term.weight);
                }
            }
        }
        worths.iter_mut().for_each(|(_, worth)| *worth = worth.powi(WORTH_POWER));
        let days = pack.sources.iter().map(|source| Time::from_millis(source.ts).day()).collect();
        Group { sources: &pack.sources, speakers, days, sentences: all, terms, sources_of, worths, names }
    }

    /// What a summary is worth for telling so many terms of a source. Half of what counts is worth an eighth of it, and what
    /// lies past `enough`, the share of its terms by which a source counts as told, is worth nothing.
    fn worth(&self, source: usize, count: u32, enough: f64) -> f64 {
        let (terms, whole) = self.worths.get(source).copied().unwrap_or_default();
        let share = f64::from(count) / (f64::from(terms.max(1)) * enough);
        whole * share.min(1.0).powi(WORTH_POWER)
    }

    /// The most frequent names, and the heaviest words besides. Words of the sources only.
    fn topic(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        let fits = |word: &str| !word.is_empty() && word.len() <= TOPIC_WORD_BYTES_MAX;
        let names = self.names.iter().map(|(name, _)| *name).filter(|name| fits(name));
        words.extend(names.take(TOPIC_NAMES));
        // A number alone names no topic.
        let says = |word: &str| fits(word) && word.chars().any(char::is_alphabetic);
        let mut terms: Vec<&Term<'_>> = self.terms.iter().filter(|term| says(term.word)).collect();
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let most = words.len() + TOPIC_WORDS;
        for term in terms {
            if words.len() >= most {
                break;
            }
            let has = |word: &&str| word.to_lowercase().contains(&term.word.to_lowercase());
            if !words.iter().any(has) {
                words.push(term.word);
            }
        }
        if words.is_empty() {
            let first = self.sentences.iter().flat_map(|sentence| sentence.text.split_whitespace());
            words.extend(first.filter(|word| fits(word)).take(TOPIC_WORDS));
        }
        // Where every word is too long for a topic, the day must do: a topic is never empty.
        if words.is_empty() {
            words.extend(self.days.first().map(String::as_str));
        }
        words.join(", ")
    }

    /// The positions of the sentences of a summary of at most so many bytes, in order.
    fn choose(&self, budget: usize) -> Vec<usize> {
        let mut told = Told::new(self);
        let (mut left, mut chosen) = (budget, Vec::new());
        let mut open: Vec<usize> = (0..self.sentences.len()).collect();
        // Every gain is worked out anew in each round, because telling of a source raises the worth of its other
        // sentences. A large group takes several sentences a round.
        let each = 1 + self.sentences.len() / SENTENCES_A_ROUND;
        loop {
            let mut round: Vec<(f64, Vec<usize>)> = Vec::with_capacity(open.len());
            for of in open.chunk_by(|a, b| self.source_of(*a) == self.source_of(*b)) {
                for some in self.together(of, &told) {
                    let bytes = self.bytes(&some, &told.has_source);
                    if bytes <= left {
                        round.push((told.gain(&self.terms_of(&some)) / bytes as f64, some));
                    }
                }
            }
            round.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let before = chosen.len();
            for (_, some) in round.into_iter().take(each) {
                let bytes = self.bytes(&some, &told.has_source);
                let is_taken = chosen.iter().skip(before).any(|taken| some.contains(taken));
                // The first sentence of all may be without content.
                let is_empty = !chosen.is_empty() && told.gain(&self.terms_of(&some)) <= 0.0;
                if bytes > left || is_taken || is_empty {
                    continue;
                }
                left -= bytes;
                some.iter().filter_map(|at| self.sentences.get(*at)).for_each(|sentence| told.tell(sentence));
                chosen.extend(some);
            }
            if chosen.len() == before && told.enough < 1.0 {
                // Sources that are alike are told by one of them but for a name or a figure, which is what each says. These are
                // many short lines, and what a line costs is only known within so much.
                told.enough = 1.0;
                left = left.saturating_sub(budget / LINES_RESERVE);
                continue;
            }
            if chosen.len() == before {
                chosen.sort_unstable();
                return chosen;
            }
            open.retain(|at| !chosen.iter().skip(before).any(|taken| taken == at));
        }
    }

    fn source_of(&self, sentence: usize) -> Option<usize> {
        self.sentences.get(sentence).map(|sentence| sentence.source)
    }

    /// What may be told next of a source of which these sentences are open: one of them, or a few that tell most that is
    /// new for their length.
    fn together(&self, of: &[usize], told: &Told<'_, '_>) -> Vec<Vec<usize>> {
        let density = |at: &usize| {
            let sentence = self.sentences.get(*at)?;
            let is_new = |term: &&u32| !told.covered.get(**term as usize).copied().unwrap_or(true);
            let new = sentence.terms.iter().filter(is_new).count();
            Some((new as f64 / (sentence.shown.len() + 1) as f64, *at))
        };
        let mut ranked: Vec<(f64, usize)> = of.iter().filter_map(density).collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let most = ranked.len().min(TOGETHER_MAX);
        let few = (2..=most).map(|count| ranked.iter().take(count).map(|(_, at)| *at).collect());
        of.iter().map(|at| vec![*at]).chain(few).collect()
    }

    /// The terms of some sentences, each once.
    fn terms_of(&self, some: &[usize]) -> Vec<u32> {
        let sentences = some.iter().filter_map(|at| self.sentences.get(*at));
        let mut terms: Vec<u32> = sentences.flat_map(|sentence| sentence.terms.iter().copied()).collect();
        terms.sort_unstable();
        terms.dedup();
        terms
    }

    /// The bytes that some sentences of one source add at most: with day and speaker, unless the source stands there
    /// already.
    fn bytes(&self, some: &[usize], has_source: &[bool]) -> usize {
        let sentences = some.iter().filter_map(|at| self.sentences.get(*at));
        let text = sentences.map(|sentence| sentence.shown.len() + 1).sum();
        let source = some.first().and_then(|at| self.source_of(*at)).unwrap_or_default();
        if has_source.get(source).copied().unwrap_or(false) {
            return text;
        }
        let speaker = self.speakers.get(source).copied().flatten();
        let begins_day =
            source == 0 || self.days.get(source) != self.days.get(source - 1) || !has_source.contains(&true);
        let day = if begins_day { DAY_BYTES } else { 0 };
        text + day + LINE_BYTES + speaker.map_or(0, |name| name.len() + ": ".len())
    }

    /// The chosen sentences as events: a source each, or so many sources that there are at most `most` events.
    fn events(&self, chosen: &[usize], most: usize) -> Vec<String> {
        let chosen: Vec<&Sentence<'_>> = chosen.iter().filter_map(|at| self.sentences.get(*at)).collect();
        let lines: Vec<&[&Sentence<'_>]> = chosen.chunk_by(|a, b| a.source == b.source).collect();
        let each = lines.len().div_ceil(most.max(1)).max(1);
        let mut last_day = None;
        lines.chunks(each).map(|lines| self.event(lines, &mut last_day)).collect()
    }

    /// Lines of one source each as one event. A day stands where it begins.
    fn event(&self, lines: &[&[&Sentence<'_>]], last_day: &mut Option<String>) -> String {
        let (mut words, mut last_speaker) = (Vec::new(), None);
        for line in lines {
            let Some(source) = line.first().map(|sentence| sentence.source) else { continue };
            let day = self.days.get(source).cloned();
            if day != *last_day {
                words.extend(day.clone());
                (*last_day, last_speaker) = (day, None);
            }
            let speaker = self.speakers.get(source).copied().flatten();
            if let Some(name) = speaker.filter(|_| speaker != last_speaker) {
                words.push(format!("{name}:"));
            }
            words.extend(line.iter().map(|sentence| sentence.shown.clone()));
            last_speaker = speaker;
        }
        words.join(" ")
    }
}

/// How much of each source a summary tells.
struct Told<'g, 'a> {
    group: &'g Group<'a>,
    /// Terms that the summary has.
    covered: Vec<bool>,
    /// Terms of each source that the summary has.
    counts: Vec<u32>,
    /// Whether a sentence of the source stands in the summary.
    has_source: Vec<bool>,
    /// Terms that a sentence would add to each source; all 0 between two calls.
    added: Vec<u32>,
    /// The share of its terms by which a source counts as told.
    enough: f64,
}

impl<'g, 'a> Told<'g, 'a> {
    fn new(group: &'g Group<'a>) -> Self {
        let sources = group.sources.len();
        Told {
            group,
            covered: vec![false; group.terms.len()],
            counts: vec![0; sources],
            has_source: vec![false; sources],
            added: vec![0; sources],
            enough: SHARE_TOLD,
        }
    }

    /// What these terms, each once, add to the worth of the summary.
    fn gain(&mut self, terms: &[u32]) -> f64 {
        let mut touched = Vec::new();
        for term in terms.iter().map(|term| *term as usize) {
            if self.covered.get(term).copied().unwrap_or(true) {
                continue;
            }
            for source in self.group.sources_of.get(term).into_iter().flatten() {
                if let Some(added) = self.added.get_mut(*source as usize) {
                    if *added == 0 {
                        touched.push(*source as usize);
                    }
                    *added += 1;
                }
            }
        }
        let mut gain = 0.0;
        for source in touched {
            let (added, count) = (self.added.get_mut(source), self.counts.get(source));
            if let (Some(added), Some(count)) = (added, count) {
                let worth = |count| self.group.worth(source, count, self.enough);
                gain += worth(count + *added) - worth(*count);
                *added = 0;
            }
        }
        gain
    }

    fn tell(&mut self, sentence: &Sentence<'_>) {
        if let Some(has) = self.has_source.get_mut(sentence.source) {
            *has = true;
        }
        for term in sentence.terms.iter().map(|term| *term as usize) {
            let Some(covered) = self.covered.get_mut(term).filter(|covered| !**covered) else { continue };
            *covered = true;
            for source in self.group.sources_of.get(term).into_iter().flatten() {
                if let Some(count) = self.counts.get_mut(*source as usize) {
                    *count += 1;
                }
            }
        }
    }
}
