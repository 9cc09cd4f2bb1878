//! Scripts without spaces between words: their runs, and the bigrams of a run.

use unicode_normalization::char::is_combining_mark;

/// Han, kana and Hangul, whose words have no spaces between them: blocks of Unicode 17.
const CJK: [(char, char); 17] = [
    // Hangul Jamo.
    ('\u{1100}', '\u{11FF}'),
    // CJK Radicals Supplement, Kangxi Radicals.
    ('\u{2E80}', '\u{2FDF}'),
    // The iteration mark and zero of Han.
    ('\u{3005}', '\u{3007}'),
    // Hangzhou numerals.
    ('\u{3021}', '\u{3029}'),
    ('\u{3038}', '\u{303B}'),
    // Hiragana, Katakana.
    ('\u{3040}', '\u{30FF}'),
    // Hangul Compatibility Jamo.
    ('\u{3130}', '\u{318F}'),
    // Katakana Phonetic Extensions.
    ('\u{31F0}', '\u{31FF}'),
    // CJK Unified Ideographs Extension A.
    ('\u{3400}', '\u{4DBF}'),
    // CJK Unified Ideographs.
    ('\u{4E00}', '\u{9FFF}'),
    // Hangul Jamo Extended-A.
    ('\u{A960}', '\u{A97F}'),
    // Hangul Syllables, Hangul Jamo Extended-B.
    ('\u{AC00}', '\u{D7FF}'),
    // CJK Compatibility Ideographs.
    ('\u{F900}', '\u{FAFF}'),
    // Halfwidth Katakana and Hangul, which NFKC turns into the others.
    ('\u{FF66}', '\u{FFDC}'),
    // Kana Extended-B, Kana Supplement, Kana Extended-A, Small Kana Extension.
    ('\u{1AFF0}', '\u{1B16F}'),
    // CJK Unified Ideographs Extensions B to F and I, Compatibility Ideographs Supplement.
    ('\u{20000}', '\u{2FA1F}'),
    // CJK Unified Ideographs Extensions G, H and J.
    ('\u{30000}', '\u{3347F}'),
];

/// Thai, Lao, Myanmar and Khmer, whose words have no spaces between them either: letters and marks, blocks of Unicode 17.
const SOUTH_EAST_ASIAN: [(char, char); 9] = [
    // Thai.
    ('\u{E01}', '\u{E3A}'),
    ('\u{E40}', '\u{E4E}'),
    // Lao.
    ('\u{E81}', '\u{ECF}'),
    ('\u{EDC}', '\u{EDF}'),
    // Myanmar, with its letters and marks behind the digits.
    ('\u{1000}', '\u{103F}'),
    ('\u{1050}', '\u{109F}'),
    // Khmer.
    ('\u{1780}', '\u{17DD}'),
    // Myanmar Extended-B, Myanmar Extended-A.
    ('\u{A9E0}', '\u{A9FE}'),
    ('\u{AA60}', '\u{AA7F}'),
];

/// Han, kana or Hangul.
pub(super) fn is_cjk(c: char) -> bool {
    within(&CJK, c)
}

/// A character of a script that writes no spaces between words.
pub(super) fn is_unspaced(c: char) -> bool {
    c >= '\u{E01}' && (is_cjk(c) || within(&SOUTH_EAST_ASIAN, c))
}

/// The text, divided wherever it changes between characters that `are` and others. Each run comes with that answer. A
/// mark belongs to the character before it.
pub(super) fn runs(text: &str, are: impl Fn(char) -> bool) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let of = are(rest.chars().next()?);
        let changes = |c: char| are(c) != of && !is_combining_mark(c);
        let (run, after) =
            rest.split_at_checked(rest.find(changes).unwrap_or(rest.len())).unwrap_or((rest, ""));
        rest = after;
        Some((of, run))
    })
}

/// Each pair of neighbours. A single character is a token of its own. Marks stay with the character before
/// them.
pub(super) fn bigrams(part: &str, token: &mut impl FnMut(&str)) {
    let starts = part.char_indices().filter(|(_, c)| !is_combining_mark(*c)).map(|(at, _)| at);
    let mut ends = starts.clone().skip(2).chain(std::iter::once(part.len()));
    let pairs = starts.clone().count().saturating_sub(1).max(1);
    for start in starts.take(pairs) {
        token(part.get(start..ends.next().unwrap_or(part.len())).unwrap_or_default());
    }
}

fn within(blocks: &[(char, char)], c: char) -> bool {
    blocks.iter().any(|(first, last)| (*first..=*last).contains(&c))
}
