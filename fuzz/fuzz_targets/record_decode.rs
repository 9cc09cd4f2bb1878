//! A tag, a key and a value from a hostile disk: the decoder answers, and never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&[tag, key_bytes], rest)) = data.split_first_chunk::<2>() else { return };
    let (key, value) = rest.split_at(rest.len().min(usize::from(key_bytes % 64)));
    let _ = oubliette::faults::decode_any(tag, key, value);
    // The same with the checksum set right, or no input would come past it.
    let Some((body, _)) = value.split_last_chunk::<4>() else { return };
    let mut crc = crc32fast::Hasher::new();
    crc.update(body);
    crc.update(key);
    let sealed = [body, &crc.finalize().to_le_bytes()].concat();
    let _ = oubliette::faults::decode_any(tag, key, &sealed);
});
