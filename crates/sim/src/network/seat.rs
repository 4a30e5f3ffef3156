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

    /// Has the processor fetch what a segment with data, or an acknowledgement, meets, and does not
    /// wait.
    #[inline]
    pub fn prefetch(&self, has_data: bool) {
        if has_data {
            self.prefetch_lines::<{ Endpoint::RECEIVING }>();
        } else {
            self.prefetch_lines::<{ Endpoint::SENDING }>();
        }
    }

    /// The same for what lies elsewhere. The endpoint must have come by now.
    #[inline]
    pub fn prefetch_records(&self, has_data: bool) {
        let Some(endpoint) = &self.endpoint else { return };
        if !has_data {
            for record in endpoint.records() {
                prefetch_index(slice::from_ref(record), 0);
            }
        } else if let Some(range) = endpoint.held() {
            prefetch_index(slice::from_ref(range), 0);
        }
    }

    #[inline(always)]
    fn prefetch_lines<const BYTES: usize>(&self) {
        let first = slice::from_ref(&self.armed.0);
        for line in 0..(offset_of!(Seat, endpoint) + BYTES).div_ceil(LINE) {
            prefetch_index(first, line * LINE / size_of::<u64>());
        }
    }
}
