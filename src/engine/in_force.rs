//! The policy in force, ready for use.

use crate::error::{Error, Result};
use crate::ingest::Rulebook;
use crate::policy::{Policy, Syntax};
use crate::store::Rows;
use crate::store::control::Clock as ClockRow;
use crate::text::{Analyzer, Messages};

/// The policy in force, with what journal rows carry of it.
#[derive(Debug)]
pub(super) struct InForce {
    pub(super) policy: Policy,
    /// What the write ladder looks up in it.
    pub(super) rules: Rulebook,
    /// How it reads messages: its patterns, compiled.
    pub(super) messages: Messages,
    /// Id of the analyzer of full-text indexes that are new.
    pub(super) analyzer: String,
    pub(super) number: u64,
    pub(super) hash: [u8; 8],
}

/// The policy that the clock row names, or the handle's own.
pub(super) fn in_force(rows: &impl Rows, row: &ClockRow, own: Option<&Policy>) -> Result<InForce> {
    let policy = match (own, row.policy) {
        (Some(policy), _) => policy.clone(),
        (None, 0) => Policy::default(),
        (None, number) => {
            let text = rows.policy_text(number)?.ok_or_else(|| {
                Error::corrupted("policy", &number.to_be_bytes(), "the policy in force is not there")
            })?;
            Policy::parse(&text, Syntax::Toml)?
        }
    };
    let (hash, rules) = (policy.hash().0, Rulebook::new(&policy)?);
    let messages = Messages::new(&policy.msg, &policy.sim)?;
    let analyzer = Analyzer::new(policy.text.stemming).id();
    Ok(InForce { policy, rules, messages, analyzer, number: row.policy, hash })
}
