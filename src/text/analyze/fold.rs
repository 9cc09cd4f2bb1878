//! One form for each word: small letters, without accents.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Apostrophes, and signs that stand for them inside words: Hebrew gershayim and its ASCII quote, the Catalan middle
/// dot.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(
        c,
        '\'' | '"' | '\u{2018}' | '\u{2019}' | '\u{2B9}'
            ..='\u{2BC}' | '\u{5F3}' | '\u{5F4}' | '\u{B7}' | '\u{2027}'
    )
}

/// Characters that change how a text is shown and not what it says: soft hyphen, joiners, directions, variation
/// selectors, the Arabic tatweel.
pub(super) fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{640}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

/// Appends the word in small letters, without apostrophes and invisible characters, up to about `most` bytes.
pub(super) fn lower(word: &str, most: usize, into: &mut String) {
    if word.is_ascii() {
        let bytes = word.bytes().filter(|byte| !matches!(byte, b'\'' | b'"')).take(most);
        into.extend(bytes.map(|byte| char::from(byte.to_ascii_lowercase())));
        return;
    }
    for c in word.chars().filter(|c| !is_apostrophe(*c) && !is_ignored(*c)) {
        if into.len() >= most {
            break;
        }
        into.extend(c.to_lowercase());
    }
}

/// Appends a word of small letters without its accents, and with ASCII letters in place of letters that they can stand
/// for, up to about `most` bytes. An ASCII word is appended as a whole.
pub(super) fn fold(word: &str, most: usize, into: &mut String) {
    if word.is_ascii() {
        into.push_str(word);
        return;
    }
    let bare = word.nfd().filter(|c| !is_accent(*c)).nfc();
    for c in bare {
        if into.len() >= most {
            break;
        }
        match ascii(c) {
            Some(letters) => into.push_str(letters),
            None => into.push(c),
        }
    }
}

/// Shortens a term to at most this many bytes, at the end of a character.
pub(super) fn cut(term: &mut String, most: usize) {
    let mut end = most.min(term.len());
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    term.truncate(end);
}

/// A mark without which a word is the same word. The scripts of India and some others, which begin at U+0900, write
/// vowels as marks; these marks stay.
fn is_accent(c: char) -> bool {
    let block = matches!(c,
        ..'\u{900}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}' | '\u{E0100}'..='\u{E01EF}');
    block && is_combining_mark(c)
}

/// Letters that have no decomposition.
fn ascii(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ŧ' => "t",
        'þ' => "th",
        'ı' => "i",
        'ς' => "σ",
        '\u{2010}' => "-",
        _ => return None,
    })
}
