//! A session with our own server: echoes by datagrams, and blocks over TCP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::load::{Carried, Load, Meter, Plan, Rate, Requests};
use super::probe::{Language, Prober};
use crate::error::late;
use crate::server::{is_wait, prepare, write, Size};
use crate::way::Way;
use crate::wire::{self, Answer, Blocks, Count, Head, Probe, Purpose, Request};
use crate::Error;

/// Time to connect, and for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between counts of a download.
const COUNTS: u64 = 20_000_000;
/// Time between requests on loaded connections, and on new ones.
const LOADED_REQUESTS: Duration = Duration::from_millis(100);
const NEW_REQUESTS: Duration = Duration::from_millis(200);

/// The peer's command.
const COMMAND: &str = "simnel serve --test";

/// A session; it ends when this is dropped.
pub(crate) struct Session {
    address: SocketAddr,
    name: wire::Session,
    _control: TcpStream,
}

impl Session {
    /// Opens a session.
    pub(crate) fn open(address: SocketAddr, token: Option<String>) -> Result<Session, Error> {
        let (control, answer) = ask(address, Purpose::Open, None, token)?;
        let name = answer.session.as_deref().and_then(wire::session);
        let name = name.ok_or_else(|| protocol(address, "it names no session"))?;
        Ok(Session { address, name, _control: control })
    }

    /// Starts echoes.
    pub(crate) fn probes(&self, interval: Duration, start: Instant) -> Result<Prober, Error> {
        let failed = |source| Error::system("opening a UDP socket", source);
        let any: SocketAddr =
            if self.address.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
        let socket = UdpSocket::bind(any).map_err(failed)?;
        socket.connect(self.address).map_err(failed)?;
        Prober::datagrams(socket, Echoes(self.name), interval, start).map_err(failed)
    }
}

/// A first line each way.
fn ask(
    address: SocketAddr,
    purpose: Purpose,
    session: Option<&wire::Session>,
    token: Option<String>,
) -> Result<(TcpStream, Answer), Error> {
    let failed = |source| Error::unreachable(address, COMMAND, source);
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    let answer = request(&mut stream, purpose, session, token).map_err(failed)?;
    let answer: Answer =
        serde_json::from_slice(&answer).map_err(|error| protocol(address, &error.to_string()))?;
    match answer.ok {
        true => Ok((stream, answer)),
        false => Err(Error::Refused { address, reason: answer.error.unwrap_or_default() }),
    }
}

fn protocol(address: SocketAddr, reason: &str) -> Error {
    Error::Protocol { address, expected: COMMAND, reason: reason.into() }
}

fn request(
    stream: &mut TcpStream,
    purpose: Purpose,
    session: Option<&wire::Session>,
    token: Option<String>,
) -> io::Result<Vec<u8>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let session = session.map(wire::spell);
    let request = Request { simnel: wire::VERSION, purpose, session, token };
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    first_line(stream, Instant::now() + PATIENCE)
}

/// The peer's first line, which is there by `end`, or as long after it as one byte takes.
fn first_line(peer: &mut impl Read, end: Instant) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < wire::MAX_LINE {
        peer.read_exact(&mut byte)?;
        match byte[0] {
            b'\n' => break,
            _ if Instant::now() >= end => return Err(late()),
            other => line.push(other),
        }
    }
    Ok(line)
}

/// Our datagrams.
struct Echoes(wire::Session);

impl Language for Echoes {
    fn request(&self, number: u32) -> Vec<u8> {
        let probe = Probe { session: self.0, number, echo: false, received: 0, answered: 0 };
        probe.encode().to_vec()
    }

    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)> {
        let probe = Probe::decode(bytes).filter(|probe| probe.echo && probe.session == self.0)?;
        Some((probe.number, Some([probe.received, probe.answered])))
    }
}

/// Messages of a load's threads, in ms.
enum Told {
    Tcp(f64),
    New(f64),
    Loaded(f64),
}

/// State that the threads of a load share.
#[derive(Clone)]
struct Common {
    start: Instant,
    stop: Arc<AtomicBool>,
    told: Sender<Told>,
}

impl Common {
    fn now(&self) -> u64 {
        (self.start.elapsed().as_nanos() as u64).max(1)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A token has come back: it is the time at which it was sent.
    fn token(&self, token: u64) {
        let _ = self.told.send(Told::Loaded(self.now().saturating_sub(token) as f64 / 1e6));
    }
}

/// A flow under way.
struct Flow {
    way: Way,
    /// Token that an upload's next block shall carry.
    token: Arc<AtomicU64>,
    /// Its connection, once there is one.
    stream: Arc<Mutex<Option<TcpStream>>>,
    thread: JoinHandle<Result<Vec<(u64, u64)>, Error>>,
}

impl Flow {
    fn start(session: &Session, way: Way, common: &Common) -> Flow {
        let (token, stream) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(None)));
        let (address, name) = (session.address, session.name);
        let (common, next, shared) = (common.clone(), Arc::clone(&token), Arc::clone(&stream));
        let thread = thread::spawn(move || {
            let purpose = if way == Way::Down { Purpose::Down } else { Purpose::Up };
            let (connection, _) = ask(address, purpose, Some(&name), None)?;
            let clone = || connection.try_clone().map_err(|e| Error::system("copying a socket", e));
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(clone()?);
            let _ = connection.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = connection.set_write_timeout(Some(Duration::from_millis(200)));
            // Whatever ends a flow before we do takes from its rate.
            let whole = |points| match common.stopped() {
                true => Ok(points),
                false => Err(Error::Ended(address)),
            };
            if way == Way::Down {
                return whole(receive(connection, &common));
            }
            let writer = clone()?;
            let send = common.clone();
            let sender = thread::spawn(move || drop(send_blocks(writer, &send, &next)));
            let points = whole(counts(connection, &common));
            let _ = sender.join();
            points
        });
        Flow { way, token, stream, thread }
    }

    /// Sends a request on it.
    fn request(&self, now: u64) {
        if self.way == Way::Up {
            self.token.store(now, Ordering::Relaxed);
        } else if let Some(stream) =
            &mut *self.stream.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let _ = stream.write_all(&now.to_be_bytes());
        }
    }

    /// Closes it at once: unsent data would keep the line busy into the next measurement.
    fn close(&self) {
        if let Some(stream) = &*self.stream.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

/// Takes blocks and counts them.
fn receive(mut stream: TcpStream, common: &Common) -> Vec<(u64, u64)> {
    let mut buffer = vec![0; 256 * 1024];
    let (mut blocks, mut bytes, mut points) = (Blocks::default(), 0, vec![(common.now(), 0)]);
    while !common.stopped() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                bytes += count as u64;
                let now = common.now();
                if points.last().is_none_or(|last| now >= last.0 + COUNTS) {
                    points.push((now, bytes));
                }
                if !blocks.read(&buffer[..count], |token| common.token(token)) {
                    break;
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(_) => break,
        }
    }
    points
}

/// Sends blocks.
fn send_blocks(mut stream: TcpStream, common: &Common, token: &AtomicU64) -> io::Result<()> {
    prepare(&stream);
    let mut data = vec![0x5a; Head::LEN + Size::MOST];
    let (mut bytes, mut size) = (Size::LEAST, Size::new());
    while !common.stopped() {
        let head = Head { bytes: bytes as u32, token: token.swap(0, Ordering::Relaxed) };
        data[..Head::LEN].copy_from_slice(&head.encode());
        write(&mut stream, &data[..Head::LEN + bytes], || !common.stopped())?;
        bytes = size.next(Head::LEN + bytes);
    }
    Ok(())
}

/// The server's counts of an upload.
fn counts(mut stream: TcpStream, common: &Common) -> Vec<(u64, u64)> {
    let (mut points, mut whole) = (Vec::<(u64, u64)>::new(), Vec::new());
    let mut buffer = [0; 4096];
    while !common.stopped() {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => whole.extend(&buffer[..count]),
            Err(error) if is_wait(&error) => {}
            Err(_) => break,
        }
        while let Some(Ok(bytes)) = whole.get(..Count::LEN).map(<&[u8; Count::LEN]>::try_from) {
            let Some(count) = Count::decode(bytes) else { return points };
            whole.drain(..Count::LEN);
            // Counts of a peer that cannot count must not be reckoned with.
            let later = points
                .last()
                .is_none_or(|&(time, bytes)| count.time > time && count.bytes >= bytes);
            if later {
                points.push((count.time, count.bytes));
            }
            if count.token != 0 {
                common.token(count.token);
            }
        }
    }
    points
}

/// Requests on connections of their own, until stopped.
fn new_requests(session: &Session, common: Common) -> JoinHandle<()> {
    let (address, name) = (session.address, session.name);
    thread::spawn(move || {
        while !common.stopped() {
            let told = common.told.clone();
            // Nobody waits for those that are late.
            thread::spawn(move || {
                let milliseconds = |from: Instant| from.elapsed().as_secs_f64() * 1e3;
                let begin = Instant::now();
                let Ok(mut stream) = TcpStream::connect_timeout(&address, PATIENCE) else { return };
                let _ = told.send(Told::Tcp(milliseconds(begin)));
                let begin = Instant::now();
                if request(&mut stream, Purpose::Echo, Some(&name), None).is_ok() {
                    let _ = told.send(Told::New(milliseconds(begin)));
                }
            });
            thread::sleep(NEW_REQUESTS);
        }
    })
}

impl Load for Session {
    fn run(&mut self, plan: &Plan) -> Result<Carried, Error> {
        let (told, heard) = channel();
        let common = Common { start: plan.start, stop: Arc::default(), told };
        let ways = plan.way.each();
        let flows: Vec<Flow> = (0..plan.flows)
            .flat_map(|_| ways)
            .map(|way| Flow::start(self, *way, &common))
            .collect();
        let began = common.now();
        thread::sleep(plan.ramp);
        drain(&heard);
        let from = plan.start.elapsed();
        let strangers = new_requests(self, common.clone());
        for turn in 0.. {
            let Some(left) = (from + plan.time).checked_sub(plan.start.elapsed()) else { break };
            if let Some(flow) = flows.get(turn % flows.len().max(1)) {
                flow.request(common.now());
            }
            thread::sleep(left.min(LOADED_REQUESTS));
        }
        let to = plan.start.elapsed();
        let requests = drain(&heard);
        common.stop.store(true, Ordering::Relaxed);
        flows.iter().for_each(Flow::close);
        let (mut down, mut up) = (Meter::default(), Meter::default());
        let (mut failure, mut ended) = (None, None);
        for flow in flows {
            match (flow.thread.join(), flow.way) {
                (Ok(Ok(points)), Way::Down) => down.0.push(points),
                (Ok(Ok(points)), _) => up.0.push(points),
                (Ok(Err(error @ Error::Ended(_))), _) => ended = Some(error),
                (Ok(Err(error)), _) => failure = Some(error),
                (Err(_), _) => {}
            }
        }
        let _ = strangers.join();
        if let Some(error) = ended {
            return Err(error);
        }
        let down_rate = ways.contains(&Way::Down).then(|| Rate {
            mbit: down.mbit(from.as_nanos() as u64, to.as_nanos() as u64),
            series: down.series(0),
        });
        let up_rate = ways.contains(&Way::Up).then(|| match up.ends() {
            // By the server's clock.
            Some((first, last)) => Rate {
                mbit: up.mbit(first + plan.ramp.as_nanos() as u64, last),
                series: up.series(first as i64 - began as i64),
            },
            None => Rate::default(),
        });
        for (way, rate) in [("download", &down_rate), ("upload", &up_rate)] {
            if rate.as_ref().is_some_and(|rate| rate.mbit <= 0.0) {
                let seconds = (plan.ramp + plan.time).as_secs();
                return Err(failure.unwrap_or(Error::NothingCarried { way, seconds }));
            }
        }
        Ok(Carried { down: down_rate, up: up_rate, from, to, requests })
    }
}

/// Takes all messages so far.
fn drain(heard: &Receiver<Told>) -> Requests {
    let mut requests = Requests::default();
    for told in heard.try_iter() {
        match told {
            Told::Tcp(ms) => requests.tcp.push(ms),
            Told::New(ms) => requests.new.push(ms),
            Told::Loaded(ms) => requests.loaded.push(ms),
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_has_its_time() {
        let line = &b"{\"ok\":true}\n..."[..];
        let now = Instant::now();
        let whole = first_line(&mut { line }, now + PATIENCE).unwrap();
        assert_eq!(whole, b"{\"ok\":true}");
        let late = first_line(&mut { line }, now).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
