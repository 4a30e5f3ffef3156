//! Requests of the control thread to a data path, in a mailbox that is opened when a flag says so.
//!
//! The data path's thread never waits here, but for the instant in which a command is put in.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as Reply, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use simnel_core::qdisc::{Config, ConfigError, Device};

use super::{BoxedQdisc, Status};
use crate::autorate::Passed;
use crate::flows::{self, Flow, Part};
use crate::record::Recorded;
use crate::sys;

/// Longest wait of the control thread for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Requests of the control thread.
pub(super) enum Command {
    Report(SyncSender<Status>),
    /// A spare for a change.
    Prepare(Box<Config>, SyncSender<Result<BoxedQdisc, ConfigError>>),
    /// The change itself; what is left of the spare goes back, to be freed by whoever asked.
    Adopt(BoxedQdisc, SyncSender<BoxedQdisc>),
    Replace(BoxedQdisc, Device, SyncSender<()>),
    Drain(SyncSender<u64>),
    /// One part of the table of flows, into memory of the asker's.
    Flows(usize, Vec<Flow>, SyncSender<Part>),
    /// Arrivals that were recorded. Recording goes on in the memory that comes with it, or ends.
    Record(Option<Vec<u8>>, SyncSender<Recorded>),
    Stop,
}

/// State that both threads reach.
struct Shared {
    attention: AtomicBool,
    /// Bytes that arrived, were released, and are queued, as of the last turn.
    passed: [AtomicU32; 3],
    wake: OwnedFd,
    commands: Mutex<Vec<Command>>,
}

/// The control thread's end.
pub(crate) struct Remote {
    shared: Arc<Shared>,
}

/// The thread did not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer;

impl Remote {
    fn send(&self, command: Command) {
        self.shared.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.shared.attention.store(true, Ordering::Release);
        sys::signal_event(&self.shared.wake);
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, NoAnswer> {
        let (sender, reply): (_, Reply<T>) = sync_channel(1);
        self.send(command(sender));
        reply.recv_timeout(PATIENCE).map_err(|_: RecvTimeoutError| NoAnswer)
    }

    /// Fresh statistics.
    pub(crate) fn status(&self) -> Result<Status, NoAnswer> {
        self.ask(Command::Report)
    }

    /// Bytes that the discipline has seen; the thread is not asked.
    pub(crate) fn passed(&self) -> Passed {
        let [arrived, released, backlog] =
            self.shared.passed.each_ref().map(|count| count.load(Ordering::Relaxed));
        Passed { arrived, released, backlog }
    }

    fn prepare(&self, config: Config) -> Result<Result<BoxedQdisc, ConfigError>, NoAnswer> {
        self.ask(|reply| Command::Prepare(Box::new(config), reply))
    }

    fn adopt(&self, spare: BoxedQdisc) -> Result<(), NoAnswer> {
        self.ask(|reply| Command::Adopt(spare, reply)).map(drop)
    }

    /// Another discipline, made for `device`, takes over what is queued.
    pub(crate) fn replace(&self, qdisc: BoxedQdisc, device: Device) -> Result<(), NoAnswer> {
        self.ask(|reply| Command::Replace(qdisc, device, reply))
    }

    /// Lets all queued packets go, in the order in which they came, and from then on each at once.
    /// Says how many.
    pub(crate) fn drain(&self) -> Result<u64, NoAnswer> {
        self.ask(Command::Drain)
    }

    /// A part of the table of flows.
    pub(crate) fn flows(&self, part: usize) -> Result<Part, NoAnswer> {
        self.ask(|reply| Command::Flows(part, flows::empty_part(), reply))
    }

    /// Arrivals that were recorded since the last call. Recording goes on in `room`, or ends.
    pub(crate) fn record(&self, room: Option<Vec<u8>>) -> Result<Recorded, NoAnswer> {
        self.ask(|reply| Command::Record(room, reply))
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.send(Command::Stop);
    }
}

/// Changes the settings of the disciplines that run in all lanes of a direction, or in none. Each
/// has prepared the change before the first adopts it.
pub(crate) fn configure<'a>(
    lanes: impl Iterator<Item = &'a Remote> + Clone,
    config: &Config,
) -> Result<Result<(), ConfigError>, NoAnswer> {
    let mut spares = Vec::new();
    for lane in lanes.clone() {
        match lane.prepare(config.clone())? {
            Ok(spare) => spares.push(spare),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    lanes.zip(spares).try_for_each(|(lane, spare)| lane.adopt(spare)).map(Ok)
}

/// The data path's end.
pub(super) struct Inbox {
    shared: Arc<Shared>,
}

impl Inbox {
    /// Takes the commands that came since the last call.
    #[inline]
    pub(super) fn take(&self) -> Vec<Command> {
        match self.shared.attention.swap(false, Ordering::Acquire) {
            true => self.open(),
            false => Vec::new(),
        }
    }

    #[cold]
    fn open(&self) -> Vec<Command> {
        sys::clear_event(&self.shared.wake);
        let mut commands = self.shared.commands.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *commands)
    }

    /// Tells the control thread what passed.
    #[inline]
    pub(super) fn tell(&self, passed: Passed) {
        let counts = [passed.arrived, passed.released, passed.backlog];
        for (place, count) in self.shared.passed.iter().zip(counts) {
            place.store(count, Ordering::Relaxed);
        }
    }
}

impl AsFd for Inbox {
    /// Readable when a command is there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

/// Both ends of a mailbox.
pub(super) fn mailbox() -> std::io::Result<(Inbox, Remote)> {
    let shared = Arc::new(Shared {
        attention: AtomicBool::new(false),
        passed: Default::default(),
        wake: sys::event()?,
        commands: Mutex::new(Vec::new()),
    });
    Ok((Inbox { shared: Arc::clone(&shared) }, Remote { shared }))
}
