//! AQM for IoT flows at the home gateway (Kua, Nguyen, Armitage, Branch 2017): E1 to E7.
//!
//! Section III: a home line with the same discipline in both directions and everything at once. Two
//! IoT flows and a DASH stream are at 40 ms, a video call and bulk transfers at 40, 140 or 240 ms.
//! Those are the three that the paper shows. A run lasts 200 s, of which those from 30 s on count.
//! Disciplines are as in FreeBSD: FIFO of 490 packets, PIE, FQ-CoDel, FQ-PIE of 1000 packets. All
//! experiments look at the same runs.

use std::fmt;

use simnel_core::Time;
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_scenario::summary::millis;
use simnel_sim::Direction::{Down, Up};
use simnel_sim::{Distribution, Outcome};
use simnel_tcp::CongestionControl::Reno;
use simnel_tcp::EcnMode;

use super::measure::{greatest, mean, of, quantities, Measures, Sample, View};
use super::plots::{boxes, dots};
use super::{contenders, kbit, ms, secs, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure};
use crate::statistics::quantile;

/// Median or a quartile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// Half of it is below.
    Median,
    /// A quarter is below.
    Low,
    /// A quarter is above.
    High,
}

use Part::{High, Low, Median};

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Median => "",
            Low => " low",
            High => " high",
        })
    }
}

quantities! {
    /// Quantities of this paper, by application.
    Quantity {
        Rtt(application: &'static str, part: Part) = "{application} rtt{part}",
        Rate(application: &'static str, part: Part) = "{application} rate{part}", MeanRtt = "rtt",
        Spread = "spread", GreatestRtt = "greatest rtt", Chosen = "dash chosen",
        Achieved = "dash achieved", Stalled = "dash stalled",
    }
}

const SETUP: &str = "IoT low (100 B, 2.5/s) and high (100 B, 125/s) over TCP without Nagle and \
                     delayed ACKs, a video call (700 B every 20 ms, both ways), bulk up and down \
                     (CUBIC), DASH (New Reno). IoT and DASH at 40 ms, the others at 40, 140 or 240 \
                     ms. No ECN; 200 s, statistics from 30 s on.";

experiments! {
    Paper::Iot;
    "E1": "12/1 Mbit/s with FIFO", "What does a long FIFO do to small flows?";
        SETUP, 10; || arms(&["12/1"], &["fifo"]), measure,
        |measures| box_figures("E1", "12/1", &["fifo"], measures);
    "E2": "12/1 Mbit/s with any AQM", "Does any AQM help?";
        SETUP, 10; || arms(&["12/1"], &AQMS), measure,
        |measures| box_figures("E2", "12/1", &AQMS, measures);
    "E3": "1.5/0.5 Mbit/s", "And on a slow line?";
        SETUP, 10; || arms(&["1.5/0.5"], &ALL), measure,
        |measures| box_figures("E3", "1.5/0.5", &ALL, measures);
    "E4": "25/5 Mbit/s", "And where there is room for all?";
        SETUP, 10; || arms(&["25/5"], &ALL), measure,
        |measures| box_figures("E4", "25/5", &ALL, measures);
    "E5": "fq_pie against fq_codel", "What does PIE's tolerance of bursts cost?";
        SETUP, 10; || arms(&LINES, &["fq_codel", "fq_pie"]), measure,
        |measures| box_figures("E5", "12/1", &["fq_codel", "fq_pie"], measures);
    "E6": "DASH on all lines", "Which video quality does each discipline leave?";
        SETUP, 10; || arms(&ALL_LINES, &ALL), measure, dash_figures;
    "E7": "Latency and throughput by application",
        "The whole picture, as in the paper's figures 2 and 3.";
        SETUP, 10; || arms(&LINES, &ALL), measure, all_figures;
}

/// Lines of the paper's figures, and of its video: Mbit/s down and up.
pub(super) const LINES: [&str; 3] = ["25/5", "12/1", "1.5/0.5"];
pub(super) const ALL_LINES: [&str; 4] = ["25/5", "12/1", "4/1", "1.5/0.5"];
const ALL: [&str; 4] = ["fifo", "pie", "fq_codel", "fq_pie"];
pub(super) const AQMS: [&str; 3] = ["pie", "fq_codel", "fq_pie"];
/// Round-trip times of the competing flows, ms.
pub(super) const RTTS: [u32; 3] = [40, 140, 240];
/// Applications, as measures call them.
pub(super) const APPLICATIONS: [&str; 6] =
    ["iot-low", "iot-high", "video", "bulk up", "bulk down", "dash"];

fn words(discipline: &str) -> &'static str {
    match discipline {
        "pie" => "pie freebsd limit 1000",
        "fq_codel" => "fq_codel limit 1000 noecn",
        "fq_pie" => "fq_pie freebsd no_dq_rate_estimator limit 1000",
        "fifo" => "pfifo limit 490",
        newcomer => contenders::words(newcomer).unwrap_or_default(),
    }
}

/// The name of an arm.
pub(super) fn home(line: &str, discipline: &str, rtt: u32) -> String {
    format!("{line} {discipline} {rtt}")
}

fn arms(lines: &[&str], disciplines: &[&str]) -> Vec<Arm> {
    let mut arms = Vec::new();
    for line in lines {
        for discipline in contenders::names(disciplines) {
            for rtt in RTTS {
                let file = scenario(line, words(discipline), rtt);
                arms.push(Arm::scenario(home(line, discipline, rtt), file));
            }
        }
    }
    arms
}

fn scenario(line: &str, words: &str, rtt: u32) -> File {
    let (down, up) = match line {
        "25/5" => (25_000, 5_000),
        "12/1" => (12_000, 1_000),
        "4/1" => (4_000, 1_000),
        _ => (1_500, 500),
    };
    let iot = |name: &str, per_second| {
        let messages = Traffic::iot().name(name).size(100).per_second(per_second).direction(Up);
        messages.internet(&["near"]).nagle(false).delayed_ack(false).cc(Reno).ecn(EcnMode::Off)
    };
    let video = Traffic::cbr().name("video").size(700).rate(kbit(280)).both_ways();
    let bulk = Traffic::bulk().stagger(secs(1)).ecn(EcnMode::Off).both_ways();
    File::new(secs(200), Line::new(kbit(up), kbit(down), ms(40)))
        .warmup(secs(30))
        .interval(ms(250))
        .qdisc(words)
        .host(Host::internet("near").rtt(ms(40)))
        .host(Host::internet("far").rtt(ms(rtt.into())))
        .traffic(iot("iot-low", 2.5))
        .traffic(iot("iot-high", 125.0))
        .traffic(video.internet(&["far"]))
        .traffic(bulk.internet(&["far"]))
        .traffic(Traffic::dash().internet(&["near"]).cc(Reno).ecn(EcnMode::Off))
}

/// Payload rates and induced round-trip times of all applications, and what became of the video.
fn measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let (mut medians, mut spreads) = (Vec::new(), Vec::new());
    for application in APPLICATIONS {
        let groups = match application {
            "video" => ["video up", "video down"],
            one => [one, one],
        };
        // There and back: a quantile of the one way and the same quantile of the other.
        let up = view.sojourn_of(groups[0], Up);
        let down = view.sojourn_of(groups[1], Down);
        let at = |per_mille| quantile_ms(&up, per_mille) + quantile_ms(&down, per_mille);
        let (low, median, high) = (at(250), at(500), at(750));
        for (part, value) in [(Median, median), (Low, low), (High, high)] {
            sample.value(Quantity::Rtt(application, part), value);
        }
        medians.push(median);
        spreads.push(high - low);
        let flows = view.flows(groups[0]);
        sample.value(Quantity::Rate(application, Median), view.goodput(&flows));
        let series = view.throughput(&flows);
        // Five-second windows, as the paper's: twenty intervals.
        let windows: Vec<f64> = series.windows(20).skip(120).step_by(20).map(mean_of).collect();
        for (part, q) in [(Low, 0.25), (High, 0.75)] {
            let value = quantile(&windows, q).unwrap_or(f64::NAN);
            sample.value(Quantity::Rate(application, part), value);
        }
    }
    sample.value(Quantity::MeanRtt, mean(&medians));
    sample.value(Quantity::Spread, mean(&spreads));
    sample.value(Quantity::GreatestRtt, greatest(&medians));
    for flow in view.flows("dash") {
        let Outcome::Dash(playback) = &flow.outcome else { continue };
        let from: Time = view.results().window.0;
        let chunks = || playback.chunks.iter().filter(|chunk| chunk.asked >= from);
        let rates: Vec<f64> = chunks().map(|chunk| chunk.rate as f64 * 1e-6).collect();
        let achieved: Vec<f64> = chunks().map(|chunk| chunk.throughput as f64 * 1e-6).collect();
        // A stream that fetched nothing in all that time achieved nothing.
        sample.value(Quantity::Chosen, quantile(&rates, 0.5).unwrap_or(0.0));
        sample.value(Quantity::Achieved, quantile(&achieved, 0.5).unwrap_or(0.0));
        sample.value(Quantity::Stalled, millis(playback.stalled) / 1000.0);
    }
    sample
}

fn mean_of(points: &[[f64; 2]]) -> f64 {
    points.iter().map(|point| point[1]).sum::<f64>() / points.len() as f64
}

fn quantile_ms(distribution: &Distribution, per_mille: u64) -> f64 {
    distribution.quantile(per_mille).map_or(0.0, millis)
}

/// Figures 2 and 3: boxes of medians and quartiles, over all RTTs and repetitions.
fn box_figures(id: &str, line: &str, disciplines: &[&str], measures: &Measures) -> Vec<Figure> {
    type By = fn(&'static str, Part) -> Quantity;
    let figure = |(what, title, unit, quantity): (&str, &str, &str, By)| {
        let names = |application: &&'static str, discipline: &str| {
            let of = |rtt| {
                let of = |part| of(home(line, discipline, rtt), quantity(application, part));
                [Median, Low, High].map(of)
            };
            RTTS.map(of).concat()
        };
        let plot = boxes(measures, &APPLICATIONS, &contenders::names(disciplines), &names);
        let title = format!("{title}, {line} Mbit/s (quartiles, all RTTs and repetitions)");
        let axes = (Axis::linear(""), Axis::log(unit));
        Figure::new((&format!("{id}-{what}"), &title), axes, plot)
    };
    let rate: By = Quantity::Rate;
    [
        ("rate", "Throughput", "Mbit/s", rate),
        ("rtt", "Induced round-trip time", "ms", Quantity::Rtt),
    ]
    .map(figure)
    .into()
}

fn all_figures(measures: &Measures) -> Vec<Figure> {
    let of = |line: &str| {
        let id = format!("E7-{}", line.replace(['/', '.'], "-"));
        box_figures(&id, line, &ALL, measures)
    };
    LINES.into_iter().flat_map(of).collect()
}

/// A line and a round-trip time, as categories of a figure.
struct Case(&'static str, u32);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

fn dash_figures(measures: &Measures) -> Vec<Figure> {
    let cases: Vec<Case> =
        ALL_LINES.iter().flat_map(|line| RTTS.map(|rtt| Case(line, rtt))).collect();
    let figure = |(what, quantity): (&str, Quantity)| {
        let id = (&*format!("E6-{what}"), &*format!("DASH: {what} rate (median of chunks)"));
        let measure =
            |Case(line, rtt): &Case, discipline: &&str| of(home(line, discipline, *rtt), quantity);
        dots(id, Axis::linear("Mbit/s"), measures, &cases, &contenders::names(&ALL), &measure)
    };
    [("achieved", Quantity::Achieved), ("chosen", Quantity::Chosen)].map(figure).into()
}
