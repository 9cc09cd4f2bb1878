//! The fields that a filter can name: where each field stands in a row, and its type. The fields that a caller may set
//! come from the table of fields.

use serde_json::Value;

use crate::model::field::{Attachment, Embed, Entity, TimeRange, memory_fields, stored};
use crate::model::filter::datum::{Datum, Number};
use crate::model::filter::row::{Needs, RowView, VitalsView};
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, SupersedeMode, Tier};
use crate::model::time::Time;

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Column {
    /// A field with a name of its own.
    Named(&'static Named),
    /// The names on the way down into the metadata, at least one.
    Metadata(Vec<String>),
}

/// A field with a name of its own.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) of: Type,
    pub(super) values: Values,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Where the values of a field are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    Hot(fn(&VitalsView<'_>, Seen<'_>) -> bool),
    Content(fn(&RowView<'_>, Seen<'_>) -> bool),
    Access(fn(&RowView<'_>, Seen<'_>) -> bool),
    Keys(fn(&RowView<'_>, Seen<'_>) -> bool),
    Links(fn(&RowView<'_>, Seen<'_>) -> bool),
    /// The kind, as far as its code tells.
    Kind,
    /// The kind, with the name of a custom kind, which stands in the content.
    CustomKind,
}

/// A function that is shown each value of a field until it returns true.
pub(super) type Seen<'a> = &'a mut dyn FnMut(Datum<'_>) -> bool;

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Id,
    /// A number stored in single precision.
    Single,
    Number,
    Whole,
    Bool,
    Time,
    Kind,
    Tier,
    Significance,
    AuthorKind,
    SupersedeMode,
    /// Whatever the metadata hold: a text, a number or a bool.
    Any,
}

impl Type {
    /// Whether the values have a meaningful order.
    pub(super) fn is_ordered(self) -> bool {
        !matches!(self, Type::Bool | Type::Kind | Type::AuthorKind | Type::SupersedeMode)
    }
}

/// A type whose values a filter compares.
trait Compared {
    /// The type of the values; none if a filter cannot name them.
    const TYPE: Option<Type>;

    /// Whether `seen` returns true for any of the values.
    fn any(&self, seen: Seen<'_>) -> bool;
}

/// Types with one value.
macro_rules! compared {
    ($($ty:ty: $of:ident, |$value:ident| $datum:expr;)+) => {$(
        impl Compared for $ty {
            const TYPE: Option<Type> = Some(Type::$of);

            fn any(&self, seen: Seen<'_>) -> bool {
                let $value = self;
                seen($datum)
            }
        }
    )+};
}

compared! {
    bool: Bool, |value| Datum::Bool(*value);
    u32: Whole, |value| Datum::Number(Number::Whole(i128::from(*value)));
    u64: Whole, |value| Datum::Number(Number::Whole(i128::from(*value)));
    String: Text, |text| Datum::Text(text);
    str: Text, |text| Datum::Text(text);
    MemoryId: Id, |id| Datum::Id(*id);
    Time: Time, |time| Datum::Time(*time);
    Tier: Tier, |tier| Datum::Code(tier.code());
    Significance: Significance, |significance| Datum::Code(significance.code());
    AuthorKind: AuthorKind, |kind| Datum::Code(kind.code());
    SupersedeMode: SupersedeMode, |mode| Datum::Code(mode.code());
}

/// Types with one value, or none for a float that is not a number.
macro_rules! floats {
    ($($ty:ty: $of:ident),+) => {$(
        impl Compared for $ty {
            const TYPE: Option<Type> = Some(Type::$of);

            fn any(&self, seen: Seen<'_>) -> bool {
                Number::of_f64(f64::from(*self)).is_some_and(|number| seen(Datum::Number(number)))
            }
        }
    )+};
}

floats!(f32: Single, f64: Number);

/// Types that a filter cannot name.
macro_rules! opaque {
    ($($ty:ty),+) => {$(
        impl Compared for $ty {
            const TYPE: Option<Type> = None;

            fn any(&self, _: Seen<'_>) -> bool {
                false
            }
        }
    )+};
}

opaque!(Value, Attachment, Embed, TimeRange);

impl<T: Compared> Compared for Option<T> {
    const TYPE: Option<Type> = T::TYPE;

    fn any(&self, seen: Seen<'_>) -> bool {
        self.as_ref().is_some_and(|value| value.any(seen))
    }
}

impl<T: Compared> Compared for [T] {
    const TYPE: Option<Type> = T::TYPE;

    fn any(&self, seen: Seen<'_>) -> bool {
        self.iter().any(|value| value.any(seen))
    }
}

impl<T: Compared> Compared for Vec<T> {
    const TYPE: Option<Type> = T::TYPE;

    fn any(&self, seen: Seen<'_>) -> bool {
        self.as_slice().any(seen)
    }
}

/// An entity is compared by its name.
impl Compared for Entity {
    const TYPE: Option<Type> = Some(Type::Text);

    fn any(&self, seen: Seen<'_>) -> bool {
        self.name.any(seen)
    }
}

macro_rules! values {
    (vitals, $($place:ident).+) => { Values::Hot(|row, seen| row.vitals.$($place).+.any(seen)) };
    (content, $place:ident) => { Values::Content(|row, seen| row.content.$place.any(seen)) };
    (access, $place:ident) => { Values::Access(|row, seen| row.access.$place.any(seen)) };
}

macro_rules! columns {
    (own { $($own:tt)+ } $($part:ident { $(
        $(#[$doc:meta])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// The fields of the table. A field of a type that no filter can name is none.
        static FIELDS: &[Option<Named>] = &[$($(
            match <stored!($wrap, $ty) as Compared>::TYPE {
                Some(of) => Some(Named { name: stringify!($name), of, values: values!($part, $($place).+) }),
                None => None,
            },
        )+)+];
    };
}

memory_fields!(columns);

const fn named(name: &'static str, of: Type, values: Values) -> Named {
    Named { name, of, values }
}

/// The fields that the engine keeps of a memory, and the fields that holders bring.
pub(super) static KEPT: &[Named] = &[
    ID,
    KEYS,
    TAGS,
    named("kind", Type::Kind, Values::Kind),
    named(
        "agent",
        Type::Text,
        Values::Hot(|row, seen| row.partition.agent_name().is_some_and(|name| name.any(seen))),
    ),
    named(
        "reinforcement_count",
        Type::Whole,
        Values::Hot(|row, seen| row.vitals.reinforcement_count.any(seen)),
    ),
    named("deletes_source", Type::Bool, Values::Hot(|row, seen| row.vitals.deletes_source.any(seen))),
    named("expires_at", Type::Time, Values::Hot(|row, seen| row.vitals.times.expires_at.any(seen))),
    named(
        "valid_from_recorded_at",
        Type::Time,
        Values::Hot(|row, seen| row.vitals.times.valid_from_recorded_at.any(seen)),
    ),
    named("valid_to_before", Type::Time, Values::Hot(|row, seen| row.vitals.times.valid_to_before.any(seen))),
    named(
        "announced_valid_to",
        Type::Time,
        Values::Hot(|row, seen| row.vitals.times.announced.map(|announced| announced.end).any(seen)),
    ),
    named(
        "announced_at",
        Type::Time,
        Values::Hot(|row, seen| row.vitals.times.announced.map(|announced| announced.at).any(seen)),
    ),
    named("recorded_at", Type::Time, Values::Hot(|row, seen| row.vitals.times.recorded_at.any(seen))),
    named(
        "superseded_at",
        Type::Time,
        Values::Hot(|row, seen| row.vitals.times.superseded.map(|s| s.at).any(seen)),
    ),
    named("superseded_by", Type::Id, Values::Hot(|row, seen| row.vitals.times.superseded_by().any(seen))),
    named(
        "supersede_mode",
        Type::SupersedeMode,
        Values::Hot(|row, seen| row.vitals.times.superseded.map(|s| s.mode).any(seen)),
    ),
    named("version", Type::Whole, Values::Hot(|row, seen| row.vitals.version.any(seen))),
    named("pending", Type::Bool, Values::Hot(|row, seen| row.vitals.place.slot.is_none().any(seen))),
    named("text", Type::Text, Values::Content(|row, seen| row.content.text.any(seen))),
    named("access_seq", Type::Whole, Values::Access(|row, seen| row.access.access_seq.any(seen))),
    named("categories", Type::Text, Values::Links(|row, seen| row.categories.any(seen))),
    named("entities", Type::Text, Values::Links(|row, seen| row.entities.any(seen))),
    named("sources", Type::Id, Values::Links(|row, seen| row.sources.any(seen))),
];

/// The id.
pub(super) const ID: Named = named("id", Type::Id, Values::Hot(|row, seen| row.id.any(seen)));
/// Keys of every holder.
pub(super) const KEYS: Named = named("keys", Type::Text, Values::Keys(|row, seen| row.keys.any(seen)));
/// Tags of every holder.
pub(super) const TAGS: Named =
    named("tags", Type::Text, Values::Content(|row, seen| row.content.tags.any(seen)));

/// A kind that is compared with a custom kind. The hot part is not enough for that.
pub(super) static CUSTOM_KIND: Named = named("kind", Type::Kind, Values::CustomKind);

/// Other names of a field.
const ALIASES: [(&str, &str); 5] = [
    ("key", "keys"),
    ("content", "text"),
    ("author.kind", "author_kind"),
    ("author.id", "author_id"),
    ("source_memory_ids", "sources"),
];

/// The field with a given name.
pub(super) fn find(name: &str) -> Option<&'static Named> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    KEPT.iter().chain(FIELDS.iter().flatten()).find(|field| field.name == name)
}

/// The fields whose name goes on where this one ends, or the other way round: `author` is none, `author_id` is.
pub(super) fn near(name: &str) -> Vec<&'static str> {
    let is_near = |field: &&str| !name.is_empty() && (field.starts_with(name) || name.starts_with(field));
    let own = KEPT.iter().chain(FIELDS.iter().flatten()).map(|field| field.name);
    own.filter(is_near).take(4).collect()
}

impl Column {
    /// Notes which part of a row the field stands in.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Column::Metadata(_) => needs.content = true,
            Column::Named(field) => match field.values {
                Values::Hot(_) | Values::Kind => {}
                Values::Content(_) | Values::CustomKind => needs.content = true,
                Values::Access(_) => needs.access = true,
                Values::Keys(_) => needs.keys = true,
                Values::Links(_) => needs.links = true,
            },
        }
    }

    /// Whether `seen` returns true for any value, as far as the hot part can tell; none when another part
    /// decides.
    pub(super) fn any_hot(&self, row: &VitalsView<'_>, seen: Seen<'_>) -> Option<bool> {
        let Column::Named(field) = self else { return None };
        match field.values {
            Values::Hot(any) => Some(any(row, seen)),
            Values::Kind => Some(seen(Datum::Kind(row.vitals.kind_code, ""))),
            // A built-in kind has no name in the content.
            Values::CustomKind if row.vitals.kind_code != Kind::CUSTOM_CODE => {
                Some(seen(Datum::Kind(row.vitals.kind_code, "")))
            }
            _ => None,
        }
    }
}
