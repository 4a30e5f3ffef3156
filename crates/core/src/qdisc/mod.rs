//! The contract of every discipline.
//!
//! A driver (the live gateway, the simulator, a replay) owns the packets and the clock. It calls
//! [`Qdisc::enqueue`] for each arrival and [`Qdisc::dequeue`] whenever its device can send or
//! [`Qdisc::next_event`] has come. Times passed to one discipline never decrease.
//!
//! Invariants of all of them, asserted by the property tests:
//!
//! * packets in = packets out + dropped + queued;
//! * every drop and mark has a counted reason;
//! * nothing allocates outside construction and [`Managed::prepare`];
//! * a call of `enqueue` or `dequeue` takes at most [`steps::MOST`](crate::steps::MOST) steps,
//!   whatever is queued.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use crate::memory::{Memory, NoMemory};
use crate::netlink::Writer;
use crate::packet::Packet;
use crate::rate::Rate;
use crate::tc::{Digits, Json};
use crate::tick::Tick;
use crate::time::{Span, Time};
use crate::wire::tcp::AckView;

pub(crate) mod booked;
mod books;
pub(crate) mod child;
mod described;
#[macro_use]
mod list;
pub(crate) mod longest;
pub mod many;
mod needs;
pub mod netlink;
mod parse;
mod show;
pub mod single;
#[macro_use]
mod stats;
pub(crate) mod store;

use described::{built, too_small};
pub use described::{Described, Listed, Names};
pub use needs::{Bypass, Choice, Needs};
use parse::parse_child;
pub use parse::{
    amend, check_rates, discipline, disciplines, keywords, parse, parse_strictly,
    parse_with_default, parse_words, Discipline,
};
pub use show::{
    show, show_json, show_json_items, show_own, show_own_json, Common, Handle, NotAHandle, Parent,
    QdiscView, Statistics,
};
pub use single::Fate;
pub use stats::{Chance, Class, OwnStats, Snapshot, Totals, UnlessZero};

// All disciplines. To add one: its file beside this one, and its line here (docs/LAB.md).
disciplines! {
    cake: Cake,
    fifo: Fifo,
    delay: Delay,
    line: Line,
    codel: Codel,
    drr: Drr,
    fq_codel: FqCodel,
    fq_pie: FqPie,
    pie: Pie,
    red: Red,
    sfq: Sfq,
    sfb: Sfb,
    blue: Blue,
    cobalt: Cobalt,
    dualpi2: Dualpi2,
    tbf: Tbf,
    htb: Htb,
    // The example of docs/LAB.md, which the unit tests keep true.
    #[cfg(test)]
    toy: Toy,
}

impl Config {
    /// The discipline that stands below where nothing else was said.
    const PFIFO: Config = Config::Fifo(fifo::Params { kind: fifo::Kind::Pfifo, limit: None });

    /// The same with all that `device` decides filled in, as Linux shows it: limits, quanta, and
    /// times of timers.
    pub fn resolved(mut self, device: &Device) -> Config {
        self.resolve(device);
        self
    }
}

/// The reason for which a discipline gave a packet up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DropReason {
    /// A limit of packets, bytes or memory was reached.
    Overlimit,
    /// Active queue management asked the sender to slow down.
    Congested,
    /// BLUE took it from a flow that does not respond to other signals.
    Flood,
    /// A newer acknowledgement in the same queue makes it redundant.
    AckFilter,
    /// The discipline was emptied by `reset`.
    Reset,
    /// It belongs to no class.
    Unclassified,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = 6;
    /// All reasons, in the order of their discriminants.
    pub const ALL: [DropReason; DropReason::COUNT] = [
        DropReason::Overlimit,
        DropReason::Congested,
        DropReason::Flood,
        DropReason::AckFilter,
        DropReason::Reset,
        DropReason::Unclassified,
    ];

    /// A word for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Overlimit => "overlimit",
            DropReason::Congested => "congested",
            DropReason::Flood => "flood",
            DropReason::AckFilter => "ack_filter",
            DropReason::Reset => "reset",
            DropReason::Unclassified => "unclassified",
        }
    }
}

/// Whoever owns the packets behind the handles.
pub trait PacketOwner {
    /// `packet` left the discipline by another way than `dequeue`.
    fn dropped(&mut self, packet: Packet, reason: DropReason);

    /// A hash of `packet`'s flow under `key`, where the owner computes it as the original of a
    /// discipline does (recordings). None, as in all other cases: the discipline has its own.
    fn keyed_hash(&mut self, packet: &Packet, key: [u64; 2]) -> Option<u32> {
        let _ = (packet, key);
        None
    }

    /// The TCP header of `packet`, for ACK filtering: None if it is not TCP, or not worth a look.
    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let _ = packet;
        None
    }

    /// Hint that `next` and then `after` will probably be dequeued soon, and may have left the
    /// cache. An owner that fetches `after` each time need not fetch `next`. Nothing depends on it.
    fn expect(&mut self, next: &Packet, after: &Packet) {
        let _ = after;
        core::hint::black_box(next.len);
    }
}

/// An owner that forgets what is dropped: for benchmarks and doc examples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl PacketOwner for Discard {
    fn dropped(&mut self, _: Packet, _: DropReason) {}
}

/// A discipline cannot run with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// `configure` was handed another discipline's configuration; make a new discipline instead.
    OtherDiscipline,
    /// A value is outside what the discipline can work with.
    OutOfRange {
        /// The option's keyword.
        option: &'static str,
        /// A correct form.
        expected: &'static str,
    },
    /// Memory is too short for queues of that number and length.
    NoMemory,
}

impl From<NoMemory> for ConfigError {
    fn from(_: NoMemory) -> ConfigError {
        ConfigError::NoMemory
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::OtherDiscipline => f.write_str(
                "these settings belong to another discipline than the one that is running",
            ),
            ConfigError::OutOfRange { option, expected } => {
                write!(f, "`{option}` does not fit: expected {expected}")
            }
            ConfigError::NoMemory => f.write_str(
                "memory is too short for these settings: fewer queues or a lower limit need less",
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

/// Packets and bytes in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes as they came (`len`, not framing-adjusted).
    pub bytes: u64,
}

/// A queue discipline: what a packet needs.
pub trait Qdisc {
    /// Takes a copy of `packet` in at `now`. Whatever leaves the queue by another way than
    /// `dequeue`, this packet or an older one, goes to `owner` with its reason.
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner);

    /// The next packet to send at `now`. None: nothing is queued, or the shaper says not yet. It
    /// may also be that this call has done as much work as one may. Then [`Qdisc::next_event`] is
    /// not later than `now`, and the next call goes on where this one stopped.
    ///
    /// The packet lies where it was queued, and is the caller's until the next call. Descriptors
    /// are handed over by reference, since a pair of enqueue and dequeue costs what it writes to
    /// memory. A store takes a cycle, and each copy of a descriptor takes four of them.
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet>;

    /// Earliest time at which `dequeue` may next return a packet; None while nothing is queued. A
    /// time in the past means now, also after a call that returned none. Calling early is harmless,
    /// calling late costs only quality.
    fn next_event(&self) -> Option<Time>;

    /// The packet that `dequeue` would return now, where that is known without changing anything.
    /// None says nothing. A shaper above looks at its length.
    fn peek(&self) -> Option<&Packet> {
        None
    }

    /// Notes packets that the parent has taken out only to look at. They count against limits as if
    /// they were queued here still, as in Linux (`qdisc_peek_dequeued`).
    fn lend(&mut self, lent: Backlog, now: Time) {
        let _ = (lent, now);
    }

    /// Tier and queue in which the packet that `dequeue` last returned had stood. None for
    /// disciplines that have neither.
    fn placement(&self) -> Option<(u8, u32)> {
        None
    }

    /// Packets and bytes queued.
    fn backlog(&self) -> Backlog;

    /// Gives every queued packet to `owner` and forgets all learnt state; counters stay.
    fn reset(&mut self, owner: &mut dyn PacketOwner);
}

/// The decisions of a discipline with one queue, about packets that wait elsewhere. In a kernel
/// that is below it, in a discipline that is not of the core.
///
/// The first call is [`Gate::open`]. About each arrival [`Gate::decide`] is asked; what it does not
/// drop counts as queued. [`Gate::refused`] follows if the discipline below does not take it.
/// [`Gate::left`] comes when packets are gone, sent or dropped. What waits elsewhere is in none of
/// the discipline's books.
pub trait Gate {
    /// Gives all packets of its own queue to `owner`, as ones that a reset drops. What was learnt
    /// stays.
    fn open(&mut self, owner: &mut dyn PacketOwner);

    /// Decides about an arrival while `below` waits elsewhere. Its `enqueued` is not set. On
    /// [`Fate::Marked`] the caller marks it.
    fn decide(
        &mut self,
        packet: &Packet,
        below: Backlog,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Fate;

    /// The packet that was decided about last was refused there.
    fn refused(&mut self, now: Time);

    /// So many packets wait there now.
    fn left(&mut self, packets: u32);

    /// There was no packet to take.
    fn found_empty(&mut self, now: Time);
}

/// A discipline whose settings and statistics can be asked for and changed.
///
/// A change has two parts. [`Managed::prepare`] checks and allocates, and may fail; it needs no
/// access of its own, so packets may come and go meanwhile. [`Managed::adopt`] applies: it neither
/// fails nor allocates. Whoever holds a lock around the discipline needs it for that part only, and
/// frees what is left of the spare after it.
pub trait Managed: Qdisc + Any {
    /// A copy of all counters.
    fn snapshot(&self) -> Snapshot;

    /// Packets that were marked here or below: `marked` of the snapshot. A discipline above needs
    /// no room on the stack for all of a snapshot to learn it.
    fn marked(&self) -> u64 {
        self.snapshot().totals.marked
    }

    /// True if it is empty, and a packet may go past it now, unseen, without a change to what
    /// becomes of later ones. Deviations are allowed as for
    /// [`Aqm::is_at_rest`](single::Aqm::is_at_rest).
    fn is_at_rest(&self) -> bool {
        false
    }

    /// Its decisions alone, if it decides as packets arrive and by nothing but its backlog.
    fn gate(&mut self) -> Option<&mut dyn Gate> {
        None
    }

    /// The settings in force. May allocate.
    fn config(&self) -> Config;

    /// A spare of this discipline for [`Managed::adopt`]: what `config` describes, empty, on the
    /// same device at `now`, with all memory that the change needs.
    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError>;

    /// As [`Managed::prepare`], on a device whose frames or queue may be longer or shorter by now.
    /// Disciplines that look at it again when they change, as Linux's cake does, go by that then.
    fn prepare_on(
        &self,
        config: &Config,
        device: &Device,
    ) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.prepare(config, device.now)
    }

    /// Takes over the settings of `spare`, which [`Managed::prepare`] made for this discipline and
    /// nobody used, and what it needs of its memory. Queued packets stay queued, unless a limit
    /// that was lowered forces the oldest out; what was learnt stays. The spare is to be dropped
    /// afterwards.
    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner);

    /// Changes the settings at `now`: both parts at once. On an error nothing has changed.
    fn configure(
        &mut self,
        config: &Config,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        let mut spare = self.prepare(config, now)?;
        self.adopt(spare.as_mut(), now, owner);
        Ok(())
    }

    /// The `n`-th of its queues, if it has so many, in the order in which Linux numbers them. Goes
    /// through all packets of that queue.
    fn class(&self, n: u32) -> Option<Class> {
        let _ = n;
        None
    }

    /// The queue in which a packet like `packet` waits, if any does, as [`Managed::class`] numbers
    /// it. None for disciplines without queues per flow.
    fn queue_of(&self, packet: &Packet) -> Option<u32> {
        let _ = packet;
        None
    }

    /// The `n`-th discipline below this one, with the class that it hangs at. None from the number
    /// of disciplines below on.
    fn below(&self, n: usize) -> Option<(u32, &dyn Managed)> {
        let _ = n;
        None
    }
}

/// A spare with these settings, if they are of the discipline `P`.
fn prepared<P: Listed>(
    config: &Config,
    device: &Device,
    now: Time,
) -> Result<Box<dyn Managed + Send>, ConfigError> {
    let params = P::of(config).ok_or(ConfigError::OtherDiscipline)?;
    params.build(&Device { now, ..*device })
}

/// `spare` as the discipline that is to adopt it; None if it is another one, for which nothing is
/// to be done.
fn spare_of<T: Managed>(spare: &mut dyn Managed) -> Option<&mut T> {
    let spare = (spare as &mut dyn Any).downcast_mut();
    debug_assert!(spare.is_some(), "a spare that was prepared for another discipline");
    spare
}

/// The discipline that `config` describes, empty. All its memory is reserved here.
pub fn build(config: &Config, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
    config.build(device)
}

/// Surroundings of a discipline, beyond its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Largest frame in bytes, link header included (`psched_mtu`): 1514 on Ethernet.
    pub mtu: u32,
    /// The device's queue length in packets: the default limit of FIFOs.
    pub tx_queue_len: u32,
    /// Seed of every random decision.
    pub seed: u64,
    /// The handle (`major:0`) that packet classes are compared with; 0: none is like it.
    pub handle: u32,
    /// Rounding of transmission times: exact, or as in a release of Linux.
    pub arithmetic: crate::rate::Arithmetic,
    /// Present time: timers of the discipline count from here.
    pub now: Time,
    /// Times at which its timers fire: exact, or at the ticks of a kernel.
    pub tick: Tick,
    /// Time at which memory for packets is taken: at construction, or as packets come.
    pub memory: Memory,
}

impl Device {
    /// Surroundings of a discipline below a class: what a packet's class says has been read.
    fn below_class(&self) -> Device {
        Device { handle: 0, ..*self }
    }
}

impl Default for Device {
    fn default() -> Device {
        Device {
            mtu: 1514,
            tx_queue_len: 1000,
            seed: 1,
            handle: 0x8001_0000,
            arithmetic: crate::rate::Arithmetic::Exact,
            now: Time::ZERO,
            tick: Tick::Exact,
            memory: Memory::Reserved,
        }
    }
}
