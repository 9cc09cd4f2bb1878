//! When do two texts say the same, as far as their letters tell?
//!
//! Normal forms and the keys made of them: the fingerprint `fp-1` ([`normal_form`]), the comparison that may
//! absorb one text into another ([`same_but_spacing_and_case`]), and keyed hashes of texts that are gone
//! ([`Secret`]).
//!
//! Invariants: every function is pure, linear in its text, and has an answer for any string. A [`NormalForm`]
//! that exists was made by [`normal_form`], so a fingerprint is never made up. A fingerprint finds candidates,
//! it never decides (DEDUP-4). Keys of different normalizer ids are never compared (DEDUP-1).
//!
//! This room knows no disk, no clock, no row and no random source: whoever makes a [`Secret`] brings the bytes.

mod hmac;
mod normal;
mod spacing;

pub use hmac::Secret;
pub use normal::{NormalForm, normal_form};
pub use spacing::same_but_spacing_and_case;

#[cfg(test)]
mod tests;
