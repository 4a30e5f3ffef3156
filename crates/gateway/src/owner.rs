//! The owner of a direction's packets: what the discipline decides becomes a verdict here.
//!
//! A handle's lower half is the kernel's number of the packet. Its upper half is the slot of the TCP
//! header that is kept for the ACK filter, plus one, or zero; slots exist only while that filter is on,
//! as many as the kernel keeps packets for us.
//!
//! Nothing here allocates while packets flow; `collected` grows only when a discipline is emptied.

use simnel_core::packet::Flags;
use simnel_core::qdisc::{cake, DropReason, PacketOwner};
use simnel_core::tc::Config;
use simnel_core::wire::tcp::AckView;
use simnel_core::Packet;

use crate::classify;
use crate::nfqueue::Verdicts;
use crate::nft::MarkBits;

/// What becomes of a packet that leaves the discipline sideways.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is dropped.
    Drop,
    /// `reset` hands it over to us.
    Collect,
}

/// The packets' owner: verdicts, and TCP headers for the ACK filter.
pub(crate) struct Owner {
    pub(crate) verdicts: Verdicts,
    pub(crate) bits: MarkBits,
    pub(crate) views: AckViews,
    pub(crate) leaving: Leaving,
    pub(crate) collected: Vec<Packet>,
    pub(crate) released: u64,
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    pub(crate) washed: u64,
}

impl Owner {
    /// An owner without packets.
    pub(crate) fn new(verdicts: Verdicts, bits: MarkBits, views: AckViews) -> Owner {
        Owner {
            verdicts,
            bits,
            views,
            leaving: Leaving::Drop,
            collected: Vec::new(),
            released: 0,
            dropped: 0,
            marked: 0,
            washed: 0,
        }
    }

    /// Lets a packet go, with what the discipline has decided about its header.
    #[inline]
    pub(crate) fn release(&mut self, packet: &Packet) {
        self.views.free(packet);
        self.released += 1;
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
        self.views.free(&packet);
        self.dropped += 1;
        self.verdicts.drop(id(&packet));
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        self.views.get(packet)
    }
}

/// The kernel's number of a packet: the lower half of its handle.
#[inline]
pub(crate) fn id(packet: &Packet) -> u32 {
    packet.handle as u32
}

/// TCP headers of queued packets, while the ACK filter is on. The upper half of a handle is the slot
/// plus one, or zero.
#[derive(Default)]
pub(crate) struct AckViews {
    on: bool,
    slots: Box<[AckView]>,
    free: Vec<u32>,
    pub(crate) missing: u64,
}

impl AckViews {
    /// Follows the settings; allocates when the filter is first turned on.
    pub(crate) fn follow(&mut self, config: &Config, capacity: u32) {
        self.on = matches!(config, Config::Cake(p) if p.ack_filter != cake::AckFilter::Off);
        if self.on && self.slots.is_empty() {
            self.slots = vec![AckView::default(); capacity as usize].into_boxed_slice();
            self.free = (0..capacity).rev().collect();
        }
    }

    #[inline]
    pub(crate) fn keep(&mut self, packet: &mut Packet, bytes: &[u8]) {
        if !self.on || !packet.flags.has(Flags::TCP) {
            return;
        }
        let Some(view) = classify::ack_view(bytes) else { return };
        let Some(slot) = self.free.pop() else {
            self.missing += 1;
            return;
        };
        self.slots[slot as usize] = view;
        packet.handle |= u64::from(slot + 1) << 32;
    }

    fn get(&self, packet: &Packet) -> Option<AckView> {
        let slot = (packet.handle >> 32).checked_sub(1)?;
        self.slots.get(slot as usize).copied()
    }

    #[inline]
    fn free(&mut self, packet: &Packet) {
        if let Some(slot) = (packet.handle >> 32).checked_sub(1) {
            self.free.push(slot as u32);
        }
    }
}
