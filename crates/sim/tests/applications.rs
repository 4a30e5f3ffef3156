//! Applications by what they do to the network, and by what they tell of it.

mod support;

use simnel_core::{Rate, Span, Time};
use simnel_sim::apps::player::{Chunk, Playback};
use simnel_sim::schedule::Step;
use simnel_sim::setup::{dash, web, Loss, Reading};
use simnel_sim::{Direction, Kind, Outcome, Run, Setup, Traffic};
use support::{bulk, cbr, kind_rr, outcome, ping, run, setup, traffic, whole};

/// An endless transfer is complete with what it has sent by then; one of a size is given up.
#[test]
fn a_transfer_stops_when_it_shall() {
    for (size, completes) in [(None, true), (Some(100_000_000), false)] {
        let bulk = Traffic { stop: Some(Span::from_secs(2)), ..bulk(size) };
        let results = run(&whole("pfifo limit 100", 10_000_000, vec![bulk]), 1);
        let flow = &results.flows[0];
        assert_eq!(flow.finished.is_some(), completes);
        assert!(flow.series[1] > 1_000_000, "{:?}", flow.series);
        assert!(flow.series[4..].iter().all(|bytes| *bytes == 0), "{:?}", flow.series);
    }
}

/// The receiver's connection stands when the third segment of the handshake has come, after 75 ms;
/// an interval later it reads for the first time.
#[test]
fn a_slow_reader_begins_when_its_connection_stands() {
    let mut slow = bulk(None);
    slow.reading = Some(Reading { portion: 1_000, interval: Span::from_millis(100) });
    let delivered = |millis| {
        let setup = whole("pfifo", 100_000_000, vec![slow.clone()]);
        let mut run = Run::new(&setup, 1).expect("a good set-up");
        run.advance(Time::ZERO + Span::from_millis(millis));
        run.results().flows[0].delivered[0]
    };
    assert_eq!([174, 176, 274, 276].map(delivered), [0, 1_000, 1_000, 2_000]);
}

#[test]
fn datagrams_count_with_their_bytes_and_their_variation() {
    let mut setup = whole("pfifo", 100_000_000, vec![cbr(100, 10_000)]);
    setup.lines[0].jitter = Span::from_millis(5);
    let flow = run(&setup, 1).flows.swap_remove(0);
    let Outcome::Datagrams { sent, received, variation, added_delay, .. } = flow.outcome else {
        panic!()
    };
    // Three or four are under way at the end.
    assert!(sent == 1_001 && (997..=998).contains(&received), "{received} of {sent}");
    assert_eq!(flow.delivered, [100 * received, 0]);
    // One and the next, never more than the jitter apart.
    assert_eq!(variation.count(), received - 1);
    assert!(variation.greatest() > Some(Span::from_millis(4)));
    assert!(variation.greatest() <= Some(Span::from_millis(5)));
    assert!(added_delay.greatest() <= Some(Span::from_micros(5_012)));
    // What follows a loss has no neighbour.
    setup.lines[0].loss = Loss::Random(u32::MAX / 2);
    let flow = run(&setup, 1).flows.swap_remove(0);
    let Outcome::Datagrams { received, variation, .. } = flow.outcome else { panic!() };
    assert!(variation.count() * 10 > received * 4 && variation.count() * 10 < received * 6);
}

#[test]
fn delays_over_time_are_all_delays() {
    for kind in [ping().kind, kind_rr(), cbr(64, 10_000).kind] {
        let outcome = outcome(&whole("pfifo", 1_000_000, vec![traffic(kind, Direction::Up)]));
        let (count, greatest) = match &outcome {
            Outcome::Ping { added_rtt, .. } => (added_rtt.count(), added_rtt.greatest()),
            Outcome::Datagrams { added_delay, .. } => (added_delay.count(), added_delay.greatest()),
            other => panic!("{other:?}"),
        };
        let moments = outcome.over_time();
        assert_eq!(moments.iter().map(|moment| u64::from(moment.count)).sum::<u64>(), count);
        assert_eq!(moments.iter().map(|moment| moment.greatest).max(), greatest);
    }
    // A transfer knows of none.
    assert!(outcome(&whole("pfifo", 1_000_000, vec![bulk(None)])).over_time().is_empty());
}

/// Answers that the end of the run cuts off are neither lost nor awaited; all others are one.
#[test]
fn what_the_end_cuts_off_is_not_lost() {
    let often = Kind::Ping { size: 64, interval: Span::from_millis(20), icmp: true };
    let mut setup = whole("pfifo", 100_000_000, vec![traffic(often, Direction::Up)]);
    setup.lines[0].loss = Loss::Random(u32::MAX / 20);
    setup.lines[1].loss = Loss::Random(u32::MAX / 20);
    let flow = run(&setup, 2).flows.swap_remove(0);
    let Outcome::Ping { sent, received, .. } = flow.outcome else { panic!() };
    let lost: u64 = flow.fates.iter().map(|fates| fates.lost).sum();
    // 501 went out, of which three are cut off.
    assert!(lost > 20 && sent == 498, "{sent} sent, {lost} lost");
    assert_eq!(sent - received, lost);
}

/// The moment of the stop is past it.
#[test]
fn nobody_asks_when_it_is_time_to_stop() {
    // 43 bytes at 1 Mbit/s each way on top of 50 ms.
    let first_answer = Span::from_micros(50_688);
    for (stop, asked) in [(first_answer, 1), (first_answer + Span(1), 2)] {
        let probe = Traffic { stop: Some(stop), ..traffic(kind_rr(), Direction::Up) };
        let Outcome::Ping { sent, received, .. } = outcome(&whole("pfifo", 1_000_000, vec![probe]))
        else {
            panic!()
        };
        assert_eq!((sent, received), (asked, asked));
    }
}

fn playback(setup: &Setup) -> Playback {
    match outcome(setup) {
        Outcome::Dash(playback) => playback,
        other => panic!("{other:?}"),
    }
}

/// A video down, alone on a line whose rate takes these steps.
fn video(params: dash::Params, seconds: u64, steps: &[(u64, u64)]) -> Setup {
    let video = traffic(Kind::Dash(params), Direction::Down);
    let mut setup = whole("pfifo limit 100", 10_000_000, vec![video]);
    setup.duration = Span::from_secs(seconds);
    let step = |(secs, rate): &(u64, u64)| Step {
        at: Time::ZERO + Span::from_secs(*secs),
        rate: Rate::from_bits(*rate),
    };
    setup.lines[1].steps = steps.iter().map(step).collect();
    setup
}

/// FESTIVE (see `apps/player.rs`): each chunk has the highest rate that its share of the harmonic
/// mean of five throughputs allows. That holds however these go up and down.
#[test]
fn a_chunks_rate_follows_the_harmonic_mean_of_five_throughputs() {
    let steps = [(2, 1_500_000), (14, 5_000_000), (30, 300_000), (45, 3_000_000), (60, 900_000)];
    let params = dash::Params::default();
    let chunks = playback(&video(params.clone(), 80, &steps)).chunks;
    assert!(chunks.len() > 25, "{}", chunks.len());
    for n in 1..chunks.len() {
        let last = &chunks[n.saturating_sub(5)..n];
        let times: f64 = last.iter().map(|chunk| 1.0 / chunk.throughput as f64).sum();
        let allowed = 0.9 * last.len() as f64 / times;
        let fits = |rate: &&u64| **rate as f64 <= allowed;
        let expected = params.ladder.iter().rfind(fits).unwrap_or(&params.ladder[0]);
        assert_eq!(chunks[n].rate, *expected, "chunk {n} of {chunks:?}");
    }
    let mut rates: Vec<u64> = chunks.iter().map(|chunk| chunk.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    assert!(rates.len() > 5, "{rates:?}");
}

/// Play goes on when two chunks are there again, as it began.
#[test]
fn a_buffer_that_runs_dry_is_a_stall() {
    let playback = playback(&video(dash::Params::default(), 60, &[(5, 0), (45, 10_000_000)]));
    let before = |at: u64| move |chunk: &&Chunk| chunk.asked < Time::ZERO + Span::from_secs(at);
    // The last that was asked for before the line went down came when it was up again.
    let first = playback.chunks.iter().filter(before(5)).count() - 1;
    let startup = playback.startup.expect("pictures");
    let dry = Time::ZERO + startup + Span::from_secs(2 * first as u64);
    let two_more = playback.chunks[first + 2].asked;
    assert_eq!((playback.stalls, playback.stalled), (1, two_more.since(dry)));
    assert_eq!(startup + playback.played + playback.stalled, Span::from_secs(60));
}

/// Requests of 300 bytes in three segments, which a slow line spreads over 249 ms.
#[test]
fn a_chunk_is_sent_once_when_its_request_is_whole() {
    let params = dash::Params { ladder: vec![1_000], ..dash::Params::default() };
    let mut setup = video(params, 20, &[]);
    setup.traffic[0].tcp.mtu = 200;
    setup.traffic[0].stop = Some(Span::from_secs(15));
    setup.lines[0].rate = Some(Rate::from_bits(16_000));
    let flow = run(&setup, 1).flows.swap_remove(0);
    let Outcome::Dash(playback) = flow.outcome else { panic!() };
    let chunks = playback.chunks.len() as u64;
    // Of 250 bytes each.
    assert!(chunks > 5, "{chunks}");
    assert_eq!(flow.delivered, [300 * chunks, 250 * chunks]);
    for chunk in &playback.chunks {
        assert!(2_000_000_000_000 / chunk.throughput > 299_000_000, "{chunk:?}");
    }
}

/// A player that waits for room in its buffer goes when it is stopped, not with the next chunk.
#[test]
fn a_video_that_is_stopped_closes_at_once() {
    let mut setup = video(dash::Params::default(), 60, &[]);
    let asked = playback(&setup).chunks.last().expect("chunks").asked;
    // The last chunk takes a second, and from one to the next it is two.
    let stop = asked + Span::from_millis(1_400);
    setup.traffic[0].stop = Some(stop.since(Time::ZERO));
    let mut run = Run::new(&setup, 1).expect("a good set-up");
    run.advance(stop);
    assert!(run.windows()[0].is_some());
    // Half a second for both ends.
    run.advance(stop + Span::from_millis(500));
    assert_eq!(run.windows(), [None]);
}

/// One object a page, the same always but for the tail.
fn pages(interval: Span) -> web::Params {
    web::Params {
        interval,
        pages: (1, 1),
        objects: (1, 1),
        object_size: 1_000,
        object_spread_milli: 0,
        request: (300, 300),
        think: Span::ZERO,
        reading: Span::ZERO,
    }
}

/// Each connection has its own plans: none is forgotten with another one's.
#[test]
fn every_page_is_loaded_while_others_come_and_go() {
    let think = Span::from_millis(100);
    let params = web::Params { think, ..pages(Span::from_millis(20)) };
    let household =
        Traffic { stop: Some(Span::from_secs(8)), ..traffic(Kind::Web(params), Direction::Down) };
    let mut run = Run::new(&setup("pfifo", 100_000_000, vec![household]), 1).expect("a set-up");
    run.advance(Time::ZERO + Span::from_secs(8));
    assert!(run.windows()[0] > Some(40), "connections that are open at once");
    let flow = run.finish().flows.swap_remove(0);
    let Outcome::Web { connections, pages, .. } = flow.outcome else { panic!() };
    assert!(connections > 300, "{connections}");
    // Of those that opened before the window began, a few ended in it, or the other way round.
    assert!(connections.abs_diff(pages) <= 10, "{pages} of {connections}");
}

/// Eight objects in a hundred are from the tail, and four times as large at least.
#[test]
fn some_objects_are_large() {
    let household = traffic(Kind::Web(pages(Span::from_millis(250))), Direction::Down);
    let mut setup = setup("pfifo limit 1000", 10_000_000, vec![household]);
    setup.duration = Span::from_secs(500);
    let Outcome::Web { load_time, .. } = outcome(&setup) else { panic!() };
    // Two round trips and 1066 bytes, or 4264.
    let small = |(time, _): &&(Span, u64)| *time < Span::from_millis(103);
    let small = load_time.cumulative().iter().rfind(small).expect("small objects").1;
    let large_per_mille = (load_time.count() - small) * 1_000 / load_time.count();
    assert!(load_time.count() > 1_800);
    assert!((60..=100).contains(&large_per_mille), "{large_per_mille}");
}

/// A request of seven segments is one request.
#[test]
fn a_request_is_answered_once() {
    let params = web::Params { request: (10_000, 10_000), ..pages(Span::from_millis(500)) };
    let household = traffic(Kind::Web(params), Direction::Down);
    let flow = run(&whole("pfifo", 1_000_000, vec![household]), 1).flows.swap_remove(0);
    let Outcome::Web { pages, .. } = flow.outcome else { panic!() };
    let [up, down] = flow.delivered;
    assert!(pages > 8 && up / 10_000 - pages <= 2, "{pages} pages, {up} bytes up");
    assert!(down < 4_000 * pages, "{down} bytes for {pages} pages");
}
