//! What counts as a digit (DEDUP-2).

use std::sync::LazyLock;

use regex::Regex;

/// The decimal digits as Unicode names them.
#[expect(clippy::expect_used, reason = "the pattern is a constant")]
static DECIMAL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\A\d\z").expect("a class of characters"));

/// Whether a character is a decimal digit of any script; other numbers such as `Ⅳ` and `½` are none.
pub(super) fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric() && DECIMAL.is_match(c.encode_utf8(&mut [0; 4])))
}

/// A normalized text with each run of digits as one `#`: what the verification of DEDUP-36 compares.
pub fn digits_masked(normalized: &str) -> String {
    let mut masked = String::with_capacity(normalized.len());
    let mut inside = false;
    for c in normalized.chars() {
        let digit = is_digit(c);
        if !(digit && inside) {
            masked.push(if digit { '#' } else { c });
        }
        inside = digit;
    }
    masked
}
