//! The disciplines under test: add a line to `DISCIPLINES` for each new one.

use std::collections::VecDeque;

use simnel_core::qdisc::{fifo, Backlog, ConfigError, DropReason, PacketOwner};
use simnel_core::tc::stats::{Detail, Snapshot, Totals};
use simnel_core::tc::Config;
use simnel_core::{Packet, Qdisc, Time};

/// The list of disciplines under test, each as the constructor of its initial state.
const DISCIPLINES: &[fn() -> Box<dyn Qdisc>] = &[|| Box::new(Reference::default())];

/// One of the disciplines, in its initial state: `selector` counts round the list.
pub fn build(selector: u8) -> Box<dyn Qdisc> {
    DISCIPLINES[usize::from(selector) % DISCIPLINES.len()]()
}

/// The simplest thing that keeps the contract: a FIFO that drops the newcomer. It tests the test.
#[derive(Debug)]
pub struct Reference {
    queue: VecDeque<Packet>,
    limit: u32,
    totals: Totals,
}

impl Default for Reference {
    fn default() -> Reference {
        Reference { queue: VecDeque::new(), limit: 100, totals: Totals::default() }
    }
}

impl Reference {
    fn give_up(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.totals.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }
}

impl Qdisc for Reference {
    fn enqueue(&mut self, mut packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.totals.enqueued_packets += 1;
        packet.enqueued = now;
        if self.queue.len() < self.limit as usize {
            self.queue.push_back(packet);
        } else {
            self.totals.overlimits += 1;
            self.give_up(packet, DropReason::Overlimit, owner);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOwner) -> Option<Packet> {
        let packet = self.queue.pop_front()?;
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    fn next_event(&self) -> Option<Time> {
        self.queue.front().map(|packet| packet.enqueued)
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|packet| u64::from(packet.len)).sum();
        Backlog { packets: self.queue.len() as u32, bytes }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { totals: self.totals, backlog: self.backlog(), detail: Detail::None }
    }

    fn config(&self) -> Config {
        Config::Fifo(fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(self.limit) })
    }

    fn configure(
        &mut self,
        config: &Config,
        _: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        let Config::Fifo(fifo::Params { kind: fifo::Kind::Pfifo, limit }) = config else {
            return Err(ConfigError::OtherDiscipline);
        };
        self.limit = limit.unwrap_or(100);
        while self.queue.len() > self.limit as usize {
            if let Some(packet) = self.queue.pop_front() {
                self.give_up(packet, DropReason::Overlimit, owner);
            }
        }
        Ok(())
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        while let Some(packet) = self.queue.pop_front() {
            self.give_up(packet, DropReason::Reset, owner);
        }
    }
}
