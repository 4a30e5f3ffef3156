//! Ways: what carries packets from one socket to another, and the bottleneck between.
//!
//! Hosts at one distance share their pipes. A packet goes through its host's pipe to the bottleneck
//! and waits in a discipline. It takes its time on the line, and goes through the pipe of the other
//! host. What arrives is delivered by the [`Network`](super::Network).

use std::collections::{BTreeMap, VecDeque};

use simnel_core::random::Random;
use simnel_core::{Span, Time};
use simnel_tcp::Now;

use super::seat::Seat;
use super::{Attachment, EPHEMERAL, ETHERNET, IPV4};
use crate::capture::{write_frame, Headers, InOrder};
use crate::event::{Events, Target};
use crate::line::{Line, Served};
use crate::pipe::Pipe;
use crate::pool::{Payload, Pool, Tag, NO_PIPE};
use crate::setup::{Access, Direction, Host, Loss, Reordering};

/// Random streams below this number belong to other components.
const FIRST_PIPE_STREAM: u64 = 1 << 32;

/// A packet that has arrived with a segment for an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub handle: u32,
    /// Another one with data for it follows in the same moment.
    pub goes_on: bool,
}

/// Pipes, lines, and the packets in them.
pub(crate) struct Ways {
    pub events: Events,
    pub pool: Pool,
    pub lines: [Line; 2],
    pub capture: Option<InOrder>,
    pub(super) pipes: Vec<Pipe>,
    pub(super) headers: Vec<Headers>,
    /// Deliveries without delay.
    pub(super) arrived: VecDeque<u32>,
    loss: [Loss; 2],
    loss_random: [Random; 2],
    loss_count: [u32; 2],
    reordering: [Reordering; 2],
    reordering_random: [Random; 2],
    /// By pipe, the longer one of what comes late.
    longer: Vec<u32>,
    /// Memory of a segment beside its payload, by traffic, if frames take what their sockets gave
    /// them.
    pub overheads: Vec<u32>,
    /// A buffer that is used again.
    frame: Vec<u8>,
}

impl Ways {
    /// Empty ways, and where `hosts` are attached to them.
    pub(super) fn new(
        lines: [Line; 2],
        loss: [Loss; 2],
        jitter: [Span; 2],
        reordering: [Reordering; 2],
        hosts: &[Host],
        seed: u64,
    ) -> (Ways, Vec<Attachment>) {
        let mut ways = Ways {
            events: Events::new(0),
            pool: Pool::default(),
            lines,
            capture: None,
            pipes: Vec::new(),
            headers: Vec::new(),
            arrived: VecDeque::new(),
            loss,
            loss_random: [Random::derive(seed, 2), Random::derive(seed, 3)],
            loss_count: [0; 2],
            reordering,
            reordering_random: [4, 5].map(|stream| Random::derive(seed, stream)),
            longer: Vec::new(),
            overheads: Vec::new(),
            frame: Vec::new(),
        };
        let unattached = Attachment { egress: NO_PIPE, ingress: NO_PIPE, next_port: EPHEMERAL };
        let mut attachments = vec![unattached; hosts.len()];
        // Hosts at one distance share their pipes: by delay, jitter and end. These come first.
        let mut shared = BTreeMap::new();
        for alone in [false, true] {
            for (n, host) in hosts.iter().enumerate() {
                if host.egress.rate.is_some() == alone && !is_instant(host.egress, Span::ZERO) {
                    let pipe = ways.pipe(&mut shared, host.egress, Span::ZERO, true, seed);
                    attachments[n].egress = pipe;
                }
                let away = if host.home { Direction::Down } else { Direction::Up };
                let (jitter, Reordering { share, late }) =
                    (jitter[away as usize], reordering[away as usize]);
                let reorders = share > 0 && !alone;
                if host.ingress.rate.is_some() == alone
                    && (reorders || !is_instant(host.ingress, jitter))
                {
                    let pipe = ways.pipe(&mut shared, host.ingress, jitter, false, seed);
                    attachments[n].ingress = pipe;
                    if reorders {
                        let longer = Access { delay: host.ingress.delay + late, rate: None };
                        let longer = ways.pipe(&mut shared, longer, jitter, false, seed);
                        ways.lengthen(pipe, longer);
                    }
                }
            }
            if !alone {
                ways.events = Events::new(ways.pipes.len() as u32);
            }
        }
        (ways, attachments)
    }

    /// Way of what comes late, beside that of `pipe`.
    fn lengthen(&mut self, pipe: u32, longer: u32) {
        let known = self.longer.len() as u32;
        self.longer.extend(known..(pipe + 1).max(known));
        self.longer[pipe as usize] = longer;
    }

    /// The pipe behind the line for one packet whose way is `pipe`.
    #[cold]
    fn behind(&mut self, pipe: u32, line: usize) -> u32 {
        if self.reordering_random[line].u32() >= self.reordering[line].share {
            return pipe;
        }
        self.longer.get(pipe as usize).copied().unwrap_or(pipe)
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

    /// After anything was done to an endpoint: sends what it wants to send, tells its application,
    /// and arms its timer. What has `arrived` for it, it takes in before.
    #[inline(never)]
    pub(super) fn attend(&mut self, seat: &mut Seat, arrived: Option<Arrival>, now: Time) {
        let Some(endpoint) = &mut seat.endpoint else {
            if let Some(arrival) = arrived {
                self.pool.delivered(arrival.handle);
            }
            return;
        };
        let now = Now::new(now);
        if let Some(Arrival { handle, goes_on }) = arrived {
            if let Payload::Tcp(segment) = self.pool.arrive(handle) {
                endpoint.on_segment(segment, now);
            }
            if goes_on {
                endpoint.await_more();
            }
            self.pool.delivered(handle);
        }
        loop {
            let pool = &mut self.pool;
            let Some(segment) = endpoint.poll_transmit_into(|| pool.next_segment(), &now) else {
                break;
            };
            let len = ETHERNET + IPV4 + segment.wire_len();
            let (ecn, payload) = (segment.ecn as u8, segment.len);
            let (handle, _) = self.pool.insert(&seat.tag, len, ecn);
            if let Some(overhead) = self.overheads.get(seat.tag.group as usize) {
                self.pool.weigh(handle, overhead + payload);
            }
            self.send(handle, seat.tag.to_bottleneck, len, now.time);
        }
        seat.wanted = endpoint.next_timer().unwrap_or(Time::MAX);
        self.arm(seat, now.time);
    }

    /// Plans an endpoint's event, unless there is one that comes early enough.
    #[inline]
    pub(super) fn arm(&mut self, seat: &mut Seat, now: Time) {
        if seat.wanted < seat.armed {
            seat.armed = seat.wanted.max(now);
            self.events.push(seat.armed, Target::Endpoint(seat.tag.socket));
        }
    }

    /// A packet sets out through the pipe of its host.
    #[inline(always)]
    pub fn send(&mut self, handle: u32, pipe: u32, len: u32, now: Time) {
        if pipe == NO_PIPE {
            self.enter_bottleneck(handle, now);
        } else if let Some(at) = self.pipes[pipe as usize].push(handle, len, now) {
            self.events.push(at, Target::Pipe(pipe));
        }
    }

    #[inline(never)]
    pub fn enter_bottleneck(&mut self, handle: u32, now: Time) {
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

    /// Has a line send what it may at `now`.
    #[inline(never)]
    pub fn serve(&mut self, line: usize, now: Time) {
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
        let Tag { from_bottleneck: mut pipe, len, direction, .. } = *self.pool.tag(handle);
        let line = usize::from(direction & 1);
        if self.reordering[line].share > 0 {
            pipe = self.behind(pipe, line);
        }
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
        let [headers, answers] = [tag.socket, tag.socket ^ 1].map(|s| &self.headers[s as usize]);
        let isns = (headers.isn, answers.isn);
        write_frame((tag, self.pool.payload(handle)), headers, isns, &mut self.frame);
        let direction = Direction::BOTH[usize::from(tag.direction & 1)];
        if let Some(capture) = &mut self.capture {
            capture.release(now);
            capture.hold(direction, at, &self.frame);
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

    /// Packets in pipes, disciplines and on wires: all that there are between two events.
    pub fn under_way(&self) -> usize {
        let pipes: usize = self.pipes.iter().map(Pipe::len).sum();
        let lines: usize = self
            .lines
            .iter()
            .map(|line| line.qdisc.backlog().packets as usize + line.on_the_wire().iter().count())
            .sum();
        pipes + lines
    }
}

/// True if what goes this way is there at once.
fn is_instant(access: Access, jitter: Span) -> bool {
    access.delay == Span::ZERO && access.rate.is_none() && jitter == Span::ZERO
}
