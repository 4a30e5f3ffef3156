//! Interfaces that the kernel shapes at rates that the daemon sets.
//!
//! The daemon has the driver, the lock and the control socket, as with interfaces of its own; the
//! disciplines are the kernel's. An orderly end takes them away. A daemon that is started again,
//! and an `up` after all processes were killed, take over what is there, at the rates that it has.

use simnel_core::qdisc::Config;
use simnel_core::Time;

use super::Daemon;
use crate::control::{socket_path, Reply, Request};
use crate::control_dir::Lock;
use crate::direction::Direction;
use crate::driver::Driver;
use crate::error::Error;
use crate::gateway::Settings;
use crate::kernel::{Choice, Flows, Steered, Tracked};
use crate::notice::{Notice, Told};
use crate::presence::{Change, Presence};
use crate::supervisor::Event;
use crate::sys;
use crate::trial::Left;
use crate::words::misgiving;

/// An interface, and what its rates follow.
pub(super) struct Steering {
    line: Steered,
    driver: Driver,
    /// Changes by others to it.
    presence: Presence,
    /// Its place on the board.
    slot: usize,
    /// Of making anew what others took away.
    told: Told,
    /// Its connections.
    tracked: Tracked,
}

impl Steering {
    pub(super) fn settings(&self) -> &Settings {
        self.line.settings()
    }

    pub(super) fn driver(&self) -> &Driver {
        &self.driver
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    pub(super) fn is(&self, interface: &str) -> bool {
        self.line.interface() == interface
    }

    /// Lets the rates follow the line; an error that is new.
    pub(super) fn drive(&mut self, now: Time) -> Option<String> {
        self.driver.drive(&mut self.line, now)
    }

    /// Words of one direction's settings.
    pub(super) fn words(&self, direction: Direction) -> Option<String> {
        self.line.config(direction).map(ToString::to_string)
    }

    /// Gives one direction other settings.
    pub(super) fn change(&mut self, direction: Direction, config: Config) -> Result<(), Error> {
        self.line.change(direction, config)
    }

    /// The answer to a question that changes nothing. Disciplines are the kernel's to tell.
    pub(super) fn tell(&mut self, question: &Request, trials: Vec<Left>) -> Result<Reply, Error> {
        let done = Reply::done();
        Ok(match question {
            Request::Show {} => Reply {
                qdiscs: Some(Vec::new()),
                trials,
                trouble: self.presence.trouble().cloned(),
                autorate: Some(self.driver.report(sys::now())),
                ..done
            },
            Request::Flows {} => {
                let Flows { mut flows, untold } = self.tracked.flows(self.line.interface());
                flows.retain(|flow| self.line.config(flow.direction).is_some());
                Reply { lines: Some(Vec::new()), flows: Some(flows), untold, ..done }
            }
            Request::Rules {} => Reply { rules: Some(Vec::new()), ..done },
            Request::Record { .. } => return Err(Error::NotOurs(self.line.interface().to_owned())),
            _ => done,
        })
    }
}

impl Daemon {
    /// Lets the kernel shape at rates that are set here.
    pub(super) fn steer(&mut self, settings: Settings, held: Option<Lock>) -> Result<(), Error> {
        if let Some(error) = settings.needs_daemon() {
            return Err(error);
        }
        let said = settings.clone();
        let Some(mut settings) = self.tether.recall(settings) else { return Ok(()) };
        if settings.upload != said.upload {
            settings.plain.upload = None;
        }
        if settings.download != said.download {
            settings.plain.download = None;
        }
        let interface = settings.interface.clone();
        let (control_dir, slot) = (settings.control_dir.clone(), self.free_slot(&settings)?);
        let Some(autorate) = settings.autorate.clone() else { return Ok(()) };
        let probes = self.probes(&settings).ok_or(Error::NoProbes(interface.clone()))?;
        let warn = |way| misgiving(&interface, way, settings.direction(way)?);
        let warnings: Vec<String> = Direction::BOTH.into_iter().filter_map(warn).collect();
        let line = Steered::up(settings, held)?;
        self.tether.tell(&Event::Slot(slot, interface.clone(), control_dir.clone()));
        self.tether.tell(&Event::Steers);
        let path = socket_path(&control_dir, &interface);
        self.server
            .listen(&path, &interface)
            .map_err(|e| Error::system(format!("listening at {}", path.display()), e))?;
        if let Some(trials) = self.tether.recall_trials(&interface) {
            self.trials.resume(&interface, trials);
        }
        let now = sys::now();
        let driver = Driver::new(&interface, &autorate, Some(probes), line.found(), now);
        let (presence, _) = Presence::new(&interface, Vec::new(), now);
        let why = format!("{}; the rates are set here", line.why());
        let choice = Choice { maker: Some(line.maker()), why };
        self.in_kernel.retain(|name| *name != interface);
        let (told, tracked) = (Told::default(), Tracked::default());
        self.steered.push(Steering { line, driver, presence, slot, told, tracked });
        warnings.into_iter().for_each(|warning| self.warn(warning));
        (self.notice)(Notice::Up(interface.clone()));
        (self.notice)(Notice::Chosen(interface, choice));
        Ok(())
    }

    /// Tells what others have done to steered interfaces, and makes anew what they took away.
    pub(super) fn look_at_steered(&mut self, now: Time) {
        let mut notices = Vec::new();
        for Steering { line, driver, presence, told, .. } in &mut self.steered {
            let interface = line.interface().to_owned();
            for change in presence.look(now) {
                if change == Change::Back {
                    driver.find_interface();
                }
                notices.push(Notice::Presence(interface.clone(), change));
            }
            match line.mend() {
                Ok(false) => {}
                Ok(true) => {
                    told.forget();
                    driver.forget_errors();
                    let text = format!("{interface}: the kernel shapes it again");
                    notices.push(Notice::Warning(text));
                }
                Err(error) => {
                    let news = told.news(format!("{interface}: {error}"));
                    notices.extend(news.map(Notice::Warning));
                }
            }
        }
        notices.into_iter().for_each(|notice| (self.notice)(notice));
    }

    /// Gives back those steered interfaces of which `gone` is true.
    pub(super) fn end_steered(&mut self, gone: impl Fn(&str) -> bool) -> Result<(), Error> {
        let mut result = Ok(());
        let is_gone = |steering: &mut Steering| gone(steering.line.interface());
        let ended: Vec<Steering> = self.steered.extract_if(.., is_gone).collect();
        for Steering { line, slot, .. } in ended {
            let interface = line.interface().to_owned();
            self.tether.tell(&Event::Free(slot));
            self.server.stop_listening(&interface);
            match line.down() {
                Ok(()) => (self.notice)(Notice::Down(interface, 0)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// Goes on with other settings of a steered interface, at the rates that are set.
    pub(super) fn steer_on(&mut self, settings: Settings) -> Result<(), Error> {
        let probes = self.probes(&settings);
        let here = self.steered.iter_mut().find(|one| one.is(&settings.interface));
        let Some(Steering { line, driver, .. }) = here else { return Ok(()) };
        let others = line.settings().autorate != settings.autorate;
        let (interface, autorate) = (settings.interface.clone(), settings.autorate.clone());
        if let Some(error) = settings.needs_daemon() {
            return Err(error);
        }
        if others && probes.is_none() {
            return Err(Error::NoProbes(interface));
        }
        line.adopt(settings)?;
        if let Some(autorate) = autorate.filter(|_| others) {
            *driver = Driver::new(&interface, &autorate, probes, line.found(), sys::now());
        }
        Ok(())
    }
}
