//! A network of namespaces: client – gateway – server, the last two joined by two lines.
//!
//! ```text
//! client lan0 10.77.1.2 — 10.77.1.1 lan0 gateway wan0 10.77.2.1 — 10.77.2.2 wan0 server
//!                                                wan1 10.77.3.1 — 10.77.3.2 wan1
//! ```
//! IPv6 likewise under fd77:N::/64. All of it vanishes with the value, and so does the daemon.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use simnel_testbed::{Namespace, Testbed};

pub struct World {
    places: [Namespace; 3],
    pub control: PathBuf,
    /// The daemon finds groups of the second version at their usual place.
    pub cgroups: bool,
    /// A command that begins the daemon's, if it is not begun alone.
    pub started_by: Vec<String>,
    pub daemon: Option<Child>,
    bed: Testbed,
}

const PLACES: [&str; 3] = ["c", "g", "s"];

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
        let mut bed = Testbed::new("gw-").unwrap();
        let places = PLACES.map(|name| bed.namespace(name).unwrap());
        let control = bed.directory().unwrap().join("control");
        for place in &places {
            for scope in ["all", "default"] {
                let set = |name, value| {
                    place.sysctl(&format!("net/ipv6/conf/{scope}/{name}"), value).unwrap();
                };
                set("disable_ipv6", "0");
                // Nobody else can have an address here, so none need be asked for.
                set("accept_dad", "0");
            }
        }
        let world =
            World { places, control, cgroups: false, started_by: Vec::new(), daemon: None, bed };
        for (line, left, right, net) in
            [("lan0", "c", "g", 1), ("wan0", "g", "s", 2), ("wan1", "g", "s", 3)]
        {
            world.bed.veth((world.at(left), line), (world.at(right), line)).unwrap();
            for place in [left, right] {
                // The gateway is .1 everywhere, its neighbours are .2.
                let host = if place == "g" { 1 } else { 2 };
                world.ip(place, &format!("addr add 10.77.{net}.{host}/24 dev {line}"));
                world.ip(place, &format!("addr add fd77:{net}::{host}/64 dev {line} nodad"));
            }
        }
        world.at("g").forward().unwrap();
        world.at("g").sysctl("net/ipv6/conf/all/forwarding", "1").unwrap();
        let start = Instant::now();
        while PLACES.iter().any(|place| !world.ip(place, "-6 addr show tentative").is_empty()) {
            assert!(start.elapsed() < Duration::from_secs(5), "addresses stay tentative");
            std::thread::sleep(Duration::from_millis(20));
        }
        world.ip("c", "route add default via 10.77.1.1");
        world.ip("c", "-6 route add default via fd77:1::1");
        world.ip("s", "route add 10.77.1.0/24 via 10.77.2.1");
        world.ip("s", "-6 route add fd77:1::/64 via fd77:2::1");
        world
    }

    /// The same, but the gateway joins `lan0` and `wan0` by a bridge, where it is 10.77.2.1 and
    /// fd77:2::1; the client is .3 and ::3.
    pub fn bridged() -> World {
        let world = World::new();
        world.within("g", || simnel_gateway::join("lan0", "wan0").unwrap().keep());
        for (prefix, length, nodad) in [("10.77.2.", 24, ""), ("fd77:2::", 64, "nodad")] {
            world.ip("g", &format!("addr del {prefix}1/{length} dev wan0"));
            world.ip("g", &format!("addr add {prefix}1/{length} dev simnel-br {nodad}"));
            world.ip("c", &format!("addr add {prefix}3/{length} dev lan0 {nodad}"));
        }
        world
    }

    fn at(&self, place: &str) -> &Namespace {
        &self.places[PLACES.iter().position(|name| *name == place).expect("a place")]
    }

    pub fn ns(&self, place: &str) -> String {
        self.at(place).name().to_owned()
    }

    pub fn ip(&self, place: &str, words: &str) -> String {
        run(&format!("ip -n {} {words}", self.ns(place)))
    }

    /// Runs a line of the shell, which must succeed, where /sys shows the place's interfaces.
    pub fn shell(&self, place: &str, line: &str) {
        assert!(self.try_shell(place, line), "`{line}` failed");
    }

    /// True if a line of the shell succeeds there.
    pub fn try_shell(&self, place: &str, line: &str) -> bool {
        let ns = self.ns(place);
        let status = Command::new("ip").args(["netns", "exec", &ns, "sh", "-c", line]).status();
        status.unwrap().success()
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

    /// Bit/s that an interface receives over `time` from now, Ethernet headers included. Unlike
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
        let place = self.at(place).clone();
        std::thread::spawn(move || place.enter(work).unwrap())
    }

    /// Does something in a namespace and waits for it.
    pub fn within<T: Send>(&self, place: &str, work: impl FnOnce() -> T + Send) -> T {
        self.at(place).enter(work).unwrap()
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

    /// The same, and what the daemon says is kept as well.
    pub fn start_heard(&mut self, interfaces: &[&str]) -> Said {
        let mut command = self.daemon_command(interfaces, &self.control.clone());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = Said::default();
        let (mut errors, heard) = (child.stderr.take().unwrap(), said.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = io::Read::read(&mut errors, &mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..n]);
                eprint!("{text}");
                heard.0.lock().unwrap().push_str(&text);
            }
        });
        self.daemon = Some(child);
        let interface = interfaces[0].split(['=', ' ']).next().filter(|name| *name != "file");
        said.wait_for(&format!("{}: up", interface.unwrap_or_default()));
        said
    }

    /// File of the daemon's settings, if it has one.
    pub fn file(&self) -> PathBuf {
        self.control.with_extension("file")
    }

    pub fn daemon_command(&self, interfaces: &[&str], control: &std::path::Path) -> Command {
        let mut words = self.started_by.iter().map(String::as_str).chain(["ip"]);
        let mut command = Command::new(words.next().expect("ip"));
        command
            .args(words)
            .args(["netns", "exec", &self.ns("g")])
            .arg(std::env::current_exe().unwrap())
            .env("GW_DAEMON", interfaces.join(";"))
            .env("GW_CONTROL", control)
            .env("GW_FILE", self.file())
            .stdout(Stdio::piped());
        if self.cgroups {
            command.env("GW_CGROUPS", "1");
        }
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

    /// True if somebody answers for the interface.
    pub fn serves(&self, interface: &str) -> bool {
        let client = simnel_gateway::control::Client::connect(&self.control, interface);
        client.and_then(|mut client| client.show()).is_ok()
    }

    pub fn client(&self, interface: &str) -> simnel_gateway::control::Client {
        simnel_gateway::control::Client::connect(&self.control, interface).unwrap()
    }
}

/// Words of a daemon.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<String>>);

impl Said {
    /// Times that it has said `text`.
    pub fn count(&self, text: &str) -> usize {
        self.0.lock().unwrap().matches(text).count()
    }

    /// All of it.
    pub fn all(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    pub fn wait_for(&self, text: &str) {
        let start = Instant::now();
        while self.count(text) == 0 {
            let all = self.0.lock().unwrap();
            assert!(start.elapsed() < Duration::from_secs(30), "not `{text}`, but: {all}");
            drop(all);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A socket at a port that may have been this process's a moment ago. A program that another case
/// starts has copies of its sockets until it runs.
pub fn bound(at: impl ToSocketAddrs) -> UdpSocket {
    once_free(|| UdpSocket::bind(&at))
}

/// The same for connections.
pub fn listener(at: SocketAddr) -> TcpListener {
    once_free(|| TcpListener::bind(at))
}

fn once_free<T>(take: impl Fn() -> io::Result<T>) -> T {
    let start = Instant::now();
    loop {
        match take() {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                assert!(start.elapsed() < Duration::from_secs(5), "the port stays in use");
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result.unwrap(),
        }
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
