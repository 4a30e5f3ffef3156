//! The two ports of a bridge whose frames the kernel cannot queue.
//!
//! Sockets for frames need CAP_NET_RAW, which nobody has for long: they are opened before
//! privileges go, without an interface, and a daemon that is started again inherits them.

use std::sync::Arc;

use super::Settings;
use crate::direction::Direction;
use crate::error::Error;
use crate::frames::PacketSocket;
use crate::links::{self, Pair};
use crate::nft::{self, MarkBits, Queueing};
use crate::passage::Passage;

/// The warning of it.
pub(super) const IN_OUR_MEMORY: &str = "this kernel lacks nft_queue, so frames of the bridge wait \
     in this process; those that wait are lost if it dies (`modprobe nft_queue`)";

/// True if the kernel's bridge can hand its frames to a queue.
pub(super) fn kernel_queues() -> bool {
    matches!(nft::judge_queueing(), Ok(Queueing::Native))
}

/// Sockets for the ports of one bridge.
#[derive(Debug)]
pub(crate) struct PortSockets {
    /// The port that is shaped.
    pub(crate) interface: String,
    both: [Arc<PacketSocket>; 2],
}

impl PortSockets {
    /// Opens sockets for `interface`, if it needs such: it is a bridge's port, or `will_be` one.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing.
    pub(crate) fn open(interface: &str, will_be: bool) -> Result<Option<PortSockets>, Error> {
        // That there are no interfaces to ask for, whoever takes it over says.
        let is_port = || matches!(links::bridge_of(interface), Ok(Some(_)));
        if !(will_be || is_port()) || kernel_queues() {
            return Ok(None);
        }
        let both = [PacketSocket::unattached()?, PacketSocket::unattached()?].map(Arc::new);
        Ok(Some(PortSockets { interface: interface.to_owned(), both }))
    }
}

/// The port that is shaped, and the other one.
pub(super) struct Ports {
    interface: String,
    pair: Pair,
    /// Theirs, in this order.
    sockets: [Arc<PacketSocket>; 2],
    /// True for those by which a direction that is shaped comes in.
    receive: [bool; 2],
}

impl Ports {
    /// The ports of the bridge that an interface is a port of, by `sockets` opened for it.
    pub(super) fn of(settings: &Settings, sockets: Option<&PortSockets>) -> Result<Ports, Error> {
        let interface = settings.interface.clone();
        if settings.tuning.lanes.are_several() {
            return Err(Error::LanesOnBridge);
        }
        let pair = links::pair_of(&interface)?;
        let sockets = sockets.ok_or_else(|| Error::NoFrameSockets(interface.clone()))?;
        let receive = [settings.download.is_some(), settings.upload.is_some()];
        Ok(Ports { interface, pair, sockets: sockets.both.clone(), receive })
    }

    /// The passage of a direction, for `limit` frames at a time.
    pub(super) fn passage(
        &self,
        direction: Direction,
        limit: u32,
        bits: MarkBits,
    ) -> Result<Passage, Error> {
        let [shaped, other] = self.sockets.clone();
        let ways = match direction {
            Direction::Download => [shaped, other],
            Direction::Upload => [other, shaped],
        };
        Ok(Passage::new(ways, limit, self.pair.own.clone(), bits)?)
    }

    /// The ways that are ours, from port to port.
    pub(super) fn ours(&self) -> Vec<(String, String)> {
        let [shaped, other] = self.names().map(String::from);
        let ways = [(shaped.clone(), other.clone()), (other, shaped)];
        ways.into_iter()
            .zip(self.receive)
            .filter_map(|(way, is_ours)| is_ours.then_some(way))
            .collect()
    }

    fn names(&self) -> [&str; 2] {
        [&self.interface, &self.pair.other]
    }

    fn each(&self) -> impl Iterator<Item = (&PacketSocket, &str, bool)> {
        let all = self.sockets.iter().zip(self.names()).zip(self.receive);
        all.map(|((socket, name), receives)| (socket.as_ref(), name, receives))
    }

    /// Frames arrive from now on.
    ///
    /// # Errors
    /// A port is gone.
    pub(super) fn attach(&self) -> Result<(), Error> {
        Ok(self.each().try_for_each(|(socket, name, receives)| socket.attach(name, receives))?)
    }

    /// Frames arrive again, if a port was gone and is back.
    ///
    /// # Errors
    /// As [`Ports::attach`].
    pub(super) fn follow(&self) -> Result<(), Error> {
        Ok(self.each().try_for_each(|(socket, name, receives)| socket.follow(name, receives))?)
    }

    /// Nothing arrives any more; what waits may leave.
    pub(super) fn stop_receiving(&self) {
        self.sockets.iter().for_each(|socket| socket.stop_receiving());
    }
}
