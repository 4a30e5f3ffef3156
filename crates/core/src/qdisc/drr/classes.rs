//! DRR between classes, each with a discipline of its own (Linux's `drr`).
//!
//! A class that sends its last packet leaves the round and loses its deficit; it comes back at the
//! end with one quantum. A class whose discipline has packets but cannot send now, because it
//! shapes, is passed over. Under savings it counts as empty until it can send.

use alloc::vec::Vec;

use super::Params;
use crate::memory::reserved;
use crate::packet::Packet;
use crate::qdisc::child::{Child, Tally};
use crate::qdisc::{Backlog, Config, ConfigError, Device, DropReason, Managed, PacketOwner, Qdisc};
use crate::rate::Arithmetic;
use crate::sched::drr::Drr;
use crate::sched::scheduler::Scheduler;
use crate::sched::sharing::Sharing;
use crate::sched::{Account, Scheduled};
use crate::steps::{step, Budget};
use crate::time::Time;

/// Least and largest quantum in Linux 6.1.192, in bytes. Early releases of 6.1 had no bounds.
const LINUX_QUANTA: (u32, u32) = (256, 1 << 20);

/// The classes.
#[derive(Debug)]
pub(super) struct Classes {
    classes: Vec<Class>,
    /// Minor number and place of each class, sorted.
    places: Vec<(u16, u32)>,
    sharing: Sharing<Drr>,
    /// Lengths of first packets must be known early: which list a class belongs to depends on them.
    saves: bool,
    /// The scheduler is Linux's and all disciplines are FIFOs.
    is_plain: bool,
}

#[derive(Debug)]
struct Class {
    account: Account,
    quantum: u32,
    child: Child,
    /// Under savings: it counts as empty, since its discipline could not send yet.
    waits: bool,
}

impl Scheduled for Class {
    #[inline]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

impl Class {
    /// Length of the next packet; zero if it may have one but cannot say, None if it has none now.
    #[inline]
    fn head(&mut self, now: Time, budget: &Budget, owner: &mut dyn PacketOwner) -> Option<u32> {
        if let Some(packet) = self.child.known_front() {
            return Some(packet.len);
        }
        let mut len = None;
        if self.child.is_due(now) && !budget.is_spent() {
            budget.spend_on(Budget::CHILD);
            len = self.child.front(now, owner, |packet| packet.len);
        }
        let is_due = self.child.is_due(now);
        self.waits = len.is_none() && !is_due && !self.child.is_empty();
        len.or_else(|| is_due.then_some(0))
    }

    /// As `head`, but the discipline is asked for its packet only if that must be.
    #[inline(always)]
    fn head_if(
        &mut self,
        needed: bool,
        now: Time,
        budget: &Budget,
        owner: &mut dyn PacketOwner,
    ) -> Option<u32> {
        match needed {
            true => self.head(now, budget, owner),
            false => (!self.child.is_empty()).then_some(0),
        }
    }
}

/// Tells the scheduler of classes that waited and may send now.
fn wake(
    classes: &mut [Class],
    sharing: &mut Sharing<Drr>,
    now: Time,
    budget: &Budget,
    owner: &mut dyn PacketOwner,
) {
    for index in 0..classes.len() {
        let Some(class) = classes.get_mut(index) else { return };
        if class.waits && class.child.is_due(now) {
            step();
            let head = class.head(now, budget, owner);
            sharing.dropped(classes, index as u32, head);
        }
    }
}

/// The discipline of `class`.
fn discipline(class: &super::Class) -> &Config {
    class.child.as_deref().unwrap_or(&Config::PFIFO)
}

impl Classes {
    /// Empty classes. `params` are valid.
    pub(super) fn new(params: &Params, device: &Device) -> Result<Classes, ConfigError> {
        let mut classes = reserved(params.classes.len())?;
        for class in &params.classes {
            let quantum = class.quantum.or(params.quantum).unwrap_or(device.mtu);
            let quantum = quantum.saturating_mul(class.weight);
            classes.push(Class {
                account: Account::default(),
                quantum: match device.arithmetic {
                    Arithmetic::Exact => quantum,
                    Arithmetic::Linux(_) => quantum.clamp(LINUX_QUANTA.0, LINUX_QUANTA.1),
                },
                child: Child::new(discipline(class), &device.below_class())?,
                waits: false,
            });
        }
        let minors = params.classes.iter().map(super::Class::minor);
        let mut places: Vec<_> = reserved(params.classes.len())?;
        places.extend(minors.zip(0..));
        places.sort_unstable();
        let sharing = Sharing::new(params.savings, &mut classes, Drr::default());
        let saves = params.savings.is_some();
        let is_fifo = |class| matches!(discipline(class), Config::Fifo(_));
        let is_plain = !saves && params.classes.iter().all(is_fifo);
        Ok(Classes { classes, places, sharing, saves, is_plain })
    }

    /// The class that `packet` names.
    #[inline(always)]
    fn classify(&self, packet: &Packet) -> Option<u32> {
        let minor = packet.class as u16;
        let place = self.places.binary_search_by_key(&minor, |(minor, _)| *minor).ok()?;
        Some(self.places[place].1)
    }

    /// True if [`Classes::admits`] and [`Classes::ready`] are worth to be tried.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The common case of [`Classes::enqueue`], which calls nothing: the scheduler is Linux's and
    /// below the class is a FIFO that has room. Else nothing happens, and it says so.
    #[inline(always)]
    pub(super) fn admits(&mut self, packet: &Packet, now: Time) -> bool {
        let Some(index) = self.classify(packet) else { return false };
        let Sharing::Plain(drr) = &mut self.sharing else { return false };
        let Some(class) = self.classes.get_mut(index as usize) else { return false };
        let quantum = class.quantum;
        let is_queued = class.child.fifo().is_some_and(|fifo| fifo.admits(packet, now));
        if is_queued {
            drr.activate(&mut self.classes, index, quantum);
        }
        is_queued
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut Tally<'_>) {
        let Some(index) = self.classify(packet) else {
            return owner.dropped(*packet, DropReason::Unclassified);
        };
        let Some(class) = self.classes.get_mut(index as usize) else { return };
        class.child.enqueue(packet, now, owner);
        self.arrived(index, now, owner);
    }

    /// Tells the scheduler that a class may have got a packet, or lost some for it.
    #[inline(always)]
    fn arrived(&mut self, index: u32, now: Time, owner: &mut Tally<'_>) {
        let Classes { classes, sharing, saves, .. } = self;
        let Some(class) = classes.get_mut(index as usize) else { return };
        if class.child.is_empty() {
            return sharing.dropped(classes, index, None);
        }
        let head = class.head_if(*saves, now, &Budget::default(), owner);
        let quantum = class.quantum;
        sharing.arrived(classes, index, quantum, |_| head);
    }

    /// The class whose turn it is, where that is known without a call: the scheduler is Linux's and
    /// there are FIFOs below. [`Classes::send_ready`] must follow.
    #[inline(always)]
    pub(super) fn ready(&mut self) -> Option<u32> {
        let Sharing::Plain(drr) = &mut self.sharing else { return None };
        let budget = Budget::default();
        loop {
            let first = drr.first()?;
            let class = self.classes.get_mut(first as usize)?;
            let (needed, quantum) = (class.child.fifo()?.head()?.len, class.quantum);
            if drr.is_covered(&mut self.classes, first, needed, quantum, &budget) {
                return Some(first);
            }
            if !budget.spend() {
                return None;
            }
        }
    }

    /// Sends the first packet of the class that is [`Classes::ready`].
    #[inline(always)]
    pub(super) fn send_ready(&mut self, index: u32) -> Option<&mut Packet> {
        let class = self.classes.get_mut(index as usize)?;
        let fifo = class.child.fifo()?;
        let is_last = fifo.backlog().packets == 1;
        class.account.charge(fifo.head()?.len);
        if let (true, Sharing::Plain(drr)) = (is_last, &mut self.sharing) {
            drr.retire(&mut self.classes, index);
        }
        self.classes.get_mut(index as usize)?.child.fifo()?.take()
    }

    #[inline(always)]
    pub(super) fn dequeue(&mut self, now: Time, owner: &mut Tally<'_>) -> Option<&mut Packet> {
        let Classes { classes, sharing, saves, .. } = self;
        let budget = Budget::default();
        if *saves {
            wake(classes, sharing, now, &budget, owner);
        }
        let mut passed = 0;
        // Ends: each time round a class leaves, or its turn passes, once each.
        while passed <= classes.len() {
            step();
            let head = |class: &mut Class| class.head(now, &budget, owner);
            let index = sharing.choose(classes, head, |class| class.quantum, &budget)?;
            let class = classes.get_mut(index as usize)?;
            let mut len = None;
            if class.child.known_front().is_some() {
                len = class.child.take(now, owner);
            } else if class.child.is_due(now) {
                if budget.is_spent() {
                    return None;
                }
                budget.spend_on(Budget::CHILD);
                len = class.child.take(now, owner);
            }
            if let Some(len) = len {
                let head = class.head_if(*saves, now, &budget, owner);
                sharing.sent(classes, index, len, |_| head);
                return Some(classes.get_mut(index as usize)?.child.taken());
            }
            if class.child.is_empty() {
                sharing.found_empty(classes, index);
            } else if class.child.is_due(now) {
                // It goes on in the next call: its turn is not over.
                return None;
            } else {
                let head = class.head_if(*saves, now, &budget, owner);
                match sharing {
                    Sharing::Plain(drr) => drr.pass(classes),
                    Sharing::Savings(savings) => savings.charge(classes, index, 0, head),
                }
                passed += 1;
            }
        }
        None
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        self.classes.iter().filter_map(|class| class.child.next_event()).min()
    }

    pub(super) fn below(&self, n: usize, id: u32) -> Option<(u32, &dyn Managed)> {
        self.classes.get(n).map(|class| (id, class.child.qdisc()))
    }

    pub(super) fn backlog(&self) -> Backlog {
        let mut sum = Backlog::default();
        for class in &self.classes {
            let backlog = class.child.backlog();
            sum.packets += backlog.packets;
            sum.bytes += backlog.bytes;
        }
        sum
    }

    /// Packets that the disciplines below marked.
    pub(super) fn marked(&self) -> u64 {
        self.classes.iter().map(|class| class.child.qdisc().marked()).sum()
    }

    /// Takes over the packets of `old`, whose settings were `was`. Classes that stay keep their
    /// disciplines, which take on the new settings where these differ. Packets of other classes
    /// belong to none any more. If the classes are the same and none save up, deficits and turns
    /// stay, as in Linux.
    #[cold]
    #[inline(never)]
    pub(super) fn inherit(
        &mut self,
        old: &mut Classes,
        (was, is): (&[super::Class], &[super::Class]),
        now: Time,
        owner: &mut Tally<'_>,
    ) {
        for &(minor, place) in &old.places {
            let Some(class) = old.classes.get_mut(place as usize) else { continue };
            let new = self.places.binary_search_by_key(&minor, |(minor, _)| *minor);
            let new = new.ok().and_then(|at| Some(self.places.get(at)?.1 as usize));
            let spare = new.and_then(|place| self.classes.get_mut(place));
            let Some(Class { child: spare, .. }) = spare else {
                class.child.reset(&mut Renamed(owner));
                continue;
            };
            let was = was.get(place as usize).map(discipline);
            let is = new.and_then(|place| is.get(place)).map(discipline);
            if !was.zip(is).is_some_and(|(was, is)| was.is_surely(is)) {
                class.child.adopt(spare, now, owner);
            }
            core::mem::swap(&mut class.child, spare);
        }
        if self.places == old.places && !self.saves && !old.saves {
            core::mem::swap(&mut self.sharing, &mut old.sharing);
            for (class, old) in self.classes.iter_mut().zip(&old.classes) {
                class.account = old.account;
            }
        }
        for index in 0..self.classes.len() as u32 {
            self.arrived(index, now, owner);
        }
    }

    /// Takes everything out, class by class.
    pub(super) fn drain(&mut self, take: impl FnMut(&Packet)) {
        let mut drained = Drained(take);
        for class in &mut self.classes {
            class.child.reset(&mut drained);
        }
    }

    pub(super) fn reset(&mut self, owner: &mut Tally<'_>) {
        for index in 0..self.classes.len() {
            if let Some(class) = self.classes.get_mut(index) {
                class.child.reset(owner);
            }
            self.sharing.dropped(&mut self.classes, index as u32, None);
        }
    }
}

/// An owner that passes on what it is given.
struct Drained<F>(F);

impl<F: FnMut(&Packet)> PacketOwner for Drained<F> {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        (self.0)(&packet);
    }
}

/// An owner to whom everything is given for want of a class.
struct Renamed<'a, 'b>(&'a mut Tally<'b>);

impl PacketOwner for Renamed<'_, '_> {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0.dropped(packet, DropReason::Unclassified);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{parse, Discard};

    #[test]
    fn a_discipline_is_asked_for_its_packet_only_while_the_budget_lasts() {
        let words = "drr class 1:1 codel";
        let Config::Drr(params) = parse(words).unwrap() else { panic!("{words}") };
        let mut classes = Classes::new(&params, &Device::default()).unwrap();
        let mut counts = [0; DropReason::COUNT];
        let mut owner = Tally { owner: &mut Discard, dropped: &mut counts };
        let packet = Packet { class: 1, ..Packet::new(1, 1500) };
        classes.enqueue(&packet, Time(0), &mut owner);
        let mut head = |budget| classes.classes[0].head(Time(1), budget, &mut owner);
        let spent = Budget::default();
        spent.exhaust();
        assert_eq!([head(&spent), head(&Budget::default())], [Some(0), Some(1500)]);
    }
}
