//! A text that was typed, or that comes on standard input.

use std::io::Read;

use oubliette::Error;

use crate::caller::Caller;
use crate::output::Failure;

/// What stands for standard input in the place of a text.
pub(crate) const STREAM: &str = "-";

/// Where a text belongs.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// What was typed before the text, such as `update --text`.
    pub(crate) after: &'static str,
    /// What an error calls the text.
    pub(crate) name: &'static str,
    /// How many bytes the text may have.
    pub(crate) most: usize,
}

/// The text as it was typed; for `-` all of standard input, without a byte order mark and without line breaks at both ends.
pub(crate) fn text(slot: Slot, typed: &str, caller: &Caller) -> Result<String, Failure> {
    if typed != STREAM {
        return Ok(typed.to_owned());
    }
    // The mark and the end of the last line don't count.
    let most = slot.most + "\u{feff}\r\n".len();
    let mut bytes = Vec::new();
    let read = caller.input().take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|source| Error::Io { action: "read", path: "standard input".into(), source })?;
    let longer = || {
        let why = format!("must have at most {} bytes", slot.most);
        Err(Error::invalid(slot.name, why, "more").into())
    };
    if bytes.len() > most {
        return longer();
    }
    let all = String::from_utf8(bytes).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        Error::invalid(slot.name, "must be UTF-8", format!("other bytes from byte {at} on"))
    })?;
    let text = all.strip_prefix('\u{feff}').unwrap_or(&all).trim_matches(['\r', '\n']);
    match text.trim().is_empty() {
        true => Err(Failure::Usage(format!("{} - needs a text on standard input", slot.after))),
        false if text.len() > slot.most => longer(),
        false => Ok(text.to_owned()),
    }
}
