//! The flow that tests schedule.

use std::collections::VecDeque;

use super::{Account, Scheduled};

/// A flow and the lengths of its packets.
#[derive(Clone, Default)]
pub(super) struct Flow {
    pub account: Account,
    pub packets: VecDeque<u32>,
}

impl Scheduled for Flow {
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

/// Length of a flow's first packet.
pub(super) fn head(flow: &mut Flow) -> Option<u32> {
    flow.packets.front().copied()
}
