//! The fields of a memory that a caller may set, made from one table: the fields of a draft, their JSON and their
//! bounds.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::json;
use crate::model::id::MemoryId;
use crate::model::kind::{AuthorKind, Kind, Significance, Tier};
use crate::model::time::Time;

mod bound;
mod table;
mod value;

pub(crate) use bound::metadata as check_metadata;
pub(crate) use bound::{check_categories, check_entities, check_links, check_supersedes, check_tags};
pub(crate) use table::{memory_fields, stored};
pub use value::{Attachment, Embed, Entity, Field, Link, TimeRange};

/// How a field of a draft is read, shown, and put into a row.
pub(crate) trait DraftField: Sized {
    /// The type that a caller gives.
    type Value;
    /// The type that a row keeps.
    type Stored;

    /// Reads the field from JSON.
    fn read(value: Value) -> Result<Self, serde_json::Error>;
    /// The JSON of the given value; none if no value was given.
    fn show(&self) -> Option<Value>;
    /// The value, if one was given.
    fn given(&self) -> Option<&Self::Value>;
    /// Replaces the value of a row, if the field was given.
    fn put(&self, place: &mut Self::Stored);
    /// The field that gives a row its present value.
    fn of(stored: &Self::Stored) -> Self;
}

impl<T: for<'de> Deserialize<'de> + Serialize + Clone> DraftField for Option<T> {
    type Value = T;
    type Stored = T;

    fn read(value: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(value)
    }

    fn show(&self) -> Option<Value> {
        self.as_ref().and_then(|value| serde_json::to_value(value).ok())
    }

    fn given(&self) -> Option<&T> {
        self.as_ref()
    }

    fn put(&self, place: &mut T) {
        if let Some(value) = self {
            place.clone_from(value);
        }
    }

    fn of(stored: &T) -> Self {
        Some(stored.clone())
    }
}

impl<T: for<'de> Deserialize<'de> + Serialize + Clone> DraftField for Field<T> {
    type Value = T;
    type Stored = Option<T>;

    fn read(value: Value) -> Result<Self, serde_json::Error> {
        Ok(serde_json::from_value::<Option<T>>(value)?.map_or(Field::Null, Field::Value))
    }

    fn show(&self) -> Option<Value> {
        match self {
            Field::Absent => None,
            Field::Null => Some(Value::Null),
            Field::Value(value) => serde_json::to_value(value).ok(),
        }
    }

    fn given(&self) -> Option<&T> {
        self.value()
    }

    fn put(&self, place: &mut Option<T>) {
        if self.is_given() {
            *place = self.value().cloned();
        }
    }

    fn of(stored: &Option<T>) -> Self {
        stored.clone().into()
    }
}

/// The value of a field as JSON shows it. A value is shown as it serializes. A number of 32 bits is shown in
/// the fewest digits that read back as the same number, also by way of f64.
pub(crate) trait Shown: Serialize {
    /// The value that serializes to the JSON.
    fn shown(&self) -> impl Serialize {
        self
    }
}

impl Shown for f32 {
    fn shown(&self) -> impl Serialize {
        widened(*self)
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> impl Serialize {
        self.as_ref().map(Shown::shown)
    }
}

impl<T: Serialize> Shown for Vec<T> {}
impl Shown for Time {}
impl Shown for Tier {}
impl Shown for Significance {}
impl Shown for bool {}
impl Shown for u64 {}
impl Shown for f64 {}
impl Shown for String {}
impl Shown for Value {}
impl Shown for MemoryId {}
impl Shown for AuthorKind {}
impl Shown for TimeRange {}

/// The f64 with the shortest decimal form of `value`, as long as that reads back as `value`.
pub(crate) fn widened(value: f32) -> f64 {
    match value.to_string().parse::<f64>() {
        Ok(short) if (short as f32).to_bits() == value.to_bits() => short,
        _ => f64::from(value),
    }
}

macro_rules! fields {
    ($($part:ident { $(
        $(#[doc = $doc:literal])*
        $number:literal $name:ident: $wrap:ident<$ty:ty> = $default:expr, $($place:ident).+, $bound:ident, $json:ident,
        $journal:ident, $merge:ident, $sample:literal;
    )+ })+) => {
        /// The fields that a caller may set besides text, vector, key, tags and links.
        ///
        /// An `Option` field can't be cleared, a [`Field`] can.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Fields {
            $($($(#[doc = $doc])* pub $name: $wrap<$ty>,)+)+
        }

        impl Fields {
            /// Number and name of every field, in the order of the table.
            pub const NAMES: &'static [(u8, &'static str)] = &[$($(($number, stringify!($name)),)+)+];

            /// The name of the field with this number; empty where there is none.
            pub(crate) fn name_of(number: u8) -> &'static str {
                match number {
                    $($($number => stringify!($name),)+)+
                    _ => "",
                }
            }

            /// Sets the field called `name` from JSON; false when there is no such field.
            ///
            /// # Errors
            /// `Invalid` when the value is not of the field's type.
            pub(crate) fn set_json(&mut self, name: &str, value: Value) -> Result<bool> {
                match name {
                    $($(stringify!($name) => self.$name = read(name, value)?,)+)+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Leaves out the fields whose numbers `is_out` names.
            pub(crate) fn leave_out(&mut self, is_out: impl Fn(u8) -> bool) {
                $($(
                    if is_out($number) {
                        self.$name = <$wrap<$ty>>::default();
                    }
                )+)+
            }

            /// Takes the fields that others give in place of its own.
            pub(crate) fn take_given(&mut self, later: &Fields) {
                $($(
                    if later.$name.show().is_some() {
                        self.$name.clone_from(&later.$name);
                    }
                )+)+
            }

            /// Calls `f` with the number and the JSON of each given field, in the order of the table.
            pub(crate) fn for_each_given(&self, f: impl FnMut(u8, Value)) {
                self.for_each_of(|_| true, f);
            }

            /// The same for those fields whose number is wanted. A list of others can be long.
            pub(crate) fn for_each_of(&self, is_wanted: impl Fn(u8) -> bool, mut f: impl FnMut(u8, Value)) {
                $($(
                    if is_wanted($number)
                        && let Some(value) = self.$name.show()
                    {
                        f($number, value);
                    }
                )+)+
            }

            /// Checks the bounds of every field.
            ///
            /// ```
            /// use oubliette::Draft;
            /// assert!(Draft::new("Ann prefers tea").importance(0.9).fields.check().is_ok());
            /// assert!(Draft::new("Ann prefers tea").importance(7.0).fields.check().is_err());
            /// ```
            ///
            /// # Errors
            /// `Invalid` naming the first field that breaks its bound.
            pub fn check(&self) -> Result<()> {
                $($(
                    if let Some(value) = self.$name.given() {
                        bound::$bound(stringify!($name), value)?;
                    }
                )+)+
                self.check_period()
            }
        }

        /// Every default, in the form in which a caller would give it.
        #[cfg(test)]
        fn defaults() -> Fields {
            Fields { $($($name: <$wrap<$ty> as DraftField>::of(&$default),)+)+ }
        }

        /// A row of `docs/fields.md` for each field.
        #[cfg(test)]
        pub(crate) fn documented() -> Vec<[String; 8]> {
            vec![$($([
                stringify!($number).to_owned(),
                stringify!($name).to_owned(),
                stringify!($ty).replace(' ', "") + nullable(stringify!($wrap)),
                <$wrap<$ty> as DraftField>::of(&$default).show().unwrap_or_default().to_string(),
                bound::told(stringify!($bound)),
                stringify!($part).to_owned(),
                format!("{}, {}, {}", stringify!($json), stringify!($journal), stringify!($merge)),
                concat!($($doc)*).to_owned(),
            ],)+)+]
        }
    };
}

memory_fields!(fields);

fn read<T: DraftField>(name: &str, value: Value) -> Result<T> {
    let shown = value.to_string();
    T::read(value).map_err(|why| Error::invalid(name, json::clean(&why), shown))
}

impl Fields {
    /// Whether no field was given.
    ///
    /// ```
    /// use oubliette::Draft;
    /// assert!(Draft::new("Ann prefers tea").fields.is_empty());
    /// assert!(!Draft::new("Ann prefers tea").importance(0.9).fields.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        let mut any = false;
        self.for_each_given(|_, _| any = true);
        !any
    }

    fn check_period(&self) -> Result<()> {
        match (self.valid_from.value(), self.valid_to.value()) {
            (Some(from), Some(to)) if from >= to => {
                Err(Error::invalid("valid_to", "must lie after valid_from", to))
            }
            _ => Ok(()),
        }
    }
}

/// How the docs mark a type that can be null.
#[cfg(test)]
fn nullable(wrap: &str) -> &'static str {
    match wrap {
        "Field" => "?",
        _ => "",
    }
}

#[cfg(test)]
pub(crate) mod tests;
