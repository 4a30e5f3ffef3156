//! One direction of a bridge, where the kernel cannot queue its frames. What comes in by one port
//! waits in our memory, and leaves by the other.
//!
//! To the data path's loop it is what an NFQUEUE is: packets with numbers, to which verdicts are
//! given. The kernel's bridge stays as it is. Only a rule of ours keeps it from passing on frames
//! that we pass on (`nft`), and that rule goes when we do. Frames for the machine itself, and those
//! that no bridge passes on (IEEE 802.1D, table 7-10), are left to it.
//!
//! Super-packets are cut into segments (`frames`), unless the discipline takes them whole and the
//! other port's device cuts them. Marks are put into the frames themselves. Memory is bounded: what
//! is more is dropped, and counted.
//! Nothing allocates after construction.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use simnel_core::wire::{clear_dscp, set_ecn_ce};

use crate::classify::LINK;
use crate::frames::{
    add, describe, is_plain_tcp, split, with_tag, Frame, FrameError, Handle, Inbox, Outgoing,
    PacketSocket, Pool, BATCH, CHUNK_BYTES, ETHERNET_HEADER, MOST_SEGMENTS, TAG_BYTES, VNET_BYTES,
};
use crate::mac::Mac;
use crate::nfqueue::{verdicts, Event, KernelCounters, Queued, Verdict};
use crate::nft::MarkBits;

/// Group addresses that a bridge keeps to itself: the first 44 bits, and any last four.
const RESERVED: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];

/// Hardware addresses of the machine's, for which frames are its own: those of a bridge and its two
/// ports. The control thread changes them.
#[derive(Debug, Default)]
pub(crate) struct Own([AtomicU64; 3]);

impl Own {
    /// These it is from now on.
    pub(crate) fn set(&self, all: &[Mac]) {
        for (number, place) in self.0.iter().enumerate() {
            place.store(all.get(number).map_or(0, number_of), Ordering::Relaxed);
        }
    }

    fn has(&self, address: &Mac) -> bool {
        let number = number_of(address);
        self.0.iter().any(|place| place.load(Ordering::Relaxed) == number)
    }
}

/// An address as a number, of which none is 0.
fn number_of(address: &Mac) -> u64 {
    1 << 48 | address.number()
}

/// The part of a passage that the control thread sees.
#[derive(Debug)]
pub(crate) struct Control {
    from: Arc<PacketSocket>,
    /// Super-packets are not cut.
    whole: AtomicBool,
    waiting: AtomicU32,
    received: AtomicU64,
    /// Frames for which there was no memory, or that the other port would not take.
    dropped: AtomicU64,
    /// Frames that the kernel dropped because the socket was full.
    missed: AtomicU64,
}

impl Control {
    /// Super-packets are taken whole from now on, or not.
    pub(crate) fn set_whole(&self, whole: bool) {
        self.whole.store(whole, Ordering::Relaxed);
    }

    /// Its counters, as those of a queue in the kernel.
    pub(crate) fn counters(&self) -> KernelCounters {
        // The kernel's counter restarts at each reading.
        let news = self.from.take_drops();
        KernelCounters {
            waiting: self.waiting.load(Ordering::Relaxed),
            queue_dropped: self.dropped.load(Ordering::Relaxed),
            user_dropped: self.missed.fetch_add(news, Ordering::Relaxed) + news,
            id_sequence: self.received.load(Ordering::Relaxed),
        }
    }
}

/// A frame that awaits its verdict.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: u32,
    frame: Frame,
    chunks: u32,
    /// Offset of the network header from the Ethernet header.
    network: usize,
}

impl Held {
    /// Its packet, as far as the first chunk has it.
    fn packet(&self) -> Range<usize> {
        let frame = usize::from(self.frame.handle.start) + VNET_BYTES;
        frame + self.network..(frame + self.frame.len as usize).min(CHUNK_BYTES)
    }
}

/// A frame of the last receive call.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    id: u32,
    /// EtherType of what is behind the Ethernet header and the tag.
    protocol: u16,
    /// Payload of each segment of a super-packet; else 0.
    segment: u16,
}

/// One direction from port to port.
pub(crate) struct Passage {
    from: Arc<PacketSocket>,
    to: Arc<PacketSocket>,
    pool: Pool,
    inbox: Inbox,
    outgoing: Outgoing,
    /// By number, of which a part is the place. At least twice as many places as frames.
    held: Box<[Option<Held>]>,
    last_id: u32,
    /// Frames that are held.
    waiting: u32,
    /// Their chunks, and the most.
    chunks: u32,
    limit: u32,
    arrivals: Vec<Arrived>,
    segments: Vec<Frame>,
    own: Arc<Own>,
    bits: MarkBits,
    control: Arc<Control>,
}

impl Passage {
    /// A passage for `limit` ordinary frames at a time. `own` are addresses of the machine's,
    /// `bits` those of a mark that say what is to become of a header.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(
        [from, to]: [Arc<PacketSocket>; 2],
        limit: u32,
        own: Arc<Own>,
        bits: MarkBits,
    ) -> Result<Passage, FrameError> {
        let mut pool = Pool::new(limit as usize)?;
        let control = Control {
            from: Arc::clone(&from),
            whole: AtomicBool::new(false),
            waiting: AtomicU32::new(0),
            received: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        };
        Ok(Passage {
            from,
            to,
            inbox: Inbox::new(&mut pool),
            pool,
            outgoing: Outgoing::new(4 * BATCH),
            held: vec![None; (2 * limit as usize).next_power_of_two()].into(),
            last_id: 0,
            waiting: 0,
            chunks: 0,
            limit,
            arrivals: Vec::with_capacity(BATCH * MOST_SEGMENTS),
            segments: Vec::with_capacity(MOST_SEGMENTS),
            own,
            bits,
            control: Arc::new(control),
        })
    }

    /// Its part that the control thread sees.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Takes frames in that are there, without waiting: how many packets, and whether there may be
    /// more. What could not be sent is tried again.
    pub(crate) fn receive(&mut self) -> io::Result<(usize, bool)> {
        self.arrivals.clear();
        self.send_due();
        self.inbox.refill(&mut self.pool);
        let count = match self.from.receive(&mut self.inbox) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            result => result?,
        };
        (0..count).for_each(|slot| self.take(slot));
        self.control.waiting.store(self.waiting, Ordering::Relaxed);
        Ok((self.arrivals.len(), count == BATCH))
    }

    fn take(&mut self, slot: usize) {
        let arrival = self.inbox.arrival(slot);
        let chunk = self.inbox.claim(&arrival, &mut self.pool);
        let len = arrival.len.saturating_sub(VNET_BYTES);
        if !arrival.complete || len < ETHERNET_HEADER {
            return self.give_up(chunk);
        }
        let head = self.pool.bytes_mut(chunk);
        let frame = TAG_BYTES + VNET_BYTES;
        if is_kept(&head[frame..], &self.own) {
            return self.pool.release(chunk);
        }
        let at = frame + ETHERNET_HEADER - 2;
        let protocol = u16::from_be_bytes([head[at], head[at + 1]]);
        let (start, len) = with_tag(head, arrival.tag, len);
        // Behind the tag, whose room is before the frame without one.
        let network = ETHERNET_HEADER + TAG_BYTES - start;
        let handle = Handle { chunk, start: start as u8 };
        let segment = describe(handle, &head[start..], len).gso_size;
        let whole = Frame { handle, len: len as u32 };
        let wanted = self.control.whole.load(Ordering::Relaxed);
        if segment == 0 || wanted && self.to.cuts() && is_plain_tcp(&head[start..]) {
            return self.hold(whole, network, protocol, segment);
        }
        self.segments.clear();
        if !split(&mut self.pool, whole, &mut self.segments) {
            return self.hold(whole, network, protocol, segment);
        }
        self.pool.release(chunk);
        for number in 0..self.segments.len() {
            self.hold(self.segments[number], network, protocol, 0);
        }
    }

    /// Keeps a frame until its verdict, and tells of it.
    fn hold(&mut self, frame: Frame, network: usize, protocol: u16, segment: u16) {
        let Handle { chunk, start } = frame.handle;
        let bytes = usize::from(start) + VNET_BYTES + frame.len as usize;
        let chunks = bytes.div_ceil(CHUNK_BYTES) as u32;
        if self.chunks + chunks > self.limit {
            return self.give_up(chunk);
        }
        self.chunks += chunks;
        self.waiting += 1;
        // Half of the places are free.
        let id = loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.held[self.place(self.last_id)].is_none() {
                break self.last_id;
            }
        };
        self.held[self.place(id)] = Some(Held { id, frame, chunks, network });
        self.arrivals.push(Arrived { id, protocol, segment });
        add(&self.control.received, 1);
    }

    fn give_up(&mut self, chunk: u32) {
        self.pool.release(chunk);
        add(&self.control.dropped, 1);
    }

    fn place(&self, id: u32) -> usize {
        id as usize & (self.held.len() - 1)
    }

    /// Packet `index` of the last receive call.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> Event<'_> {
        let Arrived { id, protocol, segment } = self.arrivals[index];
        let Some(held) = self.held[self.place(id)] else { return Event::Stale };
        Event::Packet(Queued {
            id,
            protocol,
            bytes: &self.pool.bytes(held.frame.handle.chunk)[held.packet()],
            len: held.frame.len - held.network as u32,
            is_super: segment > 0,
            segment,
            ..Queued::default()
        })
    }

    /// Acts on verdicts, unless frames still wait for the other port: all or none.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_due();
        if self.is_behind() {
            return Err(ErrorKind::WouldBlock.into());
        }
        for Verdict { id, accepts, mark } in verdicts(bytes) {
            let place = self.place(id);
            let Some(held) = self.held[place].take_if(|held| held.id == id) else { continue };
            self.chunks -= held.chunks;
            self.waiting -= 1;
            if !accepts {
                self.pool.release(held.frame.handle.chunk);
                continue;
            }
            if let Some(mark) = mark {
                self.carry_out(&held, mark);
            }
            self.outgoing.push(held.frame);
        }
        self.send_due();
        self.control.waiting.store(self.waiting, Ordering::Relaxed);
        Ok(())
    }

    /// Writes into a frame's header what the discipline has decided about it.
    fn carry_out(&mut self, held: &Held, mark: u32) {
        let packet = &mut self.pool.bytes_mut(held.frame.handle.chunk)[held.packet()];
        if mark & self.bits.ce() != 0 {
            set_ecn_ce(LINK, packet);
        }
        if mark & self.bits.wash() != 0 {
            clear_dscp(LINK, packet);
        }
    }

    fn send_due(&mut self) {
        // A port that is gone may come back: frames are refused until then.
        let (sent, _) = self.outgoing.send(&self.to, &mut self.pool, || false);
        add(&self.control.dropped, sent.refused);
    }

    /// True if frames wait for the other port to take them.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        !self.outgoing.is_empty()
    }
}

impl AsFd for Passage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

/// True for a frame that no bridge passes on, or that is for one of the machine's `own` addresses.
fn is_kept(frame: &[u8], own: &Own) -> bool {
    let Some(to) = frame.first_chunk::<6>() else { return true };
    own.has(&Mac(*to)) || to[..5] == RESERVED && to[5] < 16
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::nfqueue::Verdicts;

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const OTHERS: Mac = Mac([2, 0, 0, 0, 0, 1]);

    /// A passage, with the far sides of its ports.
    struct Bed {
        passage: Passage,
        verdicts: Verdicts,
        left: UnixDatagram,
        right: UnixDatagram,
    }

    impl Bed {
        fn new(limit: u32) -> Bed {
            let [(left, from), (right, to)] =
                [UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap()];
            for end in [&left, &right, &from, &to] {
                end.set_nonblocking(true).unwrap();
            }
            let sockets = [from, to].map(|end| Arc::new(PacketSocket::on(end)));
            let own = Arc::new(Own::default());
            own.set(&[Mac([2, 0, 0, 0, 0, 8]), OWN]);
            let passage = Passage::new(sockets, limit, own, MarkBits::DEFAULT).unwrap();
            Bed { passage, verdicts: Verdicts::new(0, 0), left, right }
        }

        fn arrive(&self, frame: &[u8]) {
            self.left.send(frame).unwrap();
        }

        /// Takes in what is there, none of it a super-packet: number, type, length and first byte
        /// of each.
        fn receive(&mut self) -> Vec<(u32, u16, u32, u8)> {
            let (count, _) = self.passage.receive().unwrap();
            let told = |index| {
                let Event::Packet(queued) = self.passage.event(index) else { panic!("a packet") };
                assert!(!queued.is_super && queued.bytes.len() <= queued.len as usize);
                (queued.id, queued.protocol, queued.len, *queued.bytes.first().unwrap_or(&0))
            };
            (0..count).map(told).collect()
        }

        fn say(&mut self) {
            let passage = &mut self.passage;
            self.verdicts.flush(|bytes| passage.send(bytes));
        }

        /// Frames that have left.
        fn left(&self) -> Vec<Vec<u8>> {
            let mut bytes = vec![0; 65_536];
            let next = || self.right.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec());
            std::iter::from_fn(next).collect()
        }
    }

    /// A frame to `to` with an IPv4 packet of `length` bytes that can be marked, and its header's
    /// checksum. No virtio header says anything of it.
    fn frame(to: Mac, length: u16) -> Vec<u8> {
        let mut bytes = vec![0; VNET_BYTES];
        bytes.extend(to.0);
        bytes.extend([2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0xb8 | 2]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(VNET_BYTES + 14 + usize::from(length), 0x5a);
        bytes
    }

    fn tos(frame: &[u8]) -> u8 {
        frame[VNET_BYTES + 15]
    }

    #[test]
    fn frames_wait_for_their_verdicts_and_leave_as_they_came() {
        let mut bed = Bed::new(64);
        for length in [100, 1_500, 3_000] {
            bed.arrive(&frame(OTHERS, length));
        }
        let ids: Vec<u32> = bed
            .receive()
            .into_iter()
            .zip([100, 1_500, 3_000])
            .map(|((id, protocol, length, first), expected)| {
                assert_eq!((protocol, length, first), (0x0800, expected, 0x45));
                id
            })
            .collect();
        assert_eq!((ids.len(), bed.left()), (3, vec![]));
        bed.verdicts.accept(ids[2], None);
        bed.verdicts.drop(ids[0]);
        bed.say();
        assert_eq!(bed.left(), [frame(OTHERS, 3_000)]);
        assert_eq!(bed.passage.control().counters().waiting, 1);
        // What was judged, or never was, has no verdict to come.
        bed.verdicts.accept(ids[0], None);
        bed.verdicts.accept(77, None);
        bed.verdicts.accept(ids[1], None);
        bed.say();
        assert_eq!(bed.left(), [frame(OTHERS, 1_500)]);
        let counters = bed.passage.control().counters();
        assert_eq!((counters.waiting, counters.queue_dropped, counters.id_sequence), (0, 0, 3));
    }

    #[test]
    fn marks_are_put_into_the_frame() {
        let bits = MarkBits::DEFAULT;
        let mut bed = Bed::new(64);
        for mark in [0, bits.ce(), bits.wash(), bits.mask()] {
            bed.arrive(&frame(OTHERS, 60));
            let id = bed.receive()[0].0;
            bed.verdicts.accept(id, Some(mark | 5));
        }
        bed.say();
        let all = bed.left();
        assert_eq!(all.iter().map(|f| tos(f)).collect::<Vec<_>>(), [0xba, 0xbb, 2, 3]);
        // The checksum of 0 was wrong, and is wrong by as much.
        let sum =
            |f: &Vec<u8>| u32::from(u16::from_be_bytes([f[VNET_BYTES + 24], f[VNET_BYTES + 25]]));
        let sums = all.iter().map(|f| (sum(f) + u32::from(tos(f))) % 0xffff);
        assert_eq!(sums.collect::<Vec<_>>(), [0xba; 4]);
    }

    #[test]
    fn what_is_the_machines_own_or_no_bridges_is_left_alone() {
        let mut bed = Bed::new(64);
        let reserved = |last| Mac([0x01, 0x80, 0xc2, 0, 0, last]);
        // No address is 0, and none is all zeroes.
        for to in [OWN, reserved(0), reserved(15), reserved(16), Mac([0xff; 6]), Mac([0; 6])] {
            bed.arrive(&frame(to, 60));
        }
        // One of nothing but a header is a frame; these are none.
        let header = &frame(OTHERS, 60)[..VNET_BYTES + 14];
        bed.arrive(header);
        let told = bed.receive();
        assert_eq!((told.len(), told[3].2), (4, 0));
        bed.arrive(&[0; VNET_BYTES + 13]);
        bed.arrive(&[]);
        assert_eq!(bed.receive().len(), 0);
        assert_eq!(bed.passage.control().counters().queue_dropped, 2);
        bed.passage.own.set(&[OTHERS]);
        for to in [OWN, OTHERS] {
            bed.arrive(&frame(to, 60));
        }
        assert_eq!(bed.receive().len(), 1);
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let mut bed = Bed::new(8);
        for round in 0..50 {
            // Two chunks each, so that four have room.
            (0..6).for_each(|_| bed.arrive(&frame(OTHERS, 2_100)));
            let ids: Vec<u32> = bed.receive().iter().map(|told| told.0).collect();
            assert_eq!(ids.len(), 4, "round {round}");
            for (number, id) in ids.into_iter().enumerate() {
                match number % 2 {
                    0 => bed.verdicts.accept(id, None),
                    _ => bed.verdicts.drop(id),
                }
            }
            bed.say();
            assert_eq!(bed.left().len(), 2);
        }
        assert_eq!(bed.passage.control().counters().queue_dropped, 100);

        // A chunk has room for this one, and not for a byte more.
        let most = (CHUNK_BYTES - TAG_BYTES - VNET_BYTES - 14) as u16;
        for (length, held) in [(most, 8), (most + 1, 4)] {
            let mut bed = Bed::new(8);
            (0..10).for_each(|_| bed.arrive(&frame(OTHERS, length)));
            assert_eq!(bed.receive().len(), held);
        }
    }

    /// One that waits for long keeps its number, and its place.
    #[test]
    fn numbers_are_not_given_twice() {
        let mut bed = Bed::new(4);
        bed.arrive(&frame(OTHERS, 999));
        let first = bed.receive()[0].0;
        for _ in 0..100 {
            bed.arrive(&frame(OTHERS, 60));
            let id = bed.receive()[0].0;
            assert!(id != first && id % 8 != first % 8);
            bed.verdicts.accept(id, None);
            bed.say();
        }
        bed.left();
        bed.verdicts.accept(first, None);
        bed.say();
        assert_eq!(bed.left(), [frame(OTHERS, 999)]);
    }

    #[test]
    fn a_super_packet_is_cut_unless_it_is_wanted_whole() {
        let mut bed = Bed::new(64);
        // TCP in segments of 1000 bytes.
        let mut whole = frame(OTHERS, 40 + 2_500);
        (whole[0], whole[1]) = (1, 1);
        whole[4..6].copy_from_slice(&1_000u16.to_ne_bytes());
        whole[6..8].copy_from_slice(&34u16.to_ne_bytes());
        whole[VNET_BYTES + 14 + 9] = 6;
        whole[VNET_BYTES + 34 + 12] = 5 << 4;
        bed.arrive(&whole);
        let told = bed.receive();
        let lengths: Vec<u32> = told.iter().map(|told| told.2).collect();
        assert_eq!(lengths, [1_040, 1_040, 540]);
        told.iter().for_each(|told| bed.verdicts.accept(told.0, None));
        bed.say();
        assert_eq!(bed.left().len(), 3);

        bed.passage.control().set_whole(true);
        bed.arrive(&whole);
        let told = bed.receive();
        assert_eq!(told.len(), 3, "the device does not cut it");
        told.iter().for_each(|told| bed.verdicts.drop(told.0));
        bed.say();
        bed.passage.to.set_cuts(true);
        bed.arrive(&whole);
        assert_eq!(bed.passage.receive().unwrap(), (1, false));
        let Event::Packet(queued) = bed.passage.event(0) else { panic!("a packet") };
        assert_eq!((queued.is_super, queued.segment, queued.len), (true, 1_000, 2_540));
        bed.verdicts.accept(queued.id, None);
        bed.say();
        assert_eq!(bed.left(), [whole]);
    }

    #[test]
    fn a_port_that_is_full_is_waited_for() {
        let mut bed = Bed::new(1_024);
        let mut sent = 0;
        while !bed.passage.is_behind() {
            bed.arrive(&frame(OTHERS, 1_500));
            let id = bed.receive()[0].0;
            bed.verdicts.accept(id, None);
            bed.say();
            sent += 1;
            assert!(sent < 1_000, "nothing is ever full");
        }
        bed.arrive(&frame(OTHERS, 700));
        let id = bed.receive()[0].0;
        bed.verdicts.accept(id, None);
        bed.say();
        assert!(bed.verdicts.waiting(), "it has its verdict in spite of those before it");
        let mut all = Vec::new();
        while bed.verdicts.waiting() || bed.passage.is_behind() {
            all.append(&mut bed.left());
            bed.receive();
            bed.say();
        }
        all.append(&mut bed.left());
        assert_eq!(all.len(), sent + 1);
        assert_eq!(all.last(), Some(&frame(OTHERS, 700)));
    }
}
