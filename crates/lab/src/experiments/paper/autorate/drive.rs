//! A run with a controller beside it.
//!
//! The run is advanced by an interval; what the queues saw and the probes' answers go to the
//! controller, and its rates into the shapers. Probes are pings of the gateway's own to six
//! reflectors, through both queues of the line and past the shapers.
//!
//! A reflector's faults are put on its answers: those it does not give, and those it gives late.

use std::collections::VecDeque;

use simnel_autorate::{self as autorate, Controller, Limits, RoundTrips, Seen, Settings, INTERVAL};
use simnel_core::qdisc::{self, Config, Device};
use simnel_core::random::Random;
use simnel_core::{Rate, Span, Time};
use simnel_scenario::file::{File, Host, Line, Traffic};
use simnel_sim::tandem::{Capacity, Passed, Stamp, Tandem};
use simnel_sim::{Direction, Results, Run, Setup};

use super::lines::{between, Fault, Kind, SECONDS};
use super::published::Rules;
use crate::experiments::paper::{ms, secs, set_up};

/// Reflectors there are.
pub const REFLECTORS: usize = 6;
/// Reflectors that the controller probes at a time.
const ACTIVE: u8 = 4;
/// A probe without an answer for so long is lost.
const TIMEOUT: Span = Span::from_millis(1000);
/// From one probe of a reflector to the next.
const PROBES: Span = Span::from_millis(200);
/// Faults begin.
const FAULTY_FROM: Time = Time(10_000_000_000);

/// The source of the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// No shaper: the line's FIFOs alone.
    None,
    /// The nominal rate.
    Fixed,
    /// The floor.
    Low,
    /// cake-autorate's published rules.
    Published,
    /// cake's own `autorate-ingress` for the download; the upload is fixed at the nominal rate.
    CakeIngress,
    /// The controller.
    Simnel,
    /// The controller without any reflector.
    Passing,
    /// A little less than the capacity, which it is told: what is possible at all.
    Oracle,
}

impl Contender {
    pub const ALL: [Contender; 8] = [
        Contender::None,
        Contender::Fixed,
        Contender::Low,
        Contender::Published,
        Contender::CakeIngress,
        Contender::Simnel,
        Contender::Passing,
        Contender::Oracle,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Contender::None => "none",
            Contender::Fixed => "fixed",
            Contender::Low => "low",
            Contender::Published => "cake-autorate",
            Contender::CakeIngress => "autorate-ingress",
            Contender::Simnel => "simnel",
            Contender::Passing => "simnel, no reflector",
            Contender::Oracle => "oracle",
        }
    }
}

/// Results of a run.
pub struct Driven {
    pub results: Results,
    pub capacity: [Capacity; 2],
    /// Rates in bit/s over time, upload and download, from each time on.
    pub rates: [Vec<(Time, u64)>; 2],
    /// Time at which each of the user's pings was sent, and its RTT above all propagation. Jitter
    /// is not propagation.
    pub added: Vec<(Time, Span)>,
    /// Baselines that the controller took instead of lower rates.
    pub shifts: u32,
}

/// Round-trip time of the user's ping, without queues.
const BASE: Span = Span::from_millis(40);

fn file() -> File {
    let mut file = File::new(secs(SECONDS), Line::of_words("unlimited", "unlimited", "40ms"))
        .warmup(secs(5))
        .qdisc("pfifo")
        .host(Host::home("user"))
        .host(Host::home("gateway"))
        .host(Host::internet("server"));
    for n in 0..REFLECTORS as u64 {
        let reflector = format!("r{n}");
        let probes = Traffic::ping().name(&format!("probe {n}")).protocol("icmp").dscp(&["CS7"]);
        let probes = probes.home(&["gateway"]).internet(&[&reflector]);
        file = file
            .host(Host::internet(&reflector).rtt(ms(20 + 7 * n)))
            .traffic(probes.interval(PROBES).start(ms(33 * n)));
    }
    let of_user = |traffic: Traffic| traffic.home(&["user"]).internet(&["server"]);
    let bulk = |direction: Direction, count| {
        let flows = Traffic::bulk().name(direction.name()).direction(direction).count(count);
        of_user(flows.start(ms(500)).stagger(secs(1)))
    };
    file.traffic(of_user(Traffic::ping().interval(ms(20))))
        .traffic(bulk(Direction::Down, 4))
        .traffic(bulk(Direction::Up, 2))
}

/// The set-up of every run; lines are put in by [`drive`].
pub fn setup() -> Setup {
    set_up("autorate", &file()).0
}

/// Words of the shaper.
fn words(contender: Contender, direction: Direction, kbit: u64) -> String {
    match (contender, direction) {
        (Contender::None, _) => "pfifo limit 1000".into(),
        (Contender::CakeIngress, Direction::Down) => {
            format!("cake bandwidth {kbit}kbit autorate-ingress")
        }
        (_, Direction::Down) => format!("cake bandwidth {kbit}kbit ingress"),
        (_, Direction::Up) => format!("cake bandwidth {kbit}kbit"),
    }
}

/// Runs `kind` with `fault` under `contender`.
pub fn drive(kind: Kind, fault: Fault, contender: Contender, seed: u64) -> Driven {
    let setup = setup();
    let mut run = Run::new(&setup, seed).expect("a set-up that was checked");
    let capacity = kind.capacity(seed);
    let limits = kind.limits();
    let start = |n: usize| match contender {
        Contender::Low => limits[n].0,
        _ => kind.nominal()[n],
    };
    let mut configs: Vec<Config> = Vec::new();
    for direction in Direction::BOTH {
        let n = direction as usize;
        let config = qdisc::parse(&words(contender, direction, start(n))).expect("words of ours");
        let device = Device { seed: seed ^ n as u64, ..Device::default() };
        let shaper = qdisc::build(&config, &device).expect("a discipline of ours");
        run.host(direction, Box::new(Tandem::new(direction, shaper, capacity[n].clone())));
        configs.push(config);
    }
    let mut driver = Driver {
        mind: match contender {
            Contender::Published => Mind::Published(Box::new(Rules::new(limits, kind.nominal()))),
            Contender::Simnel => Mind::Simnel(Box::new(controller(limits, REFLECTORS as u8))),
            Contender::Passing => Mind::Simnel(Box::new(controller(limits, 0))),
            Contender::Oracle => Mind::Oracle(capacity.clone(), limits),
            _ => Mind::None,
        },
        fault,
        random: Random::derive(seed, 0xfa17),
        configs,
        before: [Passed::default(); 2],
        trips: RoundTrips::new(),
        unanswered: vec![VecDeque::new(); REFLECTORS],
        answered: [Time::ZERO; REFLECTORS],
        rates: [vec![(Time::ZERO, start(0) * 1000)], vec![(Time::ZERO, start(1) * 1000)]],
    };
    let ping = REFLECTORS as u32;
    (0..=ping).for_each(|flow| run.keep_answers(flow));
    driver.apply_first(&mut run);
    let mut added = Vec::new();
    while !run.is_over() {
        let until = run.now() + INTERVAL;
        run.advance(until);
        driver.tick(&mut run);
        for (sent, rtt) in run.answers(ping) {
            let route = match kind {
                // Nobody's fault but the line's, and felt all the same.
                Kind::Jitter => Span::ZERO,
                _ => capacity[1].delay(sent + Span(rtt.0 / 2)) + capacity[0].delay(sent),
            };
            added.push((sent, rtt.saturating_sub(BASE + route)));
        }
    }
    let shifts = match &driver.mind {
        Mind::Simnel(controller) => controller.state().shifts,
        _ => 0,
    };
    Driven { results: run.results(), capacity, rates: driver.rates, added, shifts }
}

fn controller(limits: [(u64, u64); 2], reflectors: u8) -> Controller {
    let limits = limits.map(|(floor, ceiling)| {
        let rate = |kbit: u64| Rate::from_bits(kbit * 1000);
        Some(Limits { floor: rate(floor), ceiling: rate(ceiling) })
    });
    Controller::new(&Settings { limits, reflectors, active: ACTIVE }, Time::ZERO)
}

enum Mind {
    None,
    Published(Box<Rules>),
    Simnel(Box<Controller>),
    Oracle([Capacity; 2], [(u64, u64); 2]),
}

struct Driver {
    mind: Mind,
    fault: Fault,
    random: Random,
    configs: Vec<Config>,
    before: [Passed; 2],
    trips: RoundTrips,
    /// Answers that are not here yet: when each comes, of which probe.
    unanswered: Vec<VecDeque<(Time, Span)>>,
    answered: [Time; REFLECTORS],
    rates: [Vec<(Time, u64)>; 2],
}

impl Driver {
    /// A controller has a rate of its own to begin with.
    fn apply_first(&mut self, run: &mut Run) {
        if let Mind::Simnel(controller) = &mut self.mind {
            let rates = controller.tick(Time::ZERO, [Seen::default(); 2]).rates;
            let bits = rates.map(|rate| rate.map_or(0, Rate::bits));
            self.set(run, bits);
        }
    }

    fn tick(&mut self, run: &mut Run) {
        let now = run.now();
        let mut seen = [Seen::default(); 2];
        for direction in Direction::BOTH {
            let n = direction as usize;
            let Some(tandem) = Tandem::of(run.managed(direction)) else { continue };
            let passed = tandem.passed();
            seen[n] = Seen {
                arrived: passed.arrived - self.before[n].arrived,
                released: passed.released - self.before[n].released,
                backlog: passed.backlog,
            };
            self.before[n] = passed;
            let stamps: Vec<Stamp> = tandem.stamps().collect();
            self.take_stamps(run, direction, &stamps);
        }
        for reflector in 0..REFLECTORS {
            self.probes(run, reflector, now);
        }
        let rates = match &mut self.mind {
            Mind::None => return,
            Mind::Published(rules) => {
                rules.released(seen.map(|seen| seen.released), now);
                rules.rates()
            }
            Mind::Oracle(capacity, limits) => [0, 1].map(|n| {
                let (floor, ceiling) = limits[n];
                let most = capacity[n].at(now).bits() * 31 / 32;
                most.clamp(floor * 1000, ceiling * 1000)
            }),
            Mind::Simnel(controller) => {
                controller.hear(&self.trips, now);
                let decision = controller.tick(now, seen);
                decision.rates.map(|rate| rate.map_or(0, Rate::bits))
            }
        };
        self.set(run, rates);
    }

    fn set(&mut self, run: &mut Run, rates: [u64; 2]) {
        for direction in Direction::BOTH {
            let n = direction as usize;
            if self.rates[n].last().is_some_and(|(_, rate)| *rate == rates[n]) {
                continue;
            }
            self.rates[n].push((run.now(), rates[n]));
            let rate = Rate::from_bits(rates[n]);
            let changed = self.configs[n].with_rate(rate, |_| 0).expect("cake shapes");
            run.configure(direction, &changed).expect("settings of ours");
        }
    }

    /// Tells what passed TCP's timestamps, as the gateway does.
    fn take_stamps(&self, run: &Run, direction: Direction, stamps: &[Stamp]) {
        for Stamp { flow, value, echo, has_data, at } in stamps.iter().copied() {
            let Some(connection) = run.connection(flow) else { continue };
            match direction {
                Direction::Up => {
                    self.trips.sent(connection, autorate::Stamp { value, has_data }, at);
                }
                Direction::Down => {
                    self.trips.echoed(connection, echo, at);
                    self.trips.came(connection, value, at);
                }
            }
        }
    }

    /// Answers of a reflector, with its faults.
    fn probes(&mut self, run: &mut Run, reflector: usize, now: Time) {
        for (sent, rtt) in run.answers(reflector as u32) {
            let faulty = sent >= FAULTY_FROM;
            let (silent, late) = match self.fault {
                Fault::None => (false, 0),
                Fault::Dead => (faulty && reflector.is_multiple_of(2), 0),
                Fault::Blind => (faulty, 0),
                Fault::Limited => (faulty && sent.since(FAULTY_FROM).0 % 500_000_000 > PROBES.0, 0),
                Fault::Slow => {
                    (false, if reflector < 2 { between(&mut self.random, 0, 80) } else { 0 })
                }
            };
            if !silent {
                let rtt = rtt + Span::from_millis(late);
                self.unanswered[reflector].push_back((sent + rtt, rtt));
            }
        }
        while let Some((at, rtt)) = self.unanswered[reflector].front().copied() {
            if at > now {
                break;
            }
            self.unanswered[reflector].pop_front();
            self.answered[reflector] = now;
            match &mut self.mind {
                Mind::None | Mind::Oracle(..) => {}
                Mind::Published(rules) => rules.answer(reflector, rtt, now),
                Mind::Simnel(controller) => controller.answer(reflector as u8, rtt, now),
            }
        }
        if now.since(self.answered[reflector]) >= TIMEOUT {
            // One loss for each probe that was due since.
            self.answered[reflector] = Time(now.0 + PROBES.0 - TIMEOUT.0);
            if now.since(Time::ZERO) > TIMEOUT + PROBES {
                if let Mind::Simnel(controller) = &mut self.mind {
                    controller.lost(reflector as u8, now);
                }
            }
        }
    }
}
