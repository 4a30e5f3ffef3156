//! Records of one flow: its payload over time, its window, TCP's counters.

use simnel_core::{Span, Time};
use simnel_tcp::Stats;

use crate::setup::Direction;

/// A sample of a sender's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSample {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
}

/// TCP's counters, summed over a flow's connections and both their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpTotals {
    /// Segments with payload sent, repetitions included.
    pub data_segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Window reductions.
    pub reductions: u64,
    /// Reductions that were taken back.
    pub undos: u64,
    /// Segments that were acknowledgements and nothing else.
    pub acks: u64,
    /// Segments with payload received.
    pub data_segments_received: u64,
    /// Segments received with CE.
    pub ce_received: u64,
}

impl TcpTotals {
    /// Adds an endpoint's counters.
    pub(crate) fn add(&mut self, stats: &Stats) {
        self.data_segments += stats.data_segments_sent;
        self.retransmits += stats.retransmits;
        self.timeouts += stats.timeouts;
        self.probes += stats.probes;
        self.reductions += stats.reductions;
        self.undos += stats.undos;
        self.acks += stats.acks_sent;
        self.data_segments_received += stats.data_segments_received;
        self.ce_received += stats.ce_received;
    }

    /// Counts since `earlier`.
    pub fn since(&self, earlier: &TcpTotals) -> TcpTotals {
        TcpTotals {
            data_segments: self.data_segments - earlier.data_segments,
            retransmits: self.retransmits - earlier.retransmits,
            timeouts: self.timeouts - earlier.timeouts,
            probes: self.probes - earlier.probes,
            reductions: self.reductions - earlier.reductions,
            undos: self.undos - earlier.undos,
            acks: self.acks - earlier.acks,
            data_segments_received: self.data_segments_received - earlier.data_segments_received,
            ce_received: self.ce_received - earlier.ce_received,
        }
    }
}

/// One flow's record while the run lasts.
#[derive(Clone, Debug)]
pub(crate) struct FlowRecord {
    /// Its traffic.
    pub group: u32,
    /// Its number within the traffic.
    pub index: u32,
    /// The way of its payload.
    pub direction: Direction,
    /// True if windows are sampled.
    pub windows_wanted: bool,
    /// Payload delivered, by direction.
    pub delivered: [u64; 2],
    /// Payload delivered in the flow's direction, interval by interval.
    pub series: Vec<u64>,
    sampled: u64,
    /// Samples of the sender, interval by interval.
    pub windows: Vec<WindowSample>,
    /// Counters of connections that are over; None before the first is.
    closed: Option<Box<TcpTotals>>,
    /// Time at which its application starts.
    pub started: Time,
    /// Time at which a transfer of limited size was complete.
    pub finished: Option<Time>,
}

impl FlowRecord {
    /// The record of flow `index` of a traffic, with room for so many intervals.
    pub fn new(
        (group, index): (u32, u32),
        direction: Direction,
        started: Time,
        intervals: usize,
    ) -> FlowRecord {
        FlowRecord {
            group,
            index,
            direction,
            windows_wanted: false,
            delivered: [0; 2],
            series: Vec::with_capacity(intervals),
            sampled: 0,
            windows: Vec::new(),
            closed: None,
            started,
            finished: None,
        }
    }

    /// One of its connections is over.
    pub fn close(&mut self, stats: &Stats) {
        self.closed.get_or_insert_default().add(stats);
    }

    /// Counters of connections that are over.
    pub fn closed(&self) -> TcpTotals {
        self.closed.as_deref().copied().unwrap_or_default()
    }

    /// An interval is over.
    pub fn sample(&mut self) {
        let delivered = self.delivered[self.direction as usize];
        self.series.push(delivered - self.sampled);
        self.sampled = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_flow_delivers_is_told_by_interval_and_direction() {
        let mut record = FlowRecord::new((0, 0), Direction::Down, Time::ZERO, 3);
        for delivered in [[9, 5], [9, 5], [90, 12]] {
            record.delivered = delivered;
            record.sample();
        }
        assert_eq!(record.series, [5, 0, 7]);
    }

    /// Each counter is that counter.
    #[test]
    fn counters_of_connections_add_up() {
        let mut record = FlowRecord::new((0, 0), Direction::Up, Time::ZERO, 3);
        assert_eq!(record.closed(), TcpTotals::default());
        let mut stats = simnel_tcp::Endpoint::new(&simnel_tcp::Config::default()).stats();
        (stats.data_segments_sent, stats.retransmits, stats.timeouts) = (1, 2, 3);
        (stats.probes, stats.reductions, stats.undos) = (4, 5, 6);
        (stats.acks_sent, stats.data_segments_received, stats.ce_received) = (7, 8, 9);
        record.close(&stats);
        let once = record.closed();
        let expected = TcpTotals {
            data_segments: 1,
            retransmits: 2,
            timeouts: 3,
            probes: 4,
            reductions: 5,
            undos: 6,
            acks: 7,
            data_segments_received: 8,
            ce_received: 9,
        };
        assert_eq!(once, expected);
        record.close(&stats);
        record.close(&stats);
        assert_eq!(record.closed().since(&once).since(&once), once);
    }
}
