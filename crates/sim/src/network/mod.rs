//! The network: sockets, ways, the bottleneck, and what moves between them.
//!
//! A *connection* is a pair of sockets, numbers 2c and 2c + 1, so that the other end of socket s is
//! s ^ 1. A socket has a `Seat` with a `Tag` and with what changes. The tag has all about the
//! socket's packets that does not change (hashes, the line, the pipe behind it). TCP sockets have
//! an endpoint; datagram sockets belong to an application. `connections` opens and closes them;
//! `ways` carries their packets through pipes and the bottleneck.
//!
//! Endpoints' timers are armed lazily. An event stands for the earliest time at which the endpoint
//! may want to be called. If it wants a later time by then, it is armed again. So moving a timer
//! back, as every acknowledgement does, costs nothing.
//!
//! Deliveries without delay wait in `arrived` until the event that caused them is done with: no
//! call chain goes through two endpoints.

use std::collections::VecDeque;

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::random::Random;
use simnel_core::{Span, Time};

use crate::event::Target;
use crate::flow::{FlowRecord, TcpTotals, WindowSample};
use crate::line::Line;
use crate::memory::Memory;
use crate::pipe::Pipe;
use crate::pool::{Datagram, Payload, Watch, NO_PIPE};
use crate::setup::{Direction, Host, Loss, Reordering};

mod connections;
mod look;
mod seat;
mod ways;

pub use look::Waiting;
use seat::Seat;
use ways::Arrival;
pub(crate) use ways::Ways;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of an IPv4 header.
const IPV4: u32 = 20;
/// Bytes of a UDP or ICMP echo header.
const UDP: u32 = 8;
/// First port of connections' clients.
const EPHEMERAL: u16 = 32_768;
/// Endpoints that stay in the cache by themselves, though not what is under way to them.
const CACHED_SEATS: usize = 32;
/// Endpoints that are found in the second-level cache.
const NEAR_SEATS: usize = 512;
/// Packets between the one that arrives and the one whose endpoint is fetched meanwhile.
const AHEAD: usize = 2;

/// A connection, or a pair of datagram sockets. When it is over its number may be used again, with
/// another generation: whatever is done to one that is over does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Connection {
    number: u32,
    generation: u16,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that opens it.
    Client = 0,
    /// The one that is asked.
    Server = 1,
}

impl Connection {
    #[inline(always)]
    pub fn socket(self, side: Side) -> u32 {
        self.number * 2 + side as u32
    }
}

/// Something that an application wants to know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice {
    /// A TCP endpoint has news.
    Tcp(Connection, Side, simnel_tcp::Events),
    /// A datagram has arrived.
    Datagram(Connection, Side, Datagram),
}

/// Particulars of a connection that is to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// The application that it belongs to.
    pub app: u32,
    /// The flow on whose account it goes.
    pub flow: u32,
    /// The traffic that the flow belongs to.
    pub group: u32,
    /// Host that opens it, and host that is asked.
    pub hosts: (usize, usize),
    /// The way from the first to the second.
    pub direction: Direction,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Events that the application asks for.
    pub watched: Watch,
}

/// Common part of a connection's two sockets.
#[derive(Clone, Copy, Debug)]
struct Shared {
    app: u32,
    flow: u32,
    open: bool,
    /// Payload bytes already on the flow's account, received by client and server.
    accounted: [u64; 2],
    /// The ways of what client and server receive.
    directions: [Direction; 2],
}

impl Shared {
    const CLOSED: Shared =
        Shared { app: 0, flow: 0, open: false, accounted: [0; 2], directions: Direction::BOTH };

    /// The socket of connection `index`, which this is part of, that sends into `direction`.
    fn sender(&self, index: usize, direction: Direction) -> usize {
        2 * index + usize::from(self.directions[0] == direction)
    }
}

/// A host's pipes.
#[derive(Clone, Copy, Debug)]
struct Attachment {
    egress: u32,
    ingress: u32,
    next_port: u16,
}

/// Everything but the applications.
pub(crate) struct Network {
    pub ways: Ways,
    pub flows: Vec<FlowRecord>,
    pub notices: VecDeque<(u32, Notice)>,
    /// The hosts' memory of paths; None if they remember nothing.
    pub memory: Option<Memory>,
    /// Settings of both ends of connections, by traffic.
    settings: Vec<simnel_tcp::Config>,
    hosts: Vec<Host>,
    attachments: Vec<Attachment>,
    seats: Vec<Seat>,
    shared: Vec<Shared>,
    free: Vec<u32>,
    hasher: FlowHasher,
}

impl Network {
    /// A network without connections.
    pub fn new(
        lines: [Line; 2],
        losses: [Loss; 2],
        jitter: [Span; 2],
        reordering: [Reordering; 2],
        hosts: &[Host],
        settings: Vec<simnel_tcp::Config>,
        seed: u64,
    ) -> Network {
        let mut key = Random::derive(seed, 1);
        let (ways, attachments) = Ways::new(lines, losses, jitter, reordering, hosts, seed);
        Network {
            ways,
            flows: Vec::new(),
            notices: VecDeque::new(),
            memory: None,
            settings,
            hosts: hosts.to_vec(),
            attachments,
            seats: Vec::new(),
            shared: Vec::new(),
            free: Vec::new(),
            hasher: FlowHasher::new(HashKey::new(key.u64(), key.u64()), 128),
        }
    }

    /// Sends a datagram.
    pub fn send_datagram(
        &mut self,
        connection: Connection,
        side: Side,
        datagram: Datagram,
        now: Time,
    ) {
        let len = ETHERNET + IPV4 + UDP + datagram.size;
        let socket = connection.socket(side) as usize;
        let tag = &self.seats[socket].tag;
        let (handle, place) = self.ways.pool.insert(tag, len, 0);
        *place = Payload::Datagram(datagram);
        self.ways.send(handle, tag.to_bottleneck, len, now);
    }

    /// Wakes an application.
    pub fn wake(&mut self, app: u32, at: Time) {
        self.ways.events.push(at, Target::App(app));
    }

    /// The packet at a pipe's head has arrived. The pipe's next event is planned first. Nothing
    /// that happens here comes into the same pipe, since pipes lead either to the bottleneck or
    /// away from it.
    #[inline]
    pub fn on_pipe(&mut self, index: u32, now: Time) {
        let pipe = &mut self.ways.pipes[index as usize];
        let to_bottleneck = pipe.to_bottleneck;
        let Some((mut handle, mut due)) = pipe.pop() else { return };
        if self.seats.len() > NEAR_SEATS {
            self.prefetch_in_stages(index);
        } else if self.seats.len() > CACHED_SEATS {
            self.prefetch_upcoming(index);
        } else if let Some(handle) = pipe.upcoming(1) {
            self.ways.pool.prefetch(handle);
        }
        while due <= now {
            let Some(next) = self.ways.pipes[index as usize].pop() else { break };
            self.arrive(handle, to_bottleneck, Some(next.0), now);
            (handle, due) = next;
        }
        if due != Time::MAX {
            self.ways.events.push(due, Target::Pipe(index));
        }
        self.arrive(handle, to_bottleneck, None, now);
    }

    /// A packet has come to the end of a pipe, where another may follow in the same moment.
    #[inline(always)]
    fn arrive(&mut self, handle: u32, to_bottleneck: bool, following: Option<u32>, now: Time) {
        if to_bottleneck {
            self.ways.enter_bottleneck(handle, now);
        } else {
            self.deliver(handle, following, now);
        }
    }

    /// Fetches what packets will meet that arrive soon, see `seat`.
    #[inline]
    fn prefetch_upcoming(&self, pipe: u32) {
        let pipe = &self.ways.pipes[pipe as usize];
        if let Some(handle) = pipe.upcoming(2 * AHEAD) {
            self.ways.pool.prefetch(handle);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, AHEAD) {
            self.seats[socket].prefetch(has_data);
        }
    }

    /// The same where endpoints are so many that everything comes from far memory: earlier, and in
    /// stages. A processor stalls with more than some twenty cache lines under way at once.
    #[inline(never)]
    fn prefetch_in_stages(&self, pipe: u32) {
        let pipe = &self.ways.pipes[pipe as usize];
        pipe.prefetch(8 * AHEAD);
        if let Some(handle) = pipe.upcoming(3 * AHEAD) {
            self.ways.pool.prefetch(handle);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, 2 * AHEAD) {
            self.seats[socket].prefetch_first(has_data);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, 3 * AHEAD / 2) {
            self.seats[socket].prefetch_rest(has_data);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, AHEAD) {
            self.seats[socket].prefetch_records(has_data);
        }
    }

    /// The socket to which the packet goes that arrives after `n` others, and whether it brings
    /// data. None if it has yet to queue: then it arrives nobody knows when.
    #[inline]
    fn upcoming_delivery(&self, pipe: &Pipe, n: usize) -> Option<(usize, bool)> {
        let handle = pipe.upcoming(n)?;
        let tag = self.ways.pool.tag(handle);
        let is_last = !pipe.to_bottleneck || tag.from_bottleneck == NO_PIPE;
        is_last.then(|| ((tag.socket ^ 1) as usize, self.ways.pool.has_data(handle)))
    }

    /// A line may send, and what it has kept until now is delivered.
    #[inline]
    pub fn on_line(&mut self, line: u32, now: Time) {
        let kept = self.ways.lines[line as usize].wake(now);
        self.ways.serve(line as usize, now);
        if let Some(handle) = kept {
            self.deliver(handle, self.ways.arrived.front().copied(), now);
        }
    }

    /// An endpoint's timer may be due.
    #[inline]
    pub fn on_endpoint(&mut self, socket: u32, now: Time) {
        if self.seats.len() > NEAR_SEATS {
            self.prefetch_timers();
        }
        let seat = &mut self.seats[socket as usize];
        if seat.armed != now {
            return;
        }
        seat.armed = Time::MAX;
        if seat.wanted > now {
            self.ways.arm(seat, now);
            return;
        }
        let Some(endpoint) = &mut seat.endpoint else { return };
        endpoint.on_timer(now);
        self.ways.attend(seat, None, now);
        if seat.tag.watch != Watch::Nothing {
            self.tell(socket);
        }
    }

    /// Fetches what timers will meet that fire soon, see `seat`.
    #[inline]
    fn prefetch_timers(&self) {
        if let Some(Target::Endpoint(socket)) = self.ways.events.upcoming_timer(2 * AHEAD) {
            self.seats[socket as usize].prefetch_times();
        }
        if let Some(Target::Endpoint(socket)) = self.ways.events.upcoming_timer(AHEAD) {
            let seat = &self.seats[socket as usize];
            if seat.wanted <= seat.armed {
                seat.prefetch(true);
            }
        }
    }

    /// Hands over what arrived without delay.
    #[inline(always)]
    pub fn drain(&mut self, now: Time) {
        if !self.ways.arrived.is_empty() {
            self.deliver_arrived(now);
        }
    }

    #[inline(never)]
    fn deliver_arrived(&mut self, now: Time) {
        while let Some(handle) = self.ways.arrived.pop_front() {
            self.deliver(handle, self.ways.arrived.front().copied(), now);
        }
    }

    /// Puts all payload that was delivered so far on the flows' accounts.
    pub fn account_all(&mut self) {
        for number in 0..self.shared.len() as u32 {
            self.account(self.connection(number));
        }
    }

    /// TCP's counters of every flow so far.
    pub fn tcp_totals(&self) -> Vec<TcpTotals> {
        let mut totals: Vec<TcpTotals> = self.flows.iter().map(|flow| flow.closed()).collect();
        for (index, shared) in self.shared.iter().enumerate().filter(|(_, shared)| shared.open) {
            for endpoint in self.seats[2 * index..2 * index + 2]
                .iter()
                .filter_map(|seat| seat.endpoint.as_ref())
            {
                totals[shared.flow as usize].add(&endpoint.stats());
            }
        }
        totals
    }

    /// The interval is over: samples every flow and line.
    pub fn sample(&mut self) {
        self.account_all();
        for (index, shared) in self.shared.iter().enumerate().filter(|(_, shared)| shared.open) {
            let flow = &mut self.flows[shared.flow as usize];
            if !flow.windows_wanted || flow.windows.len() > flow.series.len() {
                continue;
            }
            let sender = shared.sender(index, flow.direction);
            if let Some(endpoint) = &self.seats[sender].endpoint {
                let stats = endpoint.stats();
                flow.windows.resize(flow.series.len(), WindowSample::default());
                flow.windows.push(WindowSample { cwnd: stats.cwnd, srtt: stats.srtt });
            }
        }
        self.flows.iter_mut().for_each(FlowRecord::sample);
        self.ways.lines.iter_mut().for_each(|line| line.record.sample());
    }

    fn account(&mut self, connection: Connection) {
        let shared = &mut self.shared[connection.number as usize];
        if !shared.open {
            return;
        }
        for side in [Side::Client, Side::Server] {
            let Some(endpoint) = &self.seats[connection.socket(side) as usize].endpoint else {
                continue;
            };
            let received = endpoint.received() - endpoint.readable();
            let flow = &mut self.flows[shared.flow as usize];
            let direction = shared.directions[side as usize] as usize;
            flow.delivered[direction] += received - shared.accounted[side as usize];
            shared.accounted[side as usize] = received;
        }
    }

    /// A packet has arrived at its host, where another may follow in the same moment.
    #[inline(always)]
    fn deliver(&mut self, handle: u32, following: Option<u32>, now: Time) {
        let tag = self.ways.pool.tag(handle);
        let (socket, generation) = (tag.socket ^ 1, tag.generation);
        self.ways.pool.mix(now.0 ^ u64::from(handle));
        let seat = &mut self.seats[socket as usize];
        if generation != seat.tag.generation {
            self.ways.pool.late(handle);
            return;
        }
        if let Payload::Datagram(datagram) = self.ways.pool.payload(handle) {
            let datagram = *datagram;
            self.deliver_datagram(handle, socket, datagram);
            return;
        }
        let goes_on = following.is_some_and(|next| self.ways.pool.continues(next, handle));
        self.ways.attend(seat, Some(Arrival { handle, goes_on }), now);
        if seat.tag.watch != Watch::Nothing {
            self.tell(socket);
        }
    }

    #[inline(never)]
    fn deliver_datagram(&mut self, handle: u32, socket: u32, datagram: Datagram) {
        self.ways.pool.delivered(handle);
        let connection = self.connection(socket / 2);
        let side = if socket & 1 == 0 { Side::Client } else { Side::Server };
        let app = self.shared[connection.number as usize].app;
        self.notices.push_back((app, Notice::Datagram(connection, side, datagram)));
    }

    /// Tells a watching application what its endpoint has seen.
    #[inline(never)]
    fn tell(&mut self, socket: u32) {
        let seat = &mut self.seats[socket as usize];
        let Some(endpoint) = &mut seat.endpoint else { return };
        let mut events = endpoint.take_events();
        events.acked = false;
        if seat.tag.watch == Watch::Ends {
            events.data = false;
        }
        if events != simnel_tcp::Events::default() {
            let side = if socket & 1 == 0 { Side::Client } else { Side::Server };
            let connection = self.connection(socket / 2);
            let app = self.shared[connection.number as usize].app;
            self.notices.push_back((app, Notice::Tcp(connection, side, events)));
        }
    }
}
