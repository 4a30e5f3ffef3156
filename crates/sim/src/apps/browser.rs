//! A household that browses, after PackMime (Cao, Cleveland, Gao, Jeffay, Smith, Weigle, INFOCOM
//! 2004). It decides which connection is opened and when, and what is asked for and answered over
//! it.
//!
//! Connections open at random at a mean rate. Each carries one page or several (persistent HTTP). A
//! page is a request and its answer, then further objects, one after the other; a server thinks
//! before it answers. Sizes have a log-normal body and a Pareto tail, as that paper found for
//! responses. The parameters are ours, of its order of magnitude, and can all be set. How
//! connections are made and bytes are moved is its [`Carrier`]'s.

use std::collections::{BTreeMap, BTreeSet};

use simnel_core::random::Random;
use simnel_core::{Span, Time};

use crate::draw::{between, exponential, log_normal, pareto};
use crate::setup::web::{Params, MAX_OBJECT};

pub use crate::network::Side;

/// Connections that may be open at once; further ones wait for nothing and are not opened.
const MAX_OPEN: usize = 50_000;
/// Of the objects, so many in a thousand are from the tail.
const TAIL_PER_MILLE: u32 = 80;

/// The network, real or simulated, over which a household browses.
pub trait Carrier {
    /// Name of a connection.
    type Connection: Copy + Ord;

    /// Opens a connection to the server.
    fn open(&mut self, now: Time) -> Self::Connection;
    /// `side` writes so many bytes.
    fn write(&mut self, connection: Self::Connection, side: Side, bytes: u64, now: Time);
    /// The client has nothing more to ask.
    fn close(&mut self, connection: Self::Connection, now: Time);
    /// [`Browser::on_timer`] is to be called at `at`.
    fn wake(&mut self, at: Time);
    /// The page whose first request was written at `began` is there.
    fn loaded(&mut self, began: Time, now: Time);
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

/// Event of a connection at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The server answers.
    Answer,
    /// The client asks for a page.
    Ask,
}

/// A household.
#[derive(Clone, Debug)]
pub struct Browser<C> {
    params: Params,
    random: Random,
    stop: Time,
    visits: BTreeMap<C, Visit>,
    agenda: BTreeSet<(Time, C, Step)>,
    next_connection: Time,
}

impl<C: Copy + Ord> Browser<C> {
    /// A household that stops at `stop` (`Time::MAX`: never). It begins when it is first called.
    pub fn new(params: &Params, random: Random, stop: Time) -> Browser<C> {
        Browser {
            params: params.clone(),
            random,
            stop,
            visits: BTreeMap::new(),
            agenda: BTreeSet::new(),
            next_connection: Time::ZERO,
        }
    }

    /// A time that it asked for has come.
    pub fn on_timer(&mut self, carrier: &mut impl Carrier<Connection = C>, now: Time) {
        while let Some((at, connection, step)) = self.agenda.first().copied() {
            if at > now {
                break;
            }
            self.agenda.pop_first();
            match step {
                Step::Answer => self.answer(connection, carrier, now),
                Step::Ask => self.ask(connection, true, carrier, now),
            }
        }
        if now >= self.next_connection && now < self.stop {
            if self.next_connection != Time::ZERO && self.visits.len() < MAX_OPEN {
                self.visit(carrier, now);
            }
            let gap = exponential(&mut self.random, self.params.interval.0);
            self.next_connection = now + Span(gap.max(1));
            carrier.wake(self.next_connection);
        }
    }

    /// `side` has received `bytes` in all.
    pub fn received(
        &mut self,
        (connection, side): (C, Side),
        bytes: u64,
        carrier: &mut impl Carrier<Connection = C>,
        now: Time,
    ) {
        let Some(visit) = self.visits.get_mut(&connection) else { return };
        match side {
            Side::Server if !visit.answered && bytes >= visit.request_end => {
                visit.answered = true;
                let think = log_normal(&mut self.random, self.params.think.0, 1_000);
                self.plan(now + Span(think), connection, Step::Answer, carrier);
            }
            Side::Client if visit.object_end > 0 && bytes >= visit.object_end => {
                self.object_is_whole(connection, carrier, now);
            }
            _ => {}
        }
    }

    /// A connection is over.
    pub fn forget(&mut self, connection: C) {
        self.visits.remove(&connection);
        self.agenda.retain(|(_, other, _)| *other != connection);
    }

    /// Opens a connection and asks for its first page.
    fn visit(&mut self, carrier: &mut impl Carrier<Connection = C>, now: Time) {
        let connection = carrier.open(now);
        let pages = between(&mut self.random, self.params.pages);
        let visit = Visit {
            pages,
            objects: 0,
            page_began: now,
            request_end: 0,
            object_end: 0,
            answered: true,
        };
        self.visits.insert(connection, visit);
        self.ask(connection, true, carrier, now);
    }

    /// The client writes a request: for a page, or for its next object.
    fn ask(
        &mut self,
        connection: C,
        page: bool,
        carrier: &mut impl Carrier<Connection = C>,
        now: Time,
    ) {
        let size = between(&mut self.random, self.params.request);
        let objects = if page { between(&mut self.random, self.params.objects) } else { 0 };
        let Some(visit) = self.visits.get_mut(&connection) else { return };
        if page {
            visit.page_began = now;
            visit.objects = objects;
        }
        visit.request_end += size;
        visit.answered = false;
        carrier.write(connection, Side::Client, size, now);
    }

    /// The server writes an object.
    fn answer(&mut self, connection: C, carrier: &mut impl Carrier<Connection = C>, now: Time) {
        let random = &mut self.random;
        let median = self.params.object_size;
        let size = if random.below(1000) < TAIL_PER_MILLE {
            pareto(random, median.saturating_mul(4), (6, 5), MAX_OBJECT)
        } else {
            log_normal(random, median, self.params.object_spread_milli)
        };
        let size = size.clamp(1, MAX_OBJECT);
        let Some(visit) = self.visits.get_mut(&connection) else { return };
        visit.object_end += size;
        carrier.write(connection, Side::Server, size, now);
    }

    fn object_is_whole(
        &mut self,
        connection: C,
        carrier: &mut impl Carrier<Connection = C>,
        now: Time,
    ) {
        let Some(visit) = self.visits.get_mut(&connection) else { return };
        // Nothing is expected until the next answer.
        if visit.objects == 0 {
            return;
        }
        visit.objects -= 1;
        if visit.objects > 0 {
            self.ask(connection, false, carrier, now);
            return;
        }
        carrier.loaded(visit.page_began, now);
        visit.pages -= 1;
        if visit.pages > 0 && now < self.stop {
            let pause = exponential(&mut self.random, self.params.reading.0);
            self.plan(now + Span(pause), connection, Step::Ask, carrier);
        } else {
            carrier.close(connection, now);
        }
    }

    fn plan(
        &mut self,
        at: Time,
        connection: C,
        step: Step,
        carrier: &mut impl Carrier<Connection = C>,
    ) {
        self.agenda.insert((at, connection, step));
        carrier.wake(at);
    }

    /// Connections that are open, and what is planned for them.
    #[cfg(test)]
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.visits.len(), self.agenda.len())
    }
}
