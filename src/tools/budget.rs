//! How much of an answer fits into the tokens that a caller has room for.

use crate::error::{Error, Result};
use crate::limits::TOKEN_BYTES;

/// Tokens below which the beginning of a text is not worth telling.
const WORTH: usize = 16;

/// The tokens that are left of an answer. A token counts as four bytes of text.
pub(super) struct Budget {
    left: usize,
    is_used: bool,
}

impl Budget {
    pub(super) fn new(tokens: usize) -> Self {
        Budget { left: tokens, is_used: false }
    }

    /// As much of a text as there is room for, and whether that is all of it; none where there is no room. The first text always
    /// has some.
    pub(super) fn take<'t>(&mut self, text: &'t str) -> Option<(&'t str, bool)> {
        let bytes = self.left.saturating_mul(TOKEN_BYTES);
        if text.len() <= bytes {
            self.left -= text.len().div_ceil(TOKEN_BYTES);
            self.is_used = true;
            return Some((text, true));
        }
        if self.is_used {
            return None;
        }
        self.is_used = true;
        self.left = 0;
        Some((beginning(text, bytes.max(WORTH * TOKEN_BYTES)), false))
    }
}

/// The beginning of a text, of at most so many bytes, that ends between two characters.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    text.get(..end).unwrap_or_default()
}

/// The rest of a text from a cursor on.
///
/// # Errors
/// `Invalid` for a cursor of another text.
pub(super) fn rest<'t>(text: &'t str, cursor: Option<&str>) -> Result<(usize, &'t str)> {
    let at = cursor.map_or(Ok(0), position)?;
    let rest = text.get(at..).filter(|rest| at == 0 || !rest.is_empty());
    Ok((at, rest.ok_or_else(|| wrong(cursor.unwrap_or_default()))?))
}

/// The number that a cursor stands for.
///
/// # Errors
/// `Invalid` for what is no cursor.
pub(super) fn position(cursor: &str) -> Result<usize> {
    let digits = !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| cursor.parse().ok()).flatten().ok_or_else(|| wrong(cursor))
}

fn wrong(cursor: &str) -> Error {
    Error::invalid("cursor", "must be the next_cursor of an earlier answer", cursor)
}
