//! The guards that keep texts of different meaning apart.

use std::collections::HashMap;

use super::scan::{Piece, Pieces};
use super::words::{WordSet, compatible, is_word, looks_like_name, lowered, overlap, words};
use crate::model::closed::closed_set;
use crate::policy;

/// Characters that stand for an apostrophe inside a word; NFKC keeps them apart.
const APOSTROPHES: [char; 3] = ['\'', '\u{2019}', '\u{2BC}'];
/// Bytes of `YYYY-MM-DD`.
const DATE_BYTES: usize = 10;

closed_set! {
    /// One guard.
    pub Guard "guard" {
        /// The multisets of numbers with their units are equal, and so are those of ids.
        Digits = 0, "digits";
        /// The sets of dates and times are equal.
        Dates = 1, "dates";
        /// The counts of denying words are equal.
        Negation = 2, "negation";
        /// The names of each text occur in the other.
        Names = 3, "names";
        /// No word of one text has its opposite in the other.
        Opposites = 4, "opposites";
        /// The words that each text has once stand in the same order in both.
        Order = 5, "order";
    }
}

/// The guards, compiled from a policy. Each guard is symmetric, and passes two equal texts.
#[derive(Debug, Clone)]
pub struct Guards {
    negation: WordSet,
    negation_endings: Vec<String>,
    /// For each word the pairs to which it belongs, and its side of the pair, 1 or 2.
    opposites: HashMap<String, Vec<(usize, u8)>>,
    caseless_jaccard: f64,
    stopwords: WordSet,
    units: WordSet,
}

/// What the guards compare of one text. A text that is compared with many others is read once.
///
/// Profiles are compared only if the same guards made them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    figures: Figures,
    negations: usize,
    vocabulary: Vocabulary,
    opposites: Vec<(usize, u8)>,
    order: Vec<String>,
}

/// Numbers and ids, as often as they occur, and dates, each once; sorted, one on each line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Figures {
    numbers: String,
    dates: String,
}

/// Lowercase words, sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vocabulary {
    words: Vec<String>,
    names: Vec<String>,
    /// Whether more than half of the letters have no case.
    caseless: bool,
}

impl Guards {
    /// The guards with the lists of a policy: denying words and opposites from `guards`, stopwords and units
    /// from `collapse`.
    pub fn new(guards: &policy::Guards, collapse: &policy::Collapse) -> Self {
        let (endings, negation): (Vec<_>, Vec<_>) =
            guards.negation.iter().partition(|word| word.starts_with('*'));
        let mut opposites: HashMap<String, Vec<(usize, u8)>> = HashMap::new();
        for (pair, [one, other]) in guards.opposites.iter().enumerate() {
            opposites.entry(lowered(one)).or_default().push((pair, 1));
            opposites.entry(lowered(other)).or_default().push((pair, 2));
        }
        Guards {
            negation: WordSet::new(negation),
            negation_endings: endings.iter().filter_map(|word| word.strip_prefix('*')).map(lowered).collect(),
            opposites,
            caseless_jaccard: guards.caseless_jaccard,
            stopwords: WordSet::new(&collapse.stopwords),
            units: WordSet::new(&collapse.units),
        }
    }

    /// Whether a pair of texts passes one guard.
    pub fn check(&self, guard: Guard, a: &str, b: &str) -> bool {
        match guard {
            Guard::Digits => self.figures(a).numbers == self.figures(b).numbers,
            Guard::Dates => self.figures(a).dates == self.figures(b).dates,
            Guard::Negation => self.negations(a) == self.negations(b),
            Guard::Names => self.names_agree(&self.vocabulary(a), &self.vocabulary(b)),
            Guard::Opposites => {
                let sides = |text| self.opposites(&self.vocabulary(text).words);
                !opposed(&sides(a), &sides(b))
            }
            Guard::Order => in_one_order(&self.order(a), &self.order(b)),
        }
    }

    /// The first guard that a pair of texts fails, in the order of the rules.
    pub fn first_failing(&self, a: &str, b: &str) -> Option<Guard> {
        self.profile(a).failing(&self.profile(b), self)
    }

    /// What the guards compare of a text.
    pub fn profile(&self, text: &str) -> Profile {
        let vocabulary = self.vocabulary(text);
        Profile {
            figures: self.figures(text),
            negations: self.negations(text),
            opposites: self.opposites(&vocabulary.words),
            order: self.order(text),
            vocabulary,
        }
    }

    /// The numbers and datetimes of a text as `op-1` finds them. Ids count with the numbers. For `op-1` ids
    /// are not figures, but a text about another id is another fact.
    fn figures(&self, text: &str) -> Figures {
        let normal = lowered(text);
        let (mut numbers, mut dates) = (Vec::new(), Vec::new());
        for piece in Pieces::new(&normal, &self.units) {
            match piece {
                Piece::Text(_) => {}
                Piece::Id(id) => numbers.push(id.to_owned()),
                Piece::Number { number, unit } => numbers.push(ungrouped(number) + unit),
                Piece::Datetime(datetime) => dates.push(one_form(datetime)),
            }
        }
        numbers.sort_unstable();
        dates.sort_unstable();
        dates.dedup();
        Figures { numbers: numbers.join("\n"), dates: dates.join("\n") }
    }

    /// The number of denying words. Here a word may have inner apostrophes. A word that does not deny as a
    /// whole (`nobody's`) counts by its parts.
    pub fn negations(&self, text: &str) -> usize {
        let text = lowered(text);
        let chunks = text.split(|c| !is_word(c) && !APOSTROPHES.contains(&c));
        chunks.map(|chunk| self.negations_of_chunk(chunk.trim_matches(APOSTROPHES))).sum()
    }

    fn negations_of_chunk(&self, chunk: &str) -> usize {
        if !chunk.contains(APOSTROPHES) {
            return usize::from(self.denies(chunk));
        }
        let chunk = chunk.replace(APOSTROPHES, "'");
        match self.denies(&chunk) {
            true => 1,
            false => chunk.split('\'').filter(|part| self.denies(part)).count(),
        }
    }

    fn denies(&self, word: &str) -> bool {
        !word.is_empty()
            && (self.negation.contains(word) || self.negation_endings.iter().any(|end| word.ends_with(end)))
    }

    fn vocabulary(&self, text: &str) -> Vocabulary {
        let text = compatible(text);
        let (mut all, mut names) = (Vec::new(), Vec::new());
        for word in words(&text) {
            let lower = word.to_lowercase();
            // A capital inside a word is that of an identifier: `setTotal`.
            let is_name = looks_like_name(word) || word.contains(char::is_uppercase);
            if is_name && !self.stopwords.contains(&lower) {
                names.push(lower.clone());
            }
            all.push(lower);
        }
        for set in [&mut all, &mut names] {
            set.sort_unstable();
            set.dedup();
        }
        Vocabulary { words: all, names, caseless: is_mostly_caseless(&text) }
    }

    /// The lowercase words that a text has once, stopwords aside, in their order.
    fn order(&self, text: &str) -> Vec<String> {
        let text = lowered(text);
        let mut times: HashMap<&str, usize> = HashMap::new();
        words(&text).for_each(|word| *times.entry(word).or_default() += 1);
        let once = |word: &&str| times.get(word) == Some(&1) && !self.stopwords.contains(word);
        words(&text).filter(once).map(str::to_owned).collect()
    }

    /// Whether names agree. If one of the texts is mostly caseless, its names cannot be recognised, and the
    /// sets of all words are compared. Words then end at spaces and punctuation. So in a script without
    /// spaces a clause is one word, and a change in it keeps the texts apart.
    fn names_agree(&self, a: &Vocabulary, b: &Vocabulary) -> bool {
        if a.caseless || b.caseless {
            return overlap(&a.words, &b.words).jaccard >= self.caseless_jaccard;
        }
        let known =
            |names: &[String], words: &[String]| names.iter().all(|name| words.binary_search(name).is_ok());
        known(&a.names, &b.words) && known(&b.names, &a.words)
    }

    /// The sides that a text takes, as a pair and bits, sorted by pair.
    fn opposites(&self, words: &[String]) -> Vec<(usize, u8)> {
        let mut taken: Vec<(usize, u8)> =
            words.iter().filter_map(|word| self.opposites.get(word)).flatten().copied().collect();
        taken.sort_unstable();
        taken.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 |= next.1;
            }
            same
        });
        taken
    }
}

impl Profile {
    /// The first guard that the pair fails, in the order of the rules. `guards` must have made both profiles.
    pub fn failing(&self, other: &Profile, guards: &Guards) -> Option<Guard> {
        Guard::ALL.iter().copied().find(|guard| !self.passes(*guard, other, guards))
    }

    /// Whether the pair passes one guard. `guards` must have made both profiles.
    pub fn passes(&self, guard: Guard, other: &Profile, guards: &Guards) -> bool {
        match guard {
            Guard::Digits => self.figures.numbers == other.figures.numbers,
            Guard::Dates => self.figures.dates == other.figures.dates,
            Guard::Negation => self.negations == other.negations,
            Guard::Names => guards.names_agree(&self.vocabulary, &other.vocabulary),
            Guard::Opposites => !opposed(&self.opposites, &other.opposites),
            Guard::Order => in_one_order(&self.order, &other.order),
        }
    }
}

/// Whether the words of both texts come in the same order. Who owes whom is in the order alone, and an embedder that takes
/// the mean of the words does not see it.
fn in_one_order(a: &[String], b: &[String]) -> bool {
    let there: HashMap<&str, usize> = b.iter().enumerate().map(|(at, word)| (word.as_str(), at)).collect();
    a.iter().filter_map(|word| there.get(word.as_str())).is_sorted()
}

/// Whether one text takes a side of a pair and the other text its opposite. Texts that both take both sides
/// are not opposed, because no text is opposed to itself.
fn opposed(a: &[(usize, u8)], b: &[(usize, u8)]) -> bool {
    a.iter().any(|&(pair, one)| {
        let other = b.binary_search_by_key(&pair, |side| side.0).ok().and_then(|at| b.get(at));
        other.is_some_and(|&(_, other)| one != other)
    })
}

/// More than half of the letters are neither lowercase nor uppercase.
fn is_mostly_caseless(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let (mut cased, mut caseless) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        match c.is_lowercase() || c.is_uppercase() {
            true => cased += 1,
            false => caseless += 1,
        }
    }
    caseless > cased
}

/// The number without the commas between groups of three digits: `1,234.5` is 1234.5, `1,5` stays.
fn ungrouped(number: &str) -> String {
    let whole_end = number.find(['.', '%']).unwrap_or(number.len());
    let (whole, rest) = number.split_at_checked(whole_end).unwrap_or((number, ""));
    let mut groups = whole.split(',').map(str::len);
    let grouped = groups.next().is_some_and(|first| first <= 3) && groups.all(|len| len == 3);
    if grouped { whole.replace(',', "") + rest } else { number.to_owned() }
}

/// A datetime with a space before the clock time, two digits for the hour, a dot before the fraction, and an
/// offset with a colon directly behind; `z` is the offset zero. Nothing is added: `14:30` and `14:30:00`
/// differ.
fn one_form(datetime: &str) -> String {
    let (date, time) = datetime.split_at_checked(DATE_BYTES).unwrap_or((datetime, ""));
    let mut form = date.to_owned();
    let Some(time) = time.get(1..) else { return form };
    let clock_end = time.find(['z', '+', '-', ' ']).unwrap_or(time.len());
    let (clock, zone) = time.split_at_checked(clock_end).unwrap_or((time, ""));
    form.push_str(if clock.find(':') == Some(1) { " 0" } else { " " });
    form.push_str(&clock.replace(',', "."));
    match zone.trim_start() {
        "z" => form.push_str("+00:00"),
        zone => {
            let digits = zone.replace(':', "");
            let (hours, minutes) = digits.split_at_checked(3).unwrap_or((&digits, ""));
            form.push_str(hours);
            if !minutes.is_empty() {
                form.push(':');
            }
            form.push_str(minutes);
        }
    }
    form
}

#[cfg(test)]
mod tests;
