//! Every discipline of the table under random operations, and the check itself under disciplines
//! that break what they should keep. See `support::contract`.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, TestRunner};
use simnel_core::qdisc::{Backlog, ConfigError, DropReason, PacketOwner};
use simnel_core::random::Random;
use simnel_core::tc::stats::Snapshot;
use simnel_core::tc::Config;
use simnel_core::{Packet, Qdisc, Span, Time};
use support::contract::exercise;
use support::table::{make, DISCIPLINES};

/// Runs for each line of the table.
const CASES: u32 = 300;

#[test]
fn every_discipline_keeps_the_contract() {
    for (words, _) in DISCIPLINES.iter() {
        let config =
            RunnerConfig { cases: CASES, failure_persistence: None, ..RunnerConfig::default() };
        let outcome = TestRunner::new(config).run(&vec(any::<u8>(), 0..600), |bytes| {
            exercise(make(words), &bytes);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("`{words}`: {error}");
        }
    }
}

/// What is wrong with a [`Flawed`] discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    LosesOne,
    DropsTwice,
    ChangesLength,
    SleepsForever,
    NeverWakes,
    SendsTooEarly,
    SwapsNeighbours,
    ForgetsSettings,
}

const FLAWS: [Flaw; 8] = [
    Flaw::LosesOne,
    Flaw::DropsTwice,
    Flaw::ChangesLength,
    Flaw::SleepsForever,
    Flaw::NeverWakes,
    Flaw::SendsTooEarly,
    Flaw::SwapsNeighbours,
    Flaw::ForgetsSettings,
];

/// A sound discipline behind a fault, and the packet that it gave out last.
struct Flawed(Box<dyn Qdisc>, Flaw, Packet);

impl Qdisc for Flawed {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        if self.1 == Flaw::DropsTwice && packet.tos == 1 {
            owner.dropped(*packet, DropReason::Congested);
        }
        self.0.enqueue(packet, now, owner);
    }
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.1 == Flaw::NeverWakes {
            return None;
        }
        let mut packet = *self.0.dequeue(now, owner)?;
        if self.1 == Flaw::LosesOne && packet.tos == 1 {
            return None;
        }
        if self.1 == Flaw::SwapsNeighbours {
            if let Some(&mut next) = self.0.dequeue(now, owner) {
                self.0.enqueue(&packet, now, owner);
                packet = next;
            }
        }
        packet.len += u32::from(self.1 == Flaw::ChangesLength);
        self.2 = packet;
        Some(&mut self.2)
    }
    fn next_event(&self) -> Option<Time> {
        let next = self.0.next_event().filter(|_| self.1 != Flaw::SleepsForever)?;
        Some(if self.1 == Flaw::SendsTooEarly { next + Span(1_000_000) } else { next })
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
    fn config(&self) -> Config {
        self.0.config()
    }
    fn configure(
        &mut self,
        config: &Config,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        match self.1 {
            Flaw::ForgetsSettings => Ok(()),
            _ => self.0.configure(config, now, owner),
        }
    }
    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

#[test]
fn every_flaw_is_found() {
    for flaw in FLAWS {
        let outcome = std::panic::catch_unwind(|| {
            let mut random = Random::new(11);
            for _ in 0..500 {
                let length = random.below(400) as usize;
                let bytes: Vec<u8> = (0..length).map(|_| random.u32() as u8).collect();
                exercise(
                    Box::new(Flawed(make("pfifo limit 100"), flaw, Packet::new(0, 0))),
                    &bytes,
                );
            }
        });
        assert!(outcome.is_err(), "{flaw:?} went unseen");
    }
}
