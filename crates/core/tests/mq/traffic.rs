//! Traffic that is spread unevenly over queues, and the two schemes that serve it.

use simnel_core::qdisc::cake::{DiffservMode, Member, Params};
use simnel_core::qdisc::{build, Config, Device};
use simnel_core::random::Random;
use simnel_core::sched::parallel::Timing;
use simnel_core::{Qdisc, Rate, Span, Time};

use crate::run::{unfairness, Flow, Report};

/// Bytes a second: 10 Gbit/s.
pub const RATE: u64 = 1_250_000_000;
/// Windows of a run.
pub const WINDOWS: usize = 6;
/// Flows come 20 ms before the first of these windows, and go 20 ms before the second begins: after
/// that time all have settled.
const CHANGES: [u64; 2] = [2, 4];

/// Sparse flows, one in each queue, of hosts of their own.
fn sparse(count: usize) -> impl Iterator<Item = Flow> {
    (0..count).map(|queue| Flow {
        gap: Some(Span::from_micros(1_700 + 130 * queue as u64)),
        ..Flow::bulk(900 + queue as u32, queue)
    })
}

/// The kinds of traffic over `count` queues.
pub fn all(count: usize) -> Vec<(&'static str, Vec<Flow>)> {
    let mut random = Random::new(0x7aff_1c00 + count as u64);
    let mut anywhere = || random.below(count as u32) as usize;
    // One host has one flow, the other a hundred everywhere.
    let mut one = vec![Flow::bulk(1, 0)];
    one.extend((0..100).map(|_| Flow::bulk(2, anywhere())));
    // Hosts with 1 to 12 flows, half of them in queue 0.
    let mut skewed = Vec::new();
    for host in 1..=12u32 {
        skewed.extend((0..host).map(|n| {
            let queue = if n % 2 == 0 { 0 } else { anywhere() };
            Flow::bulk(host, queue)
        }));
    }
    // A host that comes to the first and goes, all of its flows in one queue.
    let mut changing = one.clone();
    changing.extend((0..10).map(|_| Flow {
        from: Time(CHANGES[0] * 100_000_000 - 20_000_000),
        until: Time(CHANGES[1] * 100_000_000 - 20_000_000),
        ..Flow::bulk(3, count - 1)
    }));
    let mut all = vec![("one-many", one), ("skewed", skewed), ("changing", changing)];
    for (_, flows) in &mut all {
        flows.extend(sparse(count));
    }
    all
}

/// Parallel queues, and queues of which each has an equal part of the rate while all are active.
pub fn schemes(
    count: usize,
    rate: u64,
    timing: &'static Timing,
) -> [(&'static str, Vec<Box<dyn Qdisc>>); 2] {
    let params =
        Params { bandwidth: Rate(rate), diffserv: DiffservMode::Besteffort, ..Params::default() };
    let device = Device { seed: 0x9e37_79b9_7f4a_7c15, ..Device::default() };
    let members = Member::all(&params, &device, count, timing).expect("parallel queues");
    let parallel = members.into_iter().map(|member| Box::new(member) as Box<dyn Qdisc>).collect();
    let part = Params { bandwidth: Rate(rate / count as u64), ..params };
    let alone = |_| build(&Config::Cake(part), &device).expect("cake") as Box<dyn Qdisc>;
    [("parallel", parallel), ("rate only", (0..count).map(alone).collect())]
}

/// The worst shares of hosts and of flows within hosts in the windows that are compared.
pub fn worst(flows: &[Flow], report: &Report) -> (f64, f64) {
    let windows = report.windows.iter().enumerate().skip(1);
    windows
        .map(|(n, bytes)| unfairness(flows, n, bytes))
        .fold((0.0, 0.0), |worst, found| (f64::max(worst.0, found.0), f64::max(worst.1, found.1)))
}
