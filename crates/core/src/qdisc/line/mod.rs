//! An emulated line: a FIFO, then a transmitter with a rate, then the way to the other end.
//!
//! A packet leaves the queue when its first byte is sent, as from a modem's buffer into its
//! transmitter. It is delivered when its last byte has arrived: at
//! `start + framed length / rate + delay`. So the FIFO's limit counts waiting packets only. The one
//! being sent and those under way are the delay stage's, whose limit must hold them:
//! `rate * delay / packet size + 1`.
//!
//! The transmitter is a virtual clock: a packet starts when the one before it ends, or when it came
//! if that is later. Starts are computed from those two times, not from when somebody calls. So a
//! driver that wakes late delivers late but never at a lower rate. Times are exact to the
//! nanosecond and carry their remainders ([`ByteTime::charge`]). Super-packets are charged for each
//! segment.
//!
//! Invariants: order is kept; the rate is never exceeded between starts; packets in = delivered +
//! dropped (by either stage) + waiting + under way.

mod words;

use alloc::boxed::Box;

use crate::framing::Framing;
use crate::packet::Packet;
use crate::qdisc::delay::Delay;
use crate::qdisc::fifo::Fifo;
use crate::qdisc::{
    delay, fifo, prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, Managed,
    PacketOwner, Qdisc, Snapshot, Totals,
};
use crate::rate::{ByteTime, Rate};
use crate::steps::Budget;
use crate::time::Time;

/// A line: queue, then serialisation at a rate, then propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The line's queue.
    pub fifo: fifo::Params,
    /// The line's rate; zero for no limit.
    pub rate: Rate,
    /// Framing: a packet's size on the line.
    pub framing: Framing,
    /// Propagation.
    pub delay: delay::Params,
}

impl Params {
    /// Packets that the line can hold on `device`, waiting and under way.
    pub fn max_packets(&self, device: &Device) -> u32 {
        self.fifo.max_packets(device) + self.delay.limit.min(fifo::MAX_PACKETS)
    }
}

/// An emulated line.
#[derive(Clone, Debug)]
pub struct Line {
    params: Params,
    device: Device,
    queue: Fifo,
    transmitter: Transmitter,
    way: Delay,
    /// Packets that a transmitter with a rate could not take at once.
    overlimits: u64,
}

/// State of the transmitter: the time from which the line is free, and the time that a byte
/// occupies it.
#[derive(Clone, Copy, Debug)]
struct Transmitter {
    byte_time: ByteTime,
    /// End of the last packet.
    free: Time,
    /// Fraction of a nanosecond beyond `free`.
    remainder: u64,
}

impl Line {
    /// An idle line.
    pub fn new(params: &Params, device: &Device) -> Result<Line, ConfigError> {
        Ok(Line {
            params: *params,
            device: *device,
            queue: Fifo::new(&params.fifo, device)?,
            transmitter: Transmitter {
                byte_time: ByteTime::new(params.rate, device.arithmetic),
                free: Time::ZERO,
                remainder: 0,
            },
            way: Delay::new(&params.delay, device)?,
            overlimits: 0,
        })
    }

    /// Packets that wait for the transmitter: the standing queue, without those under way.
    pub fn queued(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Time at which the first waiting packet starts; None if none waits.
    #[inline]
    fn next_start(&self) -> Option<Time> {
        self.queue.head().map(|packet| packet.enqueued.max(self.transmitter.free))
    }

    /// Starts every packet whose time has come; of more than a call may handle, the first.
    #[inline]
    fn transmit(&mut self, now: Time, budget: &Budget, owner: &mut dyn PacketOwner) {
        while let Some(start) = self.next_start().filter(|&start| start <= now) {
            let Some(packet) = self.queue.dequeue(now, owner) else { return };
            let transmitter = &mut self.transmitter;
            packet.adj_len = self.params.framing.charge(packet);
            transmitter.free =
                start + transmitter.byte_time.charge(packet.adj_len, &mut transmitter.remainder);
            self.way.admit(packet, packet.enqueued, self.transmitter.free, owner);
            if !budget.spend() {
                return;
            }
        }
    }
}

impl Qdisc for Line {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let budget = Budget::default();
        // First what should have left by now, so that the newcomer meets the true queue.
        self.transmit(now, &budget, owner);
        let clamped = packet.clamped(ByteTime::MOST_BYTES);
        if self.queue.admit(clamped.as_ref().unwrap_or(packet), now, owner)
            && self.transmitter.free > now
        {
            self.overlimits += 1;
        }
        self.transmit(now, &budget, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.transmit(now, &Budget::default(), owner);
        self.way.dequeue(now, owner)
    }

    /// The next delivery, or the next start if nothing is under way (then nothing can be delivered
    /// before that).
    fn next_event(&self) -> Option<Time> {
        self.way.next_event().or_else(|| self.next_start())
    }

    fn backlog(&self) -> Backlog {
        let (waiting, under_way) = (self.queue.backlog(), self.way.backlog());
        Backlog {
            packets: waiting.packets + under_way.packets,
            bytes: waiting.bytes + under_way.bytes,
        }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.queue.reset(owner);
        self.way.reset(owner);
        (self.transmitter.free, self.transmitter.remainder) = (Time::ZERO, 0);
    }
}

impl Managed for Line {
    fn snapshot(&self) -> Snapshot {
        let (queue, way) = (self.queue.totals(), self.way.snapshot().totals);
        let mut totals =
            Totals { enqueued_packets: queue.enqueued_packets, overlimits: self.overlimits, ..way };
        for (sum, dropped) in totals.dropped.iter_mut().zip(queue.dropped) {
            *sum += dropped;
        }
        Snapshot { totals, backlog: self.backlog(), detail: Detail::Line(()) }
    }

    fn config(&self) -> Config {
        Config::Line(self.params)
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Line>(spare) else { return };
        self.transmit(now, &Budget::default(), owner);
        self.queue.change(&mut spare.queue, owner);
        self.way.change(&mut spare.way, owner);
        if spare.params.rate != self.params.rate {
            self.transmitter.byte_time = spare.transmitter.byte_time;
            self.transmitter.remainder = 0;
        }
        self.params = spare.params;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Cells;
    use crate::qdisc::{Discard, DropReason};
    use crate::time::Span;

    fn params(bits: u64, delay: u64, limit: u32) -> Params {
        Params {
            fifo: fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(limit) },
            rate: Rate::from_bits(bits),
            framing: Framing::default(),
            delay: delay::Params { delay: Span(delay), jitter: Span::ZERO, limit: 1000 },
        }
    }

    fn line(bits: u64, delay: u64, limit: u32) -> Line {
        Line::new(&params(bits, delay, limit), &Device::default()).unwrap()
    }

    #[test]
    fn a_line_holds_what_waits_and_what_is_under_way() {
        let mut params = params(1_000_000, 5, 100);
        for (in_flight, most) in [(0, 100), (1, 101), (1_000, 1_100)] {
            params.delay.limit = in_flight;
            assert_eq!(params.max_packets(&Device::default()), most);
        }
    }

    /// Delivery times, found by calling exactly when the line asks for it.
    fn deliver(line: &mut Line) -> std::vec::Vec<(u64, u64)> {
        let mut out = std::vec::Vec::new();
        for _ in 0..10_000 {
            let Some(at) = line.next_event() else { break };
            if let Some(packet) = line.dequeue(at, &mut Discard) {
                out.push((packet.handle, at.0));
            }
        }
        out
    }

    #[test]
    fn a_packet_takes_its_serialisation_and_the_delay() {
        // 1000 bytes at 8 Mbit/s: 1 ms each.
        let mut line = line(8_000_000, 45_000_000, 10);
        for handle in 0..3 {
            line.enqueue(&Packet::new(handle, 1000), Time(5), &mut Discard);
        }
        assert_eq!(line.queued().packets, 2, "one is being sent");
        assert_eq!(line.backlog().packets, 3);
        assert_eq!(deliver(&mut line), [(0, 46_000_005), (1, 47_000_005), (2, 48_000_005)]);
    }

    #[test]
    fn a_late_driver_does_not_slow_the_line_down() {
        let mut line = line(8_000_000, 0, 10);
        for handle in 0..5 {
            line.enqueue(&Packet::new(handle, 1000), Time(0), &mut Discard);
        }
        // Nobody called for 4.5 ms: the fifth is in its middle, and a sixth follows it at once.
        line.enqueue(&Packet::new(5, 1000), Time(4_500_000), &mut Discard);
        assert_eq!(line.queued().packets, 1);
        let delivered = (0..6).map(|handle| (handle, 1_000_000 * (handle + 1)));
        assert_eq!(deliver(&mut line), delivered.collect::<std::vec::Vec<_>>());
    }

    #[test]
    fn the_rate_is_exact_over_many_packets() {
        // 1514 bytes at 9,999,999 bit/s (1,249,999 whole bytes/s): an awkward fraction of a ns.
        let mut line = line(9_999_999, 0, 10_000);
        for handle in 0..1000 {
            line.enqueue(&Packet::new(handle, 1514), Time(0), &mut Discard);
        }
        let last = deliver(&mut line)[999].1;
        assert_eq!(last, 1_514_000u64 * 1_000_000_000 / 1_249_999);
    }

    #[test]
    fn framing_and_segments_are_charged() {
        let mut params = params(8_000_000, 0, 10);
        params.framing = Framing { compensate: true, overhead: 32, mpu: 0, cells: Cells::Atm };
        let mut line = Line::new(&params, &Device::default()).unwrap();
        line.enqueue(&Packet::new(0, 1514), Time(0), &mut Discard);
        // 1532 bytes are 32 cells: 1696 bytes, 1 µs each.
        assert_eq!(deliver(&mut line), [(0, 1_696_000)]);
        let mut packet = Packet::new(1, 66 + 2 * 1448);
        (packet.gso_size, packet.gso_segs, packet.header_len) = (1448, 2, 66);
        line.enqueue(&packet, Time(10_000_000), &mut Discard);
        assert_eq!(deliver(&mut line), [(1, 10_000_000 + 2 * 1_696_000)]);
    }

    #[test]
    fn a_length_that_no_packet_has_is_taken_for_the_nearest() {
        let mut line = line(8_000_000, 0, 10);
        for (handle, len) in [(0, 0), (1, u32::MAX)] {
            line.enqueue(&Packet::new(handle, len), Time(0), &mut Discard);
        }
        assert_eq!(deliver(&mut line), [(0, 1_000), (1, 1_000 + (1 << 19) * 1_000)]);
    }

    #[test]
    fn limits_of_both_stages_drop_and_count() {
        let mut params = params(8_000_000, 100_000_000, 2);
        params.delay.limit = 4;
        let mut line = Line::new(&params, &Device::default()).unwrap();
        for handle in 0..4 {
            line.enqueue(&Packet::new(handle, 1000), Time(0), &mut Discard);
        }
        let snapshot = line.snapshot();
        assert_eq!(snapshot.totals.dropped[DropReason::Overlimit as usize], 1, "waiting: 2");
        assert_eq!(snapshot.totals.overlimits, 2);
        for handle in 4..10 {
            line.enqueue(&Packet::new(handle, 1000), Time(handle * 10_000_000), &mut Discard);
        }
        let Snapshot { totals, backlog, .. } = line.snapshot();
        assert_eq!((totals.enqueued_packets, totals.drops(), backlog.packets), (10, 6, 4));
        let delivered = deliver(&mut line).len() as u64;
        assert_eq!((delivered, line.snapshot().totals.sent_packets), (4, 4));
    }

    #[test]
    fn settings_change_without_losing_packets() {
        let mut line = line(8_000_000, 0, 10);
        for handle in 0..3 {
            line.enqueue(&Packet::new(handle, 1000), Time(0), &mut Discard);
        }
        let faster = Config::Line(params(80_000_000, 7, 10));
        line.configure(&faster, Time(500_000), &mut Discard).unwrap();
        assert_eq!(line.config(), faster);
        // The first is being sent at the old rate, over the old way.
        assert_eq!(deliver(&mut line), [(0, 1_000_000), (1, 1_100_007), (2, 1_200_007)]);
    }

    #[test]
    fn no_rate_is_no_wait() {
        let mut line = line(0, 300, 10);
        for handle in 0..3 {
            line.enqueue(&Packet::new(handle, 1000), Time(handle), &mut Discard);
        }
        assert_eq!(deliver(&mut line), [(0, 300), (1, 301), (2, 302)]);
        line.enqueue(&Packet::new(9, 1000), Time(1000), &mut Discard);
        line.reset(&mut Discard);
        assert_eq!(line.next_event(), None);
        assert_eq!(line.snapshot().totals.dropped[DropReason::Reset as usize], 1);
    }

    #[test]
    fn conservation_order_and_rate_hold_for_random_traffic() {
        const NS_PER_BYTE: u64 = 100;
        let mut random = crate::random::Random::new(11);
        let mut settings = params(80_000_000, 40_000, 8);
        settings.delay.limit = 6;
        let mut line = Line::new(&settings, &Device::default()).unwrap();
        let (mut now, mut last, mut delivered) = (Time::ZERO, None, 0u64);
        let mut free = Time::ZERO;
        for handle in 0..50_000u64 {
            now += Span(u64::from(random.below(120_000)));
            // Deliveries up to now, some asked for in time and some late.
            while let Some(at) = line.next_event().filter(|&at| at <= now) {
                let at = if random.below(2) == 0 { at } else { now };
                if let Some(packet) = line.dequeue(at, &mut Discard) {
                    assert!(last.is_none_or(|last| last < packet.handle), "reordered");
                    // Sent no sooner than the rate allows after the one before.
                    let time = Span(u64::from(packet.len) * NS_PER_BYTE);
                    free = free.max(packet.enqueued) + time;
                    assert!(at >= free + settings.delay.delay, "faster than the line");
                    (last, delivered) = (Some(packet.handle), delivered + 1);
                }
            }
            line.enqueue(&Packet::new(handle, 64 + random.below(1451)), now, &mut Discard);
            let Snapshot { totals, backlog, .. } = line.snapshot();
            assert_eq!(totals.enqueued_packets, handle + 1);
            let left = totals.sent_packets + totals.drops() + u64::from(backlog.packets);
            assert_eq!((totals.enqueued_packets, totals.sent_packets), (left, delivered));
            assert!(backlog.packets <= settings.max_packets(&Device::default()));
        }
        assert!(line.snapshot().totals.drops() > 1000, "the limits were at work");
        assert!(delivered > 20_000);
    }

    #[test]
    fn a_long_pause_costs_each_call_little() {
        let mut settings = params(8_000_000_000, 0, 20_000);
        settings.delay.limit = 20_000;
        let mut line = Line::new(&settings, &Device::default()).unwrap();
        for handle in 0..20_000 {
            line.enqueue(&Packet::new(handle, 1000), Time(0), &mut Discard);
        }
        // All should have been sent an hour ago.
        let now = Time::ZERO + Span::from_secs(3_600);
        let mut delivered = 0;
        crate::steps::take();
        while line.backlog().packets > 0 {
            assert!(line.next_event().unwrap() <= now);
            let packet = line.dequeue(now, &mut Discard).expect("due");
            assert_eq!(packet.handle, delivered);
            delivered += 1;
            assert!(crate::steps::take() <= crate::steps::MOST);
        }
        assert_eq!(delivered, 20_000);
    }
}
