//! Carries a plan's flows out between two namespaces, with Linux's TCP, and records what came.
//!
//! Every flow has threads of its own, on one clock that starts when all listeners stand. Counts and
//! round-trip times are kept by interval as the simulator keeps them. The line is measured idle
//! before the clock starts: the least round-trip time of each probe then is what delays are added
//! to. The same code runs in the live arm's namespaces and inside user-mode Linux.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use simnel_core::random::Random;
use socket2::SockRef;

use super::plan::{Plan, Work};
use bursts::Bursts;
use messages::Messages;
pub use passage::Passed;
use simnel_testbed::{Namespace, TestbedError};
use stream::Manner;
pub use video::Played;

mod bulk;
mod bursts;
mod datagrams;
mod messages;
mod passage;
mod ping;
mod stream;
mod video;
mod web;

/// Unsafe code, which this crate does without: its caller provides it.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Makes the kernel pace a TCP sender.
    pub pace: PaceSender,
    /// Reads a packet socket, many packets at a time.
    pub read_frames: fn(OwnedFd) -> io::Result<Drain>,
}

type PaceSender = fn(&TcpStream) -> io::Result<()>;

/// Hands over the frames that have come since the last call, and the time of each since the epoch.
/// The result is how many more there was no room for.
pub type Drain = Box<dyn FnMut(&mut dyn FnMut(&[u8], Duration)) -> io::Result<u64> + Send>;

/// Two sides, what is between them, and how they are used.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Namespace of the hosts at home.
    pub home: &'a Namespace,
    /// Namespace of the hosts on the Internet.
    pub internet: &'a Namespace,
    /// Namespace between them, if its packets are to be watched.
    pub gateway: &'a Namespace,
    /// Unsafe code of its caller.
    pub means: Means,
    /// The clock goes on while something is done: not in virtual time.
    pub work_takes_time: bool,
}

/// Results of one flow.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Heard {
    /// Payload bytes that arrived, by interval.
    pub bytes: Vec<u64>,
    /// Those that arrived the other way: requests for pages.
    #[serde(default)]
    pub back: Vec<u64>,
    /// Probes, datagrams, messages, pages and transfers: the time at which each was sent, or asked
    /// for. With it, the microseconds that it took; None if it never came.
    pub times: Vec<(Duration, Option<u32>)>,
    /// Times at which the connections of a household that browses were opened.
    #[serde(default)]
    pub opened: Vec<Duration>,
    /// Least time on the idle line in microseconds.
    pub idle: u32,
    /// Playback of a video.
    #[serde(default)]
    pub played: Option<Played>,
    /// Reason why the flow ended before its time, if it did.
    pub failure: Option<String>,
    /// Port at the Internet's host; of ICMP probes their identifier.
    #[serde(skip)]
    pub port: u16,
    /// Packets that passed the gateway, up and down, if they were watched.
    #[serde(default)]
    pub passed: [Passed; 2],
}

/// Results of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Recorded {
    /// Flow by flow, in the plan's order.
    pub flows: Vec<Heard>,
    /// Longest delay with which a sleeping thread was woken: delay that is not the line's.
    pub late: Duration,
    /// Packets that left the gateway and were not seen to come.
    #[serde(default)]
    pub unseen: u64,
}

impl Recorded {
    /// True if there were TCP transfers, and not one of them delivered anything. Pages count: where
    /// they fill a slow line, others may get nothing.
    pub fn carried_nothing(&self, plan: &Plan) -> bool {
        let flows = plan.flows.iter().zip(&self.flows);
        let is_transfer = |work: &Work| matches!(work, Work::Bulk { .. } | Work::Web { .. });
        let mut transfers = flows.filter(|(flow, _)| is_transfer(&flow.work)).peekable();
        let delivered = |heard: &Heard| heard.bytes.iter().sum::<u64>() > 0;
        transfers.peek().is_some() && !transfers.any(|(_, heard)| delivered(heard))
    }
}

/// The idle line is measured so long before the clock starts.
pub const IDLE: Duration = Duration::from_secs(2);
/// Listeners and threads are ready within this time.
const READY: Duration = Duration::from_millis(500);
/// Packets queued at the end may still arrive.
const AFTER: Duration = Duration::from_secs(1);
/// Time between a blocked thread's looks at whether it should end.
const STOP_CHECK: Duration = Duration::from_millis(100);
/// Sleep of the thread that looks at whether it is woken in time.
const WATCH: Duration = Duration::from_millis(5);
/// Bytes of a datagram's number.
const NUMBER: usize = 4;
/// Port whose service throws away what comes (RFC 863).
const DISCARD: u16 = 9;
/// Room for any datagram.
const ROOM: usize = 2048;

/// A UDP socket at `address` whose datagrams carry `dscp`.
fn open_udp(address: Ipv4Addr, dscp: u8) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(address, 0))?;
    SockRef::from(&socket).set_tos_v4(u32::from(dscp) << 2)?;
    socket.set_read_timeout(Some(STOP_CHECK))?;
    Ok(socket)
}

/// The clock and the end of a run, which all threads share.
#[derive(Clone, Debug)]
struct Course {
    zero: Instant,
    stop: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    interval: Duration,
    intervals: usize,
    /// The present interval, as a thread of its own sets it. A thread that asked the clock at each
    /// packet would double its system calls, which are what a run in a guest costs.
    present: Arc<AtomicUsize>,
    duration: Duration,
}

impl Course {
    /// A run of `duration` that begins at `zero`.
    fn new(zero: Instant, interval: Duration, duration: Duration) -> Course {
        Course {
            zero,
            stop: Arc::new(AtomicBool::new(false)),
            streams: Arc::default(),
            interval,
            intervals: (duration.as_nanos() / interval.as_nanos().max(1)) as usize,
            present: Arc::default(),
            duration,
        }
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Time on the clock; zero before it starts.
    fn now(&self) -> Duration {
        self.zero.elapsed()
    }

    /// Sleeps until `at` on the clock, or until the end.
    fn wait(&self, at: Duration) {
        self.wait_until(self.zero + at);
    }

    fn wait_until(&self, when: Instant) {
        while !self.over() {
            let left = when.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(STOP_CHECK));
        }
    }

    /// Registers a stream to be closed at the end.
    fn keep(&self, stream: &TcpStream) -> io::Result<()> {
        let copy = stream.try_clone()?;
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
        Ok(())
    }

    /// Counts bytes that arrived now.
    fn count(&self, bytes: &mut [u64], count: usize) {
        if let Some(slot) = bytes.get_mut(self.present.load(Ordering::Relaxed)) {
            *slot += count as u64;
        }
    }

    /// Ends the run.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Unsent data would keep the line busy into the next run.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sets the present interval until the run's end.
    fn keep_time(&self) {
        for slot in 1..=self.intervals {
            self.wait(self.interval * slot as u32);
            self.present.store(slot, Ordering::Relaxed);
        }
    }
}

/// Carries `plan` out. `step` is called every tick with the time that has passed on the clock and
/// may end the run early by returning false.
pub fn run(
    plan: &Plan,
    sides: Sides<'_>,
    step: &mut dyn FnMut(Duration) -> bool,
) -> Result<Recorded, TestbedError> {
    let course = Course::new(Instant::now() + READY + IDLE, plan.interval, plan.duration);
    let watched = match plan.watch {
        Some(from) => Some(passage::watch(sides, &plan.ways(), from, &course)?),
        None => None,
    };
    meet(plan, sides)?;
    let mut flows = Vec::new();
    for (number, flow) in plan.flows.iter().enumerate() {
        let number = number as u16;
        let threads = match &flow.work {
            Work::Bulk { congestion, paced, mss } => {
                let manner = Manner { congestion: congestion.clone(), mss: *mss, nagle: true };
                let pace = paced.then_some(sides.means.pace);
                bulk::start(flow, manner, pace, sides, &course)
            }
            Work::Messages { congestion, size, interval, nagle, delayed_ack } => {
                let (congestion, nagle) = (congestion.clone(), *nagle);
                let manner = Manner { congestion, mss: None, nagle };
                let messages = Messages { size: *size, interval: *interval, at_once: !delayed_ack };
                messages::start(flow, messages, manner, sides, &course)
            }
            Work::Video { congestion, video } => {
                let congestion = congestion.clone();
                let manner = Manner { congestion, mss: None, nagle: true };
                video::start(flow, video.params(), manner, sides, &course)
            }
            Work::Web { congestion, mss, browsing, random } => {
                let manner = Manner { congestion: congestion.clone(), mss: *mss, nagle: true };
                let random = Random::new(*random);
                web::start(flow, (&browsing.params(), random), manner, sides, &course)
            }
            Work::Bursts { congestion, size, gaps } => {
                let manner = Manner { congestion: congestion.clone(), mss: None, nagle: true };
                let bursts = Bursts { size: *size, gaps: gaps.clone() };
                bursts::start(flow, bursts, manner, sides, &course)
            }
            Work::Ping { size, interval, icmp: false } => {
                ping::udp(flow, *size, *interval, sides, &course)
            }
            Work::Ping { size, interval, icmp: true } => {
                ping::icmp(flow, number, *size, *interval, sides, &course)
            }
            Work::RequestResponse { size, patience } => {
                ping::in_turn(flow, *size, *patience, sides, &course)
            }
            Work::Datagrams { size, interval } => {
                datagrams::start(flow, *size, *interval, sides, &course)
            }
        };
        match threads {
            Ok(join) => flows.push(join),
            Err(error) => {
                course.end();
                return Err(error);
            }
        }
    }
    let watching = course.clone();
    let watch = sides.work_takes_time.then(|| thread::spawn(move || lateness(&watching)));
    let keeping = course.clone();
    let keeper = thread::spawn(move || keeping.keep_time());
    let last = plan.duration + AFTER;
    while Instant::now() < course.zero + last {
        let left = (course.zero + last).saturating_duration_since(Instant::now());
        thread::sleep(left.min(STOP_CHECK));
        if !step(course.now().min(plan.duration)) {
            break;
        }
    }
    course.end();
    let late = watch.and_then(|watch| watch.join().ok()).unwrap_or_default();
    let _ = keeper.join();
    let mut flows: Vec<Heard> = flows.into_iter().map(|join| join()).collect();
    let Some(watched) = watched else { return Ok(Recorded { flows, late, unseen: 0 }) };
    let mut passage = joined(watched).map_err(passage::unwatched)?;
    for (flow, heard) in plan.flows.iter().zip(&mut flows) {
        let (protocol, address, port) = (protocol(&flow.work), flow.internet, heard.port);
        heard.passed = passage.take(passage::FarEnd { protocol, address, port });
    }
    Ok(Recorded { flows, late, unseen: passage.unseen })
}

/// Sends one datagram to each host on the Internet, to a port that nobody has. The gateway asks for
/// a host's Ethernet address once, and a flow's first packet would wait for the answer.
fn meet(plan: &Plan, sides: Sides<'_>) -> Result<(), TestbedError> {
    let Some(home) = plan.home.first() else { return Ok(()) };
    let send = || {
        let socket = open_udp(*home, 0)?;
        plan.internet.iter().try_for_each(|host| socket.send_to(&[], (*host, DISCARD)).map(drop))
    };
    sides.home.enter(send)?.map_err(|source| {
        let what = "cannot send to the hosts on the Internet".into();
        TestbedError::Traffic { what, source }
    })
}

fn protocol(work: &Work) -> u8 {
    match work {
        Work::Bulk { .. } | Work::Messages { .. } | Work::Bursts { .. } => passage::TCP,
        Work::Video { .. } | Work::Web { .. } => passage::TCP,
        Work::Ping { icmp: true, .. } => passage::ICMP,
        Work::Ping { .. } | Work::RequestResponse { .. } | Work::Datagrams { .. } => passage::UDP,
    }
}

/// Sleeps for short times until the run's end; the greatest time by which a sleep was too long.
fn lateness(course: &Course) -> Duration {
    let mut greatest = Duration::ZERO;
    course.wait(Duration::ZERO);
    let (mut now, end) = (Instant::now(), course.zero + course.duration);
    while now < end && !course.over() {
        let due = now + WATCH;
        thread::sleep(WATCH);
        now = Instant::now();
        greatest = greatest.max(now.saturating_duration_since(due));
    }
    greatest
}

/// A time in microseconds, as results have it.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

/// Result of a flow's thread.
fn joined<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the flow failed")))
}

/// Handle of a started flow: a function that waits for its threads and gives what they heard.
type Join = Box<dyn FnOnce() -> Heard>;

/// The error that a flow cannot begin.
fn failed(flow: &super::plan::Flow, what: &str, source: io::Error) -> TestbedError {
    let (home, internet) = (flow.home, flow.internet);
    TestbedError::Traffic { what: format!("cannot {what} between {home} and {internet}"), source }
}
