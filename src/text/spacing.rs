//! The comparison behind `write.normalized_match = absorb`.

use super::words::{is_word, looks_like_name};

/// Whether two texts differ only in runs of white space, and in the letter case of words that are no names.
///
/// A name is a word that begins with a capital, or mixes letters and digits, and is not one of `stopwords`,
/// which are in lower case. Words are compared unchanged, so `mc²` and `mc2` differ although their normal
/// form is the same.
pub fn same_but_spacing_and_case(a: &str, b: &str, stopwords: &[&str]) -> bool {
    let mut a = pieces(a);
    let mut b = pieces(b);
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if x == y || form_of(x, stopwords) == form_of(y, stopwords) => {}
            _ => return false,
        }
    }
}

/// What all texts have in common that are the same by [`same_but_spacing_and_case`], and no others.
pub(crate) fn form_but_spacing_and_case(text: &str, stopwords: &[&str]) -> Vec<(bool, String)> {
    pieces(text).map(|piece| form_of(piece, stopwords)).collect()
}

/// The words of a text, the single characters between them, and a space for each run of white space inside.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        if first.is_whitespace() {
            rest = rest.trim_start();
            return Some(" ");
        }
        let end = if is_word(first) {
            rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(piece)
    })
}

/// Whether a word is a name, and the word: in lower case if it is none.
fn form_of(word: &str, stopwords: &[&str]) -> (bool, String) {
    let lower = word.to_lowercase();
    let is_name = looks_like_name(word) && !stopwords.contains(&&*lower);
    (is_name, if is_name { word.to_owned() } else { lower })
}
