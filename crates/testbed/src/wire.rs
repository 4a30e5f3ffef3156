//! Counters read at regular intervals: bytes on an interface, or payload of flows.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Namespace, TestbedError};

/// A counter's value at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the sampler was started.
    pub at: Duration,
    /// The counter.
    pub value: u64,
}

/// Reads a counter at regular intervals on a thread of its own.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

/// Counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Bytes received, link headers included.
    pub rx_bytes: u64,
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
}

impl Sampler {
    /// Reads `counter` now and every `interval`, until stopped.
    pub fn start(interval: Duration, counter: impl Fn() -> u64 + Send + 'static) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut samples = Vec::new();
            let mut next = start;
            loop {
                samples.push(Sample { at: start.elapsed(), value: counter() });
                if stopped.load(Ordering::Relaxed) {
                    return samples;
                }
                next += interval;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
        Sampler { stop, thread }
    }

    /// All samples, the last taken after this was called.
    pub fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The highest rate in bytes per second over any window of `width` samples' distance.
pub fn peak_rate(samples: &[Sample], width: usize) -> u64 {
    samples
        .windows(width.max(1) + 1)
        .map(|window| rate(&[window[0], window[window.len() - 1]]))
        .max()
        .unwrap_or(0)
}

/// The mean rate in bytes per second from the first to the last sample.
pub fn rate(samples: &[Sample]) -> u64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0 };
    let nanos = (last.at - first.at).as_nanos().max(1);
    (u128::from(last.value - first.value) * 1_000_000_000 / nanos) as u64
}

impl Namespace {
    /// Counters of an interface in the namespace.
    pub fn counters(&self, interface: &str) -> Result<InterfaceCounters, TestbedError> {
        // /sys/class/net would show the namespace of its mount, not of the thread.
        let table = self.enter(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let failed =
            |source| TestbedError::Traffic { what: "cannot read /proc/net/dev".into(), source };
        parse(&table.map_err(failed)?, interface).ok_or_else(|| {
            failed(std::io::Error::other(format!("there is no interface `{interface}`")))
        })
    }

    /// Samples the bytes that an interface receives.
    pub fn watch_rx(&self, interface: &str, interval: Duration) -> Sampler {
        let (namespace, interface) = (self.clone(), interface.to_owned());
        Sampler::start(interval, move || {
            namespace.counters(&interface).map_or(0, |counters| counters.rx_bytes)
        })
    }
}

/// A line of /proc/net/dev is a name, a colon, eight numbers of reception and eight of sending.
fn parse(table: &str, interface: &str) -> Option<InterfaceCounters> {
    table.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        if name.trim() != interface {
            return None;
        }
        let numbers: Vec<u64> =
            numbers.split_whitespace().map_while(|number| number.parse().ok()).collect();
        Some(InterfaceCounters {
            rx_bytes: *numbers.first()?,
            rx_packets: *numbers.get(1)?,
            tx_bytes: *numbers.get(8)?,
            tx_packets: *numbers.get(9)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_found_by_their_whole_name() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets\n\
            eth0: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n  th0: 5 6 0 0 0 0 0 0 7 8 0 0 0 0 0 0\n";
        let counters = parse(table, "th0").unwrap();
        assert_eq!((counters.rx_bytes, counters.rx_packets), (5, 6));
        assert_eq!((counters.tx_bytes, counters.tx_packets), (7, 8));
        assert_eq!(parse(table, "h0"), None);
    }

    #[test]
    fn rates_are_bytes_over_time() {
        let at = |millis, value| Sample { at: Duration::from_millis(millis), value };
        let samples = [at(0, 0), at(100, 1000), at(200, 4000), at(300, 4500)];
        assert_eq!(rate(&samples), 15_000);
        assert_eq!(peak_rate(&samples, 1), 30_000);
        assert_eq!(peak_rate(&samples, 2), 20_000);
        assert_eq!((rate(&[]), peak_rate(&[], 1)), (0, 0));
    }
}
