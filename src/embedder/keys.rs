//! Keys by their bytes: which is the longest key at the beginning of a text?
//!
//! One table with open addressing has the keys by a hash that a byte at a time goes into. One pass over the beginning of a text
//! gives the hash of the longest prefix that can be a key; each step back takes one byte out again. So all prefixes are looked
//! up from the longest down, and most words are keys as a whole. The table is made in a fraction of the time that a trie takes.
//! The compiler can make it as well, so that a process that embeds one text does not wait for it.

use std::borrow::Cow;

/// Where a hash begins.
pub(super) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// What a hash is multiplied by for each byte: odd, so that a step can be taken back. The multiplier of Fibonacci hashing
/// (Knuth, TAOCP 3, 6.4).
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// What takes the multiplication back: `FACTOR · BACK = 1` modulo 2^64.
const BACK: u64 = inverse(FACTOR);

/// Places that are met on the way to a key, at most. By chance there are a dozen; keys that were chosen to share their hashes
/// would make the table take time that grows with their square.
const MET_MAX: usize = 1_024;

/// A map from keys to ids.
#[derive(Debug)]
pub(super) struct Keys {
    /// The bytes in which the keys lie.
    bytes: Cow<'static, [u8]>,
    entries: Cow<'static, [Entry]>,
    /// Eight bits of the hash of a key, and below them the number of its entry, from 1; 0 for a free place. The length is a power
    /// of two, and at least half is free.
    places: Cow<'static, [u32]>,
    /// The bytes of the longest key.
    longest: usize,
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its bytes begin, and where they end.
    pub(super) span: (u32, u32),
    /// Its id.
    pub(super) id: u32,
}

/// What became of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It has the id.
    Done,
    /// It had an id before, and keeps it.
    Twice,
    /// Too many keys before it have its hash.
    Crowded,
}

impl Keys {
    /// No keys, but room for so many, with so many bytes. The table grows past them.
    pub(super) fn with_room(keys: usize, bytes: usize) -> Self {
        let places = vec![0; (keys * 2).next_power_of_two().max(1_024)];
        Keys {
            bytes: Vec::with_capacity(bytes).into(),
            entries: Vec::with_capacity(keys).into(),
            places: places.into(),
            longest: 0,
        }
    }

    /// The keys that the compiler has put into their places with [`put`].
    pub(super) fn laid(
        bytes: &'static [u8],
        entries: &'static [Entry],
        (places, longest): (&'static [u32], usize),
    ) -> Self {
        Keys { bytes: bytes.into(), entries: entries.into(), places: places.into(), longest }
    }

    /// Gives `key` an id. All keys together have at most 2^24 bytes.
    pub(super) fn insert(&mut self, key: &[u8], id: u32) -> Inserted {
        let hash = hash_of(key);
        if self.find(hash, |known| known == key).is_some() {
            return Inserted::Twice;
        }
        let start = self.bytes.len();
        #[expect(clippy::cast_possible_truncation, reason = "the keys have at most 2^24 bytes")]
        let (span, number) = ((start as u32, (start + key.len()) as u32), self.entries.len() as u32 + 1);
        let has_room = (self.entries.len() + 1) * 2 <= self.places.len() || self.grow();
        if !has_room || !put(self.places.to_mut(), hash, number) {
            return Inserted::Crowded;
        }
        self.bytes.to_mut().extend_from_slice(key);
        self.entries.to_mut().push(Entry { span, id });
        self.longest = self.longest.max(key.len());
        Inserted::Done
    }

    /// The id of `key`. Here ASCII capitals and small letters differ.
    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        self.find(hash_of(key), |known| known == key)
    }

    /// The id of the longest key at the beginning of `text`, looked up in small letters, and the text behind it. The
    /// empty key does not count.
    pub(super) fn longest<'a>(&self, text: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (mut prefix, _) = text.split_at_checked(self.longest).unwrap_or((text, &[]));
        let mut hash = prefix.iter().fold(EMPTY, |hash, byte| with(hash, byte.to_ascii_lowercase()));
        while let Some((last, shorter)) = prefix.split_last() {
            let is_known = |known: &[u8]| {
                known.len() == prefix.len()
                    && known.iter().zip(prefix).all(|(known, byte)| *known == byte.to_ascii_lowercase())
            };
            if let Some(id) = self.find(hash, is_known) {
                return Some((id, text.get(prefix.len()..).unwrap_or_default()));
            }
            hash = hash.wrapping_mul(BACK) ^ u64::from(last.to_ascii_lowercase());
            prefix = shorter;
        }
        None
    }

    /// The id of the key that has this hash and that `is_meant` takes.
    fn find(&self, hash: u64, is_meant: impl Fn(&[u8]) -> bool) -> Option<u32> {
        let places: &[u32] = &self.places;
        for step in 0..MET_MAX {
            let place = places.get(way(hash, step, places.len())).copied().filter(|place| *place != 0)?;
            if place & !NUMBER == tag(hash)
                && let Some(Entry { span, id }) = self.entries.get((place & NUMBER) as usize - 1)
                && self.key(*span).is_some_and(&is_meant)
            {
                return Some(*id);
            }
        }
        None
    }

    fn key(&self, (start, end): (u32, u32)) -> Option<&[u8]> {
        self.bytes.get(start as usize..end as usize)
    }

    /// Twice the places. Says whether all keys have found theirs.
    fn grow(&mut self) -> bool {
        let mut wider = vec![0; self.places.len() * 2];
        let all = self.entries.iter().zip(1..).all(|(entry, number)| {
            self.key(entry.span).is_some_and(|key| put(&mut wider, hash_of(key), number))
        });
        self.places = wider.into();
        all
    }
}

/// The bits of a place that number its entry.
const NUMBER: u32 = (1 << 24) - 1;

/// The bits of a hash that stand in a place.
const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 & !NUMBER
}

/// A hash that one more byte goes into.
pub(super) const fn with(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(FACTOR)
}

fn hash_of(key: &[u8]) -> u64 {
    key.iter().fold(EMPTY, |hash, byte| with(hash, *byte))
}

/// The place where a key with this hash may be after so many steps, among so many.
const fn way(hash: u64, step: usize, places: usize) -> usize {
    ((hash >> 24) as usize).wrapping_add(step) & (places - 1)
}

/// Puts the key with this hash and number into the first free place on its way, if there is one.
#[expect(clippy::indexing_slicing, reason = "the compiler runs it too; a way leads through the places")]
pub(super) const fn put(places: &mut [u32], hash: u64, number: u32) -> bool {
    let mut step = 0;
    while step < MET_MAX {
        let at = way(hash, step, places.len());
        if places[at] == 0 {
            places[at] = tag(hash) | number;
            return true;
        }
        step += 1;
    }
    false
}

/// What an odd factor is taken back with, modulo 2^64: each step of Newton's method makes twice as many bits right, and a factor
/// is its own inverse in three.
const fn inverse(factor: u64) -> u64 {
    let (mut back, mut step) = (factor, 0);
    while step < 5 {
        back = back.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(back)));
        step += 1;
    }
    back
}

const _: () = assert!(FACTOR.wrapping_mul(BACK) == 1);

#[cfg(test)]
mod tests;
