//! Which fields a writer gave, told by HMACs: a repeat is recognised by them, and what a writer said in a row that was united.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::{EXPIRY_CODE, Expiry, Fields, Holder, MemoryId, Parts, SOURCES_CODE, Vitals};
use crate::text::{Secret, canonical};

/// The domain of the HMACs of fields.
const DOMAIN: &str = "field";

/// The code and the short HMAC of each given field, by code. A cleared field counts as not given: an absent
/// field and a null field leave the same row.
pub(crate) fn given(
    fields: &Fields,
    expiry: Option<Expiry>,
    sources: Option<&[MemoryId]>,
    secret: &Secret,
) -> Vec<(u8, [u8; 8])> {
    let mut all = Vec::new();
    fields.for_each_given(|code, value| {
        if !value.is_null() {
            all.push((code, short(secret, code, &value)));
        }
    });
    if let Some(expiry) = expiry {
        let shown = match expiry {
            Expiry::Tier => "tier".to_owned(),
            Expiry::Never => "never".to_owned(),
            Expiry::At(at) => at.to_string(),
            Expiry::After(span) => format!("+{span}"),
        };
        all.push((EXPIRY_CODE, short(secret, EXPIRY_CODE, &Value::String(shown))));
    }
    if let Some(sources) = sources.filter(|sources| !sources.is_empty()) {
        let list = sources.iter().map(|id| Value::String(id.to_string())).collect();
        all.push((SOURCES_CODE, short(secret, SOURCES_CODE, &Value::Array(list))));
    }
    all.sort_unstable();
    all
}

/// The codes of the fields that a holder gave and of which these parts have its value. A field that was changed since, through
/// another writer, is none of them; a field that was changed for all writers is.
pub(crate) fn said_by(holder: &Holder, parts: &Parts, secret: &Secret) -> BTreeSet<u8> {
    let mut there = given(&parts.fields(), None, None, secret);
    there.retain(|field| holder.fields.contains(field));
    there.into_iter().map(|(code, _)| code).collect()
}

/// Gives a row what was said of its text in another one, but for the fields with the codes that stand.
pub(crate) fn said_of(there: &Vitals, vitals: &mut Vitals, stand: &BTreeSet<u8>) {
    let stands = |name| stands(stand, name);
    let Vitals { kind_code, happened_at, created_at, significance, importance, confidence, .. } = vitals;
    if !stands("kind") {
        *kind_code = there.kind_code;
    }
    if !stands("happened_at") {
        *happened_at = there.happened_at;
    }
    if !stands("created_at") {
        *created_at = there.created_at;
    }
    if !stands("significance") {
        *significance = there.significance;
    }
    if !stands("importance") {
        *importance = there.importance;
    }
    if !stands("confidence") {
        *confidence = there.confidence;
    }
}

/// Whether the field with a name is one of these.
pub(super) fn stands(codes: &BTreeSet<u8>, name: &str) -> bool {
    Fields::NAMES.iter().any(|(code, named)| *named == name && codes.contains(code))
}

/// The short HMAC of a value of the field with this code.
pub(crate) fn short(secret: &Secret, code: u8, value: &Value) -> [u8; 8] {
    let mut bytes = vec![code];
    canonical(value, &mut bytes);
    secret.short(DOMAIN, &bytes)
}
