//! How many bytes has the code between two points allocated and not given back?
//!
//! Only what goes through Rust's allocator is seen, so nothing of a C or C++ library.

#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// The system's allocator, which counts while it is asked to.
pub struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

static ON: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    // A load of a flag that rarely changes costs the timed code next to nothing; the sum would.
    if ON.load(Relaxed) {
        BYTES.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// What `run` gives, and the bytes that it left allocated, less those that it freed; of all threads.
pub fn kept<R>(run: impl FnOnce() -> R) -> (R, isize) {
    let before = BYTES.load(Relaxed);
    ON.store(true, Relaxed);
    let value = run();
    ON.store(false, Relaxed);
    (value, BYTES.load(Relaxed) - before)
}
