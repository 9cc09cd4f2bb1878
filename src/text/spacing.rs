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
            (Some(x), Some(y)) if x == y || same_but_case(x, y, stopwords) => {}
            _ => return false,
        }
    }
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

fn same_but_case(a: &str, b: &str, stopwords: &[&str]) -> bool {
    let (lower_a, lower_b) = (a.to_lowercase(), b.to_lowercase());
    let ordinary = |word: &str, lower: &str| !looks_like_name(word) || stopwords.contains(&lower);
    lower_a == lower_b && ordinary(a, &lower_a) && ordinary(b, &lower_b)
}
