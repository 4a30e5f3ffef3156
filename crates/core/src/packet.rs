//! The packet descriptor: all that any discipline looks at, in one cache line.
//!
//! The bytes of the packet stay with its owner (the kernel's queue, a simulator's pool), who finds
//! them again by `handle`. Parsing (`wire`) fills the descriptor once. Disciplines read it and may
//! change its ECN and DSCP bits. They hand it back from `dequeue`, or to the owner as dropped.

use core::num::NonZeroU32;

use crate::time::Time;

/// A place in a list of packets: the slot of the next one, or the end. Never zero, so that
/// `Option<Packet>` takes no more room than a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(NonZeroU32);

impl Link {
    /// No packet follows.
    pub(crate) const END: Link = Link(NonZeroU32::MAX);

    /// The packet in `slot` follows. The last two numbers are no slots.
    #[inline(always)]
    pub(crate) const fn to(slot: u32) -> Link {
        match NonZeroU32::new(slot.wrapping_add(1)) {
            Some(link) => Link(link),
            None => Link::END,
        }
    }

    /// The slot of the next packet; out of any arena's range at the end.
    #[inline(always)]
    pub(crate) const fn index(self) -> u32 {
        self.0.get() - 1
    }

    /// The slot of the next packet, if there is one.
    #[inline(always)]
    pub(crate) const fn slot(self) -> Option<u32> {
        if self.is_end() {
            None
        } else {
            Some(self.index())
        }
    }

    #[inline(always)]
    pub(crate) const fn is_end(self) -> bool {
        self.0.get() == u32::MAX
    }
}

/// Facts from the headers, one bit each; see the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The network layer is IPv4.
    pub const IPV4: Flags = Flags(1);
    /// The network layer is IPv6.
    pub const IPV6: Flags = Flags(2);
    /// The frame carries ARP.
    pub const ARP: Flags = Flags(4);
    /// The transport header was found and is TCP (also within 6in4).
    pub const TCP: Flags = Flags(8);
    /// A discipline has set CE on the packet (the owner must rewrite it).
    pub const MARKED: Flags = Flags(16);
    /// A discipline has cleared the DSCP (the owner must rewrite it).
    pub const WASHED: Flags = Flags(32);
    /// `dualpi2` may mark it for its delay. Only while it waits there.
    pub(crate) const STEP: Flags = Flags(64);

    /// True if all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// True if any bit of `other` is set.
    #[inline]
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
    /// Sets the bits of `other`.
    #[inline]
    pub fn set(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// Sets or clears the bits of `other`.
    #[inline]
    pub(crate) fn put(&mut self, other: Flags, on: bool) {
        self.0 = (self.0 & !other.0) | if on { other.0 } else { 0 };
    }
}

impl core::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The explicit congestion notification field (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks: drop instead.
    NotEct = 0,
    /// ECN-capable, codepoint 01 (L4S where that is in use).
    Ect1 = 1,
    /// ECN-capable, codepoint 10.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// One packet, as a discipline sees it: 64 bytes.
///
/// Fields that a discipline writes while it queues the packet lie in one 16-byte quarter. So a copy
/// made soon after waits for that quarter only, not for all of the cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// The owner's name for the packet; opaque to disciplines.
    pub handle: u64,
    /// Keyed hash of addresses, protocol and ports: the packet's flow. The low 32 bits pick the
    /// queue; all 64 tell whether two packets are of the same connection.
    pub flow: u64,
    /// Keyed hash of the source address (of its prefix, if so configured); zero if not IP.
    pub src_host: u32,
    /// Keyed hash of the destination address; zero if not IP.
    pub dst_host: u32,
    /// Bytes from the link header to the end, without frame check sequence (`qdisc_pkt_len`).
    pub len: u32,
    /// Memory that the owner spends on the packet in bytes, for memory limits.
    pub truesize: u32,
    /// Time at which the packet entered its present discipline. Written by `enqueue`.
    pub enqueued: Time,
    /// Bytes that the packet occupies on the wire, framing included. Written by shaping
    /// disciplines.
    pub adj_len: u32,
    /// The next packet in whatever list the arena keeps this one in.
    pub(crate) next: Link,
    /// The firewall mark.
    pub mark: u32,
    /// Priority or class in `tc`'s `major:minor` form, 0 if none.
    pub class: u32,
    /// Payload bytes of each segment of a super-packet, 0 for an ordinary packet.
    pub gso_size: u16,
    /// Number of segments of a super-packet, 0 or 1 for an ordinary packet.
    pub gso_segs: u16,
    /// Bytes of headers that every segment of a super-packet repeats, link header included.
    pub header_len: u8,
    /// Bytes before the network header.
    pub network_offset: u8,
    /// The IPv4 TOS or IPv6 traffic class octet: DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Facts from the headers.
    pub flags: Flags,
}

const _: () = assert!(core::mem::size_of::<Packet>() == 64);
const _: () = assert!(core::mem::size_of::<Option<Packet>>() == 64);

impl Packet {
    /// A descriptor for `len` bytes of Ethernet about which nothing else is known.
    pub const fn new(handle: u64, len: u32) -> Packet {
        Packet {
            handle,
            flow: 0,
            enqueued: Time::ZERO,
            src_host: 0,
            dst_host: 0,
            len,
            truesize: Packet::typical_truesize(len),
            adj_len: len,
            mark: 0,
            class: 0,
            gso_size: 0,
            gso_segs: 0,
            header_len: 0,
            network_offset: 14,
            tos: 0,
            flags: Flags(0),
            next: Link::END,
        }
    }

    /// Memory that Linux spends on a frame of `len` bytes that came from a socket (measured;
    /// conformance/golden/README.md). The buffer has 512, 1024 or 2048 bytes, 336 of them headroom
    /// and trailer, and 256 more are for bookkeeping. Above 1712 bytes buffers are whole pages.
    pub const fn typical_truesize(len: u32) -> u32 {
        if len > 1712 {
            return len.div_ceil(4096).saturating_mul(4096).saturating_add(256);
        }
        256 + (len + 336).next_power_of_two()
    }

    /// The minor number of its class, if that is one of the discipline `handle`.
    #[inline]
    pub fn minor_of(&self, handle: u32) -> Option<u32> {
        let is_ours = self.class != 0 && (self.class ^ handle) >> 16 == 0 && handle != 0;
        is_ours.then_some(self.class & 0xffff)
    }

    /// The queue that its class names among `queues` of the discipline `handle`: minor number 1
    /// names queue 0. A packet whose priority is such a class goes there, whatever its flow
    /// (`SO_PRIORITY`; facts D.2).
    #[inline]
    pub fn named_queue(&self, handle: u32, queues: u32) -> Option<u32> {
        let queue = self.minor_of(handle)?.checked_sub(1)?;
        (queue < queues).then_some(queue)
    }

    /// The differentiated services code point, 0..=63.
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// The ECN field.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        match self.tos & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// True for IPv4 and IPv6.
    #[inline]
    pub const fn is_ip(&self) -> bool {
        self.flags.any(Flags(Flags::IPV4.0 | Flags::IPV6.0))
    }

    /// True if the packet's transport understands marks.
    #[inline]
    pub const fn is_markable(&self) -> bool {
        self.is_ip() && !matches!(self.ecn(), Ecn::NotEct)
    }

    /// Sets CE if the packet's transport is ECN-capable; says whether the packet now carries CE.
    #[inline]
    pub fn mark_ce(&mut self) -> bool {
        if !self.is_markable() {
            return false;
        }
        if self.ecn() != Ecn::Ce {
            self.tos |= 3;
            self.flags.set(Flags::MARKED);
        }
        true
    }

    /// Clears the DSCP and keeps the ECN field.
    #[inline]
    pub fn wash(&mut self) {
        if self.is_ip() && self.dscp() != 0 {
            self.tos &= 3;
            self.flags.set(Flags::WASHED);
        }
    }

    /// True if it has a length that a shaper can charge, 1 to `most` bytes.
    #[inline(always)]
    pub(crate) const fn is_chargeable(&self, most: u32) -> bool {
        self.len.wrapping_sub(1) < most
    }

    /// A copy with a length that a shaper can charge; None if it has one.
    #[inline(always)]
    pub(crate) fn clamped(&self, most: u32) -> Option<Packet> {
        if self.is_chargeable(most) {
            return None;
        }
        Some(Packet { len: self.len.clamp(1, most), ..*self })
    }

    /// Segments that a super-packet will become; 1 for an ordinary packet.
    #[inline]
    pub const fn segments(&self) -> u32 {
        if self.gso_segs == 0 {
            1
        } else {
            self.gso_segs as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ect_is_marked_and_ecn_survives_washing() {
        let mut packet = Packet::new(0, 1514);
        packet.flags = Flags::IPV4;
        packet.tos = 46 << 2;
        assert!(!packet.mark_ce());
        packet.tos |= 2;
        assert!(packet.mark_ce() && packet.flags.has(Flags::MARKED));
        packet.wash();
        assert_eq!((packet.dscp(), packet.ecn()), (0, Ecn::Ce));
    }

    #[test]
    fn flags_are_put_on_and_off_one_by_one() {
        let (some, all) = (Flags(0b0101_0101), Flags(0xff));
        for (before, put, on, after) in [
            (Flags(0), Flags::STEP, true, Flags::STEP),
            (Flags(0), Flags::STEP, false, Flags(0)),
            (some, Flags::STEP, true, some),
            (some, Flags::STEP, false, Flags(0b0001_0101)),
            (some, Flags::IPV6, false, some),
            (all, Flags::IPV6, false, Flags(0xfd)),
        ] {
            let mut flags = before;
            flags.put(put, on);
            assert_eq!(flags, after, "{before:?} {put:?} {on}");
        }
        assert_eq!(some | Flags::IPV4 | Flags::IPV6, Flags(0b0101_0111));
    }

    #[test]
    fn a_length_that_can_be_charged_is_one_to_the_most() {
        for (len, is_chargeable, clamped) in
            [(0, false, 1), (1, true, 1), (99, true, 99), (100, true, 100), (101, false, 100)]
        {
            let packet = Packet::new(7, len);
            assert_eq!(packet.is_chargeable(100), is_chargeable, "{len}");
            let copy = packet.clamped(100);
            assert_eq!(copy.is_none(), is_chargeable, "{len}");
            assert!(copy.is_none_or(|copy| (copy.len, copy.handle) == (clamped, 7)), "{len}");
        }
    }

    #[test]
    fn truesize_grows_with_length() {
        let sizes = [0, 176, 177, 688, 689, 1514, 1712, 1713, 4096, 65_535, u32::MAX];
        assert!(sizes
            .windows(2)
            .all(|w| Packet::typical_truesize(w[0]) <= Packet::typical_truesize(w[1])));
    }
}
