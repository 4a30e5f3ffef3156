//! A line's rate over time: steps, or a trace of delivery opportunities.
//!
//! A trace is Mahimahi's format (Netravali et al., USENIX ATC 2015). It has one number a line, the
//! millisecond at which 1500 bytes may pass; equal numbers are several opportunities. The file
//! repeats with the last number as its period. An opportunity that finds nothing to send is lost.
//! What is left of one after a small packet serves the next packet, if that is there.

use simnel_core::{Rate, Span, Time};

/// Bytes that pass at one opportunity of a trace.
pub const OPPORTUNITY_BYTES: u32 = 1500;
/// Longest trace that is taken, in opportunities: ten minutes at 1 Gbit/s.
const MAX_OPPORTUNITIES: usize = 50_000_000;

/// A step of a line's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time of the step.
    pub at: Time,
    /// The rate from then on; zero is an outage.
    pub rate: Rate,
}

/// Delivery opportunities that repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds from the start of a period, never decreasing.
    opportunities: Vec<u32>,
    /// Length of a period in milliseconds.
    period: u32,
}

/// Errors in a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line holds no number of milliseconds.
    #[error("line {0}: expected a whole number of milliseconds")]
    NotANumber(usize),
    /// A number is smaller than the one before it.
    #[error("line {0}: milliseconds may not decrease")]
    Decreasing(usize),
    /// There is no opportunity, or the last one is at 0 ms: a period of no length.
    #[error("a trace needs an opportunity after 0 ms: its last number is its period")]
    Empty,
    /// The trace is longer than any that makes sense.
    #[error("a trace may not have more than {MAX_OPPORTUNITIES} opportunities")]
    TooLong,
}

impl Trace {
    /// Reads Mahimahi's format.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut opportunities: Vec<u32> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = line.parse().map_err(|_| TraceError::NotANumber(index + 1))?;
            if opportunities.last().is_some_and(|last| *last > at) {
                return Err(TraceError::Decreasing(index + 1));
            }
            if opportunities.len() == MAX_OPPORTUNITIES {
                return Err(TraceError::TooLong);
            }
            opportunities.push(at);
        }
        match opportunities.last() {
            Some(&period) if period > 0 => Ok(Trace { opportunities, period }),
            _ => Err(TraceError::Empty),
        }
    }

    /// Mean rate over a period.
    pub fn mean_rate(&self) -> Rate {
        let bytes = self.opportunities.len() as u64 * u64::from(OPPORTUNITY_BYTES);
        Rate(bytes * 1000 / u64::from(self.period))
    }

    /// Time of opportunity number `index`, counted from the beginning of the simulation.
    pub(crate) fn at(&self, index: u64) -> Time {
        let (length, period) = (self.opportunities.len() as u64, u64::from(self.period));
        let within = self.opportunities[(index % length) as usize];
        Time::ZERO + Span::from_millis(index / length * period + u64::from(within))
    }

    /// The number of the first opportunity at `now` or later.
    pub(crate) fn first_from(&self, now: Time) -> u64 {
        let millis = now.0.div_ceil(1_000_000);
        let (length, period) = (self.opportunities.len() as u64, u64::from(self.period));
        // The last opportunity of a period falls on the first millisecond of the next.
        let mut cycle = millis / period;
        if millis > 0 && millis.is_multiple_of(period) {
            cycle -= 1;
        }
        let within = millis - cycle * period;
        let skipped = self.opportunities.partition_point(|at| u64::from(*at) < within);
        cycle * length + skipped as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_repeats() {
        let trace = Trace::parse("# two a period\n3\n\n10\n").expect("a trace");
        assert_eq!(trace.mean_rate(), Rate(300_000));
        let times: Vec<u64> = (0..5).map(|n| trace.at(n).0 / 1_000_000).collect();
        assert_eq!(times, [3, 10, 13, 20, 23]);
        for (now, first) in [(0, 0), (3, 0), (4, 1), (10, 1), (11, 2), (20, 3), (21, 4)] {
            assert_eq!(trace.first_from(Time(now * 1_000_000)), first, "{now}");
        }
        assert_eq!(trace.first_from(Time(3_000_001)), 1);
    }

    #[test]
    fn wrong_traces_are_refused() {
        assert_eq!(Trace::parse("1\nx"), Err(TraceError::NotANumber(2)));
        assert_eq!(Trace::parse("5\n4"), Err(TraceError::Decreasing(2)));
        assert_eq!(Trace::parse("0\n0"), Err(TraceError::Empty));
        assert_eq!(Trace::parse(""), Err(TraceError::Empty));
    }
}
