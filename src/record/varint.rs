//! Numbers of a byte for each seven bits, the lowest first: the top bit says that another byte follows.

/// Bytes of the longest.
const VARINT_BYTES_MAX: usize = 5;

/// Appends a number.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; none where there is none, or one with more bits than fit or with needless bytes.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u32::from(first));
    }
    take_long(bytes)
}

fn take_long(bytes: &mut &[u8]) -> Option<u32> {
    // Five bytes hold 35 bits, so the value is gathered in 64 bits and bounded at the end.
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = bytes.get(at + 1..)?;
            return u32::try_from(value).ok().filter(|_| byte != 0 || at == 0);
        }
    }
    None
}
