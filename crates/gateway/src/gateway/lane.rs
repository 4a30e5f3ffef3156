//! One lane of a direction: a queue of the kernel's and the thread that serves it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use simnel_core::qdisc::Config;

use super::Gateway;
use crate::datapath::{BoxedQdisc, Remote, Surroundings, Worker};
use crate::direction::Direction;
use crate::error::Error;
use crate::nfqueue::{self, Queue, Verdicts};
use crate::passing::Passing;
use crate::segments::SegmentSizes;
use crate::sys;
use crate::vitals::lane_index;

pub(super) struct Lane {
    pub(super) direction: Direction,
    /// Its place on the board.
    pub(super) index: usize,
    pub(super) queue: u16,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) remote: Remote,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// Starts the thread of a direction's lane of that number.
    pub(super) fn start(
        gateway: &Gateway,
        (direction, number): (Direction, usize),
        qdisc: BoxedQdisc,
        (queue_number, queue, verdicts): (u16, Queue, Verdicts),
    ) -> Result<Lane, Error> {
        let socket = queue.socket();
        let index = lane_index(gateway.watch.slot, direction, number);
        let surroundings = Surroundings {
            device: gateway.device,
            bits: gateway.marks.bits,
            tuning: gateway.settings.tuning,
            segments: Arc::clone(&gateway.segments),
            passing: gateway.passing.clone().map(|shared| Passing::new(shared, direction)),
            vitals: gateway.watch.board.lane(index),
            key: gateway.key,
        };
        let (worker, remote) = Worker::new(queue, verdicts, qdisc, surroundings)
            .map_err(|e| Error::system("making an eventfd", e))?;
        let farewell = Farewell(Arc::clone(&gateway.watch.ended));
        let thread = std::thread::Builder::new()
            .name(format!("simnel-{direction}"))
            .spawn(move || {
                let _farewell = farewell;
                worker.run();
            })
            .map_err(|e| Error::system("starting a thread", e))?;
        Ok(Lane { direction, index, queue: queue_number, socket, remote, thread: Some(thread) })
    }

    /// Asks the kernel for super-packets whole if the discipline takes them.
    pub(super) fn set_whole(&self, config: &Config, segments: &SegmentSizes) -> Result<(), Error> {
        let whole = config.takes_super_packets();
        if whole {
            segments.want();
        }
        nfqueue::set_whole(self.socket.as_fd(), self.queue, whole)
            .map_err(|e| Error::system("asking for super-packets whole", e))
    }

    /// True if the thread has ended by itself, which it never should.
    pub(super) fn is_dead(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Makes an event readable at the end of a thread, also by a panic.
struct Farewell(Arc<OwnedFd>);

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
