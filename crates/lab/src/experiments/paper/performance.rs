//! CAKE Packet Scheduler, Performance Evaluation (Morton 2017): B1 to B10.
//!
//! 20/3 Mbit/s (down/up), 45 ms added each way, ECN negotiated, CUBIC, paced senders; htb with
//! `burst 15k` shapes for everything but cake. flent's tests: probes every 200 ms, transfers from
//! 5 s on for 60 s, which is what counts.

use simnel_sim::{Direction, Distribution, Outcome};

use super::cake::{rrul, rrul_measure, CLASSES};
use super::measure::{greatest, mean, of, within, Measure, Measures, Sample, View};
use super::plots::{cdf, curves, dots};
use super::{contenders, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure};
use simnel_scenario::summary::Times;

/// The contenders and their words. Plain FIFO is not the paper's; it shows what all are against.
pub(super) const CONTENDERS: [(&str, &str); 8] = [
    ("fifo", "htb rate {rate} burst 15k pfifo limit 1000"),
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

/// Common set-up of most experiments of this paper.
const fn experiment(
    id: &'static str,
    title: &'static str,
    question: &'static str,
    arms: fn() -> Vec<Arm>,
    measure: fn(&View<'_>) -> Sample,
    figures: fn(&Measures) -> Vec<Figure>,
) -> Experiment {
    let paper = Paper::CakePerformance;
    Experiment { id, paper, title, question, setup: LINE, repetitions: 10, arms, measure, figures }
}

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment(
        "B1",
        "tcp_download: one flow down",
        "How much latency does one download induce?",
        || arms(&[("", &one("down"))]),
        single_measure,
        |measures| single_figures("B1", measures),
    ),
    experiment(
        "B2",
        "tcp_upload: one flow up",
        "How much latency does one upload induce?",
        || arms(&[("", &one("up"))]),
        single_measure,
        |measures| single_figures("B2", measures),
    ),
    experiment(
        "B3",
        "tcp_bidirectional: one flow each way",
        "And when acknowledgements share the queue with data?",
        || arms(&[("", &one("both"))]),
        single_measure,
        |measures| single_figures("B3", measures),
    ),
    experiment(
        "B4",
        "rrul: four flows each way in four classes",
        "What does a line full both ways do to a sparse packet?",
        || arms(&[("", &rrul(FROM_FIVE))]),
        rrul_peaks,
        b4_figures,
    ),
    experiment(
        "B5",
        "rrul_50_up: fifty flows up, one down",
        "Who survives more than the line carries up?",
        || arms(&[("", FIFTY)]),
        fifty_measure,
        b5_figures,
    ),
    experiment(
        "B6",
        "sfq: throughput and gaps",
        "What does tail drop without AQM bring, and what does it cost?",
        singles,
        single_measure,
        b6_figures,
    ),
    experiment(
        "B7",
        "Single-flow throughput: cake against fq_codel",
        "Does the exact shaper bring throughput?",
        singles,
        single_measure,
        b6_figures,
    ),
    experiment(
        "B8",
        "rrul under cake's defaults: shares of classes",
        "Do the tiers share the link as designed?",
        || arms(&[("", &rrul(FROM_FIVE))]).into_iter().filter(|arm| arm.name == "cake").collect(),
        rrul_measure,
        b8_figures,
    ),
    experiment(
        "B9",
        "rrul_50_up: what the one download gets",
        "How much room do fifty uploads leave for acknowledgements?",
        || arms(&[("", FIFTY)]),
        fifty_measure,
        b9_figures,
    ),
    Experiment {
        id: "B10",
        paper: Paper::CakePerformance,
        title: "A household's evening: calls, downloads, a swarm",
        question: "Who keeps the swarm in the background and the call clean?",
        setup:
            "20/3 Mbit/s (down/up), 90 ms. A G.711 call throughout; from 10 s on, in steps of a \
                minute: +1 bulk each way; +20 LEDBAT flows each way in CS1; −bulk; 1, then 2, then \
                9 bulk; +1 bulk in EF; −9 bulk; −LEDBAT; −EF; a last minute.",
        repetitions: 10,
        arms: b10_arms,
        measure: b10_measure,
        figures: b10_figures,
    },
];

/// The paper's contenders and newcomers, behind htb if they do not shape themselves.
fn contenders() -> Vec<(&'static str, String)> {
    let shaped = |(name, words): (&'static str, &'static str)| match contenders::shapes(words) {
        true => (name, words.to_string()),
        false => (name, format!("htb rate {{rate}} burst 15k {words}")),
    };
    contenders::all(&CONTENDERS).into_iter().map(shaped).collect()
}

/// The scenario of `traffic` under one contender.
fn scenario(words: &str, (duration, warmup, interval): (u32, u32, &str), traffic: &str) -> String {
    format!(
        "duration = \"{duration}s\"\nwarmup = \"{warmup}s\"\ninterval = \"{interval}\"\n\
         qdisc = \"{words}\"\n\n[line]\nup = \"3mbit\"\ndown = \"20mbit\"\nrtt = \"90ms\"\n\
         {traffic}"
    )
}

/// Every contender with every test; the tests' names come after the contenders'.
fn arms(tests: &[(&str, &str)]) -> Vec<Arm> {
    let arm = |(test, traffic): &(&str, &str), (name, words): &(&str, String)| {
        let name = format!("{name}{test}");
        Arm::scenario(name, scenario(words, (65, 5, "200ms"), traffic))
    };
    let contenders = contenders();
    tests.iter().flat_map(|test| contenders.iter().map(|one| arm(test, one))).collect()
}

fn one(direction: &str) -> String {
    format!(
        "\n[[traffic]]\nkind = \"bulk\"\ndirection = \"{direction}\"\nstart = \"5s\"\n\
         stagger = \"200ms\"\necn = true\npacing = true\n\n[[traffic]]\nname = \"icmp\"\n\
         kind = \"ping\"\nprotocol = \"icmp\"\ninterval = \"200ms\"\n"
    )
}

fn singles() -> Vec<Arm> {
    arms(&[(" down", &one("down")), (" up", &one("up")), (" both", &one("both"))])
}

/// Settings of this paper's transfers under rrul.
const FROM_FIVE: &str = "start = \"5s\"\necn = true\npacing = true";

const FIFTY: &str = r#"
[[traffic]]
kind = "bulk"
name = "up"
direction = "up"
count = 50
start = "5s"
stagger = "200ms"
ecn = true
pacing = true

[[traffic]]
kind = "bulk"
name = "down"
direction = "down"
start = "5s"
stagger = "200ms"
ecn = true
pacing = true

[[traffic]]
kind = "ping"
count = 3
interval = "200ms"

[[traffic]]
name = "icmp"
kind = "ping"
protocol = "icmp"
interval = "200ms"
"#;

/// Peak of the probe, goodput, and the longest time without progress after the first second.
fn single_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let times = view.added_times("icmp");
    sample.value("peak", times.max);
    sample.value("mean", times.mean);
    sample.curve("ping", view.delay("icmp"));
    sample.distribution("ping", view.added("icmp"));
    let (mut gap, mut total) = (0.0f64, 0.0);
    for direction in Direction::BOTH {
        let flows = view.bulk(direction);
        if flows.is_empty() {
            continue;
        }
        let goodput = view.goodput(&flows);
        sample.value(direction.name(), goodput);
        total += goodput;
        let throughput = view.throughput(&flows);
        gap = gap.max(longest_gap(&within(&throughput, 6.5, 65.0)) * view.interval_s());
        sample.curve(direction.name(), throughput);
    }
    sample.value("total", total);
    sample.value("gap", gap);
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

fn all(measure: &str) -> Vec<(Measure, String)> {
    names().iter().map(|name| (of(name, measure), name.to_string())).collect()
}

fn single_figures(id: &str, measures: &Measures) -> Vec<Figure> {
    let time = || Axis::linear("time (s)");
    let mut figures = vec![cdf(
        (&format!("{id}-latency"), "Induced latency of the ping"),
        Axis::log("induced latency (ms)"),
        measures,
        &all("ping"),
    )];
    let axes = || (time(), Axis::linear("induced latency (ms)"));
    let title = "Induced latency over time";
    figures.push(curves((&format!("{id}-ping"), title), axes(), measures, &all("ping")));
    for way in ["down", "up"] {
        let axes = (time(), Axis::linear("Mbit/s"));
        let title = format!("Throughput {way}");
        let figure = curves((&format!("{id}-{way}"), &title), axes, measures, &all(way));
        if !super::cake::is_empty(&figure.plot) {
            figures.push(figure);
        }
    }
    figures
}

/// Measures of rrul, and the peak over all probes.
fn rrul_peaks(view: &View<'_>) -> Sample {
    let mut sample = rrul_measure(view);
    let peaks: Vec<f64> = sample
        .values
        .iter()
        .filter(|(name, _)| name.starts_with("peak "))
        .filter_map(|(_, peak)| *peak)
        .collect();
    sample.value("peak", greatest(&peaks));
    sample
}

fn b4_figures(measures: &Measures) -> Vec<Figure> {
    let peaks = dots(
        ("B4-peak", "Peak induced latency"),
        Axis::log("ms"),
        measures,
        &names(),
        &["peak", "peak UDP_BE", "peak UDP_EF", "peak UDP_BK"],
        &|arm, name| of(arm, name),
    );
    let x = Axis::log("induced latency (ms)");
    let latency = cdf(("B4-icmp", "ICMP latency"), x, measures, &all("ping ICMP"));
    let goodput = dots(
        ("B4-goodput", "Goodput"),
        Axis::linear("Mbit/s"),
        measures,
        &names(),
        &["down sum", "up sum"],
        &|arm, name| of(arm, name),
    );
    vec![peaks, latency, goodput]
}

/// The line overloaded up: the probes' peak in the first five seconds and after, the download.
fn fifty_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    // Peaks of single probes: the mean of an interval is one probe's, at one probe an interval.
    let mut all = view.delay("ping");
    all.extend(view.delay("icmp"));
    sample.value("peak", greatest(&within(&all, 5.0, 65.0)));
    sample.value("peak first 5 s", greatest(&within(&all, 5.0, 10.0)));
    sample.value("peak after", greatest(&within(&all, 10.0, 65.0)));
    sample.value("typical", view.added_times("ping").p50);
    let down = view.throughput(&view.flows("down"));
    sample.value("down", view.goodput(&view.flows("down")));
    sample.value("up", view.goodput(&view.flows("up")));
    // By seconds: five intervals.
    let seconds: Vec<f64> = within(&down, 5.0, 65.0).chunks(5).map(mean).collect();
    let late = seconds.get(20..).unwrap_or(&[]);
    sample.value("down late", mean(late));
    let variance = mean(&late.iter().map(|v| (v - mean(late)).powi(2)).collect::<Vec<_>>());
    sample.value("down variation", variance.sqrt() / mean(late));
    sample.value("down best second", greatest(&seconds));
    sample.curve("down", down);
    sample.curve("up", view.throughput(&view.flows("up")));
    sample.curve("ping", view.delay("icmp"));
    sample.distribution("ping", view.added("icmp"));
    sample
}

fn b5_figures(measures: &Measures) -> Vec<Figure> {
    let axes = (Axis::linear("time (s)"), Axis::log("induced latency (ms)"));
    let x = Axis::log("induced latency (ms)");
    vec![
        curves(("B5-ping", "Induced latency over time"), axes, measures, &all("ping")),
        cdf(("B5-cdf", "Induced latency"), x, measures, &all("ping")),
    ]
}

fn b6_figures(measures: &Measures) -> Vec<Figure> {
    let dots = |id: &str, title: &str, unit: &str, what: &'static str| {
        dots(
            (id, title),
            Axis::linear(unit),
            measures,
            &names(),
            &["down", "up", "both"],
            &|arm, test| of(format!("{arm} {test}"), what),
        )
    };
    vec![
        dots("B6-goodput", "Goodput of single flows, both directions together", "Mbit/s", "total"),
        dots("B6-gaps", "Longest time without progress", "s", "gap"),
    ]
}

fn b8_figures(measures: &Measures) -> Vec<Figure> {
    let classes: Vec<&str> = CLASSES.iter().map(|(class, _)| *class).collect();
    let dots = dots(
        ("B8", "Goodput by class under cake's defaults"),
        Axis::linear("Mbit/s"),
        measures,
        &["down", "up"],
        &classes,
        &|way, class| of("cake", format!("{way} {class}")),
    );
    vec![dots]
}

fn b9_figures(measures: &Measures) -> Vec<Figure> {
    let axes = (Axis::linear("time (s)"), Axis::linear("Mbit/s"));
    vec![curves(("B9", "The one download"), axes, measures, &all("down"))]
}

/// Beginning and end of the phases in which the swarm has company, and of the one in which it has
/// none, in seconds.
const CONTENDED: [(f64, f64); 6] =
    [(70.0, 130.0), (190.0, 250.0), (250.0, 310.0), (310.0, 370.0), (370.0, 430.0), (430.0, 490.0)];
const ALONE: (f64, f64) = (130.0, 190.0);
/// The first seconds of a phase belong to the change.
const SETTLING: f64 = 15.0;

fn b10_arms() -> Vec<Arm> {
    let mut traffic = String::new();
    for host in ["bulk", "swarm", "voice"] {
        traffic += &format!("\n[[host]]\nname = \"{host}\"\nside = \"internet\"\n");
    }
    traffic += "\n[[traffic]]\nkind = \"voip\"\ninternet = \"voice\"\n";
    let mut add = |name: &str, host: &str, count: u32, span: (u32, u32), more: &str| {
        let (start, stop) = span;
        traffic += &format!(
            "\n[[traffic]]\nkind = \"bulk\"\nname = \"{name}\"\ninternet = \"{host}\"\n\
             direction = \"both\"\ncount = {count}\nstart = \"{start}s\"\nstagger = \"200ms\"\n\
             stop = \"{stop}s\"\necn = true\npacing = true\n{more}"
        );
    };
    add("first", "bulk", 1, (10, 130), "");
    add("swarm", "swarm", 20, (70, 490), "cc = \"ledbat\"\ndscp = \"CS1\"\n");
    add("second", "bulk", 1, (190, 430), "");
    add("third", "bulk", 1, (250, 430), "");
    add("nine", "bulk", 7, (310, 430), "");
    add("ef", "bulk", 1, (370, 550), "dscp = \"EF\"\n");
    let arm = |(name, words): &(&str, String)| {
        Arm::scenario(*name, scenario(words, (610, 10, "1s"), &traffic))
    };
    contenders().iter().map(arm).collect()
}

fn b10_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let basic = ["first", "second", "third", "nine", "ef"];
    for direction in Direction::BOTH {
        let way = direction.name();
        let swarm = view.throughput(&view.flows(&format!("swarm {way}")));
        let others: Vec<_> =
            basic.iter().flat_map(|name| view.flows(&format!("{name} {way}"))).collect();
        let others = view.throughput(&others);
        let phase = |curve: &[[f64; 2]], (from, to)| mean(&within(curve, from + SETTLING, to));
        let shares = CONTENDED.map(|span| {
            let swarm = phase(&swarm, span);
            swarm / (swarm + phase(&others, span))
        });
        sample.value(format!("swarm share {way}"), greatest(&shares));
        sample.value(format!("least swarm share {way}"), shares.into_iter().fold(1.0, f64::min));
        sample.value(format!("swarm alone {way}"), phase(&swarm, ALONE));
        // What is on the wire, acknowledgements included.
        let step = view.interval_s();
        let line = view.results().lines[direction as usize].series.iter().enumerate();
        let line: Vec<[f64; 2]> =
            line.map(|(n, bytes)| [(n + 1) as f64 * step, *bytes as f64 * 8e-6 / step]).collect();
        sample.value(format!("line alone {way}"), phase(&line, ALONE));
        sample.curve(format!("swarm {way}"), swarm);
        sample.curve(format!("others {way}"), others);
        let name = format!("voip {way}");
        let delay = view.delay(&name);
        sample.value(format!("voice with swarm {way}"), phase(&delay, (70.0, 490.0)));
        sample.curve(name, delay);
    }
    let (mut added, mut jitter) = (Distribution::default(), Distribution::default());
    let mut lost = 0.0f64;
    for way in ["up", "down"] {
        for flow in view.flows(&format!("voip {way}")) {
            if let Outcome::Datagrams { added_delay, variation, .. } = &flow.outcome {
                added.merge(added_delay);
                jitter.merge(variation);
            }
        }
        lost = lost.max(view.loss(&format!("voip {way}")));
    }
    let times = Times::of(&added);
    sample.value("voice mean", times.mean);
    sample.value("voice p99", times.p99);
    sample.value("voice peak", times.max);
    sample.value("voice jitter", Times::of(&jitter).mean);
    sample.value("voice loss", lost);
    sample.distribution("voice", added);
    sample
}

fn b10_figures(measures: &Measures) -> Vec<Figure> {
    let mut figures = Vec::new();
    for way in ["down", "up"] {
        for (name, title) in [("swarm", "Swarm"), ("others", "Other transfers")] {
            let axes = (Axis::linear("time (s)"), Axis::linear("Mbit/s"));
            let title = format!("{title}, {way}");
            let id = format!("B10-{name}-{way}");
            let names = all(&format!("{name} {way}"));
            figures.push(curves((&id, &title), axes, measures, &names));
        }
    }
    let x = Axis::log("induced one-way delay (ms)");
    figures.push(cdf(("B10-voice", "The call's delay"), x, measures, &all("voice")));
    figures
}
