//! What is allocated, and what the system says of the process.

use std::sync::atomic::Ordering;

use crate::counting::ALLOCATED;

/// Bytes that are allocated now.
pub fn allocated() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Bytes of the resident set; 0 where the system does not say.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}
