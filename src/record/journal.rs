//! Journal rows: [`JournalRow`] as parts.
//!
//! A plain insert is 46 bytes, and there is a row for every change. Operations, rules and
//! actors are codes; values of deltas are JSON text, the empty text for null.

use serde_json::Value;

use crate::error::Result;
use crate::model::{Actor, Delta, Evidence, JournalRow, MemoryId, Op, RuleId, RunId};
use crate::record::frame::{At, tag};
use crate::record::parts::{PartReader, PartWriter};

/// Writes `row` into `out`, replacing what is there.
///
/// # Panics
/// For a rule that is not in [`RuleId::ALL`]: a bug of ours, and such a row could not be read back.
pub(crate) fn encode_journal(row: &JournalRow, key: &[u8], out: &mut Vec<u8>) {
    assert!(RuleId::from_code(row.rule.code()).is_some(), "rule {} has no code", row.rule.0);
    let mut parts = PartWriter::begin(tag::JOURNAL, out);
    parts.always(&(row.seq, row.at.as_millis()));
    parts.always(&(row.actor.code(), row.op.code(), row.rule.code()));
    parts.always(&(row.policy_number, row.policy_hash));
    parts.maybe(row.run.as_ref().map(RunId::as_bytes));
    parts.maybe(row.subject.as_ref().map(MemoryId::as_bytes));
    parts.maybe(row.holder);
    let deltas: Vec<_> =
        row.deltas.iter().map(|d| (&*d.field, json_text(&d.before), json_text(&d.after))).collect();
    parts.list(&deltas);
    parts.maybe(row.evidence.score);
    parts.maybe(row.evidence.signature.as_deref());
    let members: Vec<_> = row.evidence.members.iter().map(MemoryId::as_bytes).collect();
    parts.list(&members);
    parts.maybe(row.evidence.transferred);
    parts.seal(key);
}

/// The row that [`encode_journal`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown code, an instant outside the years 1 to 9999, a score that is not
/// finite.
pub(crate) fn decode_journal(at: At<'_>, bytes: &[u8]) -> Result<JournalRow> {
    let mut parts = PartReader::open(tag::JOURNAL, at, bytes)?;
    let (seq, millis) = parts.always("seq and at")?;
    let (actor, op, rule) = parts.always("actor, op and rule")?;
    let (policy_number, policy_hash) = parts.always("policy")?;
    let row = JournalRow {
        seq,
        at: at.time("at", millis)?,
        actor: at.member("actor", actor, Actor::from_code)?,
        op: at.member("op", op, Op::from_code)?,
        rule: at.member("rule", rule, RuleId::from_code)?,
        policy_number,
        policy_hash,
        run: parts.maybe("run")?.map(RunId::from_bytes),
        subject: parts.maybe("subject")?.map(MemoryId::from_bytes),
        holder: parts.maybe("holder")?,
        deltas: deltas(at, parts.list("deltas")?)?,
        evidence: evidence(at, &mut parts)?,
    };
    parts.finish()?;
    Ok(row)
}

fn evidence(at: At<'_>, parts: &mut PartReader<'_>) -> Result<Evidence> {
    let score: Option<f32> = parts.maybe("evidence.score")?;
    if score.is_some_and(|score| !score.is_finite()) {
        return Err(at.corrupted("evidence.score is not finite"));
    }
    let signature = parts.maybe("evidence.signature")?;
    let members: Vec<[u8; 16]> = parts.list("evidence.members")?;
    let members = members.into_iter().map(MemoryId::from_bytes).collect();
    Ok(Evidence { score, signature, members, transferred: parts.maybe("evidence.transferred")? })
}

fn deltas(at: At<'_>, rows: Vec<(String, String, String)>) -> Result<Vec<Delta>> {
    let value = |text: &str| match text {
        "" => Ok(Value::Null),
        text => at.json("delta", text),
    };
    let delta = |(field, before, after): (String, String, String)| {
        Ok(Delta { field, before: value(&before)?, after: value(&after)? })
    };
    rows.into_iter().map(delta).collect()
}

/// A value of a delta as it is written.
fn json_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => value.to_string(),
    }
}
