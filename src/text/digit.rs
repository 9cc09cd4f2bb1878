//! What counts as a digit.

use super::words::decimal;

/// Whether a character is a decimal digit of any script; other numbers such as `Ⅳ` and `½` are none.
pub(super) fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || decimal(c).is_some()
}

/// A normalized text with each run of digits as one `#`: what the verification of near messages compares.
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
