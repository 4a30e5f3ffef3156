//! `htb`: a hierarchy of token buckets with disciplines below (man tc-htb; Devera 2002; facts D.8).
//!
//! Each class has a guaranteed rate and a ceil. What one does not use, others of the same parent
//! may borrow, lower numbers of `prio` first. `htb/tree.rs` decides whose turn it is, in rows and
//! feeds (`htb/feed.rs`); here are the leaves' disciplines, classification and the books.
//! `htb rate 20mbit burst 15k fq_codel` is one class, to which everything belongs.
//!
//! A packet goes to the leaf that its `class` names, else to the `default` one. What belongs to
//! none is *direct*: sent first, and shaped by nothing.
//!
//! Invariants: no class exceeds its ceil by more than its cburst and a packet; a class whose
//! parents have rate to spare gets its own.

mod feed;
mod stats;
mod tree;
mod words;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::framing::Framing;
use crate::memory::{copied, reserved};
use crate::packet::Packet;
use crate::qdisc::child::{Child, Tally};
use crate::qdisc::fifo::{self, Fifo};
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, Managed, PacketOwner, Qdisc,
    Snapshot, Totals,
};
use crate::rate::{Arithmetic, ByteTime, Rate};
use crate::shaper::token_bucket::TokenBucket;
use crate::steps::{step, Budget, MOST_CLASSES, PER_LOOP};
use crate::time::{Span, Time};

use feed::PRIORITIES;
use tree::{Tree, Way, LEVELS};

pub use stats::Stats;
pub use words::write_class;

/// Settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Minor number of the class for packets that name none.
    pub default: u16,
    /// Divisor of a rate in bytes a second that gives a quantum.
    pub r2q: u32,
    /// Packets that may be queued directly; None takes the device's queue length.
    pub direct_qlen: Option<u32>,
    /// Classes, parents before their children.
    pub classes: Vec<Class>,
}

/// A class's settings, with the names of `tc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Minor number, not zero.
    pub id: u16,
    /// Minor number of the class above; None below the root.
    pub parent: Option<u16>,
    /// Guaranteed rate.
    pub rate: Rate,
    /// Rate that it never exceeds.
    pub ceil: Rate,
    /// Bytes that may be sent at once beyond `rate`.
    pub burst: u32,
    /// Bytes that may be sent at once beyond `ceil`.
    pub cburst: u32,
    /// 0 is served first, 7 last.
    pub prio: u8,
    /// Bytes a turn; None divides the rate by `r2q`.
    pub quantum: Option<u32>,
    /// Framing: a packet's size on the line.
    pub framing: Framing,
    /// Discipline below; a `pfifo` if None.
    pub child: Option<Config>,
}

impl Params {
    /// Default of `r2q`.
    pub const R2Q: u32 = 10;
    /// Most classes above each other, leaf included.
    pub const MAX_DEPTH: usize = LEVELS;

    /// The classes as a tree, in the order of their ids.
    fn tree(&self, arithmetic: Arithmetic, now: Time) -> Result<Tree, ConfigError> {
        let wrong = |expected| ConfigError::OutOfRange { option: "class", expected };
        if self.classes.len() > MOST_CLASSES {
            return Err(wrong("at most 1024 of them"));
        }
        let mut sorted: Vec<&Class> = reserved(self.classes.len())?;
        sorted.extend(&self.classes);
        sorted.sort_unstable_by_key(|class| class.id);
        if sorted.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return Err(wrong("each number once"));
        }
        let mut nodes = reserved(sorted.len())?;
        for class in &sorted {
            let parent = match class.parent {
                None => None,
                Some(id) => {
                    let known = sorted.binary_search_by_key(&id, |class| class.id);
                    let index = known.map_err(|_| wrong("a parent that is there"))?;
                    let place = |id| self.classes.iter().position(|class| class.id == id);
                    if place(id) >= place(class.id) {
                        return Err(wrong("parents before their children"));
                    }
                    Some(index as u16)
                }
            };
            let bucket = |rate, burst| bucket(rate, burst, arithmetic);
            let (rate, ceil) = (bucket(class.rate, class.burst), bucket(class.ceil, class.cburst));
            let mut node = tree::Class::new(class.id, parent, rate, ceil);
            node.prio = class.prio.min(PRIORITIES as u8 - 1);
            node.quantum = class.quantum(self.r2q);
            node.framing = class.framing;
            nodes.push(node);
        }
        Tree::new(nodes, now)?.ok_or(wrong("a tree of at most 8 levels"))
    }

    /// The class with the minor number `id`, which is mostly the one at `place`.
    fn class(&self, place: usize, id: u16) -> Option<&Class> {
        let there = self.classes.get(place).filter(|class| class.id == id);
        there.or_else(|| self.classes.iter().find(|class| class.id == id))
    }

    fn direct(&self) -> fifo::Params {
        fifo::Params { kind: fifo::Kind::Pfifo, limit: self.direct_qlen }
    }
}

impl Class {
    /// Smallest and largest quantum that is computed; Linux's.
    const QUANTUM: (u64, u64) = (1000, 200_000);

    /// Bytes a turn.
    fn quantum(&self, r2q: u32) -> i32 {
        let (least, most) = Class::QUANTUM;
        let computed = || (self.rate.0 / u64::from(r2q.max(1))).clamp(least, most) as u32;
        let quantum = self.quantum.filter(|quantum| *quantum > 0).unwrap_or_else(computed);
        quantum.min(i32::MAX as u32) as i32
    }

    /// The discipline below.
    fn below(&self) -> &Config {
        self.child.as_ref().unwrap_or(&Config::PFIFO)
    }
}

/// A bucket for `burst` bytes. Linux's is what `tc` makes of them: whole microseconds, in ticks of
/// 64 ns.
pub(crate) fn bucket(rate: Rate, burst: u32, arithmetic: Arithmetic) -> TokenBucket {
    match arithmetic {
        Arithmetic::Exact => TokenBucket::new(rate, burst, arithmetic),
        Arithmetic::Linux(_) => {
            let micros = u64::from(burst) * 1_000_000 / rate.0.max(1);
            let depth = Span((micros * 125 / 8) << 6);
            TokenBucket::with_depth(ByteTime::of_bucket(rate, arithmetic), depth)
        }
    }
}

/// A tree of classes with disciplines in its leaves.
#[derive(Debug)]
pub struct Htb {
    tree: Tree,
    /// By class; None for inner ones.
    leaves: Vec<Option<Child>>,
    direct: Fifo,
    direct_packets: u32,
    /// Class of default; beyond all classes if there is none.
    default: Option<u16>,
    /// The last call found classes that may send, but nothing to be sent.
    stalled: bool,
    totals: Totals,
    now: Time,
    /// Class of the packet that was sent last.
    last: u32,
    params: Params,
    device: Device,
}

impl Htb {
    /// Full buckets, and nothing queued.
    pub fn new(params: &Params, device: &Device) -> Result<Htb, ConfigError> {
        let tree = params.tree(device.arithmetic, device.now)?;
        let mut leaves = reserved(tree.classes.len())?;
        for node in &tree.classes {
            let class = params.classes.iter().find(|class| class.id == node.id);
            leaves.push(match class.filter(|_| node.level == 0) {
                Some(class) => Some(Child::new(class.below(), &device.below_class())?),
                None => None,
            });
        }
        let mut htb = Htb {
            tree,
            leaves,
            direct: Fifo::new(&params.direct(), device)?,
            direct_packets: 0,
            default: None,
            stalled: false,
            totals: Totals::default(),
            now: device.now,
            last: 0,
            params: Params { classes: copied(&params.classes)?, ..*params },
            device: *device,
        };
        htb.default = htb.leaf_of(params.default);
        Ok(htb)
    }

    /// The leaf with this minor number.
    #[inline]
    fn leaf_of(&self, minor: u16) -> Option<u16> {
        let classes = &self.tree.classes;
        let index = classes.binary_search_by_key(&minor, |class| class.id).ok()?;
        (classes[index].level == 0).then_some(index as u16)
    }

    /// The leaf that `packet` belongs to; None for a direct one.
    #[inline]
    fn classify(&self, packet: &Packet) -> Option<u16> {
        let Some(minor) = packet.minor_of(self.device.handle) else { return self.default };
        if minor == 0 {
            return None;
        }
        self.leaf_of(minor as u16).or(self.default)
    }

    #[inline]
    fn queued(&self) -> u64 {
        self.totals.enqueued_packets - self.totals.sent_packets - self.totals.drops()
    }

    #[inline(always)]
    fn place(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let leaf = self.classify(packet);
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let child = leaf.and_then(|index| Some((index, self.leaves.get_mut(usize::from(index))?)));
        match child {
            Some((index, Some(child))) => {
                child.enqueue(packet, now, &mut tally);
                match (self.tree.is_active(index), child.is_empty()) {
                    (false, false) => self.tree.activate(index),
                    // Its discipline dropped all that it had: its turn is over.
                    (true, true) => self.tree.deactivate(index),
                    _ => {}
                }
            }
            _ => {
                let before = self.direct.backlog().packets;
                self.direct.enqueue(packet, now, &mut tally);
                self.direct_packets += self.direct.backlog().packets - before;
            }
        }
        self.stalled = false;
    }

    /// As `enqueue`, for any packet.
    #[inline(never)]
    fn enqueue_any(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let clamped = packet.clamped(ByteTime::MOST_BYTES);
        self.place(clamped.as_ref().unwrap_or(packet), now, owner);
    }

    /// As `enqueue`, for a packet that belongs to `leaf`.
    #[inline(always)]
    fn enqueue_to(
        &mut self,
        leaf: Option<u16>,
        packet: &Packet,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) {
        self.now = now;
        self.totals.enqueued_packets += 1;
        let Some(index) = leaf.filter(|index| self.admits(*index, packet, now)) else {
            return self.enqueue_any(packet, now, owner);
        };
        self.stalled = false;
        if !self.tree.is_active(index) {
            self.tree.activate(index);
        }
    }

    /// As `enqueue`, for a packet that may name a class. Apart, since a search needs registers that
    /// must be saved.
    #[inline(never)]
    fn enqueue_classified(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.enqueue_to(self.classify(packet), packet, now, owner);
    }

    /// Takes `packet` into leaf `index`, if that can be done without a call; else nothing happens.
    #[inline(always)]
    fn admits(&mut self, index: u16, packet: &Packet, now: Time) -> bool {
        let fifo = match self.leaves.get_mut(usize::from(index)) {
            Some(Some(child)) => child.fifo(),
            _ => None,
        };
        packet.is_chargeable(ByteTime::MOST_BYTES)
            && fifo.is_some_and(|fifo| fifo.admits(packet, now))
    }

    /// The leaf to be served, its priority and the length of its first packet on the line. None
    /// unless all that is known without a call: nothing is direct, and an ordinary packet stands in
    /// a FIFO.
    #[inline(always)]
    fn ready(&mut self, now: Time) -> Option<(u16, usize, u32)> {
        if !self.direct.is_empty() {
            return None;
        }
        let (index, prio) = self.tree.ready_leaf(now)?;
        let packet = self.leaves.get_mut(usize::from(index))?.as_mut()?.fifo()?.head()?;
        if packet.segments() > 1 {
            return None;
        }
        let class = self.tree.classes.get(usize::from(index))?;
        let wire_len = class.framing.charge_ordinary(packet);
        (wire_len <= ByteTime::MOST_BYTES).then_some((index, prio, wire_len))
    }

    /// Sends what is [`Htb::ready`].
    #[inline(always)]
    fn send_ready(
        &mut self,
        (index, prio, wire_len): (u16, usize, u32),
        now: Time,
    ) -> Option<&mut Packet> {
        let fifo = self.leaves.get_mut(usize::from(index))?.as_mut()?.fifo()?;
        let is_last = fifo.backlog().packets == 1;
        let packet = fifo.take()?;
        packet.adj_len = wire_len;
        self.tree.spend(index, 0, prio, packet.len);
        if is_last {
            self.tree.deactivate(index);
        }
        self.tree.charge(index, 0, packet, wire_len, now);
        self.stalled = false;
        self.last = self.tree.classes.get(usize::from(index)).map_or(0, |class| class.id.into());
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    /// As `dequeue`, for all that may be.
    #[inline(never)]
    fn dequeue_any(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.direct.head().is_some() {
            let packet = self.direct.dequeue(now, owner)?;
            self.last = 0;
            packet.adj_len = packet.len;
            self.totals.sent_packets += 1;
            self.totals.sent_bytes += u64::from(packet.len);
            return Some(packet);
        }
        if self.queued() == 0 {
            return None;
        }
        let (looks, budget) = (Budget::default(), Budget::default());
        for level in self.tree.levels() {
            self.tree.wake(level, now, &looks);
            let mut rows = self.tree.rows(level);
            while rows != 0 {
                let prio = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                if let Some(index) = self.serve(level, prio, now, &budget, owner) {
                    self.stalled = false;
                    let packet = self.leaves.get_mut(usize::from(index))?.as_mut()?.taken();
                    self.totals.sent_packets += 1;
                    self.totals.sent_bytes += u64::from(packet.len);
                    return Some(packet);
                }
                if budget.is_spent() {
                    self.stalled = false;
                    return None;
                }
            }
        }
        self.stalled = self.tree.is_open() && !looks.is_spent();
        None
    }

    /// Takes the next packet of a row, from the leaf whose turn it is, and says which that was.
    /// None: no leaf has one now, or the budget is spent; the next call goes on then.
    #[inline(always)]
    fn serve(
        &mut self,
        level: usize,
        prio: usize,
        now: Time,
        budget: &Budget,
        owner: &mut dyn PacketOwner,
    ) -> Option<u16> {
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let mut way = Way::default();
        let mut start = self.tree.leaf(level, prio, &mut way)?;
        let mut index = start;
        loop {
            step();
            let child = self.leaves.get_mut(usize::from(index))?.as_mut()?;
            let (mut sent, queued) = (None, child.backlog().packets);
            if child.is_due(now) {
                if budget.is_spent() {
                    return None;
                }
                budget.spend_on(Budget::CHILD);
                sent = child.take(now, &mut tally);
            }
            if sent.is_none() && child.is_empty() {
                // Its discipline dropped all that it had.
                self.tree.deactivate(index);
                if self.tree.rows(level) & 1 << prio == 0 {
                    return None;
                }
                let next = self.tree.leaf(level, prio, &mut way)?;
                if index == start {
                    start = next;
                }
                index = next;
                continue;
            }
            if let Some(len) = sent {
                let emptied = child.is_empty();
                let packet = child.taken();
                let class = self.tree.classes.get(usize::from(index))?;
                let wire_len = class.framing.charge(packet);
                self.last = class.id.into();
                packet.adj_len = wire_len;
                if emptied && queued > 1 {
                    // The others were dropped, which ends the turn before this one is paid for.
                    self.tree.deactivate(index);
                }
                self.tree.spend(index, level, prio, len);
                if emptied {
                    self.tree.deactivate(index);
                }
                self.tree.charge(index, level, packet, wire_len, now);
                return Some(index);
            }
            if child.is_due(now) {
                // It goes on in the next call: its turn is not over.
                budget.spend_on(PER_LOOP);
                return None;
            }
            // Not yet, says its discipline: whose turn is next?
            index = self.tree.leaf_after(index, level, prio, &mut way)?;
            if index == start {
                return None;
            }
        }
    }

    /// Earliest time after `self.now` at which a leaf's discipline may have a packet, or a class
    /// that waits is looked at again.
    #[cold]
    fn next_of_stalled(&self) -> Option<Time> {
        let later = |time: &Time| *time > self.now;
        let children = self.leaves.iter().flatten().filter_map(Child::next_event);
        children.chain(self.tree.next_wake()).filter(later).min()
    }

    /// Counters of the class with the minor number `id`: lent, borrowed, over its ceil.
    pub fn class_stats(&self, id: u16) -> Option<(u32, u32, u32)> {
        let class = self.tree.classes.iter().find(|class| class.id == id)?;
        Some((class.lends, class.borrows, class.overlimits))
    }
}

impl Qdisc for Htb {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        match packet.class {
            0 => self.enqueue_to(self.default, packet, now, owner),
            _ => self.enqueue_classified(packet, now, owner),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.now = now;
        match self.ready(now) {
            Some(ready) => self.send_ready(ready, now),
            None => self.dequeue_any(now, owner),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        if self.queued() == 0 {
            return None;
        }
        if self.stalled {
            return self.next_of_stalled().or(Some(self.now));
        }
        if self.tree.is_open() || self.direct.head().is_some() {
            return Some(self.now);
        }
        self.tree.next_wake().or(Some(self.now))
    }

    fn backlog(&self) -> Backlog {
        let mut sum = self.direct.backlog();
        for child in self.leaves.iter().flatten() {
            let Backlog { packets, bytes } = child.backlog();
            (sum.packets, sum.bytes) = (sum.packets + packets, sum.bytes + bytes);
        }
        sum
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        self.direct.reset(&mut tally);
        for child in self.leaves.iter_mut().flatten() {
            child.reset(&mut tally);
        }
        self.tree.forget(self.now);
        self.stalled = false;
    }
}

impl Managed for Htb {
    fn below(&self, n: usize) -> Option<(u32, &dyn Managed)> {
        let leaves = self.tree.classes.iter().zip(&self.leaves);
        leaves
            .filter_map(|(class, leaf)| Some((u32::from(class.id), leaf.as_ref()?.qdisc())))
            .nth(n)
    }

    fn snapshot(&self) -> Snapshot {
        let totals =
            Totals { marked: self.marked(), overlimits: self.tree.overlimits, ..self.totals };
        let detail = Detail::Htb(Stats { direct_packets: self.direct_packets });
        Snapshot { totals, backlog: self.backlog(), detail }
    }

    fn marked(&self) -> u64 {
        self.leaves.iter().flatten().map(|child| child.qdisc().marked()).sum()
    }

    fn config(&self) -> Config {
        Config::Htb(self.params.clone())
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(new) = spare_of::<Htb>(spare) else { return };
        // What the old classes have saved up, and their disciplines with their packets.
        new.tree.inherit(&self.tree, now);
        (new.totals, new.direct_packets) = (self.totals, self.direct_packets);
        for (place, (node, leaf)) in self.tree.classes.iter().zip(&mut self.leaves).enumerate() {
            let (Some(child), Some(index)) = (leaf, new.leaf_of(node.id)) else { continue };
            let Some(Some(spare)) = new.leaves.get_mut(usize::from(index)) else { continue };
            let was = self.params.class(place, node.id).map(Class::below);
            let is = new.params.class(place, node.id).map(Class::below);
            if !was.zip(is).is_some_and(|(was, is)| was.is_surely(is)) {
                child.adopt(spare, now, &mut Tally { owner, dropped: &mut new.totals.dropped });
            }
            core::mem::swap(child, spare);
            if !spare.is_empty() {
                new.tree.activate(index);
            }
        }
        let mut tally = Tally { owner, dropped: &mut new.totals.dropped };
        self.direct.change(&mut new.direct, &mut tally);
        core::mem::swap(&mut self.direct, &mut new.direct);
        for (node, leaf) in self.tree.classes.iter().zip(&mut self.leaves) {
            if let (Some(child), None) = (leaf, new.leaf_of(node.id)) {
                child.reset(&mut Adopter { htb: new, now, owner });
            }
        }
        (new.now, new.device) = (now, self.device);
        core::mem::swap(self, new);
    }
}

/// Puts packets of a class that is no more where they belong now.
struct Adopter<'a> {
    htb: &'a mut Htb,
    now: Time,
    owner: &'a mut dyn PacketOwner,
}

impl PacketOwner for Adopter<'_> {
    fn dropped(&mut self, packet: Packet, _: crate::qdisc::DropReason) {
        self.htb.place(&packet, self.now, self.owner);
    }
}

#[cfg(test)]
mod tests;
