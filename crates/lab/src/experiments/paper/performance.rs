//! CAKE Packet Scheduler, Performance Evaluation (Morton 2017): B1 to B10.
//!
//! 20/3 Mbit/s (down/up), 45 ms added each way, ECN negotiated, CUBIC, paced senders; htb with
//! `burst 15k` shapes for everything but cake. flent's tests: probes every 200 ms, transfers from
//! 5 s on for 60 s, which is what counts.

use simnel_core::Span;
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_scenario::summary::{interval_mbps, Times};
use simnel_sim::Direction::{self, Down, Up};
use simnel_sim::{Distribution, Outcome};
use simnel_tcp::{CongestionControl, EcnMode};

use super::cake::{icmp, rrul, rrul_measure, Rrul, CLASSES};
use super::measure::{
    greatest, mean, of, quantities, within, Measure, Measured, Measures, Sample, View,
};
use super::plots::{arms_dots, cdf, curves, dots};
use super::{contenders, mbit, ms, secs, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure};

quantities! {
    /// Quantities of this paper, beside those of rrul.
    Quantity {
        Carried(way: Direction) = "{way}", Total = "total", Peak = "peak", Mean = "mean",
        Ping = "ping", Gap = "gap", FirstPeak = "peak first 5 s", LaterPeak = "peak after",
        Typical = "typical", LateDownload = "down late", DownloadVariation = "down variation",
        BestSecond = "down best second", SwarmShare(way: Direction) = "swarm share {way}",
        LeastSwarmShare(way: Direction) = "least swarm share {way}",
        SwarmAlone(way: Direction) = "swarm alone {way}",
        LineAlone(way: Direction) = "line alone {way}", Swarm(way: Direction) = "swarm {way}",
        Others(way: Direction) = "others {way}", Voip(way: Direction) = "voip {way}",
        VoiceWithSwarm(way: Direction) = "voice with swarm {way}", Voice = "voice",
        VoiceMean = "voice mean", VoiceP99 = "voice p99", VoicePeak = "voice peak",
        VoiceJitter = "voice jitter", VoiceLoss = "voice loss",
    }
}

/// The contender that is not the paper's; it shows what all are against.
pub(super) const NOT_THE_PAPERS: &str = "fifo";

/// The contenders and their words, [`NOT_THE_PAPERS`] first and then as the paper presents them.
pub(super) const CONTENDERS: [(&str, &str); 8] = [
    (NOT_THE_PAPERS, "htb rate {rate} burst 15k pfifo limit 1000"),
    ("sfq", "htb rate {rate} burst 15k sfq limit 1000 perturb 10"),
    ("pie", "htb rate {rate} burst 15k pie ecn"),
    ("codel", "htb rate {rate} burst 15k codel ecn"),
    ("sfb", "htb rate {rate} burst 15k sfb"),
    ("fq_codel", "htb rate {rate} burst 15k fq_codel"),
    ("cake", "cake bandwidth {rate}"),
    ("cake-lite", "cake bandwidth {rate} besteffort flows"),
];

const LINE: &str =
    "20/3 Mbit/s (down/up), 90 ms, ECN, CUBIC, paced senders; htb burst 15k for all \
                    but cake; one minute.";

experiments! {
    Paper::CakePerformance;
    "B1": "tcp_download: one flow down", "How much latency does one download induce?";
        LINE, 10; || arms(&[("", |file| single(file, bulk().direction(Down)))]), single_measure,
        |measures| single_figures("B1", measures);
    "B2": "tcp_upload: one flow up", "How much latency does one upload induce?";
        LINE, 10; || arms(&[("", |file| single(file, bulk().direction(Up)))]), single_measure,
        |measures| single_figures("B2", measures);
    "B3": "tcp_bidirectional: one flow each way",
        "And when acknowledgements share the queue with data?";
        LINE, 10; || arms(&[("", |file| single(file, bulk().both_ways()))]), single_measure,
        |measures| single_figures("B3", measures);
    "B4": "rrul: four flows each way in four classes",
        "What does a line full both ways do to a sparse packet?";
        LINE, 10; || arms(&[("", |file| rrul(file, bulk()))]), rrul_measure, b4_figures;
    "B5": "rrul_50_up: fifty flows up, one down", "Who survives more than the line carries up?";
        LINE, 10; || arms(&[("", fifty)]), fifty_measure, b5_figures;
    "B6": "sfq: throughput and gaps",
        "What does tail drop without AQM bring, and what does it cost?";
        LINE, 10; singles, single_measure, b6_figures;
    "B7": "Single-flow throughput: cake against fq_codel",
        "Does the exact shaper bring throughput?";
        LINE, 10; singles, single_measure, b6_figures;
    "B8": "rrul under cake's defaults: shares of classes",
        "Do the tiers share the link as designed?";
        LINE, 10; b8_arms, rrul_measure, b8_figures;
    "B9": "rrul_50_up: what the one download gets",
        "How much room do fifty uploads leave for acknowledgements?";
        LINE, 10; || arms(&[("", fifty)]), fifty_measure, b9_figures;
    "B10": "A household's evening: calls, downloads, a swarm",
        "Who keeps the swarm in the background and the call clean?";
        "20/3 Mbit/s (down/up), 90 ms. A G.711 call throughout; from 10 s on, in steps of a \
        minute: +1 bulk each way; +20 LEDBAT flows each way in CS1; −bulk; 1, then 2, then 9 bulk; \
        +1 bulk in EF; −9 bulk; −LEDBAT; −EF; a last minute.",
        10; b10_arms, b10_measure, b10_figures;
}

/// The paper's contenders and newcomers, behind htb if they do not shape themselves.
fn contenders() -> Vec<(&'static str, String)> {
    let shaped = |(name, words): (&'static str, &'static str)| match contenders::shapes(words) {
        true => (name, words.to_string()),
        false => (name, format!("htb rate {{rate}} burst 15k {words}")),
    };
    contenders::all(&CONTENDERS).into_iter().map(shaped).collect()
}

/// The paper's line under one contender.
fn file(words: &str, duration: Span, warmup: Span, interval: Span) -> File {
    let line = Line::new(mbit(3), mbit(20), ms(90));
    File::new(duration, line).warmup(warmup).interval(interval).qdisc(words)
}

/// Adds the traffic of a test.
type Test = fn(File) -> File;

/// Every contender with every test; the tests' names come after the contenders'.
fn arms(tests: &[(&str, Test)]) -> Vec<Arm> {
    let contenders = contenders();
    let of = |(test, add): &(&str, Test)| {
        let arm = |(name, words): &(&str, String)| {
            let file = file(words, secs(65), secs(5), ms(200));
            Arm::scenario(format!("{name}{test}"), add(file))
        };
        contenders.iter().map(arm).collect::<Vec<_>>()
    };
    tests.iter().flat_map(of).collect()
}

/// The paper's transfers.
fn bulk() -> Traffic {
    Traffic::bulk().start(secs(5)).stagger(ms(200)).ecn(EcnMode::On).pacing(true)
}

fn single(file: File, transfers: Traffic) -> File {
    file.traffic(transfers).traffic(icmp())
}

fn singles() -> Vec<Arm> {
    arms(&[
        (" down", |file| single(file, bulk().direction(Down))),
        (" up", |file| single(file, bulk().direction(Up))),
        (" both", |file| single(file, bulk().both_ways())),
    ])
}

fn fifty(file: File) -> File {
    file.traffic(bulk().name("up").direction(Up).count(50))
        .traffic(bulk().name("down").direction(Down))
        .traffic(Traffic::ping().count(3).interval(ms(200)))
        .traffic(icmp())
}

/// Peak of the probe, goodput, and the longest time without progress after the first second.
fn single_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let times = view.added_times("icmp");
    sample.value(Quantity::Peak, times.map(|times| times.max));
    sample.value(Quantity::Mean, times.map(|times| times.mean));
    sample.curve(Quantity::Ping, view.delay("icmp"));
    sample.distribution(Quantity::Ping, view.added("icmp"));
    let (mut gap, mut total) = (0.0f64, 0.0);
    for way in Direction::BOTH {
        let flows = view.bulk(way);
        if flows.is_empty() {
            continue;
        }
        let goodput = view.goodput(&flows);
        sample.value(Quantity::Carried(way), goodput);
        total += goodput;
        let throughput = view.throughput(&flows);
        gap = gap.max(longest_gap(&within(&throughput, 6.5, 65.0)) * view.interval_s());
        sample.curve(Quantity::Carried(way), throughput);
    }
    sample.value(Quantity::Total, total);
    sample.value(Quantity::Gap, gap);
    sample
}

/// The greatest number of zeros in a row.
fn longest_gap(values: &[f64]) -> f64 {
    let (mut longest, mut present) = (0u32, 0);
    for value in values {
        present = if *value == 0.0 { present + 1 } else { 0 };
        longest = longest.max(present);
    }
    f64::from(longest)
}

fn names() -> Vec<&'static str> {
    contenders::all(&CONTENDERS).into_iter().map(|(name, _)| name).collect()
}

fn all(quantity: impl Measured + Copy) -> Vec<(Measure, String)> {
    names().iter().map(|name| (of(name, quantity), name.to_string())).collect()
}

fn single_figures(id: &str, measures: &Measures) -> Vec<Figure> {
    let over_time = |what: &str, title: &str, unit: &str, quantity| {
        let axes = (Axis::linear("time (s)"), Axis::linear(unit));
        curves((&format!("{id}-{what}"), title), axes, measures, &all(quantity))
    };
    let title = "Induced latency of the ping";
    let x = Axis::log("induced latency (ms)");
    let mut figures = vec![
        cdf((&format!("{id}-latency"), title), x, measures, &all(Quantity::Ping)),
        over_time("ping", "Induced latency over time", "induced latency (ms)", Quantity::Ping),
    ];
    for way in [Down, Up] {
        let title = format!("Throughput {way}");
        let figure = over_time(way.name(), &title, "Mbit/s", Quantity::Carried(way));
        if !super::cake::is_empty(&figure.plot) {
            figures.push(figure);
        }
    }
    figures
}

fn b4_figures(measures: &Measures) -> Vec<Figure> {
    let peaks =
        [Rrul::GreatestPeak, Rrul::Peak("UDP_BE"), Rrul::Peak("UDP_EF"), Rrul::Peak("UDP_BK")];
    let x = Axis::log("induced latency (ms)");
    let sums = [Rrul::Sum(Down), Rrul::Sum(Up)];
    let id = ("B4-peak", "Peak induced latency");
    vec![
        arms_dots(id, Axis::log("ms"), measures, &names(), &peaks),
        cdf(("B4-icmp", "ICMP latency"), x, measures, &all(Rrul::Ping("ICMP"))),
        arms_dots(("B4-goodput", "Goodput"), Axis::linear("Mbit/s"), measures, &names(), &sums),
    ]
}

/// The line overloaded up: the probes' peak in the first five seconds and after, the download.
fn fifty_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    // Peaks of single probes: the mean of an interval is one probe's, at one probe an interval.
    let mut all = view.delay("ping");
    all.extend(view.delay("icmp"));
    sample.value(Quantity::Peak, greatest(&within(&all, 5.0, 65.0)));
    sample.value(Quantity::FirstPeak, greatest(&within(&all, 5.0, 10.0)));
    sample.value(Quantity::LaterPeak, greatest(&within(&all, 10.0, 65.0)));
    sample.value(Quantity::Typical, view.added_times("ping").map(|times| times.p50));
    let down = view.throughput(&view.flows("down"));
    sample.value(Quantity::Carried(Down), view.goodput(&view.flows("down")));
    sample.value(Quantity::Carried(Up), view.goodput(&view.flows("up")));
    // By seconds: five intervals.
    let seconds: Vec<f64> = within(&down, 5.0, 65.0).chunks(5).map(mean).collect();
    let late = seconds.get(20..).unwrap_or(&[]);
    sample.value(Quantity::LateDownload, mean(late));
    let variance = mean(&late.iter().map(|v| (v - mean(late)).powi(2)).collect::<Vec<_>>());
    sample.value(Quantity::DownloadVariation, variance.sqrt() / mean(late));
    sample.value(Quantity::BestSecond, greatest(&seconds));
    sample.curve(Quantity::Carried(Down), down);
    sample.curve(Quantity::Carried(Up), view.throughput(&view.flows("up")));
    sample.curve(Quantity::Ping, view.delay("icmp"));
    sample.distribution(Quantity::Ping, view.added("icmp"));
    sample
}

fn b5_figures(measures: &Measures) -> Vec<Figure> {
    let axes = (Axis::linear("time (s)"), Axis::log("induced latency (ms)"));
    let x = Axis::log("induced latency (ms)");
    let pings = all(Quantity::Ping);
    vec![
        curves(("B5-ping", "Induced latency over time"), axes, measures, &pings),
        cdf(("B5-cdf", "Induced latency"), x, measures, &pings),
    ]
}

fn b6_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |(id, title, unit, what): (&str, &str, &str, Quantity)| {
        let measure = |arm: &&str, test: &&str| of(format!("{arm} {test}"), what);
        let (y, tests) = (Axis::linear(unit), ["down", "up", "both"]);
        dots((id, title), y, measures, &names(), &tests, &measure)
    };
    let title = "Goodput of single flows, both directions together";
    [
        ("B6-goodput", title, "Mbit/s", Quantity::Total),
        ("B6-gaps", "Longest time without progress", "s", Quantity::Gap),
    ]
    .map(figure)
    .into()
}

fn b8_arms() -> Vec<Arm> {
    arms(&[("", |file| rrul(file, bulk()))]).into_iter().filter(|arm| arm.name == "cake").collect()
}

fn b8_figures(measures: &Measures) -> Vec<Figure> {
    let (y, classes) = (Axis::linear("Mbit/s"), CLASSES.map(|(class, _)| class));
    let measure = |way: &Direction, class: &&'static str| of("cake", Rrul::Goodput(*way, class));
    let id = ("B8", "Goodput by class under cake's defaults");
    vec![dots(id, y, measures, &[Down, Up], &classes, &measure)]
}

fn b9_figures(measures: &Measures) -> Vec<Figure> {
    let axes = (Axis::linear("time (s)"), Axis::linear("Mbit/s"));
    vec![curves(("B9", "The one download"), axes, measures, &all(Quantity::Carried(Down)))]
}

/// Beginning and end of the phases in which the swarm has company, and of the one in which it has
/// none, in seconds.
const CONTENDED: [(f64, f64); 6] =
    [(70.0, 130.0), (190.0, 250.0), (250.0, 310.0), (310.0, 370.0), (370.0, 430.0), (430.0, 490.0)];
const ALONE: (f64, f64) = (130.0, 190.0);
/// The first seconds of a phase belong to the change.
const SETTLING: f64 = 15.0;

fn b10_arms() -> Vec<Arm> {
    let flows = |name: &str, host: &str, count: u32, start: u64, stop: u64| {
        let flows = bulk().name(name).internet(&[host]).both_ways().count(count);
        flows.start(secs(start)).stop(secs(stop))
    };
    let swarm = || flows("swarm", "swarm", 20, 70, 490).cc(CongestionControl::Ledbat);
    let arm = |(name, words): &(&str, String)| {
        let file = file(words, secs(610), secs(10), secs(1))
            .host(Host::internet("bulk"))
            .host(Host::internet("swarm"))
            .host(Host::internet("voice"))
            .traffic(Traffic::voip().internet(&["voice"]))
            .traffic(flows("first", "bulk", 1, 10, 130))
            .traffic(swarm().dscp(&["CS1"]))
            .traffic(flows("second", "bulk", 1, 190, 430))
            .traffic(flows("third", "bulk", 1, 250, 430))
            .traffic(flows("nine", "bulk", 7, 310, 430))
            .traffic(flows("ef", "bulk", 1, 370, 550).dscp(&["EF"]));
        Arm::scenario(name, file)
    };
    contenders().iter().map(arm).collect()
}

fn b10_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let basic = ["first", "second", "third", "nine", "ef"];
    let (mut added, mut jitter) = (Distribution::default(), Distribution::default());
    let mut lost = 0.0f64;
    for way in Direction::BOTH {
        let swarm = view.throughput(&view.flows(&format!("swarm {way}")));
        let others: Vec<_> =
            basic.iter().flat_map(|name| view.flows(&format!("{name} {way}"))).collect();
        let others = view.throughput(&others);
        let phase = |curve: &[[f64; 2]], (from, to)| mean(&within(curve, from + SETTLING, to));
        let shares = CONTENDED.map(|span| {
            let swarm = phase(&swarm, span);
            swarm / (swarm + phase(&others, span))
        });
        sample.value(Quantity::SwarmShare(way), greatest(&shares));
        sample.value(Quantity::LeastSwarmShare(way), shares.into_iter().fold(1.0, f64::min));
        sample.value(Quantity::SwarmAlone(way), phase(&swarm, ALONE));
        // What is on the wire, acknowledgements included.
        let step = view.interval_s();
        let line = view.results().lines[way as usize].series.iter().enumerate();
        let mbps = |n, bytes: &u64| interval_mbps(view.results(), n, *bytes);
        let line: Vec<[f64; 2]> =
            line.map(|(n, bytes)| [(n + 1) as f64 * step, mbps(n, bytes)]).collect();
        sample.value(Quantity::LineAlone(way), phase(&line, ALONE));
        sample.curve(Quantity::Swarm(way), swarm);
        sample.curve(Quantity::Others(way), others);
        let name = format!("voip {way}");
        let delay = view.delay(&name);
        sample.value(Quantity::VoiceWithSwarm(way), phase(&delay, (70.0, 490.0)));
        sample.curve(Quantity::Voip(way), delay);
        for flow in view.flows(&name) {
            if let Outcome::Datagrams { added_delay, variation, .. } = &flow.outcome {
                added.merge(added_delay);
                jitter.merge(variation);
            }
        }
        lost = lost.max(view.loss(&name));
    }
    let times = Times::of(&added);
    sample.value(Quantity::VoiceMean, times.map(|times| times.mean));
    sample.value(Quantity::VoiceP99, times.map(|times| times.p99));
    sample.value(Quantity::VoicePeak, times.map(|times| times.max));
    sample.value(Quantity::VoiceJitter, Times::of(&jitter).map(|times| times.mean));
    sample.value(Quantity::VoiceLoss, lost);
    sample.distribution(Quantity::Voice, added);
    sample
}

fn b10_figures(measures: &Measures) -> Vec<Figure> {
    let mut figures = Vec::new();
    for way in [Down, Up] {
        for (name, title, quantity) in [
            ("swarm", "Swarm", Quantity::Swarm(way)),
            ("others", "Other transfers", Quantity::Others(way)),
        ] {
            let axes = (Axis::linear("time (s)"), Axis::linear("Mbit/s"));
            let id = (&*format!("B10-{name}-{way}"), &*format!("{title}, {way}"));
            figures.push(curves(id, axes, measures, &all(quantity)));
        }
    }
    let (x, calls) = (Axis::log("induced one-way delay (ms)"), all(Quantity::Voice));
    figures.push(cdf(("B10-voice", "The call's delay"), x, measures, &calls));
    figures
}
