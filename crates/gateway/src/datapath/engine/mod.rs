//! The loop of a data path, without the world: events and the time go in, verdicts and how long to
//! sleep come out. It asks a [`Kernel`] for what it needs. So the same code runs against the real
//! one and against a model of it with faults (`rehearsal`).

use std::io;
use std::sync::Arc;

use simnel_core::flow::HashKey;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{Config, Device, Managed};
use simnel_core::wire::{ack_view, Classifier};
use simnel_core::{Span, Time};

use super::mailbox::Command;
use super::{BoxedQdisc, Counters, Node, Status, Tuning, LATENESS_BUCKETS};
use crate::autorate::Passed;
use crate::classify::{self, LINK};
use crate::frames::RETRY;
use crate::nfqueue::{Event, Queued, Verdicts, BATCH, LONGEST};
use crate::nft::MarkBits;
use crate::owner::{id, Leaving, Owner};
use crate::pace::Pace;
use crate::passing::Passing;
use crate::record::Recorder;
use crate::segments::{describe_fragments, describe_segments, SegmentSizes};
use crate::vitals::BEAT;

/// The kernel as the loop needs it.
pub(crate) trait Kernel {
    /// CLOCK_MONOTONIC.
    fn now(&self) -> Time;
    /// Receives what is there, without waiting: how many messages, and whether there may be more.
    fn receive(&mut self) -> io::Result<(usize, bool)>;
    /// Message `index` of the last receive call.
    fn event(&self, index: usize) -> Event<'_>;
    /// Acts on verdicts, all or none of them.
    fn send(&mut self, verdicts: &[u8]) -> io::Result<()>;
    /// True if it has taken verdicts that it could not act on yet.
    fn is_behind(&self) -> bool {
        false
    }
    /// Processor time that the loop has used.
    fn cpu(&self) -> Span;
}

/// Receive calls in one turn, so that a flood does not keep due packets waiting.
const RECEIVES_PER_TURN: usize = 4;
/// Packets released in one turn, so that arrivals are not kept waiting.
const RELEASES_PER_TURN: usize = 256;
/// Turns after which all that the kernel had queued has been taken.
const TURNS_OF_A_QUEUE: usize = LONGEST as usize / (RECEIVES_PER_TURN * BATCH);
/// Time until verdicts that the kernel refused are sent again.
const VERDICTS_AGAIN: Span = Span::from_millis(1);
/// The bits of the TOS octet that are ECN.
const ECN: u8 = 3;
/// The longest super-packet that is usual, link header included.
const LONGEST_SUPER: u32 = 65_535 + 14;

/// Limits below which one wake-up serves several packets.
#[derive(Clone, Copy)]
struct Frugality {
    /// Packets due closer together than this are released in batches.
    batch_below: Span,
    /// Time between batches, in units of [`Tuning::batch`].
    batches: u64,
    /// While the next packet is due sooner than this, arrivals wait for it too. The shaper would
    /// not let them go earlier, and each would cost a wake-up. Sojourn times are short by so much
    /// at most.
    arrivals_wait_below: Span,
}

impl Frugality {
    /// For packets of 1514 bytes: batches from 200 Mbit/s on.
    const PACKETS: Frugality = Frugality {
        batch_below: Span::from_micros(60),
        batches: 1,
        arrivals_wait_below: Span::from_micros(250),
    };
    /// For super-packets, of which 1 Gbit/s sends one in half a millisecond: two at a time.
    const SUPER: Frugality = Frugality {
        batch_below: Span::from_micros(600),
        batches: 2,
        arrivals_wait_below: Span::from_millis(1),
    };

    fn of(config: &Config) -> Frugality {
        match config.takes_super_packets() {
            true => Frugality::SUPER,
            false => Frugality::PACKETS,
        }
    }
}

/// The loop's own state.
pub(super) struct Engine {
    qdisc: BoxedQdisc,
    owner: Owner,
    classifier: Classifier,
    filters_acks: bool,
    segments: Arc<SegmentSizes>,
    /// None where nobody will ask for RTTs.
    passing: Option<Passing>,
    /// None while nobody records.
    recorder: Option<Recorder>,
    tuning: Tuning,
    frugality: Frugality,
    counters: Counters,
    /// Bytes taken from the kernel.
    arrived_bytes: u64,
    key: HashKey,
    /// The discipline's clock.
    pace: Pace,
    device: Device,
    /// The last time that the discipline was told.
    told: Time,
    /// Time at which the loop means to go on, if that lay in the future as the last turn ended.
    planned: Option<Time>,
    /// Time at which the first queued packet was due, as the last turn ended.
    due: Option<Time>,
    /// The kernel has refused verdicts, which wait.
    refused: bool,
    /// Packets no longer go through the discipline.
    drained: bool,
    last_id: u32,
}

/// The pause between two turns. A time of zero: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// Sleep so long at most; a command always ends it.
    pub(super) time: Span,
    /// An arrival ends it as well.
    pub(super) arrivals: bool,
    /// After a sleep that nothing ended: spin until this time, by the discipline's clock.
    pub(super) spin_until: Option<Time>,
}

impl Rest {
    const NONE: Rest = Rest { time: Span::ZERO, arrivals: false, spin_until: None };

    fn sleep(time: Span, arrivals: bool) -> Rest {
        Rest { time, arrivals, spin_until: None }
    }
}

impl Engine {
    /// A loop around `qdisc`, at `now`. `bits` are those of the packet mark for what the discipline
    /// decides about headers. `key` is that of the flow hashes, `segments` is shared by the
    /// interface's directions.
    pub(super) fn new(
        qdisc: BoxedQdisc,
        verdicts: Verdicts,
        (device, bits): (Device, MarkBits),
        (tuning, key): (Tuning, HashKey),
        segments: Arc<SegmentSizes>,
        now: Time,
    ) -> Engine {
        let config = qdisc.config();
        Engine {
            owner: Owner::new(verdicts, bits),
            classifier: classifier(key, qdisc.as_ref()),
            filters_acks: config.wants_acks(),
            qdisc,
            key,
            segments,
            passing: None,
            recorder: None,
            tuning,
            frugality: Frugality::of(&config),
            counters: Counters::default(),
            arrived_bytes: 0,
            pace: match tuning.lanes.are_several() {
                false => Pace::new(&config, &sends(&config, device), now),
                true => Pace::shared(),
            },
            device,
            told: Time::ZERO,
            planned: None,
            due: None,
            refused: false,
            drained: false,
            last_id: 0,
        }
    }

    /// One turn: takes what arrived, lets go what is due, and says how long to sleep then.
    pub(super) fn turn(&mut self, kernel: &mut impl Kernel) -> Rest {
        self.counters.turns += 1;
        self.count_lateness(kernel.now());
        if self.refused {
            // Once they are taken, nobody knows how long they waited.
            self.tell(kernel);
            self.give_verdicts(kernel);
        }
        let more = self.take(kernel);
        if self.refused {
            // What is released now would leave in one burst with what was refused.
            self.due = self.qdisc.next_event();
            return Rest::sleep(VERDICTS_AGAIN, false);
        }
        let (now, real) = self.tell(kernel);
        let turn = self.release(now, real);
        self.give_verdicts(kernel);
        if let Some(due) = turn.due {
            // Until the last of them had left: a bound for each of them.
            let now = kernel.now();
            self.pace.lagged(self.pace.at(now).since(due), now);
        }
        if more {
            return Rest::NONE;
        }
        let rest = self.rest(turn, kernel.now());
        match kernel.is_behind() {
            true => Rest { time: rest.time.min(RETRY), ..rest },
            false => rest,
        }
    }

    /// Carries out what the control thread asked for; true if that was to stop.
    #[cold]
    pub(super) fn carry_out(&mut self, command: Command, kernel: &mut impl Kernel) -> bool {
        let mut stop = false;
        self.count_lateness(kernel.now());
        let (now, real) = self.tell(kernel);
        // Whoever asked may have lost patience; what was done holds all the same.
        match command {
            Command::Report(reply) => {
                let _ = reply.try_send(self.status(real, kernel.cpu()));
            }
            Command::Prepare(config, reply) => {
                let _ = reply.try_send(self.qdisc.prepare(&config, now));
            }
            Command::Adopt(mut spare, reply) => {
                self.qdisc.adopt(spare.as_mut(), now, &mut self.owner);
                self.follow_settings(kernel.now());
                let _ = reply.try_send(spare);
            }
            Command::Replace(qdisc, device, reply) => {
                self.empty();
                (self.qdisc, self.device) = (qdisc, device);
                self.follow_settings(kernel.now());
                for packet in std::mem::take(&mut self.owner.collected) {
                    self.qdisc.enqueue(&packet, now, &mut self.owner);
                }
                let _ = reply.try_send(());
            }
            Command::Flows(part, room, reply) => {
                let _ = reply.try_send(self.owner.flows.copy(part, room, now));
            }
            Command::Record(room, reply) => {
                let next = room.map(Recorder::new);
                let recorded = std::mem::replace(&mut self.recorder, next);
                let _ = reply.try_send(recorded.map(Recorder::finish).unwrap_or_default());
            }
            Command::Drain(reply) => {
                let _ = reply.try_send(self.drain(kernel));
            }
            Command::Stop => {
                self.drain(kernel);
                stop = true;
            }
        }
        self.give_verdicts(kernel);
        stop
    }

    /// Notes whether the thread has SCHED_FIFO.
    pub(super) fn runs_in_real_time(&mut self, realtime: bool) {
        self.counters.realtime = realtime;
    }

    /// Whom it tells of TCP's round trips.
    pub(super) fn tells_of_passing(&mut self, passing: Option<Passing>) {
        self.passing = passing;
    }

    /// Bytes that the discipline has seen.
    #[inline]
    pub(super) fn passed(&self) -> Passed {
        Passed {
            arrived: self.arrived_bytes as u32,
            released: self.owner.released_bytes as u32,
            backlog: self.qdisc.backlog().bytes.min(u32::MAX.into()) as u32,
        }
    }

    /// The kernel's number of the last packet that was received, if no verdict waits.
    #[inline]
    pub(super) fn progress(&self) -> Option<u32> {
        (!self.refused).then_some(self.last_id)
    }

    /// The discipline's time at `now`.
    #[inline]
    pub(super) fn time(&self, now: Time) -> Time {
        self.pace.at(now)
    }

    fn status(&self, at: Time, cpu: Span) -> Status {
        let counters = Counters {
            released: self.owner.released,
            dropped: self.owner.dropped,
            marked: self.owner.marked,
            washed: self.owner.washed,
            verdict_errors: self.owner.verdicts.errors,
            cpu,
            ..self.counters
        };
        Status { at, root: Node::of(0, self.qdisc.as_ref(), &self.device), counters }
    }

    fn follow_settings(&mut self, now: Time) {
        let config = self.qdisc.config();
        self.filters_acks = self.qdisc.as_ref().config().wants_acks();
        self.classifier = classifier(self.key, self.qdisc.as_ref());
        self.frugality = Frugality::of(&config);
        self.pace.follow(&config, &sends(&config, self.device), now);
    }

    /// Takes all packets out of the discipline, in the order in which they came.
    fn empty(&mut self) {
        self.owner.leaving = Leaving::Collect;
        self.qdisc.reset(&mut self.owner);
        self.owner.leaving = Leaving::Drop;
        let last = self.last_id;
        // Numbers wrap round; ages do not.
        self.owner.collected.sort_by_key(|packet| std::cmp::Reverse(last.wrapping_sub(id(packet))));
    }

    fn give_verdicts(&mut self, kernel: &mut impl Kernel) {
        self.owner.verdicts.flush(|verdicts| kernel.send(verdicts));
        self.refused = self.owner.verdicts.waiting();
    }

    /// Lets all go that waits, in the order in which it came, and from then on each at once.
    fn drain(&mut self, kernel: &mut impl Kernel) -> u64 {
        let before = self.owner.released;
        self.empty();
        let now = self.pace.at(kernel.now());
        for packet in std::mem::take(&mut self.owner.collected) {
            self.owner.release(&packet, now);
        }
        self.drained = true;
        // A flood has no end.
        for _ in 0..TURNS_OF_A_QUEUE {
            let more = self.take(kernel);
            self.give_verdicts(kernel);
            if !more {
                break;
            }
        }
        self.owner.released - before
    }

    /// Counts how late, at `real`, the loop goes on.
    fn count_lateness(&mut self, real: Time) {
        let now = self.pace.at(real);
        if let Some(planned) = self.planned.take().filter(|&planned| planned <= now) {
            let late = now.since(planned);
            let bucket = (u64::BITS - late.as_micros().leading_zeros()) as usize;
            self.counters.lateness[bucket.min(LATENESS_BUCKETS - 1)] += 1;
        }
    }

    /// Takes off the discipline's clock, which stands at `now`, the lateness that no burst may make
    /// up for. Time that the discipline has been told already stays. Gives the clock's time then.
    #[inline]
    fn forfeit(&mut self, now: Time, real: Time) -> Time {
        if self.due.is_none() && self.told + self.tuning.batch < now {
            // If the thread was held up in this turn, what arrived in it waits since then.
            self.due = self.qdisc.next_event();
        }
        let lost = match self.due {
            // What was released leaves when the kernel takes it; the next is due as long after it.
            _ if self.refused => Span(u64::MAX),
            Some(due) if self.pace.keeps_a_rate() => {
                now.since(due).saturating_sub(self.tuning.catch_up)
            }
            _ => return now,
        };
        let lost = lost.min(now.since(self.told));
        if lost == Span::ZERO {
            return now;
        }
        self.pace.forfeit(lost, real);
        self.counters.forfeited += lost;
        self.pace.at(real)
    }

    /// The time that the discipline is told now, and the real one. Wherever in a turn the thread
    /// was held up, what is too late is forfeited first.
    #[inline]
    fn tell(&mut self, kernel: &impl Kernel) -> (Time, Time) {
        let real = kernel.now();
        self.told = self.forfeit(self.pace.at(real), real);
        (self.told, real)
    }

    /// Enqueues what the kernel has for us; true if there may be more.
    fn take(&mut self, kernel: &mut impl Kernel) -> bool {
        for _ in 0..RECEIVES_PER_TURN {
            let Ok((count, more)) = kernel.receive() else {
                self.counters.receive_errors += 1;
                return false;
            };
            let (now, real) = self.tell(kernel);
            for index in 0..count {
                match kernel.event(index) {
                    Event::Packet(queued) => self.arrived(&queued, now, real),
                    Event::Stale => self.counters.stale_verdicts += 1,
                    Event::Unknown => self.counters.unknown += 1,
                }
            }
            if !more {
                return false;
            }
        }
        true
    }

    #[inline]
    fn arrived(&mut self, queued: &Queued<'_>, now: Time, real: Time) {
        self.counters.received += 1;
        self.last_id = queued.id;
        let handle = u64::from(queued.id);
        let (link, bytes, skipped) = classify::network(queued.protocol, queued.bytes);
        let len = queued.len.saturating_sub(skipped);
        let mut packet = self.classifier.classify(link, bytes, len, handle);
        packet.mark = queued.mark;
        packet.class = queued.priority;
        if skipped > 0 {
            // Nobody can rewrite the header in there: drop instead of marking.
            packet.tos &= !ECN;
        }
        if queued.segment > 0 {
            describe_segments(&mut packet, queued.segment);
        } else if queued.is_super {
            self.segments.describe(&mut packet, bytes, self.device.mtu);
        } else {
            describe_fragments(&mut packet, self.device.mtu);
            self.segments.learn(&packet, bytes);
        }
        self.arrived_bytes += u64::from(packet.len);
        self.owner.flows.arrived(&packet, bytes, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(&packet, queued, real);
        }
        if let Some(passing) = &mut self.passing {
            passing.arrived(&packet, bytes, real);
        }
        if self.drained {
            packet.enqueued = now;
            self.owner.release(&packet, now);
            return;
        }
        if self.filters_acks && packet.flags.has(Flags::TCP) {
            self.owner.arriving = ack_view(LINK, bytes);
        }
        self.qdisc.enqueue(&packet, now, &mut self.owner);
    }

    /// Lets go what is due at `now`, by the discipline's clock, and `real`, by the real one.
    fn release(&mut self, now: Time, real: Time) -> Turn {
        let due = self.due.take().filter(|&due| due <= now);
        let mut turn = Turn { now, due, released: 0 };
        while !self.drained && turn.released < RELEASES_PER_TURN {
            let Some(packet) = self.qdisc.dequeue(now, &mut self.owner) else { break };
            if let Some(passing) = &mut self.passing {
                passing.released(packet, real);
            }
            self.owner.release(packet, now);
            turn.released += 1;
        }
        turn
    }

    /// The wait, from `real` on, until there is something to do or a sign of life is due.
    fn rest(&mut self, turn: Turn, real: Time) -> Rest {
        let next = if self.drained { None } else { self.qdisc.next_event() };
        self.due = next;
        if self.refused {
            return Rest::sleep(VERDICTS_AGAIN, false);
        }
        let Some(next) = next else { return Rest::sleep(BEAT, true) };
        let now = self.pace.at(real);
        let all_left = turn.released < RELEASES_PER_TURN;
        // A discipline that is due still has stopped to let others work: it goes on at once.
        if all_left && next > turn.now && turn.spacing(next) < self.frugality.batch_below {
            let batch = self.tuning.batch * self.frugality.batches;
            let until = next.max(turn.now + batch);
            self.planned = Some(until);
            if until > now {
                return Rest::sleep(self.pace.until(until, real).min(BEAT), false);
            }
        } else if next > now {
            self.planned = Some(next);
            let gap = self.pace.until(next, real);
            let sleep = gap.saturating_sub(self.tuning.spin);
            let spins = self.tuning.spin > Span::ZERO && sleep <= BEAT;
            return Rest {
                time: sleep.min(BEAT),
                arrivals: gap >= self.frugality.arrivals_wait_below,
                spin_until: spins.then_some(next),
            };
        } else {
            // Due already. It counts as late only if it was not yet due when the turn began.
            self.planned = (next > turn.now).then_some(next);
        }
        Rest::NONE
    }
}

/// One turn of the loop.
#[derive(Clone, Copy)]
struct Turn {
    /// The time that the discipline was told.
    now: Time,
    /// Time at which the first packet queued before the turn was due; None if none was.
    due: Option<Time>,
    /// Packets released.
    released: usize,
}

impl Turn {
    /// Time between packets, from the first of this turn to the next one, which is due at `next`.
    fn spacing(&self, next: Time) -> Span {
        match self.due {
            Some(due) if self.released > 0 => Span(next.since(due).0 / self.released as u64),
            _ => Span(u64::MAX),
        }
    }
}

/// `device`, with the longest packet that leaves at once under `config`.
fn sends(config: &Config, device: Device) -> Device {
    let longest = if config.takes_super_packets() { LONGEST_SUPER } else { 0 };
    Device { mtu: device.mtu.max(longest), ..device }
}

/// A classifier that tells hosts apart as the discipline wants it.
fn classifier(key: HashKey, qdisc: &dyn Managed) -> Classifier {
    Classifier::new(qdisc.config().hasher(key))
}

#[cfg(test)]
mod tests;
