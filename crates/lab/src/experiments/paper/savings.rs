//! Deficit Round Robin with Limited Deficit Savings (Menth, Mehl, Veith 2018): D1 to D6.
//!
//! Section 4.1: users on access lines of 1 Gbit/s and 1 µs share a bottleneck of 10 Mbit/s. Its
//! one-way delay is 5 ms (or 50 ms). It runs DRR with a queue for each user and a quantum of 1500
//! bytes, which is one packet. The link counts IP packets, so that 1500 bytes take 1.2 ms. The
//! scheduler counts frames, so that quantum and savings are in frames of a full packet. A quantum
//! that is a few bytes short of one would make every newcomer wait for two rounds. New Reno, flows
//! start within the first second, statistics from 5 s on. The length of a run is not given: 30 s
//! are measured.

use std::fmt;

use simnel_core::Span;
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_scenario::summary::{millis, Times};
use simnel_sim::Direction::Up;
use simnel_tcp::CongestionControl::{self, Cubic, Reno};
use simnel_tcp::EcnMode;

use super::measure::{of, quantities, Measures, Sample, View};
use super::plots::{arms_dots, sweep};
use super::{mbit, ms, secs, Arm, Experiment, Paper};
use crate::figures::{Axis, Figure};

quantities! {
    /// Quantities of this paper.
    Quantity {
        Heavy = "heavy", Light = "light", Gap = "heavy over light", HeavyDelay = "heavy delay",
        LightDelay = "light delay", Delay = "delay", Occupancy = "occupancy", Time = "time",
    }
}

const SETUP: &str = "5 heavy users with 10 saturated flows each and 35 light users with one, over \
                     10 Mbit/s; access 1 Gbit/s and 1 us, 5 ms each way; DRR by user, quantum 1500 \
                     bytes; New Reno; 100 repetitions.";

experiments! {
    Paper::DeficitSavings;
    "D1": "Plain DRR, drop-on-enqueue", "How much buffer does DRR need to be fair between users?";
        SETUP, 100; || BUFFERS.map(|buffer| enqueue(buffer).arm()).into(), users_measure,
        |measures| users_figures("D1", "buffer (packets)", &BUFFERS, &enqueue, measures);
    "D2": "Plain DRR, drop-on-dequeue", "How old may packets get before fairness comes?";
        SETUP, 100; d2_arms, users_measure,
        |measures| users_figures("D2", "delay threshold (ms)", &AGES, &dequeue, measures);
    "D3": "DRR with savings, drop-on-enqueue, 20 packets", "Do savings make a short buffer fair?";
        SETUP, 100; || saving_arms(enqueue(20)), users_measure,
        |measures| saving_figures("D3", enqueue(20), measures);
    "D4": "DRR with savings, drop-on-dequeue, 24 ms",
        "Do savings make a short delay threshold fair?";
        SETUP, 100; || saving_arms(dequeue(24)), users_measure,
        |measures| saving_figures("D4", dequeue(24), measures);
    "D5": "A 100 kB transfer against 20 busy users", "How fast is a user who comes seldom?";
        "20 users with 5, 10 or 20 saturated flows each; a 21st transfers 100 kB from 5 s on; a \
        fair share would take 1.68 s. Otherwise as D1; S_B = 20 packets or T_D = 24 ms.",
        100; d5_arms, transfer_measure, d5_figures;
    "D6": "The same with 50 ms, and with CUBIC",
        "Do the results depend on the path or on the congestion control?";
        "As D1 to D5, at chosen points: 50 ms each way with New Reno, 5 ms with CUBIC.",
        100; d6_arms, d6_measure, d6_figures;
}

/// Sizes of the buffer in packets.
const BUFFERS: [u32; 9] = [5, 10, 15, 20, 30, 40, 50, 75, 100];
/// Delay thresholds in ms: the time that as many packets take.
const AGES: [u32; 10] = [6, 12, 18, 24, 36, 48, 60, 90, 105, 120];
/// Limits of savings in packets.
const SAVINGS: [u32; 9] = [0, 1, 2, 4, 6, 8, 10, 15, 20];

/// One-way delay of the bottleneck in ms, congestion control, and what names of arms say of it.
type Path = (u64, CongestionControl, &'static str);
const USUAL: Path = (5, Reno, "");
pub(super) const FAR: Path = (50, Reno, " 50 ms");
pub(super) const CUBIC: Path = (5, Cubic, " cubic");

/// An arm: drop-on-enqueue or not, the packets or milliseconds that it is set to, savings in
/// packets, a path. With a load, it has a transfer beside twenty users with so many flows each;
/// without one, heavy and light users. Shown as its name.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    on_enqueue: bool,
    limit: u32,
    load: Option<u32>,
    savings: Option<u32>,
    path: Path,
}

/// Drop-on-enqueue with a buffer of so many packets.
pub(super) fn enqueue(limit: u32) -> Setting {
    Setting { on_enqueue: true, limit, load: None, savings: None, path: USUAL }
}

/// Drop-on-dequeue of packets that are older than so many milliseconds.
pub(super) fn dequeue(limit: u32) -> Setting {
    Setting { on_enqueue: false, ..enqueue(limit) }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strategy = self.strategy();
        let savings = self.savings.map_or(String::new(), |packets| format!(" savings {packets}"));
        match (self.load, self.path.2) {
            (None, path) => write!(f, "{strategy} {}{savings}{path}", self.limit),
            (Some(load), "") => write!(f, "{strategy} {load} flows{savings}"),
            (Some(load), path) => write!(f, "transfer {strategy} {load}{savings}{path}"),
        }
    }
}

impl Setting {
    pub(super) fn saving(self, packets: u32) -> Setting {
        Setting { savings: Some(packets), ..self }
    }

    pub(super) fn beside(self, load: u32) -> Setting {
        Setting { load: Some(load), ..self }
    }

    pub(super) fn over(self, path: Path) -> Setting {
        Setting { path, ..self }
    }

    fn strategy(&self) -> &'static str {
        if self.on_enqueue {
            "enqueue"
        } else {
            "dequeue"
        }
    }

    fn arm(self) -> Arm {
        let flows = |name: &str, count| flows(name, count, self.path.1);
        let busy = |name: &str, count| flows(name, count).stagger(secs(1));
        let file = match self.load {
            None => self
                .file()
                .host(host("heavy", 5))
                .host(host("light", 35))
                .traffic(busy("heavy", 50))
                .traffic(busy("light", 35)),
            // Thirty seconds are enough for the slowest transfer.
            Some(load) => self
                .file()
                .host(host("busy", 20))
                .host(host("seldom", 1))
                .traffic(busy("busy", 20 * load))
                .traffic(flows("seldom", 1).start(secs(5)).size(100_000)),
        };
        Arm { until_done: self.load.is_some(), ..Arm::scenario(self, file) }
    }

    /// DRR with a queue for each sending host. The table is set-associative. Its 128 sets of 8 are
    /// more than enough for every user to have a queue of its own, as in the paper. Where age is
    /// the limit, the buffer has none, as far as one is needed.
    fn file(&self) -> File {
        let limit = match self.on_enqueue {
            true => format!("buffer {}", self.limit),
            false => format!("buffer 100000 max-age {}ms", self.limit),
        };
        let saved = self.savings.map_or(String::new(), |one| format!(" savings {}", one * FRAME));
        let drr = format!("drr srchost queues 1024 quantum {FRAME} {limit}{saved}");
        let line = Line::new(mbit(10), mbit(10), ms(2 * self.path.0)).framing("overhead 0");
        File::new(secs(35), line).warmup(secs(5)).qdiscs(&drr, "pfifo limit 1000")
    }
}

/// A packet of the paper, 1500 bytes of IP, as the scheduler counts it: an Ethernet frame.
const FRAME: u32 = 1514;

/// Users, each with an access line of its own.
fn host(name: &str, count: u32) -> Host {
    Host::home(name).count(count).rtt(Span::from_micros(2)).rate(mbit(1_000))
}

/// Uploads of the users of this name.
fn flows(name: &str, count: u32, cc: CongestionControl) -> Traffic {
    let flows = Traffic::bulk().name(name).home(&[name]).direction(Up);
    flows.count(count).cc(cc).ecn(EcnMode::Off)
}

fn d2_arms() -> Vec<Arm> {
    // What D1 has at the same transmission times, to compare.
    let of_d1 = [15, 20].map(enqueue);
    AGES.map(dequeue).into_iter().chain(of_d1).map(Setting::arm).collect()
}

/// Rates of a heavy and of a light user, delays, how full the buffer is.
fn users_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let rate = |name: &str, users: f64| view.goodput(&view.flows(name)) / users;
    let (heavy, light) = (rate("heavy", 5.0), rate("light", 35.0));
    sample.value(Quantity::Heavy, heavy);
    sample.value(Quantity::Light, light);
    sample.value(Quantity::Gap, heavy / light);
    let delay_of = |name| Times::of(&view.sojourn_of(name, Up)).map(|times| times.mean);
    sample.value(Quantity::HeavyDelay, delay_of("heavy"));
    sample.value(Quantity::LightDelay, delay_of("light"));
    let delay = Times::of(&view.sojourn(Up)).map(|times| times.mean);
    sample.value(Quantity::Delay, delay);
    // Little: packets a second times seconds.
    let packets = view.results().lines[Up as usize].packets as f64;
    let in_queue = |delay| packets / view.window_s() * delay / 1000.0;
    sample.value(Quantity::Occupancy, delay.map(in_queue));
    sample
}

fn users_figures(
    id: &str,
    x: &str,
    settings: &[u32],
    arm: &dyn Fn(u32) -> Setting,
    measures: &Measures,
) -> Vec<Figure> {
    let xs: Vec<f64> = settings.iter().map(|setting| f64::from(*setting)).collect();
    let figure = |what: &str, title: &str, unit: &str, series: [Quantity; 2]| {
        let series = series.map(|one| (one.to_string(), move |x| of(arm(x as u32), one)));
        let axes = (Axis::linear(x), Axis::linear(unit));
        let plot = sweep(measures, &xs, &series);
        Figure::new((&format!("{id}-{what}"), title), axes, plot)
    };
    let delays = [Quantity::HeavyDelay, Quantity::LightDelay];
    vec![
        figure("throughput", "Throughput of a user", "Mbit/s", [Quantity::Heavy, Quantity::Light]),
        figure("delay", "Mean queueing delay", "ms", delays),
    ]
}

fn saving_arms(plain: Setting) -> Vec<Arm> {
    SAVINGS.map(|packets| plain.saving(packets).arm()).into()
}

fn saving_figures(id: &str, plain: Setting, measures: &Measures) -> Vec<Figure> {
    users_figures(id, "D_max (packets)", &SAVINGS, &|packets| plain.saving(packets), measures)
}

/// Flows of each of the twenty busy users.
pub(super) const LOADS: [u32; 3] = [5, 10, 20];
/// Limits of savings in packets, up to more than the transfer's 70. With 20 saved up, the other 49
/// at a user's share of 40 a second alone take 1.2 s.
const D5_SAVINGS: [u32; 8] = [0, 1, 2, 5, 10, 20, 50, 100];

fn d5_arms() -> Vec<Arm> {
    let of = |plain: Setting, load| D5_SAVINGS.map(|one| plain.beside(load).saving(one).arm());
    let all = [enqueue(20), dequeue(24)].map(|plain| LOADS.map(|load| of(plain, load)));
    all.into_iter().flatten().flatten().collect()
}

/// Time of the transfer in seconds. One that was not complete counts as long as it ran.
fn transfer_measure(view: &View<'_>) -> Sample {
    let mut sample = Sample::default();
    let end = view.results().window.1;
    for flow in view.flows("seldom") {
        let time = flow.finished.unwrap_or(end).since(flow.started);
        sample.value(Quantity::Time, millis(time) / 1000.0);
    }
    sample
}

fn d5_figures(measures: &Measures) -> Vec<Figure> {
    let figure = |plain: Setting| {
        let series = LOADS.map(|load| {
            let arm = move |savings| plain.beside(load).saving(savings as u32);
            (format!("{load} flows"), move |savings: f64| of(arm(savings), Quantity::Time))
        });
        let plot = sweep(measures, &D5_SAVINGS.map(f64::from), &series);
        let axes = (Axis::linear("D_max (packets)"), Axis::linear("time (s)"));
        let title = format!("Time of 100 kB, drop-on-{}", plain.strategy());
        Figure::new((&format!("D5-{}", plain.strategy()), &title), axes, plot)
    };
    [enqueue(20), dequeue(24)].map(figure).into()
}

fn d6() -> Vec<Setting> {
    let transfers = [enqueue(20), dequeue(24)].map(|plain| plain.beside(10));
    let users = [enqueue(20), enqueue(50), dequeue(24), dequeue(90)];
    let saving = [(enqueue(20), 10), (dequeue(24), 6), (transfers[0], 100), (transfers[1], 100)];
    let saving = saving.map(|(arm, most)| [arm.saving(0), arm.saving(most)]);
    let all = [&users[..], saving.as_flattened()].concat();
    [FAR, CUBIC].iter().flat_map(|path| all.iter().map(|arm| arm.over(*path))).collect()
}

fn d6_arms() -> Vec<Arm> {
    d6().into_iter().map(Setting::arm).collect()
}

fn d6_measure(view: &View<'_>) -> Sample {
    match view.run.setup.traffic.iter().any(|traffic| traffic.name == "seldom") {
        true => transfer_measure(view),
        false => users_measure(view),
    }
}

fn d6_figures(measures: &Measures) -> Vec<Figure> {
    let users = d6().into_iter().filter(|arm| arm.load.is_none());
    let users: Vec<String> = users.map(|arm| arm.to_string()).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let id = ("D6", "Throughput of a user, other paths and congestion control");
    let series = [Quantity::Heavy, Quantity::Light];
    vec![arms_dots(id, Axis::linear("Mbit/s"), measures, &users, &series)]
}
