//! Needs of a discipline that go to whoever hands it packets as they are, and may send some past
//! it: a kernel.

use super::{Config, Device};

/// Duties of such a home under given settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Connections as the hosts behind address translation see them.
    pub translation: bool,
    /// Super-packets in pieces.
    pub pieces: bool,
    /// To be asked for packets also while it has none.
    pub vain_calls: bool,
    /// State in which packets may go past it, unseen, straight to the device.
    pub bypass: Bypass,
    /// Meaning of a filter's choice.
    pub choice: Choice,
}

/// The state of a discipline in which packets may go past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// It must see each packet.
    Never,
    /// While nothing is queued, as in Linux: what is kept of an empty queue does not depend on it.
    Empty,
    /// While it is at rest ([`Managed::is_at_rest`](super::Managed::is_at_rest)).
    AtRest,
}

/// Meaning of a filter's choice of a class (`major:minor`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The class is the packet's.
    Class,
    /// Of so many queues, the one of the minor number, from 1. As in Linux, packets that no filter
    /// knows, or for which one chooses another number, are dropped.
    Queue(u32),
    /// The minor number is that of a queue in the packet's tier, the major that of a host.
    QueueAndHost,
}

impl Needs {
    /// Those of most disciplines.
    pub const MOST: Needs = Needs {
        translation: false,
        pieces: false,
        vain_calls: true,
        bypass: Bypass::Never,
        choice: Choice::Class,
    };
}

impl Config {
    /// Needs of the settings on `device`, with those of all that stands below.
    pub fn needs(&self, device: &Device) -> Needs {
        let mut needs = self.own_needs();
        if self.passes_nothing(device).is_some() {
            needs.bypass = Bypass::Never;
        }
        for (_, child) in self.children() {
            let below = child.needs(device);
            needs.translation |= below.translation;
            needs.pieces |= below.pieces;
        }
        needs
    }
}
