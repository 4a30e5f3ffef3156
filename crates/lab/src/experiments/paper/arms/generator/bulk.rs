//! A TCP transfer without end. The host at home connects, whichever way the payload goes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{failed, Course, Heard, Join, PaceSender, Sides, AFTER, STOP_CHECK};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// Bytes handed to the kernel in one call: little, so that senders take turns.
const WRITE_BYTES: usize = 16 * 1024;
const READ_BYTES: usize = 64 * 1024;

/// Options of both ends' sockets before there is a connection.
struct Manner {
    congestion: String,
    /// Largest segment, if it is smaller than the interface's.
    mss: Option<u32>,
    /// DSCP in its place in the TOS byte.
    tos: u32,
}

impl Manner {
    fn socket(&self, address: Ipv4Addr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tos_v4(self.tos)?;
        socket.set_tcp_congestion(self.congestion.as_bytes())?;
        if let Some(mss) = self.mss {
            socket.set_tcp_mss(mss)?;
        }
        socket.bind(&SocketAddr::from(SocketAddrV4::new(address, 0)).into())?;
        Ok(socket)
    }

    /// An accepted connection does not take everything over from its listener.
    fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        let socket = SockRef::from(stream);
        socket.set_tos_v4(self.tos)?;
        socket.set_tcp_congestion(self.congestion.as_bytes())
    }
}

/// Makes the listener, and threads that wait for the flow's time.
pub(super) fn start(
    flow: &Flow,
    (congestion, mss): (&str, Option<u32>),
    pace: Option<PaceSender>,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let tos = u32::from(flow.dscp) << 2;
    let manner = || Manner { congestion: congestion.into(), mss, tos };
    let listen = || {
        let socket = manner().socket(flow.internet)?;
        socket.listen(1)?;
        socket.set_nonblocking(true)?;
        io::Result::Ok(TcpListener::from(socket))
    };
    let connect = || manner().socket(flow.home);
    let listener =
        sides.internet.enter(listen)?.map_err(|error| failed(flow, "listen for TCP", error))?;
    let near = sides.home.enter(connect)?.map_err(|error| failed(flow, "open TCP", error))?;
    let to = listener.local_addr().map_err(|error| failed(flow, "listen for TCP", error))?;

    let span = (flow.start, flow.stop.unwrap_or(course.duration));
    let side = |sends: bool| Side { sends, pace, span, course: course.clone() };
    let (here, there) = (side(flow.up), side(!flow.up));
    let there_manner = manner();
    let server = thread::spawn(move || {
        let Some(stream) = there.accept(&listener)? else { return Ok(there.nothing()) };
        there_manner.apply(&stream)?;
        there.transfer(stream)
    });
    let client = thread::spawn(move || {
        here.course.wait(span.0);
        // Where each SYN is lost there is no connection, on a line as in the simulator.
        let left = here.course.duration.saturating_sub(here.course.now()) + AFTER;
        match near.connect_timeout(&to.into(), left) {
            Err(error) if here.course.over() || error.kind() == ErrorKind::TimedOut => {
                Ok(here.nothing())
            }
            Err(error) => Err(error),
            Ok(()) => here.transfer(near.into()),
        }
    });
    Ok(Box::new(move || {
        let mut heard = Heard { port: to.port(), ..Heard::default() };
        for end in [client.join(), server.join()] {
            match end.unwrap_or_else(|_| Err(io::Error::other("a thread of the flow failed"))) {
                Ok(Some(bytes)) => heard.bytes = bytes,
                Ok(None) => {}
                Err(error) => heard.failure = Some(error.to_string()),
            }
        }
        heard
    }))
}

/// One end of the connection.
struct Side {
    sends: bool,
    pace: Option<PaceSender>,
    span: (Duration, Duration),
    course: Course,
}

impl Side {
    /// The connection; None if there was none until the end, as it happens on a line that is
    /// overloaded.
    fn accept(&self, listener: &TcpListener) -> io::Result<Option<TcpStream>> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    return Ok(Some(stream));
                }
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) if self.course.over() => return Ok(None),
                // Most of the time the connection comes at once after the flow's start.
                Err(_) if self.course.now() < self.span.0 => thread::sleep(STOP_CHECK / 4),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Report of a side that never had a connection.
    fn nothing(&self) -> Option<Vec<u64>> {
        (!self.sends).then(|| vec![0; self.course.intervals])
    }

    /// Sends until the flow's end, or receives and counts. An end of the run is no failure.
    fn transfer(&self, mut stream: TcpStream) -> io::Result<Option<Vec<u64>>> {
        self.course.keep(&stream)?;
        if self.sends {
            if let Some(pace) = self.pace {
                pace(&stream)?;
            }
            let data = [0x5a; WRITE_BYTES];
            while self.course.now() < self.span.1 && !self.course.over() {
                match stream.write_all(&data) {
                    Err(error) if !self.course.over() => return Err(error),
                    _ => {}
                }
            }
            return Ok(None);
        }
        let mut bytes = vec![0; self.course.intervals];
        let mut data = vec![0; READ_BYTES];
        loop {
            match stream.read(&mut data) {
                Ok(0) => return Ok(Some(bytes)),
                Ok(count) => self.course.count(&mut bytes, count),
                Err(_) if self.course.over() => return Ok(Some(bytes)),
                Err(error) => return Err(error),
            }
        }
    }
}
