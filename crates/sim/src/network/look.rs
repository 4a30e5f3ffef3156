//! Waiting packets by place and flow: looks at the network that change nothing.
//!
//! No discipline says which packets it has. But what is under way, in no pipe and on no wire, waits
//! in one: so that nothing needs to be counted while nobody looks.

use std::collections::BTreeMap;

use simnel_core::qdisc::{Config, Managed};

use super::Network;
use crate::pool::Account;

/// Packets of one flow that wait in a discipline, and what became of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Packets in queues that go first, since they do not stand.
    pub sparse: u32,
    /// All others.
    pub bulk: u32,
    /// Bytes of both (Ethernet frames).
    pub bytes: u64,
    /// Packets dropped by the discipline since the run began, filtered acknowledgements included.
    pub dropped: u64,
    /// Packets marked by it.
    pub marked: u64,
}

impl Network {
    /// Packets that wait in both disciplines, flow by flow.
    pub fn waiting(&self) -> Vec<[Waiting; 2]> {
        let account = |account: &Account| {
            let fates = account.fates();
            let dropped = fates.dropped.iter().sum();
            Waiting { dropped, marked: fates.marked, ..Waiting::default() }
        };
        let mut flows: Vec<[Waiting; 2]> =
            self.ways.pool.accounts.iter().map(|[up, down]| [account(up), account(down)]).collect();
        let disciplines = [0, 1].map(|line| with_queues(self.ways.lines[line].qdisc.as_ref()));
        // Packets of a connection's end stand in one queue.
        let mut queues = BTreeMap::new();
        for handle in self.waiting_handles() {
            let tag = self.ways.pool.tag(handle);
            let line = usize::from(tag.direction & 1);
            let is_sparse = *queues.entry((tag.socket, tag.generation)).or_insert_with(|| {
                let queue = disciplines[line].queue_of(&tag.packet(handle));
                let class = queue.and_then(|queue| disciplines[line].class(queue));
                class.is_some_and(|class| class.is_sparse)
            });
            let flow = &mut flows[tag.flow as usize][line];
            flow.bytes += u64::from(tag.len);
            match is_sparse {
                true => flow.sparse += 1,
                false => flow.bulk += 1,
            }
        }
        flows
    }

    /// True if flows have queues of their own in the discipline of `line`, sparse ones or bulk.
    pub fn has_queues(&self, line: usize) -> bool {
        let qdisc = with_queues(self.ways.lines[line].qdisc.as_ref());
        // sfq has no sparse flows.
        !matches!(qdisc.config(), Config::Sfq(_)) && qdisc.class(0).is_some()
    }

    fn waiting_handles(&self) -> impl Iterator<Item = u32> {
        let mut waits = self.ways.pool.used();
        let piped = self.ways.pipes.iter().flat_map(|pipe| pipe.handles());
        let sending = self.ways.lines.iter().filter_map(|line| line.on_the_wire());
        for handle in piped.chain(sending) {
            waits[handle as usize] = false;
        }
        (0..).zip(waits).filter_map(|(handle, waits)| waits.then_some(handle))
    }

    /// Congestion windows, flow by flow: the sum over a flow's open connections.
    pub fn windows(&self) -> Vec<Option<u32>> {
        let mut windows = vec![None; self.flows.len()];
        for (index, shared) in self.shared.iter().enumerate().filter(|(_, shared)| shared.open) {
            let flow = shared.flow as usize;
            let sender = shared.sender(index, self.flows[flow].direction);
            if let Some(endpoint) = &self.seats[sender].endpoint {
                *windows[flow].get_or_insert(0) += endpoint.stats().cwnd;
            }
        }
        windows
    }
}

/// The discipline that has queues: below one that only shapes, the only one there.
fn with_queues(mut qdisc: &dyn Managed) -> &dyn Managed {
    while let (Some((_, below)), None) = (qdisc.below(0), qdisc.below(1)) {
        qdisc = below;
    }
    qdisc
}
