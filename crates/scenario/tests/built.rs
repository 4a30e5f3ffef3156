//! Scenarios that a program builds: every kind and key, read back from its text as the same set-up.

use simnel_core::{Rate, Span};
use simnel_scenario::file::{Change, Host, Line, Traffic};
use simnel_scenario::{no_files, File, Scenario};
use simnel_sim::Direction;
use simnel_tcp::{CongestionControl, EcnMode};

const fn ms(number: u64) -> Span {
    Span::from_millis(number)
}

fn file() -> File {
    // Neither whole milliseconds nor whole kilobits.
    let line = Line::new(Rate(12_345), Rate(1_250_000), Span(123_456_789))
        .framing("overhead 34 atm")
        .shaper("htb")
        .burst(15_140)
        .loss("every 1000")
        .jitter(Span::from_micros(1_500))
        .reorder("0.5% by 12ms")
        .change(Change::new(ms(2_500)).up(Rate(0)).down(Rate(99)));
    let tcp = Traffic::bulk().cc(CongestionControl::Reno).ecn(EcnMode::Accurate);
    let tcp = tcp.slow_start("loss").pacing(true).nagle(false).delayed_ack(false).tso(2).gro(3);
    let video = Traffic::dash().chunk(ms(2_000)).ladder(&[Rate(10_000), Rate(20_000)]);
    let web = Traffic::web().per_second(2.5).pages(vec![1, 2]).objects(vec![3]).size(9_999);
    File::new(Span::from_secs(10), line)
        .name("all")
        .question("Everything?")
        .warmup(ms(1_500))
        .interval(ms(100))
        .windows(true)
        .qdiscs("cake bandwidth {rate}", "fq_codel")
        .host(Host::home("a").count(2).rtt(ms(3)).rate(Rate(125_000)))
        .host(Host::internet("b"))
        .traffic(tcp.mtu(1_000).window(64_000).initial_window(4).size(100_000).stop(ms(9_000)))
        .traffic(Traffic::cbr().rate(Rate(8_000)).ports(3).both_ways().count(2))
        .traffic(Traffic::voip().codec("g729").dscp(&["EF"]))
        .traffic(Traffic::ping().protocol("icmp").interval(ms(20)).dscp(&["BE", "CS1"]))
        .traffic(web.spread(1.5).think(ms(5)).reading(ms(70)).start(ms(1)).stagger(ms(2)))
        .traffic(video.buffer(ms(9_000)).prefill(ms(4_000)).safety(0.75).home(&["a"]))
        .traffic(Traffic::iot().per_second(125.0).direction(Direction::Down).internet(&["b"]))
        .traffic(Traffic::bittorrent())
        .traffic(Traffic::rr().size(8).dscp(&["EF"]))
        .traffic(Traffic::bursts().pause(&[ms(10), ms(20)]))
}

#[test]
fn what_is_built_is_read_back_from_its_text() {
    let text = file().to_string();
    let built = Scenario::new(&file(), "built", &no_files).expect("a scenario");
    let read = Scenario::parse(&text, "read", &no_files).expect("its text");
    assert_eq!((&*built.name, &*built.question), ("all", "Everything?"));
    assert_eq!((&built.name, &built.question), (&read.name, &read.question));
    let setup = |scenario: &Scenario| format!("{:?}", scenario.setup(None).expect("a set-up"));
    assert_eq!(setup(&built), setup(&read), "{text}");
}

#[test]
fn what_a_program_builds_wrongly_is_refused_as_in_a_text() {
    let file = file().traffic(Traffic::voip().codec("g722"));
    let error = Scenario::new(&file, "wrong", &no_files).expect_err("no such codec");
    assert_eq!((&*error.what, &*error.expected), ("no such codec", "\"g711\" or \"g729\""));
    let file = File::new(ms(10), Line::of_words("fast", "20mbit", "9ms")).traffic(Traffic::ping());
    let error = Scenario::new(&file, "wrong", &no_files).expect_err("no rate");
    assert_eq!(error.what, "`fast` is no rate such as 20mbit");
}
