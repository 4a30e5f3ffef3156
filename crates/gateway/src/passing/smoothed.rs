//! Smoothed RTTs of many connections, for people to look at.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use simnel_core::Span;

/// Connections that are remembered; a newer one takes the place that its hash picks.
const PLACES: usize = 4096;
/// Weight of a new RTT (RFC 6298, section 2: alpha).
const EIGHTH: u64 = 8;
/// RTTs are kept in units of 2^10 ns.
const UNIT_BITS: u32 = 10;

/// A connection in the upper 32 bits of each place, its smoothed RTT in the lower ones; zero is
/// none. Threads that add at the same moment lose one RTT.
pub(super) struct Smoothed(Box<[AtomicU64]>);

impl Smoothed {
    pub(super) fn new() -> Smoothed {
        Smoothed((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }

    /// An RTT of a connection, which is named by its hash.
    pub(super) fn add(&self, connection: u64, rtt: Span) {
        let new = (rtt.0 >> UNIT_BITS).clamp(1, u32::MAX.into());
        let smoothed = match self.units(connection) {
            Some(old) => (old * (EIGHTH - 1) + new) / EIGHTH,
            None => new,
        };
        self.place(connection).store(upper(connection) | smoothed.max(1), Relaxed);
    }

    /// The smoothed RTT of a connection.
    pub(super) fn of(&self, connection: u64) -> Option<Span> {
        Some(Span(self.units(connection)? << UNIT_BITS))
    }

    fn units(&self, connection: u64) -> Option<u64> {
        let here = self.place(connection).load(Relaxed);
        (here != 0 && upper(here) == upper(connection)).then_some(here & u64::from(u32::MAX))
    }

    fn place(&self, connection: u64) -> &AtomicU64 {
        &self.0[connection as usize % PLACES]
    }
}

fn upper(bits: u64) -> u64 {
    bits & !u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_each_new_rtt_counts_and_a_newer_connection_takes_the_place() {
        let (one, same_place, other) = (7 << 32 | 5, 8 << 32 | 5, 7 << 32 | 6);
        let smoothed = Smoothed::new();
        let units = |connection| smoothed.of(connection).map(|rtt| rtt.0 >> UNIT_BITS);
        assert_eq!(units(one), None);
        for (rtt, expected) in [(800, 800), (1600, 900), (0, 787)] {
            smoothed.add(one, Span(rtt << UNIT_BITS));
            assert_eq!(units(one), Some(expected));
        }
        assert_eq!((units(same_place), units(other)), (None, None));
        smoothed.add(same_place, Span(1));
        assert_eq!((units(one), units(same_place)), (None, Some(1)));
    }
}
