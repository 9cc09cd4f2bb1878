//! Keys by their bytes: which is the longest key at the beginning of a text?
//!
//! One table with open addressing has the keys by a hash that a byte at a time goes into. One pass over the beginning of a text
//! gives the hash of the longest prefix that can be a key; each step back takes one byte out again. So all prefixes are looked
//! up from the longest down, and most words are keys as a whole. The table is made in a fraction of the time that a trie takes,
//! and a process that embeds one text waits for it.

/// Where a hash begins.
const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

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
    /// The bytes of all keys, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The high half of the hash of a key, and below it the number of its entry, from 1; 0 for a free place. The length is a
    /// power of two, and at least half is free.
    places: Vec<u64>,
    /// The bytes of the longest key.
    longest: usize,
}

#[derive(Debug)]
struct Entry {
    /// Where its bytes begin, and where they end.
    span: (u32, u32),
    id: u32,
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
        Keys { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(keys), places, longest: 0 }
    }

    /// Gives `key` an id. All keys together have fewer than 2^32 bytes.
    pub(super) fn insert(&mut self, key: &[u8], id: u32) -> Inserted {
        let hash = hash_of(key.iter().copied());
        if self.find(hash, |known| known == key).is_some() {
            return Inserted::Twice;
        }
        let start = self.bytes.len();
        #[expect(clippy::cast_possible_truncation, reason = "the keys have fewer than 2^32 bytes")]
        let (span, number) = ((start as u32, (start + key.len()) as u32), self.entries.len() as u32 + 1);
        let has_room = (self.entries.len() + 1) * 2 <= self.places.len() || self.grow();
        if !has_room || !place(&mut self.places, (hash & HIGH) | u64::from(number)) {
            return Inserted::Crowded;
        }
        self.bytes.extend_from_slice(key);
        self.entries.push(Entry { span, id });
        self.longest = self.longest.max(key.len());
        Inserted::Done
    }

    /// The id of `key`. Here ASCII capitals and small letters differ.
    pub(super) fn get(&self, key: &[u8]) -> Option<u32> {
        self.find(hash_of(key.iter().copied()), |known| known == key)
    }

    /// The id of the longest key at the beginning of `text`, looked up in small letters, and the text behind it. The
    /// empty key does not count.
    pub(super) fn longest<'a>(&self, text: &'a [u8]) -> Option<(u32, &'a [u8])> {
        let (mut prefix, _) = text.split_at_checked(self.longest).unwrap_or((text, &[]));
        let mut hash = hash_of(prefix.iter().map(u8::to_ascii_lowercase));
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
        for at in way(&self.places, hash) {
            let place = self.places.get(at).copied().filter(|place| *place != 0)?;
            if place & HIGH == hash & HIGH
                && let Some(Entry { span: (start, end), id }) = self.entries.get((place & !HIGH) as usize - 1)
                && self.bytes.get(*start as usize..*end as usize).is_some_and(&is_meant)
            {
                return Some(*id);
            }
        }
        None
    }

    /// Twice the places. Says whether all keys have found theirs.
    fn grow(&mut self) -> bool {
        let mut wider = vec![0; self.places.len() * 2];
        let all = self.places.iter().filter(|key| **key != 0).all(|key| place(&mut wider, *key));
        self.places = wider;
        all
    }
}

/// The half of a hash that stands in a place.
const HIGH: u64 = !0 << 32;

fn hash_of(key: impl Iterator<Item = u8>) -> u64 {
    key.fold(EMPTY, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FACTOR))
}

/// The places where a key with this hash may be, the nearest first.
fn way(places: &[u64], hash: u64) -> impl Iterator<Item = usize> + use<> {
    let (home, mask) = ((hash >> 32) as usize, places.len() - 1);
    (0..MET_MAX).map(move |step| home.wrapping_add(step) & mask)
}

/// Puts a key into the first free place on its way, if there is one.
fn place(places: &mut [u64], key: u64) -> bool {
    let free = way(places, key).find(|at| places.get(*at) == Some(&0));
    free.and_then(|at| places.get_mut(at)).map(|place| *place = key).is_some()
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
