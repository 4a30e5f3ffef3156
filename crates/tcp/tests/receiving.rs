//! The receiving half, segment by segment: when to acknowledge, what to SACK, marks, windows.

mod script;

use script::{plain, Script};
use simnel_tcp::{Config, EcnMode};

#[test]
fn first_sixteen_at_once_then_every_second() {
    let mut script = Script::new(&plain());
    for n in 0..16 {
        let next = n + 1;
        script.play(&format!("60 < data {n}..{next}\n60 > ack {next}"));
    }
    script.play(
        "60 < data 16..17
         60 > nothing
         60 < data 17..18
         60 > ack 18
         60 < data 18..20
         60 > ack 20
         60 < data 20..21
         99 > nothing
         100.1 > ack 21             # 40 ms",
    );
}

#[test]
fn after_a_missed_delay_the_time_doubles() {
    let mut script = Script::new(&plain());
    script.slack = simnel_core::time::Span::from_micros(100);
    for n in 0..16 {
        let next = n + 1;
        script.play(&format!("60 < data {n}..{next}\n60 > ack {next}"));
    }
    script.play(
        "60 < data 16..17
         100 > ack 17
         145 < data 17..18          # later than the delay: the rhythm is slower
         195 > ack 18               # 80 ms, but an RTT (50 ms) at most",
    );
}

#[test]
fn out_of_order_is_acknowledged_at_once_and_a_filled_gap_too() {
    let config = Config { quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 3..4
         60 > ack 2 sack 3..4
         60 < data 5..6
         60 > ack 2 sack 5..6 3..4
         60 < data 2..3             # one of two gaps
         60 > ack 4 sack 5..6
         60 < data 4..5             # the last
         60 > ack 6
         60 = received 6",
    );
}

#[test]
fn duplicates_after_the_third_are_held_back() {
    let config = Config { quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 3..4
         60 > ack 2 sack 3..4
         60 < data 4..5
         60 > ack 2 sack 3..5
         60 < data 5..6
         60 > ack 2 sack 3..6
         60 < data 6..9
         60 > nothing
         61.2 > ack 2 sack 3..9",
    );
    let config = Config { sack_compression: false, ..config };
    Script::new(&config).play(
        "60 < data 1..4
         60 > ack 0 sack 1..2
         60 > ack 0 sack 1..3
         60 > ack 0 sack 1..4
         60 < data 4..5
         60 > ack 0 sack 1..5",
    );
}

#[test]
fn what_comes_twice_is_reported() {
    let config = Config { quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 1..2
         60 > ack 2 sack 1..2
         60 < data 4..5
         60 > ack 2 sack 4..5
         60 < data 4..5
         60 > ack 2 sack 4..5 4..5",
    );
}

#[test]
fn echo_until_the_sender_says_so() {
    let config = Config { ecn: EcnMode::On, quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 2..3 ce          # at once, and for the next too
         60 > ack 3 ece
         60 < data 3..4
         60 > ack 4 ece
         60 < data 4..6
         60 > ack 6 ece
         60 < data 6..7 cwr
         60 > ack 7
         60 < data 7..9
         60 > ack 9",
    );
}

#[test]
fn accurate_feedback_acknowledges_each_change() {
    let config = Config { ecn: EcnMode::Accurate, quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 2..3
         60 > nothing
         60 < data 3..4 ce          # what came before the change, then the change
         60 > ack 3
         60 > ack 4 ece
         60 < data 4..6 ce
         60 > ack 6 ece
         60 < data 6..7
         60 > ack 7",
    );
}

#[test]
fn small_segments_are_answered_when_read() {
    let config = Config { quick_acks: 0, ..plain() };
    Script::new(&config).play(
        "60 < data 0b..100b
         60 > ack 100b",
    );
}

#[test]
fn data_carries_the_acknowledgement() {
    let config = Config { quick_acks: 0, nagle: false, ..plain() };
    let mut script = Script::new(&config);
    script.play("60 < data 0..1\n60 > nothing\n70 write 1\n70 > data 0..1");
    // Nothing is owed any more.
    script.play("130 < ack 1\n130 > nothing");
}

#[test]
fn merging_thins_acknowledgements() {
    let config = Config { quick_acks: 0, gro_segments: 8, ..plain() };
    Script::new(&config).play(
        "60 < data 0..8
         60 > ack 8
         60 < data 8..11
         60 > nothing
         60.1 > ack 11              # the merger waits 20 µs",
    );
}

#[test]
fn the_offer_grows_with_what_is_read() {
    let config = Config { timestamps: true, ..plain() };
    let mut script = Script::new(&config);
    let mut number = 0;
    for (round, count) in [(1u64, 10u64), (2, 20), (3, 40), (4, 80), (5, 160)] {
        let at = 50 + round * 50;
        script.play(&format!("{} < rest", at - 1));
        script.forget();
        for _ in 0..count {
            let next = number + 1;
            // The ACK policy is not at issue: drop what comes.
            let segment = format!("{at} < data {number}..{next} ecr {}", at - 50);
            script.play(&segment);
            script.forget();
            number = next;
        }
    }
    assert!(script.last_window() > 400_000, "{}", script.last_window());
}

#[test]
fn an_unread_buffer_closes_the_window_and_reading_opens_it() {
    let mut script = Script::new(&plain());
    script.endpoint.set_auto_read(false);
    for n in 0..100 {
        let (at, next) = (60 + 100 * n, n + 1);
        script.play(&format!("{at} < data {n}..{next}"));
        // Its ACK leaves by the delayed-ACK timer at the latest.
        script.play(&format!("{} < rest", at + 90));
        script.forget();
    }
    // 128 KiB of memory, a sixteenth of which is kept; seventeen segments share 1280 bytes.
    let taken = script.endpoint.readable() / 1460;
    assert!((78..=84).contains(&taken), "{taken}");
    assert!(script.last_window() < 1460, "{}", script.last_window());
    let now = simnel_core::time::Time(11_000_000_000);
    assert_eq!(script.endpoint.read(u64::MAX, now), taken * 1460);
    script.play(&format!("11000 > ack {taken}"));
    assert!(script.last_window() > 40_000, "{}", script.last_window());
}

#[test]
fn what_is_held_back_is_told_before_it_is_pushed_back() {
    Script::new(&Config { quick_acks: 0, ..plain() }).play(
        "60 < data 0..2
         60 > ack 2
         60 < data 3..4
         60 > ack 2 sack 3..4
         60 < data 4..5
         60 > ack 2 sack 3..5
         60 < data 5..6
         60 > ack 2 sack 3..6
         60 < data 7..8
         60 > nothing                # held back
         60 < data 9..10             # would be the third range: the ACK leaves without it
         60 > ack 2 sack 7..8 3..6
         60 < data 11..12
         60 > nothing
         61.2 > ack 2 sack 11..12 9..10 7..8",
    );
}

#[test]
fn fin_and_reset_end_a_connection() {
    let mut script = Script::new(&plain());
    script.play("60 < data 0..2");
    script.forget();
    script.play("60 < fin 2\n60 > nothing");
    assert!(script.endpoint.take_events().peer_closed);
    let before = script.endpoint.stats();
    script.play("60 close").forget();
    let after = script.endpoint.stats();
    assert_eq!(after.segments_sent, before.segments_sent + 1);
    assert_eq!(after.acks_sent, before.acks_sent, "a FIN acknowledges the other one");
    // Who does not close acknowledges later, and who has closed at once.
    let mut script = Script::new(&plain());
    script.play("60 < data 0..2").forget();
    script.play("60 < fin 2\n99 > nothing\n100 > ack 2920b_fin");
    let mut script = Script::new(&plain());
    script.play("60 close").forget();
    script.play("110 < fin 0\n110 > ack 0b_fin");
    // An ACK that was to come later comes no more.
    for before in ["", "60 < data 0..1"] {
        let mut script = Script::new(&Config { quick_acks: 0, ..plain() });
        script.play(before).play("60 < rst\n60 > nothing");
        assert!(script.endpoint.take_events().reset);
        assert_eq!(script.endpoint.next_timer(), None);
    }
}

/// Linux's `tcp_event_data_sent`: where data goes both ways, acknowledgements wait for it.
#[test]
fn data_in_answer_ends_quick_acks() {
    Script::new(&plain()).play(
        "60 < data 0..1
         60 > ack 1                 # at once
         61 write 1
         61 > data 0..1
         62 < data 1..2
         101 > nothing
         102.5 > ack 2",
    );
    // A FIN without data is no answer.
    Script::new(&plain()).play(
        "60 < data 0..1
         60 > ack 1
         61 close
         61 > ack 1
         62 < data 1..2
         62 > ack 2",
    );
}
