//! Piece of CAKE (Høiland-Jørgensen, Täht, Morton, LANMAN 2018): A1 to A7.
//!
//! Section IV: 10/10 Mbit/s, 50 ms base RTT, no ECN. Tests last 140 s, of which 30 s on count, as
//! in the paper's published data. What is not cake stands behind a token bucket of 15140 bytes, the
//! setting of the authors' testbed.

use simnel_core::{Rate, Span};
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_sim::Direction::{self, Down, Up};
use simnel_tcp::EcnMode;

use super::direct;
use super::measure::{greatest, mean, of, quantities, within, Measures, Sample, View};
use super::plots::{arms_dots, cdf, curves, dots};
use super::{contenders, mbit, ms, secs, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure, Plot};
use crate::statistics::quantile;

quantities! {
    /// Quantities of rrul, by class and by probe.
    Rrul {
        Goodput(way: Direction, class: &'static str) = "{way} {class}",
        Sum(way: Direction) = "{way} sum", Total = "total",
        Ping(probe: &'static str) = "ping {probe}", MeanPing = "ping",
        Peak(probe: &'static str) = "peak {probe}", GreatestPeak = "peak",
    }
}

quantities! {
    /// Quantities of this paper's other experiments.
    Quantity {
        Goodput(flow: u32) = "goodput {flow}", Share(flow: u32) = "share {flow}", Total = "total",
        Spike = "spike", SteadyMean = "steady mean", SteadyLow = "steady low",
        SteadyHigh = "steady high", P99 = "p99", Loss = "loss", Delay = "delay",
        Carried(way: Direction) = "{way}", Latency = "latency",
    }
}

experiments! {
    Paper::PieceOfCake;
    "A1": "Hash collisions: 8-way set-associative against plain",
        "How likely does a new flow share a queue with one of n others?";
        "1024 queues. Flows arrive one after the other and all stay active; the real tables of \
        cake and of fq_codel tell whether the newcomer found a queue of its own.",
        10; a1_arms, |_| Sample::default(), a1_figures;
    "A2": "Baseline: cake and fq_codel under rrul",
        "Does cake cost latency or throughput against fq_codel, which it comes from?";
        "rrul: four TCP flows each way (CS0, CS1, CS5, EF), UDP probes in EF, CS1 and CS0, an ICMP \
        ping; 10/10 and 10/1 Mbit/s (down/up), 50 ms.",
        10; a2_arms, rrul_measure, a2_figures;
    "A3": "Host isolation: six flows between two and four hosts",
        "Who gets how much when hosts open different numbers of flows?";
        "Six uploads over 10 Mbit/s, 50 ms: A to A', A to B', A to C' twice, B to C', B to D'. Two \
        hosts at home, four on the Internet. A host's load is the number of its active flows, as \
        in the paper's algorithm 2; beside it the rule of today's Linux, which counts those with a \
        standing queue.",
        10; a3_arms, a3_measure, a3_figures;
    "A4": "DiffServ: four classes under rrul", "What do four markings get, with and without tiers?";
        "rrul at 10/10 Mbit/s, 50 ms; cake besteffort against diffserv4.",
        10; a4_arms, rrul_measure, a4_figures;
    "A5": "A 2 Mbit/s call against 32 bulk flows",
        "Does a marked constant-rate flow stay fast when 32 transfers begin?";
        "10 Mbit/s up, 50 ms; a 2 Mbit/s EF stream of 1250-byte datagrams from the start, 32 \
        uploads from 5 s on; 60 s.",
        10; a5_arms, a5_measure, a5_figures;
    "A6": "ACK filtering on an asymmetric line",
        "What does dropping redundant acknowledgements bring where the line is thin up?";
        "30/1 Mbit/s (down/up), 50 ms; four downloads, four uploads, a UDP probe.",
        10; a6_arms, a6_measure, a6_figures;
    "A7": "The shaper: never above its rate, and never below",
        "How exact is the deficit-mode shaper, for every framing, from 64 kbit to 10 Gbit?";
        "cake, saturated with packets of mixed sizes, for every overhead keyword with ATM, PTM and \
        neither; bytes on the wire counted over every second. After an idle time, what leaves at \
        once; HTB's burst beside it.",
        1; direct::shaper_arms, |_| Sample::default(), direct::shaper_figures;
}

/// The numbers of active flows at which collisions are counted.
fn a1_arms() -> Vec<Arm> {
    let flows = || direct::points().map(direct::Quantity::Flows);
    vec![
        Arm::direct("plain", flows(), direct::plain_table),
        Arm::direct("8-way", flows(), direct::set_associative_table),
    ]
}

fn a1_figures(measures: &Measures) -> Vec<Figure> {
    let curve = |arm| {
        [(direct::Quantity::Measured, ""), (direct::Quantity::Formula, ", formula")]
            .map(|(curve, what)| (of(arm, curve), format!("{arm}{what}")))
    };
    let names: Vec<_> = ["plain", "8-way"].into_iter().flat_map(curve).collect();
    let axes = (Axis::linear("active flows"), Axis::linear("probability of a collision"));
    vec![curves(("A1", "Collision of a new flow, 1024 queues"), axes, measures, &names)]
}

/// All that the paper's tests have in common, on a line of these rates up and down.
fn test(words: &str, [up, down]: [Rate; 2], duration: Span, warmup: Span) -> File {
    let line = Line::new(up, down, ms(50));
    let line = match contenders::shapes(words) {
        true => line,
        false => line.shaper("htb").burst(15140),
    };
    File::new(duration, line).warmup(warmup).interval(ms(200)).qdisc(words)
}

/// A test of the usual length.
fn lasting(words: &str, rates: [Rate; 2]) -> File {
    test(words, rates, secs(140), secs(30))
}

const TEN: [Rate; 2] = [mbit(10); 2];

/// The paper's transfers.
fn bulk() -> Traffic {
    Traffic::bulk().ecn(EcnMode::Off).stagger(ms(200))
}

/// The real-time response under load test: transfers with the classes in turn, UDP probes, and an
/// ICMP probe. The UDP probes ask when the answer has come, as netperf's UDP_RR does for flent.
pub(super) fn rrul(file: File, transfers: Traffic) -> File {
    file.traffic(transfers.both_ways().count(4).dscp(&["BE", "CS1", "CS5", "EF"]))
        .traffic(Traffic::rr().name("ping").count(3).dscp(&["BE", "CS1", "EF"]))
        .traffic(icmp())
}

/// flent's ICMP probe.
pub(super) fn icmp() -> Traffic {
    Traffic::ping().name("icmp").protocol("icmp").interval(ms(200))
}

const A2: [(&str, &str); 4] = [
    ("cake", "cake bandwidth {rate} besteffort"),
    ("cake_diff3", "cake bandwidth {rate} diffserv3"),
    ("cake_diff4", "cake bandwidth {rate} diffserv4"),
    ("fq_codel", "fq_codel"),
];

fn a2_arms() -> Vec<Arm> {
    let lines = [("10/10", TEN), ("1/10", [mbit(1), mbit(10)])];
    let on = |(label, rates)| {
        let arm = move |(name, words)| {
            Arm::scenario(format!("{name} {label}"), rrul(lasting(words, rates), bulk()))
        };
        contenders::all(&A2).into_iter().map(arm)
    };
    lines.into_iter().flat_map(on).collect()
}

/// Classes as the paper's data names them, and as scenarios do.
pub(super) const CLASSES: [(&str, &str); 4] =
    [("BE", "BE"), ("BK", "CS1"), ("CS5", "CS5"), ("EF", "EF")];

/// Probes as the paper's data names them, and as scenarios do.
pub(super) const PROBES: [(&str, &str); 4] =
    [("ICMP", "icmp"), ("UDP_BE", "ping BE"), ("UDP_BK", "ping CS1"), ("UDP_EF", "ping EF")];

/// Everything that is taken from an rrul run.
pub(super) fn rrul_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let mut total = 0.0;
    for way in Direction::BOTH {
        for (class, dscp) in CLASSES {
            let flows = view.flows(&format!("bulk {dscp} {way}"));
            sample.value(Rrul::Goodput(way, class), view.goodput(&flows));
            sample.curve(Rrul::Goodput(way, class), view.throughput(&flows));
        }
        let sum = view.goodput(&view.bulk(way));
        sample.value(Rrul::Sum(way), sum);
        total += sum;
    }
    sample.value(Rrul::Total, total);
    let (mut means, mut peak) = (Vec::new(), 0.0f64);
    for (probe, group) in PROBES {
        let times = view.added_times(group);
        sample.value(Rrul::Ping(probe), times.map(|times| times.mean));
        sample.value(Rrul::Peak(probe), times.map(|times| times.max));
        sample.curve(Rrul::Ping(probe), view.delay(group));
        sample.distribution(Rrul::Ping(probe), view.added(group));
        means.extend(times.map(|times| times.mean));
        peak = times.map_or(peak, |times| peak.max(times.max));
    }
    sample.value(Rrul::MeanPing, mean(&means));
    sample.value(Rrul::GreatestPeak, peak);
    sample
}

fn a2_figures(measures: &Measures) -> Vec<Figure> {
    let mut figures = Vec::new();
    let arms = contenders::names(&A2.map(|(name, _)| name));
    for (label, file) in [("10/10", "10-10"), ("1/10", "1-10")] {
        let name = |arm: &&str| (of(format!("{arm} {label}"), Rrul::Ping("ICMP")), arm.to_string());
        let names: Vec<_> = arms.iter().map(name).collect();
        let title = format!("Added latency of the ICMP ping, {label} Mbit/s (up/down)");
        let x = Axis::log("added latency (ms)");
        figures.push(cdf((&format!("A2-latency-{file}"), &title), x, measures, &names));
        let id = (&*format!("A2-goodput-{file}"), &*format!("Goodput, {label} Mbit/s (up/down)"));
        let (y, sums) = (Axis::linear("Mbit/s"), [Rrul::Sum(Up), Rrul::Sum(Down)]);
        let measure = |arm: &&str, sum: &Rrul| of(format!("{arm} {label}"), *sum);
        figures.push(dots(id, y, measures, &arms, &sums, &measure));
    }
    figures
}

/// The modes of host isolation, by the paper's words. Its algorithm 2 counts every active flow as
/// load of a host. Linux since 2019 counts only those that have a standing queue, which is the
/// default.
const ISOLATION: [(&str, &str); 8] = [
    ("fq_codel", "fq_codel"),
    ("flows", "cake bandwidth {rate} besteffort flows"),
    ("dst hosts", "cake bandwidth {rate} besteffort dual-dsthost host-load active"),
    ("src hosts", "cake bandwidth {rate} besteffort dual-srchost host-load active"),
    ("triple", "cake bandwidth {rate} besteffort triple-isolate host-load active"),
    ("dst hosts, Linux", "cake bandwidth {rate} besteffort dual-dsthost"),
    ("src hosts, Linux", "cake bandwidth {rate} besteffort dual-srchost"),
    ("triple, Linux", "cake bandwidth {rate} besteffort triple-isolate"),
];

fn a3_arms() -> Vec<Arm> {
    let flows = [("A", "A'"), ("A", "B'"), ("A", "C'"), ("A", "C'"), ("B", "C'"), ("B", "D'")];
    let arm = |(name, words)| {
        let mut file = lasting(words, TEN).host(Host::home("A")).host(Host::home("B"));
        for server in ["A'", "B'", "C'", "D'"] {
            file = file.host(Host::internet(server));
        }
        for (n, (from, to)) in (1..).zip(flows) {
            let flow = bulk().name(&format!("{n}")).direction(Up).home(&[from]).internet(&[to]);
            file = file.traffic(flow);
        }
        Arm::scenario(name, file)
    };
    contenders::all(&ISOLATION).into_iter().map(arm).collect()
}

fn a3_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let total = view.goodput(&view.bulk(Up));
    for n in 1..=6 {
        let goodput = view.goodput(&view.flows(&n.to_string()));
        sample.value(Quantity::Goodput(n), goodput);
        sample.value(Quantity::Share(n), goodput / total);
    }
    sample.value(Quantity::Total, total);
    sample
}

fn a3_figures(measures: &Measures) -> Vec<Figure> {
    let arms: Vec<&str> = contenders::all(&ISOLATION).into_iter().map(|(name, _)| name).collect();
    let id = ("A3", "Goodput of six flows: A to A', B', C', C'; B to C', D'");
    let measure = |arm: &&str, flow: &u32| of(arm, Quantity::Goodput(*flow));
    vec![dots(id, Axis::linear("Mbit/s"), measures, &arms, &[1, 2, 3, 4, 5, 6], &measure)]
}

fn a4_arms() -> Vec<Arm> {
    let arm = |mode: &str| {
        let words = format!("cake bandwidth {{rate}} {mode}");
        Arm::scenario(mode, rrul(lasting(&words, TEN), bulk()))
    };
    ["besteffort", "diffserv4"].map(arm).into()
}

fn a4_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |way: Direction| {
        let id = (&*format!("A4-{way}"), &*format!("Goodput by class, {way}"));
        let (arms, classes) = (["besteffort", "diffserv4"], CLASSES.map(|(class, _)| class));
        let measure = |arm: &&str, class: &&'static str| of(arm, Rrul::Goodput(way, class));
        dots(id, Axis::linear("Mbit/s"), measures, &arms, &classes, &measure)
    };
    [Down, Up].map(figure).into()
}

const A5: [(&str, &str); 3] = [
    ("fq_codel", "fq_codel"),
    ("besteffort", "cake bandwidth {rate} besteffort"),
    ("diffserv", "cake bandwidth {rate} diffserv4"),
];

fn a5_arms() -> Vec<Arm> {
    let call = || Traffic::cbr().name("call").direction(Up).rate(mbit(2)).dscp(&["EF"]);
    let arm = |(name, words)| {
        let file = test(words, TEN, secs(60), Span::ZERO).traffic(call());
        Arm::scenario(name, file.traffic(bulk().direction(Up).count(32).start(secs(5))))
    };
    contenders::all(&A5).into_iter().map(arm).collect()
}

/// The transfers begin at 5 s; the first seconds of that are the spike, the last forty the steady
/// state.
fn a5_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let delay = view.delay("call");
    sample.value(Quantity::Spike, greatest(&within(&delay, 5.0, 10.0)));
    let steady = within(&delay, 20.0, 60.0);
    sample.value(Quantity::SteadyMean, mean(&steady));
    let at = |q: f64| quantile(&steady, q).unwrap_or(f64::NAN);
    sample.value(Quantity::SteadyLow, at(0.05));
    sample.value(Quantity::SteadyHigh, at(0.95));
    sample.value(Quantity::P99, view.added_times("call").map(|times| times.p99));
    sample.value(Quantity::Loss, view.loss("call"));
    sample.curve(Quantity::Delay, delay);
    sample
}

fn a5_figures(measures: &Measures) -> Vec<Figure> {
    let shown = |arm: &str| match arm {
        "besteffort" => "cake besteffort".to_string(),
        "diffserv" => "cake diffserv4".to_string(),
        arm => arm.to_string(),
    };
    let name = |(arm, _)| (of(arm, Quantity::Delay), shown(arm));
    let names: Vec<_> = contenders::all(&A5).into_iter().map(name).collect();
    let axes = (Axis::linear("time (s)"), Axis::linear("added latency (ms)"));
    vec![curves(("A5", "Latency of the 2 Mbit/s stream"), axes, measures, &names)]
}

const A6: [(&str, &str); 3] =
    [("none", ""), ("conservative", " ack-filter"), ("aggressive", " ack-filter-aggressive")];

fn a6_arms() -> Vec<Arm> {
    let arm = |(name, filter)| {
        let words = format!("cake bandwidth {{rate}} besteffort{filter}");
        let probe = Traffic::ping().name("probe").interval(ms(200));
        let file = lasting(&words, [mbit(1), mbit(30)]);
        Arm::scenario(name, file.traffic(bulk().both_ways().count(4)).traffic(probe))
    };
    A6.map(arm).into()
}

fn a6_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    for way in Direction::BOTH {
        sample.value(Quantity::Carried(way), view.goodput(&view.bulk(way)));
    }
    sample.value(Quantity::Latency, view.added_times("probe").map(|times| times.mean));
    sample
}

fn a6_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |(what, measure, unit): (&str, Quantity, &str)| {
        let id = (&*format!("A6-{what}"), &*format!("ACK filtering: {what}"));
        arms_dots(id, Axis::linear(unit), measures, &A6.map(|(name, _)| name), &[measure])
    };
    [
        ("download", Quantity::Carried(Down), "Mbit/s"),
        ("upload", Quantity::Carried(Up), "Mbit/s"),
        ("latency", Quantity::Latency, "added latency (ms)"),
    ]
    .map(figure)
    .into()
}

/// Lines of a figure without points are left out; a plot without lines says that nothing was run.
pub(super) fn is_empty(plot: &Plot) -> bool {
    match plot {
        Plot::Lines(lines) => lines.is_empty(),
        Plot::Dots(_, series) => series.iter().all(|dots| dots.values.iter().all(Vec::is_empty)),
        Plot::Boxes(_, series) => {
            series.iter().all(|boxes| boxes.values.iter().all(Option::is_none))
        }
    }
}
