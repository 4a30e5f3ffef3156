//! The process that keeps gateways running: control sockets, signals, reloading.
//!
//! One thread, one poll loop; the data path has threads of its own. SIGTERM and SIGINT give every
//! interface back without losing a packet; SIGHUP reads the settings again. Signals are blocked
//! before any thread is started and arrive at a descriptor, so that none can interrupt the data
//! path. A thread of the data path that ends by itself ends the daemon with an error; the
//! supervisor starts another one (`supervisor.rs`).
//!
//! An interface that is not there yet, or that could not be taken over after a reload, is looked
//! for each `LOOK` (`waiting.rs`).
//!
//! Bounded: [`MAX_INTERFACES`], and what [`MAX_CONNECTIONS`] clients may ask (`server`).

mod answer;
mod reload;
mod steering;
mod waiting;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use simnel_core::{Span, Time};

use crate::autorate::{Autorate, Sockets};
use crate::check::shaper_warnings;
use crate::config;
use crate::control::socket_path;
use crate::control_dir::Lock;
use crate::direction::Direction;
use crate::driver::Driver;
use crate::error::Error;
use crate::gateway::{Drained, Gateway, PortSockets, Watch};
use crate::lists::Lists;
pub use crate::notice::Notice;
use crate::notice::Told;
use crate::presence::{Change, Presence, Shaper};
use crate::privileges::{self, User};
use crate::realtime::Obstacle;
use crate::server::Server;
pub use crate::server::{MAX_CONNECTIONS, MAX_LINE};
use crate::settings::{Backend, Settings};
use crate::supervisor::{self, Event, Tether};
use crate::sys;
use crate::trial::{self, Back, Trials};
use crate::vitals::SLOTS;
use crate::words::misgiving;
use steering::Steering;
use waiting::Waiting;

/// Interfaces of one process.
pub const MAX_INTERFACES: usize = SLOTS;
/// Time between looks for interfaces that are waited for; the main loop turns at least so often.
const LOOK: Span = Span::from_millis(500);

/// A process with gateways. Make it before any thread: the process becomes three (`supervisor.rs`),
/// of which this value is in the one that serves.
pub struct Daemon {
    tether: Tether,
    signals: OwnedFd,
    /// Readable once a thread of the data path has ended.
    ended: Arc<OwnedFd>,
    server: Server,
    served: Vec<Served>,
    waiting: Vec<Waiting>,
    /// Interfaces that the kernel shapes.
    steered: Vec<Steering>,
    trials: Trials,
    /// Sockets for probes, of interfaces whose rates follow the line.
    probes: Vec<Arc<Sockets>>,
    /// Sockets for frames, of interfaces that are ports of a bridge.
    ports: Vec<PortSockets>,
    lists: Arc<Lists>,
    /// Time of the next look at what has become of interfaces.
    next_look: Time,
    /// Of the guard's priority.
    guard_told: Told,
    notice: Box<dyn FnMut(Notice)>,
}

/// An interface that a daemon will serve, with what decides about its sockets.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its rates follow the line.
    pub autorate: Option<&'a Autorate>,
    /// Its directory of locks and sockets.
    pub control_dir: &'a Path,
    /// The kernel shapes it, at rates that follow the line.
    pub is_in_kernel: bool,
    /// The kernel shapes it, or may.
    pub may_be_in_kernel: bool,
    /// It will be joined to another one by a bridge.
    pub is_joined: bool,
}

impl<'a> Interface<'a> {
    /// The interface of `settings`.
    pub fn of(settings: &'a Settings) -> Interface<'a> {
        let autorate = settings.autorate.as_ref();
        Interface {
            name: &settings.interface,
            autorate,
            control_dir: &settings.control_dir,
            is_in_kernel: settings.are_steered(),
            may_be_in_kernel: settings.backend != Backend::Userspace,
            is_joined: false,
        }
    }
}

/// An interface that was taken over.
struct Served {
    gateway: Gateway,
    /// Changes by others to it.
    presence: Presence,
    /// Controller of its rates; None where they do not follow the line.
    driver: Option<Driver>,
    /// The reason why its threads are not in real time, if they should be.
    obstacle: Option<Obstacle>,
    /// Of following the interface's own figures.
    device: Told,
    /// Of following the clock and control groups.
    told: Told,
}

impl Served {
    fn is(&self, interface: &str) -> bool {
        self.gateway.interface() == interface
    }
}

/// Outcome of a turn of the loop.
enum Next {
    Continue,
    Exit,
    Reload,
}

impl Daemon {
    /// A daemon without interfaces; `notice` is told what happens.
    ///
    /// # Errors
    /// The process has threads already, or the system lacks memory or descriptors.
    pub fn new(notice: impl FnMut(Notice) + 'static) -> Result<Daemon, Error> {
        Daemon::serving(&[], None, notice)
    }

    /// The same, with sockets for those interfaces that need some. Their autorate asks reflectors,
    /// or they are ports of a bridge whose frames the kernel cannot queue.
    ///
    /// # Errors
    /// As [`Daemon::new`]; also if the capability for such sockets is missing, or all processes
    /// cannot become those of `user`.
    pub fn serving(
        interfaces: &[Interface<'_>],
        user: Option<User>,
        mut notice: impl FnMut(Notice) + 'static,
    ) -> Result<Daemon, Error> {
        let asks = |one: &Interface<'_>| {
            let autorate = one.autorate.filter(|all| all.needs_sockets(one.is_in_kernel))?;
            Some(Sockets::open(one.name, autorate, one.is_in_kernel).map(Arc::new))
        };
        let probes = interfaces.iter().filter_map(asks).collect::<Result<_, _>>()?;
        let bridged = |one: &Interface<'_>| PortSockets::open(one.name, one.is_joined).transpose();
        let ports = interfaces.iter().filter_map(bridged).collect::<Result<_, _>>()?;
        if interfaces.iter().any(|one| one.may_be_in_kernel) {
            // The switch is root's, and another user may not turn it.
            crate::kernel::begin_counting();
        }
        let lists = Arc::new(Lists::open());
        let directories: Vec<&Path> = interfaces.iter().map(|one| one.control_dir).collect();
        privileges::at_start(user, &directories)?;
        let tether = supervisor::split(&mut notice)?;
        let ended = sys::event().map_err(|e| Error::system("making an eventfd", e))?;
        let signals = sys::signal_descriptor(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
            .map_err(|e| Error::system("making a signal descriptor", e))?;
        Ok(Daemon {
            tether,
            signals,
            ended: Arc::new(ended),
            server: Server::new().map_err(|e| Error::system("making an epoll descriptor", e))?,
            served: Vec::new(),
            waiting: Vec::new(),
            steered: Vec::new(),
            trials: Trials::default(),
            probes,
            ports,
            lists,
            next_look: Time::ZERO,
            guard_told: Told::default(),
            notice: Box::new(notice),
        })
    }

    /// Takes an interface over and listens for requests about it.
    ///
    /// # Errors
    /// As `Gateway::up`; also if the control socket cannot be made.
    pub fn up(&mut self, settings: Settings) -> Result<(), Error> {
        let held = self.tether.held(&settings);
        self.up_with(settings, held.as_ref())
    }

    /// The same of an interface whose lock may be `held` already.
    fn up_with(&mut self, settings: Settings, held: Option<&Lock>) -> Result<(), Error> {
        let Some(settings) = self.tether.recall(settings) else { return Ok(()) };
        let choice = self.choose(&settings, held)?;
        if choice.maker.is_some() {
            return Ok(());
        }
        let slot = self.free_slot(&settings)?;
        let path = socket_path(&settings.control_dir, &settings.interface);
        let misgiving =
            |direction| misgiving(&settings.interface, direction, settings.direction(direction)?);
        let both = Direction::BOTH.into_iter();
        let mut warnings: Vec<String> = both.filter_map(misgiving).collect();
        warnings.extend(shaper_warnings(&settings.interface));
        let autorate = settings.autorate.clone();
        let asked = autorate.as_ref().filter(|autorate| autorate.probes());
        let probes = self.probes(&settings);
        let own = asked.zip(probes.as_ref()).map(|(asked, probes)| probes.own(asked));
        let watch = Watch {
            board: self.tether.board,
            slot,
            ended: Arc::clone(&self.ended),
            own: own.unwrap_or_default(),
            lists: Arc::clone(&self.lists),
        };
        let control_dir = settings.control_dir.clone();
        let was_open = settings.backend == Backend::Auto;
        let ports = self.ports.iter().find(|ports| ports.interface == settings.interface);
        let held = held.map(Lock::again).transpose()?;
        let gateway = Gateway::up(settings, watch, held, ports)?;
        let interface = gateway.interface().to_owned();
        self.tether.tell(&Event::Slot(slot, interface.clone(), control_dir));
        // The lock is ours: whatever lies there is a leftover.
        self.server
            .listen(&path, &interface)
            .map_err(|e| Error::system(format!("listening at {}", path.display()), e))?;
        if let Err(e) = gateway.be_guarded(&self.tether.guard) {
            warnings.push(format!("{interface} is without a guard: {e}"));
        }
        if let Some(trials) = self.tether.recall_trials(&interface) {
            self.trials.resume(&interface, trials);
        }
        let driver = match autorate {
            Some(autorate) if autorate.probes() && probes.is_none() => {
                warnings.push(Error::NoProbes(interface.clone()).to_string());
                None
            }
            Some(autorate) => {
                Some(Driver::new(&interface, &autorate, probes, [None; 2], sys::now()))
            }
            None => None,
        };
        warnings.extend(gateway.warnings());
        let obstacle = gateway.obstacle();
        warnings.extend(obstacle.map(|obstacle| format!("{interface}: {}", obstacle.of_threads())));
        let shaper = Shaper::Process(gateway.queues());
        let (presence, tables) =
            Presence::new(&interface, shaper, gateway.is_for_port(), sys::now());
        warnings.extend(tables);
        let [device, told] = Default::default();
        self.served.push(Served { gateway, presence, driver, obstacle, device, told });
        warnings.into_iter().for_each(|warning| self.warn(warning));
        self.tell_of_guard();
        (self.notice)(Notice::Up(interface.clone()));
        if was_open {
            (self.notice)(Notice::Chosen(interface, choice));
        }
        Ok(())
    }

    /// A place on the board for the interface of `settings`.
    fn free_slot(&self, settings: &Settings) -> Result<usize, Error> {
        let served = self.served.iter().map(|served| served.gateway.slot());
        let taken: Vec<usize> = served.chain(self.steered.iter().map(Steering::slot)).collect();
        (0..SLOTS).find(|slot| !taken.contains(slot)).ok_or_else(|| {
            let many = std::io::Error::other(format!("at most {MAX_INTERFACES} in one process"));
            Error::system(format!("taking {} over", settings.interface), many)
        })
    }

    /// Sockets for the probes of `settings`, if the start has opened them.
    fn probes(&self, settings: &Settings) -> Option<Arc<Sockets>> {
        let in_kernel = settings.are_steered();
        let asked = settings.autorate.as_ref().filter(|all| all.needs_sockets(in_kernel))?;
        let fits = |probes: &&Arc<Sockets>| {
            probes.interface == settings.interface && probes.suffice(asked, in_kernel)
        };
        self.probes.iter().find(fits).cloned()
    }

    /// Settings of an interface that is served: those of commands meanwhile, too, in a daemon that
    /// was started again.
    pub fn settings(&self, interface: &str) -> Option<&Settings> {
        let served = self.served.iter().map(|served| served.gateway.settings());
        let steered = self.steered.iter().map(Steering::settings);
        served.chain(steered).find(|settings| settings.interface == interface)
    }

    /// Gives an interface that was taken over back after `span`, unless that is kept; tells the
    /// time that is left. A daemon that was started again goes on with what the first one began.
    ///
    /// # Errors
    /// The time is too short or too long.
    pub fn on_trial(&mut self, interface: &str, span: Span) -> Result<Option<Span>, Error> {
        check_trial(span)?;
        if self.settings(interface).is_some() && self.tether.recall_trials(interface).is_none() {
            self.trials.begin(interface, Back::Down, sys::now(), span);
            self.tell_trials(interface);
        }
        let trials = self.trials.of(interface);
        let ends = trials.iter().find(|trial| *trial.back() == Back::Down);
        Ok(ends.map(|trial| trial.left(sys::now())))
    }

    fn tell_trials(&self, interface: &str) {
        let trials = self.trials.of(interface);
        self.tether.tell(&Event::Trials(interface.to_owned(), trials));
    }

    /// Takes back what was on trial for long enough.
    fn end_trials(&mut self) {
        while let Some((interface, back)) = self.trials.due(sys::now()) {
            self.tell_trials(&interface);
            let done = match back {
                Back::Down => {
                    (self.notice)(Notice::TrialOver(interface.clone()));
                    self.down(&interface).map(drop)
                }
                Back::Change(direction, words) => self
                    .change(&interface, direction, &words)
                    .map(|()| (self.notice)(Notice::Reverted(interface.clone(), direction))),
            };
            if let Err(error) = done {
                self.warn(format!("the trial of {interface} has ended: {error}"));
            }
        }
    }

    /// Takes over the interfaces of a file as it was `read`. In a daemon that was started again
    /// after a reload: those which that brought, and what fails is waited for, as it was then.
    ///
    /// # Errors
    /// As [`Daemon::up_when_there`], of what was `read`.
    pub fn begin(&mut self, read: Vec<Settings>) -> Result<(), Error> {
        let reloaded = self.tether.recall_text().and_then(|text| config::parse(&text).ok());
        match reloaded {
            Some(settings) => settings.into_iter().for_each(|one| self.take_over(one)),
            None => read.into_iter().try_for_each(|one| self.up_when_there(one))?,
        }
        Ok(())
    }

    /// Tells what others have done, follows it, and tries again what could not be served.
    fn look_around(&mut self) {
        let now = sys::now();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        let mut changes = Vec::new();
        let mut warnings = Vec::new();
        for Served { gateway, presence, driver, device, told, .. } in &mut self.served {
            let interface = gateway.interface().to_owned();
            for change in presence.look(now) {
                if let Change::Mtu(_) | Change::QueueLength(_) | Change::Back = change {
                    driver.iter().for_each(Driver::find_interface);
                }
                changes.push(Notice::Presence(interface.clone(), change));
            }
            // What failed is tried again at each look.
            match presence.is_there().then(|| gateway.follow_device()) {
                Some(Err(error)) => warnings.extend(device.news(format!("{interface}: {error}"))),
                Some(Ok(())) => device.forget(),
                None => {}
            }
            let followed = gateway.follow_ports();
            warnings.extend(followed.map(|what| format!("{interface}: {what}")));
            warnings.extend(presence.new_in_tables(now));
            gateway.end_recordings(|client| self.server.has(client));
            match gateway.follow_rules() {
                Ok(()) => told.forget(),
                Err(error) => warnings.extend(told.news(format!("{interface}: {error}"))),
            }
        }
        changes.into_iter().for_each(|change| (self.notice)(change));
        warnings.into_iter().for_each(|warning| self.warn(warning));
        self.look_at_steered(now);
        self.try_waiting();
    }

    /// Serves until all interfaces were given back, by `down` or by SIGTERM or SIGINT. SIGHUP reads
    /// `file`, if there is one, again. From now on nothing else can be read, and no program
    /// started.
    ///
    /// # Errors
    /// An interface could not be given back in good order: the first of them, after all were tried.
    /// Or a thread of the data path has ended by itself.
    pub fn run(mut self, file: Option<PathBuf>) -> Result<(), Error> {
        self.confine(file.as_deref());
        self.tether.ready();
        let mut result = Ok(());
        while !self.is_idle() {
            self.tether.board.daemon.fetch_add(1, Ordering::Relaxed);
            match self.turn() {
                Next::Continue => {}
                Next::Exit => break,
                Next::Reload => match file.as_deref().map(|file| self.read_again(file)) {
                    Some(Ok((text, settings))) => self.apply(&text, settings),
                    Some(Err(e)) => self.warn(format!("settings not changed: {e}")),
                    None => self.warn("there is no file of settings to read again"),
                },
            }
            if let Some(dead) = self.dead() {
                result = Err(dead);
                break;
            }
            self.look_around();
            self.end_trials();
            self.drive();
            self.learn_names();
        }
        if result.is_ok() {
            self.tether.tell(&Event::Stopping);
        }
        while let Some(served) = self.served.pop() {
            if let Err(e) = self.end(served) {
                result = result.and(Err(e));
            }
        }
        result.and(self.end_steered(|_| true))
    }

    /// True if there is nothing to do, and nothing to wait for.
    fn is_idle(&self) -> bool {
        self.served.is_empty() && self.steered.is_empty() && self.waiting.is_empty()
    }

    /// Lets rates follow their lines.
    fn drive(&mut self) {
        let mut errors = Vec::new();
        for Served { gateway, driver, .. } in &mut self.served {
            let Some(driver) = driver else { continue };
            errors.extend(driver.drive(gateway, sys::now()));
        }
        errors.extend(self.steered.iter_mut().filter_map(|one| one.drive(sys::now())));
        errors.into_iter().for_each(|error| self.warn(error));
    }

    /// Lets rules follow host names.
    fn learn_names(&mut self) {
        let learnt = |served: &mut Served| served.gateway.learn_names(sys::now()).err();
        let mut errors: Vec<Error> = self.served.iter_mut().filter_map(learnt).collect();
        let steered = self.steered.iter_mut();
        errors.extend(steered.filter_map(|one| one.learn_names(sys::now()).err()));
        errors.into_iter().for_each(|error| self.warn(error.to_string()));
    }

    /// The error that a thread of the data path has ended by itself.
    fn dead(&self) -> Option<Error> {
        let dead = |Served { gateway, .. }: &Served| {
            let interface = gateway.interface().to_owned();
            gateway.dead().map(|direction| Error::Ended { interface, direction })
        };
        self.served.iter().find_map(dead)
    }

    /// Settings of all interfaces, served or waited for.
    fn all_settings(&self) -> impl Iterator<Item = &Settings> {
        let served = self.served.iter().map(|served| served.gateway.settings());
        let waiting = self.waiting.iter().map(|waiting| &waiting.settings);
        served.chain(waiting).chain(self.steered.iter().map(Steering::settings))
    }

    /// Gives up what serving does not need (`privileges`).
    fn confine(&mut self, file: Option<&Path>) {
        let is_locked = self.all_settings().any(|s| s.tuning.lock_memory);
        let directories: Vec<PathBuf> =
            self.all_settings().map(|s| s.control_dir.clone()).collect();
        let write: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        // Editors replace a file by another one of its name; where a link leads, too.
        let target = file.and_then(|file| file.canonicalize().ok());
        let files = file.into_iter().chain(target.as_deref());
        let beside = files.filter_map(Path::parent).map(|p| match p.as_os_str().is_empty() {
            true => Path::new("."),
            false => p,
        });
        let read: Vec<&Path> = [Path::new("/proc")].into_iter().chain(beside).collect();
        for missing in privileges::confine_control(&read, &write, is_locked) {
            self.warn(missing);
        }
    }

    /// The obstacle between the guard and real-time priority, if it was refused that.
    fn guards_obstacle(&self) -> Option<Obstacle> {
        let refused = self.tether.board.guard_refused.load(Ordering::Relaxed) != 0;
        refused.then(Obstacle::of_refused)
    }

    /// Says once that the guard is not in real time, where it has something to guard.
    fn tell_of_guard(&mut self) {
        let obstacle = self.guards_obstacle().filter(|_| !self.served.is_empty());
        let news = obstacle.and_then(|obstacle| self.guard_told.news(obstacle.of_guard()));
        news.into_iter().for_each(|text| self.warn(text));
    }

    fn warn(&mut self, text: impl Into<String>) {
        (self.notice)(Notice::Warning(text.into()));
    }

    /// Gives an interface back, and tells the supervisor that it is nobody's.
    fn release(&mut self, served: Served) -> Result<Drained, Error> {
        self.tether.tell(&Event::Free(served.gateway.slot()));
        self.end(served)
    }

    fn end(&mut self, served: Served) -> Result<Drained, Error> {
        let interface = served.gateway.interface().to_owned();
        self.server.stop_listening(&interface);
        let result = served.gateway.down(&self.tether.guard);
        if let Ok(drained) = &result {
            (self.notice)(Notice::Down(interface, drained.packets));
        }
        result
    }

    /// Waits for something to happen and deals with it.
    fn turn(&mut self) -> Next {
        let [ended, supervisor, guard] = [1, 2, 3];
        let fixed = [
            self.signals.as_fd(),
            self.ended.as_fd(),
            self.tether.supervisor(),
            self.tether.guard.as_fd(),
            self.server.as_fd(),
        ];
        let now = sys::now();
        let following = || {
            let served = self.served.iter().filter_map(|served| served.gateway.names());
            served.chain(self.steered.iter().filter_map(Steering::names))
        };
        let drivers = || {
            let served = self.served.iter().filter_map(|served| served.driver.as_ref());
            served.chain(self.steered.iter().filter_map(Steering::driver))
        };
        let names = following().filter_map(|names| names.fd(now));
        let fds: Vec<BorrowedFd<'_>> =
            fixed.into_iter().chain(names).chain(drivers().flat_map(Driver::fds)).collect();
        let patience = [self.server.patience(), self.trials.patience(now)];
        let drivers = drivers().map(|driver| driver.patience(now));
        let names = following().filter_map(|names| names.patience(now));
        let patience =
            patience.into_iter().flatten().chain(drivers).chain(names).fold(LOOK, Span::min);
        let ready = sys::wait(&fds, Some(patience));
        let is_ready = |index: usize| ready >> index & 1 == 1;
        if is_ready(ended) {
            // Also at the end of threads that were told to.
            sys::clear_event(&self.ended);
        }
        if is_ready(supervisor) {
            self.warn("the supervisor is gone: giving all interfaces back");
            return Next::Exit;
        }
        if is_ready(guard) && self.tether.guard.asks() {
            for served in &self.served {
                // It asks again when it is another one.
                let _ = served.gateway.be_guarded(&self.tether.guard);
            }
            self.tell_of_guard();
        }

        self.answer_clients();
        match sys::next_signal(&self.signals) {
            Some(libc::SIGHUP) => Next::Reload,
            Some(_) => Next::Exit,
            None => Next::Continue,
        }
    }

    /// Gives an interface back, also for daemons to come.
    fn down(&mut self, interface: &str) -> Result<Drained, Error> {
        self.trials.forget(interface);
        self.tether.tell(&Event::Down(interface.to_owned()));
        if self.waiting.iter().any(|waiting| waiting.is(interface)) {
            self.stop_waiting(|name| name == interface);
            (self.notice)(Notice::Down(interface.to_owned(), 0));
        }
        self.end_steered(|name| name == interface)?;
        let here = self.served.iter().position(|served| served.is(interface));
        let Some(index) = here else { return Ok(Drained::default()) };
        let served = self.served.remove(index);
        self.release(served)
    }
}

/// An error for times that make no trial.
fn check_trial(span: Span) -> Result<(), Error> {
    match (trial::SHORTEST..=trial::LONGEST).contains(&span) {
        true => Ok(()),
        false => Err(Error::TrialTime(span.as_micros() / 1_000)),
    }
}
