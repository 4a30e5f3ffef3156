//! The handshake, segment by segment (RFC 9293, section 3.5; RFC 7323; RFC 3168, section 6.1.1).

use simnel_core::time::{Span, Time};
use simnel_tcp::{Config, EcnMode, Endpoint, Path, Segment, State, TcpFlags};

const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn sent(endpoint: &mut Endpoint, now: Time) -> Vec<Segment> {
    std::iter::from_fn(|| endpoint.poll_transmit(now)).collect()
}

/// The SYN of a client, and the client.
fn client(config: &Config) -> (Endpoint, Segment) {
    let mut client = Endpoint::new(config);
    client.connect(Time::ZERO);
    let syn = sent(&mut client, Time::ZERO);
    assert_eq!(syn.len(), 1);
    (client, syn[0])
}

/// A server that has been sent `syn`, and its answer.
fn server(config: &Config, syn: &Segment) -> (Endpoint, Segment) {
    let mut server = Endpoint::new(config);
    server.listen();
    server.on_segment(syn, ms(10));
    let answer = sent(&mut server, ms(10));
    assert_eq!(answer.len(), 1);
    (server, answer[0])
}

/// Both ends of a connection that stands.
fn connected(a: &Config, b: &Config) -> (Endpoint, Endpoint) {
    let (mut client, syn) = client(a);
    let (mut server, answer) = server(b, &syn);
    client.on_segment(&answer, ms(20));
    for segment in sent(&mut client, ms(20)) {
        server.on_segment(&segment, ms(30));
    }
    assert_eq!((client.state(), server.state()), (State::Established, State::Established));
    assert!(client.take_events().connected && server.take_events().connected);
    (client, server)
}

#[test]
fn a_syn_offers_what_the_settings_say() {
    let (_, syn) = client(&Config::default());
    assert!(syn.flags.has(TcpFlags::SYN) && !syn.flags.has(TcpFlags::ACK));
    // A buffer of 6 MiB needs a shift of 7; the option is stated as one more.
    assert_eq!((syn.seq, syn.mss, syn.window_scale), (0, 1_460, 8));
    assert!(syn.timestamps && syn.sack_permitted && !syn.flags.has(TcpFlags::ECE));
    // A buffer of 208 KiB may be asked for, whatever autotuning may do (`net.core.rmem_max`).
    for (rcvbuf_max, shift) in [(65_535, 2), (262_143, 2), (262_144, 3), (u32::MAX, 14)] {
        let config = Config { rcvbuf: 4_096, rcvbuf_max, ..Config::default() };
        assert_eq!(client_shift(&config), shift, "{rcvbuf_max}");
    }
    let bare =
        Config { sack: false, timestamps: false, window_scaling: false, ..Config::default() };
    let (_, syn) = client(&bare);
    assert_eq!((syn.sack_permitted, syn.timestamps, syn.window_scale), (false, false, 0));
}

/// RFC 7323, section 2.2: a window beside SYN is not scaled. Linux's first offers are half of the
/// buffer in whole segments, less their timestamps where these are agreed on. What is left of an
/// offer is rounded up to the unit.
#[test]
fn the_first_windows_are_linuxs() {
    let of = |config: &Config| {
        let (mut client, syn) = client(config);
        let (mut server, answer) = server(config, &syn);
        client.on_segment(&answer, ms(20));
        let ack = sent(&mut client, ms(20))[0];
        client.write(100);
        server.on_segment(&ack, ms(30));
        for segment in sent(&mut client, ms(20)) {
            server.on_segment(&segment, ms(30));
        }
        let acks = sent(&mut server, ms(30));
        [syn.window, answer.window, ack.window, acks[0].window]
    };
    let all = Config::default();
    assert_eq!(of(&all), [64_240, 65_160, 64_256, 65_152]);
    let without = Config { timestamps: false, ..all };
    assert_eq!(of(&without), [64_240, 64_240, 64_256, 64_256]);
    let unscaled = Config { window_scaling: false, ..all };
    assert_eq!(of(&unscaled), [64_240, 65_160, 64_240, 65_060]);
    let small = Config { mtu: 576, ..all };
    assert_eq!(of(&small), [65_392, 65_500, 65_408, 65_408]);
    let large = Config { rcvbuf: 1 << 20, ..all };
    assert_eq!(of(&large), [65_535, 65_535, 65_536, 65_536]);
}

/// RFC 7323, section 2.3: a capture tells windows by the scale that its SYNs agree upon.
#[test]
fn headers_tell_windows_as_the_connection_scales_them() {
    let all = Config::default();
    let unscaled = Config { window_scaling: false, ..all };
    let large = Config { rcvbuf_max: 64 << 20, ..all };
    for (mine, theirs, shift) in
        [(all, all, 7), (large, all, 11), (unscaled, all, 0), (all, unscaled, 0)]
    {
        let (mut client, mut server) = connected(&mine, &theirs);
        client.write(100);
        for segment in sent(&mut client, ms(30)) {
            let mut header = [0; 60];
            segment.write_header((1, 2), (0, 0), &mut header);
            let told = u32::from(u16::from_be_bytes([header[14], header[15]]));
            assert_eq!(told << shift, segment.window, "{shift}");
            server.on_segment(&segment, ms(40));
        }
    }
}

fn client_shift(config: &Config) -> u8 {
    client(config).1.window_scale - 1
}

#[test]
fn options_hold_if_both_ends_offer_them() {
    let all = Config::default();
    for (sack, timestamps, window_scaling) in
        [(true, true, true), (false, true, true), (true, false, true), (true, true, false)]
    {
        let some = Config { sack, timestamps, window_scaling, ..all };
        for (a, b) in [(all, some), (some, all)] {
            let (_, syn) = client(&a);
            let (_, answer) = server(&b, &syn);
            assert_eq!((answer.flags, answer.ack), (SYN_ACK, 1));
            assert_eq!(answer.sack_permitted, sack);
            assert_eq!(answer.timestamps, timestamps);
            assert_eq!(answer.window_scale > 0, window_scaling);
            let (mut client, mut server) = connected(&a, &b);
            client.write(1 << 20);
            let data = sent(&mut client, ms(30));
            // An initial window of ten; timestamps take 12 bytes of each.
            assert_eq!(data.len(), 10);
            assert_eq!(data[0].len, if timestamps { 1_448 } else { 1_460 });
            assert_eq!(data[0].timestamps, timestamps);
            data.iter().skip(1).for_each(|segment| server.on_segment(segment, ms(40)));
            let answers = sent(&mut server, ms(40));
            assert_eq!(answers.iter().any(|answer| answer.sack_count > 0), sack);
        }
    }
}

#[test]
fn without_scaling_no_window_exceeds_sixteen_bits() {
    let wide = Config { rcvbuf: 1 << 20, ..Config::default() };
    for window_scaling in [true, false] {
        let (mut client, mut server) = connected(&wide, &Config { window_scaling, ..wide });
        client.write(1);
        for segment in sent(&mut client, ms(30)) {
            server.on_segment(&segment, ms(40));
        }
        server.write(1);
        let windows: Vec<u32> = sent(&mut server, ms(40)).iter().map(|s| s.window).collect();
        assert!(!windows.is_empty());
        assert!(windows.iter().all(|&window| (window > 65_535) == window_scaling), "{windows:?}");
    }
}

#[test]
fn the_smaller_segment_size_counts() {
    for (a, b) in [(1500, 1400), (1400, 1500)] {
        let of = |mtu| Config { mtu, timestamps: false, ..Config::default() };
        let (mut client, mut server) = connected(&of(a), &of(b));
        for endpoint in [&mut client, &mut server] {
            endpoint.write(100_000);
            assert_eq!(sent(endpoint, ms(40))[0].len, 1_360);
        }
    }
    // RFC 9293, section 3.7.1: 536 where nothing is said.
    let (_, mut syn) = client(&Config { timestamps: false, ..Config::default() });
    syn.mss = 0;
    let (mut server, _) = server(&Config::default(), &syn);
    server.on_segment(&Segment::new(TcpFlags::ACK, 1, 1), ms(20));
    server.write(100_000);
    let mut ack = Segment::new(TcpFlags::ACK, 1, 1);
    ack.window = 60_000;
    server.on_segment(&ack, ms(21));
    assert_eq!(sent(&mut server, ms(30))[0].len, 536);
}

/// RFC 3168, section 6.1.1: asked for with ECE and CWR, agreed to with ECE alone.
#[test]
fn ecn_needs_one_who_asks_and_one_who_agrees() {
    use EcnMode::{Accurate, Off, On, Passive};
    for (a, b, agreed) in [
        (Off, On, false),
        (Passive, On, false),
        (On, Off, false),
        (On, Passive, true),
        (On, On, true),
        (Accurate, Passive, true),
        (Accurate, Accurate, true),
    ] {
        let of = |ecn| Config { ecn, ..Config::default() };
        let (mut client, syn) = client(&of(a));
        let asks = matches!(a, On | Accurate);
        assert_eq!((syn.flags.has(TcpFlags::ECE), syn.flags.has(TcpFlags::CWR)), (asks, asks));
        let (_, answer) = server(&of(b), &syn);
        let echoes = (answer.flags.has(TcpFlags::ECE), answer.flags.has(TcpFlags::CWR));
        assert_eq!(echoes, (agreed, false), "{a:?} {b:?}");
        client.on_segment(&answer, ms(20));
        client.write(1);
        let data = sent(&mut client, ms(20)).into_iter().find(|segment| segment.len > 0);
        let ect = data.unwrap().ecn != simnel_core::packet::Ecn::NotEct;
        assert_eq!(ect, agreed, "{a:?} {b:?}");
    }
    // An answer that reflects both flags comes from one who does not know them.
    let (mut client, syn) = client(&Config { ecn: On, ..Config::default() });
    let (_, mut answer) = server(&Config::default(), &syn);
    answer.flags.set(TcpFlags::CWR);
    client.on_segment(&answer, ms(20));
    client.write(1);
    let data = sent(&mut client, ms(20)).into_iter().find(|segment| segment.len > 0);
    assert_eq!(data.unwrap().ecn, simnel_core::packet::Ecn::NotEct);
}

#[test]
fn what_does_not_belong_to_the_handshake_changes_nothing() {
    let config = Config { timestamps: false, ..Config::default() };
    let (mut client, syn) = client(&config);
    for strange in [
        Segment::new(TcpFlags::ACK, 0, 1),
        Segment::new(SYN_ACK, 0, 0),
        Segment::new(SYN_ACK, 0, 2),
        Segment::new(TcpFlags::SYN, 0, 1),
    ] {
        client.on_segment(&strange, ms(5));
        assert_eq!(client.state(), State::SynSent, "{strange:?}");
    }
    let mut listening = Endpoint::new(&config);
    listening.listen();
    for strange in [Segment::new(TcpFlags::ACK, 1, 1), Segment::new(SYN_ACK, 0, 1)] {
        listening.on_segment(&strange, ms(5));
        assert_eq!(listening.state(), State::Listen, "{strange:?}");
    }
    let (mut server, _) = server(&config, &syn);
    server.on_segment(&Segment::new(TcpFlags::ACK, 1, 0), ms(15));
    assert_eq!(server.state(), State::SynReceived);
    // The same SYN again: the answer was lost.
    server.on_segment(&syn, ms(15));
    let again = sent(&mut server, ms(15));
    assert_eq!(again.iter().map(|answer| answer.flags).collect::<Vec<_>>(), [SYN_ACK]);
    server.on_segment(&Segment::new(TcpFlags::ACK, 1, 1), ms(20));
    assert_eq!(server.state(), State::Established);
}

#[test]
fn an_endpoint_opens_once() {
    let mut listening = Endpoint::new(&Config::default());
    listening.listen();
    listening.connect(ms(1));
    assert_eq!(listening.state(), State::Listen);
    let (mut ended, _) = client(&Config::default());
    ended.on_segment(&Segment::new(TcpFlags::RST, 0, 1), ms(10));
    ended.connect(ms(20));
    ended.listen();
    assert_eq!((ended.state(), sent(&mut ended, ms(20)).len()), (State::Closed, 0));
}

/// RFC 9293, section 3.5: the ACK that ends the handshake may carry data.
#[test]
fn data_may_come_with_the_last_of_the_handshake() {
    let config = Config { timestamps: false, ..Config::default() };
    let (_, syn) = client(&config);
    let (mut server, _) = server(&config, &syn);
    server.on_segment(&Segment { len: 100, ..Segment::new(TcpFlags::ACK, 1, 1) }, ms(20));
    assert_eq!((server.state(), server.received()), (State::Established, 100));
    let answers = sent(&mut server, ms(20));
    assert_eq!(answers.iter().map(|answer| answer.ack).collect::<Vec<_>>(), [101]);
}

/// RFC 6298, section 2.2: a SYN that was sent once gives the first sample.
#[test]
fn the_first_round_trip_is_that_of_the_syn() {
    let config = Config { timestamps: false, ..Config::default() };
    let mut client = Endpoint::new(&config);
    client.connect(ms(1_000));
    let syn = sent(&mut client, ms(1_000))[0];
    let (_, answer) = server(&config, &syn);
    client.on_segment(&answer, ms(1_020));
    assert_eq!(client.stats().srtt, Span::from_millis(20));
}

/// An answer that took seconds, on either side: which of three it is for says its echo.
#[test]
fn repetitions_of_a_syn_that_was_not_lost_cost_no_window() {
    let repeated = |endpoint: &mut Endpoint, first: Segment| {
        let mut all = vec![first];
        while all.len() < 3 {
            let timer = endpoint.next_timer().expect("a timer");
            endpoint.on_timer(timer);
            all.extend(sent(endpoint, timer));
        }
        all
    };
    let first_window = |endpoint: &mut Endpoint| {
        endpoint.write(1_000_000);
        sent(endpoint, ms(5_000)).iter().filter(|segment| segment.len > 0).count()
    };
    for (timestamps, echoed, segments) in [(true, 0, 10), (true, 1, 1), (true, 2, 1), (false, 0, 1)]
    {
        let config = Config { timestamps, ..Config::default() };
        let (mut active, first) = client(&config);
        let syns = repeated(&mut active, first);
        let (mut passive, _) = server(&config, &syns[0]);
        let answer = Segment { ts_echo: syns[echoed].ts_val, ..server(&config, &syns[0]).1 };
        active.on_segment(&answer, ms(5_000));
        assert_eq!(first_window(&mut active), segments, "{timestamps} {echoed}");

        let answers = repeated(&mut passive, answer);
        let ts_echo = answers[echoed].ts_val;
        let ack = Segment { timestamps, ts_echo, ..Segment::new(TcpFlags::ACK, 1, 1) };
        passive.on_segment(&Segment { window: 1 << 20, ..ack }, ms(5_000));
        assert_eq!(first_window(&mut passive), segments, "{timestamps} {echoed}");
    }
}

/// RFC 3168, section 6.1.4: a bare ACK is not ECN-capable; with DCTCP, Linux sends it so.
#[test]
fn bare_acks_are_ecn_capable_with_dctcp_alone() {
    use simnel_core::packet::Ecn;
    use simnel_tcp::CongestionControl::{Cubic, Dctcp};
    for (congestion, ecn, expected) in [
        (Cubic, EcnMode::On, Ecn::NotEct),
        (Dctcp, EcnMode::Off, Ecn::NotEct),
        (Dctcp, EcnMode::Accurate, Ecn::Ect0),
    ] {
        let config = Config { congestion, ecn, ..Config::default() };
        let (mut client, mut server) = connected(&config, &config);
        client.write(1);
        exchange(&mut client, &mut server, 40);
        client.write(1_000);
        let data = sent(&mut client, ms(50));
        data.iter().for_each(|segment| server.on_segment(segment, ms(60)));
        let acks = sent(&mut server, ms(60));
        assert!(!acks.is_empty());
        assert!(acks.iter().all(|ack| ack.ecn == expected), "{congestion:?} {ecn:?}");
    }
}

/// RFC 3168, section 6.1.5: what is sent again is not ECN-capable; nor is a FIN without data.
#[test]
fn only_new_data_is_ecn_capable() {
    use simnel_core::packet::Ecn;
    let config = Config { ecn: EcnMode::On, ..Config::default() };
    let (mut client, _) = connected(&config, &config);
    client.write(1_448);
    let first = sent(&mut client, ms(40));
    assert_eq!((first.len(), first[0].ecn), (1, Ecn::Ect0));
    let timer = client.next_timer().expect("a timer");
    client.on_timer(timer);
    let again = sent(&mut client, timer);
    assert_eq!((again[0].seq, again[0].len, again[0].ecn), (1, 1_448, Ecn::NotEct));
    let (mut client, _) = connected(&config, &config);
    client.close();
    let fin = sent(&mut client, ms(40));
    assert!(fin[0].flags.has(TcpFlags::FIN) && fin[0].len == 0 && fin[0].ecn == Ecn::NotEct);
    assert!(!fin[0].flags.has(TcpFlags::PSH) && client.stats().data_segments_sent == 0);
}

/// RFC 9293, section 3.10.7.4: what lies outside the window is answered, and is no data; nor is
/// what leaves a gap, yet.
#[test]
fn what_cannot_be_read_is_no_event() {
    let (_, mut server) = connected(&Config::default(), &Config::default());
    for seq in [10_000_001, 1_449] {
        let mut segment = Segment::new(TcpFlags::ACK, seq, 1);
        (segment.len, segment.timestamps, segment.ts_val) = (1_448, true, 50);
        server.on_segment(&segment, ms(50));
        let answer = sent(&mut server, ms(50));
        assert_eq!((answer.len(), answer[0].ack, answer[0].len), (1, 1, 0), "{seq}");
        assert!(!server.take_events().data);
    }
}

/// Segments each way until there are no more.
fn exchange(a: &mut Endpoint, b: &mut Endpoint, at: u64) {
    for n in 0..10 {
        for segment in sent(a, ms(at + n)) {
            b.on_segment(&segment, ms(at + n));
        }
        for segment in sent(b, ms(at + n)) {
            a.on_segment(&segment, ms(at + n));
        }
    }
}

#[test]
fn segments_are_counted_by_kind() {
    let (mut client, mut server) = connected(&Config::default(), &Config::default());
    client.write(3 * 1_448);
    exchange(&mut client, &mut server, 40);
    let (a, b) = (client.stats(), server.stats());
    // A SYN, the last of the handshake and data; an answer and ACKs.
    assert_eq!((a.segments_sent, a.data_segments_sent, a.acks_sent), (5, 3, 1));
    assert_eq!((b.segments_received, b.data_segments_received), (5, 3));
    assert_eq!((b.segments_sent, b.data_segments_sent), (1 + b.acks_sent, 0));
    assert_eq!((a.segments_received, a.data_segments_received), (b.segments_sent, 0));
    assert_eq!((a.bytes_sent, a.bytes_acked, b.bytes_received), (4_344, 4_344, 4_344));
    // What has happened is told once.
    let (of_a, of_b) = (client.take_events(), server.take_events());
    assert_eq!((of_a.acked, of_a.data, of_b.acked, of_b.data), (true, false, false, true));
    exchange(&mut client, &mut server, 60);
    assert!(!client.take_events().acked && !server.take_events().data);
    // Needless repetitions are no events.
    let mut old = Segment::new(TcpFlags::ACK, 1, 1);
    (old.len, old.timestamps) = (1_448, true);
    server.on_segment(&old, ms(70));
    let opened = Segment { window: 200_000, ..Segment::new(TcpFlags::ACK, 1, 4_345) };
    client.on_segment(&opened, ms(70));
    assert!(!client.take_events().acked && !server.take_events().data);
    assert_eq!((client.stats().peer_window, client.stats().in_flight), (200_000, 0));
}

/// RFC 9293, section 3.6: each direction closes by itself, and the end is told once.
#[test]
fn both_ends_close_before_it_is_over() {
    let (mut a, mut b) = connected(&Config::default(), &Config::default());
    a.write(1_000);
    exchange(&mut a, &mut b, 40);
    a.take_events();
    b.take_events();
    a.close();
    exchange(&mut a, &mut b, 60);
    assert_eq!((a.state(), b.state()), (State::Closing, State::CloseWait));
    let (of_a, of_b) = (a.take_events(), b.take_events());
    assert_eq!((of_a.peer_closed, of_b.peer_closed), (false, true));
    assert!(!of_a.finished && !of_b.finished);
    b.close();
    let fin = sent(&mut b, ms(80)).pop().unwrap();
    a.on_segment(&fin, ms(80));
    exchange(&mut a, &mut b, 80);
    assert_eq!((a.state(), b.state()), (State::Finished, State::Finished));
    let (of_a, of_b) = (a.take_events(), b.take_events());
    assert!(of_a.peer_closed && of_a.finished && of_b.finished);
    a.on_segment(&fin, ms(95));
    assert_eq!((a.state(), a.take_events().finished), (State::Finished, false));
}

/// RFC 9293, section 3.10.5: a reset tells the other end, of a connection that stands.
#[test]
fn an_aborted_connection_is_reset() {
    let (mut a, mut b) = connected(&Config::default(), &Config::default());
    a.write(2_000);
    exchange(&mut a, &mut b, 40);
    let before = a.stats().segments_sent;
    a.abort();
    let reset = sent(&mut a, ms(60));
    assert_eq!((a.state(), a.next_timer()), (State::Closed, None));
    assert_eq!((reset.len(), reset[0].seq, a.stats().segments_sent), (1, 2_001, before + 1));
    assert!(reset[0].flags.has(TcpFlags::RST) && !a.take_events().reset);
    b.on_segment(&reset[0], ms(70));
    assert!(b.state() == State::Closed && b.take_events().reset);
    // Where nothing stands, nothing is told.
    let mut listening = Endpoint::new(&Config::default());
    listening.listen();
    listening.abort();
    assert_eq!((listening.state(), sent(&mut listening, ms(1)).len()), (State::Closed, 0));
}

/// RFC 9293, section 3.10.7.4: a SYN in a connection that stands is answered with an ACK.
#[test]
fn a_syn_in_a_connection_that_stands_is_answered() {
    let (_, syn) = client(&Config::default());
    let (_, mut b) = connected(&Config::default(), &Config::default());
    b.on_segment(&syn, ms(60));
    let answers = sent(&mut b, ms(60));
    assert_eq!(answers.iter().map(|answer| answer.flags).collect::<Vec<_>>(), [TcpFlags::ACK]);
    assert_eq!(b.state(), State::Established);
}

/// RFC 9293, section 3.10.7.4, and Linux's `tcp_rcv_established`.
#[test]
fn without_ack_nothing_is_taken() {
    for (flags, taken) in [(TcpFlags::ACK, 100), (TcpFlags::PSH, 0)] {
        let (mut client, _) = connected(&Config::default(), &Config::default());
        client.on_segment(&Segment { len: 100, ..Segment::new(flags, 1, 1) }, ms(30));
        assert_eq!(client.stats().bytes_received, taken);
        assert_eq!(sent(&mut client, ms(30)).len(), usize::from(taken > 0));
    }
}

#[test]
fn what_is_written_is_unsent_until_it_leaves() {
    let (mut a, _) = connected(&Config::default(), &Config::default());
    assert_eq!(a.unsent(), 0);
    a.write(12 * 1_448);
    assert_eq!(a.unsent(), 12 * 1_448);
    assert_eq!((sent(&mut a, ms(40)).len(), a.unsent()), (10, 2 * 1_448));
    a.write_unlimited();
    assert_eq!(a.unsent(), u64::MAX);
}

#[test]
fn a_reset_ends_it_on_either_side() {
    let (mut client, syn) = client(&Config::default());
    client.on_segment(&Segment::new(TcpFlags::RST, 0, 1), ms(10));
    let (mut server, _) = server(&Config::default(), &syn);
    server.on_segment(&Segment::new(TcpFlags::RST, 1, 0), ms(10));
    for endpoint in [&mut client, &mut server] {
        assert_eq!(endpoint.state(), State::Closed);
        assert!(endpoint.take_events().reset);
        assert_eq!(endpoint.next_timer(), None);
    }
}

/// RFC 6298, section 2.1: a second, doubled each time.
#[test]
fn a_syn_is_repeated_after_a_second_and_then_two() {
    let (mut client, _) = client(&Config { tick: Span::ZERO, ..Config::default() });
    let mut at = Vec::new();
    for _ in 0..3 {
        let timer = client.next_timer().unwrap();
        client.on_timer(timer);
        let again = sent(&mut client, timer);
        assert!(again.len() == 1 && again[0].flags.has(TcpFlags::SYN));
        at.push(timer.0 / 1_000_000);
    }
    assert_eq!(at, [1_000, 3_000, 7_000]);
}

#[test]
fn a_path_is_remembered_from_one_connection_to_the_next() {
    let config = Config::default();
    let (client, _) = connected(&config, &config);
    let mut path = Path::default();
    client.remember(&mut path);
    // The handshake took 20 ms; no threshold is known before the first reduction.
    assert_eq!(path, Path { srtt8_us: 8 * 20_000, ..Path::default() });
    path.ssthresh = 33;
    let mut next = Endpoint::new(&config);
    next.recall(&path);
    assert_eq!(next.stats().ssthresh, 33);
}

/// Linux's `tcp_send_fin`: who closes has written before. What left at once has no FIN, which comes
/// alone; the last of what had to wait has it. The window does not hold FIN back.
#[test]
fn fin_rides_on_what_waits_and_on_nothing_else() {
    let of = |segments: u64| {
        let (mut client, _) = connected(&Config::default(), &Config::default());
        client.write(segments * 1_448);
        client.close();
        let sent: Vec<Segment> = sent(&mut client, ms(100));
        let fin = |segment: &Segment| segment.flags.has(TcpFlags::FIN);
        let last = sent[sent.len() - 1];
        (sent.len(), last.len, sent.iter().filter(|segment| fin(segment)).count(), fin(&last))
    };
    assert_eq!(of(3), (4, 0, 1, true));
    assert_eq!(of(10), (11, 0, 1, true));
    // One waits: it has FIN, and does not.
    assert_eq!(of(11), (11, 1_448, 1, true));
    assert_eq!(of(12), (10, 1_448, 0, false));
}
