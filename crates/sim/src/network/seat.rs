//! Where endpoints sit, and how they are fetched before they are needed.
//!
//! An endpoint is some twenty cache lines. Among thousands, those of the one whose packet arrives
//! have long been pushed out of the cache, and to wait for each in turn takes more time than all
//! that is done with them. What arrives next is known, though: it is the next in its pipe.

use std::slice;

use prefetch_index::prefetch_index;
use simnel_core::Time;
use simnel_tcp::Endpoint;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What a socket keeps between segments. Begins a cache line, with `armed`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Seat {
    /// When the endpoint's event fires; `Time::MAX` if none is planned.
    pub armed: Time,
    /// None for datagrams, and while nobody uses the socket.
    pub endpoint: Option<Endpoint>,
}

impl Seat {
    /// Nobody sits here.
    pub const EMPTY: Seat = Seat { armed: Time::MAX, endpoint: None };

    /// Has the processor fetch all of it, and does not wait.
    #[inline]
    pub fn prefetch(&self) {
        let first = slice::from_ref(&self.armed.0);
        for line in 0..size_of::<Seat>() / LINE {
            prefetch_index(first, line * LINE / size_of::<u64>());
        }
    }
}
