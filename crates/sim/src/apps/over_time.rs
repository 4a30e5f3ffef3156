//! Delays over time: how many, their sum and the greatest of each interval.
//!
//! A distribution says how often, a series says when: the spike as transfers start, the time until
//! a discipline has found its control point. Delays are counted by the time at which the packet was
//! sent. There is one entry for each interval up to the last with a packet, so memory is bounded by
//! the run's number of samples.

use simnel_core::{Span, Time};

/// Delays of the packets sent in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Number of these packets that arrived.
    pub count: u32,
    /// Their sum in nanoseconds.
    pub sum: u64,
    /// The greatest.
    pub greatest: Span,
}

impl Moment {
    /// Mean delay; None if nothing arrived.
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(u64::from(self.count)).map(Span)
    }

    /// Counts another flow's packets of the same interval as well.
    pub fn merge(&mut self, other: &Moment) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.greatest = self.greatest.max(other.greatest);
    }
}

/// Delays, interval by interval from the start of the run.
#[derive(Clone, Debug)]
pub(crate) struct OverTime {
    interval: Span,
    moments: Vec<Moment>,
}

impl OverTime {
    pub fn new(interval: Span) -> OverTime {
        OverTime { interval, moments: Vec::new() }
    }

    /// A packet that was sent at `sent` was under way for `delay` beyond propagation.
    #[inline]
    pub fn record(&mut self, sent: Time, delay: Span) {
        let index = (sent.since(Time::ZERO).0 / self.interval.0.max(1)) as usize;
        if index >= self.moments.len() {
            self.moments.resize(index + 1, Moment::default());
        }
        let moment = &mut self.moments[index];
        moment.count += 1;
        moment.sum = moment.sum.saturating_add(delay.0);
        moment.greatest = moment.greatest.max(delay);
    }

    pub fn into_moments(self) -> Vec<Moment> {
        self.moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_counted_in_the_interval_of_their_sending() {
        let mut series = OverTime::new(Span::from_millis(200));
        for (sent, delay) in [(0, 3), (199, 5), (450, 7)] {
            series.record(Time::ZERO + Span::from_millis(sent), Span::from_millis(delay));
        }
        let moments = series.into_moments();
        assert_eq!(moments.len(), 3);
        assert_eq!((moments[0].count, moments[0].mean()), (2, Some(Span::from_millis(4))));
        assert_eq!((moments[0].greatest, moments[1].mean()), (Span::from_millis(5), None));
        assert_eq!(moments[2].greatest, Span::from_millis(7));
        let mut both = moments[0];
        both.merge(&moments[2]);
        assert_eq!((both.count, both.mean()), (3, Some(Span::from_millis(5))));
        assert_eq!(both.greatest, Span::from_millis(7));
    }
}
