//! Times in the queue: of each packet on a slow line, of one in 32 on a fast one.
//!
//! To find a time's bucket costs some thirty instructions, of the thousand that a packet costs.

use simnel_core::random::Random;
use simnel_core::sojourns::Sojourns;
use simnel_core::time::{Span, Time};

/// Packets that come faster than this are not all looked at.
const SLOW: Span = Span::from_micros(50);
/// Packets of a fast line that one stands for, at least, and how many more there may be. Their
/// number changes, so that no flow whose turn returns is the only one that is seen.
const FEWEST: u32 = 24;
const MORE: u32 = 16;

/// Times of packets that have left.
pub(crate) struct Waits {
    /// Packets that the next one to be looked at stands for.
    stands_for: u32,
    looked: Time,
    random: Random,
    pub(crate) sojourns: Sojourns,
}

impl Waits {
    pub(crate) fn new(seed: u64) -> Waits {
        Waits {
            stands_for: 1,
            looked: Time::ZERO,
            random: Random::new(seed),
            sojourns: Sojourns::default(),
        }
    }

    /// Counts a packet that leaves at `now` after `sojourn`. Number of the packet, counted from
    /// this one, that is looked at next.
    pub(crate) fn look(&mut self, sojourn: Span, now: Time) -> u32 {
        self.sojourns.add(sojourn, self.stands_for.into());
        let is_slow = now.since(self.looked).0 >= SLOW.0 * u64::from(self.stands_for);
        self.stands_for = match is_slow {
            true => 1,
            false => FEWEST + self.random.below(MORE),
        };
        self.looked = now;
        self.stands_for
    }
}
