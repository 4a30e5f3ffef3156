//! Small messages over one TCP connection, as a sensor sends them. Whether they wait for each other
//! is Nagle's algorithm, a switch of the endpoint.

use std::collections::VecDeque;

use simnel_core::{Span, Time};

use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::network::{Connection, Network, Notice, Side};

/// Messages that may wait for being received; a flow so far behind counts no further latencies.
const MAX_WAITING: usize = 1 << 16;

/// A stream of messages.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    context: Context,
    size: u32,
    interval: Span,
    connection: Option<Connection>,
    /// Times at which the messages were written that were not received yet, oldest first.
    waiting: VecDeque<Time>,
    /// Messages received whole, from the beginning.
    whole: u64,
    sent: u64,
    received: u64,
    latency: Distribution,
}

impl Messages {
    pub fn new(size: u32, interval: Span, context: Context) -> Messages {
        Messages {
            context,
            size,
            interval,
            connection: None,
            waiting: VecDeque::new(),
            whole: 0,
            sent: 0,
            received: 0,
            latency: Distribution::default(),
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        let opening = &self.context.opening;
        let connection = match self.connection {
            Some(connection) => connection,
            None => *self.connection.insert(network.open(opening, now)),
        };
        if now >= self.context.stop {
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
            return;
        }
        network.wake(opening.app, now + self.interval);
        if self.waiting.len() == MAX_WAITING {
            return;
        }
        self.waiting.push_back(now);
        self.sent += u64::from(now >= self.context.window);
        let size = u64::from(self.size);
        network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.write(size));
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if side == Side::Server && events.data {
            let whole = network.received(connection, Side::Server) / u64::from(self.size);
            while self.whole < whole {
                let Some(written) = self.waiting.pop_front() else { break };
                self.whole += 1;
                if written >= self.context.window {
                    self.received += 1;
                    self.latency.record(now.since(written));
                }
            }
        }
        network.follow(connection, side, &events, now);
    }

    pub fn outcome(self) -> Outcome {
        Outcome::Messages { sent: self.sent, received: self.received, latency: self.latency }
    }
}
