//! Random scenarios: nothing panics, no packet is forgotten, and a TCP flow with data and a
//! working path always finishes.
//!
//! Every scenario follows from its number alone; a failure names it. SIMNEL_FUZZ_FROM and
//! SIMNEL_FUZZ_COUNT choose others than the default ones:
//! `SIMNEL_FUZZ_FROM=1000000 SIMNEL_FUZZ_COUNT=100000 cargo test --release -p simnel-sim fuzz`.

use simnel_core::qdisc::{self, Device};
use simnel_core::random::Random;
use simnel_core::{Rate, Span, Time};
use simnel_sim::schedule::Step;
use simnel_sim::setup::{dash, web};
use simnel_sim::setup::{Access, Host, LineSetup, Loss, Reading, Recording, Shaper};
use simnel_sim::{Direction, Kind, Run, Setup, Traffic};
use simnel_tcp::{CongestionControl, EcnMode, Pacing, SlowStartExit};

/// Scenarios in an ordinary test run.
const COUNT: u64 = 150;
/// Simulated time after which a flow that still has not finished never will: many times the 120
/// seconds that a retransmission timer backs off to.
const PATIENCE: Span = Span::from_secs(4_000);

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|word| word.parse().ok()).unwrap_or(default)
}

struct Dice(Random);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }
    fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
    fn millis(&mut self, low: u32, high: u32) -> Span {
        Span::from_millis(u64::from(low + self.below(high - low)))
    }
    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// Disciplines in their defaults, whatever there are, and some settings that are not.
fn qdisc(dice: &mut Dice, rate: u64) -> qdisc::Config {
    const SPECIAL: [&str; 6] = [
        "pfifo limit 3",
        "pfifo_head_drop limit 20",
        "cake besteffort memlimit 64kb",
        "cake ack-filter-aggressive dual-srchost rtt 20ms",
        "cake bandwidth {rate} diffserv8 atm overhead 40",
        "cake bandwidth {rate} autorate-ingress",
    ];
    let mut words: Vec<&str> = qdisc::disciplines().iter().map(|known| known.name).collect();
    words.extend(SPECIAL);
    // Those that need words of their own do not parse without; another one is drawn.
    loop {
        let text = dice.pick(&words).replace("{rate}", &format!("{rate}bit"));
        if let Ok(config) = qdisc::parse(&text) {
            if simnel_core::qdisc::build(&config, &Device::default()).is_ok() {
                return config;
            }
        }
    }
}

fn line(dice: &mut Dice) -> LineSetup {
    let rate = 256_000 * u64::from(1 + dice.below(400));
    let mut line = LineSetup::wire(qdisc(dice, rate), Some(Rate::from_bits(rate)));
    line.shaper = match dice.below(4) {
        0 => Shaper::Bucket(dice.below(20_000)),
        _ => Shaper::Wire,
    };
    line.loss = match dice.below(4) {
        0 => Loss::Random(dice.below(u32::MAX / 50)),
        1 => Loss::Every(10 + dice.below(1000)),
        _ => Loss::None,
    };
    if dice.chance(30) {
        line.jitter = dice.millis(0, 30);
        line.reordering.share = dice.below(u32::MAX);
        line.reordering.late = dice.millis(0, 30);
    }
    if dice.chance(30) {
        // An outage, then another rate.
        let at = Time::ZERO + dice.millis(10, 5_000);
        line.steps.push(Step { at, rate: Rate(0) });
        let rate = Rate::from_bits(256_000 * u64::from(1 + dice.below(100)));
        line.steps.push(Step { at: at + dice.millis(1, 3_000), rate });
    }
    line
}

fn host(dice: &mut Dice, index: u8, home: bool) -> Host {
    let mut access = || {
        let rate = dice.chance(30).then(|| Rate::from_bits(2_000_000 + u64::from(dice.0.u32())));
        let delay = if home { dice.millis(0, 5) } else { dice.millis(1, 150) };
        Access { delay, rate }
    };
    let (egress, ingress) = (access(), access());
    Host { address: [10, u8::from(home), 0, index], home, egress, ingress }
}

fn tcp(dice: &mut Dice) -> simnel_tcp::Config {
    let mut config = simnel_tcp::Config {
        congestion: CongestionControl::ALL[dice.below(5) as usize],
        ..simnel_tcp::Config::default()
    };
    let ecn = [EcnMode::Off, EcnMode::Passive, EcnMode::On, EcnMode::Accurate];
    config.ecn = ecn[dice.below(4) as usize];
    let exits = [SlowStartExit::LossOnly, SlowStartExit::HyStart, SlowStartExit::HyStartPlusPlus];
    config.slow_start_exit = exits[dice.below(3) as usize];
    config.sack = dice.chance(80);
    config.timestamps = dice.chance(80);
    config.window_scaling = dice.chance(80);
    config.delayed_ack = dice.chance(80);
    config.nagle = dice.chance(80);
    config.frto = dice.chance(80);
    config.tail_loss_probe = dice.chance(80);
    config.mtu = 500 + dice.below(1001) as u16;
    config.initial_window = 1 + dice.below(40);
    if dice.chance(30) {
        config.pacing = Pacing::On;
    }
    if dice.chance(20) {
        config.tso_segments = 1 + dice.below(40) as u8;
    }
    if dice.chance(20) {
        config.gro_segments = 1 + dice.below(40) as u8;
    }
    config
}

fn kind(dice: &mut Dice) -> Kind {
    match dice.below(12) {
        0..=4 => Kind::Bulk { size: Some(1 + u64::from(dice.below(400_000))) },
        5 => Kind::Bulk { size: None },
        6 => Kind::Datagrams {
            size: 1 + dice.below(1400),
            interval: dice.millis(5, 100),
            ports: 1 + dice.below(20),
        },
        7 => Kind::Ping {
            size: dice.below(1400),
            interval: dice.millis(5, 200),
            icmp: dice.chance(50),
        },
        8 => Kind::Web(web::Params {
            interval: dice.millis(100, 3_000),
            objects: (1, 1 + u64::from(dice.below(5))),
            pages: (1, 1 + u64::from(dice.below(3))),
            ..web::Params::default()
        }),
        9 => Kind::Dash(dash::Params::default()),
        10 => Kind::Messages { size: 1 + dice.below(3_000), interval: dice.millis(5, 500) },
        _ => Kind::Bursts {
            size: 1 + u64::from(dice.below(50_000)),
            pause: (Span::ZERO, dice.millis(1, 3_000)),
        },
    }
}

fn scenario(number: u64) -> Setup {
    let mut dice = Dice(Random::derive(number, 99));
    let dice = &mut dice;
    let hosts: Vec<Host> = (0..6).map(|n| host(dice, n, n < 3)).collect();
    let count = 1 + dice.below(6);
    let traffic = (0..count)
        .map(|n| {
            let kind = kind(dice);
            // Whatever has no end stops, so that others are not kept from ending by it for ever.
            let endless = !matches!(kind, Kind::Bulk { size: Some(_) });
            let start = dice.millis(0, 2_000);
            let slow = matches!(kind, Kind::Bulk { .. }) && dice.chance(20);
            let reading = slow.then(|| Reading {
                portion: u64::from(2_000 + dice.below(20_000)),
                interval: dice.millis(1, 50),
            });
            Traffic {
                name: format!("{n} {kind:?}"),
                kind,
                direction: Direction::BOTH[dice.below(2) as usize],
                pairs: vec![(dice.below(3) as usize, 3 + dice.below(3) as usize)],
                count: 1 + dice.below(4),
                dscp: dice.below(64) as u8,
                start,
                stagger: dice.millis(0, 500),
                stop: endless.then(|| start + dice.millis(1, 8_000)),
                reading,
                tcp: tcp(dice),
            }
        })
        .collect();
    Setup {
        duration: PATIENCE,
        warmup: Span::ZERO,
        lines: [line(dice), line(dice)],
        hosts,
        traffic,
        recording: Recording { interval: Span::from_secs(10), windows: dice.chance(20) },
    }
}

fn check(setup: &Setup, seed: u64) -> Result<(), String> {
    let mut run = Run::new(setup, seed).map_err(|error| error.to_string())?;
    // Most are done after a few seconds; only the slow ones need patience.
    for seconds in [15, 60, 300, PATIENCE.0 / 1_000_000_000] {
        run.advance(Time(seconds * 1_000_000_000));
        if run.all_finished() {
            break;
        }
    }
    let unfinished = !run.all_finished();
    let results = run.results();
    if !results.conservation.holds() {
        return Err(format!("packets were created or forgotten: {:?}", results.conservation));
    }
    if unfinished {
        let flows = results.flows.iter().filter(|flow| {
            let traffic = &setup.traffic[flow.group as usize];
            matches!(traffic.kind, Kind::Bulk { size: Some(_) }) && flow.finished.is_none()
        });
        let names: Vec<String> = flows
            .map(|flow| {
                let traffic = &setup.traffic[flow.group as usize];
                format!(
                    "{} delivered {:?} {:?} {:?}\n   {:?}",
                    traffic.name, flow.delivered, flow.tcp, flow.fates, traffic.tcp
                )
            })
            .collect();
        return Err(format!("never finished: {}", names.join("\n")));
    }
    Ok(())
}

#[test]
fn random_scenarios_keep_every_promise() {
    let (from, count) = (number("SIMNEL_FUZZ_FROM", 0), number("SIMNEL_FUZZ_COUNT", COUNT));
    let mut failures = Vec::new();
    for number in from..from + count {
        let outcome = std::panic::catch_unwind(|| check(&scenario(number), number));
        let problem = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(problem)) => problem,
            Err(_) => "panicked".into(),
        };
        failures.push(format!("scenario {number}: {problem}"));
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// A transfer over a line that goes down for good: the fault that the test above looks for.
#[test]
fn a_transfer_that_stands_still_is_found() {
    let bulk = |n: &u64| matches!(scenario(*n).traffic[0].kind, Kind::Bulk { size: Some(_) });
    let number = (0..COUNT).find(bulk).expect("a scenario that begins with a transfer");
    let mut setup = scenario(number);
    assert_eq!(check(&setup, number), Ok(()));
    setup.lines[0].steps = vec![Step { at: Time(1), rate: Rate(0) }];
    let problem = check(&setup, number).expect_err("nothing can arrive");
    assert!(problem.starts_with("never finished"), "{problem}");
}

#[test]
fn the_same_scenario_runs_twice_the_same() {
    for number in 0..20 {
        let mut setup = scenario(number);
        setup.duration = Span::from_secs(20);
        let run = || Run::new(&setup, number).expect("a good set-up").finish();
        let (one, other) = (run(), run());
        assert_eq!((one.hash, one.events), (other.hash, other.events), "scenario {number}");
    }
}
