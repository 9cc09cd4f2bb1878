//! A NumPy file: its rows, or a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oubliette::exchange::NpyReader;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = NpyReader::from_reader(data, "input.npy") else { return };
    let mut row = Vec::new();
    while let Ok(true) = reader.next_row(&mut row) {
        assert_eq!(row.len(), reader.dim());
        assert!(reader.position() <= reader.rows());
    }
});
