//! From the fields that a caller gave to the row that they make, and to the HMACs by which a repeat is
//! recognised.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::{Origin, said_of, tier_ttl};
use crate::model::{
    Access, EXPIRY_CODE, ExpiresBy, Expiry, Fields, Holder, Life, Parts, REPLACES_CODE, SOURCES_CODE, Time,
    Vitals,
};
use crate::policy::Policy;
use crate::text::{Secret, canonical};
use crate::vector::UnitVector;

/// The domain of the HMACs of fields.
const DOMAIN: &str = "field";

/// The code and the short HMAC of each given field, by code. A cleared field counts as not given: an absent
/// field and a null field leave the same row.
pub(super) fn given(
    fields: &Fields,
    expiry: Option<Expiry>,
    sources: Option<&[crate::model::MemoryId]>,
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

/// Notes on a holder the instant at which its text takes the place of what its key says.
pub(super) fn note_replacement(holder: &mut Holder, at: Time, secret: &Secret) {
    holder.fields.push((REPLACES_CODE, short(secret, REPLACES_CODE, &Value::String(at.to_string()))));
    holder.fields.sort_unstable();
}

/// The HMACs of the fields named by `codes`, from the row as it stands. They are for a holder of an export, which does
/// not carry its own values.
pub(super) fn given_by_code(holder: &mut Holder, fields: &Fields, secret: &Secret) {
    let known = given(fields, None, None, secret);
    for (code, hmac) in &mut holder.fields {
        if let Some((_, value)) = known.iter().find(|(at, _)| at == code) {
            *hmac = *value;
        }
    }
}

impl NamespaceWriter<'_, '_, '_> {
    /// Leaves in the parts of a row what this holder said, and nothing of what other holders said. The holder leaves their row
    /// with what it brought. What it had said in the row in which it was written comes from there, while that row is there; so
    /// does the vector of its text, which is returned where that text is its own.
    pub(super) fn keep_own(&self, parts: &mut Parts, holder: &Holder) -> Result<Option<UnitVector>> {
        let secret = self.ledger.secret;
        let said_in = |parts: &Parts| {
            let mut there = given(&parts.fields(), None, None, secret);
            there.retain(|field| holder.fields.contains(field));
            BTreeSet::from_iter(there.into_iter().map(|(code, _)| code))
        };
        let here = said_in(parts);
        parts.take_content(Parts::defaults(), |code| !here.contains(&code));
        let text = holder.text.as_ref().unwrap_or(&parts.content.text);
        let written = sound(self.ledger.origin(self.ns(), holder.from, text))?.flatten();
        let Some(Origin { vitals, content, vector, .. }) = written else { return Ok(None) };
        let written = Parts { vitals, content, access: Access::default() };
        let there = said_in(&written);
        parts.take_content(&written, |code| !here.contains(&code) && there.contains(&code));
        let stands =
            |name: &str| Fields::NAMES.iter().any(|(code, named)| *named == name && here.contains(code));
        said_of(&written.vitals, &mut parts.vitals, stands);
        Ok(vector.filter(|_| holder.text.is_some()))
    }
}

fn short(secret: &Secret, code: u8, value: &Value) -> [u8; 8] {
    let mut bytes = vec![code];
    canonical(value, &mut bytes);
    secret.short(DOMAIN, &bytes)
}

/// Sets the end of life that the caller gave, or else that of the tier.
pub(super) fn expire(vitals: &mut Vitals, expiry: Expiry, policy: &Policy) {
    // Imported history must not be expired from the start, so the life begins at the recording at the
    // earliest.
    let base = vitals.created_at.max(vitals.times.recorded_at);
    let callers = |end: Option<Time>| Life { end, by: ExpiresBy::Caller };
    vitals.set_life(match expiry {
        Expiry::Never => callers(None),
        Expiry::At(at) => callers(Some(at)),
        Expiry::After(span) => callers(Some(base.plus(span))),
        Expiry::Tier => Life::of_tier(base, tier_ttl(vitals.tier, &policy.ttl)),
    });
}
