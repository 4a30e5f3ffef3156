//! Results of a run: plain data, whole numbers, nothing that depends on the machine.

use simnel_core::qdisc::Snapshot;
use simnel_core::{Span, Time};

use crate::apps::Outcome;
use crate::distribution::Distribution;
use crate::flow::{TcpTotals, WindowSample};
use crate::memory::Memory;
use crate::pool::Fates;
use crate::setup::Direction;

/// Everything that was recorded.
#[derive(Clone, Debug)]
pub struct Results {
    /// The run's seed.
    pub seed: u64,
    /// Time that was simulated.
    pub simulated: Span,
    /// False if it was stopped before its end.
    pub complete: bool,
    /// The measured window: results count from the first to the second.
    pub window: (Time, Time),
    /// Length of the intervals of all time series, which start at zero; the last may be shorter.
    pub interval: Span,
    /// Both lines: up, down.
    pub lines: [LineResult; 2],
    /// Names of the traffic, by group.
    pub groups: Vec<String>,
    /// All flows, in the order of the set-up.
    pub flows: Vec<FlowResult>,
    /// Packets that went through both disciplines, from the beginning.
    pub bottleneck_packets: u64,
    /// Events that were processed.
    pub events: u64,
    /// Hash of everything that happened to every packet, in order and with times.
    pub hash: u64,
    /// The hosts' memory of paths afterwards, if they began with one.
    pub memory: Option<Memory>,
    /// Packets sent by hosts, delivered, lost or dropped, and still under way at the end.
    pub conservation: Conservation,
}

impl Results {
    /// Length of the `n`th interval: the last one ends with the run.
    pub fn interval_at(&self, n: usize) -> Span {
        match self.simulated.0.saturating_sub(self.interval.0.saturating_mul(n as u64)) {
            0 => self.interval,
            left => self.interval.min(Span(left)),
        }
    }
}

/// Counts of all packets by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conservation {
    /// Sent by hosts.
    pub sent: u64,
    /// Arrived at hosts.
    pub delivered: u64,
    /// Lost on lines.
    pub lost: u64,
    /// Dropped by disciplines.
    pub dropped: u64,
    /// In pipes, disciplines and on wires.
    pub under_way: u64,
    /// Slots of the packet pool in use: the same number, counted by its owner.
    pub in_pool: u64,
}

impl Conservation {
    /// True if no packet was created or forgotten.
    pub fn holds(&self) -> bool {
        self.sent == self.delivered + self.lost + self.dropped + self.under_way
            && self.under_way == self.in_pool
    }
}

/// Traffic of a line.
#[derive(Clone, Debug)]
pub struct LineResult {
    /// The direction that it carries.
    pub direction: Direction,
    /// Packets that left the discipline in the window.
    pub packets: u64,
    /// Bytes of those (Ethernet frames).
    pub bytes: u64,
    /// Bytes of those on the line, framing included.
    pub framed_bytes: u64,
    /// Bytes that the line's rate allows in the window; zero if it has none.
    pub capacity_bytes: u64,
    /// Longest queue in the window, in packets.
    pub longest_queue: u32,
    /// Time in the discipline, by group.
    pub sojourn: Vec<Distribution>,
    /// Bytes by interval, from the start of the run.
    pub series: Vec<u64>,
    /// The discipline's counters when the window began.
    pub at_start: Option<Snapshot>,
    /// The discipline's counters at the end.
    pub at_end: Snapshot,
}

impl LineResult {
    /// Sojourn of all groups together.
    pub fn all_sojourn(&self) -> Distribution {
        let mut all = Distribution::default();
        self.sojourn.iter().for_each(|sojourn| all.merge(sojourn));
        all
    }
}

/// Results of one flow.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Its traffic, index of [`Results::groups`].
    pub group: u32,
    /// Its number within the traffic.
    pub index: u32,
    /// The way of its payload.
    pub direction: Direction,
    /// Time at which it started.
    pub started: Time,
    /// Time at which a transfer of limited size was complete.
    pub finished: Option<Time>,
    /// Payload bytes delivered in the window, up and down.
    pub delivered: [u64; 2],
    /// Payload bytes delivered in its direction by interval, from the start of the run.
    pub series: Vec<u64>,
    /// The sender's window by interval; empty unless asked for.
    pub windows: Vec<WindowSample>,
    /// Counters of its packets in the window, up and down.
    pub fates: [Fates; 2],
    /// TCP's counters in the window.
    pub tcp: TcpTotals,
    /// Its application's view.
    pub outcome: Outcome,
}

impl FlowResult {
    /// Payload bytes delivered in the flow's direction in the window.
    pub fn goodput_bytes(&self) -> u64 {
        self.delivered[self.direction as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet more or less in any of the books, and they do not add up.
    #[test]
    fn each_packet_is_in_one_book() {
        let good =
            Conservation { sent: 15, delivered: 5, lost: 4, dropped: 3, under_way: 3, in_pool: 3 };
        assert!(good.holds());
        let books: [fn(&mut Conservation) -> &mut u64; 6] = [
            |of| &mut of.sent,
            |of| &mut of.delivered,
            |of| &mut of.lost,
            |of| &mut of.dropped,
            |of| &mut of.under_way,
            |of| &mut of.in_pool,
        ];
        for book in books {
            for count in [1, u64::MAX] {
                let mut wrong = good;
                *book(&mut wrong) = book(&mut wrong).wrapping_add(count);
                assert!(!wrong.holds(), "{wrong:?}");
            }
        }
    }
}
