//! The process that keeps a daemon and its guard running.
//!
//! ```text
//! supervisor     the process that was started; waits, starts again what ended, passes signals on
//! ├── daemon     rules, queues, data path, control sockets
//! └── guard      opens the line if the data path hangs (`guard.rs`)
//! ```
//!
//! Nothing on the line depends on the supervisor. If it dies, the daemon gives its interfaces back.
//! If it is stopped, nothing is started again meanwhile.
//!
//! A daemon that ends before it is ready, or because it was told to, is the end of the supervisor
//! as well. Any other end is mended: another daemon begins. It gets what the last one was told
//! since the settings were read, at the start or by a reload (`reloaded.rs`). In the pause before
//! it the interfaces' locks are the supervisor's, and go to that daemon: nobody else takes them
//! over meanwhile. After too many such ends in a row the supervisor gives up with an error that the
//! service manager sees. Only the supervisor tells the service manager who is alive (sd_notify(3)).

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, pidfd_open, waitpid, Pid, PidfdFlags, Signal, WaitOptions};
use serde::{Deserialize, Serialize};
use simnel_core::{qdisc, Span};

use crate::control_dir::Lock;
use crate::direction::Direction;
use crate::error::Error;
use crate::guard::{self, Guarded};
use crate::notice::Notice;
use crate::reloaded::Texts;
use crate::settings::Settings;
use crate::sys::{self, Fork};
use crate::trial::Trial;
use crate::vitals::{whose_lane, Board, Pulse, SLOTS};

/// Time between looks at the guard and the daemon's main loop.
const LOOK: Duration = Duration::from_secs(1);
/// Looks without a move after which a guard is replaced.
const GUARD_LOOKS: u32 = 2;
/// Looks without a move after which the service manager is no longer told that all is well.
const DAEMON_LOOKS: u32 = 3;
/// Pauses before another daemon is started, for those that did not live for [`GOOD_LIFE`].
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(16),
];
/// The last of them.
pub(crate) const LONGEST_PAUSE: Duration = PAUSES[PAUSES.len() - 1];
const GOOD_LIFE: Duration = Duration::from_secs(60);
/// Bytes of a line, and events that are remembered: more than any daemon in its right mind says.
const MOST_BYTES: usize = 64 * 1024;
const MOST_EVENTS: usize = 4 * SLOTS;
/// Looks without progress after which a daemon that sets the kernel's rates is killed. The kernel
/// keeps the last rates that it was given, and nobody would raise them.
const STEERING_LOOKS: u32 = 10;
/// Time for a guard to end after its daemon; then it is killed.
const GUARD_END: Duration = Duration::from_secs(1);

/// Messages of a daemon to its supervisor: one JSON object a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// It serves.
    Ready,
    /// It ends because it was told to.
    Stopping,
    /// An interface has a place on the board, and its lock in a directory.
    Slot(usize, String, PathBuf),
    /// It sets the kernel's rates.
    Steers,
    /// A place on the board is free again.
    Free(usize),
    /// A direction was changed by a command; its settings in `tc`'s words.
    Changed(String, Direction, String),
    /// An interface was given back by a command.
    Down(String),
    /// Trials of an interface that run now.
    Trials(String, Vec<Trial>),
    /// The settings were read again, and are here of both [`Texts`]: commands before that no longer
    /// matter. None if none could be kept.
    Reloaded(Option<usize>),
}

/// The daemon's ties to its supervisor and guard.
pub(crate) struct Tether {
    pub(crate) board: &'static Board,
    pub(crate) guard: Guarded,
    supervisor: UnixStream,
    /// Changes that earlier daemons were told.
    remembered: Vec<Event>,
    texts: Arc<Texts>,
    /// Locks of the interfaces that the last daemon served.
    locks: Vec<Lock>,
}

impl Tether {
    /// Tells the supervisor that all is set up; nobody else need wait for what is not served.
    pub(crate) fn ready(&mut self) {
        self.locks.clear();
        self.tell(&Event::Ready);
    }

    /// The lock of an interface, if it was held for us.
    pub(crate) fn held(&mut self, settings: &Settings) -> Option<Lock> {
        let is_it = |lock: &Lock| lock.is_of(&settings.control_dir, &settings.interface);
        self.locks.iter().position(is_it).map(|index| self.locks.swap_remove(index))
    }

    /// Tells the supervisor something. If that is gone, nobody needs to know.
    pub(crate) fn tell(&self, event: &Event) {
        if let Ok(mut line) = serde_json::to_vec(event) {
            line.push(b'\n');
            let _ = (&self.supervisor).write_all(&line);
        }
    }

    /// Readable when the supervisor is gone.
    pub(crate) fn supervisor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.supervisor.as_fd()
    }

    /// Settings as the last daemon had them; None if it had given the interface back.
    pub(crate) fn recall(&self, mut settings: Settings) -> Option<Settings> {
        for event in &self.remembered {
            match event {
                Event::Changed(interface, direction, words) if *interface == settings.interface => {
                    let Ok(config) = qdisc::parse(words) else { continue };
                    *settings.direction_mut(*direction) = Some(config);
                    *settings.plain.direction_mut(*direction) = None;
                }
                Event::Down(interface) if *interface == settings.interface => return None,
                _ => {}
            }
        }
        Some(settings)
    }

    /// Trials of an interface when the last daemon ended; None if there never were any.
    pub(crate) fn recall_trials(&self, interface: &str) -> Option<Vec<Trial>> {
        self.remembered.iter().find_map(|event| match event {
            Event::Trials(name, trials) if name == interface => Some(trials.clone()),
            _ => None,
        })
    }

    /// Earlier changes no longer matter: daemons to come begin with `text`.
    ///
    /// # Errors
    /// It cannot be kept for them.
    pub(crate) fn reloaded(&mut self, text: &str) -> std::io::Result<()> {
        let before = self.holding();
        let spare = before.map_or(0, |place| 1 - place);
        let kept = self.texts.write(spare, text);
        let event = Event::Reloaded(if kept.is_ok() { Some(spare) } else { before });
        self.tell(&event);
        self.remembered = vec![event];
        kept
    }

    /// Place of the text that the last reload brought.
    fn holding(&self) -> Option<usize> {
        self.remembered.iter().find_map(|event| match event {
            Event::Reloaded(place) => place.filter(|place| *place < 2),
            _ => None,
        })
    }

    /// The text that the last reload brought, if there was one.
    pub(crate) fn recall_text(&self) -> Option<String> {
        self.texts.read(self.holding()?).ok()
    }
}

/// Splits the process: returns in the daemon, and in each that follows it. The supervisor ends in
/// here.
///
/// # Errors
/// The process has threads already, or the system lacks memory or descriptors.
pub(crate) fn split(notice: &mut dyn FnMut(Notice)) -> Result<Tether, Error> {
    let failed = |e| Error::system("starting daemon and guard", e);
    let handled = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD];
    let signals = sys::signal_descriptor(&handled).map_err(failed)?;
    let board = Board::shared().map_err(failed)?;
    let texts = Arc::new(Texts::new());
    let (mut remembered, mut locks) = (Vec::new(), Vec::new());
    let mut short_lives = 0;
    for generation in 0.. {
        let family = match Family::start(board, &mut remembered, &texts, locks).map_err(failed)? {
            Started::Daemon(tether) => return Ok(tether),
            Started::Supervisor(family) => family,
        };
        let born = Instant::now();
        let ended = family.watch(&signals, &mut remembered, notice);
        if ended.wanted || generation == 0 && !ended.ready {
            std::process::exit(ended.status);
        }
        locks = ended.locks;
        short_lives = if born.elapsed() < GOOD_LIFE { short_lives + 1 } else { 0 };
        let Some(&pause) = PAUSES.get(short_lives) else { break };
        notice(Notice::Warning(format!("{}; starting again", ended.reason)));
        if stopped_during(pause, &signals) {
            std::process::exit(0);
        }
    }
    notice(Notice::Warning("the daemon keeps ending: giving up".into()));
    std::process::exit(1)
}

/// True if a signal asked to stop meanwhile.
fn stopped_during(pause: Duration, signals: &OwnedFd) -> bool {
    let start = Instant::now();
    loop {
        let left = pause.saturating_sub(start.elapsed());
        sys::wait(&[signals.as_fd()], Some(span(left)));
        match sys::next_signal(signals) {
            Some(libc::SIGTERM | libc::SIGINT) => return true,
            None if left.is_zero() => return false,
            _ => {}
        }
    }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

enum Started {
    Daemon(Tether),
    Supervisor(Family),
}

/// The end of a daemon, as its supervisor saw it.
struct Ended {
    /// It had served.
    ready: bool,
    /// It was told to.
    wanted: bool,
    /// For whoever waits for the supervisor.
    status: i32,
    reason: String,
    /// Locks of what it served.
    locks: Vec<Lock>,
}

/// A daemon and its guard.
struct Family {
    board: &'static Board,
    daemon: Pid,
    /// The same, for the guard.
    pidfd: OwnedFd,
    /// Closed when the supervisor ends; None once the daemon closed its own end.
    stream: Option<UnixStream>,
    received: Vec<u8>,
    /// The guard's end of its line, for the next one.
    line: OwnedFd,
    guard: Option<Pid>,
    guard_pulse: Pulse,
    daemon_pulse: Pulse,
    /// Interfaces by their places on the board, with the directories of their locks.
    served: Vec<Option<(String, PathBuf)>>,
    /// It sets the kernel's rates.
    steers: bool,
    ready: bool,
    wanted: bool,
}

impl Family {
    fn start(
        board: &'static Board,
        remembered: &mut Vec<Event>,
        texts: &Arc<Texts>,
        locks: Vec<Lock>,
    ) -> std::io::Result<Started> {
        board.hung.store(0, Ordering::Relaxed);
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let (guarded, line) = guard::line()?;
        let daemon = match sys::fork()? {
            Fork::Child => {
                sys::ignore_job_control();
                let remembered = std::mem::take(remembered);
                return Ok(Started::Daemon(Tether {
                    board,
                    guard: guarded,
                    supervisor: theirs,
                    remembered,
                    texts: Arc::clone(texts),
                    locks,
                }));
            }
            Fork::Parent(daemon) => daemon,
        };
        let mut family = Family {
            board,
            daemon,
            pidfd: pidfd_open(daemon, PidfdFlags::empty())?,
            stream: Some(ours),
            received: Vec::new(),
            line,
            guard: None,
            guard_pulse: Pulse::default(),
            daemon_pulse: Pulse::default(),
            served: vec![None; SLOTS],
            steers: false,
            ready: false,
            wanted: false,
        };
        // A guard with copies of the locks would keep them from others.
        drop((theirs, guarded, locks));
        family.start_guard();
        Ok(Started::Supervisor(family))
    }

    /// Without a guard the line works, too; the next look tries again.
    fn start_guard(&mut self) {
        match sys::fork() {
            Ok(Fork::Child) => {
                // A copy would hide the supervisor's end from the daemon.
                self.stream = None;
                guard::run(self.board, &self.line, &self.pidfd);
                sys::exit_at_once(0);
            }
            Ok(Fork::Parent(guard)) => self.guard = Some(guard),
            Err(_) => self.guard = None,
        }
        self.guard_pulse = Pulse::new(self.board.guard.load(Ordering::Relaxed));
    }

    /// Waits for the daemon's end.
    fn watch(
        mut self,
        signals: &OwnedFd,
        remembered: &mut Vec<Event>,
        notice: &mut dyn FnMut(Notice),
    ) -> Ended {
        let mut look = Instant::now() + LOOK;
        loop {
            let fds = [Some(signals.as_fd()), self.stream.as_ref().map(AsFd::as_fd)];
            let fds: Vec<_> = fds.into_iter().flatten().collect();
            sys::wait(&fds, Some(span(look.saturating_duration_since(Instant::now()))));
            self.listen(remembered);
            while let Some(signal) = sys::next_signal(signals) {
                match signal {
                    libc::SIGCHLD => {}
                    libc::SIGHUP => drop(kill_process(self.daemon, Signal::HUP)),
                    _ => {
                        self.wanted = true;
                        let _ = kill_process(self.daemon, Signal::TERM);
                    }
                }
            }
            if let Some(ended) = self.reap(remembered) {
                return ended;
            }
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                self.look(notice);
            }
        }
    }

    /// Hears what the daemon has to say.
    fn listen(&mut self, remembered: &mut Vec<Event>) {
        let mut buffer = [0; 4096];
        while let Some(stream) = &mut self.stream {
            match stream.read(&mut buffer) {
                Ok(0) => self.stream = None,
                Ok(n) => self.received.extend(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.stream = None,
            }
        }
        while let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Event::Ready) => {
                    self.ready = true;
                    notify_service_manager("READY=1");
                }
                Ok(Event::Stopping) => {
                    self.wanted = true;
                    notify_service_manager("STOPPING=1");
                }
                Ok(Event::Slot(slot, name, control_dir)) => {
                    if let Some(place) = self.served.get_mut(slot) {
                        *place = Some((name, control_dir));
                    }
                }
                Ok(Event::Steers) => self.steers = true,
                Ok(Event::Free(slot)) => {
                    if let Some(place) = self.served.get_mut(slot) {
                        *place = None;
                    }
                }
                Ok(event @ Event::Reloaded(_)) => *remembered = vec![event],
                Ok(event) if remembered.len() < MOST_EVENTS => {
                    remembered.retain(|earlier| !replaces(&event, earlier));
                    remembered.push(event);
                }
                Ok(_) | Err(_) => {}
            }
        }
        if self.received.len() > MOST_BYTES {
            self.received.clear();
        }
    }

    /// Sees who has ended.
    fn reap(&mut self, remembered: &mut Vec<Event>) -> Option<Ended> {
        while let Ok(Some((pid, status))) = waitpid(None, WaitOptions::NOHANG) {
            if Some(pid) == self.guard {
                self.guard = None;
            }
            if pid == self.daemon {
                self.listen(remembered);
                let locks = self.take_locks();
                self.end_guard();
                return Some(self.judge(status, locks));
            }
        }
        None
    }

    /// Locks of what the daemon served, unless somebody was quicker: then that is theirs.
    fn take_locks(&self) -> Vec<Lock> {
        let served = self.served.iter().flatten();
        served.filter_map(|(name, directory)| Lock::take(directory, name).ok()).collect()
    }

    fn judge(&self, status: rustix::process::WaitStatus, locks: Vec<Lock>) -> Ended {
        let hung = self.board.hung.load(Ordering::Relaxed) as usize;
        let code = status
            .exit_status()
            .unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or_default());
        let reason = match hung.checked_sub(1) {
            Some(lane) => {
                let (slot, direction) = whose_lane(lane);
                let name = self.served.get(slot).and_then(Option::as_ref);
                let name = name.map_or("", |(name, _)| name.as_str());
                format!("{name}: the {direction} made no progress, so its traffic was let pass")
            }
            None => match status.terminating_signal() {
                Some(signal) => format!("the daemon was ended by signal {signal}"),
                None => format!("the daemon ended with status {code}"),
            },
        };
        // Told to end, but killed by the guard on the way: packets may have been lost.
        let status = if hung > 0 { 1 } else { code };
        Ended { ready: self.ready, wanted: self.wanted, status, reason, locks }
    }

    /// It ends by itself; then nothing of ours is left in the kernel.
    fn end_guard(&mut self) {
        let Some(guard) = self.guard.take() else { return };
        let start = Instant::now();
        while let Ok(None) = waitpid(Some(guard), WaitOptions::NOHANG) {
            if start.elapsed() > GUARD_END {
                let _ = kill_process(guard, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Replaces a guard that is gone or hangs, and tells the service manager that all is well.
    fn look(&mut self, notice: &mut dyn FnMut(Notice)) {
        let daemon_still = self.daemon_pulse.look(self.board.daemon.load(Ordering::Relaxed));
        let guard_still = self.guard_pulse.look(self.board.guard.load(Ordering::Relaxed));
        if self.steers && daemon_still == STEERING_LOOKS {
            let _ = kill_process(self.daemon, Signal::KILL);
            notice(Notice::Warning("the daemon stands still, and rates with it: ending it".into()));
        }
        match self.guard {
            Some(guard) if guard_still >= GUARD_LOOKS => {
                // Its end comes as a signal, and the next look starts another one.
                let _ = kill_process(guard, Signal::KILL);
                notice(Notice::Warning("the guard hangs: replacing it".into()));
            }
            Some(_) if daemon_still < DAEMON_LOOKS => notify_service_manager("WATCHDOG=1"),
            Some(_) => {}
            None => {
                notice(Notice::Warning("the guard is gone: starting another one".into()));
                self.start_guard();
            }
        }
    }
}

/// True if `event` makes what `earlier` said irrelevant.
fn replaces(event: &Event, earlier: &Event) -> bool {
    match (event, earlier) {
        (Event::Changed(a, way, _), Event::Changed(b, other, _)) => a == b && way == other,
        (Event::Trials(a, _), Event::Trials(b, _)) => a == b,
        (Event::Down(a), Event::Changed(b, ..) | Event::Down(b) | Event::Trials(b, _)) => a == b,
        _ => false,
    }
}

/// Tells systemd (sd_notify(3)) if it asked to be told. Failure only delays it.
fn notify_service_manager(state: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
        None => SocketAddr::from_pathname(&name),
    };
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(state.as_bytes(), &address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(interface: &str, direction: Direction, words: &str) -> Event {
        Event::Changed(interface.into(), direction, words.into())
    }

    #[test]
    fn the_next_daemon_has_what_the_last_one_was_told() {
        let (supervisor, _other) = UnixStream::pair().unwrap();
        let (guard, _line) = guard::line().unwrap();
        let remembered = vec![
            changed("wan", Direction::Upload, "cake bandwidth 8mbit"),
            changed("lan", Direction::Upload, "cake bandwidth 9mbit"),
            Event::Down("old".into()),
        ];
        let board = Board::shared().unwrap();
        let (texts, locks) = (Arc::new(Texts::new()), Vec::new());
        let mut tether = Tether { board, guard, supervisor, remembered, texts, locks };
        let recalled = tether.recall(Settings::new("wan")).unwrap();
        assert_eq!(recalled.upload, Some(qdisc::parse("cake bandwidth 8mbit").unwrap()));
        assert_eq!(recalled.download, None);
        assert!(tether.recall(Settings::new("old")).is_none());
        assert_eq!(tether.recall_text(), None);
        for text in ["upload = 1", "none"] {
            tether.reloaded(text).unwrap();
            assert!(tether.recall(Settings::new("old")).is_some());
            assert_eq!(tether.recall_text().as_deref(), Some(text));
        }
    }

    #[test]
    fn of_two_changes_the_last_one_is_remembered() {
        let first = changed("wan", Direction::Upload, "cake");
        assert!(replaces(&changed("wan", Direction::Upload, "sfq"), &first));
        assert!(!replaces(&changed("wan", Direction::Download, "sfq"), &first));
        assert!(!replaces(&changed("lan", Direction::Upload, "sfq"), &first));
        assert!(replaces(&Event::Down("wan".into()), &first));
        assert!(!replaces(&first, &Event::Down("wan".into())));
    }
}
