//! Ids: UUIDv7 for memories and runs, and the source that makes them.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::model::time::Time;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The id with these 16 bytes.
            ///
            /// ```
            /// # use oubliette::{MemoryId, maintain::*, memory::*};
            #[doc = concat!("let id: ", stringify!($name), " = \"01890a5d-ac96-774b-bcce-b302099a8057\".parse()?;")]
            #[doc = concat!("assert_eq!(", stringify!($name), "::from_bytes(*id.as_bytes()), id);")]
            /// # Ok::<(), oubliette::Error>(())
            /// ```
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The 16 bytes. Their byte order is the order of the type.
            ///
            /// ```
            /// # use oubliette::{MemoryId, maintain::*, memory::*};
            #[doc = concat!("assert_eq!(", stringify!($name), "::from_bytes([7; 16]).as_bytes(), &[7; 16]);")]
            /// ```
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&uuid::Uuid::from_bytes(self.0).as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// Reads the hyphenated form only, so that a caller's key is never mistaken for an id.
            fn from_str(text: &str) -> Result<Self> {
                let hyphenated = text.len() == 36 && text.as_bytes().get(8) == Some(&b'-');
                match uuid::Uuid::try_parse(text) {
                    Ok(id) if hyphenated => Ok(Self(id.into_bytes())),
                    _ => Err(Error::invalid($what, "must be a UUID in its hyphenated form", text)),
                }
            }
        }

        impl Serialize for $name {
            /// The hyphenated form in text, the 16 bytes on disk.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match serializer.is_human_readable() {
                    true => serializer.collect_str(self),
                    false => self.0.serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match deserializer.is_human_readable() {
                    true => String::deserialize(deserializer)?.parse().map_err(D::Error::custom),
                    false => <[u8; 16]>::deserialize(deserializer).map(Self),
                }
            }
        }
    };
}

uuid_id!(
    /// The name of one memory for ever: a UUIDv7 that is never used again.
    ///
    /// ```
    /// use oubliette::MemoryId;
    /// let id: MemoryId = "0198c0de-0000-7000-8000-000000000001".parse()?;
    /// assert_eq!(id.to_string(), "0198c0de-0000-7000-8000-000000000001");
    /// assert!("not-an-id".parse::<MemoryId>().is_err());
    /// # Ok::<(), oubliette::Error>(())
    /// ```
    MemoryId,
    "id"
);

impl MemoryId {
    /// When the id was made: it begins with the milliseconds of that instant.
    pub(crate) fn made_at(&self) -> Time {
        Time::from_millis(self.0[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte)))
    }

    /// An id of the instant of both, and above both by a step that the other one tells, which is random. At the end of the range there is
    /// none, and the other one stands.
    pub(crate) fn above(self, other: MemoryId) -> Self {
        let bits = |id: MemoryId| {
            let all = u128::from_be_bytes(id.0);
            (all >> 64 & 0xfff) << LOW_BITS | all & ((1 << LOW_BITS) - 1)
        };
        let millis = u64::try_from(self.made_at().as_millis()).unwrap_or(0);
        let next = bits(self.max(other)) + 1 + bits(other) % (1 << 32);
        if next < 1 << RANDOM_BITS { Self(of_bits(millis, next)) } else { other }
    }

    /// An id above all that were made by `at`, and above none that was made later.
    pub(crate) fn first_after(at: Time) -> Self {
        let millis = at.as_millis().saturating_add(1).clamp(0, (1 << 48) - 1).to_be_bytes();
        let mut id = [0; 16];
        id[..6].copy_from_slice(&millis[2..]);
        Self(id)
    }
}

uuid_id!(
    /// The name of one run: an import, a maintenance pass, a namespace drop. `undo` takes such a name.
    RunId,
    "run"
);

uuid_id!(
    /// The name of one message as it came.
    EventId,
    "event"
);
uuid_id!(
    /// The name of an aggregate: a family of messages in one slice of time, in numbers.
    AggregateId,
    "aggregate"
);
uuid_id!(
    /// The name of one goal.
    GoalId,
    "goal"
);

/// A source of ids. A test injects its own source to make a run repeatable.
///
/// Sources that write to the same file must never return an id twice. The engine treats a repeated id as a
/// bug of the source and refuses the write.
pub trait IdSource: Send + Sync {
    /// The next id. `now` is the transaction time, for the time part of a UUIDv7.
    ///
    /// # Errors
    /// `Unavailable` if there is none to be had: then nothing is written.
    fn next(&self, now: Time) -> Result<[u8; 16]>;
}

/// UUIDv7 with 74 bits from the operating system's generator. All ids of one transaction are made at one instant. The
/// ids that one source makes at one instant ascend: each is a random step above the one before ([RFC 9562], 6.2,
/// method 2). So rows lie in the file in the order in which they were written.
///
/// ```
/// use oubliette::Time;
/// use oubliette::clock::{IdSource, RandomIds};
///
/// let ids = RandomIds::default();
/// let now: Time = "2026-01-02T03:04:05Z".parse()?;
/// assert!(ids.next(now)? < ids.next(now)?);
/// # Ok::<(), oubliette::Error>(())
/// ```
///
/// [RFC 9562]: https://www.rfc-editor.org/rfc/rfc9562#section-6.2
#[derive(Debug, Default)]
pub struct RandomIds {
    /// The instant of the last id, in milliseconds, and its random bits.
    last: Mutex<(u64, u128)>,
}

/// The number of random bits of an id.
const RANDOM_BITS: u32 = 74;
/// The number of random bits behind those that stand with the version.
const LOW_BITS: u32 = 62;

impl IdSource for RandomIds {
    fn next(&self, now: Time) -> Result<[u8; 16]> {
        // If the operating system's generator fails, no id can be trusted at all.
        let random = u128::from_le_bytes(random()?);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let mut last = self.last.lock();
        let bits = match *last {
            // Half of the range is left for steps: room for 2 to the 41st of the largest.
            (before, bits) if before == millis && bits > 0 => bits + 1 + random % (1 << 32),
            _ => random % (1 << (RANDOM_BITS - 1)),
        };
        *last = (millis, bits);
        Ok(of_bits(millis, bits))
    }
}

/// The id of an instant with these random bits.
fn of_bits(millis: u64, bits: u128) -> [u8; 16] {
    let with_version = ((bits >> LOW_BITS) as u16).to_be_bytes();
    let with_variant = (bits as u64).to_be_bytes();
    let mut counter = [0; 10];
    counter[..2].copy_from_slice(&with_version);
    counter[2..].copy_from_slice(&with_variant);
    uuid::Builder::from_unix_timestamp_millis(millis, &counter).into_uuid().into_bytes()
}

/// Random bytes: an id, a secret, a name that no other process chooses, or a mark that no other handle has.
///
/// # Errors
/// `Unavailable` if the operating system gives none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|why| Error::Unavailable {
        why: format!("the operating system gives no random bytes: {why}"),
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a key are in the order of their ids: an id is above both as long as the range of its instant has room.
    #[test]
    fn an_id_is_above_both_to_the_end_of_the_range_of_its_instant() {
        let id = |millis, bits| MemoryId(of_bits(millis, bits));
        let largest = (1_u128 << RANDOM_BITS) - 1;
        for (last, next) in [(7, 3), (3, 7), (7, 7), ((1 << LOW_BITS) - 1, 0), (largest - 1, 0)] {
            let (last, next) = (id(1_000, last), id(1_000, next));
            let above = last.above(next);
            assert!(above > last && above > next, "{last} {next} {above}");
            assert_eq!(above.made_at(), Time::from_millis(1_000));
        }
        // Where there is no room left, the id stays one of its instant and is none that was there.
        for next in [0, 5, 1 << 40] {
            let (last, next) = (id(1_000, largest), id(1_000, next));
            assert_eq!(last.above(next), next);
        }
        assert!(id(1_000, largest) < MemoryId::first_after(Time::from_millis(1_000)));
        assert!(MemoryId::first_after(Time::from_millis(1_000)) <= id(1_001, 0));
    }
}
