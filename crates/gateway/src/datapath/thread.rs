//! The thread of a data path: it receives, sends and sleeps for its loop (`engine.rs`).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use simnel_core::flow::HashKey;
use simnel_core::qdisc::Device;
use simnel_core::{Span, Time};

use super::engine::{Engine, Kernel, Rest};
use super::mailbox::{mailbox, Inbox, Remote};
use super::{BoxedQdisc, Tuning};
use crate::nfqueue::{Event, Queue, Verdicts};
use crate::nft::MarkBits;
use crate::passage::Passage;
use crate::passing::Passing;
use crate::privileges;
use crate::segments::SegmentSizes;
use crate::sys;
use crate::vitals;

/// A real-time thread that has not slept for so long...
const BREATHE_AFTER: Span = Span::from_millis(5);
/// ...sleeps this long: at the kernel's limit of 95 % it would be stopped for 28-53 ms (measured).
const BREATH: Span = Span::from_micros(250);
/// A wait that ends sooner than this, by an arrival, may have been none: the core was not given up.
const REAL_SLEEP: Span = Span::from_micros(50);

/// The kernel that we run on.
impl Kernel for Queue {
    #[inline]
    fn now(&self) -> Time {
        sys::now()
    }

    fn receive(&mut self) -> io::Result<(usize, bool)> {
        Queue::receive(self)
    }

    #[inline]
    fn event(&self, index: usize) -> Event<'_> {
        Queue::event(self, index)
    }

    fn send(&mut self, verdicts: &[u8]) -> io::Result<()> {
        Queue::send(self, verdicts)
    }

    fn cpu(&self) -> Span {
        sys::thread_cpu()
    }
}

/// Our own memory, in the kernel's place.
impl Kernel for Passage {
    #[inline]
    fn now(&self) -> Time {
        sys::now()
    }

    fn receive(&mut self) -> io::Result<(usize, bool)> {
        Passage::receive(self)
    }

    #[inline]
    fn event(&self, index: usize) -> Event<'_> {
        Passage::event(self, index)
    }

    fn send(&mut self, verdicts: &[u8]) -> io::Result<()> {
        Passage::send(self, verdicts)
    }

    #[inline]
    fn is_behind(&self) -> bool {
        Passage::is_behind(self)
    }

    fn cpu(&self) -> Span {
        sys::thread_cpu()
    }
}

/// A thread's surroundings beside its queue and its discipline.
pub(crate) struct Surroundings {
    /// Properties of the interface.
    pub(crate) device: Device,
    /// Bits of the packet mark for what the discipline decides about headers.
    pub(crate) bits: MarkBits,
    /// Settings of the thread.
    pub(crate) tuning: Tuning,
    /// Shared by the interface's directions.
    pub(crate) segments: Arc<SegmentSizes>,
    /// Whom it tells of TCP's round trips.
    pub(crate) passing: Option<Passing>,
    /// Its signs of life, which the guard watches.
    pub(crate) vitals: &'static vitals::Lane,
    /// Key of the flow hashes: lanes that count a host's flows together have the same.
    pub(crate) key: HashKey,
}

/// The thread's own state.
pub(crate) struct Worker<K> {
    engine: Engine,
    queue: K,
    inbox: Inbox,
    vitals: &'static vitals::Lane,
    realtime: Option<u8>,
    is_locked: bool,
    /// The last sleep ended then.
    slept: Time,
}

impl<K: Kernel + AsFd> Worker<K> {
    /// A worker and the other end of its line.
    pub(crate) fn new(
        queue: K,
        verdicts: Verdicts,
        qdisc: BoxedQdisc,
        surroundings: Surroundings,
    ) -> io::Result<(Worker<K>, Remote)> {
        let Surroundings { device, bits, tuning, segments, passing, vitals, key } = surroundings;
        let (inbox, remote) = mailbox()?;
        let now = sys::now();
        let mut engine = Engine::new(qdisc, verdicts, (device, bits), (tuning, key), segments, now);
        engine.tells_of_passing(passing);
        let (realtime, is_locked) = (tuning.realtime, tuning.lock_memory);
        Ok((Worker { engine, queue, inbox, vitals, realtime, is_locked, slept: now }, remote))
    }

    /// Runs until told to stop.
    pub(crate) fn run(mut self) {
        sys::precise_timers();
        let realtime = self.realtime.is_some_and(|priority| sys::realtime(priority).is_ok());
        self.engine.runs_in_real_time(realtime);
        // What the kernel lacks for it is said by the control thread.
        let _ = privileges::confine_data_path(self.is_locked);
        self.slept = sys::now();
        loop {
            for command in self.inbox.take() {
                if self.engine.carry_out(command, &mut self.queue) {
                    return;
                }
            }
            let rest = self.engine.turn(&mut self.queue);
            self.inbox.tell(self.engine.passed());
            // Packets without a verdict are no progress: the guard lets them go if that lasts.
            if let Some(last_id) = self.engine.progress() {
                self.vitals.progress(last_id);
            }
            self.rest(rest);
            if realtime {
                self.breathe();
            }
        }
    }

    fn rest(&mut self, rest: Rest) {
        let interrupted = rest.time > Span::ZERO && self.sleep(rest.arrivals, rest.time) != 0;
        if let Some(until) = rest.spin_until.filter(|_| !interrupted) {
            while self.engine.time(sys::now()) < until {
                std::hint::spin_loop();
            }
        }
    }

    /// Sleeps for a time, or until a command or, if `arrivals` are waited for, a packet comes;
    /// says which.
    fn sleep(&mut self, arrivals: bool, time: Span) -> u64 {
        let fds = [self.inbox.as_fd(), self.queue.as_fd()];
        let before = sys::now();
        let ready = sys::wait(&fds[..if arrivals { 2 } else { 1 }], Some(time));
        let after = sys::now();
        if ready == 0 || after.since(before) >= REAL_SLEEP {
            self.slept = after;
        }
        ready
    }

    /// Gives the core up for a moment if that has not happened for long.
    fn breathe(&mut self) {
        if sys::now().since(self.slept) > BREATHE_AFTER {
            self.sleep(false, BREATH);
        }
    }
}
