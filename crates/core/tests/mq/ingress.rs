//! Parallel queues behind the bottleneck: drops are charged, as in one queue, and shares stay.

use simnel_core::qdisc::cake::{DiffservMode, Member, Params};
use simnel_core::qdisc::{build, Config, Device, DropReason, Managed, PacketOwner};
use simnel_core::sched::parallel::Timing;
use simnel_core::{Packet, Qdisc, Rate, Time};

use crate::run::{run, FULL};
use crate::traffic::{self, RATE, WINDOWS};
use crate::{most_excess, packet, LATENESS, TOLERANCE};

fn params(bits: u64) -> Params {
    Params {
        bandwidth: Rate::from_bits(bits),
        diffserv: DiffservMode::Besteffort,
        ingress: true,
        ..Params::default()
    }
}

fn members(params: &Params, count: usize) -> Vec<Box<dyn Managed + Send>> {
    let members =
        Member::all(params, &Device::default(), count, &Timing::KERNEL).expect("parallel queues");
    members.into_iter().map(|member| Box::new(member) as Box<dyn Managed + Send>).collect()
}

#[test]
fn hosts_and_flows_share_where_drops_are_charged() {
    for (name, flows) in traffic::all(4) {
        let device = Device { seed: 0x9e37_79b9_7f4a_7c15, ..Device::default() };
        let all =
            Member::all(&params(8 * RATE), &device, 4, &Timing::KERNEL).expect("parallel queues");
        let mut queues: Vec<Box<dyn Qdisc>> =
            all.into_iter().map(|member| Box::new(member) as Box<dyn Qdisc>).collect();
        let report = run(&mut queues, &flows, RATE, WINDOWS, LATENESS);
        let (hosts, within) = traffic::worst(&flows, &report);
        let case = format!("{name}: {hosts:.3} of hosts, {within:.3} of flows");
        assert!(hosts <= TOLERANCE && within <= TOLERANCE, "{case}");
        let most = most_excess(4, RATE, &Timing::KERNEL);
        assert!(report.excess <= most, "{name}: {} B", report.excess);
        assert!(report.least_rate >= 0.95, "{name}: {}", report.least_rate);
    }
}

/// Bytes that were dropped.
#[derive(Default)]
struct Lost(u64);

impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0 += u64::from(packet.len);
    }
}

/// Microseconds for which a flood lasts.
const END: u64 = 500_000;

/// Lets eight flows that heed nothing send `load` times what 1 Gbit/s takes. Gives what is
/// delivered and what is dropped once all has settled, as parts of 1 Gbit/s.
fn flood(queues: &mut [Box<dyn Managed + Send>], load: f64) -> (f64, f64) {
    const SETTLED: u64 = 300_000;
    let (mut offered, mut flow, mut delivered, mut lost) = (0.0, 0, 0, Lost::default());
    let mut before = 0;
    for micros in 0..END {
        let now = Time(micros * 1_000);
        offered += load * 125.0;
        while offered >= f64::from(FULL) {
            offered -= f64::from(FULL);
            flow = (flow + 1) % 8;
            let queue = flow as usize % queues.len();
            queues[queue].enqueue(&packet(flow, flow as u32), now, &mut lost);
        }
        if micros == SETTLED {
            (delivered, before) = (0, lost.0);
        }
        for queue in queues.iter_mut().filter(|queue| queue.backlog().packets > 0) {
            delivered += queue.dequeue(now, &mut lost).map_or(0, |packet| u64::from(packet.len));
        }
    }
    let line = 125.0 * (END - SETTLED) as f64;
    (delivered as f64 / line, (lost.0 - before) as f64 / line)
}

/// Drops never stop the line: two thirds of the rate are delivered at least.
#[test]
fn drops_are_charged_as_in_one_queue() {
    let params = Params { memlimit: 2 << 20, ..params(1_000_000_000) };
    for (load, expected) in [(0.9, 0.9), (1.2, 2.0 / 3.0), (4.0, 2.0 / 3.0)] {
        let mut one = [build(&Config::Cake(params), &Device::default()).expect("cake")];
        let (alone, _) = flood(&mut one, load);
        for count in [2, 4] {
            let (delivered, dropped) = flood(&mut members(&params, count), load);
            let case = format!("{load} over {count}: {delivered:.3}, one queue {alone:.3}");
            assert!((delivered - alone).abs() <= 0.02, "{case}");
            assert!((delivered - expected).abs() <= 0.02, "{case}");
            assert!((delivered + dropped - load).abs() <= 0.02, "{case}: {dropped:.3} dropped");
        }
    }
}

/// The drops of a flood are owed for no longer than they are counted.
#[test]
fn drops_are_forgiven_where_they_are_charged_no_longer() {
    let params = Params { memlimit: 2 << 20, ..params(1_000_000_000) };
    let (mut queues, mut lost) = (members(&params, 4), Lost::default());
    flood(&mut queues, 4.0);
    for queue in &mut queues {
        let egress = Config::Cake(Params { ingress: false, ..params });
        queue.configure(&egress, Time(END * 1_000), &mut lost).expect("settings");
    }
    let mut delivered = 0.0;
    for micros in END..END + 20_000 {
        for queue in &mut queues {
            let packet = queue.dequeue(Time(micros * 1_000), &mut lost);
            delivered += packet.map_or(0.0, |packet| f64::from(packet.len));
        }
    }
    let part = delivered / (125.0 * 20_000.0);
    assert!((part - 1.0).abs() <= 0.04, "{part:.3} of the rate");
}

/// Each flow may have two packets standing there, for as long as the flows of all queues take to
/// send as many. So nearly none is dropped. (Where queues counted their own flows alone, one of
/// three was.)
#[test]
fn flows_of_all_queues_count_for_what_may_stand() {
    // A packet in 12.1 ms.
    let mut queues = members(&params(1_000_000), 4);
    let (mut lost, mut delivered) = (Lost::default(), 0);
    for micros in (0..20_000_000).step_by(50) {
        let now = Time(micros * 1_000);
        for (number, queue) in queues.iter_mut().enumerate() {
            while queue.backlog().packets < 2 {
                queue.enqueue(&packet(number as u64, number as u32), now, &mut lost);
            }
            delivered += queue.dequeue(now, &mut lost).map_or(0, |packet| u64::from(packet.len));
        }
    }
    assert!(delivered > 2_400_000, "{delivered}");
    assert!(lost.0 * 100 <= delivered, "{} of {delivered}", lost.0);
}
