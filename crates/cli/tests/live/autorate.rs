//! Rates follow a line, by echoes of reflectors beyond it and by passing TCP.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use simnel_gateway::autorate::{Reflector, Report};
use simnel_gateway::control::{Client, Request};
use simnel_gateway::Error;
use simnel_testbed::probe::{Echo, Probe};
use simnel_testbed::traffic::{Bulk, BulkOptions, Connections, Direction};
use simnel_testbed::{Home, Process};

use crate::{quantile, round_trips, text, within, within_tries, Live, Watch, SECOND};

/// Addresses of the server's beside its own, and one that nobody has.
const OTHERS: [&str; 4] = ["10.77.0.3", "10.77.0.4", "10.77.0.5", "10.77.0.6"];
const NOBODY: &str = "10.77.0.201";

/// A line whose download is so many Mbit/s. Another one takes its place in some 50 ms, with nothing
/// queued.
fn line(live: &Live, download: u32) -> Process {
    live.line(&format!("rate 8mbit delay 10ms fifo 300p reverse rate {download}mbit"))
}

fn report(live: &Live) -> Report {
    let directory = live.home.testbed.directory().unwrap();
    for _ in 0..5 {
        let mut client = Client::await_another(directory, "wan", |_| true).unwrap();
        match client.ask(&Request::Show {}) {
            Ok(reply) => return reply.autorate.expect("autorate"),
            // Where everything shares two cores, its supervisor may find one that stands still.
            Err(error @ Error::Unanswered(_)) => println!("{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no daemon of five has answered")
}

/// Mbit/s of the download's shaper.
fn rate(live: &Live) -> f64 {
    report(live).directions[0].rate_bps as f64 / 1e6
}

/// Number `field` of a process's `stat`, counted from its state on.
fn stat(process: u32, field: usize) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{process}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(field)?.parse().ok()
}

/// Children of a process. Not every kernel lists them.
fn children(process: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").expect("/proc");
    let all = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid| stat(*pid, 1) == Some(f64::from(process))).collect()
}

/// Processor time of the first threads of a process's children, in seconds.
fn cpu(process: u32) -> f64 {
    let of = |pid| Some((stat(pid, 11)? + stat(pid, 12)?) / 100.0);
    children(process).into_iter().filter_map(of).sum()
}

#[test]
fn rates_follow_a_line_that_halves() {
    if let Some(live) = Live::beside_others("rates_follow_a_line_that_halves") {
        follow_a_line_that_halves(&live, "");
        assert!(live.is_clean());
    }
}

/// True in a guest of `conformance/live-on-linux.sh`, whose time no busy machine takes.
fn in_guest(test: &str) -> bool {
    let is_guest = std::env::var_os("GW_BACKEND").is_some();
    if !is_guest {
        eprintln!("NOT RUN: {test} is for a guest: conformance/live-on-linux.sh");
    }
    is_guest
}

/// The goals for the daemon's own data path, to compare the kernel's with.
#[test]
fn rates_follow_a_line_that_comes_and_goes() {
    let test = "rates_follow_a_line_that_comes_and_goes";
    if let Some(live) = in_guest(test).then(|| Live::new(test)).flatten() {
        follow_a_line_that_comes_and_goes(&live, "--backend userspace");
    }
}

/// The kernel shapes, and a process sets its rates: the goals.
#[test]
fn rates_in_the_kernel_follow_a_line_that_comes_and_goes() {
    let test = "rates_in_the_kernel_follow_a_line_that_comes_and_goes";
    if let Some(live) = in_guest(test).then(|| Live::new(test)).flatten() {
        follow_a_line_that_comes_and_goes(&live, "--backend kernel");
        assert!(!in_kernel(&live));
    }
}

/// The kernel shapes, and a process sets its rates.
#[test]
fn rates_in_the_kernel_follow_a_line_that_halves() {
    let test = "rates_in_the_kernel_follow_a_line_that_halves";
    let Some(live) = Live::new(test).filter(|live| kernel_shapes(live, test)) else { return };
    follow_a_line_that_halves(&live, "--backend kernel");
    assert!(live.is_clean() && !in_kernel(&live));

    let wire = line(&live, 20);
    let words = "up wan download 4mbit..40mbit upload 2mbit..20mbit autorate reflectors 10.77.0.1 \
                 --backend kernel";
    let kill = |up: Process, all: &[u32]| {
        let all: Vec<String> = all.iter().map(u32::to_string).collect();
        // A daemon whose supervisor is gone would give the interface back.
        for signal in ["-STOP", "-KILL"] {
            let all = all.iter().rev();
            assert!(Command::new("kill").arg(signal).args(all).status().unwrap().success());
        }
        drop(up);
        thread::sleep(SECOND / 2);
    };
    let up = live.start("wan", words);
    comes_true("the reflector answers", &live, |told| told.answering() == 1);
    let before = rate(&live);
    // A daemon that is killed is followed by another one, at the rate that there is.
    signal_daemon(&up, "-KILL");
    comes_true("another daemon", &live, |told| told.answering() == 1);
    assert!(in_kernel(&live));
    // So is one that stands still.
    let daemon = signal_daemon(&up, "-STOP");
    thread::sleep(SECOND * 12);
    comes_true("another daemon", &live, |told| told.answering() == 1);
    assert!(!family(&up).contains(&daemon));
    // All that are killed leave the kernel's shapers at their rates, for the next `up` or `down`.
    let all = [vec![up.id()], family(&up)].concat();
    kill(up, &all);
    assert!(in_kernel(&live));
    let shown = live.simnel("show wan");
    assert!(text(&shown.stdout).contains("wan:download"), "{shown:?}");
    let up = live.start("wan", words);
    comes_true("the reflector answers again", &live, |told| told.answering() == 1);
    println!("rate {before:.1} Mbit/s, and after all processes were killed {:.1}", rate(&live));
    let all = [vec![up.id()], family(&up)].concat();
    kill(up, &all);
    live.ok("down wan");
    assert!(!in_kernel(&live));
    wire.stop();
}

/// All that the kernel and a process of ours have made is on trial. It goes by itself unless it is
/// kept, also if the process dies meanwhile.
#[test]
fn rates_in_the_kernel_on_trial_go_unless_they_are_kept() {
    let test = "rates_in_the_kernel_on_trial_go_unless_they_are_kept";
    let live = Live::beside_others(test).filter(|live| kernel_shapes(live, test));
    let Some(live) = live else { return };
    let wire = line(&live, 20);
    let words = format!(
        "up wan download 4mbit..40mbit upload 2mbit..20mbit autorate reflectors {} \
         --backend kernel --for",
        Home::SERVER
    );
    let begin = Instant::now();
    let mut up = live.start("wan", &format!("{words} 20s"));
    comes_true("the reflector answers", &live, |told| told.answering() == 1);
    let shown = text(&live.simnel("show wan").stderr);
    assert!(shown.contains("wan is on trial: given back in"), "{shown}");
    let seen: serde_json::Value = serde_json::from_str(&live.ok("top wan --json")).unwrap();
    for line in seen["lines"].as_array().unwrap() {
        let tiers = line["tiers"].as_array().unwrap();
        let rates = tiers.iter().map(|tier| tier["rate_bps"].as_u64().unwrap());
        println!("{} tiers, {:?} bit/s", line["direction"], rates.clone().collect::<Vec<_>>());
        assert!(tiers.len() == 3 && rates.sum::<u64>() > 0 && line["marks"] == 0, "{seen}");
    }
    live.ok("change wan upload diffserv4 --for 2s");
    assert!(live.ok("show wan").contains("diffserv4"));
    signal_daemon(&up, "-KILL");
    comes_true("another daemon", &live, |told| told.answering() == 1);
    thread::sleep(SECOND * 3);
    assert!(!live.ok("show wan").contains("diffserv4"));
    assert!(in_kernel(&live));
    while up.failure().is_none() && (in_kernel(&live) || !live.is_clean()) {
        assert!(begin.elapsed() < SECOND * 25, "the trial does not end");
        thread::sleep(SECOND / 5);
    }
    assert!(begin.elapsed() > SECOND * 19, "{:?}", begin.elapsed());
    drop(up);
    assert!(!in_kernel(&live));

    let up = live.start("wan", &format!("{words} 3s"));
    assert_eq!(live.ok("keep wan"), "wan: kept\n");
    thread::sleep(SECOND * 4);
    assert!(in_kernel(&live) && report(&live).answering() == 1);
    live.ok("down wan");
    drop(up);
    wire.stop();
    assert!(live.is_clean() && !in_kernel(&live));
}

/// True if this kernel has a discipline that can shape for `--backend kernel`.
pub fn kernel_shapes(live: &Live, test: &str) -> bool {
    let tried = live.simnel("up wan download 9mbit --backend kernel");
    if !tried.status.success() {
        eprintln!("NOT RUN: {test}: {}", text(&tried.stderr));
        return false;
    }
    live.ok("down wan");
    true
}

/// Signals the daemon of `up`, and says which process that was.
fn signal_daemon(up: &Process, signal: &str) -> u32 {
    let daemon = family(up).into_iter().find(|pid| name(*pid) == "simnel").unwrap();
    assert!(Command::new("kill").args([signal, &daemon.to_string()]).status().unwrap().success());
    daemon
}

/// The daemon and the guard of `up`, in the order of their start.
fn family(up: &Process) -> Vec<u32> {
    let mut all = children(up.id());
    all.sort_unstable();
    all
}

/// Name of a process.
fn name(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.unwrap_or_default().trim().to_owned()
}

/// True if anything of ours shapes in the kernel, or a device of ours is there.
pub fn in_kernel(live: &Live) -> bool {
    let shown = within(&live.home.gateway, "sh", &["-c", "tc qdisc show; ip link show"]);
    let shown = text(&shown.stdout);
    ["51a1:", "simnel-", "ingress", "clsact"].into_iter().any(|one| shown.contains(one))
}

/// Mbit that have come by the line so far.
fn carried(live: &Live) -> f64 {
    let bytes = within(&live.home.gateway, "cat", &["/sys/class/net/wan/statistics/rx_bytes"]);
    text(&bytes.stdout).trim().parse::<f64>().unwrap() * 8e-6
}

/// Gives the server all addresses; words that ask them, and who does not answer.
fn words_with_reflectors(live: &Live, backend: &str) -> String {
    for address in OTHERS {
        let prefixed = format!("{address}/24");
        within(&live.home.server, "ip", &["addr", "add", &prefixed, "dev", "net0"]);
    }
    let server = Home::SERVER.to_string();
    let reflectors = [NOBODY, &server, OTHERS[0], OTHERS[1], OTHERS[2], OTHERS[3]].join(",");
    format!(
        "up wan download 4mbit..40mbit upload 2mbit..20mbit autorate reflectors {reflectors} \
         {backend}"
    )
}

/// Four downloads of CUBIC's.
fn downloads(live: &Live) -> Bulk {
    let options = BulkOptions { direction: Direction::Download, flows: 4, congestion: "cubic" };
    let home = &live.home;
    let bulk = Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap();
    bulk.start().unwrap()
}

/// A line that becomes another one, as seen by who uses it.
struct Followed {
    /// Milliseconds until the shaper was at the new capacity's side, within a tenth of it.
    answered: Option<u128>,
    /// The share of the new capacity that was carried from the first second on.
    used: f64,
    /// Added latency in ms, from a second before to six behind; and its median in the last two.
    p95: f64,
    late: f64,
    /// Mbit/s of the shaper at the end.
    rate: f64,
}

impl Followed {
    /// Takes `wire` away and puts one of `to` Mbit/s into its place.
    fn see(live: &Live, wire: &mut Option<Process>, to: u32) -> Followed {
        let home = &live.home;
        let capacity = f64::from(to);
        let every = SECOND / 50;
        let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, every).unwrap();
        let before = rate(live);
        thread::sleep(SECOND);
        let begin = Instant::now();
        wire.take().expect("a line").stop();
        *wire = Some(line(live, to));
        let mut answered = None;
        let mut look = |until: Duration, often: Duration| {
            while begin.elapsed() < until {
                let now = rate(live);
                let is_there = match before > capacity {
                    true => now < capacity * 1.1,
                    false => now > capacity * 0.9,
                };
                if is_there {
                    answered = answered.or_else(|| Some(begin.elapsed().as_millis()));
                }
                thread::sleep(often);
            }
        };
        look(SECOND, every);
        let first = carried(live);
        look(SECOND * 6, SECOND / 10);
        let used = (carried(live) - first) / 5.0 / capacity;
        let rate = rate(live);
        thread::sleep(SECOND / 2);
        let echoes = probe.stop();
        let added = |from: u32, percent: usize| {
            let counts = |echo: &&Echo| (SECOND * from..SECOND * 7).contains(&echo.sent);
            quantile(&round_trips(echoes.iter().filter(counts)), percent) - 20.0
        };
        Followed { answered, used, p95: added(0, 95), late: added(5, 50), rate }
    }
}

/// The goals of `simnel paper autorate`, for a line that halves, comes back, and halves again.
fn follow_a_line_that_comes_and_goes(live: &Live, backend: &str) {
    let words = words_with_reflectors(live, backend);
    within_tries("a line that comes and goes: goals", || {
        let mut wire = Some(line(live, 20));
        let watch = Watch::start();
        let up = live.start("wan", &words);
        // Baselines are of a line at rest.
        thread::sleep(SECOND);
        let bulk = downloads(live);
        thread::sleep(SECOND * 4);
        let mut reached = true;
        for to in [10, 20, 10] {
            let seen = Followed::see(live, &mut wire, to);
            println!(
                "{to} Mbit/s: answered after {:?} ms, {:.1} % used, p95 of added latency {:.1} ms, \
                 median {:.1} at the end, rate {:.1} Mbit/s",
                seen.answered,
                seen.used * 100.0,
                seen.p95,
                seen.late,
                seen.rate
            );
            let in_time = seen.answered.is_some_and(|ms| ms <= 1_000) && seen.used >= 0.88;
            let capacity = f64::from(to);
            reached &= seen.p95.max(seen.late) <= 30.0 && seen.rate < capacity * 1.1;
            // The goals say nothing of how soon twice the capacity is used.
            reached &= to == 20 || in_time;
        }
        drop(bulk);
        live.ok("down wan");
        drop(up);
        wire.take().unwrap().stop();
        watch.judge(reached)
    });
}

fn follow_a_line_that_halves(live: &Live, backend: &str) {
    let home = &live.home;
    let words = words_with_reflectors(live, backend);
    within_tries("half the capacity: the rate follows, the delay goes", || {
        let wire = line(live, 20);
        let watch = Watch::start();
        let up = live.start("wan", &words);
        // Baselines are of a line at rest.
        thread::sleep(SECOND);
        let bulk = downloads(live);
        thread::sleep(SECOND * 4);
        let before = rate(live);
        wire.stop();
        let wire = line(live, 10);
        let begin = Instant::now();
        let mut answered = None;
        while begin.elapsed() < SECOND * 2 {
            if rate(live) < 11.0 {
                answered = answered.or_else(|| Some(begin.elapsed().as_millis()));
            }
            thread::sleep(SECOND / 50);
        }
        let every = Duration::from_millis(20);
        let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, every).unwrap();
        let (used, carried) = (cpu(up.id()), carried(live));
        let rates = (0..6).map(|_| {
            thread::sleep(SECOND / 2);
            rate(live)
        });
        let mut after: Vec<f64> = rates.collect();
        let used = (cpu(up.id()) - used) / 3.0;
        let carried = (self::carried(live) - carried) / 3.0;
        after.sort_by(f64::total_cmp);
        let trips = round_trips(probe.stop().iter());
        let (median, p95) = (quantile(&trips, 50), quantile(&trips, 95));
        drop(bulk);
        let after = after[3];
        println!(
            "rate {before:.1}, then {after:.1} Mbit/s after {answered:?} ms, {carried:.1} carried; \
             RTT {median:.1} ms, p95 {p95:.1} ms; control {:.2} % of a core",
            used * 100.0
        );
        let told = report(live);
        let state = |address: &str| {
            let named = |one: &&Reflector| one.address.to_string() == address;
            told.reflectors.iter().find(named).expect("a reflector").clone()
        };
        assert!(!state(NOBODY).active && state(NOBODY).answered == 0, "{told:?}");
        assert!(state(OTHERS[2]).active && state(OTHERS[0]).answered > 20, "{told:?}");
        let shown = text(&live.simnel("show -s wan").stderr);
        assert!(
            shown.contains("autorate download") && shown.contains("reflectors answer"),
            "{shown}"
        );
        let refused = live.simnel("change wan download 9mbit");
        assert!(text(&refused.stderr).contains("follows its line by autorate"), "{refused:?}");
        live.ok("change wan download diffserv4");
        assert!((rate(live) - after).abs() < after / 2.0);
        live.ok("down wan");
        drop(up);
        wire.stop();
        watch.judge(
            (14.0..22.0).contains(&before) && (6.0..10.5).contains(&after) && median < 20.0 + 25.0,
        )
    });
}

#[test]
fn without_any_reflector_the_timestamps_of_passing_tcp_tell() {
    let test = "without_any_reflector_the_timestamps_of_passing_tcp_tell";
    if let Some(live) = Live::beside_others(test) {
        follow_without_reflectors(&live, "");
        assert!(live.is_clean());
    }
}

/// The daemon has copies of their headers.
#[test]
fn without_any_reflector_they_tell_where_the_kernel_shapes() {
    let test = "without_any_reflector_they_tell_where_the_kernel_shapes";
    let live = Live::new(test).filter(|live| kernel_shapes(live, test));
    if let Some(live) = live {
        follow_without_reflectors(&live, "--backend kernel");
        assert!(live.is_clean() && !in_kernel(&live));
    }
}

fn follow_without_reflectors(live: &Live, backend: &str) {
    let home = &live.home;
    let words = format!(
        "up wan download 4mbit..40mbit upload 2mbit..20mbit autorate reflectors none {backend}"
    );
    within_tries("half the capacity, and nobody is asked: the rate follows", || {
        let wire = line(live, 20);
        let watch = Watch::start();
        let up = live.start("wan", &words);
        let bulk = downloads(live);
        thread::sleep(SECOND * 5);
        let before = rate(live);
        wire.stop();
        let wire = line(live, 10);
        thread::sleep(SECOND * 2);
        let every = Duration::from_millis(20);
        let probe = Probe::start(&home.lan2, &home.server, Home::SERVER, every).unwrap();
        let rates = (0..6).map(|_| {
            thread::sleep(SECOND / 2);
            rate(live)
        });
        let mut after: Vec<f64> = rates.collect();
        after.sort_by(f64::total_cmp);
        let trips = round_trips(probe.stop().iter());
        let (median, p95) = (quantile(&trips, 50), quantile(&trips, 95));
        let told = report(live);
        let shown = text(&live.simnel("show wan").stderr);
        drop(bulk);
        let after = after[3];
        println!(
            "rate {before:.1}, then {after:.1} Mbit/s; RTT {median:.1}, p95 {p95:.1} ms; {told:?}"
        );
        live.ok("down wan");
        drop(up);
        wire.stop();
        assert!(told.reflectors.is_empty(), "{told:?}");
        assert!(told.by_passing && told.connections >= 4, "{told:?}");
        assert!(
            shown.contains("no reflector is asked; the timestamps of 4 passing connections tell"),
            "{shown}"
        );
        watch.judge(
            (12.0..22.0).contains(&before) && (5.0..10.5).contains(&after) && median < 20.0 + 25.0,
        )
    });
}

#[test]
fn where_echoes_are_filtered_the_time_is_asked_for() {
    let Some(live) = Live::beside_others("where_echoes_are_filtered_the_time_is_asked_for") else {
        return;
    };
    let server = &live.home.server;
    within(server, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all"]);
    let address = Home::SERVER.to_string();
    let wire = line(&live, 20);
    let up = live.start(
        "wan",
        &format!(
            "up wan download 4mbit..40mbit upload 2mbit..20mbit autorate reflectors {address}"
        ),
    );
    thread::sleep(SECOND * 3);
    let told = report(&live);
    let shown = text(&live.simnel("show -s wan").stderr);
    live.ok("down wan");
    drop(up);
    wire.stop();
    println!("{told:?}");
    let [reflector] = &told.reflectors[..] else { panic!("{told:?}") };
    assert!(reflector.tells_time && reflector.answered >= 8 && reflector.lost <= 4, "{told:?}");
    assert!(told.delay_us.is_some_and(|delay| delay < 10_000), "{told:?}");
    assert!(shown.contains("tells the time"), "{shown}");
    assert!(live.is_clean());
}

/// A condition is true within the time that a busy machine may need.
fn comes_true(what: &str, live: &Live, is_true: impl Fn(&Report) -> bool) {
    let begin = Instant::now();
    loop {
        let told = report(live);
        if is_true(&told) {
            println!("{what}: after {:.1} s", begin.elapsed().as_secs_f64());
            return;
        }
        assert!(begin.elapsed() < SECOND * 60, "{what}: {told:#?}");
        thread::sleep(SECOND / 10);
    }
}

#[test]
fn a_line_is_found_by_irtt_alone() {
    let Some(live) = Live::beside_others("a_line_is_found_by_irtt_alone") else { return };
    if Command::new("irtt").arg("version").output().is_err() {
        eprintln!("NOT RUN: a_line_is_found_by_irtt_alone: irtt is not installed");
        return;
    }
    let home = &live.home;
    for (namespace, device, address) in [
        (&home.server, "net0", "10.77.0.3/24"),
        (&home.server, "net0", "10.77.0.4/24"),
        (&home.server, "net0", "2001:db8::1/64"),
        (&home.gateway, "wan", "2001:db8::2/64"),
    ] {
        let mut words = format!("ip addr add {address} dev {device}");
        if address.contains("::") {
            let off = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            words = format!("echo 0 > {off} && {words} nodad");
        }
        let done = within(namespace, "sh", &["-c", &words]);
        assert!(done.status.success(), "{done:?}");
    }
    within(&home.server, "sh", &["-c", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all"]);
    let serve = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        home.server.spawn("irtt", &words).unwrap()
    };
    let servers = [
        serve("server -b 10.77.0.1,10.77.0.3,[2001:db8::1]"),
        // Sessions end while it is asked, and are opened anew.
        serve("server -b 10.77.0.4 -d 6s"),
        // Too seldom to be of use.
        serve("server -b 10.77.0.3:2113 -i 2s"),
    ];
    let (nobody, closed, seldom) =
        (format!("irtt:{NOBODY}"), "irtt:10.77.0.1:9", "irtt:10.77.0.3:2113");
    let good = ["irtt:10.77.0.1", "irtt:2001:db8::1", "irtt:10.77.0.3", "irtt:10.77.0.4"];
    let all = [&[nobody.as_str(), closed, seldom][..], &good].concat().join(",");
    // The upload is not shaped, so that passing TCP tells no round trips.
    let words = format!("up wan download 4mbit..40mbit autorate reflectors {all}");
    within_tries("the line's rate, by irtt servers and nobody else", || {
        let wire = line(&live, 20);
        let watch = Watch::start();
        let up = live.start("wan", &words);
        let state = |told: &Report, name: &str| {
            let named = |one: &&Reflector| one.target().to_string() == name;
            told.reflectors.iter().find(named).expect("a reflector").clone()
        };
        let begin = Instant::now();
        comes_true("each server answers, and who does not is replaced", &live, |told| {
            let answers = |name: &&str| {
                let one = state(told, name);
                one.active && one.tells_time && one.answered > 5 && one.refusal.is_none()
            };
            let fails = |name: &str, why: &str| {
                let one = state(told, name);
                !one.active && one.refusal.is_some_and(|said| said.contains(why))
            };
            good.iter().all(answers)
                && !state(told, &nobody).active
                && fails(closed, "nothing answers at this address and port")
                && fails(seldom, "too seldom")
        });
        comes_true("`show` says so", &live, |_| {
            let shown = text(&live.simnel("show -s wan").stderr);
            ["irtt:10.77.0.1:9 spare", "4 reflectors answer"].iter().all(|it| shown.contains(it))
        });
        let json = text(&live.simnel("show -j wan").stdout);
        assert!(json.contains("\"kind\":\"irtt\",\"port\":2113"), "{json}");

        let bulk = downloads(&live);
        thread::sleep(SECOND * 6);
        let reports = (0..10).map(|_| {
            thread::sleep(SECOND / 2);
            report(&live)
        });
        let reports: Vec<Report> = reports.collect();
        drop(bulk);
        let middle = |number: &dyn Fn(&Report) -> f64| {
            let mut all: Vec<f64> = reports.iter().map(number).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let median = middle(&|told| told.directions[0].rate_bps as f64 / 1e6);
        let delay = middle(&|told| told.delay_us.map_or(f64::INFINITY, |us| us as f64 / 1e3));
        let told = &reports[9];
        println!("rate {median:.1} Mbit/s, delay {delay:.1} ms; {told:?}");
        assert!(told.connections == 0 && !told.by_passing, "{told:?}");
        let old = begin.elapsed() > SECOND * 8;
        comes_true("sessions that ended were opened anew", &live, |told| {
            old && state(told, good[3]).rtt_us.is_some()
        });
        live.ok("down wan");
        drop(up);
        wire.stop();
        watch.judge((14.0..22.0).contains(&median) && delay < 40.0)
    });
    drop(servers);
    assert!(live.is_clean());
}

#[test]
fn what_autorate_cannot_use_is_named() {
    let Some(live) = Live::beside_others("what_autorate_cannot_use_is_named") else { return };
    for (words, complaint) in [
        ("upload 2mbit..20mbit", "add `autorate`, or say one rate"),
        ("upload 20mbit autorate", "autorate needs a range"),
        ("upload 20mbit..2mbit autorate", "is reversed: say `2mbit..20mbit`"),
        ("upload 2mbit..20mbit autorate reflectors example.org", "`example.org` is no address"),
        ("upload 2mbit..20mbit autorate reflectors irtt:a.example", "names no irtt server"),
        ("upload 2mbit..20mbit reflectors 10.77.0.1", "`reflectors` without `autorate`"),
        ("upload 2mbit..20mbit cake autorate", "`autorate` comes before"),
    ] {
        let output = live.simnel(&format!("up wan {words}"));
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        // miette breaks lines.
        let said = text(&output.stderr).replace("\n  │", "").replace("\n", " ");
        assert!(said.contains(complaint), "{words}: {said}");
    }
}
