//! The heap that a thread holds: an allocator that counts what each thread takes and gives back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that the calling thread has taken, less those that it has given back.
pub(super) fn held() -> i64 {
    HELD.get()
}

/// The system's allocator with a count.
struct Counting;

// SAFETY: each answer is the system allocator's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as i64);
        // SAFETY: passed on as it came.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as i64);
        // SAFETY: passed on as it came.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.set(HELD.get() + size as i64 - layout.size() as i64);
        // SAFETY: passed on as it came; `pointer` is the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: passed on as it came; `pointer` is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn what_is_held_is_counted() {
    let before = held();
    let mut some: Vec<u8> = Vec::with_capacity(1_000);
    assert_eq!(held(), before + 1_000);
    some.reserve_exact(5_000);
    assert_eq!(held(), before + 5_000);
    drop(some);
    assert_eq!(held(), before);
}
