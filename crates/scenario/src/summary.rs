//! Results of runs in the field's units: Mbit/s, milliseconds, MOS.

use serde::Serialize;
use simnel_core::qdisc::DropReason;
use simnel_core::{Span, Time};
use simnel_sim::{Direction, Distribution, Kind, Moment, Outcome, Results, Setup, Traffic};

use crate::Scenario;

/// A run that is done, or was stopped.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The disciplines' words, up and down.
    pub qdisc: [String; 2],
    /// The set-up.
    pub setup: Setup,
    /// The simulator's results.
    pub results: Results,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// The disciplines' words.
    pub qdisc_up: String,
    /// See `qdisc_up`.
    pub qdisc_down: String,
    /// The seed.
    pub seed: u64,
    /// False if it was stopped early.
    pub complete: bool,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// The measured window in seconds.
    pub window_s: [f64; 2],
    /// The lines.
    pub lines: Vec<LineSummary>,
    /// The traffic.
    pub groups: Vec<GroupSummary>,
    /// Packets through both disciplines.
    pub bottleneck_packets: u64,
    /// Events.
    pub events: u64,
    /// Hash of the whole trace.
    pub hash: String,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Number of times measured.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 of 100 are not above.
    pub p95: f64,
    /// 99 of 100 are not above.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct LineSummary {
    /// `up` or `down`.
    pub direction: &'static str,
    /// Ethernet frames that passed, Mbit/s.
    pub mbps: f64,
    /// Share of the line's rate that was used, framing included; none if it has no rate.
    pub utilisation: Option<f64>,
    /// Time in the discipline.
    pub sojourn_ms: Option<Times>,
    /// Its cumulative distribution.
    pub sojourn_cdf: Cdf,
    /// Longest queue in packets.
    pub longest_queue: u32,
    /// Packets dropped, filtered acknowledgements aside.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Filtered acknowledgements.
    pub ack_drops: u64,
}

/// Flows of one name.
#[derive(Clone, Debug, Serialize)]
pub struct GroupSummary {
    /// The traffic's name.
    pub name: String,
    /// The way of its payload.
    pub direction: &'static str,
    /// Number of flows.
    pub flows: usize,
    /// Payload delivered, Mbit/s, all flows together.
    pub goodput_mbps: f64,
    /// Payload delivered by each flow, Mbit/s.
    pub flow_mbps: Vec<f64>,
    /// Jain's index of `flow_mbps`; none below two flows.
    pub jain: Option<f64>,
    /// Payload of all flows, Mbit/s, interval by interval from the start of the run.
    pub series_mbps: Vec<f64>,
    /// The senders' windows, flow by flow; empty unless the scenario asks for `windows`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Windows>,
    /// Time in the discipline of its direction.
    pub sojourn_ms: Option<Times>,
    /// Its cumulative distribution.
    pub sojourn_cdf: Cdf,
    /// The flows one by one, in the order of `flow_mbps`.
    pub each: Vec<FlowSummary>,
    /// Packets dropped by disciplines, both ways, by reason.
    pub drops: Vec<(&'static str, u64)>,
    /// Packets marked, both ways.
    pub marks: u64,
    /// Packets lost on the line, both ways.
    pub lost: u64,
    /// TCP segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// The applications' view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<Application>,
}

/// A cumulative distribution: points (milliseconds, share that is not above), both ascending; at
/// most `CDF_POINTS` of them, and the last one.
pub type Cdf = Vec<(f64, f64)>;

/// Delays in milliseconds over time: the mean of what was sent in each interval from the start of
/// the run. None where nothing of it arrived.
pub type Series = Vec<Option<f64>>;

/// Points of a cumulative distribution: half a percent apart where values are that dense.
const CDF_POINTS: u64 = 200;

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowSummary {
    /// Payload delivered, Mbit/s.
    pub mbps: f64,
    /// The same interval by interval from the start of the run.
    pub series_mbps: Vec<f64>,
    /// Its packets dropped by disciplines, both ways, by reason: filtered acknowledgements too.
    pub drops: Vec<(&'static str, u64)>,
    /// Packets marked, both ways.
    pub marks: u64,
    /// Packets lost on the line, both ways.
    pub lost: u64,
    /// Seconds from its start to its last byte, for a transfer of limited size that is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_s: Option<f64>,
}

/// A sender's window over time, interval by interval from the start of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Windows {
    /// Congestion window in segments.
    pub cwnd: Vec<u32>,
    /// Smoothed round-trip time.
    pub srtt_ms: Vec<f64>,
}

/// Applications' view; of nothing there are no times.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Application {
    /// Transfers of limited size.
    Transfers {
        /// Complete ones.
        finished: u64,
        /// From start to the last byte.
        completion_ms: Option<Times>,
    },
    /// Round-trip probes.
    Ping {
        /// Requests.
        sent: u64,
        /// Answers.
        received: u64,
        /// Propagation.
        base_rtt_ms: f64,
        /// Beyond propagation.
        added_ms: Option<Times>,
        /// Its cumulative distribution.
        added_cdf: Cdf,
        /// Its means over time.
        added_series_ms: Series,
        /// The request's part.
        added_there_ms: Option<Times>,
        /// The answer's part.
        added_back_ms: Option<Times>,
    },
    /// Datagrams.
    Datagrams {
        /// Sent.
        sent: u64,
        /// Received.
        received: u64,
        /// Share that was dropped, or waits when the run ends for longer than a second and than
        /// 95 of 100 took.
        loss: f64,
        /// One-way delay beyond propagation.
        added_ms: Option<Times>,
        /// Its cumulative distribution.
        added_cdf: Cdf,
        /// Its means over time.
        added_series_ms: Series,
        /// Mean difference between neighbours' delays.
        jitter_ms: Option<f64>,
        /// Mean opinion score, for voice.
        mos: Option<f64>,
    },
    /// Pages.
    Web {
        /// Connections.
        connections: u64,
        /// Pages loaded.
        pages: u64,
        /// From the first request to the last byte.
        load_ms: Option<Times>,
    },
    /// Video, means over the flows.
    Dash {
        /// The rate of each chunk as chosen, Mbit/s, player by player.
        rates_mbps: Vec<Vec<f64>>,
        /// Mean rate of the chunks, Mbit/s.
        chosen_mbps: f64,
        /// Mean throughput while fetching, Mbit/s.
        achieved_mbps: f64,
        /// Stalls.
        stalls: f64,
        /// Seconds stalled.
        stalled_s: f64,
        /// Seconds to the first picture.
        startup_s: Option<f64>,
    },
    /// Messages.
    Messages {
        /// Written.
        sent: u64,
        /// Received.
        received: u64,
        /// From writing to receiving.
        latency_ms: Option<Times>,
    },
    /// Repeated transfers.
    Bursts {
        /// Complete ones.
        completed: u64,
        /// From the first byte to the last.
        completion_ms: Option<Times>,
    },
}

/// Nanoseconds as milliseconds.
pub fn millis(span: Span) -> f64 {
    span.0 as f64 / 1e6
}

/// Bytes of the `n`th interval as Mbit/s, over its own length.
pub fn interval_mbps(results: &Results, n: usize, bytes: u64) -> f64 {
    bytes as f64 * 8e-6 / (results.interval_at(n).0 as f64 / 1e9)
}

impl Application {
    /// Times of what its users wait for: a transfer, a page, a message, or what a packet takes
    /// beyond propagation. None for a film, and where nothing arrived.
    pub fn times(&self) -> Option<Times> {
        match self {
            Application::Transfers { completion_ms: times, .. }
            | Application::Bursts { completion_ms: times, .. }
            | Application::Ping { added_ms: times, .. }
            | Application::Datagrams { added_ms: times, .. }
            | Application::Web { load_ms: times, .. }
            | Application::Messages { latency_ms: times, .. } => *times,
            Application::Dash { .. } => None,
        }
    }
}

impl Times {
    /// The figures of a distribution; none if it is empty.
    pub fn of(distribution: &Distribution) -> Option<Times> {
        let n = distribution.count();
        Some(Times {
            n,
            mean: distribution.sum() as f64 / n as f64 / 1e6,
            p50: millis(distribution.quantile(500)?),
            p95: millis(distribution.quantile(950)?),
            p99: millis(distribution.quantile(990)?),
            max: millis(distribution.greatest()?),
        })
    }
}

/// The points of a distribution, about evenly spaced in what they count.
pub fn cdf(distribution: &Distribution) -> Cdf {
    let total = distribution.count();
    let step = total.div_ceil(CDF_POINTS).max(1);
    let mut points: Cdf = Vec::new();
    let mut next = 0;
    for (value, seen) in distribution.cumulative() {
        if seen >= next || seen == total {
            points.push((millis(value), seen as f64 / total as f64));
            next = seen + step;
        }
    }
    points
}

/// Means of what all flows sent, interval by interval.
fn added_series(flows: &[&simnel_sim::FlowResult]) -> Series {
    let mut all: Vec<Moment> = Vec::new();
    for moments in flows.iter().map(|flow| flow.outcome.over_time()) {
        all.resize(all.len().max(moments.len()), Moment::default());
        all.iter_mut().zip(moments).for_each(|(sum, moment)| sum.merge(moment));
    }
    all.iter().map(|moment| moment.mean().map(millis)).collect()
}

/// Counts by reason, those that are not zero.
fn by_reason(count: impl Fn(DropReason) -> u64) -> Vec<(&'static str, u64)> {
    let counts = DropReason::ALL.into_iter().map(|reason| (reason.name(), count(reason)));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Jain's fairness index: one if all are equal, 1/n if one has everything.
pub fn jain(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    let sum: f64 = values.iter().sum();
    jain_of_sums(values.len() as u64, sum, squares)
}

/// Jain's index of `count` values of which only the sum and the sum of the squares are known.
pub fn jain_of_sums(count: u64, sum: f64, squares: f64) -> Option<f64> {
    (count > 1 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

/// Mean opinion score of a call of which nothing arrives: the scale's end.
pub const NOTHING_HEARD: f64 = 1.0;

/// Mean opinion score of G.711 by the E-model (ITU-T G.107): `delay_ms` from mouth to ear, `loss`
/// as a share. Default values of the model for everything else; random loss with concealment
/// (G.113: Ie = 0, Bpl = 25.1).
pub fn mos(delay_ms: f64, loss: f64) -> f64 {
    // Delay impairment, the common approximation (Cole and Rosenbluth 2001).
    let above = (delay_ms - 177.3).max(0.0);
    let delay = 0.024 * delay_ms + 0.11 * above;
    let percent = loss * 100.0;
    let equipment = 95.0 * percent / (percent + 25.1);
    let r = (93.2 - delay - equipment).clamp(0.0, 100.0);
    let score = 1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6;
    score.clamp(1.0, 4.5)
}

impl Summary {
    /// The figures of a run.
    pub fn new(scenario: &Scenario, run: &Finished) -> Summary {
        let results = &run.results;
        let seconds = |time: simnel_core::Time| time.0 as f64 / 1e9;
        let window = [seconds(results.window.0), seconds(results.window.1)];
        let length = (window[1] - window[0]).max(1e-9);
        let rates = scenario.line_rates();
        let lines = results.lines.iter().enumerate().map(|(n, line)| {
            let mbps = line.bytes as f64 * 8e-6 / length;
            // A discipline that shapes itself has no line behind it: the scenario's rate counts.
            let capacity = match line.capacity_bytes {
                0 => rates[n] as f64 * length,
                bytes => bytes as f64,
            };
            let fates = || results.flows.iter().map(|flow| &flow.fates[n]);
            LineSummary {
                direction: line.direction.name(),
                mbps,
                utilisation: (capacity > 0.0).then(|| line.framed_bytes as f64 / capacity),
                sojourn_ms: Times::of(&line.all_sojourn()),
                sojourn_cdf: cdf(&line.all_sojourn()),
                longest_queue: line.longest_queue,
                drops: fates().map(|fates| fates.signals()).sum(),
                marks: fates().map(|fates| fates.marked).sum(),
                ack_drops: fates().map(|f| f.dropped[DropReason::AckFilter as usize]).sum(),
            }
        });
        let groups = (0..results.groups.len()).map(|group| group_summary(run, group, length));
        Summary {
            scenario: scenario.name.clone(),
            qdisc_up: run.qdisc[0].clone(),
            qdisc_down: run.qdisc[1].clone(),
            seed: results.seed,
            complete: results.complete,
            simulated_s: results.simulated.0 as f64 / 1e9,
            window_s: window,
            lines: lines.collect(),
            groups: groups.collect(),
            bottleneck_packets: results.bottleneck_packets,
            events: results.events,
            hash: format!("{:016x}", results.hash),
        }
    }
}

fn group_summary(run: &Finished, group: usize, length: f64) -> GroupSummary {
    let results = &run.results;
    let flows: Vec<_> = results.flows.iter().filter(|f| f.group as usize == group).collect();
    let direction = flows.first().map_or(Direction::Up, |flow| flow.direction);
    let flow_mbps: Vec<f64> =
        flows.iter().map(|flow| flow.goodput_bytes() as f64 * 8e-6 / length).collect();
    let mbps_at = |(n, bytes): (usize, &u64)| interval_mbps(results, n, *bytes);
    let points = flows.iter().map(|flow| flow.series.len()).max().unwrap_or(0);
    let series_mbps = (0..points).map(|n| {
        let bytes: u64 = flows.iter().filter_map(|flow| flow.series.get(n)).sum();
        mbps_at((n, &bytes))
    });
    let fates = || flows.iter().flat_map(|flow| &flow.fates);
    let drops =
        by_reason(|reason| fates().map(|fates| fates.dropped[reason as usize]).sum::<u64>());
    let each = flows.iter().zip(&flow_mbps).map(|(flow, mbps)| {
        let fates = || flow.fates.iter();
        FlowSummary {
            mbps: *mbps,
            series_mbps: flow.series.iter().enumerate().map(mbps_at).collect(),
            drops: by_reason(|reason| fates().map(|f| f.dropped[reason as usize]).sum()),
            marks: fates().map(|fates| fates.marked).sum(),
            lost: fates().map(|fates| fates.lost).sum(),
            completion_s: flow.finished.map(|at| at.since(flow.started).0 as f64 / 1e9),
        }
    });
    let sojourn = &results.lines[direction as usize].sojourn[group];
    GroupSummary {
        each: each.collect(),
        name: results.groups[group].clone(),
        direction: direction.name(),
        flows: flows.len(),
        goodput_mbps: flow_mbps.iter().sum(),
        jain: jain(&flow_mbps),
        flow_mbps,
        series_mbps: series_mbps.collect(),
        windows: flows
            .iter()
            .filter(|flow| !flow.windows.is_empty())
            .map(|flow| Windows {
                cwnd: flow.windows.iter().map(|sample| sample.cwnd).collect(),
                srtt_ms: flow.windows.iter().map(|sample| millis(sample.srtt)).collect(),
            })
            .collect(),
        sojourn_ms: Times::of(sojourn),
        sojourn_cdf: cdf(sojourn),
        drops,
        marks: fates().map(|fates| fates.marked).sum(),
        lost: fates().map(|fates| fates.lost).sum(),
        retransmits: flows.iter().map(|flow| flow.tcp.retransmits).sum(),
        timeouts: flows.iter().map(|flow| flow.tcp.timeouts).sum(),
        application: application(run, group, &flows),
    }
}

fn application(
    run: &Finished,
    group: usize,
    flows: &[&simnel_sim::FlowResult],
) -> Option<Application> {
    // Of all flows: a count that this kind of application has, and its times.
    macro_rules! sum {
        ($kind:ident { $field:ident }) => {
            flows
                .iter()
                .map(|flow| match &flow.outcome {
                    Outcome::$kind { $field, .. } => *$field,
                    _ => 0,
                })
                .sum()
        };
    }
    macro_rules! merged {
        ($kind:ident { $field:ident }) => {{
            let mut all = Distribution::default();
            for flow in flows {
                if let Outcome::$kind { $field, .. } = &flow.outcome {
                    all.merge($field);
                }
            }
            all
        }};
    }
    Some(match &flows.first()?.outcome {
        Outcome::Transfer => {
            let kind = &run.setup.traffic[group].kind;
            if !matches!(kind, Kind::Bulk { size: Some(_) }) {
                return None;
            }
            let mut completion = Distribution::default();
            for flow in flows {
                flow.finished.into_iter().for_each(|at| completion.record(at.since(flow.started)));
            }
            let finished = completion.count();
            Application::Transfers { finished, completion_ms: Times::of(&completion) }
        }
        Outcome::Ping { base_rtt, .. } => {
            let added = merged!(Ping { added_rtt });
            Application::Ping {
                sent: sum!(Ping { sent }),
                received: sum!(Ping { received }),
                base_rtt_ms: millis(*base_rtt),
                added_ms: Times::of(&added),
                added_cdf: cdf(&added),
                added_series_ms: added_series(flows),
                added_there_ms: Times::of(&merged!(Ping { added_there })),
                added_back_ms: Times::of(&merged!(Ping { added_back })),
            }
        }
        Outcome::Datagrams { .. } => datagrams(run, group, flows),
        Outcome::Web { .. } => Application::Web {
            connections: sum!(Web { connections }),
            pages: sum!(Web { pages }),
            load_ms: Times::of(&merged!(Web { load_time })),
        },
        Outcome::Dash(_) => dash(flows),
        Outcome::Messages { .. } => Application::Messages {
            sent: sum!(Messages { sent }),
            received: sum!(Messages { received }),
            latency_ms: Times::of(&merged!(Messages { latency })),
        },
        Outcome::Bursts { .. } => Application::Bursts {
            completed: sum!(Bursts { completed }),
            completion_ms: Times::of(&merged!(Bursts { completion })),
        },
    })
}

fn datagrams(run: &Finished, group: usize, flows: &[&simnel_sim::FlowResult]) -> Application {
    let (mut delays, mut variations) = (Distribution::default(), Distribution::default());
    let (mut total_sent, mut total_received, mut missing) = (0, 0, 0);
    for flow in flows {
        let fates = &flow.fates[flow.direction as usize];
        let dropped = fates.signals() + fates.lost;
        missing += dropped;
        if let Outcome::Datagrams { sent, received, added_delay, variation, .. } = &flow.outcome {
            delays.merge(added_delay);
            variations.merge(variation);
            total_sent += sent;
            total_received += received;
            let under_way = sent.saturating_sub(received + dropped);
            missing += under_way.saturating_sub(just_sent(run, flow, added_delay));
        }
    }
    let added_ms = Times::of(&delays);
    let jitter_ms = Times::of(&variations).map(|times| times.mean);
    // What was sent before the window may be lost within it.
    let loss = missing.min(total_sent) as f64 / (total_sent as f64).max(1.0);
    let traffic = &run.setup.traffic[group];
    let mos = match traffic.kind {
        Kind::Datagrams { size: 172, interval, .. } => {
            // Mouth to ear: a packet of speech, the network, and a play-out buffer that takes up
            // what 95 of 100 packets need beyond the median.
            let propagation = millis(propagation(run, traffic, 0));
            let delay = |times: Times| {
                millis(interval) + propagation + times.p50 + (times.p95 - times.p50).max(0.0)
            };
            match added_ms {
                Some(times) => Some(mos(delay(times), loss)),
                // A call that lost everything is as bad as one can be; the model is about speech.
                None => (loss > 0.0).then_some(NOTHING_HEARD),
            }
        }
        _ => None,
    };
    let (sent, received) = (total_sent, total_received);
    let (added_cdf, added_series_ms) = (cdf(&delays), added_series(flows));
    Application::Datagrams {
        sent,
        received,
        loss,
        added_ms,
        added_cdf,
        added_series_ms,
        jitter_ms,
        mos,
    }
}

/// Datagrams of a flow that may still come when the run ends. They were sent within its last
/// second. If 95 of 100 needed longer, for which a play-out buffer waits, that time counts instead.
fn just_sent(run: &Finished, flow: &simnel_sim::FlowResult, added: &Distribution) -> u64 {
    let traffic = &run.setup.traffic[flow.group as usize];
    let Kind::Datagrams { interval, .. } = traffic.kind else { return 0 };
    let needed = propagation(run, traffic, flow.index) + added.quantile(950).unwrap_or_default();
    let end = Time::ZERO + run.results.simulated;
    let stop = traffic.stop.map_or(end, |stop| end.min(Time::ZERO + stop));
    let since = flow.started.max(Time(end.0.saturating_sub(needed.max(Span::from_secs(1)).0)));
    stop.since(since).0.div_ceil(interval.0)
}

/// The way of a flow's payload from host to host, without queues.
fn propagation(run: &Finished, traffic: &Traffic, index: u32) -> Span {
    let pair = traffic.pairs.get(index as usize % traffic.pairs.len().max(1));
    let Some((home, internet)) = pair else { return Span::ZERO };
    let (home, internet) = (&run.setup.hosts[*home], &run.setup.hosts[*internet]);
    match traffic.direction {
        Direction::Up => home.egress.delay + internet.ingress.delay,
        Direction::Down => internet.egress.delay + home.ingress.delay,
    }
}

fn dash(flows: &[&simnel_sim::FlowResult]) -> Application {
    let (mut chunks, mut rates_mbps) = (Vec::new(), Vec::new());
    let (mut stalls, mut stalled, mut startups) = (0.0, 0.0, Vec::new());
    for flow in flows {
        if let Outcome::Dash(playback) = &flow.outcome {
            chunks.extend(playback.chunks.iter().copied());
            let rates = playback.chunks.iter().map(|chunk| chunk.rate as f64 / 1e6);
            rates_mbps.push(rates.collect());
            stalls += playback.stalls as f64;
            stalled += playback.stalled.0 as f64 / 1e9;
            startups.extend(playback.startup.map(|span| span.0 as f64 / 1e9));
        }
    }
    let (n, players) = ((chunks.len() as f64).max(1.0), flows.len() as f64);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    // From a plain zero, since an empty sum is -0.0.
    let mean_mbps = |bits: &mut dyn Iterator<Item = u64>| {
        bits.fold(0.0, |sum, bits| sum + bits as f64) / n / 1e6
    };
    Application::Dash {
        rates_mbps,
        chosen_mbps: mean_mbps(&mut chunks.iter().map(|chunk| chunk.rate)),
        achieved_mbps: mean_mbps(&mut chunks.iter().map(|chunk| chunk.throughput)),
        stalls: stalls / players,
        stalled_s: stalled / players,
        startup_s: (!startups.is_empty()).then(|| mean(&startups)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_s_index_has_its_known_values() {
        assert_eq!(jain(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[1.0]), jain(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn the_e_model_has_its_known_values() {
        // No impairment but the model's own: R = 93.2, MOS 4.41 (G.107, table B.1).
        assert!((mos(0.0, 0.0) - 4.41).abs() < 0.01);
        // 150 ms is still good, 400 ms is not, and neither is a loss of a tenth.
        assert!(mos(150.0, 0.0) > 4.3 && mos(400.0, 0.0) < 3.3 && mos(50.0, 0.1) < 3.6);
        assert_eq!(mos(10_000.0, 1.0), 1.0);
    }
}
