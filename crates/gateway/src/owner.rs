//! The owner of a direction's packets: what the discipline decides becomes a verdict here.
//!
//! A packet's handle is the kernel's number of it. Its bytes are at hand only while it arrives: the
//! ACK filter's questions are answered about the arriving packet, and not about older ones.
//!
//! Nothing here allocates while packets flow; `collected` grows only when a discipline is emptied.

use simnel_core::packet::Flags;
use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::wire::tcp::AckView;
use simnel_core::{Packet, Time};

use crate::flows;
use crate::nfqueue::Verdicts;
use crate::nft::MarkBits;

/// Fate of a packet that leaves the discipline sideways.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is dropped.
    Drop,
    /// `reset` hands it over to us.
    Collect,
}

/// The packets' owner: verdicts, and the arriving TCP header for the ACK filter.
pub(crate) struct Owner {
    pub(crate) verdicts: Verdicts,
    pub(crate) bits: MarkBits,
    /// Accounts of the direction's flows.
    pub(crate) flows: flows::Table,
    /// The TCP header of the packet that is being enqueued, if the ACK filter may ask for it.
    pub(crate) arriving: Option<AckView>,
    pub(crate) leaving: Leaving,
    pub(crate) collected: Vec<Packet>,
    pub(crate) released: u64,
    /// Bytes of them.
    pub(crate) released_bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    pub(crate) washed: u64,
}

impl Owner {
    /// An owner without packets.
    pub(crate) fn new(verdicts: Verdicts, bits: MarkBits) -> Owner {
        Owner {
            verdicts,
            bits,
            flows: flows::Table::new(),
            arriving: None,
            leaving: Leaving::Drop,
            collected: Vec::new(),
            released: 0,
            released_bytes: 0,
            dropped: 0,
            marked: 0,
            washed: 0,
        }
    }

    /// Lets a packet go at `now`, with what the discipline has decided about its header.
    #[inline]
    pub(crate) fn release(&mut self, packet: &Packet, now: Time) {
        self.flows.released(packet, now.since(packet.enqueued));
        self.released += 1;
        self.released_bytes += u64::from(packet.len);
        let mut bits = 0;
        if packet.flags.has(Flags::MARKED) {
            bits |= self.bits.ce();
            self.marked += 1;
        }
        if packet.flags.has(Flags::WASHED) {
            bits |= self.bits.wash();
            self.washed += 1;
        }
        let mark = (bits != 0).then_some(packet.mark & !self.bits.mask() | bits);
        self.verdicts.accept(id(packet), mark);
    }
}

impl PacketOwner for Owner {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        if self.leaving == Leaving::Collect && reason == DropReason::Reset {
            self.collected.push(packet);
            return;
        }
        self.dropped += 1;
        self.flows.dropped(&packet, reason);
        self.verdicts.drop(id(&packet));
    }

    fn ack_view(&mut self, _: &Packet) -> Option<AckView> {
        self.arriving.take()
    }
}

/// The kernel's number of a packet.
#[inline]
pub(crate) fn id(packet: &Packet) -> u32 {
    packet.handle as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    /// Marks of the packets that `owner` lets go, with the verdict of each.
    fn marks(owner: &mut Owner) -> Vec<Option<u32>> {
        let mut all = Vec::new();
        owner.verdicts.flush(|bytes| {
            for message in Messages(bytes) {
                let mut attributes = message.attributes().skip(1);
                let mark = attributes.next().and_then(|(_, mark)| mark.first_chunk());
                all.push(mark.map(|mark| u32::from_be_bytes(*mark)));
            }
            Ok(())
        });
        all
    }

    /// The bits of decisions are ours, all others stay; a packet about which nothing was decided
    /// keeps its mark.
    #[test]
    fn decisions_are_told_in_our_bits_of_the_mark() {
        let bits = MarkBits::DEFAULT;
        let mut owner = Owner::new(Verdicts::new(5, 16), bits);
        let mut packet = Packet::new(1, 100);
        packet.mark = 0xf000_00ff;
        for flags in [Flags::default(), Flags::MARKED, Flags::WASHED, Flags::MARKED | Flags::WASHED]
        {
            packet.flags = flags;
            owner.release(&packet, Time(1));
        }
        let others = 0xf000_00ff & !bits.mask();
        let both = bits.ce() | bits.wash();
        let expected = [None, Some(bits.ce()), Some(bits.wash()), Some(both)];
        assert_eq!(marks(&mut owner), expected.map(|mark| mark.map(|mark| others | mark)));
        assert_eq!((owner.released, owner.released_bytes), (4, 400));
        assert_eq!((owner.marked, owner.washed, owner.dropped), (2, 2, 0));
    }

    #[test]
    fn what_is_reset_is_collected_where_that_is_asked_and_else_dropped() {
        let mut owner = Owner::new(Verdicts::new(5, 16), MarkBits::DEFAULT);
        owner.dropped(Packet::new(1, 100), DropReason::Reset);
        owner.leaving = Leaving::Collect;
        owner.dropped(Packet::new(2, 100), DropReason::Reset);
        owner.dropped(Packet::new(3, 100), DropReason::Overlimit);
        let collected: Vec<u64> = owner.collected.iter().map(|packet| packet.handle).collect();
        assert_eq!((collected, owner.dropped), (vec![2], 2));
        assert_eq!(marks(&mut owner), [None, None]);
    }

    /// The discipline asks about the packet that arrives, once; of older ones nothing is known.
    #[test]
    fn the_arriving_header_is_told_once() {
        let mut owner = Owner::new(Verdicts::new(5, 16), MarkBits::DEFAULT);
        let view = AckView { ack: 7, ..AckView::default() };
        owner.arriving = Some(view);
        let packet = Packet::new(1, 100);
        assert_eq!(owner.ack_view(&packet), Some(view));
        assert_eq!(owner.ack_view(&packet), None);
    }
}
