//! The loop against a model of the kernel, in virtual time, with faults.
//!
//! A case is an hour of one direction: some busy seconds and long silences. It may meet everything
//! that can go wrong in NFQUEUE, netlink, clock and neighbourhood ([`plan::Trouble`]). After every
//! step all properties of [`books`] must hold. A case follows from one number; one that fails is
//! made smaller, kind of trouble by kind, and printed as what reproduces it.
//!
//! A test run has [`CASES`] of them. `scripts/rehearse.sh HOURS` runs as many as it is told.

mod books;
mod kernel;
mod plan;
mod soak;

use std::sync::mpsc::{sync_channel, Receiver as Reply};
use std::sync::Arc;

use simnel_core::flow::HashKey;
use simnel_core::qdisc::{self, Backlog, Config, ConfigError, Device};
use simnel_core::qdisc::{Managed, PacketOwner, Snapshot};
use simnel_core::random::Random;
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use self::books::{Books, Bounds, Violation, FULL};
pub(super) use self::kernel::{queued, stale};
use self::kernel::{Model, FLOWS};
use self::plan::{Plan, Trouble};
use super::engine::Engine;
use super::mailbox::Command;
use super::{BoxedQdisc, Status, Tuning};
use crate::connections::Connections;
use crate::direction::Direction;
use crate::nfqueue::{Verdicts, LONGEST};
use crate::nft::MarkBits;
use crate::segments::SegmentSizes;
use crate::words::{self, settings_of};

/// Cases of a test run.
const CASES: u64 = 25;
/// Length of a case.
const HOUR: Span = Span::from_secs(3_600);
/// The guard opens the line when verdicts were refused for so long.
const GUARD: Span = Span::from_millis(300);
/// Turns that may follow one another without sleep: until a queue that is full has been served.
const MOST_TURNS: u32 = 10_000;

/// A discipline: its words, most packets in its queue, and how many share its rate at worst.
struct Kind {
    words: &'static str,
    packets: u64,
    shares: u64,
}

const fn kind(words: &'static str, packets: u64, shares: u64) -> Kind {
    Kind { words, packets, shares }
}

/// Flows, of which some may come before others.
const FAIR: u64 = 2 * FLOWS as u64;
/// Flows in tiers, of which the least has a sixteenth.
const TIERED: u64 = 16 * FAIR;

const KINDS: &[Kind] = &[
    kind("pfifo limit 60", 60, 1),
    kind("bfifo limit 90840b", 60, 1),
    kind("codel limit 100", 100, 1),
    kind("pie limit 100", 100, 1),
    kind("red limit 150000b min 30000b max 60000b avpkt 1000", 100, 1),
    kind("sfq limit 100", 100, FAIR),
    kind("fq_codel limit 100", 100, FAIR),
    kind("fq_pie limit 100", 100, FAIR),
    kind("dualpi2 limit 100", 100, FAIR),
    kind("cake besteffort flowblind memlimit 150kb", 100, 1),
    kind("cake besteffort memlimit 150kb ack-filter", 100, FAIR),
    kind("cake diffserv4 triple-isolate memlimit 150kb wash", 100, TIERED),
    kind("cake diffserv3 dual-srchost memlimit 150kb savings 15kb", 100, TIERED),
];

const RATES: &[u64] = &[256_000, 1_000_000, 3_000_000, 10_000_000, 20_000_000, 50_000_000];

/// Forgets a packet now and then, or keeps memory for good: must be found.
struct Faulty {
    inner: BoxedQdisc,
    kind: Discipline,
    seen: u32,
}

impl Qdisc for Faulty {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.seen += 1;
        let is_at_fault = self.seen.is_multiple_of(4_096);
        if is_at_fault && self.kind == Discipline::Hoarding {
            std::mem::forget(std::hint::black_box(Box::new(*packet)));
        }
        if !is_at_fault || self.kind != Discipline::Forgetful {
            self.inner.enqueue(packet, now, owner);
        }
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.inner.dequeue(now, owner)
    }

    fn next_event(&self) -> Option<Time> {
        self.inner.next_event()
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.inner.reset(owner);
    }
}

impl Managed for Faulty {
    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn config(&self) -> Config {
        self.inner.config()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.inner.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        self.inner.adopt(spare, now, owner);
    }
}

/// The rehearsed discipline: a sound one, or a canary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Discipline {
    Sound,
    Forgetful,
    Hoarding,
}

/// The loop's last question, not read yet.
type Question = Reply<Status>;

/// An hour of one direction.
struct Case {
    plan: Plan,
    random: Random,
    discipline: Discipline,
    model: Model,
    engine: Engine,
    /// Of the settings that hold.
    rate: u64,
    drained: bool,
    /// Time of the loop's last sign of life.
    alive: Time,
    /// Silences are shorter than so many seconds.
    silence: u32,
    /// Longest time without one that the guard allows.
    patience: Span,
    /// Loops that ended, and were followed by another one.
    ended: u32,
    next_command: Time,
}

fn settings(random: &mut Random) -> (Config, Bounds, u64) {
    let kind = &KINDS[random.below(KINDS.len() as u32) as usize];
    let rate = RATES[random.below(RATES.len() as u32) as usize];
    let config = settings_of(Direction::Upload, Some(&format!("{rate}bit")), kind.words).unwrap();
    // A rate that is kept without bursts is kept to the byte where packets are short beside it
    // (`pace.rs`); a bucket gives what it holds, and a packet.
    let burst = match config.packet_time(&Device::default()) {
        Some(_) if rate >= 10_000_000 => 0,
        Some(_) => FULL,
        None => FULL + u64::from(words::burst(Rate(rate / 8))),
    };
    let limit = kind.packets * FULL;
    (config, Bounds { rate: rate / 8, burst, limit, shares: kind.shares }, rate)
}

impl Case {
    fn new(plan: Plan, discipline: Discipline) -> Case {
        let mut random = Random::derive(plan.seed, 0);
        let (config, bounds, rate) = settings(&mut random);
        let model = Model::new(plan, Books::new(bounds));
        let engine = engine(&config, discipline, &mut random, model.clock());
        let alive = model.clock();
        Case {
            plan,
            random,
            discipline,
            model,
            engine,
            rate,
            drained: false,
            alive,
            silence: 600,
            patience: GUARD,
            ended: 0,
            next_command: alive,
        }
    }

    /// Runs the hour; the property that did not hold, if any.
    fn run(mut self) -> Result<u64, Violation> {
        self.live_until(self.model.clock() + HOUR)?;
        Ok(self.model.books.judged)
    }

    /// Busy seconds and silences in turn, the last of which may be longer.
    fn live_until(&mut self, end: Time) -> Result<(), Violation> {
        while self.model.clock() < end {
            let busy = Span::from_millis(50 + u64::from(self.random.below(4_000)));
            // From a tenth of the rate to three times as much.
            let part = [10, 50, 90, 110, 200, 300][self.random.below(6) as usize];
            let largest = [100, 600, 1_500][self.random.below(3) as usize];
            let together = [1, 1, 2, 10, 64][self.random.below(5) as usize];
            let mean = u64::from(largest) * 8 * 1_000_000_000 / 2;
            self.model.begin_load(Span(mean / self.rate * 100 / part), largest, together);
            self.next_command = self.next_command.min(self.soon(3_000));
            self.until(self.model.clock() + busy)?;
            self.model.end_load();
            let silence = Span::from_secs(u64::from(self.random.below(self.silence)));
            self.until(self.model.clock() + silence)?;
        }
        Ok(())
    }

    fn until(&mut self, end: Time) -> Result<(), Violation> {
        let mut without_sleep = 0;
        while self.model.clock() < end {
            if self.model.clock() >= self.next_command {
                self.command();
            }
            let rest = self.engine.turn(&mut self.model);
            self.model.check(self.drained);
            without_sleep = if rest.time == Span::ZERO { without_sleep + 1 } else { 0 };
            if without_sleep > MOST_TURNS {
                return Err(Violation(format!("{without_sleep} turns without sleep")));
            }
            let starved = self.model.sleep(rest);
            let now = self.model.clock();
            if self.engine.progress().is_some() {
                self.alive = now;
            }
            if starved || now.since(self.alive) > self.patience {
                self.start_again();
            }
            if let Some(violation) = self.model.violation.take() {
                return Err(violation);
            }
        }
        Ok(())
    }

    /// The guard has let all pass, or the loop was told to end: another one begins.
    fn start_again(&mut self) {
        self.model.open();
        let (config, bounds, rate) = settings(&mut self.random);
        let now = self.model.clock();
        self.engine = engine(&config, self.discipline, &mut self.random, now);
        self.model.books.follow(bounds, self.model.clock());
        self.ended += 1;
        (self.rate, self.drained, self.alive) = (rate, false, now);
    }

    /// A time from now on, within so many milliseconds.
    fn soon(&mut self, within: u32) -> Time {
        self.model.clock() + Span::from_millis(u64::from(self.random.below(within)))
    }

    /// Somebody asks for something: more often while there is something to lose.
    fn command(&mut self) {
        self.next_command = self.soon(if self.model.is_loaded() { 3_000 } else { 300_000 });
        let kind = [Trouble::Reports, Trouble::Changes, Trouble::Replacements, Trouble::Drains];
        let kind = kind[self.random.below(4) as usize];
        let (config, bounds, rate) = settings(&mut self.random);
        let rarely = self.random.below(20) == 0;
        if !self.plan.has(kind) {
            return;
        }
        match kind {
            Trouble::Reports => self.report(),
            Trouble::Changes => {
                let (reply, answer) = sync_channel(1);
                self.ask(Command::Prepare(Box::new(config), reply));
                // Of another kind: refused, and nothing has changed.
                let Some(spare) = answer.try_recv().ok().and_then(Result::ok) else { return };
                let (reply, _answer) = sync_channel(1);
                self.ask(Command::Adopt(spare, reply));
                self.model.books.follow(bounds, self.model.clock());
                self.rate = rate;
            }
            Trouble::Replacements => {
                let qdisc = discipline(&config, self.discipline);
                let (reply, _answer) = sync_channel(1);
                self.ask(Command::Replace(qdisc, Device::default(), reply));
                self.model.books.follow(bounds, self.model.clock());
                self.rate = rate;
            }
            _ if rarely => self.end(),
            _ => {}
        }
    }

    fn ask(&mut self, command: Command) {
        let stopped = self.engine.carry_out(command, &mut self.model);
        assert!(!stopped);
    }

    /// Each packet that was received has been released or dropped, or is queued.
    fn report(&mut self) {
        let (reply, answer): (_, Question) = sync_channel(1);
        self.ask(Command::Report(reply));
        let status = answer.try_recv().expect("an answer at once");
        let counters = status.counters;
        let queued = u64::from(status.root.snapshot.backlog.packets);
        let known = counters.released + counters.dropped + queued;
        if counters.received != known {
            let received = counters.received;
            let words = format!("{received} packets received, but {known} known of");
            self.model.note(Err(Violation(words)));
        }
    }

    /// The loop drains, goes on for a moment, and stops; another one begins.
    fn end(&mut self) {
        let (reply, _answer) = sync_channel(1);
        self.ask(Command::Drain(reply));
        self.drained = true;
        for _ in 0..self.random.below(20) {
            let rest = self.engine.turn(&mut self.model);
            self.model.check(true);
            self.model.sleep(rest);
        }
        self.engine.carry_out(Command::Stop, &mut self.model);
        self.start_again();
    }
}

fn discipline(config: &Config, kind: Discipline) -> BoxedQdisc {
    let inner = qdisc::build(config, &Device::default()).unwrap();
    match kind {
        Discipline::Sound => inner,
        Discipline::Forgetful | Discipline::Hoarding => Box::new(Faulty { inner, kind, seen: 0 }),
    }
}

fn engine(config: &Config, kind: Discipline, random: &mut Random, now: Time) -> Engine {
    let [a, b] = random.key();
    let segments = Arc::new(SegmentSizes::of(Connections::with_key(HashKey::new(b, a))));
    let surroundings = (Device::default(), MarkBits::DEFAULT);
    let how = (Tuning::default(), HashKey::new(a, b));
    let verdicts = Verdicts::new(5, LONGEST);
    Engine::new(discipline(config, kind), verdicts, surroundings, how, segments, now)
}

/// The case with as little trouble as shows that a property does not hold.
fn shrunk(plan: Plan, discipline: Discipline) -> (Plan, Violation) {
    let fails = |plan: Plan| Case::new(plan, discipline).run().err();
    let mut least = (plan, fails(plan).expect("a case that fails"));
    while let Some(smaller) =
        least.0.smaller().find_map(|plan| fails(plan).map(|violation| (plan, violation)))
    {
        least = smaller;
    }
    least
}

/// Runs cases; says how many packets got a verdict.
fn rehearse(cases: impl Iterator<Item = Plan>, discipline: Discipline) -> Result<u64, String> {
    let mut judged = 0;
    for plan in cases {
        judged += Case::new(plan, discipline).run().map_err(|_| {
            let (least, Violation(words)) = shrunk(plan, discipline);
            format!("{words}\nreproduce: scripts/rehearse.sh --case {least}")
        })?;
    }
    Ok(judged)
}

/// Rehearses the first [`CASES`], or those that `scripts/rehearse.sh` names.
#[test]
fn nothing_is_lost_held_or_too_fast_whatever_goes_wrong() {
    let told = |name: &str| std::env::var(name).ok();
    let number = |name: &str| told(name).map(|text| text.parse::<u64>().expect("a number"));
    let said = |result: Result<u64, String>, what: String| match result {
        Ok(judged) => println!("{what}: {judged} packets, all holds"),
        Err(words) => panic!("{what}: {words}"),
    };
    if let Some(case) = told("REHEARSE_CASE") {
        let plan: Plan = case.parse().unwrap_or_else(|error| panic!("{error}"));
        let result = Case::new(plan, Discipline::Sound).run();
        return said(result.map_err(|Violation(words)| words), format!("case {plan}"));
    }
    let hours = number("REHEARSE_HOURS").unwrap_or(CASES);
    let first = number("REHEARSE_FIRST").unwrap_or(0);
    let end = first + hours;
    for first in (first..end).step_by(100) {
        let last = end.min(first + 100);
        let result = rehearse((first..last).map(Plan::new), Discipline::Sound);
        said(result, format!("hours {first} to {}", last - 1));
    }
}

#[test]
fn a_discipline_that_forgets_packets_is_found() {
    let found = rehearse((0..CASES).map(Plan::new), Discipline::Forgetful);
    let words = found.expect_err("the canary must be found");
    println!("{words}");
    assert!(words.contains("reproduce: "));
}

#[test]
fn a_case_is_the_same_each_time() {
    let plan = Plan::new(7);
    let judged = || Case::new(plan, Discipline::Sound).run().unwrap();
    assert_eq!(judged(), judged());
    assert_eq!(plan.to_string().parse(), Ok(plan));
}
