//! Controlling Queue Delay (Nichols, Jacobson, ACM Queue 2012): C1 to C7.
//!
//! The paper's simulations: all data flows one way over one bottleneck; file transfers (CUBIC,
//! SACK), PackMime web traffic (New Reno) at a rate of connections, a 64 kbit/s stream of 100-byte
//! packets. CoDel with its constants, dropping, before a buffer of eight bandwidth-delay products;
//! RED as ns-2 configures itself from the link's rate and delay; tail drop with one product. Grids
//! of loads are runs of one arm: a measure has a value for each of them.

use simnel_core::qdisc::{Detail, DropReason};
use simnel_core::{Span, Time};
use simnel_sim::{Direction, Kind, Run};

use super::measure::{greatest, of, within, Measure, Measures, Sample, View};
use super::plots::{curves, dots};
use super::{contenders, Arm, Experiment, Paper};
use crate::figures::{Axis, Boxes, Figure, Plot};
use crate::statistics::five_numbers;
use simnel_scenario::summary::{jain, Times};

/// How an experiment is run and what is taken from a run.
type Method = (fn() -> Vec<Arm>, fn(&View<'_>) -> Sample);

const fn experiment(
    id: &'static str,
    title: &'static str,
    question: &'static str,
    setup: &'static str,
    repetitions: u32,
    (arms, measure): Method,
    figures: fn(&Measures) -> Vec<Figure>,
) -> Experiment {
    let paper = Paper::QueueDelay;
    Experiment { id, paper, title, question, setup, repetitions, arms, measure, figures }
}

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment(
        "C1",
        "Static links, 3 to 100 Mbit/s",
        "Do the same constants work at every rate?",
        "3, 10, 45 and 100 Mbit/s; RTT 10 to 500 ms; 1 to 50 transfers, 0 to 80 web connections a \
         second, with and without a 64 kbit/s stream; 60 s, the first ten left out.",
        1,
        (|| grid(&FAST, &LONG_RTTS, &LOADS, &[1500]), grid_measure),
        |measures| grid_figures("C1", &FAST, measures),
    ),
    experiment(
        "C2",
        "Slow links, 128 kbit/s to 1.5 Mbit/s",
        "And where one packet takes longer than the target?",
        "128, 256, 512 kbit/s and 1.5 Mbit/s; RTT 30 to 100 ms; MTU 1500 and 500 bytes.",
        1,
        (|| grid(&SLOW, &SHORT_RTTS, &SLOW_LOADS, &[1500, 500]), grid_measure),
        |measures| grid_figures("C2", &SLOW, measures),
    ),
    experiment(
        "C3",
        "A link whose rate changes",
        "What happens when the rate falls by a factor of ten?",
        "4 transfers and 5 web connections a second; 100, 10, 1, 50, 1, 100 Mbit/s, 50 s each; \
         buffers of 830 and of 10 packets.",
        10,
        (dynamic_arms, dynamic_measure),
        dynamic_figures,
    ),
    experiment(
        "C4",
        "Round-trip times from 10 to 500 ms",
        "Does one interval serve all paths?",
        "The loads of C1 at 10 and 45 Mbit/s, by RTT.",
        1,
        (rtt_arms, grid_measure),
        rtt_figures,
    ),
    experiment(
        "C5",
        "Who loses packets",
        "Do flows lose in proportion to what they send?",
        "The loads of C1 with several transfers, by RTT: Jain's index over the transfers of the \
         share of a flow's packets that was dropped.",
        1,
        (rtt_arms, grid_measure),
        jain_figures,
    ),
    experiment(
        "C6",
        "The consumer's edge",
        "What does CoDel do to a home line?",
        "512 kbit/s and 1.5 Mbit/s, symmetric: a 64 kbit/s stream each way, one download without \
         end, two web connections a second, uploads of 1 MB with pauses of 5 to 15 s; 300 s.",
        10,
        (edge_arms, edge_measure),
        edge_figures,
    ),
    experiment(
        "C7",
        "Several thousand runs",
        "The same constants, everywhere?",
        "64 kbit/s to 100 Mbit/s; RTT 5 ms to 1 s; 0 to 50 transfers; 0 to 80 web connections a \
         second; with and without a 64 kbit/s stream; New Reno and CUBIC: 4104 runs of CoDel.",
        1,
        (sweep_arms, grid_measure),
        sweep_figures,
    ),
];

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
    mtu: u32,
    cc: &'static str,
    seconds: u32,
}

impl Point {
    /// Packets of one bandwidth-delay product, at least ten.
    fn product(&self) -> u32 {
        let bytes = u64::from(self.kbit) * u64::from(self.rtt) / 8;
        (bytes / u64::from(self.mtu)).clamp(10, 100_000) as u32
    }

    fn words(&self) -> String {
        let (kbit, rtt) = (self.kbit, self.rtt);
        match self.aqm {
            "codel" => format!("codel limit {} noecn", self.product() * 8),
            "red" => {
                let limit = self.product() * 8;
                format!(
                    "red ns bandwidth {kbit}kbit delay {rtt}ms avpkt {} limit {limit}",
                    self.mtu
                )
            }
            "tail" => format!("pfifo limit {}", self.product()),
            newcomer => contenders::words(newcomer).unwrap_or_default().into(),
        }
    }

    fn scenario(&self) -> String {
        let Point { kbit, rtt, mtu, cc, seconds, .. } = self;
        let (transfers, web, stream) = self.load;
        let mut text = format!(
            "duration = \"{seconds}s\"\nwarmup = \"10s\"\n\
             qdisc = {{ down = \"{}\", up = \"pfifo limit 10000\" }}\n\n[line]\n\
             down = \"{kbit}kbit\"\nup = \"1gbit\"\nrtt = \"{rtt}ms\"\n",
            self.words()
        );
        if transfers > 0 {
            text += &format!(
                "\n[[traffic]]\nkind = \"bulk\"\nname = \"ftp\"\ncount = {transfers}\n\
                 stagger = \"1s\"\ncc = \"{cc}\"\necn = false\nmtu = {mtu}\n"
            );
        }
        if web > 0 {
            text += &format!(
                "\n[[traffic]]\nkind = \"web\"\nrate = {web}\ncc = \"reno\"\necn = false\n\
                 mtu = {mtu}\n"
            );
        }
        if stream {
            text += "\n[[traffic]]\nkind = \"cbr\"\ndirection = \"down\"\nrate = \"64kbit\"\n\
                     size = 72\n";
        }
        text
    }
}

/// The name of a rate.
pub(super) fn rate_name(kbit: u32) -> String {
    match kbit {
        0..=999 => format!("{kbit}k"),
        _ => format!("{}M", f64::from(kbit) / 1000.0),
    }
}

/// All points, named by discipline, rate, packet size and kind of load.
fn grid(rates: &[u32], rtts: &[u32], loads: &[Load], mtus: &[u32]) -> Vec<Arm> {
    let mut arms = Vec::new();
    for aqm in contenders::names(&AQMS) {
        for kbit in rates {
            for mtu in mtus {
                for rtt in rtts {
                    for load in loads {
                        let only_transfers = load.1 == 0 && !load.2;
                        let kind = if only_transfers { "transfers" } else { "mixed" };
                        let point = Point {
                            aqm,
                            kbit: *kbit,
                            rtt: *rtt,
                            load: *load,
                            mtu: *mtu,
                            cc: "cubic",
                            seconds: 60,
                        };
                        let name = format!("{aqm} {} {mtu} {kind}", rate_name(*kbit));
                        arms.push(Arm::scenario(name, point.scenario()));
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
    let times = Times::of(&view.sojourn(Direction::Down));
    sample.value("delay", times.p50);
    sample.value("p95", times.p95);
    sample.value("utilisation", view.utilisation(Direction::Down));
    // Of the transfers: what share of its packets each lost.
    let n = Direction::Down as usize;
    let shares: Vec<f64> = view
        .bulk(Direction::Down)
        .iter()
        .map(|flow| {
            let dropped: u64 = flow.fates[n].dropped.iter().sum();
            dropped as f64 / flow.tcp.data_segments.max(1) as f64
        })
        .collect();
    sample.value("jain", jain(&shares));
    sample
}

fn boxes(
    measures: &Measures,
    categories: &[String],
    series: &[&str],
    name: &dyn Fn(&str, &str) -> Vec<Measure>,
) -> Plot {
    let series = series.iter().map(|one| Boxes {
        name: one.to_string(),
        values: categories
            .iter()
            .map(|category| {
                let names = name(category, one);
                let all: Vec<f64> =
                    names.iter().flat_map(|name| measures.values(name)).copied().collect();
                five_numbers(&all)
            })
            .collect(),
    });
    Plot::Boxes(categories.to_vec(), series.collect())
}

fn grid_figures(id: &str, rates: &[u32], measures: &Measures) -> Vec<Figure> {
    let categories: Vec<String> = rates.iter().map(|kbit| rate_name(*kbit)).collect();
    [("delay", "Median queueing delay", true), ("utilisation", "Utilisation", false)]
        .map(|(what, title, log)| {
            let names = |rate: &str, aqm: &str| {
                let mut names = Vec::new();
                for mtu in ["1500", "500"] {
                    for kind in ["transfers", "mixed"] {
                        names.push(of(format!("{aqm} {rate} {mtu} {kind}"), what));
                    }
                }
                names
            };
            let plot = boxes(measures, &categories, &contenders::names(&AQMS), &names);
            let y = if log { Axis::log("ms") } else { Axis::linear("share of the rate") };
            Figure::new((&format!("{id}-{what}"), title), (Axis::linear(""), y), plot)
        })
        .into()
}

/// The schedule of C3: when, and Mbit/s from then on.
const SCHEDULE: [(u32, u32); 6] = [(0, 100), (50, 10), (100, 1), (150, 50), (200, 1), (250, 100)];
pub(super) const BUFFERS: [u32; 2] = [830, 10];

/// When the rate falls, in seconds.
pub(super) const FALLS: [u32; 3] = [50, 100, 200];

fn dynamic(words: &str) -> String {
    let mut text = format!(
        "duration = \"300s\"\ninterval = \"100ms\"\n\
         qdisc = {{ down = \"{words}\", up = \"pfifo limit 10000\" }}\n\n[line]\n\
         down = \"100mbit\"\nup = \"1gbit\"\nrtt = \"100ms\"\n"
    );
    for (at, mbit) in &SCHEDULE[1..] {
        text += &format!("\n[[line.change]]\nat = \"{at}s\"\ndown = \"{mbit}mbit\"\n");
    }
    text + "\n[[traffic]]\nkind = \"bulk\"\nname = \"ftp\"\ncount = 4\nstagger = \"1s\"\n\
            ecn = false\n\n[[traffic]]\nkind = \"web\"\nrate = 5\ncc = \"reno\"\necn = false\n\n\
            [[traffic]]\nkind = \"ping\"\nname = \"probe\"\ndirection = \"down\"\n\
            interval = \"20ms\"\nsize = 8\n"
}

fn dynamic_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for buffer in BUFFERS {
        for aqm in contenders::names(&AQMS) {
            let words = match aqm {
                "codel" => dynamic_codel(buffer),
                "red" => {
                    format!("red ns bandwidth 100mbit delay 100ms avpkt 1500 limit {buffer}")
                }
                "tail" => format!("pfifo limit {buffer}"),
                newcomer => contenders::words(newcomer).unwrap_or_default().into(),
            };
            arms.push(Arm::scenario(format!("{aqm} {buffer}"), dynamic(&words)));
        }
    }
    arms.push(Arm::direct("control", FALLS.map(control_time).into(), control_points));
    arms
}

fn dynamic_codel(buffer: u32) -> String {
    format!("codel limit {buffer} noecn")
}

/// The measure of the time to a new control point.
fn control_time(fall: u32) -> String {
    format!("time {fall}")
}

/// Time that CoDel takes to a new control point: from when the delay passes the target after the
/// rate has fallen, for good, to the first drop. Looked at every millisecond.
fn control_points(seed: u64) -> Sample {
    const TARGET: Span = Span::from_millis(5);
    const STEP: Span = Span::from_millis(1);
    let mut sample = Sample::default();
    let text = dynamic(&dynamic_codel(BUFFERS[0]));
    let (setup, _) = super::set_up("C3 control", &text);
    let mut run = Run::new(&setup, seed).expect("a set-up that was checked");
    for fall in FALLS {
        run.advance(Time::ZERO + Span::from_secs(u64::from(fall)));
        let drops = run.snapshot(Direction::Down).totals.drops();
        let mut above = run.now();
        let end = run.now() + Span::from_secs(10);
        while run.now() < end {
            run.advance(run.now() + STEP);
            let snapshot = run.snapshot(Direction::Down);
            if snapshot.totals.drops() > drops {
                let time = run.now().since(above);
                sample.value(control_time(fall), time.0 as f64 / 1e6);
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

/// Delay over time as a small probe sees it, every 20 ms: quantiles are shares of time, as the
/// paper gives them; peaks in the five seconds before and after the rate's falls; payload moved.
fn dynamic_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let delay = view.delay("probe");
    let probe = view.sojourn_of("probe", Direction::Down);
    let at = |per_mille| probe.quantile(per_mille).map_or(0.0, simnel_scenario::summary::millis);
    sample.value("median", at(500));
    sample.value("p75", at(750));
    sample.value("p95", at(950));
    sample.value("packets median", Times::of(&view.sojourn(Direction::Down)).p50);
    sample.value("max", Times::of(&view.sojourn(Direction::Down)).max);
    for fall in FALLS {
        let at = f64::from(fall);
        sample.value(format!("before {fall}"), greatest(&within(&delay, at - 5.0, at)));
        sample.value(format!("after {fall}"), greatest(&within(&delay, at, at + 5.0)));
    }
    let bytes: u64 = view.results().flows.iter().map(|flow| flow.goodput_bytes()).sum();
    sample.value("megabytes", bytes as f64 * 1e-6);
    let mut sum = 0.0;
    let all: Vec<_> = view.results().flows.iter().collect();
    let step = view.interval_s();
    let carried = view.throughput(&all).into_iter().map(|[at, mbps]| {
        sum += mbps * step / 8.0;
        [at, sum]
    });
    sample.curve("megabytes", carried.collect());
    sample.curve("delay", delay);
    sample
}

fn dynamic_figures(measures: &Measures) -> Vec<Figure> {
    let mut figures = Vec::new();
    for buffer in BUFFERS {
        let names = |what: &str| -> Vec<(Measure, String)> {
            let name = |aqm| (of(format!("{aqm} {buffer}"), what), String::from(aqm));
            contenders::names(&AQMS).into_iter().map(name).collect()
        };
        for (what, title, y) in [
            ("delay", "Delay of a probe", Axis::log("ms")),
            ("megabytes", "Payload carried", Axis::linear("MB")),
        ] {
            let title = format!("{title}, buffer of {buffer} packets");
            let id = format!("C3-{what}-{buffer}");
            let axes = (Axis::linear("time (s)"), y);
            figures.push(curves((&id, &title), axes, measures, &names(what)));
        }
    }
    figures
}

/// The loads of C1 at two rates, named by round-trip time.
fn rtt_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for aqm in contenders::names(&AQMS) {
        for rtt in LONG_RTTS {
            for kbit in [10_000, 45_000] {
                for load in LOADS {
                    let (mtu, cc, seconds) = (1500, "cubic", 60);
                    let point = Point { aqm, kbit, rtt, load, mtu, cc, seconds };
                    arms.push(Arm::scenario(format!("{aqm} {rtt} ms"), point.scenario()));
                }
            }
        }
    }
    arms
}

fn rtt_categories() -> Vec<String> {
    LONG_RTTS.map(|rtt| format!("{rtt} ms")).into()
}

fn rtt_figures(measures: &Measures) -> Vec<Figure> {
    [("delay", "Median queueing delay", true), ("utilisation", "Utilisation", false)]
        .map(|(what, title, log)| {
            let names = |rtt: &str, aqm: &str| vec![of(format!("{aqm} {rtt}"), what)];
            let plot = boxes(measures, &rtt_categories(), &contenders::names(&AQMS), &names);
            let y = if log { Axis::log("ms") } else { Axis::linear("share of the rate") };
            Figure::new((&format!("C4-{what}"), title), (Axis::linear("RTT"), y), plot)
        })
        .into()
}

fn jain_figures(measures: &Measures) -> Vec<Figure> {
    let names = |rtt: &str, aqm: &str| vec![of(format!("{aqm} {rtt}"), "jain")];
    let aqms = contenders::names(&["codel", "red"]);
    let plot = boxes(measures, &rtt_categories(), &aqms, &names);
    let axes = (Axis::linear("RTT"), Axis::linear("Jain's index of drop shares"));
    vec![Figure::new(("C5", "How evenly drops are shared"), axes, plot)]
}

/// The consumer's edge: RTT is not given; 100 ms, the paper's usual one.
fn edge_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for kbit in [512, 1_500] {
        for aqm in contenders::names(&["codel", "tail"]) {
            let point = Point {
                aqm,
                kbit,
                rtt: 100,
                load: (1, 2, false),
                mtu: 1500,
                cc: "cubic",
                seconds: 300,
            };
            let words = point.words();
            let text = format!(
                "duration = \"300s\"\nqdisc = \"{words}\"\n\n[line]\nup = \"{kbit}kbit\"\n\
                 down = \"{kbit}kbit\"\nrtt = \"100ms\"\n\n[[traffic]]\nkind = \"cbr\"\n\
                 name = \"voice\"\ndirection = \"both\"\nrate = \"64kbit\"\nsize = 72\n\n\
                 [[traffic]]\nkind = \"bulk\"\nname = \"download\"\necn = false\n\n[[traffic]]\n\
                 kind = \"web\"\nrate = 2\ncc = \"reno\"\necn = false\n\n[[traffic]]\n\
                 kind = \"bursts\"\nname = \"upload\"\nsize = 1000000\npause = [\"5s\", \"15s\"]\n\
                 ecn = false\n"
            );
            arms.push(Arm::scenario(format!("{aqm} {}", rate_name(kbit)), text));
        }
    }
    arms
}

fn edge_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    for direction in [Direction::Down, Direction::Up] {
        let way = direction.name();
        let (drops, all) = view.drops(direction);
        sample.value(format!("{way} drops"), drops as f64 / all.max(1) as f64 * 100.0);
        sample.value(format!("{way} delay"), Times::of(&view.sojourn(direction)).p50);
        let n = direction as usize;
        let line = &view.results().lines[n];
        sample.value(format!("{way} megabytes"), line.bytes as f64 * 1e-6);
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
        sample.value(format!("{way} fairness"), jain(&shares.collect::<Vec<_>>()));
    }
    sample
}

fn edge_figures(measures: &Measures) -> Vec<Figure> {
    ["512k", "1.5M"]
        .map(|rate| {
            dots(
                (&format!("C6-{}", rate.replace('.', "-")), &format!("Median delay, {rate}bit/s")),
                Axis::linear("ms"),
                measures,
                &["down", "up"],
                &contenders::names(&["codel", "tail"]),
                &|way, aqm| of(format!("{aqm} {rate}"), format!("{way} delay")),
            )
        })
        .into()
}

/// The grid of C7.
const ALL_RATES: [u32; 9] = [64, 128, 256, 512, 1_500, 3_000, 10_000, 45_000, 100_000];
const ALL_RTTS: [u32; 6] = [5, 30, 100, 200, 500, 1000];
const TRANSFERS: [u32; 5] = [0, 1, 5, 20, 50];
const WEB: [u32; 4] = [0, 10, 40, 80];

/// Two thousand loads and paths, twice, with New Reno and CUBIC. Where there is nothing to send
/// but the stream, there is no run.
fn sweep_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for kbit in ALL_RATES {
        for rtt in ALL_RTTS {
            for transfers in TRANSFERS {
                for web in WEB {
                    for stream in [false, true] {
                        for cc in ["reno", "cubic"] {
                            if transfers + web == 0 {
                                continue;
                            }
                            let load = (transfers, web, stream);
                            let (aqm, mtu, seconds) = ("codel", 1500, 30);
                            let point = Point { aqm, kbit, rtt, load, mtu, cc, seconds };
                            let size = match (transfers, web, stream) {
                                (1.., 0, false) if rtt <= 200 => " transfers",
                                (5.., ..) if rtt <= 200 => " many",
                                _ => "",
                            };
                            let name = format!("{cc} {}{size}", rate_name(kbit));
                            arms.push(Arm::scenario(name, point.scenario()));
                        }
                    }
                }
            }
        }
    }
    arms
}

fn sweep_figures(measures: &Measures) -> Vec<Figure> {
    let categories: Vec<String> = ALL_RATES.iter().map(|kbit| rate_name(*kbit)).collect();
    [("delay", "Median queueing delay", true), ("utilisation", "Utilisation", false)]
        .map(|(what, title, log)| {
            let names = |rate: &str, cc: &str| {
                let sizes = ["", " many", " transfers"];
                sizes.map(|size| of(format!("{cc} {rate}{size}"), what)).into()
            };
            let plot = boxes(measures, &categories, &["reno", "cubic"], &names);
            let y = if log { Axis::log("ms") } else { Axis::linear("share of the rate") };
            Figure::new((&format!("C7-{what}"), title), (Axis::linear(""), y), plot)
        })
        .into()
}
