//! The parts of a stored row, made from the table of fields: for filters, for showing a memory, for its statistics.

use std::sync::LazyLock;

use serde_json::Value;

use crate::limits::USES_MAX;
use crate::model::field::{
    Attachment, DraftField, Embed, Field, Fields, Shown, TimeRange, memory_fields, stored,
};
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, Tier};
use crate::model::time::Time;
use crate::model::usage::Usage;
use crate::model::vitals::Vitals;

/// The parts of a row that fields decide.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    /// The hot part.
    pub(crate) vitals: Vitals,
    /// The cold part.
    pub(crate) content: Content,
    /// Statistics.
    pub(crate) access: Access,
}

/// The value of a row after it has taken in a duplicate.
macro_rules! merged {
    (keep, $kept:expr, $other:expr) => {};
    (larger, $kept:expr, $other:expr) => {
        if $other > $kept {
            $kept.clone_from(&$other);
        }
    };
    (fill, $kept:expr, $other:expr) => {
        if $kept.is_none() {
            $kept.clone_from(&$other);
        }
    };
}

macro_rules! journaled {
    (silent, $all:ident, $name:ident, $value:expr) => {};
    (journaled, $all:ident, $name:ident, $value:expr) => {
        $all.push((stringify!($name), value_of(&$value)));
    };
}

macro_rules! parts {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        impl Parts {
            /// Replaces the stored values by the given values.
            pub(crate) fn apply(&mut self, fields: &Fields) {
                self.apply_own(fields);
                $($(fields.$name.put(&mut self.$part.$($place).+);)+)+
            }

            /// The fields as a caller would give them. Fields that are not set are left out.
            pub(crate) fn fields(&self) -> Fields {
                Fields {
                    kind: Some(self.kind()),
                    reinforcement_count: Some(i64::from(self.vitals.reinforcement_count)),
                    $($($name: <$wrap<$ty> as DraftField>::of(&self.$part.$($place).+),)+)+
                }
            }

            /// Takes from a duplicate what the merge rule of each field says.
            pub(crate) fn merge_fields(&mut self, other: &Parts) {
                $($(merged!($merge, self.$part.$($place).+, other.$part.$($place).+);)+)+
            }

            /// The name and the value of each field whose changes the journal tells.
            pub(crate) fn journaled(&self) -> Vec<(&'static str, Value)> {
                let vitals = &self.vitals;
                let mut all = vec![
                    ("kind", value_of(&self.kind().to_string())),
                    ("reinforcement_count", value_of(&u64::from(vitals.reinforcement_count))),
                    ("expires_at", value_of(&vitals.times.expires_at)),
                    ("expires_by", vitals.expires_by.as_str().into()),
                ];
                $($(journaled!($journal, all, $name, self.$part.$($place).+);)+)+
                all
            }
        }
    };
}

macro_rules! cold {
    (own { $($own:tt)+ } vitals { $($vitals:tt)+ }
     content { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $place:ident, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
     )+ }
     access { $(
        $(#[$adoc:meta])*
        $anumber:literal $aname:ident: $awrap:ident<$aty:ty> = $adefault:expr, $aplace:ident, $abound:ident, $ajson:ident,
        $ajournal:ident, $amerge:ident, $asample:literal;
     )+ }) => {
        /// The cold part of a memory, read when the memory is shown.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Content {
            /// The text as the caller gave it.
            pub text: String,
            /// The name of a custom kind.
            pub custom_kind: Option<String>,
            /// The union of the tags of all holders, sorted.
            pub tags: Vec<String>,
            $($(#[$doc])* pub $name: stored!($wrap, $ty),)+
        }

        impl Parts {
            /// Takes each field of the content that has such a number from other parts.
            pub(crate) fn take_content(&mut self, from: &Parts, takes: impl Fn(u8) -> bool) {
                $(if takes($number) {
                    self.content.$place.clone_from(&from.content.$place);
                })+
            }
        }

        impl Default for Content {
            fn default() -> Self {
                Content { text: String::new(), custom_kind: None, tags: Vec::new(), $($name: $default,)+ }
            }
        }

        /// Access statistics and stamps. They have a table of their own, because most rows have none.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Access {
            $($(#[$adoc])* pub $aname: stored!($awrap, $aty),)+
            /// A count that grows with every folded inclusion or retrieval.
            pub access_seq: u64,
        }

        impl Default for Access {
            fn default() -> Self {
                Access { $($aname: $adefault,)+ access_seq: 0 }
            }
        }
    };
}

memory_fields!(cold);
memory_fields!(parts);

impl Content {
    /// The content of a memory with this text, of which nothing else is known.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Content { text: text.into(), ..Content::default() }
    }
}

impl Access {
    /// How often the row was used.
    pub fn count(&self) -> u64 {
        self.retrieval_count.max(self.included_count_total)
    }

    /// What the vitals of a row of a tier with these statistics say of its use.
    pub(crate) fn usage(&self, tier: Tier) -> Usage {
        Usage {
            uses: u8::try_from(self.count()).unwrap_or(u8::MAX).min(USES_MAX),
            is_promoted: self.promoted_at.is_some(),
            is_consolidated: self.last_consolidated_at.is_some(),
        }
        .for_tier(tier)
    }

    /// When the row with these vitals was last touched.
    pub fn last_accessed(&self, vitals: &Vitals) -> Time {
        [self.last_retrieved, self.last_included_at, vitals.last_reinforced_at]
            .into_iter()
            .flatten()
            .fold(vitals.created_at, Time::max)
    }
}

impl Parts {
    /// The parts of a memory with this text, written at `now`, of which nothing else is known.
    pub(crate) fn new(text: &str, now: Time) -> Self {
        Parts { vitals: Vitals::new(text, now), content: Content::new(text), access: Access::default() }
    }

    /// The parts of a memory of which nothing is known.
    pub(crate) fn defaults() -> &'static Parts {
        static DEFAULTS: LazyLock<Parts> = LazyLock::new(|| Parts::new("", Time::EPOCH));
        &DEFAULTS
    }

    /// The kind.
    pub(crate) fn kind(&self) -> Kind {
        self.content.kind(self.vitals.kind_code)
    }

    fn apply_own(&mut self, fields: &Fields) {
        if let Some(kind) = &fields.kind {
            self.vitals.kind_code = kind.code();
            self.content.custom_kind = kind.custom_name().map(str::to_owned);
        }
        if let Some(count) = fields.reinforcement_count {
            self.vitals.reinforcement_count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        }
    }
}

impl Content {
    /// The kind with this code. The content has the name of a custom kind.
    pub(crate) fn kind(&self, code: u8) -> Kind {
        Kind::from_code(code, self.custom_kind.as_deref()).unwrap_or_default()
    }
}

/// The value of a field as the journal shows it.
fn value_of(value: &impl Shown) -> Value {
    serde_json::to_value(value.shown()).unwrap_or_default()
}
