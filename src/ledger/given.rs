//! Which fields a writer gave, told by HMACs: a repeat is recognised by them, and what a writer said in a row that was united.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::{
    EXPIRY_CODE, Expiry, Fields, Holder, MemoryId, NOT_TOLD, Parts, SOURCES_CODE, VECTOR_CODE, Vitals,
};
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

/// Lets a row say nothing of the fields with these codes, as far as they are of its content or say when it happened.
pub(crate) fn forget_said(row: &mut Parts, codes: &BTreeSet<u8>) {
    row.take_content(Parts::defaults(), |code| codes.contains(&code));
    let is_instant = Fields::NAMES.iter().any(|(code, name)| *name == "happened_at" && codes.contains(code));
    row.vitals.happened_at = row.vitals.happened_at.filter(|_| !is_instant);
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
