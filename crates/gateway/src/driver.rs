//! The controller of one interface, with what it needs of the world.
//!
//! Each tick asks one of up to four reflectors, so each is asked five times a second. A probe that
//! is not back after a second is lost. Sequence numbers count probes; what comes back later than
//! that, twice or from elsewhere finds no probe that waits.
//!
//! Who answers to a request for the time is asked for that, because it tells the way back from the
//! way there; others for an echo, and now and then for the time as well.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use simnel_autorate::{Controller, Limits, Seen, Settings, DOWN, INTERVAL, UP};
use simnel_core::{Rate, Span, Time};

use crate::autorate::{index, Autorate, Following, Passed, Reflector, Report, Sockets};
use crate::direction::Direction;
use crate::error::Error;
use crate::gateway::Gateway;
use crate::sys::{self, Query};

/// Reflectors that are probed at a time.
const ACTIVE: u8 = 4;
/// A probe that is not back by then is lost.
const TIMEOUT: Span = Span::from_secs(1);
/// Answers that are read in one turn, so that a flood of them does not keep clients waiting.
const ANSWERS_PER_TURN: usize = 64;

/// Echoes of a reflector until it is asked for its time again.
const TIME_TRIAL: u64 = 64;

/// A probe on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    sequence: u16,
    reflector: u8,
    sent: Time,
    /// It asks for the time.
    time: bool,
    /// Sent beside an echo: no answer says nothing of the line.
    is_trial: bool,
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
}

impl Driver {
    /// A driver for `interface` whose probes go by `sockets`.
    pub(crate) fn new(
        interface: &str,
        settings: &Autorate,
        sockets: Option<Arc<Sockets>>,
        now: Time,
    ) -> Driver {
        let reflectors = settings.reflectors.len() as u8;
        let of = Settings { limits: settings.limits, reflectors, active: ACTIVE };
        let driver = Driver {
            interface: interface.to_owned(),
            settings: settings.clone(),
            sockets,
            controller: Controller::new(&of, now),
            waiting: VecDeque::new(),
            tallies: vec![Tally::default(); settings.reflectors.len()],
            sequence: 0,
            turn: 0,
            next_tick: now,
            before: [None; 2],
            rates: [None; 2],
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

    /// The interface.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    /// Readable when an answer is there.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().flat_map(|sockets| sockets.fds())
    }

    /// Time until the next tick.
    pub(crate) fn patience(&self, now: Time) -> Span {
        self.next_tick.since(now)
    }

    /// Takes answers in and, if it is time, probes and sets rates.
    ///
    /// # Errors
    /// A rate could not be set.
    pub(crate) fn turn(&mut self, gateway: &mut Gateway, now: Time) -> Result<(), Error> {
        self.take_answers(now);
        if now < self.next_tick {
            return Ok(());
        }
        // A tick that is late is not made up for.
        self.next_tick = now + INTERVAL;
        self.give_up(now);
        self.probe(now);
        if let Some(trips) = gateway.round_trips() {
            self.controller.hear(trips, now);
        }
        let seen = [Direction::Upload, Direction::Download].map(|way| self.seen(gateway, way));
        let rates = self.controller.tick(now, seen).rates;
        for direction in [Direction::Upload, Direction::Download] {
            let Some(rate) = rates[index(direction)] else { continue };
            if self.rates[index(direction)] != Some(rate) {
                gateway.set_rate(direction, rate)?;
                self.rates[index(direction)] = Some(rate);
            }
        }
        Ok(())
    }

    fn take_answers(&mut self, now: Time) {
        let Some(sockets) = &self.sockets else { return };
        let mut budget = ANSWERS_PER_TURN;
        while let Some(answer) = sockets.receive(&mut budget) {
            let asked = |probe: &Probe| {
                probe.sequence == answer.sequence
                    && self.settings.reflectors[usize::from(probe.reflector)] == answer.from
            };
            let Some(place) = self.waiting.iter().position(asked) else { continue };
            let Some(probe) = self.waiting.remove(place) else { continue };
            let rtt = now.since(probe.sent);
            let tally = &mut self.tallies[usize::from(probe.reflector)];
            tally.answered += 1;
            tally.rtt = Some(rtt);
            self.controller.answer(probe.reflector, rtt, now);
            if let Some(sent) = answer.sent {
                (tally.told_time, tally.tells_time) = (true, true);
                self.controller.came(probe.reflector, sent, now);
            }
        }
    }

    fn give_up(&mut self, now: Time) {
        while let Some(probe) = self.waiting.front().copied() {
            if now.since(probe.sent) < TIMEOUT {
                break;
            }
            self.waiting.pop_front();
            if probe.is_trial {
                continue;
            }
            let tally = &mut self.tallies[usize::from(probe.reflector)];
            tally.lost += 1;
            tally.rtt = None;
            // Either may be what is filtered, or limited.
            if probe.time == tally.tells_time {
                tally.tells_time = tally.told_time && !probe.time;
            }
            self.controller.lost(probe.reflector, now);
        }
    }

    /// Asks the reflector whose turn it is.
    fn probe(&mut self, now: Time) {
        let turn = usize::from(self.turn) % usize::from(ACTIVE);
        self.turn = self.turn.wrapping_add(1);
        let Some(reflector) = self.controller.active().nth(turn) else { return };
        let Some(address) = self.settings.reflectors.get(usize::from(reflector)) else { return };
        let tally = &mut self.tallies[usize::from(reflector)];
        let is_trial =
            address.is_ipv4() && !tally.tells_time && tally.turns.is_multiple_of(TIME_TRIAL);
        tally.turns += 1;
        let (address, tells_time) = (*address, tally.tells_time);
        self.send(reflector, address, tells_time, false, now);
        if is_trial {
            self.send(reflector, address, true, true, now);
        }
    }

    fn send(&mut self, reflector: u8, address: IpAddr, time: bool, is_trial: bool, now: Time) {
        let Some(sockets) = &self.sockets else { return };
        self.sequence = self.sequence.wrapping_add(1);
        // What cannot be sent, because there is no route, is a probe lost.
        let _ = sockets.send(address, self.sequence, time);
        let (sequence, sent) = (self.sequence, now);
        self.waiting.push_back(Probe { sequence, reflector, sent, time, is_trial });
    }

    fn seen(&mut self, gateway: &Gateway, direction: Direction) -> Seen {
        let Some(now) = gateway.passed(direction) else { return Seen::default() };
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
        let reflector = |(number, (address, tally)): (usize, (&IpAddr, &Tally))| Reflector {
            address: *address,
            active: active.contains(&(number as u8)),
            answered: tally.answered,
            lost: tally.lost,
            rtt_us: tally.rtt.map(Span::as_micros),
            tells_time: tally.tells_time,
        };
        let all = self.settings.reflectors.iter().zip(&self.tallies);
        Report {
            dev: self.interface().to_owned(),
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
