//! A discipline of one's own: last in, first out, beside `cake` and driven as it is.
//!
//! `cargo run -p simnel-core --example own_discipline`

use simnel_core::qdisc::{build, parse, Backlog, Device, Discard, DropReason, PacketOwner, Qdisc};
use simnel_core::{Packet, Time};

/// A stack of packets, of which the oldest goes when it is full.
struct Lifo {
    stack: Vec<Packet>,
    /// The packet that was dequeued last: the caller's until the next call.
    out: Packet,
}

const LIMIT: usize = 4;

impl Qdisc for Lifo {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        if self.stack.len() == LIMIT {
            owner.dropped(self.stack.remove(0), DropReason::Overlimit);
        }
        self.stack.push(*packet);
        self.stack.last_mut().expect("just pushed").enqueued = now;
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.out = self.stack.pop()?;
        Some(&mut self.out)
    }

    fn next_event(&self) -> Option<Time> {
        (!self.stack.is_empty()).then_some(Time::ZERO)
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.stack.iter().map(|packet| u64::from(packet.len)).sum();
        Backlog { packets: self.stack.len() as u32, bytes }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.stack.drain(..).for_each(|packet| owner.dropped(packet, DropReason::Reset));
    }
}

/// The order in which six packets leave.
fn order(qdisc: &mut (impl Qdisc + ?Sized)) -> Vec<u64> {
    let now = Time::ZERO;
    (0..6).for_each(|number| qdisc.enqueue(&Packet::new(number, 1514), now, &mut Discard));
    std::iter::from_fn(|| Some(qdisc.dequeue(now, &mut Discard)?.handle)).collect()
}

fn main() {
    let mut lifo = Lifo { stack: Vec::new(), out: Packet::new(0, 0) };
    let mut cake = build(&parse("cake").expect("cake"), &Device::default()).expect("cake");
    let (last_first, fair) = (order(&mut lifo), order(cake.as_mut()));
    println!("lifo {last_first:?}\ncake {fair:?}");
    assert_eq!(last_first, [5, 4, 3, 2]);
    assert_eq!(fair, [0, 1, 2, 3, 4, 5]);
}
