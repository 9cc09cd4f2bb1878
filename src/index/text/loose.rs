//! The words of a text that stands in no index, against a query: of a memory in limbo, for a search of the past, and of a
//! summary that is not stored yet.

use std::collections::{HashMap, HashSet};

use crate::index::text::score::{Lexical, Norm};
use crate::text::Clause;

impl Lexical {
    /// The score of a text by its own words, as a share of the mass of the query: 0 to 2. It is the score that the text
    /// would have as a document of the index, by the statistics of the documents that are visible now.
    pub(crate) fn share_of(&self, words: &str) -> f32 {
        let Some(analyzer) = self.analyzer().filter(|_| self.mass > 0.0) else { return 0.0 };
        let mut terms: Vec<(String, u32)> = Vec::new();
        analyzer.analyze(words, &mut |term, position| terms.push((term.to_owned(), position)));
        // As in an index, a term counts once at a position.
        terms.sort_unstable();
        terms.dedup();
        let length = u32::try_from(terms.len()).unwrap_or(u32::MAX);
        let norm = Norm::of(self.mean);
        let worth = |(clause, weight): (&Clause, f32)| match occurrences(clause, &terms) {
            0 => 0.0,
            often => weight * norm.worth(often, length),
        };
        self.weighted().map(worth).sum::<f32>() / self.mass
    }

    /// The words that tell one of the texts of the query apart from others: at most `most`, each once, in their order. Empty
    /// where no text was ever indexed.
    pub(crate) fn specific_words<'t>(&self, text: &'t str, most: usize) -> Vec<&'t str> {
        let Some(analyzer) = self.analyzer() else { return Vec::new() };
        let weights: HashMap<&str, f32> = self
            .weighted()
            .filter_map(|(clause, weight)| match clause {
                Clause::Term { term } => Some((term.as_str(), weight)),
                _ => None,
            })
            .collect();
        let (mut words, mut seen) = (Vec::new(), HashSet::new());
        for (at, word) in text.split_whitespace().enumerate() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            let mut heaviest = 0.0_f32;
            analyzer.analyze(word, &mut |term, _| {
                heaviest = heaviest.max(weights.get(term).copied().unwrap_or(0.0));
            });
            if heaviest > 0.0 && seen.insert(word) {
                words.push((heaviest, at, word));
            }
        }
        words.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        words.truncate(most);
        words.sort_by_key(|(_, at, _)| *at);
        words.into_iter().map(|(_, _, word)| word).collect()
    }
}

/// How often a clause occurs among the terms of a text, which are sorted and each have their position.
fn occurrences(clause: &Clause, terms: &[(String, u32)]) -> u32 {
    let of = |wanted: &dyn Fn(&str) -> bool| terms.iter().filter(|(term, _)| wanted(term)).count();
    let count = match clause {
        Clause::Term { term } => of(&|found| found == term),
        Clause::Prefix { prefix, word } => {
            of(&|found| found.starts_with(prefix) || word.as_deref() == Some(found))
        }
        Clause::Phrase { terms: phrase } => {
            let Some((first, _)) = phrase.first() else { return 0 };
            let holds = |term: &String, at: u32| {
                terms.binary_search_by(|(found, position)| (found, position).cmp(&(term, &at))).is_ok()
            };
            let begins = |start: u32| {
                phrase
                    .iter()
                    .all(|(term, behind)| start.checked_add(*behind).is_some_and(|at| holds(term, at)))
            };
            terms.iter().filter(|(term, start)| term == first && begins(*start)).count()
        }
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}
