//! Small messages over one TCP connection, each at its time: a sensor's.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::stream::{self, Manner};
use super::{micros, Course, Heard, Join, Sides, ROOM};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// A stream of messages.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// Bytes of one.
    pub size: usize,
    /// From one to the next.
    pub interval: Duration,
    /// Every segment is acknowledged at once.
    pub at_once: bool,
}

/// Makes a connection whose one end writes messages.
pub(super) fn start(
    flow: &Flow,
    messages: Messages,
    manner: Manner,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let span = (flow.start, flow.stop.unwrap_or(course.duration));
    let side = |sends: bool| {
        let (messages, course) = (messages.clone(), course.clone());
        move |stream: Option<TcpStream>| match (stream, sends) {
            (Some(stream), true) => {
                messages.write(stream, span, &course).map(|sent| (sent, Received::new(&course)))
            }
            (Some(stream), false) => messages.read(stream, &course).map(|came| (Vec::new(), came)),
            (None, _) => Ok((Vec::new(), Received::new(&course))),
        }
    };
    let (here, there) = (side(flow.up), side(!flow.up));
    let up = flow.up;
    stream::start(flow, manner, (sides, course), here, there, move |here, there| {
        let ((sent, _), (_, received)) = if up { (here, there) } else { (there, here) };
        let took = |(n, at): (usize, &Duration)| {
            let span = received.whole.get(n)?.saturating_sub(*at);
            Some(micros(span))
        };
        let times = sent.iter().enumerate().map(|(n, at)| (*at, took((n, at)))).collect();
        Heard { bytes: received.bytes, times, ..Heard::default() }
    })
}

/// Messages that came.
struct Received {
    /// Bytes, by interval.
    bytes: Vec<u64>,
    /// Time at which each message was whole.
    whole: Vec<Duration>,
}

impl Received {
    fn new(course: &Course) -> Received {
        Received { bytes: vec![0; course.intervals], whole: Vec::new() }
    }
}

impl Messages {
    /// Writes until the flow's end; the times at which messages were due.
    fn write(
        &self,
        mut stream: TcpStream,
        (start, stop): (Duration, Duration),
        course: &Course,
    ) -> io::Result<Vec<Duration>> {
        let data = vec![0x5a; self.size];
        let mut sent = Vec::new();
        loop {
            let due = start + self.interval * sent.len() as u32;
            course.wait(due);
            if due >= stop || course.over() {
                return Ok(sent);
            }
            sent.push(due);
            stream::write(&mut stream, &data, course)?;
        }
    }

    fn read(&self, mut stream: TcpStream, course: &Course) -> io::Result<Received> {
        let mut received = Received::new(course);
        let (mut data, mut all) = ([0; ROOM], 0);
        loop {
            if self.at_once {
                // Linux forgets it with what it sends and receives.
                SockRef::from(&stream).set_tcp_quickack(true)?;
            }
            match stream.read(&mut data) {
                Ok(0) => return Ok(received),
                Ok(count) => {
                    course.count(&mut received.bytes, count);
                    all += count;
                    received.whole.resize(all / self.size.max(1), course.now());
                }
                Err(_) if course.over() => return Ok(received),
                Err(error) => return Err(error),
            }
        }
    }
}
