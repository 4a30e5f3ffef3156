//! Web traffic after PackMime (Cao, Cleveland, Gao, Jeffay, Smith, Weigle, INFOCOM 2004).
//!
//! Connections open at random at a mean rate. Each carries one page or several (persistent HTTP); a
//! page is a request and its answer, then further objects, one after the other; a server thinks
//! before it answers. Sizes have a log-normal body and a Pareto tail, as that paper found for
//! responses; the parameters are ours, of its order of magnitude, and can all be set.

use std::collections::{BTreeMap, BTreeSet};

use simnel_core::{Span, Time};

use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::draw::{between, exponential, log_normal, pareto};
use crate::network::{Connection, Network, Notice, Side};

/// Connections that may be open at once; further ones wait for nothing and are not opened.
const MAX_OPEN: usize = 50_000;
/// No object is larger.
const MAX_OBJECT: u64 = 100_000_000;
/// Of the objects, so many in a thousand are from the tail.
const TAIL_PER_MILLE: u32 = 80;

/// What a browsing household does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Mean time from one connection to the next.
    pub interval: Span,
    /// Pages over one connection, at least and at most.
    pub pages: (u64, u64),
    /// Objects of a page, at least and at most.
    pub objects: (u64, u64),
    /// Median size of an object in bytes.
    pub object_size: u64,
    /// Standard deviation of the logarithm of sizes, in thousandths.
    pub object_spread_milli: u64,
    /// Request in bytes, at least and at most.
    pub request: (u64, u64),
    /// Median time that a server thinks.
    pub think: Span,
    /// Mean time between pages of one connection.
    pub reading: Span,
}

impl Default for Params {
    /// Ten connections a second of one page with few objects: about 0.8 Mbit/s.
    fn default() -> Params {
        Params {
            interval: Span::from_millis(100),
            pages: (1, 1),
            objects: (1, 3),
            object_size: 2_500,
            object_spread_milli: 1_200,
            request: (300, 700),
            think: Span::from_millis(10),
            reading: Span::from_secs(5),
        }
    }
}

impl Params {
    /// What is expected instead, if something is out of range.
    pub(crate) fn check(&self) -> Option<&'static str> {
        let ordered = |(low, high): (u64, u64), most| low >= 1 && low <= high && high <= most;
        if self.interval < Span::from_micros(10) || self.interval > Span::from_secs(86_400) {
            Some("at most 100,000 connections a second and at least one a day")
        } else if !ordered(self.pages, 10_000) || !ordered(self.objects, 10_000) {
            Some("1 to 10,000 pages and objects, MIN not above MAX")
        } else if !ordered(self.request, 1_000_000) {
            Some("requests of 1 byte to 1 MB, MIN not above MAX")
        } else if self.object_size == 0 || self.object_size > MAX_OBJECT {
            Some("objects of 1 byte to 100 MB")
        } else if self.object_spread_milli > 4_000 {
            Some("a spread of at most 4")
        } else if self.think > Span::from_secs(60) || self.reading > Span::from_secs(86_400) {
            Some("at most 60 s of thinking and a day of reading")
        } else {
            None
        }
    }
}

/// A connection in use.
#[derive(Clone, Debug)]
struct Visit {
    pages: u64,
    objects: u64,
    page_began: Time,
    /// Bytes that the server must have received when the present request is whole.
    request_end: u64,
    /// Bytes that the client must have received when the present object is whole.
    object_end: u64,
    /// The server is thinking or has answered.
    answered: bool,
}

/// What happens to a connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The server answers.
    Answer,
    /// The client asks for a page.
    Ask,
}

/// A household that browses.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    context: Context,
    params: Params,
    visits: BTreeMap<u32, Visit>,
    agenda: BTreeSet<(Time, u32, Step)>,
    next_connection: Time,
    connections: u64,
    pages: u64,
    load_time: Distribution,
}

impl Web {
    pub fn new(params: &Params, context: Context) -> Web {
        Web {
            context,
            params: params.clone(),
            visits: BTreeMap::new(),
            agenda: BTreeSet::new(),
            next_connection: Time::ZERO,
            connections: 0,
            pages: 0,
            load_time: Distribution::default(),
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        while let Some((at, number, step)) = self.agenda.first().copied() {
            if at > now {
                break;
            }
            self.agenda.pop_first();
            match step {
                Step::Answer => self.answer(Connection(number), network, now),
                Step::Ask => self.ask(Connection(number), true, network, now),
            }
        }
        if now >= self.next_connection && now < self.context.stop {
            if self.next_connection != Time::ZERO && self.visits.len() < MAX_OPEN {
                self.visit(network, now);
            }
            let gap = exponential(&mut self.context.random, self.params.interval.0);
            self.next_connection = now + Span(gap.max(1));
            network.wake(self.context.opening.app, self.next_connection);
        }
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.data {
            self.received(connection, side, network, now);
        }
        if events.peer_closed && side == Side::Server {
            network.with_endpoint(connection, Side::Server, now, |endpoint| endpoint.close());
        }
        if events.reset {
            network.release(connection);
            self.forget(connection);
        } else if events.finished && network.release_if_over(connection) {
            self.forget(connection);
        }
    }

    /// Opens a connection and asks for its first page.
    fn visit(&mut self, network: &mut Network, now: Time) {
        let connection = network.open(&self.context.opening, now);
        self.connections += u64::from(now >= self.context.window);
        let pages = between(&mut self.context.random, self.params.pages);
        let visit = Visit {
            pages,
            objects: 0,
            page_began: now,
            request_end: 0,
            object_end: 0,
            answered: true,
        };
        self.visits.insert(connection.0, visit);
        self.ask(connection, true, network, now);
    }

    /// The client writes a request: for a page, or for its next object.
    fn ask(&mut self, connection: Connection, page: bool, network: &mut Network, now: Time) {
        let random = &mut self.context.random;
        let size = between(random, self.params.request);
        let objects = if page { between(random, self.params.objects) } else { 0 };
        let Some(visit) = self.visits.get_mut(&connection.0) else { return };
        if page {
            visit.page_began = now;
            visit.objects = objects;
        }
        visit.request_end += size;
        visit.answered = false;
        network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.write(size));
    }

    /// The server writes an object.
    fn answer(&mut self, connection: Connection, network: &mut Network, now: Time) {
        let random = &mut self.context.random;
        let median = self.params.object_size;
        let size = if random.below(1000) < TAIL_PER_MILLE {
            pareto(random, median.saturating_mul(4), (6, 5), MAX_OBJECT)
        } else {
            log_normal(random, median, self.params.object_spread_milli)
        };
        let size = size.clamp(1, MAX_OBJECT);
        let Some(visit) = self.visits.get_mut(&connection.0) else { return };
        visit.object_end += size;
        network.with_endpoint(connection, Side::Server, now, |endpoint| endpoint.write(size));
    }

    fn received(&mut self, connection: Connection, side: Side, network: &mut Network, now: Time) {
        let bytes = network.received(connection, side);
        let Some(visit) = self.visits.get_mut(&connection.0) else { return };
        match side {
            Side::Server if !visit.answered && bytes >= visit.request_end => {
                visit.answered = true;
                let think = log_normal(&mut self.context.random, self.params.think.0, 1_000);
                self.plan(now + Span(think), connection, Step::Answer, network);
            }
            Side::Client if visit.object_end > 0 && bytes >= visit.object_end => {
                self.object_is_whole(connection, network, now);
            }
            _ => {}
        }
    }

    fn object_is_whole(&mut self, connection: Connection, network: &mut Network, now: Time) {
        let Some(visit) = self.visits.get_mut(&connection.0) else { return };
        // Nothing is expected until the next answer.
        if visit.objects == 0 {
            return;
        }
        visit.objects -= 1;
        if visit.objects > 0 {
            self.ask(connection, false, network, now);
            return;
        }
        if visit.page_began >= self.context.window {
            self.pages += 1;
            self.load_time.record(now.since(visit.page_began));
        }
        visit.pages -= 1;
        if visit.pages > 0 && now < self.context.stop {
            let pause = exponential(&mut self.context.random, self.params.reading.0);
            self.plan(now + Span(pause), connection, Step::Ask, network);
        } else {
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
        }
    }

    fn plan(&mut self, at: Time, connection: Connection, step: Step, network: &mut Network) {
        self.agenda.insert((at, connection.0, step));
        network.wake(self.context.opening.app, at);
    }

    fn forget(&mut self, connection: Connection) {
        self.visits.remove(&connection.0);
        self.agenda.retain(|(_, number, _)| *number != connection.0);
    }

    pub fn outcome(self) -> Outcome {
        Outcome::Web { connections: self.connections, pages: self.pages, load_time: self.load_time }
    }
}
