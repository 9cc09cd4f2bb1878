//! Access statistics: the fields of [`Access`] that differ from their defaults, which most do not.
//!
//! ```text
//! header 4 | fields (`fields.rs`) | crc 4
//! ```

use crate::error::Result;
use crate::model::Access;
use crate::record::fields::{put_access, take_access};
use crate::record::frame::{At, begin, no_flags, open, seal, tag};

/// Writes `access` into `out`, replacing what is there.
pub(crate) fn encode_access(access: &Access, key: &[u8], out: &mut Vec<u8>) {
    begin(tag::ACCESS, out);
    put_access(access, out);
    seal(0, key, out);
}

/// The statistics that [`encode_access`] wrote.
///
/// # Errors
/// `Corrupted` for other bytes, an instant outside the years 1 to 9999, a float that is not finite.
pub(crate) fn decode_access(at: At<'_>, bytes: &[u8]) -> Result<Access> {
    let (flags, fields) = open(tag::ACCESS, at, bytes)?;
    no_flags(at, flags)?;
    take_access(at, fields)
}
