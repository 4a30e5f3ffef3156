//! A TCP connection between two hosts. The host at home connects, whichever way the payload goes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{failed, joined, Course, Heard, Join, Sides, AFTER, STOP_CHECK};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::TestbedError;

/// Bytes taken from the kernel in one call.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Options of both ends' sockets.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Congestion control, by Linux's name.
    pub congestion: String,
    /// Largest segment, if it is smaller than the interface's.
    pub mss: Option<u32>,
    /// Small writes wait for what is in flight.
    pub nagle: bool,
}

impl Manner {
    pub fn socket(&self, address: Ipv4Addr, dscp: u8) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        self.apply(SockRef::from(&socket), dscp)?;
        if let Some(mss) = self.mss {
            socket.set_tcp_mss(mss)?;
        }
        socket.bind(&SocketAddr::from(SocketAddrV4::new(address, 0)).into())?;
        Ok(socket)
    }

    /// Options that an accepted connection does not take over from its listener.
    pub fn apply(&self, socket: SockRef<'_>, dscp: u8) -> io::Result<()> {
        socket.set_tos_v4(u32::from(dscp) << 2)?;
        socket.set_tcp_nodelay(!self.nagle)?;
        socket.set_tcp_congestion(self.congestion.as_bytes())
    }
}

/// Makes the listener, and threads for both ends, which wait for the flow's time. An end is given
/// its connection, or None if there was none until the run's end, as it happens on a line that is
/// overloaded. `heard` makes the flow's results of what client and server return.
pub(super) fn start<C: Send + 'static, S: Send + 'static>(
    flow: &Flow,
    manner: Manner,
    (sides, course): (Sides<'_>, &Course),
    client: impl FnOnce(Option<TcpStream>) -> io::Result<C> + Send + 'static,
    server: impl FnOnce(Option<TcpStream>) -> io::Result<S> + Send + 'static,
    heard: impl FnOnce(C, S) -> Heard + 'static,
) -> Result<Join, TestbedError> {
    let (dscp, begin) = (flow.dscp, flow.start);
    let listen = || {
        let socket = manner.socket(flow.internet, dscp)?;
        socket.listen(1)?;
        // Linux's `accept` waits no longer than that.
        socket.set_read_timeout(Some(STOP_CHECK))?;
        io::Result::Ok(TcpListener::from(socket))
    };
    let open = || manner.socket(flow.home, dscp);
    let listener =
        sides.internet.enter(listen)?.map_err(|error| failed(flow, "listen for TCP", error))?;
    let near = sides.home.enter(open)?.map_err(|error| failed(flow, "open TCP", error))?;
    let to = listener.local_addr().map_err(|error| failed(flow, "listen for TCP", error))?;

    let there = course.clone();
    let server = thread::spawn(move || {
        let stream = accept(&listener, &there)?;
        if let Some(stream) = &stream {
            manner.apply(SockRef::from(stream), dscp)?;
            there.keep(stream)?;
        }
        server(stream)
    });
    let here = course.clone();
    let client = thread::spawn(move || {
        here.wait(begin);
        let stream = connect(near, to, &here)?;
        if let Some(stream) = &stream {
            here.keep(stream)?;
        }
        client(stream)
    });
    Ok(Box::new(move || {
        let results = (joined(client), joined(server));
        let heard = match results {
            (Ok(client), Ok(server)) => heard(client, server),
            (Err(error), _) | (_, Err(error)) => {
                Heard { failure: Some(error.to_string()), ..Heard::default() }
            }
        };
        Heard { port: to.port(), ..heard }
    }))
}

fn accept(listener: &TcpListener, course: &Course) -> io::Result<Option<TcpStream>> {
    while !course.over() {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_read_timeout(None)?;
                return Ok(Some(stream));
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Writes all of `data`. An end of the run is no failure.
pub(super) fn write(stream: &mut TcpStream, data: &[u8], course: &Course) -> io::Result<()> {
    match stream.write_all(data) {
        Err(error) if !course.over() => Err(error),
        _ => Ok(()),
    }
}

/// Receives until the connection or the run ends: the bytes that came, by interval. `came` is told
/// after each call how many that brought.
pub(super) fn receive(
    stream: Option<TcpStream>,
    course: &Course,
    mut came: impl FnMut(usize),
) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; course.intervals];
    let Some(mut stream) = stream else { return Ok(bytes) };
    let mut data = vec![0; READ_BYTES];
    loop {
        match stream.read(&mut data) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                course.count(&mut bytes, count);
                came(count);
            }
            Err(_) if course.over() => return Ok(bytes),
            Err(error) => return Err(error),
        }
    }
}

/// A connection to `to`; None where each SYN is lost, on a line as in the simulator.
fn connect(near: Socket, to: SocketAddr, course: &Course) -> io::Result<Option<TcpStream>> {
    let left: Duration = course.duration.saturating_sub(course.now()) + AFTER;
    match near.connect_timeout(&to.into(), left) {
        Err(error) if course.over() || error.kind() == ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(Some(near.into())),
    }
}
