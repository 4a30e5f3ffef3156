//! Where endpoints sit, and how they are fetched before they are needed.
//!
//! An endpoint is some twenty cache lines. Among thousands, those of the one whose packet arrives
//! have long been pushed out of the cache, and to wait for each in turn takes more time than all
//! that is done with them. What arrives next is known, though: it is the next in its pipe. Only
//! those lines are fetched that are needed: the fewer they are, the more of all endpoints' stay.

use std::mem::offset_of;
use std::slice;

use prefetch_index::prefetch_index;
use simnel_core::Time;
use simnel_tcp::Endpoint;

use super::Watch;
use crate::pool::NO_PIPE;

/// Bytes of a cache line.
const LINE: usize = 64;

/// What a socket keeps between segments. Begins a cache line, with `armed`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Seat {
    /// When the endpoint's event fires; `Time::MAX` if none is planned.
    pub armed: Time,
    /// The pipe to the bottleneck.
    pub to_bottleneck: u32,
    /// What the application wants to know.
    pub watch: Watch,
    /// None for datagrams, and while nobody uses the socket.
    pub endpoint: Option<Endpoint>,
}

impl Seat {
    /// Nobody sits here.
    pub const EMPTY: Seat =
        Seat { armed: Time::MAX, to_bottleneck: NO_PIPE, watch: Watch::Nothing, endpoint: None };

    /// Has the processor fetch what a segment with data meets, and does not wait.
    #[inline]
    pub fn prefetch_for_data(&self) {
        self.prefetch::<{ Endpoint::RECEIVING }>();
    }

    /// Has the processor fetch what an acknowledgement meets, and does not wait.
    #[inline]
    pub fn prefetch_for_ack(&self) {
        self.prefetch::<{ Endpoint::SENDING }>();
    }

    #[inline(always)]
    fn prefetch<const BYTES: usize>(&self) {
        let first = slice::from_ref(&self.armed.0);
        for line in 0..(offset_of!(Seat, endpoint) + BYTES).div_ceil(LINE) {
            prefetch_index(first, line * LINE / size_of::<u64>());
        }
    }
}
