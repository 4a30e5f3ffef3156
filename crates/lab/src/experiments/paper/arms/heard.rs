//! Observations on a real network, in the form of the simulator's results.
//!
//! Experiments measure runs through one type, whoever made them. What only a simulator can see
//! (what happened to each packet, a hash) is empty here. So are times in the disciplines, if
//! packets at the gateway were not watched.

use std::time::Duration;

use simnel_core::qdisc::{Backlog, Detail, DropReason, Snapshot, Totals};
use simnel_core::{Span, Time};
use simnel_sim::apps::player::Playback;
use simnel_sim::{
    Conservation, Direction, Distribution, Fates, FlowResult, Kind, LineResult, Moment, Outcome,
    Results, Setup, TcpTotals,
};

use super::generator::{Heard, Passed};
use super::plan::{moment, Plan};
use simnel_scenario::Finished;

/// The run of `plan`, which was made of `setup`, that was heard.
pub fn finished(setup: &Setup, plan: &Plan, seed: u64, heard: &[Heard]) -> Finished {
    let flows = plan.flows.iter().zip(heard).map(|(flow, heard)| {
        let direction = if flow.up { Direction::Up } else { Direction::Down };
        let traffic = &setup.traffic[flow.group as usize];
        let mut delivered = [0; 2];
        let from = (setup.warmup.0 / setup.recording.interval.0.max(1)) as usize;
        delivered[direction as usize] = heard.bytes.iter().skip(from).sum();
        delivered[direction.reverse() as usize] = heard.back.iter().skip(from).sum();
        FlowResult {
            group: flow.group,
            index: flow.index,
            direction,
            started: moment(flow.start),
            finished: finished_at(&traffic.kind, heard),
            delivered,
            series: heard.bytes.clone(),
            windows: Vec::new(),
            fates: heard.passed.each_ref().map(fates),
            tcp: TcpTotals::default(),
            outcome: outcome(setup, &traffic.kind, heard),
        }
    });
    let line = |direction| line(setup, plan, direction, heard);
    let results = Results {
        seed,
        simulated: setup.duration,
        complete: true,
        window: setup.window(),
        interval: setup.recording.interval,
        lines: Direction::BOTH.map(line),
        groups: setup.traffic.iter().map(|traffic| traffic.name.clone()).collect(),
        flows: flows.collect(),
        bottleneck_packets: 0,
        events: 0,
        hash: 0,
        memory: None,
        conservation: Conservation::default(),
    };
    Finished { qdisc: plan.qdisc.clone(), setup: setup.clone(), results }
}

/// Time at which a transfer that has an end was whole; None if it was not, and for other flows.
fn finished_at(kind: &Kind, heard: &Heard) -> Option<Time> {
    let (Kind::Bulk { size: Some(_) }, [(began, Some(took))]) = (kind, &heard.times[..]) else {
        return None;
    };
    Some(moment(*began) + Span::from_micros((*took).into()))
}

/// Drops of which nobody saw the reason.
fn fates(passed: &Passed) -> Fates {
    let mut fates = Fates::default();
    fates.dropped[DropReason::Congested as usize] = passed.dropped;
    fates
}

/// The line of `direction`: what its discipline let pass, if that was watched.
fn line(setup: &Setup, plan: &Plan, direction: Direction, heard: &[Heard]) -> LineResult {
    let (from, to) = setup.window();
    let rate = setup.lines[direction as usize].rate.unwrap_or_default();
    let mut line = LineResult {
        direction,
        packets: 0,
        bytes: 0,
        framed_bytes: 0,
        capacity_bytes: 0,
        longest_queue: 0,
        sojourn: vec![Distribution::default(); setup.traffic.len()],
        series: Vec::new(),
        at_start: None,
        at_end: Snapshot {
            totals: Totals::default(),
            backlog: Backlog::default(),
            detail: Detail::Fifo(()),
        },
    };
    if plan.watch.is_none() || !plan.ways().contains(&direction) {
        return line;
    }
    let capacity = u128::from(rate.bytes()) * u128::from(to.since(from).0) / 1_000_000_000;
    line.capacity_bytes = capacity as u64;
    for (flow, heard) in plan.flows.iter().zip(heard) {
        let passed = &heard.passed[direction as usize];
        line.packets += passed.waits.len() as u64;
        line.bytes += passed.bytes;
        // As on a line without framing: of single packets only the times are known.
        line.framed_bytes += passed.bytes;
        for wait in &passed.waits {
            line.sojourn[flow.group as usize].record(Span::from_micros((*wait).into()));
        }
    }
    line
}

fn outcome(setup: &Setup, kind: &Kind, heard: &Heard) -> Outcome {
    let mut times = Times::default();
    for (at, time) in &heard.times {
        let sent = moment(*at);
        let counts = sent >= setup.window().0;
        times.sent += u64::from(counts);
        let Some(time) = time else { continue };
        let added = Span::from_micros(time.saturating_sub(heard.idle).into());
        let slot = (at.as_nanos() / u128::from(setup.recording.interval.0.max(1))) as usize;
        if slot >= times.over_time.len() {
            times.over_time.resize(slot + 1, Moment::default());
        }
        let slot = &mut times.over_time[slot];
        slot.count += 1;
        slot.sum += added.0;
        slot.greatest = slot.greatest.max(added);
        if counts {
            times.received += 1;
            times.added.record(added);
            if let Some(before) = times.before.replace(added) {
                times.variation.record(Span(added.0.abs_diff(before.0)));
            }
        }
    }
    let Times { sent, received, added, variation, over_time, .. } = times;
    match kind {
        Kind::Ping { .. } | Kind::RequestResponse { .. } => Outcome::Ping {
            sent,
            received,
            added_rtt: added,
            added_there: Distribution::default(),
            added_back: Distribution::default(),
            base_rtt: Span::from_micros(heard.idle.into()),
            over_time,
        },
        Kind::Datagrams { .. } => {
            Outcome::Datagrams { sent, received, added_delay: added, variation, over_time }
        }
        Kind::Messages { .. } => Outcome::Messages { sent, received, latency: added },
        Kind::Web(_) => {
            let counts = |at: &&Duration| moment(**at) >= setup.window().0;
            let connections = heard.opened.iter().filter(counts).count() as u64;
            Outcome::Web { connections, pages: received, load_time: added }
        }
        Kind::Bursts { .. } => Outcome::Bursts { completed: received, completion: added },
        Kind::Dash(_) => {
            Outcome::Dash(heard.played.as_ref().map(Playback::from).unwrap_or_default())
        }
        Kind::Bulk { .. } => Outcome::Transfer,
    }
}

/// Sums over the times of one flow.
#[derive(Default)]
struct Times {
    sent: u64,
    received: u64,
    added: Distribution,
    variation: Distribution,
    before: Option<Span>,
    over_time: Vec<Moment>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_scenario::{no_files, Scenario};
    use simnel_sim::apps::player::Chunk;

    fn planned(text: &str) -> (Setup, Plan) {
        let scenario = Scenario::parse(text, "test", &no_files).expect("a scenario");
        let (setup, qdisc) = scenario.setup(None).expect("a set-up");
        let plan = Plan::new(&setup, &qdisc, 1).expect("nothing unusual");
        (setup, plan)
    }

    #[test]
    fn what_was_heard_is_measured_as_a_simulation_is() {
        let text = "duration = \"4s\"\nwarmup = \"1s\"\ninterval = \"500ms\"\n\
                    [line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n\
                    [[traffic]]\nkind = \"ping\"\n";
        let (setup, plan) = planned(text);
        let seconds = |n: u64| Duration::from_secs(n);
        let heard = [
            Heard { bytes: vec![100, 100, 7, 7, 7, 7, 7, 7], ..Heard::default() },
            Heard {
                times: vec![
                    (seconds(0), Some(90_000)),
                    (seconds(2), Some(25_000)),
                    (seconds(2), Some(19_000)),
                    (seconds(3), None),
                ],
                idle: 20_000,
                ..Heard::default()
            },
        ];
        let run = finished(&setup, &plan, 1, &heard);
        assert_eq!(run.results.flows[0].delivered, [0, 42]);
        let Outcome::Ping { sent, received, added_rtt, over_time, .. } =
            &run.results.flows[1].outcome
        else {
            panic!("a ping");
        };
        assert_eq!((*sent, *received), (3, 2));
        assert_eq!(added_rtt.greatest(), Some(Span::from_millis(5)));
        assert_eq!(added_rtt.least(), Some(Span::ZERO));
        assert_eq!(over_time[0].greatest, Span::from_millis(70));
        assert_eq!(over_time[4].count, 2);
    }

    #[test]
    fn messages_and_video_have_the_simulators_outcomes() {
        let text = "duration = \"4s\"\nwarmup = \"1s\"\n\
                    [line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
                    [[traffic]]\nkind = \"iot\"\nsize = 100\ninterval = \"1s\"\n\
                    [[traffic]]\nkind = \"dash\"\n";
        let (setup, plan) = planned(text);
        let chunk = Chunk { asked: moment(Duration::from_secs(2)), rate: 5, throughput: 7 };
        let playback = Playback {
            chunks: vec![chunk],
            startup: Some(Span::from_millis(300)),
            stalls: 1,
            stalled: Span::from_millis(40),
            played: Span::from_secs(3),
        };
        let times = [(0, Some(1)), (1, Some(20_500)), (2, None), (3, Some(30_000))];
        let times = times.map(|(second, took)| (Duration::from_secs(second), took));
        let heard = [
            Heard { times: times.into(), ..Heard::default() },
            Heard { played: Some(playback.clone().into()), ..Heard::default() },
        ];
        let run = finished(&setup, &plan, 1, &heard);
        let [messages, video] = &run.results.flows[..] else { panic!("two flows") };
        let Outcome::Messages { sent, received, latency } = &messages.outcome else {
            panic!("messages")
        };
        // A message's time is all of its way: nothing is taken off for an idle line.
        assert_eq!((*sent, *received, latency.least()), (3, 2, Some(Span::from_micros(20_500))));
        let Outcome::Dash(played) = &video.outcome else { panic!("a video") };
        assert_eq!(played, &playback);
    }

    #[test]
    fn pages_and_transfers_are_counted_from_the_window_on() {
        let text = "duration = \"4s\"\nwarmup = \"1s\"\ninterval = \"1s\"\n\
                    [line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
                    [[traffic]]\nkind = \"web\"\n[[traffic]]\nkind = \"bursts\"\n";
        let (setup, plan) = planned(text);
        let seconds = Duration::from_secs;
        let times = vec![(seconds(0), Some(7)), (seconds(2), Some(40_000)), (seconds(3), None)];
        let web = Heard {
            bytes: vec![900, 50, 60, 70],
            back: vec![300, 1, 2, 3],
            opened: [0, 1, 3].map(seconds).into(),
            times: times.clone(),
            ..Heard::default()
        };
        let run = finished(&setup, &plan, 1, &[web, Heard { times, ..Heard::default() }]);
        let [web, bursts] = &run.results.flows[..] else { panic!("two flows") };
        assert_eq!(web.delivered, [6, 180]);
        let Outcome::Web { connections, pages, load_time } = &web.outcome else { panic!("web") };
        let forty = Some(Span::from_millis(40));
        assert_eq!((*connections, *pages, load_time.greatest()), (2, 1, forty));
        let Outcome::Bursts { completed, completion } = &bursts.outcome else { panic!("bursts") };
        assert_eq!((*completed, completion.greatest()), (1, forty));
    }

    #[test]
    fn a_transfer_is_over_when_all_has_come() {
        let text = "duration = \"4s\"\n\
                    [line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\nsize = 3000\n";
        let (setup, plan) = planned(text);
        let began = Duration::from_millis(1_020);
        let over = |took| {
            let heard = Heard { times: vec![(began, took)], ..Heard::default() };
            finished(&setup, &plan, 1, &[heard]).results.flows[0].finished
        };
        let at = moment(Duration::from_millis(1_070));
        assert_eq!((over(Some(50_000)), over(None)), (Some(at), None));
    }

    #[test]
    fn packets_at_the_gateway_are_the_lines_results() {
        let text = "duration = \"12s\"\nwarmup = \"2s\"\n\
                    [line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n\
                    [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
        let (setup, plan) = planned(text);
        let passed = |waits: &[u32]| {
            let down = Passed { bytes: 500_000, waits: waits.to_vec(), dropped: 3 };
            Heard { passed: [Passed::default(), down], ..Heard::default() }
        };
        let heard = [passed(&[1_000, 3_000, 5_000]), passed(&[7_000])];
        let unwatched = finished(&setup, &plan, 1, &heard);
        assert_eq!(unwatched.results.lines[1].capacity_bytes, 0);
        let run = finished(&setup, &plan.watched(&setup), 1, &heard);
        let [up, down] = run.results.lines.each_ref();
        // Ten seconds of a Mbit/s, of which 0.8 was used.
        assert_eq!((down.packets, down.bytes, down.capacity_bytes), (4, 1_000_000, 1_250_000));
        assert_eq!(run.results.flows[1].fates[1].signals(), 3);
        assert_eq!(down.sojourn[0].mean(), Some(Span::from_millis(3)));
        assert_eq!(down.sojourn[1].greatest(), Some(Span::from_millis(7)));
        // No payload goes that way, so that nobody looked.
        assert_eq!((up.capacity_bytes, up.all_sojourn().count()), (0, 0));
    }
}
