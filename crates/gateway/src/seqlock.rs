//! A value that one thread writes without waiting and others read whole.
//!
//! The sequence number is odd while the writer is at work; a reader that saw an odd number, or
//! another number after than before, reads again (Lameter 2005). The writer never waits, which is
//! what the data path needs: a reader can at most be told to try again.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{fence, AtomicU64, Ordering};

/// The shared place.
pub(crate) struct SeqLock<T> {
    sequence: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: `read` hands out only copies that no write touched, as the sequence number proves;
// `write` is exclusive by its contract.
unsafe impl<T: Copy + Send> Sync for SeqLock<T> {}

impl<T: Copy> SeqLock<T> {
    pub(crate) fn new(value: T) -> SeqLock<T> {
        SeqLock { sequence: AtomicU64::new(0), value: UnsafeCell::new(value) }
    }

    /// Replaces the value.
    ///
    /// # Safety
    /// At most one thread may ever write.
    pub(crate) unsafe fn write(&self, value: T) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        // SAFETY: only this thread writes; readers discard what they copy meanwhile.
        unsafe { ptr::write_volatile(self.value.get(), value) };
        self.sequence.store(sequence + 2, Ordering::Release);
    }

    /// A whole copy of the value.
    pub(crate) fn read(&self) -> T {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before % 2 == 0 {
                // SAFETY: valid for reads always; a copy torn by the writer stays in MaybeUninit
                // and is given up below.
                let copy = unsafe { ptr::read_volatile(self.value.get().cast::<MaybeUninit<T>>()) };
                fence(Ordering::Acquire);
                if self.sequence.load(Ordering::Relaxed) == before {
                    // SAFETY: no write happened while it was copied.
                    return unsafe { copy.assume_init() };
                }
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn readers_never_see_half_a_value() {
        let shared = Arc::new(SeqLock::new([0u64; 64]));
        let writer = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for n in 1..=20_000 {
                    // SAFETY: this is the only writer.
                    unsafe { shared.write([n; 64]) };
                }
            })
        };
        let mut last = 0;
        while last < 20_000 {
            let value = shared.read();
            assert!(value.iter().all(|&v| v == value[0]));
            last = value[0];
        }
        writer.join().unwrap();
    }
}
