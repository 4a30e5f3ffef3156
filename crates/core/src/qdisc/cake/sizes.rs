//! Packet sizes: what each costs on the line, and the extremes that `tc -s` shows.
//!
//! Sizes come in runs. While packets are as long as the last one, which is remembered once the
//! moving average stands still, nothing here changes.

use super::tin::ewma;
use crate::framing::Framing;
use crate::packet::Packet;

/// What is known of packet sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Length, network header's offset and cost of the last packet.
    last: Option<(u32, u8, u32)>,
    pub(super) network: (u32, u32),
    pub(super) adjusted: (u32, u32),
    /// Moving average of the network header's offset, scaled by 2^16.
    pub(super) offset: u64,
}

impl Sizes {
    pub(super) const NONE: Sizes =
        Sizes { last: None, network: (u32::MAX, 0), adjusted: (u32::MAX, 0), offset: 0 };

    /// The framing has changed.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Bytes of `packet` on the line.
    #[inline(always)]
    pub(super) fn charge(&mut self, framing: &Framing, packet: &Packet) -> u32 {
        match self.last {
            Some((len, offset, adj_len))
                if len == packet.len
                    && offset == packet.network_offset
                    && packet.segments() == 1 =>
            {
                adj_len
            }
            _ => self.charge_anew(framing, packet),
        }
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
        self.last = is_remembered.then_some((packet.len, packet.network_offset, adj_len));
        adj_len
    }
}
