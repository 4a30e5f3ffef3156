//! Random scenarios, written as files. Whatever a file may say runs without a panic, no packet is
//! created or forgotten, and a transfer with a working path finishes.
//!
//! Every scenario follows from its number alone; a failure names it and shows its text.
//! SIMNEL_FUZZ_FROM and SIMNEL_FUZZ_COUNT choose others than the default ones. (`simnel-sim` does
//! the same with set-ups that no file describes; here, the words are what is tested.)

use std::fmt::Write;

use simnel_core::random::Random;
use simnel_core::{qdisc, Span, Time};
use simnel_scenario::{no_files, Scenario};
use simnel_sim::{Kind, Run};

/// Scenarios in an ordinary test run: a few seconds.
const COUNT: u64 = 1000;
/// Simulated seconds after which a transfer that has not finished never will.
const PATIENCE: u64 = 3_000;
/// Every kind of traffic that a file can name.
const KINDS: [&str; 10] =
    ["bulk", "cbr", "voip", "ping", "rr", "web", "dash", "iot", "bittorrent", "bursts"];

struct Dice(Random);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }
    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u32) as usize]
    }
    fn rate(&mut self) -> String {
        format!("{}kbit", 300 + self.below(100) * self.below(500))
    }
}

/// The text of scenario `number`.
fn text(number: u64) -> String {
    let mut dice = Dice(Random::derive(number, 7));
    let dice = &mut dice;
    let mut text = format!("# Does scenario {number} keep every promise?\n");
    let mut line = |words: String| writeln!(text, "{words}").expect("a string grows");
    line(format!("duration = \"{PATIENCE}s\"\ninterval = \"30s\""));
    if dice.chance(20) {
        line("windows = true".into());
    }
    let names: Vec<&str> = qdisc::disciplines().iter().map(|known| known.name).collect();
    let mut qdisc = || loop {
        let special = ["cake bandwidth {rate} diffserv4 ack-filter", "fq_codel limit 40 ecn"];
        let words = if dice.chance(20) { dice.pick(&special) } else { dice.pick(&names) };
        // What shapes itself and is given no rate, or has no classes, does not stand alone.
        if qdisc::parse(&words.replace("{rate}", "1mbit")).is_ok() {
            return words.to_string();
        }
    };
    let (up, down) = (qdisc(), qdisc());
    line(format!("qdisc = {{ up = \"{up}\", down = \"{down}\" }}"));

    line(format!("[line]\nup = \"{}\"\ndown = \"{}\"", dice.rate(), dice.rate()));
    line(format!("rtt = \"{}ms\"", 1 + dice.below(200)));
    if dice.chance(30) {
        line(format!("jitter = \"{}ms\"", dice.below(30)));
    }
    if dice.chance(30) {
        line(format!("loss = \"0.{}%\"", 1 + dice.below(9)));
    }
    if dice.chance(30) {
        let words = ["docsis", "atm overhead 40", "ethernet", "overhead 12 mpu 64"];
        line(format!("framing = \"{}\"", dice.pick(&words)));
    }
    if dice.chance(30) {
        line("shaper = \"htb\"".into());
    }
    if dice.chance(30) {
        let rate = dice.rate();
        line(format!("[[line.change]]\nat = \"{}s\"\nup = \"{rate}\"", 1 + dice.below(5)));
    }
    for (side, name) in [("home", "a"), ("home", "b"), ("internet", "c")] {
        line(format!("[[host]]\nname = \"{name}\"\nside = \"{side}\""));
        if dice.chance(50) {
            line(format!("rate = \"{}mbit\"", 1 + dice.below(1000)));
        }
        if dice.chance(50) {
            line(format!("rtt = \"{}ms\"", 1 + dice.below(100)));
        }
        if dice.chance(30) {
            line(format!("count = {}", 1 + dice.below(4)));
        }
    }
    for _ in 0..1 + dice.below(5) {
        traffic(dice, &mut line);
    }
    text
}

fn traffic(dice: &mut Dice, line: &mut impl FnMut(String)) {
    let kind = dice.pick(&KINDS);
    line(format!("[[traffic]]\nkind = \"{kind}\"\ncount = {}", 1 + dice.below(4)));
    let start = dice.below(4);
    line(format!("start = \"{start}s\"\nstagger = \"{}ms\"", 1 + dice.below(900)));
    // What has no end of its own stops, so that the rest can finish.
    let finite = kind == "bulk" && dice.chance(80);
    if finite {
        line(format!("size = {}", 1 + dice.below(300_000)));
    } else {
        line(format!("stop = \"{}s\"", start + 1 + dice.below(6)));
    }
    match kind {
        "cbr" => {
            line(format!("rate = \"{}kbit\"", 10 + dice.below(2000)));
            line(format!("ports = {}", 1 + dice.below(50)));
        }
        "voip" => line(format!("codec = \"{}\"", dice.pick(&["g711", "g729"]))),
        "ping" => line(format!("protocol = \"{}\"", dice.pick(&["udp", "icmp"]))),
        "web" => line(format!("rate = {}\nobjects = [1, 4]", 1 + dice.below(5))),
        "iot" => line(format!("rate = {}\nnagle = {}", 1 + dice.below(9), dice.chance(50))),
        "bursts" => line(format!("size = {}\npause = \"1s\"", 1 + dice.below(200_000))),
        _ => {}
    }
    if dice.chance(50) {
        line(format!("direction = \"{}\"", dice.pick(&["up", "down", "both"])));
    }
    if dice.chance(40) {
        line(format!("dscp = [\"{}\", \"BE\"]", dice.pick(&["EF", "CS1", "AF41"])));
    }
    if !matches!(kind, "cbr" | "voip" | "ping") {
        let controls = ["cubic", "reno", "bbr", "ledbat", "dctcp"];
        line(format!("cc = \"{}\"\necn = {}", dice.pick(&controls), dice.chance(50)));
        line(format!("pacing = {}\ndelayed-ack = {}", dice.chance(30), dice.chance(80)));
    }
}

fn check(number: u64) -> Result<(), String> {
    let scenario = Scenario::parse(&text(number), "random", &no_files)
        .map_err(|error| format!("{}: expected {}", error.what, error.expected))?;
    let (setup, _) = scenario.setup(None).map_err(|error| error.what)?;
    let mut run = Run::new(&setup, number).map_err(|error| error.to_string())?;
    for seconds in [15, 60, 300, PATIENCE] {
        run.advance(Time::ZERO + Span::from_secs(seconds));
        if run.all_finished() {
            break;
        }
    }
    let finished = run.all_finished();
    let results = run.results();
    if !results.conservation.holds() {
        return Err(format!("packets were created or forgotten: {:?}", results.conservation));
    }
    if results.conservation.delivered == 0 {
        return Err("nothing arrived at all".into());
    }
    if !finished {
        let stuck = results.flows.iter().filter(|flow| {
            let kind = &setup.traffic[flow.group as usize].kind;
            flow.finished.is_none() && matches!(kind, Kind::Bulk { size: Some(_) })
        });
        let stuck: Vec<_> = stuck.map(|flow| (flow.group, flow.tcp)).collect();
        return Err(format!("never finished: {stuck:?}"));
    }
    Ok(())
}

#[test]
fn random_files_keep_every_promise() {
    let variable = |name: &str, default| {
        std::env::var(name).ok().and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let from: u64 = variable("SIMNEL_FUZZ_FROM", 0);
    let mut failures = Vec::new();
    for number in from..from + variable("SIMNEL_FUZZ_COUNT", COUNT) {
        let problem = match std::panic::catch_unwind(|| check(number)) {
            Ok(Ok(())) => continue,
            Ok(Err(problem)) => problem,
            Err(_) => "panicked".into(),
        };
        failures.push(format!("scenario {number}: {problem}\n{}", text(number)));
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The random files name everything there is to name.
#[test]
fn random_files_have_all_kinds_and_disciplines() {
    let all: String = (0..COUNT).map(text).collect();
    for kind in KINDS {
        assert!(all.contains(&format!("kind = \"{kind}\"")), "{kind}");
    }
    for known in qdisc::disciplines() {
        let alone = qdisc::parse(known.name).is_ok();
        assert!(!alone || all.contains(&format!("\"{}\"", known.name)), "{}", known.name);
    }
}
