//! Controlling Queue Delay (Nichols, Jacobson, ACM Queue 2012): C1 to C7.
//!
//! The paper's simulations: all data flows one way over one bottleneck. There are file transfers
//! (CUBIC, SACK), PackMime web traffic (New Reno) at a rate of connections, and a 64 kbit/s stream
//! of 100-byte packets. CoDel has its constants and a buffer of eight bandwidth-delay products, and
//! drops rather than marks. RED is as ns-2 configures itself from the link's rate and delay. Tail
//! drop has a buffer of one product. Grids of loads are runs of one arm: a measure has a value for
//! each of them.

use std::fmt::Display;

use simnel_core::qdisc::{Detail, DropReason};
use simnel_core::{Rate, Span, Time};
use simnel_scenario::file::{Change, File, Line, Traffic};
use simnel_scenario::summary::{self, jain, Times};
use simnel_sim::Direction::{self, Down, Up};
use simnel_sim::{FlowResult, Kind, Run};
use simnel_tcp::CongestionControl::{self, Cubic, Reno};
use simnel_tcp::EcnMode;

use super::measure::{greatest, of, quantities, within, Measures, Sample, View};
use super::plots::{boxes, curves, dots};
use super::{contenders, kbit, mbit, ms, secs, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure};

quantities! {
    /// Quantities of this paper.
    Quantity {
        Delay = "delay", Utilisation = "utilisation", Jain = "jain", Median = "median", P75 = "p75",
        P95 = "p95", PacketsMedian = "packets median", Longest = "max",
        Before(fall: u32) = "before {fall}", After(fall: u32) = "after {fall}",
        Megabytes = "megabytes", ControlTime(fall: u32) = "time {fall}",
        WayDrops(way: Direction) = "{way} drops", WayDelay(way: Direction) = "{way} delay",
        WayMegabytes(way: Direction) = "{way} megabytes",
        WayFairness(way: Direction) = "{way} fairness",
    }
}

experiments! {
    Paper::QueueDelay;
    "C1": "Static links, 3 to 100 Mbit/s", "Do the same constants work at every rate?";
        "3, 10, 45 and 100 Mbit/s; RTT 10 to 500 ms; 1 to 50 transfers, 0 to 80 web connections a \
        second, with and without a 64 kbit/s stream; 60 s, the first ten left out.",
        1; || grid(&FAST, &LONG_RTTS, &LOADS, &[1500]), grid_measure,
        |measures| grid_figures("C1", &FAST, measures);
    "C2": "Slow links, 128 kbit/s to 1.5 Mbit/s",
        "And where one packet takes longer than the target?";
        "128, 256, 512 kbit/s and 1.5 Mbit/s; RTT 30 to 100 ms; MTU 1500 and 500 bytes.",
        1; || grid(&SLOW, &SHORT_RTTS, &SLOW_LOADS, &[1500, 500]), grid_measure,
        |measures| grid_figures("C2", &SLOW, measures);
    "C3": "A link whose rate changes", "What happens when the rate falls by a factor of ten?";
        "4 transfers and 5 web connections a second; 100, 10, 1, 50, 1, 100 Mbit/s, 50 s each; \
        buffers of 830 and of 10 packets.",
        10; dynamic_arms, dynamic_measure, dynamic_figures;
    "C4": "Round-trip times from 10 to 500 ms", "Does one interval serve all paths?";
        "The loads of C1 at 10 and 45 Mbit/s, by RTT.",
        1; rtt_arms, grid_measure, rtt_figures;
    "C5": "Who loses packets", "Do flows lose in proportion to what they send?";
        "The loads of C1 with several transfers, by RTT: Jain's index over the transfers of the \
        share of a flow's packets that was dropped.",
        1; rtt_arms, grid_measure, jain_figures;
    "C6": "The consumer's edge", "What does CoDel do to a home line?";
        "512 kbit/s and 1.5 Mbit/s, symmetric: a 64 kbit/s stream each way, one download without \
        end, two web connections a second, uploads of 1 MB with pauses of 5 to 15 s; 300 s.",
        10; edge_arms, edge_measure, edge_figures;
    "C7": "Several thousand runs", "The same constants, everywhere?";
        "64 kbit/s to 100 Mbit/s; RTT 5 ms to 1 s; 0 to 50 transfers; 0 to 80 web connections a \
        second; with and without a 64 kbit/s stream; New Reno and CUBIC: 4104 runs of CoDel.",
        1; sweep_arms, grid_measure, sweep_figures;
}

/// Rates in kbit/s.
pub(super) const FAST: [u32; 4] = [3_000, 10_000, 45_000, 100_000];
pub(super) const SLOW: [u32; 4] = [128, 256, 512, 1_500];
/// Round-trip times in ms.
pub(super) const LONG_RTTS: [u32; 6] = [10, 30, 50, 100, 200, 500];
const SHORT_RTTS: [u32; 3] = [30, 50, 100];
pub(super) const AQMS: [&str; 3] = ["codel", "red", "tail"];

/// Transfers, web connections a second, whether there is a 64 kbit/s stream.
type Load = (u32, u32, bool);
const LOADS: [Load; 8] = [
    (1, 0, false),
    (5, 0, false),
    (20, 0, false),
    (50, 0, false),
    (5, 10, true),
    (20, 40, false),
    (0, 80, false),
    (50, 80, true),
];
const SLOW_LOADS: [Load; 5] =
    [(1, 0, false), (4, 0, false), (4, 0, true), (4, 1, false), (10, 0, false)];

/// One point of a grid.
#[derive(Clone, Copy)]
struct Point {
    aqm: &'static str,
    kbit: u32,
    rtt: u32,
    load: Load,
    mtu: u16,
    cc: CongestionControl,
    seconds: u64,
}

impl Point {
    /// Packets of one bandwidth-delay product, at least ten.
    fn product(&self) -> u32 {
        let bytes = u64::from(self.kbit) * u64::from(self.rtt) / 8;
        (bytes / u64::from(self.mtu)).clamp(10, 100_000) as u32
    }

    fn words(&self) -> String {
        let limit = match self.aqm {
            "tail" => self.product(),
            _ => self.product() * 8,
        };
        words(self.aqm, limit, &format!("{}kbit", self.kbit), self.rtt, self.mtu)
    }

    fn file(&self) -> File {
        let Point { mtu, cc, .. } = *self;
        let (transfers, connections, stream) = self.load;
        let line = Line::new(mbit(1_000), kbit(self.kbit.into()), ms(self.rtt.into()));
        let mut file = File::new(secs(self.seconds), line).warmup(secs(10));
        file = file.qdiscs("pfifo limit 10000", &self.words());
        if transfers > 0 {
            file = file.traffic(ftp(transfers).cc(cc).mtu(mtu));
        }
        if connections > 0 {
            file = file.traffic(web(connections).mtu(mtu));
        }
        match stream {
            true => file.traffic(voice().direction(Down)),
            false => file,
        }
    }
}

/// The words of a discipline with a limit in packets, for RED on a line of `rate` and `rtt`.
fn words(aqm: &str, limit: u32, rate: &str, rtt: u32, mtu: u16) -> String {
    match aqm {
        "codel" => format!("codel limit {limit} noecn"),
        "red" => format!("red ns bandwidth {rate} delay {rtt}ms avpkt {mtu} limit {limit}"),
        "tail" => format!("pfifo limit {limit}"),
        newcomer => contenders::words(newcomer).unwrap_or_default().into(),
    }
}

/// File transfers.
fn ftp(count: u32) -> Traffic {
    Traffic::bulk().name("ftp").count(count).stagger(secs(1)).ecn(EcnMode::Off)
}

/// So many web connections a second.
fn web(connections: u32) -> Traffic {
    Traffic::web().per_second(connections.into()).cc(Reno).ecn(EcnMode::Off)
}

/// The stream of 100-byte packets, of which 72 are payload, that comes to 64 kbit/s with headers.
/// The paper has it "configured at 64 Kbps in 100-byte packets", where ns-2 counts whole packets.
fn voice() -> Traffic {
    Traffic::cbr().rate(Rate::from_bits(64_000 * 72 / 100)).size(72)
}

/// The name of a rate.
pub(super) fn rate_name(kbit: u32) -> String {
    match kbit {
        0..=999 => format!("{kbit}k"),
        _ => format!("{}M", f64::from(kbit) / 1000.0),
    }
}

/// Kinds of load.
pub(super) const KINDS: [&str; 2] = ["transfers", "mixed"];

/// The name of an arm of a grid.
pub(super) fn on_grid(aqm: &str, rate: &str, mtu: u16, kind: &str) -> String {
    format!("{aqm} {rate} {mtu} {kind}")
}

/// All points, named by discipline, rate, packet size and kind of load.
fn grid(rates: &[u32], rtts: &[u32], loads: &[Load], mtus: &[u16]) -> Vec<Arm> {
    let mut arms = Vec::new();
    for aqm in contenders::names(&AQMS) {
        for &kbit in rates {
            for &mtu in mtus {
                for &rtt in rtts {
                    for &load in loads {
                        let kind = KINDS[usize::from(load.1 > 0 || load.2)];
                        let point = Point { aqm, kbit, rtt, load, mtu, cc: Cubic, seconds: 60 };
                        let name = on_grid(aqm, &rate_name(kbit), mtu, kind);
                        arms.push(Arm::scenario(name, point.file()));
                    }
                }
            }
        }
    }
    arms
}

/// Median delay, utilisation, and how evenly drops are shared.
fn grid_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let times = Times::of(&view.sojourn(Down));
    sample.value(Quantity::Delay, times.map(|times| times.p50));
    sample.value(Quantity::P95, times.map(|times| times.p95));
    sample.value(Quantity::Utilisation, view.utilisation(Down));
    // Of the transfers: what share of its packets each lost.
    let share = |flow: &&FlowResult| {
        let dropped: u64 = flow.fates[Down as usize].dropped.iter().sum();
        dropped as f64 / flow.tcp.data_segments.max(1) as f64
    };
    let shares: Vec<f64> = view.bulk(Down).iter().map(share).collect();
    sample.value(Quantity::Jain, jain(&shares));
    sample
}

/// Boxes of delay and utilisation over all runs of the arms that `names` gives for a category and a
/// series.
fn two_boxes<C: Display>(
    (id, x): (&str, &str),
    measures: &Measures,
    categories: &[C],
    series: &[&str],
    names: &dyn Fn(&C, &str) -> Vec<String>,
) -> Vec<Figure> {
    let figure = |(what, title, y): (Quantity, &str, Axis)| {
        let names = |category: &C, one: &str| {
            names(category, one).into_iter().map(|arm| of(arm, what)).collect()
        };
        let plot = boxes(measures, categories, series, &names);
        Figure::new((&format!("{id}-{what}"), title), (Axis::linear(x), y), plot)
    };
    [
        (Quantity::Delay, "Median queueing delay", Axis::log("ms")),
        (Quantity::Utilisation, "Utilisation", Axis::linear("share of the rate")),
    ]
    .map(figure)
    .into()
}

fn grid_figures(id: &str, rates: &[u32], measures: &Measures) -> Vec<Figure> {
    let rates: Vec<String> = rates.iter().map(|kbit| rate_name(*kbit)).collect();
    let names = |rate: &String, aqm: &str| {
        let of = |mtu| KINDS.map(|kind| on_grid(aqm, rate, mtu, kind));
        [of(1500), of(500)].concat()
    };
    two_boxes((id, ""), measures, &rates, &contenders::names(&AQMS), &names)
}

/// The schedule of C3: when, and Mbit/s from then on.
const SCHEDULE: [(u64, u64); 6] = [(0, 100), (50, 10), (100, 1), (150, 50), (200, 1), (250, 100)];
pub(super) const BUFFERS: [u32; 2] = [830, 10];

/// Times at which the rate falls, in seconds.
pub(super) const FALLS: [u32; 3] = [50, 100, 200];

fn dynamic(words: &str) -> File {
    let mut line = Line::new(mbit(1_000), mbit(100), ms(100));
    for (at, rate) in &SCHEDULE[1..] {
        line = line.change(Change::new(secs(*at)).down(mbit(*rate)));
    }
    File::new(secs(300), line)
        .interval(ms(100))
        .qdiscs("pfifo limit 10000", words)
        .traffic(ftp(4))
        .traffic(web(5))
        .traffic(Traffic::ping().name("probe").direction(Down).interval(ms(20)).size(8))
}

fn dynamic_words(aqm: &str, buffer: u32) -> String {
    words(aqm, buffer, "100mbit", 100, 1500)
}

fn dynamic_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for buffer in BUFFERS {
        for aqm in contenders::names(&AQMS) {
            let file = dynamic(&dynamic_words(aqm, buffer));
            arms.push(Arm::scenario(format!("{aqm} {buffer}"), file));
        }
    }
    arms.push(Arm::direct("control", FALLS.map(Quantity::ControlTime), control_points));
    arms
}

/// Time that CoDel takes to a new control point after the rate has fallen. It begins when the delay
/// passes the target for good, and ends at the first drop. Looked at every millisecond.
fn control_points(seed: u64) -> Sample {
    const TARGET: Span = Span::from_millis(5);
    const STEP: Span = Span::from_millis(1);
    let mut sample = Sample::default();
    let file = dynamic(&dynamic_words("codel", BUFFERS[0]));
    let (setup, _) = super::set_up("C3 control", &file);
    let mut run = Run::new(&setup, seed).expect("a set-up that was checked");
    for fall in FALLS {
        run.advance(Time::ZERO + Span::from_secs(u64::from(fall)));
        let drops = run.snapshot(Down).totals.drops();
        let mut above = run.now();
        let end = run.now() + Span::from_secs(10);
        while run.now() < end {
            run.advance(run.now() + STEP);
            let snapshot = run.snapshot(Down);
            if snapshot.totals.drops() > drops {
                let time = run.now().since(above);
                sample.value(Quantity::ControlTime(fall), time.0 as f64 / 1e6);
                break;
            }
            let Detail::Codel(codel) = snapshot.detail else { break };
            if codel.last_delay < TARGET {
                above = run.now();
            }
        }
    }
    sample
}

/// Delay over time as a small probe sees it, every 20 ms. Quantiles are shares of time, as the
/// paper gives them. Peaks are those of the five seconds before and after each fall of the rate.
/// The payload moved is measured, too.
fn dynamic_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let delay = view.delay("probe");
    let probe = view.sojourn_of("probe", Down);
    let at = |per_mille| probe.quantile(per_mille).map_or(0.0, summary::millis);
    sample.value(Quantity::Median, at(500));
    sample.value(Quantity::P75, at(750));
    sample.value(Quantity::P95, at(950));
    let all = Times::of(&view.sojourn(Down));
    sample.value(Quantity::PacketsMedian, all.map(|times| times.p50));
    sample.value(Quantity::Longest, all.map(|times| times.max));
    for fall in FALLS {
        let at = f64::from(fall);
        sample.value(Quantity::Before(fall), greatest(&within(&delay, at - 5.0, at)));
        sample.value(Quantity::After(fall), greatest(&within(&delay, at, at + 5.0)));
    }
    let bytes: u64 = view.results().flows.iter().map(|flow| flow.goodput_bytes()).sum();
    sample.value(Quantity::Megabytes, bytes as f64 * 1e-6);
    let mut sum = 0.0;
    let all: Vec<_> = view.results().flows.iter().collect();
    let step = view.interval_s();
    let carried = view.throughput(&all).into_iter().map(|[at, mbps]| {
        sum += mbps * step / 8.0;
        [at, sum]
    });
    sample.curve(Quantity::Megabytes, carried.collect());
    sample.curve(Quantity::Delay, delay);
    sample
}

fn dynamic_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |buffer: u32, what: Quantity, title: &str, y: Axis| {
        let name = |aqm: &str| (of(format!("{aqm} {buffer}"), what), aqm.to_string());
        let names: Vec<_> = contenders::names(&AQMS).into_iter().map(name).collect();
        let title = format!("{title}, buffer of {buffer} packets");
        let axes = (Axis::linear("time (s)"), y);
        curves((&format!("C3-{what}-{buffer}"), &title), axes, measures, &names)
    };
    let of = |buffer| {
        [
            figure(buffer, Quantity::Delay, "Delay of a probe", Axis::log("ms")),
            figure(buffer, Quantity::Megabytes, "Payload carried", Axis::linear("MB")),
        ]
    };
    BUFFERS.map(of).concat()
}

/// The name of an arm by round-trip time.
pub(super) fn by_rtt(aqm: &str, rtt: u32) -> String {
    format!("{aqm} {rtt} ms")
}

/// The loads of C1 at two rates.
fn rtt_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for aqm in contenders::names(&AQMS) {
        for rtt in LONG_RTTS {
            for kbit in [10_000, 45_000] {
                for load in LOADS {
                    let point = Point { aqm, kbit, rtt, load, mtu: 1500, cc: Cubic, seconds: 60 };
                    arms.push(Arm::scenario(by_rtt(aqm, rtt), point.file()));
                }
            }
        }
    }
    arms
}

fn rtt_figures(measures: &Measures) -> Vec<Figure> {
    let names = |rtt: &String, aqm: &str| vec![format!("{aqm} {rtt}")];
    two_boxes(("C4", "RTT"), measures, &rtts(), &contenders::names(&AQMS), &names)
}

fn rtts() -> [String; 6] {
    LONG_RTTS.map(|rtt| format!("{rtt} ms"))
}

fn jain_figures(measures: &Measures) -> Vec<Figure> {
    let names = |rtt: &String, aqm: &str| vec![of(format!("{aqm} {rtt}"), Quantity::Jain)];
    let plot = boxes(measures, &rtts(), &contenders::names(&["codel", "red"]), &names);
    let axes = (Axis::linear("RTT"), Axis::linear("Jain's index of drop shares"));
    vec![Figure::new(("C5", "How evenly drops are shared"), axes, plot)]
}

/// The consumer's edge: RTT is not given; 100 ms, the paper's usual one.
fn edge_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for rate in [512, 1_500] {
        for aqm in contenders::names(&["codel", "tail"]) {
            let load = (1, 2, false);
            let point =
                Point { aqm, kbit: rate, rtt: 100, load, mtu: 1500, cc: Cubic, seconds: 300 };
            let line = Line::new(kbit(rate.into()), kbit(rate.into()), ms(100));
            let uploads = Traffic::bursts().name("upload").size(1_000_000).ecn(EcnMode::Off);
            let file = File::new(secs(300), line)
                .qdisc(&point.words())
                .traffic(voice().name("voice").both_ways())
                .traffic(Traffic::bulk().name("download").ecn(EcnMode::Off))
                .traffic(web(2))
                .traffic(uploads.pause(&[secs(5), secs(15)]));
            arms.push(Arm::scenario(format!("{aqm} {}", rate_name(rate)), file));
        }
    }
    arms
}

fn edge_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    for way in [Down, Up] {
        let (drops, all) = view.drops(way);
        sample.value(Quantity::WayDrops(way), drops as f64 / all.max(1) as f64 * 100.0);
        sample.value(Quantity::WayDelay(way), Times::of(&view.sojourn(way)).map(|times| times.p50));
        let n = way as usize;
        let line = &view.results().lines[n];
        sample.value(Quantity::WayMegabytes(way), line.bytes as f64 * 1e-6);
        // By source: share of its packets that was dropped.
        let traffic = &view.run.setup.traffic;
        let shares = (0..traffic.len()).filter_map(|group| {
            let flows = view.results().flows.iter().filter(|flow| flow.group as usize == group);
            let (mut dropped, mut sent) = (0, 0);
            for flow in flows {
                let lost = flow.fates[n].dropped.iter().enumerate();
                dropped += lost
                    .filter(|(reason, _)| *reason != DropReason::AckFilter as usize)
                    .map(|(_, count)| count)
                    .sum::<u64>();
                sent += match traffic[group].kind {
                    Kind::Datagrams { size, .. } => flow.delivered[n] / u64::from(size),
                    _ => flow.delivered[n] / 1448,
                };
            }
            (sent > 0).then(|| dropped as f64 / (sent + dropped) as f64)
        });
        sample.value(Quantity::WayFairness(way), jain(&shares.collect::<Vec<_>>()));
    }
    sample
}

fn edge_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |rate: &str| {
        let id =
            (&*format!("C6-{}", rate.replace('.', "-")), &*format!("Median delay, {rate}bit/s"));
        let aqms = contenders::names(&["codel", "tail"]);
        let measure =
            |way: &Direction, aqm: &&str| of(format!("{aqm} {rate}"), Quantity::WayDelay(*way));
        dots(id, Axis::linear("ms"), measures, &[Down, Up], &aqms, &measure)
    };
    ["512k", "1.5M"].map(figure).into()
}

/// The grid of C7.
pub(super) const ALL_RATES: [u32; 9] = [64, 128, 256, 512, 1_500, 3_000, 10_000, 45_000, 100_000];
const ALL_RTTS: [u32; 6] = [5, 30, 100, 200, 500, 1000];
const TRANSFERS: [u32; 5] = [0, 1, 5, 20, 50];
const WEB: [u32; 4] = [0, 10, 40, 80];
/// Sizes of loads, as arms call them.
const SIZES: [&str; 3] = ["", " many", " transfers"];

/// Two thousand loads and paths, twice, with New Reno and CUBIC. Where there is nothing to send
/// but the stream, there is no run.
fn sweep_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for kbit in ALL_RATES {
        for rtt in ALL_RTTS {
            for transfers in TRANSFERS {
                for web in WEB {
                    for stream in [false, true] {
                        for cc in [Reno, Cubic] {
                            if transfers + web == 0 {
                                continue;
                            }
                            let load = (transfers, web, stream);
                            let (aqm, mtu, seconds) = ("codel", 1500, 30);
                            let point = Point { aqm, kbit, rtt, load, mtu, cc, seconds };
                            let size = match (transfers, web, stream) {
                                (1.., 0, false) if rtt <= 200 => SIZES[2],
                                (5.., ..) if rtt <= 200 => SIZES[1],
                                _ => SIZES[0],
                            };
                            let name = format!("{} {}{size}", cc.name(), rate_name(kbit));
                            arms.push(Arm::scenario(name, point.file()));
                        }
                    }
                }
            }
        }
    }
    arms
}

fn sweep_figures(measures: &Measures) -> Vec<Figure> {
    let rates = ALL_RATES.map(rate_name);
    let names = |rate: &String, cc: &str| SIZES.map(|size| format!("{cc} {rate}{size}")).into();
    two_boxes(("C7", ""), measures, &rates, &["reno", "cubic"], &names)
}
