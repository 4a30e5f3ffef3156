//! The system calls that neither the standard library nor netlink framing covers.
//!
//! Everything works on borrowed or owned file descriptors; nothing here allocates after
//! construction.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use simnel_core::{Span, Time};

/// Turns -1 into the error that errno names.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut value = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `value` is a valid timespec to write to. No capability; clock_gettime(2).
    unsafe { libc::clock_gettime(id, &mut value) };
    value.tv_sec as u64 * 1_000_000_000 + value.tv_nsec as u64
}

/// CLOCK_MONOTONIC.
#[inline]
pub(crate) fn now() -> Time {
    Time(clock(libc::CLOCK_MONOTONIC))
}

/// Processor time that the calling thread has used.
pub(crate) fn thread_cpu() -> Span {
    Span(clock(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// A netlink socket of a family such as NETLINK_NETFILTER, bound to a port of its own.
pub(crate) fn netlink_socket(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain socket(2) call; the descriptor is owned from here on.
    let fd = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let fd = check(libc::socket(libc::AF_NETLINK, kind, family))?;
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all zero bytes are a valid sockaddr_nl (port 0: the kernel chooses).
    let mut address: libc::sockaddr_nl = unsafe { mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    // SAFETY: address and length describe the same sockaddr_nl. bind(2).
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            ptr::from_ref(&address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    })?;
    Ok(fd)
}

/// setsockopt(2) with an int. SO_RCVBUFFORCE needs CAP_NET_ADMIN.
pub(crate) fn set_option(fd: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            ptr::from_ref(&value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Makes the kernel space out what a TCP sender sends (SO_MAX_PACING_RATE, whose limit is far
/// beyond any line here): what the `fq` discipline does at hosts that have it.
pub fn pace_sender(socket: &impl AsRawFd) -> io::Result<()> {
    let most: u64 = 1 << 40;
    // SAFETY: pointer and length describe `most`. setsockopt(2); no capability.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            ptr::from_ref(&most).cast(),
            mem::size_of_val(&most) as libc::socklen_t,
        )
    })
    .map(drop)
}

/// SO_RCVTIMEO: how long a blocking receive waits.
pub(crate) fn set_receive_timeout(fd: &OwnedFd, timeout: Span) -> io::Result<()> {
    let value = libc::timeval {
        tv_sec: (timeout.0 / 1_000_000_000) as libc::time_t,
        tv_usec: (timeout.0 % 1_000_000_000 / 1_000) as libc::suseconds_t,
    };
    // SAFETY: pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            ptr::from_ref(&value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    })
    .map(drop)
}

/// send(2) of one datagram.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `bytes`.
    match unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// recv(2) of one datagram.
pub(crate) fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`, which nothing else uses meanwhile.
    let n = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Buffers for many datagrams of one recvmmsg(2) call.
pub(crate) struct Datagrams {
    bytes: Box<[u8]>,
    size: usize,
    headers: Box<[libc::mmsghdr]>,
    /// The headers point at these.
    _vectors: Box<[libc::iovec]>,
}

// SAFETY: the raw pointers inside lead only to `bytes` and `_vectors`, heap blocks that this value
// owns and never reallocates; moving it to another thread moves all that they lead to.
unsafe impl Send for Datagrams {}

impl Datagrams {
    /// Room for `count` datagrams of up to `size` bytes.
    pub(crate) fn new(count: usize, size: usize) -> Datagrams {
        let mut bytes = vec![0u8; count * size].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = bytes
            .chunks_mut(size)
            .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: size })
            .collect();
        let headers = vectors
            .iter_mut()
            .map(|vector| {
                // SAFETY: all zero bytes are a valid mmsghdr (no name, no control data).
                let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Datagrams { bytes, size, headers, _vectors: vectors }
    }

    /// Most datagrams in one call.
    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives what is there, without waiting; says how many datagrams.
    pub(crate) fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        // SAFETY: each header points at its own iovec, and that at its own part of `bytes`, all
        // alive as long as `self`, which is borrowed mutably.
        let n = unsafe {
            libc::recvmmsg(
                fd,
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        match check(n) {
            Ok(n) => Ok(n as usize),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Datagram `index` of the last call.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let length = (self.headers[index].msg_len as usize).min(self.size);
        &self.bytes[index * self.size..][..length]
    }
}

/// Zeroed memory that is shared with all processes forked later; never unmapped.
pub(crate) fn shared_memory<T: ZeroIsValid>() -> io::Result<&'static T> {
    const { assert!(mem::align_of::<T>() <= 4096) };
    let (size, kind) = (mem::size_of::<T>(), libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, page-aligned and zeroed, of at least the size of `T`, for which zero
    // is a valid state; nothing unmaps it.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let memory = libc::mmap(ptr::null_mut(), size, protection, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(&*memory.cast::<T>())
    }
}

/// Types of which zero bytes are a state, and that may be shared between processes.
///
/// # Safety
/// Both must be true: atomic integers and arrays and structs of them.
pub(crate) unsafe trait ZeroIsValid: Sync {}

// SAFETY: atomic integers only.
unsafe impl ZeroIsValid for crate::vitals::Board {}

/// What [`fork`] made of the calling process.
pub(crate) enum Fork {
    /// The old process; the other's number.
    Parent(rustix::process::Pid),
    /// The new one.
    Child,
}

/// Splits the process in two: fork(2). An error if it has more than one thread, since the others'
/// locks would never open again in the new process.
pub(crate) fn fork() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("the process has threads already"));
    }
    // SAFETY: there is one thread, so all memory is in a consistent state in both processes.
    let pid = check(unsafe { libc::fork() })?;
    Ok(rustix::process::Pid::from_raw(pid).map_or(Fork::Child, Fork::Parent))
}

/// Ends the process without what the process that it was forked from had meant to do at its end.
pub(crate) fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes an integer; _exit(2).
    unsafe { libc::_exit(status) }
}

/// No signal but SIGKILL and SIGSTOP does anything to the calling thread.
pub(crate) fn block_all_signals() {
    // SAFETY: the set is initialised by sigfillset before use.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
}

/// A terminal's stop key does not stop the process.
pub(crate) fn ignore_job_control() {
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: SIG_IGN is no code of ours; signal(2).
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Waits until one of `fds` is readable or `timeout` is over; says which are readable, one bit
/// each. None waits for ever. A signal ends the wait early. ppoll(2): its timer has nanoseconds.
pub(crate) fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Span>) -> u64 {
    const MOST: usize = 64;
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    let count = fds.len().min(MOST);
    for (slot, fd) in polled.iter_mut().zip(fds) {
        slot.fd = fd.as_raw_fd();
    }
    let timeout = timeout.map(|span| libc::timespec {
        tv_sec: (span.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the array holds at least `count` entries, the timeout is null or valid, no signal
    // mask.
    unsafe { libc::ppoll(polled.as_mut_ptr(), count as libc::nfds_t, timeout, ptr::null()) };
    let ready = |slot: &libc::pollfd| u64::from(slot.revents != 0);
    polled[..count].iter().enumerate().fold(0, |bits, (i, slot)| bits | ready(slot) << i)
}

/// A counter that wakes a thread out of [`wait`]: eventfd(2), non-blocking.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: plain eventfd(2) call; the descriptor is owned from here on.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Makes an event readable.
pub(crate) fn signal_event(fd: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // SAFETY: pointer and length describe `one`. Can only fail when the counter is full, that is,
    // readable.
    unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Makes an event unreadable again.
pub(crate) fn clear_event(fd: &OwnedFd) {
    let mut value = [0u8; 8];
    // SAFETY: pointer and length describe `value`. Fails harmlessly when the counter is zero.
    unsafe { libc::read(fd.as_raw_fd(), value.as_mut_ptr().cast(), value.len()) };
}

/// Blocks `signals` in the calling thread and all that it will start; they arrive at the descriptor
/// instead: signalfd(2).
pub(crate) fn signal_descriptor(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the descriptor is owned from here
    // on.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        let error = libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The next signal that waits at a descriptor of [`signal_descriptor`].
pub(crate) fn next_signal(fd: &OwnedFd) -> Option<libc::c_int> {
    let mut info = mem::MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let size = mem::size_of_val(&info);
    // SAFETY: pointer and length describe `info`; it is read only if all of it was written.
    unsafe {
        let n = libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size);
        (n == size as isize).then(|| info.assume_init().ssi_signo as libc::c_int)
    }
}

/// Timers of the calling thread fire on time instead of up to 50 µs later: PR_SET_TIMERSLACK.
pub(crate) fn precise_timers() {
    // SAFETY: takes integers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// SCHED_FIFO at `priority` for the calling thread; needs CAP_SYS_NICE or RLIMIT_RTPRIO.
pub(crate) fn realtime(priority: u8) -> io::Result<()> {
    // SAFETY: all zero bytes are a valid sched_param; pid 0 is the calling thread.
    unsafe {
        let mut parameters: libc::sched_param = mem::zeroed();
        parameters.sched_priority = libc::c_int::from(priority);
        check(libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &parameters,
        ))
        .map(drop)
    }
}

/// Keeps the process in memory; needs CAP_IPC_LOCK or RLIMIT_MEMLOCK.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: takes integers only.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(drop)
}

/// An exclusive flock(2) on `fd`, without waiting: false if another process has it.
pub(crate) fn try_lock(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: takes integers only.
    unsafe { libc::flock(fd.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// What ioctl(2) can ask about an interface by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Query {
    /// SIOCGIFINDEX.
    Index,
    /// SIOCGIFMTU, in bytes.
    Mtu,
    /// SIOCGIFTXQLEN, in packets.
    TxQueueLen,
}

/// Asks about `interface` in the calling thread's network namespace.
pub(crate) fn interface(interface: &str, query: Query) -> io::Result<u32> {
    let mut request = interface_request(interface);
    let code = match query {
        Query::Index => libc::SIOCGIFINDEX,
        Query::Mtu => libc::SIOCGIFMTU,
        Query::TxQueueLen => libc::SIOCGIFTXQLEN,
    };
    interface_ioctl(code as libc::c_ulong, &mut request)?;
    // SAFETY: all three requests answer with an int in this place of the union.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
}

/// One SIOCETHTOOL request (linux/ethtool.h) for `interface`; `command` holds the request and takes
/// the answer, in native byte order.
pub(crate) fn ethtool(interface: &str, command: &mut [u8]) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // The kernel writes at most as many bytes as the command's own count fields allow for, and the
    // callers (offload.rs) size `command` by those.
    interface_ioctl(SIOCETHTOOL, &mut request)
}

fn interface_request(interface: &str) -> libc::ifreq {
    // SAFETY: all zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

fn interface_ioctl(code: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // Sockets of any family answer; an Internet socket is nothing that the daemon needs.
    // SAFETY: plain socket(2) call; the descriptor is owned from here on.
    let socket = unsafe {
        let fd = check(libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: `request` is a valid ifreq, and what it may point at is sized by the caller.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code as _, ptr::from_mut(request)) }).map(drop)
}
