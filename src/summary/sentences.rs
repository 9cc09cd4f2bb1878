//! The sentences of a text, for copying.
//!
//! A sentence is never cut inside: a number, a date, a name or a negation stays with the words around it. Where it is
//! unsure that a sentence ends, it goes on.

/// Words after which a period ends no sentence, in lower case and without the period.
const ABBREVIATIONS: [&str; 48] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "etc", "e.g", "i.e", "cf", "approx", "no", "nr",
    "vol", "fig", "p", "pp", "a.m", "p.m", "am", "pm", "jan", "feb", "mar", "apr", "jun", "jul", "aug",
    "sep", "sept", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun", "inc", "ltd", "co",
    "dept", "ca",
];
/// Bytes before a colon that can be a speaker.
const SPEAKER_BYTES_MAX: usize = 40;
/// Words of a speaker's name.
const SPEAKER_WORDS_MAX: usize = 3;

/// The speaker at the start of a text (`Ann: …`), and what the speaker says.
pub(super) fn speaker(text: &str) -> (Option<&str>, &str) {
    let Some((name, said)) = text.split_once(": ") else { return (None, text) };
    let is_name = name.len() <= SPEAKER_BYTES_MAX
        && name.split(' ').count() <= SPEAKER_WORDS_MAX
        && name.split(' ').all(|word| {
            word.starts_with(char::is_uppercase)
                && word.chars().all(|c| c.is_alphanumeric() || ".-'".contains(c))
        });
    if is_name { (Some(name), said) } else { (None, text) }
}

/// The sentences of a text in order, without white space around them; none is empty.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in text.split(['\n', '\r', '\u{2028}', '\u{2029}']) {
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !is_end(c) {
                continue;
            }
            let mut end = at + c.len_utf8();
            while let Some((at, c)) = chars.next_if(|(_, c)| is_end(*c) || is_closing(*c)) {
                end = at + c.len_utf8();
            }
            // Scripts without spaces end a sentence with a sign of their own.
            let wide = matches!(c, '。' | '！' | '？');
            let rest = line.get(end..).unwrap_or_default();
            if wide
                || (rest.starts_with(char::is_whitespace)
                    && ends(line.get(start..at).unwrap_or_default(), c, rest))
            {
                push(&mut all, line.get(start..end));
                start = end;
            }
        }
        push(&mut all, line.get(start..));
    }
    all
}

fn push<'a>(all: &mut Vec<&'a str>, sentence: Option<&'a str>) {
    all.extend(sentence.map(str::trim).filter(|sentence| !sentence.is_empty()));
}

fn is_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।')
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」')
}

/// Whether a sentence ends at the sign `c` behind `before`, when white space and `rest` follow.
fn ends(before: &str, c: char, rest: &str) -> bool {
    // A small letter goes on with the sentence: "at 5 p.m. we left", "Really? he said".
    if rest.trim_start().starts_with(char::is_lowercase) {
        return false;
    }
    if c != '.' {
        return true;
    }
    let last = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let last = last.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut chars = last.chars();
    let is_initial =
        matches!((chars.next(), chars.next()), (Some(one), None) if one.is_alphabetic() && one != 'I');
    // A day or the number of an item: "on 3. March", "2. Rent".
    let is_ordinal = !last.is_empty() && last.len() <= 2 && last.bytes().all(|byte| byte.is_ascii_digit());
    !is_initial && !is_ordinal && !ABBREVIATIONS.contains(&last.to_lowercase().as_str())
}
