//! One end of a link: a socket, and the interface that it is attached to.

use std::io;
use std::ops::Deref;

use crate::frames::{FrameError, PacketSocket};
use crate::sys::{self, Query};

/// One end of a link.
#[derive(Debug)]
pub(super) struct Port {
    socket: PacketSocket,
    interface: String,
    /// Largest frame, link header included.
    pub(super) mtu: u32,
    /// The interface's queue length in packets.
    pub(super) tx_queue_len: u32,
}

impl Port {
    /// Opens `interface`.
    pub(super) fn open(interface: &str) -> Result<Port, FrameError> {
        const ETHERNET_HEADER: u32 = 14;
        let missing = |_| FrameError::NoInterface { interface: interface.into() };
        sys::interface(interface, Query::Index).map_err(missing)?;
        let ask = |query| {
            sys::interface(interface, query).map_err(|source| FrameError::System {
                interface: interface.into(),
                what: "read its MTU and queue length",
                source,
            })
        };
        let (mtu, tx_queue_len) = (ask(Query::Mtu)? + ETHERNET_HEADER, ask(Query::TxQueueLen)?);
        let socket = PacketSocket::unattached()?;
        socket.attach(interface, true)?;
        Ok(Port { socket, interface: interface.into(), mtu, tx_queue_len })
    }

    /// True if the interface no longer exists under its name: it will not come back up.
    pub(super) fn is_gone(&self) -> bool {
        sys::interface(&self.interface, Query::Index).ok() != Some(self.socket.index())
    }

    /// An error about this end.
    pub(super) fn error(&self, what: &'static str, source: io::Error) -> FrameError {
        FrameError::System { interface: self.interface.clone(), what, source }
    }
}

impl Deref for Port {
    type Target = PacketSocket;

    fn deref(&self) -> &PacketSocket {
        &self.socket
    }
}
