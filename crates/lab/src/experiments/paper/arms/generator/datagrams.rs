//! Datagrams of equal size at equal intervals, one way: calls and constant-rate streams.
//!
//! Both ends share the machine's clock, so that the way of each is measured by itself.

use std::thread;
use std::time::{Duration, Instant};

use super::{failed, micros, open_udp, Course, Heard, Join, Sides, IDLE, NUMBER, ROOM};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// Datagrams on the idle line, this far apart, tell how long the way is.
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// A stream, whichever way.
pub(super) fn start(
    flow: &Flow,
    size: usize,
    interval: Duration,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let error = |error| failed(flow, "send datagrams", error);
    let open = |address| open_udp(address, flow.dscp);
    let home = sides.home.enter(|| open(flow.home))?.map_err(error)?;
    let internet = sides.internet.enter(|| open(flow.internet))?.map_err(error)?;
    let port = internet.local_addr().map_err(error)?.port();
    let (from, to) = if flow.up { (home, internet) } else { (internet, home) };
    let address = to.local_addr().map_err(error)?;
    let (start, stop) = (flow.start, flow.stop.unwrap_or(course.duration));
    let size = size.max(NUMBER);
    let sending = course.clone();
    let sender = thread::spawn(move || {
        let mut data = vec![0; size];
        let mut sent: Vec<Instant> = Vec::new();
        let first = (IDLE.as_nanos() / IDLE_INTERVAL.as_nanos()) as u32;
        loop {
            let n = sent.len() as u32;
            let at = match n.checked_sub(first) {
                None => sending.zero - IDLE + IDLE_INTERVAL * n,
                Some(n) => sending.zero + start + interval * n,
            };
            if at >= sending.zero + stop || sending.over() {
                return (sent, first as usize);
            }
            sending.wait_until(at);
            data[..NUMBER].copy_from_slice(&n.to_be_bytes());
            sent.push(Instant::now());
            let _ = from.send_to(&data, address);
        }
    });
    let receiving = course.clone();
    let receiver = thread::spawn(move || {
        let mut data = [0; ROOM];
        let mut bytes = vec![0; receiving.intervals];
        let mut came = Vec::new();
        while !receiving.over() {
            let Ok(count) = to.recv(&mut data) else { continue };
            let now = Instant::now();
            if count >= NUMBER {
                came.push((u32::from_be_bytes([data[0], data[1], data[2], data[3]]), now));
            }
            if now >= receiving.zero {
                receiving.count(&mut bytes, count);
            }
        }
        (bytes, came)
    });
    let zero = course.zero;
    Ok(Box::new(move || {
        let (sent, first) = sender.join().unwrap_or_default();
        let (bytes, came) = receiver.join().unwrap_or_default();
        let mut delays: Vec<Option<u32>> = vec![None; sent.len()];
        for (number, at) in came {
            if let Some(delay) = delays.get_mut(number as usize) {
                let span = at.saturating_duration_since(sent[number as usize]);
                delay.get_or_insert(micros(span));
            }
        }
        let first = first.min(sent.len());
        let idle = delays[..first].iter().flatten().min().copied();
        let times = sent[first..].iter().zip(&delays[first..]);
        Heard {
            bytes,
            times: times.map(|(at, delay)| (at.saturating_duration_since(zero), *delay)).collect(),
            idle: idle.unwrap_or(0),
            failure: idle.is_none().then(|| "nothing arrived over the idle line".into()),
            port,
            ..Heard::default()
        }
    }))
}
