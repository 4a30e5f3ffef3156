//! Interfaces over ten minutes, a day and thirty days, each at a step of its own.
//!
//! A look is added to one bucket of each span: mean of rates, worst second's latency, sum of drops
//! and marks. Buckets are kept by the time of day at which they begin, so after a restart the one
//! under way goes on. A clock that was wrong (no battery, no network yet) makes buckets elsewhere.
//! Beyond the number of a span those before it go first, then those farthest in the future.
//!
//! Bounded: [`SPANS`] say how many buckets, [`MOST_INTERFACES`] of how many interfaces.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// A span of history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// As requests name it.
    pub(crate) name: &'static str,
    /// Seconds of one bucket.
    pub(crate) step_s: u64,
    /// Buckets.
    pub(crate) most: usize,
    /// True if it survives a restart.
    pub(crate) is_saved: bool,
}

/// All that are kept.
pub(crate) const SPANS: [Span; 3] = [
    Span { name: "10m", step_s: 1, most: 600, is_saved: false },
    Span { name: "24h", step_s: 60, most: 1440, is_saved: true },
    Span { name: "30d", step_s: 1800, most: 1440, is_saved: true },
];
/// Interfaces; of more, those that have been gone longest are forgotten.
pub(crate) const MOST_INTERFACES: usize = 32;

impl Span {
    pub(crate) fn seconds(self) -> u64 {
        self.step_s * self.most as u64
    }
}

/// One moment of one interface, or some time, in numbers that a chart shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Seconds since 1970.
    pub at_s: u64,
    /// Bits a second, download and upload.
    pub rate_bps: [u64; 2],
    /// Added latency that 99 of 100 packets since the point before did not exceed, each way. Of a
    /// longer step it is the worst such; 0 where nothing is known.
    pub p99_ns: [u64; 2],
    /// Drops and marks since the point before, each way.
    pub signals: [u64; 2],
}

/// Looks of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    looks: u64,
    /// Sum over the looks.
    rate_bps: [u64; 2],
    p99_ns: [u64; 2],
    signals: [u64; 2],
}

impl Bucket {
    fn add(&mut self, point: &Point) {
        self.looks = self.looks.saturating_add(1);
        for way in 0..2 {
            self.rate_bps[way] = self.rate_bps[way].saturating_add(point.rate_bps[way]);
            self.p99_ns[way] = self.p99_ns[way].max(point.p99_ns[way]);
            self.signals[way] = self.signals[way].saturating_add(point.signals[way]);
        }
    }

    fn point(&self, at_s: u64) -> Point {
        let rate_bps = self.rate_bps.map(|sum| sum / self.looks.max(1));
        Point { at_s, rate_bps, p99_ns: self.p99_ns, signals: self.signals }
    }

    pub(crate) fn numbers(&self) -> [u64; 7] {
        let ([a, b], [c, d], [e, f]) = (self.rate_bps, self.p99_ns, self.signals);
        [self.looks, a, b, c, d, e, f]
    }

    pub(crate) fn from_numbers([looks, a, b, c, d, e, f]: [u64; 7]) -> Bucket {
        Bucket { looks, rate_bps: [a, b], p99_ns: [c, d], signals: [e, f] }
    }
}

/// Place of a bucket: interface, index of the span, begin.
pub(crate) type Place = (String, u8, u64);

/// All spans of all interfaces.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// For each interface and span the buckets by their begin.
    buckets: BTreeMap<String, [BTreeMap<u64, Bucket>; SPANS.len()]>,
    /// Saved ones that have come, grown or gone since [`History::changes`].
    changed: BTreeSet<Place>,
}

impl History {
    /// Adds a look.
    pub(crate) fn add(&mut self, interface: &str, point: &Point) {
        let series = self.buckets.entry(interface.to_owned()).or_default();
        for ((index, span), buckets) in (0..).zip(SPANS).zip(series) {
            let begin = point.at_s - point.at_s % span.step_s;
            buckets.entry(begin).or_default().add(point);
            let gone = shorten(buckets, span, point.at_s);
            if span.is_saved {
                let places = gone.into_iter().chain([begin]);
                self.changed.extend(places.map(|begin| (interface.to_owned(), index, begin)));
            }
        }
        self.forget_the_longest_gone(interface);
    }

    /// Takes what was saved by an earlier process; what is here already stays.
    pub(crate) fn restore(&mut self, saved: Vec<(Place, Bucket)>, now_s: u64) {
        for ((interface, index, begin), bucket) in saved {
            let Some(span) = SPANS.get(usize::from(index)).filter(|span| span.is_saved) else {
                continue;
            };
            let series = self.buckets.entry(interface.clone()).or_default();
            let buckets = &mut series[usize::from(index)];
            buckets.entry(begin).or_insert(bucket);
            let gone = shorten(buckets, *span, now_s).into_iter();
            self.changed.extend(gone.map(|begin| (interface.clone(), index, begin)));
            self.forget_the_longest_gone(&interface);
        }
    }

    /// Interfaces of which something is known.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &String> {
        self.buckets.keys()
    }

    /// History of `interface` in the span before `now_s`, the oldest first.
    pub(crate) fn points(&self, interface: &str, index: usize, now_s: u64) -> Vec<Point> {
        let Some(series) = self.buckets.get(interface) else { return Vec::new() };
        let first = (now_s + 1).saturating_sub(SPANS[index].seconds());
        let all = series[index].range(first..=now_s.max(first));
        all.map(|(begin, bucket)| bucket.point(*begin)).collect()
    }

    /// Rows to save since the last call: a bucket, or that there is none any more.
    pub(crate) fn changes(&mut self) -> Vec<(Place, Option<Bucket>)> {
        let now = |place: Place| {
            let series = self.buckets.get(&place.0);
            let bucket = series.and_then(|series| series[usize::from(place.1)].get(&place.2));
            let bucket = bucket.copied();
            (place, bucket)
        };
        std::mem::take(&mut self.changed).into_iter().map(now).collect()
    }

    /// Everything that is to be saved.
    pub(crate) fn all(&self) -> Vec<(Place, Option<Bucket>)> {
        let mut all = Vec::new();
        for (interface, series) in &self.buckets {
            for ((index, span), buckets) in (0..).zip(SPANS).zip(series) {
                let buckets = buckets.iter().filter(|_| span.is_saved);
                all.extend(
                    buckets
                        .map(|(begin, bucket)| ((interface.clone(), index, *begin), Some(*bucket))),
                );
            }
        }
        all
    }

    fn forget_the_longest_gone(&mut self, newest: &str) {
        while self.buckets.len() > MOST_INTERFACES {
            let last_seen = |series: &[BTreeMap<u64, Bucket>; SPANS.len()]| {
                series.iter().filter_map(|buckets| buckets.keys().next_back()).max().copied()
            };
            let others = self.buckets.iter().filter(|(name, _)| *name != newest);
            let Some((gone, _)) = others.min_by_key(|(_, series)| last_seen(series)) else {
                return;
            };
            let gone = gone.clone();
            let series = self.buckets.remove(&gone).unwrap_or_default();
            for ((index, span), buckets) in (0..).zip(SPANS).zip(series) {
                let begins = buckets.into_keys().filter(|_| span.is_saved);
                self.changed.extend(begins.map(|begin| (gone.clone(), index, begin)));
            }
        }
    }
}

/// Removes what is beyond the number of `span`, and says what it was.
fn shorten(buckets: &mut BTreeMap<u64, Bucket>, span: Span, now_s: u64) -> Vec<u64> {
    let mut gone = Vec::new();
    while buckets.len() > span.most {
        let first = buckets.first_key_value().map_or(0, |(begin, _)| *begin);
        let is_over = first.saturating_add(span.seconds()) <= now_s;
        let is_ahead = buckets.last_key_value().is_some_and(|(begin, _)| *begin > now_s);
        let taken = if is_ahead && !is_over { buckets.pop_last() } else { buckets.pop_first() };
        gone.extend(taken.map(|(begin, _)| begin));
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;
    /// In 2026.
    const NOW: u64 = 1_780_000_200;

    fn point(at_s: u64, rate: u64, p99: u64) -> Point {
        Point { at_s, rate_bps: [rate, 0], p99_ns: [p99, 0], signals: [1, 0] }
    }

    #[test]
    fn a_bucket_has_the_mean_rate_and_the_worst_latency() {
        let mut history = History::default();
        for (second, rate, p99) in [(0, 10, 5), (1, 20, 50), (59, 60, 7), (60, 1000, 1)] {
            history.add("wan", &point(NOW + second, rate, p99));
        }
        let minutes = history.points("wan", 1, NOW + 61);
        let first = Point { signals: [3, 0], ..point(NOW, 30, 50) };
        assert_eq!(minutes, [first, point(NOW + 60, 1000, 1)]);
        assert_eq!(history.points("wan", 0, NOW + 61).len(), 4);
        assert_eq!(history.points("wan", 2, NOW + 61).len(), 1);
        assert_eq!(history.points("lan", 0, NOW + 61), []);
    }

    #[test]
    fn each_span_is_bounded_and_ends_when_it_says() {
        let mut history = History::default();
        // A look each half minute for 33 days.
        let end = NOW + 33 * DAY;
        for at in (NOW..=end).step_by(30) {
            history.add("wan", &point(at, 8, 9));
        }
        for (index, span) in SPANS.iter().enumerate() {
            let points = history.points("wan", index, end);
            assert!(points.len() <= span.most, "{}: {}", span.name, points.len());
            assert!(points[0].at_s + span.seconds() > end - span.step_s, "{}", span.name);
        }
        assert_eq!(history.points("wan", 2, end).len(), 1440);
        assert_eq!(history.points("wan", 0, end).len(), 20);
        assert_eq!(history.all().len(), 2 * 1440);
    }

    #[test]
    fn a_clock_that_was_wrong_costs_little_history() {
        let mut history = History::default();
        for at in (NOW - DAY..NOW).step_by(60) {
            history.add("wan", &point(at, 8, 9));
        }
        // Started without a battery: ten minutes of 1970, then the network says the time.
        (1..=600).for_each(|at| history.add("wan", &point(at, 1, 1)));
        (NOW..NOW + 60).for_each(|at| history.add("wan", &point(at, 2, 2)));
        let minutes = history.points("wan", 1, NOW + 60);
        assert!(minutes.len() >= 1440 - 12, "{}", minutes.len());
        assert!(minutes.iter().all(|point| point.at_s > NOW - DAY));
        // A clock that was a century ahead does not keep the present out.
        for at in (4 * NOW..4 * NOW + 2 * DAY).step_by(60) {
            history.add("wan", &point(at, 1, 1));
        }
        for at in (NOW + 60..NOW + 60 + 3600).step_by(60) {
            history.add("wan", &point(at, 3, 3));
        }
        assert_eq!(history.points("wan", 1, NOW + 3660).len(), 60);
    }

    #[test]
    fn interfaces_that_are_long_gone_make_room() {
        let mut history = History::default();
        for number in 0..100 {
            history.add(&format!("ppp{number}"), &point(NOW + number, 1, 1));
        }
        let names: BTreeSet<&str> = history.interfaces().map(String::as_str).collect();
        assert_eq!(names.len(), MOST_INTERFACES);
        assert!(names.contains("ppp99") && names.contains("ppp68") && !names.contains("ppp67"));
        let gone = history.changes().into_iter().filter(|(_, bucket)| bucket.is_none());
        assert_eq!(gone.count(), 2 * (100 - MOST_INTERFACES), "told to the file, too");
        assert_eq!(history.changes(), []);
    }
}
