//! The line's state in words: "the upload is full: laptop, 3 flows; calls wait 4 ms".

use std::collections::BTreeMap;

use super::{FlowView, LineView};

/// From this share of the limit on, in percent, a line is full...
const FULL: u64 = 90;
/// ...and from this one on it is worth a word; full if packets were dropped or marked.
const BUSY: u64 = 50;
/// A flow below this share of the limit, in percent, is sparse.
const SPARSE: u64 = 5;
/// A sparse flow's wait that is worth a word, in nanoseconds.
const LONG: u64 = 1_000_000;
/// Below this rate nothing happens, bit/s.
const QUIET: u64 = 10_000;
/// Share of a core above which the thread may be late, in thousandths.
const HARD_AT_WORK: u64 = 800;
/// Code points of calls: CS5, VOICE-ADMIT, EF, and CS4, AF4x for pictures.
const CALLS: [u8; 7] = [40, 44, 46, 32, 34, 36, 38];

/// A sentence a direction.
pub(super) fn happening(lines: &[LineView], flows: &[FlowView]) -> Vec<String> {
    lines.iter().map(|line| sentence(line, flows)).collect()
}

fn sentence(line: &LineView, flows: &[FlowView]) -> String {
    let here: Vec<&FlowView> = flows
        .iter()
        .filter(|flow| flow.entry.direction == line.direction && flow.is_active())
        .collect();
    let share = line.limit_bps.and_then(|limit| (line.rate_bps * 100).checked_div(limit));
    // Of what was dropped behind the line's own queue, the line has carried all.
    let signals = line.new_drops + line.new_marks.unwrap_or(0);
    let is_full = |share| share >= FULL || share >= BUSY && signals > 0;
    let mut text = format!("the {} ", line.direction);
    match share {
        Some(share) if is_full(share) => text += "is full",
        Some(share) if share >= BUSY => text += &format!("is at {share} %"),
        _ if line.rate_bps < QUIET && here.is_empty() => text += "is quiet",
        _ => text += &format!("carries {}", rate(line.rate_bps)),
    }
    if share.is_some_and(|share| share >= BUSY) {
        if let Some(who) = busiest(&here) {
            text += &format!(": {who}");
        }
    }
    if let Some((who, wait)) = waiting(line, &here) {
        text += &format!("; {who} wait {}", time(wait));
    }
    if let Some((follows, limit)) = line.follows.as_ref().zip(line.limit_bps) {
        let (floor, ceiling) = (rate(follows.floor_bps), rate(follows.ceiling_bps));
        text += &format!("; autorate {} of {floor} to {ceiling}", rate(limit));
        match &follows.reason {
            _ if follows.reflectors > 0 && follows.answering == 0 => {
                text += " (no reflector answers)";
            }
            Some(reason) => text += &format!(" ({reason})"),
            None => {}
        }
    }
    if line.new_drops > 0 {
        text += &format!("; {} dropped", line.new_drops);
    }
    if line.cpu_permille.is_some_and(|cpu| cpu >= HARD_AT_WORK) {
        text += "; its thread has next to no time left";
    }
    text
}

/// The host with most traffic, and how many flows that is.
fn busiest(flows: &[&FlowView]) -> Option<String> {
    let mut hosts: BTreeMap<String, (u64, usize)> = BTreeMap::new();
    for flow in flows {
        let name = flow.host.clone().unwrap_or_else(|| flow.home().to_string());
        let host = hosts.entry(name).or_default();
        host.0 += flow.rate_bps;
        host.1 += 1;
    }
    let (name, (_, flows)) = hosts.into_iter().max_by_key(|(_, (rate, _))| *rate)?;
    Some(format!("{name}, {}", count(flows as u64, "flow")))
}

/// Flows that wait although they ask for little: calls if there are any, else other sparse flows.
fn waiting(line: &LineView, flows: &[&FlowView]) -> Option<(&'static str, u64)> {
    let worst = |chosen: &dyn Fn(&&&FlowView) -> bool| {
        let held = flows.iter().filter(chosen).filter_map(|flow| flow.entry.held);
        held.map(|held| held.sojourn_p99_ns).max()
    };
    let is_call = |flow: &&&FlowView| flow.entry.held.is_some_and(|h| CALLS.contains(&h.dscp));
    let calls = worst(&is_call).map(|wait| ("calls", wait));
    let sparse = line.limit_bps.map(|limit| limit * SPARSE / 100);
    let sparse = sparse.and_then(|most| worst(&|flow| flow.rate_bps <= most));
    calls.or(sparse.filter(|&wait| wait >= LONG).map(|wait| ("sparse flows", wait)))
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A rate with three digits: `4.82 Mbit/s`.
pub fn rate(bps: u64) -> String {
    const UNITS: [&str; 4] = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
    let (mut value, mut unit) = (bps as f64, 0);
    // By what is written: 999,600 bits are a megabit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1_000.0, unit + 1);
    }
    let digits = match unit {
        0 => 0,
        _ if value < 9.995 => 2,
        _ => usize::from(value < 99.95),
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A time with two or three digits: `4.2 ms`.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..10_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_whatever_they_are_rounded_to() {
        for (bps, text) in [
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (1_000, "1.00 kbit/s"),
            (9_994, "9.99 kbit/s"),
            (9_995, "10.0 kbit/s"),
            (9_996, "10.0 kbit/s"),
            (99_949, "99.9 kbit/s"),
            (99_950, "100 kbit/s"),
            (99_960, "100 kbit/s"),
            (999_400, "999 kbit/s"),
            (999_600, "1.00 Mbit/s"),
            (4_820_000, "4.82 Mbit/s"),
            (20_000_000_000_000, "20000 Gbit/s"),
        ] {
            assert_eq!(rate(bps), text);
        }
    }

    #[test]
    fn times_have_two_or_three_digits() {
        for (ns, text) in [
            (0, "0 µs"),
            (999_999, "999 µs"),
            (1_000_000, "1.0 ms"),
            (9_999_999, "10.0 ms"),
            (10_000_000, "10 ms"),
            (999_999_999, "999 ms"),
            (1_500_000_000, "1.5 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }
}
