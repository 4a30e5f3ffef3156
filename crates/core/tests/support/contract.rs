//! The contract of `qdisc::Qdisc`, driven by random operations.
//!
//! After every operation:
//!
//! * Packets in = out + dropped + queued, by the discipline's own count and by ours.
//! * Every handle leaves once, unchanged but for ECN and DSCP.
//! * Packets alike in all that a discipline looks at keep their order.
//! * Packets and memory are within the limits and counted as we do.
//! * A queued packet means a next event, before which nothing comes out and at which something
//!   happens.
//!
//! A call takes at most [`steps::MOST`] steps. An acknowledgement is filtered only if one that says
//! as much is still queued or was sent. An error of `configure` changes nothing. In the end the
//! queue drains by following `next_event`, in a bounded number of steps.
//!
//! Most runs are short. [`exercise_floods`] is for what takes thousands of packets or flows.
//!
//! A packet of no bytes or of more than 512 KiB does not exist; a discipline may take it for the
//! nearest that does.

use std::collections::BTreeMap;
use std::mem::discriminant;

use simnel_core::packet::Flags;
use simnel_core::qdisc::{build, Config, Detail, Device, DropReason, Managed, PacketOwner};
use simnel_core::steps;
use simnel_core::wire::{ack_view, AckView, LinkLayer};
use simnel_core::{Packet, Span, Time};

use super::input::Input;
use super::packets::{random_ack, random_frame, random_packet, Flood};
use super::table::random_config;

/// Lengths that exist.
const LENGTHS: (u32, u32) = (1, 1 << 19);
/// Packets in one run: enough for every queue to overflow, few enough for thousands of runs a
/// second.
const MAX_PACKETS: usize = 2_000;
/// Packets in one run with floods: enough for the longest limits by default, and for more flows
/// than any discipline looks at in one call.
const FLOOD_PACKETS: usize = 60_000;
/// Steps of a call that gave nothing because it had done enough.
const AT_WORK: u64 = steps::PER_LOOP as u64 / 4;
/// Calls of `dequeue` without a packet that draining may take, for each packet queued and one more.
/// A shaper may wake early, and an AQM may move its clock, but not forever.
const IDLE_STEPS_PER_PACKET: usize = 16;

/// Fate of a packet so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Queued,
    Sent,
    Dropped(DropReason),
}

/// A packet that went in under one handle, and its fate.
struct Entry {
    packet: Packet,
    frame: Vec<u8>,
    place: Place,
    /// Changes of settings before it came.
    epoch: u32,
}

/// All that a discipline may sort packets by.
type Alike = (u64, [u32; 2], u8, u8, [u32; 2], bool);

/// `by_ecn`: the discipline sorts by the ECN field, too. For others it decides nothing but marks.
fn alike(packet: &Packet, by_ecn: bool) -> Alike {
    let Packet { flow, src_host, dst_host, tos, flags, mark, class, .. } = *packet;
    let tos = if by_ecn { tos } else { tos & !3 };
    (flow, [src_host, dst_host], tos, flags.0, [mark, class], packet.segments() > 1)
}

/// True of `dualpi2`, also below others.
fn sorts_by_ecn(qdisc: &dyn Managed) -> bool {
    qdisc.config().to_string().contains("dualpi2")
}

/// Owner of all packets of a run; a handle is an index plus [`Ledger::BASE`].
#[derive(Default)]
struct Ledger {
    entries: Vec<Entry>,
    queued: u64,
    /// As handed in, and as the nearest lengths that exist.
    queued_bytes: [u64; 2],
    queued_memory: u64,
    sent: u64,
    sent_bytes: u64,
    dropped: [u64; DropReason::COUNT],
    epoch: u32,
    /// The last one sent of packets alike.
    last_sent: BTreeMap<Alike, usize>,
}

impl Ledger {
    /// Handles are opaque: none of them is a small number.
    const BASE: u64 = 0xfeed_0000_0000_0000;

    fn admit(&mut self, mut packet: Packet, frame: Vec<u8>) -> Packet {
        packet.handle = Ledger::BASE + self.entries.len() as u64;
        self.entries.push(Entry { packet, frame, place: Place::Queued, epoch: self.epoch });
        self.queued += 1;
        for (sum, len) in self.queued_bytes.iter_mut().zip(lengths(&packet)) {
            *sum += u64::from(len);
        }
        self.queued_memory += u64::from(packet.truesize);
        packet
    }

    /// `packet` has left the discipline; it must be one that was in there, and the same still.
    fn leave(&mut self, packet: &Packet, place: Place) {
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let entry = self.entries.get_mut(index).expect("a handle that nobody handed in");
        assert_eq!(entry.place, Place::Queued, "handle {index} left twice, now {place:?}");
        entry.place = place;
        let was = entry.packet;
        assert_eq!(
            (packet.flow, packet.src_host, packet.dst_host, packet.truesize),
            (was.flow, was.src_host, was.dst_host, was.truesize),
        );
        assert!(lengths(&was).contains(&packet.len), "{} bytes were {}", packet.len, was.len);
        assert_eq!((packet.gso_size, packet.gso_segs), (was.gso_size, was.gso_segs));
        assert_eq!((packet.mark, packet.class), (was.mark, was.class));
        let added = Flags(packet.flags.0 & !was.flags.0);
        assert_eq!(packet.flags.0 & was.flags.0, was.flags.0, "a flag was lost");
        assert_eq!(added.0 & !(Flags::MARKED | Flags::WASHED).0, 0, "a flag was invented");
        if packet.dscp() != was.dscp() {
            assert!(packet.dscp() == 0 && added.has(Flags::WASHED), "DSCP changed, not washed");
        }
        if packet.tos & 3 != was.tos & 3 {
            assert!(packet.tos & 3 == 3 && was.tos & 3 != 0 && added.has(Flags::MARKED));
        }
        self.queued -= 1;
        for (sum, len) in self.queued_bytes.iter_mut().zip(lengths(&was)) {
            *sum -= u64::from(len);
        }
        self.queued_memory -= u64::from(was.truesize);
    }

    /// `packet` is filtered: a later acknowledgement of the same connection says as much, and is
    /// queued or was sent.
    fn check_filtered(&self, packet: &Packet) {
        /// Addresses and ports in a frame of [`super::packets::ack`].
        const CONNECTION: std::ops::Range<usize> = 26..38;
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let view = |entry: &Entry| ack_view(LinkLayer::Ethernet, &entry.frame);
        let dropped = &self.entries[index];
        let said = view(dropped).expect("no acknowledgement was filtered").ack;
        let covers = |entry: &Entry| {
            matches!(entry.place, Place::Queued | Place::Sent)
                && entry.frame.get(CONNECTION) == dropped.frame.get(CONNECTION)
                && view(entry).is_some_and(|later| later.ack.wrapping_sub(said) < 1 << 31)
        };
        assert!(self.entries[index + 1..].iter().any(covers), "{index} was filtered for nothing");
    }

    /// `packet` is sent: after all those like it that came before it under the same settings.
    fn check_order(&mut self, packet: &Packet, by_ecn: bool) {
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let key = alike(&self.entries[index].packet, by_ecn);
        if let Some(last) = self.last_sent.insert(key, index) {
            let same_settings = self.entries[last].epoch == self.entries[index].epoch;
            assert!(
                last < index || !same_settings,
                "{index} was sent after {last}, which is newer: {key:?}"
            );
        }
    }
}

/// The length of a packet as handed in, and as the nearest that exists.
fn lengths(packet: &Packet) -> [u32; 2] {
    [packet.len, packet.len.clamp(LENGTHS.0, LENGTHS.1)]
}

impl PacketOwner for Ledger {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        if reason == DropReason::AckFilter {
            self.check_filtered(&packet);
        }
        self.leave(&packet, Place::Dropped(reason));
        self.dropped[reason as usize] += 1;
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let entry = self.entries.get(index).expect("a view of a handle that nobody handed in");
        assert_eq!(entry.place, Place::Queued, "a view of a packet that has left");
        ack_view(LinkLayer::Ethernet, &entry.frame)
    }
}

/// A discipline with its ledger and its clock.
struct Run {
    qdisc: Box<dyn Managed>,
    ledger: Ledger,
    now: Time,
    /// Two flows have shared a queue: one of them may overtake itself when it finds another queue,
    /// also much later.
    collided: bool,
    /// See [`alike`].
    by_ecn: bool,
    /// Calls in a row that gave nothing though something was due.
    fruitless: usize,
}

/// Runs the operations that `bytes` stand for on `qdisc`, which must be new.
pub fn exercise(qdisc: Box<dyn Managed>, bytes: &[u8]) {
    run(qdisc, bytes, MAX_PACKETS);
}

/// The same with as many packets as a flood has: some 10 ms a run.
pub fn exercise_floods(qdisc: Box<dyn Managed>, bytes: &[u8]) {
    run(qdisc, bytes, FLOOD_PACKETS);
}

fn run(qdisc: Box<dyn Managed>, bytes: &[u8], most: usize) {
    let mut input = Input::new(bytes);
    let now = Time(100_000_000_000 + input.magnitude() / 2);
    let by_ecn = sorts_by_ecn(qdisc.as_ref());
    let ledger = Ledger::default();
    let mut run = Run { qdisc, ledger, now, collided: false, by_ecn, fruitless: 0 };
    while !input.is_empty() && run.ledger.entries.len() < most {
        match input.u8() % 17 {
            0..=3 => {
                let (packet, copies) = random_packet(&mut input);
                for _ in 0..copies {
                    run.enqueue(packet, Vec::new());
                }
            }
            4 => {
                let (packet, frame) = random_frame(&mut input);
                run.enqueue(packet, frame);
            }
            5..=6 => {
                let (packet, frame) = random_ack(&mut input);
                run.enqueue(packet, frame);
            }
            7..=9 => {
                for _ in 0..=input.u8() % 16 {
                    run.dequeue();
                }
            }
            10 => run.dequeue_too_early(input.u8()),
            11..=12 => run.now += Span(input.magnitude() % 100_000_000_000),
            13 => run.sleep_until_next_event(),
            14 => run.configure(&mut input),
            15 => run.reset(),
            _ => run.flood(&Flood::random(&mut input), most),
        }
        run.check();
    }
    run.drain();
}

impl Run {
    fn enqueue(&mut self, packet: Packet, frame: Vec<u8>) {
        let packet = self.ledger.admit(packet, frame);
        steps::take();
        self.qdisc.enqueue(&packet, self.now, &mut self.ledger);
        self.count_steps("enqueue");
    }

    /// Steps of the last call, which must not be too many.
    fn count_steps(&self, call: &str) -> u64 {
        let taken = steps::take();
        assert!(taken <= steps::MOST, "{taken} steps of {call}: `{}`", self.qdisc.config());
        taken
    }

    /// Enqueues a flood, but no more than `most` packets in all, and dequeues now and then.
    fn flood(&mut self, flood: &Flood, most: usize) {
        let config = self.qdisc.config().to_string();
        // With those that are there, more flows than a set of queues has: some share one, and find
        // another later.
        let is_crowded = config.contains("cake") || config.contains("drr");
        // Too many packets to be sorted anew when the key changes.
        let is_sorted_in_part = config.contains("perturb") && flood.packets > 896;
        self.collided |= is_crowded || is_sorted_in_part;
        for n in 0..flood.packets {
            if self.ledger.entries.len() >= most {
                return;
            }
            self.enqueue(flood.packet(n), Vec::new());
            self.now += flood.gap;
            if flood.sends_every > 0 && n % flood.sends_every == 0 {
                self.dequeue();
            }
        }
    }

    /// One call. What is due must bring a packet, unless it was dropped or the next event moves on.
    fn dequeue(&mut self) -> bool {
        let (due, queued) = (self.qdisc.next_event(), self.ledger.queued);
        steps::take();
        let sent = self.qdisc.dequeue(self.now, &mut self.ledger).copied();
        let taken = self.count_steps("dequeue");
        let Some(packet) = sent else {
            let progress = self.ledger.queued < queued || self.qdisc.next_event() > due;
            let is_due = due.is_some_and(|due| due <= self.now);
            assert!(
                !is_due || progress || taken >= AT_WORK,
                "{queued} packets wait since {due:?}, and nothing happens at {:?}",
                self.now
            );
            self.fruitless = if is_due && !progress { self.fruitless + 1 } else { 0 };
            let most = 64 + self.ledger.entries.len();
            assert!(self.fruitless < most, "{most} calls for nothing: {}", self.qdisc.config());
            return false;
        };
        let packet = &packet;
        self.fruitless = 0;
        assert!(due.is_some_and(|due| due <= self.now), "a packet before its time, {due:?}");
        self.ledger.leave(packet, Place::Sent);
        if !self.collided {
            self.ledger.check_order(packet, self.by_ecn);
        }
        self.ledger.sent += 1;
        self.ledger.sent_bytes += u64::from(packet.len);
        true
    }

    /// At some moment before the next event nothing comes out.
    fn dequeue_too_early(&mut self, part: u8) {
        if let Some(event) = self.qdisc.next_event().filter(|event| *event > self.now) {
            let wait = event.since(self.now).0 - 1;
            self.now += Span(wait / 255 * u64::from(part));
            assert!(!self.dequeue());
        }
    }

    fn sleep_until_next_event(&mut self) {
        if let Some(event) = self.qdisc.next_event() {
            self.now = self.now.max(event);
        }
    }

    fn configure(&mut self, input: &mut Input) {
        let (before, backlog) = (self.qdisc.config(), self.qdisc.backlog());
        let Some(config) = random_config(input, &before) else { return };
        let dropped = self.ledger.dropped;
        if self.qdisc.configure(&config, self.now, &mut self.ledger).is_ok() {
            assert_eq!(self.qdisc.config(), config);
            self.ledger.epoch += 1;
            self.by_ecn = sorts_by_ecn(self.qdisc.as_ref());
            for reason in DropReason::ALL {
                let lost = self.ledger.dropped[reason as usize] - dropped[reason as usize];
                // A limit was lowered, or a class was taken away.
                let allowed = [DropReason::Overlimit, DropReason::Unclassified].contains(&reason);
                assert!(lost == 0 || allowed, "{lost} for {reason:?}");
            }
        } else {
            let possible = discriminant(&config) == discriminant(&before)
                && build(&config, &Device::default()).is_ok();
            assert!(!possible, "refused to become {config}");
            assert_eq!(self.qdisc.config(), before, "an error changed the settings");
            assert_eq!(self.qdisc.backlog(), backlog, "an error changed the queue");
        }
    }

    fn reset(&mut self) {
        self.qdisc.reset(&mut self.ledger);
        assert_eq!(self.ledger.queued, 0, "reset kept packets");
    }

    /// Invariants between any two operations. Not checked more often, since cake looks at all of
    /// its queues for a snapshot.
    fn check(&mut self) {
        let (backlog, snapshot) = (self.qdisc.backlog(), self.qdisc.snapshot());
        let (ledger, totals) = (&self.ledger, &snapshot.totals);
        assert_eq!(u64::from(backlog.packets), ledger.queued);
        assert!(ledger.queued_bytes.contains(&backlog.bytes), "{} bytes queued", backlog.bytes);
        assert_eq!(snapshot.backlog, backlog);
        assert_eq!(totals.enqueued_packets, ledger.entries.len() as u64);
        assert_eq!((totals.sent_packets, totals.sent_bytes), (ledger.sent, ledger.sent_bytes));
        assert_eq!(totals.dropped, ledger.dropped);
        assert_eq!(
            totals.enqueued_packets,
            totals.sent_packets + totals.drops() + u64::from(backlog.packets),
            "packets in = out + dropped + queued"
        );
        assert_eq!(self.qdisc.next_event().is_some(), backlog.packets > 0, "next event");
        let used = match &snapshot.detail {
            Detail::FqCodel(stats) => Some(stats.memory_used.0),
            Detail::FqPie(stats) => Some(stats.memory_used),
            _ => None,
        };
        if let Some(used) = used {
            let queued = self.ledger.queued_memory.min(u64::from(u32::MAX));
            assert_eq!(u64::from(used), queued, "memory in use");
        }
        if let Some(limit) = packet_limit(&self.qdisc.config()) {
            assert!(backlog.packets <= limit, "{} packets, limit {limit}", backlog.packets);
        }
        if let Detail::Cake(cake) = &snapshot.detail {
            // A limit beyond 4 GiB is shown as that.
            if cake.memory_limit != u32::MAX {
                let used = self.ledger.queued_memory;
                let within = used <= u64::from(cake.memory_limit) || cake.overruns > 0;
                assert!(within, "{used} bytes of memory, limit {}", cake.memory_limit);
            }
        }
        self.collided |= collided(self.qdisc.as_ref(), &snapshot.detail);
    }

    /// Follows `next_event` until the queue is empty.
    fn drain(&mut self) {
        let mut idle = (self.ledger.queued as usize + 1) * IDLE_STEPS_PER_PACKET;
        while self.ledger.queued > 0 {
            self.sleep_until_next_event();
            if !self.dequeue() && self.ledger.queued > 0 {
                idle -= 1;
                assert!(idle > 0, "{} packets never come out", self.ledger.queued);
            }
        }
        self.check();
        assert!(self.qdisc.dequeue(self.now, &mut self.ledger).is_none());
        assert!(self.ledger.entries.iter().all(|entry| entry.place != Place::Queued));
    }
}

/// Packets that a discipline with these settings may hold, where they say so.
fn packet_limit(config: &Config) -> Option<u32> {
    match config {
        Config::Fifo(params) => Some(params.max_packets(&Device::default())),
        Config::Codel(params) => Some(params.limit),
        Config::FqCodel(params) => Some(params.queues.limit),
        Config::FqPie(params) => Some(params.queues.limit),
        Config::Sfq(params) => Some(params.effective().limit),
        Config::Dualpi2(params) => Some(params.limit),
        Config::Delay(params) => Some(params.limit),
        Config::Drr(params) if params.classes.is_empty() => Some(params.buffer),
        _ => None,
    }
}

/// True if a packet had to share another flow's queue, in the discipline that tells `detail` or in
/// one below it.
fn collided(qdisc: &dyn Managed, detail: &Detail) -> bool {
    let here = match detail {
        Detail::Cake(cake) => cake.tins.iter().any(|tin| tin.way_collisions > 0),
        _ => false,
    };
    let below = || (0..).map_while(|n| qdisc.below(n));
    here || below().any(|(_, child)| collided(child, &child.snapshot().detail))
}
