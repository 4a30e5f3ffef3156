//! One TCP transfer: of a size, or until it is stopped, or without end.

use simnel_core::Time;

use super::Context;
use crate::network::{Connection, Network, Notice, Side};

/// A transfer.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    context: Context,
    size: Option<u64>,
    connection: Option<Connection>,
}

impl Bulk {
    pub fn new(size: Option<u64>, context: Context) -> Bulk {
        Bulk { context, size, connection: None }
    }

    /// The first call opens the connection, the second one ends an endless transfer.
    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        let Some(connection) = self.connection else {
            let connection = network.open(&self.context.opening, now);
            self.connection = Some(connection);
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
            return;
        };
        if self.size.is_none() {
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.close());
        } else {
            // What did not get there in time does not get there.
            network.with_endpoint(connection, Side::Client, now, |endpoint| endpoint.abort());
        }
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.peer_closed && side == Side::Server {
            let flow = &mut network.flows[self.context.opening.flow as usize];
            flow.finished = flow.finished.or(Some(now));
        }
        network.follow(connection, side, &events, now);
    }
}
