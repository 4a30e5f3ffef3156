//! The system calls that neither the standard library nor netlink framing covers: by rustix where
//! it has them, by libc where it has not.
//!
//! Everything works on borrowed or owned file descriptors; nothing here allocates after
//! construction.

use std::io;
use std::mem;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::event::{poll, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::{FlockOperation, Mode, OFlags};
pub(crate) use rustix::mm::MlockAllFlags;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::{netlink, sockopt, AddressFamily, Protocol, SocketFlags, SocketType};
use rustix::thread::{capabilities, CapabilitySet};
use rustix::time::ClockId;
use simnel_core::{Span, Time};

/// Turns -1 into the error that errno names.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

fn clock(id: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(id);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CLOCK_MONOTONIC.
#[inline]
pub(crate) fn now() -> Time {
    Time(clock(ClockId::Monotonic))
}

/// Nanoseconds by which the calendar's clock (CLOCK_REALTIME) is ahead of [`now`].
pub(crate) fn calendar_ahead() -> u64 {
    clock(ClockId::Realtime).saturating_sub(now().0)
}

/// Processor time that the calling thread has used.
pub(crate) fn thread_cpu() -> Span {
    Span(clock(ClockId::ThreadCPUTime))
}

fn timespec(span: Span) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as _, tv_nsec: (span.0 % 1_000_000_000) as _ }
}

/// A netlink socket, bound to a port of its own; a receive waits for `patience` at most.
pub(crate) fn netlink_socket(family: Option<Protocol>, patience: Duration) -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let fd = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, family)?;
    // Port 0: the kernel chooses.
    rustix::net::bind(&fd, &netlink::SocketAddrNetlink::new(0, 0))?;
    sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(patience))?;
    Ok(fd)
}

/// setsockopt(2). SO_RCVBUFFORCE needs CAP_NET_ADMIN.
pub(crate) fn set_option<T: Copy>(
    fd: &impl AsRawFd,
    level: i32,
    name: i32,
    value: T,
) -> io::Result<()> {
    // SAFETY: pointer and length describe `value`, which the kernel reads only.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            ptr::from_ref(&value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Makes the kernel space out what a TCP sender sends (SO_MAX_PACING_RATE), as the `fq` discipline
/// does at hosts that have it. The limit is far beyond any line here.
pub fn pace_sender(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, 1u64 << 40)
}

/// send(2) of one datagram.
pub(crate) fn send(fd: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    rustix::net::send(fd, bytes, rustix::net::SendFlags::empty())?;
    Ok(())
}

/// recv(2) of one datagram.
pub(crate) fn receive(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(fd, buffer, rustix::net::RecvFlags::empty())?.0)
}

/// recvmmsg(2) without waiting, with more `flags`: how many messages came.
///
/// # Safety
/// Buffers, names and control blocks that `messages` point to must be writable, or null.
pub(crate) unsafe fn receive_many(
    fd: impl AsFd,
    messages: &mut [libc::mmsghdr],
    flags: libc::c_int,
) -> io::Result<usize> {
    let (fd, count) = (fd.as_fd().as_raw_fd(), messages.len() as libc::c_uint);
    let (messages, flags) = (messages.as_mut_ptr(), flags | libc::MSG_DONTWAIT);
    // SAFETY: pointer and length describe `messages`; the rest is promised by the caller.
    // The type of flags differs between C libraries.
    check(unsafe { libc::recvmmsg(fd, messages, count, flags as _, ptr::null_mut()) })
        .map(|n| n as usize)
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
    pub(crate) fn receive(&mut self, fd: impl AsFd) -> io::Result<usize> {
        // SAFETY: each header points at its own iovec, and that at its own part of `bytes`, all
        // alive as long as `self`, which is borrowed mutably.
        match unsafe { receive_many(fd, &mut self.headers, 0) } {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
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
    let (size, protection) = (mem::size_of::<T>(), ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping, page-aligned and zeroed, of at least the size of `T`, for which zero
    // is a valid state; nothing unmaps it.
    unsafe {
        let memory =
            rustix::mm::mmap_anonymous(ptr::null_mut(), size, protection, MapFlags::SHARED)?;
        Ok(&*memory.cast::<T>())
    }
}

/// Types of which zero bytes are a state, and that may be shared between processes.
///
/// # Safety
/// Both must be true: atomic integers and arrays and structs of them.
pub(crate) unsafe trait ZeroIsValid: Sync {}

/// Role of the calling process after [`fork`].
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

/// Day of the week, from Sunday on, and minute of the day by the local clock. How that differs from
/// UTC is read from a file the first time.
pub(crate) fn local_clock() -> (u8, u16) {
    // SAFETY: the structure is plain numbers and a pointer, filled in by localtime_r(3).
    let local = unsafe {
        let mut local: libc::tm = mem::zeroed();
        libc::localtime_r(&libc::time(ptr::null_mut()), &mut local);
        local
    };
    (local.tm_wday as u8, (local.tm_hour * 60 + local.tm_min) as u16)
}

/// The process is no longer the terminal's, nor its caller's who waits for the end of output.
pub(crate) fn leave_terminal() {
    // SAFETY: a path that ends with zero and numbers; setsid(2), open(2), dup2(2).
    unsafe {
        libc::setsid();
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..=2 {
            libc::dup2(nothing, standard);
        }
    }
}

/// A terminal's stop key does not stop the process.
pub(crate) fn ignore_job_control() {
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: SIG_IGN is no code of ours; signal(2).
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Waits until one of `fds` is readable or `timeout` is over; says which of the first 64 are
/// readable, one bit each. None waits for ever. A signal ends the wait early. ppoll(2): its timer
/// has nanoseconds.
///
/// Allocates for more than [`FEW`], which the data path's threads never have.
pub(crate) fn wait(fds: &[BorrowedFd<'_>], timeout: Option<Span>) -> u64 {
    let timeout = timeout.map(timespec);
    let entry = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let (mut few, mut many);
    let polled: &mut [PollFd<'_>] = match fds.first() {
        None => &mut [],
        Some(&first) if fds.len() <= FEW => {
            few = std::array::from_fn::<_, FEW, _>(|i| entry(*fds.get(i).unwrap_or(&first)));
            &mut few[..fds.len()]
        }
        Some(_) => {
            many = fds.iter().copied().map(entry).collect::<Vec<_>>();
            &mut many
        }
    };
    let _ = poll(polled, timeout.as_ref());
    let ready = |slot: &PollFd<'_>| u64::from(!slot.revents().is_empty());
    polled.iter().take(64).enumerate().fold(0, |bits, (i, slot)| bits | ready(slot) << i)
}

/// Descriptors that [`wait`] waits for without allocating.
const FEW: usize = 8;

/// Waits until `from` is readable, `to` is writable, or `timeout` has passed; None is not waited
/// for. Interruptions count as any of these.
pub(crate) fn wait_both(from: Option<BorrowedFd<'_>>, to: Option<BorrowedFd<'_>>, timeout: Span) {
    let from = from.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let to = to.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT));
    let timeout = timespec(timeout);
    let _ = match (from, to) {
        (Some(from), Some(to)) => poll(&mut [from, to], Some(&timeout)),
        (Some(one), None) | (None, Some(one)) => poll(&mut [one], Some(&timeout)),
        (None, None) => poll(&mut [], Some(&timeout)),
    };
}

/// A counter that wakes a thread out of [`wait`]: eventfd(2), non-blocking.
pub(crate) fn event() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes an event readable. Can only fail when the counter is full, that is, readable.
pub(crate) fn signal_event(fd: &OwnedFd) {
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// Makes an event unreadable again. Fails harmlessly when the counter is zero.
pub(crate) fn clear_event(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0u8; 8]);
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
    let mut info = [0u8; mem::size_of::<libc::signalfd_siginfo>()];
    let n = rustix::io::read(fd, &mut info).ok()?;
    // It begins with the signal's number, `ssi_signo`.
    (n == info.len()).then(|| i32::from_ne_bytes([info[0], info[1], info[2], info[3]]))
}

/// Timers of the calling thread fire on time instead of up to 50 µs later: PR_SET_TIMERSLACK.
pub(crate) fn precise_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// SCHED_FIFO at `priority` for the calling thread; needs CAP_SYS_NICE or RLIMIT_RTPRIO.
pub(crate) fn realtime(priority: u8) -> io::Result<()> {
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // All that the kernel's sched_param has.
    let priority = libc::c_int::from(priority);
    // SAFETY: reads the priority only; pid 0 is the calling thread.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    check(answer as libc::c_int).map(drop)
}

/// Bytes that the process may lock into memory; None is no limit.
pub(crate) fn lock_limit() -> io::Result<Option<u64>> {
    // SAFETY: all zero bytes are a valid rlimit, which the call fills in.
    let limit = unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit))?;
        limit.rlim_cur
    };
    Ok((limit != libc::RLIM_INFINITY).then_some(limit as _))
}

/// Lets this process and those that it starts lock all their memory, if it may lift the limit. That
/// needs CAP_SYS_RESOURCE, or no limit set by whoever started it. False if it may not.
pub(crate) fn lift_lock_limit() -> bool {
    let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads the structure only.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) };
    matches!(lock_limit(), Ok(None))
}

/// Numbers of a user and its group, by name or number; None if there is no such account. A number
/// without one has a group of the same number. For a process with one thread.
pub(crate) fn account(name: &str) -> Option<(u32, u32)> {
    let text = std::ffi::CString::new(name).ok()?;
    // SAFETY: `text` ends with a zero; what is pointed to is the C library's until the next such
    // call, which no other thread makes.
    let found = unsafe { libc::getpwnam(text.as_ptr()).as_ref() };
    let numbers = |found: &libc::passwd| (found.pw_uid, found.pw_gid);
    found.map(numbers).or_else(|| {
        // The last number stands for none.
        let uid = name.parse::<u32>().ok().filter(|uid| *uid != u32::MAX)?;
        // SAFETY: as above.
        let found = unsafe { libc::getpwuid(uid).as_ref() };
        Some(found.map_or((uid, uid), numbers))
    })
}

/// Keeps what the process has mapped, or will map, in memory. Refused where a limit counts, without
/// CAP_IPC_LOCK: a later mapping could fail.
pub(crate) fn lock_memory(which: MlockAllFlags) -> io::Result<()> {
    let counts = !capabilities(None)?.effective.contains(CapabilitySet::IPC_LOCK);
    if let Some(bytes) = lock_limit()?.filter(|_| counts) {
        let limit = format!(
            "RLIMIT_MEMLOCK is {} KiB: `ulimit -l unlimited`, or `LimitMEMLOCK=infinity` in a unit",
            bytes / 1024
        );
        return Err(io::Error::other(limit));
    }
    Ok(rustix::mm::mlockall(which)?)
}

/// Version of landlock that the kernel has and uses; None without.
pub(crate) fn landlock_version() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    let none = ptr::null::<libc::c_void>();
    // SAFETY: with this flag the call takes no attributes, and only answers.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, VERSION) };
    u32::try_from(answer).ok()
}

/// An exclusive flock(2) on `fd`, without waiting: false if another process has it.
pub(crate) fn try_lock(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// True if another process has an exclusive flock(2) on the file of `fd`. Asked by a shared one.
pub(crate) fn is_locked(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockShared)
        .is_err_and(|error| error == rustix::io::Errno::WOULDBLOCK)
}

/// Questions of ioctl(2) about an interface by name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Query {
    /// SIOCGIFINDEX.
    Index,
    /// SIOCGIFMTU, in bytes.
    Mtu,
    /// SIOCGIFTXQLEN, in packets.
    TxQueueLen,
    /// SIOCGIFFLAGS: IFF_UP and others.
    Flags,
}

/// Asks about `interface` in the calling thread's network namespace.
pub(crate) fn interface(interface: &str, query: Query) -> io::Result<u32> {
    let mut request = interface_request(interface);
    let code = match query {
        Query::Index => libc::SIOCGIFINDEX,
        Query::Mtu => libc::SIOCGIFMTU,
        Query::TxQueueLen => libc::SIOCGIFTXQLEN,
        Query::Flags => libc::SIOCGIFFLAGS,
    };
    interface_ioctl(code as libc::c_ulong, &mut request)?;
    // SAFETY: the requests answer with an int, or a short, in this place of the union.
    let (flags, number) = unsafe { (request.ifr_ifru.ifru_flags, request.ifr_ifru.ifru_ifindex) };
    Ok(match query {
        Query::Flags => u32::from(flags as u16),
        _ => number as u32,
    })
}

/// Name of the interface with the number `index` in the calling thread's network namespace.
pub(crate) fn interface_name(index: u32) -> Option<String> {
    let socket = interface_socket().ok()?;
    rustix::net::netdevice::index_to_name(socket, index).ok()
}

/// True if no interface has the number `index`; false where that cannot be found out.
pub(crate) fn is_no_interface(index: u32) -> bool {
    let name = |socket| rustix::net::netdevice::index_to_name(socket, index);
    interface_socket().is_ok_and(|socket| name(socket) == Err(rustix::io::Errno::NODEV))
}

/// One SIOCETHTOOL request (linux/ethtool.h) for `interface`; `command` holds the request and takes
/// the answer, in native byte order.
pub(crate) fn ethtool(interface: &str, command: &mut [u8]) -> io::Result<()> {
    let mut request = interface_request(interface);
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // The kernel writes at most as many bytes as the command's own count fields allow for, and the
    // callers (offload.rs) size `command` by those.
    interface_ioctl(libc::SIOCETHTOOL, &mut request)
}

fn interface_request(interface: &str) -> libc::ifreq {
    // SAFETY: all zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request
}

/// A new Ethernet device `name` that is there as long as the descriptor is open (linux/if_tun.h).
/// Packets that it sends are for nobody, but can be heard; super-packets of TCP stay whole.
pub(crate) fn tap(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    let mut request = interface_request(name);
    // Not one that is there: an error then.
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as u16 as i16;
    // SAFETY: `request` is a valid ifreq, which the kernel reads and writes.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let whole = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    // SAFETY: takes a number.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(whole)) })?;
    let mut nothing = NOTHING;
    let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
    // SAFETY: `program` is one instruction long, which is read only.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNATTACHFILTER, &raw const program) })?;
    Ok(fd)
}

/// A socket filter's program that takes nothing of any packet.
pub(crate) const NOTHING: libc::sock_filter =
    libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };

/// A socket for questions about interfaces: those of any family answer, and an Internet socket is
/// nothing that the daemon needs.
fn interface_socket() -> io::Result<OwnedFd> {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    Ok(rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?)
}

fn interface_ioctl(code: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = interface_socket()?;
    // SAFETY: `request` is a valid ifreq, and what it may point at is sized by the caller.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code as _, ptr::from_mut(request)) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_descriptors_there_are_each_ends_the_wait() {
        for number in [1, FEW, FEW + 1, 64, 65, 200] {
            let events: Vec<OwnedFd> = (0..number).map(|_| event().unwrap()).collect();
            let fds: Vec<BorrowedFd<'_>> = events.iter().map(AsFd::as_fd).collect();
            assert_eq!(wait(&fds, Some(Span::ZERO)), 0);
            signal_event(&events[number - 1]);
            // Waits for ever if that one is not waited for.
            let ready = wait(&fds, None);
            assert_eq!(ready, if number <= 64 { 1 << (number - 1) } else { 0 }, "{number}");
        }
    }
}
