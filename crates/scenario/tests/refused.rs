//! Scenarios that mean nothing are refused at the place; odd ones that mean something run.

use simnel_scenario::summary::Application;
use simnel_scenario::{no_files, Scenario, ScenarioError, Summary};

const TOP: &str = "duration = \"10s\"\n";
const LINE: &str = "[line]\nup = \"3mbit\"\ndown = \"20mbit\"\n";

fn read(top: &str, line: &str, traffic: &str) -> (String, Result<Scenario, ScenarioError>) {
    let text = format!("{TOP}{top}\n{LINE}{line}\n[[traffic]]\n{traffic}\n");
    let scenario = Scenario::parse(&text, "odd", &no_files);
    (text, scenario)
}

#[test]
fn what_means_nothing_is_refused_at_its_place() {
    for (top, line, traffic, place, what) in [
        ("", "", "kind = \"bulk\"\nstart = \"10s\"", "\"10s\"", "never starts"),
        ("", "", "kind = \"dash\"\nstart = \"5s\"\nstop = \"5s\"", "\"5s\"", "before it starts"),
        ("", "[[line.change]]\nat = \"2s\"", "kind = \"bulk\"", "\"2s\"", "changes nothing"),
        (
            "",
            "[[line.change]]\nat = \"10s\"\nup = \"1mbit\"",
            "kind = \"bulk\"",
            "\"10s\"",
            "never comes",
        ),
        ("", "burst = 5000", "kind = \"bulk\"", "5000", "without a bucket"),
        ("", "reorder = \"1%\"", "kind = \"bulk\"", "\"1%\"", "`1%` cannot be used"),
        ("interval = \"0s\"", "", "kind = \"bulk\"", "\"0s\"", "no length"),
        ("interval = \"1ns\"", "", "kind = \"bulk\"", "\"1ns\"", "`interval` is too short"),
        ("", "rtt = \"121s\"", "kind = \"bulk\"", "\"121s\"", "`rtt` is too long"),
        ("", "jitter = \"61s\"", "kind = \"bulk\"", "\"61s\"", "`jitter` is too long"),
        ("", "reorder = \"1% by 61s\"", "kind = \"bulk\"", "\"1% by 61s\"", "`reorder` is too"),
        (
            "[[host]]\nname = \"far\"\nside = \"internet\"\nrtt = \"121s\"",
            "",
            "kind = \"bulk\"",
            "\"121s\"",
            "`rtt` is too long",
        ),
        ("", "", "kind = \"bulk\"\nwindow = 1447", "1447", "nothing fits"),
        ("", "", "kind = \"iot\"\nrate = 5\ninterval = \"1s\"", "5", "a rate and an interval"),
        ("", "", "kind = \"dash\"\nladder = [\"unlimited\"]", "[\"unlimited\"]", "no unlimited"),
        ("", "", "kind = \"voip\"\ncc = \"bbr\"", "\"bbr\"", "of kind \"voip\" has no `cc`"),
        ("", "", "kind = \"ping\"\necn = true", "true", "of kind \"ping\" has no `ecn`"),
        ("", "", "kind = \"ping\"\nslow-start = \"loss\"", "\"loss\"", "has no `slow-start`"),
        ("", "", "kind = \"cbr\"\nrate = \"2mbps\"", "\"2mbps\"", "did you mean `2mbit`?"),
        ("qdisc = [\"cake\", \"pie\"]", "", "kind = \"bulk\"", "[\"cake\", \"pie\"]", "or a table"),
        ("qdisc = {}", "", "kind = \"bulk\"", "{}", "a table with `up` and `down`"),
        ("qdisc = \"cake rtt 9ms bandwidth 20\"", "", "kind = \"bulk\"", "20", "`bandwidth 20` is"),
    ] {
        let (text, read) = read(top, line, traffic);
        let error = read.expect_err(traffic);
        assert!(error.what.contains(what), "{error}");
        assert_eq!(error.span.map(|span| &text[span]), Some(place), "{text}");
    }
    let long = Scenario::parse("duration = \"1e9s\"\n[line]\n", "long", &no_files);
    let error = long.expect_err("longer than 100 days");
    assert_eq!((&*error.what, error.span), ("`duration` is too long", Some(11..17)));
    assert_eq!(error.expected, "at most 8640000s");
    let (_, stuck) =
        read("", "", "kind = \"dash\"\nchunk = \"4s\"\nbuffer = \"10s\"\nprefill = \"9s\"");
    assert!(stuck.expect_err("it never plays").what.contains("whole chunks"));
}

#[test]
fn a_trace_has_no_other_changes() {
    let line = "trace = { up = \"up.trace\" }\n[[line.change]]\nat = \"2s\"\nup = \"1mbit\"\n";
    let text = format!("{TOP}[line]\ndown = \"20mbit\"\n{line}[[traffic]]\nkind = \"bulk\"\n");
    let trace = |_: &str| Ok("1\n2\n3\n".to_string());
    let error = Scenario::parse(&text, "trace", &trace).expect_err("two rates");
    assert_eq!(error.what, "`up` follows a trace and changes");
}

#[test]
fn a_number_without_its_unit_is_told_with_its_key() {
    let error = Scenario::parse("duration = 10\n", "number", &no_files).expect_err("no unit");
    assert_eq!(error.what, "`duration`: invalid type: integer `10`, expected a string");
    assert!(error.expected.contains("45ms"), "{error}");
    let (_, warm) = read("warmup = \"10s\"", "", "kind = \"bulk\"");
    assert!(warm.expect_err("nothing is measured").what.contains("`warmup`"));
}

#[test]
fn a_number_that_is_none_is_told_with_its_key() {
    let said = |traffic: &str| {
        let error = read("", "", &format!("kind = \"bulk\"\n{traffic}")).1.expect_err(traffic);
        format!("{}; expected {}", error.what, error.expected)
    };
    let count = "a whole number, 1 or more";
    let segments = "a whole number, 1 or more, up to 255";
    let bytes = "a whole number of bytes, 100 to 1500";
    for (traffic, what, expected) in [
        ("count = -1", "`count`: invalid value: integer `-1`", count),
        ("count = 1.5", "`count`: invalid type: floating point `1.5`", count),
        ("count = \"two\"", "`count`: invalid type: string \"two\"", count),
        ("tso = 256", "`tso`: invalid value: integer `256`", segments),
        ("mtu = -1", "`mtu`: invalid value: integer `-1`", bytes),
        ("mtu = 70000", "`mtu`: invalid value: integer `70000`", bytes),
    ] {
        assert_eq!(said(traffic), format!("{what}; expected {expected}"));
    }
}

#[test]
fn a_line_that_changes_has_a_rate_before() {
    let line = "down = \"20mbit\"\nup = \"unlimited\"\n";
    let change = "[[line.change]]\nat = \"2s\"\nup = \"5mbit\"\n";
    let text = format!("{TOP}[line]\n{line}{change}[[traffic]]\nkind = \"bulk\"\n");
    let error = Scenario::parse(&text, "unlimited", &no_files).expect_err("no rate to change");
    assert_eq!(error.what, "`up` is unlimited and changes");
    assert_eq!(error.span.map(|span| &text[span]), Some("\"5mbit\""));
}

#[test]
fn what_cannot_be_simulated_is_refused_at_its_traffic() {
    let other = "kind = \"rr\"\n[[traffic]]\nkind = \"web\"\nobjects = [1, 99999]";
    let (text, scenario) = read("", "", other);
    let error = scenario.and_then(|one| one.simulation(None).map(drop)).expect_err("no such web");
    assert_eq!(error.place(&text), Some((9, 1)), "{error}");
}

#[test]
fn of_nothing_there_are_no_times() {
    for traffic in [
        "kind = \"bulk\"\nsize = 1000",
        "kind = \"cbr\"\nrate = \"1mbit\"",
        "kind = \"ping\"",
        "kind = \"web\"",
        "kind = \"iot\"",
        "kind = \"bursts\"",
    ] {
        let none = application(traffic, "pfifo limit 0");
        assert_eq!(none.times().map(|times| times.n), None, "{none:?}");
        assert!(!matches!(none, Application::Datagrams { jitter_ms: Some(_), .. }), "{none:?}");
        assert!(application(traffic, "pfifo").times().is_some(), "{traffic}");
    }
}

fn application(traffic: &str, qdisc: &str) -> Application {
    let scenario = read("", "", traffic).1.expect(traffic);
    let run = scenario.simulation(Some(qdisc)).expect(qdisc).finish(1).expect("a run");
    let summary = Summary::new(&scenario, &run);
    summary.groups.into_iter().find_map(|group| group.application).expect("an application")
}

#[test]
fn sizes_have_any_unit() {
    let transfer = application("kind = \"bulk\"\nsize = \"10gb\"", "pfifo");
    assert!(matches!(transfer, Application::Transfers { finished: 0, .. }));
}

#[test]
fn a_film_that_is_stopped_does_not_stall() {
    let short = "kind = \"dash\"\nchunk = \"1s\"\nbuffer = \"2s\"\nprefill = \"1s\"\n";
    let Application::Dash { stalls, stalled_s, .. } =
        application(&format!("{short}stop = \"5s\""), "pfifo")
    else {
        panic!("a film")
    };
    assert_eq!((stalls, stalled_s), (0.0, 0.0));
}

#[test]
fn a_call_that_loses_everything_is_a_bad_one() {
    let call = application("kind = \"voip\"\ndirection = \"up\"", "pfifo limit 0");
    let Application::Datagrams { received: 0, loss, mos: Some(mos), .. } = call else {
        panic!("{call:?}")
    };
    assert!(loss > 0.99 && mos == 1.0, "{loss} {mos}");
}

/// Datagrams that wait for seconds when the run ends: lost to a call, though nobody dropped them.
#[test]
fn a_call_that_is_cut_off_has_lost_its_end() {
    let call = "kind = \"voip\"\ndirection = \"up\"";
    let at_the_end = |change: &str| {
        let scenario = read("", change, call).1.expect(change);
        let run = scenario.simulation(Some("pfifo limit 1000")).expect("pfifo").finish(1);
        let summary = Summary::new(&scenario, &run.expect("a run"));
        let application = summary.groups.into_iter().find_map(|group| group.application);
        let Some(Application::Datagrams { loss, mos: Some(mos), .. }) = application else {
            panic!("a call")
        };
        (loss, mos)
    };
    // Four of ten seconds: the last one's might still have come.
    let (loss, mos) = at_the_end("[[line.change]]\nat = \"5s\"\nup = \"1kbit\"");
    assert!((0.38..0.42).contains(&loss) && mos < 2.0, "{loss} {mos}");
    let (loss, mos) = at_the_end("[[line.change]]\nat = \"9500ms\"\nup = \"1kbit\"");
    assert!(loss == 0.0 && mos > 4.0, "{loss} {mos}");
    // A queue in which all wait for long loses nothing by that.
    let (loss, mos) = at_the_end("[[line.change]]\nat = \"1ms\"\nup = \"95kbit\"");
    assert!(loss == 0.0, "{loss} {mos}");
}

#[test]
fn no_more_is_lost_than_was_sent() {
    let flood = "kind = \"cbr\"\nrate = \"9mbit\"\nstop = \"4900ms\"";
    let (text, _) = read("warmup = \"5s\"", "", flood);
    let scenario = Scenario::parse(&text, "flood", &no_files).expect("a scenario");
    let run = scenario.simulation(Some("codel")).expect("codel").finish(1).expect("a run");
    let summary = Summary::new(&scenario, &run);
    assert!(summary.groups[0].drops.iter().any(|(_, count)| *count > 0), "{:?}", summary.groups);
    let Some(Application::Datagrams { sent: 0, loss, .. }) = summary.groups[0].application else {
        panic!("datagrams")
    };
    assert_eq!(loss, 0.0);
}
