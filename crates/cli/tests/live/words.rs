//! Commands and configuration files: what they do, and what they say about mistakes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Instant;

use simnel_core::qdisc;
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::Home;

use crate::{text, within, Live, SECOND, SIMNEL};

#[test]
fn two_interfaces_at_once_and_no_second_gateway_on_one() {
    let Some(live) = Live::beside_others("two_interfaces_at_once_and_no_second_gateway_on_one")
    else {
        return;
    };
    let nothing = live.simnel("show");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("nothing is shaped here"));
    let wan = live.start("wan", "up wan download 50mbit upload 10mbit diffserv4 nat docsis");
    let lan = live.start("br-lan", "up br-lan download 40mbit --anyway");
    let second = live.simnel("up wan upload 5mbit");
    assert_eq!(second.status.code(), Some(1));
    let error = text(&second.stderr);
    assert!(error.contains("`wan` is already managed"), "{error}");

    let shown = live.ok("show");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    for (word, device) in [("10Mbit", "wan "), ("50Mbit", "wan:download"), ("40Mbit", "br-lan")] {
        let line = lines.iter().find(|line| line.contains(word)).expect(word);
        assert!(line.contains(device) && line.contains("qdisc cake"), "{line}");
    }
    assert!(live.ok("show -s wan").contains("Sent "));
    let json: serde_json::Value = serde_json::from_str(&live.ok("show -s -j wan")).unwrap();
    assert_eq!(json[0]["kind"], "cake");
    assert_eq!(json.as_array().map(Vec::len), Some(2));

    live.ok("change wan upload 8mbit");
    live.ok("change wan upload ack-filter");
    let unlimited = live.simnel("change wan download 0");
    assert!(text(&unlimited.stderr).contains("nothing limits the download of `wan`"));
    let shown = live.ok("show wan");
    let upload = shown.lines().find(|line| !line.contains("wan:download")).unwrap();
    for word in ["bandwidth 8Mbit", "diffserv4", " nat ", "ack-filter", "overhead 18"] {
        assert!(upload.contains(word), "no `{word}` in {upload}");
    }
    // Status 2 for words that make no sense, 1 for what cannot be done.
    for (words, status, complaint) in [
        ("change wan sideload 8mbit", 2, "`sideload` is no direction"),
        ("change wan upload 8mbits", 2, "`8mbits`"),
        ("change wan upload difserv8", 2, "`difserv8` (word 4)"),
        ("up lan1 upload 8mbit", 1, "the default route goes by `wan`"),
        ("change br-lan upload 8mbit", 1, "`br-lan` has no upload discipline"),
        ("down lan1", 1, "nothing manages `lan1`"),
        ("up nope upload 1mbit", 1, "no interface `nope`"),
        ("up lo upload 1mbit", 1, "loopback"),
        // Before anything is measured: nobody answers at that address.
        ("setup lan1 --server 192.0.2.9 --yes", 1, "the default route goes by `wan`"),
        ("setup nope --server 192.0.2.9 --dry-run", 1, "no interface `nope`"),
        ("setup lo --server 192.0.2.9 --yes", 1, "loopback"),
    ] {
        let output = live.simnel(words);
        let error = text(&output.stderr).replace(['\n', '│'], " ");
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(status), "{words}: {error}");
        assert!(error.contains(complaint), "`{words}`: {error}");
    }
    live.ok("down wan");
    assert!(live.ok("show").contains("br-lan"));
    live.ok("down br-lan");
    drop((wan, lan));
    assert!(live.is_clean());
}

#[test]
fn a_bridge_that_serves_nothing_is_not_left_behind() {
    let Some(live) = Live::beside_others("a_bridge_that_serves_nothing_is_not_left_behind") else {
        return;
    };
    let ip = |words: &str| {
        within(&live.home.gateway, "ip", &words.split(' ').collect::<Vec<_>>()).status.success()
    };
    assert!(ip("link add ba type veth peer name ca"));
    // Everybody may write there: no lock is taken.
    let open = live.home.testbed.directory().unwrap().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let directory = open.to_string_lossy();
    let words = ["up", "--bridge", "ba", "ca", "upload", "1mbit", "--control-dir", &directory];
    let refused = within(&live.home.gateway, SIMNEL, &words);
    assert!(text(&refused.stderr).contains("is not safe"), "{}", text(&refused.stderr));
    assert!(!ip("link show simnel-br"), "the bridge is there");
    // An address would answer nobody any more.
    assert!(ip("addr add 10.77.99.1/24 dev ca"));
    let refused = within(&live.home.gateway, SIMNEL, &words);
    let errors = text(&refused.stderr);
    assert!(
        errors.contains("`ca` is reached by 10.77.99.1") && errors.contains("--anyway"),
        "{errors}"
    );
    assert!(!ip("link show simnel-br"), "the bridge is there");
}

#[test]
fn an_interface_that_is_down_renamed_or_gone_is_said() {
    let Some(live) = Live::beside_others("an_interface_that_is_down_renamed_or_gone_is_said")
    else {
        return;
    };
    let ip = |words: &str| {
        let done = within(&live.home.gateway, "ip", &words.split(' ').collect::<Vec<_>>());
        assert!(done.status.success(), "{words}: {}", text(&done.stderr));
    };
    let shown = |expected: &str| {
        let begin = Instant::now();
        loop {
            let said = text(&live.simnel("show va").stderr);
            if said.contains(expected) && (!expected.is_empty() || said.is_empty()) {
                break;
            }
            assert!(begin.elapsed() < SECOND * 10, "no `{expected}`: {said}");
            thread::sleep(SECOND / 20);
        }
    };
    ip("link add va type veth peer name vb");
    let up = live.start("va", "up va upload 1mbit --anyway");
    shown("va: down: nothing passes");
    ip("link set va up");
    shown("");
    ip("link set va down");
    ip("link set va name vc");
    shown("va: renamed to vc, whose traffic passes unshaped");
    let checked = live.simnel("check vc");
    assert!(text(&checked.stdout).contains("`simnel down va`"), "{}", text(&checked.stdout));
    ip("link del vc");
    assert!(live.ok("show va").contains("qdisc cake"), "standard output stays as it is");
    live.ok("down va");
    drop(up);
}

/// A router at the line's end: the provider's is the next hop, by whatever address.
#[test]
fn the_round_trip_to_a_public_next_hop_is_told_or_why_not() {
    const DELAY_MS: f64 = 20.0;
    let Some(live) = Live::beside_others("the_round_trip_to_a_public_next_hop_is_told_or_why_not")
    else {
        return;
    };
    let _line = live.line(&format!("rate 20mbit delay {}ms", DELAY_MS / 2.0));
    live.home.gateway.address(Home::WAN, "203.0.113.2/24").unwrap();
    live.home.server.address("net0", "203.0.113.1/24").unwrap();
    let hop = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        assert!(within(&live.home.gateway, "ip", &words).status.success(), "{words:?}");
        let report: serde_json::Value = serde_json::from_str(&live.ok("check --json")).unwrap();
        let mut findings = report["findings"].as_array().unwrap().iter();
        let found = findings.find(|finding| finding["id"] == "router-delay");
        found.expect("a finding about the next hop")["what"].as_str().unwrap().to_owned()
    };
    let told = hop("route replace default via 203.0.113.1");
    let rest = told.strip_prefix("RTT to the next hop 203.0.113.1: ").expect(&told);
    let delay: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    println!("  {told}");
    assert!((DELAY_MS..3.0 * DELAY_MS).contains(&delay), "{told}");
    // Nobody has that address: 0.7 s for ICMP, and for TCP's five ports at once.
    let start = Instant::now();
    let told = hop("route replace default via 203.0.113.9");
    assert!(start.elapsed() < 3 * SECOND, "{:?} for silence", start.elapsed());
    assert!(told.starts_with("RTT not measured, because the next hop 203.0.113.9 "), "{told}");
    let told = hop(&format!("route replace default dev {}", Home::WAN));
    assert!(told.starts_with("RTT not measured, because no default route by `"), "{told}");
}

/// A discipline's words where its name is not enough.
fn least_words(name: &str) -> &str {
    match name {
        "delay" => "delay 5ms",
        "red" => "red limit 400kb avpkt 1000",
        "tbf" => "tbf burst 15k latency 50ms",
        "htb" => "htb burst 15k fq_codel",
        name => name,
    }
}

#[test]
fn every_discipline_serves_a_real_line() {
    let Some(live) = Live::beside_others("every_discipline_serves_a_real_line") else { return };
    let line = live.line("rate 30mbit delay 1ms fifo 100p");
    let home = &live.home;
    let options = BulkOptions { direction: Direction::Upload, flows: 4, congestion: "cubic" };
    let bulk = Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap();
    let bulk = bulk.start().unwrap();
    let received = || home.isp.counters(Home::LINE_HOME).unwrap().rx_bytes;
    for known in qdisc::disciplines() {
        let words = least_words(known.name);
        let up = live.start("wan", &format!("up wan download 50mbit upload 10mbit {words}"));
        thread::sleep(SECOND / 4);
        let (start, before) = (Instant::now(), received());
        // Flows that have just met this queue may leave it empty for a while, a busy machine too.
        let megabits = loop {
            thread::sleep(SECOND / 4);
            let bits = (received() - before) as f64 * 8.0;
            let megabits = bits / start.elapsed().as_secs_f64() / 1e6;
            if megabits > 3.0 || start.elapsed() > 5 * SECOND {
                break megabits;
            }
        };
        println!("{words}: {megabits:.2} Mbit/s");
        assert!((3.0..10.5).contains(&megabits), "{words}: {megabits:.2} of 10 Mbit/s");
        let shown = live.ok("show -s wan");
        assert_eq!(shown.matches(&format!("qdisc {} ", known.name)).count(), 2, "{shown}");
        live.ok("change wan upload 20mbit");
        live.ok("down wan");
        drop(up);
    }
    drop(bulk);
    line.stop();
    assert!(live.is_clean());
}

#[test]
fn what_stands_below_a_shaper_is_shown_and_changed() {
    let Some(live) = Live::beside_others("what_stands_below_a_shaper_is_shown_and_changed") else {
        return;
    };
    let one = |text: &str, word: &str| {
        let found: Vec<&str> = text.lines().filter(|line| line.contains(word)).collect();
        assert_eq!(found.len(), 1, "`{word}`: {text}");
        String::from(found[0])
    };
    let up = live.start("wan", "up wan upload 10mbit fq_codel limit 500");
    let shown = live.ok("show -s wan");
    assert!(one(&shown, "qdisc htb ").contains("8001: dev wan root refcnt 2"), "{shown}");
    let below = one(&shown, "qdisc fq_codel ");
    let as_tc = "8002: dev wan parent 8001:1 limit 500p flows 1024 quantum 1514 target 5ms";
    assert!(below.contains(as_tc), "{shown}");
    one(&shown, "new_flows_len");
    let json: serde_json::Value = serde_json::from_str(&live.ok("show -j wan")).unwrap();
    assert_eq!((&json[1]["kind"], &json[1]["parent"]), (&"fq_codel".into(), &"8001:1".into()));
    assert!(live.ok("show -c wan").starts_with("dev wan\n"));
    let class = one(&live.ok("show -c wan"), "class htb 8001:1 root leaf 8002: ");
    assert!(class.contains("rate 10Mbit ceil 10Mbit burst 6600b"), "{class}");

    live.ok("change wan upload 20mbit target 9ms");
    assert!(live.ok("show -c wan").contains("rate 20Mbit"));
    let below = one(&live.ok("show wan"), "qdisc fq_codel ");
    assert!(below.contains("limit 500p") && below.contains("target 9ms"), "{below}");
    live.ok("change wan upload 20mbit codel");
    one(&live.ok("show wan"), "qdisc codel ");
    live.ok("change wan upload 5mbit cake");
    assert!(live.ok("show wan").contains("qdisc cake 8001: dev wan root"));
    live.ok("down wan");
    drop(up);

    // Both directions, by the words' own rate.
    let up = live.start("wan", "up wan htb rate 20mbit burst 15k sfq");
    assert_eq!(live.ok("show wan").matches("qdisc sfq ").count(), 2);
    live.ok("down wan");
    drop(up);
    assert!(live.is_clean());
}

/// Standard error of a command that must fail, on one line.
fn complaint(words: &[&str], status: i32) -> String {
    let output = Command::new(SIMNEL).args(words).output().unwrap();
    let error = text(&output.stderr).replace('│', " ");
    assert_eq!(output.status.code(), Some(status), "{words:?}: {error}");
    error.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn mistakes_are_named() {
    // An interface that is nowhere: what passes for no mistake has no effect.
    for (words, expected) in [
        ("up nosuch0", "neither `download RATE` nor `upload RATE` follows `nosuch0`"),
        ("up nosuch0 upload", "`upload` needs a rate"),
        ("up nosuch0 upload fast", "`fast`"),
        ("up nosuch0 upload 10mbit cake difserv4", "`difserv4`"),
        ("up nosuch0 upload 10mbit cakes", "`cakes`"),
        ("up nosuch0 upload 10mbit pfifo limt 9", "`limt`"),
        (
            "up nosuch0 upload 9mbit htb rate 8mbit sfq",
            "two rates, `upload 9mbit` and `rate 8mbit`",
        ),
        ("up nosuch0 download 50 upload 10", "did you mean `50mbit`? If not, say `50bit`"),
        ("up nosuch0 upload 10mbps", "in bytes per second, 80 Mbit/s: did you mean `10mbit`?"),
        ("up nosuch0 download 20mbit upload 5", "`5` is 5 bits per second"),
        ("up nosuch0 cake bandwidth 20", "did you mean `20mbit`? If not, say `20bit`"),
        ("change nosuch0 upload 5", "`5` is 5 bits per second"),
        ("change nosuch0 upload 2mbit..9mbit", "`2mbit..9mbit` cannot change while it runs"),
        ("change nosuch0 upload 2mbit..9mbit autorate", "change the range in the file"),
        ("change nosuch0 upload 9mbit autorate", "`autorate` cannot change while it runs"),
        ("change nosuch0 upload 2mbit download 1mbit", "one direction at a time: `download`"),
        ("up nosuch0 upload 1mbit..5mbit autorate cake unlimited", "words of `cake` leave none"),
        ("link nosuch0 eth1 rate 3", "`rate 3` is 3 bits per second"),
        ("up nosuch0 upload 9mbit upload 8mbit", "`upload` is said twice"),
        (
            "up nosuch0 upload 9mbit bandwidth 8mbit",
            "two rates, `upload 9mbit` and `bandwidth 8mbit`",
        ),
        ("up nosuch0 upload 9mbit cake nat nate", "`nate` (word 7)"),
        ("up nosuch0 upload -5mbit", "`-5mbit`"),
        ("up nosuch0 fq_codle", "`fq_codle` (word 3) is not a queue discipline; did you mean"),
        // Places are those of what was typed.
        ("up --control-dir /none nosuch0 fq_codle", "`fq_codle` (word 5) is not a queue"),
        ("up nosuch0 --anyway uplaod 9mbit", "`uplaod` (word 4) is not known; did you"),
        ("up nosuch0 upload 9mbit cake --anyway nate", "`nate` (word 7)"),
        ("change --for 1m nosuch0 upload cake nate", "`nate` (word 7)"),
        ("link nosuch0 --control-dir=/none eth1 rate 3mbit reverse dlay 4ms", "`dlay` (word 8)"),
        ("up nosuch0 cake bandwidth", "`bandwidth` (word 4) must be followed by"),
        ("up nosuch0 nat", "neither `download RATE` nor `upload RATE` follows `nosuch0`"),
        ("up a/b upload 10mbit", "`a/b` is not an interface name"),
        ("link nosuch0 rate lots", "`lots`"),
        ("link nosuch0 eth1", "nothing says what the line is like"),
    ] {
        let error = complaint(&words.split(' ').collect::<Vec<_>>(), 2);
        assert!(error.contains(expected), "`{words}`: {error}");
    }
    for (words, expected) in [
        ("link nosuch0 nosuch0 rate 1mbit", "both ends are `nosuch0`"),
        ("daemon --config /no/such/file", "/no/such/file"),
    ] {
        let error = complaint(&words.split(' ').collect::<Vec<_>>(), 1);
        assert!(error.contains(expected), "`{words}`: {error}");
    }
}

#[test]
fn mistakes_in_the_configuration_file_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("simnel.toml");
    for (content, expected) in [
        ("", "no [[interface]]"),
        ("[[interface]]\nname = \"eth0\"\n", "neither `download` nor `upload`"),
        ("[[interface]]\nname = \"eth0\"\nuplaod = \"1mbit\"\n", "`uplaod`"),
        ("[[interface]]\nname = \"eth0\"\nupload = 1\n", "line 3"),
        ("[[interface]]\nname = \"eth0\"\nupload = \"1mbit\"\nqdisc = \"cake nate\"\n", "`nate`"),
        ("[[interface]\n", "line 1"),
        ("[[interface]]\nname = \"eth0\"\nupload = \"1mbit\"\nmark_mask = 1\n", "mark mask"),
    ] {
        std::fs::write(&file, content).unwrap();
        let error = complaint(&["daemon", "--config", file.to_str().unwrap()], 1);
        assert!(error.contains(expected), "{content:?}: {error}");
    }
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    let error = complaint(&["daemon", "--config", file.to_str().unwrap()], 1);
    assert!(error.contains("UTF-8"), "{error}");
}
