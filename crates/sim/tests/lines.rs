//! Lines, and what leads to them, with disciplines that are not the easiest.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::qdisc::{
    self, Backlog, Config, ConfigError, Device, DropReason, Managed, PacketOwner, Qdisc, Snapshot,
};
use simnel_core::wire::{Classifier, LinkLayer};
use simnel_core::{Packet, Rate, Span, Time};
use simnel_sim::schedule::Trace;
use simnel_sim::setup::{Reordering, Shaper};
use simnel_sim::{Direction, Kind, Outcome, Run, Setup, Traffic};
use support::{bulk, cbr, outcome, ping, run, setup, traffic, whole, Frames};

/// A FIFO that gives a packet at every second call, as one that has worked enough for one call.
struct Hesitant {
    fifo: Box<dyn Managed + Send>,
    hesitates: bool,
    /// Those that it gave.
    given: Given,
}

type Given = Arc<Mutex<Vec<Packet>>>;

impl Qdisc for Hesitant {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.fifo.enqueue(packet, now, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.hesitates = !self.hesitates;
        if self.hesitates {
            return None;
        }
        let packet = self.fifo.dequeue(now, owner);
        self.given.lock().unwrap().extend(packet.as_deref().copied());
        packet
    }

    fn next_event(&self) -> Option<Time> {
        self.fifo.next_event()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.fifo.reset(owner);
    }
}

impl Managed for Hesitant {
    fn snapshot(&self) -> Snapshot {
        self.fifo.snapshot()
    }

    fn config(&self) -> Config {
        self.fifo.config()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.fifo.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        self.fifo.adopt(spare, now, owner);
    }
}

/// A run in which a FIFO hesitates before the upward line, and what it gives.
fn hesitating(setup: &Setup) -> (Run, Given) {
    let mut run = Run::new(setup, 1).expect("a good set-up");
    let fifo = qdisc::build(&setup.lines[0].qdisc, &Device::default()).expect("a FIFO");
    let given = Given::default();
    run.host(Direction::Up, Box::new(Hesitant { fifo, hesitates: false, given: given.clone() }));
    (run, given)
}

fn first_outcome(run: Run) -> Outcome {
    run.finish().flows.swap_remove(0).outcome
}

/// A discipline that gave nothing, and may now, is asked again when time has passed, a nanosecond.
#[test]
fn who_hesitates_is_asked_again() {
    let (run, _) = hesitating(&whole("pfifo", 1_000_000, vec![ping()]));
    let Outcome::Ping { added_there, .. } = first_outcome(run) else { panic!() };
    let expected = Some(Span(848_001));
    assert_eq!((added_there.least(), added_there.greatest()), (expected, expected));
}

/// A segment of Linux's takes its payload and what its socket adds; who has it from a device, a
/// buffer. Bare acknowledgements and datagrams take as much either way.
#[test]
fn segments_keep_their_sockets_memory_on_one_machine() {
    let of = |shared: bool| -> BTreeSet<(u32, u32)> {
        let mut upload = bulk(Some(14_480));
        upload.tcp.segment_overhead = 768;
        let (mut run, given) = hesitating(&whole("pfifo", 1_000_000, vec![upload, ping()]));
        if shared {
            run.share_memory();
        }
        run.finish();
        let given = given.lock().unwrap();
        given.iter().map(|packet| (packet.len, packet.truesize)).collect()
    };
    let [syn, ack, probe] = [(74, 768), (66, 768), (106, 768)];
    assert_eq!(of(true), BTreeSet::from([syn, ack, probe, (1_514, 768 + 1_448)]));
    assert_eq!(of(false), BTreeSet::from([syn, ack, probe, (1_514, 2_304)]));
}

/// The rest of an opportunity is not lost because a discipline needs another call: three packets of
/// 500 bytes go with each.
#[test]
fn an_opportunity_is_used_up_by_who_hesitates() {
    // Thirty packets in three milliseconds, ten opportunities in a hundred.
    let mut flood = cbr(458, 100);
    flood.stop = Some(Span::from_millis(3));
    let mut setup = whole("pfifo limit 100", 1_000_000, vec![flood]);
    setup.lines[0].shaper = Shaper::Trace(Trace::parse("10\n").expect("a trace"));
    let (run, _) = hesitating(&setup);
    let Outcome::Datagrams { received, added_delay, .. } = first_outcome(run) else { panic!() };
    assert_eq!(received, 30);
    // The last three came after 2.7 ms.
    let greatest = added_delay.greatest().expect("packets");
    assert!(greatest >= Span::from_micros(97_300), "{greatest:?}");
    assert!(greatest < Span::from_micros(97_301), "{greatest:?}");
}

/// A discipline is told of a packet what a classifier finds in its frame, under another key.
#[test]
fn descriptors_are_those_of_the_frames() {
    let of = |kind| Traffic { dscp: 46, ..traffic(kind, Direction::Up) };
    let echo = Kind::Ping { size: 64, interval: Span::from_millis(30), icmp: true };
    let streams = vec![ping(), of(echo), bulk(Some(100_000)), of(bulk(Some(50_000)).kind)];
    let (mut run, given) = hesitating(&whole("pfifo", 1_000_000, streams));
    let frames = Frames::default();
    run.capture(Box::new(frames.clone()));
    drop(run.finish());
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128));
    let (mut flows, given) = (BTreeMap::new(), given.lock().unwrap());
    let mut frames = frames.take();
    frames.retain(|(direction, ..)| *direction == Direction::Up);
    assert!(frames.len() == given.len() && frames.len() > 500);
    for (packet, (.., frame)) in given.iter().zip(&frames) {
        let len = frame.len() as u32;
        let found = classifier.classify(LinkLayer::Ethernet, frame, len, packet.handle);
        assert_eq!((packet.len, packet.tos, packet.flags), (len, found.tos, found.flags));
        let hosts = (packet.src_host, packet.dst_host, found.src_host, found.dst_host);
        assert_eq!(*flows.entry(packet.flow).or_insert((found.flow, hosts)), (found.flow, hosts));
    }
    let (theirs, hosts): (BTreeSet<_>, BTreeSet<_>) = flows.values().copied().unzip();
    assert_eq!((flows.len(), theirs.len(), hosts.len()), (4, 4, 1));
}

#[test]
fn a_traces_capacity_is_its_opportunities() {
    let mut setup = setup("pfifo", 1_000_000, vec![ping()]);
    setup.lines[0].shaper = Shaper::Trace(Trace::parse("5\n10\n").expect("a trace"));
    // 200 opportunities a second for nine seconds.
    assert_eq!(run(&setup, 1).lines[0].capacity_bytes, 9 * 200 * 1_500);
}

/// The line is woken by a change of settings while it sends for a host at no distance.
#[test]
fn a_change_of_settings_hastens_nothing() {
    // 1250 bytes at 1 Mbit/s: 10 ms, from 25 to 35 ms.
    let mut datagrams = cbr(1_208, 1_000_000);
    datagrams.direction = Direction::Down;
    let setup = whole("pfifo", 1_000_000, vec![datagrams]);
    let mut run = Run::new(&setup, 1).expect("a good set-up");
    run.advance(Time::ZERO + Span::from_millis(30));
    run.configure(Direction::Down, &setup.lines[1].qdisc).expect("the same settings");
    let Outcome::Datagrams { added_delay, .. } = first_outcome(run) else { panic!() };
    assert_eq!(added_delay.least(), Some(Span::from_millis(10)));
}

/// A line that was idle starts anew. 106 bytes at 700 Mbit/s take 1211 ns and a fraction, which the
/// next packet does not have to pay for.
#[test]
fn an_idle_line_owes_no_fraction() {
    let Outcome::Ping { added_there, .. } = outcome(&whole("pfifo", 700_000_000, vec![ping()]))
    else {
        panic!()
    };
    assert_eq!(
        (added_there.least(), added_there.greatest()),
        (Some(Span(1_211)), Some(Span(1_211)))
    );
}

/// A host's interface has its rate though its way has no length.
#[test]
fn an_interface_takes_its_time() {
    let mut setup = whole("pfifo", 100_000_000, vec![ping()]);
    setup.hosts[0].egress.rate = Some(Rate::from_bits(1_000_000));
    let Outcome::Ping { added_there, added_back, .. } = outcome(&setup) else { panic!() };
    // 106 bytes at 1 and at 100 Mbit/s.
    assert_eq!(added_there.greatest(), Some(Span(848_000 + 8_480)));
    assert_eq!(added_back.greatest(), Some(Span(8_480)));
}

/// Jitter is behind the line, however near the host is.
#[test]
fn jitter_needs_no_distance() {
    let mut setup = whole("pfifo", 100_000_000, vec![ping()]);
    setup.lines[1].jitter = Span::from_millis(5);
    let Outcome::Ping { added_there, added_back, .. } = outcome(&setup) else { panic!() };
    assert_eq!(added_there.greatest(), Some(Span(8_480)));
    assert!(added_back.least() < Some(Span::from_millis(1)));
    assert!(added_back.greatest() > Some(Span::from_millis(4)));
    assert!(added_back.greatest() <= Some(Span(5_008_480)));
}

/// A fourth of what leaves a line comes late, and what follows it overtakes it; also where there is
/// no distance.
#[test]
fn what_comes_late_is_overtaken() {
    let mut setup = whole("pfifo", 100_000_000, vec![cbr(1_242, 1_000)]);
    setup.lines[0].reordering = Reordering { share: 1 << 30, late: Span::from_millis(10) };
    let Outcome::Datagrams { added_delay, .. } = outcome(&setup) else { panic!() };
    assert!(added_delay.greatest() < Some(Span::from_millis(11)));
    assert!(added_delay.quantile(730) < Some(Span::from_millis(1)));
    assert!(added_delay.quantile(770) > Some(Span::from_millis(10)));
    setup.traffic = vec![ping()];
    setup.lines.swap(0, 1);
    let Outcome::Ping { added_there, added_back, .. } = outcome(&setup) else { panic!() };
    assert_eq!(added_there.greatest(), Some(Span(8_480)));
    assert_eq!(added_back.least(), Some(Span(8_480)));
    assert_eq!(added_back.greatest(), Some(Span(10_008_480)));
}

/// Disciplines draw by the run's seed; where nothing is drawn all runs are one.
#[test]
fn the_seed_is_the_disciplines_as_well() {
    let hash = |words: &str, seed| run(&whole(words, 10_000_000, vec![cbr(1_242, 500)]), seed).hash;
    assert_eq!(hash("pfifo limit 20", 1), hash("pfifo limit 20", 2));
    assert_ne!(hash("pie limit 100", 1), hash("pie limit 100", 2));
}

/// A run's hash tells when packets arrive, and not only when they leave the line.
#[test]
fn the_hash_is_of_arrivals_too() {
    let hash = |nanos| {
        let mut setup = whole("pfifo", 10_000_000, vec![ping()]);
        setup.hosts[0].ingress.delay = Span(nanos);
        run(&setup, 1).hash
    };
    assert_ne!(hash(1), hash(2));
}

/// Acknowledgements are TCP's: those that a slow way up holds are filtered, and nothing else.
#[test]
fn a_discipline_knows_acknowledgements() {
    let words = "cake bandwidth 300kbit ack-filter";
    let mut download = bulk(None);
    download.direction = Direction::Down;
    let mut setup = whole("pfifo limit 100", 20_000_000, vec![download, cbr(20, 10_000)]);
    setup.lines[0].qdisc = qdisc::parse(words).expect("words");
    let results = run(&setup, 1);
    let filtered =
        [0, 1].map(|n| results.flows[n].fates[0].dropped[DropReason::AckFilter as usize]);
    assert!(filtered[0] > 100 && filtered[1] == 0, "{filtered:?}");
}

/// Times in the discipline, of all traffic together: one for each packet.
#[test]
fn sojourns_are_of_all_traffic() {
    let mut setup = setup("pfifo limit 100", 10_000_000, vec![cbr(1_000, 1_000), ping()]);
    setup.traffic.push(traffic(bulk(None).kind, Direction::Up));
    let up = &run(&setup, 1).lines[0];
    let all = up.all_sojourn();
    assert_eq!((all.count(), up.sojourn.len()), (up.packets, 3));
    assert_eq!(all.sum(), up.sojourn.iter().map(|sojourn| sojourn.sum()).sum::<u128>());
    assert!(all.sum() > u128::from(all.count()));
    assert_eq!(all.cumulative().last().map(|(_, count)| *count), Some(all.count()));
}
