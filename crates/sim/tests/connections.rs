//! Connections from their first segment to their end, and the frames that they are seen by.

mod support;

use simnel_core::qdisc::{self, Device};
use simnel_core::{Rate, Span, Time};
use simnel_sim::schedule::Step;
use simnel_sim::setup::{dash, Loss};
use simnel_sim::tandem::{Capacity, Tandem};
use simnel_sim::{Direction, Kind, Run, Setup, Traffic};
use support::{bulk, frames, ping, run, traffic, whole, Frame};

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Both ends close one after the other, and then nobody has a window.
#[test]
fn a_connection_is_over_when_both_ends_are() {
    let mut run = Run::new(&whole("pfifo", 10_000_000, vec![bulk(Some(14_480))]), 1).unwrap();
    run.advance(at(60));
    assert_eq!(run.windows(), [Some(10)]);
    // The last bytes come after 88 ms, their acknowledgement and a FIN after 113.
    run.advance(at(112));
    assert!(run.windows()[0].is_some());
    run.advance(at(200));
    assert_eq!(run.windows(), [None]);
    assert!(run.results().flows[0].finished.is_some());
}

/// The eleventh of eleven segments is lost, which has FIN: only time tells.
#[test]
fn a_transfer_ends_though_its_last_segment_is_lost() {
    let mut setup = whole("pfifo", 100_000_000, vec![bulk(Some(15_928))]);
    setup.lines[0].loss = Loss::Every(11);
    let flow = run(&setup, 1).flows.swap_remove(0);
    assert_eq!((flow.fates[0].lost, flow.tcp.retransmits), (1, 1));
    assert_eq!(flow.tcp.probes + flow.tcp.timeouts, 1);
    let took = flow.finished.expect("an end").since(flow.started);
    assert!(took > Span::from_millis(150) && took < Span::from_millis(500), "{took:?}");
}

/// Six SYNs again take 127 seconds (tcp(7), `tcp_syn_retries`), and a little more, as long timers
/// of Linux are late.
#[test]
fn who_is_not_answered_gives_up() {
    let mut setup = whole("pfifo", 10_000_000, vec![bulk(Some(1))]);
    setup.duration = Span::from_secs(200);
    setup.lines[0].rate = Some(Rate(0));
    let mut run = Run::new(&setup, 1).unwrap();
    run.advance(at(126_000));
    assert!(run.windows()[0].is_some());
    run.advance(at(140_000));
    assert_eq!(run.windows(), [None]);
    let results = run.finish();
    assert_eq!(results.conservation.sent, 7);
    assert_eq!(results.flows[0].finished, None);
}

/// Of a download that a client asks for, the window is the server's.
#[test]
fn a_flows_window_is_its_senders() {
    let video = traffic(Kind::Dash(dash::Params::default()), Direction::Down);
    let mut setup = whole("pfifo limit 1000", 10_000_000, vec![video, bulk(None)]);
    setup.traffic[1].direction = Direction::Down;
    setup.recording.windows = true;
    let mut run = Run::new(&setup, 1).unwrap();
    run.advance(at(8_000));
    let windows = run.windows();
    assert!(windows.iter().all(|window| *window > Some(20)), "{windows:?}");
    for flow in run.finish().flows {
        assert!(flow.windows[8].cwnd > 20, "{:?}", flow.windows);
    }
}

/// Samples from the fourth interval on, in which the flow starts, each in its place.
#[test]
fn windows_are_sampled_if_asked_for() {
    let late = Traffic { start: Span::from_millis(3_500), ..bulk(None) };
    let mut setup = whole("pfifo limit 100", 10_000_000, vec![late]);
    assert!(run(&setup, 1).flows[0].windows.is_empty());
    setup.recording.windows = true;
    let windows = run(&setup, 1).flows.swap_remove(0).windows;
    let sampled: Vec<bool> = windows.iter().map(|sample| sample.cwnd > 0).collect();
    assert_eq!(sampled, [false, false, false, true, true, true, true, true, true, true]);
}

/// A discipline of one's own, which knows flows by their hashes.
#[test]
fn both_ways_of_a_flow_are_one_connection() {
    let mut run = Run::new(&whole("pfifo", 10_000_000, vec![bulk(None), ping()]), 1).unwrap();
    let capacity =
        || Capacity { rates: vec![Step { at: Time::ZERO, rate: Rate(1_000_000) }], ..line() };
    for direction in Direction::BOTH {
        let shaper = qdisc::build(&qdisc::parse("pfifo").unwrap(), &Device::default()).unwrap();
        run.host(direction, Box::new(Tandem::new(direction, shaper, capacity())));
    }
    run.advance(at(500));
    let flows = Direction::BOTH.map(|direction| {
        let tandem = Tandem::of(run.managed(direction)).expect("the tandem");
        tandem.stamps().map(|stamp| stamp.flow).next().expect("segments")
    });
    assert_ne!(flows[0], flows[1]);
    // The client is at home, and sends up.
    assert_eq!(flows.map(|flow| run.connection(flow)), [Some(flows[0]); 2]);
    assert_eq!(run.connection(flows[0] ^ flows[1]), None);
}

fn line() -> Capacity {
    Capacity { buffer: 1 << 20, ..Capacity::default() }
}

/// Sequence number, acknowledgement and flags of a TCP segment.
fn tcp((.., frame): &Frame) -> (u32, u32, u8) {
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    (word(38), word(42), frame[47])
}

/// RFC 9293, section 3.5: each end with numbers of its own, which the other one acknowledges.
#[test]
fn a_captured_handshake_is_one() {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let transfers = vec![bulk(Some(10_000)), Traffic { dscp: 46, ..bulk(Some(10_000)) }];
    let mut setup = whole("pfifo", 10_000_000, transfers);
    setup.traffic[1].start = Span::from_secs(1);
    let frames = frames(&setup);
    let mut begins = Vec::new();
    for (from, dscp) in [(0, 0), (1_000, 46)] {
        let those = |(_, time, _): &&Frame| *time >= at(from) && *time < at(from + 900);
        let all: Vec<&Frame> = frames.iter().filter(those).collect();
        assert!(all.iter().all(|(.., frame)| frame[15] >> 2 == dscp));
        let [syn, answer, ack] = [0, 1, 2].map(|n| tcp(all[n]));
        assert_eq!(syn.2, SYN);
        assert_eq!((answer.2, answer.1), (SYN | ACK, syn.0.wrapping_add(1)));
        assert_eq!(
            (ack.2 & ACK, ack.0, ack.1),
            (ACK, syn.0.wrapping_add(1), answer.0.wrapping_add(1))
        );
        begins.extend([syn.0, answer.0]);
    }
    begins.sort_unstable();
    begins.dedup();
    assert_eq!(begins.len(), 4, "{begins:?}");
}

/// RFC 792: type 8 asks, type 0 answers.
#[test]
fn an_echo_is_asked_for_at_home() {
    let kind = Kind::Ping { size: 64, interval: Span::from_millis(100), icmp: true };
    let frames = frames(&whole("pfifo", 1_000_000, vec![traffic(kind, Direction::Up)]));
    assert!(frames.len() > 190);
    for (direction, _, frame) in &frames {
        let expected = if *direction == Direction::Up { 8 } else { 0 };
        assert_eq!((frame[23], frame[34]), (1, expected));
    }
}

#[test]
fn a_capture_has_each_frame_as_it_leaves_its_line() {
    let mut setup = whole("pfifo", 1_000_000, vec![ping()]);
    setup.duration = Span::from_millis(90);
    let frames = frames(&setup);
    let left: Vec<_> = frames.iter().map(|(way, at, frame)| (*way, *at, frame.len())).collect();
    // 106 bytes take 848 us at 1 Mbit/s; the answer comes after a round trip.
    let at = |micros| Time::ZERO + Span::from_micros(micros);
    assert_eq!(left, [(Direction::Up, at(848), 106), (Direction::Down, at(51_696), 106)]);
    assert_eq!(Direction::BOTH.map(|way| way.to_string()), ["up", "down"]);
}

/// While a frame takes its time on one line, many pass on the other.
#[test]
fn a_capture_is_in_order_of_time() {
    let mut setup: Setup = whole("pfifo limit 20", 1_000_000, vec![bulk(None), bulk(None)]);
    setup.traffic[0].direction = Direction::Down;
    setup.lines[0].rate = Some(Rate::from_bits(300_000));
    let frames = frames(&setup);
    let of = |way| frames.iter().filter(|(direction, ..)| *direction == way).count();
    assert!(Direction::BOTH.map(of).iter().all(|count| *count > 200));
    assert!(frames.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

/// A sensor whose connection was given up goes on in vain, though another one uses its sockets.
#[test]
fn who_is_given_up_writes_into_no_other_connection() {
    let messages = |size, start| Traffic {
        start: Span::from_secs(start),
        ..traffic(Kind::Messages { size, interval: Span::from_secs(1) }, Direction::Up)
    };
    let mut setup = whole("pfifo", 10_000_000, vec![messages(1_000, 0), messages(10, 2_000)]);
    setup.duration = Span::from_secs(2_100);
    let step = |secs: u64, rate| Step { at: at(1_000 * secs), rate: Rate(rate) };
    setup.lines[0].steps = vec![step(10, 0), step(1_900, 1_000_000)];
    let flows = run(&setup, 1).flows;
    // Fifteen repetitions take a quarter of an hour (tcp(7), `tcp_retries2`).
    assert_eq!(flows[0].delivered, [10_000, 0]);
    assert_eq!(flows[1].delivered, [1_000, 0]);
}
