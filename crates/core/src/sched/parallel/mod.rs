//! Parallel queues: one rate and one fairness for schedulers that run on cores of their own.
//!
//! A device with many transmit queues has a scheduler and a lock for each. They share this
//! structure of atomics, which nobody locks:
//!
//! * *One rate.* [`Clock`] says when the line is free again. Each packet moves it on by its time on
//!   the line; nothing is sent while it is ahead of time. A queue may pay in lots of [`LOT`].
//!   A flow without a standing queue may go [`Timing::ahead`] early, so that no other's backlog
//!   delays it. A line that was late or idle catches up with at most [`Timing::late`].
//! * *One load of each host.* [`Loads`] counts the flows of a host over all queues, so the weight
//!   of a flow, one by the larger load of its hosts, is the same wherever it is served.
//! * *One round.* Deficit round robin gives each flow its quantum once a round. All queues' rounds
//!   keep pace: each publishes the service it has given to a flow of weight one (`served`, its
//!   number of rounds). It sends from standing queues only while that is at most a *lead* beyond
//!   the least of all queues that contend. The lead is what the line serves in [`Timing::lead`], or
//!   one quantum if that is more. No rate is divided and no period chosen: what one queue leaves,
//!   the others have at once, in equal rounds.
//!
//! Behind the bottleneck (`ingress`) a queue charges what it drops as well, and [`Clock`] counts
//! what was delivered once more, at two thirds of the rate: the line is free when either says so,
//! and so drops alone cannot stop it (`shaper::DeficitClock` on one queue). Each queue publishes
//! how many flows stand in it: what AQM allows a flow there depends on how many there are in all.
//!
//! Bounds, for N queues, a rate R and packets of at most M bytes (`crates/core/tests/mq` asserts
//! them over a hostile order of queues):
//!
//! * *Rate.* In any interval t at most R (t + late + ahead + N LOT) + N M bytes.
//! * *Fairness.* Of two flows with standing queues, each has its weight times the rounds of its
//!   queue, but for a quantum and a packet; two queues' rounds differ by at most a lead and a
//!   packet.
//! * *Work.* The queue with the fewest rounds may always send, so a line with a backlog is idle
//!   only if that queue is asked later than the lead. One that was not asked for
//!   [`Timing::stall`] while the line was free is passed over, and joins again in the present
//!   round.
//! * *Staleness.* Loads are always present; a flow's weight follows them at its next turn. The
//!   least number of rounds and the lead are looked up when older ones forbid to send, and at
//!   least every [`Timing::look`].
//!
//! Work: an atomic addition a lot and a store a packet. A queue looks at all N others when it is
//! ahead, and then sleeps until they have made up for half of its lead.

mod clock;
mod loads;
mod timing;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use self::clock::failsafe;
pub use self::clock::{Clock, LOT};
pub use self::loads::Loads;
pub use self::timing::Timing;
use crate::memory::{reserved, NoMemory};
use crate::rate::{Arithmetic, ByteTime, Rate};
use crate::steps::step;
use crate::time::{Span, Time};

/// The weight of a host's only flow.
const WHOLE: u64 = 1 << 16;
/// Most queues: each may look at all of them.
pub const MOST_SEATS: usize = 256;

/// State that all queues share.
#[derive(Debug)]
pub struct Shared {
    timing: &'static Timing,
    clock: Clock,
    /// Flows of each host over all queues.
    pub loads: Loads,
    lanes: Box<[Arc<Lane>]>,
}

/// One queue as the others see it, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane {
    /// Service of a flow of weight one; 256ths of a byte, modulo 2^64.
    served: AtomicU64,
    /// When it last asked to send from a standing queue; zero: it does not contend.
    asked: AtomicU64,
    /// Sum of its flows' weights.
    weight: AtomicU64,
    /// Flows with a standing queue.
    bulk_flows: AtomicU32,
}

impl Shared {
    /// Seats for `count` queues, at most [`MOST_SEATS`], that are asked as `timing` says.
    pub fn seats(
        count: usize,
        timing: &'static Timing,
    ) -> Result<impl Iterator<Item = Seat>, NoMemory> {
        let count = count.clamp(1, MOST_SEATS);
        let mut lanes = reserved(count)?;
        lanes.resize_with(count, Arc::default);
        let lanes: Box<[Arc<Lane>]> = lanes.into_boxed_slice();
        let shared =
            Arc::new(Shared { timing, clock: Clock::default(), loads: Loads::new()?, lanes });
        Ok((0..count).filter_map(move |n| Seat::new(shared.clone(), n)))
    }
}

/// One queue's place among the others.
///
/// Caller's rule: [`Seat::may_send`] before each look for a packet; [`Seat::sent`] for each packet
/// that leaves, and [`Seat::leave`] when none is left; [`Seat::reweigh`] and [`Seat::charge`] as
/// flows come, go and run into debt.
#[derive(Debug)]
pub struct Seat {
    timing: &'static Timing,
    shared: Arc<Shared>,
    mine: Arc<Lane>,
    byte_time: ByteTime,
    remainder: u64,
    charges_drops: bool,
    /// Time on the line that was used and not yet paid.
    unpaid: Span,
    /// The part of it that was dropped.
    undelivered: Span,
    /// Sum of the weights of flows with a standing queue, in 65536ths.
    weight: u64,
    /// How many these are, and how many the others have, when last looked at.
    bulk_flows: u32,
    bulk_elsewhere: u32,
    served: u64,
    /// The least service of those that contended, when last looked at.
    least: u64,
    /// Service by which this queue may be ahead of the least: [`Timing::lead`], or one quantum.
    lead: u64,
    /// Bytes of all queues in [`Timing::lead`].
    lead_bytes: u64,
    /// One quantum, in the unit of `served`.
    quantum: u64,
    contends: bool,
    /// When it last looked at the others.
    looked: Time,
    /// Ahead of the others until about then.
    naps_until: Time,
    now: Time,
}

/// `a - b` of numbers that wrap.
fn beyond(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

impl Seat {
    fn new(shared: Arc<Shared>, n: usize) -> Option<Seat> {
        Some(Seat {
            mine: shared.lanes.get(n)?.clone(),
            timing: shared.timing,
            shared,
            byte_time: ByteTime::default(),
            remainder: 0,
            charges_drops: false,
            unpaid: Span::ZERO,
            undelivered: Span::ZERO,
            weight: 0,
            bulk_flows: 0,
            bulk_elsewhere: 0,
            served: 0,
            least: 0,
            lead: 0,
            lead_bytes: 0,
            quantum: 0,
            contends: false,
            looked: Time::ZERO,
            naps_until: Time::ZERO,
            now: Time::ZERO,
        })
    }

    /// State that all queues share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs at this rate and this quantum from now on, as all others must. Where drops are charged,
    /// [`Seat::dropped`] must tell of them.
    pub fn configure(
        &mut self,
        rate: Rate,
        arithmetic: Arithmetic,
        quantum: u32,
        charges_drops: bool,
    ) {
        if self.charges_drops && !charges_drops {
            // What nobody would count any more must not stop the line.
            (self.unpaid, self.undelivered) = (self.delivered(), Span::ZERO);
            self.shared.clock.forgive();
        }
        self.charges_drops = charges_drops;
        (self.byte_time, self.remainder) = (ByteTime::new(rate, arithmetic), 0);
        self.lead_bytes =
            (rate.0 / 1_000_000).saturating_mul(self.timing.lead.as_micros()).min(1 << 32);
        self.quantum = u64::from(quantum) << 8;
        self.lead = self.quantum;
    }

    /// True if a packet may leave now; `is_sparse`: it is of a flow without a standing queue.
    pub fn may_send(&mut self, now: Time, is_sparse: bool) -> bool {
        self.now = now;
        self.naps_until = Time::ZERO;
        if !is_sparse {
            // Before the line is free: who always comes second must not be left out.
            self.contend();
        }
        if self.due(is_sparse) > now {
            return false;
        }
        if is_sparse {
            return true;
        }
        if self.is_ahead() || self.looked + self.timing.look < now {
            self.look();
        }
        !self.is_ahead()
    }

    /// When a packet may leave, as far as is known.
    pub fn due(&self, is_sparse: bool) -> Time {
        let clock = &self.shared.clock;
        let mut free = clock.next() + self.unpaid;
        if self.charges_drops {
            free = free.min(clock.failsafe() + failsafe(self.delivered()));
        }
        match is_sparse {
            true => Time(free.0.saturating_sub(self.ahead().0)),
            false => free.max(self.naps_until),
        }
    }

    /// How early flows without a standing queue may send: at least two full packets.
    fn ahead(&self) -> Span {
        self.timing.ahead.max(self.byte_time.of(1514) * 2)
    }

    /// A packet of `len` bytes leaves, from a standing queue if `is_bulk`.
    pub fn sent(&mut self, len: u32, is_bulk: bool) {
        self.unpaid += self.byte_time.charge(len, &mut self.remainder);
        if self.unpaid >= LOT {
            self.pay();
        }
        if is_bulk {
            self.charge(len);
        }
    }

    /// A packet of `len` bytes that would have left was dropped, as it came or at its turn.
    pub fn dropped(&mut self, len: u32, now: Time) {
        let time = self.byte_time.charge(len, &mut self.remainder);
        self.now = now;
        self.unpaid += time;
        self.undelivered += time;
        if self.unpaid >= LOT {
            self.pay();
        }
    }

    fn pay(&mut self) {
        let clock = &self.shared.clock;
        clock.pay(self.unpaid, self.now, self.timing.late);
        if self.charges_drops {
            clock.pay_failsafe(self.delivered(), self.now, self.timing.late);
        }
        (self.unpaid, self.undelivered) = (Span::ZERO, Span::ZERO);
    }

    /// Unpaid time of what was delivered.
    fn delivered(&self) -> Span {
        Span(self.unpaid.0 - self.undelivered.0)
    }

    /// Flows with a standing queue in the other queues, when last looked at.
    pub fn bulk_elsewhere(&self) -> u32 {
        self.bulk_elsewhere
    }

    /// `bytes` of service that flows with a standing queue had, or forwent.
    pub fn charge(&mut self, bytes: u32) {
        if let Some(service) = (u64::from(bytes) << 24).checked_div(self.weight) {
            self.served = self.served.wrapping_add(service);
            self.mine.served.store(self.served, Relaxed);
        }
    }

    /// The weight of a flow with a standing queue changes.
    pub fn reweigh(&mut self, from: u16, to: u16) {
        self.weight = self.weight + u64::from(to) - u64::from(from);
        self.mine.weight.store(self.weight, Relaxed);
        let flows = self.bulk_flows + u32::from(from == 0) - u32::from(to == 0);
        if flows != self.bulk_flows {
            self.bulk_flows = flows;
            self.mine.bulk_flows.store(flows, Relaxed);
        }
    }

    /// Contends for the line no longer: nothing is queued, or what is queued has been sent.
    pub fn leave(&mut self) {
        if self.unpaid > Span::ZERO {
            self.pay();
        }
        if self.contends {
            self.contends = false;
            self.mine.asked.store(0, Relaxed);
        }
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.leave();
        (self.weight, self.bulk_flows) = (0, 0);
        self.mine.weight.store(0, Relaxed);
        self.mine.bulk_flows.store(0, Relaxed);
    }

    /// Joins those that contend, if the others do not know of it, in their present round.
    fn contend(&mut self) {
        let is_known = self.contends && self.mine.asked.load(Relaxed) != 0;
        if !is_known {
            self.contends = false;
            self.look();
            let lead = beyond(self.served, self.least).min(self.lead as i64).max(0);
            self.served = self.least.wrapping_add_signed(lead);
            self.mine.served.store(self.served, Relaxed);
            self.contends = true;
        }
        self.mine.asked.store(self.now.0.max(1), Relaxed);
    }

    fn is_ahead(&self) -> bool {
        beyond(self.served, self.least) > self.lead as i64
    }

    /// Looks for the least service of all that contend. Those who missed their turn are passed
    /// over. If this queue is ahead, says for how long.
    fn look(&mut self) {
        let clock = &self.shared.clock;
        let free = match self.charges_drops {
            true => clock.next().min(clock.failsafe()),
            false => clock.next(),
        };
        let Timing { stall, nap, .. } = *self.timing;
        let is_idle = free + stall < self.now;
        // It goes on when it is ahead by half of that.
        let limit = self.served.wrapping_sub(self.lead / 2);
        let (mut least, mut work, mut weights) = (None, 0, self.weight);
        self.bulk_elsewhere = 0;
        for lane in &self.shared.lanes {
            step();
            let asked = lane.asked.load(Relaxed);
            if asked == 0 || Arc::ptr_eq(lane, &self.mine) {
                continue;
            }
            if is_idle && Time(asked) + stall < self.now {
                // Unless it asks at this moment.
                let _ = lane.asked.compare_exchange(asked, 0, Relaxed, Relaxed);
                continue;
            }
            let served = lane.served.load(Relaxed);
            let weight = lane.weight.load(Relaxed);
            weights += weight;
            self.bulk_elsewhere += lane.bulk_flows.load(Relaxed);
            let behind = beyond(limit, served).max(0) as u64;
            work += (behind >> 8).saturating_mul(weight) >> 16;
            least = match least {
                Some(least) if beyond(served, least) >= 0 => Some(least),
                _ => Some(served),
            };
        }
        self.looked = self.now;
        self.lead = self.quantum.max((self.lead_bytes << 24) / weights.max(WHOLE));
        // Alone, or the last itself: it may send.
        self.least = match least {
            Some(least) if beyond(least, self.served) < 0 || !self.contends => least,
            _ => self.served,
        };
        if self.contends && self.is_ahead() {
            let work = self.byte_time.of(work.min(u64::from(ByteTime::MOST_BYTES)) as u32);
            let nap = work.min(nap).max(Span::from_micros(1));
            self.naps_until = self.now.max(free) + nap;
        }
    }
}
