//! Frames as they arrive at an interface, with the kernel's time of each.

use std::os::fd::AsRawFd;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::world::{option, packet_socket, World};

/// Arrivals in order: nanoseconds of the system's clock, and bytes with the Ethernet header.
pub struct Arrivals(Vec<(u64, u64)>);

impl Arrivals {
    /// Notes what arrives from now on, for `time`.
    pub fn watch(
        world: &World,
        place: &str,
        interface: &'static str,
        time: Duration,
    ) -> JoinHandle<Arrivals> {
        let (ready, wait) = std::sync::mpsc::channel();
        let watcher = world.spawn(place, move || {
            let socket = packet_socket(interface);
            const PACKET_IGNORE_OUTGOING: i32 = 23;
            option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
            option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 64 << 20);
            option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
            // The kernel begins to stamp a little later; what came before is stamped when read.
            std::thread::sleep(Duration::from_millis(100));
            while arrival(&socket).is_some() {}
            ready.send(()).unwrap();
            let start = Instant::now();
            let mut arrivals = Vec::new();
            while start.elapsed() < time {
                // Seldom, so that watching costs little.
                std::thread::sleep(Duration::from_millis(50));
                arrivals.extend(std::iter::from_fn(|| arrival(&socket)));
            }
            Arrivals(arrivals)
        });
        wait.recv().unwrap();
        watcher
    }

    /// The most bits per second in two kinds of windows of a second. The first value is for windows
    /// that begin anywhere, the second for those that follow each other from the first arrival on.
    pub fn most_in_a_second(&self) -> (f64, f64) {
        const SECOND: u64 = 1_000_000_000;
        let (mut first, mut bytes, mut sliding, mut aligned) = (0, 0, 0, 0);
        let (mut window, mut in_window) = (self.0[0].0, 0);
        for &(at, length) in &self.0 {
            bytes += length;
            while at >= self.0[first].0 + SECOND {
                bytes -= self.0[first].1;
                first += 1;
            }
            while at >= window + SECOND {
                (window, in_window) = (window + SECOND, 0);
            }
            in_window += length;
            sliding = sliding.max(bytes);
            aligned = aligned.max(in_window);
        }
        (sliding as f64 * 8.0, aligned as f64 * 8.0)
    }
}

/// The next frame that waits at the socket.
fn arrival(socket: &impl AsRawFd) -> Option<(u64, u64)> {
    let mut byte = 0u8;
    let mut control = [0u64; 8];
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the header points at live buffers with their true sizes; the control message is read
    // with the system's own macros, and only if it is there and of the right kind.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = std::mem::size_of_val(&control) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        let length = libc::recvmsg(socket.as_raw_fd(), &mut header, flags);
        if length < 0 {
            return None;
        }
        let message = libc::CMSG_FIRSTHDR(&header);
        assert!(!message.is_null() && (*message).cmsg_type == libc::SO_TIMESTAMPNS);
        let time: libc::timespec =
            libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
        Some((time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, length as u64))
    }
}
