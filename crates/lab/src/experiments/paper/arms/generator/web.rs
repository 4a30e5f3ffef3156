//! A household that browses: the simulator's own, over Linux's TCP.
//!
//! One thread has both ends of all connections, of which there may be thousands, and is told by
//! epoll which of them have news. In virtual time it is never late.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::Timespec;
use simnel_core::random::Random;
use simnel_core::Time;
use simnel_sim::apps::browser::{Browser, Carrier, Side};
use simnel_sim::setup::web::Params;
use socket2::SockRef;

use super::stream::{Manner, READ_BYTES};
use super::{failed, joined, micros, Course, Heard, Join, Sides, STOP_CHECK};
use crate::experiments::paper::arms::plan::{moment, real, Flow};
use simnel_testbed::TestbedError;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// Bytes handed to the kernel in one call, at most: larger objects are rare.
const WRITE_BYTES: usize = 1 << 20;
/// News that are taken in one call.
const NEWS: usize = 256;
/// Number of the listener; connections have those from zero on.
const LISTENER: u64 = u64::MAX;

/// Makes the household's server, and the thread on which it browses from the flow's start on.
pub(super) fn start(
    flow: &Flow,
    (params, random): (&Params, Random),
    manner: Manner,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let refused = |error| failed(flow, "browse", error);
    let open = || Sockets::new(flow, manner, course);
    let sockets = sides.internet.enter(open)?.map_err(refused)?;
    let port = sockets.to.port();
    let browser = Browser::new(params, random, flow.stop.map_or(Time::MAX, moment));
    let thread = sides.home.start(move || sockets.browse(browser))?;
    Ok(Box::new(move || match joined(thread).and_then(|heard| heard) {
        Ok(heard) => Heard { port, ..heard },
        Err(error) => Heard { failure: Some(error.to_string()), ..Heard::default() },
    }))
}

/// All connections of a household.
struct Sockets {
    poll: OwnedFd,
    listener: TcpListener,
    flow: Flow,
    manner: Manner,
    to: SocketAddr,
    course: Course,
    /// Those that are open, by number.
    pairs: BTreeMap<u64, Pair>,
    /// Connections whose server has yet to accept them, by their client's port.
    by_port: BTreeMap<u16, u64>,
    next: u64,
    wakes: BTreeSet<Time>,
    opened: Vec<Duration>,
    /// Time at which each page was asked for, and the microseconds that it took; as in
    /// [`Heard::times`].
    loaded: Vec<(Duration, Option<u32>)>,
    /// Bytes that are written.
    data: Vec<u8>,
    /// Payload that client and server received, by interval.
    bytes: [Vec<u64>; 2],
    failure: Option<io::Error>,
}

/// Both ends of a connection: client, server.
#[derive(Default)]
struct Pair {
    ends: [End; 2],
}

/// One end.
#[derive(Default)]
struct End {
    /// None before the server has accepted, and when it is done.
    stream: Option<TcpStream>,
    /// Bytes that are still to be written.
    pending: u64,
    received: u64,
}

impl Sockets {
    /// The household's server listens.
    fn new(flow: &Flow, manner: Manner, course: &Course) -> io::Result<Sockets> {
        let socket = manner.socket(flow.internet, flow.dscp)?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from(socket);
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Sockets {
            poll,
            to: listener.local_addr()?,
            listener,
            flow: flow.clone(),
            manner,
            course: course.clone(),
            pairs: BTreeMap::new(),
            by_port: BTreeMap::new(),
            next: 0,
            wakes: BTreeSet::from([moment(flow.start)]),
            opened: Vec::new(),
            loaded: Vec::new(),
            data: vec![0x5a; WRITE_BYTES],
            bytes: [(); 2].map(|()| vec![0; course.intervals]),
            failure: None,
        })
    }

    /// Browses until the run's end.
    fn browse(mut self, mut browser: Browser<u64>) -> io::Result<Heard> {
        self.course.wait(self.flow.start);
        let mut news = Vec::with_capacity(NEWS);
        while !self.course.over() {
            let now = moment(self.course.now());
            if self.wakes.first().is_some_and(|due| *due <= now) {
                self.wakes.retain(|due| *due > now);
                browser.on_timer(&mut self, now);
            }
            for one in self.await_news(&mut news)? {
                let now = moment(self.course.now());
                match one.data.u64() {
                    LISTENER => self.accept()?,
                    end => self.attend(end, &mut browser, now)?,
                }
            }
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
        }
        let [bytes, back] = self.bytes;
        let mut times = self.loaded;
        times.sort_unstable();
        Ok(Heard { bytes, back, times, opened: self.opened, ..Heard::default() })
    }

    /// News until something is to be done, or until it is time to look whether the run is over.
    fn await_news<'a>(
        &self,
        news: &'a mut Vec<epoll::Event>,
    ) -> io::Result<impl Iterator<Item = epoll::Event> + 'a> {
        let due = self.wakes.first().map(|due| real(due.since(Time::ZERO)));
        let left = due.map(|due| due.saturating_sub(self.course.now()));
        let timeout = left.map_or(STOP_CHECK, |left| left.min(STOP_CHECK));
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        news.clear();
        match epoll::wait(&self.poll, spare_capacity(news), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(news.drain(..)),
            Err(error) => Err(error.into()),
        }
    }

    /// The server's end of each connection that has come.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            // One that its client has given up is over.
            let Some(number) = self.by_port.remove(&from.port()) else { continue };
            stream.set_nonblocking(true)?;
            self.manner.apply(SockRef::from(&stream), self.flow.dscp)?;
            self.hold(number, Side::Server, stream)?;
        }
    }

    /// Holds one end of a connection, and is told what happens there from now on.
    fn hold(&mut self, number: u64, side: Side, stream: TcpStream) -> io::Result<()> {
        let data = EventData::new_u64(number << 1 | side as u64);
        let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.poll, &stream, data, all)?;
        let pair = self.pairs.entry(number).or_default();
        pair.ends[side as usize].stream = Some(stream);
        Ok(())
    }

    /// Writes and reads what can be at one end of a connection.
    fn attend(&mut self, end: u64, browser: &mut Browser<u64>, now: Time) -> io::Result<()> {
        let (number, side) = (end >> 1, if end & 1 == 0 { Side::Client } else { Side::Server });
        let Some(pair) = self.pairs.get_mut(&number) else { return Ok(()) };
        let end = &mut pair.ends[side as usize];
        let before = end.received;
        let over = end.flush(&self.data).and_then(|()| end.receive());
        let came = end.received;
        self.course.count(&mut self.bytes[side as usize], (came - before) as usize);
        if came > before {
            browser.received((number, side), came, self, now);
        }
        // What is reset, or not answered for too long, ends as on any line.
        if !matches!(over, Ok(false)) {
            self.end(number, side, over.is_err());
        }
        if !self.pairs.contains_key(&number) {
            browser.forget(number);
        }
        Ok(())
    }

    /// One end is over, or with it both.
    fn end(&mut self, number: u64, side: Side, both: bool) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        pair.ends[side as usize].stream = None;
        if both || pair.ends.iter().all(|end| end.stream.is_none()) {
            self.pairs.remove(&number);
            self.by_port.retain(|_, other| *other != number);
        }
    }

    fn connect(&mut self, now: Time) -> io::Result<u64> {
        let number = self.next;
        self.next += 1;
        let socket = self.manner.socket(self.flow.home, self.flow.dscp)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&self.to.into()) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                return Err(error);
            }
            _ => {}
        }
        let stream = TcpStream::from(socket);
        self.by_port.insert(stream.local_addr()?.port(), number);
        self.opened.push(real(now.since(Time::ZERO)));
        self.hold(number, Side::Client, stream)?;
        Ok(number)
    }
}

impl End {
    /// Writes what the kernel takes, `data` over and over.
    fn flush(&mut self, data: &[u8]) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while self.pending > 0 {
            let size = self.pending.min(data.len() as u64) as usize;
            match stream.write(&data[..size]) {
                Ok(count) => self.pending -= count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what has come; true if nothing more will.
    fn receive(&mut self) -> io::Result<bool> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut data = [0; READ_BYTES];
        loop {
            match stream.read(&mut data) {
                Ok(0) => return Ok(true),
                Ok(count) => self.received += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Carrier for Sockets {
    type Connection = u64;

    fn open(&mut self, now: Time) -> u64 {
        match self.connect(now) {
            Ok(number) => number,
            Err(error) => {
                self.failure.get_or_insert(error);
                self.next
            }
        }
    }

    fn write(&mut self, number: u64, side: Side, bytes: u64, _now: Time) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        let end = &mut pair.ends[side as usize];
        end.pending += bytes;
        // Where it fails epoll tells of it, too.
        let _ = end.flush(&self.data);
    }

    fn close(&mut self, number: u64, _now: Time) {
        let Some(pair) = self.pairs.get(&number) else { return };
        if let Some(stream) = &pair.ends[Side::Client as usize].stream {
            // One that is over already needs no end.
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }

    fn wake(&mut self, at: Time) {
        self.wakes.insert(at);
    }

    fn loaded(&mut self, began: Time, now: Time) {
        let took = micros(real(now.since(began)));
        self.loaded.push((real(began.since(Time::ZERO)), Some(took)));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Instant;

    use super::*;
    use crate::experiments::paper::arms::plan::{span, Work};

    /// Pages come, each with its requests, and connections that are done are no longer held.
    #[test]
    fn a_household_browses_over_the_loopback() {
        let ms = Duration::from_millis;
        let course = Course::new(Instant::now(), ms(100), ms(1_500));
        let flow = Flow {
            group: 0,
            index: 0,
            up: false,
            home: Ipv4Addr::LOCALHOST,
            internet: Ipv4Addr::LOCALHOST,
            dscp: 0,
            start: ms(10),
            stop: Some(ms(1_200)),
            work: Work::Datagrams { size: 0, interval: ms(1_000) },
        };
        let manner = Manner { congestion: "cubic".into(), mss: None, nagle: true };
        let params = Params {
            interval: span(ms(5)),
            think: span(ms(1)),
            pages: (1, 2),
            reading: span(ms(10)),
            ..Params::default()
        };
        let browser = Browser::new(&params, Random::new(7), flow.stop.map_or(Time::MAX, moment));
        let sockets = Sockets::new(&flow, manner, &course).expect("the loopback has ports");
        let keeping = course.clone();
        let keeper = std::thread::spawn(move || {
            keeping.keep_time();
            keeping.end();
        });
        let heard = sockets.browse(browser).expect("nothing is in the way");
        keeper.join().expect("it only waits");
        assert_eq!(heard.failure, None);
        let (opened, pages) = (heard.opened.len(), heard.times.len());
        assert!(opened > 5 && pages > 5, "{opened} {pages}");
        assert!(heard.times.iter().all(|(began, took)| *began >= flow.start && took.is_some()));
        let [there, back] = [heard.bytes, heard.back].map(|bytes| bytes.iter().sum::<u64>());
        // A request has 300 to 700 bytes; an object has more, on average.
        assert!(back >= 300 * pages as u64 && there > back, "{there} {back}");
    }
}
