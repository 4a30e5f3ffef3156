//! The guard: a process of its own that opens the line when the daemon's data path hangs.
//!
//! ```text
//! every 50 ms: has each lane's count of turns moved since the last look?
//! five looks without a move, or the daemon is dead:
//!     remove the rules that queue          new packets pass
//!     accept all that the kernel holds     queued packets pass
//!     kill the daemon                      the supervisor starts another one
//! ```
//!
//! It shares nothing with the daemon that could hang with it. It is another process, above the data
//! path under SCHED_FIFO, locked into memory, without locks, logs or allocations. It can act
//! because it has duplicates of the daemon's netlink sockets, which own the table and the queues.
//! The daemon sends them with what is to be said on them (`Guarded`).
//!
//! Itself fail-open: without it everything is as with it; the supervisor replaces one that dies or
//! hangs. If it and the daemon die, the kernel removes table and queues with the last socket.
//!
//! Looks are counted, not time: a machine that stood still as a whole was no hang of the daemon.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::net::{
    recvmsg, sendmsg, socketpair, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage,
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{pidfd_send_signal, Signal};
use simnel_core::Span;

use crate::nfqueue;
use crate::privileges;
use crate::sys::{self, MlockAllFlags};
use crate::vitals::{Board, Pulse, SLOTS, SLOT_LANES};

/// Time between looks.
const LOOK: Span = Span::from_millis(50);
/// Looks without progress that make a hang: 250 ms, since an idle thread moves every 100 ms.
const LOOKS: u32 = 5;
/// Time between further acceptances, for packets that were on their way past the old rules, while
/// the daemon has not died yet.
const AGAIN: Span = Span::from_millis(10);
/// Above every thread of the data path.
const PRIORITY: u8 = 99;
/// Table and queues.
const DESCRIPTORS: usize = 1 + SLOT_LANES;
/// Bytes of a message: a head, and the netlink messages that remove the rules.
const MESSAGE: usize = 512;
const WATCH: u8 = 1;
const FORGET: u8 = 2;
/// Kind, slot and number of lanes; of each lane its place in the slot and its queue, or
/// [`NO_QUEUE`].
const HEAD: usize = 3 + LANE * SLOT_LANES;
const LANE: usize = 3;
/// No number of ours.
const NO_QUEUE: u16 = 0;

/// One direction, as the guard must know it.
pub(crate) struct GuardedLane<'a> {
    /// Its place on the board.
    pub(crate) index: usize,
    /// Number of its NFQUEUE and the socket that this belongs to, if the kernel holds its packets.
    pub(crate) queue: Option<(u16, BorrowedFd<'a>)>,
}

/// The daemon's end of the line to its guard.
pub(crate) struct Guarded(OwnedFd);

/// A line between a daemon and its guard: the daemon's end, and the guard's.
pub(crate) fn line() -> io::Result<(Guarded, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (daemon, guard) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((Guarded(daemon), guard))
}

impl Guarded {
    /// The guard is to watch an interface; `stop` are the messages that remove its rules when sent
    /// on `table`.
    pub(crate) fn watch(
        &self,
        slot: usize,
        table: BorrowedFd<'_>,
        stop: &[u8],
        lanes: &[GuardedLane<'_>],
    ) -> io::Result<()> {
        let mut head = [0; HEAD];
        head[..3].copy_from_slice(&[WATCH, slot as u8, lanes.len() as u8]);
        for (lane, place) in lanes.iter().zip(head[3..].chunks_exact_mut(LANE)) {
            place[0] = (lane.index % SLOT_LANES) as u8;
            let queue = lane.queue.map_or(NO_QUEUE, |(number, _)| number);
            place[1..].copy_from_slice(&queue.to_ne_bytes());
        }
        let queues = lanes.iter().filter_map(|lane| lane.queue);
        let sockets: Vec<BorrowedFd<'_>> =
            [table].into_iter().chain(queues.map(|(_, socket)| socket)).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&sockets));
        let parts = [IoSlice::new(&head), IoSlice::new(stop)];
        sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The guard is to close what it has of an interface.
    pub(crate) fn forget(&self, slot: usize) {
        let mut head = [0; HEAD];
        head[..2].copy_from_slice(&[FORGET, slot as u8]);
        // Without a guard there is nothing to be forgotten.
        let _ = rustix::net::send(&self.0, &head, SendFlags::NOSIGNAL);
    }

    /// True if a new guard has asked to be told everything.
    pub(crate) fn asks(&self) -> bool {
        matches!(rustix::net::recv(&self.0, &mut [0u8; 8][..], RecvFlags::empty()), Ok((1.., _)))
    }
}

impl AsFd for Guarded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The guard's ties to an interface.
struct Watched {
    table: OwnedFd,
    stop: [u8; MESSAGE],
    length: usize,
    lanes: [Option<WatchedLane>; SLOT_LANES],
}

struct WatchedLane {
    index: usize,
    queue: Option<(u16, OwnedFd)>,
    pulse: Pulse,
}

/// Guards the daemon behind `daemon`, a pidfd, and ends after it.
pub(crate) fn run(board: &Board, line: &OwnedFd, daemon: &OwnedFd) {
    sys::block_all_signals();
    let _ = rustix::thread::set_name(c"simnel-guard");
    // All these only make it surer; without the right to them it guards as well as it can.
    // The daemon says so.
    let refused = sys::realtime(PRIORITY).is_err();
    board.guard_refused.store(refused.into(), Ordering::Relaxed);
    // What is mapped later could fail where the capability counts, which is given up.
    let _ = sys::lock_memory(MlockAllFlags::CURRENT);
    let mut watched = [const { None }; SLOTS];
    // The clock is found by a first look at it, which opens a file.
    let mut look = sys::now() + LOOK;
    let _ = privileges::confine_guard();
    let _ = rustix::net::send(line, b"?", SendFlags::NOSIGNAL);
    let both = [daemon.as_fd(), line.as_fd()];
    let mut heard = &both[..];
    loop {
        let ready = sys::wait(heard, Some(look.since(sys::now())));
        if ready & 1 != 0 {
            return open(board, &watched);
        }
        // A daemon that dies closes its end first: on one core it needs the processor to go on.
        if ready & 2 != 0 && !receive(board, line, &mut watched) {
            heard = &both[..1];
        }
        let now = sys::now();
        if now < look {
            continue;
        }
        look = now + LOOK;
        board.guard.fetch_add(1, Ordering::Relaxed);
        if let Some(hung) = find_hung(board, &mut watched) {
            board.hung.store(hung as u32 + 1, Ordering::Relaxed);
            open(board, &watched);
            let _ = pidfd_send_signal(daemon, Signal::KILL);
            while sys::wait(&[daemon.as_fd()], Some(AGAIN)) == 0 {
                accept(board, &watched);
                board.guard.fetch_add(1, Ordering::Relaxed);
            }
            return accept(board, &watched);
        }
    }
}

/// Looks at every lane once.
fn find_hung(board: &Board, watched: &mut [Option<Watched>; SLOTS]) -> Option<usize> {
    let lanes = watched.iter_mut().flatten().flat_map(|watched| &mut watched.lanes).flatten();
    lanes.fold(None, |hung, lane| {
        let still = lane.pulse.look(board.lane(lane.index).turns());
        hung.or((still >= LOOKS).then_some(lane.index))
    })
}

/// Lets all packets pass: those to come and those that are queued.
fn open(board: &Board, watched: &[Option<Watched>; SLOTS]) {
    for watched in watched.iter().flatten() {
        let _ = sys::send(&watched.table, &watched.stop[..watched.length]);
    }
    accept(board, watched);
}

fn accept(board: &Board, watched: &[Option<Watched>; SLOTS]) {
    for lane in watched.iter().flatten().flat_map(|watched| &watched.lanes).flatten() {
        let Some((queue, socket)) = &lane.queue else { continue };
        let last_id = board.lane(lane.index).last_id();
        let _ = nfqueue::accept_all(socket.as_fd(), *queue, last_id);
    }
}

/// Takes one message of the daemon's; one that makes no sense changes nothing. False once it has
/// closed its end.
fn receive(board: &Board, line: &OwnedFd, watched: &mut [Option<Watched>; SLOTS]) -> bool {
    let mut bytes = [0; MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let Ok(received) = recvmsg(line, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) else {
        return true;
    };
    if received.bytes == 0 {
        return false;
    }
    let mut sockets = [const { None }; DESCRIPTORS];
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            sockets.iter_mut().zip(rights).for_each(|(place, socket)| *place = Some(socket));
        }
    }
    let Some((&[kind, slot, count, ref places @ ..], stop)) =
        bytes[..received.bytes].split_first_chunk::<HEAD>()
    else {
        return true;
    };
    let (slot, [table, sockets @ ..]) = (usize::from(slot), sockets);
    let Some(place) = watched.get_mut(slot) else { return true };
    *place = None;
    let (WATCH, Some(table)) = (kind, table) else { return true };
    let mut new = Watched {
        table,
        stop: [0; MESSAGE],
        length: stop.len(),
        lanes: [const { None }; SLOT_LANES],
    };
    new.stop[..stop.len()].copy_from_slice(stop);
    let mut sockets = sockets.into_iter().flatten();
    let places = places.chunks_exact(LANE).take(count.into());
    for (told, place) in places.zip(&mut new.lanes) {
        let index = SLOT_LANES * slot + usize::from(told[0]) % SLOT_LANES;
        let queue = match u16::from_ne_bytes([told[1], told[2]]) {
            NO_QUEUE => None,
            number => sockets.next().map(|socket| (number, socket)),
        };
        let pulse = Pulse::new(board.lane(index).turns());
        *place = Some(WatchedLane { index, queue, pulse });
    }
    *place = Some(new);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_says_is_what_the_guard_knows() {
        let board = Board::shared().unwrap();
        let (guarded, line) = line().unwrap();
        let mut watched = [const { None }; SLOTS];
        let lane = |index, queue: Option<u16>| {
            let queue = queue.map(|number| (number, line.as_fd()));
            GuardedLane { index, queue }
        };
        let both = [lane(24, None), lane(28, Some(78))];
        guarded.watch(3, line.as_fd(), b"stop", &both).unwrap();
        guarded.watch(30, line.as_fd(), b"", &[lane(241, Some(79))]).unwrap();
        receive(board, &line, &mut watched);
        receive(board, &line, &mut watched);
        let third = watched[3].as_ref().unwrap();
        assert_eq!(&third.stop[..third.length], b"stop");
        let places = |watched: &Watched| {
            let queue = |lane: &WatchedLane| lane.queue.as_ref().map(|(number, _)| *number);
            let lanes = watched.lanes.iter().flatten();
            lanes.map(|lane| (lane.index, queue(lane))).collect::<Vec<_>>()
        };
        assert_eq!(places(third), [(24, None), (28, Some(78))]);
        assert_eq!(places(watched[30].as_ref().unwrap()), [(241, Some(79))]);
        guarded.forget(3);
        receive(board, &line, &mut watched);
        assert!(watched[3].is_none() && watched[30].is_some());

        // The lane that stands still is found, and only after so many looks.
        for turn in 0..LOOKS {
            assert_eq!(find_hung(board, &mut watched), None);
            if turn == 0 {
                board.lane(241).progress(1);
            }
        }
        assert_eq!(find_hung(board, &mut watched), None);
        assert_eq!(find_hung(board, &mut watched), Some(241));

        guarded.forget(30);
        assert!(receive(board, &line, &mut watched));
        drop(guarded);
        // Another test's program may have a copy until it begins.
        let start = sys::now();
        while receive(board, &line, &mut watched) {
            assert!(sys::now().since(start) < Span::from_secs(10), "the end is not seen");
        }
    }

    #[test]
    fn no_bytes_make_the_guard_stumble() {
        let board = Board::shared().unwrap();
        let (guarded, line) = line().unwrap();
        let mut watched = [const { None }; SLOTS];
        for bytes in [&[][..], &[1], &[1, 255, 9, 9, 9, 9, 9, 9], &[2; HEAD], &[1; 512]] {
            let _ = rustix::net::send(&guarded.0, bytes, SendFlags::NOSIGNAL);
            receive(board, &line, &mut watched);
            assert!(watched.iter().all(Option::is_none));
        }
    }
}
