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
    /// The minor number stands for the packet's flow. As in Linux, packets that no filter knows are
    /// dropped.
    Flow,
    /// The minor number is the packet's class; larger ones than this are zero.
    Small(u32),
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
        if self.drops_first(device) {
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

#[cfg(test)]
mod tests {
    use super::{Bypass, Choice, Needs};
    use crate::qdisc::{parse, Device};

    #[test]
    fn needs_are_those_of_the_settings() {
        const MOST: Needs = Needs::MOST;
        let seldom = Needs { vain_calls: false, ..MOST };
        let empty = Needs { bypass: Bypass::Empty, ..MOST };
        let at_rest = Needs { bypass: Bypass::AtRest, ..MOST };
        let cake = Needs { pieces: true, choice: Choice::QueueAndHost, ..seldom };
        let queue = |choice| Needs { choice: Choice::Queue(choice), ..MOST };
        for (words, needs) in [
            ("cake", cake),
            ("cake nat no-split-gso", Needs { translation: true, pieces: false, ..cake }),
            ("pfifo", Needs { vain_calls: false, ..empty }),
            ("pfifo limit 0", seldom),
            ("codel", empty),
            ("fq_codel flows 9", Needs { bypass: Bypass::Empty, ..queue(9) }),
            // As in Linux, the memory of a packet that finds it empty does not count.
            ("fq_codel flows 9 memory_limit 256", Needs { bypass: Bypass::Empty, ..queue(9) }),
            ("fq_codel flows 9 savings 15kb", queue(9)),
            ("fq_pie flows 9", queue(9)),
            ("sfq divisor 64", Needs { bypass: Bypass::Empty, ..queue(64) }),
            ("pie", Needs { vain_calls: false, ..at_rest }),
            ("red limit 60kb avpkt 1000", at_rest),
            ("sfb", Needs { choice: Choice::Flow, ..seldom }),
            ("dualpi2", Needs { pieces: true, choice: Choice::Small(2), ..MOST }),
            ("dualpi2 no_split_gso", Needs { choice: Choice::Small(2), ..MOST }),
            ("drr", MOST),
            // What stands below is never passed by, but needs the same of packets.
            ("tbf rate 1mbit burst 15k cake", Needs { pieces: true, ..MOST }),
            (
                "htb rate 1mbit burst 15k tbf rate 1mbit burst 15k cake nat no-split-gso",
                Needs { translation: true, ..MOST },
            ),
            ("htb rate 1mbit burst 15k fq_codel", MOST),
        ] {
            assert_eq!(parse(words).unwrap().needs(&Device::default()), needs, "{words}");
        }
    }
}
