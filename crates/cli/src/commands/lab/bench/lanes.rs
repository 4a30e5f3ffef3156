//! `simnel bench lanes`: what threads that share a rate would carry on as many cores.
//!
//! The queues are cake's own on lanes (`sched::parallel`), asked in virtual time by threads that
//! are assumed. Each has a core for itself, is busy for a fixed time with every packet, and wakes
//! late after each sleep. The cache line with the shared clock is at one core at a time. Whoever
//! finds that another has written it waits for it, and for those who wait already. A lane writes it
//! once in each lot of the line's time ([`LOT`]).
//!
//! Hosts come one after the other, and then always have packets. Each host's go to one lane, drawn
//! by chance: so lanes are not equally loaded, as with a hash of addresses.

use std::io::Write;
use std::process::ExitCode;

use simnel_core::qdisc::cake::{DiffservMode, Member, Params};
use simnel_core::qdisc::{Device, DropReason, PacketOwner};
use simnel_core::random::Random;
use simnel_core::rate::Rate;
use simnel_core::sched::parallel::{Timing, LOT};
use simnel_core::tc::units;
use simnel_core::{Packet, Qdisc, Span, Time};

use super::super::{misuse, output_failed};

/// Bytes of every packet, link header included.
const LEN: u32 = 1514;
/// Packets that each host keeps queued.
const STANDING: u32 = 8;
/// Time until all hosts are there, until counting begins, and until the end.
const THERE: Time = Time(100_000_000);
const SETTLED: Time = Time(200_000_000);
const END: Time = Time(700_000_000);

/// Project what several lanes carry, from what one packet costs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel bench lanes\n  \
    simnel bench lanes --rate 2500mbit --cost 6000 --lanes 1,2,4\n\n\
Nothing is timed: the lanes' own code runs in virtual time, and threads and cores are assumed.\n\
`GW_MEASURE=lanes cargo test --release -p simnel-gateway --test netns` measures one and two.")]
pub struct Args {
    /// The shared rate.
    #[arg(long, value_name = "RATE", default_value = "10gbit")]
    rate: String,
    /// Processor time of a packet, in nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = 4_000)]
    cost: u32,
    /// Time for a cache line from one core to another, in nanoseconds.
    #[arg(long, value_name = "NS", default_value_t = 100)]
    transfer: u32,
    /// Lateness of a thread that wakes, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 50)]
    wake: u32,
    /// Hosts that always send.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    hosts: u32,
    /// Numbers of lanes.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 8, 16],
        value_parser = clap::value_parser!(u8).range(1..=64))]
    lanes: Vec<u8>,
    /// Seed of the hosts' places.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Prints a row for each number of lanes.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let rate = units::rate(&args.rate).ok().filter(|rate| rate.0 > 0);
    let rate = rate.ok_or_else(|| misuse(format!("`{}` is no rate: say 10gbit", args.rate)))?;
    writeln!(out, "lanes   Mbit/s  of the rate  hosts' shares off by  busiest lane  idlest lane")
        .map_err(output_failed)?;
    for &lanes in &args.lanes {
        let outcome = Cores::new(args, rate, lanes.into()).run();
        let bits = outcome.bytes.iter().sum::<u64>() as f64 * 8.0 / END.since(SETTLED).0 as f64;
        let mean = outcome.bytes.iter().sum::<u64>() as f64 / outcome.bytes.len() as f64;
        let off = outcome.bytes.iter().map(|&bytes| (bytes as f64 - mean).abs() / mean);
        let busy = |part: &Span| 100.0 * part.0 as f64 / END.since(SETTLED).0 as f64;
        let parts = || outcome.busy.iter().map(busy);
        writeln!(
            out,
            "{lanes:>5} {:>8.0} {:>10.1} % {:>19.1} % {:>11.0} % {:>10.0} %",
            bits * 1e3,
            100.0 * bits * 1e9 / rate.bits() as f64,
            100.0 * off.fold(0.0, f64::max),
            parts().fold(0.0, f64::max),
            parts().fold(100.0, f64::min)
        )
        .map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lanes on cores of their own, in virtual time.
struct Cores {
    lanes: Vec<Lane>,
    /// The lane of each host.
    places: Vec<usize>,
    rate: Rate,
    cost: Span,
    transfer: Span,
    wake: Span,
    /// Writes of the shared clock so far.
    writes: u64,
    /// Its cache line is on its way until then.
    moves_until: Time,
    outcome: Outcome,
}

struct Lane {
    member: Member,
    /// Busy or asleep until then.
    until: Time,
    /// Time on the line that it has not paid, as `sched::parallel` counts it.
    unpaid: Span,
    /// The writes of the shared clock that it knows of.
    seen: u64,
}

#[derive(Default)]
struct Outcome {
    /// Bytes of each host.
    bytes: Vec<u64>,
    /// Time that each lane was at work, or waited for the cache line.
    busy: Vec<Span>,
}

/// Hosts whose packets were dropped.
#[derive(Default)]
struct Dropped(Vec<u64>);

impl PacketOwner for Dropped {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0.push(packet.handle);
    }
}

fn packet(host: u64) -> Packet {
    let mut packet = Packet::new(host, LEN);
    packet.flow = Random::derive(7, host).u64();
    packet.src_host = Random::derive(8, host).u32();
    packet.dst_host = Random::derive(9, host).u32();
    packet
}

impl Cores {
    fn new(args: &Args, rate: Rate, count: usize) -> Cores {
        let params =
            Params { bandwidth: rate, diffserv: DiffservMode::Besteffort, ..Params::default() };
        let members = Member::all(&params, &Device::default(), count, &Timing::THREADS);
        let lane = |member| Lane { member, until: END, unpaid: Span::ZERO, seen: 0 };
        let mut random = Random::new(args.seed);
        let places = (0..args.hosts).map(|_| random.below(count as u32) as usize).collect();
        let hosts = args.hosts as usize;
        Cores {
            lanes: members.expect("settings that lanes take").into_iter().map(lane).collect(),
            places,
            rate,
            cost: Span(args.cost.max(1).into()),
            transfer: Span(args.transfer.into()),
            wake: Span::from_micros(args.wake.into()),
            writes: 0,
            moves_until: Time::ZERO,
            outcome: Outcome { bytes: vec![0; hosts], busy: vec![Span::ZERO; count] },
        }
    }

    fn run(mut self) -> Outcome {
        let hosts = self.places.len() as u64;
        let mut coming = (0..hosts).map(|host| (host, Time(1 + THERE.0 * host / hosts))).peekable();
        loop {
            let next = self.lanes.iter().enumerate().map(|(number, lane)| (lane.until, number));
            let (begin, number) = next.min().unwrap_or((END, 0));
            if let Some((host, now)) = coming.next_if(|(_, time)| *time <= begin) {
                self.come(host, now);
            } else if begin < END {
                self.step(number, begin);
            } else {
                return self.outcome;
            }
        }
    }

    /// A host begins to send.
    fn come(&mut self, host: u64, now: Time) {
        let lane = &mut self.lanes[self.places[host as usize]];
        if lane.member.backlog().packets == 0 {
            lane.until = now;
        }
        for _ in 0..STANDING {
            lane.member.enqueue(&packet(host), now, &mut Dropped::default());
        }
    }

    /// One packet of a lane, or a sleep.
    fn step(&mut self, number: usize, begin: Time) {
        let Cores { lanes, rate, outcome, .. } = self;
        let lane = &mut lanes[number];
        let mut now = begin;
        if lane.seen != self.writes {
            self.moves_until = self.moves_until.max(now) + self.transfer;
            (now, lane.seen) = (self.moves_until, self.writes);
        }
        let mut dropped = Dropped::default();
        let sent = lane.member.dequeue(now, &mut dropped).copied();
        for host in dropped.0.into_iter().chain(sent.map(|packet| packet.handle)) {
            lane.member.enqueue(&packet(host), now, &mut Dropped::default());
        }
        let Some(sent) = sent else {
            let due = lane.member.next_event().unwrap_or(END);
            lane.until = due.max(now) + self.wake.max(Span(1));
            return;
        };
        lane.unpaid += Span(u64::from(LEN) * 1_000_000_000 / rate.0);
        if lane.unpaid >= LOT {
            self.writes += 1;
            (lane.unpaid, lane.seen) = (Span::ZERO, self.writes);
        }
        lane.until = now + self.cost;
        if begin >= SETTLED {
            outcome.bytes[sent.handle as usize] += u64::from(LEN);
            outcome.busy[number] += lane.until.since(begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(rate: &str, lanes: usize) -> f64 {
        let args = Args {
            rate: rate.into(),
            cost: 4_000,
            transfer: 100,
            wake: 50,
            hosts: 64,
            lanes: Vec::new(),
            seed: 1,
        };
        let outcome = Cores::new(&args, units::rate(rate).unwrap(), lanes).run();
        outcome.bytes.iter().sum::<u64>() as f64 * 8.0 / END.since(SETTLED).0 as f64
    }

    #[test]
    fn one_lane_carries_what_its_core_does_and_several_no_more_than_the_rate() {
        let core = f64::from(LEN) * 8.0 / 4_000.0;
        let alone = carried("10gbit", 1);
        assert!((0.98 * core..=1.001 * core).contains(&alone), "{alone} of {core} Gbit/s");
        let shared = carried("2gbit", 4);
        assert!((1.98..=2.02).contains(&shared), "{shared} of 2 Gbit/s");
    }
}
