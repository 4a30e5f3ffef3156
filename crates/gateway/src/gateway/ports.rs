//! The two ports of a bridge whose frames the kernel cannot queue.
//!
//! Sockets for frames need CAP_NET_RAW, which nobody has for long. They are opened before
//! privileges go, without an interface, and a daemon that is started again inherits them.

use std::sync::Arc;

use crate::direction::Direction;
use crate::error::Error;
use crate::frames::{PacketSocket, CHUNKS_PER_FRAME};
use crate::links::{self, Pair};
use crate::nft::{self, MarkBits, Queueing};
use crate::passage::{Own, Passage};
use crate::settings::Settings;

/// The warning of it.
pub(super) const IN_OUR_MEMORY: &str = "this kernel lacks nft_queue, so frames of the bridge wait \
     in this process; those that wait are lost if it dies (`modprobe nft_queue`)";

/// Chunks that there are at least: two super-packets have room.
const LEAST: u32 = 2 * CHUNKS_PER_FRAME as u32;

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
    /// None while the bridge is none that can be shaped.
    pair: Option<Pair>,
    own: Arc<Own>,
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
        let own = Arc::new(Own::default());
        let pair = links::pair_of(&interface)?;
        own.set(&pair.own);
        let sockets = sockets.ok_or_else(|| Error::NoFrameSockets(interface.clone()))?;
        let receive = [settings.download.is_some(), settings.upload.is_some()];
        Ok(Ports { interface, pair: Some(pair), own, sockets: sockets.both.clone(), receive })
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
        Ok(Passage::new(ways, limit.max(LEAST), Arc::clone(&self.own), bits)?)
    }

    /// The ways that are ours, from port to port.
    pub(super) fn ours(&self) -> Vec<(String, String)> {
        let Some([shaped, other]) = self.names() else { return Vec::new() };
        let ways = [(shaped, other), (other, shaped)].into_iter().zip(self.receive);
        let ours = ways.filter(|(_, is_ours)| *is_ours);
        ours.map(|((from, to), _)| (from.to_owned(), to.to_owned())).collect()
    }

    fn names(&self) -> Option<[&str; 2]> {
        self.pair.as_ref().map(|pair| [&*self.interface, &*pair.other])
    }

    /// Frames arrive from now on; or still do, also if a port was made anew.
    ///
    /// # Errors
    /// A port is gone.
    pub(super) fn attach(&self) -> Result<(), Error> {
        let names = self.names().into_iter().flatten();
        let all = self.sockets.iter().zip(names).zip(self.receive);
        for ((socket, name), receives) in all {
            socket.follow(name, receives)?;
        }
        Ok(())
    }

    /// Follows what has become of the bridge. True if other ways are ours than before.
    ///
    /// # Errors
    /// The bridge can no longer be shaped. That is said once.
    pub(super) fn follow(&mut self) -> Result<bool, Error> {
        match links::pair_of(&self.interface) {
            Ok(pair) => {
                let changed = self.pair.as_ref() != Some(&pair);
                self.own.set(&pair.own);
                self.pair = Some(pair);
                self.attach().map(|()| changed)
            }
            Err(error) => {
                self.stop_receiving();
                self.pair.take().map_or(Ok(false), |_| Err(error))
            }
        }
    }

    /// Nothing arrives any more; what waits may leave.
    pub(super) fn stop_receiving(&self) {
        self.sockets.iter().for_each(|socket| socket.stop_receiving());
    }
}
