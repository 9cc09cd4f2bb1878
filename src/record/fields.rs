//! Fields of a row as a list: those that differ from their defaults, each with its number and its length, so that a
//! reader goes past a field that it does not know.
//!
//! ```text
//! number u8 | length varint | value       numbers ascend; the value is in postcard
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::model::{
    Access, Attachment, AuthorKind, Belonging, Content, Embed, MemoryId, Parts, Time, TimeRange,
    memory_fields,
};
use crate::record::frame::At;
use crate::record::varint::{put_varint, take_varint};

/// The value of a field, as bytes.
trait Cell: Sized {
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes it from the front.
    ///
    /// # Errors
    /// `Corrupted` for bytes that [`Cell::put`] did not write.
    fn take(at: At<'_>, field: &str, bytes: &mut &[u8]) -> Result<Self>;

    /// Whether it is `other`, bit by bit.
    fn is(&self, other: &Self) -> bool;
}

/// Appends a value that postcard can write.
#[expect(clippy::expect_used, reason = "writing to memory cannot fail, and every type here has a length")]
fn write(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    postcard::to_io(value, out).expect("a field is serialized into memory");
}

/// Takes a value that postcard has written.
fn read<T: DeserializeOwned>(at: At<'_>, field: &str, bytes: &mut &[u8]) -> Result<T> {
    let (value, rest) = postcard::take_from_bytes(bytes)
        .map_err(|why| at.corrupted(format!("{field} cannot be read: {why}")))?;
    *bytes = rest;
    Ok(value)
}

/// Types that postcard writes as they are.
macro_rules! plain {
    ($($ty:ty),+) => {$(
        impl Cell for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                write(self, out);
            }

            fn take(at: At<'_>, field: &str, bytes: &mut &[u8]) -> Result<Self> {
                read(at, field, bytes)
            }

            fn is(&self, other: &Self) -> bool {
                self == other
            }
        }
    )+};
}

/// Types that postcard writes as another: into it and back.
macro_rules! by_way_of {
    ($ty:ty, |$value:ident| $into:expr, |$at:ident, $field:ident, $stored:ident: $by:ty| $back:expr) => {
        impl Cell for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                let $value = self;
                write(&$into, out);
            }

            fn take($at: At<'_>, $field: &str, bytes: &mut &[u8]) -> Result<Self> {
                let $stored: $by = read($at, $field, bytes)?;
                $back
            }

            fn is(&self, other: &Self) -> bool {
                self == other
            }
        }
    };
}

/// Floats, which are the same when their bits are: a negative zero is not zero.
macro_rules! float {
    ($($ty:ty),+) => {$(
        impl Cell for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                write(self, out);
            }

            fn take(at: At<'_>, field: &str, bytes: &mut &[u8]) -> Result<Self> {
                let value: Self = read(at, field, bytes)?;
                match value.is_finite() {
                    true => Ok(value),
                    false => Err(at.corrupted(format!("{field} is not finite"))),
                }
            }

            fn is(&self, other: &Self) -> bool {
                self.to_bits() == other.to_bits()
            }
        }
    )+};
}

plain!(bool, u64, String, Vec<String>);
float!(f32, f64);
by_way_of!(Time, |time| time.as_millis(), |at, field, millis: i64| at.time(field, millis));
by_way_of!(MemoryId, |id| id.as_bytes(), |_at, _field, bytes: [u8; 16]| Ok(MemoryId::from_bytes(bytes)));
by_way_of!(Vec<MemoryId>, |ids| ids.iter().map(MemoryId::as_bytes).collect::<Vec<_>>(), |_at,
                                                                                         _field,
                                                                                         ids: Vec<
    [u8; 16],
>| Ok(ids
    .into_iter()
    .map(MemoryId::from_bytes)
    .collect()));
by_way_of!(AuthorKind, |kind| kind.code(), |at, field, code: u8| at.member(
    field,
    code,
    AuthorKind::from_code
));
by_way_of!(
    TimeRange,
    |range| (range.start.as_millis(), range.end.as_millis()),
    |at, field, ends: (i64, i64)| Ok(TimeRange {
        start: at.time(field, ends.0)?,
        end: at.time(field, ends.1)?
    })
);
by_way_of!(
    Vec<Attachment>,
    |list| list.iter().map(|it| (&it.media_type, it.size, &it.blob_id)).collect::<Vec<_>>(),
    |_at, _field, list: Vec<(String, u64, Option<String>)>| {
        let attachment = |(media_type, size, blob_id)| Attachment { media_type, size, blob_id };
        Ok(list.into_iter().map(attachment).collect())
    }
);
by_way_of!(Vec<Embed>, |list| list.iter().map(|it| (&it.url, &it.title)).collect::<Vec<_>>(), |_at,
                                                                                               _field,
                                                                                               list: Vec<
    (String, Option<String>),
>| {
    Ok(list.into_iter().map(|(url, title)| Embed { url, title }).collect())
});
// postcard cannot read a value whose type stands in it: JSON is kept as text.
by_way_of!(Value, |value| value.to_string(), |at, field, text: String| at.json(field, &text));

/// What is not there is not written: whoever writes it leaves the field out.
impl<T: Cell> Cell for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(at: At<'_>, field: &str, bytes: &mut &[u8]) -> Result<Self> {
        T::take(at, field, bytes).map(Some)
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() == other.is_none(),
        }
    }
}

/// Appends a field, unless it has its default.
fn put_field<T: Cell>(number: u8, value: &T, default: &T, out: &mut Vec<u8>) {
    if value.is(default) {
        return;
    }
    out.push(number);
    let begin = out.len();
    value.put(out);
    let mut length = Vec::with_capacity(5);
    put_varint(&mut length, u32::try_from(out.len() - begin).unwrap_or(u32::MAX));
    // The length is known only after the value is written, so it is put in front afterwards.
    out.splice(begin..begin, length);
}

/// Reads a field whose bytes are all of one value.
///
/// # Errors
/// `Corrupted` for other bytes.
fn take_field<T: Cell>(at: At<'_>, field: &str, mut bytes: &[u8]) -> Result<T> {
    let value = T::take(at, field, &mut bytes)?;
    match bytes.len() {
        0 => Ok(value),
        more => Err(at.corrupted(format!("{more} bytes after {field}"))),
    }
}

/// Calls `f` with number and bytes of each field.
///
/// # Errors
/// `Corrupted` for numbers that do not ascend and lengths beyond the end; what `f` says.
fn for_each_field<'b>(
    at: At<'_>,
    mut bytes: &'b [u8],
    mut f: impl FnMut(u8, &'b [u8]) -> Result<()>,
) -> Result<()> {
    let mut last = None;
    while let Some((&number, rest)) = bytes.split_first() {
        if last.replace(number).is_some_and(|last| last >= number) {
            return Err(at.corrupted(format!("field {number} stands after one with a higher number")));
        }
        bytes = rest;
        let value = take_varint(&mut bytes).and_then(|length| bytes.split_at_checked(length as usize));
        let Some((value, rest)) = value else {
            return Err(at.corrupted(format!("field {number} is longer than the row")));
        };
        f(number, value)?;
        bytes = rest;
    }
    Ok(())
}

/// Writers and readers of the parts that are lists of fields: the rows of the table, and what else stands in the part.
macro_rules! codec {
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
        codec!(put_content, take_content, content: Content, $($number $name,)+ 240 custom_kind, 241 tags,);

        /// The numbers of the fields of a content.
        #[allow(dead_code, non_upper_case_globals, reason = "each has the name of its field, and few are asked for")]
        mod of_content {
            $(pub(super) const $name: u8 = $number;)+
            pub(super) const custom_kind: u8 = 240;
            pub(super) const tags: u8 = 241;
        }

        codec!(put_access, take_access, access: Access, $($anumber $aname,)+ 240 access_seq,);
    };
    ($put:ident, $take:ident, $part:ident: $ty:ty, $($number:literal $name:ident,)+) => {
        /// Appends the fields that differ from their defaults.
        pub(super) fn $put(part: &$ty, out: &mut Vec<u8>) {
            let default = &Parts::defaults().$part;
            $(put_field($number, &part.$name, &default.$name, out);)+
        }

        /// The part whose fields these are; a field that is not there has its default.
        ///
        /// # Errors
        /// `Corrupted` for a list that was not written so.
        pub(super) fn $take(at: At<'_>, bytes: &[u8]) -> Result<$ty> {
            let mut part = Parts::defaults().$part.clone();
            for_each_field(at, bytes, |number, bytes| {
                match number {
                    $($number => part.$name = take_field(at, stringify!($name), bytes)?,)+
                    _ => {}
                }
                Ok(())
            })?;
            Ok(part)
        }
    };
}

memory_fields!(codec);

/// Reads what of a content says which memories belong together, and goes past the other fields.
///
/// # Errors
/// `Corrupted` for a list of fields that was not written so.
pub(super) fn take_belonging(at: At<'_>, bytes: &[u8]) -> Result<Belonging> {
    let mut part = Belonging::default();
    for_each_field(at, bytes, |number, bytes| {
        match number {
            of_content::metadata => part.metadata = take_field(at, "metadata", bytes)?,
            of_content::channel => part.channel = take_field(at, "channel", bytes)?,
            of_content::thread => part.thread = take_field(at, "thread", bytes)?,
            of_content::reply_to => part.reply_to = take_field(at, "reply_to", bytes)?,
            of_content::family_id => part.family_id = take_field(at, "family_id", bytes)?,
            of_content::aggregate_id => part.aggregate_id = take_field(at, "aggregate_id", bytes)?,
            of_content::verbatim => part.verbatim = take_field(at, "verbatim", bytes)?,
            of_content::custom_kind => part.custom_kind = take_field(at, "custom_kind", bytes)?,
            of_content::tags => part.tags = take_field(at, "tags", bytes)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(part)
}
