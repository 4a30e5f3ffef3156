//! The books of a discipline: bytes and packets that came, and their fates.
//!
//! A packet that is queued is entered by [`Books::came`]; when it is taken out, by [`Books::went`].
//! It is then sent, unless [`Books::withdraw`] or [`Books::discard`] follows. That is how packets
//! in = packets out + dropped + queued.
//!
//! The cost of a pair of enqueue and dequeue is what it stores to memory, one word a cycle. So
//! nothing is counted here that follows from other counters.

use crate::packet::Packet;
use crate::qdisc::{DropReason, PacketOwner, Totals};
use crate::time::Time;

/// Bytes and packets of a discipline, by their fate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Books {
    /// Bytes that were ever queued, and those of them that were taken out.
    bytes_in: u64,
    bytes_out: u64,
    /// Bytes that were taken out, but not sent.
    given_up: u64,
    /// But for what was sent, which the others tell; see [`Books::totals`].
    pub totals: Totals,
}

impl Books {
    /// A packet of `len` bytes was queued.
    #[inline(always)]
    pub fn came(&mut self, len: u32) {
        self.bytes_in += u64::from(len);
    }

    /// A packet of `len` bytes was taken out.
    #[inline(always)]
    pub fn went(&mut self, len: u32) {
        self.bytes_out += u64::from(len);
    }

    /// Bytes that were ever queued.
    #[inline(always)]
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// Bytes queued.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes_in - self.bytes_out
    }

    /// Everything that came, was sent and was dropped so far, while so many packets are `queued`.
    pub fn totals(&self, queued: u32) -> Totals {
        Totals { sent_bytes: self.bytes_out - self.given_up, ..self.totals }.settled(queued)
    }

    /// A packet of `len` bytes, which was taken out, is not sent.
    #[inline]
    pub fn withdraw(&mut self, len: u32) {
        self.given_up += u64::from(len);
    }

    /// Gives up `packet`, which was taken out.
    pub fn discard(&mut self, packet: &Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.withdraw(packet.len);
        self.give_up(*packet, reason, owner);
    }

    /// Gives up an arrival that is not queued.
    #[cold]
    pub fn refuse(
        &mut self,
        packet: &Packet,
        now: Time,
        reason: DropReason,
        owner: &mut dyn PacketOwner,
    ) {
        self.give_up(Packet { enqueued: now, ..*packet }, reason, owner);
    }

    /// Gives a packet that is not (or no longer) queued to its owner.
    pub fn give_up(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.totals.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }
}
