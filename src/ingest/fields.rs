//! From the fields that a caller gave to the row that they make, and to the HMACs by which a repeat is
//! recognised.

use serde_json::Value;

use crate::error::{Result, sound};
use crate::ingest::NamespaceWriter;
use crate::ledger::{given, said_by, tell, tier_ttl};
use crate::model::{
    Draft, ExpiresBy, Expiry, Fields, Holder, Life, NOT_TOLD, PINNED_TAG, Parts, REPLACES_CODE,
    SupersedeMode, Time, Vitals,
};
use crate::policy::Policy;
use crate::text::Secret;
use crate::vector::UnitVector;

/// Notes on a holder the instant at which its text takes the place of what its key says.
pub(super) fn note_replacement(holder: &mut Holder, at: Time, secret: &Secret) {
    holder.fields.push((REPLACES_CODE, secret.of_field(REPLACES_CODE, &Value::String(at.to_string()))));
    holder.fields.sort_unstable();
}

/// Gives the holders of an export the HMACs of the fields that they name and of which the row has their value. Of other values an
/// export tells only that they were given.
pub(super) fn given_by_code(holders: &mut [Holder], fields: &Fields, secret: &Secret) {
    let known = given(fields, None, None, secret);
    let named = holders.iter_mut().flat_map(|holder| &mut holder.fields);
    for (code, hmac) in named.filter(|(_, hmac)| *hmac == NOT_TOLD) {
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
        let text = holder.text.as_ref().unwrap_or(&parts.content.text);
        let origin = sound(self.ledger.origin(self.ns(), holder, text))?.flatten();
        let written = origin.as_ref().map(|origin| &origin.parts);
        let own = said_by(holder, written.unwrap_or(parts), self.ledger.secret);
        tell(parts, written, |code| own.contains(&code));
        if written.is_none() {
            let is_own = |name| own.iter().any(|code| Fields::name_of(*code) == name);
            let vitals = &mut parts.vitals;
            vitals.created_at = if is_own("created_at") { vitals.created_at } else { holder.since };
            vitals.updated_at = if is_own("updated_at") { vitals.updated_at } else { holder.since };
        }
        if let Some(Parts { vitals, .. }) = written {
            let led = vitals.times.superseded.is_some_and(|by| by.mode != SupersedeMode::Duplicate);
            let gave = |name| holder.fields.iter().any(|(code, _)| Fields::name_of(*code) == name);
            // The row to which a supersession has led the writer lives as long as its own writers have said.
            if led && !holder.gave_expiry() && !gave("tier") {
                parts.vitals.tier = vitals.tier;
                parts.vitals.set_life(vitals.life());
            }
        }
        if holder.from.is_some() && holder.text.is_some() {
            // A pass asks no row that is true already since when it is.
            let times = &mut parts.vitals.times;
            let there = written.map(|written| &written.vitals.times);
            times.valid_from = match there {
                Some(there) => there.valid_from,
                None => {
                    times.valid_from.filter(|_| own.iter().any(|code| Fields::name_of(*code) == "valid_from"))
                }
            };
            times.valid_from_recorded_at = there.and_then(|there| there.valid_from_recorded_at);
        }
        Ok(origin.and_then(|origin| origin.vector).filter(|_| holder.text.is_some()))
    }

    /// Leaves nothing in the parts of a row but the tags of a holder: a key that only led to the row has said nothing there, and its next
    /// text is that of a memory of its own.
    pub(super) fn begin_anew(&self, parts: &mut Parts, holder: &Holder) {
        let pinned = holder.tags.iter().any(|tag| tag == PINNED_TAG);
        let place = parts.vitals.place.clone();
        parts.vitals = Vitals { place, pinned, ..Vitals::new(&parts.content.text, self.now()) };
        parts.content.custom_kind = None;
    }
}

/// What an absorbed write adds to its row by a rule of its own, whatever value it gives.
const UNITED: [&str; 6] =
    ["reinforcement_count", "tier", "significance", "importance", "confidence", "pinned"];

/// What a counted write adds to its row: it is one more observation, and no more.
const COUNTED: [&str; 2] = ["reinforcement_count", "confidence"];

/// The names of the given fields of which the row that absorbed them says something else.
pub(super) fn not_taken(given: &Fields, row: &Parts) -> Vec<&'static str> {
    said_otherwise(given, row, &UNITED)
}

/// The names of what a draft gives and the row that only counts the draft does not say. `had` is what the holders of the row brought.
pub(super) fn not_counted(draft: &Draft, row: &Parts, had: &Holder) -> Vec<&'static str> {
    fn lacks<T: PartialEq>(given: Option<&Vec<T>>, had: &[T]) -> bool {
        given.is_some_and(|given| given.iter().any(|one| !had.contains(one)))
    }
    let lists = [
        ("tags", lacks(draft.tags.as_ref(), &row.content.tags)),
        ("categories", lacks(draft.categories.as_ref(), &had.categories)),
        ("entities", lacks(draft.entities.as_ref(), &had.entities)),
        ("links", lacks(draft.links.as_ref(), &had.links)),
    ];
    let mut left = said_otherwise(&draft.fields, row, &COUNTED);
    left.extend(lists.into_iter().filter_map(|(name, lacks)| lacks.then_some(name)));
    left
}

/// The names of the given fields of which a row says something else, other than these.
fn said_otherwise(given: &Fields, row: &Parts, but: &[&str]) -> Vec<&'static str> {
    let mut left = Vec::new();
    given.for_each_given(|code, value| {
        let name = Fields::name_of(code);
        if !value.is_null() && !but.contains(&name) {
            left.push((code, name, value));
        }
    });
    let fields = row.fields();
    let wanted: Vec<u8> = left.iter().map(|(code, ..)| *code).collect();
    fields.for_each_of(
        |code| wanted.contains(&code),
        |code, value| {
            left.retain(|(of, _, given)| *of != code || *given != value);
        },
    );
    left.into_iter().map(|(_, name, _)| name).collect()
}

/// Sets the end of life that the caller gave, or else that of the tier.
pub(super) fn expire(vitals: &mut Vitals, expiry: Expiry, policy: &Policy) {
    // Imported history must not be expired from the start, and what is announced must not end before it begins: the life begins at
    // the recording at the earliest, and where the text begins to be true.
    let base = vitals.created_at.max(vitals.times.recorded_at).max(vitals.times.from());
    expire_from(base, vitals, expiry, policy);
}

/// The same of a life that counts from an instant.
pub(super) fn expire_from(base: Time, vitals: &mut Vitals, expiry: Expiry, policy: &Policy) {
    let callers = |end: Option<Time>| Life { end, by: ExpiresBy::Caller };
    vitals.set_life(match expiry {
        Expiry::Never => callers(None),
        Expiry::At(at) => callers(Some(at)),
        Expiry::After(span) => callers(Some(base.plus(span))),
        Expiry::Tier => Life::of_tier(base, tier_ttl(vitals.tier, &policy.ttl)),
    });
}

/// How a draft replaces what its key says: a new text corrects it, unless the draft replaces other memories as well.
pub(super) fn replaced_as(draft: &Draft) -> SupersedeMode {
    let mode = if draft.supersedes.is_empty() { SupersedeMode::Correction } else { SupersedeMode::default() };
    draft.supersede_mode.unwrap_or(mode)
}

/// The instant from which on a draft takes the place of what it names.
pub(super) fn replaces_from(draft: &Draft) -> Option<Time> {
    let replaces = !draft.supersedes.is_empty() && replaced_as(draft) == SupersedeMode::Replaced;
    draft.fields.valid_from.value().copied().filter(|_| replaces)
}
