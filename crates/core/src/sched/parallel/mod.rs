//! Parallel queues: one rate and one fairness for schedulers that run on cores of their own.
//!
//! A device with many transmit queues has a scheduler and a lock for each. They share this
//! structure of atomics, which nobody locks:
//!
//! * *One rate.* [`Clock`] says when the line is free again. Each packet moves it on by its time on
//!   the line; nothing is sent while it is ahead of time. A queue may pay in lots of [`LOT`].
//!   A flow without a standing queue may go [`Timing::ahead`] early, so that no other's backlog
//!   delays it. A line that was late or idle catches up with at most [`Timing::late`].
//! * *One load of each host.* [`Loads`] counts the flows of a host over all queues. The weight of a
//!   flow is one divided by the larger load of its two hosts. So it is the same wherever the flow
//!   is served.
//! * *One round.* Deficit round robin gives each flow its quantum once a round. All queues' rounds
//!   keep pace: each publishes the service it has given to a flow of weight one (`served`, its
//!   number of rounds). It sends from standing queues only while that is at most a *lead* beyond
//!   the least of all queues that contend. The lead is what the line serves in [`Timing::lead`], or
//!   one quantum if that is more. No rate is divided and no period chosen: what one queue leaves,
//!   the others have at once, in equal rounds.
//! * *Tins.* Each tin has rounds of its own, and one clock at its threshold for all queues
//!   ([`TinClock`]). The tin to serve is the highest one on schedule with packets in any queue,
//!   and if none is, the one with the highest threshold. A tin with packets in other queues alone
//!   is on schedule only when it is a lead behind it. So nobody waits for a queue that is asked
//!   late. The same holds of a tin in which this queue is ahead of the others' rounds. New flows
//!   may go early there as well: by twice what a queue pays at once.
//!
//! Behind the bottleneck (`ingress`) a queue charges what it drops as well. [`Clock`] counts what
//! was delivered once more, at two thirds of the rate. The line is free when either count says so,
//! and so drops alone cannot stop it (`shaper::DeficitClock` on one queue). Each queue publishes
//! how many flows stand in it: what AQM allows a flow there depends on how many there are in all.
//!
//! Bounds, for N queues, a rate R and packets of at most M bytes (`crates/core/tests/mq` asserts
//! them over a hostile order of queues):
//!
//! * *Rate.* In any interval t at most R (t + late + ahead + N LOT) + N M bytes.
//! * *Fairness.* The service of a flow with a standing queue is its weight times its queue's
//!   rounds, but for a quantum and a packet. The rounds of two queues differ by at most a lead and
//!   a packet.
//! * *Tins.* One with a backlog is at most a lead behind its schedule, while the others have as
//!   much more.
//! * *Work.* The queue with the fewest rounds may always send. So a line with a backlog is idle
//!   only if that queue is asked later than the lead. One that was not asked for
//!   [`Timing::stall`] while the line was free is passed over, and joins again in the present
//!   round.
//! * *Staleness.* Loads are always present; a flow's weight follows them at its next turn. The
//!   least number of rounds and the lead are looked up when older ones forbid to send, and at
//!   least every [`Timing::look`].
//!
//! Work: an atomic addition a lot and a store a packet; with tins an exchange a tin more. A queue
//! that is ahead looks at all N queues, once for each tin at most. Then it sleeps until the others
//! have made up for half of its lead.

mod clock;
mod loads;
mod timing;
mod tins;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use self::clock::failsafe;
pub use self::clock::{Clock, TinClock, LOT};
pub use self::loads::Loads;
pub use self::timing::Timing;
use self::tins::{ByTin, MOST_TINS};
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
    tins: Together,
    /// Flows of each host over all queues.
    pub loads: Loads,
    lanes: Box<[Arc<Lane>]>,
}

/// The tins over all queues, in cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Together {
    clocks: ByTin<[TinClock; MOST_TINS]>,
    /// Queues with packets in each tin.
    waiting: ByTin<[AtomicU32; MOST_TINS]>,
}

/// One queue as the others see it, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(ByTin<[LaneTin; MOST_TINS]>);

/// One tin of a queue as the others see it.
#[derive(Debug, Default)]
struct LaneTin {
    /// Service of a flow of weight one; 256ths of a byte, modulo 2^64.
    served: AtomicU64,
    /// Time at which it last asked to send from a standing queue; zero if it does not contend.
    asked: AtomicU64,
    /// Time at which it last asked to send anything, if there are several tins; zero if it has no
    /// packets.
    waits: AtomicU64,
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
        let tins = Together::default();
        let shared =
            Arc::new(Shared { timing, clock: Clock::default(), tins, loads: Loads::new()?, lanes });
        let mut seats = reserved(count)?;
        for lane in &shared.lanes {
            seats.push(Seat::new(shared.clone(), lane.clone())?);
        }
        Ok(seats.into_iter())
    }
}

/// One queue's place among the others.
///
/// Caller's rule: [`Seat::choose`] before each look for a packet. [`Seat::sent`] for each packet
/// that leaves, and [`Seat::leave`] when none is left. [`Seat::reweigh`] and [`Seat::charge`] as
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
    rounds: ByTin<Box<[Round; MOST_TINS]>>,
    /// Tins.
    count: usize,
    /// The tin that was chosen last.
    tin: Option<usize>,
    /// Tins in which such flows were next when this queue last asked.
    asked_sparse: u32,
    /// Nothing is to be sent until about then.
    naps_until: Time,
    now: Time,
}

/// One tin's round in this queue.
#[derive(Debug, Default)]
struct Round {
    rate: u64,
    byte_time: ByteTime,
    remainder: u64,
    /// Time before the tin's schedule at which flows without a standing queue may send. It is that
    /// of twice the bytes that one queue pays for at once, at the tin's threshold.
    ahead: Span,
    /// Time at the threshold that was used and not yet paid.
    unpaid: Span,
    /// Sum of the weights of flows with a standing queue, in 65536ths.
    weight: u64,
    /// Flows with a standing queue: here, and in the others when last looked at.
    bulk_flows: u32,
    bulk_elsewhere: u32,
    served: u64,
    /// The least service of those that contended, when last looked at.
    least: u64,
    /// Service by which this queue may be ahead of the least: [`Timing::lead`], or one quantum.
    lead: u64,
    /// One quantum, in the unit of `served`.
    quantum: u64,
    contends: bool,
    waits: bool,
    /// Time of its last look at the others.
    looked: Time,
}

/// `a - b` of numbers that wrap.
fn beyond(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

impl Round {
    fn is_ahead(&self) -> bool {
        beyond(self.served, self.least) > self.lead as i64
    }
}

impl Seat {
    fn new(shared: Arc<Shared>, mine: Arc<Lane>) -> Result<Seat, NoMemory> {
        let mut rounds = reserved(MOST_TINS)?;
        rounds.resize_with(MOST_TINS, Round::default);
        let rounds = ByTin(rounds.into_boxed_slice().try_into().map_err(|_| NoMemory)?);
        Ok(Seat {
            mine,
            timing: shared.timing,
            shared,
            byte_time: ByteTime::default(),
            remainder: 0,
            charges_drops: false,
            unpaid: Span::ZERO,
            undelivered: Span::ZERO,
            rounds,
            count: 1,
            tin: None,
            asked_sparse: 0,
            naps_until: Time::ZERO,
            now: Time::ZERO,
        })
    }

    /// State that all queues share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs at this rate, with tins of these rates and quanta, from now on, as all others must.
    /// Where drops are charged, [`Seat::dropped`] must tell of them.
    pub fn configure(
        &mut self,
        rate: Rate,
        arithmetic: Arithmetic,
        tins: impl Iterator<Item = (Rate, u32)>,
        charges_drops: bool,
    ) {
        if self.charges_drops && !charges_drops {
            // What nobody would count any more must not stop the line.
            (self.unpaid, self.undelivered) = (self.delivered(), Span::ZERO);
            self.shared.clock.forgive();
        }
        self.charges_drops = charges_drops;
        (self.byte_time, self.remainder) = (ByteTime::new(rate, arithmetic), 0);
        self.count = 0;
        let lot = (rate.0 / 1_000_000).saturating_mul(LOT.as_micros()).clamp(1514, 1 << 20) as u32;
        for (round, (rate, quantum)) in self.rounds.0.iter_mut().zip(tins) {
            round.rate = rate.0;
            (round.byte_time, round.remainder) = (ByteTime::new(rate, arithmetic), 0);
            round.ahead = round.byte_time.of(lot) * 2;
            round.unpaid = Span::ZERO;
            round.quantum = u64::from(quantum) << 8;
            round.lead = round.quantum;
            self.count += 1;
        }
    }

    /// The tin that was chosen last.
    pub fn tin(&self) -> Option<usize> {
        self.tin
    }

    /// The tin to send from now, if a packet may leave. `active` has a bit for each tin with
    /// packets, `sparse` for each of these in which a flow without a standing queue is next.
    pub fn choose(&mut self, now: Time, active: u32, sparse: u32) -> Option<usize> {
        self.now = now;
        self.naps_until = Time::ZERO;
        self.tin = None;
        self.asked_sparse = sparse;
        for tin in 0..self.count {
            // Before the line is free: who always comes second must not be left out.
            match active >> tin & 1 != 0 {
                true => self.wait(tin),
                false => self.leave_tin(tin),
            }
            if active & !sparse & 1 << tin != 0 {
                self.contend(tin);
            }
        }
        let free = self.free();
        let mut mine = active;
        for _ in 0..self.count {
            let mut tin = self.preferred(mine, sparse);
            if mine >> tin & 1 == 0 && free + self.timing.stall < now {
                // It may be one that nobody asks.
                self.look(tin);
                tin = self.preferred(mine, sparse);
            }
            if mine >> tin & 1 == 0 {
                self.naps_until = now.max(free) + self.timing.nap;
                return None;
            }
            let is_sparse = sparse >> tin & 1 != 0;
            let due = if is_sparse { self.early(free) } else { free };
            if due > now {
                self.naps_until = due;
                return None;
            }
            if is_sparse || !self.must_wait(tin) {
                self.tin = Some(tin);
                break;
            }
            // It is the others' turn there; what is not urgent need not wait for that.
            mine &= !(1 << tin);
        }
        self.tin
    }

    /// True if this queue is ahead of the others in a tin.
    fn must_wait(&mut self, tin: usize) -> bool {
        let round = &self.rounds[tin];
        if round.is_ahead() || round.looked + self.timing.look < self.now {
            self.look(tin);
        }
        self.rounds[tin].is_ahead()
    }

    /// The tin whose turn it is, among those with packets here or elsewhere. This is the highest
    /// one that is on schedule, or else the one with the highest threshold. One with packets
    /// elsewhere only is on schedule when it is late by the lead or more: so late may a queue be
    /// asked. Flows without a standing queue are before those of other queues that have one.
    fn preferred(&self, active: u32, sparse: u32) -> usize {
        if self.count == 1 {
            return 0;
        }
        let (mut on_schedule, mut borrows, mut most) = (None, 0, 0);
        for tin in 0..self.count {
            let is_mine = active >> tin & 1 != 0;
            let round = &self.rounds[tin];
            if !is_mine && self.shared.tins.waiting[tin].load(Relaxed) == 0 {
                continue;
            }
            let due = self.due_of(tin);
            let is_due = match (is_mine, sparse >> tin & 1 != 0) {
                (true, true) => due <= self.now + round.ahead,
                (true, false) => due <= self.now,
                (false, _) => due + self.timing.lead <= self.now,
            };
            if is_due {
                on_schedule = Some(tin);
            }
            if round.rate >= most {
                (borrows, most) = (tin, round.rate);
            }
        }
        on_schedule.unwrap_or(borrows)
    }

    /// Time at which a tin's next packet is due at its threshold, as far as is known.
    fn due_of(&self, tin: usize) -> Time {
        self.shared.tins.clocks[tin].due() + self.rounds[tin].unpaid
    }

    /// Time at which the line is free, as far as is known.
    fn free(&self) -> Time {
        let clock = &self.shared.clock;
        let free = clock.next() + self.unpaid;
        match self.charges_drops {
            true => free.min(clock.failsafe() + failsafe(self.delivered())),
            false => free,
        }
    }

    fn early(&self, free: Time) -> Time {
        Time(free.0.saturating_sub(self.ahead().0))
    }

    /// Time at which a packet may leave, as far as is known; `sparse` as in [`Seat::choose`].
    pub fn due(&self, sparse: u32) -> Time {
        let free = self.free();
        if sparse & !self.asked_sparse != 0 {
            return self.early(free);
        }
        let free = if sparse != 0 { self.early(free) } else { free };
        free.max(self.naps_until)
    }

    /// Time before the line is free at which flows without a standing queue may send: that of two
    /// full packets at least.
    fn ahead(&self) -> Span {
        self.timing.ahead.max(self.byte_time.of(1514) * 2)
    }

    /// A packet of `len` bytes of a tin leaves, from a standing queue if `is_bulk`.
    pub fn sent(&mut self, tin: usize, len: u32, is_bulk: bool) {
        self.unpaid += self.byte_time.charge(len, &mut self.remainder);
        self.use_tin(tin, len);
        if self.unpaid >= LOT {
            self.pay();
        }
        if is_bulk {
            self.charge(tin, len);
        }
    }

    /// A packet of `len` bytes that would have left was dropped, as it came or at its turn.
    pub fn dropped(&mut self, tin: usize, len: u32, now: Time) {
        let time = self.byte_time.charge(len, &mut self.remainder);
        self.now = now;
        self.unpaid += time;
        self.undelivered += time;
        self.use_tin(tin, len);
        if self.unpaid >= LOT {
            self.pay();
        }
    }

    fn use_tin(&mut self, tin: usize, len: u32) {
        if self.count > 1 {
            let round = &mut self.rounds[tin];
            round.unpaid += round.byte_time.charge(len, &mut round.remainder);
        }
    }

    fn settle(&mut self) {
        if self.unpaid > Span::ZERO {
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
        for (round, clock) in self.rounds.0.iter_mut().zip(&self.shared.tins.clocks.0) {
            if round.unpaid > Span::ZERO {
                clock.pay(core::mem::take(&mut round.unpaid), self.now);
            }
        }
    }

    /// Unpaid time of what was delivered.
    fn delivered(&self) -> Span {
        Span(self.unpaid.0 - self.undelivered.0)
    }

    /// A tin that had no packets here gets some.
    pub fn start(&mut self, tin: usize, now: Time) {
        if self.count > 1 && self.shared.tins.waiting[tin].load(Relaxed) == 0 {
            self.shared.tins.clocks[tin].start(now);
        }
    }

    /// A tin's flows with a standing queue in the other queues, when last looked at.
    pub fn bulk_elsewhere(&self, tin: usize) -> u32 {
        self.rounds[tin].bulk_elsewhere
    }

    /// `bytes` of service that flows with a standing queue had, or forwent.
    pub fn charge(&mut self, tin: usize, bytes: u32) {
        let round = &mut self.rounds[tin];
        if let Some(service) = (u64::from(bytes) << 24).checked_div(round.weight) {
            round.served = round.served.wrapping_add(service);
            self.mine.0[tin].served.store(round.served, Relaxed);
        }
    }

    /// The weight of a flow with a standing queue changes.
    pub fn reweigh(&mut self, tin: usize, from: u16, to: u16) {
        let (round, mine) = (&mut self.rounds[tin], &self.mine.0[tin]);
        round.weight = round.weight + u64::from(to) - u64::from(from);
        mine.weight.store(round.weight, Relaxed);
        let flows = round.bulk_flows + u32::from(from == 0) - u32::from(to == 0);
        if flows != round.bulk_flows {
            round.bulk_flows = flows;
            mine.bulk_flows.store(flows, Relaxed);
        }
    }

    /// Contends for the line no longer: nothing is queued, or what is queued has been sent.
    pub fn leave(&mut self) {
        self.settle();
        (0..self.count).for_each(|tin| self.leave_tin(tin));
    }

    fn leave_tin(&mut self, tin: usize) {
        let (round, mine) = (&mut self.rounds[tin], &self.mine.0[tin]);
        if core::mem::take(&mut round.contends) {
            mine.asked.store(0, Relaxed);
        }
        if core::mem::take(&mut round.waits) && mine.waits.swap(0, Relaxed) != 0 {
            self.shared.tins.waiting[tin].fetch_sub(1, Relaxed);
        }
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.settle();
        for tin in 0..MOST_TINS {
            self.leave_tin(tin);
            let (round, mine) = (&mut self.rounds[tin], &self.mine.0[tin]);
            (round.weight, round.bulk_flows) = (0, 0);
            mine.weight.store(0, Relaxed);
            mine.bulk_flows.store(0, Relaxed);
        }
    }

    /// Has packets in this tin, as the others must know.
    fn wait(&mut self, tin: usize) {
        if self.count == 1 {
            return;
        }
        self.rounds[tin].waits = true;
        if self.mine.0[tin].waits.swap(self.now.0.max(1), Relaxed) == 0 {
            self.shared.tins.waiting[tin].fetch_add(1, Relaxed);
        }
    }

    /// Joins those that contend, if the others do not know of it, in their present round.
    fn contend(&mut self, tin: usize) {
        let asked = &self.mine.0[tin].asked;
        let round = &mut self.rounds[tin];
        let is_known = round.contends && asked.load(Relaxed) != 0;
        if !is_known {
            round.contends = false;
            self.look(tin);
            let round = &mut self.rounds[tin];
            let lead = beyond(round.served, round.least).min(round.lead as i64).max(0);
            round.served = round.least.wrapping_add_signed(lead);
            self.mine.0[tin].served.store(round.served, Relaxed);
            round.contends = true;
        }
        self.mine.0[tin].asked.store(self.now.0.max(1), Relaxed);
    }

    /// Bytes that a tin has of the line in [`Timing::lead`], whatever the others want.
    fn lead_bytes(&self, tin: usize) -> u64 {
        let whole = self.rounds[0].rate;
        let mut rate = whole;
        for (other, waiting) in self.shared.tins.waiting.0.iter().enumerate().take(self.count) {
            if other != tin && waiting.load(Relaxed) > 0 {
                rate = rate.min(self.rounds[tin].rate);
            }
        }
        let mut left = whole;
        for (other, waiting) in self.shared.tins.waiting.0.iter().enumerate().take(self.count) {
            if other > tin && waiting.load(Relaxed) > 0 {
                left = left.saturating_sub(self.rounds[other].rate);
            }
        }
        (rate.min(left) / 1_000_000).saturating_mul(self.timing.lead.as_micros()).min(1 << 32)
    }

    /// Looks for the least service of all that contend. Those who missed their turn are passed
    /// over. If this queue is ahead, says for how long.
    fn look(&mut self, tin: usize) {
        let clock = &self.shared.clock;
        let free = match self.charges_drops {
            true => clock.next().min(clock.failsafe()),
            false => clock.next(),
        };
        let Timing { stall, nap, .. } = *self.timing;
        let is_idle = free + stall < self.now;
        let lead_bytes = self.lead_bytes(tin);
        let waiting = &self.shared.tins.waiting[tin];
        let round = &mut self.rounds[tin];
        // It goes on when it is ahead by half of that.
        let limit = round.served.wrapping_sub(round.lead / 2);
        let (mut least, mut work, mut weights) = (None, 0, round.weight);
        round.bulk_elsewhere = 0;
        for lane in &self.shared.lanes {
            step();
            let lane_tin = &lane.0[tin];
            let waits = lane_tin.waits.load(Relaxed);
            if waits != 0
                && is_idle
                && Time(waits) + stall < self.now
                && lane_tin.waits.compare_exchange(waits, 0, Relaxed, Relaxed).is_ok()
            {
                waiting.fetch_sub(1, Relaxed);
            }
            let asked = lane_tin.asked.load(Relaxed);
            if asked == 0 || Arc::ptr_eq(lane, &self.mine) {
                continue;
            }
            if is_idle && Time(asked) + stall < self.now {
                // Unless it asks at this moment.
                let _ = lane_tin.asked.compare_exchange(asked, 0, Relaxed, Relaxed);
                continue;
            }
            let served = lane_tin.served.load(Relaxed);
            let weight = lane_tin.weight.load(Relaxed);
            weights += weight;
            round.bulk_elsewhere += lane_tin.bulk_flows.load(Relaxed);
            let behind = beyond(limit, served).max(0) as u64;
            work += (behind >> 8).saturating_mul(weight) >> 16;
            least = match least {
                Some(least) if beyond(served, least) >= 0 => Some(least),
                _ => Some(served),
            };
        }
        round.looked = self.now;
        round.lead = round.quantum.max((lead_bytes << 24) / weights.max(WHOLE));
        // Alone, or the last itself: it may send.
        round.least = match least {
            Some(least) if beyond(least, round.served) < 0 || !round.contends => least,
            _ => round.served,
        };
        if round.contends && round.is_ahead() {
            let work = self.byte_time.of(work.min(u64::from(ByteTime::MOST_BYTES)) as u32);
            let nap = work.min(nap).max(Span::from_micros(1));
            self.naps_until = self.now.max(free) + nap;
        }
    }
}

#[cfg(test)]
mod tests;
