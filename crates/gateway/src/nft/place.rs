//! Places of the chains: hooks, priorities and names.

use super::Holder;
use crate::direction::Direction;

/// After destination NAT (-100).
const ARRIVING: i32 = -90;
/// Before source NAT (100), after mangling and filtering.
const LEAVING: i32 = 90;

/// In front of all others that may look at marks: raw tables stand at -300.
const RESTORED: i32 = -310;

/// Place of one direction's chains: hook, priority and names.
pub(super) struct Place {
    pub(super) direction: Direction,
    pub(super) queue_chain: &'static str,
    pub(super) act_chain: &'static str,
    pub(super) rule_chain: &'static str,
    pub(super) hook: i32,
    pub(super) priority: i32,
    pub(super) name_key: i32,
}

impl Place {
    /// Priority of the chain that carries out what was decided, if there is one.
    pub(super) fn act_priority(&self, holder: Holder) -> Option<i32> {
        match (holder, self.direction) {
            (Holder::Process(_), _) => Some(self.priority + 1),
            (Holder::Kernel, Direction::Download) => Some(RESTORED),
            (Holder::Kernel, Direction::Upload) => None,
        }
    }
}

pub(super) static ARRIVE: Place = Place {
    direction: Direction::Download,
    queue_chain: "arriving",
    act_chain: "arrived",
    rule_chain: "rules_down",
    hook: libc::NF_INET_PRE_ROUTING,
    priority: ARRIVING,
    name_key: libc::NFT_META_IIFNAME,
};
pub(super) static LEAVE: Place = Place {
    direction: Direction::Upload,
    queue_chain: "leaving",
    act_chain: "left",
    rule_chain: "rules_up",
    hook: libc::NF_INET_POST_ROUTING,
    priority: LEAVING,
    name_key: libc::NFT_META_OIFNAME,
};
