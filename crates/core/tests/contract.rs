//! Every discipline of the table under random operations, and the check itself under disciplines
//! that break what they should keep. See `support::contract`.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, TestRunner};
use simnel_core::memory::Memory;
use simnel_core::qdisc::{
    self, Backlog, Config, ConfigError, Detail, Device, DropReason, Managed, PacketOwner, Snapshot,
};
use simnel_core::random::Random;
use simnel_core::{Packet, Qdisc, Span, Time};
use support::contract::{exercise, exercise_floods};
use support::table::{make, make_on, DISCIPLINES};

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

/// Runs with floods for each line of the table.
const FLOODS: u64 = 4;

#[test]
fn every_discipline_keeps_the_contract_under_floods() {
    for (number, (words, _)) in DISCIPLINES.iter().enumerate() {
        for run in 0..FLOODS {
            let mut random = Random::new(FLOODS * number as u64 + run + 1);
            // A flood first, and others among 60 operations more.
            let mut bytes = vec![16, 13 + (run % 3) as u8];
            bytes.extend((0..400).map(|_| random.u32() as u8));
            exercise_floods(make(words), &bytes);
        }
    }
}

#[test]
fn every_discipline_keeps_the_contract_where_memory_is_taken_as_needed() {
    let device = Device { memory: Memory::AsNeeded, ..Device::default() };
    for (number, (words, _)) in DISCIPLINES.iter().enumerate() {
        for run in 0..FLOODS {
            let mut random = Random::new(FLOODS * number as u64 + run + 77);
            let bytes: Vec<u8> = (0..600).map(|_| random.u32() as u8).collect();
            exercise(make_on(words, &device), &bytes);
            exercise_floods(make_on(words, &device), &bytes);
        }
    }
}

/// The fault of a [`Flawed`] discipline.
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
    WorksTooMuch,
    HoldsTooMany,
    KeepsMemory,
    FiltersForNothing,
}

const FLAWS: [Flaw; 12] = [
    Flaw::LosesOne,
    Flaw::DropsTwice,
    Flaw::ChangesLength,
    Flaw::SleepsForever,
    Flaw::NeverWakes,
    Flaw::SendsTooEarly,
    Flaw::SwapsNeighbours,
    Flaw::ForgetsSettings,
    Flaw::WorksTooMuch,
    Flaw::HoldsTooMany,
    Flaw::KeepsMemory,
    Flaw::FiltersForNothing,
];

impl Flaw {
    /// A sound discipline in which it can show.
    fn words(self) -> &'static str {
        match self {
            Flaw::WorksTooMuch => "drr quantum 1 buffer 100",
            Flaw::KeepsMemory => "fq_codel",
            _ => "pfifo limit 100",
        }
    }
}

/// A sound discipline behind a fault, and the packet that it gave out last.
struct Flawed(Box<dyn Managed>, Flaw, Packet);

impl Qdisc for Flawed {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        if self.1 == Flaw::DropsTwice && packet.tos == 1 {
            owner.dropped(*packet, DropReason::Congested);
        }
        if self.1 == Flaw::FiltersForNothing && packet.len == 54 {
            return owner.dropped(*packet, DropReason::AckFilter);
        }
        self.0.enqueue(packet, now, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.1 == Flaw::NeverWakes {
            return None;
        }
        let mut packet = *self.0.dequeue(now, owner)?;
        if self.1 == Flaw::WorksTooMuch {
            // A hundred turns for one packet.
            for _ in 0..100 {
                self.0.enqueue(&packet, now, owner);
                packet = *self.0.dequeue(now, owner)?;
            }
        }
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

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

impl Managed for Flawed {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = self.0.snapshot();
        if let (Flaw::KeepsMemory, Detail::FqCodel(stats)) = (self.1, &mut snapshot.detail) {
            stats.memory_used.0 = stats.memory_used.0.max(1);
        }
        snapshot
    }

    fn config(&self) -> Config {
        match self.1 {
            Flaw::HoldsTooMany => qdisc::parse("pfifo limit 9").unwrap(),
            _ => self.0.config(),
        }
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.0.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        if self.1 != Flaw::ForgetsSettings {
            self.0.adopt(spare, now, owner);
        }
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
                exercise(Box::new(Flawed(make(flaw.words()), flaw, Packet::new(0, 0))), &bytes);
            }
        });
        assert!(outcome.is_err(), "{flaw:?} went unseen");
    }
}
