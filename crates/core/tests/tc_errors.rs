//! Errors in words: the word, its place, what is wrong with it and what would have been right.

use simnel_core::qdisc;
use simnel_core::tc::Problem;

/// Rates that a person says: in bits, with their unit, wherever a word takes one.
#[test]
fn a_rate_that_is_another_one_than_it_looks_like_is_an_error() {
    for (words, guilty) in [
        ("cake bandwidth 20mbit", None),
        ("cake bandwidth 20", Some((2, "20"))),
        ("cake bandwidth 20mbps nat", Some((2, "20mbps"))),
        ("htb class 1:1 rate 1mbit ceil 5mbit class 1:2 rate 2mbit ceil 9", Some((12, "9"))),
        // Other numbers without a unit are what they say.
        ("cake overhead 20", None),
        ("fq_codel limit 20", None),
        ("htb default 20 rate 1mbit", None),
    ] {
        assert!(qdisc::parse(words).is_ok(), "{words}");
        let checked = qdisc::parse_strictly(words).map_err(|error| {
            assert!(matches!(error.problem, Problem::Slip { .. }), "{error}");
            (error.index, error.word)
        });
        let wanted = guilty.map(|(index, word): (usize, &str)| (index, word.to_string()));
        assert_eq!(checked.err(), wanted, "{words}");
    }
}

#[test]
fn errors_say_what_where_and_what_instead() {
    for (words, message) in [
        (
            "cake nat diffserv5",
            "`diffserv5` (word 3) is not a keyword of cake; did you mean `diffserv4`?",
        ),
        (
            "cake ack-fitler",
            "`ack-fitler` (word 2) is not a keyword of cake; did you mean `ack-filter`?",
        ),
        ("cake xyzzy", "`xyzzy` (word 2) is not a keyword of cake"),
        (
            "red limit 40kb avpkt 1000 nowait",
            "`nowait` (word 6) does not fit here; in red it is for: ns: signal as chance has it \
             (ours)",
        ),
        (
            "drr weight 2",
            "`weight` (word 2) does not fit here; in drr it is for: quanta that the class earns, \
             default 1",
        ),
        ("cke nat", "`cke` (word 1) is not a queue discipline; did you mean `cake`?"),
        ("", "no discipline is named: say `cake`, for instance"),
        ("cake bandwidth", "`bandwidth` (word 2) must be followed by a RATE such as 20mbit"),
        (
            "cake bandwidth fast",
            "`fast` (word 3) cannot be used: `bandwidth` takes a RATE such as 20mbit",
        ),
        (
            "cake overhead 257",
            "`257` (word 3) is out of range: `overhead` takes a whole number of bytes, -64 to 256",
        ),
        (
            "cake queues 1000",
            "`1000` (word 3) is out of range: `queues` takes a power of two, 8 to 32768",
        ),
        (
            "cake memlimit 5gb",
            "`5gb` (word 3) is out of range: `memlimit` takes a SIZE less than 4gb",
        ),
        ("delay soon", "`soon` (word 2) cannot be used: `delay` takes a TIME such as 20ms"),
        ("delay", "`delay` (word 1) must be followed by a TIME such as 20ms"),
        ("delay 20ms xyzzy", "`xyzzy` (word 3) is not a keyword of delay"),
        (
            "cake overhead 239 docsis",
            "`docsis` (word 4) is out of range: `docsis` takes no more than 256 bytes of overhead \
             in all",
        ),
        ("bfifo limit 10p", "`10p` (word 3) cannot be used: `limit` takes a LIMIT such as 64kb"),
        (
            "tbf rate 1mbit burst 15k latency 9ms limit 30k mpu 64",
            "`limit` (word 8) comes too late: `latency` has been said",
        ),
        (
            "tbf rate 1mbit burst 15k limit 30k lat 9ms",
            "`lat` (word 8) comes too late: `limit` has been said",
        ),
        (
            "tbf rate 5mbit peakrate 3mbit burst 10k mtu 1500 limit 10k",
            "`3mbit` (word 5) is out of range: `peakrate` takes a RATE above that of `rate`",
        ),
        (
            "red limit 400kb min 50kb max 20kb avpkt 1000 ecn",
            "`20kb` (word 7) is out of range: `max` takes at least min",
        ),
        (
            "red limit 1 avpkt 1000 ecn",
            "`red` (word 1) must be followed by a `max` of at least min",
        ),
        (
            "sfq limit 100 depth 1 flows 1",
            "`100` (word 3) is out of range: `limit` takes more than 1 packet, also as depth times \
             flows",
        ),
        (
            "sfq ewma 1 max 4kb min 1365 ecn",
            "`1` (word 3) is out of range: `ewma` takes a weight that min and avpkt allow",
        ),
        (
            "htb default 1 class 1:1 rate 1mbit class 1:2 parent 1:1 prio 1 class 1:3 rate 1mbit",
            "`1:2` (word 9) must be followed by rate RATE",
        ),
        (
            "htb class 1 rate 1mbit over 9",
            "`over` (word 6) is not a keyword of htb; did you mean `overhead`?",
        ),
        (
            "sfq redflowlimit 30000 max 30001",
            "`30001` (word 5) is out of range: `max` takes no more BYTES than `redflowlimit`",
        ),
        (
            "sfq redflowlimit 30000 min 5000 max 5000",
            "`5000` (word 7) is out of range: `max` takes more BYTES than `min`",
        ),
        (
            "tbf rate 1mbit burst 9k latency 4295s",
            "`4295s` (word 7) is out of range: `latency` takes a TIME below 4295 seconds",
        ),
        ("tbf", "`tbf` (word 1) must be followed by rate RATE and burst SIZE"),
        ("tbf rate 1mbit burst 0", "`tbf` (word 1) must be followed by burst SIZE"),
        ("tbf burst 9k", "`tbf` (word 1) must be followed by rate RATE"),
        ("htb ceil 1mbit", "`htb class` (word 1) must be followed by rate RATE"),
        (
            "line rate 1mbit fifo 100",
            "`100` (word 5) cannot be used: `fifo` takes packets or bytes, such as 100p or 64kb",
        ),
        (
            "blue increment 2",
            "`2` (word 3) is out of range: `increment` takes a probability of at most 1",
        ),
        (
            "sfb rehash 1.5",
            "`1.5` (word 3) cannot be used: `rehash` takes a number of milliseconds, or a TIME \
             such as 600s",
        ),
        (
            "tbf rate 1mbit burst 15k limit 30k peakrate 2mbit mtu 0",
            "`tbf peakrate` (word 1) must be followed by mtu SIZE",
        ),
        ("sfq max 20000 min 8000", "`RED for sfq` (word 1) must be followed by redflowlimit BYTES"),
        (
            "sfq ewma 3 min 8000",
            "`RED for sfq` (word 1) must be followed by redflowlimit BYTES, or max BYTES",
        ),
    ] {
        let error = qdisc::parse(words).expect_err(words);
        assert_eq!(error.to_string(), message, "{words}");
    }
    for (words, number) in [
        ("weight 0.1", "weight of one sample in the average (ours)"),
        ("delay 9ms", "round trip without queueing, default 100ms (ours)"),
        ("noadaptive", "keep the probability (ours)"),
        ("gentle", "rise on up to twice max (default; ours)"),
        ("nogentle", "signal to all from max on (ours)"),
        ("wait", "wait between signals (default; ours)"),
    ] {
        let error = qdisc::parse(&format!("red limit 40kb avpkt 1000 {words}")).unwrap_err();
        assert!(error.to_string().contains(&format!("is for: ns: {number}")), "{error}");
    }
    for (class, fault) in [
        ("1:", "cannot be used"),
        ("1:1g", "cannot be used"),
        ("g:1", "cannot be used"),
        ("1:0", "cannot be used"),
        ("1:10000", "is out of range"),
    ] {
        let error = qdisc::parse(&format!("htb class {class} rate 1mbit")).unwrap_err();
        let message = format!("`{class}` (word 3) {fault}: `class` takes a class such as 1:10");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn the_class_that_is_too_deep_is_named() {
    let mut words = String::from("htb class 1 rate 1mbit");
    for class in 2..=8 {
        words += &format!(" class {class} rate 1mbit parent {}", class - 1);
    }
    assert!(qdisc::parse(&words).is_ok());
    let error = qdisc::parse(&(words + " class 9 parent 8 rate 1mbit")).unwrap_err();
    assert_eq!((error.word.as_str(), error.index), ("8", 50), "{error}");
}

#[test]
fn errors_say_what_would_have_been_right() {
    for (words, expected) in [
        ("cke nat", "the name of a discipline"),
        ("cake nta", "a keyword of the discipline"),
        ("drr weight 2", "a keyword that goes with the others"),
        ("cake bandwidth", "a RATE such as 20mbit"),
        ("cake bandwidth fast", "a RATE such as 20mbit"),
        ("cake queues 1000", "a power of two, 8 to 32768"),
        ("netem loss 1%", "a discipline or keyword that `simnel words` lists"),
        ("tbf rate 1mbit burst 9k limit 9k limit 8k", "something that was not said before"),
    ] {
        let error = qdisc::parse(words).unwrap_err();
        assert_eq!(error.expected(), expected, "{words}");
        assert_eq!(error.is_foreign(), words.starts_with("netem"), "{words}");
    }
}

#[test]
fn errors_point_at_the_word() {
    let text = "  cake\t nat   diffserv5 wash";
    let error = qdisc::parse(text).unwrap_err();
    assert_eq!((error.index, &text[error.start..error.end]), (2, "diffserv5"));
    let words = ["cake", "nat", "diffserv5"];
    let error = qdisc::parse_words(&words).unwrap_err();
    assert_eq!(&words.join(" ")[error.start..error.end], "diffserv5");
    assert_eq!(error.nearest(), Some("diffserv4"));
    let stacked = "cake conservative ".to_string() + &"docsis ".repeat(20);
    let error = qdisc::parse(&stacked).unwrap_err();
    assert!(matches!(error.problem, Problem::OutOfRange { keyword: "docsis", .. }));
}
