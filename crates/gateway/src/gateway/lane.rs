//! One lane of a direction: a queue of the kernel's, or a bridge's port, and the thread that serves
//! it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use simnel_core::qdisc::Config;

use super::Gateway;
use crate::datapath::{BoxedQdisc, Remote, Surroundings, Worker};
use crate::direction::Direction;
use crate::error::Error;
use crate::guard::GuardedLane;
use crate::lists::Lists;
use crate::nfqueue::{self, counters_in, KernelCounters, Queue, Verdicts};
use crate::passage::{Control, Passage};
use crate::passing::Passing;
use crate::segments::SegmentSizes;
use crate::sys;
use crate::vitals::lane_index;

pub(super) struct Lane {
    pub(super) direction: Direction,
    /// Its place on the board.
    pub(super) index: usize,
    holder: Holder,
    pub(super) remote: Remote,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// The holder of packets until their verdict.
enum Holder {
    /// The kernel, in an NFQUEUE.
    Queue(u16, Arc<OwnedFd>),
    /// The lane's own thread, in its memory.
    Passage(Arc<Control>),
}

/// The source of a lane's packets.
pub(super) enum Source {
    /// The kernel's queue of that number.
    Queue(u16, Queue, Verdicts),
    /// A bridge's port.
    Passage(Box<Passage>),
}

impl Lane {
    /// Starts the thread of a direction's lane of that number.
    pub(super) fn start(
        gateway: &Gateway,
        (direction, number): (Direction, usize),
        qdisc: BoxedQdisc,
        source: Source,
    ) -> Result<Lane, Error> {
        let index = lane_index(gateway.watch.slot, direction, number);
        let surroundings = Surroundings {
            device: gateway.device,
            bits: gateway.marks.bits,
            tuning: gateway.settings.tuning,
            segments: Arc::clone(&gateway.segments),
            passing: Some(Passing::new(Arc::clone(&gateway.passing), direction)),
            vitals: gateway.watch.board.lane(index),
            key: gateway.key,
        };
        let farewell = Farewell(Arc::clone(&gateway.watch.ended));
        let failed = |e| Error::system("making an eventfd", e);
        let (holder, remote, thread) = match source {
            Source::Queue(number, queue, verdicts) => {
                let holder = Holder::Queue(number, queue.socket());
                let (worker, remote) =
                    Worker::new(queue, verdicts, qdisc, surroundings).map_err(failed)?;
                (holder, remote, farewell.spawn(direction, move || worker.run())?)
            }
            Source::Passage(passage) => {
                let holder = Holder::Passage(passage.control());
                // No queue has this number, and none is asked.
                let verdicts = Verdicts::new(0, 0);
                let (worker, remote) =
                    Worker::new(*passage, verdicts, qdisc, surroundings).map_err(failed)?;
                (holder, remote, farewell.spawn(direction, move || worker.run())?)
            }
        };
        Ok(Lane { direction, index, holder, remote, thread: Some(thread) })
    }

    /// Number of its NFQUEUE, if it has one.
    pub(super) fn queue(&self) -> Option<u16> {
        match self.holder {
            Holder::Queue(number, _) => Some(number),
            Holder::Passage(_) => None,
        }
    }

    /// It as the guard must know it.
    pub(super) fn guarded(&self) -> GuardedLane<'_> {
        let queue = match &self.holder {
            Holder::Queue(number, socket) => Some((*number, socket.as_fd())),
            Holder::Passage(_) => None,
        };
        GuardedLane { index: self.index, queue }
    }

    /// Counters of whoever holds the packets.
    pub(super) fn counters(&self, lists: &Lists) -> Option<KernelCounters> {
        match &self.holder {
            Holder::Queue(number, _) => counters_in(&lists.queues().ok()?, *number),
            Holder::Passage(control) => Some(control.counters()),
        }
    }

    /// Takes super-packets whole if the discipline does.
    pub(super) fn set_whole(&self, config: &Config, segments: &SegmentSizes) -> Result<(), Error> {
        let whole = config.takes_super_packets();
        if whole {
            segments.want();
        }
        match &self.holder {
            Holder::Queue(number, socket) => nfqueue::set_whole(socket.as_fd(), *number, whole)
                .map_err(|e| Error::system("asking for super-packets whole", e)),
            Holder::Passage(control) => {
                control.set_whole(whole);
                Ok(())
            }
        }
    }

    /// Changes how many packets the kernel keeps at most. The memory of our own is what it is.
    pub(super) fn set_length(&self, length: u32) -> Result<(), Error> {
        match &self.holder {
            Holder::Queue(number, socket) => nfqueue::set_length(socket.as_fd(), *number, length)
                .map_err(|e| Error::system("setting the length of the queue", e)),
            Holder::Passage(_) => Ok(()),
        }
    }

    /// Lets all pass that the kernel holds: the thread is dead, and what it held went with it.
    pub(super) fn accept_all(&self, last_id: u32) {
        if let Holder::Queue(number, socket) = &self.holder {
            let _ = nfqueue::accept_all(socket.as_fd(), *number, last_id);
        }
    }

    /// Gives the kernel's queue back.
    pub(super) fn unbind(&self) {
        if let Holder::Queue(number, socket) = &self.holder {
            let _ = nfqueue::unbind(socket.as_fd(), *number);
        }
    }

    /// True if the thread has ended by itself, which it never should.
    pub(super) fn is_dead(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Makes an event readable at the end of a thread, also by a panic.
struct Farewell(Arc<OwnedFd>);

impl Farewell {
    /// A direction's thread, at whose end this is said.
    fn spawn(
        self,
        direction: Direction,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, Error> {
        let work = move || {
            let _farewell = self;
            work();
        };
        std::thread::Builder::new()
            .name(format!("simnel-{direction}"))
            .spawn(work)
            .map_err(|e| Error::system("starting a thread", e))
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        sys::signal_event(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_thread_is_heard_of() {
        let ended = Arc::new(sys::event().unwrap());
        let farewell = Farewell(Arc::clone(&ended));
        assert_eq!(sys::wait(&[ended.as_fd()], Some(simnel_core::Span::ZERO)), 0);
        let thread = std::thread::spawn(move || {
            let _farewell = farewell;
            panic!("as meant by the test");
        });
        assert!(thread.join().is_err());
        assert_eq!(sys::wait(&[ended.as_fd()], Some(simnel_core::Span::ZERO)), 1);
    }
}
