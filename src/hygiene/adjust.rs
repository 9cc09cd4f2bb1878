//! Fields of a memory that a pass changes, and how a change of them is taken back.

use serde_json::Value;

use crate::model::{Access, Delta, Time, Vitals};

/// What a pass does to one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Adjustment {
    /// A durable row without a confidence gets this one.
    Seed(f32),
}

/// The parts of a row that a pass may change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adjustable {
    pub(crate) vitals: Vitals,
    pub(crate) access: Access,
}

impl Adjustment {
    /// The row afterwards; none where the condition does not hold, or holds no longer.
    pub(crate) fn of(self, row: &Adjustable, now: Time) -> Option<Adjustable> {
        let mut next = row.clone();
        if !row.vitals.times.visible_live(now) {
            return None;
        }
        match self {
            Adjustment::Seed(confidence) => {
                if row.vitals.tier.is_short_term() || row.vitals.confidence.is_some() {
                    return None;
                }
                next.vitals.confidence = Some(confidence);
                next.vitals.updated_at = now;
            }
        }
        next.vitals.version += 1;
        Some(next)
    }
}

/// The fields that an adjustment may change, each with its place.
macro_rules! adjustable {
    ($($name:literal $part:ident.$place:ident;)+) => {
        impl Adjustable {
            /// What changes from this row to another, for the journal.
            pub(crate) fn deltas(&self, next: &Adjustable) -> Vec<Delta> {
                let mut all = Vec::new();
                $(if self.$part.$place != next.$part.$place {
                    let (before, after) = (shown(&self.$part.$place), shown(&next.$part.$place));
                    all.push(Delta { field: $name.to_owned(), before, after });
                })+
                all
            }

            /// Puts a field back to what it was; none where it is no such field, or the row has another value since.
            pub(crate) fn put_back(&mut self, delta: &Delta) -> Option<()> {
                match delta.field.as_str() {
                    $($name => {
                        if shown(&self.$part.$place) != delta.after {
                            return None;
                        }
                        self.$part.$place = serde_json::from_value(delta.before.clone()).ok()?;
                    })+
                    _ => return None,
                }
                Some(())
            }
        }
    };
}

adjustable! {
    "confidence" vitals.confidence;
    "updated_at" vitals.updated_at;
    "version" vitals.version;
}

fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
