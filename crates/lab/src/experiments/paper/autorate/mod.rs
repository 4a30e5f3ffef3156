//! Lines that change (F1 to F9): how well do rates follow?
//!
//! No paper: an experiment of our own, in the form of the others. Every line (`lines.rs`) is run
//! under every contender (`drive.rs`), with four downloads, two uploads and a user's ping at 40 ms.
//! The claims are goals that stood before anything was measured.

use simnel_core::{Span, Time};
use simnel_sim::Direction;

use super::measure::{of, quantities, Measures, Sample};
use super::plots::{arms_dots, curves};
use super::{Arm, Experiment, Paper, View};
use crate::figures::{Axis, Figure};
use drive::{drive, Contender, Driven};
use lines::{Fault, Kind, ROUTES_AT, SECONDS, STEP_AT};

mod drive;
mod lines;
mod published;

quantities! {
    /// Quantities of these experiments.
    Quantity {
        P50 = "p50", P95 = "p95", Used(way: Direction) = "{way} used",
        Variation(way: Direction) = "{way} variation", Answered(way: Direction) = "{way} answered",
        Calm = "calm", Kept(way: Direction) = "{way} kept", Shifts = "shifts",
        Rate(way: Direction) = "{way} rate", Capacity(way: Direction) = "{way} capacity",
    }
}

const SETUP: &str = "A shaper and a FIFO of 500 ms before (upload) or behind (download) a line \
                     whose capacity changes; 4 downloads, 2 uploads (CUBIC, 40 ms), a ping every \
                     20 ms; 6 reflectors, probed every 200 ms. 60 s, those from 5 s on count.";

/// Results count from here.
const FROM: Time = Time(5_000_000_000);

experiments! {
    Paper::Autorate;
    "F1": "A constant line", "Does the rate come to rest?";
        SETUP, 5; || arms(Kind::Constant, Fault::None), measure, |measures| figures("F1", measures);
    "F2": "A halving", "How soon is half the capacity answered?";
        SETUP, 5; || arms(Kind::Halving, Fault::None), measure, |measures| figures("F2", measures);
    "F3": "A doubling", "How soon is twice the capacity used?";
        SETUP, 5; || arms(Kind::Doubling, Fault::None), measure, |measures| figures("F3", measures);
    "F4": "A satellite that reconfigures every 15 s",
        "Are a hand-over's capacity and its RTT told apart?";
        SETUP, 5; || arms(Kind::Satellite, Fault::None), measure,
        |measures| figures("F4", measures);
    "F5": "A fading radio link", "Can rates follow steps of 100 ms?";
        SETUP, 5; || arms(Kind::Fading, Fault::None), measure, |measures| figures("F5", measures);
    "F6": "An evening on shared cable", "Do rates follow the neighbours?";
        SETUP, 5; || arms(Kind::Evening, Fault::None), measure, |measures| figures("F6", measures);
    "F7": "Route changes", "Is a shift of the RTT taken for load?";
        SETUP, 5; || arms(Kind::Routes, Fault::None), measure, |measures| figures("F7", measures);
    "F8": "Reflectors that fail, on a line that halves", "What if probes tell nothing, or lies?";
        SETUP, 5; fault_arms, measure, |_| Vec::new();
    "F9": "A constant line with up to 20 ms of jitter", "Is jitter taken for load?";
        SETUP, 5; || arms(Kind::Jitter, Fault::None), measure, |measures| figures("F9", measures);
}

/// Faults and their names.
pub(super) const FAULTS: [(Fault, &str); 4] = [
    (Fault::Dead, "dead"),
    (Fault::Limited, "rate-limited"),
    (Fault::Slow, "slow"),
    (Fault::Blind, "all blind"),
];

fn arm(name: String, kind: Kind, fault: Fault, contender: Contender) -> Arm {
    Arm::direct(name, quantities(kind), move |seed| {
        sample(kind, &drive(kind, fault, contender, seed))
    })
}

fn arms(kind: Kind, fault: Fault) -> Vec<Arm> {
    let arm = |contender: Contender| arm(contender.name().into(), kind, fault, contender);
    Contender::ALL.into_iter().map(arm).collect()
}

fn fault_arms() -> Vec<Arm> {
    let arms = FAULTS.into_iter().flat_map(|(fault, name)| {
        [Contender::Published, Contender::Simnel].into_iter().map(move |contender| {
            arm(format!("{}, {name}", contender.name()), Kind::Halving, fault, contender)
        })
    });
    arms.collect()
}

/// Work of ours is measured as it is done.
fn measure(_: &View<'_>) -> Sample {
    Sample::default()
}

/// Quantities of a line.
fn quantities(kind: Kind) -> Vec<Quantity> {
    let [used, variation] = [Quantity::Used, Quantity::Variation].map(|of| Direction::BOTH.map(of));
    let always = [Quantity::P50, Quantity::P95, Quantity::Shifts];
    let mut all = [&always[..], &used, &variation].concat();
    match kind {
        Kind::Halving => {
            all.extend(Direction::BOTH.map(Quantity::Answered));
            all.push(Quantity::Calm);
        }
        Kind::Routes => all.extend(Direction::BOTH.map(Quantity::Kept)),
        _ => {}
    }
    all
}

fn sample(kind: Kind, run: &Driven) -> Sample {
    let mut sample = Sample::default();
    let mut added: Vec<u64> =
        run.added.iter().filter(|(at, _)| *at >= FROM).map(|(_, added)| added.0).collect();
    added.sort_unstable();
    let quantile = |share: usize| {
        let index = (added.len() * share / 100).min(added.len().saturating_sub(1));
        added.get(index).map(|added| *added as f64 / 1e6)
    };
    sample.value(Quantity::P50, quantile(50));
    sample.value(Quantity::P95, quantile(95));
    sample.value(Quantity::Shifts, f64::from(run.shifts));
    let end = second(SECONDS);
    for way in Direction::BOTH {
        let n = way as usize;
        let capacity = run.capacity[n].bytes(FROM, end);
        let used = run.results.lines[n].bytes as f64 / capacity as f64;
        sample.value(Quantity::Used(way), used * 100.0);
        let settled = rates(run, n, second(10), end);
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        let square = |rate: &f64| (rate - mean).powi(2);
        let variance = settled.iter().map(square).sum::<f64>() / settled.len() as f64;
        sample.value(Quantity::Variation(way), variance.sqrt() / mean * 100.0);
        if kind == Kind::Halving {
            let step = second(STEP_AT);
            let half = run.capacity[n].at(step).bits();
            let below = run.rates[n].iter().find(|(at, rate)| *at >= step && *rate <= half);
            let already = rates(run, n, step, step + Span(1))[0] <= half as f64;
            let answered = below.map(|(at, _)| at.since(step).0 as f64 / 1e9);
            // Who never answers has taken what was left of the run.
            let late = answered.unwrap_or((SECONDS - STEP_AT) as f64);
            sample.value(Quantity::Answered(way), if already { 0.0 } else { late });
        }
        if kind == Kind::Routes {
            let kept = ROUTES_AT.map(|at| {
                let mean = |from, to| {
                    let rates = rates(run, n, from, to);
                    rates.iter().sum::<f64>() / rates.len() as f64
                };
                mean(second(at), second(at + 5)) / mean(second(at - 5), second(at))
            });
            sample.value(Quantity::Kept(way), kept.into_iter().fold(1.0, f64::min) * 100.0);
        }
        sample.curve(Quantity::Rate(way), every(|at| rates(run, n, at, at + Span(1))[0] / 1e6));
        let at = |at| run.capacity[n].at(at).bits() as f64 / 1e6;
        sample.curve(Quantity::Capacity(way), every(at));
    }
    if kind == Kind::Halving {
        sample.value(Quantity::Calm, calm(run));
    }
    sample
}

fn second(n: u64) -> Time {
    Time::ZERO + Span::from_secs(n)
}

/// Seconds from the step until the added latency is at most 30 ms for good. That is the end of the
/// last interval of 200 ms within 10 s whose median is above, or that has no ping.
fn calm(run: &Driven) -> f64 {
    let window = Span::from_millis(200);
    let late = (0..50u64).rev().find(|n| {
        let from = second(STEP_AT) + window * *n;
        let inside = |at: &Time| (from..from + window).contains(at);
        let mut some: Vec<Span> =
            run.added.iter().filter(|(at, _)| inside(at)).map(|(_, added)| *added).collect();
        some.sort_unstable_by_key(|added| added.0);
        some.get(some.len() / 2).is_none_or(|median| *median > Span::from_millis(30))
    });
    late.map_or(0.0, |n| (n + 1) as f64 * 0.2)
}

/// The rate at every 100 ms, bit/s.
fn rates(run: &Driven, n: usize, from: Time, to: Time) -> Vec<f64> {
    let step = Span::from_millis(100);
    let mut at = from;
    let mut rates = Vec::new();
    while at < to {
        let known = run.rates[n].partition_point(|(time, _)| *time <= at);
        rates.push(run.rates[n][..known].last().map_or(0.0, |(_, rate)| *rate as f64));
        at += step;
    }
    rates
}

fn every(value: impl Fn(Time) -> f64) -> Vec<[f64; 2]> {
    (0..SECONDS * 10)
        .map(|n| {
            let at = Time::ZERO + Span::from_millis(100) * n;
            [n as f64 / 10.0, value(at)]
        })
        .collect()
}

fn figures(id: &'static str, measures: &Measures) -> Vec<Figure> {
    let arms: Vec<&str> = Contender::ALL.iter().map(|contender| contender.name()).collect();
    let shown = |what: &str, title: &str, unit: &str, quantities: [Quantity; 2]| {
        let id = format!("{id}-{what}");
        arms_dots((&id, title), Axis::linear(unit), measures, &arms, &quantities)
    };
    let capacity = of("simnel", Quantity::Capacity(Direction::Down));
    let rates = ["simnel", "cake-autorate", "autorate-ingress"]
        .map(|arm| (of(arm, Quantity::Rate(Direction::Down)), arm.to_string()));
    let names = [&[(capacity, "capacity".to_string())][..], &rates].concat();
    let axes = (Axis::linear("seconds"), Axis::linear("Mbit/s"));
    let title = "Download: capacity and set rates";
    let used = Direction::BOTH.map(Quantity::Used);
    vec![
        shown("latency", "Added latency", "milliseconds", [Quantity::P50, Quantity::P95]),
        shown("used", "Share of the capacity used", "percent", used),
        curves((&format!("{id}-rates"), title), axes, measures, &names),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller, the shaper at a rate that is too high, and neither: the same line.
    #[test]
    fn a_run_repeats_and_a_controller_lowers_the_latency() {
        let p95 = |contender| {
            let run = drive(Kind::Halving, Fault::None, contender, 1);
            assert!(run.results.conservation.holds());
            let sample = sample(Kind::Halving, &run);
            let value = sample.values.iter().find(|(name, _)| name == "p95").expect("measured");
            (value.1.expect("pings were answered"), run.results.hash)
        };
        let (controlled, again) = (p95(Contender::Simnel), p95(Contender::Simnel));
        assert_eq!(controlled, again);
        let free = p95(Contender::None);
        assert!(controlled.0 * 5.0 < free.0, "{controlled:?} against {free:?}");
    }
}
