//! Drives one cake by hand: packets in, packets out, every drop kept with its reason.

use std::collections::BTreeMap;

use simnel_core::packet::Flags;
use simnel_core::qdisc::{
    self, build, cake, cake::TinStats, Detail, Device, DropReason, Managed, PacketOwner,
};
use simnel_core::wire::AckView;
use simnel_core::{steps, Packet, Span, Time};

/// A cake, its clock and its packets' owner.
pub struct Driver {
    pub cake: Box<dyn Managed>,
    pub now: Time,
    pub owner: Owner,
    next_handle: u64,
}

/// Remembers what was dropped, and which TCP header stands behind which handle.
#[derive(Default)]
pub struct Owner {
    pub dropped: Vec<(Packet, DropReason)>,
    pub views: BTreeMap<u64, AckView>,
}

impl PacketOwner for Owner {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.dropped.push((packet, reason));
    }
    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        self.views.get(&packet.handle).copied()
    }
}

/// A packet of a flow between hosts of its own. Flows of different numbers below 128 lie in
/// different sets of eight queues.
pub fn packet(flow: u32, len: u32) -> Packet {
    let mut packet = Packet::new(0, len);
    packet.flow = u64::from((flow + 1) * 8);
    packet.src_host = flow * 8 + 1;
    packet.dst_host = flow * 8 + 2;
    packet.flags = Flags::IPV4;
    packet
}

/// `packet` with some of its fields changed.
pub fn with(mut packet: Packet, change: impl FnOnce(&mut Packet)) -> Packet {
    change(&mut packet);
    packet
}

impl Driver {
    /// The cake that `words` describe, without its name.
    pub fn new(words: &str) -> Driver {
        // A seed of many bits: the first draws from a small one are small.
        Driver::on(words, &Device { seed: 0x9e37_79b9_7f4a_7c15, ..Device::default() })
    }

    /// The same on a certain device.
    pub fn on(words: &str, device: &Device) -> Driver {
        let config = qdisc::parse(&format!("cake {words}")).unwrap_or_else(|e| panic!("{e}"));
        let cake = build(&config, device).unwrap_or_else(|e| panic!("`{words}`: {e}"));
        let now = Time(100_000_000_000);
        Driver { cake, now, owner: Owner::default(), next_handle: 1 }
    }

    /// Hands in `packet` under a new handle, which is returned.
    pub fn put(&mut self, mut packet: Packet) -> u64 {
        packet.handle = self.next_handle;
        self.next_handle += 1;
        steps::take();
        self.cake.enqueue(&packet, self.now, &mut self.owner);
        self.check_steps();
        packet.handle
    }

    /// Hands in `packet` with a TCP header behind it.
    pub fn put_tcp(&mut self, packet: Packet, view: AckView) -> u64 {
        self.owner.views.insert(self.next_handle, view);
        self.put(packet)
    }

    /// Hands in `count` copies.
    pub fn put_all(&mut self, packet: Packet, count: u32) {
        for _ in 0..count {
            self.put(packet);
        }
    }

    /// One call, now.
    pub fn take_now(&mut self) -> Option<Packet> {
        steps::take();
        let packet = self.cake.dequeue(self.now, &mut self.owner).copied();
        self.check_steps();
        packet
    }

    fn check_steps(&self) {
        let taken = steps::take();
        assert!(taken <= steps::MOST, "a call took {taken} steps");
    }

    /// The next packet whenever it may be sent; None if nothing is queued.
    pub fn take(&mut self) -> Option<Packet> {
        for _ in 0..1_000_000 {
            self.now = self.now.max(self.cake.next_event()?);
            if let Some(packet) = self.take_now() {
                return Some(packet);
            }
        }
        panic!("{} packets never come out", self.cake.backlog().packets);
    }

    /// All packets, each as soon as it may be sent.
    pub fn take_all(&mut self) -> Vec<Packet> {
        std::iter::from_fn(|| self.take()).collect()
    }

    /// Time passes.
    pub fn wait(&mut self, span: Span) {
        self.now += span;
    }

    /// Changes the settings to `words`.
    pub fn change(&mut self, words: &str) {
        let config = qdisc::parse(&format!("cake {words}")).unwrap_or_else(|e| panic!("{e}"));
        let changed = self.cake.configure(&config, self.now, &mut self.owner);
        assert_eq!(changed, Ok(()), "`{words}`");
        assert_eq!(self.cake.config(), config, "`{words}`");
    }

    /// Cake's own statistics.
    pub fn stats(&self) -> cake::Stats {
        match self.cake.snapshot().detail {
            Detail::Cake(stats) => stats,
            _ => panic!("cake without its statistics"),
        }
    }

    /// Statistics of the tin that `tc -s` lists as number `index`, from 0.
    pub fn tin(&self, index: usize) -> TinStats {
        self.stats().tins[index]
    }

    /// Tin and queue of the packet just taken.
    pub fn place(&self) -> (u8, u32) {
        self.cake.placement().expect("cake has tins and queues")
    }

    /// Packets dropped for `reason`.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.cake.snapshot().totals.dropped[reason as usize]
    }

    /// Handles of what was dropped, in order.
    pub fn lost(&self) -> Vec<u64> {
        self.owner.dropped.iter().map(|(packet, _)| packet.handle).collect()
    }
}
