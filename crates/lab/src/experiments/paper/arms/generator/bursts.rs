//! Transfers over one TCP connection, each some time after the one before has come.

use std::io;
use std::net::TcpStream;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::stream::{self, Manner};
use super::{micros, Course, Heard, Join, Sides, STOP_CHECK};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// A sequence of transfers.
#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// Bytes of one.
    pub size: u64,
    /// From the end of each to the next.
    pub gaps: Vec<Duration>,
}

/// Time at which each transfer began, and the microseconds that it took; as in [`Heard::times`].
type Times = Vec<(Duration, Option<u32>)>;

/// Makes a connection whose one end sends, and is told by the other when all has come.
pub(super) fn start(
    flow: &Flow,
    bursts: Bursts,
    manner: Manner,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let span = (flow.start, flow.stop.unwrap_or(course.duration));
    let (tell, told) = channel();
    let (size, parts) = (bursts.size, (sides, course));
    let (here, there) = (course.clone(), course.clone());
    let send = move |stream| bursts.send(stream, span, &told, &here);
    let receive = move |stream| receive(stream, size, &tell, &there);
    let heard = |times, bytes| Heard { bytes, times, ..Heard::default() };
    match flow.up {
        true => stream::start(flow, manner, parts, send, receive, heard),
        false => stream::start(flow, manner, parts, receive, send, move |b, t| heard(t, b)),
    }
}

impl Bursts {
    /// Sends one after the other until the flow's end.
    fn send(
        &self,
        stream: Option<TcpStream>,
        (start, stop): (Duration, Duration),
        told: &Receiver<Duration>,
        course: &Course,
    ) -> io::Result<Times> {
        let mut times = Times::new();
        let Some(mut stream) = stream else { return Ok(times) };
        let data = vec![0x5a; self.size as usize];
        let mut due = start;
        for gap in &self.gaps {
            course.wait(due);
            if course.now() >= stop || course.over() {
                break;
            }
            let began = course.now();
            stream::write(&mut stream, &data, course)?;
            let came = arrival(told, course);
            times.push((began, came.map(|came| micros(came.saturating_sub(began)))));
            let Some(came) = came else { break };
            due = came + *gap;
        }
        Ok(times)
    }
}

/// Time at which the transfer had come; None if it had not by the end.
fn arrival(told: &Receiver<Duration>, course: &Course) -> Option<Duration> {
    while !course.over() {
        match told.recv_timeout(STOP_CHECK) {
            Err(RecvTimeoutError::Timeout) => {}
            came => return came.ok(),
        }
    }
    None
}

/// Receives transfers of `size` bytes and tells when each is whole.
fn receive(
    stream: Option<TcpStream>,
    size: u64,
    tell: &Sender<Duration>,
    course: &Course,
) -> io::Result<Vec<u64>> {
    let mut all = 0;
    stream::receive(stream, course, |count| {
        all += count as u64;
        if all >= size {
            all -= size;
            // Who no longer waits for it has come to the end.
            let _ = tell.send(course.now());
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Instant;

    use super::*;

    /// Each transfer begins a gap after the one before it has come.
    #[test]
    fn transfers_wait_for_those_before_them() {
        let ms = Duration::from_millis;
        let course = Course::new(Instant::now(), ms(100), ms(60_000));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let there = TcpStream::connect(address).expect("it listens");
        let (here, _) = listener.accept().expect("it has come");
        course.keep(&there).expect("a copy");
        let (tell, told) = channel();
        let receiving = course.clone();
        let receiver = std::thread::spawn(move || receive(Some(there), 50_000, &tell, &receiving));
        let bursts = Bursts { size: 50_000, gaps: vec![ms(100), ms(150), ms(0)] };
        let times =
            bursts.send(Some(here), (ms(20), ms(60_000)), &told, &course).expect("no fault");
        course.end();
        let bytes = receiver.join().expect("it only reads").expect("no fault");
        assert_eq!(bytes.iter().sum::<u64>(), 150_000);
        assert!(times.iter().all(|(_, took)| took.is_some()), "{times:?}");
        let began: Vec<Duration> = times.iter().map(|(began, _)| *began).collect();
        let [first, second, third] = began[..] else { panic!("{began:?}") };
        assert!(first >= ms(20) && second >= first + ms(100) && third >= second + ms(150));
    }
}
