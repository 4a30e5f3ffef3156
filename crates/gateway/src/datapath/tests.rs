//! The loop, with packets that never end.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnel_core::qdisc::{self, Backlog, ConfigError, DropReason, PacketOwner};
use simnel_core::{Packet, Qdisc, Time};

use super::*;
use crate::netlink::Writer;
use crate::nfqueue::{on_stream, MESSAGE_SIZE};
use crate::nft::MarkBits;
use crate::segments::SegmentSizes;
use crate::sys;
use crate::vitals::Board;

/// Refuses each packet, after some work: less than arrives.
struct Slow(BoxedQdisc);

impl Qdisc for Slow {
    fn enqueue(&mut self, packet: &Packet, _: Time, owner: &mut dyn PacketOwner) {
        let start = sys::now();
        while sys::now().since(start) < Span::from_micros(20) {}
        owner.dropped(*packet, DropReason::Overlimit);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.0.dequeue(now, owner)
    }

    fn next_event(&self) -> Option<Time> {
        None
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

impl Managed for Slow {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn config(&self) -> Config {
        self.0.config()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.0.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        self.0.adopt(spare, now, owner);
    }
}

/// A message of the kernel's about one packet, as long as a receive call takes.
fn packet_message() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.begin(3 << 8, 0, 0, 2, 5);
    writer.attribute(1, &[0, 0, 0, 42, 8, 0, 3]);
    writer.attribute(10, &[0x45; 60]);
    writer.finish();
    let mut message = writer.bytes().to_vec();
    message.resize(MESSAGE_SIZE, 0);
    message
}

fn surroundings() -> Surroundings {
    Surroundings {
        device: Device::default(),
        bits: MarkBits::DEFAULT,
        tuning: Tuning::default(),
        segments: Arc::new(SegmentSizes::new().unwrap()),
        passing: None,
        vitals: Board::shared().unwrap().lane(0),
        key: crate::classify::random_key().unwrap(),
    }
}

/// Times that a thread of ours has given its core up.
fn voluntary_switches(thread: impl std::fmt::Display) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_real_time_thread_gives_its_core_up_also_while_more_is_to_be_received() {
    const TIME: Duration = Duration::from_millis(500);
    // More than can be dealt with in that time, and all there from the start.
    const PACKETS: usize = 40_000;
    let (mut kernel, ours) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let flood = packet_message().repeat(PACKETS);
    let kernel_side: OwnedFd = kernel.try_clone().unwrap().into();
    if sys::set_option(&kernel_side, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 128i32 << 20).is_err()
    {
        eprintln!("NOT RUN: a_real_time_thread_gives_its_core_up needs root");
        return;
    }
    kernel.write_all(&flood).unwrap();
    let (queue, verdicts) = on_stream(ours);
    let config = qdisc::parse("pfifo limit 10").unwrap();
    let slow = Slow(qdisc::build(&config, &Device::default()).unwrap());
    let (worker, remote) = Worker::new(queue, verdicts, Box::new(slow), surroundings()).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
        worker.run();
    });
    let id = told.recv().unwrap();
    let (start, before) = (Instant::now(), voluntary_switches(id));
    std::thread::sleep(TIME);
    let switches = voluntary_switches(id) - before;
    let time = start.elapsed();
    let status = remote.status().unwrap();
    remote.stop();
    thread.join().unwrap();
    if !status.counters.realtime {
        eprintln!("NOT RUN: a_real_time_thread_gives_its_core_up needs SCHED_FIFO");
        return;
    }
    println!("{switches} voluntary switches in {time:?}, {} packets", status.counters.received);
    let received = status.counters.received as usize;
    assert!((1_000..PACKETS).contains(&received), "there was a time without a flood: {received}");
    let least = time.as_millis() as u64 / 20;
    assert!(switches >= least, "{switches} voluntary switches in {time:?}, not {least}");
}

/// Has no memory for any change.
struct Poor(BoxedQdisc);

impl Qdisc for Poor {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.0.enqueue(packet, now, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.0.dequeue(now, owner)
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

impl Managed for Poor {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn config(&self) -> Config {
        self.0.config()
    }

    fn prepare(&self, _: &Config, _: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Err(ConfigError::NoMemory)
    }

    fn adopt(&mut self, _: &mut dyn Managed, _: Time, _: &mut dyn PacketOwner) {
        panic!("adopts what it has not prepared");
    }
}

#[test]
fn a_change_is_of_all_lanes_or_of_none() {
    let limit = |packets: u32| qdisc::parse(&format!("pfifo limit {packets}")).unwrap();
    let plain = || qdisc::build(&limit(10), &Device::default()).unwrap();
    let start = |qdisc: BoxedQdisc| {
        let (kernel, ours) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (queue, verdicts) = on_stream(ours);
        let (worker, remote) = Worker::new(queue, verdicts, qdisc, surroundings()).unwrap();
        (kernel, std::thread::spawn(move || worker.run()), remote)
    };
    let lanes = [start(plain()), start(plain()), start(Box::new(Poor(plain()))), start(plain())];
    let remotes = || lanes.iter().map(|(_, _, remote)| remote);
    let limits = || -> Vec<Config> {
        remotes().map(|remote| remote.status().unwrap().root.config).collect()
    };
    assert_eq!(configure(remotes(), &limit(20)), Ok(Err(ConfigError::NoMemory)));
    assert_eq!(limits(), [10; 4].map(limit));
    assert_eq!(configure(remotes().take(2), &limit(20)), Ok(Ok(())));
    assert_eq!(limits(), [20, 20, 10, 10].map(limit));
    for (_kernel, thread, remote) in lanes {
        remote.stop();
        thread.join().unwrap();
    }
}
