//! Linux's rules for the receive window, one at a time.

use super::super::delayed_ack::AckTimers;
use super::*;
use crate::segment::TcpFlags;
use simnel_core::time::Time;

fn at(us: u64) -> Now {
    Now::new(Time(us * 1_000))
}

/// The window of a connection that stands, with timestamps; the peer's segments are full.
fn window(config: &Config) -> ReceiveWindow {
    let mut window = ReceiveWindow::new(config);
    window.start(1_460, 12, false);
    window.peer_mss = 1_448;
    window
}

fn echo(len: u32, stamp: u32) -> Segment {
    Segment { len, ts_echo: stamp, ..Segment::new(TcpFlags::ACK, 1, 1) }
}

/// Half of the buffer in whole segments, below 64 KiB: what Linux's SYN and its answer say.
#[test]
fn the_first_offer_is_linuxs() {
    let config = Config::default();
    assert_eq!(ReceiveWindow::new(&config).offered, 64_240);
    let mut answer = ReceiveWindow::new(&config);
    answer.start(1_460, 12, true);
    assert_eq!((answer.offered, answer.advertised_mss), (65_160, 1_448));
    // One segment at least; small buffers in whole segments, too.
    // What 16 bits do not state is cut off last.
    for (rcvbuf, offered) in [(2_000, 1_460), (6_000, 2_920), (131_400, 65_535), (1 << 20, 65_535)]
    {
        let config = Config { rcvbuf, ..config };
        assert_eq!(ReceiveWindow::new(&config).offered, offered, "{rcvbuf}");
        let mut answer = ReceiveWindow::new(&config);
        answer.start(1_460, 0, true);
        assert_eq!(answer.offered, offered, "{rcvbuf}");
    }
    // Until a full segment is seen the peer's size is 536, or what it said if that is less.
    for (peer, taken) in [(1_460, 536), (400, 388), (50, 88)] {
        let mut window = ReceiveWindow::new(&config);
        window.start(peer, 12, false);
        assert_eq!(window.peer_mss, taken);
    }
    // Nor is it more than half of what is offered.
    for (rcvbuf, expected) in [(1_100, (520, 260)), (500, (260, 130))] {
        let mut narrow = ReceiveWindow::new(&Config { mtu: 300, rcvbuf, ..config });
        narrow.start(1_460, 0, false);
        assert_eq!((narrow.offered, narrow.peer_mss), expected, "{rcvbuf}");
    }
    // A segment is kept back, but not of the last two.
    let clamp = |rcvbuf| window(&Config { rcvbuf, ..config }).clamp;
    assert_eq!((clamp(131_072), clamp(100_000), clamp(7_000)), (64_088, 48_552, 2_896));
}

/// Linux's `__tcp_select_window`: below half of the room what is offered is rounded down.
#[test]
fn half_of_the_room_is_not_little() {
    let room = |held| {
        let mut window = window(&Config { rcvbuf: 6_000, ..Config::default() });
        window.scale_by(7);
        window.held_memory = held;
        window.room(0)
    };
    assert_eq!((room(3_104), room(3_106)), (1_536, 0));
}

/// Lower ones at once, higher ones by an eighth; of full segments, once for each echoed stamp.
#[test]
fn the_receivers_rtt_falls_at_once_and_rises_slowly() {
    let mut window = window(&Config::default());
    let mut rtt = |len, stamp: u32, now_ms: u64| {
        window.measure_rtt(&echo(len, stamp), &at(now_ms * 1_000));
        window.rtt_us()
    };
    // Stamps count from one.
    assert_eq!(rtt(1_448, 0, 10), 0);
    assert_eq!(rtt(1_447, 11, 50), 0);
    assert_eq!(rtt(1_448, 11, 60), 0, "seen already");
    assert_eq!(rtt(1_448, 21, 60), 40_000);
    assert_eq!(rtt(1_448, 21, 61), 40_000);
    assert_eq!(rtt(1_448, 31, 110), 35_000 + 10_000);
    assert_eq!(rtt(1_448, 131, 150), 20_000);
    assert_eq!(rtt(1_448, 151, 170), 20_000);
    // Less than a ms counts as one.
    assert_eq!(rtt(1_448, 201, 200), 1_000);
    // What lies ahead, or more than 1000 s back, is no stamp of ours.
    assert_eq!(rtt(1_448, 301, 200), 1_000);
    assert_eq!(rtt(1_448, 2, 1_000_002), 1_000);
    assert_eq!(rtt(1_448, 3, 1_000_002), 875 + 125_000_000);
}

/// `tcp_rcv_rtt_measure`: a window of data takes a round trip or more; only the least counts.
#[test]
fn the_time_of_a_window_is_an_rtt_at_most() {
    let mut window = window(&Config::default());
    window.offered = 10_000;
    let mut rtt = |nxt, us: u64| {
        window.time_window(nxt, &at(us));
        window.rtt_us()
    };
    // From the first data, up to 1,449, to 10,000 bytes later.
    assert_eq!(rtt(1_449, 5_000_000), 0);
    assert_eq!(rtt(11_448, 5_040_000), 0);
    assert_eq!(rtt(11_449, 5_050_000), 50_000);
    assert_eq!(rtt(21_449, 5_090_000), 40_000);
    assert_eq!(rtt(31_449, 5_150_000), 40_000, "longer ones are queues, or a sender's pause");
    // No time is told from none.
    assert_eq!(rtt(41_449, 5_150_000), 1);
    // A stamp's time is longer, and counts by an eighth.
    window.measure_rtt(&echo(1_448, 5_101), &at(5_150_000));
    assert_eq!(window.rtt8_us, 8 - 1 + 50_000);
}

/// `__tcp_grow_window`: two segments for each, while there is room below the clamp.
#[test]
fn the_offer_grows_by_two_segments_for_each() {
    let mut window = window(&Config { rcvbuf: 1 << 20, ..Config::default() });
    window.threshold = 100_000;
    assert!(window.grow(1, 1_448, true));
    assert_eq!(window.threshold, 102_896);
    // Merged ones are worth twice their length.
    assert!(window.grow(1, 14_480, true));
    assert_eq!(window.threshold, 131_856);
    window.threshold = window.clamp - 1_000;
    assert!(window.grow(1, 1_448, false));
    assert_eq!(window.threshold, window.clamp);
    assert!(!window.grow(1, 1_448, false));
    // What is held leaves less room, and so does all that nobody has read yet.
    let clamp = window.clamp;
    window.threshold = 400_000;
    window.held_memory = (1 << 20) - 2 * 400_000;
    assert!(!window.grow(1, 1_448, false));
    window.held_memory -= 2_000;
    assert!(!window.grow(1_449, 1_448, false));
    assert!(window.grow(1, 1_448, false));
    assert_eq!((window.threshold, window.clamp), (401_000, clamp));
}

/// `__tcp_grow_window` for segments that waste memory: by steps of a half, while the window is
/// small against the largest buffer.
#[test]
fn small_segments_open_the_window_less() {
    let grown = |len, threshold| {
        let config = Config { rcvbuf: 1 << 22, rcvbuf_max: 1 << 22, ..Config::default() };
        let mut window = window(&config);
        window.threshold = threshold;
        let grew = window.grow(1, len, false);
        assert_eq!(grew, window.threshold > threshold);
        window.threshold - threshold
    };
    // 200 bytes take 1480: half of a quarter of that fits into 200, so half of the buffer's quarter
    // is the bound.
    assert_eq!(grown(200, 524_288), 2_896);
    assert_eq!(grown(200, 524_289), 0);
    // A quarter of 1706 is 426.
    assert_eq!(grown(426, 1_048_576), 2_896);
    assert_eq!(grown(426, 1_048_577), 0);
    assert_eq!(grown(425, 1_048_576), 0);
    // Of 1330 a quarter is 332, which is halved three times.
    assert_eq!(grown(50, 131_072), 2_896);
    assert_eq!(grown(50, 131_073), 0);
    // Full enough: no such bound.
    assert_eq!(grown(1_279, 1_500_000), 2_896);
    assert_eq!(grown(1_278, 1_500_000), 0);
    // Nor for what shares the memory of another.
    let mut window = window(&Config { rcvbuf: 1 << 22, rcvbuf_max: 1 << 22, ..Config::default() });
    window.threshold = 1_500_000;
    assert!(window.grow(1, 200, true));
    assert_eq!(window.threshold, 1_502_896);
}

/// `tcp_rcv_space_adjust`: twice what was read in a round trip and 16 segments, more if that rose.
#[test]
fn the_buffer_follows_what_is_read_in_a_round_trip() {
    let mut window = window(&Config::default());
    window.set_auto_read(false);
    let expected = |copied: u64, last: u64| {
        let rise = 2 * copied + 16 * 1_448;
        let bytes = rise + 2 * (rise * (copied - last) / last);
        // A segment's memory: 896 more, in steps of 128 until half of it holds one.
        (bytes / 1_448 * 2_984) as u32
    };
    let nothing = |window: &mut ReceiveWindow, bytes, us: u64| {
        window.consume(bytes, 1 << 40, &at(us));
        window.buffer
    };
    // Without an RTT nothing is known.
    assert_eq!(nothing(&mut window, 1_448, 1_000_000), 131_072);
    window.rtt8_us = 8 * 40_000;
    window.space_us = 1_000_000;
    assert_eq!(nothing(&mut window, 98_552, 1_039_999), 131_072);
    assert_eq!(window.space, 14_480);
    // 100,000 in the round trip, 14,480 in the one before.
    assert_eq!(nothing(&mut window, 0, 1_040_000), expected(100_000, 14_480).min(6 << 20));
    assert_eq!((window.space, window.space_us, window.space_seq), (100_000, 1_040_000, 100_001));
    assert_eq!(window.clamp, window.buffer / 2);
    // No more than before: no reason.
    let before = window.buffer;
    assert_eq!(nothing(&mut window, 100_000, 1_080_000), before);
    assert_eq!((window.space, window.space_us), (100_000, 1_080_000));
    window.buffer = 200_000;
    assert_eq!(nothing(&mut window, 100_000, 1_100_000), 200_000);
    (window.space_us, window.space_seq) = (1_080_000, 300_001);
    assert_eq!(nothing(&mut window, 110_000, 1_120_000), expected(110_000, 100_000));
    // Up to the cap.
    assert_eq!(nothing(&mut window, 5_000_000, 1_160_000), 6 << 20);
    assert_eq!(nothing(&mut window, 9_000_000, 1_200_000), 6 << 20);
}

/// `__tcp_select_window`: below half, less than a sixteenth or a segment counts as nothing.
#[test]
fn small_windows_are_not_offered() {
    let mut window = window(&Config { rcvbuf: 65_536, ..Config::default() });
    window.overhead = 0;
    window.threshold = window.clamp;
    assert_eq!(window.room(0), 31_320);
    // Half of what is left of the memory.
    assert_eq!(window.room(15_536), 25_000);
    assert_eq!(window.room(65_536 - 2 * 2_048), 2_048);
    assert_eq!(window.room(65_536 - 2 * 2_047), 0);
    window.buffer = 20_000;
    window.clamp = 10_000;
    assert_eq!(window.room(20_000 - 2 * 1_448), 1_448);
    assert_eq!(window.room(20_000 - 2 * 1_447), 0);
    // The threshold bounds it, and so do 16 bits without scaling.
    window.threshold = 3_000;
    assert_eq!(window.room(0), 3_000);
    (window.buffer, window.clamp, window.threshold) = (1 << 20, 1 << 19, 1 << 19);
    assert_eq!(window.room(0), 1 << 19);
    window.disable_scaling();
    assert_eq!(window.room(0), 65_535);
    // Half of all is never too little.
    (window.buffer, window.clamp, window.peer_mss) = (4_000, 2_000, 500);
    assert_eq!(window.room(2_000), 1_000);
}

/// `__tcp_select_window`, without scaling: whole segments, and no step of less than one.
#[test]
fn an_offer_that_is_not_scaled_is_a_number_of_segments() {
    let mut window =
        window(&Config { window_scaling: false, rcvbuf: 1 << 20, ..Config::default() });
    // What 16 bits cannot say is no window.
    assert_eq!((window.offered, window.clamp, window.threshold), (65_535, 65_535, 65_535));
    let mut room = |threshold, offered| {
        (window.threshold, window.offered) = (threshold, offered);
        window.room(0)
    };
    assert_eq!(room(20_000, 8_000), 13 * 1_448);
    assert_eq!(room(20_000, 18_552), 13 * 1_448);
    assert_eq!(room(20_000, 18_553), 18_553);
    assert_eq!(room(20_000, 20_000), 20_000);
    assert_eq!(room(20_000, 20_001), 13 * 1_448);
    assert_eq!((room(65_535, 65_160), room(65_535, 64_000)), (65_160, 65_160));
}

#[test]
fn scaled_windows_are_rounded_up_to_their_unit() {
    let mut window = window(&Config::default());
    window.scale_by(7);
    for (bytes, whole) in [(0, 0), (1, 128), (128, 128), (129, 256), (u32::MAX, !127)] {
        assert_eq!(window.whole(bytes), whole, "{bytes}");
    }
}

/// A sender's first block has the first 32,768 bytes, which are numbered from 1.
#[test]
fn segments_that_lie_in_two_blocks_are_two_pieces() {
    for (start, end, split) in [
        (1, 32_769, false),
        (1, 32_770, true),
        (32_768, 32_769, false),
        (32_768, 32_770, true),
        (32_769, 65_537, false),
        (65_536, 65_538, true),
    ] {
        assert_eq!(is_split(start, end), split, "{start} {end}");
    }
}

/// An application that does not read by itself has read nothing because it was asked.
#[test]
fn who_reads_at_once_has_read_all() {
    let mut window = window(&Config::default());
    assert!(window.reads(100));
    assert_eq!(window.read, 100);
    window.set_auto_read(false);
    assert!(!window.reads(200));
    assert_eq!(window.read, 100);
}

/// `__tcp_select_window`: less than half of the window is rounded down. Nothing is offered if less
/// than a sixteenth of the memory, or than a segment, is left.
#[test]
fn little_room_is_not_told_as_more() {
    let mut window = window(&Config { segment_overhead: 0, ..Config::default() });
    window.scale_by(7);
    // 64 KiB of window, less a segment that is kept back.
    let most = u64::from(window.clamp);
    assert_eq!(window.room(0), most.next_multiple_of(128) as u32);
    (window.clamp, window.threshold) = (65_536, 65_536);
    let room = |left: u32| window.room(131_072 - 2 * u64::from(left));
    assert_eq!([room(32_769), room(32_768), room(32_767)], [32_896, 32_768, 32_640]);
    assert_eq!([room(4_224), room(4_223), room(4_096), room(4_095)], [4_224, 4_096, 4_096, 0]);
    window.peer_mss = 5_000;
    let room = |left: u32| window.room(131_072 - 2 * u64::from(left));
    assert_eq!([room(5_120), room(5_119), room(4_999)], [5_120, 0, 0]);
}

/// Memory counts, not bytes. A buffer holds seventeen segments, or sixteen if one of them lies in
/// two of the sender's blocks, as the 23rd and the 46th do. It is freed when all of it was read.
#[test]
fn queued_segments_take_the_overhead_of_their_buffers() {
    let mut window = window(&Config { segment_overhead: 1_000, ..Config::default() });
    (window.peer_mss, window.rtt8_us) = (1_448, 8);
    assert_eq!(window.queued_memory(0), 0);
    assert_eq!(window.queued_memory(100), 1_100);
    // Segments join the last buffer while it has room for them.
    window.set_auto_read(false);
    let mut queued = |from: u64, to: u64| {
        window.queue(1 + from * 1_448, 1 + to * 1_448, (to - from) as u32);
        let overhead = window.queued_memory(to * 1_448) - to * 1_448;
        (overhead, (window.first_end - 1) / 1_448)
    };
    assert_eq!(queued(0, 1), (1_000, 1));
    assert_eq!(queued(1, 3), (1_000, 3));
    assert_eq!(queued(3, 17), (1_000, 17));
    assert_eq!(queued(17, 18), (2_000, 17));
    assert_eq!(queued(18, 33), (2_000, 17));
    assert_eq!(queued(33, 36), (3_000, 17));
    // Room that was left in a buffer before the last stays so.
    assert_eq!(queued(36, 52), (4_000, 17));
    // What was read frees its buffers, of which those behind the first count as full.
    let mut left = |segments: u64| {
        window.consume(segments * 1_448, 1 << 40, &at(1));
        window.queued_memory(1)
    };
    let read = 1_448;
    assert_eq!([left(16), left(1)], [4_001 + 16 * read, 3_001]);
    assert_eq!([left(15), left(1)], [3_001 + 15 * read, 2_001]);
    assert_eq!([left(15), left(1)], [2_001 + 15 * read, 1_001]);
    assert_eq!([left(2), left(2)], [1_001 + 2 * read, 1_001 + 4 * read]);
    // All is read: the next one is the first.
    window.queue(window.read, window.read + 1_448, 1);
    assert_eq!((window.queued_memory(1_448), window.first_end - window.read), (2_448, 1_448));
    // One that has merged to more than seventeen stays one while it is read.
    let start = window.read;
    window.queue(start, start + 14_480, 10);
    window.queue(start + 14_480, start + 72_400, 40);
    window.consume(14_480, 1 << 40, &at(1));
    window.consume(28_960, 1 << 40, &at(1));
    window.queue(start + 72_400, start + 73_848, 1);
    assert_eq!(window.queued_memory(1), 2_001 + 28_960);
    // Out of order.
    window.hold(0, 0);
    assert_eq!(window.held_memory, 0);
    window.hold(2 * 1_448, 2);
    assert_eq!(window.held_memory, 2 * 1_448 + 2_000);
    window.hold(u32::MAX, 1);
    assert_eq!(window.held_memory, 6 << 20);
}

/// RFC 9293, section 3.8.6: what was offered is not taken back, whatever is unread.
#[test]
fn the_right_edge_stays_where_it_was() {
    let config = Config::default();
    let mut acks = AckTimers::new(&config, crate::clock::Ticks::new(config.tick));
    let mut window = window(&config);
    window.set_auto_read(false);
    window.scale_by(0);
    window.threshold = 20_000;
    assert_eq!(window.offer(1, || acks.leave_quick(), &at(1)), 64_239);
    (window.acked, window.offered, window.changed) = (1, 20_000, true);
    assert_eq!(window.offer(1, || acks.leave_quick(), &at(1)), 20_000);
    assert_eq!(window.offer(5_001, || acks.leave_quick(), &at(2)), 20_000);
    // Nothing is left of the memory: the edge stays.
    window.buffer = 10_000;
    assert_eq!(window.offer(15_001, || acks.leave_quick(), &at(3)), 10_000);
    assert_eq!(window.offer(25_001, || acks.leave_quick(), &at(4)), 0);
    assert!(window.is_shut(25_001) && !window.is_shut(25_000));
    assert!(!window.all_read(25_001) && window.all_read(1));
    assert_eq!((window.unread(25_001), window.unread(1)), (25_000, 0));
    // Reading opens it: at least twice what is left, and no more than half is left.
    assert!(!window.consume(0, 25_001, &at(6)));
    window.buffer = 131_072;
    assert!(window.consume(25_000, 25_001, &at(7)));
    (window.acked, window.offered) = (25_001, 9_990);
    assert!(window.consume(0, 25_001, &at(8)));
    window.offered = 10_001;
    assert!(!window.consume(0, 25_001, &at(8)));
    window.threshold = 1 << 20;
    window.offered = window.clamp / 2;
    assert!(window.consume(0, 25_001, &at(8)));
    window.offered = window.clamp / 2 + 1;
    assert!(!window.consume(0, 25_001, &at(8)));
    // With automatic reading all is read.
    window.set_auto_read(true);
    assert!(!window.is_shut(1 << 40) && window.all_read(1 << 40));
    assert_eq!(window.unread(1 << 40), 0);
}

/// `__tcp_select_window`: an application that leaves half of the memory unread gets no quick ACKs.
#[test]
fn short_memory_ends_quick_acks() {
    let quick = |threshold, unread: u64| {
        let config = Config::default();
        let mut acks = AckTimers::new(&config, crate::clock::Ticks::new(config.tick));
        let mut window = window(&config);
        window.set_auto_read(false);
        window.overhead = 0;
        (window.buffer, window.clamp, window.threshold) = (100_000, 40_000, threshold);
        acks.enter_quick(16, &window);
        acks.schedule();
        window.offer(1 + unread, || acks.leave_quick(), &at(1));
        let round = crate::receiver::delayed_ack::Round::default();
        acks.decide(1 + unread, false, &mut window, &round, &at(1))
    };
    assert!(quick(40_000, 0) && quick(40_000, 60_000) && !quick(40_000, 60_002));
    // A low threshold is not short memory.
    assert!(quick(10_000, 0) && quick(10_000, 60_000));
}

#[test]
fn the_first_measurement_begins_with_the_connection() {
    let mut window = window(&Config::default());
    window.start_measuring(&at(5_000_000));
    window.set_auto_read(false);
    window.rtt8_us = 8 * 40_000;
    window.consume(20_000, 1 << 40, &at(5_039_999));
    assert_eq!(window.space_seq, 1);
    window.consume(0, 1 << 40, &at(5_040_000));
    assert_eq!(window.space_seq, 20_001);
}

/// `tcp_rcv_space_adjust`: memory for a segment is enough when half of it holds one.
#[test]
fn segments_of_other_sizes_take_other_memory() {
    for (mss, memory) in [(500, 1_396), (896, 1_792), (897, 1_921), (1_448, 2_984)] {
        let mut window = window(&Config { rcvbuf_max: 64 << 20, ..Config::default() });
        (window.advertised_mss, window.space) = (mss, 1_000_000);
        window.enlarge(1_000_000);
        let segments = (2_000_000 + 16 * mss) / mss;
        assert_eq!(window.buffer, segments * memory, "{mss}");
    }
}

/// `__tcp_ack_snd_check`: an ACK is worth while if it moves the right edge, or all was read.
#[test]
fn an_ack_may_advance_where_there_is_room() {
    let mut window = window(&Config::default());
    (window.overhead, window.buffer, window.clamp) = (0, 100_000, 50_000);
    window.threshold = 50_000;
    window.set_auto_read(false);
    for (offered, nxt, advances) in [
        (50_000, 1, true),
        (50_000, 10_001, false),
        (45_000, 10_001, true),
        (45_001, 10_001, false),
        (40_000, 10_001, true),
    ] {
        window.offered = offered;
        assert_eq!(window.may_advance(nxt, &at(1)), advances, "{offered} {nxt}");
    }
}
