//! A line of an import: read or refused; what is exported of it is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oubliette::NamespaceName;
use oubliette::exchange::Kept;
use oubliette::exchange::{
    KeptLine, ParsedLine, adapters, parse_line, write_aggregate, write_context, write_event, write_goal, write_memory,
    write_run, write_step, write_tombstone,
};

fuzz_target!(|data: &[u8]| {
    for lenient in [false, true] {
        let memory = match parse_line(data, lenient) {
            Ok(ParsedLine::Memory(memory)) => memory,
            Ok(ParsedLine::Kept(line)) => {
                again(&line);
                continue;
            }
            Ok(ParsedLine::Draft(_)) | Err(_) => continue,
        };
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

/// A line that is no memory is written and read as the same.
fn again(line: &KeptLine) {
    let (ns, mut out) = (line.namespace.clone().unwrap_or_else(NamespaceName::default), Vec::new());
    match &line.row {
        Kept::Tombstone(tombstone) => write_tombstone(&ns, tombstone, &mut out),
        Kept::Run(run) => write_run(&ns, run, &mut out),
        Kept::Step(step) => write_step(&ns, step, &mut out),
        Kept::Aggregate(aggregate) => write_aggregate(&ns, aggregate, &mut out),
        Kept::Event(event, family) => write_event(&ns, event, family.as_deref(), &mut out),
        Kept::Context(context) => write_context(&ns, context, &mut out),
        Kept::Goal(goal) => write_goal(&ns, goal, &mut out),
        Kept::Memory(_) | Kept::Joint(_) => panic!("no line of its own"),
    }
    match parse_line(&out, false) {
        Ok(ParsedLine::Kept(read)) => assert_eq!(read.row, line.row),
        other => panic!("{other:?}"),
    }
}
