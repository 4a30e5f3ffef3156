//! A discipline below a shaper.
//!
//! A shaper must know the length of the next packet before it may send it. Where the discipline
//! below can show that packet ([`Qdisc::peek`]), it stays there. Else it is taken out and held, as
//! Linux does with `qdisc_peek_dequeued`. An AQM below has then had its say, but the packet counts
//! against the limits below until it is sent.
//!
//! Whatever the discipline below gives up is counted on its way to the owner ([`Tally`]).

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use crate::packet::Packet;
use crate::qdisc::fifo::Fifo;
use crate::qdisc::{
    build, Backlog, Config, ConfigError, Device, DropReason, Managed, PacketOwner, Qdisc,
};
use crate::time::Time;
use crate::wire::tcp::AckView;

/// An owner that counts what comes by.
pub(crate) struct Tally<'a> {
    pub owner: &'a mut dyn PacketOwner,
    pub dropped: &'a mut [u64; DropReason::COUNT],
}

impl PacketOwner for Tally<'_> {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.dropped[reason as usize] += 1;
        self.owner.dropped(packet, reason);
    }

    fn keyed_hash(&mut self, packet: &Packet, key: [u64; 2]) -> Option<u32> {
        self.owner.keyed_hash(packet, key)
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        self.owner.ack_view(packet)
    }

    fn expect(&mut self, next: &Packet, after: &Packet) {
        self.owner.expect(next, after);
    }
}

/// A discipline below another one.
pub(crate) struct Child {
    qdisc: Below,
    /// The next packet, where it was taken out to know its length.
    held: Packet,
    holds: bool,
    /// The packet that [`Child::take`] took last.
    taken: Packet,
}

/// The discipline itself. FIFOs, what stands below a class unless it is told otherwise, are called
/// directly.
#[allow(clippy::large_enum_variant)] // Few, and FIFOs are the most of them.
enum Below {
    Fifo(Fifo),
    Other(Box<dyn Managed + Send>),
}

impl Below {
    fn new(config: &Config, device: &Device) -> Result<Below, ConfigError> {
        Ok(match config {
            Config::Fifo(params) => Below::Fifo(Fifo::new(params, device)?),
            config => Below::Other(build(config, device)?),
        })
    }

    #[inline(always)]
    fn get(&self) -> &dyn Managed {
        match self {
            Below::Fifo(fifo) => fifo,
            Below::Other(qdisc) => qdisc.as_ref(),
        }
    }

    fn get_mut(&mut self) -> &mut dyn Managed {
        match self {
            Below::Fifo(fifo) => fifo,
            Below::Other(qdisc) => qdisc.as_mut(),
        }
    }

    #[inline(always)]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        match self {
            Below::Fifo(fifo) => fifo.enqueue(packet, now, owner),
            Below::Other(qdisc) => qdisc.enqueue(packet, now, owner),
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        match self {
            Below::Fifo(fifo) => fifo.dequeue(now, owner),
            Below::Other(qdisc) => qdisc.dequeue(now, owner),
        }
    }

    #[inline(always)]
    fn peek(&self) -> Option<&Packet> {
        match self {
            Below::Fifo(fifo) => fifo.head(),
            Below::Other(qdisc) => qdisc.peek(),
        }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        match self {
            Below::Fifo(fifo) => fifo.is_empty(),
            Below::Other(qdisc) => qdisc.backlog().packets == 0,
        }
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Child({})", self.qdisc.get().config())
    }
}

impl Child {
    /// The discipline that `config` describes, empty.
    pub fn new(config: &Config, device: &Device) -> Result<Child, ConfigError> {
        let qdisc = Below::new(config, device)?;
        let none = Packet::new(0, 0);
        Ok(Child { qdisc, held: none, holds: false, taken: none })
    }

    /// The child itself, if it is a FIFO: the common case, which disciplines above handle without a
    /// call. Packets of a FIFO are never held.
    #[inline(always)]
    pub fn fifo(&mut self) -> Option<&mut Fifo> {
        match &mut self.qdisc {
            Below::Fifo(fifo) => Some(fifo),
            Below::Other(_) => None,
        }
    }

    #[inline]
    pub fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.qdisc.enqueue(packet, now, owner);
    }

    /// The next packet.
    #[inline]
    pub fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.give_back(now) {
            return Some(&mut self.held);
        }
        self.qdisc.dequeue(now, owner)
    }

    /// True if a packet was held: then it is no more.
    #[inline]
    fn give_back(&mut self, now: Time) -> bool {
        let held = core::mem::take(&mut self.holds);
        if held {
            self.qdisc.get_mut().lend(Backlog::default(), now);
        }
        held
    }

    /// Takes the next packet out and says how long it is; [`Child::taken`] gives it. For callers
    /// that may have to ask several.
    #[inline]
    pub fn take(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<u32> {
        let was_held = self.give_back(now);
        match &mut self.qdisc {
            Below::Fifo(fifo) => fifo.dequeue(now, owner).map(|packet| packet.len),
            Below::Other(qdisc) => {
                self.taken = match was_held {
                    true => self.held,
                    false => *qdisc.dequeue(now, owner)?,
                };
                Some(self.taken.len)
            }
        }
    }

    /// The packet that was last taken. A look at the next one in between does it no harm.
    #[inline]
    pub fn taken(&mut self) -> &mut Packet {
        match &mut self.qdisc {
            Below::Fifo(fifo) => fifo.sent().unwrap_or(&mut self.taken),
            Below::Other(_) => &mut self.taken,
        }
    }

    /// True if there may be a packet at `now`. Else asking for one would be in vain.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.next_event().is_some_and(|event| event <= now)
    }

    /// Result of `look` at the next packet, which is left here.
    #[inline]
    pub fn front<T>(
        &mut self,
        now: Time,
        owner: &mut dyn PacketOwner,
        look: impl FnOnce(&Packet) -> T,
    ) -> Option<T> {
        if !self.holds {
            if let Some(packet) = self.qdisc.peek() {
                return Some(look(packet));
            }
            self.held = *self.qdisc.dequeue(now, owner)?;
            self.holds = true;
            let lent = Backlog { packets: 1, bytes: self.held.len.into() };
            self.qdisc.get_mut().lend(lent, now);
        }
        Some(look(&self.held))
    }

    /// The next packet, if it is known already.
    #[inline]
    pub fn known_front(&self) -> Option<&Packet> {
        self.held().or_else(|| self.qdisc.peek())
    }

    #[inline]
    fn held(&self) -> Option<&Packet> {
        self.holds.then_some(&self.held)
    }

    /// Earliest time at which there may be a packet; None while nothing is queued.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        match self.held() {
            Some(packet) => Some(packet.enqueued),
            None => self.qdisc.get().next_event(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.holds && self.qdisc.is_empty()
    }

    pub fn backlog(&self) -> Backlog {
        let mut backlog = self.qdisc.get().backlog();
        if let Some(packet) = self.held() {
            backlog.packets += 1;
            backlog.bytes += u64::from(packet.len);
        }
        backlog
    }

    pub fn qdisc(&self) -> &dyn Managed {
        self.qdisc.get()
    }

    /// Becomes what `spare` is, which is empty. Packets stay: where it is another discipline, they
    /// move over in the order in which the old one gives them up.
    pub fn adopt(&mut self, spare: &mut Child, now: Time, owner: &mut dyn PacketOwner) {
        let (own, new) = (self.qdisc.get_mut(), spare.qdisc.get_mut());
        if (own as &dyn Any).type_id() == (new as &dyn Any).type_id() {
            return own.adopt(new, now, owner);
        }
        if core::mem::take(&mut self.holds) {
            own.lend(Backlog::default(), now);
            new.enqueue(&self.held, now, owner);
        }
        own.reset(&mut Mover { to: new, now, owner });
        core::mem::swap(&mut self.qdisc, &mut spare.qdisc);
    }

    pub fn reset(&mut self, owner: &mut dyn PacketOwner) {
        // No clock is needed for what begins anew.
        if self.give_back(Time::ZERO) {
            owner.dropped(self.held, DropReason::Reset);
        }
        self.qdisc.get_mut().reset(owner);
    }
}

/// An owner that puts what it is given into another discipline.
struct Mover<'a> {
    to: &'a mut dyn Qdisc,
    now: Time,
    owner: &'a mut dyn PacketOwner,
}

impl PacketOwner for Mover<'_> {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.to.enqueue(&packet, self.now, self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use crate::qdisc::{build, parse, Discard};
    use crate::rate::Arithmetic;

    /// An owner that answers, and counts what it was asked.
    #[derive(Default)]
    struct Asked {
        hashes: u32,
        views: u32,
    }

    impl PacketOwner for Asked {
        fn dropped(&mut self, _: Packet, _: DropReason) {}
        fn keyed_hash(&mut self, _: &Packet, _: [u64; 2]) -> Option<u32> {
            self.hashes += 1;
            Some(7)
        }
        fn ack_view(&mut self, _: &Packet) -> Option<AckView> {
            self.views += 1;
            None
        }
    }

    #[test]
    fn a_child_is_known_by_its_settings() {
        for words in ["pfifo limit 7p", "codel limit 7p target 5ms interval 100ms"] {
            let child = Child::new(&parse(words).unwrap(), &Device::default()).unwrap();
            assert_eq!(std::format!("{child:?}"), std::format!("Child({words})"));
        }
    }

    #[test]
    fn questions_to_the_owner_pass_through_all_that_stand_above() {
        let device = Device { arithmetic: Arithmetic::LINUX, ..Device::default() };
        for above in ["tbf rate 8mbit burst 15k", "htb rate 8mbit burst 15k", "drr class 1:1"] {
            for (words, expected) in [("sfq", [4, 0]), ("sfb", [4, 0]), ("cake ack-filter", [0, 4])]
            {
                let config = parse(&std::format!("{above} {words}")).unwrap();
                let (mut qdisc, mut owner) = (build(&config, &device).unwrap(), Asked::default());
                for flow in 1..=4 {
                    let mut packet = Packet::new(flow, 60);
                    (packet.flow, packet.flags) = (flow << 9, Flags::IPV4 | Flags::TCP);
                    packet.class = 1;
                    qdisc.enqueue(&packet, Time(flow), &mut owner);
                }
                assert_eq!([owner.hashes, owner.views], expected, "{above} {words}");
                let order: [Option<u64>; 4] = core::array::from_fn(|n| {
                    qdisc.dequeue(Time(9 + n as u64), &mut owner).map(|packet| packet.handle)
                });
                assert_eq!(order, [1, 2, 3, 4].map(Some), "{above} {words}");
            }
        }
    }

    #[test]
    fn a_packet_that_is_only_looked_at_keeps_its_room() {
        let device = Device::default();
        let fair = ["fq_codel drop_batch 1", "fq_pie", "sfq"];
        for words in ["pfifo", "codel", "pie", "dualpi2", "cobalt"].into_iter().chain(fair) {
            let config = parse(&std::format!("{words} limit 3")).unwrap();
            let mut child = Child::new(&config, &device).unwrap();
            let put = |child: &mut Child| {
                let mut packet = Packet::new(1, 1000);
                packet.flow = 3;
                child.enqueue(&packet, Time(1), &mut Discard);
                child.backlog().packets
            };
            (0..3).for_each(|_| _ = put(&mut child));
            assert_eq!(child.front(Time(2), &mut Discard, |packet| packet.len), Some(1000));
            assert_eq!(put(&mut child), 3, "{words}");
            assert!(child.take(Time(2), &mut Discard).is_some());
            assert_eq!(child.backlog().packets, 2, "{words}");
            assert_eq!((put(&mut child), put(&mut child)), (3, 3), "{words}");
        }
    }
}
