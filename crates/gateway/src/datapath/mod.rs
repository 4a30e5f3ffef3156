//! The data path of one direction: a thread that stands between an NFQUEUE and a discipline.
//!
//! ```text
//! loop: attend to commands, if any
//!       take all packets that the kernel has queued, and enqueue them
//!       dequeue all that is due; verdicts leave in batches
//!       sleep until a packet comes or the discipline's next event
//! ```
//!
//! Release follows the discipline's own schedule: a late wake-up makes a small burst. So that no
//! second holds more than the set rate, bursts included, the clock that a shaper is told is a
//! little slow (`pace.rs`), and lateness beyond [`Tuning::catch_up`] is forfeited. When packets are
//! due fast ([`Frugality`]) they are released in batches, [`Tuning::batch`] apart, and arrivals
//! wait as long: one wake-up for several packets.
//!
//! Where the discipline takes super-packets (`takes_super_packets`: cake from 1 Gbit/s on), the
//! kernel leaves them whole, and their segments are paid for as they will be on the wire
//! (`segments.rs`).
//!
//! After start the loop neither allocates nor logs nor locks. The control thread sends commands
//! through a mailbox that is opened only when a flag says so; statistics are made and sent when it
//! asks for them.
//! A packet that cannot be parsed is best effort; only the discipline drops.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as Reply, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simnel_core::flow::HashKey;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{Config, ConfigError, Device, Managed, Snapshot};
use simnel_core::wire::{ack_view, Classifier};
use simnel_core::{Span, Time};

use crate::autorate::Passed;
use crate::classify::{self, LINK};
use crate::flows::{self, Flow, Part};
use crate::nfqueue::{Event, Receiver, Verdicts, LONGEST};
use crate::nft::MarkBits;
use crate::owner::{id, Leaving, Owner};
use crate::pace::Pace;
use crate::privileges;
use crate::segments::SegmentSizes;
use crate::sys;
use crate::vitals::{Lane as Vitals, BEAT};

/// When to wake up only once for several packets.
#[derive(Clone, Copy)]
struct Frugality {
    /// Packets due closer together than this are released in batches.
    batch_below: Span,
    /// Time between batches, in units of [`Tuning::batch`].
    batches: u64,
    /// While the next packet is due sooner than this, arrivals wait for it too: the shaper would
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

/// Receive calls (of 64 packets) in one turn, so that a flood does not keep due packets waiting.
const RECEIVES_PER_TURN: usize = 4;
/// Packets released in one turn, so that arrivals are not kept waiting.
const RELEASES_PER_TURN: usize = 256;
/// A real-time thread that has not slept for so long...
const BREATHE_AFTER: Span = Span::from_millis(5);
/// ...sleeps this long: at the kernel's limit of 95 % it would be stopped for 28-53 ms (measured).
const BREATH: Span = Span::from_micros(250);
/// A wait that ends sooner than this, by an arrival, may have been none: the core was not given up.
const REAL_SLEEP: Span = Span::from_micros(50);
/// Time until verdicts that the kernel refused are sent again.
const VERDICTS_AGAIN: Span = Span::from_millis(1);
/// The bits of the TOS octet that are ECN.
const ECN: u8 = 3;
/// How long the control thread waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest super-packet that is usual, link header included.
const LONGEST_SUPER: u32 = 65_535 + 14;
/// Buckets of the lateness histogram.
pub const LATENESS_BUCKETS: usize = 16;

/// A discipline that may be handed to a thread.
pub(crate) type BoxedQdisc = Box<dyn Managed + Send>;

/// How a thread of the data path runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Priority under SCHED_FIFO, 1..=99; None, or no permission, runs it as any other thread.
    pub realtime: Option<u8>,
    /// The last part of each wait is spent spinning: exact to 0.1 µs, at the cost of a core
    /// (60 µs: 4 % of one at 10 Mbit/s, 46 % at 100 Mbit/s).
    pub spin: Span,
    /// Lateness that a burst makes up for.
    pub catch_up: Span,
    /// Time between batches at high rates: a wake-up costs some 35 µs of processor time (measured
    /// on a virtual machine), and 500 µs share it among 40 packets at 1 Gbit/s. Half as long costs
    /// a fifth more, twice as long a tenth less.
    pub batch: Span,
    /// Packets that the kernel keeps for us at most; more pass unshaped. None: what fits the rate.
    pub queue_length: Option<u32>,
    /// Keep all of the process in memory (mlockall).
    pub lock_memory: bool,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            realtime: Some(2),
            spin: Span::ZERO,
            catch_up: Span::from_millis(4),
            batch: Span::from_micros(500),
            queue_length: None,
            lock_memory: false,
        }
    }
}

impl Tuning {
    /// Packets that the kernel keeps for the discipline that `config` describes.
    ///
    /// The kernel keeps those that the discipline has queued as well: were there less room than the
    /// discipline's own limit, a flood of small packets would pass by unshaped instead of being
    /// dropped there.
    pub(crate) fn queue_length(&self, config: &Config) -> u32 {
        /// fq_codel's limit, the largest default; cake's memory up to 100 Mbit/s holds 5,461.
        const QUEUED: u64 = 10_240;
        /// Arrivals that the thread has not seen yet: a fifth of a second...
        const PART: u64 = 5;
        /// ...of Ethernet's smallest frames.
        const SMALLEST: u64 = 64;
        const MOST: u64 = LONGEST as u64;
        self.queue_length.unwrap_or_else(|| {
            let arriving = config.rate().map_or(MOST, |rate| rate.bytes() / SMALLEST / PART);
            (QUEUED + arriving).min(MOST) as u32
        })
    }
}

/// Counters of the data path itself, beside the discipline's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets taken from the kernel.
    pub received: u64,
    /// Packets let go.
    pub released: u64,
    /// Packets given up by the discipline.
    pub dropped: u64,
    /// Packets let go with a mark for CE.
    pub marked: u64,
    /// Packets let go with a mark for a cleared DSCP.
    pub washed: u64,
    /// Messages that were not understood.
    pub unknown: u64,
    /// Verdicts for packets that the kernel had dropped when somebody removed a netfilter hook.
    pub stale_verdicts: u64,
    /// Sends of verdicts that failed.
    pub verdict_errors: u64,
    /// Receive calls that failed (ENOBUFS: the socket was full).
    pub receive_errors: u64,
    /// Turns of the loop.
    pub turns: u64,
    /// Wake-ups by the timer, by lateness: bucket 0 below 1 µs, bucket n below 2^n µs, the last all
    /// above.
    pub lateness: [u64; LATENESS_BUCKETS],
    /// Lateness that was too large to be made up for.
    pub forfeited: Span,
    /// Processor time of the thread.
    pub cpu: Span,
    /// True if the thread runs under SCHED_FIFO.
    pub realtime: bool,
}

/// A discipline as it runs, with all that stand below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The class of the discipline above that it belongs to; 0 at the root.
    pub class: u32,
    /// Its settings, with what the interface decides filled in: limits and quanta.
    pub config: Config,
    /// Its counters.
    pub snapshot: Snapshot,
    /// Disciplines below its classes.
    pub below: Vec<Node>,
}

impl Node {
    fn of(class: u32, qdisc: &dyn Managed, device: &Device) -> Node {
        let below = (0..).map_while(|n| qdisc.below(n));
        Node {
            class,
            config: qdisc.config().resolved(device),
            snapshot: qdisc.snapshot(),
            below: below.map(|(class, child)| Node::of(class, child, device)).collect(),
        }
    }
}

/// All that a thread tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The discipline.
    pub root: Node,
    /// The data path's counters.
    pub counters: Counters,
}

/// Requests of the control thread.
enum Command {
    Report(SyncSender<Status>),
    Configure(Box<Config>, SyncSender<Result<(), ConfigError>>),
    Replace(BoxedQdisc, Device, SyncSender<()>),
    Drain(SyncSender<u64>),
    /// One part of the table of flows, into memory of the asker's.
    Flows(usize, Vec<Flow>, SyncSender<Part>),
    Stop,
}

struct Shared {
    attention: AtomicBool,
    /// Bytes that arrived, were released, and are queued, as of the last turn.
    passed: [AtomicU32; 3],
    wake: OwnedFd,
    mailbox: Mutex<Vec<Command>>,
}

/// The control thread's end.
pub(crate) struct Remote {
    shared: Arc<Shared>,
}

/// The thread did not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer;

impl Remote {
    fn send(&self, command: Command) {
        self.shared.mailbox.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.shared.attention.store(true, Ordering::Release);
        sys::signal_event(&self.shared.wake);
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, NoAnswer> {
        let (sender, reply): (_, Reply<T>) = sync_channel(1);
        self.send(command(sender));
        reply.recv_timeout(PATIENCE).map_err(|_: RecvTimeoutError| NoAnswer)
    }

    /// Fresh statistics.
    pub(crate) fn status(&self) -> Result<Status, NoAnswer> {
        self.ask(Command::Report)
    }

    /// Bytes that the discipline has seen; the thread is not asked.
    pub(crate) fn passed(&self) -> Passed {
        let [arrived, released, backlog] =
            self.shared.passed.each_ref().map(|count| count.load(Ordering::Relaxed));
        Passed { arrived, released, backlog }
    }

    /// Changes the settings of the discipline that runs.
    pub(crate) fn configure(&self, config: Config) -> Result<Result<(), ConfigError>, NoAnswer> {
        self.ask(|reply| Command::Configure(Box::new(config), reply))
    }

    /// Another discipline, made for `device`, takes over what is queued.
    pub(crate) fn replace(&self, qdisc: BoxedQdisc, device: Device) -> Result<(), NoAnswer> {
        self.ask(|reply| Command::Replace(qdisc, device, reply))
    }

    /// Lets all queued packets go, in the order in which they came, and from then on each at once.
    /// Says how many.
    pub(crate) fn drain(&self) -> Result<u64, NoAnswer> {
        self.ask(Command::Drain)
    }

    /// A part of the table of flows.
    pub(crate) fn flows(&self, part: usize) -> Result<Part, NoAnswer> {
        self.ask(|reply| Command::Flows(part, flows::empty_part(), reply))
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.send(Command::Stop);
    }
}

/// The thread's own state.
pub(crate) struct Worker {
    receiver: Receiver,
    qdisc: BoxedQdisc,
    owner: Owner,
    classifier: Classifier,
    filters_acks: bool,
    shared: Arc<Shared>,
    vitals: &'static Vitals,
    segments: Arc<SegmentSizes>,
    tuning: Tuning,
    frugality: Frugality,
    counters: Counters,
    /// Bytes taken from the kernel.
    arrived_bytes: u64,
    key: HashKey,
    /// The discipline's clock.
    pace: Pace,
    device: Device,
    /// The last time at which packets were released, by the discipline's clock.
    told: Time,
    /// When the thread means to wake up, if that lay in the future when it went to sleep.
    planned: Option<Time>,
    /// When the first queued packet was due as the last turn ended.
    due: Option<Time>,
    /// The thread's last sleep ended then.
    slept: Time,
    /// Packets no longer go through the discipline.
    drained: bool,
    last_id: u32,
}

/// What a thread is given beside its queue and its discipline.
pub(crate) struct Surroundings {
    /// What the interface decides.
    pub(crate) device: Device,
    /// Bits of the packet mark for what the discipline decides about headers.
    pub(crate) bits: MarkBits,
    /// How it runs.
    pub(crate) tuning: Tuning,
    /// Shared by the interface's directions.
    pub(crate) segments: Arc<SegmentSizes>,
    /// Where it tells that it lives.
    pub(crate) vitals: &'static Vitals,
}

impl Worker {
    /// A worker and the other end of its line.
    pub(crate) fn new(
        receiver: Receiver,
        verdicts: Verdicts,
        qdisc: BoxedQdisc,
        surroundings: Surroundings,
    ) -> std::io::Result<(Worker, Remote)> {
        let Surroundings { device, bits, tuning, segments, vitals } = surroundings;
        let (config, key) = (qdisc.config(), classify::random_key()?);
        let shared = Arc::new(Shared {
            attention: AtomicBool::new(false),
            passed: Default::default(),
            wake: sys::event()?,
            mailbox: Mutex::new(Vec::with_capacity(16)),
        });
        let owner = Owner::new(verdicts, bits);
        let worker = Worker {
            receiver,
            owner,
            classifier: classifier(key, qdisc.as_ref()),
            filters_acks: qdisc.as_ref().config().wants_acks(),
            qdisc,
            key,
            shared: Arc::clone(&shared),
            vitals,
            segments,
            tuning,
            frugality: Frugality::of(&config),
            counters: Counters::default(),
            arrived_bytes: 0,
            pace: Pace::new(&config, &sends(&config, device), sys::now()),
            device,
            told: Time::ZERO,
            planned: None,
            due: None,
            slept: sys::now(),
            drained: false,
            last_id: 0,
        };
        Ok((worker, Remote { shared }))
    }

    /// Runs until told to stop.
    pub(crate) fn run(mut self) {
        sys::precise_timers();
        if let Some(priority) = self.tuning.realtime {
            self.counters.realtime = sys::realtime(priority).is_ok();
        }
        // What the kernel lacks for it is said by the control thread.
        let _ = privileges::confine_data_path();
        self.slept = sys::now();
        loop {
            if self.shared.attention.swap(false, Ordering::Acquire) && self.attend() {
                return;
            }
            self.counters.turns += 1;
            self.account_for_lateness();
            let more = self.take();
            let turn = self.release();
            self.owner.verdicts.flush();
            self.tell_passed();
            if let Some(due) = turn.due {
                // Until the last of them had left: a bound for each of them.
                let now = sys::now();
                self.pace.lagged(self.pace.at(now).since(due), now);
            }
            // Packets without a verdict are no progress: the guard lets them go if that lasts.
            if !self.owner.verdicts.waiting() {
                self.vitals.progress(self.last_id);
            }
            if !more {
                self.rest(turn);
            }
            self.breathe();
        }
    }

    /// Carries out what the control thread asked for; true if that was to stop.
    fn attend(&mut self) -> bool {
        sys::clear_event(&self.shared.wake);
        let commands = std::mem::take(
            &mut *self.shared.mailbox.lock().unwrap_or_else(PoisonError::into_inner),
        );
        for command in commands {
            match command {
                Command::Report(reply) => {
                    let _ = reply.try_send(self.status());
                }
                Command::Configure(config, reply) => {
                    let now = self.now();
                    let result = self.qdisc.configure(&config, now, &mut self.owner);
                    self.follow_settings();
                    // Whoever asked may have lost patience; the change holds all the same.
                    let _ = reply.try_send(result);
                }
                Command::Replace(qdisc, device, reply) => {
                    self.empty();
                    (self.qdisc, self.device) = (qdisc, device);
                    self.follow_settings();
                    let now = self.now();
                    for packet in std::mem::take(&mut self.owner.collected) {
                        self.qdisc.enqueue(&packet, now, &mut self.owner);
                    }
                    let _ = reply.try_send(());
                }
                Command::Flows(part, room, reply) => {
                    let _ = reply.try_send(self.owner.flows.copy(part, room, self.now()));
                }
                Command::Drain(reply) => {
                    let _ = reply.try_send(self.drain());
                }
                Command::Stop => {
                    self.drain();
                    return true;
                }
            }
            self.owner.verdicts.flush();
        }
        false
    }

    fn status(&self) -> Status {
        let counters = Counters {
            released: self.owner.released,
            dropped: self.owner.dropped,
            marked: self.owner.marked,
            washed: self.owner.washed,
            verdict_errors: self.owner.verdicts.errors,
            cpu: sys::thread_cpu(),
            ..self.counters
        };
        Status { root: Node::of(0, self.qdisc.as_ref(), &self.device), counters }
    }

    fn follow_settings(&mut self) {
        let config = self.qdisc.config();
        self.filters_acks = self.qdisc.as_ref().config().wants_acks();
        self.classifier = classifier(self.key, self.qdisc.as_ref());
        self.frugality = Frugality::of(&config);
        self.pace.follow(&config, &sends(&config, self.device), sys::now());
    }

    /// Tells the control thread what passed.
    fn tell_passed(&self) {
        let backlog = self.qdisc.backlog().bytes.min(u32::MAX.into());
        let counts = [self.arrived_bytes, self.owner.released_bytes, backlog];
        for (place, count) in self.shared.passed.iter().zip(counts) {
            place.store(count as u32, Ordering::Relaxed);
        }
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

    fn drain(&mut self) -> u64 {
        let before = self.owner.released;
        while self.take() {}
        self.empty();
        let now = self.now();
        for packet in std::mem::take(&mut self.owner.collected) {
            self.owner.release(&packet, now);
        }
        self.drained = true;
        self.owner.verdicts.flush();
        self.owner.released - before
    }

    /// The discipline's time.
    #[inline]
    fn now(&self) -> Time {
        self.pace.at(sys::now())
    }

    /// Accounts for being late.
    fn account_for_lateness(&mut self) {
        let real = sys::now();
        let now = self.pace.at(real);
        if let Some(planned) = self.planned.take().filter(|&planned| planned <= now) {
            let late = now.since(planned);
            let bucket = (u64::BITS - late.as_micros().leading_zeros()) as usize;
            self.counters.lateness[bucket.min(LATENESS_BUCKETS - 1)] += 1;
        }
        if let Some(due) = self.due.filter(|_| self.pace.keeps_a_rate()) {
            let too_late = now.since(due).saturating_sub(self.tuning.catch_up);
            let forfeit = too_late.min(now.since(self.told));
            if forfeit > Span::ZERO {
                self.pace.forfeit(forfeit, real);
                self.counters.forfeited += forfeit;
            }
        }
    }

    /// Enqueues what the kernel has for us; true if there may be more.
    fn take(&mut self) -> bool {
        for _ in 0..RECEIVES_PER_TURN {
            let Ok((count, more)) = self.receiver.receive() else {
                self.counters.receive_errors += 1;
                return false;
            };
            let now = self.now();
            for index in 0..count {
                let queued = match self.receiver.event(index) {
                    Event::Packet(queued) => queued,
                    Event::Stale => {
                        self.counters.stale_verdicts += 1;
                        continue;
                    }
                    Event::Unknown => {
                        self.counters.unknown += 1;
                        continue;
                    }
                };
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
                if queued.is_super {
                    self.segments.describe(&mut packet, bytes, self.device.mtu);
                } else {
                    self.segments.learn(&packet, bytes);
                }
                self.arrived_bytes += u64::from(packet.len);
                self.owner.flows.arrived(&packet, bytes, now);
                if self.drained {
                    packet.enqueued = now;
                    self.owner.release(&packet, now);
                    continue;
                }
                if self.filters_acks && packet.flags.has(Flags::TCP) {
                    self.owner.arriving = ack_view(LINK, bytes);
                }
                self.qdisc.enqueue(&packet, now, &mut self.owner);
            }
            if !more {
                return false;
            }
        }
        true
    }

    /// Lets go what is due.
    fn release(&mut self) -> Turn {
        let now = self.now();
        self.told = now;
        let due = self.due.take().filter(|&due| due <= now);
        let mut turn = Turn { now, due, released: 0 };
        while !self.drained && turn.released < RELEASES_PER_TURN {
            let Some(packet) = self.qdisc.dequeue(now, &mut self.owner) else { break };
            self.owner.release(packet, now);
            turn.released += 1;
        }
        turn
    }

    /// Sleeps until there is something to do, or a sign of life is due.
    fn rest(&mut self, turn: Turn) {
        let next = if self.drained { None } else { self.qdisc.next_event() };
        let most = if self.owner.verdicts.waiting() { VERDICTS_AGAIN } else { BEAT };
        self.due = next;
        let Some(next) = next else {
            self.sleep(true, most);
            return;
        };
        let real = sys::now();
        let now = self.pace.at(real);
        let all_left = turn.released < RELEASES_PER_TURN;
        // A discipline that is due still has stopped to let others work: it goes on at once.
        if all_left && next > turn.now && turn.spacing(next) < self.frugality.batch_below {
            let batch = self.tuning.batch * self.frugality.batches;
            let until = next.max(turn.now + batch);
            self.planned = Some(until);
            if until > now {
                self.sleep(false, self.pace.until(until, real).min(most));
            }
        } else if next > now {
            self.planned = Some(next);
            let gap = self.pace.until(next, real);
            let sleep = gap.saturating_sub(self.tuning.spin);
            let interrupted = sleep > Span::ZERO
                && (self.sleep(gap >= self.frugality.arrivals_wait_below, sleep.min(most)) != 0
                    || sleep > most);
            while self.tuning.spin > Span::ZERO && !interrupted && self.now() < next {
                std::hint::spin_loop();
            }
        } else {
            // Due already. It counts as late only if it was not yet due when the turn began.
            self.planned = (next > turn.now).then_some(next);
        }
    }

    /// Sleeps for a time, or until a command or, if `arrivals` are waited for, a packet comes;
    /// says which.
    fn sleep(&mut self, arrivals: bool, time: Span) -> u64 {
        let fds = [self.shared.wake.as_fd(), self.receiver.as_fd()];
        let before = sys::now();
        let ready = sys::wait(&fds[..if arrivals { 2 } else { 1 }], Some(time));
        let after = sys::now();
        if ready == 0 || after.since(before) >= REAL_SLEEP {
            self.slept = after;
        }
        ready
    }

    /// Gives the core up for a moment if that has not happened for long.
    fn breathe(&mut self) {
        if self.counters.realtime && sys::now().since(self.slept) > BREATHE_AFTER {
            self.sleep(false, BREATH);
        }
    }
}

/// One turn of the loop.
#[derive(Clone, Copy)]
struct Turn {
    /// The time that the discipline was told.
    now: Time,
    /// When the first packet that had been queued before was due, if it was.
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
