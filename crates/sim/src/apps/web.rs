//! Web traffic: a household that browses through the simulated network.

use simnel_core::Time;

use super::browser::{Browser, Carrier};
use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::network::{Connection, Network, Notice, Opening, Side};
use crate::setup::web::Params;

/// A household.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    browser: Browser<Connection>,
    record: Record,
}

/// Record of its connections.
#[derive(Clone, Debug)]
struct Record {
    opening: Opening,
    /// Start of the measured window.
    window: Time,
    connections: u64,
    pages: u64,
    load_time: Distribution,
}

impl Web {
    pub fn new(params: &Params, context: Context) -> Web {
        let Context { opening, window, stop, random, .. } = context;
        let load_time = Distribution::default();
        Web {
            browser: Browser::new(params, random, stop),
            record: Record { opening, window, connections: 0, pages: 0, load_time },
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        self.browser.on_timer(&mut Simulated { network, record: &mut self.record }, now);
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.data {
            let bytes = network.received(connection, side);
            let carrier = &mut Simulated { network, record: &mut self.record };
            self.browser.received((connection, side), bytes, carrier, now);
        }
        if network.follow(connection, side, &events, now) {
            self.browser.forget(connection);
        }
    }

    pub fn outcome(self) -> Outcome {
        let Record { connections, pages, load_time, .. } = self.record;
        Outcome::Web { connections, pages, load_time }
    }
}

/// The simulated network, as a household uses it.
struct Simulated<'a> {
    network: &'a mut Network,
    record: &'a mut Record,
}

impl Carrier for Simulated<'_> {
    type Connection = Connection;

    fn open(&mut self, now: Time) -> Connection {
        self.record.connections += u64::from(now >= self.record.window);
        self.network.open(&self.record.opening, now)
    }

    fn write(&mut self, connection: Connection, side: Side, bytes: u64, now: Time) {
        self.network.with_endpoint(connection, side, now, |endpoint| endpoint.write(bytes));
    }

    fn close(&mut self, connection: Connection, now: Time) {
        self.network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
    }

    fn wake(&mut self, at: Time) {
        self.network.wake(self.record.opening.app, at);
    }

    fn loaded(&mut self, began: Time, now: Time) {
        if began >= self.record.window {
            self.record.pages += 1;
            self.record.load_time.record(now.since(began));
        }
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::{qdisc, Rate, Span};

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
            App::Web(web) => (web.record.connections, web.browser.held()),
            other => panic!("{other:?}"),
        };
        run.advance(Time::ZERO + Span::from_secs(8));
        let (connections, (visits, _)) = kept(&run);
        assert!(connections > 50 && visits > 0 && visits < 10, "{connections} {visits}");
        run.advance(Time::ZERO + Span::from_secs(20));
        assert_eq!(kept(&run), (connections, (0, 0)));
    }
}
