//! Vitals: [`Vitals`] by hand, every field at a fixed place, for it is read by every filter and ranking.
//!
//! Little-endian. Instants are milliseconds since 1970 as i64, none is `i64::MIN`. Other absent values are zero
//! bytes and a missing bit of `STATUS`. A test compares this table with the code and with `docs/format.md`.
//!
//! | offset | width | field |
//! |--:|--:|---|
//! | 0 | 4 | HEADER |
//! | 4 | 1 | KIND |
//! | 5 | 1 | TIER |
//! | 6 | 1 | SIGNIFICANCE |
//! | 7 | 1 | STATUS |
//! | 8 | 4 | IMPORTANCE |
//! | 12 | 4 | CONFIDENCE |
//! | 16 | 4 | REINFORCEMENT_COUNT |
//! | 20 | 4 | CONTENT_BYTES |
//! | 24 | 8 | VERSION |
//! | 32 | 8 | RECORDED_AT |
//! | 40 | 8 | VALID_FROM |
//! | 48 | 8 | VALID_TO |
//! | 56 | 8 | VALID_TO_BEFORE |
//! | 64 | 8 | EXPIRES_AT |
//! | 72 | 8 | REMOVED_AT |
//! | 80 | 8 | SUPERSEDED_AT |
//! | 88 | 16 | SUPERSEDED_BY |
//! | 104 | 8 | CREATED_AT |
//! | 112 | 8 | UPDATED_AT |
//! | 120 | 8 | HAPPENED_AT |
//! | 128 | 8 | LAST_REINFORCED_AT |
//! | 136 | 4 | PARTITION |
//! | 140 | 2 | SPACE |
//! | 142 | 1 | SUPERSEDED_MODE |
//! | 143 | 1 | COUNTED |
//! | 144 | 4 | SLOT |
//! | 148 | 4 | NEXT_HOLDER |
//! | 152 | 4 | HOLDERS |
//! | 156 | 16 | FINGERPRINT |
//! | 172 | 12 | LIKENESS |
//! | 184 | 4 | CRC |
//!
//! Between likeness and CRC stand, each with a flag of its own: the number of a document (4 bytes, `HAS_DOC`), the instant
//! since which the begin of world time has been known (8 bytes, `BEGAN_LATER`), and an end that was announced with the instant
//! since which it was known (16 bytes, `WAS_ANNOUNCED`), the memory that has brought the row together with its superseder (16 bytes,
//! `BROUGHT`), and supersessions at instants ahead that were overtaken (33 or 49 bytes each, `OVERTAKEN`). The flag `CALLERS_END` says that
//! a caller set `EXPIRES_AT`, and `HAS_PAYLOAD` that the memory has a row in `payload`. Bits 8 to 11 of the flags count the
//! uses of the memory, as far as tables follow from them; `IS_PROMOTED` and `IS_CONSOLIDATED` say what became of it.

use crate::error::Result;
use crate::limits::{TIME_MAX_MS, TIME_MIN_MS, USES_MAX};
use crate::model::{
    Announced, Counted, ExpiresBy, Kind, MemoryId, Overtaken, Place, Significance, SupersedeMode,
    Supersession, Tier, Time, Times, Usage, Vitals,
};
use crate::record::frame::{At, CRC_BYTES, HEADER_BYTES, begin, open, seal, tag};

/// Width of the whole value.
pub(super) const VITALS_BYTES: usize = 188;
/// Flag of the header: the memory has a document in the full-text index.
const HAS_DOC: u16 = 1;
/// Flag of the header: a caller set the end of the memory's life.
const CALLERS_END: u16 = 2;
/// Flag of the header: the memory has a payload.
const HAS_PAYLOAD: u16 = 4;
/// Flag of the header: a supersession gave the memory the begin of its world time after it was stored.
const BEGAN_LATER: u16 = 8;
/// Place of the four bits of the header that count uses.
const USES_SHIFT: u32 = 8;
/// These bits.
const USES: u16 = (USES_MAX as u16) << USES_SHIFT;
/// Flag of the header: the memory was promoted.
const IS_PROMOTED: u16 = 1 << 12;
/// Flag of the header: a consolidation has looked at the memory.
const IS_CONSOLIDATED: u16 = 1 << 13;

/// Flag of the header: an end of world time was announced, and the present supersession has overtaken it.
const WAS_ANNOUNCED: u16 = 16;
/// Flag of the header: another memory has brought the row together with what takes its place.
const BROUGHT: u16 = 32;
/// Flag of the header: supersessions at instants ahead were overtaken.
const OVERTAKEN: u16 = 64;
/// All flags but the bits that count uses.
const ONE_BIT: u16 = HAS_DOC
    | CALLERS_END
    | HAS_PAYLOAD
    | BEGAN_LATER
    | WAS_ANNOUNCED
    | BROUGHT
    | OVERTAKEN
    | IS_PROMOTED
    | IS_CONSOLIDATED;

const _: () = assert!(USES & ONE_BIT == 0);

/// A field at a fixed place of the value.
#[derive(Clone, Copy)]
struct Spot<const WIDTH: usize>(usize);

impl<const WIDTH: usize> Spot<WIDTH> {
    /// The field's bytes. Every spot lies inside the value: [`LAYOUT`] is checked when this is compiled.
    #[inline(always)]
    fn get(self, bytes: &[u8; VITALS_BYTES]) -> [u8; WIDTH] {
        let field = bytes.get(self.0..self.0 + WIDTH).and_then(|field| field.try_into().ok());
        field.unwrap_or([0; WIDTH])
    }

    #[inline(always)]
    fn put(self, bytes: &mut [u8], value: [u8; WIDTH]) {
        if let Some(field) = bytes.get_mut(self.0..self.0 + WIDTH) {
            field.copy_from_slice(&value);
        }
    }
}

macro_rules! layout {
    ($($name:ident: $offset:literal, $width:literal;)+) => {
        $(const $name: Spot<$width> = Spot($offset);)+
        /// Offset, width and name of every field, in order.
        pub(super) const LAYOUT: &[(usize, usize, &str)] = &[
            (0, HEADER_BYTES, "HEADER"),
            $(($offset, $width, stringify!($name)),)+
            (VITALS_BYTES - CRC_BYTES, CRC_BYTES, "CRC"),
        ];
    };
}

layout! {
    KIND: 4, 1;
    TIER: 5, 1;
    SIGNIFICANCE: 6, 1;
    STATUS: 7, 1;
    IMPORTANCE: 8, 4;
    CONFIDENCE: 12, 4;
    REINFORCEMENT_COUNT: 16, 4;
    CONTENT_BYTES: 20, 4;
    VERSION: 24, 8;
    RECORDED_AT: 32, 8;
    VALID_FROM: 40, 8;
    VALID_TO: 48, 8;
    VALID_TO_BEFORE: 56, 8;
    EXPIRES_AT: 64, 8;
    REMOVED_AT: 72, 8;
    SUPERSEDED_AT: 80, 8;
    SUPERSEDED_BY: 88, 16;
    CREATED_AT: 104, 8;
    UPDATED_AT: 112, 8;
    HAPPENED_AT: 120, 8;
    LAST_REINFORCED_AT: 128, 8;
    PARTITION: 136, 4;
    SPACE: 140, 2;
    SUPERSEDED_MODE: 142, 1;
    COUNTED: 143, 1;
    SLOT: 144, 4;
    NEXT_HOLDER: 148, 4;
    HOLDERS: 152, 4;
    FINGERPRINT: 156, 16;
    LIKENESS: 172, 12;
}

/// Bits of `STATUS`.
mod status {
    pub(super) const PINNED: u8 = 1;
    pub(super) const ADMIN_LOCKED: u8 = 1 << 1;
    pub(super) const SYSTEM_LOCKED: u8 = 1 << 2;
    pub(super) const DELETES_SOURCE: u8 = 1 << 3;
    pub(super) const HAS_CONFIDENCE: u8 = 1 << 4;
    pub(super) const HAS_SLOT: u8 = 1 << 5;
    pub(super) const HAS_FINGERPRINT: u8 = 1 << 6;
    pub(super) const IS_SUPERSEDED: u8 = 1 << 7;
}

// The fields lie one behind the other and fill the value.
const _: () = {
    let mut rest = LAYOUT;
    let mut end = 0;
    while let [(offset, width, _), tail @ ..] = rest {
        assert!(*offset == end, "a hole or an overlap between two fields");
        end += *width;
        rest = tail;
    }
    assert!(end == VITALS_BYTES);
};

/// How no instant is written.
const NO_TIME: i64 = i64::MIN;

/// Writes `vitals` into `out`, replacing what is there.
pub(crate) fn encode_vitals(vitals: &Vitals, key: &[u8], out: &mut Vec<u8>) {
    begin(tag::VITALS, out);
    out.resize(VITALS_BYTES - CRC_BYTES, 0);
    KIND.put(out, [vitals.kind_code]);
    TIER.put(out, [vitals.tier.code()]);
    SIGNIFICANCE.put(out, [vitals.significance.code()]);
    STATUS.put(out, [status_of(vitals)]);
    IMPORTANCE.put(out, vitals.importance.to_le_bytes());
    CONFIDENCE.put(out, vitals.confidence.unwrap_or(0.0).to_le_bytes());
    REINFORCEMENT_COUNT.put(out, vitals.reinforcement_count.to_le_bytes());
    CONTENT_BYTES.put(out, vitals.content_bytes.to_le_bytes());
    VERSION.put(out, vitals.version.to_le_bytes());
    put_times(vitals, out);
    put_place(&vitals.place, out);
    let parts = put_parts(vitals, out);
    let end = u16::from(vitals.expires_by == ExpiresBy::Caller) * CALLERS_END;
    let payload = u16::from(vitals.place.payload) * HAS_PAYLOAD;
    seal(parts | end | payload | usage_bits(vitals.place.usage), key, out);
}

/// Writes what stands between the fixed fields and the checksum. Returns the flags that say so.
fn put_parts(vitals: &Vitals, out: &mut Vec<u8>) -> u16 {
    let (doc, began, announced) =
        (vitals.place.doc, vitals.times.valid_from_recorded_at, vitals.times.announced);
    out.extend(doc.into_iter().flat_map(u32::to_le_bytes));
    let announced_times = announced.map(|announced| [announced.end, announced.at]);
    let times = began.into_iter().chain(announced_times.into_iter().flatten());
    out.extend(times.flat_map(|at| at.as_millis().to_le_bytes()));
    let doc = u16::from(doc.is_some()) * HAS_DOC;
    let began = u16::from(began.is_some()) * BEGAN_LATER;
    let announced = u16::from(announced.is_some()) * WAS_ANNOUNCED;
    doc | began | announced | put_plan(vitals, out)
}

/// Writes what came of the supersessions at instants ahead.
fn put_plan(vitals: &Vitals, out: &mut Vec<u8>) -> u16 {
    let via = vitals.times.superseded.and_then(|superseded| superseded.via);
    out.extend(via.iter().flat_map(|via| via.as_bytes()));
    for Overtaken { by, end, at, via } in &vitals.overtaken {
        out.extend_from_slice(by.as_bytes());
        out.push(u8::from(via.is_some()));
        out.extend(via.iter().flat_map(|via| via.as_bytes()));
        out.extend([end, at].into_iter().flat_map(|at| at.as_millis().to_le_bytes()));
    }
    (u16::from(via.is_some()) * BROUGHT) | (u16::from(!vitals.overtaken.is_empty()) * OVERTAKEN)
}

fn usage_bits(usage: Usage) -> u16 {
    let uses = u16::from(usage.uses.min(USES_MAX)) << USES_SHIFT;
    let promoted = u16::from(usage.is_promoted) * IS_PROMOTED;
    uses | promoted | (u16::from(usage.is_consolidated) * IS_CONSOLIDATED)
}

fn usage_of(flags: u16) -> Usage {
    Usage {
        uses: ((flags & USES) >> USES_SHIFT) as u8,
        is_promoted: flags & IS_PROMOTED != 0,
        is_consolidated: flags & IS_CONSOLIDATED != 0,
    }
}

fn status_of(vitals: &Vitals) -> u8 {
    let bits = [
        (vitals.pinned, status::PINNED),
        (vitals.admin_locked, status::ADMIN_LOCKED),
        (vitals.system_locked, status::SYSTEM_LOCKED),
        (vitals.deletes_source, status::DELETES_SOURCE),
        (vitals.confidence.is_some(), status::HAS_CONFIDENCE),
        (vitals.place.slot.is_some(), status::HAS_SLOT),
        (vitals.place.fingerprint.is_some(), status::HAS_FINGERPRINT),
        (vitals.times.superseded.is_some(), status::IS_SUPERSEDED),
    ];
    bits.iter().map(|&(set, bit)| u8::from(set) * bit).sum()
}

fn put_times(vitals: &Vitals, out: &mut [u8]) {
    let times = &vitals.times;
    let instants = [
        (RECORDED_AT, Some(times.recorded_at)),
        (VALID_FROM, times.valid_from),
        (VALID_TO, times.valid_to),
        (VALID_TO_BEFORE, times.valid_to_before),
        (EXPIRES_AT, times.expires_at),
        (REMOVED_AT, times.removed_at),
        (SUPERSEDED_AT, times.superseded.map(|s| s.at)),
        (CREATED_AT, Some(vitals.created_at)),
        (UPDATED_AT, Some(vitals.updated_at)),
        (HAPPENED_AT, vitals.happened_at),
        (LAST_REINFORCED_AT, vitals.last_reinforced_at),
    ];
    for (spot, time) in instants {
        spot.put(out, time.map_or(NO_TIME, Time::as_millis).to_le_bytes());
    }
    if let Some(superseded) = times.superseded {
        SUPERSEDED_BY.put(out, *superseded.by.as_bytes());
        SUPERSEDED_MODE.put(out, [superseded.mode.code()]);
    }
}

fn put_place(place: &Place, out: &mut [u8]) {
    PARTITION.put(out, place.partition.to_le_bytes());
    SPACE.put(out, place.space.to_le_bytes());
    COUNTED.put(out, [place.counted.code()]);
    SLOT.put(out, place.slot.unwrap_or(0).to_le_bytes());
    NEXT_HOLDER.put(out, place.next_holder.to_le_bytes());
    HOLDERS.put(out, place.holders.to_le_bytes());
    FINGERPRINT.put(out, place.fingerprint.unwrap_or_default());
    LIKENESS.put(out, place.likeness);
}

/// The vitals that [`encode_vitals`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an unknown code, a float outside 0 to 1, an instant outside the years 1 to 9999.
pub(crate) fn decode_vitals(at: At<'_>, bytes: &[u8]) -> Result<Vitals> {
    let (flags, _) = open(tag::VITALS, at, bytes)?;
    let length = || at.corrupted(format!("{} bytes with flags {flags:#06x}", bytes.len()));
    let fixed = bytes.first_chunk::<VITALS_BYTES>().filter(|_| flags & !(ONE_BIT | USES) == 0);
    let fixed = fixed.ok_or_else(length)?;
    let bounds = |field: &str| at.corrupted(format!("{field} is out of its bounds"));
    let mut vitals = read_vitals(fixed).map_err(bounds)?;
    let mut parts = Parts(bytes.get(VITALS_BYTES - CRC_BYTES..bytes.len() - CRC_BYTES).unwrap_or_default());
    if flags & HAS_DOC != 0 {
        vitals.place.doc = Some(u32::from_le_bytes(parts.take().ok_or_else(length)?));
    }
    let mut time = |field| instant(field, parts.take().ok_or_else(length)?).map_err(bounds);
    if flags & BEGAN_LATER != 0 {
        vitals.times.valid_from_recorded_at = Some(time("valid_from_recorded_at")?);
    }
    if flags & WAS_ANNOUNCED != 0 {
        let (end, at) = (time("announced_valid_to")?, time("announced_at")?);
        vitals.times.announced = Some(Announced { end, at });
    }
    if flags & BROUGHT != 0 {
        let via = MemoryId::from_bytes(parts.take().ok_or_else(length)?);
        vitals.times.superseded.as_mut().ok_or_else(length)?.via = Some(via);
    }
    let is_overtaken = flags & OVERTAKEN != 0;
    while is_overtaken && !parts.0.is_empty() {
        let by = MemoryId::from_bytes(parts.take().ok_or_else(length)?);
        let via = match parts.take().ok_or_else(length)? {
            [0] => None,
            [1] => Some(MemoryId::from_bytes(parts.take().ok_or_else(length)?)),
            [_] => return Err(bounds("overtaken")),
        };
        let mut time = |field| instant(field, parts.take().ok_or_else(length)?).map_err(bounds);
        let (end, at) = (time("overtaken")?, time("overtaken")?);
        vitals.overtaken.push(Overtaken { by, end, at, via });
    }
    if !parts.0.is_empty() || (is_overtaken && vitals.overtaken.is_empty()) {
        return Err(length());
    }
    vitals.place.payload = flags & HAS_PAYLOAD != 0;
    vitals.place.usage = usage_of(flags);
    if flags & CALLERS_END != 0 {
        vitals.expires_by = ExpiresBy::Caller;
    }
    Ok(vitals)
}

/// What stands between the fixed fields and the checksum and is not read yet.
struct Parts<'b>(&'b [u8]);

impl Parts<'_> {
    /// The next bytes; none if there are not so many.
    fn take<const WIDTH: usize>(&mut self) -> Option<[u8; WIDTH]> {
        let (part, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*part)
    }
}

/// A field, or the name of the one that is out of its bounds: an [`Error`](crate::Error) is a hundred bytes, and
/// moving one past every field took longer than reading the fields.
type Read<T> = Result<T, &'static str>;

/// The fields of a value whose checksum has been compared.
fn read_vitals(bytes: &[u8; VITALS_BYTES]) -> Read<Vitals> {
    let [kind_code] = KIND.get(bytes);
    if kind_code != Kind::CUSTOM_CODE && Kind::from_code(kind_code, None).is_none() {
        return Err("kind");
    }
    let [tier] = TIER.get(bytes);
    let [significance] = SIGNIFICANCE.get(bytes);
    let [status] = STATUS.get(bytes);
    let confidence = unit("confidence", CONFIDENCE.get(bytes))?;
    Ok(Vitals {
        kind_code,
        tier: Tier::from_code(tier).ok_or("tier")?,
        significance: Significance::from_code(significance).ok_or("significance")?,
        importance: unit("importance", IMPORTANCE.get(bytes))?,
        confidence: (status & status::HAS_CONFIDENCE != 0).then_some(confidence),
        reinforcement_count: u32::from_le_bytes(REINFORCEMENT_COUNT.get(bytes)),
        pinned: status & status::PINNED != 0,
        admin_locked: status & status::ADMIN_LOCKED != 0,
        system_locked: status & status::SYSTEM_LOCKED != 0,
        deletes_source: status & status::DELETES_SOURCE != 0,
        times: read_times(bytes, status & status::IS_SUPERSEDED != 0)?,
        overtaken: Vec::new(),
        expires_by: ExpiresBy::Tier,
        created_at: instant("created_at", CREATED_AT.get(bytes))?,
        updated_at: instant("updated_at", UPDATED_AT.get(bytes))?,
        happened_at: instant_or_none("happened_at", HAPPENED_AT.get(bytes))?,
        last_reinforced_at: instant_or_none("last_reinforced_at", LAST_REINFORCED_AT.get(bytes))?,
        version: u64::from_le_bytes(VERSION.get(bytes)),
        content_bytes: u32::from_le_bytes(CONTENT_BYTES.get(bytes)),
        place: read_place(bytes, status)?,
    })
}

fn read_times(bytes: &[u8; VITALS_BYTES], is_superseded: bool) -> Read<Times> {
    let superseded_at = instant_or_none("superseded_at", SUPERSEDED_AT.get(bytes))?;
    let superseded = match (is_superseded, superseded_at) {
        (true, Some(at)) => {
            let [mode] = SUPERSEDED_MODE.get(bytes);
            let mode = SupersedeMode::from_code(mode).ok_or("superseded_mode")?;
            Some(Supersession { at, by: MemoryId::from_bytes(SUPERSEDED_BY.get(bytes)), mode, via: None })
        }
        (false, None) => None,
        _ => return Err("superseded_at"),
    };
    Ok(Times {
        recorded_at: instant("recorded_at", RECORDED_AT.get(bytes))?,
        valid_from: instant_or_none("valid_from", VALID_FROM.get(bytes))?,
        valid_from_recorded_at: None,
        valid_to: instant_or_none("valid_to", VALID_TO.get(bytes))?,
        valid_to_before: instant_or_none("valid_to_before", VALID_TO_BEFORE.get(bytes))?,
        announced: None,
        expires_at: instant_or_none("expires_at", EXPIRES_AT.get(bytes))?,
        superseded,
        removed_at: instant_or_none("removed_at", REMOVED_AT.get(bytes))?,
    })
}

fn read_place(bytes: &[u8; VITALS_BYTES], status: u8) -> Read<Place> {
    let [counted] = COUNTED.get(bytes);
    Ok(Place {
        partition: u32::from_le_bytes(PARTITION.get(bytes)),
        space: u16::from_le_bytes(SPACE.get(bytes)),
        slot: (status & status::HAS_SLOT != 0).then(|| u32::from_le_bytes(SLOT.get(bytes))),
        fingerprint: (status & status::HAS_FINGERPRINT != 0).then(|| FINGERPRINT.get(bytes)),
        likeness: LIKENESS.get(bytes),
        payload: false,
        counted: Counted::from_code(counted).ok_or("counted")?,
        doc: None,
        next_holder: u32::from_le_bytes(NEXT_HOLDER.get(bytes)),
        holders: u32::from_le_bytes(HOLDERS.get(bytes)),
        usage: Usage::default(),
    })
}

#[inline]
fn instant(field: &'static str, bytes: [u8; 8]) -> Read<Time> {
    let millis = i64::from_le_bytes(bytes);
    match (TIME_MIN_MS..=TIME_MAX_MS).contains(&millis) {
        true => Ok(Time::from_millis(millis)),
        false => Err(field),
    }
}

#[inline]
fn instant_or_none(field: &'static str, bytes: [u8; 8]) -> Read<Option<Time>> {
    match i64::from_le_bytes(bytes) {
        NO_TIME => Ok(None),
        _ => instant(field, bytes).map(Some),
    }
}

/// A float from 0 to 1.
#[inline]
fn unit(field: &'static str, bytes: [u8; 4]) -> Read<f32> {
    let value = f32::from_le_bytes(bytes);
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(field),
    }
}

const _: () = assert!(NO_TIME < TIME_MIN_MS && TIME_MIN_MS < TIME_MAX_MS);
