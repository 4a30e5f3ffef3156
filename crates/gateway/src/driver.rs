//! The controller of one interface, with what it needs of the world.
//!
//! Each tick asks one of up to four reflectors, so each is asked five times a second. A probe that
//! is not back after a second is lost. Sequence numbers count probes; what comes back later than
//! that, twice or from elsewhere finds no probe that waits.
//!
//! A reflector that answers ICMP requests for the time is asked by these, because they tell the way
//! back from the way there. Others are asked for an echo, and now and then for the time as well. An
//! irtt server's echoes always tell the time. A session is opened before them, and its opening
//! counts as a probe without a vote.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use simnel_autorate::{Controller, Limits, Seen, Settings, DOWN, INTERVAL, UP};
use simnel_core::{Rate, Span, Time};
use simnel_measure::irtt::{Answer, Opened};

use crate::autorate::{
    index, Autorate, Following, Line, Message, News, Passed, Reflector, Report, Session, Sockets,
    Target,
};
use crate::direction::Direction;
use crate::error::Error;
use crate::notice::Told;
use crate::sys::{self, Query};

/// Reflectors that are probed at a time.
const ACTIVE: u8 = 4;
/// A probe that is not back by then is lost.
const TIMEOUT: Span = Span::from_secs(1);
/// Answers that are read in one turn, so that a flood of them does not keep clients waiting.
const ANSWERS_PER_TURN: usize = 64;

/// Echoes of a reflector until it is asked for its time again.
const TIME_TRIAL: u64 = 64;

/// The network's word that an irtt server was not reached.
const UNREACHABLE: &str = "the network says that nothing answers at this address and port";

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    sequence: u16,
    reflector: u8,
    sent: Time,
    kind: Kind,
    /// Sent beside an echo: no answer says nothing of the line.
    is_trial: bool,
}

/// The question of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// By ICMP.
    Echo,
    /// By ICMP.
    Time,
    /// By irtt.
    Open,
    /// By irtt.
    Datagram,
}

/// Counts of a reflector's probes.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    answered: u64,
    lost: u64,
    /// None after a loss.
    rtt: Option<Span>,
    /// It has told the time.
    told_time: bool,
    /// It is asked for the time now, and not for an echo.
    tells_time: bool,
    /// Times that it was its turn.
    turns: u64,
    /// With an irtt server.
    session: Session,
    /// Reason why an irtt server did not serve last; None once it has answered an echo.
    refusal: Option<&'static str>,
}

/// The controller of an interface.
pub(crate) struct Driver {
    interface: String,
    settings: Autorate,
    /// None if nobody is asked.
    sockets: Option<Arc<Sockets>>,
    controller: Controller,
    /// In the order in which they were sent.
    waiting: VecDeque<Probe>,
    tallies: Vec<Tally>,
    sequence: u16,
    /// Number of the tick, by which reflectors take turns.
    turn: u16,
    next_tick: Time,
    /// The queues' counters at the last tick.
    before: [Option<Passed>; 2],
    rates: [Option<Rate>; 2],
    told: Told,
}

impl Driver {
    /// A driver for `interface` whose probes go by `sockets`. Rates begin where they are `found`.
    pub(crate) fn new(
        interface: &str,
        settings: &Autorate,
        sockets: Option<Arc<Sockets>>,
        found: [Option<Rate>; 2],
        now: Time,
    ) -> Driver {
        let reflectors = settings.reflectors.len() as u8;
        let of = Settings { limits: settings.limits, reflectors, active: ACTIVE };
        let driver = Driver {
            interface: interface.to_owned(),
            settings: settings.clone(),
            sockets,
            controller: Controller::new(&of, now).beginning_at(found),
            waiting: VecDeque::new(),
            tallies: vec![Tally::default(); settings.reflectors.len()],
            sequence: 0,
            turn: 0,
            next_tick: now,
            before: [None; 2],
            rates: [None; 2],
            told: Told::default(),
        };
        driver.find_interface();
        driver
    }

    /// Probes leave by the interface, whatever its number is now.
    pub(crate) fn find_interface(&self) {
        let Some(sockets) = &self.sockets else { return };
        // Without it routes decide, which mostly is the same.
        if let Ok(index) = sys::interface(&self.interface, Query::Index) {
            let _ = sockets.leave_by(index);
        }
    }

    /// Readable when an answer is there.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().flat_map(|sockets| sockets.fds())
    }

    /// Time until the next tick.
    pub(crate) fn patience(&self, now: Time) -> Span {
        self.next_tick.since(now)
    }

    /// Takes answers in and, if it is time, probes and sets rates. What fails is told, once.
    pub(crate) fn drive(&mut self, line: &mut impl Line, now: Time) -> Option<String> {
        let error = self.turn(line, now).err()?;
        self.told.news(format!("autorate of {}: {error}", self.interface))
    }

    /// Errors of before are news again: the line was made anew.
    pub(crate) fn forget_errors(&mut self) {
        self.told.forget();
    }

    /// # Errors
    /// The line does not tell what passes, or a rate could not be set.
    fn turn(&mut self, line: &mut impl Line, now: Time) -> Result<(), Error> {
        self.take_answers(now);
        if now < self.next_tick {
            return Ok(());
        }
        // A tick that is late is not made up for.
        self.next_tick = now + INTERVAL;
        self.give_up(now);
        self.probe(now);
        if let Some(trips) = line.round_trips() {
            self.controller.hear(trips, now);
        }
        line.look()?;
        // The counters' own time: a rate is bytes over the time between two looks.
        let now = sys::now();
        let seen = Direction::BOTH.map(|way| self.seen(line, way));
        let decision = self.controller.tick(now, seen);
        if decision.replaced {
            let active: Vec<u8> = self.controller.active().collect();
            self.end_sessions(&active);
        }
        let rates = decision.rates;
        for direction in Direction::BOTH {
            let Some(rate) = rates[index(direction)] else { continue };
            if self.rates[index(direction)] != Some(rate) {
                line.set_rate(direction, rate)?;
                self.rates[index(direction)] = Some(rate);
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, now: Time) {
        let Some(sockets) = self.sockets.clone() else { return };
        let mut budget = ANSWERS_PER_TURN;
        if let Some(echoes) = &sockets.echoes {
            while let Some(answer) = echoes.receive(&mut budget) {
                let from = Target::Icmp(answer.from);
                let asked =
                    |probe: &Probe, target| probe.sequence == answer.sequence && target == from;
                let Some(probe) = self.take_probe(asked) else { continue };
                self.answered(&probe, now.since(probe.sent), answer.sent, now);
            }
        }
        let mut budget = ANSWERS_PER_TURN;
        if let Some(datagrams) = &sockets.datagrams {
            while let Some((from, news)) = datagrams.receive(&mut budget) {
                self.take_news(from, news, now);
            }
        }
    }

    /// Takes the first probe that waits for which `asked` is true.
    fn take_probe(&mut self, asked: impl Fn(&Probe, Target) -> bool) -> Option<Probe> {
        let target = |probe: &Probe| self.settings.reflectors[usize::from(probe.reflector)];
        let place = self.waiting.iter().position(|probe| asked(probe, target(probe)))?;
        self.waiting.remove(place)
    }

    fn answered(&mut self, probe: &Probe, rtt: Span, told: Option<u32>, now: Time) {
        let tally = &mut self.tallies[usize::from(probe.reflector)];
        tally.answered += 1;
        tally.rtt = Some(rtt);
        self.controller.answer(probe.reflector, rtt, now);
        if let Some(sent) = told {
            (tally.told_time, tally.tells_time) = (true, true);
            self.controller.came(probe.reflector, sent, now);
        }
    }

    /// Takes in what `from`, or the network about it, says.
    fn take_news(&mut self, from: SocketAddr, news: News, now: Time) {
        let wanted = |probe: &Probe, target: Target| {
            target.is_irtt(from)
                && match news {
                    News::Answer(Answer::Echo(echo)) => {
                        probe.kind == Kind::Datagram && u32::from(probe.sequence) == echo.number
                    }
                    News::Answer(Answer::Opened(_) | Answer::Refused(_)) => {
                        probe.kind == Kind::Open
                    }
                    // Whichever it was.
                    News::Answer(Answer::Closed(_)) | News::Unreachable => true,
                }
        };
        let Some(probe) = self.take_probe(wanted) else { return };
        let tally = &mut self.tallies[usize::from(probe.reflector)];
        match news {
            News::Answer(Answer::Echo(echo)) if tally.session.echoed(echo.token) => {
                tally.refusal = None;
                let [received, answered] = echo.clock;
                let there = Span(answered.saturating_sub(received));
                let rtt = now.since(probe.sent).saturating_sub(there);
                let sent = (answered / 1_000_000) as u32;
                self.answered(&probe, rtt, Some(sent), now);
            }
            // Of a session that is given up.
            News::Answer(Answer::Echo(_)) => {}
            News::Answer(Answer::Opened(opened)) => self.take_session(&probe, from, opened, now),
            News::Answer(Answer::Closed(token)) => {
                tally.session.closed(token);
                self.lose(&probe, now);
            }
            News::Answer(Answer::Refused(reason)) => {
                tally.refusal = Some(reason);
                self.lose(&probe, now);
            }
            News::Unreachable => {
                tally.refusal = Some(UNREACHABLE);
                self.lose(&probe, now);
            }
        }
    }

    fn take_session(&mut self, probe: &Probe, from: SocketAddr, opened: Opened, now: Time) {
        let is_active = self.controller.active().any(|active| active == probe.reflector);
        let tally = &mut self.tallies[usize::from(probe.reflector)];
        let end = match tally.session.opened(opened, now) {
            Ok(end) => {
                tally.answered += 1;
                // It may have been replaced since.
                end.or_else(|| if is_active { None } else { tally.session.end() })
            }
            Err(useless) => {
                tally.refusal = Some(useless.reason);
                self.lose(probe, now);
                Some(useless.end)
            }
        };
        self.say(from, end);
    }

    /// Sends what nobody answers.
    fn say(&self, to: SocketAddr, message: Option<Vec<u8>>) {
        let datagrams = self.sockets.as_ref().and_then(|sockets| sockets.datagrams.as_ref());
        if let Some((datagrams, message)) = datagrams.zip(message) {
            let _ = datagrams.send(to, &message);
        }
    }

    /// Ends the sessions with all reflectors but those in `kept`.
    fn end_sessions(&mut self, kept: &[u8]) {
        for number in 0..self.tallies.len() {
            if kept.contains(&(number as u8)) {
                continue;
            }
            if let Target::Irtt(to) = self.settings.reflectors[number] {
                let end = self.tallies[number].session.end();
                self.say(to, end);
            }
        }
    }

    fn give_up(&mut self, now: Time) {
        while let Some(probe) = self.waiting.front().copied() {
            if now.since(probe.sent) < TIMEOUT {
                break;
            }
            self.waiting.pop_front();
            self.lose(&probe, now);
        }
    }

    fn lose(&mut self, probe: &Probe, now: Time) {
        if probe.is_trial {
            return;
        }
        let tally = &mut self.tallies[usize::from(probe.reflector)];
        tally.lost += 1;
        tally.rtt = None;
        let is_time = probe.kind == Kind::Time;
        match probe.kind {
            // Either may be what is filtered, or limited.
            Kind::Echo | Kind::Time if is_time == tally.tells_time => {
                tally.tells_time = tally.told_time && !is_time;
            }
            Kind::Datagram => {
                let end = tally.session.lost();
                if let Target::Irtt(to) = self.settings.reflectors[usize::from(probe.reflector)] {
                    self.say(to, end);
                }
            }
            _ => {}
        }
        self.controller.lost(probe.reflector, now);
    }

    /// Asks the reflector whose turn it is.
    fn probe(&mut self, now: Time) {
        let turn = usize::from(self.turn) % usize::from(ACTIVE);
        self.turn = self.turn.wrapping_add(1);
        let Some(reflector) = self.controller.active().nth(turn) else { return };
        match self.settings.reflectors.get(usize::from(reflector)) {
            Some(&Target::Icmp(address)) => self.ask_by_icmp(reflector, address, now),
            Some(&Target::Irtt(address)) => self.ask_by_irtt(reflector, address, now),
            None => {}
        }
    }

    fn ask_by_icmp(&mut self, reflector: u8, address: IpAddr, now: Time) {
        let tally = &mut self.tallies[usize::from(reflector)];
        let kind = if tally.tells_time { Kind::Time } else { Kind::Echo };
        let is_trial =
            address.is_ipv4() && !tally.tells_time && tally.turns.is_multiple_of(TIME_TRIAL);
        tally.turns += 1;
        let trial = is_trial.then_some((Kind::Time, true));
        for (kind, is_trial) in [(kind, false)].into_iter().chain(trial) {
            let probe = self.note(reflector, kind, is_trial, now);
            let echoes = self.sockets.as_ref().and_then(|sockets| sockets.echoes.as_ref());
            // What cannot be sent, because there is no route, is a probe lost.
            let _ = echoes.map(|echoes| echoes.send(address, probe, kind == Kind::Time));
        }
    }

    fn ask_by_irtt(&mut self, reflector: u8, address: SocketAddr, now: Time) {
        let number = self.sequence.wrapping_add(1).into();
        let session = &mut self.tallies[usize::from(reflector)].session;
        let Some(message) = session.next(number, now) else { return };
        let (kind, bytes) = match message {
            Message::Open(bytes) => (Kind::Open, bytes),
            Message::Echo(bytes) => (Kind::Datagram, bytes),
        };
        self.note(reflector, kind, false, now);
        self.say(address, Some(bytes));
    }

    /// Notes a probe that is sent now; gives its number.
    fn note(&mut self, reflector: u8, kind: Kind, is_trial: bool, now: Time) -> u16 {
        self.sequence = self.sequence.wrapping_add(1);
        let (sequence, sent) = (self.sequence, now);
        self.waiting.push_back(Probe { sequence, reflector, sent, kind, is_trial });
        sequence
    }

    fn seen(&mut self, line: &impl Line, direction: Direction) -> Seen {
        let Some(now) = line.passed(direction) else { return Seen::default() };
        let before = self.before[index(direction)].replace(now).unwrap_or(now);
        Seen {
            arrived: now.arrived.wrapping_sub(before.arrived).into(),
            released: now.released.wrapping_sub(before.released).into(),
            backlog: now.backlog.into(),
        }
    }

    /// Its doings, for `show`.
    pub(crate) fn report(&self, now: Time) -> Report {
        let state = self.controller.state();
        let following = |which: usize, direction| {
            let Limits { floor, ceiling } = self.settings.limits[which]?;
            Some(Following {
                direction,
                floor_bps: floor.bits(),
                ceiling_bps: ceiling.bits(),
                rate_bps: self.rates[which].unwrap_or(ceiling).bits(),
                known_bps: state.known[which].map(Rate::bits),
                phase: state.phases[which].map_or("", |phase| phase.name()).into(),
                reason: state.reasons[which].map(|(reason, _)| reason.name().into()),
                changed_ms: state.reasons[which].map(|(_, at)| now.since(at).as_micros() / 1000),
            })
        };
        let active: Vec<u8> = self.controller.active().collect();
        let reflector = |(number, (target, tally)): (usize, (&Target, &Tally))| Reflector {
            address: target.address(),
            kind: target.kind(),
            port: target.port(),
            active: active.contains(&(number as u8)),
            answered: tally.answered,
            lost: tally.lost,
            rtt_us: tally.rtt.map(Span::as_micros),
            tells_time: tally.tells_time,
            refusal: tally.refusal.map(String::from),
        };
        let all = self.settings.reflectors.iter().zip(&self.tallies);
        Report {
            dev: self.interface.clone(),
            delay_us: state.delay.map(Span::as_micros),
            baseline_us: state.baseline.map(Span::as_micros),
            shifts: state.shifts,
            connections: state.connections.into(),
            by_passing: state.by_passing,
            directions: [(DOWN, Direction::Download), (UP, Direction::Upload)]
                .into_iter()
                .filter_map(|(which, direction)| following(which, direction))
                .collect(),
            reflectors: all.enumerate().map(reflector).collect(),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end_sessions(&[]);
    }
}
