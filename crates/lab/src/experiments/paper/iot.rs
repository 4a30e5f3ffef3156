//! AQM for IoT flows at the home gateway (Kua, Nguyen, Armitage, Branch 2017): E1 to E7.
//!
//! Section III: a home line with the same discipline in both directions and everything at once:
//! two IoT flows and a DASH stream at 40 ms, a video call and bulk transfers at 40, 140 or 240 ms
//! (the three that the paper shows). 200 s, of which those from 30 s on count. Disciplines as in
//! FreeBSD: FIFO of 490 packets, PIE, FQ-CoDel, FQ-PIE of 1000 packets. All experiments look at the
//! same runs.

use simnel_core::Time;
use simnel_sim::{Direction, Distribution, Outcome};

use super::measure::{greatest, mean, of, Measures, Sample, View};
use super::plots::dots;
use super::{contenders, Arm, Experiment, Paper};
use crate::figures::{Axis, Boxes, Figure, Plot};
use crate::statistics::{five_numbers, quantile};
use simnel_scenario::summary::millis;

const SETUP: &str = "IoT low (100 B, 2.5/s) and high (100 B, 125/s) over TCP without Nagle and \
                     delayed ACKs, a video call (700 B every 20 ms, both ways), bulk up and down \
                     (CUBIC), DASH (New Reno). IoT and DASH at 40 ms, the others at 40, 140 or 240 \
                     ms. No ECN; 200 s, statistics from 30 s on.";

const fn experiment(
    id: &'static str,
    title: &'static str,
    question: &'static str,
    arms: fn() -> Vec<Arm>,
    figures: fn(&Measures) -> Vec<Figure>,
) -> Experiment {
    Experiment {
        id,
        paper: Paper::Iot,
        title,
        question,
        setup: SETUP,
        repetitions: 10,
        arms,
        measure,
        figures,
    }
}

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment(
        "E1",
        "12/1 Mbit/s with FIFO",
        "What does a long FIFO do to small flows?",
        || arms(&["12/1"], &["fifo"]),
        |measures| box_figures("E1", "12/1", &["fifo"], measures),
    ),
    experiment(
        "E2",
        "12/1 Mbit/s with any AQM",
        "Does any AQM help?",
        || arms(&["12/1"], &AQMS),
        |measures| box_figures("E2", "12/1", &AQMS, measures),
    ),
    experiment(
        "E3",
        "1.5/0.5 Mbit/s",
        "And on a slow line?",
        || arms(&["1.5/0.5"], &ALL),
        |measures| box_figures("E3", "1.5/0.5", &ALL, measures),
    ),
    experiment(
        "E4",
        "25/5 Mbit/s",
        "And where there is room for all?",
        || arms(&["25/5"], &ALL),
        |measures| box_figures("E4", "25/5", &ALL, measures),
    ),
    experiment(
        "E5",
        "fq_pie against fq_codel",
        "What does PIE's tolerance of bursts cost?",
        || arms(&["25/5", "12/1", "1.5/0.5"], &["fq_codel", "fq_pie"]),
        |measures| box_figures("E5", "12/1", &["fq_codel", "fq_pie"], measures),
    ),
    experiment(
        "E6",
        "DASH on all lines",
        "Which video quality does each discipline leave?",
        || arms(&["25/5", "12/1", "4/1", "1.5/0.5"], &ALL),
        dash_figures,
    ),
    experiment(
        "E7",
        "Latency and throughput by application",
        "The whole picture, as in the paper's figures 2 and 3.",
        || arms(&["25/5", "12/1", "1.5/0.5"], &ALL),
        |measures| {
            ["25/5", "12/1", "1.5/0.5"]
                .iter()
                .flat_map(|line| {
                    let id = format!("E7-{}", line.replace(['/', '.'], "-"));
                    box_figures(&id, line, &ALL, measures)
                })
                .collect()
        },
    ),
];

const ALL: [&str; 4] = ["fifo", "pie", "fq_codel", "fq_pie"];
const AQMS: [&str; 3] = ["pie", "fq_codel", "fq_pie"];
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

fn arms(lines: &[&str], disciplines: &[&str]) -> Vec<Arm> {
    let mut arms = Vec::new();
    for line in lines {
        for discipline in contenders::names(disciplines) {
            for rtt in RTTS {
                let name = format!("{line} {discipline} {rtt}");
                arms.push(Arm::scenario(name, scenario(line, words(discipline), rtt)));
            }
        }
    }
    arms
}

fn scenario(line: &str, words: &str, rtt: u32) -> String {
    let (down, up) = line.split_once('/').unwrap_or((line, line));
    format!(
        r#"duration = "200s"
warmup = "30s"
interval = "250ms"
qdisc = "{words}"

[line]
up = "{up}mbit"
down = "{down}mbit"
rtt = "40ms"

[[host]]
name = "near"
side = "internet"
rtt = "40ms"

[[host]]
name = "far"
side = "internet"
rtt = "{rtt}ms"

[[traffic]]
name = "iot-low"
kind = "iot"
internet = "near"
direction = "up"
size = 100
rate = "2.5/s"
nagle = false
delayed-ack = false
cc = "reno"
ecn = false

[[traffic]]
name = "iot-high"
kind = "iot"
internet = "near"
direction = "up"
size = 100
rate = "125/s"
nagle = false
delayed-ack = false
cc = "reno"
ecn = false

[[traffic]]
name = "video"
kind = "cbr"
internet = "far"
direction = "both"
size = 700
rate = "280kbit"

[[traffic]]
name = "bulk"
kind = "bulk"
internet = "far"
direction = "both"
stagger = "1s"
ecn = false

[[traffic]]
name = "dash"
kind = "dash"
internet = "near"
cc = "reno"
ecn = false
"#
    )
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
        let up = view.sojourn_of(groups[0], Direction::Up);
        let down = view.sojourn_of(groups[1], Direction::Down);
        let at = |per_mille| quantile_ms(&up, per_mille) + quantile_ms(&down, per_mille);
        let (low, median, high) = (at(250), at(500), at(750));
        sample.value(format!("{application} rtt"), median);
        sample.value(format!("{application} rtt low"), low);
        sample.value(format!("{application} rtt high"), high);
        medians.push(median);
        spreads.push(high - low);
        let flows = view.flows(groups[0]);
        sample.value(format!("{application} rate"), view.goodput(&flows));
        let series = view.throughput(&flows);
        // Five-second windows, as the paper's: twenty intervals.
        let windows: Vec<f64> = series.windows(20).skip(120).step_by(20).map(mean_of).collect();
        for (name, q) in [("low", 0.25), ("high", 0.75)] {
            let value = quantile(&windows, q).unwrap_or(f64::NAN);
            sample.value(format!("{application} rate {name}"), value);
        }
    }
    sample.value("rtt", mean(&medians));
    sample.value("spread", mean(&spreads));
    sample.value("greatest rtt", greatest(&medians));
    for flow in view.flows("dash") {
        let Outcome::Dash(playback) = &flow.outcome else { continue };
        let from: Time = view.results().window.0;
        let chunks = || playback.chunks.iter().filter(|chunk| chunk.asked >= from);
        let rates: Vec<f64> = chunks().map(|chunk| chunk.rate as f64 * 1e-6).collect();
        let achieved: Vec<f64> = chunks().map(|chunk| chunk.throughput as f64 * 1e-6).collect();
        // A stream that fetched nothing in all that time achieved nothing.
        sample.value("dash chosen", quantile(&rates, 0.5).unwrap_or(0.0));
        sample.value("dash achieved", quantile(&achieved, 0.5).unwrap_or(0.0));
        sample.value("dash stalled", millis(playback.stalled) / 1000.0);
    }
    sample
}

fn mean_of(points: &[[f64; 2]]) -> f64 {
    points.iter().map(|point| point[1]).sum::<f64>() / points.len() as f64
}

fn quantile_ms(distribution: &Distribution, per_mille: u64) -> f64 {
    distribution.quantile(per_mille).map_or(0.0, millis)
}

/// Figures 2 and 3: boxes of the repetitions' medians and quartiles at 140 ms.
fn box_figures(id: &str, line: &str, disciplines: &[&str], measures: &Measures) -> Vec<Figure> {
    [("rate", "Throughput", "Mbit/s"), ("rtt", "Induced round-trip time", "ms")]
        .map(|(what, title, unit)| {
            let value = |application: &str, discipline: &str| {
                let all: Vec<f64> = RTTS
                    .iter()
                    .flat_map(|rtt| {
                        let name = |part: &str| {
                            of(
                                format!("{line} {discipline} {rtt}"),
                                format!("{application} {what}{part}"),
                            )
                        };
                        ["", " low", " high"].map(|part| measures.values(&name(part)).to_vec())
                    })
                    .flatten()
                    .collect();
                five_numbers(&all)
            };
            let disciplines = contenders::names(disciplines);
            let series = disciplines.iter().map(|discipline| Boxes {
                name: discipline.to_string(),
                values: APPLICATIONS.iter().map(|app| value(app, discipline)).collect(),
            });
            let categories = APPLICATIONS.map(String::from).into();
            let plot = Plot::Boxes(categories, series.collect());
            let title = format!("{title}, {line} Mbit/s (quartiles, all RTTs and repetitions)");
            let axes = (Axis::linear(""), Axis::log(unit));
            Figure::new((&format!("{id}-{what}"), &title), axes, plot)
        })
        .into()
}

fn dash_figures(measures: &Measures) -> Vec<Figure> {
    let lines = ["25/5", "12/1", "4/1", "1.5/0.5"];
    let categories: Vec<String> =
        lines.iter().flat_map(|line| RTTS.map(|rtt| format!("{line} {rtt}"))).collect();
    let names: Vec<&str> = categories.iter().map(String::as_str).collect();
    ["achieved", "chosen"]
        .map(|what| {
            dots(
                (&format!("E6-{what}"), &format!("DASH: {what} rate (median of chunks)")),
                Axis::linear("Mbit/s"),
                measures,
                &names,
                &contenders::names(&ALL),
                &|category, discipline| {
                    let (line, rtt) = category.split_once(' ').unwrap_or((category, ""));
                    of(format!("{line} {discipline} {rtt}"), format!("dash {what}"))
                },
            )
        })
        .into()
}
