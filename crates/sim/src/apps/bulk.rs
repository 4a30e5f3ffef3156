//! One TCP transfer: of a size, or until it is stopped, or without end. Its receiver reads all that
//! comes, or a portion now and then.

use simnel_core::Time;

use super::Context;
use crate::network::{Connection, Network, Notice, Side};
use crate::setup::Reading;

/// A transfer.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    context: Context,
    size: Option<u64>,
    reading: Option<Reading>,
    connection: Option<Connection>,
    /// Time of the receiver's next read; `Time::MAX`: not at times of its own.
    reads: Time,
}

impl Bulk {
    pub fn new(size: Option<u64>, reading: Option<Reading>, context: Context) -> Bulk {
        Bulk { context, size, reading, connection: None, reads: Time::MAX }
    }

    /// The first call opens the connection, later ones read, and one ends the transfer.
    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        match self.connection {
            None => self.open(network, now),
            Some(connection) if now >= self.reads => self.read(connection, network, now),
            Some(connection) => {
                let endless = self.size.is_none();
                network.with_endpoint(connection, Side::Client, now, |endpoint| {
                    if endless {
                        endpoint.close();
                    } else {
                        // What did not get there in time does not get there.
                        endpoint.abort();
                    }
                });
            }
        }
    }

    fn open(&mut self, network: &mut Network, now: Time) {
        let connection = network.open(&self.context.opening, now);
        self.connection = Some(connection);
        if self.reading.is_some() {
            let slow = |endpoint: &mut simnel_tcp::Endpoint| endpoint.set_auto_read(false);
            network.with_endpoint(connection, Side::Server, now, slow);
        }
        let size = self.size;
        network.with_endpoint(connection, Side::Client, now, |endpoint| match size {
            None => endpoint.write_unlimited(),
            Some(size) => {
                endpoint.write(size);
                endpoint.close();
            }
        });
        if self.context.stop != Time::MAX {
            network.wake(self.context.opening.app, self.context.stop.max(now));
        }
    }

    fn read(&mut self, connection: Connection, network: &mut Network, now: Time) {
        if let Some(Reading { portion, .. }) = self.reading {
            let read = |end: &mut simnel_tcp::Endpoint| end.read(portion, now);
            if network.with_endpoint(connection, Side::Server, now, read).is_some() {
                self.read_later(network, now);
            }
        }
    }

    fn read_later(&mut self, network: &mut Network, now: Time) {
        if let Some(Reading { interval, .. }) = self.reading {
            self.reads = now + interval;
            network.wake(self.context.opening.app, self.reads);
        }
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.connected && side == Side::Server {
            self.read_later(network, now);
        }
        if events.peer_closed && side == Side::Server {
            let flow = &mut network.flows[self.context.opening.flow as usize];
            flow.finished = flow.finished.or(Some(now));
        }
        network.follow(connection, side, &events, now);
    }
}
