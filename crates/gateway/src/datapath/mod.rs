//! The data path of one direction: a thread that stands between an NFQUEUE and a discipline.
//!
//! ```text
//! loop: attend to commands, if any
//!       take all packets that the kernel has queued, and enqueue them
//!       dequeue all that is due; verdicts leave in batches
//!       sleep until a packet comes or the discipline's next event
//! ```
//!
//! Release follows the discipline's own schedule: a late wake-up makes a small burst. The clock
//! that a shaper is told is a little slow (`pace.rs`), and lateness beyond [`Tuning::catch_up`] is
//! forfeited. So no second holds more than the set rate, bursts included. When packets are due fast
//! ([`Frugality`]) they are released in batches, [`Tuning::batch`] apart, and arrivals wait as
//! long: one wake-up for several packets.
//!
//! Where the discipline takes super-packets (`takes_super_packets`: cake from 1 Gbit/s on), the
//! kernel leaves them whole. Their segments are paid for as they will be on the wire
//! (`segments.rs`).
//!
//! After start the loop neither allocates nor logs nor locks. The control thread sends commands
//! through a mailbox that is opened only when a flag says so. Statistics are made and sent when it
//! asks for them. A packet that cannot be parsed is best effort; only the discipline drops.

mod engine;
mod mailbox;
mod thread;

use serde::{Deserialize, Serialize};
use simnel_core::qdisc::{Config, Device, Managed, Snapshot};
use simnel_core::{Span, Time};

pub(crate) use self::mailbox::{configure, Remote};
pub(crate) use self::thread::{Surroundings, Worker};
use crate::lanes::Lanes;
use crate::nfqueue::LONGEST;

/// Buckets of the lateness histogram.
pub const LATENESS_BUCKETS: usize = 16;

/// A discipline that may be handed to a thread.
pub(crate) type BoxedQdisc = Box<dyn Managed + Send>;

/// Settings of a thread of the data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Priority under SCHED_FIFO, 1..=99; None, or no permission, runs it as any other thread.
    pub realtime: Option<u8>,
    /// The last part of each wait is spent spinning: exact to 0.1 µs, at the cost of a core.
    /// With 60 µs that is 4 % of one at 10 Mbit/s, 46 % at 100 Mbit/s.
    pub spin: Span,
    /// Lateness that a burst makes up for.
    pub catch_up: Span,
    /// Time between batches at high rates. A wake-up costs some 35 µs of processor time (measured
    /// on a virtual machine), and 500 µs share it among 40 packets at 1 Gbit/s. Half as long costs
    /// a fifth more, twice as long a tenth less.
    pub batch: Span,
    /// Packets that the kernel keeps for us at most; more pass unshaped. None: what fits the rate.
    pub queue_length: Option<u32>,
    /// Keep all of the process in memory (mlockall).
    pub lock_memory: bool,
    /// Queues and threads of each direction, which share a rate if there are several.
    pub lanes: Lanes,
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
            lanes: Lanes::default(),
        }
    }
}

impl Tuning {
    /// Packets that the kernel keeps for the discipline that `config` describes.
    ///
    /// The kernel keeps those that the discipline has queued as well. Were there less room than the
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

impl Counters {
    /// Adds those of another lane.
    pub(crate) fn join(&mut self, other: &Counters) {
        for (count, other) in [
            (&mut self.received, other.received),
            (&mut self.released, other.released),
            (&mut self.dropped, other.dropped),
            (&mut self.marked, other.marked),
            (&mut self.washed, other.washed),
            (&mut self.unknown, other.unknown),
            (&mut self.stale_verdicts, other.stale_verdicts),
            (&mut self.verdict_errors, other.verdict_errors),
            (&mut self.receive_errors, other.receive_errors),
            (&mut self.turns, other.turns),
        ] {
            *count += other;
        }
        self.lateness.iter_mut().zip(other.lateness).for_each(|(count, other)| *count += other);
        self.forfeited += other.forfeited;
        self.cpu += other.cpu;
        self.realtime &= other.realtime;
    }
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

impl Status {
    /// Adds what another lane of the same direction counted.
    pub(crate) fn join(&mut self, other: &Status) {
        self.root.snapshot.join(&other.root.snapshot);
        self.counters.join(&other.counters);
        self.at = self.at.max(other.at);
    }
}

/// All that a thread tells of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Time at which it was told, by CLOCK_MONOTONIC.
    pub at: Time,
    /// The discipline.
    pub root: Node,
    /// The data path's counters.
    pub counters: Counters,
}

#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod tests;
