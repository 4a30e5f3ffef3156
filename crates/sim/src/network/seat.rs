//! Storage of endpoints, and how they are fetched before they are needed.
//!
//! A seat is seventeen cache lines. Among thousands, those of the endpoint whose packet arrives
//! have long been pushed out of the cache. To wait for each in turn takes more time than all that
//! is done with them. What arrives next is known, though: it is the next in its pipe. Only those
//! lines are fetched that are needed: the fewer they are, the more of all endpoints' stay.

use std::ops::Range;
use std::slice;

use prefetch_index::prefetch_index;
use simnel_core::Time;
use simnel_tcp::Endpoint;

use crate::pool::Tag;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines that a segment with data meets: of an endpoint, what receives comes first. Others cost
/// time and nothing else (`simnel bench sim --scale`).
const RECEIVING_LINES: usize = 8;
/// Lines that an acknowledgement meets.
const SENDING_LINES: usize = size_of::<Seat>() / LINE;
/// Lines of an acknowledgement that [`Seat::prefetch_first`] fetches; the others follow later.
const FIRST_LINES: usize = SENDING_LINES / 2;

/// State of a socket between segments. All but the endpoint is its first cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Seat {
    /// Common part of the socket's packets.
    pub tag: Tag,
    /// Time of the endpoint's planned event; `Time::MAX` if none is planned.
    pub armed: Time,
    /// Time at which the endpoint wants to be called, as it last said; `Time::MAX` if it does not.
    pub wanted: Time,
    /// None for datagrams, and while nobody uses the socket.
    pub endpoint: Option<Endpoint>,
}

impl Seat {
    /// Nobody sits here.
    pub const EMPTY: Seat =
        Seat { tag: Tag::NONE, armed: Time::MAX, wanted: Time::MAX, endpoint: None };

    /// Has the processor fetch what a segment with data, or an acknowledgement, meets, and does not
    /// wait.
    #[inline]
    pub fn prefetch(&self, has_data: bool) {
        if has_data {
            self.prefetch_lines(0..RECEIVING_LINES);
        } else {
            self.prefetch_lines(0..SENDING_LINES);
        }
    }

    /// The first part of what [`Seat::prefetch`] fetches.
    #[inline]
    pub fn prefetch_first(&self, has_data: bool) {
        self.prefetch_lines(0..if has_data { RECEIVING_LINES } else { FIRST_LINES });
    }

    /// The rest after [`Seat::prefetch_first`].
    #[inline]
    pub fn prefetch_rest(&self, has_data: bool) {
        if !has_data {
            self.prefetch_lines(FIRST_LINES..SENDING_LINES);
        }
    }

    /// The same for what the endpoint's event meets first: mostly, that the endpoint wants to be
    /// called later, and nothing else.
    #[inline]
    pub fn prefetch_times(&self) {
        self.prefetch_lines(0..1);
    }

    /// The same for what lies elsewhere. The endpoint must have come by now.
    #[inline]
    pub fn prefetch_records(&self, has_data: bool) {
        let Some(endpoint) = &self.endpoint else { return };
        if !has_data {
            let (records, sacked, resent) = endpoint.records();
            records.into_iter().for_each(fetch);
            sacked.map(fetch);
            resent.map(fetch);
            return;
        }
        // While all comes in order there is nothing to SACK.
        endpoint.held().map(fetch);
    }

    #[inline(always)]
    fn prefetch_lines(&self, lines: Range<usize>) {
        let first = slice::from_ref(&self.tag.hash);
        for line in lines {
            prefetch_index(first, line * LINE / size_of::<u64>());
        }
    }
}

/// Has the processor fetch the line in which `what` begins, and does not wait.
#[inline(always)]
fn fetch<T>(what: &T) {
    prefetch_index(slice::from_ref(what), 0);
}
