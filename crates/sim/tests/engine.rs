//! Runs without TCP, or with little of it: exact times, conservation, sameness, what is remembered.

mod support;

use simnel_core::qdisc;
use simnel_core::{Rate, Span, Time};
use simnel_sim::setup::{Loss, Reading, Shaper};
use simnel_sim::{Direction, Kind, Memory, Outcome, Run, Setup, Traffic};
use simnel_tcp::CongestionControl;
use support::{cbr, kind_rr, ping, run, setup, traffic};

#[test]
fn a_request_goes_when_the_one_before_was_answered() {
    let rr = |lines: &str| {
        let setup = setup(lines, 1_000_000, vec![traffic(kind_rr(), Direction::Up)]);
        match run(&setup, 1).flows.swap_remove(0).outcome {
            Outcome::Ping { sent, received, added_rtt, .. } => (sent, received, added_rtt),
            other => panic!("not a probe: {other:?}"),
        }
    };
    // 43 bytes at 1 Mbit/s each way on top of 50 ms: 50.688 ms a round, in nine seconds.
    let (sent, received, added_rtt) = rr("pfifo");
    assert_eq!(added_rtt.greatest(), Some(Span(688_000)));
    assert_eq!((sent, received), (177, 177));
    // A queue without room drops all: requests at 2, 4 ... 10 s, and no answer.
    let (sent, received, _) = rr("bfifo limit 10");
    assert_eq!((sent, received), (5, 0));
}

#[test]
fn who_remembers_the_path_does_not_overshoot_again() {
    let mut bulk = traffic(Kind::Bulk { size: None }, Direction::Up);
    bulk.tcp.congestion = CongestionControl::Reno;
    let setup = setup("pfifo limit 100", 10_000_000, vec![bulk]);
    let dropped = |memory: Option<Memory>| {
        let mut run = Run::new(&setup, 1).expect("a good set-up");
        memory.into_iter().for_each(|memory| run.recall(memory));
        let results = run.finish();
        (results.conservation.dropped, results.memory)
    };
    let (fresh, nothing) = dropped(None);
    assert_eq!(nothing, None);
    let (first, known) = dropped(Some(Memory { thresholds: true, ..Memory::default() }));
    assert_eq!(first, fresh);
    let known = known.expect("what it was given");
    let there = known.paths.iter().find(|(_, path)| path.ssthresh > 0).expect("a threshold");
    assert_eq!(*there.0, ([10, 0, 1, 1], [10, 0, 2, 1]));
    let (second, _) = dropped(Some(known.clone()));
    assert!(second * 3 < first, "{first} packets dropped, then {second}");
    // Since 5.6 Linux keeps RTTs only.
    let (_, later) = dropped(Some(Memory { thresholds: false, ..known }));
    assert!(later.expect("a memory").paths.values().all(|path| path.ssthresh == 0));
}

#[test]
fn a_probe_on_an_idle_line_takes_its_serialisation_and_nothing_else() {
    let results = run(&setup("pfifo", 1_000_000, vec![ping()]), 1);
    let Outcome::Ping { sent, received, added_rtt, base_rtt, .. } = &results.flows[0].outcome
    else {
        panic!("not a ping");
    };
    // 106 bytes at 1 Mbit/s: 848 us each way.
    assert_eq!(*base_rtt, Span::from_millis(50));
    assert_eq!(
        (added_rtt.least(), added_rtt.greatest()),
        (Some(Span(1_696_000)), Some(Span(1_696_000)))
    );
    // Requests at 1.0, 1.1 ... 9.9 s; that at 10.0 s is cut off by the end, and not lost.
    assert_eq!((*sent, *received), (90, 90));
}

#[test]
fn an_overloaded_line_carries_its_rate_exactly() {
    // 1242 + 14 + 28 = 1284 bytes each 500 us: 20.5 Mbit/s into 10.
    let setup = setup("pfifo limit 10", 10_000_000, vec![cbr(1242, 500)]);
    let results = run(&setup, 1);
    let up = &results.lines[0];
    assert_eq!(up.capacity_bytes, 9 * 1_250_000);
    assert!(up.bytes.abs_diff(up.capacity_bytes) < 1284);
    // A queue of ten packets before the one being sent.
    let wait = up.sojourn[0].greatest().expect("packets");
    assert!(wait.0.abs_diff(10 * 1284 * 800) < 1_100_000, "{wait:?}");
    let fates = &results.flows[0].fates[0];
    // From 1 s to 10 s, both included, less what the line carried; the queue stays full.
    assert_eq!(fates.signals() + up.packets, 18_001);
}

#[test]
fn a_bucket_sends_at_once_what_it_has_saved() {
    let mut setup = setup("pfifo limit 1000", 1_000_000, vec![ping()]);
    setup.lines[0].shaper = Shaper::Bucket(1600);
    setup.lines[1].shaper = Shaper::Bucket(1600);
    let results = run(&setup, 1);
    let Outcome::Ping { added_rtt, .. } = &results.flows[0].outcome else { panic!("not a ping") };
    assert_eq!(added_rtt.greatest(), Some(Span::ZERO));

    setup.traffic = vec![cbr(1242, 500)];
    let results = run(&setup, 1);
    assert!(results.lines[0].bytes.abs_diff(9 * 125_000) <= 1284);
}

#[test]
fn losses_are_as_asked() {
    let mut setup = setup("pfifo", 100_000_000, vec![cbr(100, 100)]);
    setup.lines[0].loss = Loss::Random(u32::MAX / 10);
    let results = run(&setup, 3);
    let fates = &results.flows[0].fates[0];
    assert!(fates.lost.abs_diff(90_000 / 10) < 300, "{fates:?}");
    // A period counts segments of data: no datagrams, and no acknowledgements.
    setup.lines.iter_mut().for_each(|line| line.loss = Loss::Every(50));
    let bulk = traffic(Kind::Bulk { size: Some(1_448_000) }, Direction::Up);
    setup.traffic.push(bulk);
    setup.warmup = Span::ZERO;
    let results = run(&setup, 3);
    let lost = |flow: usize| results.flows[flow].fates.map(|fates| fates.lost);
    assert_eq!(lost(0), [0, 0]);
    let segments = 1_000 + results.flows[1].tcp.retransmits;
    assert_eq!(lost(1), [segments / 50, 0]);
}

#[test]
fn a_window_without_warmup_begins_before_the_first_packet() {
    let mut setup = setup("pfifo limit 0", 1_000_000, vec![cbr(1_000, 500_000)]);
    setup.warmup = Span::ZERO;
    let results = run(&setup, 1);
    let Outcome::Datagrams { sent, .. } = &results.flows[0].outcome else { panic!("none") };
    let fates = &results.flows[0].fates[0];
    assert_eq!((fates.dropped.iter().sum::<u64>(), *sent), (21, 21));
}

#[test]
fn datagrams_from_many_ports_are_many_flows() {
    // Each offers more than the line has; fq_codel shares it among four flows, of short queues.
    let mut many = cbr(1242, 500);
    let Kind::Datagrams { ports, .. } = &mut many.kind else { panic!("not datagrams") };
    *ports = 3;
    let results = run(&setup("fq_codel limit 40", 10_000_000, vec![cbr(1242, 500), many]), 1);
    let [one, many] = [0, 1].map(|flow| {
        let Outcome::Datagrams { received, .. } = &results.flows[flow].outcome else {
            panic!("not datagrams");
        };
        *received as f64
    });
    assert!((many / one - 3.0).abs() < 0.1, "{one} and {many}");
}

#[test]
fn same_seed_same_run_and_pieces_change_nothing() {
    let mut setup = setup("cake besteffort", 2_000_000, vec![ping(), cbr(1000, 3000)]);
    setup.lines[0].jitter = Span::from_millis(5);
    setup.lines[0].loss = Loss::Random(1 << 24);
    let whole = run(&setup, 7);
    let mut pieces = Run::new(&setup, 7).expect("a good set-up");
    let mut until = 0;
    while !pieces.is_over() {
        until += 123_456_789;
        pieces.advance(Time(until));
    }
    let pieces = pieces.results();
    assert!(whole.complete && pieces.complete);
    assert_eq!((whole.hash, whole.events), (pieces.hash, pieces.events));
    assert_ne!(whole.hash, run(&setup, 8).hash);
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let mut run = Run::new(&setup("pfifo", 1_000_000, vec![ping()]), 1).expect("a good set-up");
    run.advance(Time(5_000_000_000));
    let results = run.results();
    assert!(!results.complete && results.conservation.holds());
    assert_eq!(results.simulated, Span::from_secs(5));
}

/// Settings change under way, and what waits for the old ones may go.
#[test]
fn settings_change_in_a_run() {
    // A packet a second at 8 kbit/s, one a millisecond at 8 Mbit/s.
    let words = |rate: &str| qdisc::parse(&format!("tbf rate {rate} burst 1000b limit 1mb"));
    let mut setup = setup("pfifo", 10_000_000, vec![cbr(958, 10_000)]);
    setup.lines[0].qdisc = words("8kbit").unwrap();
    let mut run = Run::new(&setup, 1).expect("a good set-up");
    run.advance(Time(2_500_000_000));
    let sent = |run: &Run| run.snapshot(Direction::Up).totals.sent_packets;
    assert_eq!((sent(&run), run.snapshot(Direction::Up).backlog.packets > 200), (3, true));
    run.configure(Direction::Up, &words("8mbit").unwrap()).unwrap();
    run.advance(Time(2_600_000_000));
    assert!((90..=101).contains(&(sent(&run) - 3)), "{}", sent(&run));
    let other = qdisc::parse("pfifo").unwrap();
    assert!(run.configure(Direction::Up, &other).is_err());
}

#[test]
fn the_rate_follows_its_steps() {
    let mut setup = setup("pfifo limit 5", 10_000_000, vec![cbr(1242, 500)]);
    let step = |secs: u64, rate| simnel_sim::schedule::Step {
        at: Time(secs * 1_000_000_000),
        rate: Rate::from_bits(rate),
    };
    setup.lines[0].steps = vec![step(3, 1_000_000), step(6, 0), step(8, 10_000_000)];
    let series = run(&setup, 1).lines[0].series.clone();
    let near = |n: usize, expected: u64| series[n].abs_diff(expected) <= 2 * 1284;
    assert!(
        near(2, 1_250_000) && near(4, 125_000) && near(7, 0) && near(9, 1_250_000),
        "{series:?}"
    );
}

/// Bytes beyond its rate that an idle line sends at once when a flood comes at five seconds.
fn carried_after_an_idle_time(setup: &mut Setup) -> u64 {
    setup.traffic = vec![Traffic { start: Span::from_secs(5), ..cbr(1242, 500) }];
    setup.duration = Span::from_secs(6);
    run(setup, 1).lines[0].bytes
}

#[test]
fn a_bucket_saves_no_more_than_its_burst() {
    let mut setup = setup("pfifo limit 1000", 1_000_000, Vec::new());
    setup.lines[0].shaper = Shaper::Bucket(6_000);
    let bytes = carried_after_an_idle_time(&mut setup);
    // A packet may go as long as anything is left.
    assert!((131_000 - 1284..=131_000 + 1284).contains(&bytes), "{bytes}");
}

#[test]
fn an_opportunity_that_nothing_waits_for_is_lost() {
    let mut setup = setup("pfifo limit 1000", 1_000_000, Vec::new());
    let trace = simnel_sim::schedule::Trace::parse("10\n20\n30\n").expect("a trace");
    setup.lines[0].shaper = Shaper::Trace(trace);
    setup.lines[0].rate = None;
    let bytes = carried_after_an_idle_time(&mut setup);
    // 101 opportunities from 5.00 to 6.00 s, and a packet that has begun.
    assert!((99 * 1_500..=101 * 1_500 + 1_284).contains(&bytes), "{bytes}");
}

#[test]
fn what_waits_goes_though_nothing_comes_any_more() {
    // Packets of a whole opportunity each, twenty within a tenth of the time that they take.
    let flood = Traffic { stop: Some(Span::from_millis(1_020)), ..cbr(1_458, 1_000) };
    let traffic = Traffic { start: Span::from_secs(1), ..flood };
    let mut setup = setup("pfifo limit 1000", 1_000_000, vec![traffic]);
    let trace = simnel_sim::schedule::Trace::parse("10\n").expect("a trace");
    setup.lines[0].shaper = Shaper::Trace(trace);
    setup.lines[0].rate = None;
    let results = run(&setup, 1);
    let Outcome::Datagrams { sent, received, .. } = results.flows[0].outcome else { panic!() };
    assert_eq!((sent, received), (20, 20));
}

#[test]
fn whoever_comes_after_an_opportunity_waits_for_the_next() {
    // A probe each 100 ms, an opportunity each 70 ms: what passed by unused is no help.
    let mut setup = setup("pfifo", 1_000_000, vec![ping()]);
    let trace = simnel_sim::schedule::Trace::parse("70\n").expect("a trace");
    setup.lines[0].shaper = Shaper::Trace(trace);
    setup.lines[0].rate = None;
    let results = run(&setup, 1);
    let Outcome::Ping { added_there, .. } = &results.flows[0].outcome else {
        panic!("not a ping");
    };
    let ends = [added_there.least(), added_there.greatest()];
    assert_eq!(ends, [Some(Span::ZERO), Some(Span::from_millis(60))]);
    let mean = added_there.mean().expect("probes").0;
    assert!(mean.abs_diff(30_000_000) < 1_000_000, "{mean}");
}

#[test]
fn a_wire_carries_headers_that_the_discipline_does_not_see() {
    let mut setup = setup("pfifo", 1_000_000, vec![ping()]);
    let Ok(qdisc::Config::Line(line)) = qdisc::parse("line overhead 100 mpu 250") else {
        panic!("words of a line");
    };
    setup.lines[0].framing = line.framing;
    let results = run(&setup, 1);
    let Outcome::Ping { added_there, added_back, .. } = &results.flows[0].outcome else {
        panic!("not a ping");
    };
    // 92 bytes of IP and 100 more, made 250, up; a frame of 106 down.
    assert_eq!(added_there.greatest(), Some(Span(250 * 8_000)));
    assert_eq!(added_back.greatest(), Some(Span(106 * 8_000)));
}

#[test]
fn fractions_of_a_nanosecond_add_up() {
    // 106 bytes at 700 Mbit/s take 1211.43 ns: without the fraction, 29 more in 100 ms.
    let mut setup = setup("pfifo limit 10", 700_000_000, vec![cbr(64, 1)]);
    (setup.duration, setup.warmup) = (Span::from_millis(101), Span::from_millis(1));
    let up = &run(&setup, 1).lines[0];
    assert_eq!(up.capacity_bytes, 8_750_000);
    assert!(up.bytes.abs_diff(up.capacity_bytes) <= 2 * 106, "{}", up.bytes);
}

#[test]
fn the_last_interval_ends_with_the_run() {
    let bulk = traffic(Kind::Bulk { size: None }, Direction::Down);
    let mut setup = setup("pfifo limit 100", 10_000_000, vec![bulk]);
    (setup.duration, setup.warmup) = (Span::from_millis(3_500), Span::from_secs(1));
    let results = run(&setup, 1);
    let (flow, line) = (&results.flows[0], &results.lines[1]);
    assert_eq!((flow.series.len(), line.series.len()), (4, 4));
    assert_eq!(flow.series[1..].iter().sum::<u64>(), flow.goodput_bytes());
    assert_eq!(line.series[1..].iter().sum::<u64>(), line.bytes);
    let lengths = [0, 2, 3, 4].map(|n| results.interval_at(n).0 / 1_000_000);
    assert_eq!(lengths, [1000, 1000, 500, 1000]);
}

/// Series and sums are of the same bytes, and windows are sampled with them.
#[test]
fn series_add_up_to_what_was_delivered() {
    let bulk = traffic(Kind::Bulk { size: None }, Direction::Down);
    let mut setup = setup("pfifo limit 100", 10_000_000, vec![bulk]);
    setup.recording.windows = true;
    let results = run(&setup, 1);
    let (flow, line) = (&results.flows[0], &results.lines[1]);
    assert_eq!((flow.series.len(), flow.windows.len(), line.series.len()), (10, 10, 10));
    // The measured window begins with the second interval.
    assert_eq!(flow.series[1..].iter().sum::<u64>(), flow.goodput_bytes());
    assert_eq!(line.series[1..].iter().sum::<u64>(), line.bytes);
    assert!(flow.series[0] > 0 && flow.goodput_bytes() < line.bytes);
    assert_eq!(line.capacity_bytes, 9 * 1_250_000);
    for sample in &flow.windows {
        assert!(sample.cwnd >= 10 && sample.srtt >= Span::from_millis(50), "{sample:?}");
    }
    // As many segments as the line carried, and those that it dropped.
    let dropped: u64 = flow.fates[1].dropped.iter().sum();
    assert!(flow.tcp.data_segments.abs_diff(line.packets + dropped) < 200);
    assert!(flow.tcp.acks > 0 && line.longest_queue == 100, "{}", line.longest_queue);
}

/// At once or later, as their seed draws it, and each at another time.
#[test]
fn flows_start_within_their_stagger() {
    let mut pings = ping();
    (pings.count, pings.start) = (20, Span::from_millis(500));
    pings.stagger = Span::from_millis(400);
    let results = run(&setup("pfifo", 1_000_000, vec![pings.clone()]), 3);
    let starts: Vec<Time> = results.flows.iter().map(|flow| flow.started).collect();
    for (n, start) in starts.iter().enumerate() {
        assert_eq!(*start, simnel_sim::start(3, n as u32, &pings).0);
        let after = start.since(Time::ZERO);
        assert!(after >= pings.start && after <= pings.start + pings.stagger, "{after:?}");
    }
    let mut apart = starts.clone();
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), 20);
    assert!(apart[0].since(Time::ZERO) < Span::from_millis(600));
    assert!(apart[19].since(Time::ZERO) > Span::from_millis(800));
}

/// Whoever drives a run gets control back after so many events.
#[test]
fn no_step_has_more_events_than_it_may() {
    let bulk = traffic(Kind::Bulk { size: Some(3_000_000) }, Direction::Up);
    let setup = setup("fq_codel", 10_000_000, vec![bulk, ping()]);
    let whole = run(&setup, 5);
    assert!(whole.flows[0].finished.is_some() && whole.events > whole.bottleneck_packets);
    let mut first = Run::new(&setup, 5).expect("a good set-up");
    assert!(!first.advance_by(Time::MAX, 100));
    assert_eq!(first.results().events, 100);
    let mut steps = Run::new(&setup, 5).expect("a good set-up");
    let (mut until, mut calls) = (Time::ZERO, 0);
    while until < Time::ZERO + setup.duration {
        until += Span::from_millis(700);
        while !steps.advance_by(until, 100) {
            calls += 1;
        }
    }
    let steps = steps.finish();
    assert_eq!((steps.hash, steps.events), (whole.hash, whole.events));
    assert!(calls + 15 >= whole.events / 100, "{calls} of {}", whole.events);
}

/// The outcome of an application alone on lines of 100 Mbit/s with 50 ms there and back.
fn alone(kind: Kind) -> Outcome {
    alone_at(100_000_000, kind)
}

fn alone_at(rate: u64, kind: Kind) -> Outcome {
    let app = traffic(kind, Direction::Up);
    run(&setup("pfifo limit 1000", rate, vec![app]), 1).flows.swap_remove(0).outcome
}

#[test]
fn messages_arrive_half_a_round_trip_later() {
    let messages = Kind::Messages { size: 100, interval: Span::from_millis(200) };
    let Outcome::Messages { sent, received, latency } = alone(messages) else { panic!() };
    // The last one is written as the run ends.
    assert_eq!((sent, received, latency.count()), (46, 45, 45));
    assert!(latency.least() >= Some(Span::from_millis(25)));
    assert!(latency.greatest() < Some(Span::from_millis(26)));
}

/// At 1 Mbit/s a message of 5,000 bytes takes 42 ms; where one comes each 40 ms they queue.
#[test]
fn a_message_arrives_with_its_last_byte() {
    let rarely = Kind::Messages { size: 5_000, interval: Span::from_millis(200) };
    let Outcome::Messages { latency, .. } = alone_at(1_000_000, rarely) else { panic!() };
    assert!(latency.least() >= Some(Span::from_millis(25 + 42)));
    assert!(latency.greatest() < Some(Span::from_millis(25 + 44)));
    let messages = Kind::Messages { size: 5_000, interval: Span::from_millis(40) };
    let Outcome::Messages { latency, .. } = alone_at(1_000_000, messages) else { panic!() };
    assert!(latency.least() >= Some(Span::from_millis(25 + 42)));
    // The queue grows by 2 ms with each of some 220.
    assert!(latency.greatest() >= Some(Span::from_millis(400)));
}

#[test]
fn a_transfer_ends_where_it_arrives() {
    let bulk = traffic(Kind::Bulk { size: Some(14_480) }, Direction::Up);
    let mut setup = setup("pfifo limit 1000", 100_000_000, vec![bulk]);
    setup.warmup = Span::ZERO;
    let flow = run(&setup, 1).flows.swap_remove(0);
    let took = flow.finished.expect("an end").since(flow.started);
    // A round trip for the connection, and half of one for ten segments.
    assert!((Span::from_millis(75)..Span::from_millis(77)).contains(&took), "{took:?}");
}

/// A receiver that is slower than the line decides how much comes; only what it has read counts.
#[test]
fn a_slow_reader_gets_what_it_reads() {
    let mut bulk = traffic(Kind::Bulk { size: None }, Direction::Up);
    bulk.reading = Some(Reading { portion: 5_000, interval: Span::from_millis(10) });
    let results = run(&setup("pfifo limit 1000", 10_000_000, vec![bulk]), 1);
    let flow = &results.flows[0];
    assert_eq!(flow.goodput_bytes(), 9 * 100 * 5_000);
    // What is sent beyond that waits in its buffer.
    let sent = flow.tcp.data_segments_received * 1_448;
    assert!((4_500_000..4_600_000).contains(&sent), "{sent}");
    assert_eq!(results.conservation.dropped, 0);
}

/// The second transfer takes the sockets of the first, which is over when its time comes to stop.
#[test]
fn the_end_of_a_transfer_ends_no_other() {
    let mut first = traffic(Kind::Bulk { size: Some(14_480) }, Direction::Up);
    first.stop = Some(Span::from_secs(5));
    let mut second = traffic(Kind::Bulk { size: None }, Direction::Up);
    second.start = Span::from_secs(2);
    let results = run(&setup("pfifo limit 1000", 10_000_000, vec![first, second]), 1);
    assert!(results.flows[0].finished.is_some());
    assert!(results.flows[1].goodput_bytes() > 8 * 1_100_000, "{:?}", results.flows[1].delivered);
}

#[test]
fn answers_are_kept_on_request_and_given_once() {
    let mut run = Run::new(&setup("pfifo", 1_000_000, vec![ping()]), 1).expect("a good set-up");
    run.keep_answers(0);
    run.advance(Time::ZERO + Span::from_millis(320));
    let answers = run.answers(0);
    let rtt = Span::from_micros(51_696);
    let sent = [0, 100, 200].map(|millis| (Time::ZERO + Span::from_millis(millis), rtt));
    assert_eq!(answers, sent);
    assert_eq!(run.answers(0), []);
}

#[test]
fn bursts_are_whole_before_the_next_begins() {
    let pause = Span::from_millis(300);
    let bursts = Kind::Bursts { size: 10_000, pause: (pause, pause) };
    let Outcome::Bursts { completed, completion } = alone(bursts) else { panic!() };
    // In one flight: 25 ms, and 300 until the next.
    assert!((26..=28).contains(&completed), "{completed}");
    assert!(completion.least() >= Some(Span::from_millis(25)));
    assert!(completion.greatest() < Some(Span::from_millis(27)));
    // With headers 83.7 ms at 1 Mbit/s: a burst is complete with its last segment.
    let bursts = Kind::Bursts { size: 10_000, pause: (pause, pause) };
    let Outcome::Bursts { completed, completion } = alone_at(1_000_000, bursts) else { panic!() };
    assert!(completion.least() >= Some(Span::from_micros(25_000 + 83_690)));
    assert!((20..=22).contains(&completed), "{completed}");
}

/// Linux's application is woken when all packets of the moment have been taken in. So where the
/// window moves on only as it reads, a flight of seven segments has one acknowledgement.
#[test]
fn what_arrives_together_is_read_before_it_is_acknowledged() {
    let pause = Span::from_millis(150);
    let mut bursts = traffic(Kind::Bursts { size: 10_000, pause: (pause, pause) }, Direction::Up);
    (bursts.tcp.rcvbuf, bursts.tcp.rcvbuf_max) = (1 << 17, 1 << 17);
    for ingress in [Span::ZERO, Span::from_millis(25)] {
        let mut setup = setup("pfifo limit 1000", 100_000_000, vec![bursts.clone()]);
        setup.lines[0].shaper = Shaper::Bucket(50_000);
        setup.hosts[1].ingress.delay = ingress;
        let flow = run(&setup, 1).flows.swap_remove(0);
        let Outcome::Bursts { completed, .. } = flow.outcome else { panic!() };
        assert!(completed >= 44 && flow.tcp.data_segments.abs_diff(7 * completed) <= 7);
        assert!(flow.tcp.acks.abs_diff(completed) <= 1, "{} {completed}", flow.tcp.acks);
    }
}

#[test]
fn a_page_takes_its_requests_thinking_and_objects() {
    let params = simnel_sim::setup::web::Params {
        interval: Span::from_millis(500),
        pages: (1, 1),
        objects: (2, 2),
        object_size: 1_000,
        object_spread_milli: 0,
        request: (300, 300),
        think: Span::ZERO,
        reading: Span::ZERO,
    };
    let web = Kind::Web(params.clone());
    let Outcome::Web { connections, pages, load_time } = alone(web) else { panic!() };
    assert!(connections - pages <= 1 && pages > 8, "{pages} of {connections}");
    // A round trip for the connection and one for each object.
    assert!(load_time.least() >= Some(Span::from_millis(150)));
    assert!(load_time.greatest() < Some(Span::from_millis(151)));
    let times = |rate, params: &simnel_sim::setup::web::Params| {
        let Outcome::Web { pages, load_time, .. } = alone_at(rate, Kind::Web(params.clone()))
        else {
            panic!()
        };
        (pages, load_time.least(), load_time.greatest())
    };
    // A server thinks about each request, once it is whole: 10 kB take 83.7 ms at 1 Mbit/s.
    let thinking =
        simnel_sim::setup::web::Params { think: Span::from_millis(100), ..params.clone() };
    assert!(times(100_000_000, &thinking).2 >= Some(Span::from_millis(250)));
    let long = simnel_sim::setup::web::Params { request: (10_000, 10_000), ..params.clone() };
    assert!(times(1_000_000, &long).1 >= Some(Span::from_micros(150_000 + 2 * 83_690)));
    // Who reads asks for fewer pages.
    let many =
        simnel_sim::setup::web::Params { interval: Span::from_secs(3), pages: (99, 99), ..params };
    let reading = simnel_sim::setup::web::Params { reading: Span::from_secs(1), ..many.clone() };
    let (fast, slow) = (times(100_000_000, &many).0, times(100_000_000, &reading).0);
    assert!(slow > 0 && slow * 4 < fast, "{slow} pages with reading, {fast} without");
}

#[test]
fn a_video_plays_without_a_stall_where_the_line_has_more_than_it_takes() {
    let video = Kind::Dash(simnel_sim::setup::dash::Params::default());
    let Outcome::Dash(playback) = alone(video) else { panic!() };
    let rates: Vec<u64> = playback.chunks.iter().map(|chunk| chunk.rate).collect();
    let ladder = simnel_sim::setup::dash::LADDER;
    assert_eq!((rates[0], *rates.last().unwrap()), (ladder[0], ladder[19]));
    assert!(rates.windows(2).all(|pair| pair[0] <= pair[1]), "{rates:?}");
    for chunk in &playback.chunks[1..] {
        assert!(chunk.throughput < 100_000_000, "{chunk:?}");
    }
    // Two chunks of two seconds are there before it begins, and thirty at the most ahead.
    let second = playback.chunks[2].asked.since(Time::ZERO);
    assert_eq!(playback.startup, Some(second));
    assert_eq!((playback.stalls, playback.stalled), (0, Span::ZERO));
    assert_eq!(playback.played + second, Span::from_secs(10));
    assert_eq!(rates.len(), 19);
}
