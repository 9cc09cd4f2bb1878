//! When do two texts say the same, as far as their letters tell?
//!
//! The room has five groups of functions:
//! - the fingerprint `fp-1` ([`normal_form`]), the comparison that may absorb one text into another
//!   ([`same_but_spacing_and_case`]), and keyed hashes of texts that are gone ([`Secret`]);
//! - operational reports without their figures: signatures `op-1` and token keys ([`Operational`]);
//! - messages: the form `msg-1` with the key of exact repeats ([`Messages`], [`dup_key`]), and the fingerprint `sh-1`
//!   of near repeats ([`fingerprint`]);
//! - the terms by which texts are found ([`Analyzer`]), and the clauses of a query ([`TextQuery`]);
//! - the guards, which decide whether two near texts may still mean different things ([`Guards`]).
//!
//! Invariants: every function is pure, linear in its text, and has an answer for any string. Only
//! [`normal_form`] makes a [`NormalForm`], so a fingerprint is never made up. A fingerprint finds candidates
//! and never decides. Keys of different normalizer ids are never compared.
//!
//! This room knows no disk, no clock, no row and no random source. The maker of a [`Secret`] brings its bytes.

mod analyze;
mod bigram;
mod digit;
mod guard;
mod hmac;
mod likeness;
mod message;
mod normal;
mod operational;
mod scan;
mod simhash;
mod spacing;
mod url;
mod when;
mod words;

pub(crate) use analyze::{Analyzer, Clause, TextQuery};
pub use guard::{Guard, Guards, Profile};
pub(crate) use hmac::is_hidden;
pub use hmac::{Secret, plain};
pub(crate) use likeness::{ALIKE_BYTES, LIKENESS_BYTES, canonical, likeness, standing};
pub use message::{MSG_ID, Messages, attachment_signature, dup_key};
pub use normal::{NormalForm, normal_form};
pub use operational::{OP_ID, Operational, Signature};
pub use simhash::{SIM_ID, fingerprint, hamming};
pub(crate) use spacing::form_but_spacing_and_case;
pub use spacing::same_but_spacing_and_case;
pub(crate) use when::NamedTimes;
pub(crate) use words::{is_word, lowered};

#[cfg(test)]
mod tests;
