//! A packet's size on the line: link overhead, minimum size, ATM cells, PTM code words.
//!
//! Piece of CAKE, Algorithm 1, lines 1-8, as deployed (facts A.1):
//!
//! 1. Take off what precedes the network header (only if an overhead is configured).
//! 2. Add the overhead.
//! 3. Raise to the minimum.
//! 4. Round up to cells. ATM carries 48 bytes in 53. PTM adds one byte for each 64 begun (64b/65b),
//!    where the paper has whole blocks of 65.

use crate::packet::Packet;

/// Cells or code words into which the link cuts packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Packets stay whole.
    #[default]
    None,
    /// 53-byte cells that carry 48.
    Atm,
    /// One byte more for each 64 begun (VDSL2).
    Ptm,
}

/// A link's framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// True if `overhead` counts from the network header; false charges the length as given
    /// (`raw`).
    pub compensate: bool,
    /// Bytes added to each packet: -64..=256.
    pub overhead: i16,
    /// Smallest size on the line in bytes, before cells.
    pub mpu: u16,
    /// Cells of the link.
    pub cells: Cells,
}

impl Framing {
    /// Bytes of network layer in a frame of `len` bytes: what [`Framing::wire_len`] starts from.
    #[inline(always)]
    pub fn network_len(&self, len: u32, network_offset: u8) -> u32 {
        if self.compensate {
            len.saturating_sub(u32::from(network_offset))
        } else {
            len
        }
    }

    /// Bytes on the line of a frame whose [`Framing::network_len`] is `len`.
    #[inline(always)]
    pub fn wire_len(&self, len: u32) -> u32 {
        let least = i64::from(self.mpu);
        let len = (i64::from(len) + i64::from(self.overhead)).clamp(least, i64::from(u32::MAX));
        let len = len as u32;
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48).saturating_mul(53),
            Cells::Ptm => len.saturating_add(len.div_ceil(64)),
        }
    }

    /// Bytes on the line of `packet`. A super-packet is charged for each of its segments.
    #[inline]
    pub fn charge(&self, packet: &Packet) -> u32 {
        if packet.segments() > 1 {
            return self.charge_segments(packet);
        }
        self.charge_ordinary(packet)
    }

    /// Bytes on the line of `packet`, which is no super-packet.
    #[inline(always)]
    pub fn charge_ordinary(&self, packet: &Packet) -> u32 {
        self.wire_len(self.network_len(packet.len, packet.network_offset))
    }

    /// Charges every segment of a super-packet. There are no more of them than its length has room
    /// for. So 512 KiB in segments of one byte are less than 48 MiB on any line.
    fn charge_segments(&self, packet: &Packet) -> u32 {
        let payload = u32::from(packet.gso_size).max(1);
        let full_segments = (packet.segments() - 1).min(packet.len.saturating_sub(1) / payload);
        let full = payload + u32::from(packet.header_len);
        let last = packet.len - full_segments * payload;
        let per_segment = |len| self.wire_len(self.network_len(len, packet.network_offset));
        per_segment(full).saturating_mul(full_segments).saturating_add(per_segment(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_as_recorded_from_linux() {
        // Golden cake-overhead: bridged-llcsnap is ATM with 32 bytes.
        let dsl = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm };
        for (len, on_the_line) in [(632, 742), (529, 636), (1000, 1166), (178, 265)] {
            assert_eq!(dsl.wire_len(dsl.network_len(len, 14)), on_the_line);
        }
        let ptm = Framing { compensate: true, overhead: 30, mpu: 0, cells: Cells::Ptm };
        assert_eq!(ptm.wire_len(1500), 1530 + 24);
        let docsis = Framing { compensate: true, overhead: 18, mpu: 64, cells: Cells::None };
        assert_eq!(docsis.wire_len(docsis.network_len(54, 14)), 64);
        let negative = Framing { compensate: true, overhead: -64, mpu: 0, cells: Cells::None };
        assert_eq!(negative.wire_len(40), 0);
    }

    #[test]
    fn a_super_packet_costs_what_its_segments_cost() {
        let dsl = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm };
        let mut packet = Packet::new(0, 66 + 3 * 1448 + 100);
        (packet.gso_size, packet.gso_segs, packet.header_len) = (1448, 4, 66);
        let single = |len| dsl.charge(&Packet::new(0, len));
        assert_eq!(dsl.charge(&packet), 3 * single(1514) + single(166));
    }

    #[test]
    fn a_super_packet_has_no_more_segments_than_bytes() {
        let mut dsl = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm };
        let mut packet = Packet::new(0, 66 + 2 * 48);
        (packet.gso_size, packet.gso_segs, packet.header_len) = (48, u16::MAX, 66);
        // Three full ones (the third has the first bytes of headers for payload) and a last one.
        assert_eq!(dsl.charge(&packet), 3 * 3 * 53 + 53);
        (packet.len, packet.gso_size) = (0, 0);
        assert_eq!(dsl.charge(&packet), 53);
        // As many cells as there can be.
        dsl.overhead = 256;
        packet = Packet { len: 1 << 19, gso_size: 1, header_len: 255, ..packet };
        packet.network_offset = 0;
        assert!((1 << 25..48 << 20).contains(&dsl.charge(&packet)));
    }
}
