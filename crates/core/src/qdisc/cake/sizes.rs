//! Packet sizes: what each costs on the line, and the extremes that `tc -s` shows.
//!
//! Sizes come in runs. While packets are as long as the last one, which is remembered once the
//! moving average stands still, nothing here changes.

use super::tin::ewma;
use crate::framing::Framing;
use crate::packet::Packet;

/// Packet sizes seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Length, network header's offset and cost of the last packet; the length is zero, as no
    /// packet's, if they are not known.
    last: (u32, u8, u32),
    pub(super) network: (u32, u32),
    pub(super) adjusted: (u32, u32),
    /// Moving average of the network header's offset, scaled by 2^16.
    pub(super) offset: u64,
}

impl Sizes {
    pub(super) const NONE: Sizes =
        Sizes { last: (0, 0, 0), network: (u32::MAX, 0), adjusted: (u32::MAX, 0), offset: 0 };

    /// The framing has changed.
    pub(super) fn forget(&mut self) {
        self.last = Sizes::NONE.last;
    }

    /// Sizes are measured from another place in the packet now: the extremes begin anew.
    pub(super) fn forget_extremes(&mut self) {
        (self.network, self.adjusted) = (Sizes::NONE.network, Sizes::NONE.adjusted);
    }

    /// Bytes of `packet` on the line.
    #[inline(always)]
    pub(super) fn charge(&mut self, framing: &Framing, packet: &Packet) -> u32 {
        let (len, offset, adj_len) = self.last;
        if len == packet.len && offset == packet.network_offset && packet.segments() == 1 {
            return adj_len;
        }
        self.charge_anew(framing, packet)
    }

    #[inline(never)]
    fn charge_anew(&mut self, framing: &Framing, packet: &Packet) -> u32 {
        let adj_len = framing.charge(packet);
        let network = framing.network_len(packet.len, packet.network_offset);
        self.network = (self.network.0.min(network), self.network.1.max(network));
        self.adjusted = (self.adjusted.0.min(adj_len), self.adjusted.1.max(adj_len));
        let offset = ewma(self.offset, u64::from(packet.network_offset) << 16, 8);
        let stands_still = core::mem::replace(&mut self.offset, offset) == offset;
        let is_remembered = stands_still && packet.segments() == 1;
        self.last = match is_remembered {
            true => (packet.len, packet.network_offset, adj_len),
            false => Sizes::NONE.last,
        };
        adj_len
    }
}
