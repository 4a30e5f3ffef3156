//! Video over HTTP (DASH): chunks of constant play time, fetched one after the other over one
//! connection, in the quality that the throughput allows. See [`player`](super::player).

use simnel_core::Time;

use super::player::{Next, Playback, Player, REQUEST};
use super::Context;
use crate::network::{Connection, Network, Notice, Side};
use crate::setup::dash::Params;

/// A player and its connection.
#[derive(Clone, Debug)]
pub(crate) struct Dash {
    context: Context,
    params: Params,
    connection: Option<Connection>,
    player: Option<Player>,
    request_end: u64,
    chunk_end: u64,
    /// Bytes that the server sends when it has the whole request.
    asked: Option<u64>,
}

impl Dash {
    pub fn new(params: &Params, context: Context) -> Dash {
        Dash {
            context,
            params: params.clone(),
            connection: None,
            player: None,
            request_end: 0,
            chunk_end: 0,
            asked: None,
        }
    }

    pub fn on_timer(&mut self, network: &mut Network, now: Time) {
        if self.connection.is_none() {
            self.connection = Some(network.open(&self.context.opening, now));
            self.player = Some(Player::new(&self.params, now, self.context.stop));
            if self.context.stop != Time::MAX {
                network.wake(self.context.opening.app, self.context.stop);
            }
        }
        self.go_on(network, now);
    }

    pub fn on_notice(&mut self, notice: Notice, network: &mut Network, now: Time) {
        let Notice::Tcp(connection, side, events) = notice else { return };
        if events.data && side == Side::Server {
            let whole = network.received(connection, side) >= self.request_end;
            if let Some(size) = self.asked.take_if(|_| whole) {
                network.with_endpoint(connection, side, now, |endpoint| endpoint.write(size));
            }
        }
        if events.data && side == Side::Client {
            self.received(connection, network, now);
        }
        network.follow(connection, side, &events, now);
    }

    fn received(&mut self, connection: Connection, network: &mut Network, now: Time) {
        let Some(player) = self.player.as_mut().filter(|player| player.is_fetching()) else {
            return;
        };
        if network.received(connection, Side::Client) < self.chunk_end {
            return;
        }
        player.fetched(now);
        self.go_on(network, now);
    }

    /// Asks for the next chunk if there is room for it, or sleeps until there is.
    fn go_on(&mut self, network: &mut Network, now: Time) {
        let (Some(connection), Some(player)) = (self.connection, &mut self.player) else { return };
        match player.next(now) {
            Next::Ask(size) => {
                self.request_end += REQUEST;
                self.chunk_end += size;
                self.asked = Some(size);
                network
                    .with_endpoint(connection, Side::Client, now, |client| client.write(REQUEST));
            }
            Next::Wait(until) => network.wake(self.context.opening.app, until),
            Next::Nothing => {}
            Next::Stop => {
                network.with_endpoint(connection, Side::Client, now, |client| client.close());
            }
        }
    }

    pub fn playback(self, now: Time) -> Playback {
        self.player.map(|player| player.playback(now)).unwrap_or_default()
    }
}
