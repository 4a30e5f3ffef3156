//! The network: sockets, ways, the bottleneck, and what moves between them.
//!
//! A *connection* is a pair of sockets, numbers 2c and 2c + 1, so that the other end of socket s is
//! s ^ 1 and the packets of a socket share one [`Route`]: a descriptor with everything that does
//! not change, the pipe to the bottleneck, the line, the pipe behind it. TCP sockets have an
//! endpoint; datagram sockets belong to an application.
//!
//! Endpoints' timers are armed lazily: an event stands for the earliest time at which the endpoint
//! may want to be called; if it wants a later time by then, it is armed again. So moving a timer
//! back, as every acknowledgement does, costs nothing.
//!
//! Deliveries without delay wait in `arrived` until the event that caused them is done with: no
//! call chain goes through two endpoints.

use std::collections::{BTreeMap, VecDeque};

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::random::Random;
use simnel_core::{Packet, Span, Time};
use simnel_tcp::{Endpoint, State};

use crate::capture::{protocol, write_frame, Capture, Headers};
use crate::event::{Events, Target};
use crate::flow::{FlowRecord, TcpTotals, WindowSample};
use crate::line::Line;
use crate::pipe::Pipe;
use crate::pool::{Datagram, InFlight, Payload, Pool};
use crate::setup::{Access, Direction, Host, Loss};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Bytes of an IPv4 header.
const IPV4: u32 = 20;
/// Bytes of a UDP or ICMP echo header.
const UDP: u32 = 8;
/// No pipe: the packet is there at once.
const NO_PIPE: u32 = u32::MAX;
/// First port of connections' clients.
const EPHEMERAL: u16 = 32_768;
/// The port that is asked.
const SERVER_PORT: u16 = 443;
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

/// What an application wants to know of its connections.
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
    /// Host that opens it, and host that is asked.
    pub hosts: (usize, usize),
    /// The way from the first to the second.
    pub direction: Direction,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Settings of both ends.
    pub tcp: simnel_tcp::Config,
    /// What the application wants to know.
    pub watched: Watch,
}

/// The constant part of what a socket sends.
#[derive(Clone, Copy, Debug)]
struct Route {
    template: Packet,
    to_bottleneck: u32,
    from_bottleneck: u32,
    direction: u8,
    generation: u16,
    flow: u32,
    headers: Headers,
}

impl Route {
    /// A route that leads nowhere yet.
    fn new(flow: u32) -> Route {
        Route {
            template: Packet::new(0, 0),
            to_bottleneck: NO_PIPE,
            from_bottleneck: NO_PIPE,
            direction: 0,
            generation: 0,
            flow,
            headers: Headers::default(),
        }
    }
}

/// What both sockets of a connection share.
#[derive(Clone, Copy, Debug)]
struct Shared {
    app: u32,
    flow: u32,
    watched: Watch,
    open: bool,
    /// Payload bytes already on the flow's account, received by client and server.
    accounted: [u64; 2],
    /// The ways of what client and server receive.
    directions: [Direction; 2],
}

impl Shared {
    const CLOSED: Shared = Shared {
        app: 0,
        flow: 0,
        watched: Watch::Nothing,
        open: false,
        accounted: [0; 2],
        directions: Direction::BOTH,
    };
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
    pub capture: Option<Box<dyn Capture>>,
    pipes: Vec<Pipe>,
    hosts: Vec<Host>,
    attachments: Vec<Attachment>,
    endpoints: Vec<Option<Endpoint>>,
    routes: Vec<Route>,
    armed: Vec<Time>,
    shared: Vec<Shared>,
    free: Vec<u32>,
    arrived: VecDeque<u32>,
    hasher: FlowHasher,
    loss: [Loss; 2],
    loss_random: [Random; 2],
    loss_count: [u32; 2],
    /// Buffers that are used again.
    sent: Vec<Packet>,
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
            events: Events::default(),
            pool: Pool::default(),
            lines,
            flows: Vec::new(),
            notices: VecDeque::new(),
            capture: None,
            pipes: Vec::new(),
            hosts: hosts.to_vec(),
            attachments: Vec::new(),
            endpoints: Vec::new(),
            routes: Vec::new(),
            armed: Vec::new(),
            shared: Vec::new(),
            free: Vec::new(),
            arrived: VecDeque::new(),
            hasher: FlowHasher::new(HashKey::new(key.u64(), key.u64()), 128),
            loss: losses,
            loss_random: [Random::derive(seed, 2), Random::derive(seed, 3)],
            loss_count: [0; 2],
            sent: Vec::new(),
            frame: Vec::new(),
        };
        // Hosts at one distance share their pipes: by delay, jitter and end.
        let mut shared = BTreeMap::new();
        for host in hosts {
            let away = [jitter[Direction::Up as usize], jitter[Direction::Down as usize]];
            let jitter = away[usize::from(host.home)];
            let egress = network.pipe(&mut shared, host.egress, Span::ZERO, true, seed);
            let ingress = network.pipe(&mut shared, host.ingress, jitter, false, seed);
            network.attachments.push(Attachment { egress, ingress, next_port: EPHEMERAL });
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

    /// Opens a TCP connection: the client's SYN leaves now.
    pub fn open(&mut self, opening: &Opening, now: Time) -> Connection {
        let connection = self.pair(opening, protocol::TCP);
        let (client, server) = (connection.socket(Side::Client), connection.socket(Side::Server));
        let mut config = opening.tcp;
        for socket in [client, server] {
            config.seed = self.routes[socket as usize].template.flow;
            self.endpoints[socket as usize] = Some(Endpoint::new(&config));
        }
        if let Some(endpoint) = &mut self.endpoints[server as usize] {
            endpoint.listen();
        }
        if let Some(endpoint) = &mut self.endpoints[client as usize] {
            endpoint.connect(now);
        }
        self.attend(client, now);
        connection
    }

    /// Opens a pair of sockets for datagrams.
    pub fn open_datagrams(&mut self, opening: &Opening, icmp: bool) -> Connection {
        self.pair(opening, if icmp { protocol::ICMP } else { protocol::UDP })
    }

    /// Ports, routes and a place for a new pair of sockets.
    fn pair(&mut self, opening: &Opening, protocol: u8) -> Connection {
        let connection = Connection(self.free.pop().unwrap_or_else(|| {
            let index = self.shared.len() as u32;
            self.shared.push(Shared::CLOSED);
            for _ in [Side::Client, Side::Server] {
                self.routes.push(Route::new(opening.flow));
                self.endpoints.push(None);
                self.armed.push(Time::MAX);
            }
            index
        }));
        let (client, server) = opening.hosts;
        let port = &mut self.attachments[client].next_port;
        let client_port = *port;
        *port = port.checked_add(1).unwrap_or(EPHEMERAL);
        self.shared[connection.0 as usize] = Shared {
            app: opening.app,
            flow: opening.flow,
            watched: opening.watched,
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
                answers: side == Side::Server,
            };
            let socket = connection.socket(side) as usize;
            self.routes[socket] = Route {
                template: self.template(&headers, opening.dscp),
                to_bottleneck: self.attachments[from].egress,
                from_bottleneck: self.attachments[to].ingress,
                direction: direction as u8,
                generation: self.routes[socket].generation,
                flow: opening.flow,
                headers,
            };
        }
        connection
    }

    /// The descriptor of a socket's packets.
    fn template(&self, headers: &Headers, dscp: u8) -> Packet {
        let mut ports = [0; 4];
        if headers.protocol != protocol::ICMP {
            ports[..2].copy_from_slice(&headers.ports.0.to_be_bytes());
            ports[2..].copy_from_slice(&headers.ports.1.to_be_bytes());
        }
        let addresses = Addresses::V4(headers.source, headers.destination);
        let hash = self.hasher.hash(&addresses, headers.protocol, ports);
        let mut packet = Packet::new(0, 0);
        packet.flow = hash.flow;
        packet.src_host = hash.src_host;
        packet.dst_host = hash.dst_host;
        packet.tos = dscp << 2;
        packet.flags = Flags::IPV4;
        if headers.protocol == protocol::TCP {
            packet.flags.set(Flags::TCP);
        }
        packet
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
        let socket = connection.socket(side);
        let result = act(self.endpoints[socket as usize].as_mut()?);
        self.attend(socket, now);
        Some(result)
    }

    /// Payload bytes that `side` has received in order.
    pub fn received(&self, connection: Connection, side: Side) -> u64 {
        let endpoint = &self.endpoints[connection.socket(side) as usize];
        endpoint.as_ref().map_or(0, Endpoint::received)
    }

    /// Forgets a connection; what is still under way counts as late. Its sockets may be used again.
    pub fn release(&mut self, connection: Connection) {
        let index = connection.0 as usize;
        if !self.shared[index].open {
            return;
        }
        self.account(connection);
        self.shared[index].open = false;
        let flow = self.shared[index].flow as usize;
        for side in [Side::Client, Side::Server] {
            let socket = connection.socket(side) as usize;
            if let Some(endpoint) = self.endpoints[socket].take() {
                self.flows[flow].closed.add(&endpoint.stats());
            }
            self.armed[socket] = Time::MAX;
            self.routes[socket].generation = self.routes[socket].generation.wrapping_add(1);
        }
        self.free.push(connection.0);
    }

    /// Releases a connection both of whose ends are done.
    pub fn release_if_over(&mut self, connection: Connection) -> bool {
        let over = [Side::Client, Side::Server].iter().all(|side| {
            let endpoint = &self.endpoints[connection.socket(*side) as usize];
            let state = endpoint.as_ref().map_or(State::Closed, Endpoint::state);
            matches!(state, State::Finished | State::Closed)
        });
        if over {
            self.release(connection);
        }
        over
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
        self.send(connection.socket(side), Payload::Datagram(datagram), len, 0, now);
    }

    /// Wakes an application.
    pub fn wake(&mut self, app: u32, at: Time) {
        self.events.push(at, Target::App(app));
    }

    /// A pipe's head has arrived.
    #[inline]
    pub fn on_pipe(&mut self, pipe: u32, now: Time) {
        let to_bottleneck = self.pipes[pipe as usize].to_bottleneck;
        while let Some(handle) = self.pipes[pipe as usize].pop(now) {
            if to_bottleneck {
                self.enter_bottleneck(handle, now);
            } else {
                self.deliver(handle, now);
            }
        }
        if let Some(at) = self.pipes[pipe as usize].next_event() {
            self.events.push(at, Target::Pipe(pipe));
        }
    }

    /// A line may send.
    #[inline]
    pub fn on_line(&mut self, line: u32, now: Time) {
        if self.lines[line as usize].is_due(now) {
            self.serve(line as usize, now);
        }
    }

    /// An endpoint's timer may be due.
    #[inline]
    pub fn on_endpoint(&mut self, socket: u32, now: Time) {
        let armed = &mut self.armed[socket as usize];
        if *armed != now {
            return;
        }
        *armed = Time::MAX;
        let Some(endpoint) = &mut self.endpoints[socket as usize] else { return };
        match endpoint.next_timer() {
            Some(at) if at <= now => {
                endpoint.on_timer(now);
                self.attend(socket, now);
                self.notify(socket);
            }
            _ => self.arm(socket, now),
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
            for endpoint in self.endpoints[2 * index..2 * index + 2].iter().flatten() {
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
            let sender = usize::from(shared.directions[0] == flow.direction);
            if let Some(endpoint) = &self.endpoints[2 * index + sender] {
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
            .map(|line| line.qdisc.backlog().packets as usize + line.on_the_wire())
            .sum();
        pipes + lines + self.arrived.len()
    }

    fn account(&mut self, connection: Connection) {
        let shared = &mut self.shared[connection.0 as usize];
        if !shared.open {
            return;
        }
        for side in [Side::Client, Side::Server] {
            let Some(endpoint) = &self.endpoints[connection.socket(side) as usize] else {
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
        while let Some(segment) =
            self.endpoints[socket as usize].as_mut().and_then(|e| e.poll_transmit(now))
        {
            let len = ETHERNET + IPV4 + segment.wire_len();
            let ecn = segment.ecn as u8;
            self.send(socket, Payload::Tcp(segment), len, ecn, now);
        }
        self.arm(socket, now);
    }

    #[inline]
    fn arm(&mut self, socket: u32, now: Time) {
        let Some(endpoint) = &self.endpoints[socket as usize] else { return };
        if let Some(at) = endpoint.next_timer() {
            let armed = &mut self.armed[socket as usize];
            if at < *armed {
                *armed = at.max(now);
                self.events.push(*armed, Target::Endpoint(socket));
            }
        }
    }

    #[inline]
    fn send(&mut self, socket: u32, payload: Payload, len: u32, ecn: u8, now: Time) {
        let route = &self.routes[socket as usize];
        let pipe = route.to_bottleneck;
        let handle = self.pool.insert(InFlight {
            payload,
            socket,
            flow: route.flow,
            len,
            generation: route.generation,
            tos: route.template.tos | ecn,
            direction: route.direction,
        });
        if pipe == NO_PIPE {
            self.enter_bottleneck(handle, now);
        } else if let Some(at) = self.pipes[pipe as usize].push(handle, len, now) {
            self.events.push(at, Target::Pipe(pipe));
        }
    }

    #[inline]
    fn enter_bottleneck(&mut self, handle: u32, now: Time) {
        let InFlight { socket, len, tos, direction, .. } = *self.pool.get(handle);
        let line = usize::from(direction & 1);
        if self.loss[line] != Loss::None && self.is_lost(handle, line) {
            self.pool.lost(handle);
            return;
        }
        let mut packet = self.routes[socket as usize].template;
        packet.handle = u64::from(handle);
        packet.len = len;
        packet.adj_len = len;
        packet.truesize = Packet::typical_truesize(len);
        packet.tos = tos;
        self.lines[line].enqueue(packet, now, &mut self.pool);
        self.serve(line, now);
    }

    fn is_lost(&mut self, handle: u32, line: usize) -> bool {
        match self.loss[line] {
            Loss::None => false,
            Loss::Random(probability) => self.loss_random[line].u32() < probability,
            Loss::Every(n) => {
                if !matches!(&self.pool.get(handle).payload, Payload::Tcp(s) if s.len > 0) {
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

    #[inline]
    fn serve(&mut self, line: usize, now: Time) {
        let mut sent = std::mem::take(&mut self.sent);
        let plan = self.lines[line].serve(now, &mut self.pool, |packet| sent.push(packet));
        if let Some(at) = plan {
            self.events.push(at, Target::Line(line as u32));
        }
        for packet in sent.drain(..) {
            self.forward(&packet, now);
        }
        self.sent = sent;
    }

    /// A packet has left its line.
    #[inline]
    fn forward(&mut self, packet: &Packet, now: Time) {
        let handle = packet.handle as u32;
        let slot = self.pool.get_mut(handle);
        slot.tos = packet.tos;
        if let Payload::Tcp(segment) = &mut slot.payload {
            segment.ecn = packet.ecn();
        }
        let (socket, len) = (slot.socket, slot.len);
        if self.capture.is_some() {
            self.capture(handle, now);
        }
        let pipe = self.routes[socket as usize].from_bottleneck;
        if pipe == NO_PIPE {
            self.arrived.push_back(handle);
        } else if let Some(at) = self.pipes[pipe as usize].push(handle, len, now) {
            self.events.push(at, Target::Pipe(pipe));
        }
    }

    #[cold]
    fn capture(&mut self, handle: u32, now: Time) {
        let slot = self.pool.get(handle);
        let isn = |socket: u32| self.routes[socket as usize].template.flow as u32;
        let headers = &self.routes[slot.socket as usize].headers;
        write_frame(slot, headers, (isn(slot.socket), isn(slot.socket ^ 1)), &mut self.frame);
        let direction = Direction::BOTH[usize::from(slot.direction & 1)];
        if let Some(capture) = &mut self.capture {
            capture.frame(direction, now, &self.frame);
        }
    }

    /// A packet has arrived at its host.
    #[inline]
    fn deliver(&mut self, handle: u32, now: Time) {
        let slot = self.pool.get(handle);
        let (socket, generation) = (slot.socket ^ 1, slot.generation);
        self.pool.mix(now.0 ^ u64::from(handle));
        if generation != self.routes[socket as usize].generation {
            self.pool.late(handle);
            return;
        }
        let slot = self.pool.get(handle);
        match &slot.payload {
            Payload::Tcp(segment) => {
                if let Some(endpoint) = &mut self.endpoints[socket as usize] {
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
        let shared = &self.shared[(socket / 2) as usize];
        if shared.watched == Watch::Nothing {
            return;
        }
        let Some(endpoint) = &mut self.endpoints[socket as usize] else { return };
        let mut events = endpoint.take_events();
        events.acked = false;
        if shared.watched == Watch::Ends {
            events.data = false;
        }
        if events != simnel_tcp::Events::default() {
            let side = if socket & 1 == 0 { Side::Client } else { Side::Server };
            let notice = Notice::Tcp(Connection(socket / 2), side, events);
            self.notices.push_back((shared.app, notice));
        }
    }
}
