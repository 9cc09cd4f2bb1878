//! What keys are made of, and how each part is written and read back.
//!
//! Numbers are big-endian so that byte order is number order; instants have their sign bit flipped for the same
//! reason. A text is followed by a NUL, which no name may hold, so that no text is a prefix of another.

use crate::model::{MemoryId, MetaValue, RunId, Tier, Time, Vitals};

/// Number of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NsId(pub(crate) u32);

/// Number of a partition in its namespace; 0 is the shared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartId(pub(crate) u32);

/// Number of an embedding space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SpaceId(pub(crate) u16);

impl SpaceId {
    /// Where rows without a vector are.
    pub(crate) const NONE: SpaceId = SpaceId(0);
    /// The space in which a full-text index lies, beside the images of vectors; no vector does.
    pub(crate) const TEXT: SpaceId = SpaceId(u16::MAX);
}

/// One vector index: a partition in an embedding space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct IndexId {
    pub(crate) ns: NsId,
    pub(crate) part: PartId,
    pub(crate) space: SpaceId,
}

impl IndexId {
    /// The index in which a memory of a namespace has its slot.
    pub(crate) fn of(ns: NsId, vitals: &Vitals) -> Self {
        IndexId { ns, part: PartId(vitals.place.partition), space: SpaceId(vitals.place.space) }
    }
}

/// The full-text index of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextId {
    pub(crate) ns: NsId,
    pub(crate) part: PartId,
}

impl TextId {
    /// Its place among the images of indexes.
    pub(crate) fn index(self) -> IndexId {
        IndexId { ns: self.ns, part: self.part, space: SpaceId::TEXT }
    }

    /// The full-text index in such a place; none in that of an index of vectors.
    pub(crate) fn at(index: IndexId) -> Option<Self> {
        (index.space == SpaceId::TEXT).then_some(TextId { ns: index.ns, part: index.part })
    }
}

/// What a junction row joins a memory to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Junction {
    /// A category, by term.
    Category = 1,
    /// An entity, by term, with a role.
    Entity = 2,
    /// Another memory, with a relation.
    Link = 3,
    /// A memory that it was made from.
    Source = 4,
}

impl Junction {
    /// The sort with a code from disk.
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Junction::Category),
            2 => Some(Junction::Entity),
            3 => Some(Junction::Link),
            4 => Some(Junction::Source),
            _ => None,
        }
    }

    /// Whether the other end is a term, and not a memory.
    pub(crate) const fn is_term(self) -> bool {
        matches!(self, Junction::Category | Junction::Entity)
    }
}

/// The other end of a junction: its sort, and the bytes of a term (4) or of an id (16).
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'k>(pub(crate) Junction, pub(crate) &'k [u8]);

/// A text in a key that goes on: a NUL follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'k>(pub(crate) &'k str);

/// A text at the end of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'k>(pub(crate) &'k str);

/// A key, or the beginning of one, under construction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// An empty one.
    pub(super) fn new() -> Self {
        // Most keys are not longer.
        Key(Vec::with_capacity(48))
    }

    /// The same with one more part behind it.
    pub(super) fn and<'k>(mut self, part: &impl Part<'k>) -> Self {
        part.put(&mut self.0);
        self
    }

    /// The same with some bytes of a part behind it.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

impl std::ops::Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// To what a key belongs, and what it names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Address<'k> {
    pub(crate) ns: Option<NsId>,
    pub(crate) part: Option<PartId>,
    pub(crate) space: Option<SpaceId>,
    /// The memory or the message that it is a row of.
    pub(crate) id: Option<MemoryId>,
    /// The key, the tag, the name or the path that it is about.
    pub(crate) name: Option<&'k str>,
}

/// A part of a key.
pub(crate) trait Part<'k>: Sized {
    /// Whether the key that has it belongs to a namespace, whose number then stands first.
    const OF_NAMESPACE: bool = false;

    /// Appends its bytes.
    fn put(&self, key: &mut Vec<u8>);

    /// Takes its bytes off the front of what is left of a key from disk; none where they can't be such a part.
    fn take(left: &mut &'k [u8]) -> Option<Self>;

    /// Says to what it makes the key belong.
    fn tell(&self, _address: &mut Address<'k>) {}
}

/// What the builder of a key takes for a part.
pub(crate) trait KeyArgument: Sized {
    type Arg: Into<Self>;
}

/// Parts that are given as they are.
macro_rules! given {
    ($($part:ty),+) => {
        $(impl KeyArgument for $part { type Arg = Self; })+
    };
}

given!(
    u8,
    u32,
    u64,
    Option<u32>,
    NsId,
    PartId,
    SpaceId,
    IndexId,
    MemoryId,
    RunId,
    Time,
    Tier,
    Junction,
    MetaValue
);

impl KeyArgument for End<'_> {
    type Arg = Self;
}

impl<const N: usize> KeyArgument for &[u8; N] {
    type Arg = Self;
}

/// The next `N` bytes.
fn chunk<'k, const N: usize>(left: &mut &'k [u8]) -> Option<&'k [u8; N]> {
    let (head, rest) = left.split_first_chunk()?;
    *left = rest;
    Some(head)
}

/// The text up to the next NUL, which is taken too.
fn until_nul<'k>(left: &mut &'k [u8]) -> Option<&'k [u8]> {
    let end = left.iter().position(|&byte| byte == 0)?;
    let (text, rest) = left.split_at_checked(end)?;
    *left = rest.get(1..)?;
    Some(text)
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Part<'_> for $number {
            fn put(&self, key: &mut Vec<u8>) {
                key.extend_from_slice(&self.to_be_bytes());
            }

            fn take(left: &mut &[u8]) -> Option<Self> {
                chunk(left).map(|bytes| <$number>::from_be_bytes(*bytes))
            }
        }
    )+};
}

numbers!(u8, u16, u32, u64);

macro_rules! places {
    ($($place:ident at $field:ident, of a namespace: $owned:literal;)+) => {$(
        impl Part<'_> for $place {
            const OF_NAMESPACE: bool = $owned;

            fn put(&self, key: &mut Vec<u8>) {
                self.0.put(key);
            }

            fn take(left: &mut &[u8]) -> Option<Self> {
                Part::take(left).map($place)
            }

            fn tell(&self, address: &mut Address<'_>) {
                address.$field = Some(*self);
            }
        }
    )+};
}

places! {
    NsId at ns, of a namespace: true;
    PartId at part, of a namespace: false;
    SpaceId at space, of a namespace: false;
}

impl Part<'_> for IndexId {
    const OF_NAMESPACE: bool = true;

    fn put(&self, key: &mut Vec<u8>) {
        self.ns.put(key);
        self.part.put(key);
        self.space.put(key);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        Some(IndexId { ns: Part::take(left)?, part: Part::take(left)?, space: Part::take(left)? })
    }

    fn tell(&self, address: &mut Address<'_>) {
        *address = Address { ns: Some(self.ns), part: Some(self.part), space: Some(self.space), ..*address };
    }
}

impl Part<'_> for MemoryId {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.as_bytes());
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        chunk(left).copied().map(MemoryId::from_bytes)
    }

    /// Where a key has two, the last is the one that it is a row of.
    fn tell(&self, address: &mut Address<'_>) {
        address.id = Some(*self);
    }
}

impl Part<'_> for RunId {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.as_bytes());
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        chunk(left).copied().map(RunId::from_bytes)
    }
}

impl Part<'_> for Time {
    fn put(&self, key: &mut Vec<u8>) {
        ((self.as_millis() as u64) ^ (1 << 63)).put(key);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u64::take(left).map(|bits| Time::from_millis((bits ^ (1 << 63)) as i64))
    }
}

impl Part<'_> for Tier {
    fn put(&self, key: &mut Vec<u8>) {
        key.push(self.code());
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u8::take(left).and_then(Tier::from_code)
    }
}

impl Part<'_> for Junction {
    fn put(&self, key: &mut Vec<u8>) {
        key.push(*self as u8);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u8::take(left).and_then(Junction::from_code)
    }
}

impl<'k> Part<'k> for End<'k> {
    fn put(&self, key: &mut Vec<u8>) {
        self.0.put(key);
        key.extend_from_slice(self.1);
    }

    fn take(left: &mut &'k [u8]) -> Option<Self> {
        let sort = Junction::take(left)?;
        let (end, rest) = left.split_at_checked(if sort.is_term() { 4 } else { 16 })?;
        *left = rest;
        Some(End(sort, end))
    }
}

/// Number of a holder, or none of them.
impl Part<'_> for Option<u32> {
    fn put(&self, key: &mut Vec<u8>) {
        self.unwrap_or(u32::MAX).put(key);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u32::take(left).map(|number| Some(number).filter(|number| *number != u32::MAX))
    }
}

impl<'k, const N: usize> Part<'k> for &'k [u8; N] {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(*self);
    }

    fn take(left: &mut &'k [u8]) -> Option<Self> {
        chunk(left)
    }
}

impl<'k> Part<'k> for Text<'k> {
    fn put(&self, key: &mut Vec<u8>) {
        debug_assert!(!self.0.contains('\0'), "names hold no NUL");
        key.extend_from_slice(self.0.as_bytes());
        key.push(0);
    }

    fn take(left: &mut &'k [u8]) -> Option<Self> {
        until_nul(left).and_then(|text| std::str::from_utf8(text).ok()).map(Text)
    }
}

impl<'k> Part<'k> for Rest<'k> {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.0.as_bytes());
    }

    fn take(left: &mut &'k [u8]) -> Option<Self> {
        <&str>::take(left).filter(|text| !text.contains('\0')).map(Rest)
    }
}

/// A whole key that is a text, whatever stands in it.
impl<'k> Part<'k> for &'k str {
    fn put(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(self.as_bytes());
    }

    fn take(left: &mut &'k [u8]) -> Option<Self> {
        std::str::from_utf8(std::mem::take(left)).ok()
    }
}

impl KeyArgument for &str {
    type Arg = Self;
}

macro_rules! texts {
    ($($text:ident),+) => {$(
        impl<'k> KeyArgument for $text<'k> {
            type Arg = &'k str;
        }

        impl<'k> From<&'k str> for $text<'k> {
            fn from(text: &'k str) -> Self {
                $text(text)
            }
        }

        impl<'k> From<$text<'k>> for &'k str {
            fn from(text: $text<'k>) -> Self {
                text.0
            }
        }
    )+};
}

texts!(Text, Rest);

const BOOL: u8 = b'b';
const MANY: u8 = b'm';
const NUMBER: u8 = b'n';
pub(super) const TEXT: u8 = b't';

/// A value ends by itself, so that none is a prefix of another: of numbers, truth values and `many` the first byte says
/// how long they are, and a NUL, which no metadata holds, ends a text.
impl Part<'_> for MetaValue {
    fn put(&self, key: &mut Vec<u8>) {
        match self {
            MetaValue::Bool(value) => key.extend_from_slice(&[BOOL, u8::from(*value)]),
            MetaValue::Number(bits) => {
                key.push(NUMBER);
                bits.put(key);
            }
            MetaValue::Text(text) => {
                debug_assert!(!text.contains(&0), "metadata holds no NUL");
                key.push(TEXT);
                key.extend_from_slice(text);
                key.push(0);
            }
            MetaValue::Many => key.push(MANY),
        }
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(left)? {
            BOOL => MetaValue::Bool(u8::take(left).filter(|value| *value <= 1)? == 1),
            NUMBER => MetaValue::Number(u64::take(left)?),
            TEXT => MetaValue::Text(until_nul(left)?.to_vec()),
            MANY => MetaValue::Many,
            _ => return None,
        })
    }
}
