//! RTTs of passing TCP, from its own timestamps (RFC 7323, section 3); or, of connections without
//! them, from sequence numbers.
//!
//! ```text
//! sent(connection, stamp, now)      a segment leaves for the line, with this TSval
//! echoed(connection, value, now)    a segment came from the line, with this TSecr
//! came(connection, value, now)      a segment came from the line, with this TSval
//! take(each)                        the lowest RTT of each connection since the last call
//! take_comings(each)                its lowest coming, likewise
//! forget()                          segments were missed: what is under way tells nothing
//!
//! asked(connection, ack, now)       a segment without timestamp leaves, and `ack` acknowledges it
//! acknowledged(connection, ack, now)   a segment without timestamp came from the line
//! ```
//!
//! A *coming* is the time from a far end's sending to the arrival here, but for a constant: the
//! difference of two clocks. That clock counts milliseconds with nearly everybody; whose does not
//! shows a coming that runs away (`paths.rs`).
//!
//! From a TSval's first leaving to the first arrival of its echo is a round trip between gateway
//! and far end and back. (Strowes, "Passively measuring TCP round-trip times", ACM Queue 11(8),
//! 2013.) Downloads show it as uploads do: acknowledgements bear timestamps as well.
//!
//! An echo may be late because the far end had nothing to send. If the segment bore data the far
//! end acknowledges it by itself; else the connection must have been heard of shortly before. An
//! application's pause is no round trip.
//!
//! Without timestamps an RTT is from a segment to the very acknowledgement of it. Of one that was
//! sent twice there is none (Karn and Partridge, SIGCOMM 1987). After a loss an acknowledgement
//! covers what came long before; such RTTs are for people to look at, and `take` has none of them.
//!
//! Upload and download may be two threads, and whoever takes a third: all is atomic, and nobody
//! waits. Memory is bounded: a timestamp lies in the place that its hash picks, and a newer one
//! takes it. What is lost so is one measurement of many.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use simnel_core::{Span, Time};

/// Places for timestamps under way: 100 ms of 40 connections with a new one each millisecond.
const PLACES: usize = 4096;
/// Places for when connections were last heard of.
const CONNECTIONS: usize = 1024;
/// Connections whose RTTs wait to be taken.
const RESULTS: usize = 32;
/// Longest round-trip time: an echo that comes later answers something else.
const LONGEST: Span = Span::from_secs(10);
/// A pause of the far end that changes no RTT for us; or a quarter of that RTT.
const PAUSE: Span = Span::from_millis(5);
/// Times and RTTs are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;
/// The unit of comings.
pub(crate) const COMING_UNIT: Span = Span(1 << UNIT_BITS);
/// Of a place: the far end answers by itself, and to this segment alone.
const SURE: u64 = 1 << 32;

/// Timestamp of a segment that leaves for the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// TSval; zero is none.
    pub value: u32,
    /// The far end acknowledges the segment by itself: it bears data, or SYN.
    pub has_data: bool,
}

/// Timestamps on their way, and what came of those that are back.
#[derive(Debug)]
pub struct RoundTrips {
    /// Hash of connection and TSval or acknowledgement (31 bits), `SURE`, when it left (32 bits).
    places: [AtomicU64; PLACES],
    heard: [AtomicU32; CONNECTIONS],
    /// A connection (32 bits) and its lowest RTT (32 bits); zero is none.
    results: [AtomicU64; RESULTS],
    /// A connection (32 bits) and its lowest coming (32 bits); zero is none.
    comings: [AtomicU64; RESULTS],
}

impl Default for RoundTrips {
    fn default() -> RoundTrips {
        RoundTrips::new()
    }
}

impl RoundTrips {
    /// Nothing is under way.
    pub const fn new() -> RoundTrips {
        RoundTrips {
            places: [const { AtomicU64::new(0) }; PLACES],
            heard: [const { AtomicU32::new(0) }; CONNECTIONS],
            results: [const { AtomicU64::new(0) }; RESULTS],
            comings: [const { AtomicU64::new(0) }; RESULTS],
        }
    }

    /// A segment of `connection` leaves for the line. `connection` is a hash that is the same in
    /// both directions, and keyed where strangers send.
    #[inline]
    pub fn sent(&self, connection: u64, stamp: Stamp, now: Time) {
        if stamp.value == 0 {
            return;
        }
        let (place, tag) = self.place(connection, stamp.value);
        let here = place.load(Relaxed);
        // Many segments bear the same: the first one counts.
        if here & TAG == tag && age(here, now) < LONGEST {
            return;
        }
        let sure = if stamp.has_data { SURE } else { 0 };
        place.store(tag | sure | u64::from(units(now)), Relaxed);
    }

    /// A segment of `connection` came from the line, with the echo of `value`. The RTT, if it is
    /// one.
    #[inline]
    pub fn echoed(&self, connection: u64, value: u32, now: Time) -> Option<Span> {
        let heard = &self.heard[connection as usize % CONNECTIONS];
        let pause = Span(u64::from(units(now).wrapping_sub(heard.load(Relaxed))) << UNIT_BITS);
        heard.store(units(now), Relaxed);
        let (place, tag) = self.place(connection, value);
        let here = place.load(Relaxed);
        if value == 0 || here & TAG != tag {
            return None;
        }
        place.store(0, Relaxed);
        let rtt = age(here, now);
        let waited = here & SURE == 0 && pause > PAUSE.max(Span(rtt.0 / 4));
        if waited || rtt >= LONGEST {
            return None;
        }
        self.keep(connection, rtt);
        Some(rtt)
    }

    /// A segment without timestamp leaves for the line, and `ack` will acknowledge all of it.
    #[inline]
    pub fn asked(&self, connection: u64, ack: u32, now: Time) {
        let (place, tag) = self.place(connection, ack);
        let here = place.load(Relaxed);
        let is_again = here & TAG == tag && age(here, now) < LONGEST;
        let first = tag | SURE | u64::from(units(now));
        place.store(if is_again { here & !SURE } else { first }, Relaxed);
    }

    /// A segment without timestamp came from the line, with this acknowledgement. The RTT, if it is
    /// one.
    #[inline]
    pub fn acknowledged(&self, connection: u64, ack: u32, now: Time) -> Option<Span> {
        let (place, tag) = self.place(connection, ack);
        let here = place.load(Relaxed);
        if here & TAG != tag {
            return None;
        }
        place.store(0, Relaxed);
        let rtt = age(here, now);
        (here & SURE != 0 && rtt < LONGEST).then_some(rtt)
    }

    /// The lowest RTT of each connection that had any since the last call, of at most some tens.
    pub fn take(&self, mut each: impl FnMut(u32, Span)) {
        for result in self.results.iter().filter(|result| result.load(Relaxed) != 0) {
            let result = result.swap(0, Relaxed);
            each((result >> 32) as u32, Span((result & 0xffff_ffff) << UNIT_BITS));
        }
    }

    /// A segment of `connection` came from the line, which its sender has stamped with `value`.
    #[inline]
    pub fn came(&self, connection: u64, value: u32, now: Time) {
        if value == 0 {
            return;
        }
        let coming = coming(value, now);
        let kept = &self.comings[connection as usize % RESULTS];
        let here = kept.load(Relaxed);
        let is_lower = (coming.wrapping_sub(here as u32) as i32) < 0;
        if here == 0 || (here >> 32 == connection >> 32 && is_lower) {
            kept.store(connection & !0xffff_ffff | u64::from(coming), Relaxed);
        }
    }

    /// The lowest coming of each connection that had any since the last call, of at most some tens,
    /// in units of `COMING_UNIT`.
    pub fn take_comings(&self, mut each: impl FnMut(u32, u32)) {
        for kept in self.comings.iter().filter(|kept| kept.load(Relaxed) != 0) {
            let kept = kept.swap(0, Relaxed);
            each((kept >> 32) as u32, kept as u32);
        }
    }

    /// Forgets all that is under way: the answer of one that was missed would seem late.
    pub fn forget(&self) {
        self.places.iter().for_each(|place| place.store(0, Relaxed));
    }

    fn keep(&self, connection: u64, rtt: Span) {
        let result = &self.results[connection as usize % RESULTS];
        let new = connection & !0xffff_ffff | (rtt.0 >> UNIT_BITS).max(1);
        let here = result.load(Relaxed);
        let is_other = here >> 32 != new >> 32;
        if here == 0 || (!is_other && new < here) {
            result.store(new, Relaxed);
        }
    }

    #[inline]
    fn place(&self, connection: u64, value: u32) -> (&AtomicU64, u64) {
        // Fibonacci hashing (Knuth, volume 3, section 6.4): the upper bits are the well mixed ones.
        let hash = (connection ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The uppermost bit keeps a tag from being zero.
        (&self.places[(hash >> 20) as usize % PLACES], hash & TAG | 1 << 63)
    }
}

/// The coming, in [`COMING_UNIT`] and wrapping round, of what was sent at a millisecond of a far
/// clock.
pub(crate) fn coming(sent: u32, now: Time) -> u32 {
    units(now).wrapping_sub(units(Time(u64::from(sent) * 1_000_000)))
}

/// Bits of a place that tell timestamps apart.
const TAG: u64 = !(SURE | 0xffff_ffff);

fn units(time: Time) -> u32 {
    (time.0 >> UNIT_BITS) as u32
}

/// Time since the segment left whose timestamp lies in `place`.
fn age(place: u64, now: Time) -> Span {
    Span(u64::from(units(now).wrapping_sub(place as u32)) << UNIT_BITS)
}
