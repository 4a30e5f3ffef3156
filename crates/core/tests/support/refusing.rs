//! The system's allocator, which refuses as a test tells it: declared by a test of short memory, it
//! is that of its whole program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Size up to which a kernel waits for memory: such pieces are not refused, unless a test says so.
pub const SMALL: usize = 8 << 10;

thread_local! {
    /// Larger pieces that this thread may still have; all others are refused.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    /// Pieces up to this size are not refused.
    pub static GRANTED: Cell<usize> = const { Cell::new(SMALL) };
    /// Pieces of any size that this thread asked for.
    pub static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// The allocator.
struct Refusing;

impl Refusing {
    fn grants(size: usize) -> bool {
        ASKED.set(ASKED.get().wrapping_add(1));
        let left = LEFT.get();
        if size <= GRANTED.get() || left == u32::MAX {
            return true;
        }
        LEFT.set(left.saturating_sub(1));
        left > 0
    }
}

// SAFETY: what is granted is the system allocator's own answer; a null pointer refuses.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Refusing::grants(layout.size()) {
            // SAFETY: passed on as it came.
            true => unsafe { System.alloc(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on as it came; `pointer` is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Result of `work` with an allocator that gives `large` large pieces.
pub fn with_memory<T>(large: u32, work: impl FnOnce() -> T) -> T {
    LEFT.set(large);
    let result = work();
    LEFT.set(u32::MAX);
    result
}
