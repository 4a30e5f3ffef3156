//! Datagrams of one size at one interval, one way: constant bit rate, voice, a camera, a flood
//! from many ports.

use simnel_core::{Span, Time};

use super::over_time::OverTime;
use super::{Context, Outcome};
use crate::distribution::Distribution;
use crate::network::{Connection, Network, Notice, Side};
use crate::pool::Datagram;

/// A stream of datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Datagrams {
    context: Context,
    size: u32,
    interval: Span,
    /// Pairs of ports, to be used in turn.
    ports: u32,
    /// Those that are in use.
    connections: Vec<Connection>,
    sequence: u32,
    sent: u64,
    received: u64,
    added_delay: Distribution,
    variation: Distribution,
    over_time: OverTime,
    /// Delay of the last one received and its number.
    last: Option<(u32, Span)>,
}

impl Datagrams {
    pub fn new(size: u32, interval: Span, ports: u32, context: Context) -> Datagrams {
        Datagrams {
            over_time: OverTime::new(context.interval),
            context,
            size,
            interval,
            ports,
            connections: Vec::new(),
            sequence: 0,
            sent: 0,
            received: 0,
            added_delay: Distribution::default(),
            variation: Distribution::default(),
            last: None,
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        if now >= self.context.stop {
            return;
        }
        let opening = &self.context.opening;
        let turn = (self.sequence % self.ports) as usize;
        if turn == self.connections.len() {
            self.connections.push(network.open_datagrams(opening, false));
        }
        let connection = self.connections[turn];
        let datagram =
            Datagram { sequence: self.sequence, sent: now, answered: Time::ZERO, size: self.size };
        self.sequence = self.sequence.wrapping_add(1);
        self.sent += u64::from(now >= self.context.window);
        network.wake(opening.app, now + self.interval);
        network.send_datagram(connection, Side::Client, datagram, now);
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Datagram(_, Side::Server, datagram) = notice else { return };
        let opening = &self.context.opening;
        let flow = &mut network.flows[opening.flow as usize];
        flow.delivered[opening.direction as usize] += u64::from(datagram.size);
        let delay = now.since(datagram.sent);
        let added = delay.saturating_sub(self.context.base.0);
        self.over_time.record(datagram.sent, added);
        if datagram.sent < self.context.window {
            return;
        }
        self.received += 1;
        self.added_delay.record(added);
        if let Some((sequence, last)) = self.last {
            if sequence.wrapping_add(1) == datagram.sequence {
                self.variation.record(Span(delay.0.abs_diff(last.0)));
            }
        }
        self.last = Some((datagram.sequence, delay));
    }

    pub fn outcome(self) -> Outcome {
        Outcome::Datagrams {
            sent: self.sent,
            received: self.received,
            added_delay: self.added_delay,
            variation: self.variation,
            over_time: self.over_time.into_moments(),
        }
    }
}
