//! Connections come and go: ports, hashes, ways and endpoints of new ones; numbers used again.
//!
//! A number is used again only with another generation, so that what is still under way for an old
//! connection never reaches a new one.

use simnel_core::flow::{Addresses, FlowHash};
use simnel_core::packet::Flags;
use simnel_core::Time;
use simnel_tcp::{Endpoint, Events, State};

use super::seat::Seat;
use super::{Connection, Network, Opening, Shared, Side, EPHEMERAL};
use crate::capture::{protocol, Headers};
use crate::memory::Memory;
use crate::pool::Tag;

/// The port that is asked.
const SERVER_PORT: u16 = 443;
/// Flows for which room is made beforehand: more of them may never be open at once.
const MOST_RESERVED: usize = 1 << 16;

impl Network {
    /// Makes room for so many flows with a connection each. Seats begin a cache line, and what is
    /// aligned so is copied when it grows: for a while, all of them would be there twice.
    pub fn reserve(&mut self, flows: usize) {
        let flows = flows.min(MOST_RESERVED);
        self.flows.reserve_exact(flows);
        self.ways.pool.accounts.reserve_exact(flows);
        self.shared.reserve_exact(flows);
        self.seats.reserve_exact(2 * flows);
        self.ways.headers.reserve_exact(2 * flows);
    }

    /// Opens a TCP connection: the client's SYN leaves now.
    pub fn open(&mut self, opening: &Opening, now: Time) -> Connection {
        let connection = self.pair(opening, protocol::TCP);
        let (client, server) = (connection.socket(Side::Client), connection.socket(Side::Server));
        let mut config = self.settings[opening.group as usize];
        for socket in [client, server] {
            config.seed = self.seats[socket as usize].tag.hash;
            let mut endpoint = Endpoint::new(&config);
            if let Some(memory) = &self.memory {
                memory.prepare(&self.ways.headers[socket as usize], &mut endpoint);
            }
            self.seats[socket as usize].endpoint = Some(endpoint);
        }
        if let Some(endpoint) = &mut self.seats[server as usize].endpoint {
            endpoint.listen();
        }
        if let Some(endpoint) = &mut self.seats[client as usize].endpoint {
            endpoint.connect(now);
        }
        self.ways.attend(&mut self.seats[client as usize], None, now);
        connection
    }

    /// Opens a pair of sockets for datagrams.
    pub fn open_datagrams(&mut self, opening: &Opening, icmp: bool) -> Connection {
        self.pair(opening, if icmp { protocol::ICMP } else { protocol::UDP })
    }

    /// Ports, ways and a place for a new pair of sockets.
    fn pair(&mut self, opening: &Opening, protocol: u8) -> Connection {
        let number = self.free.pop().unwrap_or_else(|| {
            let index = self.shared.len() as u32;
            self.shared.push(Shared::CLOSED);
            for _ in [Side::Client, Side::Server] {
                self.ways.headers.push(Headers::default());
                self.seats.push(Seat::EMPTY);
            }
            index
        });
        let connection = self.connection(number);
        let (client, server) = opening.hosts;
        let port = &mut self.attachments[client].next_port;
        let client_port = *port;
        *port = port.checked_add(1).unwrap_or(EPHEMERAL);
        self.shared[number as usize] = Shared {
            app: opening.app,
            flow: opening.flow,
            open: true,
            accounted: [0; 2],
            directions: [opening.direction.reverse(), opening.direction],
        };
        let there = (client, server, (client_port, SERVER_PORT), opening.direction);
        let back = (server, client, (SERVER_PORT, client_port), opening.direction.reverse());
        for (side, way) in [(Side::Client, there), (Side::Server, back)] {
            let (from, to, ports, direction) = way;
            let headers = Headers {
                source: self.hosts[from].address,
                destination: self.hosts[to].address,
                ports,
                protocol,
                isn: 0,
                answers: side == Side::Server,
            };
            let socket = connection.socket(side) as usize;
            let (hash, flags) = self.identify(&headers);
            self.ways.headers[socket] = Headers { isn: hash.flow as u32, ..headers };
            let tag = &mut self.seats[socket].tag;
            *tag = Tag {
                hash: hash.flow,
                hosts: (hash.src_host, hash.dst_host),
                socket: socket as u32,
                flow: opening.flow,
                group: opening.group,
                len: 0,
                to_bottleneck: self.attachments[from].egress,
                from_bottleneck: self.attachments[to].ingress,
                generation: tag.generation,
                tos: opening.dscp << 2,
                memory: 0,
                direction: direction as u8,
                flags,
                watch: opening.watched,
            };
        }
        connection
    }

    /// The hash of what the client sends in the connection of which one way has this hash.
    pub fn client_hash(&self, hash: u64) -> Option<u64> {
        let socket = self.seats.iter().position(|seat| seat.tag.hash == hash)?;
        Some(self.seats[socket & !1].tag.hash)
    }

    /// Facts that a classifier would find in a socket's packets.
    fn identify(&self, headers: &Headers) -> (FlowHash, Flags) {
        let mut ports = [0; 4];
        if headers.protocol != protocol::ICMP {
            ports[..2].copy_from_slice(&headers.ports.0.to_be_bytes());
            ports[2..].copy_from_slice(&headers.ports.1.to_be_bytes());
        }
        let addresses = Addresses::V4(headers.source, headers.destination);
        let hash = self.hasher.hash(&addresses, headers.protocol, ports);
        let mut flags = Flags::IPV4;
        if headers.protocol == protocol::TCP {
            flags.set(Flags::TCP);
        }
        (hash, flags)
    }

    /// Lets the application write, close or ask: whatever `act` does to the endpoint of `side`
    /// takes effect at once. Nothing happens if the connection is over.
    pub fn with_endpoint<T>(
        &mut self,
        connection: Connection,
        side: Side,
        now: Time,
        act: impl FnOnce(&mut Endpoint) -> T,
    ) -> Option<T> {
        if !self.stands(connection) {
            return None;
        }
        let seat = &mut self.seats[connection.socket(side) as usize];
        let result = act(seat.endpoint.as_mut()?);
        self.ways.attend(seat, None, now);
        Some(result)
    }

    /// Payload bytes that `side` has received in order.
    pub fn received(&self, connection: Connection, side: Side) -> u64 {
        self.endpoint(connection, side).map_or(0, Endpoint::received)
    }

    /// The connection that has this number now, or will have it next.
    pub(super) fn connection(&self, number: u32) -> Connection {
        Connection { number, generation: self.seats[2 * number as usize].tag.generation }
    }

    /// True if it is not over.
    fn stands(&self, connection: Connection) -> bool {
        connection == self.connection(connection.number)
    }

    fn endpoint(&self, connection: Connection, side: Side) -> Option<&Endpoint> {
        let stands = self.stands(connection);
        self.seats[connection.socket(side) as usize].endpoint.as_ref().filter(|_| stands)
    }

    /// Forgets a connection; what is still under way counts as late. Its sockets may be used again.
    pub fn release(&mut self, connection: Connection) {
        if !self.stands(connection) {
            return;
        }
        let index = connection.number as usize;
        self.account(connection);
        self.remember(connection);
        self.shared[index].open = false;
        let flow = self.shared[index].flow as usize;
        for side in [Side::Client, Side::Server] {
            let socket = connection.socket(side) as usize;
            let seat = std::mem::replace(&mut self.seats[socket], Seat::EMPTY);
            if let Some(endpoint) = seat.endpoint {
                self.flows[flow].close(&endpoint.stats());
            }
            self.seats[socket].tag.generation = seat.tag.generation.wrapping_add(1);
        }
        self.free.push(connection.number);
    }

    /// Both ends of an open connection tell their hosts what they have found of the path.
    fn remember(&mut self, connection: Connection) {
        let Some(memory) = &mut self.memory else { return };
        for side in [Side::Client, Side::Server] {
            let socket = connection.socket(side) as usize;
            if let Some(endpoint) = &self.seats[socket].endpoint {
                memory.learn(&self.ways.headers[socket], endpoint);
            }
        }
    }

    /// The hosts' memory once the connections that are still open have ended, too.
    pub fn memories(&mut self) -> Option<Memory> {
        for (number, _) in (0..).zip(self.shared.clone()).filter(|(_, shared)| shared.open) {
            self.remember(self.connection(number));
        }
        self.memory.take()
    }

    /// Gives back the memory of all connections, when the run is over.
    pub fn disband(&mut self) {
        (self.seats, self.shared) = (Vec::new(), Vec::new());
        self.ways.headers = Vec::new();
    }

    /// Ends a connection if `events` at `side` call for that. A server closes when its peer has,
    /// and a connection that is reset, or done at both ends, is released. True if it was.
    #[inline]
    pub fn follow(
        &mut self,
        connection: Connection,
        side: Side,
        events: &Events,
        now: Time,
    ) -> bool {
        if side == Side::Server && events.peer_closed {
            self.with_endpoint(connection, side, now, |endpoint| endpoint.close());
        }
        if events.reset {
            self.release(connection);
        }
        events.reset || events.finished && self.release_if_over(connection)
    }

    /// Releases a connection both of whose ends are done.
    fn release_if_over(&mut self, connection: Connection) -> bool {
        let over = [Side::Client, Side::Server].iter().all(|side| {
            let state = self.endpoint(connection, *side).map_or(State::Closed, Endpoint::state);
            matches!(state, State::Finished | State::Closed)
        });
        if over {
            self.release(connection);
        }
        over
    }
}
