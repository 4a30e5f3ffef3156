//! The sending half, segment by segment: slow start, recovery, timers, marks.

mod script;

use script::{plain, Script};
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing};

fn reno() -> Config {
    Config { congestion: CongestionControl::Reno, ..plain() }
}

#[test]
fn slow_start_opens_by_what_is_acknowledged() {
    Script::new(&reno()).play(
        "50 write 100
         50 > data 0..10
         100 < ack 2
         100 > data 10..14
         101 < ack 10
         101 > data 14..30
         101 = cwnd 20
         150 < ack 30
         150 > data 30..70
         150 = cwnd 40",
    );
}

#[test]
fn a_lost_first_segment_is_sent_again_after_three_sacks() {
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 0 sack 1..2      # limited transmit: one out for one delivered
         100 > data 10..11
         100 < ack 0 sack 1..3
         100 > data 11..12
         100 < ack 0 sack 1..4      # the third: fast retransmit
         100 > data 0..1
         100 = ssthresh 5
         101 < ack 0 sack 1..5      # PRR: one out for every two delivered
         101 > nothing
         101 < ack 0 sack 1..6
         101 > data 12..13
         101 < ack 0 sack 1..7
         101 < ack 0 sack 1..8
         101 > data 13..14
         101 < ack 0 sack 1..9
         101 < ack 0 sack 1..10     # the threshold is reached
         101 > nothing
         150 < ack 10
         150 > data 14..15
         150 < ack 11
         150 > data 15..16
         150 < ack 12               # all that was out at the beginning: over
         150 > data 16..17
         150 = cwnd 5
         150 = resent 1
         150 = reductions 1",
    );
}

#[test]
fn two_ranges_in_one_ack_are_no_reordering() {
    // The newest comes first; the older one was not overtaken by it.
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 0 sack 1..2
         100 > data 10..11
         100 < ack 0 sack 5..6 3..4
         100 > data 0..1
         100 > nothing",
    );
}

#[test]
fn several_losses_in_a_window_are_one_event() {
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 1
         100 > data 10..12
         100 < ack 1 sack 2..3
         100 > data 12..13
         100 < ack 1 sack 4..5 2..3
         100 > data 13..14
         100 < ack 1 sack 6..7 4..5 2..3   # 1, 3, 5 are missing
         100 > data 1..2
         100 < ack 1 sack 6..8 4..5 2..3
         100 > nothing
         100 < ack 1 sack 6..9 4..5 2..3
         100 > data 3..4
         100 < ack 1 sack 6..10 4..5 2..3
         100 > nothing
         150 < ack 3 sack 6..10 4..5       # five in flight, the threshold
         150 > nothing
         150 < ack 5 sack 6..10
         150 > data 5..6
         150 < ack 5 sack 6..12
         150 > data 14..16
         200 < ack 14
         200 > data 16..19
         200 = reductions 1
         200 = resent 3
         200 = ssthresh 5",
    );
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 0 sack 1..4
         100 > data 0..1
         100 > data 10..11
         101 < ack 0 sack 1..6
         101 > data 11..12
         101 < ack 0 sack 1..10
         101 > data 12..14
         151 < ack 0 sack 1..11     # 10 was sent after the retransmission of 0
         151 > data 0..1
         151 > data 14..15
         151 = resent 2
         151 = timeouts 0
         201 < ack 11",
    );
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    Script::new(&reno()).play(
        "50 write 10
         50 > data 0..10
         100 < ack 9
         350 > data 9..10           # one segment is out: 2 RTT and the delayed ACK's allowance
         350 = probes 1
         400 < ack 10
         400 = reductions 0         # the edge is acknowledged, not passed: no verdict yet
         400 = timeouts 0",
    );
}

#[test]
fn a_probe_that_repairs_a_loss_reduces_the_window() {
    Script::new(&reno()).play(
        "50 write 10
         50 > data 0..10
         100 < ack 8
         200.1 > data 9..10         # two are out: 2 RTT
         251 < ack 8 sack 9..10     # the probe arrived; 8, sent long before it, did not
         251 > data 8..9
         300 < ack 10
         300 = reductions 1
         300 = timeouts 0",
    );
}

#[test]
fn a_probe_prefers_new_data() {
    Script::new(&reno()).play(
        "50 write 11
         50 > data 0..10
         150.1 > data 10..11
         150.1 = probes 1
         150.1 = resent 0
         200 < ack 11
         200 = reductions 0",
    );
}

#[test]
fn the_timeout_starts_anew_with_a_probe() {
    Script::new(&reno()).play(
        "50 write 11
         50 > data 0..10
         150.1 > data 10..11
         398 > nothing
         400.1 > data 0..1          # srtt 50 + 200 after the probe
         400.1 = timeouts 1",
    );
}

#[test]
fn timers_start_when_a_paced_segment_leaves() {
    let config = Config { pacing: Pacing::On, ..reno() };
    Script::new(&config).play(
        "50 write 11
         50 > data 0..10
         152.4 > nothing
         152.6 > data 10..11        # 2 RTT, and a segment's time at two windows a RTT
         152.6 = probes 1",
    );
}

#[test]
fn overtaking_is_not_loss() {
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 0 sack 1..2
         100 > data 10..11
         100 < ack 0 sack 1..3
         100 > data 11..12
         105 < ack 3                # within the reordering window
         105 > data 12..14
         106 < ack 10
         106 > data 14..28
         106 = resent 0
         106 = reductions 0
         # From here on, four SACKs are no proof: a quarter of the RTT must pass too.
         155 < ack 10 sack 11..15
         155 > data 28..32
         160 > nothing
         161.5 > data 10..11",
    );
}

#[test]
fn a_timeout_starts_over_and_doubles() {
    let config = Config { tail_loss_probe: false, ..reno() };
    Script::new(&config).play(
        "50 write 20
         50 > data 0..10
         300 > data 0..1            # srtt 50 + 200
         300 = cwnd 1
         300 = ssthresh 5
         800 > data 0..1
         1800 > data 0..1
         1800 = timeouts 3
         1850 < ack 1
         1850 > data 10..12         # F-RTO: new data shows whether the timeout was real
         1900 < ack 1 sack 10..11
         1900 > data 1..2",
    );
}

#[test]
fn frto_undoes_a_spurious_timeout() {
    let config = Config { tail_loss_probe: false, ..reno() };
    Script::new(&config).play(
        "50 write 60
         50 > data 0..10
         300 > data 0..1            # all is well, only late
         320 < ack 1
         320 > data 10..12
         321 < ack 2                # something sent once was acknowledged
         321 = undos 1
         321 = cwnd 11
         321 > data 12..13
         322 < ack 10",
    );
}

#[test]
fn timestamps_undo_a_spurious_timeout() {
    let config = Config { tail_loss_probe: false, frto: false, timestamps: true, ..reno() };
    Script::new(&config).play(
        "50 write 60
         50 > data 0..10
         300 > data 0..1
         320 < ack 1 ecr 50         # answers the original
         320 = undos 1
         320 > data 10..12",
    );
}

#[test]
fn an_answer_to_the_original_tells_nothing_of_what_was_sent_with_the_repetition() {
    let config = Config { tail_loss_probe: false, frto: false, timestamps: true, ..reno() };
    Script::new(&config).play(
        "50 write 60
         50 > data 0..10
         300 > data 0..1
         400 < ack 1 ecr 50         # more than a RTT after the repetition
         400 = undos 1
         400 > data 10..12          # and no proof that the other nine are lost
         401 < ack 10 ecr 50
         401 = resent 1",
    );
}

#[test]
fn timestamps_undo_a_needless_recovery() {
    let config = Config { timestamps: true, ..reno() };
    Script::new(&config).play(
        "50 write 60
         50 > data 0..10
         100 < ack 0 sack 1..4 ecr 0
         100 > data 0..1
         100 > data 10..11
         100 = ssthresh 5
         110 < ack 4 ecr 50         # the original, overtaken by three
         110 = undos 1
         110 = cwnd 11
         110 > data 11..15",
    );
}

#[test]
fn duplicate_reports_undo_a_needless_recovery() {
    Script::new(&reno()).play(
        "50 write 60
         50 > data 0..10
         100 < ack 0 sack 1..4
         100 > data 0..1
         100 > data 10..11
         101 < ack 10
         101 > data 11..16
         101 = undos 0
         101 = cwnd 6
         150 < ack 10 sack 0..1     # the retransmission was a duplicate
         150 = undos 1
         150 = cwnd 10
         150 > data 16..20",
    );
}

/// RFC 8985, section 7.4.2: a probe that is reported as a duplicate was needless and costs nothing.
#[test]
fn a_needless_probe_does_not_reduce_the_window() {
    Script::new(&reno()).play(
        "50 write 30
         50 > data 0..10
         100 < ack 8
         100 > data 10..26
         100 = cwnd 18",
    );
    Script::new(&reno()).play(
        "50 write 10
         50 > data 0..10
         150.1 > data 9..10         # ten are out: 2 RTT
         151 < ack 10               # only late
         151 = reductions 0
         200 < ack 10 sack 9..10    # the probe came, too
         200 = reductions 0
         200 = cwnd 20",
    );
}

/// RFC 3708: a report of what was sent once, or beyond what was sent, takes nothing back.
#[test]
fn reports_of_other_segments_undo_nothing() {
    Script::new(&reno()).play(
        "50 write 60
         50 > data 0..10
         100 < ack 0 sack 1..4
         100 > data 0..1
         100 > data 10..11
         101 < ack 10
         101 > data 11..16
         102 < ack 10 sack 3..3
         102 = undos 0
         150 < ack 10 sack 0..1
         150 = undos 1
         150 > data 16..20",
    );
    // Nor is anything believed any more once more came twice than was sent twice.
    Script::new(&reno()).play(
        "50 write 60
         50 > data 0..10
         100 < ack 0 sack 1..4
         100 > data 0..1
         100 > data 10..11
         101 < ack 10
         101 > data 11..16
         102 < ack 10 sack 8..50
         102 > nothing
         150 < ack 10 sack 0..1
         150 > nothing
         150 = undos 0",
    );
}

#[test]
fn an_echo_reduces_once_a_round_trip() {
    let config = Config { ecn: EcnMode::On, ..reno() };
    Script::new(&config).play(
        "50 write 60
         50 > data 0..10
         100 < ack 2 ece
         100 = ssthresh 5
         100 = reductions 1
         100 > data 10..11 cwr      # the first new segment tells; PRR lets one out for two
         100 < ack 4 ece
         100 > data 11..12
         100 < ack 6 ece
         100 > data 12..13
         100 < ack 8 ece
         100 > nothing
         100 < ack 10 ece
         100 > data 13..15
         100 = reductions 1
         150 < ack 11
         150 > data 15..16
         150 < ack 15
         150 = cwnd 6
         150 > data 16..21
         200 < ack 17 ece           # another round trip, another mark
         200 = reductions 2",
    );
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    Script::new(&reno()).play(
        "50 write 4
         50 > data 0..4
         100 < ack 4
         100 = cwnd 10
         100 write 4
         100 > data 4..8
         150 < ack 8
         150 = cwnd 10",
    );
}

#[test]
fn an_idle_time_takes_the_window_back() {
    Script::new(&reno()).play(
        "50 write 30
         50 > data 0..10
         100 < ack 10
         100 > data 10..30
         150 < ack 30
         150 = cwnd 40
         600 write 50               # 500 ms since data was sent: one timeout of 250 ms, and more
         600 > data 30..50
         600 = cwnd 20",
    );
}

#[test]
fn small_writes_wait_for_the_acknowledgement() {
    Script::new(&reno()).play(
        "50 write 100b
         50 > data 0b..100b
         60 write 100b
         70 write 100b
         80 > nothing
         100 < ack 100b
         100 > data 100b..300b",
    );
    let config = Config { nagle: false, ..reno() };
    Script::new(&config).play(
        "50 write 100b
         50 > data 0b..100b
         60 write 100b
         60 > data 100b..200b",
    );
}

#[test]
fn a_closed_window_is_probed() {
    Script::new(&reno()).play(
        "50 write 40
         50 > data 0..10
         100 < ack 10 win 0
         100 > nothing
         350 > ack 0                # a bare ACK of an old number asks
         360 < ack 10 win 100000
         360 > data 10..20          # and the idle time has taken the window back",
    );
}

#[test]
fn fin_leaves_alone_where_the_data_has_left() {
    Script::new(&reno()).play(
        "50 write 2
         50 > data 0..2
         60 close
         60 > ack 0                 # FIN alone
         100 < ack 2
         100 > nothing",
    );
    let mut script = Script::new(&reno());
    script.endpoint.write(1460 * 2);
    script.endpoint.close();
    // Written before it was closed, and gone.
    script.play(
        "50 > data 0..2
         50 > data 2..2 fin",
    );
}

#[test]
fn without_sack_three_duplicates_start_recovery() {
    let config = Config { sack: false, ..reno() };
    Script::new(&config).play(
        "50 write 40
         50 > data 0..10
         99 < ack 0                 # tells the window
         100 < ack 0
         100 > data 10..11
         100 < ack 0
         100 > data 11..12
         100 < ack 0
         100 > data 0..1
         100 = ssthresh 5",
    );
}

#[test]
fn a_source_without_end_sends_at_once() {
    let mut script = Script::new(&reno());
    script.play("60 > nothing");
    script.endpoint.write_unlimited();
    script.play("60 > data 0..10");
}

/// Times of 32 bits lie apart by more than half of what they hold.
#[test]
fn of_what_leaves_after_an_hour_only_what_is_lost_is_sent_again() {
    Script::new(&reno()).play(
        "50 write 4
         50 > data 0..4
         100 < ack 4
         3000000 write 8
         3000000 > data 4..12
         3000050 < ack 4 sack 5..6
         3000050 < ack 4 sack 5..8
         3000050 > data 4..5
         3000060 > nothing",
    );
}
