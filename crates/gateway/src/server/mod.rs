//! The daemon's end of the control sockets: clients that cannot keep each other waiting.
//!
//! Nothing blocks. Each connection has a buffer for its requests and one for its answer; from one
//! that has not taken its answer nothing more is read. Whoever leaves an exchange unfinished for
//! [`PATIENCE`], or says nothing for [`IDLE`], is closed. Beyond [`MAX_CONNECTIONS`] the one that
//! has been silent longest makes room, so a newcomer is always heard.
//!
//! Sockets have mode 0600 from the moment they are there, or 0660 where the directory gives them
//! root's group. Should somebody loosen that, requests are still taken from root and the daemon's
//! own user only (SO_PEERCRED).

use std::fs::Metadata;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::epoll;
use rustix::fs::{fchmod, Mode};
use rustix::net::{self, sockopt};
use simnel_core::{Span, Time};

use crate::control::Reply;

/// Control connections at a time.
pub const MAX_CONNECTIONS: usize = 32;
/// Bytes of a request.
pub const MAX_LINE: usize = 64 * 1024;
/// Time for the rest of a request, and for taking an answer.
const PATIENCE: Span = Span::from_secs(5);
/// Time between one exchange and the next.
const IDLE: Span = Span::from_secs(30);
/// New connections and ready ones that are looked at in one turn; the rest come in the next.
const PER_TURN: usize = MAX_CONNECTIONS;

/// A request of one connection, as it was written.
pub(crate) struct Asked {
    /// Number of the connection.
    pub(crate) from: u64,
    /// The interface whose socket it came by.
    pub(crate) interface: String,
    pub(crate) line: Vec<u8>,
}

/// All control sockets of a daemon and their clients.
pub(crate) struct Server {
    /// Readable when one of them has something for us: epoll(7).
    events: OwnedFd,
    listeners: Vec<Listener>,
    /// The client that has waited longest for a turn comes first.
    connections: Vec<Connection>,
    last_key: u64,
}

struct Listener {
    key: u64,
    socket: UnixListener,
    interface: String,
    path: PathBuf,
}

struct Connection {
    key: u64,
    stream: UnixStream,
    interface: String,
    received: Vec<u8>,
    /// Rest of the answer that the client has not taken.
    answer: Vec<u8>,
    /// The last time at which it connected, completed a request or had its whole answer.
    active: Time,
    /// To be closed once the answer has been taken.
    ending: bool,
}

impl Server {
    /// A server without sockets.
    pub(crate) fn new() -> io::Result<Server> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Server { events, listeners: Vec::new(), connections: Vec::new(), last_key: 0 })
    }

    /// Readable when [`Server::turn`] has something to do.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Longest wait of the caller before the next [`Server::turn`]; None for no limit.
    pub(crate) fn patience(&self) -> Option<Span> {
        if self.connections.iter().any(Connection::has_request) {
            return Some(Span::ZERO);
        }
        (!self.connections.is_empty()).then_some(PATIENCE)
    }

    /// Listens at `path`, which must be nobody else's, for requests about `interface`; goes on with
    /// that if it does already.
    pub(crate) fn listen(&mut self, path: &Path, interface: &str) -> io::Result<()> {
        if self.listeners.iter().any(|listener| listener.path == path) {
            return Ok(());
        }
        let _ = std::fs::remove_file(path);
        let flags = net::SocketFlags::CLOEXEC | net::SocketFlags::NONBLOCK;
        let kind = net::SocketType::STREAM;
        let socket = net::socket_with(net::AddressFamily::UNIX, kind, flags, None)?;
        // Linux gives a socket's file the mode that the socket has as it is bound.
        fchmod(&socket, mode_in(path.parent().unwrap_or(path)))?;
        net::bind(&socket, &net::SocketAddrUnix::new(path)?)?;
        net::listen(&socket, MAX_CONNECTIONS as i32)?;
        let (key, socket) = (self.key(), UnixListener::from(socket));
        self.watch(key, socket.as_fd(), epoll::EventFlags::IN)?;
        let (interface, path) = (interface.to_owned(), path.to_owned());
        self.listeners.push(Listener { key, socket, interface, path });
        Ok(())
    }

    /// Listens no more for requests about `interface`; clients who are connected stay so.
    pub(crate) fn stop_listening(&mut self, interface: &str) {
        self.listeners.retain(|listener| {
            let stays = listener.interface != interface;
            if !stays {
                let _ = std::fs::remove_file(&listener.path);
            }
            stays
        });
    }

    /// Takes in what has come, sends what can be sent, and closes what has been silent too long.
    pub(crate) fn turn(&mut self, now: Time) {
        let mut events = Vec::with_capacity(PER_TURN);
        // An interrupted wait has no events.
        let zero = rustix::fs::Timespec::default();
        let _ = epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut events), Some(&zero));
        for event in events {
            let key = event.data.u64();
            if let Some(index) = self.listeners.iter().position(|l| l.key == key) {
                self.accept(index, now);
            } else if let Some(index) = self.connections.iter().position(|c| c.key == key) {
                let lives = self.connections[index].exchange(now);
                self.keep(index, lives);
            }
        }
        self.connections.retain(|connection| !connection.is_overdue(now));
    }

    /// The next request. Each connection has one answered before another has its second.
    pub(crate) fn next(&mut self, now: Time) -> Option<Asked> {
        let index = self.connections.iter().position(Connection::has_request)?;
        let mut connection = self.connections.remove(index);
        let asked = connection.next_line(now);
        self.connections.push(connection);
        asked
    }

    /// Answers a request. What the client does not take at once is kept for it.
    pub(crate) fn answer(&mut self, asked: &Asked, reply: &Reply, now: Time) {
        let Some(index) = self.connections.iter().position(|c| c.key == asked.from) else { return };
        let lives = self.connections[index].say(reply) && self.connections[index].exchange(now);
        self.keep(index, lives);
    }

    /// True while the connection of that number stands.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.connections.iter().any(|connection| connection.key == key)
    }

    fn key(&mut self) -> u64 {
        self.last_key += 1;
        self.last_key
    }

    fn watch(&self, key: u64, fd: BorrowedFd<'_>, what: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.events, fd, epoll::EventData::new_u64(key), what)?)
    }

    fn accept(&mut self, listener: usize, now: Time) {
        for _ in 0..PER_TURN {
            let Ok((stream, _)) = self.listeners[listener].socket.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let (key, interface) = (self.key(), self.listeners[listener].interface.clone());
            let mut new = Connection {
                key,
                stream,
                interface,
                received: Vec::new(),
                answer: Vec::new(),
                active: now,
                ending: false,
            };
            if let Err(refusal) = may_ask(&new.stream) {
                // Whether it reads that or not, it is closed.
                let _ = new.say(&Reply::error(refusal)) && new.send(now);
                continue;
            }
            if self.connections.len() >= MAX_CONNECTIONS {
                let silent =
                    (0..self.connections.len()).min_by_key(|&i| self.connections[i].active);
                silent.map(|index| self.connections.remove(index));
            }
            if self.watch(key, new.stream.as_fd(), epoll::EventFlags::IN).is_ok() {
                self.connections.push(new);
            }
        }
    }

    /// Waits for the right thing at connection `index`, or closes it unless it `lives`.
    fn keep(&mut self, index: usize, lives: bool) {
        let connection = &self.connections[index];
        let what = match connection.answer.is_empty() {
            true => epoll::EventFlags::IN,
            false => epoll::EventFlags::OUT,
        };
        let data = epoll::EventData::new_u64(connection.key);
        if !lives || epoll::modify(&self.events, &connection.stream, data, what).is_err() {
            self.connections.remove(index);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for listener in &self.listeners {
            let _ = std::fs::remove_file(&listener.path);
        }
    }
}

impl Connection {
    /// Sends what waits, or if nothing does, receives; false if the connection is over.
    fn exchange(&mut self, now: Time) -> bool {
        if !self.answer.is_empty() {
            return self.send(now);
        }
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(n) => self.received.extend(&buffer[..n]),
            Err(e) => return is_for_later(&e),
        }
        if self.received.len() > MAX_LINE && !self.has_request() {
            self.ending = true;
            let reply = Reply::error(format!("a request has at most {MAX_LINE} bytes"));
            return self.say(&reply) && self.send(now);
        }
        true
    }

    /// Adds to the answer; false if it cannot be written down.
    fn say(&mut self, reply: &Reply) -> bool {
        let written = serde_json::to_writer(&mut self.answer, reply).is_ok();
        self.answer.push(b'\n');
        if let Some(recorded) = &reply.recorded {
            self.answer.extend_from_slice(&recorded.raw);
        }
        written
    }

    /// Sends what the client's buffer has room for; false if the connection is over.
    fn send(&mut self, now: Time) -> bool {
        while !self.answer.is_empty() {
            match self.stream.write(&self.answer) {
                Ok(sent) => drop(self.answer.drain(..sent)),
                Err(e) => return is_for_later(&e),
            }
        }
        self.active = now;
        !self.ending
    }

    /// True if a whole request is there, and the one before it has been answered.
    fn has_request(&self) -> bool {
        self.answer.is_empty() && !self.ending && self.received.contains(&b'\n')
    }

    fn next_line(&mut self, now: Time) -> Option<Asked> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        let line = self.received.drain(..=end).collect();
        self.active = now;
        Some(Asked { from: self.key, interface: self.interface.clone(), line })
    }

    /// True if the client has not done its part for too long.
    fn is_overdue(&self, now: Time) -> bool {
        let unfinished = !self.answer.is_empty() || !self.received.is_empty();
        now.since(self.active) > if unfinished { PATIENCE } else { IDLE }
    }
}

/// The mode of sockets in `directory`: where that gives them root's group (inode(7)), the group may
/// ask, too, which is root without capabilities.
fn mode_in(directory: &Path) -> Mode {
    let own = Mode::RUSR | Mode::WUSR;
    let gives_roots = |about: Metadata| about.gid() == 0 && about.mode() & libc::S_ISGID != 0;
    match directory.metadata().is_ok_and(gives_roots) {
        true => own | Mode::RGRP | Mode::WGRP,
        false => own,
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Fails, with the reason, unless the other end belongs to somebody whose requests are carried out.
fn may_ask(stream: &UnixStream) -> Result<(), String> {
    let peer = match sockopt::socket_peercred(stream) {
        Ok(peer) => peer,
        Err(e) => return Err(format!("who asks cannot be told: {e}")),
    };
    let own = rustix::process::geteuid();
    if peer.uid.is_root() || peer.uid == own {
        return Ok(());
    }
    Err(format!(
        "user {} may not ask: be root or user {}, as which the daemon runs",
        peer.uid.as_raw(),
        own.as_raw()
    ))
}

#[cfg(test)]
mod tests;
