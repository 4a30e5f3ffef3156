//! Effect of a change that is not made yet: the load that is on the line now, simulated with both
//! settings.
//!
//! ```text
//! flows of the last second → a scenario → simulated before and after → rates, waits, drops
//! ```
//!
//! A TCP or QUIC flow takes what it gets if its direction is full and it has had drops, marks or
//! packets queued. Every other one keeps its rate. Its far end is as far away as its RTT was seen
//! to be, else 50 ms. The line's rate cannot be seen from here: it is what is set. The scenario is
//! part of the answer, for `simnel sim`.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;
use simnel_gateway::view::{FlowView, LineView, View};
use simnel_gateway::Direction;
use simnel_scenario::{no_files, Scenario, Summary};

/// Flows that are simulated, the busiest.
const MOST_FLOWS: usize = 48;
/// Bits of each run: some 0.3 s of a core at most.
const BITS: u64 = 15_000_000_000;
/// The least that an unlimited direction carries, bit/s.
const UNLIMITED: u64 = 10_000_000;
/// Milliseconds of a run.
const LASTS_MS: std::ops::RangeInclusive<u64> = 500..=20_000;
/// Share of the limit from which on a direction is full, in hundredths.
const FULL: u64 = 85;
/// Divisor of the limit. If nobody tells of a flow's drops, one with at least that part of the
/// limit takes what it gets.
const PART: u64 = 20;
/// TCP's packets that are no longer on average carry acknowledgements only.
const ACK: u64 = 100;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// QUIC's port.
const QUIC: u16 = 443;
/// Name of the probe's traffic.
const PROBE: &str = "small packets";

/// Both settings under the same load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Effect {
    /// In words.
    pub(crate) words: String,
    /// Simulated milliseconds.
    lasts_ms: u64,
    before: Outcome,
    after: Outcome,
    /// The text of the scenario, with the settings before.
    scenario: String,
}

/// Figures with one of them.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    download: Way,
    upload: Way,
    /// Time that 99 of 100 small packets wait at most, there and back; none if none came back.
    small_p99_ms: Option<f64>,
}

/// One direction.
#[derive(Clone, Copy, Debug, Serialize)]
struct Way {
    mbps: f64,
    /// Time that 99 of 100 packets wait at most.
    p99_ms: f64,
    drops: u64,
    marks: u64,
}

/// Simulates the load of `view` with the settings that run and with `words` in `direction`, which
/// limit it to `rate` bit/s.
///
/// # Errors
/// Reason why it cannot be simulated, in words.
pub(crate) fn effect(
    view: &View,
    direction: Direction,
    (words, rate): (&str, Option<u64>),
) -> Result<Effect, String> {
    let line = |way| view.lines.iter().find(|line| line.direction == way);
    let ways = Direction::BOTH;
    let present = ways.map(|way| line(way).map_or("pfifo limit 1000", |line| line.config.as_str()));
    // What nothing limits has no queue; the simulator's line must have an end all the same.
    let limit =
        |line: &LineView| line.limit_bps.unwrap_or(line.rate_bps.saturating_mul(2).max(UNLIMITED));
    let limits = ways.map(|way| {
        let present = line(way).map(limit);
        if way == direction {
            present.max(rate)
        } else {
            present
        }
    });
    let load = Load::of(view);
    let sum: u64 = limits.iter().map(|limit| limit.unwrap_or(0)).sum();
    let lasts_ms =
        (BITS * 1000).checked_div(sum).unwrap_or(0).clamp(*LASTS_MS.start(), *LASTS_MS.end());
    let text = load.scenario(present, limits, lasts_ms);
    let scenario = Scenario::parse(&text, "the load now", &no_files).map_err(|e| e.to_string())?;
    let before = outcome(&scenario)?;
    let mut changed = present;
    changed[usize::from(direction == Direction::Download)] = words;
    let other = load.scenario(changed, limits, lasts_ms);
    let after = Scenario::parse(&other, "the load now", &no_files).map_err(|e| e.to_string())?;
    let after = outcome(&after)?;
    let words = in_words(&load, &before, &after);
    Ok(Effect { words, lasts_ms, before, after, scenario: text })
}

/// Runs a scenario.
fn outcome(scenario: &Scenario) -> Result<Outcome, String> {
    let simulation = scenario.simulation(None).map_err(|error| error.to_string())?;
    let finished = simulation.finish(1).map_err(|error| error.to_string())?;
    let summary = Summary::new(scenario, &finished);
    let way = |name| {
        let line = summary.lines.iter().find(|line| line.direction == name);
        line.map_or(Way { mbps: 0.0, p99_ms: 0.0, drops: 0, marks: 0 }, |line| Way {
            mbps: line.mbps,
            p99_ms: line.sojourn_ms.map_or(0.0, |times| times.p99),
            drops: line.drops,
            marks: line.marks,
        })
    };
    let probe = summary.groups.iter().find(|group| group.name == PROBE);
    let probe = probe.and_then(|group| group.application.as_ref()?.times());
    let small_p99_ms = probe.map(|times| times.p99);
    Ok(Outcome { download: way("down"), upload: way("up"), small_p99_ms })
}

fn in_words(load: &Load, before: &Outcome, after: &Outcome) -> String {
    let time = |ms: Option<f64>| match ms {
        None => "longer than simulated".into(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) if ms < 1000.0 => format!("{ms:.0} ms"),
        Some(ms) => format!("{:.1} s", ms / 1000.0),
    };
    let rates = |a: Way, b: Way| format!("{:.1} → {:.1} Mbit/s", a.mbps, b.mbps);
    format!(
        "Simulated with {}: small packets wait {} → {} (99 of 100), download {}, upload {}.",
        load.in_words(),
        time(before.small_p99_ms),
        time(after.small_p99_ms),
        rates(before.download, after.download),
        rates(before.upload, after.upload)
    )
}

/// Traffic as the simulator has it.
struct Load {
    flows: Vec<Flow>,
    /// Nothing is there: the flows are a supposition.
    is_idle: bool,
    left_out: usize,
}

struct Flow {
    direction: Direction,
    /// The host at home, by number.
    host: usize,
    dscp: u8,
    /// Bits a second and bytes of a packet; None: what it gets.
    keeps: Option<(u64, u64)>,
    /// To its far end and back, if it was seen.
    rtt_us: Option<u64>,
}

impl Load {
    fn of(view: &View) -> Load {
        let mut active: Vec<&FlowView> = view.flows.iter().filter(|flow| counts(flow)).collect();
        active.sort_by_key(|flow| std::cmp::Reverse(flow.rate_bps));
        let left_out = active.len().saturating_sub(MOST_FLOWS);
        active.truncate(MOST_FLOWS);
        let hosts: BTreeSet<_> = active.iter().map(|flow| flow.home()).collect();
        let flow = |flow: &&FlowView| Flow {
            direction: flow.entry.direction,
            host: hosts.iter().position(|host| *host == flow.home()).unwrap_or(0),
            dscp: flow.entry.held.map_or(0, |held| held.dscp),
            keeps: (!is_greedy(flow, &view.lines)).then(|| (flow.rate_bps, length(flow))),
            rtt_us: flow.entry.rtt_ns.map(|ns| ns / 1_000),
        };
        let mut flows: Vec<Flow> = active.iter().map(flow).collect();
        let is_idle = flows.is_empty();
        if is_idle {
            flows.extend(view.lines.iter().map(|line| Flow {
                direction: line.direction,
                host: 0,
                dscp: 0,
                keeps: None,
                rtt_us: None,
            }));
        }
        Load { flows, is_idle, left_out }
    }

    fn in_words(&self) -> String {
        let count = |way, greedy: bool| {
            let of = |flow: &&Flow| flow.direction == way && flow.keeps.is_none() == greedy;
            self.flows.iter().filter(of).count()
        };
        let named = [
            (count(Direction::Download, true), "greedy download"),
            (count(Direction::Upload, true), "greedy upload"),
            (count(Direction::Download, false) + count(Direction::Upload, false), "other flow"),
        ];
        let named = named.into_iter().filter(|(count, _)| *count > 0);
        let several = |(count, what): (usize, &str)| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let mut words = named.map(several).collect::<Vec<_>>().join(", ");
        if self.is_idle {
            words.push_str(" (nothing is on the line now)");
        }
        if self.left_out > 0 {
            let _ = write!(words, " ({} small ones left out)", self.left_out);
        }
        words
    }

    /// The text, with `qdiscs` and `limits` up and down.
    fn scenario(&self, qdiscs: [&str; 2], limits: [Option<u64>; 2], lasts_ms: u64) -> String {
        let limit =
            |limit: Option<u64>| limit.map_or("unlimited".into(), |bps| format!("{bps}bit"));
        let [up, down] = limits.map(limit);
        let mut text = format!(
            "duration = \"{lasts_ms}ms\"\nwarmup = \"{}ms\"\nqdisc = {{ up = {:?}, down = {:?} }}\n\
             \n[line]\nup = \"{up}\"\ndown = \"{down}\"\nrtt = \"50ms\"\n",
            lasts_ms / 4,
            qdiscs[0],
            qdiscs[1]
        );
        let hosts = self.flows.iter().map(|flow| flow.host).max().unwrap_or(0);
        for host in 0..=hosts {
            let _ = write!(text, "\n[[host]]\nname = \"home{host}\"\nside = \"home\"\n");
        }
        text += "\n[[host]]\nname = \"far\"\nside = \"internet\"\n";
        for (number, flow) in self.flows.iter().enumerate() {
            let Some(rtt) = flow.rtt_us else { continue };
            let _ = write!(
                text,
                "\n[[host]]\nname = \"far{number}\"\nside = \"internet\"\nrtt = \"{rtt}us\"\n"
            );
        }
        for (number, flow) in self.flows.iter().enumerate() {
            let way = if flow.direction == Direction::Upload { "up" } else { "down" };
            let far = flow.rtt_us.map_or(String::new(), |_| number.to_string());
            let _ = write!(
                text,
                "\n[[traffic]]\nname = \"flow {number}\"\nhome = \"home{}\"\n\
                 internet = \"far{far}\"\ndirection = \"{way}\"\ndscp = \"{}\"\n\
                 stagger = \"100ms\"\n",
                flow.host, flow.dscp
            );
            text += &match flow.keeps {
                Some((rate, size)) => {
                    format!("kind = \"cbr\"\nrate = \"{rate}bit\"\nsize = {size}\n")
                }
                None => "kind = \"bulk\"\n".into(),
            };
        }
        let ends = "home = \"home0\"\ninternet = \"far\"";
        let probe = format!("name = \"{PROBE}\"\nkind = \"ping\"\n{ends}");
        text + &format!("\n[[traffic]]\n{probe}\ninterval = \"20ms\"\n")
    }
}

/// Bytes of a flow's packets, link header included.
fn mean(flow: &FlowView) -> u64 {
    flow.entry.bytes.checked_div(flow.entry.packets).unwrap_or(0)
}

/// Payload of its datagrams, as the simulator sends them.
fn length(flow: &FlowView) -> u64 {
    mean(flow).saturating_sub(42).clamp(32, 1472)
}

/// True if a flow is simulated: acknowledgements come of themselves.
fn counts(flow: &FlowView) -> bool {
    let acks = flow.entry.protocol == TCP && mean(flow) <= ACK;
    flow.is_active() && !acks && (flow.rate_bps > 0 || mean(flow) > 0)
}

/// True if a flow takes what it gets.
fn is_greedy(flow: &FlowView, lines: &[LineView]) -> bool {
    let entry = &flow.entry;
    let yields = entry.protocol == TCP
        || entry.protocol == UDP && (entry.sport == QUIC || entry.dport == QUIC);
    let line = lines.iter().find(|line| line.direction == entry.direction);
    let is_full = line.is_some_and(|line| {
        let limit = line.limit_bps.unwrap_or(u64::MAX);
        line.rate_bps >= limit / 100 * FULL || line.new_drops + line.new_marks.unwrap_or(0) > 0
    });
    let suffers = match entry.held {
        Some(held) => held.drops + held.marks + u64::from(held.backlog_packets) > 0,
        None => line.and_then(|line| line.limit_bps).is_some_and(|all| flow.rate_bps >= all / PART),
    };
    yields && is_full && suffers
}

#[cfg(test)]
mod tests;
