//! Series of a run as they are drawn: delay of probes and calls, goodput, packets that wait.

use simnel_core::{Span, Time};
use simnel_scenario::summary::millis;
use simnel_scenario::Summary;
use simnel_sim::{Direction, Moment, Outcome, Results, Run, Setup};

/// Points of a curve of the queue: more are not told apart on a screen.
const MOST_LOOKS: u64 = 4000;

/// One curve.
pub struct Curve {
    /// `delay`, `goodput` or `queue`.
    pub kind: &'static str,
    /// The traffic's name and direction; of a queue the direction.
    pub name: String,
    /// One number an interval; NaN where there is none.
    pub points: Vec<f64>,
}

/// Packets queued at the end of each interval, up and down.
#[derive(Default)]
pub struct Queues([Vec<f64>; 2]);

impl Queues {
    /// Carries `run` through the duration, and looks at both queues after each interval. How a run
    /// is cut into pieces changes nothing in its results.
    pub fn watch(run: &mut Run, setup: &Setup) -> Queues {
        let mut queues = Queues([Vec::new(), Vec::new()]);
        let interval = setup.recording.interval;
        let looks = setup.duration.0.checked_div(interval.0).unwrap_or(0).min(MOST_LOOKS);
        for look in 1..=looks {
            run.advance(Time::ZERO + Span(interval.0 * look));
            for direction in Direction::BOTH {
                let packets = run.snapshot(direction).backlog.packets;
                queues.0[direction as usize].push(packets as f64);
            }
        }
        queues
    }
}

/// All curves of a run, delays first.
pub fn all(results: &Results, summary: &Summary, queues: Queues) -> Vec<Curve> {
    let mut curves = Vec::new();
    for group in 0..results.groups.len() {
        if let Some(points) = delays(results, group) {
            curves.push(Curve { kind: "delay", name: name(summary, group), points });
        }
    }
    // What sends at a rate of its own has no goodput worth a curve.
    let told = curves.iter().map(|curve| curve.name.clone()).collect::<Vec<_>>();
    for (group, row) in summary.groups.iter().enumerate() {
        let (name, points) = (name(summary, group), row.series_mbps.clone());
        if !told.contains(&name) {
            curves.push(Curve { kind: "goodput", name, points });
        }
    }
    for (direction, points) in Direction::BOTH.into_iter().zip(queues.0) {
        curves.push(Curve { kind: "queue", name: direction.name().into(), points });
    }
    curves
}

/// Traffic both ways has its direction in its name already.
fn name(summary: &Summary, group: usize) -> String {
    let row = &summary.groups[group];
    match row.name.ends_with(row.direction) {
        true => row.name.clone(),
        false => format!("{} {}", row.name, row.direction),
    }
}

/// Mean delay beyond propagation of a group's packets, interval by interval; None if its kind of
/// traffic does not say.
fn delays(results: &Results, group: usize) -> Option<Vec<f64>> {
    let mut all: Vec<Moment> = Vec::new();
    let mut is_told = false;
    for flow in results.flows.iter().filter(|flow| flow.group as usize == group) {
        let (Outcome::Datagrams { over_time, .. } | Outcome::Ping { over_time, .. }) =
            &flow.outcome
        else {
            return None;
        };
        is_told = true;
        all.resize(all.len().max(over_time.len()), Moment::default());
        for (sum, moment) in all.iter_mut().zip(over_time) {
            sum.count += moment.count;
            sum.sum = sum.sum.saturating_add(moment.sum);
        }
    }
    let points = all.iter().map(|moment| moment.mean().map_or(f64::NAN, millis));
    is_told.then(|| points.collect())
}
