//! An allocator that counts.

#![allow(unsafe_code, reason = "an allocator is unsafe by trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are allocated now.
pub static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
/// The most that were, since somebody set it.
pub static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, counted.
pub struct Counting;

// SAFETY: every call goes to the allocator of the system as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        PEAK.fetch_max(before + layout.size(), Ordering::Relaxed);
        // SAFETY: the layout is the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: place and layout are the caller's.
        unsafe { System.dealloc(place, layout) }
    }
}
