//! How much of an answer fits into the tokens that a caller has room for.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::limits::TOKEN_BYTES;

/// Tokens below which the beginning of a text is not worth telling.
const WORTH: usize = 16;

/// Bytes of the digest of a text that name it in a cursor.
const NAMED_BYTES: usize = 8;

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

/// The cursor that goes on in a text at a byte. It names the text, which may have another one in its place by then.
pub(super) fn cursor_at(text: &str, at: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let named: String = digest.iter().take(NAMED_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("{at}-{named}")
}

/// The rest of a text from a cursor on.
///
/// # Errors
/// `Invalid` for a cursor of another text.
pub(super) fn rest<'t>(text: &'t str, cursor: Option<&str>) -> Result<(usize, &'t str)> {
    let Some(cursor) = cursor else { return Ok((0, text)) };
    let (at, _) = cursor.split_once('-').ok_or_else(|| wrong(cursor))?;
    let at = position(at).map_err(|_| wrong(cursor))?;
    let rest = text.get(at..).filter(|_| cursor_at(text, at) == cursor);
    rest.filter(|rest| !rest.is_empty()).map(|rest| (at, rest)).ok_or_else(|| {
        let why = "must be the next_cursor of an earlier answer, of the text that is there now: read it anew";
        Error::invalid("cursor", why, cursor)
    })
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
