//! The journal of packets' fates, in the order in which recordings print them.

use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::Time;

use super::format::Fate;

/// Whoever owns the packets and writes down what becomes of them.
pub trait Journal: PacketOwner {
    /// Tells losses apart.
    fn losses(&mut self) -> &mut Losses;

    /// The packet `handle` left the discipline, now.
    fn left(&mut self, handle: u64, fate: Fate);

    /// The discipline gave `handle` up: for [`PacketOwner::dropped`].
    #[inline]
    fn lost(&mut self, handle: u64, reason: DropReason) {
        if let Some(fate) = self.losses().fate(handle, reason) {
            self.left(handle, fate);
        }
    }
}

/// Tells apart how packets are lost, in the order in which recordings print it: what `enqueue`
/// gives back comes after all else that it does.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Present time.
    pub now: Time,
    /// The discipline is taking a packet in.
    pub(super) enqueueing: bool,
    /// Packets that it gives back meanwhile.
    pub(super) given_back: Vec<u64>,
    /// Number of packets lost so far.
    pub(super) count: u64,
}

impl Losses {
    /// None so far.
    pub fn new(now: Time) -> Losses {
        Losses { now, enqueueing: false, given_back: Vec::new(), count: 0 }
    }

    /// Fate of `handle`, if it is already time to say so.
    fn fate(&mut self, handle: u64, reason: DropReason) -> Option<Fate> {
        self.count += 1;
        match (reason, self.enqueueing) {
            (DropReason::AckFilter, _) => Some(Fate::AckFiltered),
            (_, false) => Some(Fate::Dropped),
            (_, true) => {
                self.given_back.push(handle);
                None
            }
        }
    }
}
