//! Drop what has waited too long: the drop-on-dequeue strategy of Menth et al. (DRR-LDS, section
//! 4).
//!
//! No state and no control law. A packet that waited longer than the limit is of no use to anybody,
//! and is dropped when its turn comes.

use crate::packet::Packet;
use crate::time::{Span, Time};

/// Longest time that a packet may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeLimit(pub Span);

impl AgeLimit {
    /// True if `packet` has waited longer by `now`.
    #[inline]
    pub fn exceeded_by(self, packet: &Packet, now: Time) -> bool {
        now.since(packet.enqueued) > self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_limit_is_not_too_long() {
        let mut packet = Packet::new(0, 100);
        packet.enqueued = Time(1000);
        let limit = AgeLimit(Span(24));
        assert!(!limit.exceeded_by(&packet, Time(1024)));
        assert!(limit.exceeded_by(&packet, Time(1025)));
        assert!(!limit.exceeded_by(&packet, Time(0)));
    }
}
