//! Tins of parallel queues: thresholds, borrowing and shares as in one queue.

use simnel_core::qdisc::cake::{DiffservMode, Member, Params};
use simnel_core::qdisc::{build, Device};
use simnel_core::random::Random;
use simnel_core::sched::parallel::Timing;
use simnel_core::{Qdisc, Rate, Span};

use crate::run::{run, unfairness, Flow, Report};
use crate::traffic::WINDOWS;
use crate::{most_excess, TOLERANCE, WINDOW_SECONDS};

/// Code points of diffserv4's bulk, best effort, video and voice.
const DSCPS: [u8; 4] = [8, 0, 34, 46];
/// Bulk's threshold, as a part of the rate.
const BULK: f64 = 1.0 / 16.0;

fn flows(dscp: u8, hosts: std::ops::Range<u32>, queue: impl Fn(u32) -> usize) -> Vec<Flow> {
    hosts.map(|host| Flow { dscp, ..Flow::bulk(host, queue(host)) }).collect()
}

/// Traffic over `count` queues, with a call in each.
fn traffic(count: usize) -> Vec<(&'static str, Vec<Flow>)> {
    let anywhere = |host: u32| Random::derive(3, host.into()).below(count as u32) as usize;
    let at = |queue: usize| move |_: u32| queue % count;
    let all = |queue: &dyn Fn(usize, u32) -> usize| -> Vec<Flow> {
        let of = |(n, dscp): (usize, &u8)| {
            let first = 10 * n as u32;
            flows(*dscp, first..first + 6, |host| queue(n, host))
        };
        DSCPS.iter().enumerate().flat_map(of).collect()
    };
    let call = |queue: usize| {
        let gap = Some(Span::from_micros(9_700 + 130 * queue as u64));
        Flow { dscp: 46, gap, ..Flow::bulk(900 + queue as u32, queue) }
    };
    let mut cases = vec![
        ("everywhere", all(&|_, host| anywhere(host))),
        ("apart", all(&|n, _| n % count)),
        ("voice apart", [flows(0, 0..5, at(0)), flows(46, 10..13, at(1))].concat()),
        ("bulk apart", [flows(0, 0..5, anywhere), flows(8, 10..13, at(1))].concat()),
        ("two thresholds", [flows(8, 0..5, at(0)), flows(46, 10..13, at(1))].concat()),
        ("video everywhere", [flows(0, 0..5, at(0)), flows(34, 10..22, anywhere)].concat()),
    ];
    cases.iter_mut().for_each(|(_, flows)| flows.extend((0..count).map(call)));
    cases
}

fn params(rate: u64) -> Params {
    Params { bandwidth: Rate(rate), diffserv: DiffservMode::Diffserv4, ..Params::default() }
}

/// Bytes of each code point in a window.
fn tins(flows: &[Flow], window: &[u64]) -> [f64; 4] {
    DSCPS.map(|dscp| {
        let of = flows.iter().zip(window).filter(|(flow, _)| flow.dscp == dscp);
        of.map(|(_, bytes)| *bytes as f64).sum()
    })
}

/// The largest deviation of hosts within a tin, in any window but the first.
fn within(flows: &[Flow], report: &Report) -> f64 {
    let mut worst = 0.0;
    for (n, window) in report.windows.iter().enumerate().skip(1) {
        for dscp in DSCPS {
            let of = flows.iter().zip(window).filter(|(flow, _)| flow.dscp == dscp);
            let (flows, bytes): (Vec<Flow>, Vec<u64>) = of.map(|(flow, b)| (*flow, *b)).unzip();
            worst = f64::max(worst, unfairness(&flows, n, &bytes).0);
        }
    }
    worst
}

/// The largest deviation of a tin from what it has in one queue: a part of that, and of the line.
fn off(flows: &[Flow], report: &Report, ideal: &Report, line: f64) -> (f64, f64) {
    let windows = report.windows.iter().zip(&ideal.windows).skip(1);
    let each = windows.flat_map(|(window, ideal)| {
        let ideal = tins(flows, ideal);
        tins(flows, window).into_iter().zip(ideal)
    });
    each.fold((0.0, 0.0), |(own, all), (bytes, ideal)| {
        let off = (bytes - ideal).abs();
        (f64::max(own, off / ideal.max(1.0)), f64::max(all, off / line))
    })
}

/// The least and the most that a code point has in any window but the first, as parts of the line.
fn parts(flows: &[Flow], report: &Report, dscp: u8, line: f64) -> (f64, f64) {
    let at = DSCPS.iter().position(|of| *of == dscp).expect("a code point of these");
    let parts = report.windows.iter().skip(1).map(|window| tins(flows, window)[at] / line);
    parts.fold((f64::MAX, 0.0), |(least, most), part| (least.min(part), f64::max(most, part)))
}

#[test]
fn tins_have_what_they_have_in_one_queue() {
    let device = Device { seed: 0x9e37_79b9_7f4a_7c15, ..Device::default() };
    for (timing, rate, lateness) in [
        (&Timing::KERNEL, 1_250_000_000, 20),
        (&Timing::THREADS, 125_000_000, 100),
        (&Timing::THREADS, 125_000_000, 1_500),
    ] {
        let line = rate as f64 * WINDOW_SECONDS;
        for (count, (name, flows)) in
            [2, 4].into_iter().flat_map(|n| traffic(n).into_iter().map(move |traffic| (n, traffic)))
        {
            let members = Member::all(&params(rate), &device, count, timing).unwrap();
            let mut queues: Vec<Box<dyn Qdisc>> =
                members.into_iter().map(|member| Box::new(member) as Box<dyn Qdisc>).collect();
            let report = run(&mut queues, &flows, rate, WINDOWS, Span::from_micros(lateness));
            let here: Vec<Flow> = flows.iter().map(|flow| Flow { queue: 0, ..*flow }).collect();
            let mut alone = [build(&params(rate).into(), &device).unwrap() as Box<dyn Qdisc>];
            let ideal = run(&mut alone, &here, rate, WINDOWS, Span::from_micros(1));
            let (own, all) = off(&flows, &report, &ideal, line);
            let hosts = within(&flows, &report);
            let sums = report.windows.iter().skip(1).map(|window| window.iter().sum::<u64>());
            let used = sums.min().unwrap_or(0) as f64 / line;
            let case = format!(
                "{name} over {count}, {lateness} us late: tins {own:.3} of theirs, {all:.3} of the \
                 line, hosts {hosts:.3}, {used:.3} of the rate, excess {} B, sparse {:?}, asked \
                 {:.1}",
                report.excess, report.worst_sparse, report.asked
            );
            println!("{case}");
            // A tin may be a lead behind its schedule, of which the others have as much more. Where
            // nobody is on schedule, one queue gives the rest to who is due first, and these to the
            // highest threshold: the other keeps to its own.
            let is_close = lateness <= 100 && name != "two thresholds";
            assert!(if is_close { own <= TOLERANCE } else { all <= 0.02 }, "{case}");
            if name == "two thresholds" {
                let (least, most) = parts(&flows, &report, 8, line);
                println!("bulk has {least:.4} to {most:.4} of the line");
                let off = f64::max(BULK - least, most - BULK);
                assert!(off <= TOLERANCE * BULK, "{case}: bulk {least} to {most}");
            }
            assert!(hosts <= TOLERANCE && used >= 0.98 && report.asked < 2.0, "{case}");
            assert!(report.excess <= most_excess(count as u64, rate, timing), "{case}");
            // A call's packet that uses its quantum up waits for its tin's turn, a lead at most.
            let most = timing.lead + Span::from_micros(lateness);
            assert!(report.worst_sparse <= most, "{case}, not {most:?}");
        }
    }
}
