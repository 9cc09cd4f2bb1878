//! Access statistics: [`Access`] as parts, for most of its fields are zero in most rows.
//!
//! postcard, not rkyv: 13 fields of 8 bytes would be 104 bytes; a row that was retrieved a few times is 19.

use crate::error::Result;
use crate::model::{Access, Time};
use crate::record::parts::{PartReader, PartWriter};
use crate::record::{At, tag};

/// Writes `access` into `out`, replacing what is there.
pub(crate) fn encode_access(access: &Access, key: &[u8], out: &mut Vec<u8>) {
    let mut parts = PartWriter::begin(tag::ACCESS, out);
    let count = |count: u64| (count != 0).then_some(count);
    // By their bits: a negative zero is not the same.
    let float = |float: f64| (float.to_bits() != 0).then_some(float);
    parts.maybe(count(access.retrieval_count));
    parts.maybe(access.last_retrieved.map(Time::as_millis));
    parts.maybe(float(access.relevance_score_sum));
    parts.maybe(count(access.relevance_score_count));
    parts.maybe((access.relevance_max.to_bits() != 0).then_some(access.relevance_max));
    parts.maybe(count(access.included_count_total));
    parts.maybe(float(access.included_count_decay));
    parts.maybe(access.last_included_at.map(Time::as_millis));
    parts.maybe(access.protected_until.map(Time::as_millis));
    parts.maybe(access.summarized_at.map(Time::as_millis));
    parts.maybe(access.promoted_at.map(Time::as_millis));
    parts.maybe(access.last_consolidated_at.map(Time::as_millis));
    parts.maybe(count(access.access_seq));
    parts.seal(key);
}

/// The statistics that [`encode_access`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an instant outside the years 1 to 9999, a float that is not finite.
pub(crate) fn decode_access(at: At<'_>, bytes: &[u8]) -> Result<Access> {
    let mut parts = PartReader::open(tag::ACCESS, at, bytes)?;
    let access = Access {
        retrieval_count: parts.maybe("retrieval_count")?.unwrap_or(0),
        last_retrieved: time(at, &mut parts, "last_retrieved")?,
        relevance_score_sum: float(at, &mut parts, "relevance_score_sum")?,
        relevance_score_count: parts.maybe("relevance_score_count")?.unwrap_or(0),
        relevance_max: parts.maybe("relevance_max")?.unwrap_or(0.0),
        included_count_total: parts.maybe("included_count_total")?.unwrap_or(0),
        included_count_decay: float(at, &mut parts, "included_count_decay")?,
        last_included_at: time(at, &mut parts, "last_included_at")?,
        protected_until: time(at, &mut parts, "protected_until")?,
        summarized_at: time(at, &mut parts, "summarized_at")?,
        promoted_at: time(at, &mut parts, "promoted_at")?,
        last_consolidated_at: time(at, &mut parts, "last_consolidated_at")?,
        access_seq: parts.maybe("access_seq")?.unwrap_or(0),
    };
    parts.finish()?;
    if !access.relevance_max.is_finite() {
        return Err(at.corrupted("relevance_max is not finite"));
    }
    Ok(access)
}

fn time(at: At<'_>, parts: &mut PartReader<'_>, field: &str) -> Result<Option<Time>> {
    parts.maybe(field)?.map(|millis| at.time(field, millis)).transpose()
}

fn float(at: At<'_>, parts: &mut PartReader<'_>, field: &str) -> Result<f64> {
    let value: f64 = parts.maybe(field)?.unwrap_or(0.0);
    match value.is_finite() {
        true => Ok(value),
        false => Err(at.corrupted(format!("{field} is not finite"))),
    }
}
