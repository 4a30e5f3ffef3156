//! Transfers of equal size with idle gaps between them, over one TCP connection: photographs that
//! are uploaded one by one.

use simnel_core::random::Random;
use simnel_core::{Span, Time};

use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::draw::between;
use crate::network::{Connection, Network, Notice, Side};

/// Gaps between transfers, drawn evenly from a range.
#[derive(Clone, Debug)]
pub struct Gaps {
    range: (Span, Span),
    random: Random,
}

impl Gaps {
    /// Gaps of at least and at most so long.
    pub fn new(range: (Span, Span), random: Random) -> Gaps {
        Gaps { range, random }
    }

    /// The next one.
    pub fn draw(&mut self) -> Span {
        let (low, high) = self.range;
        Span(between(&mut self.random, (low.0, high.0)))
    }
}

/// A sequence of transfers.
#[derive(Clone, Debug)]
pub(crate) struct Bursts {
    context: Context,
    size: u64,
    gaps: Gaps,
    connection: Option<Connection>,
    /// Payload that will have been received when the present transfer is complete.
    expected: u64,
    /// Time at which the present transfer began; None in a gap.
    began: Option<Time>,
    completed: u64,
    completion: Distribution,
}

impl Bursts {
    pub fn new(size: u64, pause: (Span, Span), context: Context) -> Bursts {
        Bursts {
            gaps: Gaps::new(pause, context.random),
            context,
            size,
            connection: None,
            expected: 0,
            began: None,
            completed: 0,
            completion: Distribution::default(),
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        let connection = match self.connection {
            Some(connection) => connection,
            None => *self.connection.insert(network.open(&self.context.opening, now)),
        };
        if now >= self.context.stop {
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
            return;
        }
        self.expected += self.size;
        self.began = Some(now);
        let size = self.size;
        network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.write(size));
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if side == Side::Server && events.data {
            let whole = network.received(connection, Side::Server) >= self.expected;
            if let Some(began) = self.began.filter(|_| whole) {
                self.began = None;
                if began >= self.context.window {
                    self.completed += 1;
                    self.completion.record(now.since(began));
                }
                network.wake(self.context.opening.app, now + self.gaps.draw());
            }
        }
        network.follow(connection, side, &events, now);
    }

    pub fn outcome(self) -> Outcome {
        Outcome::Bursts { completed: self.completed, completion: self.completion }
    }
}
