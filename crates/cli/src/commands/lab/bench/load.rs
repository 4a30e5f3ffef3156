//! The benchmark's work: pairs of enqueue and dequeue on a virtual clock.
//!
//! `now` advances by [`STEP`] with each pair and no clock is read inside. *Empty*: a packet goes
//! into an empty queue and comes out, flows in turn. *Backlog*: [`STANDING`] packets of each flow
//! stand in the queue; one is taken out and one of the same flow put in. Packets start as
//! *descriptors* with their keys hashed, or as the *headers* of an Ethernet frame, which are read
//! and hashed each time.

use std::borrow::Borrow;

use serde::Serialize;
use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::qdisc::{DropReason, PacketOwner, Qdisc};
use simnel_core::wire::{Classifier, LinkLayer};
use simnel_core::{Packet, Span, Time};

/// Packets of each flow that stand in the queue under `backlog`.
pub const STANDING: u32 = 10;
/// Time from pair to pair. 1514 bytes take 61 ns at 200 Gbit/s, so the shaper is always ready. Ten
/// thousand standing packets wait 1 ms, too short for any AQM.
const STEP: Span = Span(100);
/// Bytes of a packet, link header included.
const LEN: u32 = 1514;
/// Bytes of a frame that a driver copies: all headers and a little more.
const COPIED: usize = 128;

/// Form in which a packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// A descriptor with its keys hashed.
    Descriptor,
    /// The bytes of the headers.
    Headers,
}

/// Standing queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Nothing.
    Empty,
    /// Ten packets of each flow.
    Backlog,
}

impl Input {
    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Input::Descriptor => "descriptor",
            Input::Headers => "headers",
        }
    }
}

impl Load {
    /// As in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Load::Empty => "empty",
            Load::Backlog => "backlog",
        }
    }
}

/// Result of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Result {
    /// FNV-1a over flow and time of each packet, in order of departure.
    pub hash: u64,
    /// Packets that the discipline gave up: none, if the benchmark is to mean anything.
    pub drops: u64,
}

/// One frame of each flow, as bytes and as a descriptor. The handle is the flow's number.
pub struct Frames {
    classifier: Classifier,
    class: u32,
    bytes: Vec<[u8; COPIED]>,
    descriptors: Vec<Packet>,
}

impl Frames {
    /// Frames of `flows` UDP flows of one class, each between two hosts of its own.
    ///
    /// Where flows share a host, CAKE's host fairness divides the quantum by their number. A packet
    /// then costs as many turns of the rotation as flows share: another workload.
    pub fn new(flows: u16, class: u32) -> Frames {
        let key = HashKey::new(0x5113_9e10, 0xca4e);
        let classifier = Classifier::new(FlowHasher::new(key, 128));
        let bytes: Vec<[u8; COPIED]> = (0..flows).map(frame).collect();
        let descriptors =
            (0u64..).zip(&bytes).map(|(n, bytes)| classify(&classifier, bytes, n, class)).collect();
        Frames { classifier, class, bytes, descriptors }
    }

    #[inline(always)]
    fn described(&self, flow: usize) -> &Packet {
        &self.descriptors[flow]
    }

    #[inline(always)]
    fn classified(&self, flow: usize) -> Packet {
        classify(&self.classifier, &self.bytes[flow], flow as u64, self.class)
    }
}

/// Headers of a 1514-byte UDP packet of flow number `flow`.
fn frame(flow: u16) -> [u8; COPIED] {
    let mut bytes = [0; COPIED];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip_len = (LEN - 14) as u16;
    let udp_len = ip_len - 20;
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&ip_len.to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 17]);
    let [high, low] = flow.to_be_bytes();
    bytes[26..30].copy_from_slice(&[10, 0, high, low]);
    bytes[30..34].copy_from_slice(&[10, 1, high, low]);
    bytes[34..36].copy_from_slice(&1024u16.to_be_bytes());
    bytes[36..38].copy_from_slice(&443u16.to_be_bytes());
    bytes[38..40].copy_from_slice(&udp_len.to_be_bytes());
    bytes
}

/// Bytes to descriptor, as a driver does for each packet. Memory is charged by length, so that ten
/// packets of a thousand flows stay below CAKE's default limit of 15.5 MB.
#[inline]
fn classify(classifier: &Classifier, bytes: &[u8; COPIED], handle: u64, class: u32) -> Packet {
    let mut packet = classifier.classify(LinkLayer::Ethernet, bytes, LEN, handle);
    packet.truesize = LEN;
    packet.class = class;
    packet
}

/// Counts what should not happen.
#[derive(Default)]
struct Owner {
    drops: u64,
}

impl PacketOwner for Owner {
    fn dropped(&mut self, _: Packet, _: DropReason) {
        self.drops += 1;
    }
}

/// A discipline at work.
pub struct Workload<'a> {
    qdisc: &'a mut dyn Qdisc,
    frames: &'a Frames,
    input: Input,
    load: Load,
    now: Time,
    owner: Owner,
    hash: u64,
    next_flow: usize,
}

impl<'a> Workload<'a> {
    /// Begins, with a standing queue if `load` asks for it.
    pub fn new(
        qdisc: &'a mut dyn Qdisc,
        frames: &'a Frames,
        input: Input,
        load: Load,
    ) -> Workload<'a> {
        let mut workload = Workload {
            qdisc,
            frames,
            input,
            load,
            now: Time(100_000_000_000),
            owner: Owner::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            next_flow: 0,
        };
        if load == Load::Backlog {
            for _ in 0..STANDING {
                for flow in 0..frames.descriptors.len() {
                    workload.qdisc.enqueue(
                        frames.described(flow),
                        workload.now,
                        &mut workload.owner,
                    );
                }
            }
        }
        workload
    }

    /// Does `pairs` pairs.
    pub fn run(&mut self, pairs: u64) {
        match (self.load, self.input) {
            (Load::Empty, Input::Descriptor) => self.run_empty(pairs, Frames::described),
            (Load::Empty, Input::Headers) => self.run_empty(pairs, Frames::classified),
            (Load::Backlog, Input::Descriptor) => self.run_backlog(pairs, Frames::described),
            (Load::Backlog, Input::Headers) => self.run_backlog(pairs, Frames::classified),
        }
    }

    #[inline(always)]
    fn run_empty<P: Borrow<Packet>>(
        &mut self,
        pairs: u64,
        packet: impl Fn(&'a Frames, usize) -> P,
    ) {
        let Workload { qdisc, frames, owner, .. } = self;
        let (mut now, mut hash, mut flow) = (self.now, self.hash, self.next_flow);
        for _ in 0..pairs {
            now += STEP;
            qdisc.enqueue(packet(frames, flow).borrow(), now, owner);
            flow = if flow + 1 == frames.bytes.len() { 0 } else { flow + 1 };
            let handle = qdisc.dequeue(now, owner).map_or(NOTHING, |packet| packet.handle);
            hash = mix(hash, handle, now);
        }
        (self.now, self.hash, self.next_flow) = (now, hash, flow);
    }

    #[inline(always)]
    fn run_backlog<P: Borrow<Packet>>(
        &mut self,
        pairs: u64,
        packet: impl Fn(&'a Frames, usize) -> P,
    ) {
        let Workload { qdisc, frames, owner, .. } = self;
        let (mut now, mut hash) = (self.now, self.hash);
        for _ in 0..pairs {
            now += STEP;
            let handle = qdisc.dequeue(now, owner).map_or(NOTHING, |packet| packet.handle);
            hash = mix(hash, handle, now);
            if handle != NOTHING {
                qdisc.enqueue(packet(frames, handle as usize).borrow(), now, owner);
            }
        }
        (self.now, self.hash) = (now, hash);
    }

    /// Result so far.
    pub fn result(&self) -> Result {
        Result { hash: self.hash, drops: self.owner.drops }
    }
}

/// In the place of a handle: the pair brought nothing (a slow shaper). It leaves its trace, too.
const NOTHING: u64 = u64::MAX;

/// One step of FNV-1a over what came out when.
#[inline(always)]
fn mix(hash: u64, handle: u64, now: Time) -> u64 {
    (hash ^ handle ^ now.0.rotate_left(20)).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::qdisc::Backlog;
    use std::collections::VecDeque;

    /// As simple as a queue gets.
    #[derive(Default)]
    struct Fifo(VecDeque<Packet>, Option<Packet>);

    impl Qdisc for Fifo {
        fn enqueue(&mut self, packet: &Packet, _: Time, owner: &mut dyn PacketOwner) {
            match self.0.len() {
                0..=9_999 => self.0.push_back(*packet),
                _ => owner.dropped(*packet, DropReason::Overlimit),
            }
        }

        fn dequeue(&mut self, _: Time, _: &mut dyn PacketOwner) -> Option<&mut Packet> {
            self.1 = self.0.pop_front();
            self.1.as_mut()
        }

        fn next_event(&self) -> Option<Time> {
            self.0.front().map(|_| Time::ZERO)
        }

        fn backlog(&self) -> Backlog {
            Backlog { packets: self.0.len() as u32, bytes: 0 }
        }

        fn reset(&mut self, _: &mut dyn PacketOwner) {}
    }

    fn work(flows: u16, input: Input, load: Load) -> (Result, u32) {
        let (mut fifo, frames) = (Fifo::default(), Frames::new(flows, 0));
        let mut workload = Workload::new(&mut fifo, &frames, input, load);
        workload.run(5000);
        (workload.result(), fifo.backlog().packets)
    }

    #[test]
    fn the_queue_stands_as_it_was_asked_to() {
        assert_eq!(work(7, Input::Descriptor, Load::Empty).1, 0);
        assert_eq!(work(7, Input::Descriptor, Load::Backlog).1, 70);
        assert_eq!(work(7, Input::Descriptor, Load::Backlog).0.drops, 0);
        // A queue that is too short for the load shows.
        assert!(work(1001, Input::Descriptor, Load::Backlog).0.drops > 0);
    }

    #[test]
    fn both_inputs_are_the_same_packets_and_the_hash_tells_workloads_apart() {
        let hash = |flows, input, load| work(flows, input, load).0.hash;
        for load in [Load::Empty, Load::Backlog] {
            assert_eq!(hash(9, Input::Descriptor, load), hash(9, Input::Headers, load));
        }
        let empty = hash(9, Input::Headers, Load::Empty);
        assert_ne!(empty, hash(8, Input::Headers, Load::Empty));
        let frames = Frames::new(500, 0);
        let flows: std::collections::BTreeSet<u64> =
            frames.descriptors.iter().map(|packet| packet.flow).collect();
        assert_eq!(flows.len(), 500);
    }
}
