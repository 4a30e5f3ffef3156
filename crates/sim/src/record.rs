//! A line's records while packets pass: few counters and one histogram a kind of traffic.

use simnel_core::qdisc::Snapshot;
use simnel_core::{Packet, Rate, Time};

use crate::distribution::Distribution;

/// No packet that is still to be counted: there is no such traffic.
const NONE: (u32, usize) = (u32::MAX, 0);

/// A line's counters since the beginning of the measured window.
#[derive(Clone, Debug)]
pub(crate) struct LineRecord {
    /// Time in the discipline, by traffic.
    sojourn: Vec<Distribution>,
    /// Traffic of the packet that left last, and the bucket of its time in the discipline. Counted
    /// when the next one leaves: by then the bucket has come from farther memory.
    last: (u32, usize),
    /// Packets and bytes given to the line.
    pub packets: u64,
    pub bytes: u64,
    /// Bytes of those on the line, framing included.
    pub framed_bytes: u64,
    /// The longest queue in packets.
    pub longest: u32,
    /// Packets that came and left, from the beginning.
    arrivals: u64,
    departures: u64,
    /// Capacity of the line, in byte-nanoseconds, up to `counted_to`.
    capacity: u128,
    counted_to: Time,
    /// Bytes given to the line, interval by interval.
    pub series: Vec<u64>,
    series_bytes: u64,
    /// The discipline's counters at the beginning of the window.
    pub at_start: Option<Snapshot>,
}

impl LineRecord {
    pub fn new(groups: usize, intervals: usize) -> LineRecord {
        LineRecord {
            sojourn: vec![Distribution::default(); groups],
            last: NONE,
            packets: 0,
            bytes: 0,
            framed_bytes: 0,
            longest: 0,
            arrivals: 0,
            departures: 0,
            capacity: 0,
            counted_to: Time::ZERO,
            series: Vec::with_capacity(intervals),
            series_bytes: 0,
            at_start: None,
        }
    }

    /// A packet was handed to the discipline, which has dropped so many from the beginning.
    #[inline]
    pub fn arrived(&mut self, dropped: u64) {
        self.arrivals += 1;
        self.longest = self.longest.max(self.queued(dropped) as u32);
    }

    /// Packets in the discipline, which has dropped so many from the beginning.
    #[inline]
    pub fn queued(&self, dropped: u64) -> u64 {
        self.arrivals - self.departures - dropped
    }

    /// A packet of traffic `group` left the discipline, and occupies so many bytes on the line.
    #[inline]
    pub fn taken(&mut self, packet: &Packet, framed: u32, group: u32, now: Time) {
        self.packets += 1;
        self.departures += 1;
        self.bytes += u64::from(packet.len);
        self.framed_bytes += u64::from(framed);
        self.complete_last();
        if let Some(sojourn) = self.sojourn.get_mut(group as usize) {
            self.last = (group, sojourn.begin(now.since(packet.enqueued)));
        }
    }

    #[inline]
    fn complete_last(&mut self) {
        let (group, bucket) = self.last;
        if let Some(sojourn) = self.sojourn.get_mut(group as usize) {
            sojourn.complete(bucket);
        }
    }

    /// Times in the discipline, by traffic.
    pub fn sojourn(&mut self) -> &mut Vec<Distribution> {
        self.complete_last();
        self.last = NONE;
        &mut self.sojourn
    }

    /// The line had `rate` until now.
    pub fn rate_changed(&mut self, rate: Option<Rate>, now: Time) {
        let span = now.since(self.counted_to).0;
        self.capacity += u128::from(rate.unwrap_or_default().bytes()) * u128::from(span);
        self.counted_to = now;
    }

    /// Bytes that the line could have carried in the window; zero if it has no rate.
    pub fn capacity_bytes(&self) -> u64 {
        (self.capacity / 1_000_000_000) as u64
    }

    /// An interval is over.
    pub fn sample(&mut self) {
        self.series.push(self.bytes.wrapping_sub(self.series_bytes));
        self.series_bytes = self.bytes;
    }

    /// The measured window begins: forgets what was before, except the time series.
    pub fn start_window(&mut self, now: Time, snapshot: Snapshot) {
        self.sojourn().iter_mut().for_each(Distribution::clear);
        self.series_bytes = self.series_bytes.wrapping_sub(self.bytes);
        (self.packets, self.bytes, self.framed_bytes) = (0, 0, 0);
        (self.longest, self.capacity) = (0, 0);
        self.counted_to = now;
        self.at_start = Some(snapshot);
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::{qdisc, Span};

    use super::*;

    fn packet(len: u32, enqueued: u64) -> Packet {
        let mut packet = Packet::new(0, len);
        packet.enqueued = Time(enqueued);
        packet
    }

    #[test]
    fn a_queue_is_what_came_less_what_left_or_was_dropped() {
        let mut record = LineRecord::new(2, 5);
        for dropped in [0, 0, 0, 1] {
            record.arrived(dropped);
        }
        assert_eq!((record.queued(1), record.longest), (3, 3));
        record.taken(&packet(100, 0), 106, 0, Time(5_000_000));
        record.taken(&packet(50, 0), 53, 1, Time(9_000_000));
        assert_eq!((record.queued(1), record.longest), (1, 3));
        assert_eq!((record.packets, record.bytes, record.framed_bytes), (2, 150, 159));
        // The one that left last is counted as well.
        let counts: Vec<u64> = record.sojourn().iter().map(Distribution::count).collect();
        assert_eq!(counts, [1, 1]);
        let counts: Vec<u64> = record.sojourn().iter().map(Distribution::count).collect();
        assert_eq!(counts, [1, 1], "once");
        let medians = record.sojourn().iter().map(|sojourn| sojourn.quantile(500));
        assert!(medians.eq([5, 9].map(|millis| Some(Span::from_millis(millis)))));
        let cumulative = record.sojourn().iter().map(Distribution::cumulative);
        assert!(cumulative.eq([5, 9].map(|millis| vec![(Span::from_millis(millis), 1)])));
    }

    #[test]
    fn a_window_forgets_what_was_before_but_not_the_series() {
        let mut record = LineRecord::new(1, 5);
        let take = |record: &mut LineRecord, len| {
            record.arrived(0);
            record.taken(&packet(len, 0), len, 0, Time(1_000));
        };
        let words = qdisc::parse("pfifo").expect("words");
        let snapshot = qdisc::build(&words, &qdisc::Device::default()).expect("pfifo").snapshot();
        record.rate_changed(Some(Rate(1_000)), Time(2_000_000_000));
        take(&mut record, 100);
        record.sample();
        take(&mut record, 30);
        record.start_window(Time(3_000_000_000), snapshot);
        assert_eq!((record.packets, record.bytes, record.longest), (0, 0, 0));
        assert_eq!(record.framed_bytes, 0);
        assert_eq!(record.sojourn()[0].count(), 0);
        take(&mut record, 7);
        record.sample();
        take(&mut record, 8);
        record.sample();
        assert_eq!(record.series, [100, 37, 8]);
        // Capacity is of the window alone; without a rate there is none.
        record.rate_changed(Some(Rate(1_000)), Time(5_000_000_000));
        record.rate_changed(None, Time(9_000_000_000));
        assert_eq!(record.capacity_bytes(), 2_000);
    }
}
