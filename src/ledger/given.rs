//! Which fields a writer gave, told by HMACs: a repeat is recognised by them, and what a writer said in a row that was united.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::{
    EXPIRY_CODE, Expiry, Fields, Holder, MemoryId, NOT_TOLD, Parts, SOURCES_CODE, Time, VECTOR_CODE, Vitals,
};
use crate::policy::Confidence;
use crate::text::Secret;
use crate::vector::UnitVector;

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
            all.push((code, secret.of_field(code, &value)));
        }
    });
    if let Some(expiry) = expiry {
        let shown = match expiry {
            Expiry::Tier => "tier".to_owned(),
            Expiry::Never => "never".to_owned(),
            Expiry::At(at) => at.to_string(),
            Expiry::After(span) => format!("+{span}"),
        };
        all.push((EXPIRY_CODE, secret.of_field(EXPIRY_CODE, &Value::String(shown))));
    }
    if let Some(sources) = sources.filter(|sources| !sources.is_empty()) {
        let list = sources.iter().map(|id| Value::String(id.to_string())).collect();
        all.push((SOURCES_CODE, secret.of_field(SOURCES_CODE, &Value::Array(list))));
    }
    all.sort_unstable();
    all
}

/// The codes of the fields that a holder gave and of which these parts have its value. A field that was changed since, through
/// another writer, is none of them; a field that was changed for all writers is.
pub(crate) fn said_by(holder: &Holder, parts: &Parts, secret: &Secret) -> BTreeSet<u8> {
    let gave = |code| holder.fields.iter().any(|(of, _)| *of == code);
    let mut said = BTreeSet::new();
    parts.fields().for_each_of(gave, |code, value| {
        if !value.is_null() && holder.fields.contains(&(code, secret.of_field(code, &value))) {
            said.insert(code);
        }
    });
    said
}

/// The fields that a holder takes along from a row: what it gave and the row says, by code and HMAC. A figure that it raised in a
/// row which another write had made has no owner, and stays. The confidence moves with every use, and is still that of the write
/// that made the row.
pub(crate) fn taken_by(holder: &Holder, row: &Parts, secret: &Secret) -> Vec<(u8, [u8; 8])> {
    let said = said_by(holder, row, secret);
    let made_the_row = holder.number == 0;
    let mut taken = holder.fields.clone();
    taken.retain(|(code, _)| match Fields::name_of(*code) {
        "confidence" => made_the_row,
        "significance" | "importance" => made_the_row && said.contains(code),
        _ => said.contains(code),
    });
    taken
}

/// What a row says by itself where nobody who stays has said it.
#[derive(Clone, Copy)]
pub(crate) struct Unsaid {
    /// Since when the memory has the first of its writers, and the last.
    pub(crate) since: (Time, Time),
    /// The confidence of a durable memory that comes without one.
    pub(crate) seed: f32,
}

/// The confidence of a durable memory that comes without one.
pub(crate) fn seed(confidence: &Confidence, is_imported: bool) -> f32 {
    (if is_imported { confidence.imported } else { confidence.fresh }) as f32
}

/// Lets a row say nothing of the fields with these codes, as far as they are of its content, its figures, or the instants at which
/// it was made, was changed or happened.
pub(crate) fn forget_said(row: &mut Parts, codes: &[u8], unsaid: Unsaid) {
    row.take_content(Parts::defaults(), |code| codes.contains(&code));
    let Parts { vitals, .. } = row;
    let (first, last) = unsaid.since;
    let plain = Vitals::new("", first);
    for code in codes {
        match Fields::name_of(*code) {
            "happened_at" => vitals.happened_at = None,
            "created_at" => vitals.created_at = first,
            "updated_at" => vitals.updated_at = last,
            "importance" => vitals.importance = plain.importance,
            "significance" => vitals.significance = plain.significance,
            "confidence" => {
                vitals.confidence = Some(unsaid.seed).filter(|_| !vitals.tier.is_short_term());
            }
            _ => {}
        }
    }
}

/// Lets a row say of its text what was said where the text was written: kind, figures, instants, and of the content each field
/// with a code that is told. If nothing is left of the row in which it was written, these fields stay as they are. Nothing else of
/// the content stays.
pub(crate) fn tell(row: &mut Parts, written: Option<&Parts>, is_told: impl Fn(u8) -> bool) {
    row.take_content(Parts::defaults(), |code| !is_told(code));
    let Some(written) = written else {
        let is_own = Fields::NAMES.iter().any(|(code, name)| *name == "happened_at" && is_told(*code));
        row.vitals.happened_at = row.vitals.happened_at.filter(|_| is_own);
        return;
    };
    row.take_content(written, is_told);
    row.content.custom_kind.clone_from(&written.content.custom_kind);
    let Vitals { kind_code, happened_at, created_at, significance, importance, confidence, .. } =
        &mut row.vitals;
    let there = &written.vitals;
    (*kind_code, *happened_at, *created_at) = (there.kind_code, there.happened_at, there.created_at);
    (*significance, *importance, *confidence) = (there.significance, there.importance, there.confidence);
}

/// Notes on a holder which vector came with its own text: another text is that of its row, and so is another vector.
pub(crate) fn note_vector(holder: &mut Holder, vector: Option<&UnitVector>, secret: &Secret) {
    holder.fields.retain(|(code, _)| *code != VECTOR_CODE);
    holder.fields.extend(vector.map(|vector| (VECTOR_CODE, short_of(vector, secret))));
    holder.fields.sort_unstable();
}

/// Whether a holder has the note that this vector came with its own text. A note of an export does not say which vector it was,
/// and stands for any.
pub(crate) fn notes_vector(holder: &Holder, vector: &UnitVector, secret: &Secret) -> bool {
    let noted = holder.fields.iter().find(|(code, _)| *code == VECTOR_CODE);
    noted.is_some_and(|(_, noted)| *noted == NOT_TOLD || *noted == short_of(vector, secret))
}

fn short_of(vector: &UnitVector, secret: &Secret) -> [u8; 8] {
    let values: Vec<u8> = vector.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
    secret.of_field_bytes(VECTOR_CODE, &values)
}
