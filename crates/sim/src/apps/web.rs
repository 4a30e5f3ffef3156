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
use crate::setup::web::{Params, MAX_OBJECT};

/// Connections that may be open at once; further ones wait for nothing and are not opened.
const MAX_OPEN: usize = 50_000;
/// Of the objects, so many in a thousand are from the tail.
const TAIL_PER_MILLE: u32 = 80;

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

/// A household that browses.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    context: Context,
    params: Params,
    visits: BTreeMap<Connection, Visit>,
    agenda: BTreeSet<(Time, Connection, Step)>,
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
        while let Some((at, connection, step)) = self.agenda.first().copied() {
            if at > now {
                break;
            }
            self.agenda.pop_first();
            match step {
                Step::Answer => self.answer(connection, network, now),
                Step::Ask => self.ask(connection, true, network, now),
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
        if network.follow(connection, side, &events, now) {
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
        self.visits.insert(connection, visit);
        self.ask(connection, true, network, now);
    }

    /// The client writes a request: for a page, or for its next object.
    fn ask(&mut self, connection: Connection, page: bool, network: &mut Network, now: Time) {
        let random = &mut self.context.random;
        let size = between(random, self.params.request);
        let objects = if page { between(random, self.params.objects) } else { 0 };
        let Some(visit) = self.visits.get_mut(&connection) else { return };
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
        let Some(visit) = self.visits.get_mut(&connection) else { return };
        visit.object_end += size;
        network.with_endpoint(connection, Side::Server, now, |endpoint| endpoint.write(size));
    }

    fn received(&mut self, connection: Connection, side: Side, network: &mut Network, now: Time) {
        let bytes = network.received(connection, side);
        let Some(visit) = self.visits.get_mut(&connection) else { return };
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
        let Some(visit) = self.visits.get_mut(&connection) else { return };
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
        self.agenda.insert((at, connection, step));
        network.wake(self.context.opening.app, at);
    }

    fn forget(&mut self, connection: Connection) {
        self.visits.remove(&connection);
        self.agenda.retain(|(_, other, _)| *other != connection);
    }

    pub fn outcome(self) -> Outcome {
        Outcome::Web { connections: self.connections, pages: self.pages, load_time: self.load_time }
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::{qdisc, Rate};

    use super::*;
    use crate::apps::App;
    use crate::setup::{Access, Host, Kind, LineSetup, Recording, Setup, Traffic};
    use crate::{Direction, Run};

    /// Nothing is kept of a connection that is over: not more than are open would be let in.
    #[test]
    fn who_is_gone_has_no_place() {
        let words = qdisc::parse("pfifo limit 1000").expect("words");
        let line = LineSetup::wire(words, Some(Rate::from_bits(100_000_000)));
        let access = Access { delay: Span::from_millis(10), rate: None };
        let host = |address, home| Host { address, home, egress: access, ingress: access };
        let kind = Kind::Web(Params::default());
        let stop = Some(Span::from_secs(8));
        let setup = Setup {
            duration: Span::from_secs(20),
            warmup: Span::ZERO,
            lines: [line.clone(), line],
            hosts: vec![host([10, 0, 1, 1], true), host([10, 0, 2, 1], false)],
            traffic: vec![Traffic { stop, ..Traffic::one("it", kind, Direction::Down) }],
            recording: Recording::default(),
        };
        let mut run = Run::new(&setup, 1).expect("a good set-up");
        let kept = |run: &Run| match &run.apps[0] {
            App::Web(web) => (web.connections, web.visits.len(), web.agenda.len()),
            other => panic!("{other:?}"),
        };
        run.advance(Time::ZERO + Span::from_secs(8));
        let (connections, visits, _) = kept(&run);
        assert!(connections > 50 && visits > 0 && visits < 10, "{connections} {visits}");
        run.advance(Time::ZERO + Span::from_secs(20));
        assert_eq!(kept(&run), (connections, 0, 0));
    }
}
