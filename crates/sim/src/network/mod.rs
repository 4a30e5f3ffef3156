//! The network: sockets, ways, the bottleneck, and what moves between them.
//!
//! A *connection* is a pair of sockets, numbers 2c and 2c + 1, so that the other end of socket s is
//! s ^ 1. A socket has a `Tag`, with all about its packets that does not change: hashes, the line,
//! the pipe behind it; and a `Seat`, where it keeps what changes. TCP sockets have an endpoint;
//! datagram sockets belong to an application. `connections` opens and closes them.
//!
//! Endpoints' timers are armed lazily: an event stands for the earliest time at which the endpoint
//! may want to be called; if it wants a later time by then, it is armed again. So moving a timer
//! back, as every acknowledgement does, costs nothing.
//!
//! Deliveries without delay wait in `arrived` until the event that caused them is done with: no
//! call chain goes through two endpoints.

use std::collections::{BTreeMap, VecDeque};

use prefetch_index::prefetch_index;
use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::random::Random;
use simnel_core::{Span, Time};

use crate::capture::{write_frame, Headers, InOrder};
use crate::event::{Events, Target};
use crate::flow::{FlowRecord, TcpTotals, WindowSample};
use crate::line::{Line, Served};
use crate::memory::Memory;
use crate::pipe::Pipe;
use crate::pool::{Datagram, Payload, Pool, Tag, NO_PIPE};
use crate::setup::{Access, Direction, Host, Loss};

mod connections;
mod look;
mod seat;

pub use look::Waiting;
use seat::Seat;

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of an IPv4 header.
const IPV4: u32 = 20;
/// Bytes of a UDP or ICMP echo header.
const UDP: u32 = 8;
/// First port of connections' clients.
const EPHEMERAL: u16 = 32_768;
/// Endpoints that stay in the cache by themselves.
const CACHED_SEATS: usize = 32;
/// Endpoints that are found in the second-level cache.
const NEAR_SEATS: usize = 512;
/// Packets between the one that arrives and the one whose endpoint is fetched meanwhile.
const AHEAD: usize = 2;
/// Random streams below this number belong to other components.
const FIRST_PIPE_STREAM: u64 = 1 << 32;

/// A connection, or a pair of datagram sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection(pub u32);

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that opens it.
    Client = 0,
    /// The one that is asked.
    Server = 1,
}

impl Connection {
    #[inline(always)]
    pub fn socket(self, side: Side) -> u32 {
        self.0 * 2 + side as u32
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

/// Events of its connections that an application asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Nothing,
    /// That one has opened, closed or failed.
    Ends,
    /// Also that data has come.
    Everything,
}

/// How a connection is to be made.
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
    /// Settings of both ends.
    pub tcp: simnel_tcp::Config,
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
    pub events: Events,
    pub pool: Pool,
    pub lines: [Line; 2],
    pub flows: Vec<FlowRecord>,
    pub notices: VecDeque<(u32, Notice)>,
    pub capture: Option<InOrder>,
    /// The hosts' memory of paths; None if they remember nothing.
    pub memory: Option<Memory>,
    pipes: Vec<Pipe>,
    hosts: Vec<Host>,
    attachments: Vec<Attachment>,
    seats: Vec<Seat>,
    /// Common part of a socket's packets.
    tags: Vec<Tag>,
    headers: Vec<Headers>,
    shared: Vec<Shared>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    hasher: FlowHasher,
    loss: [Loss; 2],
    loss_random: [Random; 2],
    loss_count: [u32; 2],
    /// A buffer that is used again.
    frame: Vec<u8>,
}

impl Network {
    /// A network without connections.
    pub fn new(
        lines: [Line; 2],
        losses: [Loss; 2],
        jitter: [Span; 2],
        hosts: &[Host],
        seed: u64,
    ) -> Network {
        let mut key = Random::derive(seed, 1);
        let mut network = Network {
            events: Events::new(0),
            pool: Pool::default(),
            lines,
            flows: Vec::new(),
            notices: VecDeque::new(),
            capture: None,
            memory: None,
            pipes: Vec::new(),
            hosts: hosts.to_vec(),
            attachments: Vec::new(),
            seats: Vec::new(),
            tags: Vec::new(),
            headers: Vec::new(),
            shared: Vec::new(),
            free: Vec::new(),
            arrived: VecDeque::new(),
            hasher: FlowHasher::new(HashKey::new(key.u64(), key.u64()), 128),
            loss: losses,
            loss_random: [Random::derive(seed, 2), Random::derive(seed, 3)],
            loss_count: [0; 2],
            frame: Vec::new(),
        };
        let unattached = Attachment { egress: NO_PIPE, ingress: NO_PIPE, next_port: EPHEMERAL };
        network.attachments = vec![unattached; hosts.len()];
        // Hosts at one distance share their pipes: by delay, jitter and end. These come first.
        let mut shared = BTreeMap::new();
        for alone in [false, true] {
            for (n, host) in hosts.iter().enumerate() {
                if host.egress.rate.is_some() == alone {
                    let pipe = network.pipe(&mut shared, host.egress, Span::ZERO, true, seed);
                    network.attachments[n].egress = pipe;
                }
                if host.ingress.rate.is_some() == alone {
                    let away = if host.home { Direction::Down } else { Direction::Up };
                    let jitter = jitter[away as usize];
                    let pipe = network.pipe(&mut shared, host.ingress, jitter, false, seed);
                    network.attachments[n].ingress = pipe;
                }
            }
            if !alone {
                network.events = Events::new(network.pipes.len() as u32);
            }
        }
        network
    }

    /// The pipe of an access: its own if it has a rate, otherwise one for all of its delay.
    fn pipe(
        &mut self,
        shared: &mut BTreeMap<(Span, Span, bool), u32>,
        access: Access,
        jitter: Span,
        to_bottleneck: bool,
        seed: u64,
    ) -> u32 {
        let key = (access.delay, jitter, to_bottleneck);
        let alone = access.rate.is_some();
        if !alone {
            if access.delay == Span::ZERO && jitter == Span::ZERO {
                return NO_PIPE;
            }
            if let Some(pipe) = shared.get(&key) {
                return *pipe;
            }
        }
        let index = self.pipes.len() as u32;
        let random = Random::derive(seed, FIRST_PIPE_STREAM + u64::from(index));
        let rate = access.rate.unwrap_or_default();
        self.pipes.push(Pipe::new((access.delay, jitter), rate, to_bottleneck, random));
        if !alone {
            shared.insert(key, index);
        }
        index
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
        let (handle, place) = self.pool.insert(&self.tags[socket], len, 0);
        *place = Payload::Datagram(datagram);
        self.send(handle, self.seats[socket].to_bottleneck, len, now);
    }

    /// Wakes an application.
    pub fn wake(&mut self, app: u32, at: Time) {
        self.events.push(at, Target::App(app));
    }

    /// A pipe's head has arrived. What follows it is planned first: nothing that happens here comes
    /// into the same pipe, since pipes lead either to the bottleneck or away from it.
    #[inline]
    pub fn on_pipe(&mut self, index: u32, now: Time) {
        let pipe = &mut self.pipes[index as usize];
        let to_bottleneck = pipe.to_bottleneck;
        let mut next = pipe.pop();
        if let Some(handle) = pipe.upcoming(1) {
            self.pool.prefetch(handle);
        }
        if self.seats.len() > CACHED_SEATS {
            if self.seats.len() > NEAR_SEATS {
                self.prefetch_in_stages(index);
            } else {
                self.prefetch_upcoming(index);
            }
        }
        while let Some((handle, following)) = next {
            next = match following {
                Some(due) if due <= now => self.pipes[index as usize].pop(),
                Some(due) => {
                    self.events.push(due, Target::Pipe(index));
                    None
                }
                None => None,
            };
            if to_bottleneck {
                self.enter_bottleneck(handle, now);
            } else {
                self.deliver(handle, now);
            }
        }
    }

    /// Fetches what packets will meet that arrive soon, see `seat`.
    #[inline]
    fn prefetch_upcoming(&self, pipe: u32) {
        let pipe = &self.pipes[pipe as usize];
        if let Some(handle) = pipe.upcoming(2 * AHEAD) {
            self.pool.prefetch(handle);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, AHEAD) {
            prefetch_index(&self.tags, socket);
            self.seats[socket].prefetch(has_data);
        }
    }

    /// The same where everything comes from far away: earlier, and in stages, because a processor
    /// waits with more than some twenty lines under way at once.
    #[inline(never)]
    fn prefetch_in_stages(&self, pipe: u32) {
        let pipe = &self.pipes[pipe as usize];
        pipe.prefetch(8 * AHEAD);
        if let Some(handle) = pipe.upcoming(3 * AHEAD) {
            self.pool.prefetch(handle);
        }
        if let Some((socket, has_data)) = self.upcoming_delivery(pipe, 2 * AHEAD) {
            prefetch_index(&self.tags, socket);
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
        let tag = self.pool.tag(handle);
        let is_last = !pipe.to_bottleneck || tag.from_bottleneck == NO_PIPE;
        is_last.then(|| ((tag.socket ^ 1) as usize, self.pool.has_data(handle)))
    }

    /// A line may send, and what it has kept until now is delivered.
    #[inline]
    pub fn on_line(&mut self, line: u32, now: Time) {
        let kept = self.lines[line as usize].wake(now);
        self.serve_now(line as usize, now);
        if let Some(handle) = kept {
            self.deliver(handle, now);
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
            self.arm(socket, now);
            return;
        }
        let Some(endpoint) = &mut seat.endpoint else { return };
        endpoint.on_timer(now);
        self.attend(socket, now);
        self.notify(socket);
    }

    /// Fetches what timers will meet that fire soon, see `seat`.
    #[inline]
    fn prefetch_timers(&self) {
        if let Some(Target::Endpoint(socket)) = self.events.upcoming_timer(2 * AHEAD) {
            self.seats[socket as usize].prefetch_times();
        }
        if let Some(Target::Endpoint(socket)) = self.events.upcoming_timer(AHEAD) {
            let seat = &self.seats[socket as usize];
            if seat.wanted <= seat.armed {
                prefetch_index(&self.tags, socket as usize);
                seat.prefetch(true);
            }
        }
    }

    /// A line's rate changes.
    pub fn on_rate(&mut self, line: u32, now: Time) {
        self.lines[line as usize].step(now);
        self.serve(line as usize, now);
        if let Some(at) = self.lines[line as usize].next_step() {
            self.events.push(at, Target::Rate(line));
        }
    }

    /// Hands over what arrived without delay.
    #[inline]
    pub fn drain(&mut self, now: Time) {
        while let Some(handle) = self.arrived.pop_front() {
            self.deliver(handle, now);
        }
    }

    /// Puts all payload that was delivered so far on the flows' accounts.
    pub fn account_all(&mut self) {
        for connection in 0..self.shared.len() as u32 {
            self.account(Connection(connection));
        }
    }

    /// TCP's counters of every flow so far.
    pub fn tcp_totals(&self) -> Vec<TcpTotals> {
        let mut totals: Vec<TcpTotals> = self.flows.iter().map(|flow| flow.closed).collect();
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
        self.lines.iter_mut().for_each(|line| line.record.sample());
    }

    /// Packets in pipes, disciplines and on wires.
    pub fn under_way(&self) -> usize {
        let pipes: usize = self.pipes.iter().map(Pipe::len).sum();
        let lines: usize = self
            .lines
            .iter()
            .map(|line| line.qdisc.backlog().packets as usize + line.on_the_wire().iter().count())
            .sum();
        pipes + lines + self.arrived.len()
    }

    fn account(&mut self, connection: Connection) {
        let shared = &mut self.shared[connection.0 as usize];
        if !shared.open {
            return;
        }
        for side in [Side::Client, Side::Server] {
            let Some(endpoint) = &self.seats[connection.socket(side) as usize].endpoint else {
                continue;
            };
            let received = endpoint.received();
            let flow = &mut self.flows[shared.flow as usize];
            let direction = shared.directions[side as usize] as usize;
            flow.delivered[direction] += received - shared.accounted[side as usize];
            shared.accounted[side as usize] = received;
        }
    }

    /// After anything was done to an endpoint: sends what it wants to send, tells its application,
    /// and arms its timer.
    #[inline]
    fn attend(&mut self, socket: u32, now: Time) {
        loop {
            let seat = &mut self.seats[socket as usize];
            let Some(endpoint) = &mut seat.endpoint else { return };
            let pool = &mut self.pool;
            let Some(segment) = endpoint.poll_transmit_into(|| pool.next_segment(), now)
            else {
                break;
            };
            let len = ETHERNET + IPV4 + segment.wire_len();
            let ecn = segment.ecn as u8;
            let to_bottleneck = seat.to_bottleneck;
            let (handle, _) = self.pool.insert(&self.tags[socket as usize], len, ecn);
            self.send(handle, to_bottleneck, len, now);
        }
        let seat = &mut self.seats[socket as usize];
        let Some(endpoint) = &seat.endpoint else { return };
        seat.wanted = endpoint.next_timer().unwrap_or(Time::MAX);
        self.arm(socket, now);
    }

    /// Plans an endpoint's event, unless there is one that comes early enough.
    #[inline]
    fn arm(&mut self, socket: u32, now: Time) {
        let Seat { armed, wanted, .. } = &mut self.seats[socket as usize];
        if *wanted < *armed {
            *armed = (*wanted).max(now);
            self.events.push(*armed, Target::Endpoint(socket));
        }
    }

    /// A packet sets out through the pipe of its host.
    #[inline]
    fn send(&mut self, handle: u32, pipe: u32, len: u32, now: Time) {
        if pipe == NO_PIPE {
            self.enter_bottleneck(handle, now);
        } else if let Some(at) = self.pipes[pipe as usize].push(handle, len, now) {
            self.events.push(at, Target::Pipe(pipe));
        }
    }

    #[inline]
    fn enter_bottleneck(&mut self, handle: u32, now: Time) {
        let tag = self.pool.tag(handle);
        let line = usize::from(tag.direction & 1);
        let packet = tag.packet(handle);
        if self.loss[line] != Loss::None && self.is_lost(handle, line) {
            self.pool.lost(handle);
            return;
        }
        self.lines[line].enqueue(&packet, now, &mut self.pool);
        if !self.lines[line].is_busy(now) {
            self.serve(line, now);
        }
    }

    fn is_lost(&mut self, handle: u32, line: usize) -> bool {
        match self.loss[line] {
            Loss::None => false,
            Loss::Random(probability) => self.loss_random[line].u32() < probability,
            Loss::Every(n) => {
                if !matches!(self.pool.payload(handle), Payload::Tcp(s) if s.len > 0) {
                    return false;
                }
                self.loss_count[line] += 1;
                let lost = self.loss_count[line] >= n;
                if lost {
                    self.loss_count[line] = 0;
                }
                lost
            }
        }
    }

    #[inline(never)]
    fn serve(&mut self, line: usize, now: Time) {
        self.serve_now(line, now);
    }

    /// As [`Network::serve`], in line: for the event loop.
    #[inline(always)]
    fn serve_now(&mut self, line: usize, now: Time) {
        loop {
            let served = match self.lines[line].serve(now, &mut self.pool) {
                Served::Through(handle) => {
                    self.leave(handle, now, now);
                    continue;
                }
                Served::Kept(handle) => {
                    self.arrived.push_back(handle);
                    continue;
                }
                Served::Started(handle, end) => {
                    if !self.leave(handle, end, now) {
                        self.lines[line].keep(handle);
                    }
                    self.lines[line].started(&self.pool)
                }
                other => other,
            };
            if let Served::Plan(at) = served {
                self.events.push(at, Target::Line(line as u32));
            }
            return;
        }
    }

    /// A packet leaves its line at `at`: now, or at the end that is already known. False if it has
    /// yet to be delivered then, because there is no pipe behind the line.
    #[inline(always)]
    fn leave(&mut self, handle: u32, at: Time, now: Time) -> bool {
        if self.capture.is_some() {
            self.capture(handle, at, now);
        }
        let Tag { from_bottleneck: pipe, len, .. } = *self.pool.tag(handle);
        if pipe == NO_PIPE {
            if at <= now {
                self.arrived.push_back(handle);
            }
            return at <= now;
        }
        if let Some(due) = self.pipes[pipe as usize].push(handle, len, at) {
            self.events.push(due, Target::Pipe(pipe));
        }
        true
    }

    #[cold]
    fn capture(&mut self, handle: u32, at: Time, now: Time) {
        let tag = self.pool.tag(handle);
        let isn = |socket: u32| self.tags[socket as usize].hash as u32;
        let headers = &self.headers[tag.socket as usize];
        let isns = (isn(tag.socket), isn(tag.socket ^ 1));
        write_frame((tag, self.pool.payload(handle)), headers, isns, &mut self.frame);
        let direction = Direction::BOTH[usize::from(tag.direction & 1)];
        if let Some(capture) = &mut self.capture {
            capture.release(now);
            capture.hold(direction, at, &self.frame);
        }
    }

    /// A packet has arrived at its host.
    #[inline]
    fn deliver(&mut self, handle: u32, now: Time) {
        let tag = self.pool.tag(handle);
        let (socket, generation) = (tag.socket ^ 1, tag.generation);
        self.pool.mix(now.0 ^ u64::from(handle));
        if generation != self.tags[socket as usize].generation {
            self.pool.late(handle);
            return;
        }
        match self.pool.arrive(handle) {
            Payload::Tcp(segment) => {
                if let Some(endpoint) = &mut self.seats[socket as usize].endpoint {
                    endpoint.on_segment(segment, now);
                }
                self.pool.delivered(handle);
                self.attend(socket, now);
                self.notify(socket);
            }
            Payload::Datagram(datagram) => {
                let datagram = *datagram;
                self.pool.delivered(handle);
                let connection = Connection(socket / 2);
                let side = if socket & 1 == 0 { Side::Client } else { Side::Server };
                let app = self.shared[connection.0 as usize].app;
                self.notices.push_back((app, Notice::Datagram(connection, side, datagram)));
            }
        }
    }

    /// Tells a watching application what its endpoint has seen.
    #[inline]
    fn notify(&mut self, socket: u32) {
        let watch = self.seats[socket as usize].watch;
        if watch != Watch::Nothing {
            self.tell(socket, watch);
        }
    }

    #[inline(never)]
    fn tell(&mut self, socket: u32, watch: Watch) {
        let Some(endpoint) = &mut self.seats[socket as usize].endpoint else { return };
        let mut events = endpoint.take_events();
        events.acked = false;
        if watch == Watch::Ends {
            events.data = false;
        }
        if events != simnel_tcp::Events::default() {
            let side = if socket & 1 == 0 { Side::Client } else { Side::Server };
            let app = self.shared[(socket / 2) as usize].app;
            self.notices.push_back((app, Notice::Tcp(Connection(socket / 2), side, events)));
        }
    }
}
