//! The peer of a measurement: answers probes, sends and takes blocks, and lets nobody abuse it.
//!
//! A thread for each connection, one for datagrams. Everything has a bound ([`Limits`]): lines,
//! connections, also of one client, sessions, their time, bytes and probes. A datagram is answered
//! by one of its own length, and only to the address that opened its session over TCP. So nobody's
//! forged address gets anything. No privileges, no files.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::wire::{self, Answer, Probe, Purpose, Request, Session};
use crate::Error;

mod flow;

pub(crate) use flow::{prepare, write, Size};

/// Bounds on a server's work for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Of these, of one address.
    pub connections_of_one: usize,
    /// Sessions at a time.
    pub sessions: usize,
    /// Time of a session.
    pub time: Duration,
    /// Bytes of a session, both ways together.
    pub bytes: u64,
    /// Probes a second that are answered, on average over a session.
    pub probes: u64,
    /// Time for a first line.
    pub patience: Duration,
}

impl Default for Limits {
    /// For a line of up to 1 Gbit/s, and a few households at a time.
    fn default() -> Limits {
        Limits {
            connections: 128,
            connections_of_one: 48,
            sessions: 8,
            time: Duration::from_secs(120),
            bytes: 16 << 30,
            probes: 250,
            patience: Duration::from_secs(5),
        }
    }
}

/// Time between looks whether a session has ended.
const LOOK: Duration = Duration::from_millis(200);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    tcp: TcpListener,
    udp: UdpSocket,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// State that all threads share.
#[derive(Debug)]
struct Shared {
    limits: Limits,
    token: Option<String>,
    /// Zero of the clock that clients are told.
    start: Instant,
    sessions: Mutex<BTreeMap<Session, Arc<Live>>>,
    connections: Mutex<BTreeMap<IpAddr, usize>>,
}

/// A session.
#[derive(Debug)]
struct Live {
    peer: IpAddr,
    since: Instant,
    until: Instant,
    ended: AtomicBool,
    /// Bytes that it may still have.
    bytes: AtomicU64,
    probes: AtomicUsize,
}

impl Server {
    /// Listens at `address` for TCP and UDP; port 0 chooses one. With a `token`, only for those who
    /// know it.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(
        address: SocketAddr,
        token: Option<String>,
        limits: Limits,
    ) -> Result<Server, Error> {
        let failed = |source| Error::system(format!("listening at {address}"), source);
        // A port that is free for one protocol may be taken for the other.
        let mut left = if address.port() == 0 { 16 } else { 1 };
        let (tcp, udp) = loop {
            let tcp = TcpListener::bind(address).map_err(failed)?;
            left -= 1;
            match UdpSocket::bind(tcp.local_addr().map_err(failed)?) {
                Ok(udp) => break (tcp, udp),
                Err(_) if left > 0 => {}
                Err(error) => return Err(failed(error)),
            }
        };
        let address = tcp.local_addr().map_err(failed)?;
        let shared = Shared {
            limits,
            token,
            start: Instant::now(),
            sessions: Mutex::default(),
            connections: Mutex::default(),
        };
        Ok(Server { tcp, udp, address, shared: Arc::new(shared) })
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the process ends.
    pub fn run(self) {
        let (shared, udp) = (Arc::clone(&self.shared), self.udp);
        thread::spawn(move || echo(&udp, &shared));
        loop {
            let Ok((stream, peer)) = self.tcp.accept() else {
                // Descriptors may be short for a while.
                thread::sleep(LOOK);
                continue;
            };
            let Some(seat) = Seat::take(&self.shared, peer.ip()) else { continue };
            // Without a thread the connection closes.
            let _ = thread::Builder::new().spawn(move || seat.serve(stream));
        }
    }
}

/// Answers datagrams.
fn echo(udp: &UdpSocket, shared: &Shared) {
    let mut bytes = [0; 2048];
    loop {
        let Ok((count, from)) = udp.recv_from(&mut bytes) else { continue };
        let received = shared.now();
        let Some(mut probe) = Probe::decode(&bytes[..count]) else { continue };
        let live = shared.session(&probe.session, from.ip());
        let Some(live) = live.filter(|_| !probe.echo) else { continue };
        let earned = (live.since.elapsed().as_secs() + 2) * shared.limits.probes;
        if live.probes.fetch_add(1, Ordering::Relaxed) as u64 > earned {
            continue;
        }
        (probe.echo, probe.received, probe.answered) = (true, received, shared.now());
        let _ = udp.send_to(&probe.encode(), from);
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<Session, Arc<Live>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of `peer` with that name, until its time is over: who holds it notices later.
    fn session(&self, name: &Session, peer: IpAddr) -> Option<Arc<Live>> {
        let live = self.sessions().get(name).cloned();
        live.filter(|live| live.peer == peer && live.lives())
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Live {
    /// True while it may go on.
    fn lives(&self) -> bool {
        !self.ended.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    /// Takes bytes from what it may still have; false if that is not enough.
    fn spend(&self, bytes: u64) -> bool {
        let left = |left: u64| left.checked_sub(bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }
}

/// The right to one connection; given back when dropped.
struct Seat {
    shared: Arc<Shared>,
    peer: IpAddr,
}

impl Seat {
    fn take(shared: &Arc<Shared>, peer: IpAddr) -> Option<Seat> {
        let mut connections = shared.connections();
        let all: usize = connections.values().sum();
        let own = connections.get(&peer).copied().unwrap_or(0);
        if all >= shared.limits.connections || own >= shared.limits.connections_of_one {
            return None;
        }
        *connections.entry(peer).or_default() += 1;
        Some(Seat { shared: Arc::clone(shared), peer })
    }

    fn serve(self, mut stream: TcpStream) {
        let answer = |stream: &mut TcpStream, answer: &Answer| {
            let mut line = serde_json::to_vec(answer).unwrap_or_default();
            line.push(b'\n');
            stream.write_all(&line)
        };
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(self.shared.limits.patience));
        let Ok(line) = first_line(&mut stream, self.shared.limits.patience) else { return };
        let refuse = |reason: &str| Answer { error: Some(reason.into()), ..Answer::default() };
        let done = Answer { ok: true, ..Answer::default() };
        let request = match serde_json::from_slice::<Request>(&line) {
            Ok(request) if request.simnel == wire::VERSION => request,
            Ok(_) => return drop(answer(&mut stream, &refuse("another version is spoken here"))),
            Err(_) => return drop(answer(&mut stream, &refuse("the request is not understood"))),
        };
        if request.purpose == Purpose::Open {
            match self.open(request.token.as_deref()) {
                Ok((name, live)) => {
                    let seconds = Some(self.shared.limits.time.as_secs());
                    let session = Some(wire::spell(&name));
                    let _ = answer(&mut stream, &Answer { session, seconds, ..done });
                    hold(&mut stream, &live);
                    live.ended.store(true, Ordering::Relaxed);
                    self.shared.sessions().remove(&name);
                }
                Err(reason) => drop(answer(&mut stream, &refuse(reason))),
            }
            return;
        }
        let name = request.session.as_deref().and_then(wire::session);
        let Some(live) = name.and_then(|name| self.shared.session(&name, self.peer)) else {
            return drop(answer(&mut stream, &refuse("there is no such session")));
        };
        if answer(&mut stream, &done).is_err() {
            return;
        }
        // Whatever ends a flow, nobody has to be told.
        let _ = match request.purpose {
            Purpose::Down => flow::send(&mut stream, &live),
            Purpose::Up => flow::receive(&mut stream, &live, &self.shared),
            Purpose::Open | Purpose::Echo => Ok(()),
        };
    }

    fn open(&self, token: Option<&str>) -> Result<(Session, Arc<Live>), &'static str> {
        if let Some(wanted) = &self.shared.token {
            if !same(wanted.as_bytes(), token.unwrap_or_default().as_bytes()) {
                return Err(match token {
                    None => "this server wants a token: --token-file",
                    Some(_) => "this server wants another token than that of --token-file",
                });
            }
        }
        let mut name = Session::default();
        rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())
            .map_err(|_| "no random numbers here")?;
        let (limits, now) = (self.shared.limits, Instant::now());
        let live = Arc::new(Live {
            peer: self.peer,
            since: now,
            until: now + limits.time,
            ended: AtomicBool::new(false),
            bytes: AtomicU64::new(limits.bytes),
            probes: AtomicUsize::new(0),
        });
        let mut sessions = self.shared.sessions();
        if sessions.len() >= limits.sessions {
            return Err("others are measuring: try again in a minute");
        }
        sessions.insert(name, Arc::clone(&live));
        Ok((name, live))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut connections = self.shared.connections();
        if let Some(own) = connections.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                connections.remove(&self.peer);
            }
        }
    }
}

/// Waits for the end of a session's first connection, or of its time.
fn hold(stream: &mut TcpStream, live: &Live) {
    let _ = stream.set_read_timeout(Some(LOOK));
    while live.lives() {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_wait(&error) => {}
            Err(_) => return,
        }
    }
}

/// The first line without its end. Byte by byte: what follows is not ours to read yet.
fn first_line(stream: &mut TcpStream, patience: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + patience;
    stream.set_read_timeout(Some(patience))?;
    let mut line = Vec::new();
    while line.len() < wire::MAX_LINE && Instant::now() < deadline {
        let mut byte = [0];
        match stream.read(&mut byte)? {
            0 => break,
            _ if byte[0] == b'\n' => return Ok(line),
            _ => line.push(byte[0]),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Equality in a time that does not tell where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// True for a timeout.
pub(crate) fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
