//! Answers to what clients ask at the control sockets.

use simnel_core::{qdisc, Span};

use super::{check_trial, Daemon, Served};
use crate::control::{Entry, Reply, Request};
use crate::direction::Direction;
use crate::error::Error;
use crate::flows;
use crate::notice::Notice;
use crate::realtime::Obstacle;
use crate::server::{Asked, MAX_CONNECTIONS};
use crate::supervisor::Event;
use crate::sys;
use crate::trial::{self, Back};

/// Requests answered in one turn, so that signals are not kept waiting.
const REQUESTS_PER_TURN: usize = MAX_CONNECTIONS;

impl Daemon {
    /// Answers what clients have asked.
    pub(super) fn answer_clients(&mut self) {
        self.server.turn(sys::now());
        for _ in 0..REQUESTS_PER_TURN {
            let Some(asked) = self.server.next(sys::now()) else { break };
            let reply = match serde_json::from_slice::<Request>(&asked.line) {
                Ok(request) => self.answer(&asked, request),
                Err(e) => Reply::error(format!("request not understood: {e}")),
            };
            self.server.answer(&asked, &reply, sys::now());
        }
    }

    fn answer(&mut self, asked: &Asked, request: Request) -> Reply {
        let interface = asked.interface.as_str();
        if let Some(waiting) = self.waiting.iter().find(|waiting| waiting.is(interface)) {
            return match request {
                Request::Down {} => self.end_by_command(interface),
                _ => waiting.tell(&request),
            }
            .unwrap_or_else(Reply::error);
        }
        if self.settings(interface).is_none() {
            return Reply::error(format!("{interface} has been given back"));
        }
        let result = match request {
            Request::Change { direction, words } => {
                self.change(interface, direction, &words).map(|()| {
                    self.trials.decided(interface, direction);
                    self.tell_trials(interface);
                    (self.notice)(Notice::Changed(interface.to_owned(), direction));
                    Reply::done()
                })
            }
            Request::Trial { direction, words, ms } => {
                let present = self.words(interface, direction);
                let span = Span::from_millis(ms.min(trial::LONGEST.as_micros()));
                check_trial(span).and_then(|()| self.change(interface, direction, &words)).map(
                    |()| {
                        let back = Back::Change(direction, present.unwrap_or_default());
                        self.trials.begin(interface, back, sys::now(), span);
                        self.tell_trials(interface);
                        (self.notice)(Notice::Changed(interface.to_owned(), direction));
                        Reply::done()
                    },
                )
            }
            Request::Keep {} => match self.trials.forget(interface) {
                true => {
                    self.tell_trials(interface);
                    Ok(Reply::done())
                }
                false => Err(Error::NoTrial(interface.to_owned())),
            },
            Request::Down {} => self.end_by_command(interface),
            question => self.tell(asked, question),
        };
        result.unwrap_or_else(Reply::error)
    }

    /// Gives an interface back, or waits for it no longer.
    fn end_by_command(&mut self, interface: &str) -> Result<Reply, Error> {
        let drained = self.down(interface)?;
        Ok(Reply { drained: Some(drained.packets), ..Reply::done() })
    }

    /// The answer to a question that changes nothing.
    fn tell(&mut self, asked: &Asked, question: Request) -> Result<Reply, Error> {
        let interface = asked.interface.as_str();
        if let Some(steering) = self.steered.iter_mut().find(|steering| steering.is(interface)) {
            let trials = self.trials.left(interface, sys::now());
            return steering.tell(&question, trials);
        }
        let guards = self.guards_obstacle();
        let here = self.served.iter_mut().find(|served| served.is(interface));
        let Some(Served { gateway, presence, driver, obstacle, .. }) = here else {
            return Ok(Reply::done());
        };
        match question {
            Request::Show {} => gateway.show().map(|reports| Reply {
                qdiscs: Some(reports.into_iter().map(Entry::from).collect()),
                trials: self.trials.left(interface, sys::now()),
                trouble: presence.trouble().cloned(),
                warnings: [obstacle.map(Obstacle::of_threads), guards.map(Obstacle::of_guard)]
                    .into_iter()
                    .flatten()
                    .collect(),
                autorate: driver.as_ref().map(|driver| driver.report(sys::now())),
                ..Reply::done()
            }),
            Request::Flows {} => gateway.flows().map(|directions| {
                let (lines, flows) =
                    flows::entries(interface, &directions, |keys| gateway.rtt(keys));
                Reply { lines: Some(lines), flows: Some(flows), ..Reply::done() }
            }),
            Request::Record { direction } => gateway
                .record(direction, asked.from, |client| self.server.has(client))
                .map(|recorded| Reply { recorded: Some(recorded), ..Reply::done() }),
            Request::Rules {} => {
                gateway.rules().map(|rules| Reply { rules: Some(rules), ..Reply::done() })
            }
            _ => Ok(Reply::done()),
        }
    }

    /// Words of one direction's settings now.
    fn words(&self, interface: &str, direction: Direction) -> Option<String> {
        let steered = self.steered.iter().find(|steering| steering.is(interface));
        match steered {
            Some(steering) => steering.words(direction),
            None => self.settings(interface)?.direction(direction).map(ToString::to_string),
        }
    }

    /// Changes one direction, also for daemons to come.
    pub(super) fn change(
        &mut self,
        interface: &str,
        direction: Direction,
        words: &str,
    ) -> Result<(), Error> {
        let config = qdisc::parse(words)
            .map_err(|e| Error::Discipline { direction, reason: e.to_string() })?;
        let words = config.to_string();
        let none = || Error::NoDirection { interface: interface.to_owned(), direction };
        if let Some(steering) = self.steered.iter_mut().find(|steering| steering.is(interface)) {
            steering.change(direction, config)?;
        } else {
            let here = self.served.iter_mut().find(|served| served.is(interface));
            here.ok_or_else(none)?.gateway.change(direction, config)?;
        }
        self.tether.tell(&Event::Changed(interface.to_owned(), direction, words));
        Ok(())
    }
}
