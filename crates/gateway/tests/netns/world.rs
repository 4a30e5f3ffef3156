//! A network of namespaces: client – gateway – server, the last two joined by two lines.
//!
//! ```text
//! client lan0 10.77.1.2 — 10.77.1.1 lan0 gateway wan0 10.77.2.1 — 10.77.2.2 wan0 server
//!                                                wan1 10.77.3.1 — 10.77.3.2 wan1
//! ```
//! IPv6 likewise under fd77:N::/64. All of it vanishes with the value, and so does the daemon.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub struct World {
    prefix: String,
    pub control: PathBuf,
    pub daemon: Option<Child>,
}

/// Runs a command, which must succeed.
pub fn run(words: &str) -> String {
    let mut parts = words.split_whitespace();
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{words}` failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl World {
    pub fn new() -> World {
        static WORLDS: AtomicUsize = AtomicUsize::new(0);
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("gw-{}-{number}", std::process::id());
        let control = std::env::temp_dir().join(&prefix);
        let world = World { prefix, control, daemon: None };
        for place in ["c", "g", "s"] {
            run(&format!("ip netns add {}", world.ns(place)));
            // Nobody else can have an address here, so none need be asked for.
            world.within(place, || {
                for scope in ["all", "default"] {
                    std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad"), "0")
                        .unwrap();
                }
            });
            world.ip(place, "link set lo up");
        }
        for (line, left, right, net) in
            [("lan0", "c", "g", 1), ("wan0", "g", "s", 2), ("wan1", "g", "s", 3)]
        {
            let (a, b) = (world.ns(left), world.ns(right));
            run(&format!("ip link add {line} netns {a} type veth peer name {line} netns {b}"));
            // The gateway is .1 everywhere, its neighbours are .2.
            for (place, host) in
                [(left, if left == "g" { 1 } else { 2 }), (right, if right == "g" { 1 } else { 2 })]
            {
                world.ip(place, &format!("addr add 10.77.{net}.{host}/24 dev {line}"));
                world.ip(place, &format!("addr add fd77:{net}::{host}/64 dev {line} nodad"));
                world.ip(place, &format!("link set {line} up"));
            }
        }
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            world.within("g", move || {
                std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
            });
        }
        let start = Instant::now();
        while ["c", "g", "s"]
            .iter()
            .any(|place| !world.ip(place, "-6 addr show tentative").is_empty())
        {
            assert!(start.elapsed() < Duration::from_secs(5), "addresses stay tentative");
            std::thread::sleep(Duration::from_millis(20));
        }
        world.ip("c", "route add default via 10.77.1.1");
        world.ip("c", "-6 route add default via fd77:1::1");
        world.ip("s", "route add 10.77.1.0/24 via 10.77.2.1");
        world.ip("s", "-6 route add fd77:1::/64 via fd77:2::1");
        world
    }

    pub fn ns(&self, place: &str) -> String {
        format!("{}-{place}", self.prefix)
    }

    pub fn ip(&self, place: &str, words: &str) -> String {
        run(&format!("ip -n {} {words}", self.ns(place)))
    }

    /// Runs a line of the shell, which must succeed, where /sys shows the place's interfaces.
    pub fn shell(&self, place: &str, line: &str) {
        let ns = self.ns(place);
        let status = Command::new("ip").args(["netns", "exec", &ns, "sh", "-c", line]).status();
        assert!(status.unwrap().success(), "`{line}` failed");
    }

    pub fn nft(&self, words: &[&str]) -> String {
        self.try_nft(words).unwrap_or_else(|errors| panic!("nft {words:?}: {errors}"))
    }

    pub fn try_nft(&self, words: &[&str]) -> Result<String, String> {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.ns("g"), "nft"])
            .args(words)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    /// What an interface receives over `time` from now, Ethernet headers included, in bit/s. Unlike
    /// what arrives in order, this does not jump when TCP fills a gap.
    pub fn wire_rate(&self, place: &str, interface: &str, time: Duration) -> f64 {
        let name = format!("{interface}:");
        let bytes = move || {
            let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
            let line = text.lines().find_map(|line| line.trim().strip_prefix(&name));
            let count: u64 = line.unwrap().split_whitespace().next().unwrap().parse().unwrap();
            (Instant::now(), count)
        };
        self.within(place, move || {
            let (start, before) = bytes();
            std::thread::sleep(time);
            let (end, after) = bytes();
            (after - before) as f64 * 8.0 / (end - start).as_secs_f64()
        })
    }

    /// A thread in a namespace.
    pub fn spawn<T: Send + 'static>(
        &self,
        place: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let path = format!("/var/run/netns/{}", self.ns(place));
        std::thread::spawn(move || {
            let namespace = File::open(&path).unwrap();
            // SAFETY: takes integers only; affects the calling thread alone.
            let done = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(done, 0, "setns: {}", io::Error::last_os_error());
            work()
        })
    }

    /// Does something in a namespace and waits for it.
    pub fn within<T: Send + 'static>(
        &self,
        place: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.spawn(place, work).join().expect("the thread in the namespace panicked")
    }

    /// Starts a daemon in the gateway and waits until it is up. `interfaces`:
    /// `name=download|upload`.
    pub fn start(&mut self, interfaces: &[&str]) {
        let mut child = self.daemon_command(interfaces, &self.control.clone()).spawn().unwrap();
        let mut ready = String::new();
        let out = child.stdout.take().unwrap();
        io::BufRead::read_line(&mut io::BufReader::new(out), &mut ready).unwrap();
        assert_eq!(ready, "up\n", "the daemon did not start");
        self.daemon = Some(child);
    }

    pub fn daemon_command(&self, interfaces: &[&str], control: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.ns("g")])
            .arg(std::env::current_exe().unwrap())
            .env("GW_DAEMON", interfaces.join(";"))
            .env("GW_CONTROL", control)
            .stdout(Stdio::piped());
        command
    }

    pub fn signal(&self, signal: i32) {
        let pid = self.daemon.as_ref().unwrap().id() as i32;
        // SAFETY: takes integers only; the child is ours and not yet waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Waits for the daemon's end.
    pub fn reap(&mut self) -> ExitStatus {
        let mut child = self.daemon.take().unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "the daemon does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the daemon in good order.
    pub fn stop(&mut self) {
        self.signal(libc::SIGTERM);
        assert!(self.reap().success());
    }

    pub fn client(&self, interface: &str) -> simnel_gateway::control::Client {
        simnel_gateway::control::Client::connect(&self.control, interface).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        for place in ["c", "g", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.ns(place)]).output();
        }
        let _ = std::fs::remove_dir_all(&self.control);
    }
}

/// setsockopt with an int.
pub fn option(socket: &impl AsRawFd, level: i32, name: i32, value: i32) {
    // SAFETY: pointer and length describe `value`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4) };
    assert_eq!(result, 0, "setsockopt: {}", io::Error::last_os_error());
}

/// Congestion control of a TCP socket.
pub fn cubic(socket: &impl AsRawFd) {
    let name = b"cubic";
    // SAFETY: pointer and length describe `name`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as u32,
        )
    };
    assert_eq!(result, 0, "no cubic: {}", io::Error::last_os_error());
}

/// A packet socket on an interface of the calling thread's namespace.
pub fn packet_socket(interface: &str) -> OwnedFd {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls; `address` is a valid sockaddr_ll, all zero but for what is set.
    unsafe {
        let fd =
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into());
        assert!(fd >= 0, "packet socket: {}", io::Error::last_os_error());
        let name = std::ffi::CString::new(interface).unwrap();
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
        let size = std::mem::size_of_val(&address) as u32;
        assert_eq!(libc::bind(fd, (&raw const address).cast(), size), 0);
        OwnedFd::from_raw_fd(fd)
    }
}

/// Receives a datagram and the TOS or traffic class that it came with.
pub fn receive_tos(socket: &std::net::UdpSocket) -> io::Result<(Vec<u8>, u8)> {
    let mut bytes = vec![0u8; 2048];
    let mut control = [0u64; 16];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: the header points at live buffers with their true sizes; control messages are walked
    // with the system's own macros.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut vector;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = std::mem::size_of_val(&control) as _;
        let n = libc::recvmsg(socket.as_raw_fd(), &mut header, 0);
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        bytes.truncate(n as usize);
        let message = libc::CMSG_FIRSTHDR(&header);
        let tos = if message.is_null() { 0 } else { *libc::CMSG_DATA(message) };
        Ok((bytes, tos))
    }
}

pub fn address(text: &str, port: u16) -> SocketAddr {
    SocketAddr::new(text.parse().unwrap(), port)
}
