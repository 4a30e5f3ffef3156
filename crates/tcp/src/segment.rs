//! A TCP segment as numbers: all that the other end, a queue and a capture need to know of it.
//!
//! Sequence numbers count from zero at the SYN in 64 bits, so that a run never wraps. The SYN is 0,
//! the first byte of data 1, and FIN takes one more. Only SACK edges are kept as the low 32 bits,
//! which is enough next to the acknowledgement they travel with. On the wire every number is offset
//! by the sender's initial sequence number and cut to 32 bits ([`Segment::wire_seq`]).
//!
//! The payload has a length and no bytes. The size of the header is what Linux would send:
//! options in its order and padding (RFC 9293, RFC 7323, RFC 2018).

use simnel_core::packet::Ecn;
use simnel_core::wire::tcp::AckView;

/// TCP flags, in the bits of the wire's flag octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// Opens a connection.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// Ends a connection at once.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// The sender has nothing more to send for now.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);
    /// Echo of a congestion mark.
    pub const ECE: TcpFlags = TcpFlags(0x40);
    /// The sender has reduced its window because of an echo.
    pub const CWR: TcpFlags = TcpFlags(0x80);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Sets the bits of `other`.
    #[inline]
    pub fn set(&mut self, other: TcpFlags) {
        self.0 |= other.0;
    }
}

impl core::ops::BitOr for TcpFlags {
    type Output = TcpFlags;
    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

/// Most SACK blocks in a segment: what fits beside timestamps.
pub const MAX_SACK: usize = 3;

/// One TCP segment: 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte (or of SYN or FIN) from the sender's zero.
    pub seq: u64,
    /// Next sequence number expected from the other side, from *its* zero; valid with ACK.
    pub ack: u64,
    /// SACK blocks, left edge and right edge, the low 32 bits of the number; `sack_count` of them.
    /// A first block below `ack` or within the second reports a duplicate (RFC 2883).
    pub sack: [(u32, u32); MAX_SACK],
    /// Payload bytes.
    pub len: u32,
    /// Receive window in bytes, the scale already applied.
    pub window: u32,
    /// Timestamp value, in milliseconds; valid if `timestamps`.
    pub ts_val: u32,
    /// Timestamp echo; valid if `timestamps` and ACK.
    pub ts_echo: u32,
    /// With SYN: the largest payload that the sender takes; 0 otherwise.
    pub mss: u16,
    /// Flags.
    pub flags: TcpFlags,
    /// ECN field of the IP header. A queue that marks the packet must set [`Ecn::Ce`] here.
    pub ecn: Ecn,
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// True if the segment carries the timestamp option.
    pub timestamps: bool,
    /// With SYN: the SACK-permitted option is there.
    pub sack_permitted: bool,
    /// The sender's window scale plus one, offered by its SYN and agreed upon in what comes after;
    /// zero: no scaling.
    pub window_scale: u8,
}

const _: () = assert!(core::mem::size_of::<Segment>() == 64);

impl Segment {
    /// A segment with these flags and nothing else.
    pub const fn new(flags: TcpFlags, seq: u64, ack: u64) -> Segment {
        Segment {
            seq,
            ack,
            sack: [(0, 0); MAX_SACK],
            len: 0,
            window: 0,
            ts_val: 0,
            ts_echo: 0,
            mss: 0,
            flags,
            ecn: Ecn::NotEct,
            sack_count: 0,
            timestamps: false,
            sack_permitted: false,
            window_scale: 0,
        }
    }

    /// Sequence number after the segment: payload, SYN and FIN take space.
    #[inline]
    pub const fn end_seq(&self) -> u64 {
        let marks = (self.flags.0 & TcpFlags::SYN.0 != 0) as u64
            + (self.flags.0 & TcpFlags::FIN.0 != 0) as u64;
        self.seq + self.len as u64 + marks
    }

    /// Bytes of TCP header with options: 20 plus what Linux would send.
    #[inline]
    pub const fn header_len(&self) -> u32 {
        if self.flags.0 & TcpFlags::SYN.0 != 0 {
            return 20 + self.syn_option_len();
        }
        let timestamps = if self.timestamps { 12 } else { 0 };
        let sack = if self.sack_count > 0 { 4 + 8 * self.sack_count as u32 } else { 0 };
        20 + timestamps + sack
    }

    /// Bytes of header and payload: what IP carries.
    #[inline]
    pub const fn wire_len(&self) -> u32 {
        self.header_len() + self.len
    }

    /// Length of a SYN's options in bytes: MSS 4, window scale 3 with a NOP. Timestamps 10 and
    /// SACK-permitted 2 share a row of 12; either alone is padded, to 12 and 4.
    const fn syn_option_len(&self) -> u32 {
        let mss = 4;
        let timestamps = if self.timestamps { 12 } else { 0 };
        let sack = if self.sack_permitted && !self.timestamps { 4 } else { 0 };
        let scale = if self.window_scale > 0 { 4 } else { 0 };
        mss + timestamps + sack + scale
    }

    /// The SACK blocks as whole sequence numbers.
    #[inline]
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ack = self.ack;
        let count = usize::from(self.sack_count).min(MAX_SACK);
        self.sack[..count].iter().map(move |(l, r)| (expand(*l, ack), expand(*r, ack)))
    }

    /// The wire's 32-bit sequence number, for a sender whose SYN had `isn`.
    pub const fn wire_seq(&self, isn: u32) -> u32 {
        isn.wrapping_add(self.seq as u32)
    }

    /// The wire's 32-bit acknowledgement; `peer_isn` is the initial number of the other side.
    pub const fn wire_ack(&self, peer_isn: u32) -> u32 {
        if self.flags.0 & TcpFlags::ACK.0 == 0 {
            return 0;
        }
        peer_isn.wrapping_add(self.ack as u32)
    }

    /// An ACK filter's view of the header on the wire (initial sequence numbers zero).
    pub fn ack_view(&self) -> AckView {
        let mut view = AckView {
            flags: u16::from(self.flags.0),
            has_payload: self.len != 0,
            // MSS, SACK-permitted and window scale must not be lost.
            expendable_options: !self.flags.has(TcpFlags::SYN),
            ack: self.wire_ack(0),
            timestamp: if self.timestamps { (self.ts_val, self.ts_echo) } else { (0, 0) },
            sack_count: self.sack_count,
            ..AckView::default()
        };
        view.sack[..MAX_SACK].copy_from_slice(&self.sack);
        view
    }

    /// Writes the TCP header with its options, checksum zero, and returns its length: for captures
    /// and for whatever wants to see bytes. `out` must have room for 60.
    pub fn write_header(&self, ports: (u16, u16), isns: (u32, u32), out: &mut [u8]) -> usize {
        let length = self.header_len() as usize;
        let Some(header) = out.get_mut(..length) else { return 0 };
        header.fill(NOP);
        header[0..2].copy_from_slice(&ports.0.to_be_bytes());
        header[2..4].copy_from_slice(&ports.1.to_be_bytes());
        header[4..8].copy_from_slice(&self.wire_seq(isns.0).to_be_bytes());
        header[8..12].copy_from_slice(&self.wire_ack(isns.1).to_be_bytes());
        header[12] = (length as u8 / 4) << 4;
        header[13] = self.flags.0;
        // A SYN's window is not scaled (RFC 7323, section 2.2).
        let scale = if self.flags.has(TcpFlags::SYN) { 0 } else { self.window_scale };
        let shift = scale.saturating_sub(1);
        let window = (self.window >> shift).min(u32::from(u16::MAX)) as u16;
        header[14..16].copy_from_slice(&window.to_be_bytes());
        header[16..20].fill(0);
        self.write_options(isns.1, &mut header[20..]);
        length
    }

    /// Options in Linux's order, upon a field of NOPs.
    fn write_options(&self, peer_isn: u32, mut options: &mut [u8]) {
        let mut put = |bytes: &[u8]| {
            let (head, tail) = core::mem::take(&mut options).split_at_mut(bytes.len());
            head.copy_from_slice(bytes);
            options = tail;
        };
        let syn = self.flags.has(TcpFlags::SYN);
        if syn {
            let [a, b] = self.mss.to_be_bytes();
            put(&[2, 4, a, b]);
        }
        if self.timestamps {
            put(if syn && self.sack_permitted { &[4, 2] } else { &[NOP, NOP] });
            put(&[8, 10]);
            put(&self.ts_val.to_be_bytes());
            put(&self.ts_echo.to_be_bytes());
        } else if syn && self.sack_permitted {
            put(&[NOP, NOP, 4, 2]);
        }
        if syn && self.window_scale > 0 {
            put(&[NOP, 3, 3, self.window_scale - 1]);
        }
        if !syn && self.sack_count > 0 {
            put(&[NOP, NOP, 5, 2 + 8 * self.sack_count]);
            for (left, right) in &self.sack[..usize::from(self.sack_count).min(MAX_SACK)] {
                put(&peer_isn.wrapping_add(*left).to_be_bytes());
                put(&peer_isn.wrapping_add(*right).to_be_bytes());
            }
        }
    }
}

/// The no-operation option, which pads.
const NOP: u8 = 1;

/// The number near `reference` whose low 32 bits are `low`.
#[inline]
fn expand(low: u32, reference: u64) -> u64 {
    let distance = low.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn data() -> Segment {
        Segment { timestamps: true, len: 1448, ..Segment::new(TcpFlags::ACK, 1, 1) }
    }

    #[test]
    fn header_lengths_are_linux_s() {
        assert_eq!(data().wire_len(), 1480);
        let syn = Segment {
            timestamps: true,
            sack_permitted: true,
            window_scale: 8,
            mss: 1460,
            ..Segment::new(TcpFlags::SYN, 0, 0)
        };
        assert_eq!(syn.header_len(), 40);
        let ack = Segment { sack_count: 3, len: 0, ..data() };
        assert_eq!(ack.header_len(), 20 + 12 + 28);
        assert_eq!(Segment { timestamps: false, ..ack }.header_len(), 20 + 28);
    }

    #[test]
    fn sack_edges_survive_the_wrap_of_32_bits() {
        let ack = (1u64 << 32) - 100;
        let mut segment = Segment::new(TcpFlags::ACK, 0, ack);
        segment.sack[0] = ((ack + 50) as u32, (ack + 500) as u32);
        segment.sack[1] = ((ack - 500) as u32, ack as u32);
        segment.sack_count = 2;
        assert!(segment.sack_blocks().eq([(ack + 50, ack + 500), (ack - 500, ack)]));
    }

    #[test]
    fn the_written_header_reads_back() {
        let mut segment = Segment { sack_count: 1, len: 0, ts_val: 7, ts_echo: 9, ..data() };
        segment.sack[0] = (100, 200);
        let mut out = [0; 60];
        let length = segment.write_header((1, 2), (1000, 2000), &mut out);
        assert_eq!(length, 44);
        assert_eq!(out[4..8], 1001u32.to_be_bytes());
        assert_eq!(out[8..12], 2001u32.to_be_bytes());
        assert_eq!(out[12] >> 4, 11);
        assert_eq!(out[20..24], [1, 1, 8, 10]);
        assert_eq!(out[32..36], [1, 1, 5, 10]);
        assert_eq!(out[36..40], 2100u32.to_be_bytes());
    }

    /// RFC 9293, section 3.1; RFC 7323; RFC 2018: byte for byte, as a capture shows it.
    #[test]
    fn headers_are_those_of_the_wire() {
        let bytes = |segment: &Segment| {
            let mut out = [0; 60];
            let length = segment.write_header((1, 2), (1_000, 2_000), &mut out);
            assert_eq!((length as u32, out[12]), (segment.header_len(), (length as u8 / 4) << 4));
            (out[13], out[14..16].to_vec(), out[20..length].to_vec())
        };
        let mut syn = Segment {
            timestamps: true,
            sack_permitted: true,
            window_scale: 8,
            mss: 1_460,
            ts_val: 0x0102_0304,
            window: 70_000,
            sack_count: 1,
            ..Segment::new(TcpFlags::SYN, 0, 0)
        };
        // A SYN's window is not scaled.
        let stamp = [8, 10, 1, 2, 3, 4, 0, 0, 0, 0];
        let (flags, window, options) = bytes(&syn);
        assert_eq!((flags, window), (2, vec![255, 255]));
        assert_eq!(options, [&[2, 4, 5, 180, 4, 2][..], &stamp, &[1, 3, 3, 7]].concat());
        syn.sack_permitted = false;
        assert_eq!(bytes(&syn).2, [&[2, 4, 5, 180, 1, 1][..], &stamp, &[1, 3, 3, 7]].concat());
        (syn.sack_permitted, syn.timestamps, syn.window_scale) = (true, false, 1);
        assert_eq!(bytes(&syn).2, [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 0]);
        (syn.sack_permitted, syn.window_scale) = (false, 0);
        assert_eq!(bytes(&syn).2, [2, 4, 5, 180]);

        let mut ack = Segment { window: 70_000, ..Segment::new(TcpFlags::ACK, 1, 1) };
        assert_eq!(bytes(&ack), (16, vec![255, 255], vec![]));
        ack.window_scale = 8;
        assert_eq!(bytes(&ack), (16, vec![2, 34], vec![]));
        ack.sack = [(1, 2), (3, 4), (5, 6)];
        for count in 1..=3 {
            ack.sack_count = count;
            let mut options = vec![1, 1, 5, 2 + 8 * count];
            for edge in 1..=2 * u32::from(count) {
                options.extend((2_000 + edge).to_be_bytes());
            }
            assert_eq!(bytes(&ack).2, options);
        }
        // No room, nothing written.
        assert_eq!(ack.write_header((1, 2), (0, 0), &mut [0; 40]), 0);
        // Without ACK there is no such number.
        assert_eq!((ack.wire_ack(2_000), syn.wire_ack(2_000), syn.wire_seq(9)), (2_001, 0, 9));
    }

    #[test]
    fn a_flag_is_set_once_and_for_all() {
        let mut flags = TcpFlags::ACK | (TcpFlags::PSH | TcpFlags::ACK);
        flags.set(TcpFlags::PSH);
        assert_eq!(flags, TcpFlags(0x18));
    }

    #[test]
    fn syn_and_fin_take_a_number_each() {
        for (flags, end) in [
            (TcpFlags::ACK, 105),
            (TcpFlags::SYN, 106),
            (TcpFlags::FIN, 106),
            (TcpFlags::SYN | TcpFlags::FIN, 107),
        ] {
            let segment = Segment { len: 5, ..Segment::new(flags, 100, 0) };
            assert_eq!((segment.end_seq(), segment.flags.has(TcpFlags::ACK)), (end, end == 105));
        }
    }

    /// The view of a filter: all that decides whether an acknowledgement may go.
    #[test]
    fn an_ack_filter_sees_what_the_header_says() {
        let mut ack = Segment { sack_count: 2, ts_val: 7, ts_echo: 9, ..data() };
        ack.sack = [(10, 20), (30, 40), (0, 0)];
        let view = ack.ack_view();
        assert_eq!((view.flags, view.ack, view.timestamp), (16, 1, (7, 9)));
        assert!(view.has_payload && view.expendable_options);
        assert_eq!((view.sack_count, view.sack[..2].to_vec()), (2, vec![(10, 20), (30, 40)]));
        ack.timestamps = false;
        (ack.len, ack.flags) = (0, TcpFlags::SYN | TcpFlags::ACK);
        let view = ack.ack_view();
        assert_eq!((view.flags, view.timestamp), (18, (0, 0)));
        assert!(!view.has_payload && !view.expendable_options);
    }
}
