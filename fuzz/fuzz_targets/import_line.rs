//! A line of an import: read or refused; what is exported of it is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oubliette::exchange::{ParsedLine, adapters, parse_line, write_memory};

fuzz_target!(|data: &[u8]| {
    for lenient in [false, true] {
        let Ok(ParsedLine::Memory(memory)) = parse_line(data, lenient) else { continue };
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        write_memory(&memory, true, &mut once);
        // A lenient reader takes what an exact one would refuse; what it has made of it both take.
        let Ok(ParsedLine::Memory(again)) = parse_line(&once, false) else { panic!("an export is refused") };
        write_memory(&again, true, &mut twice);
        assert_eq!(once, twice, "exporting again gives other bytes");
    }
    let _ = adapters::server_memory(data);
    let _ = adapters::mem0(data);
});
