//! Piece of CAKE (Høiland-Jørgensen, Täht, Morton, LANMAN 2018): A1 to A7.
//!
//! Section IV: 10/10 Mbit/s, 50 ms base RTT, no ECN. Tests last 140 s, of which 30 s on count, as
//! in the paper's published data. What is not cake stands behind a token bucket of 15140 bytes, the
//! setting of the authors' testbed.

use simnel_sim::Direction;

use super::direct;
use super::measure::{greatest, mean, of, within, Measure, Measures, Sample, View};
use super::plots::{cdf, curves, dots};
use super::{contenders, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure, Plot};
use crate::statistics::quantile;

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "A1",
        paper: Paper::PieceOfCake,
        title: "Hash collisions: 8-way set-associative against plain",
        question: "How likely does a new flow share a queue with one of n others?",
        setup:
            "1024 queues. Flows arrive one after the other and all stay active; the real tables \
                of cake and of fq_codel tell whether the newcomer found a queue of its own.",
        repetitions: 10,
        arms: a1_arms,
        measure: |_| Sample::default(),
        figures: a1_figures,
    },
    Experiment {
        id: "A2",
        paper: Paper::PieceOfCake,
        title: "Baseline: cake and fq_codel under rrul",
        question: "Does cake cost latency or throughput against fq_codel, which it comes from?",
        setup: "rrul: four TCP flows each way (CS0, CS1, CS5, EF), UDP pings in EF, CS1 and CS0, \
                an ICMP ping; 10/10 and 10/1 Mbit/s (down/up), 50 ms.",
        repetitions: 10,
        arms: a2_arms,
        measure: rrul_measure,
        figures: a2_figures,
    },
    Experiment {
        id: "A3",
        paper: Paper::PieceOfCake,
        title: "Host isolation: six flows between two and four hosts",
        question: "Who gets how much when hosts open different numbers of flows?",
        setup: "Six uploads over 10 Mbit/s, 50 ms: A to A', A to B', A to C' twice, B to C', \
                B to D'. Two hosts at home, four on the Internet. A host's load is the number of \
                its active flows, as in the paper's algorithm 2; beside it the rule of today's \
                Linux, which counts those with a standing queue.",
        repetitions: 10,
        arms: a3_arms,
        measure: a3_measure,
        figures: a3_figures,
    },
    Experiment {
        id: "A4",
        paper: Paper::PieceOfCake,
        title: "DiffServ: four classes under rrul",
        question: "What do four markings get, with and without tiers?",
        setup: "rrul at 10/10 Mbit/s, 50 ms; cake besteffort against diffserv4.",
        repetitions: 10,
        arms: a4_arms,
        measure: rrul_measure,
        figures: a4_figures,
    },
    Experiment {
        id: "A5",
        paper: Paper::PieceOfCake,
        title: "A 2 Mbit/s call against 32 bulk flows",
        question: "Does a marked constant-rate flow stay fast when 32 transfers begin?",
        setup: "10 Mbit/s up, 50 ms; a 2 Mbit/s EF stream of 1250-byte datagrams from the \
                start, 32 uploads from 5 s on; 60 s.",
        repetitions: 10,
        arms: a5_arms,
        measure: a5_measure,
        figures: a5_figures,
    },
    Experiment {
        id: "A6",
        paper: Paper::PieceOfCake,
        title: "ACK filtering on an asymmetric line",
        question: "What does dropping redundant acknowledgements bring where the line is thin up?",
        setup: "30/1 Mbit/s (down/up), 50 ms; four downloads, four uploads, a UDP probe.",
        repetitions: 10,
        arms: a6_arms,
        measure: a6_measure,
        figures: a6_figures,
    },
    Experiment {
        id: "A7",
        paper: Paper::PieceOfCake,
        title: "The shaper: never above its rate, and never below",
        question: "How exact is the deficit-mode shaper, for every framing, from 64 kbit to 10 \
                   Gbit?",
        setup: "cake, saturated with packets of mixed sizes, for every overhead keyword with ATM, \
                PTM and neither; bytes on the wire counted over every second. After an idle time, \
                what leaves at once; HTB's burst beside it.",
        repetitions: 1,
        arms: direct::shaper_arms,
        measure: |_| Sample::default(),
        figures: direct::shaper_figures,
    },
];

/// The numbers of active flows at which collisions are counted.
fn a1_arms() -> Vec<Arm> {
    let names = || direct::points().map(direct::flows).collect();
    vec![
        Arm::direct("plain", names(), direct::plain_table),
        Arm::direct("8-way", names(), direct::set_associative_table),
    ]
}

fn a1_figures(measures: &Measures) -> Vec<Figure> {
    let names: Vec<(Measure, String)> = ["plain", "8-way"]
        .iter()
        .flat_map(|arm| {
            [("measured", ""), ("formula", ", formula")]
                .map(|(curve, what)| (of(arm, curve), format!("{arm}{what}")))
        })
        .collect();
    let axes = (Axis::linear("active flows"), Axis::linear("probability of a collision"));
    vec![curves(("A1", "Collision of a new flow, 1024 queues"), axes, measures, &names)]
}

/// The lines of a scenario that all of the paper's tests begin with.
fn head(qdisc: &str, (down, up): (&str, &str), (duration, warmup): (&str, &str)) -> String {
    let shapes = contenders::shapes(qdisc);
    let shaper = if shapes { "" } else { "shaper = \"htb\"\nburst = 15140\n" };
    format!(
        "duration = \"{duration}\"\nwarmup = \"{warmup}\"\ninterval = \"200ms\"\n\
         qdisc = \"{qdisc}\"\n\n[line]\nup = \"{up}\"\ndown = \"{down}\"\nrtt = \"50ms\"\n{shaper}"
    )
}

/// The real-time response under load test: classes in turn, probes every 200 ms as flent does.
/// `transfers` are the keys that its transfers have beside these.
pub(super) fn rrul(transfers: &str) -> String {
    format!(
        r#"
[[traffic]]
kind = "bulk"
direction = "both"
count = 4
dscp = ["BE", "CS1", "CS5", "EF"]
stagger = "200ms"
{transfers}

[[traffic]]
kind = "ping"
count = 3
interval = "200ms"
dscp = ["BE", "CS1", "EF"]

[[traffic]]
name = "icmp"
kind = "ping"
protocol = "icmp"
interval = "200ms"
"#
    )
}

const NO_ECN: &str = "ecn = false";

const LASTING: (&str, &str) = ("140s", "30s");

fn a2_arms() -> Vec<Arm> {
    let disciplines = [
        ("cake", "cake bandwidth {rate} besteffort"),
        ("cake_diff3", "cake bandwidth {rate} diffserv3"),
        ("cake_diff4", "cake bandwidth {rate} diffserv4"),
        ("fq_codel", "fq_codel"),
    ];
    let lines = [("10/10", ("10mbit", "10mbit")), ("1/10", ("10mbit", "1mbit"))];
    let arm = |(label, rates): (&str, (&str, &str)), (name, words): &(&str, &str)| {
        Arm::scenario(format!("{name} {label}"), head(words, rates, LASTING) + &rrul(NO_ECN))
    };
    let disciplines = contenders::all(&disciplines);
    lines.iter().flat_map(|line| disciplines.iter().map(|one| arm(*line, one))).collect()
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
    for direction in Direction::BOTH {
        let way = direction.name();
        for (class, dscp) in CLASSES {
            let flows = view.flows(&format!("bulk {dscp} {way}"));
            sample.value(format!("{way} {class}"), view.goodput(&flows));
            sample.curve(format!("{way} {class}"), view.throughput(&flows));
        }
        let sum = view.goodput(&view.bulk(direction));
        sample.value(format!("{way} sum"), sum);
        total += sum;
    }
    sample.value("total", total);
    let mut means = Vec::new();
    for (probe, group) in PROBES {
        let times = view.added_times(group);
        sample.value(format!("ping {probe}"), times.mean);
        sample.value(format!("peak {probe}"), times.max);
        sample.curve(format!("ping {probe}"), view.delay(group));
        sample.distribution(format!("ping {probe}"), view.added(group));
        means.push(times.mean);
    }
    sample.value("ping", mean(&means));
    sample
}

fn a2_figures(measures: &Measures) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (label, file) in [("10/10", "10-10"), ("1/10", "1-10")] {
        let arms = contenders::names(&["cake", "cake_diff3", "cake_diff4", "fq_codel"]);
        let names: Vec<(Measure, String)> = arms
            .iter()
            .map(|arm| (of(format!("{arm} {label}"), "ping ICMP"), arm.to_string()))
            .collect();
        let title = format!("Added latency of the ICMP ping, {label} Mbit/s (up/down)");
        let x = Axis::log("added latency (ms)");
        figures.push(cdf((&format!("A2-latency-{file}"), &title), x, measures, &names));
        let title = format!("Goodput, {label} Mbit/s (up/down)");
        let y = Axis::linear("Mbit/s");
        figures.push(dots(
            (&format!("A2-goodput-{file}"), &title),
            y,
            measures,
            &arms,
            &["up sum", "down sum"],
            &|arm, way| of(format!("{arm} {label}"), way),
        ));
    }
    figures
}

/// The modes of host isolation, by the paper's words. Its algorithm 2 counts every active flow as
/// load of a host; Linux since 2019 only those that have a standing queue, which is the default.
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
    let mut traffic = String::new();
    for (side, names) in [("home", &["A", "B"][..]), ("internet", &["A'", "B'", "C'", "D'"])] {
        for name in names {
            traffic += &format!("\n[[host]]\nname = \"{name}\"\nside = \"{side}\"\n");
        }
    }
    for (n, (from, to)) in flows.iter().enumerate() {
        traffic += &format!(
            "\n[[traffic]]\nkind = \"bulk\"\nname = \"{}\"\ndirection = \"up\"\nhome = \"{from}\"\n\
             internet = \"{to}\"\necn = false\nstagger = \"200ms\"\n",
            n + 1
        );
    }
    let rates = ("10mbit", "10mbit");
    contenders::all(&ISOLATION)
        .into_iter()
        .map(|(name, words)| Arm::scenario(name, head(words, rates, LASTING) + &traffic))
        .collect()
}

fn a3_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let total = view.goodput(&view.bulk(Direction::Up));
    let mut shares = Vec::new();
    for n in 1..=6 {
        let goodput = view.goodput(&view.flows(&n.to_string()));
        sample.value(format!("goodput {n}"), goodput);
        sample.value(format!("share {n}"), goodput / total);
        shares.push(goodput);
    }
    sample.value("total", total);
    sample
}

fn a3_figures(measures: &Measures) -> Vec<Figure> {
    let arms: Vec<&str> = contenders::all(&ISOLATION).into_iter().map(|(name, _)| name).collect();
    vec![dots(
        ("A3", "Goodput of six flows: A to A', B', C', C'; B to C', D'"),
        Axis::linear("Mbit/s"),
        measures,
        &arms,
        &["1", "2", "3", "4", "5", "6"],
        &|arm, flow| of(arm, format!("goodput {flow}")),
    )]
}

fn a4_arms() -> Vec<Arm> {
    let rates = ("10mbit", "10mbit");
    ["besteffort", "diffserv4"]
        .map(|mode| {
            let words = format!("cake bandwidth {{rate}} {mode}");
            Arm::scenario(mode, head(&words, rates, LASTING) + &rrul(NO_ECN))
        })
        .into()
}

fn a4_figures(measures: &Measures) -> Vec<Figure> {
    let classes: Vec<&str> = CLASSES.iter().map(|(class, _)| *class).collect();
    ["down", "up"]
        .map(|way| {
            dots(
                (&format!("A4-{way}"), &format!("Goodput by class, {way}")),
                Axis::linear("Mbit/s"),
                measures,
                &["besteffort", "diffserv4"],
                &classes,
                &|arm, class| of(arm, format!("{way} {class}")),
            )
        })
        .into()
}

fn a5_arms() -> Vec<Arm> {
    let traffic = r#"
[[traffic]]
name = "call"
kind = "cbr"
direction = "up"
rate = "2mbit"
dscp = "EF"

[[traffic]]
kind = "bulk"
direction = "up"
count = 32
ecn = false
start = "5s"
stagger = "200ms"
"#;
    let rates = ("10mbit", "10mbit");
    contenders::all(&[
        ("fq_codel", "fq_codel"),
        ("besteffort", "cake bandwidth {rate} besteffort"),
        ("diffserv", "cake bandwidth {rate} diffserv4"),
    ])
    .into_iter()
    .map(|(name, words)| Arm::scenario(name, head(words, rates, ("60s", "0s")) + traffic))
    .collect()
}

/// The transfers begin at 5 s; the first seconds of that are the spike, the last forty the steady
/// state.
fn a5_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let delay = view.delay("call");
    sample.value("spike", greatest(&within(&delay, 5.0, 10.0)));
    let steady = within(&delay, 20.0, 60.0);
    sample.value("steady mean", mean(&steady));
    let at = |q: f64| quantile(&steady, q).unwrap_or(f64::NAN);
    sample.value("steady low", at(0.05));
    sample.value("steady high", at(0.95));
    sample.value("p99", view.added_times("call").p99);
    sample.value("loss", view.loss("call"));
    sample.curve("delay", delay);
    sample
}

fn a5_figures(measures: &Measures) -> Vec<Figure> {
    let paper = [
        ("fq_codel", "fq_codel"),
        ("besteffort", "cake besteffort"),
        ("diffserv", "cake diffserv4"),
    ];
    let newcomers = contenders::names(&[]).into_iter().map(|name| (name, name));
    let names: Vec<(Measure, String)> = paper
        .into_iter()
        .chain(newcomers)
        .map(|(arm, name)| (of(arm, "delay"), name.to_string()))
        .collect();
    let axes = (Axis::linear("time (s)"), Axis::linear("added latency (ms)"));
    vec![curves(("A5", "Latency of the 2 Mbit/s stream"), axes, measures, &names)]
}

fn a6_arms() -> Vec<Arm> {
    let traffic = r#"
[[traffic]]
kind = "bulk"
direction = "both"
count = 4
ecn = false
stagger = "200ms"

[[traffic]]
name = "probe"
kind = "ping"
interval = "200ms"
"#;
    let rates = ("30mbit", "1mbit");
    [("none", ""), ("conservative", " ack-filter"), ("aggressive", " ack-filter-aggressive")]
        .map(|(name, filter)| {
            let words = format!("cake bandwidth {{rate}} besteffort{filter}");
            Arm::scenario(name, head(&words, rates, LASTING) + traffic)
        })
        .into()
}

fn a6_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    for direction in Direction::BOTH {
        sample.value(direction.name(), view.goodput(&view.bulk(direction)));
    }
    sample.value("latency", view.added_times("probe").mean);
    sample
}

fn a6_figures(measures: &Measures) -> Vec<Figure> {
    let arms = ["none", "conservative", "aggressive"];
    let dots = |what: &str, measure: &'static str, unit: &str| {
        dots(
            (&format!("A6-{what}"), &format!("ACK filtering: {what}")),
            Axis::linear(unit),
            measures,
            &arms,
            &[measure],
            &|arm, name| of(arm, name),
        )
    };
    vec![
        dots("download", "down", "Mbit/s"),
        dots("upload", "up", "Mbit/s"),
        dots("latency", "latency", "added latency (ms)"),
    ]
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
