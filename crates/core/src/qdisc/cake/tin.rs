//! One tin: its share of the rate, its COBALT settings, its rotations and counters.
//!
//! Each tin has a virtual clock that runs at the tin's threshold rate. (Piece of CAKE, section
//! III-C; facts A.3, A.4.)

use alloc::boxed::Box;

use super::flows::Flow;
use super::params::Params;
use super::tin_map::DiffservMode;
use super::TinStats;
use crate::aqm::cobalt::{self, CobaltState};
use crate::qdisc::Device;
use crate::rate::{ByteTime, Rate};
use crate::sched::rotation::Rotation;
use crate::sched::savings::Savings;
use crate::sched::sparse::Sparse;
use crate::time::{Span, Time};

/// Smallest and largest bytes that a flow sends in a turn: one full Ethernet frame at the most.
const QUANTUM: (u64, u64) = (300, 1514);

/// One tin, in four cache lines: found by a shift.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Tin {
    /// Time at which the tin's next packet is due, by the tin's clock.
    pub(super) time_next: Time,
    remainder: u64,
    byte_time: ByteTime,
    /// Number of its first queue.
    pub(super) base: u32,
    /// Flows with a standing queue. Under limited savings all that have packets.
    pub(super) bulk_flows: u32,
    /// Bytes that the tin may still send in this round of DRR (unlimited mode).
    pub(super) deficit: i64,
    pub(super) sparse: Sparse,
    pub(super) decaying: Rotation,
    /// In the place of `sparse`, if empty queues save up.
    pub(super) savings: Option<Box<Savings>>,
    /// Bytes queued.
    pub(super) backlog: u64,
    pub(super) cobalt: cobalt::CobaltParams,
    /// Bytes a flow may send in a turn.
    pub(super) flow_quantum: u32,
    /// Bytes that the tin may send in a round of DRR.
    tin_quantum: u32,
    /// Its threshold.
    pub(super) rate: Rate,
    pub(super) counters: Counters,
}

const _: () = assert!(core::mem::size_of::<Tin>() == 256);

/// A tin's counters for `tc -s`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u32,
    pub(super) marks: u32,
    pub(super) ack_drops: u32,
    pub(super) way_hits: u32,
    pub(super) way_indirect_hits: u32,
    pub(super) way_misses: u32,
    pub(super) way_collisions: u32,
    pub(super) unresponsive: u32,
    pub(super) max_len: u32,
    avg_delay: u64,
    peak_delay: u64,
    base_delay: u64,
    pub(super) dropped_bytes: u64,
}

/// An exponentially weighted moving average with weight 2^-shift.
#[inline]
pub(super) fn ewma(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

/// [`ewma`] of a figure that follows such a sample quickly. Apart, or compilers shift by a variable
/// instead of branching.
#[cold]
#[inline(never)]
fn quickly(average: u64, sample: u64) -> u64 {
    ewma(average, sample, 2)
}

impl Tin {
    /// An idle tin whose queues are numbered from `base` on; [`Tin::configure`] must follow.
    pub(super) fn new(base: u32) -> Tin {
        Tin {
            base,
            time_next: Time::ZERO,
            remainder: 0,
            byte_time: ByteTime::default(),
            bulk_flows: 0,
            deficit: 0,
            sparse: Sparse::default(),
            decaying: Rotation::default(),
            savings: None,
            backlog: 0,
            cobalt: cobalt::CobaltParams::default(),
            flow_quantum: 0,
            tin_quantum: 0,
            rate: Rate::default(),
            counters: Counters::default(),
        }
    }

    /// Sets everything that follows from the tin's rate.
    pub(super) fn configure(
        &mut self,
        rate: Rate,
        tin_quantum: u32,
        params: &Params,
        device: &Device,
    ) {
        self.rate = rate;
        self.byte_time = ByteTime::new(rate, device.arithmetic);
        self.remainder = 0;
        self.tin_quantum = tin_quantum;
        let (least, most) = QUANTUM;
        self.flow_quantum =
            if rate.is_unlimited() { most } else { (rate.0 >> 12).clamp(least, most) } as u32;
        // A slow line is never asked for less delay than one and a half packets.
        let mtu_time = self.byte_time.of(device.mtu);
        let target = Span(mtu_time.0 * 3 / 2).max(params.target);
        self.cobalt = cobalt::CobaltParams {
            target,
            interval: (params.rtt + target).saturating_sub(params.target).max(target * 2),
            mtu_time,
            arithmetic: device.arithmetic,
        };
    }

    /// The queue of `flow` is another's from now on, who has not been told of any congestion.
    pub(super) fn forget_signals(&mut self, flow: &mut Flow) {
        let cobalt = core::mem::replace(&mut flow.cobalt, CobaltState::NEW);
        self.counters.unresponsive -= u32::from(cobalt.is_unresponsive());
    }

    /// Forgets all of its flows; keeps settings and counters.
    pub(super) fn forget(&mut self) {
        self.bulk_flows = 0;
        (self.backlog, self.deficit, self.remainder) = (0, 0, 0);
        self.sparse.clear();
        self.decaying = Rotation::default();
        self.counters.unresponsive = 0;
    }

    /// Charges `len` bytes sent at `now` to the tin's clock. It is ahead of time by one packet at
    /// the most: what a tin borrows beyond its share is not held against it. One that lags, behind
    /// higher tins, catches up.
    #[inline(always)]
    pub(super) fn advance_clock(&mut self, len: u32, now: Time) {
        let duration = self.byte_time.charge(len, &mut self.remainder);
        if self.time_next < now {
            self.time_next += duration;
        } else if self.time_next < now + duration {
            self.time_next = now + duration;
        }
    }

    /// Starts rounds of DRR between tins for this one.
    #[inline]
    pub(super) fn refill(&mut self, rounds: u64) {
        self.deficit += i64::from(self.tin_quantum) * rounds as i64;
    }

    /// Rounds of DRR until the tin is out of debt.
    pub(super) fn rounds_in_debt(&self) -> u64 {
        (-self.deficit).max(0) as u64 / u64::from(self.tin_quantum.max(1))
            + u64::from(self.deficit <= 0)
    }

    /// Puts the sojourn time of a delivered packet into the moving averages.
    #[inline(always)]
    pub(super) fn record_delay(&mut self, sojourn: Span) {
        let Counters { avg_delay, peak_delay, base_delay, .. } = &mut self.counters;
        let sojourn = sojourn.0;
        *avg_delay = ewma(*avg_delay, sojourn, 8);
        // A branch that is nearly always foreseen; that of the least delay is not.
        *peak_delay = match sojourn > *peak_delay {
            true => quickly(*peak_delay, sojourn),
            false => ewma(*peak_delay, sojourn, 8),
        };
        let shift = if sojourn < *base_delay { 2 } else { 8 };
        *base_delay = ewma(*base_delay, sojourn, shift);
    }

    /// The tin's counters as `tc -s` shows them; `flows` are its own.
    pub(super) fn stats(&self, flows: &[Flow]) -> TinStats {
        let counters = &self.counters;
        let short = |n: u32| n.min(u32::from(u16::MAX)) as u16;
        TinStats {
            threshold_rate: self.rate,
            sent_bytes: counters.bytes,
            sent_packets: counters.packets,
            backlog_bytes: self.backlog,
            dropped_bytes: counters.dropped_bytes,
            target: self.cobalt.target,
            interval: self.cobalt.interval,
            peak_delay: Span(counters.peak_delay),
            avg_delay: Span(counters.avg_delay),
            base_delay: Span(counters.base_delay),
            way_direct_hits: counters.way_hits.wrapping_sub(counters.way_indirect_hits),
            way_indirect_hits: counters.way_indirect_hits,
            way_misses: counters.way_misses,
            way_collisions: counters.way_collisions,
            drops: counters.drops,
            ecn_mark: counters.marks,
            ack_drops: counters.ack_drops,
            sparse_flows: short(flows.iter().filter(|flow| flow.is_sparse()).count() as u32),
            bulk_flows: short(self.bulk_flows),
            unresponsive_flows: short(counters.unresponsive),
            max_pkt_len: short(counters.max_len),
            flow_quantum: short(self.flow_quantum),
        }
    }
}

/// Share of the rate and weight in DRR of a tin of `mode`.
pub(super) fn share(mode: DiffservMode, rate: Rate, tin_index: usize) -> (Rate, u32) {
    // Rates as powers of one half.
    let tins: &[(u32, u32)] = match mode {
        DiffservMode::Besteffort => &[(0, 65_535)],
        DiffservMode::Diffserv3 => &[(0, 1024), (4, 64), (2, 256)],
        DiffservMode::Diffserv4 => &[(0, 1024), (4, 64), (1, 512), (2, 256)],
        DiffservMode::Diffserv8 | DiffservMode::Precedence => {
            // Each tin has seven eighths of the rate and of the weight of the one below.
            let below = (0..tin_index).fold((rate.0, 256), |(rate, quantum), _| {
                // As `rate * 7 / 8`, for any rate.
                (rate - rate.div_ceil(8), quantum * 7 / 8)
            });
            return (Rate(below.0), below.1);
        }
    };
    tins.get(tin_index).map_or((rate, 0), |&(shift, quantum)| (Rate(rate.0 >> shift), quantum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tin_is_out_of_debt_when_it_has_something_left() {
        let mut tin = Tin::new(0);
        tin.tin_quantum = 1024;
        for (deficit, rounds) in [
            (1, 0),
            (5_000, 0),
            (0, 1),
            (-1, 1),
            (-1_023, 1),
            (-1_024, 2),
            (-2_000, 2),
            (-100_000, 98),
        ] {
            tin.deficit = deficit;
            assert_eq!(tin.rounds_in_debt(), rounds, "{deficit}");
            tin.refill(rounds);
            assert!(tin.deficit > 0 && (rounds == 0 || tin.deficit <= 1024), "{deficit}");
        }
    }
}
