//! The contract check itself: it accepts what is sound and finds what is not.

use simnel_core::qdisc::{Backlog, ConfigError, DropReason, PacketOwner};
use simnel_core::random::Random;
use simnel_core::tc::stats::Snapshot;
use simnel_core::tc::Config;
use simnel_core::{Packet, Qdisc, Time};
use simnel_fuzz::contract::exercise;
use simnel_fuzz::disciplines::{build, Reference};

/// What is wrong with a [`Flawed`] discipline.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    LosesOne,
    DropsTwice,
    ChangesLength,
    SleepsForever,
    NeverWakes,
}

struct Flawed(Reference, Flaw);

impl Qdisc for Flawed {
    fn enqueue(&mut self, packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        if self.1 == Flaw::DropsTwice && packet.tos == 1 {
            owner.dropped(packet, DropReason::Congested);
        }
        self.0.enqueue(packet, now, owner);
    }
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<Packet> {
        if self.1 == Flaw::NeverWakes {
            return None;
        }
        let mut packet = self.0.dequeue(now, owner)?;
        if self.1 == Flaw::LosesOne && packet.tos == 1 {
            return None;
        }
        packet.len += u32::from(self.1 == Flaw::ChangesLength);
        Some(packet)
    }
    fn next_event(&self) -> Option<Time> {
        self.0.next_event().filter(|_| self.1 != Flaw::SleepsForever)
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
        self.0.configure(config, now, owner)
    }
    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

/// Random inputs, the same at each run.
fn try_many(build: fn(u8) -> Box<dyn Qdisc>) {
    let mut random = Random::new(11);
    for _ in 0..2_000 {
        let length = random.below(400) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| random.u32() as u8).collect();
        exercise(build, &bytes);
    }
}

fn flawed<const FLAW: u8>(_: u8) -> Box<dyn Qdisc> {
    let flaw = match FLAW {
        0 => Flaw::LosesOne,
        1 => Flaw::DropsTwice,
        2 => Flaw::ChangesLength,
        3 => Flaw::SleepsForever,
        _ => Flaw::NeverWakes,
    };
    Box::new(Flawed(Reference::default(), flaw))
}

#[test]
fn listed_disciplines_keep_the_contract() {
    try_many(build);
}

#[test]
fn every_flaw_is_found() {
    let flaws: [fn(u8) -> Box<dyn Qdisc>; 5] =
        [flawed::<0>, flawed::<1>, flawed::<2>, flawed::<3>, flawed::<4>];
    for (number, build) in flaws.into_iter().enumerate() {
        let outcome = std::panic::catch_unwind(|| try_many(build));
        assert!(outcome.is_err(), "flaw {number} went unseen");
    }
}
