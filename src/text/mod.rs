//! When do two texts say the same, as far as their letters tell?
//!
//! Normal forms and the keys made of them: the fingerprint `fp-1` ([`normal_form`]), the comparison that may
//! absorb one text into another ([`same_but_spacing_and_case`]), the form `msg-1` of messages with the key of exact
//! repeats ([`Messages`], [`dup_key`]), the fingerprint `sh-1` of near ones ([`fingerprint`]), and keyed hashes of
//! texts that are gone ([`Secret`]).
//!
//! Invariants: every function is pure, linear in its text, and has an answer for any string. A [`NormalForm`]
//! that exists was made by [`normal_form`], so a fingerprint is never made up. A fingerprint finds candidates,
//! it never decides (DEDUP-4). Keys of different normalizer ids are never compared (DEDUP-1).
//!
//! This room knows no disk, no clock, no row and no random source: whoever makes a [`Secret`] brings the bytes.

mod digit;
mod hmac;
#[cfg_attr(not(test), expect(dead_code, reason = "the write ladder asks for it next"))]
mod message;
mod normal;
#[cfg_attr(not(test), expect(dead_code, reason = "the write ladder asks for it next"))]
mod simhash;
mod spacing;
mod url;

#[expect(unused_imports, reason = "the write ladder asks for it next")]
pub use digit::digits_masked;
pub use hmac::Secret;
#[expect(unused_imports, reason = "the write ladder asks for it next")]
pub use message::{MSG_ID, Messages, attachment_signature, dup_key};
pub use normal::{NormalForm, normal_form};
#[expect(unused_imports, reason = "the write ladder asks for it next")]
pub use simhash::{SIM_ID, bands, fingerprint, hamming, token_hash};
pub use spacing::same_but_spacing_and_case;

#[cfg(test)]
mod tests;
