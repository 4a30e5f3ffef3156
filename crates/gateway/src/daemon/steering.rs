//! Interfaces that the kernel shapes for the daemon, which may set their rates.
//!
//! The daemon has the lock and the control socket, as with interfaces of its own. Where rates
//! follow the line it has the driver, too. The disciplines are the kernel's. An orderly end takes
//! them away. A daemon that is started again, and an `up` after all processes were killed, take
//! over what is there, at the rates that it has. Rules end with the daemon and begin anew with the
//! next.

use simnel_core::qdisc::Config;
use simnel_core::Time;

use super::Daemon;
use crate::autorate::Line;
use crate::control::{socket_path, Reply, Request};
use crate::control_dir::Lock;
use crate::direction::Direction;
use crate::driver::Driver;
use crate::error::Error;
use crate::kernel::{self, Choice, Flows, Steered, Tracked};
use crate::names::Names;
use crate::notice::{Notice, Told};
use crate::presence::{Change, Presence, Shaper};
use crate::settings::Settings;
use crate::supervisor::Event;
use crate::sys;
use crate::trial::Left;
use crate::words::misgiving;

/// An interface, and what its rates follow.
pub(super) struct Steering {
    line: Steered,
    /// Controller of its rates; None where they do not follow the line.
    driver: Option<Driver>,
    /// Changes by others to it.
    presence: Presence,
    /// Its place on the board.
    slot: usize,
    /// Of making anew what others took away.
    told: Told,
    /// Of following rules.
    ruled: Told,
    /// Its connections.
    tracked: Tracked,
}

impl Steering {
    pub(super) fn settings(&self) -> &Settings {
        self.line.settings()
    }

    pub(super) fn driver(&self) -> Option<&Driver> {
        self.driver.as_ref()
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    pub(super) fn is(&self, interface: &str) -> bool {
        self.line.interface() == interface
    }

    /// Lets the rates follow the line; an error that is new.
    pub(super) fn drive(&mut self, now: Time) -> Option<String> {
        self.driver.as_mut()?.drive(&mut self.line, now)
    }

    /// Addresses of host names, where rules have host names.
    pub(super) fn names(&self) -> Option<&Names> {
        self.line.names()
    }

    /// Lets rules follow host names.
    pub(super) fn learn_names(&mut self, now: Time) -> Result<(), Error> {
        self.line.learn_names(now)
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
                autorate: self.driver.as_ref().map(|driver| driver.report(sys::now())),
                ..done
            },
            Request::Flows {} => {
                let shaped = |direction| self.line.config(direction).is_some();
                let Flows { flows, untold } = self.tracked.flows(self.line.interface(), shaped);
                Reply { lines: Some(Vec::new()), flows: Some(flows), untold, ..done }
            }
            Request::Rules {} => Reply { rules: Some(self.line.rules()?), ..done },
            Request::Record { .. } => return Err(Error::NotOurs(self.line.interface().to_owned())),
            _ => done,
        })
    }
}

impl Daemon {
    /// Lets the kernel shape what `settings` say, if they ask for that and it can; the lock may be
    /// `held`. The choice of who shapes, in any case.
    pub(super) fn choose(
        &mut self,
        settings: &Settings,
        held: Option<&Lock>,
    ) -> Result<Choice, Error> {
        let mut line = None;
        let mut choice = kernel::choose(settings, |settings| {
            let slot = self.free_slot(settings)?;
            self.check_probes(settings)?;
            let held = held.map(Lock::again).transpose()?;
            let steered = Steered::up(settings.clone(), held)?;
            let maker = steered.maker();
            line = Some((steered, slot));
            Ok(maker)
        })?;
        if let Some((line, slot)) = line {
            if line.settings().autorate.is_some() {
                choice.why += "; the rates are set here";
            }
            self.steer(line, slot, choice.clone())?;
        }
        Ok(choice)
    }

    /// An error if rates are to follow, and the sockets for that are missing.
    fn check_probes(&self, settings: &Settings) -> Result<(), Error> {
        match settings.autorate.is_some() && self.probes(settings).is_none() {
            true => Err(Error::NoProbes(settings.interface.clone())),
            false => Ok(()),
        }
    }

    /// Serves an interface that the kernel shapes.
    fn steer(&mut self, mut line: Steered, slot: usize, choice: Choice) -> Result<(), Error> {
        let settings = line.settings();
        let (interface, control_dir) = (settings.interface.clone(), settings.control_dir.clone());
        let warn = |way| misgiving(&interface, way, settings.direction(way)?);
        let mut warnings: Vec<String> = Direction::BOTH.into_iter().filter_map(warn).collect();
        line.overhear(self.probes(line.settings()).as_deref());
        let driver = self.driver(&line);
        if driver.is_some() && !line.overhears() {
            warnings.push(format!(
                "{interface}: reflectors alone tell its delay, since copies of passing TCP's \
                 headers cannot be had: that takes CAP_NET_RAW, and of a service \
                 RestrictAddressFamilies=AF_PACKET"
            ));
        }
        self.tether.tell(&Event::Slot(slot, interface.clone(), control_dir.clone()));
        if driver.is_some() {
            self.tether.tell(&Event::Steers);
        }
        let path = socket_path(&control_dir, &interface);
        self.server
            .listen(&path, &interface)
            .map_err(|e| Error::system(format!("listening at {}", path.display()), e))?;
        if let Some(trials) = self.tether.recall_trials(&interface) {
            self.trials.resume(&interface, trials);
        }
        let (presence, tables) = Presence::new(&interface, Shaper::Kernel, None, sys::now());
        warnings.extend(tables);
        let ([told, ruled], tracked) = (Default::default(), Tracked::default());
        self.steered.push(Steering { line, driver, presence, slot, told, ruled, tracked });
        warnings.into_iter().for_each(|warning| self.warn(warning));
        (self.notice)(Notice::Up(interface.clone()));
        (self.notice)(Notice::Chosen(interface, choice));
        Ok(())
    }

    /// The driver of `line`, if its rates are to follow.
    fn driver(&self, line: &Steered) -> Option<Driver> {
        let settings = line.settings();
        let autorate = settings.autorate.as_ref()?;
        let (probes, found) = (self.probes(settings), line.found());
        Some(Driver::new(&settings.interface, autorate, probes, found, sys::now()))
    }

    /// Tells what others have done to interfaces that the kernel shapes, and makes anew what they
    /// took away.
    pub(super) fn look_at_steered(&mut self, now: Time) {
        let mut notices = Vec::new();
        for Steering { line, driver, presence, told, ruled, .. } in &mut self.steered {
            let interface = line.interface().to_owned();
            for change in presence.look(now) {
                if change == Change::Back {
                    driver.iter().for_each(Driver::find_interface);
                }
                notices.push(Notice::Presence(interface.clone(), change));
            }
            notices.extend(presence.new_in_tables(now).into_iter().map(Notice::Warning));
            // A driver looks itself, and says what it finds.
            let looked = if driver.is_some() { Ok(()) } else { line.look() };
            match (line.mend(), looked) {
                (Ok(false), Ok(())) => {}
                (Ok(true), _) => {
                    told.forget();
                    driver.iter_mut().for_each(Driver::forget_errors);
                    let text = format!("{interface}: the kernel shapes it again");
                    notices.push(Notice::Warning(text));
                }
                (Err(error), _) | (Ok(false), Err(error)) => {
                    let news = told.news(format!("{interface}: {error}"));
                    notices.extend(news.map(Notice::Warning));
                }
            }
            match line.follow_rules() {
                Ok(()) => ruled.forget(),
                Err(error) => {
                    let news = ruled.news(format!("{interface}: {error}"));
                    notices.extend(news.map(Notice::Warning));
                }
            }
        }
        notices.into_iter().for_each(|notice| (self.notice)(notice));
    }

    /// Gives back those interfaces of which `gone` is true, of what the kernel shapes.
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

    /// Goes on with other settings of an interface that the kernel shapes, at the rates that are
    /// set. The choice of who shapes: it may be a process now.
    pub(super) fn steer_on(&mut self, index: usize, settings: &Settings) -> Result<Choice, Error> {
        let others = self.steered[index].settings().autorate != settings.autorate;
        let others_ruled = self.steered[index].settings().rules != settings.rules;
        if others {
            self.check_probes(settings)?;
        }
        let line = &mut self.steered[index].line;
        let choice = kernel::choose(settings, |settings| {
            line.adopt(settings.clone())?;
            Ok(line.maker())
        })?;
        if choice.maker.is_some() && others {
            let probes = self.probes(settings);
            self.steered[index].line.overhear(probes.as_deref());
            self.steered[index].driver = self.driver(&self.steered[index].line);
        }
        if choice.maker.is_some() && others_ruled {
            (self.notice)(Notice::Rules(settings.interface.clone()));
        }
        Ok(choice)
    }
}
