//! What counts as a digit.

use super::words::decimal;

/// Whether a character is a decimal digit of any script. Other numbers, such as `Ⅳ` and `½`, are not digits.
pub(super) fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || decimal(c).is_some()
}

/// A normalized text with `#` for each run of digits. The verification of near messages compares this form.
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
