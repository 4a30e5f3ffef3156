//! Deficit Round Robin with Limited Deficit Savings (Menth, Mehl, Veith 2018): D1 to D6.
//!
//! Section 4.1: users on access lines of 1 Gbit/s and 1 µs, a bottleneck of 10 Mbit/s with 5 ms
//! (or 50 ms) of one-way delay, DRR with a queue for each user and a quantum of 1500 bytes, which
//! is one packet. The link counts IP packets, so that 1500 bytes take 1.2 ms; the scheduler counts
//! frames, so that quantum and savings are in frames of a full packet: a quantum that is a few
//! bytes short of one would make every newcomer wait for two rounds. New Reno, flows start within
//! the first second, statistics from 5 s on. The length of a run is not given: 30 s are measured.

use simnel_sim::Direction;

use super::measure::{of, Measures, Sample, View};
use super::plots::{dots, sweep};
use super::{Arm, Experiment, Paper};
use crate::figures::{Axis, Figure, Plot};
use simnel_scenario::summary::{millis, Times};

const SETUP: &str = "5 heavy users with 10 saturated flows each and 35 light users with one, over \
                     10 Mbit/s; access 1 Gbit/s and 1 us, 5 ms each way; DRR by user, quantum 1500 \
                     bytes; New Reno; 100 repetitions.";

const fn experiment(
    id: &'static str,
    title: &'static str,
    question: &'static str,
    setup: &'static str,
    arms: fn() -> Vec<Arm>,
    measure: fn(&View<'_>) -> Sample,
    figures: fn(&Measures) -> Vec<Figure>,
) -> Experiment {
    let paper = Paper::DeficitSavings;
    Experiment { id, paper, title, question, setup, repetitions: 100, arms, measure, figures }
}

/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment(
        "D1",
        "Plain DRR, drop-on-enqueue",
        "How much buffer does DRR need to be fair between users?",
        SETUP,
        || BUFFERS.iter().map(|buffer| enqueue(*buffer, None, USUAL)).collect(),
        users_measure,
        |measures| users_figures("D1", "buffer (packets)", "enqueue", &BUFFERS, measures),
    ),
    experiment(
        "D2",
        "Plain DRR, drop-on-dequeue",
        "How old may packets get before fairness comes?",
        SETUP,
        d2_arms,
        users_measure,
        |measures| users_figures("D2", "delay threshold (ms)", "dequeue", &AGES, measures),
    ),
    experiment(
        "D3",
        "DRR with savings, drop-on-enqueue, 20 packets",
        "Do savings make a short buffer fair?",
        SETUP,
        || SAVINGS.iter().map(|savings| enqueue(20, Some(*savings), USUAL)).collect(),
        users_measure,
        |measures| users_figures("D3", "D_max (packets)", "enqueue 20 savings", &SAVINGS, measures),
    ),
    experiment(
        "D4",
        "DRR with savings, drop-on-dequeue, 24 ms",
        "Do savings make a short delay threshold fair?",
        SETUP,
        || SAVINGS.iter().map(|savings| dequeue(24, Some(*savings), USUAL)).collect(),
        users_measure,
        |measures| users_figures("D4", "D_max (packets)", "dequeue 24 savings", &SAVINGS, measures),
    ),
    experiment(
        "D5",
        "A 100 kB transfer against 20 busy users",
        "How fast is a user who comes seldom?",
        "20 users with 5, 10 or 20 saturated flows each; a 21st transfers 100 kB from 5 s on; a \
         fair share would take 1.68 s. Otherwise as D1; S_B = 20 packets or T_D = 24 ms.",
        d5_arms,
        transfer_measure,
        d5_figures,
    ),
    experiment(
        "D6",
        "The same with 50 ms, and with CUBIC",
        "Do the results depend on the path or on the congestion control?",
        "As D1 to D5, at chosen points: 50 ms each way with New Reno, 5 ms with CUBIC.",
        d6_arms,
        d6_measure,
        d6_figures,
    ),
];

/// Sizes of the buffer in packets.
const BUFFERS: [u32; 9] = [5, 10, 15, 20, 30, 40, 50, 75, 100];
/// Delay thresholds in ms: the time that as many packets take.
const AGES: [u32; 10] = [6, 12, 18, 24, 36, 48, 60, 90, 105, 120];
/// Limits of savings in packets.
const SAVINGS: [u32; 9] = [0, 1, 2, 4, 6, 8, 10, 15, 20];

/// One-way delay of the bottleneck in ms, congestion control.
type Path = (u32, &'static str);
const USUAL: Path = (5, "reno");

/// A packet of the paper, 1500 bytes of IP, as the scheduler counts it: an Ethernet frame.
const FRAME: u32 = 1514;

/// The discipline's words: a queue for each sending host. The table is set-associative, and its 128
/// sets of 8 are more than enough for every user to have a queue of its own, as in the paper.
fn words(strategy: &str, savings: Option<u32>) -> String {
    let savings = savings.map_or(String::new(), |packets| format!(" savings {}", packets * FRAME));
    format!("drr srchost queues 1024 quantum {FRAME} {strategy}{savings}")
}

fn line(words: &str, delay: u32, duration: u32) -> String {
    format!(
        "duration = \"{duration}s\"\nwarmup = \"5s\"\n\
         qdisc = {{ up = \"{words}\", down = \"pfifo limit 1000\" }}\n\n[line]\nup = \"10mbit\"\n\
         down = \"10mbit\"\nrtt = \"{}ms\"\nframing = \"overhead 0\"\n",
        2 * delay
    )
}

fn user(name: &str, count: u32) -> String {
    format!(
        "\n[[host]]\nname = \"{name}\"\nside = \"home\"\ncount = {count}\nrtt = \"2us\"\n\
         rate = \"1gbit\"\n"
    )
}

fn flows(name: &str, count: u32, cc: &str, more: &str) -> String {
    format!(
        "\n[[traffic]]\nkind = \"bulk\"\nname = \"{name}\"\nhome = \"{name}\"\ndirection = \"up\"\n\
         count = {count}\ncc = \"{cc}\"\necn = false\n{more}"
    )
}

/// Heavy and light users.
fn users(strategy: &str, savings: Option<u32>, (delay, cc): Path) -> String {
    let mut text = line(&words(strategy, savings), delay, 35);
    text += &(user("heavy", 5) + &user("light", 35));
    text += &flows("heavy", 50, cc, "stagger = \"1s\"\n");
    text + &flows("light", 35, cc, "stagger = \"1s\"\n")
}

/// The name of an arm: of the strategy, what it is set to, and what is not as usual.
fn name(strategy: &str, set: u32, savings: Option<u32>, (delay, cc): Path) -> String {
    let mut name = format!("{strategy} {set}");
    if let Some(savings) = savings {
        name += &format!(" savings {savings}");
    }
    if delay != USUAL.0 {
        name += &format!(" {delay} ms");
    }
    if cc != USUAL.1 {
        name += &format!(" {cc}");
    }
    name
}

fn on_enqueue(packets: u32) -> String {
    format!("buffer {packets}")
}

/// A buffer without limit, as far as one is needed.
fn on_dequeue(ms: u32) -> String {
    format!("buffer 100000 max-age {ms}ms")
}

fn enqueue(packets: u32, savings: Option<u32>, path: Path) -> Arm {
    let text = users(&on_enqueue(packets), savings, path);
    Arm::scenario(name("enqueue", packets, savings, path), text)
}

fn dequeue(ms: u32, savings: Option<u32>, path: Path) -> Arm {
    Arm::scenario(name("dequeue", ms, savings, path), users(&on_dequeue(ms), savings, path))
}

fn d2_arms() -> Vec<Arm> {
    let mut arms: Vec<Arm> = AGES.iter().map(|ms| dequeue(*ms, None, USUAL)).collect();
    // What D1 has at the same transmission times, to compare.
    arms.extend([15, 20].map(|packets| enqueue(packets, None, USUAL)));
    arms
}

/// Rates of a heavy and of a light user, delays, how full the buffer is.
fn users_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let rate = |name: &str, users: f64| view.goodput(&view.flows(name)) / users;
    let (heavy, light) = (rate("heavy", 5.0), rate("light", 35.0));
    sample.value("heavy", heavy);
    sample.value("light", light);
    sample.value("gap", heavy / light);
    for name in ["heavy", "light"] {
        let delay = Times::of(&view.sojourn_of(name, Direction::Up)).mean;
        sample.value(format!("{name} delay"), delay);
    }
    let delay = Times::of(&view.sojourn(Direction::Up)).mean;
    sample.value("delay", delay);
    // Little: packets a second times seconds.
    let packets = view.results().lines[Direction::Up as usize].packets as f64;
    sample.value("occupancy", packets / view.window_s() * delay / 1000.0);
    sample
}

fn users_figures(
    id: &str,
    x: &str,
    arm: &'static str,
    settings: &[u32],
    measures: &Measures,
) -> Vec<Figure> {
    let xs: Vec<f64> = settings.iter().map(|setting| f64::from(*setting)).collect();
    let measure = |what: &str, x: f64| of(format!("{arm} {x}"), what);
    let rates = sweep(measures, &xs, &["heavy", "light"], &measure);
    let delays = sweep(measures, &xs, &["heavy delay", "light delay"], &measure);
    let figure = |what: &str, title: &str, unit: &str, plot: Plot| {
        let axes = (Axis::linear(x), Axis::linear(unit));
        Figure::new((&format!("{id}-{what}"), title), axes, plot)
    };
    vec![
        figure("throughput", "Throughput of a user", "Mbit/s", rates),
        figure("delay", "Mean queueing delay", "ms", delays),
    ]
}

/// Flows of each of the twenty busy users.
const LOADS: [u32; 3] = [5, 10, 20];
/// Up to more than the transfer's 70 packets: with 20 saved up, the other 49 at a user's share of
/// 40 a second alone take 1.2 s.
const D5_SAVINGS: [u32; 8] = [0, 1, 2, 5, 10, 20, 50, 100];

/// The infrequent user; thirty seconds are enough for the slowest transfer.
fn transfer(strategy: &str, load: u32, savings: u32, (delay, cc): Path) -> String {
    let mut text = line(&words(strategy, Some(savings)), delay, 35);
    text += &(user("busy", 20) + &user("seldom", 1));
    text += &flows("busy", 20 * load, cc, "stagger = \"1s\"\n");
    text + &flows("seldom", 1, cc, "start = \"5s\"\nsize = 100000\n")
}

fn d5_arms() -> Vec<Arm> {
    let mut arms = Vec::new();
    for (name, strategy) in [("enqueue", on_enqueue(20)), ("dequeue", on_dequeue(24))] {
        for load in LOADS {
            for savings in D5_SAVINGS {
                let text = transfer(&strategy, load, savings, USUAL);
                let name = format!("{name} {load} flows savings {savings}");
                arms.push(Arm { until_done: true, ..Arm::scenario(name, text) });
            }
        }
    }
    arms
}

/// Time of the transfer in seconds. One that was not complete counts as long as it ran.
fn transfer_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let end = view.results().window.1;
    for flow in view.flows("seldom") {
        let time = flow.finished.unwrap_or(end).since(flow.started);
        sample.value("time", millis(time) / 1000.0);
    }
    sample
}

fn d5_figures(measures: &Measures) -> Vec<Figure> {
    let xs = D5_SAVINGS.map(f64::from);
    ["enqueue", "dequeue"]
        .map(|strategy| {
            let measure = |load: &str, savings: f64| {
                of(format!("{strategy} {load} savings {savings}"), "time")
            };
            let plot = sweep(measures, &xs, &["5 flows", "10 flows", "20 flows"], &measure);
            let axes = (Axis::linear("D_max (packets)"), Axis::linear("time (s)"));
            let title = format!("Time of 100 kB, drop-on-{strategy}");
            Figure::new((&format!("D5-{strategy}"), &title), axes, plot)
        })
        .into()
}

fn d6_arms() -> Vec<Arm> {
    let (far, cubic) = ((50, "reno"), (5, "cubic"));
    let mut arms = Vec::new();
    for path in [far, cubic] {
        arms.extend([20, 50].map(|packets| enqueue(packets, None, path)));
        arms.extend([24, 90].map(|ms| dequeue(ms, None, path)));
        arms.extend([0, 10].map(|savings| enqueue(20, Some(savings), path)));
        arms.extend([0, 6].map(|savings| dequeue(24, Some(savings), path)));
        for (strategy, words) in [("enqueue", on_enqueue(20)), ("dequeue", on_dequeue(24))] {
            for savings in [0, 100] {
                let name = name(&format!("transfer {strategy}"), 10, Some(savings), path);
                let text = transfer(&words, 10, savings, path);
                arms.push(Arm { until_done: true, ..Arm::scenario(name, text) });
            }
        }
    }
    arms
}

fn d6_measure(view: &View<'_>) -> Sample {
    match view.arm.starts_with("transfer") {
        true => transfer_measure(view),
        false => users_measure(view),
    }
}

fn d6_figures(measures: &Measures) -> Vec<Figure> {
    let arms: Vec<String> = d6_arms().into_iter().map(|arm| arm.name).collect();
    let users: Vec<&str> =
        arms.iter().map(String::as_str).filter(|name| !name.starts_with("transfer")).collect();
    vec![dots(
        ("D6", "Throughput of a user, other paths and congestion control"),
        Axis::linear("Mbit/s"),
        measures,
        &users,
        &["heavy", "light"],
        &|arm, name| of(arm, name),
    )]
}
