//! Function words: they build a sentence, and say little about its topic.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::Analyzer;
use crate::policy::Stemming;

/// The function words of English: articles, pronouns, prepositions, auxiliaries, question words.
const ENGLISH: &str = "a about above after again against all am an and any are as at be because been before being below between \
    both but by can could did do does doing don down during each few for from further had has have having he \
    her here hers herself him himself his how i if in into is it its itself just me more most my myself no \
    nor not now of off on once only or other ought our ours ourselves out over own s same she should so some \
    such t than that the their theirs them themselves then there these they this those through to too under \
    until up very was we were what when where which while who whom why will with would you your yours \
    yourself yourselves";

impl Analyzer {
    /// Whether a term is a function word of its language. Only those of English are known.
    pub(crate) fn is_function_word(&self, term: &str) -> bool {
        static TERMS: OnceLock<HashSet<String>> = OnceLock::new();
        if self.stemming != Stemming::English {
            return false;
        }
        let terms = TERMS.get_or_init(|| {
            let mut terms = HashSet::new();
            self.analyze(ENGLISH, &mut |term, _| {
                terms.insert(term.to_owned());
            });
            terms
        });
        terms.contains(term)
    }
}
